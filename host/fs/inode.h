/* SPDX-License-Identifier: GPL-2.0 */
/* These functions are for inodes, names and files. */
#ifndef RFSM_INODE_H
#define RFSM_INODE_H

#include "rfsm.h"

/**
 * struct rfsm_inode_ops - operations of inodes, by their kind
 *
 * Inodes are made below the files that have these operations, so the mount hands the table over.
 */
struct rfsm_inode_ops {
	const struct inode_operations *file_iops;
	const struct file_operations *file_fops;
	const struct inode_operations *dir_iops;
	const struct file_operations *dir_fops;
	const struct inode_operations *symlink_iops;
	const struct inode_operations *special_iops;
};

struct inode *rfsm_iget(struct super_block *sb, u32 ino);
/* Does what rfsm_iget() does, but -ENOENT says that there is none: it was not found by a name. */
struct inode *rfsm_iget_if(struct super_block *sb, u32 ino);
/*
 * A new inode becomes the one that the core has just made. It is still I_NEW, unless a file handle
 * has found the core's first. After an error it is gone.
 */
struct inode *rfsm_init_new_inode(struct inode *inode, u32 ino);
void rfsm_refresh(struct inode *inode, const struct rfs_dinode *di);
/* Reads the inode from the core and refreshes it. */
void rfsm_reload(struct inode *inode);
void rfsm_evict_inode(struct inode *inode);
/* Fills in the three times as Linux has them. */
void rfsm_times(struct inode *inode, struct rfs_dinode *out);
int rfsm_write_inode(struct inode *inode, struct writeback_control *wbc);
/* The caller holds the inode's lock. */
int rfsm_set_size(struct inode *inode, loff_t size);
int rfsm_setattr(struct mnt_idmap *idmap, struct dentry *dentry,
		 struct iattr *attr);
int rfsm_getattr(struct mnt_idmap *idmap, const struct path *path,
		 struct kstat *stat, u32 mask, unsigned int flags);

/* Writes a record of the inode's mode, owner and times, and of these flags. */
int rfsm_log_attributes(struct inode *inode, u32 flags);

extern const struct xattr_handler *const rfsm_xattr_handlers[];
ssize_t rfsm_listxattr(struct dentry *dentry, char *list, size_t size);
struct posix_acl *rfsm_get_acl(struct inode *inode, int type, bool rcu);
int rfsm_set_acl(struct mnt_idmap *idmap, struct dentry *dentry,
		 struct posix_acl *acl, int type);
int rfsm_acl_chmod(struct inode *inode, umode_t mode);
/* Fills in what a new inode gets from its directory. The caller frees how->xattrs. */
int rfsm_inherit(struct inode *dir, struct rfs_new *how);
int rfsm_fileattr_get(struct dentry *dentry, struct fileattr *fa);
int rfsm_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry,
		      struct fileattr *fa);

extern const struct export_operations rfsm_export_ops;

extern const struct inode_operations rfsm_dir_iops;
extern const struct inode_operations rfsm_symlink_iops;
extern const struct inode_operations rfsm_special_iops;
extern const struct file_operations rfsm_dir_fops;

extern const struct inode_operations rfsm_file_iops;
extern const struct file_operations rfsm_file_fops;
long rfsm_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int rfsm_fsync(struct file *file, loff_t start, loff_t end, int datasync);
/* These are called with the inode's lock held, and take whole blocks. */
int rfsm_collapse_range(struct file *file, loff_t pos, loff_t len);
int rfsm_insert_range(struct file *file, loff_t pos, loff_t len);

/* Handles an ioctl of a file's transaction. It returns -ENOTTY for any other. */
long rfsm_session_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
/*
 * These are for an inode with a session. The first is called with the inode's lock held, and the
 * second takes it.
 */
ssize_t rfsm_session_write(struct kiocb *iocb, struct iov_iter *from);
ssize_t rfsm_session_read(struct kiocb *iocb, struct iov_iter *to);
/* Says whether there is a session. Without the inode's lock it is a hint. */
bool rfsm_has_session(struct inode *inode);
/* The session is dropped if the process that began it ends, or the file is closed. */
int rfsm_session_flush(struct file *file, fl_owner_t id);
int rfsm_session_release(struct inode *inode, struct file *file);

#endif
