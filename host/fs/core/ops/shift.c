// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A range of whole blocks is taken out of a file, or put into it, so the blocks behind it move. A
 * page says which block of its file it is, so blocks move by being written anew, row by row. Each
 * row goes to the other side of the gap, and the gap goes on to the place where the row was. The
 * gap is a number of blocks whose content is of no use any more. So at any time the file has all
 * blocks that it is to keep.
 */
#include "tree/tree.h"
#include "ops/ops.h"

static u8 rfs_shift_kind(const struct rfs_ptrs *ptrs, u32 i)
{
	u8 kind = ptrs->at ? ptrs->at[i].kind : RFS_PTR_HOLE;

	return kind == RFS_PTR_HOLE || kind == RFS_PTR_PREALLOC ? kind :
								  RFS_PTR_BLOCK;
}

/* Finds pointers from a block on, at most n and those of one leaf. */
static int rfs_shift_ptrs(struct rfs_fs *fs, u32 ino, u64 block, u64 n,
			  struct rfs_ptrs *ptrs)
{
	u32 i;
	int ret = rfs_map_ptrs(fs, ino, block, false, ptrs);

	ptrs->n = min_t(u64, ptrs->n, n);
	for (i = 0; !ret && ptrs->at && i < ptrs->n; i++)
		if (!rfs_ptr_known(fs, &ptrs->at[i]))
			ret = -EUCLEAN;
	return ret;
}

/*
 * Returns how many blocks of one kind follow each other, from the first on or, with last, up to the
 * last.
 */
static u32 rfs_shift_row(const struct rfs_ptrs *ptrs, bool last)
{
	u32 end = last ? ptrs->n - 1 : 0, n;

	for (n = 1; n < ptrs->n; n++)
		if (rfs_shift_kind(ptrs, last ? end - n : n) !=
		    rfs_shift_kind(ptrs, end))
			break;
	return n;
}

/* Finds the next row: blocks of one kind, just before the gap or just behind it. */
static int rfs_shift_find(struct rfs_fs *fs, struct rfs_shift *s)
{
	bool back = s->gap > s->end;
	u64 from = s->gap + s->n, most = s->end - s->gap;
	struct rfs_ptrs ptrs;
	int ret;

	if (back) {	/* from where the last leaf before the gap begins */
		most = min_t(u64, s->gap - s->end,
			     (s->gap - 1) % RFS_FANOUT + 1);
		most = min_t(u64, most, s->most);
		from = s->gap - most;
	}
	ret = rfs_shift_ptrs(fs, s->ino, from, min_t(u64, most, s->most), &ptrs);
	if (ret)
		return ret;
	/* Pointers of a short file end with the inode; there are none behind that. */
	if (back && from + ptrs.n < s->gap) {
		s->row = s->gap - from - ptrs.n;
		s->kind = RFS_PTR_HOLE;
	} else {
		s->row = rfs_shift_row(&ptrs, back);
		s->kind = rfs_shift_kind(&ptrs, back ? ptrs.n - 1 : 0);
	}
	s->from = back ? s->gap - s->row : from;
	s->to = back ? s->from + s->n : s->gap;
	s->stage = RFS_SHIFT_FOUND;
	return 0;
}

static int rfs_shift_step(struct rfs_shift *s, enum rfs_shift_what what,
			  u64 at, u64 blocks)
{
	s->what = what;
	s->at = at;
	s->blocks = blocks;
	return 1;
}

/* Makes the next step a punch, if any of these blocks is not a hole. */
static int rfs_shift_punch(struct rfs_fs *fs, struct rfs_shift *s, u64 at,
			   u64 blocks)
{
	struct rfs_ptrs ptrs;
	u64 i;
	int ret;

	for (i = 0; i < blocks; i += ptrs.n) {
		ret = rfs_shift_ptrs(fs, s->ino, at + i, blocks - i, &ptrs);
		if (ret)
			return ret;
		if (rfs_shift_kind(&ptrs, 0) != RFS_PTR_HOLE ||
		    rfs_shift_row(&ptrs, false) < ptrs.n)
			return rfs_shift_step(s, RFS_SHIFT_PUNCH, at, blocks);
	}
	return 0;
}

/* Puts the row to its new place, with its kind of blocks. */
static int rfs_shift_put(struct rfs_fs *fs, struct rfs_shift *s)
{
	bool again = s->stage == RFS_SHIFT_RESERVED;
	int ret;

	if (s->kind == RFS_PTR_PREALLOC && !again) {
		s->stage = RFS_SHIFT_RESERVED;
		return rfs_shift_step(s, RFS_SHIFT_RESERVE, s->to, s->row);
	}
	if (s->kind == RFS_PTR_PREALLOC)
		ret = rfs_shift_step(s, RFS_SHIFT_ZERO, s->to, s->row);
	else if (s->kind == RFS_PTR_HOLE)
		ret = rfs_shift_punch(fs, s, s->to, s->row);
	else
		ret = rfs_shift_step(s, RFS_SHIFT_WRITE, s->to, s->row);
	if (ret >= 0)
		s->stage = RFS_SHIFT_THERE;
	return ret;
}

/* The gap moves to the old place of the row, without the blocks that the row covers itself. */
static int rfs_shift_leave(struct rfs_fs *fs, struct rfs_shift *s)
{
	bool back = s->gap > s->end;
	u64 left = s->from, end = s->from + s->row;
	int ret;

	if (back)
		end = min(end, s->to);
	else
		left = max(left, s->to + s->row);
	ret = rfs_shift_punch(fs, s, left, end - left);
	if (ret < 0)
		return ret;
	s->gap = back ? s->from : s->gap + s->row;
	s->stage = RFS_SHIFT_OVER;
	return ret;
}

int rfs_shift_next(struct rfs_fs *fs, struct rfs_shift *s)
{
	u32 looks = 0;
	int ret = 0;

	while (!ret && (s->stage != RFS_SHIFT_OVER || s->gap != s->end)) {
		/*
		 * Each look goes through three leaves at most: two for a punch, one for the next
		 * row.
		 */
		if (++looks > RFS_PRUNE_NODES / 4)
			return -EAGAIN;
		if (s->stage == RFS_SHIFT_OVER)
			ret = rfs_shift_find(fs, s);
		else if (s->stage == RFS_SHIFT_THERE)
			ret = rfs_shift_leave(fs, s);
		else
			ret = rfs_shift_put(fs, s);
	}
	return ret;
}
