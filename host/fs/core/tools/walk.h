/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is a walk over all blocks that a volume has in use, for repair.c and rescan.c. Wrong parts
 * are left out, and the report says so.
 */
#ifndef RFS_WALK_H
#define RFS_WALK_H

#include "tree/dir.h"
#include "tools/leaves.h"

#define U(x)		((unsigned long long)(x))
#define MAP_INODES	(RFS_MAP_ENTRIES * RFS_BLOCK_INODES)

struct rfs_walk {
	struct rfs_fs *fs;
	struct rfs_report *report;
	u8 *seen;		/* a bit each block of the volume */
	const u8 *there;	/* the same of those that were written, or NULL */
	struct rfs_tallies tallies;
	u8 *block;
	u32 *stack;		/* inodes that are to be walked */
	u32 depth, room;
	u64 prealloc;		/* blocks, as the check-point had it */
	u64 dirs_bad;		/* directories of which names may lack */
	u64 lost;		/* inodes that went to lost+found */
	u64 forgotten;		/* rescan.c: that were deleted */
	u64 leaf_faults;	/* rescan.c: of inodes that have leaves of which nothing is sure */
	u64 whole_blocks;	/* of the last inode that rfs_walk_whole() found whole */
	u64 doubtful;		/* rescan.c: that may have been */
	struct rfs_leaves *leaves;	/* rescan.c: that may have to be made of pages; or NULL */
};

/* Counts a fault in the report, with a message. */
void rfs_walk_say(struct rfs_walk *w, const char *format, ...);
/* Counts a fault by which something is lost, or found again elsewhere. */
void rfs_walk_lose(struct rfs_walk *w, const char *format, ...);
int rfs_walk_init(struct rfs_walk *w, struct rfs_fs *fs,
		  struct rfs_report *report);
void rfs_walk_exit(struct rfs_walk *w);
/* Says whether a block at addr can be in use, and nobody has claimed it. */
bool rfs_walk_free(const struct rfs_walk *w, u64 addr);
void rfs_walk_claim(struct rfs_walk *w, u64 addr);
/* Says whether the walk has found something that leads to the node with this number. */
bool rfs_walk_referenced(const struct rfs_walk *w, u32 number);
/* Removes words of blocks of inodes that cannot be read. */
int rfs_walk_unreadable(struct rfs_walk *w);
/* Walks inode map, node map, TIMB, zone table and blocks of inodes. */
int rfs_walk_maps(struct rfs_walk *w);
/* Frees numbers that nothing leads to. It comes after everything was walked. */
int rfs_walk_nodes(struct rfs_walk *w);
int rfs_walk_push(struct rfs_walk *w, u32 ino);
int rfs_walk_push_tops(struct rfs_walk *w);
int rfs_walk_run(struct rfs_walk *w);
/* Walks the nodes and blocks of an inode. *blocks becomes the number of its blocks. */
int rfs_walk_blocks(struct rfs_walk *w, struct rfs_dinode *di,
		    struct rfs_buf *buf, u64 *blocks);
/* Walks one name of a directory. *keep says whether it may stay. */
int rfs_walk_name(struct rfs_walk *w, u32 dir, const struct rfs_entry *e,
		  bool *keep);
/* Moves inodes without a name to lost+found, or frees them. */
int rfs_walk_lost(struct rfs_walk *w);
bool rfs_walk_reached(struct rfs_walk *w, u32 ino);
/* Says whether all blocks of an inode are there, and no other inode has claimed them. */
int rfs_walk_whole(struct rfs_walk *w, struct rfs_dinode *di, bool *ok);
int rfs_walk_links(struct rfs_walk *w);
/* Calls visit for each inode. Its errors other than -ENOMEM and -EIO do not end this. */
int rfs_each_inode(struct rfs_walk *w,
		   int (*visit)(struct rfs_walk *w, struct rfs_dinode *di,
				struct rfs_buf *buf));

#endif
