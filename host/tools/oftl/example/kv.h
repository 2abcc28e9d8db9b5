/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is a key-value store on objects, as an example of the use of atomic
 * writes. It has no journal, no log and no recovery of its own. After a power
 * cut each put and each delete has happened or not.
 *
 * Keys are spread over objects, the buckets. A change reads its bucket, and
 * writes the whole of it anew by one owrite().
 */
#ifndef KV_H
#define KV_H

#include "oftl.h"

#define KV_KEY_MAX	255	/* bytes */

struct kv {
	struct oftl *dev;
	/* Numbers of the buckets' objects, always the same on one volume */
	uint64_t first;
	uint64_t buckets;	/* how many, 1 to 2^32 */
};

/*
 * Returns -1 with errno after an error. ENOENT says that there is no such key,
 * ERANGE that the value has more bytes than room, and EBADMSG that an object
 * with the number of a bucket is none.
 */
ssize_t kv_get(const struct kv *kv, const char *key, void *value, size_t room);

/*
 * Puts a pair. EFBIG says that the bucket would have more than OFTL_WRITE_MAX
 * bytes; with more buckets, each has fewer bytes.
 */
int kv_put(const struct kv *kv, const char *key, const void *value, size_t len);
int kv_delete(const struct kv *kv, const char *key);

/* Makes changes of a key durable, and those of keys that share its bucket. */
int kv_sync(const struct kv *kv, const char *key);

/*
 * Calls @each for each pair. Ends early if it returns another value than 0, and
 * returns this value.
 */
int kv_each(const struct kv *kv,
	    int (*each)(void *arg, const char *key, const void *value,
			size_t len),
	    void *arg);

#endif
