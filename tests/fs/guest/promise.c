// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * promise DIR run FROM TO [seed=N] [drive=DEVICE]: steps FROM to TO - 1 of a fixed workload.
 * promise DIR check PROMISED [seed=N]: is what step PROMISED and those before it have
 * promised there, and nothing that cannot be? PROMISED is -1 if none was.
 *
 * A step writes blocks of a file (buffered or mapped), or does something and makes it durable:
 * fsync (also of room set aside), sync, truncate, punch, zero, unlink, rename, exchange with an
 * empty file, rename that leaves a whiteout, replace by a new file (also one made without a name),
 * permissions or an extended attribute. After each of the latter `run` prints "promised STEP", and, with `drive`, how many operations
 * the log of that namespace's drive has then. Since a step is a function of seed and number alone,
 * `check` needs no record of what was done. Each block tells its file, place and step.
 *
 * The steps after PROMISED up to the next that promises may have happened, wholly or in parts; a
 * write may be there block by block, a mapped one byte by byte: a page may be written back while it
 * is copied to. The last one is there wholly or not at all.
 *
 * Exit status: 0, 1 what is there is wrong, 2 wrong arguments, or run failed.
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
#include <sys/xattr.h>
#include <unistd.h>

#include "oplog.h"

#define PAGE 4096
#define FILES 24
#define DIRS 4
#define BLOCKS 96	/* of a file, at most */

enum kind {
	WRITE, FSYNC, SYNC, TRUNCATE, PUNCH, ZERO, UNLINK, RENAME, EXCHANGE, WHITEOUT, REPLACE,
	ATTRIBUTE
};

#define KINDS 40

struct step {
	enum kind kind;
	unsigned int file, block, blocks;
	bool mapped;
};

struct file {
	int name;		/* -1: none, else which of its two */
	int size;		/* blocks */
	int stamp[BLOCKS];	/* the step that wrote it, -1: none */
	unsigned int mode;	/* permissions */
	int xattr;		/* the step that set it, -1: none */
	/* what is promised, by which step, and how large it may be instead */
	int p_name, p_size, p_stamp[BLOCKS], p_step, p_limit;
};

static uint64_t seed = 1;
static int drive = -1;	/* namespace whose operations are counted */
static struct file files[FILES];
static unsigned int faults;

static uint64_t mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15ULL;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static struct step step_of(int number)
{
	static const enum kind kinds[KINDS] = {
		WRITE, WRITE, WRITE, WRITE, WRITE, WRITE, WRITE, WRITE,
		WRITE, WRITE, WRITE, WRITE, WRITE, WRITE, WRITE, WRITE,
		FSYNC, FSYNC, FSYNC, FSYNC, FSYNC, FSYNC, SYNC,
		TRUNCATE, TRUNCATE, PUNCH, PUNCH, ZERO, UNLINK, RENAME, RENAME,
		EXCHANGE, EXCHANGE, WHITEOUT, WHITEOUT, REPLACE, REPLACE, REPLACE,
		ATTRIBUTE, ATTRIBUTE,
	};
	uint64_t r = mix(mix(seed) ^ mix(number + 1));
	struct step s = {
		.kind = kinds[r % KINDS],
		.file = r / KINDS % FILES,
		.blocks = 1 + (r >> 20) % ((r >> 40) % 4 ? 3 : 20),
		.mapped = (r >> 44) % 4 == 0,
	};

	s.block = (r >> 24) % (BLOCKS - s.blocks + 1);
	return s;
}

static const char *name_of(unsigned int file, int name)
{
	static char buffer[2][64];
	static int turn;

	turn = !turn;
	snprintf(buffer[turn], sizeof(buffer[0]), "d%u/%s%u", (file + name) % DIRS,
		 name ? "renamed" : "file", file);
	return buffer[turn];
}

static unsigned int mode_of(int number)
{
	return 0600 | (number & 077);
}

static bool promises(const struct step *s)
{
	return s->kind != WRITE;
}

/* A new inode */
static void renew(struct file *f)
{
	f->size = 0;
	f->mode = 0644;
	f->xattr = -1;
	memset(f->stamp, -1, sizeof(f->stamp));
}

static void promise(struct file *f, int number)
{
	f->p_name = f->name;
	f->p_size = f->p_limit = f->size;
	f->p_step = number;
	memcpy(f->p_stamp, f->stamp, sizeof(f->stamp));
}

/* What becomes of the model, if the step gets as far as its promise, or, `partly`, not so far. */
static void apply(int number, bool partly)
{
	struct step s = step_of(number);
	struct file *f = &files[s.file];
	unsigned int i;

	if (s.kind == SYNC) {
		for (i = 0; i < FILES && !partly; i++)
			promise(&files[i], number);
		return;
	}
	if (s.kind == WRITE) {
		if (f->name < 0) {
			renew(f);
			f->name = 0;
		}
		for (i = s.block; i < s.block + s.blocks; i++)
			f->stamp[i] = number;
		if ((int)(s.block + s.blocks) > f->size)
			f->size = s.block + s.blocks;
		if (f->size > f->p_limit)
			f->p_limit = f->size;
		return;
	}
	if (f->name < 0)
		return;
	if (s.kind == TRUNCATE && (int)s.block < f->size) {
		f->size = s.block;
		for (i = s.block; i < BLOCKS; i++)
			f->stamp[i] = f->p_stamp[i] = -1;
		f->p_size = f->p_limit = s.block;
	}
	for (i = s.block; (s.kind == PUNCH || s.kind == ZERO) && i < s.block + s.blocks; i++)
		f->stamp[i] = f->p_stamp[i] = -1;
	if (s.kind == RENAME || s.kind == EXCHANGE || s.kind == WHITEOUT)
		f->name = !f->name;
	if (s.kind == ATTRIBUTE && number % 2)
		f->mode = mode_of(number);
	else if (s.kind == ATTRIBUTE)
		f->xattr = number;
	if (s.kind == UNLINK)
		f->name = -1;
	if (s.kind == UNLINK || s.kind == REPLACE)
		renew(f);
	if (s.kind == REPLACE) {
		f->size = s.blocks;
		for (i = 0; i < s.blocks; i++)
			f->stamp[i] = number;
	}
	if (partly && s.kind != UNLINK && s.kind != REPLACE)
		f->p_name = f->name;	/* its blocks are as they were promised before */
	else
		promise(f, number);
}

static void forget(void)
{
	unsigned int i;

	for (i = 0; i < FILES; i++) {
		files[i].name = -1;
		renew(&files[i]);
		promise(&files[i], -1);
	}
}

/* ---- run ---- */

__attribute__((noreturn)) static void stop(int number, const char *what)
{
	printf("step %d: %s: %s\n", number, what, strerror(errno));
	exit(2);
}

static void block_content(uint32_t *data, unsigned int file, unsigned int block, int number)
{
	unsigned int i;

	for (i = 0; i < PAGE / 4; i += 4) {
		data[i] = file + 1;
		data[i + 1] = block;
		data[i + 2] = number;
		data[i + 3] = i;
	}
}

/* What an exchange or a whiteout leaves where there is no file. */
static bool left_over(const char *name)
{
	struct stat st;

	return !lstat(name, &st) && (S_ISCHR(st.st_mode) || !(st.st_mode & 0777));
}

static void clear(const char *name, int number)
{
	if (left_over(name) && unlink(name))
		stop(number, "unlink");
}

static int open_file(unsigned int file, int name, int number)
{
	int fd;

	clear(name_of(file, name), number);
	fd = open(name_of(file, name), O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		stop(number, "open");
	return fd;
}

/* sync(2), which does not say whether it failed, promises nothing. */
static void sync_all(int number)
{
	int fd = open(".", O_RDONLY | O_DIRECTORY);

	if (fd < 0 || syncfs(fd))
		stop(number, "syncfs");
	close(fd);
}

static void write_blocks(int fd, const struct step *s, unsigned int block, int number)
{
	static uint32_t data[BLOCKS * PAGE / 4];
	size_t bytes = s->blocks * PAGE;
	unsigned int i;
	void *map;

	for (i = 0; i < s->blocks; i++)
		block_content(data + i * PAGE / 4, s->file, block + i, number);
	if (!s->mapped) {
		if (pwrite(fd, data, bytes, (off_t)block * PAGE) != (ssize_t)bytes)
			stop(number, "write");
		return;
	}
	if (lseek(fd, 0, SEEK_END) < (off_t)(block * PAGE + bytes) &&
	    ftruncate(fd, block * PAGE + bytes))
		stop(number, "ftruncate");
	map = mmap(NULL, bytes, PROT_WRITE, MAP_SHARED, fd, (off_t)block * PAGE);
	if (map == MAP_FAILED)
		stop(number, "mmap");
	memcpy(map, data, bytes);
	munmap(map, bytes);
}

static void sync_dir(unsigned int dir, int number)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "d%u", dir % DIRS);
	fd = open(name, O_RDONLY);
	if (fd < 0 || fsync(fd))
		stop(number, "fsync of a directory");
	close(fd);
}

static void sync_file(int fd, int number)
{
	if (number % 2 ? fsync(fd) : fdatasync(fd))
		stop(number, "fsync");
}

/* A new file in a directory: without a name until it is written, or with one. */
static void replace(const struct step *s, const struct file *f, int number)
{
	char name[40], dir[32], path[64];
	int fd = -1;

	snprintf(dir, sizeof(dir), "d%u", (s->file + f->name) % DIRS);
	snprintf(name, sizeof(name), "%s/new", dir);
	if (number % 2) {
		if (unlink(name) && errno != ENOENT)
			stop(number, "unlink");
		fd = open(dir, O_RDWR | O_TMPFILE, 0644);
	}
	if (fd < 0)
		fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		stop(number, "open");
	write_blocks(fd, s, 0, number);
	if (fsync(fd))
		stop(number, "fsync");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (access(name, F_OK) &&
	    linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW))
		stop(number, "linkat");
	close(fd);
	if (rename(name, name_of(s->file, f->name)))
		stop(number, "rename");
	sync_dir(s->file + f->name, number);
}

/* The file gets its other name; the first one stays for an empty file, or for a whiteout. */
static void move(const struct step *s, const struct file *f, int number)
{
	const char *from = name_of(s->file, f->name), *to = name_of(s->file, !f->name);
	int flags = s->kind == WHITEOUT ? RENAME_WHITEOUT : 0, fd;

	clear(to, number);
	if (s->kind == EXCHANGE) {
		fd = open(to, O_WRONLY | O_CREAT | O_EXCL, 0);
		if (fd < 0)
			stop(number, "create");
		close(fd);
		flags = RENAME_EXCHANGE;
	}
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, flags))
		stop(number, "rename");
}

static void change(int fd, const struct step *s, int number)
{
	off_t from = (off_t)s->block * PAGE, bytes = (off_t)s->blocks * PAGE;
	int ret = 0;

	if (s->kind == PUNCH)
		ret = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, bytes);
	if (s->kind == ZERO)
		ret = fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, from, bytes);
	if (s->kind == FSYNC && number % 4 == 1)
		ret = fallocate(fd, FALLOC_FL_KEEP_SIZE, from, bytes);
	if (s->kind == ATTRIBUTE && number % 2)
		ret = fchmod(fd, mode_of(number));
	else if (s->kind == ATTRIBUTE)
		ret = fsetxattr(fd, "user.step", &number, sizeof(number), 0);
	if (ret)
		stop(number, "change");
	sync_file(fd, number);
}

static void perform(int number)
{
	struct step s = step_of(number);
	struct file *f = &files[s.file];
	int fd = -1;

	if (s.kind == SYNC) {
		sync_all(number);
		return;
	}
	if (f->name < 0 && s.kind != WRITE)
		return;
	if (s.kind != UNLINK && s.kind != REPLACE)
		fd = open_file(s.file, f->name < 0 ? 0 : f->name, number);
	if (s.kind == WRITE)
		write_blocks(fd, &s, s.block, number);
	if (s.kind == FSYNC || s.kind == PUNCH || s.kind == ZERO || s.kind == ATTRIBUTE)
		change(fd, &s, number);
	if (s.kind == TRUNCATE) {
		if ((int)s.block < f->size && ftruncate(fd, (off_t)s.block * PAGE))
			stop(number, "ftruncate");
		if (fsync(fd))
			stop(number, "fsync");
	}
	if (s.kind == RENAME || s.kind == EXCHANGE || s.kind == WHITEOUT) {
		move(&s, f, number);
		if (fsync(fd))
			stop(number, "fsync");
		sync_dir(s.file + !f->name, number);
		sync_dir(s.file + f->name, number);
	}
	if (s.kind == UNLINK) {
		if (unlink(name_of(s.file, f->name)))
			stop(number, "unlink");
		sync_dir(s.file + f->name, number);
	}
	if (s.kind == REPLACE)
		replace(&s, f, number);
	if (fd >= 0)
		close(fd);
}

static unsigned long long operations(int number)
{
	unsigned long long n;

	if (!oplog_operations(drive, &n))
		stop(number, "operation log");
	return n;
}

static int run(int from, int to)
{
	char name[32];
	int number, i;

	for (i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		if (mkdir(name, 0755) && errno != EEXIST)
			stop(from, "mkdir");
	}
	if (!from)
		sync_all(from);
	forget();
	for (number = 0; number < from; number++)
		apply(number, false);
	for (; number < to; number++) {
		struct step s = step_of(number);

		perform(number);
		apply(number, false);
		if (promises(&s)) {
			printf("promised %d", number);
			if (drive >= 0)
				printf(" %llu", operations(number));
			printf("\n");
			fflush(stdout);
		}
	}
	return 0;
}

/* ---- check ---- */

static char report[4096];

static void wrong(const char *format, ...)
{
	size_t used = strlen(report);
	va_list args;

	faults++;
	va_start(args, format);
	vsnprintf(report + used, sizeof(report) - used, format, args);
	va_end(args);
}

/* May `block` of a file have what step `stamp` wrote? */
static bool may_have(unsigned int file, unsigned int block, int stamp, int last)
{
	const struct file *f = &files[file];
	struct step s;

	if (stamp == f->p_stamp[block])
		return true;
	if (stamp <= f->p_step || stamp > last)
		return false;
	s = step_of(stamp);
	return s.kind == WRITE && s.file == file && block >= s.block &&
	       block < s.block + s.blocks;
}

/* Is each byte what a mapped step has written, or what was there before? */
static bool half_copied(unsigned int file, unsigned int block, const void *got, int last)
{
	const struct file *f = &files[file];
	uint32_t before[PAGE / 4], after[PAGE / 4];
	const uint8_t *a = (uint8_t *)before, *b = (uint8_t *)after, *c = got;
	int to, from, stamp, i;

	for (to = f->p_step + 1; to <= last; to++) {
		if (!step_of(to).mapped || !may_have(file, block, to, last))
			continue;
		block_content(after, file, block, to);
		for (from = f->p_step; from < to; from++) {
			stamp = from == f->p_step ? f->p_stamp[block] : from;
			if (!may_have(file, block, stamp, last))
				continue;
			memset(before, 0, PAGE);
			if (stamp >= 0)
				block_content(before, file, block, stamp);
			for (i = 0; i < PAGE && (c[i] == a[i] || c[i] == b[i]); i++)
				;
			if (i == PAGE)
				return true;
		}
	}
	return false;
}

static void check_block(unsigned int file, unsigned int block, const uint32_t *got, int last)
{
	static const uint32_t zero[PAGE / 4];
	uint32_t expected[PAGE / 4];
	int stamp = got[2];

	if (!memcmp(got, zero, PAGE)) {
		if (files[file].p_stamp[block] != -1)
			wrong("file %u block %u is zero, step %d promised\n", file, block,
			      files[file].p_stamp[block]);
		return;
	}
	block_content(expected, file, block, stamp);
	if (memcmp(got, expected, PAGE) && half_copied(file, block, got, last))
		return;
	if (memcmp(got, expected, PAGE))
		wrong("file %u block %u is not a block of it: file %d block %d step %d\n", file,
		      block, (int)got[0] - 1, (int)got[1], stamp);
	else if (!may_have(file, block, stamp, last))
		wrong("file %u block %u is of step %d, step %d promised %d\n", file, block, stamp,
		      files[file].p_step, files[file].p_stamp[block]);
}

static void check_file(unsigned int file, int last)
{
	const struct file *f = &files[file];
	static uint32_t got[BLOCKS][PAGE / 4];
	int found = -1, fd, block, name, xattr = -1;
	struct stat st;
	ssize_t bytes;

	for (name = 0; name < 2; name++) {
		if (access(name_of(file, name), F_OK) || left_over(name_of(file, name)))
			continue;
		if (found >= 0)
			wrong("file %u has both names\n", file);
		found = name;
	}
	if (found != f->p_name && !(f->p_name < 0 && found == 0 && f->name == 0)) {
		wrong("file %u has name %d, promised was %d\n", file, found, f->p_name);
		return;
	}
	if (found < 0)
		return;
	fd = open(name_of(file, found), O_RDONLY);
	if (fd < 0 || fstat(fd, &st)) {
		wrong("file %u: %s\n", file, strerror(errno));
		return;
	}
	if (st.st_size % PAGE || st.st_size / PAGE < f->p_size || st.st_size / PAGE > f->p_limit)
		wrong("file %u has %lld bytes, %d to %d blocks are possible\n", file,
		      (long long)st.st_size, f->p_size, f->p_limit);
	if ((st.st_mode & 0777) != f->mode)
		wrong("file %u has mode %o, not %o\n", file, st.st_mode & 0777, f->mode);
	if (fgetxattr(fd, "user.step", &xattr, sizeof(xattr)) < 0 && errno != ENODATA)
		wrong("file %u: no attribute: %s\n", file, strerror(errno));
	if (xattr != f->xattr)
		wrong("file %u has the attribute of step %d, not %d\n", file, xattr, f->xattr);
	bytes = pread(fd, got, sizeof(got), 0);
	for (block = 0; block < st.st_size / PAGE && block < BLOCKS; block++) {
		if (bytes < (block + 1) * PAGE &&
		    pread(fd, got[block], PAGE, (off_t)block * PAGE) != PAGE)
			wrong("file %u block %d: %s\n", file, block, strerror(errno));
		else
			check_block(file, block, got[block], last);
	}
	close(fd);
}

/* With the step after the promise not there, then with it there. */
static int check(int promised)
{
	int number, last = promised, partly, i;
	struct step s;

	do
		s = step_of(++last);
	while (!promises(&s));
	for (partly = 0; partly < 2; partly++) {
		forget();
		for (number = 0; number <= promised; number++)
			apply(number, false);
		for (; number < last; number++)
			apply(number, true);
		if (partly)
			apply(last, true);
		faults = 0;
		report[0] = 0;
		for (i = 0; i < FILES; i++)
			check_file(i, last);
		if (!faults)
			return 0;
		printf("with step %d %s:\n%s", last, partly ? "done" : "not done", report);
	}
	printf("FAILED: seed %llu, promised %d\n", (unsigned long long)seed, promised);
	return 1;
}

static bool options(int argc, char **argv, int first)
{
	for (; first < argc; first++) {
		if (!strncmp(argv[first], "seed=", 5))
			seed = strtoull(argv[first] + 5, NULL, 0);
		else if (strncmp(argv[first], "drive=", 6))
			return false;
		else if ((drive = open(argv[first] + 6, O_RDONLY)) < 0)
			stop(-1, argv[first] + 6);
	}
	return true;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !chdir(argv[1])) {
		if (argc > 4 && !strcmp(argv[2], "run") && options(argc, argv, 5))
			return run(atoi(argv[3]), atoi(argv[4]));
		if (argc > 3 && !strcmp(argv[2], "check") && options(argc, argv, 4))
			return check(atoi(argv[3]));
	}
	fprintf(stderr, "usage: promise DIR run FROM TO [seed=N] [drive=DEVICE]\n"
		"       promise DIR check PROMISED [seed=N]\n");
	return 2;
}
