// SPDX-License-Identifier: GPL-2.0-or-later
/* The core needs these from a C library: memory and crc32c. */
#include "plat/rfs_plat.h"

#ifndef RFS_MODULE
void *rfs_alloc(size_t bytes)
{
	return calloc(1, bytes);
}

void *rfs_alloc_raw(size_t bytes)
{
	return malloc(bytes);
}

void rfs_free(void *memory)
{
	free(memory);
}
#endif

static u32 table[256];

__attribute__((constructor)) static void make_table(void)
{
	u32 i, bit;

	if (table[1])
		return;
	for (i = 0; i < 256; i++) {
		u32 crc = i;

		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
		table[i] = crc;
	}
}

static u32 crc_bytes(u32 crc, const u8 *data, size_t bytes)
{
	while (bytes--)
		crc = crc >> 8 ^ table[(crc ^ *data++) & 255];
	return crc;
}

#ifdef __x86_64__
/*
 * The instruction takes three cycles, and one can begin in each, so three lanes of a block are
 * summed at once. The sum of a lane is moved on over the lanes behind it. That is linear, so there
 * is a table for each byte of the sum.
 */
#define LANE	1360

static u32 lane[4][256];

__attribute__((constructor)) static void make_lane(void)
{
	static const u8 zero[LANE];
	u32 byte, bit, i;

	make_table();
	for (byte = 0; byte < 4; byte++) {
		for (bit = 0; bit < 8; bit++)
			lane[byte][1 << bit] = crc_bytes(1U << (8 * byte + bit),
							 zero, LANE);
		for (i = 1; i < 256; i++)
			lane[byte][i] = lane[byte][i & (i - 1)] ^
					lane[byte][i & -i];
	}
}

static u32 skip_lane(u32 crc)
{
	return lane[0][crc & 255] ^ lane[1][crc >> 8 & 255] ^
	       lane[2][crc >> 16 & 255] ^ lane[3][crc >> 24];
}

__attribute__((target("sse4.2")))
static u32 crc_lanes(u32 crc, const u8 *data)
{
	u64 word[3], sum[3] = { crc, 0, 0 };
	u32 at;

	for (at = 0; at < LANE; at += 8) {
		memcpy(&word[0], data + at, 8);
		memcpy(&word[1], data + LANE + at, 8);
		memcpy(&word[2], data + 2 * LANE + at, 8);
		sum[0] = __builtin_ia32_crc32di(sum[0], word[0]);
		sum[1] = __builtin_ia32_crc32di(sum[1], word[1]);
		sum[2] = __builtin_ia32_crc32di(sum[2], word[2]);
	}
	return skip_lane(skip_lane(sum[0]) ^ sum[1]) ^ sum[2];
}

__attribute__((target("sse4.2")))
static u32 crc_sse42(u32 crc, const u8 *data, size_t bytes)
{
	u64 word, wide;

	for (; bytes >= 3 * LANE; bytes -= 3 * LANE, data += 3 * LANE)
		crc = crc_lanes(crc, data);
	wide = crc;
	for (; bytes >= 8; bytes -= 8, data += 8) {
		memcpy(&word, data, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	return crc_bytes(wide, data, bytes);
}
#endif

u32 rfs_crc(u32 crc, const void *data, size_t bytes)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return crc_sse42(crc, data, bytes);
#endif
	return crc_bytes(crc, data, bytes);
}
