// SPDX-License-Identifier: GPL-2.0-or-later
/* This is the state of a walk over all blocks that a volume has in use, and its messages. */
#include <stdarg.h>
#include <stdio.h>

#include "tree/tree.h"
#include "tools/walk.h"

static void say(struct rfs_walk *w, const char *format, va_list args)
{
	char text[400];

	vsnprintf(text, sizeof(text), format, args);
	w->report->faults++;
	if (w->report->say)
		w->report->say(w->report->arg, text);
}

void rfs_walk_say(struct rfs_walk *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(w, format, args);
	va_end(args);
}

void rfs_walk_lose(struct rfs_walk *w, const char *format, ...)
{
	va_list args;

	w->report->losses++;
	va_start(args, format);
	say(w, format, args);
	va_end(args);
}

/* No block is in use, until the walk marks it. */
int rfs_walk_init(struct rfs_walk *w, struct rfs_fs *fs,
		  struct rfs_report *report)
{
	size_t blocks = (size_t)fs->geo.zones * fs->geo.zone_blocks;
	u32 nr;

	memset(w, 0, sizeof(*w));
	w->fs = fs;
	w->report = report;
	w->there = report->there;
	w->seen = rfs_alloc(blocks / 8 + 1);
	fs->referenced = rfs_alloc(fs->nmap_blocks * (RFS_MAP_ENTRIES / 8));
	w->block = rfs_alloc(RFS_BLOCK_BYTES);
	if (!w->seen || !fs->referenced || !w->block ||
	    rfs_tallies_init(fs, &w->tallies))
		return -ENOMEM;
	for (nr = 0; nr < fs->geo.zones; nr++) {
		fs->zone[nr].live = 0;
		fs->zone[nr].maps = 0;
		fs->zone[nr].sum_time = 0;
		fs->zone[nr].sum_wcount = 0;
	}
	fs->live = 0;
	w->prealloc = fs->prealloc;
	fs->prealloc = 0;
	fs->data_live = 0;
	fs->runs = 0;
	return 0;
}

void rfs_walk_exit(struct rfs_walk *w)
{
	rfs_tallies_exit(&w->tallies);
	rfs_free(w->seen);
	rfs_free(w->fs->referenced);
	w->fs->referenced = NULL;
	rfs_free(w->block);
	rfs_free(w->stack);
}

static bool seen(const struct rfs_walk *w, u64 addr)
{
	return w->seen[addr / 8] & 1 << addr % 8;
}

bool rfs_walk_free(const struct rfs_walk *w, u64 addr)
{
	const struct rfs_fs *fs = w->fs;
	u64 zone = addr / fs->geo.zone_blocks;

	return rfs_addr_ok(fs, addr) && zone >= RFS_CP_ZONES &&
	       addr % fs->geo.zone_blocks < fs->zone[zone].wp && !seen(w, addr);
}

void rfs_walk_claim(struct rfs_walk *w, u64 addr)
{
	w->seen[addr / 8] |= 1 << addr % 8;
}

int rfs_walk_push(struct rfs_walk *w, u32 ino)
{
	u32 *more;

	if (w->depth == w->room) {
		w->room = w->room ? 2 * w->room : 256;
		more = rfs_alloc(w->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		if (w->depth)
			memcpy(more, w->stack, w->depth * sizeof(*more));
		rfs_free(w->stack);
		w->stack = more;
	}
	w->stack[w->depth++] = ino;
	return 0;
}

/* Pushes the inodes that no name leads to: the root, and inode 1 if it exists. */
int rfs_walk_push_tops(struct rfs_walk *w)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_walk_push(w, RFS_ROOT_INO);

	if (!ret && !rfs_iget(w->fs, RFS_QUOTA_INO, &di, &buf))
		ret = rfs_walk_push(w, RFS_QUOTA_INO);
	return ret;
}

int rfs_each_inode(struct rfs_walk *w,
		   int (*visit)(struct rfs_walk *w, struct rfs_dinode *di,
				struct rfs_buf *buf))
{
	struct rfs_fs *fs = w->fs;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 block, i;
	int ret;

	for (block = 0; block < fs->imap_blocks; block++) {
		if (!rfs_timb(fs, block))
			continue;
		for (i = 0; i < MAP_INODES; i++) {
			ret = rfs_iget(fs, block * MAP_INODES + i, &di, &buf);
			if (!ret)
				ret = visit(w, di, buf);
			if (ret == -ENOMEM || ret == -EIO)
				return ret;
			if (i % RFS_BLOCK_INODES == RFS_BLOCK_INODES - 1)
				rfs_cache_trim(fs, fs->clean_max);
		}
	}
	return 0;
}

bool rfs_walk_reached(struct rfs_walk *w, u32 ino)
{
	struct rfs_tally *tally = rfs_tally(&w->tallies, ino);

	return ino <= RFS_ROOT_INO || !tally || tally->links;
}
