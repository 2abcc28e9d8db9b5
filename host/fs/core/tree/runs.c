// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leaves that are runs: where the blocks of a leaf lie in few rows, and were written as
 * often and at the same time, the node map says so, and the leaf is not written. A leaf
 * that is looked for is made of its runs. Else nobody knows the difference.
 */
#include "space/space.h"
#include "tree/tree.h"

#define SAME_TICKS	256	/* times that differ by less than a second are one */

/* The first pointer of a leaf that is no hole; RFS_FANOUT: none */
static u32 rfs_runs_first(const struct rfs_ptr *ptr)
{
	u32 i = 0;

	while (i < RFS_FANOUT && ptr[i].kind == RFS_PTR_HOLE)
		i++;
	return i;
}

/* Is it a block of flash that was written as often as another? */
static bool rfs_runs_like(const struct rfs_fs *fs, const struct rfs_ptr *ptr,
			  const struct rfs_ptr *other)
{
	return ptr->kind == RFS_PTR_BLOCK && ptr->wcount == other->wcount &&
	       rfs_addr_ok(fs, rfs_addr(ptr->addr));
}

/* Blocks from pointer `first` on; 0: some are not alike, or there is a hole among them */
static u32 rfs_runs_count(const struct rfs_fs *fs, const struct rfs_ptr *ptr,
			  u32 first)
{
	u64 least = ~0ULL, most = 0;
	u32 i, n;

	for (i = first; i < RFS_FANOUT && ptr[i].kind != RFS_PTR_HOLE; i++) {
		u64 ticks = rfs_ptr_ticks(&ptr[i]);

		if (!rfs_runs_like(fs, &ptr[i], &ptr[first]))
			return 0;
		least = min(least, ticks);
		most = max(most, ticks);
		if (most - least >= SAME_TICKS)
			return 0;
	}
	n = i - first;
	for (; i < RFS_FANOUT; i++)
		if (ptr[i].kind != RFS_PTR_HOLE)
			return 0;
	/* but for the last, all of a block is valid */
	for (i = 1; i < n; i++)
		if (rfs_ptr_len(&ptr[first + i - 1]) != RFS_BLOCK_BYTES)
			return 0;
	return n;
}

/* The rows of n blocks; false: there are too many */
static bool rfs_runs_rows(const struct rfs_ptr *ptr, u32 n, __le64 *run)
{
	u32 rows = 0, i, in_row = 0;
	u64 first = 0;

	for (i = 0; i < n; i++) {
		u64 addr = rfs_addr(ptr[i].addr);

		if (!rows || addr != first + in_row) {
			if (rows == RFS_RUNS_MAX)
				return false;
			rows++;
			first = addr;
			in_row = 0;
		}
		run[rows - 1] = rfs_word(first, ++in_row);
	}
	return true;
}

/* All blocks have one time from now on: the mean. Their zones have the sums. */
static void rfs_runs_retime(struct rfs_fs *fs, struct rfs_ptr *ptr, u32 n)
{
	u64 base = rfs_ptr_ticks(ptr), sum = 0, mean;
	u32 i;

	/* the sum of the differences is small, whatever their sign */
	for (i = 0; i < n; i++)
		sum += rfs_ptr_ticks(&ptr[i]) + SAME_TICKS - base;
	mean = base + (u32)sum / n - SAME_TICKS;
	for (i = 0; i < n; i++) {
		u32 nr = rfs_addr(ptr[i].addr) / fs->geo.zone_blocks;

		if (rfs_ptr_ticks(&ptr[i]) == mean)
			continue;
		fs->zone[nr].sum_time += mean - rfs_ptr_ticks(&ptr[i]);
		rfs_zone_changed(fs, nr);
		ptr[i].time = cpu_to_le32(mean >> 8);
		ptr[i].frac = mean;
	}
}

bool rfs_runs_make(struct rfs_fs *fs, struct rfs_buf *leaf,
		   struct rfs_runs *runs)
{
	struct rfs_ptr *ptr = leaf->node.ptr;
	u32 first = rfs_runs_first(ptr), n = 0;

	memset(runs, 0, sizeof(*runs));
	if (first < RFS_FANOUT)
		n = rfs_runs_count(fs, ptr, first);
	if (!n || !rfs_runs_rows(ptr + first, n, runs->run))
		return false;
	rfs_runs_retime(fs, ptr + first, n);
	runs->word = rfs_word(0, RFS_NODE_USED | RFS_NODE_RUNS |
			      (rfs_ptr_len(&ptr[first + n - 1]) - 1) <<
			      RFS_NODE_LEN_SHIFT);
	runs->time = ptr[first].time;
	runs->wcount = ptr[first].wcount;
	runs->frac = ptr[first].frac;
	runs->first = first;
	return true;
}

/* The pointers that runs stand for; false: they are not right */
static bool rfs_runs_ptrs(const struct rfs_fs *fs, const struct rfs_runs *runs,
			  struct rfs_ptr *ptr)
{
	u32 at = runs->first, i, j;

	for (i = 0; i < RFS_RUNS_MAX && runs->run[i]; i++) {
		u32 n = rfs_high(runs->run[i]);
		u64 addr = rfs_addr(runs->run[i]);

		if (!n || n > RFS_FANOUT || at + n > RFS_FANOUT)
			return false;
		for (j = 0; j < n; j++, at++) {
			if (!rfs_addr_ok(fs, addr + j))
				return false;
			ptr[at].addr = rfs_word(addr + j, RFS_BLOCK_BYTES);
			ptr[at].time = runs->time;
			ptr[at].wcount = runs->wcount;
			ptr[at].kind = RFS_PTR_BLOCK;
			ptr[at].frac = runs->frac;
		}
	}
	if (!i)
		return false;
	ptr[at - 1].addr = rfs_word(rfs_addr(ptr[at - 1].addr),
				    (rfs_high(runs->word) >>
				     RFS_NODE_LEN_SHIFT) + 1);
	for (; i < RFS_RUNS_MAX; i++)
		if (runs->run[i])
			return false;
	return true;
}

int rfs_runs_unfold(struct rfs_fs *fs, const struct rfs_node_id *id, u32 number,
		    const struct rfs_runs *runs, struct rfs_buf **out)
{
	int ret;

	*out = NULL;
	if (id->type != RFS_INDEX || id->level != 1 || !id->leaf)
		return -EUCLEAN;
	ret = rfs_buf_blank(fs, RFS_INDEX, id->ino, id->gen,
			    RFS_NODE_KEY(number, id->place), out);
	if (ret)
		return ret;
	(*out)->head.level = 1;
	if (rfs_runs_ptrs(fs, runs, (*out)->node.ptr)) {
		(*out)->run = true;
		return 0;
	}
	rfs_buf_drop(fs, *out);
	*out = NULL;
	return -EUCLEAN;
}
