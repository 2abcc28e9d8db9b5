// SPDX-License-Identifier: GPL-2.0-or-later
/* These functions walk the parts of an inode: its blocks, nodes and extended attributes. */
#include "home/home.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "tree/xattr.h"
#include "tools/walk.h"

/* Says whether a pointer may have its block of the slow device, which nobody else has claimed. */
static bool home_ok(const struct rfs_fs *fs, const struct rfs_ptr *slot)
{
	u64 nr = rfs_ptr_home(slot) - fs->home->first;

	return fs->home->gone || (nr < fs->home->blocks &&
				  rfs_home_state(fs->home, nr) ==
				  RFS_SLOW_HELD);
}

static int block_ok(struct rfs_walk *w, const struct rfs_dinode *di,
		    const struct rfs_ptr *slot, u64 block, bool *ok);

/*
 * If a block on both devices cannot be on one of them, it is on the other. *slot becomes a pointer
 * to that one.
 */
static int both_ok(struct rfs_walk *w, const struct rfs_dinode *di,
		   struct rfs_ptr *slot, u64 block, bool *ok)
{
	u32 len = rfs_ptr_len(slot);
	u64 home = home_ok(w->fs, slot) ? rfs_ptr_home(slot) : 0;
	struct rfs_ptr flash = *slot;
	int ret;

	rfs_ptr_put(&flash, rfs_ptr_flash(slot), 0, len);
	ret = block_ok(w, di, &flash, block, ok);
	if (*ok && home)
		return ret;
	if (*ok)
		*slot = flash;
	else if (home)
		rfs_ptr_put(slot, 0, home, len);
	*ok |= !!home;
	return ret;
}

static int ptr_ok(struct rfs_walk *w, const struct rfs_dinode *di,
		  struct rfs_ptr *slot, u64 block, bool *ok)
{
	if (!rfs_ptr_known(w->fs, slot) || !rfs_ptr_has_home(slot))
		return block_ok(w, di, slot, block, ok);
	if (slot->kind == RFS_PTR_BOTH)
		return both_ok(w, di, slot, block, ok);
	*ok = home_ok(w->fs, slot) && rfs_ptr_len(slot) &&
	      rfs_ptr_len(slot) <= RFS_BLOCK_BYTES &&
	      block * RFS_BLOCK_BYTES < le64_to_cpu(di->size);
	return 0;
}

/*
 * Says whether the right block is at a pointer's address. Blocks of data, and their bytes, are
 * known by the OOB.
 */
static int block_ok(struct rfs_walk *w, const struct rfs_dinode *di,
		    const struct rfs_ptr *slot, u64 block, bool *ok)
{
	u32 ino = le32_to_cpu(di->ino);
	struct rfs_fs *fs = w->fs;
	u64 addr = rfs_addr(slot->addr);
	struct rfs_oob oob;

	*ok = rfs_ptr_ok(slot) && (slot->kind != RFS_PTR_PIECE ||
				   rfs_has_pieces(&fs->super));
	if (!*ok || slot->kind != RFS_PTR_BLOCK)
		return 0;
	*ok = rfs_walk_free(w, addr) && rfs_high(slot->addr) &&
	      rfs_high(slot->addr) <= RFS_BLOCK_BYTES &&
	      block * RFS_BLOCK_BYTES < le64_to_cpu(di->size) &&
	      (!w->there || w->there[addr / 8] & 1 << addr % 8);
	if (!*ok || !fs->geo.oob_bytes)
		return 0;
	*ok = !fs->ops->read(fs->dev, addr, w->block, &oob) &&
	      rfs_oob_ok(&oob, fs->volume) && oob.type == RFS_DATA &&
	      le32_to_cpu(oob.ino) == ino && oob.gen == di->gen &&
	      le64_to_cpu(oob.off) == block &&
	      le32_to_cpu(oob.data_crc) ==
	      ~rfs_crc(~0U, w->block, RFS_BLOCK_BYTES);
	return 0;
}

bool rfs_walk_referenced(const struct rfs_walk *w, u32 number)
{
	return w->fs->referenced[number / 8] & 1 << number % 8;
}

/* Says whether a node that has no address is neither in memory nor runs. */
static bool is_nowhere(struct rfs_walk *w, const struct rfs_node_id *id,
		       u32 number)
{
	struct rfs_runs *runs;
	struct rfs_buf *map;

	if (rfs_buf_find(w->fs, id->type, number))
		return false;
	return rfs_node_runs(w->fs, number, &map, &runs) || !runs;
}

/* Finds the node with a number, if it is the right one. Otherwise *out is NULL. */
static int node_ok(struct rfs_walk *w, const struct rfs_node_id *id, u32 number,
		   struct rfs_buf **out)
{
	struct rfs_fs *fs = w->fs;
	bool used;
	u64 addr;
	int ret = rfs_node_where(fs, number, &addr, &used);

	*out = NULL;
	if (!ret && used && !rfs_walk_referenced(w, number) &&
	    (addr ? rfs_walk_free(w, addr) : !is_nowhere(w, id, number)))
		ret = rfs_node_get(fs, id, number, out);
	return ret == -ENOMEM ? ret : 0;
}

/* Marks the node as in use from now on. */
static int claim_node(struct rfs_walk *w, u32 number)
{
	struct rfs_runs *runs;
	struct rfs_buf *map, *buf = rfs_buf_find(w->fs, RFS_INDEX, number);
	bool used;
	u64 addr;
	int ret = rfs_node_where(w->fs, number, &addr, &used);

	rfs_node_reference(w->fs, number, true);
	if (!ret)
		ret = rfs_node_runs(w->fs, number, &map, &runs);
	if (!ret && runs && !(buf && buf->dirty))
		w->fs->runs++;
	if (ret || !addr)	/* runs, or dirty and never written */
		return ret;
	rfs_walk_claim(w, addr);
	return rfs_count_live(w->fs, addr, 1, NULL);
}

static struct rfs_node_id tree_id(const struct rfs_dinode *di, u32 level,
				  u64 place)
{
	u32 ino = le32_to_cpu(di->ino);
	u8 type = level ? RFS_INDEX : ino == RFS_QUOTA_INO ? RFS_QUOTA :
							     RFS_DIR;

	return (struct rfs_node_id){ type, level, ino, le32_to_cpu(di->gen),
				     place, S_ISREG(le32_to_cpu(di->mode)) &&
					    level == 1 };
}

static int walk_ptr(struct rfs_walk *w, const struct rfs_dinode *di,
		    struct rfs_ptr *slot, struct rfs_buf *holder, u64 block,
		    u64 *blocks)
{
	u8 kind = slot->kind;
	bool ok;
	int ret = ptr_ok(w, di, slot, block, &ok);

	if (ret)
		return ret;
	if (ok && slot->kind != kind) {
		rfs_walk_say(w, "inode %u: block %llu is on one device alone",
			     le32_to_cpu(di->ino), U(block));
		rfs_buf_dirty(w->fs, holder);
	}
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
	if (slot->kind == RFS_PTR_PREALLOC || slot->kind == RFS_PTR_PIECE) {
		w->fs->prealloc++;
		return 0;
	}
	if (slot->kind != RFS_PTR_ELSEWHERE)
		rfs_walk_claim(w, rfs_ptr_flash(slot));
	if (rfs_ptr_has_home(slot))
		return rfs_home_count(w->fs, slot, 1);
	return rfs_count_live(w->fs, rfs_addr(slot->addr), 1, slot);
}

/* Walks all nodes and blocks under a number. Right ones are in use, and wrong ones are left out. */
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
	/* A big file has more of these nodes than memory should have. */
	if (!ret && !node->dirty && file)
		rfs_buf_drop(w->fs, node);
	return ret;
}

/*
 * Says whether all nodes and blocks under a number are right. Nothing is changed, except a pointer
 * to both devices of which one cannot have the block.
 */
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
	w->whole_blocks += *ok;
	if (!node || !level)
		return 0;
	if (S_ISREG(le32_to_cpu(di->mode)) && level == 1) {
		for (i = 0; !ret && *ok && i < RFS_FANOUT; i++) {
			ret = ptr_ok(w, di, &node->node.ptr[i],
				     place * RFS_FANOUT + i, ok);
			w->whole_blocks += node->node.ptr[i].kind !=
					   RFS_PTR_HOLE;
		}
	} else {
		for (i = 0; !ret && *ok && i < RFS_NODE_FANOUT; i++)
			ret = tree_ok(w, di, le32_to_cpu(node->node.number[i]),
				      level - 1, place * RFS_NODE_FANOUT + i,
				      ok);
	}
	return ret;
}

/* Says whether the attributes of an inode can be read. The inode has attributes. */
static int xattrs_ok(struct rfs_walk *w, const struct rfs_dinode *di, bool *ok)
{
	struct rfs_node_id id = { RFS_XATTR, 0, le32_to_cpu(di->ino),
				  le32_to_cpu(di->gen), 0, false };
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

/* Says whether the pieces of an inode can be read. The inode has pieces. */
static int diff_ok(struct rfs_walk *w, const struct rfs_dinode *di, bool *ok)
{
	struct rfs_node_id id = { RFS_DIFF, 0, le32_to_cpu(di->ino),
				  le32_to_cpu(di->gen), 0, false };
	struct rfs_buf *buf;
	int ret = node_ok(w, &id, le32_to_cpu(di->diff), &buf);

	*ok = buf && S_ISREG(le32_to_cpu(di->mode)) &&
	      rfs_has_pieces(&w->fs->super);
	if (ret || !*ok)
		return ret;
	ret = rfs_diff_get(w->fs, di, &buf);
	*ok = !ret && rfs_diff_end(buf) <= le64_to_cpu(di->size);
	return ret == -ENOMEM ? ret : 0;
}

static int walk_diff(struct rfs_walk *w, struct rfs_dinode *di,
		     struct rfs_buf *ibuf, u64 *blocks)
{
	bool ok;
	int ret;

	if (!di->diff)
		return 0;
	ret = diff_ok(w, di, &ok);
	if (ret)
		return ret;
	if (ok) {
		++*blocks;
		return claim_node(w, le32_to_cpu(di->diff));
	}
	rfs_walk_lose(w, "inode %u: its pieces are damaged",
		      le32_to_cpu(di->ino));
	di->diff = 0;
	rfs_buf_dirty(w->fs, ibuf);
	return 0;
}

int rfs_walk_whole(struct rfs_walk *w, struct rfs_dinode *di, bool *ok)
{
	bool direct = S_ISREG(le32_to_cpu(di->mode)) && !di->height;
	u32 i, n = rfs_root_slots(di);
	int ret = 0;

	*ok = di->height <= RFS_HEIGHT_MAX;
	w->whole_blocks = !!di->xattr + !!di->diff;
	if (*ok && di->xattr)
		ret = xattrs_ok(w, di, ok);
	if (!ret && *ok && di->diff)
		ret = diff_ok(w, di, ok);
	for (i = 0; !ret && *ok && i < n; i++) {
		ret = direct ? ptr_ok(w, di, &di->ptr[i], i, ok) :
		      tree_ok(w, di, le32_to_cpu(di->node[i]), di->height, i,
			      ok);
		w->whole_blocks += direct && di->ptr[i].kind != RFS_PTR_HOLE;
	}
	return ret;
}

int rfs_walk_blocks(struct rfs_walk *w, struct rfs_dinode *di,
		    struct rfs_buf *buf, u64 *blocks)
{
	bool direct = S_ISREG(le32_to_cpu(di->mode)) && !di->height;
	u32 i, n = rfs_root_slots(di);
	int ret = 0;

	*blocks = 0;
	for (i = 0; !ret && i < n; i++)
		ret = direct ? walk_ptr(w, di, &di->ptr[i], buf, i, blocks) :
		      walk_tree(w, di, &di->node[i], buf, di->height, i,
				blocks);
	if (!ret)
		ret = walk_xattrs(w, di, buf, blocks);
	return ret ? ret : walk_diff(w, di, buf, blocks);
}
