/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These functions read lines of a text file, and the fields of a line. */
#ifndef RSDSIM_TEXT_H
#define RSDSIM_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "error.h"

struct text {
	const char *path;	/* the caller's */
	FILE *file;
	uint64_t number;	/* of the line, from 1 */
	char *at;		/* rest of the line */
	char line[4096];
};

/* Opens @path, "-" being standard input. Ends the program if it cannot. */
void text_open(struct text *text, const char *path);
void text_close(struct text *text);

/*
 * Goes to the next line that is not blank. Returns false at the end of the
 * file.
 */
bool text_next(struct text *text);

/* Ends the program with path, line number and message. */
#define text_fail(text, format, ...) \
	die("%s:%llu: " format, (text)->path, \
	    (unsigned long long)(text)->number, ##__VA_ARGS__)

/*
 * Returns the line's next field, which must be there, and is called @what in
 * messages. Fields end at @delimiter; if that is a space, at any white space.
 */
char *text_field(struct text *text, const char *what, char delimiter);

/* Does the same, and returns a number without sign. */
uint64_t text_number(struct text *text, const char *what, char delimiter);

/* Does the same, and returns seconds with a fraction ("0.009507758") in ns. */
uint64_t text_seconds(struct text *text, const char *what, char delimiter);

/* Fails if something is left of the line. */
void text_end(struct text *text);

/*
 * Parses all of @field as a number. Returns false if it is not a number of 64
 * bits.
 */
bool parse_number(const char *field, uint64_t *value);

#endif
