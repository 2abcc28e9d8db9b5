/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are the calls that the benchmarks of HFM's evaluation make. */
#ifndef HFMSIM_CALLS_H
#define HFMSIM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum op {
	OP_APPEND,		/* bytes, also to a file that is not there yet */
	OP_OVERWRITE,		/* all of a file, in place */
	OP_READ,		/* all of a file */
	OP_DELETE,
	OP_MARK,		/* what came before was preparation */
};

struct request {
	enum op op;
	uint32_t file;
	uint64_t bytes;		/* OP_APPEND */
};

struct calls;

/*
 * These are the names of the kinds of work, the last one NULL, and a
 * description of each.
 */
extern const char *const calls_names[];

struct calls_config {
	uint32_t kind;		/* of calls_names */
	uint32_t files;
	uint64_t transactions;
	uint64_t bytes;		/* of a file, where all are as long */
	uint64_t seed;
};

/* Returns NULL, and a sentence in `why`, if the settings are wrong. */
struct calls *calls_new(const struct calls_config *cfg, const char **why);
void calls_free(struct calls *c);
/* Returns the largest number of files at a time; their numbers are below it. */
uint32_t calls_files(const struct calls *c);
/* Returns the next call. False says that there is none. */
bool calls_next(struct calls *c, struct request *r);
/* Returns the transactions, or files where there are none, since the mark. */
uint64_t calls_done(const struct calls *c);

#endif
