/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These functions format figures for people, in all of our tools alike. */
#ifndef COMMON_HUMAN_H
#define COMMON_HUMAN_H

#include <stdio.h>

/* Writes @ns nanoseconds in the unit that fits them, cut off to @size bytes. */
static inline void human_ns(char *buf, size_t size, double ns)
{
	if (ns < 1e3)
		snprintf(buf, size, "%.0f ns", ns);
	else if (ns < 1e6)
		snprintf(buf, size, "%.1f us", ns / 1e3);
	else if (ns < 1e9)
		snprintf(buf, size, "%.2f ms", ns / 1e6);
	else
		snprintf(buf, size, "%.2f s", ns / 1e9);
}

#endif
