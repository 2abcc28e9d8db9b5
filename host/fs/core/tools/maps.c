// SPDX-License-Identifier: GPL-2.0-or-later
/* Words of the inode map and of the node map that lead nowhere are left out. */
#include "space/space.h"
#include "tree/tree.h"
#include "tools/walk.h"

/* Walks the blocks that an inode-map block leads to. Words that lead nowhere are removed. */
static int walk_map(struct rfs_walk *w, u32 block, u64 *inodes)
{
	struct rfs_fs *fs = w->fs;
	struct rfs_buf *map;
	u32 i, used = 0;
	int ret = rfs_imap_get(fs, block, false, &map);

	if (ret || !map)
		return ret;
	for (i = 0; i < RFS_MAP_ENTRIES; i++) {
		__le64 *word = &map->table.word[i];
		u64 addr = rfs_addr(*word);
		u32 off = block * RFS_MAP_ENTRIES + i;
		bool fresh = !addr && rfs_high(*word) &&
			     rfs_buf_find(fs, RFS_INODES, off);

		if (!*word)
			continue;
		if (!fresh && (!rfs_high(*word) || !rfs_walk_free(w, addr))) {
			rfs_walk_lose(w, "inode map %u: word %u leads nowhere",
				      block, i);
			*word = 0;
			rfs_buf_dirty(fs, map);
			continue;
		}
		if (!fresh) {
			rfs_walk_claim(w, addr);
			ret = rfs_count_live(fs, addr, 1, NULL);
			if (ret)
				return ret;
		}
		used += __builtin_popcount(rfs_high(*word));
	}
	*inodes += used;
	if (used != rfs_timb(fs, block) >> RFS_ADDR_BITS) {
		rfs_walk_say(w, "inode map %u: TIMB says %u inodes, there are %u",
			     block, (u32)(rfs_timb(fs, block) >> RFS_ADDR_BITS),
			     used);
		rfs_timb_set(fs, block,
			     (rfs_timb(fs, block) & RFS_ADDR_MASK) |
			     (u64)used << RFS_ADDR_BITS);
	}
	return 0;
}

/* Removes words of a node-map block that lead nowhere, and counts the others anew. */
static int walk_nmap(struct rfs_walk *w, u32 block)
{
	struct rfs_fs *fs = w->fs;
	u64 timb = rfs_nmap_word(fs, block);
	struct rfs_buf *map;
	u32 i, used = 0;
	int ret;

	rfs_count_live_map(fs, timb & RFS_ADDR_MASK, 1);
	ret = rfs_nmap_get(fs, block, false, &map);
	if (ret)
		return ret;
	for (i = 0; map && i < RFS_MAP_ENTRIES; i += rfs_nmap_step(fs, block)) {
		__le64 *word = &map->table.word[i];
		u32 number = block * RFS_MAP_ENTRIES + i;

		if (!*word)
			continue;
		if (number && number < le32_to_cpu(fs->super.max_nodes) &&
		    (rfs_addr(*word) || rfs_high(*word) & RFS_NODE_RUNS ||
		     rfs_buf_find(fs, RFS_INDEX, number))) {
			used++;
			continue;
		}
		rfs_walk_lose(w, "node map %u: word %u leads nowhere", block,
			      i);
		memset(word, 0, rfs_nmap_step(fs, block) * sizeof(*word));
		rfs_buf_dirty(fs, map);
	}
	if (used == timb >> RFS_ADDR_BITS)
		return 0;
	rfs_walk_say(w, "node map %u: TIMB says %u nodes, there are %u", block,
		     (u32)(timb >> RFS_ADDR_BITS), used);
	rfs_timb_set(fs, fs->imap_blocks + block,
		     (timb & RFS_ADDR_MASK) | (u64)used << RFS_ADDR_BITS);
	return 0;
}

int rfs_walk_nodes(struct rfs_walk *w)
{
	struct rfs_fs *fs = w->fs;
	struct rfs_buf *map;
	u32 block, i;
	int ret = 0;

	for (block = 0; !ret && block < fs->nmap_blocks; block++) {
		for (i = 0; !ret && i < RFS_MAP_ENTRIES;
		     i += rfs_nmap_step(fs, block)) {
			u32 number = block * RFS_MAP_ENTRIES + i;

			ret = rfs_nmap_get(fs, block, false, &map);
			if (ret || !map)
				break;
			if (!map->table.word[i] ||
			    rfs_walk_referenced(w, number))
				continue;
			if (!fs->rescuing)
				rfs_walk_say(w, "node %u: nothing leads to it",
					     number);
			ret = rfs_node_forget(fs, number);
		}
		rfs_cache_trim(fs, fs->clean_max);
	}
	fs->next_node = 0;
	fs->next_leaf = 0;
	return ret;
}

int rfs_walk_maps(struct rfs_walk *w)
{
	struct rfs_fs *fs = w->fs;
	u64 inodes = 0;
	u32 i;
	int ret = 0;

	for (i = 0; i < fs->timb_blocks; i++)
		if (fs->timb_addr[i])
			rfs_count_live_map(fs, fs->timb_addr[i], 1);
	for (i = 0; i < fs->ztab_blocks; i++)
		if (fs->ztab_addr[i])
			rfs_count_live_map(fs, fs->ztab_addr[i], 1);
	for (i = 0; !ret && i < fs->imap_blocks; i++) {
		rfs_count_live_map(fs, rfs_timb(fs, i) & RFS_ADDR_MASK, 1);
		ret = walk_map(w, i, &inodes);
		rfs_cache_trim(fs, fs->clean_max);
	}
	for (i = 0; !ret && i < fs->nmap_blocks; i++) {
		ret = walk_nmap(w, i);
		rfs_cache_trim(fs, fs->clean_max);
	}
	if (ret)
		return ret;
	if (inodes != fs->inodes)
		rfs_walk_say(w, "the check-point says %llu inodes, there are %llu",
			     U(fs->inodes), U(inodes));
	fs->inodes = inodes;
	return 0;
}

/* Removes the words of inodes that cannot be read, too. */
int rfs_walk_unreadable(struct rfs_walk *w)
{
	struct rfs_fs *fs = w->fs;
	struct rfs_buf *map, *buf;
	u32 block, i, slot;
	int ret;

	for (block = 0; block < fs->imap_blocks; block++) {
		for (i = 0; rfs_timb(fs, block) && i < RFS_MAP_ENTRIES; i++) {
			u32 off = block * RFS_MAP_ENTRIES + i, bits;

			ret = rfs_imap_get(fs, block, false, &map);
			if (ret)
				return ret;
			if (!map)
				break;	/* TIMB counts inodes of none */
			bits = rfs_high(map->table.word[i]);
			if (!bits || rfs_buf_find(fs, RFS_INODES, off))
				continue;
			ret = rfs_buf_read(fs, RFS_INODES, off,
					   rfs_addr(map->table.word[i]), &buf);
			if (ret == -ENOMEM)
				return ret;
			for (slot = 0; !ret && slot < RFS_BLOCK_INODES; slot++)
				if (le32_to_cpu(buf->inodes.inode[slot].ino) !=
				    off * RFS_BLOCK_INODES + slot)
					bits &= ~(1U << slot);
			if (!ret && bits == rfs_high(map->table.word[i])) {
				rfs_cache_trim(fs, fs->clean_max);
				continue;
			}
			rfs_walk_lose(w, "inodes %u to %u: not readable",
				      off * RFS_BLOCK_INODES,
				      (off + 1) * RFS_BLOCK_INODES - 1);
			map->table.word[i] = ret || !bits ? 0 :
				rfs_word(rfs_addr(map->table.word[i]), bits);
			rfs_buf_dirty(fs, map);
		}
	}
	return 0;
}
