/*
 * The RSD personality (RISA 3.2, REDO 2.3): a zone is a segment, a segment is
 * one flash block in each of its lanes, and the segment map is the only
 * translation. Its files call downwards only, in this order:
 *
 *   segment.c       the table of ftl=rsd
 *   zone-recover.c  opening and closing
 *   zone-submit.c   commands
 *   zone-wear.c     idle dies, wear levelling, and operations that are done
 *   zone-blocks.c   free blocks
 *   zone-queue.c    operations and barriers
 *   zone-map.c      the segment map
 *   zrwa.c          random write areas
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "zone.h"

static bool seg_geometry(Ns *ns, char err[RSD_ERR_LEN])
{
    const RsdConfig *cfg = &ns->drive->cfg;
    bool by_way = cfg->segment == RSD_SEGMENT_WAY;
    RsdGeometry *geo = &ns->geo;

    (void)err;                  /* any settings will do */
    geo->zoned = true;
    geo->max_oob = RSD_OOB_SIZE;
    geo->zone_ways = by_way ? cfg->ways : 1;
    geo->num_zones = ns->visible * geo->zone_ways;
    geo->zone_capacity = (uint64_t)ns->drive->pages *
                         (by_way ? cfg->channels : ns->drive->dies);
    while ((UINT64_C(1) << ns->zone_shift) < geo->zone_capacity) {
        ns->zone_shift++;
    }
    geo->zone_size = UINT64_C(1) << ns->zone_shift;
    geo->lbas = (uint64_t)geo->num_zones << ns->zone_shift;
    geo->map_bytes = sizeof(uint32_t) * ns->drive->dies * ns->visible;
    return true;
}

static void seg_zone(const Ns *ns, uint32_t zone, RsdZone *info)
{
    info->written = rsd_seg_written(ns, zone);
    info->next = rsd_seg_next(ns->drive, zone);
    info->zrwa = rsd_zrwa_of(ns->drive, zone);
    info->zrwa_pages = rsd_zrwa_holds(ns->drive, zone);
}

const Personality rsd_ftl_rsd = {
    .geometry = seg_geometry,
    .open = rsd_seg_open,
    .close = rsd_seg_close,
    .submit = rsd_seg_submit,
    .op_done = rsd_seg_op_done,
    .op_buffered = rsd_seg_op_buffered,
    .closed = rsd_seg_closed,
    .has_background = rsd_seg_has_background,
    .background = rsd_seg_background,
    .zone = seg_zone,
    .format = rsd_seg_format,
};
