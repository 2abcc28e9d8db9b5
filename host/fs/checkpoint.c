// SPDX-License-Identifier: GPL-2.0
/*
 * Check-points: a gate is closed until all that is in flight has completed
 * (doc/design.md, "Check-point").
 */
#include <linux/blkdev.h>

#include "rfsm.h"
#include "trace.h"
#include "space/space.h"
#include "checkpoint/checkpoint.h"

static enum rfsm_cause cause_of(const struct rfsm *m, u32 flags)
{
	if (flags & RFS_CP_UNMOUNT)
		return RFSM_CP_UNMOUNT;
	if (current != m->thread)
		return RFSM_CP_SYNC;
	if (m->seeking)
		return RFSM_CP_ROOM;
	return rfs_checkpoint_due(m->fs) ? RFSM_CP_BOUND : RFSM_CP_INTERVAL;
}

/* Until what is written by those who write much has completed; others go on. */
static void drain(struct rfsm *m)
{
	m->drain++;
	while (m->inflight_bulk) {
		rfsm_unlock(m);
		wait_event(m->gate_wait, !READ_ONCE(m->inflight_bulk));
		rfsm_lock(m);
	}
}

/* Others go on, too, who write little or change names */
static void write_early(struct rfsm *m)
{
	if (m->early)
		return;		/* it is being done */
	m->early = true;
	rfs_write_early(m->fs);
	m->early = false;
	wake_up_all(&m->gate_wait);
	/* summaries that are on their way need not keep anybody waiting */
	while (m->sums) {
		rfsm_unlock(m);
		wait_event(m->gate_wait, !READ_ONCE(m->sums));
		rfsm_lock(m);
	}
}

static bool all_completed(const struct rfsm *m)
{
	return !READ_ONCE(m->inflight) && !READ_ONCE(m->early);
}

static int write(struct rfsm *m, u32 flags, bool early)
{
	enum rfsm_cause cause = cause_of(m, flags);
	u32 dirty = m->fs->dirty.count;
	u64 began, held;
	int ret;

	drain(m);
	began = ktime_get_ns();
	if (early)
		write_early(m);
	held = ktime_get_ns();
	m->gate++;
	while (!all_completed(m)) {
		rfsm_unlock(m);
		wait_event(m->gate_wait, all_completed(m));
		rfsm_lock(m);
	}
	/*
	 * that became due with what completed last; else they go with the rest
	 */
	if (!rfs_io_parallel(m->fs))
		rfs_sums_write(m->fs);
	ret = rfs_checkpoint(m->fs, flags);
	m->causes[cause] += !ret;
	if (ret == -ENOMEM || ret == -ENOSPC)
		pr_warn_ratelimited("rfs: %pg: no check-point for want of %s: %u blocks are dirty, %u zones free; it is tried again\n",
				    m->sb->s_bdev,
				    ret == -ENOMEM ? "memory" : "room", dirty,
				    m->fs->free_zones);
	trace_rfs_checkpoint(m->dev.bdev->bd_dev, m->fs->cp_seq, cause, dirty,
			     ktime_get_ns() - began, ktime_get_ns() - held, ret);
	m->drain--;
	m->gate--;
	wake_up_all(&m->gate_wait);
	/* it may have made room for those who need little */
	wake_up_all(&m->room);
	return ret;
}

int rfsm_checkpoint(struct rfsm *m, u32 flags)
{
	return write(m, flags, !flags);
}

void rfsm_shutdown(struct rfsm *m)
{
	rfsm_lock(m);
	WRITE_ONCE(m->dev.dead, true);
	m->fs->read_only = true;
	rfsm_unlock(m);
	pr_warn("rfs: %pg: shut down\n", m->sb->s_bdev);
}

/* A check-point, unless nothing has changed since the last one. */
int rfsm_sync(struct rfsm *m, u32 flags)
{
	struct rfs_fs *fs = m->fs;
	int ret = 0;

	rfsm_lock(m);
	if (fs->read_only)
		ret = m->clean_ro ? 0 : -EROFS;
	else if (flags || fs->window_blocks || fs->dirty.count ||
		 !rfs_log_empty(fs))
		ret = rfsm_checkpoint(m, flags);
	rfsm_unlock(m);
	return ret ? rfsm_failed(m, ret) : 0;
}

int rfsm_checkpoint_of(struct rfs_fs *fs, u32 flags)
{
	struct rfsm_dev *dev = fs->dev;

	/* compaction counts on what the check-point writes, and nothing besides */
	return write(container_of(dev, struct rfsm, dev), flags, false);
}

int rfsm_tidy(struct rfsm *m)
{
	int ret;

	if (rfs_compact_due(m->fs, false))
		ret = rfs_compact(m->fs, rfsm_checkpoint_of);
	else
		ret = rfsm_checkpoint(m, 0);
	if (ret == -ENOMEM) {	/* there may be some in a moment */
		rfsm_unlock(m);
		schedule_timeout_uninterruptible(HZ / 50);
		rfsm_lock(m);
		ret = 0;
	}
	return ret ? ret : -ENOBUFS;
}
