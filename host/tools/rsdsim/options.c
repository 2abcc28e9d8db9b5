// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "options.h"
#include "rsd-units.h"

#define DEFAULT_DEPTH 32
#define DEFAULT_REQUESTS 100000
#define MAX_DEPTH 1000000
/*
 * This is the most for an open loop: a drive that cannot keep up is busy with
 * fewer as well.
 */
#define MAX_PRECONDITION_DEPTH 1024
#define MAX_SIZE (UINT64_C(1) << 30)	/* bytes of a request */
#define NAME_WIDTH 26			/* columns of the help's first one */

struct option {
	const char *name;
	const char *arg;	/* NULL: it has none */
	void (*set)(struct options *o, const char *value);
	const char *doc;
};

static void bad_value(const char *option, const char *value,
		      const char *allowed)
{
	die_usage("--%s %s: allowed is %s; see rsdsim --help", option, value,
		  allowed);
}

#define SUFFIXES "K, M, G or T (powers of 1024)"

/* Takes a number, with one of SUFFIXES, in either case, if @suffix is set. */
static bool take_number(const char *text, bool suffix, uint64_t *value)
{
	static const char units[] = "KMGT";
	size_t len = strlen(text);
	char digits[32];
	const char *unit = suffix && len ?
		strchr(units, toupper((unsigned char)text[len - 1])) : NULL;

	if (unit && *unit)
		len--;
	if (len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	digits[len] = 0;
	if (!parse_number(digits, value))
		return false;
	return !unit || !*unit ||
	       !__builtin_mul_overflow(*value, UINT64_C(1) << 10 *
				       (unit - units + 1), value);
}

static uint64_t whole_number(const char *option, const char *text, bool suffix,
		       uint64_t least, uint64_t most)
{
	char allowed[128];
	uint64_t value;

	if (!take_number(text, suffix, &value) || value < least ||
	    value > most) {
		snprintf(allowed, sizeof(allowed),
			 "a number from %" PRIu64 " to %" PRIu64 "%s", least,
			 most, suffix ? ", with or without " SUFFIXES : "");
		bad_value(option, text, allowed);
	}
	return value;
}

static double fraction(const char *option, const char *text, double most,
		       const char *allowed)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value <= most))
		bad_value(option, text, allowed);
	return value;
}

/*
 * Drive
 */

static void set_preset(struct options *o, const char *value)
{
	const RsdPreset *preset = rsd_preset_find(value);
	char names[256] = "";
	size_t i;

	if (o->settings_given)
		die_usage("--preset %s: it comes after --set, which it would undo: put it first",
			  value);
	for (i = 0; !preset && i < rsd_num_presets; i++) {
		strncat(names, i ? ", " : "", sizeof(names) - 1 - strlen(names));
		strncat(names, rsd_presets[i].name,
			sizeof(names) - 1 - strlen(names));
	}
	if (!preset)
		bad_value("preset", value, names);
	preset->apply(&o->cfg);
	o->preset_given = o->settings_given = true;
}

static void set_enum(const RsdProp *prop, const char *value, uint64_t *number)
{
	char names[256] = "";
	uint64_t i;

	for (i = 0; prop->names[i]; i++) {
		if (!strcmp(prop->names[i], value)) {
			*number = i;
			return;
		}
		strncat(names, i ? ", " : "", sizeof(names) - 1 - strlen(names));
		strncat(names, prop->names[i],
			sizeof(names) - 1 - strlen(names));
	}
	die_usage("--set %s=%s: allowed is %s", prop->name, value, names);
}

static void set_property(struct options *o, const char *value)
{
	const char *equals = strchr(value, '=');
	char name[64] = "";
	const RsdProp *prop;
	uint64_t *number;

	if (equals && equals - value < sizeof(name))
		memcpy(name, value, equals - value);
	prop = rsd_prop_find(name);
	if (!equals || !prop)
		die_usage("--set %s: %s; rsdsim --list has the properties",
			  value, equals ? "there is no such property" :
			  "expected PROPERTY=VALUE");
	number = rsd_prop_value(&o->cfg, prop);
	o->given[prop - rsd_props] = o->settings_given = true;
	if (prop->kind == RSD_PROP_ENUM)
		set_enum(prop, equals + 1, number);
	else if (!strcmp(prop->unit, "ns") ?
		 !rsd_parse_ns(equals + 1, number) :
		 !take_number(equals + 1, prop->kind == RSD_PROP_SIZE, number))
		die_usage("--set %s: expected %s; rsdsim --list has the properties",
			  value, !strcmp(prop->unit, "ns") ? RSD_NS_FORM :
			  prop->kind == RSD_PROP_SIZE ?
			  "a whole number, with or without " SUFFIXES :
			  "a whole number");
}

static void set_media(struct options *o, const char *value)
{
	o->media = value;
}

static void set_age(struct options *o, const char *value)
{
	o->age = value;
}

static void set_faults(struct options *o, const char *value)
{
	o->faults = value;
}

static void set_fault_list(struct options *o, const char *value)
{
	o->fault_list = value;
}

static void set_namespace(struct options *o, const char *value)
{
	o->ns = whole_number("namespace", value, false, 0, RSD_MAX_NAMESPACES - 1);
}

static void set_precondition(struct options *o, const char *value)
{
	struct precondition *p = &o->precondition;

	o->precondition_given = true;
	if (!strcmp(value, "none")) {
		p->kind = PRECONDITION_NONE;
	} else if (!strcmp(value, "fill")) {
		p->kind = PRECONDITION_FILL;
	} else if (!strcmp(value, "steady")) {
		p->kind = PRECONDITION_STEADY;
	} else {
		p->kind = PRECONDITION_TIMES;
		p->times = fraction("precondition", value, 1000,
				    "none, fill, steady or a number of capacities from 0 to 1000");
	}
}

static void set_fill(struct options *o, const char *value)
{
	o->gen.fill = fraction("fill", value, 100, "above 0 to 100 percent");
	if (!o->gen.fill)
		bad_value("fill", value, "above 0 to 100 percent");
}

/*
 * Work
 */

static void set_trace(struct options *o, const char *value)
{
	o->trace = value;
}

static void set_format(struct options *o, const char *value)
{
	o->format = format_find(value);
	if (!o->format && strcmp(value, "native"))
		bad_value("format", value,
			  "native, iolog, blkparse, msr or mqsim");
}

static void set_wrap(struct options *o, const char *value)
{
	(void)value;
	o->wrap = true;
}

static void set_pattern(struct options *o, const char *value)
{
	if (!gen_parse_pattern(value, &o->gen))
		bad_value("pattern", value,
			  "sequential, uniform, zipf=THETA (0 to 20) or hotcold=ACCESSES/SPACE (percent)");
}

static void set_size(struct options *o, const char *value)
{
	uint64_t size = whole_number("size", value, true, LBA_BYTES, MAX_SIZE);

	if (size % LBA_BYTES)
		bad_value("size", value, "a multiple of 4096 bytes");
	o->gen.nlb = size / LBA_BYTES;
}

static void set_reads(struct options *o, const char *value)
{
	o->gen.reads = fraction("reads", value, 100, "0 to 100 percent");
}

static void set_trims(struct options *o, const char *value)
{
	o->gen.trims = fraction("trims", value, 100, "0 to 100 percent");
}

static void set_append(struct options *o, const char *value)
{
	(void)value;
	o->gen.append = true;
}

static void set_rate(struct options *o, const char *value)
{
	o->gen.rate = fraction("rate", value, 1e9,
			       "above 0 to 1e9 requests a second");
	if (!o->gen.rate)
		bad_value("rate", value, "above 0 to 1e9 requests a second");
}

static void set_depth(struct options *o, const char *value)
{
	o->depth = whole_number("depth", value, false, 1, MAX_DEPTH);
	o->depth_given = true;
}

static void set_requests(struct options *o, const char *value)
{
	o->requests = whole_number("requests", value, true, 0, UINT64_MAX - 1);
	o->requests_given = true;
}

static void set_seed(struct options *o, const char *value)
{
	o->gen.seed = whole_number("seed", value, false, 0, UINT64_MAX);
}

static void set_record(struct options *o, const char *value)
{
	o->record = value;
}

static void set_replay(struct options *o, const char *value)
{
	o->replay = value;
}

static void set_check(struct options *o, const char *value)
{
	(void)value;
	o->check = true;
}

static void set_timeline(struct options *o, const char *value)
{
	o->timeline = value;
}

static uint64_t time_of(const char *option, const char *value)
{
	uint64_t ns;

	if (!rsd_parse_ns(value, &ns))
		bad_value(option, value, RSD_NS_FORM);
	return ns;
}

static void set_from(struct options *o, const char *value)
{
	o->from = time_of("from", value);
	o->window_given = true;
}

static void set_until(struct options *o, const char *value)
{
	o->until = time_of("until", value);
	o->window_given = true;
}

/*
 * Output
 */

static void set_json(struct options *o, const char *value)
{
	(void)value;
	o->json = true;
}

static void set_output(struct options *o, const char *value)
{
	o->output = value;
}

static void set_host_time(struct options *o, const char *value)
{
	(void)value;
	o->host_time = true;
}

static void print_properties(const RsdProp *prop)
{
	uint64_t i;

	printf("%-18s ", prop->name);
	if (prop->kind == RSD_PROP_ENUM) {
		printf("%s (", prop->names[prop->dflt]);
		for (i = 0; prop->names[i]; i++)
			printf("%s%s", i ? ", " : "", prop->names[i]);
		printf(")");
	} else {
		printf("%" PRIu64 " (%" PRIu64 " to %" PRIu64 "%s%s)",
		       prop->dflt, prop->min, prop->max, *prop->unit ? " " : "",
		       prop->unit);
	}
	printf("\n    %s\n", prop->doc);
}

static void show_list(struct options *o, const char *value)
{
	size_t i;

	(void)o;
	(void)value;
	puts("Properties, for --set: default (allowed)");
	for (i = 0; i < rsd_num_props; i++)
		print_properties(&rsd_props[i]);
	puts("\nPresets, for --preset");
	for (i = 0; i < rsd_num_presets; i++)
		printf("%-18s %s\n", rsd_presets[i].name, rsd_presets[i].doc);
	exit(EXIT_OK);
}

static void show_help(struct options *o, const char *value);

static const struct option options[] = {
	{ .arg = "Drive" },
	{ "preset", "NAME", set_preset, "Start from the settings of this preset (risa)." },
	{ "set", "PROPERTY=VALUE", set_property,
	  "Give a property another value. Repeatable." },
	{ "media", "FILE", set_media,
	  "Run on this media file, which has the geometry and is changed (else on a new drive in memory)." },
	{ "namespace", "N", set_namespace,
	  "Use namespace N: 0, or 1, the conventional one of conv-blocks (0)." },
	{ "precondition", "HOW", set_precondition,
	  "Write to the drive before the work begins. fill writes all of it once, in sequence. N then writes N capacities by the pattern. steady then runs the work to be measured, in rounds of a capacity, until its write amplification is steady or 100 rounds are done (none)." },
	{ "fill", "PERCENT", set_fill,
	  "Precondition and use the first PERCENT of the namespace only; the rest is never written (100)." },
	{ "age", "FILE", set_age,
	  "Make a new media file, which --precondition ages (steady), for a guest to start from. Unless --requests is given, no work follows." },
	{ "faults", "FILE", set_faults,
	  "Let faults happen by the rules of this file, from when the drive is opened on." },
	{ "fault-list", "FILE", set_fault_list,
	  "With --faults, write each fault that happened as a line of this file." },
	{ "list", NULL, show_list, "Print every property and preset." },
	{ .arg = "Generated work" },
	{ "pattern", "PATTERN", set_pattern,
	  "Draw addresses so: sequential, uniform, zipf=THETA, or hotcold=ACCESSES/SPACE in percent, such as 90/1 (uniform)." },
	{ "reads", "PERCENT", set_reads,
	  "Let PERCENT of the requests be reads (0)." },
	{ "trims", "PERCENT", set_trims,
	  "Let PERCENT of the requests be trims. What is neither is a write (0)." },
	{ "append", NULL, set_append,
	  "Write to zones by zone appends, which take some firmware longer." },
	{ "size", "BYTES", set_size, "Let a request have this size (4K)." },
	{ "requests", "N", set_requests,
	  "Run N requests (100000; of a trace: all)." },
	{ "depth", "N", set_depth,
	  "Keep N requests in flight, a closed loop (32; a trace: open loop)." },
	{ "rate", "N", set_rate,
	  "Submit N requests a second, an open loop; the times are random (Poisson)." },
	{ "seed", "N", set_seed, "Seed the generator (1)." },
	{ .arg = "Traces" },
	{ "trace", "FILE", set_trace,
	  "Take the requests from a file; - is standard input." },
	{ "format", "NAME", set_format,
	  "The trace has this format: native, or one of those below (native)." },
	{ "wrap", NULL, set_wrap,
	  "Take addresses modulo the namespace's size, instead of refusing those beyond it." },
	{ "record", "FILE", set_record,
	  "Write a native trace of all that the drive is asked." },
	{ "replay", "FILE", set_replay,
	  "Repeat a native trace exactly, with the settings of its drive. --media names a copy of the media that it began with (else a new drive)." },
	{ "check", NULL, set_check,
	  "With --replay, compare all completions and counters with the trace's. The exit status is 1 if one differs." },
	{ "timeline", "FILE", set_timeline,
	  "With --replay, write what each die does to FILE, which Perfetto shows. ./rsd watch does that." },
	{ "from", "TIME", set_from,
	  "Let the timeline begin at this time of the trace, such as 1.5ms (0)." },
	{ "until", "TIME", set_until,
	  "Let the timeline end at this time of the trace (the end)." },
	{ .arg = "Output" },
	{ "json", NULL, set_json, "Print JSON instead of a table." },
	{ "output", "FILE", set_output, "Print to this file." },
	{ "host-time", NULL, set_host_time,
	  "Print also what the run cost the host, which differs from run to run." },
	{ "help", NULL, show_help, "Print this." },
	{ }
};

/*
 * Prints text in lines of at most 80 columns, the first beginning at @column.
 */
static void print_wrapped(const char *text, int column)
{
	int width = 80 - NAME_WIDTH;
	int left = width;

	if (column >= NAME_WIDTH)
		printf("\n%*s", NAME_WIDTH, "");
	else
		printf("%*s", NAME_WIDTH - column, "");
	while (*text) {
		int len = strcspn(text, " ");

		if (len > left && left < width) {
			printf("\n%*s", NAME_WIDTH, "");
			left = width;
		}
		printf("%.*s", len, text);
		text += len;
		left -= len;
		if (*text) {
			if (strcspn(text + 1, " ") < left)
				putchar(' ');
			text++;
			left--;
		}
	}
	putchar('\n');
}

static void show_help(struct options *o, const char *value)
{
	const struct option *option;
	const struct format *format;

	(void)o;
	(void)value;
	puts("usage: rsdsim [OPTION]...\n"
	     "Runs generated work or a trace on a simulated drive, and prints what happened.\n"
	     "Time is that of the drive: the same command prints the same on any machine.\n"
	     "What is in brackets is the default.");
	for (option = options; option->name || option->arg; option++) {
		int column;

		if (!option->name) {
			printf("\n%s\n", option->arg);
			continue;
		}
		column = printf("  --%s%s%s", option->name,
				option->arg ? " " : "",
				option->arg ? option->arg : "");
		print_wrapped(option->doc, column);
	}
	puts("\nFormats");
	for (format = formats; format->name; format++)
		print_wrapped(format->doc, printf("  %s", format->name));
	puts("\nThe exit status is 0 if all is done, 1 if the run failed or --check found a\n"
	     "difference, 2 if the usage is wrong.\n\n"
	     "Example: the steady state of a page-mapped drive under skewed writes:\n"
	     "  rsdsim --set ftl=page --precondition steady --pattern zipf=0.99");
	exit(EXIT_OK);
}

static const struct option *find_option(const char *name, size_t len)
{
	const struct option *option;

	for (option = options; option->name || option->arg; option++)
		if (option->name && strlen(option->name) == len &&
		    !strncmp(option->name, name, len))
			return option;
	return NULL;
}

static void check_combination(struct options *o)
{
	if (o->replay && (o->trace || o->age || o->record || o->requests_given ||
			  o->depth_given || o->precondition_given ||
			  o->settings_given))
		die_usage("--replay: it repeats the trace on the drive of the trace; only --media, --faults, --check and options of output go with it. To run its requests on another drive, use --trace");
	if (o->fault_list && !o->faults)
		die_usage("--fault-list: there are no faults to list; name the file of rules by --faults");
	if (o->check && !o->replay)
		die_usage("--check: there is nothing to compare with without --replay");
	if (o->timeline && !o->replay)
		die_usage("--timeline: it shows a trace: record one by --record, then name it by --replay");
	if (o->window_given && !o->timeline)
		die_usage("--from and --until: they are of a timeline: name its file by --timeline");
	if (o->until <= o->from)
		die_usage("--until: it must be after --from");
	if (o->age && o->media)
		die_usage("--age makes a new file, --media changes one: choose one of them");
	if (o->depth_given && o->gen.rate)
		die_usage("--rate is an open loop, --depth a closed one: choose one of them");
	if (o->gen.reads + o->gen.trims > 100)
		die_usage("--reads %g and --trims %g: together they are above 100 percent",
			  o->gen.reads, o->gen.trims);
	if (o->trace && (o->gen.reads || o->gen.trims || o->gen.rate ||
			 o->gen.append))
		die_usage("--trace: --reads, --trims, --append and --rate are of generated work; leave them out");
	if (!o->trace && (o->format || o->wrap))
		die_usage("--format and --wrap are of a trace: name one by --trace");
	if (o->trace && !o->format && !strcmp(o->trace, "-"))
		die_usage("--trace -: a native trace cannot come from a pipe; give a file");
}

static void set_defaults(struct options *o)
{
	if (!o->requests_given)
		o->requests = o->trace ? UINT64_MAX :
			      o->age ? 0 : DEFAULT_REQUESTS;
	if (!o->depth_given && !o->trace && !o->gen.rate)
		o->depth = DEFAULT_DEPTH;
	if (o->age && !o->precondition_given)
		o->precondition.kind = PRECONDITION_STEADY;
	o->precondition.depth = o->depth ? o->depth : MAX_PRECONDITION_DEPTH;
}

void options_parse(struct options *o, int argc, char **argv)
{
	int i;

	*o = (struct options){
		.gen = {
			.pattern = PATTERN_UNIFORM, .nlb = 1, .seed = 1,
			.fill = 100,
		},
		.until = UINT64_MAX,
	};
	o->given = calloc(rsd_num_props, sizeof(*o->given));
	if (!o->given)
		die("no memory for the settings");
	rsd_preset_find("risa")->apply(&o->cfg);
	for (i = 1; i < argc; i++) {
		const char *name = argv[i] + 2, *value = NULL;
		const struct option *option;
		size_t len;

		if (strncmp(argv[i], "--", 2))
			die_usage("%s: expected an option, which begins with --; --help prints them",
				  argv[i]);
		len = strcspn(name, "=");
		option = find_option(name, len);
		if (!option)
			die_usage("--%s: there is no such option; --help prints them",
				  name);
		if (name[len])
			value = name + len + 1;
		if (!option->arg && value)
			die_usage("--%s: it takes no value", option->name);
		if (option->arg && !value) {
			value = argv[++i];
			if (!value)
				die_usage("--%s: %s is missing; see rsdsim --help",
					  option->name, option->arg);
		}
		option->set(o, value);
	}
	check_combination(o);
	set_defaults(o);
}
