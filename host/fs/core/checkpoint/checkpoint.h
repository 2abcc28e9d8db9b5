/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are check-points, and the recovery of changes after the newest one. */
#ifndef RFS_CHECKPOINT_H
#define RFS_CHECKPOINT_H

#include "volume/volume.h"

int rfs_super_load(struct rfs_fs *fs);
void rfs_super_fill(struct rfs_fs *fs);
int rfs_super_write(struct rfs_fs *fs, u32 zone);
int rfs_checkpoint(struct rfs_fs *fs, u32 flags);

/*
 * Does what rfs_checkpoint() does, but others may change the volume while it is made durable, where
 * they can (rfs_dev_ops.frozen) and there is room. No other one begins before that is over
 * (rfs_fs.commit).
 */
int rfs_checkpoint_early(struct rfs_fs *fs);

/*
 * Writes dirty blocks before a check-point, where there is room. Others may use the volume whenever
 * this waits for the drive, but not for check-points and cleaning.
 */
void rfs_write_early(struct rfs_fs *fs);
int rfs_early_alloc(struct rfs_fs *fs);
/*
 * Enters the new address of a node or block of inodes. It was at old, and is in use at buf->addr
 * now.
 */
int rfs_block_moved(struct rfs_fs *fs, struct rfs_buf *buf, u64 old);
int rfs_cp_alloc(struct rfs_fs *fs);	/* when the sizes of its tables are known */
int rfs_cp_load(struct rfs_fs *fs);
/* Takes the blocks of a check-point that was written (replicate.c). *cp is NULL if it did. */
void rfs_replicate_cp(struct rfs_fs *fs, struct rfs_cp **cp, u32 blocks);
/*
 * Makes a replica of the newest check-point, if one is due or `now` is set. No zone that the
 * check-point leads to may have been reset.
 */
void rfs_replicate(struct rfs_fs *fs, bool now);
int rfs_recover(struct rfs_fs *fs);
u8 rfs_stream_of(u8 type);

#endif
