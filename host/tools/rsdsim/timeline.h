/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each die does when, as a file that Perfetto and Chromium show. */
#ifndef RSDSIM_TIMELINE_H
#define RSDSIM_TIMELINE_H

#include <stdint.h>

#include "rsd.h"

struct timeline;

/*
 * A new file in Chrome's trace event format. What lies wholly before @from or
 * begins at @until ns or later is left out. Ends the program if the file
 * cannot be made.
 */
struct timeline *timeline_open(const char *path, const RsdDrive *drive,
			       uint64_t from, uint64_t until);

/*
 * Looks at the dies. To be called when the drive has been advanced to @now and
 * no further, for each of its events, and after each command is submitted.
 */
void timeline_look(struct timeline *timeline, uint64_t now);

/* A command of the host, which was in the drive from @begin to @end */
void timeline_command(struct timeline *timeline, const RsdCmd *cmd,
		      uint64_t number, uint64_t begin, uint64_t end);

/* The number of steps and commands in the file, which is complete then */
uint64_t timeline_close(struct timeline *timeline, uint64_t now);

#endif
