/*
 * Counters: sums kept as things happen, and figures derived when asked for.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "internal.h"

#define INFO(field, unit, doc) { #field, unit, doc },
const RsdCounterInfo rsd_counter_info[] = { RSD_COUNTERS(INFO) };

/* Which kind of block this is, for the figures that add up to blocks_total */
static uint64_t *kind_of(RsdCounters *c, uint64_t rec, const Block *block)
{
    if (rsd_rec_flags(rec) & RSD_BLOCK_BAD) {
        return &c->blocks_bad;
    }
    if (block->pos == RSD_NONE) {
        return &c->blocks_used;
    }
    return block->obsolete || block->erases ? &c->blocks_dirty
                                            : &c->blocks_erased;
}

void rsd_counters(const RsdDrive *drive, RsdCounters *c)
{
    const RsdConfig *cfg = &drive->cfg;
    uint64_t block = 0;

    *c = *drive->count;
    c->map_bytes = drive->geo.map_bytes;
    c->ram_bytes = drive->ram_bytes + drive->media.table_bytes -
                   drive->geo.map_bytes;
    c->zones = drive->geo.num_zones;
    c->page_bytes = RSD_PAGE_SIZE;
    c->capacity_bytes = drive->geo.num_zones * drive->geo.zone_capacity *
                        RSD_PAGE_SIZE;
    c->oob_bytes = cfg->oob;
    c->endurance = cfg->endurance;
    c->blocks_total = (uint64_t)drive->dies * drive->die_blocks;
    c->spares_total = drive->dies * cfg->spare_blocks;
    c->wear_min = UINT64_MAX;
    for (uint32_t d = 0; d < drive->dies; d++) {
        uint64_t good = 0;

        for (uint32_t b = 0; b < drive->die_blocks; b++, block++) {
            uint64_t rec = drive->media.rec[block];
            uint64_t erases = rsd_rec_erases(rec);

            ++*kind_of(c, rec, &drive->blocks[block]);
            if (rsd_rec_flags(rec) & RSD_BLOCK_BAD) {
                continue;
            }
            good++;
            c->wear_sum += erases;
            if (erases < c->wear_min) {
                c->wear_min = erases;
            }
            if (erases > c->wear_max) {
                c->wear_max = erases;
            }
        }
        if (good > cfg->blocks) {
            c->spares_left += good - cfg->blocks;
        }
    }
}

void rsd_log_page(const RsdDrive *drive, RsdLogPage *page)
{
    RsdCounters c;
    uint64_t blocks = (uint64_t)drive->dies * drive->die_blocks;

    memset(page, 0, sizeof(*page));
    rsd_counters(drive, &c);
    page->magic = RSD_LOG_MAGIC;
    page->version = RSD_LOG_VERSION;
    page->num_counters = RSD_NUM_COUNTERS;
    memcpy(page->counters, &c, sizeof(c));
    /* the narrowest buckets, of a power of two, that hold every block */
    page->bucket_erases = 1;
    while (c.wear_max / page->bucket_erases >= RSD_LOG_HISTOGRAM) {
        page->bucket_erases *= 2;
    }
    for (uint64_t b = 0; b < blocks; b++) {
        uint64_t rec = drive->media.rec[b];

        if (!(rsd_rec_flags(rec) & RSD_BLOCK_BAD)) {
            page->erase_histogram[rsd_rec_erases(rec) /
                                  page->bucket_erases]++;
        }
    }
}
