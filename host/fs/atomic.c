// SPDX-License-Identifier: GPL-2.0
/*
 * Bytes of an atomic write are seen after a power cut together or not at all, since their blocks
 * are one transaction. Writeback would gather these with others, or apart, so they are sent from
 * here.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "rfsm.h"
#include "error.h"
#include "flush.h"
#include "wake.h"
#include "blocks.h"
#include "reserve.h"
#include "append.h"
#include "pages.h"

static_assert((RFS_TXN_MAX - 1) * PAGE_SIZE == RFSM_ATOMIC_MAX);

/* These blocks of a file are to be written, in ascending order. */
struct rfsm_atomic {
	struct inode *inode;
	const struct rfsm_span *span;
	u32 n;
	u32 locked;		/* of the folios, from the first on */
	struct folio **data;	/* what is written, where nobody else sees it */
	struct folio **folio;	/* of the page cache: the same where it had none */
	u64 *at;		/* room for the blocks' numbers, until it is sent */
	bool others;		/* at the ends, other bytes are new, too */
};

bool rfsm_whole_blocks(loff_t pos, size_t bytes)
{
	return bytes && bytes <= RFSM_ATOMIC_MAX &&
	       IS_ALIGNED(pos | bytes, PAGE_SIZE);
}

/* Returns the bytes of the i-th block that are new. */
static struct rfsm_bytes rfsm_span_bytes(const struct rfsm_span *span, u32 i)
{
	struct rfsm_bytes bytes = { .to = PAGE_SIZE };

	if (!i)
		bytes.from = span->from;
	if (i + 1 == span->n)
		bytes.to = span->to;
	return bytes;
}

/*
 * Says whether the block has other bytes that are not in memory. They were read, and have gone
 * since.
 */
static bool rfsm_atomic_lacks(const struct rfsm_atomic *a, u32 i)
{
	struct rfsm_bytes bytes = rfsm_span_bytes(a->span, i);
	struct folio *folio = a->folio[i];

	return (bytes.from || bytes.to < PAGE_SIZE) &&
	       !folio_test_uptodate(folio) &&
	       folio_pos(folio) < i_size_read(a->inode);
}

/*
 * Copies the bytes that are to be written. This happens before a folio is locked, as the bytes may
 * be in the file's own memory.
 */
static int rfsm_atomic_fill(struct rfsm_atomic *a, rfsm_fill_t *fill, void *arg)
{
	gfp_t gfp = mapping_gfp_mask(a->inode->i_mapping);
	int ret = 0;
	u32 i;

	for (i = 0; !ret && i < a->n; i++) {
		a->data[i] = filemap_alloc_folio(gfp, 0);
		ret = a->data[i] ? fill(a->data[i], i, arg) : -ENOMEM;
	}
	return ret;
}

/* Returns a locked folio of the page cache. If there is none, data becomes it. */
static struct folio *rfsm_atomic_folio(struct address_space *mapping,
				       struct folio *data)
{
	/* Reclaim of memory must not wait for a task that waits for our folios. */
	gfp_t gfp = mapping_gfp_constraint(mapping, ~__GFP_FS) | __GFP_WRITE;
	pgoff_t index = data->index;
	struct folio *folio;
	int ret;

	do {
		folio = __filemap_get_folio(mapping, index, FGP_LOCK, 0);
		if (!IS_ERR(folio)) {
			if (rfsm_single(mapping->host, folio))
				return folio;
			ret = -EEXIST;	/* or was, just now */
			continue;
		}
		ret = filemap_add_folio(mapping, data, index, gfp);
	} while (ret == -EEXIST);
	if (ret)
		return ERR_PTR(ret);
	folio_get(data);
	return data;
}

/*
 * Locks all folios and reserves a place for each. They are locked in the order of writeback, which
 * keeps folios under writeback that it has not sent yet. So a folio that this waits for has a
 * higher index than all folios that it has locked.
 */
static int rfsm_atomic_lock(struct rfsm_atomic *a, enum rfsm_waited waited)
{
	struct inode *inode = a->inode;
	struct folio *folio;
	int ret;

	while (a->locked < a->n) {
		folio = rfsm_atomic_folio(inode->i_mapping,
					  a->data[a->locked]);
		if (IS_ERR(folio))
			return PTR_ERR(folio);
		a->folio[a->locked++] = folio;
		if (rfsm_atomic_lacks(a, a->locked - 1))
			return -ESTALE;
		folio_wait_writeback(folio);
		if (a->locked == 1 || a->locked == a->n)
			a->others |= folio_test_dirty(folio) ||
				     folio_maybe_dma_pinned(folio);
		ret = rfsm_reserve(RFS_SB(inode->i_sb), inode, folio,
				   folio->index, 1, 1, waited);
		if (ret)
			return ret;
	}
	return 0;
}

/* Nothing was written, so the page cache becomes what it was. */
static void rfsm_atomic_undo(struct rfsm_atomic *a)
{
	u32 i;

	for (i = 0; i < a->locked; i++) {
		rfsm_folio_unreserve(a->inode, a->folio[i]);
		folio_unlock(a->folio[i]);
	}
}

/*
 * Returns the numbers of the blocks; the end of the write frees them. NULL says that they follow
 * each other.
 */
static u64 *rfsm_atomic_indices(struct rfsm_atomic *a)
{
	u64 *at = a->at;
	u32 i;

	if (a->folio[a->n - 1]->index == a->folio[0]->index + a->n - 1)
		return NULL;
	for (i = 0; i < a->n; i++)
		at[i] = a->folio[i]->index;
	a->at = NULL;
	return at;
}

static void rfsm_add_end(const struct rfsm_atomic *a, u32 i,
			 struct rfsm_ends *ends)
{
	struct rfsm_bytes new = rfsm_span_bytes(a->span, i);

	if (!new.from && new.to == PAGE_SIZE)
		return;
	ends->piece[ends->n++] = (struct rfs_bytes){
		.off = folio_pos(a->folio[i]) + new.from,
		.len = new.to - new.from,
		.at = folio_address(a->folio[i]) + new.from,
	};
}

/*
 * Says whether the ends should be pieces. Between them there may be pages if the log is written
 * anyway: the next page of the file waits for that.
 */
static bool rfsm_find_ends(const struct rfsm_atomic *a, struct rfsm_ends *ends)
{
	rfsm_add_end(a, 0, ends);
	ends->head = ends->n;
	if (a->n > 1)
		rfsm_add_end(a, a->n - 1, ends);
	return ends->n && !a->others && (a->span->sync || ends->n == a->n) &&
	       rfsm_ends_save(a->inode, ends, a->span->sync);
}

/* Gives the new content to the folios, and sends them to the drive as one transaction. */
static void rfsm_atomic_send(struct rfsm_atomic *a, struct rfsm_then *then)
{
	loff_t end = folio_pos(a->folio[a->n - 1]) + a->span->len;
	struct rfsm_ends ends = { .n = 0 };
	struct inode *inode = a->inode;
	u32 i;

	for (i = 0; i < a->n; i++) {
		struct rfsm_bytes new = rfsm_span_bytes(a->span, i);
		struct folio *folio = a->folio[i];

		if (!folio_test_uptodate(folio))
			new = (struct rfsm_bytes){ .to = PAGE_SIZE };
		if (folio != a->data[i])
			memcpy(folio_address(folio) + new.from,
			       folio_address(a->data[i]) + new.from,
			       new.to - new.from);
		folio_mark_uptodate(folio);
		folio_mark_dirty(folio);
	}
	if (end > i_size_read(inode))
		i_size_write(inode, end);
	for (i = 0; i < a->n; i++) {
		/* Nobody writes through a mapping any more. */
		folio_clear_dirty_for_io(a->folio[i]);
		/* All of its bytes are sent. */
		folio_clear_checked(a->folio[i]);
		folio_start_writeback(a->folio[i]);
		folio_unlock(a->folio[i]);
	}
	rfsm_append_then(RFS_SB(inode->i_sb), inode, a->folio[0]->index,
			 rfsm_atomic_indices(a), a->folio, a->n, a->span->len,
			 RFSM_APPEND_ATOMIC |
			 (a->span->sync ? RFSM_APPEND_SYNC : 0),
			 rfsm_find_ends(a, &ends) ? &ends : NULL, then);
}

static void rfsm_atomic_put(struct rfsm_atomic *a)
{
	u32 i;

	for (i = 0; i < a->n && a->data[i]; i++)
		folio_put(a->data[i]);
	for (i = 0; i < a->locked; i++)
		folio_put(a->folio[i]);
}

/*
 * Tries once. -EAGAIN says that there has to be room first, and that all is to be done again;
 * *locked says how many blocks had room. -ESTALE says that the old bytes beside the new ones have
 * to be read again.
 */
static int rfsm_atomic_try(struct inode *inode, const struct rfsm_span *span,
			   rfsm_fill_t *fill, void *arg,
			   struct rfsm_then *then, enum rfsm_waited waited,
			   u32 *locked)
{
	struct rfsm_atomic a = {
		.inode = inode,
		.span = span,
		.n = span->n,
		.data = kcalloc(2 * span->n, sizeof(*a.data), GFP_KERNEL),
		.at = kmalloc_array(span->n, sizeof(*a.at), GFP_KERNEL),
	};
	int ret = -ENOMEM;

	if (!a.data || !a.at)
		goto out;
	a.folio = a.data + a.n;
	ret = rfsm_atomic_fill(&a, fill, arg);
	if (!ret)
		ret = rfsm_atomic_lock(&a, waited);
	/* Beside the new bytes there may be bytes of atomic writes, which have completed now. */
	if (!ret && (span->from || span->to < PAGE_SIZE))
		ret = rfsm_settle(inode);
	if (ret)
		rfsm_atomic_undo(&a);
	else
		rfsm_atomic_send(&a, then);
	rfsm_atomic_put(&a);
	*locked = a.locked;
out:
	kfree(a.at);
	kfree(a.data);
	return ret;
}

#define ROUNDS	16	/* of making room, after which no try got further than before */

/*
 * Blocks that are far apart need as many index nodes, all of which are dirty at once. A small
 * volume may never allow that, though each wait for room succeeds. So the tries are counted.
 */
int rfsm_atomic_blocks(struct inode *inode, const struct rfsm_span *span,
		       rfsm_fill_t *fill, void *arg, struct rfsm_then *then)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	enum rfsm_waited waited = RFSM_NOT_YET;
	u32 locked = 0, best = 0, vain = 0;
	int ret;

	while ((ret = rfsm_atomic_try(inode, span, fill, arg, then, waited,
				      &locked)) == -EAGAIN) {
		vain = locked > best ? 0 : vain + 1;
		best = max(best, locked);
		ret = rfsm_wait_room_for(sbi, span->n,
					 rfsm_is_small_writer(inode));
		if (ret < 0)
			return ret;
		waited = ret || vain >= ROUNDS ? RFSM_NO_SPACE : RFSM_WAITED;
	}
	if (ret)
		return rfsm_failed(sbi, ret);
	atomic64_inc(&sbi->atomic_writes);
	return 0;
}

/* These are the bytes of a write call. */
struct rfsm_call {
	struct kiocb *iocb;
	struct iov_iter *from;
	size_t bytes;
};

static int rfsm_fill_from_call(struct folio *folio, u32 i, void *arg)
{
	struct rfsm_call *call = arg;
	size_t from, n;

	if (!i)		/* it may not be the first time */
		iov_iter_revert(call->from,
				call->bytes - iov_iter_count(call->from));
	from = i ? 0 : offset_in_page(call->iocb->ki_pos);
	n = min(iov_iter_count(call->from), PAGE_SIZE - from);
	folio->index = (call->iocb->ki_pos >> PAGE_SHIFT) + i;
	folio_zero_segments(folio, 0, from, from + n, PAGE_SIZE);
	return copy_folio_from_iter(folio, from, n, call->from) == n ? 0 :
	       -EFAULT;
}

/* A part of this block stays as it is, so the block is read into the page cache. */
static int rfsm_read_beside(struct kiocb *iocb, loff_t pos)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	struct folio *folio;

	if (round_down(pos, PAGE_SIZE) >= i_size_read(inode))
		return 0;
	folio = read_mapping_folio(inode->i_mapping, pos >> PAGE_SHIFT,
				   iocb->ki_filp);
	if (IS_ERR(folio))
		return PTR_ERR(folio);
	folio_put(folio);
	return 0;
}

/* Reads the old bytes of the blocks at the ends, which stay beside the new ones. */
static int rfsm_read_ends(struct kiocb *iocb, loff_t end)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	loff_t size = i_size_read(inode);
	int ret = end > size ? rfsm_zero_after_end(inode, size) : 0;

	if (!ret && !PAGE_ALIGNED(iocb->ki_pos))
		ret = rfsm_read_beside(iocb, iocb->ki_pos);
	if (!ret && !PAGE_ALIGNED(end))
		ret = rfsm_read_beside(iocb, end - 1);
	return ret;
}

ssize_t rfsm_atomic_write(struct kiocb *iocb, struct iov_iter *from,
			  struct rfsm_then *then)
{
	struct rfsm_call call = {
		.iocb = iocb,
		.from = from,
		.bytes = iov_iter_count(from),
	};
	struct inode *inode = file_inode(iocb->ki_filp);
	loff_t end = iocb->ki_pos + call.bytes;
	loff_t last = round_down(end - 1, PAGE_SIZE);
	struct rfsm_span span = {
		.n = (last >> PAGE_SHIFT) - (iocb->ki_pos >> PAGE_SHIFT) + 1,
		.from = offset_in_page(iocb->ki_pos),
		.to = end - last,
		.len = min_t(loff_t, PAGE_SIZE,
			     max(end, i_size_read(inode)) - last),
		.sync = iocb->ki_flags & (IOCB_DIRECT | IOCB_DSYNC),
	};
	int ret;

	do {
		ret = rfsm_whole_blocks(iocb->ki_pos, call.bytes) ? 0 :
		      rfsm_read_ends(iocb, end);
		if (!ret)
			ret = rfsm_atomic_blocks(inode, &span,
						 rfsm_fill_from_call, &call,
						 then);
	} while (ret == -ESTALE);
	if (ret) {
		iov_iter_revert(from, call.bytes - iov_iter_count(from));
		return ret;
	}
	if (then)	/* which may have been called */
		return -EIOCBQUEUED;
	iocb->ki_pos += call.bytes;
	return call.bytes;
}
