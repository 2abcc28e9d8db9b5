// SPDX-License-Identifier: GPL-2.0
/* This is the drive: bios with page metadata, and the operations that the core needs. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "error.h"
#include "flush.h"
#include "trace.h"
#include "space/space.h"

#define SECTORS		(RFS_BLOCK_BYTES >> SECTOR_SHIFT)	/* of a block */

struct workqueue_struct *rfsm_reads, *rfsm_resets;

/*
 * The core has bios and pages for OOBs of its own, because appends in flight that hold the others
 * may wait for the core.
 */
static struct bio *rfsm_core_bio(struct rfsm_dev *dev, blk_opf_t op, u32 blocks,
				 u64 addr, u32 nth, void **oob)
{
	struct bio *bio;

	bio = bio_alloc_bioset(dev->bdev, blocks, op | REQ_SYNC | REQ_META,
			       GFP_NOIO, &dev->core_bios);
	bio->bi_iter.bi_sector = rfsm_sector(addr);
	*oob = dev->oob_bytes || dev->unused_bytes ?
	       page_address(dev->core_oob[nth]) : NULL;
	if (*oob && (!op_is_write(op) || !dev->oob_bytes))
		memset(*oob, 0, PAGE_SIZE);
	return bio;
}

/*
 * Returns a bio for so many blocks. On a drive with page metadata it also gets a page for their
 * OOBs, which rfsm_bio_oobs() adds. If the caller has set *oob, this memory is taken instead. For a
 * read the page is zeroes; a caller that writes fills in all OOBs. This waits for memory of the
 * mempools.
 */
struct bio *rfsm_bio(struct rfsm_dev *dev, blk_opf_t op, u32 blocks, u64 addr,
		     void **oob)
{
	struct bio *bio;

	bio = bio_alloc_bioset(dev->bdev, blocks, op, GFP_NOIO, &dev->bios);
	bio->bi_iter.bi_sector = rfsm_sector(addr);
	if (!dev->oob_bytes) {
		*oob = NULL;
	} else if (!*oob) {
		*oob = page_address(mempool_alloc(&dev->oob_pages, GFP_NOIO));
		if (!op_is_write(op))
			memset(*oob, 0, PAGE_SIZE);
	}
	return bio;
}

void rfsm_bio_oobs(struct rfsm_dev *dev, struct bio *bio, void *oob, u32 n)
{
	u32 i, step = dev->oob_bytes;

	if (!oob)
		return;
	if (!step)	/* zeroes: an append must have what the drive has */
		step = dev->unused_bytes;
	for (i = n; dev->oob_bytes > RFS_OOB_BYTES && i-- > 0;) {
		memmove(oob + i * step, oob + i * RFS_OOB_BYTES, RFS_OOB_BYTES);
		memset(oob + i * step + RFS_OOB_BYTES, 0, step - RFS_OOB_BYTES);
	}
	/* Neither of these fails, since a payload of the pool has room for a page. */
	bio_integrity_alloc(bio, GFP_NOIO, 1);
	bio_integrity_add_page(bio, virt_to_page(oob), n * step,
			       offset_in_page(oob));
}

void rfsm_bio_oobs_back(struct rfsm_dev *dev, void *oob, u32 n)
{
	u32 i, step = dev->oob_bytes;

	for (i = 0; step > RFS_OOB_BYTES && i < n; i++)
		memmove(oob + i * RFS_OOB_BYTES, oob + i * step, RFS_OOB_BYTES);
}

void rfsm_bio_put(struct rfsm_dev *dev, struct bio *bio, void *oob)
{
	bio_put(bio);
	if (oob)
		mempool_free(virt_to_page(oob), &dev->oob_pages);
}

static struct page **rfsm_bounce_pages(struct rfsm_dev *dev, u32 nth)
{
	return &dev->bounce[nth * RFSM_APPEND_MAX];
}

static struct bio *rfsm_append_bio(struct rfsm_dev *dev,
				   const struct rfs_append_req *req)
{
	struct page **bounce = rfsm_bounce_pages(dev, req->nr);
	struct bio *bio;
	void *page;
	u32 i;

	if (WARN_ON_ONCE(req->n > RFSM_APPEND_MAX))
		return NULL;
	bio = rfsm_core_bio(dev, REQ_OP_ZONE_APPEND, req->n,
			    (u64)req->zone * (dev->zone_sectors / SECTORS),
			    req->nr, &page);
	if (dev->oob_bytes)
		memcpy(page, req->oob, req->n * sizeof(*req->oob));
	rfsm_bio_oobs(dev, bio, page, req->n);
	for (i = 0; i < req->n; i++) {
		/* Blocks of the core lie anywhere in memory, and the drive wants pages. */
		memcpy(page_address(bounce[i]), req->data[i], RFS_BLOCK_BYTES);
		/* The bio was made for so many pages, and the drive takes them. */
		WARN_ON_ONCE(bio_add_zone_append_page(bio, bounce[i],
						      RFS_BLOCK_BYTES, 0) !=
			     RFS_BLOCK_BYTES);
	}
	trace_rfs_append(dev->bdev->bd_dev, req->zone, req->n, false);
	return bio;
}

static void rfsm_append_endio(struct bio *bio)
{
	struct rfsm_append_req *s = bio->bi_private;

	complete(&s->done);
}

static void rfsm_dev_append_submit(void *opaque, struct rfs_append_req *req)
{
	struct rfsm_dev *dev = opaque;
	struct rfsm_append_req *s = &dev->reqs[req->nr];

	dev->ahead = 0;
	s->bio = dev->dead ? NULL : rfsm_append_bio(dev, req);
	if (!s->bio)
		return;
	reinit_completion(&s->done);
	s->bio->bi_private = s;
	s->bio->bi_end_io = rfsm_append_endio;
	submit_bio(s->bio);
}

static void rfsm_dev_append_wait(void *opaque, struct rfs_append_req *req)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);
	struct rfsm_dev *dev = opaque;
	struct rfsm_append_req *s = &dev->reqs[req->nr];

	req->error = -EIO;
	if (!s->bio)
		return;
	if (req->early)
		rfsm_unlock(sbi);
	else
		rfsm_lend(sbi);
	wait_for_completion_io(&s->done);
	if (req->early)
		rfsm_lock_now(sbi);
	else
		rfsm_take_back(sbi);
	req->error = rfsm_drive_error(blk_status_to_errno(s->bio->bi_status));
	req->addr = s->bio->bi_iter.bi_sector / SECTORS;
	bio_put(s->bio);
}

static int rfsm_dev_append(void *opaque, u32 zone, u32 blocks,
			   const void *const *data, const struct rfs_oob *oob,
			   u64 *addr)
{
	struct rfs_append_req req = {
		.nr = RFSM_REQ_SYNC, .zone = zone, .n = blocks, .data = data,
		.oob = oob,
	};

	rfsm_dev_append_submit(opaque, &req);
	rfsm_dev_append_wait(opaque, &req);
	*addr = req.addr;
	return req.error;
}

/* rfsm_dev_append() returns only when the blocks are written, so nothing is left to wait for. */
static int rfsm_dev_wait(void *opaque)
{
	struct rfsm_dev *dev = opaque;

	return dev->dead ? -EIO : 0;
}

/* Reads n consecutive blocks and their OOBs into the bounce pages. */
static int rfsm_read_blocks(struct rfsm_dev *dev, u64 addr, u32 n)
{
	struct page **bounce = rfsm_bounce_pages(dev, RFSM_REQ_SYNC);
	struct bio *bio;
	void *oob;
	u32 i;
	int ret;

	bio = rfsm_core_bio(dev, REQ_OP_READ, n, addr, RFSM_REQ_SYNC, &oob);
	rfsm_bio_oobs(dev, bio, oob, n);
	for (i = 0; i < n; i++)
		__bio_add_page(bio, bounce[i], RFS_BLOCK_BYTES, 0);
	ret = submit_bio_wait(bio);
	rfsm_bio_oobs_back(dev, oob, n);
	bio_put(bio);
	return ret;
}

/*
 * A mount reads the updating window page by page, so many blocks are read at once. Returns how many
 * there are from addr on, up to the zone's write pointer.
 */
static u32 rfsm_read_ahead(struct rfsm_dev *dev, u64 addr)
{
	u32 blocks = dev->zone_sectors / SECTORS, off = addr % blocks, n;

	if (!dev->zones || addr != dev->next_read)
		return 1;
	n = dev->zones[addr / blocks].wp;
	return n > off ? min(n - off, dev->append_max) : 1;
}

static int rfsm_dev_read(void *opaque, u64 addr, void *data,
			 struct rfs_oob *oob)
{
	struct rfsm_dev *dev = opaque;
	struct page *oobs = dev->core_oob[RFSM_REQ_SYNC];
	u64 at = addr - dev->ahead_from;

	if (dev->dead)
		return -EIO;
	if (addr < dev->ahead_from || at >= dev->ahead) {
		dev->ahead_from = addr;
		dev->ahead = rfsm_read_ahead(dev, addr);
		/* One of many blocks may be unreadable. Then they are read one by one. */
		if (dev->ahead > 1 && rfsm_read_blocks(dev, addr, dev->ahead))
			dev->ahead = 1;
		if (dev->ahead == 1 && rfsm_read_blocks(dev, addr, 1)) {
			dev->ahead = 0;
			return -EIO;
		}
		at = 0;
	}
	memcpy(data, page_address(rfsm_bounce_pages(dev, RFSM_REQ_SYNC)[at]),
	       RFS_BLOCK_BYTES);
	if (oob && oobs)
		memcpy(oob, page_address(oobs) + at * sizeof(*oob),
		       sizeof(*oob));
	dev->next_read = addr + 1;
	if (!dev->zones)
		dev->ahead = 0;	/* others write too now */
	return 0;
}

static int rfsm_dev_scan(void *opaque, u64 addr, void *data,
			 struct rfs_oob *oob)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);
	struct rfsm_dev *dev = opaque;
	struct page *page;
	struct bio *bio;
	void *oobs = NULL;
	int ret;

	rfsm_unlock(sbi);
	page = mempool_alloc(&sbi->fetch_pages, GFP_NOIO);
	bio = rfsm_bio(dev, REQ_OP_READ | REQ_SYNC | REQ_META, 1, addr, &oobs);
	rfsm_bio_oobs(dev, bio, oobs, 1);
	__bio_add_page(bio, page, RFS_BLOCK_BYTES, 0);
	ret = dev->dead || submit_bio_wait(bio) ? -EIO : 0;
	rfsm_bio_oobs_back(dev, oobs, 1);
	memcpy(data, page_address(page), RFS_BLOCK_BYTES);
	if (oob && oobs)
		memcpy(oob, oobs, sizeof(*oob));
	rfsm_bio_put(dev, bio, oobs);
	mempool_free(page, &sbi->fetch_pages);
	rfsm_lock(sbi);
	return ret;
}

/* Only one thread cleans at a time, so one place is enough for the block that it misses. */
static void rfsm_dev_fetch(void *opaque)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);

	rfsm_miss_end(sbi, &sbi->cleaner_miss, -EINPROGRESS);
	rfsm_unlock(sbi);
	rfsm_miss_read(sbi, &sbi->cleaner_miss);
	rfsm_lock(sbi);
	rfsm_miss_begin(sbi, &sbi->cleaner_miss);
}

static void rfsm_dev_fetched(void *opaque)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);

	rfsm_miss_end(sbi, &sbi->cleaner_miss, 0);
}

static void rfsm_copy_read_endio(struct bio *bio)
{
	struct rfsm_part *part = bio->bi_private;
	u32 i;

	for (i = 0; i < part->n; i++)
		part->there[i] = !bio->bi_status;
	bio_put(bio);
	if (atomic_dec_and_test(&part->copy->reading))
		complete(&part->copy->read);
}

/* Returns the page in which a place of memory from rfs_alloc() lies. */
struct page *rfsm_page_of(const void *block)
{
	return is_vmalloc_addr(block) ? vmalloc_to_page(block) :
					virt_to_page(block);
}

/* Reads each run of consecutive blocks that are missing with one bio. */
static int rfsm_dev_copy_read(void *opaque, struct rfs_copy *copy)
{
	struct rfsm_dev *dev = opaque;
	struct rfsm_copy *c = &dev->copies[copy->nr];
	u32 i, j, k, used = 0;

	atomic_set(&c->reading, 1);
	reinit_completion(&c->read);
	for (i = 0; i < copy->n && !dev->dead; i += k) {
		struct rfsm_part *part = &c->part[used];
		struct bio *bio;

		for (k = 1; i + k < copy->n && !copy->there[i] &&
		     !copy->there[i + k] &&
		     copy->from[i + k] == copy->from[i] + k;)
			k++;
		if (copy->there[i])
			continue;
		used++;
		bio = bio_alloc_bioset(dev->bdev, k, REQ_OP_READ | REQ_META,
				       GFP_NOIO, &dev->core_bios);
		bio->bi_iter.bi_sector = rfsm_sector(copy->from[i]);
		part->copy = c;
		part->there = copy->there + i;
		part->n = k;
		bio->bi_private = part;
		bio->bi_end_io = rfsm_copy_read_endio;
		for (j = i; j < i + k; j++)
			__bio_add_page(bio, rfsm_page_of(copy->block[j]),
				       RFS_BLOCK_BYTES, 0);
		atomic_inc(&c->reading);
		submit_bio(bio);
	}
	if (atomic_dec_and_test(&c->reading))
		complete(&c->read);
	return 0;
}

/* Nobody else has the copy, or resets the zones of its blocks, so no lock is held. */
static bool rfsm_copy_read_again(struct rfsm_dev *dev, const struct rfs_copy *copy, u32 i)
{
	struct bio *bio;
	int ret;

	if (dev->dead)
		return false;
	bio = bio_alloc_bioset(dev->bdev, 1, REQ_OP_READ | REQ_SYNC | REQ_META, GFP_NOIO,
			       &dev->core_bios);
	bio->bi_iter.bi_sector = rfsm_sector(copy->from[i]);
	__bio_add_page(bio, rfsm_page_of(copy->block[i]), RFS_BLOCK_BYTES, 0);
	ret = submit_bio_wait(bio);
	bio_put(bio);
	return !ret;
}

static void rfsm_dev_copy_read_wait(void *opaque, struct rfs_copy *copy)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);
	u32 i;

	rfsm_unlock(sbi);
	wait_for_completion_io(&sbi->dev.copies[copy->nr].read);
	/* One unreadable block of a run fails all of it, so each is read once more. */
	for (i = 0; i < copy->n; i++)
		if (!copy->there[i])
			copy->there[i] = rfsm_copy_read_again(&sbi->dev, copy, i);
	rfsm_lock(sbi);
}

static int rfsm_dev_copy_write_wait(void *opaque, struct rfs_copy *copy)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);
	struct rfsm_copy *c = &sbi->dev.copies[copy->nr];

	rfsm_unlock(sbi);
	wait_for_completion_io(&c->written);
	rfsm_lock(sbi);
	return c->error;
}

static int rfsm_zone_manage(struct rfsm_dev *dev, u32 zone, enum req_op op)
{
	struct rfs_sb_info *sbi = container_of(dev, struct rfs_sb_info, dev);
	int ret;

	if (dev->dead)
		return -EIO;
	rfsm_lend(sbi);
	ret = blkdev_zone_mgmt(dev->bdev, op,
			       (sector_t)zone * dev->zone_sectors,
			       dev->zone_sectors);
	rfsm_take_back(sbi);
	return rfsm_drive_error(ret);
}

/*
 * A zone is not reset while a read is in flight that looked up an address in it (rule 4 of
 * doc/design.md). This function does not wait for the read; the core may, see rfsm_dev_delay().
 */
static int rfsm_dev_reset(void *opaque, u32 zone)
{
	struct rfsm_dev *dev = opaque;
	int ret;

	if (dev->dead)
		return -EIO;
	dev->ahead = 0;
	if (atomic_read(&dev->reads[zone]))
		return -EBUSY;
	ret = rfsm_zone_manage(dev, zone, REQ_OP_ZONE_RESET);
	trace_rfs_reset(dev->bdev->bd_dev, zone, ret);
	return ret;
}

static void rfsm_reset_endio(struct bio *bio)
{
	struct rfsm_reset *r = bio->bi_private;

	/*
	 * Appends complete in another queue, because a work item that waits for a reset would keep
	 * them waiting. Reads have another one, too: pieces are put over some of them, and that
	 * waits for memory.
	 */
	queue_work(rfsm_resets, &r->work);
}

/* The reset is over, so the next one may begin. */
static void rfsm_reset_over(struct work_struct *work)
{
	struct rfsm_reset *r = container_of(work, struct rfsm_reset, work);
	int error = rfsm_drive_error(blk_status_to_errno(r->bio.bi_status));
	struct rfs_sb_info *sbi = r->sbi;
	u32 zone = r->zone;

	bio_uninit(&r->bio);
	trace_rfs_reset(sbi->dev.bdev->bd_dev, zone, error);
	rfsm_lock_query_now(sbi);
	r->busy = false;
	WRITE_ONCE(r->ended, r->ended + 1);
	rfs_reset_done(sbi->fs, zone, error);
	/* Erases would delay a check-point. They go on when it ends. */
	if (!sbi->gate && !sbi->drain)
		rfs_reset_next(sbi->fs);
	rfsm_unlock(sbi);
	wake_up_all(&sbi->gate_wait);
}

/*
 * Resets one zone at a time. An erase takes all dies of a zone for some milliseconds, and a reader
 * or writer waits for no more than one.
 */
static int rfsm_dev_reset_begin(void *opaque, u32 zone)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);
	struct rfsm_reset *r = &sbi->reset;

	if (sbi->dev.dead)
		return -EIO;
	if (r->busy || r->stops || atomic_read(&sbi->dev.reads[zone]))
		return -EBUSY;
	r->sbi = sbi;
	r->zone = zone;
	r->busy = true;
	INIT_WORK(&r->work, rfsm_reset_over);
	bio_init(&r->bio, sbi->dev.bdev, NULL, 0, REQ_OP_ZONE_RESET | REQ_SYNC);
	r->bio.bi_iter.bi_sector = (sector_t)zone * sbi->dev.zone_sectors;
	r->bio.bi_private = r;
	r->bio.bi_end_io = rfsm_reset_endio;
	submit_bio(&r->bio);
	return 0;
}

int rfsm_reset_free(struct rfs_sb_info *sbi)
{
	struct rfsm_reset *r = &sbi->reset;
	/* one that is under way may be none of these */
	u32 last = r->ended + r->busy + sbi->fs->set[RFS_SET_RESET].count;
	int ret = 0;

	rfs_reset_next(sbi->fs);
	while (!ret && r->busy && (s32)(last - r->ended) > 0) {
		rfsm_unlock(sbi);
		ret = wait_event_killable(sbi->gate_wait,
					  !READ_ONCE(r->busy) ||
					  (s32)(last - READ_ONCE(r->ended)) <= 0);
		rfsm_lock(sbi);
		rfs_reset_next(sbi->fs);
	}
	return ret ? -EINTR : 0;
}

void rfsm_reset_stop(struct rfs_sb_info *sbi)
{
	rfsm_lock_now(sbi);
	sbi->reset.stops = true;
	rfsm_unlock(sbi);
	wait_event(sbi->gate_wait, !READ_ONCE(sbi->reset.busy));
	if (sbi->reset.sbi)
		flush_work(&sbi->reset.work);
}

static void rfsm_dev_quiet(void *opaque, bool begins)
{
	rfsm_quiet(container_of(opaque, struct rfs_sb_info, dev), begins);
}

static int rfsm_dev_finish_zone(void *opaque, u32 zone)
{
	return rfsm_zone_manage(opaque, zone, REQ_OP_ZONE_FINISH);
}

static int rfsm_dev_close_zone(void *opaque, u32 zone)
{
	return rfsm_zone_manage(opaque, zone, REQ_OP_ZONE_CLOSE);
}

static void rfsm_dev_yield(void *opaque)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);

	rfsm_unlock(sbi);
	cond_resched();
	rfsm_lock(sbi);
}

/* stat(2) reads the number of blocks without the lock, so Linux's inode is told of it here. */
static void rfsm_dev_blocks(void *opaque, u32 ino, u64 blocks)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);
	struct inode *inode;

	rcu_read_lock();
	inode = find_inode_by_ino_rcu(sbi->sb, ino);
	if (inode)
		WRITE_ONCE(RFS_I(inode)->blocks, blocks);
	rcu_read_unlock();
}

static void rfsm_dev_delay(void *opaque)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);

	rfsm_lend(sbi);
	schedule_timeout_uninterruptible(1);
	rfsm_take_back(sbi);
}

static int rfsm_dev_flush(void *opaque)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);
	int ret;

	if (sbi->dev.dead)
		return -EIO;
	rfsm_lend(sbi);
	ret = rfsm_flush(sbi);
	rfsm_take_back(sbi);
	return ret;
}

/* Does the same while others go on. */
static int rfsm_dev_flush_early(void *opaque)
{
	struct rfs_sb_info *sbi = container_of(opaque, struct rfs_sb_info, dev);
	int ret;

	if (sbi->dev.dead)
		return -EIO;
	rfsm_unlock(sbi);
	ret = rfsm_flush(sbi);
	rfsm_lock_now(sbi);
	return ret;
}

static int rfsm_note_zone(struct blk_zone *zone, unsigned int index, void *data)
{
	struct rfs_dev_zone *out = data;

	out += index;
	out->cap = zone->capacity / SECTORS;
	out->wp = (zone->wp - zone->start) / SECTORS;
	out->cond = RFS_DEV_OK;
	if (zone->type == BLK_ZONE_TYPE_CONVENTIONAL)
		out->cond = RFS_DEV_OFFLINE;	/* all is appended */
	switch (zone->cond) {
	case BLK_ZONE_COND_EMPTY:
		out->wp = 0;
		break;
	case BLK_ZONE_COND_FULL:
		out->wp = out->cap;
		break;
	case BLK_ZONE_COND_READONLY:
		/* The drive does not say where the zone ends, so all of it may be read. */
		out->wp = out->cap;
		out->cond = RFS_DEV_READ_ONLY;
		break;
	case BLK_ZONE_COND_OFFLINE:
		out->wp = 0;
		out->cond = RFS_DEV_OFFLINE;
		break;
	default:
		break;
	}
	return 0;
}

static int rfsm_dev_report(void *opaque, u32 zone, struct rfs_dev_zone *out)
{
	struct rfsm_dev *dev = opaque;
	int ret;

	if (dev->zones) {
		*out = dev->zones[zone];
		return 0;
	}
	ret = blkdev_report_zones(dev->bdev, (sector_t)zone * dev->zone_sectors,
				  1, rfsm_note_zone, out);
	return ret == 1 ? 0 : -EIO;
}

static u64 rfsm_dev_now(void *opaque)
{
	struct timespec64 now;

	/* The times of files are taken from this clock. */
	ktime_get_coarse_real_ts64(&now);
	return timespec64_to_ns(&now);
}

/* Files above this one add their own operations when the volume is mounted. */
static const struct rfs_dev_ops drive_ops = {
	.append = rfsm_dev_append,
	.append_submit = rfsm_dev_append_submit,
	.append_wait = rfsm_dev_append_wait,
	.wait = rfsm_dev_wait,
	.read = rfsm_dev_read,
	.scan = rfsm_dev_scan,
	.fetch = rfsm_dev_fetch,
	.fetched = rfsm_dev_fetched,
	.copy_read = rfsm_dev_copy_read,
	.copy_read_wait = rfsm_dev_copy_read_wait,
	.copy_write_wait = rfsm_dev_copy_write_wait,
	.yield = rfsm_dev_yield,
	.delay = rfsm_dev_delay,
	.reset = rfsm_dev_reset,
	.reset_begin = rfsm_dev_reset_begin,
	.quiet = rfsm_dev_quiet,
	.finish = rfsm_dev_finish_zone,
	.close = rfsm_dev_close_zone,
	.flush = rfsm_dev_flush,
	.flush_early = rfsm_dev_flush_early,
	.report = rfsm_dev_report,
	.now = rfsm_dev_now,
	.blocks = rfsm_dev_blocks,
	.victim = rfsm_victim,
	.frees_orphans = true,
};

/*
 * Finds the page metadata that RFS can use: 64 bytes or more that nobody else checks. Smaller
 * metadata stays zero.
 */
static void rfsm_find_oob(struct rfsm_dev *dev)
{
	struct blk_integrity *bi = blk_get_integrity(dev->bdev->bd_disk);

	dev->oob_bytes = 0;
	dev->unused_bytes = 0;
	if (!bi || bi->csum_type != BLK_INTEGRITY_CSUM_NONE)
		return;
	if (bi->tuple_size >= RFS_OOB_BYTES &&
	    bdev_logical_block_size(dev->bdev) == RFS_BLOCK_BYTES)
		dev->oob_bytes = bi->tuple_size;
	else
		dev->unused_bytes = bio_integrity_bytes(bi, SECTORS);
}

int rfsm_bioset_init(struct bio_set *bios, u32 n, u32 before)
{
	int ret = bioset_init(bios, n, before, BIOSET_NEED_BVECS);

	if (ret)
		return ret;
	/* bioset_integrity_create() returns -1 if it fails. */
	return bioset_integrity_create(bios, n) ? -ENOMEM : 0;
}

static int rfsm_dev_alloc(struct rfsm_dev *dev)
{
	u32 i;
	int ret;

	ret = rfsm_bioset_init(&dev->bios, 64, 0);
	if (!ret)
		ret = rfsm_bioset_init(&dev->core_bios, 16, 0);
	if (!ret)
		ret = mempool_init_page_pool(&dev->oob_pages, 64, 0);
	for (i = 0; !ret && i < ARRAY_SIZE(dev->core_oob); i++) {
		init_completion(&dev->reqs[i].done);
		dev->core_oob[i] = alloc_page(GFP_KERNEL);
		if (!dev->core_oob[i])
			ret = -ENOMEM;
	}
	for (i = 0; !ret && i < ARRAY_SIZE(dev->bounce); i++) {
		dev->bounce[i] = alloc_page(GFP_KERNEL);
		if (!dev->bounce[i])
			ret = -ENOMEM;
	}
	dev->zones = kvcalloc(dev->zone_count, sizeof(*dev->zones), GFP_KERNEL);
	dev->reads = kvcalloc(dev->zone_count, sizeof(*dev->reads), GFP_KERNEL);
	dev->copies = kvcalloc(RFS_COPIES, sizeof(*dev->copies), GFP_KERNEL);
	for (i = 0; dev->copies && i < RFS_COPIES; i++) {
		init_completion(&dev->copies[i].read);
		init_completion(&dev->copies[i].written);
	}
	return ret || (dev->zones && dev->reads && dev->copies) ? ret : -ENOMEM;
}

int rfsm_dev_open(struct rfsm_dev *dev, struct super_block *sb,
		  struct rfs_geometry *geo)
{
	struct block_device *bdev = sb->s_bdev;
	u32 most;
	int ret;

	if (!bdev_is_zoned(bdev)) {
		pr_err("%pg: not a zoned device\n", bdev);
		return -EINVAL;
	}
	dev->bdev = bdev;
	dev->ops = drive_ops;
	dev->zone_sectors = bdev_zone_sectors(bdev);
	dev->zone_count = bdev_nr_zones(bdev);
	rfsm_find_oob(dev);
	/* The OOBs of an append have to fit into one page. */
	most = min_t(u32, RFSM_APPEND_MAX,
		     queue_max_zone_append_sectors(bdev_get_queue(bdev)) /
		     SECTORS);
	most = min_t(u32, most, bdev_max_segments(bdev));
	if (dev->oob_bytes || dev->unused_bytes)
		most = min_t(u32, most, PAGE_SIZE /
			     max(dev->oob_bytes, dev->unused_bytes));
	if (most < 2) {
		pr_err("%pg: appends of %u blocks are too small\n", bdev,
		       most);
		return -EINVAL;
	}
	ret = rfsm_dev_alloc(dev);
	if (ret)
		return ret;
	ret = blkdev_report_zones(bdev, 0, dev->zone_count, rfsm_note_zone,
				  dev->zones);
	if (ret < 0)
		return ret;
	if (ret != dev->zone_count)
		return -EIO;
	geo->zones = dev->zone_count;
	geo->zone_blocks = dev->zone_sectors / SECTORS;
	geo->oob_bytes = dev->oob_bytes;
	geo->volatile_cache = bdev_write_cache(bdev);
	geo->append_max = most;
	geo->max_open = bdev_max_open_zones(bdev);
	geo->max_active = bdev_max_active_zones(bdev);
	dev->append_max = most;
	return 0;
}

/* From now on the drive is asked for zones anew. */
void rfsm_dev_mounted(struct rfsm_dev *dev)
{
	kvfree(dev->zones);
	dev->zones = NULL;
}

void rfsm_dev_close(struct rfsm_dev *dev)
{
	u32 i;

	kvfree(dev->zones);
	kvfree(dev->reads);
	kvfree(dev->copies);
	for (i = 0; i < ARRAY_SIZE(dev->bounce); i++)
		if (dev->bounce[i])
			__free_page(dev->bounce[i]);
	for (i = 0; i < ARRAY_SIZE(dev->core_oob); i++)
		if (dev->core_oob[i])
			__free_page(dev->core_oob[i]);
	mempool_exit(&dev->oob_pages);
	bioset_exit(&dev->direct_bios);
	bioset_exit(&dev->core_bios);
	bioset_exit(&dev->bios);
}
