// SPDX-License-Identifier: GPL-2.0-or-later
/* A change is a record: it is filled in, applied, and added to the log. */
#include "tree/tree.h"
#include "log/log.h"

void rfs_rec_init(struct rfs_fs *fs, struct rfs_rec *rec, u8 op, u32 ino)
{
	memset(rec, 0, sizeof(*rec));
	rec->op = op;
	rec->ino = cpu_to_le32(ino);
	rec->version = cpu_to_le64(rfs_next_version(fs, 1));
	rec->time = cpu_to_le64(fs->ops->now(fs->dev));
}

int rfs_commit(struct rfs_fs *fs, struct rfs_rec *rec, const void *first,
	       u32 len1, const void *second, u32 len2)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	bool nowait;
	int ret;

	rec->len1 = cpu_to_le16(len1);
	rec->len2 = cpu_to_le16(len2);
	rec->bytes = cpu_to_le32((sizeof(*rec) + len1 + len2 + 7) / 8 * 8);
	if (rec->op != RFS_OP_CREATE) {
		ret = rfs_iget(fs, le32_to_cpu(rec->ino), &di, &buf);
		if (ret)
			return ret;
		rec->gen = di->gen;
	}
	ret = rfs_log_room(fs, 1);
	if (ret)
		return ret;
	nowait = rfs_nowait_off(fs);
	ret = rfs_apply(fs, rec, first, second);
	if (!ret)
		ret = rfs_log_add(fs, rec, first, second);
	if (ret && ret != -ENOSPC)	/* with that nothing was changed */
		fs->read_only = true;	/* it may be half done */
	rfs_nowait_restore(fs, nowait);
	return ret;
}
