// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "coverage.h"

#define WAYS	(1U << 16)

extern const char __executable_start;

static uint8_t count[WAYS];	/* in this round, of each way */
static uint8_t seen[WAYS];	/* ever: a bit each class of such counts */
static bool place[WAYS];	/* ever */
static uintptr_t last;

void __sanitizer_cov_trace_pc(void);

/* The compiler calls it wherever a branch may lead. */
void __sanitizer_cov_trace_pc(void)
{
	/* the same in each run, wherever the program is */
	uintptr_t here = (uintptr_t)__builtin_return_address(0) -
			 (uintptr_t)&__executable_start;
	uintptr_t way = (here ^ last << 5 ^ last >> 11) % WAYS;

	place[here % WAYS] = true;
	count[way] += count[way] < 255;
	last = here;
}

void coverage_begin(void)
{
	memset(count, 0, sizeof(count));
	last = 0;
}

/* 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more */
static uint8_t class_of(uint8_t n)
{
	static const uint8_t least[] = { 128, 32, 16, 8, 4, 3, 2, 1 };
	uint32_t i;

	for (i = 0; n < least[i]; i++)
		;
	return 1 << i;
}

bool coverage_end(void)
{
	bool fresh = false;
	uint32_t i;

	for (i = 0; i < WAYS; i++) {
		if (!count[i])
			continue;
		fresh |= !(seen[i] & class_of(count[i]));
		seen[i] |= class_of(count[i]);
	}
	return fresh;
}

uint32_t coverage_places(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < WAYS; i++)
		n += place[i];
	return n;
}

uint32_t coverage_ways(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < WAYS; i++)
		n += seen[i] != 0;
	return n;
}
