// SPDX-License-Identifier: GPL-2.0-or-later
/* Content of files. */
#include "rfs.h"

/* The pointer to a block, from its page metadata; time: when it was written. */
void rfs_ptr_of(const struct rfs_fs *fs, const struct rfs_oob *oob, u64 addr,
		u64 time, struct rfs_ptr *ptr)
{
	u64 ticks = rfs_ticks(fs, time);

	ptr->addr = rfs_word(addr, le16_to_cpu(oob->len));
	ptr->time = cpu_to_le32(ticks >> 8);
	ptr->wcount = oob->wcount;
	ptr->kind = RFS_PTR_BLOCK;
	ptr->frac = ticks;
}

int rfs_fill(struct rfs_fs *fs, const struct rfs_txn *txn, u32 from, u32 *n,
	     struct rfs_oob *oob, u32 *stream)
{
	u64 now = rfs_now(fs);
	struct rfs_dinode *di = NULL;
	struct rfs_buf *buf;
	struct rfs_ptr old;
	u32 i, to;
	int ret;

	memset(oob, 0, *n * sizeof(*oob));
	for (i = from; i < from + *n; i++, oob++) {
		bool last = i + 1 == txn->n;

		ret = rfs_map_get(fs, txn->ino, txn->block + i, &old);
		if (ret)
			return ret;
		if (!old.wcount && !di) {	/* its file's hotness counts */
			ret = rfs_iget(fs, txn->ino, &di, &buf);
			if (ret)
				return ret;
		}
		to = rfs_data_stream(fs, di, &old, now);
		if (i == from)
			*stream = to;
		if (to != *stream) {
			*n = i - from;
			break;
		}
		oob->magic = cpu_to_le16(RFS_OOB_MAGIC);
		oob->type = RFS_DATA;
		oob->volume = cpu_to_le32(fs->volume);
		oob->ino = cpu_to_le32(txn->ino);
		oob->gen = cpu_to_le32(txn->gen);
		oob->off = cpu_to_le64(txn->block + i);
		oob->version = cpu_to_le64(txn->version + i);
		oob->stamp = oob->version;
		oob->time = cpu_to_le64(txn->time);
		oob->len = cpu_to_le16(last ? txn->len : RFS_BLOCK_BYTES);
		oob->txn_idx = cpu_to_le16(i);
		oob->txn_cnt = cpu_to_le16(last ? txn->n : 0);
		oob->wcount = cpu_to_le16(min(le16_to_cpu(old.wcount) + 1,
					      0xffff));
	}
	return 0;
}

static int set_ptrs(struct rfs_fs *fs, u32 ino, u64 block, u32 n,
		    const struct rfs_oob *oob, const u64 *addr, u64 time)
{
	struct rfs_ptr ptr;
	u32 i;
	int ret = 0;

	for (i = 0; !ret && i < n; i++) {
		rfs_ptr_of(fs, &oob[i], addr[i], time, &ptr);
		ret = rfs_map_set(fs, ino, block + i, &ptr);
	}
	return ret;
}

/* May its owners have one block more, and the nodes that lead to it? */
static int may_fill(struct rfs_fs *fs, u32 ino, u64 block)
{
	u64 nodes;
	int ret = rfs_map_needs(fs, ino, block, block + 1, &nodes);

	return ret ? ret : rfs_quota_may_grow(fs, ino, 1ULL + nodes);
}

static int hold(struct rfs_fs *fs, u32 ino, s64 blocks)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	return ret ? ret : rfs_quota_hold(fs, di, blocks);
}

/*
 * The promise of design.md, question 9. The index nodes that the block needs
 * are made and dirty now, so that what they take is counted.
 */
int rfs_promise(struct rfs_fs *fs, u32 ino, u64 block, bool *hole)
{
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	int ret = rfs_map_slot(fs, ino, block, false, &slot, &buf);

	if (ret)
		return ret;
	/* what is reserved has its room already */
	*hole = !slot || slot->kind == RFS_PTR_HOLE;
	if (*hole && fs->enforced)
		ret = may_fill(fs, ino, block);
	if (!ret)
		ret = rfs_make_room(fs, 1, *hole ? 2 + RFS_HEIGHT_MAX : 0);
	if (!ret)
		ret = rfs_map_slot(fs, ino, block, true, &slot, &buf);
	if (!ret && *hole && fs->counting)
		ret = hold(fs, ino, 1);
	if (ret)
		return ret;
	/* it will be: so the bound of what is dirty holds for what is owed */
	rfs_buf_dirty(fs, buf);
	fs->owed++;
	fs->promised += *hole;
	return 0;
}

void rfs_unpromise(struct rfs_fs *fs, u32 ino, u32 blocks, u32 holes)
{
	if (holes && fs->counting)
		hold(fs, ino, -(s64)holes);
	fs->owed -= blocks;
	fs->promised -= holes;
}

int rfs_begin(struct rfs_fs *fs, u32 ino, u64 block, u32 n, u32 len, u64 time,
	      struct rfs_txn *txn)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = 0;

	if (!n || n > RFS_TXN_MAX || !len || len > RFS_BLOCK_BYTES)
		return -EINVAL;
	if (fs->read_only)
		return -EROFS;
	if (rfs_log_pending(fs, ino, true))
		ret = rfs_log_sync(fs);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret && !S_ISREG(le32_to_cpu(di->mode)))
		ret = -EINVAL;
	if (ret)
		return ret;
	txn->ino = ino;
	txn->gen = le32_to_cpu(di->gen);
	txn->block = block;
	txn->n = n;
	txn->len = len;
	txn->time = time;
	txn->version = rfs_next_version(fs, n);
	return 0;
}

/*
 * A page has the file's mtime with it. A record or another transaction that set
 * mtime after this page got its version is newer, in whatever order they land.
 * Records of names and extended attributes set ctime alone, which only grows.
 */
void rfs_date(struct rfs_dinode *di, const struct rfs_oob *oob)
{
	s64 time = le64_to_cpu(oob->time);

	if (le64_to_cpu(oob->version) <= le64_to_cpu(di->attr_version))
		return;
	di->attr_version = oob->version;
	/* as it was set by utimes(2): the record had another ctime */
	if (di->mtime == oob->time)
		return;
	di->mtime = oob->time;
	if (time > (s64)le64_to_cpu(di->ctime))
		di->ctime = oob->time;
}

int rfs_done(struct rfs_fs *fs, const struct rfs_oob *oob, u32 n,
	     const u64 *addr)
{
	u32 ino = le32_to_cpu(oob->ino);
	u64 block = le64_to_cpu(oob->off), end;
	u64 time = le64_to_cpu(oob->time) + fs->behind;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = set_ptrs(fs, ino, block, n, oob, addr, time);

	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	end = (block + n - 1) * RFS_BLOCK_BYTES + le16_to_cpu(oob[n - 1].len);
	if (end > le64_to_cpu(di->size))
		di->size = cpu_to_le64(end);
	rfs_date(di, oob);
	di->last_write = cpu_to_le64(time);
	di->wcount = cpu_to_le64(le64_to_cpu(di->wcount) + n);
	rfs_buf_dirty(fs, buf);
	return 0;
}

static int promise_all(struct rfs_fs *fs, u32 ino, u64 block, u32 n, u32 *holes)
{
	bool hole;
	u32 i;
	int ret;

	for (i = 0, *holes = 0; i < n; i++) {
		ret = rfs_promise(fs, ino, block + i, &hole);
		if (ret) {
			rfs_unpromise(fs, ino, i, *holes);
			return ret;
		}
		*holes += hole;
	}
	return 0;
}

int rfs_write(struct rfs_fs *fs, u32 ino, u64 block, u32 n,
	      const void *const *data, u32 len)
{
	u64 now = fs->ops->now(fs->dev);
	struct rfs_oob *oob;
	struct rfs_txn txn;
	u64 *addr;
	u32 done, part, holes, stream;
	int ret;

	if (n > RFS_TXN_MAX)
		return -EINVAL;
	ret = promise_all(fs, ino, block, n, &holes);
	if (ret)
		return ret;
	oob = rfs_alloc(n * sizeof(*oob));
	addr = rfs_alloc(n * sizeof(*addr));
	ret = oob && addr ? rfs_begin(fs, ino, block, n, len, now, &txn) :
			    -ENOMEM;
	for (done = 0; !ret && done < n; done += part) {
		part = min(n - done, (u32)RFS_SUM_ENTRIES);
		ret = rfs_fill(fs, &txn, done, &part, oob + done, &stream);
		if (!ret)
			ret = rfs_append(fs, stream, part, data + done,
					 oob + done, addr + done);
	}
	if (!ret)
		ret = rfs_done(fs, oob, n, addr);
	rfs_unpromise(fs, ino, n, holes);
	rfs_free(oob);
	rfs_free(addr);
	return ret;
}

int rfs_read(struct rfs_fs *fs, u32 ino, u64 block, void *data)
{
	struct rfs_oob oob;
	struct rfs_ptr ptr;
	u32 len;
	int ret = rfs_map_get(fs, ino, block, &ptr);

	if (ret)
		return ret;
	len = rfs_high(ptr.addr);
	if (!rfs_addr(ptr.addr)) {
		memset(data, 0, RFS_BLOCK_BYTES);
		return 0;
	}
	if (len > RFS_BLOCK_BYTES || !rfs_addr_ok(fs, rfs_addr(ptr.addr)))
		return -EUCLEAN;
	ret = fs->ops->read(fs->dev, rfs_addr(ptr.addr), data,
			    fs->geo.oob_bytes ? &oob : NULL);
	if (ret)
		return ret;
	if (fs->geo.oob_bytes &&
	    (!rfs_oob_ok(&oob, fs->volume) || le32_to_cpu(oob.ino) != ino ||
	     le64_to_cpu(oob.off) != block ||
	     le32_to_cpu(oob.data_crc) !=
	     ~rfs_crc(~0U, data, RFS_BLOCK_BYTES)))
		return -EIO;
	memset((u8 *)data + len, 0, RFS_BLOCK_BYTES - len);
	return 0;
}

/* The file's data and all records up to its last one are durable. */
int rfs_fsync(struct rfs_fs *fs, u32 ino)
{
	int ret;

	if (rfs_log_pending(fs, ino, false))
		return rfs_log_sync(fs);
	ret = fs->ops->wait(fs->dev);
	if (!ret && fs->geo.volatile_cache)
		ret = fs->ops->flush(fs->dev);
	return ret;
}
