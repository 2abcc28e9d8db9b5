/*
 * The segment map.
 *
 * Lanes. With segment=all a zone has a lane a die, with segment=way one a
 * channel of way "zone mod ways". Unit i of a zone is unit i / lanes of the
 * block in lane i mod lanes (RISA figure 1; a unit is what is programmed at
 * once, a page by default); lane n is channel n mod channels of way n /
 * channels.
 *
 * States. An entry of the map is Free, Used or Invalid with a block number.
 * The segment is Used if the entry of its lane 0 is, and then all are.
 *
 *   first write   in each lane, the free block that is least worn (pool.c) is
 *                 taken; those not erased get an erase queued at once, in all
 *                 lanes, before the segment's first program. One that this
 *                 erase ends the life of gets it, too, and another is taken.
 *   reset         Used becomes Invalid when the command is submitted: the
 *                 blocks are free from then on. What was queued for them
 *                 before still happens: a die's queue keeps the order, and an
 *                 erase always comes between two owners.
 *   idle          a die without work for idle-erase ns, counted from the reset
 *                 at the earliest, erases obsolete blocks, lowest number first,
 *                 until the host comes. An entry whose block was erased, or was
 *                 given to another segment, is Free.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "zone.h"

uint64_t rsd_seg_next(const RsdDrive *drive, uint32_t zone)
{
    return segments(drive)->zones[zone].submitted;
}

void rsd_seg_set_entry(RsdDrive *drive, uint32_t index, uint32_t state,
                      uint32_t block)
{
    uint32_t entry = state << STATE_SHIFT | block % drive->die_blocks;

    rsd_media_note(&drive->media, &drive->media.map[index], &entry,
                   sizeof(entry));
    /* release, as all such stores: they happen in the program's order */
    __atomic_store_n(&drive->media.map[index], entry, __ATOMIC_RELEASE);
}

void rsd_seg_clear_entry(RsdDrive *drive, uint32_t index)
{
    rsd_seg_set_entry(drive, index, SEG_FREE, 0);
}

uint32_t rsd_seg_lane_pages(const RsdDrive *drive, uint64_t n, uint32_t lane)
{
    uint32_t unit = drive->unit;
    uint64_t row = (uint64_t)segments(drive)->lanes * unit;
    uint64_t rest = n % row, before = (uint64_t)lane * unit;

    rest = rest > before ? rest - before : 0;
    return n / row * unit + (rest < unit ? rest : unit);
}

uint32_t rsd_seg_unit_page(const RsdDrive *drive, uint64_t i)
{
    return i / segments(drive)->lanes * drive->unit;
}

uint32_t rsd_seg_locate(const RsdDrive *drive, uint32_t zone, uint64_t offset,
                        uint32_t *page)
{
    uint64_t i = offset / drive->unit;
    uint32_t lane = i % segments(drive)->lanes;

    *page = rsd_seg_unit_page(drive, i) + offset % drive->unit;
    return block_of(drive, first_die(drive, zone) + lane,
                    entries(drive, zone)[lane]);
}

/* Where a block is in flash. False: nowhere */
static bool find_in_flash(const RsdDrive *drive, uint64_t lba, uint32_t *block,
                          uint32_t *page)
{
    uint32_t zone = lba >> drive->zoned->zone_shift;
    uint64_t offset = lba & (drive->zoned->geo.zone_size - 1);

    if (zone >= drive->zoned->geo.num_zones || !is_used(drive, zone) ||
        offset >= rsd_seg_next(drive, zone)) {
        return false;
    }
    *block = rsd_seg_locate(drive, zone, offset, page);
    return *page < rsd_rec_next(drive->media.rec[*block]) &&
           !(rsd_rec_flags(drive->media.rec[*block]) & RSD_BLOCK_DIRTY);
}

bool rsd_zone_spoil(RsdDrive *drive, uint64_t lba, uint32_t nlb)
{
    uint32_t block, page;

    for (uint32_t i = 0; i < nlb; i++) {
        if (!find_in_flash(drive, lba + i, &block, &page)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < nlb; i++) {
        find_in_flash(drive, lba + i, &block, &page);
        if (rsd_nand_spoil(&drive->media, block, page) != RSD_OK) {
            return false;
        }
    }
    return true;
}

/* Pages of a zone up to slot number n - 1 of a lane, that one included */
static uint64_t pages_to(const RsdDrive *drive, uint32_t lane, uint64_t n)
{
    uint64_t unit = drive->unit;

    return n ? ((n - 1) / unit * segments(drive)->lanes + lane) * unit +
               (n - 1) % unit + 1 : 0;
}

uint64_t rsd_seg_written(const Ns *ns, uint32_t zone)
{
    const RsdDrive *drive = ns->drive;
    uint32_t lanes = segments(drive)->lanes;
    uint32_t die = first_die(drive, zone);
    const uint32_t *map = entries(drive, zone);
    uint64_t written = 0;

    if (!is_used(drive, zone)) {
        return 0;
    }
    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);
        uint64_t rec = drive->media.rec[block], n = rsd_rec_next(rec);
        uint64_t safe = rsd_buffer_safe(drive, block), end;

        if (rsd_rec_flags(rec) & RSD_BLOCK_DIRTY) {
            n = 0;
        }
        end = pages_to(drive, lane, n > safe ? n : safe);
        if (end > written) {
            written = end;
        }
    }
    return written;
}
