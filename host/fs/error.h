/* SPDX-License-Identifier: GPL-2.0 */
/*
 * These functions translate errors: those of the drive for the core, and those of the core into a
 * state of the volume.
 */
#ifndef RFSM_ERROR_H
#define RFSM_ERROR_H

#include "rfsm.h"

/* Does what the option errors= says after an operation has failed. Returns ret. */
int rfsm_failed(struct rfs_sb_info *sbi, int ret);
/*
 * Says in the kernel log that there is no room for an operation that asks for so many blocks, and
 * how much room there is (struct rfs_lack). The caller holds the lock.
 */
void rfsm_say_room(struct rfs_sb_info *sbi, const char *what, u32 blocks);
bool rfsm_dead(const struct rfs_sb_info *sbi);
/*
 * Translates an error of the drive for the core: a temporary error is kept, and any other is -EIO.
 */
int rfsm_drive_error(int error);

#endif
