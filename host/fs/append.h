/* SPDX-License-Identifier: GPL-2.0 */
/* These are writes: appends in flight together, and small writes that can be pieces. */
#ifndef RFSM_APPEND_H
#define RFSM_APPEND_H

#include "blocks.h"

/* This is a block under writeback of which few bytes are new, and the folio that it lies in. */
struct rfsm_small {
	struct folio *folio;
	u64 block;
	u16 from, bytes;
	u16 len;		/* valid bytes of the block */
};

#define RFSM_SMALLS	32

#define RFSM_BATCH_MAX	256	/* blocks that writeback makes a transaction of */

/*
 * Consecutive blocks under writeback become one transaction. Small blocks are kept beside them
 * until they are pieces, or join it.
 */
struct rfsm_batch {
	u32 n;
	u32 len;	/* valid bytes of the last */
	u64 block;	/* the first */
	struct folio *folio[RFSM_BATCH_MAX];	/* of each block */
	u32 smalls;
	struct rfsm_small small[RFSM_SMALLS];
};

/* These appends completed on a CPU, whose worker looks at them. */
struct rfsm_completions {
	struct rfs_sb_info *sbi;
	struct work_struct work;
	struct llist_head done;
};

int rfsm_append_init(struct rfs_sb_info *sbi);
void rfsm_append_exit(struct rfs_sb_info *sbi);
/*
 * Writes n blocks as a transaction, in ascending order from the given one on. Each has the folio
 * that it lies in, which is under writeback. len is the valid bytes of the last block. If the
 * blocks do not follow each other, their folios have one page. Writeback ends later, and errors go
 * to the mapping.
 */
enum rfsm_append {
	RFSM_APPEND_SYNC = 1,	/* somebody waits for it */
	RFSM_APPEND_ATOMIC = 2,	/* somebody has asked for all or nothing */
	RFSM_APPEND_FILL = 4,	/* of rfsm_append_fill() */
};

void rfsm_append(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		 struct folio **folio, u32 n, u32 len, u32 how);

/*
 * over() is called when writeback has ended, with 0 or an error. It is for a caller that does not
 * wait.
 */
struct rfsm_then {
	void (*over)(struct rfsm_then *then, int error);
};

/* These bytes of the first or last block, or both, should become pieces of the transaction. */
struct rfsm_ends {
	struct rfs_bytes piece[2];
	u32 n;
	bool head;	/* the first one is of the first block */
};

/*
 * Does what rfsm_append() does. ends and then may be NULL. at has the numbers of the blocks, and is
 * freed by kfree(). It is NULL if they follow each other, which they do if there are ends.
 */
void rfsm_append_then(struct rfs_sb_info *sbi, struct inode *inode,
		      u64 block, u64 *at, struct folio **folio, u32 n, u32 len,
		      u32 how, const struct rfsm_ends *ends,
		      struct rfsm_then *then);
/*
 * Brings a block that is only at home to flash, too. Its folio, of one page, is up to date,
 * reserved and under writeback.
 */
void rfsm_append_fill(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		      struct folio *folio);
/* Appends a copy. The caller holds the volume lock, which is dropped meanwhile. */
int rfsm_copy_write(void *dev, struct rfs_copy *copy);
int __init rfsm_append_module_init(void);
void rfsm_append_module_exit(void);

/*
 * Adds a block under writeback to the small blocks of a batch, which has room, if no more than
 * RFS_SMALL_MAX bytes of it are new. Returns false otherwise, and does nothing. size was the file's
 * when writeback began.
 */
bool rfsm_small_add(struct rfsm_batch *b, struct folio *folio, u64 block,
		    const struct rfsm_bytes *bytes, loff_t size);
/*
 * Writes small blocks as pieces where that takes fewer pages. Those that stay in the batch have to
 * be pages. alone says that fsync or O_SYNC waits for the log, see rfs_piece_most().
 */
void rfsm_smalls_write(struct inode *inode, struct rfsm_batch *b, bool alone);
/* Says whether an atomic write takes fewer pages if its ends are pieces. alone is as above. */
bool rfsm_ends_save(struct inode *inode, const struct rfsm_ends *ends,
		    bool alone);
/* Says that sync(2) needs no check-point. The caller holds no lock. */
bool rfsm_log_is_enough(const struct rfs_sb_info *sbi);

#endif
