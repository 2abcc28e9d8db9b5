// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fsx FILE [ops=N] [seed=N] [size=BYTES] [keep=MODEL]: random operations on one file, each compared
 * with a copy in memory.
 *
 * Operations: read, write, append, truncate, punch and zero a range, collapse and insert one, map and
 * read, map and write, direct I/O, fsync, fdatasync, msync, drop what is cached, close and open again, reads of holes.
 * What the file system does not have is left out, and said.
 *
 * With keep=, the copy is left in MODEL: run again, it must be what the file has, and the operations
 * go on from there. So a remount can be put between.
 *
 * Prints the operations before a difference. Exit status: 0 all as expected, 1 not, 2 arguments.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096UL
#define LOG_LINES 60

static const char *path;
static unsigned long ops = 10000, seed = 1, max_size = 512 << 10;
static const char *keep;

static unsigned char *model, *buffer;
static unsigned long size;	/* of the file, as it has to be */
static unsigned long done;	/* operations */
static bool can_punch = true, can_zero = true, can_direct = true;
static bool can_collapse = true, can_insert = true;
static int fd = -1, direct = -1;

static char log_lines[LOG_LINES][96];

static void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(log_lines[done % LOG_LINES], sizeof(log_lines[0]), format, args);
	va_end(args);
}

__attribute__((noreturn)) static void fail(const char *format, ...)
{
	unsigned long i = done > LOG_LINES ? done - LOG_LINES + 1 : 0;
	va_list args;

	for (; i <= done; i++)
		printf("%lu: %s\n", i, log_lines[i % LOG_LINES]);
	printf("FAILED %s, seed %lu, operation %lu: ", path, seed, done);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	exit(1);
}

static uint64_t rng_state;

static unsigned long rnd(unsigned long below)
{
	rng_state += 0x9e3779b97f4a7c15ULL;
	uint64_t z = rng_state;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) % below;
}

static void compare(const unsigned char *got, unsigned long from, unsigned long bytes,
		    const char *how)
{
	unsigned long i;

	if (!memcmp(got, model + from, bytes))
		return;
	for (i = 0; got[i] == model[from + i]; i++)
		;
	fail("%s: byte %lu is %#x, must be %#x (file of %lu bytes)", how, from + i, got[i],
	     model[from + i], size);
}

/* A range within the file, or where a write may make it longer. */
static void range(unsigned long limit, unsigned long *from, unsigned long *bytes)
{
	*from = rnd(limit);
	*bytes = 1 + rnd(rnd(4) ? 3 * PAGE : 40 * PAGE);
	if (rnd(3) == 0)
		*from &= -PAGE;
	if (*bytes > limit - *from)
		*bytes = limit - *from;
}

static void pattern(unsigned long bytes)
{
	unsigned long i, start = rnd(1 << 30);

	for (i = 0; i < bytes; i++)
		buffer[i] = (start + i) * 2654435761UL >> 13;
}

static void grown(unsigned long end)
{
	if (end > size)
		size = end;
}

static void op_read(void)
{
	unsigned long from, bytes;

	if (!size)
		return;
	range(size, &from, &bytes);
	note("read %lu+%lu", from, bytes);
	if (pread(fd, buffer, bytes, from) != (ssize_t)bytes)
		fail("read: %s", strerror(errno));
	compare(buffer, from, bytes, "read");
}

static void op_write(void)
{
	unsigned long from, bytes;

	range(max_size, &from, &bytes);
	note("write %lu+%lu", from, bytes);
	pattern(bytes);
	if (pwrite(fd, buffer, bytes, from) != (ssize_t)bytes)
		fail("write: %s", strerror(errno));
	memcpy(model + from, buffer, bytes);
	grown(from + bytes);
}

static void op_append(void)
{
	unsigned long bytes = 1 + rnd(2 * PAGE);
	int append;

	if (size + bytes > max_size)
		return;
	note("append %lu+%lu", size, bytes);
	pattern(bytes);
	append = open(path, O_WRONLY | O_APPEND);
	if (append < 0 || write(append, buffer, bytes) != (ssize_t)bytes)
		fail("append: %s", strerror(errno));
	close(append);
	memcpy(model + size, buffer, bytes);
	size += bytes;
}

static void op_truncate(void)
{
	unsigned long to = rnd(3) ? rnd(max_size) : rnd(max_size) & -PAGE;

	if (rnd(2))
		to = size > 2 * PAGE ? size - rnd(2 * PAGE) : to;
	note("truncate %lu to %lu", size, to);
	if (ftruncate(fd, to))
		fail("truncate: %s", strerror(errno));
	if (to < size)
		memset(model + to, 0, size - to);
	size = to;
}

static void hole(int mode, bool *can, const char *name)
{
	unsigned long from, bytes;

	if (!*can || !size)
		return;
	range(size, &from, &bytes);
	note("%s %lu+%lu", name, from, bytes);
	if (fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, from, bytes)) {
		if (errno != EOPNOTSUPP)
			fail("%s: %s", name, strerror(errno));
		*can = false;
		return;
	}
	memset(model + from, 0, bytes);
}

static void op_punch(void)
{
	hole(FALLOC_FL_PUNCH_HOLE, &can_punch, "punch");
}

static void op_zero(void)
{
	hole(FALLOC_FL_ZERO_RANGE, &can_zero, "zero");
}

/* Whole pages are taken out of the file, or put into it. */
static void shift(int mode, bool *can, const char *name)
{
	bool inserts = mode == FALLOC_FL_INSERT_RANGE;
	unsigned long pages = size / PAGE, from, bytes;

	if (!*can || !pages)
		return;
	from = rnd(pages) * PAGE;
	bytes = (1 + rnd(rnd(4) ? 3 : 40)) * PAGE;
	if (inserts ? size + bytes > max_size : from + bytes >= size)
		return;
	note("%s %lu+%lu", name, from, bytes);
	if (fallocate(fd, mode, from, bytes)) {
		if (errno != EOPNOTSUPP)
			fail("%s: %s", name, strerror(errno));
		*can = false;
		return;
	}
	if (inserts) {
		memmove(model + from + bytes, model + from, size - from);
		memset(model + from, 0, bytes);
		size += bytes;
	} else {
		memmove(model + from, model + from + bytes, size - from - bytes);
		size -= bytes;
		memset(model + size, 0, bytes);
	}
}

static void op_collapse(void)
{
	shift(FALLOC_FL_COLLAPSE_RANGE, &can_collapse, "collapse");
}

static void op_insert(void)
{
	shift(FALLOC_FL_INSERT_RANGE, &can_insert, "insert");
}

static void mapped(bool writes)
{
	unsigned long from, bytes, base;
	unsigned char *map;

	if (!size)
		return;
	range(size, &from, &bytes);
	base = from & -PAGE;
	note("map %s %lu+%lu", writes ? "write" : "read", from, bytes);
	map = mmap(NULL, from + bytes - base, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED,
		   fd, base);
	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	if (writes) {
		pattern(bytes);
		memcpy(map + from - base, buffer, bytes);
		memcpy(model + from, buffer, bytes);
		if (rnd(3) == 0 && msync(map, from + bytes - base, MS_SYNC))
			fail("msync: %s", strerror(errno));
	} else {
		compare(map + from - base, from, bytes, "map");
	}
	/* behind the end of the file, its last page is zero */
	if (from + bytes == size && size % PAGE) {
		unsigned long i;

		for (i = size; i % PAGE; i++)
			if (map[i - base])
				fail("map: byte %lu behind the end of %lu is %#x", i, size,
				     map[i - base]);
	}
	munmap(map, from + bytes - base);
}

static void op_map_read(void)
{
	mapped(false);
}

static void op_map_write(void)
{
	mapped(true);
}

static void op_direct(void)
{
	bool writes = rnd(2);
	unsigned long limit = writes ? max_size & -PAGE : size & -PAGE, from, bytes;
	ssize_t got;

	if (!can_direct || !limit)
		return;
	if (direct < 0) {
		direct = open(path, O_RDWR | O_DIRECT);
		if (direct < 0) {
			can_direct = false;
			return;
		}
	}
	from = rnd(limit) & -PAGE;
	bytes = PAGE * (1 + rnd(20));
	if (bytes > limit - from)
		bytes = limit - from;
	note("direct %s %lu+%lu", writes ? "write" : "read", from, bytes);
	if (writes) {
		pattern(bytes);
		got = pwrite(direct, buffer, bytes, from);
	} else {
		got = pread(direct, buffer, bytes, from);
	}
	if (got != (ssize_t)bytes)
		fail("direct I/O: %zd of %lu, %s", got, bytes, strerror(errno));
	if (writes) {
		memcpy(model + from, buffer, bytes);
		grown(from + bytes);
	} else {
		compare(buffer, from, bytes, "direct read");
	}
}

static void op_sync(void)
{
	bool data = rnd(2);

	note("%s", data ? "fdatasync" : "fsync");
	if (data ? fdatasync(fd) : fsync(fd))
		fail("sync: %s", strerror(errno));
}

static void op_drop(void)
{
	note("drop");
	if (rnd(2) && fdatasync(fd))
		fail("fdatasync: %s", strerror(errno));
	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		fail("fadvise");
}

static void reopen(void)
{
	struct stat st;

	if (fd >= 0)
		close(fd);
	if (direct >= 0)
		close(direct);
	direct = -1;
	fd = open(path, O_RDWR | O_CREAT, 0644);
	if (fd < 0 || fstat(fd, &st))
		fail("open: %s", strerror(errno));
	if ((unsigned long)st.st_size != size)
		fail("the size is %lld, must be %lu", (long long)st.st_size, size);
}

static void op_reopen(void)
{
	note("reopen");
	reopen();
}

static void op_all(void)
{
	note("read all");
	reopen();
	if (pread(fd, buffer, max_size, 0) != (ssize_t)size)
		fail("read of all: %s", strerror(errno));
	compare(buffer, 0, size, "read of all");
}

/* How often each is done, of the sum. */
static const struct {
	void (*run)(void);
	unsigned int weight;
} kinds[] = {
	{ op_read, 20 }, { op_write, 30 }, { op_append, 8 }, { op_truncate, 8 },
	{ op_punch, 6 }, { op_zero, 3 }, { op_collapse, 3 }, { op_insert, 3 },
	{ op_map_read, 12 }, { op_map_write, 15 },
	{ op_direct, 8 }, { op_sync, 4 }, { op_drop, 4 }, { op_reopen, 2 }, { op_all, 1 },
};

static void load(void)
{
	FILE *stream = keep ? fopen(keep, "r") : NULL;

	if (!stream)
		return;
	size = fread(model, 1, max_size, stream);
	fclose(stream);
	reopen();
	op_all();
}

static void save(void)
{
	FILE *stream;

	if (!keep)
		return;
	stream = fopen(keep, "w");
	if (!stream || fwrite(model, 1, size, stream) != size || fclose(stream)) {
		printf("%s: %s\n", keep, strerror(errno));
		exit(2);
	}
}

static bool parse(int argc, char **argv)
{
	int i;

	if (argc < 2)
		return false;
	path = argv[1];
	for (i = 2; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			return false;
		*value++ = 0;
		if (!strcmp(argv[i], "ops"))
			ops = strtoul(value, NULL, 0);
		else if (!strcmp(argv[i], "seed"))
			seed = strtoul(value, NULL, 0);
		else if (!strcmp(argv[i], "size"))
			max_size = strtoul(value, NULL, 0);
		else if (!strcmp(argv[i], "keep"))
			keep = value;
		else
			return false;
	}
	return max_size >= 2 * PAGE;
}

int main(int argc, char **argv)
{
	unsigned int sum = 0, i, pick;

	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: fsx FILE [ops=N] [seed=N] [size=BYTES] [keep=MODEL]\n");
		return 2;
	}
	model = calloc(1, max_size);
	if (!model || posix_memalign((void **)&buffer, PAGE, max_size))
		return 2;
	rng_state = seed;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		sum += kinds[i].weight;
	load();
	reopen();
	for (done = 0; done < ops; done++) {
		pick = rnd(sum);
		for (i = 0; pick >= kinds[i].weight; i++)
			pick -= kinds[i].weight;
		note("nothing");
		kinds[i].run();
	}
	op_all();
	save();
	printf("%s: %lu operations%s%s%s%s%s\n", path, ops, can_punch ? "" : ", no punching",
	       can_zero ? "" : ", no zeroing", can_collapse ? "" : ", no collapsing",
	       can_insert ? "" : ", no inserting", can_direct ? "" : ", no direct I/O");
	return 0;
}
