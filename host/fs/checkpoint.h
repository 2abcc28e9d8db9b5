/* SPDX-License-Identifier: GPL-2.0 */
/* Check-points, and the gate that they close. */
#ifndef RFSM_CHECKPOINT_H
#define RFSM_CHECKPOINT_H

#include "rfsm.h"

/*
 * Writes a check-point. The caller holds the volume lock, which is dropped while appends are waited
 * for.
 */
int rfsm_checkpoint(struct rfs_sb_info *sbi, u32 flags);
/* This is the same for rfs_compact(). */
int rfsm_checkpoint_of(struct rfs_fs *fs, u32 flags);
/* Writes a check-point, unless nothing has changed since the last one. */
int rfsm_sync(struct rfs_sb_info *sbi, u32 flags);

/* If others are in the next epoch, waits until the check-point before it is durable. */
void rfsm_wait_commit(struct rfs_sb_info *sbi);
void rfsm_dev_durable(void *dev);	/* of rfs_dev_ops, as the next */
void rfsm_dev_frozen(void *dev);
bool rfsm_dev_lets_change(void *dev);
/* Makes all records durable. The caller holds the volume lock, which may be dropped meanwhile. */
int rfsm_log_sync(struct rfs_sb_info *sbi);
/* Stops all writing; every operation fails from now on. */
void rfsm_shutdown(struct rfs_sb_info *sbi);
/*
 * Makes room for a change that asks for no new block: it writes a check-point, or compacts
 * metadata. The caller holds the lock. -ENOBUFS says that it is done. It waits only for requests in
 * flight, so writeback and the eviction of an inode can call it.
 */
int rfsm_compact(struct rfs_sb_info *sbi);

#endif
