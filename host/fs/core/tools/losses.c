// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This finds the lost parts of the files of a hybrid volume whose flash is gone: blocks that were
 * only on flash. Names are those of the check-point that the replica has.
 */
#include "home/replica.h"
#include "tree/tree.h"
#include "tree/dir.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "tools/flashless.h"

#define PATH	4096

struct list {
	struct rfs_fs *fs;
	struct rfs_losses *out;
	u8 *seen;		/* a bit each inode that was looked at */
	u64 size, lost;		/* of the file that is: bytes, blocks */
	char path[PATH];
};

static void tell(struct list *l, u32 ino, u64 from, u64 to)
{
	struct rfs_loss loss = { l->path, ino, from * RFS_BLOCK_BYTES,
				 min(to * RFS_BLOCK_BYTES, l->size), false };

	l->lost += to - from;
	l->out->blocks += to - from;
	if (l->out->say)
		l->out->say(l->out->arg, &loss);
}

/*
 * Reports an inode that cannot be read as a whole: itself, the nodes that lead to its blocks or
 * names, or a part of them.
 */
static void tell_unreadable(struct list *l, u32 ino)
{
	struct rfs_loss loss = { l->path[0] ? l->path : "/", ino,
				 .unreadable = true };

	l->out->unreadable++;
	if (l->out->say)
		l->out->say(l->out->arg, &loss);
}

/* Says whether a block of a file is only on flash. Pieces are metadata. */
static int on_flash(struct list *l, u32 ino, u64 block, bool *is)
{
	struct rfs_ptr ptr;
	int ret = rfs_map_get(l->fs, ino, block, &ptr);

	*is = !ret && ptr.kind == RFS_PTR_BLOCK;
	return ret;
}

static int list_file(struct list *l, u32 ino)
{
	u64 at = 0, from = 0, to = 0;
	bool is;
	int ret = 0;

	l->lost = 0;
	for (;; at++) {
		do {
			ret = rfs_map_seek(l->fs, ino, at, RFS_FILE_BLOCKS, true,
					   &at);
		} while (ret == -EAGAIN);
		if (ret || at == RFS_FILE_BLOCKS)
			break;
		ret = on_flash(l, ino, at, &is);
		if (ret)
			break;
		if (!is)
			continue;
		if (at != to) {
			if (to > from)
				tell(l, ino, from, to);
			from = at;
		}
		to = at + 1;
	}
	if (to > from)
		tell(l, ino, from, to);
	if (ret == -ENOMEM)
		return ret;
	if (ret)
		tell_unreadable(l, ino);
	else if (l->lost)
		l->out->damaged++;
	else
		l->out->whole++;
	return 0;
}

static int list_dir(struct list *l, u32 dir, size_t path);

static int list_inode(struct list *l, u32 ino, size_t path)
{
	u8 *seen = &l->seen[ino / 8], bit = 1 << ino % 8;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 mode;
	int ret = ino < le32_to_cpu(l->fs->super.max_inodes) ?
		  rfs_iget(l->fs, ino, &di, &buf) : -EUCLEAN;

	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		tell_unreadable(l, ino);
		return 0;
	}
	if (*seen & bit)
		return 0;
	*seen |= bit;
	mode = le32_to_cpu(di->mode);
	l->size = le64_to_cpu(di->size);
	ret = S_ISDIR(mode) ? list_dir(l, ino, path) :
	      S_ISREG(mode) ? list_file(l, ino) : 0;
	rfs_cache_trim(l->fs, l->fs->clean_max);
	return ret;
}

/* A path that is too long ends before the name that has no room. */
static int list_dir(struct list *l, u32 dir, size_t path)
{
	struct rfs_entry entry = { 0 };
	size_t len;
	int ret;

	while ((ret = rfs_dir_next(l->fs, dir, entry.pos, &entry)) == 0) {
		len = path + 1 + entry.len < PATH ? 1 + entry.len : 0;
		if (len) {
			l->path[path] = '/';
			memcpy(l->path + path + 1, entry.name, entry.len);
		}
		l->path[path + len] = 0;
		ret = list_inode(l, entry.ino, path + len);
		if (ret)
			return ret;
		l->path[path] = 0;
	}
	l->path[path] = 0;
	if (ret != -ENOENT && ret != -ENOMEM)
		tell_unreadable(l, dir);
	return ret == -ENOMEM ? ret : 0;
}

int rfs_flashless_losses(struct rfs_fs *fs, struct rfs_losses *out)
{
	struct list *l = rfs_alloc(sizeof(*l));
	int ret = -ENOMEM;

	if (!l)
		return ret;
	l->fs = fs;
	l->out = out;
	out->begun = fs->home->replica->later;
	out->later = max(fs->home->later, out->begun);
	l->seen = rfs_alloc(le32_to_cpu(fs->super.max_inodes) / 8 + 1);
	if (l->seen)
		ret = list_inode(l, RFS_ROOT_INO, 0);
	rfs_free(l->seen);
	rfs_free(l);
	return ret;
}

int rfs_flashless_leave_out(const struct rfs_dev_ops *ops, void *dev,
			    const struct rfs_geometry *geo,
			    struct rfs_report *repair, struct rfs_report *after,
			    u64 *last)
{
	struct rfs_fs *fs;
	int ret = rfs_mount(ops, dev, geo, false, 0, &fs);

	if (ret)
		return ret;
	*last = le64_to_cpu(fs->super.slow_blocks) -
		le64_to_cpu(fs->super.replica_blocks);
	ret = rfs_repair(fs, repair);
	if (!ret)
		ret = rfs_checkpoint(fs, 0);
	if (!ret)
		ret = rfs_check(fs, after);
	if (!ret && !after->faults)
		return rfs_unmount(fs);
	rfs_unmount_nosync(fs);
	return ret;
}
