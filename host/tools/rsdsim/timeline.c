// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A die does one step at a time, or several that overlap (cache=on, a suspended
 * program). Slices of one track may not overlap, so a step goes to the first
 * free one of its die's lanes. The core has no call that returns what a die
 * does at the moment, and no other program needs one, so this one looks into
 * the array.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "error.h"
#include "timeline.h"
#include "trace.h"

#define LANES 4u	/* a die's places for a step: see below */
#define FLASH 1u	/* numbers of the file's two processes */
#define HOST 2u

/* This is a step that goes on. */
struct lane {
	const Op *op;	/* NULL: none */
	uint64_t start;
	uint32_t page;
	/*
	 * This belongs to the operation, which may be gone when the step has
	 * ended.
	 */
	uint32_t block, slots;
	OpKind kind;
	RsdCause cause;
};

struct timeline {
	FILE *file;
	const char *path;
	const RsdDrive *drive;
	uint64_t from, until, written;
	struct lane *lanes;	/* LANES of each die */
	uint64_t queued;	/* as last written */
	bool queued_known;
};

static const char * const kinds[] = {
	[OP_READ] = "read", [OP_PROGRAM] = "program", [OP_ERASE] = "erase",
};

static const char * const causes[] = {
	[RSD_CAUSE_HOST] = "host", [RSD_CAUSE_CLEAN] = "clean",
	[RSD_CAUSE_MERGE] = "merge", [RSD_CAUSE_WEAR] = "wear",
	[RSD_CAUSE_MAP] = "map", [RSD_CAUSE_PAD] = "pad",
};

/* Writes a time as a member of the event: the format counts in us. */
static void put_time(struct timeline *t, const char *name, uint64_t ns)
{
	fprintf(t->file, ",\"%s\":%" PRIu64 ".%03u", name, ns / 1000,
		(unsigned int)(ns % 1000));
}

static void name_process(struct timeline *t, unsigned int pid, const char *name)
{
	fprintf(t->file,
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":\"%s\"}},\n",
		pid, name);
}

static void name_lanes(struct timeline *t)
{
	uint32_t channels = t->drive->cfg.channels, tid;

	for (tid = 0; tid < t->drive->dies * LANES; tid++) {
		uint32_t die = tid / LANES, lane = tid % LANES;

		fprintf(t->file,
			"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"channel %u way %u",
			FLASH, tid + 1, die % channels, die / channels);
		if (lane)
			fprintf(t->file, ", overlapping %u", lane);
		fputs("\"}},\n", t->file);
		fprintf(t->file,
			"{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%u,\"tid\":%u,\"args\":{\"sort_index\":%u}},\n",
			FLASH, tid + 1, tid);
	}
}

struct timeline *timeline_open(const char *path, const RsdDrive *drive,
			       uint64_t from, uint64_t until)
{
	struct timeline *t = calloc(1, sizeof(*t));

	if (t)
		t->lanes = calloc(drive->dies * (size_t)LANES,
				  sizeof(*t->lanes));
	if (!t || !t->lanes)
		die("no memory for a timeline");
	t->file = fopen(path, "we");
	if (!t->file)
		die("--timeline %s: %s", path, strerror(errno));
	t->path = path;
	t->drive = drive;
	t->from = from;
	t->until = until;
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", t->file);
	name_process(t, FLASH, "flash");
	name_process(t, HOST, "host");
	name_lanes(t);
	return t;
}

static bool wanted(const struct timeline *t, uint64_t begin, uint64_t end)
{
	return begin < t->until && end >= t->from;
}

static void end_step(struct timeline *t, uint32_t tid, struct lane *lane,
		     uint64_t now, bool finished)
{
	uint32_t blocks = t->drive->die_blocks;

	lane->op = NULL;
	if (!wanted(t, lane->start, now))
		return;
	fprintf(t->file,
		"{\"ph\":\"X\",\"name\":\"%s, %s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u",
		kinds[lane->kind], causes[lane->cause], causes[lane->cause],
		FLASH, tid + 1);
	put_time(t, "ts", lane->start);
	put_time(t, "dur", now - lane->start);
	fprintf(t->file, ",\"args\":{\"block\":%u", lane->block % blocks);
	if (lane->kind != OP_ERASE)
		fprintf(t->file, ",\"page\":%u,\"pages of 4 KiB\":%u",
			lane->page, lane->slots);
	fputs(finished ? "}},\n" : ",\"unfinished\":true}},\n", t->file);
	t->written++;
}

static bool same_step(const struct lane *lane, const Step *step)
{
	return step->op && step->begun && step->op == lane->op &&
	       step->page == lane->page && step->start == lane->start;
}

/*
 * Puts a new step into the first free lane: there are as many lanes as places.
 */
static void see_step(struct lane *lanes, const Step *step)
{
	struct lane *lane = lanes;
	uint32_t i;

	if (!step->op || !step->begun)
		return;
	for (i = 0; i < LANES; i++)
		if (same_step(&lanes[i], step))
			return;
	while (lane->op)
		lane++;
	*lane = (struct lane){
		.op = step->op, .start = step->start, .page = step->page,
		.block = step->op->block, .slots = step->slots,
		.kind = step->op->kind, .cause = step->op->cause,
	};
}

/* Ends steps that are nowhere any more. */
static void look_at_die(struct timeline *t, uint32_t d, uint64_t now)
{
	const Die *die = &t->drive->sched.dies[d];
	const Step *places[LANES] = {
		&die->held, &die->array, &die->out, &die->load,
	};
	struct lane *lanes = &t->lanes[d * LANES];
	uint32_t i, k;

	for (i = 0; i < LANES; i++) {
		for (k = 0; k < LANES; k++)
			if (same_step(&lanes[i], places[k]))
				break;
		if (k == LANES && lanes[i].op)
			end_step(t, d * LANES + i, &lanes[i], now,
				 true);
	}
	for (i = 0; i < LANES; i++)
		see_step(lanes, places[i]);
}

void timeline_look(struct timeline *t, uint64_t now)
{
	uint64_t queued = 0;
	uint32_t d;

	for (d = 0; d < t->drive->dies; d++) {
		look_at_die(t, d, now);
		queued += t->drive->sched.dies[d].queued;
	}
	if ((t->queued_known && queued == t->queued) || !wanted(t, now, now))
		return;
	t->queued = queued;
	t->queued_known = true;
	fprintf(t->file,
		"{\"ph\":\"C\",\"name\":\"operations that wait\",\"pid\":%u",
		FLASH);
	put_time(t, "ts", now);
	fprintf(t->file, ",\"args\":{\"operations\":%" PRIu64 "}},\n", queued);
}

void timeline_command(struct timeline *t, const RsdCmd *cmd, uint64_t number,
		      uint64_t begin, uint64_t end)
{
	const char *name = rsd_trace_op_name(rsd_trace_op(cmd->op));

	if (!wanted(t, begin, end))
		return;
	fprintf(t->file,
		"{\"ph\":\"b\",\"cat\":\"command\",\"name\":\"%s\",\"pid\":%u,\"id\":%" PRIu64,
		name, HOST, number);
	put_time(t, "ts", begin);
	fprintf(t->file,
		",\"args\":{\"block\":%" PRIu64 ",\"blocks\":%u,\"namespace\":%u,\"status\":\"%s\"}},\n",
		cmd->lba, cmd->nlb, cmd->ns, rsd_status_name(cmd->status));
	fprintf(t->file,
		"{\"ph\":\"e\",\"cat\":\"command\",\"name\":\"%s\",\"pid\":%u,\"id\":%" PRIu64,
		name, HOST, number);
	put_time(t, "ts", end);
	fputs("},\n", t->file);
	t->written++;
}

uint64_t timeline_close(struct timeline *t, uint64_t now)
{
	uint64_t written;
	uint32_t tid;

	for (tid = 0; tid < t->drive->dies * LANES; tid++)
		if (t->lanes[tid].op)
			end_step(t, tid, &t->lanes[tid], now, false);
	/* The last event has no comma behind it. */
	fprintf(t->file,
		"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%u,\"args\":{\"sort_index\":0}}\n]}\n",
		HOST);
	if (fclose(t->file))
		die("--timeline %s: %s", t->path, strerror(errno));
	written = t->written;
	free(t->lanes);
	free(t);
	return written;
}
