/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This is the drive as the core sees it. */
#ifndef RFS_VOLUME_DEVICE_H
#define RFS_VOLUME_DEVICE_H

#include "plat/rfs_plat.h"
#include "format/rfs_format.h"

struct rfs_copy;
struct rfs_append_req;

enum rfs_dev_cond {
	RFS_DEV_OK,
	RFS_DEV_READ_ONLY,
	RFS_DEV_OFFLINE,
};

struct rfs_dev_zone {
	u32 cap;		/* blocks */
	u32 wp;			/* blocks */
	enum rfs_dev_cond cond;
};

/**
 * struct rfs_dev_ops - the operations of the drive. If the drive cannot do something now, for
 *	want of memory for example, it returns one of the errors that rfs_zone_failed() lists,
 *	and the core asks again. Operations that may be NULL say so
 * @append: appends blocks to a zone, and returns the address of the first. It may return before
 *	they are written; data and oob are copied or kept by then. @oob is ignored without OOB
 * @append_submit: does what @append does, but the append may be in flight when this returns, and
 *	data and oob stay. If it is @early, data is copied by then, and only oob stays. Each
 *	append has a number of its own below RFS_IO_REQS, never RFS_IO_DEPTH. It may be NULL, as
 *	may @append_wait, and is not used where few zones may be active
 * @append_wait: waits until the append is written, or has failed. Others may use the volume
 *	meanwhile if it is @early
 * @wait: waits until all appends are written, and returns the first error among them
 * @read: reads a block and, unless NULL, its OOB. -EIO says that it is unreadable
 * @scan: does what @read does, for cleaning that goes through a victim. Others may use the
 *	volume meanwhile. It may be NULL: then @read is used
 * @fetch: reads the block at rfs_fs.missed while others may use the volume. The block is in
 *	rfs_fs.fetched then, until @fetched. Both may be NULL: then the core calls neither
 * @fetched: ends the use of rfs_fs.fetched
 * @copy_read: begins to read the blocks of a copy that are not there. They are there after
 *	@copy_read_wait, unless they cannot be read. It may be NULL
 * @copy_read_wait: waits for @copy_read. Others may use the volume meanwhile
 * @copy_write: begins to append a copy. It calls rfs_copy_begin(), which may drop blocks of it,
 *	and rfs_place(). When a part has completed, it calls rfs_placed() and rfs_copy_done().
 *	Others may use the volume meanwhile. It may be NULL
 * @copy_write_wait: waits until all of the copy has completed, or failed. Others may use the
 *	volume meanwhile
 * @cached: copies the content of a file's block, if it is in memory and the drive has the
 *	same. It may be NULL
 * @write_dirty: says whether a file's block is dirty in memory, and will be written before the
 *	check-point: then it is not copied. Only cleaning that nobody waits for calls this. It
 *	may be NULL
 * @yield: is called in long work, and lets others use the volume. It may be NULL
 * @delay: waits a moment, in which nobody else uses the volume. Only reads that are in flight go
 *	on, and end. It may be NULL if @reset never returns -EBUSY
 * @reset: resets a zone. -EBUSY says that a read of it is in flight
 * @reset_begin: begins to reset a zone; rfs_reset_done() is called when it is over. -EBUSY says
 *	that a read of it is in flight, or that another zone is being reset. It may be NULL:
 *	then @reset is used
 * @quiet: lets others look at the volume while the drive is waited for, but change nothing,
 *	until it is called with false. It may be NULL
 * @frozen: is called when a check-point has all of its content. From now on others may change
 *	the volume, where appends and flushes are waited for @early or @flush_early. It may be
 *	NULL: then nobody changes the volume until the check-point is durable
 * @flush_early: does what @flush does, and lets others use the volume meanwhile. It comes with
 *	@frozen or @lets_change
 * @lets_change: says whether others may change the volume while an fsync waits for the log. If
 *	they may, no check-point begins until the fsync has ended (rfs_fs.syncing). It may be
 *	NULL: then they may not
 * @durable: waits until the check-point that is frozen is durable, or has failed, and no fsync
 *	lets others change the volume. Others may use the volume meanwhile. It may be NULL where
 *	the caller gets -EAGAIN instead
 * @finish: finishes a zone, which is full from now on
 * @close: closes a zone that is not written now. Both may be NULL where there is no limit
 * @flush: makes all earlier writes durable
 * @report: returns the state of a zone
 * @now: returns the time in ns since 1970
 * @blocks: is called when an inode has so many blocks, which stat(2) reports from now on. It may
 *	be NULL
 * @frees_orphans: the user of the volume frees orphans that exist when it is mounted, with
 *	rfs_free_some()
 * @may_exceed: says whether the caller of the operation may exceed quotas. It may be NULL
 * @crowded: is called when flash of a hybrid volume is nearly full, so blocks have to leave it
 *	soon. It may be NULL where only the core makes them leave
 * @victim: is called when a zone is about to be cleaned, with its blocks in use and its capacity.
 *	It may be NULL
 */
struct rfs_dev_ops {
	int (*append)(void *dev, u32 zone, u32 blocks, const void *const *data,
		      const struct rfs_oob *oob, u64 *addr);
	void (*append_submit)(void *dev, struct rfs_append_req *req);
	void (*append_wait)(void *dev, struct rfs_append_req *req);
	int (*wait)(void *dev);
	int (*read)(void *dev, u64 addr, void *data, struct rfs_oob *oob);
	int (*scan)(void *dev, u64 addr, void *data, struct rfs_oob *oob);
	void (*fetch)(void *dev);
	void (*fetched)(void *dev);
	int (*copy_read)(void *dev, struct rfs_copy *copy);
	void (*copy_read_wait)(void *dev, struct rfs_copy *copy);
	int (*copy_write)(void *dev, struct rfs_copy *copy);
	int (*copy_write_wait)(void *dev, struct rfs_copy *copy);
	bool (*cached)(void *dev, u32 ino, u64 block, void *data);
	bool (*write_dirty)(void *dev, u32 ino, u64 block);
	void (*yield)(void *dev);
	void (*delay)(void *dev);
	int (*reset)(void *dev, u32 zone);
	int (*reset_begin)(void *dev, u32 zone);
	void (*quiet)(void *dev, bool begins);
	void (*frozen)(void *dev);
	int (*flush_early)(void *dev);
	bool (*lets_change)(void *dev);
	void (*durable)(void *dev);
	int (*finish)(void *dev, u32 zone);
	int (*close)(void *dev, u32 zone);
	int (*flush)(void *dev);
	int (*report)(void *dev, u32 zone, struct rfs_dev_zone *out);
	u64 (*now)(void *dev);
	void (*blocks)(void *dev, u32 ino, u64 blocks);
	bool frees_orphans;
	bool (*may_exceed)(void *dev);
	void (*crowded)(void *dev);
	void (*victim)(void *dev, u32 zone, u32 live, u32 cap);
};

/**
 * struct rfs_slow_dev - a slow device beside the drive
 * @dev: is handed to the functions
 * @blocks: is the number of its blocks
 * @read: reads a block
 * @write: writes blocks that follow each other, from one on. They may be lost until @flush
 * @flush: makes all earlier writes durable
 * @send: does what @write does, for blocks of files. Others may use the volume meanwhile. It may
 *	be NULL: then @write is used
 * @will_repair: the volume may be written although its table of states is damaged
 */
struct rfs_slow_dev {
	void *dev;
	u64 blocks;
	bool will_repair;
	int (*read)(void *dev, u64 block, void *data);
	int (*write)(void *dev, u64 block, u32 n, const void *const *data);
	int (*flush)(void *dev);
	int (*send)(void *dev, u64 block, u32 n, const void *const *data);
};

/* This stands for a slow device that is missing. Only blocks that flash has can be read then. */
extern const struct rfs_slow_dev rfs_slow_gone;

struct rfs_geometry {
	u32 zones;
	u32 zone_blocks;
	u32 oob_bytes;		/* 0, or RFS_OOB_BYTES and more */
	bool volatile_cache;
	u32 append_max;		/* blocks of one append; 0: any number */
	/* These limit how many zones may be open, or partly filled. 0 is no limit. */
	u32 max_open, max_active;
	const struct rfs_slow_dev *slow;	/* NULL: nobody has one */
};

#define RFS_OPEN_MIN	3	/* with fewer there is no volume */
#define RFS_ACTIVE_MIN	4

/* This is one append of several that are in flight. */
struct rfs_append_req {
	u32 nr;			/* below RFS_IO_REQS, of those under way */
	u32 zone;
	u32 n;			/* blocks */
	const void *const *data;
	const struct rfs_oob *oob;
	u64 addr;		/* of the first, then */
	int error;
	bool early;		/* see @append_wait */
};

#define RFS_IO_DEPTH	7	/* of them at most */
#define RFS_LOG_IOS	2	/* of full blocks of the log */
#define RFS_SYNC_IOS	1	/* of those that an fsync waits for */
#define RFS_LOG_REQ	(2 * RFS_IO_DEPTH + 1)	/* the number of the first of these */
/*
 * These are all numbers: of check-points, one that is free, of early blocks or a mirror, of the
 * log.
 */
#define RFS_IO_REQS	(RFS_LOG_REQ + RFS_LOG_IOS + RFS_SYNC_IOS)

/* Says whether the drive allows as many open and active zones as a volume needs. */
static inline bool rfs_limits_ok(const struct rfs_geometry *geo)
{
	return (!geo->max_open || geo->max_open >= RFS_OPEN_MIN) &&
	       (!geo->max_active || geo->max_active >= RFS_ACTIVE_MIN);
}

#endif
