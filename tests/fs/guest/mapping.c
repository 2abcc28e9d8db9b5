// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mapping FILE COPY: two threads read FILE directly into a mapping of COPY, which is as
 * large, while one changes pages of that, and one maps and unmaps other memory. Ends with
 * 0 if all that was to be read was.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB 1048576UL
#define PAGE 4096UL
#define READS 25

static volatile bool over;
static char *target;
static size_t size;
static int source;

static uint32_t draw(uint32_t *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 4;
}

static void *change(void *arg)
{
	uint32_t seed = 0;

	while (!over)
		target[draw(&seed) % (size / PAGE) * PAGE]++;
	return arg;
}

static void *map(void *arg)
{
	while (!over) {
		char *more = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		*more = 1;
		munmap(more, 16 * PAGE);
		mprotect(target + size - PAGE, PAGE, PROT_READ | PROT_WRITE);
	}
	return arg;
}

/* NULL: all of it was read */
static void *read_some(void *arg)
{
	uint32_t seed = 77 + (uintptr_t)arg, i;

	for (i = 0; i < READS; i++) {
		size_t at = draw(&seed) % (size / MIB) * MIB;

		if (pread(source, target + at, MIB, at) != (ssize_t)MIB) {
			perror("read");
			return &source;
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *(*const work[])(void *) = { read_some, read_some, change, map };
	void *bad, *any_bad = NULL;
	pthread_t thread[4];
	struct stat st;
	uintptr_t i;
	int copy;

	source = argc == 3 ? open(argv[1], O_RDONLY | O_DIRECT) : -1;
	copy = argc == 3 ? open(argv[2], O_RDWR) : -1;
	if (source < 0 || copy < 0 || fstat(copy, &st)) {
		perror("mapping FILE COPY");
		return 1;
	}
	size = st.st_size;
	target = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
	if (target == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, work[i], (void *)i);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], &bad);
		any_bad = i < 2 && bad ? bad : any_bad;
		over = i;	/* both readers have ended */
	}
	return any_bad ? 1 : 0;
}
