// SPDX-License-Identifier: GPL-2.0
/*
 * This is the volume lock, and the reading of metadata without it. An operation of the core that
 * misses a block has changed nothing yet and says which block it is. The block is read with no lock
 * held, once for all operations that miss it, and the operation begins anew.
 */
#include <linux/blkdev.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "error.h"
#include "space/space.h"
#include "buffer/buffer.h"
#include "tree/tree.h"
#include "home/home.h"

#define FETCHES	16	/* in flight that need no memory */

/*
 * This block is being read. It is in the volume's list, and the volume lock protects all of it but
 * the bio.
 */
struct rfsm_fetch {
	struct list_head list;
	struct rfs_fetched got;
	u32 users;		/* who wait for it, or look at it now */
	struct completion done;
	struct page *page;
	struct bio bio;
	struct bio_vec vec;
};

/*
 * Begins a hold of the lock. A task that gave it up within an operation may have left rfs_fs.nowait
 * set. So each new owner sets it himself, if he can begin his operation again.
 */
static void rfsm_locked(struct rfs_sb_info *sbi)
{
	sbi->nofs = memalloc_nofs_save();
	sbi->fs->nowait = false;
	rfsm_memory_held(sbi);
	sbi->memory.lacked = false;
}

static void rfsm_mutex_unlock(struct rfs_sb_info *sbi)
{
	rfsm_memory_released(sbi);
	memalloc_nofs_restore(sbi->nofs);
	mutex_unlock(&sbi->lock);
}

void rfsm_lock_query_now(struct rfs_sb_info *sbi)
{
	mutex_lock(&sbi->lock);
	rfsm_locked(sbi);
}

void rfsm_lock_query(struct rfs_sb_info *sbi)
{
	if (READ_ONCE(sbi->memory.lack))
		rfsm_memory_bring(sbi);
	for (;;) {
		rfsm_lock_query_now(sbi);
		if (rfsm_memory_kept(sbi, RFSM_MEMORY_SEND))
			return;
		rfsm_mutex_unlock(sbi);
		rfsm_memory_wait(sbi, RFSM_MEMORY_SEND);
	}
}

void rfsm_lock_now(struct rfs_sb_info *sbi)
{
	for (;;) {
		mutex_lock(&sbi->lock);
		if (!sbi->quiet)
			break;
		mutex_unlock(&sbi->lock);
		wait_event(sbi->quiet_over, !READ_ONCE(sbi->quiet));
	}
	rfsm_locked(sbi);
}

static void rfsm_lock_for(struct rfs_sb_info *sbi, enum rfsm_memory_need need)
{
	for (;;) {
		rfsm_lock_now(sbi);
		if (rfsm_memory_kept(sbi, need))
			return;
		rfsm_mutex_unlock(sbi);
		rfsm_memory_wait(sbi, need);
	}
}

void rfsm_lock(struct rfs_sb_info *sbi)
{
	if (READ_ONCE(sbi->memory.lack))
		rfsm_memory_bring(sbi);
	rfsm_lock_for(sbi, RFSM_MEMORY_OPERATION);
}

void rfsm_lock_send(struct rfs_sb_info *sbi)
{
	rfsm_lock_for(sbi, RFSM_MEMORY_SEND);
}

void rfsm_lock_checkpoint(struct rfs_sb_info *sbi)
{
	rfsm_lock_for(sbi, RFSM_MEMORY_CHECKPOINT);
}

/* Publishes usage for statfs(2) and others, who read it without the lock. */
static void rfsm_publish_usage(struct rfs_sb_info *sbi)
{
	write_seqcount_begin(&sbi->usage_seq);
	rfs_usage_get(sbi->fs, &sbi->usage);
	sbi->home_left = sbi->fs->home ? rfs_home_left(sbi->fs) : 0;
	write_seqcount_end(&sbi->usage_seq);
}

void rfsm_unlock(struct rfs_sb_info *sbi)
{
	/* The next owner has memory for the metadata that leads to his own blocks. */
	if (!sbi->quiet)
		rfs_dirty_parents(sbi->fs);
	rfsm_publish_usage(sbi);
	/* Between operations nobody has a pointer to a block, so clean ones can be dropped. */
	if (sbi->fs->clean.count > sbi->fs->clean_max)
		rfs_cache_trim(sbi->fs, sbi->fs->clean_max);
	rfsm_mutex_unlock(sbi);
}

void rfsm_quiet(struct rfs_sb_info *sbi, bool begins)
{
	/* While the volume is being mounted, nobody else uses it, and the lock is not held. */
	if (!sbi->fs)
		return;
	if (begins) {
		sbi->quiet_by = current;
		WRITE_ONCE(sbi->quiet, sbi->quiet + 1);
		return;
	}
	WRITE_ONCE(sbi->quiet, sbi->quiet - 1);
	if (!sbi->quiet)
		wake_up_all(&sbi->quiet_over);
}

/* Says whether we hold the lock and others may look while we wait for the drive. */
static bool rfsm_is_quiet(const struct rfs_sb_info *sbi)
{
	return READ_ONCE(sbi->quiet) && sbi->quiet_by == current;
}

void rfsm_lend(struct rfs_sb_info *sbi)
{
	if (!rfsm_is_quiet(sbi))
		return;
	sbi->lent_nofs = sbi->nofs;
	rfsm_memory_released(sbi);
	mutex_unlock(&sbi->lock);
}

void rfsm_take_back(struct rfs_sb_info *sbi)
{
	if (!rfsm_is_quiet(sbi))
		return;
	mutex_lock(&sbi->lock);
	sbi->nofs = sbi->lent_nofs;
	rfsm_memory_held(sbi);
}

static u32 rfsm_zone_of(const struct rfs_sb_info *sbi, u64 addr)
{
	return addr / sbi->fs->geo.zone_blocks;
}

static void rfsm_put_fetch(struct rfs_sb_info *sbi, struct rfsm_fetch *f)
{
	if (--f->users)
		return;
	list_del(&f->list);
	/* From now on its zone may be reset. */
	atomic_dec(&sbi->dev.reads[rfsm_zone_of(sbi, f->got.addr)]);
	mempool_free(f->page, &sbi->fetch_pages);
	mempool_free(f, &sbi->fetches);
}

void rfsm_miss_begin(struct rfs_sb_info *sbi, struct rfsm_miss *miss)
{
	sbi->fs->nowait = true;
	sbi->fs->fetched = miss->fetch ? &miss->fetch->got : NULL;
}

bool rfsm_miss_end(struct rfs_sb_info *sbi, struct rfsm_miss *miss, int ret)
{
	struct rfsm_fetch *f;

	sbi->fs->nowait = false;
	sbi->fs->fetched = NULL;
	if (miss->fetch)
		rfsm_put_fetch(sbi, miss->fetch);
	miss->fetch = NULL;
	if (ret != -EINPROGRESS)
		return false;
	miss->addr = sbi->fs->missed;
	list_for_each_entry(f, &sbi->fetching, list) {
		if (f->got.addr != miss->addr)
			continue;
		f->users++;
		miss->fetch = f;
		return true;
	}
	/* Nobody resets its zone before it is read. */
	atomic_inc(&sbi->dev.reads[rfsm_zone_of(sbi, miss->addr)]);
	return true;
}

static int rfsm_fetch_block(struct rfs_sb_info *sbi, struct rfsm_fetch *f)
{
	int ret;

	if (rfsm_dead(sbi))
		return -EIO;
	bio_init(&f->bio, sbi->dev.bdev, &f->vec, 1,
		 REQ_OP_READ | REQ_SYNC | REQ_META);
	f->bio.bi_iter.bi_sector = rfsm_sector(f->got.addr);
	__bio_add_page(&f->bio, f->page, RFS_BLOCK_BYTES, 0);
	ret = submit_bio_wait(&f->bio);
	bio_uninit(&f->bio);
	return ret ? -EIO : 0;
}

void rfsm_miss_read(struct rfs_sb_info *sbi, struct rfsm_miss *miss)
{
	unsigned int nofs = memalloc_nofs_save();
	struct rfsm_fetch *f = miss->fetch;

	if (f) {
		wait_for_completion_io(&f->done);
		goto out;
	}
	f = mempool_alloc(&sbi->fetches, GFP_NOFS);
	f->page = mempool_alloc(&sbi->fetch_pages, GFP_NOFS);
	f->got.addr = miss->addr;
	f->got.data = page_address(f->page);
	f->users = 1;
	init_completion(&f->done);
	/*
	 * An operation that misses the block from here on waits for this read. Two that came before
	 * may both read it.
	 */
	mutex_lock(&sbi->lock);
	list_add(&f->list, &sbi->fetching);
	mutex_unlock(&sbi->lock);
	f->got.error = rfsm_fetch_block(sbi, f);
	complete_all(&f->done);
	miss->fetch = f;
out:
	memalloc_nofs_restore(nofs);
}

void rfsm_miss_drop(struct rfs_sb_info *sbi, struct rfsm_miss *miss)
{
	if (miss->fetch) {
		rfsm_lock_query(sbi);
		rfsm_put_fetch(sbi, miss->fetch);
		rfsm_unlock(sbi);
	} else {
		atomic_dec(&sbi->dev.reads[rfsm_zone_of(sbi, miss->addr)]);
	}
}

int rfsm_fetch_init(struct rfs_sb_info *sbi)
{
	int ret;

	INIT_LIST_HEAD(&sbi->fetching);
	ret = mempool_init_kmalloc_pool(&sbi->fetches, FETCHES,
					sizeof(struct rfsm_fetch));
	return ret ? ret : mempool_init_page_pool(&sbi->fetch_pages, FETCHES,
						  0);
}

void rfsm_fetch_exit(struct rfs_sb_info *sbi)
{
	mempool_exit(&sbi->fetch_pages);
	mempool_exit(&sbi->fetches);
}
