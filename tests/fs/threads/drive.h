/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A zoned drive in memory, of which several commands are under way at a time: threads
 * of its own take them in any order and end them whenever it suits them.
 */
#ifndef RFS_DRIVE_H
#define RFS_DRIVE_H

#include "memdev.h"
#include "shim.h"

/* oob_bytes: of page metadata, 64 or none */
void drive_start(u32 zones, u32 zone_blocks, u32 oob_bytes, u64 seed);
void drive_stop(void);
const void *drive_block(u64 addr);	/* while nothing is under way */

/* From now on appends of what cleaning copies have this error; how many had the one before */
u32 drive_refuse_copies(int error);

/* Reads of several blocks fail from now on, or not any more; how many have */
u32 drive_refuse_rows(bool refuses);
/* Reads that were waited for with a lock held */
u32 drive_locked_reads(void);

/*
 * What a power cut now would leave: of what is under way some is there, and some is
 * not. memdev_free() frees it.
 */
struct memdev *drive_cut(void);

#endif
