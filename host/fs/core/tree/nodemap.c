// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The node map: from the number of an index node, or of a block of a directory, of
 * attributes or of quotas, to its address. Who leads to a node has its number, so
 * a node that moves changes a word here, and nothing else.
 */
#include "space/space.h"
#include "tree/tree.h"

#define USED	1	/* in the high bits of a word: the number is in use */

/* A node-map block; *out is NULL if there is none and no create. */
int rfs_nmap_get(struct rfs_fs *fs, u32 block, bool create,
		 struct rfs_buf **out)
{
	u64 addr;
	int ret;

	*out = NULL;
	if (block >= fs->nmap_blocks)
		return -EUCLEAN;
	addr = rfs_nmap_word(fs, block) & RFS_ADDR_MASK;
	*out = rfs_buf_find(fs, RFS_NMAP, block);
	if (*out)
		return 0;
	if (addr)
		return rfs_buf_read(fs, RFS_NMAP, block, addr, out);
	if (!create)
		return 0;
	ret = rfs_timb_make(fs, fs->imap_blocks + block);
	return ret ? ret : rfs_buf_new(fs, RFS_NMAP, 0, 0, block, out);
}

static int rfs_nmap_word_get(struct rfs_fs *fs, u32 number,
			     struct rfs_buf **map, __le64 **word)
{
	int ret = number < le32_to_cpu(fs->super.max_nodes) ?
		  rfs_nmap_get(fs, number / RFS_MAP_ENTRIES, false, map) :
		  -EUCLEAN;

	if (ret)
		return ret;
	if (!number || !*map)
		return -EUCLEAN;
	*word = &(*map)->table.word[number % RFS_MAP_ENTRIES];
	return 0;
}

/*
 * A check-point that was not finished may have left nodes with numbers of which
 * the map has no block: these are not in use.
 */
int rfs_node_where(struct rfs_fs *fs, u32 number, u64 *addr, bool *used)
{
	struct rfs_buf *map;
	__le64 word;
	int ret = number && number < le32_to_cpu(fs->super.max_nodes) ?
		  rfs_nmap_get(fs, number / RFS_MAP_ENTRIES, false, &map) :
		  -EUCLEAN;

	*addr = 0;
	*used = false;
	if (ret || !map)
		return ret;
	word = map->table.word[number % RFS_MAP_ENTRIES];
	*addr = rfs_addr(word);
	*used = rfs_high(word) == USED;
	return 0;
}

static void rfs_node_count(struct rfs_fs *fs, u32 number, int delta)
{
	u32 at = fs->imap_blocks + number / RFS_MAP_ENTRIES;

	rfs_timb_set(fs, at, rfs_timb(fs, at) +
			     ((u64)((s64)delta) << RFS_ADDR_BITS));
}

/* The first block of the map from *block on in which a number is free */
static int rfs_nmap_find_block(struct rfs_fs *fs, u32 *block,
			       struct rfs_buf **map)
{
	u32 tried;

	for (tried = 0; tried < fs->nmap_blocks; tried++) {
		if (*block >= fs->nmap_blocks)
			*block = 0;
		/* number 0 is none */
		if (rfs_nmap_word(fs, *block) >> RFS_ADDR_BITS <
		    RFS_MAP_ENTRIES - !*block)
			return rfs_nmap_get(fs, *block, true, map);
		++*block;
	}
	return -EUCLEAN;	/* there are as many as blocks */
}

/*
 * The lowest number that is free, so that few blocks of the map change; there is
 * none below fs->next_node.
 */
static int rfs_take_number(struct rfs_fs *fs, u32 *number, struct rfs_buf **map)
{
	u32 max = le32_to_cpu(fs->super.max_nodes), rounds;
	u32 first = fs->next_node / RFS_MAP_ENTRIES, block = first;
	int ret;

	for (rounds = 0; rounds <= fs->nmap_blocks; rounds++, block++) {
		u32 i;

		ret = rfs_nmap_find_block(fs, &block, map);
		if (ret)
			return ret;
		i = !rounds && block == first ?
		    fs->next_node % RFS_MAP_ENTRIES : 0;
		for (; i < RFS_MAP_ENTRIES; i++) {
			u32 at = block * RFS_MAP_ENTRIES + i;

			if (at >= max)
				break;
			if (!at || (*map)->table.word[i])
				continue;
			*number = at;
			return 0;
		}
	}
	return -EUCLEAN;
}

void rfs_node_reference(struct rfs_fs *fs, u32 number, bool referenced)
{
	u8 bit = 1 << number % 8;

	if (!fs->referenced)
		return;
	if (referenced)
		fs->referenced[number / 8] |= bit;
	else
		fs->referenced[number / 8] &= ~bit;
}

int rfs_node_new(struct rfs_fs *fs, const struct rfs_node_id *id, u32 *number,
		 struct rfs_buf **out)
{
	struct rfs_buf *map;
	int ret = rfs_take_number(fs, number, &map);

	if (!ret)
		ret = rfs_buf_new(fs, id->type, id->ino, id->gen,
				  RFS_NODE_KEY(*number, id->place), out);
	if (ret) {
		*number = 0;
		return ret;
	}
	fs->next_node = *number + 1;
	(*out)->head.level = id->level;
	map->table.word[*number % RFS_MAP_ENTRIES] = rfs_word(0, USED);
	rfs_buf_dirty(fs, map);
	rfs_node_count(fs, *number, 1);
	rfs_node_reference(fs, *number, true);
	return 0;
}

static bool rfs_node_matches(const struct rfs_head *head,
			     const struct rfs_node_id *id)
{
	return head->type == id->type && le32_to_cpu(head->ino) == id->ino &&
	       le32_to_cpu(head->gen) == id->gen &&
	       (u32)le64_to_cpu(head->off) == id->place &&
	       (id->type != RFS_INDEX || head->level == id->level);
}

int rfs_node_get(struct rfs_fs *fs, const struct rfs_node_id *id, u32 number,
		 struct rfs_buf **out)
{
	bool used;
	u64 addr;
	int ret = 0;

	*out = rfs_buf_find(fs, id->type, number);
	if (!*out) {
		ret = rfs_node_where(fs, number, &addr, &used);
		if (!ret)
			ret = used ? rfs_buf_read(fs, id->type, number, addr,
						  out) : -EUCLEAN;
	}
	if (!ret && !rfs_node_matches(&(*out)->head, id))
		ret = -EUCLEAN;
	if (ret)
		*out = NULL;
	return ret;
}

int rfs_node_free(struct rfs_fs *fs, u32 number)
{
	struct rfs_buf *map, *buf;
	__le64 *word;
	int ret = rfs_nmap_word_get(fs, number, &map, &word);

	if (!ret && rfs_high(*word) != USED)
		ret = -EUCLEAN;
	if (!ret && rfs_addr(*word))
		ret = rfs_count_live(fs, rfs_addr(*word), -1, NULL);
	if (ret)
		return ret;
	buf = rfs_buf_find(fs, RFS_INDEX, number);
	if (buf)
		rfs_buf_drop(fs, buf);
	*word = 0;
	rfs_buf_dirty(fs, map);
	rfs_node_count(fs, number, -1);
	rfs_node_reference(fs, number, false);
	fs->next_node = min(fs->next_node, number);
	return 0;
}

#ifndef __KERNEL__	/* for the tools */
int rfs_node_adopt(struct rfs_fs *fs, u32 number, u64 addr)
{
	u32 at = number % RFS_MAP_ENTRIES;
	struct rfs_buf *map;
	int ret;

	if (!number || number >= le32_to_cpu(fs->super.max_nodes))
		return 0;
	ret = rfs_nmap_get(fs, number / RFS_MAP_ENTRIES, true, &map);
	if (ret)
		return ret;
	if (!map->table.word[at])
		rfs_node_count(fs, number, 1);
	map->table.word[at] = rfs_word(addr, USED);
	rfs_buf_dirty(fs, map);
	return 0;
}

int rfs_node_forget(struct rfs_fs *fs, u32 number)
{
	struct rfs_buf *map, *buf;
	__le64 *word;
	int ret = rfs_nmap_word_get(fs, number, &map, &word);

	if (ret || !*word)
		return ret;
	buf = rfs_buf_find(fs, RFS_INDEX, number);
	if (buf)
		rfs_buf_drop(fs, buf);
	*word = 0;
	rfs_buf_dirty(fs, map);
	rfs_node_count(fs, number, -1);
	return 0;
}
#endif

int rfs_node_map(struct rfs_fs *fs, u32 number, struct rfs_buf **map)
{
	__le64 *word;

	return rfs_nmap_word_get(fs, number, map, &word);
}

int rfs_node_moved(struct rfs_fs *fs, u32 number, u64 addr)
{
	struct rfs_buf *map;
	__le64 *word;
	u64 old;
	int ret = rfs_nmap_word_get(fs, number, &map, &word);

	if (ret)
		return ret;
	old = rfs_addr(*word);
	ret = rfs_count_live(fs, addr, 1, NULL);
	if (!ret && old)
		ret = rfs_count_live(fs, old, -1, NULL);
	if (ret)
		return ret;
	*word = rfs_word(addr, USED);
	rfs_buf_dirty(fs, map);
	return 0;
}
