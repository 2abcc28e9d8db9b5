// SPDX-License-Identifier: GPL-2.0-or-later
/* Blocks of a hybrid volume go home, and come to flash, in the background. */
#include "home/home.h"
#include "tree/tree.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"

int rfs_write_home(struct rfs_fs *fs, u32 *most)
{
	int ret = fs->home ? rfs_make_room_to_free(fs) : -EOPNOTSUPP;

	if (!ret)
		ret = rfs_destage(fs, most, rfs_checkpoint);
	if (!ret)
		rfs_prove(fs, RFS_AT_ADMISSION);
	return ret;
}

/*
 * The page is new to recovery, which does not know that it is equal to the block at home. So it is
 * newer than all earlier pages, but no write of its own.
 */
static int rfs_fill_page(struct rfs_fs *fs, u32 ino, u64 block,
			 const struct rfs_ptr *ptr, const void *data)
{
	u32 len = rfs_ptr_len(ptr), n = 1, stream;
	struct rfs_txn txn;
	struct rfs_oob oob;
	u64 addr;
	int ret = rfs_txn_begin(fs, ino, block, 1, len, 0, &txn);

	if (!ret)
		ret = rfs_txn_fill(fs, &txn, 0, &n, &oob, &stream);
	if (ret)
		return ret;
	rfs_fill_oobs(fs, &oob, 1);
	ret = rfs_append(fs, stream, 1, &data, &oob, &addr);
	return ret ? ret : rfs_fill_done(fs, &oob, 1, &addr);
}

int rfs_fill(struct rfs_fs *fs, u32 ino, u64 block)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_ptr ptr;
	bool hole;
	void *data;
	int ret = rfs_map_get(fs, ino, block, &ptr);

	if (!ret)
		ret = rfs_iget(fs, ino, &di, &buf);
	/* Pieces lie over the page, and are newer than it is. */
	if (ret || ptr.kind != RFS_PTR_ELSEWHERE || di->diff)
		return ret;
	ret = rfs_reserve(fs, ino, block, &hole);
	if (ret)
		return ret;
	data = rfs_alloc(RFS_BLOCK_BYTES);
	ret = data ? rfs_map_get(fs, ino, block, &ptr) : -ENOMEM;
	if (!ret)
		ret = rfs_home_read(fs, rfs_ptr_home(&ptr), data);
	if (!ret)
		ret = rfs_fill_page(fs, ino, block, &ptr, data);
	rfs_free(data);
	rfs_unreserve(fs, ino, 1, hole);
	return ret;
}
