/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The drive's own core under RFS's: a zoned drive of real-looking flash, one command at a
 * time, with faults by rule (hw/rsd-nvme/core/api/scenario.h). It notes what the faults
 * have destroyed.
 */
#ifndef NAND_H
#define NAND_H

#include "volume/device.h"

extern struct rfs_geometry nand_geo;
extern const struct rfs_dev_ops nand_ops;	/* their dev is not used */

/* A new drive with its data in the file `media`, and the rules of the file `rules` */
void nand_begin(const char *media, const char *rules);
void nand_end(void);

u64 nand_operations(void);	/* reads, programs and erases of the flash so far */
u64 nand_faults(void);		/* that rules have made */

/* Can what was last written to this block be read no more, or not as it was? */
bool nand_destroyed(u64 addr);
/* So many blocks of metadata that are on the drive are so. */
u32 nand_destroyed_metadata(void);
/* So many zones have a block that is so. */
u32 nand_destroyed_zones(void);

#endif
