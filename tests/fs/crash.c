// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a workload, then cuts the power after each of its operations in many
 * ways, and each time mounts, checks and asks the oracle.
 *
 *	crash WORKLOAD [seed=N] [points=N] [oob=0|64] [volatile=1] [teeth=NAME]
 *	      [open=N] [active=N] [rescan=1|2] [groups=N] [gc=N] [quantize=N]
 *
 * rescan: the check-point zones are empty then, with 2 the inode map is gone
 * too; the volume is not mounted but rescanned. With 2 the power is cut between
 * steps only: of a check-point under way it cannot be known how far it had come.
 * Prints one line; exit status 1 at the first point that fails.
 */
#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "memdev.h"
#include "option.h"
#include "oracle.h"

#define ZONES		28
#define ZONE_CAP	62
#define ZONE_BLOCKS	64
#define ARENA		(192U << 20)
#define DIRS_MAX	8
#define FILE_MAX	40	/* blocks */

enum action {
	CREATE, MKDIR, LINK, UNLINK, RMDIR, RENAME, EXCHANGE, WHITEOUT,
	TRUNCATE, PUNCH, RESERVE, CHGRP, XATTR, WRITE, OVERWRITE, FSYNC, SYNC, WAIT, ACTIONS
};

struct workload {
	const char *name;
	u32 steps;
	u32 files;		/* names in use at most */
	u32 weight[ACTIONS];
	bool reuse;		/* inode numbers at once */
	u32 slack;		/* a file that stays fills all but these blocks */
};

static const struct workload workloads[] = {
	{ "append", 400, 6, { [CREATE] = 2, [WRITE] = 10, [FSYNC] = 8,
			      [WAIT] = 3, [SYNC] = 1 } },
	{ "overwrite", 400, 4, { [CREATE] = 1, [WRITE] = 2, [OVERWRITE] = 14,
				 [FSYNC] = 4, [WAIT] = 3 } },
	{ "names", 900, 24, { [CREATE] = 8, [MKDIR] = 2, [LINK] = 3,
			      [UNLINK] = 4, [RMDIR] = 1, [RENAME] = 6,
			      [EXCHANGE] = 2, [CHGRP] = 2, [FSYNC] = 6,
			      [WRITE] = 3, [WAIT] = 1 } },
	{ "truncate", 500, 4, { [CREATE] = 1, [WRITE] = 8, [OVERWRITE] = 4,
				[TRUNCATE] = 6, [PUNCH] = 3, [FSYNC] = 5,
				[WAIT] = 3, [RENAME] = 1 } },
	{ "reserve", 500, 4, { [CREATE] = 1, [WRITE] = 8, [OVERWRITE] = 4,
			       [TRUNCATE] = 4, [PUNCH] = 3, [RESERVE] = 8,
			       [FSYNC] = 5, [WAIT] = 3, [UNLINK] = 1 } },
	{ "attributes", 600, 8, { [CREATE] = 6, [MKDIR] = 1, [UNLINK] = 4,
				  [RENAME] = 2, [WHITEOUT] = 3, [CHGRP] = 2,
				  [XATTR] = 14, [WRITE] = 3, [FSYNC] = 6,
				  [SYNC] = 1, [WAIT] = 2 }, true },
	{ "reuse", 700, 5, { [CREATE] = 8, [UNLINK] = 8, [WRITE] = 10,
			     [RENAME] = 2, [FSYNC] = 4, [WAIT] = 2 }, true },
	{ "clean", 1200, 6, { [CREATE] = 2, [OVERWRITE] = 16, [WRITE] = 4,
			     [TRUNCATE] = 1, [UNLINK] = 1, [FSYNC] = 4,
			     [WAIT] = 1 }, false, 270 },
	{ "mixed", 500, 16, { [CREATE] = 4, [MKDIR] = 1, [LINK] = 1,
			      [UNLINK] = 3, [RMDIR] = 1, [RENAME] = 3,
			      [EXCHANGE] = 1, [TRUNCATE] = 2, [PUNCH] = 1,
			      [CHGRP] = 1, [XATTR] = 2, [WHITEOUT] = 1, [RESERVE] = 1,
			      [WRITE] = 8, [OVERWRITE] = 6,
			      [FSYNC] = 5, [SYNC] = 1, [WAIT] = 2 }, true },
};

struct mark {			/* after a step */
	u32 ops, changes, events;
};

struct run {
	const struct workload *w;
	struct memdev *dev, *base, *work, *again;
	struct rfs_fs *fs;
	struct oracle *o;
	u64 random;
	u32 dir[DIRS_MAX];	/* nodes */
	u32 dirs;
	struct mark *mark;
	u32 marks;
	u32 teeth;
	u32 rescan;
	struct rfs_policy policy;
	u64 points, recut;
	u64 older;		/* rescans that took the check-point before */
	u64 cut_ops;		/* sum of operations in flight */
};

static u32 pick(struct run *r, u32 n)
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
	if (r->w->reuse)
		r->fs->next_ino = 0;
	must("create", rfs_create(r->fs, ino_of(r, dir), name, &how, &ino));
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
	must("link", rfs_link(r->fs, ino_of(r, dir), name, ino_of(r, node)));
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
	if (!r->o->node[node].nlink && pick(r, 8))
		must("free", rfs_free_orphan(r->fs, ino_of(r, node)));
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
	must("unlink", rfs_unlink(r->fs, ino_of(r, name->dir), name->name,
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
	must("rename", rfs_rename(r->fs, ino_of(r, from_dir), old,
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
	must("exchange", rfs_rename(r->fs, ino_of(r, a->dir), a->name,
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
	must("whiteout", rfs_rename(r->fs, ino_of(r, from->dir), from->name,
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
	ret = rfs_xattr_set(r->fs, ino_of(r, name->child), oracle_xattr[which],
			    id ? value : NULL, id ? oracle_value(id, value) : 0,
			    0, 0);
	if (!id && !*had && ret == -ENODATA)
		return;
	must("xattr", ret);
	*had = id;
	changed(r, name->child);
}

static void do_truncate(struct run *r)
{
	struct name *name = any_file(r);
	struct event *e;
	bool grows;
	u64 size;

	if (!name || (r->w->slack && name->child == 1))
		return;
	size = pick(r, FILE_MAX * RFS_BLOCK_BYTES / 2);
	if (size % RFS_BLOCK_BYTES < 16 || pick(r, 3) == 0)
		size -= size % RFS_BLOCK_BYTES;
	grows = size > r->o->node[name->child].size;
	must("truncate", rfs_truncate(r->fs, ino_of(r, name->child), size,
				      grows));
	e = oracle_event(r->o, EV_SIZE, name->child);
	e->size = size;
	e->keep = grows;
	r->o->node[name->child].size = size;
	changed(r, name->child);
}

static void do_punch(struct run *r)
{
	struct name *name = any_file(r);
	struct event *e;
	u32 from = pick(r, FILE_MAX / 2), n = 1 + pick(r, 6);

	if (!name || (r->w->slack && name->child == 1))
		return;
	must("punch", rfs_punch(r->fs, ino_of(r, name->child), from,
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
	must("reserve", rfs_reserve(r->fs, ino, &at, from + n));
	e = oracle_event(r->o, EV_RESERVE, name->child);
	e->block = from;
	e->n = n;
	changed(r, name->child);
	if (pick(r, 3))
		return;
	must("zero", rfs_punch(r->fs, ino, from, from + n, true));
	e = oracle_event(r->o, EV_PUNCH, name->child);
	e->block = from;
	e->n = n;
	e->keep = true;
	changed(r, name->child);
}

static void do_chgrp(struct run *r)
{
	struct name *name = any_name(r, pick(r, 3) == 0);
	struct rfs_dinode attr, *di;
	struct rfs_buf *buf;

	if (!name)
		return;
	must("iget", rfs_iget(r->fs, ino_of(r, name->child), &di, &buf));
	attr = *di;
	r->o->node[name->child].gid = 1 + pick(r, 1000);
	attr.gid = cpu_to_le32(r->o->node[name->child].gid);
	must("setattr", rfs_setattr(r->fs, ino_of(r, name->child), &attr));
	changed(r, name->child);
}

static void write_blocks(struct run *r, u32 node, u64 block, u32 n, u32 len)
{
	static u8 content[16][RFS_BLOCK_BYTES];
	const void *data[16];
	struct event *e;
	u32 i;

	e = oracle_event(r->o, EV_WRITE, node);
	e->block = block;
	e->n = n;
	e->len = len;
	for (i = 0; i < n; i++) {
		oracle_pattern(r->o->events, block + i, content[i]);
		data[i] = content[i];
	}
	must("write", rfs_write(r->fs, ino_of(r, node), block, n, data, len));
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

static void do_fsync(struct run *r)
{
	struct name *name = any_name(r, pick(r, 6) == 0);

	if (!name)
		return;
	must("fsync", rfs_fsync(r->fs, ino_of(r, name->child)));
	oracle_promise(r->o, r->dev->ops, name->child,
		       r->o->node[name->child].changes);
}

static void step(struct run *r)
{
	u32 total = 0, at, i, changes = r->o->changes, events = r->o->events;
	u64 before = r->fs->stats.checkpoints;

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
	case XATTR:
		do_xattr(r);
		break;
	case TRUNCATE:
		do_truncate(r);
		break;
	case PUNCH:
		do_punch(r);
		break;
	case RESERVE:
		do_reserve(r);
		break;
	case CHGRP:
		do_chgrp(r);
		break;
	case WRITE:
	case OVERWRITE:
		do_write(r, i == OVERWRITE);
		break;
	case FSYNC:
		do_fsync(r);
		break;
	case SYNC:
		must("sync", rfs_checkpoint(r->fs, 0));
		break;
	case WAIT:
		must("wait", r->fs->ops->wait(r->dev));
		break;
	}
	/* a check-point on the way promises what was done before the step */
	if (r->fs->stats.checkpoints != before) {
		u32 all = r->o->events;

		r->o->events = events;
		oracle_promise(r->o, r->dev->ops, NEVER, changes);
		r->o->events = all;
	}
	r->mark[r->marks].ops = r->dev->ops;
	r->mark[r->marks].changes = r->o->changes;
	r->mark[r->marks++].events = r->o->events;
}

static void record(struct run *r, const struct rfs_geometry *geo)
{
	static const u8 uuid[16] = "crash harness 1";
	u32 i, fill;

	must("mkfs", rfs_mkfs(&memdev_ops, r->dev, geo, uuid, "crash"));
	must("mount", rfs_mount(&memdev_ops, r->dev, geo, false, r->teeth,
				&r->fs));
	rfs_policy_set(r->fs, &r->policy);
	r->o = oracle_new();
	r->o->nodes = 1;
	r->o->node[0].mode = S_IFDIR | 0755;
	r->o->node[0].nlink = 2;
	r->o->node[0].ino = RFS_ROOT_INO;
	r->dirs = 1;
	oracle_change(r->o);
	r->mark = calloc(r->w->steps + 1, sizeof(*r->mark));
	if (r->w->slack) {
		fill = (r->fs->user_blocks - r->fs->live - r->w->slack) / 4 * 4;
		/* node 1: blocks behind what is looked at, never rewritten */
		do_create(r, S_IFREG);
		for (i = 0; i < fill; i += 4) {
			write_blocks(r, 1, 64 + i, 4, RFS_BLOCK_BYTES);
			r->o->events--;
		}
		must("sync", rfs_checkpoint(r->fs, 0));
		r->o->node[1].size = 0;
		oracle_event(r->o, EV_SIZE, 1)->size =
			(64 + fill) * RFS_BLOCK_BYTES;
		r->o->event[0].change = 0;
	}
	oracle_promise(r->o, 0, NEVER, r->o->changes);
	r->dev->ops = 0;
	memdev_copy(r->base, r->dev);
	/* the arena of dev holds the pages of base: it is not copied */
	for (i = 0; i < r->w->steps; i++)
		step(r);
	if (r->dev->refused)
		die("too many zones open or active", r->dev->refused);
}

static char text[400];

static void say(void *arg, const char *what)
{
	(void)arg;
	if (!text[0])
		snprintf(text, sizeof(text), "fsck: %s", what);
}

static const char *check(struct rfs_fs *fs)
{
	struct rfs_report report = { .say = say, .read_data = true };
	int ret;

	text[0] = 0;
	ret = rfs_check(fs, &report);
	if (ret)
		snprintf(text, sizeof(text), "fsck fails with %d", ret);
	return text[0] ? text : NULL;
}

/*
 * Write on after a recovery, check-point, write more, and be cut once again
 * with all of it written: it must be there.
 */
static const char *write_on(struct run *r, struct memdev *dev,
			    struct rfs_fs **fs)
{
	const char *name = dev == r->again ? "after-2" : "after-1";
	struct rfs_new how = { .mode = S_IFREG | 0600, .uid = 0 };
	static u8 block[RFS_BLOCK_BYTES], got[RFS_BLOCK_BYTES];
	const void *data = block;
	const char *fault;
	u32 ino, i;
	int ret;

	memset(block, 0x77, sizeof(block));
	ret = rfs_create(*fs, RFS_ROOT_INO, name, &how, &ino);
	for (i = 0; !ret && i < 12; i++) {
		ret = rfs_write(*fs, ino, i * 3, 1, &data, RFS_BLOCK_BYTES);
		if (!ret && i == 8)
			ret = rfs_checkpoint(*fs, 0);
		fault = !ret && i == 8 ? check(*fs) : NULL;
		if (fault)
			return fault;
	}
	if (!ret)
		ret = rfs_fsync(*fs, ino);
	rfs_drop(*fs);
	*fs = NULL;
	if (!ret)
		ret = rfs_mount(&memdev_ops, dev, &r->dev->geo, false,
				r->teeth & ~RFS_TEETH_RESET, fs);
	if (!ret)
		ret = rfs_dir_find(*fs, RFS_ROOT_INO, name, 7, &ino);
	for (i = 0; !ret && i < 12; i++) {
		ret = rfs_read(*fs, ino, i * 3, got);
		if (!ret && memcmp(got, block, sizeof(got)))
			ret = -EIO;
	}
	if (!ret)
		return check(*fs);
	snprintf(text, sizeof(text), "writing on: %d", ret);
	return text;
}

/* Check-points are gone, and the inode map, if it is asked for. */
static void wipe(struct run *r, struct memdev *dev)
{
	u32 at;

	for (at = 0; at < RFS_CP_ZONES; at++) {
		memset(&dev->page[at * ZONE_BLOCKS], 0,
		       ZONE_BLOCKS * sizeof(*dev->page));
		dev->wp[at] = 0;
	}
	for (; r->rescan == 2 && at < ZONES * ZONE_BLOCKS; at++) {
		const struct rfs_head *head = (void *)dev->page[at].data;

		if (dev->page[at].state == MEM_OK && rfs_head_ok(head,
		    r->fs->volume, head->type) && head->type >= RFS_IMAP &&
		    head->type <= RFS_ZTAB)
			dev->page[at].state = MEM_TORN;
	}
}

static int rescan(struct run *r, struct memdev *dev, struct rfs_fs **fs)
{
	struct rfs_report report = { 0 };
	struct rfs_rescue rescue;
	bool mounted = r->points % 4 == 1;
	int ret = 0;

	/* what a check-point has left that was not finished misleads nobody */
	if (mounted)
		ret = rfs_mount(&memdev_ops, dev, &r->dev->geo, false, 0, fs);
	if (ret)
		return ret;
	if (mounted)
		rfs_drop(*fs);
	wipe(r, dev);
	ret = rfs_rescan(&memdev_ops, dev, &r->dev->geo, &report, &rescue, fs);
	r->older += rescue.older;
	if (!ret && rescue.damaged) {
		rfs_drop(*fs);
		ret = -EUCLEAN;
	}
	return ret;
}

/* Mount, check, ask the oracle; go on writing at some points. */
static const char *verify(struct run *r, struct memdev *dev, u32 ops,
			  const struct mark *mark, bool go_on)
{
	const char *fault;
	struct rfs_fs *fs;
	int ret;

	if (r->rescan)
		ret = rescan(r, dev, &fs);
	else
		ret = rfs_mount(&memdev_ops, dev, &r->dev->geo, false,
				r->teeth & ~RFS_TEETH_RESET, &fs);
	if (ret) {
		snprintf(text, sizeof(text), "%s fails with %d",
			 r->rescan ? "rescan" : "mount", ret);
		return text;
	}
	rfs_policy_set(fs, &r->policy);
	fault = check(fs);
	if (!fault)
		fault = oracle_check(r->o, fs, ops, mark->changes,
				     mark->events);
	if (!fault && go_on)
		fault = write_on(r, dev, &fs);
	if (!fault && dev->refused)
		fault = "too many zones open or active";
	if (fs)
		rfs_drop(fs);
	return fault;
}

/* State of page i of n that are in flight, in one of many ways. */
static u8 outcome(struct run *r, u32 way, u32 i, u32 n, u32 one)
{
	switch (way % 8) {
	case 0:
		return MEM_ABSENT;
	case 1:
		return MEM_OK;
	case 2:
		return i == one ? MEM_ABSENT : MEM_OK;
	case 3:
		return i == one ? MEM_TORN : MEM_OK;
	case 4:
		return pick(r, 3);
	case 5:
		return i == one ? MEM_OK : MEM_ABSENT;
	case 6:
		return pick(r, 8) ? MEM_OK : pick(r, 2);
	}
	return i == n - 1 ? MEM_TORN : MEM_OK;
}

/* What was in flight or volatile after `ops` operations: from here on. */
static u32 first_open(const struct memdev *dev, u32 ops)
{
	enum mem_op_type type = dev->geo.volatile_cache ? MEM_FLUSH : MEM_WAIT;

	while (ops && dev->op[ops - 1].type != type)
		ops--;
	return ops;
}

static void cut(struct run *r, struct memdev *to, const struct memdev *notes,
		u32 from, u32 ops, u32 way, u32 nth)
{
	u32 i, n = 0, at = 0;

	for (i = from; i < ops; i++)
		n += notes->op[i].type == MEM_APPEND;
	r->cut_ops += n;
	for (i = from; i < ops; i++) {
		u8 state = MEM_OK;

		if (notes->op[i].type == MEM_APPEND)
			state = outcome(r, way, at++, n, n ? nth % n : 0);
		memdev_replay(to, &notes->op[i], state);
	}
}

/* Cut recovery itself, or what was written after it, and recover. */
static const char *cut_again(struct run *r, u32 ops, const struct mark *mark,
			     u32 way)
{
	u32 at = r->work->ops ? pick(r, r->work->ops) : 0;
	u32 open = first_open(r->work, at), i;

	for (i = 0; i < open; i++)
		memdev_replay(r->again, &r->work->op[i], MEM_OK);
	cut(r, r->again, r->work, open, at, way, pick(r, 64));
	r->recut++;
	return verify(r, r->again, ops, mark, true);
}

static const char *point(struct run *r, u32 from, u32 ops, u32 way, u32 nth,
			 const struct mark *mark)
{
	bool twice = r->points % 8 == 3 && r->rescan != 2;
	const char *fault;

	memdev_copy(r->work, r->base);
	cut(r, r->work, r->dev, from, ops, way, nth);
	if (twice)
		memdev_copy(r->again, r->work);
	if (twice && r->rescan)
		wipe(r, r->again);	/* as it is when the rescan begins */
	fault = verify(r, r->work, ops, mark, r->points % 4 == 3);
	if (!fault && twice)
		fault = cut_again(r, ops, mark, way + 1);
	r->points++;
	return fault;
}

static const char *cut_everywhere(struct run *r, u32 points)
{
	u32 ops, done = 0, mark = 0, way, ways;
	const char *fault;

	/* done: operations that base has */
	for (ops = 1; ops <= r->dev->ops; ops++) {
		u32 open = first_open(r->dev, ops);
		u64 want = (u64)points * ops / r->dev->ops;

		for (; done < open; done++)
			memdev_replay(r->base, &r->dev->op[done], MEM_OK);
		while (mark + 1 < r->marks && r->mark[mark].ops < ops)
			mark++;
		ways = want > r->points ? want - r->points : 0;
		if (r->rescan == 2 && r->mark[mark].ops != ops)
			ways = 0;	/* a check-point may be under way */
		for (way = 0; way < ways; way++) {
			u32 kind = ways >= 8 ? way : pick(r, 8);

			fault = point(r, open, ops, kind, pick(r, 4096),
				      &r->mark[mark]);
			if (fault) {
				printf("%s: after operation %u of %u, way %u: %s\n",
				       r->w->name, ops, r->dev->ops, kind,
				       fault);
				return fault;
			}
		}
	}
	return NULL;
}

static u32 teeth(int argc, char **argv)
{
	int i;

	for (i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "teeth=transaction"))
			return RFS_TEETH_TXN;
		if (!strcmp(argv[i], "teeth=reset"))
			return RFS_TEETH_RESET;
		if (!strcmp(argv[i], "teeth=tombstone"))
			return RFS_TEETH_TOMB;
	}
	return 0;
}

int main(int argc, char **argv)
{
	u64 points = option(argc, argv, "points", 10000);
	struct rfs_geometry geo = {
		.zones = ZONES, .zone_blocks = ZONE_BLOCKS,
		.oob_bytes = option(argc, argv, "oob", 64),
		.volatile_cache = option(argc, argv, "volatile", 0),
		.max_open = option(argc, argv, "open", 0),
		.max_active = option(argc, argv, "active", 0),
	};
	struct run r = { .random = option(argc, argv, "seed", 1) * 77777 + 1,
			 .teeth = teeth(argc, argv),
			 .rescan = option(argc, argv, "rescan", 0),
			 .policy = {
				.groups = option(argc, argv, "groups", 4),
				.gc = option(argc, argv, "gc", 0),
				.quantize = option(argc, argv, "quantize", 0) },
	};
	struct timespec start, end;
	const char *fault;
	double seconds;
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(workloads) / sizeof(*workloads); i++)
		if (!strcmp(argv[1], workloads[i].name))
			r.w = &workloads[i];
	if (!r.w) {
		fprintf(stderr, "crash: WORKLOAD must be one of:");
		for (i = 0; i < sizeof(workloads) / sizeof(*workloads); i++)
			fprintf(stderr, " %s", workloads[i].name);
		fprintf(stderr, "\n");
		return 2;
	}
	r.dev = memdev_new(&geo, ZONE_CAP, ARENA, true);
	r.base = memdev_new(&geo, ZONE_CAP, 1, false);
	r.work = memdev_new(&geo, ZONE_CAP, 16 << 20, true);
	r.again = memdev_new(&geo, ZONE_CAP, 16 << 20, false);
	record(&r, &geo);
	clock_gettime(CLOCK_MONOTONIC, &start);
	fault = cut_everywhere(&r, points);
	clock_gettime(CLOCK_MONOTONIC, &end);
	seconds = end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9;
	if (r.rescan)
		printf("%llu of them with the check-point before the last; ",
		       (unsigned long long)r.older);
	printf("%s: %u operations, %llu points, %llu cut twice, %.1f blocks in flight, %llu check-points, %llu copied, %llu resets, %.0f points/s: %s\n",
	       r.w->name, r.dev->ops, (unsigned long long)r.points,
	       (unsigned long long)r.recut,
	       (double)r.cut_ops / (r.points ? r.points : 1),
	       (unsigned long long)r.fs->stats.checkpoints,
	       (unsigned long long)r.fs->stats.copied,
	       (unsigned long long)r.fs->stats.resets, r.points / seconds,
	       fault ? "FAILED" : "ok");
	rfs_drop(r.fs);
	oracle_free(r.o);
	free(r.mark);
	memdev_free(r.dev);
	memdev_free(r.base);
	memdev_free(r.work);
	memdev_free(r.again);
	return fault ? 1 : 0;
}
