// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "replay.h"
#include "request.h"
#include "scenario.h"

/* This is what the replay knows of a command, by its order of submission. */
struct answer {
	uint64_t done_ns;
	uint8_t status;
	bool done;
};

struct replay {
	RsdTraceReader *reader;
	RsdDrive *drive;
	bool payload;
	struct timeline *timeline;	/* NULL: none */
	struct answer *answers;
	uint64_t capacity;	/* of answers */
	RsdTraceRecord format;	/* one whose DONE is the next record, or zeroes */
	struct replay_result result;
	RsdCounters counters;	/* at the end, as far as they were recorded */
};

static struct answer *new_answer(struct replay *p)
{
	if (p->result.commands == p->capacity) {
		p->capacity = p->capacity ? 2 * p->capacity : 4096;
		p->answers = reallocarray(p->answers, p->capacity,
					  sizeof(*p->answers));
		if (!p->answers)
			die("no memory for %" PRIu64 " commands", p->capacity);
	}
	return &p->answers[p->result.commands++];
}

static void complete(struct replay *p, uint64_t ns)
{
	RsdCmd *cmd;

	while ((cmd = rsd_advance(p->drive, ns))) {
		p->answers[(uintptr_t)cmd->opaque] = (struct answer){
			.done_ns = cmd->done_ns,
			.status = cmd->status,
			.done = true,
		};
		if (p->timeline)
			timeline_command(p->timeline, cmd,
					 (uintptr_t)cmd->opaque,
					 cmd->submit_ns, cmd->done_ns);
		rsd_cmd_free(p->drive, cmd);
	}
}

/*
 * Carries out the events up to @ns, one by one if the timeline looks at each.
 */
static void advance(struct replay *p, uint64_t ns)
{
	bool offline;
	uint64_t when;
	uint32_t zone;

	while (p->timeline && rsd_next_event(p->drive, &when) && when <= ns) {
		complete(p, when);
		timeline_look(p->timeline, when);
	}
	complete(p, ns);
	/*
	 * The recorder's controller has refused commands that such a zone does
	 * not allow.
	 */
	while (rsd_faults_zone(p->drive, &zone, &offline))
		;
}

static RsdOp core_op(uint8_t op)
{
	switch (op) {
	case RSD_TRACE_READ:
		return RSD_READ;
	case RSD_TRACE_WRITE:
		return RSD_WRITE;
	case RSD_TRACE_WRITE_ZEROES:
		return RSD_WRITE_ZEROES;
	case RSD_TRACE_ZONE_RESET:
		return RSD_ZONE_RESET;
	case RSD_TRACE_ZONE_FINISH:
		return RSD_ZONE_FINISH;
	case RSD_TRACE_TRIM:
		return RSD_TRIM;
	case RSD_TRACE_ZRWA_OPEN:
		return RSD_ZRWA_OPEN;
	case RSD_TRACE_ZRWA_COMMIT:
		return RSD_ZRWA_COMMIT;
	default:
		return RSD_FLUSH;
	}
}

static void submit(struct replay *p, const RsdTraceRecord *record)
{
	struct answer *answer = new_answer(p);
	RsdStatus status;
	RsdCmd *cmd;

	if (record->ns >= rsd_num_namespaces(p->drive))
		die("record %" PRIu64 " is for namespace %u, the trace's drive has %u: the trace is corrupt",
		    rsd_trace_number(p->reader), record->ns,
		    rsd_num_namespaces(p->drive));
	*answer = (struct answer){ .done_ns = record->time };
	if (record->op == RSD_TRACE_FORMAT) {
		p->format = *record;
		return;
	}
	cmd = rsd_cmd_new(p->drive, record->ns, core_op(record->op),
			  record->lba, record->nlb);
	if (!cmd)
		die("record %" PRIu64 ": no memory for a command of %u blocks",
		    rsd_trace_number(p->reader), record->nlb);
	cmd->opaque = (void *)(uintptr_t)(p->result.commands - 1);
	cmd->fua = record->flags & RSD_TRACE_FUA;
	cmd->append = record->flags & RSD_TRACE_APPEND;
	if (cmd->data && cmd->op == RSD_WRITE) {
		memset(cmd->data, 0, (size_t)cmd->nlb * LBA_BYTES);
		if (cmd->oob)
			memset(cmd->oob, 0, (size_t)cmd->nlb *
			       rsd_oob(p->drive, record->ns));
	}
	/*
	 * The drive would do that itself, but the timeline has to look at each
	 * event.
	 */
	if (p->timeline)
		advance(p, record->time);
	status = rsd_submit(p->drive, cmd, record->time);
	if (p->timeline)
		timeline_look(p->timeline, record->time);
	if (status != RSD_OK) {
		answer->status = status;
		answer->done = true;
		rsd_cmd_free(p->drive, cmd);
	}
}

/*
 * Formats the drive. A command that ends at this very time and has no DONE is
 * known: the recorder's host had forgotten it or, if it made the drive refuse
 * the format, had not yet asked for it.
 */
static void format(struct replay *p, const RsdTraceRecord *done)
{
	struct answer *answer = &p->answers[done->order];

	if (done->status != RSD_E_ORDER)
		advance(p, done->time);
	else if (done->time)
		advance(p, done->time - 1);
	answer->status = rsd_format(p->drive, p->format.ns, p->format.lba,
				    done->time);
	answer->done = true;
	p->format = (RsdTraceRecord){ 0 };
}

static void compare(struct replay *p, const RsdTraceRecord *record)
{
	const struct answer *here = &p->answers[record->order];

	p->result.completions++;
	if (here->done && here->done_ns == record->time &&
	    here->status == record->status)
		return;
	if (p->result.different++)
		return;
	if (here->done)
		tell("first difference: record %" PRIu64 ", command %" PRIu64 ": done at %" PRIu64 " ns (%s) in the trace, at %" PRIu64 " ns (%s) here",
		     rsd_trace_number(p->reader), record->order, record->time,
		     rsd_status_name(record->status), here->done_ns,
		     rsd_status_name(here->status));
	else
		tell("first difference: record %" PRIu64 ", command %" PRIu64 ": done at %" PRIu64 " ns (%s) in the trace, not yet here",
		     rsd_trace_number(p->reader), record->order, record->time,
		     rsd_status_name(record->status));
}

static void compare_counters(struct replay *p, uint64_t known)
{
	const uint64_t *there = (const uint64_t *)&p->counters, *here;
	RsdCounters now;
	uint64_t i;

	rsd_counters(p->drive, &now);
	here = (const uint64_t *)&now;
	for (i = 0; i < known; i++) {
		/*
		 * The recorded drive had buffers of data that this drive does
		 * not keep.
		 */
		if (!p->payload && &here[i] == &now.ram_bytes)
			continue;
		p->result.counters++;
		if (here[i] == there[i])
			continue;
		p->result.counters_different++;
		tell("counter %s is %" PRIu64 " in the trace, %" PRIu64 " here",
		     rsd_counter_info[i].name, there[i], here[i]);
	}
}

struct replay_result replay_run(RsdTraceReader *reader, RsdDrive *drive,
				bool payload, struct timeline *timeline)
{
	struct replay p = {
		.reader = reader, .drive = drive, .payload = payload,
		.timeline = timeline,
	};
	uint64_t known = 0, now = 0;
	char err[RSD_ERR_LEN];
	RsdTraceRecord r;
	int ret;

	progress_begin("replaying", rsd_trace_records(reader));
	while ((ret = rsd_trace_next(reader, &r, err)) > 0) {
		progress_set(rsd_trace_number(reader));
		if (r.time > now && r.kind != RSD_TRACE_COUNTER)
			now = r.time;
		switch (r.kind) {
		case RSD_TRACE_SUBMIT:
			submit(&p, &r);
			break;
		case RSD_TRACE_DONE:
			if (p.format.kind == RSD_TRACE_SUBMIT &&
			    p.format.order == r.order)
				format(&p, &r);
			else
				advance(&p, now);
			compare(&p, &r);
			break;
		case RSD_TRACE_COUNTER:
			/*
			 * Counters that are newer than this program are left
			 * out.
			 */
			if (r.order == known && known < RSD_NUM_COUNTERS)
				((uint64_t *)&p.counters)[known++] = r.lba;
			break;
		case RSD_TRACE_END:
			advance(&p, now);
			compare_counters(&p, known);
			break;
		}
	}
	if (ret < 0)
		die("%s", err);
	progress_clear();
	p.result.end_ns = now;
	free(p.answers);
	return p.result;
}
