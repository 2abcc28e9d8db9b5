// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every allocation of the core fails in turn. An operation then succeeds or
 * fails as a whole; the volume goes on or only reads; what was promised is
 * there after the next mount, and fsck finds nothing.
 *
 *	nomem [steps=N] [oob=0|64] [burst=N] [seed=N]
 *
 * One run for each allocation that the workload makes; from there on `burst`
 * fail. Prints one line; exit status 1 at the first run that is not right.
 */
#include <stdio.h>

#include "memdev.h"
#include "option.h"
#include "tree/tree.h"
#include "tree/dir.h"
#include "tree/xattr.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define ZONES		24
#define ZONE_CAP	62
#define ZONE_BLOCKS	64
#define FILES		10
#define BLOCKS		24	/* of a file at most */

void *__real_rfs_alloc(size_t bytes);
void *__wrap_rfs_alloc(size_t bytes);
void *__real_rfs_alloc_raw(size_t bytes);
void *__wrap_rfs_alloc_raw(size_t bytes);

static u64 allocs, fail_from, fail_to;
static bool failing;		/* allocations count and may fail */

static bool fails(void)
{
	return failing && allocs++ >= fail_from && allocs <= fail_to;
}

void *__wrap_rfs_alloc(size_t bytes)
{
	return fails() ? NULL : __real_rfs_alloc(bytes);
}

void *__wrap_rfs_alloc_raw(size_t bytes)
{
	return fails() ? NULL : __real_rfs_alloc_raw(bytes);
}

struct file {
	bool there;
	u32 blocks;		/* its size */
	u32 id[BLOCKS];		/* of what is in a block; 0: a hole */
	u32 small[BLOCKS];	/* of bytes that were written later; 0: none */
	u32 xattr;		/* bytes of its attribute; 0: none */
};

struct model {
	struct file file[FILES];
};

static struct rfs_geometry geo = {
	.zones = ZONES, .zone_blocks = ZONE_BLOCKS, .oob_bytes = 64,
};
static struct memdev *dev;
static struct rfs_fs *fs;
static u64 seed, draws;
static u32 ids;

static u32 pick(u32 n)
{
	draws = draws * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(draws >> 33) % n;
}

static void name_of(u32 nr, char *name)
{
	sprintf(name, "file-%u", nr);
}

static void pattern(u32 id, u8 *data)
{
	memset(data, id ? id % 251 + 1 : 0, RFS_BLOCK_BYTES);
	memcpy(data, &id, sizeof(id));
}

/* Where a few bytes of a block are written by themselves */
#define SMALL_AT	200
#define SMALL_BYTES	300

static void small_pattern(u32 id, u8 *data)
{
	memset(data, id % 251 + 1, SMALL_BYTES);
	memcpy(data, &id, sizeof(id));
}

/* Blocks from..to - 1 of the model are something else, or nothing */
static void forget_blocks(struct file *file, u32 from, u32 to)
{
	for (; from < to; from++) {
		file->id[from] = 0;
		file->small[from] = 0;
	}
}

static int mount(void)
{
	int ret = rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs);

	if (ret)
		fs = NULL;
	return ret;
}

static int find(u32 nr, u32 *ino)
{
	char name[32];

	name_of(nr, name);
	return rfs_dir_find(fs, RFS_ROOT_INO, name, strlen(name), ino);
}

/* Does the volume hold what the model says? */
static bool holds(const struct model *model)
{
	u8 want[RFS_BLOCK_BYTES], got[RFS_BLOCK_BYTES];
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 nr, i, ino;

	for (nr = 0; nr < FILES; nr++) {
		const struct file *file = &model->file[nr];

		if (find(nr, &ino) != (file->there ? 0 : -ENOENT))
			return false;
		if (!file->there)
			continue;
		if (rfs_iget(fs, ino, &di, &buf) ||
		    le64_to_cpu(di->size) != file->blocks * RFS_BLOCK_BYTES)
			return false;
		if (rfs_xattr_get(fs, ino, "user.a", got, sizeof(got)) !=
		    (file->xattr ? (int)file->xattr : -ENODATA))
			return false;
		for (i = 0; i < file->blocks; i++) {
			pattern(file->id[i], want);
			if (file->small[i])
				small_pattern(file->small[i], want + SMALL_AT);
			if (rfs_read(fs, ino, i, got) ||
			    memcmp(got, want, sizeof(got)))
				return false;
		}
	}
	return true;
}

static int op_create(struct model *m, u32 nr)
{
	struct rfs_new how = { .mode = S_IFREG | 0600 };
	char name[32];
	u32 ino;
	int ret;

	if (m->file[nr].there)
		return 0;
	memset(&m->file[nr], 0, sizeof(m->file[nr]));
	m->file[nr].there = true;
	name_of(nr, name);
	ret = rfs_create(fs, RFS_ROOT_INO, name, &how, &ino);
	return ret ? ret : rfs_fsync(fs, ino);
}

static int op_unlink(struct model *m, u32 nr)
{
	char name[32];
	u32 ino;
	int ret;

	if (!m->file[nr].there)
		return 0;
	m->file[nr].there = false;
	name_of(nr, name);
	ret = rfs_unlink(fs, RFS_ROOT_INO, name, &ino);
	if (!ret)
		ret = rfs_free_orphan(fs, ino);
	return ret ? ret : rfs_log_sync(fs);
}

static int op_rename(struct model *m, u32 nr)
{
	u32 to = pick(FILES), ino;
	char from_name[32], to_name[32];
	bool over = m->file[to].there;
	int ret = 0;

	if (!m->file[nr].there || to == nr)
		return 0;
	if (over)
		ret = find(to, &ino);
	if (ret)
		return ret;
	m->file[to] = m->file[nr];
	m->file[nr].there = false;
	name_of(nr, from_name);
	name_of(to, to_name);
	ret = rfs_rename(fs, RFS_ROOT_INO, from_name, RFS_ROOT_INO, to_name,
			 0, NULL);
	if (!ret && over)
		ret = rfs_free_orphan(fs, ino);
	return ret ? ret : rfs_log_sync(fs);
}

static int op_truncate(struct model *m, u32 nr)
{
	struct file *file = &m->file[nr];
	u32 blocks = pick(BLOCKS), ino;
	int ret = file->there ? find(nr, &ino) : -ENOENT;

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	forget_blocks(file, blocks, BLOCKS);
	file->blocks = blocks;
	ret = rfs_truncate(fs, ino, blocks * RFS_BLOCK_BYTES, false);
	return ret ? ret : rfs_fsync(fs, ino);
}

static int op_punch(struct model *m, u32 nr)
{
	struct file *file = &m->file[nr];
	u32 from = pick(BLOCKS / 2), to = from + 1 + pick(BLOCKS / 2), ino;
	int ret = file->there ? find(nr, &ino) : -ENOENT;

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	forget_blocks(file, from, to);
	ret = rfs_punch(fs, ino, from, to, false);
	return ret ? ret : rfs_fsync(fs, ino);
}

/* What is not written is a hole as before: only the memory may lack. */
static int op_reserve(struct model *m, u32 nr)
{
	u64 from = pick(BLOCKS), to = from + 1 + pick(600);
	u32 ino;
	int ret = m->file[nr].there ? find(nr, &ino) : -ENOENT;

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	ret = rfs_preallocate(fs, ino, &from, to);
	if (ret)
		return ret == -ENOSPC ? 0 : ret;
	return rfs_fsync(fs, ino);
}

static int op_xattr(struct model *m, u32 nr)
{
	u32 bytes = pick(3) ? 1 + pick(2000) : 0, ino;
	static const u8 value[2000];
	int ret = m->file[nr].there ? find(nr, &ino) : -ENOENT;

	if (ret || (!bytes && !m->file[nr].xattr))
		return ret == -ENOENT ? 0 : ret;
	m->file[nr].xattr = bytes;
	ret = rfs_xattr_set(fs, ino, "user.a", bytes ? value : NULL, bytes, 0,
			    0);
	return ret ? ret : rfs_fsync(fs, ino);
}

static int op_write(struct model *m, u32 nr)
{
	struct file *file = &m->file[nr];
	u32 n = 1 + pick(6), from = pick(BLOCKS - n), i, ino;
	static u8 content[6][RFS_BLOCK_BYTES];
	const void *data[6];
	int ret = file->there ? find(nr, &ino) : -ENOENT;

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	for (i = 0; i < n; i++) {
		file->id[from + i] = ++ids;
		file->small[from + i] = 0;
		pattern(ids, content[i]);
		data[i] = content[i];
	}
	file->blocks = max(file->blocks, from + n);
	ret = rfs_write(fs, ino, from, n, data, RFS_BLOCK_BYTES);
	return ret ? ret : rfs_fsync(fs, ino);
}

static int op_small(struct model *m, u32 nr)
{
	struct file *file = &m->file[nr];
	u32 at = file->blocks ? pick(file->blocks) : 0, ino;
	u8 bytes[SMALL_BYTES];
	int ret = file->there && file->blocks ? find(nr, &ino) : -ENOENT;

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	file->small[at] = ++ids;
	small_pattern(ids, bytes);
	ret = rfs_write_bytes(fs, ino, at * RFS_BLOCK_BYTES + SMALL_AT, bytes,
			      sizeof(bytes));
	return ret ? ret : rfs_fsync(fs, ino);
}

static int op_clean(void)
{
	int ret = rfs_clean(fs, RFS_CLEAN_HARD);

	if (!ret || ret == -ENOENT)
		ret = rfs_checkpoint(fs, 0);
	return ret;
}

static int op_remount(void)
{
	int ret = rfs_unmount(fs);

	fs = NULL;
	return ret ? ret : mount();
}

/* The model is as it will be if the step succeeds. */
static int step(struct model *m)
{
	u32 what = pick(44), nr = pick(FILES);

	if (what < 8)
		return op_create(m, nr);
	if (what < 11)
		return op_unlink(m, nr);
	if (what < 14)
		return op_rename(m, nr);
	if (what < 17)
		return op_truncate(m, nr);
	if (what < 19)
		return op_punch(m, nr);
	if (what < 20)
		return op_reserve(m, nr);
	if (what < 21)
		return op_remount();
	if (what < 22)
		return op_clean();
	if (what < 23)
		return rfs_checkpoint(fs, 0);
	if (what < 27)
		return op_xattr(m, nr);
	if (what < 32)
		return op_small(m, nr);
	return op_write(m, nr);
}

static char text[400];

static void say(void *arg, const char *what)
{
	(void)arg;
	if (!text[0])
		snprintf(text, sizeof(text), "fsck: %s", what);
}

static const char *check(void)
{
	struct rfs_report report = { .say = say, .read_data = true };

	text[0] = 0;
	if (rfs_check(fs, &report))
		return "fsck fails";
	return text[0] ? text : NULL;
}

/* After an error: one of the two states, here or after the next mount. */
static const char *settle(struct model *before, struct model *after)
{
	bool again = !fs || fs->read_only;
	const char *fault;

	if (again) {
		if (fs)
			rfs_unmount_nosync(fs);
		if (mount())
			return "the next mount fails";
		fault = check();
		if (fault)
			return fault;
	}
	if (!holds(after)) {
		*after = *before;
		if (!holds(before))
			return again ? "neither before nor after a mount" :
				       "neither before nor after";
	}
	/* what failed may have been the fsync */
	return rfs_log_sync(fs) ? "the log cannot be written" : NULL;
}

struct tally {
	u64 runs, failed, errors, read_only;
};

static const char *run(u32 steps, struct tally *tally)
{
	static const struct rfs_id id = { "no memory left", "a key for hashes",
						  "a key to be safe", true, 1,
						  true };
	struct model model = { 0 }, before;
	const char *fault = NULL;
	u32 i;

	dev = memdev_new(&geo, ZONE_CAP, 64 << 20, false);
	draws = seed;
	ids = 0;
	fs = NULL;
	if (rfs_mkfs(&memdev_ops, dev, &geo, &id, "") || mount() ||
	    rfs_quota_on(fs))	/* and so it is at the next mounts */
		return "mkfs or mount fails";
	for (i = 0; !fault && i < steps; i++) {
		int ret;

		before = model;
		failing = true;
		ret = step(&model);
		failing = false;
		if (!ret)
			continue;
		tally->errors++;
		tally->read_only += !fs || fs->read_only;
		fault = settle(&before, &model);
	}
	if (!fault && rfs_unmount(fs))
		fault = "unmount fails";
	fs = NULL;
	if (!fault && mount())
		fault = "the last mount fails";
	if (!fault)
		fault = check();
	if (!fault && !holds(&model))
		fault = "not what was promised";
	if (fs)
		rfs_unmount_nosync(fs);
	memdev_free(dev);
	return fault;
}

int main(int argc, char **argv)
{
	struct option opt[] = {
		{ "steps", 150, 1, 1ULL << 40, "changes of a volume" },
		{ "burst", 1, 1, 1ULL << 40, "allocations that fail in turn" },
		{ "oob", 64, 0, 128, "bytes of page metadata" },
		{ "seed", 1, 0, 1ULL << 40, "of all that is random" },
		{ 0 }
	};
	u64 steps, burst, at;
	const char *fault = NULL;
	struct tally tally = { 0 };

	options(argc, argv, 1, "usage: nomem [NAME=N]...", opt);
	steps = opt[0].value;
	burst = opt[1].value;
	geo.oob_bytes = opt[2].value;
	seed = opt[3].value * 77777 + 1;
	for (at = 0; !fault; at++) {
		allocs = 0;
		fail_from = at;
		fail_to = at + burst;
		fault = run(steps, &tally);
		tally.runs++;
		if (fault)
			printf("allocation %llu: %s\n", (unsigned long long)at,
			       fault);
		else if (allocs <= at)
			break;
	}
	printf("%llu runs, %llu errors, %llu made the volume read-only: %s\n",
	       (unsigned long long)tally.runs,
	       (unsigned long long)tally.errors,
	       (unsigned long long)tally.read_only, fault ? "FAILED" : "ok");
	fflush(stdout);	/* a leak ends the program before it would be */
	return fault ? 1 : 0;
}
