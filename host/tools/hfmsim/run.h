/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of users run on a data section with a disk behind it. */
#ifndef HFMSIM_RUN_H
#define HFMSIM_RUN_H

#include <stdio.h>

#include "calls.h"
#include "drives.h"
#include "store.h"

struct run_config {
	struct store_config store;
	struct calls_config calls;
	u32 clients;
	u64 memory;		/* pages that may wait for the disk */
	u64 command_ns;
	FILE *list;		/* of the calls, or NULL */
};

struct run_result {
	u64 done;		/* transactions or files */
	u64 calls, bytes;	/* bytes written by calls */
	u64 ns;			/* until the last call has returned, */
	u64 settled_ns;		/* and until both drives have all */
	u64 by_disk;		/* writes that the disk had first */
	struct store_stats store;
	struct drives_counters drives;
};

/*
 * Runs all calls, and counts from the mark on. Ends the program if it cannot
 * run them.
 */
void run(const struct run_config *cfg, struct run_result *result);

#endif
