// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * objects VOLUME calls: each call on objects, what it says, and that a second process is
 * told whose the volume is.
 * objects DIR run [seed=N[,MOST,STEPS]] [drive=DEVICE], objects DIR check PROMISED
 * [seed=N[,MOST,STEPS]]: as tests/fs/guest/whole.c, for points.py there: 60 calls, or
 * STEPS, as a seed gives them, and what is left of them. A write has 1 MiB at most, or
 * MOST bytes.
 *
 * Exit status: 0, 1 what is there is wrong, 2 wrong arguments, or a call failed.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../fs/guest/oplog.h"
#include "check.h"
#include "story.h"

#define MIB	(1U << 20)

static u8 bytes[MIB + 8192], got[2 * MIB];

#define GOES(call)							\
do {									\
	if ((call) < 0)							\
		FAIL("%s: %s", #call, oftl_message());			\
} while (0)

#define FAILS(call, error, words)					\
do {									\
	errno = 0;							\
	CHECK((call) == -1);						\
	CHECK_EQ(errno, error);						\
	CHECK_SAYS(oftl_message(), words);				\
} while (0)

static void one_write(struct oftl *dev, u64 offset, size_t len)
{
	struct oattr attr;
	u64 size = len ? offset + len : 0;

	GOES(ocreate(dev, 9));
	GOES(owrite(dev, 9, offset, len, bytes + offset % 4096));
	GOES(ogetattr(dev, 9, &attr));
	CHECK_EQ(attr.size, size);
	CHECK_EQ(oread(dev, 9, offset, len + 10, got), len);
	CHECK(!memcmp(got, bytes + offset % 4096, len));
	CHECK_EQ(oread(dev, 9, 0, min(offset, (u64)MIB), got),
		 min(min(offset, (u64)MIB), size));
	CHECK(!len || !offset || (!got[0] && !got[min(offset, (u64)MIB) - 1]));
	GOES(oflush(dev, 9));
	GOES(odelete(dev, 9));
	GOES(oflush(dev, 9));
}

static void each_size(struct oftl *dev)
{
	static const size_t size[] = { 0, 1, 4095, 4096, 4097, MIB };
	static const u64 at[] = { 0, 1, 4095, 4096, 12289, 40ULL * MIB + 5 };
	u32 i, j;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = 1 + i % 253;
	for (i = 0; i < 6; i++)
		for (j = 0; j < 6; j++)
			one_write(dev, at[j], size[i]);
}

static void attributes(struct oftl *dev)
{
	struct oattr attr = { .set = OATTR_SIZE | OATTR_MTIME | OATTR_USER,
			      .size = 5000, .mtime = 1234567890123456789,
			      .user_len = 3, .user = "abc" }, is;

	GOES(ocreate(dev, 3));
	GOES(owrite(dev, 3, 0, 9000, bytes));
	GOES(osetattr(dev, 3, &attr));
	GOES(ogetattr(dev, 3, &is));
	CHECK_EQ(is.size, 5000);
	CHECK_EQ(is.mtime, 1234567890123456789);
	CHECK(is.used >= 8192 && is.btime > attr.mtime && is.ctime >= is.btime);
	CHECK(is.user_len == 3 && !memcmp(is.user, "abc", 3));
	attr = (struct oattr){ .set = OATTR_USER | OATTR_MTIME, .mtime = -1 };
	GOES(osetattr(dev, 3, &attr));
	GOES(osetattr(dev, 3, &attr));
	GOES(ogetattr(dev, 3, &is));
	CHECK(is.user_len == 0 && is.size == 5000 && is.mtime == -1);
}

static void errors(struct oftl *dev)
{
	struct oattr attr;

	FAILS(oread(dev, 7, 0, 1, got), ENOENT, "object 0x7: there is no such");
	FAILS(owrite(dev, 7, 0, 1, got), ENOENT, "owrite of object 0x7");
	FAILS(odelete(dev, 7), ENOENT, "odelete of object 0x7");
	FAILS(ogetattr(dev, 7, &attr), ENOENT, "ogetattr of object 0x7");
	FAILS(ocreate(dev, 3), EEXIST, "there is such an object already");
	FAILS(owrite(dev, 3, 0, MIB + 1, bytes), EFBIG, "0 to 1048576");
}

static void all_are_listed(struct oftl *dev)
{
	u64 cursor = 0, oid, sum = 0;
	u32 i, n = 0;

	for (i = 100; i < 300; i++)
		GOES(ocreate(dev, i));
	GOES(ocreate(dev, ~0ULL));
	while (oftl_next(dev, &cursor, &oid) == 1) {
		sum += oid;
		n++;
	}
	CHECK_EQ(n, 202);
	CHECK_EQ(sum, 3 + 200 * 399 / 2 + ~0ULL);
	for (i = 100; i < 300; i++)
		GOES(odelete(dev, i));
	GOES(odelete(dev, ~0ULL));
}

/* The same process is a second one, too */
static void second_is_told(const char *path)
{
	int status;
	pid_t other = fork();

	if (!other) {
		CHECK(!oftl_open(path));
		CHECK_EQ(errno, EBUSY);
		CHECK_SAYS(oftl_message(), path);
		fprintf(stderr, "%s\n", oftl_message());
		_exit(0);
	}
	CHECK(waitpid(other, &status, 0) == other && status == 0);
}

static int calls(const char *path)
{
	struct oftl *dev = oftl_open(path);

	if (!dev)
		FAIL("%s", oftl_message());
	second_is_told(path);
	each_size(dev);
	attributes(dev);
	errors(dev);
	all_are_listed(dev);
	GOES(oftl_close(dev));
	dev = oftl_open(path);
	CHECK(dev);
	CHECK_EQ(oread(dev, 3, 0, sizeof(got), got), 5000);
	CHECK(!memcmp(got, bytes, 5000));
	GOES(odelete(dev, 3));
	GOES(oftl_close(dev));
	return 0;
}

static unsigned long long step, steps = 60;

/* From 1 on: nothing was promised at 0 */
static u64 step_now(void *arg)
{
	(void)arg;
	return step + 1;
}

/* The drive's operations so far */
static unsigned long long operations(int drive)
{
	unsigned long long n;

	assert(oplog_operations(drive, &n));
	return n;
}

/* Writes that are a transaction of several blocks, so far */
static u32 several(const struct story *s)
{
	u32 i, n = 0;

	for (i = 1; i <= s->events; i++)
		n += s->event[i].type == WRITE &&
		     s->event[i].off % 4096 + s->event[i].len > 4096;
	return n;
}

static int run(struct story *s, int drive)
{
	for (step = 0; step < steps; step++) {
		if (!story_step(s))
			continue;
		printf("promised %llu %llu\n", step,
		       drive < 0 ? 0 : operations(drive));
		fflush(stdout);
	}
	fprintf(stderr, "%u of several blocks\n", several(s));
	GOES(oftl_close(s->dev));
	return 0;
}

static int check(struct story *s, struct oftl *dev, long long promised)
{
	const char *said;

	for (step = 0; step < steps; step++)
		story_step(s);
	said = story_check(s, dev, promised + 1, NEVER);
	if (said)
		printf("%s\n", said);
	GOES(oftl_close(dev));
	return said != NULL;
}

int main(int argc, char **argv)
{
	/* rounds: liboftl(3), LIMITS, of mounted volumes */
	static struct story s = { .now = step_now, .flushes = true,
				  .rounds = true };
	unsigned long long seed = 1, most = MIB;
	struct oftl *dev;
	int drive = -1, i;

	if (argc == 3 && !strcmp(argv[2], "calls"))
		return calls(argv[1]);
	for (i = 3; i < argc; i++) {
		sscanf(argv[i], "seed=%llu,%llu,%llu", &seed, &most, &steps);
		if (!strncmp(argv[i], "drive=", 6))
			drive = open(argv[i] + 6, O_RDONLY);
	}
	if (argc < 4)
		return 2;
	dev = oftl_open(argv[1]);
	if (!dev)
		FAIL("%s", oftl_message());
	s.most = most;
	story_begin(&s, seed);
	if (!strcmp(argv[2], "check"))
		return check(&s, dev, atoll(argv[3]));
	s.dev = dev;
	return run(&s, drive);
}
