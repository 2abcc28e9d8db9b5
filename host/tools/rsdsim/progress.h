/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This shows progress on stderr: a bar if it is a terminal, and otherwise a
 * line every half minute.
 */
#ifndef RSDSIM_PROGRESS_H
#define RSDSIM_PROGRESS_H

#include <stdint.h>

/*
 * Begins a bar of that title. @total is the value at which progress_set() ends,
 * or 0 if it is unknown.
 */
void progress_begin(const char *title, uint64_t total);

/*
 * Sets how much of the total is done. It is cheap: it looks at the clock only
 * once in a while.
 */
void progress_set(uint64_t done);

/* Takes the bar away, so that something else can be printed. */
void progress_clear(void);

#endif
