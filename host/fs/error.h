/* SPDX-License-Identifier: GPL-2.0 */
/* What an error of the drive is to the core, and what one of the core makes of the volume. */
#ifndef RFSM_ERROR_H
#define RFSM_ERROR_H

#include "rfsm.h"

/* Does what the option errors= says after an operation has failed. Returns ret. */
int rfsm_failed(struct rfs_sb_info *sbi, int ret);
/*
 * Under the lock: room lacks for this. The log says how much, with so many blocks that are asked
 * for: see struct rfs_lack
 */
void rfsm_say_room(struct rfs_sb_info *sbi, const char *what, u32 blocks);
bool rfsm_dead(const struct rfs_sb_info *sbi);
/*
 * Says what an error of the drive is to the core: an error of the moment is kept, and any other is
 * -EIO.
 */
int rfsm_drive_error(int error);

#endif
