// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>

#include "../common/human.h"
#include "tables.h"

#define BAR_WIDTH 40
#define CAUSES 6

static const char *const causes[CAUSES] = {
	"host", "clean", "merge", "wear", "map", "pad",
};

static void human_bytes(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double value = bytes / 1024.0;
	int i = 0;

	for (; value >= 1024 && i < 3; i++)
		value /= 1024;
	if (bytes < 1024)
		snprintf(buf, size, "%" PRIu64 " bytes", bytes);
	else
		snprintf(buf, size, "%.1f %s", value, units[i]);
}

/* Prints a counter's value, or "-" when the drive does not have it. */
static void cell(const struct snapshot *s, unsigned int counter, char *buf,
		 size_t size)
{
	if (s->present[counter])
		snprintf(buf, size, "%" PRIu64, s->values[counter]);
	else
		snprintf(buf, size, "-");
}

/* Prints a line of a label and up to three columns; -1 leaves a column out. */
static void row(FILE *out, const struct snapshot *s, const char *label,
		int a, int b, int c)
{
	int columns[3] = { a, b, c };
	int i, width = 0;
	char buf[24];

	fprintf(out, "  %-20s", label);
	for (i = 0; i < 3; i++) {
		width += 15;
		if (columns[i] < 0)
			continue;
		cell(s, columns[i], buf, sizeof(buf));
		fprintf(out, "%*s", width, buf);
		width = 0;
	}
	fputc('\n', out);
}

/* A disk has a capacity, but no blocks of flash. */
static bool is_disk(const struct snapshot *s)
{
	return !s->counters.blocks_total && s->counters.capacity_bytes;
}

static void print_drive(FILE *out, const struct snapshot *s)
{
	const RsdCounters *c = &s->counters;
	char bytes[32];

	human_bytes(bytes, sizeof(bytes), c->capacity_bytes);
	fprintf(out, "  %-20s %s (%" PRIu64 " bytes) in %" PRIu64 " zones\n",
		"capacity", bytes, c->capacity_bytes, c->zones);
	fprintf(out, "  %-20s %" PRIu64 " bytes + %" PRIu64 " bytes of metadata\n",
		"page", c->page_bytes, c->oob_bytes);
	if (is_disk(s)) {
		fprintf(out, "  %-20s %" PRIu64 "\n", "media errors",
			c->media_errors);
		return;
	}
	fprintf(out, "  %-20s %" PRIu64 ": %" PRIu64 " used, %" PRIu64 " waiting for erasure, %" PRIu64 " erased, %" PRIu64 " bad\n",
		"flash blocks", c->blocks_total, c->blocks_used,
		c->blocks_dirty, c->blocks_erased, c->blocks_bad);
	fprintf(out, "  %-20s %" PRIu64 " of %" PRIu64 " left\n",
		"spare blocks", c->spares_left, c->spares_total);
	fprintf(out, "  %-20s %" PRIu64 "\n", "media errors", c->media_errors);
}

static void print_host(FILE *out, const struct snapshot *s)
{
	fprintf(out, "\nHost\n  %-20s %14s %14s\n", "", "commands", "pages");
	row(out, s, "read", COUNTER(host_read_cmds), COUNTER(host_read_pages),
	    -1);
	row(out, s, "  never written", -1, -1, COUNTER(unwritten_reads));
	row(out, s, "write", COUNTER(host_write_cmds),
	    COUNTER(host_write_pages), -1);
	row(out, s, "flush", COUNTER(flush_cmds), -1, -1);
	row(out, s, "format", COUNTER(formats), -1, -1);
	row(out, s, "zone resets", COUNTER(zone_resets), -1, -1);
	row(out, s, "zone finishes", COUNTER(zone_finishes), -1, -1);
}

static void print_arm(FILE *out, const struct snapshot *s)
{
	const RsdCounters *c = &s->counters;
	char seek[24], rotate[24], transfer[24];

	fprintf(out, "\nDisk\n  %-20s %14s\n", "", "pages");
	row(out, s, "read", COUNTER(disk_read_pages), -1, -1);
	row(out, s, "  found in the cache", COUNTER(disk_cache_hits), -1, -1);
	row(out, s, "written", COUNTER(disk_write_pages), -1, -1);
	row(out, s, "  overwritten before", COUNTER(disk_overwrites), -1, -1);
	human_ns(seek, sizeof(seek), c->disk_seek_ns);
	human_ns(rotate, sizeof(rotate), c->disk_rotate_ns);
	human_ns(transfer, sizeof(transfer), c->disk_transfer_ns);
	fprintf(out, "  %-20s %" PRIu64 ", %s with head switches\n", "seeks",
		c->disk_seeks, seek);
	fprintf(out, "  %-20s %s\n", "rotation", rotate);
	fprintf(out, "  %-20s %s\n", "transfer", transfer);
}

static void print_nand(FILE *out, const struct snapshot *s,
		       const struct derived *d)
{
	uint64_t total[3] = { 0 };
	int i;

	fprintf(out, "\nNAND operations by cause\n  %-20s %14s %14s %14s\n", "",
		"page reads", "programs", "block erases");
	for (i = 0; i < CAUSES; i++) {
		row(out, s, causes[i], COUNTER(read_host) + i,
		    COUNTER(prog_host) + i, COUNTER(erase_host) + i);
		total[0] += s->values[COUNTER(read_host) + i];
		total[1] += s->values[COUNTER(prog_host) + i];
		total[2] += s->values[COUNTER(erase_host) + i];
	}
	fprintf(out, "  %-20s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n",
		"total", total[0], total[1], total[2]);
	fprintf(out, "  %-20s %" PRIu64 " on demand, %" PRIu64 " while idle\n",
		"erases", s->counters.erase_on_demand,
		s->counters.erase_idle);
	if (d->has_write_amplification)
		fprintf(out, "  %-20s %.3f (programs a page the host wrote)\n",
			"write amplification", d->write_amplification);
	else
		fprintf(out, "  %-20s - (the host wrote nothing)\n",
			"write amplification");
}

static void print_time(FILE *out, const struct snapshot *s,
		       const struct derived *d)
{
	char mean[24] = "-", max[24], bus[24], die[24];

	if (d->has_mean_queue_wait)
		human_ns(mean, sizeof(mean), d->mean_queue_wait_ns);
	human_ns(max, sizeof(max), s->counters.queue_wait_max_ns);
	human_ns(bus, sizeof(bus), s->counters.bus_busy_ns);
	human_ns(die, sizeof(die), s->counters.die_busy_ns);
	fprintf(out, "\nTime\n  %-20s mean %s, longest %s\n", "queue wait",
		mean, max);
	fprintf(out, "  %-20s %s summed over the channels\n", "buses busy",
		bus);
	fprintf(out, "  %-20s %s summed over the dies\n", "dies busy", die);
}

static void print_memory(FILE *out, const struct snapshot *s)
{
	char map[32], ram[32];

	human_bytes(map, sizeof(map), s->counters.map_bytes);
	human_bytes(ram, sizeof(ram), s->counters.ram_bytes);
	fprintf(out, "\nMemory\n  %-20s %s (%" PRIu64 " bytes)\n",
		"mapping table", map, s->counters.map_bytes);
	fprintf(out, "  %-20s %s (%" PRIu64 " bytes)\n", "other RAM", ram,
		s->counters.ram_bytes);
}

static void print_histogram(FILE *out, const struct snapshot *s)
{
	int first = -1, last = -1, i, width;
	uint64_t most = 0, low;
	char range[48];

	for (i = 0; i < RSD_LOG_HISTOGRAM; i++) {
		if (!s->histogram[i])
			continue;
		if (first < 0)
			first = i;
		last = i;
		if (s->histogram[i] > most)
			most = s->histogram[i];
	}
	if (first < 0)
		return;
	fprintf(out, "  %-20s %14s\n", "erases", "blocks");
	for (i = first; i <= last; i++) {
		if (!s->histogram[i]) {
			/* One line stands for a gap of any length. */
			if (s->histogram[i - 1])
				fprintf(out, "    %-18s %12s\n", "...", "0");
			continue;
		}
		low = (uint64_t)i * s->bucket_erases;
		if (i == RSD_LOG_HISTOGRAM - 1)
			snprintf(range, sizeof(range), "%" PRIu64 " or more",
				 low);
		else if (s->bucket_erases == 1)
			snprintf(range, sizeof(range), "%" PRIu64, low);
		else
			snprintf(range, sizeof(range), "%" PRIu64 " to %" PRIu64,
				 low, low + s->bucket_erases - 1);
		width = (double)s->histogram[i] / most * BAR_WIDTH;
		if (!width)
			width = 1;
		fprintf(out, "    %-18s %12" PRIu64 " %.*s\n", range,
			s->histogram[i], width,
			"########################################");
	}
}

static void print_wear(FILE *out, const struct snapshot *s)
{
	const RsdCounters *c = &s->counters;
	uint64_t good = c->blocks_total > c->blocks_bad ?
			c->blocks_total - c->blocks_bad : 0;

	fprintf(out, "\nWear\n  %-20s least %" PRIu64 ", mean %.2f, most %" PRIu64 " of %" PRIu64 " rated\n",
		"erases a block", c->wear_min,
		good ? (double)c->wear_sum / good : 0, c->wear_max,
		c->endurance);
	fprintf(out, "  %-20s %" PRIu64 " blocks\n", "moved by levelling",
		c->wear_moves);
	print_histogram(out, s);
}

/* Prints faults by rule, if there were any. */
static void print_faults(FILE *out, const struct snapshot *s)
{
	static const struct {
		const char *label;
		unsigned int counter;
	} rows[] = {
		{ "programs failed", COUNTER(fault_program) },
		{ "erases failed", COUNTER(fault_erase) },
		{ "pages unreadable", COUNTER(fault_read) },
		{ "operations longer", COUNTER(fault_latency) },
		{ "blocks corrupted", COUNTER(fault_corrupt) },
		{ "writes lost", COUNTER(fault_lost) },
		{ "writes misdirected", COUNTER(fault_misdirect) },
		{ "zones read-only", COUNTER(fault_read_only) },
		{ "zones offline", COUNTER(fault_offline) },
		{ }
	};
	bool any = false;
	int i;

	for (i = 0; rows[i].label; i++) {
		if (!s->values[rows[i].counter])
			continue;
		if (!any)
			fputs("\nFaults by rule\n", out);
		any = true;
		row(out, s, rows[i].label, rows[i].counter, -1, -1);
	}
}

void tables_print(FILE *out, const struct snapshot *s, const char *source)
{
	struct derived d = snapshot_derive(&s->counters);
	unsigned int i, missing = 0;

	for (i = 0; i < RSD_NUM_COUNTERS; i++)
		missing += !s->present[i];
	if (missing)
		error("note: the drive has %zu of %zu counters; the last %u read 0 or -",
		      RSD_NUM_COUNTERS - missing, RSD_NUM_COUNTERS, missing);
	fprintf(out, "Drive %s\n", source);
	print_drive(out, s);
	print_host(out, s);
	print_faults(out, s);
	if (is_disk(s)) {
		print_arm(out, s);
		print_memory(out, s);
		return;
	}
	print_nand(out, s, &d);
	print_time(out, s, &d);
	print_memory(out, s);
	print_wear(out, s);
}

void tables_counters(FILE *out)
{
	unsigned int i;

	for (i = 0; i < RSD_NUM_COUNTERS; i++)
		fprintf(out, "%-18s %-9s %s\n", counter_infos[i].name,
			counter_infos[i].unit, counter_infos[i].doc);
}
