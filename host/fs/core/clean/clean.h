/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cleaning: zones become free. */
#ifndef RFS_CLEAN_H
#define RFS_CLEAN_H

#include "space/rank.h"

/* Blocks of one group that cleaning moves together */
struct rfs_copy {
	u32 nr;			/* below RFS_COPIES, of those in use */
	u32 n;
	u32 stream;
	bool sent;		/* by @copy_write */
	struct rfs_oob oob[RFS_SUM_ENTRIES];
	u64 from[RFS_SUM_ENTRIES];
	bool cached[RFS_SUM_ENTRIES];
	bool there[RFS_SUM_ENTRIES];	/* its content is in memory */
	void *block[RFS_SUM_ENTRIES];
	void *memory;		/* of them, from the start of a page on */
};

#define RFS_COPIES	16

/* Those that nobody has changed are to be appended, with these stamps */
int rfs_copy_begin(struct rfs_fs *fs, struct rfs_copy *copy);

/* n of its blocks are where addr says */
int rfs_copy_done(struct rfs_fs *fs, const struct rfs_copy *copy, u32 first,
		  u32 n, const u64 *addr);

/* A block that is on both devices leaves flash; *ptr: its pointer, before and after */
int rfs_evict_block(struct rfs_fs *fs, u32 ino, u64 block, struct rfs_ptr *ptr);

/* Blocks of files that a zone has or had, until each() does not return 0 */
int rfs_zone_data(struct rfs_fs *fs, u32 nr,
		  int (*each)(void *arg, const struct rfs_oob *oob, u64 addr),
		  void *arg);

/*
 * evict.c: flash has room for so many blocks more of files and of metadata: of zones,
 * the coldest first, what is on flash alone is written home, and all of it leaves
 * flash. -ENOSPC: there is nothing more that could
 */
int rfs_spare(struct rfs_fs *fs, u64 data, u64 meta);

/*
 * Up to *most blocks that flash alone has are written home and stay on flash, of zones
 * that are closed. *most is less by those then; what is left of it says that there are
 * no more, or that a check-point came between.
 */
int rfs_destage(struct rfs_fs *fs, u32 *most);

/* Up to RFS_VICTIMS victims; -ENOENT if there is none */
int rfs_clean(struct rfs_fs *fs, enum rfs_clean how);

/*
 * Room is short, or zones lack, and zones of metadata have more dead blocks than
 * are written to get them back. That is what rfs_compact() does: nothing of files
 * is copied for it. checkpoint() is rfs_checkpoint(), or what the caller has for
 * it.
 */
bool rfs_compact_due(const struct rfs_fs *fs, bool zones_lack);
int rfs_compact(struct rfs_fs *fs,
		int (*checkpoint)(struct rfs_fs *fs, u32 flags));

/*
 * Few zones are free, and fewer than when it was last asked: *seen is the
 * caller's, ~0 at first.
 */
bool rfs_clean_due(const struct rfs_fs *fs, u32 *seen);

/* There is something to be cleaned while nobody is at work. */
bool rfs_idle_due(struct rfs_fs *fs);

/*
 * Clean as much as makes the check-point worth it that is to come after it: it
 * costs what is dirty, however many zones it makes free. 0: it is to come;
 * -ENOENT: early, there is too little that it would make free.
 */
int rfs_clean_some(struct rfs_fs *fs, enum rfs_clean how);

#endif
