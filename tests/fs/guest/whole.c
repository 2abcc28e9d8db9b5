// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * whole DIR run FROM TO [seed=N] [drive=DEVICE]: steps FROM to TO - 1 of a fixed workload of
 * atomic writes, while another process writes, deletes and syncs files beside them.
 * whole DIR check PROMISED [seed=N]: is each atomic write there as a whole or not at all, and what
 * step PROMISED and those before it have promised? PROMISED is -1 if none was.
 *
 * A step writes 1 to 256 blocks of a file as one (RWF_ATOMIC through the page cache or directly, or
 * directly without it), or a few blocks here and there, through the page cache or by F2FS's ioctls
 * as one, which are committed or dropped, or makes the file durable. After a commit and what makes
 * durable `run` prints "promised STEP", and, with `drive`, how many
 * operations the log of that namespace's drive has then. A step is a function of seed and number
 * alone, and each block tells its file, place and step, so `check` needs no record of that.
 *
 * Exit status: 0, 1 what is there is wrong, 2 wrong arguments, or run failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atomic.h"
#include "oplog.h"

#define PAGE 4096
#define FILES 3
#define BLOCKS 400	/* of a file, at most */
#define MOST 256	/* blocks of an atomic write */
#define STEPS 4096	/* that check looks at */

enum kind { BUFFERED, DIRECT, PLAIN, LOOSE, BATCH, DROPPED, FSYNC };

struct step {
	enum kind kind;
	int file, block, blocks;
};

static uint64_t seed = 1;
static int drive = -1;	/* namespace whose operations are counted */
static int seen[FILES][BLOCKS];	/* which step's data a block has, -1: none */
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
	static const enum kind kinds[] = {
		BUFFERED, BUFFERED, BUFFERED, DIRECT, DIRECT, PLAIN, PLAIN, LOOSE, BATCH, BATCH,
		DROPPED, FSYNC,
	};
	uint64_t r = mix(mix(seed) ^ mix(number + 1));
	struct step s = {
		.kind = kinds[r % 12],
		.file = r / 12 % FILES,
		.blocks = 1 + (r >> 16) % (r >> 8 & 1 ? MOST : 16),
	};

	/* now and then as much as there can be */
	if ((r >> 9) % 16 == 0)
		s.blocks = MOST;
	s.block = (r >> 32) % (BLOCKS - s.blocks + 1);
	return s;
}

/* Of the blocks of a range that are written by themselves, one in four */
static bool is_loose(int number, int block)
{
	return mix(mix(number) ^ mix(block)) % 4 == 0;
}

static bool is_row(const struct step *s)
{
	return s->kind == BUFFERED || s->kind == DIRECT || s->kind == PLAIN;
}

static bool is_whole(const struct step *s)
{
	return is_row(s) || s->kind == BATCH;
}

static bool promises(const struct step *s)
{
	return s->kind == FSYNC || s->kind == BATCH;
}

static bool writes(const struct step *s, int number, int file, int block)
{
	if (s->file != file || block < s->block || block >= s->block + s->blocks)
		return false;
	return is_row(s) || ((s->kind == LOOSE || s->kind == BATCH) && is_loose(number, block));
}

static void fill(uint64_t *page, int number, int file, int block)
{
	int i;

	for (i = 0; i < PAGE / 8; i++)
		page[i] = mix(seed + i) ^ ((uint64_t)number << 32 | file << 16 | block);
	page[0] = (uint64_t)(number + 1) << 32 | file << 16 | block;
}

static void stop(int number, const char *what)
{
	fprintf(stderr, "step %d: %s: %s\n", number, what, strerror(errno));
	exit(2);
}

static int open_file(int file, int flags)
{
	char name[16];

	snprintf(name, sizeof(name), "whole%d", file);
	return open(name, flags, 0644);
}

static void do_step(int number, const struct step *s, char *data)
{
	bool direct = s->kind == DIRECT || s->kind == PLAIN;
	int fd = open_file(s->file, O_RDWR | O_CREAT | (direct ? O_DIRECT : 0)), i;
	struct iovec iov = { data, (size_t)s->blocks * PAGE };
	ssize_t got;

	if (fd < 0)
		stop(number, "open");
	for (i = 0; i < s->blocks; i++)
		fill((uint64_t *)(data + (size_t)i * PAGE), number, s->file, s->block + i);
	if (is_row(s)) {
		got = pwritev2(fd, &iov, 1, (off_t)s->block * PAGE,
			       s->kind == PLAIN ? 0 : RWF_ATOMIC);
		if (got != (ssize_t)iov.iov_len)
			stop(number, "atomic write");
	}
	if ((s->kind == BATCH || s->kind == DROPPED) && ioctl(fd, START))
		stop(number, "start");
	for (i = 0; !is_row(s) && s->kind != FSYNC && i < s->blocks; i++)
		if (is_loose(number, s->block + i) &&
		    pwrite(fd, data + (size_t)i * PAGE, PAGE, (off_t)(s->block + i) * PAGE) != PAGE)
			stop(number, "write");
	if (s->kind == BATCH && ioctl(fd, COMMIT))
		stop(number, "commit");
	/* else it is closed, which drops it as well */
	if (s->kind == DROPPED && number % 2 && ioctl(fd, ABORT))
		stop(number, "abort");
	if (s->kind == FSYNC && fsync(fd))
		stop(number, "fsync");
	close(fd);
}

/* The drive's operations so far */
static unsigned long long operations(int number)
{
	unsigned long long n;

	if (!oplog_operations(drive, &n))
		stop(number, "operation log");
	return n;
}

/* Files that come and go, writeback, check-points */
static void disturb(void)
{
	static char data[20 * PAGE];
	char name[16];
	int i, fd;

	for (i = 0;; i++) {
		snprintf(name, sizeof(name), "other%d", i % 8);
		unlink(name);
		fd = open(name, O_RDWR | O_CREAT, 0644);
		if (fd < 0 || write(fd, data, sizeof(data)) != sizeof(data))
			_exit(2);
		if (i % 4 == 0)
			fsync(fd);
		close(fd);
		if (i % 32 == 0)
			sync();
		usleep(500);
	}
}

static int run(int from, int to)
{
	pid_t other;
	char *data;
	int number;

	if (posix_memalign((void **)&data, PAGE, MOST * PAGE))
		stop(from, "memory");
	other = fork();
	if (other < 0)
		stop(from, "fork");
	if (!other)
		disturb();
	for (number = from; number < to; number++) {
		struct step s = step_of(number);

		do_step(number, &s, data);
		if (!promises(&s))
			continue;
		printf("promised %d", number);
		if (drive >= 0)
			printf(" %llu", operations(number));
		printf("\n");
		fflush(stdout);
	}
	/* it may have ended because of an error */
	number = waitpid(other, NULL, WNOHANG);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	if (number)
		stop(to, "the other process has ended");
	return 0;
}

static void look(int file)
{
	static uint64_t page[PAGE / 8], want[PAGE / 8];
	int fd = open_file(file, O_RDONLY), block;

	for (block = 0; block < BLOCKS; block++) {
		ssize_t got = fd < 0 ? 0 : pread(fd, page, PAGE, (off_t)block * PAGE);
		int number = got == PAGE ? (int)(page[0] >> 32) - 1 : -1;
		struct step s;

		seen[file][block] = number;
		if (got < 0 || (got && got != PAGE)) {
			printf("file %d block %d: %zd bytes are read\n", file, block, got);
			faults++;
			continue;
		}
		memset(want, 0, sizeof(want));
		if (number >= 0) {
			s = step_of(number);
			if (writes(&s, number, file, block))
				fill(want, number, file, block);
		}
		if (got && memcmp(page, want, PAGE)) {
			printf("file %d block %d: not what any step has written\n", file, block);
			faults++;
		}
	}
	if (fd >= 0)
		close(fd);
}

/* If one block is this step's, the others are, or a later one's. */
static void check_whole(int number, const struct step *s)
{
	int *of = seen[s->file], i, there = 0, older = -1;

	for (i = s->block; i < s->block + s->blocks; i++) {
		if (!writes(s, number, s->file, i))
			continue;
		there += of[i] == number;
		if (of[i] < number)
			older = i;
	}
	if (there && older >= 0) {
		printf("step %d wrote blocks %d to %d of file %d: %d are there, block %d is of %d\n",
		       number, s->block, s->block + s->blocks - 1, s->file, there, older,
		       of[older]);
		faults++;
	}
}

/* What was written up to a file's last fsync or commit is there, or what came later. */
static void check_promised(int promised)
{
	int last[FILES], number, file, block;

	for (file = 0; file < FILES; file++)
		last[file] = -1;
	for (number = 0; number <= promised; number++) {
		struct step s = step_of(number);

		if (promises(&s))
			last[s.file] = number;
	}
	for (number = 0; number <= promised; number++) {
		struct step s = step_of(number);

		file = s.file;
		for (block = s.block; number <= last[file] && block < s.block + s.blocks; block++)
			if (writes(&s, number, file, block) && seen[file][block] < number) {
				printf("file %d block %d: of step %d, but step %d was promised\n",
				       file, block, seen[file][block], number);
				faults++;
			}
	}
}

static int check(int promised)
{
	int number, file;

	for (file = 0; file < FILES; file++)
		look(file);
	for (number = 0; number < STEPS; number++) {
		struct step s = step_of(number);

		if (is_whole(&s))
			check_whole(number, &s);
	}
	check_promised(promised);
	return faults ? 1 : 0;
}

int main(int argc, char **argv)
{
	int first, from, to;

	for (first = argc; first > 3 && strchr(argv[first - 1], '='); first--) {
		const char *option = argv[first - 1];

		if (!strncmp(option, "seed=", 5))
			seed = strtoull(option + 5, NULL, 0);
		else if (strncmp(option, "drive=", 6))
			goto usage;
		else if ((drive = open(option + 6, O_RDONLY)) < 0)
			stop(0, option);
	}
	if (first < 4)
		goto usage;
	if (chdir(argv[1]))
		stop(0, argv[1]);
	from = atoi(argv[3]);
	if (!strcmp(argv[2], "check") && first == 4)
		return check(from);
	to = first == 5 ? atoi(argv[4]) : -1;
	if (!strcmp(argv[2], "run") && from >= 0 && to > from && to <= STEPS)
		return run(from, to);
usage:
	fprintf(stderr, "usage: whole DIR run FROM TO [seed=N] [drive=DEVICE]\n"
		"       whole DIR check PROMISED [seed=N]\n");
	return 2;
}
