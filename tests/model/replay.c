/*
 * Replays a script of commands on the drive's core and prints what came of it,
 * one JSON object a line. The script comes from standard input, a line each:
 *
 *     open FILE NAME=VALUE ...   create FILE if there is none; open it; the file
 *                                "-" is a drive in memory without payload
 *     close                      without advancing: what is in flight is lost
 *     sub TIME ID OP LBA NLB TAG submit; OP: read write zeroes reset finish
 *                                flush zopen commit (of a random write area);
 *                                fua (a write with FUA); a write's page i
 *                                holds TAG + i
 *     detach TIME ID OP ...      the same, and forget the command
 *     adv TIME                   one rsd_advance() loop
 *     step TIME                  from event to event, as rsd_next_event() says
 *     format TIME OOB
 *     counters | zones           print them
 *     end                        of a script: close if open, and say so
 *
 * A page's content is made from its tag in every word, so that a page read is
 * printed as two tags, of its data and its OOB; 0 is a page of zeroes, -1 one
 * that no command wrote like that.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rsd.h"

#define DATA_STEP 0x9e3779b97f4a7c15ull
#define OOB_STEP 0xc2b2ae3d27d4eb4full

static RsdDrive *drive;
/* the latest time told to the drive: time never goes backwards */
static uint64_t clock_ns;
static const char *const op_names[] = {
	[RSD_READ] = "read", [RSD_WRITE] = "write",
	[RSD_WRITE_ZEROES] = "zeroes", [RSD_ZONE_RESET] = "reset",
	[RSD_ZONE_FINISH] = "finish", [RSD_TRIM] = "trim",
	[RSD_FLUSH] = "flush", [RSD_ZRWA_OPEN] = "zopen",
	[RSD_ZRWA_COMMIT] = "commit",
};

static void die(const char *what, const char *detail)
{
	fprintf(stderr, "replay: %s: %s\n", what, detail);
	exit(1);
}

static void fill(uint8_t *area, size_t bytes, uint64_t tag, uint64_t step)
{
	for (size_t i = 0; i < bytes / 8; i++) {
		uint64_t word = tag * step + i;

		memcpy(area + i * 8, &word, 8);
	}
}

/* The tag of an area that fill() made or that is zero, else -1. */
static int64_t tag_of(const uint8_t *area, size_t bytes, uint64_t step)
{
	static const uint8_t zeroes[4096];
	uint8_t expected[4096];
	uint64_t first, inverse = step;
	int64_t tag;

	if (!bytes || !memcmp(area, zeroes, bytes))
		return 0;
	memcpy(&first, area, 8);
	/* Newton's iteration: the inverse of an odd number modulo 2^64 */
	for (int i = 0; i < 6; i++)
		inverse *= 2 - step * inverse;
	tag = (int64_t)(first * inverse);
	fill(expected, bytes, (uint64_t)tag, step);
	return tag > 0 && !memcmp(area, expected, bytes) ? tag : -1;
}

static void open_drive(char *args)
{
	const char *path = strtok(args, " \n");
	char err[RSD_ERR_LEN];
	RsdConfig cfg;
	char *item;

	if (drive)
		die("open", "a drive is open");
	rsd_preset_find("custom")->apply(&cfg);
	while ((item = strtok(NULL, " \n"))) {
		char *value = strchr(item, '=');
		const RsdProp *prop;

		if (!value)
			die("no value", item);
		*value++ = '\0';
		prop = rsd_prop_find(item);
		if (!prop)
			die("no such property", item);
		if (prop->kind == RSD_PROP_ENUM) {
			uint64_t n = 0;

			while (prop->names[n] && strcmp(prop->names[n], value))
				n++;
			if (!prop->names[n])
				die("no such value", value);
			*rsd_prop_value(&cfg, prop) = n;
		} else {
			*rsd_prop_value(&cfg, prop) = strtoull(value, NULL, 0);
		}
	}
	if (!strcmp(path, "-"))
		path = NULL;
	if (path && access(path, F_OK) && !rsd_media_create(path, &cfg, err))
		die("create", err);
	drive = rsd_open(path, &cfg, err);
	if (!drive)
		die("open", err);
	clock_ns = 0;
}

static void print_done(RsdCmd *cmd)
{
	uintptr_t note = (uintptr_t)cmd->opaque;
	size_t oob = note & 0xff;

	printf("{\"done\": %" PRIuPTR ", \"status\": \"%s\", \"at\": %" PRIu64,
	       note >> 8, rsd_status_name(cmd->status), cmd->done_ns);
	if (cmd->op == RSD_READ && cmd->data) {
		printf(", \"pages\": [");
		for (uint32_t i = 0; i < cmd->nlb; i++)
			printf("%s[%" PRId64 ", %" PRId64 "]", i ? ", " : "",
			       tag_of(cmd->data + (size_t)i * 4096, 4096,
				      DATA_STEP),
			       tag_of(cmd->oob ? cmd->oob + i * oob : NULL,
				      cmd->oob ? oob : 0, OOB_STEP));
		printf("]");
	}
	printf("}\n");
	rsd_cmd_free(drive, cmd);
}

static void advance(uint64_t now)
{
	RsdCmd *cmd;

	clock_ns = now;
	while ((cmd = rsd_advance(drive, now))) {
		if (cmd->done_ns > now)
			die("advance", "a completion from the future");
		print_done(cmd);
	}
}

static void step(uint64_t until)
{
	uint64_t when;

	/* submitting without advancing leaves events of the past */
	while (rsd_next_event(drive, &when) && when <= until)
		advance(when > clock_ns ? when : clock_ns);
	advance(until);
}

static void submit(char *args, bool detach)
{
	uint64_t now, id, lba, nlb, tag, oob;
	char name[16];
	RsdStatus status;
	bool append, fua;
	size_t op = 0;
	RsdCmd *cmd;

	if (sscanf(args,
		   "%" SCNu64 " %" SCNu64 " %15s %" SCNu64 " %" SCNu64
		   " %" SCNu64, &now, &id, name, &lba, &nlb, &tag) != 6)
		die("sub", args);
	append = !strcmp(name, "append");
	fua = !strcmp(name, "fua");
	while (op < sizeof(op_names) / sizeof(*op_names) &&
	       (!op_names[op] ||
		strcmp(op_names[op], append || fua ? "write" : name)))
		op++;
	cmd = rsd_cmd_new(drive, 0, (RsdOp)op, lba, (uint32_t)nlb);
	if (!cmd)
		die("rsd_cmd_new", "no memory");
	/* print_done() sees the command alone */
	oob = rsd_config(drive)->oob;
	cmd->opaque = (void *)(uintptr_t)(id << 8 | oob);
	cmd->append = append;
	cmd->fua = fua;
	if (op == RSD_WRITE && cmd->data) {
		for (uint64_t i = 0; i < nlb; i++) {
			fill(cmd->data + i * 4096, 4096, tag + i, DATA_STEP);
			if (cmd->oob)
				fill(cmd->oob + i * oob, oob, tag + i,
				     OOB_STEP);
		}
	}
	clock_ns = now;
	status = rsd_submit(drive, cmd, now);
	printf("{\"sub\": %" PRIu64 ", \"status\": \"%s\"}\n", id,
	       rsd_status_name(status));
	if (status != RSD_OK)
		rsd_cmd_free(drive, cmd);
	else if (detach)
		rsd_cmd_detach(drive, cmd);
}

static void print_counters(void)
{
	RsdCounters counters;
	uint64_t values[RSD_NUM_COUNTERS];

	rsd_counters(drive, &counters);
	memcpy(values, &counters, sizeof(values));
	printf("{\"counters\": {");
	for (size_t i = 0; i < RSD_NUM_COUNTERS; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "",
		       rsd_counter_info[i].name, values[i]);
	printf("}}\n");
}

static void print_zones(void)
{
	RsdGeometry geo;
	RsdZone zone;

	rsd_geometry(drive, 0, &geo);
	printf("{\"capacity\": %" PRIu64 ", \"size\": %" PRIu64 ", \"zones\": [",
	       geo.zone_capacity, geo.zone_size);
	for (uint32_t i = 0; i < geo.num_zones; i++) {
		rsd_zone_get(drive, i, &zone);
		printf("%s%" PRIu64, i ? ", " : "", zone.written);
	}
	printf("]}\n");
}

static void run_line(char *line)
{
	char *args = strchr(line, ' ');
	uint64_t now, oob;

	if (args)
		*args++ = '\0';
	else
		args = line + strcspn(line, "\n"), *args = '\0';

	if (!strcmp(line, "open")) {
		open_drive(args);
	} else if (!strcmp(line, "close")) {
		rsd_close(drive);
		drive = NULL;
	} else if (!strcmp(line, "sub")) {
		submit(args, false);
	} else if (!strcmp(line, "detach")) {
		submit(args, true);
	} else if (!strcmp(line, "adv")) {
		advance(strtoull(args, NULL, 10));
	} else if (!strcmp(line, "step")) {
		step(strtoull(args, NULL, 10));
	} else if (!strcmp(line, "format")) {
		if (sscanf(args, "%" SCNu64 " %" SCNu64, &now, &oob) != 2)
			die("format", args);
		/* what is done but not collected would refuse the format */
		advance(now);
		printf("{\"format\": \"%s\"}\n",
		       rsd_status_name(rsd_format(drive, 0, (uint32_t)oob, now)));
	} else if (!strcmp(line, "counters")) {
		print_counters();
	} else if (!strcmp(line, "zones")) {
		print_zones();
	} else if (!strcmp(line, "end")) {
		if (drive)
			rsd_close(drive);
		drive = NULL;
		printf("{\"end\": true}\n");
	} else {
		die("no such line", line);
	}
}

int main(void)
{
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		run_line(line);
		fflush(stdout);
	}
	if (drive)
		rsd_close(drive);
	return 0;
}
