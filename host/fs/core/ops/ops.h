/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is done with a volume: mount, operations on files, quotas. */
#ifndef RFS_OPS_H
#define RFS_OPS_H

#include "volume/volume.h"
#include "space/rank.h"

struct rfs_usage;
struct rfs_home_row;
struct rfs_txn;

/*
 * Room for `blocks` of files to be appended, by which blocks in use grow by `data`
 * of files and `meta` of metadata at most. -ENOSPC: these are more than there are.
 */
int rfs_make_room(struct rfs_fs *fs, u32 blocks, u64 data, u32 meta);

/* Is there room for so many blocks of metadata now, without waiting? */
bool rfs_meta_fits(struct rfs_fs *fs, u32 meta);

/* How rounds are done for those who wait: as the core does, or as the caller has it */
struct rfs_rounds {
	int (*clean)(struct rfs_fs *fs, enum rfs_clean how);	/* rfs_clean_some() */
	int (*compact)(struct rfs_fs *fs);	/* rfs_compact() */
	int (*checkpoint)(struct rfs_fs *fs, u32 flags);	/* rfs_checkpoint() */
};

/*
 * For those who were told -EAGAIN: zones are cleaned until there is room for `least`
 * blocks, and for `more` as long as each round gains. -ENOSPC: there is none to be had.
 */
int rfs_seek_room(struct rfs_fs *fs, u32 least, u32 more,
		  const struct rfs_rounds *rounds);

/* -ENOBUFS: a check-point first, or rfs_compact(), where others make room */
int rfs_make_room_to_free(struct rfs_fs *fs);

struct rfs_new {
	u32 mode, uid, gid, rdev;
	u32 flags;		/* FS_*_FL */
	const char *target;	/* of a symlink */
	const void *xattrs;	/* of others, as rfs_xattr_pack() makes them */
	u32 xattr_bytes;
};

/* Without a name (NULL) until rfs_link(), a file is an orphan */
int rfs_create(struct rfs_fs *fs, u32 dir, const char *name,
	       const struct rfs_new *how, u32 *ino);
int rfs_link(struct rfs_fs *fs, u32 dir, const char *name, u32 ino);

/* A file or empty directory; its inode stays until rfs_free_orphan() */
int rfs_unlink(struct rfs_fs *fs, u32 dir, const char *name, u32 *ino);

/* how: owner of the whiteout that takes the name's place, else NULL */
int rfs_rename(struct rfs_fs *fs, u32 dir1, const char *name1, u32 dir2,
	       const char *name2, u32 flags, const struct rfs_new *how);

/*
 * grows: it was smaller, also with what is not written yet. Else what is
 * preallocated behind the new end is given back.
 */
int rfs_truncate(struct rfs_fs *fs, u32 ino, u64 size, bool grows);

/* keep: all of them are preallocated, and stay so; RFS_RANGE_MAX at most */
int rfs_punch(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep);

/*
 * Set room aside for the holes among the first blocks of *from..to - 1; *from is
 * then where to go on. -ENOSPC: there is too little, for all or for the next.
 */
int rfs_preallocate(struct rfs_fs *fs, u32 ino, u64 *from, u64 to);

/*
 * Blocks that files can still have: what is free without the index nodes that
 * so many of them need. rfs_preallocate() of as many succeeds, unless zones
 * have to be cleaned before and cannot be.
 */
u64 rfs_available_then(const struct rfs_fs *fs, const struct rfs_usage *then);

/* Would rfs_setattr() be refused now? What it refuses with, else 0. */
int rfs_may_give(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		 u64 rsv);

/*
 * A record of atime, mtime and ctime alone: pages that are in flight have no
 * say in these any more
 */
int rfs_log_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times);

/* The same without a record: the next check-point has them */
int rfs_set_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times);

/*
 * mode, uid, gid, flags, atime and mtime of attr; rsv: holes that pages of the
 * inode have reserved
 */
int rfs_setattr(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		u64 rsv);
int rfs_free_orphan(struct rfs_fs *fs, u32 ino);

/* A part of that: *more says whether there is more */
int rfs_free_some(struct rfs_fs *fs, u32 ino, bool *more);

/* The orphan after this one; 0: there is none */
int rfs_orphan_next(struct rfs_fs *fs, u32 ino, u32 *next);

/*
 * Before rfs_truncate(), or rfs_punch() without keep, of blocks from..*to - 1: of a
 * range with many nodes the end goes at once. *more: do so again, up to *to.
 */
int rfs_shorten(struct rfs_fs *fs, u32 ino, u64 from, u64 *to, bool truncate,
		bool *more);

/* target has 4096 bytes; without a terminator, *len says how many */
int rfs_readlink(struct rfs_fs *fs, u32 ino, u8 *target, u32 *len);

/*
 * Set, or remove if value is NULL. mode: permissions that change along with it,
 * 0 if none do. -ENOSPC if the inode's attributes would not fit into a block.
 */
int rfs_xattr_set(struct rfs_fs *fs, u32 ino, const char *name,
		  const void *value, u32 len, u32 flags, u32 mode);

/*
 * Usage is counted from now on; it is counted anew unless it was kept all the
 * time. -ENOSPC: there is no room for them.
 */
int rfs_quota_on(struct rfs_fs *fs);
void rfs_quota_off(struct rfs_fs *fs);	/* it is not, and not enforced */
int rfs_quota_room(struct rfs_fs *fs);	/* for quotacheck.c */

/* Limits and ends of grace, by a record; usage stays what it is */
int rfs_quota_set(struct rfs_fs *fs, u32 type, u32 id,
		  const struct rfs_quota *limits);

enum rfs_quota_fix {
	RFS_QUOTA_LOOK,		/* nothing is changed */
	RFS_QUOTA_REPAIR,	/* it is right then, in memory */
	RFS_QUOTA_COUNT,	/* the same, with cleaning and check-points */
};

/*
 * Usage against all inodes. differs: is told of each that is not right, may be
 * NULL. -ENOSPC: there is no room for more entries.
 */
int rfs_quota_compare(struct rfs_fs *fs, enum rfs_quota_fix fix,
		      void (*differs)(void *arg, u32 type, u32 id,
				      const struct rfs_quota *is, u64 blocks,
				      u64 inodes),
		      void *arg);

/*
 * A block of a file will be written: there will be room for it. *hole says what
 * rfs_unreserve() wants to know, after rfs_txn_done() or instead of it.
 */
int rfs_reserve(struct rfs_fs *fs, u32 ino, u64 block, bool *hole);
/*
 * The same for blocks that follow each other, n at most, up to a hole or to where the index
 * goes on elsewhere: how many. 0: the first one is a hole. -EAGAIN: there is no room
 * for all of them, but rfs_reserve() may have it for one
 */
int rfs_reserve_run(struct rfs_fs *fs, u32 ino, u64 block, u32 n);
void rfs_unreserve(struct rfs_fs *fs, u32 ino, u32 blocks, u32 holes);

/* Bytes of a block that can be pieces: a block of the log has the records of them */
#define RFS_SMALL_MAX	(RFS_BODY_BYTES - 2 * (u32)sizeof(struct rfs_rec))

/*
 * Of a block that is reserved: can so many bytes of it be pieces, at once and
 * without waiting? 1 or 0; what it cannot have is a page, which always can be.
 */
int rfs_piece_fits(struct rfs_fs *fs, u32 ino, u64 off, u32 len);

/*
 * So many bytes of n blocks of a file are new. *most: those of which no more are had
 * better be pieces, so that the fewest pages are written; 0: none. alone: who waits
 * for the log waits for this file; else others may share its blocks.
 */
int rfs_piece_most(struct rfs_fs *fs, u32 ino, const u16 *bytes, u32 n,
		   bool alone, u32 *most);

/*
 * They are, as rfs_piece_fits() said; time: the file's mtime. rfs_unreserve() then:
 * its page, whenever it comes, overwrites. Durable by rfs_log_sync(). All are seen
 * after a crash or none
 */
int rfs_piece(struct rfs_fs *fs, u32 ino, u64 off, const void *bytes, u32 len,
	      u64 time);

/* Bytes of one block of a file */
struct rfs_bytes {
	u64 off;
	u32 len;
	const u8 *at;
};

struct rfs_txn;

/*
 * As rfs_txn_begin(), of n whole blocks (0: none) and of pieces beside them, in other
 * blocks: after a crash all are seen or none. All of these blocks are reserved, and
 * those of the pieces are unreserved then. 1; or 0, and nothing has begun: they have to be
 * pages, all of them. Durable by rfs_log_sync(), once the blocks have completed
 */
int rfs_txn_begin_with(struct rfs_fs *fs, u32 ino, u64 block, u32 n, u64 time,
		       const struct rfs_bytes *piece, u32 pieces,
		       struct rfs_txn *txn);

/*
 * Of a hybrid volume: up to *most blocks that flash alone has are at home, too, then;
 * *most is less by those. -EOPNOTSUPP: it is none
 */
int rfs_write_home(struct rfs_fs *fs, u32 *most);

/* A block that is at home alone is on flash, too, then; others stay as they are */
int rfs_fill(struct rfs_fs *fs, u32 ino, u64 block);

/*
 * Blocks of a file that go home and not to flash. They are reserved, as ever; rfs_home_send()
 * writes a row of them between these two. They are durable with the next check-point.
 * -ENOBUFS: that has to come first, where others write it.
 */
int rfs_bypass_begin(struct rfs_fs *fs, u32 n, struct rfs_home_row *row);
/*
 * Those of a transaction from the i-th on are at `home` and behind it; how many of them,
 * at most n: these lie in one block of the index.
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
