// SPDX-License-Identifier: GPL-2.0
/*
 * Some writes have to wait for a flush of a volatile cache. After a power cut the cache may have
 * lost any of the pages that no flush has made durable. A page of which only a part is new holds
 * old bytes as well. If these came by a write that is atomic, the page must not survive where other
 * pages of that write are lost. So a flush comes between the two.
 *
 * Flushes are numbered as they begin. A write that completed while n had begun is durable once
 * flush n + 1 is done.
 */
#include <linux/blkdev.h>

#include "rfsm.h"
#include "error.h"
#include "flush.h"

/* Raises a number, unless others have raised it higher. */
static void rfsm_raise(atomic64_t *number, s64 to)
{
	s64 was = atomic64_read(number);

	while (was < to && !atomic64_try_cmpxchg(number, &was, to))
		;
}

int rfsm_flush(struct rfs_sb_info *sbi)
{
	s64 this = atomic64_inc_return(&sbi->flushes_begun);
	int ret = blkdev_issue_flush(sbi->dev.bdev);

	if (!ret)
		rfsm_raise(&sbi->flushes_done, this);
	return rfsm_drive_error(ret);
}

void rfsm_atomic_completed(struct inode *inode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);

	rfsm_raise(&RFS_I(inode)->settled_by,
		   atomic64_read(&sbi->flushes_begun) + 1);
}

void rfsm_settle_later(struct inode *inode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);

	rfsm_raise(&sbi->settled_by, atomic64_read(&RFS_I(inode)->settled_by));
}

int rfsm_settle(struct inode *inode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	s64 by = max_t(s64, atomic64_read(&RFS_I(inode)->settled_by),
		       atomic64_read(&sbi->settled_by));

	if (!sbi->fs->geo.volatile_cache ||
	    by <= atomic64_read(&sbi->flushes_done))
		return 0;
	return rfsm_flush(sbi);
}
