/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes that are there as a whole or not at all: RWF_ATOMIC, which the C library's headers
 * may not have yet, and the transactions of F2FS's ioctls.
 */
#ifndef ATOMIC_H
#define ATOMIC_H

#include <linux/f2fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#ifndef RWF_ATOMIC
#define RWF_ATOMIC 0x40
#endif

#define FEATURES F2FS_IOC_GET_FEATURES
#define START F2FS_IOC_START_ATOMIC_WRITE
#define COMMIT F2FS_IOC_COMMIT_ATOMIC_WRITE
#define ABORT F2FS_IOC_ABORT_ATOMIC_WRITE

#endif
