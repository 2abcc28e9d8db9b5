// SPDX-License-Identifier: GPL-2.0
/*
 * This is the slow device of a hybrid volume ("Hybrid volumes" in doc/design.md). A reader of files
 * finds its addresses among those of the drive, and the core writes to it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/string_choices.h>

#include "rfsm.h"
#include "slow.h"
#include "home/replica.h"
#include "tree/tree.h"

#define AHEAD	16	/* blocks that the core reads at a time: it reads them in a row */

/*
 * Reads in flight are counted in two phases. A block of the slow device does not say whose it is.
 * So it must not be written while a reader has it that looked it up when it was another file's. A
 * check-point gives such a block up, and a look-up after that does not find it. So before blocks
 * are written that a check-point has freed, a new phase begins, and the writer waits for the reads
 * of the phase before.
 */
struct rfsm_slow {
	struct rfs_slow_dev ops;	/* what the core asks for */
	struct rfs_sb_info *sbi;
	struct file *file;
	struct block_device *bdev;
	atomic_t reads[2];	/* of each phase */
	u32 phase;		/* of who looks up an address now; under the volume lock */
	u64 settled;		/* the check-point that was the newest when it began */
	u64 ahead_from;		/* these blocks are in memory */
	u32 ahead;
	struct page *page[AHEAD];
	u64 failed, made;	/* replicas, when the kernel log was last told */
	bool stale;		/* it says that none could be made */
	atomic64_t home_reads, flash_reads;	/* blocks of files */
	atomic64_t bad_reads;	/* of home_reads, those that failed */
};

static bool rfsm_is_gone(const struct rfsm_slow *slow)
{
	return !slow->bdev || slow->sbi->dev.dead;
}

/* Returns the counter of reads that an address at home belongs to. */
static atomic_t *rfsm_slow_reads(struct rfs_sb_info *sbi, u64 addr)
{
	return &sbi->slow->reads[addr & RFSM_PHASE ? 1 : 0];
}

void rfsm_slow_hold(struct rfs_sb_info *sbi, u64 addr)
{
	atomic_inc(rfsm_slow_reads(sbi, addr));
}

void rfsm_slow_drop(struct rfs_sb_info *sbi, u64 addr)
{
	atomic_t *reads = rfsm_slow_reads(sbi, addr);

	if (atomic_dec_and_test(reads))
		wake_up_var(reads);
}

/*
 * Begins a phase, see struct rfsm_slow. The caller holds the volume lock, which is dropped
 * meanwhile.
 */
static void rfsm_slow_settle(struct rfsm_slow *slow)
{
	struct rfs_sb_info *sbi = slow->sbi;
	u64 seq = sbi->fs->cp_seq;
	atomic_t *before;

	for (;;) {
		before = &slow->reads[!slow->phase];
		if (!atomic_read(before)) {
			if (slow->settled >= seq)
				return;
			slow->settled = sbi->fs->cp_seq;
			slow->phase = !slow->phase;
			continue;
		}
		/* Others may write at the same time, and begin phases. */
		rfsm_unlock(sbi);
		wait_var_event(before, !atomic_read(before));
		rfsm_lock(sbi);
	}
}

static u64 rfsm_home_address(const struct rfs_sb_info *sbi, u64 home)
{
	return home | RFSM_AT_HOME | (sbi->slow->phase ? RFSM_PHASE : 0);
}

bool rfsm_slow_ptr(const struct rfs_sb_info *sbi, const struct rfs_ptr *ptr,
		   u64 *addr, u32 *len)
{
	u64 flash = rfs_ptr_flash(ptr);

	*len = rfs_ptr_len(ptr);
	if (!rfs_ptr_has_home(ptr) || !rfs_ptr_known(sbi->fs, ptr) ||
	    *len > RFS_BLOCK_BYTES)
		return false;
	*addr = flash ? flash : rfsm_home_address(sbi, rfs_ptr_home(ptr));
	return !flash || rfs_addr_ok(sbi->fs, flash);
}

void rfsm_slow_count(struct rfs_sb_info *sbi, u64 addr, u32 n)
{
	atomic64_add(n, addr & RFSM_AT_HOME ? &sbi->slow->home_reads :
					      &sbi->slow->flash_reads);
}

u64 rfsm_flash_reads(const struct rfs_sb_info *sbi)
{
	return sbi->slow ? atomic64_read(&sbi->slow->flash_reads) : 0;
}

u64 rfsm_home_reads(const struct rfs_sb_info *sbi)
{
	return sbi->slow ? atomic64_read(&sbi->slow->home_reads) : 0;
}

u64 rfsm_home_errors(const struct rfs_sb_info *sbi)
{
	return sbi->fs->stats.slow_errors +
	       (sbi->slow ? atomic64_read(&sbi->slow->bad_reads) : 0);
}

struct block_device *rfsm_slow_bdev(const struct rfs_sb_info *sbi)
{
	return sbi->slow->bdev;
}

struct bio *rfsm_slow_bio(struct rfs_sb_info *sbi, blk_opf_t op, u32 blocks,
			  u64 addr)
{
	struct bio *bio = bio_alloc_bioset(sbi->slow->bdev, blocks, op, GFP_NOIO,
					   &sbi->dev.bios);

	bio->bi_iter.bi_sector = rfsm_sector(addr & ~(RFSM_AT_HOME | RFSM_PHASE));
	return bio;
}

void rfsm_slow_submit(struct rfs_sb_info *sbi, struct bio *bio)
{
	if (rfsm_is_gone(sbi->slow))
		bio_io_error(bio);
	else
		submit_bio(bio);
}

int rfsm_slow_read_page(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
			u64 addr, struct page *page)
{
	struct bio *bio;
	int ret = -ENXIO;

	if (!rfsm_is_gone(sbi->slow)) {
		bio = rfsm_slow_bio(sbi, REQ_OP_READ, 1, addr);
		__bio_add_page(bio, page, RFS_BLOCK_BYTES, 0);
		ret = submit_bio_wait(bio);
		bio_put(bio);
	}
	if (!ret)
		return 0;
	atomic64_inc(&sbi->slow->bad_reads);
	pr_err_ratelimited("%pg: inode %lu block %llu: slow=%s: cannot be read there: error %d\n",
			   sbi->dev.bdev, inode->i_ino, block, sbi->opt.slow,
			   ret);
	return ret;
}

/* Finds where a block is at home now, and holds it. -ENXIO says that it is not there. */
static int rfsm_slow_find(struct rfs_sb_info *sbi, unsigned long ino, u64 block,
			  u64 *addr)
{
	struct rfs_ptr ptr;
	int ret = rfs_map_get(sbi->fs, ino, block, &ptr);

	if (!ret && (!rfs_ptr_has_home(&ptr) || !rfs_ptr_known(sbi->fs, &ptr)))
		ret = -ENXIO;
	if (ret)
		return ret;
	*addr = rfsm_home_address(sbi, rfs_ptr_home(&ptr));
	rfsm_slow_hold(sbi, *addr);
	return 0;
}

bool rfsm_slow_instead(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		       struct page *page)
{
	u64 addr;
	int ret;

	rfsm_query(sbi, ret, rfsm_slow_find(sbi, inode->i_ino, block, &addr));
	if (ret)
		return false;
	ret = rfsm_slow_read_page(sbi, inode, block, addr, page);
	rfsm_slow_count(sbi, addr, 1);
	rfsm_slow_drop(sbi, addr);
	return !ret;
}

/* Reads or writes n blocks in a row. data points to pages, or into memory of rfs_alloc(). */
static int rfsm_slow_transfer(struct rfsm_slow *slow, blk_opf_t op, u64 block,
			      u32 n, const void *const *data)
{
	struct bio *bio;
	int ret = -EIO;
	u32 i;

	if (rfsm_is_gone(slow))
		return ret;
	bio = bio_alloc_bioset(slow->bdev, n, op, GFP_NOIO,
			       &slow->sbi->dev.core_bios);
	bio->bi_iter.bi_sector = rfsm_sector(block);
	for (i = 0; i < n; i++)
		__bio_add_page(bio, rfsm_page_of(data[i]), RFS_BLOCK_BYTES,
			       offset_in_page(data[i]));
	ret = submit_bio_wait(bio);
	bio_put(bio);
	if (ret)
		pr_err_ratelimited("%pg: slow device %pg: %s of %u blocks from %llu on: error %d\n",
				   slow->sbi->dev.bdev, slow->bdev,
				   str_write_read(op_is_write(op)), n, block,
				   ret);
	/* Other errors, such as that of a device without room, have a meaning to the core. */
	return ret ? -EIO : 0;
}

/*
 * This is called while the volume is being mounted, when nobody else reads. The table of states is
 * read in a row.
 */
static int rfsm_slow_read(void *opaque, u64 block, void *data)
{
	struct rfsm_slow *slow = opaque;
	const void *pages[AHEAD];
	u64 at = block - slow->ahead_from;
	u32 i, n;
	int ret;

	if (block < slow->ahead_from || at >= slow->ahead) {
		n = min_t(u64, AHEAD, slow->ops.blocks - block);
		for (i = 0; i < n; i++)
			pages[i] = page_address(slow->page[i]);
		slow->ahead = 0;
		ret = rfsm_slow_transfer(slow, REQ_OP_READ | REQ_META, block, n,
					 pages);
		if (ret)
			return ret;
		slow->ahead_from = block;
		slow->ahead = n;
		at = 0;
	}
	memcpy(data, page_address(slow->page[at]), RFS_BLOCK_BYTES);
	return 0;
}

static int rfsm_slow_write(void *opaque, u64 block, u32 n,
			   const void *const *data)
{
	struct rfsm_slow *slow = opaque;
	int ret;

	slow->ahead = 0;
	rfsm_lend(slow->sbi);
	ret = rfsm_slow_transfer(slow, REQ_OP_WRITE | REQ_META, block, n, data);
	rfsm_take_back(slow->sbi);
	return ret;
}

static int rfsm_slow_send(void *opaque, u64 block, u32 n,
			  const void *const *data)
{
	struct rfsm_slow *slow = opaque;
	int ret;

	rfsm_slow_settle(slow);
	rfsm_unlock(slow->sbi);
	ret = rfsm_slow_transfer(slow, REQ_OP_WRITE, block, n, data);
	rfsm_lock(slow->sbi);
	return ret;
}

static int rfsm_slow_flush(void *opaque)
{
	struct rfsm_slow *slow = opaque;
	int ret = -EIO;

	rfsm_lend(slow->sbi);
	if (!rfsm_is_gone(slow))
		ret = blkdev_issue_flush(slow->bdev);
	rfsm_take_back(slow->sbi);
	if (ret)
		pr_err_ratelimited("%pg: slow device %pg: flush: error %d\n",
				   slow->sbi->dev.bdev, slow->bdev, ret);
	return ret ? -EIO : 0;
}

static const struct rfs_slow_dev slow_ops = {
	.read = rfsm_slow_read,
	.write = rfsm_slow_write,
	.flush = rfsm_slow_flush,
	.send = rfsm_slow_send,
};

static int rfsm_slow_alloc(struct rfs_sb_info *sbi)
{
	struct rfsm_slow *slow = kzalloc(sizeof(*slow), GFP_KERNEL);
	u32 i;

	if (!slow)
		return -ENOMEM;
	sbi->slow = slow;
	slow->sbi = sbi;
	slow->ops = slow_ops;
	slow->ops.dev = slow;
	for (i = 0; i < AHEAD; i++) {
		slow->page[i] = alloc_page(GFP_KERNEL);
		if (!slow->page[i])
			return -ENOMEM;
	}
	return 0;
}

static int rfsm_slow_use(struct rfs_sb_info *sbi, const char *path,
			 struct rfs_geometry *geo)
{
	struct rfsm_slow *slow = sbi->slow;
	struct block_device *bdev = slow->bdev;

	if (bdev_logical_block_size(bdev) > RFS_BLOCK_BYTES ||
	    bdev_is_zoned(bdev)) {
		pr_err("%pg: slow=%s: %s: it must be a device of blocks of at most %lu bytes, which can be written anywhere\n",
		       sbi->dev.bdev, path, bdev_is_zoned(bdev) ?
		       "has zones" : "has larger blocks",
		       (unsigned long)RFS_BLOCK_BYTES);
		return -EINVAL;
	}
	slow->ops.blocks = bdev_nr_bytes(bdev) / RFS_BLOCK_BYTES;
	sbi->dev.direct_align |= bdev_dma_alignment(bdev);
	geo->slow = &slow->ops;
	return 0;
}

static const char *rfsm_slow_not_opened(int error)
{
	switch (error) {
	case -EBUSY:
		return "in use: unmount what has it, and let no program write it";
	case -EACCES:
		return "can only be read: mount with ro, or make it writable";
	}
	return "cannot be opened: name the block device that mkfs.rfs --slow was given";
}

int rfsm_slow_open(struct rfs_sb_info *sbi, struct rfs_geometry *geo)
{
	const char *path = sbi->opt.slow;
	int ret;

	if (!*path)
		return 0;
	ret = rfsm_slow_alloc(sbi);
	if (ret)
		return ret;
	if (!strcmp(path, "none")) {
		geo->slow = &rfs_slow_gone;
		return 0;
	}
	sbi->slow->file = bdev_file_open_by_path(path,
						 sb_open_mode(sbi->sb->s_flags),
						 sbi, NULL);
	if (IS_ERR(sbi->slow->file)) {
		ret = PTR_ERR(sbi->slow->file);
		sbi->slow->file = NULL;
		pr_err("%pg: slow=%s: %s (error %d)\n", sbi->dev.bdev, path,
		       rfsm_slow_not_opened(ret), ret);
		return ret;
	}
	sbi->slow->bdev = file_bdev(sbi->slow->file);
	return rfsm_slow_use(sbi, path, geo);
}

void rfsm_slow_close(struct rfs_sb_info *sbi)
{
	struct rfsm_slow *slow = sbi->slow;
	u32 i;

	if (!slow)
		return;
	if (slow->file)
		bdev_fput(slow->file);
	for (i = 0; i < AHEAD; i++)
		if (slow->page[i])
			__free_page(slow->page[i]);
	kfree(slow);
	sbi->slow = NULL;
}

void rfsm_slow_commit(struct rfs_sb_info *sbi)
{
	struct rfs_home *home = sbi->fs->home;

	rfsm_lock(sbi);
	if (home && home->replica)
		home->replica->every = sbi->opt.commit * (u64)NSEC_PER_SEC;
	rfsm_unlock(sbi);
}

void rfsm_slow_say_replica(struct rfs_sb_info *sbi)
{
	const struct rfs_stats *stats = &sbi->fs->stats;
	struct rfsm_slow *slow = sbi->slow;

	if (!slow)
		return;
	if (stats->replicas_failed != slow->failed && !slow->stale) {
		pr_warn("%pg: slow=%s: no replica of the metadata could be made there; the volume goes on, and one is tried again every %u s\n",
			sbi->dev.bdev, sbi->opt.slow, sbi->opt.commit);
		slow->stale = true;
	} else if (stats->replicas != slow->made && slow->stale) {
		pr_info("%pg: slow=%s: a replica of the metadata was made again\n",
			sbi->dev.bdev, sbi->opt.slow);
		slow->stale = false;
	}
	slow->failed = stats->replicas_failed;
	slow->made = stats->replicas;
}

/*
 * Returns the superblock in a device's first block, which says whose slow device it is. NULL says
 * that it is none.
 */
static struct rfs_slow_super *rfsm_slow_super(struct block_device *bdev)
{
	struct rfs_slow_super *super = kzalloc(sizeof(*super), GFP_KERNEL);
	struct bio_vec vec;
	struct bio bio;
	int ret;

	if (!super)
		return NULL;
	bio_init(&bio, bdev, &vec, 1, REQ_OP_READ | REQ_META);
	__bio_add_page(&bio, virt_to_page(super), RFS_BLOCK_BYTES, 0);
	ret = submit_bio_wait(&bio);
	bio_uninit(&bio);
	if (!ret && rfs_head_ok(&super->head, le32_to_cpu(super->head.volume),
				RFS_SLOW_SUPER))
		return super;
	kfree(super);
	return NULL;
}

/* Makes the volume's uuid of a slow device's superblock. */
static void rfsm_slow_uuid(const struct rfs_slow_super *super, u8 *uuid)
{
	memcpy(uuid, &super->head.volume, sizeof(super->head.volume));
	memcpy(uuid + sizeof(super->head.volume), super->head.uuid,
	       sizeof(super->head.uuid));
}

bool rfsm_slow_alone(struct block_device *bdev)
{
	struct rfs_slow_super *super = rfsm_slow_super(bdev);
	u8 uuid[16];

	if (!super)
		return false;
	rfsm_slow_uuid(super, uuid);
	kfree(super);
	pr_err("%pg: the slow device of the hybrid volume %pUb: mount the drive of that volume, with -o slow=/dev/%pg\n",
	       bdev, uuid, bdev);
	return true;
}

/* The slow device is another volume's, or nobody's: the log says which (-ENODEV). */
static void rfsm_slow_say_other(struct rfs_sb_info *sbi, const u8 *uuid)
{
	struct rfs_slow_super *super = sbi->slow->bdev ?
				       rfsm_slow_super(sbi->slow->bdev) : NULL;
	u8 found[16];

	if (!super) {
		pr_err("%pg: slow=%s: no slow device of any volume; that of volume %pUb is expected: name the device that mkfs.rfs --slow was given\n",
		       sbi->dev.bdev, sbi->opt.slow, uuid);
		return;
	}
	rfsm_slow_uuid(super, found);
	kfree(super);
	pr_err("%pg: slow=%s: the slow device of volume %pUb; that of volume %pUb is expected: name the device that mkfs.rfs --slow was given\n",
	       sbi->dev.bdev, sbi->opt.slow, found, uuid);
}

int rfsm_slow_refused(struct rfs_sb_info *sbi, const struct rfs_super *super,
		      int ret)
{
	u64 blocks = le64_to_cpu(super->slow_blocks);

	if (ret == -ENOMEDIUM) {
		pr_err("%pg: a hybrid volume, whose files are on a slow device of %llu blocks, too: mount with -o slow=DEVICE, the one that mkfs.rfs --slow was given, or without it with -o ro,slow=none\n",
		       sbi->dev.bdev, blocks);
		return -EINVAL;
	}
	if (ret == -ENXIO) {
		pr_err("%pg: slow=none: without its slow device a hybrid volume can only be read: mount with ro, or name the device\n",
		       sbi->dev.bdev);
		return -EINVAL;
	}
	if (!rfs_is_hybrid(super)) {
		pr_err("%pg: slow=%s: this volume has no slow device: leave the option out\n",
		       sbi->dev.bdev, sbi->opt.slow);
		return -EINVAL;
	}
	if (ret == -ENODEV) {
		rfsm_slow_say_other(sbi, super->uuid);
		return -EINVAL;
	}
	if (ret == -EOVERFLOW) {
		pr_err("%pg: slow=%s: %llu blocks; the volume's slow device has %llu: give it the size that it had\n",
		       sbi->dev.bdev, sbi->opt.slow, sbi->slow->ops.blocks,
		       blocks);
		return -EINVAL;
	}
	return ret;
}

bool rfsm_slow_may_write(const struct rfs_sb_info *sbi)
{
	const struct rfsm_slow *slow = sbi->slow;

	if (!slow)
		return true;
	if (!slow->bdev)
		pr_err("%pg: without its slow device a hybrid volume can only be read: unmount it, and mount it with -o slow=DEVICE\n",
		       sbi->dev.bdev);
	else if (bdev_read_only(slow->bdev))
		pr_err("%pg: slow=%s can only be read: make it writable\n",
		       sbi->dev.bdev, sbi->opt.slow);
	else if (sbi->fs->home->lacks)
		pr_err("%pg: slow=%s: its table of states is damaged: unmount, and run fsck.rfs -p --slow DEVICE\n",
		       sbi->dev.bdev, sbi->opt.slow);
	else
		return true;
	return false;
}
