// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * blkparse's default output, a line an event:
 *     8,0    3       11     0.009507758   697  C   W 223490 + 8 [0]
 *     device cpu sequence   seconds       pid  action rwbs sector + sectors ...
 * D events are taken: what the driver was given. In rwbs (blk_fill_rwbs() of
 * Linux 6.12), F before W is a flush before the write, F after it force unit
 * access; both kinds of flush are requests of their own in the block layer,
 * an F or FS without sectors. Other events are passed over, and so is the
 * summary at the end.
 */
#include <ctype.h>
#include <string.h>

#include "formats.h"

#define SECTOR 512

struct state {
	bool any;
	char device[32];
};

static bool is_device(const char *field)
{
	size_t major = strspn(field, "0123456789");

	return major && field[major] == ',' && isdigit(field[major + 1]);
}

/*
 * Parses rwbs. False says that it has a letter of no request, with or without
 * data.
 */
static bool parse_rwbs(const char *rwbs, struct extent *extent)
{
	bool preflush = *rwbs == 'F';

	rwbs += preflush;
	extent->fua = false;
	switch (*rwbs) {
	case 'W':
		extent->op = RSD_WRITE;
		extent->fua = rwbs[1] == 'F';
		return true;
	case 'R':
		extent->op = RSD_READ;
		return true;
	case 'D':
		extent->op = RSD_TRIM;
		return true;
	case 0:
	case 'S':
	case 'F':
	case 'N':
		extent->op = RSD_FLUSH;
		return preflush;
	}
	return false;
}

static void check_device(struct text *text, struct state *state,
			 const char *device)
{
	if (!*state->device && strlen(device) < sizeof(state->device))
		memcpy(state->device, device, strlen(device) + 1);
	if (strcmp(device, state->device))
		text_fail(text, "device %.30s after %s: a drive is one device; use blktrace on one",
			  device, state->device);
}

bool blkparse_next(struct text *text, void *opaque, struct extent *extent)
{
	struct state *state = opaque;

	while (text_next(text)) {
		char *device = text_field(text, "the device", ' ');
		char *action, *rwbs;

		/* This is "CPU0 (8,0):", the beginning of the summary. */
		if (!is_device(device) && state->any)
			return false;
		if (!is_device(device))
			text_fail(text, "the first field is '%.60s', not a device as 8,0: is this blkparse's default output?",
				  device);
		text_number(text, "the CPU", ' ');
		text_number(text, "the sequence number", ' ');
		extent->time_ns = text_seconds(text, "the time", ' ');
		text_number(text, "the process", ' ');
		action = text_field(text, "the action", ' ');
		state->any = true;
		if (strcmp(action, "D"))
			continue;
		check_device(text, state, device);
		rwbs = text_field(text, "the kind (rwbs)", ' ');
		if (!parse_rwbs(rwbs, extent))
			text_fail(text, "the kind (rwbs) is '%.20s', allowed is R..., W..., D... or F...",
				  rwbs);
		extent->offset = extent->length = 0;
		/* A flush has "0 + 0", or only the name of the process. */
		if (extent->op == RSD_FLUSH)
			return true;
		extent->offset = text_number(text, "the sector", ' ');
		if (strcmp(text_field(text, "'+'", ' '), "+"))
			text_fail(text, "there is no '+' between sector and sectors");
		extent->length = text_number(text, "the sectors", ' ');
		if (__builtin_mul_overflow(extent->offset, SECTOR,
					   &extent->offset) ||
		    __builtin_mul_overflow(extent->length, SECTOR,
					   &extent->length))
			text_fail(text, "the sectors lie beyond 2^64 bytes");
		return true;
	}
	return false;
}
