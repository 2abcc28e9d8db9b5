// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An inode has one block of extended attributes, with entries one after the other in the order they
 * were set. A change is a record with the name and the value, which ops/xattrs.c makes.
 */
#include "tree/tree.h"
#include "tree/xattr.h"

static u32 rfs_xattr_entry_bytes(u32 len, u32 value_len)
{
	return (sizeof(struct rfs_xattr) + len + value_len + 3) / 4 * 4;
}

static u32 rfs_xattr_bytes_of(const struct rfs_xattr *x)
{
	return rfs_xattr_entry_bytes(x->len, le16_to_cpu(x->value_len));
}

/*
 * Finds the entry at *at of used bytes, and moves *at behind it. -ENODATA says that there is none.
 */
static int rfs_xattr_step(const u8 *body, u32 used, u32 *at,
			  const struct rfs_xattr **out)
{
	const struct rfs_xattr *x = (const struct rfs_xattr *)(body + *at);

	if (used > RFS_BODY_BYTES || *at > used)
		return -EUCLEAN;
	if (*at == used)
		return -ENODATA;
	if (used - *at < sizeof(*x) || !x->len || used - *at <
	    rfs_xattr_bytes_of(x))
		return -EUCLEAN;
	*at += rfs_xattr_bytes_of(x);
	*out = x;
	return 0;
}

/* Finds the entry of a name. *at becomes the end of the entry. */
static int rfs_xattr_find(const u8 *body, u32 used, const void *name, u32 len,
			  u32 *at, const struct rfs_xattr **out)
{
	int ret;

	*at = 0;
	do {
		ret = rfs_xattr_step(body, used, at, out);
	} while (!ret && ((*out)->len != len ||
			  memcmp((*out)->name, name, len)));
	return ret;
}

static void rfs_xattr_put(u8 *body, u32 *used, const void *name, u32 len,
			  const void *value, u32 value_len)
{
	struct rfs_xattr *x = (struct rfs_xattr *)(body + *used);

	x->len = len;
	x->value_len = cpu_to_le16(value_len);
	memcpy(x->name, name, len);
	if (value_len)
		memcpy(x->name + len, value, value_len);
	*used += rfs_xattr_bytes_of(x);
}

static u8 *rfs_xattr_body_of(struct rfs_buf *buf)
{
	return buf->bytes + sizeof(struct rfs_head);
}

static struct rfs_node_id rfs_xattr_id_of(const struct rfs_dinode *di)
{
	return (struct rfs_node_id){ .type = RFS_XATTR,
				     .ino = le32_to_cpu(di->ino),
				     .gen = le32_to_cpu(di->gen) };
}

/* Finds an inode's block. *out is NULL if it has none. */
static int rfs_xattr_block_get(struct rfs_fs *fs, const struct rfs_dinode *di,
			       struct rfs_buf **out)
{
	struct rfs_node_id id = rfs_xattr_id_of(di);

	*out = NULL;
	if (!di->xattr)
		return 0;
	return rfs_node_get(fs, &id, le32_to_cpu(di->xattr), out);
}

static int rfs_xattr_add_block(struct rfs_fs *fs, struct rfs_dinode *di,
			       struct rfs_buf *ibuf, int delta)
{
	rfs_buf_dirty(fs, ibuf);
	return rfs_blocks_add(fs, di, delta);
}

static int rfs_xattr_block_new(struct rfs_fs *fs, struct rfs_dinode *di,
			       struct rfs_buf *ibuf, struct rfs_buf **out)
{
	struct rfs_node_id id = rfs_xattr_id_of(di);
	u32 number;
	int ret = rfs_node_new(fs, &id, &number, out);

	if (ret)
		return ret;
	di->xattr = cpu_to_le32(number);
	return rfs_xattr_add_block(fs, di, ibuf, 1);
}

int rfs_xattr_drop(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf)
{
	int ret;

	if (!di->xattr)
		return 0;
	ret = rfs_node_free(fs, le32_to_cpu(di->xattr));
	if (ret)
		return ret;
	di->xattr = 0;
	return rfs_xattr_add_block(fs, di, ibuf, -1);
}

int rfs_xattr_fill(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf, const u8 *image, u32 bytes)
{
	const struct rfs_xattr *x;
	struct rfs_buf *buf;
	u32 at = 0;
	int ret;

	if (!bytes)
		return 0;
	if (bytes > RFS_BODY_BYTES)
		return -EUCLEAN;
	ret = rfs_xattr_block_new(fs, di, ibuf, &buf);
	if (ret)
		return ret;
	memcpy(rfs_xattr_body_of(buf), image, bytes);
	buf->head.count = cpu_to_le16(bytes);
	do {
		ret = rfs_xattr_step(rfs_xattr_body_of(buf), bytes, &at, &x);
	} while (!ret);
	return ret == -ENODATA ? 0 : ret;
}

int rfs_xattr_pack(__le32 *image, u32 *used, const char *name, const void *value,
		   u32 len)
{
	if (*used + rfs_xattr_entry_bytes(strlen(name), len) > RFS_BODY_BYTES)
		return -ENOSPC;
	rfs_xattr_put((u8 *)image, used, name, strlen(name), value, len);
	return 0;
}

/* Cuts out the entry that ends at `end`. */
static u32 rfs_xattr_cut(u8 *body, u32 used, u32 end, u32 bytes)
{
	memmove(body + end - bytes, body + end, used - end);
	memset(body + used - bytes, 0, bytes);
	return used - bytes;
}

static int rfs_xattr_change(struct rfs_fs *fs, struct rfs_dinode *di,
			    struct rfs_buf *ibuf, const struct rfs_rec *rec,
			    const u8 *name, const u8 *value)
{
	u32 len = le16_to_cpu(rec->len1), value_len = le16_to_cpu(rec->len2);
	bool gone = rec->flags & RFS_REC_REMOVE;
	u32 used, end = 0, old = 0, more;
	const struct rfs_xattr *x;
	struct rfs_buf *buf;
	int ret = rfs_xattr_block_get(fs, di, &buf);

	if (ret)
		return ret;
	used = buf ? le16_to_cpu(buf->head.count) : 0;
	ret = buf ? rfs_xattr_find(rfs_xattr_body_of(buf), used, name, len,
				   &end, &x) : -ENODATA;
	if (!ret)
		old = rfs_xattr_bytes_of(x);
	else if (ret != -ENODATA || gone)
		return ret;
	more = gone ? 0 : rfs_xattr_entry_bytes(len, value_len);
	if (used - old + more > RFS_BODY_BYTES)
		return -ENOSPC;
	if (used - old + more == 0)
		return rfs_xattr_drop(fs, di, ibuf);
	if (!buf) {
		ret = rfs_xattr_block_new(fs, di, ibuf, &buf);
		if (ret)
			return ret;
	}
	if (old)
		used = rfs_xattr_cut(rfs_xattr_body_of(buf), used, end, old);
	if (!gone)
		rfs_xattr_put(rfs_xattr_body_of(buf), &used, name, len, value,
			      value_len);
	buf->head.count = cpu_to_le16(used);
	rfs_buf_dirty(fs, buf);
	return 0;
}

int rfs_xattr_apply(struct rfs_fs *fs, const struct rfs_rec *rec,
		    const u8 *name, const u8 *value)
{
	struct rfs_dinode *di;
	struct rfs_buf *ibuf;
	int ret;

	if (!rec->len1)
		return -EUCLEAN;
	ret = rfs_iget(fs, le32_to_cpu(rec->ino), &di, &ibuf);
	if (!ret)
		ret = rfs_xattr_change(fs, di, ibuf, rec, name, value);
	if (ret)
		return ret;
	if (rec->mode)
		di->mode = cpu_to_le32((le32_to_cpu(di->mode) & S_IFMT) |
				       (le32_to_cpu(rec->mode) & ~S_IFMT));
	di->ctime = rec->time;
	rfs_buf_dirty(fs, ibuf);
	return 0;
}

int rfs_xattr_next(struct rfs_fs *fs, u32 ino, u32 *at,
		   const struct rfs_xattr **out)
{
	struct rfs_buf *ibuf, *buf;
	struct rfs_dinode *di;
	int ret = rfs_iget(fs, ino, &di, &ibuf);

	*out = NULL;
	if (!ret)
		ret = rfs_xattr_block_get(fs, di, &buf);
	if (ret || !buf)
		return ret;
	ret = rfs_xattr_step(rfs_xattr_body_of(buf),
			     le16_to_cpu(buf->head.count), at, out);
	return ret == -ENODATA ? 0 : ret;
}

/* Returns 0 and the entry, or -ENODATA. */
static int rfs_xattr_look_up(struct rfs_fs *fs, u32 ino, const char *name,
			     const struct rfs_xattr **out)
{
	struct rfs_buf *ibuf, *buf;
	struct rfs_dinode *di;
	u32 at;
	int ret = rfs_iget(fs, ino, &di, &ibuf);

	if (!ret)
		ret = rfs_xattr_block_get(fs, di, &buf);
	if (ret)
		return ret;
	return buf ? rfs_xattr_find(rfs_xattr_body_of(buf),
				    le16_to_cpu(buf->head.count), name,
				    strlen(name), &at, out) : -ENODATA;
}

int rfs_xattr_get(struct rfs_fs *fs, u32 ino, const char *name, void *value,
		  u32 room)
{
	const struct rfs_xattr *x;
	int ret = rfs_xattr_look_up(fs, ino, name, &x), len;

	if (ret)
		return ret;
	len = le16_to_cpu(x->value_len);
	if (!room)
		return len;
	if ((u32)len > room)
		return -ERANGE;
	memcpy(value, x->name + x->len, len);
	return len;
}
