// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This is what metadata may claim of a volume beyond its blocks that are in use, so that a
 * check-point, the compaction of metadata and the cleaning of data always have the blocks that they
 * write. The proof is in "Room" of doc/design.md; the names in brackets are its quantities. All
 * sizes are in blocks.
 */
#include "space/space.h"

u64 rfs_tables(const struct rfs_fs *fs)
{
	return (u64)fs->timb_blocks + fs->ztab_blocks;
}

bool rfs_worth_compacting(const struct rfs_fs *fs,
			  const struct rfs_zone_info *z)
{
	return z->live + rfs_slack(fs->holds) <= fs->holds;
}

/*
 * [Q] Returns the blocks that metadata claims: those in use, and those to come. `more` of these are
 * asked for, and `maps` of them are blocks of maps.
 */
static inline u64 rfs_metadata_claim(const struct rfs_fs *fs,
				     const struct rfs_usage *now,
				     u64 more, u64 maps)
{
	u64 meta = now->live - now->data_live + now->new_dirty + more;
	u32 ways = le32_to_cpu(fs->super.ways), low = now->low_now;
	u64 gain = now->gain_now;

	if (maps == rfs_maps_next(fs)) {
		low = now->low_next;
		gain = now->gain_next;
	} else if (maps) {
		low = rfs_low_zones(le32_to_cpu(fs->super.zone_cap),
				    fs->dirty_max, rfs_tables(fs),
				    now->maps + maps, fs->sums_each, ways, fs->few);
		gain = rfs_compact_gain(now->maps + maps, rfs_tables(fs),
					fs->sums_each, ways);
	}
	return rfs_claim(fs->holds, meta, gain, low - fs->low_zones);
}

/*
 * Returns how many blocks of maps so many new blocks of metadata may add. Numbers are given lowest
 * first, so each map may get a new block at its end. All new metadata may be leaves.
 */
static u64 rfs_maps_of(const struct rfs_fs *fs, u64 meta)
{
	u32 words = fs->nmap_leaves < fs->nmap_blocks ? RFS_LEAF_WORDS : 1;

	return meta ? meta / (RFS_MAP_ENTRIES / words) + rfs_maps_next(fs) : 0;
}

u64 rfs_used_then(const struct rfs_fs *fs, const struct rfs_usage *then,
		  u64 data, u64 meta)
{
	return then->data_live + then->rsv_holes + then->prealloc + data +
	       rfs_metadata_claim(fs, then, meta, rfs_maps_of(fs, meta));
}

u64 rfs_used_with(const struct rfs_fs *fs, u64 data, u64 meta)
{
	struct rfs_usage now;

	rfs_usage_get(fs, &now);
	/* What a hybrid volume has reserved has room on the slow device. */
	if (fs->home) {
		now.rsv_holes = fs->rsv_blocks;
		now.prealloc = 0;
	}
	return rfs_used_then(fs, &now, data, meta);
}

static inline u64 rfs_zones_claimed_by(const struct rfs_fs *fs, u64 meta)
{
	struct rfs_usage now;

	rfs_usage_get(fs, &now);
	return rfs_metadata_claim(fs, &now, meta, rfs_maps_of(fs, meta)) /
	       fs->holds + fs->meta_active - RFS_S_DATA +
	       rfs_meta_filled(le32_to_cpu(fs->super.ways));
}

u64 rfs_zones_claimed_with(const struct rfs_fs *fs, u64 meta)
{
	return rfs_zones_claimed_by(fs, meta);
}

u64 rfs_zones_claimed(const struct rfs_fs *fs)
{
	return rfs_zones_claimed_by(fs, 0);
}

/*
 * Returns the zones that metadata claims beyond those that it has, with what is asked for now: data
 * may not take them.
 */
static u32 rfs_zones_ahead(const struct rfs_fs *fs)
{
	u64 zones = rfs_zones_claimed_by(fs, fs->meta_asked);

	/* A damaged volume may claim more than it has. */
	return zones > fs->meta_zones ? min_t(u64, zones - fs->meta_zones, fs->geo.zones) : 0;
}

u32 rfs_zones_kept(const struct rfs_fs *fs)
{
	return fs->low_zones + rfs_zones_ahead(fs);
}
