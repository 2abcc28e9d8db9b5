// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the checkers PROGRAM DIR [TEST...] share: a test is TEST(name) { ... } and works in a
 * directory of its own below DIR. Prints a line for each check that fails and one for each test.
 * Exit status: 0 all passed, 1 not, 2 wrong arguments. Run as root.
 */
#ifndef CHECKS_H
#define CHECKS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define UNUSED __attribute__((unused))

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

static struct test *tests, **last = &tests;
static const char *running;
static unsigned int failures;

#define TEST(id)							\
	static void id(void);						\
	__attribute__((constructor)) static void add_##id(void)		\
	{								\
		static struct test t = { #id, id, NULL };		\
									\
		*last = &t;						\
		last = &t.next;						\
	}								\
	static void id(void)

static void failed(int line, const char *what)
{
	printf("FAILED %s, line %d: %s (%s)\n", running, line, what, strerror(errno));
	failures++;
}

/* Goes on after a failure: later checks may tell more. */
#define CHECK(condition)						\
	do {								\
		errno = 0;						\
		if (!(condition))					\
			failed(__LINE__, #condition);			\
	} while (0)
#define OK(call) CHECK((call) != -1)
#define FAILS(call, error) CHECK((call) == -1 && errno == (error))

UNUSED static int make(const char *name, const char *content)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	CHECK(write(fd, content, strlen(content)) == (ssize_t)strlen(content));
	return fd;
}

UNUSED static void touch(const char *name)
{
	close(make(name, ""));
}

UNUSED static bool exists(const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0;
}

UNUSED static struct stat of(const char *name)
{
	struct stat st = { 0 };

	OK(lstat(name, &st));
	return st;
}

UNUSED static bool content_is(const char *name, const char *content)
{
	char got[256] = { 0 };
	int fd = open(name, O_RDONLY);
	ssize_t n = read(fd, got, sizeof(got) - 1);

	close(fd);
	return n == (ssize_t)strlen(content) && !strcmp(got, content);
}

/* Every byte of a file's range is `value`. */
UNUSED static bool all(int fd, off_t from, size_t bytes, unsigned char value)
{
	unsigned char got[PAGE];

	while (bytes) {
		size_t part = bytes < PAGE ? bytes : PAGE, i;

		if (pread(fd, got, part, from) != (ssize_t)part)
			return false;
		for (i = 0; i < part; i++)
			if (got[i] != value)
				return false;
		from += part;
		bytes -= part;
	}
	return true;
}

UNUSED static void fill(int fd, off_t from, size_t bytes, unsigned char value)
{
	unsigned char data[PAGE];

	memset(data, value, sizeof(data));
	while (bytes) {
		size_t part = bytes < PAGE ? bytes : PAGE;

		CHECK(pwrite(fd, data, part, from) == (ssize_t)part);
		from += part;
		bytes -= part;
	}
}

/* What a child without privileges finds: its exit status. */
UNUSED static int as_user(int (*run)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		if (setgid(1000) || setuid(1000))
			_exit(99);
		_exit(run());
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* An operation that a file system need not have. */
UNUSED static bool has(int result)
{
	bool missing = result == -1 && errno == EOPNOTSUPP;

	CHECK(result != -1 || missing);
	return result != -1;
}

static void run(const struct test *t, const char *dir)
{
	unsigned int before = failures;
	char path[8192];

	running = t->name;
	snprintf(path, sizeof(path), "%s/%s", dir, t->name);
	umask(0);
	if (mkdir(path, 0755) || chdir(path)) {
		printf("FAILED %s: %s: %s\n", t->name, path, strerror(errno));
		failures++;
		return;
	}
	t->run();
	printf("%s %s\n", failures == before ? "passed" : "failed", t->name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char dir[4096];
	struct test *t;
	int i;

	if (argc < 2 || !realpath(argv[1], dir)) {
		fprintf(stderr, "usage: %s DIR [TEST...]\n", argv[0]);
		return 2;
	}
	for (t = tests; t; t = t->next) {
		bool chosen = argc == 2;

		for (i = 2; i < argc; i++)
			chosen |= !strcmp(argv[i], t->name);
		if (chosen)
			run(t, dir);
	}
	printf("%u checks failed\n", failures);
	return failures != 0;
}

#endif
