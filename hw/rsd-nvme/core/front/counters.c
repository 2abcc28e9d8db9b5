/*
 * Counters: sums kept as things happen, and figures derived when asked for.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "front.h"

#define INFO(field, unit, doc) { #field, unit, doc },
const RsdCounterInfo rsd_counter_info[] = { RSD_COUNTERS(INFO) };

typedef enum Kind { KIND_USED, KIND_DIRTY, KIND_ERASED, KINDS } Kind;

/*
 * Returns the kind of a good block. With block NULL, the drive is off and could
 * not be opened again.
 */
static Kind kind_of(uint64_t rec, const Block *block)
{
    bool used = block ? block->pos == RSD_NONE : rsd_rec_next(rec);
    bool dirty = block ? block->obsolete || block->erases
                       : rsd_rec_flags(rec) & RSD_BLOCK_DIRTY;

    if (block) {
        return used ? KIND_USED : dirty ? KIND_DIRTY : KIND_ERASED;
    }
    return dirty ? KIND_DIRTY : used ? KIND_USED : KIND_ERASED;
}

uint64_t rsd_flash_pages(const RsdDrive *drive, uint32_t ns)
{
    uint64_t good = 0;

    if (rsd_ftl_is(&drive->cfg, RSD_FTL_ROTATES)) {
        return drive->ns[ns].geo.lbas;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        const uint64_t *rec = drive->media.rec + (size_t)d * drive->die_blocks;

        for (uint32_t b = drive->ns[ns].first; b < drive->ns[ns].end; b++) {
            good += !(rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD);
        }
    }
    return good * drive->pages;
}

/*
 * These are erase counts, in the narrowest buckets of a power of two that hold
 * all.
 */
typedef struct Histogram {
    uint64_t *blocks;           /* RSD_LOG_HISTOGRAM of them */
    uint32_t shift;
} Histogram;

static void add(Histogram *h, uint64_t erases)
{
    while (erases >> h->shift >= RSD_LOG_HISTOGRAM) {
        h->shift++;
        for (uint32_t i = 0; i < RSD_LOG_HISTOGRAM; i++) {
            uint64_t sum = i < RSD_LOG_HISTOGRAM / 2
                           ? h->blocks[2 * i] + h->blocks[2 * i + 1] : 0;

            h->blocks[i] = sum;
        }
    }
    h->blocks[erases >> h->shift]++;
}

/* Looks at each block once. */
static void count_blocks(const RsdDrive *drive, RsdCounters *c, Histogram *h)
{
    uint64_t all = 0, min = UINT64_MAX, max = 0, sum = 0;
    uint64_t kinds[KINDS] = { 0 };

    for (uint32_t d = 0; d < drive->dies; d++) {
        size_t first = (size_t)d * drive->die_blocks;
        const uint64_t *rec = drive->media.rec + first;
        const Block *blocks = drive->blocks ? drive->blocks + first : NULL;
        uint64_t good = 0;

        for (uint32_t b = 0; b < drive->die_blocks; b++) {
            uint64_t erases = rsd_rec_erases(rec[b]);

            if (rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD) {
                c->blocks_bad++;
                c->blocks_grown += rsd_rec_flags(rec[b]) & RSD_BLOCK_GROWN
                                   ? 1 : 0;
                continue;
            }
            kinds[kind_of(rec[b], blocks ? &blocks[b] : NULL)]++;
            good++;
            sum += erases;
            min = erases < min ? erases : min;
            max = erases > max ? erases : max;
            if (h) {
                add(h, erases);
            }
        }
        if (good > drive->cfg.blocks) {
            c->spares_left += good - drive->cfg.blocks;
        }
        all += good;
    }
    c->flash_bytes = all * drive->pages * RSD_PAGE_SIZE;
    c->blocks_used = kinds[KIND_USED];
    c->blocks_dirty = kinds[KIND_DIRTY];
    c->blocks_erased = kinds[KIND_ERASED];
    c->wear_min = min;
    c->wear_max = max;
    c->wear_sum = sum;
}

static void fill(const RsdDrive *drive, RsdCounters *c, Histogram *h)
{
    const RsdConfig *cfg = &drive->cfg;
    uint64_t map_in_media = 0;

    *c = *drive->count;
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        const RsdGeometry *geo = &drive->ns[i].geo;

        c->map_bytes += geo->map_bytes;
        map_in_media += geo->zoned ? geo->map_bytes : 0;
        c->zones += geo->num_zones;
        c->capacity_bytes += (geo->zoned ? geo->num_zones * geo->zone_capacity
                                         : geo->lbas) * RSD_PAGE_SIZE;
    }
    c->ram_bytes = drive->ram_bytes + drive->media.table_bytes - map_in_media;
    c->page_bytes = RSD_PAGE_SIZE;
    c->oob_bytes = cfg->oob;
    if (rsd_ftl_is(cfg, RSD_FTL_ROTATES)) {
        return;                 /* there is no flash */
    }
    c->endurance = cfg->endurance;
    c->blocks_total = (uint64_t)drive->dies * drive->die_blocks;
    c->spares_total = drive->dies * cfg->spare_blocks;
    count_blocks(drive, c, h);
}

void rsd_counters(const RsdDrive *drive, RsdCounters *c)
{
    fill(drive, c, NULL);
}

void rsd_log_page(const RsdDrive *drive, RsdLogPage *page)
{
    uint64_t blocks[RSD_LOG_HISTOGRAM] = { 0 };
    Histogram h = { .blocks = blocks };
    RsdCounters c;

    memset(page, 0, sizeof(*page));
    fill(drive, &c, &h);
    page->magic = RSD_LOG_MAGIC;
    page->version = RSD_LOG_VERSION;
    page->num_counters = RSD_NUM_COUNTERS;
    page->zone_ways = drive->zoned ? drive->zoned->geo.zone_ways : 0;
    memcpy(page->counters, &c, sizeof(c));
    page->bucket_erases = UINT64_C(1) << h.shift;
    for (uint32_t i = 0; i < RSD_LOG_HISTOGRAM; i++) {
        page->erase_histogram[i] = blocks[i];
    }
}
