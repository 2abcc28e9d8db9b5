/* SPDX-License-Identifier: GPL-2.0 */
/* This is the memory that a volume has kept for the owner of its lock. */
#ifndef RFSM_MEMORY_H
#define RFSM_MEMORY_H

#include <linux/atomic.h>
#include <linux/llist.h>
#include <linux/workqueue.h>

struct rfs_sb_info;

/*
 * An operation takes no more than this in one hold of the lock: the blocks that it makes dirty and
 * the nodes that a part of a deletion goes through, each with the block of a map that leads to it,
 * the blocks of the log that its record may reach into, and the block that was read for it.
 */
#define RFSM_KEPT_OPERATION						\
	(2 * (RFS_OP_BLOCKS + RFS_PRUNE_NODES) + RFS_LOG_KEPT + 1)

/*
 * Pages of a file that have completed take this much: the blocks that lead to each of them, as
 * "Room" counts them, and once more the blocks that an operation makes dirty, for the nodes above
 * them and the quotas.
 */
#define RFSM_KEPT_FOR(pages)						\
	((pages) * (RFS_PARENTS + RFS_DIFF_PARENTS) + 2 * RFS_OP_BLOCKS)

/*
 * Blocks that are sent take a summary of each zone that is being filled, and one of each append in
 * flight. A check-point takes no more, since its blocks are in memory.
 */
#define RFSM_KEPT_SENT	(RFS_STREAMS + RFS_WAYS_MAX + RFS_IO_REQS)

/*
 * A look-up takes the block that was read for it, and the leaves that it goes through: one that is
 * kept as runs is made without a read. A caller that sends an append takes a summary as well.
 */
#define RFSM_KEPT_LOOK_UP	(RFS_PRUNE_NODES + 2)

/*
 * Each of these needs memory that is kept for the owner of the volume lock. Each leaves the memory
 * that those after it need.
 */
enum rfsm_memory_need {
	RFSM_MEMORY_OPERATION,
	RFSM_MEMORY_SEND,	/* appends, and who only looks */
	RFSM_MEMORY_CHECKPOINT,	/* which turns what is dirty into what can be freed */
	RFSM_MEMORY_NEEDS,
};

/* This is the memory that a volume has kept for the owner of its lock, see mem.c. */
struct rfsm_memory {
	struct rfs_sb_info *sbi;
	struct llist_head kept;	/* anybody adds to it; who holds the volume lock takes from it */
	atomic_t count;		/* of these */
	u32 need[RFSM_MEMORY_NEEDS];	/* so many are kept for who needs this */
	struct work_struct fill;	/* brings it to its size */
	/* This is called then, for appends that have completed and lack memory. */
	void (*filled)(struct rfs_sb_info *sbi);
	void *outer;		/* the journal_info of who holds the lock, as it was */
	bool lacked;		/* this hold of the lock was refused memory */
	size_t lack;		/* so many bytes, which are to be brought; 0: none */
	void *brought;
	size_t brought_bytes;
};

int rfsm_memory_init(struct rfs_sb_info *sbi);
void rfsm_memory_exit(struct rfs_sb_info *sbi);
/*
 * Stops these calls: no append is in flight any more, so memory.filled() is not called from now on.
 */
void rfsm_memory_stop(struct rfs_sb_info *sbi);
/* The task has the volume lock between these two, so that it waits for no memory. */
void rfsm_memory_held(struct rfs_sb_info *sbi);
void rfsm_memory_released(struct rfs_sb_info *sbi);
/*
 * These say whether so many blocks are kept. They are called under the lock, and do not wait. The
 * second and the third are for a caller that has no pointer to a block. They also take clean
 * blocks, for the memory that he needs, or for so many pages that have completed.
 */
bool rfsm_memory_ready(struct rfs_sb_info *sbi, u32 blocks);
bool rfsm_memory_kept(struct rfs_sb_info *sbi, enum rfsm_memory_need need);
bool rfsm_memory_for_pages(struct rfs_sb_info *sbi, u32 pages);
/*
 * Waits until the memory that is needed is kept. The caller does not hold the lock, nor does he for
 * the next three.
 */
void rfsm_memory_wait(struct rfs_sb_info *sbi, enum rfsm_memory_need need);
/* Brings the memory that a hold of the lock has lacked. False says that there is none. */
bool rfsm_memory_bring(struct rfs_sb_info *sbi);
/* Calls memory.filled() when there is memory, and does not wait for it. */
void rfsm_memory_soon(struct rfs_sb_info *sbi);
/*
 * Brings the memory that an operation was refused under the lock, which ended with -ENOMEM and set
 * memory.lacked. The caller does not hold the lock. True says that the operation is to be tried
 * again.
 */
bool rfsm_memory_again(struct rfs_sb_info *sbi, u32 *tries);
int rfsm_mem_module_init(void);
void rfsm_mem_module_exit(void);

#endif
