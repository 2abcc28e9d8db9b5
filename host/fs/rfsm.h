/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module connects the core with Linux. These are its locks, outer to inner: inode,
 * invalidate_lock, folio, volume (rfsm_lock). All of the core is under the volume lock; nobody
 * waits for room under a folio lock. See "Locks" in doc/design.md.
 */
#ifndef RFSM_H
#define RFSM_H

#include <linux/fs.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/seqlock.h>
#include <linux/wait.h>

#include "dev.h"
#include "lock.h"
#include "memory.h"
#include "log/log.h"
#include "ops/ops.h"

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

/* A counter and a trace event say why a check-point was written. */
enum rfsm_cause {
	RFSM_CP_SYNC,		/* somebody asked for it */
	RFSM_CP_INTERVAL,	/* commit= seconds have passed */
	RFSM_CP_BOUND,		/* of what is dirty, or of the updating window */
	RFSM_CP_ROOM,		/* zones that it makes free, cleaned or not */
	RFSM_CP_UNMOUNT,	/* unmount, freeze, read-only */
	RFSM_CP_CAUSES
};

struct rfsm_completions;
struct rfsm_fills;
struct rfsm_inode_ops;
struct rfsm_left;
struct rfsm_session;
struct rfsm_slow;

struct rfs_sb_info {
	const struct rfsm_inode_ops *kinds;
	struct super_block *sb;
	struct rfs_fs *fs;
	struct mutex lock;	/* of fs, and what is said to be under it */
	struct rfsm_memory memory;	/* for who holds it */
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
	 * statfs(2) reads this without the lock. It is the usage when the lock was released last.
	 */
	seqcount_mutex_t usage_seq;
	struct rfs_usage usage;
	u64 home_left;		/* of a hybrid volume, rfs_home_left() */
	struct rfsm_options opt;
	struct rfsm_dev dev;
	struct rfsm_slow *slow;	/* the slow device; NULL: the volume has none */
	struct rfsm_fills *fills;	/* what comes from there to flash; or NULL */
	/*
	 * These are appends in flight. The volume lock protects them, but not those that have
	 * completed.
	 */
	struct workqueue_struct *queue;
	struct rfsm_completions __percpu *completions;
	struct llist_head later;
	struct delayed_work retry;
	/* These appends have completed, and wait for the memory that entering them needs. */
	struct llist_head lacking;
	struct work_struct lacking_work;
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

#endif
