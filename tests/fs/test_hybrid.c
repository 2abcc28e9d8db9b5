// SPDX-License-Identifier: GPL-2.0-or-later
/* Hybrid volumes: a drive in memory, and a slow device beside it that is ten times as big. */
#include "check.h"
#include "clean.h"
#include "memdev.h"
#include "home/home.h"
#include "tree/tree.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define CAP		62
#define ZONES		40
#define ZONE_BLOCKS	64
#define SLOW_BLOCKS	(10 * ZONES * ZONE_BLOCKS)

static const struct rfs_geometry geometry = {
	.zones = ZONES, .zone_blocks = ZONE_BLOCKS, .oob_bytes = 64,
};
static const struct rfs_id id = { "0123456789abcde", "a key for hashes",
				  "a key to be safe" };
static const struct rfs_new file = { .mode = S_IFREG | 0644 };
static u8 block[RFS_BLOCK_BYTES], other[RFS_BLOCK_BYTES];

static struct memdev *new_dev(u64 slow_blocks)
{
	struct memdev *dev = memdev_new(&geometry, CAP, 512 << 20, false);

	memdev_add_slow(dev, slow_blocks);
	return dev;
}

static void broken(const struct rfs_fs *fs, const char *what)
{
	(void)fs;
	FAIL("%s", what);
}

static struct rfs_fs *mount(struct memdev *dev)
{
	struct rfs_fs *fs;

	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs), 0);
	return fs;
}

/* A new volume, of which all is as the proof of design.md says */
static struct rfs_fs *mount_new(struct memdev **dev)
{
	*dev = new_dev(SLOW_BLOCKS);
	CHECK_EQ(rfs_mkfs(&memdev_ops, *dev, &(*dev)->geo, &id, "test"), 0);
	rfs_broken = broken;
	return mount(*dev);
}

static void end(struct rfs_fs *fs, struct memdev *dev)
{
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

static struct rfs_fs *mount_again(struct rfs_fs *fs, struct memdev *dev)
{
	CHECK_EQ(rfs_unmount(fs), 0);
	return mount(dev);
}

/* Faults that fsck finds, and of which none is left when they are repaired */
static u64 repaired(struct rfs_fs *fs, u64 *losses)
{
	struct rfs_report found = { .read_data = true }, report = { 0 };

	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_check(fs, &found), 0);
	CHECK_EQ(rfs_repair(fs, &report), 0);
	*losses = report.losses;
	check_clean(fs);
	return found.faults;
}

static void fill_block(u64 at, u32 value)
{
	u32 i;

	for (i = 0; i < RFS_BLOCK_BYTES; i++)
		block[i] = value + i * 7 + at * 13 + (i >> 8);
}

static int put(struct rfs_fs *fs, u32 ino, u64 at, u32 value)
{
	const void *data = block;

	fill_block(at, value);
	return rfs_write(fs, ino, at, 1, &data, RFS_BLOCK_BYTES);
}

/* A file whose first blocks have such content */
static u32 new_file(struct rfs_fs *fs, const char *name, u32 blocks, u32 value)
{
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &file, &ino), 0);
	for (i = 0; i < blocks; i++)
		CHECK_EQ(put(fs, ino, i, value), 0);
	return ino;
}

static void expect(struct rfs_fs *fs, u32 ino, u64 at, u32 value, u32 len)
{
	CHECK_EQ(rfs_read(fs, ino, at, other), 0);
	fill_block(at, value);
	memset(block + len, 0, sizeof(block) - len);
	CHECK(!memcmp(block, other, sizeof(block)));
}

static void expect_all(struct rfs_fs *fs, u32 ino, u32 blocks, u32 value)
{
	u32 i;

	for (i = 0; i < blocks; i++)
		expect(fs, ino, i, value, RFS_BLOCK_BYTES);
}

static struct rfs_ptr pointer(struct rfs_fs *fs, u32 ino, u64 at)
{
	struct rfs_ptr ptr;

	CHECK_EQ(rfs_map_get(fs, ino, at, &ptr), 0);
	return ptr;
}

static u32 of_kind(struct rfs_fs *fs, u32 ino, u32 blocks, u8 kind)
{
	u32 i, n = 0;

	for (i = 0; i < blocks; i++)
		n += pointer(fs, ino, i).kind == kind;
	return n;
}

/* All that zones have which are full goes home. */
static void go_home(struct rfs_fs *fs)
{
	u32 most = 100000;

	CHECK_EQ(rfs_write_home(fs, &most), 0);
}

/* And leaves flash. */
static void leave_flash(struct rfs_fs *fs)
{
	CHECK_EQ(rfs_make_room_to_free(fs), 0);
	CHECK_EQ(rfs_spare(fs, fs->user_blocks - rfs_used(fs) + 1, 0,
			   fs->user_blocks / RFS_SPARE, rfs_checkpoint), 0);
	rfs_prove(fs, RFS_AT_ADMISSION);
}

static u64 blocks_of(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	return le64_to_cpu(di->blocks);
}

TEST(hybrid_there_and_back)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino, n, i;
	u64 blocks;

	ino = new_file(fs, "f", 200, 3);
	blocks = blocks_of(fs, ino);
	CHECK_EQ(of_kind(fs, ino, 200, RFS_PTR_BLOCK), 200);
	go_home(fs);
	n = of_kind(fs, ino, 200, RFS_PTR_BOTH);
	CHECK(n >= 2 * CAP - 10);
	CHECK_EQ(fs->home->count[RFS_SLOW_BOTH], n);
	CHECK_EQ(fs->stats.homed, n);
	expect_all(fs, ino, 200, 3);
	CHECK_EQ(fs->stats.slow_reads, 0);
	CHECK_EQ(fs->stats.flash_reads, n);
	check_clean(fs);
	fs = mount_again(fs, dev);
	CHECK_EQ(of_kind(fs, ino, 200, RFS_PTR_BOTH), n);

	/* what is at home already is not written there again */
	leave_flash(fs);
	n = of_kind(fs, ino, 200, RFS_PTR_ELSEWHERE);
	CHECK(n > 50);
	CHECK_EQ(fs->stats.evicted, n);
	CHECK_EQ(fs->stats.homed, 0);
	CHECK_EQ(blocks_of(fs, ino), blocks);
	expect_all(fs, ino, 200, 3);
	CHECK_EQ(fs->stats.slow_reads, n);
	check_clean(fs);
	fs = mount_again(fs, dev);
	expect_all(fs, ino, 200, 3);

	for (i = 0; i < 200; i++)
		CHECK_EQ(rfs_fill(fs, ino, i), 0);
	CHECK_EQ(of_kind(fs, ino, 200, RFS_PTR_ELSEWHERE), 0);
	CHECK_EQ(fs->stats.filled, n);
	CHECK_EQ(blocks_of(fs, ino), blocks);
	expect_all(fs, ino, 200, 3);
	CHECK_EQ(fs->stats.slow_reads, n);
	check_clean(fs);
	end(fs, dev);
}

/* ENOSPC comes when each block of the slow device is a file's, and not before. */
TEST(hybrid_fills_the_disk)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u64 room = rfs_home_blocks(SLOW_BLOCKS), n, left;
	u32 ino, i;
	int ret = 0;

	CHECK(fs->user_blocks * 10 < room);
	CHECK_EQ(rfs_available(fs), room);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	for (n = 0; !(ret = put(fs, ino, n, n)); n++)
		CHECK(n < room);
	CHECK_EQ(-ret, ENOSPC);
	CHECK_EQ(n, room);
	CHECK_EQ(rfs_available(fs), 0);
	/* zones that were freed were not copied: there was nothing else to do */
	CHECK_EQ(fs->stats.copied, 0);
	CHECK(fs->stats.resets > 2 * ZONES);
	check_clean(fs);
	for (i = 0; i < room; i += 97)
		expect(fs, ino, i, i, RFS_BLOCK_BYTES);

	/* what is there can be written again, and given up */
	for (i = 0; i < 3000; i++)
		CHECK_EQ(put(fs, ino, i * 7919 % room, 1), 0);
	check_clean(fs);
	CHECK_EQ(put(fs, ino, room, 1), -ENOSPC);
	fs = mount_again(fs, dev);
	for (i = 0; i < room; i += 89)
		CHECK_EQ(rfs_read(fs, ino, i, block), 0);
	for (i = 0; i < 3000; i += 13)
		expect(fs, ino, i * 7919 % room, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_truncate(fs, ino, 100 * RFS_BLOCK_BYTES, false), 0);
	left = rfs_available(fs);
	CHECK_EQ(left, room - 100);
	for (i = 0; i < 500; i++)
		CHECK_EQ(put(fs, ino, 100 + i, 2), 0);
	check_clean(fs);
	end(fs, dev);
}

/* What fallocate promises has room on the slow device, not on flash. */
TEST(hybrid_preallocates_more_than_flash)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u64 room = rfs_home_blocks(SLOW_BLOCKS), at = 0, i;
	u32 ino;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	CHECK_EQ(rfs_preallocate(fs, ino, &at, room + 1), -ENOSPC);
	while (at < room - 50)
		CHECK_EQ(rfs_preallocate(fs, ino, &at, room - 50), 0);
	CHECK_EQ(rfs_available(fs), 50);
	CHECK_EQ(put(fs, ino, room, 5), 0);
	for (i = 0; i < 2 * fs->user_blocks; i++)
		CHECK_EQ(put(fs, ino, i, 5), 0);
	CHECK_EQ(rfs_available(fs), 49);
	expect_all(fs, ino, 2 * fs->user_blocks, 5);
	check_clean(fs);
	end(fs, dev);
}

TEST(hybrid_truncated_within_a_block)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3), ino2 = new_file(fs, "g", 3, 4);
	u64 at = 20;

	go_home(fs);
	CHECK_EQ(pointer(fs, ino, at).kind, RFS_PTR_BOTH);
	CHECK_EQ(rfs_truncate(fs, ino, at * RFS_BLOCK_BYTES + 1234, false), 0);
	CHECK_EQ(pointer(fs, ino, at).kind, RFS_PTR_BOTH);
	CHECK_EQ(rfs_truncate(fs, ino, (at + 9) * RFS_BLOCK_BYTES, true), 0);
	expect(fs, ino, at, 3, 1234);
	check_clean(fs);
	leave_flash(fs);
	CHECK_EQ(pointer(fs, ino, at).kind, RFS_PTR_ELSEWHERE);
	expect(fs, ino, at, 3, 1234);
	CHECK_EQ(rfs_truncate(fs, ino, at * RFS_BLOCK_BYTES + 77, false), 0);
	CHECK_EQ(rfs_truncate(fs, ino, (at + 9) * RFS_BLOCK_BYTES, true), 0);
	fs = mount_again(fs, dev);
	expect(fs, ino, at, 3, 77);
	CHECK_EQ(rfs_fill(fs, ino, at), 0);
	expect(fs, ino, at, 3, 77);
	expect_all(fs, ino2, 3, 4);
	check_clean(fs);
	end(fs, dev);
}

/* Without the slow device, what flash has can be read, and nothing be written. */
TEST(hybrid_slow_device_is_gone)
{
	struct rfs_geometry alone, gone;
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3), i, there = 0;
	int ret;

	leave_flash(fs);
	for (i = 0; i < 20; i++)
		CHECK_EQ(rfs_fill(fs, ino, i), 0);
	CHECK_EQ(rfs_unmount(fs), 0);
	alone = dev->geo;
	alone.slow = NULL;
	gone = dev->geo;
	gone.slow = &rfs_slow_gone;
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &alone, false, 0, &fs), -ENOMEDIUM);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &alone, true, 0, &fs), -ENOMEDIUM);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &gone, false, 0, &fs), -ENXIO);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &gone, true, 0, &fs), 0);
	for (i = 0; i < 150; i++) {
		ret = rfs_read(fs, ino, i, block);
		if (pointer(fs, ino, i).kind == RFS_PTR_ELSEWHERE) {
			CHECK_EQ(-ret, ENXIO);
			continue;
		}
		there++;
		expect(fs, ino, i, 3, RFS_BLOCK_BYTES);
	}
	CHECK(there >= 20);
	CHECK(there < 150);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	expect_all(fs, ino, 150, 3);
	check_clean(fs);
	end(fs, dev);
}

/* One that fails takes nothing with it that was durable; flash is read. */
TEST(hybrid_slow_device_fails)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3), kept, i, most = 100;

	leave_flash(fs);
	for (i = 0; i < 20; i++)
		CHECK_EQ(rfs_fill(fs, ino, i), 0);
	kept = new_file(fs, "g", 100, 4);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	dev->slow_fails = true;
	expect_all(fs, ino, 20, 3);
	CHECK_EQ(pointer(fs, ino, 30).kind, RFS_PTR_ELSEWHERE);
	CHECK_EQ(rfs_read(fs, ino, 30, block), -EIO);
	CHECK_EQ(rfs_write_home(fs, &most), -EIO);
	expect_all(fs, kept, 100, 4);
	CHECK_EQ(put(fs, ino, 30, 9), 0);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	CHECK(fs->stats.slow_errors > 1);
	/* blocks of the slow device were given up, which it cannot be told */
	CHECK_EQ(rfs_checkpoint(fs, 0), -EIO);
	CHECK(fs->read_only);
	expect_all(fs, kept, 100, 4);
	rfs_unmount_nosync(fs);
	dev->slow_fails = false;
	fs = mount(dev);
	expect(fs, ino, 30, 9, RFS_BLOCK_BYTES);
	expect_all(fs, ino, 30, 3);
	expect_all(fs, kept, 100, 4);
	check_clean(fs);
	end(fs, dev);
}

/* A page that cannot be read, of a block that is at home, too, is no loss. */
TEST(hybrid_page_is_read_from_home)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3);
	struct rfs_ptr ptr;
	u64 losses;

	go_home(fs);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(pointer(fs, ino, 5).kind, RFS_PTR_BOTH);
	ptr = pointer(fs, ino, 5);
	dev->page[rfs_ptr_flash(&ptr)].state = MEM_TORN;
	expect_all(fs, ino, 150, 3);
	CHECK_EQ(fs->stats.slow_reads, 1);
	CHECK_EQ(repaired(fs, &losses), 1);
	CHECK_EQ(losses, 0);
	CHECK_EQ(pointer(fs, ino, 5).kind, RFS_PTR_ELSEWHERE);
	expect_all(fs, ino, 150, 3);
	end(fs, dev);
}

/* A write is under way, and a fill overtakes it: the file keeps the write's time. */
TEST(hybrid_fill_is_no_write)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 200, 3), n = 1, stream, i;
	const void *data = block;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_txn txn;
	struct rfs_oob oob;
	u64 addr, time, size, writes;

	go_home(fs);
	leave_flash(fs);
	fs = mount_again(fs, dev);
	for (i = 1; i < 200 && pointer(fs, ino, i).kind != RFS_PTR_ELSEWHERE; i++)
		;
	CHECK(i < 200);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	time = le64_to_cpu(di->mtime) + 1000000000;
	size = le64_to_cpu(di->size);
	writes = le64_to_cpu(di->wcount);

	CHECK_EQ(rfs_make_room(fs, 1, 0, 0), 0);
	fill_block(0, 5);
	CHECK_EQ(rfs_txn_begin(fs, ino, 0, 1, RFS_BLOCK_BYTES, time, &txn), 0);
	CHECK_EQ(rfs_txn_fill(fs, &txn, 0, &n, &oob, &stream), 0);
	CHECK_EQ(rfs_append(fs, stream, 1, &data, &oob, &addr), 0);
	CHECK_EQ(rfs_fill(fs, ino, i), 0);
	CHECK_EQ(pointer(fs, ino, i).kind, RFS_PTR_BOTH);
	CHECK_EQ(rfs_txn_done(fs, &oob, 1, &addr), 0);

	/* power is cut, and both pages are in the window */
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->recovered.pages_applied, 2);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->mtime), time);
	CHECK_EQ(le64_to_cpu(di->size), size);
	CHECK_EQ(le64_to_cpu(di->wcount), writes + 1);
	expect(fs, ino, 0, 5, RFS_BLOCK_BYTES);
	expect(fs, ino, i, 3, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

/* Blocks that are reserved go home and not to flash; len: bytes of the last */
static void send_home(struct rfs_fs *fs, u32 ino, u64 at, u32 n, u32 value, u32 len)
{
	static u8 content[100][RFS_BLOCK_BYTES];
	u64 now = fs->ops->now(fs->dev);
	struct rfs_home_row row;
	const void *data[100];
	struct rfs_txn txn;
	u32 done, i;
	int some;

	for (i = 0; i < n; i++) {
		fill_block(at + i, value);
		memcpy(content[i], block, sizeof(block));
		data[i] = content[i];
	}
	CHECK_EQ(rfs_txn_begin(fs, ino, at, n, len, now, &txn), 0);
	for (done = 0; done < n; done += row.n) {
		CHECK_EQ(rfs_bypass_begin(fs, n - done, &row), 0);
		CHECK_EQ(rfs_home_send(fs, row.first, row.n, data + done), 0);
		for (i = 0; i < row.n; i += some) {
			some = rfs_bypass_done(fs, &txn, done + i, row.n - i,
					       row.first + i);
			CHECK(some > 0);
		}
		rfs_home_row_over(fs, &row);
	}
}

static void bypass(struct rfs_fs *fs, u32 ino, u64 at, u32 n, u32 value, u32 len)
{
	u32 holes = 0, i;
	bool hole;

	for (i = 0; i < n; i++) {
		CHECK_EQ(rfs_reserve(fs, ino, at + i, &hole), 0);
		holes += hole;
	}
	send_home(fs, ino, at, n, value, len);
	rfs_unreserve(fs, ino, n, holes);
}

/* Over holes, over what flash has and what is at home; durable with a check-point */
TEST(hybrid_bypass)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 20, 3), i;
	u64 written;
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	written = fs->stats.written[RFS_DATA];
	bypass(fs, ino, 10, 90, 4, 100);
	CHECK_EQ(fs->stats.bypassed, 90);
	CHECK_EQ(fs->stats.written[RFS_DATA], written);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->size), 99 * RFS_BLOCK_BYTES + 100);
	CHECK_EQ(of_kind(fs, ino, 100, RFS_PTR_ELSEWHERE), 90);

	/* what was promised before is there, and no more */
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	expect_all(fs, ino, 20, 3);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->size), 20 * RFS_BLOCK_BYTES);
	check_clean(fs);

	bypass(fs, ino, 10, 90, 5, 100);
	bypass(fs, ino, 10, 30, 6, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(put(fs, ino, 15, 7), 0);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < 100; i++)
		expect(fs, ino, i, i < 10 ? 3 : i == 15 ? 7 : i < 40 ? 6 : 5,
		       i == 99 ? 100 : RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

/* Far apart: the index grows while blocks wait to be written, with holes before them */
TEST(hybrid_bypass_far_apart)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 0, 3), i;
	const u64 at[] = { 0, 1 << 20, 3000, RFS_FILE_BLOCKS - 1 };
	bool hole;

	for (i = 0; i < sizeof(at) / sizeof(*at); i++)
		CHECK_EQ(rfs_reserve(fs, ino, at[i], &hole), 0);
	for (i = 0; i < sizeof(at) / sizeof(*at); i++)
		send_home(fs, ino, at[i], 1, 3, RFS_BLOCK_BYTES);
	rfs_unreserve(fs, ino, i, i);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < sizeof(at) / sizeof(*at); i++)
		expect(fs, ino, at[i], 3, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

/* The power fails, and recovery leaves out the page of one fill. */
static struct rfs_fs *drop_fill(struct rfs_fs *fs, struct memdev *dev)
{
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ((u64)fs->recovered.pages_dropped, 1);
	return fs;
}

/* A block came to flash of which no check-point says that it was at home. */
TEST(hybrid_fill_of_what_bypassed)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 3, 3);
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	bypass(fs, ino, 0, 2, 4, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	bypass(fs, ino, 5, 2, 5, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fill(fs, ino, 5), 0);
	CHECK_EQ(rfs_fill(fs, ino, 1), 0);
	CHECK_EQ(pointer(fs, ino, 5).kind, RFS_PTR_BOTH);
	CHECK_EQ(pointer(fs, ino, 1).kind, RFS_PTR_BOTH);
	fs = drop_fill(fs, dev);
	CHECK_EQ(fs->recovered.pages_applied, 1);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->size), 3 * RFS_BLOCK_BYTES);
	expect(fs, ino, 1, 4, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

/* What it was filled from was there, but not durable: flash is what the index leads to. */
TEST(hybrid_fill_over_flash)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 3, 3);

	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	bypass(fs, ino, 1, 1, 4, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fill(fs, ino, 1), 0);
	CHECK_EQ(pointer(fs, ino, 1).kind, RFS_PTR_BOTH);
	fs = drop_fill(fs, dev);
	CHECK_EQ(pointer(fs, ino, 1).kind, RFS_PTR_BLOCK);
	expect_all(fs, ino, 3, 3);
	check_clean(fs);
	end(fs, dev);
}

/* A fill has more valid bytes than a check-point has at home, and the file ends there. */
TEST(hybrid_fill_of_more_bytes)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 0, 3);
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	bypass(fs, ino, 0, 1, 4, 100);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	bypass(fs, ino, 0, 1, 5, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fill(fs, ino, 0), 0);
	CHECK_EQ(pointer(fs, ino, 0).kind, RFS_PTR_BOTH);
	fs = drop_fill(fs, dev);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->size), 100);
	expect(fs, ino, 0, 4, 100);
	check_clean(fs);
	end(fs, dev);
}

/* While a row is written a check-point comes: nobody else is given its blocks. */
TEST(hybrid_row_stays_held)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	struct rfs_home_row row, other_row;
	struct rfs_home *home = fs->home;
	u64 first;

	CHECK_EQ(rfs_home_alloc(fs, 5, &row), 5);
	first = row.first;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(home->count[RFS_SLOW_HELD], 5);
	home->cursor = 0;
	CHECK_EQ(rfs_home_alloc(fs, 5, &other_row), 5);
	CHECK_EQ(other_row.first, first + 5);
	rfs_home_row_over(fs, &row);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(home->count[RFS_SLOW_HELD], 5);
	home->cursor = 0;
	CHECK_EQ(rfs_home_alloc(fs, 6, &row), 5);
	CHECK_EQ(row.first, first);
	rfs_home_row_over(fs, &other_row);
	rfs_home_row_over(fs, &row);
	CHECK(!home->rows);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(home->count[RFS_SLOW_HELD], 0);
	check_clean(fs);
	end(fs, dev);
}

/* fsck.rfs -p makes the table of states what pointers say. */
TEST(hybrid_states_are_repaired)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3);
	u64 losses;

	leave_flash(fs);
	go_home(fs);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	fs->home->state[0] ^= 0x02;	/* one that is there alone is on both */
	fs->home->state[50] ^= 0x0c;	/* and one that is free */
	CHECK_EQ(repaired(fs, &losses), 2);
	CHECK_EQ(losses, 0);
	expect_all(fs, ino, 150, 3);
	fs = mount_again(fs, dev);
	check_clean(fs);
	end(fs, dev);
}

/* Two files that have one block of the slow device: the second loses it. */
TEST(hybrid_block_is_claimed_twice)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3);
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	u64 losses;

	leave_flash(fs);
	CHECK_EQ(rfs_map_slot(fs, ino, 9, false, &slot, &buf), 0);
	slot->addr = pointer(fs, ino, 8).addr;
	rfs_buf_dirty(fs, buf);
	CHECK_EQ(repaired(fs, &losses), 2);
	CHECK_EQ(losses, 1);
	expect_all(fs, ino, 9, 3);
	CHECK_EQ(pointer(fs, ino, 9).kind, RFS_PTR_HOLE);
	end(fs, dev);
}

TEST(hybrid_wrong_slow_device)
{
	static const struct rfs_id twin = { "fedcba9876543210", "a key for hashes",
					    "a key to be safe" };
	struct memdev *dev, *other_dev = new_dev(SLOW_BLOCKS);
	struct rfs_fs *fs = mount_new(&dev);
	struct rfs_geometry geo;

	CHECK_EQ(rfs_unmount(fs), 0);
	CHECK_EQ(rfs_mkfs(&memdev_ops, other_dev, &other_dev->geo, &twin, ""), 0);
	geo = dev->geo;
	geo.slow = &other_dev->slow;
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), -ENODEV);
	other_dev->slow = dev->slow;
	other_dev->slow.blocks--;
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), -EOVERFLOW);
	memdev_free(dev);
	memdev_free(other_dev);
}

/* Of two copies of a block of the table one may be lost, and not the other. */
TEST(hybrid_copies_of_states)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3), copy;

	leave_flash(fs);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	copy = fs->home->copy[0];
	CHECK_EQ(rfs_unmount(fs), 0);
	dev->slow_block[1 + !copy] = NULL;
	fs = mount(dev);
	expect_all(fs, ino, 150, 3);
	check_clean(fs);
	CHECK_EQ(rfs_unmount(fs), 0);
	dev->slow_block[1] = NULL;
	dev->slow_block[2] = NULL;
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs), -EUCLEAN);
	memdev_free(dev);
}

/* The volume as it is now without a check-point, or why it is not mounted */
static int try_mount(struct memdev *dev, bool read_only, bool will_repair)
{
	struct rfs_fs *fs;
	int ret;

	dev->slow.will_repair = will_repair;
	ret = rfs_mount(&memdev_ops, dev, &dev->geo, read_only, 0, &fs);
	dev->slow.will_repair = false;
	if (!ret)
		rfs_unmount_nosync(fs);
	return ret;
}

/* fsck.rfs mounts it, finds that the table is damaged, and makes it anew. */
static struct rfs_fs *repair_states(struct memdev *dev)
{
	struct rfs_report found = { 0 };
	struct rfs_fs *fs;
	u64 losses;

	/* who is cut off before he has repaired leaves it as it was */
	CHECK_EQ(try_mount(dev, false, true), 0);
	CHECK_EQ(try_mount(dev, false, false), -EUCLEAN);
	dev->slow.will_repair = true;
	fs = mount(dev);
	dev->slow.will_repair = false;
	CHECK_EQ(rfs_check(fs, &found), 0);
	CHECK(found.faults > 1);
	CHECK(repaired(fs, &losses) > 1);
	CHECK_EQ(losses, 0);
	return mount_again(fs, dev);
}

/*
 * The copy that a check-point was written with is damaged: the other one is whole, and says
 * that blocks are free which are in use.
 */
TEST(hybrid_damaged_copy_is_noticed)
{
	struct rfs_home_row row;
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3), more, copy, i;

	leave_flash(fs);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	copy = fs->home->copy[0];
	more = new_file(fs, "g", 150, 4);
	leave_flash(fs);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(fs->home->copy[0] != copy);
	copy = fs->home->copy[0];
	CHECK_EQ(rfs_unmount(fs), 0);
	dev->slow_block[1 + copy] = NULL;

	CHECK_EQ(try_mount(dev, false, false), -EUCLEAN);
	/* what the volume leads to can be read */
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, true, 0, &fs), 0);
	expect_all(fs, ino, 150, 3);
	expect_all(fs, more, 150, 4);
	rfs_unmount_nosync(fs);
	/* nobody is given a block of which it is not known that it is free */
	dev->slow.will_repair = true;
	fs = mount(dev);
	dev->slow.will_repair = false;
	CHECK(fs->home->count[RFS_SLOW_FREE] > 0);
	CHECK_EQ(rfs_home_alloc(fs, 1, &row), 0);
	rfs_unmount_nosync(fs);

	fs = repair_states(dev);
	for (i = 0; i < 300; i++)
		CHECK_EQ(put(fs, ino, 150 + i, 5), 0);
	leave_flash(fs);
	expect_all(fs, ino, 150, 3);
	expect_all(fs, more, 150, 4);
	check_clean(fs);
	end(fs, dev);
}

/* Both copies are damaged. */
TEST(hybrid_lost_states_are_repaired)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3);

	leave_flash(fs);
	CHECK_EQ(rfs_unmount(fs), 0);
	dev->slow_block[1] = NULL;
	dev->slow_block[2] = NULL;
	CHECK_EQ(try_mount(dev, false, false), -EUCLEAN);
	CHECK_EQ(try_mount(dev, true, false), 0);
	fs = repair_states(dev);
	expect_all(fs, ino, 150, 3);
	check_clean(fs);
	end(fs, dev);
}

/* A check-point of before, which does not say which copies it was written with */
TEST(hybrid_checkpoint_without_a_sum)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = new_file(fs, "f", 150, 3), i;
	struct rfs_cp *cp;
	u64 addr;

	leave_flash(fs);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	for (i = 0; i < RFS_CP_MIRRORS; i++) {
		addr = fs->cp_mirror[i] * ZONE_BLOCKS + dev->wp[fs->cp_mirror[i]] - 1;
		cp = (struct rfs_cp *)dev->page[addr].data;
		CHECK_EQ(cp->head.type, RFS_CP);
		CHECK(cp->head.prev);
		cp->head.prev = 0;
		rfs_head_seal(&cp->head, le64_to_cpu(cp->head.stamp));
	}
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->states_sum, 0);
	expect_all(fs, ino, 150, 3);
	check_clean(fs);
	/* the next one does */
	fs = mount_again(fs, dev);
	CHECK(fs->states_sum);
	end(fs, dev);
}

/* The slow device has room for what flash has; without one nothing is different. */
TEST(hybrid_sizes)
{
	struct memdev *dev = new_dev(ZONES * ZONE_BLOCKS);
	struct rfs_geometry geo = dev->geo;
	struct rfs_slow_dev big = dev->slow;
	struct rfs_fs *fs;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), -EFBIG);
	big.blocks = RFS_HYBRID_BLOCKS + 1;
	geo.slow = &big;
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), -EFBIG);
	geo.slow = NULL;
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), 0);
	CHECK(!rfs_is_hybrid(&fs->super));
	CHECK_EQ(fs->super.slow_blocks, 0);
	CHECK(!fs->home);
	CHECK_EQ(rfs_unmount(fs), 0);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs), -ENODEV);
	memdev_free(dev);
}

/* What finds a volume by its pages does not know homes, and sees that there are some. */
TEST(hybrid_is_not_rescanned)
{
	struct rfs_report report = { 0 };
	struct rfs_rescue rescue;
	struct rfs_geometry alone;
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 zone, times;

	new_file(fs, "f", 150, 3);
	new_file(fs, "short", 3, 4);
	leave_flash(fs);
	CHECK_EQ(rfs_unmount(fs), 0);
	alone = dev->geo;
	alone.slow = NULL;
	/* the second time its superblocks and check-points are lost */
	for (times = 0; times < 2; times++) {
		CHECK_EQ(rfs_rescan(&memdev_ops, dev, &dev->geo, &report,
				    &rescue, &fs), -EOPNOTSUPP);
		CHECK_EQ(rfs_rescan(&memdev_ops, dev, &alone, &report, &rescue,
				    &fs), -EOPNOTSUPP);
		for (zone = 0; zone < RFS_CP_ZONES; zone++)
			CHECK_EQ(memdev_ops.reset(dev, zone), 0);
	}
	memdev_free(dev);
}

/* A pointer to both devices has all that one to either has, but for fractions. */
TEST(hybrid_pointers)
{
	static const u32 len[] = { 1, 2, 255, 256, 257, 4095, 4096 };
	struct rfs_ptr was = { .kind = RFS_PTR_BLOCK, .frac = 200,
			       .time = cpu_to_le32(77) };
	u32 i;

	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		struct rfs_ptr ptr = was;

		ptr.wcount = cpu_to_le16(i == 3 ? 0xffff : 17 * i);
		ptr.addr = rfs_word(0xfedcba98, len[i]);
		rfs_ptr_put(&ptr, 0xfedcba98, 0x89abcdef, len[i]);
		CHECK_EQ(ptr.kind, RFS_PTR_BOTH);
		CHECK_EQ(rfs_ptr_flash(&ptr), 0xfedcba98);
		CHECK_EQ(rfs_ptr_home(&ptr), 0x89abcdef);
		CHECK_EQ(rfs_ptr_len(&ptr), len[i]);
		CHECK_EQ(rfs_ptr_wcount(&ptr), i == 3 ? 0xfff : 17 * i);
		CHECK_EQ(rfs_ptr_ticks(&ptr), 77 << 8);
		rfs_ptr_put(&ptr, 0, 0x89abcdef, len[i]);
		CHECK_EQ(ptr.kind, RFS_PTR_ELSEWHERE);
		CHECK_EQ(rfs_ptr_home(&ptr), 0x89abcdef);
		CHECK_EQ(rfs_ptr_flash(&ptr), 0);
		CHECK_EQ(rfs_ptr_len(&ptr), len[i]);
		CHECK_EQ(rfs_ptr_ticks(&ptr), 77 << 8);
	}
}
