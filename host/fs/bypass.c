// SPDX-License-Identifier: GPL-2.0
/*
 * Writeback sends blocks of some files of a hybrid volume home, past flash. A power cut leaves the
 * older blocks until a check-point comes, so fsync() waits for one ("Hybrid volumes" in
 * doc/design.md).
 */
#include <linux/fs.h>
#include <linux/pagemap.h>

#include "rfsm.h"
#include "error.h"
#include "wake.h"
#include "checkpoint.h"
#include "blocks.h"
#include "reserve.h"
#include "bypass.h"
#include "home/home.h"
#include "log/log.h"
#include "ops/ops.h"

#define ROW	64	/* blocks that are written at a time: their addresses are on the stack */

bool rfsm_may_bypass(const struct rfs_sb_info *sbi)
{
	return sbi->slow && rfs_may_bypass(&sbi->fs->super);
}

/* Says whether a file is as large as the mount asks for (HFM 3.1: dynamically, by size). */
static bool rfsm_is_bulk(struct inode *inode)
{
	u64 mib = READ_ONCE(RFS_SB(inode->i_sb)->opt.bypass);

	return mib && i_size_read(inode) >= mib << 20;
}

bool rfsm_bypasses(struct inode *inode)
{
	return (RFS_I(inode)->flags & RFS_INODE_BYPASS || rfsm_is_bulk(inode)) &&
	       rfsm_may_bypass(RFS_SB(inode->i_sb));
}

void rfsm_bypass_bound(struct rfs_sb_info *sbi, const struct rfsm_options *opt)
{
	if (opt->bypass)
		WRITE_ONCE(sbi->bulk, true);
}

void rfsm_bypass_load(struct inode *inode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);

	if (!S_ISREG(inode->i_mode) || !rfsm_may_bypass(sbi))
		return;
	/*
	 * Its blocks may have been written before it left memory. With a bound, it may have
	 * been larger then.
	 */
	if (rfsm_bypasses(inode) || READ_ONCE(sbi->bulk))
		WRITE_ONCE(RFS_I(inode)->bypassed,
			   READ_ONCE(RFS_SB(inode->i_sb)->bypassed));
}

int rfsm_bypass_sync(struct inode *inode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);

	return READ_ONCE(RFS_I(inode)->bypassed) > READ_ONCE(sbi->fs->cp_seq) ?
	       rfsm_sync(sbi, 0) : 0;
}

/*
 * If a check-point has to come first (-ENOBUFS), makes one. The caller tries again after that
 * result. He holds the volume lock.
 */
static int rfsm_bypass_again(struct rfs_sb_info *sbi, int ret)
{
	return ret == -ENOBUFS ? rfsm_compact(sbi) : ret;
}

/*
 * Enters blocks that are at home into the index. The caller holds the volume lock, which is dropped
 * while the index is read.
 */
static int rfsm_bypass_enter(struct rfs_sb_info *sbi, const struct rfs_txn *txn,
			     u32 from, const struct rfs_home_row *row,
			     u32 *entered)
{
	struct rfsm_miss miss = { 0 };
	bool again;
	int ret;

	for (*entered = 0; *entered < row->n;) {
		rfsm_miss_begin(sbi, &miss);
		ret = rfs_bypass_done(sbi->fs, txn, from + *entered,
				      row->n - *entered,
				      row->first + *entered);
		again = rfsm_miss_end(sbi, &miss, ret);
		if (again) {
			rfsm_unlock(sbi);
			rfsm_miss_read(sbi, &miss);
			rfsm_lock(sbi);
			continue;
		}
		ret = rfsm_bypass_again(sbi, ret);
		if (ret == -ENOBUFS)
			continue;
		if (ret < 0)
			return ret;
		*entered += ret;
	}
	return 0;
}

/*
 * Writes some blocks home, and *done grows by them. -ENOSPC says that there is no place, or that it
 * cannot be written. The caller holds the volume lock, which is dropped meanwhile.
 */
static int rfsm_bypass_row(struct inode *inode, const struct rfs_txn *txn,
			   struct folio **folio, const void *const *data,
			   u32 most, u32 *done)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u32 from = *done, entered = 0, i;
	struct rfs_home_row row;
	int ret;

	do {
		ret = rfsm_bypass_again(sbi, rfs_bypass_begin(sbi->fs, most,
							      &row));
	} while (ret == -ENOBUFS);
	if (ret)
		return ret;
	ret = rfs_home_send(sbi->fs, row.first, row.n, data) ? -ENOSPC : 0;
	if (!ret)
		ret = rfsm_bypass_enter(sbi, txn, from, &row, &entered);
	rfs_home_row_over(sbi->fs, &row);
	for (i = from; i < from + entered; i++)
		rfsm_unreserve(sbi, inode, folio[i], txn->block + i, 1);
	if (entered) {
		/*
		 * The next check-point has these blocks. With a slow device nobody enters blocks
		 * between the moment when one is frozen and the one when it is durable, see
		 * rfs_cp_may_open().
		 */
		WRITE_ONCE(sbi->bypassed, sbi->fs->cp_seq + 1);
		WRITE_ONCE(RFS_I(inode)->bypassed, sbi->bypassed);
	}
	*done += entered;
	return ret;
}

u32 rfsm_bypass(struct inode *inode, u64 block, struct folio **folio, u32 n,
		u32 len)
{
	struct timespec64 mtime = inode_get_mtime(inode);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	const void *data[ROW];
	struct rfs_txn txn;
	u32 done = 0, before, most, i;
	int ret;

	rfsm_set_busy(sbi);
	rfsm_lock(sbi);
	ret = rfs_txn_begin(sbi->fs, inode->i_ino, block, n, len,
			    timespec64_to_ns(&mtime), &txn);
	rfsm_unlock(sbi);
	while (!ret && done < n) {
		before = done;
		most = min_t(u32, n - done, ROW);
		for (i = 0; i < most; i++)
			data[i] = page_address(rfsm_page_with(folio[done + i],
							      block + done +
							      i));
		rfsm_lock(sbi);
		ret = rfsm_bypass_row(inode, &txn, folio, data, most, &done);
		rfsm_unlock(sbi);
		for (i = before; i < done; i++)
			rfsm_blocks_sent(folio[i], block + i, 1);
	}
	if (ret && ret != -ENOSPC)
		rfsm_failed(sbi, ret);
	rfsm_kick(sbi);
	return done;
}
