/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are the kernel's words for programs that are made from the core. */
#ifndef RFS_USER_H
#define RFS_USER_H

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plat/list.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define cpu_to_le16(x)	htole16(x)
#define cpu_to_le32(x)	htole32(x)
#define cpu_to_le64(x)	htole64(x)
#define le16_to_cpu(x)	le16toh(x)
#define le32_to_cpu(x)	le32toh(x)
#define le64_to_cpu(x)	le64toh(x)
#define WARN_ON_ONCE(c)	({ bool c_ = (c); assert(!c_); c_; })
#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define DIV_ROUND_UP(a, b)	(((a) + (b) - 1) / (b))
#define struct_size(p, member, n)	(sizeof(*(p)) + (n) * sizeof(*(p)->member))

void *rfs_alloc(size_t bytes);	/* zeroed; NULL if there is no memory */
void *rfs_alloc_raw(size_t bytes);	/* not zeroed */
void rfs_free(void *memory);

#ifdef RFS_MODULE	/* with its mem.c */
void *rfs_alloc_nofail(size_t bytes);
void rfs_free_nofail(void *memory);
bool rfs_nofail_left(u32 blocks);
#else
/* This may fail in user space: programs end then, and tests have each allocation fail. */
static inline void *rfs_alloc_nofail(size_t bytes)
{
	return rfs_alloc(bytes);
}

static inline void rfs_free_nofail(void *memory)
{
	rfs_free(memory);
}

static inline bool rfs_nofail_left(u32 blocks)
{
	(void)blocks;
	return true;
}
#endif

u32 rfs_crc(u32 crc, const void *data, size_t bytes);
u64 rfs_siphash(const __le64 key[2], const void *data, u32 len);

static inline void rfs_sort(void *base, size_t n, size_t bytes,
			    int (*cmp)(const void *a, const void *b))
{
	qsort(base, n, bytes, cmp);
}

#ifndef EUCLEAN
#define EUCLEAN	117
#endif

#endif
