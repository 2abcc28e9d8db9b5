// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * direct FILE: direct reads of a file beside those who write it, who write into the
 * memory that is read to, and who truncate it. A block is a page of one 64-bit word,
 * its number and how often it was written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096
#define WORDS (PAGE / sizeof(uint64_t))
#define BLOCKS 512
#define READERS 8
#define READS 400
#define ROUNDS 2
#define OVERWRITES 1000
#define MEETINGS 20	/* of reads with writes, at least */

#define CHECK(what)                                                            \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "direct.c:%d: %s: %s\n", __LINE__,     \
				#what, strerror(errno));                       \
			exit(1);                                               \
		}                                                              \
	} while (0)

static const char *path;
static atomic_uint written[BLOCKS];	/* rounds that were completed */
static atomic_bool over;
static atomic_uint met[2];	/* blocks read in even and odd rounds that were written meanwhile */

static uint64_t word(unsigned int block, unsigned int round)
{
	return (uint64_t)block << 32 | round;
}

static void same(const uint64_t *page, unsigned int w)
{
	if (page[w] == page[0])
		return;
	fprintf(stderr, "direct.c: word 0 of a page is %#jx, word %u is %#jx\n",
		(uintmax_t)page[0], w, (uintmax_t)page[w]);
	exit(1);
}

static uint64_t *pages(unsigned int n)
{
	void *memory;

	CHECK(posix_memalign(&memory, PAGE, n * PAGE) == 0);
	return memory;
}

static void write_round(int fd, unsigned int round, uint64_t *page)
{
	for (unsigned int block = 0; block < BLOCKS; block++) {
		for (unsigned int i = 0; i < WORDS; i++)
			page[i] = word(block, round);
		CHECK(pwrite(fd, page, PAGE, (off_t)block * PAGE) == PAGE);
		atomic_store(&written[block], round);
		/* some are on the drive, some in memory only */
		if (block % 64 == 63)
			CHECK(fdatasync(fd) == 0);
	}
}

/* Rounds in turn through the page cache and past it */
static void *writer(void *unused)
{
	int cached = open(path, O_RDWR), direct = open(path, O_RDWR | O_DIRECT);
	uint64_t *page = pages(1);

	(void)unused;
	CHECK(cached >= 0 && direct >= 0);
	for (unsigned int round = 2; round < 2 + ROUNDS; round++)
		write_round(round % 2 ? direct : cached, round, page);
	atomic_store(&over, true);
	free(page);
	return NULL;
}

/* What is read is one write, and none that was overwritten before the read began */
static void *reader(void *seed)
{
	unsigned int random = (uintptr_t)seed, before[16];
	int fd = open(path, O_RDONLY | O_DIRECT);
	uint64_t *data = pages(16);

	CHECK(fd >= 0);
	for (unsigned int i = 0; i < READS || !atomic_load(&over); i++) {
		unsigned int n = 1 + rand_r(&random) % 16;
		unsigned int at = rand_r(&random) % (BLOCKS - n);

		for (unsigned int k = 0; k < n; k++)
			before[k] = atomic_load(&written[at + k]);
		CHECK(pread(fd, data, n * PAGE, (off_t)at * PAGE) == n * PAGE);
		for (unsigned int k = 0; k < n; k++) {
			const uint64_t *page = &data[k * WORDS];

			CHECK(page[0] >> 32 == at + k);
			CHECK((uint32_t)page[0] >= before[k]);
			met[page[0] % 2] += (uint32_t)page[0] > before[k];
			for (unsigned int w = 1; w < WORDS; w++)
				same(page, w);
		}
	}
	free(data);
	close(fd);
	return NULL;
}

static void beside_writers(void)
{
	pthread_t readers[READERS], writes;

	CHECK(pthread_create(&writes, NULL, writer, NULL) == 0);
	for (uintptr_t i = 0; i < READERS; i++)
		CHECK(pthread_create(&readers[i], NULL, reader, (void *)(i + 1)) == 0);
	for (unsigned int i = 0; i < READERS; i++)
		CHECK(pthread_join(readers[i], NULL) == 0);
	CHECK(pthread_join(writes, NULL) == 0);
	CHECK(met[0] >= MEETINGS && met[1] >= MEETINGS);
}

static void *block_writer(void *unused)
{
	int cached = open(path, O_RDWR), direct = open(path, O_RDWR | O_DIRECT);
	uint64_t *page = pages(1);

	(void)unused;
	CHECK(cached >= 0 && direct >= 0);
	for (unsigned int round = 1; round <= OVERWRITES; round++) {
		for (unsigned int i = 0; i < WORDS; i++)
			page[i] = word(0, round);
		/* most find the page in memory, changed and not written yet */
		CHECK(pwrite(round % 8 ? cached : direct, page, PAGE, 0) == PAGE);
		atomic_store(&written[0], round);
	}
	atomic_store(&over, true);
	free(page);
	close(direct);
	close(cached);
	return NULL;
}

static void *block_reader(void *unused)
{
	int fd = open(path, O_RDONLY | O_DIRECT);
	uint64_t *page = pages(1);

	(void)unused;
	CHECK(fd >= 0);
	while (!atomic_load(&over)) {
		unsigned int before = atomic_load(&written[0]);

		CHECK(pread(fd, page, PAGE, 0) == PAGE);
		CHECK((uint32_t)page[0] >= before);
		met[0] += (uint32_t)page[0] > before;
		for (unsigned int w = 1; w < WORDS; w++)
			same(page, w);
	}
	free(page);
	close(fd);
	return NULL;
}

/* A page of the page cache that is overwritten while it is read directly */
static void beside_overwriter(void)
{
	pthread_t reads, writes;

	atomic_store(&over, false);
	atomic_store(&written[0], 0);
	atomic_store(&met[0], 0);
	CHECK(pthread_create(&writes, NULL, block_writer, NULL) == 0);
	CHECK(pthread_create(&reads, NULL, block_reader, NULL) == 0);
	CHECK(pthread_join(reads, NULL) == 0);
	CHECK(pthread_join(writes, NULL) == 0);
	CHECK(met[0] >= MEETINGS);
}

static void *scribbler(void *memory)
{
	volatile uint64_t *word = memory;

	for (uint64_t i = 0; !atomic_load(&over); i++)
		word[i % (16 * WORDS)] = i;
	return NULL;
}

/* The memory of a read belongs to who asked: what it writes there makes no error */
static void beside_scribbler(void)
{
	int fd = open(path, O_RDONLY | O_DIRECT);
	uint64_t *data = pages(16);
	pthread_t scribbles;

	CHECK(fd >= 0);
	atomic_store(&over, false);
	CHECK(pthread_create(&scribbles, NULL, scribbler, data) == 0);
	for (unsigned int i = 0; i < READS; i++)
		CHECK(pread(fd, data, 16 * PAGE, (off_t)(i % 32) * 16 * PAGE) == 16 * PAGE);
	atomic_store(&over, true);
	CHECK(pthread_join(scribbles, NULL) == 0);
	free(data);
	close(fd);
}

/* Ends within a block, holes, addresses of memory that are no pages', odd offsets */
static void shapes(void)
{
	int fd = open(path, O_RDWR | O_TRUNC), direct = open(path, O_RDONLY | O_DIRECT);
	uint64_t *page = pages(1), *data = pages(16);
	char *bytes = (char *)data;

	CHECK(fd >= 0 && direct >= 0);
	for (unsigned int block = 0; block < 8; block++) {
		for (unsigned int i = 0; i < WORDS; i++)
			page[i] = word(block, 1);
		if (block != 2 && block != 3)
			CHECK(pwrite(fd, page, PAGE, (off_t)block * PAGE) == PAGE);
	}
	CHECK(ftruncate(fd, 7 * PAGE + 100) == 0);
	CHECK(fsync(fd) == 0);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	/* the last block shrank on the drive's side only: what was after its end is not read */
	CHECK(ftruncate(fd, 8 * PAGE) == 0);
	CHECK(pread(direct, data, 16 * PAGE, 0) == 8 * PAGE);
	for (unsigned int i = 0; i < 7 * WORDS; i++) {
		unsigned int block = i / WORDS;

		CHECK(data[i] == (block == 2 || block == 3 ? 0 : word(block, 1)));
	}
	for (unsigned int i = 7 * PAGE; i < 8 * PAGE; i++)
		CHECK(bytes[i] == (i < 7 * PAGE + 100 ? ((char *)page)[i % PAGE] : 0));
	CHECK(pread(direct, bytes + 512, 2 * PAGE, 4 * PAGE) == 2 * PAGE);
	CHECK(*(uint64_t *)(bytes + 512) == word(4, 1));
	CHECK(pread(direct, bytes, 1000, 5 * PAGE + 8) == 1000);
	CHECK(data[0] == word(5, 1));
	CHECK(pread(direct, bytes, PAGE, 8 * PAGE) == 0);
	free(data);
	free(page);
	close(direct);
	close(fd);
}

/* Who does not want to wait has an answer or none */
static void without_waiting(void)
{
	int fd = open(path, O_RDONLY | O_DIRECT);
	uint64_t *data = pages(1);
	struct iovec memory = { data, PAGE };

	CHECK(fd >= 0);
	for (unsigned int block = 0; block < 8; block++) {
		ssize_t got = preadv2(fd, &memory, 1, (off_t)block * PAGE, RWF_NOWAIT);

		CHECK(got == PAGE || (got < 0 && errno == EAGAIN));
	}
	free(data);
	close(fd);
}

int main(int argc, char **argv)
{
	uint64_t *page = pages(1);
	int fd;

	CHECK(argc == 2);
	path = argv[1];
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	write_round(fd, 1, page);
	CHECK(fsync(fd) == 0);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	beside_writers();
	beside_overwriter();
	beside_scribbler();
	shapes();
	without_waiting();
	close(fd);
	free(page);
	return 0;
}
