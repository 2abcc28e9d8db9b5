// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What depends on the number of zones, in CPU time: opening a zone, choosing victims, a
 * check-point; and the memory that a mounted volume takes, without its caches.
 *
 *	zones [zones=N] [cap=N] ...
 *
 * The drive keeps what is written, and nothing else. Most zones are said to be full, with
 * some blocks in use, as if they had been written: nobody reads them. Between two choices
 * of a victim `changes` blocks of zones that are drawn at random die, and between two
 * check-points `writes` blocks of a file are overwritten. Of each figure the median of
 * `rounds` is printed.
 */
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include "memdev.h"
#include "option.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "space/rank.h"
#include "space/space.h"
#include "ops/ops.h"
#include "tools/tools.h"

enum { ZONES, CAP, GC, QUANTIZE, CHANGES, WRITES, ROUNDS, SCAN, CHECK, OPTIONS };

static struct option opt[OPTIONS + 1] = {
	[ZONES] = { "zones", 256, 64, 1 << 20, "of the drive" },
	[CAP] = { "cap", 16384, 64, 1 << 20, "4 KiB blocks of each" },
	[GC] = { "gc", RFS_GC_COST_BENEFIT, 0, RFS_GCS - 1, "as crash has it" },
	[QUANTIZE] = { "quantize", RFS_Q_BALANCED, 0, RFS_QUANTIZES - 1, "as crash has it" },
	[CHANGES] = { "changes", 100, 0, 1 << 20, "blocks that die before a choice" },
	[WRITES] = { "writes", 1024, 1, 65536, "blocks written before a check-point" },
	[ROUNDS] = { "rounds", 31, 1, 1001, "of each figure" },
	[SCAN] = { "scan", 0, 0, 1, "1: choose by a look at each zone" },
	[CHECK] = { "check", 0, 0, 1, "1: mount again, with a damaged check-point, too" },
};

#define FILE_BLOCKS	65536
#define GROUPS		6	/* two more than rfs_close_groups() leaves open */

#define CHUNK	64	/* pages: a zone takes memory for as many at a time */

struct page {
	u8 data[RFS_BLOCK_BYTES];
	struct rfs_oob oob;
};

static struct {
	struct rfs_geometry geo;
	struct page **chunk;	/* of all zones; NULL: not written */
	u32 *wp;
	u64 time;
	u64 ns;			/* that it took to append */
} drive;

static struct rfs_fs *fs;
static u32 ino;
static u64 allocated;	/* bytes */

void *__real_rfs_alloc(size_t bytes);
void *__wrap_rfs_alloc(size_t bytes);
void *__real_rfs_alloc_raw(size_t bytes);
void *__wrap_rfs_alloc_raw(size_t bytes);
void __real_rfs_free(void *memory);
void __wrap_rfs_free(void *memory);

static void *count(void *memory)
{
	allocated += malloc_usable_size(memory);
	return memory;
}

void *__wrap_rfs_alloc(size_t bytes)
{
	return count(__real_rfs_alloc(bytes));
}

void *__wrap_rfs_alloc_raw(size_t bytes)
{
	return count(__real_rfs_alloc_raw(bytes));
}

void __wrap_rfs_free(void *memory)
{
	allocated -= malloc_usable_size(memory);
	__real_rfs_free(memory);
}

static void must(const char *what, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "zones: %s: error %d\n", what, -ret);
	exit(1);
}

static void *get(size_t bytes)
{
	void *memory = calloc(1, bytes);

	must("memory", memory ? 0 : -ENOMEM);
	return memory;
}

static struct page *page_at(u64 addr, bool make)
{
	struct page **chunk = &drive.chunk[addr / CHUNK];

	if (!*chunk && make)
		*chunk = get(CHUNK * sizeof(**chunk));
	return *chunk ? *chunk + addr % CHUNK : NULL;
}

/* CPU time but for what the drive takes */
static u64 cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec - drive.ns;
}

static int drive_append(void *dev, u32 nr, u32 blocks, const void *const *data,
			const struct rfs_oob *oob, u64 *addr)
{
	u64 begun = cpu_ns();
	u32 i;

	(void)dev;
	if (drive.wp[nr] + blocks > opt[CAP].value)
		return -ENOSPC;
	*addr = (u64)nr * drive.geo.zone_blocks + drive.wp[nr];
	for (i = 0; i < blocks; i++) {
		struct page *page = page_at(*addr + i, true);

		memcpy(page->data, data[i], RFS_BLOCK_BYTES);
		page->oob = oob[i];
	}
	drive.wp[nr] += blocks;
	drive.ns += cpu_ns() - begun;
	return 0;
}

static int drive_read(void *dev, u64 addr, void *data, struct rfs_oob *oob)
{
	const struct page *page = page_at(addr, false);

	(void)dev;
	if (!page)
		return -EIO;
	memcpy(data, page->data, RFS_BLOCK_BYTES);
	if (oob)
		*oob = page->oob;
	return 0;
}

static int drive_reset(void *dev, u32 nr)
{
	(void)dev;
	drive.wp[nr] = 0;
	return 0;
}

static int drive_done(void *dev)
{
	(void)dev;
	return 0;
}

static int drive_report(void *dev, u32 nr, struct rfs_dev_zone *out)
{
	(void)dev;
	out->cap = opt[CAP].value;
	out->wp = drive.wp[nr];
	out->cond = RFS_DEV_OK;
	return 0;
}

static u64 drive_now(void *dev)
{
	(void)dev;
	return drive.time += 1000000;
}

static const struct rfs_dev_ops drive_ops = {
	.append = drive_append, .wait = drive_done, .flush = drive_done,
	.read = drive_read, .reset = drive_reset, .report = drive_report,
	.now = drive_now,
};

static u64 draws = 1;

static u32 draw(u32 n)
{
	draws = draws * 6364136223846793005ULL + 1442695040888963407ULL;
	return (draws >> 33) % n;
}

static int by_size(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The median of what takes so many ns in each round */
static u64 median(u64 (*measure)(void))
{
	u64 *ns = get(opt[ROUNDS].value * sizeof(*ns)), found;
	u32 i;

	for (i = 0; i < opt[ROUNDS].value; i++)
		ns[i] = measure();
	qsort(ns, opt[ROUNDS].value, sizeof(*ns), by_size);
	found = ns[opt[ROUNDS].value / 2];
	free(ns);
	return found;
}

static u64 make_volume(void)
{
	struct rfs_id id = { .uuid = "zones" };
	u64 begun;

	drive.geo.zones = opt[ZONES].value;
	for (drive.geo.zone_blocks = 1; drive.geo.zone_blocks < opt[CAP].value;)
		drive.geo.zone_blocks *= 2;
	drive.geo.oob_bytes = RFS_OOB_BYTES;
	drive.chunk = get((u64)drive.geo.zones * drive.geo.zone_blocks /
			  CHUNK * sizeof(*drive.chunk));
	drive.wp = get(drive.geo.zones * sizeof(*drive.wp));
	must("mkfs", rfs_mkfs(&drive_ops, NULL, &drive.geo, &id, ""));
	begun = cpu_ns();
	must("mount", rfs_mount(&drive_ops, NULL, &drive.geo, false, 0, &fs));
	return cpu_ns() - begun;
}

/* Seven of eight zones have been written, some years ago or just now. */
static void fill_zones(void)
{
	u64 now;
	u32 nr;

	drive.time += 100000000ULL * 1000000000ULL;
	now = rfs_now(fs);
	for (nr = RFS_CP_ZONES; nr < drive.geo.zones; nr++) {
		struct rfs_zone_info *z = &fs->zone[nr];

		if (z->state != RFS_Z_FREE || !draw(8))
			continue;
		z->state = RFS_Z_USED;
		z->stream = RFS_S_DATA + draw(4);
		z->wp = z->cap;
		drive.wp[nr] = z->cap;
		z->live = 1 + draw(z->cap * 8 / 10);
		z->last = now >> draw(24);
		z->sum_time = z->last * z->live;
		z->sum_wcount = 2ULL * z->live;
		fs->live += z->live;
		fs->data_live += z->live;
		fs->free_zones--;
	}
	rfs_all_zones_changed(fs);
}

static void put(u32 block)
{
	static u8 data[RFS_BLOCK_BYTES];
	const void *at = data;

	must("write", rfs_write(fs, ino, block, 1, &at, RFS_BLOCK_BYTES));
}

static void make_file(void)
{
	struct rfs_new file = { .mode = S_IFREG | 0600 };
	u32 i;

	must("create", rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino));
	for (i = 0; i < FILE_BLOCKS; i++)
		put(i);
	must("check-point", rfs_checkpoint(fs, 0));
}

static void remount(const char *what)
{
	struct rfs_report report = { 0 };

	rfs_unmount_nosync(fs);
	must(what, rfs_mount(&drive_ops, NULL, &drive.geo, false, 0, &fs));
	must(what, rfs_check(fs, &report));
	must(what, report.faults ? -EUCLEAN : 0);
}

/* What is mounted is what was written; the check-point before, where one is damaged. */
static void check(void)
{
	u64 seq;
	u32 i;

	remount("mount again");
	must("check-point", rfs_checkpoint(fs, 0));
	seq = fs->cp_seq;
	put(1);
	must("check-point", rfs_checkpoint(fs, 0));
	/* its first block, and the one that all others are found by stays */
	for (i = 0; i < RFS_CP_MIRRORS; i++) {
		u32 nr = fs->cp_mirror[i], at = drive.wp[nr];
		u64 addr = (u64)nr * drive.geo.zone_blocks + at;

		page_at(addr - fs->listed.count, false)->data[100] ^= 1;
	}
	remount("mount with a damaged check-point");
	/* mounting has written one more */
	must("the check-point before", fs->cp_seq != seq + 1 ? -EUCLEAN : 0);
}

static u64 checkpoint(void)
{
	u64 begun;
	u32 i;

	for (i = 0; i < opt[WRITES].value; i++)
		put(draw(FILE_BLOCKS));
	begun = cpu_ns();
	must("check-point", rfs_checkpoint(fs, 0));
	return cpu_ns() - begun;
}

/* With its first block, to a group that has no zone */
static u64 open_zone(void)
{
	static u8 data[RFS_BLOCK_BYTES];
	struct rfs_oob oob = { .type = RFS_DATA };
	const void *at = data;
	u64 begun, addr;

	rfs_close_groups(fs);
	begun = cpu_ns();
	must("append", rfs_append(fs, RFS_S_DATA + GROUPS - 1, 1, &at, &oob,
				  &addr));
	return cpu_ns() - begun;
}

static u64 choose(void)
{
	u64 begun, now = rfs_now(fs);
	u32 i, nr;

	for (i = 0; i < opt[CHANGES].value;) {
		nr = draw(drive.geo.zones);
		if (fs->zone[nr].state != RFS_Z_USED || fs->zone[nr].live < 2)
			continue;
		must("count", rfs_count_live(fs, (u64)nr * drive.geo.zone_blocks,
					     -1, NULL));
		fs->data_live--;
		i++;
	}
	begun = cpu_ns();
	nr = opt[SCAN].value ? rfs_victim_scan(fs, RFS_CLEAN_NOW, now, RFS_ALL_WAYS) :
			       rfs_victim(fs, RFS_CLEAN_NOW, now, RFS_ALL_WAYS);
	must("victim", nr ? 0 : -ENOENT);
	return cpu_ns() - begun;
}

static void show(const char *name, u64 value)
{
	printf("\"%s\": %llu, ", name, (unsigned long long)value);
}

int main(int argc, char **argv)
{
	struct rfs_policy policy = { .groups = GROUPS };
	u64 blocks;

	options(argc, argv, 1, "usage: zones [NAME=N]...", opt);
	/* memory that is free stays here: to get it back is not what is asked */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 16 << 20);
	policy.gc = opt[GC].value;
	policy.quantize = opt[QUANTIZE].value;
	printf("{");
	show("mount_ns", make_volume());
	/* beside that, where the summaries of zones are that are written now */
	show("most_bytes", allocated + 4ULL * RFS_SUMS_NOTED);
	make_file();
	if (opt[CHECK].value)
		check();
	rfs_policy_set(fs, &policy);
	fill_zones();
	blocks = fs->stats.written[RFS_CP];
	show("checkpoint_ns", median(checkpoint));
	blocks = fs->stats.written[RFS_CP] - blocks;
	show("open_ns", median(open_zone));
	show("choose_ns", median(choose));
	printf("\"checkpoint_blocks\": %.1f}\n",
	       (double)blocks / opt[ROUNDS].value);
	rfs_unmount_nosync(fs);
	return 0;
}
