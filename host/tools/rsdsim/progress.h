/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On stderr: a bar while it is a terminal, elsewhere a line every half minute. */
#ifndef RSDSIM_PROGRESS_H
#define RSDSIM_PROGRESS_H

#include <stdint.h>

/* Begins a bar of that title. @total: what progress_set() ends at; 0: unknown */
void progress_begin(const char *title, uint64_t total);

/* @done of the total. Cheap: looks at the clock once in a while only. */
void progress_set(uint64_t done);

/* Takes the bar away, so that something else can be printed. */
void progress_clear(void);

#endif
