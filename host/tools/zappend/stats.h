/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These are latency samples, with running mean and deviation, and exact
 * percentiles.
 */
#ifndef ZAPPEND_STATS_H
#define ZAPPEND_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Percentiles are given in hundredths of a percent: 9995 is 99.95%. */
#define STATS_PERCENTILES 17
extern const unsigned int stats_percentiles[STATS_PERCENTILES];

struct stats {
	uint64_t n;
	uint64_t min, max;
	double mean, m2;	/* m2: sum of squared distances to the mean */
	uint64_t *samples;	/* owned; NULL if percentiles are not wanted */
	uint64_t room;
};

/*
 * Prepares *st for up to @room samples of which percentiles are wanted; 0 if
 * only mean, deviation and extremes are. Returns 0, or -1 without memory.
 */
int stats_init(struct stats *st, uint64_t room);
void stats_free(struct stats *st);

/* Adds one sample (any unit). With percentiles, at most @room samples fit. */
void stats_add(struct stats *st, uint64_t value);

/*
 * Returns the standard deviation of a sample (divided by n - 1), as fio does.
 */
double stats_stddev(const struct stats *st);

/*
 * Fills out[i] with the smallest sample that at least stats_percentiles[i] of
 * all samples do not exceed (nearest rank). Sorts the samples. n must be > 0.
 */
void stats_get_percentiles(struct stats *st, uint64_t out[STATS_PERCENTILES]);

#endif
