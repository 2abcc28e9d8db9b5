// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These functions find a file's blocks in a tree of index nodes, which name each other by number.
 * Leaves have 252 pointers to blocks; the pointers of a short file are in the inode. Inodes that
 * are no file, such as directories, have blocks that are nodes themselves: where a file's tree has
 * a pointer, theirs has a number.
 */
#include "space/space.h"
#include "home/home.h"
#include "tree/tree.h"

struct tree {
	struct rfs_fs *fs;
	struct rfs_dinode *di;
	struct rfs_buf *ibuf;
	bool file;
};

static bool rfs_is_file(const struct rfs_dinode *di)
{
	return S_ISREG(le32_to_cpu(di->mode));
}

/* Makes the tree of an inode that was found in this operation. */
static int rfs_tree_of(struct rfs_fs *fs, struct rfs_dinode *di,
		       struct rfs_buf *ibuf, struct tree *t)
{
	t->fs = fs;
	t->di = di;
	t->ibuf = ibuf;
	t->file = rfs_is_file(di);
	return di->height > RFS_HEIGHT_MAX ? -EUCLEAN : 0;
}

static int rfs_tree_get(struct rfs_fs *fs, u32 ino, struct tree *t)
{
	struct rfs_dinode *di;
	struct rfs_buf *ibuf;
	int ret = rfs_iget(fs, ino, &di, &ibuf);

	return ret ? ret : rfs_tree_of(fs, di, ibuf, t);
}

u32 rfs_root_slots(const struct rfs_dinode *di)
{
	if (S_ISLNK(le32_to_cpu(di->mode)))
		return 1;
	return rfs_is_file(di) && !di->height ? RFS_DIRECT : RFS_TOPS;
}

/* Returns the blocks of a file below a node of this level. */
static u64 rfs_span(bool file, u32 level)
{
#define ABOVE	((u64)RFS_NODE_FANOUT)
	static const u64 blocks[2][RFS_HEIGHT_MAX + 1] = {
		{ 1, ABOVE, ABOVE * ABOVE, ABOVE * ABOVE * ABOVE,
		  ABOVE * ABOVE * ABOVE * ABOVE },
		{ 1, RFS_FANOUT, RFS_FANOUT * ABOVE, RFS_FANOUT * ABOVE * ABOVE,
		  RFS_FANOUT * ABOVE * ABOVE * ABOVE },
	};

	return blocks[file][level];
#undef ABOVE
}

static bool rfs_index_in_use(const struct rfs_ptr *ptr)
{
	return ptr->kind != RFS_PTR_HOLE;
}

/* Returns the blocks that can be found with so many levels. */
static u64 rfs_index_reach(const struct tree *t, u32 height)
{
	if (t->file)
		return (height ? RFS_TOPS : RFS_DIRECT) * rfs_span(true, height);
	return S_ISLNK(le32_to_cpu(t->di->mode)) ?
	       1 : RFS_TOPS * rfs_span(false, height);
}

/* Says whether the inode leads to anything. If so, a tree that grows needs a node for it. */
static bool rfs_has_top(const struct rfs_dinode *di)
{
	static const __le32 none[RFS_TOPS];

	return memcmp(di->node, none, sizeof(none));
}

static int rfs_make_node(struct tree *t, u32 level, u64 place, u32 *number,
			 struct rfs_buf **out)
{
	struct rfs_node_id id = { RFS_INDEX, level, le32_to_cpu(t->di->ino),
				  le32_to_cpu(t->di->gen), place,
				  t->file && level == 1 };
	int ret = rfs_node_new(t->fs, &id, number, out);

	if (ret)
		return ret;
	rfs_buf_dirty(t->fs, t->ibuf);
	return rfs_blocks_add(t->fs, t->di, 1);
}

static int rfs_read_node(struct tree *t, u32 number, u32 level, u64 place,
			 struct rfs_buf **out)
{
	struct rfs_node_id id = { RFS_INDEX, level, le32_to_cpu(t->di->ino),
				  le32_to_cpu(t->di->gen), place,
				  t->file && level == 1 };

	return rfs_node_get(t->fs, &id, number, out);
}

/*
 * Adds a level: a new node takes over the numbers or pointers in the inode, which then leads to
 * this node.
 */
static int rfs_index_grow(struct tree *t)
{
	struct rfs_dinode *di = t->di;
	u8 level = di->height + 1;
	struct rfs_buf *buf;
	u32 number;
	int ret = 0;

	if (level > RFS_HEIGHT_MAX || S_ISLNK(le32_to_cpu(di->mode)))
		return -EFBIG;
	if (rfs_has_top(di)) {
		ret = rfs_make_node(t, level, 0, &number, &buf);
		if (!number)
			return ret;
		memcpy(buf->bytes + sizeof(buf->head), di->node,
		       sizeof(di->node));
		memset(di->node, 0, sizeof(di->node));
		/* The node can be found from now on, also after an error. */
		di->node[0] = cpu_to_le32(number);
	}
	di->height = level;
	rfs_buf_dirty(t->fs, t->ibuf);
	return ret;
}

/* Returns the place of a number, in the inode or in an index node above a level. */
static __le32 *rfs_number_at(struct tree *t, struct rfs_buf *holder, u64 place)
{
	return holder == t->ibuf ? &t->di->node[place] :
	       &holder->node.number[place % RFS_NODE_FANOUT];
}

/*
 * Finds the index node, or the inode, that has the number of the node of a level over a block, or
 * at level 0 the pointer or number of the block. *out is NULL if there is none, and create is not
 * set.
 */
static int rfs_find_holder(struct tree *t, u32 level, u64 block, bool create,
			   struct rfs_buf **out)
{
	struct rfs_buf *holder = t->ibuf, *node;
	u32 at;
	int ret;

	*out = NULL;
	if (block >= (t->file ? RFS_FILE_BLOCKS : 1ULL << 32))
		return create ? -EFBIG : 0;
	while (level > t->di->height || block >=
	       rfs_index_reach(t, t->di->height)) {
		if (!create)
			return 0;
		ret = rfs_index_grow(t);
		if (ret)
			return ret;
	}
	for (at = t->di->height; at > level; at--) {
		u64 place = block / rfs_span(t->file, at);
		__le32 *slot = rfs_number_at(t, holder, place);
		u32 number = le32_to_cpu(*slot);

		if (number) {
			ret = rfs_read_node(t, number, at, place, &node);
		} else if (create) {
			ret = rfs_make_node(t, at, place, &number, &node);
			if (number) {
				*slot = cpu_to_le32(number);
				rfs_buf_dirty(t->fs, holder);
			}
		} else {
			return 0;
		}
		if (ret)
			return ret;
		holder = node;
	}
	*out = holder;
	return 0;
}

static struct rfs_ptr *rfs_ptr_at(struct tree *t, struct rfs_buf *holder,
				  u64 block)
{
	return holder == t->ibuf ? &t->di->ptr[block] :
	       &holder->node.ptr[block % RFS_FANOUT];
}

static int rfs_tree_ptrs(struct tree *t, u64 block, bool create,
			 struct rfs_ptrs *out)
{
	int ret;

	out->at = NULL;
	out->buf = NULL;
	out->n = RFS_FANOUT - block % RFS_FANOUT;
	if (!t->file)
		return create ? -EUCLEAN : 0;
	ret = rfs_find_holder(t, 0, block, create, &out->buf);
	if (ret || !out->buf)
		return ret;
	out->at = rfs_ptr_at(t, out->buf, block);
	if (out->buf == t->ibuf)
		out->n = RFS_DIRECT - block;
	return 0;
}

int rfs_map_ptrs_of(struct rfs_fs *fs, struct rfs_dinode *di,
		    struct rfs_buf *ibuf, u64 block, struct rfs_ptrs *out)
{
	struct tree t;
	int ret = rfs_tree_of(fs, di, ibuf, &t);

	return ret ? ret : rfs_tree_ptrs(&t, block, false, out);
}

int rfs_map_ptrs(struct rfs_fs *fs, u32 ino, u64 block, bool create,
		 struct rfs_ptrs *out)
{
	struct tree t;
	int ret = rfs_tree_get(fs, ino, &t);

	out->at = NULL;
	out->buf = NULL;
	return ret ? ret : rfs_tree_ptrs(&t, block, create, out);
}

int rfs_map_slot(struct rfs_fs *fs, u32 ino, u64 block, bool create,
		 struct rfs_ptr **slot, struct rfs_buf **buf)
{
	struct rfs_ptrs ptrs;
	int ret = rfs_map_ptrs(fs, ino, block, create, &ptrs);

	*slot = ret ? NULL : ptrs.at;
	*buf = ptrs.buf;
	if (!*slot || rfs_ptr_known(fs, *slot))
		return ret;
	*slot = NULL;
	return -EUCLEAN;
}

int rfs_map_get(struct rfs_fs *fs, u32 ino, u64 block, struct rfs_ptr *out)
{
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	int ret = rfs_map_slot(fs, ino, block, false, &slot, &buf);

	memset(out, 0, sizeof(*out));
	if (!ret && slot)
		*out = *slot;
	return ret;
}

int rfs_block_get(struct rfs_fs *fs, u32 ino, u8 type, u32 block,
		  struct rfs_buf **out)
{
	struct rfs_buf *holder;
	struct tree t;
	u32 number;
	int ret = rfs_tree_get(fs, ino, &t);

	*out = NULL;
	if (!ret && t.file)
		ret = -EUCLEAN;
	if (!ret)
		ret = rfs_find_holder(&t, 0, block, false, &holder);
	if (ret || !holder)
		return ret;
	number = le32_to_cpu(*rfs_number_at(&t, holder, block));
	if (number) {
		struct rfs_node_id id = { type, 0, ino,
					  le32_to_cpu(t.di->gen), block, false };

		ret = rfs_node_get(fs, &id, number, out);
	}
	return ret;
}

int rfs_block_new(struct rfs_fs *fs, u32 ino, u8 type, u8 level, u32 block,
		  struct rfs_buf **out)
{
	struct rfs_buf *holder;
	struct tree t;
	u32 number;
	int ret = rfs_tree_get(fs, ino, &t);

	if (!ret && t.file)
		ret = -EUCLEAN;
	if (!ret)
		ret = rfs_find_holder(&t, 0, block, true, &holder);
	if (!ret && *rfs_number_at(&t, holder, block))
		ret = -EUCLEAN;
	if (!ret) {
		struct rfs_node_id id = { type, level, ino,
					  le32_to_cpu(t.di->gen), block, false };

		ret = rfs_node_new(fs, &id, &number, out);
	}
	if (ret)
		return ret;
	*rfs_number_at(&t, holder, block) = cpu_to_le32(number);
	rfs_buf_dirty(fs, holder);
	rfs_buf_dirty(fs, t.ibuf);
	return rfs_blocks_add(fs, t.di, 1);
}

/*
 * Returns the blocks from `block` on that one missing node leaves out, or 0 if the node is there.
 */
static int rfs_hole_at(struct tree *t, u64 block, u64 *blocks)
{
	struct rfs_buf *holder;
	u32 level;
	int ret;

	ret = rfs_find_holder(t, 0, block, false, &holder);
	for (level = 1; !ret && !holder && level <= RFS_HEIGHT_MAX; level++) {
		u64 span = rfs_span(t->file, level);

		*blocks = span - block % span;
		ret = rfs_find_holder(t, level, block, false, &holder);
	}
	return ret;
}

#define SEEK_NODES	64	/* looked at in one call */

static bool rfs_ptr_is_data(const struct rfs_ptr *ptr)
{
	return ptr->kind == RFS_PTR_BLOCK || ptr->kind >= RFS_PTR_PIECE;
}

static bool rfs_ptr_is_hole(const struct rfs_ptr *ptr)
{
	return !rfs_ptr_is_data(ptr);
}

static bool rfs_ptr_is_nothing(const struct rfs_ptr *ptr)
{
	return !rfs_index_in_use(ptr);
}

/* Returns how many pointers from this block on, within one node or the inode, satisfy such(). */
static u64 rfs_pass_ptrs(struct tree *t, struct rfs_buf *holder, u64 block,
			 bool (*such)(const struct rfs_ptr *ptr))
{
	u32 n = holder == t->ibuf ? RFS_DIRECT : RFS_FANOUT, i;
	u32 at = block % n;

	for (i = at; i < n; i++)
		if (!such(rfs_ptr_at(t, holder, block - at + i)))
			break;
	return i - at;
}

/* Does the same for an inode that is no file: it counts blocks that exist, or do not. */
static u64 rfs_pass_numbers(struct tree *t, struct rfs_buf *holder, u64 block,
			    bool there)
{
	u32 n = holder == t->ibuf ? rfs_root_slots(t->di) : RFS_NODE_FANOUT, i;
	u32 at = block % n;

	for (i = at; i < n; i++)
		if (!*rfs_number_at(t, holder, block - at + i) == there)
			break;
	return i - at;
}

int rfs_map_seek(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool for_data,
		 u64 *out)
{
	struct rfs_buf *holder;
	struct tree t;
	u32 nodes = 0;
	u64 skip;
	int ret = rfs_tree_get(fs, ino, &t);

	for (*out = from; !ret && *out < to; *out += skip) {
		if (nodes++ == SEEK_NODES)
			return -EAGAIN;
		skip = 0;
		ret = rfs_find_holder(&t, 0, *out, false, &holder);
		if (!ret && holder && t.file)
			skip = rfs_pass_ptrs(&t, holder, *out,
					     for_data ? rfs_ptr_is_hole :
					     rfs_ptr_is_data);
		else if (!ret && holder)
			skip = rfs_pass_numbers(&t, holder, *out, !for_data);
		else if (!ret && for_data)
			ret = rfs_hole_at(&t, *out, &skip);
		if (ret)
			return ret;
		if (!skip)
			break;
	}
	*out = min(*out, to);
	return ret;
}

static int rfs_add_prealloc(struct rfs_fs *fs, int delta)
{
	if (delta < 0 && !fs->prealloc)
		return -EUCLEAN;
	fs->prealloc += delta;
	return 0;
}

/* Counts the block of a pointer: it is in use now, or no longer, or has a reservation. */
static int rfs_count_ptr(struct rfs_fs *fs, const struct rfs_ptr *ptr, int delta)
{
	if (ptr->kind == RFS_PTR_BLOCK)
		return rfs_count_live(fs, rfs_addr(ptr->addr), delta, ptr);
	if (rfs_ptr_has_home(ptr))
		return rfs_home_count(fs, ptr, delta);
	return rfs_add_prealloc(fs, delta);
}

/*
 * Replaces a pointer that led home by one to a block at home or elsewhere. The old block is given
 * up first.
 */
static int rfs_set_home(struct rfs_fs *fs, struct rfs_ptr *slot,
			const struct rfs_ptr *ptr)
{
	int ret = rfs_home_count(fs, slot, -1);

	if (!ret)
		ret = rfs_count_ptr(fs, ptr, 1);
	if (!ret)
		*slot = *ptr;
	return ret;
}

/* Replaces a pointer. *filled grows if it was a hole. */
static int rfs_set_ptr(struct rfs_fs *fs, struct rfs_ptr *slot,
		       const struct rfs_ptr *ptr, u32 *filled)
{
	int ret = rfs_ptr_known(fs, slot) ? 0 : -EUCLEAN;

	if (!ret && rfs_ptr_has_home(slot))
		return rfs_set_home(fs, slot, ptr);
	if (!ret)
		ret = rfs_count_ptr(fs, ptr, 1);
	if (ret)
		return ret;
	if (slot->kind == RFS_PTR_BLOCK)
		ret = rfs_count_live(fs, rfs_addr(slot->addr), -1, slot);
	else if (rfs_index_in_use(slot))
		ret = rfs_add_prealloc(fs, -1);
	else
		++*filled;
	if (!ret)
		*slot = *ptr;
	return ret;
}

/* Sets as many pointers as one index block has of them. *n becomes their number. */
static int rfs_set_some(struct tree *t, u64 block, u32 *n,
			const struct rfs_ptr *ptr)
{
	struct rfs_fs *fs = t->fs;
	struct rfs_ptrs to;
	u32 filled = 0, i;
	int ret, error;

	ret = rfs_tree_ptrs(t, block, true, &to);
	if (ret)
		return ret;
	*n = min(*n, to.n);
	for (i = 0; !ret && i < *n; i++)
		ret = rfs_set_ptr(fs, &to.at[i], &ptr[i], &filled);
	rfs_buf_dirty(fs, to.buf);
	/* A block that only moves leaves its inode alone. */
	if (!filled)
		return ret;
	error = rfs_blocks_add(fs, t->di, filled);
	rfs_buf_dirty(fs, t->ibuf);
	return ret ? ret : error;
}

int rfs_map_set_of(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf, u64 block, u32 n,
		   const struct rfs_ptr *ptr)
{
	u32 done, some;
	struct tree t;
	int ret = rfs_tree_of(fs, di, ibuf, &t);

	for (done = 0; !ret && done < n; done += some) {
		some = n - done;
		ret = rfs_set_some(&t, block + done, &some, ptr + done);
	}
	return ret;
}

int rfs_map_set(struct rfs_fs *fs, u32 ino, u64 block, u32 n,
		const struct rfs_ptr *ptr)
{
	struct rfs_dinode *di;
	struct rfs_buf *ibuf;
	int ret = rfs_iget(fs, ino, &di, &ibuf);

	return ret ? ret : rfs_map_set_of(fs, di, ibuf, block, n, ptr);
}

struct prune {
	struct tree t;
	u64 from, to;
	u64 gone;		/* blocks */
	u32 nodes;		/* that may still be read, then -EAGAIN */
	bool keep;
};

/* Makes a hole, or a preallocated hole, of a block's pointer. */
static int rfs_prune_ptr(struct prune *p, struct rfs_ptr *slot,
			 struct rfs_buf *holder, u64 block)
{
	struct rfs_fs *fs = p->t.fs;
	int ret;

	if (block < p->from || block >= p->to || !rfs_index_in_use(slot) ||
	    (slot->kind == RFS_PTR_PREALLOC && p->keep))
		return 0;
	if (!rfs_ptr_known(fs, slot))
		return -EUCLEAN;
	ret = rfs_count_ptr(fs, slot, -1);
	if (ret)
		return ret;
	memset(slot, 0, sizeof(*slot));
	if (p->keep) {
		slot->kind = RFS_PTR_PREALLOC;
		rfs_add_prealloc(fs, 1);
	} else {
		p->gone++;
	}
	rfs_buf_dirty(fs, holder);
	return 0;
}

/* Frees the node of a number, and the number. */
static int rfs_prune_number(struct prune *p, __le32 *slot,
			    struct rfs_buf *holder)
{
	int ret = rfs_node_free(p->t.fs, le32_to_cpu(*slot));

	if (ret)
		return ret;
	*slot = 0;
	p->gone++;
	rfs_buf_dirty(p->t.fs, holder);
	return 0;
}

/* Frees the node of this level, and all nodes and blocks below it. */
static int rfs_index_prune(struct prune *p, __le32 *slot,
			   struct rfs_buf *holder, u32 level, u64 place)
{
	u64 size = rfs_span(p->t.file, level), start = place * size;
	struct rfs_buf *node;
	int ret;
	u32 i;

	if (!*slot || start >= p->to || start + size <= p->from)
		return 0;
	if (!level)
		return rfs_prune_number(p, slot, holder);
	if (!p->nodes)
		return -EAGAIN;
	ret = rfs_read_node(&p->t, le32_to_cpu(*slot), level, place, &node);
	if (ret)
		return ret;
	p->nodes--;
	p->t.fs->pruned++;
	if (p->t.file && level == 1) {
		for (i = 0; !ret && i < RFS_FANOUT; i++)
			ret = rfs_prune_ptr(p, &node->node.ptr[i], node, start +
					    i);
	} else {
		for (i = 0; !ret && i < RFS_NODE_FANOUT; i++)
			ret = rfs_index_prune(p, &node->node.number[i], node,
					      level - 1,
					      place * RFS_NODE_FANOUT + i);
	}
	if (ret || p->keep || start < p->from || start + size > p->to)
		return ret;
	return rfs_prune_number(p, slot, holder);
}

/*
 * Frees a part of a file. Also after an error, freed blocks are no longer counted, and the others
 * still exist.
 */
static int rfs_prune_some(struct rfs_fs *fs, u32 ino, u64 from, u64 to,
			  bool keep, u32 nodes)
{
	struct prune p = { .from = from, .to = to, .keep = keep,
			   .nodes = nodes };
	struct rfs_dinode *di;
	bool nowait;
	u32 i, n;
	int ret;

	ret = rfs_tree_get(fs, ino, &p.t);
	if (ret)
		return ret;
	di = p.t.di;
	n = rfs_root_slots(di);
	for (i = 0; !ret && i < n; i++) {
		if (p.t.file && !di->height)
			ret = rfs_prune_ptr(&p, &di->ptr[i], p.t.ibuf, i);
		else
			ret = rfs_index_prune(&p, &di->node[i], p.t.ibuf,
					      di->height, i);
	}
	rfs_buf_dirty(fs, p.t.ibuf);
	nowait = rfs_nowait_off(fs);
	if (p.gone) {
		int err = rfs_blocks_add(fs, di, -(s64)p.gone);

		ret = ret ? ret : err;
	}
	rfs_nowait_restore(fs, nowait);
	if (!ret && !from && to == ~0ULL)
		di->height = 0;
	return ret;
}

int rfs_map_prune(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep)
{
	return rfs_prune_some(fs, ino, from, to, keep, ~0U);
}

int rfs_map_empty(struct rfs_fs *fs, u32 ino)
{
	return rfs_prune_some(fs, ino, 0, ~0ULL, false, RFS_PRUNE_NODES);
}

/* This counts leaves, from the last one on. */
struct last_part {
	struct tree t;
	u64 from, to;		/* blocks that are looked at */
	u64 at;			/* the first block of the leaf before the last */
	u32 left;		/* leaves that are still to be looked at */
};

static int rfs_find_last_part(struct last_part *p, __le32 number, u32 level,
			      u64 place)
{
	u64 size = rfs_span(true, level), start = place * size;
	struct rfs_buf *node;
	int ret = 0;
	u32 i;

	if (!number || start >= p->to || start + size <= p->from || !p->left)
		return 0;
	ret = rfs_read_node(&p->t, le32_to_cpu(number), level, place, &node);
	if (ret)
		return ret;
	if (level == 1) {
		p->at = start;
		p->left--;
		return 0;
	}
	for (i = RFS_NODE_FANOUT; !ret && i-- > 0;)
		ret = rfs_find_last_part(p, node->node.number[i], level - 1,
					 place * RFS_NODE_FANOUT + i);
	return ret;
}

int rfs_map_last_part(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *at)
{
	struct last_part p = { .from = from, .to = to, .at = from,
			  .left = RFS_PRUNE_NODES };
	u32 i;
	int ret = rfs_tree_get(fs, ino, &p.t);

	if (!ret && p.t.file && p.t.di->height)
		for (i = RFS_TOPS; !ret && i-- > 0;)
			ret = rfs_find_last_part(&p, p.t.di->node[i],
						 p.t.di->height, i);
	*at = p.left ? from : max(from, p.at);
	return ret;
}

int rfs_map_preallocate(struct rfs_fs *fs, u32 ino, u64 from, u64 to)
{
	struct rfs_buf *buf, *ibuf;
	struct rfs_dinode *di;
	struct rfs_ptr *slot;
	int ret = rfs_iget(fs, ino, &di, &ibuf);

	for (; !ret && from < to; from++) {
		ret = rfs_map_slot(fs, ino, from, true, &slot, &buf);
		if (ret || rfs_index_in_use(slot))
			continue;
		slot->kind = RFS_PTR_PREALLOC;
		rfs_add_prealloc(fs, 1);
		rfs_buf_dirty(fs, buf);
		rfs_buf_dirty(fs, ibuf);
		ret = rfs_blocks_add(fs, di, 1);
	}
	return ret;
}

/* Notes that a block has pieces. If it has no address, room is reserved for it. */
int rfs_map_piece(struct rfs_fs *fs, struct rfs_dinode *di,
		  struct rfs_buf *ibuf, u64 block)
{
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	bool hole;
	int ret = rfs_map_slot(fs, le32_to_cpu(di->ino), block, true, &slot,
			       &buf);

	if (ret || rfs_ptr_is_data(slot))
		return ret;
	hole = !rfs_index_in_use(slot);
	slot->kind = RFS_PTR_PIECE;
	rfs_buf_dirty(fs, buf);
	if (!hole)
		return 0;
	rfs_add_prealloc(fs, 1);
	rfs_buf_dirty(fs, ibuf);
	return rfs_blocks_add(fs, di, 1);
}

/* Says whether the tree, as it is, has a node of a level over a block. */
static int rfs_has_node(struct tree *t, u32 level, u64 block, bool *has)
{
	struct rfs_buf *holder;
	int ret = rfs_find_holder(t, level, block, false, &holder);

	*has = !ret && holder &&
	       *rfs_number_at(t, holder, block / rfs_span(t->file, level));
	return ret;
}

int rfs_map_needs(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *nodes)
{
	u32 height, level;
	struct tree t;
	bool grows, has;
	int ret = rfs_tree_get(fs, ino, &t);

	*nodes = 0;
	if (ret)
		return ret;
	grows = rfs_has_top(t.di);
	for (height = t.di->height; height < RFS_HEIGHT_MAX &&
	     to > rfs_index_reach(&t, height); height++)
		*nodes += grows;
	for (level = 1; level <= height; level++) {
		u64 size = rfs_span(t.file, level), place = from / size;

		for (; !ret && place <= (to - 1) / size; place++) {
			/* This is the first node of a level that the tree grows by. */
			has = grows && !place && level > t.di->height;
			if (!has)
				ret = rfs_has_node(&t, level, place * size,
						   &has);
			*nodes += !has;
		}
	}
	return ret;
}

/* Counts the blocks of an extent. *from is its first block, which is in use. */
static int rfs_count_extent(struct rfs_fs *fs, u32 ino, u64 from, u64 to,
			    struct rfs_extent *out)
{
	struct rfs_ptr ptr;
	bool pieces, slow;
	u64 addr;
	int ret = 0;

	to = min(to, from + RFS_EXTENT_MAX);
	for (; from < to; from++, out->n++) {
		ret = rfs_map_get(fs, ino, from, &ptr);
		pieces = ptr.kind == RFS_PTR_PIECE;
		slow = ptr.kind == RFS_PTR_ELSEWHERE;
		addr = slow ? rfs_ptr_home(&ptr) : rfs_ptr_flash(&ptr);
		if (!out->n) {
			out->block = from;
			out->addr = addr;
			out->pieces = pieces;
			out->slow = slow;
		}
		if (ret || !rfs_index_in_use(&ptr) || addr !=
		    (out->addr ? out->addr + out->n : 0) ||
		    pieces != out->pieces || slow != out->slow)
			break;
	}
	return ret;
}

int rfs_map_extent(struct rfs_fs *fs, u32 ino, u64 *from, u64 to,
		   struct rfs_extent *out)
{
	struct rfs_buf *holder;
	struct tree t;
	u32 nodes = 0;
	u64 skip;
	int ret = rfs_tree_get(fs, ino, &t);

	memset(out, 0, sizeof(*out));
	if (!ret && !t.file)
		ret = -EUCLEAN;
	for (; !ret && *from < to; *from += skip) {
		if (nodes++ == SEEK_NODES)
			return -EAGAIN;
		skip = 0;
		ret = rfs_find_holder(&t, 0, *from, false, &holder);
		if (!ret && holder)
			skip = rfs_pass_ptrs(&t, holder, *from,
					     rfs_ptr_is_nothing);
		else if (!ret)
			ret = rfs_hole_at(&t, *from, &skip);
		if (ret)
			return ret;
		if (!skip)
			return rfs_count_extent(fs, ino, *from, to, out);
	}
	return ret;
}
