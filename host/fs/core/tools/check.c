// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These functions check whether a volume is consistent. They walk everything that a check-point
 * leads to, and compare it with the zone table, the inode map and the inodes. Nothing is changed;
 * the volume was mounted, read-only or not.
 */
#ifndef __KERNEL__
#include <stdarg.h>
#include <stdio.h>
#endif

#include "home/home.h"
#include "tree/tree.h"
#include "tree/dir.h"
#include "tree/diff.h"
#include "tree/xattr.h"
#include "tree/quota.h"
#include "ops/ops.h"
#include "tools/tools.h"

struct check {
	struct rfs_fs *fs;
	struct rfs_report *report;
	u8 *seen;		/* a bit each block of the volume */
	u8 *referenced;		/* and node numbers in use */
	u32 *live;		/* blocks found in each zone */
	struct rfs_tallies tallies;
	u8 *block;
	u8 *at_home;		/* content of a block of the slow device */
	u8 *homes;		/* states of its blocks, as in struct rfs_slow_states */
	u64 prealloc;		/* holes that room is kept for */
	u32 runs;		/* leaves that are runs */
};

#define MAP_INODES	(RFS_MAP_ENTRIES * RFS_BLOCK_INODES)

int rfs_tallies_init(const struct rfs_fs *fs, struct rfs_tallies *t)
{
	t->parts = fs->imap_blocks;
	t->part = rfs_alloc(t->parts * sizeof(*t->part));
	return t->part ? 0 : -ENOMEM;
}

void rfs_tallies_exit(struct rfs_tallies *t)
{
	u32 i;

	for (i = 0; t->part && i < t->parts; i++)
		rfs_free(t->part[i]);
	rfs_free(t->part);
}

struct rfs_tally *rfs_tally(struct rfs_tallies *t, u32 ino)
{
	struct rfs_tally **part = &t->part[ino / MAP_INODES];

	if (!*part)
		*part = rfs_alloc(MAP_INODES * sizeof(**part));
	return *part ? *part + ino % MAP_INODES : NULL;
}

static void fault(struct check *c, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	c->report->faults++;
	if (c->report->say)
		c->report->say(c->report->arg, text);
}

/*
 * Counts a pointer to addr. There may be one, in a zone that may hold such a block, below its write
 * pointer.
 */
static bool claim(struct check *c, u64 addr, const char *what, u32 ino, u64 off)
{
	struct rfs_fs *fs = c->fs;
	u64 zone = addr / fs->geo.zone_blocks;

	rfs_progress(c->report, ++c->report->blocks, fs->live);
	if (!rfs_addr_ok(fs, addr) || zone < RFS_CP_ZONES) {
		fault(c, "%s %u/%llu: address %llu is outside the volume", what,
		      ino, (unsigned long long)off, (unsigned long long)addr);
		return false;
	}
	if (addr % fs->geo.zone_blocks >= fs->zone[zone].wp ||
	    fs->zone[zone].state == RFS_Z_FREE)
		fault(c, "%s %u/%llu: address %llu was not written", what, ino,
		      (unsigned long long)off, (unsigned long long)addr);
	if (c->seen[addr / 8] & 1 << addr % 8)
		fault(c, "%s %u/%llu: address %llu is used twice", what, ino,
		      (unsigned long long)off, (unsigned long long)addr);
	c->seen[addr / 8] |= 1 << addr % 8;
	c->live[zone]++;
	return true;
}

static void check_data(struct check *c, const struct rfs_dinode *di, u64 off,
		       const struct rfs_ptr *ptr)
{
	struct rfs_fs *fs = c->fs;
	u32 ino = le32_to_cpu(di->ino);
	struct rfs_oob oob;
	int ret;

	if (!c->report->read_data || !fs->geo.oob_bytes)
		return;
	ret = fs->ops->read(fs->dev, rfs_ptr_flash(ptr), c->block, &oob);
	if (ret || !rfs_oob_ok(&oob, fs->volume) || oob.type != RFS_DATA ||
	    le32_to_cpu(oob.ino) != ino || oob.gen != di->gen ||
	    le64_to_cpu(oob.off) != off ||
	    le32_to_cpu(oob.data_crc) != ~rfs_crc(~0U, c->block,
						  RFS_BLOCK_BYTES))
		fault(c, "file %u block %llu: not what is at address %llu", ino,
		      (unsigned long long)off,
		      (unsigned long long)rfs_ptr_flash(ptr));
}

static void check_place(struct check *c, const struct rfs_dinode *di, u64 off,
			const struct rfs_ptr *ptr)
{
	u32 ino = le32_to_cpu(di->ino), len = rfs_ptr_len(ptr);

	if (!len || len > RFS_BLOCK_BYTES)
		fault(c, "file %u block %llu: %u valid bytes", ino,
		      (unsigned long long)off, len);
	if (off * RFS_BLOCK_BYTES >= le64_to_cpu(di->size))
		fault(c, "file %u block %llu: beyond its size", ino,
		      (unsigned long long)off);
}

/* Says whether both devices have the same content. */
static bool check_equal(struct check *c, const struct rfs_ptr *ptr)
{
	u64 flash = rfs_ptr_flash(ptr);

	return !flash || !rfs_addr_ok(c->fs, flash) ||
	       c->fs->ops->read(c->fs->dev, flash, c->block, NULL) ||
	       !memcmp(c->block, c->at_home, RFS_BLOCK_BYTES);
}

/* Checks a block of the slow device, to which nothing else may lead. */
static void check_home(struct check *c, const struct rfs_dinode *di, u64 off,
		       const struct rfs_ptr *ptr)
{
	struct rfs_home *home = c->fs->home;
	u64 at = rfs_ptr_home(ptr), nr = at - home->first;
	u32 ino = le32_to_cpu(di->ino), shift = nr % 4 * 2;

	if (home->gone)
		return;
	c->report->homes++;
	if (nr >= home->blocks) {
		fault(c, "file %u block %llu: block %llu is outside the slow device",
		      ino, (unsigned long long)off, (unsigned long long)at);
		return;
	}
	if (c->homes[nr / 4] >> shift & 3)
		fault(c, "file %u block %llu: block %llu of the slow device is used twice",
		      ino, (unsigned long long)off, (unsigned long long)at);
	c->homes[nr / 4] |= (ptr->kind == RFS_PTR_BOTH ? RFS_SLOW_BOTH :
						     RFS_SLOW_ALONE) << shift;
	if (!c->report->read_data)
		return;
	if (rfs_home_read(c->fs, at, c->at_home))
		fault(c, "file %u block %llu: block %llu of the slow device cannot be read",
		      ino, (unsigned long long)off, (unsigned long long)at);
	else if (!check_equal(c, ptr))
		fault(c, "file %u block %llu: block %llu of the slow device is not what is on flash",
		      ino, (unsigned long long)off, (unsigned long long)at);
}

/* Checks that the table of states is that of the check-point, and that it matches the pointers. */
static void check_states(struct check *c)
{
	struct rfs_home *home = c->fs->home;
	u64 nr;

	if (home->lacks)
		fault(c, "table of states: a block is damaged that the check-point was written with");
	for (nr = 0; !home->gone && nr < home->blocks; nr++) {
		u32 is = rfs_home_state(home, nr);
		u32 found = c->homes[nr / 4] >> nr % 4 * 2 & 3;

		if (is != found && (found || is != RFS_SLOW_HELD))
			fault(c, "slow device: block %llu has state %u, and files have it in state %u",
			      (unsigned long long)(home->first + nr), is, found);
	}
}

/* Returns the node that a number leads to, or NULL if it is not there. */
static struct rfs_buf *check_node(struct check *c, const struct rfs_node_id *id,
				  u32 number, const char *what, bool *claimed)
{
	struct rfs_buf *node, *map;
	struct rfs_runs *runs = NULL;
	bool used;
	u64 addr;
	int ret = rfs_node_where(c->fs, number, &addr, &used);

	*claimed = false;
	if (!ret && used)
		ret = rfs_node_runs(c->fs, number, &map, &runs);
	if (ret || !used || !(addr || runs)) {
		fault(c, "%s %u/%u: node %u does not exist", what, id->ino,
		      id->place, number);
		return NULL;
	}
	c->runs += !!runs;
	/* If two led to the same runs, they would have the same blocks. */
	*claimed = runs || claim(c, addr, what, id->ino, id->place);
	if (!*claimed)
		return NULL;
	c->referenced[number / 8] |= 1 << number % 8;
	ret = rfs_node_get(c->fs, id, number, &node);
	if (!ret)
		return node;
	fault(c, "%s %u/%u: node %u is damaged (%d)", what, id->ino, id->place,
	      number, ret);
	return NULL;
}

/* Returns the blocks that a file's pointer stands for. */
static u64 check_ptr(struct check *c, const struct rfs_dinode *di,
		     const struct rfs_ptr *ptr, u64 block)
{
	u32 ino = le32_to_cpu(di->ino);

	if (!rfs_ptr_known(c->fs, ptr)) {
		fault(c, "file %u block %llu: a pointer of kind %u to address %llu",
		      ino, (unsigned long long)block, ptr->kind,
		      (unsigned long long)rfs_addr(ptr->addr));
		return 0;
	}
	if (ptr->kind == RFS_PTR_HOLE)
		return 0;
	if (ptr->kind == RFS_PTR_PIECE && !rfs_has_pieces(&c->fs->super))
		fault(c, "file %u block %llu: pieces on a volume that was made without",
		      ino, (unsigned long long)block);
	if (ptr->kind == RFS_PTR_PREALLOC || ptr->kind == RFS_PTR_PIECE) {
		c->prealloc++;
		return 1;
	}
	check_place(c, di, block, ptr);
	if (rfs_ptr_has_home(ptr))
		check_home(c, di, block, ptr);
	if (ptr->kind == RFS_PTR_ELSEWHERE)
		return 1;
	if (!claim(c, rfs_ptr_flash(ptr), "file", ino, block))
		return 0;
	check_data(c, di, block, ptr);
	return 1;
}

/* Checks all under a node of a level, or a block of an inode that is no file. */
static u64 check_tree(struct check *c, const struct rfs_dinode *di, u32 number,
		      u32 level, u64 place)
{
	u32 ino = le32_to_cpu(di->ino), i;
	bool file = S_ISREG(le32_to_cpu(di->mode)), claimed;
	struct rfs_node_id id = { level ? RFS_INDEX : ino == RFS_QUOTA_INO ?
				  RFS_QUOTA : RFS_DIR, level, ino,
				  le32_to_cpu(di->gen), place,
				  file && level == 1 };
	struct rfs_buf *node;
	u64 blocks = 1;

	if (!number)
		return 0;
	node = check_node(c, &id, number, level ? "index of" : "block of",
			  &claimed);
	if (!node || !level)
		return claimed;
	if (file && level == 1)
		for (i = 0; i < RFS_FANOUT; i++)
			blocks += check_ptr(c, di, &node->node.ptr[i],
					    place * RFS_FANOUT + i);
	else
		for (i = 0; i < RFS_NODE_FANOUT; i++)
			blocks += check_tree(c, di,
					     le32_to_cpu(node->node.number[i]),
					     level - 1,
					     place * RFS_NODE_FANOUT + i);
	/* A big file has more of these nodes than memory should have. */
	if (file)
		rfs_buf_drop(c->fs, node);
	return blocks;
}

static int check_dir(struct check *c, const struct rfs_dinode *di)
{
	u32 dir = le32_to_cpu(di->ino), found;
	struct rfs_entry entry = { 0 };
	struct rfs_tally *tally;
	struct rfs_dinode *child;
	struct rfs_buf *buf;
	int ret;

	for (;;) {
		ret = rfs_dir_next(c->fs, dir, entry.pos, &entry);
		if (ret == -ENOENT)
			return 0;
		if (ret) {
			fault(c, "directory %u: damaged (%d)", dir, ret);
			return 0;
		}
		if (rfs_dir_find(c->fs, dir, entry.name, entry.len, &found) ||
		    found != entry.ino)
			fault(c, "directory %u: \"%.*s\" is not where its hash says",
			      dir, entry.len, entry.name);
		ret = rfs_iget(c->fs, entry.ino, &child, &buf);
		if (ret) {
			fault(c, "directory %u: \"%.*s\" is inode %u, which does not exist",
			      dir, entry.len, entry.name, entry.ino);
			continue;
		}
		tally = rfs_tally(&c->tallies, entry.ino);
		if (!tally)
			return -ENOMEM;
		tally->links++;
		if (entry.type != (le32_to_cpu(child->mode) >> 12 & 15))
			fault(c, "directory %u: \"%.*s\" has another type than inode %u",
			      dir, entry.len, entry.name, entry.ino);
		if (!S_ISDIR(le32_to_cpu(child->mode)))
			continue;
		tally = rfs_tally(&c->tallies, dir);
		if (!tally)
			return -ENOMEM;
		tally->subdirs++;
		if (le32_to_cpu(child->parent) != dir)
			fault(c, "directory %u: its parent is not %u", entry.ino,
			      dir);
	}
}

/* Returns the number of blocks. */
static u32 check_xattrs(struct check *c, const struct rfs_dinode *di)
{
	u32 ino = le32_to_cpu(di->ino), at = 0;
	struct rfs_node_id id = { RFS_XATTR, 0, ino, le32_to_cpu(di->gen), 0,
				  false };
	const struct rfs_xattr *x = NULL;
	bool claimed;
	int ret;

	if (!di->xattr)
		return 0;
	if (!check_node(c, &id, le32_to_cpu(di->xattr), "attributes of",
			&claimed))
		return claimed;
	do {
		ret = rfs_xattr_next(c->fs, ino, &at, &x);
	} while (!ret && x);
	if (ret || !at)
		fault(c, "inode %u: its extended attributes are damaged (%d)",
		      ino, ret);
	return 1;
}

/* Returns the number of blocks. */
static u32 check_diff(struct check *c, const struct rfs_dinode *di)
{
	u32 ino = le32_to_cpu(di->ino);
	struct rfs_node_id id = { RFS_DIFF, 0, ino, le32_to_cpu(di->gen), 0,
				  false };
	struct rfs_buf *node;
	bool claimed;
	int ret;

	if (!di->diff)
		return 0;
	if (!S_ISREG(le32_to_cpu(di->mode)) || !rfs_has_pieces(&c->fs->super))
		fault(c, "inode %u: has pieces, which it cannot have", ino);
	if (!check_node(c, &id, le32_to_cpu(di->diff), "pieces of", &claimed))
		return claimed;
	ret = rfs_diff_get(c->fs, di, &node);
	if (ret)
		fault(c, "inode %u: its pieces are damaged (%d)", ino, ret);
	else if (rfs_diff_end(node) > le64_to_cpu(di->size))
		fault(c, "inode %u: pieces beyond its size", ino);
	return 1;
}

static int check_inode(struct check *c, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u64 blocks = 0;
	u32 i, n;
	int ret = rfs_iget(c->fs, ino, &di, &buf);

	if (ret) {
		fault(c, "inode %u: cannot be read (%d)", ino, ret);
		return 0;
	}
	if (di->height > RFS_HEIGHT_MAX) {
		fault(c, "inode %u: height %u", ino, di->height);
		return 0;
	}
	n = rfs_root_slots(di);
	for (i = 0; i < n; i++) {
		if (S_ISREG(le32_to_cpu(di->mode)) && !di->height)
			blocks += check_ptr(c, di, &di->ptr[i], i);
		else
			blocks += check_tree(c, di, le32_to_cpu(di->node[i]),
					     di->height, i);
	}
	blocks += check_xattrs(c, di);
	blocks += check_diff(c, di);
	if (blocks != le64_to_cpu(di->blocks))
		fault(c, "inode %u: says %llu blocks, has %llu", ino,
		      (unsigned long long)le64_to_cpu(di->blocks),
		      (unsigned long long)blocks);
	if (S_ISDIR(le32_to_cpu(di->mode))) {
		c->report->dirs++;
		return check_dir(c, di);
	}
	c->report->files += ino != RFS_QUOTA_INO;
	return 0;
}

static int check_links(struct check *c, const struct rfs_dinode *di)
{
	u32 ino = le32_to_cpu(di->ino), want;
	struct rfs_tally *tally = rfs_tally(&c->tallies, ino);

	if (!tally)
		return -ENOMEM;
	if (ino == RFS_QUOTA_INO)
		return 0;
	want = tally->links;
	if (S_ISDIR(le32_to_cpu(di->mode))) {
		u32 names = ino == RFS_ROOT_INO ? 0 : 1;

		if (want != names && di->nlink)
			fault(c, "directory %u: has %u names", ino, want);
		want = di->nlink ? 2 + tally->subdirs : 0;
	}
	if (le32_to_cpu(di->nlink) != want)
		fault(c, "inode %u: says %u links, has %u", ino,
		      le32_to_cpu(di->nlink), want);
	return 0;
}

/* Checks that the list of orphans has all inodes without a name, and no others. */
static void check_orphans(struct check *c, u64 nameless)
{
	u32 at = c->fs->orphans;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u64 listed = 0;

	while (at && listed <= nameless) {
		if (rfs_iget(c->fs, at, &di, &buf) || di->nlink) {
			fault(c, "orphan %u: not an inode without a name", at);
			return;
		}
		listed++;
		at = le32_to_cpu(di->next_orphan);
	}
	if (listed != nameless)
		fault(c, "%llu inodes without a name, %llu in the list",
		      (unsigned long long)nameless, (unsigned long long)listed);
}

/* Checks the 16 inodes of an inode-map word. *used grows by those in use. */
static int check_inodes(struct check *c, u32 off, u32 bits, u32 *used)
{
	u32 slot;
	int ret = 0;

	for (slot = 0; !ret && slot < RFS_BLOCK_INODES; slot++) {
		if (!(bits & 1U << slot))
			continue;
		++*used;
		ret = check_inode(c, off * RFS_BLOCK_INODES + slot);
	}
	/* Nobody has a pointer to a block, as between operations. */
	rfs_cache_trim(c->fs, c->fs->clean_max);
	return ret;
}

/* Checks each word of the inode map, and each inode that is in use by it. */
static int check_map(struct check *c, u32 block)
{
	struct rfs_fs *fs = c->fs;
	u64 addr = rfs_timb(fs, block) & RFS_ADDR_MASK;
	struct rfs_buf *map;
	u32 i, used = 0;
	int ret;

	if (addr)
		claim(c, addr, "inode map", 0, block);
	for (i = 0; i < RFS_MAP_ENTRIES; i++) {
		u32 bits, off = block * RFS_MAP_ENTRIES + i;

		ret = rfs_imap_get(fs, block, false, &map);
		if (ret)
			fault(c, "inode map %u: damaged (%d)", block, ret);
		if (ret || !map)
			return ret == -ENOMEM ? ret : 0;
		bits = rfs_high(map->table.word[i]);
		addr = rfs_addr(map->table.word[i]);
		if (!bits != !addr)
			fault(c, "inode map %u: word %u", block, i);
		if (!addr)
			continue;
		claim(c, addr, "inodes", 0, off);
		ret = check_inodes(c, off, bits, &used);
		if (ret)
			return ret;
	}
	if (used != rfs_timb(fs, block) >> RFS_ADDR_BITS)
		fault(c, "inode map %u: TIMB says %u inodes, there are %u",
		      block, (u32)(rfs_timb(fs, block) >> RFS_ADDR_BITS), used);
	return 0;
}

/* Checks a place of the node map. In a place of a leaf, all unused words must be 0. */
static bool place_ok(const struct rfs_fs *fs, u32 block, const __le64 *word)
{
	static const __le64 none[RFS_LEAF_WORDS];
	bool runs = rfs_high(*word) & RFS_NODE_RUNS;

	if (block < fs->nmap_leaves)
		return !runs;
	return runs ? !rfs_addr(*word) :
		      !memcmp(word + 1, none, sizeof(none) - sizeof(*none));
}

/* Checks that something leads to each number of the node map that is in use. */
static int check_nmap(struct check *c, u32 block)
{
	struct rfs_fs *fs = c->fs;
	u64 word = rfs_nmap_word(fs, block);
	struct rfs_buf *map;
	u32 i, used = 0;
	int ret;

	if (word & RFS_ADDR_MASK)
		claim(c, word & RFS_ADDR_MASK, "node map", 0, block);
	ret = rfs_nmap_get(fs, block, false, &map);
	if (ret)
		fault(c, "node map %u: damaged (%d)", block, ret);
	for (i = 0; !ret && map && i < RFS_MAP_ENTRIES;
	     i += rfs_nmap_step(fs, block)) {
		u32 number = block * RFS_MAP_ENTRIES + i;

		if (!place_ok(fs, block, &map->table.word[i]))
			fault(c, "node map %u: word %u", block, i);
		if (!map->table.word[i])
			continue;
		used++;
		if (number >= le32_to_cpu(fs->super.max_nodes) ||
		    !(c->referenced[number / 8] & 1 << number % 8))
			fault(c, "node %u: nothing leads to it", number);
	}
	if (!ret && used != word >> RFS_ADDR_BITS)
		fault(c, "node map %u: TIMB says %u nodes, there are %u",
		      block, (u32)(word >> RFS_ADDR_BITS), used);
	rfs_cache_trim(fs, fs->clean_max);
	return ret == -ENOMEM ? ret : 0;
}

/* Checks the names of a block of inodes. */
static int check_block_names(struct check *c, u32 off, u64 *nameless,
			     u64 *inodes)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 i;
	int ret = 0;

	for (i = 0; !ret && i < RFS_BLOCK_INODES; i++) {
		if (rfs_iget(c->fs, off * RFS_BLOCK_INODES + i, &di, &buf))
			continue;
		++*inodes;
		*nameless += !di->nlink;
		ret = check_links(c, di);
	}
	rfs_cache_trim(c->fs, c->fs->clean_max);
	return ret;
}

/* Checks the names of each inode, and the list of those that have none. */
static int check_names(struct check *c)
{
	struct rfs_fs *fs = c->fs;
	u64 nameless = 0, inodes = 0;
	struct rfs_buf *map;
	u32 block, i;
	int ret;

	for (block = 0; block < fs->imap_blocks; block++) {
		for (i = 0; rfs_timb(fs, block) && i < RFS_MAP_ENTRIES; i++) {
			if (rfs_imap_get(fs, block, false, &map) || !map)
				break;
			if (!rfs_high(map->table.word[i]))
				continue;
			ret = check_block_names(c, block * RFS_MAP_ENTRIES + i,
						&nameless, &inodes);
			if (ret)
				return ret;
		}
	}
	if (inodes != fs->inodes)
		fault(c, "the check-point says %llu inodes, there are %llu",
		      (unsigned long long)fs->inodes,
		      (unsigned long long)inodes);
	check_orphans(c, nameless);
	return 0;
}

static void check_usage(void *arg, u32 type, u32 id, const struct rfs_quota *is,
			u64 blocks, u64 inodes)
{
	fault(arg, "quota of %s %u: says %llu blocks, %llu inodes, has %llu and %llu",
	      type == RFS_QUOTA_USER ? "user" : "group", id,
	      (unsigned long long)le64_to_cpu(is->blocks),
	      (unsigned long long)le64_to_cpu(is->inodes),
	      (unsigned long long)blocks, (unsigned long long)inodes);
}

/* Quotas that are not counted now must also be readable. */
static int check_quotas(struct check *c)
{
	struct rfs_fs *fs = c->fs;
	struct rfs_buf *buf;
	u64 off;
	int ret = 0;

	for (off = 0; !ret; off++) {
		ret = rfs_quota_block(fs, &off, &buf);
		rfs_cache_trim(fs, fs->clean_max);
	}
	if (ret == -ENOENT)
		ret = fs->counting && !fs->miscounted ?
		      rfs_quota_compare(fs, RFS_QUOTA_LOOK, check_usage, c) : 0;
	if (!ret || ret == -ENOMEM)
		return ret;
	fault(c, "quotas: cannot be read (%d)", ret);
	return 0;
}

static int check_all(struct check *c)
{
	struct rfs_fs *fs = c->fs;
	u32 i;
	int ret = 0;

	for (i = 0; i < fs->timb_blocks; i++)
		if (fs->timb_addr[i])
			claim(c, fs->timb_addr[i], "TIMB", 0, i);
	for (i = 0; i < fs->ztab_blocks; i++)
		if (fs->ztab_addr[i])
			claim(c, fs->ztab_addr[i], "zone table", 0, i);
	for (i = 0; !ret && i < fs->imap_blocks; i++)
		ret = check_map(c, i);
	for (i = 0; !ret && i < fs->nmap_blocks; i++)
		ret = check_nmap(c, i);
	if (!ret)
		ret = check_names(c);
	if (!ret)
		ret = check_quotas(c);
	if (!ret && c->prealloc != fs->prealloc)
		fault(c, "the check-point says %llu reserved blocks, there are %llu",
		      (unsigned long long)fs->prealloc,
		      (unsigned long long)c->prealloc);
	if (!ret && c->runs != fs->runs)
		fault(c, "the check-point says %u leaves that are runs, there are %u",
		      fs->runs, c->runs);
	for (i = RFS_CP_ZONES; !ret && i < fs->geo.zones; i++) {
		if (c->live[i] != fs->zone[i].live)
			fault(c, "zone %u: says %u blocks in use, has %u", i,
			      fs->zone[i].live, c->live[i]);
	}
	if (!ret && fs->home)
		check_states(c);
	return ret;
}

/*
 * Checks the volume. Returns 0 if that was possible; report->faults is the number of faults. It is
 * only for a volume without dirty metadata: after a check-point or a clean mount.
 */
int rfs_check(struct rfs_fs *fs, struct rfs_report *report)
{
	struct check c = { .fs = fs, .report = report };
	size_t blocks = (size_t)fs->geo.zones * fs->geo.zone_blocks;
	int ret = -ENOMEM;

	if (fs->dirty.count)
		return -EBUSY;
	c.seen = rfs_alloc(blocks / 8 + 1);
	c.referenced = rfs_alloc(fs->nmap_blocks * (RFS_MAP_ENTRIES / 8));
	c.live = rfs_alloc(fs->geo.zones * sizeof(*c.live));
	c.block = rfs_alloc(2 * RFS_BLOCK_BYTES);
	c.homes = rfs_alloc(fs->home ? fs->home->tables * (RFS_SLOW_EACH / 4) : 1);
	if (c.block)
		c.at_home = c.block + RFS_BLOCK_BYTES;
	if (c.seen && c.referenced && c.live && c.block && c.homes)
		ret = rfs_tallies_init(fs, &c.tallies);
	if (!ret)
		ret = check_all(&c);
	rfs_tallies_exit(&c.tallies);
	rfs_free(c.seen);
	rfs_free(c.referenced);
	rfs_free(c.live);
	rfs_free(c.block);
	rfs_free(c.homes);
	return ret;
}
