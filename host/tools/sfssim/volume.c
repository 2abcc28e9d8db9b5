// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume.h"

#define NONE	(~0U)

static u64 age(const struct volume *v, u64 time)
{
	return v->now - time;
}

static u64 block_hotness(const struct volume *v, u32 block)
{
	switch (v->cfg.know) {
	case KNOW_RATE:
		return rfs_hotness(v->known[block], v->cfg.end);
	case KNOW_NEXT:
		return rfs_hotness(1, v->known[block] - v->now);
	default:
		return rfs_hotness(v->writes[block], age(v, v->time[block]));
	}
}

static u64 segment_hotness(const struct volume *v, const struct segment *s)
{
	switch (v->cfg.know) {
	case KNOW_RATE:
		return rfs_hotness(s->known, v->cfg.end * s->live);
	case KNOW_NEXT:
		return rfs_hotness(s->live, s->known - v->now * s->live);
	default:
		return rfs_hotness(s->writes, v->now * s->live - s->times);
	}
}

static bool closed(const struct volume *v, u32 nr)
{
	u32 i;

	for (i = 0; i < v->cfg.groups; i++)
		if (v->open[i] == nr)
			return false;
	return v->seg[nr].used;
}

/* Quantizes whenever a segment begins (SFS 3.5). */
static void quantize(struct volume *v)
{
	u32 nr, n = 0;

	if (v->cfg.groups == 1 || v->cfg.border[0])
		return;
	if (v->cfg.quantize == RFS_Q_BALANCED) {
		rfs_balance(&v->traffic, v->cfg.segments * v->cfg.blocks /
					 RFS_WINDOW, v->group, v->cfg.groups);
		return;
	}
	for (nr = 0; nr < v->cfg.segments; nr++)
		if (v->seg[nr].live && closed(v, nr))
			v->hot[n++] = segment_hotness(v, &v->seg[nr]);
	rfs_quantize(v->cfg.quantize, v->hot, n, v->group, v->cfg.groups);
}

/*
 * Takes the segment that was freed the longest time ago (SFS 3.5), as the
 * cursor goes around.
 */
static void begin_segment(struct volume *v, u32 group)
{
	quantize(v);
	while (v->seg[v->cursor].used)
		v->cursor = (v->cursor + 1) % v->cfg.segments;
	memset(&v->seg[v->cursor], 0, sizeof(*v->seg));
	v->seg[v->cursor].used = true;
	v->open[group] = v->cursor;
	v->free--;
}

static void put(struct volume *v, u32 block, u64 hot)
{
	u32 group = rfs_group_of(v->cfg.quantize, v->group, v->cfg.groups, hot);
	struct segment *s;
	u32 at;

	if (v->open[group] == NONE)
		begin_segment(v, group);
	s = &v->seg[v->open[group]];
	at = v->open[group] * v->cfg.blocks + s->fill++;
	s->live++;
	s->writes += v->writes[block];
	s->times += v->time[block];
	s->known += v->known[block];
	s->youngest = max(s->youngest, v->time[block]);
	v->owner[at] = block;
	v->at[block] = at;
	v->in_group[group]++;
	if (s->fill == v->cfg.blocks)
		v->open[group] = NONE;
}

/* Places a block in its group, and counts it as traffic of this group. */
static void place(struct volume *v, u32 block, u64 hot)
{
	rfs_traffic_add(&v->traffic, hot);
	put(v, block, hot);
}

/* Drops a block. A segment without live blocks is free at once. */
static void drop(struct volume *v, u32 block)
{
	u32 nr = v->at[block] / v->cfg.blocks;
	struct segment *s = &v->seg[nr];

	s->live--;
	s->writes -= v->writes[block];
	s->times -= v->time[block];
	s->known -= v->known[block];
	if (!s->live && closed(v, nr)) {
		s->used = false;
		v->free++;
	}
}

static u32 victim(struct volume *v)
{
	struct rfs_segment best = { 0 };
	u32 nr, chosen = NONE;

	for (nr = 0; nr < v->cfg.segments; nr++) {
		const struct segment *s = &v->seg[nr];
		struct rfs_segment now = { .live = s->live,
					   .cap = v->cfg.blocks };

		if (!s->live || s->live == v->cfg.blocks || !closed(v, nr))
			continue;
		now.hot = segment_hotness(v, s);
		now.age = age(v, s->youngest);
		if (chosen != NONE && !rfs_better_victim(v->cfg.gc, &now, &best))
			continue;
		best = now;
		chosen = nr;
	}
	return chosen;
}

/*
 * Cleans a segment. Live blocks go where a write of the same hotness would go
 * (SFS 3.2).
 */
static void clean(struct volume *v, u32 nr)
{
	u32 left = v->seg[nr].live, i;

	v->cleaned++;
	v->cleaned_live += left;
	v->copies += left;
	for (i = nr * v->cfg.blocks; left; i++) {
		u32 block = v->owner[i];

		if (v->at[block] != i)
			continue;
		drop(v, block);
		left--;
		place(v, block, block_hotness(v, block));
	}
}

static void make_room(struct volume *v)
{
	u32 low = v->cfg.reserve - v->cfg.round / 2, i, nr;

	if (v->free >= low)
		return;
	v->round_now = v->now;
	v->round_copies = v->copies;
	while (v->free < low + v->cfg.round) {
		for (i = 0; i < RFS_VICTIMS; i++) {
			nr = victim(v);
			if (nr == NONE || v->free <= v->cfg.groups) {
				v->full = true;
				return;
			}
			clean(v, nr);
		}
	}
}

void volume_write(struct volume *v, struct volume_file *file, u32 block)
{
	bool again = v->at[block] != NONE;
	u64 hot;

	make_room(v);
	v->now++;
	if (again) {
		hot = block_hotness(v, block);
		drop(v, block);
	} else {
		hot = rfs_hotness(file->writes, age(v, file->last));
	}
	v->writes[block] = min(v->writes[block] + 1, 0xffff);
	v->time[block] = v->now;
	file->writes++;
	file->last = v->now;
	if (v->cfg.know == KNOW_NEXT)
		v->known[block] = v->cfg.future[v->now - 1];
	if (v->cfg.know != KNOW_PAST)
		hot = block_hotness(v, block);
	if (again)
		place(v, block, hot);
	else
		put(v, block, hot);
}

struct volume *volume_new(const struct volume_config *cfg)
{
	size_t blocks = (size_t)cfg->segments * cfg->blocks;
	struct volume *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->cfg = *cfg;
	v->seg = calloc(cfg->segments, sizeof(*v->seg));
	v->hot = calloc(cfg->segments, sizeof(*v->hot));
	v->owner = calloc(blocks, sizeof(*v->owner));
	v->at = malloc(blocks * sizeof(*v->at));
	v->writes = calloc(blocks, sizeof(*v->writes));
	v->time = calloc(blocks, sizeof(*v->time));
	v->known = calloc(blocks, sizeof(*v->known));
	if (!v->seg || !v->hot || !v->owner || !v->at || !v->writes ||
	    !v->time || !v->known) {
		volume_free(v);
		return NULL;
	}
	memset(v->at, 0xff, blocks * sizeof(*v->at));
	memset(v->open, 0xff, sizeof(v->open));
	if (cfg->rate)
		memcpy(v->known, cfg->rate, blocks * sizeof(*v->known));
	memcpy(v->group, cfg->border, sizeof(v->group));
	v->free = cfg->segments;
	return v;
}

void volume_free(struct volume *v)
{
	free(v->seg);
	free(v->hot);
	free(v->owner);
	free(v->at);
	free(v->writes);
	free(v->time);
	free(v->known);
	free(v);
}
