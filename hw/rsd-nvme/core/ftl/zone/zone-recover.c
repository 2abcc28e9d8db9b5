/*
 * Opening: what is in the flash, made usable again.
 *
 * Survival of SIGKILL. The file must make sense after any prefix of the stores:
 *
 *   first write   entries of lanes n-1 to 1, then of lane 0, which makes the
 *                 segment Used. Before it: entries of an unused segment mean
 *                 nothing. After it: Used, nothing written yet, because a
 *                 chosen block is either erased or marked dirty, and a dirty
 *                 block counts as empty. The mark goes when its erase is done
 *                 and no program of an earlier owner is queued any more.
 *   program       data and OOB, then the block record (nand.c).
 *   reset         the entry of lane 0, then the others, then the blocks are
 *                 marked dirty. Before the marks: a block that no used segment
 *                 names, and that has pages programmed, is taken for dirty.
 *   wear          T is named by no segment until all of it is programmed; then
 *                 one store switches the entry. Then S is marked dirty.
 *   open          finishes erases that a used segment waits for, then programs
 *                 filler into the gaps below its highest programmed page, in
 *                 order, so it can be interrupted and repeated. A used segment
 *                 without any page becomes free again. No life ends by these
 *                 erases: a block is chosen only if it outlives the one before
 *                 its use. (With endurance lowered since, the next one is its
 *                 last.)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "zone.h"

/* Is the file consistent? Finds out which block is whose; changes nothing. */
static bool verify(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    Segments *seg = segments(drive);

    RSD_FOR_EACH_BLOCK(drive->zoned, b) {
        drive->blocks[b].owner = RSD_NONE;
        if (rsd_rec_next(drive->media.rec[b]) > drive->pages ||
            rsd_rec_next(drive->media.rec[b]) % drive->unit) {
            rsd_set_error(err, "the media file is corrupt: block %llu has %u "
                          "pages programmed of %u; restore it from a copy, or "
                          "remove it", (unsigned long long)b,
                          rsd_rec_next(drive->media.rec[b]), drive->pages);
            return false;
        }
    }
    for (uint32_t zone = 0; zone < drive->zoned->geo.num_zones; zone++) {
        const uint32_t *map = entries(drive, zone);
        uint32_t die = first_die(drive, zone);

        for (uint32_t lane = 0; is_used(drive, zone) && lane < seg->lanes;
             lane++) {
            uint32_t number = map[lane] & NUMBER_MASK;
            uint32_t block = block_of(drive, die + lane, map[lane]);

            if (entry_state(map[lane]) != SEG_USED ||
                number < drive->zoned->first ||
                number >= drive->zoned->end ||
                rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_BAD ||
                drive->blocks[block].owner != RSD_NONE) {
                rsd_set_error(err, "the media file is corrupt: zone %u, lane "
                              "%u of the segment map is %08x; restore it from "
                              "a copy, or remove it", zone, lane, map[lane]);
                return false;
            }
            drive->blocks[block].owner = &map[lane] - drive->media.map;
        }
    }
    return true;
}

/* Is a slot below that one not programmed? */
static bool has_gap(const RsdDrive *drive, uint32_t zone, uint64_t written)
{
    uint32_t die = first_die(drive, zone), lanes = segments(drive)->lanes;
    const uint32_t *map = entries(drive, zone);

    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint64_t rec = drive->media.rec[block_of(drive, die + lane,
                                                 map[lane])];

        if (rsd_rec_flags(rec) & RSD_BLOCK_DIRTY ||
            rsd_rec_next(rec) < rsd_seg_lane_pages(drive, written, lane)) {
            return true;
        }
    }
    return false;
}

/*
 * Makes sure that gaps which opening will close have host space: a copy of a
 * media file may have lost what was allocated and not yet stored.
 */
static bool reserve_gaps(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    for (uint32_t zone = 0; zone < drive->zoned->geo.num_zones; zone++) {
        uint64_t written = is_used(drive, zone)
                               ? rsd_seg_written(drive->zoned, zone) : 0;

        if (written && has_gap(drive, zone, written) &&
            rsd_seg_back(drive, zone, written) != RSD_OK) {
            rsd_set_error(err, "no space on the host's disk for zones that "
                          "are partly written: free some");
            return false;
        }
    }
    return true;
}

/* Closes what a killed process left open in a used segment. */
static void recover_zone(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);
    uint32_t *map = entries(drive, zone);
    uint64_t written = rsd_seg_written(drive->zoned, zone);

    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);
        /* the unit that was begun, if any, stays in the write buffer */
        uint32_t want = rsd_seg_lane_pages(drive, written, lane) / drive->unit *
                        drive->unit;
        uint64_t rec = drive->media.rec[block];
        uint32_t page = rsd_rec_next(rec);

        if (!written) {
            rsd_seg_clear_entry(drive, &map[lane] - drive->media.map);
            drive->blocks[block].owner = RSD_NONE;
            continue;
        }
        if (rsd_rec_flags(rec) & RSD_BLOCK_DIRTY) {
            rsd_nand_erase(&drive->media, block);
            rsd_nand_mark(&drive->media, block, 0);
            if (rsd_rec_flags(rec) & RSD_BLOCK_WORN) {
                drive->count->erase_wear++;
            } else {
                drive->count->erase_host++;
            }
            drive->count->erase_on_demand++;
            page = 0;
        }
        for (; page < want; page += drive->unit) {
            rsd_buffer_restore(drive->zoned, block, page);
        }
    }
    seg->zones[zone].submitted = written;
}

/* Entries of segments that are not used: Invalid, or Free */
static void recover_entries(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);
    uint32_t *map = entries(drive, zone);

    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t index = &map[lane] - drive->media.map;
        uint32_t number = map[lane] & NUMBER_MASK;
        uint32_t block = block_of(drive, die + lane, map[lane]);

        if (entry_state(map[lane]) == SEG_INVALID && number < drive->zoned->end &&
            drive->blocks[block].owner == RSD_NONE &&
            rsd_rec_next(drive->media.rec[block])) {
            drive->blocks[block].owner = index;
        } else if (map[lane]) {
            rsd_seg_clear_entry(drive, index);
        }
    }
}

static void recover(RsdDrive *drive)
{
    for (uint32_t zone = 0; zone < drive->zoned->geo.num_zones; zone++) {
        if (is_used(drive, zone)) {
            recover_zone(drive, zone);
        }
    }
    RSD_FOR_EACH_BLOCK(drive->zoned, b) {
        uint64_t rec = drive->media.rec[b];
        uint32_t flags = rsd_rec_flags(rec);
        bool used = drive->blocks[b].owner != RSD_NONE;

        drive->blocks[b].pos = RSD_NONE;
        if (flags & RSD_BLOCK_BAD || used) {
            continue;
        }
        drive->blocks[b].pos = 0;       /* for rsd_pool_fill() */
        drive->blocks[b].obsolete = rsd_rec_next(rec) > 0;
        if (!rsd_rec_next(rec)) {
            flags = 0;
        } else {
            flags |= RSD_BLOCK_DIRTY;
        }
        if (flags != rsd_rec_flags(rec)) {
            rsd_nand_mark(&drive->media, b, flags);
        }
    }
    for (uint32_t zone = 0; zone < drive->zoned->geo.num_zones; zone++) {
        if (!is_used(drive, zone)) {
            recover_entries(drive, zone);
        }
    }
}

/*
 * What the protected part of the buffer holds behind the write pointer: of a
 * write that was not acknowledged, and of which earlier units are lost. It must
 * not be there when the host comes to it.
 */
static void forget_unwritten(RsdDrive *drive)
{
    uint32_t lanes = segments(drive)->lanes;

    for (uint32_t zone = 0; zone < drive->zoned->geo.num_zones; zone++) {
        uint64_t n = rsd_seg_written(drive->zoned, zone);
        uint64_t from = rsd_div_round_up(n, drive->unit);

        for (uint64_t i = from; is_used(drive, zone) && i < from + lanes; i++) {
            rsd_buffer_forget(drive, block_of(drive, first_die(drive, zone) +
                                              i % lanes,
                                              entries(drive, zone)[i % lanes]),
                              rsd_seg_unit_page(drive, i));
        }
    }
}

static bool no_memory(char err[RSD_ERR_LEN])
{
    rsd_set_error(err, "no memory for the drive's zones and free blocks: "
                  "choose fewer blocks of more pages");
    return false;
}

void rsd_seg_close(Ns *ns)
{
    RsdDrive *drive = ns->drive;
    Segments *seg = ns->state;

    if (!seg) {
        return;
    }
    for (uint32_t zone = 0; seg->zones && zone < drive->zoned->geo.num_zones;
         zone++) {
        while (seg->zones[zone].head) {
            Epoch *epoch = seg->zones[zone].head;

            seg->zones[zone].head = epoch->next;
            rsd_release(drive, epoch, sizeof(*epoch));
        }
    }
    while (seg->free_epochs) {
        Epoch *epoch = seg->free_epochs;

        seg->free_epochs = epoch->next;
        rsd_release(drive, epoch, sizeof(*epoch));
    }
    for (uint32_t d = 0; seg->dies && d < drive->dies; d++) {
        rsd_pool_fini(drive, &seg->dies[d].pool);
        rsd_release(drive, seg->dies[d].move, move_size(drive));
    }
    rsd_release(drive, seg->dies, drive->dies * sizeof(SegDie));
    rsd_release(drive, seg->zones, drive->zoned->geo.num_zones * sizeof(Zone));
    rsd_release(drive, seg, sizeof(*seg));
    ns->state = NULL;
}

bool rsd_seg_open(Ns *ns, char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;
    Segments *seg = rsd_alloc(drive, sizeof(*seg));

    ns->state = seg;
    if (!seg) {
        return no_memory(err);
    }
    drive->zrwa->locate = rsd_seg_locate;
    seg->lanes = drive->zoned->geo.zone_capacity / drive->pages;
    seg->zones = rsd_alloc(drive, drive->zoned->geo.num_zones * sizeof(Zone));
    seg->dies = rsd_alloc(drive, drive->dies * sizeof(SegDie));
    if (!seg->zones || !seg->dies) {
        return no_memory(err);
    }
    if (!verify(drive, err) || !reserve_gaps(drive, err)) {
        return false;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        if (!rsd_pool_init(ns, &seg->dies[d].pool)) {
            return no_memory(err);
        }
    }
    /* nothing can fail any more: the file may be changed */
    recover(drive);
    rsd_buffer_settle(ns);
    if (rsd_buffered(drive)) {
        forget_unwritten(drive);
    }
    for (uint32_t zone = 0; drive->cfg.zrwa && zone < ns->geo.num_zones;
         zone++) {
        seg->zones[zone].submitted =
            rsd_zrwa_settle(ns, zone, seg->zones[zone].submitted);
    }
    rsd_zrwa_settled(drive);
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_pool_fill(drive, &seg->dies[d].pool, d);
        rsd_wear_measure(ns, d, &seg->dies[d].wear);
        seg->dies[d].look = true;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_sched_background(drive, d);
    }
    return true;
}
