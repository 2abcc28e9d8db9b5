/* SPDX-License-Identifier: GPL-2.0 */
/* This is the drive: bios with page metadata, and the operations that the core needs. */
#ifndef RFSM_DEV_H
#define RFSM_DEV_H

#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/iomap.h>
#include <linux/mempool.h>
#include <linux/workqueue.h>

#include "space/space.h"
#include "clean/clean.h"

struct rfs_sb_info;

#define RFSM_APPEND_MAX	64	/* blocks of one append or read: OOBs of a page */

/* One bio reads these consecutive blocks of a copy. */
struct rfsm_part {
	struct rfsm_copy *copy;
	bool *there;
	u32 n;
};

/* This is the module's part of a struct rfs_copy in flight. */
struct rfsm_copy {
	atomic_t reading;	/* parts */
	struct completion read, written;
	int error;
	struct rfsm_part part[RFS_SUM_ENTRIES];
};

/*
 * Reads, and appends that are waited for, use this request. It comes beside the requests that are
 * in flight together.
 */
#define RFSM_REQ_SYNC	RFS_IO_DEPTH

/* This is an append of the core that is in flight. */
struct rfsm_append_req {
	struct bio *bio;	/* NULL: it was not sent */
	struct completion done;
};

/* This is the drive as the core sees it. */
struct rfsm_dev {
	struct rfs_dev_ops ops;	/* what the core asks for */
	struct block_device *bdev;
	u32 zone_sectors;
	u32 oob_bytes;		/* page metadata of a block on the drive */
	u32 unused_bytes;	/* that RFS has no use for */
	struct bio_set bios, core_bios, direct_bios;
	struct iomap_dio_ops direct_ops;
	struct rfsm_append_req reqs[RFS_IO_REQS];
	struct page *core_oob[RFS_IO_REQS];
	mempool_t oob_pages;
	struct page *bounce[RFS_IO_REQS * RFSM_APPEND_MAX];
	u32 append_max;		/* blocks */
	u64 next_read;		/* would go on from the last one */
	u64 ahead_from;		/* the bounce pages have these blocks */
	u32 ahead;
	struct rfs_dev_zone *zones;	/* as reported, while mounting */
	u32 zone_count;
	atomic_t *reads;	/* of each zone, in flight */
	struct rfsm_copy *copies;
	u32 direct_align;	/* bits that a direct read's addresses in memory have not */
	bool dead;		/* shut down: all fails */
};

/* This zone is being reset. There is one at a time. */
struct rfsm_reset {
	struct rfs_sb_info *sbi;
	struct work_struct work;
	struct bio bio;
	u32 zone;
	bool busy;		/* under the volume lock, as the next */
	u32 ended;		/* resets, well or not */
	bool stops;		/* none is begun any more */
};

static inline sector_t rfsm_sector(u64 addr)
{
	return addr << (12 - SECTOR_SHIFT);
}

/* This queue looks at what was read, repeats reads that failed, and ends resets. */
extern struct workqueue_struct *rfsm_reads, *rfsm_resets;

struct page *rfsm_page_of(const void *block);
/*
 * Waits until all zones are reset that are free now and not being read; others may free more
 * meanwhile. It drops the volume lock. -EINTR says that the caller is killed.
 */
int rfsm_reset_free(struct rfs_sb_info *sbi);
/* Ends all resets: no reset begins any more, and this waits until none is in flight. */
void rfsm_reset_stop(struct rfs_sb_info *sbi);
int rfsm_dev_open(struct rfsm_dev *dev, struct super_block *sb,
		  struct rfs_geometry *geo);
void rfsm_dev_mounted(struct rfsm_dev *dev);
void rfsm_dev_close(struct rfsm_dev *dev);
/*
 * Initializes a set of n bios with page metadata that are always available, each with so many bytes
 * before it. bioset_exit() frees it.
 */
int rfsm_bioset_init(struct bio_set *bios, u32 n, u32 before);
struct bio *rfsm_bio(struct rfsm_dev *dev, blk_opf_t op, u32 blocks, u64 addr,
		     void **oob);
/*
 * Adds the OOBs, which are one after the other, to the bio. Between them it leaves the room that
 * the drive has there.
 */
void rfsm_bio_oobs(struct rfsm_dev *dev, struct bio *bio, void *oob, u32 n);
/* Closes that room after a read: *oob is an array of struct rfs_oob again. */
void rfsm_bio_oobs_back(struct rfsm_dev *dev, void *oob, u32 n);
void rfsm_bio_put(struct rfsm_dev *dev, struct bio *bio, void *oob);

void rfsm_victim(void *dev, u32 zone, u32 live, u32 cap);	/* a trace event */

#endif
