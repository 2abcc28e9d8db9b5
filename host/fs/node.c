// SPDX-License-Identifier: GPL-2.0
/* Inodes come from the core to Linux here, and go back. */
#include <linux/pagemap.h>
#include <linux/posix_acl.h>
#include <linux/writeback.h>

#include "rfsm.h"
#include "error.h"
#include "flush.h"
#include "update.h"
#include "blocks.h"
#include "bypass.h"
#include "pages.h"
#include "inode.h"
#include "tree/tree.h"
#include "tree/xattr.h"

static struct timespec64 rfsm_time_of(__le64 ns)
{
	return ns_to_timespec64(le64_to_cpu(ns));
}

static __le64 rfsm_ns_of(struct timespec64 time)
{
	return cpu_to_le64(timespec64_to_ns(&time));
}

void rfsm_times(struct inode *inode, struct rfs_dinode *out)
{
	out->atime = rfsm_ns_of(inode_get_atime(inode));
	out->mtime = rfsm_ns_of(inode_get_mtime(inode));
	out->ctime = rfsm_ns_of(inode_get_ctime(inode));
}

static void rfsm_set_flags(struct inode *inode, u32 flags)
{
	static const struct { u32 ours, theirs; } pairs[] = {
		{ FS_SYNC_FL, S_SYNC }, { FS_APPEND_FL, S_APPEND },
		{ FS_IMMUTABLE_FL, S_IMMUTABLE }, { FS_NOATIME_FL, S_NOATIME },
		{ FS_DIRSYNC_FL, S_DIRSYNC },
	};
	unsigned int set = 0, mask = 0, i;

	for (i = 0; i < ARRAY_SIZE(pairs); i++) {
		mask |= pairs[i].theirs;
		if (flags & pairs[i].ours)
			set |= pairs[i].theirs;
	}
	RFS_I(inode)->flags = flags;
	inode_set_flags(inode, set, mask);
}

/* Refreshes the fields that operations on names and attributes change. */
void rfsm_refresh(struct inode *inode, const struct rfs_dinode *di)
{
	inode->i_mode = le32_to_cpu(di->mode);
	i_uid_write(inode, le32_to_cpu(di->uid));
	i_gid_write(inode, le32_to_cpu(di->gid));
	set_nlink(inode, le32_to_cpu(di->nlink));
	rfsm_set_flags(inode, le32_to_cpu(di->flags));
	inode_set_ctime_to_ts(inode, rfsm_time_of(di->ctime));
	WRITE_ONCE(RFS_I(inode)->blocks, rfs_blocks_told(di));
	if (!S_ISDIR(inode->i_mode))
		return;
	inode_set_mtime_to_ts(inode, rfsm_time_of(di->mtime));
	i_size_write(inode, le64_to_cpu(di->size));
}

/* Reads the inode again. The caller holds the volume lock. */
static int rfsm_reload_inode(struct rfs_sb_info *sbi, struct inode *inode)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(sbi->fs, inode->i_ino, &di, &buf);

	if (!ret)
		rfsm_refresh(inode, di);
	return ret;
}

void rfsm_reload(struct inode *inode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	int ret;

	rfsm_query(sbi, ret, rfsm_reload_inode(sbi, inode));
}

/* Fills in a new inode. The caller holds the volume lock. */
static int rfsm_fill_inode_from(struct rfs_sb_info *sbi, struct inode *inode,
				u32 *rdev)
{
	const struct rfs_xattr *x;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 at = 0;
	int ret = rfs_iget(sbi->fs, inode->i_ino, &di, &buf);

	if (!ret) {
		rfsm_refresh(inode, di);
		RFS_I(inode)->btime = rfsm_time_of(di->btime);
		inode->i_generation = le32_to_cpu(di->gen);
		inode_set_mtime_to_ts(inode, rfsm_time_of(di->mtime));
		inode_set_atime_to_ts(inode, rfsm_time_of(di->atime));
		RFS_I(inode)->logged_atime =
			buf->dirty ? S64_MIN : le64_to_cpu(di->atime);
		i_size_write(inode, le64_to_cpu(di->size));
		if (i_size_read(inode) < 0 ||
		    i_size_read(inode) > inode->i_sb->s_maxbytes)
			ret = -EUCLEAN;
		*rdev = le32_to_cpu(di->rdev);
	}
	if (!ret)
		ret = rfs_xattr_next(sbi->fs, inode->i_ino, &at, &x);
	if (!ret && !x)
		cache_no_acl(inode);
	return ret;
}

static int rfsm_fill_inode(struct inode *inode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	const struct rfsm_inode_ops *kinds = sbi->kinds;
	u32 rdev = 0;
	int ret;

	rfsm_query(sbi, ret, rfsm_fill_inode_from(sbi, inode, &rdev));
	if (ret)
		return ret;
	switch (inode->i_mode & S_IFMT) {
	case S_IFREG:
		inode->i_op = kinds->file_iops;
		inode->i_fop = kinds->file_fops;
		inode->i_mapping->a_ops = &rfsm_aops;
		mapping_set_folio_order_range(inode->i_mapping, 0,
					      RFSM_LARGEST);
		break;
	case S_IFDIR:
		inode->i_op = kinds->dir_iops;
		inode->i_fop = kinds->dir_fops;
		break;
	case S_IFLNK:
		inode->i_op = kinds->symlink_iops;
		break;
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		inode->i_op = kinds->special_iops;
		init_special_inode(inode, inode->i_mode, new_decode_dev(rdev));
		break;
	default:
		return -EUCLEAN;
	}
	return 0;
}

struct inode *rfsm_iget_if(struct super_block *sb, u32 ino)
{
	struct inode *inode = iget_locked(sb, ino);
	int ret;

	if (!inode)
		return ERR_PTR(-ENOMEM);
	if (!(inode->i_state & I_NEW))
		return inode;
	ret = rfsm_fill_inode(inode);
	/* O_TMPFILE has just made this inode, or it could not be freed: it is not ours. */
	if (!ret && !inode->i_nlink)
		ret = -ENOENT;
	if (ret) {
		iget_failed(inode);
		return ERR_PTR(ret);
	}
	rfsm_bypass_load(inode);
	unlock_new_inode(inode);
	return inode;
}

struct inode *rfsm_iget(struct super_block *sb, u32 ino)
{
	struct inode *inode = rfsm_iget_if(sb, ino);
	int ret = PTR_ERR_OR_ZERO(inode);

	if (!ret)
		return inode;
	/* A name that leads to no inode is damage. */
	ret = ret == -ENOENT ? -EUCLEAN : ret;
	return ERR_PTR(rfsm_failed(RFS_SB(sb), ret));
}

struct inode *rfsm_init_new_inode(struct inode *inode, u32 ino)
{
	struct super_block *sb = inode->i_sb;
	int ret;

	inode->i_ino = ino;
	if (insert_inode_locked(inode)) {	/* by a file handle just now */
		iput(inode);
		return rfsm_iget(sb, ino);
	}
	ret = rfsm_fill_inode(inode);
	if (ret) {
		iget_failed(inode);
		return ERR_PTR(rfsm_failed(RFS_SB(sb), ret));
	}
	return inode;
}

/* The last link is gone and nobody has the inode open, so it is freed. */
void rfsm_evict_inode(struct inode *inode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	bool more;
	int ret;

	truncate_inode_pages_final(&inode->i_data);
	rfsm_settle_later(inode);
	clear_inode(inode);
	if (inode->i_nlink || is_bad_inode(inode) || sbi->fs->read_only)
		return;
	sb_start_intwrite(inode->i_sb);
	do {	/* others have their turn between */
		rfsm_update(sbi, ret,
			    rfs_free_some(sbi->fs, inode->i_ino, &more));
	} while (!ret && more);
	sb_end_intwrite(inode->i_sb);
}

/*
 * These times are in no record and in no page: those of reads, and those of writes until their
 * pages are written. The next check-point has them.
 */
int rfsm_write_inode(struct inode *inode, struct writeback_control *wbc)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct rfs_dinode times = {
		.atime = rfsm_ns_of(inode_get_atime(inode)),
		.mtime = rfsm_ns_of(inode_get_mtime(inode)),
		.ctime = rfsm_ns_of(inode_get_ctime(inode)),
	};
	int ret;

	if (sbi->fs->read_only || !inode->i_nlink)
		return 0;
	rfsm_update(sbi, ret, rfs_set_times(sbi->fs, inode->i_ino, &times));
	return ret;
}

int rfsm_set_size(struct inode *inode, loff_t size)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	loff_t old = i_size_read(inode);
	u64 to = RFS_FILE_BLOCKS;
	bool more = true;
	int ret = 0;

	if (!S_ISREG(inode->i_mode))
		return -EINVAL;
	inode_dio_wait(inode);
	filemap_invalidate_lock(inode->i_mapping);
	if (size > old)
		ret = rfsm_zero_after_end(inode, old);
	if (ret)
		goto out;
	/* After this no page that is dropped is in flight. */
	truncate_setsize(inode, size);
	while (!ret && size <= old && more)
		rfsm_update(sbi, ret, rfs_shorten(sbi->fs, inode->i_ino,
						  DIV_ROUND_UP_ULL(size,
								   PAGE_SIZE),
						  &to, true, &more));
	if (!ret)
		rfsm_update(sbi, ret, rfs_truncate(sbi->fs, inode->i_ino, size,
						   size > old));
	rfsm_reload(inode);
	if (!ret)	/* both are the record's */
		inode_set_mtime_to_ts(inode, inode_get_ctime(inode));
out:
	filemap_invalidate_unlock(inode->i_mapping);
	return ret;
}

/*
 * Reservations for the inode's pages move to a new owner along with it. The caller holds the volume
 * lock.
 */
static int rfsm_set_attributes(struct rfs_sb_info *sbi, struct inode *inode,
			       const struct rfs_dinode *to)
{
	return rfs_setattr(sbi->fs, inode->i_ino, to,
			   RFS_I(inode)->rsv_holes);
}

int rfsm_log_attributes(struct inode *inode, u32 flags)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct rfs_dinode to = { 0 };
	int ret;

	to.flags = cpu_to_le32(flags);
	to.mode = cpu_to_le32(inode->i_mode);
	to.uid = cpu_to_le32(i_uid_read(inode));
	to.gid = cpu_to_le32(i_gid_read(inode));
	rfsm_times(inode, &to);
	rfsm_update(sbi, ret, rfsm_set_attributes(sbi, inode, &to));
	return ret;
}

int rfsm_getattr(struct mnt_idmap *idmap, const struct path *path,
		 struct kstat *stat, u32 mask, unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);

	generic_fillattr(idmap, mask, inode, stat);
	stat->size = max(stat->size, READ_ONCE(RFS_I(inode)->session_size));
	stat->blocks = rfsm_blocks(inode) << (12 - SECTOR_SHIFT);
	stat->btime = RFS_I(inode)->btime;
	stat->result_mask |= STATX_BTIME;
	generic_fill_statx_attr(inode, stat);
	if (RFS_I(inode)->flags & FS_NODUMP_FL)
		stat->attributes |= STATX_ATTR_NODUMP;
	stat->attributes_mask |= STATX_ATTR_NODUMP;
	/* Direct I/O goes through the page cache if it has to, so any alignment is allowed. */
	if (mask & STATX_DIOALIGN && S_ISREG(inode->i_mode)) {
		stat->dio_mem_align = 1;
		stat->dio_offset_align = 1;
		stat->result_mask |= STATX_DIOALIGN;
	}
	if (mask & STATX_WRITE_ATOMIC && S_ISREG(inode->i_mode))
		generic_fill_statx_atomic_writes(stat, PAGE_SIZE,
						 RFSM_ATOMIC_MAX);
	return 0;
}
