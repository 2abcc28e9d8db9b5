/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef RSDCTL_TABLES_H
#define RSDCTL_TABLES_H

#include "snapshot.h"

/* Prints the counters in groups, for people. @source names the drive. */
void tables_print(FILE *out, const struct snapshot *s, const char *source);

/* Prints what each counter counts. */
void tables_counters(FILE *out);

#endif
