// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/space.h"
#include "home/home.h"
#include "tree/quota.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"

#define HASH_FIRST	4096	/* places of the table of metadata blocks, which grows */
#define CLEAN_MAX	2048	/* clean metadata blocks that are kept */
#define DIRTY_MORE	8192	/* and dirty ones, where their room does not say less */

static void *rfs_table_alloc(size_t n, size_t bytes)
{
	return rfs_alloc((n ? n : 1) * bytes);
}

static const struct rfs_upcalls upcalls = {
	.charge = rfs_quota_add,
};

int rfs_tables_alloc(struct rfs_fs *fs)
{
	u32 nr, usable = 0, cap = le32_to_cpu(fs->super.zone_cap), reserve;
	int ret;

	fs->up = &upcalls;
	rfs_streams_init(fs);
	rfs_policy_set(fs, &rfs_policy_default);
	fs->geo.zones = le32_to_cpu(fs->super.zones);
	fs->hash_size = HASH_FIRST;
	fs->hash = rfs_table_alloc(HASH_FIRST, sizeof(*fs->hash));
	fs->zone = rfs_table_alloc(fs->geo.zones, sizeof(*fs->zone));
	fs->hot = rfs_alloc(RFS_HOT_ZONES * sizeof(*fs->hot));
	fs->timb = rfs_table_alloc(fs->timb_blocks, sizeof(*fs->timb));
	fs->timb_addr = rfs_table_alloc(fs->timb_blocks,
					sizeof(*fs->timb_addr));
	fs->ztab_addr = rfs_table_alloc(fs->ztab_blocks,
					sizeof(*fs->ztab_addr));
	fs->ztab = rfs_table_alloc((size_t)fs->ztab_blocks * RFS_ZTAB_ENTRIES,
				   sizeof(*fs->ztab));
	fs->log_most = min_t(u32, fs->dirty_max / 8, RFS_LOG_BLOCKS);
	fs->ioq = rfs_alloc(sizeof(*fs->ioq));
	if (rfs_early_alloc(fs) || rfs_log_alloc(fs) ||
	    rfs_bits_alloc(&fs->timb_due, fs->timb_blocks) || rfs_cp_alloc(fs))
		return -ENOMEM;
	if (!fs->hash || !fs->zone || !fs->hot || !fs->timb || !fs->timb_addr ||
	    !fs->ztab_addr || !fs->ztab || !fs->ioq || rfs_sets_alloc(fs))
		return -ENOMEM;
	fs->clean_max = CLEAN_MAX;
	fs->dirty_more = DIRTY_MORE;
	for (nr = 0; nr < fs->geo.zones; nr++) {
		struct rfs_dev_zone state;

		ret = fs->ops->report(fs->dev, nr, &state);
		if (ret)
			return ret;
		if (state.cap > fs->geo.zone_blocks || state.wp > state.cap)
			return -EIO;
		fs->zone[nr].cap = state.cap;
		fs->zone[nr].wp = state.wp;
		fs->zone[nr].cond = state.cond;
		fs->zone[nr].state = nr < RFS_CP_ZONES ? RFS_Z_CP : RFS_Z_FREE;
		if (nr >= RFS_CP_ZONES && state.cond == RFS_DEV_OK) {
			usable++;
			fs->free_zones++;
		}
	}
	fs->cp_mirror[0] = fs->zone[0].cond == RFS_DEV_OK ? 0 : 2;
	fs->cp_mirror[1] = fs->zone[1].cond == RFS_DEV_OK ? 1 : 2;
	fs->sums_each = rfs_sums_each(fs->geo.oob_bytes,
				      fs->geo.append_max);
	fs->holds = rfs_zone_holds(cap, fs->dirty_max, fs->sums_each);
	fs->low_zones = rfs_low_zones(cap, fs->dirty_max,
				      fs->timb_blocks + fs->ztab_blocks, 0,
				      fs->sums_each,
				      le32_to_cpu(fs->super.ways), fs->few);
	rfs_maps_add(fs, 0);
	reserve = rfs_zones_filled(le32_to_cpu(fs->super.ways), fs->few) + fs->low_zones;
	if (usable > reserve)
		fs->user_blocks = (u64)(usable - reserve) * fs->holds;
	fs->window_max = min((u64)fs->geo.zones * cap / 16,
			     (u64)20 * cap * fs->ways);
	fs->window_max = min(fs->window_max, (u32)(640U << 20) / RFS_BLOCK_BYTES);
	rfs_all_zones_changed(fs);
	return 0;
}

/*
 * Returns the active segment that goes on with a zone on the zone's way. A zone of data goes to
 * another group if need be.
 */
static struct rfs_active_seg *rfs_resume_seg(struct rfs_fs *fs, u32 stream,
					     u32 nr)
{
	u32 way = rfs_is_striped(stream) ? nr % fs->ways : 0, i;
	struct rfs_active_seg *seg = &fs->active[fs->active_of[stream]][way];

	if (stream < RFS_S_DATA)
		return seg;
	if (stream < RFS_S_DATA + fs->policy.groups && !seg->zone)
		return seg;
	for (i = 0; i < fs->policy.groups; i++) {
		seg = &fs->active[fs->active_of[RFS_S_DATA + i]][way];
		if (!seg->zone)
			break;
	}
	return seg;
}

/* Each stream goes on in its open zones, if they have room. */
void rfs_resume_zones(struct rfs_fs *fs)
{
	u32 nr;

	fs->free_zones = 0;
	fs->meta_zones = 0;
	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		struct rfs_zone_info *z = &fs->zone[nr];
		struct rfs_active_seg *seg = rfs_resume_seg(fs, z->stream, nr);

		if (z->state == RFS_Z_FREE) {
			if (z->cond != RFS_DEV_OK || z->cap < 2)
				z->state = RFS_Z_DEAD;
			else
				fs->free_zones++;
			/*
			 * The zone may have been kept: see rfs_keep_zones(), which only volumes
			 * with page metadata have.
			 */
			z->kept = z->wp && fs->geo.oob_bytes;
			continue;
		}
		fs->meta_zones += z->stream < RFS_S_DATA &&
				  z->cond == RFS_DEV_OK;
		if (z->state != RFS_Z_OPEN && !z->window)
			continue;
		z->state = RFS_Z_USED;
		if (!seg->zone && z->cond == RFS_DEV_OK &&
		    z->wp + 2 <= z->cap) {
			z->state = RFS_Z_OPEN;
			seg->zone = nr;
		}
	}
	rfs_all_zones_changed(fs);
}

/*
 * Orphans are freed one by one, with check-points as others have them, since there may be any
 * number.
 */
static int rfs_mount_free_orphans(struct rfs_fs *fs)
{
	int ret = 0;

	if (!fs->orphans || fs->ops->frees_orphans)
		return 0;
	while (!ret && fs->orphans) {
		ret = rfs_free_orphan(fs, fs->orphans);
		fs->recovered.orphans += !ret;
		rfs_cache_trim(fs, fs->clean_max);
	}
	return ret ? ret : rfs_checkpoint(fs, 0);
}

static int rfs_load_volume(struct rfs_fs *fs, bool read_only)
{
	int ret = rfs_super_load(fs);

	if (!ret && !read_only &&
	    le32_to_cpu(fs->super.ro_compat) & ~RFS_RO_COMPAT_KNOWN)
		ret = -EROFS;
	if (!ret)
		ret = rfs_tables_alloc(fs);
	if (!ret)
		ret = rfs_cp_load(fs);
	if (!ret)
		ret = rfs_home_load(fs, read_only);
	fs->read_only = read_only;
	fs->compact = rfs_has_pieces(&fs->super);
	if (!ret)
		ret = rfs_recover(fs);
	if (!ret && !read_only && !rfs_numbers_left(fs))
		ret = -EUCLEAN;
	if (ret)
		return ret;
	fs->version = ((fs->version >> RFS_EPOCH_SHIFT) + 1) << RFS_EPOCH_SHIFT;
	rfs_resume_zones(fs);
	if (read_only)
		return 0;
	/* What was found has to be durable before a zone is reset for it. */
	if (fs->geo.volatile_cache)
		ret = fs->ops->flush(fs->dev);
	if (!ret)
		ret = rfs_checkpoint(fs, 0);
	return ret ? ret : rfs_mount_free_orphans(fs);
}

int rfs_mount(const struct rfs_dev_ops *ops, void *dev,
	      const struct rfs_geometry *geo, bool read_only, u32 inject,
	      struct rfs_fs **out)
{
	struct rfs_fs *fs = rfs_volume_new(ops, dev, geo);
	int ret;

	*out = NULL;
	if (!fs)
		return -ENOMEM;
	rfs_inject(fs, inject);
	ret = rfs_limits_ok(geo) || read_only ? 0 : -EMFILE;
	if (fs->geo.oob_bytes < RFS_OOB_BYTES)
		fs->geo.oob_bytes = 0;
	if (!ret)
		ret = rfs_load_volume(fs, read_only);
	if (ret) {
		rfs_unmount_nosync(fs);
		return ret;
	}
	*out = fs;
	return 0;
}

void rfs_unmount_nosync(struct rfs_fs *fs)
{
	u32 nr;

	rfs_log_free(fs);
	rfs_home_free(fs);
	while (!list_empty(&fs->dirty.bufs))
		rfs_buf_drop(fs, list_first_entry(&fs->dirty.bufs,
						  struct rfs_buf, list));
	rfs_cache_trim(fs, 0);
	rfs_sums_drop(fs);
	rfs_quota_forget(fs);
	for (nr = 0; fs->zone && nr < fs->geo.zones; nr++)
		rfs_free(fs->zone[nr].sum_at);
	rfs_free(fs->zone);
	rfs_free(fs->hot);
	for (nr = 0; fs->timb && nr < fs->timb_blocks; nr++)
		rfs_free(fs->timb[nr]);
	rfs_free(fs->timb);
	rfs_free(fs->hash);
	rfs_free(fs->timb_addr);
	rfs_bits_free(&fs->timb_due);
	rfs_bits_free(&fs->listed);
	rfs_sets_free(fs);
	rfs_free(fs->ztab_addr);
	rfs_free(fs->ztab);
	rfs_free(fs->ioq);
	rfs_free(fs->early);
	rfs_free(fs->pending.place);
	rfs_free(fs->frozen.place);
	rfs_free(fs->tomb);
	rfs_free(fs);
}
