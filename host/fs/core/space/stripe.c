// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These functions choose the zone to which a stream appends. Where a zone is a part of the drive,
 * such as a way (RISA 4.5), groups and metadata have a zone on each way, and an append goes to the
 * way that has least in flight. See "Stripes" of doc/design.md.
 */
#include "space/space.h"

u32 rfs_zone_fit(const struct rfs_fs *fs, const struct rfs_active_seg *seg,
		 u32 n)
{
	const struct rfs_zone_info *z = &fs->zone[seg->zone];
	u32 room = z->wp < z->cap ? z->cap - z->wp : 0;

	if (z->cond != RFS_DEV_OK || !room)
		return 0;
	if (fs->geo.append_max)	/* without OOB, the summary goes along */
		n = min(n, fs->geo.append_max - !fs->geo.oob_bytes);
	if (!fs->geo.oob_bytes)
		return min(n, min(room - 1, (u32)RFS_SUM_ENTRIES));
	if (room == 1 && !seg->sum)
		return 1;	/* in no summary: cleaning reads its OOB */
	n = min(n, room - 1);
	return min(n, (u32)RFS_SUM_ENTRIES - (seg->sum ? seg->sum->count : 0));
}

static bool rfs_seg_has_room(const struct rfs_fs *fs,
			     const struct rfs_active_seg *seg)
{
	return seg->zone && rfs_zone_fit(fs, seg, 1);
}

bool rfs_has_room(const struct rfs_fs *fs, u32 stream)
{
	const struct rfs_active_seg *seg = fs->active[fs->active_of[stream]];
	u32 way;

	for (way = 0; way < fs->ways; way++)
		if (rfs_seg_has_room(fs, &seg[way]))
			return true;
	return false;
}

/*
 * Says whether a stream may open a zone although another stream of its kind has room. A group opens
 * none of the last free zones, none of those that metadata claims, and none that a check-point may
 * need: so data needs no more of these than with one group. Metadata opens none of those that
 * reserved pages need, and not the last of all beside these, so that a check-point finds what room
 * there is in zones of metadata.
 */
static bool rfs_may_open(const struct rfs_fs *fs, bool data)
{
	u64 reserved = rfs_zones_for_reserved(fs);

	if (!data)
		return fs->free_zones >= 2 + reserved;
	return fs->free_zones >= rfs_zones_kept(fs) + reserved &&
	       rfs_room_beside(fs, 0, 1) >= rfs_room_kept(fs);
}

u32 rfs_with_room(const struct rfs_fs *fs, u32 stream)
{
	bool data = stream >= RFS_S_DATA;
	u32 first = data ? RFS_S_DATA : 0, i;

	if (rfs_has_room(fs, stream) || rfs_may_open(fs, data))
		return stream;
	/* Groups that the policy does not have any more may have been left zones. */
	i = data ? RFS_S_DATA + fs->data_active : RFS_S_DATA;
	while (i-- > first)
		if (rfs_has_room(fs, i))
			return i;
	return stream;
}

/*
 * Says whether a stream that has room in a zone may open another one beside it. It takes no zone
 * that data is to wait for, or that a check-point may need.
 */
static bool rfs_may_widen(const struct rfs_fs *fs)
{
	return fs->free_zones > rfs_zones_narrow(fs) + rfs_zones_for_reserved(fs) &&
	       rfs_room_beside(fs, 0, 1) >= rfs_room_kept(fs) + RFS_SUM_ENTRIES;
}

/*
 * Returns the way that has least in flight, and of equal ways the next in turn. Only those ways
 * count on which the stream has room or, if it may open another zone, those that have a free one.
 */
static u32 rfs_least_loaded(const struct rfs_fs *fs, u32 of, bool opens)
{
	u32 best = fs->ways, first = fs->way_next[of], least = 0, i;
	bool asked = false;

	for (i = 0; i < fs->ways; i++) {
		u32 way = (first + i) % fs->ways, load;
		const struct rfs_active_seg *seg = &fs->active[of][way];
		bool room = rfs_seg_has_room(fs, seg);

		if (!room && opens && !asked) {
			opens = rfs_may_widen(fs);
			asked = true;
		}
		if (!room && !(opens && fs->free_of[way].count))
			continue;
		/* If its way had no free zone, the segment's zone is on another way. */
		load = fs->way_inflight[room ? seg->zone % fs->ways : way];
		if (best < fs->ways && load >= least)
			continue;
		best = way;
		least = load;
	}
	return best;
}

u32 rfs_way_for(struct rfs_fs *fs, u32 stream, bool opens)
{
	u32 of = fs->active_of[stream], way;

	if (fs->ways == 1 || !rfs_is_striped(stream))
		return opens || rfs_seg_has_room(fs, fs->active[of]) ? 0 :
								       fs->ways;
	way = rfs_least_loaded(fs, of, opens);
	if (way == fs->ways && opens)	/* one has to be */
		way = fs->way_next[of];
	if (way < fs->ways)
		fs->way_next[of] = (way + 1) % fs->ways;
	return way;
}
