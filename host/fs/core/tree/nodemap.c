// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The node map leads from the number of an index node, or of a block of a directory, of attributes
 * or of quotas, to its address. Other blocks refer to a node by its number. So if a node moves, a
 * word changes here, and nothing else.
 */
#include "space/space.h"
#include "tree/tree.h"

/* Finds a block of the node map. *out is NULL if there is none, and create is not set. */
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
	return number % RFS_MAP_ENTRIES %
	       rfs_nmap_step(fs, number / RFS_MAP_ENTRIES) ? -EUCLEAN : 0;
}

/* Sets the word of a node. A leaf has more words behind it, which become 0. */
static void rfs_node_put_word(struct rfs_fs *fs, u32 number,
			      struct rfs_buf *map, __le64 word)
{
	__le64 *at = &map->table.word[number % RFS_MAP_ENTRIES];

	memset(at, 0, rfs_nmap_step(fs, number / RFS_MAP_ENTRIES) *
		      sizeof(*at));
	*at = word;
	rfs_buf_dirty(fs, map);
}

int rfs_node_runs(struct rfs_fs *fs, u32 number, struct rfs_buf **map,
		  struct rfs_runs **runs)
{
	__le64 *word;
	int ret = rfs_nmap_word_get(fs, number, map, &word);

	*runs = NULL;
	if (!ret && rfs_high(*word) & RFS_NODE_RUNS &&
	    number / RFS_MAP_ENTRIES >= fs->nmap_leaves)
		*runs = (struct rfs_runs *)word;
	return ret;
}

/*
 * A check-point that was not finished may have left nodes with numbers of which the map has no
 * block. These are not in use.
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
	*used = rfs_high(word) & RFS_NODE_USED;
	if (!(rfs_high(word) & RFS_NODE_RUNS))
		*addr = rfs_addr(word);
	return 0;
}

bool rfs_node_may_fold(const struct rfs_fs *fs, const struct rfs_buf *buf)
{
	return buf->head.type == RFS_INDEX && buf->head.level == 1 &&
	       buf->off / RFS_MAP_ENTRIES >= fs->nmap_leaves;
}

int rfs_node_fold(struct rfs_fs *fs, struct rfs_buf *buf)
{
	u64 old = buf->addr;
	struct rfs_runs runs;
	struct rfs_buf *map;
	__le64 *word;
	int ret;

	if (!rfs_node_may_fold(fs, buf) || !rfs_runs_make(fs, buf, &runs))
		return 0;
	ret = rfs_nmap_word_get(fs, buf->off, &map, &word);
	if (!ret && old)
		ret = rfs_count_live(fs, old, -1, NULL);
	if (ret)
		return ret;
	memcpy(word, &runs, sizeof(runs));
	rfs_buf_dirty(fs, map);
	rfs_buf_folded(fs, buf);
	fs->stats.folded++;
	/*
	 * If recovery has to begin at the check-point before, this leaf is one more dirty block
	 * then.
	 */
	fs->early_blocks++;
	return 1;
}

static void rfs_node_count(struct rfs_fs *fs, u32 number, int delta)
{
	u32 at = fs->imap_blocks + number / RFS_MAP_ENTRIES;

	rfs_timb_set(fs, at, rfs_timb(fs, at) +
			     ((u64)((s64)delta) << RFS_ADDR_BITS));
}

/* This is a part of the map: its blocks of leaves, or of all other nodes. */
struct part {
	u32 first, end;
	u32 step;		/* between two numbers in a block */
	u32 *next;		/* no number below it is free */
};

/* Without places for leaves, their numbers could be more than a u32 has. */
static struct part rfs_nmap_part(struct rfs_fs *fs, bool leaves)
{
	struct part nodes = { 0, fs->nmap_leaves, 1, &fs->next_node };

	if (!leaves || fs->nmap_leaves == fs->nmap_blocks)
		return nodes;
	return (struct part){ fs->nmap_leaves, fs->nmap_blocks, RFS_LEAF_WORDS,
			      &fs->next_leaf };
}

/*
 * Takes the lowest number that is free, so that few blocks of the map change. None below
 * *part->next is free. -ENOSPC says that there is none at all.
 */
static int rfs_take_number(struct rfs_fs *fs, const struct part *part,
			   u32 *number, struct rfs_buf **map)
{
	u32 each = RFS_MAP_ENTRIES / part->step;
	u32 at = max(*part->next, part->first * RFS_MAP_ENTRIES);
	u32 block, i;
	int ret;

	for (block = at / RFS_MAP_ENTRIES; block < part->end; block++) {
		i = at % RFS_MAP_ENTRIES;
		at = 0;
		/* Number 0 belongs to no node. */
		if (rfs_nmap_word(fs, block) >> RFS_ADDR_BITS >= each - !block)
			continue;
		ret = rfs_nmap_get(fs, block, true, map);
		if (ret)
			return ret;
		for (i += !block && !i; i < RFS_MAP_ENTRIES; i += part->step) {
			*number = block * RFS_MAP_ENTRIES + i;
			if (*number >= le32_to_cpu(fs->super.max_nodes))
				break;
			if (!(*map)->table.word[i])
				return 0;
		}
	}
	*part->next = part->end * RFS_MAP_ENTRIES;
	return -ENOSPC;
}

/*
 * Gives a leaf a place as long as there is one. Without a place it gets a number as other nodes do.
 */
static int rfs_number_for(struct rfs_fs *fs, const struct rfs_node_id *id,
			  u32 *number, struct rfs_buf **map)
{
	struct part part = rfs_nmap_part(fs, id->leaf);
	int ret = rfs_take_number(fs, &part, number, map);

	if (ret == -ENOSPC && id->leaf) {
		part = rfs_nmap_part(fs, false);
		ret = rfs_take_number(fs, &part, number, map);
	}
	/* There are as many numbers as blocks, so this is damage. */
	return ret == -ENOSPC ? -EUCLEAN : ret;
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
	int ret = rfs_number_for(fs, id, number, &map);

	if (!ret)
		ret = rfs_buf_new(fs, id->type, id->ino, id->gen,
				  RFS_NODE_KEY(*number, id->place), out);
	if (ret) {
		*number = 0;
		return ret;
	}
	if (*number / RFS_MAP_ENTRIES < fs->nmap_leaves)
		fs->next_node = *number + 1;
	else
		fs->next_leaf = *number + RFS_LEAF_WORDS;
	(*out)->head.level = id->level;
	rfs_node_put_word(fs, *number, map, rfs_word(0, RFS_NODE_USED));
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

/* The node is not in memory. */
static int rfs_node_read(struct rfs_fs *fs, const struct rfs_node_id *id,
			 u32 number, struct rfs_buf **out)
{
	struct rfs_runs *runs;
	struct rfs_buf *map;
	bool used;
	u64 addr;
	int ret = rfs_node_where(fs, number, &addr, &used);

	if (!ret && !used)
		ret = -EUCLEAN;
	if (!ret)
		ret = rfs_node_runs(fs, number, &map, &runs);
	if (ret)
		return ret;
	return runs ? rfs_runs_unfold(fs, id, number, runs, out) :
		      rfs_buf_read(fs, id->type, number, addr, out);
}

int rfs_node_get(struct rfs_fs *fs, const struct rfs_node_id *id, u32 number,
		 struct rfs_buf **out)
{
	int ret = 0;

	/*
	 * Only leaves have these numbers, since a check-point takes nodes with such numbers for
	 * leaves.
	 */
	if (!id->leaf && number / RFS_MAP_ENTRIES >= fs->nmap_leaves) {
		*out = NULL;
		return -EUCLEAN;
	}
	*out = rfs_buf_find(fs, id->type, number);
	if (!*out)
		ret = rfs_node_read(fs, id, number, out);
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
	bool used;
	u64 addr;
	int ret = rfs_nmap_word_get(fs, number, &map, &word);

	if (!ret)
		ret = rfs_node_where(fs, number, &addr, &used);
	if (!ret && !used)
		ret = -EUCLEAN;
	if (!ret && addr)
		ret = rfs_count_live(fs, addr, -1, NULL);
	if (ret)
		return ret;
	buf = rfs_buf_find(fs, RFS_INDEX, number);
	/*
	 * If the node is runs, its blocks were freed before, which made it dirty. So it is not
	 * counted as runs any more.
	 */
	if (buf)
		rfs_buf_drop(fs, buf);
	rfs_node_put_word(fs, number, map, 0);
	rfs_node_count(fs, number, -1);
	rfs_node_reference(fs, number, false);
	if (number / RFS_MAP_ENTRIES < fs->nmap_leaves)
		fs->next_node = min(fs->next_node, number);
	else
		fs->next_leaf = min(fs->next_leaf, number);
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
	if (at % rfs_nmap_step(fs, number / RFS_MAP_ENTRIES))
		return 0;
	if (!map->table.word[at])
		rfs_node_count(fs, number, 1);
	rfs_node_put_word(fs, number, map, rfs_word(addr, RFS_NODE_USED));
	return 0;
}

int rfs_node_adopt_runs(struct rfs_fs *fs, u32 number,
			const struct rfs_runs *runs)
{
	u32 at = number % RFS_MAP_ENTRIES;
	struct rfs_buf *map;
	int ret = rfs_nmap_get(fs, number / RFS_MAP_ENTRIES, true, &map);

	if (ret)
		return ret;
	if (!map->table.word[at])
		rfs_node_count(fs, number, 1);
	memcpy(&map->table.word[at], runs, sizeof(*runs));
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
	rfs_node_put_word(fs, number, map, 0);
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
	rfs_node_put_word(fs, number, map, rfs_word(addr, RFS_NODE_USED));
	return 0;
}
