// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges are taken out of files and put into them. The blocks behind a range move row by row. Each
 * row is a transaction that is durable before its blocks are given up at their old place
 * (core/ops/shift.c).
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>

#include "rfsm.h"
#include "error.h"
#include "flush.h"
#include "update.h"
#include "pages.h"
#include "inode.h"
#include "tree/tree.h"

struct rfsm_shifted {
	struct file *file;
	const struct rfs_shift *shift;
};

static int rfsm_fill_from_row(struct folio *folio, u32 i, void *arg)
{
	const struct rfsm_shifted *row = arg;
	loff_t from = (row->shift->from + i) << PAGE_SHIFT;
	struct folio *source;

	source = read_mapping_folio(row->file->f_mapping, from >> PAGE_SHIFT,
				    row->file);
	if (IS_ERR(source))
		return PTR_ERR(source);
	memcpy_from_folio(folio_address(folio), source,
			  offset_in_folio(source, from), PAGE_SIZE);
	folio_put(source);
	folio->index = row->shift->at + i;
	return 0;
}

/*
 * Reads all pages of the row into the page cache at once. Pages that cannot be read are noticed
 * later.
 */
static void rfsm_read_row(struct file *file, const struct rfs_shift *s)
{
	struct address_space *mapping = file->f_mapping;
	gfp_t gfp = mapping_gfp_constraint(mapping, GFP_KERNEL);
	struct folio *folio;
	u64 at;

	for (at = s->from; at < s->from + s->blocks; at++) {
		folio = filemap_alloc_folio(gfp, 0);
		if (!folio)
			return;
		if (!filemap_add_folio(mapping, folio, at, gfp))
			mapping->a_ops->read_folio(file, folio);
		folio_put(folio);
	}
}

static int rfsm_write_row(struct file *file, struct rfs_shift *s)
{
	struct rfsm_shifted row = { .file = file, .shift = s };
	struct address_space *mapping = file->f_mapping;
	struct inode *inode = mapping->host;
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	loff_t pos = s->at << PAGE_SHIFT;
	loff_t last = (s->at + s->blocks - 1) << PAGE_SHIFT;
	struct rfsm_span span = {
		.n = s->blocks,
		.to = PAGE_SIZE,
		.len = min_t(loff_t, PAGE_SIZE, i_size_read(inode) - last),
		.sync = true,
	};
	int ret;

	rfsm_read_row(file, s);
	ret = rfsm_atomic_blocks(inode, &span, rfsm_fill_from_row, &row, NULL);
	if (ret)
		s->stage = RFS_SHIFT_FOUND;	/* nothing of it was sent */
	else
		ret = filemap_write_and_wait_range(mapping, pos,
						   last + PAGE_SIZE - 1);
	if (!ret && sbi->fs->geo.volatile_cache)
		ret = rfsm_flush(sbi);
	return ret;
}

static void rfsm_drop_blocks(struct inode *inode, u64 from, u64 blocks)
{
	truncate_pagecache_range(inode, from << PAGE_SHIFT,
				 ((from + blocks) << PAGE_SHIFT) - 1);
}

static int rfsm_shift_step(struct file *file, struct rfs_shift *s)
{
	struct inode *inode = file_inode(file);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u64 at = s->at, end = s->at + s->blocks;
	int ret;

	switch (s->what) {
	case RFS_SHIFT_WRITE:
		ret = rfsm_write_row(file, s);
		rfsm_drop_blocks(inode, s->from, s->blocks);
		break;
	case RFS_SHIFT_RESERVE:
		rfsm_update(sbi, ret,
			    rfs_preallocate(sbi->fs, inode->i_ino, &at, end));
		return ret;
	default:
		rfsm_update(sbi, ret,
			    rfs_punch(sbi->fs, inode->i_ino, at, end,
				      s->what == RFS_SHIFT_ZERO));
		break;
	}
	/* The page cache has the old content here, or takes memory that nobody asks for. */
	rfsm_drop_blocks(inode, s->at, s->blocks);
	return ret;
}

/*
 * Nobody writes to the rows that move. Of these, only the one that moves now is in the page cache.
 */
static int rfsm_shift_locked(struct file *file, struct rfs_shift *s)
{
	struct inode *inode = file_inode(file);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	int ret;

	for (;;) {
		do {	/* others have their turn between */
			rfsm_query(sbi, ret, rfs_shift_next(sbi->fs, s));
		} while (ret == -EAGAIN && !fatal_signal_pending(current));
		if (ret == -EAGAIN)
			return -EINTR;
		if (ret <= 0)
			return ret ? rfsm_failed(sbi, ret) : 0;
		ret = rfsm_shift_step(file, s);
		if (ret)
			return ret;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
}

/*
 * Moves a gap of len bytes from block `from` to block `to`, over the blocks between. *s has its
 * place after an error.
 */
static int rfsm_shift_gap(struct file *file, loff_t len, u64 from, u64 to, struct rfs_shift *s)
{
	struct address_space *mapping = file->f_mapping;
	struct inode *inode = mapping->host;
	loff_t pos = min(from, to) << PAGE_SHIFT;
	int ret;

	*s = (struct rfs_shift){ .ino = inode->i_ino, .most = RFS_TXN_MAX, .n = len >> PAGE_SHIFT,
				 .gap = from, .end = to };
	filemap_invalidate_lock(mapping);
	/* After this all blocks that move are on the drive, and no mapping has any of them. */
	ret = rfsm_write_range(file, pos, LLONG_MAX);
	if (!ret) {
		truncate_pagecache(inode, pos);
		ret = rfsm_shift_locked(file, s);
	}
	filemap_invalidate_unlock(mapping);
	rfsm_reload(inode);
	/* The records have set both times. */
	inode_set_mtime_to_ts(inode, inode_get_ctime(inode));
	return ret;
}

int rfsm_collapse_range(struct file *file, loff_t pos, loff_t len)
{
	struct inode *inode = file_inode(file);
	loff_t size = i_size_read(inode);
	u64 blocks = DIV_ROUND_UP_ULL(size, PAGE_SIZE);
	struct rfs_shift s;
	int ret;

	if (!IS_ALIGNED(pos | len, PAGE_SIZE) || len >= size - pos)
		return -EINVAL;
	ret = file_modified(file);
	if (!ret)
		ret = rfsm_shift_gap(file, len, pos >> PAGE_SHIFT, blocks - (len >> PAGE_SHIFT),
				     &s);
	return ret ? ret : rfsm_set_size(inode, size - len);
}

int rfsm_insert_range(struct file *file, loff_t pos, loff_t len)
{
	struct inode *inode = file_inode(file);
	loff_t size = i_size_read(inode);
	u64 blocks = DIV_ROUND_UP_ULL(size, PAGE_SIZE);
	struct rfs_shift s;
	int ret;

	if (!IS_ALIGNED(pos | len, PAGE_SIZE) || pos >= size)
		return -EINVAL;
	if (len > inode->i_sb->s_maxbytes - size)
		return -EFBIG;
	ret = inode_newsize_ok(inode, size + len);
	if (!ret)
		ret = file_modified(file);
	if (!ret)
		ret = rfsm_set_size(inode, size + len);
	if (ret)
		return ret;
	ret = rfsm_shift_gap(file, len, blocks, pos >> PAGE_SHIFT, &s);
	/*
	 * If nothing has moved, the file is as before. A row may have been written over itself, and
	 * then the end of the file is in the part that was added.
	 */
	if (ret && s.gap == blocks && s.stage != RFS_SHIFT_THERE)
		rfsm_set_size(inode, size);
	return ret;
}
