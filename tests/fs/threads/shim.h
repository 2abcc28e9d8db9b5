/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What RFS's module takes from Linux, on POSIX threads: so that its locks, its
 * appends in flight and its check-points run, as they are, under ThreadSanitizer.
 * Every <linux/...> header of the module is this one. A page is where its data is.
 * Who waits for a condition looks again each millisecond. What is allocated fails only
 * with shim_refuses, and what memory would be waited for with a lock held, which might
 * never come, ends the program (see shim_alloc()).
 */
#ifndef RFS_SHIM_H
#define RFS_SHIM_H

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>


#include "plat/rfs_plat.h"

/* Not <unistd.h>, which has other functions of names that the module uses */
int usleep(unsigned int us);

/* Language and memory */
typedef int32_t s32;
typedef unsigned int gfp_t, blk_opf_t;
typedef unsigned short umode_t;
typedef u64 sector_t;
typedef int vm_fault_t;
typedef int blk_status_t;
typedef void *fl_owner_t;

#define __percpu
#define __init
#define __aligned(n)	__attribute__((aligned(n)))
#define ERR_PTR(e)	((void *)(long)(e))
#define PTR_ERR(p)	((long)(p))
#define IS_ERR(p)	((unsigned long)(p) > (unsigned long)-4096)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, member)						\
	((type *)((char *)(p) - offsetof(type, member)))
#define clamp_t(type, v, lo, hi)	min_t(type, max_t(type, v, lo), hi)
#define S64_MIN		INT64_MIN
#define NSEC_PER_SEC	1000000000L
#define NSEC_PER_MSEC	1000000L

/* What may be done for memory: wait, write pages, and call file systems */
enum {
	__GFP_DIRECT_RECLAIM = 1, __GFP_IO = 2, __GFP_FS = 4, __GFP_NOFAIL = 8,
	__GFP_NOWARN = 16, __GFP_RETRY_MAYFAIL = 32, __GFP_ZERO = 64,
};
enum {
	GFP_NOWAIT = 0,
	GFP_NOIO = __GFP_DIRECT_RECLAIM, GFP_NOFS = GFP_NOIO | __GFP_IO,
	GFP_KERNEL = GFP_NOFS | __GFP_FS,
};
enum { PAGE_SHIFT = 12, PAGE_SIZE = 4096, SECTOR_SHIFT = 9 };

/*
 * Linux lets a marked read meet a plain write of a word (KCSAN's default), and
 * data_race() any of its accesses: ThreadSanitizer does not look at them.
 */
#if defined(__SANITIZE_THREAD__)
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
#define IGNORE(on)	AnnotateIgnoreReads##on(__FILE__, __LINE__)
#else
#define IGNORE(on)	((void)0)
#endif
#define data_race(expr)								\
	({ IGNORE(Begin); __typeof__(expr) v_ = (expr); IGNORE(End); v_; })
#define READ_ONCE(x)	data_race(*(const volatile __typeof__(x) *)&(x))
#define xchg(p, v)		__atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define smp_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)

typedef struct { int n; } atomic_t;
typedef struct { long n; } atomic64_t;
#define atomic_set(a, v)	__atomic_store_n(&(a)->n, (v), __ATOMIC_SEQ_CST)
#define atomic_read(a)		__atomic_load_n(&(a)->n, __ATOMIC_SEQ_CST)
#define atomic_inc(a)		((void)__atomic_add_fetch(&(a)->n, 1, __ATOMIC_SEQ_CST))
#define atomic_dec(a)		((void)__atomic_sub_fetch(&(a)->n, 1, __ATOMIC_SEQ_CST))
#define atomic_dec_and_test(a)	(!__atomic_sub_fetch(&(a)->n, 1, __ATOMIC_SEQ_CST))
#define atomic64_read(a)	__atomic_load_n(&(a)->n, __ATOMIC_SEQ_CST)
#define atomic64_inc_return(a)	__atomic_add_fetch(&(a)->n, 1, __ATOMIC_SEQ_CST)
#define atomic64_try_cmpxchg(a, old, new)					\
	__atomic_compare_exchange_n(&(a)->n, (old), (new), false,		\
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* Lists */
struct llist_node { struct llist_node *next; };
struct llist_head { struct llist_node *first; };
#define init_llist_head(l)	((l)->first = NULL)
static inline bool llist_add(struct llist_node *n, struct llist_head *l)
{
	struct llist_node *first = __atomic_load_n(&l->first, __ATOMIC_RELAXED);

	do {
		n->next = first;
	} while (!__atomic_compare_exchange_n(&l->first, &first, n, false,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return !first;
}

/* One task at a time takes from a list, as of Linux's. */
static inline struct llist_node *llist_del_first(struct llist_head *l)
{
	struct llist_node *first = __atomic_load_n(&l->first, __ATOMIC_ACQUIRE);

	while (first &&
	       !__atomic_compare_exchange_n(&l->first, &first, first->next, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	return first;
}

#define llist_del_all(l)							\
	__atomic_exchange_n(&(l)->first, (struct llist_node *)NULL,		\
			    __ATOMIC_SEQ_CST)
static inline struct llist_node *llist_reverse_order(struct llist_node *n)
{
	struct llist_node *out = NULL, *next;

	for (; n; n = next) {
		next = n->next;
		n->next = out;
		out = n;
	}
	return out;
}

#define llist_for_each_entry_safe(p, n, node, m)				\
	for ((p) = (node) ? container_of((node), __typeof__(*(p)), m) : NULL;	\
	     (p) && ((n) = (p)->m.next ?					\
		     container_of((p)->m.next, __typeof__(*(p)), m) : NULL,	\
		     true); (p) = (n))

/* Time: a jiffy is 10 ms */
#define HZ		100
typedef s64 ktime_t;
struct timespec64 { s64 tv_sec; long tv_nsec; };
u64 ktime_get_ns(void);
#define jiffies		((unsigned long)(ktime_get_ns() / 10000000))
#define time_before(a, b)	((long)((a) - (b)) < 0)
#define time_after_eq(a, b)	(!time_before(a, b))
static inline s64 timespec64_to_ns(const struct timespec64 *t)
{
	return t->tv_sec * NSEC_PER_SEC + t->tv_nsec;
}

static inline void ktime_get_coarse_real_ts64(struct timespec64 *t)
{
	u64 now = ktime_get_ns();

	t->tv_sec = 1700000000 + now / NSEC_PER_SEC;
	t->tv_nsec = now % NSEC_PER_SEC;
}

#define schedule_timeout_uninterruptible(ticks)	usleep((ticks) * 1000)
#define schedule_timeout_interruptible(ticks)	usleep((ticks) * 1000)
#define cond_resched()	sched_yield()

/* Locks and waits */
struct mutex { pthread_mutex_t m; };
#define mutex_init(l)	pthread_mutex_init(&(l)->m, NULL)
void mutex_lock(struct mutex *l);
void mutex_unlock(struct mutex *l);
bool shim_locked(void);	/* has the thread a lock? */
typedef struct { char none; } seqcount_mutex_t;
#define write_seqcount_begin(s)	((void)(s))
#define write_seqcount_end(s)	((void)(s))
#define rcu_read_lock()
#define rcu_read_unlock()
#define synchronize_rcu()
/* From the one to the other the thread allocates without __GFP_FS */
unsigned int memalloc_nofs_save(void);
void memalloc_nofs_restore(unsigned int before);

typedef struct {
	pthread_mutex_t m;
	pthread_cond_t c;
	int sleepers;
} wait_queue_head_t;
void init_waitqueue_head(wait_queue_head_t *q);
void wake_up_all(wait_queue_head_t *q);
void shim_nap(wait_queue_head_t *q);	/* until it is woken, or a millisecond */
#define wake_up(q)	wake_up_all(q)
#define wq_has_sleeper(q)	__atomic_load_n(&(q)->sleepers, __ATOMIC_SEQ_CST)
#define wait_event(q, cond)							\
	do {									\
		while (!(cond))							\
			shim_nap(&(q));						\
	} while (0)
/* Somebody has killed the thread: what it waits for so ends. */
extern __thread bool shim_killed;
#define wait_event_killable(q, cond)						\
	({									\
		int ret_ = 0;							\
										\
		while (!ret_ && !(cond))					\
			if (shim_killed)					\
				ret_ = -EINTR;					\
			else							\
				shim_nap(&(q));					\
		ret_;								\
	})
/* As Linux's: 0 if the time is over before the condition holds */
#define MAX_SCHEDULE_TIMEOUT	LONG_MAX
#define wait_event_killable_timeout(q, cond, ticks)				\
	({									\
		u64 begin_ = ktime_get_ns(), ticks_ = (ticks);			\
		long left_;							\
										\
		while (!(left_ = !!(cond)) &&					\
		       (ktime_get_ns() - begin_) / 10000000 < ticks_)		\
			shim_nap(&(q));						\
		left_;								\
	})
/* No thread here has a memory map of its own. */
struct mm_struct;
static inline bool mmap_lock_is_contended(struct mm_struct *mm)
{
	(void)mm;
	return false;
}
#define wait_event_freezable_timeout(q, cond, ticks)				\
	do {									\
		u64 end_ = ktime_get_ns() + (ticks) * 10000000ULL;		\
										\
		while (!(cond) && ktime_get_ns() < end_)			\
			shim_nap(&(q));						\
	} while (0)

struct completion { pthread_mutex_t m; pthread_cond_t c; bool done; };
void init_completion(struct completion *c);
void complete_all(struct completion *c);
void wait_for_completion_io(struct completion *c);
#define complete(c)	complete_all(c)
/* nobody else has it then */
#define reinit_completion(c)	((c)->done = false)

/* Threads, work */
struct task_struct {
	pthread_t thread;
	int (*func)(void *arg);
	void *arg;
	bool stop;
	void *journal_info;
};

extern __thread struct task_struct *current;
struct task_struct *shim_run(int (*func)(void *arg), void *arg);
#define kthread_run(func, arg, ...)	shim_run(func, arg)
void kthread_stop(struct task_struct *task);
#define kthread_should_stop()	__atomic_load_n(&current->stop, __ATOMIC_SEQ_CST)
#define kthread_freezable_should_stop(x)	kthread_should_stop()
#define set_user_nice(task, nice)
#define set_freezable()
enum { MIN_NICE = -20, WQ_MEM_RECLAIM = 1, WQ_HIGHPRI = 2 };

struct work_struct {
	void (*func)(struct work_struct *work);
	struct work_struct *next;
	u64 due;
	bool pending, running;	/* under the lock of all queues */
};
struct delayed_work { struct work_struct work; };
struct workqueue_struct;
extern struct workqueue_struct *system_freezable_wq, *system_unbound_wq;
struct workqueue_struct *shim_queue(void);
#define alloc_workqueue(...)	shim_queue()
void destroy_workqueue(struct workqueue_struct *q);
bool shim_queue_work(struct workqueue_struct *q, struct work_struct *w, u64 ticks);
void shim_cancel(struct work_struct *w);
void flush_work(struct work_struct *w);
bool work_pending(struct work_struct *w);
#define INIT_WORK(w, f)		((w)->func = (f))
#define INIT_DELAYED_WORK(w, f)	((w)->work.func = (f))
#define to_delayed_work(w)	container_of(w, struct delayed_work, work)
#define queue_work(q, w)	shim_queue_work(q, w, 0)
#define queue_work_on(cpu, q, w)	shim_queue_work(q, w, 0)
#define queue_delayed_work(q, w, ticks)	shim_queue_work(q, &(w)->work, ticks)
#define cancel_work_sync(w)	shim_cancel(w)
#define cancel_delayed_work_sync(w)	shim_cancel(&(w)->work)

#define SHIM_CPUS	2
#define alloc_percpu(type)	((type *)calloc(SHIM_CPUS, sizeof(type)))
#define free_percpu(p)		free(p)
#define per_cpu_ptr(p, cpu)	((p) + (cpu))
#define for_each_possible_cpu(cpu)	for ((cpu) = 0; (cpu) < SHIM_CPUS; (cpu)++)
int get_cpu(void);
#define put_cpu()

/* Memory */
struct page;	/* its data */
#define page_address(p)		((void *)(p))
#define virt_to_page(a)		((struct page *)(a))
#define offset_in_page(a)	0
#define is_vmalloc_addr(a)	false
#define vmalloc_to_page(a)	virt_to_page(a)
/*
 * Zeroed. Memory may be had only when writeback ends, which needs the module's lock: whoever
 * may wait for it with a lock held ends the program.
 */
void *shim_alloc(size_t size, gfp_t gfp);
extern bool shim_refuses;	/* what may fail does, but for the pools, which wait */
extern bool shim_no_wait;	/* who does not wait gets nothing, see refused() */
#define alloc_page(gfp)		((struct page *)shim_alloc(PAGE_SIZE, gfp))
#define __free_page(p)		free(p)
#define copy_page(to, from)	memcpy(to, from, PAGE_SIZE)
#define kvcalloc(n, size, gfp)	shim_alloc((n) * (size), gfp)
#define kvzalloc(size, gfp)	shim_alloc(size, gfp)
#define kvmalloc(size, gfp)	shim_alloc(size, gfp)
#define kmalloc(size, gfp)	shim_alloc(size, gfp)
#define kzalloc(size, gfp)	shim_alloc(size, gfp)
#define kfree(p)		free((void *)(p))
#define kmalloc_array(n, size, gfp)	shim_alloc((n) * (size), gfp)
#define kvfree(p)		free(p)
struct kmem_cache { size_t size; };
struct kmem_cache *shim_cache(size_t size);
void *shim_cache_alloc(struct kmem_cache *cache, gfp_t gfp);
#define kmem_cache_create(name, size, align, flags, ctor)	shim_cache(size)
#define kmem_cache_zalloc(c, gfp)	shim_cache_alloc(c, gfp)
#define kmem_cache_alloc(c, gfp)	shim_cache_alloc(c, gfp)
#define kmem_cache_destroy(c)	free(c)
enum { SLAB_RECLAIM_ACCOUNT };

/*
 * With shim_no_memory pools have what is kept in them and no more: whoever needs
 * another one waits until one is given back. With a lock held that must not last.
 */
typedef struct {
	size_t size;
	int kept, left;
	wait_queue_head_t back;
} mempool_t;
extern bool shim_no_memory;
int shim_pool_init(mempool_t *pool, int kept, size_t size);
void *mempool_alloc(mempool_t *pool, gfp_t gfp);
void mempool_free(void *element, mempool_t *pool);
#define mempool_init_kmalloc_pool(p, n, bytes)	shim_pool_init(p, n, bytes)
#define mempool_init_slab_pool(p, n, cache)	shim_pool_init(p, n, (cache)->size)
#define mempool_init_page_pool(p, n, order)	shim_pool_init(p, n, PAGE_SIZE)
#define mempool_exit(p)

/* What it says goes nowhere, but for errors */
#define pr_err(...)	shim_said(__func__)
#define pr_warn(...)	((void)0)
#define pr_info(...)	((void)0)
#define pr_err_ratelimited(...)		pr_err(__VA_ARGS__)
#define pr_warn_ratelimited(...)	pr_warn(__VA_ARGS__)
#define panic(...)	abort()
void shim_said(const char *where);
void shim_failed(const char *where, int error);
#define TP_PROTO(...)	__VA_ARGS__
#define TRACE_EVENT(name, proto, ...)						\
	static inline void trace_##name(proto) { }

/* The drive */
struct gendisk { char none; };
struct block_device { struct gendisk *bd_disk; dev_t bd_dev; };
struct bio_set { mempool_t bios; };
struct iomap_dio_ops { char none; };
struct iov_iter;
struct kiocb;
struct readahead_control;
struct bio_vec { struct page *page; };
struct bio {
	struct block_device *bi_bdev;
	blk_opf_t op;
	struct { sector_t bi_sector; } bi_iter;
	void *bi_private;
	void (*bi_end_io)(struct bio *bio);
	blk_status_t bi_status;
	struct page *page[64];
	u32 n;
	void *oob;
	struct bio *next;
	struct bio_set *set;	/* of bio_alloc_bioset(); else NULL */
};
enum req_op {
	REQ_OP_READ = 0, REQ_OP_ZONE_APPEND = 1, REQ_OP_ZONE_RESET = 2,
	REQ_OP_ZONE_FINISH = 3, REQ_OP_ZONE_CLOSE = 4, SHIM_OPS = 7,
};
enum { REQ_SYNC = 8, REQ_META = 16 };
static inline bool op_is_write(blk_opf_t op)
{
	return op & 1;	/* as Linux has it, where reads are even */
}

#define blk_status_to_errno(s)	(s)
struct bio *bio_alloc_bioset(struct block_device *bdev, u32 n, blk_opf_t op,
			     gfp_t gfp, struct bio_set *set);
void bio_init(struct bio *bio, struct block_device *bdev, struct bio_vec *vec,
	      u32 n, blk_opf_t op);
void bio_put(struct bio *bio);
void bio_reset(struct bio *bio, struct block_device *bdev, blk_opf_t op);
void submit_bio(struct bio *bio);
int submit_bio_wait(struct bio *bio);
#define bio_uninit(bio)
#define bio_integrity_alloc(bio, gfp, n)
#define bio_integrity_add_page(bio, page, len, off)	((bio)->oob = (page))
#define __bio_add_page(bio, p, len, off)	((bio)->page[(bio)->n++] = (p))
#define nth_page(p, i)	((struct page *)((char *)(p) + (size_t)(i) * PAGE_SIZE))
static inline u32 bio_add_zone_append_page(struct bio *bio, struct page *p,
					   u32 len, u32 off)
{
	u32 i;

	for (i = 0; i < len / PAGE_SIZE; i++)
		bio->page[bio->n++] = nth_page(p, i);
	return len;
}

#define bio_io_error(bio)							\
	((bio)->bi_status = -EIO, (bio)->bi_end_io(bio))
#define bioset_init(set, n, before, flags)	\
	shim_pool_init(&(set)->bios, n, sizeof(struct bio))
#define bioset_integrity_create(...)	0
#define bioset_exit(s)
enum { BIOSET_NEED_BVECS };

struct blk_zone { u64 start, wp, capacity; int type, cond; };
enum { BLK_ZONE_TYPE_CONVENTIONAL = 1 };
enum {
	BLK_ZONE_COND_EMPTY = 1, BLK_ZONE_COND_OPEN, BLK_ZONE_COND_FULL,
	BLK_ZONE_COND_READONLY, BLK_ZONE_COND_OFFLINE,
};
struct blk_integrity { int csum_type; u32 tuple_size; };
enum { BLK_INTEGRITY_CSUM_NONE };
const struct blk_integrity *shim_integrity(void);
u32 shim_zone_sectors(void);
u32 shim_zones(void);
#define blk_get_integrity(disk)	((struct blk_integrity *)shim_integrity())
#define bio_integrity_bytes(bi, sectors)	((bi)->tuple_size)
#define bdev_logical_block_size(b)	4096
#define bdev_is_zoned(b)	true
#define bdev_zone_sectors(b)	shim_zone_sectors()
#define bdev_nr_zones(b)	shim_zones()
#define bdev_get_queue(b)	(b)
#define queue_max_zone_append_sectors(q)	(64 * 8)
#define bdev_max_segments(b)	64
#define bdev_write_cache(b)	false
#define bdev_max_open_zones(b)	0
#define bdev_max_active_zones(b)	0
int blkdev_report_zones(struct block_device *bdev, sector_t from, u32 n,
			int (*tell)(struct blk_zone *zone, unsigned int index,
				    void *data), void *data);
int blkdev_zone_mgmt(struct block_device *bdev, blk_opf_t op, sector_t from,
		     sector_t n);
#define blkdev_issue_flush(b)	((void)(b), 0)

/* Files */
struct address_space { struct inode *host; };
struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	loff_t i_size;
};
struct folio {
	unsigned long index;
	struct page *page;
	void *private;
	bool dirty, writeback;
	pthread_mutex_t lock;
	wait_queue_head_t waits;
};
struct super_block {
	struct block_device *s_bdev;
	void *s_fs_info;
	unsigned long s_flags;
	struct rw_semaphore { pthread_rwlock_t l; } s_umount;
};
enum { SB_RDONLY = 1, WB_REASON_BACKGROUND = 0 };
#define sb_rdonly(sb)	((sb)->s_flags & SB_RDONLY)
#define sb_start_intwrite_trylock(sb)	true
#define sb_end_intwrite(sb)
#define down_read_trylock(s)	(!pthread_rwlock_tryrdlock(&(s)->l))
#define up_read(s)		pthread_rwlock_unlock(&(s)->l)
/* threads.c */
void sync_inodes_sb(struct super_block *sb);
#define writeback_inodes_sb(sb, why)	sync_inodes_sb(sb)
struct inode *find_inode_by_ino_rcu(struct super_block *sb, unsigned long ino);
void folio_end_writeback(struct folio *folio);
#define folio_page(f, n)	((f)->page)
#define folio_test_large(f)	false
#define hweight32(x)	__builtin_popcount(x)
#define GENMASK(h, l)	(~0UL >> (63 - (h)) & ~0UL << (l))
#define folio_contains(f, i)	((f)->index == (i))
#define folio_maybe_dma_pinned(f)	false
#define folio_test_private(f)	((f)->private != NULL)
#define folio_attach_private(f, p)	((f)->private = (p))
#define folio_get_private(f)	((f)->private)
#define folio_change_private(f, p)	((f)->private = (p))
#define folio_test_checked(f)	false
#define folio_address(f)	page_address((f)->page)
#define folio_pos(f)		((loff_t)(f)->index << PAGE_SHIFT)
#define folio_zero_segment(f, from, to)
#define folio_start_writeback(f)	((f)->writeback = true)
#define folio_unlock(f)		pthread_mutex_unlock(&(f)->lock)
#define i_size_read(i)		((i)->i_size)
static inline void *folio_detach_private(struct folio *f)
{
	void *p = f->private;

	f->private = NULL;
	return p;
}

#define mapping_set_error(mapping, error)	shim_failed("mapping_set_error", error)
static inline struct timespec64 inode_get_mtime(const struct inode *inode)
{
	struct timespec64 now;

	(void)inode;
	ktime_get_coarse_real_ts64(&now);
	return now;
}

/* Of these the module's header has pointers */
struct kobject { char none; };
struct inode_operations; struct file_operations; struct xattr_handler;
struct export_operations; struct address_space_operations; struct shrinker;
struct dentry; struct posix_acl; struct fileattr; struct mnt_idmap; struct kstat;
struct path; struct iattr; struct file; struct vm_fault; struct writeback_control;

#endif
