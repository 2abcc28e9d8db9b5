// SPDX-License-Identifier: GPL-2.0
/* The thread that writes check-points and cleans (C.3, rule 7). */
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
static void write_back(struct rfsm *m)
{
	if (!m->fs->rsv_blocks || !down_read_trylock(&m->sb->s_umount))
		return;
	sync_inodes_sb(m->sb);
	up_read(&m->sb->s_umount);
}

/* Blocks that can be written: a victim may give less than a zone. */
static u64 room_left(const struct rfs_fs *fs)
{
	u64 blocks = (u64)fs->free_zones * fs->zone[RFS_CP_ZONES].cap;
	u32 i, zone;

	for (i = RFS_S_DATA; i < RFS_STREAMS; i++) {
		zone = fs->active[i].zone;
		if (zone)
			blocks += fs->zone[zone].cap - fs->zone[zone].wp;
	}
	return blocks;
}

/* What everybody asks for, and zones that are left to who needs little */
static u32 more_room(const struct rfsm *m)
{
	return RFSM_APPEND_MAX + rfsm_withheld(m);
}

/*
 * Zones are what who waits lacks? If not, it waits for a check-point, which may
 * have been written meanwhile. Data that is to be overwritten or deleted soon
 * need not be written for that.
 */
static bool zones_lack(struct rfsm *m)
{
	struct rfs_fs *fs = m->fs;
	int ret = 0;
	bool lack;

	rfsm_lock(m);
	rfsm_set_ahead(m);
	lack = fs->read_only || rfs_room_low(fs, more_room(m));
	m->seeking = lack;
	if (!lack && rfs_dirty_full(fs))
		ret = rfsm_checkpoint(m, 0);
	rfsm_unlock(m);
	if (ret)
		rfsm_failed(m, ret);
	return lack;
}

/*
 * Rounds without a gain, then there is none: a victim may be cleaned in pieces of
 * half of dirty_max, and metadata be compacted after each.
 */
static u32 rounds_most(const struct rfs_fs *fs)
{
	return 8 + 4 * (fs->zone[RFS_CP_ZONES].cap / fs->dirty_max);
}

static int clean(struct rfsm *m, enum rfs_clean how)
{
	int ret;

	WRITE_ONCE(m->cleaning, true);
	ret = rfs_clean_some(m->fs, how);
	WRITE_ONCE(m->cleaning, false);
	return ret;
}

/* Does nobody who asks now have to wait? Somebody may have made room since. */
static bool room_there(const struct rfsm *m)
{
	return !rfs_dirty_full(m->fs) &&
	       !rfs_room_low(m->fs, more_room(m));
}

/* Room for who waits for it; false: there is none to be had. */
static bool make_room(struct rfsm *m)
{
	struct rfs_fs *fs = m->fs;
	u32 futile = 0;
	u64 best;
	int ret;

	if (!zones_lack(m))
		return true;
	write_back(m);
	rfsm_lock(m);
	best = room_left(fs);
	do {
		ret = fs->read_only ? -EROFS : 0;
		if (!ret && room_there(m))
			break;
		if (!ret && rfs_compact_due(fs, futile))
			ret = rfs_compact(fs, rfsm_checkpoint_of);
		else if (!ret && rfs_room_low(fs, more_room(m)))
			ret = clean(m, futile ? RFS_CLEAN_HARD :
						RFS_CLEAN_NOW);
		if (!ret)
			ret = rfsm_checkpoint(m, 0);
		if (ret == -ENOMEM) {	/* there may be some in a moment */
			rfsm_unlock(m);
			schedule_timeout_uninterruptible(HZ / 50);
			rfsm_lock(m);
			ret = 0;
		}
		futile = room_left(fs) > best ? 0 : futile + 1;
		best = max(best, room_left(fs));
		/* the zone that is left to others is not sought in vain */
	} while (!ret && rfs_room_low(fs, futile ? RFSM_APPEND_MAX :
						   more_room(m)) &&
		 futile < rounds_most(fs));
	if (!ret && rfs_room_low(fs, RFSM_APPEND_MAX))
		ret = -ENOSPC;
	rfsm_unlock(m);
	if (ret && ret != -ENOSPC)
		rfsm_failed(m, ret);
	return !ret;
}

/* In the background: before anybody waits. */
static void clean_early(struct rfsm *m)
{
	int ret;

	rfsm_lock(m);
	rfsm_set_ahead(m);
	ret = clean(m, RFS_CLEAN_EARLY);
	if (!ret)
		ret = rfsm_checkpoint(m, 0);
	WRITE_ONCE(m->seen_free, m->fs->free_zones);
	rfsm_unlock(m);
	if (ret && ret != -ENOENT)
		rfsm_failed(m, ret);
}

#define IDLE	(2 * HZ)

static bool idle(const struct rfsm *m)
{
	return time_after_eq(jiffies, READ_ONCE(m->used) + IDLE) &&
	       !READ_ONCE(m->inflight_pages);
}

/* While nobody is at work: some zones, then it is seen whether somebody is. */
static void clean_idle(struct rfsm *m)
{
	unsigned long used = READ_ONCE(m->used);
	int ret = -ENOENT;

	rfsm_lock(m);
	m->seeking = true;
	if (rfs_idle_due(m->fs))
		ret = clean(m, RFS_CLEAN_IDLE);
	if (!ret)
		ret = rfsm_checkpoint(m, 0);
	if (ret || !rfs_idle_due(m->fs))
		m->idle_seen = used;
	rfsm_unlock(m);
	if (ret && ret != -ENOENT)
		rfsm_failed(m, ret);
}

static long sync_left(const struct rfsm *m, unsigned long synced)
{
	return (long)(synced + m->opt.commit * HZ - jiffies);
}

/* How long the thread sleeps if nobody wakes it */
static long nap(const struct rfsm *m, unsigned long synced)
{
	unsigned long used = READ_ONCE(m->used);
	long left = sync_left(m, synced);

	if (m->idle_seen != used && !m->fs->read_only)
		left = min(left, (long)(used + IDLE - jiffies));
	return max(left, 1L);
}

/* Not by the thread, which may be cleaning meanwhile */
static void write_now(struct work_struct *work)
{
	struct rfsm *m = container_of(work, struct rfsm, writing);

	if (!sb_start_intwrite_trylock(m->sb))
		return;		/* frozen */
	if (down_read_trylock(&m->sb->s_umount)) {
		writeback_inodes_sb(m->sb, WB_REASON_BACKGROUND);
		up_read(&m->sb->s_umount);
	}
	sb_end_intwrite(m->sb);
}

/*
 * Who had no name when it was mounted is deleted while others are at work. Those who
 * lose theirs later come before these in the list, and are their users' matter.
 */
static void free_orphans(struct work_struct *work)
{
	struct rfsm *m = container_of(to_delayed_work(work), struct rfsm,
				      freeing);
	bool more = false;
	u32 next;
	int ret = 0;

	while (!ret && m->orphan && !READ_ONCE(m->stops)) {
		if (!sb_start_intwrite_trylock(m->sb)) {	/* frozen */
			queue_delayed_work(system_unbound_wq, &m->freeing,
					   HZ / 10);
			return;
		}
		if (!more)
			rfsm_look(m, ret, rfs_orphan_next(m->fs, m->orphan,
							  &next));
		if (!ret)
			rfsm_do(m, ret, rfs_free_some(m->fs, m->orphan, &more));
		if (!ret && !more)
			m->orphan = next;
		sb_end_intwrite(m->sb);
	}
	if (ret)
		rfsm_failed(m, ret);
}

static int thread(void *arg)
{
	struct rfsm *m = arg;
	unsigned long synced = jiffies;

	/* others wait for check-points and room, who may use up the CPU */
	set_user_nice(current, MIN_NICE);
	/* a machine that is suspended writes nothing */
	set_freezable();
	while (!kthread_freezable_should_stop(NULL)) {
		bool found;

		wait_event_freezable_timeout(m->wake, rfsm_work_due(m) ||
					     kthread_should_stop(),
					     nap(m, synced));
		if (kthread_should_stop())
			break;
		if (!sb_start_intwrite_trylock(m->sb)) {
			schedule_timeout_interruptible(HZ / 10);
			continue;	/* frozen */
		}
		m->seeking = true;
		if (READ_ONCE(m->want_room)) {
			WRITE_ONCE(m->want_room, false);
			found = make_room(m);
			WRITE_ONCE(m->no_space, !found);
			WRITE_ONCE(m->rounds, m->rounds + 1);
		} else if (READ_ONCE(m->want_clean)) {
			WRITE_ONCE(m->want_clean, false);
			clean_early(m);
		} else if (rfs_checkpoint_due(m->fs) ||
			   sync_left(m, synced) <= 0) {
			m->seeking = false;
			if (rfsm_sync(m, 0))	/* there may be more in a moment */
				schedule_timeout_interruptible(HZ / 50);
			synced = jiffies;
		} else if (idle(m)) {
			clean_idle(m);
		}
		sb_end_intwrite(m->sb);
		wake_up_all(&m->room);
	}
	return 0;
}

int rfsm_thread_start(struct rfsm *m)
{
	struct task_struct *task;

	if (m->thread)
		return 0;
	m->seen_free = ~0U;
	m->used = jiffies;
	m->idle_seen = m->used - 1;
	INIT_WORK(&m->writing, write_now);
	INIT_DELAYED_WORK(&m->freeing, free_orphans);
	WRITE_ONCE(m->stops, false);
	task = kthread_run(thread, m, "rfs/%pg", m->sb->s_bdev);
	if (IS_ERR(task))
		return PTR_ERR(task);
	m->thread = task;
	queue_delayed_work(system_unbound_wq, &m->freeing, 0);
	return 0;
}

void rfsm_thread_stop(struct rfsm *m)
{
	if (!m->thread)
		return;
	/* it may wait for the thread */
	WRITE_ONCE(m->stops, true);
	cancel_delayed_work_sync(&m->freeing);
	kthread_stop(m->thread);
	m->thread = NULL;
	/* it does not wait for s_umount */
	cancel_work_sync(&m->writing);
	wake_up_all(&m->room);
}
