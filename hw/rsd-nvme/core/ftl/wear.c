/*
 * Erase counts of a die, for static wear levelling.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "ftl.h"

void rsd_wear_measure(const Ns *ns, uint32_t die, Wear *wear)
{
    const uint64_t *rec = ns->drive->media.rec +
                          (size_t)die * ns->drive->die_blocks;

    wear->min = UINT32_MAX;
    wear->max = 0;
    for (uint32_t b = ns->first; b < ns->end; b++) {
        uint32_t erases = rsd_rec_erases(rec[b]);

        if (rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD) {
            continue;
        }
        if (erases < wear->min) {
            wear->min = erases;
            wear->at_min = 0;
        }
        wear->at_min += erases == wear->min;
        if (erases > wear->max) {
            wear->max = erases;
        }
    }
}

void rsd_wear_erased(const Ns *ns, uint32_t block, Wear *wear)
{
    uint32_t erases = rsd_rec_erases(ns->drive->media.rec[block]);

    if (erases > wear->max) {
        wear->max = erases;
    }
    if (erases - 1 == wear->min && !--wear->at_min) {
        rsd_wear_measure(ns, block / ns->drive->die_blocks, wear);
    }
}
