// SPDX-License-Identifier: GPL-2.0-or-later
/* What "Room" of doc/design.md says where pages were promised room that others may take. */
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

#define CAP	64
#define ZONES	800
#define WAYS	32
#define SPARE	70	/* zones that are free beside those kept: pages are promised them */
#define APART	7	/* blocks: no zone dies when those between are overwritten */

static const struct rfs_geometry geometry = {
	.zones = ZONES, .zone_blocks = CAP, .oob_bytes = 64,
};
static const struct rfs_id id = { "0123456789abcde", "a key for hashes",
				  "a key to be safe", .ways = WAYS };
static const struct rfs_policy one_group = { .groups = 1 };
static const struct rfs_new file = { .mode = S_IFREG | 0644 };
static u8 block[RFS_BLOCK_BYTES];

static void broken(const struct rfs_fs *fs, const char *what)
{
	FAIL("%s: %u dirty, %u of %u zones free", what, fs->dirty.count,
	     fs->free_zones, fs->low_zones);
}

static struct rfs_fs *mount(struct memdev *dev)
{
	struct rfs_fs *fs;

	rfs_broken = broken;
	CHECK_EQ(rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs), 0);
	rfs_policy_set(fs, &one_group);
	return fs;
}

/* Writes a block that was promised room, as the module's writeback does. */
static void send(struct rfs_fs *fs, u32 ino, u64 at)
{
	const void *data = block;
	struct rfs_txn txn;
	struct rfs_oob oob;
	u32 part = 1, stream;
	u64 addr;
	int ret;

	while ((ret = rfs_make_room_to_free(fs)) == -ENOBUFS)
		CHECK_EQ(rfs_compact_due(fs, false) ?
			 rfs_compact(fs, rfs_checkpoint) :
			 rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(ret, 0);
	CHECK_EQ(rfs_txn_begin(fs, ino, at, 1, RFS_BLOCK_BYTES, rfs_now(fs),
			       &txn), 0);
	CHECK_EQ(rfs_txn_fill(fs, &txn, 0, &part, &oob, &stream), 0);
	CHECK_EQ(rfs_append(fs, stream, part, &data, &oob, &addr), 0);
	CHECK_EQ(rfs_txn_done(fs, &oob, 1, &addr), 0);
	rfs_unreserve(fs, ino, 1, 0);
}

/*
 * A group has begun a zone on each way, and pages that are to be sent count on what is
 * left in these; they take summaries, too, a zone of them. Who lacks room has data
 * cleaned meanwhile, which closes zones.
 */
TEST(closed_zones_leave_promised_pages_their_room)
{
	struct memdev *dev = memdev_new(&geometry, CAP, 640 << 20, true);
	const void *data = block;
	u32 ino, blocks = 0, promised = 0, i;
	struct rfs_fs *fs;
	bool hole;
	int ret;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geometry, &id, "test"), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	while (fs->free_zones > rfs_zones_kept(fs) + SPARE)
		CHECK_EQ(rfs_write(fs, ino, blocks++, 1, &data,
				   RFS_BLOCK_BYTES), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	fs->threaded = true;
	while (!(ret = rfs_reserve(fs, ino, APART * promised, &hole)))
		promised++;
	CHECK_EQ(ret, -EAGAIN);
	CHECK(APART * promised < blocks);
	for (i = 0; i < WAYS; i++)
		send(fs, ino, APART * i);
	CHECK_EQ(rfs_clean_some(fs, RFS_CLEAN_HARD), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	for (; i < promised; i++)
		send(fs, ino, APART * i);
	fs->threaded = false;
	CHECK_EQ(rfs_write(fs, ino, 1, 1, &data, RFS_BLOCK_BYTES), 0);
	check_clean(fs);
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}
