/* SPDX-License-Identifier: GPL-2.0 */
/* This is the slow device of a hybrid volume. */
#ifndef RFSM_SLOW_H
#define RFSM_SLOW_H

#include "rfsm.h"

/*
 * Addresses that blocks of files are read from may be of the slow device, and have RFSM_AT_HOME
 * then. RFSM_PHASE says when such an address was looked up.
 */
#define RFSM_AT_HOME	BIT_ULL(63)
#define RFSM_PHASE	BIT_ULL(62)

/*
 * Opens the device that the option slow= names, before the core mounts; the geometry then leads to
 * it. rfsm_slow_close() is called even after an error.
 */
int rfsm_slow_open(struct rfs_sb_info *sbi, struct rfs_geometry *geo);
void rfsm_slow_close(struct rfs_sb_info *sbi);
/* Makes a replica due every commit= seconds, if the volume has replicas. */
void rfsm_slow_commit(struct rfs_sb_info *sbi);
/*
 * Says once in the kernel log that replicas fail. It is called under the volume lock, after a
 * check-point.
 */
void rfsm_slow_say_replica(struct rfs_sb_info *sbi);
/* Says why the core has not mounted with this device or without any, and returns the error. */
int rfsm_slow_refused(struct rfs_sb_info *sbi, const struct rfs_super *super,
		      int ret);
/* Says whether this device is the slow one of a volume. If it is, the log says so. */
bool rfsm_slow_alone(struct block_device *bdev);
/* Says whether a volume that was only read may be written. If not, the log says why. */
bool rfsm_slow_may_write(const struct rfs_sb_info *sbi);

/*
 * Looks up where a pointer of a hybrid volume leads; false says that it leads nowhere. The caller
 * holds the volume lock.
 */
bool rfsm_slow_ptr(const struct rfs_sb_info *sbi, const struct rfs_ptr *ptr,
		   u64 *addr, u32 *len);
/* A block at home is not written between these two. */
void rfsm_slow_hold(struct rfs_sb_info *sbi, u64 addr);
void rfsm_slow_drop(struct rfs_sb_info *sbi, u64 addr);
/* Counts so many blocks of files as read, of either device. */
void rfsm_slow_count(struct rfs_sb_info *sbi, u64 addr, u32 n);
u64 rfsm_flash_reads(const struct rfs_sb_info *sbi);
u64 rfsm_home_reads(const struct rfs_sb_info *sbi);
u64 rfsm_home_errors(const struct rfs_sb_info *sbi);
struct block_device *rfsm_slow_bdev(const struct rfs_sb_info *sbi);
/* Returns a bio for so many blocks at home, without page metadata. */
struct bio *rfsm_slow_bio(struct rfs_sb_info *sbi, blk_opf_t op, u32 blocks,
			  u64 addr);
void rfsm_slow_submit(struct rfs_sb_info *sbi, struct bio *bio);
/* Reads a block of a file that is at home. The log says if it cannot be read. */
int rfsm_slow_read_page(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
			u64 addr, struct page *page);
/*
 * Reads a block that flash has and cannot read from home. False says that it is not there, or
 * cannot be read there either.
 */
bool rfsm_slow_instead(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		       struct page *page);

#endif
