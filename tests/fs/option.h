/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arguments NAME=NUMBER of the programs here */
#ifndef OPTION_H
#define OPTION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plat/rfs_plat.h"

struct option {			/* a table of them ends with one without a name */
	const char *name;
	u64 value, least, most;	/* value: by default, before options() */
	const char *what;
};

static inline void options_print(const char *usage, const struct option *o)
{
	printf("%s\n", usage);
	for (; o->name; o++)
		printf("  %s=N%*s%s; %llu to %llu (%llu)\n", o->name,
		       (int)(10 - strlen(o->name)), "", o->what,
		       (unsigned long long)o->least,
		       (unsigned long long)o->most,
		       (unsigned long long)o->value);
}

/* Whether it is one of the table, then with its value there. Ends the program for a wrong value */
static inline bool option_taken(struct option *o, const char *argument)
{
	const char *value = strchr(argument, '=');
	size_t len = value ? (size_t)(value - argument) : 0;
	char *end;

	for (; o->name && (!value || len != strlen(o->name) ||
			   strncmp(argument, o->name, len)); o++)
		;
	if (!o->name)
		return false;
	o->value = strtoull(++value, &end, 0);
	if (*value >= '0' && *value <= '9' && !*end && o->value >= o->least &&
	    o->value <= o->most)
		return true;
	fprintf(stderr, "%s: must be a number from %llu to %llu\n", argument,
		(unsigned long long)o->least, (unsigned long long)o->most);
	exit(2);
}

/*
 * Set the values that arguments give, from number `first` on. Anything that is
 * not in the table ends the program with 2, --help with 0.
 */
static inline void options(int argc, char **argv, int first, const char *usage,
			   struct option *table)
{
	int i;

	if (argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		options_print(usage, table);
		exit(0);
	}
	for (i = first; i < argc; i++)
		if (!option_taken(table, argv[i])) {
			fprintf(stderr, "%s: there is no such option; see %s --help\n",
				argv[i], argv[0]);
			exit(2);
		}
}

#endif
