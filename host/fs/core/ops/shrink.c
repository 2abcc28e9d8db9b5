// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files with many blocks are deleted, cut and punched in parts, between which others have their
 * turn: a part looks at no more than RFS_PRUNE_NODES index nodes.
 */
#include "tree/tree.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"

#define PRUNED_MOST	4096	/* nodes, of all that is deleted between check-points */

/*
 * Deletions are logged, and recovery does them again from the last check-point on. So that a mount
 * does not take long, there is a check-point after so many nodes. -ENOBUFS says that the caller of
 * the core has to write it, and ask again.
 */
static int rfs_bound_pruned(struct rfs_fs *fs)
{
	if (fs->pruned < PRUNED_MOST)
		return 0;
	return fs->threaded ? -ENOBUFS : rfs_checkpoint(fs, 0);
}

/*
 * Blocks of an orphan are freed without a record. Nobody sees its content, and a recovery that
 * finds it goes on with that. The record says that its number is free.
 */
int rfs_free_some(struct rfs_fs *fs, u32 ino, bool *more)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_rec rec;
	int ret = rfs_make_room_to_free(fs);

	*more = false;
	if (!ret)
		ret = rfs_bound_pruned(fs);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret && di->nlink)
		ret = -EUCLEAN;
	if (!ret)
		ret = rfs_map_empty(fs, ino);
	if (ret == -EAGAIN) {
		*more = true;
		return 0;
	}
	if (ret)
		return ret;
	rfs_rec_init(fs, &rec, RFS_OP_FREE, ino);
	return rfs_commit(fs, &rec, NULL, 0, NULL, 0);
}

int rfs_free_orphan(struct rfs_fs *fs, u32 ino)
{
	bool more;
	int ret;

	do {
		ret = rfs_free_some(fs, ino, &more);
	} while (!ret && more);
	return ret;
}

int rfs_orphan_next(struct rfs_fs *fs, u32 ino, u32 *next)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_iget(fs, ino, &di, &buf);

	if (!ret && di->nlink)
		ret = -EUCLEAN;
	if (!ret)
		*next = le32_to_cpu(di->next_orphan);
	return ret;
}

int rfs_shorten(struct rfs_fs *fs, u32 ino, u64 from, u64 *to, bool truncate,
		bool *more)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u64 at;
	int ret = rfs_make_room_to_free(fs);

	*more = false;
	if (!ret)
		ret = rfs_bound_pruned(fs);
	if (!ret)
		ret = rfs_map_last_part(fs, ino, from, *to, &at);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	if (ret || at == from)
		return ret;
	/*
	 * This is done as if the caller had asked for several steps. Behind its end the file is
	 * punched, as none of the steps may make it grow.
	 */
	if (truncate && at * RFS_BLOCK_BYTES < le64_to_cpu(di->size))
		ret = rfs_truncate(fs, ino, at * RFS_BLOCK_BYTES, false);
	else
		ret = rfs_punch(fs, ino, at, *to, false);
	if (ret)
		return ret;
	*more = true;
	if (!truncate)
		*to = at;
	return 0;
}
