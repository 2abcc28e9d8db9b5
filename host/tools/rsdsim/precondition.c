// SPDX-License-Identifier: GPL-2.0-or-later
#include "error.h"
#include "precondition.h"

#define DEPTH 64		/* requests in flight */
#define FILL_BLOCKS 32		/* 128 KiB a request */
#define WINDOW 8		/* windows a capacity */
#define COMPARED 4		/* windows compared with as many before them */
#define TOLERANCE 0.01

double write_amplification(const RsdCounters *before, const RsdCounters *after)
{
	const uint64_t *prog0 = &before->prog_host, *prog = &after->prog_host;
	uint64_t blocks = after->host_write_pages - before->host_write_pages;
	uint64_t programs = 0;
	int i;

	for (i = 0; &prog[i] <= &after->prog_pad; i++)
		programs += prog[i] - prog0[i];
	return blocks ? (double)programs / blocks : 0;
}

static uint64_t capacity(const struct sim *sim)
{
	return sim->geo.zoned ? sim->geo.num_zones * sim->geo.zone_capacity :
	       sim->geo.lbas;
}

/*
 * Makes requests of @nlb blocks until the source ends or about so many @blocks
 * are written; gives how many were, and their write amplification.
 */
static uint64_t write_blocks(struct sim *sim, struct source *source,
			     uint64_t blocks, uint64_t nlb, double *wa)
{
	RsdCounters before, after;

	rsd_counters(sim->drive, &before);
	sim_run_closed(sim, source, DEPTH, blocks / nlb);
	rsd_counters(sim->drive, &after);
	*wa = write_amplification(&before, &after);
	return after.host_write_pages - before.host_write_pages;
}

/* All of a namespace once, zone by zone if it has zones */
struct filler {
	struct source source;	/* first */
	const struct sim *sim;
	uint64_t zone, zones;
	uint64_t start, offset, end;	/* blocks: of the zone, in it, its size */
	bool fresh;		/* the zone can be written */
};

static bool next_fill(struct source *source, struct request *r)
{
	struct filler *f = (struct filler *)source;
	uint64_t left;

	if (f->offset == f->end) {
		f->zone++;
		f->start += f->sim->geo.zone_size;
		f->offset = 0;
		f->fresh = false;
	}
	if (f->zone == f->zones)
		return false;
	*r = (struct request){ .lba = f->start, .op = RSD_ZONE_RESET };
	if (!f->fresh) {
		RsdZone zone;

		f->fresh = true;
		rsd_zone_get(f->sim->drive, f->zone, &zone);
		if (zone.written)
			return true;
	}
	left = f->end - f->offset;
	r->op = RSD_WRITE;
	r->lba += f->offset;
	r->nlb = left < FILL_BLOCKS ? left : FILL_BLOCKS;
	f->offset += r->nlb;
	return true;
}

static const char *where_fill(struct source *source)
{
	(void)source;
	return "filling";
}

/* The rest of a zone that cannot be written is left. */
static void refused_fill(struct source *source, const struct request *r)
{
	struct filler *f = (struct filler *)source;

	(void)r;
	if (f->sim->geo.zoned)
		f->offset = f->end;
}

static void fill(struct sim *sim, struct precondition *p)
{
	bool zoned = sim->geo.zoned;
	struct filler filler = {
		.source = {
			.next = next_fill, .where = where_fill,
			.refused = refused_fill,
		},
		.sim = sim,
		.zones = zoned ? sim->geo.num_zones : 1,
		.end = zoned ? sim->geo.zone_capacity : sim->geo.lbas,
		.fresh = !zoned,
	};
	double wa;

	progress_begin("filling", capacity(sim) / FILL_BLOCKS);
	p->filled = write_blocks(sim, &filler.source, UINT64_MAX, 1, &wa);
}

static double mean(const double *values)
{
	double sum = 0;
	int i;

	for (i = 0; i < COMPARED; i++)
		sum += values[i];
	return sum / COMPARED;
}

static bool is_steady(const double *history, int windows)
{
	double last, before;

	if (windows < 2 * COMPARED)
		return false;
	last = mean(history + windows - COMPARED);
	before = mean(history + windows - 2 * COMPARED);
	return last <= before * (1 + TOLERANCE) &&
	       last >= before * (1 - TOLERANCE);
}

static void overwrite(struct sim *sim, struct precondition *p,
		      const struct gen_config *cfg)
{
	double history[PRECONDITION_MAX * WINDOW];
	int windows = 0, most = PRECONDITION_MAX * WINDOW;
	struct gen_config writes = *cfg;
	struct source *source;
	uint64_t blocks;

	/* other numbers than the measurement's */
	writes.seed = ~cfg->seed;
	writes.reads = writes.trims = writes.rate = 0;
	source = gen_open(&writes, sim->drive, sim->ns);
	if (p->kind == PRECONDITION_TIMES) {
		blocks = p->times * capacity(sim);
		progress_begin("overwriting", blocks / writes.nlb);
		p->written = write_blocks(sim, source, blocks, writes.nlb,
					  &p->write_amplification);
	}
	while (p->kind == PRECONDITION_STEADY && !p->steady &&
	       windows < most) {
		blocks = capacity(sim) / WINDOW + 1;
		progress_begin("to steadiness", blocks / writes.nlb);
		p->written += write_blocks(sim, source, blocks, writes.nlb,
					   &history[windows]);
		p->write_amplification = history[windows++];
		p->steady = is_steady(history, windows);
	}
	if (p->kind == PRECONDITION_STEADY && !p->steady)
		warn("--precondition steady: the write amplification still changes after %d capacities; the last was %.3f",
		     PRECONDITION_MAX, p->write_amplification);
	source->close(source);
}

/* A drive that wears out on the way may be what is wanted, but not unseen. */
static void tell_failures(const struct sim *sim)
{
	const struct op_stats *writes = &sim->stats[RSD_WRITE];

	if (writes->failed)
		warn("%llu of %llu writes before the measurement failed, the last one with: %s%s",
		     (unsigned long long)writes->failed,
		     (unsigned long long)(writes->latency->count +
					  writes->failed),
		     rsd_status_name(writes->failure),
		     writes->failure == RSD_E_NOBLOCK ||
		     writes->failure == RSD_E_READONLY ?
		     "; raise spare-blocks or endurance if that is not meant" :
		     "");
}

void precondition_run(struct sim *sim, struct precondition *p,
		      const struct gen_config *cfg)
{
	if (p->kind == PRECONDITION_NONE)
		return;
	fill(sim, p);
	if (p->kind != PRECONDITION_FILL)
		overwrite(sim, p, cfg);
	tell_failures(sim);
}
