// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * atomic DIR [TEST...]: what Linux says of atomic writes (pwritev2's RWF_ATOMIC, statx), and what
 * RFS promises beyond that: any bytes up to 1 MiB through the page cache, whole blocks directly.
 * What is seen after a power cut is whole.c's subject.
 */
#define _GNU_SOURCE
#include <linux/aio_abi.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "atomic.h"
#include "checks.h"

#define MIB 0x100000
#define ATOMIC_BIT 0x00010000U		/* STATX_WRITE_ATOMIC */
#define ATOMIC_ATTR 0x00400000		/* STATX_ATTR_WRITE_ATOMIC */

/* Words of struct statx, whose names the C library's headers may not have yet */
enum { MASK, ATTRIBUTES = 0x08, UNIT_MIN = 0xa8, UNIT_MAX = 0xac, SEGMENTS_MAX = 0xb0 };

static unsigned char *memory(size_t bytes, unsigned char value)
{
	unsigned char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(data != MAP_FAILED);
	memset(data, value, bytes);
	return data;
}

static ssize_t put(int fd, const void *data, size_t bytes, off_t at)
{
	struct iovec iov = { (void *)data, bytes };

	return pwritev2(fd, &iov, 1, at, RWF_ATOMIC);
}

static int file(int flags)
{
	int fd = open("file", O_RDWR | O_CREAT | O_TRUNC | flags, 0644);

	CHECK(fd >= 0);
	return fd;
}

static off_t size_of(int fd)
{
	struct stat st = { 0 };

	OK(fstat(fd, &st));
	return st.st_size;
}

static unsigned int word(const char *name, size_t at)
{
	unsigned char stx[256] = { 0 };
	unsigned int value;

	OK(syscall(SYS_statx, AT_FDCWD, name, 0, ATOMIC_BIT, stx));
	memcpy(&value, stx + at, sizeof(value));
	return value;
}

TEST(statx_says_so)
{
	close(file(0));
	CHECK(word("file", MASK) & ATOMIC_BIT);
	CHECK(word("file", ATTRIBUTES) & ATOMIC_ATTR);
	CHECK(word("file", UNIT_MIN) == PAGE);
	CHECK(word("file", UNIT_MAX) == MIB);
	CHECK(word("file", SEGMENTS_MAX) == 1);
	/* a directory is not written */
	CHECK(!(word(".", ATTRIBUTES) & ATOMIC_ATTR) && !word(".", UNIT_MAX));
}

static void sizes(int flags)
{
	unsigned char *data = memory(MIB, 0);
	int fd = file(flags), blocks;

	for (blocks = 1; blocks <= 256; blocks += blocks < 20 ? 1 : 59) {
		size_t bytes = (size_t)blocks * PAGE;
		unsigned char value = blocks;

		memset(data, value, bytes);
		CHECK(put(fd, data, bytes, 3 * PAGE) == (ssize_t)bytes);
		if (size_of(fd) != 3 * PAGE + (off_t)bytes)
			CHECK(!"size");
		memset(data, ~value, bytes);
		CHECK(pread(fd, data, bytes, 3 * PAGE) == (ssize_t)bytes);
		CHECK(data[0] == value && data[bytes / 2] == value && data[bytes - 1] == value);
	}
	/* and what comes before is a hole */
	CHECK(pread(fd, data, 3 * PAGE, 0) == 3 * PAGE && !data[0] && !data[3 * PAGE - 1]);
	/* over what is there: in the middle */
	memset(data, 7, 16 * PAGE);
	CHECK(put(fd, data, 16 * PAGE, 40 * PAGE) == 16 * PAGE);
	CHECK(pread(fd, data, 18 * PAGE, 39 * PAGE) == 18 * PAGE);
	CHECK(data[0] != 7 && data[PAGE] == 7 && data[17 * PAGE - 1] == 7 && data[17 * PAGE] != 7);
	OK(fsync(fd));
	close(fd);
}

TEST(sizes_buffered)
{
	sizes(0);
}

TEST(sizes_direct)
{
	sizes(O_DIRECT);
}

static void refused(int flags)
{
	unsigned char *data = memory(2 * MIB, 1);
	struct iovec iov = { data, PAGE };
	int fd = file(flags);

	if (flags & O_DIRECT) {
		FAILS(put(fd, data, 512, 0), EINVAL);
		FAILS(put(fd, data, PAGE + 512, 0), EINVAL);
		FAILS(put(fd, data, PAGE, 512), EINVAL);
		FAILS(put(fd, data, 100, 100), EINVAL);
	}
	FAILS(put(fd, data, MIB + 1, 0), EINVAL);
	FAILS(put(fd, data, MIB + PAGE, 0), EINVAL);
	FAILS(put(fd, data, 2 * MIB, 0), EINVAL);
	CHECK(size_of(fd) == 0);
	/* the caller's memory may lie anywhere */
	CHECK(put(fd, data + 13, 2 * PAGE, 0) == 2 * PAGE);
	close(fd);
	/* who only reads */
	fd = open("file", O_RDONLY);
	FAILS(put(fd, data, PAGE, 0), EBADF);
	FAILS(preadv2(fd, &iov, 1, 0, RWF_ATOMIC), EOPNOTSUPP);
	close(fd);
}

/* Linux answers pwritev2 of nothing itself; by its other calls a file system is asked. */
static long put_nothing(int fd)
{
	struct iocb call = { .aio_fildes = fd, .aio_lio_opcode = IOCB_CMD_PWRITE,
			     .aio_rw_flags = RWF_ATOMIC }, *calls = &call;
	struct io_event event = { .res = 1 };
	aio_context_t context = 0;

	OK(syscall(SYS_io_setup, 1, &context));
	CHECK(syscall(SYS_io_submit, context, 1, &calls) == 1);
	CHECK(syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1);
	OK(syscall(SYS_io_destroy, context));
	return event.res;
}

TEST(nothing)
{
	unsigned char *data = memory(PAGE, 1);
	int fd = file(0);

	CHECK(put(fd, data, 0, 0) == 0);
	CHECK(put(fd, data, 0, 100) == 0);
	CHECK(put_nothing(fd) == -EINVAL);
	CHECK(size_of(fd) == 0);
	close(fd);
}

TEST(refused_buffered)
{
	refused(0);
}

TEST(refused_direct)
{
	refused(O_DIRECT);
}

#define SPAN (3 * MIB)

/* Bytes anywhere, over what is there and behind it, which stays as it is beside them. */
TEST(any_bytes)
{
	unsigned char *want = memory(SPAN, 0), *data = memory(MIB, 0), *got = memory(SPAN, 0);
	static const size_t odd[] = { 1, 100, 500, 2048, 2049, 3900, PAGE, PAGE + 1, MIB - 1, MIB };
	int fd = file(0), i;
	off_t size = 0;

	srandom(1);
	for (i = 0; i < 400; i++) {
		size_t bytes = 1 + random() % (5 * PAGE), at = random() % (20 * PAGE);

		if (i % 2)
			bytes = odd[i / 2 % 10];
		if (i % 3)
			at = random() % (SPAN - bytes);
		if (i % 7 == 0 && size + bytes < SPAN)
			at = size;
		if (at + bytes > SPAN)
			continue;
		memset(data, i, bytes);
		data[0] = 1;
		/* what a plain write has left in memory goes along */
		if (i % 5 == 0 && size > 100) {
			want[size / 2] = i;
			CHECK(pwrite(fd, want + size / 2, 1, size / 2) == 1);
		}
		CHECK(put(fd, data, bytes, at) == (ssize_t)bytes);
		memcpy(want + at, data, bytes);
		size = size > (off_t)(at + bytes) ? size : (off_t)(at + bytes);
		if (size_of(fd) != size)
			CHECK(!"size");
		/* the ends of the next one have to be read */
		if (i % 4 == 0)
			OK(fsync(fd));
		if (i % 4 == 0)
			OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
		if (i % 10 == 0)
			CHECK(pread(fd, got, SPAN, 0) == size && !memcmp(got, want, size));
	}
	OK(fsync(fd));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	CHECK(pread(fd, got, SPAN, 0) == size && !memcmp(got, want, size));
	/* memory that ends: nothing is written */
	OK(munmap(data + 9 * PAGE, PAGE));
	FAILS(put(fd, data, 12 * PAGE, 100), EFAULT);
	CHECK(pread(fd, got, SPAN, 0) == size && !memcmp(got, want, size));
	close(fd);
}

/* A mapping may have written behind the end of the file: that is not to be seen later. */
TEST(any_bytes_beside_a_mapping)
{
	unsigned char *data = memory(PAGE, 7), *map;
	int fd = file(0);

	CHECK(put(fd, data, 100, 0) == 100);
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	memset(map, 9, PAGE);
	CHECK(put(fd, data, 50, 200) == 50);
	CHECK(size_of(fd) == 250);
	CHECK(all(fd, 0, 100, 9) && all(fd, 100, 100, 0) && all(fd, 200, 50, 7));
	map[50] = 8;
	CHECK(put(fd, data, 10, 60) == 10);
	CHECK(map[50] == 8 && map[60] == 7 && map[70] == 9);
	OK(munmap(map, PAGE));
	OK(fsync(fd));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	CHECK(all(fd, 50, 1, 8) && all(fd, 60, 10, 7) && all(fd, 100, 100, 0));
	close(fd);
}

TEST(several_segments)
{
	unsigned char *one = memory(3 * PAGE, 1), *two = memory(PAGE, 2);
	struct iovec iov[] = { { one, 2 * PAGE + 100 }, { two, PAGE - 100 } };
	int fd = file(0);

	CHECK(pwritev2(fd, iov, 2, 0, RWF_ATOMIC) == 3 * PAGE);
	CHECK(all(fd, 0, 2 * PAGE + 100, 1));
	CHECK(all(fd, 2 * PAGE + 100, PAGE - 100, 2));
	close(fd);
}

TEST(at_the_end_of_the_file)
{
	unsigned char *data = memory(4 * PAGE, 3);
	int fd = open("file", O_RDWR | O_CREAT | O_APPEND, 0644);

	CHECK(put(fd, data, 2 * PAGE, 0) == 2 * PAGE);
	CHECK(put(fd, data, PAGE, 0) == PAGE);
	CHECK(size_of(fd) == 3 * PAGE);
	CHECK(write(fd, data, 100) == 100);
	/* the end is within a block now */
	CHECK(put(fd, data, PAGE, 0) == PAGE);
	CHECK(size_of(fd) == 4 * PAGE + 100 && all(fd, 0, 4 * PAGE + 100, 3));
	OK(ftruncate(fd, 3 * PAGE + 100));
	close(fd);
	/* behind it, with a hole between; the block of the old end is zero after it */
	fd = open("file", O_RDWR);
	CHECK(put(fd, data, PAGE, 6 * PAGE) == PAGE);
	CHECK(size_of(fd) == 7 * PAGE);
	CHECK(all(fd, 3 * PAGE, 100, 3));
	CHECK(all(fd, 3 * PAGE + 100, 3 * PAGE - 100, 0));
	CHECK(all(fd, 6 * PAGE, PAGE, 3));
	close(fd);
}

static void not_there(int flags)
{
	unsigned char *data = memory(8 * PAGE, 5), *page = memory(PAGE, 0);
	int fd = file(flags);

	CHECK(put(fd, data, 8 * PAGE, 0) == 8 * PAGE);
	memset(data, 6, 8 * PAGE);
	OK(munmap(data + 5 * PAGE, PAGE));
	FAILS(put(fd, data, 8 * PAGE, 0), EFAULT);
	FAILS(put(fd, data, 8 * PAGE, 8 * PAGE), EFAULT);
	FAILS(put(fd, data, 8 * PAGE, 64 * PAGE), EFAULT);
	CHECK(size_of(fd) == 8 * PAGE);
	CHECK(pread(fd, page, PAGE, 0) == PAGE && page[0] == 5 && page[PAGE - 1] == 5);
	CHECK(pread(fd, page, PAGE, 7 * PAGE) == PAGE && page[0] == 5);
	OK(fsync(fd));
	close(fd);
}

TEST(memory_that_is_not_there_buffered)
{
	not_there(0);
}

TEST(memory_that_is_not_there_direct)
{
	not_there(O_DIRECT);
}

/* From a mapping of the very blocks that are written */
TEST(from_the_file_itself)
{
	unsigned char *data = memory(16 * PAGE, 1), *map;
	int fd = file(0), i;

	for (i = 0; i < 16; i++)
		memset(data + i * PAGE, i, PAGE);
	CHECK(put(fd, data, 16 * PAGE, 0) == 16 * PAGE);
	map = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	map[3 * PAGE] = 99;
	CHECK(put(fd, map, 8 * PAGE, 4 * PAGE) == 8 * PAGE);
	for (i = 0; i < 8; i++)
		CHECK(map[(4 + i) * PAGE + 5] == i);
	CHECK(map[7 * PAGE] == 99);
	/* and a mapping is written through afterwards */
	map[5 * PAGE] = 77;
	OK(msync(map, 16 * PAGE, MS_SYNC));
	OK(munmap(map, 16 * PAGE));
	CHECK(pread(fd, data, PAGE, 5 * PAGE) == PAGE && data[0] == 77 && data[1] == 1);
	close(fd);
}

TEST(as_large_as_a_file_may_be)
{
	unsigned char *data = memory(4 * PAGE, 1);
	struct rlimit old, limit;
	int fd = file(0);

	signal(SIGXFSZ, SIG_IGN);
	OK(getrlimit(RLIMIT_FSIZE, &old));
	limit = old;
	limit.rlim_cur = 2 * PAGE;
	OK(setrlimit(RLIMIT_FSIZE, &limit));
	/* a part of it would fit */
	FAILS(put(fd, data, 4 * PAGE, 0), EFBIG);
	CHECK(size_of(fd) == 0);
	FAILS(put(fd, data, PAGE, 2 * PAGE), EFBIG);
	CHECK(put(fd, data, 2 * PAGE, 0) == 2 * PAGE);
	OK(setrlimit(RLIMIT_FSIZE, &old));
	close(fd);
}

/* What is appended within a transaction begins where that ends, not the file. */
TEST(transactions_as_large_as_a_file_may_be)
{
	unsigned char *data = memory(4 * PAGE, 1);
	struct rlimit old, limit;
	int fd = file(O_APPEND);

	signal(SIGXFSZ, SIG_IGN);
	OK(getrlimit(RLIMIT_FSIZE, &old));
	limit = old;
	limit.rlim_cur = 3 * PAGE;
	OK(setrlimit(RLIMIT_FSIZE, &limit));
	OK(ioctl(fd, START));
	CHECK(write(fd, data, 2 * PAGE) == 2 * PAGE);
	CHECK(write(fd, data, 2 * PAGE) == PAGE);
	FAILS(write(fd, data, 1), EFBIG);
	OK(ioctl(fd, COMMIT));
	CHECK(size_of(fd) == 3 * PAGE && all(fd, 0, 3 * PAGE, 1));
	OK(setrlimit(RLIMIT_FSIZE, &old));
	close(fd);
}

/* Few blocks are left: all or nothing; and what is there can be written again. */
TEST(on_a_full_volume)
{
	unsigned char *data = memory(MIB, 1);
	int fd = file(0), other = open("other", O_RDWR | O_CREAT, 0644), i;
	ssize_t got;
	off_t size;

	for (i = 0; i < 8; i++)
		CHECK(put(fd, data, MIB, (off_t)i * MIB) == MIB);
	do
		got = write(other, data, MIB);
	while (got == MIB);
	OK(fsync(other));
	/* room for a few */
	OK(ftruncate(other, (size_of(other) - 40 * PAGE) / PAGE * PAGE));
	OK(fsync(other));
	size = size_of(fd);
	FAILS(put(fd, data, MIB, size), ENOSPC);
	CHECK(size_of(fd) == size);
	FAILS(put(fd, data, MIB, size + 2 * MIB), ENOSPC);
	CHECK(size_of(fd) == size);
	CHECK(pread(fd, data, 1, size) == 0);
	/* what was reserved in vain is free again */
	CHECK(put(fd, data, 4 * PAGE, size) == 4 * PAGE);
	/* in halves: the one zone that is always to be had is small here */
	for (i = 0; i < 128; i++) {
		memset(data, i, MIB / 2);
		CHECK(put(fd, data, MIB / 2, (off_t)(i % 16) * (MIB / 2)) == MIB / 2);
	}
	OK(fsync(fd));
	for (i = 0; i < 16; i++)
		CHECK(all(fd, (off_t)i * (MIB / 2), MIB / 2, 112 + i));
	OK(unlink("other"));
	close(other);
	sync();
	CHECK(put(fd, data, MIB, size) == MIB);
	close(fd);
}

TEST(transactions_of_a_file)
{
	unsigned char *data = memory(PAGE, 2);
	int fd = file(0), other = open("file", O_RDWR);
	uint32_t features = 0;

	OK(ioctl(fd, FEATURES, &features));
	CHECK(features & 4);
	fill(fd, 0, 8 * PAGE, 1);
	OK(ioctl(fd, START));
	CHECK(pwrite(fd, data, PAGE, 2 * PAGE) == PAGE);
	CHECK(pwrite(fd, data, 100, 5 * PAGE + 50) == 100);
	CHECK(pwrite(fd, data, PAGE, 10 * PAGE + 100) == PAGE);
	/* who reads the file sees it, and its size */
	CHECK(all(other, 0, 2 * PAGE, 1) && all(other, 2 * PAGE, PAGE, 2));
	CHECK(all(fd, 5 * PAGE, 50, 1) && all(fd, 5 * PAGE + 50, 100, 2));
	CHECK(all(fd, 5 * PAGE + 150, 3 * PAGE - 150, 1) && all(fd, 8 * PAGE, 2 * PAGE + 100, 0));
	CHECK(all(fd, 10 * PAGE + 100, PAGE, 2));
	CHECK(size_of(other) == 11 * PAGE + 100);
	CHECK(pread(fd, data, PAGE, 11 * PAGE) == 100);
	OK(ioctl(fd, ABORT));
	CHECK(all(fd, 0, 8 * PAGE, 1));
	CHECK(size_of(fd) == 8 * PAGE);
	/* once more, and it is closed */
	OK(ioctl(other, START));
	CHECK(write(other, data, PAGE) == PAGE);
	OK(close(other));
	CHECK(all(fd, 0, 8 * PAGE, 1));
	/* and now it counts */
	memset(data, 3, PAGE);
	OK(ioctl(fd, START));
	OK(ioctl(fd, START));
	CHECK(pwrite(fd, data, PAGE, 0) == PAGE);
	CHECK(pwrite(fd, data, PAGE, 6 * PAGE) == PAGE);
	CHECK(pwrite(fd, data, 10, 20 * PAGE) == 10);
	OK(ioctl(fd, COMMIT));
	CHECK(size_of(fd) == 20 * PAGE + 10);
	CHECK(all(fd, 0, PAGE, 3) && all(fd, PAGE, 5 * PAGE, 1) && all(fd, 6 * PAGE, PAGE, 3));
	CHECK(all(fd, 7 * PAGE, PAGE, 1) && all(fd, 8 * PAGE, 12 * PAGE, 0));
	CHECK(all(fd, 20 * PAGE, 10, 3));
	/* it is over: what is written is written */
	CHECK(pwrite(fd, data, PAGE, 3 * PAGE) == PAGE);
	OK(ioctl(fd, ABORT));
	CHECK(all(fd, 3 * PAGE, PAGE, 3));
	/* nor is there anything to commit */
	FAILS(ioctl(fd, COMMIT), EINVAL);
	close(fd);
}

static void child(int fd, int starts)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (starts && (ioctl(fd, START) || pwrite(fd, "new", 3, 0) != 3))
			_exit(1);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

TEST(transactions_of_two_files)
{
	int fd = file(0), other = open("file", O_RDWR);

	fill(fd, 0, PAGE, 1);
	OK(ioctl(fd, START));
	CHECK(pwrite(fd, "new", 3, 0) == 3);
	FAILS(ioctl(other, START), EBUSY);
	FAILS(ioctl(other, COMMIT), EINVAL);
	FAILS(ioctl(other, ABORT), EINVAL);
	/* a child that ends has the file as well, and not the transaction */
	child(fd, 0);
	OK(ioctl(fd, COMMIT));
	CHECK(!all(fd, 0, PAGE, 1));
	fill(fd, 0, PAGE, 1);
	/* one that ends within its own leaves none, though the file is still open */
	child(fd, 1);
	CHECK(all(other, 0, PAGE, 1));
	FAILS(ioctl(fd, COMMIT), EINVAL);
	OK(ioctl(other, START));
	OK(ioctl(other, COMMIT));
	close(other);
	close(fd);
}

TEST(transactions_that_are_refused)
{
	unsigned char *data = memory(258 * PAGE, 2);
	int fd = file(0), other, i;

	fill(fd, 0, 4 * PAGE, 1);
	other = open("file", O_RDONLY);
	FAILS(ioctl(other, START), EBADF);
	close(other);
	other = open("file", O_RDWR | O_DIRECT);
	FAILS(ioctl(other, START), EINVAL);
	close(other);
	OK(ioctl(fd, START));
	/* 257 blocks at most: then there is a part of a write, and then an error */
	CHECK(pwrite(fd, data, 258 * PAGE, 0) == 257 * PAGE);
	FAILS(pwrite(fd, data, PAGE, 300 * PAGE), EFBIG);
	CHECK(pwrite(fd, data, PAGE, 17 * PAGE) == PAGE);
	FAILS(put(fd, data, PAGE, 0), EBUSY);
	FAILS(ftruncate(fd, 0), EBUSY);
	FAILS(fallocate(fd, 0, 0, MIB), EBUSY);
	OK(ioctl(fd, COMMIT));
	CHECK(size_of(fd) == 257 * PAGE && all(fd, 0, 257 * PAGE, 2));
	OK(ioctl(fd, START));
	for (i = 0; i < 4; i++)
		CHECK(pwrite(fd, data, 10, i * PAGE + PAGE - 5) == 10);
	OK(munmap(data + PAGE, PAGE));
	FAILS(pwrite(fd, data + PAGE, PAGE, 8 * PAGE), EFAULT);
	CHECK(all(fd, 8 * PAGE, PAGE, 2));
	/* behind the end: the size stays, and there is nothing to commit there */
	FAILS(pwrite(fd, data + PAGE, 10, 400 * PAGE + 10), EFAULT);
	CHECK(size_of(fd) == 257 * PAGE);
	OK(ioctl(fd, COMMIT));
	CHECK(size_of(fd) == 257 * PAGE);
	OK(ftruncate(fd, 0));
	close(fd);
}
