/*
 * Zones, as the controller sees them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "front.h"

void rsd_zone_get(const RsdDrive *drive, uint32_t zone, RsdZone *info)
{
    *info = (RsdZone){
        .state = drive->media.zones[zone].state,
        .attrs = drive->media.zones[zone].attrs,
    };
    if (!drive->zoned->state) {
        return;                 /* off, and could not be opened again */
    }
    drive->zoned->personality->zone(drive->zoned, zone, info);
}

void rsd_zone_save(RsdDrive *drive, uint32_t zone, uint8_t state,
                   uint8_t attrs)
{
    rsd_media_may_fault();
    if (!drive->power->off) {
        rsd_media_save_zone(&drive->media, zone, state, attrs);
    }
}

const uint8_t *rsd_zone_ext(const RsdDrive *drive, uint32_t zone)
{
    if (!drive->cfg.zd_ext) {
        return NULL;
    }
    return drive->media.ext + (size_t)zone * drive->cfg.zd_ext;
}

void rsd_zone_set_ext(RsdDrive *drive, uint32_t zone, const uint8_t *ext)
{
    rsd_media_may_fault();
    if (!drive->power->off) {
        rsd_media_save_ext(&drive->media, zone, ext, drive->cfg.zd_ext);
    }
}
