/* SPDX-License-Identifier: GPL-2.0 */
/* This is the page cache, and writes that are one transaction. */
#ifndef RFSM_PAGES_H
#define RFSM_PAGES_H

#include "append.h"

/* This block of a victim is dirty in the page cache, so that cleaning leaves it to writeback. */
struct rfsm_left {
	u32 ino;
	u64 block;
};

#define RFSM_LEFT	4096

/*
 * Copies a file's block as it is on the drive, if the page cache has it. The caller holds the
 * volume lock, and nothing is waited for.
 */
bool rfsm_cached(void *dev, u32 ino, u64 block, void *data);
/*
 * Says whether the block is dirty. If it is, this notes the block, and rfsm_write_left() writes it.
 * The caller holds the volume lock, and nothing is waited for.
 */
bool rfsm_leave_dirty(void *dev, u32 ino, u64 block);
void rfsm_write_left(struct rfs_sb_info *sbi);	/* not under the volume lock */
/* Gives back the reservations of a locked folio's blocks that stay clean. */
void rfsm_folio_unreserve(struct inode *inode, struct folio *folio);
extern const struct address_space_operations rfsm_aops;
vm_fault_t rfsm_page_mkwrite(struct vm_fault *vmf);
/* Zeroes the rest of the page in which the file ended before. */
int rfsm_zero_after_end(struct inode *inode, loff_t old_size);
/* Writes zeroes within a page, unless it is behind the file's end or a hole. */
int rfsm_zero(struct inode *inode, loff_t pos, u32 len);

/*
 * Writes the dirty pages of a range, and waits for them. The caller does not hold the volume lock.
 */
int rfsm_write_range(struct file *file, loff_t start, loff_t end);

#define RFSM_ATOMIC_MAX	0x100000	/* bytes */

/* Says whether these bytes are whole blocks, and no more than one transaction can have. */
bool rfsm_whole_blocks(loff_t pos, size_t bytes);
/*
 * Writes up to RFSM_ATOMIC_MAX bytes as one transaction, which is sent and not waited for. After an
 * error nothing was written. -EIOCBQUEUED says that all is sent and that `then` will be called,
 * which moves the position. The caller holds the inode's lock.
 */
ssize_t rfsm_atomic_write(struct kiocb *iocb, struct iov_iter *from,
			  struct rfsm_then *then);

/* Gives a folio the content and the index of the i-th block. Returns 0 or an error. */
typedef int rfsm_fill_t(struct folio *folio, u32 i, void *arg);

/* These blocks are written as one transaction, in ascending order. They need not be in a row. */
struct rfsm_span {
	u32 n;
	u32 from;	/* of the first: the first byte that is new */
	u32 to;		/* of the last: the one after the last that is new */
	u32 len;	/* of the last: its valid bytes */
	bool sync;	/* somebody waits for it */
};

/*
 * Writes such blocks as rfsm_atomic_write() does. Each try to find room fills all of them anew.
 * Bytes that are not new keep the content of the page cache, so the fill function reads them into
 * it first.
 */
int rfsm_atomic_blocks(struct inode *inode, const struct rfsm_span *span,
		       rfsm_fill_t *fill, void *arg, struct rfsm_then *then);

#endif
