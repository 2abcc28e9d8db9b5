/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are the functions that the core takes from the kernel or from the C library. */
#ifndef RFS_PLAT_H
#define RFS_PLAT_H

#ifdef __KERNEL__
#include <linux/bitops.h>
#include <linux/bsearch.h>
#include <linux/bug.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/siphash.h>
#include <linux/sort.h>
#include <linux/stat.h>
#include <linux/string.h>

void *rfs_alloc(size_t bytes);	/* zeroed; NULL if there is no memory */
void *rfs_alloc_raw(size_t bytes);	/* not zeroed */

void rfs_free(void *memory);

/*
 * Does what rfs_alloc() does, for an operation that has begun: there is memory kept for it. A
 * request is never larger than a block of metadata, with its state in memory.
 */
void *rfs_alloc_nofail(size_t bytes);
void rfs_free_nofail(void *memory);
/*
 * Says whether so many of these can be allocated now, beside those that a check-point needs.
 * Callers whose work can wait ask before they begin.
 */
bool rfs_nofail_left(u32 blocks);

static inline u32 rfs_crc(u32 crc, const void *data, size_t bytes)
{
	return crc32c(crc, data, bytes);
}

/* The hash is SipHash-2-4. */
static inline u64 rfs_siphash(const __le64 key[2], const void *data, u32 len)
{
	siphash_key_t k = { { le64_to_cpu(key[0]), le64_to_cpu(key[1]) } };

	return siphash(data, len, &k);
}

static inline void rfs_sort(void *base, size_t n, size_t bytes,
			    int (*cmp)(const void *a, const void *b))
{
	sort(base, n, bytes, cmp, NULL);
}
#else
#include "plat/user.h"
#endif

#endif
