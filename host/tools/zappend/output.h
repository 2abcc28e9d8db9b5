/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ZAPPEND_OUTPUT_H
#define ZAPPEND_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine.h"

#define ZAPPEND_VERSION "1.0"

/* This is a run and its results, for printing. */
struct report {
	const char *name;
	enum engine_op op;		/* ENGINE_APPEND or ENGINE_READ */
	const struct work *work;
	struct result *res;		/* printing sorts its samples */
	uint64_t first_zone, last_zone;
	bool reset;
	const struct result *verified;	/* NULL: not asked for */
};

/* Prints a message, as printf, on stderr; @format must be a literal. */
#define error(format, ...) \
	fprintf(stderr, "zappend: " format "\n", ##__VA_ARGS__)

/* Writes JSON with the keys of fio's --output-format=json. */
void output_json(FILE *out, const struct report *rep);

/* Prints one or two lines for people, on stderr. */
void output_human(const struct report *rep);

#endif
