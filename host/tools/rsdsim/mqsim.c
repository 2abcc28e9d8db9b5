// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * MQSim's ASCII traces (Tavakkol et al., FAST 2018):
 *     arrival time (ns), device, first sector, sectors, type (0 write, 1 read)
 * Sectors are 512 bytes. As in MQSim, the device's number is not used.
 */
#include "formats.h"

#define SECTOR 512

bool mqsim_next(struct text *text, void *state, struct extent *extent)
{
	uint64_t type;

	(void)state;
	if (!text_next(text))
		return false;
	extent->time_ns = text_number(text, "the arrival time", ' ');
	text_number(text, "the device's number", ' ');
	extent->offset = text_number(text, "the first sector", ' ');
	extent->length = text_number(text, "the number of sectors", ' ');
	type = text_number(text, "the type", ' ');
	text_end(text);
	if (type > 1)
		text_fail(text, "the type is %llu, allowed is 0 (write) or 1 (read)",
			  (unsigned long long)type);
	extent->op = type ? RSD_READ : RSD_WRITE;
	if (__builtin_mul_overflow(extent->offset, SECTOR, &extent->offset) ||
	    __builtin_mul_overflow(extent->length, SECTOR, &extent->length))
		text_fail(text, "the sectors lie beyond 2^64 bytes");
	return true;
}
