// SPDX-License-Identifier: GPL-2.0-or-later
#include "tree/tree.h"

#define MAP_INODES	(RFS_MAP_ENTRIES * RFS_BLOCK_INODES)
#define FULL		((1U << RFS_BLOCK_INODES) - 1)	/* all of a block */

/* Finds a block of the inode map. *out is NULL if there is none, and create is not set. */
int rfs_imap_get(struct rfs_fs *fs, u32 block, bool create,
		 struct rfs_buf **out)
{
	u64 addr;
	int ret;

	*out = NULL;
	if (block >= fs->imap_blocks)
		return -EUCLEAN;
	addr = rfs_timb(fs, block) & RFS_ADDR_MASK;
	*out = rfs_buf_find(fs, RFS_IMAP, block);
	if (*out)
		return 0;
	if (addr)
		return rfs_buf_read(fs, RFS_IMAP, block, addr, out);
	if (!create)
		return 0;
	ret = rfs_timb_make(fs, block);
	return ret ? ret : rfs_buf_new(fs, RFS_IMAP, 0, 0, block, out);
}

/* Finds the word of an inode's block in its block of the inode map. */
static int rfs_imap_word_get(struct rfs_fs *fs, u32 ino, bool create,
			     struct rfs_buf **map, __le64 **word)
{
	int ret = rfs_imap_get(fs, ino / MAP_INODES, create, map);

	if (ret)
		return ret;
	if (!*map)
		return -ENOENT;
	*word = &(*map)->table.word[ino / RFS_BLOCK_INODES % RFS_MAP_ENTRIES];
	return 0;
}

/* Finds an inode in use, and its block. Both stay valid during one operation. */
int rfs_iget(struct rfs_fs *fs, u32 ino, struct rfs_dinode **out,
	     struct rfs_buf **buf)
{
	struct rfs_buf *map;
	__le64 *word;
	int ret;

	*buf = rfs_buf_find(fs, RFS_INODES, ino / RFS_BLOCK_INODES);
	if (!*buf) {
		ret = rfs_imap_word_get(fs, ino, false, &map, &word);
		if (ret)
			return ret;
		if (!(rfs_high(*word) & 1U << ino % RFS_BLOCK_INODES))
			return -ENOENT;
		ret = rfs_buf_read(fs, RFS_INODES, ino / RFS_BLOCK_INODES,
				   rfs_addr(*word), buf);
		if (ret)
			return ret;
	}
	*out = &(*buf)->inodes.inode[ino % RFS_BLOCK_INODES];
	if (!(*out)->ino)
		return -ENOENT;
	return le32_to_cpu((*out)->ino) == ino ? 0 : -EUCLEAN;
}

/*
 * Reads the block of an inode that is to be made, before the operation begins to change anything.
 */
static int rfs_imap_look_at(struct rfs_fs *fs, u32 ino,
			    const struct rfs_buf *map)
{
	u32 block = ino / RFS_BLOCK_INODES;
	u64 addr = rfs_addr(map->table.word[block % RFS_MAP_ENTRIES]);
	struct rfs_buf *buf;

	return addr ? rfs_buf_read(fs, RFS_INODES, block, addr, &buf) : 0;
}

/*
 * Finds the lowest number that is not in use, so that inodes stay together and few blocks of them
 * change. Only rfs_iset() takes it.
 */
int rfs_ialloc(struct rfs_fs *fs, u32 *ino)
{
	u32 max = le32_to_cpu(fs->super.max_inodes);
	u32 tried, n;

	if (fs->next_ino <= RFS_ROOT_INO || fs->next_ino >= max)
		fs->next_ino = RFS_ROOT_INO + 1;
	for (tried = 0; tried < max; ) {
		u32 block = fs->next_ino / MAP_INODES;
		u32 left = min(max, (block + 1) * MAP_INODES) - fs->next_ino;
		struct rfs_buf *map;
		int ret;

		if (rfs_timb(fs, block) >> RFS_ADDR_BITS < MAP_INODES) {
			ret = rfs_imap_get(fs, block, false, &map);
			if (ret)
				return ret;
			for (; left; left -= n, tried += n, fs->next_ino += n) {
				u32 at = fs->next_ino % MAP_INODES;
				u32 slot = at % RFS_BLOCK_INODES;
				u32 bits = 0;

				if (map)
					bits = rfs_high(map->table.word[at / RFS_BLOCK_INODES]);
				n = bits == FULL ? RFS_BLOCK_INODES - slot : 1;
				n = min(n, left);
				if (bits & 1U << slot)
					continue;
				*ino = fs->next_ino;
				return map ? rfs_imap_look_at(fs, *ino,
							      map) : 0;
			}
		}
		tried += left;
		fs->next_ino += left;
		if (fs->next_ino >= max)
			fs->next_ino = RFS_ROOT_INO + 1;
	}
	return -ENOSPC;
}

static void rfs_inode_count(struct rfs_fs *fs, u32 ino, int delta)
{
	u32 block = ino / MAP_INODES;

	rfs_timb_set(fs, block, rfs_timb(fs, block) +
				((u64)((s64)delta) << RFS_ADDR_BITS));
	fs->inodes += delta;
}

/* Takes a number. Its inode is zero but for ino. */
int rfs_iset(struct rfs_fs *fs, u32 ino, struct rfs_dinode **out,
	     struct rfs_buf **buf)
{
	u32 slot = ino % RFS_BLOCK_INODES;
	struct rfs_buf *map;
	__le64 *word;
	int ret;

	if (ino >= le32_to_cpu(fs->super.max_inodes) || ino < RFS_QUOTA_INO)
		return -EUCLEAN;
	ret = rfs_imap_word_get(fs, ino, true, &map, &word);
	if (ret)
		return ret;
	if (rfs_high(*word) & 1U << slot)
		return -EUCLEAN;
	*buf = rfs_buf_find(fs, RFS_INODES, ino / RFS_BLOCK_INODES);
	if (!*buf && rfs_addr(*word))
		ret = rfs_buf_read(fs, RFS_INODES, ino / RFS_BLOCK_INODES,
				   rfs_addr(*word), buf);
	else if (!*buf)
		ret = rfs_buf_new(fs, RFS_INODES, 0, 0, ino / RFS_BLOCK_INODES,
				  buf);
	if (ret)
		return ret;
	memcpy((*buf)->inodes.hash_key, fs->super.hash_key,
	       sizeof((*buf)->inodes.hash_key));
	memcpy((*buf)->inodes.summary_key, fs->super.summary_key,
	       sizeof((*buf)->inodes.summary_key));
	*word = rfs_word(rfs_addr(*word), rfs_high(*word) | 1U << slot);
	rfs_buf_dirty(fs, map);
	rfs_buf_dirty(fs, *buf);
	rfs_inode_count(fs, ino, 1);
	*out = &(*buf)->inodes.inode[slot];
	memset(*out, 0, sizeof(**out));
	(*out)->ino = cpu_to_le32(ino);
	return 0;
}

/* Frees an inode. The caller takes care of its blocks. */
int rfs_ifree(struct rfs_fs *fs, u32 ino)
{
	u32 slot = ino % RFS_BLOCK_INODES;
	struct rfs_dinode *di;
	struct rfs_buf *buf, *map;
	__le64 *word;
	int ret;

	ret = rfs_iget(fs, ino, &di, &buf);
	if (!ret)
		ret = rfs_imap_word_get(fs, ino, false, &map, &word);
	if (!ret && fs->counting)
		ret = fs->up->charge(fs, di, -(s64)le64_to_cpu(di->blocks), -1);
	if (ret)
		return ret;
	fs->next_ino = min(fs->next_ino, ino);
	memset(di, 0, sizeof(*di));
	*word = rfs_word(rfs_addr(*word), rfs_high(*word) & ~(1U << slot));
	rfs_buf_dirty(fs, map);
	rfs_buf_dirty(fs, buf);
	rfs_inode_count(fs, ino, -1);
	return 0;
}
