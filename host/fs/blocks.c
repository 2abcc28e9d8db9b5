// SPDX-License-Identifier: GPL-2.0
/*
 * These are the blocks of a folio of several pages that is written to. The private value of such a
 * folio says several things of each block: whether its content is there, whether it is dirty, and
 * if so in which bytes, whether it is reserved, and whether it is in flight.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "blocks.h"

static_assert(RFSM_LARGEST <= 5);	/* a bit of a u32 for each block */

static u32 rfsm_all(const struct folio *folio)
{
	return rfsm_blocks_mask(folio, folio->index, folio_nr_pages(folio));
}

/* Returns the blocks that have some of these bytes of a file. All of them are in the folio. */
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
	struct rfsm_blocks *b = folio_detach_private(folio);

	if (b)
		kfree(b->bytes);
	kfree(b);
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

/*
 * Notes that the bytes from..to - 1 of the i-th block are new, beside those that were new before.
 * Returns the block's bit if it has other bytes. Without memory for the note, all bytes count as
 * new.
 */
static u32 rfsm_add_bytes(struct rfsm_blocks *b, u32 i, u32 from, u32 to)
{
	if (b->partly & BIT(i)) {
		from = min_t(u32, from, b->bytes[i].from);
		to = max_t(u32, to, b->bytes[i].to);
	} else if (b->dirty & BIT(i)) {
		return 0;
	}
	if (!from && to == PAGE_SIZE)
		return 0;
	if (!b->bytes)
		b->bytes = kmalloc_array(BIT(RFSM_LARGEST), sizeof(*b->bytes),
					 GFP_NOFS | __GFP_NOWARN);
	if (!b->bytes)
		return 0;
	b->bytes[i].from = from;
	b->bytes[i].to = to;
	return BIT(i);
}

/*
 * Notes that these bytes of the folio are new. Returns the bits of the blocks of which only a part
 * is new, and was not new before. It is not inlined, so that a write of whole blocks does not pay
 * for it.
 */
static noinline u32 rfsm_add_parts(struct folio *folio, loff_t pos, size_t len)
{
	size_t from = offset_in_folio(folio, pos), to = from + len;
	u32 first = from >> PAGE_SHIFT, last = (to - 1) >> PAGE_SHIFT;
	struct rfsm_blocks *b = rfsm_blocks_in(folio);
	size_t at = (size_t)last << PAGE_SHIFT;

	if (!READ_ONCE(RFS_SB(folio->mapping->host->i_sb)->fs->compact))
		return 0;
	if (first == last)
		return rfsm_add_bytes(b, first, from - at, to - at);
	return rfsm_add_bytes(b, first, from & ~PAGE_MASK, PAGE_SIZE) |
	       rfsm_add_bytes(b, last, 0, to - at);
}

size_t rfsm_blocks_end(struct folio *folio, loff_t pos, size_t len,
		       size_t copied)
{
	struct rfsm_blocks *b = rfsm_blocks_in(folio);
	u32 mask = rfsm_touched(folio, pos, len), partly = 0;

	/* A block that was not copied as a whole has no content yet, so the caller begins again. */
	if (!copied || (copied < len && mask & ~b->filled))
		return 0;
	if (copied < len)
		mask = rfsm_touched(folio, pos, copied);
	if (!PAGE_ALIGNED(pos | copied))
		partly = rfsm_add_parts(folio, pos, copied);
	b->partly = (b->partly & ~mask) | partly;
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

u32 rfsm_blocks_send(struct folio *folio, loff_t size, u32 *partly)
{
	u32 n = min_t(u64, folio_nr_pages(folio),
		      DIV_ROUND_UP_ULL(size - folio_pos(folio), PAGE_SIZE));
	struct rfsm_blocks *b = rfsm_blocks_in(folio);
	/* A truncate will drop the others. */
	u32 sent = b->dirty & rfsm_blocks_mask(folio, folio->index, n);

	*partly = sent & b->partly;
	b->dirty = 0;
	b->partly = 0;
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

/* Whoever changes a block waits until it is sent, so these stay as they are. */
const struct rfsm_bytes *rfsm_blocks_bytes(const struct folio *folio, u64 block)
{
	return &rfsm_blocks_in(folio)->bytes[block - folio->index];
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
	struct rfsm_blocks *b = rfsm_blocks_in(folio);
	u32 mask = rfsm_blocks_mask(folio, block, n);

	b->dirty &= ~mask;
	b->partly &= ~mask;
}

u32 rfsm_blocks_clean(const struct folio *folio)
{
	const struct rfsm_blocks *b = rfsm_blocks_in(folio);

	return rfsm_all(folio) & ~(b->dirty | atomic_read(&b->sent));
}
