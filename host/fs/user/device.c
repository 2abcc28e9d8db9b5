// SPDX-License-Identifier: GPL-2.0-or-later
/* This opens a path as the kind of device that it is, and describes errors. */
#include "device.h"

int rfs_device_open(const char *path, bool writing, struct rfs_device *out)
{
	int ret;

	memset(out, 0, sizeof(*out));
	out->path = path;
	ret = rfs_zns_open(path, writing, out);
	if (ret == 1)
		ret = rfs_image_open(path, writing, out);
	if (ret == 1) {
		complain("%s: neither a zoned block device nor an image; mkfs.rfs -I makes an image",
			 path);
		ret = -1;
	}
	return ret;
}

void rfs_device_close(struct rfs_device *device)
{
	if (device->close_slow)
		device->close_slow(device->slow.dev);
	device->close(device->dev);
}

const char *rfs_error(int error)
{
	switch (-error) {
	case EINVAL:
		return "no RFS on it";
	case EUCLEAN:
		return "the volume is damaged";
	case EMFILE:
		return "the drive allows too few open or active zones";
	case ENODEV:
		return "that slow device belongs to another volume: --slow DEV must name the one that mkfs.rfs was given";
	case ENOMEDIUM:
		return "a hybrid volume, made with a slow device: --slow DEV must name it";
	case ENXIO:
		return "without its slow device the volume can only be read, as dump.rfs does";
	case EOPNOTSUPP:
		return "made by another version: this one reads format 2, and its features are not all known here or its format is another; copy its files with the version that made it, then run mkfs.rfs";
	case EROFS:
		return "made by a newer version: it can only be read";
	}
	return strerror(-error);
}
