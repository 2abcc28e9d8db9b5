/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This carries a native trace out again, exactly, and finds differences from
 * the recording.
 */
#ifndef RSDSIM_REPLAY_H
#define RSDSIM_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "rsd.h"
#include "timeline.h"
#include "trace.h"

struct replay_result {
	uint64_t commands;
	uint64_t completions;		/* compared with the trace's */
	uint64_t different;		/* of these */
	uint64_t counters;		/* compared; 0: the trace has none */
	uint64_t counters_different;
	uint64_t end_ns;
};

/*
 * Carries the trace out on @drive and compares each completion, and the
 * counters at the end. Prints the first completion and the counters that
 * differ. @payload says that the drive has its pages' data, as the recorded one
 * had; without it, the memory that data takes is not compared. @timeline sees
 * all events, unless it is NULL. Ends the program if the trace is damaged.
 */
struct replay_result replay_run(RsdTraceReader *reader, RsdDrive *drive,
				bool payload, struct timeline *timeline);

#endif
