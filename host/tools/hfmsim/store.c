// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>

#include "store.h"

#define NONE		(~0U)
#define DESCRIPTORS	1024	/* of a map table (HFM 3.3) */

/* This is a part of a file, in one extent or in none that is on the flash. */
struct piece {
	u32 file;		/* NONE: deleted, and only in the extent's list */
	u32 extent;		/* NONE: it has given way */
	u32 start, units;	/* within the extent */
	u32 end;		/* how far it may grow in place */
	u32 after;		/* of the file; or of those that are not in use */
	u32 beside;		/* of the extent */
	u64 home;		/* page */
};

struct file {
	u64 bytes;
	u32 slack;		/* bytes of its last unit that it does not fill */
	u32 first, last;	/* pieces */
};

enum state { FREE, OPEN, COLLECTED, CLOSED };

struct extent {
	enum state state;
	u32 descriptor;		/* OPEN, of sections */
	u32 live;		/* units of files */
	u32 filled, written;	/* units from its start */
	u32 pieces;
	u32 newer, older;	/* of those in use, by the last use */
	struct wait *waits;
};

struct store {
	struct store_config cfg;
	struct store_io io;
	struct store_stats stats;
	struct rfs_section section;
	struct rfs_extent descriptors[DESCRIPTORS];
	struct file *files;
	struct extent *extents;
	u32 *free;		/* extents, in the order in which they came free */
	u32 free_from, frees;
	u32 *collected;		/* extents that wait to be written together */
	u32 num_collected;
	u32 newest, oldest;	/* extents in use */
	u32 head;		/* the open extent, if there are no sections */
	struct piece *pieces;
	u32 piece_room, spare_piece;
};

/* Returns the memory, or ends the program if there is none. */
static void *got(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "hfmsim: there is no memory for so many parts of files; choose fewer files\n");
	exit(1);
}

static u32 extent_units(const struct store *s)
{
	return s->cfg.partition.size;
}

/*
 * Lists
 */

static void unlink_used(struct store *s, u32 e)
{
	struct extent *x = &s->extents[e];

	*(x->newer == NONE ? &s->newest : &s->extents[x->newer].older) = x->older;
	*(x->older == NONE ? &s->oldest : &s->extents[x->older].newer) = x->newer;
}

static void link_used(struct store *s, u32 e)
{
	struct extent *x = &s->extents[e];

	x->newer = NONE;
	x->older = s->newest;
	*(s->newest == NONE ? &s->oldest : &s->extents[s->newest].newer) = e;
	s->newest = e;
}

static void use(struct store *s, u32 e)
{
	unlink_used(s, e);
	link_used(s, e);
}

static u32 new_piece(struct store *s)
{
	u32 nr = s->spare_piece, i;

	if (nr == NONE) {
		u32 room = s->piece_room ? 2 * s->piece_room : 4096;

		s->pieces = got(realloc(s->pieces, room * sizeof(*s->pieces)));
		for (i = room; i-- > s->piece_room;) {
			s->pieces[i].after = s->spare_piece;
			s->spare_piece = i;
		}
		s->piece_room = room;
		nr = s->spare_piece;
	}
	s->spare_piece = s->pieces[nr].after;
	return nr;
}

static void free_piece(struct store *s, u32 nr)
{
	s->pieces[nr].after = s->spare_piece;
	s->spare_piece = nr;
}

/* Lets the call, if there is one, wait with those of the list. */
static void wait_with(struct store *s, struct wait **list, struct call *call)
{
	struct wait *w;

	if (!call)
		return;
	w = got(malloc(sizeof(*w)));
	w->call = call;
	w->next = *list;
	*list = w;
	s->io.hold(call);
}

static struct wait *take_waits(struct extent *x)
{
	struct wait *waits = x->waits;

	x->waits = NULL;
	return waits;
}

/*
 * Writing
 */

static u64 page_of(const struct store *s, u32 e, u32 unit)
{
	return ((u64)e * extent_units(s) + unit) / PAGE_UNITS;
}

static void write_pages(struct store *s, u64 page, u32 pages, struct wait *waits)
{
	s->stats.commands++;
	s->stats.pages += pages;
	s->io.write(s->io.to, page, pages, waits);
}

/* Writes units of an extent, as whole pages. */
static void write_units(struct store *s, u32 e, u32 from, u32 to,
			struct wait *waits)
{
	u64 first = page_of(s, e, from);

	write_pages(s, first, page_of(s, e, to + PAGE_UNITS - 1) - first, waits);
}

/* Writes the units that have come since the last write, up to one. */
static void write_new(struct store *s, u32 e, u32 to)
{
	struct extent *x = &s->extents[e];

	if (x->written >= to)
		return;
	write_units(s, e, x->written, to, take_waits(x));
	x->written = to;
}

static void release(struct store *s, u32 e)
{
	struct extent *x = &s->extents[e];
	u32 nr = x->pieces, beside;

	for (; nr != NONE; nr = beside) {
		beside = s->pieces[nr].beside;
		if (s->pieces[nr].file == NONE)
			free_piece(s, nr);
		else
			s->pieces[nr].extent = NONE;
	}
	s->io.drop(s->io.to, take_waits(x));
	unlink_used(s, e);
	x->state = FREE;
	s->free[(s->free_from + s->frees++) % s->cfg.extents] = e;
}

/*
 * Writes the collected extents. Those that are beside each other are one
 * command.
 */
static void write_collected(struct store *s)
{
	u32 n = s->num_collected, pages = 0, i;
	struct wait *waits = NULL, **end = &waits;
	u64 first = 0;

	s->stats.collections += n > 1;
	s->stats.collected += n > 1 ? n : 0;
	s->num_collected = 0;
	s->section.collected = 0;
	for (i = 0; i < n; i++) {
		u32 e = s->collected[i];
		struct extent *x = &s->extents[e];
		u64 from = page_of(s, e, x->written);
		u64 to = page_of(s, e, x->filled + PAGE_UNITS - 1);

		x->state = CLOSED;
		if (x->written == x->filled)
			continue;
		if (pages && first + pages != from) {
			write_pages(s, first, pages, waits);
			pages = 0;
			waits = NULL;
			end = &waits;
		}
		if (!pages)
			first = from;
		pages += to - from;
		x->written = x->filled;
		*end = take_waits(x);
		while (*end)
			end = &(*end)->next;
	}
	if (pages)
		write_pages(s, first, pages, waits);
	for (i = 0; i < n; i++)
		if (!s->extents[s->collected[i]].live)
			release(s, s->collected[i]);
}

/* Closes an extent, to which no more units come. */
static void close_extent(struct store *s, u32 e)
{
	s->extents[e].state = COLLECTED;
	s->collected[s->num_collected++] = e;
	if (rfs_section_collect(&s->section, extent_units(s)))
		write_collected(s);
}

/*
 * Evicts the extent on the flash that was used longest ago. There is one: half
 * of all extents have no descriptor, and half of these are not collected.
 */
static void evict(struct store *s)
{
	u32 e = s->oldest;

	while (s->extents[e].state != CLOSED)
		e = s->extents[e].newer;
	s->stats.evicted++;
	release(s, e);
}

static u32 take_extent(struct store *s)
{
	struct extent *x;
	u32 e;

	while (!s->frees)
		evict(s);
	e = s->free[s->free_from];
	s->free_from = (s->free_from + 1) % s->cfg.extents;
	s->frees--;
	x = &s->extents[e];
	memset(x, 0, sizeof(*x));
	x->state = OPEN;
	x->pieces = NONE;
	link_used(s, e);
	return e;
}

/* Adds an empty extent to the table, and evicts another one if it has to. */
static void add_extent(struct store *s)
{
	u32 old, e;

	if (s->section.spare == RFS_NO_EXTENT) {
		old = rfs_section_oldest(&s->section);
		e = s->descriptors[old].address;
		rfs_section_remove(&s->section, old);
		s->stats.forced++;
		close_extent(s, e);
	}
	e = take_extent(s);
	s->extents[e].descriptor = rfs_section_add(&s->section, e);
}

/*
 * Placing
 */

static u32 add_piece(struct store *s, u32 file, u32 e, u32 start, u32 units,
		     u32 end, u64 home)
{
	struct file *f = &s->files[file];
	struct extent *x = &s->extents[e];
	u32 nr = new_piece(s);

	s->pieces[nr] = (struct piece) {
		.file = file, .extent = e, .start = start, .units = units,
		.end = end, .after = NONE, .beside = x->pieces, .home = home,
	};
	x->pieces = nr;
	x->live += units;
	*(f->last == NONE ? &f->first : &s->pieces[f->last].after) = nr;
	f->last = nr;
	s->stats.units += units;
	s->stats.placed++;
	use(s, e);
	return nr;
}

static void place_in_section(struct store *s, u32 file, u32 units, u64 home,
			     struct call *call)
{
	bool whole = units >= extent_units(s);
	struct rfs_placed p;
	struct extent *x;

	while (units) {
		if (!rfs_section_place(&s->section, units, whole, &p)) {
			add_extent(s);
			continue;
		}
		x = &s->extents[p.address];
		add_piece(s, file, p.address, p.start, p.units, p.end, home);
		x->filled = p.start + p.units;
		s->stats.gap_units += p.end - x->filled;
		s->stats.reused += p.reused;
		wait_with(s, &x->waits, call);
		if (p.full)
			close_extent(s, p.address);
		else if (whole)
			write_new(s, p.address, x->filled);
		units -= p.units;
		home += p.units / PAGE_UNITS;
	}
	if (whole && s->num_collected)
		write_collected(s);
}

/*
 * Places files one after the other. A part that fills no page waits for the
 * next file.
 */
static void place_in_log(struct store *s, u32 file, u32 units, u64 home,
			 struct call *call)
{
	u32 size = extent_units(s), n, begun;
	struct extent *x;

	while (units) {
		if (s->head == NONE)
			s->head = take_extent(s);
		x = &s->extents[s->head];
		n = min(units, size - x->filled);
		s->stats.reused += x->filled > 0;
		add_piece(s, file, s->head, x->filled, n, x->filled + n, home);
		x->filled += n;
		begun = x->filled % PAGE_UNITS;
		if (!begun)
			wait_with(s, &x->waits, call);
		write_new(s, s->head, x->filled - begun);
		if (begun)
			wait_with(s, &x->waits, call);
		if (x->filled == size) {
			x->state = CLOSED;
			s->head = NONE;
		}
		units -= n;
		home += n / PAGE_UNITS;
	}
}

static void place(struct store *s, u32 file, u32 units, u64 home,
		  struct call *call)
{
	if (s->cfg.pack == PACK_SECTIONS)
		place_in_section(s, file, units, home, call);
	else
		place_in_log(s, file, units, home, call);
}

static u32 units_of(const struct store *s, u64 bytes)
{
	u32 units = DIV_ROUND_UP(bytes, RFS_SECTION_UNIT);

	if (s->cfg.pack == PACK_OFF)
		units = DIV_ROUND_UP(units, PAGE_UNITS) * PAGE_UNITS;
	return units;
}

/*
 * Rewrites units in place. They wait with their extent only if they have never
 * been written.
 */
static void rewrite(struct store *s, u32 e, u32 from, u32 to, struct call *call)
{
	struct extent *x = &s->extents[e];
	struct wait *wait = NULL;

	use(s, e);
	if (x->state != CLOSED && from >= x->written) {
		wait_with(s, &x->waits, call);
		return;
	}
	wait_with(s, &wait, call);
	write_units(s, e, from, to, wait);
	x->written = max(x->written, to);
}

/*
 * Grows a file into the rest of its last unit, and into the units behind it.
 * Returns the bytes that were placed.
 */
static u64 grow(struct store *s, u32 file, u64 bytes, struct call *call)
{
	struct file *f = &s->files[file];
	struct piece *p = &s->pieces[f->last];
	u32 begun, more = 0, slack = f->slack;
	struct extent *x;

	if (p->extent == NONE)
		return 0;
	bytes = min(bytes, slack + (u64)(p->end - p->start - p->units) *
			   RFS_SECTION_UNIT);
	if (!bytes)
		return 0;
	if (bytes > slack)
		more = units_of(s, bytes - slack);
	x = &s->extents[p->extent];
	begun = p->start + p->units - !!slack;
	p->units += more;
	x->live += more;
	x->filled = max(x->filled, p->start + p->units);
	f->slack = slack + more * RFS_SECTION_UNIT - bytes;
	s->stats.units += more;
	s->stats.gap_units -= more;
	s->stats.slack_bytes += (u64)f->slack - slack;
	rewrite(s, p->extent, begun, p->start + p->units, call);
	return bytes;
}

/*
 * In a log, a last unit that is not full is written again, with the bytes that
 * are appended.
 */
static u64 regain(struct store *s, u32 file)
{
	struct file *f = &s->files[file];
	struct piece *p = &s->pieces[f->last];
	struct extent *x;

	if (!f->slack || p->extent == NONE)
		return 0;
	x = &s->extents[p->extent];
	p->units--;
	if (!--x->live && x->state == CLOSED)
		release(s, p->extent);
	s->stats.slack_bytes -= f->slack;
	return RFS_SECTION_UNIT - f->slack;
}

void store_append(struct store *s, u32 file, u64 bytes, u64 home,
		  struct call *call)
{
	struct file *f = &s->files[file];
	u64 grown = 0;
	u32 units;

	if (f->last != NONE && s->cfg.pack != PACK_LOG)
		grown = grow(s, file, bytes, call);
	f->bytes += bytes;
	bytes -= grown;
	if (!bytes)
		return;
	if (f->last != NONE && s->cfg.pack == PACK_LOG)
		bytes += regain(s, file);
	units = units_of(s, bytes);
	f->slack = (u64)units * RFS_SECTION_UNIT - bytes;
	s->stats.slack_bytes += f->slack;
	place(s, file, units, home, call);
}

/* Places the evicted parts of a file again. */
static void place_missing(struct store *s, u32 file, struct call *call)
{
	struct file *f = &s->files[file];
	u32 nr = f->first, after;

	/*
	 * The parts that are on flash stay, in their order. The others come
	 * behind them.
	 */
	f->first = NONE;
	f->last = NONE;
	for (; nr != NONE; nr = after) {
		struct piece *p = &s->pieces[nr];
		u32 units = p->units;
		u64 home = p->home;

		after = p->after;
		if (p->extent == NONE) {
			free_piece(s, nr);
			place(s, file, units, home, call);
			continue;
		}
		p->after = NONE;
		*(f->last == NONE ? &f->first : &s->pieces[f->last].after) = nr;
		f->last = nr;
	}
}

void store_overwrite(struct store *s, u32 file, struct call *call)
{
	u32 nr;

	for (nr = s->files[file].first; nr != NONE; nr = s->pieces[nr].after) {
		struct piece *p = &s->pieces[nr];

		if (p->extent != NONE && p->units)
			rewrite(s, p->extent, p->start, p->start + p->units,
				call);
	}
	place_missing(s, file, call);
}

void store_refill(struct store *s, u32 file)
{
	place_missing(s, file, NULL);
}

void store_read(struct store *s, u32 file, struct call *call)
{
	u32 nr;

	for (nr = s->files[file].first; nr != NONE; nr = s->pieces[nr].after) {
		struct piece *p = &s->pieces[nr];
		u64 first;
		u32 pages;

		if (!p->units)
			continue;
		if (p->extent == NONE) {
			s->stats.read_disk++;
			s->io.read_home(s->io.to, p->home,
					DIV_ROUND_UP(p->units, PAGE_UNITS), call);
			continue;
		}
		use(s, p->extent);
		if (p->start + p->units > s->extents[p->extent].written) {
			s->stats.read_memory++;
			continue;
		}
		s->stats.read_flash++;
		first = page_of(s, p->extent, p->start);
		pages = page_of(s, p->extent, p->start + p->units + PAGE_UNITS - 1) -
			first;
		s->io.read(s->io.to, first, pages, call);
	}
}

void store_delete(struct store *s, u32 file)
{
	struct file *f = &s->files[file];
	u32 nr, after;

	for (nr = f->first; nr != NONE; nr = after) {
		struct piece *p = &s->pieces[nr];
		u32 e = p->extent;
		struct extent *x;

		after = p->after;
		if (e == NONE) {
			free_piece(s, nr);
			continue;
		}
		x = &s->extents[e];
		p->file = NONE;
		x->live -= p->units;
		if (x->live || x->state == COLLECTED || e == s->head)
			continue;
		if (x->state == OPEN)
			rfs_section_remove(&s->section, x->descriptor);
		release(s, e);
	}
	*f = (struct file) { .first = NONE, .last = NONE };
}

u64 store_bytes(const struct store *s, u32 file)
{
	return s->files[file].bytes;
}

void store_flush(struct store *s)
{
	u32 e;

	write_collected(s);
	for (e = s->oldest; e != NONE; e = s->extents[e].newer)
		write_new(s, e, s->extents[e].filled);
}

const struct store_stats *store_stats(const struct store *s)
{
	return &s->stats;
}

struct store *store_new(const struct store_config *cfg, const struct store_io *io,
			u32 files)
{
	struct store *s = calloc(1, sizeof(*s));
	u32 i;

	if (!s)
		return NULL;
	s->cfg = *cfg;
	s->io = *io;
	s->files = calloc(files, sizeof(*s->files));
	s->extents = calloc(cfg->extents, sizeof(*s->extents));
	s->free = calloc(cfg->extents, sizeof(*s->free));
	s->collected = calloc(cfg->extents, sizeof(*s->collected));
	if (!s->files || !s->extents || !s->free || !s->collected) {
		store_free(s);
		return NULL;
	}
	for (i = 0; i < files; i++)
		s->files[i] = (struct file) { .first = NONE, .last = NONE };
	for (i = 0; i < cfg->extents; i++)
		s->free[i] = i;
	s->frees = cfg->extents;
	s->newest = NONE;
	s->oldest = NONE;
	s->head = NONE;
	s->spare_piece = NONE;
	rfs_section_init(&s->section, &cfg->partition, cfg->threshold, cfg->collect,
			 s->descriptors, min(DESCRIPTORS, cfg->extents / 2));
	return s;
}

void store_free(struct store *s)
{
	free(s->files);
	free(s->extents);
	free(s->free);
	free(s->collected);
	free(s->pieces);
	free(s);
}
