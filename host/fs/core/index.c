// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a file's blocks are: a radix tree of nodes with 252 pointers each, or,
 * of a short file, pointers in its inode.
 */
#include "rfs.h"

static u64 span(u32 level)
{
	u64 blocks = 1;

	while (level--)
		blocks *= RFS_FANOUT;
	return blocks;
}

static bool in_use(const struct rfs_ptr *ptr)
{
	return rfs_addr(ptr->addr) || ptr->flags & RFS_PTR_RESERVED;
}

/* Blocks that there are pointers to without one level more */
static u64 reach(const struct rfs_fs *fs, const struct rfs_dinode *di)
{
	return di->height ? span(di->height) : rfs_tops(fs, di);
}

/* Will a node be made of what the inode points to if the tree grows? */
static bool has_top(const struct rfs_fs *fs, struct rfs_dinode *di)
{
	u32 i, n = rfs_tops(fs, di);

	for (i = 0; !di->height && i < n; i++)
		if (in_use(rfs_top(di, i)))
			return true;
	return di->height;
}

/* One level more: what the inode points to is the first below it. */
static int grow(struct rfs_fs *fs, struct rfs_dinode *di, struct rfs_buf *ibuf)
{
	u32 ino = le32_to_cpu(di->ino);
	struct rfs_buf *buf;
	u32 i, n = rfs_tops(fs, di);
	u8 level = di->height + 1;
	int ret;

	if (level > RFS_HEIGHT_MAX)
		return -EFBIG;
	if (has_top(fs, di)) {
		ret = rfs_buf_new(fs, RFS_INDEX, ino, le32_to_cpu(di->gen),
				  RFS_INDEX_OFF(level, 0), &buf);
		if (ret)
			return ret;
		buf->head.level = level;
		for (i = 0; i < n; i++) {
			buf->node.ptr[i] = *rfs_top(di, i);
			memset(rfs_top(di, i), 0, sizeof(di->root));
		}
		/* it is found from now on, whatever comes */
		di->height = level;
		rfs_buf_dirty(fs, ibuf);
		return rfs_blocks_add(fs, di, 1);
	}
	di->height = level;
	rfs_buf_dirty(fs, ibuf);
	return 0;
}

/* The node that a slot points to, in memory; NULL: there is none. */
static int node_get(struct rfs_fs *fs, struct rfs_dinode *di,
		    struct rfs_buf *ibuf, u32 level, u64 nr,
		    const struct rfs_ptr *slot, bool create,
		    struct rfs_buf **out)
{
	u32 ino = le32_to_cpu(di->ino);
	u64 off = RFS_INDEX_OFF(level, nr);
	int ret;

	*out = rfs_buf_find(fs, RFS_INDEX, ino, off);
	if (*out)
		return 0;
	if (rfs_addr(slot->addr)) {
		ret = rfs_buf_read(fs, RFS_INDEX, ino, off,
				   rfs_addr(slot->addr), out);
		if (!ret && ((*out)->head.level != level ||
			     (*out)->head.gen != di->gen))
			ret = -EUCLEAN;
		return ret;
	}
	if (!create)
		return 0;
	ret = rfs_buf_new(fs, RFS_INDEX, ino, le32_to_cpu(di->gen), off, out);
	if (ret)
		return ret;
	(*out)->head.level = level;
	rfs_buf_dirty(fs, ibuf);
	return rfs_blocks_add(fs, di, 1);
}

/*
 * The slot that points to node nr of a level, or to block nr at level 0, and
 * the block it is in. *slot is NULL where there is a hole and no create.
 */
int rfs_map_slot(struct rfs_fs *fs, u32 ino, u32 level, u64 nr, bool create,
		 struct rfs_ptr **slot, struct rfs_buf **buf)
{
	struct rfs_dinode *di;
	struct rfs_buf *ibuf;
	u64 first;
	u32 at;
	int ret;

	*slot = NULL;
	if (level > RFS_HEIGHT_MAX)
		return -EUCLEAN;
	first = nr * span(level);
	if (nr > ~0ULL / span(level))
		return create ? -EFBIG : 0;
	ret = rfs_iget(fs, ino, &di, &ibuf);
	if (ret)
		return ret;
	if (di->height > RFS_HEIGHT_MAX)
		return -EUCLEAN;
	while (level > di->height || first >= reach(fs, di)) {
		if (!create)
			return 0;
		ret = grow(fs, di, ibuf);
		if (ret)
			return ret;
	}
	*slot = rfs_top(di, di->height ? 0 : first);
	*buf = ibuf;
	for (at = di->height; at > level; at--) {
		struct rfs_buf *node;

		ret = node_get(fs, di, ibuf, at, first / span(at), *slot,
			       create, &node);
		if (ret || !node) {
			*slot = NULL;
			return ret;
		}
		*slot = &node->node.ptr[first / span(at - 1) % RFS_FANOUT];
		*buf = node;
	}
	return 0;
}

int rfs_map_get(struct rfs_fs *fs, u32 ino, u64 block, struct rfs_ptr *out)
{
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	int ret = rfs_map_slot(fs, ino, 0, block, false, &slot, &buf);

	memset(out, 0, sizeof(*out));
	if (!ret && slot)
		*out = *slot;
	return ret;
}

/* Blocks from `block` on that one missing node leaves out; 0: it is there. */
static int hole_at(struct rfs_fs *fs, u32 ino, u64 block, u64 *blocks)
{
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	u32 level;
	int ret = 0;

	*blocks = 0;
	for (level = 0; level <= RFS_HEIGHT_MAX; level++) {
		ret = rfs_map_slot(fs, ino, level, block / span(level), false,
				   &slot, &buf);
		if (ret || (slot && (rfs_addr(slot->addr) ||
				     (level && rfs_buf_find(fs, RFS_INDEX, ino,
				      RFS_INDEX_OFF(level,
						    block / span(level)))))))
			break;
		*blocks = span(level) - block % span(level);
	}
	return ret;
}

#define SEEK_NODES	64	/* looked at in one call */

static bool hole(const struct rfs_ptr *ptr)
{
	return !rfs_addr(ptr->addr);
}

static bool data(const struct rfs_ptr *ptr)
{
	return rfs_addr(ptr->addr);
}

static bool nothing(const struct rfs_ptr *ptr)
{
	return !in_use(ptr);
}

/* How many from a file's block on, within the block of its pointer, are such */
static u64 pass_over(struct rfs_fs *fs, u32 ino, struct rfs_buf *buf, u64 block,
		     bool (*such)(const struct rfs_ptr *ptr))
{
	struct rfs_dinode *di = &buf->inodes.inode[ino % RFS_BLOCK_INODES];
	struct rfs_ptr *slot = buf->node.ptr;
	u32 at, i, n = RFS_FANOUT;

	if (buf->type != RFS_INDEX)
		n = rfs_tops(fs, di);
	at = block % n;
	for (i = at; i < n; i++)
		if (!such(buf->type == RFS_INDEX ? &slot[i] : rfs_top(di, i)))
			break;
	return i - at;
}

int rfs_map_seek(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool for_data,
		 u64 *out)
{
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	u32 nodes = 0;
	u64 skip;
	int ret;

	for (*out = from; *out < to; *out += skip) {
		if (nodes++ == SEEK_NODES)
			return -EAGAIN;
		ret = rfs_map_slot(fs, ino, 0, *out, false, &slot, &buf);
		if (!ret && slot)
			skip = pass_over(fs, ino, buf, *out,
					 for_data ? hole : data);
		else if (!ret && for_data)
			ret = hole_at(fs, ino, *out, &skip);
		else
			skip = 0;
		if (ret)
			return ret;
		if (!skip)
			break;
	}
	*out = min(*out, to);
	return 0;
}

static int add_reserved(struct rfs_fs *fs, int delta)
{
	if (delta < 0 && !fs->reserved)
		return -EUCLEAN;
	fs->reserved += delta;
	return 0;
}

int rfs_map_set(struct rfs_fs *fs, u32 ino, u64 block,
		const struct rfs_ptr *ptr)
{
	struct rfs_dinode *di;
	struct rfs_ptr *slot;
	struct rfs_buf *buf, *ibuf;
	bool data;
	int ret;

	ret = rfs_map_slot(fs, ino, 0, block, true, &slot, &buf);
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &ibuf);
	if (ret)
		return ret;
	data = S_ISREG(le32_to_cpu(di->mode));
	ret = rfs_live(fs, rfs_addr(ptr->addr), 1, data ? ptr : NULL);
	if (!ret && rfs_addr(slot->addr))
		ret = rfs_live(fs, rfs_addr(slot->addr), -1,
			       data ? slot : NULL);
	else if (!ret && slot->flags & RFS_PTR_RESERVED)
		ret = add_reserved(fs, -1);
	else if (!ret)
		ret = rfs_blocks_add(fs, di, 1);
	if (ret)
		return ret;
	*slot = *ptr;
	rfs_buf_dirty(fs, buf);
	rfs_buf_dirty(fs, ibuf);
	return 0;
}

struct prune {
	struct rfs_fs *fs;
	struct rfs_dinode *di;
	struct rfs_buf *ibuf;
	u64 from, to;
	u64 gone;		/* blocks */
	bool keep;
};

/* A block's pointer that is nothing any more, or a reserved hole. */
static int prune_block(struct prune *p, struct rfs_ptr *slot,
		       struct rfs_buf *holder)
{
	bool data = S_ISREG(le32_to_cpu(p->di->mode));
	bool reserved = slot->flags & RFS_PTR_RESERVED;
	int ret;

	if (!rfs_addr(slot->addr) && (!reserved || p->keep))
		return 0;
	if (rfs_addr(slot->addr))
		ret = rfs_live(p->fs, rfs_addr(slot->addr), -1,
			       data ? slot : NULL);
	else
		ret = add_reserved(p->fs, -1);
	if (ret)
		return ret;
	memset(slot, 0, sizeof(*slot));
	if (p->keep) {
		slot->flags = RFS_PTR_RESERVED;
		add_reserved(p->fs, 1);
	} else {
		p->gone++;
	}
	rfs_buf_dirty(p->fs, holder);
	return 0;
}

static int prune(struct prune *p, struct rfs_ptr *slot, struct rfs_buf *holder,
		 u32 level, u64 nr)
{
	u64 size = span(level), start = nr * size;
	struct rfs_buf *node;
	int ret;
	u32 i;

	if (start >= p->to || start + size <= p->from)
		return 0;
	if (!level)
		return prune_block(p, slot, holder);
	ret = node_get(p->fs, p->di, p->ibuf, level, nr, slot, false, &node);
	if (ret || !node)
		return ret;
	for (i = 0; !ret && i < RFS_FANOUT; i++)
		ret = prune(p, &node->node.ptr[i], node, level - 1,
			    nr * RFS_FANOUT + i);
	if (ret || p->keep || start < p->from || start + size > p->to)
		return ret;
	if (node->addr) {
		ret = rfs_live(p->fs, node->addr, -1, NULL);
		if (ret)
			return ret;
	}
	p->gone++;
	rfs_buf_drop(p->fs, node);
	memset(slot, 0, sizeof(*slot));
	rfs_buf_dirty(p->fs, holder);
	return 0;
}

int rfs_map_prune(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep)
{
	struct prune p = { .fs = fs, .from = from, .to = to, .keep = keep };
	u32 i, n;
	int ret;

	ret = rfs_iget(fs, ino, &p.di, &p.ibuf);
	if (ret)
		return ret;
	if (p.di->height > RFS_HEIGHT_MAX)
		return -EUCLEAN;
	n = rfs_tops(fs, p.di);
	for (i = 0; !ret && i < n; i++)
		ret = prune(&p, rfs_top(p.di, i), p.ibuf, p.di->height, i);
	rfs_buf_dirty(fs, p.ibuf);
	if (p.gone) {
		int err = rfs_blocks_add(fs, p.di, -(s64)p.gone);

		ret = ret ? ret : err;
	}
	if (!ret && !from && to == ~0ULL && p.di->height) {
		p.di->height = 0;
		memset(p.di->direct, 0, sizeof(p.di->direct));
	}
	return ret;
}

int rfs_map_reserve(struct rfs_fs *fs, u32 ino, u64 from, u64 to)
{
	struct rfs_buf *buf, *ibuf;
	struct rfs_dinode *di;
	struct rfs_ptr *slot;
	int ret = rfs_iget(fs, ino, &di, &ibuf);

	for (; !ret && from < to; from++) {
		ret = rfs_map_slot(fs, ino, 0, from, true, &slot, &buf);
		if (ret || rfs_addr(slot->addr) ||
		    slot->flags & RFS_PTR_RESERVED)
			continue;
		slot->flags = RFS_PTR_RESERVED;
		add_reserved(fs, 1);
		rfs_buf_dirty(fs, buf);
		rfs_buf_dirty(fs, ibuf);
		ret = rfs_blocks_add(fs, di, 1);
	}
	return ret;
}

/*
 * Where the tree has to grow, the way to the block leaves the old root at the
 * top: all below is new.
 */
int rfs_map_needs(struct rfs_fs *fs, u32 ino, u64 block, u32 *nodes)
{
	struct rfs_buf *buf, *ibuf;
	struct rfs_dinode *di;
	struct rfs_ptr *slot;
	u32 height, level;
	int ret = rfs_iget(fs, ino, &di, &ibuf);

	*nodes = 0;
	if (ret)
		return ret;
	for (height = di->height; height < RFS_HEIGHT_MAX &&
	     block >= (height ? span(height) : reach(fs, di)); height++)
		*nodes += height || has_top(fs, di);
	if (height > di->height) {
		/* a file without blocks gets its first node now */
		*nodes += *nodes ? height - 1 : height;
		return 0;
	}
	for (level = 1; !ret && level <= height; level++) {
		ret = rfs_map_slot(fs, ino, level, block / span(level), false,
				   &slot, &buf);
		if (ret || (slot && (rfs_addr(slot->addr) ||
				     rfs_buf_find(fs, RFS_INDEX, ino,
						  RFS_INDEX_OFF(level, block / span(level))))))
			break;
		++*nodes;
	}
	return ret;
}

/*
 * The way to the last block, and the leaves before: where no node above has all
 * of them, there may be some fewer.
 */
int rfs_map_needs_all(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *nodes)
{
	bool split = from / span(2) != (to - 1) / span(2), first;
	struct rfs_dinode *di;
	struct rfs_buf *ibuf;
	u32 more;
	int ret = rfs_map_needs(fs, ino, to - 1, &more);

	*nodes = more;
	if (!ret)
		ret = rfs_iget(fs, ino, &di, &ibuf);
	for (first = true; !ret && from / RFS_FANOUT < (to - 1) / RFS_FANOUT;
	     from += RFS_FANOUT - from % RFS_FANOUT, first = false) {
		ret = rfs_map_needs(fs, ino, from, &more);
		/* the first leaf of a file that had none */
		if (!di->height && from < RFS_FANOUT)
			more = !has_top(fs, di);
		*nodes += split && first ? more : !!more;
	}
	return ret;
}

/* From the first block in use on that *from is */
static int count_extent(struct rfs_fs *fs, u32 ino, u64 from, u64 to,
			struct rfs_extent *out)
{
	struct rfs_ptr ptr;
	int ret = 0;

	to = min(to, from + RFS_EXTENT_MAX);
	for (; from < to; from++, out->n++) {
		ret = rfs_map_get(fs, ino, from, &ptr);
		if (!out->n) {
			out->block = from;
			out->addr = rfs_addr(ptr.addr);
		}
		if (ret || !in_use(&ptr) || rfs_addr(ptr.addr) !=
		    (out->addr ? out->addr + out->n : 0))
			break;
	}
	return ret;
}

int rfs_map_extent(struct rfs_fs *fs, u32 ino, u64 *from, u64 to,
		   struct rfs_extent *out)
{
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	u32 nodes = 0;
	u64 skip;
	int ret;

	memset(out, 0, sizeof(*out));
	for (; *from < to; *from += skip) {
		if (nodes++ == SEEK_NODES)
			return -EAGAIN;
		ret = rfs_map_slot(fs, ino, 0, *from, false, &slot, &buf);
		if (!ret && slot)
			skip = pass_over(fs, ino, buf, *from, nothing);
		else if (!ret)
			ret = hole_at(fs, ino, *from, &skip);
		if (ret)
			return ret;
		if (!skip)
			return count_extent(fs, ino, *from, to, out);
	}
	return 0;
}
