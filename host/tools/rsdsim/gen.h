/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Generated work: where to, of what kind, when. */
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
 * False if it is none of them, or a number is not allowed.
 */
bool gen_parse_pattern(const char *text, struct gen_config *cfg);

/* So much of @items, which are blocks or zones, is used: one at least */
uint64_t gen_filled(const struct gen_config *cfg, uint64_t items);

/*
 * An endless source for a namespace. Addresses are multiples of the request's
 * size. In a conventional namespace, ranks of Zipf are scattered over it, and
 * the hot blocks are its first ones. In a zoned one the pattern chooses a zone:
 * it is written at its write pointer. If it is full, it is reset first, when no
 * write to it is in flight any more; nothing else is submitted until then. Reads
 * go uniformly to what is written of it, or of the next zone that is not empty. With a rate, requests come by chance as
 * in a Poisson process. Ends the program if they cannot be made.
 */
struct source *gen_open(const struct gen_config *cfg, RsdDrive *drive,
			uint32_t ns);

/*
 * Capacities that such a source has to write until the place that it writes to
 * most rarely, but at all, is written once, on average. Up to then, blocks that
 * were filled before still hold pages that will become invalid there, and so
 * take flash away from the rest. 1 for zones, whose blocks hold none.
 */
double gen_turnover(const struct source *source);

/* The place, or zone, that such a source of PATTERN_SEQUENTIAL goes on with */
uint64_t gen_position(const struct source *source);

#endif
