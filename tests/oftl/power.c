// SPDX-License-Identifier: GPL-2.0-or-later
#include <assert.h>
#include <stdio.h>

#include "power.h"
#include "story.h"
#include "tools/tools.h"

#define ARENA		(96U << 20)	/* bytes that are written to a drive */

u32 power_pick(struct power *p, u32 n)
{
	p->random = p->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(p->random >> 33) % n;
}

struct power *power_new(const struct power_drive *drive, u64 seed)
{
	struct rfs_geometry geo = {
		.zones = POWER_ZONES, .zone_blocks = POWER_BLOCKS,
		.oob_bytes = drive->oob, .volatile_cache = drive->cache,
	};
	struct rfs_id id = { .uuid = "objects", .pieces = drive->pieces };
	struct power *p = calloc(1, sizeof(*p));

	assert(p);
	p->random = seed;
	p->dev = memdev_new(&geo, POWER_BLOCKS, ARENA, true);
	p->base = memdev_new(&geo, POWER_BLOCKS, 1, false);
	p->work = memdev_new(&geo, POWER_BLOCKS, ARENA, false);
	must("mkfs", rfs_mkfs(&memdev_ops, p->dev, &geo, &id, ""));
	memcpy(p->base->page, p->dev->page, (size_t)POWER_ZONES *
	       POWER_BLOCKS * sizeof(*p->dev->page));
	memcpy(p->base->wp, p->dev->wp, POWER_ZONES * sizeof(*p->dev->wp));
	p->base->time = p->dev->time;
	p->dev->ops = 0;
	return p;
}

void power_free(struct power *p)
{
	memdev_free(p->dev);
	memdev_free(p->base);
	memdev_free(p->work);
	free(p);
}

static void stay_open(void *dev)
{
	(void)dev;
}

static struct oftl *open_on(struct memdev *dev, u32 inject)
{
	struct rfs_device device = {
		.ops = &memdev_ops, .dev = dev, .geo = dev->geo,
		.path = "memory", .close = stay_open,
	};

	return oftl_open_device(&device, inject);
}

struct oftl *power_open(struct power *p)
{
	struct oftl *dev = open_on(p->dev, 0);

	must("open", dev ? 0 : -1);
	return dev;
}

struct oftl *power_reopen(struct power *p, u32 inject)
{
	return open_on(p->work, inject);
}

/* State of page i of n that are in flight */
static u8 outcome(struct power *p, u32 way, u32 i, u32 n, u32 one)
{
	switch (way % 8) {
	case 0:
		return MEM_ABSENT;
	case 1:
		return i == one ? MEM_ABSENT : MEM_OK;
	case 2:
		return i == one ? MEM_TORN : MEM_OK;
	case 3:
		return i == n - 1 ? MEM_TORN : MEM_OK;
	case 4:
		return i == one ? MEM_OK : MEM_ABSENT;
	case 5:
		return power_pick(p, 8) ? MEM_OK : MEM_ABSENT;
	case 6:
		return power_pick(p, 3);
	}
	return MEM_OK;
}

void power_cut(struct power *p, u32 ops, u32 way)
{
	const struct memdev *notes = p->dev;
	u32 i, n = 0, at = 0, one;

	while (p->done < ops && !memdev_in_flight(notes, p->done, ops))
		memdev_replay(p->base, &notes->op[p->done++], MEM_OK);
	memdev_copy(p->work, p->base);
	for (i = p->done; i < ops; i++)
		n += memdev_in_flight(notes, i, ops);
	one = n ? power_pick(p, n) : 0;
	for (i = p->done; i < ops; i++) {
		u8 state = MEM_OK;

		if (memdev_in_flight(notes, i, ops))
			state = outcome(p, way, at++, n, one);
		memdev_replay(p->work, &notes->op[i], state);
	}
}
