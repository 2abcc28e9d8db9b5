// SPDX-License-Identifier: GPL-2.0
/* The core takes its memory here. */
#include <linux/slab.h>

#include "rfsm.h"
#include "buffer/buffer.h"

static struct kmem_cache *buf_cache;

void *rfs_alloc(size_t bytes)
{
	return kvzalloc(bytes, GFP_NOFS);
}

void *rfs_alloc_raw(size_t bytes)
{
	return kvmalloc(bytes, GFP_NOFS);
}

/*
 * The proof in "Room" of doc/design.md speaks of operations that are done to
 * their end, so one that has begun waits for what it needs next. That is a block
 * of metadata, which others lead to by then; a block of the log for what was changed; a
 * summary, which a check-point or an fsync needs for what it has in hand; or the count of
 * blocks that an owner is to have. Each is a page and a little at most, and how many are
 * needed before the next check-point frees them is bounded by what may be dirty.
 */
void *rfs_alloc_nofail(size_t bytes)
{
	/*
	 * There are as many of these as metadata blocks in memory, and their size is no power of
	 * two.
	 */
	if (bytes == sizeof(struct rfs_buf))
		return kmem_cache_zalloc(buf_cache, GFP_NOFS | __GFP_NOFAIL);
	return kzalloc(bytes, GFP_NOFS | __GFP_NOFAIL);
}

void rfs_free(void *memory)
{
	kvfree(memory);
}

int __init rfsm_mem_module_init(void)
{
	buf_cache = kmem_cache_create("rfs_buf", sizeof(struct rfs_buf), 0,
				      SLAB_RECLAIM_ACCOUNT, NULL);
	return buf_cache ? 0 : -ENOMEM;
}

void rfsm_mem_module_exit(void)
{
	kmem_cache_destroy(buf_cache);
}
