// SPDX-License-Identifier: GPL-2.0-or-later
/* Each block of a file that is to be written has a place reserved here. */
#include "tree/tree.h"
#include "tree/quota.h"
#include "ops/ops.h"

/*
 * Asks whether the owners may have one block more, and the nodes that lead to
 * it.
 */
static int rfs_may_fill_hole(struct rfs_fs *fs, u32 ino, u64 block)
{
	u64 nodes;
	int ret = rfs_map_needs(fs, ino, block, block + 1, &nodes);

	return ret ? ret : rfs_quota_may_grow(fs, ino, 1ULL + nodes);
}

static int rfs_reserve_quota(struct rfs_fs *fs, u32 ino, s64 blocks)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	return ret ? ret : rfs_quota_reserve(fs, di, blocks);
}

/*
 * This is the reservation of design.md, question 9. The index nodes that the block needs are made
 * and dirty now, so that they are counted.
 */
int rfs_reserve(struct rfs_fs *fs, u32 ino, u64 block, bool *hole)
{
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	bool nowait;
	int ret = rfs_map_slot(fs, ino, block, false, &slot, &buf);

	if (ret)
		return ret;
	/* A preallocated block has its room already. */
	*hole = !slot || slot->kind == RFS_PTR_HOLE;
	if (*hole && fs->enforced)
		ret = rfs_may_fill_hole(fs, ino, block);
	if (!ret)
		ret = rfs_make_room(fs, 1, *hole,
				    *hole ? 1 + RFS_HEIGHT_MAX : 0);
	if (ret)
		return ret;
	nowait = rfs_nowait_off(fs);
	/* The pointer may be gone if room was made here. */
	if (!slot || !fs->threaded)
		ret = rfs_map_slot(fs, ino, block, true, &slot, &buf);
	if (!ret && *hole && fs->counting)
		ret = rfs_reserve_quota(fs, ino, 1);
	rfs_nowait_restore(fs, nowait);
	if (ret)
		return ret;
	/*
	 * The leaf will be dirty, so it is dirty now: the bound of dirty blocks holds for reserved
	 * blocks, too.
	 */
	rfs_buf_dirty(fs, buf);
	fs->rsv_blocks++;
	fs->rsv_holes += *hole;
	return 0;
}

static u32 rfs_run_of(const struct rfs_ptrs *ptrs, u32 n)
{
	u32 i;

	n = min(n, ptrs->n);
	for (i = 0; i < n; i++)
		if (!rfs_ptr_ok(&ptrs->at[i]) ||
		    ptrs->at[i].kind == RFS_PTR_HOLE)
			break;
	return i;
}

int rfs_reserve_run(struct rfs_fs *fs, u32 ino, u64 block, u32 n)
{
	struct rfs_ptrs ptrs;
	int ret = rfs_map_ptrs(fs, ino, block, false, &ptrs);

	if (ret || !ptrs.at)
		return ret;
	n = rfs_run_of(&ptrs, n);
	if (!n)
		return 0;
	ret = rfs_make_room(fs, n, 0, 0);
	/* The pointers may be gone if room was made here. */
	if (!ret && !fs->threaded)
		ret = rfs_map_ptrs(fs, ino, block, true, &ptrs);
	if (ret)
		return ret;
	rfs_buf_dirty(fs, ptrs.buf);
	fs->rsv_blocks += n;
	return n;
}

void rfs_unreserve(struct rfs_fs *fs, u32 ino, u32 blocks, u32 holes)
{
	if (holes && fs->counting)
		rfs_reserve_quota(fs, ino, -(s64)holes);
	fs->rsv_blocks -= blocks;
	fs->rsv_holes -= holes;
}
