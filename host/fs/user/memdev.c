// SPDX-License-Identifier: GPL-2.0-or-later
#include <assert.h>
#include <stdio.h>

#include "memdev.h"

#define UNIT	(RFS_BLOCK_BYTES + RFS_OOB_BYTES)
#define PIECE	256	/* units of the arena that are allocated at once */

struct memdev *memdev_new(const struct rfs_geometry *geo, u32 cap,
			  size_t arena, bool note)
{
	struct memdev *dev = calloc(1, sizeof(*dev));
	size_t pages = (size_t)geo->zones * geo->zone_blocks;

	assert(dev);
	dev->geo = *geo;
	dev->cap = cap;
	dev->page = calloc(pages, sizeof(*dev->page));
	dev->wp = calloc(geo->zones, sizeof(*dev->wp));
	dev->cond = calloc(geo->zones, 1);
	dev->open = calloc(geo->zones, sizeof(*dev->open));
	dev->room = arena / UNIT;
	dev->arena = calloc(dev->room / PIECE + 1, sizeof(*dev->arena));
	dev->time = 1000000000;
	if (note) {
		dev->op_room = 1024;
		dev->op = calloc(dev->op_room, sizeof(*dev->op));
	}
	assert(dev->page && dev->wp && dev->cond && dev->open && dev->arena);
	return dev;
}

void memdev_free(struct memdev *dev)
{
	size_t piece;

	for (piece = 0; piece <= dev->room / PIECE; piece++)
		free(dev->arena[piece]);
	free(dev->page);
	free(dev->wp);
	free(dev->cond);
	free(dev->open);
	free(dev->arena);
	free(dev->op);
	free(dev->slow_block);
	free(dev);
}

void memdev_copy(struct memdev *dev, const struct memdev *from)
{
	size_t pages = (size_t)dev->geo.zones * dev->geo.zone_blocks;

	memcpy(dev->page, from->page, pages * sizeof(*dev->page));
	memcpy(dev->wp, from->wp, dev->geo.zones * sizeof(*dev->wp));
	memcpy(dev->cond, from->cond, dev->geo.zones);
	memset(dev->open, 0, dev->geo.zones * sizeof(*dev->open));
	if (dev->slow_block)
		memcpy(dev->slow_block, from->slow_block,
		       dev->slow.blocks * sizeof(*dev->slow_block));
	dev->time = from->time;
	dev->used = 0;
	dev->ops = 0;
	dev->refused = 0;
}

static struct mem_op *note(struct memdev *dev, enum mem_op_type type, u32 zone)
{
	struct mem_op *op;

	if (!dev->op)
		return NULL;
	if (dev->ops == dev->op_room) {
		dev->op_room *= 2;
		dev->op = realloc(dev->op, dev->op_room * sizeof(*dev->op));
		assert(dev->op);
	}
	dev->settled = min(dev->settled, dev->ops);	/* notes begin anew */
	op = &dev->op[dev->ops++];
	memset(op, 0, sizeof(*op));
	op->type = type;
	op->zone = zone;
	op->until = MEM_OPEN;
	op->held = dev->hold;
	return op;
}

static void put(struct memdev *dev, u64 addr, const struct mem_page *page)
{
	u32 zone = addr / dev->geo.zone_blocks;
	u32 off = addr % dev->geo.zone_blocks;

	dev->page[addr] = *page;
	if (page->state != MEM_ABSENT)
		dev->wp[zone] = max(dev->wp[zone], off + 1);
}

/*
 * Returns the arena's next unit. Sanitizers mark all memory that is allocated, so most tests would
 * spend their time on an arena of which they use little.
 */
u8 *memdev_unit(struct memdev *dev)
{
	u8 **piece = &dev->arena[dev->used / PIECE];

	assert(dev->used < dev->room);
	if (!*piece)
		*piece = malloc((size_t)PIECE * UNIT);
	assert(*piece);
	return *piece + dev->used++ % PIECE * UNIT;
}

static void slow_replay(struct memdev *dev, const struct mem_op *op, u8 state)
{
	const u8 **at = &dev->slow_block[op->addr];
	u8 *torn;

	if (state == MEM_OK)
		*at = op->page.data;
	if (state != MEM_TORN)
		return;
	torn = memdev_unit(dev);
	memset(torn, 0, RFS_BLOCK_BYTES);
	if (*at)
		memcpy(torn, *at, RFS_BLOCK_BYTES);
	memcpy(torn, op->page.data, RFS_BLOCK_BYTES / 2);
	*at = torn;
}

void memdev_replay(struct memdev *dev, const struct mem_op *op, u8 state)
{
	struct mem_page page = op->page;

	if (op->type == MEM_SLOW_WRITE)
		slow_replay(dev, op, state);

	if (op->type == MEM_APPEND) {
		page.state = state;
		put(dev, op->addr, &page);
	} else if (op->type == MEM_RESET) {
		memset(&dev->page[(size_t)op->zone * dev->geo.zone_blocks], 0,
		       dev->geo.zone_blocks * sizeof(*dev->page));
		dev->wp[op->zone] = 0;
		dev->open[op->zone] = false;
	} else if (op->type == MEM_FINISH) {
		dev->wp[op->zone] = dev->cap;
		dev->open[op->zone] = false;
	}
}

/* Says whether the zone may be written. */
static bool admit(struct memdev *dev, u32 zone)
{
	u32 nr, open = 0, active = 0;

	if (dev->open[zone] || (!dev->geo.max_open && !dev->geo.max_active))
		return true;
	for (nr = 0; nr < dev->geo.zones; nr++) {
		if (nr == zone || dev->cond[nr] != RFS_DEV_OK ||
		    !dev->wp[nr] || dev->wp[nr] == dev->cap)
			continue;
		open += dev->open[nr];
		active++;
	}
	return (!dev->geo.max_open || open < dev->geo.max_open) &&
	       (!dev->geo.max_active || active < dev->geo.max_active);
}

static int mem_append(void *opaque, u32 zone, u32 blocks,
		      const void *const *data, const struct rfs_oob *oob,
		      u64 *addr)
{
	struct memdev *dev = opaque;
	u32 i;

	if (dev->cond[zone] != RFS_DEV_OK || dev->wp[zone] + blocks > dev->cap)
		return -EIO;
	if (!admit(dev, zone)) {
		dev->refused++;
		return -EIO;
	}
	dev->open[zone] = true;
	*addr = (u64)zone * dev->geo.zone_blocks + dev->wp[zone];
	for (i = 0; i < blocks; i++) {
		struct mem_op *op = note(dev, MEM_APPEND, zone);
		u8 *unit = memdev_unit(dev);
		struct mem_page page = { .data = unit, .state = MEM_OK };

		memcpy(unit, data[i], RFS_BLOCK_BYTES);
		if (dev->geo.oob_bytes) {
			memcpy(unit + RFS_BLOCK_BYTES, &oob[i], RFS_OOB_BYTES);
			page.oob = (struct rfs_oob *)(unit + RFS_BLOCK_BYTES);
		}
		put(dev, *addr + i, &page);
		if (op) {
			op->addr = *addr + i;
			op->page = page;
		}
	}
	return 0;
}

/* Applies writes to one of the two devices: they are there from the next operation on. */
static void settle(struct memdev *dev, bool slow)
{
	u32 i;

	for (i = dev->settled; i < dev->ops; i++)
		if (dev->op[i].until == MEM_OPEN && !dev->op[i].held &&
		    (dev->op[i].type == MEM_SLOW_WRITE) == slow)
			dev->op[i].until = dev->ops;
	while (dev->settled < dev->ops &&
	       dev->op[dev->settled].until != MEM_OPEN)
		dev->settled++;
}

static int mem_wait(void *opaque)
{
	struct memdev *dev = opaque;

	if (note(dev, MEM_WAIT, 0) && !dev->geo.volatile_cache)
		settle(dev, false);
	return 0;
}

static int mem_flush(void *opaque)
{
	struct memdev *dev = opaque;

	if (note(dev, MEM_FLUSH, 0))
		settle(dev, false);
	return 0;
}

void memdev_complete(struct memdev *dev, u32 op, u32 n)
{
	for (; n; n--, op++) {
		dev->op[op].held = false;
		/* Otherwise it is durable when it is flushed. */
		if (!dev->geo.volatile_cache)
			dev->op[op].until = min(dev->op[op].until, dev->ops);
	}
}

bool memdev_in_flight(const struct memdev *dev, u32 op, u32 ops)
{
	return (dev->op[op].type == MEM_APPEND ||
		dev->op[op].type == MEM_SLOW_WRITE) && dev->op[op].until > ops;
}

enum mem_state memdev_settled(const struct mem_op *op)
{
	return op->lost ? MEM_ABSENT : MEM_OK;
}

/* The last one comes first: each has the content that the one before it has left. */
void memdev_slow_loses(struct memdev *dev, bool (*loses)(void *arg), void *arg)
{
	u32 i;

	note(dev, MEM_SLOW_FLUSH, 0);
	for (i = dev->ops; i-- > dev->settled;) {
		struct mem_op *op = &dev->op[i];

		if (op->type != MEM_SLOW_WRITE || op->until != MEM_OPEN ||
		    !loses(arg))
			continue;
		op->lost = true;
		op->until = dev->ops;
		if (dev->slow_block[op->addr] == op->page.data)
			dev->slow_block[op->addr] = op->before;
	}
}

static int mem_read(void *opaque, u64 addr, void *data, struct rfs_oob *oob)
{
	struct memdev *dev = opaque;
	const struct mem_page *page = &dev->page[addr];

	dev->reads++;
	assert(addr < (u64)dev->geo.zones * dev->geo.zone_blocks);
	if (page->state == MEM_TORN ||
	    dev->cond[addr / dev->geo.zone_blocks] == RFS_DEV_OFFLINE)
		return -EIO;
	if (page->state == MEM_ABSENT) {
		memset(data, 0, RFS_BLOCK_BYTES);
		if (oob)
			memset(oob, 0, sizeof(*oob));
		return 0;
	}
	memcpy(data, page->data, RFS_BLOCK_BYTES);
	assert(!oob || page->oob);
	if (oob)
		*oob = *page->oob;
	return 0;
}

static int mem_reset(void *opaque, u32 zone)
{
	struct memdev *dev = opaque;
	struct mem_op op = { .type = MEM_RESET, .zone = zone };

	if (dev->cond[zone] != RFS_DEV_OK)
		return -EIO;
	note(dev, MEM_RESET, zone);
	memdev_replay(dev, &op, 0);
	return 0;
}

static int mem_finish(void *opaque, u32 zone)
{
	struct memdev *dev = opaque;
	struct mem_op op = { .type = MEM_FINISH, .zone = zone };

	if (dev->cond[zone] != RFS_DEV_OK)
		return -EIO;
	note(dev, MEM_FINISH, zone);
	memdev_replay(dev, &op, 0);
	return 0;
}

static int mem_close(void *opaque, u32 zone)
{
	struct memdev *dev = opaque;

	if (dev->cond[zone] != RFS_DEV_OK)
		return -EIO;
	dev->open[zone] = false;
	return 0;
}

static int mem_report(void *opaque, u32 zone, struct rfs_dev_zone *out)
{
	struct memdev *dev = opaque;

	out->cap = dev->cap;
	out->wp = dev->wp[zone];
	out->cond = dev->cond[zone];
	return 0;
}

static u64 mem_now(void *opaque)
{
	struct memdev *dev = opaque;

	return dev->time += 1000000;
}

static int slow_read(void *opaque, u64 block, void *data)
{
	struct memdev *dev = opaque;

	assert(block < dev->slow.blocks);
	if (dev->slow_fails)
		return -EIO;
	memset(data, 0, RFS_BLOCK_BYTES);
	if (dev->slow_block[block])
		memcpy(data, dev->slow_block[block], RFS_BLOCK_BYTES);
	return 0;
}

static int slow_write(void *opaque, u64 block, u32 n, const void *const *data)
{
	struct memdev *dev = opaque;
	u32 i;

	assert(block + n <= dev->slow.blocks);
	if (dev->slow_fails)
		return -EIO;
	for (i = 0; i < n; i++) {
		struct mem_op *op = note(dev, MEM_SLOW_WRITE, 0);
		u8 *unit = memdev_unit(dev);

		memcpy(unit, data[i], RFS_BLOCK_BYTES);
		if (op) {
			op->addr = block + i;
			op->page.data = unit;
			op->before = dev->slow_block[block + i];
		}
		dev->slow_block[block + i] = unit;
	}
	return 0;
}

static int slow_flush(void *opaque)
{
	struct memdev *dev = opaque;

	if (dev->slow_fails)
		return -EIO;
	if (note(dev, MEM_SLOW_FLUSH, 0))
		settle(dev, true);
	return 0;
}

void memdev_add_slow(struct memdev *dev, u64 blocks)
{
	dev->slow = (struct rfs_slow_dev){
		.dev = dev, .blocks = blocks, .read = slow_read,
		.write = slow_write, .flush = slow_flush,
	};
	dev->slow_block = calloc(blocks, sizeof(*dev->slow_block));
	assert(dev->slow_block);
	dev->geo.slow = &dev->slow;
}

const struct rfs_dev_ops memdev_ops = {
	.append = mem_append,
	.wait = mem_wait,
	.read = mem_read,
	.reset = mem_reset,
	.finish = mem_finish,
	.close = mem_close,
	.flush = mem_flush,
	.report = mem_report,
	.now = mem_now,
};
