/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These are random numbers: splitmix64 (Steele et al., OOPSLA 2014), in
 * integers.
 */
#ifndef RSDSIM_RNG_H
#define RSDSIM_RNG_H

#include <stdint.h>

struct rng {
	uint64_t state;		/* at first: the seed */
};

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/*
 * Returns a number from 0 to n - 1, with n above 0, by multiplication. A
 * value's probability differs from 1/n by less than 1/2^64, which no run of
 * ours can show.
 */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return (__uint128_t)rng_next(rng) * n >> 64;
}

/* Returns a number from 0 to below 1, a multiple of 2^-53. */
static inline double rng_unit(struct rng *rng)
{
	return (rng_next(rng) >> 11) * 0x1p-53;
}

#endif
