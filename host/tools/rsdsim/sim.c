// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "sim.h"

void sim_reset_stats(struct sim *sim)
{
	int i;

	for (i = 0; i < SIM_OPS; i++)
		free(sim->stats[i].latency);
	memset(sim->stats, 0, sizeof(sim->stats));
	sim->requests = 0;
}

/* This is a command in flight. */
struct flight {
	uint64_t arrival_ns;	/* when it was to be submitted */
	uint64_t order;		/* of the trace that is recorded */
};

static void count(struct sim *sim, const RsdCmd *cmd, RsdStatus status,
		  uint64_t ns)
{
	struct op_stats *stats = &sim->stats[cmd->op];

	if (!stats->latency) {
		stats->latency = calloc(1, sizeof(*stats->latency));
		if (!stats->latency)
			die("no memory for a histogram");
	}
	if (status == RSD_OK) {
		latency_add(stats->latency, ns);
		stats->blocks += cmd->nlb;
	} else {
		stats->failed++;
		stats->failure = status;
	}
	sim->requests++;
}

/* A full disk of the host is noticed when the trace is closed. */
static void record_submit(struct sim *sim, const RsdCmd *cmd, uint64_t lba,
			  RsdStatus status)
{
	struct flight *flight = cmd->opaque;
	RsdTraceRecord record = {
		.kind = RSD_TRACE_SUBMIT,
		.op = rsd_trace_op(cmd->op),
		.flags = (cmd->fua ? RSD_TRACE_FUA : 0) |
			 (cmd->append ? RSD_TRACE_APPEND : 0),
		.time = sim->now,
		.order = sim->recorded++,
		.lba = lba,
		.nlb = cmd->nlb,
		.ns = sim->ns,
	};
	RsdTraceRecord refused = {
		.kind = RSD_TRACE_DONE,
		.status = status,
		.time = sim->now,
		.order = record.order,
	};

	flight->order = record.order;
	rsd_trace_add(sim->record, &record);
	if (status != RSD_OK)
		rsd_trace_add(sim->record, &refused);
}

static void record_done(struct sim *sim, const RsdCmd *cmd)
{
	const struct flight *flight = cmd->opaque;
	RsdTraceRecord record = {
		.kind = RSD_TRACE_DONE,
		.status = cmd->status,
		.time = cmd->done_ns,
		.order = flight->order,
	};

	rsd_trace_add(sim->record, &record);
}

/*
 * Says whether a status is a failure of the drive, which is a result. Others
 * are about the request, or the host.
 */
static bool failure_of_drive(RsdStatus status)
{
	return status != RSD_E_RANGE && status != RSD_E_ORDER &&
	       status != RSD_E_NOSPC && status != RSD_E_NOMEM;
}

/*
 * Submits a request now that was due at @arrival_ns. If the drive does not take
 * it for reasons of its own, that is counted. An error of the request or the
 * host ends the program.
 */
static void submit(struct sim *sim, const struct request *r,
		   uint64_t arrival_ns)
{
	RsdCmd *cmd = rsd_cmd_new(sim->drive, sim->ns, r->op, r->lba, r->nlb);
	struct flight *flight = malloc(sizeof(*flight));
	struct source *source = sim->source;
	RsdStatus status;

	if (!cmd || !flight)
		die("no memory for a command of %u blocks", r->nlb);
	flight->arrival_ns = arrival_ns;
	cmd->opaque = flight;
	cmd->fua = r->fua;
	cmd->append = r->append;
	/* Traces have no data, so pages of zeroes are written. */
	if (cmd->data && r->op == RSD_WRITE) {
		memset(cmd->data, 0, (size_t)r->nlb * LBA_BYTES);
		if (cmd->oob)
			memset(cmd->oob, 0, (size_t)r->nlb *
			       rsd_oob(sim->drive, sim->ns));
	}
	status = rsd_submit(sim->drive, cmd, sim->now);
	if (sim->record)
		record_submit(sim, cmd, r->lba, status);
	if (status == RSD_OK) {
		sim->in_flight++;
		return;
	}
	/* Generated requests are out of order only if one before has failed. */
	if (!failure_of_drive(status) &&
	    !(source->refused && status == RSD_E_ORDER))
		die("%s: %s of block %" PRIu64 " and %u in all: %s%s",
		    source->where(source),
		    rsd_trace_op_name(rsd_trace_op(r->op)), r->lba, r->nlb,
		    rsd_status_name(status),
		    status == RSD_E_ORDER ?
		    "; a zone is written in order and reset before it is written again: choose a conventional drive (--set ftl=page), or a trace of a zoned one" :
		    "");
	count(sim, cmd, status, 0);
	rsd_cmd_free(sim->drive, cmd);
	free(flight);
	if (source->refused)
		source->refused(source, r);
}

static void end(struct sim *sim, RsdCmd *cmd)
{
	struct flight *flight = cmd->opaque;

	count(sim, cmd, cmd->status, cmd->done_ns - flight->arrival_ns);
	if (sim->record)
		record_done(sim, cmd);
	if (sim->source->done)
		sim->source->done(sim->source, cmd->op, cmd->lba);
	sim->in_flight--;
	rsd_cmd_free(sim->drive, cmd);
	free(flight);
}

/* Carries out the drive's events until time @ns. */
static void advance(struct sim *sim, uint64_t ns)
{
	RsdCmd *cmd;

	while ((cmd = rsd_advance(sim->drive, ns)))
		end(sim, cmd);
	sim->now = ns;
}

/* Goes on until a command ends, and takes all that end at that time. */
static void step(struct sim *sim)
{
	RsdCmd *cmd = rsd_advance_to_done(sim->drive);

	if (!cmd)
		die("the drive has %" PRIu64 " commands in flight and nothing to do: please report this",
		    sim->in_flight);
	if (cmd->done_ns > sim->now)
		sim->now = cmd->done_ns;
	end(sim, cmd);
	advance(sim, sim->now);
}

/* Takes a request of the source, after waiting for others if it has to. */
static bool take(struct sim *sim, struct request *r)
{
	enum next next;

	while ((next = sim->source->next(sim->source, r)) == NEXT_LATER)
		step(sim);
	/* Earlier commands may have to end first, which takes some time. */
	if (next == NEXT_REQUEST)
		rsd_expect(sim->drive, sim->ns, r->lba);
	return next == NEXT_REQUEST;
}

uint64_t sim_run_closed(struct sim *sim, struct source *source, uint64_t depth,
			uint64_t limit)
{
	uint64_t submitted = 0;
	struct request r;

	sim->source = source;
	while (submitted < limit && take(sim, &r)) {
		while (sim->in_flight >= depth)
			step(sim);
		submit(sim, &r, sim->now);
		progress_set(++submitted);
	}
	while (sim->in_flight)
		step(sim);
	sim->source = NULL;
	return submitted;
}

uint64_t sim_run_open(struct sim *sim, struct source *source, uint64_t depth,
		      uint64_t limit)
{
	uint64_t start = sim->now, submitted = 0;
	struct request r;

	sim->source = source;
	while (submitted < limit && take(sim, &r)) {
		if (start + r.time_ns > sim->now)
			advance(sim, start + r.time_ns);
		while (sim->in_flight >= depth)
			step(sim);
		submit(sim, &r, start + r.time_ns);
		progress_set(++submitted);
	}
	while (sim->in_flight)
		step(sim);
	sim->source = NULL;
	return submitted;
}

void sim_rest(struct sim *sim)
{
	uint64_t when;

	while (rsd_next_event(sim->drive, &when))
		advance(sim, when > sim->now ? when : sim->now);
}
