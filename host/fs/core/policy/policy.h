/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SFS (FAST 2012) decides these: hotness (3.3), groups (3.4), victims (3.6). The functions are
 * pure: they do no I/O, have no memory of their own, and use integers only. The file system, the
 * simulator and the tests use the same.
 */
#ifndef RFS_POLICY_H
#define RFS_POLICY_H

#include "plat/rfs_plat.h"
#include "format/rfs_format.h"

/* Hotness is a fraction: writes a tick, times 2^46. */
#define RFS_HOT_SHIFT	46

/*
 * Returns the hotness of a block, a file or the live blocks of a segment: writes / age, in ticks of
 * whatever clock (RFS: 1/256 s; the simulator: a write). For a segment both are sums, so that it is
 * the mean of the one by the mean of the other. An age of 0 counts as 1. What is more than the
 * highest number counts as that.
 */
u64 rfs_hotness(u64 writes, u64 age);

/*
 * SFS calls equal ranges of hotness equi-height and equal numbers of segments
 * equi-width. Common usage is the other way round; here it is as SFS has it.
 */
enum rfs_quantize {
	RFS_Q_ITERATIVE,
	RFS_Q_EQUI_WIDTH,
	RFS_Q_EQUI_HEIGHT,
	RFS_Q_BALANCED,		/* each group is given as much; not SFS's */
	RFS_QUANTIZES
};

/*
 * Finds the hotness of each of k groups, coldest first, from that of n segments. It overwrites
 * `hot`. RFS_Q_ITERATIVE starts from the values in group[], all 0 at first. RFS_Q_BALANCED is not
 * for this function.
 */
void rfs_quantize(enum rfs_quantize how, u64 *hot, u32 n, u64 *group, u32 k);

/*
 * This counts what was given to groups lately by its hotness: each bar is 1.09 times as hot as the
 * one before.
 */
#define RFS_BARS	512

struct rfs_traffic {
	u32 bar[RFS_BARS];
	u32 all;
};

/* Counts a block of this hotness as written or copied. */
void rfs_traffic_add(struct rfs_traffic *t, u64 hot);

#define RFS_WINDOW	16	/* of traffic: what part of the volume's blocks */

/*
 * Balances groups, so that each would have been given as much of the traffic. group[] is the
 * hottest hotness that belongs to each. Blocks that came more than `window` blocks ago count for
 * half, and so on. Groups stay as they are until there is traffic of RFS_BARS blocks.
 */
void rfs_balance(struct rfs_traffic *t, u32 window, u64 *group, u32 k);

/*
 * Returns the group whose hotness is next to `hot`, and the colder of two, or for RFS_Q_BALANCED
 * the one that it belongs to.
 */
u32 rfs_group_of(enum rfs_quantize how, const u64 *group, u32 k, u64 hot);

enum rfs_gc {
	RFS_GC_COST_HOTNESS,
	RFS_GC_COST_BENEFIT,
	RFS_GC_GREEDY,
	RFS_GCS
};

/* This is a segment that may be cleaned. */
struct rfs_segment {
	u32 live;		/* blocks, above 0 */
	u32 cap;		/* blocks, at least live */
	u64 hot;		/* cost-hotness: rfs_hotness() */
	u64 age;		/* cost-benefit: ticks; 0 counts as 1 */
};

/* Says whether it is better to clean a than b. */
bool rfs_better_victim(enum rfs_gc how, const struct rfs_segment *a,
		       const struct rfs_segment *b);

#define RFS_VICTIMS	3	/* at once (SFS 3.6) */

#endif
