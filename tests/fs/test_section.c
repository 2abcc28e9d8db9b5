// SPDX-License-Identifier: GPL-2.0-or-later
/* HFM's data sections, by themselves. */
#include "check.h"
#include "policy/section.h"

#define EXTENTS	8

static const struct rfs_partition small = { .size = 8, .rho = 1 };
static const struct rfs_partition mid = { .size = 64, .rho = 2 };
static const struct rfs_partition large = { .size = 512, .rho = 3, .delta = 32 };

static void check_map(const struct rfs_partition *p, u32 pos, u32 level,
		      int index, u32 start)
{
	struct rfs_section_segment next;

	CHECK(rfs_section_map(p, pos, &next));
	CHECK_EQ(next.level, level);
	CHECK(next.index == index);
	CHECK_EQ(next.start, start);
}

/* The examples of 3.2.2 */
TEST(section_map_of_the_paper)
{
	check_map(&small, 3, 0, 2, 4);
	check_map(&mid, 35, 1, 2, 36);
	check_map(&large, 161, 2, 1, 162);
}

/* The partitions of figure 2, as map() leads from one segment to the next */
static void check_starts(const struct rfs_partition *p, const u32 *start, u32 n)
{
	struct rfs_section_segment next;
	u32 i;

	CHECK_EQ(start[0], 0);
	for (i = 1; i < n; i++) {
		CHECK(rfs_section_map(p, start[i - 1], &next));
		CHECK_EQ(next.start, start[i]);
	}
}

TEST(section_partitions_of_the_paper)
{
	static const u32 one[] = { 0, 1, 2, 4 };
	static const u32 two[] = { 0, 1, 2, 4, 8, 16, 32, 33, 34, 36, 40, 48 };
	static const u32 three[] = { 256, 257, 258, 260, 264, 272, 288, 289, 290,
				     292, 296, 304, 320 };
	static const u32 end[] = { 320, 321, 322, 324, 328, 336, 352, 353, 354,
				   356, 360, 368, 384 };
	struct rfs_section_segment next;
	u32 i;

	check_starts(&small, one, 4);
	check_starts(&mid, two, 12);
	for (i = 0; i + 1 < sizeof(three) / sizeof(*three); i++) {
		CHECK(rfs_section_map(&large, three[i], &next));
		CHECK_EQ(next.start, three[i + 1]);
		CHECK(rfs_section_map(&large, end[i], &next));
		CHECK_EQ(next.start, end[i + 1]);
	}
	CHECK_EQ(rfs_partition_levels(&small), 1);
	CHECK_EQ(rfs_partition_levels(&mid), 2);
	CHECK_EQ(rfs_partition_levels(&large), 5);	/* HFM 4.1 */
}

/* What algorithm 2 leaves out: a head, and the last of what was split */
TEST(section_map_beyond_the_paper)
{
	struct rfs_section_segment next;

	check_map(&small, 0, 0, 0, 1);
	check_map(&mid, 0, 0, 0, 1);
	check_map(&mid, 32, 1, 0, 33);
	check_map(&large, 0, 0, 0, 1);
	check_map(&large, 256, 1, 0, 257);
	check_map(&large, 160, 2, 0, 161);
	check_map(&mid, 31, 0, 5, 32);
	check_map(&large, 31, 0, 5, 32);
	check_map(&large, 63, 0, 6, 64);
	check_map(&large, 255, 0, 8, 256);
	check_map(&large, 319, 1, 6, 320);
	check_map(&large, 191, 1, 6, 192);
	CHECK(!rfs_section_map(&small, 4, &next));
	CHECK(!rfs_section_map(&small, 7, &next));
	CHECK(!rfs_section_map(&mid, 48, &next));
	CHECK(!rfs_section_map(&mid, 63, &next));
	CHECK(!rfs_section_map(&large, 511, &next));
	CHECK(!rfs_section_map(&large, 496, &next));
	check_map(&large, 495, 4, 4, 496);
}

TEST(section_partitions_that_are_none)
{
	static const struct rfs_partition bad[] = {
		{ .size = 0, .rho = 1 }, { .size = 2, .rho = 1 },
		{ .size = 12, .rho = 1 }, { .size = 1 << 17, .rho = 1 },
		{ .size = 8, .rho = 0 }, { .size = 8, .rho = 4 },
		{ .size = 8, .rho = 3 }, { .size = 8, .rho = 3, .delta = 1 },
		{ .size = 64, .rho = 3, .delta = 24 },
	};
	static const struct rfs_partition most = { 1 << 16, 3, 2 };
	struct rfs_section_segment next = { 0 };
	u32 i, n;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(!rfs_partition_valid(&bad[i]));
	CHECK(rfs_partition_valid(&small));
	CHECK(rfs_partition_valid(&mid));
	CHECK(rfs_partition_valid(&large));
	CHECK(rfs_partition_valid(&most));
	/* every unit is a segment then: as deep as the table is */
	CHECK_EQ(rfs_partition_levels(&most), 16);
	for (n = 1; rfs_section_map(&most, next.start, &next); n++)
		CHECK_EQ(next.start, n);
	CHECK_EQ(n, 1 << 16);
}

static struct rfs_extent extents[EXTENTS];

static void begin(struct rfs_section *s, const struct rfs_partition *p, u32 theta,
		  u32 n)
{
	u32 i;

	rfs_section_init(s, p, theta, 0, extents, EXTENTS);
	for (i = 0; i < n; i++)
		CHECK(rfs_section_add(s, 100 + i) != RFS_NO_EXTENT);
}

static struct rfs_placed place(struct rfs_section *s, u32 units, bool empty)
{
	struct rfs_placed placed;

	CHECK(rfs_section_place(s, units, empty, &placed));
	return placed;
}

/* A file of 162 units goes to ent_1 of mt_2 (HFM 3.3). */
TEST(section_extent_is_in_its_list)
{
	struct rfs_section s;
	struct rfs_placed placed;

	begin(&s, &large, 8, 2);
	placed = place(&s, 162, false);
	CHECK_EQ(placed.address, 100);
	CHECK_EQ(placed.start, 0);
	CHECK_EQ(placed.end, 162);
	CHECK(!placed.reused);
	CHECK_EQ(s.list[2][1 + 1], placed.extent);
	placed = place(&s, 350, false);
	CHECK_EQ(placed.address, 100);
	CHECK_EQ(placed.start, 162);
	CHECK_EQ(placed.end, 512);
	CHECK(placed.reused);
	CHECK(placed.full);
	CHECK_EQ(s.list[2][1 + 1], RFS_NO_EXTENT);
}

/* Segments of one name are in one list: that with most room is the first. */
TEST(section_lists_have_most_room_first)
{
	struct rfs_section s;
	u32 a, b, c;

	begin(&s, &large, 8, 3);
	a = place(&s, 452, true).extent;	/* 448 + 4: level 3 */
	b = place(&s, 130, true).extent;	/* 128 + 2: level 1 */
	c = place(&s, 258, true).extent;	/* 256 + 2: level 1 as well */
	CHECK_EQ(s.list[1][1 + 1], b);
	CHECK_EQ(extents[b].after, c);
	CHECK_EQ(extents[c].after, RFS_NO_EXTENT);
	CHECK_EQ(s.list[3][2 + 1], a);
}

TEST(section_longest_waiting_is_reused)
{
	struct rfs_section s;
	u32 a, b;

	begin(&s, &mid, 8, 4);
	a = place(&s, 40, true).address;
	b = place(&s, 10, true).address;
	CHECK(a != b);
	/* the one that came first has room for 24 units only */
	CHECK_EQ(place(&s, 25, false).address, b);
	CHECK_EQ(place(&s, 4, false).address, a);
	/* it has come to another list since, and has waited all the same */
	CHECK_EQ(place(&s, 1, false).address, a);
	/* the other has 16 */
	CHECK_EQ(place(&s, 17, false).address, b + 1);
	/* and the first one is full */
	CHECK_EQ(extents[rfs_section_oldest(&s)].address, b);
}

/* A long file takes empty extents, for its last part too; that has room then. */
TEST(section_long_file)
{
	struct rfs_section s;
	struct rfs_placed placed;

	begin(&s, &small, 1, 4);
	CHECK_EQ(place(&s, 2, false).address, 100);
	placed = place(&s, 20, true);
	CHECK_EQ(placed.units, 8);
	CHECK(placed.full);
	CHECK_EQ(placed.address, 101);
	CHECK_EQ(place(&s, 12, true).address, 102);
	placed = place(&s, 4, true);
	CHECK_EQ(placed.address, 103);
	CHECK(!placed.full);
	CHECK(!rfs_section_place(&s, 1, true, &placed));
	CHECK_EQ(place(&s, 4, false).address, 100);
	CHECK_EQ(place(&s, 4, false).address, 103);
	CHECK(!rfs_section_place(&s, 1, false, &placed));
}

TEST(section_threshold)
{
	struct rfs_section s;

	begin(&s, &mid, 16, 2);
	CHECK(!place(&s, 34, true).full);	/* 28 are left from 36 on */
	begin(&s, &mid, 16, 2);
	CHECK(!place(&s, 48, true).full);	/* 16, as many as must be */
	begin(&s, &mid, 17, 2);
	CHECK(place(&s, 48, true).full);
}

/* Descriptors come back, in whatever order extents leave. */
TEST(section_descriptors)
{
	struct rfs_section s;
	struct rfs_placed placed;
	u32 i, round;

	begin(&s, &small, 1, EXTENTS);
	CHECK_EQ(rfs_section_add(&s, 1), RFS_NO_EXTENT);
	CHECK_EQ(rfs_section_oldest(&s), RFS_NO_EXTENT);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < EXTENTS; i++)
			place(&s, 1, true);
		CHECK(!rfs_section_place(&s, 1, true, &placed));
		rfs_section_remove(&s, (3 + round) % EXTENTS);
		rfs_section_remove(&s, round);
		for (i = 0; i < EXTENTS - 2; i++)
			rfs_section_remove(&s, rfs_section_oldest(&s));
		CHECK_EQ(rfs_section_oldest(&s), RFS_NO_EXTENT);
		for (i = 0; i < EXTENTS; i++)
			CHECK(rfs_section_add(&s, i) != RFS_NO_EXTENT);
		CHECK_EQ(rfs_section_add(&s, 1), RFS_NO_EXTENT);
	}
}

TEST(section_collects)
{
	struct rfs_section s;

	rfs_section_init(&s, &small, 1, 64, extents, EXTENTS);
	CHECK(!rfs_section_collect(&s, 32));
	CHECK(!rfs_section_collect(&s, 31));
	CHECK(rfs_section_collect(&s, 8));
	CHECK(!rfs_section_collect(&s, 63));
	CHECK(rfs_section_collect(&s, 1));
	/* not known, or no larger than an extent */
	rfs_section_init(&s, &small, 1, 0, extents, EXTENTS);
	CHECK(rfs_section_collect(&s, 1));
	rfs_section_init(&s, &small, 1, 8, extents, EXTENTS);
	CHECK(rfs_section_collect(&s, 8));
}
