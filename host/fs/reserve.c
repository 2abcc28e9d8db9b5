// SPDX-License-Identifier: GPL-2.0
/*
 * What is reserved for a dirty folio, and which of its bytes are new: its private
 * value says both. The reservation ends when the folio is written or dropped.
 */
#include <linux/pagemap.h>

#include "rfsm.h"
#include "tree/tree.h"

#define RSV_PLACE		1UL	/* a place */
#define RSV_HOLE		2UL	/* and that it was a hole */
#define RSV_FROM		2	/* bits above: the first byte that is new */
#define RSV_TO			14	/* and the one after the last; 0: not known */

/*
 * Who has dirtied many pages of a file since room was made last, and has many that
 * are not written, leaves the last zones to those who need little, until it has
 * waited for more.
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

/*
 * Room for a folio that will be dirty; it is locked. -EAGAIN: unlock it and
 * wait for room. If there is none to be had, -ENOSPC instead.
 */
int rfsm_reserve(struct rfs_sb_info *sbi, struct inode *inode,
		 struct folio *folio, enum rfsm_waited waited)
{
	struct rfsm_miss miss = { 0 };
	bool hole, again;
	int ret;

	if (folio_test_private(folio))
		return 0;
	do {
		rfsm_lock(sbi);
		sbi->fs->no_space = waited == RFSM_NO_SPACE;
		sbi->fs->withheld = waited ?
				    0 : rfsm_withheld_from(sbi, RFS_I(inode));
		rfsm_miss_begin(sbi, &miss);
		ret = rfs_reserve(sbi->fs, inode->i_ino, folio->index, &hole);
		again = rfsm_miss_end(sbi, &miss, ret);
		sbi->fs->no_space = false;
		sbi->fs->withheld = 0;
		if (!ret) {
			RFS_I(inode)->taken++;
			WRITE_ONCE(RFS_I(inode)->reserved,
				   RFS_I(inode)->reserved + 1);
			WRITE_ONCE(RFS_I(inode)->rsv_pages,
				   RFS_I(inode)->rsv_pages + 1);
			WRITE_ONCE(RFS_I(inode)->rsv_holes,
				   RFS_I(inode)->rsv_holes + hole);
			folio_attach_private(folio, (void *)(RSV_PLACE |
							     (hole ? RSV_HOLE :
							      0)));
		}
		rfsm_unlock(sbi);
		if (again)
			rfsm_miss_read(sbi, &miss);
	} while (again);
	return ret;
}

void rfsm_unreserve(struct rfs_sb_info *sbi, struct inode *inode,
		    struct folio *folio)
{
	bool hole;

	if (!folio_test_private(folio))
		return;
	hole = (unsigned long)folio_detach_private(folio) & RSV_HOLE;
	/* after its block has been counted: see rfsm_blocks() */
	smp_store_release(&RFS_I(inode)->rsv_holes,
			  RFS_I(inode)->rsv_holes - hole);
	WRITE_ONCE(RFS_I(inode)->rsv_pages, RFS_I(inode)->rsv_pages -
		   1);
	rfs_unreserve(sbi->fs, inode->i_ino, 1, hole);
}

/* The bytes from..to - 1 of a locked folio that is reserved are new. */
void rfsm_dirty_bytes(struct folio *folio, u32 from, u32 to)
{
	unsigned long value = (unsigned long)folio_get_private(folio);
	u32 first, last;

	if (!value)
		return;
	if (rfsm_new_bytes(folio, &first, &last)) {
		from = min(from, first);
		to = max(to, last);
	}
	value &= RSV_PLACE | RSV_HOLE;
	value |= (unsigned long)from << RSV_FROM | (unsigned long)to << RSV_TO;
	folio_change_private(folio, (void *)value);
}

bool rfsm_new_bytes(struct folio *folio, u32 *from, u32 *to)
{
	unsigned long value = (unsigned long)folio_get_private(folio);

	*from = value >> RSV_FROM & (RFS_BLOCK_BYTES - 1);
	*to = value >> RSV_TO;
	return *to;
}
