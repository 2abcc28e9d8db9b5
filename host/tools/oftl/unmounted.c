// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These are objects by the core of RFS, on an image or a drive that nobody has
 * mounted.
 */
#include <assert.h>
#include <unistd.h>

#include "device.h"
#include "ops/ops.h"
#include "tools/tools.h"
#include "tree/dir.h"
#include "tree/tree.h"
#include "tree/xattr.h"
#include "log/log.h"
#include "backend.h"

static_assert(RFS_FILE_BLOCKS * RFS_BLOCK_BYTES == OFTL_OBJECT_MAX);
static_assert(RFS_WRITE_MAX == OFTL_WRITE_MAX);

struct volume {
	struct rfs_device device;
	struct rfs_fs *fs;
	u32 dir;		/* inode of the directory */
};

static struct rfs_new new_inode(u32 mode)
{
	return (struct rfs_new){ .mode = mode, .uid = geteuid(),
				 .gid = getegid() };
}

static int find(struct volume *v, u64 oid, u32 *ino)
{
	char name[OBJECT_NAME];

	object_name(oid, name);
	return rfs_dir_find(v->fs, v->dir, name, strlen(name), ino);
}

/*
 * Finds the inode of an object as it is now. It is valid until any other call.
 */
static int inode_of(struct volume *v, u64 oid, u32 *ino,
		    struct rfs_dinode **out)
{
	struct rfs_buf *buf;
	int ret = find(v, oid, ino);

	if (!ret)
		ret = rfs_iget(v->fs, *ino, out, &buf);
	if (!ret && !S_ISREG(le32_to_cpu((*out)->mode)))
		ret = -EISDIR;
	return ret;
}

/* Drops metadata that was read, so that memory stays bounded. */
static int done(struct volume *v, int ret)
{
	rfs_cache_trim(v->fs, v->fs->clean_max);
	return ret;
}

static int64_t read_bytes(struct volume *v, u32 ino, u64 offset, size_t len,
			  u8 *buf)
{
	u8 block[RFS_BLOCK_BYTES];
	size_t read, n;
	int ret;

	for (read = 0; read < len; read += n) {
		u64 at = offset + read, in = at % RFS_BLOCK_BYTES;
		bool whole = !in && len - read >= RFS_BLOCK_BYTES;

		n = min_t(u64, len - read, RFS_BLOCK_BYTES - in);
		ret = rfs_read(v->fs, ino, at / RFS_BLOCK_BYTES,
			       whole ? buf + read : block);
		if (ret)
			return ret;
		if (!whole)
			memcpy(buf + read, block + in, n);
		done(v, 0);
	}
	return len;
}

static int64_t unmounted_read(void *of, u64 oid, u64 offset, size_t len, void *buf)
{
	struct volume *v = of;
	struct rfs_dinode *di;
	u64 size;
	u32 ino;
	int ret = inode_of(v, oid, &ino, &di);

	if (ret)
		return ret;
	size = le64_to_cpu(di->size);
	if (offset >= size)
		return 0;
	return read_bytes(v, ino, offset, min_t(u64, len, size - offset), buf);
}

static int unmounted_write(void *of, u64 oid, u64 offset, size_t len,
			const void *buf)
{
	struct volume *v = of;
	struct rfs_dinode *di;
	u32 ino;
	int ret = inode_of(v, oid, &ino, &di);

	if (!ret && len)
		ret = rfs_write_atomic(v->fs, ino, offset, buf, len);
	return done(v, ret);
}

static int unmounted_flush(void *of, u64 oid)
{
	struct volume *v = of;
	u32 ino;
	int ret = find(v, oid, &ino);

	/*
	 * A deletion is in the log, with a number that another object may have
	 * by now.
	 */
	if (ret == -ENOENT)
		return done(v, rfs_log_sync(v->fs));
	return done(v, ret ? ret : rfs_fsync(v->fs, ino));
}

static int unmounted_create(void *of, u64 oid)
{
	struct rfs_new how = new_inode(S_IFREG | 0600);
	struct volume *v = of;
	char name[OBJECT_NAME];
	u32 ino;

	object_name(oid, name);
	return done(v, rfs_create(v->fs, v->dir, name, &how, &ino));
}

static int unmounted_remove(void *of, u64 oid)
{
	struct volume *v = of;
	char name[OBJECT_NAME];
	struct rfs_dinode *di;
	u32 ino;
	int ret = inode_of(v, oid, &ino, &di);

	object_name(oid, name);
	if (!ret)
		ret = rfs_unlink(v->fs, v->dir, name, &ino);
	if (!ret)
		ret = rfs_iget(v->fs, ino, &di, &(struct rfs_buf *){ NULL });
	if (!ret && !di->nlink)
		ret = rfs_free_orphan(v->fs, ino);
	return done(v, ret);
}

static int unmounted_get(void *of, u64 oid, struct oattr *buf)
{
	struct volume *v = of;
	struct rfs_dinode *di;
	u32 ino;
	int ret = inode_of(v, oid, &ino, &di);

	if (ret)
		return ret;
	buf->size = le64_to_cpu(di->size);
	buf->used = le64_to_cpu(di->blocks) * RFS_BLOCK_BYTES;
	buf->mtime = le64_to_cpu(di->mtime);
	buf->ctime = le64_to_cpu(di->ctime);
	buf->btime = le64_to_cpu(di->btime);
	ret = rfs_xattr_get(v->fs, ino, USER_XATTR, buf->user,
			    sizeof(buf->user));
	if (ret == -ENODATA)
		ret = 0;
	if (ret > 0)
		buf->user_len = ret;
	return done(v, min(ret, 0));
}

static int set_size(struct volume *v, u32 ino, u64 old, u64 size)
{
	u64 from = DIV_ROUND_UP(size, RFS_BLOCK_BYTES), to = RFS_FILE_BLOCKS;
	bool more = true;
	int ret = 0;

	while (!ret && more && size <= old)
		ret = rfs_shorten(v->fs, ino, from, &to, true, &more);
	return ret ? ret : rfs_truncate(v->fs, ino, size, size > old);
}

static int set_mtime(struct volume *v, u32 ino, int64_t mtime)
{
	struct rfs_dinode *di, with;
	struct rfs_buf *buf;
	int ret = rfs_iget(v->fs, ino, &di, &buf);

	if (ret)
		return ret;
	with = *di;
	with.mtime = cpu_to_le64(mtime);
	return rfs_setattr(v->fs, ino, &with, 0);
}

static int set_user(struct volume *v, u32 ino, const struct oattr *buf)
{
	int ret = rfs_xattr_set(v->fs, ino, USER_XATTR,
				buf->user_len ? buf->user : NULL,
				buf->user_len, 0, 0);

	return ret == -ENODATA ? 0 : ret;	/* it had none */
}

static int unmounted_set(void *of, u64 oid, const struct oattr *buf)
{
	struct volume *v = of;
	struct rfs_dinode *di;
	u32 ino;
	int ret = inode_of(v, oid, &ino, &di);

	if (!ret && buf->set & OATTR_SIZE)
		ret = set_size(v, ino, le64_to_cpu(di->size), buf->size);
	if (!ret && buf->set & OATTR_USER)
		ret = set_user(v, ino, buf);
	if (!ret && buf->set & OATTR_MTIME)
		ret = set_mtime(v, ino, buf->mtime);
	return done(v, ret);
}

static int unmounted_next(void *of, u64 *cursor, u64 *oid)
{
	struct volume *v = of;
	struct rfs_entry entry;
	int ret;

	while (!(ret = rfs_dir_next(v->fs, v->dir, *cursor, &entry))) {
		*cursor = entry.pos;
		if (object_of((const char *)entry.name, entry.len, oid))
			return done(v, 1);
	}
	return done(v, ret == -ENOENT ? 0 : ret);
}

static int unmounted_close(void *of)
{
	struct volume *v = of;
	bool failed = v->fs->read_only;
	int ret = rfs_unmount(v->fs);

	rfs_device_close(&v->device);
	free(v);
	return ret || !failed ? ret : -EROFS;
}

const struct backend unmounted_backend = {
	.read = unmounted_read,
	.write = unmounted_write,
	.flush = unmounted_flush,
	.create = unmounted_create,
	.remove = unmounted_remove,
	.get = unmounted_get,
	.set = unmounted_set,
	.next = unmounted_next,
	.close = unmounted_close,
};

/* Finds the directory, which the first program to open the volume makes. */
static int find_directory(struct volume *v)
{
	struct rfs_new how = new_inode(S_IFDIR | 0700);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_dir_find(v->fs, RFS_ROOT_INO, OBJECTS, strlen(OBJECTS),
			       &v->dir);

	if (ret == -ENOENT)
		ret = rfs_create(v->fs, RFS_ROOT_INO, OBJECTS, &how, &v->dir);
	if (!ret)
		ret = rfs_iget(v->fs, v->dir, &di, &buf);
	if (!ret && !S_ISDIR(le32_to_cpu(di->mode)))
		ret = -ENOTDIR;
	return ret;
}

int unmounted_open(const struct rfs_device *device, uint32_t inject, void **of)
{
	struct volume *v = calloc(1, sizeof(*v));
	int ret;

	if (!v)
		return -ENOMEM;
	v->device = *device;
	ret = rfs_mount(device->ops, device->dev, &device->geo, false, inject,
			&v->fs);
	if (!ret)
		ret = find_directory(v);
	if (!ret) {
		*of = v;
		return 0;
	}
	if (v->fs)
		rfs_unmount_nosync(v->fs);
	free(v);
	return ret;
}
