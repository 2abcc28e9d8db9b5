// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Damaged volumes: a few bytes of a few blocks change, with or without the
 * right checksum. Mounting, checking, reading and writing may fail, but must
 * end, and the sanitizers must be content.
 *
 *	fuzz [seed=N] [rounds=N]
 *	fuzz_drive DRIVE SEED
 *
 * fuzz_drive makes one of them on a drive, for others to look at: 28 zones of
 * 64 blocks or more, with page metadata.
 */
#include <assert.h>
#include <stdio.h>

#ifdef FUZZ_DRIVE
#include "device.h"

const char *program = "fuzz_drive";
#endif
#include "memdev.h"
#include "option.h"

#define ZONES	28
#define CAP	62
#define CHANGED	8	/* blocks of a round */

static u64 state = 1;

static u32 pick(u32 n)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(state >> 33) % n;
}

static void make(struct memdev *dev)
{
	static const u8 uuid[16] = "fuzzed volume 1";
	struct rfs_new file = { .mode = S_IFREG | 0644 };
	struct rfs_new dir = { .mode = S_IFDIR | 0755 };
	struct rfs_new sym = { .mode = S_IFLNK | 0777, .target = "to nowhere" };
	static u8 block[RFS_BLOCK_BYTES];
	const void *data[4] = { block, block, block, block };
	struct rfs_quota quota = { .space_hard = cpu_to_le64(90 << 12) };
	struct rfs_fs *fs;
	u32 top, ino, i;
	char name[32];

	assert(!rfs_mkfs(&memdev_ops, dev, &dev->geo, uuid, "fuzz"));
	assert(!rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs));
	assert(!rfs_quota_on(fs));
	assert(!rfs_create(fs, 2, "dir", &dir, &top));
	assert(!rfs_create(fs, 2, "link", &sym, &ino));
	assert(!rfs_xattr_set(fs, top, "user.of-the-directory", block, 3000, 0,
			      0));
	for (i = 0; i < 150; i++) {
		sprintf(name, "a-name-of-some-length-%u", i);
		file.uid = i % 4 * 1000;
		file.gid = i % 3 * 70000;
		assert(!rfs_create(fs, top, name, &file, &ino));
		if (i % 10 == 0)
			assert(!rfs_write(fs, ino, i * i, 4, data, 4096));
		if (i % 30 == 0) {
			u64 at = i;

			assert(!rfs_reserve(fs, ino, &at, i + 40));
		}
		if (i % 5 == 0)
			assert(!rfs_xattr_set(fs, ino, "user.a", block, i, 0,
					      0));
		if (i % 15 == 0)
			assert(!rfs_xattr_set(fs, ino, "trusted.b", name, 9, 0,
					      0));
	}
	assert(!rfs_quota_set(fs, RFS_QUOTA_USER, 1000, &quota));
	assert(!rfs_checkpoint(fs, 0));
	/* and a window */
	assert(!rfs_quota_set(fs, RFS_QUOTA_GROUP, 70000, &quota));
	for (i = 0; i < 20; i++) {
		sprintf(name, "a-name-of-some-length-%u", i * 2);
		assert(!rfs_unlink(fs, top, name, &ino));
		if (i % 2)
			assert(!rfs_free_orphan(fs, ino));
		sprintf(name, "later-%u", i);
		assert(!rfs_create(fs, 2, name, &file, &ino));
		assert(!rfs_write(fs, ino, i, 2, data, 100));
		if (i % 3 == 0)
			assert(!rfs_truncate(fs, ino, 5000, false));
		if (i % 3 == 1)
			assert(!rfs_xattr_set(fs, ino, "user.c", name, 5, 0,
					      0));
		if (i % 4 == 0)
			assert(!rfs_fsync(fs, ino));
	}
	assert(!rfs_fsync(fs, ino));
	rfs_drop(fs);
}

/* Change a block; its checksums are made right again, half of the time. */
static void damage(struct memdev *dev, u8 *store)
{
	u32 pages = ZONES * dev->geo.zone_blocks, tries = 10000, bytes, seal;
	struct rfs_oob *oob = (struct rfs_oob *)(store + RFS_BLOCK_BYTES);
	struct rfs_head *head = (struct rfs_head *)store;
	struct mem_page *page;
	bool meta;

	do {
		page = &dev->page[pick(pages)];
		meta = page->state == MEM_OK && page->oob->type != RFS_DATA;
	} while (--tries && !(meta || (page->state == MEM_OK && !pick(20))));
	if (pick(30) == 0) {
		page->state = pick(2) ? MEM_TORN : MEM_ABSENT;
		return;
	}
	memcpy(store, page->data, RFS_BLOCK_BYTES);
	memcpy(oob, page->oob, sizeof(*oob));
	seal = pick(4);
	for (bytes = 1 + pick(4); bytes; bytes--) {
		u32 at = pick(3) ? pick(256) : pick(RFS_BLOCK_BYTES);

		if (pick(8) == 0)
			((u8 *)oob)[pick(60)] = pick(256);
		else if (pick(2))
			store[at] ^= 1 << pick(8);
		else
			store[at] = pick(2) ? pick(256) : pick(2) * 255;
	}
	if (seal && meta)
		rfs_head_seal(head, le64_to_cpu(head->stamp));
	if (seal)
		rfs_oob_seal(oob, store);
	page->data = store;
	page->oob = oob;
}

#ifdef FUZZ_DRIVE
/* What is unreadable in memory is not there on the drive. */
static int put_zone(const struct rfs_device *to, const struct memdev *dev,
		    u32 zone)
{
	static const u8 none[RFS_BLOCK_BYTES];
	static const struct rfs_oob no_oob;
	u32 at;
	int ret = to->ops->reset(to->dev, zone);

	for (at = 0; !ret && at < dev->wp[zone]; at++) {
		const struct mem_page *page =
			&dev->page[zone * dev->geo.zone_blocks + at];
		bool there = page->state == MEM_OK;
		const void *data = there ? page->data : none;
		u64 addr;

		ret = to->ops->append(to->dev, zone, 1, &data,
				      there ? page->oob : &no_oob, &addr);
	}
	return ret;
}

static int put_on_drive(const struct memdev *dev, const char *path)
{
	struct rfs_device to;
	u32 zone;
	int ret = rfs_device_open(path, true, &to);

	if (ret)
		return ret;
	if (to.geo.zones < ZONES || to.geo.zone_blocks != dev->geo.zone_blocks ||
	    !to.geo.oob_bytes) {
		complain("%s: must have %u zones of %u blocks with page metadata",
			 path, ZONES, dev->geo.zone_blocks);
		ret = -EINVAL;
	}
	for (zone = 0; !ret && zone < to.geo.zones; zone++)
		ret = zone < ZONES ? put_zone(&to, dev, zone) :
				     to.ops->reset(to.dev, zone);
	if (ret)
		complain("%s: %s", path, strerror(-ret));
	rfs_device_close(&to);
	return ret;
}

int main(int argc, char **argv)
{
	struct rfs_geometry geo = { .zones = ZONES, .zone_blocks = 64,
				    .oob_bytes = 64 };
	struct memdev *dev = memdev_new(&geo, CAP, 64 << 20, false);
	static u8 store[CHANGED][RFS_BLOCK_BYTES + RFS_OOB_BYTES];
	u32 n;
	int ret;

	if (argc != 3) {
		fprintf(stderr, "usage: fuzz_drive DRIVE SEED\n");
		return 2;
	}
	make(dev);
	state = strtoull(argv[2], NULL, 0) * 991 + 7;
	for (n = 1 + pick(CHANGED); n; n--)
		damage(dev, store[n - 1]);
	ret = put_on_drive(dev, argv[1]);
	memdev_free(dev);
	return ret != 0;
}
#else
static void read_all(struct rfs_fs *fs, u32 dir, u32 depth, u32 *budget)
{
	static u8 block[RFS_BLOCK_BYTES];
	struct rfs_entry entry = { 0 };
	const struct rfs_xattr *x;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 len, at;
	u64 i;

	while (*budget && !rfs_dir_next(fs, dir, entry.pos, &entry)) {
		--*budget;
		if (rfs_iget(fs, entry.ino, &di, &buf))
			continue;
		at = 0;
		while (!rfs_xattr_next(fs, entry.ino, &at, &x) && x)
			;
		rfs_xattr_get(fs, entry.ino, "trusted.b", block, sizeof(block));
		if (S_ISDIR(le32_to_cpu(di->mode))) {
			if (depth < 5)
				read_all(fs, entry.ino, depth + 1, budget);
			continue;
		}
		rfs_readlink(fs, entry.ino, block, &len);
		for (i = 0; i < 6; i++)
			rfs_read(fs, entry.ino, i, block);
	}
}

/* Those that there are, a limit more, and one that holds */
static void quotas(struct rfs_fs *fs, u32 budget)
{
	struct rfs_quota q = { .space_hard = cpu_to_le64(400 << 12) };
	u32 id = 0;
	u64 held;

	while (budget-- && !rfs_quota_next(fs, RFS_QUOTA_USER, &id))
		rfs_quota_get(fs, RFS_QUOTA_USER, id++, &q, &held);
	if (!rfs_quota_on(fs))
		fs->enforced = RFS_QUOTA_BOTH;
	rfs_quota_set(fs, RFS_QUOTA_USER, 1000, &q);
}

static void change(struct rfs_fs *fs)
{
	struct rfs_new file = { .mode = S_IFREG | 0644, .uid = 1000 };
	static u8 block[RFS_BLOCK_BYTES];
	const void *data = block;
	u32 ino, i;
	char name[32];

	for (i = 0; i < 10; i++) {
		sprintf(name, "new-%u", i);
		if (!rfs_create(fs, 2, name, &file, &ino))
			rfs_write(fs, ino, i * 300, 1, &data, 4096);
		sprintf(name, "later-%u", i);
		if (!rfs_unlink(fs, 2, name, &ino))
			rfs_free_orphan(fs, ino);
	}
	rfs_rename(fs, 2, "new-1", 2, "later-19", 0, NULL);
	if (!rfs_dir_find(fs, 2, "dir", 3, &ino)) {
		rfs_xattr_set(fs, ino, "user.of-the-directory", block, 100, 0,
			      0);
		rfs_xattr_set(fs, ino, "user.of-the-directory", NULL, 0, 0, 0);
	}
	if (!rfs_dir_find(fs, 2, "later-3", 7, &ino)) {
		u64 at = 2;

		rfs_reserve(fs, ino, &at, 20);
		rfs_punch(fs, ino, 2, 18, true);
		rfs_write(fs, ino, 10, 1, &data, 4096);
	}
	if (!rfs_dir_find(fs, 2, "later-1", 7, &ino))
		rfs_xattr_set(fs, ino, "user.c", block, 3500, 0, 0);
	rfs_checkpoint(fs, 0);
	rfs_clean(fs, RFS_CLEAN_NOW);
	rfs_checkpoint(fs, 0);
}

static bool sound(struct rfs_fs *fs)
{
	struct rfs_report report = { .read_data = true };

	return !rfs_checkpoint(fs, 0) && !rfs_check(fs, &report) &&
	       !report.faults;
}

static bool repair(struct rfs_fs *fs)
{
	struct rfs_report report = { 0 };

	return !fs->read_only && !rfs_repair(fs, &report) && sound(fs);
}

/* Of a copy; is it without a fault then? */
static bool rescue(const struct memdev *from)
{
	static struct memdev *dev;
	struct rfs_report report = { 0 };
	struct rfs_rescue out;
	struct rfs_fs *fs;
	bool good;

	if (!dev)
		dev = memdev_new(&from->geo, CAP, 16 << 20, false);
	memdev_copy(dev, from);
	if (rfs_rescan(&memdev_ops, dev, &dev->geo, &report, &out, &fs))
		return false;
	good = sound(fs);
	rfs_drop(fs);
	return good;
}

int main(int argc, char **argv)
{
	struct rfs_geometry geo = { .zones = ZONES, .zone_blocks = 64,
				    .oob_bytes = 64 };
	struct memdev *whole = memdev_new(&geo, CAP, 64 << 20, false);
	struct memdev *dev = memdev_new(&geo, CAP, 16 << 20, false);
	static u8 store[CHANGED][RFS_BLOCK_BYTES + RFS_OOB_BYTES];
	u64 rounds = option(argc, argv, "rounds", 1000), i;
	u32 mounted = 0, faulty = 0, repaired = 0, rescued = 0, n;

	state = option(argc, argv, "seed", 1) * 991 + 7;
	make(whole);
	for (i = 0; i < rounds; i++) {
		struct rfs_report report = { .read_data = true };
		u32 budget = 2000;
		struct rfs_fs *fs;

		memdev_copy(dev, whole);
		for (n = 1 + pick(CHANGED); n; n--)
			damage(dev, store[n - 1]);
		if (i % 3 == 0)
			rescued += rescue(dev);
		if (rfs_mount(&memdev_ops, dev, &geo, pick(3) == 0, 0, &fs))
			continue;
		mounted++;
		read_all(fs, RFS_ROOT_INO, 0, &budget);
		if (!rfs_check(fs, &report) && report.faults) {
			faulty++;
			repaired += repair(fs);
		}
		quotas(fs, budget);
		change(fs);
		rfs_drop(fs);
	}
	printf("%llu volumes: of each third %u could be rescanned, of all %u could be mounted, of these fsck found faults in %u and repaired %u\n",
	       (unsigned long long)rounds, rescued, mounted, faulty, repaired);
	memdev_free(whole);
	memdev_free(dev);
	return 0;
}
#endif
