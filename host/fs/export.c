// SPDX-License-Identifier: GPL-2.0
/*
 * File handles, for NFS and open_by_handle_at, have the inode's number and
 * generation.
 */
#include <linux/exportfs.h>

#include "rfsm.h"
#include "error.h"
#include "checkpoint.h"
#include "update.h"
#include "inode.h"
#include "tree/tree.h"

/* A handle may be old: -ESTALE says that its inode does not exist any more. */
static struct inode *rfsm_get_inode(struct super_block *sb, u64 ino, u32 gen)
{
	struct rfs_sb_info *sbi = RFS_SB(sb);
	struct inode *inode;

	if (ino < RFS_ROOT_INO || ino >= le32_to_cpu(sbi->fs->super.max_inodes))
		return ERR_PTR(-ESTALE);
	inode = rfsm_iget_if(sb, ino);
	if (inode == ERR_PTR(-ENOENT))
		return ERR_PTR(-ESTALE);
	if (IS_ERR(inode))
		return ERR_PTR(rfsm_failed(sbi, PTR_ERR(inode)));
	/* A file without a name exists as long as somebody has it open. */
	if (inode->i_generation != gen ||
	    (!inode->i_nlink && S_ISDIR(inode->i_mode))) {
		iput(inode);
		return ERR_PTR(-ESTALE);
	}
	return inode;
}

static struct dentry *rfsm_fh_to_dentry(struct super_block *sb, struct fid *fid,
					int len, int type)
{
	return generic_fh_to_dentry(sb, fid, len, type, rfsm_get_inode);
}

static struct dentry *rfsm_fh_to_parent(struct super_block *sb, struct fid *fid,
					int len, int type)
{
	return generic_fh_to_parent(sb, fid, len, type, rfsm_get_inode);
}

/* The caller holds the volume lock. */
static int rfsm_parent_of(struct rfs_sb_info *sbi, u32 ino, u32 *parent)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(sbi->fs, ino, &di, &buf);

	if (!ret)
		*parent = le32_to_cpu(di->parent);
	return ret;
}

static struct dentry *rfsm_get_parent(struct dentry *child)
{
	struct inode *inode = d_inode(child);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u32 parent = 0;
	int ret;

	rfsm_query(sbi, ret, rfsm_parent_of(sbi, inode->i_ino, &parent));
	if (ret)
		return ERR_PTR(rfsm_failed(sbi, ret));
	return d_obtain_alias(rfsm_iget(inode->i_sb, parent));
}

static int rfsm_commit_metadata(struct inode *inode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	int ret;

	rfsm_update(sbi, ret, rfsm_log_sync(sbi));
	return ret;
}

const struct export_operations rfsm_export_ops = {
	.encode_fh = generic_encode_ino32_fh,
	.fh_to_dentry = rfsm_fh_to_dentry,
	.fh_to_parent = rfsm_fh_to_parent,
	.get_parent = rfsm_get_parent,
	.commit_metadata = rfsm_commit_metadata,
};
