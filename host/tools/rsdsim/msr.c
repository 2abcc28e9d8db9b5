// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * MSR Cambridge block traces (Narayanan et al., FAST 2008), as the README of
 * SNIA IOTTA trace set 388 has it:
 *     Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
 * Time is in Windows filetime (100 ns); offset and size are in bytes.
 */
#include <string.h>

#include "formats.h"

struct state {
	bool any;
	uint64_t disk;
};

bool msr_next(struct text *text, void *opaque, struct extent *extent)
{
	struct state *state = opaque;
	uint64_t time, disk;
	char *type;

	if (!text_next(text))
		return false;
	time = text_number(text, "the timestamp", ',');
	text_field(text, "the host's name", ',');
	disk = text_number(text, "the disk's number", ',');
	type = text_field(text, "the type", ',');
	extent->offset = text_number(text, "the offset", ',');
	extent->length = text_number(text, "the size", ',');
	text_number(text, "the response time", ',');
	text_end(text);
	if (!strcmp(type, "Read"))
		extent->op = RSD_READ;
	else if (!strcmp(type, "Write"))
		extent->op = RSD_WRITE;
	else
		text_fail(text, "the type is '%.60s', allowed is Read or Write",
			  type);
	if (state->any && disk != state->disk)
		text_fail(text, "disk %llu after disk %llu: a drive is one disk; split the trace",
			  (unsigned long long)disk,
			  (unsigned long long)state->disk);
	state->any = true;
	state->disk = disk;
	/*
	 * Filetimes count from 1601. Only those after the year 2185 do not fit
	 * 64 bits in ns.
	 */
	if (__builtin_mul_overflow(time, 100, &extent->time_ns))
		text_fail(text, "the timestamp is %llu, allowed is up to 2^64 ns (year 2185)",
			  (unsigned long long)time);
	return true;
}
