// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Metadata blocks in memory, by type, inode and offset. Dirty ones stay until
 * a check-point; clean ones are dropped oldest first, between operations.
 */
#include "rfs.h"

static struct rfs_buf **bucket(struct rfs_fs *fs, u8 type, u32 ino, u64 off)
{
	u64 x = off * 0x9e3779b97f4a7c15ULL ^ ino * 0xc2b2ae3d27d4eb4fULL ^ type;

	return &fs->hash[(x ^ x >> 29 ^ x >> 47) % RFS_HASH];
}

static void put_last(struct rfs_list *list, struct rfs_buf *buf)
{
	buf->next = NULL;
	buf->prev = list->last;
	if (list->last)
		list->last->next = buf;
	else
		list->first = buf;
	list->last = buf;
	list->count++;
}

static void take_out(struct rfs_list *list, struct rfs_buf *buf)
{
	if (list->seen == buf)
		list->seen = buf->prev;
	if (buf->prev)
		buf->prev->next = buf->next;
	else
		list->first = buf->next;
	if (buf->next)
		buf->next->prev = buf->prev;
	else
		list->last = buf->prev;
	list->count--;
}

struct rfs_buf *rfs_buf_find(struct rfs_fs *fs, u8 type, u32 ino, u64 off)
{
	struct rfs_buf *buf = *bucket(fs, type, ino, off);

	while (buf && (buf->type != type || buf->ino != ino || buf->off != off))
		buf = buf->hash_next;
	if (buf && !buf->dirty) {
		take_out(&fs->clean, buf);
		put_last(&fs->clean, buf);
	}
	return buf;
}

static struct rfs_buf *insert(struct rfs_fs *fs, u8 type, u32 ino, u64 off)
{
	struct rfs_buf **at = bucket(fs, type, ino, off);
	struct rfs_buf *buf = rfs_alloc(sizeof(*buf));

	if (!buf)
		return NULL;
	buf->type = type;
	buf->ino = ino;
	buf->off = off;
	buf->hash_next = *at;
	*at = buf;
	put_last(&fs->clean, buf);
	return buf;
}

static void forget(struct rfs_fs *fs, struct rfs_buf *buf)
{
	struct rfs_buf **at = bucket(fs, buf->type, buf->ino, buf->off);

	while (*at != buf)
		at = &(*at)->hash_next;
	*at = buf->hash_next;
	take_out(buf->dirty ? &fs->dirty : &fs->clean, buf);
	rfs_free(buf);
}

/* From memory, else from addr; -EUCLEAN if something else is there. */
int rfs_buf_read(struct rfs_fs *fs, u8 type, u32 ino, u64 off, u64 addr,
		 struct rfs_buf **out)
{
	struct rfs_buf *buf = rfs_buf_find(fs, type, ino, off);
	int ret;

	*out = buf;
	if (buf)
		return 0;
	if (!rfs_addr_ok(fs, addr))
		return -EUCLEAN;
	buf = insert(fs, type, ino, off);
	if (!buf)
		return -ENOMEM;
	ret = fs->ops->read(fs->dev, addr, buf->bytes, NULL);
	if (!ret && (!rfs_head_ok(&buf->head, fs->volume, type) ||
		     le32_to_cpu(buf->head.ino) != ino ||
		     le64_to_cpu(buf->head.off) != off))
		ret = -EUCLEAN;
	if (ret) {
		forget(fs, buf);
		return ret;
	}
	buf->addr = addr;
	*out = buf;
	return 0;
}

/* A dirty block with a header and zeroes. */
int rfs_buf_new(struct rfs_fs *fs, u8 type, u32 ino, u32 gen, u64 off,
		struct rfs_buf **out)
{
	struct rfs_buf *buf = insert(fs, type, ino, off);

	if (!buf)
		return -ENOMEM;
	rfs_head_init(fs, &buf->head, type, ino, gen, off);
	rfs_buf_dirty(fs, buf);
	*out = buf;
	return 0;
}

void rfs_buf_dirty(struct rfs_fs *fs, struct rfs_buf *buf)
{
	buf->sent = false;
	if (buf->dirty)
		return;
	take_out(&fs->clean, buf);
	put_last(&fs->dirty, buf);
	buf->dirty = true;
	fs->new_dirty += !buf->addr;
}

/* Forget a block, written or not; who points to it is the caller's matter. */
void rfs_buf_drop(struct rfs_fs *fs, struct rfs_buf *buf)
{
	if (buf->dirty)
		fs->new_dirty -= !buf->addr;
	forget(fs, buf);
}

static void drop_listed(struct rfs_fs *fs, struct rfs_list *list, u8 type,
			u32 ino)
{
	struct rfs_buf *buf, *next;

	for (buf = list->first; buf; buf = next) {
		next = buf->next;
		if (buf->type == type && buf->ino == ino)
			rfs_buf_drop(fs, buf);
	}
}

/* Of a medium's number of blocks: it may be anything. */
void rfs_bufs_drop(struct rfs_fs *fs, u8 type, u32 ino, u64 blocks)
{
	struct rfs_buf *buf;

	if (blocks > fs->dirty.count + fs->clean.count) {
		drop_listed(fs, &fs->dirty, type, ino);
		drop_listed(fs, &fs->clean, type, ino);
		return;
	}
	while (blocks--) {
		buf = rfs_buf_find(fs, type, ino, blocks);
		if (buf)
			rfs_buf_drop(fs, buf);
	}
}

void rfs_buf_written(struct rfs_fs *fs, struct rfs_buf *buf, u64 addr)
{
	fs->new_dirty -= !buf->addr;
	buf->addr = addr;
	if (!buf->sent)
		return;
	buf->sent = false;
	take_out(&fs->dirty, buf);
	put_last(&fs->clean, buf);
	buf->dirty = false;
}

void rfs_cache_trim(struct rfs_fs *fs, u32 keep)
{
	while (fs->clean.count > keep)
		forget(fs, fs->clean.first);
}
