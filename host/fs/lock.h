/* SPDX-License-Identifier: GPL-2.0 */
/* This is the volume lock, and the reading of metadata without it. */
#ifndef RFSM_LOCK_H
#define RFSM_LOCK_H

#include "plat/rfs_plat.h"

struct rfs_sb_info;
struct rfsm_fetch;

/* An operation notes here which block of metadata it has missed. It is zero at first. */
struct rfsm_miss {
	struct rfsm_fetch *fetch;	/* what is read for it */
	u64 addr;
};

/*
 * Takes the volume lock, to change the volume or to look at it. Its owner does not wait for the
 * drive, but for the cases that "Locks" in doc/design.md lists. He never waits for memory: this
 * function waits first, until the memory that an operation needs is kept.
 */
void rfsm_lock(struct rfs_sb_info *sbi);
/* Does the same to send appends, which needs less memory than a change. */
void rfsm_lock_send(struct rfs_sb_info *sbi);
/* Does the same to begin a check-point. Others may wait for the memory that it gives back. */
void rfsm_lock_checkpoint(struct rfs_sb_info *sbi);
/*
 * Does the same without waiting for memory, since others get memory only when the caller is done:
 * an append has completed, or a check-point goes on.
 */
void rfsm_lock_now(struct rfs_sb_info *sbi);
/*
 * Takes the volume lock only to look at the volume. It does not wait for a task that writes a
 * check-point or the log.
 */
void rfsm_lock_query(struct rfs_sb_info *sbi);
void rfsm_lock_query_now(struct rfs_sb_info *sbi);	/* needs no memory */
void rfsm_unlock(struct rfs_sb_info *sbi);	/* of both */
/*
 * While this is on, the caller lends the lock whenever it waits for the drive, and others may look
 * but not change anything.
 */
void rfsm_quiet(struct rfs_sb_info *sbi, bool begins);
/* These are called around waits for the drive. They do nothing if rfsm_quiet() has not begun. */
void rfsm_lend(struct rfs_sb_info *sbi);
void rfsm_take_back(struct rfs_sb_info *sbi);

/*
 * The caller holds the lock, and calls the first before an operation of the core and the second
 * after it, with its result. True says that the operation missed a block: rfsm_miss_read() reads it
 * with no lock held, and the operation is tried again.
 */
void rfsm_miss_begin(struct rfs_sb_info *sbi, struct rfsm_miss *miss);
bool rfsm_miss_end(struct rfs_sb_info *sbi, struct rfsm_miss *miss, int ret);
void rfsm_miss_read(struct rfs_sb_info *sbi, struct rfsm_miss *miss);
/* The caller does not wait for the block that was missed, so it is not read. */
void rfsm_miss_drop(struct rfs_sb_info *sbi, struct rfsm_miss *miss);
int rfsm_fetch_init(struct rfs_sb_info *sbi);
void rfsm_fetch_exit(struct rfs_sb_info *sbi);

/* Does an operation of the core that changes nothing; ret becomes its result. */
#define rfsm_query(sbi, ret, op)					\
do {									\
	struct rfsm_miss miss_ = { 0 };					\
	bool again_, lacked_;						\
	u32 tries_ = 0;							\
									\
	do {								\
		rfsm_lock_query(sbi);					\
		rfsm_miss_begin(sbi, &miss_);				\
		(ret) = (op);						\
		again_ = rfsm_miss_end(sbi, &miss_, ret);		\
		lacked_ = (ret) == -ENOMEM && (sbi)->memory.lacked;	\
		rfsm_unlock(sbi);					\
		if (again_)						\
			rfsm_miss_read(sbi, &miss_);			\
	} while (again_ ||						\
		 (lacked_ && rfsm_memory_again(sbi, &tries_)));		\
} while (0)

#endif
