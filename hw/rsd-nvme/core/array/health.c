/*
 * Blocks that die, and the drive that becomes read-only for them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "array.h"

static void look_at_spares(RsdDrive *drive, const Die *die)
{
    if (die->grown && die->bad > drive->cfg.spare_blocks) {
        drive->read_only = true;
    }
}

/* Returns how many blocks of a die have a flag in their record. */
static uint32_t count(const RsdDrive *drive, uint32_t die, uint32_t flag)
{
    const uint64_t *rec = drive->media.rec + (size_t)die * drive->die_blocks;
    uint32_t n = 0;

    for (uint32_t b = 0; b < drive->die_blocks; b++) {
        n += rsd_rec_flags(rec[b]) & flag ? 1 : 0;
    }
    return n;
}

void rsd_count_bad(RsdDrive *drive, uint32_t die)
{
    Die *d = &drive->sched.dies[die];

    d->bad = count(drive, die, RSD_BLOCK_BAD);
    d->grown = count(drive, die, RSD_BLOCK_GROWN);
    look_at_spares(drive, d);
}

uint32_t rsd_bad_blocks(const RsdDrive *drive, uint32_t die)
{
    return drive->sched.dies ? drive->sched.dies[die].bad
                             : count(drive, die, RSD_BLOCK_BAD);
}

void rsd_drive_age_block(RsdDrive *drive, uint32_t block)
{
    Die *die = &drive->sched.dies[rsd_die_of(drive, block)];
    const uint64_t *rec = &drive->media.rec[block];

    if (!(rsd_rec_flags(*rec) & RSD_BLOCK_WEAK) &&
        rsd_rec_erases(*rec) < rsd_factory_life(&drive->cfg, block)) {
        return;
    }
    rsd_nand_mark(&drive->media, block, RSD_BLOCK_BAD | RSD_BLOCK_GROWN);
    die->bad++;
    die->grown++;
    drive->health_changes++;
    look_at_spares(drive, die);
}

void rsd_drive_wear_out(RsdDrive *drive)
{
    drive->health_changes += !drive->read_only;
    drive->read_only = true;
}

RsdStatus rsd_drive_no_block(RsdDrive *drive)
{
    for (uint32_t d = 0; d < drive->dies; d++) {
        if (drive->sched.dies[d].grown) {
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

