// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These are compacted updates (OFTL 4.3): small parts of a file's blocks, which lie in one node
 * over the blocks and are read with them. A page that is written later takes their place.
 *
 * The place of a piece is given to others only when a recovery is sure to see the page, or the next
 * check-point has it. So the pieces that a recovery finds in the log, without those that the pages
 * it sees have replaced, always fit into the node.
 */
#include "tree/tree.h"
#include "tree/diff.h"

static struct rfs_node_id rfs_diff_id_of(const struct rfs_dinode *di)
{
	return (struct rfs_node_id){ .type = RFS_DIFF,
				     .ino = le32_to_cpu(di->ino),
				     .gen = le32_to_cpu(di->gen) };
}

static u8 *rfs_diff_body(struct rfs_buf *buf)
{
	return buf->bytes + sizeof(struct rfs_head);
}

/* Returns where the bytes begin. */
static u32 rfs_diff_low(const struct rfs_buf *buf)
{
	return rfs_diff_count(buf) ? le16_to_cpu(buf->diff.piece[0].at) :
				     RFS_BODY_BYTES;
}

/* Says whether the pieces and their bytes are within the node. */
static bool rfs_diff_ok(const struct rfs_buf *buf)
{
	u32 n = rfs_diff_count(buf), at = RFS_BODY_BYTES, i;
	u64 next = ~0ULL;

	if (!n || n >= RFS_PIECES)
		return false;
	for (i = n; i-- > 0;) {
		const struct rfs_piece *p = &buf->diff.piece[i];
		u32 len = le16_to_cpu(p->len);
		u64 off = le64_to_cpu(p->off);

		if (!len || len > RFS_PIECE_MAX || len > at ||
		    le16_to_cpu(p->at) != at - len ||
		    off % RFS_BLOCK_BYTES + len > RFS_BLOCK_BYTES ||
		    off / RFS_BLOCK_BYTES >= RFS_FILE_BLOCKS ||
		    off + len > next)
			return false;
		at -= len;
		next = off;
	}
	/* There is room for one more entry: see rfs_diff_clear(). */
	return (n + 1) * sizeof(struct rfs_piece) <= at;
}

int rfs_diff_get(struct rfs_fs *fs, const struct rfs_dinode *di,
		 struct rfs_buf **out)
{
	struct rfs_node_id id = rfs_diff_id_of(di);
	int ret;

	*out = NULL;
	if (!di->diff)
		return 0;
	ret = rfs_node_get(fs, &id, le32_to_cpu(di->diff), out);
	if (ret || (*out)->checked)
		return ret;
	if (!rfs_diff_ok(*out)) {
		*out = NULL;
		return -EUCLEAN;
	}
	(*out)->checked = true;
	return 0;
}

static int rfs_diff_add_block(struct rfs_fs *fs, struct rfs_dinode *di,
			      struct rfs_buf *ibuf, int delta)
{
	rfs_buf_dirty(fs, ibuf);
	return rfs_blocks_add(fs, di, delta);
}

static int rfs_diff_new(struct rfs_fs *fs, struct rfs_dinode *di,
			struct rfs_buf *ibuf, struct rfs_buf **out)
{
	struct rfs_node_id id = rfs_diff_id_of(di);
	u32 number;
	int ret = rfs_node_new(fs, &id, &number, out);

	if (ret)
		return ret;
	(*out)->checked = true;
	di->diff = cpu_to_le32(number);
	return rfs_diff_add_block(fs, di, ibuf, 1);
}

int rfs_diff_free(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *ibuf)
{
	int ret;

	if (!di->diff)
		return 0;
	ret = rfs_node_free(fs, le32_to_cpu(di->diff));
	if (ret)
		return ret;
	di->diff = 0;
	return rfs_diff_add_block(fs, di, ibuf, -1);
}

/* Returns the epoch that begins with a check-point. It is never 0. */
static u32 rfs_diff_epoch(u64 seq)
{
	u32 epoch = seq;

	return epoch ? epoch : ~0U;
}

static u32 rfs_diff_now(const struct rfs_fs *fs)
{
	return rfs_diff_epoch(fs->cp_seq + !!fs->commit);
}

/*
 * Says whether a piece is of no use any more: it was in the page of its block before the last
 * durable check-point. While a check-point is frozen and not durable, recovery needs the pieces
 * that died before it and those that died since.
 */
static bool rfs_piece_useless(const struct rfs_fs *fs, const struct rfs_piece *p)
{
	u32 died = le32_to_cpu(p->died);

	return died && died != rfs_diff_epoch(fs->cp_seq) &&
	       died != rfs_diff_now(fs);
}

/* Takes n bytes out of piece i, from the one at `from` on. */
static void rfs_diff_take(struct rfs_buf *buf, u32 i, u32 from, u32 n)
{
	struct rfs_piece *piece = buf->diff.piece;
	u32 low = rfs_diff_low(buf), at = le16_to_cpu(piece[i].at) + from, j;
	u8 *body = rfs_diff_body(buf);

	memmove(body + low + n, body + low, at - low);
	memset(body + low, 0, n);
	piece[i].len = cpu_to_le16(le16_to_cpu(piece[i].len) - n);
	for (j = 0; j <= i; j++)
		piece[j].at = cpu_to_le16(le16_to_cpu(piece[j].at) + n);
}

static void rfs_diff_remove(struct rfs_buf *buf, u32 i)
{
	struct rfs_piece *piece = buf->diff.piece;
	u32 n = rfs_diff_count(buf) - 1;

	rfs_diff_take(buf, i, 0, le16_to_cpu(piece[i].len));
	memmove(&piece[i], &piece[i + 1], (n - i) * sizeof(*piece));
	memset(&piece[n], 0, sizeof(*piece));
	buf->head.count = cpu_to_le16(n);
}

/* Splits piece i into two. The second one begins with the byte at `from`. */
static void rfs_diff_split(struct rfs_buf *buf, u32 i, u32 from)
{
	struct rfs_piece *piece = buf->diff.piece;
	u32 n = rfs_diff_count(buf);

	memmove(&piece[i + 1], &piece[i], (n - i) * sizeof(*piece));
	piece[i].len = cpu_to_le16(from);
	piece[i + 1].off = cpu_to_le64(le64_to_cpu(piece[i].off) + from);
	piece[i + 1].len = cpu_to_le16(le16_to_cpu(piece[i + 1].len) - from);
	piece[i + 1].at = cpu_to_le16(le16_to_cpu(piece[i].at) + from);
	buf->head.count = cpu_to_le16(n + 1);
}

static void rfs_diff_insert(struct rfs_buf *buf, u32 i, u64 off, u32 len,
			    u64 version, const u8 *bytes)
{
	struct rfs_piece *piece = buf->diff.piece;
	u32 n = rfs_diff_count(buf), low = rfs_diff_low(buf), end, j;
	u8 *body = rfs_diff_body(buf);

	end = i < n ? le16_to_cpu(piece[i].at) : RFS_BODY_BYTES;
	memmove(body + low - len, body + low, end - low);
	memcpy(body + end - len, bytes, len);
	for (j = 0; j < i; j++)
		piece[j].at = cpu_to_le16(le16_to_cpu(piece[j].at) - len);
	memmove(&piece[i + 1], &piece[i], (n - i) * sizeof(*piece));
	piece[i].off = cpu_to_le64(off);
	piece[i].version = cpu_to_le64(version);
	piece[i].len = cpu_to_le16(len);
	piece[i].at = cpu_to_le16(end - len);
	piece[i].died = 0;
	buf->head.count = cpu_to_le16(n + 1);
}

/*
 * Removes the bytes off..end - 1. A piece that has bytes on both sides becomes two. There must be
 * room for two entries more, or for one if no piece goes on behind the range: rfs_diff_needs()
 * counts them. Returns the place of a piece from off on.
 */
static u32 rfs_diff_clear(struct rfs_buf *buf, u64 off, u64 end)
{
	u32 i = 0;

	while (i < rfs_diff_count(buf)) {
		const struct rfs_piece *p = &buf->diff.piece[i];
		u64 first = le64_to_cpu(p->off), last = rfs_piece_end(p);

		if (last <= off) {
			i++;
		} else if (first >= end) {
			break;
		} else if (first < off) {
			rfs_diff_split(buf, i, off - first);
			i++;
		} else if (last > end) {
			rfs_diff_split(buf, i, end - first);
		} else {
			rfs_diff_remove(buf, i);
		}
	}
	return i;
}

#define SPLIT	2	/* entries more that a put needs at most, beside its own */

/* All pieces but the last are as long as a piece can be, and so split none. */
u32 rfs_diff_needs(u32 len)
{
	return len + (rfs_pieces_of(len) + SPLIT) * sizeof(struct rfs_piece);
}

u32 rfs_diff_room(const struct rfs_fs *fs, const struct rfs_buf *node)
{
	u32 room = RFS_BODY_BYTES, i;

	for (i = 0; node && i < rfs_diff_count(node); i++) {
		const struct rfs_piece *p = &node->diff.piece[i];

		if (!rfs_piece_useless(fs, p))
			room -= sizeof(*p) + le16_to_cpu(p->len);
	}
	return room;
}

bool rfs_diff_has(const struct rfs_fs *fs, const struct rfs_buf *node, u64 off,
		  u32 len)
{
	u32 i;

	for (i = 0; i < rfs_diff_count(node); i++) {
		const struct rfs_piece *p = &node->diff.piece[i];

		if (rfs_piece_end(p) > off && le64_to_cpu(p->off) < off + len &&
		    !rfs_piece_useless(fs, p))
			return true;
	}
	return false;
}

int rfs_diff_put(struct rfs_fs *fs, struct rfs_dinode *di, struct rfs_buf *ibuf,
		 u64 off, u32 len, u64 version, const u8 *bytes)
{
	struct rfs_buf *buf;
	u32 i;
	int ret = rfs_diff_get(fs, di, &buf);

	if (!ret && rfs_diff_needs(len) > rfs_diff_room(fs, buf))
		ret = -ENOSPC;
	if (!ret && !buf)
		ret = rfs_diff_new(fs, di, ibuf, &buf);
	if (ret)
		return ret;
	for (i = rfs_diff_count(buf); i-- > 0;)
		if (rfs_piece_useless(fs, &buf->diff.piece[i]))
			rfs_diff_remove(buf, i);
	i = rfs_diff_clear(buf, off, off + len);
	rfs_diff_insert(buf, i, off, len, version, bytes);
	rfs_buf_dirty(fs, buf);
	return 0;
}

int rfs_diff_overlay(struct rfs_fs *fs, const struct rfs_dinode *di, u64 block,
		     u8 *data, u32 *n)
{
	struct rfs_buf *buf;
	u32 i;
	int ret = rfs_diff_get(fs, di, &buf);

	*n = 0;
	if (ret || !buf)
		return ret;
	for (i = 0; i < rfs_diff_count(buf); i++) {
		const struct rfs_piece *p = &buf->diff.piece[i];
		u64 off = le64_to_cpu(p->off);

		if (p->died || off / RFS_BLOCK_BYTES != block)
			continue;
		if (data)
			memcpy(data + off % RFS_BLOCK_BYTES,
			       rfs_diff_body(buf) + le16_to_cpu(p->at),
			       le16_to_cpu(p->len));
		++*n;
	}
	return 0;
}

/* Notes that the node was changed. A node without any piece is freed. */
static int rfs_diff_changed(struct rfs_fs *fs, struct rfs_dinode *di,
			    struct rfs_buf *ibuf, struct rfs_buf *buf)
{
	if (!rfs_diff_count(buf))
		return rfs_diff_free(fs, di, ibuf);
	rfs_buf_dirty(fs, buf);
	return 0;
}

int rfs_diff_drop(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *ibuf, u64 block, u64 version, bool certain)
{
	struct rfs_buf *buf;
	bool any = false;
	u32 i;
	int ret = rfs_diff_get(fs, di, &buf);

	if (ret || !buf)
		return ret;
	for (i = rfs_diff_count(buf); i-- > 0;) {
		struct rfs_piece *p = &buf->diff.piece[i];

		if (le64_to_cpu(p->off) / RFS_BLOCK_BYTES != block ||
		    le64_to_cpu(p->version) >= version || p->died)
			continue;
		if (certain)
			rfs_diff_remove(buf, i);
		else
			p->died = cpu_to_le32(rfs_diff_now(fs));
		any = true;
	}
	fs->stats.merged += any;
	return any ? rfs_diff_changed(fs, di, ibuf, buf) : 0;
}

int rfs_diff_cut(struct rfs_fs *fs, struct rfs_dinode *di,
		 struct rfs_buf *ibuf, u64 from, u64 to)
{
	struct rfs_buf *buf;
	u32 i, kept = 0;
	int ret = rfs_diff_get(fs, di, &buf);

	if (ret || !buf)
		return ret;
	for (i = 0; i < rfs_diff_count(buf); i++) {
		const struct rfs_piece *p = &buf->diff.piece[i];

		kept += rfs_piece_end(p) <= from || le64_to_cpu(p->off) >= to;
	}
	if (kept == rfs_diff_count(buf))
		return 0;
	rfs_diff_clear(buf, from, to);
	return rfs_diff_changed(fs, di, ibuf, buf);
}
