// SPDX-License-Identifier: GPL-2.0-or-later
#include <assert.h>
#include <stdio.h>

#include "oracle.h"
#include "tree/tree.h"
#include "tree/dir.h"
#include "tree/xattr.h"
#include "tree/quota.h"
#include "tools/tools.h"

static u64 mix(u64 x, u64 y)
{
	x ^= y * 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
	x = (x ^ x >> 29) * 0x94d049bb133111ebULL;
	return x ^ x >> 32;
}

static u64 hash_name(u32 dir, const char *name, size_t len, u32 child)
{
	u64 x = mix(dir + 1, child + 7);
	size_t i;

	for (i = 0; i < len; i++)
		x = mix(x, (u8)name[i]);
	return x;
}

static u64 hash_node(u32 node, u32 mode, u32 gid, u32 nlink, const u32 *xattr)
{
	u64 x = mix(mix(mix(node + 3, mode), gid + 11), nlink + 5);
	u32 i;

	for (i = 0; i < XATTRS; i++)
		x = mix(x, xattr[i] + i);
	return x;
}

static u64 hash_limit(u32 owner, u64 limit)
{
	return limit ? mix(owner + 17, limit) : 0;
}

const char *const oracle_xattr[XATTRS] = { "user.one", "trusted.two" };

u32 oracle_value(u32 id, u8 *value)
{
	u32 len = 4 + id % 1400, i;

	for (i = 0; i < len; i++)
		value[i] = i < 4 ? id >> 8 * i : mix(id, i);
	return len;
}

struct oracle *oracle_new(void)
{
	struct oracle *o = calloc(1, sizeof(*o));

	assert(o);
	return o;
}

void oracle_free(struct oracle *o)
{
	u32 i;

	for (i = 0; i < o->events; i++)
		free(o->event[i].moved);
	free(o->name);
	free(o->event);
	free(o->digest);
	free(o->promised);
	free(o);
}

static void *more(void *array, u32 used, u32 *room, size_t bytes)
{
	if (used < *room)
		return array;
	*room = *room ? 2 * *room : 256;
	array = realloc(array, *room * bytes);
	assert(array);
	return array;
}

void oracle_change(struct oracle *o)
{
	u64 sum = 0;
	u32 i, room = o->change_room;

	for (i = 0; i < o->names; i++)
		sum += hash_name(o->name[i].dir, o->name[i].name,
				 strlen(o->name[i].name), o->name[i].child);
	for (i = 0; i < o->nodes; i++)
		if (o->node[i].nlink)
			sum += hash_node(i, o->node[i].mode, o->node[i].gid,
					 o->node[i].nlink, o->node[i].xattr);
	for (i = 0; i < OWNERS; i++)
		sum += hash_limit(i, o->limit[i]);
	o->promised = more(o->promised, o->changes, &room,
			   sizeof(*o->promised));
	o->digest = more(o->digest, o->changes, &o->change_room,
			 sizeof(*o->digest));
	o->promised[o->changes] = NEVER;
	o->digest[o->changes++] = sum;
}

struct event *oracle_event(struct oracle *o, enum event_type type, u32 node)
{
	struct event *e;

	o->event = more(o->event, o->events, &o->event_room,
			sizeof(*o->event));
	e = &o->event[o->events++];
	memset(e, 0, sizeof(*e));
	e->type = type;
	e->node = node;
	if (o->node[node].last)
		o->event[o->node[node].last - 1].next = o->events;
	else
		o->node[node].first = o->events;
	o->node[node].last = o->events;
	e->change = o->changes;
	e->promised = NEVER;
	return e;
}

void oracle_promise(struct oracle *o, u32 ops, u32 node, u32 changes)
{
	u32 i;

	for (i = 0; i < changes; i++)
		o->promised[i] = min(o->promised[i], ops);
	for (i = 0; i < o->events; i++)
		if (node == NEVER || o->event[i].node == node)
			o->event[i].promised = min(o->event[i].promised, ops);
}

void oracle_add_name(struct oracle *o, u32 dir, const char *name, u32 child)
{
	struct name *n;

	o->name = more(o->name, o->names, &o->name_room, sizeof(*o->name));
	n = &o->name[o->names++];
	n->dir = dir;
	n->child = child;
	strcpy(n->name, name);
}

struct name *oracle_find(struct oracle *o, u32 dir, const char *name)
{
	u32 i;

	for (i = 0; i < o->names; i++)
		if (o->name[i].dir == dir && !strcmp(o->name[i].name, name))
			return &o->name[i];
	return NULL;
}

void oracle_del_name(struct oracle *o, struct name *name)
{
	*name = o->name[--o->names];
}

void oracle_pattern(u32 id, u64 block, u8 *data)
{
	u64 x = mix(id, block + 1), i, word;

	/* each word by itself: a chain of products takes four times as long */
	for (i = 0; i < RFS_BLOCK_BYTES; i += 8) {
		word = (x + i) * 6364136223846793005ULL | 1;
		memcpy(data + i, &word, 8);
	}
	memcpy(data, &id, 4);
	word = 0x5a5a5a5a ^ id;
	memcpy(data + 4, &word, 4);
}

void oracle_bytes(u32 id, u32 at, u32 bytes, u8 *data)
{
	u32 i;

	for (i = 0; i < bytes; i++)
		data[i] = mix(id, at + i) % 255 + 1;
}

static char why[300];

#define NO(...)							\
	do {							\
		snprintf(why, sizeof(why), __VA_ARGS__);	\
		return why;					\
	} while (0)

struct found {			/* a file of the volume */
	u32 node, ino;
	u64 size;
};

struct tree {
	struct oracle *o;
	struct rfs_fs *fs;
	u64 digest;
	struct found file[NODES_MAX];
	u32 files;
	u8 seen[NODES_MAX];
};

/* The ids of an inode's extended attributes, which are whole and no others. */
static const char *xattrs(struct rfs_fs *fs, u32 ino, u32 *id)
{
	static u8 want[RFS_BLOCK_BYTES], got[RFS_BLOCK_BYTES];
	const struct rfs_xattr *x;
	u32 i, at = 0, listed = 0, found = 0;
	int len;

	for (i = 0; i < XATTRS; i++) {
		id[i] = 0;
		len = rfs_xattr_get(fs, ino, oracle_xattr[i], got, sizeof(got));
		if (len == -ENODATA)
			continue;
		if (len < 4)
			NO("inode %u: attribute %u: %d", ino, i, len);
		memcpy(&id[i], got, 4);
		if ((u32)len != oracle_value(id[i], want) ||
		    memcmp(got, want, len))
			NO("inode %u: attribute %u is not whole", ino, i);
		found++;
	}
	while (!rfs_xattr_next(fs, ino, &at, &x) && x)
		listed++;
	if (listed != found)
		NO("inode %u: %u attributes, not %u", ino, listed, found);
	return NULL;
}

static const char *walk(struct tree *t, u32 dir, u32 node, u32 depth)
{
	struct rfs_entry entry = { 0 };
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	const char *fault;
	u32 child, id[XATTRS];

	if (depth > 20)
		NO("directories in a circle");
	for (;;) {
		int ret = rfs_dir_next(t->fs, dir, entry.pos, &entry);

		if (ret == -ENOENT)
			return NULL;
		if (ret)
			NO("directory %u: %d", node, ret);
		/* what was written after a recovery is not the oracle's */
		if (!node && entry.len == 7 && !memcmp(entry.name, "after-", 6))
			continue;
		ret = rfs_iget(t->fs, entry.ino, &di, &buf);
		if (ret)
			NO("inode %u: %d", entry.ino, ret);
		child = le32_to_cpu(di->uid);
		if (child >= t->o->nodes)
			NO("inode %u belongs to nobody", entry.ino);
		t->digest += hash_name(node, (char *)entry.name, entry.len,
				       child);
		if (t->seen[child]++)
			continue;
		fault = xattrs(t->fs, entry.ino, id);
		if (fault)
			return fault;
		t->digest += hash_node(child, le32_to_cpu(di->mode),
				       le32_to_cpu(di->gid),
				       le32_to_cpu(di->nlink), id);
		if (S_ISDIR(le32_to_cpu(di->mode))) {
			fault = walk(t, entry.ino, child, depth + 1);
			if (fault)
				return fault;
			continue;
		}
		t->file[t->files].node = child;
		t->file[t->files].ino = entry.ino;
		t->file[t->files++].size = le64_to_cpu(di->size);
	}
}

#define FILE_BLOCKS	64	/* blocks of a file that are looked at */

struct content {		/* of one file, as it was cut */
	u32 events;
	u32 changes;		/* that the volume has */
	u32 ops;
	u32 seen[FILE_BLOCKS];	/* event + 1 of each block, 0: a hole */
	/* the same, 0 too if another event would look alike */
	u32 sure[FILE_BLOCKS];
};

/* The events of a node that there were, in their order; w is their number */
#define each_event(o, c, e, w, from)					\
	for ((w) = (from); (w) && (w) <= (c)->events &&			\
	     ((e) = &(o)->event[(w) - 1]); (w) = (e)->next)

static bool is_write(const struct event *e)
{
	return e->type == EV_WRITE || e->type == EV_MOVE;
}

/* Did a change that the volume has remove block b of event w? Or cut it? */
static bool removed(const struct oracle *o, const struct content *c, u32 w,
		    u64 b, u32 *len)
{
	const struct event *e;
	u32 i;

	each_event(o, c, e, i, o->event[w - 1].next) {
		if (is_write(e) || e->type == EV_BYTES ||
		    e->type == EV_PREALLOC || e->change >= c->changes)
			continue;
		if (e->type == EV_PUNCH && b >= e->block &&
		    b < e->block + e->n)
			return true;
		if (e->type == EV_SIZE && b * RFS_BLOCK_BYTES >= e->size)
			return true;
		if (e->type == EV_SIZE &&
		    (b + 1) * RFS_BLOCK_BYTES > e->size)
			*len = min_t(u64, *len, e->size % RFS_BLOCK_BYTES);
	}
	return false;
}

static u32 block_len(const struct event *e, u64 b)
{
	return b + 1 < e->block + e->n ? RFS_BLOCK_BYTES : e->len;
}

static bool covers(const struct event *e, u32 node, u64 b)
{
	return e->type == EV_WRITE && e->node == node && b >= e->block &&
	       b < e->block + e->n;
}

/* Does an event write all of a block, at once? */
static bool is_page(const struct event *e, u64 b)
{
	if (e->type == EV_BYTES)
		return e->page && e->block == b;
	return is_write(e) && b >= e->block && b < e->block + e->n;
}

/* What a change of a file's size, or a punch, leaves of a block */
static void clear(const struct event *e, u64 b, u8 *data)
{
	u64 start = b * RFS_BLOCK_BYTES, cut = 0;

	if (e->type == EV_PUNCH && (b < e->block || b >= e->block + e->n))
		return;
	if (e->type == EV_SIZE && e->size > start)
		cut = min_t(u64, e->size - start, RFS_BLOCK_BYTES);
	memset(data + cut, 0, RFS_BLOCK_BYTES - cut);
}

static void put_bytes(u32 id, const struct event *e, u8 *data)
{
	oracle_bytes(id, e->at, e->bytes, data + e->at);
}

/* A block as it was after event `last`, in the run */
static void block_then(const struct oracle *o, u32 node, u64 b, u32 last,
		       u8 *data)
{
	const struct event *e;
	u32 i;

	memset(data, 0, RFS_BLOCK_BYTES);
	for (i = o->node[node].first; i && i <= last; i = e->next) {
		e = &o->event[i - 1];
		if (e->type == EV_SIZE || e->type == EV_PUNCH) {
			clear(e, b, data);
		} else if (e->type == EV_BYTES && e->block == b) {
			put_bytes(i, e, data);
		} else if (is_page(e, b)) {
			if (e->type == EV_MOVE)
				memcpy(data, e->moved + (b - e->block) * RFS_BLOCK_BYTES,
				       RFS_BLOCK_BYTES);
			else
				oracle_pattern(i, b, data);
			memset(data + block_len(e, b), 0, RFS_BLOCK_BYTES -
			       block_len(e, b));
		}
	}
}

void oracle_block(const struct oracle *o, u32 node, u64 block, u8 *data)
{
	block_then(o, node, block, ~0U, data);
}

/*
 * A block of which the volume has page event w, and of the bytes logged after it
 * those that it must have, and `some` of those that it may have; *left: how many
 * of these are left.
 */
static void block_cut(struct oracle *o, const struct content *c, u32 node,
		      u64 b, u32 w, u32 some, u32 *left, u8 *data)
{
	const struct event *e;
	u32 i;

	*left = 0;
	memset(data, 0, RFS_BLOCK_BYTES);
	if (w)
		block_then(o, node, b, w, data);
	each_event(o, c, e, i, o->node[node].first) {
		if ((e->type == EV_SIZE || e->type == EV_PUNCH) &&
		    e->change < c->changes && i > w)
			clear(e, b, data);
		if (e->type != EV_BYTES || e->page || e->block != b || i <= w ||
		    e->change > c->changes)
			continue;
		/* the log is there up to somewhere after the last change */
		if (e->change == c->changes && e->promised > c->ops) {
			if (!some) {
				++*left;
				continue;
			}
			some--;
		}
		put_bytes(i, e, data);
	}
}

/* Is it what is left with event w? Any number of bytes may be logged after it. */
static bool block_is(struct oracle *o, const struct content *c, u32 node,
		     u64 b, u32 w, const u8 *data)
{
	static u8 want[RFS_BLOCK_BYTES];
	u32 some = 0, left;

	do {
		block_cut(o, c, node, b, w, some++, &left, want);
		if (!memcmp(data, want, sizeof(want)))
			return true;
	} while (left);
	return false;
}

/* Was a block's content, or some of it, ever another than that of a write to it? */
static bool has_bytes(struct oracle *o, const struct content *c, u32 node,
		      u64 b)
{
	const struct event *e;
	u32 i;

	each_event(o, c, e, i, o->node[node].first)
		if ((e->type == EV_BYTES && e->block == b) ||
		    (e->type == EV_MOVE && is_page(e, b)))
			return true;
	return false;
}

/* As identify(), of a block that has_bytes() */
static const char *explain(struct oracle *o, struct content *c, u32 node,
			   u64 b, const u8 *data)
{
	u32 page[1024], pages = 0, least = 0, i, len = 0;
	const struct event *e;
	bool found = false;

	each_event(o, c, e, i, o->node[node].first) {
		if (!is_page(e, b))
			continue;
		assert(pages < sizeof(page) / sizeof(*page));
		page[pages++] = i;
		if (e->promised <= c->ops)
			least = i;
	}
	for (i = pages + 1; i-- > 0;) {
		u32 w = i ? page[i - 1] : 0;

		if (w < least)
			break;
		if (!block_is(o, c, node, b, w, data))
			continue;
		/* what a later page of the block has kept does not say so */
		c->sure[b] = !found && w && !removed(o, c, w, b, &len) ? w : 0;
		if (!found)
			c->seen[b] = w;
		found = true;
	}
	if (!found)
		NO("node %u block %llu: not what its writes and bytes make of it",
		   node, (unsigned long long)b);
	return NULL;
}

/* Whose content is it? Fills in seen. */
static const char *identify(struct oracle *o, struct content *c, u32 node,
			    u64 b, const u8 *data)
{
	static u8 want[RFS_BLOCK_BYTES];
	u32 id, len;
	u64 head;

	if (has_bytes(o, c, node, b))
		return explain(o, c, node, b, data);
	memcpy(&head, data, 8);
	memcpy(&id, data, 4);
	if (!head) {
		memset(want, 0, sizeof(want));
		c->seen[b] = 0;
		return memcmp(data, want, sizeof(want)) ? "bytes in a hole" :
		       NULL;
	}
	if (id - 1 >= c->events || !covers(&o->event[id - 1], node, b))
		NO("node %u block %llu: content of write %u", node,
		   (unsigned long long)b, id);
	len = block_len(&o->event[id - 1], b);
	if (removed(o, c, id, b, &len))
		NO("node %u block %llu: write %u was removed", node,
		   (unsigned long long)b, id);
	oracle_pattern(id, b, want);
	memset(want + len, 0, RFS_BLOCK_BYTES - len);
	if (memcmp(data, want, RFS_BLOCK_BYTES))
		NO("node %u block %llu: not quite write %u", node,
		   (unsigned long long)b, id);
	c->seen[b] = id;
	c->sure[b] = id;
	return NULL;
}

static const char *check_size(struct oracle *o, const struct content *c,
			      u32 node, u64 size)
{
	u64 least = 0, most = 0, end;
	const struct event *e;
	u32 i;

	each_event(o, c, e, i, o->node[node].first) {
		if (e->type == EV_SIZE && e->change < c->changes) {
			least = e->size;
			most = e->size;
		}
		if (e->type == EV_BYTES) {
			end = e->block * RFS_BLOCK_BYTES + e->at + e->bytes;
			most = max(most, end);
			/* the log has it, before the last change that it has */
			if (e->promised <= c->ops ||
			    (!e->page && e->change < c->changes))
				least = max(least, end);
			continue;
		}
		if (!is_write(e))
			continue;
		end = (e->block + e->n - 1) * RFS_BLOCK_BYTES + e->len;
		most = max(most, end);
		if (e->promised <= c->ops)
			least = max(least, end);
	}
	if (size < least || size > most)
		NO("node %u: size %llu, not %llu to %llu", node,
		   (unsigned long long)size, (unsigned long long)least,
		   (unsigned long long)most);
	return NULL;
}

static const char *check_promises(struct oracle *o, struct content *c, u32 node)
{
	const struct event *e;
	u32 i, len;
	u64 b;

	each_event(o, c, e, i, o->node[node].first) {
		if (!is_write(e))
			continue;
		for (b = e->block; b < e->block + e->n; b++) {
			len = RFS_BLOCK_BYTES;
			if (removed(o, c, i, b, &len))
				continue;
			if (e->promised <= c->ops && c->seen[b] < i)
				NO("node %u block %llu: write %u was promised, %u is there",
				   node, (unsigned long long)b, i, c->seen[b]);
		}
	}
	return NULL;
}

/* Each write that is seen is whole, and the truncates before it were made. */
static const char *check_whole(struct oracle *o, struct content *c, u32 node,
			       u64 size)
{
	u64 b, other;
	u32 i, len;

	for (b = 0; b < FILE_BLOCKS; b++) {
		const struct event *e, *before;

		if (!c->sure[b])
			continue;
		e = &o->event[c->sure[b] - 1];
		if (b * RFS_BLOCK_BYTES >= size)
			NO("node %u block %llu: beyond its size", node,
			   (unsigned long long)b);
		each_event(o, c, before, i, o->node[node].first) {
			if (i >= c->sure[b])
				break;
			if ((before->type == EV_SIZE ||
			     before->type == EV_PUNCH) &&
			    before->change >= c->changes)
				NO("node %u: write %u without truncate %u",
				   node, c->sure[b], i);
		}
		for (other = e->block; other < e->block + e->n; other++) {
			len = RFS_BLOCK_BYTES;
			if (!removed(o, c, c->sure[b], other, &len) &&
			    c->seen[other] < c->sure[b])
				NO("node %u: of write %u block %llu is there, %llu is not",
				   node, c->sure[b], (unsigned long long)b,
				   (unsigned long long)other);
		}
	}
	return NULL;
}

/* Holes are reserved that a change of those that were made has reserved. */
static const char *check_reserved(struct oracle *o, struct rfs_fs *fs,
				  const struct found *f, struct content *c)
{
	bool reserved[FILE_BLOCKS] = { false };
	const struct event *e;
	struct rfs_ptr ptr;
	u32 i, b;

	each_event(o, c, e, i, o->node[f->node].first) {
		u64 from = e->block, to = e->block + e->n;

		if (is_write(e) || e->type == EV_BYTES || e->keep ||
		    e->change >= c->changes)
			continue;
		if (e->type == EV_SIZE) {
			from = DIV_ROUND_UP(e->size, RFS_BLOCK_BYTES);
			to = FILE_BLOCKS;
		}
		for (b = from; b < to && b < FILE_BLOCKS; b++)
			reserved[b] = e->type == EV_PREALLOC;
	}
	for (b = 0; b < FILE_BLOCKS; b++) {
		if (rfs_map_get(fs, f->ino, b, &ptr))
			NO("node %u block %u: no pointer", f->node, b);
		if (!rfs_addr(ptr.addr) && ptr.kind != RFS_PTR_PIECE &&
		    reserved[b] != (ptr.kind == RFS_PTR_PREALLOC))
			NO("node %u block %u: %sreserved", f->node, b,
			   reserved[b] ? "not " : "");
	}
	return NULL;
}

static const char *check_file(struct oracle *o, struct rfs_fs *fs,
			      const struct found *f, struct content *c)
{
	static u8 data[RFS_BLOCK_BYTES];
	const char *fault;
	u64 b;

	memset(c->seen, 0, sizeof(c->seen));
	memset(c->sure, 0, sizeof(c->sure));
	for (b = 0; b < FILE_BLOCKS && b * RFS_BLOCK_BYTES < f->size; b++) {
		int ret = rfs_read(fs, f->ino, b, data);

		if (ret)
			NO("node %u block %llu: read fails with %d", f->node,
			   (unsigned long long)b, ret);
		fault = identify(o, c, f->node, b, data);
		if (fault)
			return fault;
	}
	fault = check_reserved(o, fs, f, c);
	if (fault)
		return fault;
	fault = check_size(o, c, f->node, f->size);
	if (!fault)
		fault = check_promises(o, c, f->node);
	return fault ? fault : check_whole(o, c, f->node, f->size);
}

/* Of whatever write of a block, as a whole or cut; bytes of their own are not looked at. */
static const char *check_loosely(struct oracle *o, struct rfs_fs *fs,
				 const struct found *f, const struct content *c)
{
	static u8 data[RFS_BLOCK_BYTES], want[RFS_BLOCK_BYTES];
	const char *fault = check_size(o, c, f->node, f->size);
	u32 id, len;
	u64 b;

	if (fault)
		return fault;

	for (b = 0; b < FILE_BLOCKS && b * RFS_BLOCK_BYTES < f->size; b++) {
		if (rfs_read(fs, f->ino, b, data))
			NO("node %u block %llu: not readable", f->node,
			   (unsigned long long)b);
		for (len = RFS_BLOCK_BYTES; len && !data[len - 1];)
			len--;
		if (!len || has_bytes(o, c, f->node, b))
			continue;
		memcpy(&id, data, 4);
		if (id - 1 >= c->events || !covers(&o->event[id - 1], f->node, b))
			NO("node %u block %llu: content of write %u", f->node,
			   (unsigned long long)b, id);
		oracle_pattern(id, b, want);
		if (memcmp(data, want, len))
			NO("node %u block %llu: not what write %u began with",
			   f->node, (unsigned long long)b, id);
	}
	return NULL;
}

static bool is_made(const struct oracle *o, u32 ino)
{
	u32 i;

	for (i = 0; i < o->made; i++)
		if (o->made_of[i] == ino)
			return true;
	return false;
}

const char *oracle_check(struct oracle *o, struct rfs_fs *fs, u32 ops,
			 u32 changes, u32 events)
{
	static struct tree t;
	struct content c = { .events = events, .ops = ops };
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	const char *fault;
	u32 least = 0, i, f, loose, id[XATTRS];
	struct rfs_quota quota;
	u64 rsv, unlike;

	memset(&t, 0, sizeof(t));
	t.o = o;
	t.fs = fs;
	if (rfs_iget(fs, RFS_ROOT_INO, &di, &buf))
		NO("no root");
	fault = xattrs(fs, RFS_ROOT_INO, id);
	if (fault)
		return fault;
	t.digest = hash_node(0, le32_to_cpu(di->mode), le32_to_cpu(di->gid),
			     le32_to_cpu(di->nlink), id);
	t.seen[0] = 1;
	fault = walk(&t, RFS_ROOT_INO, 0, 0);
	if (fault)
		return fault;
	for (i = 0; i < OWNERS; i++) {
		if (rfs_quota_get(fs, RFS_QUOTA_GROUP, 1 + i, &quota, &rsv))
			NO("quota of group %u cannot be read", 1 + i);
		t.digest += hash_limit(i, le64_to_cpu(quota.inodes_hard));
	}
	for (i = 0; i < changes; i++)
		if (o->promised[i] <= ops)
			least = i;
	fault = "names are those of no moment that is allowed";
	for (loose = 0; loose < 1 + !!o->made; loose++) {
		for (i = changes; i-- > least; ) {
			if (o->digest[i] != t.digest)
				continue;
			c.changes = i + 1;
			fault = NULL;
			unlike = 0;
			for (f = 0; !fault && f < t.files; f++) {
				fault = check_file(o, fs, &t.file[f], &c);
				if (!fault || !loose ||
				    !is_made(o, t.file[f].ino))
					continue;
				unlike++;
				fault = check_loosely(o, fs, &t.file[f], &c);
			}
			if (fault)
				continue;
			o->unlike += unlike;
			return NULL;
		}
	}
	return fault;
}
