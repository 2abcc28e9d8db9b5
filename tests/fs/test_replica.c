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

static void replicate_home(struct rfs_fs *fs)
{
	go_home(fs);
	replicate_at_once(fs);
}

/* Makes a volume with a file that is at home, and in a replica. */
static struct rfs_fs *mount_with_replica(struct memdev **dev, u32 blocks,
					 u32 *ino)
{
	struct rfs_fs *fs = mount_new(dev, SLOW_BLOCKS);

	*ino = new_file(fs, RFS_ROOT_INO, "f", blocks);
	replicate_home(fs);
	return fs;
}

/* Writes another file home, from the first free block on. No replica is made. */
static void reuse_free_blocks(struct rfs_fs *fs)
{
	fs->home->replica->every = NEVER_AGAIN;
	fs->home->cursor = 0;
	new_file(fs, RFS_ROOT_INO, "other", 300);
	go_home(fs);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
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
	if (!loss->unreadable)
		lost += DIV_ROUND_UP(loss->to - loss->from, RFS_BLOCK_BYTES);
	else
		strcat(paths, "unreadable: ");
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
	CHECK_EQ(losses.unreadable, 0);
	CHECK_EQ(losses.damaged, damaged);
	CHECK_EQ(losses.whole, 101 - damaged);
	CHECK_EQ(lost, alone);
	CHECK(strstr(paths, "/d/f99\n"));
	CHECK(!strstr(paths, "/d/f1\n"));
	CHECK(strstr(paths, "/late\n"));
	end(fs, dev);
}

/* Of files and directories whose metadata is damaged there, the name is what is known. */
TEST(replica_names_what_cannot_be_read)
{
	u32 dir, ino, i;
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	const struct rfs_replica *r = fs->home->replica;
	struct rfs_losses losses;
	u64 place;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &folder, &dir), 0);
	/* inodes of more than a block */
	for (i = 0; i < 60; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		ino = new_file(fs, dir, name, 1);
	}
	replicate_home(fs);
	place = rfs_place_word(fs) + ino / RFS_BLOCK_INODES;
	CHECK(rfs_replica_slot(r, place));
	dev->slow_block[rfs_slot_at(r, rfs_replica_slot(r, place) - 1)] = NULL;
	losses = losses_of(dev);
	CHECK(losses.unreadable > 0 && losses.unreadable < 30);
	CHECK(strstr(paths, "unreadable: /d/f59\n"));
	CHECK(!strstr(paths, "unreadable: /d/f1\n"));
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
	u32 ino;
	struct memdev *dev;
	struct rfs_fs *fs = mount_with_replica(&dev, 300, &ino);
	struct rfs_home *home = fs->home;
	u64 digest, is, held;

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
	replicate_home(fs);
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
	replicate_home(fs);
	expect_replica(fs, dev);
	check_clean(fs);
	end(fs, dev);
}

/* A slow device that fails while it is made: the volume goes on. */
TEST(replica_that_cannot_be_written)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 1);
	u64 seq, errors;

	replicate_at_once(fs);
	fs->home->replica->every = NEVER_AGAIN;
	put(fs, ino, 0, 77);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	seq = fs->cp_seq;
	errors = fs->stats.slow_errors;
	fs->home->replica->every = 0;
	put(fs, ino, 0, 78);
	dev->slow_fails = true;
	/* no state has changed: it is the replica that fails */
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(fs->cp_seq, seq + 1);
	CHECK(!fs->read_only);
	CHECK(fs->stats.slow_errors > errors);
	CHECK(fs->home->replica->seq < fs->cp_seq);
	CHECK_EQ(fs->stats.replicas_failed, 1);
	dev->slow_fails = false;
	put(fs, ino, 0, 79);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	CHECK_EQ(fs->stats.replicas_failed, 1);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(rfs_read(fs, ino, 0, block), 0);
	CHECK_EQ(block[5], 79);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	end(fs, dev);
}

static bool lose(void *arg)
{
	(void)arg;
	return true;
}

static int (*real_flush)(void *dev);
static u32 good_flushes;	/* before one that fails, and all after it */

/* Nothing is there of what was sent since the last good one. */
static int bad_flush(void *dev)
{
	if (good_flushes) {
		good_flushes--;
		return real_flush(dev);
	}
	memdev_slow_loses(dev, lose, NULL);
	return -EIO;
}

/* Writes are noted, so that it is known which a flush did not make durable. */
static struct rfs_fs *mount_noted(struct memdev **dev)
{
	*dev = memdev_new(&geometry, CAP, 512 << 20, true);
	memdev_add_slow(*dev, SLOW_BLOCKS);
	CHECK_EQ(rfs_mkfs(&memdev_ops, *dev, &(*dev)->geo, &id, "test"), 0);
	return mount(*dev);
}

static void flushes_fail(struct rfs_fs *fs, u32 after)
{
	if (fs->home->slow.flush != bad_flush)
		real_flush = fs->home->slow.flush;
	fs->home->slow.flush = bad_flush;
	good_flushes = after;
}

static void flushes_are_good(struct rfs_fs *fs)
{
	fs->home->slow.flush = real_flush;
}

/* What is found without flash: as much as before the failures, or nothing; none is wrong */
static void expect_older(struct memdev *dev, u64 was, u64 seq)
{
	u64 digest, is;
	int ret = flashless_digest_seq(dev->geo.slow, &digest, &is);

	CHECK(ret == 0 || ret == -ENOENT);
	if (!ret && is == seq)
		CHECK_EQ(digest, was);
}

/*
 * Flushes of the slow device fail while a replica is made: of its slots and its table, of one
 * head, of the other. The volume goes on with flash, and the next one is current again.
 */
TEST(replica_that_cannot_be_flushed)
{
	u32 good, ino, i, times, failed;
	struct memdev *dev;
	struct rfs_fs *fs;
	u64 was, seq;

	for (good = 0; good < 3; good++) {
		fs = mount_noted(&dev);
		ino = new_file(fs, RFS_ROOT_INO, "f", 300);
		replicate_home(fs);
		CHECK_EQ(flashless_digest_seq(dev->geo.slow, &was, &seq), 0);
		CHECK_EQ(fs->stats.replicas_failed, 0);
		for (times = 0; times < 2; times++) {
			put(fs, ino, 2, 77 + times);
			/* from now on it is on flash alone: flushes are the replica's */
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
			CHECK_EQ(flashless_digest_seq(dev->geo.slow, &was, &seq), 0);
			put(fs, ino, 2, 87 + times);
			flushes_fail(fs, good);
			failed = fs->stats.replicas_failed;
			for (i = 0; i < 3; i++) {
				CHECK_EQ(rfs_checkpoint(fs, 0), 0);
				CHECK(!fs->read_only);
				expect_older(dev, was, seq);
				put(fs, ino, 2, 97 + i);
				good_flushes = 0;
			}
			CHECK(fs->stats.replicas_failed > failed);
			flushes_are_good(fs);
			replicate_at_once(fs);
			expect_replica(fs, dev);
			CHECK_EQ(fs->home->count[RFS_SLOW_HELD], 0);
		}
		check_clean(fs);
		/* and what it had on flash was durable all the time */
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		CHECK_EQ(rfs_read(fs, ino, 2, block), 0);
		CHECK_EQ(block[5], 99);
		end(fs, dev);
	}
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

static int (*real_read)(void *dev, u64 block, void *data);
static u64 bad, bad_end;	/* sectors */
static int fails_with;

static int bad_read(void *dev, u64 at, void *data)
{
	return at >= bad && at < bad_end ? fails_with : real_read(dev, at, data);
}

static int bad_write(void *dev, u64 at, u32 n, const void *const *data)
{
	if (bad < at + n && at < bad_end)
		return fails_with;
	return real_write(dev, at, n, data);
}

static void bad_sectors(struct memdev *dev, u64 from, u64 to)
{
	bad = from;
	bad_end = to;
	fails_with = -EIO;
	if (dev->slow.write != bad_write)
		real_write = dev->slow.write;
	dev->slow.write = bad_write;
}

static void no_bad_sectors(struct memdev *dev)
{
	dev->slow.write = real_write;
	if (dev->slow.read == bad_read)
		dev->slow.read = real_read;
}

static u32 next_free_slot(const struct rfs_replica *r)
{
	u32 slot = r->cursor;

	while (r->place[slot].place || rfs_bits_has(&r->kept, slot))
		slot = slot + 1 < r->slots ? slot + 1 : 0;
	return slot;
}

/* Slots that cannot be written are left out; the volume can be mounted, and is written. */
TEST(replica_with_bad_sectors)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 10);
	struct rfs_replica *r = fs->home->replica;
	u64 at;

	replicate_at_once(fs);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	r = fs->home->replica;
	r->every = NEVER_AGAIN;
	put(fs, ino, 0, 5);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	at = rfs_slot_at(r, 0);
	while (r->place[at - rfs_slot_at(r, 0)].place)
		at++;
	rfs_unmount_nosync(fs);
	bad_sectors(dev, at + 2, at + 3);
	fs = mount(dev);
	CHECK(!fs->read_only);
	CHECK_EQ(fs->stats.slow_errors, 1);
	replicate_at_once(fs);
	CHECK_EQ(fs->stats.slow_errors, 1);
	expect_replica(fs, dev);
	/* also while it is mounted */
	fs->home->replica->every = 0;
	r = fs->home->replica;
	at = rfs_slot_at(r, next_free_slot(r));
	no_bad_sectors(dev);
	rfs_unmount_nosync(fs);
	bad_sectors(dev, at, at + 1);
	fs = mount(dev);
	fs->home->replica->every = 0;
	put(fs, ino, 0, 6);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(!fs->read_only);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	no_bad_sectors(dev);
	end(fs, dev);
}

/* Each has a block of its own. */
static void new_dirs(struct rfs_fs *fs, u32 from, u32 to)
{
	char name[16];
	u32 dir;

	for (; from < to; from++) {
		snprintf(name, sizeof(name), "d%u", from);
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &folder, &dir), 0);
		new_file(fs, dir, "f", 1);
	}
}

/* A slow device that fails until no slot is left: when it works again, they are tried anew. */
TEST(replica_after_all_slots_have_failed)
{
	struct memdev *dev = new_dev(SLOW_BLOCKS);
	struct rfs_replica *r;
	struct rfs_fs *fs;
	u32 ino, i;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &dev->geo, &id, "test"), 0);
	bad_sectors(dev, 0, 0);
	fs = mount(dev);
	r = fs->home->replica;
	ino = new_file(fs, RFS_ROOT_INO, "f", 300);
	new_dirs(fs, 0, 150);
	replicate_home(fs);
	put(fs, ino, 3, 1);
	replicate_at_once(fs);
	bad_sectors(dev, r->first, SLOW_BLOCKS);
	for (i = 0; i < 200; i++) {
		put(fs, ino, 3, i);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK(!fs->read_only);
	}
	CHECK_EQ(fs->stats.replicas_failed + fs->stats.replicas_dropped, 200);
	bad_sectors(dev, 0, 0);
	/* and it has become larger meanwhile */
	new_dirs(fs, 150, 300);
	for (i = 0; i < 4 && r->seq != fs->cp_seq; i++)
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	CHECK_EQ(fs->home->count[RFS_SLOW_HELD], 0);
	check_clean(fs);
	no_bad_sectors(dev);
	end(fs, dev);
}

/* Who reads it without flash is told that the volume was newer, as far as that is known there. */
TEST(replica_that_is_older_than_the_volume)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_noted(&dev);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 300), i;
	struct rfs_losses losses;
	u64 later;

	bad_sectors(dev, 0, 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	replicate_home(fs);
	losses = losses_of(dev);
	CHECK_EQ(losses.later, 0);
	CHECK_EQ(losses.begun, 0);

	/* a check-point whose states of blocks have changed, and no replica was begun */
	fs->home->replica->every = NEVER_AGAIN;
	put(fs, ino, 3, 1);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	losses = losses_of(dev);
	CHECK_EQ(losses.later, fs->cp_seq);
	CHECK_EQ(losses.begun, 0);

	/* a replica whose table was written, and not its head */
	later = fs->cp_seq + 1;
	fs->home->replica->every = 0;
	bad_sectors(dev, fs->home->replica->first, fs->home->replica->first + 2);
	put(fs, ino, 3, 2);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		losses = losses_of(dev);
		CHECK_EQ(losses.begun, later);
		CHECK_EQ(losses.later, later);
	}
	/* and when one has come there is none later */
	bad_sectors(dev, 0, 0);
	replicate_at_once(fs);
	losses = losses_of(dev);
	CHECK_EQ(losses.later, 0);
	CHECK_EQ(losses.begun, 0);
	no_bad_sectors(dev);
	end(fs, dev);
}

/* A part of it that cannot be written, and then can */
static void expect_goes_on(u64 (*part)(const struct rfs_replica *r))
{
	struct memdev *dev = new_dev(SLOW_BLOCKS);
	struct rfs_fs *fs;
	u64 seq, digest, was;
	u32 ino, i;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &dev->geo, &id, "test"), 0);
	bad_sectors(dev, 0, 0);
	fs = mount(dev);
	ino = new_file(fs, RFS_ROOT_INO, "f", 300);
	replicate_home(fs);
	CHECK_EQ(flashless_digest_seq(dev->geo.slow, &was, &seq), 0);
	bad_sectors(dev, part(fs->home->replica), part(fs->home->replica) + 1);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK(!fs->read_only);
	}
	/* one of them is there meanwhile, or it says so */
	i = flashless_digest_seq(dev->geo.slow, &digest, &seq);
	CHECK(i == 0 || (int)i == -ENOENT);
	if (seq < fs->cp_seq - 3)
		CHECK_EQ(digest, was);
	bad_sectors(dev, 0, 0);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	CHECK_EQ(fs->home->count[RFS_SLOW_HELD], 0);
	check_clean(fs);
	no_bad_sectors(dev);
	end(fs, dev);
}

static u64 head_0(const struct rfs_replica *r)
{
	return r->first;
}

static u64 head_1(const struct rfs_replica *r)
{
	return r->first + 1;
}

static u64 table_0(const struct rfs_replica *r)
{
	return rfs_places_at(r, 0, !r->copy[0]);
}

TEST(replica_with_bad_heads_or_tables)
{
	expect_goes_on(head_0);
	expect_goes_on(head_1);
	expect_goes_on(table_0);
}

/* How many blocks of a file are as new_file() wrote them, without flash; none is otherwise */
static u32 right_without_flash(struct memdev *dev, u32 ino, u32 blocks)
{
	struct rfs_flashless *f;
	struct rfs_ptr ptr;
	struct rfs_fs *fs;
	u32 i, n = 0;

	CHECK_EQ(rfs_flashless_open(dev->geo.slow, &f), 0);
	CHECK_EQ(rfs_mount(&rfs_flashless_ops, f, rfs_flashless_geometry(f), true,
			   0, &fs), 0);
	for (i = 0; i < blocks; i++) {
		CHECK_EQ(rfs_map_get(fs, ino, i, &ptr), 0);
		if (!rfs_ptr_has_home(&ptr))
			continue;
		CHECK_EQ(rfs_home_read(fs, rfs_ptr_home(&ptr), block), 0);
		CHECK_EQ(block[100], (u8)(ino + i));
		n++;
	}
	rfs_unmount_nosync(fs);
	rfs_flashless_close(f);
	return n;
}

static struct {
	struct rfs_fs *fs;	/* NULL: nothing comes between */
	u64 at;
	u32 n;
	const void *const *data;
} on_its_way;

/* The flush for a check-point is good; then the row arrives, and that for the replica fails. */
static int flush_beside(void *dev)
{
	int ret = -EIO;

	if (on_its_way.n) {
		ret = real_flush(dev);
		CHECK_EQ(real_write(dev, on_its_way.at, on_its_way.n, on_its_way.data),
			 0);
		on_its_way.n = 0;
	} else {
		memdev_slow_loses(dev, lose, NULL);
	}
	return ret;
}

/* In the module a check-point may come while a row goes home, with a replica. */
static int send_beside(void *dev, u64 at, u32 n, const void *const *data)
{
	struct rfs_fs *fs = on_its_way.fs;

	if (!fs)
		return real_write(dev, at, n, data);
	on_its_way.fs = NULL;
	on_its_way.at = at;
	on_its_way.n = n;
	on_its_way.data = data;
	real_flush = fs->home->slow.flush;
	fs->home->slow.flush = flush_beside;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	fs->home->slow.flush = real_flush;
	return 0;
}

/*
 * What was on its way home when the flush for a replica failed is sent again: a good flush
 * that comes later does not bring it back.
 */
TEST(replica_flush_that_fails_while_blocks_go_home)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_noted(&dev);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 300);

	replicate_at_once(fs);
	real_write = fs->home->slow.write;
	fs->home->slow.send = send_beside;
	on_its_way.fs = fs;
	go_home(fs);
	CHECK(!on_its_way.fs);
	CHECK_EQ(on_its_way.n, 0);
	CHECK_EQ(fs->stats.replicas_failed, 1);
	CHECK(!fs->read_only);
	replicate_at_once(fs);
	CHECK(right_without_flash(dev, ino, 300) > 100);
	expect_replica(fs, dev);
	check_clean(fs);
	end(fs, dev);
}

/* The copy of the head that was written last cannot be read any more: the other is the same. */
TEST(replica_when_a_head_is_lost)
{
	u32 ino, copy;
	struct memdev *dev;
	struct rfs_fs *fs = mount_with_replica(&dev, 300, &ino);
	const u8 *is;
	u64 at;

	CHECK(right_without_flash(dev, ino, 300) > 100);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	replicate_at_once(fs);
	reuse_free_blocks(fs);
	for (copy = 0; copy < 2; copy++) {
		at = fs->home->replica->first + copy;
		is = dev->slow_block[at];
		dev->slow_block[at] = NULL;
		CHECK_EQ(right_without_flash(dev, ino, 300), 0);
		dev->slow_block[at] = is;
	}
	end(fs, dev);
}

/* Of two copies of the head one is of the replica before: nothing of that is written over. */
TEST(replica_when_the_second_head_is_missing)
{
	u32 ino, copy;
	struct memdev *dev;
	struct rfs_fs *fs = mount_with_replica(&dev, 300, &ino);
	u64 at, held;

	bad_sectors(dev, 0, 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->home->count[RFS_SLOW_HELD], 0);
	/* the copy that is written second */
	copy = fs->home->replica->head;
	at = fs->home->replica->first;
	bad_sectors(dev, at + copy, at + copy + 1);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	replicate_at_once(fs);
	held = fs->home->count[RFS_SLOW_HELD];
	CHECK(held > 100);
	reuse_free_blocks(fs);
	CHECK(fs->home->count[RFS_SLOW_HELD] >= held);
	rfs_unmount_nosync(fs);
	dev->slow_block[at + !copy] = NULL;
	CHECK(right_without_flash(dev, ino, 300) > 100);
	bad_sectors(dev, 0, 0);
	fs = mount(dev);
	CHECK_EQ(fs->home->count[RFS_SLOW_HELD], 0);
	expect_replica(fs, dev);
	check_clean(fs);
	no_bad_sectors(dev);
	end(fs, dev);
}

/*
 * The second copy of a head is written late, and the replica after it fails: what files have
 * given up since the older one is not free, since that is still what counts.
 */
TEST(replica_that_is_settled_late)
{
	u32 ino, copy, was;
	struct memdev *dev;
	struct rfs_fs *fs = mount_with_replica(&dev, 300, &ino);
	struct rfs_replica *r;
	u64 held;

	bad_sectors(dev, 0, 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	r = fs->home->replica;
	copy = r->head;
	put(fs, ino, 0, ino);
	bad_sectors(dev, r->first + copy, r->first + copy + 1);
	replicate_at_once(fs);
	CHECK_EQ(fs->stats.replicas_failed, 1);
	was = right_without_flash(dev, ino, 300);
	CHECK(was > 100);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	bad_sectors(dev, rfs_slot_at(r, 0), SLOW_BLOCKS);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(fs->stats.replicas_failed, 2);
	CHECK_EQ(r->heads, RFS_HEADS_SAME);
	held = fs->home->count[RFS_SLOW_HELD];
	CHECK(held >= was);
	reuse_free_blocks(fs);
	CHECK_EQ(right_without_flash(dev, ino, 300), was);
	bad_sectors(dev, 0, 0);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	CHECK_EQ(fs->home->count[RFS_SLOW_HELD], 0);
	check_clean(fs);
	no_bad_sectors(dev);
	end(fs, dev);
}

/* Heads that cannot be read at the mount are there: what they lead to is not written. */
TEST(replica_whose_heads_cannot_be_read)
{
	u32 ino, was, i;
	struct memdev *dev;
	struct rfs_fs *fs = mount_with_replica(&dev, 300, &ino);
	struct rfs_flashless *f;
	u64 at;

	was = right_without_flash(dev, ino, 300);
	CHECK(was > 100);
	CHECK_EQ(rfs_unmount(fs), 0);
	real_read = dev->slow.read;
	dev->slow.read = bad_read;
	fs = NULL;
	for (i = 0; i < 2; i++) {
		at = SLOW_BLOCKS - REPLICA;
		bad_sectors(dev, at, at + 2);
		CHECK_EQ(rfs_flashless_open(dev->geo.slow, &f), -EIO);
		fs = mount(dev);
		CHECK(!fs->read_only);
		fs->home->replica->every = 0;
		if (!i)
			CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK(fs->home->count[RFS_SLOW_HELD] > 100);
		fs->home->cursor = 0;
		if (!i)
			new_file(fs, RFS_ROOT_INO, "other", 300);
		go_home(fs);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		rfs_unmount_nosync(fs);
		bad_sectors(dev, 0, 0);
		CHECK_EQ(right_without_flash(dev, ino, 300), was);
	}
	fs = mount(dev);
	CHECK_EQ(fs->home->count[RFS_SLOW_HELD], 0);
	expect_replica(fs, dev);
	check_clean(fs);
	no_bad_sectors(dev);
	end(fs, dev);
}

/* The replica is of a check-point that flash does not have any more: it is made anew. */
TEST(replica_of_a_later_checkpoint)
{
	u32 ino, i;
	struct memdev *dev, *old = new_dev(SLOW_BLOCKS);
	struct rfs_fs *fs = mount_with_replica(&dev, 30, &ino);
	u64 at = fs->home->replica->first;

	rfs_unmount_nosync(fs);
	memdev_copy(old, dev);
	fs = mount(dev);
	for (i = 0; i < 30; i++) {
		put(fs, ino, 0, i);
		replicate_at_once(fs);
	}
	rfs_unmount_nosync(fs);
	memcpy(&old->slow_block[at], &dev->slow_block[at],
	       (SLOW_BLOCKS - at) * sizeof(*old->slow_block));
	fs = mount(old);
	expect_replica(fs, old);
	put(fs, ino, 0, 1);
	replicate_at_once(fs);
	expect_replica(fs, old);
	check_clean(fs);
	rfs_unmount_nosync(fs);
	memdev_free(old);
	memdev_free(dev);
}

/* What was left out when memory lacked is in the next one. */
TEST(replica_after_no_memory)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	char name[16];
	u32 i, dir;

	bad_sectors(dev, 0, 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < 150; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &folder, &dir), 0);
		new_file(fs, dir, "f", 1);
	}
	bad_sectors(dev, 0, SLOW_BLOCKS);
	bad = fs->home->replica->first;
	fails_with = -ENOMEM;
	fs->home->replica->every = 0;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(fs->home->replica->seq < fs->cp_seq);
	bad_sectors(dev, 0, 0);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "last", &file, &dir), 0);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	no_bad_sectors(dev);
	end(fs, dev);
}

static u64 unread;	/* an address of flash */

static int read_but(void *dev, u64 addr, void *data, struct rfs_oob *oob)
{
	return unread && addr == unread ? -EIO :
					  memdev_ops.read(dev, addr, data, oob);
}

/* A block of an index that could not be read for one of them is in the next. */
TEST(replica_after_a_read_error)
{
	struct memdev *dev = new_dev(SLOW_BLOCKS);
	struct rfs_dev_ops ops = memdev_ops;
	struct rfs_replica *r;
	struct rfs_fs *fs;
	u64 place;
	u32 ino;

	ops.read = read_but;
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &dev->geo, &id, "test"), 0);
	CHECK_EQ(rfs_mount(&ops, dev, &dev->geo, false, 0, &fs), 0);
	new_file(fs, RFS_ROOT_INO, "f", 300);
	ino = new_file(fs, RFS_ROOT_INO, "empty", 0);
	replicate_at_once(fs);
	r = fs->home->replica;
	place = rfs_place_word(fs) + (u64)fs->imap_blocks * RFS_MAP_ENTRIES;
	while (!rfs_replica_slot(r, place))
		place++;
	unread = le64_to_cpu(rfs_replica_find(r, place)->addr);
	r->unlike = true;
	CHECK_EQ(rfs_truncate(fs, ino, 2, false), 0);
	rfs_cache_trim(fs, 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(!rfs_replica_slot(r, place));
	unread = 0;
	/* the map that leads to it stays where it is */
	CHECK_EQ(rfs_truncate(fs, ino, 1, false), 0);
	replicate_at_once(fs);
	expect_replica(fs, dev);
	end(fs, dev);
}

static u32 writes_left;

static int cut_write(void *dev, u64 at, u32 n, const void *const *data)
{
	return writes_left-- ? real_write(dev, at, n, data) : -EIO;
}

static void lose_flash(struct memdev *dev)
{
	memset(dev->page, 0, FLASH * sizeof(*dev->page));
	memset(dev->wp, 0, ZONES * sizeof(*dev->wp));
}

/* While a new drive is made the replica stays: it can be done again after a power cut. */
TEST(replica_stays_while_a_drive_is_made)
{
	struct memdev *dev, *copy = new_dev(SLOW_BLOCKS);
	struct rfs_fs *fs = mount_new(&dev, SLOW_BLOCKS);
	u32 ino = new_file(fs, RFS_ROOT_INO, "f", 300), cut = 0;
	u64 digest, is, losses;
	bool done = false;

	go_home(fs);
	put(fs, ino, 3, 200);
	CHECK_EQ(rfs_unmount(fs), 0);
	CHECK_EQ(flashless_digest(dev->geo.slow, &digest), 0);
	real_write = copy->slow.write;
	while (!done) {
		memdev_copy(copy, dev);
		lose_flash(copy);
		copy->slow.write = cut_write;
		writes_left = cut++;
		done = !flashless_restore(copy, &losses);
		copy->slow.write = real_write;
		CHECK_EQ(flashless_digest(copy->geo.slow, &is), 0);
		CHECK_EQ(is, digest);
	}
	CHECK(cut > 10);
	rfs_unmount_nosync(mount(copy));
	memdev_free(copy);
	memdev_free(dev);
}

/* What all superblocks of a drive say, and that of its slow device */
static void say_sizes(struct memdev *dev, u64 slow, u64 replica, u32 without)
{
	struct rfs_slow_super *of_slow = (void *)dev->slow_block[0];
	u32 zone;

	for (zone = 0; zone < RFS_CP_ZONES; zone++) {
		struct rfs_super *super =
			(void *)dev->page[zone * ZONE_BLOCKS].data;

		if (!super || super->head.type != RFS_SUPER)
			continue;
		super->slow_blocks = cpu_to_le64(slow);
		super->replica_blocks = cpu_to_le64(replica);
		super->incompat &= cpu_to_le32(~without);
		rfs_head_seal(&super->head, le64_to_cpu(super->head.stamp));
	}
	of_slow->blocks = cpu_to_le64(slow);
	of_slow->replica_blocks = cpu_to_le64(replica);
	rfs_head_seal(&of_slow->head, le64_to_cpu(of_slow->head.stamp));
}

/* Sizes that no mkfs has given are refused, by who has the drive and by who has not. */
TEST(replica_of_impossible_size)
{
	static const struct {
		u64 slow, replica;
		u32 without;
		int flashless;
	} wrong[] = {
		{ SLOW_BLOCKS, SLOW_BLOCKS + 100, 0, -EUCLEAN },
		{ SLOW_BLOCKS, SLOW_BLOCKS, 0, -EUCLEAN },
		{ SLOW_BLOCKS, SLOW_BLOCKS - 3, 0, -EUCLEAN },
		{ SLOW_BLOCKS, 4, 0, -EUCLEAN },
		{ SLOW_BLOCKS, 0, 0, -ENOENT },
		{ 1ULL << 40, REPLICA, 0, -EUCLEAN },
		{ 1ULL << 40, 1ULL << 39, 0, -EUCLEAN },
		{ SLOW_BLOCKS, REPLICA, RFS_INCOMPAT_SLOW, 0 },
		{ SLOW_BLOCKS, REPLICA, RFS_INCOMPAT_REPLICA, 0 },
	};
	struct rfs_flashless *f;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 i;
	int ret;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		fs = mount_new(&dev, SLOW_BLOCKS);
		CHECK_EQ(rfs_unmount(fs), 0);
		say_sizes(dev, wrong[i].slow, wrong[i].replica, wrong[i].without);
		CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs),
			 -EUCLEAN);
		ret = rfs_flashless_open(dev->geo.slow, &f);
		CHECK_EQ(ret, wrong[i].flashless);
		if (!ret)
			rfs_flashless_close(f);
		memdev_free(dev);
	}
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
