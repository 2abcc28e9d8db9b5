// SPDX-License-Identifier: GPL-2.0-or-later
/* A file's size and ranges of it change here: truncate, punch, preallocate. */
#include "space/space.h"
#include "home/home.h"
#include "tree/tree.h"
#include "tree/quota.h"
#include "log/log.h"
#include "ops/ops.h"

int rfs_truncate(struct rfs_fs *fs, u32 ino, u64 size, bool grows)
{
	struct rfs_rec rec;
	int ret = rfs_make_room_to_free(fs);

	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_SIZE, ino);
	if (grows)
		rec.flags = RFS_REC_GROW;
	rec.arg1 = cpu_to_le64(size);
	return rfs_commit(fs, &rec, NULL, 0, NULL, 0);
}

int rfs_punch(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep)
{
	struct rfs_rec rec;
	int ret = rfs_make_room_to_free(fs);

	/* Each leaf that keeps its blocks becomes dirty. */
	if (!ret && keep && to - from > RFS_RANGE_MAX)
		ret = -EINVAL;
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_PUNCH, ino);
	rec.flags = keep ? RFS_REC_KEEP : 0;
	rec.arg1 = cpu_to_le64(from);
	rec.arg2 = cpu_to_le64(to);
	return rfs_commit(fs, &rec, NULL, 0, NULL, 0);
}

static int rfs_count_holes(struct rfs_fs *fs, u32 ino, u64 from, u64 to,
			   u64 *holes)
{
	struct rfs_ptr ptr;
	int ret = 0;

	for (*holes = 0; !ret && from < to; from++) {
		ret = rfs_map_get(fs, ino, from, &ptr);
		*holes += ptr.kind == RFS_PTR_HOLE;
	}
	return ret;
}

u64 rfs_available_then(const struct rfs_fs *fs, const struct rfs_usage *then)
{
	u64 used = rfs_used_then(fs, then, 0, 0), free, need;
	/* rfs_preallocate() asks for these nodes beyond that, and for nodes that are begun. */
	u64 ends = 2 + RFS_HEIGHT_MAX + RFS_RANGE_MAX / RFS_FANOUT +
		   RFS_HEIGHT_MAX;

	if (fs->home)
		return rfs_home_left(fs);
	if (used >= then->user_blocks)
		return 0;
	free = then->user_blocks - used;
	/* There is a node for 252 blocks, one for 1008 of these, and so on: 1/251. */
	need = DIV_ROUND_UP(free, (u64)RFS_FANOUT - 1) + ends;
	need = rfs_used_then(fs, then, 0, need) - used;
	return free > need ? free - need : 0;
}

int rfs_preallocate(struct rfs_fs *fs, u32 ino, u64 *from, u64 to)
{
	u64 end = min(to, *from + RFS_RANGE_MAX), holes, has, left, nodes = 0;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_rec rec;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (!ret)
		ret = rfs_count_holes(fs, ino, *from, end, &holes);
	if (!ret && fs->enforced)
		ret = rfs_map_needs(fs, ino, *from, end, &nodes);
	if (!ret && holes)
		ret = rfs_quota_may_grow(fs, ino, holes + nodes);
	if (ret)
		return ret;
	/* A request for more than the volume has is refused before any of it is preallocated. */
	has = le64_to_cpu(di->blocks);
	left = fs->home ? rfs_home_left(fs) :
	       fs->user_blocks - min(fs->user_blocks, rfs_used(fs));
	if (to - *from > has && to - *from - has > left)
		return -ENOSPC;
	/* There is a node for each 252 blocks, one more at an end, and those above. */
	ret = rfs_make_room(fs, 0, holes, !holes ? 0 : 2 + RFS_HEIGHT_MAX +
			    (end - *from) / RFS_FANOUT);
	if (ret)
		return ret;
	/*
	 * The record is written even if there are no holes, since a power cut may lose the blocks
	 * that are there now.
	 */
	rfs_rec_init(fs, &rec, RFS_OP_PREALLOC, ino);
	rec.arg1 = cpu_to_le64(*from);
	rec.arg2 = cpu_to_le64(end);
	ret = rfs_commit(fs, &rec, NULL, 0, NULL, 0);
	if (!ret)
		*from = end;
	return ret;
}
