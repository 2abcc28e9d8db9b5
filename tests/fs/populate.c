// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Some files for a volume in an image or on a device: populate PATH [clean]
 * makes 40 files of 3 blocks in /d, the last of which has a hole and 3 blocks more,
 * removes every fourth, and unmounts or just ends, as after a power cut.
 * populate PATH clean SLOW makes 80 of a hybrid volume, some of which are on the
 * slow device alone, and some on both.
 */
#include <stdio.h>

#include "device.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "home/home.h"
#include "ops/ops.h"
#include "tools/tools.h"

const char *program = "populate";

/* What is in zones that are full leaves flash. */
static int go_home(struct rfs_fs *fs)
{
	int ret = rfs_make_room_to_free(fs);

	return ret ? ret : rfs_spare(fs, fs->user_blocks - rfs_used(fs) + 1, 0,
				     fs->user_blocks / RFS_SPARE, rfs_checkpoint);
}

static int fill(struct rfs_fs *fs)
{
	struct rfs_new file = { .mode = S_IFREG | 0644 };
	struct rfs_new dir = { .mode = S_IFDIR | 0755 };
	static u8 block[RFS_BLOCK_BYTES] = "content";
	const void *data[3] = { block, block, block };
	u32 top, ino, i, most = 40;
	char name[16];
	int ret;

	ret = rfs_create(fs, RFS_ROOT_INO, "d", &dir, &top);
	if (!ret)
		ret = rfs_xattr_set(fs, top, "user.text", "words", 5, 0, 0);
	if (!ret)
		ret = rfs_xattr_set(fs, top, "trusted.bytes", "\0\xff", 2, 0, 0);
	for (i = 0; !ret && i < (fs->home ? 80 : 40); i++) {
		snprintf(name, sizeof(name), "file-%u", i);
		ret = rfs_create(fs, top, name, &file, &ino);
		if (!ret)
			ret = rfs_write(fs, ino, 0, 3, data, 1000);
		if (!ret && i == 39 && !fs->home)
			ret = rfs_write(fs, ino, 252, 3, data, 1000);
		if (!ret && i == 20)
			ret = rfs_checkpoint(fs, 0);
		if (!ret && i == 30 && fs->home)
			ret = go_home(fs);
	}
	for (i = 0; !ret && i < 40; i += 4) {
		snprintf(name, sizeof(name), "file-%u", i);
		ret = rfs_unlink(fs, top, name, &ino);
	}
	if (!ret && fs->home)
		ret = rfs_write_home(fs, &most);
	return ret ? ret : rfs_fsync(fs, ino);
}

int main(int argc, char **argv)
{
	struct rfs_device device;
	struct rfs_fs *fs;
	int ret;

	if (argc < 2 || rfs_device_open(argv[1], true, &device))
		return 1;
	if (argc > 3 && rfs_slow_open(argv[3], true, &device))
		return 1;
	ret = rfs_mount(device.ops, device.dev, &device.geo, false, 0, &fs);
	if (!ret) {
		ret = fill(fs);
		if (argc > 2)
			ret = ret ? ret : rfs_unmount(fs);
		else
			rfs_unmount_nosync(fs);
	}
	if (ret)
		complain("%s: %s", argv[1], rfs_error(ret));
	rfs_device_close(&device);
	return ret != 0;
}
