/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef RFS_PLAT_ARRAY_H
#define RFS_PLAT_ARRAY_H

#include "plat/rfs_plat.h"

/*
 * Returns an array of `used` elements that has room for one more: the old one, or a copy of twice
 * its size, and then the old one is freed. NULL says that there is no memory, and the old one
 * stays.
 */
static inline void *rfs_array_grown(void *old, u32 used, u32 *room, size_t bytes)
{
	u32 more = *room ? 2 * *room : 256;
	void *memory;

	if (used < *room)
		return old;
	memory = rfs_alloc(more * bytes);
	if (!memory)
		return NULL;
	if (used)
		memcpy(memory, old, used * bytes);
	rfs_free(old);
	*room = more;
	return memory;
}

#endif
