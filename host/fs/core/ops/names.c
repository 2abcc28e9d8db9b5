// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names change here: create, link, unlink, rename. Each makes a record, which
 * log/apply.c applies, now and in recovery.
 */
#include "tree/tree.h"
#include "tree/dir.h"
#include "tree/quota.h"
#include "log/log.h"
#include "ops/ops.h"

static int rfs_commit_names(struct rfs_fs *fs, struct rfs_rec *rec,
			    const char *name1, const char *name2)
{
	return rfs_commit(fs, rec, name1, name1 ? strlen(name1) : 0, name2,
			  name2 ? strlen(name2) : 0);
}

static int rfs_name_ok(const char *name)
{
	size_t len = strlen(name);

	if (len > RFS_NAME_MAX)
		return -ENAMETOOLONG;
	return len ? 0 : -EINVAL;
}

static int rfs_free_name(struct rfs_fs *fs, u32 dir, const char *name)
{
	u32 ino;
	int ret = rfs_name_ok(name);

	if (!ret)
		ret = rfs_dir_find(fs, dir, name, strlen(name), &ino);
	if (!ret)
		return -EEXIST;
	return ret == -ENOENT ? 0 : ret;
}

/* Owners who had nothing yet get entries. */
static u32 rfs_owner_blocks(const struct rfs_fs *fs)
{
	return fs->counting ? RFS_QUOTA_TYPES : 0;
}

/* Asks whether the owners may have one more inode, with so many blocks. */
static int rfs_may_own(struct rfs_fs *fs, const struct rfs_new *how, u64 blocks)
{
	u32 id[RFS_QUOTA_TYPES] = { how->uid, how->gid };

	return rfs_quota_may(fs, RFS_QUOTA_BOTH, id, blocks, 1);
}

/*
 * Returns the generation of an inode that a version makes. Except once in 2^32, it differs from
 * those of the inodes that had its number before. Each mount has an epoch of its own, in which the
 * low half begins anew.
 */
static __le32 rfs_new_gen(__le64 version)
{
	u64 v = le64_to_cpu(version);

	return cpu_to_le32((u32)v + (u32)(v >> RFS_EPOCH_SHIFT) * 0x9e3779b1U);
}

int rfs_create(struct rfs_fs *fs, u32 dir, const char *name,
	       const struct rfs_new *how, u32 *ino)
{
	const void *more = how->target ? how->target : how->xattrs;
	u32 bytes = how->target ? strlen(how->target) : how->xattr_bytes;
	struct rfs_rec rec;
	int ret = rfs_may_own(fs, how, !!how->xattr_bytes);

	if (!ret)
		ret = rfs_make_room(fs, 0, 0, 5 + !!how->xattr_bytes +
				    rfs_owner_blocks(fs));
	if (!ret && name)
		ret = rfs_free_name(fs, dir, name);
	if (!ret)
		ret = rfs_ialloc(fs, ino);
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_CREATE, *ino);
	rec.gen = rfs_new_gen(rec.version);
	rec.dir1 = cpu_to_le32(dir);
	rec.mode = cpu_to_le32(how->mode);
	rec.uid = cpu_to_le32(how->uid);
	rec.gid = cpu_to_le32(how->gid);
	rec.rdev = cpu_to_le32(how->rdev);
	rec.iflags = cpu_to_le32(how->flags);
	return rfs_commit(fs, &rec, name, name ? strlen(name) : 0, more, bytes);
}

int rfs_link(struct rfs_fs *fs, u32 dir, const char *name, u32 ino)
{
	struct rfs_rec rec;
	int ret = rfs_make_room(fs, 0, 0, 3);

	if (!ret)
		ret = rfs_free_name(fs, dir, name);
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_LINK, ino);
	rec.dir1 = cpu_to_le32(dir);
	return rfs_commit_names(fs, &rec, name, NULL);
}

/* Says whether a directory may be removed. */
static int rfs_check_empty(struct rfs_fs *fs, u32 ino)
{
	struct rfs_entry entry;
	int ret = rfs_dir_next(fs, ino, 0, &entry);

	if (ret == -ENOTDIR || ret == -ENOENT)
		return 0;
	return ret ? ret : -ENOTEMPTY;
}

int rfs_unlink(struct rfs_fs *fs, u32 dir, const char *name, u32 *ino)
{
	struct rfs_rec rec;
	int ret = rfs_make_room_to_free(fs);

	if (!ret)
		ret = rfs_name_ok(name);
	if (!ret)
		ret = rfs_dir_find(fs, dir, name, strlen(name), ino);
	if (!ret)
		ret = rfs_check_empty(fs, *ino);
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_UNLINK, *ino);
	rec.dir1 = cpu_to_le32(dir);
	return rfs_commit_names(fs, &rec, name, NULL);
}

/* The caller makes sure that a directory does not go below itself. */
int rfs_rename(struct rfs_fs *fs, u32 dir1, const char *name1, u32 dir2,
	       const char *name2, u32 flags, const struct rfs_new *how)
{
	u32 ino, victim = 0, white = 0;
	struct rfs_rec rec;
	int ret = rfs_make_room(fs, 0, 0, flags & RFS_REC_WHITEOUT ?
				5 + rfs_owner_blocks(fs) : 3);

	if (!ret && flags & RFS_REC_WHITEOUT)
		ret = rfs_may_own(fs, how, 0);
	if (!ret)
		ret = rfs_name_ok(name2);
	if (!ret)
		ret = rfs_dir_find(fs, dir1, name1, strlen(name1), &ino);
	if (ret)
		return ret;
	ret = rfs_dir_find(fs, dir2, name2, strlen(name2), &victim);
	if (ret == -ENOENT && !(flags & RFS_REC_EXCHANGE))
		ret = 0;
	else if (!ret && victim != ino && !(flags & RFS_REC_EXCHANGE))
		ret = rfs_check_empty(fs, victim);
	if (ret || victim == ino)
		return ret;
	if (flags & RFS_REC_WHITEOUT) {
		ret = rfs_ialloc(fs, &white);
		if (ret)
			return ret;
	}
	rfs_rec_init(fs, &rec, RFS_OP_RENAME, ino);
	if (white) {
		rec.arg1 = cpu_to_le64(white);
		rec.arg2 = cpu_to_le64(le32_to_cpu(rfs_new_gen(rec.version)));
		rec.mode = cpu_to_le32(S_IFCHR);
		rec.uid = cpu_to_le32(how->uid);
		rec.gid = cpu_to_le32(how->gid);
	}
	rec.flags = flags;
	rec.dir1 = cpu_to_le32(dir1);
	rec.dir2 = cpu_to_le32(dir2);
	rec.victim = cpu_to_le32(victim);
	return rfs_commit_names(fs, &rec, name1, name2);
}

int rfs_readlink(struct rfs_fs *fs, u32 ino, u8 *target, u32 *len)
{
	struct rfs_dinode *di;
	struct rfs_buf *ibuf, *buf;
	u32 here, rest;
	int ret = rfs_iget(fs, ino, &di, &ibuf);

	if (ret)
		return ret;
	if (!S_ISLNK(le32_to_cpu(di->mode)))
		return -EINVAL;
	*len = le64_to_cpu(di->size);
	here = le32_to_cpu(di->inline_len);
	if (here > RFS_INLINE_MAX || le64_to_cpu(di->size) < here ||
	    le64_to_cpu(di->size) > 4095)
		return -EUCLEAN;
	memcpy(target, di->inl, here);
	rest = *len - here;
	if (!rest)
		return 0;
	ret = rfs_block_get(fs, ino, RFS_DIR, 0, &buf);
	if (ret)
		return ret;
	if (!buf || le16_to_cpu(buf->head.count) != rest ||
	    rest > RFS_BODY_BYTES)
		return -EUCLEAN;
	memcpy(target + here, buf->bytes + sizeof(struct rfs_head), rest);
	return 0;
}
