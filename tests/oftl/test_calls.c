// SPDX-License-Identifier: GPL-2.0-or-later
/* Each call on objects, on a drive in memory: sizes, offsets, errors and what they say. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "power.h"
#include "volume/volume.h"

#define MIB	((u64)1 << 20)

static const struct power_drive with_pieces = { .oob = 64, .pieces = true };
static const struct power_drive without = { .oob = 0, .cache = true };

static Test *tests;

void check_register(Test *test)
{
	test->next = tests;
	tests = test;
}

int main(int argc, char **argv)
{
	Test *test;
	int found = 0, i;

	for (test = tests; test; test = test->next) {
		if (argc > 1 && !strcmp(argv[1], "--list"))
			puts(test->name);
		for (i = 1; i < argc; i++) {
			if (!strcmp(argv[i], test->name)) {
				test->run();
				found++;
			}
		}
	}
	return argc > 1 && (found || !strcmp(argv[1], "--list")) ? 0 : 2;
}

#define GOES(call)							\
do {									\
	if ((call) < 0)							\
		FAIL("%s: %s", #call, oftl_message());			\
} while (0)

/* With this errno, and a message that has these words */
#define FAILS(call, error, words)					\
do {									\
	errno = 0;							\
	CHECK((call) == -1);						\
	CHECK_EQ(errno, error);						\
	CHECK_SAYS(oftl_message(), words);				\
	CHECK_SAYS(oftl_message(), "memory: ");				\
} while (0)

static u8 byte_of(u64 offset, u32 seed)
{
	return 1 + (offset * 7919 + seed * 104729ULL) % 255;
}

static u8 *pattern(u64 offset, size_t len, u32 seed)
{
	static u8 bytes[2 << 20];
	size_t i;

	CHECK(len <= sizeof(bytes));
	for (i = 0; i < len; i++)
		bytes[i] = byte_of(offset + i, seed);
	return bytes;
}

static u8 got[4 << 20];

/* An object by itself on a volume; the same on one that was mounted again */
static void one_write(const struct power_drive *drive, u64 offset, size_t len)
{
	struct power *p = power_new(drive, 1);
	struct oftl *dev = power_open(p);
	struct oattr attr;
	u64 size = len ? offset + len : 0, i;
	u32 round;

	GOES(ocreate(dev, 9));
	GOES(owrite(dev, 9, offset, len, pattern(offset, len, 3)));
	for (round = 0; round < 2; round++) {
		u64 from = offset > 5000 ? offset - 5000 : 0;
		size_t before = offset - from, want = len ? before + len : 0;

		GOES(ogetattr(dev, 9, &attr));
		CHECK_EQ(attr.size, size);
		CHECK_EQ(oread(dev, 9, from, before + len + 100, got), want);
		for (i = 0; i < want; i++)
			CHECK_EQ(got[i], i < before ? 0 :
				 byte_of(from + i, 3));
		CHECK_EQ(oread(dev, 9, size, 10, got), 0);
		CHECK_EQ(oread(dev, 9, size + MIB, 10, got), 0);
		GOES(oftl_close(dev));
		dev = power_open(p);
	}
	GOES(oftl_close(dev));
	power_free(p);
}

static void each_size(const struct power_drive *drive)
{
	static const size_t size[] = { 0, 1, 4095, 4096, 4097, MIB };
	static const u64 at[] = { 0, 1, 2047, 4095, 4096, 12289, 40 * MIB + 5 };
	u32 i, j;

	for (i = 0; i < 6; i++)
		for (j = 0; j < 7; j++)
			one_write(drive, at[j], size[i]);
}

TEST(sizes_and_offsets)
{
	each_size(&with_pieces);
}

TEST(sizes_and_offsets_without_page_metadata)
{
	each_size(&without);
}

/* 257 blocks in one: what is beside it in the first and in the last is as it was */
TEST(a_mebibyte_within_blocks)
{
	struct power *p = power_new(&with_pieces, 1);
	struct oftl *dev = power_open(p);
	u64 total = MIB + 2 * 4096, i;

	GOES(ocreate(dev, 1));
	GOES(owrite(dev, 1, 0, MIB, pattern(0, MIB, 1)));
	GOES(owrite(dev, 1, MIB, total - MIB, pattern(MIB, total - MIB, 1)));
	GOES(owrite(dev, 1, 4001, MIB, pattern(4001, MIB, 2)));
	CHECK_EQ(oread(dev, 1, 0, sizeof(got), got), total);
	for (i = 0; i < total; i++)
		CHECK_EQ(got[i], byte_of(i, i >= 4001 && i < 4001 + MIB ? 2 : 1));
	GOES(oftl_close(dev));
	power_free(p);
}

/* Many writes to one object against the same to an array in memory */
TEST(writes_over_writes)
{
	static u8 want[200000];
	struct power *p = power_new(&with_pieces, 5);
	struct oftl *dev = power_open(p);
	u64 size = 0;
	u32 i;

	GOES(ocreate(dev, 2));
	for (i = 0; i < 400; i++) {
		u32 off = power_pick(p, 120000);
		u32 len = power_pick(p, i % 3 ? 3000 : 60000);

		memcpy(want + off, pattern(off, len, i), len);
		size = len ? max(size, (u64)off + len) : size;
		GOES(owrite(dev, 2, off, len, want + off));
		if (i % 50 == 49) {
			u64 to = power_pick(p, size);
			struct oattr attr = { .set = OATTR_SIZE, .size = to };

			GOES(osetattr(dev, 2, &attr));
			memset(want + to, 0, sizeof(want) - to);
			size = to;
		}
		if (i % 20 == 0) {
			GOES(oftl_close(dev));
			dev = power_open(p);
		}
		CHECK_EQ(oread(dev, 2, 0, sizeof(want), got), size);
		CHECK(!memcmp(got, want, size));
	}
	GOES(oftl_close(dev));
	power_free(p);
}

TEST(objects_that_are_not_there)
{
	struct power *p = power_new(&with_pieces, 1);
	struct oftl *dev = power_open(p);
	struct oattr attr = { .set = OATTR_SIZE, .size = 10 };
	const char *no = "object 0x7: there is no such object";

	FAILS(oread(dev, 7, 0, 1, got), ENOENT, no);
	FAILS(owrite(dev, 7, 0, 1, got), ENOENT, no);
	FAILS(owrite(dev, 7, 0, 0, got), ENOENT, no);
	FAILS(odelete(dev, 7), ENOENT, no);
	FAILS(ogetattr(dev, 7, &attr), ENOENT, no);
	attr.set = OATTR_SIZE;
	FAILS(osetattr(dev, 7, &attr), ENOENT, no);
	GOES(oflush(dev, 7));	/* that it is not there is durable */
	GOES(ocreate(dev, 7));
	FAILS(ocreate(dev, 7), EEXIST, "ocreate of object 0x7: there is such");
	GOES(odelete(dev, 7));
	FAILS(odelete(dev, 7), ENOENT, no);
	GOES(oftl_close(dev));
	power_free(p);
}

TEST(arguments_out_of_range)
{
	struct power *p = power_new(&with_pieces, 1);
	struct oftl *dev = power_open(p);
	struct oattr attr = { .set = 8 };

	GOES(ocreate(dev, 7));
	FAILS(owrite(dev, 7, 0, MIB + 1, got), EFBIG,
	      "1048577 bytes; 0 to 1048576 are one write");
	FAILS(owrite(dev, 7, OFTL_OBJECT_MAX - 9, 10, got), EFBIG,
	      "at most 4433230883192832 bytes");
	FAILS(owrite(dev, 7, ~0ULL, 10, got), EFBIG, "at most");
	FAILS(oread(dev, 7, ~0ULL, 10, got), EFBIG, "at most");
	FAILS(osetattr(dev, 7, &attr), EINVAL, "set is 0x8");
	attr = (struct oattr){ .set = OATTR_USER, .user_len = 257 };
	FAILS(osetattr(dev, 7, &attr), EINVAL, "user_len is 257; it must be 0 to 256");
	attr = (struct oattr){ .set = OATTR_SIZE, .size = OFTL_OBJECT_MAX + 1 };
	FAILS(osetattr(dev, 7, &attr), EFBIG, "at most");
	/* the last byte there can be */
	GOES(owrite(dev, 7, OFTL_OBJECT_MAX - 1, 1, "x"));
	CHECK_EQ(oread(dev, 7, OFTL_OBJECT_MAX - 2, 2, got), 2);
	CHECK(!got[0] && got[1] == 'x');
	GOES(oftl_close(dev));
	power_free(p);
}

TEST(attributes)
{
	struct power *p = power_new(&with_pieces, 1);
	struct oftl *dev = power_open(p);
	struct oattr attr, was;
	u32 i;

	GOES(ocreate(dev, 3));
	GOES(ogetattr(dev, 3, &attr));
	CHECK_EQ(attr.set, OATTR_SIZE | OATTR_MTIME | OATTR_USER);
	CHECK_EQ(attr.size, 0);
	CHECK_EQ(attr.used, 0);
	CHECK_EQ(attr.user_len, 0);
	CHECK(attr.btime > 0 && attr.mtime == attr.btime);
	was = attr;
	GOES(owrite(dev, 3, 0, 9000, got));
	GOES(ogetattr(dev, 3, &attr));
	CHECK_EQ(attr.size, 9000);
	/* of the third block there is a piece, in the object's diff node */
	CHECK_EQ(attr.used, (3 + 1) * 4096);
	CHECK(attr.mtime > was.mtime && attr.btime == was.btime);
	CHECK_EQ(attr.ctime, attr.mtime);

	attr = (struct oattr){ .set = OATTR_MTIME | OATTR_USER | OATTR_SIZE,
			       .mtime = 1234567890123456789, .user_len = 256,
			       .size = 5000 };
	for (i = 0; i < 256; i++)
		attr.user[i] = i;
	GOES(osetattr(dev, 3, &attr));
	for (i = 0; i < 2; i++) {
		GOES(ogetattr(dev, 3, &was));
		CHECK_EQ(was.mtime, 1234567890123456789);
		CHECK(was.ctime > was.btime);
		CHECK_EQ(was.size, 5000);
		CHECK_EQ(was.used, 3 * 4096);	/* 2, and one of the user's */
		CHECK_EQ(was.user_len, 256);
		CHECK(!memcmp(was.user, attr.user, 256));
		GOES(oftl_close(dev));
		dev = power_open(p);
	}
	/* without it; what is not in the set stays */
	attr = (struct oattr){ .set = OATTR_USER };
	GOES(osetattr(dev, 3, &attr));
	GOES(osetattr(dev, 3, &attr));
	GOES(ogetattr(dev, 3, &was));
	CHECK_EQ(was.user_len, 0);
	CHECK_EQ(was.size, 5000);
	CHECK_EQ(was.mtime, 1234567890123456789);
	/* smaller and larger: what was cut off is 0 */
	memset(got, 7, 9000);
	GOES(owrite(dev, 3, 0, 9000, got));
	attr = (struct oattr){ .set = OATTR_SIZE, .size = 100 };
	GOES(osetattr(dev, 3, &attr));
	attr.size = 20 * MIB;
	GOES(osetattr(dev, 3, &attr));
	CHECK_EQ(oread(dev, 3, 0, 2 * MIB, got), 2 * MIB);
	for (i = 0; i < 2 * MIB; i++)
		CHECK_EQ(got[i], i < 100 ? 7 : 0);
	attr.size = 0;
	GOES(osetattr(dev, 3, &attr));
	GOES(ogetattr(dev, 3, &was));
	CHECK_EQ(was.used, 0);
	GOES(oftl_close(dev));
	power_free(p);
}

TEST(all_numbers_are_listed)
{
	struct power *p = power_new(&with_pieces, 1);
	struct oftl *dev = power_open(p);
	u64 cursor = 0, oid, sum = 0, want = 0;
	u32 n = 0, i;

	CHECK_EQ(oftl_next(dev, &cursor, &oid), 0);
	for (i = 0; i < 700; i++) {
		oid = i < 64 ? 1ULL << i : i * 0x9e3779b97f4a7c15ULL;
		GOES(ocreate(dev, oid));
		want += oid;
	}
	GOES(ocreate(dev, 0));
	GOES(ocreate(dev, ~0ULL));
	want += ~0ULL;
	for (cursor = 0; oftl_next(dev, &cursor, &oid) == 1; n++) {
		sum += oid;
		if (oid % 2)	/* they may go meanwhile */
			GOES(odelete(dev, oid));
	}
	CHECK_EQ(n, 702);
	CHECK_EQ(sum, want);
	for (cursor = 0, n = 0; oftl_next(dev, &cursor, &oid) == 1; n++)
		CHECK_EQ(oid % 2, 0);
	CHECK(n > 300 && n < 500);
	GOES(oftl_close(dev));
	power_free(p);
}

/* What an object takes is given back, and more is asked for than there is. */
TEST(full)
{
	struct power *p = power_new(&with_pieces, 1);
	struct oftl *dev = power_open(p);
	u32 round, i, first = 0;

	for (round = 0; round < 3; round++) {
		GOES(ocreate(dev, 1));
		for (i = 0; !owrite(dev, 1, i * MIB + 1, MIB, pattern(0, MIB, 1));)
			i++;
		CHECK_EQ(errno, ENOSPC);
		CHECK_SAYS(oftl_message(), "owrite of object 0x1: the volume has no room");
		CHECK(i > 3);
		first = round ? first : i;
		CHECK_EQ(i, first);
		/* none of it is there */
		CHECK_EQ(oread(dev, 1, i * MIB + 1, 10, got), 0);
		GOES(odelete(dev, 1));
	}
	GOES(oftl_close(dev));
	power_free(p);
}

static u32 pages(const struct power *p)
{
	u32 i, n = 0;

	for (i = 0; i < p->dev->ops; i++)
		n += p->dev->op[i].type == MEM_APPEND;
	return n;
}

/* A flush of an object writes nothing for others, whose changes are in memory. */
TEST(a_flush_is_of_one_object)
{
	struct power *p = power_new(&with_pieces, 1);
	struct oftl *dev = power_open(p);
	struct oattr attr = { .set = OATTR_USER, .user_len = 1 };
	u32 before;

	GOES(ocreate(dev, 1));
	GOES(ocreate(dev, 2));
	GOES(owrite(dev, 1, 0, 4096, got));
	GOES(oflush(dev, 1));
	GOES(osetattr(dev, 2, &attr));
	GOES(owrite(dev, 2, 0, 100, got));
	GOES(owrite(dev, 1, 0, 4096, got));
	before = pages(p);
	GOES(oflush(dev, 1));
	CHECK_EQ(pages(p), before);
	GOES(oflush(dev, 2));
	CHECK_EQ(pages(p), before + 1);	/* a block of the log has both */
	GOES(oftl_close(dev));
	power_free(p);
}

/* What was not made by us in the directory is no object. */
TEST(names_of_objects)
{
	char name[OBJECT_NAME];
	u64 oid = 5;

	object_name(0x12, name);
	CHECK(!strcmp(name, "0000000000000012"));
	CHECK(object_of(name, 16, &oid) && oid == 0x12);
	object_name(~0ULL, name);
	CHECK(object_of(name, 16, &oid) && oid == ~0ULL);
	CHECK(!object_of("00000000000000012", 17, &oid));
	CHECK(!object_of("000000000000001", 15, &oid));
	CHECK(!object_of("000000000000001G", 16, &oid));
	CHECK(!object_of("000000000000001A", 16, &oid));
	CHECK(!object_of("00000000000000\0002", 16, &oid));
}

/* After an error of the drive a volume only reads, and says so. */
TEST(a_drive_that_fails)
{
	struct power *p = power_new(&with_pieces, 1);
	struct oftl *dev = power_open(p);
	u32 zone;

	GOES(ocreate(dev, 1));
	GOES(owrite(dev, 1, 0, 5000, got));
	GOES(oflush(dev, 1));
	for (zone = 0; zone < POWER_ZONES; zone++)
		p->dev->cond[zone] = RFS_DEV_READ_ONLY;
	GOES(ocreate(dev, 2));
	FAILS(oflush(dev, 2), EIO, "oflush of object 0x2: the drive reports an error");
	FAILS(owrite(dev, 1, 0, 5000, got), EROFS, "only reads");
	CHECK_EQ(oread(dev, 1, 0, 5000, got), 5000);
	FAILS(oftl_close(dev), EROFS, "not all is durable");
	power_free(p);
}
