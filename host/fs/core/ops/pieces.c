// SPDX-License-Identifier: GPL-2.0-or-later
/* These are small writes: bytes of a block of a file that go into the log, not into a page. */
#include "space/space.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "tree/quota.h"
#include "log/log.h"
#include "ops/ops.h"

/* A file that gets a diff node has one block more, and so have its owners. */
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

/* Returns how many blocks so many bytes of records of a file add to the log. */
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
	/* A check-point writes the node whether it gets these pieces or not. */
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

static int rfs_one_piece(struct rfs_fs *fs, struct rfs_rec *rec,
			 const struct rfs_bytes *piece, u64 time)
{
	int ret;

	rec->time = cpu_to_le64(time);
	rec->arg1 = cpu_to_le64(piece->off);
	ret = rfs_commit(fs, rec, NULL, 0, piece->at, piece->len);
	if (!ret) {
		fs->stats.pieces++;
		fs->stats.piece_bytes += piece->len;
	}
	return ret;
}

/*
 * Writes the pieces of a transaction that come after so many pages. version is that of the first
 * piece, and follows those of the pages.
 */
static int rfs_txn_pieces(struct rfs_fs *fs, u32 ino, u64 time, u32 pages,
			  const struct rfs_bytes *piece, u32 n, u64 version)
{
	struct rfs_rec rec;
	u32 place, i;
	int ret = 0;

	for (i = 0; !ret && i < n; i++) {
		place = pages + i;
		if (i + 1 == n)
			place |= (pages + n) << 16;
		rfs_rec_init(fs, &rec, RFS_OP_PIECE, ino);
		rec.flags = RFS_REC_TXN;
		rec.version = cpu_to_le64(version + i);
		rec.arg2 = cpu_to_le64(place);
		ret = rfs_one_piece(fs, &rec, &piece[i], time);
	}
	if (ret && i > 1)	/* some are there without the others */
		fs->read_only = true;
	return ret;
}

int rfs_piece(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes, u32 len,
	      u64 time)
{
	struct rfs_bytes piece[2] = {
		{ off, min_t(u32, len, RFS_PIECE_MAX), bytes },
		{ off + RFS_PIECE_MAX, len - RFS_PIECE_MAX,
		  (const u8 *)bytes + RFS_PIECE_MAX },
	};
	struct rfs_rec rec;
	int ret;

	if (len <= RFS_PIECE_MAX) {
		rfs_rec_init(fs, &rec, RFS_OP_PIECE, ino);
		return rfs_one_piece(fs, &rec, piece, time);
	}
	ret = rfs_log_room(fs, 2);
	return ret ? ret : rfs_txn_pieces(fs, ino, time, 0, piece, 2,
					  rfs_next_version(fs, 2));
}

/* Says whether the pieces fit. over says that they may lie over others. */
static int rfs_txn_pieces_fit(struct rfs_fs *fs, u32 ino,
			      const struct rfs_bytes *piece, u32 n, bool over)
{
	struct rfs_buf *node, *holder;
	struct rfs_ptr *slot;
	u32 needs = 0, i;
	int ret = 0;

	for (i = 0; i < n; i++) {
		if (piece[i].len > RFS_PIECE_MAX)
			return 0;
		ret = rfs_map_slot(fs, ino, piece[i].off / RFS_BLOCK_BYTES,
				   false, &slot, &holder);
		if (ret || !slot)
			return ret;
		needs += rfs_diff_needs(piece[i].len);
	}
	ret = rfs_diff_of(fs, ino, &node);
	if (ret || needs > rfs_diff_room(fs, node))
		return ret;
	for (i = 0; !over && node && i < n; i++)
		if (rfs_diff_has(fs, node, piece[i].off, piece[i].len))
			return 0;
	return node ? rfs_meta_fits(fs, 0) : rfs_may_have_diff(fs, ino);
}

/*
 * If recovery drops the transaction for want of a page, it restores the pieces that these lie over,
 * which then need the place that they have given up. So there must be no such pieces. If only a
 * record is missing, the log ends there, and nothing was written after it.
 */
int rfs_txn_begin_with(struct rfs_fs *fs, u32 ino, u64 block, u32 n, u64 time,
		       const struct rfs_bytes *piece, u32 pieces,
		       struct rfs_txn *txn)
{
	int ret = 0, fits;
	bool nowait;

	if (!fs->compact || fs->read_only)
		return 0;
	/* rfs_txn_begin() must not write the log, since that may wait. */
	if (n && rfs_log_pending(fs, ino, true)) {
		/* Tasks that only look meanwhile ask for their own blocks. */
		nowait = rfs_nowait_off(fs);
		ret = rfs_log_sync(fs);
		rfs_nowait_restore(fs, nowait);
	}
	fits = ret ? ret : rfs_txn_pieces_fit(fs, ino, piece, pieces, !n);
	if (fits <= 0)
		return fits;
	ret = rfs_log_room(fs, pieces);
	if (!ret && n)
		ret = rfs_txn_begin(fs, ino, block, n, RFS_BLOCK_BYTES, time,
				    txn);
	else if (!ret)
		*txn = (struct rfs_txn){ .ino = ino, .time = time };
	if (ret)
		return ret;
	txn->pieces = true;
	/*
	 * All versions are taken at once, since a block of the log that is sent between two takes
	 * one, too.
	 */
	ret = rfs_txn_pieces(fs, ino, time, n, piece, pieces,
			     rfs_next_version(fs, pieces));
	/*
	 * A page that is sent later may hold some of their bytes without the others. If there is
	 * one block, it has all.
	 */
	if (!ret && n + pieces > 1)
		rfs_log_before_data(fs, ino);
	return ret ? ret : 1;
}
