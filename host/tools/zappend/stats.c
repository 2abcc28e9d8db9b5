// SPDX-License-Identifier: GPL-2.0-or-later
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

/* fio prints these. */
const unsigned int stats_percentiles[STATS_PERCENTILES] = {
	100, 500, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000,
	9500, 9900, 9950, 9990, 9995, 9999,
};

int stats_init(struct stats *st, uint64_t room)
{
	memset(st, 0, sizeof(*st));
	st->room = room;
	if (!room)
		return 0;
	st->samples = malloc(room * sizeof(*st->samples));
	if (!st->samples)
		return -1;
	/*
	 * The memory is touched, so there are no page faults while samples come
	 * in.
	 */
	memset(st->samples, 0, room * sizeof(*st->samples));
	return 0;
}

void stats_free(struct stats *st)
{
	free(st->samples);
	memset(st, 0, sizeof(*st));
}

void stats_add(struct stats *st, uint64_t value)
{
	double delta = value - st->mean;

	if (st->samples)
		st->samples[st->n] = value;
	if (!st->n || value < st->min)
		st->min = value;
	if (value > st->max)
		st->max = value;
	/*
	 * This is Welford's method, in which no sum outgrows the precision of
	 * the differences.
	 */
	st->n++;
	st->mean += delta / st->n;
	st->m2 += delta * (value - st->mean);
}

double stats_stddev(const struct stats *st)
{
	return st->n > 1 ? sqrt(st->m2 / (st->n - 1)) : 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void stats_get_percentiles(struct stats *st, uint64_t out[STATS_PERCENTILES])
{
	uint64_t rank;
	int i;

	qsort(st->samples, st->n, sizeof(*st->samples), compare);
	for (i = 0; i < STATS_PERCENTILES; i++) {
		rank = (stats_percentiles[i] * st->n + 9999) / 10000;
		out[i] = st->samples[rank - 1];
	}
}
