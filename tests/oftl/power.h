/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects on a drive in memory whose power is cut: after any of its operations it is
 * set to one of the states that this could have left.
 */
#ifndef POWER_H
#define POWER_H

#include "device.h"
#include "memdev.h"
#include "backend.h"

struct power {
	struct memdev *dev;	/* notes all that is done to it */
	struct memdev *base;	/* as it was when nothing was in doubt */
	struct memdev *work;	/* as the power cut has left it */
	u32 done;		/* operations that base has */
	u64 random;
};

#define POWER_ZONES	48
#define POWER_BLOCKS	128	/* of a zone */

struct power_drive {
	u32 oob;		/* bytes of page metadata */
	bool cache;		/* volatile, of the drive */
	bool pieces;		/* small writes may be pieces of blocks */
};

/* A new volume; what is done to it from now on can be cut */
struct power *power_new(const struct power_drive *drive, u64 seed);
void power_free(struct power *p);

/* The objects of the volume, and of what the last power cut has left; inject: see backend.h */
struct oftl *power_open(struct power *p);
struct oftl *power_reopen(struct power *p, u32 inject);

/*
 * Cut the power after so many operations of the drive, never fewer than before. Of
 * eight ways that pages in flight may end.
 */
void power_cut(struct power *p, u32 ops, u32 way);

/* A number below n */
u32 power_pick(struct power *p, u32 n);

#endif
