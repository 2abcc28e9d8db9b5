// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Damaged volumes: a few bytes of a few blocks change, with or without the
 * right checksum. Mounting, checking, reading and writing may fail, but must
 * end, and the sanitizers must be content.
 *
 *	fuzz [seed=N] [rounds=N] [guided=1]
 *	fuzz_drive DRIVE SEED
 *
 * guided: damage that makes the core go where none did before is kept, and most
 * volumes have what was kept, a bit different. The same arguments do the same.
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
#include "coverage.h"
#include "memdev.h"
#include "option.h"
#include "tree/tree.h"
#include "tree/dir.h"
#include "tree/xattr.h"
#include "tree/quota.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"
#include "tools/tools.h"

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
	static const struct rfs_id id = { "fuzzed volume 1", "a key for hashes",
						  "a key to be safe", true, 1, true };
	struct rfs_new file = { .mode = S_IFREG | 0644 };
	struct rfs_new dir = { .mode = S_IFDIR | 0755 };
	struct rfs_new sym = { .mode = S_IFLNK | 0777, .target = "to nowhere" };
	static u8 block[RFS_BLOCK_BYTES];
	const void *data[4] = { block, block, block, block };
	struct rfs_quota quota = { .space_hard = cpu_to_le64(90 << 12) };
	struct rfs_fs *fs;
	u32 top, ino, i;
	char name[32];

	assert(!rfs_mkfs(&memdev_ops, dev, &dev->geo, &id, "fuzz"));
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

			assert(!rfs_preallocate(fs, ino, &at, i + 40));
		}
		if (i % 12 == 0)
			assert(!rfs_write_bytes(fs, ino, i * 200, block, 9 * i));
		if (i % 5 == 0)
			assert(!rfs_xattr_set(fs, ino, "user.a", block, i, 0,
					      0));
		if (i % 15 == 0)
			assert(!rfs_xattr_set(fs, ino, "trusted.b", name, 9, 0,
					      0));
	}
	assert(!rfs_quota_set(fs, RFS_QUOTA_USER, 1000, &quota));
	assert(!rfs_checkpoint(fs, 0));
	assert(fs->runs);
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
		assert(!rfs_write_bytes(fs, ino, 700 * i, name, 9));
		if (i % 3 == 0)
			assert(!rfs_truncate(fs, ino, 5000, false));
		if (i % 3 == 1)
			assert(!rfs_xattr_set(fs, ino, "user.c", name, 5, 0,
					      0));
		if (i % 4 == 0)
			assert(!rfs_fsync(fs, ino));
	}
	assert(!rfs_fsync(fs, ino));
	rfs_unmount_nosync(fs);
}

enum where { STATE, DATA, OOB };

/* A few bytes of a block that change */
struct edit {
	u32 page;
	enum where where;
	u32 at, bytes;		/* bytes: 1 to 8 */
	u64 value;		/* STATE: what becomes of the page */
	bool flip;		/* these bits change, else that is the value */
	bool seal;		/* checksums are made right again */
};

#define EDITS	24	/* of a volume, at most */

struct input {
	u32 n;
	struct edit edit[EDITS];
};

static u32 any_page(const struct memdev *dev)
{
	u32 pages = ZONES * dev->geo.zone_blocks, tries = 10000, at;
	const struct mem_page *page;

	do {
		at = pick(pages);
		page = &dev->page[at];
	} while (--tries && (page->state != MEM_OK ||
			     (page->oob->type == RFS_DATA && pick(20))));
	return at;
}

static u64 any_value(void)
{
	static const u64 odd[] = { 0, 1, 2, 15, 16, 63, 252, 255, 4032, 4096,
				   0xffff, 1 << 28, ~0U, 1ULL << 48, ~0ULL };

	switch (pick(4)) {
	case 0:
		return odd[pick(sizeof(odd) / sizeof(*odd))];
	case 1:
		return pick(ZONES * 64);
	case 2:
		return (u64)pick(1 << 16) << 8 * pick(6);
	}
	return (u64)pick(1U << 31) << 33 | (u64)pick(1U << 31) << 2 | pick(4);
}

static void any_edit(struct edit *e, u32 page, bool seal)
{
	memset(e, 0, sizeof(*e));
	e->page = page;
	e->seal = seal;
	e->where = pick(8) ? DATA : OOB;
	e->bytes = pick(3) ? 1 : 1 << pick(4);
	e->at = pick(e->where == OOB ? 60 : pick(3) ? 256 : RFS_BLOCK_BYTES);
	if (e->bytes > 1)
		e->at -= e->at % e->bytes;
	e->flip = pick(2);
	e->value = e->flip ? 1ULL << pick(8 * e->bytes) : any_value();
}

/* One block is damaged; its checksums are right again, mostly. */
static void damage(const struct memdev *dev, struct input *in)
{
	u32 page = any_page(dev), bytes = 1 + pick(4);
	bool seal = pick(4);

	if (pick(30) == 0 && in->n < EDITS) {
		in->edit[in->n++] = (struct edit){ .page = page,
			.value = pick(2) ? MEM_TORN : MEM_ABSENT };
		return;
	}
	for (; bytes && in->n < EDITS; bytes--)
		any_edit(&in->edit[in->n++], page, seal);
}

static void change_bytes(u8 *at, const struct edit *e)
{
	u64 value = 0;

	if (e->flip)
		memcpy(&value, at, e->bytes);
	value ^= e->value;
	memcpy(at, &value, e->bytes);
}

/* The edits of a page are after one another. store is where it is from then on. */
static void apply(struct memdev *dev, const struct input *in,
		  u8 (*store)[RFS_BLOCK_BYTES + RFS_OOB_BYTES])
{
	u32 i;

	for (i = 0; i < in->n; i++) {
		const struct edit *e = &in->edit[i];
		struct mem_page *page = &dev->page[e->page];
		struct rfs_oob *oob = (void *)(store[i] + RFS_BLOCK_BYTES);
		struct rfs_head *head = (void *)store[i];

		if (e->where == STATE || page->state != MEM_OK) {
			page->state = e->where == STATE ? e->value :
							  page->state;
			continue;
		}
		memcpy(store[i], page->data, RFS_BLOCK_BYTES);
		memcpy(oob, page->oob, sizeof(*oob));
		change_bytes(e->where == OOB ? (u8 *)oob + min(e->at, 56U) :
			     store[i] + e->at, e);
		if (e->seal && oob->type != RFS_DATA)
			rfs_head_seal(head, le64_to_cpu(head->stamp));
		if (e->seal)
			rfs_oob_seal(oob, store[i]);
		page->data = store[i];
		page->oob = oob;
	}
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
	static u8 store[EDITS][RFS_BLOCK_BYTES + RFS_OOB_BYTES];
	struct input in = { 0 };
	u32 n;
	int ret;

	if (argc != 3) {
		fprintf(stderr, "usage: fuzz_drive DRIVE SEED\n");
		return 2;
	}
	make(dev);
	state = strtoull(argv[2], NULL, 0) * 991 + 7;
	for (n = 1 + pick(CHANGED); n; n--)
		damage(dev, &in);
	apply(dev, &in, store);
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
	u64 rsv;

	while (budget-- && !rfs_quota_next(fs, RFS_QUOTA_USER, &id))
		rfs_quota_get(fs, RFS_QUOTA_USER, id++, &q, &rsv);
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
		sprintf(name, "later-%u", i + 10);
		if (!rfs_dir_find(fs, 2, name, strlen(name), &ino)) {
			rfs_write_bytes(fs, ino, 100, block, 500);
			rfs_merge(fs, ino);
			rfs_truncate(fs, ino, 300, false);
		}
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

		rfs_preallocate(fs, ino, &at, 20);
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

/* Leaves that are runs are to be made of their pages. */
static void lose_node_map(struct memdev *dev)
{
	u32 at;

	for (at = 0; at < ZONES * dev->geo.zone_blocks; at++)
		if (dev->page[at].oob && dev->page[at].oob->type == RFS_NMAP)
			dev->page[at].state = MEM_TORN;
}

/* Of a copy, every second time without the node map; is it without a fault then? */
static bool rescue(const struct memdev *from)
{
	static struct memdev *dev;
	static u32 times;
	struct rfs_report report = { 0 };
	struct rfs_rescue out;
	struct rfs_fs *fs;
	bool good;

	if (!dev)
		dev = memdev_new(&from->geo, CAP, 32 << 20, false);
	memdev_copy(dev, from);
	if (times++ % 2)
		lose_node_map(dev);
	if (rfs_rescan(&memdev_ops, dev, &dev->geo, &report, &out, &fs))
		return false;
	good = sound(fs);
	rfs_unmount_nosync(fs);
	return good;
}

struct tally {
	u32 mounted, faulty, repaired, rescued;
};

/* A life of a damaged volume; rescued: and of a copy, without check-points */
static void live(struct memdev *dev, bool read_only, bool rescued,
		 struct tally *tally)
{
	struct rfs_report report = { .read_data = true };
	u32 budget = 2000;
	struct rfs_fs *fs;

	if (rescued)
		tally->rescued += rescue(dev);
	if (rfs_mount(&memdev_ops, dev, &dev->geo, read_only, 0, &fs))
		return;
	tally->mounted++;
	read_all(fs, RFS_ROOT_INO, 0, &budget);
	if (!rfs_check(fs, &report) && report.faults) {
		tally->faulty++;
		tally->repaired += repair(fs);
	}
	quotas(fs, budget);
	change(fs);
	rfs_unmount_nosync(fs);
}

#define CORPUS	4096

/* Inputs that went where none had been before */
static struct input corpus[CORPUS];
static u32 kept;

/* One of these, a bit different */
static void vary(const struct memdev *dev, struct input *in)
{
	const struct input *other = &corpus[pick(kept)];
	u32 times = 1 + pick(6), at;

	*in = corpus[pick(kept)];
	for (; times; times--) {
		at = in->n ? pick(in->n) : 0;
		switch (in->n ? pick(8) : 0) {
		case 1:
			in->edit[at] = in->edit[--in->n];
			break;
		case 2:
			if (in->n < EDITS && other->n)
				in->edit[in->n++] = other->edit[pick(other->n)];
			break;
		case 3:
			in->edit[at].at ^= 1U << pick(5);
			in->edit[at].at %= RFS_BLOCK_BYTES - 8;
			break;
		case 4:
			if (in->edit[at].where != STATE)
				in->edit[at].value = any_value();
			break;
		case 5:
			any_edit(&in->edit[at], in->edit[at].page, true);
			break;
		default:
			damage(dev, in);
			break;
		}
	}
}

int main(int argc, char **argv)
{
	struct rfs_geometry geo = { .zones = ZONES, .zone_blocks = 64,
				    .oob_bytes = 64 };
	struct memdev *whole = memdev_new(&geo, CAP, 64 << 20, false);
	struct memdev *dev = memdev_new(&geo, CAP, 32 << 20, false);
	static u8 store[EDITS][RFS_BLOCK_BYTES + RFS_OOB_BYTES];
	struct option opt[] = {
		{ "rounds", 1000, 1, 1ULL << 40, "damaged volumes" },
		{ "seed", 1, 0, 1ULL << 40, "of all that is random" },
		{ "guided", 0, 0, 1, "1: vary what led the code to new places" },
		{ 0 }
	};
	u64 rounds, i;
	bool guided;
	struct tally tally = { 0 };
	struct input in;
	u32 n;

	options(argc, argv, 1, "usage: fuzz [NAME=N]...", opt);
	rounds = opt[0].value;
	state = opt[1].value * 991 + 7;
	guided = opt[2].value;
	make(whole);
	for (i = 0; i < rounds; i++) {
		memdev_copy(dev, whole);
		memset(&in, 0, sizeof(in));
		if (guided && kept && pick(2))
			vary(dev, &in);
		else
			for (n = 1 + pick(CHANGED); n; n--)
				damage(dev, &in);
		apply(dev, &in, store);
		coverage_begin();
		live(dev, pick(3) == 0, i % 3 == 0, &tally);
		if (coverage_end() && guided && kept < CORPUS)
			corpus[kept++] = in;
	}
	printf("%llu volumes: of each third %u could be rescanned, of all %u could be mounted, of these fsck found faults in %u and repaired %u\n",
	       (unsigned long long)rounds, tally.rescued, tally.mounted,
	       tally.faulty, tally.repaired);
	printf("%u places in the code, %u ways between them, %u volumes kept\n",
	       coverage_places(), coverage_ways(), kept);
	memdev_free(whole);
	memdev_free(dev);
	return 0;
}
#endif
