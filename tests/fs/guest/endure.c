// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * endure DIR fill PERCENT [seed=N]: files until so much of the volume is in use; prints "files F".
 * endure DIR run F FROM TO [seed=N]: steps FROM to TO - 1 of a fixed workload on these files.
 * endure DIR check F TO [seed=N]: is the content of all files what these steps leave?
 *
 * A step writes 1 to 16 blocks of a file over (buffered, mapped, directly), makes it durable,
 * cuts half of it off and writes that anew, replaces it, or renames it. One file in five is chosen
 * four times in five. In use is always as much as in the beginning. A step is a function of seed
 * and number alone, and each block tells its file, place and step.
 *
 * Exit status: 0, 1 what is there is wrong, 2 wrong arguments or an error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGE 4096
#define BLOCKS 128	/* of a file, at most */
#define PART 16		/* of a step, but for those that write a file anew */

enum kind { BUFFERED, MAPPED, DIRECT, SYNC, HALVE, REPLACE, RENAME };

struct step {
	enum kind kind;
	unsigned int file, block, blocks;
};

struct file {
	unsigned int name;		/* which of its two */
	int stamp[BLOCKS];		/* the step that wrote it, -1: none */
};

static uint64_t seed = 1;
static unsigned int count;
static struct file *files;
static uint32_t *buffer;

static uint64_t mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15ULL;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static unsigned int size_of(unsigned int file)
{
	return 1 + mix(mix(seed) ^ ~(uint64_t)file) % BLOCKS;
}

static struct step step_of(int number)
{
	static const enum kind kinds[32] = {
		BUFFERED, BUFFERED, BUFFERED, BUFFERED, BUFFERED, BUFFERED, BUFFERED,
		BUFFERED, BUFFERED, BUFFERED, BUFFERED, BUFFERED, BUFFERED, BUFFERED,
		BUFFERED, BUFFERED, BUFFERED, BUFFERED, MAPPED, MAPPED, MAPPED, DIRECT,
		DIRECT, DIRECT, SYNC, SYNC, SYNC, SYNC, HALVE, REPLACE, RENAME, RENAME,
	};
	uint64_t r = mix(mix(seed) ^ (uint64_t)number);
	unsigned int hot = count / 5 ? count / 5 : 1;
	struct step s = { .kind = kinds[r % 32] };
	unsigned int size;

	s.file = (r >> 8) % 5 ? (r >> 16) % hot : (r >> 16) % count;
	size = size_of(s.file);
	s.blocks = 1 + (r >> 48) % PART;
	if (s.blocks > size)
		s.blocks = size;
	s.block = (r >> 36) % (size - s.blocks + 1);
	if (s.kind == HALVE || s.kind == REPLACE) {
		s.block = s.kind == HALVE ? size / 2 : 0;
		s.blocks = size - s.block;
	}
	return s;
}

static const char *name_of(unsigned int file, unsigned int name)
{
	static char text[2][48];
	static int turn;

	turn = !turn;
	snprintf(text[turn], sizeof(text[0]), "d%u/file-%u-%u", (file + name) % 8, file, name);
	return text[turn];
}

/* What becomes of the model. */
static void apply(int number)
{
	struct step s = step_of(number);
	unsigned int i;

	if (s.kind == RENAME)
		files[s.file].name ^= 1;
	if (s.kind != RENAME && s.kind != SYNC)
		for (i = 0; i < s.blocks; i++)
			files[s.file].stamp[s.block + i] = number;
}

__attribute__((noreturn)) static void stop(int number, const char *what)
{
	printf("step %d: %s: %s\n", number, what, strerror(errno));
	exit(2);
}

static void content(uint32_t *data, unsigned int file, unsigned int block, int number)
{
	unsigned int i;

	for (i = 0; i < PAGE / 4; i += 4) {
		data[i] = file;
		data[i + 1] = block;
		data[i + 2] = number;
		data[i + 3] = i;
	}
}

static void write_blocks(int fd, const struct step *s, int number)
{
	off_t at = (off_t)s->block * PAGE;
	size_t bytes = s->blocks * PAGE;
	unsigned int i;
	void *map;

	for (i = 0; i < s->blocks; i++)
		content(buffer + i * PAGE / 4, s->file, s->block + i, number);
	if (s->kind != MAPPED) {
		if (pwrite(fd, buffer, bytes, at) != (ssize_t)bytes)
			stop(number, "write");
		return;
	}
	map = mmap(NULL, bytes, PROT_WRITE, MAP_SHARED, fd, at);
	if (map == MAP_FAILED)
		stop(number, "mmap");
	memcpy(map, buffer, bytes);
	if (msync(map, bytes, MS_ASYNC))
		stop(number, "msync");
	munmap(map, bytes);
}

static void perform(int number)
{
	struct step s = step_of(number);
	const char *name = name_of(s.file, files[s.file].name);
	int fd;

	if (s.kind == RENAME) {
		if (rename(name, name_of(s.file, !files[s.file].name)))
			stop(number, "rename");
		return;
	}
	if (s.kind == REPLACE && unlink(name))
		stop(number, "unlink");
	fd = open(name, O_RDWR | (s.kind == REPLACE ? O_CREAT | O_EXCL : 0) |
		  (s.kind == DIRECT ? O_DIRECT : 0), 0644);
	if (fd < 0)
		stop(number, name);
	if (s.kind == HALVE && ftruncate(fd, (off_t)s.block * PAGE))
		stop(number, "ftruncate");
	if (s.kind == SYNC && fsync(fd))
		stop(number, "fsync");
	if (s.kind != SYNC)
		write_blocks(fd, &s, number);
	if (close(fd))
		stop(number, "close");
}

/* As if step -1 had replaced the file. */
static void make(unsigned int file)
{
	struct step s = { .kind = REPLACE, .file = file, .blocks = size_of(file) };
	int fd = open(name_of(file, 0), O_RDWR | O_CREAT | O_EXCL, 0644);

	if (fd < 0)
		stop(-1, "open");
	write_blocks(fd, &s, -1);
	if (fsync(fd) || close(fd))
		stop(-1, "fsync");
}

static int fill(unsigned int percent)
{
	unsigned int file = 0, i;
	struct statfs st;
	char name[16];

	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		if (mkdir(name, 0755))
			stop(-1, name);
	}
	do {
		make(file++);
		if (statfs(".", &st))
			stop(-1, "statfs");
	} while ((uint64_t)(st.f_blocks - st.f_bfree) * 100 < (uint64_t)st.f_blocks * percent);
	printf("files %u\nblocks %llu\n", file, (unsigned long long)st.f_blocks);
	return 0;
}

static unsigned int check_file(unsigned int file)
{
	const struct file *f = &files[file];
	unsigned int wrong = 0, block, size = size_of(file);
	uint32_t expected[PAGE / 4];
	struct stat st;
	int fd = open(name_of(file, f->name), O_RDONLY);

	if (fd < 0 || fstat(fd, &st) || st.st_size != (off_t)size * PAGE ||
	    access(name_of(file, !f->name), F_OK) == 0) {
		printf("file %u is not there, or not of its size\n", file);
		close(fd);
		return 1;
	}
	for (block = 0; block < size; block++) {
		content(expected, file, block, f->stamp[block]);
		if (pread(fd, buffer, PAGE, (off_t)block * PAGE) == PAGE &&
		    !memcmp(buffer, expected, PAGE))
			continue;
		if (wrong++)
			continue;
		printf("file %u block %u: file %u block %u step %d, not step %d\n", file, block,
		       buffer[0], buffer[1], (int)buffer[2], f->stamp[block]);
	}
	close(fd);
	return wrong;
}

static int model(int steps)
{
	int number;

	files = calloc(count, sizeof(*files));
	if (!files || !count)
		return 2;
	for (number = 0; number < (int)count; number++)
		memset(files[number].stamp, -1, sizeof(files[0].stamp));
	for (number = 0; number < steps; number++)
		apply(number);
	return 0;
}

static int run(int from, int to)
{
	if (model(from))
		return 2;
	for (; from < to; from++) {
		perform(from);
		apply(from);
	}
	return 0;
}

static int check(int steps)
{
	unsigned int file, wrong = 0;

	if (model(steps))
		return 2;
	for (file = 0; file < count; file++)
		wrong += check_file(file);
	printf("%u files after %d steps, %u faults\n", count, steps, wrong);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strncmp(argv[argc - 1], "seed=", 5))
		seed = strtoull(argv[--argc] + 5, NULL, 0);
	if (argc > 3 && !chdir(argv[1]) &&
	    !posix_memalign((void **)&buffer, PAGE, BLOCKS * PAGE)) {
		count = atoi(argv[3]);
		if (argc == 4 && !strcmp(argv[2], "fill"))
			return fill(atoi(argv[3]));
		if (argc == 6 && !strcmp(argv[2], "run"))
			return run(atoi(argv[4]), atoi(argv[5]));
		if (argc == 5 && !strcmp(argv[2], "check"))
			return check(atoi(argv[4]));
	}
	fprintf(stderr, "usage: endure DIR fill PERCENT | run FILES FROM TO | check FILES TO"
		" [seed=N]\n");
	return 2;
}
