// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each record of the log is applied here: at once when it is made, and again when recovery finds
 * it.
 */
#include "tree/tree.h"
#include "tree/diff.h"
#include "tree/dir.h"
#include "tree/xattr.h"
#include "tree/quota.h"
#include "log/log.h"

static u8 rfs_type_of(u32 mode)
{
	return mode >> 12 & 15;
}

static void rfs_add_links(struct rfs_dinode *di, int delta)
{
	di->nlink = cpu_to_le32(le32_to_cpu(di->nlink) + delta);
}

static void rfs_touch_inode(struct rfs_fs *fs, struct rfs_dinode *di,
			    struct rfs_buf *buf, const struct rfs_rec *rec,
			    bool content)
{
	di->ctime = rec->time;
	if (content)
		di->mtime = rec->time;
	rfs_buf_dirty(fs, buf);
}

static int rfs_touch_dir(struct rfs_fs *fs, u32 dir, const struct rfs_rec *rec,
			 int links)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, dir, &di, &buf);

	if (ret)
		return ret;
	rfs_add_links(di, links);
	rfs_touch_inode(fs, di, buf, rec, true);
	return 0;
}

static int rfs_note_tomb(struct rfs_fs *fs, struct rfs_tomb tomb)
{
	if (!fs->replaying || rfs_injects(fs, RFS_INJECT_TOMB))
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
static int rfs_set_target(struct rfs_fs *fs, struct rfs_dinode *di,
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

/* Orphans name the one before them in the list, so they leave it without a search. */
static void rfs_set_before(struct rfs_fs *fs, __le32 next, __le32 before)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	/* An orphan that cannot be read now is searched for later. */
	if (!next || rfs_iget(fs, le32_to_cpu(next), &di, &buf) || di->nlink)
		return;
	di->parent = before;
	rfs_buf_dirty(fs, buf);
}

/* An inode without a name becomes the first orphan. */
static void rfs_to_orphans(struct rfs_fs *fs, struct rfs_dinode *di)
{
	di->nlink = 0;
	di->next_orphan = cpu_to_le32(fs->orphans);
	rfs_set_before(fs, di->next_orphan, di->ino);
	fs->orphans = le32_to_cpu(di->ino);
}

/* Fills in a new inode as its record has it. It is its owners'. */
static int rfs_set_inode(struct rfs_fs *fs, struct rfs_dinode *di,
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

/* An inode goes from its owner to another, with its blocks. */
static int rfs_give_inode(struct rfs_fs *fs, const struct rfs_dinode *di,
			  u32 type, u32 to)
{
	s64 blocks = le64_to_cpu(di->blocks);
	int ret;

	if (!fs->counting || rfs_owner(di, type) == to)
		return 0;
	ret = rfs_quota_charge(fs, type, rfs_owner(di, type), -blocks, -1);
	return ret ? ret : rfs_quota_charge(fs, type, to, blocks, 1);
}

static int rfs_apply_create(struct rfs_fs *fs, const struct rfs_rec *rec,
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
	ret = rfs_set_inode(fs, di, rec, rec->gen, S_ISDIR(mode) ? 2 : 1);
	if (ret)
		return ret;
	if (!rec->len1) {	/* O_TMPFILE */
		rfs_to_orphans(fs, di);
		return rfs_xattr_fill(fs, di, buf, more, len2);
	}
	ret = rfs_dir_add(fs, dir, name, le16_to_cpu(rec->len1), ino,
			  rfs_type_of(mode));
	if (!ret && S_ISLNK(mode))
		ret = rfs_set_target(fs, di, more, len2);
	else if (!ret)
		ret = rfs_xattr_fill(fs, di, buf, more, len2);
	if (ret) {
		rfs_ifree(fs, ino);
		return ret;
	}
	return rfs_touch_dir(fs, dir, rec, S_ISDIR(mode));
}

/* Finds the orphan before another, which is not the first. */
static int rfs_find_before(struct rfs_fs *fs, const struct rfs_dinode *of,
			   struct rfs_dinode **di, struct rfs_buf **buf)
{
	u32 at = fs->orphans, mark = at, steps = 0, limit = 1;
	int ret;

	/* The orphan names the one before it, unless the list is of an older version. */
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
		/* A damaged list may go round. Brent's way finds that. */
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

static int rfs_leave_orphans(struct rfs_fs *fs, const struct rfs_dinode *of)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	if (fs->orphans == le32_to_cpu(of->ino)) {
		fs->orphans = le32_to_cpu(of->next_orphan);
		return 0;
	}
	ret = rfs_find_before(fs, of, &di, &buf);
	if (ret)
		return ret;
	di->next_orphan = of->next_orphan;
	rfs_buf_dirty(fs, buf);
	rfs_set_before(fs, of->next_orphan, di->ino);
	return 0;
}

static int rfs_apply_link(struct rfs_fs *fs, const struct rfs_rec *rec,
			  const u8 *name)
{
	u32 ino = le32_to_cpu(rec->ino), dir = le32_to_cpu(rec->dir1);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret)
		ret = rfs_dir_add(fs, dir, name, le16_to_cpu(rec->len1), ino,
				  rfs_type_of(le32_to_cpu(di->mode)));
	if (!ret && !di->nlink) {
		ret = rfs_leave_orphans(fs, di);
		di->next_orphan = 0;
		di->parent = rec->dir1;
	}
	if (ret)
		return ret;
	rfs_add_links(di, 1);
	rfs_touch_inode(fs, di, buf, rec, false);
	return rfs_touch_dir(fs, dir, rec, 0);
}

/* Takes one name from an inode. An inode without a name is an orphan. */
static int rfs_lose_name(struct rfs_fs *fs, u32 ino, u32 dir,
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
	rfs_add_links(di, is_dir ? -(int)le32_to_cpu(di->nlink) : -1);
	if (!di->nlink)
		rfs_to_orphans(fs, di);
	rfs_touch_inode(fs, di, buf, rec, false);
	return rfs_touch_dir(fs, dir, rec, is_dir ? -1 : 0);
}

static int rfs_apply_unlink(struct rfs_fs *fs, const struct rfs_rec *rec,
			    const u8 *name)
{
	u32 dir = le32_to_cpu(rec->dir1);
	int ret = rfs_dir_remove(fs, dir, name, le16_to_cpu(rec->len1));

	return ret ? ret : rfs_lose_name(fs, le32_to_cpu(rec->ino), dir, rec);
}

/* Moves a directory from dir1 to dir2. */
static int rfs_move_dir(struct rfs_fs *fs, struct rfs_dinode *di, u32 dir1,
			u32 dir2, const struct rfs_rec *rec)
{
	int ret;

	if (!S_ISDIR(le32_to_cpu(di->mode)) || dir1 == dir2)
		return 0;
	di->parent = cpu_to_le32(dir2);
	ret = rfs_touch_dir(fs, dir1, rec, -1);
	return ret ? ret : rfs_touch_dir(fs, dir2, rec, 1);
}

/* The first name is a device 0:0 from now on, as overlayfs needs it. */
static int rfs_put_whiteout(struct rfs_fs *fs, const struct rfs_rec *rec,
			    const u8 *name1)
{
	u32 ino = le64_to_cpu(rec->arg1), mode = le32_to_cpu(rec->mode);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iset(fs, ino, &di, &buf);

	if (ret)
		return ret;
	ret = rfs_set_inode(fs, di, rec,
			    cpu_to_le32((u32)le64_to_cpu(rec->arg2)), 1);
	if (ret)
		return ret;
	return rfs_dir_set(fs, le32_to_cpu(rec->dir1), name1,
			   le16_to_cpu(rec->len1), ino, rfs_type_of(mode));
}

static int rfs_apply_rename(struct rfs_fs *fs, const struct rfs_rec *rec,
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
	type = rfs_type_of(le32_to_cpu(di->mode));
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
				  rfs_type_of(le32_to_cpu(vi->mode)));
		if (!ret)
			ret = rfs_move_dir(fs, vi, dir2, dir1, rec);
		rfs_touch_inode(fs, vi, vbuf, rec, false);
	} else {
		if (rec->flags & RFS_REC_WHITEOUT)
			ret = rfs_put_whiteout(fs, rec, name1);
		else
			ret = rfs_dir_remove(fs, dir1, name1, len1);
		if (!ret && victim)
			ret = rfs_lose_name(fs, victim, dir2, rec);
	}
	if (!ret)
		ret = rfs_move_dir(fs, di, dir1, dir2, rec);
	rfs_touch_inode(fs, di, buf, rec, false);
	if (!ret)
		ret = rfs_touch_dir(fs, dir1, rec, 0);
	return ret ? ret : rfs_touch_dir(fs, dir2, rec, 0);
}

static int rfs_apply_attr(struct rfs_fs *fs, const struct rfs_rec *rec)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, le32_to_cpu(rec->ino), &di, &buf);

	if (!ret)
		ret = rfs_give_inode(fs, di, RFS_QUOTA_USER,
				     le32_to_cpu(rec->uid));
	if (!ret)
		ret = rfs_give_inode(fs, di, RFS_QUOTA_GROUP,
				     le32_to_cpu(rec->gid));
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

static int rfs_apply_size(struct rfs_fs *fs, const struct rfs_rec *rec)
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

	ret = rfs_note_tomb(fs, tomb);
	if (!ret && !(rec->flags & RFS_REC_GROW))
		ret = rfs_map_prune(fs, ino, tomb.from, tomb.to, false);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret)
		ret = rfs_diff_cut(fs, di, buf, size, ~0ULL);
	if (ret)
		return ret;
	di->size = rec->arg1;
	di->attr_version = rec->version;
	rfs_touch_inode(fs, di, buf, rec, true);
	ret = rfs_map_slot(fs, ino, block, false, &slot, &holder);
	if (ret || !cut || !slot || rfs_ptr_len(slot) <= cut)
		return ret;
	rfs_ptr_put(slot, rfs_ptr_flash(slot), rfs_ptr_home(slot), cut);
	rfs_buf_dirty(fs, holder);
	return 0;
}

/*
 * Returns the byte at which a block begins, or the end of the largest file if no file has such a
 * block.
 */
static u64 rfs_bytes_to(u64 block)
{
	return block < RFS_FILE_BLOCKS ? block * RFS_BLOCK_BYTES : ~0ULL;
}

static int rfs_apply_punch(struct rfs_fs *fs, const struct rfs_rec *rec)
{
	u32 ino = le32_to_cpu(rec->ino);
	struct rfs_tomb tomb = { .ino = ino, .gen = le32_to_cpu(rec->gen),
		.from = le64_to_cpu(rec->arg1), .to = le64_to_cpu(rec->arg2),
		.punch = true, .version = le64_to_cpu(rec->version) };
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	ret = rfs_note_tomb(fs, tomb);
	if (!ret)
		ret = rfs_map_prune(fs, ino, tomb.from, tomb.to,
				    rec->flags & RFS_REC_KEEP);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret)
		ret = rfs_diff_cut(fs, di, buf, rfs_bytes_to(tomb.from),
				   rfs_bytes_to(tomb.to));
	if (ret)
		return ret;
	di->attr_version = rec->version;
	rfs_touch_inode(fs, di, buf, rec, true);
	return 0;
}

static int rfs_apply_prealloc(struct rfs_fs *fs, const struct rfs_rec *rec)
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
	ret = rfs_map_preallocate(fs, ino, from, to);
	if (ret)
		return ret;
	di->attr_version = rec->version;
	rfs_touch_inode(fs, di, buf, rec, true);
	return 0;
}

/*
 * The window has older and newer pages, so the piece is applied in the order of versions with them.
 */
static int rfs_note_piece(struct rfs_fs *fs, const struct rfs_rec *rec,
			  const u8 *bytes)
{
	bool alone = !(rec->flags & RFS_REC_TXN);
	u32 len = le16_to_cpu(rec->len2);
	struct rfs_logged *noted = rfs_alloc(sizeof(*noted) + len);
	u32 txn = le64_to_cpu(rec->arg2);

	if (!noted)
		return -ENOMEM;
	noted->txn_idx = alone ? 0 : txn;
	noted->txn_cnt = alone ? 1 : txn >> 16;
	noted->off = le64_to_cpu(rec->arg1);
	noted->version = le64_to_cpu(rec->version);
	noted->time = le64_to_cpu(rec->time);
	noted->ino = le32_to_cpu(rec->ino);
	noted->gen = le32_to_cpu(rec->gen);
	noted->len = len;
	memcpy(noted->bytes, bytes, len);
	noted->next = fs->logged;
	fs->logged = noted;
	return 0;
}

static int rfs_apply_piece(struct rfs_fs *fs, const struct rfs_rec *rec,
			   const u8 *bytes)
{
	u32 ino = le32_to_cpu(rec->ino), len = le16_to_cpu(rec->len2);
	u64 off = le64_to_cpu(rec->arg1);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (ret)
		return ret;
	if (!rfs_has_pieces(&fs->super) || !S_ISREG(le32_to_cpu(di->mode)) ||
	    !len || len > RFS_PIECE_MAX ||
	    off % RFS_BLOCK_BYTES + len > RFS_BLOCK_BYTES ||
	    off / RFS_BLOCK_BYTES >= RFS_FILE_BLOCKS)
		return -EUCLEAN;
	if (fs->replaying)
		return rfs_note_piece(fs, rec, bytes);
	ret = rfs_piece_apply(fs, ino, off, len, le64_to_cpu(rec->version),
			      bytes);
	if (ret)
		return ret;
	if (off + len > le64_to_cpu(di->size))
		di->size = cpu_to_le64(off + len);
	rfs_content_times(di, rec->version, rec->time);
	rfs_buf_dirty(fs, buf);
	return 0;
}

static int rfs_apply_free(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret;

	ret = rfs_iget(fs, ino, &di, &buf);
	if (ret)
		return ret;
	if (di->nlink)
		return -EUCLEAN;
	ret = rfs_leave_orphans(fs, di);
	if (!ret)
		ret = rfs_map_prune(fs, ino, 0, ~0ULL, false);
	if (!ret)
		ret = rfs_xattr_drop(fs, di, buf);
	if (!ret)
		ret = rfs_diff_free(fs, di, buf);
	if (ret)
		return ret;
	return rfs_ifree(fs, ino);
}

/* The record's inode, unless it makes one, must be of its generation. */
static int rfs_check_gen(struct rfs_fs *fs, const struct rfs_rec *rec)
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
	int ret = rfs_check_gen(fs, rec);

	if (ret)
		return ret;
	switch (rec->op) {
	case RFS_OP_CREATE:
		return rfs_apply_create(fs, rec, name1, name2);
	case RFS_OP_LINK:
		return rfs_apply_link(fs, rec, name1);
	case RFS_OP_UNLINK:
		return rfs_apply_unlink(fs, rec, name1);
	case RFS_OP_RENAME:
		return rfs_apply_rename(fs, rec, name1, name2);
	case RFS_OP_ATTR:
		return rfs_apply_attr(fs, rec);
	case RFS_OP_SIZE:
		return rfs_apply_size(fs, rec);
	case RFS_OP_PUNCH:
		return rfs_apply_punch(fs, rec);
	case RFS_OP_FREE:
		return rfs_apply_free(fs, le32_to_cpu(rec->ino));
	case RFS_OP_PREALLOC:
		return rfs_apply_prealloc(fs, rec);
	case RFS_OP_XATTR:
		return rfs_xattr_apply(fs, rec, name1, name2);
	case RFS_OP_QUOTA:
		return rfs_quota_apply(fs, rec, name2);
	case RFS_OP_PIECE:
		return rfs_apply_piece(fs, rec, name2);
	}
	return -EUCLEAN;
}

/* This is done in memory only: recovery's check-point follows. */
int rfs_free_orphans(struct rfs_fs *fs)
{
	int ret = 0;

	while (!ret && fs->orphans) {
		ret = rfs_apply_free(fs, fs->orphans);
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
		rfs_to_orphans(fs, di);
	return rfs_apply_free(fs, ino);
}
