/* SPDX-License-Identifier: GPL-2.0 */
/* These functions ask the thread for room, and wait for it. */
#ifndef RFSM_WAKE_H
#define RFSM_WAKE_H

#include "rfsm.h"

struct mm_struct;

/* Says whether the thread has something to do. Both are called without the lock. */
bool rfsm_checkpoint_due(const struct rfs_sb_info *sbi);
bool rfsm_work_due(const struct rfs_sb_info *sbi);
/*
 * Waits until there may be room or, with small, a little room. Returns 0 then, 1 if no room can be
 * made, and -EINTR if the caller is killed.
 */
int rfsm_wait_room(struct rfs_sb_info *sbi, bool small);
/* Does the same for so many pages that are reserved together. */
int rfsm_wait_room_for(struct rfs_sb_info *sbi, u32 pages, bool small);
/*
 * Does the same for a page fault in this memory. -EAGAIN says that the fault has to begin anew,
 * since others want to change that memory.
 */
int rfsm_wait_room_fault(struct rfs_sb_info *sbi, bool small,
			 struct mm_struct *mm);

/*
 * A small writer, who waits until his few pages are on the drive, has priority: others write less
 * at a time, and leave free zones to him.
 */
#define RFSM_SMALL_PAGES	64	/* pages of a file, not written yet */

static inline bool rfsm_is_small_writer(struct inode *inode)
{
	return READ_ONCE(RFS_I(inode)->rsv_pages) <= RFSM_SMALL_PAGES;
}

/* Says whether there was a small write within so many jiffies. */
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

/* This says whether a task that asks for room has waited for it, and whether there was any. */
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
/* Notes that somebody is at work, so the time without work begins anew. */
static inline void rfsm_set_busy(struct rfs_sb_info *sbi)
{
	WRITE_ONCE(sbi->last_busy, jiffies);
}

/* The core calls this if flash of a hybrid volume is nearly full: blocks have to leave it soon. */
void rfsm_crowded(void *dev);

/* Has Linux's writeback send the dirty pages of all files. */
void rfsm_write_soon(struct rfs_sb_info *sbi);

#endif
