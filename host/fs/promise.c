// SPDX-License-Identifier: GPL-2.0
/*
 * What a dirty folio was promised: its private value says it. It is given back when
 * the folio is written or dropped.
 */
#include <linux/pagemap.h>

#include "rfsm.h"
#include "tree/tree.h"

#define OWED		1UL	/* a place */
#define HOLE		2UL	/* and that it was a hole */

/*
 * Who has dirtied many pages of a file since room was made last, and has many that
 * are not written, leaves the last zones to those who need little, until it has
 * waited for more.
 */
static u32 leaves(struct rfsm *m, struct rfsm_inode *ri)
{
	u64 round = READ_ONCE(m->rounds);

	if (ri->round != round) {
		ri->round = round;
		ri->taken = 0;
	}
	return ri->taken < RFSM_LITTLE || ri->owed <= RFSM_LITTLE ?
	       0 : rfsm_left(m);
}

/*
 * Room for a folio that will be dirty; it is locked. -EAGAIN: unlock it and
 * wait for room. If there is none to be had, -ENOSPC instead.
 */
int rfsm_promise(struct rfsm *m, struct inode *inode, struct folio *folio,
		 enum rfsm_waited waited)
{
	struct rfsm_ask ask = { 0 };
	bool hole, miss;
	int ret;

	if (folio_test_private(folio))
		return 0;
	do {
		rfsm_lock(m);
		m->fs->stuck = waited == RFSM_STUCK;
		m->fs->leaves = waited ? 0 : leaves(m, rfsm_inode(inode));
		rfsm_ask(m, &ask);
		ret = rfs_promise(m->fs, inode->i_ino, folio->index, &hole);
		miss = rfsm_asked(m, &ask, ret);
		m->fs->stuck = false;
		m->fs->leaves = 0;
		if (!ret) {
			rfsm_inode(inode)->taken++;
			WRITE_ONCE(rfsm_inode(inode)->owed,
				   rfsm_inode(inode)->owed + 1);
			WRITE_ONCE(rfsm_inode(inode)->promised,
				   rfsm_inode(inode)->promised + hole);
			folio_attach_private(folio, (void *)(OWED |
							     (hole ? HOLE : 0)));
		}
		rfsm_unlock(m);
		if (miss)
			rfsm_answer(m, &ask);
	} while (miss);
	return ret;
}

void rfsm_unpromise(struct rfsm *m, struct inode *inode, struct folio *folio)
{
	bool hole;

	if (!folio_test_private(folio))
		return;
	hole = (unsigned long)folio_detach_private(folio) & HOLE;
	/* after its block has been counted: see rfsm_blocks() */
	smp_store_release(&rfsm_inode(inode)->promised,
			  rfsm_inode(inode)->promised - hole);
	WRITE_ONCE(rfsm_inode(inode)->owed, rfsm_inode(inode)->owed - 1);
	rfs_unpromise(m->fs, inode->i_ino, 1, hole);
}
