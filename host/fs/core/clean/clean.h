/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cleaning: zones become free. */
#ifndef RFS_CLEAN_H
#define RFS_CLEAN_H

#include "space/rank.h"

/*
 * Why cleaning, or what goes home, ends before it is through, beside 0 and -errno. Only files
 * of this folder see these.
 */
enum {
	/* a check-point first: for room, or for blocks that are held */
	RFS_STOP = 1,
	/*
	 * Zones have failed and none was left for a copy: what it is of stays where it is. What
	 * was emptied before has its copies elsewhere, and a check-point gives it back.
	 */
	RFS_NO_ZONE,
};

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

/* Its blocks are read that are not there, but those that cannot be */
int rfs_copy_read(struct rfs_fs *fs, struct rfs_copy *copy);

/*
 * The pointer to a block of a file; NULL: there is none, it was deleted. What leads to
 * it is read while others use the volume.
 */
int rfs_clean_look_up(struct rfs_fs *fs, const struct rfs_oob *from,
		      struct rfs_dinode **di, struct rfs_ptr **at,
		      struct rfs_buf **buf);

/* A block that is on both devices leaves flash; *ptr: its pointer, before and after */
int rfs_evict_block(struct rfs_fs *fs, u32 ino, u64 block, struct rfs_ptr *ptr);

/* Blocks of files that a zone has or had, until each() does not return 0 */
int rfs_zone_data(struct rfs_fs *fs, u32 nr,
		  int (*each)(void *arg, const struct rfs_oob *oob, u64 addr),
		  void *arg);

/*
 * evict.c, for hybrid volumes. checkpoint() is rfs_checkpoint(), or what the caller has
 * for it.
 *
 * Would so many blocks more of files and of metadata be more than flash has room for?
 */
bool rfs_flash_lacks(const struct rfs_fs *fs, u64 data, u64 meta);

/* Is little left, so that blocks had better leave it before anybody waits for that? */
bool rfs_flash_crowded(const struct rfs_fs *fs);

/*
 * Of the zone that is the coldest, what is on flash alone is written home, and all of it
 * leaves flash. -ENOENT: there is no zone that could
 */
int rfs_evict_coldest(struct rfs_fs *fs,
		      int (*checkpoint)(struct rfs_fs *fs, u32 flags));

/*
 * The same of as many zones as it takes until flash has room for so many blocks, and
 * for `more` if any had to. -ENOSPC: there is nothing more that could leave it
 */
int rfs_spare(struct rfs_fs *fs, u64 data, u64 meta, u64 more,
	      int (*checkpoint)(struct rfs_fs *fs, u32 flags));

/* What part of flash is to be spare, once it is full: one in so many */
#define RFS_SPARE	16

/*
 * Up to *most blocks that flash alone has are written home and stay on flash, of zones
 * that are closed. *most is less by those then; what is left of it says that there are
 * no more, or that a check-point came between.
 */
int rfs_destage(struct rfs_fs *fs, u32 *most,
		int (*checkpoint)(struct rfs_fs *fs, u32 flags));

/*
 * Up to RFS_VICTIMS victims; -ENOENT if there is none. Where zones fail until a copy finds
 * none and nothing was emptied before: -EIO, but early or idle -ENOENT, since nobody waits.
 */
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
 * -ENOENT: early, there is too little that it would make free, or as rfs_clean() has it.
 */
int rfs_clean_some(struct rfs_fs *fs, enum rfs_clean how);

#endif
