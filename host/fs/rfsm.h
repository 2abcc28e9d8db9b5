/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module is what Linux needs around the core. These are its locks, outer to inner: inode,
 * invalidate_lock, folio, volume (rfsm_lock). All of the core is under the volume lock; nobody
 * waits for room under a folio lock. See "Locks" in doc/design.md.
 */
#ifndef RFSM_H
#define RFSM_H

#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/iomap.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/seqlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "space/space.h"
#include "log/log.h"
#include "clean/clean.h"
#include "ops/ops.h"

#define RFSM_APPEND_MAX	64	/* blocks of one append or read: OOBs of a page */
#define RFSM_LARGEST	5	/* order of the largest folio */

enum rfsm_errors {
	RFSM_ERRORS_RO,
	RFSM_ERRORS_PANIC,
	RFSM_ERRORS_CONTINUE,
};

struct rfsm_options {
	unsigned int commit;	/* s between check-points */
	enum rfsm_errors errors;
	struct rfs_policy policy;
	u32 quota;		/* a bit for each rfs_quota_type that is on */
	bool compact;		/* small writes may be pieces */
	unsigned int bypass;	/* MiB: files as large bypass flash; 0: none does */
	char slow[256];		/* path of the slow device, or "none"; "": not given */
};

/* One bio reads these consecutive blocks of a copy. */
struct rfsm_part {
	struct rfsm_copy *copy;
	bool *there;
	u32 n;
};

/* This is what the module has of a struct rfs_copy in flight. */
struct rfsm_copy {
	atomic_t reading;	/* parts */
	struct completion read, written;
	int error;
	struct rfsm_part part[RFS_SUM_ENTRIES];
};

/*
 * Reads, and appends that are waited for, use this request. It is one beside those that are in
 * flight together.
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

/* These appends completed on a CPU, whose worker looks at them. */
struct rfsm_completions {
	struct rfs_sb_info *sbi;
	struct work_struct work;
	struct llist_head done;
};

/* This zone is being reset. One is at a time. */
struct rfsm_reset {
	struct rfs_sb_info *sbi;
	struct work_struct work;
	struct bio bio;
	u32 zone;
	bool busy;		/* under the volume lock, as the next */
	u32 ended;		/* resets, well or not */
	bool stops;		/* none is begun any more */
};

/* These bytes of a block are new, from the first to the one before `to`. */
struct rfsm_bytes {
	u16 from, to;
};

/* This is a block under writeback of which few bytes are new, and the folio that it lies in. */
struct rfsm_small {
	struct folio *folio;
	u64 block;
	u16 from, bytes;
	u16 len;		/* valid bytes of the block */
};

#define RFSM_SMALLS	32

#define RFSM_BATCH_MAX	256	/* blocks that writeback makes a transaction of */

/*
 * Consecutive blocks under writeback become one transaction. Small blocks are kept beside them
 * until they are pieces, or join it.
 */
struct rfsm_batch {
	u32 n;
	u32 len;	/* valid bytes of the last */
	u64 block;	/* the first */
	struct folio *folio[RFSM_BATCH_MAX];	/* of each block */
	u32 smalls;
	struct rfsm_small small[RFSM_SMALLS];
};

/* This block of a victim is dirty in the page cache, so that cleaning leaves it to writeback. */
struct rfsm_left {
	u32 ino;
	u64 block;
};

#define RFSM_LEFT	4096

/* A counter and a trace event say why a check-point was written. */
enum rfsm_cause {
	RFSM_CP_SYNC,		/* somebody asked for it */
	RFSM_CP_INTERVAL,	/* commit= seconds have passed */
	RFSM_CP_BOUND,		/* of what is dirty, or of the updating window */
	RFSM_CP_ROOM,		/* zones that it makes free, cleaned or not */
	RFSM_CP_UNMOUNT,	/* unmount, freeze, read-only */
	RFSM_CP_CAUSES
};

struct mm_struct;
struct rfsm_fetch;
struct rfsm_slow;
struct rfsm_fills;

/* An operation notes here which block of metadata it has missed. It is zero at first. */
struct rfsm_miss {
	struct rfsm_fetch *fetch;	/* what is read for it */
	u64 addr;
};

/**
 * struct rfsm_inode_ops - what inodes can do, by their kind
 *
 * Inodes are made below the files that have these operations: who mounts hands the
 * table over.
 */
struct rfsm_inode_ops {
	const struct inode_operations *file_iops;
	const struct file_operations *file_fops;
	const struct inode_operations *dir_iops;
	const struct file_operations *dir_fops;
	const struct inode_operations *symlink_iops;
	const struct inode_operations *special_iops;
};

struct rfs_sb_info {
	const struct rfsm_inode_ops *kinds;
	struct super_block *sb;
	struct rfs_fs *fs;
	struct mutex lock;	/* of fs, and what is said to be under it */
	unsigned int nofs;	/* of who holds it */
	/*
	 * If this is above 0, one task has begun rfsm_quiet(). It may lend the lock to those who
	 * only look.
	 */
	u32 quiet;
	struct task_struct *quiet_by;
	unsigned int lent_nofs;
	wait_queue_head_t quiet_over;
	struct list_head fetching;	/* metadata blocks that are being read */
	mempool_t fetches, fetch_pages;
	struct rfsm_miss cleaner_miss;
	struct shrinker *shrinker;	/* of metadata blocks in memory */
	/*
	 * statfs(2) reads this without the lock: it is how usage was when the lock was released
	 * last.
	 */
	seqcount_mutex_t usage_seq;
	struct rfs_usage usage;
	u64 home_left;		/* of a hybrid volume, rfs_home_left() */
	struct rfsm_options opt;
	struct rfsm_dev dev;
	struct rfsm_slow *slow;	/* the slow device; NULL: the volume has none */
	struct rfsm_fills *fills;	/* what comes from there to flash; or NULL */
	/*
	 * These are appends in flight. The volume lock protects them, but for those that have
	 * completed.
	 */
	struct workqueue_struct *queue;
	struct rfsm_completions __percpu *completions;
	struct llist_head later;
	struct delayed_work retry;
	struct work_struct sums_work;	/* sends summaries */
	mempool_t batches, txns, runs, sum_runs, sum_pages;
	struct bio_set sum_bios;
	u32 sums;		/* summaries */
	u32 inflight;		/* transactions and summaries */
	u32 inflight_bulk;	/* of them, those of who writes much */
	u32 inflight_copies;	/* and of these, copies */
	u32 inflight_pages;	/* of transactions of files */
	u32 inflight_bulk_pages;	/* of them, those of who writes much */
	u32 pages_most;		/* that may be, for what the drive does */
	u32 drain;		/* check-points that wait for who writes much */
	u32 gate;		/* and those that wait for all */
	bool early;		/* rfs_write_early() is under way */
	bool frozen;		/* others go on though the check-point is not durable */
	u64 opened;		/* ns: when the gate was, the last time */
	wait_queue_head_t gate_wait;
	struct rfsm_reset reset;

	struct work_struct writing;	/* rfsm_write_soon() */
	struct delayed_work freeing;	/* of inodes that were orphans at the mount */
	u32 orphan;		/* the next of these; 0: none is left */
	struct task_struct *thread;
	wait_queue_head_t wake;		/* the thread */
	wait_queue_head_t room;		/* who waits for it */
	bool want_room;
	u32 want_pages;		/* the most that are asked for at once */
	bool want_clean;
	unsigned long last_busy;	/* jiffies: when somebody was at work */
	unsigned long small;		/* and wrote little and waited */
	bool small_seen;		/* has anybody, ever? */
	unsigned long idle_seen;	/* that then nothing was to be cleaned */
	u32 seen_free;		/* of rfs_clean_due() */
	unsigned long crowded;	/* jiffies, under the lock: of rfsm_crowded() */
	u64 rounds;		/* of the thread, that sought room */
	u32 more_pages;		/* the one under way seeks room for */
	bool no_space;		/* the last one found none */
	bool deferred;		/* writeback had to leave pages dirty */
	bool stops;		/* the thread and what it has others do */
	bool clean_ro;		/* read-only because it was asked for */
	bool seeking;		/* the thread seeks room */
	bool cleaning;		/* it moves blocks */
	struct rfsm_left *left;	/* that it has left to be written, RFSM_LEFT at most */
	u32 lefts;
	u64 causes[RFSM_CP_CAUSES];	/* of check-points */
	u64 bypassed;		/* of all inodes, the last one */
	bool bulk;		/* files bypass flash by size, or did so in this mount */
	atomic64_t atomic_writes;	/* rfsm_atomic_write() */
	/* These are the numbers of the last flushes of the drive's volatile cache. */
	atomic64_t flushes_begun, flushes_done;
	atomic64_t settled_by;	/* settled_by of inodes that are not in memory */
	struct kobject kobj;	/* in /sys/fs/rfs */
	struct completion kobj_gone;
	bool kobj_there;
	struct dentry *debug;		/* in debugfs */
};

struct rfs_inode_info {
	u64 rsv_holes;		/* dirty pages that fill holes */
	u64 blocks;		/* as the core counts them */
	struct timespec64 btime;
	u32 rsv_pages;		/* pages for which a place is reserved */
	u64 reserved;		/* pages for which one ever was */
	u64 round;		/* of the thread, since which so many pages */
	u32 taken;		/* were dirtied */
	u64 fresh;		/* bytes written in a row, since they were sent */
	loff_t next;		/* where the last write ended */
	u32 flags;		/* FS_*_FL */
	atomic64_t settled_by;	/* the flush that its atomic writes wait for */
	s64 logged_atime;	/* ns; which a record or check-point has */
	bool deferred;		/* writeback had no room for a page */
	struct rfsm_session *session;	/* under the inode lock */
	loff_t session_size;	/* of the file with it; 0: there is none */
	u64 bypassed;		/* the check-point that has what it wrote home */
	struct inode vfs;
};

static inline struct rfs_sb_info *RFS_SB(const struct super_block *sb)
{
	return sb->s_fs_info;
}

static inline struct rfs_inode_info *RFS_I(struct inode *inode)
{
	return container_of(inode, struct rfs_inode_info, vfs);
}

/*
 * Returns the blocks of an inode, with those that dirty pages will fill. No lock is needed: while a
 * page completes, both numbers may count its block, but never neither.
 */
static inline u64 rfsm_blocks(struct inode *inode)
{
	/* This is read before the other, which has the block first: see rfsm_unreserve(). */
	u64 rsv = smp_load_acquire(&RFS_I(inode)->rsv_holes);

	return READ_ONCE(RFS_I(inode)->blocks) + rsv;
}

/* Returns the page of a folio that has a block of the file. */
static inline struct page *rfsm_page_with(struct folio *folio, u64 block)
{
	return folio_page(folio, block - folio->index);
}

static inline sector_t rfsm_sector(u64 addr)
{
	return addr << (12 - SECTOR_SHIFT);
}

/* fetch.c */
/*
 * Takes the volume lock, to change the volume or to look at it. Who holds it does not wait for the
 * drive, but for what "Locks" in doc/design.md lists.
 */
void rfsm_lock(struct rfs_sb_info *sbi);
/*
 * Takes the volume lock only to look at the volume. It does not wait for who writes a check-point
 * or the log.
 */
void rfsm_lock_query(struct rfs_sb_info *sbi);
void rfsm_unlock(struct rfs_sb_info *sbi);	/* of both */
/*
 * While this is on, the caller lends the lock whenever it waits for the drive, and others may look
 * but not change anything.
 */
void rfsm_quiet(struct rfs_sb_info *sbi, bool begins);
/* These are called around waits for the drive. They do nothing if rfsm_quiet() has not begun. */
void rfsm_lend(struct rfs_sb_info *sbi);
void rfsm_take_back(struct rfs_sb_info *sbi);

/*
 * The caller holds the lock, and calls the first before an operation of the core and the second
 * after it, with its result. True says that the operation missed a block: rfsm_miss_read() reads it
 * with no lock held, and the operation is tried again.
 */
void rfsm_miss_begin(struct rfs_sb_info *sbi, struct rfsm_miss *miss);
bool rfsm_miss_end(struct rfs_sb_info *sbi, struct rfsm_miss *miss, int ret);
void rfsm_miss_read(struct rfs_sb_info *sbi, struct rfsm_miss *miss);
/* The caller does not wait for the block that was missed, so it is not read. */
void rfsm_miss_drop(struct rfs_sb_info *sbi, struct rfsm_miss *miss);
int rfsm_fetch_init(struct rfs_sb_info *sbi);
void rfsm_fetch_exit(struct rfs_sb_info *sbi);

/* Does an operation of the core that changes nothing; ret becomes its result. */
#define rfsm_query(sbi, ret, op)					\
do {									\
	struct rfsm_miss miss_ = { 0 };					\
	bool again_;							\
									\
	do {								\
		rfsm_lock_query(sbi);					\
		rfsm_miss_begin(sbi, &miss_);				\
		(ret) = (op);						\
		again_ = rfsm_miss_end(sbi, &miss_, ret);		\
		rfsm_unlock(sbi);					\
		if (again_)						\
			rfsm_miss_read(sbi, &miss_);			\
	} while (again_);						\
} while (0)

/* mem.c */
int rfsm_mem_module_init(void);
void rfsm_mem_module_exit(void);

/* error.c */
/* Does what the option errors= says after an operation has failed. Returns ret. */
int rfsm_failed(struct rfs_sb_info *sbi, int ret);
/*
 * Under the lock: room lacks for this. The log says how much, with so many blocks that are asked
 * for: see struct rfs_lack
 */
void rfsm_say_room(struct rfs_sb_info *sbi, const char *what, u32 blocks);
bool rfsm_dead(const struct rfs_sb_info *sbi);
/*
 * Says what an error of the drive is to the core: an error of the moment is kept, and any other is
 * -EIO.
 */
int rfsm_drive_error(int error);

/* trace.c */
void rfsm_victim(void *dev, u32 zone, u32 live, u32 cap);	/* a trace event */

/* stats.c */
int rfsm_stats_init(struct rfs_sb_info *sbi);
void rfsm_stats_exit(struct rfs_sb_info *sbi);
int rfsm_stats_module_init(void);
void rfsm_stats_module_exit(void);

/* wake.c */
/* Says whether there is something that the thread has to do. Both are called without the lock. */
bool rfsm_checkpoint_due(const struct rfs_sb_info *sbi);
bool rfsm_work_due(const struct rfs_sb_info *sbi);
/*
 * Waits until there may be room or, with small, a little room. Returns 0 then, 1 if there is none
 * to be had, and -EINTR if the caller is killed.
 */
int rfsm_wait_room(struct rfs_sb_info *sbi, bool small);
/* This is the same for so many pages that are reserved together. */
int rfsm_wait_room_for(struct rfs_sb_info *sbi, u32 pages, bool small);
/*
 * This is the same for a page fault in this memory. -EAGAIN says that the fault has to begin anew,
 * since others want to change that memory.
 */
int rfsm_wait_room_fault(struct rfs_sb_info *sbi, bool small,
			 struct mm_struct *mm);

/*
 * Whoever writes little, and waits until it is on the drive, has priority: others write less at a
 * time, and leave zones that are free to him.
 */
#define RFSM_SMALL_PAGES	64	/* pages of a file, not written yet */

static inline bool rfsm_is_small_writer(struct inode *inode)
{
	return READ_ONCE(RFS_I(inode)->rsv_pages) <= RFSM_SMALL_PAGES;
}

/* Says whether somebody has written little within so many jiffies. */
static inline bool rfsm_favour_small(const struct rfs_sb_info *sbi,
				     unsigned long within)
{
	return READ_ONCE(sbi->small_seen) &&
	       time_before(jiffies, READ_ONCE(sbi->small) + within);
}

/* Decides how many zones are cleaned ahead for small writers. The caller holds the lock. */
void rfsm_set_ahead(struct rfs_sb_info *sbi);
/* Returns how many free blocks large writers leave to others. */
u32 rfsm_withheld(const struct rfs_sb_info *sbi);

/* This says whether who asks for room has waited for it, and whether there was any. */
enum rfsm_waited {
	RFSM_NOT_YET,
	RFSM_WAITED,
	RFSM_NO_SPACE,
};

/* Wakes the thread if an operation has left something to do, such as a check-point. */
void rfsm_kick(struct rfs_sb_info *sbi);
/*
 * Does the same after a reservation. Fewer blocks than a zone has take none of those that are
 * free, so whether cleaning is due is left to the append of them.
 */
void rfsm_kick_reserved(struct rfs_sb_info *sbi);
/* Somebody is at work, so the time without work begins anew. */
static inline void rfsm_set_busy(struct rfs_sb_info *sbi)
{
	WRITE_ONCE(sbi->last_busy, jiffies);
}

/* The core calls this if flash of a hybrid volume is nearly full: blocks have to leave it soon. */
void rfsm_crowded(void *dev);

/* Has Linux's writeback send the dirty pages of all files. */
void rfsm_write_soon(struct rfs_sb_info *sbi);

/* flush.c */
/*
 * Makes durable what the drive's volatile cache has. It waits for the drive, so the caller holds no
 * lock that others need.
 */
int rfsm_flush(struct rfs_sb_info *sbi);
/* An atomic write of several blocks has completed, and its writeback has not ended yet. */
void rfsm_atomic_completed(struct inode *inode);
/*
 * Pages that are sent next may hold bytes of atomic writes beside others, so these writes are made
 * durable, by a flush if the drive's cache is volatile. Returns 0 or an error.
 */
int rfsm_settle(struct inode *inode);
/*
 * The inode leaves memory, so from now on rfsm_settle() of any inode flushes for its atomic writes.
 */
void rfsm_settle_later(struct inode *inode);

/* checkpoint.c */
/*
 * Writes a check-point. The caller holds the volume lock, which is dropped while appends are waited
 * for.
 */
int rfsm_checkpoint(struct rfs_sb_info *sbi, u32 flags);
/* This is the same for rfs_compact(). */
int rfsm_checkpoint_of(struct rfs_fs *fs, u32 flags);
/* Writes a check-point, unless nothing has changed since the last one. */
int rfsm_sync(struct rfs_sb_info *sbi, u32 flags);

/* If others are in the next epoch, waits until the check-point before it is durable. */
void rfsm_wait_commit(struct rfs_sb_info *sbi);
void rfsm_dev_durable(void *dev);	/* of rfs_dev_ops, as the next */
void rfsm_dev_frozen(void *dev);
bool rfsm_dev_lets_change(void *dev);
/* All records are durable. Under the volume lock, which may be dropped meanwhile */
int rfsm_log_sync(struct rfs_sb_info *sbi);
/* Nothing is written any more, and all fails */
void rfsm_shutdown(struct rfs_sb_info *sbi);
/*
 * Does what a change needs that asks for nothing new: it writes a check-point, or compacts
 * metadata. The caller holds the lock. -ENOBUFS says that it is done. It waits for nothing but what
 * is in flight, so writeback and whoever drops an inode can call it.
 */
int rfsm_compact(struct rfs_sb_info *sbi);

/* blocks.c */
/* This is the private value of a large folio that is, or was, written to. Each block has a bit. */
struct rfsm_blocks {
	/* The folio's lock protects these. */
	u32 filled;		/* its content is there; else the drive has zeroes */
	u32 dirty;
	u32 partly;		/* it is dirty, and only some of its bytes are new */
	/* These are changed under the volume lock. */
	u32 reserved;		/* for it there is a place */
	u32 holes;		/* and that it was a hole */
	atomic_t sent;		/* it is under writeback */
	struct rfsm_bytes *bytes;	/* of each: which those are; NULL: never of any */
};

static inline struct rfsm_blocks *rfsm_blocks_in(const struct folio *folio)
{
	return folio_get_private((struct folio *)folio);
}

/* Returns the bits of n blocks of a folio, one at least, from a block of the file on. */
static inline u32 rfsm_blocks_mask(const struct folio *folio, u64 block, u32 n)
{
	u32 from = block - folio->index;

	return GENMASK(from + n - 1, from);
}

/* The caller has the folio locked, unless a comment says otherwise. */
/* Gives a large folio its value, and does nothing to others. -ENOMEM is the only error. */
int rfsm_blocks_attach(struct folio *folio);
/* Takes the value away. Nothing is reserved by then. */
void rfsm_blocks_detach(struct folio *folio);
/* These bytes will be written. What lies beside them in a block without content becomes zeroes. */
void rfsm_blocks_begin(struct folio *folio, loff_t pos, size_t len);
/*
 * So many of these bytes were copied. Returns how many of them count, whose blocks are dirty now; 0
 * says that all have to be copied again. With compact=on the value says which bytes of a block are
 * new, unless all are.
 */
size_t rfsm_blocks_end(struct folio *folio, loff_t pos, size_t len,
		       size_t copied);
/* Gives all blocks content: those that had none become zeroes. */
void rfsm_blocks_fill(struct folio *folio);
/* Waits until no block with these bytes is under writeback. */
void rfsm_blocks_wait(struct folio *folio, loff_t pos, size_t len);
/*
 * Begins writeback. size is that of the file. Returns which blocks are to be sent, and none are
 * dirty any more; with 0 it has not begun. *partly says which of them have bytes that are not new.
 */
u32 rfsm_blocks_send(struct folio *folio, loff_t size, u32 *partly);
/*
 * Returns the new bytes of a block that is sent in part, while it is under writeback. The folio
 * need not be locked.
 */
const struct rfsm_bytes *rfsm_blocks_bytes(const struct folio *folio, u64 block);
/*
 * So many blocks of any folio are on the drive. With the last one writeback ends. The folio need
 * not be locked.
 */
void rfsm_blocks_sent(struct folio *folio, u64 block, u32 n);
/* Blocks that are dropped are not dirty any more. */
void rfsm_blocks_drop(struct folio *folio, u64 block, u32 n);
/* Returns the blocks that are neither dirty nor under writeback. */
u32 rfsm_blocks_clean(const struct folio *folio);

/* reserve.c */
/*
 * Reserves n blocks of a locked folio that will be dirty, and others after them that may be, `most`
 * in all: these overwrite, and get a reservation only if there is room without waiting. -EAGAIN
 * says that the caller has to unlock the folio and wait for room; some blocks may be reserved.
 */
int rfsm_reserve(struct rfs_sb_info *sbi, struct inode *inode,
		 struct folio *folio, u64 block, u32 n, u32 most,
		 enum rfsm_waited waited);
/*
 * Ends the reservations of n blocks of a folio, if they have any. The caller holds the volume lock.
 */
void rfsm_unreserve(struct rfs_sb_info *sbi, struct inode *inode,
		    struct folio *folio, u64 block, u32 n);
/* Says whether a block is reserved. The folio is locked. */
bool rfsm_is_reserved(const struct folio *folio, u64 block);

/* These bytes of a locked folio of one page, which is reserved, are new, beside those before. */
void rfsm_dirty_bytes(struct folio *folio, u32 from, u32 to);
/* Returns the bytes that rfsm_dirty_bytes() was told of. False says that it was told of none. */
bool rfsm_new_bytes(struct folio *folio, struct rfsm_bytes *bytes);

/* append.c */
int rfsm_append_init(struct rfs_sb_info *sbi);
void rfsm_append_exit(struct rfs_sb_info *sbi);
/*
 * Writes n blocks as a transaction, in ascending order from the given one on. Each has the folio
 * that it lies in, which is under writeback. len is the valid bytes of the last block. If the
 * blocks do not follow each other, their folios have one page. Writeback ends later, and errors go
 * to the mapping.
 */
enum rfsm_append {
	RFSM_APPEND_SYNC = 1,	/* somebody waits for it */
	RFSM_APPEND_ATOMIC = 2,	/* somebody has asked for all or nothing */
	RFSM_APPEND_FILL = 4,	/* of rfsm_append_fill() */
};

void rfsm_append(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		 struct folio **folio, u32 n, u32 len, u32 how);

/* over() is called when writeback has ended, with 0 or an error, for who does not wait. */
struct rfsm_then {
	void (*over)(struct rfsm_then *then, int error);
};

/* These bytes of the first or last block, or both, should become pieces of the transaction. */
struct rfsm_ends {
	struct rfs_bytes piece[2];
	u32 n;
	bool head;	/* the first one is of the first block */
};

/*
 * As rfsm_append(). ends and then may be NULL. at has the numbers of the blocks, and is freed by
 * kfree(). It is NULL if they follow each other, as they do if there are ends.
 */
void rfsm_append_then(struct rfs_sb_info *sbi, struct inode *inode,
		      u64 block, u64 *at, struct folio **folio, u32 n, u32 len,
		      u32 how, const struct rfsm_ends *ends,
		      struct rfsm_then *then);
/*
 * Brings a block that is only at home to flash, too. Its folio, of one page, is up to date,
 * reserved and under writeback.
 */
void rfsm_append_fill(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		      struct folio *folio);
/* Appends a copy. The caller holds the volume lock, which is dropped meanwhile. */
int rfsm_copy_write(void *dev, struct rfs_copy *copy);
int __init rfsm_append_module_init(void);
void rfsm_append_module_exit(void);

/* compact.c */
/*
 * A block under writeback joins the small ones of a batch, which has room, if no more than
 * RFS_SMALL_MAX bytes of it are new. Else nothing is done. size was the file's when writeback
 * began.
 */
bool rfsm_small_add(struct rfsm_batch *b, struct folio *folio, u64 block,
		    const struct rfsm_bytes *bytes, loff_t size);
/*
 * Writes small blocks as pieces where that takes fewer pages. Those that stay in the batch have to
 * be pages. alone says that fsync or O_SYNC waits for the log, see rfs_piece_most().
 */
void rfsm_smalls_write(struct inode *inode, struct rfsm_batch *b, bool alone);
/* Says whether an atomic write takes fewer pages if its ends are pieces. alone is as above. */
bool rfsm_ends_save(struct inode *inode, const struct rfsm_ends *ends,
		    bool alone);
/* Says that sync(2) needs no check-point. The caller holds no lock. */
bool rfsm_log_is_enough(const struct rfs_sb_info *sbi);

/* quota.c */
int rfsm_quota_init(struct rfs_sb_info *sbi);
bool rfsm_may_exceed(void *dev);

/* reclaim.c */
int rfsm_thread_start(struct rfs_sb_info *sbi);
void rfsm_thread_stop(struct rfs_sb_info *sbi);
/*
 * Does an operation of the core, again after each wait for room; ret becomes its result. The caller
 * has no folio locked.
 */
#define rfsm_update(sbi, ret, op)					\
do {									\
	struct rfsm_miss miss_ = { 0 };					\
	int no_space_ = 0;						\
	bool again_;							\
									\
	for (;;) {							\
		rfsm_lock(sbi);						\
		(sbi)->fs->no_space = no_space_;			\
		rfsm_miss_begin(sbi, &miss_);				\
		(ret) = (op);						\
		again_ = rfsm_miss_end(sbi, &miss_, ret);		\
		(sbi)->fs->no_space = false;				\
		if ((ret) == -ENOBUFS)					\
			(ret) = rfsm_compact(sbi);			\
		rfsm_unlock(sbi);					\
		if (again_)						\
			rfsm_miss_read(sbi, &miss_);			\
		if (again_ || (ret) == -ENOBUFS)			\
			continue;					\
		if ((ret) != -EAGAIN)					\
			break;						\
		no_space_ = rfsm_wait_room(sbi, false);			\
		if (no_space_ < 0) {					\
			(ret) = no_space_;				\
			break;						\
		}							\
	}								\
	rfsm_set_busy(sbi);						\
	rfsm_kick(sbi);							\
	if (ret)							\
		(ret) = rfsm_failed(sbi, ret);				\
} while (0)

/* bdev.c */
struct page *rfsm_page_of(const void *block);
/*
 * Waits until the zones are reset that are free now and not being read; others may free more
 * meanwhile. It drops the volume lock. -EINTR: the caller is killed.
 */
int rfsm_reset_free(struct rfs_sb_info *sbi);
/* No reset begins any more. Waits until none is in flight. */
void rfsm_reset_stop(struct rfs_sb_info *sbi);
int rfsm_dev_open(struct rfsm_dev *dev, struct super_block *sb,
		  struct rfs_geometry *geo);
void rfsm_dev_mounted(struct rfsm_dev *dev);
void rfsm_dev_close(struct rfsm_dev *dev);
/*
 * Initializes a set of n bios with page metadata that are always to be had, each with so many bytes
 * before it. bioset_exit() frees it.
 */
int rfsm_bioset_init(struct bio_set *bios, u32 n, u32 before);
struct bio *rfsm_bio(struct rfsm_dev *dev, blk_opf_t op, u32 blocks, u64 addr,
		     void **oob);
/*
 * Adds the OOBs, which are one after the other, to the bio, with the room between them that the
 * drive has.
 */
void rfsm_bio_oobs(struct rfsm_dev *dev, struct bio *bio, void *oob, u32 n);
/* After a read, closes that room: *oob is an array of struct rfs_oob again. */
void rfsm_bio_oobs_back(struct rfsm_dev *dev, void *oob, u32 n);
void rfsm_bio_put(struct rfsm_dev *dev, struct bio *bio, void *oob);

/* slow.c */
/*
 * Addresses that blocks of files are read from may be of the slow device, and have RFSM_AT_HOME
 * then. RFSM_PHASE says when such an address was looked up.
 */
#define RFSM_AT_HOME	BIT_ULL(63)
#define RFSM_PHASE	BIT_ULL(62)

/*
 * Opens what the option slow= names, before the core mounts; the geometry then leads to it.
 * rfsm_slow_close() is called even after an error.
 */
int rfsm_slow_open(struct rfs_sb_info *sbi, struct rfs_geometry *geo);
void rfsm_slow_close(struct rfs_sb_info *sbi);
/* A replica, if there is one, is to be made every commit= seconds. */
void rfsm_slow_commit(struct rfs_sb_info *sbi);
/* Under the volume lock, after a check-point: the kernel log says once that replicas fail */
void rfsm_slow_say_replica(struct rfs_sb_info *sbi);
/* The core has not mounted with this or without any: says why, returns the error */
int rfsm_slow_refused(struct rfs_sb_info *sbi, const struct rfs_super *super,
		      int ret);
/* Says whether this device is the slow one of a volume. If it is, the log says so. */
bool rfsm_slow_alone(struct block_device *bdev);
/* Says whether a volume that was only read may be written. If not, the log says why. */
bool rfsm_slow_may_write(const struct rfs_sb_info *sbi);

/*
 * Looks up where a pointer of a hybrid volume leads; false says that it leads nowhere. The caller
 * holds the volume lock.
 */
bool rfsm_slow_ptr(const struct rfs_sb_info *sbi, const struct rfs_ptr *ptr,
		   u64 *addr, u32 *len);
/* A block at home is not written between these two. */
void rfsm_slow_hold(struct rfs_sb_info *sbi, u64 addr);
void rfsm_slow_drop(struct rfs_sb_info *sbi, u64 addr);
/* Counts so many blocks of files as read, of either device. */
void rfsm_slow_count(struct rfs_sb_info *sbi, u64 addr, u32 n);
u64 rfsm_flash_reads(const struct rfs_sb_info *sbi);
u64 rfsm_home_reads(const struct rfs_sb_info *sbi);
u64 rfsm_home_errors(const struct rfs_sb_info *sbi);
struct block_device *rfsm_slow_bdev(const struct rfs_sb_info *sbi);
/* Returns a bio for so many blocks at home, without page metadata. */
struct bio *rfsm_slow_bio(struct rfs_sb_info *sbi, blk_opf_t op, u32 blocks,
			  u64 addr);
void rfsm_slow_submit(struct rfs_sb_info *sbi, struct bio *bio);
/* Reads a block of a file that is at home. The log says if it cannot be read. */
int rfsm_slow_read_page(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
			u64 addr, struct page *page);
/*
 * Reads a block that flash has and cannot read from home. False says that it is not there, or
 * cannot be read there either.
 */
bool rfsm_slow_instead(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		       struct page *page);

/* fill.c */
int rfsm_fill_init(struct rfs_sb_info *sbi);
void rfsm_fill_exit(struct rfs_sb_info *sbi);
/* Notes that a block was read at home: it may come to flash. It is called from any context. */
void rfsm_fill_soon(struct rfs_sb_info *sbi, struct inode *inode, u64 block);

/* bypass.c */
bool rfsm_may_bypass(const struct rfs_sb_info *sbi);
bool rfsm_bypasses(struct inode *inode);
/* The bound bypass= is, or becomes, that of opt. */
void rfsm_bypass_bound(struct rfs_sb_info *sbi, const struct rfsm_options *opt);
void rfsm_bypass_load(struct inode *inode);	/* an inode comes to memory */
/* Makes durable what a file has written home. */
int rfsm_bypass_sync(struct inode *inode);
/*
 * Writes blocks home that are reserved and under writeback, and ends their writeback. Returns how
 * many of them; the others are to go to flash. len is the valid bytes of the last one.
 */
u32 rfsm_bypass(struct inode *inode, u64 block, struct folio **folio, u32 n,
		u32 len);

/* node.c */
struct inode *rfsm_iget(struct super_block *sb, u32 ino);
/* As rfsm_iget(), but -ENOENT says that there is none: it was not found by a name. */
struct inode *rfsm_iget_if(struct super_block *sb, u32 ino);
/*
 * A new inode becomes the one that the core has just made. It is still I_NEW, unless a file handle
 * has found the core's first. After an error it is gone.
 */
struct inode *rfsm_init_new_inode(struct inode *inode, u32 ino);
void rfsm_refresh(struct inode *inode, const struct rfs_dinode *di);
/* Reads the inode from the core and refreshes it. */
void rfsm_reload(struct inode *inode);
void rfsm_evict_inode(struct inode *inode);
/* Fills in the three times as Linux has them. */
void rfsm_times(struct inode *inode, struct rfs_dinode *out);
int rfsm_write_inode(struct inode *inode, struct writeback_control *wbc);
/* The caller holds the inode's lock. */
int rfsm_set_size(struct inode *inode, loff_t size);
int rfsm_setattr(struct mnt_idmap *idmap, struct dentry *dentry,
		 struct iattr *attr);
int rfsm_getattr(struct mnt_idmap *idmap, const struct path *path,
		 struct kstat *stat, u32 mask, unsigned int flags);

/* Writes a record of the inode's mode, owner and times, and of these flags. */
int rfsm_log_attributes(struct inode *inode, u32 flags);

/* attr.c */
extern const struct xattr_handler *const rfsm_xattr_handlers[];
ssize_t rfsm_listxattr(struct dentry *dentry, char *list, size_t size);
struct posix_acl *rfsm_get_acl(struct inode *inode, int type, bool rcu);
int rfsm_set_acl(struct mnt_idmap *idmap, struct dentry *dentry,
		 struct posix_acl *acl, int type);
int rfsm_acl_chmod(struct inode *inode, umode_t mode);
/* Fills in what a new inode gets from its directory. The caller frees how->xattrs. */
int rfsm_inherit(struct inode *dir, struct rfs_new *how);
int rfsm_fileattr_get(struct dentry *dentry, struct fileattr *fa);
int rfsm_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry,
		      struct fileattr *fa);

/* export.c */
extern const struct export_operations rfsm_export_ops;

/* namei.c */
extern const struct inode_operations rfsm_dir_iops;
extern const struct inode_operations rfsm_symlink_iops;
extern const struct inode_operations rfsm_special_iops;
extern const struct file_operations rfsm_dir_fops;

/* file.c */
extern const struct inode_operations rfsm_file_iops;
extern const struct file_operations rfsm_file_fops;
long rfsm_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int rfsm_fsync(struct file *file, loff_t start, loff_t end, int datasync);

/* shift.c: these are called with the inode's lock held, and take whole blocks. */
int rfsm_collapse_range(struct file *file, loff_t pos, loff_t len);
int rfsm_insert_range(struct file *file, loff_t pos, loff_t len);

/* split.c */
/* Returns where a locked folio has a block of its file. */
static inline u8 *rfsm_folio_block(struct folio *folio, u64 block)
{
	return folio_address(folio) + (block - folio->index) * RFS_BLOCK_BYTES;
}

/*
 * The pages of a large folio, which is locked and clean, become folios of their own, and it leaves
 * the file. If it is up to date, the caller holds the inode's lock or invalidate_lock, so that
 * nobody truncates the file.
 */
void rfsm_split(struct inode *inode, struct folio *folio);
/*
 * Says whether this locked folio has one page. If it has not, it is unlocked and put, and written
 * if it was not clean: the caller looks for the page again.
 */
bool rfsm_single(struct inode *inode, struct folio *folio);

/* read.c */
/* This queue looks at what was read, repeats reads that failed, and ends resets. */
extern struct workqueue_struct *rfsm_reads;

#define RFSM_FOUND	32	/* runs that are looked up at a time */

/* These blocks of a file follow each other, and lie in a row in one zone. */
struct rfsm_run {
	u64 addr;		/* of the first; 0: they are holes */
	u32 n;
	u16 len;		/* bytes of the last that are valid */
	bool pieces;		/* lie over it, and it is the only one */
};

/*
 * These runs follow each other in a file, for reads that begin now. The zone of a run is not reset
 * before rfsm_found_used() was told of all of it.
 */
struct rfsm_found {
	u32 n, next;		/* how many; the first of them that is left */
	struct rfsm_run run[RFSM_FOUND];
};

/*
 * Looks up one block at least, and of those after it the ones that the index has with it, `most` in
 * all. -EINPROGRESS says that rfsm_miss_read() has to read the index first.
 */
int rfsm_look_up(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		 u32 most, struct rfsm_found *f, struct rfsm_miss *miss);
/*
 * Says that memory knows where the blocks from..to - 1 are, so that nothing of the index has to be
 * read.
 */
bool rfsm_is_known(struct rfs_sb_info *sbi, struct inode *inode, u64 from,
		   u64 to);
/* The first n blocks of the next run are being read, or are not needed. */
void rfsm_found_used(struct rfs_sb_info *sbi, struct rfsm_found *f, u32 n);
/* The zone of an address, or its block at home, is kept between these two. */
void rfsm_read_hold(struct rfs_sb_info *sbi, u64 addr);
void rfsm_read_drop(struct rfs_sb_info *sbi, u64 addr);
/*
 * Says whether what was read is the file's block. crc is that of its 4 KiB. The checksum of the
 * page metadata itself would say nothing more, since all of it that is used is compared.
 */
bool rfsm_block_is(const struct rfs_sb_info *sbi, const struct inode *inode,
		   u64 block, const struct rfs_oob *oob, u32 crc);
/* As rfsm_block_is(); if it is not, the log says so. */
bool rfsm_block_ok(const struct rfs_sb_info *sbi, const struct inode *inode,
		   u64 block, u64 addr, const struct rfs_oob *oob, u32 crc);
int rfsm_read_folio(struct file *file, struct folio *folio);
void rfsm_readahead(struct readahead_control *rac);
/* Reads a locked folio that is not up to date, and waits for it. */
int rfsm_read_now(struct inode *inode, struct folio *folio);
int rfsm_read_module_init(void);
void rfsm_read_module_exit(void);

/* direct.c */
/*
 * Reads whole blocks from the drive into the caller's memory. What the page cache has, and the end
 * of a file within a block, are left: it returns 0, or fewer bytes than were asked for.
 */
ssize_t rfsm_direct_read(struct kiocb *iocb, struct iov_iter *to);
int rfsm_direct_init(struct rfsm_dev *dev);

/* pages.c */
/*
 * Copies a file's block as it is on the drive, if the page cache has it. The caller holds the
 * volume lock, and nothing is waited for.
 */
bool rfsm_cached(void *dev, u32 ino, u64 block, void *data);
/*
 * Says whether the block is dirty. If it is, that is noted, and rfsm_write_left() writes it. The
 * caller holds the volume lock, and nothing is waited for.
 */
bool rfsm_leave_dirty(void *dev, u32 ino, u64 block);
void rfsm_write_left(struct rfs_sb_info *sbi);	/* not under the volume lock */
/* Gives back what was reserved for blocks of a locked folio that stay clean. */
void rfsm_folio_unreserve(struct inode *inode, struct folio *folio);
extern const struct address_space_operations rfsm_aops;
vm_fault_t rfsm_page_mkwrite(struct vm_fault *vmf);
/* Writes what is dirty in a range, and waits for it. */
int rfsm_write_range(struct file *file, loff_t start, loff_t end);
/* Zeroes the rest of the page in which the file ended before. */
int rfsm_zero_after_end(struct inode *inode, loff_t old_size);
/* Writes zeroes within a page, unless it is behind the file's end or a hole. */
int rfsm_zero(struct inode *inode, loff_t pos, u32 len);

/* atomic.c */
#define RFSM_ATOMIC_MAX	0x100000	/* bytes */

/* Says whether these bytes are whole blocks, and no more than can be written as one. */
bool rfsm_whole_blocks(loff_t pos, size_t bytes);
/*
 * Writes up to RFSM_ATOMIC_MAX bytes as one transaction, which is sent and not waited for. After an
 * error nothing was written. -EIOCBQUEUED says that all is sent and that `then` will be called,
 * which moves the position. The caller holds the inode's lock.
 */
ssize_t rfsm_atomic_write(struct kiocb *iocb, struct iov_iter *from,
			  struct rfsm_then *then);

/* Gives a folio the content and the index of the i-th block. Returns 0 or an error. */
typedef int rfsm_fill_t(struct folio *folio, u32 i, void *arg);

/* These blocks are written as one, in ascending order. They need not be in a row. */
struct rfsm_span {
	u32 n;
	u32 from;	/* of the first: the first byte that is new */
	u32 to;		/* of the last: the one after the last that is new */
	u32 len;	/* of the last: its valid bytes */
	bool sync;	/* somebody waits for it */
};

/*
 * Writes such blocks as rfsm_atomic_write() does. Each try to find room fills all of them anew.
 * Bytes that are not new stay what the page cache has, so whoever fills reads them into it first.
 */
int rfsm_atomic_blocks(struct inode *inode, const struct rfsm_span *span,
		       rfsm_fill_t *fill, void *arg, struct rfsm_then *then);

/* session.c */
/* Handles an ioctl of a file's transaction. It returns -ENOTTY for any other. */
long rfsm_session_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
/*
 * These are for an inode with a session. The first is called with the inode's lock held, and the
 * second takes it.
 */
ssize_t rfsm_session_write(struct kiocb *iocb, struct iov_iter *from);
ssize_t rfsm_session_read(struct kiocb *iocb, struct iov_iter *to);
/* Says whether there is a session. Without the inode's lock it is a hint. */
bool rfsm_has_session(struct inode *inode);
/* The session is dropped if the process that began it ends, or the file is closed. */
int rfsm_session_flush(struct file *file, fl_owner_t id);
int rfsm_session_release(struct inode *inode, struct file *file);

#endif
