/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A zoned drive in memory for much data that is all alike: of that it keeps nothing
 * but page metadata. Nothing gets lost on it, and nothing is in flight.
 */
#ifndef BARE_H
#define BARE_H

#include "volume/device.h"

struct page {
	u8 *data;		/* NULL: not written; the common block: not ours */
	u64 used;		/* of the lines of a block, those that data has */
	struct rfs_oob oob;
};

struct drive {
	struct rfs_geometry geo;
	u32 cap;
	struct page *page;
	u32 *wp;
	enum rfs_dev_cond *cond;
	u64 time;
	u64 power;		/* appends until it fails */
	u64 fails;		/* appends and resets until the zone of one fails; 0: none does */
	u32 more;		/* zones that fail after it, each so many of these later: */
	u64 apart;
	u32 at_once;		/* zones that have failed; who uses the drive sets it to 0 */
};

extern struct drive drive;
extern u8 common[RFS_BLOCK_BYTES];	/* what is alike: it may be changed before */
extern const struct rfs_dev_ops drive_ops;

void drive_begin(void);		/* geo and cap are filled in */
void drive_end(void);

#endif
