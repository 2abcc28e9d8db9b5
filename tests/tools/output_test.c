// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints the JSON of a made-up run: 4 appends of 8 KiB in 2 ms, 1 refused. */
#include "output.h"

int main(void)
{
	struct zns_dev dev = {
		.path = "/dev/ng0n1", .block_bytes = 4096, .oob_bytes = 64,
	};
	struct work work = {
		.dev = &dev, .total = 5, .nlb = 2, .qd = 8, .oob = true,
		.seed = 3,
	};
	static struct result res = {
		.stop = STOP_ERROR, .issued = 5, .done = 4,
		.runtime_ns = 2000000,
	};
	static struct result verified = { .done = 4, .bad_blocks = 1 };
	struct report rep = {
		.name = "a \"quoted\" \\ name\n", .op = ENGINE_APPEND,
		.work = &work, .res = &res, .first_zone = 2, .last_zone = 9,
		.verified = &verified,
	};
	int i;

	if (stats_init(&res.clat, 4))
		return 1;
	for (i = 1; i <= 4; i++) {
		stats_add(&res.slat, i);
		stats_add(&res.clat, 100 * i);
		stats_add(&res.lat, 101 * i);
	}
	res.status[0x1b9] = 1;
	output_json(stdout, &rep);
	stats_free(&res.clat);
	return 0;
}
