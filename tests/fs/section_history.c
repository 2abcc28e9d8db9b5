// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A history of a data section from standard input, for hfm_model.py: first the
 * partition's size, rho and delta, the threshold, the flash's unit and the number
 * of descriptors; then "add ADDRESS", "place UNITS EMPTY", "oldest",
 * "remove ADDRESS", "collect UNITS" and "map POSITION". Prints a line for each, of what came of it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "policy/section.h"

#define ADDRESSES	4096

/* Of each address; RFS_NO_EXTENT: it is not in the table, and cannot be removed */
static u32 extent_at[ADDRESSES];

static void placed(struct rfs_section *s, u32 units, u32 empty)
{
	struct rfs_placed p;

	if (!rfs_section_place(s, units, empty, &p)) {
		puts("none");
		return;
	}
	printf("%u %u %u %u %d %d\n", p.address, p.start, p.units, p.end,
	       p.reused, p.full);
	if (p.full)
		extent_at[p.address] = RFS_NO_EXTENT;
}

static void mapped(const struct rfs_partition *part, u32 pos)
{
	struct rfs_section_segment next;

	if (rfs_section_map(part, pos, &next))
		printf("%u %d %u\n", next.level, next.index, next.start);
	else
		puts("none");
}

int main(void)
{
	u32 theta, unit, n, a, b = 0;
	struct rfs_partition part;
	struct rfs_extent *extents;
	struct rfs_section s;
	char word[16];

	if (scanf("%u %u %u %u %u %u", &part.size, &part.rho, &part.delta, &theta,
		  &unit, &n) != 6 || !rfs_partition_valid(&part))
		return 2;
	extents = calloc(n, sizeof(*extents));
	if (!extents)
		return 2;
	rfs_section_init(&s, &part, theta, unit, extents, n);
	while (scanf("%15s %u", word, &a) == 2) {
		if (!strcmp(word, "add")) {
			extent_at[a] = rfs_section_add(&s, a);
			puts(extent_at[a] == RFS_NO_EXTENT ? "none" : "added");
		} else if (!strcmp(word, "place") && scanf("%u", &b) == 1) {
			placed(&s, a, b);
		} else if (!strcmp(word, "oldest")) {
			a = rfs_section_oldest(&s);
			if (a == RFS_NO_EXTENT)
				puts("none");
			else
				printf("%u\n", extents[a].address);
		} else if (!strcmp(word, "remove")) {
			if (extent_at[a] != RFS_NO_EXTENT)
				rfs_section_remove(&s, extent_at[a]);
			extent_at[a] = RFS_NO_EXTENT;
			puts("removed");
		} else if (!strcmp(word, "collect")) {
			puts(rfs_section_collect(&s, a) ? "write" : "wait");
		} else if (!strcmp(word, "map")) {
			mapped(&part, a);
		} else {
			return 2;
		}
	}
	free(extents);
	return 0;
}
