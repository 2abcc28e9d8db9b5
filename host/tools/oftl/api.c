// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These are the calls. They check arguments, let one caller in at a time, and
 * keep a message for an error.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "device.h"
#include "backend.h"

struct oftl {
	const struct backend *ops;
	void *of;
	char *path;
	pthread_mutex_t lock;
};

static const char *why(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no such object; ocreate() makes one";
	case EEXIST:
		return "there is such an object already";
	case ENOSPC:
		return "the volume has no room for it; odelete() and osetattr() with a smaller size make room";
	case EROFS:
		return "the volume only reads, after an error of the drive or since it was mounted so; open it again";
	case EUCLEAN:
		return "the volume is damaged; close it, then run fsck.rfs";
	case EIO:
		return "the drive reports an error, or has other bytes than were written";
	}
	return strerror(error);
}

/* Returns -1, with errno and a message. */
static int failed(const struct oftl *dev, uint64_t oid, const char *call,
		  int error)
{
	complain("%s: %s of object %#llx: %s", dev->path, call,
		 (unsigned long long)oid, why(error));
	errno = error;
	return -1;
}

static int refused(int error)
{
	errno = error;
	return -1;
}

/* Returns the result of a backend to the caller, and gives the lock back. */
static int64_t over(struct oftl *dev, uint64_t oid, const char *call,
		    int64_t ret)
{
	pthread_mutex_unlock(&dev->lock);
	return ret < 0 ? failed(dev, oid, call, -ret) : ret;
}

static int in_range(const struct oftl *dev, uint64_t oid, const char *call,
		    uint64_t offset, uint64_t len)
{
	if (offset <= OFTL_OBJECT_MAX && len <= OFTL_OBJECT_MAX - offset)
		return 1;
	complain("%s: %s of object %#llx: %llu bytes from %llu on; an object has at most %llu bytes",
		 dev->path, call, (unsigned long long)oid,
		 (unsigned long long)len, (unsigned long long)offset,
		 (unsigned long long)OFTL_OBJECT_MAX);
	return 0;
}

ssize_t oread(struct oftl *dev, uint64_t oid, uint64_t offset, size_t len,
	      void *buf)
{
	if (!in_range(dev, oid, __func__, offset, len))
		return refused(EFBIG);
	pthread_mutex_lock(&dev->lock);
	return over(dev, oid, __func__,
		    dev->ops->read(dev->of, oid, offset, len, buf));
}

int owrite(struct oftl *dev, uint64_t oid, uint64_t offset, size_t len,
	   const void *buf)
{
	if (len > OFTL_WRITE_MAX) {
		complain("%s: %s of object %#llx: %zu bytes; 0 to %zu are one write: give more in parts, each of which is atomic by itself",
			 dev->path, __func__, (unsigned long long)oid, len,
			 OFTL_WRITE_MAX);
		return refused(EFBIG);
	}
	if (!in_range(dev, oid, __func__, offset, len))
		return refused(EFBIG);
	pthread_mutex_lock(&dev->lock);
	return over(dev, oid, __func__,
		    dev->ops->write(dev->of, oid, offset, len, buf));
}

int oflush(struct oftl *dev, uint64_t oid)
{
	pthread_mutex_lock(&dev->lock);
	return over(dev, oid, __func__, dev->ops->flush(dev->of, oid));
}

int ocreate(struct oftl *dev, uint64_t oid)
{
	pthread_mutex_lock(&dev->lock);
	return over(dev, oid, __func__, dev->ops->create(dev->of, oid));
}

int odelete(struct oftl *dev, uint64_t oid)
{
	pthread_mutex_lock(&dev->lock);
	return over(dev, oid, __func__, dev->ops->remove(dev->of, oid));
}

int ogetattr(struct oftl *dev, uint64_t oid, struct oattr *buf)
{
	memset(buf, 0, sizeof(*buf));
	buf->set = OATTR_SIZE | OATTR_MTIME | OATTR_USER;
	pthread_mutex_lock(&dev->lock);
	return over(dev, oid, __func__, dev->ops->get(dev->of, oid, buf));
}

int osetattr(struct oftl *dev, uint64_t oid, const struct oattr *buf)
{
	if (buf->set & ~(OATTR_SIZE | OATTR_MTIME | OATTR_USER)) {
		complain("%s: %s of object %#llx: set is %#x; it is made of OATTR_SIZE %#x, OATTR_MTIME %#x and OATTR_USER %#x",
			 dev->path, __func__, (unsigned long long)oid,
			 buf->set, OATTR_SIZE, OATTR_MTIME, OATTR_USER);
		return refused(EINVAL);
	}
	if (buf->set & OATTR_USER && buf->user_len > OFTL_USER_MAX) {
		complain("%s: %s of object %#llx: user_len is %u; it must be 0 to %u",
			 dev->path, __func__, (unsigned long long)oid,
			 buf->user_len, OFTL_USER_MAX);
		return refused(EINVAL);
	}
	if (buf->set & OATTR_SIZE &&
	    !in_range(dev, oid, __func__, 0, buf->size))
		return refused(EFBIG);
	pthread_mutex_lock(&dev->lock);
	return over(dev, oid, __func__, dev->ops->set(dev->of, oid, buf));
}

int oftl_next(struct oftl *dev, uint64_t *cursor, uint64_t *oid)
{
	int ret;

	pthread_mutex_lock(&dev->lock);
	ret = dev->ops->next(dev->of, cursor, oid);
	pthread_mutex_unlock(&dev->lock);
	if (ret < 0) {
		complain("%s: objects cannot be listed: %s", dev->path,
			 why(-ret));
		return refused(-ret);
	}
	return ret;
}

/* Makes a handle without a backend. */
static struct oftl *new_handle(const char *path)
{
	struct oftl *dev = calloc(1, sizeof(*dev));

	if (dev)
		dev->path = strdup(path);
	if (!dev || !dev->path)
		abort();	/* as the core's tools where memory lacks */
	pthread_mutex_init(&dev->lock, NULL);
	return dev;
}

static void free_handle(struct oftl *dev)
{
	pthread_mutex_destroy(&dev->lock);
	free(dev->path);
	free(dev);
}

struct oftl *oftl_open_device(const struct rfs_device *device, uint32_t inject)
{
	struct oftl *dev = new_handle(device->path);
	int ret = unmounted_open(device, inject, &dev->of);

	if (ret) {
		complain("%s: %s", device->path, rfs_error(ret));
		free_handle(dev);
		errno = -ret;
		return NULL;
	}
	dev->ops = &unmounted_backend;
	return dev;
}

static struct oftl *open_device(const char *path)
{
	struct rfs_device device;
	struct oftl *dev;
	int error;

	errno = 0;
	if (rfs_device_open(path, true, &device)) {
		errno = errno ? errno : EINVAL;
		return NULL;
	}
	dev = oftl_open_device(&device, 0);
	if (dev)
		return dev;
	error = errno;
	rfs_device_close(&device);
	errno = error;
	return NULL;
}

static struct oftl *open_mounted(const char *path)
{
	struct oftl *dev = new_handle(path);
	int ret = mounted_open(path, &dev->of);

	if (ret) {
		free_handle(dev);
		errno = -ret;
		return NULL;
	}
	dev->ops = &mounted_backend;
	return dev;
}

struct oftl *oftl_open(const char *path)
{
	struct stat st;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return open_mounted(path);
	return open_device(path);
}

int oftl_close(struct oftl *dev)
{
	int ret = dev->ops->close(dev->of);

	if (ret)
		complain("%s: not all is durable: %s", dev->path, why(-ret));
	free_handle(dev);
	return ret ? refused(-ret) : 0;
}
