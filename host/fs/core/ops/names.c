// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Changes of names and inodes. Each makes a record, rfs_apply() changes the
 * state by it, the log gets it; recovery applies the same records.
 */
#include "rfs.h"

static u8 type_of(u32 mode)
{
	return mode >> 12 & 15;
}

static void add_links(struct rfs_dinode *di, int delta)
{
	di->nlink = cpu_to_le32(le32_to_cpu(di->nlink) + delta);
}

static void touch(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *buf, const struct rfs_rec *rec, bool content)
{
	di->ctime = rec->time;
	if (content)
		di->mtime = rec->time;
	rfs_buf_dirty(fs, buf);
}

static int touch_dir(struct rfs_fs *fs, u32 dir, const struct rfs_rec *rec,
		     int links)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, dir, &di, &buf);

	if (ret)
		return ret;
	add_links(di, links);
	touch(fs, di, buf, rec, true);
	return 0;
}

static int note_tomb(struct rfs_fs *fs, struct rfs_tomb tomb)
{
	if (!fs->replaying || fs->teeth & RFS_TEETH_TOMB)
		return 0;
	if (fs->tombs == fs->tomb_room) {
		u32 room = fs->tomb_room ? 2 * fs->tomb_room : 64;
		struct rfs_tomb *more = rfs_alloc(room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		if (fs->tombs)
			memcpy(more, fs->tomb, fs->tombs * sizeof(*more));
		rfs_free(fs->tomb);
		fs->tomb = more;
		fs->tomb_room = room;
	}
	fs->tomb[fs->tombs++] = tomb;
	return 0;
}

/* A symlink's target beyond the inode is in a block of its own. */
static int set_target(struct rfs_fs *fs, struct rfs_dinode *di,
		      const u8 *target, u32 len)
{
	u32 here = min_t(u32, len, RFS_INLINE_MAX);
	struct rfs_buf *buf;
	int ret;

	memcpy(di->inl, target, here);
	di->inline_len = cpu_to_le32(here);
	di->size = cpu_to_le64(len);
	if (len == here)
		return 0;
	if (len - here > RFS_BODY_BYTES)
		return -EUCLEAN;
	ret = rfs_block_new(fs, le32_to_cpu(di->ino), RFS_DIR, 0, 0, &buf);
	if (ret)
		return ret;
	memcpy(buf->bytes + sizeof(struct rfs_head), target + here, len - here);
	buf->head.count = cpu_to_le16(len - here);
	return 0;
}

/* Orphans say who is before them in the list: they leave it without a search. */
static void set_before(struct rfs_fs *fs, __le32 next, __le32 before)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	/* one that cannot be read now is sought later */
	if (!next || rfs_iget(fs, le32_to_cpu(next), &di, &buf) || di->nlink)
		return;
	di->parent = before;
	rfs_buf_dirty(fs, buf);
}

/* An inode without a name. */
static void to_orphans(struct rfs_fs *fs, struct rfs_dinode *di)
{
	di->nlink = 0;
	di->next_orphan = cpu_to_le32(fs->orphans);
	set_before(fs, di->next_orphan, di->ino);
	fs->orphans = le32_to_cpu(di->ino);
}

/* A new inode, as its record has it, is its owners'. */
static int set_inode(struct rfs_fs *fs, struct rfs_dinode *di,
		     const struct rfs_rec *rec, __le32 gen, u32 nlink)
{
	di->gen = gen;
	di->mode = rec->mode;
	di->nlink = cpu_to_le32(nlink);
	di->uid = rec->uid;
	di->gid = rec->gid;
	di->parent = rec->dir1;
	di->atime = rec->time;
	di->mtime = rec->time;
	di->ctime = rec->time;
	di->btime = rec->time;
	di->attr_version = rec->version;
	return fs->counting ? rfs_quota_add(fs, di, 0, 1) : 0;
}

/* An inode with what it has goes from its owner to another. */
static int give(struct rfs_fs *fs, const struct rfs_dinode *di, u32 type, u32 to)
{
	s64 blocks = le64_to_cpu(di->blocks);
	int ret;

	if (!fs->counting || rfs_owner(di, type) == to)
		return 0;
	ret = rfs_quota_charge(fs, type, rfs_owner(di, type), -blocks, -1);
	return ret ? ret : rfs_quota_charge(fs, type, to, blocks, 1);
}

static int apply_create(struct rfs_fs *fs, const struct rfs_rec *rec,
			const u8 *name, const u8 *more)
{
	u32 ino = le32_to_cpu(rec->ino), dir = le32_to_cpu(rec->dir1);
	u32 mode = le32_to_cpu(rec->mode), len2 = le16_to_cpu(rec->len2);
	struct rfs_dinode *di, *parent;
	struct rfs_buf *buf, *pbuf;
	int ret;

	ret = rfs_iget(fs, dir, &parent, &pbuf);
	if (!ret)
		ret = rfs_iset(fs, ino, &di, &buf);
	if (ret)
		return ret;
	di->rdev = rec->rdev;
	di->flags = rec->iflags;
	ret = set_inode(fs, di, rec, rec->gen, S_ISDIR(mode) ? 2 : 1);
	if (ret)
		return ret;
	if (!rec->len1) {	/* O_TMPFILE */
		to_orphans(fs, di);
		return rfs_xattr_fill(fs, di, buf, more, len2);
	}
	ret = rfs_dir_add(fs, dir, name, le16_to_cpu(rec->len1), ino,
			  type_of(mode));
	if (!ret && S_ISLNK(mode))
		ret = set_target(fs, di, more, len2);
	else if (!ret)
		ret = rfs_xattr_fill(fs, di, buf, more, len2);
	if (ret) {
		rfs_ifree(fs, ino);
		return ret;
	}
	return touch_dir(fs, dir, rec, S_ISDIR(mode));
}

/* The orphan before another, which is not the first. */
static int find_before(struct rfs_fs *fs, const struct rfs_dinode *of,
		       struct rfs_dinode **di, struct rfs_buf **buf)
{
	u32 at = fs->orphans, mark = at, steps = 0, limit = 1;
	int ret;

	/* as it says, unless the list is of an older version */
	if (!rfs_iget(fs, le32_to_cpu(of->parent), di, buf) && !(*di)->nlink &&
	    (*di)->next_orphan == of->ino)
		return 0;
	while (at) {
		ret = rfs_iget(fs, at, di, buf);
		if (ret)
			return ret;
		if ((*di)->next_orphan == of->ino)
			return 0;
		at = le32_to_cpu((*di)->next_orphan);
		/* a damaged list may go round: Brent's way to see it */
		if (at == mark)
			return -EUCLEAN;
		if (++steps == limit) {
			mark = at;
			limit *= 2;
			steps = 0;
		}
	}
	return -EUCLEAN;
}

static int leave_orphans(struct rfs_fs *fs, const struct rfs_dinode *of)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	if (fs->orphans == le32_to_cpu(of->ino)) {
		fs->orphans = le32_to_cpu(of->next_orphan);
		return 0;
	}
	ret = find_before(fs, of, &di, &buf);
	if (ret)
		return ret;
	di->next_orphan = of->next_orphan;
	rfs_buf_dirty(fs, buf);
	set_before(fs, of->next_orphan, di->ino);
	return 0;
}

static int apply_link(struct rfs_fs *fs, const struct rfs_rec *rec,
		      const u8 *name)
{
	u32 ino = le32_to_cpu(rec->ino), dir = le32_to_cpu(rec->dir1);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret)
		ret = rfs_dir_add(fs, dir, name, le16_to_cpu(rec->len1), ino,
				  type_of(le32_to_cpu(di->mode)));
	if (!ret && !di->nlink) {
		ret = leave_orphans(fs, di);
		di->next_orphan = 0;
		di->parent = rec->dir1;
	}
	if (ret)
		return ret;
	add_links(di, 1);
	touch(fs, di, buf, rec, false);
	return touch_dir(fs, dir, rec, 0);
}

/* One name less; without any the inode is an orphan. */
static int lose_name(struct rfs_fs *fs, u32 ino, u32 dir,
		     const struct rfs_rec *rec)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	bool is_dir;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (ret)
		return ret;
	is_dir = S_ISDIR(le32_to_cpu(di->mode));
	if (!di->nlink)
		return -EUCLEAN;
	add_links(di, is_dir ? -(int)le32_to_cpu(di->nlink) : -1);
	if (!di->nlink)
		to_orphans(fs, di);
	touch(fs, di, buf, rec, false);
	return touch_dir(fs, dir, rec, is_dir ? -1 : 0);
}

static int apply_unlink(struct rfs_fs *fs, const struct rfs_rec *rec,
			const u8 *name)
{
	u32 dir = le32_to_cpu(rec->dir1);
	int ret = rfs_dir_remove(fs, dir, name, le16_to_cpu(rec->len1));

	return ret ? ret : lose_name(fs, le32_to_cpu(rec->ino), dir, rec);
}

/* A directory that comes from dir1 to dir2 */
static int move_dir(struct rfs_fs *fs, struct rfs_dinode *di, u32 dir1,
		    u32 dir2, const struct rfs_rec *rec)
{
	int ret;

	if (!S_ISDIR(le32_to_cpu(di->mode)) || dir1 == dir2)
		return 0;
	di->parent = cpu_to_le32(dir2);
	ret = touch_dir(fs, dir1, rec, -1);
	return ret ? ret : touch_dir(fs, dir2, rec, 1);
}

/* The first name is a device 0:0 from now on, as overlayfs wants it. */
static int put_whiteout(struct rfs_fs *fs, const struct rfs_rec *rec,
			const u8 *name1)
{
	u32 ino = le64_to_cpu(rec->arg1), mode = le32_to_cpu(rec->mode);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iset(fs, ino, &di, &buf);

	if (ret)
		return ret;
	ret = set_inode(fs, di, rec, cpu_to_le32((u32)le64_to_cpu(rec->arg2)),
			1);
	if (ret)
		return ret;
	return rfs_dir_set(fs, le32_to_cpu(rec->dir1), name1,
			   le16_to_cpu(rec->len1), ino, type_of(mode));
}

static int apply_rename(struct rfs_fs *fs, const struct rfs_rec *rec,
			const u8 *name1, const u8 *name2)
{
	u32 ino = le32_to_cpu(rec->ino), victim = le32_to_cpu(rec->victim);
	u32 dir1 = le32_to_cpu(rec->dir1), dir2 = le32_to_cpu(rec->dir2);
	u32 len1 = le16_to_cpu(rec->len1), len2 = le16_to_cpu(rec->len2);
	struct rfs_dinode *di, *vi;
	struct rfs_buf *buf, *vbuf;
	u8 type;
	int ret;

	ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret && victim)
		ret = rfs_iget(fs, victim, &vi, &vbuf);
	if (ret)
		return ret;
	type = type_of(le32_to_cpu(di->mode));
	if (victim)
		ret = rfs_dir_set(fs, dir2, name2, len2, ino, type);
	else
		ret = rfs_dir_add(fs, dir2, name2, len2, ino, type);
	if (ret)
		return ret;
	if (rec->flags & RFS_REC_EXCHANGE) {
		if (!victim)
			return -EUCLEAN;
		ret = rfs_dir_set(fs, dir1, name1, len1, victim,
				  type_of(le32_to_cpu(vi->mode)));
		if (!ret)
			ret = move_dir(fs, vi, dir2, dir1, rec);
		touch(fs, vi, vbuf, rec, false);
	} else {
		if (rec->flags & RFS_REC_WHITEOUT)
			ret = put_whiteout(fs, rec, name1);
		else
			ret = rfs_dir_remove(fs, dir1, name1, len1);
		if (!ret && victim)
			ret = lose_name(fs, victim, dir2, rec);
	}
	if (!ret)
		ret = move_dir(fs, di, dir1, dir2, rec);
	touch(fs, di, buf, rec, false);
	if (!ret)
		ret = touch_dir(fs, dir1, rec, 0);
	return ret ? ret : touch_dir(fs, dir2, rec, 0);
}

static int apply_attr(struct rfs_fs *fs, const struct rfs_rec *rec)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, le32_to_cpu(rec->ino), &di, &buf);

	if (!ret)
		ret = give(fs, di, RFS_QUOTA_USER, le32_to_cpu(rec->uid));
	if (!ret)
		ret = give(fs, di, RFS_QUOTA_GROUP, le32_to_cpu(rec->gid));
	if (ret)
		return ret;
	di->mode = cpu_to_le32((le32_to_cpu(di->mode) & S_IFMT) |
			       (le32_to_cpu(rec->mode) & ~S_IFMT));
	di->uid = rec->uid;
	di->gid = rec->gid;
	di->flags = rec->iflags;
	di->atime = rec->arg1;
	di->mtime = rec->arg2;
	di->ctime = rec->time;
	di->attr_version = rec->version;
	rfs_buf_dirty(fs, buf);
	return 0;
}

static int apply_size(struct rfs_fs *fs, const struct rfs_rec *rec)
{
	u32 ino = le32_to_cpu(rec->ino);
	u64 size = le64_to_cpu(rec->arg1), block = size / RFS_BLOCK_BYTES;
	u32 cut = size % RFS_BLOCK_BYTES;
	struct rfs_tomb tomb = { .ino = ino, .gen = le32_to_cpu(rec->gen),
		.from = block + !!cut, .to = ~0ULL, .cut_block = block,
		.cut_len = cut, .version = le64_to_cpu(rec->version) };
	struct rfs_dinode *di;
	struct rfs_buf *buf, *holder;
	struct rfs_ptr *slot;
	int ret;

	ret = note_tomb(fs, tomb);
	if (!ret && !(rec->flags & RFS_REC_GROW))
		ret = rfs_map_prune(fs, ino, tomb.from, tomb.to, false);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	di->size = rec->arg1;
	di->attr_version = rec->version;
	touch(fs, di, buf, rec, true);
	ret = rfs_map_slot(fs, ino, block, false, &slot, &holder);
	if (ret || !cut || !slot || rfs_high(slot->addr) <= cut)
		return ret;
	slot->addr = rfs_word(rfs_addr(slot->addr), cut);
	rfs_buf_dirty(fs, holder);
	return 0;
}

static int apply_punch(struct rfs_fs *fs, const struct rfs_rec *rec)
{
	u32 ino = le32_to_cpu(rec->ino);
	struct rfs_tomb tomb = { .ino = ino, .gen = le32_to_cpu(rec->gen),
		.from = le64_to_cpu(rec->arg1), .to = le64_to_cpu(rec->arg2),
		.punch = true, .version = le64_to_cpu(rec->version) };
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	ret = note_tomb(fs, tomb);
	if (!ret)
		ret = rfs_map_prune(fs, ino, tomb.from, tomb.to,
				    rec->flags & RFS_REC_KEEP);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	di->attr_version = rec->version;
	touch(fs, di, buf, rec, true);
	return 0;
}

static int apply_reserve(struct rfs_fs *fs, const struct rfs_rec *rec)
{
	u64 from = le64_to_cpu(rec->arg1), to = le64_to_cpu(rec->arg2);
	u32 ino = le32_to_cpu(rec->ino);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (ret)
		return ret;
	if (!S_ISREG(le32_to_cpu(di->mode)) || to - from > RFS_RANGE_MAX)
		return -EUCLEAN;
	ret = rfs_map_reserve(fs, ino, from, to);
	if (ret)
		return ret;
	di->attr_version = rec->version;
	touch(fs, di, buf, rec, true);
	return 0;
}

static int apply_free(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	if (di->nlink)
		return -EUCLEAN;
	ret = leave_orphans(fs, di);
	if (!ret)
		ret = rfs_map_prune(fs, ino, 0, ~0ULL, false);
	if (!ret)
		ret = rfs_xattr_drop(fs, di, buf);
	if (ret)
		return ret;
	return rfs_ifree(fs, ino);
}

/* The record's inode, unless it makes one, must be of its generation. */
static int check_gen(struct rfs_fs *fs, const struct rfs_rec *rec)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	if (rec->op == RFS_OP_CREATE)
		return 0;
	ret = rfs_iget(fs, le32_to_cpu(rec->ino), &di, &buf);
	if (ret)
		return ret;
	return di->gen == rec->gen ? 0 : -EUCLEAN;
}

int rfs_apply(struct rfs_fs *fs, const struct rfs_rec *rec, const u8 *name1,
	      const u8 *name2)
{
	int ret = check_gen(fs, rec);

	if (ret)
		return ret;
	switch (rec->op) {
	case RFS_OP_CREATE:
		return apply_create(fs, rec, name1, name2);
	case RFS_OP_LINK:
		return apply_link(fs, rec, name1);
	case RFS_OP_UNLINK:
		return apply_unlink(fs, rec, name1);
	case RFS_OP_RENAME:
		return apply_rename(fs, rec, name1, name2);
	case RFS_OP_ATTR:
		return apply_attr(fs, rec);
	case RFS_OP_SIZE:
		return apply_size(fs, rec);
	case RFS_OP_PUNCH:
		return apply_punch(fs, rec);
	case RFS_OP_FREE:
		return apply_free(fs, le32_to_cpu(rec->ino));
	case RFS_OP_RESERVE:
		return apply_reserve(fs, rec);
	case RFS_OP_XATTR:
		return rfs_xattr_apply(fs, rec, name1, name2);
	case RFS_OP_QUOTA:
		return rfs_quota_apply(fs, rec, name2);
	}
	return -EUCLEAN;
}

void rfs_rec_init(struct rfs_fs *fs, struct rfs_rec *rec, u8 op, u32 ino)
{
	memset(rec, 0, sizeof(*rec));
	rec->op = op;
	rec->ino = cpu_to_le32(ino);
	rec->version = cpu_to_le64(rfs_next_version(fs, 1));
	rec->time = cpu_to_le64(fs->ops->now(fs->dev));
}

int rfs_commit(struct rfs_fs *fs, struct rfs_rec *rec, const void *first,
	       u32 len1, const void *second, u32 len2)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	rec->len1 = cpu_to_le16(len1);
	rec->len2 = cpu_to_le16(len2);
	rec->bytes = cpu_to_le32((sizeof(*rec) + len1 + len2 + 7) / 8 * 8);
	if (rec->op != RFS_OP_CREATE) {
		ret = rfs_iget(fs, le32_to_cpu(rec->ino), &di, &buf);
		if (ret)
			return ret;
		rec->gen = di->gen;
	}
	ret = rfs_log_room(fs);
	if (ret)
		return ret;
	ret = rfs_apply(fs, rec, first, second);
	if (ret == -ENOSPC)
		return ret;	/* nothing was changed */
	if (!ret)
		ret = rfs_log_add(fs, rec, first, second);
	if (ret)
		fs->read_only = true;	/* it may be half done */
	return ret;
}

static int commit(struct rfs_fs *fs, struct rfs_rec *rec, const char *name1,
		  const char *name2)
{
	return rfs_commit(fs, rec, name1, name1 ? strlen(name1) : 0, name2,
			  name2 ? strlen(name2) : 0);
}

static int name_ok(const char *name)
{
	size_t len = strlen(name);

	if (len > RFS_NAME_MAX)
		return -ENAMETOOLONG;
	return len ? 0 : -EINVAL;
}

static int free_name(struct rfs_fs *fs, u32 dir, const char *name)
{
	u32 ino;
	int ret = name_ok(name);

	if (!ret)
		ret = rfs_dir_find(fs, dir, name, strlen(name), &ino);
	if (!ret)
		return -EEXIST;
	return ret == -ENOENT ? 0 : ret;
}

/* Entries of owners who had nothing yet */
static u32 owner_blocks(const struct rfs_fs *fs)
{
	return fs->counting ? RFS_QUOTA_TYPES : 0;
}

/* May its owners have one inode more, with so many blocks? */
static int may_own(struct rfs_fs *fs, const struct rfs_new *how, u64 blocks)
{
	u32 id[RFS_QUOTA_TYPES] = { how->uid, how->gid };

	return rfs_quota_may(fs, RFS_QUOTA_BOTH, id, blocks, 1);
}

/*
 * Of an inode that a version makes: but for 1 in 2^32 another one than of those
 * that had its number before. Each mount has an epoch of its own, in which the
 * low half begins anew.
 */
static __le32 generation(__le64 version)
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
	int ret = may_own(fs, how, !!how->xattr_bytes);

	if (!ret)
		ret = rfs_make_room(fs, 0, 5 + !!how->xattr_bytes +
				    owner_blocks(fs));
	if (!ret && name)
		ret = free_name(fs, dir, name);
	if (!ret)
		ret = rfs_ialloc(fs, ino);
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_CREATE, *ino);
	rec.gen = generation(rec.version);
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
	int ret = rfs_make_room(fs, 0, 3);

	if (!ret)
		ret = free_name(fs, dir, name);
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_LINK, ino);
	rec.dir1 = cpu_to_le32(dir);
	return commit(fs, &rec, name, NULL);
}

/* May a directory go? */
static int check_empty(struct rfs_fs *fs, u32 ino)
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
		ret = name_ok(name);
	if (!ret)
		ret = rfs_dir_find(fs, dir, name, strlen(name), ino);
	if (!ret)
		ret = check_empty(fs, *ino);
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_UNLINK, *ino);
	rec.dir1 = cpu_to_le32(dir);
	return commit(fs, &rec, name, NULL);
}

/* Whether a directory is another one or above it is the caller's matter. */
int rfs_rename(struct rfs_fs *fs, u32 dir1, const char *name1, u32 dir2,
	       const char *name2, u32 flags, const struct rfs_new *how)
{
	u32 ino, victim = 0, white = 0;
	struct rfs_rec rec;
	int ret = rfs_make_room(fs, 0, flags & RFS_REC_WHITEOUT ?
				5 + owner_blocks(fs) : 3);

	if (!ret && flags & RFS_REC_WHITEOUT)
		ret = may_own(fs, how, 0);
	if (!ret)
		ret = name_ok(name2);
	if (!ret)
		ret = rfs_dir_find(fs, dir1, name1, strlen(name1), &ino);
	if (ret)
		return ret;
	ret = rfs_dir_find(fs, dir2, name2, strlen(name2), &victim);
	if (ret == -ENOENT && !(flags & RFS_REC_EXCHANGE))
		ret = 0;
	else if (!ret && victim != ino && !(flags & RFS_REC_EXCHANGE))
		ret = check_empty(fs, victim);
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
		rec.arg2 = cpu_to_le64(le32_to_cpu(generation(rec.version)));
		rec.mode = cpu_to_le32(S_IFCHR);
		rec.uid = cpu_to_le32(how->uid);
		rec.gid = cpu_to_le32(how->gid);
	}
	rec.flags = flags;
	rec.dir1 = cpu_to_le32(dir1);
	rec.dir2 = cpu_to_le32(dir2);
	rec.victim = cpu_to_le32(victim);
	return commit(fs, &rec, name1, name2);
}

int rfs_truncate(struct rfs_fs *fs, u32 ino, u64 size, bool grows)
{
	struct rfs_rec rec;
	int ret = rfs_make_room_to_free(fs);

	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_SIZE, ino);
	if (grows)
		rec.flags = RFS_REC_GROW;
	rec.arg1 = cpu_to_le64(size);
	return commit(fs, &rec, NULL, NULL);
}

int rfs_punch(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep)
{
	struct rfs_rec rec;
	int ret = rfs_make_room_to_free(fs);

	/* each leaf that keeps its blocks becomes dirty */
	if (!ret && keep && to - from > RFS_RANGE_MAX)
		ret = -EINVAL;
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_PUNCH, ino);
	rec.flags = keep ? RFS_REC_KEEP : 0;
	rec.arg1 = cpu_to_le64(from);
	rec.arg2 = cpu_to_le64(to);
	return commit(fs, &rec, NULL, NULL);
}

static int count_holes(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *holes)
{
	struct rfs_ptr ptr;
	int ret = 0;

	for (*holes = 0; !ret && from < to; from++) {
		ret = rfs_map_get(fs, ino, from, &ptr);
		*holes += ptr.kind == RFS_PTR_HOLE;
	}
	return ret;
}

u64 rfs_available(const struct rfs_fs *fs)
{
	u64 free = fs->user_blocks - min(fs->user_blocks, rfs_used(fs));
	/* what rfs_reserve() asks for beyond, and nodes that are begun */
	u64 ends = 2 + RFS_HEIGHT_MAX + RFS_RANGE_MAX / RFS_FANOUT +
		   RFS_HEIGHT_MAX;

	if (free <= ends)
		return 0;
	free -= ends;
	/* a node for 252 blocks, one for 252 of these, and so on: 1/251 */
	return free - DIV_ROUND_UP(free, (u64)RFS_FANOUT);
}

int rfs_reserve(struct rfs_fs *fs, u32 ino, u64 *from, u64 to)
{
	u64 end = min(to, *from + RFS_RANGE_MAX), holes, has, nodes = 0;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_rec rec;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (!ret)
		ret = count_holes(fs, ino, *from, end, &holes);
	if (!ret && fs->enforced)
		ret = rfs_map_needs(fs, ino, *from, end, &nodes);
	if (!ret && holes)
		ret = rfs_quota_may_grow(fs, ino, holes + nodes);
	if (ret)
		return ret;
	/* more than the volume has is refused before any of it is reserved */
	has = le64_to_cpu(di->blocks);
	if (to - *from > has && to - *from - has > fs->user_blocks -
	    min(fs->user_blocks, rfs_used(fs)))
		return -ENOSPC;
	/* a node for each 252 blocks, one more at an end, those above */
	ret = rfs_make_room(fs, 0, !holes ? 0 : holes + 2 + RFS_HEIGHT_MAX +
			    (end - *from) / RFS_FANOUT);
	if (ret)
		return ret;
	/* without holes too: a power cut may lose what is in them now */
	rfs_rec_init(fs, &rec, RFS_OP_RESERVE, ino);
	rec.arg1 = cpu_to_le64(*from);
	rec.arg2 = cpu_to_le64(end);
	ret = commit(fs, &rec, NULL, NULL);
	if (!ret)
		*from = end;
	return ret;
}

/*
 * Those to whom an inode would go have room for it, and entries: who has some
 * already can be given files on a full volume, too.
 */
static int may_give(struct rfs_fs *fs, const struct rfs_dinode *di,
		    const struct rfs_dinode *attr, u32 types, u64 held)
{
	u32 id[RFS_QUOTA_TYPES] = { le32_to_cpu(attr->uid),
				    le32_to_cpu(attr->gid) };
	int ret = rfs_quota_may(fs, types, id, le64_to_cpu(di->blocks) + held,
				1);
	struct rfs_quota *q;
	struct rfs_buf *buf;
	u32 type, more = 0;

	for (type = 0; !ret && type < RFS_QUOTA_TYPES; type++) {
		if (!(types & 1U << type))
			continue;
		ret = rfs_quota_entry(fs, type, id[type], false, &q, &buf);
		more += !q;
	}
	return ret || !more ? ret : rfs_make_room(fs, 0, more);
}

/* types: a bit for each owner that changes; old: those before */
static int may_setattr(struct rfs_fs *fs, u32 ino,
		       const struct rfs_dinode *attr, u64 held,
		       u32 old[RFS_QUOTA_TYPES], u32 *types)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_make_room_to_free(fs);
	u32 type;

	*types = 0;
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	for (type = 0; type < RFS_QUOTA_TYPES; type++) {
		old[type] = rfs_owner(di, type);
		if (fs->counting && old[type] != rfs_owner(attr, type))
			*types |= 1U << type;
	}
	return *types ? may_give(fs, di, attr, *types, held) : 0;
}

int rfs_may_give(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		 u64 held)
{
	u32 old[RFS_QUOTA_TYPES], types;

	return may_setattr(fs, ino, attr, held, old, &types);
}

/* The record by which an inode gets what attr has */
static void attr_rec(struct rfs_fs *fs, struct rfs_rec *rec, u32 ino,
		     const struct rfs_dinode *attr)
{
	rfs_rec_init(fs, rec, RFS_OP_ATTR, ino);
	rec->mode = attr->mode;
	rec->uid = attr->uid;
	rec->gid = attr->gid;
	rec->iflags = attr->flags;
	rec->arg1 = attr->atime;
	rec->arg2 = attr->mtime;
}

int rfs_setattr(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		u64 held)
{
	u32 type, types, old[RFS_QUOTA_TYPES];
	struct rfs_rec rec;
	int ret = may_setattr(fs, ino, attr, held, old, &types);

	if (ret)
		return ret;
	attr_rec(fs, &rec, ino, attr);
	ret = commit(fs, &rec, NULL, NULL);
	for (type = 0; !ret && type < RFS_QUOTA_TYPES; type++) {
		if (!(types & 1U << type) || !held)
			continue;
		ret = rfs_quota_hold_one(fs, type, old[type], -(s64)held);
		if (!ret)
			ret = rfs_quota_hold_one(fs, type,
						 rfs_owner(attr, type), held);
	}
	return ret;
}

int rfs_log_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_rec rec;
	int ret = rfs_make_room_to_free(fs);

	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	attr_rec(fs, &rec, ino, di);
	rec.arg1 = times->atime;
	rec.arg2 = times->mtime;
	rec.time = times->ctime;
	return commit(fs, &rec, NULL, NULL);
}

int rfs_set_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_make_room_to_free(fs);

	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	di->atime = times->atime;
	if (!S_ISDIR(le32_to_cpu(di->mode))) {	/* else these are newer */
		di->mtime = times->mtime;
		di->ctime = times->ctime;
		/* pages on their way may have older ones */
		di->attr_version = cpu_to_le64(rfs_next_version(fs, 1));
	}
	rfs_buf_dirty(fs, buf);
	return 0;
}

int rfs_free_orphan(struct rfs_fs *fs, u32 ino)
{
	struct rfs_rec rec;
	int ret = rfs_make_room_to_free(fs);

	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_FREE, ino);
	return commit(fs, &rec, NULL, NULL);
}

/* In memory only: recovery's check-point follows. */
int rfs_free_orphans(struct rfs_fs *fs)
{
	int ret = 0;

	while (!ret && fs->orphans) {
		ret = apply_free(fs, fs->orphans);
		fs->recovered.orphans += !ret;
	}
	return ret;
}

int rfs_forget(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (ret)
		return ret;
	if (di->nlink)
		to_orphans(fs, di);
	return apply_free(fs, ino);
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
