// SPDX-License-Identifier: GPL-2.0
/*
 * The volume lock, and metadata that is read without it. An operation of the core
 * that misses a block has changed nothing yet and says which it is; it is read
 * with no lock held, once for all who miss it, and the operation begins anew.
 */
#include <linux/blkdev.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "space/space.h"
#include "buffer/buffer.h"

#define FETCHES	16	/* that can be on their way without memory */

/* A block on its way. In the volume's list; all but the bio under its lock */
struct rfsm_fetch {
	struct list_head list;
	struct rfs_fetched got;
	u32 users;		/* who wait for it, or look at it now */
	struct completion done;
	struct page *page;
	struct bio bio;
	struct bio_vec vec;
};

void rfsm_lock_to_look(struct rfsm *m)
{
	mutex_lock(&m->lock);
	m->nofs = memalloc_nofs_save();
}

void rfsm_lock(struct rfsm *m)
{
	for (;;) {
		mutex_lock(&m->lock);
		if (!m->quiet)
			break;
		mutex_unlock(&m->lock);
		wait_event(m->quiet_over, !READ_ONCE(m->quiet));
	}
	m->nofs = memalloc_nofs_save();
}

/* For who asks without the lock */
static void publish(struct rfsm *m)
{
	const struct rfs_fs *fs = m->fs;
	u64 used = rfs_used(fs);
	struct rfsm_usage now = {
		.free = fs->user_blocks - min(used, fs->user_blocks),
		.available = rfs_available(fs),
		.inodes = fs->inodes,
	};

	write_seqcount_begin(&m->usage_seq);
	m->usage = now;
	write_seqcount_end(&m->usage_seq);
}

void rfsm_unlock(struct rfsm *m)
{
	publish(m);
	/* between operations nobody has a pointer to a block */
	if (m->fs->clean.count > m->fs->clean_max)
		rfs_cache_trim(m->fs, m->fs->clean_max);
	memalloc_nofs_restore(m->nofs);
	mutex_unlock(&m->lock);
}

void rfsm_quiet(struct rfsm *m, bool begins)
{
	/* while it is mounted nobody else is there, and the lock is not held */
	if (!m->fs)
		return;
	if (begins) {
		m->quiet_by = current;
		WRITE_ONCE(m->quiet, m->quiet + 1);
		return;
	}
	WRITE_ONCE(m->quiet, m->quiet - 1);
	if (!m->quiet)
		wake_up_all(&m->quiet_over);
}

/* Is the lock held by us, and may others look while we wait for the drive? */
static bool is_quiet(const struct rfsm *m)
{
	return READ_ONCE(m->quiet) && m->quiet_by == current;
}

void rfsm_lend(struct rfsm *m)
{
	if (!is_quiet(m))
		return;
	m->lent_nofs = m->nofs;
	mutex_unlock(&m->lock);
}

void rfsm_take_back(struct rfsm *m)
{
	if (!is_quiet(m))
		return;
	mutex_lock(&m->lock);
	m->nofs = m->lent_nofs;
}

static u32 zone_of(const struct rfsm *m, u64 addr)
{
	return addr / m->fs->geo.zone_blocks;
}

static void put_fetch(struct rfsm *m, struct rfsm_fetch *f)
{
	if (--f->users)
		return;
	list_del(&f->list);
	/* from now on its zone may be reset */
	atomic_dec(&m->dev.reads[zone_of(m, f->got.addr)]);
	mempool_free(f->page, &m->fetch_pages);
	mempool_free(f, &m->fetches);
}

void rfsm_ask(struct rfsm *m, struct rfsm_ask *ask)
{
	m->fs->nowait = true;
	m->fs->fetched = ask->fetch ? &ask->fetch->got : NULL;
}

bool rfsm_asked(struct rfsm *m, struct rfsm_ask *ask, int ret)
{
	struct rfsm_fetch *f;

	m->fs->nowait = false;
	m->fs->fetched = NULL;
	if (ask->fetch)
		put_fetch(m, ask->fetch);
	ask->fetch = NULL;
	if (ret != -EINPROGRESS)
		return false;
	ask->addr = m->fs->missed;
	list_for_each_entry(f, &m->fetching, list) {
		if (f->got.addr != ask->addr)
			continue;
		f->users++;
		ask->fetch = f;
		return true;
	}
	/* nobody resets its zone before it is read */
	atomic_inc(&m->dev.reads[zone_of(m, ask->addr)]);
	return true;
}

static int read_block(struct rfsm *m, struct rfsm_fetch *f)
{
	int ret;

	if (rfsm_dead(m))
		return -EIO;
	bio_init(&f->bio, m->dev.bdev, &f->vec, 1,
		 REQ_OP_READ | REQ_SYNC | REQ_META);
	f->bio.bi_iter.bi_sector = rfsm_sector(f->got.addr);
	__bio_add_page(&f->bio, f->page, RFS_BLOCK_BYTES, 0);
	ret = submit_bio_wait(&f->bio);
	bio_uninit(&f->bio);
	return ret ? -EIO : 0;
}

void rfsm_answer(struct rfsm *m, struct rfsm_ask *ask)
{
	unsigned int nofs = memalloc_nofs_save();
	struct rfsm_fetch *f = ask->fetch;

	if (f) {
		wait_for_completion_io(&f->done);
		goto out;
	}
	f = mempool_alloc(&m->fetches, GFP_NOFS);
	f->page = mempool_alloc(&m->fetch_pages, GFP_NOFS);
	f->got.addr = ask->addr;
	f->got.data = page_address(f->page);
	f->users = 1;
	init_completion(&f->done);
	/* who misses it from here on waits; two may read it who came before */
	mutex_lock(&m->lock);
	list_add(&f->list, &m->fetching);
	mutex_unlock(&m->lock);
	f->got.error = read_block(m, f);
	complete_all(&f->done);
	ask->fetch = f;
out:
	memalloc_nofs_restore(nofs);
}

int rfsm_fetch_init(struct rfsm *m)
{
	int ret;

	INIT_LIST_HEAD(&m->fetching);
	ret = mempool_init_kmalloc_pool(&m->fetches, FETCHES,
					sizeof(struct rfsm_fetch));
	return ret ? ret : mempool_init_page_pool(&m->fetch_pages, FETCHES, 0);
}

void rfsm_fetch_exit(struct rfsm *m)
{
	mempool_exit(&m->fetch_pages);
	mempool_exit(&m->fetches);
}
