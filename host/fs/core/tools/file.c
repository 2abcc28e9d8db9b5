// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files are read and written here without a page cache, as the tools and the tests do. The module
 * has its own way.
 */
#include "space/space.h"
#include "home/home.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "tools/tools.h"

static int reserve_all(struct rfs_fs *fs, u32 ino, u64 block, u32 n, u32 *holes)
{
	bool hole;
	u32 i;
	int ret;

	for (i = 0, *holes = 0; i < n; i++) {
		ret = rfs_reserve(fs, ino, block + i, &hole);
		if (ret) {
			rfs_unreserve(fs, ino, i, *holes);
			return ret;
		}
		*holes += hole;
	}
	return 0;
}

/* Writes the blocks of a transaction that has begun. */
static int write_txn(struct rfs_fs *fs, const struct rfs_txn *txn,
		     const void *const *data, struct rfs_oob *oob, u64 *addr)
{
	u32 done, part, stream;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = 0;

	for (done = 0; !ret && done < txn->n; done += part) {
		part = min(txn->n - done, (u32)RFS_SUM_ENTRIES);
		ret = rfs_txn_fill(fs, txn, done, &part, oob + done, &stream);
		if (!ret)
			ret = rfs_append(fs, stream, part, data + done,
					 oob + done, addr + done);
	}
	/* Pieces give up their place only to transactions that the drive has as a whole. */
	if (!ret)
		ret = rfs_iget(fs, txn->ino, &di, &buf);
	if (!ret && di->diff && !txn->pieces)
		ret = fs->ops->wait(fs->dev);
	return ret ? ret : rfs_txn_done(fs, oob, txn->n, addr);
}

int rfs_write(struct rfs_fs *fs, u32 ino, u64 block, u32 n,
	      const void *const *data, u32 len)
{
	u64 now = fs->ops->now(fs->dev);
	struct rfs_oob *oob;
	struct rfs_txn txn;
	u64 *addr;
	u32 holes;
	int ret;

	if (n > RFS_TXN_MAX)
		return -EINVAL;
	ret = reserve_all(fs, ino, block, n, &holes);
	if (ret)
		return ret;
	oob = rfs_alloc(n * sizeof(*oob));
	addr = rfs_alloc(n * sizeof(*addr));
	ret = oob && addr ? rfs_txn_begin(fs, ino, block, n, len, now, &txn) :
			    -ENOMEM;
	if (!ret)
		ret = write_txn(fs, &txn, data, oob, addr);
	fs->loose |= n > 1;
	rfs_unreserve(fs, ino, n, holes);
	rfs_free(oob);
	rfs_free(addr);
	return ret;
}

int rfs_diff_fullest(struct rfs_fs *fs, u32 ino, u64 *block)
{
	u32 bytes = 0, most = 0, i;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u64 last = ~0ULL;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (!ret)
		ret = rfs_diff_get(fs, di, &buf);
	for (i = 0; !ret && buf && i < rfs_diff_count(buf); i++) {
		const struct rfs_piece *p = &buf->diff.piece[i];
		u64 of = le64_to_cpu(p->off) / RFS_BLOCK_BYTES;

		if (p->died)
			continue;
		bytes = of == last ? bytes : 0;
		last = of;
		bytes += le16_to_cpu(p->len);
		if (bytes > most) {
			most = bytes;
			*block = of;
		}
	}
	return ret || most ? ret : -ENOENT;
}

/*
 * Makes earlier writes durable. A page with bytes beside those of a transaction of several blocks
 * waits for that. Otherwise it could be seen where other blocks of the transaction are lost.
 */
static int settle(struct rfs_fs *fs)
{
	int ret = fs->loose ? fs->ops->wait(fs->dev) : 0;

	if (!ret && fs->loose && fs->geo.volatile_cache)
		ret = fs->ops->flush(fs->dev);
	if (!ret)
		fs->loose = false;
	return ret;
}

/*
 * Returns where the bytes end in a block that were given to it. Behind them it reads as zeroes,
 * also if the file is longer: a page does not say how long others have made the file.
 */
static int block_end(struct rfs_fs *fs, u32 ino, u64 block, u32 *end)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_ptr ptr;
	u32 i;
	int ret = rfs_map_get(fs, ino, block, &ptr);

	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret)
		ret = rfs_diff_get(fs, di, &buf);
	if (ret)
		return ret;
	*end = rfs_addr(ptr.addr) ? rfs_ptr_len(&ptr) : 0;
	for (i = 0; buf && i < rfs_diff_count(buf); i++) {
		const struct rfs_piece *p = &buf->diff.piece[i];

		if (!p->died && le64_to_cpu(p->off) / RFS_BLOCK_BYTES == block)
			*end = max_t(u64, *end, rfs_piece_end(p) -
				     block * RFS_BLOCK_BYTES);
	}
	return 0;
}

/* Makes a block with some of its bytes changed, which ends at *end. content is room for a block. */
static int change_block(struct rfs_fs *fs, u32 ino, u64 block, u32 at,
			const void *bytes, u32 len, u8 *content, u32 *end)
{
	int ret = block_end(fs, ino, block, end);

	if (!ret && *end)
		ret = settle(fs);
	if (!ret)
		ret = rfs_read(fs, ino, block, content);
	if (ret)
		return ret;
	memcpy(content + at, bytes, len);
	*end = max(*end, at + len);
	return 0;
}

/* Writes bytes of one block, with the rest of it. content is room for a block. */
static int write_page(struct rfs_fs *fs, u32 ino, u64 block, u32 at,
		      const void *bytes, u32 len, u8 *content)
{
	const void *data = content;
	u32 end;
	int ret = change_block(fs, ino, block, at, bytes, len, content, &end);

	return ret ? ret : rfs_write(fs, ino, block, 1, &data, end);
}

/* Returns 1 if the bytes are a piece now, and 0 if they have to be in a page. */
static int write_piece(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes,
		       u32 len)
{
	bool hole;
	int ret, fits;

	if (!fs->compact || len > RFS_PIECE_MAX)
		return 0;
	ret = rfs_reserve(fs, ino, off / RFS_BLOCK_BYTES, &hole);
	if (ret)
		return ret;
	fits = rfs_piece_fits(fs, ino, off, len);
	if (fits > 0)
		ret = rfs_piece(fs, ino, off, bytes, len,
				fs->ops->now(fs->dev));
	rfs_unreserve(fs, ino, 1, hole);
	return ret ? ret : fits;
}

/* If the diff node is full, its fullest block is merged, and this tries once more. */
static int write_small(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes,
		       u32 len)
{
	int ret = write_piece(fs, ino, off, bytes, len);
	u64 fullest;

	if (ret || !fs->compact || len > RFS_PIECE_MAX)
		return ret;
	ret = rfs_diff_fullest(fs, ino, &fullest);
	if (ret == -ENOENT || (!ret && fullest == off / RFS_BLOCK_BYTES))
		return 0;
	if (!ret)
		ret = rfs_merge(fs, ino);
	return ret ? ret : write_piece(fs, ino, off, bytes, len);
}

static int write_within(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes,
			u32 len, u8 *content)
{
	int ret = write_small(fs, ino, off, bytes, len);

	if (ret)
		return ret > 0 ? 0 : ret;
	return write_page(fs, ino, off / RFS_BLOCK_BYTES, off % RFS_BLOCK_BYTES,
			  bytes, len, content);
}

int rfs_merge(struct rfs_fs *fs, u32 ino)
{
	u8 *content = rfs_alloc(RFS_BLOCK_BYTES);
	u64 block;
	int ret = content ? rfs_diff_fullest(fs, ino, &block) : -ENOMEM;

	if (!ret)
		ret = write_page(fs, ino, block, 0, content, 0, content);
	rfs_free(content);
	return ret;
}

int rfs_write_bytes(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes,
		    u64 len)
{
	u8 *content = rfs_alloc(RFS_BLOCK_BYTES);
	int ret = content ? 0 : -ENOMEM;

	while (!ret && len) {
		u32 at = off % RFS_BLOCK_BYTES;
		u32 n = min_t(u64, len, RFS_BLOCK_BYTES - at);

		ret = write_within(fs, ino, off, bytes, n, content);
		bytes = (const u8 *)bytes + n;
		off += n;
		len -= n;
	}
	rfs_free(content);
	return ret;
}

/* These are the blocks that a write of several touches. Its ends have the bytes beside them. */
struct span {
	const void *data[RFS_TXN_MAX];
	u8 first[RFS_BLOCK_BYTES], last[RFS_BLOCK_BYTES];
};

static int write_span(struct rfs_fs *fs, u32 ino, u64 off, const u8 *bytes,
		      u64 len, struct span *s)
{
	u64 block = off / RFS_BLOCK_BYTES, done = 0;
	u32 n = 0, at = off % RFS_BLOCK_BYTES;
	u32 rest = (off + len) % RFS_BLOCK_BYTES, end = RFS_BLOCK_BYTES;
	int ret = 0;

	if (at) {
		done = RFS_BLOCK_BYTES - at;
		ret = change_block(fs, ino, block, at, bytes, done, s->first,
				   &end);
		s->data[n++] = s->first;
	}
	for (; done + RFS_BLOCK_BYTES <= len; done += RFS_BLOCK_BYTES)
		s->data[n++] = bytes + done;
	if (!ret && rest)
		ret = change_block(fs, ino, block + n, 0, bytes + done, rest,
				   s->last, &end);
	if (rest)
		s->data[n++] = s->last;
	return ret ? ret : rfs_write(fs, ino, block, n, s->data, end);
}

/* This is the same with its ends as pieces: bytes that begin, or end, within a block. */
struct ends {
	struct rfs_bytes piece[2];
	u32 pieces;
	const void *data[RFS_TXN_MAX];	/* the blocks between them */
	u64 block;			/* the first of these */
	u32 n;
	struct rfs_oob oob[RFS_TXN_MAX];
	u64 addr[RFS_TXN_MAX];
};

static void add_end(struct ends *e, u64 off, const u8 *bytes, u32 len)
{
	if (len)
		e->piece[e->pieces++] = (struct rfs_bytes){ off, len, bytes };
}

static void find_ends(struct ends *e, u64 off, const u8 *bytes, u64 len)
{
	u64 head = -off % RFS_BLOCK_BYTES, done;

	add_end(e, off, bytes, head);
	e->block = (off + head) / RFS_BLOCK_BYTES;
	for (done = head; done + RFS_BLOCK_BYTES <= len; done += RFS_BLOCK_BYTES)
		e->data[e->n++] = bytes + done;
	add_end(e, off + done, bytes + done, len - done);
}

/* Returns 1 if it is written, and 0 if the blocks at its ends have to be pages. */
static int write_ends(struct rfs_fs *fs, u32 ino, u64 off, const u8 *bytes,
		      u64 len, struct ends *e)
{
	u64 first = off / RFS_BLOCK_BYTES;
	struct rfs_txn txn;
	u32 holes, all;
	int ret, begun;

	find_ends(e, off, bytes, len);
	if (!e->pieces)
		return 0;
	all = e->n + e->pieces;
	ret = reserve_all(fs, ino, first, all, &holes);
	if (ret)
		return ret;
	begun = rfs_txn_begin_with(fs, ino, e->block, e->n,
				   fs->ops->now(fs->dev), e->piece, e->pieces,
				   &txn);
	if (begun > 0 && e->n)
		ret = write_txn(fs, &txn, e->data, e->oob, e->addr);
	fs->loose |= begun > 0;	/* until its pages and its records are durable */
	rfs_unreserve(fs, ino, all, holes);
	return ret ? ret : begun;
}

int rfs_write_atomic(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes,
		     u64 len)
{
	struct ends *e;
	struct span *s;
	int ret;

	if (len > RFS_WRITE_MAX)
		return -EFBIG;
	if (off % RFS_BLOCK_BYTES + len <= RFS_BLOCK_BYTES)
		return rfs_write_bytes(fs, ino, off, bytes, len);
	e = fs->compact ? rfs_alloc(sizeof(*e)) : NULL;
	ret = e ? write_ends(fs, ino, off, bytes, len, e) : 0;
	rfs_free(e);
	if (ret)
		return ret < 0 ? ret : 0;
	s = rfs_alloc(sizeof(*s));
	ret = s ? write_span(fs, ino, off, bytes, len, s) : -ENOMEM;
	rfs_free(s);
	return ret;
}

/* Reads the page of a block, if it is the right one. */
static int read_flash(struct rfs_fs *fs, u32 ino, u64 block, u64 addr, u8 *data)
{
	struct rfs_oob oob;
	int ret;

	if (!rfs_addr_ok(fs, addr))
		return -EUCLEAN;
	ret = fs->ops->read(fs->dev, addr, data,
			    fs->geo.oob_bytes ? &oob : NULL);
	if (ret)
		return ret;
	if (fs->geo.oob_bytes &&
	    (!rfs_oob_ok(&oob, fs->volume) || le32_to_cpu(oob.ino) != ino ||
	     le64_to_cpu(oob.off) != block ||
	     le32_to_cpu(oob.data_crc) !=
	     ~rfs_crc(~0U, data, RFS_BLOCK_BYTES)))
		return -EIO;
	return 0;
}

/* Reads from flash if it has the block and can read it, else from the slow device. */
static int read_hybrid(struct rfs_fs *fs, u32 ino, u64 block,
		       const struct rfs_ptr *ptr, u8 *data)
{
	u64 addr = rfs_ptr_flash(ptr);

	if (addr && !read_flash(fs, ino, block, addr, data)) {
		fs->stats.flash_reads++;
		return 0;
	}
	fs->stats.slow_reads++;
	return rfs_home_read(fs, rfs_ptr_home(ptr), data);
}

/* Reads the block that a pointer leads to. */
static int read_page(struct rfs_fs *fs, u32 ino, u64 block,
		     const struct rfs_ptr *ptr, u8 *data)
{
	u32 len = rfs_ptr_len(ptr);
	int ret;

	if (!rfs_addr(ptr->addr)) {
		memset(data, 0, RFS_BLOCK_BYTES);
		return 0;
	}
	if (len > RFS_BLOCK_BYTES)
		return -EUCLEAN;
	ret = rfs_ptr_has_home(ptr) ?
	      read_hybrid(fs, ino, block, ptr, data) :
	      read_flash(fs, ino, block, rfs_addr(ptr->addr), data);
	if (ret)
		return ret;
	memset(data + len, 0, RFS_BLOCK_BYTES - len);
	return 0;
}

int rfs_read(struct rfs_fs *fs, u32 ino, u64 block, void *data)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_ptr ptr;
	u32 pieces;
	int ret = rfs_map_get(fs, ino, block, &ptr);

	if (!ret)
		ret = read_page(fs, ino, block, &ptr, data);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	return ret ? ret : rfs_diff_overlay(fs, di, block, data, &pieces);
}

/* Makes the file's data, and all records up to its last one, durable. */
int rfs_fsync(struct rfs_fs *fs, u32 ino)
{
	int ret;

	if (rfs_log_pending(fs, ino, false)) {
		ret = rfs_log_sync(fs);
	} else {
		ret = fs->ops->wait(fs->dev);
		if (!ret && fs->geo.volatile_cache)
			ret = fs->ops->flush(fs->dev);
	}
	if (!ret)
		fs->loose = false;
	return ret;
}

int rfs_unmount(struct rfs_fs *fs)
{
	int ret = fs->read_only ? 0 : rfs_checkpoint(fs, RFS_CP_UNMOUNT);

	rfs_unmount_nosync(fs);
	return ret;
}

u64 rfs_available(const struct rfs_fs *fs)
{
	struct rfs_usage now;

	rfs_usage_get(fs, &now);
	return rfs_available_then(fs, &now);
}
