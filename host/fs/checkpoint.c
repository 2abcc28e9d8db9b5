// SPDX-License-Identifier: GPL-2.0
/*
 * A check-point closes a gate until everything in flight has completed (doc/design.md,
 * "Check-point").
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>

#include "rfsm.h"
#include "error.h"
#include "slow.h"
#include "checkpoint.h"
#include "trace.h"
#include "space/space.h"
#include "home/replica.h"
#include "checkpoint/checkpoint.h"

static enum rfsm_cause rfsm_checkpoint_cause(const struct rfs_sb_info *sbi,
					     u32 flags)
{
	if (flags & RFS_CP_UNMOUNT)
		return RFSM_CP_UNMOUNT;
	if (current != sbi->thread)
		return RFSM_CP_SYNC;
	if (sbi->seeking)
		return RFSM_CP_ROOM;
	return rfs_checkpoint_due(sbi->fs) ? RFSM_CP_BOUND : RFSM_CP_INTERVAL;
}

/* Waits until the writes of large writers have completed. Others go on. */
static void rfsm_drain_bulk(struct rfs_sb_info *sbi)
{
	sbi->drain++;
	while (sbi->inflight_bulk) {
		rfsm_unlock(sbi);
		wait_event(sbi->gate_wait, !READ_ONCE(sbi->inflight_bulk));
		rfsm_lock_now(sbi);
	}
}

/* Small writers, and operations that change names, go on here, too. */
static void rfsm_checkpoint_early(struct rfs_sb_info *sbi)
{
	if (sbi->early)
		return;		/* it is being done */
	sbi->early = true;
	rfs_write_early(sbi->fs);
	sbi->early = false;
	wake_up_all(&sbi->gate_wait);
	/* Nobody needs to wait for the summaries of these blocks, either. */
	while (!list_empty(&sbi->fs->sums) || sbi->sums) {
		rfsm_unlock(sbi);
		queue_work(sbi->queue, &sbi->sums_work);
		flush_work(&sbi->sums_work);
		wait_event(sbi->gate_wait, !READ_ONCE(sbi->sums));
		rfsm_lock_now(sbi);
	}
}

static bool rfsm_is_committing(const struct rfs_sb_info *sbi)
{
	return READ_ONCE(sbi->fs->commit) == RFS_COMMIT_GOES_ON;
}

/* Says whether no other check-point is being written. */
static bool rfsm_may_close_gate(const struct rfs_sb_info *sbi)
{
	return !READ_ONCE(sbi->gate) && !READ_ONCE(sbi->early) &&
	       !rfsm_is_committing(sbi);
}

/* An fsync lets others change the volume while it waits for the log. */
static bool rfsm_is_syncing(const struct rfs_sb_info *sbi)
{
	return READ_ONCE(sbi->fs->syncing);
}

static bool rfsm_all_completed(const struct rfs_sb_info *sbi)
{
	return !READ_ONCE(sbi->inflight) && !READ_ONCE(sbi->early) &&
	       !rfsm_is_committing(sbi) && !rfsm_is_syncing(sbi);
}

void rfsm_wait_commit(struct rfs_sb_info *sbi)
{
	while (rfsm_is_committing(sbi)) {
		rfsm_unlock(sbi);
		wait_event(sbi->gate_wait, !rfsm_is_committing(sbi));
		rfsm_lock_now(sbi);
	}
}

void rfsm_dev_durable(void *dev)
{
	struct rfs_sb_info *sbi = container_of(dev, struct rfs_sb_info, dev);

	while (rfsm_is_committing(sbi) || rfsm_is_syncing(sbi)) {
		rfsm_unlock(sbi);
		wait_event(sbi->gate_wait, !rfsm_is_committing(sbi) && !rfsm_is_syncing(sbi));
		rfsm_lock(sbi);
	}
}

/* A check-point that wants to close the gate is not kept waiting by one fsync after the other. */
bool rfsm_dev_lets_change(void *dev)
{
	return !container_of(dev, struct rfs_sb_info, dev)->gate;
}

int rfsm_log_sync(struct rfs_sb_info *sbi)
{
	int ret = rfs_log_sync_beside(sbi->fs);

	wake_up_all(&sbi->gate_wait);
	return ret;
}

static void rfsm_open_gate(struct rfs_sb_info *sbi)
{
	sbi->gate--;
	sbi->opened = ktime_get_ns();
	wake_up_all(&sbi->gate_wait);
}

void rfsm_dev_frozen(void *dev)
{
	struct rfs_sb_info *sbi = container_of(dev, struct rfs_sb_info, dev);

	sbi->frozen = true;
	rfsm_open_gate(sbi);
}

static int rfsm_write_checkpoint(struct rfs_sb_info *sbi, u32 flags, bool early)
{
	enum rfsm_cause cause = rfsm_checkpoint_cause(sbi, flags);
	u32 dirty = sbi->fs->dirty.count;
	u64 began, held;
	int ret;

	rfsm_drain_bulk(sbi);
	rfsm_wait_commit(sbi);
	began = ktime_get_ns();
	if (early)
		rfsm_checkpoint_early(sbi);
	/* Otherwise the gate would stay closed while another one is made durable. */
	while (!rfsm_may_close_gate(sbi)) {
		rfsm_unlock(sbi);
		wait_event(sbi->gate_wait, rfsm_may_close_gate(sbi));
		rfsm_lock_now(sbi);
	}
	held = ktime_get_ns();
	sbi->gate++;
	while (!rfsm_all_completed(sbi)) {
		rfsm_unlock(sbi);
		wait_event(sbi->gate_wait, rfsm_all_completed(sbi));
		rfsm_lock_now(sbi);
	}
	/*
	 * Summaries may have become due with the appends that completed last. Otherwise they go
	 * with the rest.
	 */
	if (!rfs_io_parallel(sbi->fs))
		rfs_sums_write(sbi->fs);
	sbi->frozen = false;
	ret = early ? rfs_checkpoint_early(sbi->fs) :
		      rfs_checkpoint(sbi->fs, flags);
	sbi->causes[cause] += !ret;
	rfsm_slow_say_replica(sbi);
	if (ret == -ENOMEM)
		pr_warn_ratelimited("%pg: no check-point for want of memory; it is tried again\n",
				    sbi->sb->s_bdev);
	else if (ret == -ENOSPC)
		rfsm_say_room(sbi, "no check-point for want of room, it is tried again",
			      0);
	if (!sbi->frozen)
		rfsm_open_gate(sbi);
	trace_rfs_checkpoint(sbi->dev.bdev->bd_dev, sbi->fs->cp_seq, cause,
			     dirty,
			     ktime_get_ns() - began, sbi->opened - held, ret);
	sbi->drain--;
	wake_up_all(&sbi->gate_wait);
	/* The check-point may have made room for small writers. */
	wake_up_all(&sbi->room);
	return ret;
}

int rfsm_checkpoint(struct rfs_sb_info *sbi, u32 flags)
{
	bool again;
	u32 tries = 0;
	int ret;

	do {
		ret = rfsm_write_checkpoint(sbi, flags, !flags);
		again = ret == -ENOMEM && sbi->memory.lacked;
		if (!again)
			break;
		rfsm_unlock(sbi);
		again = rfsm_memory_again(sbi, &tries);
		rfsm_lock_now(sbi);
	} while (again);
	return ret;
}

void rfsm_shutdown(struct rfs_sb_info *sbi)
{
	rfsm_lock_now(sbi);
	WRITE_ONCE(sbi->dev.dead, true);
	sbi->fs->read_only = true;
	rfsm_unlock(sbi);
	pr_warn("%pg: shut down\n", sbi->sb->s_bdev);
}

/* Writes a check-point, unless nothing has changed since the last one. */
int rfsm_sync(struct rfs_sb_info *sbi, u32 flags)
{
	struct rfs_fs *fs = sbi->fs;
	int ret = 0;

	rfsm_lock_checkpoint(sbi);
	/* The check-point that is being written has the earlier changes, but is not durable yet. */
	rfsm_wait_commit(sbi);
	if (fs->read_only)
		ret = sbi->clean_ro ? 0 : -EROFS;
	else if (flags || fs->window_blocks || fs->dirty.count ||
		 !rfs_log_empty(fs) || rfs_replica_due(fs))
		ret = rfsm_checkpoint(sbi, flags);
	rfsm_unlock(sbi);
	return ret ? rfsm_failed(sbi, ret) : 0;
}

int rfsm_checkpoint_of(struct rfs_fs *fs, u32 flags)
{
	struct rfsm_dev *dev = fs->dev;

	/* Compaction counts on the blocks that the check-point writes, and on no others. */
	return rfsm_write_checkpoint(container_of(dev, struct rfs_sb_info, dev),
				     flags, false);
}

int rfsm_compact(struct rfs_sb_info *sbi)
{
	int ret;

	if (rfs_compact_due(sbi->fs, false))
		ret = rfs_compact(sbi->fs, rfsm_checkpoint_of);
	else
		ret = rfsm_checkpoint(sbi, 0);
	if (ret == -ENOMEM) {	/* there may be some in a moment */
		rfsm_unlock(sbi);
		schedule_timeout_uninterruptible(HZ / 50);
		rfsm_lock(sbi);
		ret = 0;
	}
	return ret ? ret : -ENOBUFS;
}
