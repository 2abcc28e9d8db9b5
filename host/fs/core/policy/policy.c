// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/policy.h"

#define ROUNDS	3	/* of iterative quantization, at most (SFS 3.4) */

u64 rfs_hotness(u64 writes, u64 age)
{
	u32 shift = RFS_HOT_SHIFT;

	age = max(age, 1ULL);
	/* Each bit that does not fit is a bit less of the quotient. */
	while (shift && writes >> (64 - shift))
		shift--;
	writes <<= shift;
	for (; shift < RFS_HOT_SHIFT && age > 1; shift++)
		age -= age / 2;
	return shift < RFS_HOT_SHIFT ? ~0ULL : writes / age;
}

/* So many bars of the traffic, as a power of 2, lie between a hotness and twice that. */
#define BARS_SHIFT	3

/*
 * Returns the bar of a hotness. Between powers of 2 the logarithm is taken for a straight line,
 * which is at most 0.09 too low (J. N. Mitchell, 1962). 0 counts as 1.
 */
static u32 rfs_bar_of(u64 hot)
{
	u32 whole = hot ? 63 - __builtin_clzll(hot) : 0;
	u64 part = hot << (63 - whole) << 1;

	return whole << BARS_SHIFT | part >> (64 - BARS_SHIFT);
}

/*
 * Returns the hottest of a bar: the last below what the next bar begins with, which is a fraction
 * where bars are closer than numbers.
 */
static u64 rfs_hottest_of(u32 bar)
{
	u32 whole = ++bar >> BARS_SHIFT;
	u64 part = (u64)bar << (64 - BARS_SHIFT);
	u64 next;

	if (bar == RFS_BARS)
		return ~0ULL;
	next = 1ULL << whole | (whole ? part >> (64 - whole) : 0);
	return next - !(part << whole);
}

static int rfs_by_hotness(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u64 rfs_mean_hotness(const u64 *hot, u32 n)
{
	unsigned __int128 sum = 0;
	u32 shift = 0, i;

	for (i = 0; i < n; i++)
		sum += hot[i];
	for (; sum >> 64; shift++)
		sum >>= 1;
	return (u64)sum / n << shift;
}

static u64 rfs_middle_hotness(u64 a, u64 b)
{
	return a / 2 + b / 2 + (a & b & 1);
}

/* Returns the index of the first that is nearer to the hotter of two groups. */
static u32 rfs_group_border(const u64 *hot, u32 n, u64 cold, u64 hotter)
{
	u64 at = rfs_middle_hotness(cold, hotter);
	u32 low = 0, high = n;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (hot[mid] <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * A group that is next to no segment takes the one that is farthest from its own group. A volume is
 * first filled, which is faster than later writes. So a group may be hotter than any block later
 * is. Without this, it would take no block for long.
 */
static bool rfs_quantize_revive(const u64 *hot, u32 n, u64 *group, u32 k)
{
	u64 farthest = 0, start = 0;
	u32 i, j, from = 0, to, idle = k;

	for (i = 0; i < k; i++, from = to) {
		to = i + 1 < k ? rfs_group_border(hot, n, group[i],
						  group[i + 1]) : n;
		if (to <= from) {
			to = from;
			idle = i;
			continue;
		}
		for (j = 0; j < 2; j++) {
			u64 at = hot[j ? to - 1 : from];
			u64 far = at > group[i] ? at - group[i] : group[i] - at;

			if (far <= farthest)
				continue;
			farthest = far;
			start = at;
		}
	}
	if (idle == k || !farthest)
		return false;
	group[idle] = start;
	rfs_sort(group, k, sizeof(*group), rfs_by_hotness);
	return true;
}

/*
 * This is like k-means on a line: sorted groups have sorted segments. A group that is next to no
 * segment stays what it was.
 */
static bool rfs_quantize_refine(const u64 *hot, u32 n, u64 *group, u32 k)
{
	bool changed = false;
	u32 i, from = 0, to;

	for (i = 0; i < k; i++, from = to) {
		u64 was = group[i];

		to = i + 1 < k ? rfs_group_border(hot, n, was,
						  group[i + 1]) : n;
		if (to <= from) {
			to = from;
			continue;
		}
		group[i] = rfs_mean_hotness(hot + from, to - from);
		changed |= group[i] != was;
	}
	return changed;
}

static void rfs_quantize_iterative(u64 *hot, u32 n, u64 *group, u32 k)
{
	u32 i, rounds;

	/* SFS takes any segments to begin with, and here they are spread. */
	if (n <= k || !group[k - 1]) {
		for (i = 0; i < k; i++)
			group[i] = hot[(u64)(2 * i + 1) * n / (2 * k)];
		if (n <= k)
			return;
	}
	rfs_sort(group, k, sizeof(*group), rfs_by_hotness);
	for (i = 0; i < k && rfs_quantize_revive(hot, n, group, k);)
		i++;
	for (rounds = 0; rounds < ROUNDS &&
	     rfs_quantize_refine(hot, n, group, k);)
		rounds++;
}

void rfs_quantize(enum rfs_quantize how, u64 *hot, u32 n, u64 *group, u32 k)
{
	u64 step;
	u32 i, from, to;

	if (!n)
		return;
	rfs_sort(hot, n, sizeof(*hot), rfs_by_hotness);
	switch (how) {
	case RFS_Q_EQUI_WIDTH:
		for (i = 0; i < k; i++) {
			from = (u64)i * n / k;
			to = max_t(u32, (u64)(i + 1) * n / k, from + 1);
			group[i] = rfs_mean_hotness(hot + from, to - from);
		}
		break;
	case RFS_Q_EQUI_HEIGHT:
		step = (hot[n - 1] - hot[0]) / (2 * k);
		for (i = 0; i < k; i++)
			group[i] = hot[0] + (2 * i + 1) * step;
		break;
	default:
		rfs_quantize_iterative(hot, n, group, k);
	}
}

void rfs_traffic_add(struct rfs_traffic *t, u64 hot)
{
	t->bar[rfs_bar_of(hot)]++;
	t->all++;
}

void rfs_balance(struct rfs_traffic *t, u32 window, u64 *group, u32 k)
{
	u32 bar, i = 0;
	u64 below = 0;

	if (t->all < RFS_BARS)
		return;
	for (bar = 0; bar < RFS_BARS; bar++) {
		below += t->bar[bar];
		while (i < k && below * k >= (u64)t->all * (i + 1))
			group[i++] = rfs_hottest_of(bar);
	}
	if (t->all <= window)
		return;
	for (bar = 0, t->all = 0; bar < RFS_BARS; bar++) {
		t->bar[bar] /= 2;
		t->all += t->bar[bar];
	}
}

u32 rfs_group_of(enum rfs_quantize how, const u64 *group, u32 k, u64 hot)
{
	u32 i;

	for (i = 0; i + 1 < k; i++)
		if (hot <= (how == RFS_Q_BALANCED ? group[i] :
			    rfs_middle_hotness(group[i], group[i + 1])))
			break;
	return i;
}

/*
 * Compares free space by cost, 2U for reading and writing what is live, and by hotness, or times
 * age (SFS 3.6): (cap - live) age / (2 live) and the like, as products across the comparison.
 */
bool rfs_better_victim(enum rfs_gc how, const struct rfs_segment *a,
		       const struct rfs_segment *b)
{
	unsigned __int128 gain_a = (u64)(a->cap - a->live) * b->live;
	unsigned __int128 gain_b = (u64)(b->cap - b->live) * a->live;

	switch (how) {
	case RFS_GC_COST_HOTNESS:
		return gain_a * max(b->hot, 1ULL) > gain_b * max(a->hot, 1ULL);
	case RFS_GC_COST_BENEFIT:
		return gain_a * max(a->age, 1ULL) > gain_b * max(b->age, 1ULL);
	default:
		return (u64)a->live * b->cap < (u64)b->live * a->cap;
	}
}
