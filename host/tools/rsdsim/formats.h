/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are traces in text, with one parser for each format. */
#ifndef RSDSIM_FORMATS_H
#define RSDSIM_FORMATS_H

#include "request.h"
#include "text.h"

/* This is a request as text traces have it, in bytes. */
struct extent {
	uint64_t time_ns;	/* absolute, of whatever epoch */
	uint64_t offset, length;
	RsdOp op;
	bool fua;
};

struct format {
	const char *name, *doc;
	/* Checks the head of the file, if it has one. It may be NULL. */
	void (*begin)(struct text *text, void *state);
	/*
	 * Takes the next request, and skips lines that are no requests. Returns
	 * false at the end. @state is FORMAT_STATE bytes of the parser's own,
	 * at first 0.
	 */
	bool (*next)(struct text *text, void *state, struct extent *extent);
};

#define FORMAT_STATE 512

/*
 * These end with a format without a name. The native format is not among them.
 */
extern const struct format formats[];

/* Returns NULL if there is no format of that name. */
const struct format *format_find(const char *name);

/* These are the parsers; their files describe the formats. */
void iolog_begin(struct text *text, void *state);
bool iolog_next(struct text *text, void *state, struct extent *extent);
bool blkparse_next(struct text *text, void *state, struct extent *extent);
bool msr_next(struct text *text, void *state, struct extent *extent);
bool mqsim_next(struct text *text, void *state, struct extent *extent);

#endif
