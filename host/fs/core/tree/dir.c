// SPDX-License-Identifier: GPL-2.0-or-later
/* Directories: a B+ tree of name hashes in the blocks of the directory. */
#include "tree/tree.h"
#include "tree/dir.h"

static int block_get(struct rfs_fs *fs, struct rfs_dinode *di, u32 block,
		     struct rfs_buf **out)
{
	int ret = rfs_block_get(fs, le32_to_cpu(di->ino), RFS_DIR, block, out);

	if (ret)
		return ret;
	if (!*out || (*out)->head.level > 3 ||
	    le16_to_cpu((*out)->head.count) >
	    ((*out)->head.level ? RFS_DX_ENTRIES : RFS_BODY_BYTES))
		return -EUCLEAN;
	return 0;
}

static int block_new(struct rfs_fs *fs, struct rfs_dinode *di,
		     struct rfs_buf *ibuf, u8 level, u32 *block,
		     struct rfs_buf **out)
{
	u64 size = le64_to_cpu(di->size);
	int ret;

	*block = size / RFS_BLOCK_BYTES;
	ret = rfs_block_new(fs, le32_to_cpu(di->ino), RFS_DIR, level, *block,
			    out);
	if (ret)
		return ret;
	di->size = cpu_to_le64(size + RFS_BLOCK_BYTES);
	rfs_buf_dirty(fs, ibuf);
	return 0;
}

static u32 used(const struct rfs_buf *buf)
{
	return le16_to_cpu(buf->head.count);
}

static void set_used(struct rfs_buf *buf, u32 count)
{
	buf->head.count = cpu_to_le16(count);
}

static u8 *body(struct rfs_buf *buf)
{
	return buf->bytes + sizeof(struct rfs_head);
}

static struct rfs_dx *dx(struct rfs_buf *buf)
{
	return (struct rfs_dx *)body(buf);
}

/* The entry at a place of a leaf; NULL if it does not fit its block. */
static struct rfs_dirent *entry_at(struct rfs_buf *buf, u32 at)
{
	struct rfs_dirent *entry = (struct rfs_dirent *)(body(buf) + at);
	u32 rec;

	if (at + sizeof(*entry) > used(buf))
		return NULL;
	rec = le16_to_cpu(entry->rec);
	if (rec % 4 || rec < sizeof(*entry) + entry->len || !entry->len ||
	    at + rec > used(buf))
		return NULL;
	return entry;
}

#define MORE_BITS	22	/* of a hash, beside the 32 that an entry has */
#define HASH_BITS	(32 + MORE_BITS)

/*
 * What a directory is ordered by. Of 32 bits somebody who makes names by the
 * million finds enough that are alike to fill a leaf, which then cannot be split;
 * of 54 nobody does.
 */
static u64 name_hash(const struct rfs_fs *fs, const void *name, u32 len)
{
	return rfs_name_hash(fs, name, len) >> (64 - HASH_BITS);
}

static u32 top_of(u64 hash)
{
	return hash >> MORE_BITS;
}

static u64 entry_hash(const struct rfs_fs *fs, const struct rfs_dirent *entry)
{
	u64 more = name_hash(fs, entry->name, entry->len) &
		   ((1U << MORE_BITS) - 1);

	return (u64)le32_to_cpu(entry->hash) << MORE_BITS | more;
}

static u64 dx_hash(const struct rfs_dx *dx)
{
	return (u64)le32_to_cpu(dx->hash) << MORE_BITS | le32_to_cpu(dx->more);
}

/* Which child of a node has a hash; count is not 0. */
static u32 child_of(struct rfs_buf *buf, u64 hash)
{
	u32 low = 0, high = used(buf);

	while (high - low > 1) {
		u32 mid = (low + high) / 2;

		if (dx_hash(&dx(buf)[mid]) <= hash)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/*
 * The leaf for a hash; -ENOENT if the directory has no block. *above: lowest
 * hash of the leaf after it, 2^54 if it is the last.
 */
static int leaf_get(struct rfs_fs *fs, struct rfs_dinode *di, u64 hash,
		    struct rfs_buf **out, u64 *above)
{
	u32 block = 0, level = 4;
	int ret;

	*above = 1ULL << HASH_BITS;
	if (!di->size)
		return -ENOENT;
	for (;;) {
		u32 at;

		ret = block_get(fs, di, block, out);
		if (ret)
			return ret;
		if ((*out)->head.level >= level)
			return -EUCLEAN;
		level = (*out)->head.level;
		if (!level)
			return 0;
		if (!used(*out))
			return -EUCLEAN;
		at = child_of(*out, hash);
		if (at + 1 < used(*out))
			*above = dx_hash(&dx(*out)[at + 1]);
		block = le32_to_cpu(dx(*out)[at].block);
	}
}

static int dir_get(struct rfs_fs *fs, u32 dir, struct rfs_dinode **di,
		   struct rfs_buf **ibuf)
{
	int ret = rfs_iget(fs, dir, di, ibuf);

	if (!ret && !S_ISDIR(le32_to_cpu((*di)->mode)))
		return -ENOTDIR;
	return ret;
}

static int find(struct rfs_fs *fs, u32 dir, const void *name, u32 len,
		struct rfs_buf **buf, u32 *place)
{
	u64 hash = name_hash(fs, name, len), above;
	struct rfs_dirent *entry;
	struct rfs_dinode *di;
	u32 at;
	int ret;

	ret = dir_get(fs, dir, &di, buf);
	if (!ret)
		ret = leaf_get(fs, di, hash, buf, &above);
	if (ret)
		return ret;
	for (at = 0; at < used(*buf); at += le16_to_cpu(entry->rec)) {
		entry = entry_at(*buf, at);
		if (!entry)
			return -EUCLEAN;
		if (le32_to_cpu(entry->hash) > top_of(hash))
			break;
		if (le32_to_cpu(entry->hash) == top_of(hash) &&
		    entry->len == len &&
		    !memcmp(entry->name, name, len)) {
			*place = at;
			return 0;
		}
	}
	return -ENOENT;
}

int rfs_dir_find(struct rfs_fs *fs, u32 dir, const void *name, u32 len,
		 u32 *ino)
{
	struct rfs_buf *buf;
	u32 at;
	int ret = find(fs, dir, name, len, &buf, &at);

	if (!ret)
		*ino = le32_to_cpu(entry_at(buf, at)->ino);
	return ret;
}

/* The content of the root goes to a block below it. */
static int push_down(struct rfs_fs *fs, struct rfs_dinode *di,
		     struct rfs_buf *ibuf, struct rfs_buf *root)
{
	struct rfs_buf *buf;
	u32 block;
	int ret;

	if (root->head.level >= 3)
		return -ENOSPC;
	ret = block_new(fs, di, ibuf, root->head.level, &block, &buf);
	if (ret)
		return ret;
	memcpy(body(buf), body(root), RFS_BODY_BYTES);
	buf->head.count = root->head.count;
	memset(body(root), 0, RFS_BODY_BYTES);
	root->head.level++;
	set_used(root, 1);
	dx(root)[0].block = cpu_to_le32(block);
	rfs_buf_dirty(fs, root);
	return 0;
}

/* Has an entry another hash than the one before it? */
static bool differs(const struct rfs_fs *fs, const struct rfs_dirent *entry,
		    const struct rfs_dirent *before)
{
	return entry->hash != before->hash ||
	       entry_hash(fs, entry) != entry_hash(fs, before);
}

/*
 * Where a leaf is cut: between two hashes, as near to the middle as it gets.
 * One of which all are alike is damaged.
 */
static int leaf_cut(const struct rfs_fs *fs, struct rfs_buf *buf, u32 *cut,
		    u64 *hash)
{
	u32 at, half = used(buf) / 2;
	struct rfs_dirent *entry, *last = NULL;

	*cut = 0;
	for (at = 0; at < used(buf); at += le16_to_cpu(entry->rec)) {
		entry = entry_at(buf, at);
		if (!entry)
			return -EUCLEAN;
		if (last && differs(fs, entry, last)) {
			*cut = at;
			if (at >= half)
				break;
		}
		last = entry;
	}
	if (!*cut)
		return -EUCLEAN;
	*hash = entry_hash(fs, entry_at(buf, *cut));
	return 0;
}

/* The upper half of a block goes to a new one; its parent has room. */
static int split(struct rfs_fs *fs, struct rfs_dinode *di, struct rfs_buf *ibuf,
		 struct rfs_buf *parent, u32 at, struct rfs_buf *buf)
{
	u32 block, cut, size = 1;
	struct rfs_buf *other;
	u64 hash;
	int ret;

	if (buf->head.level) {
		size = sizeof(struct rfs_dx);
		cut = used(buf) / 2;
		hash = dx_hash(&dx(buf)[cut]);
	} else {
		ret = leaf_cut(fs, buf, &cut, &hash);
		if (ret)
			return ret;
	}
	ret = block_new(fs, di, ibuf, buf->head.level, &block, &other);
	if (ret)
		return ret;
	memcpy(body(other), body(buf) + cut * size, (used(buf) - cut) * size);
	set_used(other, used(buf) - cut);
	memset(body(buf) + cut * size, 0, (used(buf) - cut) * size);
	set_used(buf, cut);
	memmove(dx(parent) + at + 2, dx(parent) + at + 1,
		(used(parent) - at - 1) * sizeof(struct rfs_dx));
	dx(parent)[at + 1].hash = cpu_to_le32(top_of(hash));
	dx(parent)[at + 1].more = cpu_to_le32(hash & ((1U << MORE_BITS) - 1));
	dx(parent)[at + 1].block = cpu_to_le32(block);
	set_used(parent, used(parent) + 1);
	rfs_buf_dirty(fs, buf);
	rfs_buf_dirty(fs, parent);
	return 0;
}

/* The leaf for a hash, with room for an entry; splits on the way. */
static int leaf_with_room(struct rfs_fs *fs, struct rfs_dinode *di,
			  struct rfs_buf *ibuf, u64 hash, u32 rec,
			  struct rfs_buf **out)
{
	struct rfs_buf *parent = NULL, *buf;
	u32 block = 0, at = 0, level = 4, rounds = 64;
	bool full;
	int ret;

	if (!di->size)
		return block_new(fs, di, ibuf, 0, &block, out);
	for (;;) {
		ret = block_get(fs, di, block, &buf);
		if (ret)
			return ret;
		if (buf->head.level >= level)
			return -EUCLEAN;
		level = buf->head.level;
		full = level ? used(buf) == RFS_DX_ENTRIES :
			       used(buf) + rec > RFS_BODY_BYTES;
		if (!full && !level) {
			*out = buf;
			return 0;
		}
		if (full) {
			ret = parent ? split(fs, di, ibuf, parent, at, buf) :
				       push_down(fs, di, ibuf, buf);
			if (ret || !rounds--)
				return ret ? ret : -EUCLEAN;
			parent = NULL;
			block = 0;
			level = 4;
			continue;
		}
		if (!used(buf))
			return -EUCLEAN;
		at = child_of(buf, hash);
		block = le32_to_cpu(dx(buf)[at].block);
		parent = buf;
	}
}

int rfs_dir_add(struct rfs_fs *fs, u32 dir, const void *name, u32 len, u32 ino,
		u8 type)
{
	u64 hash = name_hash(fs, name, len);
	u32 rec = (sizeof(struct rfs_dirent) + len + 3) / 4 * 4;
	struct rfs_dirent *entry;
	struct rfs_dinode *di;
	struct rfs_buf *ibuf, *buf;
	u32 at;
	int ret;

	ret = dir_get(fs, dir, &di, &ibuf);
	if (!ret)
		ret = leaf_with_room(fs, di, ibuf, hash, rec, &buf);
	if (ret)
		return ret;
	for (at = 0; at < used(buf); at += le16_to_cpu(entry->rec)) {
		entry = entry_at(buf, at);
		if (!entry)
			return -EUCLEAN;
		if (le32_to_cpu(entry->hash) > top_of(hash) ||
		    (le32_to_cpu(entry->hash) == top_of(hash) &&
		     entry_hash(fs, entry) > hash))
			break;
	}
	memmove(body(buf) + at + rec, body(buf) + at, used(buf) - at);
	set_used(buf, used(buf) + rec);
	entry = (struct rfs_dirent *)(body(buf) + at);
	memset(entry, 0, rec);
	entry->ino = cpu_to_le32(ino);
	entry->hash = cpu_to_le32(top_of(hash));
	entry->len = len;
	entry->type = type;
	entry->rec = cpu_to_le16(rec);
	memcpy(entry->name, name, len);
	rfs_buf_dirty(fs, buf);
	return 0;
}

int rfs_dir_remove(struct rfs_fs *fs, u32 dir, const void *name, u32 len)
{
	struct rfs_buf *buf;
	u32 at, rec;
	int ret = find(fs, dir, name, len, &buf, &at);

	if (ret)
		return ret;
	rec = le16_to_cpu(entry_at(buf, at)->rec);
	memmove(body(buf) + at, body(buf) + at + rec, used(buf) - at - rec);
	set_used(buf, used(buf) - rec);
	memset(body(buf) + used(buf), 0, rec);
	rfs_buf_dirty(fs, buf);
	return 0;
}

int rfs_dir_set(struct rfs_fs *fs, u32 dir, const void *name, u32 len, u32 ino,
		u8 type)
{
	struct rfs_buf *buf;
	u32 at;
	int ret = find(fs, dir, name, len, &buf, &at);

	if (ret)
		return ret;
	entry_at(buf, at)->ino = cpu_to_le32(ino);
	entry_at(buf, at)->type = type;
	rfs_buf_dirty(fs, buf);
	return 0;
}

static void entry_out(const struct rfs_dirent *entry, struct rfs_entry *out)
{
	out->ino = le32_to_cpu(entry->ino);
	out->type = entry->type;
	out->len = entry->len;
	memcpy(out->name, entry->name, entry->len);
}

int rfs_dir_entry(struct rfs_fs *fs, u32 dir, u32 block, u32 *at,
		  struct rfs_entry *out)
{
	struct rfs_dirent *entry;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = dir_get(fs, dir, &di, &buf);

	if (!ret)
		ret = block_get(fs, di, block, &buf);
	if (ret)
		return ret;
	if (buf->head.level || *at >= used(buf))
		return -ENOENT;
	entry = entry_at(buf, *at);
	if (!entry)
		return -EUCLEAN;
	entry_out(entry, out);
	*at += le16_to_cpu(entry->rec);
	return 0;
}

#define POS_HASH	8	/* where the hash is in a position */

/*
 * The first entry of a leaf at or after *pos, which goes beyond it. A position is
 * a name's hash, and how many entries with the same come before, which only a
 * damaged leaf has: at most 252. So neither a split nor what becomes of other
 * names changes it.
 */
static int leaf_next(const struct rfs_fs *fs, struct rfs_buf *buf, u64 *pos,
		     struct rfs_dirent **out)
{
	u64 hash, last = ~0ULL, nth = 0, here;
	struct rfs_dirent *entry;
	u32 at;

	*out = NULL;
	for (at = 0; at < used(buf); at += le16_to_cpu(entry->rec)) {
		entry = entry_at(buf, at);
		if (!entry)
			return -EUCLEAN;
		if (le32_to_cpu(entry->hash) < top_of(*pos >> POS_HASH))
			continue;
		hash = entry_hash(fs, entry);
		nth = hash == last ? nth + 1 : 0;
		last = hash;
		here = hash << POS_HASH | nth;
		if (here < *pos)
			continue;
		*out = entry;
		*pos = here + 1;
		return 0;
	}
	return 0;
}

int rfs_dir_next(struct rfs_fs *fs, u32 dir, u64 pos, struct rfs_entry *out)
{
	u64 hash = pos >> POS_HASH, above, leaves;
	struct rfs_dirent *entry;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	ret = dir_get(fs, dir, &di, &buf);
	if (ret)
		return ret;
	leaves = le64_to_cpu(di->size) / RFS_BLOCK_BYTES;
	while (hash >> HASH_BITS == 0) {
		ret = leaf_get(fs, di, hash, &buf, &above);
		if (!ret)
			ret = leaf_next(fs, buf, &pos, &entry);
		if (ret)
			return ret;
		if (entry) {
			out->pos = pos;
			entry_out(entry, out);
			return 0;
		}
		/* nodes of a damaged tree may name one leaf again and again */
		if (above <= hash || !leaves--)
			return -EUCLEAN;
		hash = above;
	}
	return -ENOENT;
}
