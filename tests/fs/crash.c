// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a workload, then cuts the power after each of its operations in many
 * ways, and each time mounts, checks and asks the oracle.
 *
 *	crash WORKLOAD [seed=N] [points=N] [oob=0|64] [volatile=1] [inject=NAME]
 *	      [open=N] [active=N] [rescan=1|2] [groups=N] [gc=N] [quantize=N]
 *	      [async=1] [quota=1] [pieces=0] [runs=0] [ways=N] [slow=N] [replica=N]
 *	      [errors=N]
 *
 * async: see workload.h.
 * rescan: the check-point zones are empty then, with 2 inode map and node map are
 * gone too; the volume is not mounted but rescanned. With 2 the power is cut between
 * steps only: of a check-point under way it cannot be known how far it had come.
 * Of files that have leaves which were made of pages then, see oracle.h.
 * Prints one line; exit status 1 at the first point that fails.
 */
#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "flashless_check.h"
#include "option.h"
#include "workload.h"
#include "home/replica.h"
#include "space/space.h"
#include "tree/dir.h"
#include "checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "tools/tools.h"

#define ARENA		(192U << 20)

struct crash {
	struct run r;
	struct memdev *base;	/* the medium where nothing is in doubt */
	struct memdev *work, *again;
	struct memdev *fresh;	/* a drive in place of one that is gone */
	u32 rescan;
	u64 points, recut;
	u64 older;		/* rescans that took the check-point before */
	/* leaves that rescans have made of pages, their inodes, and those with a wrong sum */
	u64 leaves_made, inodes_made, unlike;
	u64 cut_ops;		/* sum of operations in flight */
	u64 cut_slow;		/* the same to the slow device */
	u64 flashless, restored;	/* what was read without flash, written to a new drive */
	u64 slowless;		/* what was read without the slow device */
	u64 none;		/* where there was no replica */
	u64 known;		/* replicas of which it was known what they must have */
};

static char text[400];

static void say(void *arg, const char *what)
{
	(void)arg;
	if (!text[0])
		snprintf(text, sizeof(text), "fsck: %s", what);
}

static const char *check(struct rfs_fs *fs)
{
	struct rfs_report report = { .say = say, .read_data = true };
	int ret;

	text[0] = 0;
	ret = rfs_check(fs, &report);
	if (ret)
		snprintf(text, sizeof(text), "fsck fails with %d", ret);
	return text[0] ? text : NULL;
}

/*
 * Write on after a recovery, check-point, write more, and be cut once again
 * with all of it written: it must be there.
 */
static const char *write_on(struct crash *c, struct memdev *dev,
			    struct rfs_fs **fs)
{
	const char *name = dev == c->again ? "after-2" : "after-1";
	struct rfs_new how = { .mode = S_IFREG | 0600, .uid = 0 };
	static u8 block[RFS_BLOCK_BYTES], got[RFS_BLOCK_BYTES];
	const void *data = block;
	const char *fault;
	u32 ino, i;
	int ret;

	memset(block, 0x77, sizeof(block));
	ret = rfs_create(*fs, RFS_ROOT_INO, name, &how, &ino);
	for (i = 0; !ret && i < 12; i++) {
		ret = rfs_write(*fs, ino, i * 3, 1, &data, RFS_BLOCK_BYTES);
		if (!ret && i == 8)
			ret = rfs_checkpoint(*fs, 0);
		fault = !ret && i == 8 ? check(*fs) : NULL;
		if (fault)
			return fault;
	}
	if (!ret)
		ret = rfs_fsync(*fs, ino);
	rfs_unmount_nosync(*fs);
	*fs = NULL;
	if (!ret)
		ret = rfs_mount(&memdev_ops, dev, &dev->geo, false,
				c->r.inject & ~RFS_INJECT_RESET, fs);
	if (!ret)
		ret = rfs_dir_find(*fs, RFS_ROOT_INO, name, 7, &ino);
	for (i = 0; !ret && i < 12; i++) {
		ret = rfs_read(*fs, ino, i * 3, got);
		if (!ret && memcmp(got, block, sizeof(got)))
			ret = -EIO;
	}
	if (!ret)
		return check(*fs);
	snprintf(text, sizeof(text), "writing on: %d", ret);
	return text;
}

/* Check-points are gone, and both maps, if it is asked for. */
static void wipe(struct crash *c, struct memdev *dev)
{
	u32 at;

	for (at = 0; at < RFS_CP_ZONES; at++) {
		memset(&dev->page[at * ZONE_BLOCKS], 0,
		       ZONE_BLOCKS * sizeof(*dev->page));
		dev->wp[at] = 0;
	}
	for (; c->rescan == 2 && at < dev->geo.zones * ZONE_BLOCKS; at++) {
		const struct rfs_head *head = (void *)dev->page[at].data;

		if (dev->page[at].state == MEM_OK && rfs_head_ok(head,
		    c->r.fs->volume, head->type) &&
		    (head->type == RFS_NMAP || (head->type >= RFS_IMAP &&
						head->type <= RFS_ZTAB)))
			dev->page[at].state = MEM_TORN;
	}
}

static void made(void *oracle, u32 ino)
{
	struct oracle *o = oracle;

	if (o->made < MADE_MAX)
		o->made_of[o->made++] = ino;
}

static int rescan(struct crash *c, struct memdev *dev, struct rfs_fs **fs)
{
	struct rfs_report report = { .made = made, .arg = c->r.o };
	struct rfs_rescue rescue;
	bool mounted = c->points % 4 == 1;
	int ret = 0;

	/* what a check-point has left that was not finished misleads nobody */
	if (mounted)
		ret = rfs_mount(&memdev_ops, dev, &dev->geo, false, 0, fs);
	if (ret)
		return ret;
	if (mounted)
		rfs_unmount_nosync(*fs);
	wipe(c, dev);
	ret = rfs_rescan(&memdev_ops, dev, &dev->geo, &report, &rescue, fs);
	c->older += rescue.older;
	c->leaves_made += rescue.leaves_made;
	c->inodes_made += rescue.inodes_made;
	c->unlike += rescue.unlike;
	if (!ret && rescue.damaged) {
		rfs_unmount_nosync(*fs);
		ret = -EUCLEAN;
	}
	return ret;
}

/* Is the replica one that was made, and no older than the last one that was durable? */
static const char *replica_known(struct crash *c, u32 ops, u64 seq, u64 digest)
{
	u32 i;

	for (i = 0; i < c->r.replicas; i++) {
		const struct replica *at = &c->r.replica_of[i];

		if (at->ops <= ops && at->seq > seq)
			return "without flash: the replica is an older one";
		if (at->seq != seq)
			continue;
		c->known++;
		if (at->digest != digest)
			return "without flash: it is not what the replica had";
	}
	return NULL;
}

/* There may be none if one had no room, or its head could not be written. */
static bool replica_may_lack(struct crash *c, u32 ops)
{
	const struct replica *last = NULL;
	u32 i;

	for (i = 0; i < c->r.replicas && c->r.replica_of[i].ops <= ops; i++)
		last = &c->r.replica_of[i];
	return c->r.fs->stats.replicas_dropped || (last && !last->seq);
}

/* The drive is gone: the slow device alone is read, and at some points a new drive made. */
static const char *without_flash(struct crash *c, struct memdev *dev, u32 ops)
{
	u64 digest, seq, after, losses;
	const char *fault = NULL;
	struct rfs_fs *fs;
	int ret = flashless_digest_seq(dev->geo.slow, &digest, &seq);

	if (ret == -ENOENT && replica_may_lack(c, ops)) {
		c->none++;
		return NULL;
	}
	if (ret) {
		snprintf(text, sizeof(text), "without flash: %d", ret);
		return text;
	}
	c->flashless++;
	/* of a check-point that a recovery has made nobody knows */
	if (dev == c->work)
		fault = replica_known(c, ops, seq, digest);
	if (fault || c->points % 4 != 1)
		return fault;
	memdev_copy(c->fresh, dev);
	memset(c->fresh->page, 0, (size_t)dev->geo.zones * ZONE_BLOCKS *
				  sizeof(*c->fresh->page));
	memset(c->fresh->wp, 0, dev->geo.zones * sizeof(*c->fresh->wp));
	fault = flashless_restore(c->fresh, &losses);
	if (fault)
		return fault;
	ret = rfs_mount(&memdev_ops, c->fresh, &c->fresh->geo, false, 0, &fs);
	if (!ret) {
		fault = check(fs);
		ret = flashless_digest_of(fs, &after);
		rfs_unmount_nosync(fs);
	}
	c->restored++;
	if (!fault && (ret || after != digest)) {
		snprintf(text, sizeof(text), "restored: %d, or files lack what was there", ret);
		fault = text;
	}
	return fault;
}

/* The slow device is gone: what flash has is what it is with it, and nothing else lacks. */
static const char *without_slow(struct crash *c, struct memdev *dev)
{
	u64 with, without;
	int ret = slowless_digest(dev, false, &with);

	if (!ret)
		ret = slowless_digest(dev, true, &without);
	c->slowless++;
	if (!ret && with == without)
		return NULL;
	snprintf(text, sizeof(text), "without the slow device: %d, or flash has something else", ret);
	return text;
}

/* The replica that a mount has made is what the volume is. */
static const char *replica_new(struct memdev *dev, struct rfs_fs *fs)
{
	u64 digest, is, seq;
	int ret = flashless_digest_of(fs, &is);

	if (fs->home->replica->seq != fs->cp_seq || !fs->home->replica->blocks)
		return NULL;
	if (!ret)
		ret = flashless_digest_seq(dev->geo.slow, &digest, &seq);
	if (!ret && seq == fs->cp_seq && digest == is)
		return NULL;
	snprintf(text, sizeof(text), "replica of a recovery: %d, or it is not the volume", ret);
	return text;
}

/* Mount, check, ask the oracle; go on writing at some points. */
static const char *verify(struct crash *c, struct memdev *dev, u32 ops,
			  const struct mark *mark, bool go_on)
{
	const char *fault = c->r.replica ? without_flash(c, dev, ops) : NULL;
	struct rfs_fs *fs;
	int ret;

	if (!fault && dev->geo.slow && c->points % 8 == 5)
		fault = without_slow(c, dev);
	if (fault)
		return fault;
	if (c->rescan)
		ret = rescan(c, dev, &fs);
	else
		ret = rfs_mount(&memdev_ops, dev, &dev->geo, false,
				c->r.inject & ~RFS_INJECT_RESET, &fs);
	if (ret) {
		snprintf(text, sizeof(text), "%s fails with %d",
			 c->rescan ? "rescan" : "mount", ret);
		return text;
	}
	rfs_policy_set(fs, &c->r.policy);
	/* fsck compares usage with the inodes; a rescan leaves it to a mount */
	if (c->r.quota && c->rescan)
		ret = rfs_quota_on(fs);
	fault = ret || fs->counting != c->r.quota || fs->miscounted ?
		"usage of quotas is not kept" : check(fs);
	if (!fault && c->r.replica)
		fault = replica_new(dev, fs);
	if (!fault)
		fault = oracle_check(c->r.o, fs, ops, mark->changes,
				     mark->events);
	if (!fault && go_on)
		fault = write_on(c, dev, &fs);
	if (!fault && dev->refused)
		fault = "too many zones open or active";
	if (fs)
		rfs_unmount_nosync(fs);
	return fault;
}

/* State of block i of n that are in flight to a device, in one of many ways. */
static u8 outcome(struct crash *c, u32 way, u32 i, u32 n, u32 one)
{
	switch (way % 8) {
	case 0:
		return MEM_ABSENT;
	case 1:
		return MEM_OK;
	case 2:
		return i == one ? MEM_ABSENT : MEM_OK;
	case 3:
		return i == one ? MEM_TORN : MEM_OK;
	case 4:
		return pick(&c->r, 3);
	case 5:
		return i == one ? MEM_OK : MEM_ABSENT;
	case 6:
		return pick(&c->r, 8) ? MEM_OK : pick(&c->r, 2);
	}
	return i == n - 1 ? MEM_TORN : MEM_OK;
}

/* The first that was in flight or volatile after `ops` operations, from `at` on */
static u32 first_open(const struct memdev *dev, u32 at, u32 ops)
{
	while (at < ops && !memdev_in_flight(dev, at, ops))
		at++;
	return at;
}

static void cut(struct crash *c, struct memdev *to, const struct memdev *notes,
		u32 from, u32 ops, u32 way, u32 nth)
{
	/* of the drive, and of the slow device, which fares otherwise */
	u32 n[2] = { 0 }, at[2] = { 0 }, ways[2] = { way, way }, i;

	if (notes->slow_block)
		ways[1] = pick(&c->r, 8);
	for (i = from; i < ops; i++)
		n[notes->op[i].type == MEM_SLOW_WRITE] +=
			memdev_in_flight(notes, i, ops);
	c->cut_ops += n[0];
	c->cut_slow += n[1];
	for (i = from; i < ops; i++) {
		u32 slow = notes->op[i].type == MEM_SLOW_WRITE;
		u8 state = memdev_settled(&notes->op[i]);

		if (memdev_in_flight(notes, i, ops))
			state = outcome(c, ways[slow], at[slow]++, n[slow],
					nth % n[slow]);
		memdev_replay(to, &notes->op[i], state);
	}
}

/* Cut recovery itself, or what was written after it, and recover. */
static const char *cut_again(struct crash *c, u32 ops, const struct mark *mark,
			     u32 way)
{
	u32 at = c->work->ops ? pick(&c->r, c->work->ops) : 0;
	u32 open = first_open(c->work, 0, at), i;

	for (i = 0; i < open; i++)
		memdev_replay(c->again, &c->work->op[i], MEM_OK);
	cut(c, c->again, c->work, open, at, way, pick(&c->r, 64));
	c->recut++;
	return verify(c, c->again, ops, mark, true);
}

static const char *point(struct crash *c, u32 from, u32 ops, u32 way, u32 nth,
			 const struct mark *mark)
{
	bool twice = c->points % 8 == 3 && c->rescan != 2;
	const char *fault;

	c->r.o->made = 0;	/* also what a second rescan finds made already */
	memdev_copy(c->work, c->base);
	cut(c, c->work, c->r.dev, from, ops, way, nth);
	if (twice)
		memdev_copy(c->again, c->work);
	if (twice && c->rescan)
		wipe(c, c->again);	/* as it is when the rescan begins */
	fault = verify(c, c->work, ops, mark, c->points % 4 == 3);
	if (!fault && twice)
		fault = cut_again(c, ops, mark, way + 1);
	c->points++;
	return fault;
}

static const char *cut_everywhere(struct crash *c, u32 points)
{
	u32 ops, done = 0, mark = 0, way, ways;
	const char *fault;

	/* done: operations that base has */
	for (ops = 1; ops <= c->r.dev->ops; ops++) {
		u32 open = first_open(c->r.dev, done, ops);
		u64 want = (u64)points * ops / c->r.dev->ops;

		for (; done < open; done++)
			memdev_replay(c->base, &c->r.dev->op[done],
				      memdev_settled(&c->r.dev->op[done]));
		while (mark + 1 < c->r.marks && c->r.mark[mark].ops < ops)
			mark++;
		ways = want > c->points ? want - c->points : 0;
		if (c->rescan == 2 && c->r.mark[mark].ops != ops)
			ways = 0;	/* a check-point may be under way */
		for (way = 0; way < ways; way++) {
			u32 kind = ways >= 8 ? way : pick(&c->r, 8);

			fault = point(c, open, ops, kind, pick(&c->r, 4096),
				      &c->r.mark[mark]);
			if (fault) {
				printf("%s: after operation %u of %u, way %u: %s\n",
				       c->r.w->name, ops, c->r.dev->ops, kind,
				       fault);
				return fault;
			}
		}
	}
	return NULL;
}

enum {
	POINTS, SEED, OOB, VOLATILE, OPEN, ACTIVE, POLICY_GROUPS, GC, QUANTIZE,
	ASYNC, WITH_QUOTA, WITH_PIECES, WITH_RUNS, WAYS, RESCAN, SLOW, REPLICA,
	ERRORS, OPTIONS
};

static struct option opt[OPTIONS + 1] = {
	[POINTS] = { "points", 10000, 1, 1ULL << 40, "power cuts" },
	[SEED] = { "seed", 1, 0, 1ULL << 40, "of all that is random" },
	[OOB] = { "oob", 64, 0, 128, "bytes of page metadata" },
	[VOLATILE] = { "volatile", 0, 0, 1, "1: the drive has a volatile cache" },
	[OPEN] = { "open", 0, 0, ZONES, "zones that may be open; 0: all" },
	[ACTIVE] = { "active", 0, 0, ZONES, "zones that may be active; 0: all" },
	[POLICY_GROUPS] = { "groups", 4, 1, RFS_GROUPS_MAX, "of data by hotness" },
	[GC] = { "gc", 0, 0, RFS_GCS - 1,
		 "0 cost-hotness, 1 cost-benefit, 2 greedy" },
	[QUANTIZE] = { "quantize", 0, 0, RFS_QUANTIZES - 1,
		       "numbers of enum rfs_quantize" },
	[ASYNC] = { "async", 0, 0, 1, "1: several appends in flight, as the module's" },
	[WITH_QUOTA] = { "quota", 0, 0, 1, "1: usage is counted" },
	[WITH_PIECES] = { "pieces", 1, 0, 1,
			  "1: small writes are pieces where they can be" },
	[WITH_RUNS] = { "runs", 1, 0, 1, "1: leaves are runs where they can be" },
	[WAYS] = { "ways", 1, 1, 8, "zones that a group stripes over" },
	[RESCAN] = { "rescan", 0, 0, 2,
		     "1: check-points are lost, 2: both maps, too" },
	[SLOW] = { "slow", 0, 0, 100000,
		   "blocks of a slow device; 0: there is none" },
	[REPLICA] = { "replica", 0, 0, 10000,
		      "of the metadata there, one in so many ms less 1; 0: none" },
	[ERRORS] = { "errors", 0, 0, 1000,
		     "of 1,000 writes and flushes of the replica, those that fail" },
};

#define USAGE								\
	"usage: crash WORKLOAD [NAME=N]... [inject=RULE]...\n"		\
	"Records a workload, cuts its power at points of it, and checks what a\n" \
	"mount finds. Workloads are in workload.c. inject: without the RULE\n" \
	"transaction, reset, tombstone, piece, parts, tail, home, slow, states,\n" \
	"replica, kept, died, gap or wait, to see it fail. Exit status: 0 all is as\n" \
	"promised, 1 not, 2 wrong arguments. Example: crash mixed seed=5 async=1"

#define RULES	14

/* The rules that arguments leave out; these arguments are taken away */
static u32 inject(int *argc, char **argv)
{
	static const char *const name[RULES] = {
		"inject=transaction", "inject=reset", "inject=tombstone",
		"inject=piece", "inject=tail", "inject=home", "inject=slow",
		"inject=states", "inject=parts", "inject=replica",
		"inject=kept", "inject=died", "inject=gap", "inject=wait"
	};
	static const u32 rule[RULES] = {
		RFS_INJECT_TXN, RFS_INJECT_RESET, RFS_INJECT_TOMB,
		RFS_INJECT_PIECE, RFS_INJECT_SCAN, RFS_INJECT_HOME,
		RFS_INJECT_SLOW, RFS_INJECT_STATES, RFS_INJECT_PARTS,
		RFS_INJECT_REPLICA, RFS_INJECT_KEPT,
		RFS_INJECT_DIED, RFS_INJECT_GAP, RFS_INJECT_WAIT
	};
	u32 found = 0, n;
	int i, kept = 2;

	for (i = 2; i < *argc; i++) {
		for (n = 0; n < RULES && strcmp(argv[i], name[n]); n++)
			;
		if (n < RULES)
			found |= rule[n];
		else
			argv[kept++] = argv[i];
	}
	if (*argc > 2)
		*argc = kept;
	return found;
}

static const struct workload *workload(const char *name)
{
	const struct workload *w;

	for (w = workloads; *w->name; w++)
		if (name && !strcmp(name, w->name))
			return w;
	fprintf(stderr, "crash: the first argument must be --help or one of:");
	for (w = workloads; *w->name; w++)
		fprintf(stderr, " %s", w->name);
	fprintf(stderr, "\n");
	exit(2);
}

/* Sets of zones, and the best of them, are what a look at each zone says. */
static void compare_victim(const struct rfs_fs *fs, enum rfs_clean how, u64 now,
			   u64 ways, u32 nr)
{
	const char *wrong = rfs_sets_wrong(fs);

	if (rfs_victim_scan(fs, how, now, ways) != nr)
		wrong = "another zone is the best victim";
	if (!wrong)
		return;
	fprintf(stderr, "crash: %s\n", wrong);
	abort();
}

static void tell(const struct crash *c, double seconds, bool failed)
{
	const struct rfs_stats *stats = &c->r.fs->stats;

	if (c->rescan)
		printf("%llu of them with the check-point before the last; %llu leaves made of pages, of %llu inodes, %llu with a wrong sum, %llu not as they were; ",
		       (unsigned long long)c->older,
		       (unsigned long long)c->leaves_made,
		       (unsigned long long)c->inodes_made,
		       (unsigned long long)c->unlike,
		       (unsigned long long)c->r.o->unlike);
	printf("%s: %u operations, %llu points, %llu cut twice, %.1f blocks in flight, %llu check-points, %llu copied, %llu resets, %llu pieces, %llu merged, %llu folded, ",
	       c->r.w->name, c->r.dev->ops, (unsigned long long)c->points,
	       (unsigned long long)c->recut,
	       (double)c->cut_ops / (c->points ? c->points : 1),
	       (unsigned long long)stats->checkpoints,
	       (unsigned long long)stats->copied,
	       (unsigned long long)stats->resets,
	       (unsigned long long)stats->pieces,
	       (unsigned long long)stats->merged,
	       (unsigned long long)stats->folded);
	if (c->r.fs->ways > 1)
		printf("up to %u zones of a group, ", c->r.widest);
	if (c->r.fs->home)
		printf("%.1f slow blocks in flight, %llu homed, %llu evicted, %llu filled, %llu bypassed, ",
		       (double)c->cut_slow / (c->points ? c->points : 1),
		       (unsigned long long)stats->homed,
		       (unsigned long long)stats->evicted,
		       (unsigned long long)stats->filled,
		       (unsigned long long)stats->bypassed);
	if (c->r.fs->home)
		printf("%llu read without the slow device, ",
		       (unsigned long long)c->slowless);
	if (c->r.replica)
		printf("%llu replicas of %llu blocks, %llu dropped, %llu read without flash (%llu of them known), %llu restored, ",
		       (unsigned long long)stats->replicas,
		       (unsigned long long)stats->replicated,
		       (unsigned long long)stats->replicas_dropped,
		       (unsigned long long)c->flashless,
		       (unsigned long long)c->known,
		       (unsigned long long)c->restored);
	if (c->r.slow_errors)
		printf("%llu replicas failed, %u of them by a flush, %llu cuts with none, ",
		       (unsigned long long)stats->replicas_failed,
		       c->r.lost_flushes, (unsigned long long)c->none);
	if (c->r.async)
		printf("%llu pauses of cleaning, %llu operations beside a check-point, %llu in the next epoch, %llu beside an fsync, %llu blocks changed while copied, %llu read without the volume, ",
		       (unsigned long long)c->r.pauses,
		       (unsigned long long)c->r.beside,
		       (unsigned long long)c->r.next,
		       (unsigned long long)c->r.synced,
		       (unsigned long long)c->r.overtaken,
		       (unsigned long long)c->r.asked);
	printf("%.0f points a CPU second: %s\n", c->points / seconds,
	       failed ? "FAILED" : "ok");
}

int main(int argc, char **argv)
{
	struct rfs_geometry geo = { .zone_blocks = ZONE_BLOCKS };
	static struct crash c;
	struct timespec start, end;
	bool failed;

	rfs_victim_found = compare_victim;
	c.r.inject = inject(&argc, argv);
	options(argc, argv, 2, USAGE, opt);
	c.r.ways = opt[WAYS].value;
	geo.zones = ZONES + (c.r.ways - 1) * ZONES_A_WAY;
	geo.oob_bytes = opt[OOB].value;
	geo.volatile_cache = opt[VOLATILE].value;
	geo.max_open = opt[OPEN].value;
	geo.max_active = opt[ACTIVE].value;
	c.r.w = workload(argc > 1 ? argv[1] : NULL);
	c.r.random = opt[SEED].value * 77777 + 1;
	c.r.policy.groups = opt[POLICY_GROUPS].value;
	c.r.policy.gc = opt[GC].value;
	c.r.policy.quantize = opt[QUANTIZE].value;
	c.r.async = opt[ASYNC].value;
	c.r.quota = opt[WITH_QUOTA].value;
	c.r.pieces = opt[WITH_PIECES].value;
	c.r.runs = opt[WITH_RUNS].value;
	c.rescan = opt[RESCAN].value;
	if (opt[SLOW].value && (c.r.async || c.rescan)) {
		fprintf(stderr, "crash: slow=%llu: not with async=1 or rescan=1\n",
			(unsigned long long)opt[SLOW].value);
		return 2;
	}
	c.r.replica = opt[REPLICA].value;
	if (c.r.replica && (!opt[SLOW].value || geo.oob_bytes < RFS_OOB_BYTES)) {
		fprintf(stderr, "crash: replica=%u: not without slow=2400 or more and page metadata\n",
			c.r.replica);
		return 2;
	}
	c.r.slow_errors = opt[ERRORS].value;
	if (c.r.slow_errors && !c.r.replica) {
		fprintf(stderr, "crash: errors=%u: not without replica=1 or more\n",
			c.r.slow_errors);
		return 2;
	}
	if (c.r.w->weight[HOME] && !opt[SLOW].value) {
		fprintf(stderr, "crash: %s: needs a slow device: slow=1830 or more\n",
			c.r.w->name);
		return 2;
	}
	c.r.dev = memdev_new(&geo, ZONE_CAP, ARENA, true);
	c.base = memdev_new(&geo, ZONE_CAP, 1, false);
	c.work = memdev_new(&geo, ZONE_CAP, 16 << 20, true);
	c.again = memdev_new(&geo, ZONE_CAP, 16 << 20, false);
	c.fresh = memdev_new(&geo, ZONE_CAP, 16 << 20, false);
	if (opt[SLOW].value) {
		memdev_add_slow(c.r.dev, opt[SLOW].value);
		memdev_add_slow(c.base, opt[SLOW].value);
		memdev_add_slow(c.work, opt[SLOW].value);
		memdev_add_slow(c.again, opt[SLOW].value);
		memdev_add_slow(c.fresh, opt[SLOW].value);
	}
	record(&c.r, c.base);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	failed = cut_everywhere(&c, opt[POINTS].value);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	tell(&c, end.tv_sec - start.tv_sec +
	     (end.tv_nsec - start.tv_nsec) / 1e9, failed);
	rfs_unmount_nosync(c.r.fs);
	oracle_free(c.r.o);
	free(c.r.mark);
	memdev_free(c.r.dev);
	memdev_free(c.base);
	memdev_free(c.work);
	memdev_free(c.again);
	memdev_free(c.fresh);
	free(c.r.replica_of);
	return failed;
}
