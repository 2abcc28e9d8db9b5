/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef RFS_DIR_H
#define RFS_DIR_H

#include "volume/volume.h"

struct rfs_entry {
	u64 pos;		/* of the next entry */
	u32 ino;
	u8 type;
	u8 len;
	u8 name[RFS_NAME_MAX];
};

int rfs_dir_find(struct rfs_fs *fs, u32 dir, const void *name, u32 len,
		 u32 *ino);
int rfs_dir_add(struct rfs_fs *fs, u32 dir, const void *name, u32 len, u32 ino,
		u8 type);
int rfs_dir_remove(struct rfs_fs *fs, u32 dir, const void *name, u32 len);
int rfs_dir_set(struct rfs_fs *fs, u32 dir, const void *name, u32 len, u32 ino,
		u8 type);

/*
 * Returns the entry at *at of a leaf, and moves *at to the next one. -ENOENT
 * says that the leaf ends there.
 */
int rfs_dir_entry(struct rfs_fs *fs, u32 dir, u32 block, u32 *at,
		  struct rfs_entry *out);

/*
 * Returns the first entry at or after pos, in the order of hashes. -ENOENT says
 * that there is none.
 */
int rfs_dir_next(struct rfs_fs *fs, u32 dir, u64 pos, struct rfs_entry *out);

#endif
