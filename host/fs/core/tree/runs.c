// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leaves can be runs. If the blocks of a leaf lie in few rows, and were written as often and at the
 * same time, the node map says where they are, and the leaf is not written. When a caller looks for
 * the leaf, it is made of its runs. Nobody else knows the difference.
 */
#include "space/space.h"
#include "tree/tree.h"

#define SAME_TICKS	256	/* times that differ by less than a second are one */

/* Returns the first pointer of a leaf that is no hole, or RFS_FANOUT. */
static u32 rfs_runs_first(const struct rfs_ptr *ptr)
{
	u32 i = 0;

	while (i < RFS_FANOUT && ptr[i].kind == RFS_PTR_HOLE)
		i++;
	return i;
}

/* These are the blocks of a leaf that is runs, without the holes around them. */
struct rows {
	u32 blocks;
	u32 rows;
	struct {
		u64 addr;	/* of the first */
		u32 n;
		u32 time;	/* sum: ticks since SAME_TICKS before the first pointer's */
	} row[RFS_RUNS_MAX];
};

/* Returns how many blocks from an address on are of one zone and may have data. */
static u32 rfs_runs_left(const struct rfs_fs *fs, u64 addr)
{
	if (!rfs_addr_ok(fs, addr))
		return 0;
	return fs->zone[addr / fs->geo.zone_blocks].cap -
	       addr % fs->geo.zone_blocks;
}

/*
 * Finds the rows of a leaf's pointers, the first of which is no hole. False says that they are no
 * runs: not alike, in too many rows, or with a hole among them. Each pointer is looked at once,
 * since each leaf that is written comes here.
 */
static bool rfs_runs_find(const struct rfs_fs *fs, const struct rfs_ptr *ptr,
			  u32 most, struct rows *r)
{
	u64 from = rfs_ptr_ticks(ptr) - SAME_TICKS, next = 0;
	u32 least = ~0U, latest = 0, left = 0, i;

	for (i = 0; i < most && ptr[i].kind != RFS_PTR_HOLE; i++) {
		u64 ticks = rfs_ptr_ticks(&ptr[i]) - from;
		u64 addr = rfs_addr(ptr[i].addr);

		if (ptr[i].kind != RFS_PTR_BLOCK ||
		    ptr[i].wcount != ptr->wcount || ticks >= 2 * SAME_TICKS)
			return false;
		/* All of a block is valid, unless it is the last one. */
		if (i && rfs_high(ptr[i - 1].addr) != RFS_BLOCK_BYTES)
			return false;
		least = min_t(u32, least, ticks);
		latest = max_t(u32, latest, ticks);
		if (addr != next || !left) {
			left = rfs_runs_left(fs, addr);
			if (!left || r->rows == RFS_RUNS_MAX)
				return false;
			r->row[r->rows++].addr = addr;
		}
		r->row[r->rows - 1].n++;
		r->row[r->rows - 1].time += ticks;
		next = addr + 1;
		left--;
	}
	r->blocks = i;
	for (; i < most; i++)
		if (ptr[i].kind != RFS_PTR_HOLE)
			return false;
	return latest - least < SAME_TICKS;
}

/* Gives all blocks one time, the mean. The sums of their zones follow. */
static void rfs_runs_retime(struct rfs_fs *fs, struct rfs_ptr *ptr,
			    const struct rows *r)
{
	u64 from = rfs_ptr_ticks(ptr) - SAME_TICKS;
	u32 sum = 0, mean, i;

	for (i = 0; i < r->rows; i++)
		sum += r->row[i].time;
	mean = sum / r->blocks;
	for (i = 0; i < r->rows; i++) {
		u32 nr = r->row[i].addr / fs->geo.zone_blocks;
		u32 all = mean * r->row[i].n;

		if (all == r->row[i].time)
			continue;
		fs->zone[nr].sum_time += (u64)all - r->row[i].time;
		rfs_zone_changed(fs, nr);
	}
	for (i = 0; i < r->blocks; i++) {
		ptr[i].time = cpu_to_le32((from + mean) >> 8);
		ptr[i].frac = from + mean;
	}
}

bool rfs_runs_make(struct rfs_fs *fs, struct rfs_buf *leaf,
		   struct rfs_runs *runs)
{
	struct rfs_ptr *ptr = leaf->node.ptr;
	u32 first = rfs_runs_first(ptr), len, i;
	struct rows r = { 0 };

	memset(runs, 0, sizeof(*runs));
	if (first == RFS_FANOUT ||
	    !rfs_runs_find(fs, ptr + first, RFS_FANOUT - first, &r))
		return false;
	rfs_runs_retime(fs, ptr + first, &r);
	len = rfs_ptr_len(&ptr[first + r.blocks - 1]);
	runs->word = rfs_word(0, RFS_NODE_USED | RFS_NODE_RUNS |
			      (len - 1) << RFS_NODE_LEN_SHIFT);
	for (i = 0; i < r.rows; i++)
		runs->run[i] = rfs_word(r.row[i].addr, r.row[i].n);
	runs->time = ptr[first].time;
	runs->wcount = ptr[first].wcount;
	runs->frac = ptr[first].frac;
	runs->first = first;
	return true;
}

/* Makes the pointers of a leaf from its runs. False says that the runs are damaged. */
static bool rfs_runs_ptrs(const struct rfs_fs *fs, const struct rfs_runs *runs,
			  struct rfs_ptr *ptr)
{
	u32 at = runs->first, i, j;

	for (i = 0; i < RFS_RUNS_MAX && runs->run[i]; i++) {
		u32 n = rfs_high(runs->run[i]);
		u64 addr = rfs_addr(runs->run[i]);

		if (!n || n > RFS_FANOUT || at + n > RFS_FANOUT ||
		    n > rfs_runs_left(fs, addr))
			return false;
		for (j = 0; j < n; j++, at++) {
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
