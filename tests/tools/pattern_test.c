// SPDX-License-Identifier: GPL-2.0-or-later
/* A verification that cannot fail is worth nothing: every change must show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

static char why[100];

static void expect(int condition, const char *what, size_t size, size_t at)
{
	if (condition)
		return;
	printf("%s, size %zu, byte %zu: %s\n", what, size, at, why);
	exit(1);
}

static void make_data(unsigned char *p, size_t size, uint64_t seed,
		      uint64_t append, uint64_t n)
{
	pattern_body(p, size, seed);
	pattern_stamp(p, size, seed, append, n);
}

static void test_data(size_t size)
{
	unsigned char *a = malloc(size), *b = malloc(size);
	size_t i;

	make_data(a, size, 1, 7, 3);
	make_data(b, size, 1, 7, 3);
	expect(pattern_same(a, b, size, why, sizeof(why)), "equal", size, 0);
	for (i = 0; i < size; i++) {
		a[i] ^= 0x10;
		expect(!pattern_same(a, b, size, why, sizeof(why)), "flip",
		       size, i);
		a[i] ^= 0x10;
	}
	make_data(a, size, 1, 8, 3);
	expect(!pattern_same(a, b, size, why, sizeof(why)) &&
	       !strcmp(why, "holds block 3 of append 8"), "append", size, 0);
	/* a torn block: the first half of another append */
	memcpy(a + size / 2, b + size / 2, size / 2);
	expect(!pattern_same(a, b, size, why, sizeof(why)), "torn", size, 0);
	make_data(a, size, 1, 8, 3);
	memcpy(a, b, size / 2);
	expect(!pattern_same(a, b, size, why, sizeof(why)), "torn", size, 1);
	make_data(a, size, 1, 7, 4);
	expect(!pattern_same(a, b, size, why, sizeof(why)) &&
	       !strcmp(why, "holds block 4 of append 7"), "block", size, 0);
	make_data(a, size, 2, 7, 3);
	expect(!pattern_same(a, b, size, why, sizeof(why)), "seed", size, 0);
	memset(a, 0, size);
	expect(!pattern_same(a, b, size, why, sizeof(why)) &&
	       strstr(why, "all zero"), "zero", size, 0);
	free(a);
	free(b);
}

static void test_oob(size_t size)
{
	unsigned char *a = malloc(size), *b = malloc(size);
	size_t i;

	pattern_oob(a, size, 1, 0, 0);
	memset(b, 0, size);
	expect(!pattern_same(b, a, size, why, sizeof(why)), "zero", size, 0);
	pattern_oob(b, size, 1, 0, 0);
	expect(pattern_same(a, b, size, why, sizeof(why)), "equal", size, 0);
	for (i = 0; i < size; i++) {
		a[i] ^= 0x80;
		expect(!pattern_same(a, b, size, why, sizeof(why)), "flip",
		       size, i);
		a[i] ^= 0x80;
	}
	pattern_oob(b, size, 1, 1, 0);
	expect(!pattern_same(a, b, size, why, sizeof(why)), "append", size, 0);
	pattern_oob(b, size, 1, 0, 1);
	expect(size < 16 || !pattern_same(a, b, size, why, sizeof(why)),
	       "block", size, 0);
	free(a);
	free(b);
}

int main(void)
{
	test_data(512);
	test_data(4096);
	test_oob(8);
	test_oob(12);
	test_oob(16);
	test_oob(64);
	test_oob(128);
	return 0;
}
