// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These are objects on a mounted volume: files of a directory. A lock of the
 * directory says which process owns them, and ends with that process.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "backend.h"

#ifndef RWF_ATOMIC
#define RWF_ATOMIC	0x40	/* of Linux 6.11 */
#endif

struct mounted {
	int dir;
	DIR *list;		/* the same directory, for oftl_next() */
	uint64_t at;		/* cursor of the entry that list gives next */
};

static int open_object(struct mounted *m, uint64_t oid, int flags)
{
	char name[OBJECT_NAME];
	int fd;

	object_name(oid, name);
	fd = openat(m->dir, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/*
 * Closes a file after the last call on it. Returns the result of that call, as
 * this file's functions return it.
 */
static int64_t closed(int fd, int64_t ret)
{
	int error = errno;

	close(fd);
	return ret < 0 ? -error : ret;
}

static int64_t mounted_read(void *of, uint64_t oid, uint64_t offset, size_t len,
			    void *buf)
{
	int fd = open_object(of, oid, O_RDONLY);
	size_t got = 0;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	while (n > 0 && got < len) {
		n = pread(fd, (char *)buf + got, len - got, offset + got);
		if (n > 0)
			got += n;
	}
	return closed(fd, n < 0 ? n : (ssize_t)got);
}

/* Returns 0 if all bytes were written. A part of them is an error, too. */
static int all_of(ssize_t written, size_t len)
{
	if (written >= 0 && (size_t)written < len)
		errno = EIO;
	return written == (ssize_t)len ? 0 : -1;
}

static int write_as_one(int fd, uint64_t offset, size_t len, const void *buf)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	/*
	 * A block is seen as it was before a write or after it, whatever is
	 * written.
	 */
	if (offset % RFS_BLOCK_BYTES + len <= RFS_BLOCK_BYTES)
		return all_of(pwrite(fd, buf, len, offset), len);
	return all_of(pwritev2(fd, &iov, 1, offset, RWF_ATOMIC), len);
}

static int mounted_write(void *of, uint64_t oid, uint64_t offset, size_t len,
			 const void *buf)
{
	int fd = open_object(of, oid, O_RDWR);

	return fd < 0 ? fd : closed(fd, write_as_one(fd, offset, len, buf));
}

static int mounted_flush(void *of, uint64_t oid)
{
	struct mounted *m = of;
	int fd = open_object(m, oid, O_RDONLY);

	if (fd == -ENOENT)	/* its deletion is the directory's */
		return fsync(m->dir) ? -errno : 0;
	return fd < 0 ? fd : closed(fd, fsync(fd));
}

static int mounted_create(void *of, uint64_t oid)
{
	int fd = open_object(of, oid, O_RDWR | O_CREAT | O_EXCL);

	return fd < 0 ? fd : closed(fd, 0);
}

static int mounted_remove(void *of, uint64_t oid)
{
	struct mounted *m = of;
	char name[OBJECT_NAME];

	object_name(oid, name);
	return unlinkat(m->dir, name, 0) ? -errno : 0;
}

static int64_t ns_of(const struct statx_timestamp *t)
{
	return t->tv_sec * 1000000000LL + t->tv_nsec;
}

static int get_attributes(int fd, struct oattr *buf)
{
	struct statx st;
	ssize_t n;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st))
		return -1;
	buf->size = st.stx_size;
	buf->used = st.stx_blocks * 512;
	buf->mtime = ns_of(&st.stx_mtime);
	buf->ctime = ns_of(&st.stx_ctime);
	buf->btime = ns_of(&st.stx_btime);
	n = fgetxattr(fd, USER_XATTR, buf->user, sizeof(buf->user));
	if (n >= 0)
		buf->user_len = n;
	return n < 0 && errno != ENODATA ? -1 : 0;
}

static int mounted_get(void *of, uint64_t oid, struct oattr *buf)
{
	int fd = open_object(of, oid, O_RDONLY);

	return fd < 0 ? fd : closed(fd, get_attributes(fd, buf));
}

static int set_user(int fd, const struct oattr *buf)
{
	int ret;

	if (buf->user_len)
		return fsetxattr(fd, USER_XATTR, buf->user, buf->user_len, 0);
	ret = fremovexattr(fd, USER_XATTR);
	return ret && errno == ENODATA ? 0 : ret;
}

static int set_mtime(int fd, int64_t mtime)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	int64_t ns = mtime % 1000000000;

	times[1].tv_nsec = ns < 0 ? ns + 1000000000 : ns;
	times[1].tv_sec = mtime / 1000000000 - (ns < 0);
	return futimens(fd, times);
}

static int set_attributes(int fd, const struct oattr *buf)
{
	int ret = 0;

	if (buf->set & OATTR_SIZE)
		ret = ftruncate(fd, buf->size);
	if (!ret && buf->set & OATTR_USER)
		ret = set_user(fd, buf);
	if (!ret && buf->set & OATTR_MTIME)
		ret = set_mtime(fd, buf->mtime);
	return ret;
}

static int mounted_set(void *of, uint64_t oid, const struct oattr *buf)
{
	int fd = open_object(of, oid, O_RDWR);

	return fd < 0 ? fd : closed(fd, set_attributes(fd, buf));
}

static int mounted_next(void *of, uint64_t *cursor, uint64_t *oid)
{
	struct mounted *m = of;
	struct dirent *entry;

	if (!*cursor)
		rewinddir(m->list);
	else if (*cursor != m->at)
		seekdir(m->list, *cursor);
	errno = 0;
	while ((entry = readdir(m->list))) {
		*cursor = entry->d_off;
		m->at = *cursor;
		if (object_of(entry->d_name, strlen(entry->d_name), oid))
			return 1;
	}
	return -errno;
}

static int mounted_close(void *of)
{
	struct mounted *m = of;
	int ret = syncfs(m->dir) ? -errno : 0;

	closedir(m->list);
	close(m->dir);
	free(m);
	return ret;
}

const struct backend mounted_backend = {
	.read = mounted_read,
	.write = mounted_write,
	.flush = mounted_flush,
	.create = mounted_create,
	.remove = mounted_remove,
	.get = mounted_get,
	.set = mounted_set,
	.next = mounted_next,
	.close = mounted_close,
};

static int complained(const char *path, const char *what, int error)
{
	complain("%s: %s", path, what);
	return -error;
}

/*
 * Takes the directory for this process. Returns a negative errno after a
 * complaint.
 */
static int own(const char *path, int root)
{
	int dir, error;

	if (mkdirat(root, OBJECTS, 0700) && errno != EEXIST)
		return complained(path, strerror(errno), errno);
	dir = openat(root, OBJECTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
		     O_CLOEXEC);
	if (dir < 0)
		return complained(path, strerror(errno), errno);
	if (!flock(dir, LOCK_EX | LOCK_NB))
		return dir;
	error = errno;
	close(dir);
	return error == EWOULDBLOCK ?
		complained(path, "another process has the objects of this volume, and must end or close them first",
			   EBUSY) :
		complained(path, strerror(error), error);
}

static int check_root(const char *path, int root)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(root, &fs) || fstat(root, &st))
		return complained(path, strerror(errno), errno);
	if (fs.f_type != RFS_BLOCK_MAGIC)
		return complained(path, "a directory of another file system; it must be where an RFS is mounted, by mount -t rfs",
				  EINVAL);
	if (st.st_ino != RFS_ROOT_INO)
		return complained(path, "it must be the directory where the RFS is mounted, and is one below",
				  EINVAL);
	return 0;
}

int mounted_open(const char *path, void **of)
{
	struct mounted *m = calloc(1, sizeof(*m));
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (!m)
		abort();
	ret = root < 0 ? complained(path, strerror(errno), errno) :
			 check_root(path, root);
	if (!ret)
		ret = own(path, root);
	if (root >= 0)
		close(root);
	if (ret < 0) {
		free(m);
		return ret;
	}
	m->dir = ret;
	m->list = fdopendir(openat(m->dir, ".", O_RDONLY | O_DIRECTORY |
				   O_CLOEXEC));
	if (!m->list)
		abort();
	*of = m;
	return 0;
}
