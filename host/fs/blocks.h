/* SPDX-License-Identifier: GPL-2.0 */
/* These functions know which blocks of a large folio are dirty, and make it folios of one page. */
#ifndef RFSM_BLOCKS_H
#define RFSM_BLOCKS_H

#include "rfsm.h"

/* These bytes of a block are new, from the first to the one before `to`. */
struct rfsm_bytes {
	u16 from, to;
};

#define RFSM_LARGEST	5	/* order of the largest folio */

/* This is the private value of a large folio that is, or was, written to. Each block has a bit. */
struct rfsm_blocks {
	/* The folio's lock protects these. */
	u32 filled;		/* its content is there; else the drive has zeroes */
	u32 dirty;
	u32 partly;		/* it is dirty, and only some of its bytes are new */
	/* These are changed under the volume lock. */
	u32 reserved;		/* for it there is a place */
	u32 holes;		/* and that it was a hole */
	atomic_t sent;		/* it is under writeback */
	struct rfsm_bytes *bytes;	/* of each: which those are; NULL: never of any */
};

static inline struct rfsm_blocks *rfsm_blocks_in(const struct folio *folio)
{
	return folio_get_private((struct folio *)folio);
}

/* Returns the bits of n blocks of a folio, one at least, from a block of the file on. */
static inline u32 rfsm_blocks_mask(const struct folio *folio, u64 block, u32 n)
{
	u32 from = block - folio->index;

	return GENMASK(from + n - 1, from);
}

/* The caller has the folio locked, unless a comment says otherwise. */
/* Gives a large folio its value, and does nothing to others. -ENOMEM is the only error. */
int rfsm_blocks_attach(struct folio *folio);
/* Takes the value away. Nothing is reserved by then. */
void rfsm_blocks_detach(struct folio *folio);
/* Prepares a write of these bytes. Other bytes of a block without content become zeroes. */
void rfsm_blocks_begin(struct folio *folio, loff_t pos, size_t len);
/*
 * So many of these bytes were copied. Returns how many of them count, whose blocks are dirty now; 0
 * says that all have to be copied again. With compact=on the value also says which bytes of a block
 * are new, unless all are.
 */
size_t rfsm_blocks_end(struct folio *folio, loff_t pos, size_t len,
		       size_t copied);
/* Gives all blocks content: those that had none become zeroes. */
void rfsm_blocks_fill(struct folio *folio);
/* Waits until no block with these bytes is under writeback. */
void rfsm_blocks_wait(struct folio *folio, loff_t pos, size_t len);
/*
 * Begins writeback. size is that of the file. Returns the blocks that are to be sent, and none are
 * dirty any more; 0 says that writeback has not begun. *partly says which of them have bytes that
 * are not new.
 */
u32 rfsm_blocks_send(struct folio *folio, loff_t size, u32 *partly);
/*
 * Returns the new bytes of a block that is sent in part, while it is under writeback. The folio
 * need not be locked.
 */
const struct rfsm_bytes *rfsm_blocks_bytes(const struct folio *folio, u64 block);
/*
 * So many blocks of any folio are on the drive. With the last one writeback ends. The folio need
 * not be locked.
 */
void rfsm_blocks_sent(struct folio *folio, u64 block, u32 n);
/* Blocks that are dropped are not dirty any more. */
void rfsm_blocks_drop(struct folio *folio, u64 block, u32 n);
/* Returns the blocks that are neither dirty nor under writeback. */
u32 rfsm_blocks_clean(const struct folio *folio);

/* Returns where a locked folio has a block of its file. */
static inline u8 *rfsm_folio_block(struct folio *folio, u64 block)
{
	return folio_address(folio) + (block - folio->index) * RFS_BLOCK_BYTES;
}

/*
 * The pages of a large folio, which is locked and clean, become folios of their own, and it leaves
 * the file. If it is up to date, the caller holds the inode's lock or invalidate_lock, so that
 * nobody truncates the file.
 */
void rfsm_split(struct inode *inode, struct folio *folio);
/*
 * Says whether this locked folio has one page. If it has not, it is unlocked and put, and written
 * if it was not clean: the caller looks for the page again.
 */
bool rfsm_single(struct inode *inode, struct folio *folio);

#endif
