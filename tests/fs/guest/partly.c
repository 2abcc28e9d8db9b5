// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * partly DIR run STEPS: writes two blocks as one (RWF_ATOMIC), then a few bytes of the first of
 * them, which writeback sends at once, and never flushes the drive.
 * partly DIR check PROMISED: do both blocks have the same atomic write, whatever the few bytes say?
 * PROMISED is not looked at, since nothing is promised.
 *
 * Each second step has the page cache and the inode dropped in between, each fourth writes the few
 * bytes as a transaction of F2FS's ioctls.
 *
 * Exit status: 0, 1 what is there is wrong, 2 wrong arguments, or run failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomic.h"

#define PAGE 4096
#define PAIRS 8		/* of blocks, which steps write in turn */
#define FEW 64		/* bytes, at the beginning of a pair */

static void stop(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

/* Byte of a step's atomic write, and of the few bytes: neither is 0 */
static unsigned char byte_of(int step, bool few)
{
	return 1 + 2 * (step / PAIRS % 127) + few;
}

static int open_file(void)
{
	int fd = open("partly", O_RDWR | O_CREAT, 0644);

	if (fd < 0)
		stop("open");
	return fd;
}

static void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	if (fd < 0 || write(fd, "3", 1) != 1)
		stop("drop_caches");
	close(fd);
}

static void do_step(int step)
{
	off_t at = (off_t)(step % PAIRS) * 2 * PAGE;
	static char whole[2 * PAGE], few[FEW];
	struct iovec iov = { whole, sizeof(whole) };
	int fd = open_file();

	memset(whole, byte_of(step, false), sizeof(whole));
	memset(few, byte_of(step, true), sizeof(few));
	if (pwritev2(fd, &iov, 1, at, RWF_ATOMIC) != sizeof(whole))
		stop("atomic write");
	if (sync_file_range(fd, at, sizeof(whole), SYNC_FILE_RANGE_WAIT_BEFORE))
		stop("sync_file_range");
	if (step % 2) {
		close(fd);
		drop_caches();
		fd = open_file();
	}
	if (step % 4 == 3 && ioctl(fd, START))
		stop("start");
	if (pwrite(fd, few, sizeof(few), at) != sizeof(few))
		stop("write");
	if (step % 4 == 3 && ioctl(fd, COMMIT))
		stop("commit");
	if (sync_file_range(fd, at, PAGE, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
			    SYNC_FILE_RANGE_WAIT_AFTER))
		stop("sync_file_range");
	close(fd);
}

static bool is_all(const unsigned char *bytes, int n, unsigned char byte)
{
	while (n && *bytes == byte) {
		bytes++;
		n--;
	}
	return !n;
}

static int check(void)
{
	static unsigned char pair[2 * PAGE];
	int fd = open_file(), i, faults = 0;

	for (i = 0; i < PAIRS; i++) {
		ssize_t got = pread(fd, pair, sizeof(pair), (off_t)i * sizeof(pair));
		unsigned char whole = pair[sizeof(pair) - 1];

		if (!got)
			continue;
		/* the first byte says which of the two writes has come */
		if (got != sizeof(pair) ||
		    !is_all(pair + FEW, sizeof(pair) - FEW, whole) ||
		    !is_all(pair, FEW, *pair) || (*pair != whole && *pair != whole + 1)) {
			printf("pair %d: %zd bytes: %d, %d, and %d in the second block\n", i, got,
			       *pair, pair[FEW], whole);
			faults++;
		}
	}
	return faults != 0;
}

int main(int argc, char **argv)
{
	int step;

	if (argc < 4 || chdir(argv[1])) {
		fprintf(stderr, "usage: partly DIR run STEPS | check PROMISED\n");
		return 2;
	}
	if (!strcmp(argv[2], "check"))
		return check();
	for (step = 0; step < atoi(argv[3]); step++)
		do_step(step);
	return 0;
}
