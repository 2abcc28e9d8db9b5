// SPDX-License-Identifier: GPL-2.0-or-later
#include "run.h"

#define PAGE_BYTES	(PAGE_UNITS * RFS_SECTION_UNIT)
#define NO_FILE		(~0U)

struct runner {
	const struct run_config *cfg;
	struct store *store;
	struct drives *drives;
	struct calls *calls;
	u64 *home;		/* of each file: the page where it begins */
	u64 next_home;
	u32 idle, busy;		/* clients */
	u64 returned_at;	/* the last call */
	u64 made, bytes, by_disk;
};

static void fail(const char *why)
{
	fprintf(stderr, "hfmsim: %s\n", why);
	exit(1);
}

/*
 * Ends a call if it is done. A write is done when one of the drives has it (HFM
 * 3.3), a read when it has all its data.
 */
static void settle(struct runner *r, struct call *call)
{
	bool flash = !call->left[FLASH], disk = !call->left[DISK];

	if (!call->submitted)
		return;
	if (!call->returned && (call->write ? flash || disk : flash && disk)) {
		call->returned = true;
		r->returned_at = drives_now(r->drives);
		r->by_disk += call->write && !flash;
		r->idle++;
		r->busy--;
	}
	if (!flash || !disk)
		return;
	if (call->refill != NO_FILE)
		store_refill(r->store, call->refill);
	free(call);
}

static void done(void *to, struct call *call, int which)
{
	call->left[which]--;
	settle(to, call);
}

static void on_write(void *to, u64 page, u32 pages, struct wait *waits)
{
	struct runner *r = to;

	drives_write(r->drives, FLASH, page, pages, waits);
}

static void on_read(void *to, u64 page, u32 pages, struct call *call)
{
	struct runner *r = to;

	drives_read_for(r->drives, FLASH, page, pages, call);
}

static void on_read_home(void *to, u64 page, u32 pages, struct call *call)
{
	struct runner *r = to;

	drives_read_for(r->drives, DISK, page, pages, call);
}

static void on_hold(struct call *call)
{
	call->left[FLASH]++;
}

static void on_drop(void *to, struct wait *waits)
{
	struct wait *next;

	for (; waits; waits = next) {
		next = waits->next;
		done(to, waits->call, FLASH);
		free(waits);
	}
}

static struct call *begin(struct runner *r, bool write)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		fail("there is no memory for a call");
	call->write = write;
	call->refill = NO_FILE;
	r->idle--;
	r->busy++;
	r->made++;
	return call;
}

/* Writes an append to both drives at once (HFM 3.3). */
static void append(struct runner *r, const struct request *q)
{
	u32 pages = DIV_ROUND_UP(q->bytes, PAGE_BYTES);
	struct call *call = begin(r, true);

	if (!store_bytes(r->store, q->file))
		r->home[q->file] = r->next_home;
	drives_write_for(r->drives, DISK, r->next_home, pages, call);
	store_append(r->store, q->file, q->bytes, r->next_home, call);
	r->next_home += pages;
	r->bytes += q->bytes;
	call->submitted = true;
	settle(r, call);
}

static void overwrite(struct runner *r, const struct request *q)
{
	u64 bytes = store_bytes(r->store, q->file);
	struct call *call = begin(r, true);

	drives_write_for(r->drives, DISK, r->home[q->file],
			 DIV_ROUND_UP(bytes, PAGE_BYTES), call);
	store_overwrite(r->store, q->file, call);
	r->bytes += bytes;
	call->submitted = true;
	settle(r, call);
}

static void read_file(struct runner *r, const struct request *q)
{
	struct call *call = begin(r, false);

	store_read(r->store, q->file, call);
	if (call->left[DISK])
		call->refill = q->file;
	call->submitted = true;
	settle(r, call);
}

/*
 * Writes a line of the list. An error of the list is noticed when it is closed.
 */
static void list(const struct runner *r, const struct request *q)
{
	static const char *const names[] = { "append", "overwrite", "read",
					     "delete", "mark" };

	if (r->cfg->list)
		fprintf(r->cfg->list, "%s %u %llu\n", names[q->op], q->file,
			(unsigned long long)q->bytes);
}

static void make(struct runner *r, const struct request *q)
{
	switch (q->op) {
	case OP_APPEND:
		append(r, q);
		break;
	case OP_OVERWRITE:
		overwrite(r, q);
		break;
	case OP_READ:
		read_file(r, q);
		break;
	default:
		store_delete(r->store, q->file);
		r->made++;
	}
}

/*
 * Makes a call. False says that there are no more, or that this is the mark. No
 * later call can complete an extent then, so all are written.
 */
static bool make_next(struct runner *r)
{
	struct request q = { 0 };

	if (calls_next(r->calls, &q)) {
		list(r, &q);
		if (q.op != OP_MARK) {
			make(r, &q);
			return true;
		}
	}
	store_flush(r->store);
	return false;
}

static void work(struct runner *r)
{
	bool more = true;

	while (more || r->busy) {
		if (more && r->idle &&
		    drives_disk_waiting(r->drives) <= r->cfg->memory)
			more = make_next(r);
		else if (!drives_step(r->drives))
			fail("calls wait for nothing: please report this");
	}
}

/* Waits until both drives are idle. */
static void rest(struct runner *r)
{
	while (drives_step(r->drives))
		;
}

/* Subtracts the counters at the mark, since counters are sums. */
static void subtract(u64 *now, const u64 *before, size_t n)
{
	while (n--)
		now[n] -= before[n];
}

void run(const struct run_config *cfg, struct run_result *result)
{
	struct runner r = { .cfg = cfg, .idle = cfg->clients };
	struct store_io io = {
		.write = on_write, .read = on_read, .read_home = on_read_home,
		.hold = on_hold, .drop = on_drop, .to = &r,
	};
	struct drives_config drives = {
		.flash_bytes = (u64)cfg->store.extents *
			       cfg->store.partition.size * RFS_SECTION_UNIT,
		.command_ns = cfg->command_ns, .done = done, .to = &r,
	};
	struct drives_counters before;
	struct store_stats stats;
	const char *why;
	u64 start;

	r.calls = calls_new(&cfg->calls, &why);
	if (!r.calls)
		fail(why);
	r.store = store_new(&cfg->store, &io, calls_files(r.calls));
	r.home = calloc(calls_files(r.calls), sizeof(*r.home));
	if (!r.store || !r.home)
		fail("there is no memory for the section; choose fewer files or a smaller section");
	r.drives = drives_new(&drives);
	work(&r);
	rest(&r);
	start = drives_now(r.drives);
	r.returned_at = start;
	stats = *store_stats(r.store);
	drives_counters(r.drives, &before);
	r.made = 0;
	r.bytes = 0;
	r.by_disk = 0;
	work(&r);
	rest(&r);

	memset(result, 0, sizeof(*result));
	result->done = calls_done(r.calls);
	result->calls = r.made;
	result->bytes = r.bytes;
	result->by_disk = r.by_disk;
	result->ns = r.returned_at - start;
	result->settled_ns = drives_now(r.drives) - start;
	result->store = *store_stats(r.store);
	subtract((u64 *)&result->store, (const u64 *)&stats,
		 sizeof(stats) / sizeof(u64));
	drives_counters(r.drives, &result->drives);
	subtract((u64 *)&result->drives, (const u64 *)&before,
		 sizeof(before) / sizeof(u64));
	drives_free(r.drives);
	store_free(r.store);
	calls_free(r.calls);
	free(r.home);
}
