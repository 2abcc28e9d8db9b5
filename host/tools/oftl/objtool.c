// SPDX-License-Identifier: GPL-2.0-or-later
/* This works on objects by hand: list, stat, get, put, delete. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "oftl.h"

static const char usage[] =
"usage: objtool list VOLUME\n"
"       objtool stat VOLUME OBJECT\n"
"       objtool get VOLUME OBJECT [FILE]\n"
"       objtool put VOLUME OBJECT [FILE]\n"
"       objtool delete VOLUME OBJECT\n"
"\n"
"Read and write objects on a volume of RFS. VOLUME is an image file, a zoned drive\n"
"that is not mounted, or the directory where it is mounted.\n"
"\n"
"  list      List the numbers of all objects and their bytes, in ascending order.\n"
"  stat      Print the attributes of an object.\n"
"  get       Copy the content of an object to FILE or to standard output.\n"
"  put       Make an object of FILE or standard input, or give it this content.\n"
"  delete    Delete an object.\n"
"\n"
"An OBJECT is a number of 64 bits, such as 17 or 0x11.\n"
"example: objtool put /tmp/volume 17 notes.txt\n"
"The exit status is 0 if it was done, 1 if it failed, and 2 for wrong usage.\n";

static int complain_of(const char *what)
{
	fprintf(stderr, "objtool: %s\n", what);
	return 1;
}

static int failed(void)
{
	return complain_of(oftl_message());
}

static int file_failed(const char *file)
{
	fprintf(stderr, "objtool: %s: %s\n", file, strerror(errno));
	return 1;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int print_all(struct oftl *dev, uint64_t *oid, size_t n)
{
	struct oattr attr;
	size_t i;

	qsort(oid, n, sizeof(*oid), by_number);
	for (i = 0; i < n; i++) {
		if (ogetattr(dev, oid[i], &attr))
			return failed();
		printf("%#llx %llu\n", (unsigned long long)oid[i],
		       (unsigned long long)attr.size);
	}
	return 0;
}

static int list(struct oftl *dev)
{
	uint64_t *oid = NULL, cursor = 0, next;
	size_t n = 0, room = 0;
	int ret;

	while ((ret = oftl_next(dev, &cursor, &next)) == 1) {
		if (n == room) {
			room = room ? 2 * room : 64;
			oid = realloc(oid, room * sizeof(*oid));
			if (!oid)
				abort();
		}
		oid[n++] = next;
	}
	ret = ret ? failed() : n ? print_all(dev, oid, n) : 0;
	free(oid);
	return ret;
}

static void print_time(const char *name, int64_t ns)
{
	int64_t rest = ns % 1000000000;
	time_t s = ns / 1000000000 - (rest < 0);
	struct tm tm;
	char text[40];

	if (gmtime_r(&s, &tm) && strftime(text, sizeof(text), "%FT%T", &tm))
		printf("%s %s.%09lldZ\n", name, text,
		       (long long)(rest < 0 ? rest + 1000000000 : rest));
}

static int print_stat(struct oftl *dev, uint64_t oid)
{
	struct oattr attr;
	uint32_t i;

	if (ogetattr(dev, oid, &attr))
		return failed();
	printf("object %#llx\nsize %llu\nused %llu\n", (unsigned long long)oid,
	       (unsigned long long)attr.size, (unsigned long long)attr.used);
	print_time("mtime", attr.mtime);
	print_time("ctime", attr.ctime);
	print_time("btime", attr.btime);
	printf("user ");
	for (i = 0; i < attr.user_len; i++)
		printf("%02x", attr.user[i]);
	printf("%s\n", attr.user_len ? "" : "none");
	return 0;
}

static int get(struct oftl *dev, uint64_t oid, FILE *to, const char *file,
	       char *part)
{
	uint64_t at = 0;
	ssize_t n;

	while ((n = oread(dev, oid, at, OFTL_WRITE_MAX, part)) > 0) {
		if (fwrite(part, 1, n, to) != (size_t)n)
			return file_failed(file);
		at += n;
	}
	if (n < 0)
		return failed();
	return fflush(to) ? file_failed(file) : 0;
}

static int put(struct oftl *dev, uint64_t oid, FILE *from, const char *file,
	       char *part)
{
	struct oattr attr = { .set = OATTR_SIZE };
	size_t n = fread(part, 1, OFTL_WRITE_MAX, from);

	/* Input that cannot be read makes no object. */
	if (ferror(from))
		return file_failed(file);
	if (ocreate(dev, oid) && errno != EEXIST)
		return failed();
	for (; n; n = fread(part, 1, OFTL_WRITE_MAX, from)) {
		if (owrite(dev, oid, attr.size, n, part))
			return failed();
		attr.size += n;
	}
	if (ferror(from))
		return file_failed(file);
	if (osetattr(dev, oid, &attr) || oflush(dev, oid))
		return failed();
	return 0;
}

typedef int copy_t(struct oftl *dev, uint64_t oid, FILE *with,
		   const char *file, char *part);

static int with_file(struct oftl *dev, uint64_t oid, const char *file,
		     const char *mode, FILE *with, copy_t *copy)
{
	char *part = malloc(OFTL_WRITE_MAX);
	int ret;

	if (!part)
		abort();
	if (file)
		with = fopen(file, mode);
	else
		file = "standard input or output";
	ret = with ? copy(dev, oid, with, file, part) : file_failed(file);
	if (with && fclose(with) && !ret)
		ret = file_failed(file);
	free(part);
	return ret;
}

static int delete(struct oftl *dev, uint64_t oid)
{
	return odelete(dev, oid) || oflush(dev, oid) ? failed() : 0;
}

static bool is_volume(const char *volume, const char *file)
{
	struct stat a, b;

	return !stat(volume, &a) && !stat(file, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int run(struct oftl *dev, const char *volume, const char *command,
	       uint64_t oid, const char *file)
{
	struct oattr attr;

	switch (command[0]) {
	case 'l':
		return list(dev);
	case 's':
		return print_stat(dev, oid);
	case 'g':
		/* This comes before the file is emptied. */
		if (ogetattr(dev, oid, &attr))
			return failed();
		if (file && is_volume(volume, file)) {
			fprintf(stderr, "objtool: %s: it is the volume; name another file\n",
				file);
			return 1;
		}
		return with_file(dev, oid, file, "w", stdout, get);
	case 'p':
		return with_file(dev, oid, file, "r", stdin, put);
	}
	return delete(dev, oid);
}

/* Each command begins with a letter of its own. */
static const struct command {
	const char *name;
	int least, most;	/* arguments, with itself and the volume */
} commands[] = {
	{ "list", 2, 2 },
	{ "stat", 3, 3 },
	{ "get", 3, 4 },
	{ "put", 3, 4 },
	{ "delete", 3, 3 },
};

static int parse(int argc, char **argv, uint64_t *oid)
{
	size_t i;
	char *end;

	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (argc > 1 && !strcmp(argv[1], commands[i].name))
			break;
	if (i == sizeof(commands) / sizeof(*commands)) {
		if (argc > 1)
			fprintf(stderr, "objtool: %s: there is no such command\n",
				argv[1]);
		fputs(usage, stderr);
		return 0;
	}
	if (argc - 1 < commands[i].least || argc - 1 > commands[i].most) {
		fprintf(stderr, "objtool: %s: too %s arguments\n", argv[1],
			argc - 1 < commands[i].least ? "few" : "many");
		fputs(usage, stderr);
		return 0;
	}
	if (argc < 4)
		return 1;
	errno = 0;
	*oid = strtoull(argv[3], &end, 0);
	if (end != argv[3] && !*end && !errno && argv[3][0] != '-')
		return 1;
	fprintf(stderr, "objtool: object %s: must be a number from 0 to 0xffffffffffffffff\n",
		argv[3]);
	return 0;
}

int main(int argc, char **argv)
{
	struct oftl *dev;
	uint64_t oid = 0;
	int ret;

	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		fputs(usage, stdout);
		return 0;
	}
	if (!parse(argc, argv, &oid))
		return 2;
	dev = oftl_open(argv[2]);
	if (!dev)
		return failed();
	ret = run(dev, argv[2], argv[1], oid, argc > 4 ? argv[4] : NULL);
	return oftl_close(dev) ? failed() : ret;
}
