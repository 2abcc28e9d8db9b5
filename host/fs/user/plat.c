// SPDX-License-Identifier: GPL-2.0-or-later
/* What the core needs from a C library: memory, crc32c. */
#include "rfs_plat.h"

void *rfs_alloc(size_t bytes)
{
	return calloc(1, bytes);
}

void rfs_free(void *memory)
{
	free(memory);
}

static u32 table[256];

__attribute__((constructor)) static void make_table(void)
{
	u32 i, bit;

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
__attribute__((target("sse4.2")))
static u32 crc_sse42(u32 crc, const u8 *data, size_t bytes)
{
	u64 word, wide = crc;

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
