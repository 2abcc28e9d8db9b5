// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts what check-points write for the leaves of files, and what they would if they kept moves.
 * It looks at what is appended: a page of data makes its leaf dirty, and a copy has moved. With
 * moves, a check-point writes the leaves that users have made dirty, which also say what has moved
 * of them, and moves of all other leaves, 250 a block. Where more moves wait than there is memory
 * for, it writes the leaves that most wait for, until half of them are left. That is in favour of
 * moves: that their blocks are compacted, and that somebody has to look for a leaf's moves, is not
 * counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "moves.h"

#define MOVES_EACH	250	/* of a block */
#define FILES		2	/* that have leaves: numbers of inodes are even and odd */

struct leaf {
	u16 waiting;		/* moves that are in no leaf yet */
	u16 moved;		/* of them, those since the last check-point */
	bool user, copied;	/* a page, or a copy, since the last check-point */
};

static const struct rfs_dev_ops *below;
static struct leaf *leaf;
static u8 *moved;		/* a block's move waits */
static u32 *touched;		/* leaves since the last check-point */
static u32 leaves, touches, per_map, most;
static u64 waiting, peak;
/* What check-points have written, or would have */
static struct {
	u64 copies, cps, users, leaves, leaf_maps;
	u64 moves, late, move_maps;
} sum;
static u64 written;		/* leaves and blocks of the node map, as appended */
static bool in_checkpoint;

static u32 map_of(u32 nr)
{
	return nr / per_map;
}

static int by_number(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* The leaf has all that has moved. */
static void settle(u32 nr)
{
	waiting -= leaf[nr].waiting;
	leaf[nr].waiting = 0;
	memset(moved + (size_t)nr * RFS_FANOUT, 0, RFS_FANOUT);
}

/* Writes leaves that most moves wait for, and blocks of the map that these need beside others. */
static void write_late(u8 *map_dirty)
{
	u32 of[RFS_FANOUT + 1] = { 0 }, nr, least = RFS_FANOUT;
	u64 left = waiting;

	for (nr = 0; nr < leaves; nr++)
		of[leaf[nr].waiting]++;
	while (least && left > most / 2) {
		left -= min_t(u64, left, (u64)of[least] * least);
		least--;
	}
	for (nr = 0; nr < leaves && waiting > most / 2; nr++) {
		if (leaf[nr].waiting <= least)
			continue;
		settle(nr);
		sum.late++;
		sum.move_maps += !map_dirty[map_of(nr)];
		map_dirty[map_of(nr)] = 1;
	}
}

static void checkpoint(void)
{
	u8 *maps_of = calloc(map_of(leaves) + 1, 2), *map_dirty = maps_of + map_of(leaves) + 1;
	u64 news = 0;
	u32 i;

	if (!maps_of)
		abort();
	qsort(touched, touches, sizeof(*touched), by_number);
	for (i = 0; i < touches; i++) {
		struct leaf *of = &leaf[touched[i]];
		u32 map = map_of(touched[i]);

		sum.leaves++;
		sum.leaf_maps += !maps_of[map];
		maps_of[map] = 1;
		if (!of->user)
			continue;
		settle(touched[i]);
		sum.users++;
		sum.move_maps += !map_dirty[map];
		map_dirty[map] = 1;
	}
	if (waiting > most)
		write_late(map_dirty);
	for (i = 0; i < touches; i++) {
		struct leaf *of = &leaf[touched[i]];

		news += of->waiting ? of->moved : 0;
		of->moved = 0;
		of->user = false;
		of->copied = false;
	}
	sum.moves += (news + MOVES_EACH - 1) / MOVES_EACH;
	peak = max(peak, waiting);
	sum.cps++;
	touches = 0;
	free(maps_of);
}

static void page(const struct rfs_oob *oob)
{
	u64 off = le64_to_cpu(oob->off);
	u32 nr = off / RFS_FANOUT * FILES + le32_to_cpu(oob->ino) % FILES;
	struct leaf *of = &leaf[nr];
	u8 *at = &moved[(size_t)nr * RFS_FANOUT + off % RFS_FANOUT];

	if (nr >= leaves)
		abort();
	if (!of->user && !of->copied)
		touched[touches++] = nr;
	if (!(oob->flags & RFS_OOB_COPY)) {
		of->user = true;
		return;
	}
	of->copied = true;
	of->moved++;
	of->waiting += !*at;
	waiting += !*at;
	*at = 1;
	sum.copies++;
}

static int append(void *dev, u32 zone, u32 blocks, const void *const *data,
		  const struct rfs_oob *oob, u64 *addr)
{
	u32 i;

	for (i = 0; leaf && i < blocks; i++) {
		/* One of both mirrors ends it. */
		if (oob[i].type == RFS_CP && !in_checkpoint)
			checkpoint();
		in_checkpoint = oob[i].type == RFS_CP;
		if (oob[i].type == RFS_DATA)
			page(&oob[i]);
		written += oob[i].type == RFS_INDEX || oob[i].type == RFS_NMAP;
	}
	return below->append(dev, zone, blocks, data, oob, addr);
}

void moves_hook(struct rfs_dev_ops *ops)
{
	static struct rfs_dev_ops under;

	under = *ops;
	below = &under;
	ops->append = append;
}

void moves_begin(u32 leaves_most, u32 leaves_a_map, u32 blocks)
{
	leaves = FILES * leaves_most;
	per_map = FILES * leaves_a_map;
	most = blocks * MOVES_EACH;
	leaf = calloc(leaves, sizeof(*leaf));
	moved = calloc(leaves, RFS_FANOUT);
	touched = calloc(leaves, sizeof(*touched));
	if (!leaf || !moved || !touched)
		abort();
}

void moves_print(void)
{
	printf("{\"copies\": %llu, \"checkpoints\": %llu, \"users_leaves\": %llu, \"leaves\": %llu, \"leaf_maps\": %llu, \"appended\": %llu, \"moves\": %llu, \"late_leaves\": %llu, \"move_maps\": %llu, \"waiting_most\": %llu}\n",
	       (unsigned long long)sum.copies, (unsigned long long)sum.cps,
	       (unsigned long long)sum.users, (unsigned long long)sum.leaves,
	       (unsigned long long)sum.leaf_maps, (unsigned long long)written,
	       (unsigned long long)sum.moves, (unsigned long long)sum.late,
	       (unsigned long long)sum.move_maps, (unsigned long long)peak);
	free(leaf);
	free(moved);
	free(touched);
}
