/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These functions are for programs and tests, not for the module: they make, check and repair a
 * volume.
 */
#ifndef RFS_TOOLS_H
#define RFS_TOOLS_H

#include "volume/volume.h"

/* This tells a volume from others, beside its size. The keys are random, and nobody else's. */
struct rfs_id {
	u8 uuid[16];
	u8 hash_key[16];
	u8 summary_key[16];
	bool pieces;		/* its files may have pieces of blocks */
	u32 ways;		/* zones that make full bandwidth; 0 as 1 */
	bool runs;		/* leaves of its files may be runs */
	bool replica;		/* the slow device has a copy of the metadata */
};

/*
 * Makes the volume. geo->zones may be fewer than the device has. The zones are reset. With
 * geo->slow it is hybrid. It returns -ENOSPC if rfs_layout() asks for more, -EMFILE if
 * !rfs_limits_ok(), -EFBIG if !rfs_slow_fits(), and -EOPNOTSUPP for a replica without a slow device
 * or without page metadata.
 */
int rfs_mkfs(const struct rfs_dev_ops *ops, void *dev,
	     const struct rfs_geometry *geo, const struct rfs_id *id,
	     const char *label);

/*
 * Returns how many zones a new volume stripes over, at most `ways`: as many as the drive allows,
 * and as leave room for files. 1 says that nothing is striped.
 */
u32 rfs_ways_fit(const struct rfs_geometry *geo, u32 cap, u32 ways, bool runs);

/* Returns the blocks of files that geo->slow has room for. */
u64 rfs_slow_room(const struct rfs_geometry *geo, const struct rfs_id *id);
bool rfs_slow_fits(const struct rfs_geometry *geo, const struct rfs_id *id);

/*
 * Makes a new superblock for zones of cap blocks. -ENOSPC says that there can be none, see
 * rfs_layout().
 */
int rfs_super_make(struct rfs_fs *fs, u32 cap, const struct rfs_id *id,
		   const char *label, u64 created);
int rfs_root_make(struct rfs_fs *fs);	/* an empty one */

/* Writes n whole blocks as one transaction. len is the valid bytes of the last. */
int rfs_write(struct rfs_fs *fs, u32 ino, u64 block, u32 n,
	      const void *const *data, u32 len);

/*
 * Writes any bytes, block by block; each block is seen as before it or after. A small part of a
 * block is a piece, if that can be.
 */
int rfs_write_bytes(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes,
		    u64 len);

#define RFS_WRITE_MAX	(1U << 20)	/* bytes of a write that is seen whole or not */

/*
 * Writes up to RFS_WRITE_MAX bytes, from any byte on. After a power cut all of them are seen or
 * none. -EFBIG says that there are more bytes.
 */
int rfs_write_atomic(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes,
		     u64 len);

/*
 * Makes a page of the block of a file with most bytes in pieces. -ENOENT says that there is none.
 */
int rfs_merge(struct rfs_fs *fs, u32 ino);

/* Reads a block as a reader sees it. A hole reads as zeroes. */
int rfs_read(struct rfs_fs *fs, u32 ino, u64 block, void *data);
int rfs_fsync(struct rfs_fs *fs, u32 ino);
int rfs_unmount(struct rfs_fs *fs);	/* with a check-point */

u64 rfs_available(const struct rfs_fs *fs);	/* rfs_available_then(), now */

struct rfs_report {
	void (*say)(void *arg, const char *text);	/* may be NULL, as the next */
	/*
	 * This is called with the number of blocks that were looked at, of all: a thousand times at
	 * most, and at the end.
	 */
	void (*progress)(void *arg, u64 done, u64 all);
	/*
	 * rfs_rescan() calls this for an inode of which blocks were found by the metadata of pages.
	 */
	void (*made)(void *arg, u32 ino);
	void *arg;
	u64 faults;
	u64 losses;		/* rfs_repair(): of them, what took something away */
	u64 files, dirs, blocks;
	u64 homes;		/* blocks of files on the slow device */
	bool read_data;		/* and verify checksums */
	const u8 *there;	/* rfs_repair(): a bit each block of flash that is; or NULL: all */
};

/* Notes that one block more was looked at. */
static inline void rfs_progress(const struct rfs_report *report, u64 done, u64 all)
{
	if (report->progress && (done == all || done % (all / 1000 + 1) == 0))
		report->progress(report->arg, done, all);
}

int rfs_check(struct rfs_fs *fs, struct rfs_report *report);

/* Makes the volume consistent, in memory only (repair.c). report says how. */
int rfs_repair(struct rfs_fs *fs, struct rfs_report *report);

/*
 * Mounts a volume whose check-points cannot be used, with a new one (rescan.c). -EINVAL says that
 * the device has nothing of a volume.
 */
struct rfs_rescue {
	u64 pages;		/* of the volume */
	u64 bad_meta;		/* of them metadata that cannot be used */
	u64 forgotten;		/* inodes that were deleted */
	u64 doubtful;		/* inodes without a name, perhaps deleted */
	u64 leaves_made;	/* that were runs, of the metadata of their pages alone */
	u64 inodes_made;	/* whose they are, with an older leaf, or that are counted next */
	u64 unlike;		/* that may have had such: with more or fewer blocks than before */
	bool super_lost;	/* the superblock is a new one */
	bool older;		/* the last check-point was not whole */
	bool damaged;		/* things lack: the report says which */
};

int rfs_rescan(const struct rfs_dev_ops *ops, void *dev,
	       const struct rfs_geometry *geo, struct rfs_report *report,
	       struct rfs_rescue *out, struct rfs_fs **fs);

/* These are counts for inodes. Memory is taken for each 8064 inodes of which one is asked for. */
struct rfs_tally {
	u32 links;		/* names */
	u32 subdirs;
	bool inner;		/* named in a directory that is lost */
};

struct rfs_tallies {
	struct rfs_tally **part;
	u32 parts;
};

int rfs_tallies_init(const struct rfs_fs *fs, struct rfs_tallies *t);
void rfs_tallies_exit(struct rfs_tallies *t);

/* Returns the counts of an inode that may exist, or NULL if there is no memory. */
struct rfs_tally *rfs_tally(struct rfs_tallies *t, u32 ino);

/* Finds the block of a file with most bytes in pieces. -ENOENT says that there is none. */
int rfs_diff_fullest(struct rfs_fs *fs, u32 ino, u64 *block);

#endif
