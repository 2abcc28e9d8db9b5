// SPDX-License-Identifier: GPL-2.0
/*
 * The module writes with several appends in flight. The volume lock is held to give an append its
 * room and to note where it went, not while it is in flight. A check-point closes a gate and waits
 * for all (doc/design.md, "Check-point").
 */
#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "error.h"
#include "flush.h"
#include "wake.h"
#include "checkpoint.h"
#include "blocks.h"
#include "reserve.h"
#include "append.h"
#include "trace.h"
#include "space/space.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"

#define RUNS	32	/* in flight that need no memory */
#define OOBS_HERE	4	/* so many need no page of their own */
/*
 * So many pages of files are in flight as the drive writes in QUEUE_NS. More would not make it
 * faster. But a process that deletes or overwrites a page in flight waits for it, and that page was
 * written in vain.
 */
#define QUEUE_NS	(12 * NSEC_PER_MSEC)
#define PAGES_FIRST	256
#define PAGES_LEAST	64
#define PAGES_MOST	2048
/* While zones are cleaned, no more pages than this are in flight, since as many copies are, too. */
#define PAGES_CLEANING	512
/*
 * Fewer pages are in flight while a small writer waits: the drive serves its queue in order, so a
 * page waits for all that was sent before it.
 */
#define PAGES_FAVOUR	128
#define COPIES_FAVOUR	3
#define FAVOUR_FOR	(HZ / 10)
/*
 * At most so many summaries are in flight. A transaction that holds the runs of folios waits for
 * them, so summaries have memory of their own.
 */
#define SUMS	32

/*
 * A file's transaction: these folios are written as one. Their writeback ends when all of them are
 * in the index, since a crash before that takes all of them back. For cleaning, it is a copy, of
 * which each block stands by itself.
 */
struct rfsm_txn {
	struct inode *inode;
	struct rfs_copy *copy;	/* or NULL */
	struct rfs_txn core;
	u32 left;		/* appends, and one while more will come */
	bool small;		/* of who writes little, and waits for it */
	bool atomic;		/* RFSM_APPEND_ATOMIC, of several pages */
	bool fill;		/* rfsm_append_fill() */
	bool begun;		/* it is in flight, and core is filled in */
	u32 len;		/* valid bytes of the last page */
	u64 block;		/* the first of them */
	s64 mtime;		/* ns */
	int error;
	struct rfsm_then *then;	/* or NULL */
	struct folio *end[2];	/* of its ends that are pieces */
	u32 ends;
	struct folio *folio[RFS_TXN_MAX];	/* in which each block lies */
	struct page *page[RFS_TXN_MAX];	/* of the folio, or a copy */
};

/* This is an append, of pages of a transaction or of a summary. */
struct rfsm_io {
	struct llist_node node;
	struct rfs_sb_info *sbi;
	struct rfsm_txn *txn;	/* NULL: a summary */
	struct rfs_place place;
	struct rfs_sum *sum;
	struct page *page;	/* of a summary */
	struct bio *bio;
	void *oob;
	u8 few[OOBS_HERE * RFS_OOB_BYTES] __aligned(8);	/* OOBs, if they fit */
	u32 first, n;		/* pages */
	u32 stream;		/* of their group */
	u32 tries;
	u64 sent;		/* ns; 0: it tells nothing of the drive */
	u32 ahead;		/* pages in flight, with it */
	bool again;		/* it has another place now */
	bool later;		/* it may have one soon */
	struct rfsm_txn *ended;	/* it was the last of this one; or NULL */
};

static struct kmem_cache *io_cache, *txn_cache;

/* Returns the i-th block of a file's transaction. */
static u64 rfsm_txn_block(const struct rfsm_txn *txn, u32 i)
{
	return txn->core.at ? txn->core.at[i] : txn->block + i;
}

/* Returns how many of the blocks from..to - 1, from the first on, lie in its folio. */
static u32 rfsm_txn_row(const struct rfsm_txn *txn, u32 from, u32 to)
{
	u32 i = from + 1;

	while (i < to && txn->folio[i] == txn->folio[from])
		i++;
	return i - from;
}

/* Ends the reservations of the blocks from..to - 1. The caller holds the volume lock. */
static void rfsm_txn_unreserve(struct rfs_sb_info *sbi,
			       const struct rfsm_txn *txn, u32 from, u32 to)
{
	u32 row;

	for (; from < to; from += row) {
		row = rfsm_txn_row(txn, from, to);
		rfsm_unreserve(sbi, txn->inode, txn->folio[from],
			       rfsm_txn_block(txn, from), row);
	}
}

static void rfsm_io_endio(struct bio *bio)
{
	struct rfsm_io *io = bio->bi_private;
	struct rfs_sb_info *sbi = io->sbi;
	struct rfsm_completions *here;
	int cpu = get_cpu();

	here = per_cpu_ptr(sbi->completions, cpu);
	/* Once it is in the list, an unmount may go on, but rfsm_append_exit() waits for this. */
	rcu_read_lock();
	if (llist_add(&io->node, &here->done))
		queue_work_on(cpu, sbi->queue, &here->work);
	rcu_read_unlock();
	put_cpu();
}

/* Adds the pages from the i-th on that follow each other. Returns their number. */
static u32 rfsm_io_add(struct rfsm_io *io, u32 i)
{
	struct page **page = io->txn ? &io->txn->page[io->first + i] :
				       &io->page;
	u32 n = 1, added;

	while (i + n < io->n && page[n] == nth_page(page[0], n))
		n++;
	/* The bio was made for so many pages, and the drive takes them. */
	added = bio_add_zone_append_page(io->bio, page[0], n * RFS_BLOCK_BYTES,
					 0) / RFS_BLOCK_BYTES;
	WARN_ON_ONCE(!added);
	return added ? added : n;
}

/*
 * Says whether the time that an append takes tells how much the drive does at a time. It does if as
 * many pages are in flight as may be, or half of that.
 */
static bool rfsm_tells_depth(const struct rfsm_io *io)
{
	return 2 * io->ahead >= READ_ONCE(io->sbi->pages_most);
}

/* Adds the pages and the zone to a bio that has its OOBs, and submits it. */
static void rfsm_io_submit(struct rfsm_io *io)
{
	struct rfsm_dev *dev = &io->sbi->dev;
	struct bio *bio = io->bio;
	u32 zone = io->sum ? io->sum->zone : io->place.zone, i, row;

	bio->bi_iter.bi_sector = (sector_t)zone * dev->zone_sectors;
	bio->bi_private = io;
	bio->bi_end_io = rfsm_io_endio;
	rfsm_bio_oobs(dev, bio, io->oob, io->n);
	for (i = 0; i < io->n; i += row)
		row = rfsm_io_add(io, i);
	io->sent = rfsm_tells_depth(io) ? ktime_get_ns() : 0;
	trace_rfs_append(dev->bdev->bd_dev, zone, io->n,
			 io->txn && !io->txn->copy);
	if (dev->dead)
		bio_io_error(bio);
	else
		submit_bio(bio);
}

static struct rfsm_io *rfsm_io_alloc(struct rfs_sb_info *sbi,
				     struct rfsm_txn *txn, u32 n,
				     blk_opf_t flags)
{
	struct rfsm_io *io = mempool_alloc(&sbi->runs, GFP_NOIO);

	memset(io, 0, sizeof(*io));
	io->sbi = sbi;
	io->txn = txn;
	if (n * sbi->dev.oob_bytes <= sizeof(io->few))
		io->oob = io->few;
	io->bio = rfsm_bio(&sbi->dev, REQ_OP_ZONE_APPEND | flags, n, 0,
			   &io->oob);
	return io;
}

static void rfsm_io_free(struct rfsm_io *io)
{
	struct rfs_sb_info *sbi = io->sbi;

	if (io->page) {
		bio_put(io->bio);
		mempool_free(io->page, &sbi->sum_pages);
		mempool_free(virt_to_page(io->oob), &sbi->sum_pages);
		mempool_free(io, &sbi->sum_runs);
		return;
	}
	rfsm_bio_put(&sbi->dev, io->bio, io->oob == io->few ? NULL :
		     io->oob);
	mempool_free(io, &sbi->runs);
}

/* One transaction or summary less is in flight. The caller holds the volume lock. */
static void rfsm_inflight_sub(struct rfs_sb_info *sbi,
			      const struct rfsm_txn *txn)
{
	bool all = !--sbi->inflight, copy = txn && txn->copy;

	sbi->inflight_copies -= copy;
	if (txn && !txn->small)
		all |= !--sbi->inflight_bulk;
	if (!txn)
		all |= !sbi->sums;
	if ((all || copy) && wq_has_sleeper(&sbi->gate_wait))
		wake_up_all(&sbi->gate_wait);
}

/* One transaction more is in flight. The caller holds the volume lock. */
static void rfsm_inflight_add(struct rfs_sb_info *sbi,
			      const struct rfsm_txn *txn)
{
	sbi->inflight++;
	sbi->inflight_bulk += !txn->small;
	sbi->inflight_copies += !!txn->copy;
}

/*
 * Returns true if this append was the last: then rfsm_txn_end() is due. The caller holds the volume
 * lock.
 */
static bool rfsm_txn_put(struct rfs_sb_info *sbi, struct rfsm_txn *txn,
			 int error)
{
	txn->error = txn->error ? txn->error : error;
	if (--txn->left)
		return false;
	rfsm_inflight_sub(sbi, txn);
	return true;
}

/* The blocks from the i-th on that lie in one folio are on the drive. Returns their number. */
static u32 rfsm_folio_written(const struct rfsm_txn *txn, u32 i)
{
	u32 j, n = rfsm_txn_row(txn, i, txn->core.n);
	u64 block = rfsm_txn_block(txn, i);
	struct folio *folio = txn->folio[i];

	for (j = 0; j < n; j++)
		if (txn->page[i + j] != rfsm_page_with(folio, block + j))
			__free_page(txn->page[i + j]);
	rfsm_blocks_sent(folio, block, n);
	return n;
}

static void rfsm_txn_end(struct rfs_sb_info *sbi, struct rfsm_txn *txn)
{
	struct rfsm_then *then = txn->then;
	u32 i, row, n = txn->core.n;
	int error = txn->error;

	if (txn->copy) {
		struct rfsm_copy *copy = &sbi->dev.copies[txn->copy->nr];

		copy->error = txn->error;
		mempool_free(txn, &sbi->txns);
		complete(&copy->written);
		return;
	}
	/* A block that was only to be on flash as well is still at home. */
	if (txn->error && !txn->fill)
		mapping_set_error(txn->inode->i_mapping, txn->error);
	/*
	 * If there are only pieces, they are in the log, which is durable before any page that has
	 * their bytes.
	 */
	if (txn->atomic && n)
		rfsm_atomic_completed(txn->inode);
	for (i = 0; i < n; i += row)
		row = rfsm_folio_written(txn, i);
	for (i = 0; i < txn->ends; i++)
		rfsm_blocks_sent(txn->end[i], txn->end[i]->index, 1);
	kfree(txn->core.at);
	mempool_free(txn, &sbi->txns);
	if (then)
		then->over(then, error);
}

/* Finds another place, now, for an append that failed. The caller holds the volume lock. */
static bool rfsm_io_again(struct rfsm_io *io)
{
	int ret = -EBUSY;

	/* The append may be the first of a zone, and then needs memory for a summary. */
	if (rfsm_memory_ready(io->sbi, 1))
		ret = rfs_place(io->sbi->fs, io->stream, io->n, true,
				&io->place);
	io->again = !ret;
	io->later = ret == -EBUSY;	/* or all free zones are being read */
	return io->again || io->later;
}

static u32 rfsm_pages_at_once(const struct rfs_sb_info *sbi)
{
	/* No lock is needed: this is a bound, and a page more or less does no harm. */
	return data_race(rfs_pages_at_once(sbi->fs));
}

/* Returns how many pages of files may be in flight. The lock is not needed. */
static u32 rfsm_pages_most(const struct rfs_sb_info *sbi)
{
	u32 most = min(READ_ONCE(sbi->pages_most), rfsm_pages_at_once(sbi));

	if (rfsm_favour_small(sbi, FAVOUR_FOR))
		most = min_t(u32, most, PAGES_FAVOUR);
	return READ_ONCE(sbi->cleaning) ? min_t(u32, most,
						PAGES_CLEANING) : most;
}

/*
 * Learns how many pages the drive writes in QUEUE_NS, from the time that an append took with so
 * many pages in flight. If there were few pages, or other requests, the drive could have done more.
 */
static void rfsm_adapt_depth(struct rfs_sb_info *sbi, const struct rfsm_io *io)
{
	u64 took, done;

	if (!io->sent || READ_ONCE(sbi->cleaning) ||
	    rfsm_favour_small(sbi, FAVOUR_FOR))
		return;
	took = ktime_get_ns() - io->sent;
	done = io->ahead * QUEUE_NS / (took + 1);
	done = clamp_t(u64, done, PAGES_LEAST, PAGES_MOST);
	sbi->pages_most = (7 * sbi->pages_most + done) / 8;
}

/* So many pages more of a file are in flight, or fewer, if pages is negative. */
static void rfsm_inflight_pages_add(struct rfs_sb_info *sbi,
				    const struct rfsm_txn *txn, int pages)
{
	sbi->inflight_pages += pages;
	sbi->inflight_bulk_pages += txn->small ? 0 : pages;
}

/* Ends an append. Returns its transaction if that has ended. */
static struct rfsm_txn *rfsm_io_over(struct rfsm_io *io, int error)
{
	struct rfs_sb_info *sbi = io->sbi;

	if (!io->txn->copy) {
		/*
		 * The page is in use now. It is counted once: its reservation ends here, before the
		 * last append completes.
		 */
		rfsm_txn_unreserve(sbi, io->txn, io->first, io->first + io->n);
		rfsm_inflight_pages_add(sbi, io->txn, -io->n);
	}
	if (wq_has_sleeper(&sbi->gate_wait) &&
	    sbi->inflight_bulk_pages <= rfsm_pages_most(sbi) / 2)
		wake_up_all(&sbi->gate_wait);
	return rfsm_txn_put(sbi, io->txn, error) ? io->txn : NULL;
}

/* Goes on with an append that was looked at under the volume lock. The lock is not held here. */
static void rfsm_io_next(struct rfsm_io *io)
{
	struct rfs_sb_info *sbi = io->sbi;
	struct rfsm_txn *ended = io->ended;

	if (io->again) {
		io->again = false;
		bio_reset(io->bio, sbi->dev.bdev, REQ_OP_ZONE_APPEND);
		rfsm_io_submit(io);
	} else if (io->later) {
		llist_add(&io->node, &sbi->later);
		queue_delayed_work(sbi->queue, &sbi->retry, 1);
	} else {
		rfsm_io_free(io);
		if (ended)
			rfsm_txn_end(sbi, ended);
	}
}

static void rfsm_io_retry(struct work_struct *work)
{
	struct rfs_sb_info *sbi = container_of(to_delayed_work(work),
					       struct rfs_sb_info, retry);
	struct llist_node *list = llist_del_all(&sbi->later);
	struct rfsm_io *io, *next;

	llist_for_each_entry_safe(io, next, list, node) {
		rfsm_lock_now(sbi);
		if (sbi->dev.dead || !rfsm_io_again(io)) {
			io->later = false;
			io->ended = rfsm_io_over(io, -EIO);
		}
		rfsm_unlock(sbi);
		rfsm_io_next(io);
	}
}

/*
 * An append has completed: its blocks are entered in the index, or it is submitted once more
 * elsewhere. Returns its transaction if that has ended.
 */
static struct rfsm_txn *rfsm_io_done(struct rfsm_io *io)
{
	struct rfs_sb_info *sbi = io->sbi;
	struct rfs_fs *fs = sbi->fs;
	u64 addr = io->bio->bi_iter.bi_sector >> (12 - SECTOR_SHIFT);
	int error = rfsm_drive_error(blk_status_to_errno(io->bio->bi_status));
	u64 addrs[RFSM_APPEND_MAX];
	u32 i;

	if (io->sum) {
		rfs_sum_done(fs, io->sum, addr, error);
		sbi->sums--;
		rfsm_inflight_sub(sbi, NULL);
		return NULL;
	}
	if (!io->txn->copy)
		rfsm_adapt_depth(sbi, io);
	rfsm_bio_oobs_back(&sbi->dev, io->oob, io->n);
	rfs_placed(fs, &io->place, io->oob, addr, error);
	if (error && ++io->tries < RFS_TRIES && !sbi->dev.dead) {
		/* The error is temporary, so the append is repeated with the next retry. */
		io->later = !rfs_zone_failed(error);
		if (io->later || rfsm_io_again(io))
			return NULL;
	}
	for (i = 0; i < io->n; i++)
		addrs[i] = addr + i;
	if (!error) {
		error = io->txn->copy ?
			rfs_copy_done(fs, io->txn->copy, io->first, io->n,
				      addrs) :
			io->txn->fill ?
			rfs_fill_done(fs, io->oob, io->n, addrs) :
			rfs_txn_done(fs, io->oob, io->n, addrs);
		if (error)
			error = rfsm_failed(sbi, error);
	}
	return rfsm_io_over(io, error);
}

/* Takes a summary that can be written. The caller holds the volume lock. */
static struct rfsm_io *rfsm_next_summary(struct rfs_sb_info *sbi)
{
	struct rfs_oob oob;
	struct rfs_sum *sum;
	struct rfsm_io *io;

	/* The other summaries are sent when one of these has completed. */
	sum = sbi->sums < SUMS ? rfs_sum_next(sbi->fs, &oob) : NULL;
	if (!sum)
		return NULL;
	io = mempool_alloc(&sbi->sum_runs, GFP_NOIO);
	memset(io, 0, sizeof(*io));
	io->sbi = sbi;
	io->bio = bio_alloc_bioset(sbi->dev.bdev, 1, REQ_OP_ZONE_APPEND,
				   GFP_NOIO, &sbi->sum_bios);
	io->page = mempool_alloc(&sbi->sum_pages, GFP_NOIO);
	io->oob = page_address(mempool_alloc(&sbi->sum_pages, GFP_NOIO));
	io->sum = sum;
	io->n = 1;
	memcpy(page_address(io->page), &sum->block, RFS_BLOCK_BYTES);
	memcpy(io->oob, &oob, sizeof(oob));
	sbi->sums++;
	sbi->inflight++;
	return io;
}

/* Sends the summaries whose blocks have all completed. */
static void rfsm_send_summaries(struct rfs_sb_info *sbi)
{
	struct rfsm_io *io, *next, *sums = NULL;

	rfsm_lock_now(sbi);
	while ((io = rfsm_next_summary(sbi))) {
		io->node.next = sums ? &sums->node : NULL;
		sums = io;
	}
	rfsm_unlock(sbi);
	if (sums)
		llist_for_each_entry_safe(io, next, &sums->node, node)
			rfsm_io_submit(io);
}

static void rfsm_sums_work(struct work_struct *work)
{
	rfsm_send_summaries(container_of(work, struct rfs_sb_info, sums_work));
}

/* One hold of the lock looks at this many pages of a list at least, or at all of them. */
#define DONE_AT_ONCE	64

/*
 * Looks at completed appends, from `from` on. Returns the first that is left. If that is `from`, it
 * lacks memory.
 */
static struct llist_node *rfsm_some_done(struct rfs_sb_info *sbi,
					 struct llist_node *from, bool *due)
{
	struct llist_node *at, *next;
	u32 pages = 0;

	rfsm_lock_now(sbi);
	for (at = from; at && pages < DONE_AT_ONCE; at = at->next) {
		struct rfsm_io *io = container_of(at, struct rfsm_io, node);

		if (!io->sum && !rfsm_memory_for_pages(sbi, io->n))
			break;
		pages += io->n;
		io->ended = rfsm_io_done(io);
	}
	*due = !list_empty(&sbi->fs->sums);
	rfsm_unlock(sbi);
	for (; from != at; from = next) {
		next = from->next;	/* the append may be gone, or sent again */
		rfsm_io_next(container_of(from, struct rfsm_io, node));
	}
	return at;
}

/*
 * These appends are looked at when there is memory. Nobody waits for it here: it may come only when
 * the same worker looks at other appends that have completed.
 */
static void rfsm_done_later(struct rfs_sb_info *sbi, struct llist_node *list)
{
	struct llist_node *next;

	for (; list; list = next) {
		next = list->next;
		llist_add(list, &sbi->lacking);
	}
	rfsm_memory_soon(sbi);
}

static void rfsm_done(struct rfs_sb_info *sbi, struct llist_node *list)
{
	struct llist_node *left;
	bool due = false;

	for (list = llist_reverse_order(list); list; list = left) {
		left = rfsm_some_done(sbi, list, &due);
		if (left != list)
			continue;
		rfsm_done_later(sbi, list);
		break;
	}
	/* This comes after the memory of the completed appends is free again. */
	if (due)
		rfsm_send_summaries(sbi);
	rfsm_kick(sbi);
}

static void rfsm_completions_work(struct work_struct *work)
{
	struct rfsm_completions *here = container_of(work,
						     struct rfsm_completions,
						     work);

	rfsm_done(here->sbi, llist_del_all(&here->done));
}

static void rfsm_lacking_work(struct work_struct *work)
{
	struct rfs_sb_info *sbi = container_of(work, struct rfs_sb_info,
					       lacking_work);

	rfsm_done(sbi, llist_del_all(&sbi->lacking));
}

static void rfsm_memory_filled(struct rfs_sb_info *sbi)
{
	queue_work(sbi->queue, &sbi->lacking_work);
}

/*
 * Waits for memory. The metadata that leads to these pages may be read and changed under the lock,
 * which is dropped meanwhile.
 */
static void rfsm_wait_memory(struct rfs_sb_info *sbi, u32 pages)
{
	while (!rfsm_memory_for_pages(sbi, pages)) {
		rfsm_unlock(sbi);
		rfsm_lock_send(sbi);
	}
}

/*
 * Writes without page metadata: one append after the other, each with a summary. The caller holds
 * the volume lock. oob has room for the OOBs of an append.
 */
static int rfsm_append_listed(struct rfs_sb_info *sbi,
			      const struct rfsm_txn *txn, struct rfs_oob *oob)
{
	const void *data[RFS_SUM_ENTRIES];
	u64 addr[RFS_SUM_ENTRIES];
	u32 done, part, stream, i;
	int ret = 0;

	for (done = 0; !ret && done < txn->core.n; done += part) {
		if (done) {	/* what the part before has taken of memory comes back */
			rfsm_unlock(sbi);
			rfsm_lock_send(sbi);
		}
		part = min(txn->core.n - done, (u32)RFS_SUM_ENTRIES);
		rfsm_wait_memory(sbi, part);
		ret = rfs_txn_fill(sbi->fs, &txn->core, done, &part, oob,
				   &stream);
		for (i = 0; i < part; i++)
			data[i] = page_address(txn->page[done + i]);
		if (!ret)
			ret = rfs_append(sbi->fs, stream, part, data, oob,
					 addr);
		if (!ret)
			ret = rfs_txn_done(sbi->fs, oob, part, addr);
	}
	return ret;
}

static int rfsm_fill_oobs(struct rfs_sb_info *sbi, const struct rfsm_txn *txn,
			  u32 from, u32 *n, struct rfs_oob *oob, u32 *stream)
{
	int ret;

	if (!txn->copy) {
		ret = rfs_txn_fill(sbi->fs, &txn->core, from, n, oob, stream);
		if (!ret && txn->fill)
			rfs_fill_oobs(sbi->fs, oob, *n);
		return ret;
	}
	memcpy(oob, &txn->copy->oob[from], *n * sizeof(*oob));
	*stream = txn->copy->stream;
	return 0;
}

/*
 * Says whether too many pages are in flight: more than there is room for in the metadata that they
 * make dirty or, for a large writer, more than the drive needs. It looks without the lock.
 */
static bool rfsm_too_many_in_flight(const struct rfs_sb_info *sbi,
				    const struct rfsm_txn *txn)
{
	return READ_ONCE(sbi->inflight_pages) >= rfsm_pages_at_once(sbi) ||
	       (!txn->small && READ_ONCE(sbi->inflight_bulk_pages) >=
		rfsm_pages_most(sbi));
}

static bool rfsm_few_in_flight(const struct rfs_sb_info *sbi,
			       const struct rfsm_txn *txn)
{
	return READ_ONCE(sbi->inflight_pages) < rfsm_pages_at_once(sbi) &&
	       (txn->small || READ_ONCE(sbi->inflight_bulk_pages) <=
		rfsm_pages_most(sbi) / 2);
}

static bool rfsm_gate_closed(const struct rfs_sb_info *sbi,
			     const struct rfsm_txn *txn)
{
	return READ_ONCE(sbi->gate) || (READ_ONCE(sbi->drain) && !txn->small);
}

/* Waits for the gate. The caller holds the volume lock, which is dropped meanwhile. */
static void rfsm_wait_gate(struct rfs_sb_info *sbi, const struct rfsm_txn *txn)
{
	while (rfsm_gate_closed(sbi, txn)) {
		rfsm_unlock(sbi);
		wait_event(sbi->gate_wait, !rfsm_gate_closed(sbi, txn));
		rfsm_lock_send(sbi);
	}
}

/*
 * Says whether a check-point has to come first. Either the window is larger than recovery should
 * have to read, for which large writers wait, or there is no room for the metadata that the pages
 * make dirty and for a compaction after it.
 */
static bool rfsm_checkpoint_overdue(struct rfs_fs *fs,
				    const struct rfsm_txn *txn)
{
	u64 window = (txn->small ? 3 : 2) * (u64)fs->window_max;

	return !fs->read_only && (fs->window_blocks >= window ||
				  rfs_make_room_to_free(fs) == -ENOBUFS);
}

/*
 * Nobody maps a folio under writeback or writes to it anew. But direct I/O of another file may have
 * pinned its page before, and then changes it after its checksum was computed.
 */
static struct page *rfsm_stable_page(struct folio *folio, u64 block)
{
	struct page *page = rfsm_page_with(folio, block), *copy;

	if (!folio_maybe_dma_pinned(folio))
		return page;
	/*
	 * The dirty bit is gone, and the page is under writeback, so it can be neither left out nor
	 * written as it is. Whoever waits for writeback waits for this one page.
	 */
	copy = alloc_page(GFP_NOIO | __GFP_NOFAIL);
	copy_page(page_address(copy), page_address(page));
	return copy;
}

/*
 * Notes a small write: from now on large writers leave more to others. The caller holds the volume
 * lock.
 */
static void rfsm_wrote_small(struct rfs_sb_info *sbi)
{
	unsigned long now = jiffies;

	if (sbi->small_seen && sbi->small == now)
		return;
	WRITE_ONCE(sbi->small, now);
	WRITE_ONCE(sbi->small_seen, true);
	rfsm_set_ahead(sbi);
}

/* A file's transaction is in flight from now on. The caller holds the volume lock. */
static int rfsm_txn_begin_now(struct rfs_sb_info *sbi, struct rfsm_txn *txn)
{
	const u64 *at = txn->core.at;
	u32 n = txn->core.n;
	int ret;

	if (txn->small)
		rfsm_wrote_small(sbi);
	rfsm_inflight_add(sbi, txn);
	txn->begun = true;
	ret = rfs_txn_begin(sbi->fs, txn->inode->i_ino, txn->block, n,
			    txn->len, txn->mtime, &txn->core);
	txn->core.n = n;	/* also after an error */
	txn->core.at = at;
	return ret;
}

/* Says whether the log has to be written first, which may have to wait for a check-point. */
static bool rfsm_log_first(struct rfs_sb_info *sbi, const struct rfsm_txn *txn)
{
	return rfs_log_pending(sbi->fs, txn->inode->i_ino, true);
}

/* Waits until check-points let the transaction begin. The lock is dropped meanwhile. */
static void rfsm_txn_wait_checkpoint(struct rfs_sb_info *sbi,
				     const struct rfsm_txn *txn)
{
	int ret = -ENOBUFS;

	rfsm_wait_gate(sbi, txn);
	/* The thread may be in writeback, and so wait for this transaction. */
	while (ret == -ENOBUFS && rfsm_checkpoint_overdue(sbi->fs, txn)) {
		/* Check-points alone would use up the room that is left in zones of metadata. */
		ret = rfsm_compact(sbi);
		if (ret != -ENOBUFS)
			rfsm_failed(sbi, ret);
		rfsm_wait_gate(sbi, txn);
	}
}

/*
 * Waits until the transaction may begin. The lock is dropped meanwhile. While this waits for the
 * log, another check-point may have begun.
 */
static void rfsm_txn_wait(struct rfs_sb_info *sbi, const struct rfsm_txn *txn)
{
	do {
		rfsm_txn_wait_checkpoint(sbi, txn);
		/* After an error the transaction does not begin, and says so. */
	} while (rfsm_log_first(sbi, txn) && !rfs_log_sync(sbi->fs));
}

static int rfsm_txn_begin(struct rfs_sb_info *sbi, struct rfsm_txn *txn)
{
	rfsm_txn_wait(sbi, txn);
	return rfsm_txn_begin_now(sbi, txn);
}

/*
 * The blocks at the ends of the transaction are in pieces, and the other blocks are left. The
 * caller holds the volume lock.
 */
static void rfsm_txn_without_ends(struct rfs_sb_info *sbi, struct rfsm_txn *txn,
				  const struct rfsm_ends *ends)
{
	u32 all = txn->core.n + ends->n, i;

	if (ends->head)
		txn->end[txn->ends++] = txn->folio[0];
	if (txn->ends < ends->n)
		txn->end[txn->ends++] = txn->folio[all - 1];
	for (i = 0; i < txn->ends; i++)
		rfsm_unreserve(sbi, txn->inode, txn->end[i],
			       txn->end[i]->index, 1);
	if (ends->head)
		memmove(txn->folio, txn->folio + 1,
			txn->core.n * sizeof(*txn->folio));
}

/*
 * Begins the transaction with its ends as pieces, if they fit. If they do not, it has not begun,
 * and the ends are pages like the others.
 */
static void rfsm_txn_begin_with(struct rfs_sb_info *sbi, struct rfsm_txn *txn,
				const struct rfsm_ends *ends)
{
	u64 block = txn->block + ends->head;
	u32 all = txn->core.n, n = all - ends->n;
	struct rfsm_miss miss = { 0 };
	bool again;
	int ret;

	do {
		rfsm_lock_send(sbi);
		rfsm_txn_wait(sbi, txn);
		rfsm_miss_begin(sbi, &miss);
		/* Records take more memory than pages. */
		ret = !rfsm_memory_kept(sbi, RFSM_MEMORY_OPERATION) ? 0 :
		      rfs_txn_begin_with(sbi->fs, txn->inode->i_ino, block, n,
					 txn->mtime, ends->piece, ends->n,
					 &txn->core);
		again = rfsm_miss_end(sbi, &miss, ret);
		txn->core.n = ret > 0 ? n : all;
		txn->core.at = NULL;
		if (ret > 0) {
			if (txn->small)
				rfsm_wrote_small(sbi);
			rfsm_inflight_add(sbi, txn);
			txn->begun = true;
			txn->block = block;
			rfsm_txn_without_ends(sbi, txn, ends);
		}
		rfsm_unlock(sbi);
		if (again)
			rfsm_miss_read(sbi, &miss);
	} while (again);
}

/*
 * Returns memory for an append, with the lock held. Most transactions begin in the same hold of the
 * lock as their first append. If they have to wait, the memory is given back first, since others
 * may need it to make the wait end.
 */
static struct rfsm_io *rfsm_io_begin(struct rfs_sb_info *sbi,
				     struct rfsm_txn *txn, u32 n,
				     blk_opf_t flags, int *ret)
{
	struct rfsm_io *io = rfsm_io_alloc(sbi, txn, n, flags);

	*ret = 0;
	rfsm_lock_send(sbi);
	if (txn->begun)
		return io;
	if (!rfsm_gate_closed(sbi, txn) &&
	    !rfsm_checkpoint_overdue(sbi->fs, txn) &&
	    !rfsm_log_first(sbi, txn)) {
		*ret = rfsm_txn_begin_now(sbi, txn);
		return io;
	}
	rfsm_unlock(sbi);
	rfsm_io_free(io);
	rfsm_lock_send(sbi);
	*ret = rfsm_txn_begin(sbi, txn);
	rfsm_unlock(sbi);
	io = rfsm_io_alloc(sbi, txn, n, flags);
	rfsm_lock_send(sbi);
	return io;
}

/*
 * Writes a transaction without page metadata, as a whole. A drive without page metadata uses none
 * of the pool's pages for OOBs, so one is taken here. It is waited for without the lock.
 */
static int rfsm_write_listed(struct rfs_sb_info *sbi, struct rfsm_txn *txn)
{
	struct page *oobs = mempool_alloc(&sbi->dev.oob_pages, GFP_NOIO);
	int ret;

	static_assert(RFS_SUM_ENTRIES * sizeof(struct rfs_oob) <= PAGE_SIZE);
	rfsm_lock_send(sbi);
	ret = txn->begun ? 0 : rfsm_txn_begin(sbi, txn);
	if (!ret)
		ret = rfsm_append_listed(sbi, txn, page_address(oobs));
	rfsm_unlock(sbi);
	mempool_free(oobs, &sbi->dev.oob_pages);
	return ret;
}

/* Appends a part of the rest of a transaction; *done grows. */
static int rfsm_append_one(struct rfs_sb_info *sbi, struct rfsm_txn *txn,
			   u32 *done, blk_opf_t flags)
{
	u32 most = min(txn->core.n - *done, sbi->fs->geo.append_max), n = 0, i;
	struct rfsm_miss miss = { 0 };
	struct rfs_oob *oob;
	struct rfsm_io *io;
	int ret;

	if (most > 1 && !txn->copy)	/* one may always be */
		most = min(most, rfsm_pages_at_once(sbi));
	/* More in flight would make nothing faster, and later requests slower. */
	if (!txn->copy && rfsm_too_many_in_flight(sbi, txn))
		wait_event(sbi->gate_wait, rfsm_few_in_flight(sbi, txn));
	io = rfsm_io_begin(sbi, txn, most, flags, &ret);
	oob = io->oob;
	while (!ret) {
		n = most;
		rfsm_miss_begin(sbi, &miss);
		ret = rfsm_fill_oobs(sbi, txn, *done, &n, oob, &io->stream);
		if (!rfsm_miss_end(sbi, &miss, ret))
			break;
		ret = 0;
		rfsm_unlock(sbi);
		rfsm_miss_read(sbi, &miss);
		rfsm_lock_send(sbi);
	}
	most = n;
	if (!ret)
		ret = rfs_place(sbi->fs, io->stream, most, false, &io->place);
	while (ret == -EBUSY) {	/* all free zones are being read */
		rfsm_unlock(sbi);
		schedule_timeout_uninterruptible(1);
		rfsm_lock_send(sbi);
		ret = rfs_place(sbi->fs, io->stream, most, false, &io->place);
	}
	if (!ret) {
		/* The last append ends the transaction. */
		txn->left += io->place.n < txn->core.n - *done;
		if (!txn->copy)
			rfsm_inflight_pages_add(sbi, txn, io->place.n);
		io->ahead = sbi->inflight_pages;
	}
	rfsm_unlock(sbi);
	if (ret) {
		rfsm_io_free(io);
		return ret;
	}
	io->first = *done;
	io->n = io->place.n;
	for (i = 0; i < io->n; i++)
		rfs_oob_seal(&oob[i], page_address(txn->page[io->first + i]));
	*done += io->n;
	rfsm_io_submit(io);
	return 0;
}

/* Sends the rest of a transaction, from done on. ret is the error before, or 0. */
static void rfsm_append_all(struct rfs_sb_info *sbi, struct rfsm_txn *txn,
			    u32 done, blk_opf_t flags, int ret)
{
	u32 n = txn->core.n;
	bool last = done == n;

	/* Once the last append is sent, the transaction may be over. */
	while (!ret && done < n)
		ret = rfsm_append_one(sbi, txn, &done, flags);
	if (!ret && !last)
		return;
	if (ret)
		ret = rfsm_failed(sbi, ret);
	rfsm_lock_send(sbi);
	/* rfsm_append_one() did not send these pages. */
	if (!txn->copy)
		rfsm_txn_unreserve(sbi, txn, last ? 0 : done, n);
	last = rfsm_txn_put(sbi, txn, ret);
	rfsm_unlock(sbi);
	if (last)
		rfsm_txn_end(sbi, txn);
}

void rfsm_append(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		 struct folio **folio, u32 n, u32 len, u32 how)
{
	rfsm_append_then(sbi, inode, block, NULL, folio, n, len, how, NULL,
			 NULL);
}

void rfsm_append_then(struct rfs_sb_info *sbi, struct inode *inode,
		      u64 block, u64 *at, struct folio **folio, u32 n, u32 len,
		      u32 how, const struct rfsm_ends *ends,
		      struct rfsm_then *then)
{
	struct timespec64 mtime = inode_get_mtime(inode);
	bool sync = how & RFSM_APPEND_SYNC;
	struct rfsm_txn *txn = mempool_alloc(&sbi->txns, GFP_NOIO);
	u32 done = 0, i;
	int ret = 0;

	rfsm_set_busy(sbi);
	txn->inode = inode;
	txn->copy = NULL;
	txn->core.n = n;
	txn->core.at = at;
	txn->block = block;
	txn->left = 1;
	txn->small = sync && rfsm_is_small_writer(inode);
	txn->atomic = n > 1 && how & RFSM_APPEND_ATOMIC;
	txn->fill = how & RFSM_APPEND_FILL;
	txn->begun = false;
	txn->len = len;
	txn->mtime = timespec64_to_ns(&mtime);
	txn->error = 0;
	txn->then = then;
	txn->ends = 0;
	memcpy(txn->folio, folio, n * sizeof(*folio));
	if (ends)
		rfsm_txn_begin_with(sbi, txn, ends);
	for (i = 0; i < txn->core.n; i++)
		txn->page[i] = rfsm_stable_page(txn->folio[i],
						rfsm_txn_block(txn, i));
	if (!sbi->fs->geo.oob_bytes) {
		ret = rfsm_write_listed(sbi, txn);
		done = txn->core.n;
	}
	rfsm_append_all(sbi, txn, done, sync ? REQ_SYNC : 0, ret);
	/* else rfsm_completions_work() does when it has completed */
	if (done || ends)
		rfsm_kick(sbi);
}

void rfsm_append_fill(struct rfs_sb_info *sbi, struct inode *inode, u64 block,
		      struct folio *folio)
{
	rfsm_append_then(sbi, inode, block, NULL, &folio, 1, RFS_BLOCK_BYTES,
			 RFSM_APPEND_FILL, NULL, NULL);
}

/* Returns how many copies may be in flight. It looks without the lock. */
static u32 rfsm_copies_most(const struct rfs_sb_info *sbi)
{
	return rfsm_favour_small(sbi, FAVOUR_FOR) ? COPIES_FAVOUR : RFS_COPIES;
}

int rfsm_copy_write(void *dev, struct rfs_copy *copy)
{
	struct rfs_sb_info *sbi = container_of(dev, struct rfs_sb_info, dev);
	struct rfsm_copy *host = &sbi->dev.copies[copy->nr];
	struct rfsm_txn *txn;
	u32 i;
	int ret;

	rfsm_unlock(sbi);
	txn = mempool_alloc(&sbi->txns, GFP_NOIO);
	txn->copy = copy;
	txn->fill = false;
	txn->small = false;
	txn->begun = true;
	txn->then = NULL;
	reinit_completion(&host->written);
	wait_event(sbi->gate_wait, READ_ONCE(sbi->inflight_copies) <
		   rfsm_copies_most(sbi));
	rfsm_lock_send(sbi);
	/*
	 * This looks up each block of the copy again. While it waits for memory, the gate may
	 * close.
	 */
	do {
		rfsm_wait_memory(sbi, copy->n);
		rfsm_wait_gate(sbi, txn);
	} while (!rfsm_memory_for_pages(sbi, copy->n));
	ret = rfs_copy_begin(sbi->fs, copy);
	if (ret) {
		mempool_free(txn, &sbi->txns);
		return ret;
	}
	rfsm_inflight_add(sbi, txn);
	rfsm_unlock(sbi);
	txn->left = 1;
	txn->error = 0;
	txn->core.n = copy->n;
	for (i = 0; i < copy->n; i++)
		txn->page[i] = rfsm_page_of(copy->block[i]);
	rfsm_append_all(sbi, txn, 0, 0, 0);
	rfsm_lock_send(sbi);
	return 0;
}

int rfsm_append_init(struct rfs_sb_info *sbi)
{
	int ret, cpu;

	sbi->pages_most = PAGES_FIRST;
	init_llist_head(&sbi->later);
	sbi->completions = alloc_percpu(struct rfsm_completions);
	if (!sbi->completions)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct rfsm_completions *completions =
			per_cpu_ptr(sbi->completions, cpu);

		completions->sbi = sbi;
		init_llist_head(&completions->done);
		INIT_WORK(&completions->work, rfsm_completions_work);
	}
	INIT_DELAYED_WORK(&sbi->retry, rfsm_io_retry);
	INIT_WORK(&sbi->sums_work, rfsm_sums_work);
	init_llist_head(&sbi->lacking);
	INIT_WORK(&sbi->lacking_work, rfsm_lacking_work);
	sbi->memory.filled = rfsm_memory_filled;
	ret = mempool_init_slab_pool(&sbi->runs, RUNS, io_cache);
	if (!ret)
		ret = mempool_init_slab_pool(&sbi->txns, 4, txn_cache);
	if (!ret)
		ret = mempool_init_kmalloc_pool(&sbi->batches, 4,
						sizeof(struct rfsm_batch));
	if (!ret)
		ret = mempool_init_slab_pool(&sbi->sum_runs, SUMS, io_cache);
	if (!ret)
		ret = mempool_init_page_pool(&sbi->sum_pages, 2 * SUMS, 0);
	if (!ret)
		ret = rfsm_bioset_init(&sbi->sum_bios, SUMS, 0);
	if (ret)
		return ret;
	sbi->queue = alloc_workqueue("rfs/%pg", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0,
				     sbi->sb->s_bdev);
	return sbi->queue ? 0 : -ENOMEM;
}

void rfsm_append_exit(struct rfs_sb_info *sbi)
{
	if (sbi->queue) {
		/* Nobody may have waited for the last summaries. */
		wait_event(sbi->gate_wait, !READ_ONCE(sbi->inflight));
		rfsm_reset_stop(sbi);
		cancel_delayed_work_sync(&sbi->retry);
		rfsm_memory_stop(sbi);
		/* After this rfsm_io_endio() does not use the queue any more. */
		synchronize_rcu();
		destroy_workqueue(sbi->queue);
		sbi->queue = NULL;
	}
	free_percpu(sbi->completions);
	sbi->completions = NULL;
	bioset_exit(&sbi->sum_bios);
	mempool_exit(&sbi->sum_pages);
	mempool_exit(&sbi->sum_runs);
	mempool_exit(&sbi->batches);
	mempool_exit(&sbi->txns);
	mempool_exit(&sbi->runs);
}

int __init rfsm_append_module_init(void)
{
	io_cache = kmem_cache_create("rfs_run", sizeof(struct rfsm_io), 0, 0,
				     NULL);
	txn_cache = kmem_cache_create("rfs_txn", sizeof(struct rfsm_txn), 0, 0,
				      NULL);
	if (io_cache && txn_cache)
		return 0;
	rfsm_append_module_exit();
	return -ENOMEM;
}

void rfsm_append_module_exit(void)
{
	kmem_cache_destroy(txn_cache);
	kmem_cache_destroy(io_cache);
}
