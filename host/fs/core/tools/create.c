// SPDX-License-Identifier: GPL-2.0-or-later
#include "home/replica.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "tools/tools.h"

/* Returns a time after those of earlier volumes, because zones may keep their superblocks. */
static u64 time_of_mkfs(struct rfs_fs *fs)
{
	u64 now = fs->ops->now(fs->dev), time = now;
	u32 zone;

	for (zone = 0; zone < RFS_CP_ZONES; zone++)
		if (!fs->ops->read(fs->dev, (u64)zone * fs->geo.zone_blocks,
				   &fs->super, NULL) &&
		    rfs_head_ok(&fs->super.head, rfs_volume_of(&fs->super),
				RFS_SUPER))
			time = max(time, le64_to_cpu(fs->super.created) + 1);
	memset(&fs->super, 0, sizeof(fs->super));
	fs->behind = time - now;
	return time;
}

int rfs_root_make(struct rfs_fs *fs)
{
	u64 now = fs->ops->now(fs->dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iset(fs, RFS_ROOT_INO, &di, &buf);

	if (ret)
		return ret;
	di->gen = cpu_to_le32(1);
	di->mode = cpu_to_le32(S_IFDIR | 0755);
	di->nlink = cpu_to_le32(2);
	di->parent = di->ino;
	di->atime = cpu_to_le64(now);
	di->mtime = di->atime;
	di->ctime = di->atime;
	di->btime = di->atime;
	return 0;
}

u32 rfs_ways_fit(const struct rfs_geometry *geo, u32 cap, u32 ways, bool runs)
{
	bool oob = geo->oob_bytes >= RFS_OOB_BYTES;
	struct rfs_layout layout;

	for (ways = rfs_ways_allowed(geo, cap, ways); ways > 1; ways--) {
		rfs_layout(geo->zones, cap, oob, ways, runs, &layout);
		if (geo->zones >= layout.make_zones)
			break;
	}
	return ways;
}

/* Returns the superblock's number: 0 if nothing is striped. */
static u32 striped_over(const struct rfs_geometry *geo, u32 cap,
			const struct rfs_id *id)
{
	u32 ways = rfs_ways_fit(geo, cap, id->ways, id->runs);

	return ways > 1 ? ways : 0;
}

static u64 replica_blocks(const struct rfs_geometry *geo, const struct rfs_id *id)
{
	u64 flash = (u64)geo->zones * geo->zone_blocks;

	return id->replica ? rfs_replica_size(geo->slow->blocks, flash) : 0;
}

int rfs_super_make(struct rfs_fs *fs, u32 cap, const struct rfs_id *id,
		   const char *label, u64 created)
{
	struct rfs_super *super = &fs->super;
	bool oob = fs->geo.oob_bytes >= RFS_OOB_BYTES;
	u32 ways = striped_over(&fs->geo, cap, id);
	struct rfs_layout layout;

	rfs_layout(fs->geo.zones, cap, oob, ways, id->runs, &layout);
	/* An existing volume may be smaller than mkfs makes them. */
	if (fs->geo.zones < layout.need_zones)
		return -ENOSPC;
	super->version = cpu_to_le32(RFS_FORMAT_VERSION);
	super->incompat = cpu_to_le32((oob ? 0 : RFS_INCOMPAT_SUMMARY) |
				      (id->pieces ? RFS_INCOMPAT_PIECES : 0) |
				      (id->runs ? RFS_INCOMPAT_RUNS : 0) |
				      (layout.cp_blocks > 1 ?
				       RFS_INCOMPAT_GAPS : 0) |
				      (fs->geo.slow ? RFS_INCOMPAT_SLOW |
						      RFS_INCOMPAT_BYPASS : 0) |
				      (id->replica ? RFS_INCOMPAT_REPLICA : 0));
	if (fs->geo.slow)
		super->slow_blocks = cpu_to_le64(fs->geo.slow->blocks);
	if (id->replica)
		super->replica_blocks = cpu_to_le64(replica_blocks(&fs->geo, id));
	memcpy(super->uuid, id->uuid, sizeof(super->uuid));
	memcpy(super->label, label, min(strlen(label), sizeof(super->label)));
	super->created = cpu_to_le64(created);
	super->zones = cpu_to_le32(fs->geo.zones);
	super->zone_blocks = cpu_to_le32(fs->geo.zone_blocks);
	super->zone_cap = cpu_to_le32(cap);
	super->oob_bytes = cpu_to_le32(fs->geo.oob_bytes);
	super->reserve_zones = cpu_to_le32(layout.reserve_zones);
	super->max_inodes = cpu_to_le32(layout.max_inodes);
	super->dirty_max = cpu_to_le32(layout.dirty_max);
	super->max_nodes = cpu_to_le32(layout.max_nodes);
	memcpy(super->hash_key, id->hash_key, sizeof(super->hash_key));
	memcpy(super->summary_key, id->summary_key, sizeof(super->summary_key));
	super->ways = cpu_to_le32(ways);
	rfs_super_fill(fs);
	rfs_head_init(fs, &super->head, RFS_SUPER, 0, 0, 0);
	return 0;
}

u64 rfs_slow_room(const struct rfs_geometry *geo, const struct rfs_id *id)
{
	u64 blocks = geo->slow->blocks, replica = replica_blocks(geo, id);

	return blocks > replica ? rfs_home_blocks(blocks - replica) : 0;
}

/*
 * Says whether a slow device has room for all blocks that flash can have, and addresses of both fit
 * into a pointer.
 */
bool rfs_slow_fits(const struct rfs_geometry *geo, const struct rfs_id *id)
{
	u64 flash = (u64)geo->zones * geo->zone_blocks;

	return flash <= RFS_HYBRID_BLOCKS &&
	       geo->slow->blocks <= RFS_HYBRID_BLOCKS &&
	       rfs_slow_room(geo, id) >= flash;
}

static int reset_all(const struct rfs_dev_ops *ops, void *dev, u32 zones)
{
	struct rfs_dev_zone state;
	u32 zone;
	int ret = 0;

	for (zone = 0; !ret && zone < zones; zone++) {
		ret = ops->report(dev, zone, &state);
		if (!ret && state.cond == RFS_DEV_OK && state.wp)
			ret = ops->reset(dev, zone);
	}
	return ret;
}

int rfs_mkfs(const struct rfs_dev_ops *ops, void *dev,
	     const struct rfs_geometry *geo, const struct rfs_id *id,
	     const char *label)
{
	u32 zone, cap = ~0U, usable = 0;
	struct rfs_dev_zone state;
	struct rfs_layout layout;
	struct rfs_fs *fs;
	int ret;

	if (!rfs_limits_ok(geo))
		return -EMFILE;
	if (geo->slow && !rfs_slow_fits(geo, id))
		return -EFBIG;
	if (id->replica && (!geo->slow || geo->oob_bytes < RFS_OOB_BYTES))
		return -EOPNOTSUPP;
	for (zone = 0; zone < geo->zones; zone++) {
		ret = ops->report(dev, zone, &state);
		if (ret)
			return ret;
		if (state.cond != RFS_DEV_OK)
			continue;
		usable += zone < RFS_CP_ZONES;
		cap = min(cap, state.cap);
	}
	rfs_layout(geo->zones, cap, geo->oob_bytes >= RFS_OOB_BYTES,
		   striped_over(geo, cap, id), id->runs, &layout);
	/* This comes before anything is reset, so that a refusal leaves everything as it was. */
	if (usable < RFS_CP_MIRRORS || geo->zones < layout.make_zones)
		return -ENOSPC;
	ret = reset_all(ops, dev, geo->zones);
	if (ret)
		return ret;
	fs = rfs_volume_new(ops, dev, geo);
	if (!fs)
		return -ENOMEM;
	ret = rfs_super_make(fs, cap, id, label, time_of_mkfs(fs));
	if (ret) {
		rfs_free(fs);
		return ret;
	}
	if (geo->oob_bytes < RFS_OOB_BYTES)
		fs->geo.oob_bytes = 0;
	fs->version = 1ULL << RFS_EPOCH_SHIFT;
	fs->cp_version = fs->version;
	ret = rfs_tables_alloc(fs);
	if (!ret && geo->slow)
		ret = rfs_home_make(fs);
	if (!ret)
		ret = rfs_root_make(fs);
	if (!ret)
		ret = rfs_checkpoint(fs, RFS_CP_UNMOUNT);
	rfs_unmount_nosync(fs);
	return ret;
}
