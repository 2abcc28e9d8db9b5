// SPDX-License-Identifier: GPL-2.0-or-later
/* Quotas of the core: usage, limits, on a drive in memory. */
#include "check.h"
#include "clean.h"
#include "memdev.h"
#include "space/space.h"
#include "tree/tree.h"
#include "tree/quota.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define CAP	250
#define ALICE	1000
#define BOB	1001
#define STAFF	50

static const struct rfs_geometry geometry = {
	.zones = 48, .zone_blocks = 256, .oob_bytes = 64,
};
static const struct rfs_id id = { "0123456789abcde", "a key for hashes",
				  "a key to be safe" };
static const struct rfs_new alices = { .mode = S_IFREG | 0644, .uid = ALICE,
				       .gid = STAFF };
static u8 block[RFS_BLOCK_BYTES];

static struct memdev *new_dev(void)
{
	struct memdev *dev = memdev_new(&geometry, CAP, 256 << 20, true);

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geometry, &id, "test"), 0);
	return dev;
}

static struct rfs_fs *mount(struct memdev *dev)
{
	struct rfs_fs *fs;

	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs), 0);
	return fs;
}

/* A new volume whose limits hold */
static struct rfs_fs *mount_new(struct memdev **dev)
{
	struct rfs_fs *fs;

	*dev = new_dev();
	fs = mount(*dev);
	CHECK_EQ(rfs_quota_on(fs), 0);
	fs->enforced = RFS_QUOTA_BOTH;
	return fs;
}

static void end(struct rfs_fs *fs, struct memdev *dev)
{
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

/* fsck counts too, and finds no other usage. */
static void check_counted(struct rfs_fs *fs)
{
	check_clean(fs);
	CHECK(fs->counting && !fs->miscounted);
}

static struct rfs_quota of(struct rfs_fs *fs, u32 type, u32 id)
{
	struct rfs_quota q;
	u64 rsv;

	CHECK_EQ(rfs_quota_get(fs, type, id, &q, &rsv), 0);
	return q;
}

static void expect(struct rfs_fs *fs, u32 type, u32 id, u64 blocks, u64 inodes)
{
	struct rfs_quota q = of(fs, type, id);

	CHECK_EQ(le64_to_cpu(q.blocks), blocks);
	CHECK_EQ(le64_to_cpu(q.inodes), inodes);
}

static void limit(struct rfs_fs *fs, u32 type, u32 id, u64 blocks, u64 inodes)
{
	struct rfs_quota q = {
		.space_hard = cpu_to_le64(blocks * RFS_BLOCK_BYTES),
		.inodes_hard = cpu_to_le64(inodes),
	};

	CHECK_EQ(rfs_quota_set(fs, type, id, &q), 0);
}

static u32 create(struct rfs_fs *fs, const char *name,
		  const struct rfs_new *how)
{
	u32 ino;

	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, how, &ino), 0);
	return ino;
}

static int put(struct rfs_fs *fs, u32 ino, u64 at)
{
	const void *data = block;

	return rfs_write(fs, ino, at, 1, &data, RFS_BLOCK_BYTES);
}

static int chown_to(struct rfs_fs *fs, u32 ino, u32 uid, u32 gid, u64 rsv)
{
	struct rfs_dinode attr, *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	attr = *di;
	attr.uid = cpu_to_le32(uid);
	attr.gid = cpu_to_le32(gid);
	return rfs_setattr(fs, ino, &attr, rsv);
}

static void remove_file(struct rfs_fs *fs, const char *name)
{
	u32 ino;

	CHECK_EQ(rfs_unlink(fs, RFS_ROOT_INO, name, &ino), 0);
	CHECK_EQ(rfs_free_orphan(fs, ino), 0);
}

TEST(quota_usage)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices), other, i;
	u64 from = 100;

	expect(fs, RFS_QUOTA_USER, ALICE, 0, 1);
	CHECK_EQ(put(fs, ino, 0), 0);
	expect(fs, RFS_QUOTA_USER, ALICE, 1, 1);
	CHECK_EQ(put(fs, ino, 0), 0);		/* once more is no more */
	CHECK_EQ(put(fs, ino, 70000), 0);	/* two leaves, and one above */
	expect(fs, RFS_QUOTA_USER, ALICE, 5, 1);
	expect(fs, RFS_QUOTA_GROUP, STAFF, 5, 1);
	check_counted(fs);
	CHECK_EQ(rfs_preallocate(fs, ino, &from, 110), 0);
	CHECK_EQ(put(fs, ino, 105), 0);
	expect(fs, RFS_QUOTA_USER, ALICE, 15, 1);
	CHECK_EQ(rfs_punch(fs, ino, 100, 103, false), 0);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", "x", 1, 0, 0), 0);
	expect(fs, RFS_QUOTA_USER, ALICE, 13, 1);
	check_counted(fs);
	CHECK_EQ(chown_to(fs, ino, BOB, STAFF, 0), 0);
	expect(fs, RFS_QUOTA_USER, ALICE, 0, 0);
	expect(fs, RFS_QUOTA_USER, BOB, 13, 1);
	expect(fs, RFS_QUOTA_GROUP, STAFF, 13, 1);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", NULL, 0, 0, 0), 0);
	check_counted(fs);
	for (i = 0; i < 40; i++) {
		struct rfs_new how = { .mode = S_IFDIR | 0755, .uid = 5000 * i,
				       .gid = 7 };
		char name[8], below[40];
		u32 k;

		sprintf(name, "d%u", i);
		other = create(fs, name, &how);
		for (k = 0; k < 5; k++) {
			how.mode = S_IFREG;
			sprintf(below, "name-%u", k);
			CHECK_EQ(rfs_create(fs, other, below, &how, &ino), 0);
		}
	}
	check_counted(fs);
	expect(fs, RFS_QUOTA_GROUP, 7, 40, 240);
	expect(fs, RFS_QUOTA_USER, 5000, 1, 6);
	remove_file(fs, "f");
	expect(fs, RFS_QUOTA_USER, BOB, 0, 0);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	expect(fs, RFS_QUOTA_GROUP, 7, 40, 240);
	check_counted(fs);
	end(fs, dev);
}

/* After a power cut usage is that of the inodes, limits are what was synced. */
TEST(quota_recovered)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	struct rfs_quota q = { .space_end = cpu_to_le64(77) };
	u64 space, inodes;
	u32 ino = create(fs, "f", &alices), i;

	for (i = 0; i < 30; i++)
		CHECK_EQ(put(fs, ino, 3 * i), 0);
	limit(fs, RFS_QUOTA_USER, ALICE, 100, 10);
	limit(fs, RFS_QUOTA_GROUP, 3000000000U, 5, 6);
	CHECK_EQ(rfs_quota_set(fs, RFS_QUOTA_GROUP, RFS_QUOTA_GRACE, &q), 0);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	create(fs, "lost", &alices);
	limit(fs, RFS_QUOTA_USER, BOB, 1, 1);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	expect(fs, RFS_QUOTA_USER, ALICE, 31, 1);
	CHECK_EQ(le64_to_cpu(of(fs, RFS_QUOTA_USER, ALICE).space_hard),
		 100 * RFS_BLOCK_BYTES);
	CHECK_EQ(le64_to_cpu(of(fs, RFS_QUOTA_GROUP, 3000000000U).inodes_hard),
		 6);
	CHECK_EQ(of(fs, RFS_QUOTA_USER, BOB).space_hard, 0);
	CHECK_EQ(rfs_quota_grace(fs, RFS_QUOTA_GROUP, &space, &inodes), 0);
	CHECK_EQ(space, 77);
	CHECK_EQ(inodes, RFS_QUOTA_GRACE_S);
	check_counted(fs);
	/* counting goes on, as nobody said that it should not */
	CHECK_EQ(put(fs, ino, 1), 0);
	expect(fs, RFS_QUOTA_USER, ALICE, 32, 1);
	end(fs, dev);
}

/* Used without being counted, a volume is counted anew; limits stay. */
TEST(quota_counted_anew)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices);
	struct rfs_report report = { 0 };
	u64 reads;

	CHECK_EQ(put(fs, ino, 0), 0);
	limit(fs, RFS_QUOTA_USER, ALICE, 100, 10);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	reads = dev->reads;
	CHECK_EQ(rfs_quota_on(fs), 0);
	CHECK_EQ(dev->reads, reads);	/* it was counted all the time */
	rfs_quota_off(fs);
	CHECK_EQ(put(fs, ino, RFS_DIRECT), 0);	/* and a node */
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK(!fs->counting);
	CHECK_EQ(rfs_check(fs, &report), 0);
	CHECK_EQ(report.faults, 0);
	CHECK_EQ(rfs_quota_on(fs), 0);
	expect(fs, RFS_QUOTA_USER, ALICE, 3, 1);
	CHECK_EQ(le64_to_cpu(of(fs, RFS_QUOTA_USER, ALICE).inodes_hard), 10);
	check_counted(fs);
	end(fs, dev);
}

TEST(quota_hard)
{
	struct rfs_new how = alices;
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices), others, i;
	u64 from = 1000;

	limit(fs, RFS_QUOTA_USER, ALICE, 13, 2);
	/* one block, and then a node for each: the limit is met, not passed */
	for (i = 0; put(fs, ino, 300 * i) == 0; i++)
		CHECK(le64_to_cpu(of(fs, RFS_QUOTA_USER, ALICE).blocks) <= 13);
	CHECK_EQ(i, 6);		/* 6 blocks, 6 nodes */
	CHECK_EQ(put(fs, ino, 300 * i), -EDQUOT);
	CHECK_EQ(put(fs, ino, 1), 0);
	expect(fs, RFS_QUOTA_USER, ALICE, 13, 1);
	CHECK_EQ(put(fs, ino, 1), 0);
	CHECK_EQ(put(fs, ino, 2), -EDQUOT);
	CHECK_EQ(rfs_preallocate(fs, ino, &from, 1010), -EDQUOT);
	CHECK_EQ(rfs_xattr_set(fs, ino, "user.a", "x", 1, 0, 0), -EDQUOT);
	/* inodes */
	create(fs, "g", &alices);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "h", &alices, &others), -EDQUOT);
	CHECK_EQ(rfs_rename(fs, RFS_ROOT_INO, "f", RFS_ROOT_INO, "w",
			    RFS_REC_WHITEOUT, &how), -EDQUOT);
	how.uid = BOB;
	others = create(fs, "bobs", &how);
	CHECK_EQ(chown_to(fs, others, ALICE, STAFF, 0), -EDQUOT);
	remove_file(fs, "g");
	CHECK_EQ(chown_to(fs, others, ALICE, STAFF, 0), 0);
	/* blocks come along */
	CHECK_EQ(chown_to(fs, others, BOB, STAFF, 0), 0);
	CHECK_EQ(put(fs, others, 0), 0);
	CHECK_EQ(chown_to(fs, others, ALICE, STAFF, 0), -EDQUOT);
	/* a group's limit is asked for too, unless nobody enforces it */
	limit(fs, RFS_QUOTA_GROUP, STAFF, 15, 0);
	CHECK_EQ(put(fs, others, RFS_DIRECT), -EDQUOT);
	fs->enforced = 1 << RFS_QUOTA_USER;
	CHECK_EQ(put(fs, others, RFS_DIRECT), 0);
	CHECK_EQ(put(fs, ino, 2), -EDQUOT);
	check_counted(fs);
	end(fs, dev);
}

/* Whoever has an entry can be given files and limits when nothing more goes in. */
TEST(quota_full)
{
	struct rfs_quota limits = { .inodes_hard = cpu_to_le64(9) };
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices), more;

	limit(fs, RFS_QUOTA_USER, BOB, 5, 0);
	fs->user_blocks = rfs_used(fs);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "g", &alices, &more), -ENOSPC);
	CHECK_EQ(chown_to(fs, ino, BOB, STAFF, 0), 0);
	CHECK_EQ(chown_to(fs, ino, 3000000000U, STAFF, 0), -ENOSPC);
	CHECK_EQ(rfs_quota_set(fs, RFS_QUOTA_USER, BOB, &limits), 0);
	CHECK_EQ(rfs_quota_set(fs, RFS_QUOTA_USER, 3000000000U, &limits), -ENOSPC);
	expect(fs, RFS_QUOTA_USER, BOB, 0, 1);
	CHECK_EQ(le64_to_cpu(of(fs, RFS_QUOTA_USER, BOB).inodes_hard), 9);
	check_counted(fs);
	end(fs, dev);
}

/* Index nodes that a block takes are told before it takes them. */
TEST(quota_nodes)
{
	static const u64 at[] = { 0, 7, 1, 251, 6, 252, 253, 5, 63503, 63504, 70000,
				  16003008, 16003009, 5000000, 4032758015ULL };
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u32 i, first, ino;
	u64 before, nodes;
	char name[8];

	for (first = 0; first < sizeof(at) / sizeof(*at); first++) {
		sprintf(name, "f%u", first);
		ino = create(fs, name, &alices);
		for (i = 0; i < sizeof(at) / sizeof(*at); i++) {
			u64 block_nr = at[(first + i) % (sizeof(at) /
							 sizeof(*at))];

			CHECK_EQ(rfs_map_needs(fs, ino, block_nr, block_nr + 1,
					       &nodes), 0);
			CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
			before = le64_to_cpu(di->blocks);
			CHECK_EQ(put(fs, ino, block_nr), 0);
			CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
			CHECK_EQ(le64_to_cpu(di->blocks), before + 1 + nodes);
			if (i == 6)
				CHECK_EQ(rfs_checkpoint(fs, 0), 0);
		}
	}
	check_counted(fs);
	end(fs, dev);
}

static bool privileged;

static bool may_exceed(void *dev)
{
	(void)dev;
	return privileged;
}

TEST(quota_soft)
{
	struct rfs_quota q = { .space_soft = cpu_to_le64(3 * RFS_BLOCK_BYTES),
			       .inodes_soft = cpu_to_le64(1) };
	struct rfs_dev_ops ops = memdev_ops;
	struct rfs_quota grace = { .space_end = cpu_to_le64(100),
				   .inodes_end = cpu_to_le64(50) };
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices), i;

	ops.may_exceed = may_exceed;
	fs->ops = &ops;
	CHECK_EQ(rfs_quota_set(fs, RFS_QUOTA_USER, RFS_QUOTA_GRACE, &grace), 0);
	CHECK_EQ(rfs_quota_set(fs, RFS_QUOTA_USER, ALICE, &q), 0);
	for (i = 0; i < 2; i++)
		CHECK_EQ(put(fs, ino, RFS_DIRECT * i), 0);
	CHECK_EQ(of(fs, RFS_QUOTA_USER, ALICE).space_end, 0);
	CHECK_EQ(put(fs, ino, 2), 0);
	q = of(fs, RFS_QUOTA_USER, ALICE);	/* with the node it is over */
	CHECK(le64_to_cpu(q.space_end) >= dev->time / 1000000000 + 99);
	CHECK_EQ(q.inodes_end, 0);
	CHECK_EQ(put(fs, ino, 3), 0);
	CHECK_EQ(of(fs, RFS_QUOTA_USER, ALICE).space_end, q.space_end);
	dev->time += 102 * 1000000000ULL;
	CHECK_EQ(put(fs, ino, 4), -EDQUOT);
	privileged = true;
	CHECK_EQ(put(fs, ino, 4), 0);
	privileged = false;
	/* below it, all begins anew */
	CHECK_EQ(rfs_truncate(fs, ino, 2 * RFS_BLOCK_BYTES, false), 0);
	CHECK_EQ(of(fs, RFS_QUOTA_USER, ALICE).space_end, 0);
	CHECK_EQ(put(fs, ino, 4), 0);
	/* inodes */
	create(fs, "g", &alices);
	CHECK(of(fs, RFS_QUOTA_USER, ALICE).inodes_end != 0);
	create(fs, "h", &alices);
	dev->time += 52 * 1000000000ULL;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "i", &alices, &ino), -EDQUOT);
	remove_file(fs, "g");
	remove_file(fs, "h");
	CHECK_EQ(of(fs, RFS_QUOTA_USER, ALICE).inodes_end, 0);
	check_counted(fs);
	end(fs, dev);
}

/* Blocks that are reserved for pages count, and go along to a new owner. */
TEST(quota_held)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices), i;
	struct rfs_quota q;
	u64 rsv;
	bool hole;

	CHECK_EQ(put(fs, ino, RFS_DIRECT), 0);	/* and a node */
	limit(fs, RFS_QUOTA_USER, ALICE, 6, 0);
	limit(fs, RFS_QUOTA_USER, BOB, 5, 0);
	for (i = 1; i <= 4; i++)
		CHECK_EQ(rfs_reserve(fs, ino, i, &hole), 0);
	CHECK_EQ(rfs_reserve(fs, ino, 5, &hole), -EDQUOT);
	CHECK_EQ(rfs_quota_get(fs, RFS_QUOTA_USER, ALICE, &q, &rsv), 0);
	CHECK_EQ(rsv, 4);
	CHECK_EQ(chown_to(fs, ino, BOB, STAFF, 4), -EDQUOT);
	rfs_unreserve(fs, ino, 1, 1);
	CHECK_EQ(chown_to(fs, ino, BOB, STAFF, 3), 0);
	CHECK_EQ(rfs_quota_get(fs, RFS_QUOTA_USER, ALICE, &q, &rsv), 0);
	CHECK_EQ(rsv + le64_to_cpu(q.blocks), 0);
	CHECK_EQ(rfs_quota_get(fs, RFS_QUOTA_USER, BOB, &q, &rsv), 0);
	CHECK_EQ(rsv, 3);
	CHECK_EQ(le64_to_cpu(q.blocks), 2);
	rfs_unreserve(fs, ino, 3, 3);
	for (i = 0; i < RFS_QUOTA_RSV_HASH; i++)
		CHECK(!fs->quota_rsv[i]);
	check_counted(fs);
	end(fs, dev);
}

TEST(quota_listed)
{
	static const u32 ids[] = { 0, 1, 62, 63, 64, 1000, 65534, 3000000000U,
				   RFS_QUOTA_GRACE - 1 };
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 round, i, id, n = sizeof(ids) / sizeof(*ids);

	for (i = 1; i < n; i++)	/* the root directory is user 0's */
		limit(fs, RFS_QUOTA_USER, ids[n - i], 1, 1);
	limit(fs, RFS_QUOTA_GROUP, 100, 1, 1);
	limit(fs, RFS_QUOTA_USER, RFS_QUOTA_GRACE, 1, 1);
	/* in memory only, then on the medium, then some of both */
	for (round = 0; round < 3; round++) {
		for (i = 0, id = 0; i < n; i++, id++) {
			CHECK_EQ(rfs_quota_next(fs, RFS_QUOTA_USER, &id), 0);
			CHECK_EQ(id, ids[i]);
		}
		id = ids[n - 1] + 1;
		CHECK_EQ(rfs_quota_next(fs, RFS_QUOTA_USER, &id), -ENOENT);
		id = 1;
		CHECK_EQ(rfs_quota_next(fs, RFS_QUOTA_GROUP, &id), 0);
		CHECK_EQ(id, 100);
		check_counted(fs);
		rfs_cache_trim(fs, 0);
		if (round == 1)
			limit(fs, RFS_QUOTA_USER, 64, 2, 2);
	}
	end(fs, dev);
}

/* What fsck finds, and makes right without taking anything away */
TEST(quota_repaired)
{
	struct rfs_report found = { 0 }, made = { 0 };
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices);
	struct rfs_quota *q;
	struct rfs_buf *buf;

	CHECK_EQ(put(fs, ino, 0), 0);
	limit(fs, RFS_QUOTA_USER, ALICE, 100, 10);
	CHECK_EQ(rfs_quota_entry(fs, RFS_QUOTA_USER, ALICE, false, &q, &buf),
		 0);
	q->blocks = cpu_to_le64(9);
	q[1].inodes = cpu_to_le64(3);	/* of nobody */
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_check(fs, &found), 0);
	CHECK_EQ(found.faults, 2);
	CHECK_EQ(rfs_repair(fs, &made), 0);
	CHECK_EQ(made.faults, 2);
	CHECK_EQ(made.losses, 0);
	check_counted(fs);
	expect(fs, RFS_QUOTA_USER, ALICE, 1, 1);
	CHECK_EQ(le64_to_cpu(of(fs, RFS_QUOTA_USER, ALICE).inodes_hard), 10);
	/* less than nothing: not believed any more, counted at the next mount */
	CHECK_EQ(rfs_quota_entry(fs, RFS_QUOTA_USER, ALICE, false, &q, &buf),
		 0);
	q->blocks = 0;
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK(!fs->counting);
	CHECK_EQ(rfs_quota_on(fs), 0);
	check_counted(fs);
	fs->miscounted = true;	/* as recovery may find it */
	CHECK_EQ(rfs_quota_on(fs), 0);
	CHECK(!fs->miscounted);
	end(fs, dev);
}

/* Blocks of quotas move when their zones are cleaned. */
TEST(quota_cleaned)
{
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices), i, k;

	limit(fs, RFS_QUOTA_USER, 70000, 17, 18);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	for (i = 0; i < 60; i++) {
		for (k = 0; k < 100; k++)
			CHECK_EQ(put(fs, ino, k), 0);
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	}
	for (i = 0; i < 20 && !rfs_clean(fs, RFS_CLEAN_NOW); i++)
		CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK(fs->stats.victims > 0);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK_EQ(le64_to_cpu(of(fs, RFS_QUOTA_USER, 70000).inodes_hard), 18);
	expect(fs, RFS_QUOTA_USER, ALICE, 101, 1);
	check_counted(fs);
	end(fs, dev);
}

/* What fallocate takes for index nodes is told before, too. */
TEST(quota_ranges)
{
	static const struct { u64 from, to; bool first; } range[] = {
		{ 0, 1, false }, { 0, 7, false }, { 3, 8, false },
		{ 5, 7, true }, { 6, 8, true }, { 7, 9, true },
		{ 0, 10, false }, { 0, 300, false }, { 3, 300, false },
		{ 0, 300, true }, { 300, 310, false }, { 300, 310, true },
		{ 250, 254, true }, { 0, 990, false }, { 100, 4000, true },
		{ 62000, 63504, false }, { 70000, 74000, true },
	};
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	char name[8];
	u32 i, ino;

	for (i = 0; i < sizeof(range) / sizeof(*range); i++) {
		u64 from = range[i].from, nodes, before, holes;

		sprintf(name, "f%u", i);
		ino = create(fs, name, &alices);
		if (range[i].first)
			CHECK_EQ(put(fs, ino, 0), 0);
		CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
		before = le64_to_cpu(di->blocks);
		CHECK_EQ(rfs_map_needs(fs, ino, from, range[i].to, &nodes), 0);
		holes = range[i].to - from - (range[i].first && !from);
		CHECK_EQ(rfs_preallocate(fs, ino, &from, range[i].to), 0);
		CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
		CHECK_EQ(le64_to_cpu(di->blocks), before + holes + nodes);
		remove_file(fs, name);
	}
	check_counted(fs);
	end(fs, dev);
}

/* A block of quotas that cannot be read takes no file with it. */
TEST(quota_unreadable)
{
	struct rfs_report found = { 0 }, made = { 0 };
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices);
	struct rfs_buf *buf;
	u64 addr;

	CHECK_EQ(put(fs, ino, 0), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_block_get(fs, RFS_QUOTA_INO, RFS_QUOTA,
			       RFS_QUOTA_OFF(RFS_QUOTA_USER, ALICE), &buf), 0);
	addr = buf->addr;
	CHECK_EQ(put(fs, ino, 1), 0);
	limit(fs, RFS_QUOTA_USER, ALICE, 9, 9);
	CHECK_EQ(rfs_fsync(fs, ino), 0);
	CHECK_EQ(rfs_log_sync(fs), 0);
	rfs_unmount_nosync(fs);
	dev->page[addr].state = MEM_TORN;
	fs = mount(dev);
	CHECK_EQ(rfs_read(fs, ino, 1, block), 0);
	CHECK_EQ(put(fs, ino, 2), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_check(fs, &found), 0);
	CHECK_EQ(found.faults, 2);
	CHECK_EQ(rfs_repair(fs, &made), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	memset(&found, 0, sizeof(found));
	CHECK_EQ(rfs_check(fs, &found), 0);
	CHECK_EQ(found.faults, 0);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_quota_on(fs), 0);
	expect(fs, RFS_QUOTA_USER, ALICE, 3, 1);
	check_counted(fs);
	end(fs, dev);
}

/* No room to count many owners: the volume is as usable as before. */
TEST(quota_no_room)
{
	struct memdev *dev = new_dev();
	struct rfs_fs *fs = mount(dev);
	struct rfs_new how = alices;
	u32 ino = create(fs, "big", &alices), other, i;
	char name[20];
	u64 at = 0;

	for (i = 0; i < 600; i++) {
		how.uid = 0x9e3779b9U * (i + 1);
		how.gid = how.uid;
		sprintf(name, "f%u", i);
		CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, name, &how, &other), 0);
	}
	/* for some of them there is */
	while (fs->user_blocks - rfs_used(fs) > 400)
		CHECK_EQ(put(fs, ino, at++), 0);
	CHECK_EQ(rfs_unmount(fs), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_quota_on(fs), -ENOSPC);
	CHECK(!fs->counting && !fs->read_only);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(put(fs, ino, 5), 0);
	CHECK_EQ(rfs_truncate(fs, ino, 5 * RFS_BLOCK_BYTES, false), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(put(fs, ino, 5), 0);
	/* there is room now */
	CHECK_EQ(rfs_quota_on(fs), 0);
	expect(fs, RFS_QUOTA_GROUP, 0x9e3779b9U, 0, 1);
	check_counted(fs);
	end(fs, dev);
}

/* An end of grace that was set stays so over a power cut. */
TEST(quota_grace_kept)
{
	struct rfs_quota q = { .space_soft = cpu_to_le64(RFS_BLOCK_BYTES) };
	struct memdev *dev;
	struct rfs_fs *fs = mount_new(&dev);
	u32 ino = create(fs, "f", &alices), i;

	for (i = 0; i < 5; i++)
		CHECK_EQ(put(fs, ino, i), 0);
	q.space_end = cpu_to_le64(5);
	CHECK_EQ(rfs_quota_set(fs, RFS_QUOTA_USER, ALICE, &q), 0);
	CHECK_EQ(rfs_log_sync(fs), 0);
	rfs_unmount_nosync(fs);
	fs = mount(dev);
	CHECK_EQ(le64_to_cpu(of(fs, RFS_QUOTA_USER, ALICE).space_end), 5);
	CHECK_EQ(rfs_truncate(fs, ino, 0, false), 0);
	CHECK_EQ(of(fs, RFS_QUOTA_USER, ALICE).space_end, 0);
	check_counted(fs);
	end(fs, dev);
}
