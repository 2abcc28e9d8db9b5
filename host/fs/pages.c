// SPDX-License-Identifier: GPL-2.0
/*
 * This is the page cache. A dirty folio's private value has the reservations of its blocks. They
 * end when the blocks are written or dropped.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sort.h>
#include <linux/writeback.h>

#include "rfsm.h"
#include "error.h"
#include "flush.h"
#include "wake.h"
#include "blocks.h"
#include "reserve.h"
#include "append.h"
#include "bypass.h"
#include "read.h"
#include "pages.h"
#include "tree/tree.h"

static struct rfs_sb_info *rfsm_of_folio(const struct folio *folio)
{
	return RFS_SB(folio->mapping->host->i_sb);
}

/* Blocks that were dropped as a whole are not dirty any more. */
static void rfsm_invalidate_folio(struct folio *folio, size_t offset,
				  size_t length)
{
	struct rfs_sb_info *sbi = rfsm_of_folio(folio);
	u64 block = folio->index + DIV_ROUND_UP(offset, PAGE_SIZE);
	u64 end = folio->index + (offset + length) / PAGE_SIZE;

	if (block >= end || !folio_test_private(folio))
		return;
	rfsm_lock(sbi);
	rfsm_unreserve(sbi, folio->mapping->host, folio, block, end - block);
	rfsm_unlock(sbi);
	if (!folio_test_large(folio))
		folio_clear_checked(folio);
	else if (length == folio_size(folio))
		rfsm_blocks_detach(folio);
	else
		rfsm_blocks_drop(folio, block, end - block);
}

/*
 * A folio may be dirtied without rfsm_write_end(): by a mapping, or by the owner of a pinned page,
 * who does not lock it. Neither says which of its bytes are new, so all of them may be.
 */
static bool rfsm_dirty_folio(struct address_space *mapping, struct folio *folio)
{
	folio_set_checked(folio);
	return filemap_dirty_folio(mapping, folio);
}

/* A folio that has a reservation is not released. */
static bool rfsm_release_folio(struct folio *folio, gfp_t gfp)
{
	if (!folio_test_large(folio) || folio_test_dirty(folio) ||
	    folio_test_writeback(folio) ||
	    READ_ONCE(rfsm_blocks_in(folio)->reserved))
		return false;
	rfsm_blocks_detach(folio);
	return true;
}

/*
 * Returns the folio of a block of any inode, locked, or NULL if it is not there or somebody else
 * has it locked. The inode may go meanwhile, but not while a folio of it is locked.
 */
static struct folio *rfsm_trylock_folio(struct super_block *sb, u32 ino,
					u64 block)
{
	struct address_space *mapping = NULL;
	struct folio *folio = NULL;
	struct inode *inode;

	rcu_read_lock();
	inode = find_inode_by_ino_rcu(sb, ino);
	if (inode) {
		mapping = &inode->i_data;
		folio = filemap_get_folio(mapping, block);
	}
	rcu_read_unlock();
	if (IS_ERR_OR_NULL(folio))
		return NULL;
	if (!folio_trylock(folio)) {
		folio_put(folio);
		return NULL;
	}
	if (folio->mapping == mapping && folio_contains(folio, block) &&
	    folio_test_uptodate(folio))
		return folio;
	folio_unlock(folio);
	folio_put(folio);
	return NULL;
}

static struct super_block *rfsm_sb_of(void *dev)
{
	return container_of(dev, struct rfs_sb_info, dev)->sb;
}

/*
 * A folio that is neither dirty nor under writeback has the content that the index leads to. The
 * index changes under the volume lock, before writeback ends.
 */
bool rfsm_cached(void *dev, u32 ino, u64 block, void *data)
{
	struct folio *folio = rfsm_trylock_folio(rfsm_sb_of(dev), ino, block);
	bool found;

	if (!folio)
		return false;
	found = !folio_test_dirty(folio) && !folio_test_writeback(folio);
	if (found)
		memcpy(data, rfsm_folio_block(folio, block), RFS_BLOCK_BYTES);
	folio_unlock(folio);
	folio_put(folio);
	return found;
}

/*
 * Says whether all of a folio is dirty, and reserved. A block of a large folio that is dirty may
 * not be, so that does not count.
 */
static bool rfsm_is_dirty(const struct folio *folio)
{
	return folio_test_dirty(folio) && !folio_test_large(folio) &&
	       folio_test_private(folio) && !folio_test_writeback(folio);
}

bool rfsm_leave_dirty(void *dev, u32 ino, u64 block)
{
	struct rfs_sb_info *sbi = container_of(dev, struct rfs_sb_info, dev);
	struct folio *folio;
	bool dirty;

	if (sbi->lefts == RFSM_LEFT)
		return false;
	folio = rfsm_trylock_folio(sbi->sb, ino, block);
	if (!folio)
		return false;
	dirty = rfsm_is_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
	if (dirty) {
		sbi->left[sbi->lefts].ino = ino;
		sbi->left[sbi->lefts++].block = block;
	}
	return dirty;
}

/*
 * Says whether these bytes of a write, which are in a folio, can be written to it as it is. The
 * blocks of a large folio that have no content yet must have none on the drive either, or be
 * written as a whole.
 *
 * Linux counts all of a folio as dirty. Random writes make only a small part of it dirty. So it
 * would be written back early, a few blocks of each index node at a time. So only a sequential
 * writer gets a clean folio that is large.
 */
static bool rfsm_may_write_to(struct inode *inode, struct folio *folio,
			      loff_t pos, size_t len)
{
	if (!folio_test_large(folio))
		return true;
	if (pos == folio_pos(folio) && len == folio_size(folio))
		return true;
	if (!folio_test_dirty(folio) && pos != RFS_I(inode)->next)
		return false;
	return folio_test_uptodate(folio) || folio_test_private(folio) ||
	       folio_pos(folio) >= i_size_read(inode);
}

/*
 * Says how large a new folio may be: as large as the write or, where the file grows, as a quarter
 * of the bytes that were written in a row before. So the part of a small file's folio beyond its
 * end, which Linux counts as dirty, is small.
 */
static fgf_t rfsm_folio_order(struct inode *inode, loff_t pos, size_t len)
{
	struct rfs_inode_info *ri = RFS_I(inode);
	loff_t start = pos - offset_in_page(pos);

	if (start >= i_size_read(inode))
		return fgf_set_order(pos == ri->next ?
				     max_t(u64, len, ri->fresh / 4) : len);
	return start == pos ? fgf_set_order(len) : 0;
}

/*
 * Returns the number of blocks to reserve when the first block of a large folio is written that is
 * overwritten in order.
 */
static u32 rfsm_ahead(struct inode *inode, struct folio *folio, loff_t pos)
{
	u64 end = DIV_ROUND_UP_ULL(i_size_read(inode), PAGE_SIZE);
	struct rfs_inode_info *ri = RFS_I(inode);
	u64 block = pos >> PAGE_SHIFT;

	if (!folio_test_large(folio) || rfsm_is_reserved(folio, block) ||
	    pos != ri->next || ri->fresh < folio_size(folio) || end <= block)
		return 0;
	return min_t(u64, end, folio_next_index(folio)) - block;
}

/* Returns a locked folio that may be dirtied. *len becomes the bytes that lie in it. */
static int rfsm_folio_get_reserved(struct inode *inode, loff_t pos,
				   u32 *len, struct folio **out)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	enum rfsm_waited waited = RFSM_NOT_YET;
	u64 block = pos >> PAGE_SHIFT;
	fgf_t how = FGP_LOCK | FGP_WRITE | FGP_CREAT |
		    rfsm_folio_order(inode, pos, *len);
	struct folio *folio;
	u32 n, bytes;
	int ret;

	for (;;) {
		folio = __filemap_get_folio(inode->i_mapping, block, how,
					    mapping_gfp_mask(inode->i_mapping));
		if (IS_ERR(folio))
			return PTR_ERR(folio);
		bytes = min_t(size_t, *len, folio_size(folio) -
			      offset_in_folio(folio, pos));
		if (!rfsm_may_write_to(inode, folio, pos, bytes) &&
		    !rfsm_single(inode, folio))
			continue;
		if (!folio_test_large(folio))
			folio_wait_stable(folio);
		else if (folio_test_writeback(folio))
			rfsm_blocks_wait(folio, pos, bytes);
		n = ((pos + bytes - 1) >> PAGE_SHIFT) - block + 1;
		ret = rfsm_reserve(sbi, inode, folio, block, n,
				   max(n, rfsm_ahead(inode, folio, pos)),
				   waited);
		if (!ret) {
			*len = bytes;
			*out = folio;
			return 0;
		}
		rfsm_folio_unreserve(inode, folio);
		folio_unlock(folio);
		folio_put(folio);
		if (ret != -EAGAIN)
			return rfsm_failed(sbi, ret);
		ret = rfsm_wait_room_for(sbi, n, rfsm_is_small_writer(inode));
		if (ret < 0)
			return ret;
		waited = ret ? RFSM_NO_SPACE : RFSM_WAITED;
	}
}

/*
 * Gives back the reservations of a large folio's blocks that are neither dirty nor sent. If none of
 * it has content, its private value goes, too.
 */
static void rfsm_blocks_unreserve(struct inode *inode, struct folio *folio)
{
	unsigned long clean = rfsm_blocks_clean(folio) &
			      READ_ONCE(rfsm_blocks_in(folio)->reserved);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u32 i;

	if (clean) {
		rfsm_lock(sbi);
		for_each_set_bit(i, &clean, folio_nr_pages(folio))
			rfsm_unreserve(sbi, inode, folio, folio->index + i, 1);
		rfsm_unlock(sbi);
	}
	if (!rfsm_blocks_in(folio)->filled)
		rfsm_blocks_detach(folio);
}

void rfsm_folio_unreserve(struct inode *inode, struct folio *folio)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);

	if (!folio_test_private(folio))
		return;
	if (folio_test_large(folio)) {
		rfsm_blocks_unreserve(inode, folio);
		return;
	}
	if (folio_test_dirty(folio))
		return;
	rfsm_lock(sbi);
	rfsm_unreserve(sbi, inode, folio, folio->index, 1);
	rfsm_unlock(sbi);
}

static int rfsm_write_begin(struct file *file, struct address_space *mapping,
			    loff_t pos, unsigned int len, struct folio **out,
			    void **data)
{
	struct inode *inode = mapping->host;
	size_t from = offset_in_page(pos);
	loff_t start = pos - from;
	struct folio *folio;
	int ret;

again:
	ret = rfsm_folio_get_reserved(inode, pos, &len, &folio);
	if (ret)
		return ret;
	if (folio_test_large(folio)) {
		if (!folio_test_uptodate(folio))
			rfsm_blocks_begin(folio, pos, len);
		*out = folio;
		return 0;
	}
	if (folio_test_uptodate(folio) || len == PAGE_SIZE) {
		*out = folio;
		return 0;
	}
	if (start >= i_size_read(inode) ||
	    (!from && pos + len >= i_size_read(inode))) {
		folio_zero_segments(folio, 0, from, from + len, PAGE_SIZE);
		*out = folio;
		return 0;
	}
	ret = rfsm_read_now(inode, folio);
	if (!ret && folio->mapping == mapping) {
		/* The folio was unlocked, so somebody may have written it meanwhile. */
		folio_wait_stable(folio);
		if (folio_test_private(folio)) {
			*out = folio;
			return 0;
		}
	} else if (folio->mapping == mapping) {
		rfsm_folio_unreserve(inode, folio);
	}
	folio_unlock(folio);
	folio_put(folio);
	if (ret)
		return ret;
	goto again;
}

/* Notes that bytes were written. The caller holds the inode's lock. */
static void rfsm_wrote(struct inode *inode, loff_t pos, u32 bytes)
{
	struct rfs_inode_info *ri = RFS_I(inode);

	ri->fresh = pos == ri->next ? ri->fresh + bytes : bytes;
	ri->next = pos + bytes;
	if (ri->next > i_size_read(inode))
		i_size_write(inode, ri->next);
}

static int rfsm_write_end(struct file *file, struct address_space *mapping,
			  loff_t pos, unsigned int len, unsigned int copied,
			  struct folio *folio, void *data)
{
	struct inode *inode = mapping->host;
	bool large = folio_test_large(folio), all = copied == len;

	/* A block that was not copied as a whole has no content yet, so the caller begins again. */
	if (large)
		copied = rfsm_blocks_end(folio, pos, len, copied);
	else if (copied < len && !folio_test_uptodate(folio))
		copied = 0;
	if (copied) {
		if (!large) {
			folio_mark_uptodate(folio);
			rfsm_dirty_bytes(folio, offset_in_page(pos),
					 offset_in_page(pos) + copied);
		}
		filemap_dirty_folio(mapping, folio);
		rfsm_wrote(inode, pos, copied);
	}
	if (!all)
		rfsm_folio_unreserve(inode, folio);
	folio_unlock(folio);
	folio_put(folio);
	return copied;
}

/* Says whether a block of a locked folio is newer than the one on the drive. */
static bool rfsm_is_written(struct folio *folio, u64 block)
{
	if (!folio_test_large(folio))
		return folio_test_private(folio) || folio_test_dirty(folio);
	return folio_test_private(folio) &&
	       ~rfsm_blocks_clean(folio) & rfsm_blocks_mask(folio, block, 1);
}

/*
 * Returns 1 if neither the medium nor the page cache has content for the block, 0 if one of them
 * has, or an error.
 */
static int rfsm_is_hole(struct inode *inode, u64 block)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct rfs_ptr ptr;
	struct folio *folio;
	bool written;
	int ret;

	folio = filemap_lock_folio(inode->i_mapping, block);
	if (!IS_ERR(folio)) {
		written = rfsm_is_written(folio, block);
		folio_unlock(folio);
		folio_put(folio);
		if (written)
			return 0;
	}
	rfsm_query(sbi, ret, rfs_map_get(sbi->fs, inode->i_ino, block, &ptr));
	return ret ? rfsm_failed(sbi, ret) :
		     !rfs_addr(ptr.addr) && ptr.kind != RFS_PTR_PIECE;
}

int rfsm_zero(struct inode *inode, loff_t pos, u32 len)
{
	struct address_space *mapping = inode->i_mapping;
	loff_t size = i_size_read(inode);
	struct folio *folio;
	int ret;

	if (!len || pos >= size)
		return 0;
	ret = rfsm_is_hole(inode, pos >> PAGE_SHIFT);
	if (ret)
		return min(ret, 0);
	len = min_t(loff_t, len, size - pos);
	ret = rfsm_write_begin(NULL, mapping, pos, len, &folio, NULL);
	if (ret)
		return ret;
	folio_zero_range(folio, offset_in_folio(folio, pos), len);
	rfsm_write_end(NULL, mapping, pos, len, len, folio, NULL);
	return 0;
}

vm_fault_t rfsm_page_mkwrite(struct vm_fault *vmf)
{
	struct folio *folio = page_folio(vmf->page);
	struct inode *inode = file_inode(vmf->vma->vm_file);
	struct address_space *mapping = inode->i_mapping;
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	enum rfsm_waited waited = RFSM_NOT_YET;
	int ret = 0;

	sb_start_pagefault(inode->i_sb);
	file_update_time(vmf->vma->vm_file);
	for (;;) {
		filemap_invalidate_lock_shared(mapping);
		folio_lock(folio);
		if (folio->mapping != mapping ||
		    folio_pos(folio) >= i_size_read(inode)) {
			ret = -EFAULT;	/* truncated: fault again */
			break;
		}
		if (folio_test_large(folio)) {
			folio_get(folio);
			rfsm_single(inode, folio);
			filemap_invalidate_unlock_shared(mapping);
			sb_end_pagefault(inode->i_sb);
			return VM_FAULT_NOPAGE;	/* and again: of one page */
		}
		folio_wait_stable(folio);
		ret = rfsm_reserve(sbi, inode, folio, folio->index, 1, 1,
				   waited);
		if (ret != -EAGAIN)
			break;
		folio_unlock(folio);
		filemap_invalidate_unlock_shared(mapping);
		ret = rfsm_wait_room_fault(sbi, rfsm_is_small_writer(inode),
					   vmf->vma->vm_mm);
		if (ret < 0) {
			/* A task that is killed does not come back to the page, and others do. */
			sb_end_pagefault(inode->i_sb);
			return VM_FAULT_NOPAGE;
		}
		waited = ret ? RFSM_NO_SPACE : RFSM_WAITED;
	}
	if (!ret)
		folio_mark_dirty(folio);
	else
		folio_unlock(folio);
	filemap_invalidate_unlock_shared(mapping);
	sb_end_pagefault(inode->i_sb);
	if (!ret)
		return VM_FAULT_LOCKED;
	if (ret == -EFAULT)
		return VM_FAULT_NOPAGE;
	return vmf_fs_error(rfsm_failed(sbi, ret));
}

/*
 * Zeroes the rest of the last page. A mapping may have written behind the end of the file, and
 * these bytes must not be seen when the file grows. On the drive the block ends at its valid
 * length.
 */
int rfsm_zero_after_end(struct inode *inode, loff_t old_size)
{
	size_t from = offset_in_page(old_size);
	struct folio *folio;

	if (!from)
		return 0;
	folio = filemap_lock_folio(inode->i_mapping, old_size >> PAGE_SHIFT);
	if (IS_ERR(folio))
		return 0;
	if (!folio_test_large(folio)) {	/* else no mapping has written it */
		folio_wait_stable(folio);
		folio_zero_segment(folio, from, PAGE_SIZE);
	}
	folio_unlock(folio);
	folio_put(folio);
	return 0;
}

static void rfsm_batch_write(struct inode *inode, struct rfsm_batch *b,
			     bool sync)
{
	u32 home = 0;
	int ret;

	if (!b->n)
		return;
	/*
	 * It is not known well enough which bytes of a folio are new. A block that is sent home may
	 * come to flash as a fill, and then be there without the other pages of an atomic write of
	 * which it has bytes.
	 */
	ret = rfsm_settle(inode);
	if (ret)
		mapping_set_error(inode->i_mapping, ret);
	if (rfsm_bypasses(inode))
		home = rfsm_bypass(inode, b->block, b->folio, b->n, b->len);
	b->n -= home;
	if (!b->n)
		return;
	rfsm_append(RFS_SB(inode->i_sb), inode, b->block + home,
		    b->folio + home, b->n, b->len,
		    sync ? RFSM_APPEND_SYNC : 0);
	b->n = 0;
}

/*
 * Adds a block that is under writeback. If it does not follow the blocks in the batch, these are
 * written first. size was the file's when writeback began.
 */
static void rfsm_batch_block(struct inode *inode, struct rfsm_batch *b,
			     struct folio *folio, u64 block, loff_t size,
			     bool sync)
{
	if (b->n && (b->n == RFSM_BATCH_MAX || b->len < RFS_BLOCK_BYTES ||
		     block != b->block + b->n))
		rfsm_batch_write(inode, b, sync);
	if (!b->n)
		b->block = block;
	b->len = min_t(loff_t, RFS_BLOCK_BYTES, size - (block << PAGE_SHIFT));
	b->folio[b->n++] = folio;
}

/*
 * Adds a block under writeback that is no piece, together with its neighbours if they are in the
 * batch.
 */
static void rfsm_batch_put(struct inode *inode, struct rfsm_batch *b,
			   const struct rfsm_small *small, bool sync)
{
	u64 block = small->block;

	if (b->n && b->n < RFSM_BATCH_MAX && small->len == RFS_BLOCK_BYTES &&
	    block + 1 == b->block) {
		memmove(&b->folio[1], &b->folio[0], b->n * sizeof(*b->folio));
		b->folio[0] = small->folio;
		b->block = block;
		b->n++;
		return;
	}
	rfsm_batch_block(inode, b, small->folio, block,
			 (loff_t)(block << PAGE_SHIFT) + small->len, sync);
}

/* Blocks of which few bytes are new become pieces, or pages among the others. */
static void rfsm_batch_smalls(struct inode *inode, struct rfsm_batch *b,
			      const struct writeback_control *wbc)
{
	bool sync = wbc->sync_mode == WB_SYNC_ALL;
	u32 i;

	rfsm_smalls_write(inode, b, sync && !wbc->for_sync);
	for (i = 0; i < b->smalls; i++)
		rfsm_batch_put(inode, b, &b->small[i], sync);
	b->smalls = 0;
}

/* Adds a block under writeback of which only these bytes are new. */
static void rfsm_batch_part(struct inode *inode, struct rfsm_batch *b,
			    struct folio *folio, u64 block,
			    const struct rfsm_bytes *bytes, loff_t size,
			    const struct writeback_control *wbc)
{
	if (rfsm_bypasses(inode) ||
	    !rfsm_small_add(b, folio, block, bytes, size))
		rfsm_batch_block(inode, b, folio, block, size,
				 wbc->sync_mode == WB_SYNC_ALL);
	else if (b->smalls == RFSM_SMALLS)
		rfsm_batch_smalls(inode, b, wbc);
}

/* Adds the blocks of a locked large folio that were dirty, and unlocks it. */
static void rfsm_batch_add_large(struct inode *inode, struct rfsm_batch *b,
				 struct folio *folio,
				 const struct writeback_control *wbc)
{
	bool sync = wbc->sync_mode == WB_SYNC_ALL;
	u32 i, n = folio_nr_pages(folio), partly = 0;
	loff_t size = i_size_read(inode);
	u64 block = folio->index;
	unsigned long blocks = 0;

	if (folio_pos(folio) < size && folio_test_private(folio)) {
		blocks = rfsm_blocks_send(folio, size, &partly);
		/* Some blocks may have been reserved ahead, and not written. */
		rfsm_folio_unreserve(inode, folio);
	}
	folio_unlock(folio);
	for_each_set_bit(i, &blocks, n)
		if (partly & BIT(i))
			rfsm_batch_part(inode, b, folio, block + i,
					rfsm_blocks_bytes(folio, block + i),
					size, wbc);
		else
			rfsm_batch_block(inode, b, folio, block + i, size, sync);
}

/*
 * Says which bytes are new of a locked folio of one page that is to be sent. False says that all
 * may be.
 */
static bool rfsm_new_in_part(struct inode *inode, struct folio *folio,
			     struct rfsm_bytes *bytes)
{
	if (folio_test_checked(folio)) {
		/*
		 * This comes before the content is read. Whoever changes the content afterwards
		 * sets the flag again.
		 */
		folio_clear_checked(folio);
		return false;
	}
	return READ_ONCE(RFS_SB(inode->i_sb)->fs->compact) &&
	       !folio_maybe_dma_pinned(folio) && rfsm_new_bytes(folio, bytes);
}

/*
 * Adds a locked folio, which was dirty, and unlocks it. If others have to make room for it first,
 * it is dirty again, since writeback cannot wait for them: they may wait for it. A caller that
 * needs it written waits, and has it written again.
 */
static int rfsm_batch_add(struct inode *inode, struct rfsm_batch *b,
			  struct folio *folio, struct writeback_control *wbc)
{
	bool sync = wbc->sync_mode == WB_SYNC_ALL, part;
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	loff_t size = i_size_read(inode), pos = folio_pos(folio);
	struct rfsm_bytes bytes;
	int ret;

	if (folio_test_large(folio)) {
		rfsm_batch_add_large(inode, b, folio, wbc);
		return 0;
	}
	if (pos >= size) {	/* a truncate will drop it */
		folio_unlock(folio);
		return 0;
	}
	/* The owner of a pinned page may have dirtied it without notice. */
	if (!folio_test_private(folio)) {
		ret = rfsm_reserve(sbi, inode, folio, folio->index, 1, 1,
				   RFSM_WAITED);
		if (ret == -EAGAIN) {
			folio_redirty_for_writepage(wbc, folio);
			WRITE_ONCE(RFS_I(inode)->deferred, true);
			WRITE_ONCE(sbi->deferred, true);
			folio_unlock(folio);
			return 0;
		}
		if (ret) {
			ret = rfsm_failed(sbi, ret);
			mapping_set_error(inode->i_mapping, ret);
			folio_unlock(folio);
			return ret;
		}
	}
	part = rfsm_new_in_part(inode, folio, &bytes);
	if (size - pos < RFS_BLOCK_BYTES)
		folio_zero_segment(folio, size - pos, RFS_BLOCK_BYTES);
	folio_start_writeback(folio);
	folio_unlock(folio);
	if (part)
		rfsm_batch_part(inode, b, folio, folio->index, &bytes, size,
				wbc);
	else
		rfsm_batch_block(inode, b, folio, folio->index, size, sync);
	return 0;
}

static struct rfsm_batch *rfsm_batch_new(struct rfs_sb_info *sbi)
{
	struct rfsm_batch *b = mempool_alloc(&sbi->batches, GFP_NOFS);

	b->n = 0;
	b->smalls = 0;
	return b;
}

static int rfsm_writepages(struct address_space *mapping,
			   struct writeback_control *wbc)
{
	bool sync = wbc->sync_mode == WB_SYNC_ALL;
	struct inode *inode = mapping->host;
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct folio *folio = NULL;
	struct rfsm_batch *b;
	int error;

	/*
	 * This comes before a folio is locked, so that nobody waits for a task that waits for this
	 * memory.
	 */
	b = rfsm_batch_new(sbi);
	while ((folio = writeback_iter(mapping, wbc, folio, &error)))
		error = rfsm_batch_add(inode, b, folio, wbc);
	if (b->smalls)
		rfsm_batch_smalls(inode, b, wbc);
	rfsm_batch_write(inode, b, sync);
	mempool_free(b, &sbi->batches);
	return error;
}

static int rfsm_left_cmp(const void *a, const void *b)
{
	const struct rfsm_left *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

/*
 * Writes a block if it is still dirty, and nobody has its folio locked. *inode becomes the one that
 * it belongs to.
 */
static void rfsm_write_left_block(struct rfs_sb_info *sbi,
				  const struct rfsm_left *left,
				  struct rfsm_batch *b,
				  struct writeback_control *wbc,
				  struct inode **inode)
{
	struct folio *folio = rfsm_trylock_folio(sbi->sb, left->ino, left->block);

	if (!folio)
		return;
	if (rfsm_is_dirty(folio) && folio_clear_dirty_for_io(folio)) {
		/*
		 * The block becomes a page: below a piece, the victim would keep the page that it
		 * has.
		 */
		folio_set_checked(folio);
		*inode = folio->mapping->host;
		rfsm_batch_add(*inode, b, folio, wbc);
	} else {
		folio_unlock(folio);
	}
	folio_put(folio);
}

/*
 * Writes the blocks that cleaning has left, as writeback would, but without a reference to the
 * inode. The inode does not go while a folio of it is locked, nor while one is under writeback,
 * until the batch with it is written.
 */
void rfsm_write_left(struct rfs_sb_info *sbi)
{
	struct writeback_control wbc = { .sync_mode = WB_SYNC_NONE };
	struct inode *inode = NULL;
	struct rfsm_batch *b = rfsm_batch_new(sbi);
	u32 i;

	sort(sbi->left, sbi->lefts, sizeof(*sbi->left), rfsm_left_cmp, NULL);
	for (i = 0; i < sbi->lefts; i++) {
		if (i && sbi->left[i].ino != sbi->left[i - 1].ino)
			rfsm_batch_write(inode, b, false);
		rfsm_write_left_block(sbi, &sbi->left[i], b, &wbc, &inode);
	}
	rfsm_batch_write(inode, b, false);
	mempool_free(b, &sbi->batches);
	sbi->lefts = 0;
}

/*
 * Writes a range. A page that somebody had pinned may have been put off for want of room. Then this
 * waits for room, which writeback itself cannot do.
 */
int rfsm_write_range(struct file *file, loff_t start, loff_t end)
{
	struct inode *inode = file_inode(file);
	struct rfs_inode_info *ri = RFS_I(inode);
	int ret;

	ri->fresh = 0;	/* who is waited for writes little at a time */
	for (;;) {
		WRITE_ONCE(ri->deferred, false);
		ret = file_write_and_wait_range(file, start, end);
		if (ret || !READ_ONCE(ri->deferred))
			return ret;
		ret = rfsm_wait_room(RFS_SB(inode->i_sb), false);
		if (ret)
			return ret < 0 ? ret : -ENOSPC;
	}
}

const struct address_space_operations rfsm_aops = {
	.read_folio = rfsm_read_folio,
	.readahead = rfsm_readahead,
	.write_begin = rfsm_write_begin,
	.write_end = rfsm_write_end,
	.writepages = rfsm_writepages,
	.dirty_folio = rfsm_dirty_folio,
	.invalidate_folio = rfsm_invalidate_folio,
	.release_folio = rfsm_release_folio,
	.migrate_folio = filemap_migrate_folio,
};
