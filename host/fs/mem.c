// SPDX-License-Identifier: GPL-2.0
/* Memory for the core. */
#include <linux/slab.h>

#include "rfsm.h"
#include "buffer/buffer.h"

static struct kmem_cache *buf_cache;

void *rfs_alloc(size_t bytes)
{
	/* as many as there are metadata blocks in memory: no power of two */
	if (bytes == sizeof(struct rfs_buf))
		return kmem_cache_zalloc(buf_cache, GFP_NOFS | __GFP_NOFAIL);
	/* what operations need is small, and they cannot be left half done */
	if (bytes <= 2 * PAGE_SIZE)
		return kzalloc(bytes, GFP_NOFS | __GFP_NOFAIL);
	return kvzalloc(bytes, GFP_NOFS);
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
