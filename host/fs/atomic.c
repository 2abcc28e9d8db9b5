// SPDX-License-Identifier: GPL-2.0
/*
 * Atomic writes: whole blocks that are seen after a power cut together or not at
 * all, since they are one transaction. Writeback would gather them with others, or
 * apart, so they are sent from here.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "rfsm.h"

static_assert((RFS_TXN_MAX - 1) * PAGE_SIZE == RFSM_ATOMIC_MAX);

/* Blocks of a file that are to be written, in ascending order */
struct rfsm_atomic {
	struct inode *inode;
	u32 n;
	u32 locked;		/* of the folios, from the first on */
	u32 len;		/* valid bytes of the last */
	struct folio **data;	/* what is written, where nobody else sees it */
	struct folio **folio;	/* of the page cache: the same where it had none */
	u64 *at;		/* room for the blocks' numbers, until it is sent */
};

bool rfsm_whole_blocks(loff_t pos, size_t bytes)
{
	return bytes && bytes <= RFSM_ATOMIC_MAX &&
	       IS_ALIGNED(pos | bytes, PAGE_SIZE);
}

/* What is written: before a folio is locked, as it may lie in the file's own memory. */
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

/* A locked folio of the page cache; data becomes it if there is none. */
static struct folio *rfsm_atomic_folio(struct address_space *mapping,
				       struct folio *data)
{
	/* who reclaims memory is not to wait for what waits for our folios */
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
 * All folios are locked, and have a place each. In the order in which writeback
 * locks them, which keeps folios under writeback that it has not sent yet: what is
 * waited for here is before all that is locked here.
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
		folio_wait_writeback(folio);
		ret = rfsm_reserve(RFS_SB(inode->i_sb), inode, folio,
				   folio->index, 1, 1, waited);
		if (ret)
			return ret;
	}
	return 0;
}

/* What was not written: the page cache is as before. */
static void rfsm_atomic_undo(struct rfsm_atomic *a)
{
	u32 i;

	for (i = 0; i < a->locked; i++) {
		rfsm_folio_unreserve(a->inode, a->folio[i]);
		folio_unlock(a->folio[i]);
	}
}

/* The blocks, to be freed by who has written them; NULL: they follow each other. */
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

/* The folios have what is written, and go to the drive as one. */
static void rfsm_atomic_send(struct rfsm_atomic *a, bool sync,
			     struct rfsm_then *then)
{
	loff_t end = folio_pos(a->folio[a->n - 1]) + a->len;
	struct inode *inode = a->inode;
	u32 i;

	for (i = 0; i < a->n; i++) {
		struct folio *folio = a->folio[i];

		if (folio != a->data[i])
			copy_page(folio_address(folio),
				  folio_address(a->data[i]));
		folio_mark_uptodate(folio);
		folio_mark_dirty(folio);
	}
	if (end > i_size_read(inode))
		i_size_write(inode, end);
	for (i = 0; i < a->n; i++) {
		/* nobody writes through a mapping any more */
		folio_clear_dirty_for_io(a->folio[i]);
		/* all of its bytes are new, and go */
		folio_clear_checked(a->folio[i]);
		folio_start_writeback(a->folio[i]);
		folio_unlock(a->folio[i]);
	}
	rfsm_append_then(RFS_SB(inode->i_sb), inode, a->folio[0]->index,
			 rfsm_atomic_indices(a), a->folio, a->n, a->len,
			 RFSM_APPEND_ATOMIC | (sync ? RFSM_APPEND_SYNC : 0),
			 then);
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
 * -EAGAIN: there has to be room first, and then all is to be done again. *locked:
 * for so many of them there was.
 */
static int rfsm_atomic_try(struct inode *inode, u32 n, u32 len, bool sync,
			   rfsm_fill_t *fill, void *arg,
			   struct rfsm_then *then, enum rfsm_waited waited,
			   u32 *locked)
{
	struct rfsm_atomic a = {
		.inode = inode,
		.n = n,
		.len = len,
		.data = kcalloc(2 * n, sizeof(*a.data), GFP_KERNEL),
		.at = kmalloc_array(n, sizeof(*a.at), GFP_KERNEL),
	};
	int ret = -ENOMEM;

	if (!a.data || !a.at)
		goto out;
	a.folio = a.data + n;
	ret = rfsm_atomic_fill(&a, fill, arg);
	if (!ret)
		ret = rfsm_atomic_lock(&a, waited);
	if (ret)
		rfsm_atomic_undo(&a);
	else
		rfsm_atomic_send(&a, sync, then);
	rfsm_atomic_put(&a);
	*locked = a.locked;
out:
	kfree(a.at);
	kfree(a.data);
	return ret;
}

#define ROUNDS	16	/* of making room, after which no try got further than before */

/*
 * Blocks that are far apart need as many index nodes that are dirty at once, which a
 * small volume may never allow, though there is room whenever it is waited for.
 */
int rfsm_atomic_blocks(struct inode *inode, u32 n, u32 len, bool sync,
		       rfsm_fill_t *fill, void *arg, struct rfsm_then *then)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	enum rfsm_waited waited = RFSM_NOT_YET;
	u32 locked = 0, best = 0, vain = 0;
	int ret;

	while ((ret = rfsm_atomic_try(inode, n, len, sync, fill, arg, then,
				      waited, &locked)) == -EAGAIN) {
		vain = locked > best ? 0 : vain + 1;
		best = max(best, locked);
		ret = rfsm_wait_room_for(sbi, n, rfsm_is_small_writer(inode));
		if (ret < 0)
			return ret;
		waited = ret || vain >= ROUNDS ? RFSM_NO_SPACE : RFSM_WAITED;
	}
	if (ret)
		return rfsm_failed(sbi, ret);
	atomic64_inc(&sbi->atomic_writes);
	return 0;
}

/* The bytes of a call */
struct rfsm_call {
	struct iov_iter *from;
	size_t bytes;
	pgoff_t first;
};

static int rfsm_fill_from_call(struct folio *folio, u32 i, void *arg)
{
	struct rfsm_call *call = arg;

	if (!i)		/* it may not be the first time */
		iov_iter_revert(call->from,
				call->bytes - iov_iter_count(call->from));
	folio->index = call->first + i;
	return copy_folio_from_iter(folio, 0, PAGE_SIZE, call->from) ==
	       PAGE_SIZE ? 0 : -EFAULT;
}

ssize_t rfsm_atomic_write(struct kiocb *iocb, struct iov_iter *from,
			  struct rfsm_then *then)
{
	bool sync = iocb->ki_flags & (IOCB_DIRECT | IOCB_DSYNC);
	struct rfsm_call call = {
		.from = from,
		.bytes = iov_iter_count(from),
		.first = iocb->ki_pos >> PAGE_SHIFT,
	};
	int ret = rfsm_atomic_blocks(file_inode(iocb->ki_filp),
				     call.bytes >> PAGE_SHIFT, PAGE_SIZE, sync,
				     rfsm_fill_from_call, &call, then);

	if (ret) {
		iov_iter_revert(from, call.bytes - iov_iter_count(from));
		return ret;
	}
	if (then)	/* which may have been called */
		return -EIOCBQUEUED;
	iocb->ki_pos += call.bytes;
	return call.bytes;
}
