/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When has a drive's write amplification become steady? */
#ifndef RSDSIM_STEADY_H
#define RSDSIM_STEADY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The measurement window has five parts, as that of SNIA's Solid State Storage
 * Performance Test Specification has five rounds. There, values may lie 20% of
 * their average apart, and their best linear fit may rise or fall by 10% of it.
 * Here the figure is to be that of a run ten times as long, so less is allowed,
 * and the window is the last two thirds of what was written: drives approach
 * their steady state ever more slowly. A part has two rounds at least, since
 * those of a small drive differ by chance.
 */
#define STEADY_PARTS 5
#define STEADY_PART_LEAST 2
#define STEADY_RANGE 0.02
#define STEADY_SLOPE 0.005

struct steady {
	double *amplification;	/* of each round */
	uint32_t rounds;
	uint32_t first;		/* rounds that are not looked at */
	uint32_t least;		/* rounds until it can be steady */
	double range, slope;	/* of the last window, parts of its average */
};

/*
 * Gives whether the rounds are steady; false if they are too few to look at.
 * Sets range and slope of the window.
 */
bool steady_look(struct steady *s);

#endif
