/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cleaning makes zones free. */
#ifndef RFS_CLEAN_H
#define RFS_CLEAN_H

#include "space/rank.h"

/*
 * Beside 0 and -errno, these say why cleaning, or what goes home, ends before it is through. Only
 * files of this folder see them.
 */
enum {
	/* A check-point has to come first, for room or for blocks that are held. */
	RFS_STOP = 1,
	/*
	 * Zones have failed and none was left for a copy, whose blocks stay where they are. What
	 * was emptied before has its copies elsewhere, and a check-point gives it back.
	 */
	RFS_NO_ZONE,
};

/* Cleaning moves these blocks of one group together. */
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
};

#define RFS_COPIES	16

/*
 * Gives a copy its blocks, whose content is whatever it is: only what has been read is looked at,
 * and zeroing would take longer than a round of cleaning. Each is a page of memory. After an error
 * it has some of them, which are freed like all.
 */
int rfs_copy_alloc_blocks(struct rfs_copy *copy);
void rfs_copy_free_blocks(struct rfs_copy *copy);

/* The blocks that nobody has changed are to be appended, and get their stamps here. */
int rfs_copy_begin(struct rfs_fs *fs, struct rfs_copy *copy);

/* n blocks of the copy have been written where addr says. */
int rfs_copy_done(struct rfs_fs *fs, const struct rfs_copy *copy, u32 first,
		  u32 n, const u64 *addr);

/* Reads the blocks that are not there, unless they cannot be read. */
int rfs_copy_read(struct rfs_fs *fs, struct rfs_copy *copy);

/*
 * Finds the pointer to a block of a file. *at is NULL if there is none, because the block was
 * deleted. What leads to it is read while others use the volume.
 */
int rfs_clean_look_up(struct rfs_fs *fs, const struct rfs_oob *from,
		      struct rfs_dinode **di, struct rfs_ptr **at,
		      struct rfs_buf **buf);

/* A block that is on both devices leaves flash. *ptr is its pointer before and after that. */
int rfs_evict_block(struct rfs_fs *fs, u32 ino, u64 block, struct rfs_ptr *ptr);

/* Calls each() for blocks of files that a zone has or had, until each() does not return 0. */
int rfs_zone_data(struct rfs_fs *fs, u32 nr,
		  int (*each)(void *arg, const struct rfs_oob *oob, u64 addr),
		  void *arg);

/*
 * evict.c is for hybrid volumes. checkpoint() is rfs_checkpoint(), or what the caller has for it.
 *
 * Says whether flash has no room for so many blocks more of files and of metadata.
 */
bool rfs_flash_lacks(const struct rfs_fs *fs, u64 data, u64 meta);

/*
 * Says whether flash has little room left, so that blocks should leave it before anybody waits for
 * that.
 */
bool rfs_flash_crowded(const struct rfs_fs *fs);

/*
 * All blocks of the coldest zone leave flash. Those that are on flash alone are written home first.
 * -ENOENT says that there is no zone that could be emptied.
 */
int rfs_evict_coldest(struct rfs_fs *fs,
		      int (*checkpoint)(struct rfs_fs *fs, u32 flags));

/*
 * This is the same for as many zones as it takes until flash has room for so many blocks, and for
 * `more` if any zone had to be emptied. -ENOSPC says that there is nothing more that could leave
 * flash.
 */
int rfs_spare(struct rfs_fs *fs, u64 data, u64 meta, u64 more,
	      int (*checkpoint)(struct rfs_fs *fs, u32 flags));

/* Once flash is full, one block in so many is to be spare. */
#define RFS_SPARE	16

/*
 * Writes up to *most blocks home that are only on flash, from zones that are closed. They stay on
 * flash, too. *most becomes less by those; what is left of it says that there are no more, or that
 * a check-point came between.
 */
int rfs_destage(struct rfs_fs *fs, u32 *most,
		int (*checkpoint)(struct rfs_fs *fs, u32 flags));

/*
 * Cleans up to RFS_VICTIMS victims; -ENOENT says that there is none. If zones fail until a copy
 * finds none and nothing was emptied before, it returns -EIO, but early or idle -ENOENT, since
 * nobody waits.
 */
int rfs_clean(struct rfs_fs *fs, enum rfs_clean how);

/*
 * Says whether room is short, or zones lack, and zones of metadata have more dead blocks than are
 * written to get them back. rfs_compact() does that: nothing of files is copied for it.
 * checkpoint() is rfs_checkpoint(), or what the caller has for it.
 */
bool rfs_compact_due(const struct rfs_fs *fs, bool zones_lack);
int rfs_compact(struct rfs_fs *fs,
		int (*checkpoint)(struct rfs_fs *fs, u32 flags));

/*
 * Says whether few zones are free, and fewer than when it was last asked. *seen is the caller's,
 * and ~0 at first.
 */
bool rfs_clean_due(const struct rfs_fs *fs, u32 *seen);

/* Says whether there is something to be cleaned while nobody is at work. */
bool rfs_idle_due(struct rfs_fs *fs);

/*
 * Cleans as much as makes the check-point worth it that is to come after it: that costs what is
 * dirty, however many zones it makes free. 0 says that it is to come. -ENOENT says, early, that it
 * would make too little free, or it is as for rfs_clean().
 */
int rfs_clean_some(struct rfs_fs *fs, enum rfs_clean how);

#endif
