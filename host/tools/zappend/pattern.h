/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What zappend writes, so that a block read back tells where it belongs.
 *
 * Data of a block, in 64-bit host-order words: the magic number, the number of
 * the append, the number of the block within the append, then a body that
 * depends on the seed only (filled once, outside of the measurement), and a
 * last word mixed from seed, append and block, to notice a torn block.
 * Metadata: a word of magic and append number, the block number, and words
 * that depend on the seed; cut to the metadata size. It is never all zero.
 */
#ifndef ZAPPEND_PATTERN_H
#define ZAPPEND_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_MAGIC 0x31444e455050415aull	/* "ZAPPEND1" */
#define PATTERN_MIN_BLOCK 32			/* bytes */

/* Fills the body of a data block of @size bytes. */
void pattern_body(void *block, size_t size, uint64_t seed);

/* Writes the words that differ from block to block. */
void pattern_stamp(void *block, size_t size, uint64_t seed, uint64_t append,
		   uint64_t n);

/* Fills @size bytes of metadata. */
void pattern_oob(void *oob, size_t size, uint64_t seed, uint64_t append,
		 uint64_t n);

/*
 * Compares @size bytes read with those expected. If they differ, describes
 * the difference in @why (@len bytes) and returns false.
 */
bool pattern_same(const void *got, const void *want, size_t size, char *why,
		  size_t len);

#endif
