/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CRC32 instruction with operands of each size, against a sum that takes it bit by bit. */
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 100000
#define POLYNOMIAL 0x82f63b78 /* of CRC-32C, its bits in reverse */

static uint32_t bit_by_bit(uint32_t crc, uint64_t operand, unsigned int bits)
{
	for (; bits; bits--, operand >>= 1)
		crc = crc >> 1 ^ ((crc ^ operand) & 1 ? POLYNOMIAL : 0);
	return crc;
}

static uint32_t instruction(uint32_t crc, uint64_t operand, unsigned int bits)
{
	switch (bits) {
	case 8:
		return __builtin_ia32_crc32qi(crc, operand);
	case 16:
		return __builtin_ia32_crc32hi(crc, operand);
	case 32:
		return __builtin_ia32_crc32si(crc, operand);
	default:
		return __builtin_ia32_crc32di(crc, operand);
	}
}

int main(void)
{
	uint64_t state = 1;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t operand;
		uint32_t crc;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		operand = state ^ state >> 29;
		crc = state >> 32;
		for (unsigned int bits = 8; bits <= 64; bits *= 2) {
			if (instruction(crc, operand, bits) != bit_by_bit(crc, operand, bits)) {
				printf("crc32 of %u bits, %#llx, from %#x\n", bits,
				       (unsigned long long)operand, crc);
				return 1;
			}
		}
	}
	return 0;
}
