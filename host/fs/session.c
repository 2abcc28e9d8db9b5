// SPDX-License-Identifier: GPL-2.0
/*
 * These are transactions of a file, by the ioctls of F2FS that SQLite uses. Writes after a start
 * are kept here, and seen by read(2) and stat(2), until they are written as one transaction or
 * dropped. Mappings, splice, sendfile, SEEK_END, SEEK_DATA and SEEK_HOLE show the committed state.
 */
#include <linux/f2fs.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/xarray.h>

#include "rfsm.h"
#include "flush.h"
#include "blocks.h"
#include "pages.h"
#include "inode.h"

#define FEATURE_ATOMIC_WRITE	0x0004	/* of F2FS_IOC_GET_FEATURES */

struct rfsm_session {
	struct file *file;	/* that has begun it */
	fl_owner_t owner;	/* whose it was: a process, as of its locks */
	struct xarray folios;	/* by index */
	u32 n;
};

bool rfsm_has_session(struct inode *inode)
{
	return READ_ONCE(RFS_I(inode)->session);
}

static int rfsm_session_start(struct file *file)
{
	struct inode *inode = file_inode(file);
	struct rfs_inode_info *ri = RFS_I(inode);
	struct rfsm_session *s;
	int ret;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (!inode_owner_or_capable(file_mnt_idmap(file), inode))
		return -EACCES;
	if (!S_ISREG(inode->i_mode) || file->f_flags & O_DIRECT)
		return -EINVAL;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	s->file = file;
	s->owner = current->files;
	xa_init(&s->folios);
	inode_lock(inode);
	if (ri->session)
		ret = ri->session->file == file ? 0 : -EBUSY;
	else	/* what was written before does not come after it */
		ret = filemap_write_and_wait(inode->i_mapping);
	if (!ret && !ri->session) {
		WRITE_ONCE(ri->session_size, i_size_read(inode));
		WRITE_ONCE(ri->session, s);
		s = NULL;
	}
	inode_unlock(inode);
	kfree(s);
	return ret;
}

/* Drops the session, if there is one. The caller holds the inode's lock. */
static void rfsm_session_drop(struct inode *inode)
{
	struct rfs_inode_info *ri = RFS_I(inode);
	struct rfsm_session *s = ri->session;
	struct folio *folio;
	unsigned long index;

	if (!s)
		return;
	WRITE_ONCE(ri->session, NULL);
	WRITE_ONCE(ri->session_size, 0);
	xa_for_each(&s->folios, index, folio)
		folio_put(folio);
	xa_destroy(&s->folios);
	kfree(s);
}

/* Drops this file's session, and no other one's. Without a session there is nothing to drop. */
static int rfsm_session_abort(struct file *file)
{
	struct inode *inode = file_inode(file);
	struct rfsm_session *s;
	int ret = 0;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	inode_lock(inode);
	s = RFS_I(inode)->session;
	if (s && s->file != file)
		ret = -EINVAL;
	else
		rfsm_session_drop(inode);
	inode_unlock(inode);
	return ret;
}

/* Ends the session of a file. If owner is not NULL, only this owner's session ends. */
static void rfsm_session_end(struct file *file, fl_owner_t owner)
{
	struct inode *inode = file_inode(file);
	struct rfsm_session *s;

	/*
	 * This needs no lock: while this file is being closed, no other one drops the session that
	 * it began.
	 */
	if (!(file->f_mode & FMODE_WRITE) || !rfsm_has_session(inode))
		return;
	inode_lock(inode);
	s = RFS_I(inode)->session;
	if (s && s->file == file && (!owner || s->owner == owner))
		rfsm_session_drop(inode);
	inode_unlock(inode);
}

/* A process that ends loses its locks after this, but before release. */
int rfsm_session_flush(struct file *file, fl_owner_t id)
{
	if (current->flags & PF_EXITING)
		rfsm_session_end(file, id);
	return 0;
}

int rfsm_session_release(struct inode *inode, struct file *file)
{
	rfsm_session_end(file, NULL);
	return 0;
}

static int rfsm_fill_from_session(struct folio *folio, u32 i, void *arg)
{
	struct folio **folios = arg;

	folio->index = folios[i]->index;
	copy_page(folio_address(folio), folio_address(folios[i]));
	return 0;
}

static int rfsm_session_send(struct inode *inode, struct rfsm_session *s)
{
	loff_t old = i_size_read(inode), size = RFS_I(inode)->session_size;
	struct rfsm_span span = { .n = s->n, .to = PAGE_SIZE, .sync = true };
	struct folio **folios, *folio;
	unsigned long index;
	loff_t left;
	u32 n = 0;
	int ret = 0;

	if (!s->n)
		return 0;
	folios = kmalloc_array(s->n, sizeof(*folios), GFP_KERNEL);
	if (!folios)
		return -ENOMEM;
	xa_for_each(&s->folios, index, folio)
		folios[n++] = folio;
	left = max(old, size) - folio_pos(folios[n - 1]);
	if (left <= 0)		/* none of it may be after the end */
		ret = -EIO;
	else if (size > old)
		ret = rfsm_zero_after_end(inode, old);
	if (!ret)
		ret = rfsm_settle(inode);
	span.len = min_t(loff_t, PAGE_SIZE, left);
	if (!ret)
		ret = rfsm_atomic_blocks(inode, &span, rfsm_fill_from_session,
					 folios, NULL);
	kfree(folios);
	return ret;
}

static int rfsm_session_commit(struct file *file)
{
	struct inode *inode = file_inode(file);
	struct rfsm_session *s;
	int ret = -EINVAL;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	inode_lock(inode);
	s = RFS_I(inode)->session;
	/* Otherwise the writes are gone, or are not this file's to commit. */
	if (s && s->file == file) {
		ret = rfsm_session_send(inode, s);
		rfsm_session_drop(inode);
	}
	inode_unlock(inode);
	return ret ? ret : vfs_fsync(file, 0);
}

long rfsm_session_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	int ret;

	switch (cmd) {
	case F2FS_IOC_GET_FEATURES:
		return put_user(FEATURE_ATOMIC_WRITE, (u32 __user *)arg);
	case F2FS_IOC_START_ATOMIC_WRITE:
	case F2FS_IOC_COMMIT_ATOMIC_WRITE:
	case F2FS_IOC_ABORT_ATOMIC_WRITE:
		break;
	default:
		return -ENOTTY;
	}
	ret = mnt_want_write_file(file);
	if (ret)
		return ret;
	if (cmd == F2FS_IOC_START_ATOMIC_WRITE)
		ret = rfsm_session_start(file);
	else if (cmd == F2FS_IOC_COMMIT_ATOMIC_WRITE)
		ret = rfsm_session_commit(file);
	else
		ret = rfsm_session_abort(file);
	mnt_drop_write_file(file);
	return ret;
}

/* Loads the block as it was committed. Bytes behind the end of the file are zero. */
static int rfsm_session_load(struct inode *inode, struct file *file,
			     struct folio *to, pgoff_t index)
{
	loff_t pos = (loff_t)index << PAGE_SHIFT, size = i_size_read(inode);
	struct folio *from;

	if (pos >= size)
		return 0;
	from = read_mapping_folio(inode->i_mapping, index, file);
	if (IS_ERR(from))
		return PTR_ERR(from);
	copy_page(folio_address(to), rfsm_folio_block(from, index));
	folio_put(from);
	if (size - pos < PAGE_SIZE)
		folio_zero_segment(to, size - pos, PAGE_SIZE);
	return 0;
}

/*
 * Returns the session's folio of an index; *made says that there was none before. whole says that
 * all of it is overwritten.
 */
static struct folio *rfsm_session_folio(struct file *file,
					struct rfsm_session *s, pgoff_t index,
					bool whole, bool *made)
{
	struct folio *folio = xa_load(&s->folios, index);
	int ret;

	*made = !folio;
	if (folio)
		return folio;
	if (s->n == RFS_TXN_MAX)
		return ERR_PTR(-EFBIG);
	folio = folio_alloc(GFP_KERNEL_ACCOUNT | __GFP_ZERO, 0);
	if (!folio)
		return ERR_PTR(-ENOMEM);
	folio->index = index;
	ret = whole ? 0 : rfsm_session_load(file_inode(file), file, folio,
					    index);
	if (!ret)
		ret = xa_err(xa_store(&s->folios, index, folio, GFP_KERNEL));
	if (ret) {
		folio_put(folio);
		return ERR_PTR(ret);
	}
	s->n++;
	return folio;
}

/* Writes n bytes within a block. It writes all of them, or returns an error. */
static int rfsm_session_put(struct file *file, loff_t pos, size_t n,
			    struct iov_iter *from)
{
	struct rfs_inode_info *ri = RFS_I(file_inode(file));
	bool whole = n == PAGE_SIZE, made;
	pgoff_t index = pos >> PAGE_SHIFT;
	struct folio *folio;
	size_t copied;

	folio = rfsm_session_folio(file, ri->session, index, whole, &made);
	if (IS_ERR(folio))
		return PTR_ERR(folio);
	copied = copy_folio_from_iter(folio, offset_in_page(pos), n, from);
	if (copied < n) {
		iov_iter_revert(from, copied);
		if (made) {	/* the size may end before it */
			xa_erase(&ri->session->folios, index);
			ri->session->n--;
			folio_put(folio);
		}
		return -EFAULT;
	}
	if (pos + n > ri->session_size)
		WRITE_ONCE(ri->session_size, pos + n);
	return 0;
}

ssize_t rfsm_session_write(struct kiocb *iocb, struct iov_iter *from)
{
	loff_t pos = iocb->ki_pos;
	ssize_t done = 0;
	int ret = 0;

	while (!ret && iov_iter_count(from)) {
		size_t n = min(iov_iter_count(from),
			       PAGE_SIZE - offset_in_page(pos + done));

		ret = rfsm_session_put(iocb->ki_filp, pos + done, n, from);
		done += ret ? 0 : n;
	}
	iocb->ki_pos += done;
	return done ? done : ret;
}

/* Copies n bytes within a block. Returns how many, or an error. */
static ssize_t rfsm_session_get(struct file *file, struct folio *spare,
				loff_t pos, size_t n, struct iov_iter *to)
{
	struct inode *inode = file_inode(file);
	pgoff_t index = pos >> PAGE_SHIFT;
	struct folio *folio;
	int ret = 0;

	folio = xa_load(&RFS_I(inode)->session->folios, index);
	if (!folio) {
		folio = spare;
		folio_zero_range(folio, 0, PAGE_SIZE);
		ret = rfsm_session_load(inode, file, folio, index);
	}
	return ret ? ret : copy_folio_to_iter(folio, offset_in_page(pos), n,
					      to);
}

/* -EAGAIN says that the session is over. The file is then read as others are. */
ssize_t rfsm_session_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	struct folio *spare;
	loff_t pos = iocb->ki_pos;
	ssize_t done = 0, ret = 0;

	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	spare = folio_alloc(GFP_KERNEL, 0);
	if (!spare)
		return -ENOMEM;
	inode_lock_shared(inode);
	while (rfsm_has_session(inode) && iov_iter_count(to)) {
		loff_t left = RFS_I(inode)->session_size - (pos + done);
		size_t n = min(iov_iter_count(to),
			       PAGE_SIZE - offset_in_page(pos + done));

		if (left <= 0)
			break;
		n = min_t(loff_t, n, left);
		ret = rfsm_session_get(iocb->ki_filp, spare, pos + done, n, to);
		if (ret > 0)
			done += ret;
		if (ret < (ssize_t)n) {
			ret = ret < 0 ? ret : -EFAULT;
			break;
		}
		ret = 0;
	}
	if (!rfsm_has_session(inode))
		ret = -EAGAIN;
	inode_unlock_shared(inode);
	folio_put(spare);
	iocb->ki_pos += done;
	return done ? done : ret;
}
