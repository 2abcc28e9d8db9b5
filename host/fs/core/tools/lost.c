// SPDX-License-Identifier: GPL-2.0-or-later
/* Inodes that nobody names go to lost+found. */
#include <stdio.h>

#include "tree/tree.h"
#include "tools/walk.h"

#define LOST_FOUND	"lost+found"

/* No directory names this inode. It is kept with its content, or freed. */
static int sort_out(struct rfs_walk *w, struct rfs_dinode *di,
		    struct rfs_buf *buf)
{
	u32 ino = le32_to_cpu(di->ino);

	(void)buf;
	if (rfs_walk_reached(w, ino))
		return 0;
	if (di->nlink)
		return rfs_walk_push(w, ino);
	rfs_walk_say(w, "inode %u: has no name, and says so: freed", ino);
	return rfs_ifree(w->fs, ino);
}

/* Finds lost+found, which is made if there is none. */
static int lost_found(struct rfs_walk *w, u32 *ino)
{
	u64 now = w->fs->ops->now(w->fs->dev);
	struct rfs_tally *tally;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_dir_find(w->fs, RFS_ROOT_INO, LOST_FOUND,
			       strlen(LOST_FOUND), ino);

	if (ret != -ENOENT)
		return ret;
	ret = rfs_ialloc(w->fs, ino);
	if (!ret)
		ret = rfs_iset(w->fs, *ino, &di, &buf);
	if (ret)
		return ret;
	di->gen = cpu_to_le32((u32)rfs_next_version(w->fs, 1));
	di->mode = cpu_to_le32(S_IFDIR | 0700);
	di->nlink = cpu_to_le32(2);
	di->parent = cpu_to_le32(RFS_ROOT_INO);
	di->atime = cpu_to_le64(now);
	di->mtime = di->atime;
	di->ctime = di->atime;
	di->btime = di->atime;
	tally = rfs_tally(&w->tallies, RFS_ROOT_INO);
	if (!tally)
		return -ENOMEM;
	tally->subdirs++;
	tally = rfs_tally(&w->tallies, *ino);
	if (!tally)
		return -ENOMEM;
	tally->links++;
	return rfs_dir_add(w->fs, RFS_ROOT_INO, LOST_FOUND, strlen(LOST_FOUND),
			   *ino, S_IFDIR >> 12);
}

static int attach(struct rfs_walk *w, u32 ino)
{
	struct rfs_entry entry = { .ino = ino };
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	bool keep;
	u32 dir;
	int ret = lost_found(w, &dir);

	if (!ret)
		ret = rfs_iget(w->fs, ino, &di, &buf);
	if (ret)
		return ret;
	entry.type = le32_to_cpu(di->mode) >> 12 & 15;
	entry.len = snprintf((char *)entry.name, sizeof(entry.name), "#%u",
			     ino);
	if (S_ISDIR(le32_to_cpu(di->mode)))
		di->parent = cpu_to_le32(dir);
	rfs_buf_dirty(w->fs, buf);
	rfs_walk_lose(w, "inode %u: nobody names it, now %s/#%u", ino,
		      LOST_FOUND, ino);
	w->lost++;
	ret = rfs_dir_add(w->fs, dir, entry.name, entry.len, ino, entry.type);
	if (!ret)
		ret = rfs_walk_name(w, dir, &entry, &keep);
	return ret ? ret : rfs_walk_run(w);
}

/*
 * Marks inodes that are named in directories which are lost themselves: they are attached along
 * with these.
 */
static int mark_inner(struct rfs_walk *w, u32 dir)
{
	struct rfs_entry entry = { 0 };
	struct rfs_tally *tally;
	int ret;

	while ((ret = rfs_dir_next(w->fs, dir, entry.pos, &entry)) == 0) {
		if (entry.ino == dir ||
		    entry.ino / MAP_INODES >= w->fs->imap_blocks)
			continue;
		tally = rfs_tally(&w->tallies, entry.ino);
		if (!tally)
			return -ENOMEM;
		tally->inner = true;
	}
	return ret == -ENOMEM ? ret : 0;
}

int rfs_walk_lost(struct rfs_walk *w)
{
	u32 *lost, n, i, round;
	struct rfs_tally *tally;
	int ret = rfs_each_inode(w, sort_out);

	lost = w->stack;
	n = w->depth;
	w->stack = NULL;
	w->depth = 0;
	w->room = 0;
	for (i = 0; !ret && i < n; i++)
		ret = mark_inner(w, lost[i]);
	/* The second round attaches those that name each other in a circle. */
	for (round = 0; round < 2; round++) {
		for (i = 0; !ret && i < n; i++) {
			tally = rfs_tally(&w->tallies, lost[i]);
			if (!tally)
				ret = -ENOMEM;
			else if (!tally->links && (round || !tally->inner))
				ret = attach(w, lost[i]);
		}
	}
	rfs_free(lost);
	return ret;
}
