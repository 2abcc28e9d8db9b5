// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This makes the slow device of a new volume, and of one that is repaired. The module does not have
 * it.
 */
#include "home/replica.h"

#define SHARE	32	/* a replica has this share of the slow device, */
#define LEAST	512	/* but no fewer blocks, and no more than flash has twice */

u64 rfs_replica_size(u64 slow_blocks, u64 flash_blocks)
{
	u64 size = max(slow_blocks / SHARE, (u64)LEAST);

	return min(size, 2 * flash_blocks);
}

/* A slow device that was there before may have the same uuid, so both copies are written over. */
static int rfs_home_clear(struct rfs_fs *fs, void *block)
{
	struct rfs_replica *r = fs->home->replica;
	const void *data = block;
	u32 i;
	int ret = 0;

	memset(block, 0, RFS_BLOCK_BYTES);
	for (i = 0; !ret && i < 2 * fs->home->tables; i++)
		ret = rfs_home_write(fs, rfs_states_at(0, i), 1, &data);
	for (i = 0; !ret && r && i < 2 + 2 * r->tables; i++)
		ret = rfs_home_write(fs, r->first + i, 1, &data);
	if (r)
		rfs_replica_forget(r);
	for (i = 0; i < fs->home->tables; i++)
		rfs_bits_put(&fs->home->due, i, true);
	return ret;
}

int rfs_home_make(struct rfs_fs *fs)
{
	struct rfs_slow_super *super = rfs_alloc(sizeof(*super));
	const void *data = super;
	int ret = super ? rfs_home_alloc_tables(fs, false) : -ENOMEM;

	if (!ret)
		ret = rfs_home_clear(fs, super);
	if (!ret) {
		rfs_head_init(fs, &super->head, RFS_SLOW_SUPER, 0, 0, 0);
		super->blocks = fs->super.slow_blocks;
		super->replica_blocks = fs->super.replica_blocks;
		rfs_head_seal(&super->head, fs->version);
		ret = rfs_home_write(fs, 0, 1, &data);
	}
	if (!ret)
		ret = rfs_home_flush(fs);
	rfs_free(super);
	return ret;
}

void rfs_home_forget(struct rfs_fs *fs)
{
	struct rfs_home *home = fs->home;
	u64 nr;
	u32 i;

	for (nr = 0; nr < home->blocks; nr++) {
		u8 *state = &home->state[nr / 4];
		u32 shift = nr % 4 * 2;

		*state = (*state & ~(3U << shift)) | RFS_SLOW_HELD << shift;
	}
	for (i = 0; i < home->tables; i++) {
		rfs_bits_put(&home->due, i, true);
		rfs_bits_put(&home->held, i, true);
	}
	memset(home->count, 0, sizeof(home->count));
	home->count[RFS_SLOW_HELD] = home->blocks;
	home->lacks = 0;
}
