// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel of shim.h: waiting, threads, queues of work. */
#include <sched.h>

#include "shim.h"

u64 ktime_get_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

void init_waitqueue_head(wait_queue_head_t *q)
{
	memset(q, 0, sizeof(*q));
	pthread_mutex_init(&q->m, NULL);
	pthread_cond_init(&q->c, NULL);
}

void wake_up_all(wait_queue_head_t *q)
{
	pthread_mutex_lock(&q->m);
	pthread_cond_broadcast(&q->c);
	pthread_mutex_unlock(&q->m);
}

static void wait_a_little(pthread_cond_t *c, pthread_mutex_t *m)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += NSEC_PER_MSEC;
	if (until.tv_nsec >= NSEC_PER_SEC) {
		until.tv_sec++;
		until.tv_nsec -= NSEC_PER_SEC;
	}
	pthread_cond_timedwait(c, m, &until);
}

void shim_nap(wait_queue_head_t *q)
{
	pthread_mutex_lock(&q->m);
	__atomic_add_fetch(&q->sleepers, 1, __ATOMIC_SEQ_CST);
	wait_a_little(&q->c, &q->m);
	__atomic_sub_fetch(&q->sleepers, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&q->m);
}

void init_completion(struct completion *c)
{
	pthread_mutex_init(&c->m, NULL);
	pthread_cond_init(&c->c, NULL);
	c->done = false;
}

void complete_all(struct completion *c)
{
	pthread_mutex_lock(&c->m);
	c->done = true;
	pthread_cond_broadcast(&c->c);
	pthread_mutex_unlock(&c->m);
}

void wait_for_completion_io(struct completion *c)
{
	pthread_mutex_lock(&c->m);
	while (!c->done)
		pthread_cond_wait(&c->c, &c->m);
	pthread_mutex_unlock(&c->m);
}

__thread struct task_struct *current;
__thread bool shim_killed;
static __thread int cpu = -1;
static int cpus;

int get_cpu(void)
{
	if (cpu < 0)
		cpu = __atomic_add_fetch(&cpus, 1, __ATOMIC_SEQ_CST) % SHIM_CPUS;
	return cpu;
}

static void *task_main(void *arg)
{
	current = arg;
	current->func(current->arg);
	return NULL;
}

struct task_struct *shim_run(int (*func)(void *arg), void *arg)
{
	struct task_struct *task = calloc(1, sizeof(*task));

	task->func = func;
	task->arg = arg;
	if (pthread_create(&task->thread, NULL, task_main, task))
		abort();
	return task;
}

void kthread_stop(struct task_struct *task)
{
	__atomic_store_n(&task->stop, true, __ATOMIC_SEQ_CST);
	pthread_join(task->thread, NULL);
	free(task);
}

#define WORKERS	2	/* of each queue: work of one may run beside other work of it */

struct workqueue_struct *system_freezable_wq, *system_unbound_wq;

struct workqueue_struct {
	struct work_struct *first;
	pthread_t worker[WORKERS];
	bool stop;
};

/* of all queues */
static pthread_mutex_t queues = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* The first that is due and does not run already; it leaves the queue. */
static struct work_struct *take(struct workqueue_struct *q)
{
	struct work_struct **at, *w;

	for (at = &q->first; (w = *at); at = &w->next) {
		if (w->running || w->due > ktime_get_ns())
			continue;
		*at = w->next;
		w->pending = false;
		w->running = true;
		return w;
	}
	return NULL;
}

static void *worker_main(void *arg)
{
	struct workqueue_struct *q = arg;
	struct task_struct self = { 0 };
	struct work_struct *w;

	current = &self;
	pthread_mutex_lock(&queues);
	while (!q->stop || q->first) {
		w = take(q);
		if (!w) {
			wait_a_little(&changed, &queues);
			continue;
		}
		pthread_mutex_unlock(&queues);
		w->func(w);
		pthread_mutex_lock(&queues);
		w->running = false;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&queues);
	return NULL;
}

struct workqueue_struct *shim_queue(void)
{
	struct workqueue_struct *q = calloc(1, sizeof(*q));
	u32 i;

	for (i = 0; i < WORKERS; i++)
		if (pthread_create(&q->worker[i], NULL, worker_main, q))
			abort();
	return q;
}

void destroy_workqueue(struct workqueue_struct *q)
{
	u32 i;

	pthread_mutex_lock(&queues);
	q->stop = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&queues);
	for (i = 0; i < WORKERS; i++)
		pthread_join(q->worker[i], NULL);
	free(q);
}

bool shim_queue_work(struct workqueue_struct *q, struct work_struct *w, u64 ticks)
{
	struct work_struct **at;
	bool queued;

	pthread_mutex_lock(&queues);
	queued = !w->pending;
	if (queued) {
		w->pending = true;
		w->due = ticks ? ktime_get_ns() + ticks * 10000000 : 0;
		w->next = NULL;
		for (at = &q->first; *at; at = &(*at)->next)
			;
		*at = w;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&queues);
	return queued;
}

void flush_work(struct work_struct *w)
{
	pthread_mutex_lock(&queues);
	while (w->pending || w->running)
		wait_a_little(&changed, &queues);
	pthread_mutex_unlock(&queues);
}

/* What is queued is done at once instead, which is as good */
void shim_cancel(struct work_struct *w)
{
	pthread_mutex_lock(&queues);
	w->due = 0;
	pthread_mutex_unlock(&queues);
	flush_work(w);
}

bool work_pending(struct work_struct *w)
{
	bool pending;

	pthread_mutex_lock(&queues);
	pending = w->pending;
	pthread_mutex_unlock(&queues);
	return pending;
}

/* Of the thread: locks that it holds, and is it within memalloc_nofs_save()? */
static __thread int locks;
static __thread unsigned int nofs;

void mutex_lock(struct mutex *l)
{
	pthread_mutex_lock(&l->m);
	locks++;
}

void mutex_unlock(struct mutex *l)
{
	locks--;
	pthread_mutex_unlock(&l->m);
}

bool shim_locked(void)
{
	return locks;
}

unsigned int memalloc_nofs_save(void)
{
	unsigned int before = nofs;

	nofs = 1;
	return before;
}

void memalloc_nofs_restore(unsigned int before)
{
	nofs = before;
}

/*
 * Reclaim writes pages of files back and waits, or drops inodes: both take the lock
 * that the caller holds. Linux finds this only when memory lacks.
 */
static void check_reclaim(gfp_t gfp)
{
	if (!locks || nofs || !(gfp & __GFP_FS))
		return;
	fprintf(stderr, "threads: memory is allocated under a lock in a way that may wait for whoever needs the lock (__GFP_FS)\n");
	abort();
}

bool shim_refuses, shim_no_wait;

/* Without an end or not, with a lock held memory is not waited for, but for that of the pools. */
static void check_wait(gfp_t gfp)
{
	if (!locks || !(gfp & (__GFP_DIRECT_RECLAIM | __GFP_NOFAIL)))
		return;
	fprintf(stderr, "threads: memory is waited for under a lock\n");
	abort();
}

/*
 * With shim_no_wait, one of 64 who wait does so in vain. He asks again; who may fail
 * (__GFP_RETRY_MAYFAIL) would not. Some have nothing kept for them if they do not wait: they
 * try another time, so there are times at which they succeed.
 */
#define SHORT_OF	(5 * NSEC_PER_MSEC)

static bool refused(gfp_t gfp, bool kept)
{
	static __thread u32 nth;

	if (gfp & __GFP_NOFAIL)
		return false;
	if (READ_ONCE(shim_refuses))
		return true;
	if (!READ_ONCE(shim_no_wait) || gfp & __GFP_RETRY_MAYFAIL)
		return false;
	if (!(gfp & __GFP_DIRECT_RECLAIM))
		return kept || ktime_get_ns() / SHORT_OF % 2;
	return ++nth % 64 == 0;
}

static void *alloc(size_t size, gfp_t gfp, bool kept)
{
	check_reclaim(gfp);
	check_wait(gfp);
	return refused(gfp, kept) ? NULL : calloc(1, size);
}

void *shim_alloc(size_t size, gfp_t gfp)
{
	return alloc(size, gfp, false);
}

void *shim_cache_alloc(struct kmem_cache *cache, gfp_t gfp)
{
	return alloc(cache->size, gfp, true);
}

bool shim_no_memory;

int shim_pool_init(mempool_t *pool, int kept, size_t size)
{
	pool->size = size;
	pool->kept = kept;
	pool->left = kept;
	init_waitqueue_head(&pool->back);
	return 0;
}

static bool take_kept(mempool_t *pool)
{
	int left = __atomic_load_n(&pool->left, __ATOMIC_SEQ_CST);

	while (left > 0)
		if (__atomic_compare_exchange_n(&pool->left, &left, left - 1,
						false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			return true;
	return false;
}

#define LONG_WAIT	60	/* s: the drive and the other threads are slow */

void *mempool_alloc(mempool_t *pool, gfp_t gfp)
{
	u64 end = ktime_get_ns() + LONG_WAIT * NSEC_PER_SEC;

	check_reclaim(gfp);
	while (shim_no_memory && !take_kept(pool)) {
		shim_nap(&pool->back);
		if (!locks || ktime_get_ns() < end)
			continue;
		fprintf(stderr, "threads: a pool of %d is waited for under a lock, and nobody gives anything back\n",
			pool->kept);
		abort();
	}
	return calloc(1, pool->size);
}

void mempool_free(void *element, mempool_t *pool)
{
	free(element);
	if (!shim_no_memory)
		return;
	__atomic_add_fetch(&pool->left, 1, __ATOMIC_SEQ_CST);
	wake_up_all(&pool->back);
}

struct kmem_cache *shim_cache(size_t size)
{
	struct kmem_cache *cache = calloc(1, sizeof(*cache));

	cache->size = size;
	return cache;
}
