// SPDX-License-Identifier: GPL-2.0
/* Files: reading, writing, fsync, ioctls. */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "rfsm.h"

static ssize_t write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t ret;

	if (rfsm_dead(rfsm_of(inode->i_sb)))
		return -EIO;
	inode_lock(inode);
	ret = generic_write_checks(iocb, from);
	if (ret > 0) {
		ssize_t err = file_remove_privs(iocb->ki_filp);

		if (!err)
			err = file_update_time(iocb->ki_filp);
		if (!err && iocb->ki_pos > i_size_read(inode))
			err = rfsm_zero_tail(inode, i_size_read(inode));
		ret = err ? err : generic_perform_write(iocb, from);
	}
	inode_unlock(inode);
	return ret > 0 ? generic_write_sync(iocb, ret) : ret;
}

static ssize_t read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	if (rfsm_dead(rfsm_of(file_inode(iocb->ki_filp)->i_sb)))
		return -EIO;
	return generic_file_read_iter(iocb, to);
}

/* Of a directory all names: any of them may be in it. */
static int sync_log(struct rfs_fs *fs, struct inode *inode)
{
	if (fs->read_only)
		return -EROFS;
	if (S_ISDIR(inode->i_mode) && fs->pendings)
		return rfs_log_sync(fs);
	return rfs_fsync(fs, inode->i_ino);
}

int rfsm_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct inode *inode = file_inode(file);
	struct rfsm *m = rfsm_of(inode->i_sb);
	int ret = 0;

	if (rfsm_dead(m))
		return -EIO;
	if (S_ISREG(inode->i_mode))
		ret = file_write_and_wait_range(file, start, end);
	if (ret || sb_rdonly(inode->i_sb))
		return ret;
	rfsm_do(m, ret, sync_log(m->fs, inode));
	return ret;
}

#define RFS_IOC_SHUTDOWN	_IOR('X', 125, __u32)

enum { SHUTDOWN_SYNC, SHUTDOWN_LOG, SHUTDOWN_NOW };

static int do_shutdown(struct super_block *sb, u32 how)
{
	struct rfsm *m = rfsm_of(sb);
	int ret = 0;

	switch (how) {
	case SHUTDOWN_SYNC:
		down_read(&sb->s_umount);
		ret = sync_filesystem(sb);
		up_read(&sb->s_umount);
		break;
	case SHUTDOWN_LOG:
		rfsm_do(m, ret, rfs_log_sync(m->fs));
		break;
	case SHUTDOWN_NOW:
		break;
	default:
		return -EINVAL;
	}
	rfsm_shutdown(m);
	return ret;
}

long rfsm_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	u32 how;

	if (cmd != RFS_IOC_SHUTDOWN)
		return -ENOTTY;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (get_user(how, (u32 __user *)arg))
		return -EFAULT;
	return do_shutdown(file_inode(file)->i_sb, how);
}

static const struct vm_operations_struct vm_ops = {
	.fault = filemap_fault,
	.map_pages = filemap_map_pages,
	.page_mkwrite = rfsm_page_mkwrite,
};

static int mmap(struct file *file, struct vm_area_struct *vma)
{
	file_accessed(file);
	vma->vm_ops = &vm_ops;
	return 0;
}

const struct inode_operations rfsm_file_iops = {
	.setattr = rfsm_setattr,
	.getattr = rfsm_getattr,
};

const struct file_operations rfsm_file_fops = {
	.llseek = generic_file_llseek,
	.read_iter = read_iter,
	.write_iter = write_iter,
	.mmap = mmap,
	.open = generic_file_open,
	.fsync = rfsm_fsync,
	.splice_read = filemap_splice_read,
	.splice_write = iter_file_splice_write,
	.unlocked_ioctl = rfsm_ioctl,
};
