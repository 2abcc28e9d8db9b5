/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is a set of numbers below n, such as those of zones. To change it, and to find the next
 * number that is in it, takes O(log n).
 */
#ifndef RFS_VOLUME_BITS_H
#define RFS_VOLUME_BITS_H

#include "plat/rfs_plat.h"

#define RFS_BITS_LEVELS	6	/* of 64: more than any u32 needs */
#define RFS_BITS_NONE	(~0U)

struct rfs_bits {
	/* A bit of a level says that a word of the level below is not 0. */
	u64 *level[RFS_BITS_LEVELS];
	u32 levels;
	u32 count;		/* numbers that are in it */
};

int rfs_bits_alloc(struct rfs_bits *bits, u32 n);	/* empty; 0 or -ENOMEM */
void rfs_bits_free(struct rfs_bits *bits);
void rfs_bits_put(struct rfs_bits *bits, u32 nr, bool in);

/*
 * Returns the first number of the set that is not below from, which may be n. RFS_BITS_NONE says
 * that there is none.
 */
u32 rfs_bits_next(const struct rfs_bits *bits, u32 from);

static inline bool rfs_bits_has(const struct rfs_bits *bits, u32 nr)
{
	return bits->level[0][nr / 64] >> nr % 64 & 1;
}

#define rfs_bits_each(bits, nr)					\
	for ((nr) = rfs_bits_next(bits, 0); (nr) != RFS_BITS_NONE;	\
	     (nr) = rfs_bits_next(bits, (nr) + 1))

#endif
