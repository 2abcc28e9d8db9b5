// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A transaction (OFTL 4.1) has pages of a file that are seen after a power cut together or not at
 * all. Once they have completed, they are entered in the index and the inode.
 */
#include "space/space.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "log/log.h"

/* Makes the pointer to a block from its page metadata. The block was written at `ticks`. */
void rfs_ptr_of(const struct rfs_oob *oob, u64 addr, u64 ticks,
		struct rfs_ptr *ptr)
{
	ptr->addr = rfs_word(addr, le16_to_cpu(oob->len));
	ptr->time = cpu_to_le32(ticks >> 8);
	ptr->wcount = oob->wcount;
	ptr->kind = RFS_PTR_BLOCK;
	ptr->frac = ticks;
}

int rfs_txn_fill(struct rfs_fs *fs, const struct rfs_txn *txn, u32 from, u32 *n,
		 struct rfs_oob *oob, u32 *stream)
{
	static const struct rfs_ptr hole;
	struct rfs_buf *ibuf, *pieces;
	const struct rfs_ptr *old;
	u64 now = rfs_now(fs);
	struct rfs_ptrs ptrs = { 0 };
	struct rfs_dinode *di;
	u64 block = 0;
	u32 i, to;
	int ret = rfs_iget(fs, txn->ino, &di, &ibuf);

	if (!ret && !S_ISREG(le32_to_cpu(di->mode)))
		ret = -EINVAL;
	/* After this, the pieces that the pages will replace are in memory. */
	if (!ret && di->diff)
		ret = rfs_diff_get(fs, di, &pieces);
	if (ret)
		return ret;
	memset(oob, 0, *n * sizeof(*oob));
	for (i = from; i < from + *n; i++, oob++, ptrs.n--) {
		u64 next = txn->at ? txn->at[i] : txn->block + i;
		bool last = i + 1 == txn->n;

		if (!ptrs.n || next != block + 1) {
			ret = rfs_map_ptrs_of(fs, di, ibuf, next, &ptrs);
			if (ret)
				return ret;
		}
		block = next;
		old = ptrs.at ? ptrs.at++ : &hole;
		if (!rfs_ptr_known(fs, old))
			return -EUCLEAN;
		to = rfs_data_stream(fs, di, old, now);
		if (i == from)
			*stream = to;
		if (to != *stream) {
			*n = i - from;
			break;
		}
		rfs_count_traffic(fs, old, now);
		oob->magic = cpu_to_le16(RFS_OOB_MAGIC);
		oob->type = RFS_DATA;
		oob->flags = rfs_oob_next(fs);
		oob->volume = cpu_to_le32(fs->volume);
		oob->ino = cpu_to_le32(txn->ino);
		oob->gen = di->gen;
		oob->off = cpu_to_le64(block);
		oob->version = cpu_to_le64(txn->version + i);
		oob->stamp = oob->version;
		oob->time = cpu_to_le64(txn->time);
		oob->len = cpu_to_le16(last ? txn->len : RFS_BLOCK_BYTES);
		oob->txn_idx = cpu_to_le16(i);
		oob->txn_cnt = cpu_to_le16(last && !txn->pieces ? txn->n : 0);
		oob->wcount = cpu_to_le16(min(rfs_ptr_wcount(old) + 1,
					      0xffffU));
	}
	return 0;
}

#define PTRS	16	/* that are made at a time, on the stack */

static int rfs_set_ptrs(struct rfs_fs *fs, struct rfs_dinode *di,
			struct rfs_buf *ibuf, const struct rfs_oob *oob, u32 n,
			const u64 *addr, u64 time)
{
	u64 block = le64_to_cpu(oob->off), ticks = rfs_ticks(fs, time);
	struct rfs_ptr ptr[PTRS];
	u32 done, some, i;
	int ret = 0;

	for (done = 0; !ret && done < n; done += some) {
		some = min(n - done, (u32)PTRS);
		for (i = 0; i < some; i++)
			rfs_ptr_of(&oob[done + i], addr[done + i], ticks, &ptr[i]);
		ret = rfs_map_set_of(fs, di, ibuf, block + done, some, ptr);
	}
	return ret;
}

int rfs_txn_begin(struct rfs_fs *fs, u32 ino, u64 block, u32 n, u32 len,
		  u64 time, struct rfs_txn *txn)
{
	int ret = 0;

	if (!n || n > RFS_TXN_MAX || !len || len > RFS_BLOCK_BYTES)
		return -EINVAL;
	if (fs->read_only)
		return -EROFS;
	if (rfs_log_pending(fs, ino, true))
		ret = rfs_log_sync(fs);
	if (ret)
		return ret;
	txn->ino = ino;
	txn->block = block;
	txn->at = NULL;
	txn->n = n;
	txn->len = len;
	txn->pieces = false;
	txn->time = time;
	txn->version = rfs_next_version(fs, n);
	return 0;
}

/*
 * A page has the file's mtime with it. A record or another transaction that set
 * mtime after this page got its version is newer, in whatever order they
 * complete. Records of names and extended attributes set ctime alone, which
 * only grows.
 */
void rfs_content_times(struct rfs_dinode *di, __le64 version, __le64 time)
{
	if (le64_to_cpu(version) <= le64_to_cpu(di->attr_version))
		return;
	di->attr_version = version;
	/* The time was set by utimes(2), whose record had another ctime. */
	if (di->mtime == time)
		return;
	di->mtime = time;
	if ((s64)le64_to_cpu(time) > (s64)le64_to_cpu(di->ctime))
		di->ctime = time;
}

int rfs_piece_apply(struct rfs_fs *fs, u32 ino, u64 off, u32 len, u64 version,
		    const u8 *bytes)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (!ret)
		ret = rfs_diff_put(fs, di, buf, off, len, version, bytes);
	return ret ? ret : rfs_map_piece(fs, di, buf, off / RFS_BLOCK_BYTES);
}

/*
 * A recovery from now on sees completed pages if they are all of their transaction, and if the
 * drive keeps what it has written. It sees other pages only after the next check-point.
 */
static int rfs_drop_pieces(struct rfs_fs *fs, struct rfs_dinode *di,
			   struct rfs_buf *ibuf, const struct rfs_oob *oob,
			   u32 n)
{
	bool certain = !oob->txn_idx && oob[n - 1].txn_cnt &&
		       !fs->geo.volatile_cache;
	u32 i;
	int ret = 0;

	for (i = 0; !ret && i < n && di->diff; i++)
		ret = rfs_diff_drop(fs, di, ibuf, le64_to_cpu(oob[i].off),
				    le64_to_cpu(oob[i].version), certain);
	return ret;
}

/* Returns how many of n blocks follow each other, from the first on. */
static u32 rfs_row_of(const struct rfs_oob *oob, u32 n)
{
	u32 i;

	for (i = 1; i < n; i++)
		if (le64_to_cpu(oob[i].off) != le64_to_cpu(oob->off) + i)
			break;
	return i;
}

void rfs_content_done(struct rfs_fs *fs, struct rfs_dinode *di,
		      struct rfs_buf *ibuf, u32 n, u64 end, __le64 version,
		      __le64 time)
{
	if (end > le64_to_cpu(di->size))
		di->size = cpu_to_le64(end);
	rfs_content_times(di, version, time);
	di->last_write = cpu_to_le64(le64_to_cpu(time) + fs->behind);
	di->wcount = cpu_to_le64(le64_to_cpu(di->wcount) + n);
	rfs_buf_dirty(fs, ibuf);
}

int rfs_txn_done(struct rfs_fs *fs, const struct rfs_oob *oob, u32 n,
		 const u64 *addr)
{
	u64 time = le64_to_cpu(oob->time) + fs->behind, end;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 i, row;
	int ret = rfs_iget(fs, le32_to_cpu(oob->ino), &di, &buf);

	for (i = 0; !ret && i < n; i += row) {
		row = rfs_row_of(&oob[i], n - i);
		ret = rfs_set_ptrs(fs, di, buf, &oob[i], row, &addr[i], time);
	}
	if (!ret && di->diff)
		ret = rfs_drop_pieces(fs, di, buf, oob, n);
	if (ret)
		return ret;
	end = le64_to_cpu(oob[n - 1].off) * RFS_BLOCK_BYTES +
	      le16_to_cpu(oob[n - 1].len);
	rfs_content_done(fs, di, buf, n, end, oob->version, oob->time);
	return 0;
}

void rfs_fill_oobs(const struct rfs_fs *fs, struct rfs_oob *oob, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		oob[i].flags = RFS_OOB_FILL;
		oob[i].time = cpu_to_le64(rfs_clock(fs));
		oob[i].wcount = cpu_to_le16(le16_to_cpu(oob[i].wcount) - 1);
	}
}

/*
 * Blocks that were cut or deleted meanwhile are not filled. A block that was read just now is not
 * cold, however long ago it was written. Otherwise it would be the first to leave flash.
 */
int rfs_fill_done(struct rfs_fs *fs, const struct rfs_oob *oob, u32 n,
		  const u64 *addr)
{
	struct rfs_ptr ptr;
	u32 i;
	int ret;

	for (i = 0; i < n; i++) {
		u32 ino = le32_to_cpu(oob[i].ino);
		u64 off = le64_to_cpu(oob[i].off);

		ret = rfs_map_get(fs, ino, off, &ptr);
		if (ret && ret != -ENOENT)
			return ret;
		if (ret || ptr.kind != RFS_PTR_ELSEWHERE)
			continue;
		rfs_ptr_put(&ptr, addr[i], rfs_ptr_home(&ptr),
			    rfs_ptr_len(&ptr));
		ptr.time = cpu_to_le32(rfs_now(fs) >> 8);
		ret = rfs_map_set(fs, ino, off, 1, &ptr);
		if (ret)
			return ret;
		fs->stats.filled++;
	}
	return 0;
}
