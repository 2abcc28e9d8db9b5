// SPDX-License-Identifier: GPL-2.0-or-later
/* Workloads, and what the oracle is told of them. */
#include <assert.h>
#include <stdio.h>

#include "flashless_check.h"
#include "workload.h"
#include "space/space.h"
#include "home/replica.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "tree/dir.h"
#include "tree/xattr.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define FILE_MAX	40	/* blocks */
#define FILLER		64	/* the first block of the file that stays */

const struct workload workloads[] = {
	{ "append", 400, 6, { [CREATE] = 2, [WRITE] = 10, [FSYNC] = 8,
			      [WAIT] = 3, [SYNC] = 1 } },
	{ "overwrite", 400, 4, { [CREATE] = 1, [WRITE] = 2, [OVERWRITE] = 14,
				 [FSYNC] = 4, [WAIT] = 3 } },
	{ "names", 900, 24, { [CREATE] = 8, [MKDIR] = 2, [LINK] = 3,
			      [UNLINK] = 4, [RMDIR] = 1, [RENAME] = 6,
			      [EXCHANGE] = 2, [WHITEOUT] = 1, [TMPFILE] = 4,
			      [CHGRP] = 2, [CHMOD] = 1, [FSYNC] = 6,
			      [WRITE] = 3, [WAIT] = 1 } },
	{ "truncate", 500, 4, { [CREATE] = 1, [WRITE] = 8, [OVERWRITE] = 4,
				[TRUNCATE] = 6, [PUNCH] = 3, [FSYNC] = 5,
				[WAIT] = 3, [RENAME] = 1 } },
	{ "prealloc", 500, 4, { [CREATE] = 1, [WRITE] = 8, [OVERWRITE] = 4,
			       [TRUNCATE] = 4, [PUNCH] = 3, [PREALLOC] = 8,
			       [FSYNC] = 5, [WAIT] = 3, [UNLINK] = 1 } },
	{ "attributes", 600, 8, { [CREATE] = 6, [MKDIR] = 1, [UNLINK] = 4,
				  [RENAME] = 2, [WHITEOUT] = 3, [CHGRP] = 2,
				  [CHMOD] = 4, [TMPFILE] = 1, [XATTR] = 14,
				  [WRITE] = 3, [FSYNC] = 6,
				  [SYNC] = 1, [WAIT] = 2 } },
	{ "reuse", 700, 5, { [CREATE] = 8, [UNLINK] = 8, [WRITE] = 10,
			     [RENAME] = 2, [FSYNC] = 4, [WAIT] = 2 } },
	{ "clean", 1200, 6, { [CREATE] = 2, [OVERWRITE] = 16, [WRITE] = 4,
			     [TRUNCATE] = 1, [UNLINK] = 1, [FSYNC] = 4,
			     [WAIT] = 1 }, 330 },
	{ "quota", 500, 8, { [CREATE] = 6, [MKDIR] = 1, [UNLINK] = 4,
			     [CHGRP] = 6, [LIMIT] = 5, [TRUNCATE] = 2,
			     [PUNCH] = 1, [PREALLOC] = 1, [XATTR] = 2,
			     [WHITEOUT] = 1, [TMPFILE] = 1, [WRITE] = 8,
			     [OVERWRITE] = 2, [FSYNC] = 6, [SYNC] = 1,
			     [WAIT] = 2 } },
	{ "small", 600, 8, { [CREATE] = 4, [UNLINK] = 1, [RENAME] = 1,
			     [TRUNCATE] = 2, [PUNCH] = 1, [PREALLOC] = 1,
			     [WRITE] = 2, [OVERWRITE] = 2, [SMALL] = 14,
			     [SMALL_SYNC] = 8, [FSYNC] = 2, [SYNC] = 1,
			     [WAIT] = 2 } },
	/* so many in two files that their nodes are full most of the time */
	{ "compact", 700, 2, { [CREATE] = 1, [TRUNCATE] = 1, [PUNCH] = 1,
			       [OVERWRITE] = 3, [SMALL] = 24, [SMALL_SYNC] = 8,
			       [FSYNC] = 1, [WAIT] = 4 } },
	/* files written in order, so that leaves become runs, and are leaves again */
	{ "runs", 700, 5, { [CREATE] = 3, [UNLINK] = 2, [ROW] = 6, [WRITE] = 1,
			    [OVERWRITE] = 2, [TRUNCATE] = 2, [PUNCH] = 1,
			    [PREALLOC] = 1, [RENAME] = 1, [FSYNC] = 2,
			    [SYNC] = 2, [WAIT] = 2 }, 400 },
	/* ranges are taken out of files, and put into them */
	{ "shift", 500, 4, { [CREATE] = 1, [WRITE] = 8, [OVERWRITE] = 3,
			     [SHIFT] = 8, [TRUNCATE] = 1, [PUNCH] = 2,
			     [PREALLOC] = 2, [SMALL] = 3, [SMALL_SYNC] = 1,
			     [FSYNC] = 3, [WAIT] = 2, [RENAME] = 1 } },
	/* with a slow device, to which flash gives up what it has no room for */
	{ "hybrid", 900, 12, { [CREATE] = 4, [UNLINK] = 1, [WRITE] = 20,
			       [OVERWRITE] = 26, [TRUNCATE] = 2, [PUNCH] = 1,
			       [PREALLOC] = 1, [SMALL] = 3, [SMALL_SYNC] = 2,
			       [FSYNC] = 5, [SYNC] = 1, [WAIT] = 1,
			       [HOME] = 8, [FILL] = 6, [BYPASS] = 8 }, 500 },
	{ "mixed", 500, 16, { [CREATE] = 4, [MKDIR] = 1, [LINK] = 1,
			      [UNLINK] = 3, [RMDIR] = 1, [RENAME] = 3,
			      [EXCHANGE] = 1, [TRUNCATE] = 2, [PUNCH] = 1,
			      [CHGRP] =
				1, [XATTR] = 2, [WHITEOUT] = 1, [PREALLOC] = 1,
			      [WRITE] = 8, [OVERWRITE] = 6,
			      [SMALL] = 3, [SMALL_SYNC] = 2,
			      [CHMOD] = 1, [TMPFILE] = 1,
			      [FSYNC] = 5, [SYNC] = 1, [WAIT] = 2 } },
	{ "" },
};

u32 pick(struct run *r, u32 n)
{
	r->random = r->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(r->random >> 33) % n;
}

static void die(const char *what, int ret)
{
	fprintf(stderr, "crash: %s: %d\n", what, ret);
	exit(2);
}

static void must(const char *what, int ret)
{
	if (ret)
		die(what, ret);
}

/* A change of the core; one that must wait for room is not made. */
static void finished(struct run *r, const char *what, int ret)
{
	/* -ENOBUFS: for a check-point, which others write, or for compaction */
	if (r->async && (ret == -EAGAIN || ret == -ENOSPC || ret == -ENOBUFS))
		longjmp(r->wait, 1);
	must(what, ret);
}

/*
 * With async, little metadata stays in memory, and is read when nothing has
 * begun.
 */
static void ask(struct run *r)
{
	if (!r->async)
		return;
	rfs_cache_trim(r->fs, pick(r, 16));
	r->fs->nowait = true;
}

/* Is the operation to be done again, with the block that it has missed? */
static bool missed(struct run *r, int ret)
{
	static u8 content[RFS_BLOCK_BYTES];
	static struct rfs_fetched got = { .data = content };

	r->fs->nowait = false;
	r->fs->fetched = NULL;
	if (ret != -EINPROGRESS)
		return false;
	got.addr = r->fs->missed;
	got.error = r->ops.read(r->dev, got.addr, content, NULL);
	r->fs->fetched = &got;
	r->asked++;
	return true;
}

#define ASKING(r, ret, op)						\
do {									\
	do {								\
		ask(r);							\
		(ret) = (op);						\
	} while (missed(r, ret));					\
} while (0)

#define done(r, what, op)						\
do {									\
	int ret_;							\
									\
	ASKING(r, ret_, op);						\
	finished(r, what, ret_);					\
} while (0)

static u32 ino_of(struct run *r, u32 node)
{
	return r->o->node[node].ino;
}

static void changed(struct run *r, u32 node)
{
	oracle_change(r->o);
	r->o->node[node].changes = r->o->changes;
}

static struct name *any_name(struct run *r, bool dirs)
{
	u32 i, tries;

	for (tries = 0; tries < 20 && r->o->names; tries++) {
		i = pick(r, r->o->names);
		if (!S_ISDIR(r->o->node[r->o->name[i].child].mode) == !dirs)
			return &r->o->name[i];
	}
	return NULL;
}

static struct name *any_file(struct run *r)
{
	struct name *name = any_name(r, false);

	return name && S_ISREG(r->o->node[name->child].mode) ? name : NULL;
}

static void new_name(struct run *r, u32 *dir, char *name)
{
	*dir = r->dir[pick(r, r->dirs)];
	sprintf(name, "n%u", pick(r, r->w->files));
	if (pick(r, 6) == 0)
		strcat(name, "-with-more-in-its-name-than-others-have");
}

/* Has all of it been sent, and completed? */
static void end_inflight(struct run *r, struct inflight *f)
{
	u32 i;

	for (i = 0; i < f->parts; i++)
		if (!f->part[i].completed)
			return;
	if (f->sent < f->txn.n)
		return;
	rfs_unreserve(r->fs, f->txn.ino, f->txn.n, f->holes);
	f->node = 0;
}

static void complete_part(struct run *r, struct inflight *f, struct part *p)
{
	u64 addr[TXN_BLOCKS];
	u32 i;

	p->completed = true;
	memdev_complete(r->dev, p->op, p->place.n);
	rfs_placed(r->fs, &p->place, f->oob + p->first, p->addr, 0);
	for (i = 0; i < p->place.n; i++)
		addr[i] = p->addr + i;
	must("complete",
	     rfs_txn_done(r->fs, f->oob + p->first, p->place.n, addr));
	end_inflight(r, f);
	rfs_sums_write(r->fs);
}

static void land_copied(struct run *r, struct moving *m, struct part *p)
{
	u64 addr[RFS_SUM_ENTRIES], before = r->fs->stats.copied;
	u32 i;

	p->completed = true;
	memdev_complete(r->dev, p->op, p->place.n);
	rfs_placed(r->fs, &p->place, m->copy->oob + p->first, p->addr, 0);
	for (i = 0; i < p->place.n; i++)
		addr[i] = p->addr + i;
	must("complete a copy",
	     rfs_copy_done(r->fs, m->copy, p->first, p->place.n,
			   addr));
	r->overtaken += p->place.n - (r->fs->stats.copied - before);
	rfs_sums_write(r->fs);
}

/* A part of what cleaning moves, if any is in flight */
static bool land_any_copied(struct run *r)
{
	u32 at = pick(r, RFS_COPIES), i, n;

	for (i = 0; i < RFS_COPIES; i++) {
		struct moving *m = &r->moving[(at + i) % RFS_COPIES];

		for (n = 0; m->copy && n < m->parts; n++) {
			if (m->part[n].completed)
				continue;
			land_copied(r, m, &m->part[n]);
			return true;
		}
	}
	return false;
}

/* Something that is in flight, if anything is */
static bool land_any(struct run *r)
{
	u32 at = pick(r, FLIGHTS), i;

	if (r->cleaning && pick(r, 3) == 0 && land_any_copied(r))
		return true;
	for (i = 0; i < FLIGHTS; i++) {
		struct inflight *f = &r->inflight[(at + i) % FLIGHTS];
		u32 part = f->parts ? pick(r, f->parts) : 0, n;

		for (n = 0; f->node && n < f->parts; n++) {
			struct part *p = &f->part[(part + n) % f->parts];

			if (p->completed)
				continue;
			complete_part(r, f, p);
			return true;
		}
	}
	return r->cleaning && land_any_copied(r);
}

static void complete_all(struct run *r)
{
	while (land_any(r))
		;
}

/* Blocks of a file that something is to be done with */
static void complete(struct run *r, u32 node, u64 from, u64 to)
{
	u32 i, j;

	for (i = 0; i < FLIGHTS; i++) {
		struct inflight *f = &r->inflight[i];

		if (f->node != node + 1 || f->txn.block >= to ||
		    f->txn.block + f->txn.n <= from)
			continue;
		for (j = 0; j < f->parts; j++)
			if (!f->part[j].completed)
				complete_part(r, f, &f->part[j]);
	}
}

static void do_create(struct run *r, u32 type)
{
	struct oracle *o = r->o;
	u32 node = o->nodes, dir, ino;
	struct rfs_new how = { .mode = type | 0644, .uid = node };
	static __le32 image[RFS_BLOCK_BYTES / 4];
	static u8 value[RFS_BLOCK_BYTES];
	u32 id[XATTRS] = { 0 };
	char name[64];

	new_name(r, &dir, name);
	if (r->w->weight[XATTR] && pick(r, 3) == 0) {
		memset(image, 0, sizeof(image));
		id[0] = 1 + pick(r, 1U << 30);
		must("pack", rfs_xattr_pack(image, &how.xattr_bytes,
					    oracle_xattr[0], value,
					    oracle_value(id[0], value)));
		how.xattrs = image;
	}
	if (oracle_find(o, dir, name) || node == NODES_MAX)
		return;
	if (type == S_IFDIR && r->dirs == DIRS_MAX)
		return;
	done(r, "create", rfs_create(r->fs, ino_of(r, dir), name, &how, &ino));
	memset(&o->node[node], 0, sizeof(o->node[node]));
	o->node[node].mode = how.mode;
	o->node[node].nlink = type == S_IFDIR ? 2 : 1;
	o->node[node].parent = dir;
	o->node[node].ino = ino;
	memcpy(o->node[node].xattr, id, sizeof(id));
	o->nodes++;
	oracle_add_name(o, dir, name, node);
	if (type == S_IFDIR) {
		o->node[dir].nlink++;
		r->dir[r->dirs++] = node;
	}
	changed(r, node);
}

static void do_link(struct run *r)
{
	struct name *from = any_name(r, false);
	u32 dir, node;
	char name[64];

	new_name(r, &dir, name);
	if (!from || oracle_find(r->o, dir, name))
		return;
	node = from->child;
	done(r, "link", rfs_link(r->fs, ino_of(r, dir), name, ino_of(r, node)));
	r->o->node[node].nlink++;
	oracle_add_name(r->o, dir, name, node);
	changed(r, node);
}

/* A node that lost a name; without any its inode goes, mostly at once. */
static void lost(struct run *r, u32 node)
{
	struct node *n = &r->o->node[node];
	u32 i;

	if (S_ISDIR(n->mode)) {
		n->nlink = 0;
		r->o->node[n->parent].nlink--;
		for (i = 0; i < r->dirs; i++)
			if (r->dir[i] == node)
				r->dir[i] = r->dir[--r->dirs];
	} else {
		n->nlink--;
	}
}

static void free_inode(struct run *r, u32 node)
{
	if (r->o->node[node].nlink || !pick(r, 8))
		return;
	complete(r, node, 0, ~0ULL);
	/* as the module has it: this one takes from the reserve, and goes on */
	r->fs->no_space = true;
	done(r, "free", rfs_free_orphan(r->fs, ino_of(r, node)));
	r->fs->no_space = false;
}

static bool empty(struct run *r, u32 node)
{
	u32 i;

	for (i = 0; i < r->o->names; i++)
		if (r->o->name[i].dir == node)
			return false;
	return true;
}

static void do_unlink(struct run *r, bool dirs)
{
	struct name *name = any_name(r, dirs);
	u32 node, ino;

	if (!name || !empty(r, name->child) ||
	    (r->w->slack && name->child == 1))
		return;
	node = name->child;
	done(r, "unlink", rfs_unlink(r->fs, ino_of(r, name->dir), name->name,
				  &ino));
	assert(ino == ino_of(r, node));
	oracle_del_name(r->o, name);
	lost(r, node);
	changed(r, node);
	free_inode(r, node);
}

/* Is a directory above another, or the same? */
static bool above(struct run *r, u32 dir, u32 node)
{
	while (node != dir && node)
		node = r->o->node[node].parent;
	return node == dir;
}

static void move_dir(struct run *r, u32 node, u32 from, u32 to)
{
	if (!S_ISDIR(r->o->node[node].mode))
		return;
	r->o->node[node].parent = to;
	r->o->node[from].nlink--;
	r->o->node[to].nlink++;
}

static void do_rename(struct run *r)
{
	struct name *from = any_name(r, pick(r, 4) == 0), *to;
	u32 node, dir, from_dir, victim = 0;
	char name[64], old[64];

	if (!from)
		return;
	new_name(r, &dir, name);
	node = from->child;
	from_dir = from->dir;
	strcpy(old, from->name);
	if (S_ISDIR(r->o->node[node].mode) && above(r, node, dir))
		return;
	to = oracle_find(r->o, dir, name);
	if (to) {
		victim = to->child;
		if (victim == node || !empty(r, victim) ||
		    (r->w->slack && victim == 1) ||
		    !S_ISDIR(r->o->node[victim].mode) !=
		    !S_ISDIR(r->o->node[node].mode))
			return;
	}
	done(r, "rename", rfs_rename(r->fs, ino_of(r, from_dir), old,
				  ino_of(r, dir), name, 0, NULL));
	if (to) {
		lost(r, victim);
		to->child = node;
		r->o->node[victim].changes = r->o->changes + 1;
	} else {
		oracle_add_name(r->o, dir, name, node);
	}
	oracle_del_name(r->o, oracle_find(r->o, from_dir, old));
	move_dir(r, node, from_dir, dir);
	changed(r, node);
	if (victim)
		free_inode(r, victim);
}

static void do_exchange(struct run *r)
{
	struct name *a = any_name(r, false), *b = any_name(r, pick(r, 3) == 0);
	u32 child;

	if (!a || !b || a->child == b->child)
		return;
	if (S_ISDIR(r->o->node[b->child].mode) && above(r, b->child, a->dir))
		return;
	done(r, "exchange", rfs_rename(r->fs, ino_of(r, a->dir), a->name,
				    ino_of(r, b->dir), b->name,
				    RFS_REC_EXCHANGE, NULL));
	move_dir(r, b->child, b->dir, a->dir);
	child = a->child;
	a->child = b->child;
	b->child = child;
	r->o->node[a->child].changes = r->o->changes + 1;
	changed(r, child);
}

/* A file goes to a name that is free, and a whiteout is left. */
static void do_whiteout(struct run *r)
{
	struct name *from = any_name(r, false);
	struct rfs_new how = { .uid = r->o->nodes };
	u32 node = r->o->nodes, dir, child;
	char name[64];

	new_name(r, &dir, name);
	if (!from || oracle_find(r->o, dir, name) || node == NODES_MAX ||
	    (r->w->slack && from->child == 1))
		return;
	done(r, "whiteout", rfs_rename(r->fs, ino_of(r, from->dir), from->name,
				    ino_of(r, dir), name, RFS_REC_WHITEOUT,
				    &how));
	child = from->child;
	memset(&r->o->node[node], 0, sizeof(r->o->node[node]));
	r->o->node[node].mode = S_IFCHR;
	r->o->node[node].nlink = 1;
	must("find", rfs_dir_find(r->fs, ino_of(r, from->dir), from->name,
				  strlen(from->name), &r->o->node[node].ino));
	r->o->nodes++;
	from->child = node;
	oracle_add_name(r->o, dir, name, child);
	r->o->node[node].changes = r->o->changes + 1;
	changed(r, child);
}

static void do_xattr(struct run *r)
{
	struct name *name = any_name(r, pick(r, 4) == 0);
	static u8 value[RFS_BLOCK_BYTES];
	u32 which = pick(r, XATTRS), id = 0, *had;
	int ret;

	if (!name)
		return;
	had = &r->o->node[name->child].xattr[which];
	if (pick(r, 3))
		id = 1 + pick(r, 1U << 30);
	ASKING(r, ret, rfs_xattr_set(r->fs, ino_of(r, name->child),
				     oracle_xattr[which], id ? value : NULL,
				     id ? oracle_value(id, value) : 0, 0, 0));
	if (!id && !*had && ret == -ENODATA)
		return;
	finished(r, "xattr", ret);
	*had = id;
	changed(r, name->child);
}

/* Permissions, alone or with an attribute, as an ACL is one */
static void do_chmod(struct run *r)
{
	struct name *name = any_name(r, pick(r, 4) == 0);
	static u8 value[RFS_BLOCK_BYTES];
	u32 mode, id = 1 + pick(r, 1U << 30);
	struct rfs_dinode attr, *di;
	struct rfs_buf *buf;
	struct node *node;

	if (!name)
		return;
	node = &r->o->node[name->child];
	mode = (node->mode & S_IFMT) | (1 + pick(r, 0777));
	if (pick(r, 2)) {
		done(r, "acl", rfs_xattr_set(r->fs, node->ino, oracle_xattr[1],
					     value, oracle_value(id, value), 0,
					     mode));
		node->xattr[1] = id;
	} else {
		must("iget", rfs_iget(r->fs, node->ino, &di, &buf));
		attr = *di;
		attr.mode = cpu_to_le32(mode);
		done(r, "chmod", rfs_setattr(r->fs, node->ino, &attr, 0));
	}
	node->mode = mode;
	changed(r, name->child);
}

static void set_size(struct run *r, u32 node, u64 size, bool grows)
{
	struct event *e;

	done(r, "truncate", rfs_truncate(r->fs, ino_of(r, node), size, grows));
	e = oracle_event(r->o, EV_SIZE, node);
	e->size = size;
	e->keep = grows;
	r->o->node[node].size = size;
	changed(r, node);
}

static void do_truncate(struct run *r)
{
	struct name *name = any_file(r);
	u64 size;

	if (!name || (r->w->slack && name->child == 1))
		return;
	size = pick(r, FILE_MAX * RFS_BLOCK_BYTES / 2);
	if (size % RFS_BLOCK_BYTES < 16 || pick(r, 3) == 0)
		size -= size % RFS_BLOCK_BYTES;
	complete(r, name->child, size / RFS_BLOCK_BYTES, ~0ULL);
	set_size(r, name->child, size, size > r->o->node[name->child].size);
}

static void do_punch(struct run *r)
{
	struct name *name = any_file(r);
	struct event *e;
	u32 from = pick(r, FILE_MAX / 2), n = 1 + pick(r, 6);

	if (!name || (r->w->slack && name->child == 1))
		return;
	complete(r, name->child, from, from + n);
	done(r, "punch", rfs_punch(r->fs, ino_of(r, name->child), from,
				from + n, false));
	e = oracle_event(r->o, EV_PUNCH, name->child);
	e->block = from;
	e->n = n;
	changed(r, name->child);
}

/* Now and then what is there is punched out of it, as zeroing a range does. */
static void do_reserve(struct run *r)
{
	struct name *name = any_file(r);
	u64 from = pick(r, FILE_MAX), at = from;
	struct event *e;
	u32 n = 1 + pick(r, 10), ino;

	if (!name || (r->w->slack && name->child == 1))
		return;
	ino = ino_of(r, name->child);
	complete(r, name->child, from, from + n);
	done(r, "preallocate", rfs_preallocate(r->fs, ino, &at, from + n));
	e = oracle_event(r->o, EV_PREALLOC, name->child);
	e->block = from;
	e->n = n;
	changed(r, name->child);
	if (pick(r, 3))
		return;
	done(r, "zero", rfs_punch(r->fs, ino, from, from + n, true));
	e = oracle_event(r->o, EV_PUNCH, name->child);
	e->block = from;
	e->n = n;
	e->keep = true;
	changed(r, name->child);
}

/* What is reserved for its blocks in flight goes along with it. */
static u32 held_by(const struct run *r, u32 node)
{
	u32 i, held = 0;

	for (i = 0; i < FLIGHTS; i++)
		if (r->inflight[i].node == node + 1)
			held += r->inflight[i].holes;
	return held;
}

static void do_chgrp(struct run *r)
{
	struct name *name = any_name(r, pick(r, 3) == 0);
	struct rfs_dinode attr, *di;
	struct rfs_buf *buf;
	u32 gid;

	if (!name)
		return;
	must("iget", rfs_iget(r->fs, ino_of(r, name->child), &di, &buf));
	attr = *di;
	gid = 1 + pick(r, 1000);
	attr.gid = cpu_to_le32(gid);
	done(r, "setattr", rfs_setattr(r->fs, ino_of(r, name->child), &attr,
				       held_by(r, name->child)));
	/* it may have had to wait, and was not made */
	r->o->node[name->child].gid = gid;
	changed(r, name->child);
}

/* Of inodes of a group; nobody enforces it. */
static void do_limit(struct run *r)
{
	u32 owner = pick(r, OWNERS), most = pick(r, 4) ? 1 + pick(r, 1000) : 0;
	struct rfs_quota q = { .inodes_hard = cpu_to_le64(most) };

	done(r, "limit", rfs_quota_set(r->fs, RFS_QUOTA_GROUP, 1 + owner, &q));
	r->o->limit[owner] = most;
	oracle_change(r->o);
}

static void fill(struct run *r, u64 block, u32 n, const void **data)
{
	static u8 content[TXN_BLOCKS][RFS_BLOCK_BYTES];
	u32 i;

	for (i = 0; i < n; i++) {
		/* the event that this will be */
		oracle_pattern(r->o->events + 1, block + i, content[i]);
		data[i] = content[i];
	}
}

static void reserve(struct run *r, u32 ino, u64 block, u32 n, u32 *holes)
{
	bool hole;
	u32 i;
	int ret;

	*holes = 0;
	for (i = 0; i < n; i++) {
		ASKING(r, ret, rfs_reserve(r->fs, ino, block + i, &hole));
		if (ret)
			rfs_unreserve(r->fs, ino, i, *holes);
		finished(r, "reserve", ret);
		*holes += hole;
	}
}

/* An append of what is left of a transaction */
static void submit(struct run *r, struct inflight *f, const void *const *data)
{
	u32 from = f->sent, n = f->txn.n - from, stream, i;
	struct part *p = &f->part[f->parts];
	int ret;

	must("fill", rfs_txn_fill(r->fs, &f->txn, from, &n, f->oob + from,
				  &stream));
	while ((ret = rfs_place(r->fs, stream, n, false, &p->place)) == -EBUSY)
		if (!land_any(r))
			break;
	must("place", ret);
	for (i = from; i < from + p->place.n; i++)
		rfs_oob_seal(&f->oob[i], data[i]);
	p->first = from;
	p->completed = false;
	p->op = r->dev->ops;
	r->dev->hold = true;
	must("append", r->ops.append(r->dev, p->place.zone, p->place.n,
				     data + from, f->oob + from, &p->addr));
	r->dev->hold = false;
	f->parts++;
	f->sent += p->place.n;
}

static void write_async(struct run *r, u32 node, u64 block, u32 n, u32 len,
			const void *const *data)
{
	struct inflight *f = r->inflight;
	u32 holes;

	/* it would wait for the check-point, or for the fsync */
	if ((r->fs->commit || r->fs->syncing) &&
	    rfs_log_pending(r->fs, ino_of(r, node), true))
		longjmp(r->wait, 1);
	complete(r, node, block, block + n);
	reserve(r, ino_of(r, node), block, n, &holes);
	while (f->node && ++f < r->inflight + FLIGHTS)
		;
	if (f == r->inflight + FLIGHTS) {
		complete_all(r);
		f = r->inflight;
	}
	must("begin", rfs_txn_begin(r->fs, ino_of(r, node), block, n, len,
				    r->ops.now(r->dev), &f->txn));
	f->node = node + 1;
	f->holes = holes;
	f->parts = 0;
	f->sent = 0;
	while (f->sent < n)
		submit(r, f, data);
	end_inflight(r, f);
}

/* As the run has it: in flight with others, or at once */
static void put_blocks(struct run *r, u32 node, u64 block, u32 n, u32 len,
		       const void *const *data)
{
	if (r->async && r->dev->geo.oob_bytes)
		write_async(r, node, block, n, len, data);
	else
		done(r, "write", rfs_write(r->fs, ino_of(r, node), block, n,
					   data, len));
}

static void write_blocks(struct run *r, u32 node, u64 block, u32 n, u32 len)
{
	const void *data[TXN_BLOCKS];
	struct event *e;

	fill(r, block, n, data);
	put_blocks(r, node, block, n, len, data);
	e = oracle_event(r->o, EV_WRITE, node);
	e->block = block;
	e->n = n;
	e->len = len;
	r->o->node[node].size = max(r->o->node[node].size,
				    (block + n - 1) * RFS_BLOCK_BYTES + len);
}

static void do_write(struct run *r, bool over)
{
	struct name *name = any_file(r);
	u64 size, last, block;
	u32 n = 1 + pick(r, 4), len = RFS_BLOCK_BYTES;

	if (pick(r, 3) == 0)
		n = 1;
	if (!name)
		return;
	size = r->o->node[name->child].size;
	if (r->w->slack && name->child == 1) {
		block = pick(r, FILE_MAX - n);
		write_blocks(r, 1, block, n, len);
		return;
	}
	block = size / RFS_BLOCK_BYTES;
	if (over || block + n > FILE_MAX)
		block = pick(r, min_t(u64, max_t(u64, block, 1), FILE_MAX - n));
	else if (pick(r, 4) == 0)
		block = pick(r, FILE_MAX - n);
	last = (block + n - 1) * RFS_BLOCK_BYTES;
	if (pick(r, 2) && last + RFS_BLOCK_BYTES > size) {
		len = 16 + pick(r, RFS_BLOCK_BYTES - 16);
		if (last + len < size)
			len = size - last;
	}
	write_blocks(r, name->child, block, n, len);
}

/* A file as a whole, in order; one that is empty gets some length. */
static void do_row(struct run *r)
{
	struct name *name = any_file(r);
	u64 size, block, end;

	if (!name)
		return;
	size = r->o->node[name->child].size;
	if (r->w->slack && name->child == 1)
		return;
	end = DIV_ROUND_UP(size, RFS_BLOCK_BYTES);
	if (!end)
		end = 8 + pick(r, FILE_MAX - 8);
	for (block = 0; block < end; block += TXN_BLOCKS) {
		u32 n = min_t(u64, TXN_BLOCKS, end - block);
		u32 len = block + n == end && size ?
			  size - (end - 1) * RFS_BLOCK_BYTES : RFS_BLOCK_BYTES;

		write_blocks(r, name->child, block, n, len);
	}
}

/* Blocks move to where a file has others, or none, and are durable there. */
static void move_row(struct run *r, u32 node, const struct rfs_shift *s)
{
	u64 last = (s->at + s->blocks - 1) * RFS_BLOCK_BYTES;
	static u8 want[RFS_BLOCK_BYTES];
	u8 *moved = malloc(s->blocks * RFS_BLOCK_BYTES);
	const void *data[TXN_BLOCKS];
	struct event *e;
	u32 i, len;

	assert(moved && s->blocks <= TXN_BLOCKS);
	for (i = 0; i < s->blocks; i++) {
		data[i] = moved + i * RFS_BLOCK_BYTES;
		must("read", rfs_read(r->fs, s->ino, s->from + i,
				      moved + i * RFS_BLOCK_BYTES));
		oracle_block(r->o, node, s->from + i, want);
		if (memcmp(want, data[i], sizeof(want)))
			die("what is to move is another block", s->from + i);
	}
	len = min_t(u64, RFS_BLOCK_BYTES, r->o->node[node].size - last);
	put_blocks(r, node, s->at, s->blocks, len, data);
	e = oracle_event(r->o, EV_MOVE, node);
	e->block = s->at;
	e->n = s->blocks;
	e->len = len;
	e->moved = moved;
	complete(r, node, 0, ~0ULL);
	must("wait", r->fs->ops->wait(r->dev));
	if (r->dev->geo.volatile_cache)
		must("flush", r->fs->ops->flush(r->dev));
	e->promised = r->dev->ops;
}

/* Where a row was, or is to be, the file has holes, or blocks that are preallocated. */
static void move_hole(struct run *r, u32 node, const struct rfs_shift *s)
{
	bool reserves = s->what == RFS_SHIFT_RESERVE;
	bool zeroes = s->what == RFS_SHIFT_ZERO;
	u64 at = s->at;
	struct event *e;

	if (reserves)
		done(r, "preallocate", rfs_preallocate(r->fs, s->ino, &at,
						       at + s->blocks));
	else
		done(r, "punch", rfs_punch(r->fs, s->ino, at, at + s->blocks,
					   zeroes));
	e = oracle_event(r->o, reserves ? EV_PREALLOC : EV_PUNCH, node);
	e->block = s->at;
	e->n = s->blocks;
	e->keep = zeroes;
	changed(r, node);
}

/*
 * A range is taken out of a file, or put into it. What has to wait for room ends it on the way, as
 * a signal may: the gap stays where it is then.
 */
static void do_shift(struct run *r)
{
	struct rfs_shift s = { .n = 1 + pick(r, 6), .most = TXN_BLOCKS };
	struct name *name = any_file(r);
	bool puts = pick(r, 2);
	u64 size, blocks, from;
	u32 node;
	int ret;

	if (!name || (r->w->slack && name->child == 1))
		return;
	node = name->child;
	size = r->o->node[node].size;
	blocks = DIV_ROUND_UP(size, RFS_BLOCK_BYTES);
	if (!blocks)
		return;
	from = pick(r, blocks);
	if (puts ? blocks + s.n > FILE_MAX : from + s.n >= blocks)
		return;
	complete(r, node, 0, ~0ULL);
	s.ino = ino_of(r, node);
	s.gap = puts ? blocks : from;
	s.end = puts ? from : blocks - s.n;
	if (puts)
		set_size(r, node, size + s.n * RFS_BLOCK_BYTES, true);
	for (;;) {
		ASKING(r, ret, rfs_shift_next(r->fs, &s));
		if (ret == -EAGAIN)
			continue;
		must("next", min(ret, 0));
		if (!ret)
			break;
		if (s.what == RFS_SHIFT_WRITE)
			move_row(r, node, &s);
		else
			move_hole(r, node, &s);
	}
	if (!puts)
		set_size(r, node, size - s.n * RFS_BLOCK_BYTES, false);
}

static void checkpoint(struct run *r);

/* What was done by the time of so many changes and events is durable. */
static void promise_earlier(struct run *r, u32 node, u32 changes, u32 events)
{
	u32 all = r->o->events;

	r->o->events = events;
	oracle_promise(r->o, r->dev->ops, node, changes);
	r->o->events = all;
}

/* The log is written while others act; no check-point begins then. */
static int sync_beside(struct run *r)
{
	jmp_buf wait;
	int ret;

	if (!r->async || r->early)
		return rfs_log_sync(r->fs);
	memcpy(wait, r->wait, sizeof(wait));
	r->early = true;
	r->syncing = true;
	ret = rfs_log_sync_beside(r->fs);
	r->syncing = false;
	r->early = false;
	memcpy(r->wait, wait, sizeof(wait));
	return ret;
}

static void fsync_node(struct run *r, u32 node)
{
	u32 changes = r->o->node[node].changes, events;

	if (r->bypassed[node]) {
		checkpoint(r);
		return;
	}
	complete(r, node, 0, ~0ULL);
	if (pick(r, 2))
		land_any(r);
	events = r->o->events;
	finished(r, "fsync", rfs_log_pending(r->fs, ino_of(r, node), false) ?
		 sync_beside(r) : rfs_fsync(r->fs, ino_of(r, node)));
	promise_earlier(r, node, changes, events);
}

static void told_bytes(struct run *r, u32 node, u64 block, u32 at, u32 bytes,
		       bool page)
{
	u64 size = r->o->node[node].size;
	struct event *e = oracle_event(r->o, EV_BYTES, node);

	size = max(size, block * RFS_BLOCK_BYTES + at + bytes);
	e->block = block;
	e->n = 1;
	e->at = at;
	e->bytes = bytes;
	e->page = page;
	r->o->node[node].size = size;
}

/* Bytes of a block, with the rest of it */
static void put_page(struct run *r, u32 node, u64 block, u32 at, u32 bytes)
{
	static u8 content[RFS_BLOCK_BYTES];
	u64 start = block * RFS_BLOCK_BYTES, size = r->o->node[node].size;
	const void *data = content;

	oracle_block(r->o, node, block, content);
	oracle_bytes(r->o->events + 1, at, bytes, content + at);
	size = max_t(u64, size, start + at + bytes) - start;
	put_blocks(r, node, block, 1, min_t(u64, size, RFS_BLOCK_BYTES), &data);
	told_bytes(r, node, block, at, bytes, true);
}

/* Bytes of a block, into the log; false: they have to go into a page */
static bool put_piece(struct run *r, u32 node, u64 block, u32 at, u32 bytes)
{
	u32 ino = ino_of(r, node), holes;
	u64 off = block * RFS_BLOCK_BYTES + at;
	u8 data[RFS_SMALL_MAX];
	int fits;

	if (!r->pieces || bytes > RFS_SMALL_MAX)
		return false;
	complete(r, node, block, block + 1);
	reserve(r, ino, block, 1, &holes);
	ASKING(r, fits, rfs_piece_fits(r->fs, ino, off, bytes));
	if (fits > 0) {
		oracle_bytes(r->o->events + 1, at, bytes, data);
		must("piece", rfs_piece(r->fs, ino, off, data, bytes,
					r->ops.now(r->dev)));
	}
	rfs_unreserve(r->fs, ino, 1, holes);
	must("fits", min(fits, 0));
	if (fits)
		told_bytes(r, node, block, at, bytes, false);
	return fits;
}

/* A block with pieces is written as a page, so that others have room. */
static void merge(struct run *r, u32 node)
{
	u64 block;
	int ret;

	ASKING(r, ret, rfs_diff_fullest(r->fs, ino_of(r, node), &block));
	if (ret == -ENOENT)
		return;
	must("fullest", ret);
	put_page(r, node, block, 0, 0);
}

static void put_bytes(struct run *r, u32 node, u64 block, u32 at, u32 bytes)
{
	if (pick(r, 12) && put_piece(r, node, block, at, bytes))
		return;
	if (r->pieces && pick(r, 2)) {
		merge(r, node);
		if (put_piece(r, node, block, at, bytes))
			return;
	}
	put_page(r, node, block, at, bytes);
}

#define SMALL_MOST	4000	/* bytes that are written by themselves */

/* Some bytes, mostly at a file's end, or somewhere before it */
static void do_small(struct run *r, bool sync)
{
	struct name *name = any_file(r);
	u32 bytes = 1 + pick(r, pick(r, 3) ? 300 : SMALL_MOST), at, node;
	u64 off, most = (u64)FILE_MAX * RFS_BLOCK_BYTES;

	if (!name || (r->w->slack && name->child == 1))
		return;
	node = name->child;
	off = r->o->node[node].size;
	if (off >= most - 1 || (off && pick(r, 3)))
		off = pick(r, min(off, most - 1));
	at = off % RFS_BLOCK_BYTES;
	bytes = min_t(u32, bytes, RFS_BLOCK_BYTES - at);
	put_bytes(r, node, off / RFS_BLOCK_BYTES, at, bytes);
	if (sync)
		fsync_node(r, node);
}

/* A file that has no name yet gets one, is dropped, or one is made. */
static void do_tmpfile(struct run *r)
{
	struct oracle *o = r->o;
	struct rfs_new how = { .mode = S_IFREG | 0640, .uid = o->nodes };
	u32 node = o->nodes, dir, ino;
	char name[64];

	new_name(r, &dir, name);
	if (!r->tmp && node < NODES_MAX) {
		done(r, "tmpfile", rfs_create(r->fs, ino_of(r, dir), NULL, &how,
					      &ino));
		memset(&o->node[node], 0, sizeof(o->node[node]));
		o->node[node].mode = how.mode;
		o->node[node].ino = ino;
		o->nodes++;
		r->tmp = node;
		changed(r, node);
	} else if (r->tmp && pick(r, 3)) {
		write_blocks(r, r->tmp, pick(r, 8), 1 + pick(r, 3),
			     RFS_BLOCK_BYTES);
	} else if (r->tmp && pick(r, 4) == 0) {
		node = r->tmp;
		r->tmp = 0;
		free_inode(r, node);
	} else if (r->tmp && !oracle_find(o, dir, name)) {
		node = r->tmp;
		done(r, "link", rfs_link(r->fs, ino_of(r, dir), name,
					 ino_of(r, node)));
		r->tmp = 0;
		o->node[node].nlink = 1;
		oracle_add_name(o, dir, name, node);
		changed(r, node);
	}
}

static void do_fsync(struct run *r)
{
	struct name *name = any_name(r, pick(r, 6) == 0);

	if (name)
		fsync_node(r, name->child);
}

/* While what is dirty is written before a check-point, others act; none begins then. */
static void write_early(struct run *r)
{
	u32 most = r->fs->geo.append_max;
	jmp_buf wait;

	memcpy(wait, r->wait, sizeof(wait));
	r->early = true;
	/* so that others go on many times */
	r->fs->geo.append_max = 1 + pick(r, 6);
	rfs_write_early(r->fs);
	r->fs->geo.append_max = most;
	r->early = false;
	memcpy(r->wait, wait, sizeof(wait));
}

#define LOG_MOST	4	/* blocks of the log, with async */

/* The same while others act in the next epoch; none begins then. */
static void checkpoint_early(struct run *r)
{
	jmp_buf wait;

	memcpy(wait, r->wait, sizeof(wait));
	r->early = true;
	r->frozen = false;
	r->frozen_changes = r->o->changes;
	r->frozen_events = r->o->events;
	must("check-point", rfs_checkpoint_early(r->fs));
	r->early = false;
	r->frozen = false;
	r->fs->log_most = LOG_MOST;
	memcpy(r->wait, wait, sizeof(wait));
	promise_earlier(r, NEVER, r->frozen_changes, r->frozen_events);
}

/* All is durable then. */
static void checkpoint(struct run *r)
{
	if (r->early)
		return;
	if (r->async && pick(r, 4))
		write_early(r);
	complete_all(r);
	if (r->async && pick(r, 4)) {
		checkpoint_early(r);
		return;
	}
	must("check-point", rfs_checkpoint(r->fs, 0));
	memset(r->bypassed, 0, sizeof(r->bypassed));
	oracle_promise(r->o, r->dev->ops, NEVER, r->o->changes);
}

/* All is durable then, too: pages, and the log that has all else. */
static void sync_log(struct run *r)
{
	u32 changes, events;

	if (r->early)
		return;
	if (r->fs->not_logged) {
		checkpoint(r);
		return;
	}
	complete_all(r);
	changes = r->o->changes;
	events = r->o->events;
	must("log", sync_beside(r));
	promise_earlier(r, NEVER, changes, events);
}

/* Some blocks that flash alone has are written home, or leave flash, too. */
static void do_home(struct run *r)
{
	u32 most = 1 + pick(r, 100);
	int ret;

	/* it may need a check-point */
	if (r->syncing)
		return;
	/* so that blocks that were given up are soon used again */
	r->fs->home->cursor = 0;
	if (pick(r, 3)) {
		must("write home", rfs_write_home(r->fs, &most));
		return;
	}
	must("make room", rfs_make_room_to_free(r->fs));
	/* as if so many were to be written */
	ret = rfs_spare(r->fs, 1 + pick(r, 400), 0,
			r->fs->user_blocks / RFS_SPARE, rfs_checkpoint);
	must("spare", ret == -ENOSPC ? 0 : ret);
	rfs_prove(r->fs, RFS_AT_ADMISSION);
}

/* Some blocks of a file, of which those that are at home alone come to flash */
static void do_fill(struct run *r)
{
	struct name *name = any_file(r);
	u32 block = pick(r, FILE_MAX / 2), i;

	/* those of the file that stays, which nobody looks at, take room */
	if (name && name->child == 1)
		block = FILLER + pick(r, 400);
	for (i = 0; name && i < 10; i++)
		must("fill", rfs_fill(r->fs, ino_of(r, name->child), block + i));
}

/* Blocks from..to - 1 of a transaction have gone home: each is a write by itself. */
static void told_bypassed(struct run *r, u32 node, const struct rfs_txn *txn,
			  u32 from, u32 to)
{
	u64 end = (txn->block + to - 1) * RFS_BLOCK_BYTES +
		  (to < txn->n ? RFS_BLOCK_BYTES : txn->len);
	struct event *e;
	u32 i;

	for (i = from; i < to; i++) {
		e = oracle_event(r->o, EV_WRITE, node);
		e->block = txn->block + i;
		e->n = 1;
		e->len = i + 1 < txn->n ? RFS_BLOCK_BYTES : txn->len;
	}
	r->bypassed[node] = true;
	r->o->node[node].size = max(r->o->node[node].size, end);
}

/* Blocks of a file go home and not to flash. */
static void do_bypass(struct run *r)
{
	struct name *name = any_file(r);
	u32 n = 1 + pick(r, 12), len = RFS_BLOCK_BYTES, node, done, holes, i;
	static u8 content[12][RFS_BLOCK_BYTES];
	struct rfs_home_row row;
	const void *data[12];
	struct rfs_txn txn;
	u64 block;
	int some;

	if (!name || (r->w->slack && name->child == 1))
		return;
	node = name->child;
	if (r->fs->syncing && rfs_log_pending(r->fs, ino_of(r, node), true))
		longjmp(r->wait, 1);
	block = pick(r, FILE_MAX / 2);
	if (pick(r, 2) && (block + n) * RFS_BLOCK_BYTES > r->o->node[node].size)
		len = 16 + pick(r, RFS_BLOCK_BYTES - 16);
	if ((block + n - 1) * RFS_BLOCK_BYTES + len < r->o->node[node].size)
		len = RFS_BLOCK_BYTES;
	for (i = 0; i < n; i++) {
		oracle_pattern(r->o->events + 1 + i, block + i, content[i]);
		data[i] = content[i];
	}
	reserve(r, ino_of(r, node), block, n, &holes);
	must("begin", rfs_txn_begin(r->fs, ino_of(r, node), block, n, len,
				    r->ops.now(r->dev), &txn));
	for (done = 0; done < n; done += row.n) {
		must("bypass", rfs_bypass_begin(r->fs, n - done, &row));
		must("send", rfs_home_send(r->fs, row.first, row.n,
					   data + done));
		/* others go on meanwhile */
		if (pick(r, 4) == 0) {
			checkpoint(r);
			do_home(r);
		}
		for (i = 0; i < row.n; i += some) {
			some = rfs_bypass_done(r->fs, &txn, done + i,
					       row.n - i, row.first + i);
			must("at home", min(some, 0));
			told_bypassed(r, node, &txn, done + i, done + i + some);
			/* what has entered the index stays in use, and the rest held */
			if (pick(r, 4) == 0)
				checkpoint(r);
		}
		rfs_home_row_over(r->fs, &row);
	}
	rfs_unreserve(r->fs, ino_of(r, node), n, holes);
}

static void act(struct run *r)
{
	u32 total = 0, at, i;

	for (i = 0; i < ACTIONS; i++)
		total += r->w->weight[i];
	at = pick(r, total);
	for (i = 0; at >= r->w->weight[i]; i++)
		at -= r->w->weight[i];
	switch (i) {
	case CREATE:
		do_create(r, S_IFREG);
		break;
	case MKDIR:
		do_create(r, S_IFDIR);
		break;
	case TMPFILE:
		do_tmpfile(r);
		break;
	case LINK:
		do_link(r);
		break;
	case UNLINK:
		do_unlink(r, false);
		break;
	case RMDIR:
		do_unlink(r, true);
		break;
	case RENAME:
		do_rename(r);
		break;
	case EXCHANGE:
		do_exchange(r);
		break;
	case WHITEOUT:
		do_whiteout(r);
		break;
	case TRUNCATE:
		do_truncate(r);
		break;
	case PUNCH:
		do_punch(r);
		break;
	case PREALLOC:
		do_reserve(r);
		break;
	case CHMOD:
		do_chmod(r);
		break;
	case CHGRP:
		do_chgrp(r);
		break;
	case LIMIT:
		do_limit(r);
		break;
	case XATTR:
		do_xattr(r);
		break;
	case WRITE:
	case OVERWRITE:
		do_write(r, i == OVERWRITE);
		break;
	case ROW:
		do_row(r);
		break;
	case SHIFT:
		do_shift(r);
		break;
	case SMALL:
	case SMALL_SYNC:
		do_small(r, i == SMALL_SYNC);
		break;
	case FSYNC:
		do_fsync(r);
		break;
	case SYNC:
		if (r->pieces && pick(r, 2))
			sync_log(r);
		else
			checkpoint(r);
		break;
	case WAIT:
		land_any(r);
		must("wait", r->fs->ops->wait(r->dev));
		break;
	case HOME:
		do_home(r);
		break;
	case FILL:
		do_fill(r);
		break;
	case BYPASS:
		do_bypass(r);
		break;
	}
}

static void try_to_act(struct run *r)
{
	if (!setjmp(r->wait))
		act(r);
}

static struct run *running;	/* with async */

/* While the cleaner has left the volume to others */
static void pause_cleaning(void *dev)
{
	struct run *r = running;
	u32 n = pick(r, 5);

	(void)dev;
	r->pauses++;
	if (pick(r, 4) == 0)
		checkpoint(r);
	while (n--)
		try_to_act(r);
}

/* Appends of a check-point that are under way, or of what is written before it */
static struct rfs_append_req *sent[RFS_IO_REQS];
static u8 copied[RFS_IO_REQS][RFS_SUM_ENTRIES][RFS_BLOCK_BYTES];

static void copy_early(struct rfs_append_req *s)
{
	static const void *data[RFS_IO_REQS][RFS_SUM_ENTRIES];
	u32 i;

	for (i = 0; i < s->n; i++) {
		memcpy(copied[s->nr][i], s->data[i], RFS_BLOCK_BYTES);
		data[s->nr][i] = copied[s->nr][i];
	}
	s->data = data[s->nr];
}

static int clean(struct run *r, enum rfs_clean how);

/* What would wait for the check-point ends it. */
static void clean_in_next_epoch(struct run *r)
{
	int ret;

	if (r->cleaning)
		return;
	ret = clean(r, pick(r, 2) ? RFS_CLEAN_NOW : RFS_CLEAN_HARD);
	must("clean", ret == -EAGAIN || ret == -ENOSPC ? 0 : ret);
}

/* Others act, and what they have in flight lands. */
static void go_on(struct run *r)
{
	u32 n = pick(r, 4);

	/*
	 * much at times: zones die, and the log is full, before the check-point is durable.
	 * On a full volume check-points are so many that this would be most of the work.
	 */
	if ((r->frozen || r->syncing) && !r->w->slack && pick(r, 4) == 0)
		n = pick(r, 80);
	if (r->frozen && pick(r, 4) == 0)
		clean_in_next_epoch(r);
	while (n--) {
		try_to_act(r);
		r->beside += !r->frozen && !r->syncing;
		r->next += r->frozen;
		r->synced += r->syncing;
		if (pick(r, 2))
			land_any(r);
	}
}

static void frozen(void *dev)
{
	(void)dev;
	running->frozen = true;
	/* it is empty, and sent when it is full */
	running->fs->log_most = 1 + pick(running, LOG_MOST);
}

static bool lets_change(void *dev)
{
	(void)dev;
	return running->syncing && pick(running, 4);
}

static int flush_early(void *dev)
{
	int ret;

	go_on(running);
	ret = memdev_ops.flush(dev);
	go_on(running);
	return ret;
}

static void append_sent(void *dev, u32 nr)
{
	struct rfs_append_req *s = sent[nr];

	sent[nr] = NULL;
	s->error = memdev_ops.append(dev, s->zone, s->n, s->data, s->oob,
				     &s->addr);
}

static void append_submit(void *dev, struct rfs_append_req *req)
{
	assert(req->nr < RFS_IO_REQS && req->nr != RFS_IO_DEPTH &&
	       !sent[req->nr]);
	sent[req->nr] = req;
	if (req->early)
		copy_early(req);
	/* who flushes in the next epoch makes check-points durable that have been sent */
	if (running->frozen ? !pick(running, 4) : pick(running, 2))
		append_sent(dev, req->nr);
}

/* Those that wait go in any order, and some longer than this one. */
static void append_wait(void *dev, struct rfs_append_req *req)
{
	u32 at = pick(running, RFS_IO_REQS), i;

	if (req->early)
		go_on(running);
	for (i = 0; i < RFS_IO_REQS && sent[req->nr]; i++) {
		u32 nr = (at + i) % RFS_IO_REQS;

		if (sent[nr])
			append_sent(dev, nr);
	}
}

/* Its zone is not to be reset before it is read. */
static int copy_read(void *dev, struct rfs_copy *copy)
{
	(void)dev;
	(void)copy;
	return 0;
}

/* What the cleaner reads by itself */
static int scan(void *dev, u64 addr, void *data, struct rfs_oob *oob)
{
	if (pick(running, 8) == 0)
		pause_cleaning(dev);
	return memdev_ops.read(dev, addr, data, oob);
}

static void fetch(void *dev)
{
	static u8 content[RFS_BLOCK_BYTES];
	static struct rfs_fetched got = { .data = content };
	u64 addr = running->fs->missed;

	got.error = memdev_ops.read(dev, addr, content, NULL);
	if (pick(running, 4) == 0)
		pause_cleaning(dev);
	got.addr = addr;
	running->fs->fetched = &got;
}

static void fetched(void *dev)
{
	(void)dev;
	running->fs->fetched = NULL;
}

static void copy_read_wait(void *dev, struct rfs_copy *copy)
{
	u32 i;

	pause_cleaning(dev);
	for (i = 0; i < copy->n; i++)
		if (!copy->there[i])
			copy->there[i] = !memdev_ops.read(dev, copy->from[i],
							  copy->block[i], NULL);
}

static int copy_write(void *dev, struct rfs_copy *copy)
{
	struct run *r = running;
	struct moving *m = &r->moving[copy->nr];
	u32 done, i;
	int ret;

	pause_cleaning(dev);
	ret = rfs_copy_begin(r->fs, copy);
	if (ret)
		return ret;
	m->copy = copy;
	m->parts = 0;
	for (done = 0; done < copy->n;) {
		struct part *p = &m->part[m->parts];

		while ((ret = rfs_place(r->fs, copy->stream, copy->n - done,
					false, &p->place)) == -EBUSY)
			if (!land_any(r))
				break;
		must("place a copy", ret);
		for (i = done; i < done + p->place.n; i++)
			rfs_oob_seal(&copy->oob[i], copy->block[i]);
		p->first = done;
		p->completed = false;
		p->op = r->dev->ops;
		r->dev->hold = true;
		must("append", r->ops.append(dev, p->place.zone, p->place.n,
				(const void *const *)copy->block + done,
				copy->oob + done, &p->addr));
		r->dev->hold = false;
		done += p->place.n;
		m->parts++;
		/* others are at work between them, but for check-points */
		while (pick(r, 2))
			land_any(r);
	}
	return 0;
}

static int copy_write_wait(void *dev, struct rfs_copy *copy)
{
	struct run *r = running;
	struct moving *m = &r->moving[copy->nr];
	u32 i;

	pause_cleaning(dev);
	for (i = 0; i < m->parts; i++)
		if (!m->part[i].completed)
			land_copied(r, m, &m->part[i]);
	m->copy = NULL;
	return 0;
}

static int clean(struct run *r, enum rfs_clean how)
{
	int ret;

	r->cleaning = true;
	ret = rfs_clean_some(r->fs, how);
	r->cleaning = false;
	return ret == -ENOENT ? 0 : ret;
}

#define TOGETHER	64	/* blocks that one may ask for at a time */
#define FUTILE		8	/* rounds without a gain, as the module has it */

/* What the module's thread does for those who wait */
static void make_room(struct run *r)
{
	u32 futile = 0, best = r->fs->free_zones;

	do {
		complete_all(r);
		if (rfs_compact_due(r->fs, futile))
			must("compact", rfs_compact(r->fs, rfs_checkpoint));
		else if (rfs_room_low(r->fs, TOGETHER))
			must("clean", clean(r, futile ? RFS_CLEAN_HARD :
					       RFS_CLEAN_NOW));
		checkpoint(r);
		futile = r->fs->free_zones > best ? 0 : futile + 1;
		best = max(best, r->fs->free_zones);
	} while (rfs_room_low(r->fs, TOGETHER) && futile < FUTILE);
	r->fs->meta_asked = 0;
}

static void step_async(struct run *r)
{
	u32 seen = ~0U;

	if (setjmp(r->wait))
		make_room(r);
	else
		act(r);
	while (pick(r, 3) == 0 && land_any(r))
		;
	/* and of its own accord */
	if (rfs_checkpoint_due(r->fs) || pick(r, 16) == 0) {
		checkpoint(r);
	} else if (rfs_clean_due(r->fs, &seen) && pick(r, 2)) {
		must("clean", clean(r, RFS_CLEAN_EARLY));
		checkpoint(r);
	} else if (rfs_idle_due(r->fs) && pick(r, 8) == 0) {
		must("clean", clean(r, RFS_CLEAN_IDLE));
		checkpoint(r);
	}
}

static void step(struct run *r)
{
	u32 changes = r->o->changes, events = r->o->events;
	u64 before = r->fs->stats.checkpoints;

	act(r);
	/* a check-point on the way promises what was done before the step */
	if (r->fs->stats.checkpoints != before) {
		u32 all = r->o->events;

		r->o->events = events;
		oracle_promise(r->o, r->dev->ops, NEVER, changes);
		r->o->events = all;
	}
}

/* Zones that a group has open: the crash points are worth as much as these */
static void note_width(struct run *r)
{
	u32 group, way, zones;

	for (group = 0; group < r->fs->policy.groups; group++) {
		zones = 0;
		for (way = 0; way < r->fs->ways; way++)
			zones += !!r->fs->active[RFS_S_DATA + group][way].zone;
		r->widest = max(r->widest, zones);
	}
}

static void note_mark(struct run *r)
{
	r->mark[r->marks].ops = r->dev->ops;
	r->mark[r->marks].changes = r->o->changes;
	r->mark[r->marks++].events = r->o->events;
}

/*
 * A slow device that fails at times while the replica is written, not while files are: it has
 * written some of the blocks then, or has lost some of what it did not make durable.
 */
static struct run *failing;
static int (*good_write)(void *dev, u64 at, u32 n, const void *const *data);
static int (*good_flush)(void *dev);

static struct replica *new_note(struct run *r)
{
	struct replica *at;

	r->replica_of = realloc(r->replica_of,
				(r->replicas + 1) * sizeof(*r->replica_of));
	at = &r->replica_of[r->replicas++];
	*at = (struct replica){ .ops = r->dev->ops };
	return at;
}

/* From a failure on there may be none, if it is of a head, or if what is held is needed. */
static bool fails_now(struct run *r)
{
	const struct rfs_home *home = r->fs->home;
	bool fails = pick(r, 1000) < r->slow_errors;

	if (fails && (home->replica->heads == RFS_HEADS_UNKNOWN ||
		      home->count[RFS_SLOW_FREE] < home->count[RFS_SLOW_HELD]))
		new_note(r);
	return fails;
}

static int failing_write(void *dev, u64 at, u32 n, const void *const *data)
{
	struct run *r = failing;
	u32 some;

	r->files_sent |= at < r->fs->home->replica->first;
	if (at < r->fs->home->replica->first || !fails_now(r))
		return good_write(dev, at, n, data);
	some = pick(r, n);
	if (some)
		good_write(dev, at, some, data);
	return -EIO;
}

static bool is_lost(void *run)
{
	return pick(run, 2);
}

static int failing_flush(void *dev)
{
	struct run *r = failing;

	if (r->files_sent || !fails_now(r)) {
		r->files_sent = false;
		return good_flush(dev);
	}
	memdev_slow_loses(dev, is_lost, r);
	r->lost_flushes++;
	return -EIO;
}

static void fail_at_times(struct run *r)
{
	struct rfs_slow_dev *slow = &r->fs->home->slow;

	failing = r;
	good_write = slow->write;
	good_flush = slow->flush;
	slow->write = failing_write;
	slow->flush = failing_flush;
}

/* What the replica has that was made last; of one before it in the same step nobody knows */
static void note_replica(struct run *r)
{
	const struct rfs_replica *has = r->fs->home->replica;
	struct replica *at;
	u64 digest;

	if (!has->blocks || has->heads == RFS_HEADS_UNKNOWN ||
	    (r->replicas && r->replica_of[r->replicas - 1].seq == has->seq))
		return;
	must("read without flash", flashless_digest(r->dev->geo.slow, &digest));
	at = new_note(r);
	at->seq = has->seq;
	at->digest = digest;
}

void record(struct run *r, struct memdev *base)
{
	const struct rfs_id id = { "crash harness 1", "a key for hashes",
				   "a key to be safe", r->pieces, r->ways,
				   r->runs, r->replica > 0 };
	const struct rfs_geometry *geo = &r->dev->geo;
	bool async = r->async;
	u32 i, blocks;

	r->ops = memdev_ops;
	if (r->async) {
		running = r;
		r->ops.append_submit = append_submit;
		r->ops.append_wait = append_wait;
		r->ops.frozen = frozen;
		r->ops.flush_early = flush_early;
		r->ops.lets_change = lets_change;
		r->ops.yield = pause_cleaning;
		r->ops.scan = scan;
		r->ops.fetch = fetch;
		r->ops.fetched = fetched;
		r->ops.copy_read = copy_read;
		r->ops.copy_read_wait = copy_read_wait;
		r->ops.copy_write = copy_write;
		r->ops.copy_write_wait = copy_write_wait;
	}
	must("mkfs", rfs_mkfs(&memdev_ops, r->dev, geo, &id, "crash"));
	must("mount", rfs_mount(&r->ops, r->dev, geo, false, r->inject, &r->fs));
	rfs_policy_set(r->fs, &r->policy);
	if (r->replica)
		r->fs->home->replica->every = (r->replica - 1) * 1000000ULL;
	r->quota |= r->w->weight[LIMIT] > 0;
	if (r->quota)
		must("quota", rfs_quota_on(r->fs));
	r->o = oracle_new();
	r->o->nodes = 1;
	r->o->node[0].mode = S_IFDIR | 0755;
	r->o->node[0].nlink = 2;
	r->o->node[0].ino = RFS_ROOT_INO;
	r->dirs = 1;
	oracle_change(r->o);
	r->async = false;
	r->mark = calloc(r->w->steps + 1, sizeof(*r->mark));
	if (r->w->slack) {
		blocks = rfs_available(r->fs) - r->w->slack;
		if (r->ways > 1)	/* that metadata may claim soon */
			blocks -= ZONE_CAP;
		blocks = blocks / 4 * 4;
		/* node 1: blocks behind what is looked at, never rewritten */
		do_create(r, S_IFREG);
		for (i = 0; i < blocks; i += 4) {
			const void *data[TXN_BLOCKS];

			fill(r, FILLER + i, 4, data);
			put_blocks(r, 1, FILLER + i, 4, RFS_BLOCK_BYTES, data);
		}
		must("sync", rfs_checkpoint(r->fs, 0));
		r->o->node[1].size = 0;
		oracle_event(r->o, EV_SIZE, 1)->size =
			(FILLER + blocks) * RFS_BLOCK_BYTES;
		r->o->event[0].change = 0;
	}
	oracle_promise(r->o, 0, NEVER, r->o->changes);
	r->dev->ops = 0;
	memdev_copy(base, r->dev);
	/* the arena of dev holds the pages of base: it is not copied */
	r->async = async;
	r->fs->threaded = async;
	if (async)	/* it is full often, and sent while others go on */
		r->fs->log_most = LOG_MOST;
	if (r->slow_errors)
		fail_at_times(r);
	for (i = 0; i < r->w->steps; i++) {
		if (r->async)
			step_async(r);
		else
			step(r);
		note_mark(r);
		note_width(r);
		if (r->replica)
			note_replica(r);
	}
	complete_all(r);
	if (r->dev->refused)
		die("too many zones open or active", r->dev->refused);
}

