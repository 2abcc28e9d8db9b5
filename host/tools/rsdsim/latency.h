/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This is a histogram of times, from which percentiles are computed. */
#ifndef RSDSIM_LATENCY_H
#define RSDSIM_LATENCY_H

#include <stdint.h>

/*
 * Values below 512 ns have a bucket each. Others have one of 256 in their power
 * of two. A percentile is given as its bucket's upper end, at most 1/256 (0.4%)
 * above the true value. Count, sum, least and most are exact.
 */
#define LATENCY_BITS 8
#define LATENCY_BUCKETS ((64 - LATENCY_BITS + 1) << LATENCY_BITS)

struct latency {
	uint64_t count, sum, min, max;
	uint64_t buckets[LATENCY_BUCKETS];
};

void latency_add(struct latency *l, uint64_t ns);

/*
 * Returns the least time that @part (0 to 1) of all values do not exceed, or 0
 * without any.
 */
uint64_t latency_percentile(const struct latency *l, double part);

#endif
