/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This writes what each die does at each time, as a file that Perfetto and
 * Chromium show.
 */
#ifndef RSDSIM_TIMELINE_H
#define RSDSIM_TIMELINE_H

#include <stdint.h>

#include "rsd.h"

struct timeline;

/*
 * Makes a new file in Chrome's trace event format. It leaves out steps that end
 * before @from or begin at @until ns or later. Ends the program if the file
 * cannot be made.
 */
struct timeline *timeline_open(const char *path, const RsdDrive *drive,
			       uint64_t from, uint64_t until);

/*
 * Looks at the dies. It must be called when the drive has been advanced to @now
 * and no further, for each of its events, and after each command is submitted.
 */
void timeline_look(struct timeline *timeline, uint64_t now);

/* Adds a command of the host, which was in the drive from @begin to @end. */
void timeline_command(struct timeline *timeline, const RsdCmd *cmd,
		      uint64_t number, uint64_t begin, uint64_t end);

/* Completes the file, and returns the number of steps and commands in it. */
uint64_t timeline_close(struct timeline *timeline, uint64_t now);

#endif
