// SPDX-License-Identifier: GPL-2.0-or-later
/* This writes a snapshot as JSON, and takes the counters out of such JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

#define MAX_DEPTH 32	/* of nested values that are skipped */
#define MAX_NAME 64

void derived_json(FILE *out, const struct derived *d)
{
	fputs("    \"write_amplification\" : ", out);
	if (d->has_write_amplification)
		fprintf(out, "%.6f", d->write_amplification);
	else
		fputs("null", out);
	fputs(",\n    \"mean_queue_wait_ns\" : ", out);
	if (d->has_mean_queue_wait)
		fprintf(out, "%.3f", d->mean_queue_wait_ns);
	else
		fputs("null", out);
}

void snapshot_json(FILE *out, const struct snapshot *s)
{
	struct derived d = snapshot_derive(&s->counters);
	const char *comma = "";
	unsigned int i;

	fprintf(out, "{\n  \"rsdctl version\" : \"%s\",\n", RSDCTL_VERSION);
	fprintf(out, "  \"log version\" : %u,\n", RSD_LOG_VERSION);
	fputs("  \"counters\" : {", out);
	for (i = 0; i < RSD_NUM_COUNTERS; i++) {
		if (!s->present[i])
			continue;
		fprintf(out, "%s\n    \"%s\" : { \"value\" : %" PRIu64 ", \"unit\" : \"%s\" }",
			comma, counter_infos[i].name, s->values[i],
			counter_infos[i].unit);
		comma = ",";
	}
	fputs("\n  },\n  \"derived\" : {\n", out);
	derived_json(out, &d);
	fputs("\n  }", out);
	if (s->bucket_erases) {
		fprintf(out, ",\n  \"erase_histogram\" : {\n    \"bucket_erases\" : %u,\n",
			s->bucket_erases);
		fputs("    \"blocks\" : [", out);
		for (i = 0; i < RSD_LOG_HISTOGRAM; i++)
			fprintf(out, "%s%" PRIu64, i ? ", " : "",
				s->histogram[i]);
		fputs("]\n  }", out);
	}
	fputs("\n}\n", out);
}

/* This is the state of reading: a cursor, and the first error. */
struct cursor {
	const char *at;
	const char *wrong;
};

static bool bad(struct cursor *c, const char *wrong)
{
	if (!c->wrong)
		c->wrong = wrong;
	return false;
}

static bool next_is(struct cursor *c, char want)
{
	c->at += strspn(c->at, " \t\r\n");
	if (*c->at != want)
		return false;
	c->at++;
	return true;
}

/*
 * Reads a string without its quotes. A longer one is cut, and escapes are kept
 * as they are.
 */
static bool read_string(struct cursor *c, char name[MAX_NAME])
{
	size_t len = 0;

	if (!next_is(c, '"'))
		return bad(c, "a string is missing");
	while (*c->at && *c->at != '"') {
		if (*c->at == '\\' && c->at[1]) {
			if (len < MAX_NAME - 1)
				name[len++] = *c->at;
			c->at++;
		}
		if (len < MAX_NAME - 1)
			name[len++] = *c->at;
		c->at++;
	}
	name[len] = 0;
	return *c->at++ == '"' || bad(c, "a string does not end");
}

/*
 * Steps to the next member of an object whose { is read, and reads its name and
 * colon. Returns false at the } or after an error.
 */
static bool next_member(struct cursor *c, bool *first, char name[MAX_NAME])
{
	if (c->wrong || next_is(c, '}'))
		return false;
	if (!*first && !next_is(c, ','))
		return bad(c, "a comma or } is missing");
	*first = false;
	return read_string(c, name) &&
	       (next_is(c, ':') || bad(c, "a colon is missing"));
}

static bool skip_value(struct cursor *c, int depth)
{
	char name[MAX_NAME];
	bool first = true;
	size_t len;

	if (depth > MAX_DEPTH)
		return bad(c, "values are nested too deeply");
	if (next_is(c, '{')) {
		while (next_member(c, &first, name))
			if (!skip_value(c, depth + 1))
				return false;
		return !c->wrong;
	}
	if (next_is(c, '[')) {
		if (next_is(c, ']'))
			return true;
		do {
			if (!skip_value(c, depth + 1))
				return false;
		} while (next_is(c, ','));
		return next_is(c, ']') || bad(c, "a ] is missing");
	}
	if (*c->at == '"')
		return read_string(c, name);
	len = strspn(c->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
	c->at += len;
	return len || bad(c, "a value is missing");
}

static bool read_number(struct cursor *c, uint64_t *value)
{
	char *end;

	c->at += strspn(c->at, " \t\r\n");
	if (*c->at < '0' || *c->at > '9')
		return bad(c, "a counter is not a number of 0 or more");
	errno = 0;
	*value = strtoull(c->at, &end, 10);
	if (errno || *end == '.' || *end == 'e' || *end == 'E')
		return bad(c, "a counter is not a whole number of 64 bits");
	c->at = end;
	return true;
}

/* Reads { "value" : number, "unit" : ... }. */
static bool read_counter(struct cursor *c, uint64_t *value)
{
	char name[MAX_NAME];
	bool first = true, found = false;

	if (!next_is(c, '{'))
		return bad(c, "a counter is not an object with a value");
	while (next_member(c, &first, name)) {
		if (!strcmp(name, "value")) {
			if (!read_number(c, value))
				return false;
			found = true;
		} else if (!skip_value(c, 0)) {
			return false;
		}
	}
	if (c->wrong)
		return false;
	return found || bad(c, "a counter has no value");
}

/* Counters that this rsdctl does not know are passed over. */
static bool read_counters(struct cursor *c, struct snapshot *s)
{
	char name[MAX_NAME];
	bool first = true;
	uint64_t value;
	unsigned int i;

	if (!next_is(c, '{'))
		return bad(c, "\"counters\" is not an object");
	while (next_member(c, &first, name)) {
		if (!read_counter(c, &value))
			return false;
		for (i = 0; i < RSD_NUM_COUNTERS; i++) {
			if (strcmp(name, counter_infos[i].name))
				continue;
			s->values[i] = value;
			s->present[i] = true;
		}
	}
	return !c->wrong;
}

const char *json_read_counters(struct snapshot *s, const char *text)
{
	struct cursor c = { .at = text };
	char name[MAX_NAME];
	bool first = true, found = false;

	memset(s, 0, sizeof(*s));
	next_is(&c, '{');
	while (next_member(&c, &first, name)) {
		if (!strcmp(name, "counters"))
			found = read_counters(&c, s);
		else
			skip_value(&c, 0);
		if (c.wrong)
			break;
	}
	if (!c.wrong && !found)
		bad(&c, "it has no \"counters\"");
	if (!c.wrong && *(c.at + strspn(c.at, " \t\r\n")))
		bad(&c, "something follows the closing }");
	return c.wrong;
}
