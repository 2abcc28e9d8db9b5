// SPDX-License-Identifier: GPL-2.0
/* Reading files: where blocks are, whether they are what they should be, the page cache. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "tree/tree.h"
#include "tree/diff.h"

/* A read in flight: folios and what is valid of each */
struct rfsm_read {
	struct rfs_sb_info *sbi;
	struct inode *inode;
	struct work_struct work;
	struct bio *bio;
	void *oob;
	u64 addr;
	u32 n;
	struct folio *folio[RFSM_APPEND_MAX];
	u16 len[RFSM_APPEND_MAX];
	bool pieces[RFSM_APPEND_MAX];
	bool ok[RFSM_APPEND_MAX];
};

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
	return rfs_oob_ok(oob, sbi->fs->volume) && oob->type == RFS_DATA &&
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

void rfsm_read_hold(struct rfs_sb_info *sbi, u64 addr)
{
	atomic_inc(&sbi->dev.reads[addr / sbi->fs->geo.zone_blocks]);
}

void rfsm_read_drop(struct rfs_sb_info *sbi, u64 addr)
{
	atomic_dec(&sbi->dev.reads[addr / sbi->fs->geo.zone_blocks]);
}

/* Pieces of a block, or NULL: how many there are */
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
 * Over what is in a folio. It is locked: pieces of its block come and go by
 * writeback, truncates and punches, which wait for that.
 */
static bool rfsm_overlay(struct rfs_sb_info *sbi, struct inode *inode,
			 struct folio *folio)
{
	u32 n;
	int ret;

	rfsm_query(sbi, ret, rfsm_pieces(sbi, inode->i_ino, folio->index,
					 folio_address(folio), &n));
	return !ret || !rfsm_failed(sbi, ret);
}

/* Is a block what it should be? Its folio then is as a reader sees it. */
static bool rfsm_read_ok(struct rfsm_read *r, u32 i, const struct rfs_oob *oob)
{
	struct folio *folio = r->folio[i];

	if (oob && !rfsm_block_ok(r->sbi, r->inode, folio->index, r->addr + i,
				  oob, ~rfs_crc(~0U, folio_address(folio),
						RFS_BLOCK_BYTES)))
		return false;
	folio_zero_segment(folio, r->len[i], RFS_BLOCK_BYTES);
	return !r->pieces[i] || rfsm_overlay(r->sbi, r->inode, folio);
}

/* The folios come last: after them the volume may be unmounted. */
static void rfsm_read_end(struct rfsm_read *r)
{
	u32 i;

	rfsm_read_drop(r->sbi, r->addr);
	for (i = 0; i < r->n; i++)
		folio_end_read(r->folio[i], r->ok[i]);
	mempool_free(r, &read_pool);
}

/* One of several blocks could not be read: the others can. */
static void rfsm_read_singly(struct rfsm_read *r)
{
	struct rfs_sb_info *sbi = r->sbi;
	u32 i;

	/* first, since others that are repeated may wait for its memory */
	rfsm_bio_put(&sbi->dev, r->bio, r->oob);
	for (i = 0; i < r->n; i++) {
		void *oob = NULL;
		struct bio *bio = rfsm_bio(&sbi->dev, REQ_OP_READ, 1,
					   r->addr + i, &oob);

		rfsm_bio_oobs(&sbi->dev, bio, oob, 1);
		bio_add_folio_nofail(bio, r->folio[i], RFS_BLOCK_BYTES, 0);
		r->ok[i] = !submit_bio_wait(bio) && rfsm_read_ok(r, i, oob);
		rfsm_bio_put(&sbi->dev, bio, oob);
	}
	rfsm_read_end(r);
}

/* Checksums take some 25 us for a bio, which is too long for an interrupt. */
static void rfsm_read_over(struct work_struct *work)
{
	struct rfsm_read *r = container_of(work, struct rfsm_read, work);
	u32 i, step = r->sbi->dev.oob_bytes;
	struct bio *bio = r->bio;

	if (bio->bi_status && r->n > 1) {
		rfsm_read_singly(r);
		return;
	}
	for (i = 0; i < r->n; i++)
		r->ok[i] = !bio->bi_status &&
			   rfsm_read_ok(r, i, r->oob ? r->oob + i * step :
					NULL);
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
	struct bio *bio;
	u32 i;

	bio = rfsm_bio(&r->sbi->dev, REQ_OP_READ, r->n, r->addr, &r->oob);
	rfsm_bio_oobs(&r->sbi->dev, bio, r->oob, r->n);
	for (i = 0; i < r->n; i++)
		bio_add_folio_nofail(bio, r->folio[i], RFS_BLOCK_BYTES, 0);
	bio->bi_private = r;
	bio->bi_end_io = rfsm_read_endio;
	r->bio = bio;
	submit_bio(bio);
}

/* Those that lie together in the index, of `most` from a block on */
static int rfsm_look_at(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
			u32 most, struct rfsm_found *f)
{
	struct rfs_dinode *di;
	struct rfs_ptrs ptrs;
	struct rfs_buf *buf;
	u32 i, pieces = 0;
	int ret = rfs_iget(sbi->fs, inode->i_ino, &di, &buf);

	/* the diff node is read before a zone is held */
	if (!ret && di->diff)
		ret = rfs_diff_overlay(sbi->fs, di, block, NULL, &pieces);
	if (!ret)
		ret = rfs_map_ptrs(sbi->fs, inode->i_ino, block, false, &ptrs);
	if (ret)
		return ret;
	most = min(most, min_t(u32, ptrs.n, RFSM_FOUND));
	for (i = 0; i < most; i++) {
		u64 addr = 0;

		if (di->diff && i && rfs_diff_overlay(sbi->fs, di, block + i,
						      NULL, &pieces))
			break;
		f->pieces[i] = pieces;
		f->len[i] = 0;
		if (ptrs.at) {
			const struct rfs_ptr *ptr = &ptrs.at[i];

			addr = rfs_addr(ptr->addr);
			f->len[i] = rfs_high(ptr->addr);
			if (!rfs_ptr_ok(ptr) ||
			    (addr && (!rfs_addr_ok(sbi->fs, addr) ||
				      f->len[i] > RFS_BLOCK_BYTES)))
				break;
		}
		f->addr[i] = addr;
		if (addr)
			rfsm_read_hold(sbi, addr);
	}
	f->n = i;
	f->next = 0;
	return i ? 0 : -EUCLEAN;
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

/* Where the index has to be read first, what is in *r is sent before that. */
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

/*
 * Add a locked folio to the read in *r, or begin another. If it is not in *f, it
 * is looked up, with those after it, `most` in all, which are to follow.
 */
static void rfsm_read_add(struct inode *inode, struct folio *folio, u32 most,
			  struct rfsm_found *f, struct rfsm_read **r)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct rfsm_read *now;
	bool pieces;
	u64 addr;
	u32 len;

	if (f->next == f->n &&
	    rfsm_read_look_up(sbi, inode, folio->index, most, f, r)) {
		folio_end_read(folio, false);
		return;
	}
	now = *r;
	addr = f->addr[f->next];
	pieces = f->pieces[f->next];
	len = f->len[f->next++];
	if (!addr) {
		folio_zero_range(folio, 0, folio_size(folio));
		folio_end_read(folio, !pieces || rfsm_overlay(sbi, inode,
							      folio));
		return;
	}
	if (now && (addr != now->addr + now->n ||
		    now->n == sbi->fs->geo.append_max ||
		    addr % sbi->fs->geo.zone_blocks == 0)) {
		rfsm_read_submit(now);
		now = NULL;
	}
	if (!now) {
		now = mempool_alloc(&read_pool, GFP_NOFS);
		memset(now, 0, sizeof(*now));
		now->sbi = sbi;
		now->inode = inode;
		now->addr = addr;
	} else {
		rfsm_read_drop(sbi, addr);	/* the first holds the zone */
	}
	now->folio[now->n] = folio;
	now->pieces[now->n] = pieces;
	now->len[now->n++] = len;
	*r = now;
}

int rfsm_read_folio(struct file *file, struct folio *folio)
{
	struct rfsm_found found = { 0 };
	struct rfsm_read *r = NULL;

	rfsm_read_add(folio->mapping->host, folio, 1, &found, &r);
	if (r)
		rfsm_read_submit(r);
	return 0;
}

void rfsm_readahead(struct readahead_control *rac)
{
	struct rfsm_found found = { 0 };
	struct rfsm_read *r = NULL;
	struct folio *folio;

	/* one page each, one after the other, so all that is found is used */
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
