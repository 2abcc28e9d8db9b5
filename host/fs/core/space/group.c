// SPDX-License-Identifier: GPL-2.0-or-later
/* These functions decide which data goes together: SFS's policy on a volume (SFS 3.3 to 3.5). */
#include "space/space.h"

const struct rfs_policy rfs_policy_default = {
	.groups = 4,
	.gc = RFS_GC_COST_BENEFIT,
	.quantize = RFS_Q_BALANCED,
};

u64 rfs_ptr_ticks(const struct rfs_ptr *ptr)
{
	u64 ticks = (u64)le32_to_cpu(ptr->time) << 8;

	/* A pointer that leads to both devices has other bits in frac. */
	return ptr->kind == RFS_PTR_BOTH ? ticks : ticks | ptr->frac;
}

static u64 rfs_zone_age(u64 now, u64 then)
{
	return now > then ? now - then : 0;
}

static u64 rfs_ptr_hotness(const struct rfs_ptr *ptr, u64 now)
{
	return rfs_hotness(rfs_ptr_wcount(ptr),
			   rfs_zone_age(now, rfs_ptr_ticks(ptr)));
}

/*
 * Chooses the stream for a block that is written or copied now by what is known of the block, or of
 * its file if it is new.
 */
u32 rfs_data_stream(const struct rfs_fs *fs, const struct rfs_dinode *di,
		    const struct rfs_ptr *ptr, u64 now)
{
	u64 hot;

	if (fs->policy.groups == 1)
		return RFS_S_DATA;
	if (rfs_ptr_wcount(ptr)) {
		hot = rfs_ptr_hotness(ptr, now);
	} else {
		u64 last = rfs_ticks(fs, le64_to_cpu(di->last_write));

		hot = rfs_hotness(le64_to_cpu(di->wcount),
				  rfs_zone_age(now, last));
	}
	return RFS_S_DATA + rfs_group_of(fs->policy.quantize, fs->group_hot,
					  fs->policy.groups, hot);
}

/* Of a new block nothing is known, so only others say what groups are for. */
void rfs_count_traffic(struct rfs_fs *fs, const struct rfs_ptr *ptr, u64 now)
{
	if (fs->policy.quantize == RFS_Q_BALANCED && rfs_ptr_wcount(ptr))
		rfs_traffic_add(&fs->traffic, rfs_ptr_hotness(ptr, now));
}

/*
 * Fills in what a victim is judged by. No counts are kept of metadata, so it counts as written
 * once, when its zone was opened.
 */
void rfs_segment(const struct rfs_fs *fs, u32 nr, u64 now,
		 struct rfs_segment *out)
{
	const struct rfs_zone_info *z = &fs->zone[nr];

	out->live = z->live;
	out->cap = z->cap;
	out->age = rfs_zone_age(now, z->last);
	out->hot = z->stream < RFS_S_DATA ? rfs_hotness(1, out->age) :
		   rfs_hotness(z->sum_wcount,
			       rfs_zone_age(now * z->live, z->sum_time));
}

/*
 * Finds the hotness of each group anew, from what was written or from filled zones. If there are
 * many zones, every nth stands for the others.
 */
void rfs_regroup(struct rfs_fs *fs)
{
	struct rfs_segment seg;
	u64 now = rfs_now(fs);
	u32 step = fs->geo.zones / RFS_HOT_ZONES + 1, nr, n = 0;

	if (fs->policy.groups == 1)
		return;
	if (fs->policy.quantize == RFS_Q_BALANCED) {
		rfs_balance(&fs->traffic, fs->geo.zones / RFS_WINDOW *
					  le32_to_cpu(fs->super.zone_cap),
			    fs->group_hot, fs->policy.groups);
		return;
	}
	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr += step) {
		const struct rfs_zone_info *z = &fs->zone[nr];

		if (z->state != RFS_Z_USED || z->stream < RFS_S_DATA ||
		    !z->live)
			continue;
		rfs_segment(fs, nr, now, &seg);
		fs->hot[n++] = seg.hot;
	}
	rfs_quantize(fs->policy.quantize, fs->hot, n, fs->group_hot,
		     fs->policy.groups);
}
