// SPDX-License-Identifier: GPL-2.0-or-later
/* The message of an error is kept for the caller, by thread. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "device.h"
#include "backend.h"

static __thread char message[512];

void complain(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	errno = error;
}

const char *oftl_message(void)
{
	return message;
}
