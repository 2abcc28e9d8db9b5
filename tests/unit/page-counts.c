/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "ftl/page/page-ftl.h"
#include "page-counts.h"

/* Of a map page, by its number: the highest sequence number in flash */
static uint64_t newest[16];

static void look_for_newest(const RsdDrive *drive)
{
    memset(newest, 0, sizeof(newest));
    for (uint32_t b = 0; b < drive->dies * drive->die_blocks; b++) {
        for (uint32_t p = 0; p < rsd_rec_next(drive->media.rec[b]); p++) {
            const RsdSpare *spare = rsd_page_spare(&drive->media, b, p);

            if (spare && spare->kind) {
                CHECK(spare->lpn < sizeof(newest) / sizeof(newest[0]));
                if (spare->seq > newest[spare->lpn]) {
                    newest[spare->lpn] = spare->seq;
                }
            }
        }
    }
}

static bool is_in_use(const PageFtl *ftl, uint32_t block, uint32_t page)
{
    const RsdSpare *spare = rsd_page_spare(&ftl->drive->media, block, page);
    uint32_t number = page_number(ftl, block, page);
    bool current;

    if (!spare) {
        return false;
    }
    if (!spare->kind) {
        return *map_entry(ftl, spare->lpn) == number + 1;
    }
    current = ftl->cache && rsd_cache_is_current(ftl, number);
    if (current && spare->seq != newest[spare->lpn]) {
        FAIL("page %u of block %u, of sequence number %" PRIu64 ", is used for "
             "map page %" PRIu64 ", which has one of %" PRIu64, page, block,
             spare->seq, spare->lpn, newest[spare->lpn]);
    }
    return current;
}

void check_page_counts(const Bed *bed)
{
    const RsdDrive *drive = bed->drive;
    const PageFtl *ftl = drive->ns[0].state;

    CHECK(!rsd_buffered(drive));
    look_for_newest(drive);
    for (uint32_t b = 0; b < drive->dies * drive->die_blocks; b++) {
        uint32_t valid = 0;

        for (uint32_t p = 0; p < rsd_rec_next(drive->media.rec[b]); p++) {
            valid += is_in_use(ftl, b, p);
        }
        if (ftl->blocks[b].valid != valid) {
            FAIL("block %u has %u valid pages, not %u", b, valid,
                 ftl->blocks[b].valid);
        }
    }
}
