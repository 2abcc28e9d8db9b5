// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The key-value store of the example: puts and deletes, with power cuts after each
 * operation of the drive. Each bucket is then as it was after one of its changes, which
 * is no older than one that was synced.
 */
#include <assert.h>
#include <stdio.h>

#include "kv.h"
#include "option.h"
#include "power.h"
#include "story.h"
#include "volume/volume.h"

#define KEYS	16
#define CHANGES	2048
#define LONGEST	9000	/* bytes of a value */

/* A change, and what all keys were afterwards: number of the put, 0: deleted */
struct change {
	u32 key;
	u32 value[KEYS];
	u32 begun, promised;	/* operations of the drive */
};

struct run {
	struct power *p;
	struct kv kv;
	struct change change[CHANGES + 1];
	u32 changes;
	u32 bucket[KEYS];	/* keys that share one have its first key */
};

static const char *key_of(u32 key)
{
	static char name[40];

	snprintf(name, sizeof(name), "key-%u%s", key, key % 3 ? "" : "-longer");
	return name;
}

/* The bytes of a put: its number, again and again, as often as it says itself */
static size_t value_of(u32 put, u32 *value)
{
	size_t n = 1 + put * 2654435761U % (LONGEST / 4), i;

	for (i = 0; i < n; i++)
		value[i] = put;
	return 4 * n;
}

static void change(struct run *r, u32 key)
{
	struct change *c = &r->change[r->changes + 1];
	u32 value[LONGEST / 4];

	assert(r->changes < CHANGES);
	*c = r->change[r->changes++];
	c->key = key;
	c->begun = r->p->dev->ops;
	c->promised = ~0U;
	if (c->value[key] && !power_pick(r->p, 4)) {
		c->value[key] = 0;
		must("kv_delete", kv_delete(&r->kv, key_of(key)));
	} else {
		c->value[key] = r->changes;
		must("kv_put", kv_put(&r->kv, key_of(key), value,
				      value_of(r->changes, value)));
	}
}

static void sync(struct run *r, u32 key)
{
	u32 i;

	must("kv_sync", kv_sync(&r->kv, key_of(key)));
	for (i = 1; i <= r->changes; i++)
		if (r->bucket[r->change[i].key] == r->bucket[key])
			r->change[i].promised = min(r->change[i].promised,
						    r->p->dev->ops);
}

/* Keys that share a bucket: a new store with each of them alone says so. */
static void find_buckets(struct run *r)
{
	u64 cursor, nr[KEYS];
	u32 i, j;

	for (i = 0; i < KEYS; i++) {
		must("kv_put", kv_put(&r->kv, key_of(i), "", 0));
		cursor = 0;
		assert(oftl_next(r->kv.dev, &cursor, &nr[i]) == 1);
		must("odelete", odelete(r->kv.dev, nr[i]));
		for (j = 0; nr[j] != nr[i]; j++)
			;
		r->bucket[i] = j;
	}
	must("oflush", oflush(r->kv.dev, nr[0]));
}

static bool equals(const struct kv *kv, u32 key, u32 put)
{
	static u8 got[LONGEST];
	u32 value[LONGEST / 4];
	ssize_t n = kv_get(kv, key_of(key), got, sizeof(got));

	if (!put)
		return n < 0 && errno == ENOENT;
	return n == (ssize_t)value_of(put, value) && !memcmp(got, value, n);
}

static bool is_as_after(const struct run *r, const struct kv *kv, u32 bucket,
			u32 nr)
{
	u32 key;

	for (key = 0; key < KEYS; key++)
		if (r->bucket[key] == bucket &&
		    !equals(kv, key, r->change[nr].value[key]))
			return false;
	return true;
}

static bool check_bucket(const struct run *r, const struct kv *kv, u32 ops,
			 u32 bucket)
{
	u32 nr;

	for (nr = r->changes; nr; nr--) {
		const struct change *c = &r->change[nr];

		if (r->bucket[c->key] != bucket || c->begun > ops)
			continue;
		if (is_as_after(r, kv, bucket, nr))
			return true;
		if (c->promised <= ops)
			return false;
	}
	return is_as_after(r, kv, bucket, 0);
}

static bool check(struct run *r, u32 ops, u32 inject)
{
	struct kv kv = { .dev = power_reopen(r->p, inject),
			 .first = r->kv.first,
			 .buckets = r->kv.buckets };
	bool well = kv.dev;
	u32 key;

	for (key = 0; well && key < KEYS; key++)
		if (r->bucket[key] == key)
			well = check_bucket(r, &kv, ops, key);
	return kv.dev && !oftl_close(kv.dev) && well;
}

enum { STEPS, SEED, SEEDS, EVERY, CACHE, TXN, OPTIONS };

static struct option opt[OPTIONS + 1] = {
	[STEPS] = { "steps", 150, 1, CHANGES, "changes and syncs" },
	[SEED] = { "seed", 1, 0, 1ULL << 40, "the first of them" },
	[SEEDS] = { "seeds", 1, 1, 1000, "that are run" },
	[EVERY] = { "every", 1, 1, 1000, "cuts after each of so many operations" },
	[CACHE] = { "cache", 0, 0, 1, "1: the drive has a volatile cache" },
	[TXN] = { "txn", 1, 0, 1, "0: recovery keeps incomplete transactions" },
};

#define USAGE								\
	"usage: kv_cuts [NAME=N]...\n"					\
	"Records changes of the key-value store, and cuts the power among them.\n" \
	"Exit status: 0 all is as promised, 1 not, 2 wrong arguments or a call failed."

static u64 points;

static bool run(struct run *r, u64 seed)
{
	struct power_drive drive = { .oob = 64, .cache = opt[CACHE].value,
				     .pieces = true };
	bool well = true;
	u32 i, ops;

	memset(r, 0, sizeof(*r));
	r->p = power_new(&drive, seed);
	r->kv = (struct kv){ .dev = power_open(r->p), .first = 1000,
			     .buckets = 4 };
	find_buckets(r);
	ops = r->p->dev->ops;
	for (i = 0; i < opt[STEPS].value; i++) {
		u32 key = power_pick(r->p, KEYS);

		if (power_pick(r->p, 4))
			change(r, key);
		else
			sync(r, key);
	}
	for (; well && ops <= r->p->dev->ops; ops += opt[EVERY].value) {
		power_cut(r->p, ops, power_pick(r->p, 8));
		well = check(r, ops, opt[TXN].value ? 0 : RFS_INJECT_TXN);
		points++;
		if (!well)
			printf("FAILED: seed %llu, after operation %u of %u\n",
			       (unsigned long long)seed, ops, r->p->dev->ops);
	}
	must("close", oftl_close(r->kv.dev));
	power_free(r->p);
	return well;
}

int main(int argc, char **argv)
{
	static struct run r;
	bool well = true;
	u64 i;

	options(argc, argv, 1, USAGE, opt);
	for (i = 0; well && i < opt[SEEDS].value; i++)
		well = run(&r, opt[SEED].value + i);
	if (well)
		printf("%llu points\n", (unsigned long long)points);
	return !well;
}
