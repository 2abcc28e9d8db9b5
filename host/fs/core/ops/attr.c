// SPDX-License-Identifier: GPL-2.0-or-later
/* An inode's owner, mode, flags and times change here. */
#include "tree/tree.h"
#include "tree/quota.h"
#include "log/log.h"
#include "ops/ops.h"

/*
 * Checks that the new owners of an inode have room for it, and entries. An owner who has an entry
 * already can be given files on a full volume, too.
 */
static int rfs_quota_may_take(struct rfs_fs *fs, const struct rfs_dinode *di,
			      const struct rfs_dinode *attr, u32 types, u64 rsv)
{
	u32 id[RFS_QUOTA_TYPES] = { le32_to_cpu(attr->uid),
				    le32_to_cpu(attr->gid) };
	int ret = rfs_quota_may(fs, types, id, le64_to_cpu(di->blocks) + rsv,
				1);
	struct rfs_quota *q;
	struct rfs_buf *buf;
	u32 type, more = 0;

	for (type = 0; !ret && type < RFS_QUOTA_TYPES; type++) {
		if (!(types & 1U << type))
			continue;
		ret = rfs_quota_entry(fs, type, id[type], false, &q, &buf);
		more += !q;
	}
	return ret || !more ? ret : rfs_make_room(fs, 0, 0, more);
}

/* types becomes a bit for each owner that changes, and old the owners before. */
static int rfs_may_setattr(struct rfs_fs *fs, u32 ino,
			   const struct rfs_dinode *attr, u64 rsv,
			   u32 old[RFS_QUOTA_TYPES], u32 *types)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_make_room_to_free(fs);
	u32 type;

	*types = 0;
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	for (type = 0; type < RFS_QUOTA_TYPES; type++) {
		old[type] = rfs_owner(di, type);
		if (fs->counting && old[type] != rfs_owner(attr, type))
			*types |= 1U << type;
	}
	return *types ? rfs_quota_may_take(fs, di, attr, *types, rsv) : 0;
}

int rfs_may_give(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		 u64 rsv)
{
	u32 old[RFS_QUOTA_TYPES], types;

	return rfs_may_setattr(fs, ino, attr, rsv, old, &types);
}

/* Makes the record that gives an inode the attributes in attr. */
static void rfs_attr_rec(struct rfs_fs *fs, struct rfs_rec *rec, u32 ino,
			 const struct rfs_dinode *attr)
{
	rfs_rec_init(fs, rec, RFS_OP_ATTR, ino);
	rec->mode = attr->mode;
	rec->uid = attr->uid;
	rec->gid = attr->gid;
	rec->iflags = attr->flags;
	rec->arg1 = attr->atime;
	rec->arg2 = attr->mtime;
}

int rfs_setattr(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		u64 rsv)
{
	u32 type, types, old[RFS_QUOTA_TYPES];
	struct rfs_rec rec;
	bool nowait;
	int ret = rfs_may_setattr(fs, ino, attr, rsv, old, &types);

	if (ret)
		return ret;
	rfs_attr_rec(fs, &rec, ino, attr);
	ret = rfs_commit(fs, &rec, NULL, 0, NULL, 0);
	nowait = rfs_nowait_off(fs);
	for (type = 0; !ret && type < RFS_QUOTA_TYPES; type++) {
		if (!(types & 1U << type) || !rsv)
			continue;
		ret = rfs_quota_reserve_one(fs, type, old[type], -(s64)rsv);
		if (!ret)
			ret = rfs_quota_reserve_one(fs, type,
						    rfs_owner(attr, type), rsv);
	}
	rfs_nowait_restore(fs, nowait);
	return ret;
}

int rfs_log_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_rec rec;
	int ret = rfs_make_room_to_free(fs);

	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	rfs_attr_rec(fs, &rec, ino, di);
	rec.arg1 = times->atime;
	rec.arg2 = times->mtime;
	rec.time = times->ctime;
	return rfs_commit(fs, &rec, NULL, 0, NULL, 0);
}

int rfs_set_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_make_room_to_free(fs);

	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	/* The records, pages and pieces that are durable with the log have these times. */
	if (fs->compact && di->atime == times->atime &&
	    (S_ISDIR(le32_to_cpu(di->mode)) || (di->mtime == times->mtime &&
						di->ctime == times->ctime)))
		return 0;
	fs->not_logged = true;
	di->atime = times->atime;
	if (!S_ISDIR(le32_to_cpu(di->mode))) {	/* else these are newer */
		di->mtime = times->mtime;
		di->ctime = times->ctime;
		/* Pages in flight may have older times. */
		di->attr_version = cpu_to_le64(rfs_next_version(fs, 1));
	}
	rfs_buf_dirty(fs, buf);
	return 0;
}
