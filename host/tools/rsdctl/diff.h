/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef RSDCTL_DIFF_H
#define RSDCTL_DIFF_H

#include "snapshot.h"

/*
 * Prints what changed from @before to @after, as JSON (all counters) or as a
 * table (those that changed). Returns 0, or -1 after an error if they cannot
 * be of the same drive, the later one second.
 */
int diff_print(FILE *out, const struct snapshot *before,
	       const struct snapshot *after, bool json);

#endif
