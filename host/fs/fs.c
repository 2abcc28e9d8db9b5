// SPDX-License-Identifier: GPL-2.0
/*
 * Volumes are mounted here. The rest are options and the operations that Linux has for a volume as
 * a whole.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/statfs.h>
#include <linux/string_choices.h>

#include "rfsm.h"
#include "error.h"
#include "slow.h"
#include "wake.h"
#include "checkpoint.h"
#include "update.h"
#include "append.h"
#include "bypass.h"
#include "read.h"
#include "pages.h"
#include "inode.h"
#include "super.h"
#include "trace.h"
#include "buffer/buffer.h"
#include "space/space.h"
#include "home/home.h"
#include "checkpoint/checkpoint.h"

/*
 * One of so many pages of the machine's memory may be a dirty block of metadata. Names of a large
 * directory are all over its blocks, and each check-point writes all blocks again that have
 * changed.
 */
#define DIRTY_SHARE	8

static struct kmem_cache *inode_cache;

/*
 * Pages that writeback has put off are written first, as fsync() does it. Then the log has all
 * changes that are not durable, unless some times are in no record.
 */
static int rfsm_sync_fs(struct super_block *sb, int wait)
{
	struct rfs_sb_info *sbi = RFS_SB(sb);
	int ret;

	if (!wait)
		return 0;
	while (READ_ONCE(sbi->deferred) && !sbi->fs->read_only) {
		WRITE_ONCE(sbi->deferred, false);
		ret = rfsm_wait_room(sbi, false);
		if (ret)
			return ret < 0 ? ret : -ENOSPC;
		sync_inodes_sb(sb);
	}
	if (!rfsm_log_is_enough(sbi))
		return rfsm_sync(sbi, 0);
	rfsm_update(sbi, ret, rfsm_log_sync(sbi));
	return ret;
}

static int rfsm_statfs(struct dentry *dentry, struct kstatfs *st)
{
	struct rfs_sb_info *sbi = RFS_SB(dentry->d_sb);
	struct rfs_fs *fs = sbi->fs;
	struct rfs_usage usage;
	unsigned int seq;
	u64 used, left;

	do {
		seq = read_seqcount_begin(&sbi->usage_seq);
		usage = sbi->usage;
		left = sbi->home_left;
	} while (read_seqcount_retry(&sbi->usage_seq, seq));
	st->f_type = RFS_BLOCK_MAGIC;
	st->f_bsize = RFS_BLOCK_BYTES;
	st->f_blocks = usage.user_blocks;
	if (fs->home) {
		st->f_blocks = fs->home->blocks;
		st->f_bfree = left;
		st->f_bavail = left;
	} else {
		used = rfs_used_then(fs, &usage, 0, 0);
		st->f_bfree = st->f_blocks - min(used, st->f_blocks);
		st->f_bavail = rfs_available_then(fs, &usage);
	}
	st->f_files = le32_to_cpu(fs->super.max_inodes) - RFS_ROOT_INO;
	st->f_ffree = st->f_files - min(usage.inodes, st->f_files);
	st->f_namelen = RFS_NAME_MAX;
	st->f_fsid = uuid_to_fsid(fs->super.uuid);
	return 0;
}

static const char *const error_names[] = {
	[RFSM_ERRORS_RO] = "remount-ro",
	[RFSM_ERRORS_PANIC] = "panic",
	[RFSM_ERRORS_CONTINUE] = "continue",
};

static const char *const gc_names[] = {
	[RFS_GC_COST_HOTNESS] = "cost-hotness",
	[RFS_GC_COST_BENEFIT] = "cost-benefit",
	[RFS_GC_GREEDY] = "greedy",
};

static const char *const quantize_names[] = {
	[RFS_Q_ITERATIVE] = "iterative",
	[RFS_Q_EQUI_WIDTH] = "equi-width",
	[RFS_Q_EQUI_HEIGHT] = "equi-height",
	[RFS_Q_BALANCED] = "balanced",
};

static int rfsm_show_options(struct seq_file *seq, struct dentry *root)
{
	const struct rfs_sb_info *sbi = RFS_SB(root->d_sb);

	seq_printf(seq, ",commit=%u,errors=%s", sbi->opt.commit,
		   error_names[sbi->opt.errors]);
	seq_printf(seq, ",compact=%s", str_on_off(sbi->opt.compact));
	seq_printf(seq, ",groups=%u,gc=%s,quantize=%s", sbi->opt.policy.groups,
		   gc_names[sbi->opt.policy.gc],
		   quantize_names[sbi->opt.policy.quantize]);
	if (sbi->opt.quota & 1U << RFS_QUOTA_USER)
		seq_puts(seq, ",usrquota");
	if (sbi->opt.quota & 1U << RFS_QUOTA_GROUP)
		seq_puts(seq, ",grpquota");
	if (*sbi->opt.slow)
		seq_show_option(seq, "slow", sbi->opt.slow);
	if (sbi->opt.bypass)
		seq_printf(seq, ",bypass=%u", sbi->opt.bypass);
	return 0;
}

static struct inode *rfsm_alloc_inode(struct super_block *sb)
{
	struct rfs_inode_info *ri = alloc_inode_sb(sb, inode_cache, GFP_KERNEL);

	if (!ri)
		return NULL;
	ri->rsv_holes = 0;
	ri->round = 0;
	ri->taken = 0;
	ri->rsv_pages = 0;
	ri->reserved = 0;
	ri->blocks = 0;
	ri->fresh = 0;
	ri->flags = 0;
	ri->next = 0;
	ri->deferred = false;
	ri->session = NULL;
	ri->session_size = 0;
	ri->bypassed = 0;
	atomic64_set(&ri->settled_by, 0);
	return &ri->vfs;
}

static void rfsm_free_inode(struct inode *inode)
{
	kmem_cache_free(inode_cache, RFS_I(inode));
}

static void rfsm_init_once(void *memory)
{
	struct rfs_inode_info *ri = memory;

	inode_init_once(&ri->vfs);
}

/* Clean metadata blocks can be dropped, since they can be read again. */
static unsigned long rfsm_count_cached(struct shrinker *shrinker,
				       struct shrink_control *sc)
{
	const struct rfs_sb_info *sbi = shrinker->private_data;

	return READ_ONCE(sbi->fs->clean.count);
}

/* Reclaim calls this, so it does not wait for the lock: whoever holds it may wait for memory. */
static unsigned long rfsm_free_cached(struct shrinker *shrinker,
				      struct shrink_control *sc)
{
	struct rfs_sb_info *sbi = shrinker->private_data;
	u32 before, count;

	if (!mutex_trylock(&sbi->lock))
		return SHRINK_STOP;
	rfsm_memory_held(sbi);
	before = sbi->fs->clean.count;
	count = min_t(u64, sc->nr_to_scan, before);
	rfs_cache_trim(sbi->fs, before - count);
	rfsm_memory_released(sbi);
	mutex_unlock(&sbi->lock);
	return count;
}

/* Metadata stays in memory until there is a better use for the memory. */
static int rfsm_shrinker_start(struct rfs_sb_info *sbi)
{
	sbi->shrinker = shrinker_alloc(0, "rfs-meta:%pg", sbi->sb->s_bdev);
	if (!sbi->shrinker)
		return -ENOMEM;
	sbi->shrinker->count_objects = rfsm_count_cached;
	sbi->shrinker->scan_objects = rfsm_free_cached;
	sbi->shrinker->private_data = sbi;
	shrinker_register(sbi->shrinker);
	return 0;
}

static void rfsm_shrinker_stop(struct rfs_sb_info *sbi)
{
	if (sbi->shrinker)
		shrinker_free(sbi->shrinker);
	sbi->shrinker = NULL;
}

/* All inodes are gone, so the check-point is the last. */
static void rfsm_put_super(struct super_block *sb)
{
	struct rfs_sb_info *sbi = RFS_SB(sb);

	rfsm_thread_stop(sbi);
	rfsm_fill_exit(sbi);
	if (!sbi->fs->read_only)
		rfsm_sync(sbi, RFS_CP_UNMOUNT);
	rfsm_stats_exit(sbi);
	rfsm_append_exit(sbi);
	rfsm_shrinker_stop(sbi);
	rfs_unmount_nosync(sbi->fs);
	sbi->fs = NULL;
}

static int rfsm_freeze_fs(struct super_block *sb)
{
	return sb_rdonly(sb) ? 0 : rfsm_sync(RFS_SB(sb), RFS_CP_UNMOUNT);
}

/* Linux calls this when the drive is gone. */
static void rfsm_shutdown_sb(struct super_block *sb)
{
	rfsm_shutdown(RFS_SB(sb));
}

static const struct super_operations super_ops = {
	.alloc_inode = rfsm_alloc_inode,
	.free_inode = rfsm_free_inode,
	.write_inode = rfsm_write_inode,
	.evict_inode = rfsm_evict_inode,
	.put_super = rfsm_put_super,
	.sync_fs = rfsm_sync_fs,
	.freeze_fs = rfsm_freeze_fs,
	.shutdown = rfsm_shutdown_sb,
	.statfs = rfsm_statfs,
	.show_options = rfsm_show_options,
};

static void rfsm_say_recovered(const struct rfs_sb_info *sbi)
{
	const struct rfs_recovered *r = &sbi->fs->recovered;

	trace_rfs_recovery(sbi->sb->s_bdev->bd_dev, r->pages_read, r->records,
			   r->pages_applied);
	if (!r->pages_window)
		return;
	pr_info("%pg: recovered: %llu pages read, %llu data pages and %llu records applied, %llu pages not readable\n",
		sbi->sb->s_bdev, r->pages_read, r->pages_applied, r->records,
		r->pages_bad);
	if (r->log_gap)
		pr_warn("%pg: %llu log blocks after a gap: if the power was not cut, the medium has failed\n",
			sbi->sb->s_bdev, r->log_gap);
}

/*
 * Loads the superblock as it is, to say why the volume is not mounted. NULL says that there is no
 * memory.
 */
static struct rfs_fs *rfsm_load_super(struct rfs_sb_info *sbi,
				      const struct rfs_geometry *geo)
{
	struct rfs_fs *fs = rfs_volume_new(&sbi->dev.ops, &sbi->dev, geo);

	if (!fs)
		return NULL;
	rfs_super_load(fs);
	return fs;
}

/*
 * The volume does not mount with this slow device, or without any. Says why, and returns the error.
 */
static int rfsm_say_slow(struct rfs_sb_info *sbi,
			 const struct rfs_geometry *geo, int ret)
{
	struct rfs_fs *fs = rfsm_load_super(sbi, geo);

	if (fs)
		ret = rfsm_slow_refused(sbi, &fs->super, ret);
	rfs_free(fs);
	return ret;
}

/* Says why this version does not mount a volume, or only for reading. */
static void rfsm_say_format(struct rfs_sb_info *sbi,
			    const struct rfs_geometry *geo)
{
	struct rfs_fs *fs = rfsm_load_super(sbi, geo);

	if (!fs)
		return;
	if (le32_to_cpu(fs->super.version) < RFS_FORMAT_VERSION)
		pr_err("%pg: made by an older version: format %u, which this one does not read (it reads %u); copy the files with the version that made it, then run mkfs.rfs\n",
		       sbi->sb->s_bdev, le32_to_cpu(fs->super.version),
		       RFS_FORMAT_VERSION);
	else
		pr_err("%pg: made by a newer version: format %u (known: %u), features not known: incompat %#x, ro_compat %#x\n",
		       sbi->sb->s_bdev, le32_to_cpu(fs->super.version),
		       RFS_FORMAT_VERSION,
		       le32_to_cpu(fs->super.incompat) & ~RFS_INCOMPAT_KNOWN,
		       le32_to_cpu(fs->super.ro_compat) & ~RFS_RO_COMPAT_KNOWN);
	rfs_free(fs);
}

/* Checks the conditions for writing to the volume, beside those that a mount has checked. */
static int rfsm_may_write(const struct rfs_fs *fs)
{
	if (le32_to_cpu(fs->super.ro_compat) & ~RFS_RO_COMPAT_KNOWN)
		return -EROFS;
	return rfs_limits_ok(&fs->geo) ? 0 : -EMFILE;
}

/* Applies the options groups, gc and quantize from now on. */
static void rfsm_set_policy(struct rfs_sb_info *sbi,
			    const struct rfs_policy *policy)
{
	rfsm_lock(sbi);
	rfs_policy_set(sbi->fs, policy);
	rfsm_unlock(sbi);
	if (sbi->fs->few && policy->groups > 1)
		pr_info("%pg: one group, not %u: the volume has %u zones\n",
			sbi->sb->s_bdev, policy->groups, sbi->fs->geo.zones);
	else if (sbi->fs->policy.groups < policy->groups)
		pr_info("%pg: %u groups, not %u: %u zones may be open and %u active at a time\n",
			sbi->sb->s_bdev, sbi->fs->policy.groups, policy->groups,
			sbi->fs->geo.max_open, sbi->fs->geo.max_active);
}

static int rfsm_mount_core(struct rfs_sb_info *sbi)
{
	struct super_block *sb = sbi->sb;
	struct rfs_geometry geo = { 0 };
	unsigned int nofs;
	u32 ways;
	int ret;

	if (!bdev_is_zoned(sb->s_bdev) && rfsm_slow_alone(sb->s_bdev))
		return -EINVAL;
	ret = rfsm_dev_open(&sbi->dev, sb, &geo);
	if (!ret)
		ret = rfsm_direct_init(&sbi->dev);
	if (!ret)
		ret = rfsm_slow_open(sbi, &geo);
	if (ret)
		return ret;
	sbi->dev.ops.copy_write = rfsm_copy_write;
	sbi->dev.ops.crowded = rfsm_crowded;
	sbi->dev.ops.frozen = rfsm_dev_frozen;
	sbi->dev.ops.durable = rfsm_dev_durable;
	sbi->dev.ops.lets_change = rfsm_dev_lets_change;
	sbi->dev.ops.cached = rfsm_cached;
	sbi->dev.ops.write_dirty = rfsm_leave_dirty;
	sbi->dev.ops.may_exceed = rfsm_may_exceed;
	nofs = memalloc_nofs_save();
	ret = rfs_mount(&sbi->dev.ops, &sbi->dev, &geo, sb_rdonly(sb), 0,
			&sbi->fs);
	memalloc_nofs_restore(nofs);
	if (ret == -EOPNOTSUPP || ret == -EROFS)
		rfsm_say_format(sbi, &geo);
	else if (ret && (ret == -ENOMEDIUM || sbi->slow))
		ret = rfsm_say_slow(sbi, &geo, ret);
	rfsm_dev_mounted(&sbi->dev);
	switch (ret) {
	case 0:
		sbi->fs->threaded = true;
		sbi->fs->clean_max = ~0U;	/* the shrinker says how many */
		sbi->fs->dirty_more = max_t(u32, sbi->fs->dirty_more,
					    totalram_pages() / DIRTY_SHARE);
		sbi->orphan = sbi->fs->orphans;
		if (sbi->fs->meta_active < RFS_S_DATA)
			pr_info("%pg: %u zones may be open and %u active at a time: metadata shares %u\n",
				sb->s_bdev, geo.max_open, geo.max_active,
				sbi->fs->meta_active);
		ways = le32_to_cpu(sbi->fs->super.ways);
		if (sbi->fs->ways < ways)
			pr_info("%pg: striped over %u zones, not %u: %u zones may be open and %u active at a time\n",
				sb->s_bdev, sbi->fs->ways, ways, geo.max_open,
				geo.max_active);
		rfsm_set_policy(sbi, &sbi->opt.policy);
		WRITE_ONCE(sbi->fs->compact, sbi->opt.compact);
		rfsm_slow_commit(sbi);
		rfsm_bypass_bound(sbi, &sbi->opt);
		rfsm_say_recovered(sbi);
		break;
	case -EOPNOTSUPP:
		ret = -EINVAL;
		break;
	case -EUCLEAN:
		pr_err("%pg: damaged; run fsck.rfs%s\n", sb->s_bdev,
		       sbi->slow ? " --slow DEVICE" : "");
		break;
	case -EMFILE:
		pr_err("%pg: %u zones may be open and %u active at a time (0: any number); %u and %u are the least\n",
		       sb->s_bdev, geo.max_open, geo.max_active, RFS_OPEN_MIN,
		       RFS_ACTIVE_MIN);
		ret = -EINVAL;
		break;
	}
	return ret;
}

static const struct rfsm_inode_ops inode_kinds = {
	.file_iops = &rfsm_file_iops,
	.file_fops = &rfsm_file_fops,
	.dir_iops = &rfsm_dir_iops,
	.dir_fops = &rfsm_dir_fops,
	.symlink_iops = &rfsm_symlink_iops,
	.special_iops = &rfsm_special_iops,
};

static int rfsm_compact_ok(struct fs_context *fc, const struct rfs_sb_info *sbi,
			   const struct rfsm_options *opt)
{
	if (!opt->compact || rfs_has_pieces(&sbi->fs->super))
		return 0;
	return invalfc(fc, "compact=on: files of this volume can have no pieces: make it with mkfs.rfs -c, or leave the option out");
}

static int rfsm_bypass_ok(struct fs_context *fc, const struct rfs_sb_info *sbi,
			  const struct rfsm_options *opt)
{
	if (!opt->bypass || rfsm_may_bypass(sbi))
		return 0;
	return invalfc(fc, "bypass=%u: files of this volume have no other place than flash: make it with mkfs.rfs --slow, or leave the option out",
		       opt->bypass);
}

static int rfsm_fill_super(struct super_block *sb, struct fs_context *fc)
{
	const struct rfsm_options *opt = fc->fs_private;
	struct rfs_sb_info *sbi;
	struct inode *root;
	int ret;

	sbi = kzalloc(sizeof(*sbi), GFP_KERNEL);
	if (!sbi)
		return -ENOMEM;
	sbi->sb = sb;
	sbi->opt = *opt;
	sbi->kinds = &inode_kinds;
	mutex_init(&sbi->lock);
	seqcount_mutex_init(&sbi->usage_seq, &sbi->lock);
	init_waitqueue_head(&sbi->gate_wait);
	init_waitqueue_head(&sbi->quiet_over);
	init_waitqueue_head(&sbi->wake);
	init_waitqueue_head(&sbi->room);
	sb->s_fs_info = sbi;
	sb->s_op = &super_ops;
	sb->s_xattr = rfsm_xattr_handlers;
	sb->s_export_op = &rfsm_export_ops;
	sb->s_flags |= SB_POSIXACL;
	sb->s_magic = RFS_BLOCK_MAGIC;
	sb->s_time_gran = 1;
	sb->s_time_min = S64_MIN / NSEC_PER_SEC + 1;
	sb->s_time_max = S64_MAX / NSEC_PER_SEC;
	sb->s_max_links = INT_MAX;
	sb->s_maxbytes = MAX_LFS_FILESIZE;
	sb->s_maxbytes = min_t(loff_t, sb->s_maxbytes,
			       (loff_t)(RFS_FILE_BLOCKS * RFS_BLOCK_BYTES));
	sb->s_iflags |= SB_I_STABLE_WRITES;	/* the OOB holds a checksum */
	if (!sb_set_blocksize(sb, RFS_BLOCK_BYTES))
		return -EINVAL;
	if (!sb_rdonly(sb) && bdev_read_only(sb->s_bdev))
		return -EACCES;
	sbi->clean_ro = sb_rdonly(sb);
	ret = rfsm_fetch_init(sbi);
	if (!ret)
		ret = rfsm_memory_init(sbi);
	if (!ret)
		ret = rfsm_mount_core(sbi);
	if (!ret)
		ret = rfsm_compact_ok(fc, sbi, opt);
	if (!ret)
		ret = rfsm_bypass_ok(fc, sbi, opt);
	if (!ret)
		ret = rfsm_shrinker_start(sbi);
	if (!ret)
		ret = rfsm_append_init(sbi);
	if (!ret)
		ret = rfsm_fill_init(sbi);
	if (!ret)
		ret = rfsm_quota_init(sbi);
	if (!ret)
		ret = rfsm_stats_init(sbi);
	if (ret)
		return ret;
	super_set_uuid(sb, sbi->fs->super.uuid, sizeof(sbi->fs->super.uuid));
	root = rfsm_iget(sb, RFS_ROOT_INO);
	if (IS_ERR(root))
		return PTR_ERR(root);
	if (!S_ISDIR(root->i_mode)) {
		iput(root);
		return -EUCLEAN;
	}
	sb->s_root = d_make_root(root);
	if (!sb->s_root)
		return -ENOMEM;
	return sb_rdonly(sb) ? 0 : rfsm_thread_start(sbi);
}

static void rfsm_kill_sb(struct super_block *sb)
{
	struct rfs_sb_info *sbi;

	kill_block_super(sb);
	sbi = RFS_SB(sb);
	if (!sbi)
		return;
	/* rfsm_put_super() is not called if there has never been a root. */
	if (sbi->fs) {
		rfsm_fill_exit(sbi);
		rfsm_stats_exit(sbi);
		rfsm_append_exit(sbi);
		rfsm_shrinker_stop(sbi);
		rfs_unmount_nosync(sbi->fs);
	}
	rfsm_memory_exit(sbi);
	rfsm_fetch_exit(sbi);
	rfsm_slow_close(sbi);
	rfsm_dev_close(&sbi->dev);
	kvfree(sbi->left);
	kfree(sbi);
}

enum {
	OPT_COMMIT, OPT_ERRORS, OPT_GROUPS, OPT_GC, OPT_QUANTIZE, OPT_USRQUOTA,
	OPT_GRPQUOTA, OPT_NOQUOTA, OPT_ACL, OPT_USER_XATTR, OPT_DISCARD,
	OPT_BARRIER, OPT_NORECOVERY, OPT_COMPACT, OPT_SLOW, OPT_BYPASS,
};

static const struct constant_table error_table[] = {
	{ "remount-ro", RFSM_ERRORS_RO },
	{ "panic", RFSM_ERRORS_PANIC },
	{ "continue", RFSM_ERRORS_CONTINUE },
	{}
};

static const struct constant_table compact_table[] = {
	{ "off", false },
	{ "on", true },
	{}
};

static const struct constant_table gc_table[] = {
	{ "cost-hotness", RFS_GC_COST_HOTNESS },
	{ "cost-benefit", RFS_GC_COST_BENEFIT },
	{ "greedy", RFS_GC_GREEDY },
	{}
};

/* These names are SFS's, and policy.h explains them. */
static const struct constant_table quantize_table[] = {
	{ "iterative", RFS_Q_ITERATIVE },
	{ "equi-width", RFS_Q_EQUI_WIDTH },
	{ "equi-height", RFS_Q_EQUI_HEIGHT },
	{ "balanced", RFS_Q_BALANCED },
	{}
};

static const struct fs_parameter_spec parameters[] = {
	fsparam_u32("commit", OPT_COMMIT),
	fsparam_enum("errors", OPT_ERRORS, error_table),
	fsparam_enum("compact", OPT_COMPACT, compact_table),
	fsparam_u32("groups", OPT_GROUPS),
	fsparam_enum("gc", OPT_GC, gc_table),
	fsparam_enum("quantize", OPT_QUANTIZE, quantize_table),
	fsparam_string("slow", OPT_SLOW),
	fsparam_u32("bypass", OPT_BYPASS),
	fsparam_flag("usrquota", OPT_USRQUOTA),
	fsparam_flag("grpquota", OPT_GRPQUOTA),
	/* These are options of other file systems: see rfsm_option_refused(). */
	fsparam_flag("quota", OPT_USRQUOTA),
	fsparam_flag("noquota", OPT_NOQUOTA),
	fsparam_flag_no("acl", OPT_ACL),
	fsparam_flag_no("user_xattr", OPT_USER_XATTR),
	fsparam_flag_no("discard", OPT_DISCARD),
	fsparam_flag_no("barrier", OPT_BARRIER),
	fsparam_flag("norecovery", OPT_NORECOVERY),
	{}
};

/* RFS always does these things. An option may ask for them, but not turn them off. */
static int rfsm_option_refused(struct fs_context *fc, int which,
			       const struct fs_parse_result *result)
{
	if (which == OPT_NORECOVERY)
		return invalfc(fc, "norecovery: recovery is in memory until a check-point, and -o ro writes none: mount with ro");
	if (!result->negated)
		return 0;
	switch (which) {
	case OPT_ACL:
		return invalfc(fc, "noacl: access control lists are always on: leave it out");
	case OPT_USER_XATTR:
		return invalfc(fc, "nouser_xattr: extended attributes are always on: leave it out");
	case OPT_DISCARD:
		return invalfc(fc, "nodiscard: zones that are free are reset: leave it out");
	}
	return invalfc(fc, "nobarrier: the drive is flushed if it has a volatile cache: leave it out");
}

static int rfsm_parse_param(struct fs_context *fc, struct fs_parameter *param)
{
	struct rfsm_options *opt = fc->fs_private;
	struct fs_parse_result result;
	int which = fs_parse(fc, parameters, param, &result);

	switch (which) {
	case OPT_COMMIT:
		if (!result.uint_32 || result.uint_32 > 3600)
			return invalfc(fc, "commit: 1 to 3600 seconds");
		opt->commit = result.uint_32;
		return 0;
	case OPT_ERRORS:
		opt->errors = result.uint_32;
		return 0;
	case OPT_COMPACT:
		opt->compact = result.uint_32;
		return 0;
	case OPT_GROUPS:
		if (!result.uint_32 || result.uint_32 > RFS_GROUPS_MAX)
			return invalfc(fc, "groups: 1 to %u", RFS_GROUPS_MAX);
		opt->policy.groups = result.uint_32;
		return 0;
	case OPT_GC:
		opt->policy.gc = result.uint_32;
		return 0;
	case OPT_QUANTIZE:
		opt->policy.quantize = result.uint_32;
		return 0;
	case OPT_SLOW:
		if (!*param->string ||
		    strscpy(opt->slow, param->string, sizeof(opt->slow)) < 0)
			return invalfc(fc, "slow: the path of a block device, of at most %zu bytes, or none",
				       sizeof(opt->slow) - 1);
		return 0;
	case OPT_BYPASS:
		opt->bypass = result.uint_32;
		return 0;
	case OPT_USRQUOTA:
		opt->quota |= 1U << RFS_QUOTA_USER;
		return 0;
	case OPT_GRPQUOTA:
		opt->quota |= 1U << RFS_QUOTA_GROUP;
		return 0;
	case OPT_NOQUOTA:
		opt->quota = 0;
		return 0;
	case OPT_ACL:
	case OPT_USER_XATTR:
	case OPT_DISCARD:
	case OPT_BARRIER:
	case OPT_NORECOVERY:
		return rfsm_option_refused(fc, which, &result);
	}
	return which;
}

static int rfsm_get_tree(struct fs_context *fc)
{
	return get_tree_bdev(fc, rfsm_fill_super);
}

static int rfsm_to_read_only(struct rfs_sb_info *sbi)
{
	int ret;

	if (sbi->fs->read_only)
		return 0;	/* after an error */
	rfsm_thread_stop(sbi);
	ret = rfsm_sync(sbi, RFS_CP_UNMOUNT);
	if (ret) {
		rfsm_thread_start(sbi);
		return ret;
	}
	sbi->fs->read_only = true;
	sbi->clean_ro = true;
	return 0;
}

/* On a read-only mount, the state that recovery found is only in memory until then. */
static int rfsm_to_read_write(struct rfs_sb_info *sbi)
{
	int ret;

	if (bdev_read_only(sbi->sb->s_bdev))
		return -EACCES;
	if (rfsm_dead(sbi))
		return -EIO;
	if (!sbi->clean_ro) {
		pr_err("%pg: not after an error: unmount, run fsck.rfs\n",
		       sbi->sb->s_bdev);
		return -EROFS;
	}
	if (!rfsm_slow_may_write(sbi))
		return -EROFS;
	ret = rfsm_may_write(sbi->fs);
	if (ret) {
		pr_err("%pg: can only be read\n", sbi->sb->s_bdev);
		return ret == -EMFILE ? -EINVAL : ret;
	}
	rfsm_lock(sbi);
	sbi->fs->read_only = false;
	ret = rfsm_checkpoint(sbi, 0);
	rfsm_unlock(sbi);
	if (!ret)
		ret = rfsm_thread_start(sbi);
	if (ret)
		sbi->fs->read_only = true;
	else
		sbi->clean_ro = false;
	return ret;
}

static int rfsm_reconfigure(struct fs_context *fc)
{
	struct super_block *sb = fc->root->d_sb;
	struct rfs_sb_info *sbi = RFS_SB(sb);
	const struct rfsm_options *opt = fc->fs_private;
	bool read_only = fc->sb_flags & SB_RDONLY;
	int ret = 0;

	/* Usage is counted from the mount on, or not at all. */
	if (opt->quota != sbi->opt.quota)
		return invalfc(fc, "usrquota, grpquota: when it is mounted");
	if (strcmp(opt->slow, sbi->opt.slow))
		return invalfc(fc, "slow: when it is mounted: unmount it first");
	ret = rfsm_compact_ok(fc, sbi, opt);
	if (!ret)
		ret = rfsm_bypass_ok(fc, sbi, opt);
	if (ret)
		return ret;
	sync_filesystem(sb);
	if (read_only && !sb_rdonly(sb))
		ret = rfsm_to_read_only(sbi);
	else if (!read_only && sb_rdonly(sb))
		ret = rfsm_to_read_write(sbi);
	if (!ret) {
		/* This comes before a file bypasses flash by the new bound. */
		rfsm_bypass_bound(sbi, opt);
		smp_wmb();	/* see rfsm_bypass_load() */
		sbi->opt = *opt;
		rfsm_set_policy(sbi, &sbi->opt.policy);
		WRITE_ONCE(sbi->fs->compact, opt->compact);
		rfsm_slow_commit(sbi);
	}
	return ret;
}

static void rfsm_free_fc(struct fs_context *fc)
{
	kfree(fc->fs_private);
}

static const struct fs_context_operations context_ops = {
	.parse_param = rfsm_parse_param,
	.get_tree = rfsm_get_tree,
	.reconfigure = rfsm_reconfigure,
	.free = rfsm_free_fc,
};

static int rfsm_init_fs_context(struct fs_context *fc)
{
	struct rfsm_options *opt = kzalloc(sizeof(*opt), GFP_KERNEL);

	if (!opt)
		return -ENOMEM;
	opt->commit = 30;
	opt->policy = rfs_policy_default;
	if (fc->purpose == FS_CONTEXT_FOR_RECONFIGURE)
		*opt = RFS_SB(fc->root->d_sb)->opt;
	fc->fs_private = opt;
	fc->ops = &context_ops;
	return 0;
}

static struct file_system_type type = {
	.owner = THIS_MODULE,
	.name = "rfs",
	.kill_sb = rfsm_kill_sb,
	.fs_flags = FS_REQUIRES_DEV,
	.init_fs_context = rfsm_init_fs_context,
	.parameters = parameters,
};

static int __init rfsm_init(void)
{
	int ret;

	/* A page of the page cache is a block, as Kconfig says. */
	BUILD_BUG_ON(PAGE_SIZE != RFS_BLOCK_BYTES);
	inode_cache = kmem_cache_create("rfs_inode",
					sizeof(struct rfs_inode_info),
					0, SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT,
					rfsm_init_once);
	rfsm_reads = alloc_workqueue("rfs-read", WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	rfsm_resets = alloc_workqueue("rfs-reset", WQ_MEM_RECLAIM, 0);
	ret = rfsm_mem_module_init();
	if (!ret)
		ret = rfsm_read_module_init();
	if (!ret)
		ret = inode_cache && rfsm_reads && rfsm_resets ? rfsm_append_module_init() :
								 -ENOMEM;
	if (ret)
		goto out_caches;
	ret = rfsm_stats_module_init();
	if (!ret)
		ret = register_filesystem(&type);
	if (!ret)
		return 0;
	rfsm_stats_module_exit();
	rfsm_append_module_exit();
out_caches:
	if (rfsm_reads)
		destroy_workqueue(rfsm_reads);
	if (rfsm_resets)
		destroy_workqueue(rfsm_resets);
	rfsm_read_module_exit();
	rfsm_mem_module_exit();
	kmem_cache_destroy(inode_cache);
	return ret;
}

static void __exit rfsm_exit(void)
{
	unregister_filesystem(&type);
	rfsm_stats_module_exit();
	destroy_workqueue(rfsm_reads);
	destroy_workqueue(rfsm_resets);
	rfsm_append_module_exit();
	rcu_barrier();	/* inodes are freed after a grace period */
	rfsm_read_module_exit();
	rfsm_mem_module_exit();
	kmem_cache_destroy(inode_cache);
}

module_init(rfsm_init);
module_exit(rfsm_exit);
MODULE_ALIAS_FS("rfs");
MODULE_DESCRIPTION("RFS: file system for zoned drives of flash segments");
MODULE_LICENSE("GPL");
