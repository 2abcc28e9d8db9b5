// SPDX-License-Identifier: GPL-2.0
/*
 * This is quotactl(2). The core counts and keeps limits, as it alone knows when an inode gets a
 * block (core/tree/quota.c); dquot_*() are not used. These functions translate the core's quotas
 * for Linux.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/quotaops.h>
#include <linux/time64.h>

#include "rfsm.h"
#include "error.h"
#include "checkpoint.h"
#include "update.h"
#include "super.h"
#include "tree/quota.h"

/* Q_GETFMT answers this: limits have 64 bits. */
static struct quota_format_type format = { .qf_fmt_id = QFMT_VFS_V1 };

static const unsigned int enforce_flags[RFS_QUOTA_TYPES] = {
	FS_QUOTA_UDQ_ENFD, FS_QUOTA_GDQ_ENFD,
};

static bool rfsm_quota_is_on(const struct rfs_sb_info *sbi, u32 type)
{
	return type < RFS_QUOTA_TYPES && sbi->opt.quota & 1U << type;
}

bool rfsm_may_exceed(void *dev)
{
	return capable(CAP_SYS_RESOURCE);
}

static void rfsm_quota_fill_dqblk(const struct rfs_quota *q, u64 rsv,
				  struct qc_dqblk *out)
{
	memset(out, 0, sizeof(*out));
	out->d_spc_hardlimit = le64_to_cpu(q->space_hard);
	out->d_spc_softlimit = le64_to_cpu(q->space_soft);
	out->d_ino_hardlimit = le64_to_cpu(q->inodes_hard);
	out->d_ino_softlimit = le64_to_cpu(q->inodes_soft);
	out->d_space = (le64_to_cpu(q->blocks) + rsv) * RFS_BLOCK_BYTES;
	out->d_ino_count = le64_to_cpu(q->inodes);
	out->d_spc_timer = le64_to_cpu(q->space_end);
	out->d_ino_timer = le64_to_cpu(q->inodes_end);
}

static int rfsm_get_dqblk(struct super_block *sb, struct kqid qid,
			  struct qc_dqblk *out)
{
	u32 id = from_kqid(sb->s_user_ns, qid);
	struct rfs_sb_info *sbi = RFS_SB(sb);
	struct rfs_quota q;
	u64 rsv;
	int ret;

	if (!rfsm_quota_is_on(sbi, qid.type))
		return -ESRCH;
	rfsm_query(sbi, ret, rfs_quota_get(sbi->fs, qid.type, id, &q, &rsv));
	if (ret)
		return rfsm_failed(sbi, ret);
	rfsm_quota_fill_dqblk(&q, rsv, out);
	return 0;
}

static int rfsm_get_nextdqblk(struct super_block *sb, struct kqid *qid,
			      struct qc_dqblk *out)
{
	u32 id = from_kqid(sb->s_user_ns, *qid);
	struct rfs_sb_info *sbi = RFS_SB(sb);
	int ret;

	if (!rfsm_quota_is_on(sbi, qid->type))
		return -ESRCH;
	rfsm_query(sbi, ret, rfs_quota_next(sbi->fs, qid->type, &id));
	if (ret)
		return ret == -ENOENT ? ret : rfsm_failed(sbi, ret);
	*qid = make_kqid(sb->s_user_ns, qid->type, id);
	return rfsm_get_dqblk(sb, *qid, out);
}

/* Changes the limits that the caller asks for, with a record. The caller holds the volume lock. */
static int rfsm_quota_change(struct rfs_sb_info *sbi, u32 type, u32 id,
			     const struct qc_dqblk *to)
{
	struct rfs_quota q;
	u64 rsv;
	int ret = rfs_quota_get(sbi->fs, type, id, &q, &rsv);

	if (ret)
		return ret;
	if (to->d_fieldmask & QC_SPC_HARD)
		q.space_hard = cpu_to_le64(to->d_spc_hardlimit);
	if (to->d_fieldmask & QC_SPC_SOFT)
		q.space_soft = cpu_to_le64(to->d_spc_softlimit);
	if (to->d_fieldmask & QC_INO_HARD)
		q.inodes_hard = cpu_to_le64(to->d_ino_hardlimit);
	if (to->d_fieldmask & QC_INO_SOFT)
		q.inodes_soft = cpu_to_le64(to->d_ino_softlimit);
	if (to->d_fieldmask & QC_SPC_TIMER)
		q.space_end = cpu_to_le64(to->d_spc_timer);
	if (to->d_fieldmask & QC_INO_TIMER)
		q.inodes_end = cpu_to_le64(to->d_ino_timer);
	return rfs_quota_set(sbi->fs, type, id, &q);
}

/* Usage is counted, and cannot be set. */
static int rfsm_set_dqblk(struct super_block *sb, struct kqid qid,
			  struct qc_dqblk *to)
{
	int mask = QC_SPC_HARD | QC_SPC_SOFT | QC_INO_HARD | QC_INO_SOFT |
		   QC_SPC_TIMER | QC_INO_TIMER;
	u32 id = from_kqid(sb->s_user_ns, qid);
	struct rfs_sb_info *sbi = RFS_SB(sb);
	int ret;

	if (!rfsm_quota_is_on(sbi, qid.type))
		return -ESRCH;
	/* The quota tools set all timers, and there is no realtime device. */
	if (!to->d_rt_spc_timer)
		to->d_fieldmask &= ~QC_RT_SPC_TIMER;
	if (to->d_fieldmask & ~mask)
		return -EINVAL;
	rfsm_update(sbi, ret, rfsm_quota_change(sbi, qid.type, id, to));
	return ret;
}

static int rfsm_quota_get_state(struct super_block *sb, struct qc_state *state)
{
	struct rfs_sb_info *sbi = RFS_SB(sb);
	u64 space, inodes;
	u32 type;
	int ret = 0;

	memset(state, 0, sizeof(*state));
	rfsm_lock(sbi);
	for (type = 0; !ret && type < RFS_QUOTA_TYPES; type++) {
		struct qc_type_state *s = &state->s_state[type];

		if (!rfsm_quota_is_on(sbi, type))
			continue;
		s->flags = QCI_ACCT_ENABLED | QCI_SYSFILE;
		if (sbi->fs->enforced & 1U << type)
			s->flags |= QCI_LIMITS_ENFORCED;
		s->ino = RFS_QUOTA_INO;
		ret = rfs_quota_grace(sbi->fs, type, &space, &inodes);
		s->spc_timelimit = space;
		s->ino_timelimit = inodes;
	}
	rfsm_unlock(sbi);
	return ret ? rfsm_failed(sbi, ret) : 0;
}

/* Sets how long soft limits may be exceeded. The entry of an id that no owner has keeps that. */
static int rfsm_quota_set_info(struct super_block *sb, int type,
			       struct qc_info *info)
{
	struct qc_dqblk to = { .d_fieldmask = info->i_fieldmask,
			       .d_spc_timer = info->i_spc_timelimit,
			       .d_ino_timer = info->i_ino_timelimit };
	struct rfs_sb_info *sbi = RFS_SB(sb);
	int ret;

	if (!rfsm_quota_is_on(sbi, type))
		return -ESRCH;
	to.d_fieldmask &= ~QC_FLAGS;
	if (!info->i_rt_spc_timelimit)
		to.d_fieldmask &= ~QC_RT_SPC_TIMER;
	if (to.d_fieldmask & ~(QC_SPC_TIMER | QC_INO_TIMER) || info->i_flags)
		return -EINVAL;
	rfsm_update(sbi, ret,
		    rfsm_quota_change(sbi, type, RFS_QUOTA_GRACE, &to));
	return ret;
}

/* Usage is counted from mount to unmount; whether limits hold can be changed. */
static int rfsm_quota_enforce(struct super_block *sb, unsigned int flags,
			      bool on)
{
	struct rfs_sb_info *sbi = RFS_SB(sb);
	u32 type;
	int ret = 0;

	rfsm_lock(sbi);
	for (type = 0; type < RFS_QUOTA_TYPES; type++) {
		u32 bit = 1U << type;

		if (!(flags & enforce_flags[type]))
			continue;
		if (!rfsm_quota_is_on(sbi, type))
			ret = -ESRCH;
		else if (!(sbi->fs->enforced & bit) == !on)
			ret = on ? -EBUSY : -EEXIST;
		else
			sbi->fs->enforced ^= bit;
		flags &= ~enforce_flags[type];
	}
	rfsm_unlock(sbi);
	return flags ? -EINVAL : ret;
}

static int rfsm_quota_enable(struct super_block *sb, unsigned int flags)
{
	return rfsm_quota_enforce(sb, flags, true);
}

static int rfsm_quota_disable(struct super_block *sb, unsigned int flags)
{
	return rfsm_quota_enforce(sb, flags, false);
}

static int rfsm_quota_sync(struct super_block *sb, int type)
{
	return rfsm_sync(RFS_SB(sb), 0);
}

static const struct quotactl_ops ops = {
	.quota_enable = rfsm_quota_enable,
	.quota_disable = rfsm_quota_disable,
	.quota_sync = rfsm_quota_sync,
	.set_info = rfsm_quota_set_info,
	.get_dqblk = rfsm_get_dqblk,
	.get_nextdqblk = rfsm_get_nextdqblk,
	.set_dqblk = rfsm_set_dqblk,
	.get_state = rfsm_quota_get_state,
};

/*
 * If a volume's usage was counted before, it is counted while the volume is recovered. From here on
 * the options decide.
 */
int rfsm_quota_init(struct rfs_sb_info *sbi)
{
	struct super_block *sb = sbi->sb;
	u32 type;
	int ret = 0;

	sb->s_qcop = &ops;
	sb->s_quota_types = QTYPE_MASK_USR | QTYPE_MASK_GRP;
	if (!sbi->opt.quota) {
		rfs_quota_off(sbi->fs);
		return 0;
	}
	rfsm_lock(sbi);
	ret = rfs_quota_on(sbi->fs);
	sbi->fs->enforced = sbi->opt.quota;
	rfsm_unlock(sbi);
	if (ret == -ENOSPC)
		pr_err("%pg: no room to count quotas\n", sb->s_bdev);
	if (ret)
		return ret;
	/* Linux itself looks at no other field, and at this one only for Q_GETFMT. */
	for (type = 0; type < RFS_QUOTA_TYPES; type++) {
		if (!rfsm_quota_is_on(sbi, type))
			continue;
		sb_dqopt(sb)->info[type].dqi_format = &format;
		sb_dqopt(sb)->flags |= dquot_state_flag(DQUOT_USAGE_ENABLED |
							DQUOT_LIMITS_ENABLED,
							type);
	}
	return 0;
}
