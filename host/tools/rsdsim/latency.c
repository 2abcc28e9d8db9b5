// SPDX-License-Identifier: GPL-2.0-or-later
#include "latency.h"

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < 2 << LATENCY_BITS)
		return ns;
	shift = 63 - LATENCY_BITS - __builtin_clzll(ns);
	return (shift << LATENCY_BITS) + (ns >> shift);
}

/* Returns the highest value that falls into a bucket. */
static uint64_t bucket_end(unsigned int bucket)
{
	unsigned int shift;
	uint64_t high;

	if (bucket < 2 << LATENCY_BITS)
		return bucket;
	shift = (bucket >> LATENCY_BITS) - 1;
	high = bucket - (shift << LATENCY_BITS);
	return (high << shift) + ((UINT64_C(1) << shift) - 1);
}

void latency_add(struct latency *l, uint64_t ns)
{
	if (!l->count || ns < l->min)
		l->min = ns;
	if (ns > l->max)
		l->max = ns;
	l->count++;
	l->sum += ns;
	l->buckets[bucket_of(ns)]++;
}

uint64_t latency_percentile(const struct latency *l, double part)
{
	uint64_t rank = part * l->count, seen = 0, end;
	unsigned int i;

	/*
	 * The rank is rounded up: so many values, at least one, must be at or
	 * below the result.
	 */
	if (rank < part * l->count || !rank)
		rank++;
	for (i = 0; i < LATENCY_BUCKETS; i++) {
		seen += l->buckets[i];
		if (seen >= rank) {
			end = bucket_end(i);
			return end < l->max ? end : l->max;
		}
	}
	return 0;
}
