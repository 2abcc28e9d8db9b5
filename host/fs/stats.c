// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/fs/rfs/DEVICE has a file for each counter, and debugfs has tables. The tables of README.md
 * list them all.
 */
#include <linux/debugfs.h>
#include <linux/kobject.h>
#include <linux/seq_file.h>
#include <linux/sysfs.h>

#include "rfsm.h"
#include "slow.h"
#include "super.h"

struct counter {
	struct attribute attr;
	size_t at;		/* in struct rfs_fs; 0: it is another */
	ssize_t (*show)(struct rfs_sb_info *sbi, char *to);
	enum rfsm_cause cause;	/* of check-points, if it is neither of these */
};

#define FILE(file)	.attr = { .name = #file, .mode = 0444 }
/* This counter is a number of struct rfs_fs with 64 bits. */
#define COUNTER(file, field) \
	static struct counter stat_##file = { \
		FILE(file), .at = offsetof(struct rfs_fs, field), \
	}; \
	static_assert(sizeof(((struct rfs_fs *)0)->field) == sizeof(u64))
#define SHOWN(file) \
	static struct counter stat_##file = { \
		FILE(file), .show = rfsm_show_##file, \
	}
#define CAUSE(file, which) \
	static struct counter stat_##file = { FILE(file), .cause = which }

static u64 rfsm_stat_total(const u64 *of)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < RFS_GROUPS_MAX; i++)
		sum += of[i];
	return sum;
}

/* Shows thousandths as a decimal fraction. */
static ssize_t rfsm_stat_ratio(u64 part, u64 whole, char *to)
{
	u64 value = whole ? div64_u64(1000 * part, whole) : 0;

	return sysfs_emit(to, "%llu.%03llu\n", value / 1000, value % 1000);
}

static ssize_t rfsm_show_written_data(struct rfs_sb_info *sbi, char *to)
{
	return sysfs_emit(to, "%llu\n", rfsm_stat_total(sbi->fs->stats.data));
}

SHOWN(written_data);

static ssize_t rfsm_show_written_copies(struct rfs_sb_info *sbi, char *to)
{
	return sysfs_emit(to, "%llu\n", rfsm_stat_total(sbi->fs->stats.copies));
}

SHOWN(written_copies);

COUNTER(written_log, stats.written[RFS_LOG]);
COUNTER(written_directories, stats.written[RFS_DIR]);
COUNTER(written_index, stats.written[RFS_INDEX]);
COUNTER(written_inodes, stats.written[RFS_INODES]);
COUNTER(written_attributes, stats.written[RFS_XATTR]);
COUNTER(written_quotas, stats.written[RFS_QUOTA]);
COUNTER(written_pieces, stats.written[RFS_DIFF]);
COUNTER(written_inode_map, stats.written[RFS_IMAP]);
COUNTER(written_node_map, stats.written[RFS_NMAP]);
COUNTER(written_timb, stats.written[RFS_TIMB]);
COUNTER(written_zone_table, stats.written[RFS_ZTAB]);
COUNTER(written_summaries, stats.written[RFS_SUMMARY]);
COUNTER(written_checkpoints, stats.written[RFS_CP]);
COUNTER(copied_inode_map, stats.copied_maps);
COUNTER(cleaned_zones, stats.victims);
COUNTER(clean_reads, stats.clean_reads);
COUNTER(clean_left, stats.clean_left);
COUNTER(resets, stats.resets);
COUNTER(waited_reads, stats.waited_reads);
COUNTER(folded_leaves, stats.folded);
COUNTER(pieces, stats.pieces);
COUNTER(piece_bytes, stats.piece_bytes);
COUNTER(piece_merges, stats.merged);
COUNTER(checkpoints, stats.checkpoints);
COUNTER(recovery_pages_read, recovered.pages_read);
COUNTER(recovery_pages_applied, recovered.pages_applied);
COUNTER(recovery_records, recovered.records);
COUNTER(recovery_scan_ns, recovered.scan_ns);
COUNTER(recovery_log_ns, recovered.log_ns);
COUNTER(recovery_data_ns, recovered.data_ns);

static ssize_t rfsm_show_copies_a_new_block(struct rfs_sb_info *sbi, char *to)
{
	return rfsm_stat_ratio(rfsm_stat_total(sbi->fs->stats.copies),
			       rfsm_stat_total(sbi->fs->stats.data), to);
}

SHOWN(copies_a_new_block);

/* This is SFS's write cost (4.1), where all blocks cost the same. */
static ssize_t rfsm_show_write_cost(struct rfs_sb_info *sbi, char *to)
{
	u64 new = rfsm_stat_total(sbi->fs->stats.data);

	return rfsm_stat_ratio(new + sbi->fs->stats.clean_reads +
			       rfsm_stat_total(sbi->fs->stats.copies), new, to);
}

SHOWN(write_cost);

static ssize_t rfsm_show_atomic_writes(struct rfs_sb_info *sbi, char *to)
{
	return sysfs_emit(to, "%llu\n", atomic64_read(&sbi->atomic_writes));
}

SHOWN(atomic_writes);

static ssize_t rfsm_show_flash_reads(struct rfs_sb_info *sbi, char *to)
{
	return sysfs_emit(to, "%llu\n", rfsm_flash_reads(sbi));
}

SHOWN(flash_reads);

static ssize_t rfsm_show_home_reads(struct rfs_sb_info *sbi, char *to)
{
	return sysfs_emit(to, "%llu\n", rfsm_home_reads(sbi));
}

SHOWN(home_reads);

COUNTER(home_writes, stats.homed);
COUNTER(home_evictions, stats.evicted);
COUNTER(home_fills, stats.filled);
COUNTER(home_bypassed, stats.bypassed);
COUNTER(replicas, stats.replicas);
COUNTER(replica_blocks, stats.replicated);
COUNTER(replicas_dropped, stats.replicas_dropped);
COUNTER(replicas_failed, stats.replicas_failed);

static ssize_t rfsm_show_home_errors(struct rfs_sb_info *sbi, char *to)
{
	return sysfs_emit(to, "%llu\n", rfsm_home_errors(sbi));
}

SHOWN(home_errors);

static ssize_t rfsm_show_free_zones(struct rfs_sb_info *sbi, char *to)
{
	return sysfs_emit(to, "%u\n", sbi->fs->free_zones);
}

SHOWN(free_zones);

static ssize_t rfsm_show_zones_to_be_free(struct rfs_sb_info *sbi, char *to)
{
	return sysfs_emit(to, "%u\n", sbi->fs->set[RFS_SET_GAINED].count);
}

SHOWN(zones_to_be_free);

CAUSE(checkpoints_sync, RFSM_CP_SYNC);
CAUSE(checkpoints_interval, RFSM_CP_INTERVAL);
CAUSE(checkpoints_bound, RFSM_CP_BOUND);
CAUSE(checkpoints_room, RFSM_CP_ROOM);
CAUSE(checkpoints_unmount, RFSM_CP_UNMOUNT);

static struct attribute *stat_attrs[] = {
	&stat_written_data.attr,
	&stat_written_copies.attr,
	&stat_atomic_writes.attr,
	&stat_written_log.attr,
	&stat_written_directories.attr,
	&stat_written_index.attr,
	&stat_written_inodes.attr,
	&stat_written_attributes.attr,
	&stat_written_quotas.attr,
	&stat_written_pieces.attr,
	&stat_written_inode_map.attr,
	&stat_written_node_map.attr,
	&stat_written_timb.attr,
	&stat_written_zone_table.attr,
	&stat_written_summaries.attr,
	&stat_written_checkpoints.attr,
	&stat_copied_inode_map.attr,
	&stat_cleaned_zones.attr,
	&stat_clean_reads.attr,
	&stat_clean_left.attr,
	&stat_copies_a_new_block.attr,
	&stat_write_cost.attr,
	&stat_resets.attr,
	&stat_waited_reads.attr,
	&stat_folded_leaves.attr,
	&stat_pieces.attr,
	&stat_piece_bytes.attr,
	&stat_piece_merges.attr,
	&stat_flash_reads.attr,
	&stat_home_reads.attr,
	&stat_home_writes.attr,
	&stat_home_evictions.attr,
	&stat_home_fills.attr,
	&stat_home_bypassed.attr,
	&stat_replicas.attr,
	&stat_replica_blocks.attr,
	&stat_replicas_dropped.attr,
	&stat_replicas_failed.attr,
	&stat_home_errors.attr,
	&stat_free_zones.attr,
	&stat_zones_to_be_free.attr,
	&stat_checkpoints.attr,
	&stat_checkpoints_sync.attr,
	&stat_checkpoints_interval.attr,
	&stat_checkpoints_bound.attr,
	&stat_checkpoints_room.attr,
	&stat_checkpoints_unmount.attr,
	&stat_recovery_pages_read.attr,
	&stat_recovery_pages_applied.attr,
	&stat_recovery_records.attr,
	&stat_recovery_scan_ns.attr,
	&stat_recovery_log_ns.attr,
	&stat_recovery_data_ns.attr,
	NULL
};
ATTRIBUTE_GROUPS(stat);

static ssize_t rfsm_stat_show(struct kobject *kobj, struct attribute *attr,
			      char *to)
{
	struct rfs_sb_info *sbi = container_of(kobj, struct rfs_sb_info, kobj);
	const struct counter *c = container_of(attr, struct counter, attr);
	ssize_t bytes;

	rfsm_lock_query(sbi);
	if (c->show)
		bytes = c->show(sbi, to);
	else if (c->at)
		bytes = sysfs_emit(to, "%llu\n",
				   *(u64 *)((char *)sbi->fs + c->at));
	else
		bytes = sysfs_emit(to, "%llu\n", sbi->causes[c->cause]);
	rfsm_unlock(sbi);
	return bytes;
}

static void rfsm_stat_release(struct kobject *kobj)
{
	complete(&container_of(kobj, struct rfs_sb_info, kobj)->kobj_gone);
}

static const struct sysfs_ops stat_ops = { .show = rfsm_stat_show };

static const struct kobj_type stat_type = {
	.default_groups = stat_groups,
	.sysfs_ops = &stat_ops,
	.release = rfsm_stat_release,
};

#define BARS	20	/* of 5% each */

/* This counts the zones by the part of each that is in use, as SFS's figure 10 does. */
static int rfsm_utilization_show(struct seq_file *seq, void *unused)
{
	struct rfs_sb_info *sbi = seq->private;
	u32 zones[BARS] = { 0 };
	u32 nr;

	rfsm_lock_query(sbi);
	for (nr = RFS_CP_ZONES; nr < sbi->fs->geo.zones; nr++) {
		const struct rfs_zone_info *z = &sbi->fs->zone[nr];

		if (z->state == RFS_Z_USED && z->cap)
			zones[min((u64)z->live * BARS / z->cap, BARS - 1)]++;
	}
	rfsm_unlock(sbi);
	for (nr = 0; nr < BARS; nr++)
		seq_printf(seq, "%u%% %u\n", nr * 100 / BARS, zones[nr]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rfsm_utilization);

static int rfsm_groups_show(struct seq_file *seq, void *unused)
{
	struct rfs_sb_info *sbi = seq->private;
	u32 i;

	seq_puts(seq, "group data copies hotness\n");
	rfsm_lock_query(sbi);
	for (i = 0; i < sbi->fs->policy.groups; i++)
		seq_printf(seq, "%u %llu %llu %llu\n", i,
			   sbi->fs->stats.data[i],
			   sbi->fs->stats.copies[i], sbi->fs->group_hot[i]);
	rfsm_unlock(sbi);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rfsm_groups);

static struct kobject *parent;	/* /sys/fs/rfs */
static struct dentry *debug_parent;	/* /sys/kernel/debug/rfs */

int rfsm_stats_init(struct rfs_sb_info *sbi)
{
	int ret;

	init_completion(&sbi->kobj_gone);
	ret = kobject_init_and_add(&sbi->kobj, &stat_type, parent, "%s",
				   sbi->sb->s_id);
	sbi->kobj_there = !ret;
	if (ret) {	/* it is not in sysfs, so kobject_del() is not for it */
		kobject_put(&sbi->kobj);
		wait_for_completion(&sbi->kobj_gone);
		return ret;
	}
	sbi->debug = debugfs_create_dir(sbi->sb->s_id, debug_parent);
	debugfs_create_file("groups", 0444, sbi->debug, sbi, &rfsm_groups_fops);
	debugfs_create_file("utilization", 0444, sbi->debug, sbi,
			    &rfsm_utilization_fops);
	return 0;
}

/* Returns when nobody reads them any more. */
void rfsm_stats_exit(struct rfs_sb_info *sbi)
{
	if (!sbi->kobj_there)
		return;
	sbi->kobj_there = false;
	debugfs_remove(sbi->debug);
	kobject_del(&sbi->kobj);
	kobject_put(&sbi->kobj);
	wait_for_completion(&sbi->kobj_gone);
}

int __init rfsm_stats_module_init(void)
{
	parent = kobject_create_and_add("rfs", fs_kobj);
	if (!parent)
		return -ENOMEM;
	debug_parent = debugfs_create_dir("rfs", NULL);
	return 0;
}

void rfsm_stats_module_exit(void)
{
	debugfs_remove(debug_parent);
	kobject_put(parent);
}
