/*
 * Blocks that die, and the drive that becomes read-only for them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "array.h"

uint32_t rsd_count_bad(const RsdDrive *drive, uint32_t die, uint32_t *grown)
{
    const uint64_t *rec = drive->media.rec + (size_t)die * drive->die_blocks;
    uint32_t bad = 0;

    *grown = 0;
    for (uint32_t b = 0; b < drive->die_blocks; b++) {
        bad += rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD ? 1 : 0;
        *grown += rsd_rec_flags(rec[b]) & RSD_BLOCK_GROWN ? 1 : 0;
    }
    return bad;
}

void rsd_drive_look_at_spares(RsdDrive *drive, uint32_t die)
{
    uint32_t grown, bad = rsd_count_bad(drive, die, &grown);

    if (grown && bad > drive->cfg.spare_blocks) {
        drive->read_only = true;
    }
}

void rsd_drive_age_block(RsdDrive *drive, uint32_t block)
{
    uint32_t die = block / drive->die_blocks;
    const uint64_t *rec = &drive->media.rec[block];

    if (rsd_rec_erases(*rec) < rsd_factory_life(&drive->cfg, block)) {
        return;
    }
    rsd_nand_mark(&drive->media, block, RSD_BLOCK_BAD | RSD_BLOCK_GROWN);
    drive->health_changes++;
    rsd_drive_look_at_spares(drive, die);
}

void rsd_drive_wear_out(RsdDrive *drive)
{
    drive->health_changes += !drive->read_only;
    drive->read_only = true;
}

RsdStatus rsd_drive_no_block(RsdDrive *drive)
{
    for (uint32_t d = 0; d < drive->dies; d++) {
        uint32_t grown;

        rsd_count_bad(drive, d, &grown);
        if (grown) {
            rsd_drive_wear_out(drive);
            return RSD_E_READONLY;
        }
    }
    return RSD_E_NOBLOCK;
}

void rsd_drive_fail(RsdDrive *drive)
{
    rsd_drive_wear_out(drive);
    drive->failed = true;
}

