// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../common/human.h"
#include "error.h"
#include "report.h"
#include "trace.h"

#define REPORT_VERSION 1
#define CAUSES 6
#define BAR_WIDTH 40
#define NUM_PERCENTILES 5

static const char *const causes[CAUSES] = {
	"host", "clean", "merge", "wear", "map", "pad",
};

_Static_assert(offsetof(RsdCounters, prog_pad) ==
	       offsetof(RsdCounters, prog_host) + (CAUSES - 1) * 8 &&
	       offsetof(RsdCounters, erase_pad) ==
	       offsetof(RsdCounters, erase_host) + (CAUSES - 1) * 8,
	       "counters by cause follow each other as here");

static const struct {
	const char *name;
	double part;
} percentiles[NUM_PERCENTILES] = {
	{ "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p99.9", 0.999 },
	{ "p99.99", 0.9999 },
};

/* These figures of the measurement are computed from counters and times. */
struct figures {
	RsdCounters after;
	RsdLogPage page;
	double seconds;		/* of the drive's time */
	uint64_t transferred;	/* blocks: written, or read out of flash or buffer */
	uint64_t unwritten;	/* blocks read of which the drive has nothing */
	uint64_t trimmed;	/* blocks trimmed, or written as zeroes without data */
	uint64_t failed;
	double programs[CAUSES];	/* a block written, in its size */
	double amplification;
	uint64_t erases[CAUSES], all_erases;
};

/*
 * Says whether it is a disk, which takes as long to read places that were never
 * written as others.
 */
static bool is_disk(const struct sim *sim)
{
	return rsd_config(sim->drive)->ftl == RSD_FTL_DISK;
}

static struct figures derive(const struct report *r)
{
	struct figures f = { .seconds = (r->sim->now - r->start_ns) * 1e-9 };
	const uint64_t *prog0 = &r->before.prog_host;
	const uint64_t *erase0 = &r->before.erase_host;
	const uint64_t *prog, *erase;
	uint64_t written;
	int i;

	rsd_counters(r->sim->drive, &f.after);
	rsd_log_page(r->sim->drive, &f.page);
	prog = &f.after.prog_host;
	erase = &f.after.erase_host;
	written = f.after.host_write_pages - r->before.host_write_pages;
	for (i = 0; i < CAUSES; i++) {
		if (written)
			f.programs[i] = (double)(prog[i] - prog0[i]) / written;
		f.amplification += f.programs[i];
		f.erases[i] = erase[i] - erase0[i];
		f.all_erases += f.erases[i];
	}
	for (i = 0; i < SIM_OPS; i++) {
		if (i == RSD_TRIM || i == RSD_WRITE_ZEROES)
			f.trimmed += r->sim->stats[i].blocks;
		else
			f.transferred += r->sim->stats[i].blocks;
		f.failed += r->sim->stats[i].failed;
	}
	f.unwritten = f.after.unwritten_reads - r->before.unwritten_reads;
	if (!is_disk(r->sim))
		f.transferred -= f.unwritten;
	return f;
}

static double rate(double count, double seconds)
{
	return seconds > 0 ? count / seconds : 0;
}

static double byte_rate(uint64_t blocks, double seconds)
{
	return rate((double)blocks * LBA_BYTES, seconds);
}

/* Says that the drive had never been written when the measurement began. */
static bool never_written(const struct report *r)
{
	return !r->before.host_write_pages;
}

static double wear_mean(const RsdCounters *c)
{
	uint64_t good = c->blocks_total - c->blocks_bad;

	return good ? (double)c->wear_sum / good : 0;
}

static double mean(const struct latency *l)
{
	return l->count ? (double)l->sum / l->count : 0;
}

/*
 * JSON
 */

static void json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < ' ')
			printf("\\u%04x", *text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void json_settings(const RsdConfig *cfg)
{
	size_t i;

	fputs("  \"settings\": {", stdout);
	for (i = 0; i < rsd_num_props; i++) {
		const RsdProp *prop = &rsd_props[i];
		uint64_t value = *rsd_prop_value((RsdConfig *)cfg, prop);

		printf("%s\n    \"%s\": ", i ? "," : "", prop->name);
		if (prop->kind == RSD_PROP_ENUM)
			json_string(prop->names[value]);
		else
			printf("%" PRIu64, value);
	}
	fputs("\n  },\n", stdout);
}

static uint64_t capacity(const RsdGeometry *geo)
{
	return geo->zoned ? geo->num_zones * geo->zone_capacity : geo->lbas;
}

/*
 * Returns the good flash, spares included, beyond the capacity that the host
 * sees, in percent of that.
 */
static double over_provision(const struct sim *sim)
{
	double flash = rsd_flash_pages(sim->drive, sim->ns);

	return (flash / capacity(&sim->geo) - 1) * 100;
}

static void json_drive(const struct sim *sim)
{
	printf("  \"drive\": {\"capacity_bytes\": %" PRIu64 ", \"flash_bytes\": %" PRIu64 ", \"over_provision_percent\": %.4f},\n",
	       capacity(&sim->geo) * LBA_BYTES,
	       rsd_flash_pages(sim->drive, sim->ns) * LBA_BYTES,
	       over_provision(sim));
}

static void json_work(const struct options *o)
{
	static const char *const patterns[] = {
		"sequential", "uniform", "zipf", "hotcold",
	};
	const struct gen_config *g = &o->gen;

	fputs("  \"work\": {\n", stdout);
	if (o->trace) {
		fputs("    \"trace\": ", stdout);
		json_string(o->trace);
		printf(",\n    \"format\": \"%s\",\n    \"wrap\": %s,\n",
		       o->format ? o->format->name : "native",
		       o->wrap ? "true" : "false");
	} else {
		printf("    \"pattern\": \"%s\",\n", patterns[g->pattern]);
		if (g->pattern == PATTERN_ZIPF)
			printf("    \"theta\": %.17g,\n", g->theta);
		if (g->pattern == PATTERN_HOTCOLD)
			printf("    \"hot_accesses_percent\": %.17g,\n    \"hot_space_percent\": %.17g,\n",
			       g->hot_accesses, g->hot_space);
		printf("    \"reads_percent\": %.17g,\n    \"trims_percent\": %.17g,\n",
		       g->reads, g->trims);
		printf("    \"append\": %s,\n",
		       g->append ? "true" : "false");
		printf("    \"size_bytes\": %" PRIu64 ",\n    \"seed\": %" PRIu64 ",\n",
		       (uint64_t)g->nlb * LBA_BYTES, g->seed);
	}
	if (o->depth)
		printf("    \"loop\": \"closed\",\n    \"depth\": %" PRIu64 "\n",
		       o->depth);
	else if (g->rate)
		printf("    \"loop\": \"open\",\n    \"rate\": %.17g\n",
		       g->rate);
	else
		printf("    \"loop\": \"open\"\n");
	fputs("  },\n", stdout);
}

static void json_precondition(const struct report *r)
{
	const struct precondition *p = r->precondition;
	static const char *const kinds[] = {
		"none", "fill", "steady", "times",
	};
	static const char *const levelling[] = { "none", "ahead", "runs" };

	printf("  \"precondition\": {\n    \"kind\": \"%s\",\n",
	       kinds[p->kind]);
	if (r->options->gen.fill < 100)
		printf("    \"fill_percent\": %.17g,\n",
		       r->options->gen.fill);
	printf("    \"filled_blocks\": %" PRIu64 ",\n    \"written_blocks\": %" PRIu64,
	       p->filled, p->written);
	if (p->kind == PRECONDITION_STEADY)
		printf(",\n    \"steady\": %s,\n    \"capacities\": %u,\n    \"range\": %.6f,\n    \"slope\": %.6f",
		       p->steady ? "true" : "false", p->rounds, p->range,
		       p->slope);
	if (p->kind == PRECONDITION_STEADY && p->steady)
		printf(",\n    \"levelling\": \"%s\"",
		       levelling[p->levelling]);
	if (p->written)
		printf(",\n    \"write_amplification\": %.6f",
		       p->write_amplification);
	printf(",\n    \"never_written\": %s\n  },\n",
	       never_written(r) ? "true" : "false");
}

static void json_latencies(const struct sim *sim)
{
	const char *comma = "";
	int op, i;

	fputs("    \"operations\": {", stdout);
	for (op = 0; op < SIM_OPS; op++) {
		const struct op_stats *s = &sim->stats[op];

		if (!s->latency)
			continue;
		printf("%s\n      \"%s\": {\n", comma,
		       rsd_trace_op_name(rsd_trace_op(op)));
		printf("        \"requests\": %" PRIu64 ",\n        \"failed\": %" PRIu64 ",\n        \"blocks\": %" PRIu64 ",\n",
		       s->latency->count + s->failed, s->failed, s->blocks);
		printf("        \"latency_ns\": {\"min\": %" PRIu64 ", \"mean\": %.3f",
		       s->latency->min,
		       mean(s->latency));
		for (i = 0; i < NUM_PERCENTILES; i++)
			printf(", \"%s\": %" PRIu64, percentiles[i].name,
			       latency_percentile(s->latency,
						  percentiles[i].part));
		printf(", \"max\": %" PRIu64 "}\n      }", s->latency->max);
		comma = ",";
	}
	fputs("\n    },\n", stdout);
}

static void json_causes(const struct figures *f)
{
	int i;

	printf("    \"write_amplification\": {\"total\": %.6f",
	       f->amplification);
	for (i = 0; i < CAUSES; i++)
		printf(", \"%s\": %.6f", causes[i], f->programs[i]);
	printf("},\n    \"erases\": {\"total\": %" PRIu64, f->all_erases);
	for (i = 0; i < CAUSES; i++)
		printf(", \"%s\": %" PRIu64, causes[i], f->erases[i]);
	fputs("},\n", stdout);
}

static void json_wear(const struct figures *f)
{
	int i;

	printf("    \"wear\": {\"min\": %" PRIu64 ", \"mean\": %.6f, \"max\": %" PRIu64 ", \"bucket_erases\": %u,\n",
	       f->after.wear_min, wear_mean(&f->after), f->after.wear_max,
	       f->page.bucket_erases);
	fputs("      \"blocks\": [", stdout);
	for (i = 0; i < RSD_LOG_HISTOGRAM; i++)
		printf("%s%" PRIu64, i ? ", " : "",
		       f->page.erase_histogram[i]);
	fputs("]},\n", stdout);
}

static void json_counters(const struct report *r, const struct figures *f)
{
	const uint64_t *before = (const uint64_t *)&r->before;
	const uint64_t *after = (const uint64_t *)&f->after;
	size_t i;

	fputs("    \"counters\": {", stdout);
	for (i = 0; i < RSD_NUM_COUNTERS; i++)
		printf("%s\n      \"%s\": {\"before\": %" PRIu64 ", \"after\": %" PRIu64 "}",
		       i ? "," : "", rsd_counter_info[i].name, before[i],
		       after[i]);
	fputs("\n    }\n", stdout);
}

static void json_host(const struct report *r)
{
	const struct host_cost *h = &r->host;

	printf(",\n  \"host\": {\"precondition_cpu_s\": %.6f, \"run_cpu_s\": %.6f, \"requests_per_cpu_s\": %.1f, \"peak_kib\": %ld}",
	       h->precondition_cpu_s, h->run_cpu_s,
	       rate(r->sim->requests, h->run_cpu_s), h->peak_kib);
}

static void print_json(const struct report *r, const struct figures *f)
{
	printf("{\n  \"rsdsim version\": %d,\n", REPORT_VERSION);
	json_settings(rsd_config(r->sim->drive));
	json_drive(r->sim);
	json_work(r->options);
	json_precondition(r);
	fputs("  \"results\": {\n", stdout);
	printf("    \"requests\": %" PRIu64 ",\n    \"failed\": %" PRIu64 ",\n    \"seconds\": %.9f,\n",
	       r->sim->requests, f->failed, f->seconds);
	printf("    \"iops\": %.3f,\n    \"bytes_per_s\": %.1f,\n    \"trimmed_bytes_per_s\": %.1f,\n    \"unwritten_blocks_read\": %" PRIu64 ",\n",
	       rate(r->sim->requests - f->failed, f->seconds),
	       byte_rate(f->transferred, f->seconds),
	       byte_rate(f->trimmed, f->seconds), f->unwritten);
	json_latencies(r->sim);
	json_causes(f);
	json_wear(f);
	json_counters(r, f);
	fputs("  }", stdout);
	if (r->options->host_time)
		json_host(r);
	fputs("\n}\n", stdout);
}

/*
 * Table
 */

static void table_precondition(const struct precondition *p)
{
	printf("  %-20s %" PRIu64 " blocks in sequence, %" PRIu64 " by the pattern",
	       "preconditioned by", p->filled, p->written);
	if (p->kind == PRECONDITION_STEADY && p->steady)
		printf(": steady after %u capacities%s", p->rounds,
		       p->levelling == LEVELLING_AHEAD ?
		       " but for wear levelling" : "");
	if (p->kind == PRECONDITION_STEADY && !p->steady)
		printf(": not steady after %u capacities", p->rounds);
	putchar('\n');
}

static void table_throughput(const struct report *r, const struct figures *f)
{
	printf("\nThroughput\n  %" PRIu64 " requests in %.6f s: %.0f a second, %.2f MB/s transferred\n",
	       r->sim->requests, f->seconds,
	       rate(r->sim->requests - f->failed, f->seconds),
	       byte_rate(f->transferred, f->seconds) / 1e6);
	if (f->trimmed)
		printf("  trimmed, or written as zeroes: %" PRIu64 " blocks, %.2f MB/s\n",
		       f->trimmed, byte_rate(f->trimmed, f->seconds) / 1e6);
	if (f->unwritten && !is_disk(r->sim))
		printf("  read without ever having been written, or after a trim: %" PRIu64 " blocks, %.2f MB/s\n",
		       f->unwritten, byte_rate(f->unwritten, f->seconds) / 1e6);
}

static void table_drive(const struct report *r, const struct figures *f)
{
	const RsdConfig *cfg = rsd_config(r->sim->drive);

	if (is_disk(r->sim)) {
		printf("Drive\n  %-20s %" PRIu64 " rpm, %" PRIu64 " heads, %.2f GiB\n",
		       "disk", cfg->disk_rpm, cfg->disk_heads,
		       (double)r->sim->geo.lbas * LBA_BYTES / (1 << 30));
		return;
	}
	printf("Drive\n  %-20s ftl=%s, %" PRIu64 " channels x %" PRIu64 " ways x %" PRIu64 " blocks x %" PRIu64 " pages of %" PRIu64 " bytes\n",
	       "flash", rsd_ftl_names[cfg->ftl], cfg->channels, cfg->ways,
	       cfg->blocks + cfg->spare_blocks, cfg->pages, cfg->page_size);
	printf("  %-20s %.2f GiB, map %" PRIu64 " bytes\n", "namespace",
	       (double)r->sim->geo.lbas * LBA_BYTES / (1 << 30),
	       r->sim->geo.map_bytes);
	printf("  %-20s %.2f%% of it beyond what the host sees, spares included\n",
	       "over-provisioning", over_provision(r->sim));
	if (r->precondition->kind != PRECONDITION_NONE)
		table_precondition(r->precondition);
	if (r->options->gen.fill < 100)
		printf("  %-20s the first %g%% of it\n", "used",
		       r->options->gen.fill);
	if (never_written(r))
		printf("  %-20s nothing was ever written to the drive\n",
		       "before measuring");
	printf("  %-20s %" PRIu64 " of %" PRIu64 " left\n", "spare blocks",
	       f->after.spares_left, f->after.spares_total);
}

static void table_latencies(const struct sim *sim)
{
	char buf[24];
	int op, i;

	printf("\nLatency\n  %-13s %12s %10s", "", "requests", "mean");
	for (i = 0; i < NUM_PERCENTILES; i++)
		printf(" %10s", percentiles[i].name);
	printf(" %10s\n", "max");
	for (op = 0; op < SIM_OPS; op++) {
		const struct op_stats *s = &sim->stats[op];

		if (!s->latency)
			continue;
		human_ns(buf, sizeof(buf),
			 mean(s->latency));
		printf("  %-13s %12" PRIu64 " %10s",
		       rsd_trace_op_name(rsd_trace_op(op)),
		       s->latency->count + s->failed, buf);
		for (i = 0; i < NUM_PERCENTILES; i++) {
			human_ns(buf, sizeof(buf),
				 latency_percentile(s->latency,
						    percentiles[i].part));
			printf(" %10s", buf);
		}
		human_ns(buf, sizeof(buf), s->latency->max);
		printf(" %10s\n", buf);
		if (s->failed)
			printf("  %-13s %12" PRIu64 " the last one with: %s\n",
			       "  failed", s->failed,
			       rsd_status_name(s->failure));
	}
}

static void table_causes(const struct figures *f)
{
	int i;

	printf("\nFlash, by cause\n  %-13s %12s %12s\n", "",
	       "pages/write", "erases");
	for (i = 0; i < CAUSES; i++)
		if (f->programs[i] || f->erases[i])
			printf("  %-13s %12.3f %12" PRIu64 "\n", causes[i],
			       f->programs[i], f->erases[i]);
	printf("  %-13s %12.3f %12" PRIu64 "  (write amplification)\n", "all",
	       f->amplification, f->all_erases);
}

static void table_wear(const struct figures *f)
{
	uint64_t most = 0;
	int i;

	printf("\nWear, erases a block: least %" PRIu64 ", mean %.2f, most %" PRIu64 "\n",
	       f->after.wear_min, wear_mean(&f->after), f->after.wear_max);
	for (i = 0; i < RSD_LOG_HISTOGRAM; i++)
		if (f->page.erase_histogram[i] > most)
			most = f->page.erase_histogram[i];
	for (i = 0; i < RSD_LOG_HISTOGRAM; i++) {
		uint64_t blocks = f->page.erase_histogram[i];
		int width = most ? (double)blocks / most * BAR_WIDTH : 0;

		if (blocks)
			printf("  %10" PRIu64 " %12" PRIu64 " %.*s\n",
			       (uint64_t)i * f->page.bucket_erases, blocks,
			       width ? width : 1,
			       "########################################");
	}
}

static void row_of_arm(const char *name, uint64_t ns, const struct figures *f)
{
	printf("  %-20s %.6f s, %.1f%% of the time\n", name, ns * 1e-9,
	       rate(ns * 1e-7, f->seconds));
}

/* Prints how a disk has spent its time. */
static void table_disk(const struct report *r, const struct figures *f)
{
	const RsdCounters *was = &r->before, *is = &f->after;

	printf("\nArm\n  %-20s %" PRIu64 " blocks read, %" PRIu64 " found in the cache, %" PRIu64 " written\n",
	       "medium", is->disk_read_pages - was->disk_read_pages,
	       is->disk_cache_hits - was->disk_cache_hits,
	       is->disk_write_pages - was->disk_write_pages);
	row_of_arm("seeks", is->disk_seek_ns - was->disk_seek_ns, f);
	row_of_arm("rotation", is->disk_rotate_ns - was->disk_rotate_ns, f);
	row_of_arm("transfer", is->disk_transfer_ns - was->disk_transfer_ns, f);
}

static void print_table(const struct report *r, const struct figures *f)
{
	table_drive(r, f);
	if (r->sim->requests) {
		table_throughput(r, f);
		table_latencies(r->sim);
		if (is_disk(r->sim))
			table_disk(r, f);
		else
			table_causes(f);
	}
	if (!is_disk(r->sim))
		table_wear(f);
	if (r->options->host_time)
		printf("\nHost\n  %.3f s of processor time for preconditioning, %.3f s for the rest: %.0f requests a second, %ld KiB\n",
		       r->host.precondition_cpu_s, r->host.run_cpu_s,
		       rate(r->sim->requests, r->host.run_cpu_s),
		       r->host.peak_kib);
}

/* Warns of figures that a reader would mistake for a result of the drive. */
static void warn_of_figures(const struct report *r, const struct figures *f)
{
	const struct op_stats *reads = &r->sim->stats[RSD_READ];

	if (is_disk(r->sim))
		return;
	if (r->sim->requests && never_written(r))
		warn("the drive was never written before the measurement: what it does then says little about it in use; choose --precondition fill or steady");
	if (f->unwritten)
		warn("%" PRIu64 " of %" PRIu64 " blocks read were never written, or trimmed: that takes no time in the flash, and they are left out of the throughput",
		     f->unwritten, reads->blocks);
}

void report_print(const struct report *report)
{
	struct figures f = derive(report);

	warn_of_figures(report, &f);
	if (report->options->json)
		print_json(report, &f);
	else
		print_table(report, &f);
}
