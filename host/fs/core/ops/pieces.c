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

static int rfs_diff_of(struct rfs_fs *fs, u32 ino, struct rfs_buf **node)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	return ret ? ret : rfs_diff_get(fs, di, node);
}

int rfs_piece_fits(struct rfs_fs *fs, u32 ino, u64 off, u32 len)
{
	struct rfs_buf *node, *holder;
	struct rfs_ptr *slot;
	int ret;

	if (!fs->compact || fs->read_only || len > RFS_SMALL_MAX)
		return 0;
	ret = rfs_map_slot(fs, ino, off / RFS_BLOCK_BYTES, false, &slot,
			   &holder);
	if (!ret)
		ret = rfs_diff_of(fs, ino, &node);
	if (ret || !slot || rfs_diff_needs(len) > rfs_diff_room(fs, node))
		return ret;
	return node ? rfs_meta_fits(fs, 0) : rfs_may_have_diff(fs, ino);
}

/* Blocks of the log that so many bytes of records of a file add to it */
static u32 rfs_log_grows(const struct rfs_fs *fs, u32 bytes, bool anyway,
			 bool alone)
{
	if (!anyway)
		return DIV_ROUND_UP(bytes, RFS_BODY_BYTES);
	if (!alone)
		return bytes / RFS_BODY_BYTES;
	return DIV_ROUND_UP(fs->log_used + bytes, RFS_BODY_BYTES) -
	       DIV_ROUND_UP(fs->log_used, RFS_BODY_BYTES);
}

int rfs_piece_most(struct rfs_fs *fs, u32 ino, const u16 *bytes, u32 n,
		   bool alone, u32 *most)
{
	bool anyway = rfs_log_pending(fs, ino, false);
	u32 room, i, j, saved = 0;
	struct rfs_buf *node;
	int ret;

	*most = 0;
	if (!fs->compact || fs->read_only)
		return 0;
	ret = rfs_diff_of(fs, ino, &node);
	if (ret)
		return ret;
	room = rfs_diff_room(fs, node);
	/* a check-point writes it whether it gets these pieces or not */
	anyway |= !alone && node && node->dirty;
	for (i = 0; i < n; i++) {
		u32 pages = 0, records = 0, place = 0, grows;

		for (j = 0; j < n; j++) {
			if (bytes[j] > bytes[i])
				continue;
			pages++;
			place += rfs_diff_needs(bytes[j]);
			records += bytes[j] + rfs_pieces_of(bytes[j]) *
				   (sizeof(struct rfs_rec) + 8);
		}
		grows = rfs_log_grows(fs, records, anyway, alone);
		if (place > room || pages <= grows + saved)
			continue;
		saved = pages - grows;
		*most = bytes[i];
	}
	return 0;
}

static int rfs_one_piece(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes,
			 u32 len, u64 time)
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

int rfs_piece(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes, u32 len,
	      u64 time)
{
	u32 done, some;
	int ret = 0;

	for (done = 0; !ret && done < len; done += some) {
		some = min(len - done, (u32)RFS_PIECE_MAX);
		ret = rfs_one_piece(fs, ino, off + done,
				    (const u8 *)bytes + done, some, time);
	}
	return ret;
}
