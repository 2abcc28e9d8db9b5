// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/section.h"

static u32 rfs_log2(u32 n)
{
	return 31 - __builtin_clz(n);
}

static bool rfs_is_power(u32 n)
{
	return n && !(n & (n - 1));
}

bool rfs_partition_valid(const struct rfs_partition *p)
{
	return rfs_is_power(p->size) && p->size >= 4 &&
	       p->size <= 1U << RFS_SECTION_SIZE_BITS &&
	       p->rho >= 1 && p->rho <= 3 &&
	       (p->rho < 3 || (rfs_is_power(p->delta) && p->delta >= 2));
}

u32 rfs_partition_levels(const struct rfs_partition *p)
{
	if (p->rho < 3)
		return p->rho;
	return p->size < p->delta ? 1 : rfs_log2(p->size / p->delta) + 1;
}

/* Returns where a segment begins within the segment that was split. */
static u32 rfs_segment_start(int index)
{
	return index < 0 ? 0 : 1U << index;
}

static bool rfs_segment_is_split(const struct rfs_partition *p, u32 level,
				 int index)
{
	if (index < 0 || p->rho == 1)
		return false;
	if (p->rho == 2)
		return !level && index == (int)rfs_log2(p->size) - 1;
	return 1U << index >= p->delta;
}

/*
 * Goes down to the segment that has the position, then on to the next one beside it. If it is the
 * last part of a segment that was split, the next one is beside that segment.
 */
bool rfs_section_map(const struct rfs_partition *p, u32 pos,
		     struct rfs_section_segment *next)
{
	/*
	 * For each level these say where the segment that was split begins, which part of it is the
	 * last, and which part is on the way.
	 */
	u32 base[RFS_SECTION_SIZE_BITS];
	int last[RFS_SECTION_SIZE_BITS], way[RFS_SECTION_SIZE_BITS];
	u32 level = 0;

	base[0] = 0;
	last[0] = rfs_log2(p->size) - 1;
	for (;;) {
		u32 off = pos - base[level];

		way[level] = off ? (int)rfs_log2(off) : RFS_SEGMENT_HEAD;
		if (!rfs_segment_is_split(p, level, way[level]))
			break;
		base[level + 1] = base[level] + rfs_segment_start(way[level]);
		last[level + 1] = way[level] - 1;
		level++;
	}
	while (way[level] == last[level])
		if (!level--)
			return false;
	next->level = level;
	next->index = way[level] + 1;
	next->start = base[level] + rfs_segment_start(next->index);
	return true;
}

void rfs_section_init(struct rfs_section *s, const struct rfs_partition *p,
		      u32 threshold, u32 unit, struct rfs_extent *extents, u32 n)
{
	u32 i;

	memset(s, 0, sizeof(*s));
	memset(s->list, 0xff, sizeof(s->list));
	s->partition = *p;
	s->threshold = threshold;
	s->unit = unit;
	s->extents = extents;
	s->spare = n ? 0 : RFS_NO_EXTENT;
	for (i = 0; i < n; i++)
		extents[i].after = i + 1 < n ? i + 1 : RFS_NO_EXTENT;
}

static u32 rfs_extent_room(const struct rfs_section *s, u32 extent)
{
	return s->partition.size - s->extents[extent].start;
}

/* Puts the extent behind those of its list that have as much room, or more. */
static void rfs_section_link(struct rfs_section *s, u32 extent,
			     const struct rfs_section_segment *at)
{
	struct rfs_extent *e = &s->extents[extent];
	u32 *link;

	e->level = at->level;
	e->entry = at->index + 1;
	e->start = at->start;
	e->before = RFS_NO_EXTENT;
	link = &s->list[e->level][e->entry];
	while (*link != RFS_NO_EXTENT && s->extents[*link].start <= e->start) {
		e->before = *link;
		link = &s->extents[*link].after;
	}
	e->after = *link;
	*link = extent;
	if (e->after != RFS_NO_EXTENT)
		s->extents[e->after].before = extent;
}

static void rfs_section_unlink(struct rfs_section *s, u32 extent)
{
	struct rfs_extent *e = &s->extents[extent];

	if (e->before != RFS_NO_EXTENT)
		s->extents[e->before].after = e->after;
	else
		s->list[e->level][e->entry] = e->after;
	if (e->after != RFS_NO_EXTENT)
		s->extents[e->after].before = e->before;
}

u32 rfs_section_add(struct rfs_section *s, u32 address)
{
	static const struct rfs_section_segment whole = {
		.level = 0, .index = RFS_SEGMENT_HEAD, .start = 0,
	};
	u32 extent = s->spare;

	if (extent == RFS_NO_EXTENT)
		return extent;
	s->spare = s->extents[extent].after;
	s->extents[extent].address = address;
	s->extents[extent].since = 0;
	rfs_section_link(s, extent, &whole);
	return extent;
}

void rfs_section_remove(struct rfs_section *s, u32 extent)
{
	rfs_section_unlink(s, extent);
	s->extents[extent].after = s->spare;
	s->spare = extent;
}

/* Returns, of the extents with files and so much room, the one that waits longest. */
static u32 rfs_section_longest(const struct rfs_section *s, u32 units)
{
	u32 levels = rfs_partition_levels(&s->partition), found = RFS_NO_EXTENT;
	u32 level, entry, extent;

	for (level = 0; level < levels; level++) {
		/* An extent that begins with the head of level 0 is empty. */
		for (entry = !level; entry <= RFS_SECTION_SIZE_BITS; entry++) {
			extent = s->list[level][entry];
			while (extent != RFS_NO_EXTENT &&
			       rfs_extent_room(s, extent) >= units) {
				if (found == RFS_NO_EXTENT ||
				    s->extents[extent].since <
				    s->extents[found].since)
					found = extent;
				extent = s->extents[extent].after;
			}
		}
	}
	return found;
}

u32 rfs_section_oldest(const struct rfs_section *s)
{
	return rfs_section_longest(s, 0);
}

bool rfs_section_place(struct rfs_section *s, u32 units, bool empty,
		       struct rfs_placed *placed)
{
	struct rfs_section_segment next;
	u32 extent = RFS_NO_EXTENT;
	struct rfs_extent *e;

	units = min(units, s->partition.size);
	if (!empty)
		extent = rfs_section_longest(s, units);
	if (extent == RFS_NO_EXTENT)
		extent = s->list[0][0];
	if (extent == RFS_NO_EXTENT)
		return false;
	e = &s->extents[extent];
	placed->extent = extent;
	placed->address = e->address;
	placed->start = e->start;
	placed->units = units;
	placed->end = s->partition.size;
	placed->reused = e->since;
	s->clock++;
	if (!e->since)
		e->since = s->clock;
	if (rfs_section_map(&s->partition, e->start + units - 1, &next))
		placed->end = next.start;
	placed->full = s->partition.size - placed->end < s->threshold;
	if (placed->full) {
		rfs_section_remove(s, extent);
	} else {
		rfs_section_unlink(s, extent);
		rfs_section_link(s, extent, &next);
	}
	return true;
}

bool rfs_section_collect(struct rfs_section *s, u32 units)
{
	s->collected += units;
	if (s->collected < s->unit)
		return false;
	s->collected = 0;
	return true;
}
