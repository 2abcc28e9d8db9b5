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

/*
 * A check-point has written the leaf of a copy that was collected before it. The leaf becomes dirty
 * again as the copy is appended, where that leaves what is kept; else the block stays where it is.
 */
TEST(copies_under_way_are_admitted_again)
{
	struct memdev *dev = memdev_new(&geometry, CAP, 64 << 20, true);
	const void *data = block;
	static struct rfs_copy copy;
	struct rfs_zone_info *zone;
	struct rfs_ptr ptr;
	struct rfs_fs *fs;
	u32 ino;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geometry, &id, "test"), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	CHECK_EQ(rfs_write(fs, ino, 0, 1, &data, RFS_BLOCK_BYTES), 0);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_map_get(fs, ino, 0, &ptr), 0);
	copy.oob[0].ino = cpu_to_le32(ino);
	copy.from[0] = rfs_ptr_flash(&ptr);
	zone = &fs->zone[copy.from[0] / CAP];

	copy.n = 1;
	fs->early_blocks = ~0U;		/* so no room is left */
	CHECK_EQ(rfs_copy_begin(fs, &copy), 0);
	CHECK_EQ(copy.n, 0);
	CHECK_EQ(fs->dirty.count, 0);
	CHECK(zone->left);

	copy.n = 1;
	fs->early_blocks = 0;
	zone->left = false;
	CHECK_EQ(rfs_copy_begin(fs, &copy), 0);
	CHECK_EQ(copy.n, 1);
	CHECK(fs->dirty.count);
	CHECK(!zone->left);
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

/* A volume of which each way has a zone of data with room, one of them 10 pages */
static struct rfs_fs *with_zones_begun(struct memdev *dev)
{
	const void *data = block;
	struct rfs_active_seg *seg;
	struct rfs_fs *fs;
	u32 ino, at = 0;

	CHECK_EQ(rfs_mkfs(&memdev_ops, dev, &geometry, &id, "test"), 0);
	fs = mount(dev);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, &ino), 0);
	seg = &fs->active[RFS_S_DATA][0];
	do {
		CHECK_EQ(rfs_write(fs, ino, at++, 1, &data, RFS_BLOCK_BYTES), 0);
	} while (!seg->zone || rfs_seg_room(fs, seg) != 10);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	return fs;
}

/* What is left of zones is too little for those that are promised: they need one more. */
static void promise_a_zone(struct rfs_fs *fs)
{
	while (rfs_zones_for_reserved(fs) < 1)
		fs->rsv_blocks++;
}

/*
 * Promised pages need a zone, whether what is left of another one is theirs or not: it is closed
 * only where there is one more for copies, since these may take what rounding up has left.
 */
TEST(zones_are_closed_where_copies_have_one)
{
	struct memdev *dev = memdev_new(&geometry, CAP, 64 << 20, true);
	struct rfs_fs *fs = with_zones_begun(dev);
	const struct rfs_active_seg *seg = &fs->active[RFS_S_DATA][0];
	u32 free = fs->free_zones;

	promise_a_zone(fs);
	fs->free_zones = rfs_zones_kept(fs) + rfs_zones_for_reserved(fs) - 1;
	CHECK(rfs_may_close(fs, seg));
	fs->free_zones--;
	CHECK(!rfs_may_close(fs, seg));
	fs->rsv_blocks = 0;
	CHECK(rfs_may_close(fs, seg));
	fs->free_zones = free;
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

/* Another group, or the same on another way, begins no zone that promised pages need. */
TEST(zones_of_promised_pages_are_left)
{
	struct memdev *dev = memdev_new(&geometry, CAP, 64 << 20, true);
	struct rfs_fs *fs = with_zones_begun(dev);
	u32 free, way = 0, next;
	struct rfs_lack lack;
	u64 room;

	rfs_close_groups(fs);
	CHECK_EQ(rfs_checkpoint(fs, 0), 0);	/* it has their summaries */
	while (!fs->active[RFS_S_DATA][way].zone)
		way++;
	next = (way + 1) % WAYS;
	CHECK_EQ(fs->active[RFS_S_DATA][next].zone, 0);
	free = fs->free_zones;
	rfs_room_lacks(fs, 0, &lack);
	room = lack.room;
	promise_a_zone(fs);
	rfs_room_lacks(fs, 0, &lack);
	CHECK_EQ(lack.room, room - rfs_blocks_in(CAP, 0));
	fs->free_zones = rfs_zones_kept(fs) + 1;
	CHECK_EQ(rfs_with_room(fs, RFS_S_DATA + 1), RFS_S_DATA + 1);
	fs->free_zones--;
	CHECK_EQ(rfs_with_room(fs, RFS_S_DATA + 1), RFS_S_DATA);
	fs->free_zones = rfs_zones_narrow(fs) + 1;
	fs->way_next[RFS_S_DATA] = next;
	CHECK_EQ(rfs_way_for(fs, RFS_S_DATA, true), way);
	fs->free_zones++;
	fs->way_next[RFS_S_DATA] = next;
	CHECK_EQ(rfs_way_for(fs, RFS_S_DATA, true), next);
	/* nor does metadata, of which the log has no zone, */
	CHECK_EQ(fs->active[RFS_S_LOG][0].zone, 0);
	fs->free_zones = 3;
	CHECK_EQ(rfs_with_room(fs, RFS_S_LOG), RFS_S_LOG);
	fs->free_zones--;
	CHECK(rfs_with_room(fs, RFS_S_LOG) != RFS_S_LOG);
	/* and no pages make more dirty than there is room for without it */
	fs->rsv_blocks += CAP;
	fs->free_zones = fs->low_zones + rfs_zones_of(fs, fs->rsv_blocks);
	CHECK_EQ(rfs_pages_at_once(fs), fs->dirty_max / 2 / RFS_PARENTS);
	fs->rsv_blocks = 0;
	fs->free_zones = free;
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}
