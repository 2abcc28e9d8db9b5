// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "trace.h"
#include "traces.h"

struct trace_source {
	struct source source;	/* first */
	uint64_t lbas;
	bool wrap, timed, begun;
	uint64_t first_ns, last_ns;
	char where[512];
	/* text */
	const struct format *format;
	struct text text;
	union {
		max_align_t align;
		char bytes[FORMAT_STATE];
	} state;
	/* native */
	RsdTraceReader *reader;
	uint32_t ns;
	uint64_t zone_lbas;	/* its drive has zones and this one has none */
};

static struct trace_source *new_source(uint64_t lbas, bool wrap, bool timed)
{
	struct trace_source *t = calloc(1, sizeof(*t));

	if (!t)
		die("no memory for a trace's state");
	t->lbas = lbas;
	t->wrap = wrap;
	t->timed = timed;
	return t;
}

/* Sets the place of @lba, @nlb in the namespace, or ends the program. */
static void place(struct trace_source *t, struct request *r, uint64_t lba,
		  uint64_t nlb)
{
	const char *where = t->source.where(&t->source);

	if (!nlb || nlb > t->lbas || nlb > UINT32_MAX)
		die("%s: the request has %" PRIu64 " blocks of 4096 bytes, allowed is 1 to %" PRIu64 ", the namespace",
		    where, nlb, t->lbas);
	if (t->wrap) {
		lba %= t->lbas;
		if (lba > t->lbas - nlb)
			lba = t->lbas - nlb;
	}
	if (lba >= t->lbas || nlb > t->lbas - lba)
		die("%s: the request is of block %" PRIu64 " and %" PRIu64 " in all, allowed is up to block %" PRIu64 " (4096 bytes each), the namespace's end: take a larger drive, or --wrap",
		    where, lba, nlb, t->lbas - 1);
	r->lba = lba;
	r->nlb = nlb;
}

static void place_time(struct trace_source *t, struct request *r,
		       uint64_t time_ns)
{
	if (!t->begun)
		t->first_ns = t->last_ns = time_ns;
	t->begun = true;
	if (t->timed && time_ns < t->last_ns)
		die("%s: the time goes back by %" PRIu64 " ns: sort the trace by time, or leave its times out (--depth)",
		    t->source.where(&t->source), t->last_ns - time_ns);
	t->last_ns = time_ns;
	r->time_ns = time_ns - t->first_ns;
}

/*
 * Text
 */

static const char *where_text(struct source *source)
{
	struct trace_source *t = (struct trace_source *)source;

	snprintf(t->where, sizeof(t->where), "%s:%" PRIu64, t->text.path,
		 t->text.number);
	return t->where;
}

static enum next next_text(struct source *source, struct request *r)
{
	struct trace_source *t = (struct trace_source *)source;
	struct extent e = { .length = 0 };
	uint64_t end;

	if (!t->format->next(&t->text, &t->state, &e))
		return NEXT_END;
	place_time(t, r, e.time_ns);
	r->op = e.op;
	r->fua = e.fua;
	r->append = false;
	r->lba = r->nlb = 0;
	if (e.op == RSD_FLUSH)
		return NEXT_REQUEST;
	if (!e.length)
		text_fail(&t->text, "the length is 0 bytes, allowed is 1 or more");
	if (__builtin_add_overflow(e.offset, e.length - 1, &end))
		text_fail(&t->text, "the request ends beyond 2^64 bytes");
	place(t, r, e.offset / LBA_BYTES,
	      end / LBA_BYTES - e.offset / LBA_BYTES + 1);
	return NEXT_REQUEST;
}

static void close_text(struct source *source)
{
	struct trace_source *t = (struct trace_source *)source;

	text_close(&t->text);
	free(t);
}

struct source *trace_open_text(const char *path, const struct format *format,
			       uint64_t lbas, bool wrap, bool timed)
{
	struct trace_source *t = new_source(lbas, wrap, timed);

	t->format = format;
	t->source.next = next_text;
	t->source.where = where_text;
	t->source.close = close_text;
	text_open(&t->text, path);
	if (format->begin)
		format->begin(&t->text, &t->state);
	return &t->source;
}

/*
 * Native
 */

static const char *where_native(struct source *source)
{
	struct trace_source *t = (struct trace_source *)source;

	snprintf(t->where, sizeof(t->where), "%s: record %" PRIu64,
		 t->text.path, rsd_trace_number(t->reader));
	return t->where;
}

static const RsdOp native_ops[] = {
	[RSD_TRACE_READ] = RSD_READ,
	[RSD_TRACE_WRITE] = RSD_WRITE,
	[RSD_TRACE_WRITE_ZEROES] = RSD_WRITE_ZEROES,
	[RSD_TRACE_ZONE_RESET] = RSD_ZONE_RESET,
	[RSD_TRACE_ZONE_FINISH] = RSD_ZONE_FINISH,
	[RSD_TRACE_FLUSH] = RSD_FLUSH,
	[RSD_TRACE_TRIM] = RSD_TRIM,
	[RSD_TRACE_ZRWA_OPEN] = RSD_ZRWA_OPEN,
	[RSD_TRACE_ZRWA_COMMIT] = RSD_ZRWA_COMMIT,
};

/* Says whether an operation has a meaning for a drive without zones. */
static bool without_zones(uint8_t op)
{
	return op != RSD_TRACE_ZONE_FINISH && op != RSD_TRACE_ZRWA_OPEN &&
	       op != RSD_TRACE_ZRWA_COMMIT;
}

static bool is_request(const struct trace_source *t,
		       const RsdTraceRecord *record)
{
	return record->kind == RSD_TRACE_SUBMIT && record->ns == t->ns &&
	       record->op != RSD_TRACE_FORMAT &&
	       (!t->zone_lbas || without_zones(record->op));
}

/* A command for a whole zone becomes one for the blocks that the zone had. */
static void place_zone(struct trace_source *t, struct request *r, uint64_t lba)
{
	if (!t->zone_lbas) {
		place(t, r, lba, 1);
		return;
	}
	r->op = RSD_TRIM;
	place(t, r, lba, t->lbas - lba < t->zone_lbas && lba < t->lbas ?
	      t->lbas - lba : t->zone_lbas);
}

static enum next next_native(struct source *source, struct request *r)
{
	struct trace_source *t = (struct trace_source *)source;
	char err[RSD_ERR_LEN];
	RsdTraceRecord record;
	int ret;

	do {
		ret = rsd_trace_next(t->reader, &record, err);
		if (ret < 0)
			die("%s", err);
		if (!ret)
			return NEXT_END;
	} while (!is_request(t, &record));
	place_time(t, r, record.time);
	r->op = native_ops[record.op];
	r->fua = record.flags & RSD_TRACE_FUA;
	r->append = record.flags & RSD_TRACE_APPEND && !t->zone_lbas;
	r->lba = record.lba;
	r->nlb = record.nlb;
	switch (r->op) {
	case RSD_FLUSH:
		break;
	case RSD_ZONE_RESET:
		place_zone(t, r, record.lba);
		break;
	case RSD_ZONE_FINISH:
	case RSD_ZRWA_OPEN:
		place(t, r, record.lba, 1);
		break;
	default:
		place(t, r, record.lba, record.nlb);
	}
	return NEXT_REQUEST;
}

static void close_native(struct source *source)
{
	struct trace_source *t = (struct trace_source *)source;

	rsd_trace_read_close(t->reader);
	free(t);
}

/*
 * Returns the LBAs from one zone of the trace's drive to the next, or 0 if that
 * has no zones.
 */
static uint64_t recorded_zone_lbas(const char *path, const RsdConfig *cfg,
				   uint32_t ns)
{
	char err[RSD_ERR_LEN];
	RsdGeometry geo = { .zoned = false };
	RsdDrive *drive = rsd_open(NULL, cfg, err);

	if (!drive)
		die("%s: its drive: %s", path, err);
	if (ns < rsd_num_namespaces(drive))
		rsd_geometry(drive, ns, &geo);
	rsd_close(drive);
	return geo.zoned ? geo.zone_size : 0;
}

struct source *trace_open_native(const char *path, uint32_t ns,
				 const RsdGeometry *geo, bool wrap)
{
	struct trace_source *t = new_source(geo->lbas, wrap, true);
	char err[RSD_ERR_LEN];
	RsdConfig cfg;
	uint64_t hash;

	t->text.path = path;
	t->ns = ns;
	t->source.next = next_native;
	t->source.where = where_native;
	t->source.close = close_native;
	t->reader = rsd_trace_read(path, &cfg, &hash, err);
	if (!t->reader)
		die("%s", err);
	if (rsd_trace_torn(t->reader))
		warn("%s: its last record has %u bytes of %zu: the recorder was killed; the trace ends before it",
		     path, rsd_trace_torn(t->reader), sizeof(RsdTraceRecord));
	if (!geo->zoned)
		t->zone_lbas = recorded_zone_lbas(path, &cfg, ns);
	/* This is an estimate: half of the records are completions. */
	t->source.total = rsd_trace_records(t->reader) / 2;
	return &t->source;
}
