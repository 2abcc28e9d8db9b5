/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This is a drive at work: requests go in, and completions are counted. */
#ifndef RSDSIM_SIM_H
#define RSDSIM_SIM_H

#include "latency.h"
#include "request.h"
#include "trace.h"

#define SIM_OPS 16	/* more than RsdOp has */

/* These are the results of a drive for requests of one kind. */
struct op_stats {
	uint64_t blocks;
	uint64_t failed;	/* besides the latency->count that did not */
	RsdStatus failure;	/* of the last one that failed */
	struct latency *latency;	/* NULL: there were none of either */
};

struct sim {
	RsdDrive *drive;
	uint32_t ns;
	RsdGeometry geo;
	uint64_t now;		/* ns */
	uint64_t in_flight;
	uint64_t requests;	/* completed since the last sim_reset_stats() */
	struct op_stats stats[SIM_OPS];
	RsdTrace *record;	/* NULL: no native trace is recorded */
	uint64_t recorded;	/* commands */
	struct source *source;	/* of the run that goes on; NULL between runs */
};

/* Frees them and begins at 0. */
void sim_reset_stats(struct sim *sim);

/*
 * Keeps @depth requests in flight until @limit are submitted, or the source
 * ends, and all are done. Returns how many it submitted.
 */
uint64_t sim_run_closed(struct sim *sim, struct source *source, uint64_t depth,
			uint64_t limit);

/*
 * Submits up to @limit requests at the source's times, counted from now. A
 * request is later only if @depth are in flight, or if the source has to wait
 * for one of them. Latencies count from the source's times. Returns how many it
 * submitted.
 */
uint64_t sim_run_open(struct sim *sim, struct source *source, uint64_t depth,
		      uint64_t limit);

/*
 * Goes on until the drive has no work left of its own: its write buffer has
 * programmed the units that are full, and the background work that it has begun
 * or would begin in idle time is done.
 */
void sim_rest(struct sim *sim);

#endif
