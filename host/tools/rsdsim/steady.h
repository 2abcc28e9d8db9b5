/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This finds out when a drive's write amplification has become steady. */
#ifndef RSDSIM_STEADY_H
#define RSDSIM_STEADY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The measurement window has five parts, as that of SNIA's Solid State Storage
 * Performance Test Specification has five rounds. There, values may lie 20% of
 * their average apart, and their best linear fit may rise or fall by 10% of it.
 * Here the figure is to be that of a run ten times as long, so less is allowed.
 * The window is the last two thirds of the rounds, since drives approach their
 * steady state ever more slowly. A part has at least two rounds, since those of
 * a small drive differ by chance.
 */
#define STEADY_PARTS 5
#define STEADY_PART_LEAST 2
#define STEADY_RANGE 0.02
#define STEADY_SLOPE 0.005

/*
 * Static wear levelling begins when erase counts differ by a threshold. This
 * may be long after the amplification has become steady, and costs programs
 * from then on. It is expected if the counts would reach the threshold in a run
 * this many times as long. Two ways are looked at: the difference grows by as
 * much in each round as in the window, or it grows as erases do that hit blocks
 * by chance, with the square root of their number. Once levelling has begun it
 * repeats itself when each block was erased as often as the threshold. A
 * shorter run tells nothing about its cost.
 */
#define STEADY_LONGER 10

enum levelling {
	LEVELLING_NONE,		/* it is off, or will not begin */
	LEVELLING_AHEAD,	/* it will begin, or is in its first turn */
	LEVELLING_RUNS,		/* the window has a whole turn of it */
};

/* This is the state of the drive after a round. */
struct wear {
	uint64_t spread;	/* of the blocks' erase counts, most less least */
	double mean;		/* of them */
	uint64_t levelled;	/* pages that levelling has programmed */
};

struct steady {
	double *amplification;	/* of each round */
	struct wear *wear;	/* after each */
	uint64_t threshold;	/* of levelling; 0: there is none */
	uint32_t rounds;
	uint32_t first;		/* rounds that are not looked at */
	uint32_t least;		/* rounds until it can be steady */
	/* of the last window */
	uint32_t start;		/* its first round */
	double range, slope;	/* parts of its average */
};

/*
 * Says whether the rounds are steady. It is false if there are too few rounds
 * to look at. Sets range and slope of the window.
 */
bool steady_look(struct steady *s);

/*
 * Returns what levelling is about to do to the amplification. It is called
 * after steady_look().
 */
enum levelling steady_levelling(const struct steady *s);

#endif
