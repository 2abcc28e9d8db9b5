// SPDX-License-Identifier: GPL-2.0
/* The thread that writes check-points and cleans (rule 7 of doc/design.md). */
#include <linux/backing-dev.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/writeback.h>

#include "rfsm.h"
#include "space/space.h"

/*
 * Dirty pages are written first: room is reserved for them, and with much
 * memory that is so many zones that cleaning for them would copy far more.
 */
static void rfsm_write_back(struct rfs_sb_info *sbi)
{
	if (!READ_ONCE(sbi->fs->rsv_blocks) ||
	    !down_read_trylock(&sbi->sb->s_umount))
		return;
	sync_inodes_sb(sbi->sb);
	up_read(&sbi->sb->s_umount);
}

/* Blocks that can be written: a victim may give less than a zone. */
static u64 rfsm_room_left(const struct rfs_fs *fs)
{
	u64 blocks = (u64)fs->free_zones * fs->zone[RFS_CP_ZONES].cap;
	u32 i, way, zone;

	for (i = RFS_S_DATA; i < RFS_STREAMS; i++)
		for (way = 0; way < fs->ways; way++) {
			zone = fs->active[i][way].zone;
			if (zone)
				blocks += fs->zone[zone].cap -
					  fs->zone[zone].wp;
		}
	return blocks;
}

/* What everybody asks for, and who asks for most at once */
static u32 rfsm_least_room(const struct rfs_sb_info *sbi)
{
	return max_t(u32, RFSM_APPEND_MAX, sbi->more_pages);
}

/* And zones that are left to who needs little */
static u32 rfsm_more_room(const struct rfs_sb_info *sbi)
{
	return rfsm_least_room(sbi) + rfsm_withheld(sbi);
}

/*
 * Zones are what who waits lacks? If not, it waits for a check-point, which may
 * have been written meanwhile. Data that is to be overwritten or deleted soon
 * need not be written for that.
 */
static bool rfsm_zones_lack(struct rfs_sb_info *sbi)
{
	struct rfs_fs *fs = sbi->fs;
	int ret = 0;
	bool lack;

	rfsm_lock(sbi);
	rfsm_set_ahead(sbi);
	lack = fs->read_only || rfs_room_low(fs, rfsm_more_room(sbi));
	sbi->seeking = lack;
	if (!lack && rfs_dirty_full(fs))
		ret = rfsm_checkpoint(sbi, 0);
	rfsm_unlock(sbi);
	if (ret)
		rfsm_failed(sbi, ret);
	return lack;
}

/*
 * Rounds without a gain, then there is none: a victim may be cleaned in pieces of
 * half of dirty_max, and metadata be compacted after each.
 */
static u32 rfsm_rounds_most(const struct rfs_fs *fs)
{
	return 8 + 4 * (fs->zone[RFS_CP_ZONES].cap / fs->dirty_max);
}

static int rfsm_clean_round(struct rfs_sb_info *sbi, enum rfs_clean how)
{
	int ret;

	WRITE_ONCE(sbi->cleaning, true);
	ret = rfs_clean_some(sbi->fs, how);
	WRITE_ONCE(sbi->cleaning, false);
	return ret;
}

/* Does nobody who asks now have to wait? Somebody may have made room since. */
static bool rfsm_room_there(const struct rfs_sb_info *sbi)
{
	return !rfs_dirty_full(sbi->fs) &&
	       !rfs_room_low(sbi->fs, rfsm_more_room(sbi));
}

/* Room for who waits for it; false: there is none to be had. */
static bool rfsm_make_room(struct rfs_sb_info *sbi)
{
	struct rfs_fs *fs = sbi->fs;
	u32 futile = 0;
	u64 best;
	int ret;

	if (!rfsm_zones_lack(sbi))
		return true;
	rfsm_write_back(sbi);
	rfsm_lock(sbi);
	best = rfsm_room_left(fs);
	do {
		ret = fs->read_only ? -EROFS : 0;
		if (!ret && rfsm_room_there(sbi))
			break;
		if (!ret && rfs_compact_due(fs, futile))
			ret = rfs_compact(fs, rfsm_checkpoint_of);
		else if (!ret && rfs_room_low(fs, rfsm_more_room(sbi)))
			ret = rfsm_clean_round(sbi, futile ? RFS_CLEAN_HARD :
						RFS_CLEAN_NOW);
		if (!ret)
			ret = rfsm_checkpoint(sbi, 0);
		if (ret == -ENOMEM) {	/* there may be some in a moment */
			rfsm_unlock(sbi);
			schedule_timeout_uninterruptible(HZ / 50);
			rfsm_lock(sbi);
			ret = 0;
		}
		futile = rfsm_room_left(fs) > best ? 0 : futile + 1;
		best = max(best, rfsm_room_left(fs));
		/* the zone that is left to others is not sought in vain */
	} while (!ret && rfs_room_low(fs, futile ? rfsm_least_room(sbi) :
						   rfsm_more_room(sbi)) &&
		 futile < rfsm_rounds_most(fs));
	if (!ret && rfs_room_low(fs, rfsm_least_room(sbi)))
		ret = -ENOSPC;
	fs->meta_asked = 0;	/* who still waits asks again */
	rfsm_unlock(sbi);
	if (ret && ret != -ENOSPC)
		rfsm_failed(sbi, ret);
	return !ret;
}

/* In the background: before anybody waits. */
static void rfsm_clean_early(struct rfs_sb_info *sbi)
{
	int ret;

	rfsm_lock(sbi);
	rfsm_set_ahead(sbi);
	ret = rfsm_clean_round(sbi, RFS_CLEAN_EARLY);
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

/* While nobody is at work: some zones, then it is seen whether somebody is. */
static void rfsm_clean_idle(struct rfs_sb_info *sbi)
{
	unsigned long used = READ_ONCE(sbi->last_busy);
	int ret = -ENOENT;

	rfsm_lock(sbi);
	sbi->seeking = true;
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

/* The thread sleeps so long if nobody wakes it. */
static long rfsm_thread_sleep(const struct rfs_sb_info *sbi,
			      unsigned long synced)
{
	unsigned long used = READ_ONCE(sbi->last_busy);
	long left = rfsm_sync_left(sbi, synced);

	if (sbi->idle_seen != used && !sbi->fs->read_only)
		left = min(left, (long)(used + IDLE - jiffies));
	return max(left, 1L);
}

/* Not by the thread, which may be cleaning meanwhile */
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
 * Who had no name when it was mounted is deleted while others are at work. Those who
 * lose theirs later come before these in the list, and are their users' matter.
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

	/* others wait for check-points and room, who may use up the CPU */
	set_user_nice(current, MIN_NICE);
	/* a machine that is suspended writes nothing */
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
	/* it may wait for the thread */
	WRITE_ONCE(sbi->stops, true);
	cancel_delayed_work_sync(&sbi->freeing);
	kthread_stop(sbi->thread);
	sbi->thread = NULL;
	/* it does not wait for s_umount */
	cancel_work_sync(&sbi->writing);
	wake_up_all(&sbi->room);
}
