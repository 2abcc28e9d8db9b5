// SPDX-License-Identifier: GPL-2.0-or-later
/* This is kvtool VOLUME put KEY VALUE | get KEY | delete KEY | list. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

#define FIRST	0x6b76000000000000	/* "kv" */
#define BUCKETS	1024

static int print(void *arg, const char *key, const void *value, size_t len)
{
	(void)arg;
	printf("%s ", key);
	fwrite(value, 1, len, stdout);
	putchar('\n');
	return 0;
}

static int get(const struct kv *kv, const char *key)
{
	char *value = malloc(OFTL_WRITE_MAX);
	ssize_t n = value ? kv_get(kv, key, value, OFTL_WRITE_MAX) : -1;

	if (n >= 0) {
		fwrite(value, 1, n, stdout);
		putchar('\n');
	}
	free(value);
	return n < 0 ? -1 : 0;
}

/*
 * Returns -1 with errno after an error, and -2 if it is none of the commands.
 */
static int run(const struct kv *kv, int argc, char **argv)
{
	if (argc == 1 && !strcmp(argv[0], "list"))
		return kv_each(kv, print, NULL);
	if (argc == 2 && !strcmp(argv[0], "get"))
		return get(kv, argv[1]);
	if (argc == 2 && !strcmp(argv[0], "delete"))
		return kv_delete(kv, argv[1]) ? -1 : kv_sync(kv, argv[1]);
	if (argc == 3 && !strcmp(argv[0], "put"))
		return kv_put(kv, argv[1], argv[2], strlen(argv[2])) ? -1 :
		       kv_sync(kv, argv[1]);
	return -2;
}

int main(int argc, char **argv)
{
	struct kv kv = { .first = FIRST, .buckets = BUCKETS };
	int ret;

	if (argc < 3) {
		fprintf(stderr, "usage: kvtool VOLUME put KEY VALUE | get KEY | delete KEY | list\n");
		return 2;
	}
	kv.dev = oftl_open(argv[1]);
	if (!kv.dev) {
		fprintf(stderr, "kvtool: %s\n", oftl_message());
		return 1;
	}
	ret = run(&kv, argc - 2, argv + 2);
	if (ret == -2)
		fprintf(stderr, "kvtool: %s: must be put KEY VALUE, get KEY, delete KEY or list\n",
			argv[2]);
	else if (ret)
		fprintf(stderr, "kvtool: %s\n", errno == ENOENT ?
			"there is no such key" : strerror(errno));
	if (oftl_close(kv.dev)) {
		fprintf(stderr, "kvtool: %s\n", oftl_message());
		return 1;
	}
	return -ret;
}
