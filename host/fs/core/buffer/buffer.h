/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metadata blocks are kept in memory here. */
#ifndef RFS_BUFFER_H
#define RFS_BUFFER_H

#include "volume/volume.h"

struct rfs_buf {
	struct rfs_buf *hash_next;
	struct list_head list;	/* of dirty or of clean */
	u64 off;		/* of a node its number; else as in the head */
	u64 addr;		/* 0: never written */
	u8 class;		/* its type, but of nodes RFS_INDEX */
	bool dirty;
	bool sent;		/* as it is now, and has not completed yet */
	bool early;		/* in flight, while others may change or drop it */
	u32 early_before;	/* the check-point that it was written before */
	bool gone;		/* dropped since: who sent it frees it */
	bool run;		/* the node map has it as runs; it is clean */
	bool checked;		/* of a directory's leaf, a diff node: its entries fit */
	/* In a directory's leaf, all entries before this place have less than this hash: dir.c. */
	u16 found_at;
	u32 found_top;
	union {
		struct rfs_head head;
		struct rfs_node node;
		struct rfs_inodes inodes;
		struct rfs_table table;
		struct rfs_quotas quotas;
		struct rfs_diff diff;
		u8 bytes[RFS_BLOCK_BYTES];
	};
};

/*
 * Finds a block that is in memory. A node is found by its number, with the type of any node. off of
 * other blocks is as in the head.
 */
struct rfs_buf *rfs_buf_find(struct rfs_fs *fs, u8 type, u64 off);
int rfs_buf_read(struct rfs_fs *fs, u8 type, u64 off, u64 addr,
		 struct rfs_buf **out);

/* Makes a dirty block that is new. off is as in the head. */
int rfs_buf_new(struct rfs_fs *fs, u8 type, u32 ino, u32 gen, u64 off,
		struct rfs_buf **out);
/* Makes a clean block that the caller fills. */
int rfs_buf_blank(struct rfs_fs *fs, u8 type, u32 ino, u32 gen, u64 off,
		  struct rfs_buf **out);
void rfs_buf_dirty(struct rfs_fs *fs, struct rfs_buf *buf);
/*
 * A dirty leaf has been entered into the node map as runs. So it is clean, and in no block of its
 * own.
 */
void rfs_buf_folded(struct rfs_fs *fs, struct rfs_buf *buf);
void rfs_buf_drop(struct rfs_fs *fs, struct rfs_buf *buf);

/* A dirty block was sent, and will be at addr. */
void rfs_buf_placed(struct rfs_fs *fs, struct rfs_buf *buf, u64 addr);
/* A dirty block has been written at addr. It is clean, unless it was changed since. */
void rfs_buf_written(struct rfs_fs *fs, struct rfs_buf *buf, u64 addr);
void rfs_cache_trim(struct rfs_fs *fs, u32 keep);
/*
 * From here on to rfs_nowait_restore(), a block that is not in memory is read at once, since an
 * operation that has begun must not begin anew.
 */
static inline bool rfs_nowait_off(struct rfs_fs *fs)
{
	bool nowait = fs->nowait;

	fs->nowait = false;
	return nowait;
}

static inline void rfs_nowait_restore(struct rfs_fs *fs, bool nowait)
{
	fs->nowait = nowait;
}

#endif
