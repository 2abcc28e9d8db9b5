/* SPDX-License-Identifier: GPL-2.0 */
/* Blocks come from the slow device to flash, or are written there and not to flash. */
#ifndef RFSM_BYPASS_H
#define RFSM_BYPASS_H

#include "slow.h"

int rfsm_fill_init(struct rfs_sb_info *sbi);
void rfsm_fill_exit(struct rfs_sb_info *sbi);
/* Notes that a block was read at home: it may come to flash. It is called from any context. */
void rfsm_fill_soon(struct rfs_sb_info *sbi, struct inode *inode, u64 block);

bool rfsm_may_bypass(const struct rfs_sb_info *sbi);
bool rfsm_bypasses(struct inode *inode);
/* The bound bypass= is, or becomes, that of opt. */
void rfsm_bypass_bound(struct rfs_sb_info *sbi, const struct rfsm_options *opt);
void rfsm_bypass_load(struct inode *inode);	/* an inode comes to memory */
/* Makes the blocks durable that a file has written home. */
int rfsm_bypass_sync(struct inode *inode);
/*
 * Writes blocks home that are reserved and under writeback, and ends their writeback. Returns how
 * many were written; the others are to go to flash. len is the valid bytes of the last one.
 */
u32 rfsm_bypass(struct inode *inode, u64 block, struct folio **folio, u32 n,
		u32 len);

#endif
