// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leaves that are runs, where the block of the node map that says so is lost. Pages of
 * data say whose they are, and when they were written. What they do not say is what a
 * file has lost since. Where there is an older leaf, or an older block of the node map, it
 * knows what was lost before; that a leaf was runs says which of its pages go together.
 */
#include "tree/tree.h"
#include "log/log.h"
#include "tools/leaves.h"

/*
 * Each block of a leaf that is runs was written within a second of the leaf's time, which
 * moves by 1/n of that when the nth comes: by 5.1 s for all from the second on.
 */
#define SPREAD_NS	8000000000ULL

/* An array that has room for one more; NULL: there is no memory */
static void *grown(void *old, u32 used, u32 *room, size_t bytes)
{
	u32 more = *room ? 2 * *room : 256;
	void *memory;

	if (used < *room)
		return old;
	memory = rfs_alloc(more * bytes);
	if (!memory)
		return NULL;
	if (used)
		memcpy(memory, old, used * bytes);
	rfs_free(old);
	*room = more;
	return memory;
}

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

/* Does what there is of the node map say where the node with a number is? */
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

static int want_leaf(struct rfs_leaves *l, const struct rfs_dinode *di,
		     u32 number, u64 place)
{
	struct rfs_lost_leaf *leaf;

	if (is_said(l, number) || place > ~0U)
		return 0;
	leaf = grown(l->leaf, l->n, &l->room, sizeof(*leaf));
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

/* What is under a number; a node above leaves that cannot be read has none. */
static int want_tree(struct rfs_leaves *l, const struct rfs_dinode *di,
		     u32 number, u32 level, u64 place)
{
	struct rfs_node_id id = { RFS_INDEX, level, le32_to_cpu(di->ino),
				  le32_to_cpu(di->gen), place, false };
	struct rfs_buf *node;
	u32 i;
	int ret;

	if (!number)
		return 0;
	if (level == 1)
		return want_leaf(l, di, number, place);
	ret = rfs_node_get(l->fs, &id, number, &node);
	if (ret)
		return ret == -ENOMEM ? ret : 0;
	for (i = 0; !ret && i < RFS_NODE_FANOUT; i++)
		ret = want_tree(l, di, le32_to_cpu(node->node.number[i]),
				level - 1, place * RFS_NODE_FANOUT + i);
	return ret;
}

int rfs_leaves_want(struct rfs_leaves *l, const struct rfs_dinode *di)
{
	u32 i;
	int ret = 0;

	if (!S_ISREG(le32_to_cpu(di->mode)) || !di->height ||
	    di->height > RFS_HEIGHT_MAX)
		return 0;
	for (i = 0; !ret && i < RFS_TOPS; i++)
		ret = want_tree(l, di, le32_to_cpu(di->node[i]), di->height, i);
	return ret;
}

static int by_place(const void *a, const void *b)
{
	const struct rfs_lost_leaf *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	if (x->gen != y->gen)
		return x->gen < y->gen ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

void rfs_leaves_wanted(struct rfs_leaves *l)
{
	if (l->n)
		rfs_sort(l->leaf, l->n, sizeof(*l->leaf), by_place);
}

/* The first leaf of an inode with this generation, or one behind it */
static u32 first_leaf(const struct rfs_leaves *l, u32 ino, u32 gen)
{
	u32 low = 0, high = l->n, mid;

	while (low < high) {
		const struct rfs_lost_leaf *leaf =
			&l->leaf[mid = (low + high) / 2];

		if (leaf->ino < ino || (leaf->ino == ino && leaf->gen < gen))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Transactions are of one file, and reach beyond a leaf: all of its pages are noted. */
static bool is_wanted(const struct rfs_leaves *l, u32 ino, u32 gen)
{
	u32 at = first_leaf(l, ino, gen);

	return at < l->n && l->leaf[at].ino == ino && l->leaf[at].gen == gen;
}

int rfs_leaves_page(struct rfs_leaves *l, const struct rfs_oob *oob, u64 addr,
		    const void *block)
{
	struct rfs_found_page *page;

	if (oob->type != RFS_DATA || le64_to_cpu(oob->stamp) > l->last ||
	    !oob->len || le16_to_cpu(oob->len) > RFS_BLOCK_BYTES ||
	    !is_wanted(l, le32_to_cpu(oob->ino), le32_to_cpu(oob->gen)) ||
	    le32_to_cpu(oob->data_crc) != ~rfs_crc(~0U, block, RFS_BLOCK_BYTES))
		return 0;
	page = grown(l->page, l->pages, &l->page_room, sizeof(*page));
	if (!page)
		return -ENOMEM;
	l->page = page;
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

/* Copies after what they are copies of */
static int by_version(const void *a, const void *b)
{
	const struct rfs_found_page *x = a, *y = b;

	if (version_of(x) != version_of(y))
		return version_of(x) < version_of(y) ? -1 : 1;
	if (is_copy(x) != is_copy(y))
		return is_copy(x) ? 1 : -1;
	return stamp_of(x) < stamp_of(y) ? -1 : stamp_of(x) > stamp_of(y);
}

/* The newest of a block first; of copies the one that was made last */
static int by_block(const void *a, const void *b)
{
	const struct rfs_found_page *x = a, *y = b;
	const struct rfs_oob *o = &x->oob, *p = &y->oob;

	if (o->ino != p->ino)
		return le32_to_cpu(o->ino) < le32_to_cpu(p->ino) ? -1 : 1;
	if (o->gen != p->gen)
		return le32_to_cpu(o->gen) < le32_to_cpu(p->gen) ? -1 : 1;
	if (o->off != p->off)
		return le64_to_cpu(o->off) < le64_to_cpu(p->off) ? -1 : 1;
	if (version_of(x) != version_of(y))
		return version_of(x) > version_of(y) ? -1 : 1;
	return stamp_of(x) > stamp_of(y) ? -1 : stamp_of(x) < stamp_of(y);
}

/* The page after a transaction that begins at i and is there as a whole; else i */
static u32 whole_until(const struct rfs_leaves *l, u32 i)
{
	u64 first = version_of(&l->page[i]);
	bool ended = false;
	u32 n = 0, at;

	for (at = i; at < l->pages; at++) {
		const struct rfs_found_page *page = &l->page[at];
		u32 cnt = le16_to_cpu(page->oob.txn_cnt);

		/* an append that was repeated, and copies */
		if (n && version_of(page) == first + n - 1)
			continue;
		if (ended)
			break;
		if (version_of(page) != first + n)
			return i;
		/* what cleaning copied was seen, and so was all of it */
		if (!is_copy(page) &&
		    (le16_to_cpu(page->oob.txn_idx) != n || (cnt && cnt != n + 1)))
			return i;
		ended = !is_copy(page) && cnt;
		n++;
	}
	return ended ? at : i;
}

/* The first of late stamps that is higher, or their number */
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
 * Has the mount that wrote a page written a check-point after it? All of its transaction
 * was there then, but for what a volatile cache has lost.
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
 * Of transactions that are not there as a whole, a recovery may have dropped the pages, or
 * the others have been reset since.
 */
static void doubt(struct rfs_leaves *l)
{
	u32 i = 0, end;

	rfs_sort(l->page, l->pages, sizeof(*l->page), by_version);
	while (i < l->pages) {
		end = whole_until(l, i);
		if (end == i) {
			l->page[i].doubtful = !is_copy(&l->page[i]) &&
				!was_complete(l, stamp_of(&l->page[i]));
			i++;
		} else {
			i = end;
		}
	}
}

/* The newest page of a block of a file, or the one behind all that are newer */
static u32 first_page(const struct rfs_leaves *l, u32 ino, u32 gen, u64 block)
{
	struct rfs_found_page key = {
		.oob = { .ino = cpu_to_le32(ino), .gen = cpu_to_le32(gen),
			 .off = cpu_to_le64(block),
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

/* A leaf, or runs, as they were at some time */
struct older {
	struct rfs_ptr ptr[RFS_FANOUT];
	u64 since;		/* all pages before that had completed; 0: there is none */
	u64 stamp;		/* of the leaf, or of the block that says what the runs were */
	u64 others;		/* of a node of another inode, which had the number; or 0 */
};

/*
 * Nodes are written early, too, while pages are in flight that complete afterwards. All
 * that were written before a check-point's last part had completed by then.
 */
static u64 completed_by(const struct rfs_leaves *l, const struct rfs_head *head)
{
	u64 stamp = le64_to_cpu(head->stamp);
	u32 next;

	if (!(le64_to_cpu(head->addr) >> RFS_LSN_BITS & RFS_NTH_EARLY))
		return stamp;
	next = late_after(l, stamp);
	return next ? l->late[next - 1] : 1;
}

static int find_older(const struct rfs_leaves *l,
		      const struct rfs_lost_leaf *leaf, struct older *old)
{
	struct rfs_node_id id = { RFS_INDEX, 1, leaf->ino, leaf->gen,
				  leaf->place, true };
	u32 block = leaf->number / RFS_MAP_ENTRIES - l->fs->nmap_leaves;
	struct rfs_buf *buf;
	int ret;

	memset(old, 0, sizeof(*old));
	ret = rfs_node_get(l->fs, &id, leaf->number, &buf);
	if (ret == -ENOMEM)
		return ret;
	if (!ret) {
		memcpy(old->ptr, buf->node.ptr, sizeof(old->ptr));
		old->stamp = buf->run ? l->said[block].stamp :
					le64_to_cpu(buf->head.stamp);
		old->since = buf->run ? old->stamp :
					completed_by(l, &buf->head);
	}
	buf = rfs_buf_find(l->fs, RFS_INDEX, leaf->number);
	if (buf && ret)
		old->others = le64_to_cpu(buf->head.stamp);
	if (buf)
		rfs_buf_drop(l->fs, buf);
	return 0;
}

/* Pages of a leaf's blocks that count; NULL: none does */
struct choice {
	const struct rfs_found_page *page[RFS_FANOUT];
	const struct rfs_found_page *newest;
	bool changed;		/* since the older leaf, */
	bool surely;		/* not only by pages that may have been in flight then */
};

/* Were two pages written as often, and about the same time? */
static bool go_together(const struct rfs_found_page *a,
			const struct rfs_found_page *b)
{
	u64 x = le64_to_cpu(a->oob.time), y = le64_to_cpu(b->oob.time);

	return a->oob.wcount == b->oob.wcount &&
	       (x > y ? x - y : y - x) < SPREAD_NS;
}

/* A page that is in no older leaf, or was in it, counts. */
static void take(struct choice *c, u32 i, const struct rfs_found_page *page,
		 const struct older *old, bool was)
{
	c->page[i] = page;
	c->changed |= !was;
	c->surely |= !was && stamp_of(page) > old->stamp;
	if (!c->newest || version_of(page) > version_of(c->newest))
		c->newest = page;
}

/* Of a block of which there are none but doubtful pages, the newest of these counts. */
static void choose(const struct rfs_leaves *l, const struct rfs_lost_leaf *leaf,
		   const struct older *old, struct choice *c)
{
	const struct rfs_found_page *perhaps[RFS_FANOUT] = { NULL };
	u64 from = (u64)leaf->place * RFS_FANOUT;
	u32 at = first_page(l, leaf->ino, leaf->gen, from), i;
	bool sure;

	memset(c, 0, sizeof(*c));
	for (; at < l->pages; at++) {
		const struct rfs_found_page *page = &l->page[at];
		u64 block = le64_to_cpu(page->oob.off);
		bool was;

		if (le32_to_cpu(page->oob.ino) != leaf->ino ||
		    le32_to_cpu(page->oob.gen) != leaf->gen ||
		    block >= from + RFS_FANOUT ||
		    block * RFS_BLOCK_BYTES >= leaf->size)
			break;
		i = block - from;
		was = old->ptr[i].kind == RFS_PTR_BLOCK &&
		      rfs_addr(old->ptr[i].addr) == page->addr;
		if (c->page[i] || (!was && stamp_of(page) <= old->since))
			continue;
		if (was || !page->doubtful)
			take(c, i, page, old, was);
		else if (!perhaps[i])
			perhaps[i] = page;
	}
	sure = c->newest;
	/* the older leaf may be right: only who is sure changes it */
	if (sure && old->since && !c->changed)
		return;
	for (i = 0; i < RFS_FANOUT; i++)
		if (!c->page[i] && perhaps[i] &&
		    (!sure || go_together(perhaps[i], c->newest)))
			take(c, i, perhaps[i], old, false);
}

/*
 * Has the page that a pointer of an older leaf leads to been reset? Or is it unreadable?
 * Without page metadata, what is there by its summary is another one.
 */
static bool is_reset(const struct rfs_leaves *l,
		     const struct rfs_lost_leaf *leaf, u64 block, u64 addr)
{
	struct rfs_fs *fs = l->fs;
	struct rfs_oob oob;

	if (!rfs_addr_ok(fs, addr) || addr % fs->geo.zone_blocks >=
	    fs->zone[addr / fs->geo.zone_blocks].wp)
		return true;
	if (!fs->geo.oob_bytes)
		return l->there[addr / 8] & 1 << addr % 8;
	return !fs->ops->read(fs->dev, addr, l->block->bytes, &oob) &&
	       rfs_oob_ok(&oob, fs->volume) &&
	       (oob.type != RFS_DATA || le32_to_cpu(oob.ino) != leaf->ino ||
		le32_to_cpu(oob.gen) != leaf->gen ||
		le64_to_cpu(oob.off) != block);
}

/*
 * Blocks of the older leaf that are behind the end of the file, or have been reset: they
 * were cut since. Of what was cut and is still there nothing says so.
 */
static bool was_cut(const struct rfs_leaves *l,
		    const struct rfs_lost_leaf *leaf, const struct older *old,
		    const struct choice *c)
{
	u64 from = (u64)leaf->place * RFS_FANOUT;
	u32 i;

	for (i = 0; i < RFS_FANOUT; i++)
		if (old->ptr[i].kind == RFS_PTR_BLOCK && !c->page[i] &&
		    ((from + i) * RFS_BLOCK_BYTES >= leaf->size ||
		     is_reset(l, leaf, from + i, rfs_addr(old->ptr[i].addr))))
			return true;
	return false;
}

/* Pointers to the pages that go together with the newest; all have its time. */
static void fill_leaf(struct rfs_leaves *l, const struct rfs_lost_leaf *leaf,
		      const struct choice *c)
{
	u64 left, time = le64_to_cpu(c->newest->oob.time);
	u32 i;

	memset(l->block, 0, sizeof(*l->block));
	for (i = 0; i < RFS_FANOUT; i++) {
		struct rfs_ptr *ptr = &l->block->node.ptr[i];
		u64 block = (u64)leaf->place * RFS_FANOUT + i;

		if (!c->page[i] || !go_together(c->page[i], c->newest))
			continue;
		rfs_ptr_of(l->fs, &c->page[i]->oob, c->page[i]->addr, time, ptr);
		left = leaf->size - block * RFS_BLOCK_BYTES;
		if (left < le16_to_cpu(c->page[i]->oob.len))
			ptr->addr = rfs_word(c->page[i]->addr, left);
	}
}

static int note_inode(struct rfs_leaves *l, u32 ino)
{
	u32 *more = grown(l->ino, l->inos, &l->ino_room, sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->ino = more;
	more[l->inos++] = ino;
	return 0;
}

/* With a hole where a page cannot be read it is a node, which is not written yet. */
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
 * A leaf of pages, if it is not the older one. It was runs, or it would have been written
 * later: pages that may have been in flight count only if they make runs of it.
 */
static int make_leaf(struct rfs_leaves *l, const struct rfs_lost_leaf *leaf,
		     struct older *old)
{
	struct rfs_runs runs;
	struct choice c;
	bool cut, fits;
	int ret;

	if (leaf->others)
		return 0;
	ret = find_older(l, leaf, old);
	if (ret)
		return ret;
	choose(l, leaf, old, &c);
	cut = was_cut(l, leaf, old, &c);
	if (!c.newest || (!c.changed && !cut))
		return 0;
	fill_leaf(l, leaf, &c);
	fits = rfs_runs_make(l->fs, l->block, &runs);
	if (!fits && old->since && !c.surely && !cut)
		return 0;
	ret = fits ? rfs_node_adopt_runs(l->fs, leaf->number, &runs) :
		     put_node(l, leaf);
	l->made++;
	return ret ? ret : note_inode(l, leaf->ino);
}

/* A number that several leaves have, of which one is in use */
struct claim {
	u32 number, leaf;
	u64 newest;
};

/* Whose pages are the newest comes first. */
static int by_claim(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->newest > y->newest ? -1 : x->newest < y->newest;
}

/*
 * Inodes that were deleted may be there, too, and lead to numbers that were given to others
 * since. Pages of a leaf come after it has its number, at least one of them.
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
		choose(l, leaf, old, &c);
		leaf->newest = c.newest ? version_of(c.newest) : 0;
		leaf->others = old->others > leaf->newest;
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
	for (i = 0; !ret && i < l->n; i++) {
		ret = make_leaf(l, &l->leaf[i], old);
		rfs_cache_trim(l->fs, l->fs->clean_max);
	}
	rfs_free(old);
	return ret;
}

bool rfs_leaves_lacks(const struct rfs_leaves *l, u32 ino)
{
	u32 at = first_leaf(l, ino, 0);

	return at < l->n && l->leaf[at].ino == ino;
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
