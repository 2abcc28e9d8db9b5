/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Quotas count the blocks and inodes of users and groups, and limit them. */
#ifndef RFS_QUOTA_H
#define RFS_QUOTA_H

#include "buffer/buffer.h"

/* These blocks are reserved for dirty pages of somebody's files. They are found by type and id. */
struct rfs_quota_rsv {
	struct rfs_quota_rsv *next;
	u32 type, id;
	u64 blocks;
};

void rfs_quota_recovered(struct rfs_fs *fs);	/* all of the window is applied */

/*
 * Returns the usage and limits of a user or group. *rsv becomes the blocks that are reserved in
 * addition.
 */
int rfs_quota_get(struct rfs_fs *fs, u32 type, u32 id, struct rfs_quota *out,
		  u64 *rsv);

/* Finds the first id, from *id on, with usage or limits. -ENOENT says that there is none. */
int rfs_quota_next(struct rfs_fs *fs, u32 type, u32 *id);

/* Says how long a soft limit may be exceeded, in s. */
int rfs_quota_grace(struct rfs_fs *fs, u32 type, u64 *space, u64 *inodes);

/* Finds the first block of quotas from *off on. -ENOENT says that there is none. */
int rfs_quota_block(struct rfs_fs *fs, u64 *off, struct rfs_buf **out);
int rfs_quota_entry(struct rfs_fs *fs, u32 type, u32 id, bool create,
		    struct rfs_quota **out, struct rfs_buf **buf);

#define RFS_QUOTA_BOTH	(1U << RFS_QUOTA_USER | 1U << RFS_QUOTA_GROUP)

/*
 * Asks whether the owners may have so many blocks and inodes more; -EDQUOT says no. types has a bit
 * for each type that is asked about, and id has an element for each type.
 */
int rfs_quota_may(struct rfs_fs *fs, u32 types, const u32 *id, u64 blocks,
		  u64 inodes);

/* Does the same for the owners of an inode, and blocks. */
int rfs_quota_may_grow(struct rfs_fs *fs, u32 ino, u64 blocks);

/* Applies a record of limits, for log/apply.c. */
int rfs_quota_apply(struct rfs_fs *fs, const struct rfs_rec *rec,
		    const u8 *limits);

/*
 * Adds so many blocks and inodes to the owner of a type. It is called only while the volume counts.
 */
int rfs_quota_charge(struct rfs_fs *fs, u32 type, u32 id, s64 blocks,
		     s64 inodes);

/* Does the same for both owners of an inode. */
int rfs_quota_add(struct rfs_fs *fs, const struct rfs_dinode *di, s64 blocks,
		  s64 inodes);

/* Reserves blocks for an inode's pages, or ends reservations, if blocks is negative. */
int rfs_quota_reserve(struct rfs_fs *fs, const struct rfs_dinode *di,
		      s64 blocks);
int rfs_quota_reserve_one(struct rfs_fs *fs, u32 type, u32 id, s64 blocks);
void rfs_quota_forget(struct rfs_fs *fs);	/* what is held */
u32 rfs_owner(const struct rfs_dinode *di, u32 type);

#endif
