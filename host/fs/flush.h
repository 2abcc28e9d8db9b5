/* SPDX-License-Identifier: GPL-2.0 */
/* Flushes, and what has to wait for one. */
#ifndef RFSM_FLUSH_H
#define RFSM_FLUSH_H

#include "rfsm.h"

/*
 * Makes durable what the drive's volatile cache has. It waits for the drive, so the caller holds no
 * lock that others need.
 */
int rfsm_flush(struct rfs_sb_info *sbi);
/* An atomic write of several blocks has completed, and its writeback has not ended yet. */
void rfsm_atomic_completed(struct inode *inode);
/*
 * Pages that are sent next may hold bytes of atomic writes beside others, so these writes are made
 * durable, by a flush if the drive's cache is volatile. Returns 0 or an error.
 */
int rfsm_settle(struct inode *inode);
/*
 * The inode leaves memory, so from now on rfsm_settle() of any inode flushes for its atomic writes.
 */
void rfsm_settle_later(struct inode *inode);

#endif
