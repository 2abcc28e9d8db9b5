// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These functions repair inodes, and names in directories. The inodes that they lead to are walked
 * next.
 */
#include "tree/tree.h"
#include "tools/walk.h"

/* Says whether each name of a directory can be found, and nothing else. */
static int dir_ok(struct rfs_fs *fs, u32 dir, bool *ok)
{
	struct rfs_entry entry = { 0 };
	u32 found;
	int ret;

	*ok = false;
	for (;;) {
		ret = rfs_dir_next(fs, dir, entry.pos, &entry);
		if (ret)
			break;
		ret = rfs_dir_find(fs, dir, entry.name, entry.len, &found);
		if (ret || found != entry.ino)
			break;
	}
	*ok = ret == -ENOENT;
	return ret == -ENOMEM ? ret : 0;
}

struct entries {
	struct rfs_entry *entry;
	u32 n, room;
};

/*
 * Collects the names that the leaves of a directory have, one after the other.
 */
static int collect(struct rfs_walk *w, u32 dir, u64 blocks, struct entries *e)
{
	struct rfs_entry *more;
	u32 at, nr;
	int ret;

	/* Its size may be wrong. */
	blocks = min(blocks, (u64)w->fs->geo.zones * w->fs->geo.zone_blocks);
	for (nr = 0; nr < blocks; nr++) {
		for (at = 0;; ) {
			if (e->n == e->room) {
				e->room = e->room ? 2 * e->room : 64;
				more = rfs_alloc(e->room * sizeof(*more));
				if (!more)
					return -ENOMEM;
				if (e->n)
					memcpy(more, e->entry,
					       e->n * sizeof(*more));
				rfs_free(e->entry);
				e->entry = more;
			}
			ret = rfs_dir_entry(w->fs, dir, nr, &at,
					    &e->entry[e->n]);
			if (ret)
				break;
			e->n++;
		}
		if (ret == -ENOMEM)
			return ret;
	}
	return 0;
}

/* Makes the tree of a directory anew, with the names that can be read. */
static int rebuild_dir(struct rfs_walk *w, u32 dir)
{
	struct entries e = { 0 };
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 i, ino;
	int ret;

	ret = rfs_iget(w->fs, dir, &di, &buf);
	if (!ret)
		ret = collect(w, dir, le64_to_cpu(di->size) / RFS_BLOCK_BYTES,
			      &e);
	if (!ret)
		ret = rfs_map_prune(w->fs, dir, 0, ~0ULL, false);
	if (!ret) {
		di->size = 0;
		rfs_buf_dirty(w->fs, buf);
	}
	for (i = 0; !ret && i < e.n; i++) {
		struct rfs_entry *at = &e.entry[i];

		if (rfs_dir_find(w->fs, dir, at->name, at->len, &ino))
			ret = rfs_dir_add(w->fs, dir, at->name, at->len,
					  at->ino, at->type);
	}
	rfs_walk_lose(w, "directory %u: built anew, with %u names", dir, e.n);
	w->dirs_bad++;
	rfs_free(e.entry);
	return ret;
}

int rfs_walk_name(struct rfs_walk *w, u32 dir, const struct rfs_entry *e,
		  bool *keep)
{
	struct rfs_tally *tally, *above;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	bool is_dir;
	u8 type;
	int ret = rfs_iget(w->fs, e->ino, &di, &buf);

	*keep = false;
	if (ret) {
		rfs_walk_lose(w, "directory %u: \"%.*s\" is inode %u, which does not exist",
			      dir, e->len, e->name, e->ino);
		return ret == -ENOMEM ? ret : 0;
	}
	tally = rfs_tally(&w->tallies, e->ino);
	above = rfs_tally(&w->tallies, dir);
	if (!tally || !above)
		return -ENOMEM;
	is_dir = S_ISDIR(le32_to_cpu(di->mode));
	if (is_dir && (tally->links || e->ino == RFS_ROOT_INO)) {
		rfs_walk_lose(w, "directory %u: \"%.*s\" is a second name of directory %u",
			      dir, e->len, e->name, e->ino);
		return 0;
	}
	*keep = true;
	type = le32_to_cpu(di->mode) >> 12 & 15;
	if (e->type != type) {
		rfs_walk_say(w, "directory %u: \"%.*s\" has another type than inode %u",
			     dir, e->len, e->name, e->ino);
		ret = rfs_dir_set(w->fs, dir, e->name, e->len, e->ino, type);
		if (ret)
			return ret;
	}
	above->subdirs += is_dir;
	if (is_dir && le32_to_cpu(di->parent) != dir) {
		rfs_walk_say(w, "directory %u: its parent is not %u", e->ino,
			     dir);
		di->parent = cpu_to_le32(dir);
		rfs_buf_dirty(w->fs, buf);
	}
	return tally->links++ ? 0 : rfs_walk_push(w, e->ino);
}

static int walk_names(struct rfs_walk *w, u32 dir)
{
	struct rfs_entry entry = { 0 };
	bool keep;
	int ret;

	while ((ret = rfs_dir_next(w->fs, dir, entry.pos, &entry)) == 0) {
		ret = rfs_walk_name(w, dir, &entry, &keep);
		if (!ret && !keep) {
			ret = rfs_dir_remove(w->fs, dir, entry.name, entry.len);
			entry.pos--;	/* the next one is there now */
		}
		if (ret)
			return ret;
	}
	return ret == -ENOENT ? 0 : ret;
}

static int walk_inode(struct rfs_walk *w, u32 ino)
{
	u64 before = w->report->faults, blocks;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	bool ok, lacks;
	int ret = rfs_iget(w->fs, ino, &di, &buf);

	if (ret)
		return ret;
	if (di->height > RFS_HEIGHT_MAX) {
		rfs_walk_lose(w, "inode %u: height %u", ino, di->height);
		di->height = 0;
		if (S_ISLNK(le32_to_cpu(di->mode)))
			di->target = 0;
		else
			memset(di->node, 0, sizeof(di->node));
		rfs_buf_dirty(w->fs, buf);
	}
	ret = rfs_walk_blocks(w, di, buf, &blocks);
	if (ret)
		return ret;
	lacks = w->leaves && rfs_leaves_lacks(w->leaves, ino);
	if (lacks) {
		w->leaf_faults += w->report->faults - before;
		if (w->report->faults != before ||
		    blocks != le64_to_cpu(di->blocks))
			ret = rfs_leaves_unlike(w->leaves, ino);
	}
	if (blocks != le64_to_cpu(di->blocks)) {
		if (!lacks)
			rfs_walk_say(w, "inode %u: says %llu blocks, has %llu",
				     ino, U(le64_to_cpu(di->blocks)),
				     U(blocks));
		di->blocks = cpu_to_le64(blocks);
		rfs_buf_dirty(w->fs, buf);
	}
	if (ret)
		return ret;
	if (!S_ISDIR(le32_to_cpu(di->mode)))
		return 0;
	ret = before == w->report->faults ? dir_ok(w->fs, ino, &ok) : 0;
	if (!ret && (before != w->report->faults || !ok))
		ret = rebuild_dir(w, ino);
	return ret ? ret : walk_names(w, ino);
}

/* Walks the inodes that were pushed, and all inodes that names in them lead to. */
int rfs_walk_run(struct rfs_walk *w)
{
	int ret = 0;

	while (!ret && w->depth) {
		ret = walk_inode(w, w->stack[--w->depth]);
		rfs_cache_trim(w->fs, w->fs->clean_max);
	}
	return ret;
}

/* Each inode gets as many links as it has names. */
static int fix_links(struct rfs_walk *w, struct rfs_dinode *di,
		     struct rfs_buf *buf)
{
	struct rfs_tally *tally = rfs_tally(&w->tallies, le32_to_cpu(di->ino));
	u32 want;

	if (!tally)
		return -ENOMEM;
	want = S_ISDIR(le32_to_cpu(di->mode)) ? 2 + tally->subdirs :
	       tally->links;
	if (le32_to_cpu(di->nlink) == want ||
	    le32_to_cpu(di->ino) == RFS_QUOTA_INO ||
	    !rfs_walk_reached(w, le32_to_cpu(di->ino)))
		return 0;
	rfs_walk_say(w, "inode %u: says %u links, has %u",
		     le32_to_cpu(di->ino), le32_to_cpu(di->nlink), want);
	di->nlink = cpu_to_le32(want);
	rfs_buf_dirty(w->fs, buf);
	return 0;
}

int rfs_walk_links(struct rfs_walk *w)
{
	return rfs_each_inode(w, fix_links);
}
