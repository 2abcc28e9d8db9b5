// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>

#include "flashless_check.h"
#include "device.h"
#include "home/home.h"
#include "tree/tree.h"
#include "tree/dir.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "tools/tools.h"
#include "tools/flashless.h"

static void mix(u64 *digest, const void *data, size_t bytes)
{
	*digest = (*digest ^ rfs_crc(~0U, data, bytes)) * 0x9e3779b97f4a7c15ULL;
	*digest ^= *digest >> 29;
}

/* What flash has of a block; what it has not is an error without the slow device. */
static int mix_flash_block(struct rfs_fs *fs, u32 ino, u64 at,
			   const struct rfs_ptr *ptr, u64 *digest)
{
	static u8 block[RFS_BLOCK_BYTES];
	int ret = rfs_read(fs, ino, at, block);

	if (ptr->kind == RFS_PTR_ELSEWHERE)
		return fs->home->gone && ret != -ENXIO ? -EINVAL : 0;
	mix(digest, &at, sizeof(at));
	mix(digest, block, sizeof(block));
	return ret;
}

static bool flash_alone;	/* else the slow device alone */

static int mix_block(struct rfs_fs *fs, u32 ino, u64 at, u64 *digest)
{
	static u8 block[RFS_BLOCK_BYTES];
	struct rfs_ptr ptr;
	u64 what[3] = { at, 0, 0 };
	int ret = rfs_map_get(fs, ino, at, &ptr);

	if (!ret && flash_alone)
		return mix_flash_block(fs, ino, at, &ptr, digest);
	if (ret || ptr.kind == RFS_PTR_BLOCK)
		return ret;
	memset(block, 0, sizeof(block));
	if (rfs_ptr_has_home(&ptr)) {
		what[1] = rfs_ptr_home(&ptr);
		what[2] = rfs_ptr_len(&ptr);
		ret = rfs_home_read(fs, what[1], block);
	}
	mix(digest, what, sizeof(what));
	mix(digest, block, sizeof(block));
	return ret;
}

static int mix_file(struct rfs_fs *fs, u32 ino, u64 *digest)
{
	u64 at = 0;
	int ret;

	for (;; at++) {
		do {
			ret = rfs_map_seek(fs, ino, at, RFS_FILE_BLOCKS, true, &at);
		} while (ret == -EAGAIN);
		if (ret || at == RFS_FILE_BLOCKS)
			return ret;
		ret = mix_block(fs, ino, at, digest);
		if (ret)
			return ret;
	}
}

static int mix_dir(struct rfs_fs *fs, u32 dir, u64 *digest)
{
	struct rfs_entry entry = { 0 };
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 mode;
	int ret;

	while ((ret = rfs_dir_next(fs, dir, entry.pos, &entry)) == 0) {
		mix(digest, entry.name, entry.len);
		ret = rfs_iget(fs, entry.ino, &di, &buf);
		if (ret)
			return ret;
		mix(digest, &di->gen, sizeof(di->gen));
		mix(digest, &di->mode, sizeof(di->mode));
		mix(digest, &di->nlink, sizeof(di->nlink));
		mix(digest, &di->gid, sizeof(di->gid));
		mix(digest, &di->size, sizeof(di->size));
		mix(digest, &di->mtime, sizeof(di->mtime));
		mode = le32_to_cpu(di->mode);
		if (S_ISDIR(mode))
			ret = mix_dir(fs, entry.ino, digest);
		else if (S_ISREG(mode))
			ret = mix_file(fs, entry.ino, digest);
		if (ret)
			return ret;
	}
	return ret == -ENOENT ? 0 : ret;
}

int flashless_digest_of(struct rfs_fs *fs, u64 *digest)
{
	*digest = 1;
	return mix_dir(fs, RFS_ROOT_INO, digest);
}

int slowless_digest(struct memdev *dev, bool gone, u64 *digest)
{
	struct rfs_geometry geo = dev->geo;
	struct rfs_fs *fs;
	int ret;

	if (gone)
		geo.slow = &rfs_slow_gone;
	ret = rfs_mount(&memdev_ops, dev, &geo, true, 0, &fs);
	if (ret)
		return ret;
	flash_alone = true;
	ret = flashless_digest_of(fs, digest);
	flash_alone = false;
	rfs_unmount_nosync(fs);
	return ret;
}

int flashless_digest_seq(const struct rfs_slow_dev *slow, u64 *digest, u64 *seq)
{
	struct rfs_flashless *f;
	struct rfs_fs *fs;
	int ret = rfs_flashless_open(slow, &f);

	if (ret)
		return ret;
	if (seq)
		*seq = rfs_flashless_seq(f);
	ret = rfs_mount(&rfs_flashless_ops, f, rfs_flashless_geometry(f), true, 0,
			&fs);
	if (!ret) {
		ret = flashless_digest_of(fs, digest);
		rfs_unmount_nosync(fs);
	}
	rfs_flashless_close(f);
	return ret;
}

static char text[400];

static void say(void *arg, const char *what)
{
	(void)arg;
	if (!text[0])
		snprintf(text, sizeof(text), "restored: fsck: %s", what);
}

static int repair(const struct rfs_device *over, const u8 *there, u64 *losses,
		  u64 *last)
{
	struct rfs_report report = { .there = there }, after = { .say = say };
	int ret = rfs_flashless_leave_out(over->ops, over->dev, &over->geo, &report,
					  &after, last);

	*losses = report.losses;
	return ret;
}

const char *flashless_restore(struct memdev *to, u64 *losses)
{
	struct rfs_device below = { .ops = &rfs_flashless_ops }, over;
	struct rfs_device drive = { .ops = &memdev_ops, .dev = to,
				    .geo = to->geo };
	struct rfs_flashless *f;
	u64 last;
	int ret = rfs_flashless_open(to->geo.slow, &f);

	text[0] = 0;
	if (!ret) {
		below.dev = f;
		below.geo = *rfs_flashless_geometry(f);
		ret = rfs_overlay_open(&below, &over);
		if (!ret) {
			ret = repair(&over, rfs_flashless_there(f), losses, &last);
			if (!ret && !text[0])
				ret = rfs_overlay_write(&over, &drive, last);
			over.close(over.dev);
		}
		rfs_flashless_close(f);
	}
	if (ret && !text[0])
		snprintf(text, sizeof(text), "restore fails with %d", ret);
	return text[0] ? text : NULL;
}
