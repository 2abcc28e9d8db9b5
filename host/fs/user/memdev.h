/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is a zoned drive with page metadata in memory, for tests, and a slow device beside it. It
 * can note every operation, and be set to the state that a power cut after any of them would have
 * left: each program in flight is absent, torn or complete on its own. A block of the slow device
 * that is torn has the new content in its first half, and else the old. An append that would need
 * an open or active zone too many fails.
 */
#ifndef RFS_MEMDEV_H
#define RFS_MEMDEV_H

#include "volume/device.h"

enum mem_state {
	MEM_ABSENT,	/* reads as zeroes, page metadata too */
	MEM_OK,
	MEM_TORN,	/* cannot be read */
};

struct mem_page {
	const u8 *data;
	const struct rfs_oob *oob;
	u8 state;
};

enum mem_op_type {
	MEM_APPEND, MEM_WAIT, MEM_RESET, MEM_FLUSH, MEM_FINISH,
	MEM_SLOW_WRITE, MEM_SLOW_FLUSH
};

#define MEM_OPEN	(~0U)

struct mem_op {
	enum mem_op_type type;
	u32 zone;
	u32 until;		/* operations, by when it is sure to be there */
	bool held;		/* MEM_WAIT does not wait for it */
	u64 addr;		/* APPEND, SLOW_WRITE: of one block */
	struct mem_page page;
	const u8 *before;	/* SLOW_WRITE: what was there */
	bool lost;		/* it was in flight until then, and is not there since */
};

struct memdev {
	struct rfs_geometry geo;
	u32 cap;		/* of each zone */
	struct mem_page *page;	/* of each address */
	u32 *wp;
	u8 *cond;
	bool *open;		/* written since it was closed, finished, reset */
	u64 time;		/* ns; grows by 1 ms a call */
	struct mem_op *op;	/* NULL: operations are not noted */
	u32 ops, op_room;
	u32 settled;		/* those before are there */
	bool hold;		/* what is noted now is held */
	u8 **arena;		/* pieces: blocks and OOBs that were appended */
	size_t used, room;	/* blocks of them */
	u64 reads;
	u32 refused;		/* appends for want of open or active zones */
	/* A slow device may exist beside it, whose writes are volatile until it is flushed. */
	struct rfs_slow_dev slow;
	const u8 **slow_block;	/* NULL: zeroes */
	bool slow_fails;	/* all that is asked of it */
};

extern const struct rfs_dev_ops memdev_ops;

/* The arena has room for all that can be appended before memdev_copy(), in bytes. */
struct memdev *memdev_new(const struct rfs_geometry *geo, u32 cap,
			  size_t arena, bool note);
void memdev_free(struct memdev *dev);
void memdev_add_slow(struct memdev *dev, u64 blocks);	/* geo.slow is it then */
/* Gives dev the content of `from`. Earlier appends to dev are forgotten. */
void memdev_copy(struct memdev *dev, const struct memdev *from);
/*
 * Makes a flush of the slow device fail, whose writes are noted. Some of the writes since the last
 * good flush are lost, as loses() says, also if another flush succeeds later.
 */
void memdev_slow_loses(struct memdev *dev, bool (*loses)(void *arg), void *arg);
/* Returns memory of the device for a block with its OOB behind it, until memdev_free(). */
u8 *memdev_unit(struct memdev *dev);
/*
 * Says that n operations that are held have completed. Without a volatile cache that is for good.
 */
void memdev_complete(struct memdev *dev, u32 op, u32 n);
/* Says whether an operation is a block that may be missing after so many operations. */
bool memdev_in_flight(const struct memdev *dev, u32 op, u32 ops);
/* Returns the state of an operation that is not in flight any more: it is there, or lost. */
enum mem_state memdev_settled(const struct mem_op *op);
/* Does an operation of another device's notes. */
void memdev_replay(struct memdev *dev, const struct mem_op *op, u8 state);

#endif
