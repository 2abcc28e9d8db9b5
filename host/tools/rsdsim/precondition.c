// SPDX-License-Identifier: GPL-2.0-or-later
#include "error.h"
#include "precondition.h"

#define DEPTH 64		/* requests in flight of what is not the work */
#define FILL_BLOCKS 32		/* 128 KiB a request */

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

/* Returns the blocks that the host can write. */
static uint64_t capacity(const RsdGeometry *geo)
{
	return geo->zoned ? geo->num_zones * geo->zone_capacity : geo->lbas;
}

/* Returns how many of these --fill uses. */
static uint64_t used(const RsdGeometry *geo, const struct gen_config *cfg)
{
	return geo->zoned ?
	       gen_filled(cfg, geo->num_zones) * geo->zone_capacity :
	       gen_filled(cfg, geo->lbas);
}

/*
 * This fills the used part of a namespace once, zone by zone if it has zones.
 */
struct filler {
	struct source source;	/* first */
	const struct sim *sim;
	uint64_t zone, zones;
	uint64_t start, offset, end;	/* blocks: of the zone, in it, its size */
	bool fresh;		/* the zone can be written */
};

static enum next next_fill(struct source *source, struct request *r)
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
		return NEXT_END;
	*r = (struct request){ .lba = f->start, .op = RSD_ZONE_RESET };
	if (!f->fresh) {
		RsdZone zone;

		f->fresh = true;
		rsd_zone_get(f->sim->drive, f->zone, &zone);
		if (zone.next || zone.zrwa)
			return NEXT_REQUEST;
	}
	left = f->end - f->offset;
	r->op = RSD_WRITE;
	r->lba += f->offset;
	r->nlb = left < FILL_BLOCKS ? left : FILL_BLOCKS;
	f->offset += r->nlb;
	return NEXT_REQUEST;
}

static const char *where_fill(struct source *source)
{
	(void)source;
	return "filling";
}

/* If the rest of a zone cannot be written, it is left. */
static void refused_fill(struct source *source, const struct request *r)
{
	struct filler *f = (struct filler *)source;

	(void)r;
	if (f->sim->geo.zoned)
		f->offset = f->end;
}

static void fill(struct sim *sim, struct precondition *p,
		 const struct gen_config *cfg)
{
	bool zoned = sim->geo.zoned;
	struct filler filler = {
		.source = {
			.next = next_fill, .where = where_fill,
			.refused = refused_fill,
		},
		.sim = sim,
		.zones = zoned ? gen_filled(cfg, sim->geo.num_zones) : 1,
		.end = zoned ? sim->geo.zone_capacity :
			       gen_filled(cfg, sim->geo.lbas),
		.fresh = !zoned,
	};
	RsdCounters before, after;

	progress_begin("filling", used(&sim->geo, cfg) / FILL_BLOCKS);
	rsd_counters(sim->drive, &before);
	sim_run_closed(sim, &filler.source, DEPTH, UINT64_MAX);
	rsd_counters(sim->drive, &after);
	p->filled = after.host_write_pages - before.host_write_pages;
}

/*
 * This is the work, round by round. A round ends when enough writes are
 * submitted.
 */
struct round {
	struct source source;	/* first */
	struct source *work;
	uint64_t left;		/* blocks */
	uint64_t start_ns, last_ns;	/* of it, by the clock of the work */
};

static enum next next_of_round(struct source *source, struct request *r)
{
	struct round *round = (struct round *)source;
	enum next next;

	if (!round->left)
		return NEXT_END;
	next = round->work->next(round->work, r);
	if (next != NEXT_REQUEST)
		return next;
	if (r->op == RSD_WRITE)
		round->left -= r->nlb < round->left ? r->nlb : round->left;
	round->last_ns = r->time_ns;
	r->time_ns -= round->start_ns;
	return next;
}

static const char *where_of_round(struct source *source)
{
	struct round *round = (struct round *)source;

	return round->work->where(round->work);
}

static void refused_of_round(struct source *source, const struct request *r)
{
	struct round *round = (struct round *)source;

	round->work->refused(round->work, r);
}

static void done_of_round(struct source *source, RsdOp op, uint64_t lba)
{
	struct round *round = (struct round *)source;

	round->work->done(round->work, op, lba);
}

/*
 * Does the work until writes of so many @blocks are submitted. Returns the
 * write amplification, or 0 if the drive has not written half of them.
 */
static double run_round(struct sim *sim, struct precondition *p,
			struct round *round, uint64_t blocks, double rate)
{
	RsdCounters before, after;
	uint64_t written;

	round->left = blocks;
	round->start_ns = round->last_ns;
	rsd_counters(sim->drive, &before);
	if (rate)
		sim_run_open(sim, &round->source, p->depth, UINT64_MAX);
	else
		sim_run_closed(sim, &round->source, p->depth, UINT64_MAX);
	rsd_counters(sim->drive, &after);
	written = after.host_write_pages - before.host_write_pages;
	p->written += written;
	p->write_amplification = write_amplification(&before, &after);
	return written > blocks / 2 ? p->write_amplification : 0;
}

/*
 * Returns all pages of flash that the namespace has, or more, in blocks of 4
 * KiB.
 */
static uint64_t flash_blocks(const struct sim *sim)
{
	const RsdConfig *cfg = rsd_config(sim->drive);
	uint64_t all = cfg->channels * cfg->ways * cfg->planes *
		       (cfg->blocks + cfg->spare_blocks) * cfg->pages *
		       (cfg->page_size / LBA_BYTES);
	uint32_t ns;

	for (ns = 0; ns < rsd_num_namespaces(sim->drive); ns++) {
		RsdGeometry geo;

		rsd_geometry(sim->drive, ns, &geo);
		if (ns != sim->ns)
			all -= capacity(&geo);
	}
	return all;
}

/*
 * Returns erase counts, and the pages that levelling has programmed since a
 * moment.
 */
static struct wear wear_since(const struct sim *sim, const RsdCounters *start)
{
	RsdCounters now;
	uint64_t good;

	rsd_counters(sim->drive, &now);
	good = now.blocks_total - now.blocks_bad;
	return (struct wear){
		.spread = good ? now.wear_max - now.wear_min : 0,
		.mean = good ? (double)now.wear_sum / good : 0,
		.levelled = now.prog_wear - start->prog_wear,
	};
}

static void become_steady(struct sim *sim, struct precondition *p,
			  const struct gen_config *cfg, struct round *round)
{
	uint64_t blocks = used(&sim->geo, cfg), flash = flash_blocks(sim);
	double turnover = gen_turnover(round->work);
	double amplification[PRECONDITION_MAX];
	/* The fill has programmed each block once. */
	double programmed = p->filled, last;
	struct wear wear[PRECONDITION_MAX];
	struct steady s = {
		.amplification = amplification,
		.wear = wear,
		.threshold = rsd_config(sim->drive)->wl_threshold,
	};
	RsdCounters start;

	rsd_counters(sim->drive, &start);
	s.least = turnover < PRECONDITION_MAX ? turnover + 1 : UINT32_MAX;
	while (!p->steady && s.rounds < PRECONDITION_MAX) {
		progress_begin("to steadiness", blocks / cfg->nlb);
		last = run_round(sim, p, round, blocks, cfg->rate);
		if (!last)
			break;		/* the drive is worn out */
		wear[s.rounds] = wear_since(sim, &start);
		amplification[s.rounds++] = last;
		programmed += last * blocks;
		if (programmed < flash)
			s.first = s.rounds;
		p->steady = steady_look(&s);
	}
	if (p->steady)
		p->levelling = steady_levelling(&s);
	p->rounds = s.rounds;
	p->range = s.range;
	p->slope = s.slope;
}

static void overwrite(struct sim *sim, struct precondition *p,
		      struct gen_config *cfg)
{
	struct gen_config work = *cfg;
	struct round round = {
		.source = {
			.next = next_of_round, .where = where_of_round,
			.refused = refused_of_round, .done = done_of_round,
		},
	};

	/* These are other random numbers than those of the measurement. */
	work.seed = ~cfg->seed;
	if (p->kind == PRECONDITION_TIMES) {
		work.reads = work.trims = work.rate = 0;
		p->depth = DEPTH;
	}
	round.work = gen_open(&work, sim->drive, sim->ns);
	if (p->kind == PRECONDITION_TIMES) {
		uint64_t blocks = p->times * used(&sim->geo, cfg);

		progress_begin("overwriting", blocks / work.nlb);
		run_round(sim, p, &round, blocks, 0);
	} else if (work.reads + work.trims >= 100) {
		p->steady = true;	/* nothing is written: it stays so */
	} else {
		become_steady(sim, p, &work, &round);
	}
	cfg->first = gen_position(round.work);
	round.work->close(round.work);
}

/*
 * Warns of failures. A drive that wears out on the way may be intended, but
 * must not go unnoticed.
 */
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
		      struct gen_config *cfg)
{
	if (p->kind == PRECONDITION_NONE)
		return;
	fill(sim, p, cfg);
	if (p->kind != PRECONDITION_FILL)
		overwrite(sim, p, cfg);
	sim_rest(sim);
	tell_failures(sim);
	if (p->kind == PRECONDITION_STEADY && !p->steady)
		warn("--precondition steady: not steady after %u capacities, the last with a write amplification of %.3f: what is measured may change by itself",
		     p->rounds, p->write_amplification);
	if (p->levelling == LEVELLING_AHEAD)
		warn("--precondition steady: steady but for static wear levelling, which is still to begin or has only begun: what it costs is not in it; wl-threshold and wl-share say when, and how much at most");
}
