// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leaves can be runs, and the block of the node map that has these can be lost. Pages of data say
 * whose they are, and when they were written. They do not say which blocks a file has lost since.
 * So a leaf is made of them only in two cases: there is no leaf, not even an older one, or pages of
 * the older one were reset, so that it is not the right one. Since the leaf was runs, pages of one
 * time and write count go together.
 */
#include "plat/array.h"
#include "tree/tree.h"
#include "log/log.h"
#include "tools/leaves.h"

/*
 * This is a rule of thumb to choose by: a leaf becomes runs if its blocks were written within a
 * second, and others that are written into it later move its time by little.
 */
#define SPREAD_NS	8000000000ULL

int rfs_leaves_init(struct rfs_leaves *l, struct rfs_fs *fs)
{
	memset(l, 0, sizeof(*l));
	l->fs = fs;
	l->block = rfs_alloc(sizeof(*l->block));
	return l->block ? 0 : -ENOMEM;
}

void rfs_leaves_exit(struct rfs_leaves *l)
{
	rfs_free(l->leaf);
	rfs_free(l->page);
	rfs_free(l->ino);
	rfs_free(l->block);
}

/* Says whether the node map, as far as it was found, has the address of the node with a number. */
static bool is_said(const struct rfs_leaves *l, u32 number)
{
	const struct rfs_fs *fs = l->fs;
	u32 block = number / RFS_MAP_ENTRIES;
	const struct rfs_said *said;

	if (block < fs->nmap_leaves || block >= fs->nmap_blocks ||
	    number % RFS_MAP_ENTRIES % RFS_LEAF_WORDS ||
	    number >= le32_to_cpu(fs->super.max_nodes))
		return true;	/* not a leaf's: nodes are written */
	said = &l->said[block - fs->nmap_leaves];
	return said->addr && !said->outdated;
}

static u32 blocks_in(const struct rfs_buf *leaf)
{
	u32 n = 0, i;

	for (i = 0; i < RFS_FANOUT; i++)
		n += leaf->node.ptr[i].kind != RFS_PTR_HOLE;
	return n;
}

static int want_leaf(struct rfs_leaves *l, const struct rfs_dinode *di,
		     u32 number, u64 place, u64 *others)
{
	struct rfs_node_id id = { RFS_INDEX, 1, le32_to_cpu(di->ino),
				  le32_to_cpu(di->gen), place, true };
	struct rfs_lost_leaf *leaf;
	struct rfs_buf *buf;
	int ret;

	if (is_said(l, number) || place > ~0U) {
		ret = rfs_node_get(l->fs, &id, number, &buf);
		if (!ret) {
			*others += blocks_in(buf);
			rfs_buf_drop(l->fs, buf);
		}
		return ret == -ENOMEM ? ret : 0;
	}
	leaf = rfs_array_grown(l->leaf, l->n, &l->room, sizeof(*leaf));
	if (!leaf)
		return -ENOMEM;
	l->leaf = leaf;
	leaf[l->n++] = (struct rfs_lost_leaf){
		.ino = le32_to_cpu(di->ino), .gen = le32_to_cpu(di->gen),
		.place = place, .number = number,
		.size = le64_to_cpu(di->size),
	};
	return 0;
}

/*
 * Goes through all nodes under a number. A node above leaves that cannot be read has nothing under
 * it.
 */
static int want_tree(struct rfs_leaves *l, const struct rfs_dinode *di,
		     u32 number, u32 level, u64 place, u64 *others)
{
	struct rfs_node_id id = { RFS_INDEX, level, le32_to_cpu(di->ino),
				  le32_to_cpu(di->gen), place, false };
	struct rfs_buf *node;
	u32 i;
	int ret;

	if (!number)
		return 0;
	++*others;
	if (level == 1)
		return want_leaf(l, di, number, place, others);
	ret = rfs_node_get(l->fs, &id, number, &node);
	if (ret)
		return ret == -ENOMEM ? ret : 0;
	for (i = 0; !ret && i < RFS_NODE_FANOUT; i++)
		ret = want_tree(l, di, le32_to_cpu(node->node.number[i]),
				level - 1, place * RFS_NODE_FANOUT + i, others);
	return ret;
}

int rfs_leaves_want(struct rfs_leaves *l, const struct rfs_dinode *di)
{
	u64 others = !!di->xattr + !!di->diff, all = le64_to_cpu(di->blocks);
	u32 before = l->n, i;
	int ret = 0;

	if (!S_ISREG(le32_to_cpu(di->mode)) || !di->height ||
	    di->height > RFS_HEIGHT_MAX)
		return 0;
	for (i = 0; !ret && i < RFS_TOPS; i++)
		ret = want_tree(l, di, le32_to_cpu(di->node[i]), di->height, i,
				&others);
	for (i = before; i < l->n; i++)
		l->leaf[i].all = all - min(all, others);
	return ret;
}

static int by_place(const void *a, const void *b)
{
	const struct rfs_lost_leaf *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

void rfs_leaves_wanted(struct rfs_leaves *l)
{
	if (l->n)
		rfs_sort(l->leaf, l->n, sizeof(*l->leaf), by_place);
}

/* Returns the first leaf of an inode, or one behind it. All of them have one generation. */
static u32 first_leaf(const struct rfs_leaves *l, u32 ino)
{
	u32 low = 0, high = l->n, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (l->leaf[mid].ino < ino)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Transactions are of one file, and reach beyond a leaf, so all of its pages are noted. */
static bool is_wanted(const struct rfs_leaves *l, u32 ino, u32 gen)
{
	u32 at = first_leaf(l, ino);

	return at < l->n && l->leaf[at].ino == ino && l->leaf[at].gen == gen;
}

int rfs_leaves_page(struct rfs_leaves *l, const struct rfs_oob *oob, u64 addr)
{
	struct rfs_found_page *page;

	if (oob->type != RFS_DATA || le64_to_cpu(oob->stamp) > l->last ||
	    !oob->len || le16_to_cpu(oob->len) > RFS_BLOCK_BYTES ||
	    !is_wanted(l, le32_to_cpu(oob->ino), le32_to_cpu(oob->gen)))
		return 0;
	page = rfs_array_grown(l->page, l->pages, &l->page_room,
			       sizeof(*page));
	if (!page)
		return -ENOMEM;
	l->page = page;
	/* A page whose content is damaged hides older ones of its block, which were not in use. */
	page[l->pages].oob = *oob;
	page[l->pages].addr = addr;
	page[l->pages++].doubtful = false;
	return 0;
}

static u64 version_of(const struct rfs_found_page *page)
{
	return le64_to_cpu(page->oob.version);
}

static u64 stamp_of(const struct rfs_found_page *page)
{
	return le64_to_cpu(page->oob.stamp);
}

static bool is_copy(const struct rfs_found_page *page)
{
	return page->oob.flags & RFS_OOB_COPY;
}

/* Sorts by version. Copies come after the pages that they are copies of. */
static int by_version(const void *a, const void *b)
{
	const struct rfs_found_page *x = a, *y = b;

	if (version_of(x) != version_of(y))
		return version_of(x) < version_of(y) ? -1 : 1;
	if (is_copy(x) != is_copy(y))
		return is_copy(x) ? 1 : -1;
	return stamp_of(x) < stamp_of(y) ? -1 : stamp_of(x) > stamp_of(y);
}

/*
 * Sorts by block. The newest page of a block comes first, and of copies the one that was made last.
 */
static int by_block(const void *a, const void *b)
{
	const struct rfs_found_page *x = a, *y = b;
	const struct rfs_oob *o = &x->oob, *p = &y->oob;

	if (o->ino != p->ino)
		return le32_to_cpu(o->ino) < le32_to_cpu(p->ino) ? -1 : 1;
	if (o->off != p->off)
		return le64_to_cpu(o->off) < le64_to_cpu(p->off) ? -1 : 1;
	if (version_of(x) != version_of(y))
		return version_of(x) > version_of(y) ? -1 : 1;
	return stamp_of(x) > stamp_of(y) ? -1 : stamp_of(x) < stamp_of(y);
}

/* Returns the index after a complete transaction that begins at i, or else i. */
static u32 whole_until(const struct rfs_leaves *l, u32 i)
{
	u64 first = version_of(&l->page[i]);
	bool ended = false;
	u32 n = 0, at;

	for (at = i; at < l->pages; at++) {
		const struct rfs_found_page *page = &l->page[at];
		u32 cnt = le16_to_cpu(page->oob.txn_cnt);

		/* This page is of an append that was repeated, or is a copy. */
		if (n && version_of(page) == first + n - 1)
			continue;
		if (ended)
			break;
		if (version_of(page) != first + n || n == RFS_TXN_MAX)
			return i;
		/*
		 * A page that cleaning copied had been in use, and so had all of its transaction.
		 */
		if (!is_copy(page) &&
		    (le16_to_cpu(page->oob.txn_idx) != n || (cnt && cnt != n + 1)))
			return i;
		ended = !is_copy(page) && cnt;
		n++;
	}
	return ended ? at : i;
}

/* Returns the first of late stamps that is higher, or their number. */
static u32 late_after(const struct rfs_leaves *l, u64 stamp)
{
	u32 low = 0, high = l->lates;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (l->late[mid] <= stamp)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Says whether the mount that wrote a page has written a check-point after it. Then all of its
 * transaction was there, except pages that a volatile cache has lost.
 */
static bool was_complete(const struct rfs_leaves *l, u64 stamp)
{
	u64 epoch = stamp >> RFS_EPOCH_SHIFT;
	u32 next;

	if (epoch == l->last >> RFS_EPOCH_SHIFT)
		return true;
	next = late_after(l, stamp);
	return !l->fs->geo.volatile_cache && next < l->lates &&
	       l->late[next] >> RFS_EPOCH_SHIFT == epoch;
}

/*
 * Marks pages of incomplete transactions as doubtful. A recovery may have dropped them, or the
 * other pages have been reset since.
 */
static void doubt(struct rfs_leaves *l)
{
	u32 i = 0, end;

	rfs_sort(l->page, l->pages, sizeof(*l->page), by_version);
	while (i < l->pages) {
		u64 version = version_of(&l->page[i]);

		end = whole_until(l, i);
		if (end > i) {
			i = end;
			continue;
		}
		for (; i < l->pages && version_of(&l->page[i]) == version; i++)
			l->page[i].doubtful = !is_copy(&l->page[i]) &&
				!was_complete(l, stamp_of(&l->page[i]));
	}
}

/* Returns the newest page of a block of a file, or the one behind all that are newer. */
static u32 first_page(const struct rfs_leaves *l, u32 ino, u64 block)
{
	struct rfs_found_page key = {
		.oob = { .ino = cpu_to_le32(ino), .off = cpu_to_le64(block),
			 .version = cpu_to_le64(~0ULL) },
	};
	u32 low = 0, high = l->pages;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (by_block(&l->page[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Returns the page of block i of a leaf at an address, or NULL if something else is there. */
static const struct rfs_found_page *page_at(const struct rfs_leaves *l,
					    const struct rfs_lost_leaf *leaf,
					    u32 i, u64 addr)
{
	u64 block = (u64)leaf->place * RFS_FANOUT + i;
	u32 at = first_page(l, leaf->ino, block);

	for (; at < l->pages; at++) {
		const struct rfs_oob *oob = &l->page[at].oob;

		if (le32_to_cpu(oob->ino) != leaf->ino ||
		    le64_to_cpu(oob->off) != block)
			break;
		if (l->page[at].addr == addr)
			return &l->page[at];
	}
	return NULL;
}

/* This is an older leaf, or older runs, as they were at some time. */
struct older {
	bool there;
	bool reset;		/* pages of it are gone */
	struct rfs_ptr ptr[RFS_FANOUT];
	u32 blocks;
	u64 stamp;		/* of the node, or of the block of the node map */
	u64 others;		/* stamp of a node of another inode, which had the number; or 0 */
};

/*
 * Says whether the zone of block i's page was reset: another page is there then, or none yet. A
 * page that cannot be read may be that page.
 */
static bool was_reset(const struct rfs_leaves *l,
		      const struct rfs_lost_leaf *leaf, u32 i,
		      const struct rfs_ptr *ptr)
{
	const struct rfs_fs *fs = l->fs;
	u64 addr = rfs_addr(ptr->addr);
	const struct rfs_zone_info *z;

	if (ptr->kind != RFS_PTR_BLOCK || !rfs_addr_ok(fs, addr) ||
	    page_at(l, leaf, i, addr))
		return false;
	z = &fs->zone[addr / fs->geo.zone_blocks];
	if (z->cond == RFS_DEV_OFFLINE)
		return false;
	return addr % fs->geo.zone_blocks >= z->wp ||
	       l->there[addr / 8] & 1 << addr % 8;
}

/* Runs do not say whose they are, but their pages do. */
static bool is_of(const struct rfs_leaves *l, const struct rfs_lost_leaf *leaf,
		  const struct rfs_buf *buf)
{
	const struct rfs_ptr *ptr = buf->node.ptr;
	u32 i;

	for (i = 0; buf->run && i < RFS_FANOUT; i++)
		if (page_at(l, leaf, i, rfs_addr(ptr[i].addr)))
			return true;
	return !buf->run;
}

static void note_older(const struct rfs_leaves *l,
		       const struct rfs_lost_leaf *leaf,
		       const struct rfs_buf *buf, struct older *old)
{
	u32 block = leaf->number / RFS_MAP_ENTRIES - l->fs->nmap_leaves, i;

	old->there = true;
	memcpy(old->ptr, buf->node.ptr, sizeof(old->ptr));
	old->blocks = blocks_in(buf);
	old->stamp = buf->run ? l->said[block].stamp :
				le64_to_cpu(buf->head.stamp);
	for (i = 0; i < RFS_FANOUT; i++)
		old->reset |= was_reset(l, leaf, i, &old->ptr[i]);
}

static int find_older(const struct rfs_leaves *l,
		      const struct rfs_lost_leaf *leaf, struct older *old)
{
	struct rfs_node_id id = { RFS_INDEX, 1, leaf->ino, leaf->gen,
				  leaf->place, true };
	struct rfs_buf *buf;
	int ret;

	memset(old, 0, sizeof(*old));
	ret = rfs_node_get(l->fs, &id, leaf->number, &buf);
	if (ret == -ENOMEM)
		return ret;
	if (!ret && is_of(l, leaf, buf))
		note_older(l, leaf, buf, old);
	buf = rfs_buf_find(l->fs, RFS_INDEX, leaf->number);
	if (buf && ret)
		old->others = le64_to_cpu(buf->head.stamp);
	if (buf)
		rfs_buf_drop(l->fs, buf);
	return 0;
}

/*
 * Says whether a page of block i was not in use any more when an older leaf was written. The page
 * that the leaf leads to, and copies of it, were written as often as the leaf says.
 */
static bool was_dead(const struct older *old, u32 i,
		     const struct rfs_found_page *page)
{
	return version_of(page) <= old->stamp &&
	       page->oob.wcount != old->ptr[i].wcount;
}

/* These are the newest page of each block of a leaf, and the newest in doubt. */
struct choice {
	const struct rfs_found_page *sure[RFS_FANOUT];
	const struct rfs_found_page *perhaps[RFS_FANOUT];
	const struct rfs_found_page *newest;	/* of all that are sure, or of the others */
};

/* Finds the pages of a leaf. old is an older leaf, which tells pages that do not count, or NULL. */
static void find_pages(const struct rfs_leaves *l,
		       const struct rfs_lost_leaf *leaf,
		       const struct older *old, struct choice *c)
{
	const struct rfs_found_page *perhaps = NULL;
	u64 from = (u64)leaf->place * RFS_FANOUT;
	u32 at = first_page(l, leaf->ino, from);

	memset(c, 0, sizeof(*c));
	for (; at < l->pages; at++) {
		const struct rfs_found_page *page = &l->page[at];
		u64 block = le64_to_cpu(page->oob.off);
		const struct rfs_found_page **of;

		if (le32_to_cpu(page->oob.ino) != leaf->ino ||
		    block >= from + RFS_FANOUT ||
		    block * RFS_BLOCK_BYTES >= leaf->size)
			break;
		if (old && was_dead(old, block - from, page))
			continue;
		of = page->doubtful ? &c->perhaps[block - from] :
				      &c->sure[block - from];
		if (*of)
			continue;
		*of = page;
		of = page->doubtful ? &perhaps : &c->newest;
		if (!*of || version_of(page) > version_of(*of))
			*of = page;
	}
	if (!c->newest) {
		c->newest = perhaps;
		memcpy(c->sure, c->perhaps, sizeof(c->sure));
		memset(c->perhaps, 0, sizeof(c->perhaps));
	}
}

static u64 time_of(const struct rfs_found_page *page)
{
	return le64_to_cpu(page->oob.time);
}

static u64 apart(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* Says whether a page was written as often as the last one of a group, and not long before it. */
static bool goes_with(const struct rfs_found_page *page,
		      const struct rfs_found_page *last)
{
	return page && page->oob.wcount == last->oob.wcount &&
	       time_of(page) <= time_of(last) &&
	       time_of(last) - time_of(page) < SPREAD_NS;
}

/*
 * Returns the page of a block that is in a group. If there is no other, it is a doubtful one, which
 * may be written later than the last of the group.
 */
static const struct rfs_found_page *
member(const struct choice *c, u32 i, const struct rfs_found_page *last)
{
	if (goes_with(c->sure[i], last))
		return c->sure[i];
	if (c->perhaps[i] && c->perhaps[i]->oob.wcount == last->oob.wcount &&
	    apart(time_of(c->perhaps[i]), time_of(last)) < SPREAD_NS)
		return c->perhaps[i];
	return NULL;
}

/* These pages go together. The group is named by the one that was written last. */
struct group {
	const struct rfs_found_page *last;
	u64 newest;		/* version */
	u32 n;
};

/* Finds the group of a page. n becomes 0 if all of it is part of a larger group. */
static void find_group(const struct choice *c,
		       const struct rfs_found_page *last, struct group *g)
{
	u64 first = time_of(last);
	u32 i;

	memset(g, 0, sizeof(*g));
	g->last = last;
	for (i = 0; i < RFS_FANOUT; i++) {
		const struct rfs_found_page *page = member(c, i, last);

		if (!page)
			continue;
		g->n++;
		g->newest = max(g->newest, version_of(page));
		first = min(first, time_of(page));
	}
	for (i = 0; i < RFS_FANOUT; i++)
		if (c->sure[i] && c->sure[i]->oob.wcount == last->oob.wcount &&
		    time_of(c->sure[i]) > time_of(last) &&
		    time_of(c->sure[i]) - first < SPREAD_NS)
			g->n = 0;
}

/*
 * Says whether group a is better than b. If the number of blocks that the leaf should have is
 * known, the closer one is better. Otherwise it is the larger one.
 */
static bool is_better(const struct rfs_lost_leaf *leaf, const struct group *a,
		      const struct group *b)
{
	if (!a->n || !b->n)
		return a->n;
	if (leaf->known &&
	    apart(a->n, leaf->blocks) != apart(b->n, leaf->blocks))
		return apart(a->n, leaf->blocks) < apart(b->n, leaf->blocks);
	if (!leaf->known && a->n != b->n)
		return a->n > b->n;
	return a->newest > b->newest;
}

static const struct rfs_found_page *
best_group(const struct rfs_lost_leaf *leaf, const struct choice *c)
{
	struct group best = { 0 }, g;
	u32 i;

	for (i = 0; i < RFS_FANOUT; i++) {
		if (!c->sure[i])
			continue;
		find_group(c, c->sure[i], &g);
		if (is_better(leaf, &g, &best))
			best = g;
	}
	return best.last;
}

/* Makes pointers to the pages of a group. All have one time. False says that there are none. */
static bool fill_leaf(struct rfs_leaves *l, const struct rfs_lost_leaf *leaf,
		      const struct choice *c)
{
	const struct rfs_found_page *last = best_group(leaf, c);
	bool any = false;
	u64 left;
	u32 i;

	memset(l->block, 0, sizeof(*l->block));
	for (i = 0; last && i < RFS_FANOUT; i++) {
		const struct rfs_found_page *page = member(c, i, last);
		struct rfs_ptr *ptr = &l->block->node.ptr[i];
		u64 block = (u64)leaf->place * RFS_FANOUT + i;

		if (!page)
			continue;
		rfs_ptr_of(&page->oob, page->addr,
			   rfs_ticks(l->fs, time_of(last)), ptr);
		left = leaf->size - block * RFS_BLOCK_BYTES;
		if (left < le16_to_cpu(page->oob.len))
			ptr->addr = rfs_word(page->addr, left);
		any = true;
	}
	return any;
}

static int note_inode(struct rfs_leaves *l, u32 ino)
{
	u32 *more = rfs_array_grown(l->ino, l->inos, &l->ino_room,
				    sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->ino = more;
	more[l->inos++] = ino;
	return 0;
}

/* Puts the leaf as a node that is not written yet. It has a hole where a page cannot be read. */
static int put_node(struct rfs_leaves *l, const struct rfs_lost_leaf *leaf)
{
	struct rfs_buf *buf;
	int ret = rfs_node_adopt(l->fs, leaf->number, 0);

	if (!ret)
		ret = rfs_buf_new(l->fs, RFS_INDEX, leaf->ino, leaf->gen,
				  RFS_NODE_KEY(leaf->number, leaf->place), &buf);
	if (ret)
		return ret;
	buf->head.level = 1;
	memcpy(buf->node.ptr, l->block->node.ptr, sizeof(buf->node.ptr));
	return 0;
}

/*
 * Says whether the leaf that was made of pages is better than an older leaf of which pages were
 * reset. It is better if it has as many blocks as the leaf should have, or all blocks that the
 * older one has left.
 */
static bool is_better_than(const struct rfs_leaves *l,
			   const struct rfs_lost_leaf *leaf,
			   const struct older *old)
{
	const struct rfs_ptr *made = l->block->node.ptr;
	u32 i;

	if (leaf->known && blocks_in(l->block) == leaf->blocks)
		return true;
	for (i = 0; i < RFS_FANOUT; i++) {
		u64 block = (u64)leaf->place * RFS_FANOUT + i;

		if (old->ptr[i].kind != RFS_PTR_HOLE &&
		    made[i].kind == RFS_PTR_HOLE &&
		    block * RFS_BLOCK_BYTES < leaf->size &&
		    !was_reset(l, leaf, i, &old->ptr[i]))
			return false;
	}
	return true;
}

/* Makes a leaf of pages, if there is none, or no right one. old is room for an older one. */
static int make_leaf(struct rfs_leaves *l, struct rfs_lost_leaf *leaf,
		     struct older *old)
{
	struct rfs_runs runs;
	struct choice c;
	bool good = !leaf->older || leaf->reset;
	int ret;

	if (leaf->others)
		return 0;
	if (leaf->reset) {
		ret = find_older(l, leaf, old);
		if (ret)
			return ret;
	}
	if (good) {
		find_pages(l, leaf, leaf->reset ? old : NULL, &c);
		good = fill_leaf(l, leaf, &c) &&
		       (!leaf->reset || is_better_than(l, leaf, old));
	}
	if (!good)
		return leaf->outdated ? note_inode(l, leaf->ino) : 0;
	ret = rfs_runs_make(l->fs, l->block, &runs) ?
	      rfs_node_adopt_runs(l->fs, leaf->number, &runs) :
	      put_node(l, leaf);
	leaf->made = true;
	l->made++;
	return ret ? ret : note_inode(l, leaf->ino);
}

/*
 * Says whether there are pages that an older leaf does not lead to. They may be newer, or punched.
 */
static bool is_outdated(const struct older *old, const struct choice *c)
{
	u32 i;

	for (i = 0; i < RFS_FANOUT; i++)
		if (c->sure[i] &&
		    rfs_addr(old->ptr[i].addr) != c->sure[i]->addr)
			return true;
	return false;
}

/* Several leaves have this number, and one of them is in use. */
struct claim {
	u32 number, leaf;
	u64 newest;
};

/* Sorts claims by number. The leaf with the newest pages comes first. */
static int by_claim(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->newest > y->newest ? -1 : x->newest < y->newest;
}

/*
 * Inodes that were deleted may still be found, and lead to numbers that other leaves were given
 * since. At least one page of a leaf is newer than its number.
 */
static int sort_claims(struct rfs_leaves *l, struct older *old)
{
	struct claim *claim = rfs_alloc(l->n * sizeof(*claim));
	struct choice c;
	u32 i;
	int ret = claim ? 0 : -ENOMEM;

	for (i = 0; !ret && i < l->n; i++) {
		struct rfs_lost_leaf *leaf = &l->leaf[i];

		ret = find_older(l, leaf, old);
		if (ret)
			break;
		find_pages(l, leaf, NULL, &c);
		leaf->newest = c.newest ? version_of(c.newest) : 0;
		leaf->others = old->others > leaf->newest;
		leaf->older = old->there;
		leaf->reset = old->reset;
		leaf->outdated = old->reset ||
				 (old->there && is_outdated(old, &c));
		leaf->blocks = old->blocks;
		claim[i].number = leaf->number;
		claim[i].leaf = i;
		claim[i].newest = leaf->newest;
		rfs_cache_trim(l->fs, l->fs->clean_max);
	}
	if (!ret)
		rfs_sort(claim, l->n, sizeof(*claim), by_claim);
	for (i = 1; !ret && i < l->n; i++)
		if (claim[i].number == claim[i - 1].number)
			l->leaf[claim[i].leaf].others = true;
	rfs_free(claim);
	return ret;
}

/*
 * If only one leaf of an inode is missing or not the right one, its number of blocks is known: all
 * blocks of the inode without those of the other leaves.
 */
static void count_blocks(struct rfs_leaves *l)
{
	u32 i, end, lacks, which = 0;
	u64 blocks, older;

	for (i = 0; i < l->n; i = end) {
		blocks = l->leaf[i].all;
		older = 0;
		lacks = 0;
		for (end = i; end < l->n && l->leaf[end].ino == l->leaf[i].ino;
		     end++) {
			if (l->leaf[end].older && !l->leaf[end].reset) {
				older += l->leaf[end].blocks;
				continue;
			}
			which = end;
			lacks++;
		}
		if (lacks != 1 || older >= blocks)
			continue;
		l->leaf[which].blocks = blocks - older;
		l->leaf[which].known = true;
	}
}

int rfs_leaves_make(struct rfs_leaves *l)
{
	struct older *old = rfs_alloc(sizeof(*old));
	u32 i;
	int ret = old ? 0 : -ENOMEM;

	if (!ret && l->pages) {
		doubt(l);
		rfs_sort(l->page, l->pages, sizeof(*l->page), by_block);
	}
	if (!ret)
		ret = sort_claims(l, old);
	if (!ret)
		count_blocks(l);
	for (i = 0; !ret && i < l->n; i++) {
		ret = make_leaf(l, &l->leaf[i], old);
		rfs_cache_trim(l->fs, l->fs->clean_max);
	}
	rfs_free(old);
	return ret;
}

bool rfs_leaves_lacks(const struct rfs_leaves *l, u32 ino)
{
	u32 at = first_leaf(l, ino);

	return at < l->n && l->leaf[at].ino == ino;
}

bool rfs_leaves_made(const struct rfs_leaves *l, u32 ino)
{
	u32 at = first_leaf(l, ino);

	for (; at < l->n && l->leaf[at].ino == ino; at++)
		if (l->leaf[at].made)
			return true;
	return false;
}

void rfs_leaves_forget(struct rfs_leaves *l, u32 ino)
{
	u32 at = first_leaf(l, ino), i, n = 0;

	for (; at < l->n && l->leaf[at].ino == ino; at++) {
		l->made -= l->leaf[at].made;
		l->leaf[at].made = false;
	}
	for (i = 0; i < l->inos; i++)
		if (l->ino[i] != ino)
			l->ino[n++] = l->ino[i];
	l->inos = n;
}

int rfs_leaves_unlike(struct rfs_leaves *l, u32 ino)
{
	l->unlike++;
	return note_inode(l, ino);
}

static int by_number(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

void rfs_leaves_found(struct rfs_leaves *l)
{
	u32 i, n = 0;

	if (l->inos)
		rfs_sort(l->ino, l->inos, sizeof(*l->ino), by_number);
	for (i = 0; i < l->inos; i++)
		if (!n || l->ino[n - 1] != l->ino[i])
			l->ino[n++] = l->ino[i];
	l->inos = n;
}
