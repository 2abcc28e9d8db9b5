// SPDX-License-Identifier: GPL-2.0-or-later
#include "tree/tree.h"
#include "tree/xattr.h"
#include "tree/quota.h"
#include "log/log.h"
#include "ops/ops.h"

/*
 * Asks whether the owners may have a block for attributes, if the inode has
 * none.
 */
static int rfs_may_have(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	return ret || di->xattr ? ret : rfs_quota_may_grow(fs, ino, 1);
}

int rfs_xattr_set(struct rfs_fs *fs, u32 ino, const char *name,
		  const void *value, u32 len, u32 flags, u32 mode)
{
	struct rfs_rec rec;
	int ret;

	if (!*name || strlen(name) > RFS_NAME_MAX)
		return -ERANGE;
	ret = value ? rfs_make_room(fs, 0, 0, 2) : rfs_make_room_to_free(fs);
	if (ret)
		return ret;
	ret = rfs_xattr_get(fs, ino, name, NULL, 0);
	if (ret >= 0 && flags & RFS_XATTR_CREATE)
		return -EEXIST;
	if (ret < 0 && (ret != -ENODATA || !value || flags & RFS_XATTR_REPLACE))
		return ret;
	if (len > RFS_BODY_BYTES)
		return -ENOSPC;
	if (value) {
		ret = rfs_may_have(fs, ino);
		if (ret)
			return ret;
	}
	rfs_rec_init(fs, &rec, RFS_OP_XATTR, ino);
	rec.mode = cpu_to_le32(mode);
	rec.flags = value ? 0 : RFS_REC_REMOVE;
	return rfs_commit(fs, &rec, name, strlen(name), value, len);
}
