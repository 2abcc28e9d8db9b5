// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pattern.h"

#define OOB_MAGIC 0x5a414f42ull		/* upper half of the first word */

/*
 * This is the finalizer of splitmix64: every input bit reaches every output
 * bit.
 */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

void pattern_body(void *block, size_t size, uint64_t seed)
{
	uint64_t *word = block;
	size_t i;

	for (i = 0; i < size / 8; i++)
		word[i] = mix(seed ^ mix(i));
}

void pattern_stamp(void *block, size_t size, uint64_t seed, uint64_t append,
		   uint64_t n)
{
	uint64_t *word = block;

	word[0] = PATTERN_MAGIC;
	word[1] = append;
	word[2] = n;
	word[size / 8 - 1] = mix(seed ^ mix(append ^ mix(n)));
}

void pattern_oob(void *oob, size_t size, uint64_t seed, uint64_t append,
		 uint64_t n)
{
	size_t at, part;
	uint64_t word;

	for (at = 0; at < size; at += sizeof(word)) {
		if (at == 0)
			word = OOB_MAGIC << 32 | (append & 0xffffffff);
		else if (at == sizeof(word))
			word = n;
		else
			word = mix(seed ^ mix(at));
		part = size - at < sizeof(word) ? size - at : sizeof(word);
		memcpy((char *)oob + at, &word, part);
	}
}

bool pattern_same(const void *got, const void *want, size_t size, char *why,
		  size_t len)
{
	const unsigned char *g = got, *w = want;
	uint64_t id[3];
	size_t i;

	if (!memcmp(got, want, size))
		return true;
	for (i = 0; i < size && !g[i]; i++)
		;
	if (i == size) {
		snprintf(why, len, "all zero: never written, or lost");
		return false;
	}
	if (size >= PATTERN_MIN_BLOCK) {
		memcpy(id, got, sizeof(id));
		if (id[0] == PATTERN_MAGIC && memcmp(got, want, sizeof(id))) {
			snprintf(why, len, "holds block %" PRIu64
				 " of append %" PRIu64, id[2], id[1]);
			return false;
		}
	}
	for (i = 0; g[i] == w[i]; i++)
		;
	snprintf(why, len, "byte %zu is 0x%02x instead of 0x%02x", i, g[i],
		 w[i]);
	return false;
}
