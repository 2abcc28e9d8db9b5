// SPDX-License-Identifier: GPL-2.0
/*
 * The core takes its memory here. Writeback ends under the volume lock, so its owner does not wait
 * for memory. He takes free memory, or the memory that the volume has kept for that. If he has to
 * wait, he does so before he takes the lock ("Memory" in doc/design.md).
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "rfsm.h"
#include "buffer/buffer.h"
#include "tree/tree.h"

/* All kept elements have this size: that of a block of metadata, with its state in memory. */
#define KEPT_BYTES	max(sizeof(struct rfs_buf), sizeof(struct rfs_sum))

static struct kmem_cache *kept_cache;
/* Its work items only wait for memory, for writeback that lacks it. */
static struct workqueue_struct *memory_queue;

/* Returns the volume whose lock the task holds, or NULL. */
static struct rfs_sb_info *rfsm_held(void)
{
	return current->journal_info;
}

void rfsm_memory_held(struct rfs_sb_info *sbi)
{
	sbi->memory.outer = current->journal_info;
	current->journal_info = sbi;
}

void rfsm_memory_released(struct rfs_sb_info *sbi)
{
	current->journal_info = sbi->memory.outer;
}

/* A kept element is a node of the list, and nothing else. */
static void rfsm_keep(struct rfsm_memory *m, void *memory)
{
	llist_add(memory, &m->kept);
	atomic_inc(&m->count);
}

/* The caller holds the volume lock, so that nobody else takes one. */
static void *rfsm_take_kept(struct rfsm_memory *m)
{
	struct llist_node *node = llist_del_first(&m->kept);

	if (node)
		atomic_dec(&m->count);
	return node;
}

/*
 * Memory that one hold of the lock lacked is there when the lock is taken next, if its size fits.
 */
static void *rfsm_take_brought(struct rfsm_memory *m, size_t bytes)
{
	void *memory = m->brought;

	if (!memory || m->brought_bytes != bytes)
		return NULL;
	m->brought = NULL;
	return memory;
}

static void *rfsm_alloc(size_t bytes, gfp_t zero)
{
	struct rfs_sb_info *sbi = rfsm_held();
	void *memory;

	if (!sbi)
		return kvmalloc(bytes, GFP_NOFS | __GFP_RETRY_MAYFAIL | zero);
	memory = rfsm_take_brought(&sbi->memory, bytes);
	if (!memory)
		memory = kmalloc(bytes, GFP_NOWAIT | __GFP_NOWARN | zero);
	if (!memory) {
		sbi->memory.lacked = true;
		WRITE_ONCE(sbi->memory.lack, bytes);
	}
	return memory;
}

void *rfs_alloc(size_t bytes)
{
	return rfsm_alloc(bytes, __GFP_ZERO);
}

void *rfs_alloc_raw(size_t bytes)
{
	return rfsm_alloc(bytes, 0);
}

/* A request of fewer bytes does not take a kept element, unless there is no other memory. */
#define SMALL	(KEPT_BYTES / 2)

/*
 * The proof in "Room" of doc/design.md needs operations that are done to their end. So an operation
 * that has begun gets the memory that it needs next. This may be a block of metadata, which other
 * blocks lead to by then; a block of the log for a change that was made; a summary, for blocks that
 * a check-point or an fsync has begun to write; or the count of blocks of an owner.
 */
void *rfs_alloc_nofail(size_t bytes)
{
	struct rfs_sb_info *sbi = rfsm_held();
	gfp_t gfp = sbi ? GFP_NOWAIT | __GFP_NOWARN : GFP_NOFS | __GFP_NOFAIL;
	void *memory;

	memory = bytes < SMALL ? kzalloc(bytes, gfp) : kmem_cache_zalloc(kept_cache, gfp);
	if (memory)
		return memory;
	memory = rfsm_take_kept(&sbi->memory);
	/*
	 * More memory was taken than an operation ever needs. This is an error, and others may wait
	 * for us.
	 */
	if (WARN_ON_ONCE(!memory))
		return kmem_cache_zalloc(kept_cache, GFP_NOFS | __GFP_NOFAIL);
	return memset(memory, 0, KEPT_BYTES);
}

void rfs_free(void *memory)
{
	kvfree(memory);
}

void rfs_free_nofail(void *memory)
{
	struct rfs_sb_info *sbi = rfsm_held();

	if (memory && sbi &&
	    atomic_read(&sbi->memory.count) < sbi->memory.need[RFSM_MEMORY_OPERATION])
		rfsm_keep(&sbi->memory, memory);
	else
		rfs_free(memory);
}

bool rfs_nofail_left(u32 blocks)
{
	struct rfs_sb_info *sbi = rfsm_held();

	return !sbi || rfsm_memory_ready(sbi, blocks + RFSM_KEPT_SENT);
}

bool rfsm_memory_ready(struct rfs_sb_info *sbi, u32 blocks)
{
	struct rfsm_memory *m = &sbi->memory;
	void *memory;

	while (atomic_read(&m->count) < blocks) {
		memory = kmem_cache_alloc(kept_cache, GFP_NOWAIT | __GFP_NOWARN);
		if (!memory)
			return false;
		rfsm_keep(m, memory);
	}
	return true;
}

/*
 * Does the same for a caller that holds the lock and has no pointer to a block: it takes the oldest
 * clean blocks, too.
 */
static bool rfsm_memory_found(struct rfs_sb_info *sbi, u32 blocks)
{
	struct rfs_fs *fs = sbi->fs;
	u32 lack, most;

	if (rfsm_memory_ready(sbi, blocks))
		return true;
	lack = blocks - atomic_read(&sbi->memory.count);
	/* The newest stay: an operation that is begun anew would miss them again. */
	most = fs->clean.count - min_t(u32, fs->clean.count, 2 * RFS_OP_BLOCKS);
	rfs_cache_trim(fs, fs->clean.count - min(most, lack));
	return rfsm_memory_ready(sbi, blocks);
}

bool rfsm_memory_kept(struct rfs_sb_info *sbi, enum rfsm_memory_need need)
{
	u32 blocks = sbi->memory.need[need];

	return atomic_read(&sbi->memory.count) >= blocks || rfsm_memory_found(sbi, blocks);
}

bool rfsm_memory_for_pages(struct rfs_sb_info *sbi, u32 pages)
{
	return rfsm_memory_found(sbi, RFSM_KEPT_FOR(pages) + RFSM_KEPT_SENT);
}

void rfsm_memory_soon(struct rfs_sb_info *sbi)
{
	queue_work(memory_queue, &sbi->memory.fill);
}

bool rfsm_memory_bring(struct rfs_sb_info *sbi)
{
	struct rfsm_memory *m = &sbi->memory;
	size_t bytes = xchg(&m->lack, 0);
	void *memory, *old;

	if (!bytes)
		return true;
	memory = kvzalloc(bytes, GFP_NOFS | __GFP_RETRY_MAYFAIL);
	if (!memory)
		return false;
	mutex_lock(&sbi->lock);
	old = m->brought;
	m->brought = memory;
	m->brought_bytes = bytes;
	mutex_unlock(&sbi->lock);
	kvfree(old);
	return true;
}

void rfsm_memory_wait(struct rfs_sb_info *sbi, enum rfsm_memory_need need)
{
	struct rfsm_memory *m = &sbi->memory;
	u32 blocks = m->need[need];
	void *memory;

	while (atomic_read(&m->count) < blocks) {
		memory = kmem_cache_alloc(kept_cache, GFP_NOFS);
		if (memory)
			rfsm_keep(m, memory);
		else
			schedule_timeout_uninterruptible(1);
	}
}

#define TRIES	8	/* others may take what was brought */

bool rfsm_memory_again(struct rfs_sb_info *sbi, u32 *tries)
{
	if (++*tries == TRIES)
		return false;
	if (!READ_ONCE(sbi->memory.lack))	/* another one brings it */
		schedule_timeout_uninterruptible(1);
	return rfsm_memory_bring(sbi);
}

/* Only tasks that lack memory wait for this. */
static void rfsm_memory_fill(struct work_struct *work)
{
	struct rfsm_memory *m = container_of(work, struct rfsm_memory, fill);

	rfsm_memory_wait(m->sbi, RFSM_MEMORY_OPERATION);
	m->filled(m->sbi);
}

static void rfsm_set_needs(struct rfsm_memory *m)
{
	m->need[RFSM_MEMORY_OPERATION] = RFSM_KEPT_OPERATION + RFSM_KEPT_FOR(RFSM_APPEND_MAX) +
					 RFSM_KEPT_SENT + RFSM_KEPT_LOOK_UP;
	m->need[RFSM_MEMORY_SEND] = RFSM_KEPT_FOR(RFSM_APPEND_MAX) + RFSM_KEPT_SENT +
				    RFSM_KEPT_LOOK_UP;
	m->need[RFSM_MEMORY_CHECKPOINT] = RFSM_KEPT_SENT;
}

int rfsm_memory_init(struct rfs_sb_info *sbi)
{
	struct rfsm_memory *m = &sbi->memory;
	void *memory;

	m->sbi = sbi;
	init_llist_head(&m->kept);
	rfsm_set_needs(m);
	INIT_WORK(&m->fill, rfsm_memory_fill);
	while (atomic_read(&m->count) < m->need[RFSM_MEMORY_OPERATION]) {
		memory = kmem_cache_alloc(kept_cache, GFP_KERNEL);
		if (!memory)
			return -ENOMEM;
		rfsm_keep(m, memory);
	}
	return 0;
}

void rfsm_memory_stop(struct rfs_sb_info *sbi)
{
	cancel_work_sync(&sbi->memory.fill);
}

void rfsm_memory_exit(struct rfs_sb_info *sbi)
{
	struct rfsm_memory *m = &sbi->memory;
	void *memory;

	if (!m->sbi)
		return;
	while ((memory = rfsm_take_kept(m)))
		rfs_free(memory);
	kvfree(m->brought);
	m->brought = NULL;
}

int __init rfsm_mem_module_init(void)
{
	/* There is one for each metadata block in memory, and their size is no power of two. */
	kept_cache = kmem_cache_create("rfs_buf", KEPT_BYTES, 0, SLAB_RECLAIM_ACCOUNT, NULL);
	memory_queue = alloc_workqueue("rfs-memory", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return kept_cache && memory_queue ? 0 : -ENOMEM;
}

void rfsm_mem_module_exit(void)
{
	if (memory_queue)
		destroy_workqueue(memory_queue);
	kmem_cache_destroy(kept_cache);
}
