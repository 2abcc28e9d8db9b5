// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This is HFM's evaluation (2014, section 4) on its data sections, without a
 * kernel; see --help.
 */
#include <stdio.h>

#include "run.h"

#define MIB_UNITS	1024u

static const char usage[] =
	"usage: hfmsim [NAME=VALUE]...\n"
	"Simulates files on a data section of flash with a disk behind it, as HFM places them,\n"
	"and prints one JSON object. Each setting is shown with its default.\n"
	"\n"
	"  work=postmark               Do this work: tpcc, postmark, iozone-mixed, iozone-large\n"
	"                              or iozone-one.\n"
	"  files=1000                  Have so many files, 1 to 1000000: those that postmark has\n"
	"                              before it counts, or of tpcc the runs of 900 KB of the\n"
	"                              database.\n"
	"  transactions=100000         Do so many transactions of postmark or tpcc, 0 to 10^9.\n"
	"  size=8192                   Give each file of iozone-one so many bytes, 1 to 2^30.\n"
	"  seed=1                      Seed the work, 0 to 2^53.\n"
	"  clients=1                   Make so many calls at a time, 1 to 10000.\n"
	"  memory=4096                 Let so many MiB wait for the disk, 0 to 65536.\n"
	"  pack=sections               Pack files as HFM does, or one after the other (log), or\n"
	"                              not at all (off).\n"
	"  rho=1                       Divide extents by this partition: 1, 2 or 3.\n"
	"  extent=8                    Let an extent have so many KiB, a power of 2, 4 to 65536.\n"
	"  delta=32                    Let rho=3 split so many KiB, a power of 2, 2 to 65536.\n"
	"  threshold=N                 Call an extent full if it has fewer KiB left, 1 to the\n"
	"                              extent. The default is an eighth of the extent, but at\n"
	"                              most 8.\n"
	"  collect=0                   Write so many KiB of full extents together, 0 to 65536.\n"
	"  section=1024                Let flash have so many MiB, 64 to 65536.\n"
	"  command=2415                Let a command take the flash drive so many ns besides its\n"
	"                              pages, 0 to 10^9.\n"
	"  calls=FILE                  Take the calls from FILE. A line has append, overwrite,\n"
	"                              read or delete, the file's number, and bytes. Nothing\n"
	"                              counts before a line that says mark.\n"
	"\n"
	"host/tools/hfmsim/README.md says what is simulated.\n";

static const char *const packs[] = { "sections", "log", "off", NULL };

struct options {
	struct run_config run;
	u64 section;		/* MiB */
	const char *list;	/* path */
};

static void refuse(const char *what, const char *why, const char *allowed)
{
	fprintf(stderr, "hfmsim: %s: %s%s; hfmsim --help lists the settings\n", what,
		why, allowed);
	exit(2);
}

static u64 number_of(const char *word, const char *value, u64 low, u64 high)
{
	char allowed[96];
	char *end;
	u64 found;

	errno = 0;
	found = strtoull(value, &end, 10);
	if (*value >= '0' && *value <= '9' && !*end && !errno && found >= low &&
	    found <= high)
		return found;
	snprintf(allowed, sizeof(allowed), "%llu to %llu", (unsigned long long)low,
		 (unsigned long long)high);
	refuse(word, "allowed is a whole number from ", allowed);
	return 0;
}

static u32 one_of(const char *word, const char *value, const char *const *names)
{
	char allowed[128] = "";
	u32 i;

	for (i = 0; names[i]; i++) {
		if (!strcmp(value, names[i]))
			return i;
		strcat(strcat(allowed, i ? ", " : ""), names[i]);
	}
	refuse(word, "allowed is ", allowed);
	return 0;
}

static void set_one(struct options *o, const char *word)
{
	struct run_config *r = &o->run;
	const char *value = strchr(word, '=');
	size_t len = value ? (size_t)(value - word) : 0;

#define IS(name) (len == strlen(name) && !strncmp(word, name, len))
	value = value ? value + 1 : word;
	if (IS("work"))
		r->calls.kind = one_of(word, value, calls_names);
	else if (IS("files"))
		r->calls.files = number_of(word, value, 1, 1000000);
	else if (IS("transactions"))
		r->calls.transactions = number_of(word, value, 0, 1000000000);
	else if (IS("size"))
		r->calls.bytes = number_of(word, value, 1, 1 << 30);
	else if (IS("seed"))
		r->calls.seed = number_of(word, value, 0, 1ULL << 53);
	else if (IS("clients"))
		r->clients = number_of(word, value, 1, 10000);
	else if (IS("memory"))
		r->memory = number_of(word, value, 0, 65536) * MIB_UNITS / PAGE_UNITS;
	else if (IS("pack"))
		r->store.pack = one_of(word, value, packs);
	else if (IS("rho"))
		r->store.partition.rho = number_of(word, value, 1, 3);
	else if (IS("extent"))
		r->store.partition.size = number_of(word, value, 4, 65536);
	else if (IS("delta"))
		r->store.partition.delta = number_of(word, value, 2, 65536);
	else if (IS("threshold"))
		r->store.threshold = number_of(word, value, 1, 65536);
	else if (IS("collect"))
		r->store.collect = number_of(word, value, 0, 65536);
	else if (IS("section"))
		o->section = number_of(word, value, 64, 65536);
	else if (IS("calls"))
		o->list = value;
	else if (IS("command"))
		r->command_ns = number_of(word, value, 0, 1000000000);
	else
		refuse(word, "there is no such setting", "");
#undef IS
}

/* Completes settings that depend on each other. */
static void complete(struct options *o)
{
	struct store_config *s = &o->run.store;
	u32 size = s->partition.size;
	u64 extents = o->section * MIB_UNITS / size;
	char allowed[128];

	if (size & (size - 1))
		refuse("extent", "allowed is a power of 2, ", "from 4 to 65536");
	if (!rfs_partition_valid(&s->partition))
		refuse("delta", "allowed is a power of 2, ", "from 2 to 65536");
	if (!s->threshold)
		s->threshold = max(1U, min(8U, size / 8));
	if (s->threshold > size)
		refuse("threshold", "allowed is 1 KiB to what extent= says", "");
	/*
	 * Some extents must be left that may be evicted, beside those that are
	 * open or collected.
	 */
	if (extents < 16 || extents / 4 < s->collect / size) {
		snprintf(allowed, sizeof(allowed),
			 "16 extents and 4 times what collect= says, at least %llu MiB",
			 (unsigned long long)(max(16ULL * size, 4ULL * s->collect) +
					      MIB_UNITS - 1) / MIB_UNITS);
		refuse("section", "it must have room for ", allowed);
	}
	s->extents = extents;
}

static void print(const char *name, u64 value)
{
	printf(", \"%s\": %llu", name, (unsigned long long)value);
}

static void report(const struct options *o, const struct run_result *found)
{
	const struct run_config *r = &o->run;
	const struct store_stats *s = &found->store;
	double seconds = found->ns / 1e9;

	printf("{\"work\": \"%s\", \"pack\": \"%s\"", calls_names[r->calls.kind],
	       packs[r->store.pack]);
	print("files", r->calls.files);
	print("transactions", r->calls.transactions);
	print("size", r->calls.bytes);
	print("seed", r->calls.seed);
	print("clients", r->clients);
	print("memory", r->memory * PAGE_UNITS / MIB_UNITS);
	print("rho", r->store.partition.rho);
	print("extent", r->store.partition.size);
	print("delta", r->store.partition.delta);
	print("threshold", r->store.threshold);
	print("collect", r->store.collect);
	print("section", o->section);
	print("command", r->command_ns);
	print("done", found->done);
	print("calls", found->calls);
	print("bytes", found->bytes);
	printf(", \"seconds\": %.9f, \"settled_seconds\": %.9f", seconds,
	       found->settled_ns / 1e9);
	printf(", \"done_a_second\": %.3f, \"mb_a_second\": %.3f",
	       seconds ? found->done / seconds : 0,
	       seconds ? found->bytes / seconds / 1e6 : 0);
	print("disk_first", found->by_disk);
	print("units", s->units);
	print("wasted_bytes", s->gap_units * RFS_SECTION_UNIT + s->slack_bytes);
	print("gap_units", s->gap_units);
	print("slack_bytes", s->slack_bytes);
	print("placed", s->placed);
	print("reused", s->reused);
	print("flash_commands", s->commands);
	print("flash_pages", s->pages);
	print("collections", s->collections);
	print("collected", s->collected);
	print("forced", s->forced);
	print("evicted", s->evicted);
	print("read_flash", s->read_flash);
	print("read_memory", s->read_memory);
	print("read_disk", s->read_disk);
	print("flash_programs", found->drives.flash_programs);
	print("flash_copies", found->drives.flash_copies);
	print("flash_erases", found->drives.flash_erases);
	print("disk_pages", found->drives.disk_written);
	print("disk_seeks", found->drives.disk_seeks);
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct options o = {
		.run = {
			.store = { .partition = { .size = 8, .rho = 1,
						  .delta = RFS_SECTION_DELTA } },
			.calls = { .kind = 1, .files = 1000,
				   .transactions = 100000, .bytes = 8192,
				   .seed = 1 },
			.clients = 1, .memory = 4096 * MIB_UNITS / PAGE_UNITS,
			.command_ns = 2415,
		},
		.section = 1024,
	};
	struct run_result result;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return 0;
		}
		set_one(&o, argv[i]);
	}
	complete(&o);
	if (o.list) {
		o.run.list = fopen(o.list, "w");
		if (!o.run.list)
			refuse("calls", strerror(errno), "; name another file");
	}
	run(&o.run, &result);
	if (o.run.list && (ferror(o.run.list) | fclose(o.run.list)))
		refuse("calls", "the file cannot be written", "; name another one");
	report(&o, &result);
	if (fclose(stdout)) {
		perror("hfmsim: standard output");
		return 1;
	}
	return 0;
}
