/*
 * Counters: sums kept as things happen, and figures derived when asked for.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "front.h"

#define INFO(field, unit, doc) { #field, unit, doc },
const RsdCounterInfo rsd_counter_info[] = { RSD_COUNTERS(INFO) };

/*
 * Which kind of block this is, for the figures that add up to blocks_total.
 * block NULL: the drive is off and could not be opened again.
 */
static uint64_t *kind_of(RsdCounters *c, uint64_t rec, const Block *block)
{
    if (rsd_rec_flags(rec) & RSD_BLOCK_BAD) {
        return &c->blocks_bad;
    }
    if (!block) {
        return rsd_rec_flags(rec) & RSD_BLOCK_DIRTY ? &c->blocks_dirty
               : rsd_rec_next(rec) ? &c->blocks_used : &c->blocks_erased;
    }
    if (block->pos == RSD_NONE) {
        return &c->blocks_used;
    }
    return block->obsolete || block->erases ? &c->blocks_dirty
                                            : &c->blocks_erased;
}

uint64_t rsd_flash_pages(const RsdDrive *drive, uint32_t ns)
{
    uint64_t good = 0;

    for (uint32_t d = 0; d < drive->dies; d++) {
        const uint64_t *rec = drive->media.rec + (size_t)d * drive->die_blocks;

        for (uint32_t b = drive->ns[ns].first; b < drive->ns[ns].end; b++) {
            good += !(rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD);
        }
    }
    return good * drive->pages;
}

void rsd_counters(const RsdDrive *drive, RsdCounters *c)
{
    const RsdConfig *cfg = &drive->cfg;
    uint64_t block = 0, map_in_media = 0;

    *c = *drive->count;
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        const RsdGeometry *geo = &drive->ns[i].geo;

        c->map_bytes += geo->map_bytes;
        map_in_media += geo->zoned ? geo->map_bytes : 0;
        c->zones += geo->num_zones;
        c->capacity_bytes += (geo->zoned ? geo->num_zones * geo->zone_capacity
                                         : geo->lbas) * RSD_PAGE_SIZE;
        c->flash_bytes += rsd_flash_pages(drive, i) * RSD_PAGE_SIZE;
    }
    c->ram_bytes = drive->ram_bytes + drive->media.table_bytes - map_in_media;
    c->page_bytes = RSD_PAGE_SIZE;
    c->oob_bytes = drive->ns[0].oob;
    c->endurance = cfg->endurance;
    c->blocks_total = (uint64_t)drive->dies * drive->die_blocks;
    c->spares_total = drive->dies * cfg->spare_blocks;
    c->wear_min = UINT64_MAX;
    for (uint32_t d = 0; d < drive->dies; d++) {
        uint64_t good = 0;

        for (uint32_t b = 0; b < drive->die_blocks; b++, block++) {
            uint64_t rec = drive->media.rec[block];
            uint64_t erases = rsd_rec_erases(rec);

            ++*kind_of(c, rec, drive->blocks ? &drive->blocks[block] : NULL);
            c->blocks_grown += rsd_rec_flags(rec) & RSD_BLOCK_GROWN ? 1 : 0;
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
