/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes of a volume by a seed, of which the oracle is told. With `async` the
 * core is used as the module uses it: appends, also those of cleaning, are in
 * flight together and complete in any order, room is made by check-points and
 * cleaning on demand, and where cleaning waits or pauses, others write, delete,
 * and write check-points.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <setjmp.h>

#include "memdev.h"
#include "oracle.h"
#include "space/space.h"
#include "log/log.h"
#include "clean/clean.h"

#define ZONES		28
#define ZONES_A_WAY	6	/* more, for each way but one */
#define ZONE_CAP	62
#define ZONE_BLOCKS	64
#define DIRS_MAX	8
#define FLIGHTS		12

enum action {
	CREATE, MKDIR, TMPFILE, LINK, UNLINK, RMDIR, RENAME, EXCHANGE, WHITEOUT,
	TRUNCATE, PUNCH, PREALLOC, CHMOD, CHGRP, LIMIT, XATTR, WRITE, OVERWRITE,
	SMALL, SMALL_SYNC, FSYNC, SYNC, WAIT, HOME, FILL, BYPASS, ROW, SHIFT,
	ACTIONS
};

struct workload {
	const char *name;
	u32 steps;
	u32 files;		/* names in use at most */
	u32 weight[ACTIONS];
	u32 slack;		/* a file that stays fills all but these blocks */
};

extern const struct workload workloads[];	/* to one without a name */

struct mark {			/* after a step */
	u32 ops, changes, events;
};

struct replica {		/* what is there without flash */
	u64 seq, digest;	/* 0: there may be none from now on */
	u32 ops;		/* operations on both devices by then, at most */
};

/* A part of a transaction that is in flight */
struct part {
	struct rfs_place place;
	u64 addr;
	u32 first;		/* block of the transaction */
	u32 op;			/* of its first block, in the device's notes */
	bool completed;
};

#define TXN_BLOCKS	4

struct inflight {
	u32 node;		/* + 1; 0: this one is free */
	struct rfs_txn txn;
	u32 holes;
	struct rfs_oob oob[TXN_BLOCKS];
	struct part part[TXN_BLOCKS];
	u32 parts;
	u32 sent;		/* blocks */
};

#define COPY_PARTS	RFS_SUM_ENTRIES

/* What cleaning moves, in flight */
struct moving {
	struct rfs_copy *copy;	/* NULL: this one is free */
	struct part part[COPY_PARTS];
	u32 parts;
};

struct run {
	const struct workload *w;
	struct memdev *dev;
	struct rfs_dev_ops ops;
	struct rfs_fs *fs;
	struct oracle *o;
	u64 random;
	u32 dir[DIRS_MAX];	/* nodes */
	u32 dirs;
	struct mark *mark;
	u32 marks;
	u32 inject;
	struct rfs_policy policy;
	bool quota;		/* usage is counted */
	bool pieces;		/* small writes are pieces where they can be */
	bool runs;		/* leaves are runs where they can be */
	u32 replica;		/* 0: none; else one each so many ms, and one more */
	struct replica *replica_of;	/* those that were made */
	u32 replicas;
	u32 slow_errors;	/* of 1,000 writes or flushes of the replica, those that fail */
	u32 lost_flushes;	/* flushes that have failed */
	bool files_sent;	/* home, and not flushed there */
	u32 ways;		/* zones that a group stripes over */
	u32 widest;		/* zones that a group had open */
	bool async;
	bool cleaning;
	bool early;		/* of a check-point, while others go on: none begins */
	bool frozen;		/* these go on in the next epoch */
	bool syncing;		/* they go on while an fsync waits for the log */
	u32 frozen_changes, frozen_events;	/* of the oracle, when it began */
	struct inflight inflight[FLIGHTS];
	struct moving moving[RFS_COPIES];
	u32 tmp;		/* a node that had no name yet, or 0 */
	bool bypassed[NODES_MAX];	/* nodes that have what only a check-point makes durable */
	jmp_buf wait;		/* there: what waits for room */
	u64 pauses;
	u64 beside;		/* operations beside what was written early */
	u64 next;		/* and in the next epoch, before the check-point is durable */
	u64 synced;		/* and while an fsync waited for the log */
	u64 asked;		/* blocks that operations missed */
	u64 overtaken;		/* blocks that changed while they were moved */
};

u32 pick(struct run *r, u32 n);
/*
 * A new volume in r->dev, and the workload on it. At its first operation base
 * becomes a copy of the device.
 */
void record(struct run *r, struct memdev *base);

#endif
