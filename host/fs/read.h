/* SPDX-License-Identifier: GPL-2.0 */
/* These functions find the blocks of a file, and read them. */
#ifndef RFSM_READ_H
#define RFSM_READ_H

#include "rfsm.h"

#define RFSM_FOUND	32	/* runs that are looked up at a time */

/* These blocks of a file follow each other, and lie in a row in one zone. */
struct rfsm_run {
	u64 addr;		/* of the first; 0: they are holes */
	u32 n;
	u16 len;		/* bytes of the last that are valid */
	bool pieces;		/* lie over it, and it is the only one */
};

/*
 * These runs follow each other in a file, for reads that begin now. The zone of a run is not reset
 * before rfsm_found_used() was told of all of it.
 */
struct rfsm_found {
	u32 n, next;		/* how many; the first of them that is left */
	struct rfsm_run run[RFSM_FOUND];
};

/*
 * Looks up one block at least, and those after it that the index has together with it, `most` in
 * all. -EINPROGRESS says that rfsm_miss_read() has to read the index first.
 */
int rfsm_look_up(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		 u32 most, struct rfsm_found *f, struct rfsm_miss *miss);
/*
 * Says that memory knows where the blocks from..to - 1 are, so that nothing of the index has to be
 * read.
 */
bool rfsm_is_known(struct rfs_sb_info *sbi, struct inode *inode, u64 from,
		   u64 to);
/* The first n blocks of the next run are being read, or are not needed. */
void rfsm_found_used(struct rfs_sb_info *sbi, struct rfsm_found *f, u32 n);
/* The zone of an address, or its block at home, is kept between these two. */
void rfsm_read_hold(struct rfs_sb_info *sbi, u64 addr);
void rfsm_read_drop(struct rfs_sb_info *sbi, u64 addr);
/*
 * Says whether the block that was read is the file's block. crc is that of its 4 KiB. The checksum
 * of the page metadata itself would say nothing more, since all used fields of it are compared.
 */
bool rfsm_block_is(const struct rfs_sb_info *sbi, const struct inode *inode,
		   u64 block, const struct rfs_oob *oob, u32 crc);
/* Does what rfsm_block_is() does. If it is not the file's block, the log says so. */
bool rfsm_block_ok(const struct rfs_sb_info *sbi, const struct inode *inode,
		   u64 block, u64 addr, const struct rfs_oob *oob, u32 crc);
int rfsm_read_folio(struct file *file, struct folio *folio);
void rfsm_readahead(struct readahead_control *rac);
/* Reads a locked folio that is not up to date, and waits for it. */
int rfsm_read_now(struct inode *inode, struct folio *folio);
int rfsm_read_module_init(void);
void rfsm_read_module_exit(void);

/*
 * Reads whole blocks from the drive into the caller's memory. It leaves out blocks that the page
 * cache has, and the end of a file within a block: it returns 0, or fewer bytes than were asked
 * for.
 */
ssize_t rfsm_direct_read(struct kiocb *iocb, struct iov_iter *to);
int rfsm_direct_init(struct rfsm_dev *dev);

#endif
