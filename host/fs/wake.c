// SPDX-License-Identifier: GPL-2.0
/* Asking the thread of reclaim.c for room, and waiting for it. */
#include <linux/workqueue.h>

#include "rfsm.h"
#include "space/space.h"

bool rfsm_work_due(const struct rfsm *m)
{
	return READ_ONCE(m->want_room) ||
	       (!m->fs->read_only && (rfs_checkpoint_due(m->fs) ||
				      READ_ONCE(m->want_clean)));
}

#define AHEAD		6	/* zones: what a round of cleaning takes at most */
#define AHEAD_SHARE	4	/* of what is free, one in so many */
#define AHEAD_FOR	(5 * HZ)

void rfsm_set_ahead(struct rfsm *m)
{
	struct rfs_fs *fs = m->fs;
	u64 used = rfs_used(fs), free;

	free = fs->user_blocks - min(used, fs->user_blocks);
	free /= AHEAD_SHARE * le32_to_cpu(fs->super.zone_cap);
	fs->ahead = rfsm_spares(m, AHEAD_FOR) ? min_t(u64, free, AHEAD) : 0;
}

u32 rfsm_withheld(const struct rfsm *m)
{
	return (1 + m->fs->ahead) * le32_to_cpu(m->fs->super.zone_cap);
}

static bool round_over(const struct rfsm *m, u64 round)
{
	u64 now = READ_ONCE(m->rounds);

	return now > round + 1 || (now > round && !READ_ONCE(m->want_room)) ||
	       !m->thread;
}

/* Who needs little need not wait until there is more; looked at without the lock */
static bool little_room(const struct rfsm *m)
{
	return !rfs_dirty_full(m->fs) && !rfs_room_low(m->fs, 1);
}

int rfsm_wait_room(struct rfsm *m, bool little)
{
	u64 round = READ_ONCE(m->rounds);

	if (current == m->thread)
		return 1;
	WRITE_ONCE(m->want_room, true);
	wake_up(&m->wake);
	/* the round under way may not have seen what is asked for */
	wait_event(m->room, round_over(m, round) || (little && little_room(m)));
	if (!round_over(m, round))
		return 0;
	return READ_ONCE(m->no_space) || !m->thread;
}

void rfsm_kick(struct rfsm *m)
{
	u32 seen = READ_ONCE(m->seen_free);

	/* looked at without the lock: the thread looks again */
	if (rfs_clean_due(m->fs, &seen))
		WRITE_ONCE(m->want_clean, true);
	WRITE_ONCE(m->seen_free, seen);
	if (rfsm_work_due(m))
		wake_up(&m->wake);
}

void rfsm_write_soon(struct rfsm *m)
{
	/* a machine that is suspended writes nothing */
	if (m->thread && !work_pending(&m->writing))
		queue_work(system_freezable_wq, &m->writing);
}
