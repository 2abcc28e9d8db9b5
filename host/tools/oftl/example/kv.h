/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A key-value store on objects, as an example of what atomic writes are good for: it
 * has no journal, no log and no recovery of its own, and after a power cut each put and
 * each delete has happened or not.
 *
 * Keys are spread over objects, the buckets. A change reads its bucket, and writes the
 * whole of it anew by one owrite().
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
 * -1 with errno. ENOENT: there is no such key; ERANGE: the value has more bytes than room;
 * EBADMSG: an object with the number of a bucket is none
 */
ssize_t kv_get(const struct kv *kv, const char *key, void *value, size_t room);

/* EFBIG: the bucket would have more than OFTL_WRITE_MAX bytes; more buckets have less each */
int kv_put(const struct kv *kv, const char *key, const void *value, size_t len);
int kv_delete(const struct kv *kv, const char *key);

/* What was done to a key is durable, and to those that share its bucket */
int kv_sync(const struct kv *kv, const char *key);

/* Of each pair; ends early if @each returns another value than 0, which it returns */
int kv_each(const struct kv *kv,
	    int (*each)(void *arg, const char *key, const void *value,
			size_t len),
	    void *arg);

#endif
