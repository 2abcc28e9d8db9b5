// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much may be dirty follows from what a check-point can write: all of it has to find room, on a
 * full volume, too (questions 8 and 9 of doc/design.md).
 */
#include "space/space.h"

#define SPARE_ZONES	2	/* for cleaning, after the check-point */
#define DIRTY_LEAST	1	/* block: the next is waited for */

/* Returns the pages that an active segment's zone has left. The last two are for summaries. */
u32 rfs_seg_room(const struct rfs_fs *fs, const struct rfs_active_seg *seg)
{
	const struct rfs_zone_info *z = &fs->zone[seg->zone];

	return z->cond == RFS_DEV_OK && z->wp + 2 < z->cap ?
	       z->cap - z->wp - 2 : 0;
}

/* This is the same for all zones of these streams. */
static u64 rfs_active_room(const struct rfs_fs *fs, u32 first, u32 last)
{
	u64 pages = 0;
	u32 i, way;

	for (i = first; i <= last; i++) {
		const struct rfs_active_seg *seg = fs->active[i];

		for (way = 0; way < fs->ways; way++, seg++)
			if (seg->zone)
				pages += rfs_seg_room(fs, seg);
	}
	return pages;
}

/*
 * [N] Returns the zones that reserved pages, and so many copies, need beyond what zones of data
 * have left, if that were `without` pages less. Of a begun zone the pages have all that is left.
 */
static u64 rfs_zones_for_pages(const struct rfs_fs *fs, u64 copies, u64 without)
{
	u64 pages = rfs_pages_of(fs, copies + copies / 32) +
		    rfs_pages_of(fs, fs->rsv_blocks) + without;
	u64 have = rfs_active_room(fs, RFS_S_DATA, RFS_STREAMS - 1);
	u64 cap = le32_to_cpu(fs->super.zone_cap);

	/* With few zones there is one, and none to spare for the two pages at its end. */
	if (fs->few && have)
		have += 2;
	return pages > have ? DIV_ROUND_UP(pages - have, cap) : 0;
}

u64 rfs_zones_for_copies(const struct rfs_fs *fs, u64 copies)
{
	return copies || fs->rsv_blocks ? rfs_zones_for_pages(fs, copies, 0) : 0;
}

/*
 * Returns how many blocks of metadata there is room for now, without `zones` of the free zones, and
 * beside so many copies, what is reserved, the log in memory, and tables. One of each 64 blocks is
 * a summary, and appends that end early have one more. Blocks that were written early are taken
 * off, since recovery would write them again if the check-point were not finished.
 */
static u64 rfs_dirty_room(const struct rfs_fs *fs, u64 copies, u64 zones)
{
	u64 kept = fs->log_most + rfs_tables(fs) + fs->early_blocks;
	u64 cap = le32_to_cpu(fs->super.zone_cap), blocks;

	if (fs->sums_each)	/* as rfs_low_zones() counts them */
		kept += fs->log_most +
			rfs_short_appends(rfs_tables(fs), fs->sums_each);
	zones += rfs_zones_for_copies(fs, copies);
	if (copies && fs->free_zones < zones)
		return 0;	/* no metadata has room that copies would take */
	blocks = rfs_blocks_in(rfs_active_room(fs, 0, RFS_S_DATA - 1),
			       fs->sums_each);
	if (fs->free_zones > zones)
		blocks += (fs->free_zones - zones) *
			  rfs_blocks_in(cap, fs->sums_each);
	return blocks > kept ? blocks - kept : 0;
}

/*
 * Returns dirty_max if there is room for it, as there is in the reserve, beside what the
 * check-point leaves to others. It is more where zones are left for cleaning after the check-point,
 * since fewer check-points write less.
 */
u32 rfs_dirty_most(const struct rfs_fs *fs)
{
	u32 most = max(fs->dirty_max,
		       min(4 * fs->dirty_max, fs->dirty_more));
	u64 kept = rfs_room_kept(fs), blocks, more;

	blocks = min_t(u64, rfs_dirty_room(fs, 0, 0), fs->dirty_max + kept);
	/* Groups may begin zones beside those that they have, see stripe.c. */
	more = min_t(u64, rfs_dirty_room(fs, 0, SPARE_ZONES + fs->ways - 1),
		     most + kept);
	blocks = max(blocks, more);
	return blocks > kept + DIRTY_LEAST ? blocks - kept : DIRTY_LEAST;
}

bool rfs_room_tight_summed(const struct rfs_fs *fs, u32 zones)
{
	return rfs_dirty_room(fs, 0, zones) <
	       fs->dirty_max + rfs_room_kept(fs);
}

bool rfs_room_tight(const struct rfs_fs *fs, u32 zones)
{
	/* The free zones alone have the room, see rfs_low_zones(). */
	if (!fs->early_blocks && fs->free_zones >= rfs_zones_low(fs) + zones)
		return false;
	return rfs_room_tight_summed(fs, zones);
}

bool rfs_dirty_due(const struct rfs_fs *fs)
{
	u32 half = fs->dirty_max / 2;

	return fs->dirty.count >= half &&
	       fs->dirty.count + half >= rfs_dirty_most(fs);
}

bool rfs_checkpoint_due(const struct rfs_fs *fs)
{
	return fs->window_blocks >= fs->window_max || rfs_dirty_due(fs);
}

u64 rfs_room_beside(const struct rfs_fs *fs, u64 copies, u32 zones)
{
	u64 blocks = rfs_dirty_room(fs, copies, zones);

	return blocks > fs->dirty.count ? blocks - fs->dirty.count : 0;
}

bool rfs_may_close(const struct rfs_fs *fs, const struct rfs_active_seg *seg)
{
	u64 before, after;
	u32 room = rfs_seg_room(fs, seg);

	if (!fs->rsv_blocks || !room)
		return true;
	before = rfs_zones_for_reserved(fs);
	after = rfs_zones_for_pages(fs, 0, room);
	/* What is copied goes to a zone beside those that are kept. */
	return fs->free_zones + rfs_zones_for_data(fs->few) > rfs_zones_kept(fs) + after &&
	       rfs_room_beside(fs, 0, after - before) >= rfs_room_kept(fs);
}

u32 rfs_pages_at_once(const struct rfs_fs *fs)
{
	u64 cap = le32_to_cpu(fs->super.zone_cap), blocks = fs->dirty_max / 2;
	u64 kept = fs->low_zones + rfs_zones_of(fs, fs->rsv_blocks);
	u32 each = RFS_PARENTS + (rfs_has_pieces(&fs->super) ? RFS_DIFF_PARENTS :
							       0);

	if (fs->free_zones > kept)
		blocks += (fs->free_zones - kept) * cap;
	return max_t(u64, blocks / each, 1);
}

/*
 * Returns the zones for what is reserved and `blocks` more. With one to spare, what zones of data
 * have left makes up for rounding down.
 */
static u64 rfs_zones_wanted(const struct rfs_fs *fs, u32 blocks)
{
	return fs->few ? rfs_zones_for_pages(fs, 0, rfs_pages_of(fs, blocks)) :
			 rfs_zones_of(fs, fs->rsv_blocks + blocks);
}

/* Says whether fewer zones are free than what is reserved, `blocks` more, and metadata need. */
bool rfs_room_low(const struct rfs_fs *fs, u32 blocks)
{
	return fs->free_zones < rfs_zones_kept(fs) + rfs_zones_wanted(fs, blocks);
}

bool rfs_room_never(const struct rfs_fs *fs, u32 blocks)
{
	return rfs_zones_kept(fs) + rfs_zones_wanted(fs, blocks) > fs->geo.zones;
}

void rfs_room_lacks(const struct rfs_fs *fs, u32 blocks, struct rfs_lack *out)
{
	out->room = rfs_dirty_room(fs, 0, 0);
	out->wanted = fs->dirty.count + rfs_room_kept(fs);
	out->blocks = out->wanted - min(out->wanted, out->room);
	out->zones_wanted = rfs_zones_kept(fs) + rfs_zones_wanted(fs, blocks);
	out->zones = out->zones_wanted - min_t(u64, out->zones_wanted,
					       fs->free_zones);
}
