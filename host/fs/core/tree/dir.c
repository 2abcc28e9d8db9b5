// SPDX-License-Identifier: GPL-2.0-or-later
/* A directory is a B+ tree of name hashes in its blocks. */
#include "tree/tree.h"
#include "tree/dir.h"

/* Reads a block of a directory. Its content may still be anything. */
static int rfs_dir_read_block(struct rfs_fs *fs, struct rfs_dinode *di,
			      u32 block, struct rfs_buf **out)
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

static int rfs_dir_block_new(struct rfs_fs *fs, struct rfs_dinode *di,
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

static u32 rfs_dir_used(const struct rfs_buf *buf)
{
	return le16_to_cpu(buf->head.count);
}

/* Entries may have moved. */
static void rfs_dir_set_used(struct rfs_buf *buf, u32 count)
{
	buf->head.count = cpu_to_le16(count);
	buf->found_at = 0;
	buf->found_top = 0;
}

static u8 *rfs_dir_body(struct rfs_buf *buf)
{
	return buf->bytes + sizeof(struct rfs_head);
}

static struct rfs_dx *rfs_dx_of(struct rfs_buf *buf)
{
	return (struct rfs_dx *)rfs_dir_body(buf);
}

/* Returns the entry at a place of a leaf, or NULL if it does not fit its block. */
static struct rfs_dirent *rfs_dir_look_at(struct rfs_buf *buf, u32 at)
{
	struct rfs_dirent *entry = (struct rfs_dirent *)(rfs_dir_body(buf) +
							 at);
	u32 rec;

	if (at + sizeof(*entry) > rfs_dir_used(buf))
		return NULL;
	rec = le16_to_cpu(entry->rec);
	if (rec % 4 || rec < sizeof(*entry) + entry->len || !entry->len ||
	    at + rec > rfs_dir_used(buf))
		return NULL;
	return entry;
}

/*
 * Each leaf that was read is checked once. Adding and removing entries keeps it correct. From then
 * on its entries are used without a check.
 */
static int rfs_dir_check_leaf(struct rfs_buf *buf)
{
	struct rfs_dirent *entry;
	u32 at;

	for (at = 0; at < rfs_dir_used(buf); at += le16_to_cpu(entry->rec)) {
		entry = rfs_dir_look_at(buf, at);
		if (!entry)
			return -EUCLEAN;
	}
	buf->checked = true;
	return 0;
}

/* The leaf was checked before. */
static struct rfs_dirent *rfs_dir_entry_at(struct rfs_buf *buf, u32 at)
{
	return (struct rfs_dirent *)(rfs_dir_body(buf) + at);
}

static int rfs_dir_block_get(struct rfs_fs *fs, struct rfs_dinode *di,
			     u32 block, struct rfs_buf **out)
{
	int ret = rfs_dir_read_block(fs, di, block, out);

	if (ret || (*out)->head.level || (*out)->checked)
		return ret;
	return rfs_dir_check_leaf(*out);
}

/*
 * Returns the first entry with the upper part of a hash, or after it, or rfs_dir_used() if there is
 * none. Linux looks a name up before it makes or removes it, so the place is kept, and the next
 * search of the same name begins there.
 */
static u32 rfs_dir_first_of(struct rfs_buf *buf, u32 top)
{
	u32 at = top >= buf->found_top ? buf->found_at : 0, end = rfs_dir_used(buf);
	struct rfs_dirent *entry;

	for (; at < end; at += le16_to_cpu(entry->rec)) {
		entry = rfs_dir_entry_at(buf, at);
		if (le32_to_cpu(entry->hash) >= top)
			break;
	}
	buf->found_at = at;
	buf->found_top = top;
	return at;
}

#define MORE_BITS	22	/* of a hash, beside the 32 that an entry has */
#define HASH_BITS	(32 + MORE_BITS)

/*
 * Returns the hash by which a directory is ordered. With 32 bits, somebody who makes names by the
 * million finds enough with the same hash to fill a leaf, which then cannot be split. With 54 bits
 * nobody does.
 */
static u64 rfs_dir_name_hash(const struct rfs_fs *fs, const void *name, u32 len)
{
	return rfs_name_hash(fs, name, len) >> (64 - HASH_BITS);
}

static u32 rfs_dir_top_of(u64 hash)
{
	return hash >> MORE_BITS;
}

static u64 rfs_dir_entry_hash(const struct rfs_fs *fs,
			      const struct rfs_dirent *entry)
{
	u64 more = rfs_dir_name_hash(fs, entry->name, entry->len) &
		   ((1U << MORE_BITS) - 1);

	return (u64)le32_to_cpu(entry->hash) << MORE_BITS | more;
}

static u64 rfs_dx_hash(const struct rfs_dx *dx)
{
	return (u64)le32_to_cpu(dx->hash) << MORE_BITS | le32_to_cpu(dx->more);
}

/* Finds the child of a node in whose range a hash is. count is not 0. */
static u32 rfs_dir_child_of(struct rfs_buf *buf, u64 hash)
{
	u32 low = 0, high = rfs_dir_used(buf);

	while (high - low > 1) {
		u32 mid = (low + high) / 2;

		if (rfs_dx_hash(&rfs_dx_of(buf)[mid]) <= hash)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/*
 * Finds the leaf for a hash. -ENOENT says that the directory has no block. *above becomes the
 * lowest hash of the leaf after it, or 2^54 if it is the last.
 */
static int rfs_dir_leaf_get(struct rfs_fs *fs, struct rfs_dinode *di, u64 hash,
			    struct rfs_buf **out, u64 *above)
{
	u32 block = 0, level = 4;
	int ret;

	*above = 1ULL << HASH_BITS;
	if (!di->size)
		return -ENOENT;
	for (;;) {
		u32 at;

		ret = rfs_dir_block_get(fs, di, block, out);
		if (ret)
			return ret;
		if ((*out)->head.level >= level)
			return -EUCLEAN;
		level = (*out)->head.level;
		if (!level)
			return 0;
		if (!rfs_dir_used(*out))
			return -EUCLEAN;
		at = rfs_dir_child_of(*out, hash);
		if (at + 1 < rfs_dir_used(*out))
			*above = rfs_dx_hash(&rfs_dx_of(*out)[at + 1]);
		block = le32_to_cpu(rfs_dx_of(*out)[at].block);
	}
}

static int rfs_dir_get(struct rfs_fs *fs, u32 dir, struct rfs_dinode **di,
		       struct rfs_buf **ibuf)
{
	int ret = rfs_iget(fs, dir, di, ibuf);

	if (!ret && !S_ISDIR(le32_to_cpu((*di)->mode)))
		return -ENOTDIR;
	return ret;
}

static int rfs_dir_search(struct rfs_fs *fs, u32 dir, const void *name, u32 len,
			  struct rfs_buf **buf, u32 *place)
{
	u64 hash = rfs_dir_name_hash(fs, name, len), above;
	struct rfs_dirent *entry;
	struct rfs_dinode *di;
	u32 at;
	int ret;

	ret = rfs_dir_get(fs, dir, &di, buf);
	if (!ret)
		ret = rfs_dir_leaf_get(fs, di, hash, buf, &above);
	if (ret)
		return ret;
	for (at = rfs_dir_first_of(*buf, rfs_dir_top_of(hash)); at <
	     rfs_dir_used(*buf); at += le16_to_cpu(entry->rec)) {
		entry = rfs_dir_entry_at(*buf, at);
		if (le32_to_cpu(entry->hash) > rfs_dir_top_of(hash))
			break;
		if (le32_to_cpu(entry->hash) == rfs_dir_top_of(hash) &&
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
	int ret = rfs_dir_search(fs, dir, name, len, &buf, &at);

	if (!ret)
		*ino = le32_to_cpu(rfs_dir_entry_at(buf, at)->ino);
	return ret;
}

/* Moves the content of the root to a block below it. */
static int rfs_dir_push_down(struct rfs_fs *fs, struct rfs_dinode *di,
			     struct rfs_buf *ibuf, struct rfs_buf *root)
{
	struct rfs_buf *buf;
	u32 block;
	int ret;

	if (root->head.level >= 3)
		return -ENOSPC;
	ret = rfs_dir_block_new(fs, di, ibuf, root->head.level, &block, &buf);
	if (ret)
		return ret;
	memcpy(rfs_dir_body(buf), rfs_dir_body(root), RFS_BODY_BYTES);
	buf->head.count = root->head.count;
	memset(rfs_dir_body(root), 0, RFS_BODY_BYTES);
	root->head.level++;
	rfs_dir_set_used(root, 1);
	rfs_dx_of(root)[0].block = cpu_to_le32(block);
	rfs_buf_dirty(fs, root);
	return 0;
}

/* Says whether an entry has another hash than the one before it. */
static bool rfs_dir_differs(const struct rfs_fs *fs,
			    const struct rfs_dirent *entry,
			    const struct rfs_dirent *before)
{
	return entry->hash != before->hash ||
	       rfs_dir_entry_hash(fs, entry) != rfs_dir_entry_hash(fs, before);
}

/*
 * Finds the place where a leaf is cut: between two hashes, as near to the middle as possible. A
 * leaf whose hashes are all equal is damaged.
 */
static int rfs_dir_leaf_cut(const struct rfs_fs *fs, struct rfs_buf *buf,
			    u32 *cut, u64 *hash)
{
	u32 at, half = rfs_dir_used(buf) / 2;
	struct rfs_dirent *entry, *last = NULL;

	*cut = 0;
	for (at = 0; at < rfs_dir_used(buf); at += le16_to_cpu(entry->rec)) {
		entry = rfs_dir_entry_at(buf, at);
		if (last && rfs_dir_differs(fs, entry, last)) {
			*cut = at;
			if (at >= half)
				break;
		}
		last = entry;
	}
	if (!*cut)
		return -EUCLEAN;
	*hash = rfs_dir_entry_hash(fs, rfs_dir_entry_at(buf, *cut));
	return 0;
}

/* Moves the upper half of a block to a new one. Its parent has room. */
static int rfs_dir_split(struct rfs_fs *fs, struct rfs_dinode *di,
			 struct rfs_buf *ibuf,
			 struct rfs_buf *parent, u32 at, struct rfs_buf *buf)
{
	u32 block, cut, size = 1;
	struct rfs_buf *other;
	u64 hash;
	int ret;

	if (buf->head.level) {
		size = sizeof(struct rfs_dx);
		cut = rfs_dir_used(buf) / 2;
		hash = rfs_dx_hash(&rfs_dx_of(buf)[cut]);
	} else {
		ret = rfs_dir_leaf_cut(fs, buf, &cut, &hash);
		if (ret)
			return ret;
	}
	ret = rfs_dir_block_new(fs, di, ibuf, buf->head.level, &block, &other);
	if (ret)
		return ret;
	memcpy(rfs_dir_body(other), rfs_dir_body(buf) + cut * size,
	       (rfs_dir_used(buf) - cut) * size);
	rfs_dir_set_used(other, rfs_dir_used(buf) - cut);
	memset(rfs_dir_body(buf) + cut * size, 0, (rfs_dir_used(buf) - cut) *
	       size);
	rfs_dir_set_used(buf, cut);
	memmove(rfs_dx_of(parent) + at + 2, rfs_dx_of(parent) + at + 1,
		(rfs_dir_used(parent) - at - 1) * sizeof(struct rfs_dx));
	rfs_dx_of(parent)[at + 1].hash = cpu_to_le32(rfs_dir_top_of(hash));
	rfs_dx_of(parent)[at + 1].more = cpu_to_le32(hash & ((1U << MORE_BITS) -
							     1));
	rfs_dx_of(parent)[at + 1].block = cpu_to_le32(block);
	rfs_dir_set_used(parent, rfs_dir_used(parent) + 1);
	rfs_buf_dirty(fs, buf);
	rfs_buf_dirty(fs, parent);
	return 0;
}

/* Finds the leaf for a hash, and splits blocks on the way so that it has room for an entry. */
static int rfs_dir_leaf_with_room(struct rfs_fs *fs, struct rfs_dinode *di,
				  struct rfs_buf *ibuf, u64 hash, u32 rec,
				  struct rfs_buf **out)
{
	struct rfs_buf *parent = NULL, *buf;
	u32 block = 0, at = 0, level = 4, rounds = 64;
	bool full;
	int ret;

	if (!di->size)
		return rfs_dir_block_new(fs, di, ibuf, 0, &block, out);
	for (;;) {
		ret = rfs_dir_block_get(fs, di, block, &buf);
		if (ret)
			return ret;
		if (buf->head.level >= level)
			return -EUCLEAN;
		level = buf->head.level;
		full = level ? rfs_dir_used(buf) == RFS_DX_ENTRIES :
			       rfs_dir_used(buf) + rec > RFS_BODY_BYTES;
		if (!full && !level) {
			*out = buf;
			return 0;
		}
		if (full) {
			ret = parent ? rfs_dir_split(fs, di, ibuf, parent, at,
						     buf) :
				       rfs_dir_push_down(fs, di, ibuf, buf);
			if (ret || !rounds--)
				return ret ? ret : -EUCLEAN;
			parent = NULL;
			block = 0;
			level = 4;
			continue;
		}
		if (!rfs_dir_used(buf))
			return -EUCLEAN;
		at = rfs_dir_child_of(buf, hash);
		block = le32_to_cpu(rfs_dx_of(buf)[at].block);
		parent = buf;
	}
}

int rfs_dir_add(struct rfs_fs *fs, u32 dir, const void *name, u32 len, u32 ino,
		u8 type)
{
	u64 hash = rfs_dir_name_hash(fs, name, len);
	u32 rec = (sizeof(struct rfs_dirent) + len + 3) / 4 * 4;
	struct rfs_dirent *entry;
	struct rfs_dinode *di;
	struct rfs_buf *ibuf, *buf;
	u32 at;
	int ret;

	ret = rfs_dir_get(fs, dir, &di, &ibuf);
	if (!ret)
		ret = rfs_dir_leaf_with_room(fs, di, ibuf, hash, rec, &buf);
	if (ret)
		return ret;
	for (at = rfs_dir_first_of(buf, rfs_dir_top_of(hash)); at <
	     rfs_dir_used(buf); at += le16_to_cpu(entry->rec)) {
		entry = rfs_dir_entry_at(buf, at);
		if (le32_to_cpu(entry->hash) > rfs_dir_top_of(hash) ||
		    rfs_dir_entry_hash(fs, entry) > hash)
			break;
	}
	memmove(rfs_dir_body(buf) + at + rec, rfs_dir_body(buf) + at,
		rfs_dir_used(buf) - at);
	rfs_dir_set_used(buf, rfs_dir_used(buf) + rec);
	entry = (struct rfs_dirent *)(rfs_dir_body(buf) + at);
	memset(entry, 0, rec);
	entry->ino = cpu_to_le32(ino);
	entry->hash = cpu_to_le32(rfs_dir_top_of(hash));
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
	int ret = rfs_dir_search(fs, dir, name, len, &buf, &at);

	if (ret)
		return ret;
	rec = le16_to_cpu(rfs_dir_entry_at(buf, at)->rec);
	memmove(rfs_dir_body(buf) + at, rfs_dir_body(buf) + at + rec,
		rfs_dir_used(buf) - at - rec);
	rfs_dir_set_used(buf, rfs_dir_used(buf) - rec);
	memset(rfs_dir_body(buf) + rfs_dir_used(buf), 0, rec);
	rfs_buf_dirty(fs, buf);
	return 0;
}

int rfs_dir_set(struct rfs_fs *fs, u32 dir, const void *name, u32 len, u32 ino,
		u8 type)
{
	struct rfs_buf *buf;
	u32 at;
	int ret = rfs_dir_search(fs, dir, name, len, &buf, &at);

	if (ret)
		return ret;
	rfs_dir_entry_at(buf, at)->ino = cpu_to_le32(ino);
	rfs_dir_entry_at(buf, at)->type = type;
	rfs_buf_dirty(fs, buf);
	return 0;
}

static void rfs_dir_entry_out(const struct rfs_dirent *entry,
			      struct rfs_entry *out)
{
	out->ino = le32_to_cpu(entry->ino);
	out->type = entry->type;
	out->len = entry->len;
	memcpy(out->name, entry->name, entry->len);
}

#ifndef __KERNEL__	/* for the tools */
int rfs_dir_entry(struct rfs_fs *fs, u32 dir, u32 block, u32 *at,
		  struct rfs_entry *out)
{
	struct rfs_dirent *entry;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_dir_get(fs, dir, &di, &buf);

	/* The entries before one that does not fit can be told. */
	if (!ret)
		ret = rfs_dir_read_block(fs, di, block, &buf);
	if (ret)
		return ret;
	if (buf->head.level || *at >= rfs_dir_used(buf))
		return -ENOENT;
	entry = rfs_dir_look_at(buf, *at);
	if (!entry)
		return -EUCLEAN;
	rfs_dir_entry_out(entry, out);
	*at += le16_to_cpu(entry->rec);
	return 0;
}
#endif

#define POS_HASH	8	/* where the hash is in a position */

/*
 * Finds the first entry of a leaf at or after *pos, and moves *pos beyond it. A position is a
 * name's hash, and the number of entries before it with the same hash: at most 252, and above 0
 * only in a damaged leaf. So neither a split nor a change of other names changes it.
 */
static int rfs_dir_leaf_next(const struct rfs_fs *fs, struct rfs_buf *buf,
			     u64 *pos, struct rfs_dirent **out)
{
	u64 hash, last = ~0ULL, nth = 0, here;
	struct rfs_dirent *entry;
	u32 at;

	*out = NULL;
	for (at = rfs_dir_first_of(buf, rfs_dir_top_of(*pos >> POS_HASH)); at <
	     rfs_dir_used(buf); at += le16_to_cpu(entry->rec)) {
		entry = rfs_dir_entry_at(buf, at);
		hash = rfs_dir_entry_hash(fs, entry);
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

	ret = rfs_dir_get(fs, dir, &di, &buf);
	if (ret)
		return ret;
	leaves = le64_to_cpu(di->size) / RFS_BLOCK_BYTES;
	while (hash >> HASH_BITS == 0) {
		ret = rfs_dir_leaf_get(fs, di, hash, &buf, &above);
		if (!ret)
			ret = rfs_dir_leaf_next(fs, buf, &pos, &entry);
		if (ret)
			return ret;
		if (entry) {
			out->pos = pos;
			rfs_dir_entry_out(entry, out);
			return 0;
		}
		/* Nodes of a damaged tree may name one leaf again and again. */
		if (above <= hash || !leaves--)
			return -EUCLEAN;
		hash = above;
	}
	return -ENOENT;
}
