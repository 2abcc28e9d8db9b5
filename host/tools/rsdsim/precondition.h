/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bringing a drive into the state that measurements are to begin in. */
#ifndef RSDSIM_PRECONDITION_H
#define RSDSIM_PRECONDITION_H

#include "gen.h"
#include "sim.h"

enum precondition_kind { PRECONDITION_NONE, PRECONDITION_FILL,
			 PRECONDITION_STEADY, PRECONDITION_TIMES };

struct precondition {
	enum precondition_kind kind;
	double times;		/* PRECONDITION_TIMES: capacities written */
	/* results */
	uint64_t filled;	/* blocks written in sequence */
	uint64_t written;	/* blocks written thereafter */
	bool steady;		/* PRECONDITION_STEADY: it was reached */
	double write_amplification;	/* at the end of it */
};

/* At most so many capacities are written until the drive has to be steady. */
#define PRECONDITION_MAX 20

/*
 * Writes the whole namespace once in sequence; then, by the pattern and in the
 * size of @cfg, writes alone: the capacity N times, or until it is steady:
 * the write amplification of the last 1/2 capacity is within 1% of that of
 * the 1/2 before it.
 */
void precondition_run(struct sim *sim, struct precondition *p,
		      const struct gen_config *cfg);

/* Blocks programmed a block written by the host; 0 if it wrote none */
double write_amplification(const RsdCounters *before, const RsdCounters *after);

#endif
