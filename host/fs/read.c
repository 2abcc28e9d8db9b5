// SPDX-License-Identifier: GPL-2.0
/*
 * Files are read here. These functions find where blocks are, check that a block is the right one,
 * and fill the page cache.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "error.h"
#include "slow.h"
#include "wake.h"
#include "blocks.h"
#include "bypass.h"
#include "read.h"
#include "tree/tree.h"
#include "tree/diff.h"

/* These blocks of a read lie in one folio. */
struct rfsm_row {
	struct folio *folio;
	u32 n;
	u16 len;		/* bytes of the last that are valid */
	bool pieces;		/* lie over the last */
	bool ok;		/* all of them are what they should be */
};

/* This is a read in flight of blocks that are in a row in the file and on the drive. */
struct rfsm_read {
	struct rfs_sb_info *sbi;
	struct inode *inode;
	struct work_struct work;
	struct bio *bio;
	void *oob;
	u64 block;		/* of the file: the first */
	u64 addr;
	u32 n;
	u32 rows;
	struct rfsm_row row[RFSM_APPEND_MAX];
};

/*
 * The private value of a folio of several pages that is being read has the number of its blocks
 * that are not done, and a bit that says whether one of the other blocks is not the right one.
 */
#define READ_LEFT	(BIT(16) - 1)
#define READ_FAILED	BIT(16)

#define READS	16	/* in flight that need no memory */

static mempool_t read_pool;

int __init rfsm_read_module_init(void)
{
	return mempool_init_kmalloc_pool(&read_pool, READS,
					 sizeof(struct rfsm_read));
}

void rfsm_read_module_exit(void)
{
	mempool_exit(&read_pool);
}

bool rfsm_block_is(const struct rfs_sb_info *sbi, const struct inode *inode,
		   u64 block, const struct rfs_oob *oob, u32 crc)
{
	return oob->magic == cpu_to_le16(RFS_OOB_MAGIC) &&
	       le32_to_cpu(oob->volume) == sbi->fs->volume &&
	       oob->type == RFS_DATA &&
	       le32_to_cpu(oob->ino) == inode->i_ino &&
	       le32_to_cpu(oob->gen) == inode->i_generation &&
	       le64_to_cpu(oob->off) == block &&
	       le32_to_cpu(oob->data_crc) == crc;
}

bool rfsm_block_ok(const struct rfs_sb_info *sbi, const struct inode *inode,
		   u64 block, u64 addr, const struct rfs_oob *oob, u32 crc)
{
	if (rfsm_block_is(sbi, inode, block, oob, crc))
		return true;
	pr_err_ratelimited("%pg: inode %lu block %llu: not what is at address %llu\n",
			   sbi->sb->s_bdev, inode->i_ino, block, addr);
	return false;
}

static bool rfsm_is_at_home(u64 addr)
{
	return unlikely(addr & RFSM_AT_HOME);
}

void rfsm_read_hold(struct rfs_sb_info *sbi, u64 addr)
{
	if (rfsm_is_at_home(addr))
		rfsm_slow_hold(sbi, addr);
	else
		atomic_inc(&sbi->dev.reads[addr / sbi->fs->geo.zone_blocks]);
}

void rfsm_read_drop(struct rfs_sb_info *sbi, u64 addr)
{
	if (rfsm_is_at_home(addr))
		rfsm_slow_drop(sbi, addr);
	else
		atomic_dec(&sbi->dev.reads[addr / sbi->fs->geo.zone_blocks]);
}

/* Puts the pieces of a block over data, which may be NULL, and returns their number. */
static int rfsm_pieces(struct rfs_sb_info *sbi, unsigned long ino, u64 block,
		       u8 *data, u32 *n)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(sbi->fs, ino, &di, &buf);

	*n = 0;
	return ret ? ret : rfs_diff_overlay(sbi->fs, di, block, data, n);
}

/*
 * Puts the pieces of a block over the content of its folio. The folio is locked: pieces of the
 * block come and go by writeback, truncates and punches, which wait for that.
 */
static bool rfsm_overlay(struct rfs_sb_info *sbi, struct inode *inode,
			 u64 block, u8 *data)
{
	u32 n;
	int ret;

	rfsm_query(sbi, ret, rfsm_pieces(sbi, inode->i_ino, block, data, &n));
	return !ret || !rfsm_failed(sbi, ret);
}

/* Says whether the i-th block is the right one. */
static bool rfsm_read_ok(const struct rfsm_read *r, u32 i, const u8 *data,
			 const struct rfs_oob *oob)
{
	return !oob || rfsm_block_ok(r->sbi, r->inode, r->block + i,
				     r->addr + i, oob,
				     ~rfs_crc(~0U, data, RFS_BLOCK_BYTES));
}

/* Turns the last block of a row, as it was read, into the content that a reader sees. */
static void rfsm_read_last(const struct rfsm_read *r, struct rfsm_row *row,
			   u64 block)
{
	u8 *data = rfsm_folio_block(row->folio, block);

	memset(data + row->len, 0, RFS_BLOCK_BYTES - row->len);
	if (row->pieces)
		row->ok &= rfsm_overlay(r->sbi, r->inode, block, data);
}

/* So many blocks of a folio that is being read are done. The last one ends the read. */
static void rfsm_read_done(struct folio *folio, u32 n, bool ok)
{
	void *old = READ_ONCE(folio->private), *new;
	unsigned long value;

	if (folio_test_large(folio)) {
		do {
			value = (unsigned long)old - n;
			value |= ok ? 0 : READ_FAILED;
			new = (void *)value;
		} while (!try_cmpxchg(&folio->private, &old, new));
		if (value & READ_LEFT)
			return;
		folio->private = NULL;
		ok = !(value & READ_FAILED);
	}
	folio_end_read(folio, ok);
}

/* The folios come last, because the volume may be unmounted after their reads end. */
static void rfsm_read_end(struct rfsm_read *r)
{
	u64 block = r->block;
	u32 i;

	rfsm_read_drop(r->sbi, r->addr);
	for (i = 0; i < r->rows; i++) {
		struct rfsm_row *row = &r->row[i];

		block += row->n;
		if (row->ok && (row->pieces || row->len < RFS_BLOCK_BYTES))
			rfsm_read_last(r, row, block - 1);
		rfsm_read_done(row->folio, row->n, row->ok);
	}
	mempool_free(r, &read_pool);
}

/* Adds n blocks of a row to the bio, from the i-th of the read on. */
static void rfsm_read_pages(const struct rfsm_read *r, struct bio *bio,
			    const struct rfsm_row *row, u32 i, u32 n)
{
	size_t from = (r->block + i - row->folio->index) * RFS_BLOCK_BYTES;

	bio_add_folio_nofail(bio, row->folio, n * RFS_BLOCK_BYTES, from);
}

static bool rfsm_read_flash(struct rfsm_read *r, const struct rfsm_row *row,
			    u32 i)
{
	struct rfsm_dev *dev = &r->sbi->dev;
	void *oob = NULL;
	struct bio *bio = rfsm_bio(dev, REQ_OP_READ, 1, r->addr + i, &oob);
	bool ok;

	rfsm_bio_oobs(dev, bio, oob, 1);
	rfsm_read_pages(r, bio, row, i, 1);
	ok = !submit_bio_wait(bio) &&
	     rfsm_read_ok(r, i, rfsm_folio_block(row->folio, r->block + i),
			  oob);
	rfsm_bio_put(dev, bio, oob);
	return ok;
}

/* Reads a block by itself. One that flash cannot read may be at home, too. */
static bool rfsm_read_one(struct rfsm_read *r, const struct rfsm_row *row,
			  u32 i)
{
	struct page *page = folio_page(row->folio,
				       r->block + i - row->folio->index);

	if (rfsm_is_at_home(r->addr))
		return !rfsm_slow_read_page(r->sbi, r->inode,
					    r->block + i, r->addr + i, page);
	return rfsm_read_flash(r, row, i) ||
	       (r->sbi->slow && rfsm_slow_instead(r->sbi, r->inode,
						  r->block + i, page));
}

/*
 * One of several blocks could not be read. The others may be readable, and this one may be at home,
 * too.
 */
static void rfsm_read_singly(struct rfsm_read *r)
{
	u32 i = 0, j;

	/* This comes first, since other reads that are repeated may wait for its memory. */
	rfsm_bio_put(&r->sbi->dev, r->bio, r->oob);
	for (j = 0; j < r->rows; j++) {
		struct rfsm_row *row = &r->row[j];
		u32 end = i + row->n;

		for (row->ok = true; i < end; i++)
			row->ok &= rfsm_read_one(r, row, i);
	}
	rfsm_read_end(r);
}

/* Blocks that were read at home, but not in order, may come to flash, too. */
static void rfsm_read_fills(const struct rfsm_read *r)
{
	u64 block = r->block;
	u32 i;

	for (i = 0; i < r->rows; block += r->row[i++].n)
		if (r->row[i].ok && !folio_test_large(r->row[i].folio))
			rfsm_fill_soon(r->sbi, r->inode, block);
}

/* Checksums take some 25 us for a bio, which is too long for an interrupt. */
static void rfsm_read_over(struct work_struct *work)
{
	struct rfsm_read *r = container_of(work, struct rfsm_read, work);
	u32 i = 0, j, step = r->sbi->dev.oob_bytes;
	const void *oob = r->oob;
	struct bio *bio = r->bio;
	bool ok = true;

	if (bio->bi_status && (r->n > 1 || r->sbi->slow)) {
		rfsm_read_singly(r);
		return;
	}
	for (j = 0; j < r->rows; j++) {
		struct rfsm_row *row = &r->row[j];
		u8 *data = rfsm_folio_block(row->folio, r->block + i);
		u32 end = i + row->n;

		row->ok = !bio->bi_status;
		for (; row->ok && i < end; i++, data += RFS_BLOCK_BYTES)
			row->ok = rfsm_read_ok(r, i, data, oob ?
					       oob + i * step : NULL);
		ok &= row->ok;
		i = end;
	}
	if (unlikely(!ok) && r->sbi->slow) {
		rfsm_read_singly(r);
		return;
	}
	if (rfsm_is_at_home(r->addr))
		rfsm_read_fills(r);
	rfsm_bio_put(&r->sbi->dev, bio, r->oob);
	rfsm_read_end(r);
}

static void rfsm_read_endio(struct bio *bio)
{
	struct rfsm_read *r = bio->bi_private;

	INIT_WORK(&r->work, rfsm_read_over);
	queue_work(rfsm_reads, &r->work);
}

static void rfsm_read_submit(struct rfsm_read *r)
{
	bool home = rfsm_is_at_home(r->addr);
	struct bio *bio;
	u32 i = 0, j;

	if (home) {
		bio = rfsm_slow_bio(r->sbi, REQ_OP_READ, r->rows, r->addr);
	} else {
		bio = rfsm_bio(&r->sbi->dev, REQ_OP_READ, r->rows, r->addr,
			       &r->oob);
		rfsm_bio_oobs(&r->sbi->dev, bio, r->oob, r->n);
	}
	for (j = 0; j < r->rows; i += r->row[j++].n)
		rfsm_read_pages(r, bio, &r->row[j], i, r->row[j].n);
	bio->bi_private = r;
	bio->bi_end_io = rfsm_read_endio;
	r->bio = bio;
	if (r->sbi->slow)
		rfsm_slow_count(r->sbi, r->addr, r->n);
	if (home)
		rfsm_slow_submit(r->sbi, bio);
	else
		submit_bio(bio);
}

/* Says whether a block goes on where a run ends. */
static bool rfsm_run_goes_on(const struct rfs_sb_info *sbi,
			     const struct rfsm_run *run, u64 addr)
{
	if (run->pieces || run->len < RFS_BLOCK_BYTES)
		return false;
	return run->addr ? addr == run->addr + run->n &&
			   addr % sbi->fs->geo.zone_blocks : !addr;
}

/* Adds a block to those that were found. False says that there is no room for it. */
static bool rfsm_found_add(struct rfs_sb_info *sbi, struct rfsm_found *f,
			   u64 addr, u32 len, bool pieces)
{
	struct rfsm_run *run = &f->run[f->n];

	if (f->n && !pieces && rfsm_run_goes_on(sbi, run - 1, addr)) {
		run[-1].n++;
		run[-1].len = len;
		return true;
	}
	if (f->n == RFSM_FOUND)
		return false;
	*run = (struct rfsm_run){ addr, 1, len, pieces };
	if (addr)
		rfsm_read_hold(sbi, addr);
	f->n++;
	return true;
}

void rfsm_found_used(struct rfs_sb_info *sbi, struct rfsm_found *f, u32 n)
{
	struct rfsm_run *run = &f->run[f->next];

	run->n -= n;
	if (!run->n) {
		f->next++;
		if (run->addr)
			rfsm_read_drop(sbi, run->addr);
	}
	if (run->addr)
		run->addr += n;
}

/* Finds the address that a pointer leads to, or 0, and the valid bytes of the block. */
static bool rfsm_ptr_of(const struct rfs_sb_info *sbi,
			const struct rfs_ptr *ptr, u64 *addr, u32 *len)
{
	*addr = rfs_addr(ptr->addr);
	*len = *addr ? rfs_high(ptr->addr) : RFS_BLOCK_BYTES;
	if (rfs_ptr_ok(ptr) && *len <= RFS_BLOCK_BYTES &&
	    (!*addr || rfs_addr_ok(sbi->fs, *addr)))
		return true;
	return sbi->slow && rfsm_slow_ptr(sbi, ptr, addr, len);
}

/* Looks up blocks from this one on, `most` at most, that lie together in the index. */
static int rfsm_look_at(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
			u32 most, struct rfsm_found *f)
{
	u32 i, len = RFS_BLOCK_BYTES, pieces = 0;
	struct rfs_dinode *di;
	struct rfs_ptrs ptrs;
	struct rfs_buf *buf;
	u64 addr = 0;
	int ret = rfs_iget(sbi->fs, inode->i_ino, &di, &buf);

	/* The diff node is read before a zone is held. */
	if (!ret && di->diff)
		ret = rfs_diff_overlay(sbi->fs, di, block, NULL, &pieces);
	if (!ret)
		ret = rfs_map_ptrs_of(sbi->fs, di, buf, block, &ptrs);
	if (ret)
		return ret;
	f->n = 0;
	f->next = 0;
	most = min(most, min_t(u32, ptrs.n, RFSM_APPEND_MAX));
	for (i = 0; i < most; i++) {
		if (di->diff && i && rfs_diff_overlay(sbi->fs, di, block + i,
						      NULL, &pieces))
			break;
		if (ptrs.at && !rfsm_ptr_of(sbi, &ptrs.at[i], &addr, &len))
			break;
		if (!rfsm_found_add(sbi, f, addr, len, pieces))
			break;
	}
	return i ? 0 : -EUCLEAN;
}

/*
 * Looks up the index and the pieces of these blocks. -EAGAIN says that it is too much for one hold
 * of the lock.
 */
static int rfsm_look_through(struct rfs_sb_info *sbi, struct inode *inode,
			     u64 block, u64 end)
{
	struct rfs_buf *buf, *pieces;
	struct rfs_dinode *di;
	struct rfs_ptrs ptrs;
	u32 leaves = 0;
	int ret = rfs_iget(sbi->fs, inode->i_ino, &di, &buf);

	if (!ret && di->diff)
		ret = rfs_diff_get(sbi->fs, di, &pieces);
	for (; !ret && block < end; block += ptrs.n)
		ret = leaves++ < RFS_PRUNE_NODES ?
		      rfs_map_ptrs_of(sbi->fs, di, buf, block, &ptrs) : -EAGAIN;
	return ret;
}

bool rfsm_is_known(struct rfs_sb_info *sbi, struct inode *inode, u64 from,
		   u64 to)
{
	u64 end = DIV_ROUND_UP_ULL(i_size_read(inode), PAGE_SIZE);
	struct rfsm_miss miss = { 0 };
	bool missed;
	int ret;

	rfsm_lock_query(sbi);
	rfsm_miss_begin(sbi, &miss);
	ret = rfsm_look_through(sbi, inode, from, min(to, end));
	missed = rfsm_miss_end(sbi, &miss, ret);
	rfsm_unlock(sbi);
	if (missed)
		rfsm_miss_drop(sbi, &miss);
	return !missed && ret != -EAGAIN;
}

int rfsm_look_up(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		 u32 most, struct rfsm_found *f, struct rfsm_miss *miss)
{
	int ret;

	rfsm_set_busy(sbi);
	rfsm_lock_query(sbi);
	rfsm_miss_begin(sbi, miss);
	ret = rfsm_look_at(sbi, inode, block, most, f);
	rfsm_miss_end(sbi, miss, ret);
	rfsm_unlock(sbi);
	return ret;
}

/* Looks up blocks. If the index has to be read first, the read in *r is sent before that. */
static int rfsm_read_look_up(struct rfs_sb_info *sbi, struct inode *inode,
			     u64 block, u32 most, struct rfsm_found *f,
			     struct rfsm_read **r)
{
	struct rfsm_miss miss = { 0 };
	int ret;

	while ((ret = rfsm_look_up(sbi, inode, block, most, f, &miss)) ==
	       -EINPROGRESS) {
		if (*r)
			rfsm_read_submit(*r);
		*r = NULL;
		rfsm_miss_read(sbi, &miss);
	}
	return ret ? rfsm_failed(sbi, ret) : 0;
}

/* Begins a read at an address of the drive, to which other blocks can be added. */
static struct rfsm_read *rfsm_read_begin(struct inode *inode, u64 block,
					 u64 addr)
{
	struct rfsm_read *r = mempool_alloc(&read_pool, GFP_NOFS);

	r->sbi = RFS_SB(inode->i_sb);
	r->inode = inode;
	r->oob = NULL;
	r->block = block;
	r->addr = addr;
	r->n = 0;
	r->rows = 0;
	rfsm_read_hold(r->sbi, addr);
	return r;
}

/* Says whether a block at this address can be read along with those before. */
static bool rfsm_read_goes_on(const struct rfsm_read *r, u64 block, u64 addr)
{
	const struct rfs_geometry *geo = &r->sbi->fs->geo;

	return addr == r->addr + r->n && block == r->block + r->n &&
	       r->n < geo->append_max && addr % geo->zone_blocks;
}

/* Fills n blocks of a folio that need no read: holes, or a block that has only pieces. */
static void rfsm_read_holes(struct inode *inode, struct folio *folio,
			    u64 block, u32 n, bool pieces)
{
	u8 *data = rfsm_folio_block(folio, block);

	memset(data, 0, n * RFS_BLOCK_BYTES);
	rfsm_read_done(folio, n, !pieces ||
		       rfsm_overlay(RFS_SB(inode->i_sb), inode, block, data));
}

/*
 * Adds at most n blocks of a folio, from this one on, to the read in *r, or to another that begins.
 * It adds as many as the next run and the read have. Returns their number.
 */
static u32 rfsm_read_add_some(struct inode *inode, struct folio *folio,
			      u64 block, u32 n, struct rfsm_found *f,
			      struct rfsm_read **r)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct rfsm_run *run = &f->run[f->next];
	struct rfsm_read *now = *r;
	struct rfsm_row *row;

	n = min(n, run->n);
	if (!run->addr) {
		rfsm_read_holes(inode, folio, block, n, run->pieces);
		rfsm_found_used(sbi, f, n);
		return n;
	}
	if (now && !rfsm_read_goes_on(now, block, run->addr)) {
		rfsm_read_submit(now);
		now = NULL;
	}
	if (!now)
		now = rfsm_read_begin(inode, block, run->addr);
	n = min(n, sbi->fs->geo.append_max - now->n);
	row = &now->row[now->rows++];
	row->folio = folio;
	row->n = n;
	row->len = n == run->n ? run->len : RFS_BLOCK_BYTES;
	row->pieces = run->pieces;
	now->n += n;
	*r = now;
	rfsm_found_used(sbi, f, n);
	return n;
}

/*
 * Adds a locked folio to the read in *r, or to others that begin. Blocks that are not in *f are
 * looked up together with those after them: `most` are read, from the folio's first on.
 */
static void rfsm_read_add(struct inode *inode, struct folio *folio, u32 most,
			  struct rfsm_found *f, struct rfsm_read **r)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u32 i, n = folio_nr_pages(folio);
	u64 block = folio->index;

	if (folio_test_large(folio))
		folio->private = (void *)(unsigned long)n;
	for (i = 0; i < n;) {
		if (f->next == f->n &&
		    rfsm_read_look_up(sbi, inode, block + i, most - i, f, r)) {
			rfsm_read_done(folio, n - i, false);
			return;
		}
		i += rfsm_read_add_some(inode, folio, block + i, n - i, f, r);
	}
}

/* One block of a large folio was not the right one. The others are read as folios of their own. */
static int rfsm_read_apart(struct inode *inode, struct folio *folio)
{
	rfsm_split(inode, folio);
	folio_unlock(folio);
	return AOP_TRUNCATED_PAGE;
}

int rfsm_read_folio(struct file *file, struct folio *folio)
{
	struct inode *inode = folio->mapping->host;
	struct rfsm_found found = { 0 };
	struct rfsm_read *r = NULL;

	if (folio_test_large(folio) && folio_test_private(folio)) {
		rfsm_blocks_fill(folio);
		folio_end_read(folio, true);
		return 0;
	}
	if (folio_test_large(folio))
		return rfsm_read_apart(inode, folio);
	rfsm_read_add(inode, folio, 1, &found, &r);
	if (r)
		rfsm_read_submit(r);
	return 0;
}

/*
 * Linux makes the largest folios in windows that begin where such folios may begin. The next window
 * of a sequential reader does so if this one ends at such a place.
 */
static void rfsm_align_window(struct readahead_control *rac)
{
	u64 pages = DIV_ROUND_UP_ULL(i_size_read(rac->mapping->host),
				     PAGE_SIZE);
	u64 from = readahead_index(rac), n = readahead_count(rac);
	u64 to = round_up(from + n, 1ULL << RFSM_LARGEST);

	if (rac->ra && rac->ra->start == from && rac->ra->size == n &&
	    n >= 1U << RFSM_LARGEST >> 1 && to <= pages)
		readahead_expand(rac, from << PAGE_SHIFT,
				 (to - from) << PAGE_SHIFT);
}

void rfsm_readahead(struct readahead_control *rac)
{
	struct rfsm_found found = { 0 };
	struct rfsm_read *r = NULL;
	struct folio *folio;

	rfsm_align_window(rac);
	/* Folios come one after the other, so all blocks that were found are used. */
	while ((folio = readahead_folio(rac)))
		rfsm_read_add(rac->mapping->host, folio, readahead_count(rac),
			      &found, &r);
	if (r)
		rfsm_read_submit(r);
}

int rfsm_read_now(struct inode *inode, struct folio *folio)
{
	struct rfsm_found found = { 0 };
	struct rfsm_read *r = NULL;

	rfsm_read_add(inode, folio, 1, &found, &r);
	if (r)
		rfsm_read_submit(r);
	folio_lock(folio);
	return folio_test_uptodate(folio) ? 0 : -EIO;
}
