/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module: what Linux needs around the core. Locks, outer to inner: inode,
 * invalidate_lock, folio, volume (rfsm_lock). All of the core is under the
 * volume lock; nobody waits for room under a folio lock. doc/design.md, "Locks".
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

/* Consecutive blocks of a copy that are read */
struct rfsm_part {
	struct rfsm_copy *copy;
	bool *there;
	u32 n;
};

/* A struct rfs_copy in flight */
struct rfsm_copy {
	atomic_t reading;	/* parts */
	struct completion read, written;
	int error;
	struct rfsm_part part[RFS_SUM_ENTRIES];
};

/* What reads, and appends that are waited for, use: one besides those together */
#define RFSM_REQ_SYNC	RFS_IO_DEPTH

/* An append of the core that is under way */
struct rfsm_append_req {
	struct bio *bio;	/* NULL: it was not sent */
	struct completion done;
};

/* The drive, as the core sees it */
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

/* Appends that came back on a CPU, which it looks at by itself */
struct rfsm_completions {
	struct rfs_sb_info *sbi;
	struct work_struct work;
	struct llist_head done;
};

/* A zone that is being reset */
struct rfsm_reset {
	struct rfs_sb_info *sbi;
	struct work_struct work;
	struct bio bio;
	u32 zone;
	bool busy;		/* under the volume lock */
	bool stops;		/* none is begun any more */
};

/* Bytes of a block that are new: the first, and the one after the last */
struct rfsm_bytes {
	u16 from, to;
};

/* A block under writeback of which few bytes are new, and the folio that it lies in */
struct rfsm_small {
	struct folio *folio;
	u64 block;
	u16 from, bytes;
	u16 len;		/* valid bytes of the block */
};

#define RFSM_SMALLS	32

#define RFSM_BATCH_MAX	256	/* blocks that writeback makes a transaction of */

/* Consecutive blocks under writeback: a transaction; and some beside these */
struct rfsm_batch {
	u32 n;
	u32 len;	/* valid bytes of the last */
	u64 block;	/* the first */
	struct folio *folio[RFSM_BATCH_MAX];	/* of each block */
	u32 smalls;
	struct rfsm_small small[RFSM_SMALLS];
};

/* A block of a victim that is dirty in memory */
struct rfsm_left {
	u32 ino;
	u64 block;
};

#define RFSM_LEFT	4096

/* Why a check-point was written */
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

/* An operation that says which block it misses; zero at first */
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
	/* above 0: by one task, which may lend the lock to who only looks */
	u32 quiet;
	struct task_struct *quiet_by;
	unsigned int lent_nofs;
	wait_queue_head_t quiet_over;
	struct list_head fetching;	/* metadata blocks that are being read */
	mempool_t fetches, fetch_pages;
	struct rfsm_miss cleaner_miss;
	struct shrinker *shrinker;	/* of metadata blocks in memory */
	/* for statfs(2), without the lock: as it was when that was given back */
	seqcount_mutex_t usage_seq;
	struct rfs_usage usage;
	struct rfsm_options opt;
	struct rfsm_dev dev;
	struct rfsm_slow *slow;	/* the slow device; NULL: the volume has none */
	struct rfsm_fills *fills;	/* what comes from there to flash; or NULL */
	/* appends in flight; under the lock, but for those that completed */
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
	/* of the drive's volatile cache: the numbers of the last ones */
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
 * Blocks of an inode, those of pages that are to fill holes included. Without a
 * lock: while a page completes both may have it, never neither.
 */
static inline u64 rfsm_blocks(struct inode *inode)
{
	/* before the other, which has it first: see rfsm_unreserve() */
	u64 rsv = smp_load_acquire(&RFS_I(inode)->rsv_holes);

	return READ_ONCE(RFS_I(inode)->blocks) + rsv;
}

/* The page of a folio that has a block */
static inline struct page *rfsm_page_with(struct folio *folio, u64 block)
{
	return folio_page(folio, block - folio->index);
}

static inline sector_t rfsm_sector(u64 addr)
{
	return addr << (12 - SECTOR_SHIFT);
}

/* fetch.c */
/* To change the volume, or to look at it; never held while the drive is waited for */
void rfsm_lock(struct rfs_sb_info *sbi);
/* To look only: does not wait for who writes a check-point or the log */
void rfsm_lock_query(struct rfs_sb_info *sbi);
void rfsm_unlock(struct rfs_sb_info *sbi);	/* of both */
/* Others may look, but not change, whenever who calls this lends the lock */
void rfsm_quiet(struct rfs_sb_info *sbi, bool begins);
/* Around waits for the drive; nothing where rfsm_quiet() has not begun */
void rfsm_lend(struct rfs_sb_info *sbi);
void rfsm_take_back(struct rfs_sb_info *sbi);

/*
 * Under the lock: before an operation of the core, and after it with its
 * result. True: it has missed a block, which rfsm_miss_read() reads with no
 * lock held. Then it is to be tried again.
 */
void rfsm_miss_begin(struct rfs_sb_info *sbi, struct rfsm_miss *miss);
bool rfsm_miss_end(struct rfs_sb_info *sbi, struct rfsm_miss *miss, int ret);
void rfsm_miss_read(struct rfs_sb_info *sbi, struct rfsm_miss *miss);
/* It is not read: whoever asked does not wait */
void rfsm_miss_drop(struct rfs_sb_info *sbi, struct rfsm_miss *miss);
int rfsm_fetch_init(struct rfs_sb_info *sbi);
void rfsm_fetch_exit(struct rfs_sb_info *sbi);

/* An operation of the core that changes nothing; ret is its result */
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
/* After a failed operation: what the option errors= says. Returns ret. */
int rfsm_failed(struct rfs_sb_info *sbi, int ret);
bool rfsm_dead(const struct rfs_sb_info *sbi);
/* What an error of the drive is to the core: of the moment, or -EIO */
int rfsm_drive_error(int error);

/* trace.c */
void rfsm_victim(void *dev, u32 zone, u32 live, u32 cap);	/* a trace event */

/* stats.c */
int rfsm_stats_init(struct rfs_sb_info *sbi);
void rfsm_stats_exit(struct rfs_sb_info *sbi);
int rfsm_stats_module_init(void);
void rfsm_stats_module_exit(void);

/* wake.c */
/* Both without the lock. Is there something that the thread has to do? */
bool rfsm_checkpoint_due(const struct rfs_sb_info *sbi);
bool rfsm_work_due(const struct rfs_sb_info *sbi);
/*
 * Wait until there may be room, or little; 1 if there is none to be had, -EINTR if
 * whoever waits is killed
 */
int rfsm_wait_room(struct rfs_sb_info *sbi, bool small);
/* The same, for so many pages that are reserved together */
int rfsm_wait_room_for(struct rfs_sb_info *sbi, u32 pages, bool small);
/*
 * The same, for a page that a fault in this memory is about; -EAGAIN if it has to begin
 * anew, since others want to change that memory
 */
int rfsm_wait_room_fault(struct rfs_sb_info *sbi, bool small,
			 struct mm_struct *mm);

/*
 * Who writes little, and waits until it is on the drive, is spared: others write less
 * at a time, and leave zones that are free.
 */
#define RFSM_SMALL_PAGES	64	/* pages of a file, not written yet */

static inline bool rfsm_is_small_writer(struct inode *inode)
{
	return READ_ONCE(RFS_I(inode)->rsv_pages) <= RFSM_SMALL_PAGES;
}

/* Somebody has written little within so many jiffies */
static inline bool rfsm_favour_small(const struct rfs_sb_info *sbi,
				     unsigned long within)
{
	return READ_ONCE(sbi->small_seen) &&
	       time_before(jiffies, READ_ONCE(sbi->small) + within);
}

/* Under the lock: how many zones are cleaned ahead for them is set */
void rfsm_set_ahead(struct rfs_sb_info *sbi);
/* Blocks that who writes much leaves to others */
u32 rfsm_withheld(const struct rfs_sb_info *sbi);

/* Has who asks for room waited for it, and was there any? */
enum rfsm_waited {
	RFSM_NOT_YET,
	RFSM_WAITED,
	RFSM_NO_SPACE,
};

/* After an operation: is a check-point due? */
void rfsm_kick(struct rfs_sb_info *sbi);
/* Somebody is at work: idle time begins anew */
static inline void rfsm_set_busy(struct rfs_sb_info *sbi)
{
	WRITE_ONCE(sbi->last_busy, jiffies);
}

/* Of a hybrid volume, for the core: blocks are to leave flash soon */
void rfsm_crowded(void *dev);

/* Dirty pages of all files are sent, by Linux's writeback */
void rfsm_write_soon(struct rfs_sb_info *sbi);

/* flush.c */
/* The drive's cache is durable. Waits for the drive: without locks that others need */
int rfsm_flush(struct rfs_sb_info *sbi);
/* An atomic write of several blocks has completed; writeback has not ended yet */
void rfsm_atomic_landed(struct inode *inode);
/*
 * Before pages are sent that may hold bytes of atomic writes beside others: these
 * writes are durable, by a flush if the drive's cache is volatile. 0 or an error
 */
int rfsm_settle(struct inode *inode);
/* The same is owed by others, since the inode leaves the memory */
void rfsm_settle_later(struct inode *inode);

/* checkpoint.c */
/* Under the volume lock, which it drops while it waits for appends */
int rfsm_checkpoint(struct rfs_sb_info *sbi, u32 flags);
/* The same, for rfs_compact() */
int rfsm_checkpoint_of(struct rfs_fs *fs, u32 flags);
/* A check-point, unless nothing has changed since the last one */
int rfsm_sync(struct rfs_sb_info *sbi, u32 flags);

/* Until the check-point is durable in whose next epoch we are, if there is one */
void rfsm_wait_commit(struct rfs_sb_info *sbi);
void rfsm_dev_durable(void *dev);	/* of rfs_dev_ops, as the next */
void rfsm_dev_frozen(void *dev);
/* Nothing is written any more, and all fails */
void rfsm_shutdown(struct rfs_sb_info *sbi);
/*
 * What a change that asks for nothing new needs: a check-point, metadata compacted.
 * Under the lock; -ENOBUFS: it is done. Nobody is waited for but what is in flight,
 * so writeback and whoever drops an inode can do it.
 */
int rfsm_compact(struct rfs_sb_info *sbi);

/* blocks.c */
/* The private value of a large folio that is, or was, written to: a bit for each block */
struct rfsm_blocks {
	/* under the folio's lock */
	u32 filled;		/* its content is there; else the drive has zeroes */
	u32 dirty;
	u32 partly;		/* it is dirty, and only some of its bytes are new */
	/* changed under the volume lock */
	u32 reserved;		/* for it there is a place */
	u32 holes;		/* and that it was a hole */
	atomic_t sent;		/* it is under writeback */
	struct rfsm_bytes *bytes;	/* of each: which those are; NULL: never of any */
};

static inline struct rfsm_blocks *rfsm_blocks_in(const struct folio *folio)
{
	return folio_get_private((struct folio *)folio);
}

/* The bits of n blocks of a folio, one at least, from a block of the file on */
static inline u32 rfsm_blocks_mask(const struct folio *folio, u64 block, u32 n)
{
	u32 from = block - folio->index;

	return GENMASK(from + n - 1, from);
}

/* All of these have the folio locked, but the one that says otherwise. */
/* A large folio has the value from now on; -ENOMEM. Of others nothing is done */
int rfsm_blocks_attach(struct folio *folio);
/* And no more; nothing is reserved */
void rfsm_blocks_detach(struct folio *folio);
/* Bytes of it will be written: what they leave of their blocks has content */
void rfsm_blocks_begin(struct folio *folio, loff_t pos, size_t len);
/*
 * So many of them were copied; returns of how many the blocks are dirty. With compact=on
 * it is kept which bytes of a block are new, if not all are
 */
size_t rfsm_blocks_end(struct folio *folio, loff_t pos, size_t len,
		       size_t copied);
/* The content of all blocks is there */
void rfsm_blocks_fill(struct folio *folio);
/* Until no block with these bytes is under writeback */
void rfsm_blocks_wait(struct folio *folio, loff_t pos, size_t len);
/*
 * Writeback begins; size: of the file. Returns which blocks are to be sent, and none are
 * dirty any more. 0: it has not begun. *partly: those of them with bytes that are not new
 */
u32 rfsm_blocks_send(struct folio *folio, loff_t size, u32 *partly);
/* The new bytes of such a block, while it is under writeback; the folio is not locked */
const struct rfsm_bytes *rfsm_blocks_bytes(const struct folio *folio, u64 block);
/*
 * So many blocks of any folio are on the drive: with the last one writeback ends. The
 * folio is not locked.
 */
void rfsm_blocks_sent(struct folio *folio, u64 block, u32 n);
/* These are not dirty, and do not count */
void rfsm_blocks_drop(struct folio *folio, u64 block, u32 n);
/* Those that are neither dirty nor under writeback */
u32 rfsm_blocks_clean(const struct folio *folio);

/* reserve.c */
/*
 * Room for n blocks of a locked folio that will be dirty, and for others after them that
 * may be, `most` in all, which are overwritten, as far as there is. -EAGAIN: unlock it and
 * wait for room; some may have it.
 */
int rfsm_reserve(struct rfs_sb_info *sbi, struct inode *inode,
		 struct folio *folio, u64 block, u32 n, u32 most,
		 enum rfsm_waited waited);
/* The reservations of n blocks of a folio end, if they have any; under the volume lock */
void rfsm_unreserve(struct rfs_sb_info *sbi, struct inode *inode,
		    struct folio *folio, u64 block, u32 n);
/* Has it one? The folio is locked */
bool rfsm_is_reserved(const struct folio *folio, u64 block);

/* A locked folio of one page that is reserved has new bytes, beside those before */
void rfsm_dirty_bytes(struct folio *folio, u32 from, u32 to);
/* Those that it has: all that rfsm_dirty_bytes() was told; false: nothing */
bool rfsm_new_bytes(struct folio *folio, struct rfsm_bytes *bytes);

/* append.c */
int rfsm_append_init(struct rfs_sb_info *sbi);
void rfsm_append_exit(struct rfs_sb_info *sbi);
/*
 * Write n blocks, in ascending order from the given one on, as a transaction. Each has the
 * folio that it lies in, which is under writeback; len: valid bytes of the last. Where they
 * do not follow each other, their folios have one page. Writeback ends later, errors go
 * to the mapping.
 */
enum rfsm_append {
	RFSM_APPEND_SYNC = 1,	/* somebody waits for it */
	RFSM_APPEND_ATOMIC = 2,	/* the transaction was promised to somebody */
	RFSM_APPEND_FILL = 4,	/* of rfsm_append_fill() */
};

void rfsm_append(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		 struct folio **folio, u32 n, u32 len, u32 how);

/* Who does not wait is called when writeback has ended, with 0 or an error */
struct rfsm_then {
	void (*over)(struct rfsm_then *then, int error);
};

/* Bytes of the first or last block, or both, that had better be pieces of the transaction */
struct rfsm_ends {
	struct rfs_bytes piece[2];
	u32 n;
	bool head;	/* the first one is of the first block */
};

/*
 * The same; ends, then: may be NULL. at: the blocks, which this frees, by kfree(); NULL:
 * they follow each other, as they do if ends is not NULL
 */
void rfsm_append_then(struct rfs_sb_info *sbi, struct inode *inode,
		      u64 block, u64 *at, struct folio **folio, u32 n, u32 len,
		      u32 how, const struct rfsm_ends *ends,
		      struct rfsm_then *then);
/*
 * A block that is at home alone comes to flash, too: its folio, of one page, is up to
 * date, reserved and under writeback
 */
void rfsm_append_fill(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		      struct folio *folio);
/* A copy is appended; under the volume lock, which it drops */
int rfsm_copy_write(void *dev, struct rfs_copy *copy);
int __init rfsm_append_module_init(void);
void rfsm_append_module_exit(void);

/* compact.c */
/*
 * A block under writeback joins the small ones of a batch, which is not full of them: if no
 * more than RFS_SMALL_MAX bytes of it are new. Else nothing is done. size: of the file when
 * writeback began
 */
bool rfsm_small_add(struct rfsm_batch *b, struct folio *folio, u64 block,
		    const struct rfsm_bytes *bytes, loff_t size);
/*
 * They are pieces where that takes fewer pages. Those that stay in the batch have to be
 * pages. alone: fsync or O_SYNC waits for the log, see rfs_piece_most()
 */
void rfsm_smalls_write(struct inode *inode, struct rfsm_batch *b, bool alone);
/* Do so many of an atomic write's blocks less take no more of the log? alone: as above */
bool rfsm_ends_save(struct inode *inode, const struct rfsm_ends *ends,
		    bool alone);
/* Does sync(2) need no check-point? Without the lock */
bool rfsm_log_is_enough(const struct rfs_sb_info *sbi);

/* quota.c */
int rfsm_quota_init(struct rfs_sb_info *sbi);
bool rfsm_may_exceed(void *dev);

/* reclaim.c */
int rfsm_thread_start(struct rfs_sb_info *sbi);
void rfsm_thread_stop(struct rfs_sb_info *sbi);
/*
 * An operation of the core, again after each wait for room; ret is its result.
 * Not under a folio lock.
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
/* Until all zones that are free and not read are reset; drops the volume lock */
void rfsm_reset_free(struct rfs_sb_info *sbi);
/* Until none is, and none will be */
void rfsm_reset_stop(struct rfs_sb_info *sbi);
int rfsm_dev_open(struct rfsm_dev *dev, struct super_block *sb,
		  struct rfs_geometry *geo);
void rfsm_dev_mounted(struct rfsm_dev *dev);
void rfsm_dev_close(struct rfsm_dev *dev);
/*
 * n bios with page metadata that are always to be had, each with so many bytes
 * before it; bioset_exit()
 */
int rfsm_bioset_init(struct bio_set *bios, u32 n, u32 before);
struct bio *rfsm_bio(struct rfsm_dev *dev, blk_opf_t op, u32 blocks, u64 addr,
		     void **oob);
/* Add OOBs that are one after the other to the bio, as the drive has them */
void rfsm_bio_oobs(struct rfsm_dev *dev, struct bio *bio, void *oob, u32 n);
/* And back: *oob is an array of struct rfs_oob again */
void rfsm_bio_oobs_back(struct rfsm_dev *dev, void *oob, u32 n);
void rfsm_bio_put(struct rfsm_dev *dev, struct bio *bio, void *oob);

/* slow.c */
/*
 * Where blocks of files are read from, an address of the slow device is one with
 * RFSM_AT_HOME. RFSM_PHASE says when it was looked up.
 */
#define RFSM_AT_HOME	BIT_ULL(63)
#define RFSM_PHASE	BIT_ULL(62)

/*
 * Opens what the option slow= names, before the core mounts; the geometry has it then.
 * rfsm_slow_close() in any case
 */
int rfsm_slow_open(struct rfs_sb_info *sbi, struct rfs_geometry *geo);
void rfsm_slow_close(struct rfs_sb_info *sbi);
/* The replica, if there is one, is made every commit= seconds */
void rfsm_slow_commit(struct rfs_sb_info *sbi);
/* Under the volume lock, after a check-point: the kernel log says once that replicas fail */
void rfsm_slow_say_replica(struct rfs_sb_info *sbi);
/* The core has not mounted with this or without any: says why, returns the error */
int rfsm_slow_refused(struct rfs_sb_info *sbi, const struct rfs_super *super,
		      int ret);
/* Is this device the slow one of a volume? Says so */
bool rfsm_slow_alone(struct block_device *bdev);
/* May a volume that was only read be written? Says why not */
bool rfsm_slow_may_write(const struct rfs_sb_info *sbi);

/* Under the volume lock: where a pointer of a hybrid volume leads; false: nowhere */
bool rfsm_slow_ptr(const struct rfs_sb_info *sbi, const struct rfs_ptr *ptr,
		   u64 *addr, u32 *len);
/* A block at home is not written in between */
void rfsm_slow_hold(struct rfs_sb_info *sbi, u64 addr);
void rfsm_slow_drop(struct rfs_sb_info *sbi, u64 addr);
/* So many blocks of files are read, of either device */
void rfsm_slow_count(struct rfs_sb_info *sbi, u64 addr, u32 n);
u64 rfsm_flash_reads(const struct rfs_sb_info *sbi);
u64 rfsm_home_reads(const struct rfs_sb_info *sbi);
u64 rfsm_home_errors(const struct rfs_sb_info *sbi);
struct block_device *rfsm_slow_bdev(const struct rfs_sb_info *sbi);
/* A bio of so many blocks at home, without page metadata */
struct bio *rfsm_slow_bio(struct rfs_sb_info *sbi, blk_opf_t op, u32 blocks,
			  u64 addr);
void rfsm_slow_submit(struct rfs_sb_info *sbi, struct bio *bio);
/* Of a file, a block that is at home; the log says if it cannot be read */
int rfsm_slow_read_page(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
			u64 addr, struct page *page);
/* A block that flash has and cannot read: from home, if it is there; false: it is not */
bool rfsm_slow_instead(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		       struct page *page);

/* fill.c */
int rfsm_fill_init(struct rfs_sb_info *sbi);
void rfsm_fill_exit(struct rfs_sb_info *sbi);
/* A block that was read at home may come to flash. From any context */
void rfsm_fill_soon(struct rfs_sb_info *sbi, struct inode *inode, u64 block);

/* bypass.c */
bool rfsm_may_bypass(const struct rfs_sb_info *sbi);
bool rfsm_bypasses(struct inode *inode);
/* bypass= is, or is to be, that of opt */
void rfsm_bypass_bound(struct rfs_sb_info *sbi, const struct rfsm_options *opt);
void rfsm_bypass_load(struct inode *inode);	/* an inode comes to memory */
/* What it has written home is durable */
int rfsm_bypass_sync(struct inode *inode);
/*
 * Blocks under writeback, which are reserved, are written home, and their writeback
 * ends: how many of them. The others are to go to flash. len: valid bytes of the last
 */
u32 rfsm_bypass(struct inode *inode, u64 block, struct folio **folio, u32 n,
		u32 len);

/* node.c */
struct inode *rfsm_iget(struct super_block *sb, u32 ino);
/* The same, -ENOENT if there is none: no name has led to it */
struct inode *rfsm_iget_if(struct super_block *sb, u32 ino);
/*
 * A new inode becomes one that the core has just made, which is still I_NEW if
 * no file handle was before us; or an error, and gone
 */
struct inode *rfsm_init_new_inode(struct inode *inode, u32 ino);
void rfsm_refresh(struct inode *inode, const struct rfs_dinode *di);
/* The same, from the core */
void rfsm_reload(struct inode *inode);
void rfsm_evict_inode(struct inode *inode);
/* The three times, as Linux has them */
void rfsm_times(struct inode *inode, struct rfs_dinode *out);
int rfsm_write_inode(struct inode *inode, struct writeback_control *wbc);
/* Under the inode lock */
int rfsm_set_size(struct inode *inode, loff_t size);
int rfsm_setattr(struct mnt_idmap *idmap, struct dentry *dentry,
		 struct iattr *attr);
int rfsm_getattr(struct mnt_idmap *idmap, const struct path *path,
		 struct kstat *stat, u32 mask, unsigned int flags);

/* Mode, owner, times of the inode, and flags, as a record */
int rfsm_log_attributes(struct inode *inode, u32 flags);

/* attr.c */
extern const struct xattr_handler *const rfsm_xattr_handlers[];
ssize_t rfsm_listxattr(struct dentry *dentry, char *list, size_t size);
struct posix_acl *rfsm_get_acl(struct inode *inode, int type, bool rcu);
int rfsm_set_acl(struct mnt_idmap *idmap, struct dentry *dentry,
		 struct posix_acl *acl, int type);
int rfsm_acl_chmod(struct inode *inode, umode_t mode);
/* What a new inode has from its directory; how->xattrs is to be freed */
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

/* split.c */
/* Where a locked folio has a block of its file */
static inline u8 *rfsm_folio_block(struct folio *folio, u64 block)
{
	return folio_address(folio) + (block - folio->index) * RFS_BLOCK_BYTES;
}

/*
 * The pages of a large folio, which is locked and clean, become folios of their own, and it
 * is no longer the file's. If it is up to date, the caller holds the inode's lock or
 * invalidate_lock, so that nobody truncates the file.
 */
void rfsm_split(struct inode *inode, struct folio *folio);
/*
 * Has this folio, which is locked, one page? False: it was large, and is unlocked and put;
 * the page that was meant is to be looked for again. If it was not clean, it has been
 * written.
 */
bool rfsm_single(struct inode *inode, struct folio *folio);

/* read.c */
/* looks at what was read, repeats reads that failed, ends resets */
extern struct workqueue_struct *rfsm_reads;

#define RFSM_FOUND	32	/* runs that are looked up at a time */

/* Blocks of a file that follow each other, and lie in a row in one zone */
struct rfsm_run {
	u64 addr;		/* of the first; 0: they are holes */
	u32 n;
	u16 len;		/* bytes of the last that are valid */
	bool pieces;		/* lie over it, and it is the only one */
};

/*
 * Runs that follow each other in a file, for reads that begin now. The zone of a run is
 * not reset before rfsm_found_used() was told of all of it.
 */
struct rfsm_found {
	u32 n, next;		/* how many; the first of them that is left */
	struct rfsm_run run[RFSM_FOUND];
};

/*
 * One block at least, and of those after it, `most` in all, which the index has
 * together. -EINPROGRESS: the index has to be read first, by rfsm_miss_read().
 */
int rfsm_look_up(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		 u32 most, struct rfsm_found *f, struct rfsm_miss *miss);
/* Is nothing to be read to know where the blocks from..to - 1 are? */
bool rfsm_is_known(struct rfs_sb_info *sbi, struct inode *inode, u64 from,
		   u64 to);
/* The first n blocks of the next run are being read, or not needed */
void rfsm_found_used(struct rfs_sb_info *sbi, struct rfsm_found *f, u32 n);
/* The zone of an address is not reset in between */
void rfsm_read_hold(struct rfs_sb_info *sbi, u64 addr);
void rfsm_read_drop(struct rfs_sb_info *sbi, u64 addr);
/*
 * Is what was read the file's block? crc: of its 4 KiB. The checksum of the page
 * metadata itself would say nothing more: all of it that is used is compared.
 */
bool rfsm_block_is(const struct rfs_sb_info *sbi, const struct inode *inode,
		   u64 block, const struct rfs_oob *oob, u32 crc);
/* The same, and if not the log says so */
bool rfsm_block_ok(const struct rfs_sb_info *sbi, const struct inode *inode,
		   u64 block, u64 addr, const struct rfs_oob *oob, u32 crc);
int rfsm_read_folio(struct file *file, struct folio *folio);
void rfsm_readahead(struct readahead_control *rac);
/* The content of a locked folio that is not up to date, now */
int rfsm_read_now(struct inode *inode, struct folio *folio);
int rfsm_read_module_init(void);
void rfsm_read_module_exit(void);

/* direct.c */
/*
 * Blocks as a whole, from the drive into the caller's memory; what the page cache
 * has, and ends of files within a block, are left: 0, or fewer bytes than asked for.
 */
ssize_t rfsm_direct_read(struct kiocb *iocb, struct iov_iter *to);
int rfsm_direct_init(struct rfsm_dev *dev);

/* pages.c */
/*
 * The content of a file's block as it is on the drive, if the page cache has
 * it. Under the volume lock; waits for nothing.
 */
bool rfsm_cached(void *dev, u32 ino, u64 block, void *data);
/*
 * Is the block dirty? Then it is noted, and rfsm_write_left() writes it. Under the volume
 * lock; waits for nothing.
 */
bool rfsm_leave_dirty(void *dev, u32 ino, u64 block);
void rfsm_write_left(struct rfs_sb_info *sbi);	/* not under the volume lock */
/* What was reserved for blocks of a locked folio that stay clean is given back */
void rfsm_folio_unreserve(struct inode *inode, struct folio *folio);
extern const struct address_space_operations rfsm_aops;
vm_fault_t rfsm_page_mkwrite(struct vm_fault *vmf);
/* Bytes of the page of the old end after it are zero */
int rfsm_zero_tail(struct inode *inode, loff_t old_size);
/* Write zeroes within a page, unless it is after the file's end or in a hole */
int rfsm_zero(struct inode *inode, loff_t pos, u32 len);

/* atomic.c */
#define RFSM_ATOMIC_MAX	0x100000	/* bytes */

/* Are these bytes blocks, and no more than can be written as one? */
bool rfsm_whole_blocks(loff_t pos, size_t bytes);
/*
 * Write up to RFSM_ATOMIC_MAX bytes as one transaction, which is sent and not waited for.
 * All of them or an error, and then nothing was written. -EIOCBQUEUED: all of them, and
 * `then` is called, which moves the position. Under the inode lock.
 */
ssize_t rfsm_atomic_write(struct kiocb *iocb, struct iov_iter *from,
			  struct rfsm_then *then);

/* Gives a folio the content and the index of the i-th block; 0 or an error */
typedef int rfsm_fill_t(struct folio *folio, u32 i, void *arg);

/* Blocks that are written as one, in ascending order, which need not be in a row */
struct rfsm_span {
	u32 n;
	u32 from;	/* of the first: the first byte that is new */
	u32 to;		/* of the last: the one after the last that is new */
	u32 len;	/* of the last: its valid bytes */
	bool sync;	/* somebody waits for it */
};

/*
 * The same for such blocks. For each try to find room all of them are filled anew.
 * Bytes that are not new stay what the page cache has: whoever fills reads them into it
 */
int rfsm_atomic_blocks(struct inode *inode, const struct rfsm_span *span,
		       rfsm_fill_t *fill, void *arg, struct rfsm_then *then);

/* session.c */
/* An ioctl of a transaction of a file, or -ENOTTY */
long rfsm_session_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
/* Of an inode that has one; the first under its lock, the second takes it */
ssize_t rfsm_session_write(struct kiocb *iocb, struct iov_iter *from);
ssize_t rfsm_session_read(struct kiocb *iocb, struct iov_iter *to);
/* Is there one? Under the inode lock, or else only a hint */
bool rfsm_has_session(struct inode *inode);
/* The process that has begun it ends, or the file is closed: it is dropped */
int rfsm_session_flush(struct file *file, fl_owner_t id);
int rfsm_session_release(struct inode *inode, struct file *file);

#endif
