// SPDX-License-Identifier: GPL-2.0-or-later
/* Quotas are switched on and off here, and limits are set. */
#include "tree/tree.h"
#include "tree/quota.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"

int rfs_quota_set(struct rfs_fs *fs, u32 type, u32 id,
		  const struct rfs_quota *limits)
{
	struct rfs_quota *q;
	struct rfs_buf *buf;
	struct rfs_rec rec;
	int ret = rfs_quota_entry(fs, type, id, false, &q, &buf);

	if (ret)
		return ret;
	ret = q ? rfs_make_room_to_free(fs) : rfs_make_room(fs, 0, 0, 2);
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_QUOTA, RFS_QUOTA_INO);
	rec.dir1 = cpu_to_le32(id);
	rec.dir2 = cpu_to_le32(type);
	return rfs_commit(fs, &rec, NULL, 0, limits, sizeof(*limits));
}

static int rfs_make_quota_inode(struct rfs_fs *fs)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, RFS_QUOTA_INO, &di, &buf);

	if (ret != -ENOENT)
		return ret;
	ret = rfs_iset(fs, RFS_QUOTA_INO, &di, &buf);
	if (ret)
		return ret;
	di->gen = cpu_to_le32((u32)rfs_next_version(fs, 1));
	di->nlink = cpu_to_le32(1);
	di->btime = cpu_to_le64(fs->ops->now(fs->dev));
	return 0;
}

/*
 * The check-point is for the records to come: they need inode 1, and recovery, which replays them,
 * has to know that usage is right.
 */
int rfs_quota_on(struct rfs_fs *fs)
{
	int ret;

	if (fs->counting && !fs->miscounted)
		return 0;
	fs->counting = false;
	ret = rfs_quota_room(fs);
	if (!ret)
		ret = rfs_make_quota_inode(fs);
	if (!ret)
		ret = rfs_quota_compare(fs, RFS_QUOTA_COUNT, NULL, NULL);
	if (ret)
		return ret;
	fs->counting = true;
	fs->miscounted = false;
	return fs->read_only ? 0 : rfs_checkpoint(fs, 0);
}

void rfs_quota_off(struct rfs_fs *fs)
{
	fs->counting = false;
	fs->enforced = 0;
}
