// SPDX-License-Identifier: GPL-2.0-or-later
/* Programs complain here; a library has a complain() of its own. */
#include <stdarg.h>
#include <stdio.h>

#include "device.h"

void complain(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}
