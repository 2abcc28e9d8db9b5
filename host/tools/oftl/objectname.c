// SPDX-License-Identifier: GPL-2.0-or-later
/* Objects are files whose names are the numbers, in 16 hexadecimal digits. */
#include <stdio.h>
#include <string.h>

#include "backend.h"

void object_name(uint64_t oid, char name[OBJECT_NAME])
{
	snprintf(name, OBJECT_NAME, "%016llx", (unsigned long long)oid);
}

int object_of(const char *name, size_t len, uint64_t *oid)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t number = 0;
	size_t i;

	if (len != OBJECT_NAME - 1)
		return 0;
	for (i = 0; i < len; i++) {
		const char *digit = name[i] ? strchr(digits, name[i]) : NULL;

		if (!digit)
			return 0;
		number = number << 4 | (uint64_t)(digit - digits);
	}
	*oid = number;
	return 1;
}
