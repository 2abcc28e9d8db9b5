// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Several threads at work on a volume, by the module's own files of locks,
 * appends in flight, check-points and cleaning: fetch.c, checkpoint.c, wake.c,
 * reserve.c, append.c, compact.c, reclaim.c, bdev.c. Meanwhile power is cut, again and again:
 * what is on the drive is copied, mounted, checked, and has what fsync promised, and of an
 * atomic write, whose ends may be pieces, all or nothing. In the end files have what was
 * written last. Built with ThreadSanitizer.
 */
#include <inttypes.h>

#include "drive.h"
#include "rfsm.h"
#include "checkpoint.h"
#include "update.h"
#include "reserve.h"
#include "append.h"
#include "pages.h"
#include "super.h"
#include "space/space.h"
#include "buffer/buffer.h"
#include "tree/tree.h"
#include "tree/diff.h"
#include "tree/dir.h"
#include "clean/clean.h"
#include "tools/tools.h"

#define PAGES	48	/* of a file */
#define FILES	24	/* that there may be */
#define DIRS	3

static const struct { const char *name; u64 most, here; } options[] = {
	{ "threads", 16, 4 },
	{ "ops", 100000, 300 },		/* of each */
	{ "seed", 1ULL << 40, 1 },
	{ "zones", 1024, 40 },
	{ "blocks", 65536, 256 },	/* of a zone */
	{ "pools", 2, 1 },	/* 2: they have what is kept in them, and no more */
	{ "ways", 8, 1 },	/* zones that a group stripes over */
	{ "medium", 1, 0 },	/* 1: at the end, copies have an error of the medium */
	{ "bare", 1, 0 },	/* 1: the drive has no page metadata */
	{ "refused", 1, 0 },	/* 1: at the end, pages are written while memory is refused */
	{ "short", 1, 0 },	/* 1: who does not wait for memory gets none */
};
static u64 option[ARRAY_SIZE(options)];
enum { THREADS, OPS, SEED, ZONES, BLOCKS, POOLS, WAYS, MEDIUM, BARE, REFUSED, SHORT };

/* A file: as the VFS and the page cache would have it */
struct file {
	pthread_rwlock_t use;	/* for writing: it is made, or goes */
	struct rfs_inode_info inode;
	struct address_space mapping;
	u32 dir;
	bool there;
	char name[16];
	struct folio page[PAGES];
	/* what fsync has promised of this life of it: stamps of its pages */
	pthread_mutex_t promise;
	u64 life;
	u64 promised[PAGES];
};

struct worker {
	pthread_t thread;
	u64 seed;
};

static struct rfs_sb_info sbi;
static struct super_block sb;
static struct block_device bdev;
static struct file files[FILES];
static struct { u32 ino; pthread_mutex_t names; } dirs[DIRS];
static u64 stamps;	/* what was written last has the highest */
/* Atomic writes, by their stamps, which are from 1 on: pages of a file */
static struct { u32 at, n; } *whole;
static u64 wholes;
static bool over;

static void fail(const char *what, int ret)
{
	fprintf(stderr, "threads: %s: %d\n", what, ret);
	exit(1);
}

void shim_said(const char *where)
{
	fail(where, 0);
}

void shim_failed(const char *where, int error)
{
	fail(where, error);
}

bool rfsm_may_exceed(void *dev)
{
	(void)dev;
	return false;
}

void rfsm_victim(void *dev, u32 zone, u32 live, u32 cap)
{
	(void)dev;
	(void)zone;
	(void)live;
	(void)cap;
}

/*
 * In one hold of the lock no more is taken than is kept for it (design.md, "Memory"): summaries,
 * and others. With short=1, what is kept is made less now and then, as if others had taken it.
 */
static __thread struct { int sums, others; } budget;
static __thread u32 holds;
void __sanitizer_print_stack_trace(void);
void __real_rfsm_memory_held(struct rfs_sb_info *sbi);
void __wrap_rfsm_memory_held(struct rfs_sb_info *sbi);
bool __real_rfsm_memory_kept(struct rfs_sb_info *sbi, enum rfsm_memory_need need);
bool __wrap_rfsm_memory_kept(struct rfs_sb_info *sbi, enum rfsm_memory_need need);
bool __real_rfsm_memory_for_pages(struct rfs_sb_info *sbi, u32 pages);
bool __wrap_rfsm_memory_for_pages(struct rfs_sb_info *sbi, u32 pages);
void *__real_rfs_alloc_nofail(size_t bytes);
void *__wrap_rfs_alloc_nofail(size_t bytes);

#define LESS_EACH	64	/* holds */

/* Others have taken what is kept, but for so many, now and then. */
static void keep_less(struct rfsm_memory *m, int left)
{
	struct llist_node *node;

	if (!READ_ONCE(shim_no_wait) || ++holds % LESS_EACH)
		return;
	while (atomic_read(&m->count) > left) {
		node = llist_del_first(&m->kept);
		atomic_dec(&m->count);
		free(node);
	}
}

void __wrap_rfsm_memory_held(struct rfs_sb_info *of)
{
	__real_rfsm_memory_held(of);
	if (of->quiet && of->quiet_by == current)
		return;		/* who has lent the lock goes on */
	budget.sums = RFSM_KEPT_SENT;
	budget.others = 0;
	keep_less(&of->memory, RFSM_KEPT_SENT);
}

bool __wrap_rfsm_memory_kept(struct rfs_sb_info *of, enum rfsm_memory_need need)
{
	size_t most = max(sizeof(struct rfs_buf), sizeof(struct rfs_sum));

	keep_less(&of->memory, 0);
	if (!__real_rfsm_memory_kept(of, need)) {
		/* Nobody takes these but a check-point, which may come now. */
		while (atomic_read(&of->memory.count) < RFSM_KEPT_SENT) {
			llist_add(calloc(1, most), &of->memory.kept);
			atomic_inc(&of->memory.count);
		}
		return false;
	}
	budget.others = RFSM_KEPT_LOOK_UP;
	if (need == RFSM_MEMORY_OPERATION)
		budget.others += RFSM_KEPT_OPERATION;
	return true;
}

bool __wrap_rfsm_memory_for_pages(struct rfs_sb_info *of, u32 pages)
{
	if (!__real_rfsm_memory_for_pages(of, pages))
		return false;
	budget.others = RFSM_KEPT_FOR(pages);
	return true;
}

void *__wrap_rfs_alloc_nofail(size_t bytes)
{
	bool sum = bytes == sizeof(struct rfs_sum) ||
		   /* without page metadata they go out with their blocks */
		   (bytes == sizeof(struct rfs_summary) && !sbi.dev.oob_bytes);
	int left = sum ? --budget.sums : --budget.others;

	if (current->journal_info && left < 0) {
		__sanitizer_print_stack_trace();
		fail("a hold of the lock takes more memory than is kept for it", bytes);
	}
	return __real_rfs_alloc_nofail(bytes);
}

/* Nobody leaves blocks: it is pages.c that looks for them. */
void rfsm_write_left(struct rfs_sb_info *sbi)
{
	(void)sbi;
}

/* There is no slow device. */
void rfsm_slow_say_replica(struct rfs_sb_info *sbi)
{
	(void)sbi;
}

struct inode *find_inode_by_ino_rcu(struct super_block *of, unsigned long ino)
{
	u32 i;

	(void)of;
	for (i = 0; i < FILES; i++)
		if (READ_ONCE(files[i].inode.vfs.i_ino) == ino)
			return &files[i].inode.vfs;
	return NULL;
}

void folio_end_writeback(struct folio *folio)
{
	pthread_mutex_lock(&folio->lock);
	folio->writeback = false;
	pthread_mutex_unlock(&folio->lock);
	wake_up_all(&folio->waits);
}

/* All folios have one page. */
int rfsm_blocks_attach(struct folio *folio)
{
	(void)folio;
	return 0;
}

void rfsm_blocks_sent(struct folio *folio, u64 block, u32 n)
{
	(void)block;
	(void)n;
	folio_end_writeback(folio);
}

/* A page, locked, that is not on its way */
static void lock_stable(struct folio *folio)
{
	pthread_mutex_lock(&folio->lock);
	while (folio->writeback) {
		pthread_mutex_unlock(&folio->lock);
		shim_nap(&folio->waits);
		pthread_mutex_lock(&folio->lock);
	}
}

static u32 some(struct worker *w, u32 most)
{
	w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (w->seed >> 33) % most;
}

/* As folio_get_promised() of pages.c */
static bool write_page(struct file *f, u32 nr, bool small)
{
	enum rfsm_waited waited = RFSM_NOT_YET;
	struct folio *folio = &f->page[nr];
	int ret;

	for (;;) {
		lock_stable(folio);
		ret = rfsm_reserve(&sbi, &f->inode.vfs, folio, folio->index, 1,
				   1, waited);
		if (ret != -EAGAIN)
			break;
		pthread_mutex_unlock(&folio->lock);
		waited = rfsm_wait_room(&sbi, rfsm_is_small_writer(&f->inode.vfs)) ?
			 RFSM_NO_SPACE : RFSM_WAITED;
	}
	if (!ret) {
		*(u64 *)page_address(folio->page) =
			__atomic_add_fetch(&stamps, 1, __ATOMIC_SEQ_CST);
		rfsm_dirty_bytes(folio, 0, small ? sizeof(u64) : PAGE_SIZE);
		folio->dirty = true;
	}
	pthread_mutex_unlock(&folio->lock);
	if (ret && ret != -ENOSPC)
		fail("a page cannot be promised room", ret);
	return !ret;
}

static void unlock_pages(struct file *f, u32 at, u32 n, bool written)
{
	u32 i;

	for (i = at; i < at + n; i++) {
		struct folio *folio = &f->page[i];

		if (written) {
			folio->dirty = false;
			folio->writeback = true;
		} else if (!folio->dirty) {
			rfsm_lock(&sbi);
			rfsm_unreserve(&sbi, &f->inode.vfs, folio, i, 1);
			rfsm_unlock(&sbi);
		}
		pthread_mutex_unlock(&folio->lock);
	}
}

static void add_end(struct file *f, u32 nr, struct rfsm_ends *ends)
{
	ends->piece[ends->n++] = (struct rfs_bytes){
		.off = nr * RFS_BLOCK_BYTES + sizeof(u64), .len = sizeof(u64),
		.at = (const u8 *)page_address(f->page[nr].page) + sizeof(u64),
	};
}

/*
 * As atomic.c: pages with a stamp in their second word, which is a piece at an end that
 * has nothing else that is new. If there is no room now, it is left.
 */
static void write_as_one(struct worker *w, struct file *f, u32 at, u32 n, bool sync)
{
	struct rfsm_ends ends = { .n = 0 };
	struct folio *folio[PAGES];
	u32 i, which = some(w, 4);
	u64 stamp;

	for (i = 0; i < n; i++) {
		folio[i] = &f->page[at + i];
		lock_stable(folio[i]);
		if (!rfsm_reserve(&sbi, &f->inode.vfs, folio[i], at + i, 1, 1,
				  RFSM_NOT_YET))
			continue;
		unlock_pages(f, at, i + 1, false);
		return;
	}
	stamp = __atomic_add_fetch(&wholes, 1, __ATOMIC_SEQ_CST);
	whole[stamp].at = at;
	whole[stamp].n = n;
	for (i = 0; i < n; i++)
		((u64 *)page_address(folio[i]->page))[1] = stamp;
	if (which & 1 && !folio[0]->dirty)
		add_end(f, at, &ends);
	ends.head = ends.n;
	if (which & 2 && !folio[n - 1]->dirty)
		add_end(f, at + n - 1, &ends);
	unlock_pages(f, at, n, true);
	rfsm_append_then(&sbi, &f->inode.vfs, at, NULL, folio, n, RFS_BLOCK_BYTES,
			 RFSM_APPEND_ATOMIC | (sync ? RFSM_APPEND_SYNC : 0),
			 ends.n ? &ends : NULL, NULL);
}

/* As rfsm_batch_smalls(), each page by itself */
static void write_smalls(struct file *f, struct rfsm_batch *b, bool sync)
{
	u32 i;

	rfsm_smalls_write(&f->inode.vfs, b, sync);
	for (i = 0; i < b->smalls; i++)
		rfsm_append(&sbi, &f->inode.vfs, b->small[i].block,
			    &b->small[i].folio, 1, b->small[i].len, sync);
	b->smalls = 0;
}

/* As writepages() */
static void write_back(struct file *f, bool sync)
{
	loff_t size = i_size_read(&f->inode.vfs);
	struct rfsm_batch b = { 0 };
	struct folio *batch[PAGES];
	struct rfsm_bytes bytes;
	u32 n = 0, i;

	for (i = 0; i <= PAGES; i++) {
		struct folio *folio = &f->page[i];
		bool takes = false, part;

		if (i < PAGES) {
			pthread_mutex_lock(&folio->lock);
			takes = folio->dirty && !folio->writeback;
			if (takes)
				folio->dirty = false;
			folio->writeback |= takes;
			part = takes && rfsm_new_bytes(folio, &bytes);
			pthread_mutex_unlock(&folio->lock);
			if (part && rfsm_small_add(&b, folio, i, &bytes, size))
				takes = false;
			if (b.smalls == RFSM_SMALLS)
				write_smalls(f, &b, sync);
		}
		if (takes)
			batch[n++] = folio;
		if (!takes && n) {
			rfsm_append(&sbi, &f->inode.vfs, batch[0]->index, batch,
				    n, RFS_BLOCK_BYTES, sync);
			n = 0;
		}
	}
	write_smalls(f, &b, sync);
	for (i = 0; sync && i < PAGES; i++) {
		lock_stable(&f->page[i]);
		pthread_mutex_unlock(&f->page[i].lock);
	}
}

void sync_inodes_sb(struct super_block *of)
{
	u32 i;

	(void)of;
	for (i = 0; i < FILES; i++) {
		if (pthread_rwlock_tryrdlock(&files[i].use))
			continue;	/* it is being made, or deleted */
		if (files[i].there)
			write_back(&files[i], true);
		pthread_rwlock_unlock(&files[i].use);
	}
}

/* Another life of a file begins: nothing is promised of it. */
static void begin_life(struct file *f)
{
	pthread_mutex_lock(&f->promise);
	f->life++;
	memset(f->promised, 0, sizeof(f->promised));
	pthread_mutex_unlock(&f->promise);
}

static void make(struct worker *w, struct file *f)
{
	static const struct rfs_new how = { .mode = S_IFREG | 0644 };
	u32 ino, i;
	int ret;

	f->dir = some(w, DIRS);
	snprintf(f->name, sizeof(f->name), "f%u", (u32)(f - files));
	pthread_mutex_lock(&dirs[f->dir].names);
	rfsm_update(&sbi, ret, rfs_create(sbi.fs, dirs[f->dir].ino, f->name, &how,
				    &ino));
	pthread_mutex_unlock(&dirs[f->dir].names);
	if (ret == -ENOSPC)
		return;
	if (ret)
		fail("a file cannot be made", ret);
	WRITE_ONCE(f->inode.vfs.i_ino, ino);
	f->inode.vfs.i_size = PAGES * RFS_BLOCK_BYTES;
	begin_life(f);
	f->inode.blocks = 0;
	for (i = 0; i < PAGES; i++)
		memset(page_address(f->page[i].page), 0, 2 * sizeof(u64));
	f->there = true;
}

/* Nobody uses it. */
static void delete(struct file *f)
{
	bool more;
	u32 ino, i;
	int ret;

	begin_life(f);
	pthread_mutex_lock(&dirs[f->dir].names);
	rfsm_update(&sbi, ret, rfs_unlink(sbi.fs, dirs[f->dir].ino, f->name, &ino));
	pthread_mutex_unlock(&dirs[f->dir].names);
	if (ret)
		fail("a file cannot be deleted", ret);
	for (i = 0; i < PAGES; i++) {
		struct folio *folio = &f->page[i];

		lock_stable(folio);
		folio->dirty = false;
		rfsm_lock(&sbi);
		rfsm_unreserve(&sbi, &f->inode.vfs, folio, folio->index, 1);
		rfsm_unlock(&sbi);
		pthread_mutex_unlock(&folio->lock);
	}
	do {
		rfsm_update(&sbi, ret, rfs_free_some(sbi.fs, ino, &more));
	} while (!ret && more);
	if (ret)
		fail("an inode cannot be freed", ret);
	WRITE_ONCE(f->inode.vfs.i_ino, 0);
	f->there = false;
}

static void move(struct worker *w, struct file *f)
{
	u32 from = f->dir, to = some(w, DIRS);
	int ret;

	pthread_mutex_lock(&dirs[min(from, to)].names);
	if (from != to)
		pthread_mutex_lock(&dirs[max(from, to)].names);
	rfsm_update(&sbi, ret, rfs_rename(sbi.fs, dirs[from].ino, f->name, dirs[to].ino,
				    f->name, 0, NULL));
	if (from != to)
		pthread_mutex_unlock(&dirs[max(from, to)].names);
	pthread_mutex_unlock(&dirs[min(from, to)].names);
	if (!ret)
		f->dir = to;
	else if (ret != -ENOSPC)
		fail("a file cannot be renamed", ret);
}

static void look(struct worker *w, struct file *f)
{
	struct rfs_ptr ptr;
	u32 ino;
	int ret;

	rfsm_query(&sbi, ret, rfs_map_get(sbi.fs, f->inode.vfs.i_ino, some(w, PAGES),
				       &ptr));
	if (ret)
		fail("a block cannot be found", ret);
	pthread_mutex_lock(&dirs[f->dir].names);
	rfsm_query(&sbi, ret, rfs_dir_find(sbi.fs, dirs[f->dir].ino, f->name,
					strlen(f->name), &ino));
	pthread_mutex_unlock(&dirs[f->dir].names);
	if (ret || ino != f->inode.vfs.i_ino)
		fail("a name cannot be found", ret);
}

static void sync_file(struct file *f)
{
	u64 before[PAGES];
	u32 i;
	int ret;

	for (i = 0; i < PAGES; i++) {
		pthread_mutex_lock(&f->page[i].lock);
		before[i] = *(u64 *)page_address(f->page[i].page);
		pthread_mutex_unlock(&f->page[i].lock);
	}
	write_back(f, true);
	rfsm_update(&sbi, ret,
		    rfs_log_pending(sbi.fs, f->inode.vfs.i_ino, false) ?
		    rfsm_log_sync(&sbi) : 0);
	if (ret)
		fail("fsync", ret);
	pthread_mutex_lock(&f->promise);
	for (i = 0; i < PAGES; i++)
		f->promised[i] = max(f->promised[i], before[i]);
	pthread_mutex_unlock(&f->promise);
}

static void use(struct worker *w, struct file *f, u32 what)
{
	u32 i, at = some(w, PAGES), n = 1 + some(w, 8);
	bool small = some(w, 2);

	if (what < 50) {
		for (i = at; i < min(at + n, (u32)PAGES); i++)
			if (!write_page(f, i, small))
				break;
	} else if (what < 65) {
		write_back(f, false);
	} else if (what < 80) {
		sync_file(f);
	} else if (what < 92) {
		n = min(n + 1, PAGES - at);
		if (n > 1)
			write_as_one(w, f, at, n, small);
		if (n > 1 && small)
			sync_file(f);
		/* a page with a part of it is sent at once, before its records are written */
		else if (n > 1 && write_page(f, at, false))
			write_back(f, false);
	} else {
		look(w, f);
	}
}

static void *work(void *arg)
{
	struct task_struct self = { 0 };
	struct worker *w = arg;
	u32 ops = option[OPS];
	int ret;

	current = &self;
	while (ops--) {
		struct file *f = &files[some(w, FILES)];
		u32 what = some(w, 100);

		if (some(w, 200) == 0) {
			ret = rfsm_sync(&sbi, 0);
			if (ret)
				fail("sync", ret);
		}
		if (what < 90) {
			pthread_rwlock_rdlock(&f->use);
			if (f->there)
				use(w, f, some(w, 100));
			pthread_rwlock_unlock(&f->use);
			continue;
		}
		pthread_rwlock_wrlock(&f->use);
		if (!f->there)
			make(w, f);
		else if (what < 93)
			delete(f);
		else
			move(w, f);
		pthread_rwlock_unlock(&f->use);
	}
	return NULL;
}

static void say(void *arg, const char *text)
{
	(void)arg;
	fprintf(stderr, "threads: %s\n", text);
}

/* What was promised of all files at some time */
struct promises {
	u64 life;
	u32 ino;
	u64 page[PAGES];
};

static void note_promises(struct promises *p)
{
	u32 i;

	for (i = 0; i < FILES; i++, p++) {
		pthread_mutex_lock(&files[i].promise);
		p->life = files[i].life;
		p->ino = READ_ONCE(files[i].inode.vfs.i_ino);
		memcpy(p->page, files[i].promised, sizeof(p->page));
		pthread_mutex_unlock(&files[i].promise);
	}
}

static void check_promise(struct rfs_fs *fs, const struct promises *p)
{
	static __thread u64 block[PAGE_SIZE / sizeof(u64)];
	u32 i;
	int ret;

	for (i = 0; i < PAGES; i++) {
		if (!p->page[i])
			continue;
		ret = rfs_read(fs, p->ino, i, block);
		if (ret || block[0] < p->page[i])
			fail("a power cut has undone what fsync promised", ret);
	}
}

/* Of each atomic write all is there, or something newer, or nothing. */
static void check_whole(struct rfs_fs *fs, u32 ino)
{
	static __thread u64 block[PAGE_SIZE / sizeof(u64)];
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	u64 stamp[PAGES];
	u32 i, j;

	if (rfs_iget(fs, ino, &di, &buf) || !S_ISREG(le32_to_cpu(di->mode)))
		return;
	for (i = 0; i < PAGES; i++) {
		if (rfs_read(fs, ino, i, block))
			fail("a block cannot be read after a power cut", i);
		stamp[i] = block[1];
	}
	for (i = 0; i < PAGES; i++)
		for (j = 0; stamp[i] && j < whole[stamp[i]].n; j++)
			if (stamp[whole[stamp[i]].at + j] < stamp[i])
				fail("a power cut has left a part of an atomic write", i);
}

/* Power is cut while all are at work; then a mount finds what was promised. */
static void cut(void)
{
	struct rfs_report report = { .say = say, .read_data = true };
	static struct promises before[FILES], after[FILES];
	struct memdev *dev;
	struct rfs_fs *fs;
	u32 i;
	int ret;

	note_promises(before);
	dev = drive_cut();
	note_promises(after);
	ret = rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, &fs);
	if (ret)
		fail("mounting after a power cut", ret);
	ret = rfs_check(fs, &report);
	if (ret || report.faults)
		fail("the volume is damaged after a power cut", ret);
	for (i = 0; i < FILES; i++) {
		if (before[i].life == after[i].life)
			check_promise(fs, &before[i]);
		if (before[i].ino)
			check_whole(fs, before[i].ino);
	}
	rfs_unmount_nosync(fs);
	memdev_free(dev);
}

static void *cut_some(void *arg)
{
	struct task_struct self = { 0 };
	u64 *cuts = arg;

	current = &self;
	for (; !__atomic_load_n(&over, __ATOMIC_SEQ_CST); ++*cuts) {
		usleep(10000);
		cut();
	}
	return NULL;
}

static void prepare_files(void)
{
	u32 i, j;

	for (i = 0; i < FILES; i++) {
		struct file *f = &files[i];

		pthread_rwlock_init(&f->use, NULL);
		pthread_mutex_init(&f->promise, NULL);
		f->inode.vfs.i_sb = &sb;
		f->inode.vfs.i_mapping = &f->mapping;
		f->mapping.host = &f->inode.vfs;
		for (j = 0; j < PAGES; j++) {
			f->page[j].index = j;
			f->page[j].page = alloc_page(0);
			pthread_mutex_init(&f->page[j].lock, NULL);
			init_waitqueue_head(&f->page[j].waits);
		}
	}
}

/* Nobody keeps the gate closed while a check-point is made durable. */
static void frozen(void *dev)
{
	rfsm_dev_frozen(dev);
	if (sbi.gate)
		fail("the gate is closed in the next epoch", sbi.gate);
}

static void mount(void)
{
	const struct rfs_id id = { .uuid = { 1 }, .hash_key = { 2 },
				   .pieces = true, .ways = option[WAYS],
				   .runs = true };
	struct rfs_geometry geo = { 0 };
	int ret;

	pthread_rwlock_init(&sb.s_umount.l, NULL);
	sb.s_bdev = &bdev;
	sb.s_fs_info = &sbi;
	sbi.sb = &sb;
	sbi.opt.commit = 1;
	sbi.opt.policy = rfs_policy_default;
	mutex_init(&sbi.lock);
	init_waitqueue_head(&sbi.gate_wait);
	init_waitqueue_head(&sbi.quiet_over);
	init_waitqueue_head(&sbi.wake);
	init_waitqueue_head(&sbi.room);
	ret = rfsm_mem_module_init();
	ret = ret ? ret : rfsm_append_module_init();
	ret = ret ? ret : rfsm_fetch_init(&sbi);
	ret = ret ? ret : rfsm_memory_init(&sbi);
	ret = ret ? ret : rfsm_dev_open(&sbi.dev, &sb, &geo);
	sbi.dev.ops.copy_write = rfsm_copy_write;
	sbi.dev.ops.frozen = frozen;
	sbi.dev.ops.durable = rfsm_dev_durable;
	sbi.dev.ops.lets_change = rfsm_dev_lets_change;
	ret = ret ? ret : rfs_mkfs(&sbi.dev.ops, &sbi.dev, &geo, &id, "");
	/* a mount asks anew how zones are */
	rfsm_dev_mounted(&sbi.dev);
	ret = ret ? ret : rfs_mount(&sbi.dev.ops, &sbi.dev, &geo, false, 0, &sbi.fs);
	if (!ret) {
		sbi.fs->threaded = true;
		sbi.fs->clean_max = 64;
	}
	ret = ret ? ret : rfsm_append_init(&sbi);
	ret = ret ? ret : rfsm_thread_start(&sbi);
	if (ret)
		fail("mounting", ret);
}

static void make_dirs(void)
{
	static const struct rfs_new how = { .mode = S_IFDIR | 0755 };
	char name[] = "0";
	u32 i;
	int ret;

	for (i = 0; i < DIRS; i++, name[0]++) {
		pthread_mutex_init(&dirs[i].names, NULL);
		rfsm_update(&sbi, ret, rfs_create(sbi.fs, RFS_ROOT_INO, name, &how,
					    &dirs[i].ino));
		if (ret)
			fail("a directory cannot be made", ret);
	}
}

/* A block, as a reader sees it; *there: it has a place or pieces */
static const u64 *content_of(u32 ino, u32 nr, bool *there)
{
	static u64 block[PAGE_SIZE / sizeof(u64)];
	struct rfs_dinode *di;
	struct rfs_buf *buf;
	struct rfs_ptr ptr;
	u32 pieces;

	if (rfs_map_get(sbi.fs, ino, nr, &ptr) || rfs_iget(sbi.fs, ino, &di, &buf))
		fail("a block is lost", nr);
	memset(block, 0, sizeof(block));
	if (rfs_addr(ptr.addr))
		memcpy(block, drive_block(rfs_addr(ptr.addr)), sizeof(block));
	if (rfs_diff_overlay(sbi.fs, di, nr, (u8 *)block, &pieces))
		fail("pieces are lost", nr);
	*there = rfs_addr(ptr.addr) || pieces;
	return block;
}

/* What is on the drive is what was written last. */
static u64 compare(void)
{
	u64 pages = 0;
	u32 i, j;

	for (i = 0; i < FILES; i++) {
		for (j = 0; files[i].there && j < PAGES; j++) {
			u64 *page = page_address(files[i].page[j].page);
			const u64 *content;
			bool there;

			content = content_of(files[i].inode.vfs.i_ino, j, &there);
			if (content[0] != page[0] || content[1] != page[1] ||
			    there != (page[0] || page[1]))
				fail("a block is not what was written", j);
			pages += there;
		}
	}
	return pages;
}

/*
 * No copy finds a zone that takes it: to the core that is -EIO, whatever Linux calls it, and
 * what was to be copied stays where it is.
 */
static void refuse_copies(void)
{
	int ret = rfsm_sync(&sbi, 0);

	if (ret)
		fail("sync", ret);
	drive_refuse_copies(-ENODATA);
	rfsm_lock(&sbi);
	ret = rfs_clean(sbi.fs, RFS_CLEAN_HARD);
	rfsm_unlock(&sbi);
	if (!drive_refuse_copies(0))
		fail("nothing was copied", ret);
	if (ret != -EIO || sbi.fs->read_only)
		fail("copies that the medium refuses", ret);
}

/*
 * What cannot be read as a row is read block by block, and nobody waits for that: the only
 * reads with the lock held are those that rfs_stats.waited_reads counts.
 */
static void clean_with_bad_rows(void)
{
	u64 waited, copied;
	u32 reads;
	int ret;

	drive_refuse_rows(true);
	rfsm_lock(&sbi);
	waited = sbi.fs->stats.waited_reads;
	copied = sbi.fs->stats.copied;
	reads = drive_locked_reads();
	ret = rfs_clean(sbi.fs, RFS_CLEAN_HARD);
	waited = sbi.fs->stats.waited_reads - waited;
	copied = sbi.fs->stats.copied - copied;
	rfsm_unlock(&sbi);
	reads = drive_locked_reads() - reads;
	/* Victims may have had no row. */
	if (drive_refuse_rows(false) && (ret || !copied))
		fail("no row was read again and copied", ret);
	if (reads != waited)
		fail("blocks are read again with the lock held", reads);
}

#define MORE_TIMES	20

/* Free zones that nothing has been written to, as if something had. Returns how many. */
static u32 soil_free_zones(void)
{
	struct rfs_fs *fs = sbi.fs;
	u32 nr, n = 0;

	rfsm_lock(&sbi);
	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		struct rfs_zone_info *z = &fs->zone[nr];

		if (z->state != RFS_Z_FREE || z->wp)
			continue;
		z->wp = 1;
		rfs_zone_changed(fs, nr);
		n++;
	}
	rfsm_unlock(&sbi);
	return n;
}

static void *free_more(void *arg)
{
	struct task_struct self = { 0 };
	u32 *left = arg;
	u32 n;

	current = &self;
	while (*left && !__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
		n = soil_free_zones();
		*left -= min(n, *left);
		usleep(500);
	}
	return NULL;
}

/*
 * FITRIM resets the zones that are free when it begins, however many others free meanwhile,
 * and ends when its caller is killed.
 */
static void trim(void)
{
	u32 zones = option[ZONES], left = MORE_TIMES * zones, before, ended;
	pthread_t other;
	int ret;

	__atomic_store_n(&over, false, __ATOMIC_SEQ_CST);
	if (!soil_free_zones())
		fail("no zone is free", 0);
	if (pthread_create(&other, NULL, free_more, &left))
		abort();
	rfsm_lock(&sbi);
	before = sbi.reset.ended;
	ret = rfsm_reset_free(&sbi);
	ended = sbi.reset.ended - before;
	rfsm_unlock(&sbi);
	if (ret || ended > 2 * zones)
		fail("FITRIM waits for zones that others free", ended);
	soil_free_zones();
	shim_killed = true;
	rfsm_lock(&sbi);
	ret = rfsm_reset_free(&sbi);
	rfsm_unlock(&sbi);
	shim_killed = false;
	if (ret != -EINTR)
		fail("FITRIM goes on though its caller is killed", ret);
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	pthread_join(other, NULL);
}

/* What has room on the drive is written whatever memory there is. */
static void write_without_memory(void)
{
	struct worker w = { .seed = option[SEED] };
	struct file *f = files;
	u32 i;
	int ret;

	if (!f->there)
		make(&w, f);
	for (i = 0; i < PAGES; i++)
		if (!write_page(f, i, false))
			fail("a page has no room", i);
	/* or the log would come first */
	rfsm_update(&sbi, ret, rfs_log_sync(sbi.fs));
	if (ret)
		fail("the log", ret);
	WRITE_ONCE(shim_refuses, true);
	write_back(f, true);
	WRITE_ONCE(shim_refuses, false);
}

static void finish(u64 cuts)
{
	struct rfs_report report = { .say = say, .read_data = true };
	int ret;

	sync_inodes_sb(&sb);
	WRITE_ONCE(shim_no_wait, false);
	if (option[REFUSED])
		write_without_memory();
	rfsm_thread_stop(&sbi);
	if (option[MEDIUM]) {
		refuse_copies();
		clean_with_bad_rows();
	}
	trim();
	ret = rfsm_sync(&sbi, RFS_CP_UNMOUNT);
	if (ret)
		fail("unmounting", ret);
	rfsm_append_exit(&sbi);
	sbi.fs->threaded = false;
	printf("%" PRIu64 " pages as they were written", compare());
	ret = rfs_check(sbi.fs, &report);
	if (ret || report.faults)
		fail("the volume is damaged", ret);
	printf(", %" PRIu64 " files, %" PRIu64 " check-points, %" PRIu64
	       " blocks moved, %" PRIu64 " resets, %" PRIu64 " pieces, %" PRIu64
	       " atomic writes, %" PRIu64 " power cuts\n", report.files,
	       sbi.fs->stats.checkpoints, sbi.fs->stats.copied,
	       sbi.fs->stats.resets, sbi.fs->stats.pieces, wholes, cuts);
	rfs_unmount_nosync(sbi.fs);
	rfsm_memory_exit(&sbi);
	rfsm_fetch_exit(&sbi);
	rfsm_dev_close(&sbi.dev);
	rfsm_append_module_exit();
	rfsm_mem_module_exit();
}

static void parse(int argc, char **argv)
{
	char *end;
	u32 i, at;

	for (at = 0; at < ARRAY_SIZE(options); at++)
		option[at] = options[at].here;
	for (i = 1; i < (u32)argc; i++) {
		for (at = 0; at < ARRAY_SIZE(options); at++) {
			size_t len = strlen(options[at].name);

			if (strncmp(argv[i], options[at].name, len) ||
			    argv[i][len] != '=' || !argv[i][len + 1])
				continue;
			option[at] = strtoull(argv[i] + len + 1, &end, 10);
			if (*end || !option[at] || option[at] > options[at].most)
				at = ARRAY_SIZE(options);
			break;
		}
		if (at == ARRAY_SIZE(options)) {
			fprintf(stderr, "usage: threads [threads=4] [ops=300] [seed=1] [zones=40] [blocks=256] [pools=1] [ways=1] [medium=1] [bare=1] [refused=1] [short=1]\n");
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct task_struct self = { 0 };
	struct worker *workers;
	pthread_t cutter;
	u64 cuts = 0;
	u32 i;

	parse(argc, argv);
	current = &self;
	shim_no_memory = option[POOLS] == 2;
	system_freezable_wq = shim_queue();
	system_unbound_wq = system_freezable_wq;
	rfsm_reads = shim_queue();
	rfsm_resets = shim_queue();
	drive_start(option[ZONES], option[BLOCKS], option[BARE] ? 0 : RFS_OOB_BYTES,
		    option[SEED]);
	prepare_files();
	mount();
	make_dirs();
	WRITE_ONCE(shim_no_wait, option[SHORT]);
	workers = calloc(option[THREADS], sizeof(*workers));
	whole = calloc(option[THREADS] * option[OPS] + 1, sizeof(*whole));
	for (i = 0; i < option[THREADS]; i++) {
		workers[i].seed = option[SEED] * 1000 + i;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			abort();
	}
	if (pthread_create(&cutter, NULL, cut_some, &cuts))
		abort();
	for (i = 0; i < option[THREADS]; i++)
		pthread_join(workers[i].thread, NULL);
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	pthread_join(cutter, NULL);
	free(workers);
	finish(cuts);
	free(whole);
	destroy_workqueue(rfsm_reads);
	destroy_workqueue(rfsm_resets);
	destroy_workqueue(system_freezable_wq);
	drive_stop();
	return 0;
}
