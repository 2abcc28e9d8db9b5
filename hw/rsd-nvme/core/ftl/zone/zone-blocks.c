/*
 * Free blocks of a die, those that a zone takes and gives back.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>

#include "zone.h"

/* Slots of a block that get the host's space together, at least: 256 KiB */
#define BACK_SLOTS 64u

void rsd_seg_make_obsolete(RsdDrive *drive, uint32_t block, uint32_t worn)
{
    SegDie *sd = seg_die(drive, block);

    if (!drive->blocks[block].erases) {
        rsd_inject_erase(drive, block);
    }
    rsd_nand_mark(&drive->media, block, RSD_BLOCK_DIRTY | worn);
    drive->blocks[block].obsolete = 1;
    rsd_pool_insert(drive, &sd->pool, block);
    sd->look = true;
}

/* Gives up the move of a die: its target is free again. */
static void abandon_move(RsdDrive *drive, uint32_t die)
{
    Move *move = segments(drive)->dies[die].move;
    Block *dst = &drive->blocks[move->dst];

    move->active = false;
    if (move->programming ||
        (!dst->erases && rsd_rec_next(drive->media.rec[move->dst]))) {
        rsd_seg_make_obsolete(drive, move->dst, RSD_BLOCK_WORN);
    } else {
        if (!dst->erases) {
            rsd_media_release(&drive->media, move->dst);
        }
        rsd_pool_insert(drive, &seg_die(drive, move->dst)->pool, move->dst);
    }
}

/*
 * Has anything been programmed into the block of a lane, or is it queued? What
 * never left the write buffer has not.
 */
static bool is_written(const RsdDrive *drive, const Zone *z, uint32_t lane,
                       uint32_t block)
{
    if (!rsd_buffered(drive)) {
        return rsd_seg_lane_pages(drive, z->submitted, lane);
    }
    return rsd_buffer_queued(drive->zoned, block) ||
           (!drive->blocks[block].erases &&
            rsd_rec_next(drive->media.rec[block]));
}

void rsd_seg_detach_zone(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    Zone *z = &seg->zones[zone];
    uint32_t die = first_die(drive, zone);
    uint32_t *map = entries(drive, zone);
    bool held = rsd_buffer_hold(drive);

    rsd_zrwa_drop(drive->zoned, zone);
    if (!is_used(drive, zone)) {
        rsd_buffer_go_on(drive, held);
        return;
    }
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        rsd_seg_set_entry(drive, &map[lane] - drive->media.map, SEG_INVALID,
                  block_of(drive, die + lane, map[lane]));
    }
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);

        drive->blocks[block].obsolete = is_written(drive, z, lane, block);
        if (rsd_buffered(drive)) {
            rsd_buffer_drop(drive->zoned, block);
        }
    }
    rsd_buffer_go_on(drive, held);
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);
        SegDie *sd = &seg->dies[die + lane];

        if (moving(sd) && sd->move->src == block) {
            abandon_move(drive, die + lane);
        }
        if (drive->blocks[block].obsolete) {
            rsd_seg_make_obsolete(drive, block, 0);
            rsd_sched_background(drive, die + lane);
            continue;
        }
        if (!drive->blocks[block].erases) {
            rsd_seg_clear_entry(drive, &map[lane] - drive->media.map);
            drive->blocks[block].owner = RSD_NONE;
        }
        rsd_pool_insert(drive, &sd->pool, block);
    }
    z->submitted = z->backed = 0;
}

/*
 * A part of each block at a time: a zone may be of gigabytes, and be written by
 * little.
 */
RsdStatus rsd_seg_back(RsdDrive *drive, uint32_t zone, uint64_t end)
{
    Segments *seg = segments(drive);
    Zone *z = &seg->zones[zone];
    uint32_t die = first_die(drive, zone), lane, block;
    const uint32_t *map = entries(drive, zone);
    uint64_t step = rsd_div_round_up(BACK_SLOTS, drive->unit) * drive->unit *
                    seg->lanes;
    bool used = is_used(drive, zone);
    int ret = 0;

    if (end <= z->backed) {
        return RSD_OK;
    }
    end = rsd_div_round_up(end, step) * step;
    if (end > drive->zoned->geo.zone_capacity) {
        end = drive->zoned->geo.zone_capacity;
    }
    for (lane = 0; !ret && lane < seg->lanes; lane++) {
        block = block_of(drive, die + lane,
                         used ? map[lane]
                              : seg->dies[die + lane].pool.heap[0]);
        ret = rsd_media_reserve_slots(&drive->media, block,
                                      rsd_seg_lane_pages(drive, end, lane));
    }
    if (!ret) {
        z->backed = end;
        return RSD_OK;
    }
    for (uint32_t i = 0; !used && i < lane; i++) {
        block = block_of(drive, die + i, seg->dies[die + i].pool.heap[0]);
        if (!drive->blocks[block].obsolete && !drive->blocks[block].erases) {
            rsd_media_release(&drive->media, block);
        }
    }
    return ret == -ENOSPC || ret == -EDQUOT ? RSD_E_NOSPC : RSD_E_MEDIA;
}

bool rsd_seg_is_dying(const RsdDrive *drive, uint32_t block)
{
    const Block *b = &drive->blocks[block];
    uint64_t rec = drive->media.rec[block];

    if (!b->erases && !b->obsolete) {
        return false;
    }
    return rsd_rec_flags(rec) & RSD_BLOCK_WEAK ||
           (drive->cfg.life_spread &&
            rsd_rec_erases(rec) + UINT64_C(0) + b->erases + b->obsolete >=
            rsd_factory_life(&drive->cfg, block));
}

/*
 * Takes blocks that die by their erase out of a die's pool, as far as they are
 * next, and has them erased. False: no memory.
 */
static bool drop_dying(RsdDrive *drive, uint32_t die)
{
    Pool *pool = &segments(drive)->dies[die].pool;

    while (pool->len && rsd_seg_is_dying(drive, block_of(drive, die, pool->heap[0]))) {
        uint32_t block = block_of(drive, die, pool->heap[0]);
        Block *b = &drive->blocks[block];

        if (!rsd_op_reserve(drive, 1)) {
            return false;
        }
        rsd_pool_remove(drive, pool, block);
        if (b->owner != RSD_NONE) {
            rsd_seg_clear_entry(drive, b->owner);
            b->owner = RSD_NONE;
        }
        if (b->obsolete) {
            rsd_seg_queue_erase(drive, block, NULL, NULL);
        }
    }
    return true;
}

RsdStatus rsd_seg_find_blocks(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);

    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        SegDie *sd = &seg->dies[die + lane];

        if (!drop_dying(drive, die + lane)) {
            return RSD_E_NOMEM;
        }
        if (!sd->pool.len && moving(sd)) {
            abandon_move(drive, die + lane);
            if (!drop_dying(drive, die + lane)) {
                return RSD_E_NOMEM;
            }
        }
        if (!sd->pool.len) {
            /* each zone had a block: more have died than there were spares */
            drive->read_only = true;
            drive->health_changes++;
            return RSD_E_READONLY;
        }
    }
    return RSD_OK;
}

void rsd_seg_attach_zone(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);
    uint32_t *map = entries(drive, zone);

    /* lane 0 last: it is what makes the segment used */
    for (uint32_t lane = seg->lanes; lane-- > 0;) {
        SegDie *sd = &seg->dies[die + lane];
        uint32_t index = &map[lane] - drive->media.map;
        uint32_t block = block_of(drive, die + lane, sd->pool.heap[0]);
        Block *b = &drive->blocks[block];

        if (entry_state(map[lane]) == SEG_INVALID) {
            drive->blocks[block_of(drive, die + lane, map[lane])].owner =
                RSD_NONE;
        }
        if (b->owner != RSD_NONE) {
            rsd_seg_clear_entry(drive, b->owner);
        }
        rsd_pool_remove(drive, &sd->pool, block);
        b->owner = index;
        sd->look = true;
        rsd_seg_set_entry(drive, index, SEG_USED, block);
    }
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);

        if (drive->blocks[block].obsolete) {
            rsd_seg_queue_erase(drive, block, NULL, NULL);
        }
    }
}
