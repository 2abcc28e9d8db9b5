// SPDX-License-Identifier: GPL-2.0
/*
 * Writing: appends in flight together. The volume lock is held to give an
 * append its room and to note where it went, not while it is on its way. A
 * check-point closes a gate and waits for all (doc/design.md, "Check-point").
 */
#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "trace.h"
#include "space/space.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"

#define RUNS	32	/* that can be on their way without memory */
/*
 * Pages of files that are on their way: as many as the drive does in QUEUE_NS.
 * With more it would not be faster, but who deletes or writes again what is on
 * its way waits for that, and it was written in vain.
 */
#define QUEUE_NS	(12 * NSEC_PER_MSEC)
#define PAGES_FIRST	256
#define PAGES_LEAST	64
#define PAGES_MOST	2048
/* At most, while zones are cleaned: that many copies are on their way, too */
#define PAGES_CLEANING	512
/*
 * And while somebody is there who waits for little: the drive takes what it is given
 * in turn, so a page waits for all that was sent before it.
 */
#define PAGES_SPARING	128
#define COPIES_SPARING	3
#define SPARING_FOR	(HZ / 10)
/*
 * Summaries on their way, at most. Those who have the runs of folios wait for
 * them, so they have memory of their own.
 */
#define SUMS	32

/*
 * Folios that are written as one: their writeback ends when all of them are in
 * the index, since a crash before that takes all of them back. Or what cleaning
 * moves, each block by itself.
 */
struct txn {
	struct inode *inode;
	struct rfs_copy *copy;	/* or NULL */
	struct rfs_txn core;
	u32 left;		/* appends, and one while more will come */
	bool little;		/* of who writes little, and waits for it */
	int error;
	struct folio *folio[RFS_TXN_MAX];
	struct page *page[RFS_TXN_MAX];	/* of the folio, or a copy */
};

/* An append, of pages of a transaction or of a summary */
struct run {
	struct llist_node node;
	struct rfsm *m;
	struct txn *txn;	/* NULL: a summary */
	struct rfs_place place;
	struct rfs_sum *sum;
	struct page *page;	/* of a summary */
	struct bio *bio;
	void *oob;
	u32 first, n;		/* pages */
	u32 stream;		/* of their group */
	u32 tries;
	u64 sent;		/* ns */
	u32 ahead;		/* pages on their way, with it */
	bool again;		/* it has another place now */
	bool later;		/* it may have one soon */
};

static struct kmem_cache *run_cache, *txn_cache;

static void endio(struct bio *bio)
{
	struct run *run = bio->bi_private;
	struct rfsm *m = run->m;
	struct rfsm_completions *here;
	int cpu = get_cpu();

	here = per_cpu_ptr(m->completions, cpu);
	/* once it is in the list, an unmount may go on, but see there */
	rcu_read_lock();
	if (llist_add(&run->node, &here->done))
		queue_work_on(cpu, m->queue, &here->work);
	rcu_read_unlock();
	put_cpu();
}

/* bio and OOBs are there; pages and where to are added. */
static void submit(struct run *run)
{
	struct rfsm_dev *dev = &run->m->dev;
	struct bio *bio = run->bio;
	u32 zone = run->sum ? run->sum->zone : run->place.zone, i;

	bio->bi_iter.bi_sector = (sector_t)zone * dev->zone_sectors;
	bio->bi_private = run;
	bio->bi_end_io = endio;
	rfsm_bio_oobs(dev, bio, run->oob, run->n);
	for (i = 0; i < run->n; i++) {
		struct page *page = run->page;

		if (run->txn)
			page = run->txn->page[run->first + i];
		/* the bio was made for so many, and the drive takes them */
		WARN_ON_ONCE(bio_add_zone_append_page(bio, page,
						      RFS_BLOCK_BYTES, 0) !=
			     RFS_BLOCK_BYTES);
	}
	run->sent = ktime_get_ns();
	trace_rfs_append(dev->bdev->bd_dev, zone, run->n,
			 run->txn && !run->txn->copy);
	if (dev->dead)
		bio_io_error(bio);
	else
		submit_bio(bio);
}

static struct run *run_alloc(struct rfsm *m, struct txn *txn, u32 n,
			     blk_opf_t flags)
{
	struct run *run = mempool_alloc(&m->runs, GFP_NOIO);

	memset(run, 0, sizeof(*run));
	run->m = m;
	run->txn = txn;
	run->bio = rfsm_bio(&m->dev, REQ_OP_ZONE_APPEND | flags, n, 0,
			    &run->oob);
	return run;
}

static void run_free(struct run *run)
{
	struct rfsm *m = run->m;

	if (run->page) {
		bio_put(run->bio);
		mempool_free(run->page, &m->sum_pages);
		mempool_free(virt_to_page(run->oob), &m->sum_pages);
		mempool_free(run, &m->sum_runs);
		return;
	}
	rfsm_bio_put(&m->dev, run->bio, run->oob);
	mempool_free(run, &m->runs);
}

/* Under the volume lock: a transaction or a summary less is on its way. */
static void inflight_sub(struct rfsm *m, const struct txn *txn)
{
	bool all = !--m->inflight, copy = txn && txn->copy;

	m->inflight_copies -= copy;
	if (txn && !txn->little)
		all |= !--m->inflight_bulk;
	if (!txn)
		all |= !m->sums;
	if (all || (copy && wq_has_sleeper(&m->gate_wait)))
		wake_up_all(&m->gate_wait);
}

/* Under the volume lock: a transaction is on its way. */
static void inflight_add(struct rfsm *m, const struct txn *txn)
{
	m->inflight++;
	m->inflight_bulk += !txn->little;
	m->inflight_copies += !!txn->copy;
}

/* Under the volume lock; true if it was the last: then txn_end() is due. */
static bool txn_put(struct rfsm *m, struct txn *txn, int error)
{
	u32 i;

	txn->error = txn->error ? txn->error : error;
	if (--txn->left)
		return false;
	for (i = 0; !txn->copy && i < txn->core.n; i++)
		rfsm_unreserve(m, txn->inode, txn->folio[i]);
	inflight_sub(m, txn);
	return true;
}

static void txn_end(struct rfsm *m, struct txn *txn)
{
	u32 i, n = txn->core.n;

	if (txn->copy) {
		struct rfsm_copy *copy = &m->dev.copies[txn->copy->nr];

		copy->error = txn->error;
		mempool_free(txn, &m->txns);
		complete(&copy->written);
		return;
	}
	if (txn->error)
		mapping_set_error(txn->inode->i_mapping, txn->error);
	for (i = 0; i < n; i++) {
		if (txn->page[i] != folio_page(txn->folio[i], 0))
			__free_page(txn->page[i]);
		folio_end_writeback(txn->folio[i]);
	}
	mempool_free(txn, &m->txns);
}

/* Another place for an append that failed, now; under the volume lock. */
static bool run_again(struct run *run)
{
	int ret = rfs_place(run->m->fs, run->stream, run->n, true, &run->place);

	run->again = !ret;
	run->later = ret == -EBUSY;	/* all free zones are being read */
	return run->again || run->later;
}

/* Pages of files that may be on their way; looked at without the lock */
static u32 pages_most(const struct rfsm *m)
{
	u32 most = min(READ_ONCE(m->pages_most), rfs_pages_at_once(m->fs));

	if (rfsm_spares(m, SPARING_FOR))
		most = min_t(u32, most, PAGES_SPARING);
	return READ_ONCE(m->cleaning) ? min_t(u32, most, PAGES_CLEANING) : most;
}

/*
 * An append came back after so long, and so many pages were on their way: what
 * the drive does in QUEUE_NS. Where they were few, or others were there, it could
 * have done more.
 */
static void pace(struct rfsm *m, const struct run *run)
{
	u64 took = ktime_get_ns() - run->sent, done;

	if (2 * run->ahead < m->pages_most || READ_ONCE(m->cleaning) ||
	    rfsm_spares(m, SPARING_FOR))
		return;
	done = run->ahead * QUEUE_NS / (took + 1);
	done = clamp_t(u64, done, PAGES_LEAST, PAGES_MOST);
	m->pages_most = (7 * m->pages_most + done) / 8;
}

/* So many pages of a file are on their way. */
static void inflight_pages_add(struct rfsm *m, const struct txn *txn, int pages)
{
	m->inflight_pages += pages;
	m->inflight_bulk_pages += txn->little ? 0 : pages;
}

/* It is over; returns its transaction if that has ended. */
static struct txn *run_over(struct run *run, int error)
{
	struct rfsm *m = run->m;
	u32 i;

	/*
	 * they are in use now: not counted twice until the last has completed
	 */
	for (i = 0; !run->txn->copy && i < run->n; i++)
		rfsm_unreserve(m, run->txn->inode,
			       run->txn->folio[run->first + i]);
	if (!run->txn->copy)
		inflight_pages_add(m, run->txn, -run->n);
	if (m->inflight_bulk_pages <= pages_most(m) / 2 &&
	    wq_has_sleeper(&m->gate_wait))
		wake_up_all(&m->gate_wait);
	return txn_put(m, run->txn, error) ? run->txn : NULL;
}

/* Not under the volume lock: on with an append that was looked at under it. */
static void run_next(struct run *run, struct txn *ended)
{
	struct rfsm *m = run->m;

	if (run->again) {
		run->again = false;
		bio_reset(run->bio, m->dev.bdev, REQ_OP_ZONE_APPEND);
		submit(run);
	} else if (run->later) {
		llist_add(&run->node, &m->later);
		queue_delayed_work(m->queue, &m->retry, 1);
	} else {
		run_free(run);
		if (ended)
			txn_end(m, ended);
	}
}

static void retry(struct work_struct *work)
{
	struct rfsm *m = container_of(to_delayed_work(work), struct rfsm,
				      retry);
	struct llist_node *list = llist_del_all(&m->later);
	struct run *run, *next;

	llist_for_each_entry_safe(run, next, list, node) {
		struct txn *ended = NULL;

		rfsm_lock(m);
		if (m->dev.dead || !run_again(run)) {
			run->later = false;
			ended = run_over(run, -EIO);
		}
		rfsm_unlock(m);
		run_next(run, ended);
	}
}

/*
 * An append came back: into the index, or once more elsewhere. Returns its
 * transaction if that has ended.
 */
static struct txn *run_done(struct run *run)
{
	struct rfsm *m = run->m;
	struct rfs_fs *fs = m->fs;
	u64 addr = run->bio->bi_iter.bi_sector >> (12 - SECTOR_SHIFT);
	int error = blk_status_to_errno(run->bio->bi_status);
	u64 addrs[RFSM_APPEND_MAX];
	u32 i;

	if (run->sum) {
		rfs_sum_done(fs, run->sum, addr, error);
		m->sums--;
		inflight_sub(m, NULL);
		return NULL;
	}
	if (!run->txn->copy)
		pace(m, run);
	rfsm_bio_oobs_back(&m->dev, run->oob, run->n);
	rfs_placed(fs, &run->place, run->oob, addr, error);
	if (error && ++run->tries < RFS_TRIES && !m->dev.dead) {
		/* of the moment: in the next one */
		run->later = !rfs_zone_failed(error);
		if (run->later || run_again(run))
			return NULL;
	}
	for (i = 0; i < run->n; i++)
		addrs[i] = addr + i;
	if (!error) {
		error = run->txn->copy ?
			rfs_copy_done(fs, run->txn->copy, run->first, run->n,
				      addrs) :
			rfs_txn_done(fs, run->oob, run->n, addrs);
		if (error)
			error = rfsm_failed(m, error);
	}
	return run_over(run, error);
}

/* A summary that can be written; under the volume lock. */
static struct run *next_sum(struct rfsm *m)
{
	struct rfs_oob oob;
	struct rfs_sum *sum;
	struct run *run;

	/* the others when one of these is back */
	sum = m->sums < SUMS ? rfs_sum_next(m->fs, &oob) : NULL;
	if (!sum)
		return NULL;
	run = mempool_alloc(&m->sum_runs, GFP_NOIO);
	memset(run, 0, sizeof(*run));
	run->m = m;
	run->bio = bio_alloc_bioset(m->dev.bdev, 1, REQ_OP_ZONE_APPEND,
				    GFP_NOIO, &m->sum_bios);
	run->page = mempool_alloc(&m->sum_pages, GFP_NOIO);
	run->oob = page_address(mempool_alloc(&m->sum_pages, GFP_NOIO));
	run->sum = sum;
	run->n = 1;
	memcpy(page_address(run->page), &sum->block, RFS_BLOCK_BYTES);
	memcpy(run->oob, &oob, sizeof(oob));
	m->sums++;
	m->inflight++;
	return run;
}

static void work(struct work_struct *work)
{
	struct rfsm_completions *here = container_of(work,
						     struct rfsm_completions,
						     work);
	struct llist_node *list = llist_del_all(&here->done);
	struct run *run, *next, *sums = NULL;
	struct rfsm *m = here->m;

	list = llist_reverse_order(list);
	llist_for_each_entry_safe(run, next, list, node) {
		struct txn *ended;

		rfsm_lock(m);
		ended = run_done(run);
		rfsm_unlock(m);
		run_next(run, ended);
	}
	/* after the memory of those that came back is free again */
	rfsm_lock(m);
	while ((run = next_sum(m))) {
		run->node.next = sums ? &sums->node : NULL;
		sums = run;
	}
	rfsm_unlock(m);
	if (sums)
		llist_for_each_entry_safe(run, next, &sums->node, node)
			submit(run);
	rfsm_kick(m);
}

/* Without page metadata: one append after the other, each with a summary. */
static int append_listed(struct rfsm *m, const struct txn *txn)
{
	const void *data[RFS_SUM_ENTRIES];
	u64 addr[RFS_SUM_ENTRIES];
	struct rfs_oob *oob;
	u32 done, part, stream, i;
	int ret = 0;

	oob = rfs_alloc(RFS_SUM_ENTRIES * sizeof(*oob));
	for (done = 0; !ret && done < txn->core.n; done += part) {
		part = min(txn->core.n - done, (u32)RFS_SUM_ENTRIES);
		ret = rfs_txn_fill(m->fs, &txn->core, done, &part, oob,
				   &stream);
		for (i = 0; i < part; i++)
			data[i] = page_address(txn->page[done + i]);
		if (!ret)
			ret = rfs_append(m->fs, stream, part, data, oob, addr);
		if (!ret)
			ret = rfs_txn_done(m->fs, oob, part, addr);
	}
	rfs_free(oob);
	return ret;
}

static int fill(struct rfsm *m, const struct txn *txn, u32 from, u32 *n,
		struct rfs_oob *oob, u32 *stream)
{
	if (!txn->copy)
		return rfs_txn_fill(m->fs, &txn->core, from, n, oob, stream);
	memcpy(oob, &txn->copy->oob[from], *n * sizeof(*oob));
	*stream = txn->copy->stream;
	return 0;
}

/*
 * More pages are on their way than what they make dirty has room for, or, of who
 * writes much, than the drive needs. Looked at without the lock.
 */
static bool too_many(const struct rfsm *m, const struct txn *txn)
{
	return READ_ONCE(m->inflight_pages) >= rfs_pages_at_once(m->fs) ||
	       (!txn->little && READ_ONCE(m->inflight_bulk_pages) >=
		pages_most(m));
}

static bool few_enough(const struct rfsm *m, const struct txn *txn)
{
	return READ_ONCE(m->inflight_pages) < rfs_pages_at_once(m->fs) &&
	       (txn->little || READ_ONCE(m->inflight_bulk_pages) <=
		pages_most(m) / 2);
}

/* An append of what is left of a transaction; *done grows. */
static int append_run(struct rfsm *m, struct txn *txn, u32 *done,
		      blk_opf_t flags)
{
	u32 most = min(txn->core.n - *done, m->fs->geo.append_max), n, i;
	struct rfsm_ask ask = { 0 };
	struct rfs_oob *oob;
	struct run *run;
	int ret;

	if (!txn->copy)
		most = min(most, rfs_pages_at_once(m->fs));
	/* more would not be faster, only what comes after them slower */
	if (!txn->copy && too_many(m, txn))
		wait_event(m->gate_wait, few_enough(m, txn));
	run = run_alloc(m, txn, most, flags);
	oob = run->oob;
	for (;;) {
		n = most;
		rfsm_lock(m);
		rfsm_ask(m, &ask);
		ret = fill(m, txn, *done, &n, oob, &run->stream);
		if (!rfsm_asked(m, &ask, ret))
			break;
		rfsm_unlock(m);
		rfsm_answer(m, &ask);
	}
	most = n;
	if (!ret)
		ret = rfs_place(m->fs, run->stream, most, false, &run->place);
	while (ret == -EBUSY) {	/* all free zones are being read */
		rfsm_unlock(m);
		schedule_timeout_uninterruptible(1);
		rfsm_lock(m);
		ret = rfs_place(m->fs, run->stream, most, false, &run->place);
	}
	if (!ret) {
		txn->left++;
		if (!txn->copy)
			inflight_pages_add(m, txn, run->place.n);
		run->ahead = m->inflight_pages;
	}
	rfsm_unlock(m);
	if (ret) {
		run_free(run);
		return ret;
	}
	run->first = *done;
	run->n = run->place.n;
	for (i = 0; i < run->n; i++)
		rfs_oob_seal(&oob[i], page_address(txn->page[run->first + i]));
	*done += run->n;
	submit(run);
	return 0;
}

/* The rest of a transaction, from done on; ret: what went wrong before. */
static void append_runs(struct rfsm *m, struct txn *txn, u32 done,
			blk_opf_t flags, int ret)
{
	bool last;

	while (!ret && done < txn->core.n)
		ret = append_run(m, txn, &done, flags);
	if (ret)
		ret = rfsm_failed(m, ret);
	rfsm_lock(m);
	last = txn_put(m, txn, ret);
	rfsm_unlock(m);
	if (last)
		txn_end(m, txn);
}

static bool gate_closed(const struct rfsm *m, const struct txn *txn)
{
	return READ_ONCE(m->gate) || (READ_ONCE(m->drain) && !txn->little);
}

/* Under the volume lock, which it drops while it waits for check-points */
static void wait_gate(struct rfsm *m, const struct txn *txn)
{
	while (gate_closed(m, txn)) {
		rfsm_unlock(m);
		wait_event(m->gate_wait, !gate_closed(m, txn));
		rfsm_lock(m);
	}
}

/*
 * The window, or what is dirty, is beyond what recovery is to be spared. Of the
 * window, those who write much see to it.
 */
static bool overdue(struct rfs_fs *fs, const struct txn *txn)
{
	u64 window = (txn->little ? 3 : 2) * (u64)fs->window_max;

	rfs_dirty_parents(fs);
	return !fs->read_only &&
	       (fs->window_blocks >= window || rfs_dirty_full(fs));
}

/*
 * Nobody maps or writes a folio under writeback anew, but who had it pinned
 * before, for direct I/O of another file, changes it under the checksum.
 */
static struct page *stable_page(struct folio *folio)
{
	struct page *page = folio_page(folio, 0), *copy;

	if (!folio_maybe_dma_pinned(folio))
		return page;
	copy = alloc_page(GFP_NOIO | __GFP_NOFAIL);
	copy_page(page_address(copy), page_address(page));
	return copy;
}

/* Under the volume lock: from now on who writes much leaves more to others. */
static void wrote_little(struct rfsm *m)
{
	WRITE_ONCE(m->little, jiffies);
	WRITE_ONCE(m->littles, true);
	rfsm_set_ahead(m);
}

void rfsm_append(struct rfsm *m, struct inode *inode, struct folio **folio,
		 u32 n, u32 len, bool sync)
{
	struct timespec64 mtime = inode_get_mtime(inode);
	struct txn *txn = mempool_alloc(&m->txns, GFP_NOIO);
	u32 done = 0, i;
	int ret;

	rfsm_used(m);
	txn->inode = inode;
	txn->copy = NULL;
	txn->left = 1;
	txn->little = sync && rfsm_is_little(inode);
	txn->error = 0;
	memcpy(txn->folio, folio, n * sizeof(*folio));
	for (i = 0; i < n; i++)
		txn->page[i] = stable_page(folio[i]);
	rfsm_lock(m);
	if (txn->little)
		wrote_little(m);
	wait_gate(m, txn);
	/* the thread may be in writeback, and so wait for this */
	if (overdue(m->fs, txn)) {
		ret = rfsm_checkpoint(m, 0);
		if (ret)
			rfsm_failed(m, ret);
		wait_gate(m, txn);
	}
	inflight_add(m, txn);
	ret = rfs_txn_begin(m->fs, inode->i_ino, folio[0]->index, n, len,
			    timespec64_to_ns(&mtime), &txn->core);
	txn->core.n = n;	/* also after an error */
	if (!ret && !m->fs->geo.oob_bytes) {
		ret = append_listed(m, txn);
		done = n;
	}
	rfsm_unlock(m);
	append_runs(m, txn, done, sync ? REQ_SYNC : 0, ret);
	/* else work() does when it has completed */
	if (done)
		rfsm_kick(m);
}

/* That may be on their way; looked at without the lock */
static u32 copies_most(const struct rfsm *m)
{
	return rfsm_spares(m, SPARING_FOR) ? COPIES_SPARING : RFS_COPIES;
}

int rfsm_copy_write(void *dev, struct rfs_copy *copy)
{
	struct rfsm *m = container_of(dev, struct rfsm, dev);
	struct rfsm_copy *host = &m->dev.copies[copy->nr];
	struct txn *txn;
	u32 i;
	int ret;

	rfsm_unlock(m);
	txn = mempool_alloc(&m->txns, GFP_NOIO);
	txn->copy = copy;
	txn->little = false;
	reinit_completion(&host->written);
	wait_event(m->gate_wait, READ_ONCE(m->inflight_copies) <
		   copies_most(m));
	rfsm_lock(m);
	wait_gate(m, txn);
	ret = rfs_copy_begin(m->fs, copy);
	if (ret) {
		mempool_free(txn, &m->txns);
		return ret;
	}
	inflight_add(m, txn);
	rfsm_unlock(m);
	txn->left = 1;
	txn->error = 0;
	txn->core.n = copy->n;
	for (i = 0; i < copy->n; i++)
		txn->page[i] = rfsm_page_of(copy->block[i]);
	append_runs(m, txn, 0, 0, 0);
	rfsm_lock(m);
	return 0;
}

int rfsm_append_init(struct rfsm *m)
{
	int ret, cpu;

	m->pages_most = PAGES_FIRST;
	init_llist_head(&m->later);
	m->completions = alloc_percpu(struct rfsm_completions);
	if (!m->completions)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct rfsm_completions *completions =
			per_cpu_ptr(m->completions, cpu);

		completions->m = m;
		init_llist_head(&completions->done);
		INIT_WORK(&completions->work, work);
	}
	INIT_DELAYED_WORK(&m->retry, retry);
	ret = mempool_init_slab_pool(&m->runs, RUNS, run_cache);
	if (!ret)
		ret = mempool_init_slab_pool(&m->txns, 4, txn_cache);
	if (!ret)
		ret = mempool_init_kmalloc_pool(&m->batches, 4,
						sizeof(struct rfsm_batch));
	if (!ret)
		ret = mempool_init_slab_pool(&m->sum_runs, SUMS, run_cache);
	if (!ret)
		ret = mempool_init_page_pool(&m->sum_pages, 2 * SUMS, 0);
	if (!ret)
		ret = rfsm_bioset_init(&m->sum_bios, SUMS);
	if (ret)
		return ret;
	m->queue = alloc_workqueue("rfs/%pg", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0,
				   m->sb->s_bdev);
	return m->queue ? 0 : -ENOMEM;
}

void rfsm_append_exit(struct rfsm *m)
{
	if (m->queue) {
		/* summaries that nobody waited for */
		wait_event(m->gate_wait, !READ_ONCE(m->inflight));
		rfsm_reset_stop(m);
		cancel_delayed_work_sync(&m->retry);
		synchronize_rcu();	/* endio() is done with the queue */
		destroy_workqueue(m->queue);
		m->queue = NULL;
	}
	free_percpu(m->completions);
	m->completions = NULL;
	bioset_exit(&m->sum_bios);
	mempool_exit(&m->sum_pages);
	mempool_exit(&m->sum_runs);
	mempool_exit(&m->batches);
	mempool_exit(&m->txns);
	mempool_exit(&m->runs);
}

int __init rfsm_append_module_init(void)
{
	run_cache = kmem_cache_create("rfs_run", sizeof(struct run), 0, 0,
				      NULL);
	txn_cache = kmem_cache_create("rfs_txn", sizeof(struct txn), 0, 0,
				      NULL);
	if (run_cache && txn_cache)
		return 0;
	rfsm_append_module_exit();
	return -ENOMEM;
}

void rfsm_append_module_exit(void)
{
	kmem_cache_destroy(txn_cache);
	kmem_cache_destroy(run_cache);
}
