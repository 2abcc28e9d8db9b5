// SPDX-License-Identifier: GPL-2.0
/* This is the thread that writes check-points and cleans (rule 7 of doc/design.md). */
#include <linux/backing-dev.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/writeback.h>

#include "rfsm.h"
#include "error.h"
#include "wake.h"
#include "checkpoint.h"
#include "update.h"
#include "pages.h"
#include "super.h"
#include "space/space.h"

/*
 * Writes dirty pages first. Room is reserved for them, and with much memory they take so many zones
 * that cleaning for them would copy far more.
 */
static void rfsm_write_back(struct rfs_sb_info *sbi)
{
	if (!READ_ONCE(sbi->fs->rsv_blocks) ||
	    !down_read_trylock(&sbi->sb->s_umount))
		return;
	sync_inodes_sb(sbi->sb);
	up_read(&sbi->sb->s_umount);
}

/* Returns the room for an append or, if that is more, for the largest request that waits. */
static u32 rfsm_least_room(const struct rfs_sb_info *sbi)
{
	return max_t(u32, RFSM_APPEND_MAX, sbi->more_pages);
}

/* The zones that are left to small writers come on top of that. */
static u32 rfsm_more_room(const struct rfs_sb_info *sbi)
{
	return rfsm_least_room(sbi) + rfsm_withheld(sbi);
}

/*
 * Says whether the waiting tasks lack zones. If they do not, they wait for a check-point, which may
 * have been written meanwhile. For that, data need not be written that is to be overwritten or
 * deleted soon.
 */
static bool rfsm_zones_lack(struct rfs_sb_info *sbi)
{
	struct rfs_fs *fs = sbi->fs;
	int ret = 0;
	bool lack;

	rfsm_lock_checkpoint(sbi);
	rfsm_set_ahead(sbi);
	lack = fs->read_only || rfs_room_low(fs, rfsm_more_room(sbi)) ||
	       rfs_flash_lacks(fs, rfsm_least_room(sbi), fs->meta_asked);
	sbi->seeking = lack;
	if (!lack && rfs_dirty_full(fs))
		ret = rfsm_checkpoint(sbi, 0);
	rfsm_unlock(sbi);
	if (ret)
		rfsm_failed(sbi, ret);
	return lack;
}

static int rfsm_clean_round(struct rfs_sb_info *sbi, enum rfs_clean how)
{
	int ret;

	WRITE_ONCE(sbi->cleaning, true);
	ret = rfs_clean_some(sbi->fs, how);
	WRITE_ONCE(sbi->cleaning, false);
	return ret;
}

static struct rfs_sb_info *rfsm_of(struct rfs_fs *fs)
{
	struct rfsm_dev *dev = fs->dev;

	return container_of(dev, struct rfs_sb_info, dev);
}

static int rfsm_round_clean(struct rfs_fs *fs, enum rfs_clean how)
{
	return rfsm_clean_round(rfsm_of(fs), how);
}

static int rfsm_round_compact(struct rfs_fs *fs)
{
	return rfs_compact(fs, rfsm_checkpoint_of);
}

static int rfsm_round_checkpoint(struct rfs_fs *fs, u32 flags)
{
	return rfsm_checkpoint(rfsm_of(fs), flags);
}

static const struct rfs_rounds rounds = {
	.clean = rfsm_round_clean,
	.compact = rfsm_round_compact,
	.checkpoint = rfsm_round_checkpoint,
};

#define TRIES	100	/* jiffies that a zone is waited for which is just being filled */
#define SPARE_MOST	4096	/* blocks: while somebody waits, a disk's 150 ms */

/*
 * Makes blocks of a hybrid volume leave flash until there is room for the waiting tasks, and some
 * more. A check-point has to follow, for which the slow device is flushed.
 */
static int rfsm_spare(struct rfs_sb_info *sbi)
{
	struct rfs_fs *fs = sbi->fs;
	u64 more = min_t(u64, fs->user_blocks / RFS_SPARE, SPARE_MOST);
	u32 tries = TRIES;
	int ret;

	while ((ret = rfs_spare(fs, rfsm_least_room(sbi), fs->meta_asked, more,
				rfsm_round_checkpoint)) == -ENOSPC &&
	       READ_ONCE(sbi->inflight) && tries--) {
		rfsm_unlock(sbi);
		schedule_timeout_uninterruptible(1);
		rfsm_lock(sbi);
	}
	return ret;
}

static int rfsm_seek_room(struct rfs_sb_info *sbi)
{
	int ret = sbi->fs->home ? rfsm_spare(sbi) : 0;

	return ret ? ret : rfs_seek_room(sbi->fs, rfsm_least_room(sbi),
					 rfsm_more_room(sbi), &rounds);
}

/* Makes room for the waiting tasks. False says that none can be made. */
static bool rfsm_make_room(struct rfs_sb_info *sbi)
{
	struct rfs_fs *fs = sbi->fs;
	int ret;

	if (!rfsm_zones_lack(sbi))
		return true;
	rfsm_write_back(sbi);
	rfsm_lock(sbi);
	while ((ret = rfsm_seek_room(sbi)) == -ENOMEM) {
		rfsm_unlock(sbi);	/* there may be some in a moment */
		schedule_timeout_uninterruptible(HZ / 50);
		rfsm_lock(sbi);
	}
	if (ret == -ENOSPC)
		rfsm_say_room(sbi, "no room is to be had for who waits",
			      rfsm_least_room(sbi));
	fs->meta_asked = 0;	/* who still waits asks again */
	rfsm_unlock(sbi);
	if (ret && ret != -ENOSPC)
		rfsm_failed(sbi, ret);
	return !ret;
}

/*
 * Makes blocks of a hybrid volume leave flash before anybody waits for that. If none could leave,
 * the next task that finds flash crowded asks again.
 */
static int rfsm_uncrowd(struct rfs_sb_info *sbi)
{
	bool any = true;
	u64 before;
	int ret = 0;

	while (!ret && any && rfs_flash_crowded(sbi->fs) &&
	       !READ_ONCE(sbi->want_room)) {
		before = sbi->fs->stats.evicted;
		ret = rfs_evict_coldest(sbi->fs, rfsm_round_checkpoint);
		any = sbi->fs->stats.evicted > before;
	}
	return ret;
}

/* Cleans in the background, before anybody waits. */
static void rfsm_clean_early(struct rfs_sb_info *sbi)
{
	int ret;

	rfsm_lock(sbi);
	rfsm_set_ahead(sbi);
	ret = sbi->fs->home ? rfsm_uncrowd(sbi) : 0;
	if (!ret || ret == -ENOENT)
		ret = rfsm_clean_round(sbi, RFS_CLEAN_EARLY);
	if (sbi->lefts) {
		rfsm_unlock(sbi);
		rfsm_write_left(sbi);
		rfsm_lock(sbi);
	}
	if (!ret)
		ret = rfsm_checkpoint(sbi, 0);
	WRITE_ONCE(sbi->seen_free, sbi->fs->free_zones);
	rfsm_unlock(sbi);
	if (ret && ret != -ENOENT)
		rfsm_failed(sbi, ret);
}

#define IDLE	(2 * HZ)

static bool rfsm_is_idle(const struct rfs_sb_info *sbi)
{
	return time_after_eq(jiffies, READ_ONCE(sbi->last_busy) + IDLE) &&
	       !READ_ONCE(sbi->inflight_pages);
}

#define HOMES	512	/* blocks that go home before it is seen whether somebody is at work */

/* Writes blocks of a hybrid volume home that only flash has. -ENOENT says that there are none. */
static int rfsm_go_home(struct rfs_sb_info *sbi)
{
	u32 left = HOMES;
	u64 before = sbi->fs->stats.homed;
	int ret = rfs_destage(sbi->fs, &left, rfsm_round_checkpoint);

	return ret || sbi->fs->stats.homed > before ? ret : -ENOENT;
}

/* Cleans some zones while nobody is at work. Then the thread checks whether somebody is. */
static void rfsm_clean_idle(struct rfs_sb_info *sbi)
{
	unsigned long used = READ_ONCE(sbi->last_busy);
	int ret = -ENOENT;

	rfsm_lock(sbi);
	sbi->seeking = true;
	if (sbi->fs->home && !sbi->fs->read_only) {
		ret = rfsm_go_home(sbi);
		if (ret != -ENOENT) {
			if (ret)	/* not again before somebody was at work */
				sbi->idle_seen = used;
			rfsm_unlock(sbi);
			if (ret)
				rfsm_failed(sbi, ret);
			return;
		}
	}
	if (rfs_idle_due(sbi->fs))
		ret = rfsm_clean_round(sbi, RFS_CLEAN_IDLE);
	if (!ret)
		ret = rfsm_checkpoint(sbi, 0);
	if (ret || !rfs_idle_due(sbi->fs))
		sbi->idle_seen = used;
	rfsm_unlock(sbi);
	if (ret && ret != -ENOENT)
		rfsm_failed(sbi, ret);
}

static long rfsm_sync_left(const struct rfs_sb_info *sbi, unsigned long synced)
{
	return (long)(synced + sbi->opt.commit * HZ - jiffies);
}

/* Returns how long the thread sleeps if nobody wakes it. */
static long rfsm_thread_sleep(const struct rfs_sb_info *sbi,
			      unsigned long synced)
{
	unsigned long used = READ_ONCE(sbi->last_busy);
	long left = rfsm_sync_left(sbi, synced);

	if (sbi->idle_seen != used && !sbi->fs->read_only)
		left = min(left, (long)(used + IDLE - jiffies));
	return max(left, 1L);
}

/* This is not done by the thread, since it may be cleaning meanwhile. */
static void rfsm_write_dirty(struct work_struct *work)
{
	struct rfs_sb_info *sbi = container_of(work, struct rfs_sb_info,
					       writing);

	if (!sb_start_intwrite_trylock(sbi->sb))
		return;		/* frozen */
	if (down_read_trylock(&sbi->sb->s_umount)) {
		writeback_inodes_sb(sbi->sb, WB_REASON_BACKGROUND);
		up_read(&sbi->sb->s_umount);
	}
	sb_end_intwrite(sbi->sb);
}

/*
 * Frees inodes that had no name at the mount, while others are at work. Inodes that lose their name
 * later come before these in the list, and whoever uses them frees them.
 */
static void rfsm_free_orphans(struct work_struct *work)
{
	struct rfs_sb_info *sbi = container_of(to_delayed_work(work),
					       struct rfs_sb_info, freeing);
	bool more = false;
	u32 next;
	int ret = 0;

	while (!ret && sbi->orphan && !READ_ONCE(sbi->stops)) {
		if (!sb_start_intwrite_trylock(sbi->sb)) {	/* frozen */
			queue_delayed_work(system_unbound_wq, &sbi->freeing,
					   HZ / 10);
			return;
		}
		if (!more)
			rfsm_query(sbi, ret,
				   rfs_orphan_next(sbi->fs, sbi->orphan,
						   &next));
		if (!ret)
			rfsm_update(sbi, ret,
				    rfs_free_some(sbi->fs, sbi->orphan, &more));
		if (!ret && !more)
			sbi->orphan = next;
		sb_end_intwrite(sbi->sb);
	}
	if (ret)
		rfsm_failed(sbi, ret);
}

static int rfsm_thread(void *arg)
{
	struct rfs_sb_info *sbi = arg;
	unsigned long synced = jiffies;

	/* Tasks that wait for check-points and room may use up the CPU. */
	set_user_nice(current, MIN_NICE);
	/* A machine that is suspended writes nothing. */
	set_freezable();
	while (!kthread_freezable_should_stop(NULL)) {
		bool found;

		wait_event_freezable_timeout(sbi->wake, rfsm_work_due(sbi) ||
					     kthread_should_stop(),
					     rfsm_thread_sleep(sbi, synced));
		if (kthread_should_stop())
			break;
		if (!sb_start_intwrite_trylock(sbi->sb)) {
			schedule_timeout_interruptible(HZ / 10);
			continue;	/* frozen */
		}
		sbi->seeking = true;
		if (READ_ONCE(sbi->want_room)) {
			WRITE_ONCE(sbi->want_room, false);
			sbi->more_pages = xchg(&sbi->want_pages, 0);
			found = rfsm_make_room(sbi);
			WRITE_ONCE(sbi->no_space, !found);
			WRITE_ONCE(sbi->rounds, sbi->rounds + 1);
		} else if (READ_ONCE(sbi->want_clean)) {
			WRITE_ONCE(sbi->want_clean, false);
			rfsm_clean_early(sbi);
		} else if (rfsm_checkpoint_due(sbi) ||
			   rfsm_sync_left(sbi, synced) <= 0) {
			sbi->seeking = false;
			if (rfsm_sync(sbi, 0))	/* more may come */
				schedule_timeout_interruptible(HZ / 50);
			synced = jiffies;
		} else if (rfsm_is_idle(sbi)) {
			rfsm_clean_idle(sbi);
		}
		sb_end_intwrite(sbi->sb);
		wake_up_all(&sbi->room);
	}
	return 0;
}

int rfsm_thread_start(struct rfs_sb_info *sbi)
{
	struct task_struct *task;

	if (sbi->thread)
		return 0;
	if (!sbi->left)
		sbi->left = kvcalloc(RFSM_LEFT, sizeof(*sbi->left), GFP_KERNEL);
	if (!sbi->left)
		return -ENOMEM;
	sbi->seen_free = ~0U;
	sbi->last_busy = jiffies;
	sbi->idle_seen = sbi->last_busy - 1;
	INIT_WORK(&sbi->writing, rfsm_write_dirty);
	INIT_DELAYED_WORK(&sbi->freeing, rfsm_free_orphans);
	WRITE_ONCE(sbi->stops, false);
	task = kthread_run(rfsm_thread, sbi, "rfs/%pg", sbi->sb->s_bdev);
	if (IS_ERR(task))
		return PTR_ERR(task);
	sbi->thread = task;
	queue_delayed_work(system_unbound_wq, &sbi->freeing, 0);
	return 0;
}

void rfsm_thread_stop(struct rfs_sb_info *sbi)
{
	if (!sbi->thread)
		return;
	/* This work may wait for the thread. */
	WRITE_ONCE(sbi->stops, true);
	cancel_delayed_work_sync(&sbi->freeing);
	kthread_stop(sbi->thread);
	sbi->thread = NULL;
	/* This work does not wait for s_umount. */
	cancel_work_sync(&sbi->writing);
	wake_up_all(&sbi->room);
}
