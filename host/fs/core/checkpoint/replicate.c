// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This is the replica of a check-point's metadata on the slow device of a hybrid volume. Blocks are
 * written whose address differs from that in the replica before. Metadata on flash is never
 * overwritten, so a block of a map at the same address leads to the same blocks.
 */
#include "home/replica.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"

void rfs_replicate_cp(struct rfs_fs *fs, struct rfs_cp **cp, u32 blocks)
{
	struct rfs_replica *r = fs->home ? fs->home->replica : NULL;

	if (!r)
		return;
	rfs_free(r->cp);
	r->cp = *cp;
	r->cp_blocks = blocks;
	*cp = NULL;
}

/* Says whether the replica has the block for a place that flash has at addr. */
static bool rfs_replica_has(const struct rfs_fs *fs, u64 place, u64 addr)
{
	const struct rfs_replica *r = fs->home->replica;
	const struct rfs_slot *has = rfs_replica_find(r, place);

	if (!has || !addr)
		return !has && !addr;
	return le64_to_cpu(has->addr) == addr && !r->unlike &&
	       !rfs_bits_has(&r->anew, addr / fs->geo.zone_blocks);
}

/*
 * Copies a block from memory, if the block there is the one on flash, else from flash. NULL says
 * that it cannot be read. It is copied because the one in memory may be forgotten while the slow
 * device is written.
 */
static const void *rfs_replica_source(struct rfs_fs *fs, u8 class, u64 off,
				      u64 addr, void *block)
{
	struct rfs_buf *buf = class ? rfs_buf_find(fs, class, off) : NULL;

	if (buf && !buf->dirty && buf->addr == addr &&
	    rfs_head_ok(&buf->head, fs->volume, buf->head.type)) {
		memcpy(block, buf->bytes, RFS_BLOCK_BYTES);
		return block;
	}
	if (!fs->ops->read(fs->dev, addr, block, NULL))
		return block;
	fs->home->replica->holes = true;
	return NULL;
}

/*
 * Copies a block. One that cannot be read is not in the replica either, and the next replica is
 * made of all.
 */
static int rfs_replicate_block(struct rfs_fs *fs, u64 place, u64 addr, u8 class,
			       u64 off)
{
	u8 *block = fs->home->replica->block;
	const void *data = NULL;

	if (rfs_replica_has(fs, place, addr))
		return 0;
	if (addr)
		data = rfs_replica_source(fs, class, off, addr, block);
	return rfs_replica_put(fs, place, addr, data);
}

/* Returns the address in a word of a map's block: 0 if it is a leaf that is runs, or a hole. */
static u64 rfs_replica_word(const struct rfs_fs *fs, u32 map, u32 i, __le64 word)
{
	u32 block = map - fs->imap_blocks;

	if (map < fs->imap_blocks)
		return rfs_addr(word);
	if (i % rfs_nmap_step(fs, block) || rfs_high(word) & RFS_NODE_RUNS)
		return 0;
	return rfs_addr(word);
}

/* Copies a block of a map, and the inodes or nodes that it leads to. */
static int rfs_replicate_map(struct rfs_fs *fs, u32 map)
{
	u64 addr = rfs_timb(fs, map) & RFS_ADDR_MASK;
	u64 place = rfs_place_map(fs) + map;
	bool inodes = map < fs->imap_blocks;
	u32 off = inodes ? map : map - fs->imap_blocks, i;
	struct rfs_table *table;
	const void *data;
	int ret;

	if (rfs_replica_has(fs, place, addr))
		return 0;
	table = (void *)(fs->home->replica->block + RFS_BLOCK_BYTES);
	data = addr ? rfs_replica_source(fs, inodes ? RFS_IMAP : RFS_NMAP, off,
					 addr, table) : NULL;
	if (!data)
		memset(table, 0, sizeof(*table));
	ret = rfs_replica_put(fs, place, addr, data);
	place = rfs_place_word(fs) + (u64)map * RFS_MAP_ENTRIES;
	for (i = 0; !ret && i < RFS_MAP_ENTRIES; i++)
		ret = rfs_replicate_block(fs, place + i,
					  rfs_replica_word(fs, map, i,
							   table->word[i]),
					  inodes ? RFS_INODES : RFS_INDEX,
					  (u64)off * RFS_MAP_ENTRIES + i);
	rfs_cache_trim(fs, fs->clean_max);
	return ret;
}

static int rfs_replicate_maps(struct rfs_fs *fs)
{
	u32 maps = fs->imap_blocks + fs->nmap_blocks, i, map;
	int ret = 0;

	for (i = 0; !ret && i < fs->timb_blocks; i++)
		for (map = i * RFS_MAP_ENTRIES; !ret && fs->timb[i] &&
		     map < min(maps, (i + 1) * RFS_MAP_ENTRIES); map++)
			ret = rfs_replicate_map(fs, map);
	return ret;
}

static int rfs_replicate_tables(struct rfs_fs *fs)
{
	u64 timb = rfs_place_timb(fs), ztab = rfs_place_ztab(fs);
	u32 i;
	int ret = 0;

	for (i = 0; !ret && i < fs->timb_blocks; i++)
		ret = rfs_replicate_block(fs, timb + i, fs->timb_addr[i], 0, 0);
	for (i = 0; !ret && i < fs->ztab_blocks; i++)
		ret = rfs_replicate_block(fs, ztab + i, fs->ztab_addr[i], 0, 0);
	return ret;
}

/*
 * Copies the superblock and the check-point, as if they were the first blocks of a zone for
 * check-points.
 */
static int rfs_replicate_roots(struct rfs_fs *fs)
{
	struct rfs_replica *r = fs->home->replica;
	u32 i;
	int ret = rfs_replica_put(fs, RFS_PLACE_SUPER, 0, &fs->super);

	for (i = 0; !ret && i < r->cp_blocks; i++)
		ret = rfs_replica_put(fs, RFS_PLACE_CP + i, 1 + i,
				      (u8 *)r->cp + i * RFS_BLOCK_BYTES);
	/* The check-point before may have had more blocks. */
	for (; !ret && RFS_PLACE_CP + i < rfs_place_timb(fs); i++)
		ret = rfs_replica_put(fs, RFS_PLACE_CP + i, 0, NULL);
	return ret;
}

/* Returns the blocks that a replica of all metadata needs. */
static u64 rfs_replica_needs(const struct rfs_fs *fs)
{
	return 1 + fs->home->replica->cp_blocks + fs->live - fs->data_live;
}

/*
 * Makes a replica. The volume goes on without it, whatever the error. A flush that fails loses
 * nothing of files: their blocks there were flushed before their check-point was durable, and
 * nobody enters more in the index while a replica is made.
 */
static void rfs_replicate_all(struct rfs_fs *fs)
{
	struct rfs_replica *r = fs->home->replica;
	int ret = rfs_replica_settle(fs);
	bool full;

	r->holes = false;
	if (!ret && rfs_replica_needs(fs) > r->slots - r->bad.count)
		ret = -ENOSPC;
	if (!ret)
		ret = rfs_replicate_roots(fs);
	if (!ret)
		ret = rfs_replicate_tables(fs);
	if (!ret)
		ret = rfs_replicate_maps(fs);
	if (!ret)
		ret = rfs_replica_commit(fs, r->cp_blocks);
	full = ret == -ENOSPC;
	/* If the replica before is dropped, there may be room for the next. */
	if (full && r->blocks && r->heads == RFS_HEADS_SAME)
		ret = rfs_replica_drop(fs);
	if (ret)
		rfs_replica_give_up(fs, ret);
	if (full)
		rfs_replica_forgive(r);
}

void rfs_replicate(struct rfs_fs *fs, bool now)
{
	struct rfs_replica *r = fs->home->replica;
	u32 nr;

	if (!r)
		return;
	/*
	 * A repair makes only one replica, at its end. With two, the one on the medium would not
	 * stay as it is.
	 */
	if (r->cp && ((rfs_replica_due(fs) && !fs->home->slow.will_repair) ||
		      (now && !fs->home->lacks && r->seq != fs->cp_seq)))
		rfs_replicate_all(fs);
	rfs_free(r->cp);
	r->cp = NULL;
	/* From now on these zones may be reset and written. */
	rfs_bits_each(&fs->set[RFS_SET_FREE], nr)
		rfs_bits_put(&r->anew, nr, true);
}
