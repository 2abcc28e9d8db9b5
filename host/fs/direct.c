// SPDX-License-Identifier: GPL-2.0
/*
 * Direct reads go from the drive into the caller's memory, any number at a time. The caller may
 * write to that memory meanwhile, so a block whose checksum is wrong is read once more into a page
 * of ours. Direct writes are copied to the page cache (file.c): their checksum needs pages that
 * nobody changes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/iomap.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "rfsm.h"
#include "error.h"
#include "slow.h"
#include "read.h"

/* This is the memory around a bio of iomap's. bio_alloc_bioset() has zeroed nothing but the bio. */
struct rfsm_direct {
	struct work_struct work;
	struct inode *inode;
	bio_end_io_t *end_io;		/* iomap's */
	struct bvec_iter iter;		/* of the bio, before it was sent */
	u64 block, addr;
	void *oob;
	struct bio bio;			/* last: see bio_alloc_bioset() */
};

#define FAULT_IN	SZ_1M	/* of the caller's memory, at a time */

static_assert(RFSM_APPEND_MAX <= BITS_PER_LONG);

static struct bvec_iter rfsm_direct_block(const struct rfsm_direct *d, u32 i)
{
	struct bvec_iter iter = d->iter;

	bio_advance_iter(&d->bio, &iter, i * RFS_BLOCK_BYTES);
	iter.bi_size = RFS_BLOCK_BYTES;
	return iter;
}

static u32 rfsm_direct_crc(const struct rfsm_direct *d, u32 i)
{
	struct bvec_iter iter, from = rfsm_direct_block(d, i);
	u32 crc = ~0U;
	struct bio_vec bv;

	__bio_for_each_segment(bv, &d->bio, iter, from)
		crc = rfs_crc(crc, page_address(bv.bv_page) + bv.bv_offset,
			      bv.bv_len);
	return ~crc;
}

/* Reads a block from flash, and checks it where nobody else can change it. */
static bool rfsm_direct_flash(struct rfs_sb_info *sbi, struct rfsm_direct *d,
			      u32 i, struct page *page)
{
	void *oob = NULL;
	struct bio *bio = rfsm_bio(&sbi->dev, REQ_OP_READ, 1, d->addr + i,
				   &oob);
	bool ok;

	rfsm_bio_oobs(&sbi->dev, bio, oob, 1);
	__bio_add_page(bio, page, RFS_BLOCK_BYTES, 0);
	ok = !submit_bio_wait(bio) &&
	     (!oob || rfsm_block_ok(sbi, d->inode, d->block + i, d->addr + i,
				    oob, ~rfs_crc(~0U, page_address(page),
						  RFS_BLOCK_BYTES)));
	rfsm_bio_put(&sbi->dev, bio, oob);
	return ok;
}

/* Reads a block once more. One that flash cannot read may be at home, too. */
static bool rfsm_direct_again(struct rfsm_direct *d, u32 i)
{
	struct bvec_iter iter, from = rfsm_direct_block(d, i);
	struct rfs_sb_info *sbi = RFS_SB(d->inode->i_sb);
	struct page *page = mempool_alloc(&sbi->fetch_pages, GFP_NOIO);
	const char *data = page_address(page);
	struct bio_vec bv;
	bool ok;

	if (d->addr & RFSM_AT_HOME)
		ok = !rfsm_slow_read_page(sbi, d->inode, d->block + i,
					  d->addr + i, page);
	else
		ok = rfsm_direct_flash(sbi, d, i, page) ||
		     (sbi->slow && rfsm_slow_instead(sbi, d->inode,
						     d->block + i, page));
	if (ok) {
		__bio_for_each_segment(bv, &d->bio, iter, from) {
			memcpy_to_bvec(&bv, data);
			data += bv.bv_len;
		}
	}
	mempool_free(page, &sbi->fetch_pages);
	return ok;
}

static void rfsm_direct_over(struct work_struct *work)
{
	struct rfsm_direct *d = container_of(work, struct rfsm_direct, work);
	struct rfs_sb_info *sbi = RFS_SB(d->inode->i_sb);
	u32 i, n = d->iter.bi_size / RFS_BLOCK_BYTES;
	unsigned long bad = 0;

	for (i = 0; i < n; i++)
		if (d->bio.bi_status ||
		    (d->oob &&
		     !rfsm_block_is(sbi, d->inode, d->block + i,
				    d->oob + i * sbi->dev.oob_bytes,
				    rfsm_direct_crc(d, i))))
			bad |= BIT(i);
	/* This is freed first, since other reads that are repeated may wait for it. */
	if (d->oob)
		mempool_free(virt_to_page(d->oob), &sbi->dev.oob_pages);
	/* Where memory was missing, a bio may end within a block. Nobody repeats that block. */
	if (IS_ALIGNED(d->iter.bi_size, RFS_BLOCK_BYTES))
		d->bio.bi_status = BLK_STS_OK;
	for_each_set_bit(i, &bad, n)
		if (!rfsm_direct_again(d, i))
			d->bio.bi_status = BLK_STS_IOERR;
	rfsm_read_drop(sbi, d->addr);
	d->end_io(&d->bio);
}

/* As in read.c, checksums are not computed in an interrupt. */
static void rfsm_direct_endio(struct bio *bio)
{
	struct rfsm_direct *d = container_of(bio, struct rfsm_direct, bio);

	INIT_WORK(&d->work, rfsm_direct_over);
	queue_work(rfsm_reads, &d->work);
}

static void rfsm_direct_submit(const struct iomap_iter *iter, struct bio *bio,
			       loff_t pos)
{
	struct rfsm_direct *d = container_of(bio, struct rfsm_direct, bio);
	struct rfs_sb_info *sbi = RFS_SB(iter->inode->i_sb);
	struct rfsm_dev *dev = &sbi->dev;

	d->inode = iter->inode;
	d->iter = bio->bi_iter;
	d->block = pos >> PAGE_SHIFT;
	d->addr = bio->bi_iter.bi_sector >> (PAGE_SHIFT - SECTOR_SHIFT);
	/* The run's address says whether it is at home, so the block's address does, too. */
	d->addr |= (unsigned long)iter->iomap.private;
	d->oob = NULL;
	if (dev->oob_bytes && !(d->addr & RFSM_AT_HOME)) {
		d->oob = page_address(mempool_alloc(&dev->oob_pages, GFP_NOIO));
		rfsm_bio_oobs(dev, bio, d->oob,
			      bio->bi_iter.bi_size / RFS_BLOCK_BYTES);
	}
	rfsm_read_hold(sbi, d->addr);
	d->end_io = bio->bi_end_io;
	bio->bi_end_io = rfsm_direct_endio;
	if (sbi->slow)
		rfsm_slow_count(sbi, d->addr,
				bio->bi_iter.bi_size / RFS_BLOCK_BYTES);
	if (d->addr & RFSM_AT_HOME)
		rfsm_slow_submit(sbi, bio);
	else
		submit_bio(bio);
}

/* These bits of an address say that it is at home. */
#define WHERE	(RFSM_AT_HOME | RFSM_PHASE)

/* Returns how many blocks of a run can be read as they are, with nothing to be put over them. */
static u32 rfsm_direct_run(const struct rfsm_run *run)
{
	return run->pieces || run->len < RFS_BLOCK_BYTES ? run->n - 1 : run->n;
}

static int rfsm_direct_begin(struct inode *inode, loff_t pos, loff_t length,
			     unsigned int flags, struct iomap *iomap,
			     struct iomap *srcmap)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u32 most = min_t(u64, length >> PAGE_SHIFT, sbi->dev.append_max);
	u64 block = pos >> PAGE_SHIFT;
	struct rfsm_miss miss = { 0 };
	struct rfsm_found found;
	struct rfsm_run run;
	int ret;

	/*
	 * The caller's memory has ended within a block before, since the device has smaller ones.
	 */
	if (!IS_ALIGNED(pos, RFS_BLOCK_BYTES))
		return -EFAULT;
	/* All blocks that are read at once have their OOBs in one page. */
	while ((ret = rfsm_look_up(sbi, inode, block, most, &found, &miss)) ==
	       -EINPROGRESS)
		rfsm_miss_read(sbi, &miss);
	if (ret)
		return rfsm_failed(sbi, ret);
	run = found.run[0];
	run.n = rfsm_direct_run(&run);
	if (run.n && run.addr)
		rfsm_read_hold(sbi, run.addr);
	while (found.next < found.n)
		rfsm_found_used(sbi, &found, found.run[found.next].n);
	if (!run.n)
		return -ENOTBLK;	/* something has to be put over it */
	/* Without the slow device there is nothing to give a bio to. */
	if (run.addr & RFSM_AT_HOME && !rfsm_slow_bdev(sbi)) {
		rfsm_read_drop(sbi, run.addr);
		return -EIO;
	}
	iomap->bdev = run.addr & RFSM_AT_HOME ? rfsm_slow_bdev(sbi) :
						sbi->dev.bdev;
	iomap->offset = block << PAGE_SHIFT;
	iomap->length = (u64)run.n << PAGE_SHIFT;
	iomap->type = run.addr ? IOMAP_MAPPED : IOMAP_HOLE;
	iomap->addr = run.addr ? (run.addr & ~WHERE) << PAGE_SHIFT :
				 IOMAP_NULL_ADDR;
	iomap->private = (void *)(unsigned long)(run.addr & WHERE);
	return 0;
}

static int rfsm_direct_end(struct inode *inode, loff_t pos, loff_t length,
			   ssize_t read, unsigned int flags,
			   struct iomap *iomap)
{
	if (iomap->type == IOMAP_MAPPED)
		rfsm_read_drop(RFS_SB(inode->i_sb), iomap->addr >> PAGE_SHIFT |
			       (unsigned long)iomap->private);
	return 0;
}

static const struct iomap_ops rfsm_direct_ops = {
	.iomap_begin = rfsm_direct_begin,
	.iomap_end = rfsm_direct_end,
};

/*
 * Reads as many blocks as there is memory for. The blocks are held while they are read, so they are
 * not given away. If the memory is a mapping of this volume, a page of it may need just the room of
 * these blocks. So where memory ends, this waits for the reads that were sent, also if the caller
 * does not wait otherwise: io_uring would hand a short read to the program.
 */
static ssize_t rfsm_direct_some(struct kiocb *iocb, struct iov_iter *to,
				size_t done)
{
	struct rfs_sb_info *sbi = RFS_SB(file_inode(iocb->ki_filp)->i_sb);
	int nowait = iocb->ki_flags & IOCB_NOWAIT;
	ssize_t ret;

	iocb->ki_flags &= ~IOCB_NOWAIT;
	pagefault_disable();
	to->nofault = true;
	ret = iomap_dio_rw(iocb, to, &rfsm_direct_ops, &sbi->dev.direct_ops,
			   IOMAP_DIO_PARTIAL, NULL, done);
	to->nofault = false;
	pagefault_enable();
	/* If the read goes on by itself, iocb may be gone. */
	if (ret != -EIOCBQUEUED)
		iocb->ki_flags |= nowait;
	return ret;
}

/*
 * A part of a block was read before the memory ended. The next try reads it again with its block.
 */
static size_t rfsm_direct_whole(struct kiocb *iocb, struct iov_iter *to,
				size_t done)
{
	size_t part = iocb->ki_pos % RFS_BLOCK_BYTES;

	if (iocb->ki_pos >= i_size_read(file_inode(iocb->ki_filp)))
		return done;
	iov_iter_revert(to, part);
	iocb->ki_pos -= part;
	return done - part;
}

/*
 * The inode is not locked: a block that is truncated, overwritten or moved meanwhile stays where it
 * is until it was read.
 */
ssize_t rfsm_direct_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	size_t bytes = iov_iter_count(to), left, tried = 0, done = 0, next;
	loff_t pos = iocb->ki_pos;
	ssize_t ret;

	if (!IS_ALIGNED(pos, RFS_BLOCK_BYTES) ||
	    !iov_iter_is_aligned(to, sbi->dev.direct_align,
				 RFS_BLOCK_BYTES - 1))
		return 0;
	if (bytes && filemap_range_has_page(inode->i_mapping, pos,
					    pos + bytes - 1))
		return 0;
	/*
	 * A caller that does not wait gets the error before any of the read is sent. After that,
	 * io_uring would hand the error to the program.
	 */
	if (iocb->ki_flags & IOCB_NOWAIT &&
	    !rfsm_is_known(sbi, inode, pos >> PAGE_SHIFT,
			   (pos + bytes) >> PAGE_SHIFT))
		return -EAGAIN;
	file_accessed(iocb->ki_filp);
	for (;;) {
		ret = rfsm_direct_some(iocb, to, done);
		if (ret < 0 && ret != -EFAULT)
			return ret;
		if (ret > 0)
			done = rfsm_direct_whole(iocb, to, ret);
		left = iov_iter_count(to);
		next = min_t(size_t, left, FAULT_IN);
		/* The page cache reads the blocks that cannot be read here. */
		if (!ret || !left || left == tried ||
		    fault_in_iov_iter_writeable(to, next) == next)
			return done;
		tried = left;
	}
}

int rfsm_direct_init(struct rfsm_dev *dev)
{
	dev->direct_ops = (struct iomap_dio_ops){
		.submit_io = rfsm_direct_submit,
		.bio_set = &dev->direct_bios,
	};
	dev->direct_align = bdev_dma_alignment(dev->bdev);
	return rfsm_bioset_init(&dev->direct_bios, 64,
				offsetof(struct rfsm_direct, bio));
}
