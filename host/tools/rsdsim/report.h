/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This reports a run, as JSON or as a table. */
#ifndef RSDSIM_REPORT_H
#define RSDSIM_REPORT_H

#include "options.h"
#include "sim.h"

/* This is the cost of a run for the host. */
struct host_cost {
	double precondition_cpu_s, run_cpu_s;	/* processor time */
	long peak_kib;				/* memory */
};

struct report {
	const struct options *options;
	const struct sim *sim;
	const struct precondition *precondition;
	uint64_t start_ns;	/* of the measurement, after preconditioning */
	RsdCounters before;	/* at that moment */
	struct host_cost host;
};

/* Prints it on stdout; --host-time adds the host's cost. Warns on stderr. */
void report_print(const struct report *report);

#endif
