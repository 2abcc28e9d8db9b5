// SPDX-License-Identifier: GPL-2.0-or-later
/* This is SipHash-2-4, which the kernel has itself. */
#include "plat/rfs_plat.h"

static u64 rotate(u64 x, int by)
{
	return x << by | x >> (64 - by);
}

static void sip_round(u64 v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

u64 rfs_siphash(const __le64 key[2], const void *data, u32 len)
{
	u64 k0 = le64_to_cpu(key[0]);
	u64 k1 = le64_to_cpu(key[1]);
	u64 v[4] = { k0 ^ 0x736f6d6570736575ULL, k1 ^ 0x646f72616e646f6dULL,
		     k0 ^ 0x6c7967656e657261ULL, k1 ^ 0x7465646279746573ULL };
	const u8 *byte = data;
	u64 word = 0;
	u32 i;

	for (i = 0; i < len; i++) {
		word |= (u64)byte[i] << (8 * (i % 8));
		if (i % 8 < 7)
			continue;
		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
		word = 0;
	}
	word |= (u64)len << 56;
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
