// SPDX-License-Identifier: GPL-2.0
/*
 * These functions keep the reservation of a dirty block in the private value of its folio. If the
 * folio has one page, the value is as below, and also says which bytes are new. Otherwise it is as
 * in blocks.c. The reservation ends when the block is written or dropped.
 */
#include <linux/pagemap.h>

#include "rfsm.h"
#include "wake.h"
#include "blocks.h"
#include "reserve.h"
#include "tree/tree.h"

#define RSV_PLACE		1UL	/* a place */
#define RSV_HOLE		2UL	/* and that it was a hole */
#define RSV_FROM		2	/* bits above: the first byte that is new */
#define RSV_TO			14	/* and the one after the last; 0: not known */

/*
 * Returns the number of blocks that are withheld from a large writer: he has dirtied many pages of
 * a file since room was made last, and many of them are not written. He leaves the last zones to
 * small writers, until he has waited for more.
 */
static u32 rfsm_withheld_from(struct rfs_sb_info *sbi,
			      struct rfs_inode_info *ri)
{
	u64 round = READ_ONCE(sbi->rounds);

	if (ri->round != round) {
		ri->round = round;
		ri->taken = 0;
	}
	return ri->taken < RFSM_SMALL_PAGES || ri->rsv_pages <=
		RFSM_SMALL_PAGES ?
	       0 : rfsm_withheld(sbi);
}

bool rfsm_is_reserved(const struct folio *folio, u64 block)
{
	if (!folio_test_private(folio))
		return false;
	return !folio_test_large(folio) ||
	       READ_ONCE(rfsm_blocks_in(folio)->reserved) &
	       rfsm_blocks_mask(folio, block, 1);
}

/* Returns how many of n blocks, from this one on, follow each other without a reservation. */
static u32 rfsm_unreserved(const struct folio *folio, u64 block, u32 n)
{
	u32 i;

	for (i = 0; i < n && !rfsm_is_reserved(folio, block + i); i++)
		;
	return i;
}

/* Gives a reservation to blocks that have none. The caller holds the volume lock. */
static void rfsm_set_reserved(struct rfs_inode_info *ri, struct folio *folio,
			      u64 block, u32 n, bool hole)
{
	struct rfsm_blocks *b;
	u32 mask;

	ri->taken += n;
	WRITE_ONCE(ri->reserved, ri->reserved + n);
	WRITE_ONCE(ri->rsv_pages, ri->rsv_pages + n);
	WRITE_ONCE(ri->rsv_holes, ri->rsv_holes + hole);
	if (!folio_test_large(folio)) {
		folio_attach_private(folio, (void *)(RSV_PLACE |
						     (hole ? RSV_HOLE : 0)));
		return;
	}
	b = rfsm_blocks_in(folio);
	mask = rfsm_blocks_mask(folio, block, n);
	WRITE_ONCE(b->reserved, b->reserved | mask);
	if (hole)
		b->holes |= mask;
}

/*
 * Takes the reservations of these blocks away, and returns how many had one. The caller holds the
 * volume lock.
 */
static u32 rfsm_clear_reserved(struct folio *folio, u64 block, u32 n,
			       u32 *holes)
{
	struct rfsm_blocks *b;
	u32 mask;

	*holes = 0;
	if (!folio_test_private(folio))
		return 0;
	if (!folio_test_large(folio)) {
		*holes = (unsigned long)folio_detach_private(folio) & RSV_HOLE ?
			 1 : 0;
		return 1;
	}
	b = rfsm_blocks_in(folio);
	mask = rfsm_blocks_mask(folio, block, n) & b->reserved;
	*holes = hweight32(mask & b->holes);
	WRITE_ONCE(b->reserved, b->reserved & ~mask);
	b->holes &= ~mask;
	return hweight32(mask);
}

/*
 * Reserves n blocks, or up to `most` where the others cost nothing. Blocks with a reservation are
 * skipped. Blocks that are overwritten are reserved together. The caller holds the volume lock.
 */
static int rfsm_reserve_some(struct rfs_sb_info *sbi, struct inode *inode,
			     struct folio *folio, u64 block, u32 n, u32 most)
{
	u64 blocks = (i_size_read(inode) + PAGE_SIZE - 1) >> PAGE_SHIFT;
	u64 end = block + n, last = block + most;
	u32 some;
	bool hole;
	int ret;

	for (; block < end; block += some) {
		some = rfsm_unreserved(folio, block, last - block);
		if (!some) {
			some = 1;
			continue;
		}
		hole = false;
		ret = some > 1 && block < blocks ?
		      rfs_reserve_run(sbi->fs, inode->i_ino, block, some) : 0;
		if (ret == -EINPROGRESS)
			return ret;
		some = max(ret, 1);
		if (ret <= 0)
			ret = rfs_reserve(sbi->fs, inode->i_ino, block, &hole);
		if (ret < 0)
			return ret;
		rfsm_set_reserved(RFS_I(inode), folio, block, some, hole);
	}
	return 0;
}

/* If no room can be made, this returns -ENOSPC instead of -EAGAIN. */
int rfsm_reserve(struct rfs_sb_info *sbi, struct inode *inode,
		 struct folio *folio, u64 block, u32 n, u32 most,
		 enum rfsm_waited waited)
{
	struct rfsm_miss miss = { 0 };
	bool again;
	int ret;

	while (rfsm_is_reserved(folio, block)) {
		block++;
		most--;
		if (!--n)
			return 0;
	}
	ret = rfsm_blocks_attach(folio);
	if (ret)
		return ret;
	do {
		rfsm_lock(sbi);
		sbi->fs->no_space = waited == RFSM_NO_SPACE;
		sbi->fs->withheld = waited ?
				    0 : rfsm_withheld_from(sbi, RFS_I(inode));
		rfsm_miss_begin(sbi, &miss);
		ret = rfsm_reserve_some(sbi, inode, folio, block, n, most);
		again = rfsm_miss_end(sbi, &miss, ret);
		sbi->fs->no_space = false;
		sbi->fs->withheld = 0;
		rfsm_unlock(sbi);
		if (again)
			rfsm_miss_read(sbi, &miss);
	} while (again);
	rfsm_kick_reserved(sbi);
	return ret;
}

void rfsm_unreserve(struct rfs_sb_info *sbi, struct inode *inode,
		    struct folio *folio, u64 block, u32 n)
{
	struct rfs_inode_info *ri = RFS_I(inode);
	u32 holes, places = rfsm_clear_reserved(folio, block, n, &holes);

	if (!places)
		return;
	/* Its block has been counted before: see rfsm_blocks(). */
	smp_store_release(&ri->rsv_holes, ri->rsv_holes - holes);
	WRITE_ONCE(ri->rsv_pages, ri->rsv_pages - places);
	rfs_unreserve(sbi->fs, inode->i_ino, places, holes);
}

/* Notes in the private value that the bytes from..to - 1 of a locked folio are new. */
void rfsm_dirty_bytes(struct folio *folio, u32 from, u32 to)
{
	unsigned long value = (unsigned long)folio_get_private(folio);
	struct rfsm_bytes bytes;

	if (!value)
		return;
	if (rfsm_new_bytes(folio, &bytes)) {
		from = min_t(u32, from, bytes.from);
		to = max_t(u32, to, bytes.to);
	}
	value &= RSV_PLACE | RSV_HOLE;
	value |= (unsigned long)from << RSV_FROM | (unsigned long)to << RSV_TO;
	folio_change_private(folio, (void *)value);
}

bool rfsm_new_bytes(struct folio *folio, struct rfsm_bytes *bytes)
{
	unsigned long value = (unsigned long)folio_get_private(folio);

	bytes->from = value >> RSV_FROM & (RFS_BLOCK_BYTES - 1);
	bytes->to = value >> RSV_TO;
	return bytes->to;
}
