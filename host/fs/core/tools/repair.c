// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a volume consistent that is not: what cannot be is left out, counts are
 * made anew, inodes without a name go to lost+found. For fsck.rfs; changes
 * memory only, the check-point is the caller's.
 */
#include <stdarg.h>
#include <stdio.h>

#include "space/space.h"
#include "tree/tree.h"
#include "tree/dir.h"
#include "tree/xattr.h"
#include "ops/ops.h"
#include "tools/tools.h"
#include "tools/repair.h"

#define MAP_INODES	(RFS_MAP_ENTRIES * RFS_BLOCK_INODES)
#define LOST_FOUND	"lost+found"
#define U(x)		((unsigned long long)(x))

static void say(struct rfs_walk *w, const char *format, va_list args)
{
	char text[400];

	vsnprintf(text, sizeof(text), format, args);
	w->report->faults++;
	if (w->report->say)
		w->report->say(w->report->arg, text);
}

void rfs_walk_say(struct rfs_walk *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(w, format, args);
	va_end(args);
}

void rfs_walk_lose(struct rfs_walk *w, const char *format, ...)
{
	va_list args;

	w->report->losses++;
	va_start(args, format);
	say(w, format, args);
	va_end(args);
}

/* Nothing is in use, until the walk says so. */
int rfs_walk_init(struct rfs_walk *w, struct rfs_fs *fs,
		  struct rfs_report *report)
{
	size_t blocks = (size_t)fs->geo.zones * fs->geo.zone_blocks;
	u32 nr;

	memset(w, 0, sizeof(*w));
	w->fs = fs;
	w->report = report;
	w->seen = rfs_alloc(blocks / 8 + 1);
	fs->led = rfs_alloc(fs->nmap_blocks * (RFS_MAP_ENTRIES / 8));
	w->block = rfs_alloc(RFS_BLOCK_BYTES);
	if (!w->seen || !fs->led || !w->block || rfs_tallies_init(fs, &w->tallies))
		return -ENOMEM;
	for (nr = 0; nr < fs->geo.zones; nr++) {
		fs->zone[nr].live = 0;
		fs->zone[nr].maps = 0;
		fs->zone[nr].sum_time = 0;
		fs->zone[nr].sum_wcount = 0;
	}
	fs->live = 0;
	w->reserved = fs->reserved;
	fs->reserved = 0;
	fs->data_live = 0;
	return 0;
}

void rfs_walk_exit(struct rfs_walk *w)
{
	rfs_tallies_exit(&w->tallies);
	rfs_free(w->seen);
	rfs_free(w->fs->led);
	w->fs->led = NULL;
	rfs_free(w->block);
	rfs_free(w->stack);
}

static bool seen(const struct rfs_walk *w, u64 addr)
{
	return w->seen[addr / 8] & 1 << addr % 8;
}

/* May a block that is in use be there? Nobody else says that it is his? */
bool rfs_walk_free(const struct rfs_walk *w, u64 addr)
{
	const struct rfs_fs *fs = w->fs;
	u64 zone = addr / fs->geo.zone_blocks;

	return rfs_addr_ok(fs, addr) && zone >= RFS_CP_ZONES &&
	       addr % fs->geo.zone_blocks < fs->zone[zone].wp && !seen(w, addr);
}

void rfs_walk_claim(struct rfs_walk *w, u64 addr)
{
	w->seen[addr / 8] |= 1 << addr % 8;
}

/* Is at a pointer's address what it should be? Blocks of data by their OOB. */
static int ptr_ok(struct rfs_walk *w, const struct rfs_dinode *di,
		  const struct rfs_ptr *slot, u64 block, bool *ok)
{
	u32 ino = le32_to_cpu(di->ino);
	struct rfs_fs *fs = w->fs;
	u64 addr = rfs_addr(slot->addr);
	struct rfs_oob oob;

	*ok = rfs_ptr_ok(slot);
	if (!*ok || slot->kind != RFS_PTR_BLOCK)
		return 0;
	*ok = rfs_walk_free(w, addr) && rfs_high(slot->addr) &&
	      rfs_high(slot->addr) <= RFS_BLOCK_BYTES &&
	      block * RFS_BLOCK_BYTES < le64_to_cpu(di->size) &&
	      (!w->there || w->there[addr / 8] & 1 << addr % 8);
	if (!*ok || !fs->geo.oob_bytes)
		return 0;
	if (fs->ops->read(fs->dev, addr, w->block, &oob)) {
		rfs_walk_say(w, "inode %u: block %llu is not readable; it stays",
			     ino, U(block));
		*ok = false;
		return 0;
	}
	*ok = rfs_oob_ok(&oob, fs->volume) && oob.type == RFS_DATA &&
	      le32_to_cpu(oob.ino) == ino && oob.gen == di->gen &&
	      le64_to_cpu(oob.off) == block;
	return 0;
}

static bool is_led(const struct rfs_walk *w, u32 number)
{
	return w->fs->led[number / 8] & 1 << number % 8;
}

/* The node with a number, if it is what it should be; else *out is NULL. */
static int node_ok(struct rfs_walk *w, const struct rfs_node_id *id, u32 number,
		   struct rfs_buf **out)
{
	struct rfs_fs *fs = w->fs;
	bool used;
	u64 addr;
	int ret = rfs_node_where(fs, number, &addr, &used);

	*out = NULL;
	if (!ret && used && !is_led(w, number) &&
	    (addr ? rfs_walk_free(w, addr) : !!rfs_buf_find(fs, id->type,
							    number)))
		ret = rfs_node_get(fs, id, number, out);
	return ret == -ENOMEM ? ret : 0;
}

/* It is in use from now on. */
static int claim_node(struct rfs_walk *w, u32 number)
{
	bool used;
	u64 addr;
	int ret = rfs_node_where(w->fs, number, &addr, &used);

	rfs_node_led(w->fs, number, true);
	if (ret || !addr)	/* dirty, and never written */
		return ret;
	rfs_walk_claim(w, addr);
	return rfs_live(w->fs, addr, 1, NULL);
}

static struct rfs_node_id tree_id(const struct rfs_dinode *di, u32 level,
				  u64 place)
{
	u32 ino = le32_to_cpu(di->ino);
	u8 type = level ? RFS_INDEX : ino == RFS_QUOTA_INO ? RFS_QUOTA :
							     RFS_DIR;

	return (struct rfs_node_id){ type, level, ino, le32_to_cpu(di->gen),
				     place };
}

static int walk_ptr(struct rfs_walk *w, const struct rfs_dinode *di,
		    struct rfs_ptr *slot, struct rfs_buf *holder, u64 block,
		    u64 *blocks)
{
	bool ok;
	int ret = ptr_ok(w, di, slot, block, &ok);

	if (ret)
		return ret;
	if (!ok) {
		rfs_walk_lose(w, "inode %u: block %llu is not at address %llu",
			      le32_to_cpu(di->ino), U(block),
			      U(rfs_addr(slot->addr)));
		memset(slot, 0, sizeof(*slot));
		rfs_buf_dirty(w->fs, holder);
		return 0;
	}
	if (slot->kind == RFS_PTR_HOLE)
		return 0;
	++*blocks;
	if (slot->kind == RFS_PTR_RESERVED) {
		w->fs->reserved++;
		return 0;
	}
	rfs_walk_claim(w, rfs_addr(slot->addr));
	return rfs_live(w->fs, rfs_addr(slot->addr), 1, slot);
}

/* All under a number: what is right is in use, what is not is left out. */
static int walk_tree(struct rfs_walk *w, const struct rfs_dinode *di,
		     __le32 *slot, struct rfs_buf *holder, u32 level,
		     u64 place, u64 *blocks)
{
	struct rfs_node_id id = tree_id(di, level, place);
	bool file = S_ISREG(le32_to_cpu(di->mode));
	u32 number = le32_to_cpu(*slot), i;
	struct rfs_buf *node;
	int ret;

	if (!number)
		return 0;
	ret = node_ok(w, &id, number, &node);
	if (ret)
		return ret;
	if (!node) {
		rfs_walk_lose(w, "inode %u: %s %llu is not node %u",
			      id.ino, level ? "index node" : "block", U(place),
			      number);
		*slot = 0;
		rfs_buf_dirty(w->fs, holder);
		return 0;
	}
	ret = claim_node(w, number);
	++*blocks;
	if (ret || !level)
		return ret;
	if (file && level == 1) {
		for (i = 0; !ret && i < RFS_FANOUT; i++)
			ret = walk_ptr(w, di, &node->node.ptr[i], node,
				       place * RFS_FANOUT + i, blocks);
	} else {
		for (i = 0; !ret && i < RFS_NODE_FANOUT; i++)
			ret = walk_tree(w, di, &node->node.number[i], node,
					level - 1, place * RFS_NODE_FANOUT + i,
					blocks);
	}
	/* a big file has more of them than there should be in memory */
	if (!ret && !node->dirty && file)
		rfs_buf_drop(w->fs, node);
	return ret;
}

/* Is all under a number right? Nothing is changed. */
static int tree_ok(struct rfs_walk *w, const struct rfs_dinode *di, u32 number,
		   u32 level, u64 place, bool *ok)
{
	struct rfs_node_id id = tree_id(di, level, place);
	struct rfs_buf *node;
	int ret = 0;
	u32 i;

	*ok = true;
	if (number)
		ret = node_ok(w, &id, number, &node);
	if (ret || !number)
		return ret;
	*ok = node;
	if (!node || !level)
		return 0;
	if (S_ISREG(le32_to_cpu(di->mode)) && level == 1) {
		for (i = 0; !ret && *ok && i < RFS_FANOUT; i++)
			ret = ptr_ok(w, di, &node->node.ptr[i],
				     place * RFS_FANOUT + i, ok);
	} else {
		for (i = 0; !ret && *ok && i < RFS_NODE_FANOUT; i++)
			ret = tree_ok(w, di, le32_to_cpu(node->node.number[i]),
				      level - 1, place * RFS_NODE_FANOUT + i,
				      ok);
	}
	return ret;
}

/* Can the attributes of an inode, which it has, be read? */
static int xattrs_ok(struct rfs_walk *w, const struct rfs_dinode *di, bool *ok)
{
	struct rfs_node_id id = { RFS_XATTR, 0, le32_to_cpu(di->ino),
				  le32_to_cpu(di->gen), 0 };
	const struct rfs_xattr *x = NULL;
	struct rfs_buf *buf;
	u32 at = 0;
	int ret = node_ok(w, &id, le32_to_cpu(di->xattr), &buf);

	*ok = buf;
	if (ret || !buf)
		return ret;
	do {
		ret = rfs_xattr_next(w->fs, id.ino, &at, &x);
	} while (!ret && x);
	*ok = !ret && at;
	return ret == -ENOMEM ? ret : 0;
}

static int walk_xattrs(struct rfs_walk *w, struct rfs_dinode *di,
		       struct rfs_buf *ibuf, u64 *blocks)
{
	bool ok;
	int ret;

	if (!di->xattr)
		return 0;
	ret = xattrs_ok(w, di, &ok);
	if (ret)
		return ret;
	if (ok) {
		++*blocks;
		return claim_node(w, le32_to_cpu(di->xattr));
	}
	rfs_walk_lose(w, "inode %u: its extended attributes are damaged",
		      le32_to_cpu(di->ino));
	di->xattr = 0;
	rfs_buf_dirty(w->fs, ibuf);
	return 0;
}

int rfs_walk_whole(struct rfs_walk *w, struct rfs_dinode *di, bool *ok)
{
	bool direct = S_ISREG(le32_to_cpu(di->mode)) && !di->height;
	u32 i, n = rfs_tops(di);
	int ret = 0;

	*ok = di->height <= RFS_HEIGHT_MAX;
	if (*ok && di->xattr)
		ret = xattrs_ok(w, di, ok);
	for (i = 0; !ret && *ok && i < n; i++)
		ret = direct ? ptr_ok(w, di, &di->ptr[i], i, ok) :
		      tree_ok(w, di, le32_to_cpu(di->node[i]), di->height, i,
			      ok);
	return ret;
}

int rfs_walk_push(struct rfs_walk *w, u32 ino)
{
	u32 *more;

	if (w->depth == w->room) {
		w->room = w->room ? 2 * w->room : 256;
		more = rfs_alloc(w->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		if (w->depth)
			memcpy(more, w->stack, w->depth * sizeof(*more));
		rfs_free(w->stack);
		w->stack = more;
	}
	w->stack[w->depth++] = ino;
	return 0;
}

/* What no name leads to: the root, and inode 1, if there is one */
int rfs_walk_push_tops(struct rfs_walk *w)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_walk_push(w, RFS_ROOT_INO);

	if (!ret && !rfs_iget(w->fs, RFS_QUOTA_INO, &di, &buf))
		ret = rfs_walk_push(w, RFS_QUOTA_INO);
	return ret;
}

/* Can each name be found, and nothing else? */
static int dir_ok(struct rfs_fs *fs, u32 dir, bool *ok)
{
	struct rfs_entry entry = { 0 };
	u32 found;
	int ret;

	*ok = false;
	for (;;) {
		ret = rfs_dir_next(fs, dir, entry.pos, &entry);
		if (ret)
			break;
		ret = rfs_dir_find(fs, dir, entry.name, entry.len, &found);
		if (ret || found != entry.ino)
			break;
	}
	*ok = ret == -ENOENT;
	return ret == -ENOMEM ? ret : 0;
}

struct entries {
	struct rfs_entry *entry;
	u32 n, room;
};

/* The names that the leaves of a directory have, one after the other. */
static int collect(struct rfs_walk *w, u32 dir, u64 blocks, struct entries *e)
{
	struct rfs_entry *more;
	u32 at, nr;
	int ret;

	/* its size may be wrong */
	blocks = min(blocks, (u64)w->fs->geo.zones * w->fs->geo.zone_blocks);
	for (nr = 0; nr < blocks; nr++) {
		for (at = 0;; ) {
			if (e->n == e->room) {
				e->room = e->room ? 2 * e->room : 64;
				more = rfs_alloc(e->room * sizeof(*more));
				if (!more)
					return -ENOMEM;
				if (e->n)
					memcpy(more, e->entry,
					       e->n * sizeof(*more));
				rfs_free(e->entry);
				e->entry = more;
			}
			ret = rfs_dir_entry(w->fs, dir, nr, &at,
					    &e->entry[e->n]);
			if (ret)
				break;
			e->n++;
		}
		if (ret == -ENOMEM)
			return ret;
	}
	return 0;
}

/* The tree of a directory anew, with what names can be read. */
static int rebuild_dir(struct rfs_walk *w, u32 dir)
{
	struct entries e = { 0 };
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 i, ino;
	int ret;

	ret = rfs_iget(w->fs, dir, &di, &buf);
	if (!ret)
		ret = collect(w, dir, le64_to_cpu(di->size) / RFS_BLOCK_BYTES,
			      &e);
	if (!ret)
		ret = rfs_map_prune(w->fs, dir, 0, ~0ULL, false);
	if (!ret) {
		di->size = 0;
		rfs_buf_dirty(w->fs, buf);
	}
	for (i = 0; !ret && i < e.n; i++) {
		struct rfs_entry *at = &e.entry[i];

		if (rfs_dir_find(w->fs, dir, at->name, at->len, &ino))
			ret = rfs_dir_add(w->fs, dir, at->name, at->len,
					  at->ino, at->type);
	}
	rfs_walk_lose(w, "directory %u: built anew, with %u names", dir, e.n);
	w->dirs_bad++;
	rfs_free(e.entry);
	return ret;
}

/* One name; *keep: it may stay */
static int walk_name(struct rfs_walk *w, u32 dir, const struct rfs_entry *e,
		     bool *keep)
{
	struct rfs_tally *tally, *above;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	bool is_dir;
	u8 type;
	int ret = rfs_iget(w->fs, e->ino, &di, &buf);

	*keep = false;
	if (ret) {
		rfs_walk_lose(w, "directory %u: \"%.*s\" is inode %u, which does not exist",
			     dir, e->len, e->name, e->ino);
		return ret == -ENOMEM ? ret : 0;
	}
	tally = rfs_tally(&w->tallies, e->ino);
	above = rfs_tally(&w->tallies, dir);
	if (!tally || !above)
		return -ENOMEM;
	is_dir = S_ISDIR(le32_to_cpu(di->mode));
	if (is_dir && (tally->links || e->ino == RFS_ROOT_INO)) {
		rfs_walk_lose(w, "directory %u: \"%.*s\" is a second name of directory %u",
			     dir, e->len, e->name, e->ino);
		return 0;
	}
	*keep = true;
	type = le32_to_cpu(di->mode) >> 12 & 15;
	if (e->type != type) {
		rfs_walk_say(w, "directory %u: \"%.*s\" has another type than inode %u",
			     dir, e->len, e->name, e->ino);
		ret = rfs_dir_set(w->fs, dir, e->name, e->len, e->ino, type);
		if (ret)
			return ret;
	}
	above->subdirs += is_dir;
	if (is_dir && le32_to_cpu(di->parent) != dir) {
		rfs_walk_say(w, "directory %u: its parent is not %u", e->ino,
			     dir);
		di->parent = cpu_to_le32(dir);
		rfs_buf_dirty(w->fs, buf);
	}
	return tally->links++ ? 0 : rfs_walk_push(w, e->ino);
}

static int walk_names(struct rfs_walk *w, u32 dir)
{
	struct rfs_entry entry = { 0 };
	bool keep;
	int ret;

	while ((ret = rfs_dir_next(w->fs, dir, entry.pos, &entry)) == 0) {
		ret = walk_name(w, dir, &entry, &keep);
		if (!ret && !keep) {
			ret = rfs_dir_remove(w->fs, dir, entry.name, entry.len);
			entry.pos--;	/* the next one is there now */
		}
		if (ret)
			return ret;
	}
	return ret == -ENOENT ? 0 : ret;
}

static int walk_inode(struct rfs_walk *w, u32 ino)
{
	u64 before = w->report->faults, blocks = 0;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 i, n;
	bool ok, direct;
	int ret = rfs_iget(w->fs, ino, &di, &buf);

	if (ret)
		return ret;
	if (di->height > RFS_HEIGHT_MAX) {
		rfs_walk_lose(w, "inode %u: height %u", ino, di->height);
		di->height = 0;
		if (S_ISLNK(le32_to_cpu(di->mode)))
			di->target = 0;
		else
			memset(di->node, 0, sizeof(di->node));
		rfs_buf_dirty(w->fs, buf);
	}
	n = rfs_tops(di);
	direct = S_ISREG(le32_to_cpu(di->mode)) && !di->height;
	for (i = 0; !ret && i < n; i++)
		ret = direct ? walk_ptr(w, di, &di->ptr[i], buf, i, &blocks) :
		      walk_tree(w, di, &di->node[i], buf, di->height, i,
				&blocks);
	if (!ret)
		ret = walk_xattrs(w, di, buf, &blocks);
	if (ret)
		return ret;
	if (blocks != le64_to_cpu(di->blocks)) {
		rfs_walk_say(w, "inode %u: says %llu blocks, has %llu", ino,
			     U(le64_to_cpu(di->blocks)), U(blocks));
		di->blocks = cpu_to_le64(blocks);
		rfs_buf_dirty(w->fs, buf);
	}
	if (!S_ISDIR(le32_to_cpu(di->mode)))
		return 0;
	ret = before == w->report->faults ? dir_ok(w->fs, ino, &ok) : 0;
	if (!ret && (before != w->report->faults || !ok))
		ret = rebuild_dir(w, ino);
	return ret ? ret : walk_names(w, ino);
}

/* What was pushed, and all that names in it lead to. */
int rfs_walk_run(struct rfs_walk *w)
{
	int ret = 0;

	while (!ret && w->depth) {
		ret = walk_inode(w, w->stack[--w->depth]);
		rfs_cache_trim(w->fs, w->fs->clean_max);
	}
	return ret;
}

int rfs_each_inode(struct rfs_walk *w,
		   int (*visit)(struct rfs_walk *w, struct rfs_dinode *di,
				struct rfs_buf *buf))
{
	struct rfs_fs *fs = w->fs;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 block, i;
	int ret;

	for (block = 0; block < fs->imap_blocks; block++) {
		if (!fs->timb[block])
			continue;
		for (i = 0; i < MAP_INODES; i++) {
			ret = rfs_iget(fs, block * MAP_INODES + i, &di, &buf);
			if (!ret)
				ret = visit(w, di, buf);
			if (ret == -ENOMEM || ret == -EIO)
				return ret;
			if (i % RFS_BLOCK_INODES == RFS_BLOCK_INODES - 1)
				rfs_cache_trim(fs, fs->clean_max);
		}
	}
	return 0;
}

bool rfs_walk_reached(struct rfs_walk *w, u32 ino)
{
	struct rfs_tally *tally = rfs_tally(&w->tallies, ino);

	return ino <= RFS_ROOT_INO || !tally || tally->links;
}

/* Names of each inode as many as it says? */
static int fix_links(struct rfs_walk *w, struct rfs_dinode *di,
		     struct rfs_buf *buf)
{
	struct rfs_tally *tally = rfs_tally(&w->tallies, le32_to_cpu(di->ino));
	u32 want;

	if (!tally)
		return -ENOMEM;
	want = S_ISDIR(le32_to_cpu(di->mode)) ? 2 + tally->subdirs :
	       tally->links;
	if (le32_to_cpu(di->nlink) == want ||
	    le32_to_cpu(di->ino) == RFS_QUOTA_INO ||
	    !rfs_walk_reached(w, le32_to_cpu(di->ino)))
		return 0;
	rfs_walk_say(w, "inode %u: says %u links, has %u",
		     le32_to_cpu(di->ino), le32_to_cpu(di->nlink), want);
	di->nlink = cpu_to_le32(want);
	rfs_buf_dirty(w->fs, buf);
	return 0;
}

int rfs_walk_links(struct rfs_walk *w)
{
	return rfs_each_inode(w, fix_links);
}

/* One that nobody names: with its content it is kept, or it is gone. */
static int sort_out(struct rfs_walk *w, struct rfs_dinode *di,
		    struct rfs_buf *buf)
{
	u32 ino = le32_to_cpu(di->ino);

	(void)buf;
	if (rfs_walk_reached(w, ino))
		return 0;
	if (di->nlink)
		return rfs_walk_push(w, ino);
	rfs_walk_say(w, "inode %u: has no name, and says so: freed", ino);
	return rfs_ifree(w->fs, ino);
}

/* lost+found, which is made where there is none. */
static int lost_found(struct rfs_walk *w, u32 *ino)
{
	u64 now = w->fs->ops->now(w->fs->dev);
	struct rfs_tally *tally;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	int ret = rfs_dir_find(w->fs, RFS_ROOT_INO, LOST_FOUND,
			       strlen(LOST_FOUND), ino);

	if (ret != -ENOENT)
		return ret;
	ret = rfs_ialloc(w->fs, ino);
	if (!ret)
		ret = rfs_iset(w->fs, *ino, &di, &buf);
	if (ret)
		return ret;
	di->gen = cpu_to_le32((u32)rfs_next_version(w->fs, 1));
	di->mode = cpu_to_le32(S_IFDIR | 0700);
	di->nlink = cpu_to_le32(2);
	di->parent = cpu_to_le32(RFS_ROOT_INO);
	di->atime = cpu_to_le64(now);
	di->mtime = di->atime;
	di->ctime = di->atime;
	di->btime = di->atime;
	tally = rfs_tally(&w->tallies, RFS_ROOT_INO);
	if (!tally)
		return -ENOMEM;
	tally->subdirs++;
	tally = rfs_tally(&w->tallies, *ino);
	if (!tally)
		return -ENOMEM;
	tally->links++;
	return rfs_dir_add(w->fs, RFS_ROOT_INO, LOST_FOUND, strlen(LOST_FOUND),
			   *ino, S_IFDIR >> 12);
}

static int attach(struct rfs_walk *w, u32 ino)
{
	struct rfs_entry entry = { .ino = ino };
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	bool keep;
	u32 dir;
	int ret = lost_found(w, &dir);

	if (!ret)
		ret = rfs_iget(w->fs, ino, &di, &buf);
	if (ret)
		return ret;
	entry.type = le32_to_cpu(di->mode) >> 12 & 15;
	entry.len = snprintf((char *)entry.name, sizeof(entry.name), "#%u",
			     ino);
	if (S_ISDIR(le32_to_cpu(di->mode)))
		di->parent = cpu_to_le32(dir);
	rfs_buf_dirty(w->fs, buf);
	rfs_walk_lose(w, "inode %u: nobody names it, now %s/#%u", ino,
		     LOST_FOUND, ino);
	w->lost++;
	ret = rfs_dir_add(w->fs, dir, entry.name, entry.len, ino, entry.type);
	if (!ret)
		ret = walk_name(w, dir, &entry, &keep);
	return ret ? ret : rfs_walk_run(w);
}

/* Names in directories that are lost themselves: they come along. */
static int mark_inner(struct rfs_walk *w, u32 dir)
{
	struct rfs_entry entry = { 0 };
	struct rfs_tally *tally;
	int ret;

	while ((ret = rfs_dir_next(w->fs, dir, entry.pos, &entry)) == 0) {
		if (entry.ino == dir ||
		    entry.ino / MAP_INODES >= w->fs->imap_blocks)
			continue;
		tally = rfs_tally(&w->tallies, entry.ino);
		if (!tally)
			return -ENOMEM;
		tally->inner = true;
	}
	return ret == -ENOMEM ? ret : 0;
}

static int find_lost(struct rfs_walk *w)
{
	u32 *lost, n, i, round;
	struct rfs_tally *tally;
	int ret = rfs_each_inode(w, sort_out);

	lost = w->stack;
	n = w->depth;
	w->stack = NULL;
	w->depth = 0;
	w->room = 0;
	for (i = 0; !ret && i < n; i++)
		ret = mark_inner(w, lost[i]);
	/* the second time: those that name each other in a circle */
	for (round = 0; round < 2; round++) {
		for (i = 0; !ret && i < n; i++) {
			tally = rfs_tally(&w->tallies, lost[i]);
			if (!tally)
				ret = -ENOMEM;
			else if (!tally->links && (round || !tally->inner))
				ret = attach(w, lost[i]);
		}
	}
	rfs_free(lost);
	return ret;
}

/* Blocks that an inode-map block leads to; words that lead nowhere are gone. */
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
			ret = rfs_live(fs, addr, 1, NULL);
			if (ret)
				return ret;
		}
		used += __builtin_popcount(rfs_high(*word));
	}
	*inodes += used;
	if (used != fs->timb[block] >> RFS_ADDR_BITS) {
		rfs_walk_say(w, "inode map %u: TIMB says %u inodes, there are %u",
			     block, (u32)(fs->timb[block] >> RFS_ADDR_BITS),
			     used);
		fs->timb[block] = (fs->timb[block] & RFS_ADDR_MASK) |
				  (u64)used << RFS_ADDR_BITS;
		rfs_timb_dirty(fs, block);
	}
	return 0;
}

/* Words of a node-map block that lead nowhere are gone, and are counted anew. */
static int walk_nmap(struct rfs_walk *w, u32 block)
{
	struct rfs_fs *fs = w->fs;
	u64 *timb = rfs_nmap_word(fs, block);
	struct rfs_buf *map;
	u32 i, used = 0;
	int ret;

	rfs_live_map(fs, *timb & RFS_ADDR_MASK, 1);
	ret = rfs_nmap_get(fs, block, false, &map);
	if (ret)
		return ret;
	for (i = 0; map && i < RFS_MAP_ENTRIES; i++) {
		__le64 *word = &map->table.word[i];
		u32 number = block * RFS_MAP_ENTRIES + i;

		if (!*word)
			continue;
		if (number && number < le32_to_cpu(fs->super.max_nodes) &&
		    (rfs_addr(*word) || rfs_buf_find(fs, RFS_INDEX, number))) {
			used++;
			continue;
		}
		rfs_walk_lose(w, "node map %u: word %u leads nowhere", block,
			      i);
		*word = 0;
		rfs_buf_dirty(fs, map);
	}
	if (used == *timb >> RFS_ADDR_BITS)
		return 0;
	rfs_walk_say(w, "node map %u: TIMB says %u nodes, there are %u", block,
		     (u32)(*timb >> RFS_ADDR_BITS), used);
	*timb = (*timb & RFS_ADDR_MASK) | (u64)used << RFS_ADDR_BITS;
	rfs_timb_dirty(fs, fs->imap_blocks + block);
	return 0;
}

int rfs_walk_nodes(struct rfs_walk *w)
{
	struct rfs_fs *fs = w->fs;
	struct rfs_buf *map;
	u32 block, i;
	int ret = 0;

	for (block = 0; !ret && block < fs->nmap_blocks; block++) {
		for (i = 0; !ret && i < RFS_MAP_ENTRIES; i++) {
			u32 number = block * RFS_MAP_ENTRIES + i;

			ret = rfs_nmap_get(fs, block, false, &map);
			if (ret || !map)
				break;
			if (!map->table.word[i] || is_led(w, number))
				continue;
			if (!fs->rescuing)
				rfs_walk_say(w, "node %u: nothing leads to it",
					     number);
			ret = rfs_node_forget(fs, number);
		}
		rfs_cache_trim(fs, fs->clean_max);
	}
	fs->next_node = 0;
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
			rfs_live_map(fs, fs->timb_addr[i], 1);
	for (i = 0; i < fs->ztab_blocks; i++)
		if (fs->ztab_addr[i])
			rfs_live_map(fs, fs->ztab_addr[i], 1);
	for (i = 0; !ret && i < fs->imap_blocks; i++) {
		rfs_live_map(fs, fs->timb[i] & RFS_ADDR_MASK, 1);
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

/* Words of inodes that cannot be read are gone too. */
static int drop_unreadable(struct rfs_walk *w)
{
	struct rfs_fs *fs = w->fs;
	struct rfs_buf *map, *buf;
	u32 block, i, slot;
	int ret;

	for (block = 0; block < fs->imap_blocks; block++) {
		for (i = 0; fs->timb[block] && i < RFS_MAP_ENTRIES; i++) {
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

static void fix_zones(struct rfs_walk *w)
{
	struct rfs_fs *fs = w->fs;
	u32 nr;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		struct rfs_zone_info *z = &fs->zone[nr];

		if (z->live && z->state == RFS_Z_FREE) {
			rfs_walk_say(w, "zone %u: said to be free, %u blocks are in use",
				     nr, z->live);
			z->state = RFS_Z_USED;
			fs->free_zones--;
		}
		/* as if nothing of the zone table had been written yet */
		memset(&fs->ztab[nr], 0xff, sizeof(fs->ztab[nr]));
	}
}

static void say_usage(void *arg, u32 type, u32 id, const struct rfs_quota *is,
		      u64 blocks, u64 inodes)
{
	rfs_walk_say(arg, "quota of %s %u: says %llu blocks, %llu inodes, has %llu and %llu",
		     type == RFS_QUOTA_USER ? "user" : "group", id,
		     U(le64_to_cpu(is->blocks)), U(le64_to_cpu(is->inodes)),
		     U(blocks), U(inodes));
}

int rfs_repair(struct rfs_fs *fs, struct rfs_report *report)
{
	bool counting = fs->counting;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_walk w;
	int ret = rfs_walk_init(&w, fs, report);

	/* when all inodes are what they will be, quotas are made to fit */
	fs->counting = false;

	if (!ret)
		ret = drop_unreadable(&w);
	if (!ret)
		ret = rfs_walk_maps(&w);
	if (!ret)
		ret = rfs_walk_push_tops(&w);
	if (!ret)
		ret = rfs_walk_run(&w);
	fs->orphans = 0;
	if (!ret)
		ret = find_lost(&w);
	if (!ret)
		ret = rfs_walk_links(&w);
	if (!ret)
		ret = rfs_walk_nodes(&w);
	if (!ret && fs->reserved != w.reserved)
		rfs_walk_say(&w, "the check-point says %llu reserved blocks, there are %llu",
			     U(w.reserved), U(fs->reserved));
	if (!ret)
		fix_zones(&w);
	if (!ret && counting && rfs_iget(fs, RFS_QUOTA_INO, &di, &buf)) {
		rfs_walk_lose(&w, "quotas are lost");
		counting = false;
	}
	if (!ret && counting)
		ret = rfs_quota_compare(fs, RFS_QUOTA_REPAIR, say_usage, &w);
	fs->counting = counting;
	rfs_walk_exit(&w);
	return ret;
}
