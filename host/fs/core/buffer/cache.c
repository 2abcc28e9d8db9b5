// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Metadata blocks are kept in memory by type and number. Dirty ones stay until a check-point; clean
 * ones are dropped oldest first, between operations.
 */
#include "buffer/buffer.h"

/* All kinds of nodes share one space of numbers. */
static u8 rfs_buf_class(u8 type)
{
	return rfs_is_node(type) ? RFS_INDEX : type;
}

static struct rfs_buf **rfs_buf_bucket(struct rfs_fs *fs, u8 class, u64 off)
{
	u64 x = off * 0x9e3779b97f4a7c15ULL ^ class;

	return &fs->hash[(x ^ x >> 29 ^ x >> 47) & (fs->hash_size - 1)];
}

/*
 * Makes the table twice as large, as memory may hold millions of blocks. Without memory for it,
 * searches take longer.
 */
static void rfs_buf_hash_grow(struct rfs_fs *fs)
{
	u32 size = fs->hash_size, nr;
	struct rfs_buf **old = fs->hash, *buf, *next, **at;
	struct rfs_buf **table = rfs_alloc(2 * (size_t)size * sizeof(*table));

	if (!table)
		return;
	fs->hash = table;
	fs->hash_size = 2 * size;
	for (nr = 0; nr < size; nr++) {
		for (buf = old[nr]; buf; buf = next) {
			next = buf->hash_next;
			at = rfs_buf_bucket(fs, buf->class, buf->off);
			buf->hash_next = *at;
			*at = buf;
		}
	}
	rfs_free(old);
}

/* A block is about to leave the list, so the cursors go to its neighbours. */
static void rfs_list_leave(struct rfs_list *list, struct rfs_buf *buf)
{
	if (list->seen == &buf->list)
		list->seen = buf->list.prev;
	if (list->early == &buf->list)
		list->early = buf->list.next;
	list->count--;
}

static void rfs_buf_move(struct rfs_list *from, struct rfs_list *to,
			 struct rfs_buf *buf)
{
	rfs_list_leave(from, buf);
	list_move_tail(&buf->list, &to->bufs);
	to->count++;
}

/*
 * An operation looks for the same inode and leaf several times, so the last dirty one of a class is
 * kept. Dirty blocks stay, and have no place in a list that this would change.
 */
struct rfs_buf *rfs_buf_find(struct rfs_fs *fs, u8 type, u64 off)
{
	u8 class = rfs_buf_class(type);
	struct rfs_buf *buf = fs->found[class];

	if (buf && buf->off == off)
		return buf;
	buf = *rfs_buf_bucket(fs, class, off);
	while (buf && (buf->class != class || buf->off != off))
		buf = buf->hash_next;
	if (buf && buf->dirty)
		fs->found[class] = buf;
	else if (buf)
		list_move_tail(&buf->list, &fs->clean.bufs);
	return buf;
}

/* The block is not dirty any more, or leaves memory. */
static void rfs_buf_unfound(struct rfs_fs *fs, const struct rfs_buf *buf)
{
	if (fs->found[buf->class] == buf)
		fs->found[buf->class] = NULL;
}

static struct rfs_buf *rfs_buf_hash(struct rfs_fs *fs, u8 class, u64 off)
{
	struct rfs_buf *buf = rfs_alloc_nofail(sizeof(*buf)), **at;

	if (!buf)
		return NULL;
	if (fs->clean.count + fs->dirty.count >= fs->hash_size)
		rfs_buf_hash_grow(fs);
	at = rfs_buf_bucket(fs, class, off);
	buf->class = class;
	buf->off = off;
	buf->hash_next = *at;
	*at = buf;
	list_add_tail(&buf->list, &fs->clean.bufs);
	fs->clean.count++;
	return buf;
}

static void rfs_buf_unhash(struct rfs_fs *fs, struct rfs_buf *buf)
{
	struct rfs_buf **at = rfs_buf_bucket(fs, buf->class, buf->off);

	while (*at != buf)
		at = &(*at)->hash_next;
	*at = buf->hash_next;
	rfs_buf_unfound(fs, buf);
	rfs_list_leave(buf->dirty ? &fs->dirty : &fs->clean, buf);
	list_del(&buf->list);
	buf->gone = buf->early;
	if (!buf->early)
		rfs_free_nofail(buf);
}

static bool rfs_buf_matches(const struct rfs_fs *fs, const struct rfs_buf *buf)
{
	const struct rfs_head *head = &buf->head;
	u64 off = le64_to_cpu(head->off);

	return rfs_buf_class(head->type) == buf->class &&
	       rfs_head_ok(head, fs->volume, head->type) &&
	       buf->off == (rfs_is_node(head->type) ? off >> 32 : off);
}

/*
 * Where the caller allows it (rfs_fs.nowait), a block is read while nobody holds the volume. The
 * caller gets -EINPROGRESS and the block's address, reads it, and asks again. The block that he has
 * read counts if it is still expected at that address.
 */
static int rfs_buf_fill(struct rfs_fs *fs, struct rfs_buf *buf, u64 addr)
{
	const struct rfs_fetched *got = fs->fetched;

	if (!got || got->addr != addr) {
		fs->stats.waited_reads++;
		return fs->ops->read(fs->dev, addr, buf->bytes, NULL);
	}
	if (!got->error)
		memcpy(buf->bytes, got->data, RFS_BLOCK_BYTES);
	return got->error;
}

/*
 * Returns the block from memory, or else from addr. -EUCLEAN says that another block is there.
 * -EINPROGRESS is as above.
 */
int rfs_buf_read(struct rfs_fs *fs, u8 type, u64 off, u64 addr,
		 struct rfs_buf **out)
{
	struct rfs_buf *buf = rfs_buf_find(fs, type, off);
	int ret;

	*out = buf;
	if (buf)
		return 0;
	if (!rfs_addr_ok(fs, addr))
		return -EUCLEAN;
	if (fs->nowait && (!fs->fetched || fs->fetched->addr != addr)) {
		fs->missed = addr;
		return -EINPROGRESS;
	}
	buf = rfs_buf_hash(fs, rfs_buf_class(type), off);
	if (!buf)
		return -ENOMEM;
	ret = rfs_buf_fill(fs, buf, addr);
	if (!ret && !rfs_buf_matches(fs, buf))
		ret = -EUCLEAN;
	if (ret) {
		rfs_buf_unhash(fs, buf);
		return ret;
	}
	buf->addr = addr;
	*out = buf;
	return 0;
}

int rfs_buf_blank(struct rfs_fs *fs, u8 type, u32 ino, u32 gen, u64 off,
		  struct rfs_buf **out)
{
	struct rfs_buf *buf = rfs_buf_hash(fs, rfs_buf_class(type),
					   rfs_is_node(type) ? off >> 32 : off);

	if (!buf)
		return -ENOMEM;
	rfs_head_init(fs, &buf->head, type, ino, gen, off);
	*out = buf;
	return 0;
}

int rfs_buf_new(struct rfs_fs *fs, u8 type, u32 ino, u32 gen, u64 off,
		struct rfs_buf **out)
{
	int ret = rfs_buf_blank(fs, type, ino, gen, off, out);

	if (ret)
		return ret;
	if (type == RFS_IMAP || type == RFS_NMAP)
		rfs_maps_add(fs, 1);
	rfs_buf_dirty(fs, *out);
	return 0;
}

void rfs_buf_dirty(struct rfs_fs *fs, struct rfs_buf *buf)
{
	buf->sent = false;
	if (buf->dirty)
		return;
	rfs_buf_move(&fs->clean, &fs->dirty, buf);
	buf->dirty = true;
	fs->new_dirty += !buf->addr;
	fs->runs -= buf->run && fs->runs;
	buf->run = false;
}

static void rfs_buf_clean(struct rfs_fs *fs, struct rfs_buf *buf)
{
	buf->sent = false;
	rfs_buf_unfound(fs, buf);
	rfs_buf_move(&fs->dirty, &fs->clean, buf);
	buf->dirty = false;
}

void rfs_buf_folded(struct rfs_fs *fs, struct rfs_buf *buf)
{
	fs->new_dirty -= !buf->addr;
	buf->addr = 0;
	rfs_buf_clean(fs, buf);
	buf->run = true;
	fs->runs++;
}

/* Forgets a block, whether written or not. The caller takes care of the pointers to it. */
void rfs_buf_drop(struct rfs_fs *fs, struct rfs_buf *buf)
{
	if (buf->dirty)
		fs->new_dirty -= !buf->addr;
	rfs_buf_unhash(fs, buf);
}

void rfs_buf_placed(struct rfs_fs *fs, struct rfs_buf *buf, u64 addr)
{
	fs->new_dirty -= !buf->addr;
	buf->addr = addr;
}

void rfs_buf_written(struct rfs_fs *fs, struct rfs_buf *buf, u64 addr)
{
	rfs_buf_placed(fs, buf, addr);
	if (buf->sent)
		rfs_buf_clean(fs, buf);
}

void rfs_cache_trim(struct rfs_fs *fs, u32 keep)
{
	while (fs->clean.count > keep)
		rfs_buf_unhash(fs, list_first_entry(&fs->clean.bufs,
						    struct rfs_buf, list));
}
