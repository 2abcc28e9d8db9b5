// SPDX-License-Identifier: GPL-2.0-or-later
/* The replica of a hybrid volume's metadata on its slow device, and volumes without flash. */
#include <stdio.h>

#include "check.h"
#include "clean.h"
#include "flashless_check.h"
#include "home/replica.h"
#include "tree/tree.h"
#include "tree/dir.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"
#include "tools/flashless.h"

#define CAP		62
#define ZONES		40
#define ZONE_BLOCKS	64
#define FLASH		(ZONES * ZONE_BLOCKS)
#define SLOW_BLOCKS	(10 * FLASH)
#define REPLICA		(SLOW_BLOCKS / 32)
#define NEVER_AGAIN	(1ULL << 62)

static const struct rfs_geometry geometry = {
	.zones = ZONES, .zone_blocks = ZONE_BLOCKS, .oob_bytes = 64,
};
static const struct rfs_id id = { "0123456789abcde", "a key for hashes",
				  "a key to be safe", .runs = true,
				  .replica = true };
static const struct rfs_new file = { .mode = S_IFREG | 0644 };
static const struct rfs_new folder = { .mode = S_IFDIR | 0755 };
static u8 block[RFS_BLOCK_BYTES];

static struct memdev *new_dev(u64 slow_blocks)
{
	struct memdev *dev = memdev_new(&geometry, CAP, 512 << 20, false);

	memdev_add_slow(dev, slow_blocks);
	return dev;
}

static struct rfs_fs *mount(struct memdev *dev)
{
	struct rfs_fs *fs;

	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs), 0);
	return fs;
}

static struct rfs_fs *mount_new(struct memdev **dev, u64 slow_blocks)
{
	*dev = new_dev(slow_blocks);
	CHECK_EQ(rfs_mkfs(&memdev_ops, *dev, &(*dev)->geo, &id, "test"), 0);
	return mount(*dev);
}

static void end(struct rfs_fs *fs, struct memdev *dev)
{
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

static void put(struct rfs_fs *fs, u32 ino, u64 at, u8 value)
{
	const void *data = block;

	memset(block, value, sizeof(block));
	CHECK_EQ(rfs_write(fs, ino, at, 1, &data, RFS_BLOCK_BYTES), 0);
}

static u32 new_file(struct rfs_fs *fs, u32 dir, const char *name, u32 blocks)
{
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, dir, name, &file, &ino), 0);
	for (i = 0; i < blocks; i++)
		put(fs, ino, i, ino + i);
	return ino;
}

static void go_home(struct rfs_fs *fs)
{
	u32 most = 100000;

	CHECK_EQ(rfs_write_home(fs, &most), 0);
}

static void replicate_at_once(struct rfs_fs *fs)
{
	fs->home->replica->every = 0;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(fs->home->replica->seq, fs->cp_seq);
}

/* What is there without flash is what the volume has at home now. */
static void expect_replica(struct rfs_fs *fs, struct memdev *dev)
{
	u64 is, digest, seq;

	CHECK_EQ(flashless_digest_of(fs, &is), 0);
	CHECK_EQ(flashless_digest_seq(dev->geo.slow, &digest, &seq), 0);
	CHECK_EQ(seq, fs->cp_seq);
	CHECK_EQ(digest, is);
}

static u64 lost;
static char paths[10000];	/* a line each loss */

static void note_loss(void *arg, const struct rfs_loss *loss)
{
	(void)arg;
	lost += DIV_ROUND_UP(loss->to - loss->from, RFS_BLOCK_BYTES);
	strcat(strcat(paths, loss->path), "\n");
}

static struct rfs_losses losses_of(struct memdev *dev)
{
	struct rfs_losses losses = { .say = note_loss };
	struct rfs_flashless *f;
	struct rfs_fs *fs;

	lost = 0;
	paths[0] = 0;
	CHECK_EQ(rfs_flashless_open(dev->geo.slow, &f), 0);
	CHECK_EQ(rfs_mount(&rfs_flashless_ops, f, rfs_flashless_geometry(f), true,
			   0, &fs), 0);
	CHECK_EQ(rfs_flashless_losses(fs, &losses), 0);
	rfs_unmount_nosync(fs);
	rfs_flashless_close(f);
	CHECK_EQ(losses.blocks, lost);
	CHECK_EQ(losses.unreadable, 0);
	return losses;
}

static u64 on_flash_alone(struct rfs_fs *fs, u32 ino, u32 blocks)
{
	struct rfs_ptr ptr;
	u64 n = 0;
	u32 i;

	for (i = 0; i < blocks; i++) {
		CHECK_EQ(rfs_map_get(fs, ino, i, &ptr), 0);
		n += ptr.kind == RFS_PTR_BLOCK;
	}
	return n;
}

/* Of files with blocks on either device and on both, and their names */
TEST(replica_has_what_is_home)
{
	u32 dir, ino[100], late, i, damaged = 1;
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	struct rfs_losses losses;
	u64 alone, n;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &folder, &dir), 0);
	for (i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		ino[i] = new_file(fs, dir, name, 5);
	}
	late = new_file(fs, RFS_ROOT_INO, "late", 300);
	go_home(fs);
	put(fs, late, 7, 99);
	put(fs, late, 8, 99);
	put(fs, late, 20, 99);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	alone = on_flash_alone(fs, late, 300);
	CHECK(alone >= 3 && alone < 200);
	for (i = 0; i < 100; i++) {
		n = on_flash_alone(fs, ino[i], 5);
		damaged += n > 0;
		alone += n;
	}
	CHECK(damaged > 1 && damaged < 90);
	losses = losses_of(dev);
	CHECK_EQ(losses.damaged, damaged);
	CHECK_EQ(losses.whole, 101 - damaged);
	CHECK_EQ(lost, alone);
	CHECK(strstr(paths, "/d/f99\n"));
	CHECK(!strstr(paths, "/d/f1\n"));
	CHECK(strstr(paths, "/late\n"));
	end(fs, dev);
}

static u64 replicated_by(struct rfs_fs *fs)
{
	u64 before = fs->stats.replicated;

	replicate_at_once(fs);
	return fs->stats.replicated - before;
}

/* What has not changed is not written again, nor after a mount of what was unmounted. */
TEST(replica_is_written_by_what_changed)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	u32 ino = 0, i;
	u64 all;

	for (i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		ino = new_file(fs, RFS_ROOT_INO, name, 9);
	}
	go_home(fs);
	all = replicated_by(fs);
	CHECK(all > 40);
	put(fs, ino, 0, 1);
	CHECK(replicated_by(fs) < 14);
	expect_replica(fs, dev);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK_EQ(fs->stats.replicated, 0);
	put(fs, ino, 0, 2);
	CHECK(replicated_by(fs) < 14);
	expect_replica(fs, dev);

	/* after a cut it is not known which zones were reset since */
	fs->home->replica->every = NEVER_AGAIN;
	put(fs, ino, 0, 3);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(fs->home->replica->seq < fs->cp_seq);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK(fs->stats.replicated > 40);
	expect_replica(fs, dev);
	end(fs, dev);
}

/* Blocks that it leads to are not free before the next, unless others are needed. */
TEST(replica_holds_what_it_leads_to)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 300);
	struct rfs_home *home = fs->home;
	u64 digest, is, held;

	go_home(fs);
	replicate_at_once(fs);
	home->replica->every = NEVER_AGAIN;
	CHECK_EQ(flashless_digest(dev->geo.slow, &digest), 0);
	CHECK_EQ(home->count[RFS_SLOW_HELD], 0);
	CHECK_EQ(rfs_truncate(fs, ino, 10 * RFS_BLOCK_BYTES, false), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	held = home->count[RFS_SLOW_HELD];
	CHECK(held > 100);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(home->count[RFS_SLOW_HELD], held);

	/* also by who mounts it after a cut, until he has made one */
	rfs_unmount_nosync(fs);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, true, 0, &fs), 0);
	CHECK_EQ(fs->home->count[RFS_SLOW_HELD], held);
	rfs_unmount_nosync(fs);
	CHECK_EQ(flashless_digest(dev->geo.slow, &is), 0);
	CHECK_EQ(is, digest);
	fs = mount(dev);
	CHECK_EQ(fs->home->count[RFS_SLOW_HELD], 0);
	expect_replica(fs, dev);
	check_clean(fs);
	end(fs, dev);
}

/* A disk that is full gives what is held: a replica is made for it. */
TEST(replica_does_not_take_the_disk)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, FLASH + 1200);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 1), i, round;
	u64 blocks;

	fs->home->replica->every = NEVER_AGAIN;
	blocks = rfs_available(fs) - 20;
	for (round = 0; round < 4; round++)
		for (i = 0; i < blocks; i++)
			put(fs, ino, i, i + round);
	CHECK(fs->stats.homed > 2 * fs->home->blocks);
	CHECK(fs->stats.replicas > 2);
	CHECK_EQ(fs->stats.replicas_dropped, 0);
	check_clean(fs);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	end(fs, dev);
}

/* Is one of what changes with each check-point where the replica has it from? */
static bool comes_again(struct rfs_fs *fs)
{
	const struct rfs_replica *r = fs->home->replica;
	const u64 now[] = { fs->timb_addr[0], fs->ztab_addr[0],
			    rfs_timb(fs, 0) & RFS_ADDR_MASK };
	const u64 place[] = { rfs_place_timb(fs), rfs_place_ztab(fs),
			      rfs_place_map(fs) };
	u32 i;

	for (i = 0; i < 3; i++)
		if (le64_to_cpu(rfs_replica_find(r, place[i])->addr) == now[i])
			return true;
	return false;
}

/* The address of what a place leads to may be the same, and other metadata there. */
TEST(replica_knows_zones_that_were_reset)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 1), i = 0;

	do {
		CHECK_EQ(rfs_truncate(fs, ino, 1 + i % 4000, false), 0);
		if (i++ % 7 == 3)
			put(fs, ino, 300 + i % 3, i);
		/* in a zone where nothing stays */
		if (i == 300)
			replicate_at_once(fs);
		fs->home->replica->every = NEVER_AGAIN;
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	} while (i <= 310 || !comes_again(fs));
	replicate_at_once(fs);
	expect_replica(fs, dev);
	end(fs, dev);
}

/* Where it has no room, there is none, and the volume goes on. */
TEST(replica_without_room)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, FLASH + 1200);
	struct rfs_flashless *f;
	u32 dirs[60], i, j, n = 0;
	char name[40];

	/* directories take a block each */
	for (i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &folder, &dirs[i]), 0);
	}
	for (i = 0; i < 60; i++)
		for (j = 0; j < 12; j++, n++) {
			u32 dir;

			snprintf(name, sizeof(name), "d%u", j);
			CHECK_EQ(rfs_create(fs, dirs[i], name, &folder, &dir), 0);
			CHECK_EQ(rfs_create(fs, dir, "f", &file, &dir), 0);
		}
	CHECK(n > fs->home->replica->slots);
	fs->home->replica->every = 0;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(fs->stats.replicas_dropped, 1);
	CHECK_EQ(rfs_flashless_open(dev->geo.slow, &f), -ENOENT);
	/* that it lacks is written once */
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(fs->stats.replicas_dropped, 1);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK_EQ(fs->home->count[RFS_SLOW_HELD], 0);
	for (i = 0; i < 60; i++)
		for (j = 0; j < 12; j++) {
			u32 dir, ino;

			snprintf(name, sizeof(name), "d%u", j);
			CHECK_EQ(rfs_dir_find(fs, dirs[i], name, strlen(name), &dir),
				 0);
			CHECK_EQ(rfs_unlink(fs, dir, "f", &ino), 0);
			CHECK_EQ(rfs_free_orphan(fs, ino), 0);
			CHECK_EQ(rfs_unlink(fs, dirs[i], name, &ino), 0);
			CHECK_EQ(rfs_free_orphan(fs, ino), 0);
		}
	/* and when there is room again, it is made */
	replicate_at_once(fs);
	expect_replica(fs, dev);
	check_clean(fs);
	end(fs, dev);
}

/* A block of its table, or the head that counts, is damaged. */
TEST(replica_that_is_damaged)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	struct rfs_flashless *f;
	struct rfs_replica *r;
	const u8 **at;

	new_file(fs, RFS_ROOT_INO, "f", 300);
	go_home(fs);
	replicate_at_once(fs);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	r = fs->home->replica;
	at = &dev->slow_block[rfs_places_at(r, 0, r->copy[0])];
	rfs_unmount_nosync(fs);
	CHECK_EQ(rfs_flashless_open(dev->geo.slow, &f), 0);
	rfs_flashless_close(f);
	*at = NULL;
	CHECK_EQ(rfs_flashless_open(dev->geo.slow, &f), -EUCLEAN);
	/* who mounts the volume makes it anew */
	fs = mount(dev);
	expect_replica(fs, dev);
	check_clean(fs);
	end(fs, dev);
}

/* A new drive in place of the one that is gone: files have what was home. */
TEST(replica_makes_a_new_drive)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 300), i;
	u64 digest, is, losses;
	struct rfs_ptr ptr;

	go_home(fs);
	put(fs, ino, 3, 200);
	CHECK_EQ(rfs_unmount(fs), 0);
	CHECK_EQ(flashless_digest(dev->geo.slow, &digest), 0);
	memset(dev->page, 0, FLASH * sizeof(*dev->page));
	memset(dev->wp, 0, ZONES * sizeof(*dev->wp));
	CHECK_EQ((u64)flashless_restore(dev, &losses), 0);
	CHECK(losses > 0);
	fs = mount(dev);
	CHECK_EQ(flashless_digest_of(fs, &is), 0);
	CHECK_EQ(is, digest);
	for (i = 0; i < 300; i++) {
		CHECK_EQ(rfs_map_get(fs, ino, i, &ptr), 0);
		CHECK(ptr.kind == RFS_PTR_ELSEWHERE || ptr.kind == RFS_PTR_HOLE);
		losses -= ptr.kind == RFS_PTR_HOLE;
		CHECK_EQ(rfs_read(fs, ino, i, block), 0);
		CHECK_EQ(block[100], ptr.kind == RFS_PTR_HOLE ? 0 :
						(u8)(ino + i));
	}
	CHECK_EQ(losses, 0);
	/* and it goes on as any other */
	put(fs, ino, 3, 201);
	go_home(fs);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	check_clean(fs);
	end(fs, dev);
}

/* A slow device that fails while it is made: the volume is not written any more. */
TEST(replica_that_cannot_be_written)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 1);
	u64 seq;

	replicate_at_once(fs);
	fs->home->replica->every = NEVER_AGAIN;
	put(fs, ino, 0, 77);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	seq = fs->cp_seq;
	fs->home->replica->every = 0;
	put(fs, ino, 0, 78);
	dev->slow_fails = true;
	/* no state has changed: it is the replica that fails */
	CHECK_EQ(rfs_checkpoint(fs, 0), -EIO);
	CHECK_EQ(fs->cp_seq, seq + 1);
	CHECK(fs->read_only);
	dev->slow_fails = false;
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(rfs_read(fs, ino, 0, block), 0);
	CHECK_EQ(block[5], 78);
	expect_replica(fs, dev);
	end(fs, dev);
}

static int (*real_write)(void *dev, u64 block, u32 n, const void *const *data);
static struct rfs_fs *trimmed;

/* In the module others may use the volume while the slow device is written. */
static int write_trimmed(void *dev, u64 at, u32 n, const void *const *data)
{
	int ret = real_write(dev, at, n, data);

	rfs_cache_trim(trimmed, 0);
	return ret;
}

/* What is in memory may be forgotten whenever the slow device is written. */
TEST(replica_while_memory_is_short)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	char name[16];
	u32 i, dir;

	real_write = fs->home->slow.write;
	trimmed = fs;
	/* more blocks than are written at a time, all of them in memory */
	for (i = 0; i < 150; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &folder, &dir), 0);
		new_file(fs, dir, "f", 1);
	}
	fs->home->slow.write = write_trimmed;
	replicate_at_once(fs);
	CHECK(fs->stats.replicated > 150);
	fs->home->slow.write = real_write;
	expect_replica(fs, dev);
	end(fs, dev);
}

/* Without page metadata, or a slow device, there is none. */
TEST(replica_needs_page_metadata)
{
	struct rfs_geometry geo = geometry;
	struct memdev *dev;

	geo.oob_bytes = 0;
	dev = memdev_new(&geo, CAP, 1 << 20, false);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &dev->geo, &id, "test"), -EOPNOTSUPP);
	memdev_add_slow(dev, SLOW_BLOCKS);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &dev->geo, &id, "test"), -EOPNOTSUPP);
	memdev_free(dev);
}
