// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "text.h"

#define SHOWN 60	/* bytes of a field that a message repeats */

void text_open(struct text *text, const char *path)
{
	text->path = path;
	text->number = 0;
	text->file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	if (!text->file)
		die("%s: cannot open it: %s", path, strerror(errno));
}

void text_close(struct text *text)
{
	if (text->file != stdin)
		fclose(text->file);
}

static void skip_space(struct text *text)
{
	while (isspace((unsigned char)*text->at))
		text->at++;
}

/* Reads a line without its end. Returns false at the end of the file. */
static bool read_line(struct text *text)
{
	size_t len = 0;
	int c;

	text->number++;
	while ((c = getc_unlocked(text->file)) != EOF && c != '\n') {
		if (len == sizeof(text->line) - 1)
			text_fail(text, "the line is longer than %zu bytes: is this a text trace of the format named?",
				  len);
		if (!c)
			text_fail(text, "there is a NUL byte: is this a text trace of the format named? A trace of --record or of the property trace is --format native");
		text->line[len++] = c;
	}
	text->line[len] = 0;
	text->at = text->line;
	if (c == EOF && ferror(text->file))
		text_fail(text, "cannot be read: %s", strerror(errno));
	return len || c != EOF;
}

bool text_next(struct text *text)
{
	do {
		if (!read_line(text))
			return false;
		skip_space(text);
	} while (!*text->at);
	return true;
}

char *text_field(struct text *text, const char *what, char delimiter)
{
	char *field, *end;

	skip_space(text);
	field = text->at;
	if (delimiter == ' ')
		end = field + strcspn(field, " \t\r\v\f");
	else
		end = strchrnul(field, delimiter);
	if (end == field)
		text_fail(text, "%s is missing: is the line cut off, or of another format?",
			  what);
	text->at = *end ? end + 1 : end;
	*end = 0;
	/* This removes the line's end, behind its last field. */
	while (end > field && isspace((unsigned char)end[-1]))
		*--end = 0;
	return field;
}

bool parse_number(const char *field, uint64_t *value)
{
	uint64_t number = 0;

	if (!*field)
		return false;
	for (; *field; field++) {
		if (*field < '0' || *field > '9' ||
		    __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *field - '0', &number))
			return false;
	}
	*value = number;
	return true;
}

uint64_t text_number(struct text *text, const char *what, char delimiter)
{
	char *field = text_field(text, what, delimiter);
	uint64_t value;

	if (!parse_number(field, &value))
		text_fail(text, "%s is '%.*s', allowed is a number from 0 to %" PRIu64,
			  what, SHOWN, field, UINT64_MAX);
	return value;
}

uint64_t text_seconds(struct text *text, const char *what, char delimiter)
{
	char *field = text_field(text, what, delimiter);
	char *point = strchr(field, '.');
	uint64_t seconds = 0, ns = 0;
	bool ok;
	int i;

	if (point)
		*point++ = 0;
	ok = parse_number(field, &seconds);
	for (i = 0; ok && i < 9; i++) {
		ns *= 10;
		if (point && *point) {
			ok = *point >= '0' && *point <= '9';
			ns += *point++ - '0';
		}
	}
	if (ok && point)
		ok = strspn(point, "0123456789") == strlen(point);
	if (!ok || __builtin_mul_overflow(seconds, UINT64_C(1000000000),
					  &seconds) ||
	    __builtin_add_overflow(seconds, ns, &seconds))
		text_fail(text, "%s is '%.*s%s', allowed is a number of seconds as 12.345",
			  what, SHOWN, field, point ? "..." : "");
	return seconds;
}

void text_end(struct text *text)
{
	skip_space(text);
	if (*text->at)
		text_fail(text, "after the last field there is '%.*s': is it of another format?",
			  SHOWN, text->at);
}
