/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is the state of the drive's counters at one moment, from a log page or
 * from JSON.
 */
#ifndef RSDCTL_SNAPSHOT_H
#define RSDCTL_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rsd-log.h"

#define RSDCTL_VERSION "1.0"

/* Prints a message, as printf, on stderr; @format must be a literal. */
#define error(format, ...) \
	fprintf(stderr, "rsdctl: " format "\n", ##__VA_ARGS__)

struct counter_info {
	const char *name, *unit, *doc;
};

/* There is one for each counter, in the order of the log page. */
extern const struct counter_info counter_infos[RSD_NUM_COUNTERS];

/* Returns the number of a counter in that order, as in COUNTER(prog_host). */
#define COUNTER(field) (offsetof(RsdCounters, field) / sizeof(uint64_t))

struct snapshot {
	union {
		RsdCounters counters;
		uint64_t values[RSD_NUM_COUNTERS];
	};
	bool present[RSD_NUM_COUNTERS];	/* an older drive has fewer */
	uint32_t bucket_erases;		/* 0: there is no histogram */
	uint64_t histogram[RSD_LOG_HISTOGRAM];
};

/* These figures are computed from counters, or from differences of counters. */
struct derived {
	bool has_write_amplification, has_mean_queue_wait;
	double write_amplification;	/* pages programmed a page written */
	double mean_queue_wait_ns;	/* a NAND operation */
};

/*
 * Checks and decodes the raw log page @page, RSD_LOG_BYTES long, that came
 * from @source (a name for messages). Returns 0, or -1 after an error.
 */
#define RSD_LOG_BYTES sizeof(RsdLogPage)
int snapshot_from_page(struct snapshot *s, const void *page,
		       const char *source);

/*
 * Says whether it is a page of ours at all, of whatever version. If not, prints
 * an error.
 */
bool page_is_ours(const void *page, const char *source);

/*
 * Reads a log page or the output of "rsdctl show --json" from @path ("-":
 * standard input). Returns 0, or -1 after an error.
 */
int snapshot_from_file(struct snapshot *s, const char *path);

struct derived snapshot_derive(const RsdCounters *c);

/* Prints "name" : value pairs of @d, ending without a newline. */
void derived_json(FILE *out, const struct derived *d);

/* Writes everything as JSON. */
void snapshot_json(FILE *out, const struct snapshot *s);

/*
 * Takes the counters out of JSON @text that snapshot_json() has written.
 * Returns NULL, or a description of the error.
 */
const char *json_read_counters(struct snapshot *s, const char *text);

#endif
