// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These functions find the best zone to clean without a look at each of them, by a tournament.
 * Zones of a way meet in groups, the winners of two groups meet each other, and so on. If a zone
 * changes, the matches that it takes part in are made anew.
 *
 * What cost-benefit gains by a zone, (cap - live) age / live, grows with its age along a straight
 * line. So of two zones the one that is behind overtakes the other at most once, at a time that
 * their lines say. A match is right until the first such time of those that it rests on, and is
 * made anew then. So the winner is the zone that a look at each would find. See "Cleaning" of
 * doc/design.md.
 */
#include "space/space.h"
#include "space/rank.h"

#define GROUP	16	/* zones that meet first: less memory, and more to compare */

struct rfs_rank_node {
	u64 until;		/* ticks: before, it is right; 0: it never is */
	/*
	 * best[how] is the best of the zones that `how` allows to be victims and the way before it
	 * does not. For RFS_CLEAN_HARD it is the best of all that it allows.
	 */
	u32 best[RFS_CLEANS];	/* 0: there is none */
};

struct rfs_rank {
	u64 now;		/* when it was asked last */
	u32 leaves;		/* groups of a way, a power of 2 */
	/*
	 * Each way has 2 * leaves of them. 1 is the last match, and the winners of 2n and 2n + 1
	 * meet in n.
	 */
	struct rfs_rank_node node[];
};

int rfs_rank_alloc(struct rfs_fs *fs)
{
	u32 groups = fs->geo.zones / fs->ways / GROUP + 1, leaves = 1;

	while (leaves < groups)
		leaves *= 2;
	fs->rank = rfs_alloc(struct_size(fs->rank, node,
					 2 * (size_t)leaves * fs->ways));
	if (!fs->rank)
		return -ENOMEM;
	fs->rank->leaves = leaves;
	return 0;
}

static struct rfs_rank_node *rfs_rank_way(const struct rfs_fs *fs, u32 way)
{
	return fs->rank->node + 2 * (size_t)fs->rank->leaves * way;
}

void rfs_rank_stale(struct rfs_fs *fs, u32 nr)
{
	struct rfs_rank_node *node = rfs_rank_way(fs, nr % fs->ways);
	u32 at = fs->rank->leaves + nr / fs->ways / GROUP;

	for (; at && node[at].until; at /= 2)
		node[at].until = 0;
}

void rfs_rank_all_stale(struct rfs_fs *fs)
{
	size_t n = 2 * (size_t)fs->rank->leaves * fs->ways, i;

	for (i = 0; i < n; i++)
		fs->rank->node[i].until = 0;
}

/* Returns how many blocks may be in use of a victim with so many blocks, at most. */
static u32 rfs_most_live(const struct rfs_fs *fs, enum rfs_clean how, u32 cap)
{
	switch (how) {
	case RFS_CLEAN_IDLE:
		return cap / 4;		/* of four blocks three are gained */
	case RFS_CLEAN_EARLY:
		return cap / 4 * 3;
	case RFS_CLEAN_NOW:
		return cap - cap / 16 - 1;	/* more is little gained */
	default:
		return fs->holds - 1;	/* of the next none is gained */
	}
}

static bool rfs_may_be_victim(const struct rfs_zone_info *z)
{
	return z->state == RFS_Z_USED && !z->window && !z->frozen && !z->cleaning &&
	       z->cond == RFS_DEV_OK && !z->cleaned && z->live;
}

static bool rfs_is_victim(const struct rfs_fs *fs, enum rfs_clean how, u32 nr)
{
	const struct rfs_zone_info *z = &fs->zone[nr];

	/*
	 * Where it is hard to gain room, metadata is no victim: it is compacted, which always
	 * gains.
	 */
	return rfs_may_be_victim(z) &&
	       z->live <= rfs_most_live(fs, how, z->cap) &&
	       (how != RFS_CLEAN_HARD || z->stream >= RFS_S_DATA);
}

static enum rfs_gc rfs_gc_of(const struct rfs_fs *fs, enum rfs_clean how)
{
	return how == RFS_CLEAN_HARD ? RFS_GC_GREEDY : fs->policy.gc;
}

u32 rfs_victim_scan(const struct rfs_fs *fs, enum rfs_clean how, u64 now,
		    u64 ways)
{
	struct rfs_segment seg, best_seg = { 0 };
	u32 nr, best = 0;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		if (!rfs_is_victim(fs, how, nr) ||
		    !(ways >> nr % fs->ways & 1))
			continue;
		rfs_segment(fs, nr, now, &seg);
		if (best &&
		    !rfs_better_victim(rfs_gc_of(fs, how), &seg, &best_seg))
			continue;
		best = nr;
		best_seg = seg;
	}
	return best;
}

/*
 * Returns when the other zone overtakes the better one, or a little earlier, so that it is seen
 * then. A zone that is younger than a tick does not age yet.
 */
static u64 rfs_overtakes(const struct rfs_segment *best,
			 const struct rfs_segment *other, u64 now)
{
	unsigned __int128 ahead;
	u64 grows = (u64)(best->cap - best->live) * other->live;
	u64 other_grows = (u64)(other->cap - other->live) * best->live;

	if (!best->age || !other->age)
		return now + 1;
	if (other_grows <= grows)
		return ~0ULL;
	ahead = (unsigned __int128)grows * best->age -
		(unsigned __int128)other_grows * other->age;
	for (grows = other_grows - grows; ahead >> 64; ahead >>= 1)
		grows = grows / 2 + 1;
	return now + min(max((u64)ahead / grows, 1ULL), ~0ULL - now);
}

/* As rfs_segment(), without hotness, which none of these matches asks for. */
static struct rfs_segment rfs_segment_of(const struct rfs_fs *fs, u32 nr,
					 u64 now)
{
	const struct rfs_zone_info *z = &fs->zone[nr];
	struct rfs_segment seg = { .live = z->live, .cap = z->cap };

	seg.age = now > z->last ? now - z->last : 0;
	return seg;
}

/* Returns the better of two zones, each of which may be 0. */
static u32 rfs_match(const struct rfs_fs *fs, enum rfs_clean how, u64 now,
		     u32 a, u32 b, u64 *until)
{
	enum rfs_gc gc = rfs_gc_of(fs, how);
	struct rfs_segment of_a, of_b;
	bool first;

	if (!a || !b)
		return a ? a : b;
	of_a = rfs_segment_of(fs, a, now);
	of_b = rfs_segment_of(fs, b, now);
	/* Of two that are equally good the first wins. */
	first = a < b ? !rfs_better_victim(gc, &of_b, &of_a) :
			rfs_better_victim(gc, &of_a, &of_b);
	if (gc == RFS_GC_COST_BENEFIT)
		*until = min(*until, first ? rfs_overtakes(&of_a, &of_b, now) :
					     rfs_overtakes(&of_b, &of_a, now));
	return first ? a : b;
}

static void rfs_rank_add(const struct rfs_fs *fs, struct rfs_rank_node *node,
			 u64 now, u32 nr)
{
	enum rfs_clean how = RFS_CLEAN_IDLE;

	if (!rfs_may_be_victim(&fs->zone[nr]))
		return;
	while (how < RFS_CLEAN_HARD && !rfs_is_victim(fs, how, nr))
		how++;
	if (how < RFS_CLEAN_HARD)
		node->best[how] = rfs_match(fs, how, now, node->best[how], nr,
					    &node->until);
	how = RFS_CLEAN_HARD;
	if (rfs_is_victim(fs, how, nr))
		node->best[how] = rfs_match(fs, how, now, node->best[how], nr,
					    &node->until);
}

/* Makes the first matches of a group. */
static void rfs_rank_group(const struct rfs_fs *fs, u32 way, u32 group, u64 now,
			   struct rfs_rank_node *node)
{
	u32 i, nr = group * GROUP * fs->ways + way;

	memset(node, 0, sizeof(*node));
	node->until = ~0ULL;
	for (i = 0; i < GROUP && nr < fs->geo.zones; i++, nr += fs->ways) {
		fs->zone[nr].noted &= ~RFS_NOTED_RANK;
		if (nr >= RFS_CP_ZONES)
			rfs_rank_add(fs, node, now, nr);
	}
}

/*
 * Makes all matches anew that lead to match `at`. It calls itself once a level, so it is never
 * deep.
 */
static void rfs_rank_refresh(const struct rfs_fs *fs, u32 way, u32 at, u64 now)
{
	struct rfs_rank_node *node = rfs_rank_way(fs, way), *to = &node[at];
	enum rfs_clean how;
	u32 i;

	if (to->until > now)
		return;
	if (at >= fs->rank->leaves) {
		rfs_rank_group(fs, way, at - fs->rank->leaves, now, to);
		return;
	}
	to->until = ~0ULL;
	for (i = 2 * at; i <= 2 * at + 1; i++) {
		rfs_rank_refresh(fs, way, i, now);
		to->until = min(to->until, node[i].until);
	}
	for (how = 0; how < RFS_CLEANS; how++)
		to->best[how] = rfs_match(fs, how, now, node[2 * at].best[how],
					  node[2 * at + 1].best[how],
					  &to->until);
}

#ifndef __KERNEL__
void (*rfs_victim_found)(const struct rfs_fs *fs, enum rfs_clean how, u64 now,
			 u64 ways, u32 nr);
#endif

u32 rfs_victim(struct rfs_fs *fs, enum rfs_clean how, u64 now, u64 ways)
{
	enum rfs_clean i;
	u32 best = 0, way;
	u64 until;

	if (rfs_gc_of(fs, how) == RFS_GC_COST_HOTNESS)
		return rfs_victim_scan(fs, how, now, ways);
	if (now < fs->rank->now)	/* a clock was set back */
		rfs_rank_all_stale(fs);
	fs->rank->now = now;
	for (way = 0; way < fs->ways; way++) {
		if (!(ways >> way & 1))
			continue;
		rfs_rank_refresh(fs, way, 1, now);
		for (i = how < RFS_CLEAN_HARD ? 0 : how; i <= how; i++)
			best = rfs_match(fs, how, now, best,
					 rfs_rank_way(fs, way)[1].best[i],
					 &until);
	}
#ifndef __KERNEL__
	if (rfs_victim_found)
		rfs_victim_found(fs, how, now, ways, best);
#endif
	return best;
}
