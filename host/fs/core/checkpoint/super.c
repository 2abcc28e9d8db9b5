// SPDX-License-Identifier: GPL-2.0-or-later
/* Sizes of a volume, its superblock, making one. */
#include "rfs.h"

/* Sizes that follow from the device, see "Sizes" in doc/design.md. */
void rfs_layout(u32 zones, u32 zone_cap, bool oob, struct rfs_layout *out)
{
	u64 pool = zones > RFS_CP_ZONES ?
		   (u64)(zones - RFS_CP_ZONES) * zone_cap : 0;
	u64 block_inodes = RFS_BLOCK_INODES, map = RFS_MAP_ENTRIES, rewritten;
	u32 list;

	memset(out, 0, sizeof(*out));
	out->dirty_max = max_t(u64, 64, min_t(u64, pool / 128, 16384));
	out->max_inodes = min(pool, 0xffffffffULL);
	out->imap_blocks = DIV_ROUND_UP(out->max_inodes, block_inodes * map);
	out->max_nodes = min(pool + 1, 0xffffffffULL);
	out->nmap_blocks = DIV_ROUND_UP(out->max_nodes, map);
	out->timb_blocks = DIV_ROUND_UP(out->imap_blocks + out->nmap_blocks,
					(u32)RFS_MAP_ENTRIES);
	out->ztab_blocks = DIV_ROUND_UP(zones, (u32)RFS_ZTAB_ENTRIES);
	out->cp_blocks = 1;
	list = out->timb_blocks + out->ztab_blocks;
	if (list > RFS_CP_LIST_FIRST)
		out->cp_blocks += DIV_ROUND_UP(list - RFS_CP_LIST_FIRST,
					       (u32)RFS_CP_LIST_MORE);
	rewritten = 2ULL * (out->dirty_max + out->timb_blocks +
			    out->ztab_blocks) +
		    min(out->imap_blocks + out->nmap_blocks,
			2 * out->dirty_max);
	if (!oob)	/* a summary with each */
		rewritten *= 2;
	out->reserve_zones = 7 + 2;
	if (zone_cap)
		out->reserve_zones += DIV_ROUND_UP(rewritten, (u64)zone_cap);
	/*
	 * What cleaning leaves in a zone weighs more in a small one. This is
	 * not derived: see "Not proven" in doc/design.md.
	 */
	if (zone_cap && zone_cap < 64)
		out->reserve_zones += zones / (2 * zone_cap);
	out->need_zones = RFS_CP_ZONES + out->reserve_zones + 4;
	if (zone_cap < 1 + 2 * out->cp_blocks || zone_cap < 8)
		out->need_zones = ~0U;
}

static int append_block(struct rfs_fs *fs, u32 zone, void *block)
{
	struct rfs_oob oob;
	u64 addr;

	rfs_oob_meta(fs, &oob, block);
	rfs_head_seal(block, le64_to_cpu(oob.stamp));
	rfs_oob_seal(&oob, block);
	return fs->ops->append(fs->dev, zone, 1, (const void *const *)&block,
			       &oob, &addr);
}

/* A superblock as the first block of a check-point zone. */
int rfs_super_write(struct rfs_fs *fs, u32 zone)
{
	return append_block(fs, zone, &fs->super);
}

static u32 volume_of(const struct rfs_super *super)
{
	__le32 first;

	memcpy(&first, super->uuid, sizeof(first));
	return le32_to_cpu(first);
}

/* What super says, into fs. */
void rfs_super_fill(struct rfs_fs *fs)
{
	struct rfs_layout layout;

	rfs_layout(le32_to_cpu(fs->super.zones),
		   le32_to_cpu(fs->super.zone_cap),
		   fs->geo.oob_bytes >= RFS_OOB_BYTES, &layout);
	fs->volume = volume_of(&fs->super);
	fs->dirty_max = le32_to_cpu(fs->super.dirty_max);
	fs->imap_blocks = layout.imap_blocks;
	fs->nmap_blocks = layout.nmap_blocks;
	fs->timb_blocks = layout.timb_blocks;
	fs->ztab_blocks = layout.ztab_blocks;
}

static int super_ok(const struct rfs_fs *fs, const struct rfs_super *super)
{
	struct rfs_layout layout;

	if (le32_to_cpu(super->head.magic) != RFS_BLOCK_MAGIC)
		return -EINVAL;	/* no RFS */
	if (!rfs_head_ok(&super->head, volume_of(super), RFS_SUPER))
		return -EUCLEAN;
	if (le32_to_cpu(super->version) != RFS_FORMAT_VERSION ||
	    le32_to_cpu(super->incompat) & ~RFS_INCOMPAT_KNOWN)
		return -EOPNOTSUPP;
	rfs_layout(le32_to_cpu(super->zones), le32_to_cpu(super->zone_cap),
		   fs->geo.oob_bytes >= RFS_OOB_BYTES, &layout);
	if (le32_to_cpu(super->zones) > fs->geo.zones ||
	    le32_to_cpu(super->zones) < layout.need_zones ||
	    le32_to_cpu(super->zone_blocks) != fs->geo.zone_blocks ||
	    le32_to_cpu(super->zone_cap) > fs->geo.zone_blocks ||
	    le32_to_cpu(super->max_inodes) != layout.max_inodes ||
	    le32_to_cpu(super->reserve_zones) != layout.reserve_zones ||
	    le32_to_cpu(super->dirty_max) != layout.dirty_max ||
	    le32_to_cpu(super->max_nodes) != layout.max_nodes ||
	    !(le32_to_cpu(super->incompat) & RFS_INCOMPAT_SUMMARY) !=
	    (fs->geo.oob_bytes >= RFS_OOB_BYTES))
		return -EUCLEAN;
	return 0;
}

/*
 * The newest valid superblock: a zone that has become read-only keeps that of
 * a volume before this one. -EINVAL: there is none; -EOPNOTSUPP: it is of another
 * format; -EUCLEAN: there is one, damaged or of another device.
 */
int rfs_super_load(struct rfs_fs *fs)
{
	struct rfs_super *best = rfs_alloc(sizeof(*best));
	int ret, found = -EINVAL;
	bool valid = false;
	u32 zone;

	if (!best)
		return -ENOMEM;
	for (zone = 0; zone < RFS_CP_ZONES; zone++) {
		ret = fs->ops->read(fs->dev, (u64)zone * fs->geo.zone_blocks,
				    &fs->super, NULL);
		if (!ret)
			ret = super_ok(fs, &fs->super);
		if (ret && ret != -EOPNOTSUPP) {
			if (!valid && ret != -EINVAL)
				found = ret;
			continue;
		}
		if (valid && le64_to_cpu(fs->super.created) <=
			     le64_to_cpu(best->created))
			continue;
		valid = true;
		found = ret;
		*best = fs->super;
	}
	if (valid)
		fs->super = *best;	/* also if it is not known: of what */
	rfs_free(best);
	if (!found)
		rfs_super_fill(fs);
	return found;
}

/* After those before it, of which zones may keep the superblock; and so on. */
static u64 time_of_mkfs(struct rfs_fs *fs)
{
	u64 now = fs->ops->now(fs->dev), time = now;
	u32 zone;

	for (zone = 0; zone < RFS_CP_ZONES; zone++)
		if (!fs->ops->read(fs->dev, (u64)zone * fs->geo.zone_blocks,
				   &fs->super, NULL) &&
		    rfs_head_ok(&fs->super.head, volume_of(&fs->super),
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

int rfs_super_make(struct rfs_fs *fs, u32 cap, const struct rfs_id *id,
		   const char *label, u64 created)
{
	struct rfs_super *super = &fs->super;
	bool oob = fs->geo.oob_bytes >= RFS_OOB_BYTES;
	struct rfs_layout layout;

	rfs_layout(fs->geo.zones, cap, oob, &layout);
	if (fs->geo.zones < layout.need_zones)
		return -ENOSPC;
	super->version = cpu_to_le32(RFS_FORMAT_VERSION);
	super->incompat = cpu_to_le32(oob ? 0 : RFS_INCOMPAT_SUMMARY);
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
	rfs_super_fill(fs);
	rfs_head_init(fs, &super->head, RFS_SUPER, 0, 0, 0);
	return 0;
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
	for (zone = 0; zone < geo->zones; zone++) {
		ret = ops->report(dev, zone, &state);
		if (ret)
			return ret;
		if (state.cond != RFS_DEV_OK)
			continue;
		usable += zone < RFS_CP_ZONES;
		cap = min(cap, state.cap);
	}
	rfs_layout(geo->zones, cap, geo->oob_bytes >= RFS_OOB_BYTES, &layout);
	/* before anything is reset: what is refused leaves all as it was */
	if (usable < RFS_CP_MIRRORS || geo->zones < layout.need_zones)
		return -ENOSPC;
	ret = reset_all(ops, dev, geo->zones);
	if (ret)
		return ret;
	fs = rfs_alloc(sizeof(*fs));
	if (!fs)
		return -ENOMEM;
	fs->ops = ops;
	fs->dev = dev;
	fs->geo = *geo;
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
	if (!ret)
		ret = rfs_root_make(fs);
	if (!ret)
		ret = rfs_checkpoint(fs, RFS_CP_UNMOUNT);
	rfs_drop(fs);
	return ret;
}
