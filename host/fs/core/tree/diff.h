/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of blocks of a file, all in one node, which lie over the blocks. */
#ifndef RFS_DIFF_H
#define RFS_DIFF_H

#include "buffer/buffer.h"

/* How many pieces there are */
static inline u32 rfs_diff_count(const struct rfs_buf *buf)
{
	return le16_to_cpu(buf->head.count);
}

/* The byte after a piece */
static inline u64 rfs_piece_end(const struct rfs_piece *p)
{
	return le64_to_cpu(p->off) + le16_to_cpu(p->len);
}

/* Of the node of a file: the byte after its last piece */
static inline u64 rfs_diff_end(const struct rfs_buf *node)
{
	return rfs_piece_end(&node->diff.piece[rfs_diff_count(node) - 1]);
}

/* The node; *out is NULL if the file has none. -EUCLEAN: it is damaged */
int rfs_diff_get(struct rfs_fs *fs, const struct rfs_dinode *di,
		 struct rfs_buf **out);

/* Pieces that bytes of one block are */
static inline u32 rfs_pieces_of(u32 len)
{
	return DIV_ROUND_UP(len, RFS_PIECE_MAX);
}

/*
 * So many bytes of one block, which are put as one piece after the other, take no more
 * of the node than this, wherever they are
 */
u32 rfs_diff_needs(u32 len);

/* And those that it has for others; node may be NULL: one that is to be made */
u32 rfs_diff_room(const struct rfs_fs *fs, const struct rfs_buf *node);

/* Has it a piece with any of these bytes, or keeps the place of one? */
bool rfs_diff_has(const struct rfs_fs *fs, const struct rfs_buf *node, u64 off,
		  u32 len);

/* What was written last, within a block; -ENOSPC: it does not fit */
int rfs_diff_put(struct rfs_fs *fs, struct rfs_dinode *di, struct rfs_buf *ibuf,
		 u64 off, u32 len, u64 version, const u8 *bytes);

/*
 * What there is of a block is copied over its content, of which nothing is
 * changed without pieces; data may be NULL. *n: how many
 */
int rfs_diff_overlay(struct rfs_fs *fs, const struct rfs_dinode *di, u64 block,
		     u8 *data, u32 *n);

/*
 * A page of a block has completed: pieces that are older are in it. certain: a
 * recovery from now on sees the page, so that their place is free.
 */
int rfs_diff_drop(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *ibuf, u64 block, u64 version, bool certain);

/* Bytes from..to - 1 of the file are gone */
int rfs_diff_cut(struct rfs_fs *fs, struct rfs_dinode *di,
		 struct rfs_buf *ibuf, u64 from, u64 to);

/* The node goes, with all that is in it */
int rfs_diff_free(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *ibuf);

#endif
