// SPDX-License-Identifier: GPL-2.0-or-later
/* This is the superblock, at the start of each check-point zone. */
#include "home/replica.h"
#include "checkpoint/checkpoint.h"

static int rfs_append_block(struct rfs_fs *fs, u32 zone, void *block)
{
	struct rfs_oob oob;
	u64 addr;

	rfs_oob_meta(fs, &oob, block);
	rfs_head_seal(block, le64_to_cpu(oob.stamp));
	rfs_oob_seal(&oob, block);
	return fs->ops->append(fs->dev, zone, 1, (const void *const *)&block,
			       &oob, &addr);
}

/* Writes a superblock as the first block of a check-point zone. */
int rfs_super_write(struct rfs_fs *fs, u32 zone)
{
	return rfs_append_block(fs, zone, &fs->super);
}

/* Fills fs from the superblock. */
void rfs_super_fill(struct rfs_fs *fs)
{
	struct rfs_layout layout;

	rfs_layout(le32_to_cpu(fs->super.zones),
		   le32_to_cpu(fs->super.zone_cap),
		   fs->geo.oob_bytes >= RFS_OOB_BYTES,
		   le32_to_cpu(fs->super.ways), rfs_has_runs(&fs->super),
		   &layout);
	fs->volume = rfs_volume_of(&fs->super);
	fs->dirty_max = le32_to_cpu(fs->super.dirty_max);
	fs->few = layout.few;
	fs->imap_blocks = layout.imap_blocks;
	fs->nmap_blocks = layout.nmap_blocks;
	fs->nmap_leaves = layout.nmap_leaves;
	fs->timb_blocks = layout.timb_blocks;
	fs->ztab_blocks = layout.ztab_blocks;
}

/* Checks what the superblock says of the slow device, and of a replica there. */
static bool rfs_super_slow_ok(const struct rfs_super *super)
{
	u64 replica = le64_to_cpu(super->replica_blocks);

	if (!rfs_is_hybrid(super))
		return !rfs_has_replica(super);
	return rfs_has_replica(super) == !!replica &&
	       rfs_slow_sizes_ok(le64_to_cpu(super->slow_blocks), replica);
}

static int rfs_super_ok(const struct rfs_fs *fs, const struct rfs_super *super)
{
	bool oob = fs->geo.oob_bytes >= RFS_OOB_BYTES;
	struct rfs_layout layout;

	if (le32_to_cpu(super->head.magic) != RFS_BLOCK_MAGIC)
		return -EINVAL;	/* no RFS */
	if (!rfs_head_ok(&super->head, rfs_volume_of(super), RFS_SUPER))
		return -EUCLEAN;
	if (le32_to_cpu(super->version) != RFS_FORMAT_VERSION ||
	    le32_to_cpu(super->incompat) & ~RFS_INCOMPAT_KNOWN)
		return -EOPNOTSUPP;
	if (le32_to_cpu(super->ways) > (oob ? RFS_WAYS_MAX : 1))
		return -EUCLEAN;
	rfs_layout(le32_to_cpu(super->zones), le32_to_cpu(super->zone_cap),
		   oob, le32_to_cpu(super->ways), rfs_has_runs(super), &layout);
	if (le32_to_cpu(super->zones) > fs->geo.zones ||
	    le32_to_cpu(super->zones) < layout.need_zones ||
	    le32_to_cpu(super->zone_blocks) != fs->geo.zone_blocks ||
	    le32_to_cpu(super->zone_cap) > fs->geo.zone_blocks ||
	    le32_to_cpu(super->max_inodes) != layout.max_inodes ||
	    le32_to_cpu(super->dirty_max) != layout.dirty_max ||
	    le32_to_cpu(super->max_nodes) != layout.max_nodes ||
	    !(le32_to_cpu(super->incompat) & RFS_INCOMPAT_SUMMARY) != oob ||
	    !rfs_super_slow_ok(super))
		return -EUCLEAN;
	return 0;
}

/*
 * Finds the newest valid superblock: a zone that has become read-only keeps that of a volume before
 * this one. -EINVAL says that there is none, -EOPNOTSUPP that it is of another format, and -EUCLEAN
 * that there is one, damaged or of another device.
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
			ret = rfs_super_ok(fs, &fs->super);
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
