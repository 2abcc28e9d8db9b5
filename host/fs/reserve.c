// SPDX-License-Identifier: GPL-2.0
/*
 * What is reserved for a dirty folio: its private value says it. The
 * reservation ends when the folio is written or dropped.
 */
#include <linux/pagemap.h>

#include "rfsm.h"
#include "tree/tree.h"

#define RSV_PLACE		1UL	/* a place */
#define RSV_HOLE		2UL	/* and that it was a hole */

/*
 * Who has dirtied many pages of a file since room was made last, and has many that
 * are not written, leaves the last zones to those who need little, until it has
 * waited for more.
 */
static u32 withheld(struct rfsm *m, struct rfsm_inode *ri)
{
	u64 round = READ_ONCE(m->rounds);

	if (ri->round != round) {
		ri->round = round;
		ri->taken = 0;
	}
	return ri->taken < RFSM_LITTLE || ri->rsv_pages <= RFSM_LITTLE ?
	       0 : rfsm_withheld(m);
}

/*
 * Room for a folio that will be dirty; it is locked. -EAGAIN: unlock it and
 * wait for room. If there is none to be had, -ENOSPC instead.
 */
int rfsm_reserve(struct rfsm *m, struct inode *inode, struct folio *folio,
		 enum rfsm_waited waited)
{
	struct rfsm_ask ask = { 0 };
	bool hole, miss;
	int ret;

	if (folio_test_private(folio))
		return 0;
	do {
		rfsm_lock(m);
		m->fs->no_space = waited == RFSM_NO_SPACE;
		m->fs->withheld = waited ? 0 : withheld(m, rfsm_inode(inode));
		rfsm_ask(m, &ask);
		ret = rfs_reserve(m->fs, inode->i_ino, folio->index, &hole);
		miss = rfsm_asked(m, &ask, ret);
		m->fs->no_space = false;
		m->fs->withheld = 0;
		if (!ret) {
			rfsm_inode(inode)->taken++;
			WRITE_ONCE(rfsm_inode(inode)->rsv_pages,
				   rfsm_inode(inode)->rsv_pages + 1);
			WRITE_ONCE(rfsm_inode(inode)->rsv_holes,
				   rfsm_inode(inode)->rsv_holes + hole);
			folio_attach_private(folio, (void *)(RSV_PLACE |
							     (hole ? RSV_HOLE :
							      0)));
		}
		rfsm_unlock(m);
		if (miss)
			rfsm_answer(m, &ask);
	} while (miss);
	return ret;
}

void rfsm_unreserve(struct rfsm *m, struct inode *inode, struct folio *folio)
{
	bool hole;

	if (!folio_test_private(folio))
		return;
	hole = (unsigned long)folio_detach_private(folio) & RSV_HOLE;
	/* after its block has been counted: see rfsm_blocks() */
	smp_store_release(&rfsm_inode(inode)->rsv_holes,
			  rfsm_inode(inode)->rsv_holes - hole);
	WRITE_ONCE(rfsm_inode(inode)->rsv_pages, rfsm_inode(inode)->rsv_pages -
		   1);
	rfs_unreserve(m->fs, inode->i_ino, 1, hole);
}
