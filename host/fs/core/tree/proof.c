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

	return DIV_ROUND_UP(pages - begun, (u64)le32_to_cpu(fs->super.zone_cap));
}

static const char *rfs_proof_at_checkpoint(const struct rfs_fs *fs)
{
	struct rfs_lack lack;

	rfs_room_lacks(fs, 0, &lack);
	if (fs->dirty.count > lack.room)
		return "a check-point writes more than there is room for";
	if (!fs->recovering &&
	    rfs_proof_zones_left(fs) + rfs_proof_dead(fs) + rfs_zones_for_data(fs->few) <
	    fs->low_zones + (s64)rfs_proof_reserved(fs))
		return "data has taken zones of the reserve before a check-point";
	return rfs_sets_wrong(fs);
}

static const char *rfs_proof_wrong(struct rfs_fs *fs, enum rfs_proof at)
{
	u64 room = rfs_room_beside(fs, 0, 0) + fs->dirty.count;

	if (at == RFS_AT_CHECKPOINT)
		return rfs_proof_at_checkpoint(fs);
	if (at == RFS_AT_OPERATION)
		return fs->dirty.count > fs->dirty_before + RFS_OP_BLOCKS +
					 fs->maps ?
		       "an operation has made more dirty than is kept for it" :
		       NULL;
	fs->dirty_before = fs->dirty.count;
	if (fs->dirty.count + rfs_room_kept(fs) > room)
		return "what is dirty takes the room that is kept";
	if (rfs_room_tight_summed(fs, 0) && !rfs_room_tight(fs, 0))
		return "room is short, and free zones say that it is not";
	if (rfs_room_tight_summed(fs, 0))
		return "metadata is compact, and room is short";
	if (rfs_proof_zones_left(fs) + rfs_zones_for_data(fs->few) <
	    fs->low_zones + (s64)rfs_proof_reserved(fs))
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
