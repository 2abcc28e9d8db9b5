// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls on objects of a drive in memory, whose power is cut after its operations: see
 * story.h for what is looked for.
 */
#include <stdio.h>

#include "option.h"
#include "power.h"
#include "story.h"
#include "volume/volume.h"

enum { STEPS, SEED, SEEDS, OOB, CACHE, PIECES, MOST, EVERY, TXN, PARTS, FLUSHES, OPTIONS };

static struct option opt[OPTIONS + 1] = {
	[STEPS] = { "steps", 100, 1, 2000, "calls" },
	[SEED] = { "seed", 1, 0, 1ULL << 40, "the first of them" },
	[SEEDS] = { "seeds", 1, 1, 10000, "that are run" },
	[OOB] = { "oob", 64, 0, 64, "bytes of page metadata" },
	[CACHE] = { "cache", 0, 0, 1, "1: the drive has a volatile cache" },
	[PIECES] = { "pieces", 1, 0, 1, "1: small writes may be pieces of blocks" },
	[MOST] = { "most", 40000, 4096, OFTL_WRITE_MAX, "bytes of a write" },
	[EVERY] = { "every", 1, 1, 1000, "cuts after each of so many operations" },
	[TXN] = { "txn", 1, 0, 1, "0: recovery keeps incomplete transactions" },
	[PARTS] = { "parts", 1, 0, 1, "0: recovery keeps pieces of incomplete transactions" },
	[FLUSHES] = { "flushes", 1, 0, 1, "0: oflush() is left out" },
};

#define USAGE								\
	"usage: cuts [NAME=N]...\n"					\
	"Records calls on objects, and cuts the power after operations of the drive.\n" \
	"Exit status: 0 all is as promised, 1 not, 2 wrong arguments or a call failed."

static u64 points, operations, largest;

static u64 operations_now(void *p)
{
	return ((struct power *)p)->dev->ops;
}

static const char *check(const struct story *s, struct power *p, u32 ops)
{
	struct oftl *dev = power_reopen(p,
		(opt[TXN].value ? 0 : RFS_INJECT_TXN) |
		(opt[PARTS].value ? 0 : RFS_INJECT_PARTS));
	const char *said = dev ? story_check(s, dev, ops, ops) :
			   oftl_message();

	if (dev && oftl_close(dev) && !said)
		said = oftl_message();
	return said;
}

/* Cut after each of the operations; false after a message */
static bool cut_all(const struct story *s, struct power *p, u64 seed)
{
	const char *said;
	u32 ops;

	for (ops = 1; ops <= p->dev->ops; ops += opt[EVERY].value) {
		u32 way = power_pick(p, 8);

		power_cut(p, ops, way);
		said = check(s, p, ops);
		points++;
		if (!said)
			continue;
		printf("FAILED: seed %llu, after operation %u of %u, way %u: %s\n",
		       (unsigned long long)seed, ops, p->dev->ops, way, said);
		return false;
	}
	return true;
}

static bool run(struct story *s, u64 seed)
{
	struct power_drive drive = { .oob = opt[OOB].value,
				     .cache = opt[CACHE].value,
				     .pieces = opt[PIECES].value };
	struct power *p = power_new(&drive, seed);
	bool well;
	u32 i;

	*s = (struct story){ .dev = power_open(p), .now = operations_now,
			     .arg = p, .most = opt[MOST].value,
			     .flushes = opt[FLUSHES].value };
	story_begin(s, seed);
	for (i = 0; i < opt[STEPS].value; i++)
		story_step(s);
	for (i = 1; i <= s->events; i++)
		largest = max_t(u64, largest, s->event[i].len);
	operations += p->dev->ops;
	well = cut_all(s, p, seed);
	must("close", oftl_close(s->dev));
	power_free(p);
	return well;
}

int main(int argc, char **argv)
{
	static struct story s;
	bool well = true;
	u64 i;

	options(argc, argv, 1, USAGE, opt);
	for (i = 0; well && i < opt[SEEDS].value; i++)
		well = run(&s, opt[SEED].value + i);
	if (!well)
		return 1;
	printf("%llu operations, %llu points, the largest write %llu bytes\n",
	       (unsigned long long)operations, (unsigned long long)points,
	       (unsigned long long)largest);
	return 0;
}
