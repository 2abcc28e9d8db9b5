/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traces in text: one parser a format. */
#ifndef RSDSIM_FORMATS_H
#define RSDSIM_FORMATS_H

#include "request.h"
#include "text.h"

/* A request as text traces have it, in bytes. */
struct extent {
	uint64_t time_ns;	/* absolute, of whatever epoch */
	uint64_t offset, length;
	RsdOp op;
	bool fua;
};

struct format {
	const char *name, *doc;
	/* Checks the head of the file, if it has one. May be NULL. */
	void (*begin)(struct text *text, void *state);
	/*
	 * Takes the next request, passing over lines that are none. False at
	 * the end. @state: FORMAT_STATE bytes of the parser's own, at first 0.
	 */
	bool (*next)(struct text *text, void *state, struct extent *extent);
};

#define FORMAT_STATE 512

/* Ends with one without name. The native format is not among them. */
extern const struct format formats[];

/* NULL if there is none of that name */
const struct format *format_find(const char *name);

/* The parsers; see their files for what each format is. */
void iolog_begin(struct text *text, void *state);
bool iolog_next(struct text *text, void *state, struct extent *extent);
bool blkparse_next(struct text *text, void *state, struct extent *extent);
bool msr_next(struct text *text, void *state, struct extent *extent);
bool mqsim_next(struct text *text, void *state, struct extent *extent);

#endif
