// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "detmath.h"
#include "error.h"
#include "gen.h"
#include "rng.h"
#include "zipf.h"

struct gen {
	struct source source;		/* first */
	struct gen_config cfg;
	RsdGeometry geo;
	struct rng rng;
	struct zipf zipf;
	uint64_t items;			/* places, or zones, to choose from */
	uint64_t hot_items;
	uint64_t scatter;		/* a number without common divisor */
	uint64_t next;			/* PATTERN_SEQUENTIAL */
	double time_ns;			/* of the last request */
	/* The rest is for namespaces with zones. */
	struct zone {
		uint64_t written;	/* blocks, submitted */
		uint64_t in_flight;	/* writes */
	} *zones;
	uint64_t after_reset;		/* zone to write next, or items */
	bool draining;			/* for the reset of it that is held: */
	struct request held;
};

static bool take_number(const char **text, double least, double most,
			double *value)
{
	char *end;

	*value = strtod(*text, &end);
	if (end == *text || !(*value >= least && *value <= most))
		return false;
	*text = end;
	return true;
}

bool gen_parse_pattern(const char *text, struct gen_config *cfg)
{
	if (!strcmp(text, "sequential")) {
		cfg->pattern = PATTERN_SEQUENTIAL;
		return true;
	}
	if (!strcmp(text, "uniform")) {
		cfg->pattern = PATTERN_UNIFORM;
		return true;
	}
	if (!strncmp(text, "zipf=", 5)) {
		cfg->pattern = PATTERN_ZIPF;
		text += 5;
		return take_number(&text, 0, ZIPF_MAX_THETA, &cfg->theta) &&
		       !*text;
	}
	if (!strncmp(text, "hotcold=", 8)) {
		cfg->pattern = PATTERN_HOTCOLD;
		text += 8;
		return take_number(&text, 0, 100, &cfg->hot_accesses) &&
		       *text++ == '/' &&
		       take_number(&text, 0, 100, &cfg->hot_space) && !*text;
	}
	return false;
}

uint64_t gen_filled(const struct gen_config *cfg, uint64_t items)
{
	uint64_t filled = items * (cfg->fill / 100);

	return cfg->fill < 100 ? filled + !filled : items;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Chooses a place or a zone by the pattern. */
static uint64_t choose(struct gen *g)
{
	uint64_t item;

	switch (g->cfg.pattern) {
	case PATTERN_UNIFORM:
		return rng_below(&g->rng, g->items);
	case PATTERN_ZIPF:
		item = zipf_next(&g->zipf, &g->rng);
		return (__uint128_t)item * g->scatter % g->items;
	case PATTERN_HOTCOLD:
		if (rng_unit(&g->rng) * 100 < g->cfg.hot_accesses ||
		    g->hot_items == g->items)
			return rng_below(&g->rng, g->hot_items);
		return g->hot_items +
		       rng_below(&g->rng, g->items - g->hot_items);
	default:
		item = g->next++;
		if (g->next == g->items)
			g->next = 0;
		return item;
	}
}

static void next_conventional(struct gen *g, struct request *r)
{
	r->lba = choose(g) * g->cfg.nlb;
	r->nlb = g->cfg.nlb;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void write_zone(struct gen *g, struct request *r, uint64_t zone)
{
	struct zone *z = &g->zones[zone];

	r->lba = zone * g->geo.zone_size + z->written;
	r->nlb = min_u64(g->cfg.nlb, g->geo.zone_capacity - z->written);
	z->written += r->nlb;
	z->in_flight++;
}

/*
 * Returns the zone that a sequential stream writes to: the next one when one is
 * full.
 */
static uint64_t stream_zone(struct gen *g)
{
	if (g->zones[g->next].written == g->geo.zone_capacity)
		g->next = (g->next + 1) % g->items;
	return g->next;
}

/*
 * Reads from a zone that is not empty: @zone, if it is not empty or all are
 * empty.
 */
static void read_zone(struct gen *g, struct request *r, uint64_t zone)
{
	uint64_t length = min_u64(g->cfg.nlb, g->geo.zone_capacity);
	uint64_t i, written = 0;

	for (i = 0; i < g->items && !written; i++) {
		written = g->zones[(zone + i) % g->items].written;
		if (written)
			zone = (zone + i) % g->items;
	}
	r->lba = zone * g->geo.zone_size;
	if (written > length)
		r->lba += rng_below(&g->rng, written / length) * length;
	r->nlb = length;
}

static void next_zoned(struct gen *g, struct request *r)
{
	bool stream = g->cfg.pattern == PATTERN_SEQUENTIAL;
	uint64_t zone;

	if (g->after_reset < g->items) {
		zone = g->after_reset;
		g->after_reset = g->items;
		r->op = RSD_WRITE;
		write_zone(g, r, zone);
		return;
	}
	if (r->op == RSD_READ) {
		read_zone(g, r, choose(g));
		return;
	}
	zone = stream ? stream_zone(g) : choose(g);
	if (g->zones[zone].written < g->geo.zone_capacity) {
		write_zone(g, r, zone);
		return;
	}
	r->op = RSD_ZONE_RESET;
	r->lba = zone * g->geo.zone_size;
	r->nlb = 0;
	g->zones[zone].written = 0;
	g->after_reset = zone;
	g->draining = g->zones[zone].in_flight;
}

static enum next next(struct source *source, struct request *r)
{
	struct gen *g = (struct gen *)source;
	double kind = 100;

	if (g->draining) {
		if (g->zones[g->after_reset].in_flight)
			return NEXT_LATER;
		g->draining = false;
		*r = g->held;
		return NEXT_REQUEST;
	}
	if (g->cfg.reads || g->cfg.trims)
		kind = rng_unit(&g->rng) * 100;
	r->op = kind < g->cfg.reads ? RSD_READ :
		kind < g->cfg.reads + g->cfg.trims ? RSD_TRIM : RSD_WRITE;
	r->fua = false;
	if (g->geo.zoned)
		next_zoned(g, r);
	else
		next_conventional(g, r);
	r->append = g->cfg.append && r->op == RSD_WRITE;
	if (g->cfg.rate)
		g->time_ns -= det_log1p(-rng_unit(&g->rng)) * 1e9 /
			      g->cfg.rate;
	r->time_ns = g->time_ns;
	g->held = *r;
	return g->draining ? NEXT_LATER : NEXT_REQUEST;
}

static void done(struct source *source, RsdOp op, uint64_t lba)
{
	struct gen *g = (struct gen *)source;

	if (g->geo.zoned && op == RSD_WRITE)
		g->zones[lba / g->geo.zone_size].in_flight--;
}

/* A zone whose write was refused, for want of good blocks, stays as it is. */
static void refused(struct source *source, const struct request *r)
{
	struct gen *g = (struct gen *)source;

	if (g->geo.zoned && r->op == RSD_WRITE) {
		g->zones[r->lba / g->geo.zone_size].written -= r->nlb;
		done(source, r->op, r->lba);
	}
}

static const char *where(struct source *source)
{
	(void)source;
	return "generated request";
}

static void close_gen(struct source *source)
{
	struct gen *g = (struct gen *)source;

	free(g->zones);
	free(g);
}

static void init_zones(struct gen *g, RsdDrive *drive)
{
	uint64_t i;

	if (g->cfg.trims)
		die("--trims: zones have no trim, they are reset when they are full; leave it out");
	g->items = gen_filled(&g->cfg, g->geo.num_zones);
	g->zones = calloc(g->items, sizeof(*g->zones));
	if (!g->zones)
		die("no memory for %" PRIu64 " zones", g->items);
	for (i = 0; i < g->items; i++) {
		RsdZone zone;

		rsd_zone_get(drive, i, &zone);
		g->zones[i].written = zone.next;
	}
	g->after_reset = g->items;
}

struct source *gen_open(const struct gen_config *cfg, RsdDrive *drive,
			uint32_t ns)
{
	struct gen *g = calloc(1, sizeof(*g));

	if (!g)
		die("no memory for a generator");
	g->source = (struct source){
		.next = next, .where = where, .refused = refused,
		.done = done, .close = close_gen,
	};
	g->cfg = *cfg;
	g->rng.state = cfg->seed;
	rsd_geometry(drive, ns, &g->geo);
	if (cfg->append && !g->geo.zoned)
		die("--append: the namespace has no zones to append to; leave it out");
	if (g->geo.zoned)
		init_zones(g, drive);
	else
		g->items = gen_filled(cfg, g->geo.lbas) / cfg->nlb;
	if (!g->items)
		die("--size: a request of %u blocks does not fit the namespace's %" PRIu64 " that are used: choose a smaller one",
		    cfg->nlb, gen_filled(cfg, g->geo.lbas));
	zipf_init(&g->zipf, g->items, cfg->theta);
	g->next = cfg->first;
	g->hot_items = g->items * (cfg->hot_space / 100);
	if (!g->hot_items)
		g->hot_items = 1;
	/*
	 * The scatter is about the golden ratio of all places, so neighbours in
	 * rank are far apart.
	 */
	g->scatter = g->items * 0.6180339887498949;
	while (common_divisor(g->scatter, g->items) != 1)
		g->scatter++;
	return &g->source;
}

uint64_t gen_position(const struct source *source)
{
	return ((const struct gen *)source)->next;
}

double gen_turnover(const struct source *source)
{
	const struct gen *g = (const struct gen *)source;
	double hot = g->cfg.hot_accesses / 100;
	double space = (double)g->hot_items / g->items;
	double slowest = 1;

	if (g->geo.zoned)
		return 1;
	if (g->cfg.pattern == PATTERN_ZIPF)
		return zipf_coldest(&g->zipf);
	if (g->cfg.pattern == PATTERN_HOTCOLD && space < 1) {
		if (hot > 0)
			slowest = space / hot;
		if (hot < 1 && (1 - space) / (1 - hot) > slowest)
			slowest = (1 - space) / (1 - hot);
	}
	return slowest;
}
