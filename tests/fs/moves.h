/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What check-points would write if they kept moves, the old and new address of each copy of
 * cleaning, in place of the leaves that copies make dirty ("Room" in host/fs/doc/design.md).
 */
#ifndef MOVES_H
#define MOVES_H

#include "volume/device.h"

void moves_hook(struct rfs_dev_ops *ops);	/* it is told what is appended, */
/*
 * and counts from now on. Files have up to so many leaves, and so many of these are in a block of
 * the node map; memory is for so many blocks of moves, beyond which leaves are written.
 */
void moves_begin(u32 leaves, u32 leaves_a_map, u32 blocks);
void moves_print(void);		/* what both ways write, as an object of JSON */

#endif
