// SPDX-License-Identifier: GPL-2.0-or-later
/* The decisions of SFS, by themselves. */
#include "check.h"
#include "policy/policy.h"

TEST(hotness)
{
	CHECK_EQ(rfs_hotness(0, 5), 0);
	CHECK_EQ(rfs_hotness(3, 0), 3ULL << RFS_HOT_SHIFT);	/* as age 1 */
	CHECK_EQ(rfs_hotness(10, 5), 2ULL << RFS_HOT_SHIFT);
	CHECK_EQ(rfs_hotness(1, 1ULL << RFS_HOT_SHIFT), 1);
	/* sums that do not fit when shifted: the same to 1 in 2^18 */
	CHECK((rfs_hotness(9ULL << 30, 9ULL << 32) >> 26) ==
	      (1ULL << (RFS_HOT_SHIFT - 28)));
	CHECK_EQ(rfs_hotness(~0ULL, 1), ~0ULL);
	CHECK(rfs_hotness(~0ULL, 2) >= rfs_hotness(~0ULL, 3));
}

TEST(group_is_the_nearest)
{
	static const u64 group[] = { 10, 20, 100, 1000 };

	CHECK_EQ(rfs_group_of(RFS_Q_ITERATIVE, group, 4, 0), 0);
	CHECK_EQ(rfs_group_of(RFS_Q_ITERATIVE, group, 4, 15), 0);	/* the colder of two */
	CHECK_EQ(rfs_group_of(RFS_Q_ITERATIVE, group, 4, 16), 1);
	CHECK_EQ(rfs_group_of(RFS_Q_ITERATIVE, group, 4, 60), 1);
	CHECK_EQ(rfs_group_of(RFS_Q_ITERATIVE, group, 4, 61), 2);
	CHECK_EQ(rfs_group_of(RFS_Q_ITERATIVE, group, 4, ~0ULL), 3);
	CHECK_EQ(rfs_group_of(RFS_Q_ITERATIVE, group, 1, ~0ULL), 0);
}

TEST(quantize_iterative)
{
	u64 hot[] = { 1000, 1, 11, 2, 1002, 10, 3, 100, 12, 1001 };
	u64 group[4] = { 0 };

	/* begun from the 1st, 3rd, 6th and 8th of the sorted ones */
	rfs_quantize(RFS_Q_ITERATIVE, hot, 10, group, 4);
	CHECK_EQ(group[0], 2);
	CHECK_EQ(group[1], 11);
	CHECK_EQ(group[2], 100);
	CHECK_EQ(group[3], 1001);
}

TEST(quantize_iterative_three_rounds)
{
	u64 hot[64], group[2] = { 3, 6 }, last[2];
	u32 i, more;

	/* far from where they belong: three rounds do not suffice */
	for (i = 0; i < 64; i++)
		hot[i] = 3ULL << i % 60;
	rfs_quantize(RFS_Q_ITERATIVE, hot, 64, group, 2);
	memcpy(last, group, sizeof(last));
	rfs_quantize(RFS_Q_ITERATIVE, hot, 64, group, 2);
	CHECK(memcmp(last, group, sizeof(last)));
	/* what is kept makes it converge (SFS 3.4) */
	for (more = 0; more < 40 && memcmp(last, group, sizeof(last)); more++) {
		memcpy(last, group, sizeof(last));
		rfs_quantize(RFS_Q_ITERATIVE, hot, 64, group, 2);
	}
	CHECK(more < 40);
}

/* Groups are as hot as segments were once: each takes some all the same. */
TEST(quantize_what_has_cooled_down)
{
	u64 hot[] = { 1, 2, 3, 100, 101, 102, 1000, 1001, 5000 };
	u64 group[4] = { 2, 40000, 500000, 6000000 };

	rfs_quantize(RFS_Q_ITERATIVE, hot, 9, group, 4);
	CHECK_EQ(group[0], 2);
	CHECK_EQ(group[1], 101);
	CHECK_EQ(group[2], 1000);
	CHECK_EQ(group[3], 5000);
}

/* Where all are alike nothing is to be had. */
TEST(quantize_all_alike)
{
	u64 hot[] = { 9, 9, 9, 9, 9, 9 }, group[4] = { 9, 70, 80, 90 };

	rfs_quantize(RFS_Q_ITERATIVE, hot, 6, group, 4);
	CHECK_EQ(group[0], 9);
	CHECK_EQ(group[1], 70);
	CHECK_EQ(group[3], 90);
}

TEST(quantize_few_segments)
{
	u64 hot[] = { 7, 5 }, group[4] = { 0 };

	rfs_quantize(RFS_Q_ITERATIVE, hot, 0, group, 4);
	CHECK_EQ(group[3], 0);
	rfs_quantize(RFS_Q_ITERATIVE, hot, 2, group, 4);
	CHECK_EQ(group[0], 5);
	CHECK_EQ(group[1], 5);
	CHECK_EQ(group[2], 7);
	CHECK_EQ(group[3], 7);
}

TEST(quantize_mean_of_large_numbers)
{
	u64 hot[] = { ~0ULL - 3, ~0ULL - 1, ~0ULL - 3, ~0ULL - 1 };
	u64 group[1] = { 0 };

	rfs_quantize(RFS_Q_EQUI_WIDTH, hot, 4, group, 1);
	CHECK(group[0] >= ~0ULL - 3);
}

/* SFS's names: width is the number of segments, height the hotness. */
TEST(quantize_equi)
{
	u64 hot[] = { 0, 1, 2, 3, 4, 5, 6, 800 };
	u64 group[4] = { 0 };

	rfs_quantize(RFS_Q_EQUI_WIDTH, hot, 8, group, 4);
	CHECK_EQ(group[0], 0);
	CHECK_EQ(group[1], 2);
	CHECK_EQ(group[2], 4);
	CHECK_EQ(group[3], 403);
	rfs_quantize(RFS_Q_EQUI_HEIGHT, hot, 8, group, 4);
	CHECK_EQ(group[0], 100);
	CHECK_EQ(group[1], 300);
	CHECK_EQ(group[2], 500);
	CHECK_EQ(group[3], 700);
}

/* Of four groups each would have had a quarter of what came. */
TEST(quantize_balanced)
{
	struct rfs_traffic t = { 0 };
	u64 group[4] = { 0 }, hot;
	u32 i, n[4] = { 0 };

	for (i = 0; i < RFS_BARS - 1; i++)
		rfs_traffic_add(&t, i);
	rfs_balance(&t, 1 << 20, group, 4);
	CHECK_EQ(group[3], 0);		/* too little to tell from */
	memset(&t, 0, sizeof(t));
	for (i = 0; i < 4000; i++)
		rfs_traffic_add(&t, 1ULL << i % 60);
	rfs_balance(&t, 1 << 20, group, 4);
	for (i = 0; i < 4000; i++) {
		hot = 1ULL << i % 60;
		n[rfs_group_of(RFS_Q_BALANCED, group, 4, hot)]++;
	}
	for (i = 0; i < 4; i++)
		CHECK(n[i] > 900 && n[i] < 1100);
	CHECK_EQ(rfs_group_of(RFS_Q_BALANCED, group, 4, 0), 0);
	CHECK_EQ(rfs_group_of(RFS_Q_BALANCED, group, 4, ~0ULL), 3);
	CHECK_EQ(rfs_group_of(RFS_Q_BALANCED, group, 4, group[1]), 1);
	CHECK_EQ(rfs_group_of(RFS_Q_BALANCED, group, 4, group[1] + 1), 2);
}

/* Each bar ends where the next begins, at most 13% above where it began. */
TEST(quantize_balanced_bars)
{
	u64 group[1] = { 0 }, hot, last;
	u32 i;

	for (hot = 1; hot < 1ULL << 62; hot += hot / 3 + 1) {
		struct rfs_traffic t = { 0 };

		for (i = 0; i < RFS_BARS; i++)
			rfs_traffic_add(&t, hot);
		rfs_balance(&t, 1 << 20, group, 1);
		CHECK(group[0] >= hot && group[0] - hot <= hot / 8);
		memset(&t, 0, sizeof(t));
		for (i = 0; i < RFS_BARS; i++)
			rfs_traffic_add(&t, group[0] + 1);
		last = group[0];
		rfs_balance(&t, 1 << 20, group, 1);
		CHECK(group[0] > last);
	}
}

/* After some windows what was before it is as good as forgotten. */
TEST(quantize_balanced_follows)
{
	struct rfs_traffic t = { 0 };
	u64 group[2] = { 0 };
	u32 i;

	for (i = 0; i < 10000; i++)
		rfs_traffic_add(&t, 1ULL << (20 + i % 8));
	rfs_balance(&t, 1000, group, 2);
	CHECK(group[0] >= 1ULL << 23 && group[0] < 1ULL << 24);
	for (i = 0; i < 10000; i++) {
		rfs_traffic_add(&t, 1ULL << (10 + i % 8));
		if (i % 500 == 0)
			rfs_balance(&t, 1000, group, 2);
	}
	CHECK(group[0] >= 1ULL << 13 && group[0] < 1ULL << 14);
	CHECK(t.all < 2000);
}

TEST(victims)
{
	/* half live and hot, nearly full and cold */
	struct rfs_segment hot = { .live = 50, .cap = 100, .hot = 1000,
				   .age = 10 };
	struct rfs_segment cold = { .live = 90, .cap = 100, .hot = 10,
				    .age = 10000 };
	struct rfs_segment small = { .live = 30, .cap = 50, .hot = 1000,
				     .age = 10 };

	CHECK(rfs_better_victim(RFS_GC_GREEDY, &hot, &cold));
	CHECK(!rfs_better_victim(RFS_GC_GREEDY, &cold, &hot));
	CHECK(rfs_better_victim(RFS_GC_GREEDY, &hot, &small));
	/* 10/90 by 10 is more than 50/50 by 1000; 10/90 10000 than 50/50 10 */
	CHECK(rfs_better_victim(RFS_GC_COST_HOTNESS, &cold, &hot));
	CHECK(!rfs_better_victim(RFS_GC_COST_HOTNESS, &hot, &cold));
	CHECK(rfs_better_victim(RFS_GC_COST_BENEFIT, &cold, &hot));
	/* as cold, the emptier one; nothing is better than itself */
	cold.hot = hot.hot;
	cold.age = hot.age;
	CHECK(rfs_better_victim(RFS_GC_COST_HOTNESS, &hot, &cold));
	CHECK(rfs_better_victim(RFS_GC_COST_BENEFIT, &hot, &cold));
	CHECK(!rfs_better_victim(RFS_GC_COST_HOTNESS, &hot, &hot));
	/* a hotness of 0 is the lowest there is, no division by it */
	cold.hot = 0;
	CHECK(rfs_better_victim(RFS_GC_COST_HOTNESS, &cold, &hot));
	/* without an age, what is free counts all the same */
	cold.age = 0;
	hot.age = 0;
	CHECK(rfs_better_victim(RFS_GC_COST_BENEFIT, &hot, &cold));
}

/* 2^19 blocks of the highest hotness there is: no product overflows. */
TEST(victims_of_large_numbers)
{
	struct rfs_segment a = { .live = 1, .cap = 1U << 19, .hot = ~0ULL,
				 .age = ~0ULL };
	struct rfs_segment b = { .live = 2, .cap = 1U << 19, .hot = ~0ULL,
				 .age = ~0ULL };

	CHECK(rfs_better_victim(RFS_GC_COST_HOTNESS, &a, &b));
	CHECK(!rfs_better_victim(RFS_GC_COST_HOTNESS, &b, &a));
	CHECK(rfs_better_victim(RFS_GC_COST_BENEFIT, &a, &b));
}
