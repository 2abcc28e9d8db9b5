// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * For tests, this checks that the volume is as the proof in "Room" of doc/design.md says, at each
 * admission and before each check-point. The kernel does not have it.
 */
#include "space/space.h"
#include "tree/tree.h"

#ifndef __KERNEL__
void (*rfs_broken)(const struct rfs_fs *fs, const char *what);

/* Returns the zones that data would leave if metadata were compact. */
static s64 rfs_proof_zones_left(const struct rfs_fs *fs)
{
	return (s64)fs->free_zones + fs->meta_zones -
	       (s64)rfs_zones_claimed(fs);
}

/* Returns the zones of data that the check-point frees, because cleaning has emptied them. */
static u32 rfs_proof_dead(const struct rfs_fs *fs)
{
	u32 nr, dead = 0;

	rfs_bits_each(&fs->set[RFS_SET_DEAD], nr)
		dead += fs->zone[nr].stream >= RFS_S_DATA;
	return dead;
}

/* Returns the pages that zones of data which are being filled have left. */
static u64 rfs_proof_begun(const struct rfs_fs *fs)
{
	u32 i, way, zone;
	u64 pages = 0;

	for (i = RFS_S_DATA; i < RFS_STREAMS; i++)
		for (way = 0; way < fs->ways; way++) {
			zone = fs->active[i][way].zone;
			if (zone && fs->zone[zone].cond == RFS_DEV_OK)
				pages += fs->zone[zone].cap - fs->zone[zone].wp;
		}
	return pages;
}

/* Returns the zones that reserved pages need beyond what those have left that are being filled. */
static u64 rfs_proof_reserved(const struct rfs_fs *fs)
{
	u64 pages = rfs_pages_of(fs, fs->rsv_blocks);
	u64 begun = min(rfs_proof_begun(fs), pages);

	return (pages - begun) / le32_to_cpu(fs->super.zone_cap);
}

/*
 * Returns the blocks of zones that are kept for reserved pages, and which these, or copies, have
 * begun: there is room for the pages in what is being filled.
 */
static u64 rfs_proof_kept_twice(const struct rfs_fs *fs)
{
	u64 zones = rfs_zones_of(fs, fs->rsv_blocks) - rfs_proof_reserved(fs);

	return zones * rfs_blocks_in(le32_to_cpu(fs->super.zone_cap),
				     fs->sums_each);
}

/*
 * Check-points of those who send pages take tables and summaries beside what was dirty, and nothing
 * gives these back until cleaning ends: [t] and its summaries for each.
 */
static void rfs_proof_count(struct rfs_fs *fs)
{
	fs->cps_took = fs->set[RFS_SET_CLEANING].count ?
		       fs->cps_took + rfs_compact_gain(0, rfs_tables(fs), fs->sums_each,
						       le32_to_cpu(fs->super.ways)) :
		       0;
}

static const char *rfs_proof_at_checkpoint(const struct rfs_fs *fs)
{
	if (fs->dirty.count > rfs_room_beside(fs, 0, 0) + fs->dirty.count)
		return "a check-point writes more than there is room for";
	/* While zones are being emptied, cleaning looks at what a check-point needs. */
	if (!fs->recovering && !fs->set[RFS_SET_CLEANING].count &&
	    rfs_proof_zones_left(fs) + rfs_proof_dead(fs) + 2 <
	    fs->low_zones + (s64)rfs_proof_reserved(fs))
		return "data has taken zones of the reserve before a check-point";
	return rfs_sets_wrong(fs);
}

static const char *rfs_proof_wrong(struct rfs_fs *fs, enum rfs_proof at)
{
	u64 room = rfs_room_beside(fs, 0, 0) + fs->dirty.count;

	if (at == RFS_AT_CHECKPOINT) {
		rfs_proof_count(fs);
		return rfs_proof_at_checkpoint(fs);
	}
	if (at == RFS_AT_OPERATION)
		return fs->dirty.count > fs->dirty_before + RFS_OP_BLOCKS +
					 fs->maps ?
		       "an operation has made more dirty than is kept for it" :
		       NULL;
	fs->dirty_before = fs->dirty.count;
	if (fs->set[RFS_SET_CLEANING].count)
		room += rfs_proof_kept_twice(fs) + fs->cps_took;
	if (fs->dirty.count + rfs_room_kept(fs) > room)
		return "what is dirty takes the room that is kept";
	if (rfs_room_tight_summed(fs, 0) && !rfs_room_tight(fs, 0))
		return "room is short, and free zones say that it is not";
	if (at == RFS_AT_SENDING)
		return NULL;
	if (rfs_room_tight_summed(fs, 0))
		return "metadata is compact, and room is short";
	if (rfs_proof_zones_left(fs) + 2 < fs->low_zones)
		return "data has taken zones of the reserve";
	return NULL;
}

void rfs_prove(struct rfs_fs *fs, enum rfs_proof at)
{
	const char *what;

	if (!rfs_broken || fs->read_only)
		return;
	rfs_dirty_parents(fs);
	what = rfs_proof_wrong(fs, at);
	if (what)
		rfs_broken(fs, what);
}

void rfs_prove_asked(struct rfs_fs *fs, u32 meta)
{
	u64 zones = rfs_zones_claimed_with(fs, meta);

	if (rfs_broken && !fs->read_only && fs->free_zones < fs->low_zones +
	    (zones > fs->meta_zones ? zones - fs->meta_zones : 0))
		rfs_broken(fs, "zones lack for what is asked");
}
#endif
