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
 * struct rfs_dev_ops - the drive. What it cannot do now for want of something else, such
 *	as memory, it says by one of the errors that rfs_zone_failed() lists, and is asked again
 * @append: blocks to the end of a zone; may return before they are written,
 *	data and oob are copied or kept by then. @oob is ignored without OOB.
 *	Says where the first block goes.
 * @append_submit: the same, but it may be under way when this returns, data and
 *	oob stay; each has a number of its own below RFS_IO_REQS, never
 *	RFS_IO_DEPTH. May be NULL, as @append_wait, and is not used where few
 *	zones may be active.
 *	Of those that are @early, data is copied by then, and only oob stays
 * @append_wait: until it is written, or has failed. Others may use the volume
 *	meanwhile if it is @early
 * @wait: until all appends are written; the first error among them
 * @read: a block and, unless NULL, its OOB; -EIO if it is unreadable
 * @scan: the same for who goes through a victim; others may use the volume
 *	meanwhile. May be NULL: @read is used
 * @fetch: the block at rfs_fs.missed is read while others may use the volume;
 *	it is in rfs_fs.fetched then, until @fetched. May be NULL, as @fetched:
 *	then nobody asks
 * @copy_read: begin to read the blocks of a copy that are not there; they are
 *	after @copy_read_wait, unless they cannot be read; may be NULL
 * @copy_read_wait: see there; others may use the volume meanwhile
 * @copy_write: begin to append a copy: rfs_copy_begin(), which may leave less
 *	of it, rfs_place(), and when a part has completed rfs_placed(),
 *	rfs_copy_done(); others may use the volume meanwhile; may be NULL
 * @copy_write_wait: until all of it has completed, or failed; others may use
 *	the volume
 * @cached: the content of a file's block, if it is in memory and nothing that is
 *	not on the drive; may be NULL
 * @write_dirty: is a file's block dirty in memory, and will be written before the
 *	check-point? Then it is not copied. Asked only by cleaning that nobody waits for;
 *	may be NULL
 * @yield: a place in long work where others may use the volume; may be NULL
 * @delay: a moment, in which nobody else uses the volume but reads that are on
 *	their way end; may be NULL if @reset is never busy
 * @reset: a zone; -EBUSY: not now, somebody reads it
 * @reset_begin: begin to reset a zone, rfs_reset_done() is due when it is over;
 *	-EBUSY: not now, somebody reads it, or another zone is being reset. May be
 *	NULL: @reset is used
 * @quiet: until @quiet with false, others may look at the volume while the drive
 *	is waited for, but change nothing; may be NULL
 * @frozen: a check-point has all that it says: from now on others may change the
 *	volume, where appends and flushes are waited for @early or @flush_early. May be
 *	NULL: nobody does until it is durable
 * @flush_early: as @flush, others may use the volume meanwhile; with @frozen
 * @durable: until that check-point is durable, or has failed; others may use the
 *	volume meanwhile. May be NULL where who asks is told to come again (-EAGAIN)
 * @finish: no more will be written to the zone, it is full
 * @close: it is not written now; both may be NULL where no limit is
 * @flush: what was written before is durable
 * @report: state of a zone
 * @now: ns since 1970
 * @blocks: stat(2) is to tell of so many of an inode now; may be NULL
 * @frees_orphans: who uses the volume frees those that are there when it is
 *	mounted, by rfs_free_some()
 * @may_exceed: who asks for this is not bound by quotas; may be NULL
 * @crowded: of a hybrid volume flash is nearly full: blocks are to leave it soon;
 *	may be NULL where nobody else does that
 * @victim: a zone is about to be cleaned, with so many blocks in use of so many;
 *	may be NULL
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
 * @blocks: that it has
 * @read: a block
 * @write: blocks, in a row from one on; they may be lost until @flush
 * @flush: what was written before is durable
 * @send: as @write, of blocks of files; others may use the volume meanwhile. May be
 *	NULL: @write is used
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

/* This stands for a slow device that is not there. Only what flash has can be read then. */
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
#define RFS_LOG_REQ	(2 * RFS_IO_DEPTH + 1)	/* the number of the first of these */
/*
 * Below RFS_IO_DEPTH are numbers of a check-point's appends. The device may use RFS_IO_DEPTH
 * itself. Then come those of what is early or a mirror, and those of full blocks of the log.
 */
#define RFS_IO_REQS	(RFS_LOG_REQ + RFS_LOG_IOS)

/* Says whether the drive allows as many open and active zones as a volume needs. */
static inline bool rfs_limits_ok(const struct rfs_geometry *geo)
{
	return (!geo->max_open || geo->max_open >= RFS_OPEN_MIN) &&
	       (!geo->max_active || geo->max_active >= RFS_ACTIVE_MIN);
}

#endif
