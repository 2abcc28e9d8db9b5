// SPDX-License-Identifier: GPL-2.0-or-later
/* The slow device of a hybrid volume is a block device or a file, with its blocks in a row. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "device.h"
#include "checkpoint/checkpoint.h"

struct slow {
	const char *path;
	int fd;
};

static int slow_read(void *opaque, u64 block, void *data)
{
	struct slow *slow = opaque;

	return pread(slow->fd, data, RFS_BLOCK_BYTES, block * RFS_BLOCK_BYTES) ==
	       RFS_BLOCK_BYTES ? 0 : -EIO;
}

static int slow_write(void *opaque, u64 block, u32 n, const void *const *data)
{
	struct slow *slow = opaque;
	u32 i;

	for (i = 0; i < n; i++)
		if (pwrite(slow->fd, data[i], RFS_BLOCK_BYTES,
			   (block + i) * RFS_BLOCK_BYTES) != RFS_BLOCK_BYTES)
			return -EIO;
	return 0;
}

static int slow_flush(void *opaque)
{
	struct slow *slow = opaque;

	return fdatasync(slow->fd) ? -EIO : 0;
}

static void slow_close(void *opaque)
{
	struct slow *slow = opaque;

	close(slow->fd);
	free(slow);
}

/* A writer has the device for itself, as with the drive. */
static bool slow_taken(int fd, bool writing)
{
	if (!flock(fd, (writing ? LOCK_EX : LOCK_SH) | LOCK_NB))
		return false;
	return errno != EWOULDBLOCK || writing;
}

int rfs_slow_open(const char *path, bool writing, struct rfs_device *out)
{
	struct slow *slow;
	off_t bytes;
	int fd;

	if (!strcmp(path, "none")) {
		out->geo.slow = &rfs_slow_gone;
		return 0;
	}
	/* A device that is mounted is busy. */
	fd = open(path, (writing ? O_RDWR | O_EXCL : O_RDONLY) | O_CLOEXEC);
	bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (bytes < 0 || slow_taken(fd, writing)) {
		errno = errno == EWOULDBLOCK ? EBUSY : errno;
		complain("--slow %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	slow = malloc(sizeof(*slow));
	if (!slow)
		abort();
	slow->fd = fd;
	slow->path = path;
	out->slow = (struct rfs_slow_dev){
		.dev = slow, .blocks = bytes / RFS_BLOCK_BYTES, .read = slow_read,
		.write = slow_write, .flush = slow_flush,
	};
	out->close_slow = slow_close;
	out->geo.slow = &out->slow;
	return 0;
}

bool rfs_slow_short(const struct rfs_device *device, int error)
{
	const struct rfs_slow_dev *slow = device->geo.slow;
	struct rfs_fs *fs;

	if (error != -EOVERFLOW)
		return false;
	fs = rfs_volume_new(device->ops, device->dev, &device->geo);
	if (!fs)
		abort();
	if (!rfs_super_load(fs))
		complain("--slow %s: %llu blocks; that of the volume on %s has %llu: give it the size that it had",
			 ((struct slow *)slow->dev)->path,
			 (unsigned long long)slow->blocks, device->path,
			 (unsigned long long)le64_to_cpu(fs->super.slow_blocks));
	rfs_free(fs);
	return true;
}
