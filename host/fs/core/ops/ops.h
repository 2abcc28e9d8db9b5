/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are the operations of a volume: a mount, operations on files, quotas. */
#ifndef RFS_OPS_H
#define RFS_OPS_H

#include "volume/volume.h"
#include "space/rank.h"

struct rfs_usage;
struct rfs_home_row;
struct rfs_txn;

/*
 * Makes room for `blocks` of files that are to be appended, which add at most `data` blocks of
 * files and `meta` of metadata to those in use. -ENOSPC says that the volume does not have that
 * many.
 */
int rfs_make_room(struct rfs_fs *fs, u32 blocks, u64 data, u32 meta);

/* Says whether there is room for so many blocks of metadata now, without waiting. */
bool rfs_meta_fits(struct rfs_fs *fs, u32 meta);

/* These do the rounds for waiting tasks. They are the core's functions or the caller's. */
struct rfs_rounds {
	int (*clean)(struct rfs_fs *fs, enum rfs_clean how);	/* rfs_clean_some() */
	int (*compact)(struct rfs_fs *fs);	/* rfs_compact() */
	int (*checkpoint)(struct rfs_fs *fs, u32 flags);	/* rfs_checkpoint() */
};

/*
 * Cleans zones for tasks that got -EAGAIN, until there is room for `least` blocks, and for `more`
 * as long as each round gains. -ENOSPC says that no room can be made.
 */
int rfs_seek_room(struct rfs_fs *fs, u32 least, u32 more,
		  const struct rfs_rounds *rounds);

/*
 * Makes room for a change that adds no block. -ENOBUFS says that a check-point has to come first,
 * or rfs_compact(), where others make room.
 */
int rfs_make_room_to_free(struct rfs_fs *fs);

struct rfs_new {
	u32 mode, uid, gid, rdev;
	u32 flags;		/* FS_*_FL */
	const char *target;	/* of a symlink */
	const void *xattrs;	/* of others, as rfs_xattr_pack() makes them */
	u32 xattr_bytes;
};

/* Makes a file. Without a name (NULL) it is an orphan until rfs_link(). */
int rfs_create(struct rfs_fs *fs, u32 dir, const char *name,
	       const struct rfs_new *how, u32 *ino);
int rfs_link(struct rfs_fs *fs, u32 dir, const char *name, u32 ino);

/* Removes the name of a file or of an empty directory. Its inode stays until rfs_free_orphan(). */
int rfs_unlink(struct rfs_fs *fs, u32 dir, const char *name, u32 *ino);

/* how has the owner of the whiteout that takes the name's place, and is NULL without one. */
int rfs_rename(struct rfs_fs *fs, u32 dir1, const char *name1, u32 dir2,
	       const char *name2, u32 flags, const struct rfs_new *how);

/*
 * Sets the size of a file. grows says that the file was smaller, also with the pages that are not
 * written yet. Otherwise preallocated blocks behind the new end are given back.
 */
int rfs_truncate(struct rfs_fs *fs, u32 ino, u64 size, bool grows);

/*
 * Punches blocks. With keep, all of them are preallocated, and stay so. There are RFS_RANGE_MAX at
 * most.
 */
int rfs_punch(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep);

/*
 * Sets room aside for the holes among the first blocks of *from..to - 1. *from becomes the block at
 * which the caller goes on. -ENOSPC says that there is too little room, for all of them or for the
 * next ones.
 */
int rfs_preallocate(struct rfs_fs *fs, u32 ino, u64 *from, u64 to);

/*
 * Blocks of a file move over a gap, so that the gap moves the other way: to the end of the file,
 * where it is cut off, or from there to where it is to be. Each step comes after the one before it:
 */
enum rfs_shift_what {
	RFS_SHIFT_WRITE,	/* blocks at `from` are written, as one, and are durable */
	RFS_SHIFT_RESERVE,	/* rfs_preallocate() */
	RFS_SHIFT_ZERO,		/* rfs_punch() with keep */
	RFS_SHIFT_PUNCH,	/* and without */
};

struct rfs_shift {
	u32 ino;
	u32 most;		/* blocks of a row */
	u64 gap, n;		/* its first block, and how many it has */
	u64 end;		/* where it is to begin */
	/* The next step, and the blocks that it changes */
	enum rfs_shift_what what;
	u64 at;
	u32 blocks;
	/* A row: it is of one kind, and goes on to its new place */
	u64 from, to;
	u32 row;
	u8 kind;
	enum { RFS_SHIFT_OVER, RFS_SHIFT_FOUND, RFS_SHIFT_RESERVED,
	       RFS_SHIFT_THERE } stage;
};

/*
 * Finds the next step, which the caller does. Returns 0 if the gap has reached its place, and else
 * 1. -EAGAIN says that there was no step so far, and that others should have their turn. Nothing
 * else of the file may change, or be in flight, as long as the gap moves.
 */
int rfs_shift_next(struct rfs_fs *fs, struct rfs_shift *s);

/*
 * Returns the blocks that files can still have: the free ones without the index nodes that so many
 * of them need. rfs_preallocate() of as many succeeds, unless zones have to be cleaned before and
 * cannot be.
 */
u64 rfs_available_then(const struct rfs_fs *fs, const struct rfs_usage *then);

/* Returns the error with which rfs_setattr() would be refused now, or 0. */
int rfs_may_give(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		 u64 rsv);

/*
 * Writes a record of atime, mtime and ctime alone. Pages that are in flight do not change these any
 * more.
 */
int rfs_log_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times);

/* Does the same without a record, so that the next check-point has the times. */
int rfs_set_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times);

/*
 * Sets mode, uid, gid, flags, atime and mtime to those of attr. rsv is the number of holes that
 * pages of the inode have reserved.
 */
int rfs_setattr(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		u64 rsv);
int rfs_free_orphan(struct rfs_fs *fs, u32 ino);

/* Frees a part of an orphan. *more says whether there is more. */
int rfs_free_some(struct rfs_fs *fs, u32 ino, bool *more);

/* Finds the orphan after this one, or 0 if there is none. */
int rfs_orphan_next(struct rfs_fs *fs, u32 ino, u32 *next);

/*
 * Shortens a file in parts. It is called before rfs_truncate(), or rfs_punch() without keep, of the
 * blocks from..*to - 1. If they have many nodes, their end is freed at once. *more says that it has
 * to be called again, up to *to.
 */
int rfs_shorten(struct rfs_fs *fs, u32 ino, u64 from, u64 *to, bool truncate,
		bool *more);

/*
 * Reads a symlink. target has room for 4096 bytes. It gets no terminator, and *len is the number of
 * its bytes.
 */
int rfs_readlink(struct rfs_fs *fs, u32 ino, u8 *target, u32 *len);

/*
 * Sets an attribute, or removes it if value is NULL. mode is the permissions that change along with
 * it, or 0. -ENOSPC says that the inode's attributes would not fit into a block.
 */
int rfs_xattr_set(struct rfs_fs *fs, u32 ino, const char *name,
		  const void *value, u32 len, u32 flags, u32 mode);

/*
 * Counts usage from now on. It is counted anew unless it was kept all the time. -ENOSPC says that
 * there is no room for the entries.
 */
int rfs_quota_on(struct rfs_fs *fs);
void rfs_quota_off(struct rfs_fs *fs);	/* it is not, and not enforced */
int rfs_quota_room(struct rfs_fs *fs);	/* for quotacheck.c */

/* Sets limits and ends of grace, by a record. Usage stays what it is. */
int rfs_quota_set(struct rfs_fs *fs, u32 type, u32 id,
		  const struct rfs_quota *limits);

enum rfs_quota_fix {
	RFS_QUOTA_LOOK,		/* nothing is changed */
	RFS_QUOTA_REPAIR,	/* it is right then, in memory */
	RFS_QUOTA_COUNT,	/* the same, with cleaning and check-points */
};

/*
 * Compares usage with all inodes. differs is called for each entry that is not right, and may be
 * NULL. -ENOSPC says that there is no room for more entries.
 */
int rfs_quota_compare(struct rfs_fs *fs, enum rfs_quota_fix fix,
		      void (*differs)(void *arg, u32 type, u32 id,
				      const struct rfs_quota *is, u64 blocks,
				      u64 inodes),
		      void *arg);

/*
 * Reserves a place for a block of a file that will be written. rfs_unreserve() is called with *hole
 * after rfs_txn_done(), or instead of it.
 */
int rfs_reserve(struct rfs_fs *fs, u32 ino, u64 block, bool *hole);
/*
 * Does the same for blocks that follow each other, n at most, up to a hole or the end of the index
 * block. Returns their number, or 0 if the first one is a hole. -EAGAIN says that there is no room
 * for all of them, but rfs_reserve() may have it for one.
 */
int rfs_reserve_run(struct rfs_fs *fs, u32 ino, u64 block, u32 n);
void rfs_unreserve(struct rfs_fs *fs, u32 ino, u32 blocks, u32 holes);

/* So many bytes of a block can be pieces: one block of the log has room for their records. */
#define RFS_SMALL_MAX	(RFS_BODY_BYTES - 2 * (u32)sizeof(struct rfs_rec))

/*
 * Says whether so many bytes of a block that is reserved can be pieces, at once and without
 * waiting: 1 or 0. If they cannot, the block can always be a page.
 */
int rfs_piece_fits(struct rfs_fs *fs, u32 ino, u64 off, u32 len);

/*
 * Finds which of n blocks of a file, of which so many bytes are new, should be pieces. *most
 * becomes the largest number of bytes with which a block should be pieces, so that the fewest pages
 * are written, or 0. alone says that a task waits for the log for this file alone. Otherwise other
 * files may share the log's blocks.
 */
int rfs_piece_most(struct rfs_fs *fs, u32 ino, const u16 *bytes, u32 n,
		   bool alone, u32 *most);

/*
 * Writes the bytes as pieces, as rfs_piece_fits() allowed. time is the file's mtime. The caller
 * calls rfs_unreserve() then, since a page of the block overwrites. rfs_log_sync() makes them
 * durable. After a crash all are seen or none.
 */
int rfs_piece(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes, u32 len,
	      u64 time);

/* These are bytes of one block of a file. */
struct rfs_bytes {
	u64 off;
	u32 len;
	const u8 *at;
};

struct rfs_txn;

/*
 * Does what rfs_txn_begin() does, for n whole blocks (perhaps 0) and for pieces beside them in
 * other blocks. After a crash all are seen or none. All of these blocks are reserved, and the
 * caller unreserves those of the pieces then. Returns 1, or 0 if nothing has begun: all of them
 * have to be pages. rfs_log_sync() makes them durable once the blocks have completed.
 */
int rfs_txn_begin_with(struct rfs_fs *fs, u32 ino, u64 block, u32 n, u64 time,
		       const struct rfs_bytes *piece, u32 pieces,
		       struct rfs_txn *txn);

/*
 * Writes up to *most blocks of a hybrid volume home that are only on flash. They stay on flash, and
 * *most becomes less by their number. -EOPNOTSUPP says that the volume is not hybrid.
 */
int rfs_write_home(struct rfs_fs *fs, u32 *most);

/* Says that a block which was only at home is on flash, too. Other blocks stay as they are. */
int rfs_fill(struct rfs_fs *fs, u32 ino, u64 block);

/*
 * Begins a row of blocks of a file that go home and not to flash. They are reserved as on flash.
 * rfs_home_send() writes the row between these two calls. They are durable with the next
 * check-point. -ENOBUFS says that a check-point has to come first, where others write it.
 */
int rfs_bypass_begin(struct rfs_fs *fs, u32 n, struct rfs_home_row *row);
/*
 * Enters blocks of a transaction, from `from` on, which are at `home` and behind it. Returns the
 * number of blocks that were entered, at most n: these lie in one block of the index.
 */
int rfs_bypass_done(struct rfs_fs *fs, const struct rfs_txn *txn, u32 from,
		    u32 n, u64 home);

int rfs_mount(const struct rfs_dev_ops *ops, void *dev,
	      const struct rfs_geometry *geo, bool read_only, u32 inject,
	      struct rfs_fs **out);
int rfs_tables_alloc(struct rfs_fs *fs);	/* and the state of all zones */
void rfs_resume_zones(struct rfs_fs *fs);
void rfs_unmount_nosync(struct rfs_fs *fs);	/* without a check-point */

#endif
