/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extended attributes, all of an inode in one block. */
#ifndef RFS_XATTR_H
#define RFS_XATTR_H

#include "buffer/buffer.h"

#define RFS_XATTR_CREATE	0x1	/* -EEXIST if it is there */
#define RFS_XATTR_REPLACE	0x2	/* -ENODATA if it is not */

/*
 * The bytes of a value, -ENODATA, or -ERANGE if it is longer than room. Without
 * room (0) nothing but its length.
 */
int rfs_xattr_get(struct rfs_fs *fs, u32 ino, const char *name, void *value,
		  u32 room);

/* The one at *at, which then is where the next is; NULL at the end. */
int rfs_xattr_next(struct rfs_fs *fs, u32 ino, u32 *at,
		   const struct rfs_xattr **out);

/* Add one to an image of RFS_BODY_BYTES; -ENOSPC if it does not fit */
int rfs_xattr_pack(__le32 *image, u32 *used, const char *name, const void *value,
		   u32 len);

/* For log/apply.c: what a record says, all of a new inode, none any more */
int rfs_xattr_apply(struct rfs_fs *fs, const struct rfs_rec *rec,
		    const u8 *name, const u8 *value);
int rfs_xattr_fill(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf, const u8 *image, u32 bytes);
int rfs_xattr_drop(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf);

#endif
