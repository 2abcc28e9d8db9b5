// SPDX-License-Identifier: GPL-2.0
/*
 * The page cache. A dirty folio's private value says what was reserved for it;
 * it is given back when the folio is written or dropped.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/writeback.h>

#include "rfsm.h"
#include "tree/tree.h"

static struct rfs_sb_info *rfsm_of_folio(const struct folio *folio)
{
	return RFS_SB(folio->mapping->host->i_sb);
}

static void rfsm_invalidate_folio(struct folio *folio, size_t offset,
				  size_t length)
{
	struct rfs_sb_info *sbi = rfsm_of_folio(folio);

	if (offset || length < folio_size(folio) || !folio_test_private(folio))
		return;
	folio_clear_checked(folio);
	rfsm_lock(sbi);
	rfsm_unreserve(sbi, folio->mapping->host, folio);
	rfsm_unlock(sbi);
}

/*
 * Who dirties a folio and is not rfsm_write_end() does not say which of its bytes
 * are new: a mapping, or who had it pinned, who does not lock it. All may be.
 */
static bool rfsm_dirty_folio(struct address_space *mapping, struct folio *folio)
{
	folio_set_checked(folio);
	return filemap_dirty_folio(mapping, folio);
}

/* A dirty folio is never released, and a clean one has no reservation. */
static bool rfsm_release_folio(struct folio *folio, gfp_t gfp)
{
	return false;
}

/*
 * A folio that is neither dirty nor under writeback is what the index says:
 * that changes under the volume lock, before writeback ends. The inode may go
 * meanwhile, but not while a folio of it is locked.
 */
bool rfsm_cached(void *dev, u32 ino, u64 block, void *data)
{
	struct super_block *sb = container_of(dev, struct rfs_sb_info, dev)->sb;
	struct address_space *mapping = NULL;
	struct folio *folio = NULL;
	struct inode *inode;
	bool found;

	rcu_read_lock();
	inode = find_inode_by_ino_rcu(sb, ino);
	if (inode) {
		mapping = &inode->i_data;
		folio = filemap_get_folio(mapping, block);
	}
	rcu_read_unlock();
	if (IS_ERR_OR_NULL(folio))
		return false;
	if (!folio_trylock(folio)) {
		folio_put(folio);
		return false;
	}
	found = folio->mapping == mapping && folio_contains(folio, block) &&
		folio_test_uptodate(folio) && !folio_test_dirty(folio) &&
		!folio_test_writeback(folio);
	if (found)
		memcpy(data, rfsm_folio_block(folio, block), RFS_BLOCK_BYTES);
	folio_unlock(folio);
	folio_put(folio);
	return found;
}

/* A folio of one page that may be dirtied, locked. */
static int rfsm_folio_get_reserved(struct inode *inode, pgoff_t index,
				   struct folio **out)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	enum rfsm_waited waited = RFSM_NOT_YET;
	struct folio *folio;
	int ret;

	for (;;) {
		folio = __filemap_get_folio(inode->i_mapping, index,
					    FGP_WRITEBEGIN,
					    mapping_gfp_mask(inode->i_mapping));
		if (IS_ERR(folio))
			return PTR_ERR(folio);
		if (!rfsm_single(inode, folio))
			continue;
		ret = rfsm_reserve(sbi, inode, folio, waited);
		if (!ret) {
			*out = folio;
			return 0;
		}
		folio_unlock(folio);
		folio_put(folio);
		if (ret != -EAGAIN)
			return rfsm_failed(sbi, ret);
		ret = rfsm_wait_room(sbi, rfsm_is_small_writer(inode));
		if (ret < 0)
			return ret;
		waited = ret ? RFSM_NO_SPACE : RFSM_WAITED;
	}
}

void rfsm_folio_unreserve(struct inode *inode, struct folio *folio)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);

	if (folio_test_dirty(folio))
		return;
	rfsm_lock(sbi);
	rfsm_unreserve(sbi, inode, folio);
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

	len = min_t(size_t, len, PAGE_SIZE - from);
again:
	ret = rfsm_folio_get_reserved(inode, pos >> PAGE_SHIFT, &folio);
	if (ret)
		return ret;
	rfsm_kick(RFS_SB(inode->i_sb));
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
		/* it was unlocked: somebody may have written it meanwhile */
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

static int rfsm_write_end(struct file *file, struct address_space *mapping,
			  loff_t pos, unsigned int len, unsigned int copied,
			  struct folio *folio, void *data)
{
	struct inode *inode = mapping->host;

	/* what was not copied over is not there yet: all again */
	if (copied < len && !folio_test_uptodate(folio))
		copied = 0;
	if (copied) {
		folio_mark_uptodate(folio);
		rfsm_dirty_bytes(folio, offset_in_page(pos),
				 offset_in_page(pos) + copied);
		filemap_dirty_folio(mapping, folio);
		if (pos + copied > i_size_read(inode))
			i_size_write(inode, pos + copied);
	} else {
		rfsm_folio_unreserve(inode, folio);
	}
	folio_unlock(folio);
	folio_put(folio);
	return copied;
}

/* Returns 1 if neither the medium nor the page cache has anything, 0, or an error. */
static int rfsm_is_hole(struct inode *inode, u64 block)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct rfs_ptr ptr;
	struct folio *folio;
	bool written;
	int ret;

	folio = filemap_lock_folio(inode->i_mapping, block);
	if (!IS_ERR(folio)) {
		written = folio_test_private(folio) || folio_test_dirty(folio);
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
	folio_zero_range(folio, offset_in_page(pos), len);
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
			rfsm_split(inode, folio);
			ret = -EFAULT;	/* and again: of one page */
			break;
		}
		folio_wait_stable(folio);
		ret = rfsm_reserve(sbi, inode, folio, waited);
		if (ret != -EAGAIN)
			break;
		folio_unlock(folio);
		filemap_invalidate_unlock_shared(mapping);
		ret = rfsm_wait_room(sbi, rfsm_is_small_writer(inode));
		if (ret < 0) {
			/* whoever is killed does not come back to the page */
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
 * A mapping may have written after the end of the file; before the file grows,
 * that goes. On the drive the block ends at its valid length.
 */
int rfsm_zero_tail(struct inode *inode, loff_t old_size)
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
	int ret;

	if (!b->n)
		return;
	/* which bytes of a folio are new is not known well enough to look */
	ret = rfsm_settle(inode);
	if (ret)
		mapping_set_error(inode->i_mapping, ret);
	rfsm_append(RFS_SB(inode->i_sb), inode, b->folio, b->n, b->len,
		    sync ? RFSM_APPEND_SYNC : 0);
	b->n = 0;
}

/*
 * Add a locked folio, which was dirty, and unlock it. One that others have to
 * make room for first is dirty again, since writeback cannot wait for them: they
 * may wait for it. Who wants it written waits, and has it written again.
 */
static int rfsm_batch_add(struct inode *inode, struct rfsm_batch *b,
			  struct folio *folio, struct writeback_control *wbc)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	loff_t size = i_size_read(inode), pos = folio_pos(folio);
	int ret;

	if (pos >= size) {	/* a truncate will drop it */
		folio_unlock(folio);
		return 0;
	}
	/* who had the page pinned may have dirtied it behind our back */
	if (!folio_test_private(folio)) {
		ret = rfsm_reserve(sbi, inode, folio, RFSM_WAITED);
		if (ret == -EAGAIN) {
			folio_redirty_for_writepage(wbc, folio);
			WRITE_ONCE(RFS_I(inode)->deferred, true);
			WRITE_ONCE(sbi->deferred, true);
			folio_unlock(folio);
			return 0;
		}
		if (ret) {
			mapping_set_error(inode->i_mapping, -ENOSPC);
			folio_unlock(folio);
			return -ENOSPC;
		}
	}
	/* before its content is looked at: who changes it then says so again */
	folio_clear_checked(folio);
	b->len = min_t(loff_t, RFS_BLOCK_BYTES, size - pos);
	folio_zero_segment(folio, b->len, RFS_BLOCK_BYTES);
	folio_start_writeback(folio);
	folio_unlock(folio);
	b->folio[b->n++] = folio;
	return 0;
}

/* A folio under writeback that is no piece, beside its neighbours if they are there */
static void rfsm_batch_put(struct inode *inode, struct rfsm_batch *b,
			   const struct rfsm_small *small, bool sync)
{
	pgoff_t index = small->folio->index;
	bool room = b->n && b->n < RFSM_BATCH_MAX;

	if (room && small->len == RFS_BLOCK_BYTES &&
	    index + 1 == b->folio[0]->index) {
		memmove(&b->folio[1], &b->folio[0], b->n * sizeof(*b->folio));
		b->folio[0] = small->folio;
		b->n++;
		return;
	}
	if (!room || b->len < RFS_BLOCK_BYTES ||
	    index != b->folio[0]->index + b->n)
		rfsm_batch_write(inode, b, sync);
	b->folio[b->n++] = small->folio;
	b->len = small->len;
}

/* Those of which few bytes are new are pieces, or pages among the others. */
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

static int rfsm_writepages(struct address_space *mapping,
			   struct writeback_control *wbc)
{
	bool sync = wbc->sync_mode == WB_SYNC_ALL;
	struct inode *inode = mapping->host;
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct folio *folio = NULL;
	struct rfsm_batch *b;
	int error;

	/* before a folio is locked: nobody waits for who waits for this */
	b = mempool_alloc(&sbi->batches, GFP_NOFS);
	b->n = 0;
	b->smalls = 0;
	while ((folio = writeback_iter(mapping, wbc, folio, &error))) {
		if (rfsm_small_add(inode, b, folio)) {
			if (b->smalls == RFSM_SMALLS)
				rfsm_batch_smalls(inode, b, wbc);
			continue;
		}
		if (b->n && (b->n == RFSM_BATCH_MAX ||
			     b->len < RFS_BLOCK_BYTES ||
			     folio->index != b->folio[0]->index + b->n))
			rfsm_batch_write(inode, b, sync);
		error = rfsm_batch_add(inode, b, folio, wbc);
	}
	rfsm_batch_smalls(inode, b, wbc);
	rfsm_batch_write(inode, b, sync);
	mempool_free(b, &sbi->batches);
	return error;
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
