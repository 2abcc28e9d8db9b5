// SPDX-License-Identifier: GPL-2.0-or-later
/* The core of RFS, piece by piece, on a drive in memory. */
#include <assert.h>

#include "check.h"
#include "clean.h"
#include "memdev.h"
#include "space/space.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "tree/dir.h"
#include "tree/xattr.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"
#include "tools/tools.h"

static Test *tests;

void check_register(Test *test)
{
	test->next = tests;
	tests = test;
}

int main(int argc, char **argv)
{
	Test *test;
	int ran = 0;

	for (test = tests; test; test = test->next) {
		if (argc > 1 && !strcmp(argv[1], "--list")) {
			puts(test->name);
			ran++;
		} else if (argc < 2 || !strcmp(argv[1], test->name)) {
			test->run();
			ran++;
		}
	}
	return !ran;
}

#define CAP	250

static const struct rfs_geometry geometry = {
	.zones = 48, .zone_blocks = 256, .oob_bytes = 64,
};
static const struct rfs_id id = { "0123456789abcde", "a key for hashes",
				  "a key to be safe" };
static const struct rfs_new file = { .mode = S_IFREG | 0644 };
static const struct rfs_new dir = { .mode = S_IFDIR | 0755 };
static u8 block[RFS_BLOCK_BYTES], other[RFS_BLOCK_BYTES];

static const struct rfs_id pieces_id = { "0123456789abcde", "a key for hashes",
					 "a key to be safe", true };

static struct memdev *new_dev_with(const struct rfs_geometry *geo,
				   const struct rfs_id *how)
{
	struct memdev *dev = memdev_new(geo, CAP, 320 << 20, true);

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, geo, how, "test"), 0);
	return dev;
}

static struct memdev *new_dev(const struct rfs_geometry *geo)
{
	return new_dev_with(geo, &id);
}

static struct rfs_fs *mount(struct memdev *dev)
{
	struct rfs_fs *fs;

	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs), 0);
	return fs;
}

static struct rfs_fs *mount_ro(struct memdev *dev)
{
	struct rfs_fs *fs;

	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, true, 0, &fs), 0);
	return fs;
}

static const struct rfs_policy one_group = { .groups = 1 };

static void put(struct rfs_fs *fs, u32 ino, u64 at, u8 value, u32 len)
{
	const void *data = block;

	memset(block, value, sizeof(block));
	CHECK_EQ(rfs_write(fs, ino, at, 1, &data, len), 0);
}

static void expect(struct rfs_fs *fs, u32 ino, u64 at, u8 value, u32 len)
{
	memset(other, value, len);
	memset(other + len, 0, sizeof(other) - len);
	CHECK_EQ(rfs_read(fs, ino, at, block), 0);
	CHECK(!memcmp(block, other, sizeof(block)));
}

static u32 zone_of(struct rfs_fs *fs, u32 ino, u64 at)
{
	struct rfs_ptr ptr;

	CHECK_EQ(rfs_map_get(fs, ino, at, &ptr), 0);
	return rfs_addr(ptr.addr) / fs->geo.zone_blocks;
}

static u32 appended(const struct memdev *dev, u32 from)
{
	u32 n = 0;

	for (; from < dev->ops; from++)
		n += dev->op[from].type == MEM_APPEND;
	return n;
}

static void end(struct rfs_fs *fs, struct memdev *dev)
{
	if (fs)
		rfs_unmount_nosync(fs);
	memdev_free(dev);
}

TEST(checksums)
{
	struct rfs_fs fs = { .volume = 7 };
	struct rfs_table table;
	struct rfs_oob oob = { .magic = cpu_to_le16(RFS_OOB_MAGIC), .type = 1,
			       .volume = cpu_to_le32(7) };
	u8 key[16], message[15];
	u32 i;

	CHECK_EQ((u32)~rfs_crc(~0U, "123456789", 9), 0xe3069283);
	for (i = 0; i < sizeof(block); i++)
		block[i] = i * i >> 3;
	CHECK_EQ(rfs_crc(7, block, 4096),
		 rfs_crc(rfs_crc(7, block, 1001), block + 1001, 3095));
	for (i = 0; i < 16; i++)
		key[i] = i;
	for (i = 0; i < 15; i++)
		message[i] = i;
	/* the vector of the SipHash paper, appendix A */
	memcpy(fs.super.hash_key, key, 16);
	CHECK_EQ(rfs_name_hash(&fs, message, 15), 0xa129ca6149be45e5);

	memset(&table, 9, sizeof(table));
	rfs_head_init(&fs, &table.head, RFS_IMAP, 1, 2, 3);
	rfs_head_seal(&table.head, 4);
	CHECK(rfs_head_ok(&table.head, 7, RFS_IMAP));
	CHECK(!rfs_head_ok(&table.head, 8, RFS_IMAP));
	CHECK(!rfs_head_ok(&table.head, 7, RFS_TIMB));
	for (i = 0; i < sizeof(table); i++) {
		((u8 *)&table)[i] ^= 1;
		CHECK(!rfs_head_ok(&table.head, 7, RFS_IMAP));
		((u8 *)&table)[i] ^= 1;
	}
	rfs_oob_seal(&oob, &table);
	CHECK(rfs_oob_ok(&oob, 7));
	for (i = 0; i < sizeof(oob); i++) {
		((u8 *)&oob)[i] ^= 16;
		CHECK(!rfs_oob_ok(&oob, 7));
		((u8 *)&oob)[i] ^= 16;
	}
}

/* "Sizes" in doc/design.md */
TEST(sizes)
{
	static const struct {
		u32 zones, cap, imap, nmap, timb, ztab, cp, dirty, reserve;
		u64 inodes;
	} rows[] = {
		{ 128, 4096, 64, 1053, 3, 2, 1, 4000, 12, 512000 },
		{ 512, 4096, 259, 4285, 10, 5, 1, 16288, 17, 2084864 },
		{ 904, 275712, 30806, 510494, 1075, 8, 3, 16384, 11, 248416512 },
		{ 65536, 4096, 33287, 551607, 1161, 521, 4, 16384, 23, 268423168 },
	};
	struct rfs_layout l;
	u32 i, nodes;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		rfs_layout(rows[i].zones, rows[i].cap, true, 1, true, &l);
		CHECK_EQ(l.max_inodes, rows[i].inodes);
		CHECK_EQ(l.max_nodes, rows[i].nmap * RFS_MAP_ENTRIES);
		CHECK_EQ(l.imap_blocks, rows[i].imap);
		CHECK_EQ(l.nmap_blocks, rows[i].nmap);
		CHECK_EQ(l.timb_blocks, rows[i].timb);
		CHECK_EQ(l.ztab_blocks, rows[i].ztab);
		CHECK_EQ(l.cp_blocks, rows[i].cp);
		CHECK_EQ(l.dirty_max, rows[i].dirty);
		CHECK_EQ(l.reserve_zones, rows[i].reserve);
		/* a number for each block, and places for leaves */
		nodes = DIV_ROUND_UP(rows[i].inodes + 1, RFS_MAP_ENTRIES);
		CHECK_EQ(l.nmap_leaves, nodes);
		rfs_layout(rows[i].zones, rows[i].cap, true, 1, false, &l);
		CHECK_EQ(l.max_nodes, rows[i].inodes + 1);
		CHECK_EQ(l.nmap_blocks, nodes);
		CHECK_EQ(l.nmap_leaves, nodes);
	}
	/* there are no numbers for leaves of a larger one */
	rfs_layout(241700, 16384, true, 1, true, &l);
	CHECK(l.nmap_blocks > l.nmap_leaves);
	rfs_layout(260000, 16384, true, 1, true, &l);
	CHECK_EQ(l.nmap_blocks, l.nmap_leaves);
}

TEST(mkfs_refuses)
{
	struct rfs_geometry geo = geometry;
	struct rfs_layout l;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 zones;

	rfs_layout(RFS_CP_ZONES, CAP, true, 1, false, &l);
	for (zones = l.make_zones - 1; zones <= l.make_zones; zones++) {
		geo.zones = zones;
		dev = memdev_new(&geo, CAP, 1 << 20, true);
		CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""),
			 zones < l.make_zones ? -ENOSPC : 0);
		memdev_free(dev);
	}
	/* a zone too small for check-points */
	geo.zones = 48;
	dev = memdev_new(&geo, 7, 1 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), -ENOSPC);
	memdev_free(dev);
	/* nothing there */
	dev = memdev_new(&geo, CAP, 1 << 20, true);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), -EINVAL);
	memdev_free(dev);
	/* more zones than the device has */
	dev = new_dev(&geometry);
	geo.zones = 40;
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), -EUCLEAN);
	memdev_free(dev);
}

/* On a volume of so few zones quotas are turned on, and there is room for a zone of files. */
static void smallest(const struct rfs_geometry *geo, u32 cap, u32 ways)
{
	struct rfs_id striped = { .uuid = "a small volume", .ways = ways, .runs = true };
	struct memdev *dev = memdev_new(geo, cap, 32 << 20, true);
	struct rfs_fs *fs;
	u32 ino, i;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, geo, &striped, ""), 0);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, geo, false, 0, &fs), 0);
	CHECK_EQ(max(le32_to_cpu(fs->super.ways), 1U), ways);
	CHECK_EQ(rfs_quota_on(fs), 0);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	for (i = 0; i < fs->holds / 2; i++)
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

TEST(smallest_volumes)
{
	static const u32 caps[] = { 16, 24, 32, 64, 256, 4096 }, ways[] = { 1, 2, 7, 32 };
	struct rfs_geometry geo = { .zone_blocks = 256 };
	struct rfs_layout l;
	u32 i, j, oob;

	for (i = 0; i < sizeof(caps) / sizeof(*caps); i++)
		for (j = 0; j < sizeof(ways) / sizeof(*ways); j++)
			for (oob = 0; oob <= 64; oob += 64) {
				if (!oob && ways[j] > 1)
					continue;
				geo.oob_bytes = oob;
				geo.zone_blocks = max(caps[i], 256U);
				rfs_layout(200, caps[i], oob, ways[j], true, &l);
				CHECK(!l.few);
				geo.zones = l.make_zones;
				smallest(&geo, caps[i], ways[j]);
				if (ways[j] > 1)
					continue;
				rfs_layout(RFS_CP_ZONES + 1, caps[i], oob, 1, true, &l);
				CHECK_EQ(l.few, caps[i] >= 64);
				CHECK(!l.few || l.make_zones < geo.zones);
				geo.zones = l.make_zones;
				smallest(&geo, caps[i], 1);
			}
	CHECK_EQ(geo.zone_blocks, 4096);
	rfs_layout(8, 4096, true, 1, true, &l);
	CHECK_EQ(l.make_zones, 8);
}

/* Fewer ways where zones are too few for so many */
TEST(mkfs_stripes_over_fewer)
{
	static const struct rfs_id seven = { .uuid = "seven ways", .ways = 7, .runs = true };
	struct rfs_geometry geo = { .zones = 35, .zone_blocks = 32, .oob_bytes = 64 };
	struct memdev *dev = memdev_new(&geo, 24, 32 << 20, true);
	struct rfs_fs *fs;
	u32 ways;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &seven, ""), 0);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), 0);
	ways = le32_to_cpu(fs->super.ways);
	CHECK(ways > 1 && ways < 7);
	CHECK_EQ(ways, rfs_ways_fit(&geo, 24, 7, true));
	CHECK_EQ(rfs_quota_on(fs), 0);
	check_clean(fs);
	end(fs, dev);
}

/* One that was made with fewer zones than mkfs asks for now is mounted. */
TEST(smaller_volume_is_mounted)
{
	struct rfs_geometry geo = { .zone_blocks = 256, .oob_bytes = 64 };
	struct rfs_super super[RFS_CP_MIRRORS];
	struct rfs_layout few, enough;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 i;

	rfs_layout(48, 24, true, 1, id.runs, &enough);
	CHECK(enough.need_zones < enough.make_zones && !enough.few);
	geo.zones = enough.make_zones;
	rfs_layout(enough.need_zones, 24, true, 1, id.runs, &few);
	dev = memdev_new(&geo, 24, 32 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	for (i = 0; i < RFS_CP_MIRRORS; i++) {
		struct mem_page *page = &dev->page[i * 256];

		memcpy(&super[i], page->data, sizeof(*super));
		super[i].zones = cpu_to_le32(enough.need_zones);
		super[i].max_inodes = cpu_to_le32(few.max_inodes);
		super[i].max_nodes = cpu_to_le32(few.max_nodes);
		rfs_head_seal(&super[i].head, 5);
		page->data = (u8 *)&super[i];
	}
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), 0);
	CHECK_EQ(fs->geo.zones, enough.need_zones);
	check_clean(fs);
	end(fs, dev);
}

TEST(newer_format)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_super super[RFS_CP_ZONES];
	struct rfs_fs *fs;
	u32 zone;

	for (zone = 0; zone < 2; zone++) {
		struct mem_page *page = &dev->page[zone * 256];

		memcpy(&super[zone], page->data, sizeof(*super));
		super[zone].incompat |= cpu_to_le32(0x80000000);
		rfs_head_seal(&super[zone].head, 5);
		page->data = (u8 *)&super[zone];
	}
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geometry, true, 0, &fs),
		 -EOPNOTSUPP);
	for (zone = 0; zone < 2; zone++) {
		super[zone].incompat = 0;
		super[zone].ro_compat = cpu_to_le32(1);
		super[zone].compat = cpu_to_le32(1);
		rfs_head_seal(&super[zone].head, 5);
	}
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geometry, false, 0, &fs), -EROFS);
	rfs_unmount_nosync(mount_ro(dev));
	memdev_free(dev);
}

TEST(big_directory)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_entry entry = { 0 };
	u32 top, ino, i, n = 0, found;
	char name[32];
	u64 last = 0;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &dir, &top), 0);
	for (i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "name-%u", i);
		CHECK_EQ(rfs_create(fs, top, name, &file, &ino), 0);
		CHECK_EQ(rfs_create(fs, top, name, &file, &ino), -EEXIST);
		/* a reader that goes on while leaves split meets each once */
		if (i % 50 == 49 &&
		    rfs_dir_next(fs, top, entry.pos, &entry) == 0) {
			CHECK(entry.pos > last);
			last = entry.pos;
		}
	}
	memset(&entry, 0, sizeof(entry));
	while (rfs_dir_next(fs, top, entry.pos, &entry) == 0)
		n++;
	CHECK_EQ(n, 10000);
	for (i = 0; i < 10000; i += 2) {
		snprintf(name, sizeof(name), "name-%u", i);
		CHECK_EQ(rfs_unlink(fs, top, name, &ino), 0);
		CHECK_EQ(rfs_free_orphan(fs, ino), 0);
	}
	CHECK_EQ(rfs_log_sync(fs), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "name-%u", i);
		CHECK_EQ(rfs_dir_find(fs, top, name, strlen(name), &found),
			 i % 2 ? 0 : -ENOENT);
	}
	CHECK_EQ(rfs_unlink(fs, RFS_ROOT_INO, "d", &ino), -ENOTEMPTY);
	check_clean(fs);
	end(fs, dev);
}

struct hashed {
	u32 hash, nr;
};

static int by_hash(const void *a, const void *b)
{
	const struct hashed *one = a, *other = b;

	return one->hash < other->hash ? -1 : one->hash > other->hash;
}

/* A name is met though one of the same hash goes while somebody reads */
TEST(names_of_one_hash)
{
	enum { NAMES = 400000 };
	struct hashed *names = malloc(NAMES * sizeof(*names));
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 top, ino, i, pairs = 0;
	char name[2][32];

	for (i = 0; i < NAMES; i++) {
		int len = snprintf(name[0], sizeof(name[0]), "%u", i);

		names[i].nr = i;
		names[i].hash = rfs_name_hash(fs, name[0], len) >> 32;
	}
	qsort(names, NAMES, sizeof(*names), by_hash);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &dir, &top), 0);
	for (i = 1; i < NAMES; i++) {
		struct rfs_entry entry = { 0 };
		char first[32] = { 0 };

		if (names[i].hash != names[i - 1].hash)
			continue;
		pairs++;
		snprintf(name[0], sizeof(name[0]), "%u", names[i - 1].nr);
		snprintf(name[1], sizeof(name[1]), "%u", names[i].nr);
		CHECK_EQ(rfs_create(fs, top, name[0], &file, &ino), 0);
		CHECK_EQ(rfs_create(fs, top, name[1], &file, &ino), 0);
		CHECK_EQ(rfs_dir_next(fs, top, entry.pos, &entry), 0);
		memcpy(first, entry.name, entry.len);
		CHECK_EQ(rfs_unlink(fs, top, first, &ino), 0);
		CHECK_EQ(rfs_free_orphan(fs, ino), 0);
		CHECK_EQ(rfs_dir_next(fs, top, entry.pos, &entry), 0);
		memcpy(first, entry.name, entry.len);
		first[entry.len] = '\0';
		CHECK_EQ(rfs_dir_next(fs, top, entry.pos, &entry), -ENOENT);
		CHECK_EQ(rfs_unlink(fs, top, first, &ino), 0);
		CHECK_EQ(rfs_free_orphan(fs, ino), 0);
		CHECK_EQ(rfs_unlink(fs, top, name[0], &ino), -ENOENT);
		CHECK_EQ(rfs_unlink(fs, top, name[1], &ino), -ENOENT);
	}
	CHECK(pairs > 5);
	free(names);
	end(fs, dev);
}

static u32 generation_of(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	return le32_to_cpu(di->gen);
}

static bool alike;	/* the hashes of all names, in the bits that entries have */

u64 __real_rfs_name_hash(const struct rfs_fs *fs, const void *name, u32 len);
u64 __wrap_rfs_name_hash(const struct rfs_fs *fs, const void *name, u32 len);

u64 __wrap_rfs_name_hash(const struct rfs_fs *fs, const void *name, u32 len)
{
	u64 hash = __real_rfs_name_hash(fs, name, len);

	return alike ? (u32)hash : hash;
}

/* Two volumes of one UUID, which any user can read, hash a name differently. */
TEST(hash_of_a_secret)
{
	static const struct rfs_id other_id = { "0123456789abcde",
						"a key for others",
						"a key to be safe" };
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u64 hash = __real_rfs_name_hash(fs, "name", 4);

	CHECK_EQ(rfs_unmount(fs), 0);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geometry, &other_id, "test"), 0);
	fs = mount(dev);
	CHECK(!memcmp(fs->super.uuid, id.uuid, sizeof(id.uuid)));
	CHECK(__real_rfs_name_hash(fs, "name", 4) != hash);
	end(fs, dev);
}

/* More names than a leaf holds have the hash that their entries keep. */
TEST(leaves_of_one_hash)
{
	enum { NAMES = 1000 };
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_entry entry = { 0 };
	u32 top, ino, i, n = 0, found;
	u64 last = 0;
	char name[256];

	alike = true;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &dir, &top), 0);
	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "%0255u", i);
		CHECK_EQ(rfs_create(fs, top, name, &file, &ino), 0);
	}
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	while (rfs_dir_next(fs, top, entry.pos, &entry) == 0) {
		CHECK(entry.pos > last);
		last = entry.pos;
		n++;
	}
	CHECK_EQ(n, NAMES);
	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "%0255u", i);
		CHECK_EQ(rfs_dir_find(fs, top, name, 255, &found), 0);
		CHECK_EQ(rfs_unlink(fs, top, name, &ino), 0);
		CHECK_EQ(ino, found);
		CHECK_EQ(rfs_free_orphan(fs, ino), 0);
		CHECK_EQ(rfs_dir_find(fs, top, name, 255, &found), -ENOENT);
	}
	check_clean(fs);
	alike = false;
	end(fs, dev);
}

/*
 * A file's data is made to look like a summary that says the block after it is
 * another file's, and the append it is in loses its own summary. Whoever writes
 * it knows all but the volume's keys.
 */
TEST(forged_summary)
{
	struct rfs_geometry geo = geometry;
	struct rfs_summary forged = { 0 };
	static u8 evil[RFS_BLOCK_BYTES];
	const void *data[2] = { &forged, evil };
	struct rfs_oob *entry = &forged.entry[0];
	struct memdev *dev;
	struct rfs_fs *fs;
	struct rfs_ptr ptr;
	u32 victim, ino, zone;
	u64 addr;

	geo.oob_bytes = 0;
	dev = new_dev(&geo);
	fs = mount(dev);
	rfs_policy_set(fs, &one_group);
	CHECK_EQ(rfs_create(fs, 2, "victim", &file, &victim), 0);
	put(fs, victim, 0, 7, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 7, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_map_get(fs, ino, 0, &ptr), 0);
	zone = zone_of(fs, ino, 0);
	addr = (u64)zone * geo.zone_blocks + fs->zone[zone].wp + 1;
	memset(evil, 0xee, sizeof(evil));
	rfs_head_init(fs, &forged.head, RFS_SUMMARY, 0, 0, 0);
	forged.head.count = cpu_to_le16(1);
	forged.head.addr = cpu_to_le64(addr);
	entry->magic = cpu_to_le16(RFS_OOB_MAGIC);
	entry->type = RFS_DATA;
	entry->volume = cpu_to_le32(fs->volume);
	entry->ino = cpu_to_le32(victim);
	entry->gen = cpu_to_le32(generation_of(fs, victim));
	entry->version = cpu_to_le64(fs->version + 100);
	entry->stamp = entry->version;
	entry->len = cpu_to_le16(RFS_BLOCK_BYTES);
	entry->txn_cnt = cpu_to_le16(1);
	rfs_oob_seal(entry, evil);
	rfs_head_seal(&forged.head, fs->version + 99);
	CHECK_EQ(rfs_write(fs, ino, 0, 2, data, RFS_BLOCK_BYTES), 0);
	CHECK_EQ(rfs_map_get(fs, ino, 0, &ptr), 0);
	CHECK_EQ(rfs_addr(ptr.addr), addr);
	rfs_unmount_nosync(fs);
	dev->page[addr - 1].state = MEM_TORN;
	fs = mount(dev);
	expect(fs, victim, 0, 7, RFS_BLOCK_BYTES);
	expect(fs, ino, 0, 7, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

TEST(sparse)
{
	static const u64 at[] = { 0, 1, 251, 252, 7055, 7056, 63503, 63504,
				  254016, 7112447, 7112448, 7169347583,
				  7169347584, RFS_FILE_BLOCKS - 1 };
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u64 live;
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	live = fs->live;
	for (i = 0; i < sizeof(at) / sizeof(*at); i++)
		put(fs, ino, at[i], i + 1, RFS_BLOCK_BYTES);
	block[0] = 0;
	{
		const void *data = block;

		CHECK_EQ(rfs_write(fs, ino, RFS_FILE_BLOCKS, 1, &data, 1),
			 -EFBIG);
	}
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	for (i = 0; i < sizeof(at) / sizeof(*at); i++)
		expect(fs, ino, at[i], i + 1, RFS_BLOCK_BYTES);
	expect(fs, ino, 100, 0, 0);
	expect(fs, ino, 100000, 0, 0);
	check_clean(fs);
	/* by recovery too */
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < sizeof(at) / sizeof(*at); i++)
		expect(fs, ino, at[i], i + 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_punch(fs, ino, 251, 63504, false), 0);
	CHECK_EQ(rfs_truncate(fs, ino, 63504ull * 4096 + 5, false), 0);
	expect(fs, ino, 251, 0, 0);
	expect(fs, ino, 1, 2, RFS_BLOCK_BYTES);
	expect(fs, ino, 63504, 8, 5);
	check_clean(fs);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	check_clean(fs);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->blocks), 0);
	CHECK_EQ(fs->live, live);
	end(fs, dev);
}

TEST(symlinks)
{
	static const u32 lens[] = { 1, 96, 97, 4095 };
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	static char target[4096];
	static u8 got[4096];
	struct rfs_new how = { .mode = S_IFLNK | 0777, .target = target };
	char name[] = "0";
	u32 i, round, len, ino;

	for (i = 0; i < 4; i++) {
		memset(target, 'a' + i, lens[i]);
		target[lens[i]] = 0;
		name[0] = '0' + i;
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &how, &ino), 0);
	}
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	for (round = 0; round < 3; round++) {
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		for (i = 0; i < 4; i++) {
			name[0] = '0' + i;
			CHECK_EQ(rfs_dir_find(fs, 2, name, 1, &ino), 0);
			CHECK_EQ(rfs_readlink(fs, ino, got, &len), 0);
			CHECK_EQ(len, lens[i]);
			memset(target, 'a' + i, len);
			CHECK(!memcmp(got, target, len));
		}
	}
	for (i = 0; i < 4; i++) {
		name[0] = '0' + i;
		CHECK_EQ(rfs_unlink(fs, RFS_ROOT_INO, name, &ino), 0);
		CHECK_EQ(rfs_free_orphan(fs, ino), 0);
	}
	check_clean(fs);
	end(fs, dev);
}

/* What C.5 counts */
TEST(pages_of_an_fsync)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, other_ino, i, at;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "other", &file, &other_ino), 0);
	at = dev->ops;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	put(fs, ino, 0, 1, 100);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	CHECK_EQ(appended(dev, at), 2);	/* its data and the log */
	for (i = 1; i < 40; i++) {
		at = dev->ops;
		put(fs, ino, i, 1, RFS_BLOCK_BYTES);
		/* another file's names are not waited for */
		if (i % 4 == 0)
			CHECK_EQ(rfs_truncate(fs, other_ino, i, true), 0);
		CHECK_EQ(rfs_fsync(fs, ino), 0);
		CHECK_EQ(appended(dev, at), 1);
	}
	at = dev->ops;
	CHECK_EQ(rfs_truncate(fs, ino, 5000, false), 0);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	CHECK_EQ(appended(dev, at), 1);
	at = dev->ops;
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	CHECK_EQ(appended(dev, at), 0);
	end(fs, dev);
}

/* The record of a truncate is durable before a page after it is submitted. */
TEST(record_before_page)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, at;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	put(fs, ino, 0, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	at = dev->ops;
	put(fs, ino, 3, 2, RFS_BLOCK_BYTES);
	CHECK_EQ(dev->ops - at, 3);
	CHECK_EQ(dev->op[at].page.oob->type, RFS_LOG);
	CHECK_EQ(dev->op[at + 1].type, MEM_WAIT);
	CHECK_EQ(dev->op[at + 2].page.oob->type, RFS_DATA);
	end(fs, dev);
}

TEST(flushes)
{
	struct rfs_geometry geo = geometry;
	u32 volatile_cache, ino, i, n;

	for (volatile_cache = 0; volatile_cache < 2; volatile_cache++) {
		struct memdev *dev;
		struct rfs_fs *fs;

		geo.volatile_cache = volatile_cache;
		dev = new_dev(&geo);
		fs = mount(dev);
		CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
		put(fs, ino, 0, 1, RFS_BLOCK_BYTES);
		n = dev->ops;
		CHECK_EQ(rfs_fsync(fs, ino), 0);
		CHECK_EQ(dev->op[dev->ops - 1].type,
			 volatile_cache ? MEM_FLUSH : MEM_WAIT);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		for (n = 0, i = 0; i < dev->ops; i++)
			n += dev->op[i].type == MEM_FLUSH;
		CHECK_EQ(!n, !volatile_cache);
		end(fs, dev);
	}
}

/* A copy of an old version does not hide a newer one, nor undo a truncate. */
TEST(copy_loses_to_newer)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, i, round;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	for (i = 0; i < 300; i++)
		put(fs, ino, i, 1, RFS_BLOCK_BYTES);
	put(fs, ino, 200, 1, RFS_BLOCK_BYTES);	/* a block is gained */
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	CHECK(fs->stats.copied > 200);
	put(fs, ino, 5, 2, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_truncate(fs, ino, 100 * RFS_BLOCK_BYTES + 9, false), 0);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	for (round = 0; round < 2; round++) {
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		CHECK(!round == (fs->recovered.pages_dropped > 100));
		expect(fs, ino, 4, 1, RFS_BLOCK_BYTES);
		expect(fs, ino, 5, 2, RFS_BLOCK_BYTES);
		expect(fs, ino, 100, 1, 9);
		expect(fs, ino, 101, 0, 0);
		check_clean(fs);
	}
	end(fs, dev);
}

TEST(full_then_delete)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	const void *data[16];
	u32 ino, i, round, first = 0;
	char name[32];
	int ret;

	for (i = 0; i < 16; i++)
		data[i] = block;
	for (round = 0; round < 3; round++) {
		u32 n = 0;

		for (;; n++) {
			snprintf(name, sizeof(name), "f%u", n);
			ret = rfs_create(fs, RFS_ROOT_INO, name, &file, &ino);
			if (!ret)
				ret = rfs_write(fs, ino, 0, 16, data, 4096);
			if (ret)
				break;
		}
		CHECK_EQ(ret, -ENOSPC);
		/* what is there can still be overwritten, cut and renamed */
		for (i = 0; i < 2000; i++) {
			snprintf(name, sizeof(name), "f%u", i % n);
			CHECK_EQ(rfs_dir_find(fs, 2, name, strlen(name), &ino),
				 0);
			put(fs, ino, i % 16, i, RFS_BLOCK_BYTES);
		}
		CHECK(fs->stats.copied > 0);
		CHECK(fs->dirty.count <= rfs_dirty_most(fs));
		if (!round)
			first = n;
		CHECK(n + 2 >= first && n > 300);
		check_clean(fs);
		CHECK_EQ(rfs_unmount(fs), 0);
		fs = mount(dev);
		for (i = 0; i <= n; i++) {
			snprintf(name, sizeof(name), "f%u", i);
			ret = rfs_unlink(fs, RFS_ROOT_INO, name, &ino);
			CHECK(!ret || (i == n && ret == -ENOENT));
			if (!ret)
				CHECK_EQ(rfs_free_orphan(fs, ino), 0);
		}
		check_clean(fs);
	}
	end(fs, dev);
}

/* Files fill a volume whose zones end before a summary is full. */
static void overwrite_full(u32 zones, u32 cap, u32 oob, u32 append_max)
{
	struct rfs_geometry geo = { .zones = zones, .zone_blocks = cap,
				    .oob_bytes = oob,
				    .append_max = append_max };
	struct memdev *dev = memdev_new(&geo, cap, 512 << 20, true);
	u32 ino, i, n, random = 1;
	const void *data = block;
	struct rfs_fs *fs;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	for (n = 0; !rfs_write(fs, ino, n, 1, &data, RFS_BLOCK_BYTES); n++)
		;
	CHECK(n > zones * cap / 4);
	for (i = 0; i < 1500; i++) {
		random = random * 1103515245 + 12345;
		put(fs, ino, (random >> 8) % n, i, RFS_BLOCK_BYTES);
	}
	check_clean(fs);
	end(fs, dev);
}

TEST(full_of_small_zones)
{
	static const u32 caps[] = { 32, 100, 0 };
	u32 i;

	for (i = 0; caps[i]; i++) {
		overwrite_full(100, caps[i], 0, 0);
		overwrite_full(100, caps[i], 64, 0);
		/* there, a summary is with each append */
		overwrite_full(100, caps[i], 0, 2);
		overwrite_full(100, caps[i], 0, 8);
		overwrite_full(100, caps[i], 64, 2);
	}
}

TEST(orphans)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino[3], i;
	char name[] = "0";

	for (i = 0; i < 3; i++) {
		name[0] = '0' + i;
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino[i]), 0);
		put(fs, ino[i], 0, i + 1, RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_unlink(fs, 2, name, &ino[i]), 0);
	}
	put(fs, ino[1], 1, 9, RFS_BLOCK_BYTES);	/* still open */
	expect(fs, ino[1], 0, 2, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_free_orphan(fs, ino[1]), 0);
	check_clean(fs);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->recovered.orphans, 2);
	CHECK_EQ(fs->inodes, 1);
	check_clean(fs);
	end(fs, dev);
}

#define LEAVES	200

/* A file with so many index nodes, each of which leads to one block */
static u32 sparse_file(struct rfs_fs *fs, const char *name)
{
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
	for (i = 0; i < LEAVES; i++)
		put(fs, ino, (u64)i * RFS_FANOUT, i + 1, RFS_BLOCK_BYTES);
	return ino;
}

/*
 * An operation that misses a block has changed nothing, says where the block is, and
 * takes what was read for it if that is the one.
 */
TEST(asked_for)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u8 content[RFS_BLOCK_BYTES];
	struct rfs_fetched got = { .data = content };
	u32 ino = sparse_file(fs, "f"), asked = 0, gone;
	u64 live;
	int ret;

	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	live = fs->live;
	rfs_cache_trim(fs, 0);
	do {
		fs->nowait = true;
		ret = rfs_unlink(fs, 2, "f", &gone);
		fs->nowait = false;
		fs->fetched = NULL;
		if (ret != -EINPROGRESS)
			break;
		CHECK(rfs_log_empty(fs));
		CHECK_EQ(fs->dirty.count, 0);
		CHECK_EQ(fs->live, live);
		asked++;
		CHECK(asked < 20);
		got.addr = fs->missed;
		got.error = fs->ops->read(dev, got.addr, content, NULL);
		/* now and then it is another one: it counts for nothing */
		if (asked % 3 == 0)
			got.addr++;
		fs->fetched = &got;
	} while (true);
	CHECK_EQ(ret, 0);
	CHECK_EQ(gone, ino);
	CHECK(asked >= 4);
	/* what cannot be read is told to who asked */
	rfs_checkpoint(fs, 0);
	rfs_cache_trim(fs, 0);
	fs->nowait = true;
	CHECK_EQ(rfs_unlink(fs, 2, "g", &gone), -EINPROGRESS);
	got.addr = fs->missed;
	got.error = -EIO;
	fs->fetched = &got;
	CHECK_EQ(rfs_unlink(fs, 2, "g", &gone), -EIO);
	fs->nowait = false;
	fs->fetched = NULL;
	CHECK_EQ(rfs_unlink(fs, 2, "g", &gone), -ENOENT);
	check_clean(fs);
	end(fs, dev);
}

/* What is deleted goes in parts; recovery goes on with what is left. */
TEST(deleted_in_parts)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u64 used = fs->live;
	u32 parts = 0, ino, i;
	bool more = true;

	ino = sparse_file(fs, "f");
	CHECK_EQ(rfs_unlink(fs, 2, "f", &ino), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(rfs_free_some(fs, ino, &more), 0);
		CHECK(more);
		CHECK(fs->pruned <= (i + 1) * RFS_PRUNE_NODES);
	}
	check_clean(fs);
	CHECK_EQ(rfs_free_some(fs, ino, &more), 0);
	CHECK(more);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->recovered.orphans, 1);
	CHECK_EQ(fs->inodes, 1);
	check_clean(fs);
	CHECK(fs->live <= used + 4);
	/* who has a name is not deleted */
	ino = sparse_file(fs, "g");
	CHECK_EQ(rfs_free_some(fs, ino, &more), -EUCLEAN);
	CHECK_EQ(rfs_unlink(fs, 2, "g", &ino), 0);
	do {
		CHECK_EQ(rfs_free_some(fs, ino, &more), 0);
		parts++;
	} while (more);
	CHECK(parts >= LEAVES / RFS_PRUNE_NODES);
	CHECK_EQ(fs->inodes, 1);
	check_clean(fs);
	end(fs, dev);
}

/* Deletions that recovery would do again are bounded: a check-point comes. */
TEST(deletions_are_bounded)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino = sparse_file(fs, "f"), i;
	bool more;
	u64 seq;

	CHECK_EQ(rfs_unlink(fs, 2, "f", &ino), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	seq = fs->cp_seq;
	CHECK_EQ(rfs_free_some(fs, ino, &more), 0);
	CHECK_EQ(fs->cp_seq, seq);
	CHECK(fs->pruned >= RFS_PRUNE_NODES);
	for (i = 0; fs->pruned < 4096; i++)
		fs->pruned += RFS_PRUNE_NODES;
	fs->threaded = true;
	CHECK_EQ(rfs_free_some(fs, ino, &more), -ENOBUFS);
	fs->threaded = false;
	CHECK_EQ(rfs_free_some(fs, ino, &more), 0);
	CHECK_EQ(fs->cp_seq, seq + 1);
	CHECK(fs->pruned <= RFS_PRUNE_NODES);
	check_clean(fs);
	end(fs, dev);
}

/* A file with many nodes is cut from its end on, as if its owner had. */
TEST(shortened)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u64 to = RFS_FILE_BLOCKS, from = 10 * RFS_FANOUT, last;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 ino = sparse_file(fs, "f"), i, steps = 0;
	bool more;

	for (more = true; more; steps++) {
		CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
		last = le64_to_cpu(di->size);
		CHECK_EQ(rfs_shorten(fs, ino, from, &to, true, &more), 0);
		CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
		CHECK_EQ(le64_to_cpu(di->size) < last, more);
	}
	CHECK_EQ(steps, 1 + (LEAVES - 10) / RFS_PRUNE_NODES);
	CHECK_EQ(rfs_truncate(fs, ino, from * RFS_BLOCK_BYTES, false), 0);
	for (i = 0; i < 10; i++)
		expect(fs, ino, (u64)i * RFS_FANOUT, i + 1, RFS_BLOCK_BYTES);
	check_clean(fs);
	/* a range in its middle, of another */
	ino = sparse_file(fs, "g");
	to = 190 * RFS_FANOUT;
	for (more = true; more;)
		CHECK_EQ(rfs_shorten(fs, ino, from, &to, false, &more), 0);
	CHECK_EQ(rfs_punch(fs, ino, from, to, false), 0);
	for (i = 0; i < LEAVES; i++) {
		bool gone = i >= 10 && i < 190;

		expect(fs, ino, (u64)i * RFS_FANOUT, gone ? 0 : i + 1,
		       RFS_BLOCK_BYTES);
	}
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->size),
		 ((LEAVES - 1ULL) * RFS_FANOUT + 1) * RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

static u32 to_reset;		/* a zone; 0: none is */

static int begin_reset(void *dev, u32 zone)
{
	(void)dev;
	if (to_reset)
		return -EBUSY;
	to_reset = zone;
	return 0;
}

/* Zones are reset one after the other; what is written goes elsewhere meanwhile. */
TEST(reset_meanwhile)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino, i, nr, seen = 0;

	ops.reset_begin = begin_reset;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	fs->threaded = true;
	for (i = 0; i < 4 * CAP; i++)
		put(fs, ino, i % 8, i + 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(to_reset);
	while (to_reset) {
		nr = to_reset;
		CHECK(fs->zone[nr].resetting);
		CHECK_EQ(fs->zone[nr].state, RFS_Z_FREE);
		for (i = 0; i < CAP; i++)
			put(fs, ino, i % 8, i + 1, RFS_BLOCK_BYTES);
		CHECK_EQ(fs->zone[nr].state, RFS_Z_FREE);
		CHECK_EQ(memdev_ops.reset(dev, nr), 0);
		to_reset = 0;
		rfs_reset_done(fs, nr, 0);
		CHECK_EQ(fs->zone[nr].wp, 0);
		if (++seen < 3)
			rfs_reset_next(fs);
	}
	CHECK_EQ(seen, 3);
	/* of one that fails nobody takes it */
	CHECK(rfs_reset_next(fs));
	rfs_reset_done(fs, to_reset, -EIO);
	CHECK_EQ(fs->zone[to_reset].cond, RFS_DEV_READ_ONLY);
	to_reset = 0;
	fs->threaded = false;
	check_clean(fs);
	end(fs, dev);
}

/* They go in any order, and but for lists of older versions without a search. */
TEST(orphans_in_any_order)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 ino[41], i;

	for (i = 0; i < 41; i++)
		CHECK_EQ(rfs_create(fs, 2, NULL, &file, &ino[i]), 0);
	for (i = 0; i < 41; i += 2) {	/* as older versions have it */
		CHECK_EQ(rfs_iget(fs, ino[i], &di, &buf), 0);
		di->parent = cpu_to_le32(i % 3 ? 2 : 0xffffffff);
	}
	for (i = 1; i < 38; i++) {
		CHECK_EQ(rfs_free_orphan(fs, ino[i * 7 % 41]), 0);
		check_clean(fs);
	}
	CHECK_EQ(rfs_create(fs, 2, NULL, &file, &ino[40]), 0);
	CHECK_EQ(rfs_link(fs, 2, "name", ino[0]), 0);
	CHECK_EQ(rfs_iget(fs, ino[0], &di, &buf), 0);
	CHECK_EQ(le32_to_cpu(di->parent), 2);
	check_clean(fs);
	CHECK_EQ(rfs_fsync(fs, ino[0]), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->inodes, 2);
	for (i = 0; i < 4; i++)
		CHECK_EQ(rfs_create(fs, 2, NULL, &file, &ino[i]), 0);
	/* a search would not end */
	CHECK_EQ(rfs_iget(fs, ino[3], &di, &buf), 0);
	di->next_orphan = cpu_to_le32(ino[3]);
	CHECK_EQ(rfs_free_orphan(fs, ino[0]), 0);
	CHECK_EQ(rfs_free_orphan(fs, ino[1]), 0);
	rfs_unmount_nosync(fs);
	end(mount(dev), dev);
}

TEST(temporary_files)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino[3], i, found;

	for (i = 0; i < 3; i++) {
		CHECK_EQ(rfs_create(fs, 2, NULL, &file, &ino[i]), 0);
		put(fs, ino[i], 0, i + 1, RFS_BLOCK_BYTES);
	}
	CHECK_EQ(rfs_link(fs, 2, "late", ino[1]), 0);
	CHECK_EQ(rfs_fsync(fs, ino[1]), 0);
	check_clean(fs);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->recovered.orphans, 2);
	CHECK_EQ(rfs_dir_find(fs, 2, "late", 4, &found), 0);
	CHECK_EQ(found, ino[1]);
	expect(fs, ino[1], 0, 2, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

/* An append is in flight while somebody sets times: those are newer. */
TEST(times_set_in_flight)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_place place;
	struct rfs_dinode *di, attr;
	struct rfs_txn txn;
	struct rfs_oob oob;
	struct rfs_buf *buf;
	const void *data = block;
	bool hole;
	u64 addr;
	u32 ino, n = 1, stream;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(rfs_reserve(fs, ino, 0, &hole), 0);
	CHECK_EQ(rfs_txn_begin(fs, ino, 0, 1, RFS_BLOCK_BYTES, 1111, &txn), 0);
	CHECK_EQ(rfs_txn_fill(fs, &txn, 0, &n, &oob, &stream), 0);
	rfs_oob_seal(&oob, block);
	CHECK_EQ(rfs_place(fs, RFS_S_DATA, 1, false, &place), 0);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	attr = *di;
	attr.mtime = cpu_to_le64(7777);
	CHECK_EQ(rfs_setattr(fs, ino, &attr, 0), 0);
	CHECK_EQ(memdev_ops.append(dev, place.zone, 1, &data, &oob, &addr), 0);
	rfs_placed(fs, &place, &oob, addr, 0);
	CHECK_EQ(rfs_txn_done(fs, &oob, 1, &addr), 0);
	rfs_unreserve(fs, ino, 1, hole);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->mtime), 7777);
	end(fs, dev);
}

#define SCATTERED	6

/* Blocks of a transaction need not follow each other; it is there as a whole or not. */
static void scattered(bool whole)
{
	static const u64 at[SCATTERED] = { 0, 1, 5, 6, 300, 7777 };
	u64 addr[SCATTERED], got;
	struct rfs_oob oob[SCATTERED];
	u32 ino, i, n = SCATTERED, stream, used;
	struct memdev *dev = new_dev(&geometry);
	const void *data[SCATTERED];
	struct rfs_fs *fs = mount(dev);
	struct rfs_place place;
	struct rfs_txn txn;
	struct rfs_ptr ptr;
	bool hole;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	for (i = 0; i < n; i++) {
		CHECK_EQ(rfs_reserve(fs, ino, at[i], &hole), 0);
		data[i] = block;
	}
	CHECK_EQ(rfs_txn_begin(fs, ino, 0, n, 100, 1, &txn), 0);
	txn.at = at;
	CHECK_EQ(rfs_txn_fill(fs, &txn, 0, &n, oob, &stream), 0);
	CHECK_EQ(n, SCATTERED);
	for (i = 0; i < n; i++)
		rfs_oob_seal(&oob[i], block);
	CHECK_EQ(rfs_place(fs, stream, n, false, &place), 0);
	CHECK_EQ(place.n, n);
	used = whole ? n : n - 1;
	CHECK_EQ(memdev_ops.append(dev, place.zone, used, data, oob, addr), 0);
	rfs_placed(fs, &place, oob, addr[0], 0);
	if (whole) {
		for (i = 1; i < n; i++)
			addr[i] = addr[0] + i;
		CHECK_EQ(rfs_txn_done(fs, oob, n, addr), 0);
		for (i = 0; i < n; i++) {
			CHECK_EQ(rfs_map_get(fs, ino, at[i], &ptr), 0);
			CHECK_EQ(rfs_addr(ptr.addr), addr[i]);
		}
	}
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < n; i++) {
		CHECK_EQ(rfs_map_get(fs, ino, at[i], &ptr), 0);
		got = rfs_addr(ptr.addr);
		CHECK_EQ(got, whole ? addr[0] + i : 0);
	}
	end(fs, dev);
}

TEST(scattered_transaction)
{
	scattered(true);
	scattered(false);
}

/*
 * A transaction of one page, given a version now; it completes with
 * complete_page().
 */
struct submitted {
	struct rfs_oob oob;
	struct rfs_place place;
	bool hole;
};

static void submit_page(struct rfs_fs *fs, u32 ino, u64 at, u64 time,
			struct submitted *f)
{
	struct rfs_txn txn;
	u32 n = 1, stream;

	CHECK_EQ(rfs_reserve(fs, ino, at, &f->hole), 0);
	CHECK_EQ(rfs_txn_begin(fs, ino, at, 1, RFS_BLOCK_BYTES, time, &txn), 0);
	CHECK_EQ(rfs_txn_fill(fs, &txn, 0, &n, &f->oob, &stream), 0);
	rfs_oob_seal(&f->oob, block);
	CHECK_EQ(rfs_place(fs, stream, 1, false, &f->place), 0);
}

static void complete_page(struct rfs_fs *fs, struct memdev *dev, u32 ino,
			  const struct submitted *f)
{
	const void *data = block;
	u64 addr;

	CHECK_EQ(memdev_ops.append(dev, f->place.zone, 1, &data, &f->oob,
				   &addr), 0);
	rfs_placed(fs, &f->place, &f->oob, addr, 0);
	CHECK_EQ(rfs_txn_done(fs, &f->oob, 1, &addr), 0);
	rfs_unreserve(fs, ino, 1, f->hole);
}

static void expect_times(struct rfs_fs *fs, u32 ino, u64 mtime, u64 ctime)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->mtime), mtime);
	CHECK_EQ(le64_to_cpu(di->ctime), ctime);
}

/* Of two transactions the newer one's time counts, whichever completes last. */
TEST(times_land_in_any_order)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct submitted older, newer;
	u64 now;
	u32 ino;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	now = memdev_ops.now(dev);
	submit_page(fs, ino, 0, now + 1000, &older);
	submit_page(fs, ino, 1, now + 2000, &newer);
	complete_page(fs, dev, ino, &newer);
	complete_page(fs, dev, ino, &older);
	expect_times(fs, ino, now + 2000, now + 2000);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	expect_times(fs, ino, now + 2000, now + 2000);
	end(fs, dev);
}

/* What a record makes of times, and then a power cut: a page is older. */
static void times_after(int (*change)(struct rfs_fs *fs, u32 ino), bool mtime)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct submitted page;
	u64 now, before, changed;
	u32 ino;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	now = memdev_ops.now(dev);
	submit_page(fs, ino, 0, now, &page);
	complete_page(fs, dev, ino, &page);
	before = now;
	while (memdev_ops.now(dev) <= now + 1000)
		;
	CHECK_EQ(change(fs, ino), 0);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	changed = le64_to_cpu(di->ctime);
	CHECK(changed > now + 1000);
	if (mtime)
		before = changed;
	expect_times(fs, ino, before, changed);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK(fs->recovered.pages_applied);
	expect_times(fs, ino, before, changed);
	end(fs, dev);
}

static int then_reserve(struct rfs_fs *fs, u32 ino)
{
	u64 from = 10;

	return rfs_preallocate(fs, ino, &from, 20);
}

static int then_punch(struct rfs_fs *fs, u32 ino)
{
	return rfs_punch(fs, ino, 10, 20, false);
}

static int then_link(struct rfs_fs *fs, u32 ino)
{
	return rfs_link(fs, 2, "g", ino);
}

static int then_rename(struct rfs_fs *fs, u32 ino)
{
	(void)ino;
	return rfs_rename(fs, 2, "f", 2, "g", 0, NULL);
}

static int then_setxattr(struct rfs_fs *fs, u32 ino)
{
	return rfs_xattr_set(fs, ino, "user.a", "b", 1, 0, 0);
}

TEST(times_of_records)
{
	times_after(then_reserve, true);
	times_after(then_punch, true);
	times_after(then_link, false);
	times_after(then_rename, false);
	times_after(then_setxattr, false);
}

/* Sent again with more in it, a log block would be there twice, and differ */
TEST(log_that_cannot_be_written)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, zone;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (zone = 0; zone < dev->geo.zones; zone++)
		dev->cond[zone] = RFS_DEV_READ_ONLY;
	CHECK_EQ(rfs_fsync(fs, ino), -EIO);
	for (zone = 0; zone < dev->geo.zones; zone++)
		dev->cond[zone] = RFS_DEV_OK;
	CHECK_EQ(rfs_create(fs, 2, "g", &file, &ino), -EROFS);
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

static u64 log_blocks(const struct rfs_fs *fs)
{
	return fs->stats.written[RFS_LOG];
}

static void create_many(struct rfs_fs *fs, u32 from, u32 to)
{
	char name[16];
	u32 ino;

	for (; from < to; from++) {
		snprintf(name, sizeof(name), "f%u", from);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
	}
}

/* Of names f0, f1, ..., how many there are */
static u32 created(struct rfs_fs *fs)
{
	char name[16];
	u32 ino, n = 0;

	do
		snprintf(name, sizeof(name), "f%u", n++);
	while (rfs_dir_find(fs, 2, name, strlen(name), &ino) == 0);
	return n - 1;
}

/*
 * Records are written when somebody asks, or for want of room; what a
 * check-point has, need not be.
 */
TEST(log_in_memory)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 some = 42 * (fs->log_most - 2) + 20, ino;	/* 96 bytes each */

	create_many(fs, 0, some);
	CHECK_EQ(fs->log_full, fs->log_most - 2);
	CHECK_EQ(log_blocks(fs), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(log_blocks(fs), 0);
	CHECK(rfs_log_empty(fs));
	create_many(fs, some, 2 * some);
	CHECK_EQ(log_blocks(fs), 0);
	CHECK_EQ(rfs_dir_find(fs, 2, "f1", 2, &ino), 0);
	CHECK_EQ(rfs_truncate(fs, ino, 1, true), 0);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	CHECK_EQ(log_blocks(fs), fs->log_most - 1);
	/* more than there is memory for */
	create_many(fs, 2 * some, 4 * some);
	CHECK_EQ(log_blocks(fs), 2 * fs->log_most - 1);
	rfs_unmount_nosync(fs);

	fs = mount(dev);
	CHECK_EQ(fs->recovered.log_gap, 0);
	ino = created(fs);
	CHECK(ino > 3 * some && ino < 4 * some);
	check_clean(fs);
	end(fs, dev);
}

/* Zones that are free are not, or are again. */
static void hide_free(struct rfs_fs *fs, u8 state, u8 as)
{
	u32 nr;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++)
		if (fs->zone[nr].state == state && !fs->zone[nr].wp)
			fs->zone[nr].state = as;
	rfs_all_zones_changed(fs);
}

/* Blocks of the log that an error has left on the medium are sent again. */
TEST(log_sent_again)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	const struct rfs_zone_info *z;
	u64 before;
	u32 n = 0;

	do {
		create_many(fs, n, n + 1);
		n++;
		CHECK_EQ(rfs_log_sync(fs), 0);
		z = &fs->zone[fs->active[RFS_S_LOG][0].zone];
	} while (z->cap - z->wp != 4);
	create_many(fs, n, n + 200);
	CHECK(fs->log_full >= 4 && fs->log_used);
	before = log_blocks(fs);
	hide_free(fs, RFS_Z_FREE, RFS_Z_USED);
	CHECK_EQ(rfs_log_sync(fs), -ENOSPC);
	hide_free(fs, RFS_Z_USED, RFS_Z_FREE);
	CHECK(log_blocks(fs) > before);
	CHECK(fs->pending.n);
	create_many(fs, n + 200, n + 205);
	CHECK_EQ(rfs_log_sync(fs), 0);
	rfs_unmount_nosync(fs);

	fs = mount(dev);
	CHECK_EQ(fs->recovered.log_gap, 0);
	CHECK_EQ(created(fs), n + 205);
	check_clean(fs);
	end(fs, dev);
}

static u64 seek(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool data)
{
	while (rfs_map_seek(fs, ino, from, to, data, &from) == -EAGAIN)
		;
	return from;
}

TEST(holes_are_found)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u64 far = 1ULL << 30;
	u32 ino;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 3, 1, RFS_BLOCK_BYTES);
	put(fs, ino, 4, 1, RFS_BLOCK_BYTES);
	put(fs, ino, far, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(seek(fs, ino, 0, far + 1, true), 3);
	CHECK_EQ(seek(fs, ino, 3, far + 1, false), 5);
	CHECK_EQ(seek(fs, ino, 5, far + 1, true), far);
	CHECK_EQ(seek(fs, ino, far, far + 1, false), far + 1);
	CHECK_EQ(seek(fs, ino, 0, far + 1, false), 0);
	/* the only block of a file is in no node */
	CHECK_EQ(rfs_create(fs, 2, "g", &file, &ino), 0);
	put(fs, ino, 0, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(seek(fs, ino, 0, 9, true), 0);
	CHECK_EQ(seek(fs, ino, 0, 9, false), 1);
	CHECK_EQ(seek(fs, ino, 1, 9, true), 9);
	end(fs, dev);
}

static u32 height(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	return di->height;
}

static u64 blocks_of(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	return le64_to_cpu(di->blocks);
}

/* Short files have no index nodes, until they grow; empty ones have none again. */
TEST(short_files)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_extent extent;
	u32 ino, i, round;
	u64 from;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = RFS_DIRECT; i-- > 0;)
		put(fs, ino, i, i + 1, 4096);
	check_clean(fs);
	for (round = 0; round < 2; round++) {
		CHECK_EQ(height(fs, ino), 0);
		CHECK_EQ(blocks_of(fs, ino), RFS_DIRECT);
		CHECK_EQ(fs->stats.written[RFS_INDEX], 0);
		for (i = 0; i < RFS_DIRECT; i++)
			expect(fs, ino, i, i + 1, 4096);
		expect(fs, ino, RFS_DIRECT, 0, 0);
		rfs_unmount_nosync(fs);
		fs = mount(dev);
	}
	CHECK_EQ(rfs_punch(fs, ino, 2, 4, false), 0);
	CHECK_EQ(rfs_truncate(fs, ino, 6 * 4096 + 5, false), 0);
	CHECK_EQ(seek(fs, ino, 0, 7, false), 2);
	CHECK_EQ(seek(fs, ino, 2, 7, true), 4);
	CHECK_EQ(seek(fs, ino, 4, 300, false), 7);
	CHECK_EQ(seek(fs, ino, 7, 300, true), 300);
	from = 2;
	CHECK_EQ(rfs_map_extent(fs, ino, &from, 9, &extent), 0);
	CHECK_EQ(extent.block, 4);
	CHECK_EQ(blocks_of(fs, ino), RFS_DIRECT - 2);
	/* all of them are in the first node then */
	put(fs, ino, RFS_DIRECT, 8, 4096);
	CHECK_EQ(height(fs, ino), 1);
	CHECK_EQ(blocks_of(fs, ino), RFS_DIRECT);
	for (round = 0; round < 2; round++) {
		check_clean(fs);
		for (i = 0; i <= RFS_DIRECT; i++)
			expect(fs, ino, i, i == 2 || i == 3 ? 0 : i + 1,
			       i == 6 ? 5 : 4096);
		rfs_unmount_nosync(fs);
		fs = mount(dev);
	}
	CHECK_EQ(rfs_truncate(fs, ino, 4096, false), 0);
	CHECK_EQ(height(fs, ino), 1);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	CHECK_EQ(height(fs, ino), 0);
	CHECK_EQ(blocks_of(fs, ino), 0);
	put(fs, ino, 3, 9, 4096);
	check_clean(fs);
	CHECK_EQ(height(fs, ino), 0);
	expect(fs, ino, 3, 9, 4096);
	end(fs, dev);
}

/* Room is kept for blocks of a short file, and goes along when it grows. */
TEST(short_files_reserved)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u64 from = 1;
	u32 ino;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 3, 1, 4096);
	CHECK_EQ(rfs_preallocate(fs, ino, &from, RFS_DIRECT), 0);
	CHECK_EQ(fs->prealloc, 5);
	CHECK_EQ(height(fs, ino), 0);
	put(fs, ino, 2, 2, 4096);
	CHECK_EQ(rfs_punch(fs, ino, 3, 4, true), 0);
	CHECK_EQ(fs->prealloc, 5);
	check_clean(fs);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->prealloc, 5);
	put(fs, ino, 300, 3, 4096);
	CHECK_EQ(height(fs, ino), 1);
	CHECK_EQ(blocks_of(fs, ino), 6 + 1 + 2);
	CHECK_EQ(fs->prealloc, 5);
	expect(fs, ino, 2, 2, 4096);
	check_clean(fs);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	CHECK_EQ(fs->prealloc, 0);
	end(fs, dev);
}

/* A target of a symlink is where others have pointers. */
TEST(short_files_and_symlinks)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_new link = { .mode = S_IFLNK | 0777 };
	char target[300] = { 0 };
	u32 ino, len, round, l;

	for (l = RFS_INLINE_MAX; l < 300; l += 1 + 190 * (l > RFS_INLINE_MAX)) {
		memset(target, 0xff, l);
		target[l] = 0;
		link.target = target;
		CHECK_EQ(rfs_create(fs, 2, l <= RFS_INLINE_MAX ? "a" : "b", &link, &ino), 0);
		for (round = 0; round < 3; round++) {
			check_clean(fs);
			CHECK_EQ(blocks_of(fs, ino), l > RFS_INLINE_MAX);
			CHECK_EQ(rfs_readlink(fs, ino, block, &len), 0);
			CHECK_EQ(len, l);
			CHECK(!memcmp(block, target, l));
			rfs_unmount_nosync(fs);
			fs = mount(dev);
		}
		CHECK_EQ(rfs_unlink(fs, 2, l <= RFS_INLINE_MAX ? "a" : "b", &ino), 0);
		CHECK_EQ(rfs_free_orphan(fs, ino), 0);
	}
	check_clean(fs);
	end(fs, dev);
}

/* As drawn: any of what a zone can be that makes it a victim, or not */
static void draw_zone(struct rfs_fs *fs, u32 nr, u64 now)
{
	struct rfs_zone_info *z = &fs->zone[nr];

	z->state = random() % 8 ? RFS_Z_USED : RFS_Z_FREE;
	z->stream = RFS_S_META + random() % 4;
	z->cap = random() % 4 ? CAP : CAP / 2 + random() % 20;
	z->live = random() % (z->cap + 1) >> random() % 4;
	z->last = now >> random() % 20;
	z->window = !(random() % 20);
	z->cleaned = !(random() % 30);
	z->cleaning = !(random() % 30);
	z->cond = random() % 50 ? RFS_DEV_OK : RFS_DEV_READ_ONLY;
	rfs_zone_changed(fs, nr);
}

static void compare_victims(struct rfs_fs *fs, u64 now)
{
	u64 some = random() % (1 << fs->ways);
	enum rfs_clean how;

	for (how = 0; how < RFS_CLEANS; how++) {
		CHECK_EQ(rfs_victim(fs, how, now, RFS_ALL_WAYS),
			 rfs_victim_scan(fs, how, now, RFS_ALL_WAYS));
		CHECK_EQ(rfs_victim(fs, how, now, some),
			 rfs_victim_scan(fs, how, now, some));
	}
	CHECK(!rfs_sets_wrong(fs));
}

/* The winner of the tournament is the zone that a look at each finds, at any time. */
TEST(best_victim_of_many)
{
	struct rfs_geometry many = geometry;
	struct rfs_policy policy = { .groups = 4 };
	u32 ways, i, n;

	many.zones = 400;
	for (ways = 1; ways <= 5; ways += 2) {
		struct memdev *dev = memdev_new(&many, CAP, 4 << 20, false);
		struct rfs_id striped = { .ways = ways };
		u64 now = 1 << 20;
		struct rfs_fs *fs;

		CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &many, &striped,
				  ""), 0);
		CHECK_EQ(rfs_mount(&memdev_ops, dev, &many, false, 0, &fs), 0);
		CHECK_EQ(fs->ways, ways);
		for (i = RFS_CP_ZONES; i < many.zones; i++)
			draw_zone(fs, i, now);
		for (i = 0; i < 600; i++) {
			if (!(i % 100)) {
				policy.gc = RFS_GC_COST_BENEFIT +
					    i / 100 % 3 / 2;
				rfs_policy_set(fs, &policy);
			}
			for (n = random() % 8; n; n--)
				draw_zone(fs, RFS_CP_ZONES + random() %
					  (many.zones - RFS_CP_ZONES), now);
			now += 1 << random() % 16;
			if (!(random() % 40))	/* a clock was set back */
				now /= 2;
			compare_victims(fs, now);
		}
		rfs_unmount_nosync(fs);
		memdev_free(dev);
	}
}

/* In pieces, so that nobody waits for the whole of it */
TEST(holes_of_a_dense_file)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u64 block, at = 0, blocks = 64 * RFS_FANOUT + 10;
	struct rfs_ptr ptr = { 0 };
	u32 ino, calls = 1;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_map_get(fs, ino, 0, &ptr), 0);
	/* nobody reads them: all at one address */
	for (block = 1; block < blocks; block++)
		CHECK_EQ(rfs_map_set(fs, ino, block, 1, &ptr), 0);
	while (rfs_map_seek(fs, ino, at, blocks + 5, false, &at) == -EAGAIN)
		calls++;
	CHECK_EQ(calls, 2);
	CHECK_EQ(at, blocks);
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

/* A volume that was unmounted is not said to have been cut off. */
TEST(unmounted_is_whole)
{
	static const u32 sizes[][2] = { { 48, 64 }, { 48, 0 }, { 300, 64 },
					{ 300, 0 }, { 0 } };
	u32 i, ino, round;

	for (i = 0; sizes[i][0]; i++) {
		struct rfs_geometry geo = geometry;
		struct memdev *dev;
		struct rfs_fs *fs;

		geo.zones = sizes[i][0];
		geo.oob_bytes = sizes[i][1];
		dev = new_dev(&geo);
		for (round = 0; round < 3; round++) {
			fs = mount(dev);
			if (!round)
				CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f",
						    &file, &ino), 0);
			put(fs, ino, round, round, RFS_BLOCK_BYTES);
			CHECK_EQ(rfs_unmount(fs), 0);
			fs = mount_ro(dev);
			CHECK_EQ(fs->recovered.pages_window, 0);
			CHECK_EQ(fs->recovered.pages_bad, 0);
			rfs_unmount_nosync(fs);
		}
		memdev_free(dev);
	}
}

TEST(read_only_writes_nothing)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, at;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 7, 70);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	at = dev->ops;
	fs = mount_ro(dev);
	CHECK_EQ(fs->recovered.pages_applied, 1);
	expect(fs, ino, 0, 7, 70);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), -EROFS);
	CHECK_EQ(rfs_unmount(fs), 0);
	CHECK_EQ(dev->ops, at);
	end(NULL, dev);
}

/* A mount begins with versions that no mount before it has used. */
TEST(epochs)
{
	struct memdev *dev = new_dev(&geometry);
	u64 epoch = 0;
	u32 i;

	for (i = 0; i < 5; i++) {
		struct rfs_fs *fs = mount(dev);

		CHECK(fs->version >> RFS_EPOCH_SHIFT > epoch);
		epoch = fs->version >> RFS_EPOCH_SHIFT;
		rfs_unmount_nosync(fs);
	}
	memdev_free(dev);
}

/* A volume whose pages, log or check-points have the last numbers there are */
static void made_with(u64 version, u64 lsn, u64 seq, bool checkpoint)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_report report = { 0 };
	struct rfs_rescue out;
	u32 ino;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	put(fs, ino, 0, 7, 4096);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	fs->version = max(fs->version, version);
	fs->lsn = max(fs->lsn, lsn);
	fs->cp_seq = max(fs->cp_seq, seq);
	put(fs, ino, 1, 8, 4096);
	CHECK_EQ(rfs_truncate(fs, ino, 100000, true), 0);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	if (checkpoint)
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geometry, false, 0, &fs),
		 -EUCLEAN);
	/* what is there can be read, and what is older be had again */
	fs = mount_ro(dev);
	expect(fs, ino, 0, 7, 4096);
	rfs_unmount_nosync(fs);
	CHECK_EQ(rfs_rescan(&memdev_ops, dev, &geometry, &report, &out, &fs),
		 0);
	expect(fs, ino, 0, 7, 4096);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	expect(fs, ino, 0, 7, 4096);
	end(fs, dev);
}

TEST(last_numbers_are_refused)
{
	static const u64 versions[] = { 0xfffffULL << RFS_EPOCH_SHIFT,
					~0ULL - 1000, 0 };
	u32 i;

	for (i = 0; i < 2; i++) {
		made_with(versions[i], 0, 0, false);
		made_with(versions[i], 0, 0, true);
	}
	made_with(0, RFS_LSN_END, 0, false);
	made_with(0, RFS_LSN_END, 0, true);
	made_with(0, 0, ~0ULL - 1, true);
}

TEST(checkpoint_zone_fails)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, zone, i;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	for (zone = 0; zone < 2; zone++) {
		dev->cond[zone] = RFS_DEV_OFFLINE;
		fs = mount(dev);
		expect(fs, ino, 0, 3, RFS_BLOCK_BYTES);
		/* the third takes its place, through several turns */
		for (i = 0; i < 3 * CAP; i++)
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK_EQ(rfs_unmount(fs), 0);
		dev->cond[zone] = RFS_DEV_OK;
	}
	/* and one that fails under way */
	fs = mount(dev);
	dev->cond[1] = RFS_DEV_READ_ONLY;
	put(fs, ino, 0, 4, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	dev->cond[1] = RFS_DEV_OFFLINE;
	fs = mount(dev);
	expect(fs, ino, 0, 4, RFS_BLOCK_BYTES);
	end(fs, dev);
}

/* A zone that has become read-only keeps the superblock of the volume before. */
TEST(made_anew)
{
	static const struct rfs_id other_id = { "fedcba987654321" };
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 zone, ino;

	for (zone = 0; zone < 2; zone++) {
		dev->cond[zone] = RFS_DEV_READ_ONLY;
		dev->time = 0;	/* a clock that is wrong */
		CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geometry,
				  zone ? &id : &other_id, ""), 0);
		fs = mount(dev);
		CHECK(!memcmp(fs->super.uuid,
			      zone ? id.uuid : other_id.uuid, 16));
		CHECK(rfs_clock(fs) > le64_to_cpu(fs->super.created));
		CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
		CHECK_EQ(rfs_unmount(fs), 0);
		fs = mount(dev);
		check_clean(fs);
		rfs_unmount_nosync(fs);
		dev->cond[zone] = RFS_DEV_OK;
	}
	end(NULL, dev);
}

/* Whatever zone of check-points goes offline when the power is cut */
TEST(any_checkpoint_zone_fails)
{
	const struct rfs_geometry geo = { .zones = 48, .zone_blocks = 16,
					  .oob_bytes = 64 };
	struct memdev *dev = memdev_new(&geo, 15, 16 << 20, true);
	struct memdev *cut = memdev_new(&geo, 15, 1 << 20, false);
	struct rfs_fs *fs;
	u32 ino, zone, i, op, done;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	done = dev->ops;
	/* each mirror is full twice */
	for (i = 0; i < 30; i++)
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	for (op = 0; op < dev->ops; op++) {
		memdev_replay(cut, &dev->op[op], MEM_OK);
		for (zone = 0; op >= done && zone < RFS_CP_ZONES; zone++) {
			struct rfs_fs *found;
			u32 nr;

			cut->cond[zone] = RFS_DEV_OFFLINE;
			CHECK_EQ(rfs_mount(&memdev_ops, cut, &geo, true, 0,
					   &found), 0);
			CHECK_EQ(rfs_dir_find(found, 2, "f", 1, &nr), 0);
			rfs_unmount_nosync(found);
			cut->cond[zone] = RFS_DEV_OK;
		}
	}
	memdev_free(cut);
	end(fs, dev);
}

/* A volume is filled, overwritten and cleaned with so few zones open. */
static void write_within(u32 max_open, u32 max_active, u32 oob)
{
	struct rfs_geometry geo = { .zones = 40, .zone_blocks = 64,
				    .oob_bytes = oob, .max_open = max_open,
				    .max_active = max_active };
	struct memdev *dev = memdev_new(&geo, 62, 512 << 20, true);
	u32 ino, i, round, zone, partly, random = 1;
	struct rfs_fs *fs;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	for (round = 0; round < 2; round++) {
		fs = mount(dev);
		if (!round)
			CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
		for (i = 0; i < 2000; i++) {
			random = random * 1103515245 + 12345;
			put(fs, ino, (random >> 8) % 1100, i,
			    RFS_BLOCK_BYTES);
			if (i % 50 == 0)
				CHECK_EQ(rfs_setattr(fs, ino, &(struct rfs_dinode){
						     .mode = cpu_to_le32(0100600) },
						     0), 0);
		}
		check_clean(fs);
		CHECK(fs->stats.victims > 0);
		rfs_unmount_nosync(fs);	/* and what was open is partly filled */
		memset(dev->open, 0, geo.zones * sizeof(*dev->open));
	}
	CHECK_EQ(dev->refused, 0);
	for (zone = partly = 0; zone < geo.zones; zone++)
		partly += dev->wp[zone] && dev->wp[zone] < dev->cap;
	CHECK(!max_active || partly <= max_active);
	memdev_free(dev);
}

TEST(few_open_zones)
{
	static const u32 limits[][2] = { { 3, 4 }, { 3, 0 }, { 0, 4 }, { 4, 5 },
					 { 5, 5 }, { 5, 7 }, { 14, 14 } };
	struct rfs_geometry geo = geometry;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 i;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		write_within(limits[i][0], limits[i][1], 64);
		write_within(limits[i][0], limits[i][1], 0);
	}
	/* fewer are refused, but can be read */
	dev = new_dev(&geometry);
	geo.max_open = 2;
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), -EMFILE);
	geo.max_open = 3;
	geo.max_active = 3;
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), -EMFILE);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), -EMFILE);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, true, 0, &fs), 0);
	end(fs, dev);
}

/* Data in flight holds its zone: no other is begun before it has completed. */
TEST(zone_in_flight)
{
	struct rfs_geometry geo = geometry;
	struct rfs_place place[CAP];
	struct rfs_oob oob[RFS_SUM_ENTRIES];
	const void *data[RFS_SUM_ENTRIES];
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 n = 0, i;
	u64 addr;
	int ret;

	geo.max_active = RFS_ACTIVE_MIN;
	dev = memdev_new(&geo, CAP, 64 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	fs = mount(dev);
	memset(oob, 0, sizeof(oob));
	for (i = 0; i < RFS_SUM_ENTRIES; i++) {
		oob[i].type = RFS_DATA;
		data[i] = block;
	}
	while (!(ret = rfs_place(fs, RFS_S_DATA, RFS_SUM_ENTRIES, false,
				 &place[n])))
		n++;
	CHECK_EQ(ret, -EBUSY);
	for (i = 0; i < n; i++) {
		CHECK_EQ(place[i].zone, place[0].zone);
		CHECK_EQ(memdev_ops.append(dev, place[i].zone, place[i].n, data,
					   oob, &addr), 0);
		rfs_placed(fs, &place[i], oob, addr, 0);
	}
	CHECK_EQ(rfs_place(fs, RFS_S_DATA, 1, false, place), 0);
	CHECK_EQ(memdev_ops.append(dev, place->zone, 1, data, oob, &addr), 0);
	CHECK_EQ(dev->refused, 0);
	end(fs, dev);
}

/* What a power cut leaves partly filled is finished where zones are few. */
TEST(left_zones_are_finished)
{
	struct rfs_geometry geo = geometry;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 ino, zone, i, partly;

	geo.max_active = 8;
	dev = memdev_new(&geo, CAP, 64 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 3; i++) {	/* three zones of data are begun */
		fs->active[fs->active_of[RFS_S_DATA]][0].zone = 0;
		put(fs, ino, i, i + 1, RFS_BLOCK_BYTES);
	}
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	geo.max_open = 5;	/* one for data */
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), 0);
	for (zone = RFS_CP_ZONES, partly = 0; zone < geo.zones; zone++)
		partly += dev->wp[zone] && dev->wp[zone] < CAP;
	CHECK(partly <= 4);
	for (i = 0; i < 3; i++)
		expect(fs, ino, i, i + 1, RFS_BLOCK_BYTES);
	check_clean(fs);
	CHECK_EQ(dev->refused, 0);
	end(fs, dev);
}

/*
 * A drive that allows more open zones than a volume ever writes is not one that
 * allows few: nothing waits for zones. What a power cut leaves is still finished.
 */
TEST(many_open_zones)
{
	struct rfs_geometry geo = geometry;
	u32 ino, zone, i, partly;
	struct memdev *dev;
	struct rfs_fs *fs;

	geo.zones = 100;
	geo.max_open = 64;
	geo.max_active = 64;
	dev = memdev_new(&geo, CAP, 64 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	fs = mount(dev);
	CHECK(!fs->active_few);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 30; i++) {
		fs->active[fs->active_of[RFS_S_DATA]][0].zone = 0;
		put(fs, ino, i, i + 1, RFS_BLOCK_BYTES);
	}
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), 0);
	for (zone = RFS_CP_ZONES, partly = 0; zone < geo.zones; zone++)
		partly += dev->wp[zone] && dev->wp[zone] < CAP;
	CHECK(partly <= RFS_STREAMS);
	CHECK_EQ(dev->refused, 0);
	check_clean(fs);
	end(fs, dev);
	geo.max_open = 20;
	geo.max_active = 20;
	dev = memdev_new(&geo, CAP, 64 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	fs = mount(dev);
	CHECK(fs->active_few);
	end(fs, dev);
}

/* The table of metadata blocks grows with them, and all are found in it. */
TEST(many_blocks_in_memory)
{
	struct rfs_geometry geo = geometry;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 ino, i, first;
	struct rfs_ptr ptr;
	u64 reads;

	geo.zones = 100;
	dev = memdev_new(&geo, CAP, 128 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	fs = mount(dev);
	fs->clean_max = ~0U;
	first = fs->hash_size;
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < first + 100; i++)	/* a leaf for each */
		put(fs, ino, (u64)i * RFS_FANOUT, i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(fs->hash_size > first);
	reads = dev->reads;
	for (i = 0; i < first + 100; i++)
		CHECK_EQ(rfs_map_get(fs, ino, (u64)i * RFS_FANOUT, &ptr), 0);
	CHECK_EQ(dev->reads, reads);
	check_clean(fs);
	end(fs, dev);
}

/* A victim that cannot be read is not tried again and again. */
TEST(victim_goes_offline)
{
	struct rfs_geometry geo = geometry;
	u32 ino, cold, i, gone, dead = 0, random = 1;
	struct memdev *dev;
	struct rfs_fs *fs;

	geo.zones = 30;
	dev = memdev_new(&geo, CAP, 512 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(rfs_create(fs, 2, "cold", &file, &cold), 0);
	put(fs, cold, 0, 9, RFS_BLOCK_BYTES);
	gone = fs->active[RFS_S_DATA][0].zone;
	for (i = 0; i < 2500; i++)
		put(fs, ino, i, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	dev->cond[gone] = RFS_DEV_OFFLINE;
	for (i = 0; i < 12000; i++) {
		random = random * 1103515245 + 12345;
		put(fs, ino, (random >> 8) % 2500, 2, RFS_BLOCK_BYTES);
	}
	CHECK(fs->zone[gone].live);
	CHECK_EQ(rfs_read(fs, cold, 0, block), -EIO);
	expect(fs, ino, (random >> 8) % 2500, 2,
	       RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_unmount(fs), 0);
	for (i = RFS_CP_ZONES; i < geo.zones; i++)
		dead += dev->cond[i] != RFS_DEV_OK;
	CHECK_EQ(dead, 1);
	end(NULL, dev);
}

/* Metadata claims more zones than there are, as a damaged volume may say: none is cleaned for it. */
TEST(nothing_is_cleaned_for_more_than_there_is)
{
	static const struct rfs_rounds rounds;
	static const u8 data[RFS_BLOCK_BYTES];
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	const void *block = data;
	u64 data_live;
	u32 ino;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	data_live = fs->data_live;
	fs->data_live = 1ULL << 50;
	CHECK_EQ(rfs_write(fs, ino, 0, 1, &block, RFS_BLOCK_BYTES), -ENOSPC);
	CHECK_EQ(fs->stats.victims, 0);
	CHECK_EQ(rfs_seek_room(fs, 1, 1, &rounds), -ENOSPC);
	fs->data_live = data_live;
	CHECK_EQ(rfs_write(fs, ino, 0, 1, &block, RFS_BLOCK_BYTES), 0);
	check_clean(fs);
	end(fs, dev);
}

/* A zone that fails takes from what users may have, as much as the next mount does. */
TEST(lost_zones_are_counted)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, lost[3], free_zones, meta_zones, i;
	u64 all = fs->user_blocks;

	rfs_policy_set(fs, &one_group);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	lost[0] = zone_of(fs, ino, 0);
	dev->cond[lost[0]] = RFS_DEV_READ_ONLY;
	put(fs, ino, 1, 4, RFS_BLOCK_BYTES);
	CHECK_EQ(fs->user_blocks, all - fs->holds);

	/* one that is free, and one of metadata, are no zones any more */
	free_zones = fs->free_zones;
	meta_zones = fs->meta_zones;
	lost[1] = rfs_bits_next(&fs->set[RFS_SET_FREE], 0);
	rfs_zone_lost(fs, lost[1]);
	CHECK_EQ(fs->free_zones, free_zones - 1);
	lost[2] = fs->active[RFS_S_META][0].zone;
	rfs_zone_lost(fs, lost[2]);
	rfs_zone_lost(fs, lost[2]);
	CHECK_EQ(fs->meta_zones, meta_zones - 1);
	CHECK_EQ(fs->user_blocks, all - 3 * fs->holds);
	for (i = 0; i < 3; i++)
		dev->cond[lost[i]] = RFS_DEV_READ_ONLY;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	check_clean(fs);
	free_zones = fs->free_zones + fs->meta_zones;
	CHECK_EQ(rfs_unmount(fs), 0);

	fs = mount(dev);
	CHECK_EQ(fs->user_blocks, all - 3 * fs->holds);
	CHECK_EQ(fs->free_zones + fs->meta_zones, free_zones);
	expect(fs, ino, 0, 3, RFS_BLOCK_BYTES);
	expect(fs, ino, 1, 4, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

/* A zone that failed once, and that the drive says is good, is used again. */
TEST(dead_zone_comes_back)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, zone;

	rfs_policy_set(fs, &one_group);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 3, RFS_BLOCK_BYTES);
	zone = fs->active[RFS_S_DATA][0].zone;
	rfs_zone_lost(fs, zone);
	put(fs, ino, 0, 4, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(fs->zone[zone].state, RFS_Z_DEAD);
	put(fs, ino, 1, 5, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->zone[zone].state, RFS_Z_FREE);
	expect(fs, ino, 0, 4, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

/* As a drive does: it does not say where a zone ends that is read-only. */
static int report_no_end(void *arg, u32 zone, struct rfs_dev_zone *out)
{
	int ret = memdev_ops.report(arg, zone, out);

	if (out->cond == RFS_DEV_READ_ONLY)
		out->wp = out->cap;
	return ret;
}

/*
 * The zone table says no more of a zone that failed than is there, whether it failed before
 * a mount, with pages that no check-point knows of, or as it was to be finished.
 */
static void failed_zone_ends_where_it_did(const struct rfs_geometry *geo)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(geo);
	u32 ino, zone, wp, how, i;
	struct rfs_zone entry;
	struct rfs_fs *fs;

	ops.report = report_no_end;
	for (how = 0; how < 2; how++) {
		CHECK_EQ(rfs_mount(&ops, dev, geo, false, 0, &fs), 0);
		rfs_policy_set(fs, &one_group);
		CHECK_EQ(rfs_create(fs, 2, how ? "g" : "f", &file, &ino), 0);
		for (i = 0; i < 2; i++) {
			put(fs, ino, i, 3, RFS_BLOCK_BYTES);
			rfs_sums_write(fs);
			CHECK_EQ(i ? rfs_log_sync(fs) : rfs_checkpoint(fs, 0), 0);
		}
		zone = zone_of(fs, ino, 1);
		wp = dev->wp[zone];
		CHECK(wp < CAP);
		dev->cond[zone] = RFS_DEV_READ_ONLY;
		if (how) {
			fs->active[RFS_S_DATA][0].zone = 0;
			fs->zone[zone].state = RFS_Z_USED;
			rfs_zone_changed(fs, zone);
			rfs_finish_zones(fs);
			CHECK_EQ(fs->zone[zone].cond, geo->max_active ?
				 RFS_DEV_READ_ONLY : RFS_DEV_OK);
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		} else {
			rfs_unmount_nosync(fs);
			CHECK_EQ(rfs_mount(&ops, dev, geo, false, 0, &fs), 0);
		}
		rfs_zone_entry(fs, zone, &entry);
		CHECK_EQ(le32_to_cpu(entry.wp), wp);
		CHECK_EQ(rfs_unmount(fs), 0);
		dev->cond[zone] = RFS_DEV_OK;
	}
	CHECK_EQ(rfs_mount(&ops, dev, geo, false, 0, &fs), 0);
	expect(fs, ino, 1, 3, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

TEST(failed_zones_end_where_they_did)
{
	struct rfs_geometry geo = geometry;

	failed_zone_ends_where_it_did(&geo);
	geo.max_active = 8;
	failed_zone_ends_where_it_did(&geo);
	geo.oob_bytes = 0;
	failed_zone_ends_where_it_did(&geo);
}

/* fsck.rfs --rescan does not have it from the drive either. */
static void failed_zone_is_rescanned(u32 oob_bytes)
{
	struct rfs_geometry geo = geometry;
	struct rfs_dev_ops ops = memdev_ops;
	struct rfs_report report = { 0 };
	struct rfs_rescue out;
	struct memdev *dev;
	u32 ino, zone, wp, i;
	struct rfs_zone entry;
	struct rfs_fs *fs;

	geo.oob_bytes = oob_bytes;
	dev = new_dev(&geo);
	ops.report = report_no_end;
	CHECK_EQ(rfs_mount(&ops, dev, &geo, false, 0, &fs), 0);
	rfs_policy_set(fs, &one_group);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 2; i++)
		put(fs, ino, i, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	zone = zone_of(fs, ino, 1);
	wp = dev->wp[zone];
	CHECK(wp < CAP);
	rfs_unmount_nosync(fs);
	dev->cond[zone] = RFS_DEV_READ_ONLY;
	CHECK_EQ(rfs_rescan(&ops, dev, &geo, &report, &out, &fs), 0);
	expect(fs, ino, 1, 3, RFS_BLOCK_BYTES);
	rfs_zone_entry(fs, zone, &entry);
	CHECK_EQ(le32_to_cpu(entry.wp), wp);
	CHECK_EQ(rfs_unmount(fs), 0);
	dev->cond[zone] = RFS_DEV_OK;
	CHECK_EQ(rfs_mount(&ops, dev, &geo, false, 0, &fs), 0);
	expect(fs, ino, 1, 3, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

TEST(rescan_of_a_failed_zone)
{
	failed_zone_is_rescanned(64);
	failed_zone_is_rescanned(0);
}

TEST(data_zone_fails)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, zone;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 3, RFS_BLOCK_BYTES);
	zone = zone_of(fs, ino, 0);
	dev->cond[zone] = RFS_DEV_READ_ONLY;
	put(fs, ino, 1, 4, RFS_BLOCK_BYTES);	/* goes elsewhere */
	CHECK(zone_of(fs, ino, 1) != zone);
	check_clean(fs);
	dev->cond[zone] = RFS_DEV_OFFLINE;
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(rfs_read(fs, ino, 0, block), -EIO);
	expect(fs, ino, 1, 4, RFS_BLOCK_BYTES);
	end(fs, dev);
}

static u8 fail_type;	/* the next append of it fails, half done */

static int append_half(void *arg, u32 zone, u32 blocks, const void *const *data,
		       const struct rfs_oob *oob, u64 *addr)
{
	struct memdev *dev = arg;

	if (!oob || !fail_type || oob->type != fail_type)
		return memdev_ops.append(dev, zone, blocks, data, oob, addr);
	fail_type = 0;
	CHECK_EQ(memdev_ops.append(dev, zone, (blocks + 1) / 2, data, oob, addr),
		 0);
	dev->cond[zone] = RFS_DEV_READ_ONLY;
	return -EIO;
}

/* What was written before it failed is on the medium twice. */
TEST(repeated_append_is_one)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	u8 pages[8][RFS_BLOCK_BYTES];
	const void *data[8];
	struct rfs_fs *fs;
	u32 ino, g, i;

	ops.append = append_half;
	CHECK_EQ(rfs_mount(&ops, dev, &dev->geo, false, 0, &fs), 0);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 8; i++)
		put(fs, ino, i, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	for (i = 0; i < 8; i++) {
		memset(pages[i], 2, RFS_BLOCK_BYTES);
		data[i] = pages[i];
	}
	fail_type = RFS_DATA;
	CHECK_EQ(rfs_write(fs, ino, 0, 8, data, RFS_BLOCK_BYTES), 0);
	CHECK_EQ(fail_type, 0);
	CHECK_EQ(rfs_create(fs, 2, "g1", &file, &g), 0);
	fail_type = RFS_LOG;
	CHECK_EQ(rfs_fsync(fs, g), 0);
	CHECK_EQ(fail_type, 0);
	CHECK_EQ(rfs_create(fs, 2, "g2", &file, &g), 0);
	CHECK_EQ(rfs_fsync(fs, g), 0);
	rfs_unmount_nosync(fs);

	fs = mount(dev);
	for (i = 0; i < 8; i++) {
		CHECK_EQ(rfs_read(fs, ino, i, block), 0);
		CHECK_EQ(memcmp(block, pages[i], RFS_BLOCK_BYTES), 0);
	}
	CHECK_EQ(rfs_dir_find(fs, 2, "g1", 2, &g), 0);
	CHECK_EQ(rfs_dir_find(fs, 2, "g2", 2, &g), 0);
	CHECK_EQ(fs->recovered.log_gap, 0);
	end(fs, dev);
}

/* Numbers a damaged medium may hold end in an error or at once, not never. */
TEST(endless_numbers)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_dinode *di;
	struct rfs_entry entry;
	struct rfs_buf *buf;
	u32 ino[4], i, gone;
	char name[8];

	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &dir, &ino[i]), 0);
		CHECK_EQ(rfs_unlink(fs, 2, name, &gone), 0);
	}
	/* a directory of 2^60 bytes */
	CHECK_EQ(rfs_iget(fs, ino[0], &di, &buf), 0);
	di->size = cpu_to_le64(1ULL << 60);
	CHECK_EQ(rfs_free_orphan(fs, ino[0]), 0);
	/* a list of orphans that goes round, without the one that is sought */
	CHECK_EQ(rfs_iget(fs, ino[2], &di, &buf), 0);
	di->next_orphan = cpu_to_le32(ino[3]);
	CHECK_EQ(rfs_free_orphan(fs, ino[1]), -EUCLEAN);
	fs->read_only = false;
	/* nodes that name one empty leaf again and again */
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &gone), 0);
	}
	CHECK_EQ(rfs_iget(fs, 2, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->size), 3 * RFS_BLOCK_BYTES);
	for (i = 1; i < 3; i++) {
		CHECK_EQ(rfs_block_get(fs, 2, RFS_DIR, i, &buf), 0);
		buf->head.count = 0;
	}
	CHECK_EQ(rfs_block_get(fs, 2, RFS_DIR, 0, &buf), 0);
	for (i = 0; i < RFS_DX_ENTRIES; i++) {
		struct rfs_dx *dx = (struct rfs_dx *)(buf->bytes +
						      sizeof(buf->head));

		dx[i].hash = cpu_to_le32(i);
		dx[i].block = cpu_to_le32(1);
	}
	buf->head.count = cpu_to_le16(RFS_DX_ENTRIES);
	CHECK_EQ(rfs_dir_next(fs, 2, 0, &entry), -EUCLEAN);
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

/* Which inodes' records are not durable, many of them */
TEST(pending_records)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 first, ino, i;
	char name[8];

	for (i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
		first = i ? first : ino;
		CHECK(rfs_log_pending(fs, first, false));
		CHECK(rfs_log_pending(fs, ino, false));
		CHECK(!rfs_log_pending(fs, ino, true));
		CHECK(!rfs_log_pending(fs, ino + 1, false));
	}
	CHECK_EQ(rfs_truncate(fs, first + 7, 0, false), 0);
	for (i = 0; i < 400; i++) {
		CHECK(rfs_log_pending(fs, first + i, false));
		CHECK_EQ(rfs_log_pending(fs, first + i, true), i == 7);
	}
	CHECK_EQ(rfs_fsync(fs, first), 0);
	for (i = 0; i < 400; i++)
		CHECK(!rfs_log_pending(fs, first + i, false));
	end(fs, dev);
}

/* Free zones of which one cannot be written are not counted on. */
TEST(free_zone_that_is_dead)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 free_zones = fs->free_zones;

	CHECK_EQ(rfs_unmount(fs), 0);
	dev->cond[40] = RFS_DEV_OFFLINE;
	dev->cond[41] = RFS_DEV_READ_ONLY;
	fs = mount(dev);
	CHECK_EQ(fs->free_zones, free_zones - 2);
	end(fs, dev);
}

/* Dirty metadata and the window stay within what mkfs counted on. */
TEST(bounds)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, i, most_dirty = 0, free_zones, most;
	u64 most_window = 0;
	char name[32];

	for (i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
		put(fs, ino, (u64)i * 10000000, 1, RFS_BLOCK_BYTES);
		CHECK(fs->dirty.count <= rfs_dirty_most(fs));
		most_dirty = max(most_dirty, fs->dirty.count);
		most_window = max(most_window, fs->window_blocks);
	}
	CHECK(fs->stats.checkpoints > 10);
	CHECK(most_dirty > fs->dirty_max);
	CHECK(most_window <= fs->window_max + 20);
	/* what is reserved, and zones that are not free, are not counted on */
	most = rfs_dirty_most(fs);
	fs->rsv_blocks = (u64)fs->free_zones * CAP;
	CHECK(rfs_dirty_most(fs) < most);
	most = rfs_dirty_most(fs);
	fs->rsv_blocks = 0;
	free_zones = fs->free_zones;
	fs->free_zones = 0;
	CHECK_EQ(rfs_dirty_most(fs), most);
	fs->free_zones = free_zones;
	end(fs, dev);
}

/*
 * Pages that room is reserved for are written, also where each has a summary of
 * its own.
 */
TEST(promised_pages_land)
{
	enum { FILL = 63 * 95 };
	struct rfs_geometry geo = geometry;
	struct rfs_txn txn;
	struct rfs_oob oob;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 ino, i, n = 0, one, stream, at;
	const void *data = block;
	u64 addr;
	bool hole;

	geo.oob_bytes = 0;
	dev = new_dev(&geo);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < FILL; i += 63)
		put(fs, ino, i, 63, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	fs->threaded = true;
	/* 1009 is prime: no two are neighbours */
	while (n < FILL && !rfs_reserve(fs, ino, n * 1009 % FILL, &hole))
		n++;
	CHECK(n > 100);
	CHECK(n < FILL);
	for (i = 0; i < n; i++) {
		if (rfs_checkpoint_due(fs))
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		at = i * 1009 % FILL;
		one = 1;
		CHECK_EQ(rfs_txn_begin(fs, ino, at, 1, RFS_BLOCK_BYTES, i,
				       &txn), 0);
		CHECK_EQ(rfs_txn_fill(fs, &txn, 0, &one, &oob, &stream), 0);
		CHECK_EQ(rfs_append(fs, stream, 1, &data, &oob, &addr), 0);
		CHECK_EQ(rfs_txn_done(fs, &oob, 1, &addr), 0);
		rfs_unreserve(fs, ino, 1, 0);
	}
	fs->threaded = false;
	check_clean(fs);
	end(fs, dev);
}

static u32 power_for;	/* blocks, then nothing is written any more */

static int append_with_power(void *dev, u32 zone, u32 blocks,
			     const void *const *data, const struct rfs_oob *oob,
			     u64 *addr)
{
	if (power_for < blocks)
		return -EIO;
	power_for -= blocks;
	return memdev_ops.append(dev, zone, blocks, data, oob, addr);
}

/*
 * Here and there, so that zones do not die as a whole, until so many are free
 * beyond the reserve
 */
static void fill_zones(struct rfs_fs *fs, u32 spare)
{
	u32 big = fs->geo.zones * le32_to_cpu(fs->super.zone_cap) / 3, ino, at;

	CHECK_EQ(rfs_create(fs, 2, "big", &file, &ino), 0);
	for (at = 1; fs->free_zones > fs->low_zones + spare;
	     at = at * 1103515245 + 12345)
		put(fs, ino, (at >> 8) % big, at, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
}

static u64 metadata_written(const struct rfs_fs *fs)
{
	static const u8 types[] = { RFS_DIR, RFS_QUOTA, RFS_INDEX, RFS_XATTR,
				    RFS_INODES, RFS_IMAP, RFS_NMAP };
	u64 n = 0;
	u32 i;

	for (i = 0; i < sizeof(types); i++)
		n += fs->stats.written[types[i]];
	return n;
}

/* It writes what is dirty before it, and no more. */
static void checkpoint_as_counted(struct rfs_fs *fs)
{
	u64 before = metadata_written(fs);
	u32 counted;

	rfs_dirty_parents(fs);
	counted = fs->dirty.count;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(metadata_written(fs) - before, counted);
}

/*
 * As much is dirty as may be, in index nodes with four above them that a
 * check-point writes too, and the more the more zones are free. There is room for
 * that check-point; if power fails in it, and in recoveries, for that of the last.
 */
static void dirty_most(const struct rfs_geometry *geo, u32 cap, u32 files,
		       u32 spare, u32 power)
{
	u64 far = (u64)RFS_FANOUT * RFS_FANOUT * RFS_FANOUT * RFS_FANOUT;
	struct memdev *dev = new_dev(geo);
	struct rfs_dev_ops ops = memdev_ops;
	struct rfs_fs *fs;
	u32 ino, first = 0, i, cut = RFS_BLOCK_BYTES;
	char name[16];
	int ret = 0;

	ops.append = append_with_power;
	power_for = ~0U;
	CHECK_EQ(rfs_mount(&ops, dev, geo, false, 0, &fs), 0);
	for (i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
		put(fs, ino, far, i, RFS_BLOCK_BYTES);
		first = i ? first : ino;
	}
	fill_zones(fs, spare);
	CHECK(fs->free_zones <= fs->low_zones + spare);
	spare = fs->free_zones - fs->low_zones;
	fs->threaded = true;	/* no check-point before the bound */
	while (!ret) {
		cut--;
		for (i = 0; !ret && i < files; i++)
			ret = rfs_truncate(fs, first + i, far * RFS_BLOCK_BYTES
					   + cut, false);
	}
	CHECK_EQ(ret, -ENOBUFS);
	spare -= spare > 0;	/* the log may take one */
	CHECK(fs->dirty.count >= fs->dirty_max + spare * cap / rfs_pages_of(fs, 2) ||
	      fs->dirty.count >= 4 * fs->dirty_max);
	CHECK_EQ(rfs_fsync(fs, first), 0);
	power_for = power;
	if (power < 1000)
		CHECK_EQ(rfs_checkpoint(fs, 0), -EIO);
	else
		checkpoint_as_counted(fs);
	rfs_unmount_nosync(fs);
	rfs_unmount_nosync(mount_ro(dev));
	for (i = 0; power < 1000 && i < 5; i++) {
		power_for = power;
		CHECK_EQ(rfs_mount(&ops, dev, geo, false, 0, &fs), -EIO);
	}
	fs = mount(dev);
	check_clean(fs);
	end(fs, dev);
}

TEST(dirty_bound)
{
	struct rfs_geometry many = { .zones = 128, .zone_blocks = 250,
				     .oob_bytes = 64, .append_max = 64 };
	u32 i;

	for (i = 0; i < 16; i++)
		dirty_most(&geometry, CAP, 400, i / 2, i % 2 ? ~0U : 60);
	/* more is counted on than the zones of the reserve that nobody takes */
	for (i = 4; i <= 14; i += 5)
		dirty_most(&many, 250, 1100, i, ~0U);
	many.oob_bytes = 0;
	dirty_most(&many, 250, 1100, 9, ~0U);
}

/* The same of inodes: above them there is little. */
TEST(dirty_inodes)
{
	enum { FILES = 16 * 800 };
	struct rfs_geometry geo = { .zones = 128, .zone_blocks = 250,
				    .oob_bytes = 64, .append_max = 64 };
	struct memdev *dev = new_dev(&geo);
	struct rfs_fs *fs = mount(dev);
	u32 ino, first = 0, i, spare;
	char name[16];
	int ret = 0;

	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
		first = i ? first : ino;
	}
	fill_zones(fs, 5);
	spare = (fs->free_zones - fs->low_zones - 1) * 250;
	fs->threaded = true;	/* no check-point before the bound */
	for (i = 0; !ret && i < FILES; i += 16)
		ret = rfs_truncate(fs, first + i, 1, true);
	CHECK(ret ? fs->dirty.count >= fs->dirty_max + spare / 2 : i >= FILES);
	checkpoint_as_counted(fs);
	fs->threaded = false;
	check_clean(fs);
	end(fs, dev);
}

/* Whatever became dirty, what a check-point writes is known before. */
TEST(dirty_is_counted)
{
	u64 far = (u64)RFS_FANOUT * RFS_FANOUT * RFS_FANOUT;
	struct rfs_new user = { .mode = S_IFREG | 0644, .uid = 1000 };
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino[40], gone, sub, i, round;
	char name[160];

	CHECK_EQ(rfs_create(fs, 2, "d", &dir, &sub), 0);
	for (round = 0; round < 8; round++) {
		for (i = 0; i < 40; i++) {
			/* names so long that the directory gets index nodes */
			snprintf(name, sizeof(name), "%u-%0140u", round, i);
			CHECK_EQ(rfs_create(fs, i % 2 ? sub : 2, name, &user,
					    &ino[i]), 0);
			put(fs, ino[i], i % 3 ? far * (i % 7) : i, round,
			    RFS_BLOCK_BYTES);
			if (i % 4 == 0)
				CHECK_EQ(rfs_xattr_set(fs, ino[i], "user.a",
						       "v", 1, 0, 0), 0);
		}
		checkpoint_as_counted(fs);
		for (i = 0; i < 40; i++) {
			snprintf(name, sizeof(name), "%u-%0140u", round, i);
			if (i % 5 == 0)
				CHECK_EQ(rfs_unlink(fs, i % 2 ? sub : 2, name,
						    &gone), 0);
			else if (i % 5 == 1)
				CHECK_EQ(rfs_truncate(fs, ino[i], 5, false),
					 0);
			else if (i % 5 == 2)
				put(fs, ino[i], i % 3 ? far * (i % 7) : i,
				    round + 1, RFS_BLOCK_BYTES);
		}
		if (round > 2)
			CHECK_EQ(rfs_clean(fs, RFS_CLEAN_NOW), 0);
		checkpoint_as_counted(fs);
	}
	CHECK(fs->stats.victims > 0);
	check_clean(fs);
	end(fs, dev);
}

/*
 * A full volume whose files have one block each, far behind, and all nodes above
 * it alone: overwriting one makes 6 blocks dirty, moving it 6 more. There may be
 * no room to go on, but there is for the check-point, to delete, and then for more.
 */
static void full_of_sparse(u32 oob_bytes, u64 at)
{
	enum { FILES = 420 };
	struct rfs_geometry geo = { .zones = 200, .zone_blocks = 256,
				    .oob_bytes = oob_bytes };
	struct memdev *dev = memdev_new(&geo, CAP, 3000U << 20, false);
	u32 ino[FILES], big, gone, i, j, round, deleted = 0;
	const void *data = block;
	struct rfs_fs *fs;
	char name[16];
	int ret;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, "test"), 0);
	fs = mount(dev);
	for (i = 0; i < FILES; i++) {
		for (j = 0; j < 16; j++) {	/* an inode block for each */
			snprintf(name, sizeof(name), "f%u-%u", i, j);
			CHECK_EQ(rfs_create(fs, 2, name, &file, &ino[i]), 0);
		}
		put(fs, ino[i], at, i, RFS_BLOCK_BYTES);
	}
	CHECK_EQ(rfs_create(fs, 2, "big", &file, &big), 0);
	for (i = 0; !rfs_write(fs, big, i, 1, &data, RFS_BLOCK_BYTES); i++)
		;
	for (round = 0; round < 2; round++) {
		for (i = deleted; i < FILES; i++) {
			memset(block, i + round, sizeof(block));
			ret = rfs_write(fs, ino[i], at, 1, &data,
					RFS_BLOCK_BYTES);
			if (!ret)
				continue;
			CHECK_EQ(ret, -ENOSPC);
			CHECK(!fs->read_only);
			rfs_unmount_nosync(fs);
			fs = mount(dev);
			for (j = 0; j < 20; j++, deleted++) {
				snprintf(name, sizeof(name), "f%u-15", deleted);
				CHECK_EQ(rfs_unlink(fs, 2, name, &gone), 0);
			}
			break;
		}
		checkpoint_as_counted(fs);
	}
	check_clean(fs);
	end(fs, dev);
}

TEST(full_of_sparse_files)
{
	u64 two = RFS_FANOUT * RFS_FANOUT;

	full_of_sparse(64, two);
	full_of_sparse(64, two * two);
	full_of_sparse(0, two);
}

/*
 * Files of one block until nothing more fits; then all are read, and Linux writes
 * their times. More inodes become dirty than a check-point has room for at once.
 */
TEST(times_of_a_full_volume)
{
	enum { FILES = 60000 };
	struct rfs_geometry geo = { .zones = 240, .zone_blocks = 256,
				    .oob_bytes = 64 };
	struct memdev *dev = memdev_new(&geo, CAP, 1500U << 20, false);
	u32 *ino = malloc(FILES * sizeof(*ino)), n, i, gone, round;
	struct rfs_dinode times = { .atime = cpu_to_le64(7) };
	const void *data = block;
	struct rfs_fs *fs;
	char name[16];
	u64 before;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, "test"), 0);
	fs = mount(dev);
	for (n = 0; n < FILES; n++) {
		snprintf(name, sizeof(name), "f%u", n);
		if (rfs_create(fs, 2, name, &file, &ino[n]) ||
		    rfs_write(fs, ino[n], 0, 1, &data, RFS_BLOCK_BYTES))
			break;
	}
	CHECK(n < FILES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	before = fs->stats.checkpoints;
	for (round = 0; round < 2; round++) {
		for (i = 0; i < n; i++) {
			CHECK_EQ(rfs_set_times(fs, ino[i], &times), 0);
			CHECK(fs->dirty.count <= rfs_dirty_most(fs));
			rfs_cache_trim(fs, fs->clean_max);
		}
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	}
	CHECK(fs->stats.checkpoints > before + 4);
	CHECK(!fs->read_only);
	for (i = 0; i < n; i += 10) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_unlink(fs, 2, name, &gone), 0);
		CHECK_EQ(rfs_free_orphan(fs, gone), 0);
	}
	check_clean(fs);
	free(ino);
	end(fs, dev);
}

/* Orphans of a power cut are freed after the check-point, however many there are. */
TEST(many_orphans)
{
	enum { FILES = 16 * 300 };
	struct rfs_geometry geo = { .zones = 128, .zone_blocks = 250,
				    .oob_bytes = 64 };
	struct memdev *dev = new_dev(&geo);
	struct rfs_fs *fs = mount(dev);
	u32 ino, i, gone;
	char name[16];

	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
		put(fs, ino, 100, i, RFS_BLOCK_BYTES);
	}
	fill_zones(fs, 0);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_unlink(fs, 2, name, &gone), 0);
	}
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->recovered.orphans, FILES);
	CHECK_EQ(fs->inodes, 2);
	/* the one of the mount, those that became due meanwhile, the last one */
	CHECK(fs->stats.checkpoints > 2);
	check_clean(fs);
	end(fs, dev);
}

static int appends_left;

static int append_until_full(void *dev, u32 zone, u32 blocks,
			     const void *const *data, const struct rfs_oob *oob,
			     u64 *addr)
{
	if (!appends_left)
		return -ENOMEM;
	appends_left--;
	return memdev_ops.append(dev, zone, blocks, data, oob, addr);
}

/* A check-point that cannot be made for want of memory is made another time. */
TEST(checkpoint_tried_again)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino[50], i, failed = 0, nth;
	char name[16];
	int ret = -1;

	ops.append = append_until_full;
	appends_left = 1 << 30;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	for (nth = 0; ret; nth++) {
		for (i = 0; i < 50; i++) {
			snprintf(name, sizeof(name), "%u-%u", nth, i);
			CHECK_EQ(rfs_create(fs, 2, name, &file, &ino[i]), 0);
			put(fs, ino[i], 20, nth + i, RFS_BLOCK_BYTES);
		}
		appends_left = nth;
		ret = rfs_checkpoint(fs, 0);
		failed += !!ret;
		appends_left = 1 << 30;
		CHECK(!fs->read_only);
		CHECK(!ret || ret == -ENOMEM || ret == -ENOSPC);
		if (ret)
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		check_clean(fs);
		rfs_unmount_nosync(fs);
		CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
		expect(fs, ino[49], 20, (u8)(nth + 49), RFS_BLOCK_BYTES);
		check_clean(fs);
	}
	CHECK(failed > 1);
	end(fs, dev);
}

/*
 * The lowest free number is next, whose generation differs from all before, also
 * if it is the first thing that is made in each of several mounts.
 */
TEST(numbers_anew)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, first = 0, gone, gen[20], i, j;
	char name[8];

	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
		first = i ? first : ino;
		CHECK_EQ(ino, first + i);
	}
	for (i = 30; i; i -= 10) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_unlink(fs, 2, name, &gone), 0);
		CHECK_EQ(rfs_free_orphan(fs, gone), 0);
	}
	for (i = 10; i <= 30; i += 10) {
		snprintf(name, sizeof(name), "g%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
		CHECK_EQ(ino, first + i);
	}
	CHECK_EQ(rfs_create(fs, 2, "last", &file, &ino), 0);
	CHECK_EQ(ino, first + 40);
	for (i = 0; i < 20; i++) {
		CHECK_EQ(rfs_unmount(fs), 0);
		fs = mount(dev);
		CHECK_EQ(rfs_create(fs, 2, "x", &file, &ino), 0);
		CHECK_EQ(ino, first + 41);
		gen[i] = generation_of(fs, ino);
		for (j = 0; j < i; j++)
			CHECK(gen[j] != gen[i]);
		CHECK_EQ(rfs_unlink(fs, 2, "x", &gone), 0);
		CHECK_EQ(rfs_free_orphan(fs, gone), 0);
	}
	check_clean(fs);
	end(fs, dev);
}

/* A page need not wait until it is durable that another file had its number. */
TEST(number_without_past)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, gone, before;

	CHECK_EQ(rfs_create(fs, 2, "old", &file, &ino), 0);
	put(fs, ino, 0, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	CHECK_EQ(rfs_unlink(fs, 2, "old", &gone), 0);
	CHECK_EQ(rfs_free_orphan(fs, gone), 0);
	CHECK(rfs_log_pending(fs, gone, true));
	CHECK_EQ(rfs_create(fs, 2, "new", &file, &ino), 0);
	CHECK_EQ(ino, gone);
	before = dev->ops;
	put(fs, ino, 0, 2, RFS_BLOCK_BYTES);
	CHECK_EQ(appended(dev, before), 1);
	/* but until it is that it was cut itself */
	CHECK_EQ(rfs_truncate(fs, ino, 100, false), 0);
	before = dev->ops;
	put(fs, ino, 0, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(appended(dev, before), 2);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(rfs_dir_find(fs, 2, "old", 3, &gone), -ENOENT);
	expect(fs, ino, 0, 3, RFS_BLOCK_BYTES);
	end(fs, dev);
}

/* In the pointer and the page, through overwrites, copies and recovery */
TEST(write_counts)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_ptr before, after;
	u64 sum = 0;
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 5; i++)
		put(fs, ino, 7, i, RFS_BLOCK_BYTES);
	for (i = 0; i < 300; i++)
		put(fs, ino, 8 + i, i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_map_get(fs, ino, 7, &before), 0);
	CHECK_EQ(le16_to_cpu(before.wcount), 5);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(rfs_map_get(fs, ino, 7, &after), 0);
	CHECK(!memcmp(&before, &after, sizeof(before)));
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	CHECK_EQ(rfs_map_get(fs, ino, 7, &after), 0);
	CHECK(before.addr != after.addr);
	CHECK(before.time == after.time && before.wcount == after.wcount);
	check_clean(fs);
	for (i = 0; i < fs->geo.zones; i++)
		sum += fs->zone[i].sum_wcount;
	CHECK_EQ(sum, 5 + 300);
	end(fs, dev);
}

/* Where the clock was set back, what is written is younger than what was. */
TEST(clock_goes_back)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u64 start = dev->time, before;
	struct rfs_ptr ptr;
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	dev->time += 3600000000000ULL;
	put(fs, ino, 0, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_unmount(fs), 0);
	for (i = 1; i < 4; i++) {
		dev->time = start;
		fs = mount(dev);
		CHECK_EQ(rfs_map_get(fs, ino, i - 1, &ptr), 0);
		before = rfs_ptr_ticks(&ptr);
		CHECK(before >= 3600 << 8);
		dev->time += 1000000000;
		put(fs, ino, i, 1, RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_map_get(fs, ino, i, &ptr), 0);
		CHECK(rfs_ptr_ticks(&ptr) >= before + 256);
		CHECK(rfs_now(fs) >= rfs_ptr_ticks(&ptr));
		CHECK_EQ(rfs_unmount(fs), 0);
	}
	fs = mount(dev);
	check_clean(fs);
	end(fs, dev);
}

/* What the module's thread does, here after each write */
static void clean_early(struct rfs_fs *fs, u32 *seen)
{
	int ret = -ENOENT;

	if (rfs_clean_due(fs, seen)) {
		ret = rfs_clean_some(fs, RFS_CLEAN_EARLY);
		*seen = fs->free_zones;
	} else if (rfs_checkpoint_due(fs)) {
		ret = 0;
	}
	if (!ret)
		ret = rfs_checkpoint(fs, 0);
	CHECK(!ret || ret == -ENOENT);
}

/*
 * Cleaning before anybody waits goes on until its check-point is worth it: the
 * index of all that is written at random is in each.
 */
TEST(early_cleaning_pays)
{
	struct rfs_geometry geo = {
		.zones = 256, .zone_blocks = 128, .oob_bytes = 64,
	};
	struct memdev *dev = memdev_new(&geo, 128, 512 << 20, false);
	u64 checkpoints, index;
	u32 ino, i, blocks, at = 1, seen = ~0U;
	struct rfs_fs *fs;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, "test"), 0);
	fs = mount(dev);
	fs->threaded = true;
	/* with nothing to be gained no check-point pays */
	CHECK_EQ(fs->dirty.count, 0);
	CHECK_EQ(rfs_clean_some(fs, RFS_CLEAN_EARLY), -ENOENT);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	blocks = fs->user_blocks / 10 * 7;
	for (i = 0; i < blocks; i++) {
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
		clean_early(fs, &seen);
	}
	checkpoints = fs->stats.checkpoints;
	index = fs->stats.written[RFS_INDEX];
	/* none of them waits for room: put() would fail */
	for (i = 0; i < 40000; i++) {
		at = at * 1664525 + 1013904223;
		put(fs, ino, (at >> 8) % blocks, i, RFS_BLOCK_BYTES);
		clean_early(fs, &seen);
	}
	CHECK(fs->stats.checkpoints - checkpoints <= 70);
	CHECK(fs->stats.written[RFS_INDEX] - index <= 6000);
	fs->threaded = false;
	check_clean(fs);
	end(fs, dev);
}

/* Zones of which a quarter is in use at most, until half of all are free */
TEST(idle_cleaning)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, gone, i, nr, calls = 0;
	u64 appends;
	char name[8];

	CHECK(!rfs_idle_due(fs));
	rfs_policy_set(fs, &one_group);
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino), 0);
		put(fs, ino, 0, i, RFS_BLOCK_BYTES);
		for (nr = 1; nr < 20; nr++)
			put(fs, ino, nr, i, RFS_BLOCK_BYTES);
	}
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(2 * fs->free_zones < geometry.zones);
	CHECK(!rfs_idle_due(fs));	/* all are full */
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		if (i % 6 == 0 || i >= 200)
			continue;
		CHECK_EQ(rfs_unlink(fs, 2, name, &gone), 0);
		CHECK_EQ(rfs_free_orphan(fs, gone), 0);
	}
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	appends = dev->ops;
	while (rfs_idle_due(fs)) {
		CHECK_EQ(rfs_clean_some(fs, RFS_CLEAN_IDLE), 0);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		calls++;
	}
	CHECK(calls);
	CHECK(2 * fs->free_zones >= geometry.zones);
	/* those that are full are as they were */
	CHECK(fs->stats.copied && fs->stats.copied <= 34 * 20);
	CHECK(appended(dev, appends) < 34 * 20 + 100);
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		if (i % 6 && i < 200)
			continue;
		CHECK_EQ(rfs_dir_find(fs, 2, name, strlen(name), &ino), 0);
		expect(fs, ino, 7, i, RFS_BLOCK_BYTES);
	}
	check_clean(fs);
	end(fs, dev);
}

/* Blocks that are written over and over are apart from those that are not. */
TEST(groups_apart)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, i, mixed = 0, used[48] = { 0 };
	u64 hot[RFS_GROUPS_MAX];

	CHECK_EQ(fs->policy.groups, 4);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 1500; i++)
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
	/* 20 blocks each tenth time, the others now and then */
	for (i = 0; i < 6000; i++)
		put(fs, ino, i % 2 ? i / 2 % 20 : 20 + i * 7919 % 1480, i,
		    RFS_BLOCK_BYTES);
	for (i = 0; i < 20; i++)
		used[zone_of(fs, ino, i)] |= 1;
	for (i = 20; i < 1500; i++)
		used[zone_of(fs, ino, i)] |= 2;
	for (i = 0; i < 48; i++)
		mixed += used[i] == 3;
	CHECK(mixed <= 1);
	/* the blocks of the file alone are in the zones of data */
	for (i = RFS_CP_ZONES; i < fs->geo.zones; i++)
		CHECK(!fs->zone[i].sum_wcount ||
		      fs->zone[i].stream >= RFS_S_DATA);
	memcpy(hot, fs->group_hot, sizeof(hot));
	CHECK(hot[0] && hot[0] < hot[3]);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK(!memcmp(hot, fs->group_hot, sizeof(hot)));
	check_clean(fs);
	end(fs, dev);
}

static const struct rfs_geometry many_zones = {
	.zones = 60, .zone_blocks = 256, .oob_bytes = 64,
};
static const struct rfs_id striped_id = { "0123456789abcde", "a key for hashes",
					  "a key to be safe", .ways = 4 };

/* Zones that a stream is writing, each of which must be on a way of its own */
static u32 zones_of_stream(const struct rfs_fs *fs, u32 stream)
{
	u32 way, zone, n = 0;

	for (way = 0; way < fs->ways; way++) {
		zone = fs->active[stream][way].zone;
		n += zone > 0;
		CHECK(!zone || zone % fs->ways == way);
	}
	return n;
}

/* Room for n blocks of the first group, of which nothing is known yet */
static struct rfs_place flying(struct rfs_fs *fs, u32 n)
{
	struct rfs_place place;

	CHECK_EQ(rfs_place(fs, RFS_S_DATA, n, true, &place), 0);
	return place;
}

/* Appends go to each way in turn, or to the one that has least in flight. */
TEST(stripes)
{
	struct memdev *dev = new_dev_with(&many_zones, &striped_id);
	struct rfs_fs *fs = mount(dev);
	u32 ino, i, zone, before = 0;
	struct rfs_place place[7];

	rfs_policy_set(fs, &one_group);
	CHECK_EQ(fs->ways, 4);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 40; i++) {
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
		zone = zone_of(fs, ino, i);
		CHECK(!i || zone % 4 == (before + 1) % 4);
		before = zone;
	}
	CHECK_EQ(zones_of_stream(fs, RFS_S_DATA), 4);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	/* one way has 20 blocks in flight: the others get three times 7, then twice */
	place[0] = flying(fs, 20);
	for (i = 1; i < 7; i++) {
		place[i] = flying(fs, 7);
		CHECK(place[i].zone % 4 != place[0].zone % 4);
	}
	for (i = 4; i < 7; i++)
		CHECK_EQ(place[i].zone, place[i - 3].zone);
	CHECK_EQ(fs->way_inflight[place[0].zone % 4], 20);
	CHECK_EQ(fs->way_inflight[place[6].zone % 4], 14);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < 40; i++)
		expect(fs, ino, i, i, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

/*
 * With few free zones a group opens no zone while it has room in another one, until
 * ENOSPC, and after it, when cleaning keeps few free.
 */
TEST(stripes_narrow)
{
	struct memdev *dev = new_dev_with(&many_zones, &striped_id);
	struct rfs_fs *fs = mount(dev);
	u32 ino, i, zones, blocks = 0, wide = 0, narrow = 0;
	const void *data = block;
	bool room, few;
	u64 cleaned;
	int ret;

	rfs_policy_set(fs, &one_group);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 20000; i++) {
		few = fs->free_zones <= rfs_zones_narrow(fs);
		zones = fs->free_zones + fs->meta_zones;
		cleaned = fs->stats.copied + fs->stats.checkpoints;
		room = rfs_has_room(fs, RFS_S_DATA);
		ret = rfs_write(fs, ino, blocks ? i * 7919 % blocks : i, 1,
				&data, RFS_BLOCK_BYTES);
		if (ret) {	/* from now on it is seven eighths full */
			CHECK(ret == -ENOSPC && !blocks);
			blocks = i - i / 8;
			CHECK_EQ(rfs_truncate(fs, ino, (u64)blocks *
					      RFS_BLOCK_BYTES, false), 0);
			continue;
		}
		if (!room || cleaned != fs->stats.copied +
					fs->stats.checkpoints)
			continue;
		if (few)
			CHECK(fs->free_zones + fs->meta_zones == zones);
		narrow += few;
		wide += fs->free_zones + fs->meta_zones < zones;
	}
	CHECK(blocks && wide > 20 && narrow > 2000);
	check_clean(fs);
	end(fs, dev);
}

/*
 * After a power cut groups and metadata go on with a zone on each way; a drive may
 * allow fewer.
 */
TEST(striped_zones_are_resumed)
{
	struct memdev *dev = new_dev_with(&many_zones, &striped_id);
	struct rfs_geometry geo = many_zones;
	struct rfs_fs *fs = mount(dev);
	u32 ino, i, zone[4];

	rfs_policy_set(fs, &one_group);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 10; i++)
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
	for (i = 0; i < 300; i++)	/* a leaf for each: five appends */
		put(fs, ino, 1000 + (u64)i * RFS_FANOUT, i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(zones_of_stream(fs, RFS_S_META), 4);
	for (i = 10; i < 20; i++)
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	for (i = 0; i < 4; i++)
		zone[i] = fs->active[RFS_S_DATA][i].zone;
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	rfs_policy_set(fs, &one_group);
	CHECK_EQ(fs->recovered.pages_applied, 10);
	CHECK_EQ(zones_of_stream(fs, RFS_S_DATA), 4);
	CHECK_EQ(zones_of_stream(fs, RFS_S_META), 4);
	for (i = 0; i < 4; i++)
		CHECK_EQ(fs->active[RFS_S_DATA][i].zone, zone[i]);
	for (i = 0; i < 20; i++)
		expect(fs, ino, i, i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_unmount(fs), 0);
	geo.max_active = 64;
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), 0);
	CHECK_EQ(fs->ways, 3);
	CHECK(!fs->active_few);
	check_clean(fs);
	CHECK_EQ(rfs_unmount(fs), 0);
	geo.max_active = 8;
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &geo, false, 0, &fs), 0);
	CHECK_EQ(fs->ways, 1);
	CHECK(fs->active_few);
	check_clean(fs);
	end(fs, dev);
}

/* So many zones may be open that there are two for data. */
TEST(groups_shrink)
{
	struct rfs_policy policy = rfs_policy_default;
	struct rfs_geometry geo = geometry;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 ino, i;

	geo.max_open = 6;
	dev = memdev_new(&geo, CAP, 64 << 20, true);
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	fs = mount(dev);
	CHECK_EQ(fs->policy.groups, 2);
	policy.groups = 6;
	rfs_policy_set(fs, &policy);
	CHECK_EQ(fs->policy.groups, 2);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 4000; i++)
		put(fs, ino, i % 3 ? i % 10 : i % 1000, i, RFS_BLOCK_BYTES);
	check_clean(fs);
	CHECK_EQ(dev->refused, 0);
	policy.groups = 1;
	rfs_policy_set(fs, &policy);
	CHECK_EQ(fs->active[fs->active_of[RFS_S_DATA + 1]][0].zone, 0);
	end(fs, dev);
}

static u32 first_victim;

static void note_first_victim(void *dev, u32 nr, u32 live, u32 cap)
{
	(void)dev;
	(void)live;
	(void)cap;
	first_victim = first_victim ? first_victim : nr;
}

/*
 * Which zone is the first victim; `old` is one that cost-benefit prefers, and `emptier` has
 * fewer blocks in use. short: a zone lacks for what is copied
 */
static u32 victim_of_two(bool short_of_zones, u32 *old, u32 *emptier)
{
	struct rfs_policy policy = { .groups = 1, .gc = RFS_GC_COST_BENEFIT };
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino, i;

	ops.victim = note_first_victim;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	rfs_policy_set(fs, &policy);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 3 * CAP; i++) {
		/* the first zone is older than the second by a quarter of an hour */
		if (i == CAP)
			dev->time += 900000000000ULL;
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
	}
	*old = zone_of(fs, ino, CAP / 2);
	*emptier = zone_of(fs, ino, CAP * 3 / 2);
	CHECK(*old != *emptier);
	for (i = 0; i < CAP * 3 / 10; i++)
		put(fs, ino, i, 1, RFS_BLOCK_BYTES);
	for (i = CAP; i < CAP * 17 / 10; i++)
		put(fs, ino, i, 1, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(fs->zone[*old].live > fs->zone[*emptier].live + CAP / 4);
	if (short_of_zones) {
		/* as if the reserve were so large */
		fs->low_now += fs->free_zones + 2 - fs->low_zones;
		fs->low_next += fs->free_zones + 2 - fs->low_zones;
		fs->low_zones = fs->free_zones + 2;
	}
	first_victim = 0;
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_NOW), 0);
	rfs_unmount_nosync(fs);
	end(NULL, dev);
	return first_victim;
}

/*
 * Where the zone that data is copied to lacks as well, a victim was left half copied: the
 * one with the fewest blocks in use is next, whatever the policy says, so that there are
 * not two of them.
 */
TEST(emptiest_victim_when_zones_lack)
{
	u32 old, emptier;

	CHECK_EQ(victim_of_two(false, &old, &emptier), old);
	CHECK_EQ(victim_of_two(true, &old, &emptier), emptier);
}

/* Full to the last block: each policy finds room to overwrite, for ever. */
TEST(policies_of_a_full_volume)
{
	struct memdev *dev = memdev_new(&geometry, CAP, 1U << 30, false);
	struct rfs_policy policy;
	struct rfs_fs *fs;
	u32 ino, n = 0, i, round = 0;
	const void *data = block;
	int ret;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geometry, &id, "test"), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	while (!(ret = rfs_write(fs, ino, n, 1, &data, RFS_BLOCK_BYTES)))
		n++;
	CHECK_EQ(ret, -ENOSPC);
	for (policy.gc = 0; policy.gc < RFS_GCS; policy.gc++) {
		for (policy.quantize = 0; policy.quantize < RFS_QUANTIZES;
		     policy.quantize++) {
			policy.groups = round++ % 2 ? 6 : 4;
			rfs_policy_set(fs, &policy);
			for (i = 0; i < 2500; i++)
				put(fs, ino, i % 4 ? i % 200 : i * 7919 % n, i,
				    RFS_BLOCK_BYTES);
		}
	}
	CHECK(fs->stats.copied > 0);
	check_clean(fs);
	end(fs, dev);
}

static u32 copies_left;		/* appends of them, then as many zones fail as are tried */
static u32 copies_fail;

static int append_copies(void *arg, u32 zone, u32 blocks,
			 const void *const *data, const struct rfs_oob *oob,
			 u64 *addr)
{
	struct memdev *dev = arg;

	if (oob->flags & RFS_OOB_COPY && copies_left) {
		copies_left--;
	} else if (oob->flags & RFS_OOB_COPY && copies_fail) {
		copies_fail--;
		dev->cond[zone] = RFS_DEV_READ_ONLY;
	}
	return memdev_ops.append(dev, zone, blocks, data, oob, addr);
}

/* Four zones, of which each has an eighth in use; no more than so many appends of copies */
static struct rfs_fs *mount_to_clean(struct memdev *dev,
				     const struct rfs_dev_ops *ops, u32 appends,
				     u32 *ino)
{
	struct rfs_fs *fs;
	u32 i;

	copies_left = ~0U;
	CHECK_EQ(rfs_mount(ops, dev, &geometry, false, 0, &fs), 0);
	rfs_policy_set(fs, &one_group);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, ino), 0);
	for (i = 0; i < 4 * CAP; i++)
		put(fs, *ino, i, i, RFS_BLOCK_BYTES);
	for (i = 0; i < 4 * CAP; i++)
		if (i % 8)
			put(fs, *ino, i, i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	copies_left = appends;
	copies_fail = RFS_TRIES;
	return fs;
}

/* Zones fail until a copy is given up: the check-point gives back the others. */
TEST(cleaning_keeps_what_it_emptied)
{
	struct rfs_dev_ops ops = memdev_ops;
	u32 ino, zones, i;
	struct memdev *dev;
	struct rfs_fs *fs;

	ops.append = append_copies;
	dev = new_dev(&geometry);
	fs = mount_to_clean(dev, &ops, 2, &ino);
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	zones = fs->free_zones;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(fs->free_zones > zones);
	put(fs, ino, 0, 7, RFS_BLOCK_BYTES);
	expect(fs, ino, 0, 7, RFS_BLOCK_BYTES);
	for (i = 1; i < 4 * CAP; i++)
		expect(fs, ino, i, i, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);

	/* nothing was emptied: whoever needs room has an error */
	dev = new_dev(&geometry);
	fs = mount_to_clean(dev, &ops, 0, &ino);
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), -EIO);
	for (i = 0; i < 4 * CAP; i++)
		expect(fs, ino, i, i, RFS_BLOCK_BYTES);
	end(fs, dev);
}

/* Nobody waits for it: where zones fail, the victims stay, and that is no error. */
TEST(cleaning_ahead_leaves_what_has_no_zone)
{
	static const enum rfs_clean ahead[] = { RFS_CLEAN_IDLE, RFS_CLEAN_EARLY };
	struct rfs_dev_ops ops = memdev_ops;
	u32 ino, other_ino, i, how;
	struct memdev *dev;
	struct rfs_fs *fs;

	ops.append = append_copies;
	for (how = 0; how < 2; how++) {
		dev = new_dev(&geometry);
		fs = mount_to_clean(dev, &ops, 0, &ino);
		CHECK_EQ(rfs_create(fs, 2, "full", &file, &other_ino), 0);
		for (i = 0; 2 * fs->free_zones >= geometry.zones; i++)
			put(fs, other_ino, i, i, RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		fs->ahead = geometry.zones;	/* so that zones are wanted */
		CHECK_EQ(rfs_clean_some(fs, ahead[how]), -ENOENT);
		CHECK_EQ(copies_fail, 0);
		CHECK(!fs->read_only);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		for (i = 0; i < 4 * CAP; i++)
			expect(fs, ino, i, i, RFS_BLOCK_BYTES);
		/* they are victims the next time */
		CHECK_EQ(rfs_clean_some(fs, ahead[how]), 0);
		CHECK(fs->stats.copied);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		for (i = 0; i < 4 * CAP; i++)
			expect(fs, ino, i, i, RFS_BLOCK_BYTES);
		check_clean(fs);
		end(fs, dev);
	}
}

static bool cache_lies;

/* As if all that was written were in the page cache */
static bool cache(void *arg, u32 ino, u64 at, void *data)
{
	(void)arg;
	(void)ino;
	if (at % 2)
		return false;
	memset(data, cache_lies ? 99 : (int)at, RFS_BLOCK_BYTES);
	return true;
}

/*
 * What was found last is found again at once, but not what is gone, and once it is clean it
 * is the last to go.
 */
TEST(found_last)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_buf_new(fs, RFS_INODES, 0, 0, 1000, &buf), 0);
	CHECK(rfs_buf_find(fs, RFS_INODES, 1000) == buf);
	CHECK(!rfs_buf_find(fs, RFS_INODES, 1001));
	CHECK(rfs_buf_find(fs, RFS_INODES, 1000) == buf);
	rfs_buf_drop(fs, buf);
	CHECK(!rfs_buf_find(fs, RFS_INODES, 1000));
	CHECK_EQ(rfs_iget(fs, RFS_ROOT_INO, &di, &buf), 0);
	rfs_buf_dirty(fs, buf);
	CHECK(rfs_buf_find(fs, RFS_INODES, 0) == buf);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(fs->clean.count > 1);
	CHECK(rfs_buf_find(fs, RFS_INODES, 0) == buf);
	rfs_cache_trim(fs, 1);
	CHECK(rfs_buf_find(fs, RFS_INODES, 0) == buf);
	end(fs, dev);
}

TEST(cached_blocks_are_not_read)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino, i;

	ops.cached = cache;
	for (cache_lies = false;; cache_lies = true) {
		CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
		if (!cache_lies) {
			CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
			for (i = 0; i < 200; i++)
				put(fs, ino, i, i, RFS_BLOCK_BYTES);
		}
		rfs_unmount(fs);
		CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
		/* what is open is not cleaned; block 0 was new, so is apart */
		fs->zone[zone_of(fs, ino, 1)].state = RFS_Z_USED;
		for (i = RFS_S_DATA; i < RFS_STREAMS; i++)
			fs->active[i][0].zone = 0;
		fs->zone[zone_of(fs, ino, 1)].window = false;
		rfs_all_zones_changed(fs);
		CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
		CHECK_EQ(fs->stats.clean_cached, cache_lies ? 0 : 99);
		check_clean(fs);
		for (i = 0; i < 200; i++)
			expect(fs, ino, i, i, RFS_BLOCK_BYTES);
		rfs_unmount_nosync(fs);
		if (cache_lies)
			break;
	}
	end(NULL, dev);
}

static bool half_is_dirty(void *dev, u32 ino, u64 at)
{
	(void)dev;
	(void)ino;
	return at % 2;
}

/*
 * Blocks that are about to be written are not copied by who cleans early; who cleans
 * because somebody waits copies them. A zone that still has some is a victim again.
 */
TEST(dirty_blocks_are_left)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino, i, nr, turn;

	ops.write_dirty = half_is_dirty;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 150; i++)
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	nr = zone_of(fs, ino, 1);
	fs->zone[nr].state = RFS_Z_USED;
	for (i = RFS_S_DATA; i < RFS_STREAMS; i++)
		fs->active[i][0].zone = 0;
	rfs_all_zones_changed(fs);
	/* what is written in the second turn comes before the check-point */
	for (turn = 0; turn < 3; turn++) {
		fs->stats.clean_left = 0;
		CHECK_EQ(rfs_clean(fs, turn == 2 ? RFS_CLEAN_NOW : RFS_CLEAN_EARLY), 0);
		CHECK_EQ(fs->stats.clean_left, turn == 2 ? 0 : 75);
		for (i = 1; turn == 1 && i < 50; i += 2)
			put(fs, ino, i, i, RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK_EQ(fs->zone[nr].cond, RFS_DEV_OK);
		CHECK_EQ(fs->zone[nr].live, turn == 0 ? 75 : turn == 1 ? 50 : 0);
		check_clean(fs);
	}
	CHECK_EQ(fs->zone[nr].state, RFS_Z_FREE);
	for (i = 0; i < 150; i++)
		expect(fs, ino, i, i, RFS_BLOCK_BYTES);
	rfs_unmount_nosync(fs);
	end(NULL, dev);
}

static struct rfs_fs *pausing;
static u32 pauses;		/* until the one where it happens */

static void checkpoint_in_pause(void *dev)
{
	struct rfs_fs *fs = pausing;

	(void)dev;
	if (!fs || --pauses)
		return;
	pausing = NULL;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
}

static void delete_in_pause(void *dev)
{
	struct rfs_fs *fs = pausing;
	u32 ino;

	(void)dev;
	pausing = NULL;
	if (!fs)
		return;
	CHECK_EQ(rfs_unlink(fs, 2, "f", &ino), 0);
	CHECK_EQ(rfs_free_orphan(fs, ino), 0);
}

/* Zones with hot and cold blocks in each, none of them open; 4 groups */
static struct rfs_fs *ready_to_clean(struct memdev *dev,
				     const struct rfs_dev_ops *ops, u32 *ino)
{
	struct rfs_policy policy = rfs_policy_default;
	struct rfs_fs *fs;
	u32 i;

	CHECK_EQ(rfs_mount(ops, dev, &geometry, false, 0, &fs), 0);
	policy.groups = 1;
	rfs_policy_set(fs, &policy);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, ino), 0);
	for (i = 0; i < 1500; i++)
		put(fs, *ino, i, i, RFS_BLOCK_BYTES);
	for (i = 0; i < 3000; i++)
		put(fs, *ino, i % 2 ? i / 2 % 20 : 20 + i * 7919 % 1480, i,
		    RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	for (i = RFS_S_DATA; i < RFS_STREAMS; i++) {
		u32 *zone = &fs->active[fs->active_of[i]][0].zone;

		if (*zone)
			fs->zone[*zone].state = RFS_Z_USED;
		*zone = 0;
	}
	rfs_all_zones_changed(fs);
	rfs_policy_set(fs, &rfs_policy_default);
	for (i = 0; i < 4; i++)
		fs->group_hot[i] = 1 + i * (1ULL << 40);
	return fs;
}

static u32 cleaned_ino;

/*
 * Cleaning, in each of whose pauses something happens once; then the power is
 * cut. write: before that, may be NULL; verify: after it.
 */
static void cut_amid_cleaning(void (*in_pause)(void *dev),
			      void (*write)(struct rfs_fs *fs),
			      void (*verify)(struct rfs_fs *fs))
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 at;

	ops.yield = in_pause;
	for (at = 1;; at++) {
		dev = new_dev(&geometry);
		fs = ready_to_clean(dev, &ops, &cleaned_ino);
		pausing = fs;
		pauses = at;
		CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
		if (pausing)
			break;	/* there are no more */
		if (write)
			write(fs);
		CHECK_EQ(rfs_fsync(fs, cleaned_ino), 0);
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		verify(fs);
		check_clean(fs);
		end(fs, dev);
	}
	CHECK(at > 3);
	pausing = NULL;
	end(fs, dev);
}

static void write_hot(struct rfs_fs *fs)
{
	u32 i;

	/* to where the copies of hot blocks went */
	for (i = 0; i < 20; i++)
		put(fs, cleaned_ino, i, 9000 + i, RFS_BLOCK_BYTES);
}

static void expect_hot(struct rfs_fs *fs)
{
	u32 i;

	for (i = 0; i < 20; i++)
		expect(fs, cleaned_ino, i, 9000 + i, RFS_BLOCK_BYTES);
}

/*
 * Copies that wait while a check-point is written are newer than it: a zone
 * that begins with them is in its window.
 */
TEST(checkpoint_amid_cleaning)
{
	cut_amid_cleaning(checkpoint_in_pause, write_hot, expect_hot);
}

/* A copy is not shorter than its block while nothing durable says why. */
TEST(truncated_before_cleaning)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_fs *fs;
	u32 ino;

	fs = ready_to_clean(dev, &memdev_ops, &ino);
	put(fs, ino, 1000, 7, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	put(fs, ino, 1000, 8, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_truncate(fs, ino, 1000 * RFS_BLOCK_BYTES + 9, false), 0);
	fs->active[fs->active_of[RFS_S_DATA]][0].zone = 0;
	fs->zone[zone_of(fs, ino, 1000)].state = RFS_Z_USED;
	rfs_all_zones_changed(fs);
	while (!rfs_clean(fs, RFS_CLEAN_HARD))
		;
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	if (le64_to_cpu(di->size) > 1000 * RFS_BLOCK_BYTES + 9)
		expect(fs, ino, 1000, 8, RFS_BLOCK_BYTES);
	else
		expect(fs, ino, 1000, 8, 9);
	check_clean(fs);
	end(fs, dev);
}

/* What is deleted while it waits to be copied is no error of cleaning. */
TEST(deleted_amid_cleaning)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino;

	ops.yield = delete_in_pause;
	fs = ready_to_clean(dev, &ops, &ino);
	pausing = fs;
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	CHECK(!pausing);
	check_clean(fs);
	end(fs, dev);
}

static void change_in_pause(void *dev)
{
	struct rfs_fs *fs = pausing;
	u32 i;

	(void)dev;
	if (!fs || --pauses)
		return;
	pausing = NULL;
	for (i = 0; i < 1500; i += 7)
		put(fs, cleaned_ino, i, 70 + i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_punch(fs, cleaned_ino, 1000, 1100, false), 0);
	CHECK_EQ(rfs_truncate(fs, cleaned_ino, 1400 * RFS_BLOCK_BYTES + 9,
			      false), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
}

static void expect_changed(struct rfs_fs *fs)
{
	u32 i;

	for (i = 0; i < 1400; i += 7)
		if (i < 1000 || i >= 1100)
			expect(fs, cleaned_ino, i, 70 + i, RFS_BLOCK_BYTES);
	for (i = 1000; i < 1100; i++)
		expect(fs, cleaned_ino, i, 0, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_read(fs, cleaned_ino, 1400, block), 0);
	for (i = 9; i < RFS_BLOCK_BYTES; i++)
		CHECK_EQ(block[i], 0);
	expect(fs, cleaned_ino, 1401, 0, RFS_BLOCK_BYTES);
}

/*
 * What waits to be copied is overwritten, punched out, cut, and a check-point is
 * written: a copy would look newer than that.
 */
TEST(changed_amid_cleaning)
{
	cut_amid_cleaning(change_in_pause, NULL, expect_changed);
}

/*
 * The check-point that the log waits for is durable. Before who waited goes on, another
 * one has what others have changed by then.
 */
static void change_when_durable(void *dev)
{
	struct rfs_fs *fs = pausing;
	u32 i;

	(void)dev;
	pausing = NULL;
	fs->commit = RFS_COMMIT_NONE;
	for (i = 0; i < 1300; i++)
		put(fs, cleaned_ino, i, 70 + i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_punch(fs, cleaned_ino, 1300, 1400, false), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
}

/*
 * A copy waits for the record of a truncate, and that for a check-point. What is changed
 * meanwhile is not copied: another check-point has what it is now.
 */
TEST(changed_before_copies_have_stamps)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 i;

	ops.durable = change_when_durable;
	fs = ready_to_clean(dev, &ops, &cleaned_ino);
	CHECK_EQ(rfs_truncate(fs, cleaned_ino, 1400 * RFS_BLOCK_BYTES + 9,
			      false), 0);
	fs->commit = RFS_COMMIT_GOES_ON;
	pausing = fs;
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	CHECK(!pausing);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < 1300; i++)
		expect(fs, cleaned_ino, i, 70 + i, RFS_BLOCK_BYTES);
	for (; i < 1400; i++)
		expect(fs, cleaned_ino, i, 0, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

static u32 read_together[2];	/* times, most blocks */

static int count_copy_read(void *dev, struct rfs_copy *copy)
{
	u32 i, n = 0;

	for (i = 0; i < copy->n; i++) {
		if (copy->there[i])
			continue;
		copy->there[i] = !memdev_ops.read(dev, copy->from[i],
						  copy->block[i], NULL);
		n++;
	}
	read_together[0]++;
	read_together[1] = max(read_together[1], n);
	return 0;
}

/* A zone of this mount: all its summaries at once. Of another: one by one. */
TEST(summaries_are_read_together)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	u32 ino, nr, sums, reads;
	struct rfs_fs *fs;

	ops.copy_read = count_copy_read;
	fs = ready_to_clean(dev, &ops, &ino);
	for (nr = RFS_CP_ZONES, sums = 0; nr < geometry.zones; nr++)
		sums = max(sums, fs->zone[nr].sums_known);
	CHECK(sums >= 3);
	memset(read_together, 0, sizeof(read_together));
	reads = dev->reads;
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	CHECK(read_together[1] >= min(sums, 8U));
	/* what no summary lists is little */
	CHECK(dev->reads - reads <= fs->stats.copied + RFS_VICTIMS * (sums + 2));
	check_clean(fs);
	CHECK_EQ(rfs_unmount(fs), 0);
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	for (nr = RFS_CP_ZONES; nr < geometry.zones; nr++)
		CHECK_EQ(fs->zone[nr].sums_known, 0);
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	check_clean(fs);
	end(fs, dev);
}

static bool being_read;		/* every zone */
static u32 rests;

static int reset_unless_read(void *dev, u32 zone)
{
	return being_read ? -EBUSY : memdev_ops.reset(dev, zone);
}

static void end_reads(void *dev)
{
	(void)dev;
	rests++;
	being_read = false;
}

/* Cleaning waits where a host's write would be told to. */
TEST(busy_amid_cleaning)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino, nr;

	ops.yield = end_reads;
	ops.reset = reset_unless_read;
	fs = ready_to_clean(dev, &ops, &ino);
	for (nr = RFS_CP_ZONES; nr < geometry.zones; nr++)
		if (fs->zone[nr].state == RFS_Z_FREE)
			fs->zone[nr].wp = 1;	/* to be reset first */
	rfs_all_zones_changed(fs);
	being_read = true;
	rests = 0;
	CHECK_EQ(rfs_clean(fs, RFS_CLEAN_HARD), 0);
	CHECK(rests && !being_read);
	check_clean(fs);
	for (nr = 0; nr < geometry.zones; nr++)
		CHECK_EQ(fs->zone[nr].cond, RFS_DEV_OK);
	end(fs, dev);
}

/* A check-point that needs a zone waits until one is not read any more. */
TEST(checkpoint_waits_for_reads)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino, i;
	int ret = 0;

	ops.delay = end_reads;
	ops.reset = reset_unless_read;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	being_read = true;
	rests = 0;
	for (i = 0; !ret && !rests && i < 30000; i++) {
		const void *data = block;

		ret = rfs_write(fs, ino, i % 500, 1, &data, 4096);
	}
	CHECK(ret == -EBUSY || rests);
	for (i = 0; i < RFS_S_DATA; i++) {
		u32 *zone = &fs->active[fs->active_of[i]][0].zone;

		if (*zone)
			fs->zone[*zone].state = RFS_Z_USED;
		*zone = 0;
	}
	rfs_all_zones_changed(fs);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(rests && !fs->read_only);
	check_clean(fs);
	put(fs, ino, 3, 1, 4096);
	end(fs, dev);
}

static int append_error;	/* of the next append but so many */
static u32 append_later;

static int append_or_not(void *dev, u32 zone, u32 blocks,
			 const void *const *data, const struct rfs_oob *oob,
			 u64 *addr)
{
	int ret = append_later ? 0 : append_error;

	append_later -= !!append_later;
	if (ret) {
		append_error = 0;
		return ret;
	}
	return memdev_ops.append(dev, zone, blocks, data, oob, addr);
}

static const int moment[] = { -ENOMEM, -EAGAIN, -EBUSY, -ETOOMANYREFS,
			      -EOVERFLOW, -EINTR };
#define MOMENTS	(sizeof(moment) / sizeof(moment[0]))

static void moments_with(u32 oob_bytes)
{
	struct rfs_geometry geo = geometry;
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 ino, i, nr, zone, nth;

	geo.oob_bytes = oob_bytes;
	dev = new_dev(&geo);
	ops.append = append_or_not;
	CHECK_EQ(rfs_mount(&ops, dev, &geo, false, 0, &fs), 0);
	rfs_policy_set(fs, &one_group);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 1, 4096);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	zone = zone_of(fs, ino, 0);
	for (i = 0; i < MOMENTS; i++) {
		append_error = moment[i];
		put(fs, ino, i, 1, 4096);
		CHECK_EQ(append_error, 0);
		CHECK_EQ(zone_of(fs, ino, i), zone);
		/* metadata, then the check-point's own zones */
		for (nth = 0; nth < 8; nth++) {
			put(fs, ino, i, 1, 4096);
			append_error = moment[i];
			append_later = nth;
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
			append_error = 0;
		}
		append_later = 0;
	}
	for (nr = 0; nr < geo.zones; nr++)
		CHECK_EQ(fs->zone[nr].cond, RFS_DEV_OK);
	/* this one is of the zone */
	append_error = -EIO;
	put(fs, ino, 9, 1, 4096);
	CHECK(zone_of(fs, ino, 9) != zone);
	CHECK_EQ(fs->zone[zone].cond, RFS_DEV_READ_ONLY);
	check_clean(fs);
	end(fs, dev);
}

/* Appends under way: now, at most; the one that is to fail */
static u32 together, most_together, fail_in;
static struct rfs_append_req *begun[RFS_IO_REQS];

static void append_submit(void *dev, struct rfs_append_req *req)
{
	(void)dev;
	CHECK(req->nr < RFS_IO_REQS && !begun[req->nr]);
	begun[req->nr] = req;
	together++;
	most_together = max(most_together, together);
}

/* Those that were begun last are written first; one of them fails. */
static void append_wait(void *dev, struct rfs_append_req *req)
{
	u32 i;

	for (i = RFS_IO_REQS; i-- > 0;) {
		struct rfs_append_req *s = begun[i];

		begun[i] = NULL;
		if (s && fail_in && !--fail_in)
			s->error = append_error;
		else if (s)
			s->error = memdev_ops.append(dev, s->zone, s->n, s->data,
						     s->oob, &s->addr);
	}
	CHECK(!begun[req->nr]);
	together--;
}

/*
 * Full blocks of the log are in flight while records go on into others. If they
 * cannot be written there they are written elsewhere, before those that come after.
 */
TEST(log_in_flight)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 n, fails;

	ops.append_submit = append_submit;
	ops.append_wait = append_wait;
	for (fails = 0; fails < 3; fails++) {
		dev = new_dev(&geometry);
		CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
		append_error = fails == 2 ? -ENOMEM : -EIO;
		fail_in = !!fails;
		n = 42 * (fs->log_most + 1);	/* 96 bytes each */
		create_many(fs, 0, n);
		CHECK_EQ(together, 1);
		CHECK(!rfs_log_empty(fs) && fs->log_full < fs->log_most);
		/* the next are full, too, and wait for the first */
		create_many(fs, n, 2 * n);
		CHECK(together && fs->log_full < fs->log_most);
		CHECK(log_blocks(fs) >= fs->log_most);
		CHECK_EQ(rfs_log_sync(fs), 0);
		CHECK_EQ(together, 0);
		CHECK(log_blocks(fs) >= 2 * fs->log_most);
		create_many(fs, 2 * n, 3 * n);
		CHECK(together);
		rfs_unmount_nosync(fs);
		CHECK_EQ(together, 0);

		fs = mount(dev);
		CHECK_EQ(fs->recovered.log_gap, 0);
		CHECK(created(fs) >= 2 * n);
		check_clean(fs);
		/* a check-point has what is in flight, and waits for it */
		rfs_unmount_nosync(fs);
		CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
		create_many(fs, 3 * n, 4 * n);
		CHECK(together);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK_EQ(together, 0);
		CHECK(rfs_log_empty(fs));
		check_clean(fs);
		end(fs, dev);
	}
}

/* A check-point's blocks are in flight together, and each is where it says. */
TEST(metadata_in_flight)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	u32 ino, i, nth, failed = 0, nr;
	struct rfs_fs *fs;

	ops.append_submit = append_submit;
	ops.append_wait = append_wait;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	fs->dirty_max = 1000;
	most_together = 0;
	for (nth = 1; nth <= 5; nth++) {
		append_error = nth % 4 ? -EBUSY : -EIO;
		for (i = 0; i < 400; i++)	/* as many index nodes */
			put(fs, ino, i * RFS_FANOUT, nth + i, RFS_BLOCK_BYTES);
		fail_in = nth;
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK_EQ(fail_in, 0);
	}
	append_error = 0;
	CHECK_EQ(most_together, RFS_IO_DEPTH);
	for (nr = 0; nr < geometry.zones; nr++)
		failed += fs->zone[nr].cond == RFS_DEV_READ_ONLY;
	CHECK_EQ(failed, 1);	/* but not for errors of the moment */
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < 400; i++)
		expect(fs, ino, i * RFS_FANOUT, 5 + i, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

/* Types of blocks that were sent before anything was waited for */
static u32 sent_types;
static bool waited;

static void land_in_order(void *dev, struct rfs_append_req *req)
{
	u32 i;

	for (i = 0; !waited && i < req->n; i++)
		sent_types |= 1u << ((const struct rfs_head *)req->data[i])->type;
	req->error = memdev_ops.append(dev, req->zone, req->n, req->data,
				       req->oob, &req->addr);
}

static void note_wait(void *dev, struct rfs_append_req *req)
{
	(void)dev;
	(void)req;
	waited = true;
}

/* What leads to a block does not wait for it: there is one round, and the end. */
TEST(checkpoint_in_one_round)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u64 tables;
	u32 ino, i;

	ops.append_submit = land_in_order;
	ops.append_wait = note_wait;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 100; i++) {
		put(fs, ino, i * RFS_FANOUT, i, RFS_BLOCK_BYTES);
		tables = fs->stats.written[RFS_TIMB];
		sent_types = 0;
		waited = false;
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK_EQ(sent_types & (1u << RFS_INODES | 1u << RFS_IMAP |
				       1u << RFS_TIMB | 1u << RFS_ZTAB),
			 1u << RFS_INODES | 1u << RFS_IMAP | 1u << RFS_TIMB |
			 1u << RFS_ZTAB);
		/* nothing had to be written twice, summaries among it or not */
		CHECK_EQ(fs->stats.written[RFS_TIMB], tables + 1);
	}
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < 100; i++)
		expect(fs, ino, i * RFS_FANOUT, i, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

static void begin_at_once(void *dev, struct rfs_append_req *req)
{
	req->error = memdev_ops.append(dev, req->zone, req->n, req->data,
				       req->oob, &req->addr);
}

static u32 cps_sent, cps_together;	/* appends of check-points, and in flight together */

static void send_noting_cps(void *dev, struct rfs_append_req *req)
{
	cps_sent += ((const struct rfs_head *)req->data[0])->type == RFS_CP;
	cps_together = max(cps_together, cps_sent);
	begin_at_once(dev, req);
}

static void wait_noting_cps(void *dev, struct rfs_append_req *req)
{
	(void)dev;
	cps_sent -= ((const struct rfs_head *)req->data[0])->type == RFS_CP;
}

/* One of several blocks goes to both mirrors at the same time, in one append each. */
TEST(long_checkpoint_in_one_round)
{
	const struct rfs_geometry many = { .zones = 56000, .zone_blocks = 256,
					   .oob_bytes = 64 };
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&many);
	struct rfs_fs *fs;
	u32 ino, at, i;

	ops.append_submit = send_noting_cps;
	ops.append_wait = wait_noting_cps;
	CHECK_EQ(rfs_mount(&ops, dev, &many, false, 0, &fs), 0);
	CHECK_EQ(fs->listed.count, 2);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	cps_together = 0;
	for (i = 0; i < 10; i++) {
		at = fs->zone[fs->cp_mirror[0]].wp;
		put(fs, ino, i, i, RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK_EQ(fs->zone[fs->cp_mirror[0]].wp, at + 2);
		CHECK_EQ(fs->zone[fs->cp_mirror[1]].wp, at + 2);
	}
	CHECK_EQ(cps_together, 2);
	/* of a drive that takes less at a time, one after the other */
	fs->geo.append_max = 1;
	cps_together = 0;
	put(fs, ino, i, i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(cps_together, 0);
	fs->geo.append_max = 0;
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	for (i = 0; i < 11; i++)
		expect(fs, ino, i, i, RFS_BLOCK_BYTES);
	check_clean(fs);
	end(fs, dev);
}

static void (*amid)(void);	/* what others do, once */

static void others_meanwhile(void *dev, struct rfs_append_req *req)
{
	void (*act)(void) = amid;

	(void)dev;
	if (!act || !req->early)
		return;
	amid = NULL;
	act();
}

static struct rfs_fs *shared;
static u32 kept_ino, gone_ino;

static void change_and_drop(void)
{
	u32 i, ino;

	for (i = 0; i < 300; i += 3)
		put(shared, kept_ino, i * RFS_FANOUT, 7 + i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_unlink(shared, 2, "gone", &ino), 0);
	CHECK_EQ(rfs_free_orphan(shared, ino), 0);
	CHECK_EQ(rfs_create(shared, 2, "new", &file, &ino), 0);
	for (i = 0; i < 50; i++)	/* with numbers that were those of others */
		put(shared, ino, i * RFS_FANOUT, 9 + i, RFS_BLOCK_BYTES);
}

/*
 * What is dirty is written before a check-point while others change it, drop it, and
 * use its numbers anew; the check-point has little left to write.
 */
TEST(written_early)
{
	struct rfs_geometry geo = { .zones = 40, .zone_blocks = 512,
				    .oob_bytes = 64 };
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geo);
	u64 before;
	u32 i;

	ops.append_submit = begin_at_once;
	ops.append_wait = others_meanwhile;
	CHECK_EQ(rfs_mount(&ops, dev, &geo, false, 0, &shared), 0);
	CHECK_EQ(rfs_create(shared, 2, "kept", &file, &kept_ino), 0);
	CHECK_EQ(rfs_create(shared, 2, "gone", &file, &gone_ino), 0);
	shared->dirty_max = 800;
	for (i = 0; i < 300; i++) {
		put(shared, kept_ino, i * RFS_FANOUT, i, RFS_BLOCK_BYTES);
		if (i < 60)
			put(shared, gone_ino, i * RFS_FANOUT, i, RFS_BLOCK_BYTES);
	}
	amid = change_and_drop;
	rfs_write_early(shared);
	CHECK(!amid);
	CHECK(shared->early_blocks > 200);
	CHECK(shared->dirty.count > 100);
	CHECK(shared->dirty.count < 200);
	before = shared->stats.written[RFS_INDEX];
	CHECK_EQ(rfs_checkpoint(shared, 0), 0);
	CHECK(shared->stats.written[RFS_INDEX] - before < 200);
	CHECK_EQ(shared->early_blocks, 0);
	rfs_unmount_nosync(shared);
	shared = mount(dev);
	for (i = 0; i < 300; i++)
		expect(shared, kept_ino, i * RFS_FANOUT, i % 3 ? i : 7 + i,
		       RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_unlink(shared, 2, "gone", &i), -ENOENT);
	check_clean(shared);
	end(shared, dev);
}

static struct memdev *cut_dev;

/* A check-point has all that it says, and is not written: the power may be cut now. */
static void act_in_next_epoch(void *dev)
{
	u32 ino;

	put(shared, kept_ino, 1, 11, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_fsync(shared, kept_ino), 0);
	CHECK_EQ(rfs_create(shared, 2, "new", &file, &ino), 0);
	CHECK_EQ(rfs_fsync(shared, ino), -EAGAIN);
	/* its record is of the epoch before */
	CHECK_EQ(rfs_fsync(shared, gone_ino), -EAGAIN);
	memdev_copy(cut_dev, dev);
}

static struct memdev *begin_epochs(struct rfs_geometry *geo,
				   struct rfs_dev_ops *ops,
				   void (*frozen)(void *dev))
{
	struct memdev *dev;
	u32 i;

	*geo = (struct rfs_geometry){ .zones = 40, .zone_blocks = 512,
				      .oob_bytes = 64 };
	*ops = memdev_ops;
	dev = new_dev(geo);
	cut_dev = memdev_new(geo, CAP, 16 << 20, false);
	ops->append_submit = begin_at_once;
	ops->append_wait = others_meanwhile;
	ops->frozen = frozen;
	CHECK_EQ(rfs_mount(ops, dev, geo, false, 0, &shared), 0);
	CHECK_EQ(rfs_create(shared, 2, "kept", &file, &kept_ino), 0);
	for (i = 0; i < 3; i++)
		put(shared, kept_ino, i, 1 + i, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_checkpoint(shared, 0), 0);
	CHECK_EQ(rfs_create(shared, 2, "gone", &file, &gone_ino), 0);
	put(shared, kept_ino, 0, 5, RFS_BLOCK_BYTES);
	return dev;
}

/* As it was when the power was cut */
static void expect_before(void)
{
	struct rfs_fs *fs = mount(cut_dev);
	u32 ino;

	expect(fs, kept_ino, 0, 5, RFS_BLOCK_BYTES);
	expect(fs, kept_ino, 1, 11, RFS_BLOCK_BYTES);
	expect(fs, kept_ino, 2, 3, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_dir_find(fs, 2, "gone", 4, &ino), -ENOENT);
	CHECK_EQ(rfs_dir_find(fs, 2, "new", 3, &ino), -ENOENT);
	check_clean(fs);
	end(fs, cut_dev);
}

/*
 * While a check-point is made durable others go on: pages are durable at once, and
 * records when the check-point is.
 */
TEST(next_epoch)
{
	struct rfs_geometry geo;
	struct rfs_dev_ops ops;
	struct memdev *dev = begin_epochs(&geo, &ops, act_in_next_epoch);
	u32 ino;

	CHECK_EQ(rfs_checkpoint_early(shared), 0);
	CHECK_EQ(shared->commit, RFS_COMMIT_NONE);
	CHECK(!rfs_log_pending(shared, gone_ino, false));
	CHECK_EQ(rfs_dir_find(shared, 2, "new", 3, &ino), 0);
	CHECK(rfs_log_pending(shared, ino, false));
	CHECK_EQ(rfs_fsync(shared, ino), 0);
	expect_before();
	rfs_unmount_nosync(shared);
	shared = mount(dev);
	expect(shared, kept_ino, 0, 5, RFS_BLOCK_BYTES);
	expect(shared, kept_ino, 1, 11, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_dir_find(shared, 2, "gone", 4, &ino), 0);
	CHECK_EQ(rfs_dir_find(shared, 2, "new", 3, &ino), 0);
	check_clean(shared);
	end(shared, dev);
}

static void fail_in_next_epoch(void *opaque)
{
	struct memdev *dev = opaque;
	u32 zone;

	act_in_next_epoch(dev);
	for (zone = 0; zone < RFS_CP_ZONES; zone++)
		dev->cond[zone] = RFS_DEV_READ_ONLY;
}

/* It cannot be made durable: nor is what records say that go on from it. */
TEST(next_epoch_of_none)
{
	struct rfs_geometry geo;
	struct rfs_dev_ops ops;
	struct memdev *dev = begin_epochs(&geo, &ops, fail_in_next_epoch);

	CHECK_EQ(rfs_checkpoint_early(shared), -EIO);
	CHECK(shared->read_only);
	CHECK_EQ(rfs_fsync(shared, gone_ino), -EIO);
	CHECK_EQ(rfs_log_sync(shared), -EIO);
	expect_before();
	end(shared, dev);
}

static u32 cps_refused, flushes_refused;	/* that are still to be */

static bool is_cp(const void *data)
{
	return ((const struct rfs_head *)data)->type == RFS_CP;
}

/* The first mirror takes a check-point, the other one does not. */
static void send_to_one_mirror(void *dev, struct rfs_append_req *req)
{
	if (cps_refused && is_cp(req->data[0]) &&
	    req->zone != shared->cp_mirror[0])
		req->error = -ENOMEM;
	else
		begin_at_once(dev, req);
}

static int append_but_cps(void *dev, u32 zone, u32 blocks,
			  const void *const *data, const struct rfs_oob *oob,
			  u64 *addr)
{
	if (cps_refused && is_cp(data[0])) {
		cps_refused--;
		return -ENOMEM;
	}
	return memdev_ops.append(dev, zone, blocks, data, oob, addr);
}

/*
 * A mirror has the check-point, and then memory lacks: what is written next goes on from
 * it, since recovery begins there. Others wait for it or not.
 */
TEST(checkpoint_in_one_mirror)
{
	struct rfs_geometry geo;
	struct rfs_dev_ops ops;
	struct memdev *dev;
	u32 ino, tight;

	for (tight = 0; tight < 2; tight++) {
		dev = begin_epochs(&geo, &ops, act_in_next_epoch);
		ops.append_submit = send_to_one_mirror;
		ops.append = append_but_cps;
		cps_refused = 5;
		if (tight)
			shared->early_blocks = 1 << 20;
		CHECK_EQ(rfs_checkpoint_early(shared), 0);
		CHECK_EQ(cps_refused, 0);
		CHECK_EQ(rfs_dir_find(shared, 2, "new", 3, &ino),
			 tight ? -ENOENT : 0);
		CHECK_EQ(rfs_create(shared, 2, "promised", &file, &ino), 0);
		CHECK_EQ(rfs_fsync(shared, ino), 0);
		rfs_unmount_nosync(shared);
		shared = mount(dev);
		CHECK_EQ(rfs_dir_find(shared, 2, "promised", 8, &ino), 0);
		expect(shared, kept_ino, 0, 5, RFS_BLOCK_BYTES);
		check_clean(shared);
		memdev_free(cut_dev);
		end(shared, dev);
	}
}

static int flush_or_not(void *dev)
{
	if (flushes_refused) {
		flushes_refused--;
		return -EAGAIN;
	}
	return memdev_ops.flush(dev);
}

static void refuse_flushes(void *dev)
{
	act_in_next_epoch(dev);
	flushes_refused = 3;
}

/* That a flush is refused for the moment is no end of a volume. */
TEST(flushes_of_the_moment)
{
	struct rfs_geometry geo;
	struct rfs_dev_ops ops;
	struct memdev *dev = begin_epochs(&geo, &ops, refuse_flushes);
	u32 ino, i;

	shared->geo.volatile_cache = true;
	ops.flush = flush_or_not;
	ops.flush_early = flush_or_not;
	CHECK_EQ(rfs_checkpoint_early(shared), 0);
	CHECK_EQ(flushes_refused, 0);
	CHECK_EQ(rfs_dir_find(shared, 2, "new", 3, &ino), 0);
	CHECK_EQ(rfs_fsync(shared, ino), 0);
	/* before others go on from it, it may be that there is none */
	for (i = 1; i < 4; i++) {
		put(shared, kept_ino, 2, 20 + i, RFS_BLOCK_BYTES);
		flushes_refused = i;
		while (rfs_checkpoint(shared, 0))
			CHECK(!shared->read_only);
	}
	memdev_free(cut_dev);
	rfs_unmount_nosync(shared);
	shared = mount(dev);
	expect(shared, kept_ino, 2, 23, RFS_BLOCK_BYTES);
	CHECK_EQ(rfs_dir_find(shared, 2, "new", 3, &ino), 0);
	check_clean(shared);
	end(shared, dev);
}

/* An fsync waits for the log: how often others may act then, and what they do */
static u32 lets, others_create = 100;

static bool lets_change_now(void *dev)
{
	(void)dev;
	if (!lets)
		return false;
	lets--;
	return true;
}

static struct memdev *begin_sync(struct rfs_dev_ops *ops)
{
	static const struct rfs_geometry geo = { .zones = 40, .zone_blocks = 512,
						 .oob_bytes = 64 };
	struct memdev *dev = new_dev(&geo);

	*ops = memdev_ops;
	ops->append_submit = begin_at_once;
	ops->append_wait = others_meanwhile;
	ops->lets_change = lets_change_now;
	ops->flush_early = memdev_ops.flush;
	CHECK_EQ(rfs_mount(ops, dev, &geo, false, 0, &shared), 0);
	CHECK_EQ(rfs_create(shared, 2, "kept", &file, &kept_ino), 0);
	CHECK_EQ(rfs_checkpoint(shared, 0), 0);
	CHECK_EQ(rfs_create(shared, 2, "mine", &file, &kept_ino), 0);
	lets = 1;
	return dev;
}

/* The log's block is on the medium, or cannot be: others go on all the same. */
static void change_amid_sync(void)
{
	CHECK(shared->syncing);
	CHECK(rfs_log_pending(shared, kept_ino, false));
	create_many(shared, 0, others_create);
	CHECK_EQ(rfs_create(shared, 2, "theirs", &file, &gone_ino), 0);
	/* they would wait for the log themselves */
	CHECK_EQ(rfs_fsync(shared, gone_ino), -EAGAIN);
	CHECK_EQ(rfs_log_sync_beside(shared), -EAGAIN);
	put(shared, gone_ino, 0, 3, RFS_BLOCK_BYTES);
}

static void expect_after_a_cut(struct memdev *dev, bool theirs)
{
	struct rfs_fs *fs;
	u32 ino;

	memdev_copy(cut_dev, dev);
	fs = mount(cut_dev);
	CHECK_EQ(rfs_dir_find(fs, 2, "mine", 4, &ino), 0);
	CHECK_EQ(rfs_dir_find(fs, 2, "theirs", 6, &ino), theirs ? 0 : -ENOENT);
	CHECK_EQ(fs->recovered.log_gap, 0);
	check_clean(fs);
	rfs_unmount_nosync(fs);
}

/* Who waits for the log has what it had then; what others have changed since is pending. */
TEST(sync_beside_others)
{
	struct rfs_dev_ops ops;
	struct memdev *dev = begin_sync(&ops);

	cut_dev = memdev_new(&dev->geo, CAP, 16 << 20, false);
	amid = change_amid_sync;
	CHECK_EQ(rfs_log_sync_beside(shared), 0);
	CHECK(!amid && !shared->syncing && !lets);
	CHECK(!rfs_log_pending(shared, kept_ino, false));
	CHECK(rfs_log_pending(shared, gone_ino, false));
	CHECK(shared->unsettled > others_create);
	expect_after_a_cut(dev, false);
	lets = 1;
	CHECK_EQ(rfs_log_sync_beside(shared), 0);
	CHECK_EQ(shared->unsettled, 0);
	CHECK(rfs_log_empty(shared));
	expect_after_a_cut(dev, true);
	memdev_free(cut_dev);
	end(shared, dev);
}

static u32 log_appends_refused;

static void refuse_log(void *opaque, struct rfs_append_req *req)
{
	if (req->oob[0].type == RFS_LOG && log_appends_refused) {
		log_appends_refused--;
		req->error = -EAGAIN;
		return;
	}
	begin_at_once(opaque, req);
}

static int refuse_log_or_append(void *opaque, u32 zone, u32 n,
				const void *const *data,
				const struct rfs_oob *oob, u64 *addr)
{
	if (oob[0].type == RFS_LOG && log_appends_refused) {
		log_appends_refused--;
		return -EAGAIN;
	}
	return memdev_ops.append(opaque, zone, n, data, oob, addr);
}

/*
 * The drive refuses the log's block: it is sent again. If it refuses that, too, who waits
 * is told, and all that was pending is so still, with what others have added.
 */
TEST(sync_beside_others_fails)
{
	struct rfs_dev_ops ops;
	struct memdev *dev;
	u32 refused;
	int ret;

	for (refused = 1; refused < 9; refused += 7) {
		dev = begin_sync(&ops);
		cut_dev = memdev_new(&dev->geo, CAP, 16 << 20, false);
		ops.append_submit = refuse_log;
		ops.append = refuse_log_or_append;
		log_appends_refused = refused;
		/* a table of twice the size of what others fill */
		create_many(shared, 1000, 1250);
		amid = change_amid_sync;
		ret = rfs_log_sync_beside(shared);
		CHECK(refused == 1 ? !ret : ret);
		CHECK(!shared->syncing && !shared->read_only);
		CHECK_EQ(rfs_log_pending(shared, kept_ino, false), refused > 1);
		CHECK(rfs_log_pending(shared, gone_ino, false));
		CHECK(shared->unsettled > others_create + (refused > 1 ? 250 : 0));
		log_appends_refused = 0;
		/* it has the records of both */
		lets = 1;
		CHECK_EQ(rfs_log_sync_beside(shared), 0);
		CHECK_EQ(shared->unsettled, 0);
		expect_after_a_cut(dev, true);
		memdev_free(cut_dev);
		end(shared, dev);
	}
}

/* A flush fails, and the drive may have lost the log's block: it is written again. */
TEST(sync_beside_others_is_not_flushed)
{
	struct rfs_dev_ops ops;
	struct memdev *dev = begin_sync(&ops);
	u64 blocks;

	shared->geo.volatile_cache = true;
	ops.flush = flush_or_not;
	ops.flush_early = flush_or_not;
	flushes_refused = 1;
	blocks = log_blocks(shared);
	CHECK_EQ(rfs_log_sync_beside(shared), -EAGAIN);
	CHECK(rfs_log_pending(shared, kept_ino, false));
	CHECK_EQ(log_blocks(shared), blocks + 1);
	CHECK_EQ(rfs_log_sync(shared), 0);
	CHECK_EQ(log_blocks(shared), blocks + 2);
	CHECK_EQ(shared->unsettled, 0);
	end(shared, dev);
}

/*
 * The log's last block, which has room, is on the medium when another one fails
 * for good: it takes nothing more, or the medium would hold two that differ.
 */
TEST(log_block_is_not_added_to)
{
	struct rfs_geometry geo = { .zones = 1200, .zone_blocks = 16,
				    .oob_bytes = 64 };
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = memdev_new(&geo, 16, 96 << 20, true);
	const struct rfs_zone_info *z;
	struct rfs_fs *fs;
	u64 written;
	u32 n = 0, nr;

	ops.append_submit = append_submit;
	ops.append_wait = append_wait;
	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geo, &id, ""), 0);
	CHECK_EQ(rfs_mount(&ops, dev, &geo, false, 0, &fs), 0);
	do {
		create_many(fs, n, n + 1);
		n++;
		CHECK_EQ(rfs_log_sync(fs), 0);
		z = &fs->zone[fs->active[RFS_S_LOG][0].zone];
	} while (z->cap - z->wp != 4);
	/* what is left of this zone, and all of the next one */
	while (fs->log_full < 3 + 15 - 1 || !fs->log_used) {
		create_many(fs, n, n + 1);
		n++;
	}
	CHECK(fs->log_full < fs->log_most);
	/* before the zone where they are sent again: recovery sees it first */
	for (nr = RFS_CP_ZONES; fs->zone[nr].state != RFS_Z_FREE; nr++)
		;
	hide_free(fs, RFS_Z_FREE, RFS_Z_USED);
	fs->zone[nr].state = RFS_Z_FREE;
	rfs_zone_changed(fs, nr);
	fail_in = 1;
	append_error = -EIO;
	written = log_blocks(fs);
	CHECK_EQ(rfs_log_sync(fs), -ENOSPC);
	append_error = 0;
	CHECK_EQ(z->cond, RFS_DEV_READ_ONLY);
	CHECK_EQ(log_blocks(fs) - written, 15);
	hide_free(fs, RFS_Z_USED, RFS_Z_FREE);
	create_many(fs, n, n + 5);
	CHECK_EQ(rfs_log_sync(fs), 0);
	rfs_unmount_nosync(fs);

	fs = mount(dev);
	CHECK_EQ(fs->recovered.log_gap, 0);
	CHECK_EQ(created(fs), n + 5);
	check_clean(fs);
	end(fs, dev);
}

/* 63 pages as the module writes them; the last of them may fail. */
static void complete_append(struct rfs_fs *fs, struct memdev *dev, u32 ino,
			    u64 at, int error)
{
	const void *data[RFS_SUM_ENTRIES];
	struct rfs_oob oob[RFS_SUM_ENTRIES];
	u64 addr[RFS_SUM_ENTRIES];
	struct rfs_place place;
	struct rfs_txn txn;
	u32 i, j, n, stream;
	bool hole;

	for (i = 0; i < RFS_SUM_ENTRIES; i++) {
		CHECK_EQ(rfs_reserve(fs, ino, at + i, &hole), 0);
		data[i] = block;
	}
	CHECK_EQ(rfs_txn_begin(fs, ino, at, i, RFS_BLOCK_BYTES, 1, &txn), 0);
	for (i = 0; i < RFS_SUM_ENTRIES; i += place.n) {
		int ret = error;

		n = RFS_SUM_ENTRIES - i;
		CHECK_EQ(rfs_txn_fill(fs, &txn, i, &n, oob, &stream), 0);
		CHECK_EQ(rfs_place(fs, stream, n, false, &place), 0);
		for (j = 0; j < place.n; j++)
			rfs_oob_seal(&oob[j], block);
		if (!error || i + place.n < RFS_SUM_ENTRIES)
			ret = memdev_ops.append(dev, place.zone, place.n, data,
						oob, addr);
		rfs_placed(fs, &place, oob, addr[0], ret);
		for (j = 1; j < place.n; j++)
			addr[j] = addr[0] + j;
		if (!ret)
			CHECK_EQ(rfs_txn_done(fs, oob, place.n, addr), 0);
	}
	rfs_unreserve(fs, ino, RFS_SUM_ENTRIES, RFS_SUM_ENTRIES);
}

/*
 * More summaries are due than a check-point has sent when it takes the zone
 * table, and one is of a zone that fails: it is not written, nor expected.
 */
TEST(summary_of_a_failed_zone)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino, i;

	ops.append_submit = append_submit;
	ops.append_wait = append_wait;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	fs->threaded = true;
	rfs_policy_set(fs, &one_group);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 48; i++)
		complete_append(fs, dev, ino, i * RFS_SUM_ENTRIES, i == 47 ?
				-EIO : 0);
	CHECK(!list_empty(&fs->sums) && fs->sums.next->next != &fs->sums);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	check_clean(fs);
	end(fs, dev);
}

/* Too many open zones, no memory: that says nothing of a zone. */
TEST(errors_of_the_moment)
{
	moments_with(64);
	moments_with(0);
}

static int manage_error;	/* of resets and finishes, so many of them */
static u32 manage_fails;

static int manage_or_not(struct memdev *dev, u32 zone,
			 int (*how)(void *dev, u32 zone))
{
	if (!manage_fails)
		return how(dev, zone);
	manage_fails--;
	return manage_error;
}

static int reset_or_not(void *dev, u32 zone)
{
	return manage_or_not(dev, zone, memdev_ops.reset);
}

static int finish_or_not(void *dev, u32 zone)
{
	return manage_or_not(dev, zone, memdev_ops.finish);
}

static void all_zones_good(const struct rfs_fs *fs, u64 user_blocks)
{
	u32 nr;

	for (nr = 0; nr < fs->geo.zones; nr++)
		CHECK_EQ(fs->zone[nr].cond, RFS_DEV_OK);
	CHECK_EQ(fs->user_blocks, user_blocks);
	CHECK(!fs->read_only);
}

/* A zone that cannot be reset now is free as before, and another one is taken. */
TEST(resets_of_the_moment)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u32 ino, i, k, nr, dirty;
	u64 user_blocks;

	ops.reset = reset_or_not;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	rfs_policy_set(fs, &one_group);
	user_blocks = fs->user_blocks;
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (k = 0; k < MOMENTS; k++) {
		manage_error = moment[k];
		manage_fails = 3;
		for (i = 0; i < 6 * CAP; i++)
			put(fs, ino, i % 8, i + 1, RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK_EQ(manage_fails, 0);
		all_zones_good(fs, user_blocks);
		/* and where they are to be written */
		for (nr = RFS_CP_ZONES, dirty = 0; nr < geometry.zones; nr++)
			dirty += fs->zone[nr].state == RFS_Z_FREE &&
				 fs->zone[nr].wp;
		CHECK(dirty);
		fs->zone_cursor = 0;
		manage_fails = 2;
		for (i = 0; i < 8 * CAP && manage_fails; i++)
			put(fs, ino, i % 8, i + 1, RFS_BLOCK_BYTES);
		CHECK_EQ(manage_fails, 0);
		all_zones_good(fs, user_blocks);
		for (i = 0; i < 6 * CAP; i++)
			put(fs, ino, i % 8, i + 1, RFS_BLOCK_BYTES);
	}
	/* where all of them need it, that is want of memory */
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	put(fs, ino, 0, 1, RFS_BLOCK_BYTES);
	for (nr = RFS_CP_ZONES; nr < geometry.zones; nr++)
		if (fs->zone[nr].state == RFS_Z_FREE)
			fs->zone[nr].wp = 1;
	rfs_all_zones_changed(fs);
	for (i = 0; i < RFS_S_DATA; i++) {
		nr = fs->active[i][0].zone;
		if (nr)
			fs->zone[nr].state = RFS_Z_USED;
		fs->active[i][0].zone = 0;
	}
	rfs_all_zones_changed(fs);
	manage_fails = ~0U;
	manage_error = -EAGAIN;
	CHECK_EQ(rfs_checkpoint(fs, 0), -ENOMEM);
	all_zones_good(fs, user_blocks);
	manage_fails = 0;
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	check_clean(fs);
	end(fs, dev);
}

/* Those that are reset meanwhile are, from the next check-point on. */
TEST(resets_meanwhile_of_the_moment)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs;
	u64 user_blocks;
	u32 ino, i, nr;

	ops.reset_begin = begin_reset;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
	user_blocks = fs->user_blocks;
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	fs->threaded = true;
	for (i = 0; i < 4 * CAP; i++)
		put(fs, ino, i % 8, i + 1, RFS_BLOCK_BYTES);
	for (i = 0; i < MOMENTS; i++) {
		put(fs, ino, 0, i + 1, RFS_BLOCK_BYTES);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		nr = to_reset;
		CHECK(nr);
		to_reset = 0;
		rfs_reset_done(fs, nr, moment[i]);
		CHECK_EQ(fs->zone[nr].state, RFS_Z_FREE);
		CHECK(!rfs_reset_next(fs));
		all_zones_good(fs, user_blocks);
	}
	fs->threaded = false;
	check_clean(fs);
	end(fs, dev);
}

/* A zone that cannot be finished now is active until it is. */
TEST(finishes_of_the_moment)
{
	struct rfs_geometry geo = geometry;
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 ino, i, k, nr;
	u64 user_blocks;

	geo.max_active = 8;
	dev = new_dev(&geo);
	ops.finish = finish_or_not;
	CHECK_EQ(rfs_mount(&ops, dev, &geo, false, 0, &fs), 0);
	user_blocks = fs->user_blocks;
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (k = 0; k < MOMENTS; k++) {
		for (i = 0; i < 8; i++)
			put(fs, ino, i, i + 1, RFS_BLOCK_BYTES);
		nr = zone_of(fs, ino, 7);
		rfs_close_groups(fs);
		rfs_policy_set(fs, &one_group);
		fs->active[RFS_S_DATA][0].zone = 0;
		fs->zone[nr].state = RFS_Z_USED;
		rfs_zone_changed(fs, nr);
		rfs_sums_write(fs);
		manage_error = moment[k];
		manage_fails = 3;
		rfs_finish_zones(fs);
		CHECK_EQ(manage_fails, 0);
		CHECK(fs->zone[nr].wp < CAP);
		all_zones_good(fs, user_blocks);
		manage_fails = 2;	/* the third works */
		rfs_finish_zones(fs);
		CHECK_EQ(fs->zone[nr].wp, CAP);
		all_zones_good(fs, user_blocks);
	}
	check_clean(fs);
	end(fs, dev);
}

static int length(struct rfs_fs *fs, u32 ino, const char *name)
{
	return rfs_xattr_get(fs, ino, name, NULL, 0);
}

/* An inode's attributes are one block: what fits is kept, more is refused. */
TEST(xattrs)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	const struct rfs_xattr *x;
	u32 ino, at = 0, before, n = 0;
	char name[16];

	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	memset(block, 'v', sizeof(block));
	CHECK_EQ(length(fs, ino, "user.a"), -ENODATA);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", NULL, 0, 0, 0), -ENODATA);
	/* header 4, name 6 */
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", block, 4032 - 10 + 1, 0, 0),
		 -ENOSPC);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", block, 4032 - 10, 0, 0), 0);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.b", block, 1, 0, 0), -ENOSPC);
	CHECK_EQ(length(fs, ino, "user.a"), 4022);
	CHECK_EQ(rfs_xattr_get(fs, ino, "user.a", other, 4021), -ERANGE);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", "x", 1, RFS_XATTR_CREATE, 0),
		 -EEXIST);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", "x", 1, RFS_XATTR_REPLACE,
			       0), 0);
	for (; n < 100; n++) {
		sprintf(name, "user.%u", n);
		CHECK_EQ(rfs_xattr_set(fs, ino, name, name, strlen(name), 0,
				       0), 0);
	}
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.50", NULL, 0, 0, 0), 0);
	check_clean(fs);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	for (n = 0; !rfs_xattr_next(fs, ino, &at, &x) && x; n++)
		;
	CHECK_EQ(n, 100);
	CHECK_EQ(length(fs, ino, "user.50"), -ENODATA);
	CHECK_EQ(rfs_xattr_get(fs, ino, "user.77", other, 100), 7);
	CHECK(!memcmp(other, "user.77", 7));
	/* without any, and without the inode, the block is free again */
	CHECK_EQ(rfs_create(fs, 2, "g", &file, &ino), 0);
	check_clean(fs);
	before = fs->live;
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", block, 100, 0, 0), 0);
	check_clean(fs);
	CHECK_EQ(fs->live, before + 1);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", NULL, 0, 0, 0), 0);
	check_clean(fs);
	CHECK_EQ(fs->live, before);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", block, 100, 0, 0), 0);
	check_clean(fs);
	CHECK_EQ(rfs_unlink(fs, 2, "g", &ino), 0);
	CHECK_EQ(rfs_free_orphan(fs, ino), 0);
	check_clean(fs);
	CHECK_EQ(fs->live, before);
	end(fs, dev);
}

/* Cleaning moves a block of attributes. */
TEST(xattrs_cleaned)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 ino, zone, i;
	u64 addr, now;
	bool used;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", "value", 5, 0, 0), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(rfs_node_where(fs, le32_to_cpu(di->xattr), &addr, &used), 0);
	zone = addr / geometry.zone_blocks;
	/* other metadata fills its zone */
	for (i = 0; fs->zone[zone].state != RFS_Z_USED; i++) {
		CHECK_EQ(rfs_xattr_set(fs, 2, "user.i", &i, sizeof(i), 0, 0), 0);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	}
	for (i = 0; i < 100; i++) {
		CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
		CHECK_EQ(rfs_node_where(fs, le32_to_cpu(di->xattr), &now,
					&used), 0);
		if (now != addr)
			break;
		CHECK_EQ(rfs_clean(fs, RFS_CLEAN_NOW), 0);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	}
	CHECK(i < 100);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_xattr_get(fs, ino, "user.a", other, 100), 5);
	CHECK(!memcmp(other, "value", 5));
	check_clean(fs);
	end(fs, dev);
}

/*
 * A check-point that is cut off may leave nodes whose numbers are in a block of
 * the map that never came to be: they are not in use, cleaning goes over them.
 */
TEST(nodes_of_no_map)
{
	static struct rfs_node node;
	const void *data = &node;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_oob oob;
	u32 ino, zone, i;
	bool used;
	u64 addr;

	/* something that is in use is in the zone, too */
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", "v", 1, 0, 0), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_head_init(fs, &node.head, RFS_INDEX, 99, 1,
		      RFS_NODE_KEY(5 * RFS_MAP_ENTRIES, 0));
	rfs_oob_meta(fs, &oob, &node.head);
	CHECK_EQ(rfs_append(fs, RFS_S_META, 1, &data, &oob, &addr), 0);
	zone = addr / geometry.zone_blocks;
	CHECK_EQ(rfs_node_where(fs, 5 * RFS_MAP_ENTRIES, &addr, &used), 0);
	CHECK(!used && !addr);
	for (i = 0; fs->zone[zone].state != RFS_Z_USED; i++) {
		CHECK_EQ(rfs_xattr_set(fs, 2, "user.i", &i, sizeof(i), 0, 0), 0);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	}
	for (i = 0; fs->zone[zone].state == RFS_Z_USED && i < 100; i++) {
		CHECK_EQ(rfs_clean(fs, RFS_CLEAN_NOW), 0);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	}
	CHECK(i < 100);
	check_clean(fs);
	end(fs, dev);
}

/* What cleaning moves of the inode map is counted, unless it was dirty anyway. */
TEST(inode_map_cleaned)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, zone, i, dirty;
	u64 before;

	for (dirty = 0; dirty < 2; dirty++) {
		CHECK_EQ(rfs_create(fs, 2, dirty ? "g" : "f", &file, &ino), 0);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		zone = rfs_addr(cpu_to_le64(rfs_timb(fs, 0))) / geometry.zone_blocks;
		/* blocks of the zone table fill its zone */
		for (i = 0; fs->zone[zone].state != RFS_Z_USED && i < 1000; i++)
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK_EQ(fs->zone[zone].live, 3);	/* and node map's, TIMB's */
		if (dirty)
			CHECK_EQ(rfs_create(fs, 2, "h", &file, &ino), 0);
		before = fs->stats.copied_maps;
		for (i = 0; !fs->zone[zone].cleaned && i < 20; i++)
			CHECK_EQ(rfs_clean(fs, RFS_CLEAN_NOW), 0);
		CHECK_EQ(fs->stats.copied_maps - before, dirty ? 0 : 3);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		CHECK_EQ(fs->zone[zone].live, 0);
	}
	check_clean(fs);
	end(fs, dev);
}

/* A superblock that says it is of another format */
static void set_version(struct memdev *dev, u32 version)
{
	static struct rfs_super super[RFS_CP_ZONES];
	u32 zone;

	for (zone = 0; zone < RFS_CP_ZONES; zone++) {
		struct mem_page *page =
			&dev->page[zone * geometry.zone_blocks];

		if (page->state != MEM_OK)
			continue;
		memcpy(&super[zone], page->data, RFS_BLOCK_BYTES);
		super[zone].version = cpu_to_le32(version);
		rfs_head_seal(&super[zone].head,
			      le64_to_cpu(super[zone].head.stamp));
		page->data = (u8 *)&super[zone];
	}
}

/* A volume without a node map, or of a format to come, is not mounted. */
TEST(other_format)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_report report = { 0 };
	struct rfs_rescue rescue;
	struct rfs_fs *fs;
	u32 version;

	for (version = 1; version <= 3; version += 2) {
		set_version(dev, version);
		CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs),
			 -EOPNOTSUPP);
		CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, true, 0, &fs),
			 -EOPNOTSUPP);
		CHECK_EQ(rfs_rescan(&memdev_ops, dev, &dev->geo, &report,
				    &rescue, &fs), -EOPNOTSUPP);
	}
	set_version(dev, RFS_FORMAT_VERSION);
	end(mount(dev), dev);
}

/* A node that moves changes a word of the node map, and nothing above it. */
TEST(node_moves)
{
	u64 far = (u64)RFS_NODE_FANOUT * RFS_NODE_FANOUT * RFS_FANOUT * 40;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u64 index, nmap, others, addr, before;
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	bool used;
	u32 ino;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, far, 7, 4096);
	CHECK_EQ(height(fs, ino), 4);
	CHECK_EQ(blocks_of(fs, ino), 5);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_cache_trim(fs, 0);
	index = fs->stats.written[RFS_INDEX];
	nmap = fs->stats.written[RFS_NMAP];
	others = fs->stats.written[RFS_INODES] + fs->stats.written[RFS_IMAP];
	CHECK_EQ(rfs_map_slot(fs, ino, far, false, &slot, &buf), 0);
	CHECK_EQ(rfs_node_where(fs, buf->off, &before, &used), 0);
	CHECK(used && before == buf->addr);
	rfs_buf_dirty(fs, buf);
	rfs_dirty_parents(fs);
	CHECK_EQ(fs->dirty.count, 2);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(fs->stats.written[RFS_INDEX], index + 1);
	CHECK_EQ(fs->stats.written[RFS_NMAP], nmap + 1);
	CHECK_EQ(fs->stats.written[RFS_INODES] + fs->stats.written[RFS_IMAP],
		 others);
	CHECK_EQ(rfs_node_where(fs, buf->off, &addr, &used), 0);
	CHECK(used && addr != before);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	expect(fs, ino, far, 7, 4096);
	check_clean(fs);
	end(fs, dev);
}

/* Between the inode and a block of a file of up to 28 leaves there is one node. */
TEST(one_node_on_the_way)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 1000; i++)
		put(fs, ino, i, i + 1, 4096);
	CHECK_EQ(height(fs, ino), 1);
	CHECK_EQ(blocks_of(fs, ino), 1000 + 4);
	put(fs, ino, RFS_TOPS * RFS_FANOUT - 1, 7, 4096);
	CHECK_EQ(height(fs, ino), 1);
	CHECK_EQ(blocks_of(fs, ino), 1001 + 5);
	put(fs, ino, RFS_TOPS * RFS_FANOUT, 8, 4096);
	CHECK_EQ(height(fs, ino), 2);
	CHECK_EQ(blocks_of(fs, ino), 1002 + 6 + 1);
	check_clean(fs);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	expect(fs, ino, 999, (u8)1000, 4096);
	expect(fs, ino, RFS_TOPS * RFS_FANOUT - 1, 7, 4096);
	end(fs, dev);
}

/* The number of a leaf of a file with one block far away */
static u32 leaf_of(struct rfs_fs *fs, u32 ino, u64 block_nr)
{
	struct rfs_ptr *slot;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_map_slot(fs, ino, block_nr, false, &slot, &buf), 0);
	return buf->off;
}

/* Numbers of nodes that are gone are taken again, the lowest first. */
TEST(node_numbers_anew)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino[600], number[600], i, round;
	char name[8];

	for (i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_create(fs, 2, name, &file, &ino[i]), 0);
	}
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 600; i++) {
			put(fs, ino[i], 100, i + 1, 4096);
			CHECK(!round || leaf_of(fs, ino[i], 100) == number[i]);
			number[i] = leaf_of(fs, ino[i], 100);
			CHECK(!i || number[i] > number[i - 1]);
		}
		CHECK(number[599] > RFS_MAP_ENTRIES);
		CHECK_EQ(rfs_unmount(fs), 0);
		fs = mount(dev);
		for (i = 0; i < 600; i++)
			CHECK_EQ(rfs_truncate(fs, ino[i], 0, false), 0);
		check_clean(fs);
	}
	end(fs, dev);
}

static void reserve(struct rfs_fs *fs, u32 ino, u64 from, u64 to)
{
	while (from < to)
		CHECK_EQ(rfs_preallocate(fs, ino, &from, to), 0);
}

/* Faults that fsck finds, made right by rfs_repair(). */
static u64 repaired(struct rfs_fs *fs, u64 *losses)
{
	struct rfs_report found = { 0 }, made = { 0 };

	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_check(fs, &found), 0);
	CHECK_EQ(rfs_repair(fs, &made), 0);
	*losses = made.losses;
	check_clean(fs);
	return found.faults;
}

TEST(repair_counts)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u64 losses;
	u32 ino, top;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &dir, &top), 0);
	CHECK_EQ(rfs_create(fs, top, "f", &file, &ino), 0);
	put(fs, ino, 3, 7, 4096);
	CHECK_EQ(repaired(fs, &losses), 0);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	di->nlink = cpu_to_le32(9);
	di->blocks = cpu_to_le64(77);
	rfs_buf_dirty(fs, buf);
	CHECK_EQ(rfs_iget(fs, top, &di, &buf), 0);
	di->parent = cpu_to_le32(ino);
	rfs_buf_dirty(fs, buf);
	CHECK_EQ(rfs_dir_set(fs, top, "f", 1, ino, 4), 0);
	fs->inodes += 2;
	rfs_timb_set(fs, 0, rfs_timb(fs, 0) + (3ULL << RFS_ADDR_BITS));
	fs->zone[fs->active[RFS_S_DATA][0].zone].live += 5;
	reserve(fs, ino, 5, 9);
	fs->prealloc += 3;
	CHECK_EQ(repaired(fs, &losses), 8);
	CHECK_EQ(fs->prealloc, 4);
	CHECK_EQ(losses, 0);
	expect(fs, ino, 3, 7, 4096);
	end(fs, dev);
}

TEST(repair_names)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, top, below, found;
	u64 losses;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &dir, &top), 0);
	CHECK_EQ(rfs_create(fs, top, "below", &dir, &below), 0);
	CHECK_EQ(rfs_create(fs, below, "f", &file, &ino), 0);
	put(fs, ino, 0, 7, 4096);
	/* one that nobody names, with what is in it, and one that nobody has */
	CHECK_EQ(rfs_dir_remove(fs, RFS_ROOT_INO, "d", 1), 0);
	CHECK_EQ(rfs_dir_add(fs, RFS_ROOT_INO, "none", 4, 400, 8), 0);
	CHECK(repaired(fs, &losses) >= 2);
	CHECK_EQ(losses, 2);
	CHECK_EQ(rfs_dir_find(fs, RFS_ROOT_INO, "none", 4, &found), -ENOENT);
	CHECK_EQ(rfs_dir_find(fs, RFS_ROOT_INO, "lost+found", 10, &found), 0);
	CHECK_EQ(rfs_dir_find(fs, found, "#3", 2, &found), 0);
	CHECK_EQ(found, top);
	CHECK_EQ(rfs_dir_find(fs, top, "below", 5, &found), 0);
	CHECK_EQ(found, below);
	expect(fs, ino, 0, 7, 4096);
	end(fs, dev);
}

TEST(repair_blocks)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_ptr *slot, *from;
	struct rfs_buf *buf;
	u32 ino, twin;
	u64 losses;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "twin", &file, &twin), 0);
	put(fs, ino, 0, 7, 4096);
	put(fs, twin, 0, 8, 4096);
	/* what is another's */
	CHECK_EQ(rfs_map_slot(fs, ino, 0, false, &from, &buf), 0);
	CHECK_EQ(rfs_map_slot(fs, twin, 0, false, &slot, &buf), 0);
	*slot = *from;
	rfs_buf_dirty(fs, buf);
	CHECK_EQ(repaired(fs, &losses), 1);
	CHECK_EQ(losses, 1);
	expect(fs, ino, 0, 7, 4096);
	expect(fs, twin, 0, 0, 4096);
	end(fs, dev);
}

/* Pointers of kinds that are kept for later are damage today. */
TEST(pointer_kinds)
{
	static const u8 kinds[] = { RFS_PTR_HOLE, RFS_PTR_PREALLOC,
				    RFS_PTR_PIECE, RFS_PTR_ELSEWHERE, RFS_PTR_BOTH,
				    200 };
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_report report;
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	u64 losses;
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < sizeof(kinds); i++) {
		put(fs, ino, 1, 7, 4096);
		CHECK_EQ(rfs_map_slot(fs, ino, 1, false, &slot, &buf), 0);
		slot->kind = kinds[i];
		rfs_buf_dirty(fs, buf);
		CHECK_EQ(rfs_read(fs, ino, 1, block), -EUCLEAN);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		memset(&report, 0, sizeof(report));
		CHECK_EQ(rfs_check(fs, &report), 0);
		CHECK(report.faults > 0);
		CHECK(repaired(fs, &losses) > 0);
		CHECK_EQ(losses, 1);
		expect(fs, ino, 1, 0, 4096);
	}
	end(fs, dev);
}

/* What says that it has pieces is damage on a volume that was made without. */
TEST(pointer_to_pieces_without_pieces)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_report report = { 0 };
	struct rfs_ptr *slot;
	struct rfs_buf *buf;
	u64 losses;
	u32 ino;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	reserve(fs, ino, 1, 2);
	CHECK_EQ(rfs_map_slot(fs, ino, 1, false, &slot, &buf), 0);
	CHECK_EQ(slot->kind, RFS_PTR_PREALLOC);
	slot->kind = RFS_PTR_PIECE;
	rfs_buf_dirty(fs, buf);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_check(fs, &report), 0);
	CHECK_EQ(report.faults, 1);
	CHECK(repaired(fs, &losses) > 0);
	end(fs, dev);
}

/* Two that lead to one node, a number that nobody has, a count that is wrong */
TEST(repair_nodes)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf, *map;
	u32 ino, twin, number;
	u64 losses, addr;
	bool used;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "twin", &file, &twin), 0);
	put(fs, ino, 100, 7, 4096);
	put(fs, twin, 100, 8, 4096);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	number = leaf_of(fs, ino, 100);
	CHECK_EQ(rfs_iget(fs, twin, &di, &buf), 0);
	di->node[0] = cpu_to_le32(number);
	rfs_buf_dirty(fs, buf);
	/* a node of another, an address twice, a number of nobody, and counts */
	CHECK_EQ(repaired(fs, &losses), 5);
	CHECK_EQ(losses, 1);
	expect(fs, ino, 100, 7, 4096);
	expect(fs, twin, 100, 0, 4096);
	CHECK_EQ(rfs_node_get(fs, &(struct rfs_node_id){ .type = RFS_XATTR },
			      number, &buf), -EUCLEAN);
	/* a node that is not where the map says */
	CHECK_EQ(rfs_node_where(fs, number, &addr, &used), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_cache_trim(fs, 0);
	CHECK_EQ(rfs_node_map(fs, number, &map), 0);
	map->table.word[number % RFS_MAP_ENTRIES] = rfs_word(addr + 1, 1);
	rfs_buf_dirty(fs, map);
	rfs_timb_set(fs, fs->imap_blocks,
		     rfs_nmap_word(fs, 0) + (3ULL << RFS_ADDR_BITS));
	CHECK(repaired(fs, &losses) >= 3);
	CHECK_EQ(losses, 1);
	expect(fs, ino, 100, 0, 4096);
	end(fs, dev);
}

/* Inodes are counted of a block of the inode map that is not there. */
TEST(repair_without_map)
{
	u32 map = RFS_MAP_ENTRIES * RFS_BLOCK_INODES, ino, lost, found, at;
	struct rfs_geometry geo = geometry;
	struct memdev *dev;
	struct rfs_fs *fs;
	u64 losses;

	geo.zones = 100;	/* for more inodes than two of them have */
	dev = new_dev(&geo);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "stays", &file, &ino), 0);
	fs->next_ino = 2 * map + 99;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "lost", &file, &lost), 0);
	CHECK(lost / map == 2);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_cache_trim(fs, 0);
	CHECK_EQ(rfs_timb_make(fs, 1), 0);
	rfs_timb_set(fs, 1, 3ULL << RFS_ADDR_BITS);
	for (at = 0; at < geo.zones * geo.zone_blocks; at++) {
		struct mem_page *page = &dev->page[at];

		if (page->state == MEM_OK && page->oob->type == RFS_INODES &&
		    le64_to_cpu(page->oob->off) == lost / RFS_BLOCK_INODES)
			page->state = MEM_TORN;
	}
	CHECK(repaired(fs, &losses) >= 2);
	CHECK_EQ(losses, 2);	/* the inodes and the name */
	CHECK_EQ(rfs_dir_find(fs, RFS_ROOT_INO, "lost", 4, &found), -ENOENT);
	CHECK_EQ(rfs_dir_find(fs, RFS_ROOT_INO, "stays", 5, &found), 0);
	end(fs, dev);
}

/* Without check-points; the blocks that match, if any, are not readable. */
static struct rfs_fs *rescue(struct memdev *dev, u8 bad_type, u32 bad_ino,
			     struct rfs_rescue *out)
{
	struct rfs_report report = { 0 };
	struct rfs_fs *fs;
	u32 at;

	for (at = 0; at < geometry.zones * geometry.zone_blocks; at++) {
		struct mem_page *page = &dev->page[at];

		if (at < RFS_CP_ZONES * geometry.zone_blocks ||
		    (page->state == MEM_OK && page->oob->type == bad_type &&
		     le32_to_cpu(page->oob->ino) == bad_ino))
			page->state = MEM_TORN;
	}
	CHECK(rfs_mount(&memdev_ops, dev, &geometry, true, 0, &fs));
	CHECK_EQ(rfs_rescan(&memdev_ops, dev, &geometry, &report, out, &fs), 0);
	return fs;
}

/* A check-point of which nothing but inodes was written: mounting outdates it. */
TEST(rescan_unfinished)
{
	struct memdev *dev = new_dev(&geometry), *cut;
	struct rfs_fs *fs = mount(dev);
	struct rfs_rescue out;
	u32 ino, at, base;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	put(fs, ino, 0, 7, 4096);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	base = dev->ops;
	put(fs, ino, 5000, 8, 4096);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	rfs_unmount_nosync(fs);
	cut = memdev_new(&geometry, CAP, 1 << 20, false);
	for (at = 0; at < dev->ops; at++) {
		const struct mem_op *op = &dev->op[at];

		if (at < base || (op->type == MEM_APPEND &&
				  op->page.oob->type == RFS_INODES))
			memdev_replay(cut, op, MEM_OK);
	}
	fs = mount(cut);
	expect(fs, ino, 0, 7, 4096);
	put(fs, ino, 1, 9, 4096);
	rfs_unmount_nosync(fs);
	fs = rescue(cut, 0, 0, &out);
	CHECK(!out.damaged && !out.older);
	expect(fs, ino, 1, 9, 4096);
	expect(fs, ino, 0, 7, 4096);
	check_clean(fs);
	end(fs, cut);
	memdev_free(dev);
}

static u32 metadata_left;	/* appends of it until the medium has a bad moment */

static int metadata_fails(void *dev, u32 zone, u32 n, const void *const *data,
			  const struct rfs_oob *oob, u64 *addr)
{
	if (oob->type >= RFS_DIR && oob->type <= RFS_ZTAB) {
		if (!metadata_left)
			return -EAGAIN;
		metadata_left--;
	}
	return memdev_ops.append(dev, zone, n, data, oob, addr);
}

/* What is written after a check-point that failed does not prove that it was durable. */
TEST(rescan_after_failed_checkpoint)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev(&geometry);
	struct rfs_rescue out;
	struct rfs_fs *fs;
	u32 ino[100], i, left;
	char name[48];

	ops.append = metadata_fails;
	ops.append_submit = NULL;
	ops.append_wait = NULL;
	for (left = 1; left < 4; left++) {
		metadata_left = ~0U;
		CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &fs), 0);
		for (i = 0; i < 100; i++) {
			sprintf(name, "%u-of-many-with-a-long-name-%u", left, i);
			CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &file, &ino[i]), 0);
			put(fs, ino[i], 0, i, 4096);
			put(fs, ino[i], 100000, i, 4096);
		}
		CHECK_EQ(rfs_log_sync(fs), 0);
		metadata_left = left;
		CHECK(rfs_checkpoint(fs, 0) && !fs->read_only);
		metadata_left = ~0U;
		put(fs, ino[0], 1, 99, 4096);
		rfs_unmount_nosync(fs);
		fs = rescue(dev, 0, 0, &out);
		CHECK(!out.damaged);
		for (i = 0; i < 100; i++) {
			expect(fs, ino[i], 0, i, 4096);
			expect(fs, ino[i], 100000, i, 4096);
		}
		check_clean(fs);
		CHECK_EQ(rfs_unmount(fs), 0);
	}
	memdev_free(dev);
}

TEST(rescan_deleted)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_rescue out;
	u32 ino, kept, i;
	char name[8];

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "kept", &file, &kept), 0);
	put(fs, kept, 0, 7, 4096);
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &file, &ino), 0);
		put(fs, ino, 0, i, 4096);
	}
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	/* whole blocks of inodes are gone: only older ones are on the medium */
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		CHECK_EQ(rfs_unlink(fs, RFS_ROOT_INO, name, &ino), 0);
		CHECK_EQ(rfs_free_orphan(fs, ino), 0);
	}
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = rescue(dev, 0, 0, &out);
	CHECK(out.forgotten >= 16);
	CHECK_EQ(out.doubtful, 0);
	CHECK(!out.damaged && !out.older && out.super_lost);
	CHECK_EQ(fs->inodes, 2);
	CHECK(!memcmp(fs->super.uuid, id.uuid, 16));
	CHECK(!memcmp(fs->super.hash_key, id.hash_key, 16));
	CHECK(!memcmp(fs->super.summary_key, id.summary_key, 16));
	check_clean(fs);
	expect(fs, kept, 0, 7, 4096);
	end(fs, dev);
}

TEST(rescan_lost_directory)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_rescue out;
	u32 ino, top, other_ino, found;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "d", &dir, &top), 0);
	CHECK_EQ(rfs_create(fs, top, "f", &file, &ino), 0);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "g", &file, &other_ino), 0);
	put(fs, ino, 0, 7, 4096);
	put(fs, other_ino, 0, 8, 4096);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	put(fs, ino, 1, 9, 4096);
	rfs_unmount_nosync(fs);
	fs = rescue(dev, RFS_DIR, top, &out);
	CHECK(out.damaged);
	CHECK_EQ(out.doubtful, 1);
	check_clean(fs);
	CHECK_EQ(rfs_dir_find(fs, RFS_ROOT_INO, "lost+found", 10, &found), 0);
	CHECK_EQ(rfs_dir_find(fs, found, "#4", 2, &found), 0);
	CHECK_EQ(found, ino);
	expect(fs, ino, 0, 7, 4096);
	expect(fs, ino, 1, 9, 4096);
	expect(fs, other_ino, 0, 8, 4096);
	end(fs, dev);
}

static u64 reserved_of(struct rfs_fs *fs, u32 ino, u64 from, u64 to)
{
	struct rfs_ptr ptr;
	u64 n = 0;

	for (; from < to; from++) {
		CHECK_EQ(rfs_map_get(fs, ino, from, &ptr), 0);
		n += ptr.kind == RFS_PTR_PREALLOC;
	}
	return n;
}

/* Any bytes of a file, over the ends of blocks, beside what is there */
TEST(written_bytes)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	static u8 want[4 * RFS_BLOCK_BYTES], bytes[2 * RFS_BLOCK_BYTES];
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	memset(bytes, 7, sizeof(bytes));
	CHECK_EQ(rfs_write_bytes(fs, ino, 100, bytes, 500), 0);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->size), 600);
	memset(want + 100, 7, 500);
	memset(bytes, 8, sizeof(bytes));
	CHECK_EQ(rfs_write_bytes(fs, ino, 4000, bytes, 5000), 0);
	memset(want + 4000, 8, 5000);
	memset(bytes, 9, sizeof(bytes));
	CHECK_EQ(rfs_write_bytes(fs, ino, 550, bytes, 1), 0);
	want[550] = 9;
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(le64_to_cpu(di->size), 9000);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(rfs_read(fs, ino, i, block), 0);
		CHECK(!memcmp(block, want + i * RFS_BLOCK_BYTES,
			      RFS_BLOCK_BYTES));
	}
	check_clean(fs);
	end(fs, dev);
}

/* Bytes of a value, as they are written by themselves */
static void put_some(struct rfs_fs *fs, u32 ino, u64 off, u8 value, u32 len)
{
	u8 bytes[RFS_PIECE_MAX];

	memset(bytes, value, sizeof(bytes));
	CHECK_EQ(rfs_write_bytes(fs, ino, off, bytes, len), 0);
}

/* Pieces that lie over a block */
static u32 pieces_of(struct rfs_fs *fs, u32 ino, u64 at)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 n;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	CHECK_EQ(rfs_diff_overlay(fs, di, at, NULL, &n), 0);
	return n;
}

static u32 diff_of(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	return le32_to_cpu(di->diff);
}

static u8 byte_of(struct rfs_fs *fs, u32 ino, u64 off)
{
	CHECK_EQ(rfs_read(fs, ino, off / RFS_BLOCK_BYTES, block), 0);
	return block[off % RFS_BLOCK_BYTES];
}

/* A new file with 500 bytes is one page of the log; without pieces it is two. */
TEST(piece_of_a_new_file)
{
	const struct rfs_id *how[] = { &id, &pieces_id };
	struct rfs_extent extent;
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u64 at, from;
	u32 ino, i, before;

	for (i = 0; i < 2; i++) {
		struct memdev *dev = new_dev_with(&geometry, how[i]);
		struct rfs_fs *fs = mount(dev);

		before = dev->ops;
		CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
		put_some(fs, ino, 0, 7, 500);
		CHECK_EQ(rfs_fsync(fs, ino), 0);
		CHECK_EQ(appended(dev, before), i ? 1 : 2);
		CHECK_EQ(fs->stats.pieces, i);
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		expect(fs, ino, 0, 7, 500);
		CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
		CHECK_EQ(le64_to_cpu(di->size), 500);
		CHECK_EQ(!di->diff, !i);
		/* it is data, that has no address */
		CHECK_EQ(fs->prealloc, i);
		CHECK_EQ(rfs_map_seek(fs, ino, 0, 10, true, &at), 0);
		CHECK_EQ(at, 0);
		CHECK_EQ(rfs_map_seek(fs, ino, 0, 10, false, &at), 0);
		CHECK_EQ(at, 1);
		from = 0;
		CHECK_EQ(rfs_map_extent(fs, ino, &from, 10, &extent), 0);
		CHECK(extent.n == 1 && (!extent.addr) == i && extent.pieces == i);
		check_clean(fs);
		end(fs, dev);
	}
}

/* Any bytes over any others: all that is written later is seen. */
TEST(pieces_overlap)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	static u8 want[3 * RFS_BLOCK_BYTES];
	u32 ino, i, n;
	u64 random = 1;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 0, 1, 4096);
	memset(want, 1, 4096);
	for (i = 0; i < 3000; i++) {
		u32 len, off;

		random = random * 6364136223846793005ULL + 1;
		len = 1 + (random >> 33) % (i % 7 ? 40 : RFS_PIECE_MAX);
		off = (random >> 17) % (sizeof(want) - len);
		put_some(fs, ino, off, i, len);
		memset(want + off, i, len);
		if (i % 500 == 0)
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		if (i % 700 == 0) {
			CHECK_EQ(rfs_fsync(fs, ino), 0);
			rfs_unmount_nosync(fs);
			fs = mount(dev);
		}
		for (n = 0; n < 3; n++) {
			CHECK_EQ(rfs_read(fs, ino, n, block), 0);
			CHECK(!memcmp(block, want + n * 4096, 4096));
		}
	}
	CHECK(fs->stats.pieces > 100);
	CHECK(fs->stats.merged > 10);
	check_clean(fs);
	end(fs, dev);
}

/* A page takes the place of older pieces, and of no newer ones. */
TEST(page_over_pieces)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	struct rfs_oob oob;
	struct rfs_txn txn;
	u64 addr;
	u32 ino, n = 1, stream;
	const void *data = block;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put_some(fs, ino, 10, 1, 100);
	put(fs, ino, 0, 2, 4096);
	CHECK_EQ(diff_of(fs, ino), 0);
	CHECK_EQ(fs->prealloc, 0);
	expect(fs, ino, 0, 2, 4096);
	/* this one is written while a page is on its way that does not have it */
	CHECK_EQ(rfs_txn_begin(fs, ino, 0, 1, 4096, 5, &txn), 0);
	put_some(fs, ino, 10, 3, 100);
	memset(block, 4, sizeof(block));
	CHECK_EQ(rfs_txn_fill(fs, &txn, 0, &n, &oob, &stream), 0);
	CHECK_EQ(rfs_append(fs, stream, 1, &data, &oob, &addr), 0);
	CHECK_EQ(rfs_txn_done(fs, &oob, 1, &addr), 0);
	CHECK_EQ(byte_of(fs, ino, 9), 4);
	CHECK_EQ(byte_of(fs, ino, 10), 3);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(byte_of(fs, ino, 9), 4);
	CHECK_EQ(byte_of(fs, ino, 10), 3);
	check_clean(fs);
	end(fs, dev);
}

/* Truncating, punching and deleting take pieces along, also in recovery. */
TEST(pieces_are_cut)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	u32 ino, other_ino, round;
	u64 live;

	for (round = 0; round < 2; round++) {
		live = fs->live;
		CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
		put_some(fs, ino, 100, 1, 200);
		put_some(fs, ino, 5000, 2, 200);
		put_some(fs, ino, 9000, 3, 200);
		CHECK_EQ(fs->prealloc, 3);
		CHECK_EQ(rfs_punch(fs, ino, 1, 2, false), 0);
		CHECK_EQ(pieces_of(fs, ino, 1), 0);
		CHECK_EQ(rfs_truncate(fs, ino, 9010, false), 0);
		CHECK_EQ(rfs_truncate(fs, ino, 9200, true), 0);
		CHECK_EQ(rfs_fsync(fs, ino), 0);
		if (round) {
			rfs_unmount_nosync(fs);
			fs = mount(dev);
		}
		CHECK_EQ(fs->prealloc, 2);
		CHECK_EQ(byte_of(fs, ino, 299), 1);
		CHECK_EQ(byte_of(fs, ino, 5000), 0);
		CHECK_EQ(byte_of(fs, ino, 9009), 3);
		CHECK_EQ(byte_of(fs, ino, 9010), 0);
		CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
		CHECK_EQ(diff_of(fs, ino), 0);
		CHECK_EQ(fs->prealloc, 0);
		put_some(fs, ino, 100, 1, 200);
		check_clean(fs);
		CHECK_EQ(rfs_unlink(fs, 2, "f", &other_ino), 0);
		CHECK_EQ(rfs_free_orphan(fs, ino), 0);
		CHECK_EQ(fs->prealloc, 0);
		check_clean(fs);
		CHECK(!round || fs->live <= live + 1);
	}
	end(fs, dev);
}

/* So many pages of a transaction, from one on, complete in one append. */
static void complete_some(struct rfs_fs *fs, const struct rfs_txn *txn, u32 from,
			  u32 n)
{
	const void *data[2] = { block, other };
	struct rfs_oob oob[2];
	u64 addr[2];
	u32 stream;

	CHECK_EQ(rfs_txn_fill(fs, txn, from, &n, oob, &stream), 0);
	CHECK_EQ(rfs_append(fs, stream, n, data, oob, addr), 0);
	CHECK_EQ(rfs_txn_done(fs, oob, n, addr), 0);
}

/*
 * Pieces that pages of a part of a transaction have taken the place of keep theirs
 * until the next check-point: a recovery that does not see these pages has to have
 * room for them.
 */
TEST(place_of_pieces_is_kept)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	const void *data[2] = { block, other };
	struct rfs_txn txn;
	u32 ino, i;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 3; i++)
		put_some(fs, ino, i * 4096, 1, 1200);
	CHECK_EQ(rfs_txn_begin(fs, ino, 0, 3, 4096, 5, &txn), 0);
	for (i = 0; i < 2; i++) {
		complete_some(fs, &txn, i ? 2 : 0, i ? 1 : 2);
		CHECK_EQ(pieces_of(fs, ino, 0), 0);
		CHECK_EQ(rfs_piece_fits(fs, ino, 20000, 400), 0);
	}
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(pieces_of(fs, ino, 0), 0);
	put_some(fs, ino, 0, 3, 2000);
	CHECK_EQ(pieces_of(fs, ino, 0), 1);
	/* the page of one block alone is as good as durable */
	put(fs, ino, 0, 4, 4096);
	put_some(fs, ino, 4096, 5, 2000);
	CHECK_EQ(pieces_of(fs, ino, 1), 1);
	/* and so are those of an append that has a whole transaction */
	CHECK_EQ(rfs_piece_fits(fs, ino, 20000, 2000), 0);
	CHECK_EQ(rfs_write(fs, ino, 0, 2, data, 4096), 0);
	CHECK_EQ(pieces_of(fs, ino, 1), 0);
	CHECK_EQ(rfs_piece_fits(fs, ino, 20000, 2000), 1);
	check_clean(fs);
	end(fs, dev);
}

/* Three blocks whose pieces fill the node; a page takes the place of each. */
static void fill_node(struct rfs_fs *fs, u32 ino)
{
	u32 i;

	for (i = 0; i < 3; i++)
		put_some(fs, ino, i * 4096, 1, 1200);
}

static void take_place(struct rfs_fs *fs, u32 ino)
{
	struct rfs_txn txn;

	CHECK_EQ(rfs_txn_begin(fs, ino, 0, 3, 4096, 5, &txn), 0);
	complete_some(fs, &txn, 0, 2);
	complete_some(fs, &txn, 2, 1);
	CHECK_EQ(pieces_of(fs, ino, 0), 0);
	CHECK_EQ(rfs_piece_fits(fs, ino, 20000, 400), 0);
}

static void take_place_in_next_epoch(void *dev)
{
	(void)dev;
	/* recovery from the check-point before may need it */
	CHECK_EQ(rfs_piece_fits(shared, kept_ino, 20000, 400), 0);
	take_place(shared, gone_ino);
}

/* The check-point that gives it back is durable, and is of no epoch that goes on. */
TEST(place_of_pieces_of_two_epochs)
{
	struct rfs_dev_ops ops = memdev_ops;
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);

	ops.append_submit = begin_at_once;
	ops.append_wait = others_meanwhile;
	ops.frozen = take_place_in_next_epoch;
	CHECK_EQ(rfs_mount(&ops, dev, &geometry, false, 0, &shared), 0);
	shared->compact = true;
	CHECK_EQ(rfs_create(shared, 2, "f", &file, &kept_ino), 0);
	CHECK_EQ(rfs_create(shared, 2, "g", &file, &gone_ino), 0);
	fill_node(shared, kept_ino);
	fill_node(shared, gone_ino);
	/* no page waits for records then */
	CHECK_EQ(rfs_checkpoint(shared, 0), 0);
	take_place(shared, kept_ino);
	CHECK_EQ(rfs_checkpoint_early(shared), 0);
	CHECK_EQ(rfs_piece_fits(shared, kept_ino, 20000, 400), 1);
	CHECK_EQ(rfs_piece_fits(shared, gone_ino, 20000, 400), 0);
	CHECK_EQ(rfs_checkpoint(shared, 0), 0);
	CHECK_EQ(rfs_piece_fits(shared, gone_ino, 20000, 400), 1);
	check_clean(shared);
	end(shared, dev);
}

/* As one, from within a block on: bytes of a value */
static void put_atomic(struct rfs_fs *fs, u32 ino, u64 off, u8 value, u32 len)
{
	static u8 bytes[5 * RFS_BLOCK_BYTES];

	memset(bytes, value, sizeof(bytes));
	CHECK_EQ(rfs_write_atomic(fs, ino, off, bytes, len), 0);
}

/* Are the bytes, and the one before and after them, what they should be? */
static void expect_bytes(struct rfs_fs *fs, u32 ino, u64 off, u8 value, u32 len,
			 u8 around)
{
	u64 i;

	CHECK_EQ(byte_of(fs, ino, off - 1), around);
	for (i = off; i < off + len; i += 16)
		CHECK_EQ(byte_of(fs, ino, i), value);
	CHECK_EQ(byte_of(fs, ino, off + len - 1), value);
	CHECK_EQ(byte_of(fs, ino, off + len), around);
}

/*
 * The ends of an atomic write are pieces, which the drive has with the blocks between
 * them or not at all: of 2 to 4 blocks as many pages less are written as there are ends.
 */
TEST(ends_of_an_atomic_write)
{
	const struct {
		u32 off, len, pages, pieces;
	} w[] = {
		{ 4000, 500, 0, 2 },		/* two ends and nothing between them */
		{ 4000, 96 + 8192 + 300, 2, 2 },
		{ 4000, 96 + 8192, 2, 1 },	/* to the end of a block */
		{ 4096, 8192 + 300, 2, 1 },
		{ 2000, 3000, 2, 0 },		/* more than a piece can have */
	};
	u32 ino, i, cut, before;

	for (i = 0; i < 5 * 3; i++) {
		struct memdev *dev = new_dev_with(&geometry, &pieces_id);
		struct rfs_fs *fs = mount(dev);
		u32 off = w[i / 3].off, len = w[i / 3].len;
		u64 last;

		CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
		for (cut = 0; cut < 5; cut++)
			put(fs, ino, cut, 1, 4096);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		before = dev->ops;
		put_atomic(fs, ino, off, 2, len);
		CHECK_EQ(appended(dev, before), w[i / 3].pages);
		CHECK_EQ(fs->stats.pieces, w[i / 3].pieces);
		expect_bytes(fs, ino, off, 2, len, 1);
		last = dev->op[dev->ops - 1].addr;
		/* the last part says how many there are: a piece's record, where there is one */
		if (w[i / 3].pages)
			CHECK_EQ(le16_to_cpu(dev->page[last].oob->txn_cnt),
				 w[i / 3].pieces ? 0 : w[i / 3].pages);
		CHECK_EQ(rfs_fsync(fs, ino), 0);
		CHECK_EQ(appended(dev, before), w[i / 3].pages + !!w[i / 3].pieces);
		/* 1: a page is lost that was written first; 2: what was written last */
		if (i % 3 == 1 && w[i / 3].pages)
			dev->page[last].state = MEM_TORN;
		for (cut = dev->ops; i % 3 == 2 && cut-- > before;)
			if (dev->op[cut].type == MEM_APPEND)
				break;
		if (i % 3 == 2)
			dev->page[dev->op[cut].addr].state = MEM_TORN;
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		if (i % 3 == 0 || (i % 3 == 1 && !w[i / 3].pages))
			expect_bytes(fs, ino, off, 2, len, 1);
		else
			expect_bytes(fs, ino, off, 1, len, 1);
		check_clean(fs);
		end(fs, dev);
	}
}

/* The same of a few bytes of one block */
static void put_one_end(struct rfs_fs *fs, u32 ino, u64 off, u8 value, u32 len)
{
	struct rfs_bytes piece = { off, len, block };
	struct rfs_txn txn;

	memset(block, value, sizeof(block));
	CHECK_EQ(rfs_txn_begin_with(fs, ino, 0, 0, 5, &piece, 1, &txn), 1);
}

/* A page of a file with such pieces waits for their records, which it may hold a part of. */
TEST(page_after_ends_of_an_atomic_write)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	u32 ino, other_ino, before;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(rfs_create(fs, 2, "g", &file, &other_ino), 0);
	put(fs, ino, 0, 1, 4096);
	put(fs, ino, 1, 1, 4096);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	put_atomic(fs, ino, 4000, 2, 500);
	before = dev->ops;
	put(fs, other_ino, 0, 3, 4096);
	CHECK_EQ(appended(dev, before), 1);
	CHECK(rfs_log_pending(fs, ino, true));
	put(fs, ino, 0, 4, 4096);
	CHECK_EQ(appended(dev, before), 3);
	CHECK(!rfs_log_pending(fs, ino, true));
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(byte_of(fs, ino, 4095), 4);
	CHECK_EQ(byte_of(fs, ino, 4096), 2);
	check_clean(fs);
	/* of what is in one block it has all, or nothing */
	put_one_end(fs, ino, 100, 5, 50);
	CHECK(rfs_log_pending(fs, ino, false) && !rfs_log_pending(fs, ino, true));
	before = dev->ops;
	put(fs, ino, 1, 6, 4096);
	CHECK_EQ(appended(dev, before), 1);
	end(fs, dev);
}

/*
 * The records are in two blocks of the log, the border between them anywhere: without the
 * second block there is nothing of the write, nor without the first, which ends the log.
 */
TEST(ends_in_two_blocks_of_the_log)
{
	u32 left, lost, ino, other_ino, at, len = 96 + 4096 + 300;

	for (left = 8; left < 560; left += 24) {
		for (lost = 0; lost < 3; lost++) {
			struct memdev *dev = new_dev_with(&geometry, &pieces_id);
			struct rfs_fs *fs = mount(dev);
			u64 page[2] = { 0 };

			CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
			CHECK_EQ(rfs_create(fs, 2, "g", &file, &other_ino), 0);
			for (at = 0; at < 4; at++)
				put(fs, ino, at, 1, 4096);
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
			while (fs->log_used + left + 1400 < RFS_BODY_BYTES)
				put_some(fs, other_ino, 0, 1, 800);
			put_some(fs, other_ino, 0, 2, RFS_BODY_BYTES - left -
				 fs->log_used - sizeof(struct rfs_rec));
			CHECK_EQ(fs->log_used + left, RFS_BODY_BYTES);
			put_atomic(fs, ino, 4000, 2, len);
			CHECK_EQ(fs->log_full, 1);
			at = dev->ops;
			CHECK_EQ(rfs_fsync(fs, ino), 0);
			CHECK_EQ(appended(dev, at), 2);
			for (; at < dev->ops; at++) {
				if (dev->op[at].type != MEM_APPEND)
					continue;
				page[0] = page[1];
				page[1] = dev->op[at].addr;
			}
			if (lost)
				dev->page[page[lost - 1]].state = MEM_TORN;
			rfs_unmount_nosync(fs);
			fs = mount(dev);
			expect_bytes(fs, ino, 4000, lost ? 1 : 2, len, 1);
			CHECK_EQ(byte_of(fs, other_ino, 0), lost == 1 ? 0 : 2);
			check_clean(fs);
			end(fs, dev);
		}
	}
}

static struct rfs_fs *looked_at;

/* Who looks while the log is written asks for blocks, and others may go. */
static void look_meanwhile(void *dev, bool begins)
{
	(void)dev;
	if (begins)
		return;
	looked_at->nowait = false;
	looked_at->fetched = NULL;
	rfs_cache_trim(looked_at, 0);
}

/* Such a write asks for what is not in memory after it has waited for the log, too. */
TEST(ends_are_asked_for)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	struct rfs_bytes piece = { 100 * 4096 + 10, 50, block };
	struct rfs_dev_ops ops = *fs->ops;
	struct rfs_txn txn;
	u64 reads;
	u32 ino;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 100, 1, 4096);
	put(fs, ino, 101, 1, 4096);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_log_room(fs, 1), 0);
	rfs_log_before_data(fs, ino);
	ops.quiet = look_meanwhile;
	fs->ops = &ops;
	looked_at = fs;
	reads = fs->stats.waited_reads;
	fs->nowait = true;
	CHECK_EQ(rfs_txn_begin_with(fs, ino, 101, 1, 5, &piece, 1, &txn),
		 -EINPROGRESS);
	CHECK_EQ(fs->stats.waited_reads, reads);
	CHECK(fs->nowait && !rfs_log_pending(fs, ino, true));
	fs->nowait = false;
	CHECK_EQ(rfs_txn_begin_with(fs, ino, 101, 1, 5, &piece, 1, &txn), 1);
	fs->ops = &memdev_ops;
	end(fs, dev);
}

/*
 * Beside pages they lie over no other pieces, which would take more place if they were
 * gone: what was written later, and is durable, would not fit.
 */
TEST(ends_lie_over_no_pieces)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	u32 ino, i, before, pieces, len = 96 + 4096 + 300;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 3; i++)
		put(fs, ino, i, 1, 4096);
	for (i = 0; i < 4; i++)
		put_some(fs, ino, 4010 + i * 20, 10 + i, 20);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	pieces = fs->stats.pieces;
	before = dev->ops;
	put_atomic(fs, ino, 4000, 2, len);
	CHECK_EQ(fs->stats.pieces, pieces);
	CHECK_EQ(appended(dev, before), 3);
	/* now that these pages have taken their place, it can be had */
	put_atomic(fs, ino, 4000, 3, len);
	CHECK_EQ(fs->stats.pieces, pieces + 2);
	CHECK_EQ(appended(dev, before), 4);
	put_atomic(fs, ino, 4000, 4, len);
	CHECK_EQ(fs->stats.pieces, pieces + 2);
	/* the end of the log is all that can be missing of records alone */
	put_atomic(fs, ino, 4000, 5, 500);
	CHECK_EQ(fs->stats.pieces, pieces + 4);
	put_atomic(fs, ino, 4050, 6, 500);
	CHECK_EQ(fs->stats.pieces, pieces + 6);
	CHECK_EQ(byte_of(fs, ino, 4049), 5);
	CHECK_EQ(byte_of(fs, ino, 4050), 6);
	CHECK_EQ(byte_of(fs, ino, 4549), 6);
	CHECK_EQ(byte_of(fs, ino, 4550), 4);
	check_clean(fs);
	end(fs, dev);
}

/* Bytes of a block as pieces, of which there is room for one */
static int put_pieces(struct rfs_fs *fs, u32 ino, u64 off, const u8 *bytes,
		      u32 len)
{
	bool hole;
	int fits;

	CHECK_EQ(rfs_reserve(fs, ino, off / RFS_BLOCK_BYTES, &hole), 0);
	fits = rfs_piece_fits(fs, ino, off, len);
	if (fits > 0)
		CHECK_EQ(rfs_piece(fs, ino, off, bytes, len, 5), 0);
	rfs_unreserve(fs, ino, 1, hole);
	return fits;
}

/* More bytes than a piece can have are two, and what fits does so in any order. */
TEST(long_pieces)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	static u8 want[2 * RFS_BLOCK_BYTES], bytes[RFS_BLOCK_BYTES];
	u32 ino, other_ino, i, n, two = 0;
	u64 random = 1;

	/* with two entries, and two more as for any others, they just fit, or do not */
	for (i = 0; i < 2; i++) {
		u32 beside = RFS_BODY_BYTES - 3000 - 5 * 24 + i;

		CHECK_EQ(rfs_create(fs, 2, i ? "b" : "a", &file, &other_ino), 0);
		CHECK_EQ(put_pieces(fs, other_ino, 0, bytes, beside), 1);
		CHECK_EQ(put_pieces(fs, other_ino, 4096, bytes, 3000), !i);
	}
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	memset(bytes, 7, sizeof(bytes));
	CHECK_EQ(put_pieces(fs, ino, 4096, bytes, RFS_SMALL_MAX + 1), 0);
	CHECK_EQ(put_pieces(fs, ino, 4096, bytes, RFS_SMALL_MAX), 1);
	memset(want + 4096, 7, RFS_SMALL_MAX);
	CHECK_EQ(pieces_of(fs, ino, 1), 2);
	for (i = 0; i < 3000; i++) {
		const void *data = want + RFS_BLOCK_BYTES;
		u32 len, at, cut;

		random = random * 6364136223846793005ULL + 1;
		len = 1 + (random >> 33) % (i % 5 ? 90 : RFS_SMALL_MAX);
		at = (random >> 17) % (RFS_BLOCK_BYTES - len);
		memset(want + 4096 + at, i, len);
		memset(bytes, i, len);
		if (put_pieces(fs, ino, 4096 + at, bytes, len))
			two += len > RFS_PIECE_MAX;
		else
			CHECK_EQ(rfs_write(fs, ino, 1, 1, &data, 4096), 0);
		cut = i % 300;
		if (cut == 100)
			CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		if (cut == 200) {
			CHECK_EQ(rfs_fsync(fs, ino), 0);
			rfs_unmount_nosync(fs);
			fs = mount(dev);
		}
		for (n = 0; n < 2; n++) {
			CHECK_EQ(rfs_read(fs, ino, n, block), 0);
			CHECK(!memcmp(block, want + n * 4096, 4096));
		}
	}
	CHECK(two > 20);
	check_clean(fs);
	end(fs, dev);
}

/* So many bytes of each of n blocks are new: those of which at most so many are. */
static u32 most_of(struct rfs_fs *fs, u32 ino, bool alone, u16 first, u16 second,
		   u16 third)
{
	const u16 bytes[3] = { first, second, third };
	u32 n = 1 + !!second + !!third, most;

	CHECK_EQ(rfs_piece_most(fs, ino, bytes, n, alone, &most), 0);
	return most;
}

/* Bytes are pieces if that takes fewer pages: of the log, or of the check-point. */
TEST(pieces_where_they_save_pages)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	u32 ino;

	/* the log is to be written: what has room beside the file's name is free */
	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(most_of(fs, ino, true, 500, 0, 0), 500);
	CHECK_EQ(most_of(fs, ino, true, 3700, 0, 0), 3700);
	CHECK_EQ(most_of(fs, ino, true, 3850, 0, 0), 0);
	CHECK_EQ(most_of(fs, ino, false, 3700, 0, 0), 3700);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	/* it is not: it takes a page for each 4,032 bytes of records */
	CHECK_EQ(most_of(fs, ino, true, 500, 0, 0), 0);
	CHECK_EQ(most_of(fs, ino, false, 500, 0, 0), 0);
	CHECK_EQ(most_of(fs, ino, true, 500, 500, 0), 500);
	CHECK_EQ(most_of(fs, ino, true, 3000, 500, 0), 3000);
	CHECK_EQ(most_of(fs, ino, true, 500, 3700, 0), 0);
	CHECK_EQ(most_of(fs, ino, true, 500, 3700, 500), 500);
	CHECK_EQ(most_of(fs, ino, true, 100, 3000, 100), 3000);
	/* the diff node, once it is dirty, is written with more or with less */
	put_some(fs, ino, 0, 1, 1900);
	CHECK_EQ(rfs_log_sync(fs), 0);
	CHECK_EQ(most_of(fs, ino, false, 500, 0, 0), 500);
	CHECK_EQ(most_of(fs, ino, true, 500, 0, 0), 0);
	CHECK_EQ(most_of(fs, ino, true, 1800, 1800, 0), 0);
	CHECK_EQ(most_of(fs, ino, true, 900, 900, 0), 900);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(most_of(fs, ino, false, 500, 0, 0), 0);
	CHECK_EQ(most_of(fs, ino, false, 500, 500, 0), 500);
	fs->compact = false;
	CHECK_EQ(most_of(fs, ino, true, 500, 500, 0), 0);
	end(fs, dev);
}

/* A piece keeps room for its block: merging goes on when there is none. */
TEST(pieces_of_a_full_volume)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	u32 small, big, i, pieces;
	u64 at;
	int ret = 0;

	CHECK_EQ(rfs_create(fs, 2, "small", &file, &small), 0);
	CHECK_EQ(rfs_create(fs, 2, "big", &file, &big), 0);
	for (i = 0; i < 7; i++)
		put_some(fs, small, i * 4096, 1 + i, 300);
	pieces = fs->stats.pieces;
	CHECK_EQ(pieces, 7);
	for (at = 0; !ret; at++) {
		const void *data = block;

		ret = rfs_write(fs, big, at, 1, &data, 4096);
	}
	CHECK_EQ(ret, -ENOSPC);
	/* no new block, though */
	CHECK_EQ(rfs_write_bytes(fs, small, 100 * 4096, block, 10), -ENOSPC);
	for (i = 0; i < 7; i++)
		CHECK_EQ(rfs_merge(fs, small), 0);
	CHECK_EQ(rfs_merge(fs, small), -ENOENT);
	for (i = 0; i < 7; i++)
		expect(fs, small, i, 1 + i, 300);
	CHECK_EQ(fs->prealloc, 0);
	check_clean(fs);
	end(fs, dev);
}

/* What is not as it should be is told, and left out. */
TEST(damaged_pieces)
{
	struct memdev *dev = new_dev_with(&geometry, &pieces_id);
	struct rfs_fs *fs = mount(dev);
	struct rfs_report report;
	struct rfs_dinode *di;
	struct rfs_buf *buf, *node;
	u64 losses;
	u32 ino, way;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (way = 0; way < 5; way++) {
		put_some(fs, ino, 0, 1, 100);
		put_some(fs, ino, 5000, 1, 100);
		CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
		CHECK_EQ(rfs_diff_get(fs, di, &node), 0);
		if (way == 0)
			node->diff.piece[1].off = 0;
		else if (way == 1)
			node->diff.piece[0].len = cpu_to_le16(4000);
		else if (way == 2)
			node->diff.piece[0].at = 0;
		else if (way == 3)
			node->head.count = cpu_to_le16(1000);
		else
			di->size = cpu_to_le64(5050);
		node->checked = false;
		rfs_buf_dirty(fs, node);
		rfs_buf_dirty(fs, buf);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		memset(&report, 0, sizeof(report));
		CHECK_EQ(rfs_check(fs, &report), 0);
		CHECK(report.faults > 0);
		CHECK(repaired(fs, &losses) > 0);
		CHECK_EQ(losses, 1);
		CHECK_EQ(diff_of(fs, ino), 0);
	}
	end(fs, dev);
}

/* What is reserved is counted, over mounts, and given back with its block. */
/* Blocks that are overwritten have their room together, up to a hole or the next node. */
TEST(reserved_in_a_row)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 ino, i;
	u64 used;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(rfs_reserve_run(fs, ino, 0, 9), 0);
	for (i = 240; i < 260; i++)
		put(fs, ino, i, 7, RFS_BLOCK_BYTES);
	put(fs, ino, 263, 7, RFS_BLOCK_BYTES);
	reserve(fs, ino, 260, 261);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	used = fs->rsv_blocks;
	CHECK_EQ(rfs_reserve_run(fs, ino, 239, 9), 0);
	CHECK_EQ(rfs_reserve_run(fs, ino, 240, 9), 9);
	CHECK_EQ(rfs_reserve_run(fs, ino, 249, 99), 3);
	CHECK_EQ(rfs_reserve_run(fs, ino, 252, 99), 9);
	CHECK_EQ(rfs_reserve_run(fs, ino, 261, 99), 0);
	CHECK_EQ(rfs_reserve_run(fs, ino, 263, 99), 1);
	CHECK_EQ(fs->rsv_blocks, used + 22);
	CHECK_EQ(fs->rsv_holes, 0);
	rfs_unreserve(fs, ino, 22, 0);
	CHECK_EQ(fs->rsv_blocks, used);
	end(fs, dev);
}

TEST(reserved)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_extent extent;
	u32 ino, other_ino;
	u64 at = 0, from = 0;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	put(fs, ino, 3, 9, 4096);
	reserve(fs, ino, 0, 1);
	CHECK_EQ(fs->prealloc, 1);
	reserve(fs, ino, 0, 300);
	CHECK_EQ(fs->prealloc, 299);
	expect(fs, ino, 0, 0, 4096);
	expect(fs, ino, 3, 9, 4096);
	check_clean(fs);
	CHECK_EQ(rfs_map_extent(fs, ino, &from, 1000, &extent), 0);
	CHECK(extent.block == 0 && extent.n == 3 && !extent.addr);
	from = 3;
	CHECK_EQ(rfs_map_extent(fs, ino, &from, 1000, &extent), 0);
	CHECK(extent.block == 3 && extent.n == 1 && extent.addr);
	from = 4;
	CHECK_EQ(rfs_map_extent(fs, ino, &from, 1000, &extent), 0);
	CHECK(extent.block == 4 && extent.n == 296 && !extent.addr);
	from = 300;
	CHECK_EQ(rfs_map_extent(fs, ino, &from, 10000, &extent), 0);
	CHECK_EQ(extent.n, 0);
	/* a write takes one, also after a power cut */
	put(fs, ino, 260, 8, 100);
	CHECK_EQ(fs->prealloc, 298);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(fs->prealloc, 298);
	CHECK_EQ(reserved_of(fs, ino, 0, 1000), 298);
	check_clean(fs);
	/* zeroing keeps them, growing too, punching and shrinking do not */
	CHECK_EQ(rfs_punch(fs, ino, 2, 10, true), 0);
	CHECK_EQ(reserved_of(fs, ino, 0, 300), 299);
	CHECK_EQ(rfs_punch(fs, ino, 0, 10, false), 0);
	CHECK_EQ(fs->prealloc, 289);
	CHECK_EQ(rfs_truncate(fs, ino, 270 * 4096, true), 0);
	CHECK_EQ(fs->prealloc, 289);
	CHECK_EQ(rfs_truncate(fs, ino, 1 << 30, true), 0);
	CHECK_EQ(fs->prealloc, 289);
	CHECK_EQ(rfs_truncate(fs, ino, 20 * 4096, false), 0);
	CHECK_EQ(fs->prealloc, 10);
	/* what makes the file longer may not be written yet: it shrinks */
	CHECK_EQ(rfs_truncate(fs, ino, 25 * 4096, false), 0);
	CHECK_EQ(fs->prealloc, 10);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	reserve(fs, ino, 0, 10);
	CHECK_EQ(rfs_truncate(fs, ino, 3 * 4096, false), 0);
	CHECK_EQ(fs->prealloc, 3);
	check_clean(fs);
	CHECK_EQ(rfs_unlink(fs, 2, "f", &ino), 0);
	CHECK_EQ(rfs_free_orphan(fs, ino), 0);
	CHECK_EQ(fs->prealloc, 0);
	/* more than there is: refused as a whole */
	CHECK_EQ(rfs_create(fs, 2, "g", &file, &other_ino), 0);
	CHECK_EQ(rfs_preallocate(fs, other_ino, &at, fs->user_blocks), -ENOSPC);
	CHECK_EQ(fs->prealloc, 0);
	check_clean(fs);
	end(fs, dev);
}

/* Index nodes of nothing are passed over, but not all of them in one go. */
TEST(extent_after_nothing)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	struct rfs_extent extent;
	u64 from = 0, before, last = 400ULL * RFS_FANOUT;
	u32 ino, i, turns = 0;
	int ret;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	for (i = 0; i < 400; i++) {
		reserve(fs, ino, i * RFS_FANOUT, i * RFS_FANOUT + 1);
		CHECK_EQ(rfs_punch(fs, ino, i * RFS_FANOUT, i * RFS_FANOUT + 1,
				   false), 0);
	}
	reserve(fs, ino, last + 3, last + 5);
	for (;;) {
		before = from;
		ret = rfs_map_extent(fs, ino, &from, ~0ULL, &extent);
		if (ret != -EAGAIN)
			break;
		CHECK(from > before && from - before <= 64 * RFS_FANOUT);
		turns++;
	}
	CHECK_EQ(ret, 0);
	CHECK(turns > 3);
	CHECK(extent.block == last + 3 && extent.n == 2 && !extent.addr);
	end(fs, dev);
}

/* On a full volume what was reserved can be written, nothing else. */
/* What statfs(2) shows as available can be reserved, whatever is there. */
TEST(available)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	u32 round, ino, used, i;
	u64 n, from;

	CHECK_EQ(rfs_create(fs, 2, "used", &file, &used), 0);
	for (round = 0; round < 6; round++) {
		n = rfs_available(fs);
		CHECK(n > 3000);
		CHECK_EQ(rfs_create(fs, 2, "all", &file, &ino), 0);
		for (from = 0; from < n;)
			CHECK_EQ(rfs_preallocate(fs, ino, &from, n), 0);
		/* and it is not far less than there is */
		CHECK(rfs_available(fs) < 50);
		CHECK_EQ(rfs_unlink(fs, 2, "all", &ino), 0);
		CHECK_EQ(rfs_free_orphan(fs, ino), 0);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		for (i = 0; i < 300; i++)
			put(fs, used, round * 300 + i, 7, RFS_BLOCK_BYTES);
	}
	end(fs, dev);
}

TEST(reserved_when_full)
{
	struct memdev *dev = new_dev(&geometry);
	struct rfs_fs *fs = mount(dev);
	const void *data = block;
	u32 ino, fill, i, round;
	int ret = 0;

	CHECK_EQ(rfs_create(fs, 2, "f", &file, &ino), 0);
	CHECK_EQ(rfs_create(fs, 2, "fill", &file, &fill), 0);
	reserve(fs, ino, 0, 1500);
	for (i = 0; !ret; i++)
		ret = rfs_write(fs, fill, i, 1, &data, 4096);
	CHECK_EQ(ret, -ENOSPC);
	CHECK(i > 1000);
	CHECK_EQ(rfs_write(fs, ino, 1500, 1, &data, 4096), -ENOSPC);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	for (round = 1; round <= 2; round++)
		for (i = 0; i < 1500; i++)
			put(fs, ino, i * 7 % 1500, round, 4096);
	CHECK_EQ(fs->prealloc, 0);
	CHECK_EQ(rfs_write(fs, ino, 1500, 1, &data, 4096), -ENOSPC);
	for (i = 0; i < 1500; i++)
		expect(fs, ino, i, 2, 4096);
	check_clean(fs);
	end(fs, dev);
}
