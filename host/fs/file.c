// SPDX-License-Identifier: GPL-2.0
/* Files are read, written and synced here, and have their ioctls. */
#include <linux/blkdev.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "rfsm.h"
#include "error.h"
#include "flush.h"
#include "wake.h"
#include "checkpoint.h"
#include "update.h"
#include "append.h"
#include "bypass.h"
#include "read.h"
#include "pages.h"
#include "inode.h"
#include "space/space.h"
#include "tree/tree.h"

/* Direct I/O that went through the page cache leaves no pages there. */
static void rfsm_drop_cached(struct inode *inode, loff_t pos, ssize_t bytes)
{
	if (bytes > 0)
		invalidate_mapping_pages(inode->i_mapping, pos >> PAGE_SHIFT,
					 (pos + bytes - 1) >> PAGE_SHIFT);
}

/* This direct write is in flight, and nobody waits for it. */
struct rfsm_queued {
	struct rfsm_then then;
	struct kiocb *iocb;
	size_t bytes;
};

static void rfsm_queued_over(struct rfsm_then *then, int error)
{
	struct rfsm_queued *queued = container_of(then, struct rfsm_queued,
						  then);
	struct kiocb *iocb = queued->iocb;
	ssize_t bytes = queued->bytes;

	kfree(queued);
	rfsm_drop_cached(file_inode(iocb->ki_filp), iocb->ki_pos, bytes);
	if (!error)
		iocb->ki_pos += bytes;
	iocb->ki_complete(iocb, error ? error : bytes);
}

/* Returns NULL if the write is waited for, since it is to be durable or there is no memory. */
static struct rfsm_then *rfsm_may_queue(struct kiocb *iocb, size_t bytes)
{
	struct rfsm_queued *queued;

	if (is_sync_kiocb(iocb) || !(iocb->ki_flags & IOCB_DIRECT) ||
	    iocb_is_dsync(iocb))
		return NULL;
	queued = kmalloc(sizeof(*queued), GFP_KERNEL);
	if (!queued)
		return NULL;
	queued->then.over = rfsm_queued_over;
	queued->iocb = iocb;
	queued->bytes = bytes;
	return &queued->then;
}

/*
 * A folio is written only if it has room for all bytes that the write has for it. If that is too
 * much room, a single page of it may still have its place.
 */
static ssize_t rfsm_write_cached(struct kiocb *iocb, struct iov_iter *from)
{
	ssize_t done = 0, ret = generic_perform_write(iocb, from);
	size_t left, now;

	while (iov_iter_count(from) &&
	       (ret > 0 || ret == -ENOSPC || ret == -EDQUOT)) {
		left = iov_iter_count(from);
		now = min_t(size_t, left,
			    PAGE_SIZE - offset_in_page(iocb->ki_pos));
		if (ret < 0 && now == left)
			break;	/* it was less than a page */
		if (ret > 0)
			done += ret;
		iov_iter_truncate(from, now);
		ret = generic_perform_write(iocb, from);
		iov_iter_reexpand(from, left - now + iov_iter_count(from));
		if (ret < 0)
			break;	/* there was none for a page */
	}
	if (ret > 0)
		done += ret;
	return done ? done : ret;
}

/*
 * Whole blocks that are written directly are one transaction, too, as long as there is room for all
 * of them and they do not bypass flash. Clean pages of the page cache are dropped: a reader that
 * has such a page meanwhile sees the old one, not a mixture.
 */
static ssize_t rfsm_write_data(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	bool atomic = iocb->ki_flags & IOCB_ATOMIC;
	bool direct = iocb->ki_flags & IOCB_DIRECT;
	size_t bytes = iov_iter_count(from);
	struct rfsm_then *then;
	ssize_t ret = -ENOSPC;

	if (atomic || (direct && !rfsm_bypasses(inode) &&
		       rfsm_whole_blocks(iocb->ki_pos, bytes))) {
		if (direct)
			rfsm_drop_cached(inode, iocb->ki_pos, bytes);
		then = rfsm_may_queue(iocb, bytes);
		ret = rfsm_atomic_write(iocb, from, then);
		if (then && ret != -EIOCBQUEUED)
			kfree(container_of(then, struct rfsm_queued, then));
	}
	/* A part of the write may have its place. */
	if (!atomic && (ret == -ENOSPC || ret == -EDQUOT))
		ret = rfsm_write_cached(iocb, from);
	return ret;
}

/* Within a transaction of the file, the end of the file is where the transaction has put it. */
static ssize_t rfsm_write_checks(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	int appends = iocb->ki_flags & IOCB_APPEND;
	ssize_t ret;

	if (!rfsm_has_session(inode))
		return generic_write_checks(iocb, from);
	if (iocb->ki_flags & IOCB_ATOMIC)
		return -EBUSY;	/* part of it might be too much for that */
	if (appends)
		iocb->ki_pos = RFS_I(inode)->session_size;
	iocb->ki_flags &= ~IOCB_APPEND;
	ret = generic_write_checks(iocb, from);
	iocb->ki_flags |= appends;
	return ret;
}

static ssize_t rfsm_write_locked(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	size_t asked = iov_iter_count(from);
	ssize_t ret = rfsm_write_checks(iocb, from);

	if (iocb->ki_flags & IOCB_ATOMIC && ret >= 0) {
		if (!asked || asked > RFSM_ATOMIC_MAX)
			return -EINVAL;
		if (iocb->ki_flags & IOCB_DIRECT &&
		    !rfsm_whole_blocks(iocb->ki_pos, asked))
			return -EINVAL;
		if (ret < asked)	/* than what a file may have */
			return -EFBIG;
	}
	if (ret <= 0)
		return ret;
	ret = file_modified(iocb->ki_filp);
	if (!ret && rfsm_has_session(inode))
		return rfsm_session_write(iocb, from);
	if (!ret && iocb->ki_pos > i_size_read(inode))
		ret = rfsm_zero_after_end(inode, i_size_read(inode));
	return ret ? ret : rfsm_write_data(iocb, from);
}

#define EARLY		(8 << 20)	/* bytes: some appends to every die */
#define SCATTERED	4096		/* pages: what is in flight lasts */

/*
 * Linux begins to write when a tenth of memory is dirty, and until then the drive is idle. So pages
 * that were written in order are sent before. Pages that were written at random wait longer, for
 * their neighbours. Linux's own thread sends them, since a writer may have to wait for a page that
 * is in flight. Small files are left to Linux, since many are deleted before. But dirty blocks of
 * all files count, and are sent, when somebody writes to a large one.
 */
static void rfsm_write_behind(struct inode *inode)
{
	struct rfs_inode_info *ri = RFS_I(inode);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);

	if (ri->fresh >= EARLY && !READ_ONCE(sbi->inflight_pages)) {
		ri->fresh = 0;
		filemap_flush(inode->i_mapping);
	} else if (i_size_read(inode) >= EARLY &&
		   READ_ONCE(sbi->fs->rsv_blocks) >=
		   SCATTERED + READ_ONCE(sbi->inflight_pages)) {
		rfsm_write_soon(sbi);
	}
}

static ssize_t rfsm_file_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	bool direct = iocb->ki_flags & IOCB_DIRECT;
	ssize_t ret;

	if (rfsm_dead(RFS_SB(inode->i_sb)))
		return -EIO;
	/* The write may have to wait for room. */
	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	inode_lock(inode);
	ret = rfsm_write_locked(iocb, from);
	inode_unlock(inode);
	if (ret > 0 && !(iocb->ki_flags & (IOCB_DIRECT | IOCB_ATOMIC)))
		rfsm_write_behind(inode);
	if (ret > 0 && direct) {
		loff_t pos = iocb->ki_pos - ret;
		int err = filemap_write_and_wait_range(inode->i_mapping, pos,
						       pos + ret - 1);

		if (err)
			return err;
		rfsm_drop_cached(inode, pos, ret);
	}
	return ret > 0 ? generic_write_sync(iocb, ret) : ret;
}

static ssize_t rfsm_buffered_read(struct kiocb *iocb, struct iov_iter *to)
{
	int flags = iocb->ki_flags;
	ssize_t ret;

	iocb->ki_flags &= ~IOCB_DIRECT;
	/* Reading ahead may have to wait for the index. */
	if (flags & IOCB_NOWAIT)
		iocb->ki_flags |= IOCB_NOIO;
	ret = generic_file_read_iter(iocb, to);
	iocb->ki_flags = flags;
	return ret;
}

/*
 * Reads pages directly that are in the page cache. A writer changes such a page where it is, under
 * the inode's lock. Without that lock the reader would see a mixture.
 */
static ssize_t rfsm_direct_cached_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t ret;

	if (!(iocb->ki_flags & IOCB_NOWAIT))
		inode_lock_shared(inode);
	else if (!inode_trylock_shared(inode))
		return -EAGAIN;
	ret = rfsm_buffered_read(iocb, to);
	inode_unlock_shared(inode);
	return ret;
}

static ssize_t rfsm_file_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t ret, done;
	loff_t pos;

	if (rfsm_dead(RFS_SB(inode->i_sb)))
		return -EIO;
	if (unlikely(rfsm_has_session(inode))) {
		done = rfsm_session_read(iocb, to);
		if (done != -EAGAIN || iocb->ki_flags & IOCB_NOWAIT)
			return done;
	}
	if (!(iocb->ki_flags & IOCB_DIRECT))
		return rfsm_buffered_read(iocb, to);
	done = rfsm_direct_read(iocb, to);
	pos = iocb->ki_pos;
	if (done < 0 || !iov_iter_count(to) || pos >= i_size_read(inode))
		return done;
	ret = rfsm_direct_cached_read(iocb, to);
	rfsm_drop_cached(inode, pos, ret);
	return done && ret < 0 ? done : done + ret;
}

static int rfsm_file_open(struct inode *inode, struct file *file)
{
	file->f_mode |= FMODE_CAN_ODIRECT | FMODE_NOWAIT |
			FMODE_CAN_ATOMIC_WRITE;
	return generic_file_open(inode, file);
}

static loff_t rfsm_seek_data(struct file *file, loff_t pos, bool data)
{
	struct inode *inode = file_inode(file);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	loff_t size = i_size_read(inode);
	u64 block = pos >> PAGE_SHIFT;
	int ret;

	if (pos < 0 || pos >= size)
		return -ENXIO;
	/* Data that only the page cache has is in no block yet. */
	ret = filemap_write_and_wait(inode->i_mapping);
	if (ret)
		return ret;
	do {	/* others have their turn between */
		rfsm_query(sbi, ret,
			   rfs_map_seek(sbi->fs, inode->i_ino, block,
					DIV_ROUND_UP_ULL(size, PAGE_SIZE), data,
					&block));
	} while (ret == -EAGAIN && !fatal_signal_pending(current));
	if (ret == -EAGAIN)
		return -EINTR;
	if (ret)
		return rfsm_failed(sbi, ret);
	pos = max_t(loff_t, pos, block << PAGE_SHIFT);
	if (pos >= size && data)
		return -ENXIO;
	return vfs_setpos(file, min(pos, size), inode->i_sb->s_maxbytes);
}

static loff_t rfsm_file_llseek(struct file *file, loff_t pos, int whence)
{
	struct inode *inode = file_inode(file);

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return generic_file_llseek(file, pos, whence);
	inode_lock_shared(inode);
	pos = rfsm_seek_data(file, pos, whence == SEEK_DATA);
	inode_unlock_shared(inode);
	return pos;
}

/* Writes the last page of a file that has grown. After that the volume has the file's size. */
static int rfsm_write_last(struct inode *inode)
{
	loff_t size = i_size_read(inode);

	return size ? filemap_write_and_wait_range(inode->i_mapping, size - 1,
						   size - 1) : 0;
}

/*
 * Punches a range: whole blocks are freed, and of the blocks at its ends a part becomes zero. keep
 * says that the blocks were preallocated, and stay so.
 */
static int rfsm_punch_hole(struct inode *inode, loff_t pos, loff_t end,
			   bool keep)
{
	struct address_space *mapping = inode->i_mapping;
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u64 from = DIV_ROUND_UP_ULL(pos, PAGE_SIZE), to = end >> PAGE_SHIFT;
	bool more = true;
	u64 next;
	int ret;

	/*
	 * If the file ends in the last page, nothing of the page is behind this part, so the page
	 * goes as a whole.
	 */
	if (end >= i_size_read(inode))
		to = DIV_ROUND_UP_ULL(end, PAGE_SIZE);
	if (from > to) {	/* within a block */
		ret = rfsm_zero(inode, pos, end - pos);
	} else {
		ret = rfsm_zero(inode, pos, (from << PAGE_SHIFT) - pos);
		if (!ret && (to << PAGE_SHIFT) < end)
			ret = rfsm_zero(inode, to << PAGE_SHIFT,
					end - (to << PAGE_SHIFT));
	}
	if (!ret && from < to && end >= i_size_read(inode))
		ret = rfsm_write_last(inode);
	if (ret || from >= to)
		return ret;
	filemap_invalidate_lock(mapping);
	truncate_pagecache_range(inode, from << PAGE_SHIFT,
				 (to << PAGE_SHIFT) - 1);
	while (!ret && !keep && more)
		rfsm_update(sbi, ret,
			    rfs_shorten(sbi->fs, inode->i_ino, from, &to,
					false, &more));
	while (!ret && from < to) {
		next = keep ? min(to, from + RFS_RANGE_MAX) : to;
		rfsm_update(sbi, ret,
			    rfs_punch(sbi->fs, inode->i_ino, from, next,
				      keep));
		from = next;
	}
	filemap_invalidate_unlock(mapping);
	if (ret)
		return ret;
	rfsm_reload(inode);
	/* The record has set both times. */
	inode_set_mtime_to_ts(inode, inode_get_ctime(inode));
	return 0;
}

/*
 * Sets room aside for the holes in a range. If there is too little room for all of them, those that
 * were preallocated stay so.
 */
static int rfsm_preallocate(struct inode *inode, loff_t pos, loff_t end)
{
	u64 from = pos >> PAGE_SHIFT, to = DIV_ROUND_UP_ULL(end, PAGE_SIZE);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	int ret;

	/*
	 * Holes that were written to have a reservation. Room must not be set aside for them twice.
	 */
	ret = filemap_write_and_wait_range(inode->i_mapping, pos, end - 1);
	while (!ret && from < to) {
		rfsm_update(sbi, ret,
			    rfs_preallocate(sbi->fs, inode->i_ino, &from, to));
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
	}
	rfsm_reload(inode);
	/* The record has set both times. */
	inode_set_mtime_to_ts(inode, inode_get_ctime(inode));
	return ret;
}

static int rfsm_allocate_range(struct file *file, int mode, loff_t pos,
			       loff_t end)
{
	struct inode *inode = file_inode(file);
	bool grows = !(mode & FALLOC_FL_KEEP_SIZE) && end > i_size_read(inode);
	bool punches = mode & FALLOC_FL_PUNCH_HOLE;
	bool zeroes = mode & FALLOC_FL_ZERO_RANGE;
	int ret = grows ? inode_newsize_ok(inode, end) : 0;

	if (!ret)
		ret = file_modified(file);
	if (!ret && !punches)
		ret = rfsm_preallocate(inode, pos, end);
	if (!ret && (punches || zeroes))
		ret = rfsm_punch_hole(inode, pos, end, zeroes);
	if (!ret && grows)
		ret = rfsm_set_size(inode, end);
	return ret;
}

static long rfsm_fallocate(struct file *file, int mode, loff_t pos, loff_t len)
{
	struct inode *inode = file_inode(file);
	int what = mode & ~FALLOC_FL_KEEP_SIZE;
	int moves = what & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE);
	int ret;

	if (what & ~(FALLOC_FL_ZERO_RANGE | FALLOC_FL_PUNCH_HOLE |
		     FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE) ||
	    !S_ISREG(inode->i_mode))
		return -EOPNOTSUPP;
	/*
	 * On such a volume, room may come only when reads are over, and these may wait for
	 * mappings.
	 */
	if (moves && RFS_SB(inode->i_sb)->slow)
		return -EOPNOTSUPP;
	inode_lock(inode);
	inode_dio_wait(inode);
	if (rfsm_has_session(inode))
		ret = -EBUSY;
	else if (moves & FALLOC_FL_COLLAPSE_RANGE)
		ret = rfsm_collapse_range(file, pos, len);
	else if (moves)
		ret = rfsm_insert_range(file, pos, len);
	else
		ret = rfsm_allocate_range(file, mode, pos, pos + len);
	inode_unlock(inode);
	return ret;
}

static int rfsm_extent_at(struct inode *inode, u64 from, u64 to,
			  struct rfs_extent *out)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	int ret;

	do {	/* others have their turn between */
		rfsm_query(sbi, ret,
			   rfs_map_extent(sbi->fs, inode->i_ino, &from, to,
					  out));
	} while (ret == -EAGAIN && !fatal_signal_pending(current));
	if (ret == -EAGAIN)
		return -EINTR;
	return ret ? rfsm_failed(sbi, ret) : 0;
}

/* Preallocated blocks have no address yet, and pieces have no address of their own. */
static int rfsm_tell_extent(struct fiemap_extent_info *info,
			    const struct rfs_extent *e, bool last)
{
	u32 flags = last ? FIEMAP_EXTENT_LAST : 0;

	if (!e->addr || e->slow)
		flags |= FIEMAP_EXTENT_UNKNOWN;
	if (!e->addr && !e->pieces)
		flags |= FIEMAP_EXTENT_UNWRITTEN;
	return fiemap_fill_next_extent(info, e->block << PAGE_SHIFT,
				       e->slow ? 0 : e->addr << PAGE_SHIFT,
				       e->n << PAGE_SHIFT, flags);
}

static int rfsm_fiemap(struct inode *inode, struct fiemap_extent_info *info,
		       u64 start, u64 len)
{
	u64 most = inode->i_sb->s_maxbytes >> PAGE_SHIFT, end;
	struct rfs_extent now, next;
	int ret = fiemap_prep(inode, info, start, &len, 0);

	/* Data that only the page cache has is in no block yet. */
	if (!ret)
		ret = filemap_write_and_wait(inode->i_mapping);
	if (ret)
		return ret;
	end = DIV_ROUND_UP_ULL(start + len, PAGE_SIZE);
	inode_lock_shared(inode);
	ret = rfsm_extent_at(inode, start >> PAGE_SHIFT, most, &next);
	while (!ret && next.n && next.block < end) {
		now = next;
		ret = rfsm_extent_at(inode, now.block + now.n, most, &next);
		if (!ret)
			ret = rfsm_tell_extent(info, &now, !next.n);
		if (fatal_signal_pending(current))
			ret = -EINTR;
	}
	inode_unlock_shared(inode);
	return ret < 0 ? ret : 0;
}

/*
 * Makes the records durable that fsync needs. For a directory these are all records, since any of
 * them may be of a name in it. *data says that there are none, so that only earlier writes are left
 * to flush.
 */
static int rfsm_sync_log(struct rfs_sb_info *sbi, struct inode *inode,
			 bool *data)
{
	struct rfs_fs *fs = sbi->fs;

	if (fs->read_only)
		return -EROFS;	/* what is not durable will not be */
	*data = S_ISDIR(inode->i_mode) ? !fs->unsettled :
		!rfs_log_pending(fs, inode->i_ino, false);
	return *data ? 0 : rfsm_log_sync(sbi);
}

/*
 * With lazytime, fsync is for times of reads, too (mount(8)). Without it, these times are left to
 * check-points, since a page for each fsync after a read would be too much.
 */
static int rfsm_log_atime(struct inode *inode)
{
	struct rfs_inode_info *ri = RFS_I(inode);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct rfs_dinode times = { 0 };
	s64 atime;
	int ret;

	rfsm_times(inode, &times);
	atime = le64_to_cpu(times.atime);
	if (ri->logged_atime == atime)
		return 0;
	rfsm_update(sbi, ret, rfs_log_times(sbi->fs, inode->i_ino, &times));
	if (!ret)
		ri->logged_atime = atime;
	return ret;
}

int rfsm_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct inode *inode = file_inode(file);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	bool data = false;
	int ret = 0;

	if (rfsm_dead(sbi))
		return -EIO;
	if (S_ISREG(inode->i_mode))
		ret = rfsm_write_range(file, start, end);
	if (ret || sbi->clean_ro)
		return ret;
	if (!datasync && inode->i_sb->s_flags & SB_LAZYTIME)
		ret = rfsm_log_atime(inode);
	if (ret)
		return ret;
	ret = rfsm_bypass_sync(inode);
	if (ret)
		return ret;
	/*
	 * Whoever changed this inode noted that before he released the lock, so no lock is needed
	 * here.
	 */
	if (!READ_ONCE(sbi->fs->unsettled) && !READ_ONCE(sbi->fs->read_only))
		data = true;
	else
		rfsm_update(sbi, ret, rfsm_sync_log(sbi, inode, &data));
	/* This is not under the lock, since others need not wait for it. */
	if (!ret && data && sbi->fs->geo.volatile_cache)
		ret = rfsm_flush(sbi);
	return ret;
}

#define RFS_IOC_SHUTDOWN	_IOR('X', 125, __u32)

enum { SHUTDOWN_SYNC, SHUTDOWN_LOG, SHUTDOWN_NOW };

static int rfsm_do_shutdown(struct super_block *sb, u32 how)
{
	struct rfs_sb_info *sbi = RFS_SB(sb);
	int ret = 0;

	switch (how) {
	case SHUTDOWN_SYNC:
		down_read(&sb->s_umount);
		ret = sync_filesystem(sb);
		up_read(&sb->s_umount);
		break;
	case SHUTDOWN_LOG:	/* and times, which no record has */
		rfsm_lock(sbi);
		if (!sbi->fs->read_only)
			ret = rfsm_checkpoint(sbi, 0);
		rfsm_unlock(sbi);
		break;
	case SHUTDOWN_NOW:
		break;
	default:
		return -EINVAL;
	}
	rfsm_shutdown(sbi);
	return ret;
}

/* Counts zones from..to - 1 that hold nothing and are ready to be written. */
static u32 rfsm_empty_zones(const struct rfs_fs *fs, u32 from, u32 to)
{
	u32 n = 0;

	for (from = max_t(u32, from, RFS_CP_ZONES); from < to; from++)
		n += fs->zone[from].state == RFS_Z_FREE && !fs->zone[from].wp;
	return n;
}

/*
 * A drive of zones has no other use for a trim than resets. A check-point makes them, wherever the
 * zones are, so one is written. Zones that were being read are tried again. Zones that a rescan
 * needs stay. The range counts the zones that lie in it as a whole. If there are none, there is
 * nothing to do. Its length becomes the part of them that is free and was reset, now or before.
 */
static int rfsm_trim_zones(struct rfs_sb_info *sbi, struct fstrim_range *range)
{
	u64 zone = (u64)sbi->fs->geo.zone_blocks << PAGE_SHIFT;
	u64 all = sbi->fs->geo.zones * zone;
	u32 from, to;
	int ret;

	if (range->start >= all || range->len < PAGE_SIZE ||
	    range->minlen > zone)
		return -EINVAL;
	if (sbi->fs->read_only)
		return -EROFS;
	from = div64_u64(range->start + zone - 1, zone);
	to = div64_u64(range->start + min(range->len, all - range->start),
		       zone);
	range->len = 0;
	if (from >= to)
		return 0;
	rfsm_lock(sbi);
	ret = rfsm_checkpoint(sbi, 0);
	if (!ret)
		ret = rfsm_reset_free(sbi);
	range->len = (u64)rfsm_empty_zones(sbi->fs, from, to) *
		     le32_to_cpu(sbi->fs->super.zone_cap);
	/* statfs(2) does not count zones that no file gets. */
	range->len = min(range->len, sbi->fs->user_blocks) * RFS_BLOCK_BYTES;
	rfsm_unlock(sbi);
	return ret ? rfsm_failed(sbi, ret) : 0;
}

static int rfsm_trim(struct super_block *sb, struct fstrim_range __user *arg)
{
	struct fstrim_range range;
	int ret;

	if (copy_from_user(&range, arg, sizeof(range)))
		return -EFAULT;
	ret = rfsm_trim_zones(RFS_SB(sb), &range);
	if (!ret && copy_to_user(arg, &range, sizeof(range)))
		ret = -EFAULT;
	return ret;
}

long rfsm_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct super_block *sb = file_inode(file)->i_sb;
	u32 how;
	int ret;

	if (cmd == FS_IOC_GETVERSION)
		return put_user(file_inode(file)->i_generation,
				(int __user *)arg);
	if (cmd != RFS_IOC_SHUTDOWN && cmd != FITRIM)
		return rfsm_session_ioctl(file, cmd, arg);
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (cmd == FITRIM) {
		/* A frozen volume is not trimmed. */
		ret = mnt_want_write_file(file);
		if (ret)
			return ret;
		ret = rfsm_trim(sb, (struct fstrim_range __user *)arg);
		mnt_drop_write_file(file);
		return ret;
	}
	if (get_user(how, (u32 __user *)arg))
		return -EFAULT;
	return rfsm_do_shutdown(sb, how);
}

static const struct vm_operations_struct vm_ops = {
	.fault = filemap_fault,
	.map_pages = filemap_map_pages,
	.page_mkwrite = rfsm_page_mkwrite,
};

static int rfsm_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	file_accessed(file);
	vma->vm_ops = &vm_ops;
	return 0;
}

const struct inode_operations rfsm_file_iops = {
	.setattr = rfsm_setattr,
	.getattr = rfsm_getattr,
	.listxattr = rfsm_listxattr,
	.get_inode_acl = rfsm_get_acl,
	.set_acl = rfsm_set_acl,
	.fileattr_get = rfsm_fileattr_get,
	.fileattr_set = rfsm_fileattr_set,
	.fiemap = rfsm_fiemap,
};

const struct file_operations rfsm_file_fops = {
	.llseek = rfsm_file_llseek,
	.read_iter = rfsm_file_read_iter,
	.write_iter = rfsm_file_write_iter,
	.mmap = rfsm_file_mmap,
	.open = rfsm_file_open,
	.flush = rfsm_session_flush,
	.release = rfsm_session_release,
	.fsync = rfsm_fsync,
	.splice_read = filemap_splice_read,
	.splice_write = iter_file_splice_write,
	.fallocate = rfsm_fallocate,
	.unlocked_ioctl = rfsm_ioctl,
};
