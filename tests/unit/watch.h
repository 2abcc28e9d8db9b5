/*
 * Every store into the tables of a media file is caught: their pages are
 * write-protected, the fault lets one instruction through, and behind it a
 * function of the test is called, as if the process had been killed there.
 * x86-64 only. Programs are linked with --wrap=mmap (see the Makefile).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_WATCH_H
#define RSD_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Stores caught so far */
extern uint64_t watch_stores;

/* Of the next file mapped, the first pages behind the header are watched. */
void watch_next_file(uint32_t pages, void (*after_store)(void));
/* Not watched any more. False where stores cannot be caught. */
bool watch_end(void);

/* A media file of a test, at most 4 MiB */
void watch_copy_file(const char *from, const char *to);

#endif
