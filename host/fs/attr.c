// SPDX-License-Identifier: GPL-2.0
/* These are extended attributes, access control lists, and flags as chattr sets them. */
#include <linux/fs.h>
#include <linux/fileattr.h>
#include <linux/pagemap.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/slab.h>
#include <linux/xattr.h>

#include "rfsm.h"
#include "error.h"
#include "update.h"
#include "bypass.h"
#include "inode.h"
#include "tree/xattr.h"

static int rfsm_get_xattr(struct inode *inode, const char *name, void *value,
			  size_t size)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	int ret;

	rfsm_query(sbi, ret,
		   rfs_xattr_get(sbi->fs, inode->i_ino, name, value, size));
	return ret < 0 ? rfsm_failed(sbi, ret) : ret;
}

/* The caller holds the inode's lock. Unless mode is 0, permissions change with the attribute. */
static int rfsm_set_xattr(struct inode *inode, const char *name,
			  const void *value,
			  size_t size, int flags, umode_t mode)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	u32 how = 0;
	int ret;

	if (flags & XATTR_CREATE)
		how |= RFS_XATTR_CREATE;
	if (flags & XATTR_REPLACE)
		how |= RFS_XATTR_REPLACE;
	rfsm_update(sbi, ret,
		    rfs_xattr_set(sbi->fs, inode->i_ino, name, value, size,
				  how, mode));
	if (ret)
		return ret;
	rfsm_reload(inode);
	return 0;
}

static int rfsm_xattr_get(const struct xattr_handler *handler,
			  struct dentry *dentry,
			  struct inode *inode, const char *name, void *value,
			  size_t size)
{
	return rfsm_get_xattr(inode, xattr_full_name(handler, name), value,
			      size);
}

static int rfsm_xattr_set(const struct xattr_handler *handler,
			  struct mnt_idmap *idmap,
			  struct dentry *dentry, struct inode *inode,
			  const char *name,
			  const void *value, size_t size, int flags)
{
	return rfsm_set_xattr(inode, xattr_full_name(handler, name), value,
			      size, flags, 0);
}

static const struct xattr_handler user_handler = {
	.prefix = XATTR_USER_PREFIX,
	.get = rfsm_xattr_get,
	.set = rfsm_xattr_set,
};

static const struct xattr_handler trusted_handler = {
	.prefix = XATTR_TRUSTED_PREFIX,
	.get = rfsm_xattr_get,
	.set = rfsm_xattr_set,
};

static const struct xattr_handler security_handler = {
	.prefix = XATTR_SECURITY_PREFIX,
	.get = rfsm_xattr_get,
	.set = rfsm_xattr_set,
};

/* This attribute says where a hybrid volume writes back a file: first to flash, or home. */
#define SECTION		"section"
static const char *const sections[] = { "log", "slow" };

static int rfsm_section_get(const struct xattr_handler *handler,
			    struct dentry *dentry, struct inode *inode,
			    const char *name, void *value, size_t size)
{
	const char *is = sections[!!(RFS_I(inode)->flags & RFS_INODE_BYPASS)];
	size_t len = strlen(is);

	if (strcmp(name, SECTION))
		return -ENODATA;
	if (size && size < len)
		return -ERANGE;
	if (size)
		memcpy(value, is, len);
	return len;
}

/* Blocks that the file has stay where they are. New files of a directory get its section. */
static int rfsm_section_set(const struct xattr_handler *handler,
			    struct mnt_idmap *idmap, struct dentry *dentry,
			    struct inode *inode, const char *name,
			    const void *value, size_t size, int how)
{
	u32 flags = RFS_I(inode)->flags, is = 0;
	int ret;

	if (strcmp(name, SECTION))
		return -EOPNOTSUPP;
	/* The VFS asks for no more than permission to write. */
	if (!inode_owner_or_capable(idmap, inode))
		return -EPERM;
	while (value && is < ARRAY_SIZE(sections) &&
	       (strlen(sections[is]) != size ||
		memcmp(sections[is], value, size)))
		is++;
	if (is == ARRAY_SIZE(sections) ||
	    (!S_ISREG(inode->i_mode) && !S_ISDIR(inode->i_mode)))
		return -EINVAL;
	if (is && !rfsm_may_bypass(RFS_SB(inode->i_sb)))
		return -EOPNOTSUPP;
	flags &= ~RFS_INODE_BYPASS;
	ret = rfsm_log_attributes(inode, flags | (is ? RFS_INODE_BYPASS : 0));
	if (ret)
		return ret;
	rfsm_reload(inode);
	/* If the inode is loaded later, nothing else says which of its blocks were written home. */
	if (!is && S_ISREG(inode->i_mode))
		ret = filemap_write_and_wait(inode->i_mapping);
	return ret ? ret : rfsm_bypass_sync(inode);
}

static const struct xattr_handler rfs_handler = {
	.prefix = "rfs.",
	.get = rfsm_section_get,
	.set = rfsm_section_set,
};

const struct xattr_handler *const rfsm_xattr_handlers[] = {
	&user_handler, &trusted_handler, &security_handler, &rfs_handler, NULL,
};

static bool rfsm_xattr_hidden(const struct rfs_xattr *x)
{
	size_t len = strlen(XATTR_TRUSTED_PREFIX);

	return x->len > len && !memcmp(x->name, XATTR_TRUSTED_PREFIX, len);
}

/* Returns the names' bytes, or an error. The caller holds the volume lock. */
static ssize_t rfsm_list_xattrs(struct rfs_sb_info *sbi, u32 ino, bool all,
				char *list, size_t size)
{
	const struct rfs_xattr *x;
	ssize_t used = 0;
	u32 at = 0;
	int ret;

	for (;;) {
		ret = rfs_xattr_next(sbi->fs, ino, &at, &x);
		if (ret)
			return ret;
		if (!x)
			return used;
		if (rfsm_xattr_hidden(x) && !all)
			continue;
		if (size && used + x->len + 1 > size)
			return -ERANGE;
		if (size) {
			memcpy(list + used, x->name, x->len);
			list[used + x->len] = '\0';
		}
		used += x->len + 1;
	}
}

ssize_t rfsm_listxattr(struct dentry *dentry, char *list, size_t size)
{
	struct inode *inode = d_inode(dentry);
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	bool all = capable(CAP_SYS_ADMIN);
	ssize_t ret;

	rfsm_query(sbi, ret,
		   rfsm_list_xattrs(sbi, inode->i_ino, all, list, size));
	return ret < 0 ? rfsm_failed(sbi, ret) : ret;
}

struct posix_acl *rfsm_get_acl(struct inode *inode, int type, bool rcu)
{
	struct user_namespace *ns = inode->i_sb->s_user_ns;
	struct posix_acl *acl;
	void *value;
	int ret;

	if (rcu)
		return ERR_PTR(-ECHILD);
	value = kmalloc(RFS_BODY_BYTES, GFP_NOFS);
	if (!value)
		return ERR_PTR(-ENOMEM);
	ret = rfsm_get_xattr(inode, posix_acl_xattr_name(type), value,
			     RFS_BODY_BYTES);
	if (ret == -ENODATA)
		acl = NULL;
	else
		acl = ret < 0 ? ERR_PTR(ret) :
				posix_acl_from_xattr(ns, value, ret);
	kfree(value);
	return acl;
}

/* Returns the attribute's value, which the caller frees. *size is its bytes. */
static void *rfsm_acl_value(struct inode *inode, const struct posix_acl *acl,
			    size_t *size)
{
	void *value;
	int ret;

	*size = posix_acl_xattr_size(acl->a_count);
	value = kmalloc(*size, GFP_NOFS);
	if (!value)
		return ERR_PTR(-ENOMEM);
	ret = posix_acl_to_xattr(inode->i_sb->s_user_ns, acl, value, *size);
	if (ret < 0) {
		kfree(value);
		return ERR_PTR(ret);
	}
	return value;
}

/* The mode and the list change in one record. */
int rfsm_set_acl(struct mnt_idmap *idmap, struct dentry *dentry,
		 struct posix_acl *acl, int type)
{
	struct inode *inode = d_inode(dentry);
	struct posix_acl *kept = acl;
	void *value = NULL;
	umode_t mode = 0;
	size_t size = 0;
	int ret;

	if (type == ACL_TYPE_DEFAULT && !S_ISDIR(inode->i_mode))
		return acl ? -EACCES : 0;
	if (type == ACL_TYPE_ACCESS && acl) {
		ret = posix_acl_update_mode(idmap, inode, &mode, &kept);
		if (ret)
			return ret;
	}
	if (kept)
		value = rfsm_acl_value(inode, kept, &size);
	if (IS_ERR(value))
		return PTR_ERR(value);
	ret = rfsm_set_xattr(inode, posix_acl_xattr_name(type), value, size, 0,
			     mode);
	kfree(value);
	if (ret == -ENODATA) {	/* there was none to remove */
		ret = 0;
		if (mode && mode != inode->i_mode) {
			inode->i_mode = mode;
			inode_set_ctime_current(inode);
			ret = rfsm_log_attributes(inode,
						  RFS_I(inode)->flags);
		}
	}
	if (!ret)
		set_cached_acl(inode, type, kept);
	return ret;
}

/*
 * Changes the mode of an inode that has an ACL: permissions and the ACL's mask change in one
 * record. Returns 1 then, and 0 if it has no ACL. The caller holds the inode's lock.
 */
int rfsm_acl_chmod(struct inode *inode, umode_t mode)
{
	struct posix_acl *acl;
	void *value;
	size_t size;
	int ret;

	if (S_ISLNK(mode))
		return 0;
	acl = get_inode_acl(inode, ACL_TYPE_ACCESS);
	if (IS_ERR_OR_NULL(acl))
		return PTR_ERR_OR_ZERO(acl);
	ret = __posix_acl_chmod(&acl, GFP_NOFS, mode);	/* it may be another */
	if (ret)
		return ret;
	value = rfsm_acl_value(inode, acl, &size);
	ret = PTR_ERR_OR_ZERO(value);
	if (!ret) {
		ret = rfsm_set_xattr(inode,
				     posix_acl_xattr_name(ACL_TYPE_ACCESS),
				     value, size, 0, mode);
		kfree(value);
	}
	if (!ret)
		set_cached_acl(inode, ACL_TYPE_ACCESS, acl);
	posix_acl_release(acl);
	return ret ? ret : 1;
}

static int rfsm_pack_xattrs(struct inode *dir, const struct posix_acl *acl,
			    int type, __le32 *image, u32 *used)
{
	size_t size;
	void *value;
	int ret;

	if (!acl)
		return 0;
	value = rfsm_acl_value(dir, acl, &size);
	if (IS_ERR(value))
		return PTR_ERR(value);
	ret = rfs_xattr_pack(image, used, posix_acl_xattr_name(type), value,
			     size);
	kfree(value);
	return ret;
}

int rfsm_inherit(struct inode *dir, struct rfs_new *how)
{
	struct posix_acl *initial, *access;
	umode_t mode = how->mode;
	__le32 *image = NULL;
	int ret;

	how->flags = RFS_I(dir)->flags & (FS_NODUMP_FL | FS_NOATIME_FL);
	if (S_ISREG(mode) || S_ISDIR(mode))
		how->flags |= RFS_I(dir)->flags &
			      (FS_SYNC_FL | RFS_INODE_BYPASS);
	if (S_ISDIR(mode))
		how->flags |= RFS_I(dir)->flags & FS_DIRSYNC_FL;
	ret = posix_acl_create(dir, &mode, &initial, &access);
	if (ret)
		return ret;
	how->mode = mode;
	if (initial || access) {
		image = kzalloc(RFS_BODY_BYTES, GFP_NOFS);
		ret = image ? rfsm_pack_xattrs(dir, access, ACL_TYPE_ACCESS,
					       image,
					       &how->xattr_bytes) : -ENOMEM;
	}
	if (!ret)
		ret = rfsm_pack_xattrs(dir, initial, ACL_TYPE_DEFAULT, image,
				       &how->xattr_bytes);
	posix_acl_release(initial);
	posix_acl_release(access);
	if (ret)
		kfree(image);
	else
		how->xattrs = image;
	return ret;
}

#define SETTABLE	(FS_SYNC_FL | FS_IMMUTABLE_FL | FS_APPEND_FL |	\
			 FS_NODUMP_FL | FS_NOATIME_FL | FS_DIRSYNC_FL)

int rfsm_fileattr_get(struct dentry *dentry, struct fileattr *fa)
{
	fileattr_fill_flags(fa, RFS_I(d_inode(dentry))->flags & SETTABLE);
	return 0;
}

int rfsm_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry,
		      struct fileattr *fa)
{
	struct inode *inode = d_inode(dentry);
	int ret;

	if (fileattr_has_fsx(fa) || fa->flags & ~SETTABLE)
		return -EOPNOTSUPP;
	ret = rfsm_log_attributes(inode, fa->flags |
				  (RFS_I(inode)->flags & ~SETTABLE));
	if (ret)
		return ret;
	rfsm_reload(inode);
	return 0;
}
