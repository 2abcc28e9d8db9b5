// SPDX-License-Identifier: GPL-2.0
/* These are directories: their names, and the operations on names. */
#include <linux/namei.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "error.h"
#include "checkpoint.h"
#include "update.h"
#include "inode.h"
#include "tree/dir.h"

static struct dentry *rfsm_lookup(struct inode *dir, struct dentry *dentry,
				  unsigned int flags)
{
	struct rfs_sb_info *sbi = RFS_SB(dir->i_sb);
	struct inode *inode = NULL;
	u32 ino;
	int ret;

	if (dentry->d_name.len > RFS_NAME_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	rfsm_query(sbi, ret,
		   rfs_dir_find(sbi->fs, dir->i_ino, dentry->d_name.name,
				dentry->d_name.len, &ino));
	if (!ret)
		inode = rfsm_iget(dir->i_sb, ino);
	else if (ret != -ENOENT)
		return ERR_PTR(rfsm_failed(sbi, ret));
	if (!IS_ERR_OR_NULL(inode) && !inode->i_nlink) {
		iput(inode);	/* a second name of what was deleted */
		return ERR_PTR(rfsm_failed(sbi, -EUCLEAN));
	}
	return d_splice_alias(inode, dentry);
}

static void rfsm_reload_both(struct inode *dir, struct inode *inode)
{
	rfsm_reload(dir);
	if (inode)
		rfsm_reload(inode);
}

/* Makes names durable at once where an option or a flag asks for it. */
static int rfsm_sync_names(struct inode *dir)
{
	struct rfs_sb_info *sbi = RFS_SB(dir->i_sb);
	int ret = 0;

	if (IS_DIRSYNC(dir))
		rfsm_update(sbi, ret, rfsm_log_sync(sbi));
	return ret;
}

static struct inode *rfsm_make_inode(struct mnt_idmap *idmap, struct inode *dir,
				     const char *name, umode_t mode, dev_t rdev,
				     const char *target)
{
	struct user_namespace *ns = dir->i_sb->s_user_ns;
	struct rfs_sb_info *sbi = RFS_SB(dir->i_sb);
	struct rfs_new how = { .rdev = new_encode_dev(rdev),
			       .target = target };
	struct inode *inode;
	u32 ino;
	int ret;

	how.uid = from_kuid(ns, mapped_fsuid(idmap, ns));
	how.gid = from_kgid(ns, mapped_fsgid(idmap, ns));
	if (dir->i_mode & S_ISGID) {
		how.gid = i_gid_read(dir);
		if (S_ISDIR(mode))
			mode |= S_ISGID;
	}
	how.mode = mode;
	/* The inode is made before its name, which lookups have just not found. */
	inode = new_inode(dir->i_sb);
	if (!inode)
		return ERR_PTR(-ENOMEM);
	ret = rfsm_inherit(dir, &how);
	if (!ret)
		rfsm_update(sbi, ret,
			    rfs_create(sbi->fs, dir->i_ino, name, &how,
				       &ino));
	kfree(how.xattrs);
	if (!ret)
		return rfsm_init_new_inode(inode, ino);
	iput(inode);
	return ERR_PTR(ret);
}

static int rfsm_make_entry(struct mnt_idmap *idmap, struct inode *dir,
			   struct dentry *dentry, umode_t mode, dev_t rdev,
			   const char *target)
{
	struct inode *inode = rfsm_make_inode(idmap, dir, dentry->d_name.name,
					      mode, rdev, target);

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	rfsm_reload_both(dir, NULL);
	if (inode->i_state & I_NEW)
		d_instantiate_new(dentry, inode);
	else	/* a file handle had it first */
		d_instantiate(dentry, inode);
	return rfsm_sync_names(dir);
}

static int rfsm_tmpfile(struct mnt_idmap *idmap, struct inode *dir,
			struct file *file, umode_t mode)
{
	struct inode *inode = rfsm_make_inode(idmap, dir, NULL, mode, 0, NULL);

	if (IS_ERR(inode))
		return finish_open_simple(file, PTR_ERR(inode));
	set_nlink(inode, 1);	/* which d_tmpfile() takes away */
	d_tmpfile(file, inode);
	if (inode->i_state & I_NEW)
		unlock_new_inode(inode);
	return finish_open_simple(file, 0);
}

static int rfsm_create(struct mnt_idmap *idmap, struct inode *dir,
		       struct dentry *dentry, umode_t mode, bool excl)
{
	return rfsm_make_entry(idmap, dir, dentry, mode, 0, NULL);
}

static int rfsm_mknod(struct mnt_idmap *idmap, struct inode *dir,
		      struct dentry *dentry, umode_t mode, dev_t rdev)
{
	return rfsm_make_entry(idmap, dir, dentry, mode, rdev, NULL);
}

static int rfsm_mkdir(struct mnt_idmap *idmap, struct inode *dir,
		      struct dentry *dentry, umode_t mode)
{
	return rfsm_make_entry(idmap, dir, dentry, mode | S_IFDIR, 0, NULL);
}

static int rfsm_symlink(struct mnt_idmap *idmap, struct inode *dir,
			struct dentry *dentry, const char *target)
{
	return rfsm_make_entry(idmap, dir, dentry, S_IFLNK | 0777, 0, target);
}

static int rfsm_link(struct dentry *from, struct inode *dir,
		     struct dentry *dentry)
{
	struct rfs_sb_info *sbi = RFS_SB(dir->i_sb);
	struct inode *inode = d_inode(from);
	int ret;

	rfsm_update(sbi, ret, rfs_link(sbi->fs, dir->i_ino, dentry->d_name.name,
				       inode->i_ino));
	if (ret)
		return ret;
	rfsm_reload_both(dir, inode);
	ihold(inode);
	d_instantiate(dentry, inode);
	return rfsm_sync_names(dir);
}

static int rfsm_unlink(struct inode *dir, struct dentry *dentry)
{
	struct rfs_sb_info *sbi = RFS_SB(dir->i_sb);
	u32 ino;
	int ret;

	rfsm_update(sbi, ret,
		    rfs_unlink(sbi->fs, dir->i_ino, dentry->d_name.name,
			       &ino));
	if (ret)
		return ret;
	rfsm_reload_both(dir, d_inode(dentry));
	return rfsm_sync_names(dir);
}

static int rfsm_rename(struct mnt_idmap *idmap, struct inode *dir1,
		       struct dentry *dentry1, struct inode *dir2,
		       struct dentry *dentry2, unsigned int flags)
{
	struct user_namespace *ns = dir1->i_sb->s_user_ns;
	struct rfs_sb_info *sbi = RFS_SB(dir1->i_sb);
	struct rfs_new how = { 0 };
	u32 ours = 0;
	int ret;

	/* The VFS has looked for the name if NOREPLACE is set. */
	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	if (flags & RENAME_EXCHANGE)
		ours |= RFS_REC_EXCHANGE;
	if (flags & RENAME_WHITEOUT) {
		ours |= RFS_REC_WHITEOUT;
		how.uid = from_kuid(ns, mapped_fsuid(idmap, ns));
		how.gid = from_kgid(ns, mapped_fsgid(idmap, ns));
	}
	rfsm_update(sbi, ret,
		    rfs_rename(sbi->fs, dir1->i_ino, dentry1->d_name.name,
			       dir2->i_ino, dentry2->d_name.name, ours,
			       &how));
	if (ret)
		return ret;
	rfsm_reload_both(dir1, d_inode(dentry1));
	rfsm_reload_both(dir2, d_inode(dentry2));
	ret = rfsm_sync_names(dir1);
	return ret ? ret : rfsm_sync_names(dir2);
}

/* Positions 0 and 1 are . and .., and those that follow are the core's. */
static int rfsm_iterate_dir(struct file *file, struct dir_context *ctx)
{
	struct inode *dir = file_inode(file);
	struct rfs_sb_info *sbi = RFS_SB(dir->i_sb);
	struct rfs_entry *entry;
	int ret;

	if (!dir_emit_dots(file, ctx))
		return 0;
	entry = kmalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	for (;;) {
		rfsm_query(sbi, ret,
			   rfs_dir_next(sbi->fs, dir->i_ino, ctx->pos - 2,
					entry));
		if (ret || !dir_emit(ctx, entry->name, entry->len, entry->ino,
				     entry->type))
			break;
		ctx->pos = entry->pos + 2;
	}
	kfree(entry);
	if (ret && ret != -ENOENT)
		return rfsm_failed(sbi, ret);
	return 0;
}

/* Positions are hashes, so they go beyond what a file may have. */
static loff_t rfsm_dir_llseek(struct file *file, loff_t pos, int whence)
{
	return generic_file_llseek_size(file, pos, whence, S64_MAX,
					i_size_read(file_inode(file)));
}

static const char *rfsm_get_link(struct dentry *dentry, struct inode *inode,
				 struct delayed_call *done)
{
	struct rfs_sb_info *sbi = RFS_SB(inode->i_sb);
	char *target;
	u32 len;
	int ret;

	if (!dentry)
		return ERR_PTR(-ECHILD);
	target = kmalloc(PATH_MAX + 1, GFP_KERNEL);
	if (!target)
		return ERR_PTR(-ENOMEM);
	rfsm_query(sbi, ret, rfs_readlink(sbi->fs, inode->i_ino, target, &len));
	if (ret) {
		kfree(target);
		return ERR_PTR(rfsm_failed(sbi, ret));
	}
	target[len] = '\0';
	set_delayed_call(done, kfree_link, target);
	return target;
}

const struct inode_operations rfsm_dir_iops = {
	.lookup = rfsm_lookup,
	.create = rfsm_create,
	.link = rfsm_link,
	.unlink = rfsm_unlink,
	.symlink = rfsm_symlink,
	.mkdir = rfsm_mkdir,
	.rmdir = rfsm_unlink,
	.mknod = rfsm_mknod,
	.rename = rfsm_rename,
	.tmpfile = rfsm_tmpfile,
	.setattr = rfsm_setattr,
	.getattr = rfsm_getattr,
	.listxattr = rfsm_listxattr,
	.get_inode_acl = rfsm_get_acl,
	.set_acl = rfsm_set_acl,
	.fileattr_get = rfsm_fileattr_get,
	.fileattr_set = rfsm_fileattr_set,
};

const struct inode_operations rfsm_symlink_iops = {
	.get_link = rfsm_get_link,
	.setattr = rfsm_setattr,
	.getattr = rfsm_getattr,
	.listxattr = rfsm_listxattr,
};

const struct inode_operations rfsm_special_iops = {
	.setattr = rfsm_setattr,
	.getattr = rfsm_getattr,
	.listxattr = rfsm_listxattr,
	.get_inode_acl = rfsm_get_acl,
	.set_acl = rfsm_set_acl,
};

const struct file_operations rfsm_dir_fops = {
	.read = generic_read_dir,
	.iterate_shared = rfsm_iterate_dir,
	.llseek = rfsm_dir_llseek,
	.fsync = rfsm_fsync,
	.unlocked_ioctl = rfsm_ioctl,
};
