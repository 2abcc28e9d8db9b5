// SPDX-License-Identifier: GPL-2.0
/*
 * These functions translate errors: those of the drive for the core, and those of the core into a
 * state of the volume.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>

#include "rfsm.h"
#include "error.h"
#include "space/space.h"

/*
 * Linux has several errors for an operation that a drive cannot do, such as -ENODATA for a medium
 * error. The core has only -EIO for it, by which it and errors= decide. Other errors have a meaning
 * to the core, such as -ENOSPC where no zone is left.
 */
int rfsm_drive_error(int error)
{
	return rfs_zone_failed(error) ? -EIO : error;
}

bool rfsm_dead(const struct rfs_sb_info *sbi)
{
	return READ_ONCE(sbi->dev.dead);
}

/* The core has failed: its metadata is damaged or unreadable, or it has stopped writing. */
int rfsm_failed(struct rfs_sb_info *sbi, int ret)
{
	struct super_block *sb = sbi->sb;

	if (ret == -EROFS && !sbi->clean_ro)
		ret = -EIO;
	if ((ret != -EIO && ret != -EUCLEAN) || rfsm_dead(sbi))
		return ret;
	if (sbi->opt.errors == RFSM_ERRORS_PANIC)
		panic("rfs: %pg: error %d\n", sb->s_bdev, ret);
	pr_err_ratelimited("%pg: error %d%s\n", sb->s_bdev, ret,
			   sbi->opt.errors == RFSM_ERRORS_RO ?
			   ", read-only" : "");
	if (sbi->opt.errors == RFSM_ERRORS_RO && !sb_rdonly(sb)) {
		sbi->fs->read_only = true;
		sb->s_flags |= SB_RDONLY;
	}
	return ret;
}

void rfsm_say_room(struct rfs_sb_info *sbi, const char *what, u32 blocks)
{
	struct rfs_lack lack;

	rfs_room_lacks(sbi->fs, blocks, &lack);
	pr_warn_ratelimited("%pg: %s: %u blocks are dirty, with what is kept for others they need room for %llu and have it for %llu, %llu lack; %u zones are free of %llu, %llu lack\n",
			    sbi->sb->s_bdev, what, sbi->fs->dirty.count,
			    lack.wanted, lack.room, lack.blocks,
			    sbi->fs->free_zones, lack.zones_wanted, lack.zones);
}
