/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This brings a drive into the state in which measurements begin. */
#ifndef RSDSIM_PRECONDITION_H
#define RSDSIM_PRECONDITION_H

#include "gen.h"
#include "sim.h"
#include "steady.h"

enum precondition_kind { PRECONDITION_NONE, PRECONDITION_FILL,
			 PRECONDITION_STEADY, PRECONDITION_TIMES };

struct precondition {
	enum precondition_kind kind;
	double times;		/* PRECONDITION_TIMES: capacities written */
	uint64_t depth;		/* requests in flight while it becomes steady */
	/* results */
	uint64_t filled;	/* blocks written in sequence */
	uint64_t written;	/* blocks written thereafter */
	double write_amplification;	/* of all of these, or the last round */
	/* of PRECONDITION_STEADY */
	bool steady;		/* it was reached */
	enum levelling levelling;	/* if so: is static levelling in it? */
	uint32_t rounds;	/* a round writes as much as the fill has */
	double range, slope;	/* of the last ones, see steady.h */
};

/* At most so many rounds are made until the drive has to be steady. */
#define PRECONDITION_MAX 100

/*
 * Writes the namespace once in sequence, or as much of it as @cfg->fill says;
 * this part is called the capacity here. What follows goes by the pattern and
 * in the size of @cfg. PRECONDITION_TIMES writes the capacity N times, without
 * other requests. PRECONDITION_STEADY does the work of @cfg, reads and trims
 * included, round by round until it is steady (steady.h). It does not end
 * before all flash was programmed once and the work has turned over the places
 * that it writes to (gen_turnover()). At last, whatever the kind, the drive
 * comes to rest (sim_rest()). Sets @cfg->first, so that work in order goes on
 * where it ended. From another place, blocks would no longer be overwritten in
 * the order in which they were filled.
 */
void precondition_run(struct sim *sim, struct precondition *p,
		      struct gen_config *cfg);

/*
 * Returns the blocks programmed for each block that the host wrote, or 0 if it
 * wrote none.
 */
double write_amplification(const RsdCounters *before, const RsdCounters *after);

#endif
