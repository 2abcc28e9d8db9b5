/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are extended attributes. All attributes of an inode are in one block. */
#ifndef RFS_XATTR_H
#define RFS_XATTR_H

#include "buffer/buffer.h"

#define RFS_XATTR_CREATE	0x1	/* -EEXIST if it is there */
#define RFS_XATTR_REPLACE	0x2	/* -ENODATA if it is not */

/*
 * Returns the bytes of a value, -ENODATA, or -ERANGE if it is longer than room. Without room (0)
 * only its length is returned.
 */
int rfs_xattr_get(struct rfs_fs *fs, u32 ino, const char *name, void *value,
		  u32 room);

/* Returns the attribute at *at, and moves *at to the next one. *out is NULL at the end. */
int rfs_xattr_next(struct rfs_fs *fs, u32 ino, u32 *at,
		   const struct rfs_xattr **out);

/* Adds an attribute to an image of RFS_BODY_BYTES. -ENOSPC says that it does not fit. */
int rfs_xattr_pack(__le32 *image, u32 *used, const char *name, const void *value,
		   u32 len);

/* These are for log/apply.c: they apply a change, all attributes of a new inode, and their end. */
int rfs_xattr_apply(struct rfs_fs *fs, const struct rfs_rec *rec,
		    const u8 *name, const u8 *value);
int rfs_xattr_fill(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf, const u8 *image, u32 bytes);
int rfs_xattr_drop(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf);

#endif
