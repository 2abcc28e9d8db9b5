// SPDX-License-Identifier: GPL-2.0-or-later
/* Usage of quotas is compared with all inodes, to check it or to make it. */
#include "space/space.h"
#include "tree/tree.h"
#include "tree/quota.h"
#include "ops/ops.h"

#define MAP_INODES	(RFS_MAP_ENTRIES * RFS_BLOCK_INODES)

struct usage {
	u64 key;		/* type and id, + 1; 0: an empty place */
	u64 blocks, inodes;
};

/*
 * The table is hashed while it is made, and then put in the order of its keys.
 */
struct usages {
	struct usage *at;
	u32 n, room;		/* a power of 2 */
};

static u64 rfs_qc_key_of(u32 type, u32 id)
{
	return ((u64)type << 32 | id) + 1;
}

static struct usage *rfs_qc_place_of(const struct usages *u, u64 key)
{
	u64 at = key * 0x9e3779b97f4a7c15ULL >> 32;

	while (u->at[at & (u->room - 1)].key &&
	       u->at[at & (u->room - 1)].key != key)
		at++;
	return &u->at[at & (u->room - 1)];
}

static int rfs_qc_grow(struct usages *u)
{
	struct usages more = { .n = u->n, .room = u->room ? 2 * u->room : 64 };
	u32 i;

	more.at = rfs_alloc(more.room * sizeof(*more.at));
	if (!more.at)
		return -ENOMEM;
	for (i = 0; i < u->room; i++)
		if (u->at[i].key)
			*rfs_qc_place_of(&more, u->at[i].key) = u->at[i];
	rfs_free(u->at);
	*u = more;
	return 0;
}

static int rfs_qc_count_inode(struct usages *u, const struct rfs_dinode *di)
{
	u32 type;

	for (type = 0; type < RFS_QUOTA_TYPES; type++) {
		u64 key = rfs_qc_key_of(type, rfs_owner(di, type));
		struct usage *place;

		if (2 * (u->n + 1) > u->room && rfs_qc_grow(u))
			return -ENOMEM;
		place = rfs_qc_place_of(u, key);
		u->n += !place->key;
		place->key = key;
		place->blocks += le64_to_cpu(di->blocks);
		place->inodes++;
	}
	return 0;
}

static int rfs_qc_by_key(const void *a, const void *b)
{
	const struct usage *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static void rfs_qc_put_in_order(struct usages *u)
{
	u32 i, n = 0;

	for (i = 0; i < u->room; i++)
		if (u->at[i].key)
			u->at[n++] = u->at[i];
	if (n)
		rfs_sort(u->at, n, sizeof(*u->at), rfs_qc_by_key);
}

/* An owner that is not in the table has nothing. */
static struct usage rfs_qc_find(const struct usages *u, u64 key)
{
	struct usage none = { .key = key };
	u32 low = 0, high = u->n;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (u->at[mid].key == key)
			return u->at[mid];
		if (u->at[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	return none;
}

/* An inode that cannot be read is not counted, and others report it. */
static int rfs_qc_count(struct rfs_fs *fs, struct usages *u)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 block, i;
	int ret;

	for (block = 0; block < fs->imap_blocks; block++) {
		if (!(rfs_timb(fs, block) >> RFS_ADDR_BITS))
			continue;
		for (i = 0; i < MAP_INODES; i++) {
			u32 ino = block * MAP_INODES + i;

			if (ino == RFS_QUOTA_INO)
				continue;
			ret = rfs_iget(fs, ino, &di, &buf);
			if (ret == -ENOMEM)
				return ret;
			ret = ret ? 0 : rfs_qc_count_inode(u, di);
			if (ret)
				return ret;
			if (i % RFS_BLOCK_INODES == RFS_BLOCK_INODES - 1)
				rfs_cache_trim(fs, fs->clean_max);
		}
	}
	return 0;
}

/* This is how the two are compared. */
struct compare {
	struct rfs_fs *fs;
	struct usages u;
	enum rfs_quota_fix fix;
	void (*differs)(void *arg, u32 type, u32 id, const struct rfs_quota *is,
			u64 blocks, u64 inodes);
	void *arg;
};

/*
 * Compares an entry with what was counted. *changed says that it was made to
 * fit.
 */
static void rfs_qc_compare(const struct compare *c, u32 type, u32 id,
			   struct rfs_quota *q, bool *changed)
{
	struct usage have = rfs_qc_find(&c->u, rfs_qc_key_of(type, id));

	if (le64_to_cpu(q->blocks) == have.blocks &&
	    le64_to_cpu(q->inodes) == have.inodes)
		return;
	if (c->differs)
		c->differs(c->arg, type, id, q, have.blocks, have.inodes);
	if (!c->fix)
		return;
	q->blocks = cpu_to_le64(have.blocks);
	q->inodes = cpu_to_le64(have.inodes);
	*changed = true;
}

/*
 * This comes before a block is changed or made. A repair writes no check-point before everything is
 * right, so it does not clean either.
 */
static int rfs_qc_room(const struct compare *c)
{
	struct rfs_fs *fs = c->fs;

	rfs_cache_trim(fs, fs->clean_max);
	if (c->fix == RFS_QUOTA_COUNT)
		return rfs_quota_room(fs);
	if (c->fix == RFS_QUOTA_REPAIR &&
	    rfs_used_with(fs, 0, 1 + RFS_HEIGHT_MAX) > fs->user_blocks)
		return -ENOSPC;
	return 0;
}

static int rfs_qc_compare_blocks(const struct compare *c)
{
	struct rfs_buf *buf;
	u64 off, id;
	u32 i;
	int ret;

	for (off = 0;; off++) {
		bool changed = false;

		ret = c->fix == RFS_QUOTA_COUNT ? rfs_qc_room(c) : 0;
		if (!ret)
			ret = rfs_quota_block(c->fs, &off, &buf);
		if (ret)
			return ret == -ENOENT ? 0 : ret;
		id = off / RFS_QUOTA_TYPES * RFS_QUOTA_ENTRIES;
		for (i = 0; i < RFS_QUOTA_ENTRIES; i++)
			if (id + i < RFS_QUOTA_GRACE)
				rfs_qc_compare(c, off % RFS_QUOTA_TYPES, id + i,
					       &buf->quotas.entry[i], &changed);
		if (changed)
			rfs_buf_dirty(c->fs, buf);
	}
}

/* Finds owners that have something, but no entry. */
static int rfs_qc_compare_missing(const struct compare *c)
{
	struct rfs_quota *q, none = { 0 };
	struct rfs_buf *buf;
	bool changed;
	u32 i;
	int ret;

	for (i = 0; i < c->u.n; i++) {
		u32 type = (c->u.at[i].key - 1) >> 32, id = c->u.at[i].key - 1;

		ret = rfs_quota_entry(c->fs, type, id, false, &q, &buf);
		if (!ret && !q && c->fix)
			ret = rfs_qc_room(c);
		if (!ret && !q && c->fix)
			ret = rfs_quota_entry(c->fs, type, id, true, &q, &buf);
		if (ret)
			return ret;
		changed = false;
		if (!q)
			rfs_qc_compare(c, type, id, &none, &changed);
		else if (c->fix)
			rfs_qc_compare(c, type, id, q, &changed);
		if (changed)
			rfs_buf_dirty(c->fs, buf);
	}
	return 0;
}

int rfs_quota_compare(struct rfs_fs *fs, enum rfs_quota_fix fix,
		      void (*differs)(void *arg, u32 type, u32 id,
				      const struct rfs_quota *is, u64 blocks,
				      u64 inodes),
		      void *arg)
{
	struct compare c = { .fs = fs, .fix = fix, .differs = differs,
			     .arg = arg };
	int ret = rfs_qc_count(fs, &c.u);

	if (!ret) {
		rfs_qc_put_in_order(&c.u);
		ret = rfs_qc_compare_blocks(&c);
	}
	if (!ret)
		ret = rfs_qc_compare_missing(&c);
	rfs_free(c.u.at);
	return ret;
}
