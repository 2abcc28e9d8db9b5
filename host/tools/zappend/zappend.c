// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This is a load generator for zone appends. A block device offers no zone
 * append, so the commands go through io_uring passthrough to the generic
 * device.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "output.h"
#include "pattern.h"
#include "zns.h"

enum exit_code { EXIT_OK, EXIT_IO, EXIT_USAGE };

struct options {
	const char *device;
	enum engine_op op;
	const char *name;
	const char *output;	/* NULL: stdout */
	uint64_t ios;		/* 0: as many as there is room for */
	uint64_t qd;
	uint64_t blocks;
	uint64_t first_zone;
	uint64_t last_zone;	/* UINT64_MAX: the last */
	uint64_t seed;
	uint64_t runtime_ns;
	bool oob, reset, verify;
};

static const char help[] =
"usage: zappend [OPTIONS] DEVICE\n"
"Appends to the zones of an NVMe zoned namespace, or reads them, at a queue\n"
"depth, and prints figures as fio's JSON does. DEVICE is the generic device, such\n"
"as /dev/ng0n1. It must not be mounted: appends destroy data, and the kernel's\n"
"handling of zones does not see them. What is in brackets is the default.\n"
"\n"
"  --op append|read  Measure appends, or reads of what the zones hold, in order\n"
"                    (append).\n"
"  --ios N           Issue N commands (as many as the zones have room or data for).\n"
"  --qd N            Keep N commands in flight, 1 to 1024, and no more than the\n"
"                    kernel allows, which is nr_requests in sysfs (1).\n"
"  --blocks N        Let a command have N logical blocks (1).\n"
"  --zones A-B       Use zones A to B, counted from 0 (all).\n"
"  --zones N         Use the first N zones.\n"
"  --oob             Transfer the metadata of each block, too.\n"
"  --reset           Reset the zones first. This is not measured.\n"
"  --verify          Read everything back at the end, metadata too with --oob, and\n"
"                    compare. This is not measured.\n"
"  --seed N          Seed the data that is written (1).\n"
"  --runtime T       Issue nothing after T, such as 500ms or 10s.\n"
"  --name NAME       Give the job this name in the JSON (append or read).\n"
"  --output FILE     Write the JSON to FILE (standard output).\n"
"  --help            Print this.\n"
"  --version         Print the version.\n"
"\n"
"Zones are filled one after the other. Full ones are passed over, and blocks at\n"
"a zone's end that are fewer than --blocks stay empty. Latencies are in ns, and\n"
"percentiles are exact. The exit status is 0 if all went well, 1 if a command\n"
"failed or data differs, and 2 if the request makes no sense for this device.\n"
"\n"
"Example: this makes 10000 appends of 16 KiB with metadata at queue depth 8, and\n"
"checks them.\n"
"  zappend --reset --zones 0-9 --ios 10000 --blocks 4 --qd 8 --oob --verify \\\n"
"          --output append.json /dev/ng0n1\n";

enum option_id {
	OPT_OP = 1, OPT_IOS, OPT_QD, OPT_BLOCKS, OPT_ZONES, OPT_OOB, OPT_RESET,
	OPT_VERIFY, OPT_SEED, OPT_RUNTIME, OPT_NAME, OPT_OUTPUT, OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "op", required_argument, NULL, OPT_OP },
	{ "ios", required_argument, NULL, OPT_IOS },
	{ "qd", required_argument, NULL, OPT_QD },
	{ "blocks", required_argument, NULL, OPT_BLOCKS },
	{ "zones", required_argument, NULL, OPT_ZONES },
	{ "oob", no_argument, NULL, OPT_OOB },
	{ "reset", no_argument, NULL, OPT_RESET },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "runtime", required_argument, NULL, OPT_RUNTIME },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ }
};

static int parse_number(const char *option, const char *text, uint64_t min,
			uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno &&
	    *value >= min && *value <= max)
		return 0;
	if (max == UINT64_MAX)
		error("%s %s: must be a number, %" PRIu64 " or more", option,
		      text, min);
	else
		error("%s %s: must be a number from %" PRIu64 " to %" PRIu64,
		      option, text, min, max);
	return -1;
}

static int parse_zones(struct options *o, const char *text)
{
	unsigned long long first, last;
	char rest;

	if (sscanf(text, "%llu-%llu%c", &first, &last, &rest) == 2 &&
	    !strpbrk(text, "+ ") && text[0] != '-' && first <= last &&
	    last < UINT64_MAX) {
		o->first_zone = first;
		o->last_zone = last;
		return 0;
	}
	if (!strchr(text, '-')) {
		if (parse_number("--zones", text, 1, UINT32_MAX,
				 &o->last_zone))
			return -1;
		o->first_zone = 0;
		o->last_zone--;
		return 0;
	}
	error("--zones %s: must be A-B with A <= B, as 0-9, or a count, as 10",
	      text);
	return -1;
}

static int parse_runtime(struct options *o, const char *text)
{
	double value, scale;
	char *unit;

	value = strtod(text, &unit);
	scale = !strcmp(unit, "s") ? 1e9 : !strcmp(unit, "ms") ? 1e6 :
		!strcmp(unit, "us") ? 1e3 : 0;
	if (unit == text || !scale || !(value * scale >= 1) ||
	    value * scale > 1e18) {
		error("--runtime %s: must be a positive number and s, ms or us, as 500ms",
		      text);
		return -1;
	}
	o->runtime_ns = value * scale;
	return 0;
}

static int parse_op(struct options *o, const char *text)
{
	if (!strcmp(text, "append")) {
		o->op = ENGINE_APPEND;
	} else if (!strcmp(text, "read")) {
		o->op = ENGINE_READ;
	} else {
		error("--op %s: must be append or read", text);
		return -1;
	}
	return 0;
}

/*
 * Returns 0 to go on, -1 after an error, and 1 when there is nothing more to
 * do.
 */
static int parse(struct options *o, int argc, char **argv)
{
	int opt, ret = 0;

	while (!ret && (opt = getopt_long(argc, argv, "", long_options,
					  NULL)) != -1) {
		switch (opt) {
		case OPT_OP:
			ret = parse_op(o, optarg);
			break;
		case OPT_IOS:
			ret = parse_number("--ios", optarg, 1, UINT32_MAX,
					   &o->ios);
			break;
		case OPT_QD:
			ret = parse_number("--qd", optarg, 1, ENGINE_MAX_QD,
					   &o->qd);
			break;
		case OPT_BLOCKS:
			ret = parse_number("--blocks", optarg, 1, 65536,
					   &o->blocks);
			break;
		case OPT_ZONES:
			ret = parse_zones(o, optarg);
			break;
		case OPT_OOB:
			o->oob = true;
			break;
		case OPT_RESET:
			o->reset = true;
			break;
		case OPT_VERIFY:
			o->verify = true;
			break;
		case OPT_SEED:
			ret = parse_number("--seed", optarg, 0, UINT64_MAX,
					   &o->seed);
			break;
		case OPT_RUNTIME:
			ret = parse_runtime(o, optarg);
			break;
		case OPT_NAME:
			o->name = optarg;
			break;
		case OPT_OUTPUT:
			o->output = optarg;
			break;
		case OPT_HELP:
			fputs(help, stdout);
			return 1;
		case OPT_VERSION:
			puts("zappend-" ZAPPEND_VERSION);
			return 1;
		default:
			/* getopt has named the option. */
			error("see zappend --help");
			return -1;
		}
	}
	if (ret)
		return ret;
	if (optind != argc - 1) {
		error("%s; see zappend --help", optind == argc ?
		      "no device given, as /dev/ng0n1" :
		      "more than one device given");
		return -1;
	}
	o->device = argv[optind];
	if (o->op == ENGINE_READ && (o->reset || o->verify)) {
		error("%s works with --op append only",
		      o->reset ? "--reset" : "--verify");
		return -1;
	}
	if (!o->name)
		o->name = o->op == ENGINE_APPEND ? "append" : "read";
	return 0;
}

/* Checks whether the request fits the device at all. */
static int check_request(struct options *o, const struct zns_dev *dev)
{
	bool append = o->op == ENGINE_APPEND;
	uint64_t limit = append ? dev->max_append_bytes :
				  dev->max_transfer_bytes;
	uint64_t bytes = o->blocks * dev->block_bytes;

	if (o->last_zone == UINT64_MAX)
		o->last_zone = dev->zones - 1;
	if (o->last_zone >= dev->zones || o->first_zone > o->last_zone) {
		error("--zones: %s has zones 0 to %" PRIu64 ", not %" PRIu64,
		      dev->path, dev->zones - 1, o->last_zone);
		return -1;
	}
	if (o->oob && !dev->oob_bytes) {
		error("--oob: the format of %s has no metadata (nvme format chooses one that has)",
		      dev->path);
		return -1;
	}
	if (limit && bytes > limit) {
		error("--blocks %" PRIu64 ": %" PRIu64 " bytes are more than the drive takes in one command (%s is %" PRIu64 " bytes); at most %" PRIu64 " blocks",
		      o->blocks, bytes, append ? "ZASL" : "MDTS", limit,
		      limit / dev->block_bytes);
		return -1;
	}
	if (o->qd > dev->max_in_flight) {
		error("--qd %" PRIu64 ": the kernel keeps at most %" PRIu64 " commands of %s in flight (nr_requests in its sysfs queue directory; the scheduler none allows more than others)",
		      o->qd, dev->max_in_flight, dev->path);
		return -1;
	}
	return 0;
}

/* Returns the commands that the zone has room (append) or data (read) for. */
static uint64_t zone_commands(const struct zone *z, const struct options *o)
{
	if (o->op == ENGINE_READ)
		return z->state == ZONE_OFFLINE ? 0 :
		       (z->wp - z->start) / o->blocks;
	return zone_writable(z) ?
	       (z->start + z->capacity - z->wp) / o->blocks : 0;
}

/* Sets work->total, and for reads the address of each. */
static int plan(const struct options *o, struct work *w)
{
	uint64_t fit = 0, i, n = 0, c;

	for (i = 0; i < w->nr_zones; i++)
		fit += zone_commands(&w->zones[i], o);
	if (!fit || fit < o->ios) {
		error("%s%" PRIu64 " of %" PRIu64 " blocks: zones %" PRIu64 " to %" PRIu64 " have %s for %" PRIu64 "%s",
		      o->ios ? "--ios " : "", o->ios ? o->ios : 1, o->blocks,
		      o->first_zone, o->last_zone,
		      o->op == ENGINE_READ ? "data" : "room", fit,
		      o->op == ENGINE_READ ? "; append first" :
		      o->reset ? "; take more --zones" :
		      "; take more --zones, or --reset them");
		return -1;
	}
	w->total = o->ios ? o->ios : fit;
	w->lba = calloc(w->total, sizeof(*w->lba));
	if (!w->lba) {
		error("no memory for %" PRIu64 " commands: lower --ios",
		      w->total);
		return -1;
	}
	for (i = 0; o->op == ENGINE_READ && i < w->nr_zones; i++)
		for (c = 0; c < zone_commands(&w->zones[i], o) && n < w->total;
		     c++)
			w->lba[n++] = w->zones[i].start + c * o->blocks;
	return 0;
}

static int reset_zones(const struct work *w)
{
	uint64_t i;

	for (i = 0; i < w->nr_zones; i++) {
		const struct zone *z = &w->zones[i];

		if (z->state == ZONE_EMPTY || z->state == ZONE_READ_ONLY ||
		    z->state == ZONE_OFFLINE)
			continue;
		if (zns_reset(w->dev, z))
			return -1;
	}
	return 0;
}

/* Checks that the drive's write pointers agree with the appends. */
static int verify_write_pointers(const struct work *w, uint64_t first_zone)
{
	struct zone *now = calloc(w->nr_zones, sizeof(*now));
	uint64_t i;
	int ret = -1;

	if (!now) {
		error("no memory for %" PRIu64 " zones", w->nr_zones);
		return -1;
	}
	if (zns_report(w->dev, first_zone, w->nr_zones, now))
		goto out;
	ret = 0;
	for (i = 0; i < w->nr_zones; i++) {
		if (now[i].wp == w->zones[i].wp)
			continue;
		error("zone %" PRIu64 ": the drive's write pointer is at LBA %" PRIu64 ", the appends end at %" PRIu64,
		      now[i].number, now[i].wp, w->zones[i].wp);
		ret = -1;
	}
out:
	free(now);
	return ret;
}

static enum exit_code verify(struct work *w, const struct options *o,
			     struct result *res)
{
	enum exit_code code = EXIT_OK;

	w->runtime_ns = 0;
	if (engine_run(w, ENGINE_VERIFY, res) || res->stop != STOP_DONE ||
	    res->bad_blocks)
		code = EXIT_IO;
	if (verify_write_pointers(w, o->first_zone))
		code = EXIT_IO;
	return code;
}

static void on_signal(int sig)
{
	(void)sig;
	engine_stop = 1;
}

static enum exit_code run(const struct options *o, struct work *w, FILE *out)
{
	struct result res, verified = { 0 };
	struct report rep = {
		.name = o->name, .op = o->op, .work = w, .res = &res,
		.first_zone = o->first_zone, .last_zone = o->last_zone,
		.reset = o->reset,
	};
	enum exit_code code = EXIT_OK;
	uint64_t total = w->total;

	if (engine_run(w, o->op, &res)) {
		result_free(&res);
		return EXIT_IO;
	}
	if (res.stop == STOP_ERROR || res.stop == STOP_SIGNAL) {
		code = EXIT_IO;
		if (o->verify)
			error("not verified, because the appends did not end");
	} else if (o->verify) {
		w->total = res.issued;
		code = verify(w, o, &verified);
		w->total = total;
		rep.verified = &verified;
	}
	output_human(&rep);
	output_json(out, &rep);
	result_free(&verified);
	result_free(&res);
	return code;
}

static enum exit_code run_on_device(struct options *o, FILE *out)
{
	enum exit_code code = EXIT_USAGE;
	struct zns_dev dev;
	struct work w = { .dev = &dev };

	if (zns_open(&dev, o->device, o->op == ENGINE_APPEND))
		return EXIT_USAGE;
	if (check_request(o, &dev))
		goto out;
	w.nlb = o->blocks;
	w.qd = o->qd;
	w.oob = o->oob;
	w.seed = o->seed;
	w.runtime_ns = o->runtime_ns;
	w.nr_zones = o->last_zone - o->first_zone + 1;
	w.zones = calloc(w.nr_zones, sizeof(*w.zones));
	if (!w.zones) {
		error("no memory for %" PRIu64 " zones", w.nr_zones);
		goto out;
	}
	if (zns_report(&dev, o->first_zone, w.nr_zones, w.zones) ||
	    (o->reset && (reset_zones(&w) ||
			  zns_report(&dev, o->first_zone, w.nr_zones,
				     w.zones)))) {
		code = EXIT_IO;
		goto out;
	}
	if (!plan(o, &w))
		code = run(o, &w, out);
out:
	free(w.lba);
	free(w.zones);
	zns_close(&dev);
	return code;
}

int main(int argc, char **argv)
{
	struct options o = {
		.op = ENGINE_APPEND, .qd = 1, .blocks = 1, .seed = 1,
		.last_zone = UINT64_MAX,
	};
	struct sigaction action = { .sa_handler = on_signal };
	enum exit_code code;
	FILE *out = stdout;
	int ret;

	ret = parse(&o, argc, argv);
	if (ret)
		return ret < 0 ? EXIT_USAGE : EXIT_OK;
	/*
	 * The file is opened first: a run whose result cannot be kept need not
	 * start.
	 */
	if (o.output)
		out = fopen(o.output, "w");
	if (!out) {
		error("--output %s: %s", o.output, strerror(errno));
		return EXIT_USAGE;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	code = run_on_device(&o, out);
	if (fclose(out)) {
		error("%s: %s", o.output ? o.output : "standard output",
		      strerror(errno));
		return EXIT_IO;
	}
	return code;
}
