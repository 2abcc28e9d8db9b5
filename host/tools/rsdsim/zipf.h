/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In a Zipf distribution, rank k of n comes with a probability proportional to
 * k^-theta, for any theta from 0 on. This draws ranks without tables, by
 * rejection-inversion (W. Hoermann, G. Derflinger, ACM TOMACS 6(3), 1996).
 */
#ifndef RSDSIM_ZIPF_H
#define RSDSIM_ZIPF_H

#include <stdint.h>

#include "rng.h"

struct zipf {
	uint64_t n;
	double theta;
	double area_first, area_last;	/* H(1.5) - h(1), H(n + 0.5) */
	double accept;			/* s of the paper */
};

#define ZIPF_MAX_THETA 20.0

/* Initializes it. @n is 1 or more, and @theta 0 to ZIPF_MAX_THETA. */
void zipf_init(struct zipf *z, uint64_t n, double theta);

/* Returns a rank from 0, the most frequent, to n - 1. */
uint64_t zipf_next(const struct zipf *z, struct rng *rng);

/*
 * Returns how many ranks per rank are drawn, on average, until the last one is.
 */
double zipf_coldest(const struct zipf *z);

#endif
