/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What fsck says of a volume in a test */
#ifndef TESTS_FS_CLEAN_H
#define TESTS_FS_CLEAN_H

#include <stdio.h>

#include "check.h"
#include "checkpoint/checkpoint.h"
#include "tools/tools.h"

static inline void say(void *arg, const char *text)
{
	(void)arg;
	fprintf(stderr, "fsck: %s\n", text);
}

/* A check-point is written, and fsck, which reads all data, finds no fault. */
static inline void check_clean(struct rfs_fs *fs)
{
	struct rfs_report report = { .say = say, .read_data = true };

	CHECK_EQ(rfs_checkpoint(fs, 0), 0);
	CHECK_EQ(rfs_check(fs, &report), 0);
	CHECK_EQ(report.faults, 0);
}

#endif
