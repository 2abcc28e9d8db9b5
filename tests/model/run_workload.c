/*
 * Runs one workload on a drive in memory, without payload, and prints mean
 * latency and throughput of its steady part as JSON. For `./rsd bench presets`.
 *
 *     run_workload PRESET OP BLOCKS DEPTH WRITERS LEFT [NAME=VALUE]...
 *
 * OP: read     random reads of BLOCKS logical blocks, DEPTH at a time, aligned
 *              to their size, over 4 GiB (or all) written sequentially before
 *     write    WRITERS writers, each DEPTH writes at a time, each to zones of
 *     append   its own; on a conventional namespace each to a part of its own
 *     finish   one zone that has room for LEFT more blocks; DEPTH, WRITERS and
 *     reset    BLOCKS have no meaning
 *     geometry nothing; prints the blocks of a zone, 0 if there are no zones
 *
 * A property that is set here overrides the preset's.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rsd.h"

#define SPAN_BLOCKS (4ull << 30 >> 12)
#define FILL_BLOCKS 64u
#define FILL_DEPTH 16u
#define STAGGER 64u             /* blocks that two writers begin apart */
#define SETTLE_NS 1000000000ull /* between filling a zone and its command */
/* the steady part begins after WARM_NS and lasts MEASURE_NS */
#define WARM_NS 300000000ull
#define MEASURE_NS 500000000ull

typedef struct Writer {
	uint64_t zone, offset;
} Writer;

typedef struct Load {
	RsdOp op;
	uint32_t blocks;
	unsigned int depth;
	unsigned int writers;
	bool append;
} Load;

static RsdDrive *drive;
static RsdGeometry geo;
static uint64_t now_ns;
static uint64_t random_state = 1;

static void die(const char *what, const char *detail)
{
	fprintf(stderr, "run_workload: %s: %s\n", what, detail);
	exit(1);
}

/* splitmix64: the same figures on every machine */
static uint64_t next_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (!*text || *end)
		die("not a number", text);
	return value;
}

static void set_property(RsdConfig *cfg, char *item)
{
	char *value = strchr(item, '=');
	const RsdProp *prop;
	uint64_t n = 0;

	if (!value)
		die("no value", item);
	*value++ = '\0';
	prop = rsd_prop_find(item);
	if (!prop)
		die("no such property", item);
	if (prop->kind == RSD_PROP_ENUM) {
		while (prop->names[n] && strcmp(prop->names[n], value))
			n++;
		if (!prop->names[n])
			die("no such value", value);
	} else {
		n = number(value);
	}
	*rsd_prop_value(cfg, prop) = n;
}

static void submit(RsdOp op, bool append, uint64_t lba, uint32_t nlb,
		   uintptr_t tag)
{
	RsdCmd *cmd = rsd_cmd_new(drive, 0, op, lba, nlb);
	RsdStatus status;

	if (!cmd)
		die("command", "no memory");
	cmd->append = append;
	cmd->opaque = (void *)tag;
	status = rsd_submit(drive, cmd, now_ns);
	if (status != RSD_OK)
		die("submission", rsd_status_name(status));
}

/* The next command that is done; NULL when nothing is pending any more. */
static RsdCmd *next_done(void)
{
	RsdCmd *cmd;
	uint64_t when;

	for (;;) {
		cmd = rsd_advance(drive, now_ns);
		if (cmd) {
			if (cmd->status != RSD_OK)
				die("completion", rsd_status_name(cmd->status));
			return cmd;
		}
		if (!rsd_next_event(drive, &when))
			return NULL;
		if (when > now_ns)
			now_ns = when;
	}
}

static void wait_idle(void)
{
	RsdCmd *cmd;

	while ((cmd = next_done()))
		rsd_cmd_free(drive, cmd);
}

/* What a zone, or a writer's part of a conventional namespace, holds */
static uint64_t unit_blocks(unsigned int writers)
{
	return geo.zoned ? geo.zone_capacity : geo.lbas / writers;
}

static uint64_t unit_start(uint64_t unit, unsigned int writers)
{
	return unit * (geo.zoned ? geo.zone_size : geo.lbas / writers);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Writes the first blocks of a zone, or of a conventional namespace. */
static void fill(uint64_t zone, uint64_t blocks)
{
	unsigned int in_flight = 0;
	uint64_t done = 0;

	while (done < blocks || in_flight) {
		while (done < blocks && in_flight < FILL_DEPTH) {
			uint64_t nlb = min_u64(FILL_BLOCKS, blocks - done);

			submit(RSD_WRITE, false, unit_start(zone, 1) + done,
			       (uint32_t)nlb, 0);
			done += nlb;
			in_flight++;
		}
		rsd_cmd_free(drive, next_done());
		in_flight--;
	}
}

static void submit_read(uint64_t span, const Load *load)
{
	uint64_t per_unit, slot, unit = unit_blocks(1);

	if (!geo.zoned) {
		slot = next_random() % (span / load->blocks);
		submit(RSD_READ, false, slot * load->blocks, load->blocks, 0);
		return;
	}
	per_unit = unit / load->blocks;
	slot = next_random() % (span / unit * per_unit);
	submit(RSD_READ, false, slot / per_unit * geo.zone_size +
	       slot % per_unit * load->blocks, load->blocks, 0);
}

static void submit_write(Writer *writers, uintptr_t w, const Load *load)
{
	uint64_t left, unit = unit_blocks(load->writers);
	Writer *writer = &writers[w];
	uint32_t nlb = load->blocks;

	if (writer->offset == unit) {
		writer->offset = 0;
		if (geo.zoned)
			writer->zone += load->writers;
		if (geo.zoned && writer->zone >= geo.num_zones)
			die("write", "the drive is full");
	}
	left = unit - writer->offset;
	if (nlb > left)
		nlb = (uint32_t)left;
	submit(RSD_WRITE, load->append,
	       unit_start(writer->zone, load->writers) + writer->offset, nlb,
	       w);
	writer->offset += nlb;
}

static void run(const Load *load)
{
	Writer *writers = calloc(load->writers, sizeof(*writers));
	uint64_t span = min_u64(SPAN_BLOCKS, geo.lbas), measured = 0;
	uint64_t blocks = 0, sum = 0, start, end;
	RsdCmd *cmd;

	if (!writers)
		die("writers", "no memory");
	if (load->op == RSD_READ && geo.zoned) {
		uint64_t zones = SPAN_BLOCKS / geo.zone_capacity + 1;

		zones = min_u64(zones, geo.num_zones);
		span = zones * geo.zone_capacity;
		for (uint64_t zone = 0; zone < zones; zone++)
			fill(zone, geo.zone_capacity);
	} else if (load->op == RSD_READ) {
		fill(0, span);
	}
	/* writers of several zones begin apart, or they would keep step */
	for (unsigned int w = 0; w < load->writers; w++) {
		writers[w].zone = w;
		writers[w].offset = load->op == RSD_WRITE ? w * STAGGER : 0;
		if (writers[w].offset && geo.zoned)
			fill(w, writers[w].offset);
	}
	wait_idle();
	start = now_ns + WARM_NS;
	end = start + MEASURE_NS;
	for (unsigned int w = 0; w < load->writers; w++) {
		for (unsigned int i = 0; i < load->depth; i++) {
			if (load->op == RSD_READ)
				submit_read(span, load);
			else
				submit_write(writers, w, load);
		}
	}
	while ((cmd = next_done()) && cmd->done_ns <= end) {
		uintptr_t w = (uintptr_t)cmd->opaque;

		if (cmd->done_ns > start) {
			measured++;
			blocks += cmd->nlb;
			sum += cmd->done_ns - cmd->submit_ns;
		}
		rsd_cmd_free(drive, cmd);
		if (load->op == RSD_READ)
			submit_read(span, load);
		else
			submit_write(writers, w, load);
	}
	if (!measured)
		die("workload", "no command was done in time");
	printf("{\"commands\": %" PRIu64 ", \"us\": %.3f, \"iops\": %.1f, "
	       "\"mb_s\": %.3f}\n", measured, (double)sum / measured / 1000,
	       measured * 1e9 / MEASURE_NS,
	       blocks * 4096.0 * 1e3 / MEASURE_NS);
	free(writers);
}

static void run_single(RsdOp op, uint64_t left)
{
	RsdCmd *cmd;

	if (!geo.zoned || left > geo.zone_capacity)
		die("workload", "no zone of that size");
	fill(0, geo.zone_capacity - left);
	wait_idle();
	now_ns += SETTLE_NS;
	submit(op, false, 0, 0, 0);
	cmd = next_done();
	printf("{\"commands\": 1, \"us\": %.3f}\n",
	       (cmd->done_ns - cmd->submit_ns) / 1000.0);
	rsd_cmd_free(drive, cmd);
}

int main(int argc, char **argv)
{
	const RsdPreset *preset;
	char err[RSD_ERR_LEN];
	Load load = { 0 };
	const char *op;
	RsdConfig cfg;

	if (argc < 7)
		die("usage", "PRESET OP BLOCKS DEPTH WRITERS LEFT [NAME=VALUE]...");
	preset = rsd_preset_find(argv[1]);
	if (!preset)
		die("no such preset", argv[1]);
	preset->apply(&cfg);
	for (int i = 7; i < argc; i++)
		set_property(&cfg, argv[i]);
	drive = rsd_open(NULL, &cfg, err);
	if (!drive)
		die("open", err);
	rsd_geometry(drive, 0, &geo);
	op = argv[2];
	load.blocks = (uint32_t)number(argv[3]);
	load.depth = (unsigned int)number(argv[4]);
	load.writers = (unsigned int)number(argv[5]);
	if (!strcmp(op, "read")) {
		load.op = RSD_READ;
		load.writers = 1;
		run(&load);
	} else if (!strcmp(op, "write") || !strcmp(op, "append")) {
		load.op = RSD_WRITE;
		load.append = *op == 'a';
		run(&load);
	} else if (!strcmp(op, "geometry")) {
		printf("{\"zone_blocks\": %" PRIu64 "}\n",
		       geo.zoned ? geo.zone_capacity : 0);
	} else if (!strcmp(op, "finish")) {
		run_single(RSD_ZONE_FINISH, number(argv[6]));
	} else if (!strcmp(op, "reset")) {
		run_single(RSD_ZONE_RESET, number(argv[6]));
	} else {
		die("no such workload", op);
	}
	rsd_close(drive);
	return 0;
}
