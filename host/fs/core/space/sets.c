// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These sets say which zones are free, dead, to be reset and so on, so that nobody has to look at
 * each zone for that. The state of a zone alone says in which sets it is. Who changes the state
 * calls rfs_zone_changed().
 */
#include "space/space.h"
#include "space/rank.h"

int rfs_sets_alloc(struct rfs_fs *fs)
{
	u32 set, way;
	int ret = rfs_bits_alloc(&fs->ztab_due, fs->ztab_blocks);

	for (set = 0; !ret && set < RFS_SETS; set++)
		ret = rfs_bits_alloc(&fs->set[set], fs->geo.zones);
	for (way = 0; !ret && way < fs->ways; way++)
		ret = rfs_bits_alloc(&fs->free_of[way],
				     fs->geo.zones / fs->ways + 1);
	return ret ? ret : rfs_rank_alloc(fs);
}

void rfs_sets_free(struct rfs_fs *fs)
{
	u32 i;

	for (i = 0; i < RFS_SETS; i++)
		rfs_bits_free(&fs->set[i]);
	for (i = 0; i < RFS_WAYS_MAX; i++)
		rfs_bits_free(&fs->free_of[i]);
	rfs_bits_free(&fs->ztab_due);
	rfs_free(fs->rank);
}

/* Returns a bit for each set that a zone is in. */
static u8 rfs_sets_of(const struct rfs_fs *fs, u32 nr)
{
	const struct rfs_zone_info *z = &fs->zone[nr];
	bool used = z->state == RFS_Z_USED, ok = z->cond == RFS_DEV_OK;
	bool gained = !z->live || z->cleaned || z->cleaning;
	u8 in = (z->window || z->frozen || z->cleaned || z->kept) <<
		RFS_SET_SINCE;

	if (nr < RFS_CP_ZONES)
		return in;
	in |= (fs->active_max && ok && rfs_is_active(z)) << RFS_SET_ACTIVE;
	in |= z->cleaning << RFS_SET_CLEANING;
	if (z->state == RFS_Z_FREE)
		return in | 1 << RFS_SET_FREE |
		       (z->wp && ok && !z->resetting && !z->kept) <<
		       RFS_SET_RESET;
	in |= (used && !z->live && !z->cleaning) << RFS_SET_DEAD;
	in |= (used && ok && gained) << RFS_SET_GAINED;
	if (z->stream < RFS_S_DATA)
		in |= (used || z->state == RFS_Z_OPEN) << RFS_SET_META;
	return in;
}

#define ROOM	(1 << RFS_SET_FREE | 1 << RFS_SET_GAINED)

void rfs_zone_changed(struct rfs_fs *fs, u32 nr)
{
	struct rfs_zone_info *z = &fs->zone[nr];
	u8 in = rfs_sets_of(fs, nr), differs = in ^ z->in;
	u32 set;

	if (z->noted != RFS_NOTED) {
		z->noted = RFS_NOTED;
		rfs_rank_stale(fs, nr);
		rfs_bits_put(&fs->ztab_due, nr / RFS_ZTAB_ENTRIES, true);
	}
	if (!differs)
		return;
	for (set = 0; set < RFS_SETS; set++)
		if (differs >> set & 1)
			rfs_bits_put(&fs->set[set], nr, in >> set & 1);
	if (differs & 1 << RFS_SET_FREE)
		rfs_bits_put(&fs->free_of[nr % fs->ways], nr / fs->ways,
			     in & 1 << RFS_SET_FREE);
	fs->way_room[nr % fs->ways] += !!(in & ROOM) - !!(z->in & ROOM);
	z->in = in;
}

void rfs_all_zones_changed(struct rfs_fs *fs)
{
	u32 nr;

	for (nr = 0; nr < fs->geo.zones; nr++)
		rfs_zone_changed(fs, nr);
}

u32 rfs_next_free(const struct rfs_fs *fs, u32 from, u32 way, u32 ways)
{
	u32 best = RFS_BITS_NONE, i, nr;

	for (i = way % ways; i < fs->ways; i += ways) {
		u32 first = from > i ? (from - i - 1) / fs->ways + 1 : 0;

		nr = rfs_bits_next(&fs->free_of[i], first);
		if (nr != RFS_BITS_NONE)
			best = min(best, nr * fs->ways + i);
	}
	return best;
}

void rfs_zone_entry(const struct rfs_fs *fs, u32 nr, struct rfs_zone *out)
{
	const struct rfs_zone_info *z = &fs->zone[nr];

	memset(out, 0, sizeof(*out));
	out->state = z->state;
	out->stream = z->stream;
	/* A free zone may not have been reset yet, but nothing in it counts. */
	out->wp = cpu_to_le32(z->state == RFS_Z_FREE ? 0 : z->wp);
	out->live = cpu_to_le32(z->live - z->maps);
	out->summary = cpu_to_le32(z->summary);
	out->sum_time = cpu_to_le64(z->sum_time);
	out->sum_wcount = cpu_to_le64(z->sum_wcount);
}

#ifndef __KERNEL__
const char *rfs_sets_wrong(const struct rfs_fs *fs)
{
	u32 nr, set, count[RFS_SETS] = { 0 }, room[RFS_WAYS_MAX] = { 0 };
	struct rfs_zone entry;

	for (nr = 0; nr < fs->geo.zones; nr++) {
		const struct rfs_zone_info *z = &fs->zone[nr];
		bool free = z->state == RFS_Z_FREE;
		u8 in = rfs_sets_of(fs, nr);

		for (set = 0; set < RFS_SETS; set++) {
			count[set] += in >> set & 1;
			if (rfs_bits_has(&fs->set[set], nr) != (in >> set & 1))
				return "a zone is in a set that it is not of";
		}
		if (rfs_bits_has(&fs->free_of[nr % fs->ways], nr / fs->ways) !=
		    free)
			return "a zone is free, and not on its way";
		room[nr % fs->ways] += !!(in & ROOM);
		rfs_zone_entry(fs, nr, &entry);
		if (memcmp(&entry, &fs->ztab[nr], sizeof(entry)) &&
		    !rfs_bits_has(&fs->ztab_due, nr / RFS_ZTAB_ENTRIES))
			return "a zone has changed, and its table is not due";
	}
	for (set = 0; set < RFS_SETS; set++)
		if (count[set] != fs->set[set].count)
			return "the zones of a set are miscounted";
	if (memcmp(room, fs->way_room, sizeof(room)))
		return "the zones of a way are miscounted";
	return NULL;
}
#endif
