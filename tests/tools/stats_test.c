// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads numbers, prints what stats.c makes of them. */
#include <inttypes.h>
#include <stdio.h>

#include "stats.h"

int main(void)
{
	uint64_t values[STATS_PERCENTILES], value, room;
	struct stats st;
	int i;

	if (scanf("%" SCNu64, &room) != 1 || stats_init(&st, room))
		return 1;
	while (scanf("%" SCNu64, &value) == 1)
		stats_add(&st, value);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %.17g %.17g\n", st.n,
	       st.min, st.max, st.mean, stats_stddev(&st));
	stats_get_percentiles(&st, values);
	for (i = 0; i < STATS_PERCENTILES; i++)
		printf("%u %" PRIu64 "\n", stats_percentiles[i], values[i]);
	stats_free(&st);
	return 0;
}
