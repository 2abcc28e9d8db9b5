// SPDX-License-Identifier: GPL-2.0-or-later
/* Ranges that are taken out of a file, and put into it. */
#include "check.h"
#include "clean.h"
#include "memdev.h"
#include "space/space.h"
#include "home/home.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define CAP		250
#define ZONES		48
#define MOST		700	/* blocks of a file */
#define ROW		RFS_FANOUT

static const struct rfs_geometry geometry = {
	.zones = ZONES, .zone_blocks = 256, .oob_bytes = 64,
};
static const struct rfs_id id = { "0123456789abcde", "a key for hashes",
				  "a key to be safe", .runs = true,
				  .pieces = true };
static const struct rfs_new file = { .mode = S_IFREG | 0644 };

/* What the file has to be */
static struct model {
	u8 bytes[MOST * RFS_BLOCK_BYTES];
	u8 kind[MOST];		/* RFS_PTR_HOLE, RFS_PTR_PREALLOC, else RFS_PTR_BLOCK */
	u64 size;
} model;

static u64 seed;

static u32 pick(u32 n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(seed >> 33) % n;
}

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
static struct rfs_fs *mount_new(bool hybrid, struct memdev **dev, u32 *ino)
{
	struct rfs_fs *fs;

	*dev = memdev_new(&geometry, CAP, 320 << 20, true);
	if (hybrid)
		memdev_add_slow(*dev, 4 * ZONES * CAP);
	CHECK_EQ(rfs_mkfs(&memdev_ops, *dev, &(*dev)->geo, &id, "test"), 0);
	fs = mount(*dev);
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "f", &file, ino), 0);
	memset(&model, 0, sizeof(model));
	return fs;
}

static void end(struct rfs_fs *fs, struct memdev *dev)
{
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

static u64 size_of(struct rfs_fs *fs, u32 ino)
{
	struct rfs_dinode *di;
	struct rfs_buf *buf;

	CHECK_EQ(rfs_iget(fs, ino, &di, &buf), 0);
	return le64_to_cpu(di->size);
}

static u8 kind_of(struct rfs_fs *fs, u32 ino, u64 block)
{
	struct rfs_ptr ptr;

	CHECK_EQ(rfs_map_get(fs, ino, block, &ptr), 0);
	return ptr.kind == RFS_PTR_HOLE || ptr.kind == RFS_PTR_PREALLOC ?
	       ptr.kind : RFS_PTR_BLOCK;
}

static void compare(struct rfs_fs *fs, u32 ino)
{
	u8 block[RFS_BLOCK_BYTES];
	u64 i;

	CHECK_EQ(size_of(fs, ino), model.size);
	for (i = 0; i < MOST; i++) {
		CHECK_EQ(rfs_read(fs, ino, i, block), 0);
		if (memcmp(block, model.bytes + i * RFS_BLOCK_BYTES,
			   RFS_BLOCK_BYTES))
			FAIL("block %llu is %u, must be %u",
			     (unsigned long long)i, block[0],
			     model.bytes[i * RFS_BLOCK_BYTES]);
		if (kind_of(fs, ino, i) != model.kind[i])
			FAIL("block %llu is of kind %u, must be of %u",
			     (unsigned long long)i, kind_of(fs, ino, i),
			     model.kind[i]);
	}
}

/* Writes a row where it is to be, and waits until it is durable there. */
static void write_row(struct rfs_fs *fs, const struct rfs_shift *s)
{
	static u8 bytes[ROW][RFS_BLOCK_BYTES];
	u64 last = (s->to + s->row - 1) * RFS_BLOCK_BYTES;
	const void *data[ROW];
	u32 i;

	for (i = 0; i < s->row; i++) {
		CHECK_EQ(rfs_read(fs, s->ino, s->from + i, bytes[i]), 0);
		data[i] = bytes[i];
	}
	CHECK_EQ(rfs_write(fs, s->ino, s->to, s->row, data,
			   min_t(u64, RFS_BLOCK_BYTES,
				 size_of(fs, s->ino) - last)), 0);
	CHECK_EQ(rfs_fsync(fs, s->ino), 0);
}

static void step(struct rfs_fs *fs, const struct rfs_shift *s)
{
	u64 at = s->at;

	switch (s->what) {
	case RFS_SHIFT_WRITE:
		CHECK(s->at == s->to && s->blocks == s->row);
		write_row(fs, s);
		break;
	case RFS_SHIFT_RESERVE:
		CHECK_EQ(rfs_preallocate(fs, s->ino, &at, at + s->blocks), 0);
		CHECK_EQ(at, s->at + s->blocks);
		break;
	case RFS_SHIFT_ZERO:
	case RFS_SHIFT_PUNCH:
		CHECK_EQ(rfs_punch(fs, s->ino, at, at + s->blocks,
				   s->what == RFS_SHIFT_ZERO), 0);
		break;
	}
}

/* So many steps are done. True says that the gap is where it is to be. */
static bool move(struct rfs_fs *fs, struct rfs_shift *s, u32 steps)
{
	int ret;

	while ((ret = rfs_shift_next(fs, s)) && steps--) {
		if (ret == -EAGAIN)
			continue;
		CHECK_EQ(ret, 1);
		CHECK(s->row && s->row <= s->most);
		step(fs, s);
	}
	return !ret;
}

static void collapse(struct rfs_fs *fs, u32 ino, u64 from, u64 n, u32 most)
{
	u64 size = size_of(fs, ino);
	struct rfs_shift s = { .ino = ino, .most = most, .gap = from, .n = n,
		.end = DIV_ROUND_UP(size, RFS_BLOCK_BYTES) - n };

	CHECK(move(fs, &s, ~0U));
	CHECK_EQ(rfs_truncate(fs, ino, size - n * RFS_BLOCK_BYTES, false), 0);
}

static void insert(struct rfs_fs *fs, u32 ino, u64 from, u64 n, u32 most)
{
	u64 size = size_of(fs, ino);
	struct rfs_shift s = { .ino = ino, .most = most, .end = from, .n = n,
		.gap = DIV_ROUND_UP(size, RFS_BLOCK_BYTES) };

	CHECK_EQ(rfs_truncate(fs, ino, size + n * RFS_BLOCK_BYTES, true), 0);
	CHECK(move(fs, &s, ~0U));
}

static void model_gap(u64 from, u64 n)
{
	memset(model.bytes + from * RFS_BLOCK_BYTES, 0, n * RFS_BLOCK_BYTES);
	memset(model.kind + from, RFS_PTR_HOLE, n);
}

static void model_collapse(u64 from, u64 n)
{
	u64 left = MOST - from - n;

	memmove(model.bytes + from * RFS_BLOCK_BYTES,
		model.bytes + (from + n) * RFS_BLOCK_BYTES,
		left * RFS_BLOCK_BYTES);
	memmove(model.kind + from, model.kind + from + n, left);
	model_gap(MOST - n, n);
	model.size -= n * RFS_BLOCK_BYTES;
}

static void model_insert(u64 from, u64 n)
{
	u64 left = MOST - from - n;

	memmove(model.bytes + (from + n) * RFS_BLOCK_BYTES,
		model.bytes + from * RFS_BLOCK_BYTES, left * RFS_BLOCK_BYTES);
	memmove(model.kind + from + n, model.kind + from, left);
	model_gap(from, n);
	model.size += n * RFS_BLOCK_BYTES;
}

/* A row of blocks of one value, or holes, or of blocks that are preallocated. */
static void put(struct rfs_fs *fs, u32 ino, u64 from, u64 n, u8 kind)
{
	static u8 bytes[RFS_BLOCK_BYTES];
	const void *data = bytes;
	u64 i, at = from;

	memset(bytes, 1 + pick(255), sizeof(bytes));
	for (i = from; kind == RFS_PTR_BLOCK && i < from + n; i++) {
		CHECK_EQ(rfs_write(fs, ino, i, 1, &data, RFS_BLOCK_BYTES), 0);
		memcpy(model.bytes + i * RFS_BLOCK_BYTES, bytes, sizeof(bytes));
	}
	if (kind == RFS_PTR_PREALLOC) {
		CHECK_EQ(rfs_preallocate(fs, ino, &at, from + n), 0);
		CHECK_EQ(rfs_punch(fs, ino, from, from + n, true), 0);
	}
	if (kind == RFS_PTR_HOLE)
		CHECK_EQ(rfs_punch(fs, ino, from, from + n, false), 0);
	if (kind != RFS_PTR_BLOCK)
		model_gap(from, n);
	memset(model.kind + from, kind, n);
}

/* Some bytes that are a piece */
static void put_some(struct rfs_fs *fs, u32 ino, u64 off, u32 n)
{
	CHECK(off % RFS_BLOCK_BYTES + n <= RFS_BLOCK_BYTES);
	memset(model.bytes + off, 1 + pick(255), n);
	CHECK_EQ(rfs_write_bytes(fs, ino, off, model.bytes + off, n), 0);
	model.kind[off / RFS_BLOCK_BYTES] = RFS_PTR_BLOCK;
}

static void make(struct rfs_fs *fs, u32 ino, u64 blocks, u32 some)
{
	static const u8 kind[] = { RFS_PTR_BLOCK, RFS_PTR_BLOCK, RFS_PTR_HOLE,
				   RFS_PTR_PREALLOC };
	u64 at, n;

	for (at = 0; at < blocks; at += n) {
		n = 1 + pick(pick(2) ? 4 : some);
		n = min(n, blocks - at);
		put(fs, ino, at, n, kind[pick(4)]);
	}
	for (n = 0; n < 5; n++)
		put_some(fs, ino, pick(blocks) * RFS_BLOCK_BYTES + pick(2000),
			 1 + pick(200));
	model.size = (blocks - 1) * RFS_BLOCK_BYTES + 1 + pick(RFS_BLOCK_BYTES);
	memset(model.bytes + model.size, 0,
	       blocks * RFS_BLOCK_BYTES - model.size);
	CHECK_EQ(rfs_truncate(fs, ino, model.size,
			      model.size > size_of(fs, ino)), 0);
}

/* Some blocks are at home then, too, and some there alone. */
static void give_up(struct rfs_fs *fs)
{
	u32 most = 100;
	int ret;

	CHECK_EQ(rfs_write_home(fs, &most), 0);
	CHECK_EQ(rfs_make_room_to_free(fs), 0);
	ret = rfs_spare(fs, fs->user_blocks - rfs_used(fs) + 1 + pick(50), 0,
			fs->user_blocks / RFS_SPARE, rfs_checkpoint);
	CHECK(!ret || ret == -ENOSPC);
}

static void shift_at_random(bool hybrid, u32 first, u32 rounds)
{
	struct memdev *dev;
	u64 blocks, from, n;
	struct rfs_fs *fs;
	u32 ino, round, i;

	for (round = first; round < first + rounds; round++) {
		seed = round;
		fs = mount_new(hybrid, &dev, &ino);
		make(fs, ino, 1 + pick(round % 3 ? 500 : 12), 1 + pick(90));
		compare(fs, ino);
		for (i = 0; i < 5; i++) {
			blocks = DIV_ROUND_UP(model.size, RFS_BLOCK_BYTES);
			from = pick(blocks);
			n = 1 + pick(pick(2) ? 3 : 100);
			if (pick(4) == 0) {
				CHECK_EQ(rfs_unmount(fs), 0);
				fs = mount(dev);
			}
			if (hybrid)
				give_up(fs);
			if (pick(2) && from + n < blocks) {
				collapse(fs, ino, from, n, 1 + pick(ROW));
				model_collapse(from, n);
			} else if (blocks + n <= MOST) {
				insert(fs, ino, from, n, 1 + pick(ROW));
				model_insert(from, n);
			}
			compare(fs, ino);
			check_clean(fs);
		}
		/* and so it is after a power cut */
		CHECK_EQ(rfs_fsync(fs, ino), 0);
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		compare(fs, ino);
		check_clean(fs);
		end(fs, dev);
	}
}

TEST(shift_is_what_a_copy_is)
{
	shift_at_random(false, 1, 30);
}

TEST(shift_on_a_hybrid_volume)
{
	shift_at_random(true, 100, 6);
}

/* Whoever is stopped leaves all that there is to keep, before the gap and behind it. */
TEST(shift_that_is_stopped)
{
	struct rfs_shift s;
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 ino, steps;
	u64 blocks;
	bool over;

	for (steps = 0, over = false; !over; steps++) {
		seed = 7;
		fs = mount_new(false, &dev, &ino);
		make(fs, ino, 300, 20);
		blocks = DIV_ROUND_UP(model.size, RFS_BLOCK_BYTES);
		s = (struct rfs_shift){ .ino = ino, .most = 40, .gap = 11,
			.n = 9, .end = blocks - 9 };
		over = move(fs, &s, steps);
		CHECK_EQ(rfs_fsync(fs, ino), 0);
		rfs_unmount_nosync(fs);
		fs = mount(dev);
		CHECK_EQ(size_of(fs, ino), model.size);
		/* the gap is taken out where it is now, and all is as if nobody had been stopped */
		collapse(fs, ino, s.gap, 9, 40);
		model_collapse(11, 9);
		compare(fs, ino);
		check_clean(fs);
		end(fs, dev);
	}
	CHECK(steps > 10);
}

/* What is taken out has made room for what moves there. */
TEST(shift_of_a_full_volume)
{
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 ino, other;
	u64 at = 0;
	int ret;

	seed = 3;
	fs = mount_new(false, &dev, &ino);
	put(fs, ino, 0, 100, RFS_PTR_BLOCK);
	put(fs, ino, 200, 300, RFS_PTR_BLOCK);
	model.size = 500 * RFS_BLOCK_BYTES;
	CHECK_EQ(rfs_create(fs, RFS_ROOT_INO, "other", &file, &other), 0);
	do
		ret = rfs_preallocate(fs, other, &at,
				      at + max_t(u64, 1, rfs_available(fs)));
	while (!ret);
	CHECK_EQ(ret, -ENOSPC);
	collapse(fs, ino, 0, 20, ROW);
	model_collapse(0, 20);
	compare(fs, ino);
	check_clean(fs);
	end(fs, dev);
}

/* Others have their turn while much of a file that has nothing is looked at. */
TEST(shift_of_a_sparse_file)
{
	struct rfs_shift s = { .most = ROW, .gap = 0, .n = 3 };
	u32 turns = 0, steps = 0;
	struct memdev *dev;
	struct rfs_fs *fs;
	int ret;

	seed = 5;
	fs = mount_new(false, &dev, &s.ino);
	put(fs, s.ino, 3, 1, RFS_PTR_BLOCK);
	model.size = 1ULL << 32;
	CHECK_EQ(rfs_truncate(fs, s.ino, model.size, true), 0);
	s.end = model.size / RFS_BLOCK_BYTES - s.n;
	while ((ret = rfs_shift_next(fs, &s))) {
		turns += ret == -EAGAIN;
		steps += ret == 1;
		if (ret == 1)
			step(fs, &s);
	}
	/* the block was written, and given up where it was */
	CHECK_EQ(steps, 2);
	CHECK(turns > 10);
	model_collapse(0, 3);
	model.size += 3 * RFS_BLOCK_BYTES;
	compare(fs, s.ino);
	end(fs, dev);
}
