/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is generated work: its addresses, its kinds of requests and its times.
 */
#ifndef RSDSIM_GEN_H
#define RSDSIM_GEN_H

#include "request.h"

enum pattern { PATTERN_SEQUENTIAL, PATTERN_UNIFORM, PATTERN_ZIPF,
	       PATTERN_HOTCOLD };

struct gen_config {
	enum pattern pattern;
	double theta;			/* PATTERN_ZIPF */
	double hot_accesses, hot_space;	/* PATTERN_HOTCOLD: percent */
	uint32_t nlb;			/* blocks a request */
	bool append;			/* writes are zone appends */
	double reads, trims;		/* percent of all; the rest are writes */
	double rate;			/* requests a second; 0: closed loop */
	double fill;			/* percent of the namespace, the first ones, that are used */
	uint64_t seed;
	uint64_t first;			/* PATTERN_SEQUENTIAL: place, or zone, to begin with */
};

/*
 * Takes "sequential", "uniform", "zipf=THETA" or "hotcold=ACCESSES/SPACE".
 * Returns false if the text is none of these, or a number is not allowed.
 */
bool gen_parse_pattern(const char *text, struct gen_config *cfg);

/*
 * Returns how much of @items, which are blocks or zones, is used: at least one.
 */
uint64_t gen_filled(const struct gen_config *cfg, uint64_t items);

/*
 * Makes an endless source for a namespace. Addresses are multiples of the
 * request's size. In a conventional namespace, the ranks of Zipf are scattered
 * over it, and the hot blocks are its first ones. In a zoned one, the pattern
 * chooses a zone, which is written at its write pointer. A full zone is reset
 * first, when no write to it is in flight any more; no other request is
 * submitted until then. Reads are uniform over the written part of the zone, or
 * of the next zone that is not empty. With a rate, requests come at random as
 * in a Poisson process. Ends the program if the source cannot be made.
 */
struct source *gen_open(const struct gen_config *cfg, RsdDrive *drive,
			uint32_t ns);

/*
 * Returns how many capacities such a source has to write until its most rarely
 * written place, of those that it writes at all, is written once, on average.
 * Up to then, blocks that were filled before still hold pages that will become
 * invalid there. These pages take flash away from the rest. The result is 1 for
 * zones, whose blocks hold no such pages.
 */
double gen_turnover(const struct source *source);

/*
 * Returns the place, or zone, at which such a source of PATTERN_SEQUENTIAL goes
 * on.
 */
uint64_t gen_position(const struct source *source);

#endif
