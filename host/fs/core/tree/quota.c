// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Quotas count the blocks and inodes of users and groups, and limit them. The entries are in blocks
 * of inode 1, which has no name. While the volume counts, each function that gives an inode a
 * block, or makes, frees or gives away an inode, changes the entries of its owners. This holds in
 * recovery, too, so usage is as safe from power cuts as inodes are.
 */
#include "tree/tree.h"
#include "tree/quota.h"

#define ENTRY_BLOCKS	RFS_QUOTA_OFF(0, ~0U)	/* and one more of groups */

u32 rfs_owner(const struct rfs_dinode *di, u32 type)
{
	return le32_to_cpu(type == RFS_QUOTA_USER ? di->uid : di->gid);
}

static int rfs_quota_block_get(struct rfs_fs *fs, u64 off, bool create,
			       struct rfs_buf **out)
{
	int ret = rfs_block_get(fs, RFS_QUOTA_INO, RFS_QUOTA, off, out);

	if (ret == -ENOENT && !create)
		return 0;
	if (ret || *out || !create)
		return ret;
	return rfs_block_new(fs, RFS_QUOTA_INO, RFS_QUOTA, 0, off, out);
}

/*
 * Finds an entry and the block it is in. *out is NULL if there is none, and
 * create is not set.
 */
int rfs_quota_entry(struct rfs_fs *fs, u32 type, u32 id, bool create,
		    struct rfs_quota **out, struct rfs_buf **buf)
{
	int ret = rfs_quota_block_get(fs, RFS_QUOTA_OFF(type, id), create, buf);

	*out = NULL;
	if (!ret && *buf)
		*out = &(*buf)->quotas.entry[id % RFS_QUOTA_ENTRIES];
	return ret;
}

int rfs_quota_grace(struct rfs_fs *fs, u32 type, u64 *space, u64 *inodes)
{
	struct rfs_quota *q;
	struct rfs_buf *buf;
	int ret = rfs_quota_entry(fs, type, RFS_QUOTA_GRACE, false, &q, &buf);

	*space = q && q->space_end ? le64_to_cpu(q->space_end) :
				     RFS_QUOTA_GRACE_S;
	*inodes = q && q->inodes_end ? le64_to_cpu(q->inodes_end) :
				       RFS_QUOTA_GRACE_S;
	return ret;
}

static u64 rfs_now_s(const struct rfs_fs *fs)
{
	return fs->ops->now(fs->dev) / 1000000000U;
}

/* Returns when grace ends for what is used and has a soft limit. */
static __le64 rfs_quota_end(const struct rfs_fs *fs, u64 used, __le64 soft,
			    __le64 end, u64 grace)
{
	if (!soft || used <= le64_to_cpu(soft))
		return 0;
	return end ? end : cpu_to_le64(rfs_now_s(fs) + grace);
}

/* Begins grace, or ends it when it is not needed any more. */
static int rfs_update_grace(struct rfs_fs *fs, u32 type, struct rfs_quota *q)
{
	u64 bytes = le64_to_cpu(q->blocks) * RFS_BLOCK_BYTES, space, inodes;
	int ret;

	if (!q->space_soft && !q->inodes_soft) {
		q->space_end = 0;
		q->inodes_end = 0;
		return 0;
	}
	ret = rfs_quota_grace(fs, type, &space, &inodes);
	if (ret)
		return ret;
	q->space_end = rfs_quota_end(fs, bytes, q->space_soft, q->space_end,
				     space);
	q->inodes_end = rfs_quota_end(fs, le64_to_cpu(q->inodes),
				      q->inodes_soft, q->inodes_end, inodes);
	return 0;
}

/* A sum below 0 comes from a fault of the medium. Usage is counted anew at the next mount. */
static __le64 rfs_quota_sum(struct rfs_fs *fs, __le64 of, s64 delta)
{
	u64 value = le64_to_cpu(of);

	if (delta < 0 && value < (u64)-delta) {
		fs->miscounted = true;
		return 0;
	}
	return cpu_to_le64(value + delta);
}

static int rfs_quota_charge_one(struct rfs_fs *fs, u32 type, u32 id, s64 blocks,
				s64 inodes)
{
	struct rfs_quota *q;
	struct rfs_buf *buf;
	int ret = rfs_quota_entry(fs, type, id, true, &q, &buf);

	if (ret)
		return ret;
	q->blocks = rfs_quota_sum(fs, q->blocks, blocks);
	q->inodes = rfs_quota_sum(fs, q->inodes, inodes);
	rfs_buf_dirty(fs, buf);
	return fs->recovering ? 0 : rfs_update_grace(fs, type, q);
}

/* Usage can be counted anew, so no operation on files fails if it cannot be kept. */
int rfs_quota_charge(struct rfs_fs *fs, u32 type, u32 id, s64 blocks,
		     s64 inodes)
{
	int ret = rfs_quota_charge_one(fs, type, id, blocks, inodes);

	fs->miscounted |= ret;
	return ret == -ENOMEM ? ret : 0;
}

/*
 * In recovery, usage goes up and down in another order than before the power cut. After it, grace
 * begins or ends by the usage then.
 */
void rfs_quota_recovered(struct rfs_fs *fs)
{
	struct rfs_buf *buf;
	u32 i;

	list_for_each_entry(buf, &fs->dirty.bufs, list) {
		u32 off = (u32)le64_to_cpu(buf->head.off);

		if (buf->head.type != RFS_QUOTA)
			continue;
		for (i = 0; i < RFS_QUOTA_ENTRIES; i++)
			if ((u64)off / RFS_QUOTA_TYPES * RFS_QUOTA_ENTRIES + i <
			    RFS_QUOTA_GRACE && rfs_update_grace(fs, off %
				RFS_QUOTA_TYPES, &buf->quotas.entry[i]))
				fs->miscounted = true;
	}
}

int rfs_quota_add(struct rfs_fs *fs, const struct rfs_dinode *di, s64 blocks,
		  s64 inodes)
{
	u32 type;
	int ret = 0;

	if (le32_to_cpu(di->ino) == RFS_QUOTA_INO)
		return 0;
	for (type = 0; !ret && type < RFS_QUOTA_TYPES; type++)
		ret = rfs_quota_charge(fs, type, rfs_owner(di, type), blocks,
				       inodes);
	return ret;
}

static struct rfs_quota_rsv **rfs_quota_rsv_at(struct rfs_fs *fs, u32 type,
					       u32 id)
{
	struct rfs_quota_rsv **at = &fs->quota_rsv[(id * 2 +
						    type) % RFS_QUOTA_RSV_HASH];

	while (*at && ((*at)->type != type || (*at)->id != id))
		at = &(*at)->next;
	return at;
}

int rfs_quota_reserve_one(struct rfs_fs *fs, u32 type, u32 id, s64 blocks)
{
	struct rfs_quota_rsv **at = rfs_quota_rsv_at(fs, type, id), *h = *at;

	if (!h && blocks <= 0)
		return 0;
	if (!h) {
		h = rfs_alloc_nofail(sizeof(*h));
		if (!h)
			return -ENOMEM;
		h->type = type;
		h->id = id;
		*at = h;
	}
	h->blocks += max(blocks, -(s64)h->blocks);
	if (!h->blocks) {
		*at = h->next;
		rfs_free(h);
	}
	return 0;
}

int rfs_quota_reserve(struct rfs_fs *fs, const struct rfs_dinode *di,
		      s64 blocks)
{
	int ret = rfs_quota_reserve_one(fs, RFS_QUOTA_USER,
					rfs_owner(di, RFS_QUOTA_USER), blocks);

	if (ret)
		return ret;
	ret = rfs_quota_reserve_one(fs, RFS_QUOTA_GROUP,
				    rfs_owner(di, RFS_QUOTA_GROUP), blocks);
	if (ret)
		rfs_quota_reserve_one(fs, RFS_QUOTA_USER,
				      rfs_owner(di, RFS_QUOTA_USER), -blocks);
	return ret;
}

void rfs_quota_forget(struct rfs_fs *fs)
{
	struct rfs_quota_rsv *h;
	u32 i;

	for (i = 0; i < RFS_QUOTA_RSV_HASH; i++) {
		while ((h = fs->quota_rsv[i])) {
			fs->quota_rsv[i] = h->next;
			rfs_free(h);
		}
	}
}

static bool rfs_quota_over(u64 want, __le64 hard, __le64 soft, __le64 end,
			   u64 now)
{
	if (hard && want > le64_to_cpu(hard))
		return true;
	return soft && want > le64_to_cpu(soft) && end &&
	       now >= le64_to_cpu(end);
}

int rfs_quota_may(struct rfs_fs *fs, u32 types, const u32 *id, u64 blocks,
		  u64 inodes)
{
	u64 now = fs->enforced ? rfs_now_s(fs) : 0;
	u32 type;

	for (type = 0; type < RFS_QUOTA_TYPES; type++) {
		struct rfs_quota *q;
		struct rfs_quota_rsv *h;
		struct rfs_buf *buf;
		u64 want;
		int ret;

		if (!(types & fs->enforced & 1U << type))
			continue;
		ret = rfs_quota_entry(fs, type, id[type], false, &q, &buf);
		if (ret)
			return ret;
		if (!q)
			continue;
		h = *rfs_quota_rsv_at(fs, type, id[type]);
		want = le64_to_cpu(q->blocks) + (h ? h->blocks : 0) + blocks;
		if ((blocks &&
		     rfs_quota_over(want * RFS_BLOCK_BYTES, q->space_hard,
				    q->space_soft, q->space_end, now)) ||
		    (inodes && rfs_quota_over(le64_to_cpu(q->inodes) + inodes,
					      q->inodes_hard, q->inodes_soft,
					      q->inodes_end, now)))
			return fs->ops->may_exceed &&
			       fs->ops->may_exceed(fs->dev) ? 0 : -EDQUOT;
	}
	return 0;
}

int rfs_quota_may_grow(struct rfs_fs *fs, u32 ino, u64 blocks)
{
	u32 id[RFS_QUOTA_TYPES];
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	if (!fs->enforced)
		return 0;
	ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	id[RFS_QUOTA_USER] = rfs_owner(di, RFS_QUOTA_USER);
	id[RFS_QUOTA_GROUP] = rfs_owner(di, RFS_QUOTA_GROUP);
	return rfs_quota_may(fs, RFS_QUOTA_BOTH, id, blocks, 0);
}

int rfs_quota_get(struct rfs_fs *fs, u32 type, u32 id, struct rfs_quota *out,
		  u64 *rsv)
{
	struct rfs_quota_rsv *h = *rfs_quota_rsv_at(fs, type, id);
	struct rfs_quota *q;
	struct rfs_buf *buf;
	int ret = rfs_quota_entry(fs, type, id, false, &q, &buf);

	memset(out, 0, sizeof(*out));
	if (!ret && q)
		*out = *q;
	*rsv = h ? h->blocks : 0;
	return ret;
}

int rfs_quota_apply(struct rfs_fs *fs, const struct rfs_rec *rec,
		    const u8 *limits)
{
	u32 type = le32_to_cpu(rec->dir2), id = le32_to_cpu(rec->dir1);
	struct rfs_quota new, *q;
	struct rfs_buf *buf;
	int ret;

	if (type >= RFS_QUOTA_TYPES || le16_to_cpu(rec->len2) != sizeof(new))
		return -EUCLEAN;
	ret = rfs_quota_entry(fs, type, id, true, &q, &buf);
	if (ret && ret != -ENOMEM && fs->recovering) {
		fs->miscounted = true;	/* limits of others are lost too */
		return 0;
	}
	if (ret)
		return ret;
	memcpy(&new, limits, sizeof(new));
	new.blocks = q->blocks;
	new.inodes = q->inodes;
	*q = new;
	rfs_buf_dirty(fs, buf);
	return id == RFS_QUOTA_GRACE || fs->recovering ? 0 :
	       rfs_update_grace(fs, type, q);
}

int rfs_quota_block(struct rfs_fs *fs, u64 *off, struct rfs_buf **out)
{
	u64 from = *off, end = ENTRY_BLOCKS + RFS_QUOTA_TYPES;
	int ret;

	do {
		ret = rfs_map_seek(fs, RFS_QUOTA_INO, from, end, true, &from);
	} while (ret == -EAGAIN);
	if (ret)
		return ret;
	*off = from;
	if (*off >= end)
		return -ENOENT;
	ret = rfs_quota_block_get(fs, *off, false, out);
	return ret || *out ? ret : -EUCLEAN;
}

int rfs_quota_next(struct rfs_fs *fs, u32 type, u32 *id)
{
	static const struct rfs_quota none;
	u64 off = RFS_QUOTA_OFF(type, *id), at = *id;
	struct rfs_buf *buf;
	int ret;

	for (;; off++) {
		ret = rfs_quota_block(fs, &off, &buf);
		if (ret)
			return ret;
		if (off % RFS_QUOTA_TYPES != type)
			continue;
		at = max(at, off / RFS_QUOTA_TYPES * RFS_QUOTA_ENTRIES);
		for (; at < (off / RFS_QUOTA_TYPES + 1) * RFS_QUOTA_ENTRIES;
		     at++) {
			if (at >= RFS_QUOTA_GRACE)
				return -ENOENT;
			if (memcmp(&buf->quotas.entry[at % RFS_QUOTA_ENTRIES],
				   &none, sizeof(none))) {
				*id = at;
				return 0;
			}
		}
	}
}
