// SPDX-License-Identifier: GPL-2.0-or-later
/* Small writes: bytes of a block of a file that go into the log, not into a page. */
#include "space/space.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "tree/quota.h"
#include "log/log.h"
#include "ops/ops.h"

/* Its diff node is one block more, for its owners too. */
static int rfs_may_have_diff(struct rfs_fs *fs, u32 ino)
{
	int ret = fs->enforced ? rfs_quota_may_grow(fs, ino, 1) : 0;

	if (ret)
		return ret == -EDQUOT ? 0 : ret;
	return rfs_meta_fits(fs, 1);
}

int rfs_piece_fits(struct rfs_fs *fs, u32 ino, u64 off, u32 len)
{
	struct rfs_buf *buf, *node, *holder;
	struct rfs_dinode *di;
	struct rfs_ptr *slot;
	int ret;

	if (!fs->compact || fs->read_only || len > RFS_PIECE_MAX)
		return 0;
	ret = rfs_map_slot(fs, ino, off / RFS_BLOCK_BYTES, false, &slot,
			   &holder);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret)
		ret = rfs_diff_get(fs, di, &node);
	if (ret || !slot)
		return ret;
	if (!node)
		return rfs_may_have_diff(fs, ino);
	return rfs_diff_fits(fs, node, len) && rfs_meta_fits(fs, 0);
}

int rfs_piece(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes, u32 len,
	      u64 time)
{
	struct rfs_rec rec;
	int ret;

	rfs_rec_init(fs, &rec, RFS_OP_PIECE, ino);
	rec.time = cpu_to_le64(time);
	rec.arg1 = cpu_to_le64(off);
	ret = rfs_commit(fs, &rec, NULL, 0, bytes, len);
	if (!ret) {
		fs->stats.pieces++;
		fs->stats.piece_bytes += len;
	}
	return ret;
}
