/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef RSDCTL_TABLES_H
#define RSDCTL_TABLES_H

#include "snapshot.h"

/* A duration for people, as "12.3 us". */
void human_ns(char *buf, size_t size, double ns);

/* Prints the counters in groups, for people. @source names the drive. */
void tables_print(FILE *out, const struct snapshot *s, const char *source);

/* Prints what each counter counts. */
void tables_counters(FILE *out);

#endif
