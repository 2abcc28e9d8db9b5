/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is left of a hybrid volume without its flash, as a number, and on a new drive. */
#ifndef FLASHLESS_CHECK_H
#define FLASHLESS_CHECK_H

#include "memdev.h"
#include "volume/volume.h"

/*
 * Names, inodes, and what the slow device has of files; blocks that flash alone has count
 * as holes.
 */
int flashless_digest_of(struct rfs_fs *fs, u64 *digest);
/* Of a slow device alone; *seq: of its replica, if it is not NULL. -ENOENT: there is none */
int flashless_digest_seq(const struct rfs_slow_dev *slow, u64 *digest, u64 *seq);

static inline int flashless_digest(const struct rfs_slow_dev *slow, u64 *digest)
{
	return flashless_digest_seq(slow, digest, NULL);
}

/*
 * And what flash has, with or without the slow device. -EINVAL: a block that only the slow
 * device has is no error without it
 */
int slowless_digest(struct memdev *dev, bool gone, u64 *digest);

/* To the drive `to`, which is empty, with the slow device of the volume. NULL: done */
const char *flashless_restore(struct memdev *to, u64 *losses);

#endif
