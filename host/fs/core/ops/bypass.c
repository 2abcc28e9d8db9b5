// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Some blocks of a hybrid volume's files are written home and not to flash. No page and no record
 * says so, but the next check-point does.
 */
#include "space/space.h"
#include "home/home.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"

int rfs_bypass_begin(struct rfs_fs *fs, u32 n, struct rfs_home_row *row)
{
	int ret = rfs_make_room_to_free(fs);

	if (ret || rfs_home_alloc(fs, n, row))
		return ret;
	if (!fs->home->count[RFS_SLOW_HELD])
		return -ENOSPC;
	if (fs->threaded)
		return -ENOBUFS;
	ret = rfs_checkpoint(fs, 0);
	if (!ret && !rfs_home_alloc(fs, n, row))
		ret = -ENOSPC;
	return ret;
}

/* Makes the pointer of a block of a transaction that is at home. `was` is the pointer before. */
static int rfs_bypass_ptr(const struct rfs_fs *fs, const struct rfs_txn *txn,
			  u32 i, u64 home, const struct rfs_ptr *was,
			  struct rfs_ptr *ptr)
{
	u64 ticks = rfs_ticks(fs, txn->time + fs->behind);
	u32 len = i + 1 == txn->n ? txn->len : RFS_BLOCK_BYTES;

	if (!rfs_ptr_known(fs, was))
		return -EUCLEAN;
	memset(ptr, 0, sizeof(*ptr));
	ptr->time = cpu_to_le32(ticks >> 8);
	ptr->frac = ticks;
	ptr->wcount = cpu_to_le16(min(rfs_ptr_wcount(was) + 1, 0xffffU));
	rfs_ptr_put(ptr, 0, home, len);
	return 0;
}

#define PTRS	16	/* that are made at a time, on the stack */

/*
 * The nodes of these pointers are in memory, so nothing begins here that would have to begin anew.
 */
static int rfs_bypass_enter(struct rfs_fs *fs, const struct rfs_txn *txn,
			    struct rfs_dinode *di, struct rfs_buf *ibuf,
			    const struct rfs_ptr *was, u32 from, u32 n,
			    u64 home)
{
	u64 block = txn->block + from;
	struct rfs_ptr ptr[PTRS];
	u32 done, some, i;
	int ret = 0;

	for (done = 0; !ret && done < n; done += some) {
		some = min(n - done, (u32)PTRS);
		for (i = 0; !ret && i < some; i++)
			ret = rfs_bypass_ptr(fs, txn, from + done + i,
					     home + done + i, &was[done + i],
					     &ptr[i]);
		if (!ret)
			ret = rfs_map_set_of(fs, di, ibuf, block + done, some,
					     ptr);
	}
	/* A recovery may still begin at the check-point before, which has the pieces. */
	for (i = 0; !ret && i < n && di->diff; i++)
		ret = rfs_diff_drop(fs, di, ibuf, block + i,
				    txn->version + from + i, false);
	return ret;
}

int rfs_bypass_done(struct rfs_fs *fs, const struct rfs_txn *txn, u32 from,
		    u32 n, u64 home)
{
	static const struct rfs_ptr hole;
	u64 block = txn->block + from, end;
	struct rfs_buf *ibuf, *pieces;
	struct rfs_ptrs ptrs = { 0 };
	struct rfs_dinode *di;
	bool nowait;
	int ret = rfs_make_room_to_free(fs);

	if (!ret)
		ret = rfs_iget(fs, txn->ino, &di, &ibuf);
	if (!ret && di->diff)
		ret = rfs_diff_get(fs, di, &pieces);
	if (!ret)
		ret = rfs_map_ptrs_of(fs, di, ibuf, block, &ptrs);
	if (ret)
		return ret;
	/* Where there were only holes, an index that grew has no leaf. The first block makes it. */
	n = ptrs.at ? min(n, ptrs.n) : 1;
	nowait = rfs_nowait_off(fs);
	ret = rfs_bypass_enter(fs, txn, di, ibuf, ptrs.at ? ptrs.at : &hole,
			       from, n, home);
	rfs_nowait_restore(fs, nowait);
	if (ret)
		return ret;
	end = (block + n - 1) * RFS_BLOCK_BYTES +
	      (from + n == txn->n ? txn->len : RFS_BLOCK_BYTES);
	rfs_content_done(fs, di, ibuf, n, end,
			 cpu_to_le64(txn->version + from),
			 cpu_to_le64(txn->time));
	fs->not_logged = true;
	fs->stats.bypassed += n;
	return n;
}
