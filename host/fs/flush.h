/* SPDX-License-Identifier: GPL-2.0 */
/* These are flushes, and the writes that have to wait for one. */
#ifndef RFSM_FLUSH_H
#define RFSM_FLUSH_H

#include "rfsm.h"

/*
 * Makes the content of the drive's volatile cache durable. It waits for the drive, so the caller
 * holds no lock that others need.
 */
int rfsm_flush(struct rfs_sb_info *sbi);
/* Notes that an atomic write of several blocks has completed. Its writeback has not ended yet. */
void rfsm_atomic_completed(struct inode *inode);
/*
 * Makes the atomic writes of an inode durable, by a flush if the drive's cache is volatile. Pages
 * that are sent next may hold bytes of these writes beside others. Returns 0 or an error.
 */
int rfsm_settle(struct inode *inode);
/* The inode leaves memory. From now on rfsm_settle() of any inode flushes for its atomic writes. */
void rfsm_settle_later(struct inode *inode);

#endif
