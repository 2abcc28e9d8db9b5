// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much cleaning copies on a drive of so many channels and ways (RISA 4.5, figure
 * 14): with zones of one flash block of each, or of one of each channel of a way,
 * over which groups are striped.
 *
 *	copies [channels=N] [ways=N] [striped=1] [uniform=1] [runs=1] [seed=N] ...
 *
 * The drive has blocks of 128 pages, as RISA's. A file has `fill` percent of it, and
 * is overwritten as OLTP does (host/tools/sfssim), or anywhere, in units of 4 KiB: `age`
 * times as many blocks as it has, then `writes` percent of them, which count. Prints the
 * blocks that were written, those that were copied, all that were programmed, the zones,
 * and how many of them groups had open on average.
 *
 * With moves=N it also prints what check-points wrote for leaves of files while it counts, and what
 * they would have if they kept moves (moves.h). With sparse=1 each block is alone in its leaf.
 *
 * With set=N it is as sfssim says: of the blocks that are no summaries `fill` percent are
 * filled, and N percent of them, a file of their own, are overwritten by Zipf through a page
 * cache, while all percents are of the volume. It prints of the whole rounds of cleaning
 * while it counts the first write, blocks written and copied, and how many rounds there were,
 * and how many zones data did not have.
 */
#include <stdio.h>

#include "bare.h"
#include "option.h"
#include "cache.h"
#include "moves.h"
#include "work.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "space/space.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define PAGES	128	/* of a flash block */

enum {
	CHANNELS, WAYS, STRIPED, MIB, FILL, AGE, WRITES, UNIFORM, RUNS, SEED,
	SET, GROUPS, MOVES, SPARSE, OPTIONS
};

static struct option opt[OPTIONS + 1] = {
	[CHANNELS] = { "channels", 4, 1, 64, "of the drive" },
	[WAYS] = { "ways", 2, 1, RFS_WAYS_MAX, "of each" },
	[STRIPED] = { "striped", 0, 0, 1, "1: a zone is on one way" },
	[MIB] = { "mib", 8192, 256, 1 << 20, "flash, in MiB" },
	[FILL] = { "fill", 70, 1, 99, "percent that the file has" },
	[AGE] = { "age", 100, 0, 10000, "percent of it written before" },
	[WRITES] = { "writes", 50, 1, 10000, "percent of it that count" },
	[UNIFORM] = { "uniform", 0, 0, 1, "1: any block, and not as OLTP" },
	[RUNS] = { "runs", 0, 0, 1, "1: leaves are runs where they can be" },
	[SEED] = { "seed", 1, 0, 1ULL << 40, "of what is written" },
	[SET] = { "set", 0, 0, 98, "percent that is written again, by Zipf; 0: all" },
	[GROUPS] = { "groups", 4, 1, RFS_GROUPS_MAX, "of hotness" },
	[MOVES] = { "moves", 0, 0, 1 << 20, "blocks of them in memory at most; 0: none is counted" },
	[SPARSE] = { "sparse", 0, 0, 1, "1: each block has a leaf, and leaves are filled, too" },
};

#define THETA		0.99	/* of Zipf; SFS 4.1 */
#define CACHE(blocks)	((blocks) / 200)	/* that may be dirty in a page cache */

static struct rfs_fs *fs;
static u32 ino;

/* What was done when a round of cleaning had ended, or the state between two of them */
static struct round {
	u64 writes, copies, n;
	u64 free, samples;	/* zones, each time a block was written */
} round, first;

static u64 writes;		/* after what was filled */
static struct rfs_dev_ops ops;
static bool counts;

static void must(const char *what, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "copies: %s: error %d\n", what, -ret);
	exit(1);
}

static void make_volume(void)
{
	struct rfs_id id = { .uuid = "copies", .runs = opt[RUNS].value };
	u32 ways = opt[WAYS].value;

	drive.cap = opt[CHANNELS].value * PAGES;
	if (opt[STRIPED].value)
		id.ways = ways;
	else
		drive.cap *= ways;
	drive.geo.zones = opt[MIB].value * 256 / drive.cap;
	while (drive.geo.zone_blocks < drive.cap)
		drive.geo.zone_blocks = max(2 * drive.geo.zone_blocks, 1U);
	drive.geo.oob_bytes = RFS_OOB_BYTES;
	drive_begin();
	ops = drive_ops;
	if (opt[MOVES].value)
		moves_hook(&ops);
	must("mkfs", rfs_mkfs(&ops, NULL, &drive.geo, &id, ""));
	must("mount", rfs_mount(&ops, NULL, &drive.geo, false, 0, &fs));
	fs->clean_max = ~0U;	/* metadata that is read is not what is asked */
	fs->policy.groups = opt[GROUPS].value;
}

static void put(u32 block)
{
	const void *data = common;

	must("write", rfs_write(fs, ino, opt[SPARSE].value ? (u64)block * RFS_FANOUT : block, 1,
				&data, RFS_BLOCK_BYTES));
}

/* From now on, in files of up to so many blocks */
static void count_moves(u64 blocks)
{
	u32 each = opt[RUNS].value ? RFS_MAP_ENTRIES / RFS_LEAF_WORDS : RFS_MAP_ENTRIES;

	if (!opt[MOVES].value)
		return;
	must("check-point", rfs_checkpoint(fs, 0));
	moves_begin(opt[SPARSE].value ? blocks : blocks / RFS_FANOUT + 1, each, opt[MOVES].value);
}

/* As the module's thread does, so that nobody waits for room */
static void clean(void)
{
	static u32 seen = ~0U;
	int ret;

	if (!rfs_clean_due(fs, &seen))
		return;
	ret = rfs_clean_some(fs, RFS_CLEAN_EARLY);
	if (!ret)
		ret = rfs_checkpoint(fs, 0);
	must("clean", ret == -ENOENT ? 0 : ret);
	seen = fs->free_zones;
	if (!counts)
		return;
	round.writes = writes;
	round.copies = fs->stats.copied;
	if (!first.writes)
		first = round;
	else
		round.n++;
}

/* Zones that groups are writing */
static u32 open_zones(void)
{
	u32 group, way, n = 0;

	for (group = 0; group < fs->policy.groups; group++)
		for (way = 0; way < fs->ways; way++)
			n += !!fs->active[RFS_S_DATA + group][way].zone;
	return n;
}

/* Data, copies, and metadata in the zones that are not check-points' */
static u64 programmed(void)
{
	u64 n = 0;
	u32 i;

	for (i = 0; i < RFS_GROUPS_MAX; i++)
		n += fs->stats.data[i] + fs->stats.copies[i];
	for (i = 0; i < RFS_TYPES; i++)
		n += i == RFS_DATA ? 0 : fs->stats.written[i];
	return n;
}

static void put_cached(void *to, u32 block)
{
	(void)to;
	put(block);
	writes++;
	clean();
	if (first.writes) {
		round.free += fs->free_zones + fs->set[RFS_SET_GAINED].count;
		round.samples++;
	}
}

/* Check-points', the log's and metadata's */
static u32 other_zones(void)
{
	u32 nr, n = RFS_CP_ZONES;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++)
		n += fs->zone[nr].state != RFS_Z_FREE &&
		     fs->zone[nr].stream < RFS_S_DATA;
	return n;
}

static void as_sfssim(void)
{
	struct rfs_new file = { .mode = S_IFREG | 0600 };
	u64 all = drive.geo.zones * (drive.cap - drive.cap / 64);
	u64 cold = all * (opt[FILL].value - opt[SET].value) / 100, i;
	u64 hot = all * opt[FILL].value / 100 - cold;
	u64 aged = all * opt[AGE].value / 100;
	u64 end = aged + all * opt[WRITES].value / 100;
	struct work *work = work_new("zipf", hot, THETA, opt[SEED].value);
	struct cache cache;

	if (!work || !cache_init(&cache, all, CACHE(all), put_cached, NULL))
		must("so few blocks", -EINVAL);
	must("create", rfs_create(fs, RFS_ROOT_INO, "cold", &file, &ino));
	for (i = 0; i < cold; i++)
		put(i);
	must("create", rfs_create(fs, RFS_ROOT_INO, "hot", &file, &ino));
	for (i = 0; i < hot; i++)
		put(i);
	must("check-point", rfs_checkpoint(fs, 0));
	while (writes < end) {
		if (!counts && writes >= aged)
			count_moves(max(cold, hot));
		counts = writes >= aged;
		cache_write(&cache, work_next(work));
	}
	printf("{\"first\": %llu, \"written\": %llu, \"copied\": %llu, \"rounds\": %llu, \"zones\": %u, \"zone_blocks\": %u, \"other_zones\": %.2f}\n",
	       (unsigned long long)first.writes,
	       (unsigned long long)(round.writes - first.writes),
	       (unsigned long long)(round.copies - first.copies),
	       (unsigned long long)round.n, fs->geo.zones, drive.cap,
	       (double)round.free / round.samples + other_zones());
	cache_free(&cache);
	work_free(work);
}

static void as_risa(void)
{
	struct rfs_new file = { .mode = S_IFREG | 0600 };
	u64 blocks, aged, count, i, copies = 0, programs = 0, open = 0;
	struct work *work;

	blocks = opt[MIB].value * 256 * opt[FILL].value / 100;
	if (opt[SPARSE].value)	/* of leaves a 16th is left dead */
		blocks = blocks * 15 / 31;
	aged = blocks * opt[AGE].value / 100;
	count = blocks * opt[WRITES].value / 100;
	must("create", rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino));
	for (i = 0; i < blocks; i++)
		put(i);
	work = work_new(opt[UNIFORM].value ? "uniform" : "oltp", blocks, 0,
			opt[SEED].value);
	if (!work)
		must("so few blocks", -EINVAL);
	for (i = 0; i < aged + count; i++) {
		if (i == aged) {
			count_moves(blocks);
			copies = fs->stats.copied;
			programs = programmed();
		}
		put(work_next(work));
		clean();
		open += i < aged ? 0 : open_zones();
	}
	copies = fs->stats.copied - copies;
	programs = programmed() - programs;
	printf("{\"written\": %llu, \"copied\": %llu, \"programmed\": %llu, \"zones\": %u, \"zone_blocks\": %u, \"open_zones\": %.2f}\n",
	       (unsigned long long)count, (unsigned long long)copies,
	       (unsigned long long)programs,
	       fs->geo.zones, drive.cap, (double)open / count);
	work_free(work);
}

int main(int argc, char **argv)
{
	options(argc, argv, 1, "usage: copies [NAME=N]...", opt);
	if (opt[SET].value >= opt[FILL].value)
		must("set is all that is filled, or more", -EINVAL);
	memset(common, 0x5a, sizeof(common));
	make_volume();
	if (opt[SET].value)
		as_sfssim();
	else
		as_risa();
	if (opt[MOVES].value)
		moves_print();
	rfs_unmount_nosync(fs);
	drive_end();
	return 0;
}
