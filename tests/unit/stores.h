/*
 * Watching a drive's stores into the tables of its media file (of a small drive
 * a page of block records, then one of the segment map or of trim bits), so
 * that a test can look at the file as it is after each of them, which is how a
 * killed process would have left it. Needs the linker's --wrap=mmap (see the
 * Makefile), and x86-64.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_STORES_H
#define RSD_STORES_H

#include "harness.h"

/*
 * The next file that is mapped is watched: then() is called after each store
 * into that many pages of tables, in which stores are not watched, but may be:
 * nested watches end first. Skips the test where that is not possible.
 */
void stores_watch(uint32_t pages, void (*then)(void));
/* Until here. */
void stores_end(void);
/* Stores seen so far */
uint64_t stores_seen(void);

/* Copies a media file as it is now. */
void copy_media(const char *from, const char *to);

#endif
