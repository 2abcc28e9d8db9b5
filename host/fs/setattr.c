// SPDX-License-Identifier: GPL-2.0
#include <linux/fs.h>

#include "rfsm.h"
#include "update.h"
#include "inode.h"

/*
 * Asks whether a quota would refuse the owner, before his permissions are taken away. Others may
 * use up the quota until the owner changes.
 */
static int rfsm_may_chown(struct mnt_idmap *idmap, struct inode *inode,
			  const struct iattr *attr)
{
	kuid_t uid = from_vfsuid(idmap, inode->i_sb->s_user_ns,
				 attr->ia_vfsuid);
	kgid_t gid = from_vfsgid(idmap, inode->i_sb->s_user_ns,
				 attr->ia_vfsgid);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	struct rfs_dinode to = { 0 };
	int ret;

	to.uid = cpu_to_le32(attr->ia_valid & ATTR_UID ?
			     from_kuid(inode->i_sb->s_user_ns, uid) :
			     i_uid_read(inode));
	to.gid = cpu_to_le32(attr->ia_valid & ATTR_GID ?
			     from_kgid(inode->i_sb->s_user_ns, gid) :
			     i_gid_read(inode));
	rfsm_update(sbi, ret, rfs_may_give(sbi->fs, inode->i_ino, &to,
					   RFS_I(inode)->rsv_holes));
	return ret;
}

int rfsm_setattr(struct mnt_idmap *idmap, struct dentry *dentry,
		 struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	unsigned int logged = ATTR_MODE | ATTR_UID | ATTR_GID | ATTR_ATIME |
			      ATTR_MTIME;
	int ret = setattr_prepare(idmap, dentry, attr);

	if (ret)
		return ret;
	if (attr->ia_valid & ATTR_SIZE) {
		if (rfsm_has_session(inode))
			return -EBUSY;
		/*
		 * Blocks that were reserved behind the end go even if the size
		 * stays.
		 */
		if (attr->ia_size != i_size_read(inode) ||
		    !(attr->ia_valid & ATTR_OPEN)) {
			ret = rfsm_set_size(inode, attr->ia_size);
			if (ret)
				return ret;
			/* The record of the size has the time as well. */
			if (!(attr->ia_valid & ATTR_MTIME_SET))
				attr->ia_valid &= ~(ATTR_MTIME | ATTR_CTIME);
		}
	}
	/*
	 * The mode changes before the owner does: bits that are to be cleared must not be set for
	 * the new owner.
	 */
	if (attr->ia_valid & ATTR_MODE) {
		if (attr->ia_valid & (ATTR_UID | ATTR_GID))
			ret = rfsm_may_chown(idmap, inode, attr);
		if (!ret)
			ret = rfsm_acl_chmod(inode, attr->ia_mode);
		if (ret < 0)
			return ret;
		if (ret)
			logged &= ~ATTR_MODE;
	}
	setattr_copy(idmap, inode, attr);
	if (!(attr->ia_valid & logged)) {
		if (attr->ia_valid & ATTR_CTIME)
			mark_inode_dirty(inode);
		return 0;
	}
	ret = rfsm_log_attributes(inode, RFS_I(inode)->flags);
	/* The inode gets the record's time. If the new owner had no room, the old one stays. */
	rfsm_reload(inode);
	return ret;
}
