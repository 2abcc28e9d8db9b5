/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page cache above a volume: a block that is dirty is written once however
 * often it is changed. All are written when there are so many, as SFS does
 * every five seconds (3.5).
 */
#ifndef SFSSIM_CACHE_H
#define SFSSIM_CACHE_H

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "volume.h"

struct cache {
	struct volume *volume;
	bool *dirty;		/* of each block */
	u32 *list;		/* of dirty ones, oldest first */
	u32 count, room;
	FILE *trace;		/* of what is written; NULL: none is kept */
};

/* False if there is not the memory; room 0: every write is written at once */
static inline bool cache_init(struct cache *c, struct volume *v, u32 blocks,
			      u32 room)
{
	c->volume = v;
	c->dirty = calloc(blocks, sizeof(*c->dirty));
	c->list = calloc(room + 1, sizeof(*c->list));
	c->count = 0;
	c->room = room;
	c->trace = NULL;
	return c->dirty && c->list;
}

static inline void cache_flush(struct cache *c, struct volume_file *file)
{
	u32 i;

	for (i = 0; i < c->count; i++) {
		u32 word = htole32(c->list[i] - file->from);

		/* what cannot be written shows when the file is closed */
		if (c->trace)
			fwrite(&word, sizeof(word), 1, c->trace);
		c->dirty[c->list[i]] = false;
		volume_write(c->volume, file, c->list[i]);
	}
	c->count = 0;
}

static inline void cache_write(struct cache *c, struct volume_file *file,
			       u32 block)
{
	if (c->dirty[block])
		return;
	c->dirty[block] = true;
	c->list[c->count++] = block;
	if (c->count > c->room)
		cache_flush(c, file);
}

static inline void cache_free(struct cache *c)
{
	free(c->dirty);
	free(c->list);
}

#endif
