// SPDX-License-Identifier: GPL-2.0
/*
 * The blocks of a folio of several pages that is written to. The private value of such
 * a folio says of each block whether its content is there, whether it is dirty, what is
 * reserved for it, and whether it is on its way to the drive.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "rfsm.h"

static_assert(RFSM_LARGEST <= 5);	/* a bit of a u32 for each block */

static u32 rfsm_all(const struct folio *folio)
{
	return rfsm_blocks_mask(folio, folio->index, folio_nr_pages(folio));
}

/* The blocks that have some of these bytes of a file; the folio has all of them. */
static u32 rfsm_touched(const struct folio *folio, loff_t pos, size_t len)
{
	u64 block = pos >> PAGE_SHIFT;

	return rfsm_blocks_mask(folio, block,
				((pos + len - 1) >> PAGE_SHIFT) - block + 1);
}

int rfsm_blocks_attach(struct folio *folio)
{
	struct rfsm_blocks *b;

	if (!folio_test_large(folio) || folio_test_private(folio))
		return 0;
	b = kzalloc(sizeof(*b), GFP_NOFS);
	if (!b)
		return -ENOMEM;
	if (folio_test_uptodate(folio))
		b->filled = rfsm_all(folio);
	folio_attach_private(folio, b);
	return 0;
}

void rfsm_blocks_detach(struct folio *folio)
{
	kfree(folio_detach_private(folio));
}

void rfsm_blocks_begin(struct folio *folio, loff_t pos, size_t len)
{
	u32 filled = rfsm_blocks_in(folio)->filled;
	size_t from = offset_in_folio(folio, pos), to = from + len;

	if (!(filled & BIT(from >> PAGE_SHIFT)))
		folio_zero_segment(folio, round_down(from, PAGE_SIZE), from);
	if (!(filled & BIT((to - 1) >> PAGE_SHIFT)))
		folio_zero_segment(folio, to, round_up(to, PAGE_SIZE));
}

size_t rfsm_blocks_end(struct folio *folio, loff_t pos, size_t len,
		       size_t copied)
{
	struct rfsm_blocks *b = rfsm_blocks_in(folio);
	u32 mask = rfsm_touched(folio, pos, len);

	/* what was not copied over is not there yet: all again */
	if (!copied || (copied < len && mask & ~b->filled))
		return 0;
	if (copied < len)
		mask = rfsm_touched(folio, pos, copied);
	b->dirty |= mask;
	b->filled |= mask;
	if (!folio_test_uptodate(folio) && b->filled == rfsm_all(folio))
		folio_mark_uptodate(folio);
	return copied;
}

void rfsm_blocks_fill(struct folio *folio)
{
	struct rfsm_blocks *b = rfsm_blocks_in(folio);
	u32 i, n = folio_nr_pages(folio);

	for (i = 0; i < n; i++)
		if (!(b->filled & BIT(i)))
			folio_zero_segment(folio, i * PAGE_SIZE,
					   (i + 1) * PAGE_SIZE);
	b->filled = rfsm_all(folio);
}

void rfsm_blocks_wait(struct folio *folio, loff_t pos, size_t len)
{
	struct rfsm_blocks *b = rfsm_blocks_in(folio);

	if ((u32)atomic_read_acquire(&b->sent) & rfsm_touched(folio, pos, len))
		folio_wait_writeback(folio);
}

u32 rfsm_blocks_send(struct folio *folio, loff_t size)
{
	u32 n = min_t(u64, folio_nr_pages(folio),
		      DIV_ROUND_UP_ULL(size - folio_pos(folio), PAGE_SIZE));
	struct rfsm_blocks *b = rfsm_blocks_in(folio);
	/* a truncate will drop the others */
	u32 sent = b->dirty & rfsm_blocks_mask(folio, folio->index, n);

	b->dirty = 0;
	if (!sent)
		return 0;
	if (size < folio_pos(folio) + folio_size(folio) &&
	    sent & BIT(n - 1))
		folio_zero_segment(folio, size - folio_pos(folio),
				   n * PAGE_SIZE);
	atomic_set(&b->sent, sent);
	folio_start_writeback(folio);
	return sent;
}

void rfsm_blocks_sent(struct folio *folio, u64 block, u32 n)
{
	u32 mask;

	if (folio_test_large(folio)) {
		mask = rfsm_blocks_mask(folio, block, n);
		if ((u32)atomic_fetch_andnot(mask,
					     &rfsm_blocks_in(folio)->sent) & ~mask)
			return;	/* once there are none, it may be gone */
	}
	folio_end_writeback(folio);
}

void rfsm_blocks_drop(struct folio *folio, u64 block, u32 n)
{
	rfsm_blocks_in(folio)->dirty &= ~rfsm_blocks_mask(folio, block, n);
}

u32 rfsm_blocks_clean(const struct folio *folio)
{
	const struct rfsm_blocks *b = rfsm_blocks_in(folio);

	return rfsm_all(folio) & ~(b->dirty | atomic_read(&b->sent));
}
