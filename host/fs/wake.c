// SPDX-License-Identifier: GPL-2.0
/* These functions ask the thread of reclaim.c for room, and wait for it. */
#include <linux/mmap_lock.h>
#include <linux/workqueue.h>

#include "rfsm.h"
#include "wake.h"
#include "space/space.h"

bool rfsm_checkpoint_due(const struct rfs_sb_info *sbi)
{
	/* No lock is needed: a caller that acts on it looks again with the lock. */
	return data_race(rfs_checkpoint_due(sbi->fs));
}

bool rfsm_work_due(const struct rfs_sb_info *sbi)
{
	return READ_ONCE(sbi->want_room) ||
	       (!READ_ONCE(sbi->fs->read_only) &&
		(rfsm_checkpoint_due(sbi) || READ_ONCE(sbi->want_clean)));
}

#define AHEAD		6	/* zones of all ways: what a round of cleaning takes at most */
#define AHEAD_SHARE	4	/* of what is free, one in so many */
#define AHEAD_FOR	(5 * HZ)

void rfsm_set_ahead(struct rfs_sb_info *sbi)
{
	struct rfs_fs *fs = sbi->fs;
	u64 used = rfs_used(fs), free;

	free = fs->user_blocks - min(used, fs->user_blocks);
	free /= AHEAD_SHARE * le32_to_cpu(fs->super.zone_cap);
	fs->ahead = rfsm_favour_small(sbi, AHEAD_FOR) ?
		    min_t(u64, free, AHEAD * fs->ways) : 0;
}

u32 rfsm_withheld(const struct rfs_sb_info *sbi)
{
	const struct rfs_fs *fs = sbi->fs;

	return (rfs_zones_beside(fs) + fs->ways + fs->ahead) *
	       le32_to_cpu(fs->super.zone_cap);
}

static bool rfsm_round_over(const struct rfs_sb_info *sbi, u64 round)
{
	u64 now = READ_ONCE(sbi->rounds);

	return now > round + 1 || (now > round && !READ_ONCE(sbi->want_room)) ||
	       !sbi->thread;
}

/*
 * Says whether there is room for a small writer, who need not wait until there is more. It looks
 * without the lock.
 */
static bool rfsm_small_room(const struct rfs_sb_info *sbi, u32 pages)
{
	/* No lock is needed: a task that had to wait asks for a reservation again. */
	return data_race(!rfs_dirty_full(sbi->fs) &&
			 !rfs_room_low(sbi->fs, pages) &&
			 !rfs_flash_lacks(sbi->fs, pages,
					  sbi->fs->meta_asked));
}

/*
 * A task that waits in a page fault keeps others from changing the memory of its program. These
 * keep all tasks that come after them from looking at it. One of them may be a direct read, which
 * holds blocks that have to be let go before there is room. So a fault does not wait while others
 * want to change the memory: it begins anew.
 */
#define FAULT_SLICE	(HZ / 10)

static int rfsm_wait_room_or_map(struct rfs_sb_info *sbi, u32 pages, bool small,
				 struct mm_struct *mm)
{
	long slice = mm ? FAULT_SLICE : MAX_SCHEDULE_TIMEOUT, left;
	u64 round = READ_ONCE(sbi->rounds);

	if (current == sbi->thread)
		return 1;
	/* This is a hint, so it needs no lock: a task that asked in vain asks again. */
	if (pages > READ_ONCE(sbi->want_pages))
		WRITE_ONCE(sbi->want_pages, pages);
	WRITE_ONCE(sbi->want_room, true);
	wake_up(&sbi->wake);
	/* The round under way may not have seen this request, so the next one counts. */
	do {
		left = wait_event_killable_timeout(sbi->room,
						   rfsm_round_over(sbi, round) ||
						   (small && rfsm_small_room(sbi, pages)),
						   slice);
		if (left < 0)
			return -EINTR;
	} while (!left && !mmap_lock_is_contended(mm));
	if (!left)
		return -EAGAIN;
	if (!rfsm_round_over(sbi, round))
		return 0;
	return READ_ONCE(sbi->no_space) || !sbi->thread;
}

int rfsm_wait_room_for(struct rfs_sb_info *sbi, u32 pages, bool small)
{
	return rfsm_wait_room_or_map(sbi, pages, small, NULL);
}

int rfsm_wait_room(struct rfs_sb_info *sbi, bool small)
{
	return rfsm_wait_room_or_map(sbi, 1, small, NULL);
}

int rfsm_wait_room_fault(struct rfs_sb_info *sbi, bool small,
			 struct mm_struct *mm)
{
	return rfsm_wait_room_or_map(sbi, 1, small, mm);
}

static void rfsm_wake_thread(struct rfs_sb_info *sbi)
{
	if (rfsm_work_due(sbi))
		wake_up(&sbi->wake);
}

void rfsm_kick(struct rfs_sb_info *sbi)
{
	u32 seen = READ_ONCE(sbi->seen_free);

	/* This looks without the lock, and the thread looks again with it. */
	if (data_race(rfs_clean_due(sbi->fs, &seen)))
		WRITE_ONCE(sbi->want_clean, true);
	WRITE_ONCE(sbi->seen_free, seen);
	rfsm_wake_thread(sbi);
}

void rfsm_kick_reserved(struct rfs_sb_info *sbi)
{
	/* This looks without the lock, since it only decides who looks next. */
	if (data_race(rfs_zones_of(sbi->fs, sbi->fs->rsv_blocks)))
		rfsm_kick(sbi);
	else
		rfsm_wake_thread(sbi);
}

#define CROWDED_EACH	(HZ / 50)

/* The thread makes blocks leave flash when it cleans early. There may be no thread. */
void rfsm_crowded(void *dev)
{
	struct rfs_sb_info *sbi = container_of(dev, struct rfs_sb_info, dev);

	if (time_before(jiffies, sbi->crowded + CROWDED_EACH))
		return;
	sbi->crowded = jiffies;
	WRITE_ONCE(sbi->want_clean, true);
	wake_up(&sbi->wake);
}

void rfsm_write_soon(struct rfs_sb_info *sbi)
{
	/* A machine that is suspended writes nothing. */
	if (sbi->thread && !work_pending(&sbi->writing))
		queue_work(system_freezable_wq, &sbi->writing);
}
