// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This is fio's iolog, as its documentation describes it ("Trace file format
 * v2", "v3"). Version 2 has "FILE ACTION" or "FILE ACTION OFFSET LENGTH". Time
 * passes only by "FILE wait MICROSECONDS 0". Version 3 has microseconds since
 * the start as a field before those, and no wait.
 */
#include <string.h>

#include "formats.h"

struct state {
	uint64_t version;
	uint64_t time_us;
	char name[256];		/* of the one file or device */
};

_Static_assert(sizeof(struct state) <= FORMAT_STATE, "the state has room");

void iolog_begin(struct text *text, void *opaque)
{
	struct state *state = opaque;
	char *a, *b, *c;

	if (!text_next(text))
		text_fail(text, "the file is empty, a first line 'fio version 2 iolog' or 3 is missing");
	a = text_field(text, "'fio version N iolog'", ' ');
	b = text_field(text, "'fio version N iolog'", ' ');
	state->version = text_number(text, "the iolog's version", ' ');
	c = text_field(text, "'iolog'", ' ');
	if (strcmp(a, "fio") || strcmp(b, "version") || strcmp(c, "iolog"))
		text_fail(text, "the first line is not 'fio version N iolog'");
	if (state->version != 2 && state->version != 3)
		text_fail(text, "the iolog's version is %llu, allowed is 2 or 3",
			  (unsigned long long)state->version);
}

static void check_name(struct text *text, struct state *state,
		       const char *name)
{
	if (!*state->name && strlen(name) < sizeof(state->name))
		memcpy(state->name, name, strlen(name) + 1);
	if (strcmp(name, state->name))
		text_fail(text, "file %.60s after %.60s: a drive is one file; split the log",
			  name, state->name);
}

/* Returns true if the action is a request. */
static bool parse_action(struct text *text, struct state *state,
			 const char *action, struct extent *extent)
{
	static const struct {
		const char *name;
		RsdOp op;
	} ops[] = {
		{ "read", RSD_READ }, { "write", RSD_WRITE },
		{ "trim", RSD_TRIM }, { "sync", RSD_FLUSH },
		{ "datasync", RSD_FLUSH },
	};
	const int num_ops = sizeof(ops) / sizeof(*ops);
	int i;

	if (!strcmp(action, "add") || !strcmp(action, "open") ||
	    !strcmp(action, "close")) {
		text_end(text);
		return false;
	}
	extent->offset = text_number(text, "the offset", ' ');
	extent->length = text_number(text, "the length", ' ');
	text_end(text);
	if (state->version == 2 && !strcmp(action, "wait")) {
		if (__builtin_add_overflow(state->time_us, extent->offset,
					   &state->time_us))
			text_fail(text, "the waits add up to more than 2^64 us");
		return false;
	}
	for (i = 0; i < num_ops; i++) {
		if (!strcmp(action, ops[i].name)) {
			extent->op = ops[i].op;
			return true;
		}
	}
	text_fail(text, "the action is '%.60s', allowed is add, open, close, read, write, trim, sync, datasync%s",
		  action, state->version == 2 ? ", wait" : "");
}

bool iolog_next(struct text *text, void *opaque, struct extent *extent)
{
	struct state *state = opaque;
	char *name, *action;

	while (text_next(text)) {
		if (state->version == 3)
			state->time_us = text_number(text, "the timestamp",
						     ' ');
		name = text_field(text, "the file's name", ' ');
		check_name(text, state, name);
		action = text_field(text, "the action", ' ');
		if (!parse_action(text, state, action, extent))
			continue;
		if (__builtin_mul_overflow(state->time_us, 1000,
					   &extent->time_ns))
			text_fail(text, "the time is %llu us, allowed is up to 2^64 ns",
				  (unsigned long long)state->time_us);
		return true;
	}
	return false;
}
