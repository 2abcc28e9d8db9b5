// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/bits.h"

/*
 * These are the words for n numbers. A search may begin after the last number.
 */
static u32 rfs_bits_words(u32 n)
{
	return n / 64 + 1;
}

int rfs_bits_alloc(struct rfs_bits *bits, u32 n)
{
	size_t words = 0;
	u32 of[RFS_BITS_LEVELS], i;
	u64 *at;

	for (bits->levels = 0; ; n = of[bits->levels++]) {
		of[bits->levels] = rfs_bits_words(n);
		words += of[bits->levels];
		if (n < 64)
			break;
	}
	bits->levels++;
	at = rfs_alloc(words * sizeof(*at));
	if (!at)
		return -ENOMEM;
	for (i = 0; i < bits->levels; at += of[i++])
		bits->level[i] = at;
	return 0;
}

void rfs_bits_free(struct rfs_bits *bits)
{
	rfs_free(bits->level[0]);
	memset(bits, 0, sizeof(*bits));
}

void rfs_bits_put(struct rfs_bits *bits, u32 nr, bool in)
{
	u32 i;

	if (rfs_bits_has(bits, nr) == in)
		return;
	bits->count += in ? 1 : -1;
	for (i = 0; i < bits->levels; i++, nr /= 64) {
		u64 *word = &bits->level[i][nr / 64];
		bool others = *word & ~(1ULL << nr % 64);

		*word ^= 1ULL << nr % 64;
		if (others)
			return;	/* what is above says so before and after */
	}
}

u32 rfs_bits_next(const struct rfs_bits *bits, u32 from)
{
	u32 i = 0;
	u64 word;

	/* The search goes up until a word has a bit at or behind from. */
	while (!(word = bits->level[i][from / 64] & ~0ULL << from % 64)) {
		if (++i == bits->levels)
			return RFS_BITS_NONE;
		from = from / 64 + 1;
	}
	/* Then it goes down to the first number below that bit. */
	for (;;) {
		from = from / 64 * 64 + __builtin_ctzll(word);
		if (!i)
			return from;
		word = bits->level[--i][from];
		from *= 64;
	}
}
