// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A change needs this before it may begin: room for the blocks that it appends and for the metadata
 * that it makes dirty. Where others clean and write check-points, the answer says that they have to
 * do so. Otherwise it is done here.
 */
#include "space/space.h"
#include "home/home.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"

/*
 * Only answers, where others clean and write check-points. They make room for the largest request
 * that waits.
 */
static int rfs_ask_for_room(struct rfs_fs *fs, u32 blocks, u32 meta)
{
	u32 asked = fs->meta_asked;
	bool low;

	fs->meta_asked = meta;
	low = rfs_room_low(fs, blocks + fs->withheld);
	fs->meta_asked = asked;
	if (!low && !rfs_dirty_full(fs)) {
		rfs_prove_asked(fs, meta);
		return 0;
	}
	if (fs->no_space)
		return -ENOSPC;
	fs->meta_asked = max(asked, meta);
	return -EAGAIN;
}

bool rfs_meta_fits(struct rfs_fs *fs, u32 meta)
{
	u32 asked = fs->meta_asked;
	bool low;

	rfs_dirty_parents(fs);
	if (rfs_dirty_full(fs) ||
	    (meta && rfs_used_with(fs, 0, meta) > fs->user_blocks))
		return false;
	fs->meta_asked = max(asked, meta);
	low = rfs_room_low(fs, fs->withheld);
	fs->meta_asked = asked;
	return !low;
}

/*
 * Checks the room for a file of a hybrid volume. On the slow device there is room, or there is
 * none. On flash, each block that is written may be one more, and others may have to make room for
 * it.
 */
static int rfs_home_room(struct rfs_fs *fs, u32 blocks, u64 data, u32 meta)
{
	if (data > rfs_home_left(fs))
		return -ENOSPC;
	if (!fs->threaded)
		return 0;
	if (fs->ops->crowded && rfs_flash_crowded(fs))
		fs->ops->crowded(fs->dev);
	if (!rfs_flash_lacks(fs, blocks, meta))
		return 0;
	if (fs->no_space)
		return -ENOSPC;
	fs->meta_asked = max(fs->meta_asked, meta);
	return -EAGAIN;
}

/*
 * Rounds of cleaning until so many zones of data were victims, each in pieces of half of
 * dirty_max, the first and the last of which may be less, and with compaction after each.
 */
static u32 rfs_rounds_of(const struct rfs_fs *fs, u32 victims)
{
	u32 cap = le32_to_cpu(fs->super.zone_cap);

	return 2 * victims * (2 + cap / (fs->dirty_max / 2));
}

/*
 * This comes before a change. If a bound was reached, it forces a check-point. Where free zones
 * lack, a check-point frees the dead zones, and cleaning those that are nearly dead.
 */
int rfs_make_room(struct rfs_fs *fs, u32 blocks, u64 data, u32 meta)
{
	enum rfs_clean how = RFS_CLEAN_NOW;
	u32 tries = rfs_rounds_of(fs, fs->geo.zones), before;
	int ret;

	if (fs->read_only)
		return -EROFS;
	rfs_dirty_parents(fs);
	if (fs->home) {
		ret = rfs_home_room(fs, blocks, data, meta);
		if (ret)
			return ret;
	} else if ((data || meta) &&
		   rfs_used_with(fs, data, meta) > fs->user_blocks) {
		return -ENOSPC;
	}
	if (fs->threaded)
		return rfs_ask_for_room(fs, blocks, meta);
	ret = rfs_make_room_to_free(fs);
	if (!ret && fs->home)
		ret = rfs_spare(fs, blocks, meta, fs->user_blocks / RFS_SPARE,
				rfs_checkpoint);
	/* This counts what the change adds to the claim of metadata. */
	fs->meta_asked = meta;
	while (!ret && (rfs_room_low(fs, blocks) ||
			rfs_compact_due(fs, false))) {
		if (rfs_room_never(fs, blocks) || !tries--) {
			ret = -ENOSPC;
			break;
		}
		if (rfs_compact_due(fs, how == RFS_CLEAN_HARD)) {
			ret = rfs_compact(fs, rfs_checkpoint);
			continue;
		}
		before = fs->free_zones;
		ret = rfs_clean(fs, how);
		if (ret == -ENOSPC && how != RFS_CLEAN_HARD) {
			how = RFS_CLEAN_HARD;	/* which uses all the room */
			ret = 0;
			continue;
		}
		if (!ret || ret == -ENOENT)
			ret = rfs_checkpoint(fs, 0);
		/* The policy may prefer metadata, again and again. */
		if (fs->free_zones <= before)
			how = RFS_CLEAN_HARD;
	}
	fs->meta_asked = 0;
	if (!ret) {
		rfs_prove(fs, RFS_AT_ADMISSION);
		rfs_prove_asked(fs, meta);
	}
	return ret;
}

/* Returns the blocks that can be written, since a victim may give less than a zone. */
static u64 rfs_room_left(const struct rfs_fs *fs)
{
	u64 cap = le32_to_cpu(fs->super.zone_cap);
	u64 blocks = fs->free_zones * cap;
	u32 i, way, zone;

	for (i = RFS_S_DATA; i < RFS_STREAMS; i++)
		for (way = 0; way < fs->ways; way++) {
			zone = fs->active[i][way].zone;
			if (zone)
				blocks += fs->zone[zone].cap -
					  fs->zone[zone].wp;
		}
	return blocks;
}

/*
 * Victims without a gain, then there is none. What each may ask for is there, so it is
 * sought until all zones of data were victims. Who asks for more at once can do with less:
 * for that it is sought until one was that is left half copied, and the one after it, since
 * no second one is (case 4 of "Room" in doc/design.md).
 */
static u32 rfs_futile_most(const struct rfs_fs *fs)
{
	return rfs_rounds_of(fs, rfs_room_low(fs, 1) ? fs->geo.zones : 2);
}

int rfs_seek_room(struct rfs_fs *fs, u32 least, u32 more,
		  const struct rfs_rounds *rounds)
{
	u64 best = rfs_room_left(fs), left;
	u32 futile = 0;
	int ret = 0;

	do {
		if (fs->read_only)
			return -EROFS;
		/* Somebody may have made room since. */
		if (!rfs_dirty_full(fs) && !rfs_room_low(fs, more))
			return 0;
		if (rfs_room_never(fs, least))
			return -ENOSPC;
		if (rfs_compact_due(fs, futile)) {
			/* Another check-point would take the blocks that compaction gains. */
			ret = rounds->compact(fs);
		} else {
			if (rfs_room_low(fs, more))
				ret = rounds->clean(fs, futile ?
						    RFS_CLEAN_HARD :
						    RFS_CLEAN_NOW);
			if (ret == -ENOSPC && !futile) {
				futile = 1;	/* which uses all the room */
				ret = 0;
				continue;
			}
			if (!ret)
				ret = rounds->checkpoint(fs, 0);
		}
		if (ret)
			return ret;
		left = rfs_room_left(fs);
		futile = left > best ? 0 : futile + 1;
		best = max(best, left);
		/* Room that is left to others is not sought in vain. */
	} while (rfs_room_low(fs, futile ? least : more) &&
		 futile < rfs_futile_most(fs));
	return rfs_room_low(fs, least) ? -ENOSPC : 0;
}

/*
 * This comes before a change that adds no block and appends none. Such a change only needs room in
 * the next check-point for the metadata that it makes dirty. There always is some after a
 * check-point, if metadata was compacted where room was short, so the change is never refused.
 * -ENOBUFS says that the caller of the core has to write a check-point or compact, and ask again.
 */
int rfs_make_room_to_free(struct rfs_fs *fs)
{
	int ret = fs->read_only ? -EROFS : 0;

	if (ret)
		return ret;
	rfs_dirty_parents(fs);
	if (fs->threaded) {
		if (rfs_dirty_full(fs) || rfs_compact_due(fs, false))
			return -ENOBUFS;
		rfs_prove(fs, RFS_AT_SENDING);
		return 0;
	}
	rfs_prove(fs, RFS_AT_OPERATION);
	if (rfs_checkpoint_due(fs))
		ret = rfs_checkpoint(fs, 0);
	while (!ret && rfs_compact_due(fs, false))
		ret = rfs_compact(fs, rfs_checkpoint);
	if (!ret)
		rfs_prove(fs, RFS_AT_ADMISSION);
	return ret;
}

/*
 * Makes room for an entry and the blocks that lead to it, when all are counted anew. During a mount
 * nobody else cleans and writes check-points yet, so it is done here.
 */
int rfs_quota_room(struct rfs_fs *fs)
{
	bool threaded = fs->threaded;
	int ret;

	if (fs->read_only)
		return rfs_dirty_full(fs) ? -ENOSPC : 0;
	fs->threaded = false;
	ret = rfs_make_room(fs, 0, 0, 1 + RFS_HEIGHT_MAX);
	fs->threaded = threaded;
	return ret;
}
