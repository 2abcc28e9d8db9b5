// SPDX-License-Identifier: GPL-2.0-or-later
#include "device.h"

struct unit {
	u8 data[RFS_BLOCK_BYTES];
	struct rfs_oob oob;
};

struct overlay {
	struct rfs_device below;
	struct rfs_dev_zone *zone;
	bool *was_reset;	/* nothing below counts */
	struct unit ***unit;	/* of each zone, of each block */
	u8 **slow;		/* blocks of the slow device, NULL: it is below */
	struct rfs_slow_dev slow_dev;
};

static int over_append(void *opaque, u32 zone, u32 blocks,
		       const void *const *data, const struct rfs_oob *oob,
		       u64 *addr)
{
	struct overlay *o = opaque;
	struct rfs_dev_zone *z = &o->zone[zone];
	u32 i;

	if (z->cond != RFS_DEV_OK || z->wp + blocks > z->cap)
		return -EIO;
	*addr = (u64)zone * o->below.geo.zone_blocks + z->wp;
	if (!o->unit[zone])
		o->unit[zone] = calloc(z->cap, sizeof(**o->unit));
	if (!o->unit[zone])
		return -ENOMEM;
	for (i = 0; i < blocks; i++, z->wp++) {
		struct unit *unit = malloc(sizeof(*unit));

		if (!unit)
			return -ENOMEM;
		memcpy(unit->data, data[i], sizeof(unit->data));
		if (o->below.geo.oob_bytes)
			unit->oob = oob[i];
		o->unit[zone][z->wp] = unit;
	}
	return 0;
}

static int over_read(void *opaque, u64 addr, void *data, struct rfs_oob *oob)
{
	struct overlay *o = opaque;
	u32 zone = addr / o->below.geo.zone_blocks;
	u32 off = addr % o->below.geo.zone_blocks;
	struct unit *unit = NULL;

	if (o->unit[zone] && off < o->zone[zone].cap)
		unit = o->unit[zone][off];
	if (unit) {
		memcpy(data, unit->data, sizeof(unit->data));
		if (oob)
			*oob = unit->oob;
		return 0;
	}
	if (!o->was_reset[zone])
		return o->below.ops->read(o->below.dev, addr, data, oob);
	memset(data, 0, RFS_BLOCK_BYTES);
	if (oob)
		memset(oob, 0, sizeof(*oob));
	return 0;
}

static void drop_zone(struct overlay *o, u32 zone)
{
	u32 i;

	for (i = 0; o->unit[zone] && i < o->zone[zone].cap; i++)
		free(o->unit[zone][i]);
	free(o->unit[zone]);
	o->unit[zone] = NULL;
}

static int over_reset(void *opaque, u32 zone)
{
	struct overlay *o = opaque;

	if (o->zone[zone].cond != RFS_DEV_OK)
		return -EIO;
	drop_zone(o, zone);
	o->was_reset[zone] = true;
	o->zone[zone].wp = 0;
	return 0;
}

static int over_report(void *opaque, u32 zone, struct rfs_dev_zone *out)
{
	struct overlay *o = opaque;

	*out = o->zone[zone];
	return 0;
}

static int over_nothing(void *opaque)
{
	(void)opaque;
	return 0;
}

static int over_slow_read(void *opaque, u64 block, void *data)
{
	struct overlay *o = opaque;
	const struct rfs_slow_dev *below = o->below.geo.slow;

	if (!o->slow[block])
		return below->read(below->dev, block, data);
	memcpy(data, o->slow[block], RFS_BLOCK_BYTES);
	return 0;
}

static int over_slow_write(void *opaque, u64 block, u32 n,
			   const void *const *data)
{
	struct overlay *o = opaque;
	u32 i;

	for (i = 0; i < n; i++) {
		u8 **at = &o->slow[block + i];

		if (!*at)
			*at = malloc(RFS_BLOCK_BYTES);
		if (!*at)
			return -ENOMEM;
		memcpy(*at, data[i], RFS_BLOCK_BYTES);
	}
	return 0;
}

static u64 over_now(void *opaque)
{
	struct overlay *o = opaque;

	return o->below.ops->now(o->below.dev);
}

static const struct rfs_dev_ops overlay_ops = {
	.append = over_append,
	.wait = over_nothing,
	.read = over_read,
	.reset = over_reset,
	.flush = over_nothing,
	.report = over_report,
	.now = over_now,
};

static void over_close(void *opaque)
{
	struct overlay *o = opaque;
	u64 block;
	u32 zone;

	for (zone = 0; o->unit && zone < o->below.geo.zones; zone++)
		drop_zone(o, zone);
	for (block = 0; o->slow && block < o->slow_dev.blocks; block++)
		free(o->slow[block]);
	free(o->slow);
	free(o->unit);
	free(o->zone);
	free(o->was_reset);
	free(o);
}

/* Opens the slow device, too, if there is one that is not gone. */
static int over_slow_open(struct overlay *o)
{
	const struct rfs_slow_dev *below = o->below.geo.slow;

	if (!below || below == &rfs_slow_gone)
		return 0;
	o->slow_dev = (struct rfs_slow_dev){
		.dev = o, .blocks = below->blocks,
		.will_repair = below->will_repair, .read = over_slow_read,
		.write = over_slow_write, .flush = over_nothing,
	};
	o->slow = calloc(below->blocks, sizeof(*o->slow));
	return o->slow ? 0 : -ENOMEM;
}

int rfs_overlay_open(const struct rfs_device *below, struct rfs_device *out)
{
	struct overlay *o = calloc(1, sizeof(*o));
	u32 zones = below->geo.zones, zone;
	int ret = 0;

	if (!o)
		return -ENOMEM;
	o->below = *below;
	o->zone = calloc(zones, sizeof(*o->zone));
	o->was_reset = calloc(zones, sizeof(*o->was_reset));
	o->unit = calloc(zones, sizeof(*o->unit));
	if (!o->zone || !o->was_reset || !o->unit)
		ret = -ENOMEM;
	if (!ret)
		ret = over_slow_open(o);
	for (zone = 0; !ret && zone < zones; zone++)
		ret = below->ops->report(below->dev, zone, &o->zone[zone]);
	if (ret) {
		over_close(o);
		return ret;
	}
	*out = *below;
	out->geo.max_open = 0;	/* what is in memory is in no zone */
	out->geo.max_active = 0;
	out->ops = &overlay_ops;
	out->dev = o;
	out->close = over_close;
	out->close_slow = NULL;
	if (o->slow)
		out->geo.slow = &o->slow_dev;
	return 0;
}

/* Writes the blocks of a zone. A block that cannot be read is one that was never written. */
static int write_zone(struct overlay *o, const struct rfs_device *to, u32 zone,
		      struct unit *unit)
{
	u64 start = (u64)zone * o->below.geo.zone_blocks, addr;
	const void *data = unit->data;
	struct rfs_dev_zone there;
	u32 at;
	int ret = to->ops->report(to->dev, zone, &there);

	if (ret || !o->zone[zone].wp)
		return ret;
	if (there.cond != RFS_DEV_OK || there.wp || there.cap < o->zone[zone].wp)
		return -EIO;
	for (at = 0; !ret && at < o->zone[zone].wp; at++) {
		if (over_read(o, start + at, unit->data, &unit->oob))
			memset(unit, 0, sizeof(*unit));
		ret = to->ops->append(to->dev, zone, 1, &data, &unit->oob, &addr);
		if (!ret && addr != start + at)
			ret = -EIO;
	}
	if (!ret)
		ret = to->ops->wait(to->dev);
	if (!ret && to->geo.max_active && at < there.cap && to->ops->finish)
		ret = to->ops->finish(to->dev, zone);
	return ret;
}

static int write_slow(struct overlay *o, u64 from, u64 to)
{
	const struct rfs_slow_dev *below = o->below.geo.slow;
	u64 block;
	int ret = 0;

	for (block = from; !ret && block < to; block++) {
		const void *data = o->slow[block];

		if (data)
			ret = below->write(below->dev, block, 1, &data);
	}
	return ret ? ret : below->flush(below->dev);
}

int rfs_overlay_write(const struct rfs_device *over, const struct rfs_device *to,
		      u64 last)
{
	struct overlay *o = over->dev;
	struct unit *unit = malloc(sizeof(*unit));
	u32 zone;
	int ret = unit ? 0 : -ENOMEM;

	/* Check-points come last: until they are there, there is no volume. */
	for (zone = RFS_CP_ZONES; !ret && zone < o->below.geo.zones; zone++)
		ret = write_zone(o, to, zone, unit);
	if (!ret)
		ret = to->ops->flush(to->dev);
	for (zone = 0; !ret && zone < RFS_CP_ZONES; zone++)
		ret = write_zone(o, to, zone, unit);
	if (!ret)
		ret = to->ops->flush(to->dev);
	free(unit);
	if (!ret)
		ret = write_slow(o, 0, last);
	if (!ret)
		ret = write_slow(o, last + 2, o->slow_dev.blocks);
	/*
	 * They are written one after the other, since a cut may tear a block that is being written.
	 */
	if (!ret)
		ret = write_slow(o, last, last + 1);
	return ret ? ret : write_slow(o, last + 1, last + 2);
}
