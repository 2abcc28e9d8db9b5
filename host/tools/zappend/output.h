/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ZAPPEND_OUTPUT_H
#define ZAPPEND_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine.h"

#define ZAPPEND_VERSION "1.0"

/* A run and what came of it, for printing. */
struct report {
	const char *name;
	enum engine_op op;		/* ENGINE_APPEND or ENGINE_READ */
	const struct work *work;
	struct result *res;		/* printing sorts its samples */
	uint64_t first_zone, last_zone;
	bool reset;
	const struct result *verified;	/* NULL: not asked for */
};

/* "zappend: " and the message, on stderr. */
#define __printf(fmt, args) __attribute__((format(printf, fmt, args)))
__printf(1, 2) void error(const char *format, ...);

/* JSON with the keys of fio's --output-format=json. */
void output_json(FILE *out, const struct report *rep);

/* One or two lines for people, on stderr. */
void output_human(const struct report *rep);

#endif
