// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An image has a header, the state of each zone, then for each block its content, its page metadata
 * and whether it was written. It is for tests and for volumes that are to be examined elsewhere.
 * The file is sparse.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define IMAGE_MAGIC	"RFSIMG1"

struct image_header {
	char magic[8];
	__le32 zones;
	__le32 zone_blocks;
	__le32 cap;
	__le32 oob_bytes;
};

struct image_zone {
	__le32 wp;
	__le32 cond;
};

struct image_block {
	u8 data[RFS_BLOCK_BYTES];
	struct rfs_oob oob;
	__le32 state;		/* 0 never written, 1 written, 2 unreadable */
	__le32 pad;
};

struct image {
	int fd;
	struct rfs_geometry geo;
	u32 cap;
};

static off_t zone_at(u32 zone)
{
	return RFS_BLOCK_BYTES + (off_t)zone * sizeof(struct image_zone);
}

static off_t block_at(const struct image *im, u64 addr)
{
	off_t tables = zone_at(im->geo.zones) + RFS_BLOCK_BYTES - 1;

	tables -= tables % RFS_BLOCK_BYTES;
	return tables + (off_t)addr * sizeof(struct image_block);
}

static int get(int fd, void *data, size_t bytes, off_t at)
{
	return pread(fd, data, bytes, at) == (ssize_t)bytes ? 0 : -EIO;
}

static int put(int fd, const void *data, size_t bytes, off_t at)
{
	return pwrite(fd, data, bytes, at) == (ssize_t)bytes ? 0 : -EIO;
}

static int image_append(void *opaque, u32 zone, u32 blocks,
			const void *const *data, const struct rfs_oob *oob,
			u64 *addr)
{
	struct image *im = opaque;
	struct image_block block;
	struct image_zone z;
	u32 i, wp;
	int ret = get(im->fd, &z, sizeof(z), zone_at(zone));

	wp = le32_to_cpu(z.wp);
	if (ret || le32_to_cpu(z.cond) != RFS_DEV_OK || wp + blocks > im->cap)
		return -EIO;
	*addr = (u64)zone * im->geo.zone_blocks + wp;
	for (i = 0; !ret && i < blocks; i++) {
		memset(&block, 0, sizeof(block));
		memcpy(block.data, data[i], sizeof(block.data));
		if (im->geo.oob_bytes)
			block.oob = oob[i];
		block.state = cpu_to_le32(1);
		ret = put(im->fd, &block, sizeof(block),
			  block_at(im, *addr + i));
	}
	z.wp = cpu_to_le32(wp + blocks);
	return ret ? ret : put(im->fd, &z, sizeof(z), zone_at(zone));
}

static int image_wait(void *opaque)
{
	(void)opaque;
	return 0;
}

static int image_flush(void *opaque)
{
	struct image *im = opaque;

	return fdatasync(im->fd) ? -EIO : 0;
}

static int image_read(void *opaque, u64 addr, void *data, struct rfs_oob *oob)
{
	struct image *im = opaque;
	struct image_block block;
	int ret = get(im->fd, &block, sizeof(block), block_at(im, addr));

	if (ret || le32_to_cpu(block.state) == 2)
		return -EIO;
	memcpy(data, block.data, sizeof(block.data));
	if (oob)
		*oob = block.oob;
	return 0;
}

static int image_reset(void *opaque, u32 zone)
{
	struct image_zone z = { 0 };
	struct image *im = opaque;
	struct image_block none = { 0 };
	u32 i;
	int ret = 0;

	for (i = 0; !ret && i < im->cap; i++)
		ret = put(im->fd, &none, sizeof(none),
			  block_at(im, (u64)zone * im->geo.zone_blocks + i));
	return ret ? ret : put(im->fd, &z, sizeof(z), zone_at(zone));
}

static int image_report(void *opaque, u32 zone, struct rfs_dev_zone *out)
{
	struct image *im = opaque;
	struct image_zone z;
	int ret = get(im->fd, &z, sizeof(z), zone_at(zone));

	out->cap = im->cap;
	out->wp = le32_to_cpu(z.wp);
	out->cond = le32_to_cpu(z.cond);
	return ret;
}

static u64 now(void *opaque)
{
	struct timespec ts;

	(void)opaque;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (u64)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static const struct rfs_dev_ops image_ops = {
	.append = image_append,
	.wait = image_wait,
	.read = image_read,
	.reset = image_reset,
	.flush = image_flush,
	.report = image_report,
	.now = now,
};

static void image_close(void *opaque)
{
	struct image *im = opaque;

	close(im->fd);
	free(im);
}

int rfs_image_create(const char *path, const struct rfs_geometry *geo, u32 cap)
{
	struct image im = { .geo = *geo };
	struct image_header header = {
		.magic = IMAGE_MAGIC,
		.zones = cpu_to_le32(geo->zones),
		.zone_blocks = cpu_to_le32(geo->zone_blocks),
		.cap = cpu_to_le32(cap),
		.oob_bytes = cpu_to_le32(geo->oob_bytes),
	};
	int ret;

	im.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (im.fd < 0) {
		complain("%s: %s", path, strerror(errno));
		return -1;
	}
	ret = ftruncate(im.fd, block_at(&im, (u64)geo->zones *
					geo->zone_blocks));
	if (!ret)
		ret = put(im.fd, &header, sizeof(header), 0);
	if (ret)
		complain("%s: cannot write: %s", path, strerror(errno));
	close(im.fd);
	return ret ? -1 : 0;
}

/* A writer has the image for itself: other programs get an error, but may read it. */
static int take(struct image *im, const char *path, bool writing,
		struct rfs_device *out)
{
	if (!flock(im->fd, (writing ? LOCK_EX : LOCK_SH) | LOCK_NB))
		return 0;
	if (errno == EWOULDBLOCK && !writing) {
		out->busy = true;
		return 0;
	}
	errno = errno == EWOULDBLOCK ? EBUSY : errno;
	complain("%s: %s%s", path, strerror(errno), errno == EBUSY ?
		 "; another process has the volume, and must end or close it first" :
		 "");
	return -1;
}

int rfs_image_open(const char *path, bool writing, struct rfs_device *out)
{
	struct image_header header;
	struct image *im = calloc(1, sizeof(*im));
	struct stat st;

	if (!im)
		abort();
	im->fd = open(path, (writing ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (im->fd < 0) {
		complain("%s: %s", path, strerror(errno));
		free(im);
		return -1;
	}
	if (get(im->fd, &header, sizeof(header), 0) ||
	    memcmp(header.magic, IMAGE_MAGIC, sizeof(header.magic))) {
		image_close(im);
		return 1;
	}
	if (take(im, path, writing, out)) {
		image_close(im);
		return -1;
	}
	im->cap = le32_to_cpu(header.cap);
	im->geo.zones = le32_to_cpu(header.zones);
	im->geo.zone_blocks = le32_to_cpu(header.zone_blocks);
	im->geo.oob_bytes = le32_to_cpu(header.oob_bytes);
	im->geo.volatile_cache = true;	/* the page cache of the host */
	if (fstat(im->fd, &st) || !im->geo.zone_blocks ||
	    im->cap > im->geo.zone_blocks ||
	    st.st_size < block_at(im, (u64)im->geo.zones *
				  im->geo.zone_blocks)) {
		complain("%s: the image is damaged or cut short", path);
		image_close(im);
		return -1;
	}
	out->ops = &image_ops;
	out->dev = im;
	out->geo = im->geo;
	out->close = image_close;
	return 0;
}
