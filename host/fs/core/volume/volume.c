// SPDX-License-Identifier: GPL-2.0-or-later
/* Blocks, page metadata and summaries take their versions, times and keys from the volume here. */
#include "volume/volume.h"

#define INFLIGHT_MOST	4096	/* blocks of files, copies and metadata */

u32 rfs_active_max(const struct rfs_geometry *geo)
{
	u32 most = ~0U;

	if (geo->max_open)
		most = geo->max_open - 1;
	if (geo->max_active)
		most = min(most, geo->max_active - RFS_CP_MIRRORS);
	return most;
}

u32 rfs_active_many(u32 ways, u32 cap)
{
	return 2 * (rfs_meta_filled(ways) + RFS_GROUPS_MAX * ways) +
	       INFLIGHT_MOST / max(cap, 1U);
}

u32 rfs_ways_allowed(const struct rfs_geometry *geo, u32 cap, u32 ways)
{
	if (geo->oob_bytes < RFS_OOB_BYTES)
		return 1;
	while (ways > 1 && rfs_active_max(geo) < rfs_active_many(ways, cap))
		ways--;
	return max(ways, 1U);
}

u64 rfs_next_version(struct rfs_fs *fs, u32 count)
{
	u64 first = fs->version;

	fs->version += count;
	return first;
}

static u32 rfs_low_with(const struct rfs_fs *fs, u64 maps)
{
	return rfs_low_zones(le32_to_cpu(fs->super.zone_cap), fs->dirty_max,
			     (u64)fs->timb_blocks + fs->ztab_blocks, maps,
			     fs->sums_each, le32_to_cpu(fs->super.ways), fs->few);
}

int rfs_timb_make(struct rfs_fs *fs, u32 at)
{
	u64 **words = &fs->timb[at / RFS_MAP_ENTRIES];

	if (!*words)
		*words = rfs_alloc_nofail(RFS_MAP_ENTRIES * sizeof(**words));
	return *words ? 0 : -ENOMEM;
}

void rfs_timb_set(struct rfs_fs *fs, u32 at, u64 word)
{
	fs->timb[at / RFS_MAP_ENTRIES][at % RFS_MAP_ENTRIES] = word;
	rfs_bits_put(&fs->timb_due, at / RFS_MAP_ENTRIES, true);
}

void rfs_maps_add(struct rfs_fs *fs, u32 blocks)
{
	u64 tables = (u64)fs->timb_blocks + fs->ztab_blocks;

	fs->maps += blocks;
	fs->room_kept = fs->dirty_max / 2 + RFS_OP_BLOCKS + fs->maps +
			rfs_scratch(fs->holds, fs->maps, tables, fs->sums_each,
				    le32_to_cpu(fs->super.ways));
	fs->gain_now = rfs_compact_gain(fs->maps, tables, fs->sums_each,
					le32_to_cpu(fs->super.ways));
	fs->gain_next = rfs_compact_gain((u64)fs->maps + rfs_maps_next(fs),
					 tables, fs->sums_each,
					 le32_to_cpu(fs->super.ways));
	fs->low_now = rfs_low_with(fs, fs->maps);
	fs->low_next = rfs_low_with(fs, (u64)fs->maps + rfs_maps_next(fs));
}

/* Makes the page metadata of a block that is not data, and takes a stamp for it. */
void rfs_oob_meta(struct rfs_fs *fs, struct rfs_oob *oob,
		  const struct rfs_head *head)
{
	u64 stamp = rfs_next_version(fs, 1);

	rfs_oob_of_head(oob, head, stamp, fs->ops->now(fs->dev));
	oob->flags = rfs_oob_next(fs);
}

static void rfs_list_init(struct rfs_list *list)
{
	INIT_LIST_HEAD(&list->bufs);
	list->seen = &list->bufs;
	list->early = &list->bufs;
}

struct rfs_fs *rfs_volume_new(const struct rfs_dev_ops *ops, void *dev,
			      const struct rfs_geometry *geo)
{
	struct rfs_fs *fs = rfs_alloc(sizeof(*fs));

	if (!fs)
		return NULL;
	fs->ops = ops;
	fs->dev = dev;
	fs->geo = *geo;
	rfs_list_init(&fs->dirty);
	rfs_list_init(&fs->clean);
	INIT_LIST_HEAD(&fs->sums);
	return fs;
}

void rfs_head_init(struct rfs_fs *fs, struct rfs_head *head, u8 type, u32 ino,
		   u32 gen, u64 off)
{
	memset(head, 0, sizeof(*head));
	head->magic = cpu_to_le32(RFS_BLOCK_MAGIC);
	head->volume = cpu_to_le32(fs->volume);
	head->type = type;
	head->ino = cpu_to_le32(ino);
	head->gen = cpu_to_le32(gen);
	head->off = cpu_to_le64(off);
	memcpy(head->uuid, fs->super.uuid + sizeof(head->volume),
	       sizeof(head->uuid));
}

/*
 * Writes the number of the check-point into each block that a check-point writes, since --rescan
 * has to know it.
 */
void rfs_head_number(struct rfs_fs *fs, struct rfs_head *head, bool early)
{
	u64 nth = min(fs->cp_nth, RFS_NTH_MAX);

	if (early)
		nth |= RFS_NTH_EARLY;
	fs->cp_nth++;
	head->addr = cpu_to_le64(fs->lsn | nth << RFS_LSN_BITS);
	head->prev = cpu_to_le32((u32)(fs->cp_seq + 1));
}

u64 rfs_name_hash(const struct rfs_fs *fs, const void *name, u32 len)
{
	return rfs_siphash(fs->super.hash_key, name, len);
}

/*
 * Without page metadata a file's data lies among summaries. After a torn append it is read in the
 * search for the next summary. Whoever writes the file knows the volume's uuid and can guess the
 * address, but has never seen a code.
 */
static u64 rfs_summary_code(const struct rfs_fs *fs,
			    const struct rfs_head *head)
{
	struct rfs_head copy = *head;

	copy.off = 0;
	copy.crc = 0;
	return rfs_siphash(fs->super.summary_key, &copy, sizeof(copy));
}

void rfs_summary_seal(const struct rfs_fs *fs, struct rfs_summary *sum,
		      u64 stamp)
{
	sum->head.stamp = cpu_to_le64(stamp);
	sum->head.off = cpu_to_le64(rfs_summary_code(fs, &sum->head));
	rfs_head_seal(&sum->head, stamp);
}

bool rfs_summary_ok(const struct rfs_fs *fs, const struct rfs_summary *sum,
		    u64 addr)
{
	return rfs_head_ok(&sum->head, fs->volume, RFS_SUMMARY) &&
	       le64_to_cpu(sum->head.addr) == addr &&
	       (rfs_is_keyless(fs) || le64_to_cpu(sum->head.off) ==
			       rfs_summary_code(fs, &sum->head));
}

/* Converts a time in ns to ticks of 1/256 s since the volume was created. */
u64 rfs_ticks(const struct rfs_fs *fs, u64 time)
{
	u64 created = le64_to_cpu(fs->super.created), age;

	/* The time may have been set to one long ago. */
	if ((s64)time <= (s64)created)
		return 0;
	age = time - created;
	return min(age / 1000000000 << 8 | (age % 1000000000 << 8) / 1000000000,
		   (1ULL << 40) - 1);
}

/*
 * Ages compare times of different mounts. So the clock of a volume does not go back when that of
 * the machine does.
 */
u64 rfs_clock(const struct rfs_fs *fs)
{
	return fs->ops->now(fs->dev) + fs->behind;
}

u64 rfs_now(const struct rfs_fs *fs)
{
	return rfs_ticks(fs, rfs_clock(fs));
}
