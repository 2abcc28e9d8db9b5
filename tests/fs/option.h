/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arguments NAME=NUMBER of the programs here */
#ifndef OPTION_H
#define OPTION_H

#include <stdlib.h>
#include <string.h>

#include "rfs_plat.h"

/* The number, or otherwise where no argument has the name */
static inline u64 option(int argc, char **argv, const char *name, u64 otherwise)
{
	size_t len = strlen(name);
	int i;

	for (i = 1; i < argc; i++)
		if (!strncmp(argv[i], name, len) && argv[i][len] == '=')
			return strtoull(argv[i] + len + 1, NULL, 0);
	return otherwise;
}

#endif
