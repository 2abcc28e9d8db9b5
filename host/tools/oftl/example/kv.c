// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

/*
 * A bucket has the number of bytes of its pairs, and the pairs, one after the
 * other.
 */
struct bucket {
	uint32_t bytes;
	uint8_t pairs[OFTL_WRITE_MAX - sizeof(uint32_t)];
};

/*
 * A pair is followed by its key and its value. Lengths are bytes, since a pair
 * may begin anywhere.
 */
struct pair {
	uint8_t value_len[4];	/* a number in the order of this machine */
	uint8_t key_len;
};

static int error(int number)
{
	errno = number;
	return -1;
}

/* This is FNV-1a, of 64 bits. */
static uint64_t bucket_of(const struct kv *kv, const char *key)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *key; key++)
		hash = (hash ^ (uint8_t)*key) * 0x100000001b3;
	return kv->first + (hash ^ hash >> 32) % kv->buckets;
}

static size_t value_len(const struct pair *p)
{
	uint32_t len;

	memcpy(&len, p->value_len, sizeof(len));
	return len;
}

static size_t pair_bytes(const struct pair *p)
{
	return sizeof(*p) + p->key_len + value_len(p);
}

/*
 * Returns the pair at *at, and moves *at behind it. NULL says that there is
 * none, or that the pair is damaged.
 */
static const struct pair *next_pair(const struct bucket *b, size_t *at)
{
	const struct pair *p = (const void *)(b->pairs + *at);

	if (b->bytes - *at < sizeof(*p) || b->bytes - *at < pair_bytes(p))
		return NULL;
	*at += pair_bytes(p);
	return p;
}

static const struct pair *find(const struct bucket *b, const char *key)
{
	const struct pair *p;
	size_t at = 0;

	while ((p = next_pair(b, &at)))
		if (p->key_len == strlen(key) &&
		    !memcmp(p + 1, key, p->key_len))
			break;
	return p;
}

/*
 * Loads a bucket, which is empty if it was never written. Returns NULL with
 * errno; otherwise the caller frees it.
 */
static struct bucket *load(const struct kv *kv, uint64_t nr)
{
	struct bucket *b = calloc(1, sizeof(*b));
	ssize_t n;
	size_t at = 0;

	if (!b)
		return NULL;
	n = oread(kv->dev, nr, 0, sizeof(*b), b);
	if (n < 0 && errno != ENOENT)
		goto out;
	if (b->bytes > sizeof(b->pairs))
		goto damaged;
	while (next_pair(b, &at))
		;
	if (at == b->bytes)
		return b;
damaged:
	errno = EBADMSG;
out:
	free(b);
	return NULL;
}

/*
 * Writes the whole bucket with one write. This is all that keeps it whole after
 * a power cut.
 */
static int store(const struct kv *kv, uint64_t nr, const struct bucket *b)
{
	size_t bytes = sizeof(b->bytes) + b->bytes;
	int ret = owrite(kv->dev, nr, 0, bytes, b);

	if (!ret || errno != ENOENT)
		return ret;
	return ocreate(kv->dev, nr) ? -1 : owrite(kv->dev, nr, 0, bytes, b);
}

static void take_out(struct bucket *b, const struct pair *p)
{
	size_t bytes = pair_bytes(p), at = (const uint8_t *)p - b->pairs;

	memmove(b->pairs + at, b->pairs + at + bytes, b->bytes - at - bytes);
	b->bytes -= bytes;
}

static int add(struct bucket *b, const char *key, const void *value, size_t len)
{
	struct pair p = { .key_len = strlen(key) };
	uint32_t number = len;

	memcpy(p.value_len, &number, sizeof(number));
	if (len > sizeof(b->pairs) ||
	    pair_bytes(&p) > sizeof(b->pairs) - b->bytes)
		return error(EFBIG);
	memcpy(b->pairs + b->bytes, &p, sizeof(p));
	memcpy(b->pairs + b->bytes + sizeof(p), key, p.key_len);
	memcpy(b->pairs + b->bytes + sizeof(p) + p.key_len, value, len);
	b->bytes += pair_bytes(&p);
	return 0;
}

ssize_t kv_get(const struct kv *kv, const char *key, void *value, size_t room)
{
	struct bucket *b = load(kv, bucket_of(kv, key));
	const struct pair *p = b ? find(b, key) : NULL;
	ssize_t ret = -1;

	if (!b)
		return ret;
	if (!p) {
		errno = ENOENT;
	} else if (value_len(p) > room) {
		errno = ERANGE;
	} else {
		ret = value_len(p);
		memcpy(value, (const uint8_t *)(p + 1) + p->key_len, ret);
	}
	free(b);
	return ret;
}

int kv_put(const struct kv *kv, const char *key, const void *value, size_t len)
{
	uint64_t nr = bucket_of(kv, key);
	const struct pair *p;
	struct bucket *b;
	int ret;

	if (!*key || strlen(key) > KV_KEY_MAX)
		return error(EINVAL);
	b = load(kv, nr);
	if (!b)
		return -1;
	p = find(b, key);
	if (p)
		take_out(b, p);
	ret = add(b, key, value, len);
	if (!ret)
		ret = store(kv, nr, b);
	free(b);
	return ret;
}

int kv_delete(const struct kv *kv, const char *key)
{
	uint64_t nr = bucket_of(kv, key);
	struct bucket *b = load(kv, nr);
	const struct pair *p = b ? find(b, key) : NULL;
	int ret = -1;

	if (p) {
		take_out(b, p);
		ret = store(kv, nr, b);
	} else if (b) {
		errno = ENOENT;
	}
	free(b);
	return ret;
}

int kv_sync(const struct kv *kv, const char *key)
{
	return oflush(kv->dev, bucket_of(kv, key));
}

static int each_of(const struct bucket *b,
		   int (*each)(void *arg, const char *key, const void *value,
			       size_t len), void *arg)
{
	char key[KV_KEY_MAX + 1];
	const struct pair *p;
	size_t at = 0;
	int ret = 0;

	while (!ret && (p = next_pair(b, &at))) {
		memcpy(key, p + 1, p->key_len);
		key[p->key_len] = 0;
		ret = each(arg, key, (const uint8_t *)(p + 1) + p->key_len,
			   value_len(p));
	}
	return ret;
}

int kv_each(const struct kv *kv,
	    int (*each)(void *arg, const char *key, const void *value,
			size_t len),
	    void *arg)
{
	uint64_t cursor = 0, nr;
	int ret;

	while ((ret = oftl_next(kv->dev, &cursor, &nr)) == 1) {
		struct bucket *b;

		if (nr - kv->first >= kv->buckets)	/* another program's */
			continue;
		b = load(kv, nr);
		ret = b ? each_of(b, each, arg) : -1;
		free(b);
		if (ret)
			return ret;
	}
	return ret;
}
