/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is the page cache above a volume, or above another place that is written
 * to. A block that is dirty is written once however often it is changed. All
 * dirty blocks are written when there are so many, as SFS does every five
 * seconds (3.5).
 */
#ifndef SFSSIM_CACHE_H
#define SFSSIM_CACHE_H

#include <stdlib.h>

#include "plat/rfs_plat.h"

struct cache {
	void (*write)(void *to, u32 block);
	void *to;
	bool *dirty;		/* of each block */
	u32 *list;		/* of dirty ones, oldest first */
	u32 count, room;
};

/*
 * Initializes a cache. Returns false if there is no memory. With room 0, every
 * write is written at once.
 */
static inline bool cache_init(struct cache *c, u32 blocks, u32 room,
			      void (*write)(void *to, u32 block), void *to)
{
	c->write = write;
	c->to = to;
	c->dirty = calloc(blocks, sizeof(*c->dirty));
	c->list = calloc(room + 1, sizeof(*c->list));
	c->count = 0;
	c->room = room;
	return c->dirty && c->list;
}

static inline void cache_flush(struct cache *c)
{
	u32 i;

	for (i = 0; i < c->count; i++) {
		c->dirty[c->list[i]] = false;
		c->write(c->to, c->list[i]);
	}
	c->count = 0;
}

static inline void cache_write(struct cache *c, u32 block)
{
	if (c->dirty[block])
		return;
	c->dirty[block] = true;
	c->list[c->count++] = block;
	if (c->count > c->room)
		cache_flush(c);
}

static inline void cache_free(struct cache *c)
{
	free(c->dirty);
	free(c->list);
}

#endif
