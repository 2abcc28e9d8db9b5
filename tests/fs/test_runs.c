// SPDX-License-Identifier: GPL-2.0-or-later
/* Leaves that are runs in the node map: when they are, and what else is as before. */
#include "check.h"
#include "clean.h"
#include "memdev.h"
#include "space/space.h"
#include "tree/tree.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define CAP		250
#define ZONES		48
#define SECOND		1000000000ULL

static const struct rfs_geometry geometry = {
	.zones = ZONES, .zone_blocks = 256, .oob_bytes = 64,
};
static const struct rfs_id id = { "0123456789abcde", "a key for hashes",
				  "a key to be safe", .runs = true };
static const struct rfs_new file = { .mode = S_IFREG | 0644 };
static u8 block[RFS_BLOCK_BYTES], other[RFS_BLOCK_BYTES];

static void broken(const struct rfs_fs *fs, const char *what)
{
	(void)fs;
	FAIL("%s", what);
}

static struct rfs_fs *mount(struct memdev *dev)
{
	struct rfs_fs *fs;

	rfs_broken = broken;
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs), 0);
	return fs;
}

/* A volume with an empty file */
static struct rfs_fs *mount_new(struct memdev **dev, u32 *ino)
{
	struct rfs_fs *fs;

	*dev = memdev_new(&geometry, CAP, 320 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, *dev, &geometry, &id, "test"), 0);
	fs = mount(*dev);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, ino), 0);
	return fs;
}

static struct rfs_fs *mount_again(struct rfs_fs *fs, struct memdev *dev)
{
	CHECK_EQ(rfs_unmount(fs), 0);
	return mount(dev);
}

static void end(struct rfs_fs *fs, struct memdev *dev)
{
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

static void put(struct rfs_fs *fs, u32 ino, u64 at, u8 value, u32 len)
{
	const void *data = block;

	memset(block, value, sizeof(block));
	CHECK_EQ(rfs_write(fs, ino, at, 1, &data, len), 0);
}

/* Blocks from..to - 1, each of which has its number */
static void put_row(struct rfs_fs *fs, u32 ino, u64 from, u64 to)
{
	for (; from < to; from++)
		put(fs, ino, from, from, RFS_BLOCK_BYTES);
}

/* Blocks from..to - 1, all with one value */
static void put_all(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u8 value)
{
	for (; from < to; from++)
		put(fs, ino, from, value, RFS_BLOCK_BYTES);
}

static void expect(struct rfs_fs *fs, u32 ino, u64 at, u8 value, u32 len)
{
	memset(other, value, len);
	memset(other + len, 0, sizeof(other) - len);
	CHECK_EQ(rfs_read(fs, ino, at, block), 0);
	CHECK(!memcmp(block, other, sizeof(block)));
}

static void expect_row(struct rfs_fs *fs, u32 ino, u64 from, u64 to)
{
	for (; from < to; from++)
		expect(fs, ino, from, from, RFS_BLOCK_BYTES);
}

/* Where the pages of blocks from..to - 1 are */
static void find_row(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *addr)
{
	struct rfs_ptr ptr;

	for (; from < to; from++) {
		CHECK_EQ(rfs_map_get(fs, ino, from, &ptr), 0);
		*addr++ = rfs_addr(ptr.addr);
	}
}

/* How many blocks have a value, or with -1 their number; block 0 has not */
static u32 rows_ok(struct rfs_fs *fs, u32 ino, u64 from, u64 to, int value)
{
	u32 good = 0;

	for (; from < to; from++) {
		/* its value is 0, as a hole's */
		if (!from && value < 0)
			continue;
		memset(other, value < 0 ? (int)from : value, sizeof(other));
		good += !rfs_read(fs, ino, from, block) &&
			!memcmp(block, other, sizeof(block));
	}
	return good;
}

/* Leaves that a check-point writes, which fsck finds no fault with */
static u64 leaves_written(struct rfs_fs *fs)
{
	u64 before = fs->stats.written[RFS_INDEX];

	check_clean(fs);
	return fs->stats.written[RFS_INDEX] - before;
}

static u64 blocks_of(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	return le64_to_cpu(di->blocks);
}

/* What metadata has and will have, as "Room" of design.md counts it */
static u64 metadata(struct rfs_fs *fs)
{
	struct rfs_usage now;

	rfs_usage_get(fs, &now);
	return now.live - now.data_live + now.new_dirty;
}

TEST(leaves_of_a_file_in_order)
{
	struct memdev *dev;
	u32 ino, i;
	struct rfs_fs *fs = mount_new(&dev, &ino);
	u64 live, had;

	check_clean(fs);
	live = fs->live;
	put_row(fs, ino, 0, 1000);
	check_clean(fs);
	CHECK_EQ(fs->stats.written[RFS_INDEX], 0);
	/* a check-point came before the end, and had a part of one */
	CHECK_EQ(fs->stats.folded, 5);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(fs->runs, 4);
		CHECK_EQ(blocks_of(fs, ino), 1004);
		expect_row(fs, ino, 0, 1000);
		expect(fs, ino, 1000, 0, 0);
		fs = mount_again(fs, dev);
	}
	/* one that changes has the room that it needs */
	had = metadata(fs);
	put(fs, ino, 300, 44, RFS_BLOCK_BYTES);
	CHECK_EQ(fs->runs, 3);
	CHECK_EQ(metadata(fs), had);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(metadata(fs), had);
	fs = mount_again(fs, dev);
	CHECK_EQ(fs->runs, 3);
	/* and is runs again when all of it was written as often */
	put_row(fs, ino, 252, 300);
	put_row(fs, ino, 301, 504);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 4);
	CHECK_EQ(metadata(fs), had);
	expect_row(fs, ino, 0, 300);
	expect_row(fs, ino, 301, 1000);
	fs = mount_again(fs, dev);
	CHECK_EQ(rfs_unlink(fs, RFS_ROOT_INO, "f", &ino), 0);
	CHECK_EQ(rfs_free_orphan(fs, ino), 0);
	CHECK_EQ(fs->runs, 0);
	check_clean(fs);
	/* there are two blocks of the node map more */
	CHECK(fs->live <= live + 2);
	end(fs, dev);
}

/* Zones have the sums of what pointers say. */
static void check_sums(struct rfs_fs *fs, u32 ino, u64 blocks)
{
	u64 time = 0, wcount = 0, at;
	struct rfs_ptr ptr;
	u32 nr;

	for (at = 0; at < blocks; at++) {
		CHECK_EQ(rfs_map_get(fs, ino, at, &ptr), 0);
		if (ptr.kind != RFS_PTR_BLOCK)
			continue;
		time += rfs_ptr_ticks(&ptr);
		wcount += rfs_ptr_wcount(&ptr);
	}
	for (nr = 0; nr < fs->geo.zones; nr++) {
		time -= fs->zone[nr].sum_time;
		wcount -= fs->zone[nr].sum_wcount;
	}
	CHECK_EQ(time, 0);
	CHECK_EQ(wcount, 0);
}

TEST(times_of_runs)
{
	struct memdev *dev;
	u32 ino, i;
	struct rfs_fs *fs = mount_new(&dev, &ino);
	struct rfs_ptr first, last;

	/* within a second all have the mean; the first one is long ago, as others are */
	dev->time += 5000 * SECOND;
	for (i = 0; i < 252; i++) {
		dev->time += i % 2 ? SECOND / 500 : 0;
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
	}
	CHECK_EQ(rfs_map_get(fs, ino, 0, &first), 0);
	CHECK_EQ(rfs_map_get(fs, ino, 251, &last), 0);
	CHECK(rfs_ptr_ticks(&last) - rfs_ptr_ticks(&first) > 100);
	CHECK(rfs_ptr_ticks(&last) - rfs_ptr_ticks(&first) < 256);
	check_sums(fs, ino, 300);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	check_sums(fs, ino, 300);
	CHECK_EQ(rfs_map_get(fs, ino, 9, &first), 0);
	CHECK_EQ(rfs_map_get(fs, ino, 250, &last), 0);
	CHECK_EQ(rfs_ptr_ticks(&last), rfs_ptr_ticks(&first));
	fs = mount_again(fs, dev);
	CHECK_EQ(rfs_map_get(fs, ino, 9, &last), 0);
	CHECK(!memcmp(&first, &last, sizeof(first)));
	check_sums(fs, ino, 300);
	/* those that were written later are no longer like the others */
	CHECK_EQ(rfs_truncate(fs, ino, 251 * RFS_BLOCK_BYTES, false), 0);
	dev->time += 2 * SECOND;
	put(fs, ino, 251, 7, RFS_BLOCK_BYTES);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(fs->runs, 0);
	check_sums(fs, ino, 300);
	end(fs, dev);
}

/* Cleaning keeps them, and their times; nobody reads a leaf for it. */
TEST(cleaned_runs)
{
	struct memdev *dev;
	u32 ino, more, i;
	struct rfs_fs *fs = mount_new(&dev, &ino);
	struct rfs_ptr before, after;
	u64 time;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "g", &file, &more), 0);
	/* zones of which half is left, written in no time */
	time = dev->time;
	for (i = 0; i < 5; i++, dev->time = time) {
		put_row(fs, ino, i * 252, i * 252 + 126);
		put_row(fs, more, i * 126, (i + 1) * 126);
		put_row(fs, ino, i * 252 + 126, (i + 1) * 252);
	}
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(rfs_unlink(fs, RFS_ROOT_INO, "g", &more), 0);
	CHECK_EQ(rfs_free_orphan(fs, more), 0);
	check_clean(fs);
	CHECK_EQ(rfs_map_get(fs, ino, 500, &before), 0);
	for (i = 0; i < 6; i++)
		CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	CHECK_EQ(rfs_map_get(fs, ino, 500, &after), 0);
	CHECK(before.addr != after.addr);
	CHECK(before.time == after.time && before.wcount == after.wcount);
	check_clean(fs);
	CHECK_EQ(fs->runs, 5);
	check_sums(fs, ino, 1300);
	expect_row(fs, ino, 0, 1260);
	end(fs, dev);
}

TEST(leaves_with_holes)
{
	struct memdev *dev;
	u32 ino, i;
	struct rfs_fs *fs = mount_new(&dev, &ino);
	u64 from = 2000;

	/* holes before the blocks, and behind them; the last block is short */
	put_row(fs, ino, 100, 150);
	put(fs, ino, 150, 9, 77);
	/* one block alone, the last of a leaf, and the first of the next one */
	put(fs, ino, 503, 1, RFS_BLOCK_BYTES);
	put(fs, ino, 504, 2, 1);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 3);
	for (i = 0; i < 2; i++) {
		expect(fs, ino, 99, 0, 0);
		expect_row(fs, ino, 100, 150);
		expect(fs, ino, 150, 9, 77);
		expect(fs, ino, 151, 0, 0);
		expect(fs, ino, 502, 0, 0);
		expect(fs, ino, 503, 1, RFS_BLOCK_BYTES);
		expect(fs, ino, 504, 2, 1);
		expect(fs, ino, 505, 0, 0);
		fs = mount_again(fs, dev);
	}
	/* a hole among them, room that is kept, a short block that is not the last */
	CHECK_EQ(rfs_punch(fs, ino, 120, 121, false), 0);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(rfs_truncate(fs, ino, 503 * RFS_BLOCK_BYTES + 5, false), 0);
	put(fs, ino, 502, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	put(fs, ino, 504, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(fs->runs, 1);
	check_clean(fs);
	CHECK_EQ(fs->runs, 2);
	expect(fs, ino, 503, 1, 5);
	CHECK_EQ(rfs_truncate(fs, ino, 4000 * RFS_BLOCK_BYTES, false), 0);
	put(fs, ino, 1000, 3, 40);
	put(fs, ino, 1001, 3, 40);
	CHECK_EQ(leaves_written(fs), 1);
	expect(fs, ino, 1000, 3, 40);
	CHECK_EQ(rfs_preallocate(fs, ino, &from, 2010), 0);
	put(fs, ino, 2000, 4, RFS_BLOCK_BYTES);
	CHECK_EQ(leaves_written(fs), 1);
	end(fs, dev);
}

/* Two files in turn: each of a leaf's parts is elsewhere */
TEST(leaves_of_many_runs)
{
	struct memdev *dev;
	u32 ino, more, i;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "g", &file, &more), 0);
	for (i = 0; i < RFS_RUNS_MAX; i++) {
		put_row(fs, ino, i * 3, (i + 1) * 3);
		put(fs, more, i, 5, RFS_BLOCK_BYTES);
	}
	/* both files have a leaf, of 21 blocks; the other one is in the inode */
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	put(fs, ino, RFS_RUNS_MAX * 3, RFS_RUNS_MAX * 3, RFS_BLOCK_BYTES);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(fs->runs, 0);
	expect_row(fs, ino, 0, RFS_RUNS_MAX * 3 + 1);
	end(fs, dev);
}

/* Of more leaves than files without holes have, some are as other nodes. */
TEST(leaves_without_a_place)
{
	u32 each = RFS_MAP_ENTRIES / RFS_LEAF_WORDS, all, ino, i, round;
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	all = (fs->nmap_blocks - fs->nmap_leaves) * each;
	CHECK_EQ(all, each);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < all + 10; i++)
			put(fs, ino, (u64)i * RFS_FANOUT + i % 7, i,
			    RFS_BLOCK_BYTES);
		check_clean(fs);
		CHECK_EQ(fs->runs, all);
		fs = mount_again(fs, dev);
		for (i = 0; i < all + 10; i++)
			expect(fs, ino, (u64)i * RFS_FANOUT + i % 7, i,
			       RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
		check_clean(fs);
		CHECK_EQ(fs->runs, 0);
	}
	end(fs, dev);
}

/* Volumes that were made without places for leaves have none, and write all leaves. */
TEST(volume_without_runs)
{
	struct rfs_id plain = id;
	struct memdev *dev = memdev_new(&geometry, CAP, 320 << 20, true);
	struct rfs_fs *fs;
	u32 ino;

	plain.runs = false;
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geometry, &plain, "test"), 0);
	fs = mount(dev);
	CHECK_EQ(le32_to_cpu(fs->super.incompat) & RFS_INCOMPAT_RUNS, 0);
	CHECK_EQ(le32_to_cpu(fs->super.max_nodes), (ZONES - 3) * CAP + 1);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	put_row(fs, ino, 0, 1000);
	check_clean(fs);
	CHECK(fs->stats.written[RFS_INDEX] >= 4);
	CHECK_EQ(fs->runs, 0);
	end(fs, dev);
}

/* So many nodes that there are no numbers for places: leaves have the lowest one, too. */
TEST(leaves_of_the_largest_volume)
{
	struct rfs_id plain = id;
	struct memdev *dev = memdev_new(&geometry, CAP, 320 << 20, true);
	u32 ino, i, blocks, nodes, before;
	struct rfs_dinode *di;
	struct rfs_layout layout;
	struct rfs_buf *buf;
	struct rfs_fs *fs;

	rfs_layout(1 << 21, 2060, true, 1, true, &layout);
	CHECK_EQ(layout.max_nodes, 0xffffffff);
	CHECK_EQ(layout.nmap_leaves, layout.nmap_blocks);
	plain.runs = false;
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geometry, &plain, "test"), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	blocks = fs->nmap_blocks;
	nodes = le32_to_cpu(fs->super.max_nodes);
	fs->nmap_blocks = layout.nmap_blocks;
	fs->nmap_leaves = layout.nmap_leaves;
	fs->super.max_nodes = cpu_to_le32(layout.max_nodes);
	before = fs->next_node;
	for (i = 0; i < 4; i++)
		put(fs, ino, i * RFS_FANOUT, i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	for (i = 0; i < 4; i++)
		CHECK_EQ(le32_to_cpu(di->node[i]), before + i);
	fs->nmap_blocks = blocks;
	fs->nmap_leaves = blocks;
	fs->super.max_nodes = cpu_to_le32(nodes);
	check_clean(fs);
	end(fs, dev);
}

static u64 repaired(struct rfs_fs *fs, u64 *losses)
{
	struct rfs_report found = { 0 }, made = { 0 };

	CHECK_EQ(rfs_check(fs, &found), 0);
	CHECK_EQ(rfs_repair(fs, &made), 0);
	*losses = made.losses;
	check_clean(fs);
	return found.faults;
}

static struct rfs_runs *runs_of(struct rfs_fs *fs, u32 ino, u32 leaf)
{
	struct rfs_dinode *di;
	struct rfs_runs *runs;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(rfs_node_runs(fs, le32_to_cpu(di->node[leaf]), &buf, &runs),
		 0);
	CHECK(runs);
	return runs;
}

TEST(runs_are_repaired)
{
	struct memdev *dev;
	struct rfs_runs *runs;
	u64 losses;
	u32 ino, i;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 1000);
	check_clean(fs);
	CHECK_EQ(repaired(fs, &losses), 0);
	CHECK_EQ(losses, 0);
	CHECK_EQ(fs->runs, 4);
	/* their number */
	fs->runs = 9;
	CHECK_EQ(repaired(fs, &losses), 1);
	CHECK_EQ(losses, 0);
	CHECK_EQ(fs->runs, 4);
	/* what cannot be: too many blocks, none, outside of the volume, a gap */
	for (i = 0; i < 4; i++) {
		rfs_cache_trim(fs, 0);
		runs = runs_of(fs, ino, i);
		if (!i)
			runs->run[0] = rfs_word(rfs_addr(runs->run[0]), 253);
		else if (i == 1)
			memset(runs->run, 0, sizeof(runs->run));
		else if (i == 2)
			runs->run[1] = rfs_word(1ULL << 40, 3);
		else
			runs->run[RFS_RUNS_MAX - 1] = runs->run[0];
		rfs_cache_trim(fs, 8);
		CHECK(repaired(fs, &losses));
		CHECK_EQ(losses, 1);
		CHECK_EQ(fs->runs, 3 - i);
		expect(fs, ino, i * RFS_FANOUT + 5, 0, 0);
	}
	/* blocks that are others' */
	put_row(fs, ino, 0, 1000);
	check_clean(fs);
	runs = runs_of(fs, ino, 2);
	runs->run[0] = runs_of(fs, ino, 1)->run[0];
	rfs_cache_trim(fs, 1);
	CHECK(repaired(fs, &losses));
	CHECK(losses);
	expect_row(fs, ino, 252, 504);
	end(fs, dev);
}

/* An inode that has leaves which were made of pages; 0: none has */
static u32 made_of;

static void note_made(void *arg, u32 ino)
{
	(void)arg;
	made_of = ino;
}

/* All check-points of an unmounted volume are lost. */
static struct rfs_rescue rescan(struct memdev *dev, struct rfs_fs **fs)
{
	struct rfs_report report = { .say = say, .made = note_made };
	struct rfs_rescue out;
	u32 at;

	made_of = 0;

	for (at = 0; at < RFS_CP_ZONES * geometry.zone_blocks; at++)
		dev->page[at].state = MEM_TORN;
	CHECK_EQ(rfs_rescan(&memdev_ops, dev, &dev->geo, &report, &out, fs), 0);
	return out;
}

/* Without check-points: what the newest block of the node map says counts, and not a leaf. */
TEST(runs_are_rescanned)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, at;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 1000);
	check_clean(fs);
	/* leaf 1 is one, and then runs again; leaf 2 is one */
	put(fs, ino, 300, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(leaves_written(fs), 1);
	put_row(fs, ino, 252, 300);
	put_row(fs, ino, 301, 504);
	put(fs, ino, 600, 2, RFS_BLOCK_BYTES);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(fs->runs, 3);
	/* and one that no check-point has */
	put(fs, ino, 800, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	out = rescan(dev, &fs);
	CHECK(!out.damaged);
	CHECK(out.super_lost);
	check_clean(fs);
	CHECK_EQ(fs->runs, 2);
	for (at = 0; at < 1000; at++)
		expect(fs, ino, at, at == 300 ? 1 : at == 600 ? 2 :
				    at == 800 ? 3 : at, RFS_BLOCK_BYTES);
	end(fs, dev);
}

/*
 * The drive as a power cut amid the check-point from operation `base` on leaves it: nothing
 * of that was written but blocks of a type. It is mounted, loses all its check-points, and
 * is rescanned: the first 50 blocks are what they were before, in so many runs.
 */
static void cut_and_rescan(struct memdev *dev, u32 base, u8 type, u32 ino,
			   u64 runs)
{
	struct memdev *cut = memdev_new(&geometry, CAP, 1 << 20, false);
	struct rfs_fs *fs;
	u32 more, at;

	for (at = 0; at < dev->ops; at++) {
		const struct mem_op *op = &dev->op[at];

		if (at < base || (op->type == MEM_APPEND &&
				  op->page.oob->type == type))
			memdev_replay(cut, op, MEM_OK);
	}
	fs = mount(cut);
	expect_row(fs, ino, 0, 50);
	/* so that the check-point of the mount is known to be whole */
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "g", &file, &more), 0);
	put(fs, more, 0, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fsync(fs, more), 0);
	rfs_unmount_nosync(fs);
	CHECK(!rescan(cut, &fs).damaged);
	check_clean(fs);
	CHECK_EQ(fs->runs, runs);
	expect_row(fs, ino, 0, 50);
	memdev_free(dev);
	end(fs, cut);
}

/* A check-point of which nothing but the node map was written: mounting outdates it. */
TEST(runs_of_an_unfinished_checkpoint)
{
	struct memdev *dev;
	u32 ino, base;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 50);
	put(fs, ino, 20, 20, RFS_BLOCK_BYTES);
	CHECK_EQ(leaves_written(fs), 1);
	base = dev->ops;
	CHECK_EQ(rfs_truncate(fs, ino, 15 * RFS_BLOCK_BYTES, false), 0);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	rfs_unmount_nosync(fs);
	cut_and_rescan(dev, base, RFS_NMAP, ino, 0);
}

/* The same of a leaf that was runs: of the check-point nothing but the leaf was written. */
TEST(leaf_of_an_unfinished_checkpoint)
{
	struct memdev *dev;
	u32 ino, base;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 50);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	base = dev->ops;
	CHECK_EQ(rfs_punch(fs, ino, 20, 21, false), 0);
	CHECK_EQ(leaves_written(fs), 1);
	rfs_unmount_nosync(fs);
	cut_and_rescan(dev, base, RFS_INDEX, ino, 1);
}

/* The newest blocks of a type, or all of them, cannot be read. */
static void lose(struct memdev *dev, u8 type, bool all)
{
	struct mem_page *newest = NULL;
	u32 at;

	for (at = 0; at < ZONES * geometry.zone_blocks; at++) {
		struct mem_page *page = &dev->page[at];

		if (page->state != MEM_OK || page->oob->type != type)
			continue;
		if (all)
			page->state = MEM_TORN;
		else if (!newest || le64_to_cpu(page->oob->stamp) >
				    le64_to_cpu(newest->oob->stamp))
			newest = page;
	}
	if (newest)
		newest->state = MEM_TORN;
}

/* Power is lost; what was written after the last check-point shows that it is whole. */
static void cut_off(struct rfs_fs *fs)
{
	u32 more;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "g", &file, &more), 0);
	put(fs, more, 0, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fsync(fs, more), 0);
	rfs_unmount_nosync(fs);
}

/* After a power cut, with no block of the node map left */
static struct rfs_rescue rescan_without_map(struct memdev *dev,
					    struct rfs_fs **fs)
{
	cut_off(*fs);
	lose(dev, RFS_NMAP, true);
	return rescan(dev, fs);
}

/* Without the node map: leaves that are runs, that were, and that are again */
TEST(runs_are_made_of_pages)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, at;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 1000);
	check_clean(fs);
	put(fs, ino, 300, 1, RFS_BLOCK_BYTES);
	put(fs, ino, 600, 2, RFS_BLOCK_BYTES);
	CHECK_EQ(leaves_written(fs), 2);
	put_row(fs, ino, 252, 300);
	put_row(fs, ino, 301, 504);
	put(fs, ino, 999, 9, 100);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(fs->runs, 2);
	/* and one that no check-point has */
	put(fs, ino, 100, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	lose(dev, RFS_NMAP, true);
	lose(dev, RFS_TIMB, true);
	out = rescan(dev, &fs);
	CHECK(!out.damaged);
	/* where there is an older leaf it is taken, and was the one before */
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(out.inodes_made, 1);
	CHECK_EQ(made_of, ino);
	check_clean(fs);
	CHECK_EQ(fs->runs, 0);
	for (at = 0; at < 999; at++)
		expect(fs, ino, at, at == 300 ? 1 : at == 600 ? 2 :
				    at == 100 ? 3 : at, RFS_BLOCK_BYTES);
	expect(fs, ino, 999, 9, 100);
	end(fs, dev);
}

/*
 * Of a block of the node map there is an older one. What it says is taken, and told, but
 * where pages were reset: those of the first leaf, which was written anew.
 */
TEST(runs_of_an_older_node_map)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 504);
	check_clean(fs);
	put_all(fs, ino, 0, 252, 7);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 2);
	cut_off(fs);
	lose(dev, RFS_NMAP, false);
	out = rescan(dev, &fs);
	CHECK(!out.damaged);
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(out.unlike, 0);
	CHECK_EQ(made_of, ino);
	check_clean(fs);
	CHECK_EQ(rows_ok(fs, ino, 0, 252, 7), 252);
	expect_row(fs, ino, 252, 504);
	end(fs, dev);
}

/* Pages do not tell what a file has lost since, but that it has another number of blocks. */
TEST(runs_that_were_punched_are_back)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 50);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(rfs_punch(fs, ino, 0, 10, false), 0);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	out = rescan_without_map(dev, &fs);
	CHECK(!out.damaged);
	CHECK_EQ(out.unlike, 1);
	check_clean(fs);
	expect_row(fs, ino, 0, 50);
	end(fs, dev);
}

/* Behind the end of a file nothing is back, also what an older leaf leads to. */
TEST(runs_that_were_cut_off)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, at;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 30);
	put_row(fs, ino, 50, 60);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(rfs_truncate(fs, ino, 20 * RFS_BLOCK_BYTES + 5, false), 0);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	out = rescan_without_map(dev, &fs);
	CHECK(!out.damaged);
	CHECK_EQ(out.leaves_made, 0);
	CHECK_EQ(made_of, ino);
	check_clean(fs);
	CHECK_EQ(rfs_truncate(fs, ino, 100 * RFS_BLOCK_BYTES, false), 0);
	expect_row(fs, ino, 0, 20);
	/* the older leaf has all of the last one */
	expect(fs, ino, 20, 20, RFS_BLOCK_BYTES);
	for (at = 21; at < 60; at++)
		expect(fs, ino, at, 0, 0);
	end(fs, dev);
}

/* A page of the runs cannot be read: the others are there. */
TEST(runs_with_an_unreadable_page)
{
	struct rfs_rescue out;
	struct rfs_ptr ptr;
	struct memdev *dev;
	u32 ino;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 50);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(rfs_map_get(fs, ino, 20, &ptr), 0);
	cut_off(fs);
	dev->page[rfs_addr(ptr.addr)].state = MEM_TORN;
	lose(dev, RFS_NMAP, true);
	out = rescan(dev, &fs);
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(out.unlike, 1);
	check_clean(fs);
	expect_row(fs, ino, 0, 20);
	expect(fs, ino, 20, 0, 0);
	expect_row(fs, ino, 21, 50);
	end(fs, dev);
}

/* Blocks of the value 9, as one transaction */
static void put_together(struct rfs_fs *fs, u32 ino, u64 from, u64 to)
{
	const void *data[RFS_TXN_MAX];
	u32 i;

	memset(other, 9, sizeof(other));
	for (i = 0; i < to - from; i++)
		data[i] = other;
	CHECK_EQ(rfs_write(fs, ino, from, to - from, data, RFS_BLOCK_BYTES), 0);
}

/* The drive as a power cut leaves it that loses the last page of data */
static struct memdev *without_last_page(struct memdev *dev)
{
	struct memdev *cut = memdev_new(&geometry, CAP, 1 << 20, false);
	u32 last = dev->ops, i;

	do {
		last--;
	} while (dev->op[last].type != MEM_APPEND ||
		 dev->op[last].page.oob->type != RFS_DATA);
	for (i = 0; i < dev->ops; i++)
		memdev_replay(cut, &dev->op[i],
			      i == last ? MEM_ABSENT : MEM_OK);
	return cut;
}

/*
 * A recovery has dropped the pages of a transaction of which the last one lacks, or will
 * do so: they are newer than what the runs lead to, and do not count.
 */
TEST(dropped_pages_make_no_runs)
{
	struct memdev *dev, *cut;
	struct rfs_rescue out;
	u32 ino, way;

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_new(&dev, &ino);

		put_row(fs, ino, 0, 50);
		check_clean(fs);
		put_together(fs, ino, 0, 50);
		rfs_unmount_nosync(fs);
		cut = without_last_page(dev);
		if (!way) {
			fs = mount(cut);
			expect_row(fs, ino, 0, 50);
			check_clean(fs);
			CHECK_EQ(fs->runs, 1);
			cut_off(fs);
		}
		lose(cut, RFS_NMAP, true);
		out = rescan(cut, &fs);
		CHECK(!out.damaged);
		CHECK_EQ(out.leaves_made, 1);
		check_clean(fs);
		expect_row(fs, ino, 0, 50);
		memdev_free(dev);
		end(fs, cut);
	}
}

/* What was punched before an older leaf was written, which is there, is not back. */
TEST(older_leaf_knows_what_was_punched)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 50);
	put_row(fs, ino, 40, 50);
	CHECK_EQ(rfs_punch(fs, ino, 40, 50, false), 0);
	put(fs, ino, 60, 60, RFS_BLOCK_BYTES);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(rfs_truncate(fs, ino, 50 * RFS_BLOCK_BYTES, false), 0);
	/* written as often as what was punched */
	put_row(fs, ino, 0, 40);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	out = rescan_without_map(dev, &fs);
	CHECK(!out.damaged);
	CHECK_EQ(out.leaves_made, 0);
	CHECK_EQ(made_of, ino);
	check_clean(fs);
	expect_row(fs, ino, 0, 40);
	expect(fs, ino, 45, 0, 0);
	end(fs, dev);
}

/* Pages that were not written as often, or not about then, were not in one leaf of runs. */
TEST(pages_that_do_not_go_together)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 50);
	dev->time += 9 * SECOND;
	put_row(fs, ino, 30, 45);
	put_row(fs, ino, 30, 45);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	put_row(fs, ino, 0, 30);
	CHECK_EQ(rfs_truncate(fs, ino, 50 * RFS_BLOCK_BYTES, false), 0);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	out = rescan_without_map(dev, &fs);
	CHECK(!out.damaged);
	CHECK_EQ(out.unlike, 0);
	check_clean(fs);
	expect_row(fs, ino, 0, 30);
	expect(fs, ino, 30, 0, 0);
	expect(fs, ino, 47, 0, 0);
	end(fs, dev);
}

/* The newest page of a leaf was punched: how many blocks there were tells that. */
TEST(newest_was_punched)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, way;

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_new(&dev, &ino);

		put_row(fs, ino, 0, 50);
		if (way)
			put_row(fs, ino, 0, 50);
		else
			dev->time += 10 * SECOND;
		put(fs, ino, 60, 60, RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_punch(fs, ino, 60, 61, false), 0);
		CHECK_EQ(leaves_written(fs), 0);
		CHECK_EQ(fs->runs, 1);
		out = rescan_without_map(dev, &fs);
		CHECK_EQ(out.leaves_made, 1);
		CHECK_EQ(out.unlike, 0);
		CHECK_EQ(rows_ok(fs, ino, 0, 50, -1), 49);
		check_clean(fs);
		end(fs, dev);
	}
}

/*
 * Runs of an older node map are another's, who had the number: that is no older leaf, also
 * if its pages cannot be read.
 */
TEST(older_runs_of_another)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, g, gone, way, i;
	u64 addr[50];

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_new(&dev, &ino);

		put_row(fs, ino, 0, 50);
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "h", &file, &g), 0);
		put_row(fs, g, 0, 7);
		find_row(fs, ino, 0, 50, addr);
		check_clean(fs);
		CHECK_EQ(fs->runs, 1);
		CHECK_EQ(rfs_unlink(fs, RFS_ROOT_INO, "f", &gone), 0);
		rfs_free_orphan(fs, gone);
		put_row(fs, g, 7, 50);
		CHECK_EQ(leaves_written(fs), 0);
		CHECK_EQ(fs->runs, 1);
		cut_off(fs);
		lose(dev, RFS_NMAP, false);
		for (i = 0; way && i < 50; i++)
			dev->page[addr[i]].state = MEM_TORN;
		out = rescan(dev, &fs);
		CHECK_EQ(out.leaves_made, 1);
		CHECK_EQ(rows_ok(fs, g, 0, 50, -1), 49);
		check_clean(fs);
		end(fs, dev);
	}
}

/* A transaction that is not there as a whole any more, and pages that were before it */
TEST(doubtful_before_older)
{
	struct rfs_rescue out;
	struct rfs_ptr ptr;
	struct memdev *dev;
	u32 ino, i;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 300);
	check_clean(fs);
	for (i = 0; i < 300; i++)
		if (i < 240 || i > 260)
			put(fs, ino, i, 9, RFS_BLOCK_BYTES);
	put_together(fs, ino, 240, 261);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(rows_ok(fs, ino, 0, 300, 9), 300);
	check_clean(fs);
	CHECK_EQ(fs->runs, 2);
	CHECK_EQ(rfs_map_get(fs, ino, 255, &ptr), 0);
	put(fs, ino, 255, 8, RFS_BLOCK_BYTES);
	check_clean(fs);
	cut_off(fs);
	/* as if its zone had been reset */
	dev->page[rfs_addr(ptr.addr)].state = MEM_TORN;
	lose(dev, RFS_NMAP, true);
	out = rescan(dev, &fs);
	CHECK_EQ(out.unlike, 0);
	CHECK_EQ(rows_ok(fs, ino, 0, 252, 9), 252);
	CHECK_EQ(rows_ok(fs, ino, 252, 300, 9), 47);
	check_clean(fs);
	end(fs, dev);
}

/* An older leaf without any block is one. */
TEST(dropped_on_preallocated)
{
	struct memdev *dev, *cut;
	struct rfs_rescue out;
	u32 ino;
	u64 from = 0;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	CHECK_EQ(rfs_truncate(fs, ino, 50 * RFS_BLOCK_BYTES, false), 0);
	while (from < 50)
		CHECK_EQ(rfs_preallocate(fs, ino, &from, 50), 0);
	CHECK_EQ(leaves_written(fs), 1);
	put_together(fs, ino, 0, 20);
	rfs_unmount_nosync(fs);
	cut = without_last_page(dev);
	fs = mount(cut);
	CHECK_EQ(rows_ok(fs, ino, 0, 50, 0), 50);
	check_clean(fs);
	cut_off(fs);
	lose(cut, RFS_NMAP, true);
	out = rescan(cut, &fs);
	CHECK_EQ(out.leaves_made, 0);
	CHECK_EQ(rows_ok(fs, ino, 0, 50, 0), 50);
	CHECK_EQ(fs->prealloc, 50);
	check_clean(fs);
	memdev_free(dev);
	end(fs, cut);
}

/* A page whose content is damaged hides older ones of its block. */
TEST(damaged_content)
{
	struct rfs_rescue out;
	struct rfs_ptr ptr;
	struct memdev *dev;
	u32 ino, i, way;

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_new(&dev, &ino);

		if (way) {
			for (i = 0; i < 50; i++)
				put(fs, ino, i, 77, RFS_BLOCK_BYTES);
			CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
		}
		put_row(fs, ino, 0, 50);
		CHECK_EQ(leaves_written(fs), 0);
		CHECK_EQ(rfs_map_get(fs, ino, 20, &ptr), 0);
		cut_off(fs);
		*(u8 *)dev->page[rfs_addr(ptr.addr)].data ^= 1;
		lose(dev, RFS_NMAP, true);
		out = rescan(dev, &fs);
		CHECK_EQ(out.unlike, 1);
		CHECK_EQ(made_of, ino);
		expect(fs, ino, 20, 0, 0);
		expect_row(fs, ino, 21, 50);
		check_clean(fs);
		end(fs, dev);
	}
}

/* What was written and punched after a leaf was written is not back. */
TEST(tombstone_in_the_window)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, i, way;

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_new(&dev, &ino);

		CHECK_EQ(rfs_truncate(fs, ino, 100 * RFS_BLOCK_BYTES, false), 0);
		put_row(fs, ino, 1, 50);
		for (i = 1; i < 50; i += 2)
			put(fs, ino, i, i, RFS_BLOCK_BYTES);
		if (way)
			dev->time += 20 * SECOND;
		CHECK_EQ(leaves_written(fs), 1);
		CHECK_EQ(fs->runs, 0);
		put(fs, ino, 60, 60, RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_fsync(fs, ino), 0);
		CHECK_EQ(rfs_punch(fs, ino, 60, 61, false), 0);
		CHECK_EQ(rfs_fsync(fs, ino), 0);
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		expect(fs, ino, 60, 0, 0);
		check_clean(fs);
		out = rescan_without_map(dev, &fs);
		CHECK_EQ(out.leaves_made, 0);
		CHECK_EQ(rows_ok(fs, ino, 1, 50, -1), 49);
		expect(fs, ino, 60, 0, 0);
		check_clean(fs);
		end(fs, dev);
	}
}

/*
 * A file that was deleted, in a directory that is lost: of half of its pages, which have
 * been reset, no file is made.
 */
TEST(deleted_file_is_not_made)
{
	static const struct rfs_new folder = { .mode = S_IFDIR | 0755 };
	struct rfs_rescue out;
	struct rfs_ptr ptr[50];
	struct memdev *dev;
	u32 ino, more, d, gone, i;
	char name[8];
	struct rfs_fs *fs = mount_new(&dev, &ino);

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &folder, &d), 0);
	for (i = 0, more = 0; more < 15; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &file, &more), 0);
	}
	/* alone in a block of inodes, which is not written when they go */
	CHECK_EQ(rfs_create(fs, d, "1", &file, &more), 0);
	CHECK_EQ(rfs_create(fs, d, "2", &file, &more), 0);
	put_row(fs, more, 0, 50);
	check_clean(fs);
	for (i = 0; i < 50; i++)
		CHECK_EQ(rfs_map_get(fs, more, i, &ptr[i]), 0);
	CHECK_EQ(rfs_unlink(fs, d, "1", &gone), 0);
	CHECK_EQ(rfs_free_orphan(fs, gone), 0);
	CHECK_EQ(rfs_unlink(fs, d, "2", &gone), 0);
	CHECK_EQ(rfs_free_orphan(fs, gone), 0);
	check_clean(fs);
	cut_off(fs);
	for (i = 0; i < 50; i += 2)
		dev->page[rfs_addr(ptr[i].addr)].state = MEM_TORN;
	lose(dev, RFS_NMAP, true);
	for (i = 0; i < ZONES * geometry.zone_blocks; i++)
		if (dev->page[i].state == MEM_OK &&
		    dev->page[i].oob->type == RFS_DIR &&
		    le32_to_cpu(dev->page[i].oob->ino) == d)
			dev->page[i].state = MEM_TORN;
	out = rescan(dev, &fs);
	CHECK(out.damaged);
	CHECK_EQ(out.leaves_made, 0);
	CHECK_EQ(out.inodes_made, 0);
	CHECK_EQ(made_of, 0);
	check_clean(fs);
	end(fs, dev);
}

/* As if their zones had been reset, and others' pages been written there */
static void reset_row(struct memdev *dev, const u64 *addr, u32 n)
{
	struct mem_page *page = dev->page;

	while (page->state != MEM_OK || page->oob->type != RFS_SUMMARY)
		page++;
	while (n--)
		dev->page[*addr++] = *page;
}

/*
 * A file with a leaf that is a node, of 50 blocks, where their pages are, and in their zone
 * one that stays in use, so that it is not reset
 */
static struct rfs_fs *mount_older(struct memdev **dev, u32 *ino, u64 addr[50])
{
	struct rfs_fs *fs = mount_new(dev, ino);
	u32 more;

	fs->policy.groups = 1;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "more", &file, &more), 0);
	put(fs, more, 0, 1, RFS_BLOCK_BYTES);
	put_row(fs, *ino, 0, 50);
	put_row(fs, *ino, 20, 21);
	find_row(fs, *ino, 0, 50, addr);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(fs->runs, 0);
	return fs;
}

/* Blocks before `to` are written until they were as often as block 20 */
static void write_anew(struct rfs_fs *fs, u32 ino, u64 to)
{
	put_all(fs, ino, 0, to, 7);
	put_all(fs, ino, 0, 20, 7);
	put_all(fs, ino, 21, to, 7);
}

static struct rfs_rescue lose_node_map(struct memdev *dev, struct rfs_fs **fs)
{
	struct rfs_rescue out = rescan_without_map(dev, fs);

	check_clean(*fs);
	return out;
}

/* A check-point after which so many leaves are runs; then the node map is lost. */
static struct rfs_rescue lose_runs(struct memdev *dev, struct rfs_fs **fs,
				   u64 runs)
{
	CHECK_EQ(leaves_written(*fs), 0);
	CHECK_EQ((*fs)->runs, runs);
	return lose_node_map(dev, fs);
}

/*
 * An older leaf whose pages were reset, all or one of them, where there may be another of
 * the file now: it was written anew.
 */
TEST(older_leaf_without_its_pages)
{
	static const u32 gone[] = { 50, 1, 0 };
	struct rfs_rescue out;
	struct memdev *dev;
	u64 addr[50], now;
	u32 ino, way;

	for (way = 0; way < 3; way++) {
		struct rfs_fs *fs = mount_older(&dev, &ino, addr);

		write_anew(fs, ino, 50);
		find_row(fs, ino, 5, 6, &now);
		reset_row(dev, addr, gone[way]);
		if (!gone[way])
			dev->page[addr[0]] = dev->page[now];
		out = lose_runs(dev, &fs, 1);
		CHECK(!out.damaged);
		CHECK_EQ(out.leaves_made, 1);
		CHECK_EQ(out.unlike, 0);
		CHECK_EQ(made_of, ino);
		CHECK_EQ(rows_ok(fs, ino, 0, 50, 7), 50);
		end(fs, dev);
	}
}

/* A page that cannot be read may be what it was: the older leaf stays. */
TEST(older_leaf_with_an_unreadable_page)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u64 addr[50];
	u32 ino, way;

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_older(&dev, &ino, addr);

		write_anew(fs, ino, 50);
		if (way)
			*(u8 *)dev->page[addr[1]].data ^= 1;
		else
			dev->page[addr[1]].state = MEM_TORN;
		out = lose_runs(dev, &fs, 1);
		CHECK_EQ(out.leaves_made, 0);
		CHECK_EQ(out.unlike, 1);
		CHECK_EQ(made_of, ino);
		CHECK_EQ(rows_ok(fs, ino, 0, 50, -1), 48);
		end(fs, dev);
	}
}

/* A zone that is empty was reset; one that is offline may have been as it was. */
TEST(older_leaf_in_a_zone_that_is_gone)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u64 addr[50];
	u32 ino, way, zone, i;

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_older(&dev, &ino, addr);

		/* what comes now is in other zones */
		zone = addr[0] / geometry.zone_blocks;
		while (dev->wp[zone] < CAP)
			put(fs, ino + 1, 0, 1, RFS_BLOCK_BYTES);
		put(fs, ino + 1, 0, 1, RFS_BLOCK_BYTES);
		write_anew(fs, ino, 50);
		CHECK_EQ(leaves_written(fs), 0);
		for (i = 0; i < CAP; i++)
			dev->page[zone * geometry.zone_blocks + i].state =
				MEM_ABSENT;
		dev->wp[zone] = 0;
		if (way)
			dev->cond[zone] = RFS_DEV_OFFLINE;
		out = lose_runs(dev, &fs, 1);
		CHECK_EQ(out.leaves_made, !way);
		CHECK_EQ(rows_ok(fs, ino, 0, 50, 7), way ? 0 : 50);
		end(fs, dev);
	}
}

/*
 * Blocks were punched before the rest was written anew, and a page of that was reset: the
 * older leaf has more blocks left than are made, but not as many as there are. If it is not
 * known how many there are, since another leaf lacks, too, or not all are made, it stays.
 */
TEST(older_leaf_with_more_blocks)
{
	enum { ALL, TWO_LACK, UNREADABLE, WAYS };
	struct rfs_rescue out;
	struct memdev *dev;
	u64 addr[50], now;
	u32 ino, way;

	for (way = 0; way < WAYS; way++) {
		struct rfs_fs *fs = mount_older(&dev, &ino, addr);

		CHECK_EQ(rfs_punch(fs, ino, 30, 50, false), 0);
		write_anew(fs, ino, 30);
		find_row(fs, ino, 5, 6, &now);
		if (way == TWO_LACK)
			put_row(fs, ino, 252, 300);
		else
			CHECK_EQ(rfs_truncate(fs, ino, 50 * RFS_BLOCK_BYTES,
					      false), 0);
		reset_row(dev, addr, 1);
		CHECK_EQ(leaves_written(fs), 0);
		if (way == UNREADABLE)
			dev->page[now].state = MEM_TORN;
		out = lose_node_map(dev, &fs);
		CHECK_EQ(out.leaves_made, way != UNREADABLE);
		CHECK_EQ(out.unlike, way != ALL);
		CHECK_EQ(rows_ok(fs, ino, 0, 30, 7), way == ALL ? 30 : 1);
		CHECK_EQ(rows_ok(fs, ino, 30, 50, way == ALL ? 0 : -1), 20);
		if (way == TWO_LACK)
			expect_row(fs, ino, 252, 300);
		end(fs, dev);
	}
}

/*
 * What an older leaf has behind the end of the file does not count, nor what it does not
 * have. Of what is made a page lacks that the older one lacks, too.
 */
TEST(older_leaf_behind_the_end)
{
	static const u32 ends[] = { 30, 60 };
	struct rfs_rescue out;
	struct memdev *dev;
	u64 addr[50], now;
	u32 ino, way, n;

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_older(&dev, &ino, addr);

		n = min(ends[way], 50U);
		CHECK_EQ(rfs_truncate(fs, ino, ends[way] * RFS_BLOCK_BYTES,
				      false), 0);
		write_anew(fs, ino, n);
		find_row(fs, ino, 0, 1, &now);
		reset_row(dev, addr, 1);
		CHECK_EQ(leaves_written(fs), 0);
		dev->page[now].state = MEM_TORN;
		out = lose_node_map(dev, &fs);
		CHECK_EQ(out.leaves_made, 1);
		CHECK_EQ(out.unlike, 1);
		CHECK_EQ(rows_ok(fs, ino, 0, n, 7), n - 1);
		expect(fs, ino, 0, 0, 0);
		end(fs, dev);
	}
}

/* An older leaf that stays is told if there are pages that it does not lead to. */
TEST(older_leaf_is_told)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u64 addr[50];
	u32 ino, way;

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_older(&dev, &ino, addr);

		if (way)
			write_anew(fs, ino, 50);
		out = lose_runs(dev, &fs, way);
		CHECK_EQ(out.leaves_made, 0);
		CHECK_EQ(out.unlike, 0);
		CHECK_EQ(made_of, way ? ino : 0);
		CHECK_EQ(rows_ok(fs, ino, 0, 50, -1), 49);
		end(fs, dev);
	}
}

/* An older page of a block that was written less often when the older runs were written */
TEST(older_runs_know_how_often)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, more, i;
	u64 addr;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	fs->policy.groups = 1;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "more", &file, &more), 0);
	put(fs, more, 0, 1, RFS_BLOCK_BYTES);
	for (i = 0; i < 3; i++)
		put_row(fs, ino, 49, 50);
	CHECK_EQ(rfs_punch(fs, ino, 49, 50, false), 0);
	put_row(fs, ino, 0, 50);
	find_row(fs, ino, 49, 50, &addr);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	put_all(fs, ino, 0, 49, 7);
	put_all(fs, ino, 0, 49, 7);
	CHECK_EQ(rfs_punch(fs, ino, 49, 50, false), 0);
	CHECK_EQ(leaves_written(fs), 0);
	reset_row(dev, &addr, 1);
	cut_off(fs);
	lose(dev, RFS_NMAP, false);
	out = rescan(dev, &fs);
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(out.unlike, 0);
	CHECK_EQ(rows_ok(fs, ino, 0, 49, 7), 49);
	expect(fs, ino, 49, 0, 0);
	check_clean(fs);
	end(fs, dev);
}

/* Of two groups that are as large, the one that was written last */
TEST(newest_of_two_groups)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 8, 18);
	dev->time += 10 * SECOND;
	put_row(fs, ino, 18, 28);
	CHECK_EQ(rfs_punch(fs, ino, 8, 18, false), 0);
	out = lose_runs(dev, &fs, 1);
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(out.unlike, 0);
	CHECK_EQ(rows_ok(fs, ino, 8, 18, 0), 10);
	expect_row(fs, ino, 18, 28);
	end(fs, dev);
}

/* Runs have one time, though their pages were written further apart than runs may be. */
TEST(made_runs_have_one_time)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, i;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	for (i = 1; i < 4; i++) {
		put_row(fs, ino, 10 * i, 10 * i + 10);
		CHECK_EQ(leaves_written(fs), 0);
		dev->time += SECOND * 6 / 10;
	}
	out = lose_runs(dev, &fs, 1);
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(fs->runs, 1);
	expect_row(fs, ino, 10, 40);
	end(fs, dev);
}

/* Without any page no leaf is made. */
TEST(no_page_can_be_read)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u64 addr[50];
	u32 ino, i;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 50);
	find_row(fs, ino, 0, 50, addr);
	CHECK_EQ(leaves_written(fs), 0);
	cut_off(fs);
	for (i = 0; i < 50; i++)
		dev->page[addr[i]].state = MEM_TORN;
	lose(dev, RFS_NMAP, true);
	out = rescan(dev, &fs);
	CHECK_EQ(out.leaves_made, 0);
	CHECK_EQ(out.unlike, 1);
	CHECK_EQ(rows_ok(fs, ino, 0, 50, 0), 50);
	check_clean(fs);
	end(fs, dev);
}

/*
 * The inode of a file that was deleted is still there, and leads to the number that a leaf
 * of another was given since, which is runs, or has nothing but room.
 */
TEST(number_of_a_deleted_file)
{
	static const struct rfs_new folder = { .mode = S_IFDIR | 0755 };
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, more, low, d, gone, i, way;
	char name[8];

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_new(&dev, &ino);
		u64 from = 0;

		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "low", &file, &low), 0);
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &folder, &d), 0);
		for (i = 0, more = 0; more < 15; i++) {
			snprintf(name, sizeof(name), "x%u", i);
			CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &file,
					    &more), 0);
		}
		/* alone in a block of inodes, which is not written when it goes */
		CHECK_EQ(rfs_create(fs, d, "1", &file, &more), 0);
		put_all(fs, more, 0, 50, 9);
		check_clean(fs);
		CHECK_EQ(rfs_unlink(fs, d, "1", &gone), 0);
		CHECK_EQ(rfs_free_orphan(fs, gone), 0);
		check_clean(fs);
		if (!way)
			put_row(fs, low, 0, 50);
		else
			CHECK_EQ(rfs_truncate(fs, low, 50 * RFS_BLOCK_BYTES,
					      false), 0);
		while (way && from < 50)
			CHECK_EQ(rfs_preallocate(fs, low, &from, 50), 0);
		check_clean(fs);
		CHECK_EQ(fs->runs, !way);
		out = rescan_without_map(dev, &fs);
		CHECK_EQ(out.leaves_made, !way);
		CHECK_EQ(fs->prealloc, way ? 50 : 0);
		if (!way)
			expect_row(fs, low, 0, 50);
		check_clean(fs);
		end(fs, dev);
	}
}

/* What an older leaf, or older runs, did not have when they were written is not back. */
TEST(reset_leaf_knows_what_was_punched)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, more, way;
	u64 addr;

	for (way = 0; way < 2; way++) {
		struct rfs_fs *fs = mount_new(&dev, &ino);

		fs->policy.groups = 1;
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "more", &file, &more), 0);
		put(fs, more, 0, 1, RFS_BLOCK_BYTES);
		put_row(fs, ino, 0, 50);
		put_row(fs, ino, 40, 50);
		CHECK_EQ(rfs_punch(fs, ino, 40, 50, false), 0);
		if (!way)
			put(fs, ino, 60, 60, RFS_BLOCK_BYTES);
		find_row(fs, ino, 5, 6, &addr);
		CHECK_EQ(leaves_written(fs), !way);
		CHECK_EQ(fs->runs, way);
		CHECK_EQ(rfs_truncate(fs, ino, 50 * RFS_BLOCK_BYTES, false), 0);
		/* written as often as what was punched */
		put_all(fs, ino, 0, 40, 7);
		reset_row(dev, &addr, 1);
		CHECK_EQ(leaves_written(fs), 0);
		CHECK_EQ(fs->runs, 1);
		cut_off(fs);
		lose(dev, RFS_NMAP, !way);
		out = rescan(dev, &fs);
		CHECK_EQ(out.leaves_made, 1);
		CHECK_EQ(out.unlike, 0);
		CHECK_EQ(rows_ok(fs, ino, 0, 40, 7), 40);
		CHECK_EQ(rows_ok(fs, ino, 40, 50, 0), 10);
		check_clean(fs);
		end(fs, dev);
	}
}

/* Older runs are a file's by any of their pages, and better than what could be made. */
TEST(older_runs_without_their_first_page)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, more;
	u64 addr;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	fs->policy.groups = 1;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "more", &file, &more), 0);
	put(fs, more, 0, 1, RFS_BLOCK_BYTES);
	put_row(fs, ino, 0, 50);
	find_row(fs, ino, 0, 1, &addr);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(rfs_punch(fs, ino, 30, 50, false), 0);
	put_all(fs, ino, 0, 30, 7);
	put_row(fs, ino, 252, 300);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 2);
	reset_row(dev, &addr, 1);
	cut_off(fs);
	lose(dev, RFS_NMAP, false);
	out = rescan(dev, &fs);
	/* of the second leaf there was none */
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(rows_ok(fs, ino, 1, 50, -1), 49);
	expect_row(fs, ino, 252, 300);
	check_clean(fs);
	end(fs, dev);
}

/* Some pages were moved by cleaning: their copies are what the older leaf led to. */
TEST(older_leaf_that_was_cleaned)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, more, i;
	u64 addr, moved;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	fs->policy.groups = 1;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "more", &file, &more), 0);
	for (i = 0; i < 200; i++)
		put(fs, more, 1, 1, RFS_BLOCK_BYTES);
	put_row(fs, ino, 0, 252);
	/* a hole, so that it is a node until the hole is behind the end */
	CHECK_EQ(rfs_punch(fs, ino, 240, 241, false), 0);
	find_row(fs, ino, 0, 1, &addr);
	CHECK_EQ(leaves_written(fs), 1);
	CHECK_EQ(rfs_truncate(fs, ino, 240 * RFS_BLOCK_BYTES, false), 0);
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	find_row(fs, ino, 0, 1, &moved);
	CHECK(addr != moved);
	CHECK_EQ(leaves_written(fs), 0);
	CHECK_EQ(fs->runs, 1);
	/* so that the zone that was cleaned is another's now */
	reset_row(dev, &addr, 1);
	out = rescan_without_map(dev, &fs);
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(out.unlike, 0);
	CHECK_EQ(rows_ok(fs, ino, 0, 240, -1), 239);
	check_clean(fs);
	end(fs, dev);
}

/* Pages of a file that had the same number, and was deleted, are not this one's. */
TEST(pages_of_a_file_before)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, gone, more;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	fs->policy.groups = 1;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "more", &file, &more), 0);
	put(fs, more, 0, 1, RFS_BLOCK_BYTES);
	put_row(fs, ino, 0, 50);
	CHECK_EQ(rfs_unlink(fs, RFS_ROOT_INO, "f", &gone), 0);
	CHECK_EQ(rfs_free_orphan(fs, gone), 0);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &more), 0);
	CHECK_EQ(more, ino);
	put_all(fs, ino, 0, 30, 7);
	CHECK_EQ(rfs_truncate(fs, ino, 50 * RFS_BLOCK_BYTES, false), 0);
	out = lose_runs(dev, &fs, 1);
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(out.unlike, 0);
	CHECK_EQ(rows_ok(fs, ino, 0, 30, 7), 30);
	CHECK_EQ(rows_ok(fs, ino, 30, 50, 0), 20);
	end(fs, dev);
}

/* No page behind the end counts, and of the last block no more than the file has. */
TEST(pages_behind_the_end)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino;
	struct rfs_fs *fs = mount_new(&dev, &ino);

	put_row(fs, ino, 0, 50);
	CHECK_EQ(rfs_truncate(fs, ino, 20 * RFS_BLOCK_BYTES + 5, false), 0);
	out = lose_runs(dev, &fs, 1);
	CHECK_EQ(out.leaves_made, 1);
	CHECK_EQ(out.unlike, 0);
	expect_row(fs, ino, 0, 20);
	expect(fs, ino, 20, 20, 5);
	end(fs, dev);
}

/* A page elsewhere as cleaning, or an append that was repeated, has written it again */
static void write_again(struct memdev *dev, u64 from, u64 to, u8 flags)
{
	u8 *unit = memdev_unit(dev);
	struct rfs_oob *oob = (struct rfs_oob *)(unit + RFS_BLOCK_BYTES);

	memcpy(unit, dev->page[from].data, RFS_BLOCK_BYTES);
	*oob = *dev->page[from].oob;
	oob->flags = flags;
	if (flags & RFS_OOB_COPY) {
		oob->txn_idx = 0;
		oob->txn_cnt = 0;
	}
	rfs_oob_seal(oob, unit);
	dev->page[to] = (struct mem_page){ unit, oob, MEM_OK };
}

/*
 * A transaction of 50 blocks, which all were there before. Its last ten were cut off, and
 * one of them was reset, so that it is not there as a whole any more. It does not count
 * unless it is known that it was, or there is nothing else.
 */
TEST(transactions_that_were_whole)
{
	enum { ONE_MOUNT, CHECKPOINT, NONE, VOLATILE, NOTHING_BEFORE, COPY, WAYS };
	struct rfs_rescue out;
	struct memdev *dev;
	u64 addr, of[2];
	bool sure;
	u32 ino, way;

	for (way = 0; way < WAYS; way++) {
		struct rfs_fs *fs = mount_new(&dev, &ino);

		if (way != NOTHING_BEFORE)
			put_row(fs, ino, 0, 50);
		check_clean(fs);
		put_together(fs, ino, 0, 50);
		find_row(fs, ino, 45, 46, &addr);
		find_row(fs, ino, 10, 11, &of[0]);
		find_row(fs, ino, 46, 47, &of[1]);
		if (way == CHECKPOINT || way == VOLATILE)
			check_clean(fs);
		if (way != ONE_MOUNT) {
			rfs_unmount_nosync(fs);
			fs = mount(dev);
		}
		CHECK_EQ(rows_ok(fs, ino, 0, 50, 9), 50);
		CHECK_EQ(rfs_truncate(fs, ino, 40 * RFS_BLOCK_BYTES, false), 0);
		dev->geo.volatile_cache = way == VOLATILE || way == ONE_MOUNT;
		CHECK_EQ(leaves_written(fs), 0);
		dev->page[addr].state = MEM_TORN;
		/* cleaning has seen one of them, and so all */
		if (way == COPY)
			write_again(dev, of[0], of[1], RFS_OOB_COPY);
		out = lose_runs(dev, &fs, 1);
		CHECK_EQ(out.leaves_made, 1);
		sure = way != NONE && way != VOLATILE;
		CHECK_EQ(rows_ok(fs, ino, 0, 40, sure ? 9 : -1),
			 sure ? 40 : 39);
		end(fs, dev);
	}
}

/* A page of a transaction was moved by cleaning, or appended twice: it is there as a whole. */
TEST(transactions_with_copies)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u64 addr, spare;
	u32 ino, more, way;

	for (way = 0; way < 4; way++) {
		struct rfs_fs *fs = mount_new(&dev, &ino);

		fs->policy.groups = 1;
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "more", &file, &more), 0);
		put(fs, more, 0, 1, RFS_BLOCK_BYTES);
		find_row(fs, more, 0, 1, &spare);
		put(fs, more, 0, 1, RFS_BLOCK_BYTES);
		put_row(fs, ino, 0, 50);
		check_clean(fs);
		put_together(fs, ino, 0, 50);
		find_row(fs, ino, 10, 11, &addr);
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		CHECK_EQ(rows_ok(fs, ino, 0, 50, 9), 50);
		CHECK_EQ(leaves_written(fs), 0);
		write_again(dev, addr, spare, way & 1 ? RFS_OOB_COPY : 0);
		if (way < 2)
			dev->page[addr].state = MEM_TORN;
		out = rescan_without_map(dev, &fs);
		CHECK_EQ(out.leaves_made, 1);
		CHECK_EQ(rows_ok(fs, ino, 0, 50, 9), 50);
		check_clean(fs);
		end(fs, dev);
	}
}

/*
 * How many blocks a leaf has that lacks is known if all others of the file are there: nodes,
 * attributes, a leaf that is a node, and one that found no place to be runs. By that it is
 * the smaller one of two groups of pages.
 */
TEST(blocks_of_the_leaf_that_lacks)
{
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino[2], many, nth, i;
	u64 far = 252ULL * 3000;
	struct rfs_fs *fs = mount_new(&dev, &ino[0]);

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "h", &file, &ino[1]), 0);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "many", &file, &many), 0);
	put_row(fs, ino[0], 8, 50);
	put_row(fs, ino[0], 20, 21);
	for (nth = 0; nth < 2; nth++) {
		CHECK_EQ(rfs_xattr_set(fs, ino[nth], "user.a", "1", 1, 0, 0),
			 0);
		put_row(fs, ino[nth], far + 10, far + 21);
		dev->time += 10 * SECOND;
		put_row(fs, ino[nth], far, far + 10);
		CHECK_EQ(rfs_punch(fs, ino[nth], far + 10, far + 21, false), 0);
		CHECK_EQ(rfs_truncate(fs, ino[nth],
				      (far + 30) * RFS_BLOCK_BYTES, false), 0);
	}
	/* no more places */
	for (i = 1; i < 54; i++)
		put(fs, many, 252 * i, 1, RFS_BLOCK_BYTES);
	put_row(fs, ino[1], 8, 50);
	check_clean(fs);
	CHECK_EQ(fs->runs, 55);
	out = rescan_without_map(dev, &fs);
	CHECK_EQ(out.leaves_made, 55);
	CHECK_EQ(out.unlike, 0);
	for (nth = 0; nth < 2; nth++) {
		for (i = 0; i < 10; i++)
			expect(fs, ino[nth], far + i, far + i, RFS_BLOCK_BYTES);
		expect(fs, ino[nth], far + 10, 0, 0);
		expect_row(fs, ino[nth], 8, 50);
	}
	check_clean(fs);
	end(fs, dev);
}
