/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A block of the node map that has leaves as runs can be lost. Then these functions make the leaves
 * anew of the metadata of their pages, for rescan.c. See "Rescan" in design.md.
 */
#ifndef RFS_LEAVES_H
#define RFS_LEAVES_H

#include "tools/tools.h"

/* This was found of a block of the node map that has leaves. */
struct rfs_said {
	u64 addr;		/* 0: there is none */
	u64 stamp;		/* when it was written */
	u32 seq;		/* number of its check-point */
	bool outdated;		/* there was another, which is not there */
};

/* An inode leads to this leaf, but no block of the node map is sure to have its runs. */
struct rfs_lost_leaf {
	u32 ino, gen, place, number;
	u64 size;		/* of the file */
	u64 newest;		/* version of its pages */
	u64 all;		/* of the inode's blocks, those of such leaves */
	u64 blocks;		/* in this leaf: in the older one, or if that is known */
	bool known;
	bool older;		/* there is an older one */
	bool outdated;		/* and there are pages to which it does not lead, or: */
	bool reset;		/* pages to which it leads were reset */
	bool others;		/* the number is another's: the inode was deleted */
	bool made;
};

struct rfs_found_page {
	struct rfs_oob oob;
	u64 addr;
	bool doubtful;		/* recovery may have dropped it with its transaction */
};

struct rfs_leaves {
	struct rfs_fs *fs;
	u64 last;		/* stamp of the last block of the check-point */
	const struct rfs_said *said;	/* from fs->nmap_leaves on */
	const u8 *there;	/* a bit each block that was written, and can be read */
	const u64 *late;	/* ascending: what check-points wrote when no page was in flight */
	u32 lates;
	struct rfs_lost_leaf *leaf;
	struct rfs_found_page *page;
	u32 n, room, pages, page_room;
	u64 made;		/* leaves */
	u64 unlike;		/* inodes with more blocks than they had, or fewer */
	u32 *ino;		/* of both; when all are found ascending, each once */
	u32 inos, ino_room;
	struct rfs_buf *block;	/* a leaf in the making */
};

int rfs_leaves_init(struct rfs_leaves *l, struct rfs_fs *fs);
void rfs_leaves_exit(struct rfs_leaves *l);
/* Notes an inode's leaves whose runs are in no block of the node map that is sure. */
int rfs_leaves_want(struct rfs_leaves *l, const struct rfs_dinode *di);
/* This comes before pages are noted, when all leaves have been asked for. */
void rfs_leaves_wanted(struct rfs_leaves *l);
/* Notes a page. Its content may be damaged. */
int rfs_leaves_page(struct rfs_leaves *l, const struct rfs_oob *oob, u64 addr);
/* Enters the leaves into the node map. */
int rfs_leaves_make(struct rfs_leaves *l);
/* Says whether an inode has a leaf whose runs are in no block of the node map that is sure. */
bool rfs_leaves_lacks(const struct rfs_leaves *l, u32 ino);
/* Says whether one of its leaves was made. */
bool rfs_leaves_made(const struct rfs_leaves *l, u32 ino);
/* Forgets an inode that does not exist any more, so that its leaves do not count. */
void rfs_leaves_forget(struct rfs_leaves *l, u32 ino);
/*
 * Notes an inode that has lost blocks, or has not as many as it had. It is reported like those
 * whose leaves were made.
 */
int rfs_leaves_unlike(struct rfs_leaves *l, u32 ino);
void rfs_leaves_found(struct rfs_leaves *l);

#endif
