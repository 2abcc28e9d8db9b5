// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amplification.h"
#include "device.h"

#define PAGE 4096		/* of the drive's counters */
/*
 * Of a page that is dirtied, a program has written at least so many bytes by
 * write(2). Otherwise most of it was written in other ways.
 */
#define LEAST_OF_PAGE 64

/* These are the bytes written so far. */
struct totals {
	uint64_t application;	/* by write(2) and its like, of what has ended */
	bool in_part;		/* most was written by other ways */
	uint64_t dirtied;	/* the same, and by other ways, in whole pages */
	uint64_t blocks;	/* to the drive */
	uint64_t programmed;	/* to flash */
};

static void take_field(const char *line, const char *name, uint64_t *value)
{
	size_t len = strlen(name);

	if (!strncmp(line, name, len))
		*value = strtoull(line + len, NULL, 10);
}

/*
 * Reads the bytes of this process and of all children that it waited for, and
 * theirs.
 */
static int read_own(struct totals *t)
{
	FILE *file = fopen("/proc/self/io", "r");
	char line[80];

	if (!file) {
		error("/proc/self/io: %s; the kernel needs CONFIG_TASK_IO_ACCOUNTING",
		      strerror(errno));
		return -1;
	}
	while (fgets(line, sizeof(line), file)) {
		take_field(line, "wchar: ", &t->application);
		take_field(line, "write_bytes: ", &t->dirtied);
	}
	fclose(file);
	return 0;
}

static int read_totals(const char **device, struct totals *t)
{
	struct snapshot s;
	const RsdCounters *c = &s.counters;
	RsdLogPage page;

	*device = device_read_log(*device, &page);
	if (!*device || snapshot_from_page(&s, &page, *device) || read_own(t))
		return -1;
	t->blocks = c->host_write_pages * PAGE;
	t->programmed = (c->prog_host + c->prog_clean + c->prog_merge +
			 c->prog_wear + c->prog_map + c->prog_pad) * PAGE;
	return 0;
}

/* Runs a program. Returns its exit status, or -1. */
static int run_program(char **argv)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execvp(argv[0], argv);
		error("%s: %s", argv[0], strerror(errno));
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		error("%s: %s", argv[0], strerror(errno));
		return -1;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

static void print_ratio(const char *name, uint64_t bytes, uint64_t of,
			const char *what)
{
	printf("%-12s %16" PRIu64, name, bytes);
	if (of)
		printf(" %10.3f", (double)bytes / of);
	else
		printf(" %10s", "-");
	printf("  %s\n", what);
}

/* Returns the bytes written. 0 says that there can be no ratio to them. */
static uint64_t written(const struct totals *d)
{
	return d->in_part ? 0 : d->application;
}

static void print_table(const struct totals *d)
{
	printf("%-12s %16s %10s\n", "", "bytes", "times");
	if (d->in_part)
		printf("%-12s %16s\n", "application", "-");
	else
		printf("%-12s %16" PRIu64 "\n", "application",
		       d->application);
	print_ratio("file system", d->blocks, written(d),
		    "what the application wrote");
	print_ratio("drive", d->programmed, d->blocks,
		    "what the file system wrote");
	print_ratio("end to end", d->programmed, written(d),
		    "what the application wrote");
}

static void print_json_ratio(const char *name, uint64_t bytes, uint64_t of)
{
	printf(",\n  \"%s\" : ", name);
	if (of)
		printf("%.6f", (double)bytes / of);
	else
		printf("null");
}

static void print_json(const struct totals *d)
{
	printf("{\n  \"rsdctl version\" : \"%s\",\n", RSDCTL_VERSION);
	if (d->in_part)
		printf("  \"application_bytes\" : null,\n");
	else
		printf("  \"application_bytes\" : %" PRIu64 ",\n",
		       d->application);
	printf("  \"file_system_bytes\" : %" PRIu64 ",\n  \"drive_bytes\" : %" PRIu64,
	       d->blocks, d->programmed);
	print_json_ratio("file_system_amplification", d->blocks, written(d));
	print_json_ratio("drive_amplification", d->programmed, d->blocks);
	print_json_ratio("amplification", d->programmed, written(d));
	printf("\n}\n");
}

int amplification(char **argv, const struct amplification_options *options)
{
	const char *device = options->device;
	struct totals before = { 0 }, after = { 0 }, d;
	int status;

	/* Earlier writes are not this program's. */
	sync();
	if (read_totals(&device, &before))
		return 1;
	status = run_program(argv);
	if (status < 0)
		return 1;
	sync();
	if (read_totals(&device, &after))
		return 1;
	d = (struct totals){
		.application = after.application - before.application,
		.dirtied = after.dirtied - before.dirtied,
		.blocks = after.blocks - before.blocks,
		.programmed = after.programmed - before.programmed,
	};
	d.in_part = d.dirtied / PAGE * LEAST_OF_PAGE > d.application;
	if (options->has_written) {
		d.application = options->written;
		d.in_part = false;
	} else if (d.in_part) {
		error("note: %s wrote %" PRIu64 " bytes by write(2), and %" PRIu64 " in all: io_uring, libaio and mapped files are not known byte by byte; give --written BYTES",
		      argv[0], d.application, d.dirtied);
	}
	if (options->json)
		print_json(&d);
	else
		print_table(&d);
	return status;
}
