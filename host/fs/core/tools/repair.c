// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This makes a volume consistent for fsck.rfs. Parts that cannot be consistent are left out, counts
 * are made anew, and inodes without a name go to lost+found. It changes only memory, and the caller
 * makes the check-point.
 */
#include "home/home.h"
#include "tree/tree.h"
#include "ops/ops.h"
#include "tools/walk.h"

static void fix_zones(struct rfs_walk *w)
{
	struct rfs_fs *fs = w->fs;
	u32 nr;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		struct rfs_zone_info *z = &fs->zone[nr];

		if (z->live && z->state == RFS_Z_FREE) {
			rfs_walk_say(w, "zone %u: said to be free, %u blocks are in use",
				     nr, z->live);
			z->state = RFS_Z_USED;
			fs->free_zones--;
		}
		/* The zone table is written as if none of it had been written yet. */
		memset(&fs->ztab[nr], 0xff, sizeof(fs->ztab[nr]));
	}
	rfs_all_zones_changed(fs);
}

static void say_usage(void *arg, u32 type, u32 id, const struct rfs_quota *is,
		      u64 blocks, u64 inodes)
{
	rfs_walk_say(arg, "quota of %s %u: says %llu blocks, %llu inodes, has %llu and %llu",
		     type == RFS_QUOTA_USER ? "user" : "group", id,
		     U(le64_to_cpu(is->blocks)), U(le64_to_cpu(is->inodes)),
		     U(blocks), U(inodes));
}

int rfs_repair(struct rfs_fs *fs, struct rfs_report *report)
{
	bool counting = fs->counting;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_walk w;
	int ret = rfs_walk_init(&w, fs, report);

	/* Quotas are corrected when all inodes have their final state. */
	fs->counting = false;
	if (fs->home && !fs->home->gone)
		rfs_home_forget(fs);

	if (!ret)
		ret = rfs_walk_unreadable(&w);
	if (!ret)
		ret = rfs_walk_maps(&w);
	if (!ret)
		ret = rfs_walk_push_tops(&w);
	if (!ret)
		ret = rfs_walk_run(&w);
	fs->orphans = 0;
	if (!ret)
		ret = rfs_walk_lost(&w);
	if (!ret)
		ret = rfs_walk_links(&w);
	if (!ret)
		ret = rfs_walk_nodes(&w);
	if (!ret && fs->prealloc != w.prealloc)
		rfs_walk_say(&w, "the check-point says %llu reserved blocks, there are %llu",
			     U(w.prealloc), U(fs->prealloc));
	if (!ret)
		fix_zones(&w);
	if (!ret && counting && rfs_iget(fs, RFS_QUOTA_INO, &di, &buf)) {
		rfs_walk_lose(&w, "quotas are lost");
		counting = false;
	}
	if (!ret && counting)
		ret = rfs_quota_compare(fs, RFS_QUOTA_REPAIR, say_usage, &w);
	fs->counting = counting;
	rfs_walk_exit(&w);
	return ret;
}
