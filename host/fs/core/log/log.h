/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes are records here, and data has transactions. */
#ifndef RFS_LOG_H
#define RFS_LOG_H

#include "volume/volume.h"

#define RFS_LOG_KEPT	3	/* that a record may reach into */

/* This inode has a record (name, truncate, ...) that is not durable yet. */
struct rfs_pending {
	u32 ino;		/* 0: an empty place of the table */
	bool before_data;	/* durable before a page of the file */
};

/* This removes pages of the updating window. */
struct rfs_tomb {
	u32 ino;
	u32 gen;
	u64 from, to;		/* blocks that are gone */
	u64 cut_block;		/* block that is cut, if cut_len is not 0 */
	u32 cut_len;
	u64 version;
	bool punch;		/* what it removes was still written */
};

/* A record of the log has this piece. It is kept while recovery replays. */
struct rfs_logged {
	struct rfs_logged *next;
	u64 off, version, time;
	u32 ino, gen;
	u32 len;
	u16 txn_idx, txn_cnt;	/* as of a page */
	u8 bytes[];
};

int rfs_log_alloc(struct rfs_fs *fs);	/* what is in flight of it */
void rfs_log_free(struct rfs_fs *fs);

/* Waits until no block of the log is in flight any more, whether it is durable or not. */
void rfs_log_settle(struct rfs_fs *fs);

/* Takes memory for so many more records, before the first is applied. */
int rfs_log_room(struct rfs_fs *fs, u32 records);
int rfs_log_add(struct rfs_fs *fs, const struct rfs_rec *rec, const void *name1,
		const void *name2);

/*
 * Returns when all records that were added are durable. Others may change the volume while this
 * waits for a check-point, or for another fsync (rfs_dev_ops.durable). So everything that the
 * caller has looked at before the call is stale after it. From the end of that wait until this
 * returns, others may only look.
 */
int rfs_log_sync(struct rfs_fs *fs);

/*
 * Does the same for a caller that needs only the records, as fsync does. If the drive's user allows
 * it (rfs_dev_ops.lets_change), others may change the volume until this returns. Records that they
 * add are not durable with it.
 */
int rfs_log_sync_beside(struct rfs_fs *fs);

/*
 * Notes that no record is pending any more: each is on the medium, or a check-point has its change.
 */
void rfs_log_durable(struct rfs_fs *fs);

/*
 * Drops all records, since a check-point has their changes. Inodes that were pending stay so until
 * that check-point is durable, which rfs_log_cut_durable() notes.
 */
void rfs_log_cut(struct rfs_fs *fs);
void rfs_log_cut_durable(struct rfs_fs *fs);
bool rfs_log_empty(const struct rfs_fs *fs);	/* all was written */

/*
 * Says whether the inode has a record that is not durable. With before_data, only records count
 * that have to be durable before data.
 */
bool rfs_log_is_noted(const struct rfs_fs *fs, u32 ino, bool before_data);
static inline bool rfs_log_pending(const struct rfs_fs *fs, u32 ino, bool before_data)
{
	return fs->unsettled && rfs_log_is_noted(fs, ino, before_data);
}

/* Notes that the inode has a record that has to be durable before any page of it is sent. */
void rfs_log_before_data(struct rfs_fs *fs, u32 ino);
int rfs_apply(struct rfs_fs *fs, const struct rfs_rec *rec, const u8 *name1,
	      const u8 *name2);

/* Begins the record of a change, which the caller fills in. It takes a version. */
void rfs_rec_init(struct rfs_fs *fs, struct rfs_rec *rec, u8 op, u32 ino);

/*
 * Applies and logs a record with the names or bytes after it, which may be NULL. Its generation and
 * lengths are filled in. -ENOSPC says that nothing was changed. After another error the volume only
 * reads.
 */
int rfs_commit(struct rfs_fs *fs, struct rfs_rec *rec, const void *first,
	       u32 len1, const void *second, u32 len2);

#define RFS_RANGE_MAX	(16 * RFS_FANOUT)	/* blocks of one record */

int rfs_free_orphans(struct rfs_fs *fs);

/* Frees an inode with its blocks, whatever its count of names is. That is not logged. */
int rfs_forget(struct rfs_fs *fs, u32 ino);

/* Makes the pointer to a block from its page metadata. The block was written at `ticks`. */
void rfs_ptr_of(const struct rfs_oob *oob, u64 addr, u64 ticks,
		struct rfs_ptr *ptr);

#define RFS_TXN_MAX	257	/* blocks: those that 1 MiB has, from any byte on */

/* These blocks of a file are seen after a crash together or not at all. */
struct rfs_txn {
	u64 block;		/* the first */
	const u64 *at;		/* all of them, ascending; NULL: in a row */
	u64 version;		/* of the first */
	u64 time;
	u32 ino;
	u32 n;
	u32 len;		/* valid bytes of the last */
	bool pieces;		/* pieces come after them, and the last says how many */
};

/*
 * Begins a transaction of n blocks that were reserved. time is the file's mtime. The inode is not
 * looked at: rfs_txn_fill() returns an error if it is no file.
 */
int rfs_txn_begin(struct rfs_fs *fs, u32 ino, u64 block, u32 n, u32 len,
		  u64 time, struct rfs_txn *txn);

/*
 * Fills in the page metadata of *n of its blocks, without checksums. The blocks after *n then
 * belong into another stream.
 */
int rfs_txn_fill(struct rfs_fs *fs, const struct rfs_txn *txn, u32 from, u32 *n,
		 struct rfs_oob *oob, u32 *stream);

/* Enters n blocks of a transaction, which the drive has written to the addresses in addr. */
int rfs_txn_done(struct rfs_fs *fs, const struct rfs_oob *oob, u32 n,
		 const u64 *addr);

/*
 * Does the same for blocks that are at home with the same content: flash has them now, too. Such a
 * fill is no write of the file. rfs_fill_oobs() marks this in the page metadata, before it is sent.
 */
void rfs_fill_oobs(const struct rfs_fs *fs, struct rfs_oob *oob, u32 n);
int rfs_fill_done(struct rfs_fs *fs, const struct rfs_oob *oob, u32 n,
		  const u64 *addr);

/* Sets mtime and ctime of a file that has this content, unless it has newer ones. */
void rfs_content_times(struct rfs_dinode *di, __le64 version, __le64 time);
/*
 * Notes that n blocks of a file are written, up to a byte. Sets its size, its times and its
 * hotness.
 */
void rfs_content_done(struct rfs_fs *fs, struct rfs_dinode *di,
		      struct rfs_buf *ibuf, u32 n, u64 end, __le64 version,
		      __le64 time);

/* Puts bytes of one block of a file into its diff node. -ENOSPC says that they do not fit. */
int rfs_piece_apply(struct rfs_fs *fs, u32 ino, u64 off, u32 len, u64 version,
		    const u8 *bytes);

#endif
