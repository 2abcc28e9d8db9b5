/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of a file's blocks lie over the blocks. All pieces of a file are in one node. */
#ifndef RFS_DIFF_H
#define RFS_DIFF_H

#include "buffer/buffer.h"

static inline u32 rfs_diff_count(const struct rfs_buf *buf)
{
	return le16_to_cpu(buf->head.count);
}

static inline u64 rfs_piece_end(const struct rfs_piece *p)
{
	return le64_to_cpu(p->off) + le16_to_cpu(p->len);
}

/* Returns the byte after the last piece of a file's node. */
static inline u64 rfs_diff_end(const struct rfs_buf *node)
{
	return rfs_piece_end(&node->diff.piece[rfs_diff_count(node) - 1]);
}

/* Finds a file's node; *out is NULL if it has none. -EUCLEAN says that the node is damaged. */
int rfs_diff_get(struct rfs_fs *fs, const struct rfs_dinode *di,
		 struct rfs_buf **out);

/* Returns the number of pieces for so many bytes of one block. */
static inline u32 rfs_pieces_of(u32 len)
{
	return DIV_ROUND_UP(len, RFS_PIECE_MAX);
}

/*
 * Returns the most room that so many bytes of one block need, wherever they are, if they are put as
 * one piece after the other.
 */
u32 rfs_diff_needs(u32 len);

/* Returns the room that a node has for other pieces. NULL is a node that does not exist yet. */
u32 rfs_diff_room(const struct rfs_fs *fs, const struct rfs_buf *node);

/* Says whether the node has a piece with any of these bytes, or keeps the place of one. */
bool rfs_diff_has(const struct rfs_fs *fs, const struct rfs_buf *node, u64 off,
		  u32 len);

/*
 * Puts the bytes over the old ones, as the newest. They lie within a block. -ENOSPC says that they
 * do not fit.
 */
int rfs_diff_put(struct rfs_fs *fs, struct rfs_dinode *di, struct rfs_buf *ibuf,
		 u64 off, u32 len, u64 version, const u8 *bytes);

/*
 * Copies the pieces of a block over its content, which stays as it is if there are none. data may
 * be NULL. *n becomes their number.
 */
int rfs_diff_overlay(struct rfs_fs *fs, const struct rfs_dinode *di, u64 block,
		     u8 *data, u32 *n);

/*
 * Drops older pieces of a block, because a page of it has completed that has their bytes. certain
 * says that every recovery from now on sees the page, so that their place is free.
 */
int rfs_diff_drop(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *ibuf, u64 block, u64 version, bool certain);

/* Removes the bytes from..to - 1 of the file. */
int rfs_diff_cut(struct rfs_fs *fs, struct rfs_dinode *di,
		 struct rfs_buf *ibuf, u64 from, u64 to);

/* Frees the node with all its pieces. */
int rfs_diff_free(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *ibuf);

#endif
