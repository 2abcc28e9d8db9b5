/*
 * Units of drives that map whole blocks, and where the content of an LBA is.
 *
 * Erasure. A block is erased when its content is of no use any more, at once,
 * and is free when that is done; a block of which the erasure fails is used no
 * more. It is marked dirty before it is erased, and the mark goes when it was: a
 * dirty block is empty.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>

#include "block-map.h"

void rsd_map_set_trimmed(BlockMap *map, uint64_t lpn, bool to)
{
    uint64_t *word = &map->ns->drive->media.trim[lpn / 64];
    uint64_t value = *word;

    rsd_set_bit(&value, lpn % 64, to);
    rsd_media_note(&map->ns->drive->media, word, &value, sizeof(value));
    /* release, as all stores into the file: in the program's order */
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

bool rsd_map_valid(const BlockMap *map, uint64_t lpn)
{
    return rsd_get_bit(map->valid, lpn);
}

void rsd_map_add_content(BlockMap *map, uint64_t lpn)
{
    if (!rsd_get_bit(map->valid, lpn)) {
        rsd_set_bit(map->valid, lpn, true);
        map->lblocks[lpn / map->span].live++;
        map->live++;
    }
}

bool rsd_map_trimmed(const BlockMap *map, uint64_t lpn)
{
    return rsd_get_bit(map->ns->drive->media.trim, lpn);
}

uint32_t rsd_map_length(const BlockMap *map, uint32_t lblock)
{
    uint64_t first = (uint64_t)lblock * map->span;
    uint32_t n = map->span;

    while (n && !rsd_get_bit(map->valid, first + n - 1)) {
        n--;
    }
    return n;
}

Place rsd_map_find(BlockMap *map, uint64_t lpn)
{
    const LBlock *lb = &map->lblocks[lpn / map->span];
    uint32_t page = lpn % map->span;
    Place place = { RSD_NONE, 0 };

    if (!rsd_get_bit(map->valid, lpn)) {
        return place;
    }
    if (map->policy->find) {
        place = map->policy->find(map, lpn);
    }
    if (place.block != RSD_NONE) {
        return place;
    }
    return rsd_unit_place(map, rsd_unit_has(map, lb->log, page) ? lb->log
                                                               : lb->data,
                          page);
}

void rsd_list_append(UnitList *list, Unit *unit)
{
    unit->older = list->newest;
    unit->newer = NULL;
    if (list->newest) {
        list->newest->newer = unit;
    } else {
        list->oldest = unit;
    }
    list->newest = unit;
}

void rsd_list_remove(UnitList *list, Unit *unit)
{
    if (unit->older) {
        unit->older->newer = unit->newer;
    } else {
        list->oldest = unit->newer;
    }
    if (unit->newer) {
        unit->newer->older = unit->older;
    } else {
        list->newest = unit->older;
    }
}

static size_t unit_size(const BlockMap *map)
{
    return sizeof(Unit) + map->lanes * sizeof(Lane);
}

Unit *rsd_unit_new(BlockMap *map, uint32_t lblock)
{
    Unit *unit = rsd_alloc(map->ns->drive, unit_size(map));

    if (unit) {
        unit->lblock = lblock;
    }
    return unit;
}

void rsd_unit_free(BlockMap *map, Unit *unit)
{
    rsd_release(map->ns->drive, unit, unit ? unit_size(map) : 0);
}

uint32_t rsd_map_free_block(const BlockMap *map, uint32_t die, bool worn)
{
    const RsdDrive *drive = map->ns->drive;
    const Pool *pool = &map->pools[die];
    const uint64_t *rec = drive->media.rec + (size_t)die * drive->die_blocks;
    uint32_t found = pool->heap[0];

    for (uint32_t i = 1; worn && i < pool->len; i++) {
        uint32_t b = pool->heap[i];

        /* of equally worn ones that of the lowest number */
        if (rsd_rec_erases(rec[b]) > rsd_rec_erases(rec[found]) ||
            (rsd_rec_erases(rec[b]) == rsd_rec_erases(rec[found]) &&
             b < found)) {
            found = b;
        }
    }
    return die * drive->die_blocks + found;
}

/* Host space for the blocks of dies that will be taken */
static RsdStatus reserve_space(BlockMap *map, uint32_t die, bool worn)
{
    RsdMedia *media = &map->ns->drive->media;
    uint32_t lane;
    int ret = 0;

    for (lane = 0; lane < map->lanes && !ret; lane++) {
        ret = rsd_media_reserve(media,
                                rsd_map_free_block(map, die + lane, worn));
    }
    if (!ret) {
        return RSD_OK;
    }
    while (lane-- > 0) {
        rsd_media_release(media, rsd_map_free_block(map, die + lane, worn));
    }
    return ret == -ENOSPC || ret == -EDQUOT ? RSD_E_NOSPC : RSD_E_MEDIA;
}

Unit *rsd_unit_take(BlockMap *map, uint32_t group, uint32_t lblock, bool worn,
                    RsdStatus *status, bool *wait)
{
    RsdDrive *drive = map->ns->drive;
    uint32_t die = group * map->lanes;
    Unit *unit;

    *wait = map->groups[group].levelling;
    if (*wait) {
        *status = RSD_E_NOBLOCK;        /* see block-wear.c */
        return NULL;
    }
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        if (!map->pools[die + lane].len) {
            *status = RSD_E_NOBLOCK;
            *wait = map->groups[group].erasing;
            return NULL;
        }
    }
    *status = reserve_space(map, die, worn);
    if (*status != RSD_OK) {
        return NULL;
    }
    unit = rsd_unit_new(map, lblock);
    if (!unit) {
        *status = RSD_E_NOMEM;
        return NULL;
    }
    unit->group = group;
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        uint32_t block = rsd_map_free_block(map, die + lane, worn);

        rsd_pool_remove(drive, &map->pools[die + lane], block);
        map->owner[block] = unit;
        unit->lane[lane].block = block;
    }
    rsd_map_group_changed(map, group);
    return unit;
}

void rsd_map_make_free(BlockMap *map, uint32_t block)
{
    RsdDrive *drive = map->ns->drive;

    rsd_media_release(&drive->media, block);
    rsd_nand_mark(&drive->media, block, 0);
    rsd_pool_insert(drive, &map->pools[block / drive->die_blocks], block);
    map->retry = true;
    rsd_map_group_changed(map, block / drive->die_blocks / map->lanes);
}

void rsd_unit_release(BlockMap *map, Unit *unit)
{
    RsdDrive *drive = map->ns->drive;
    Group *group = &map->groups[unit->group];
    /*
     * If the host has no memory for the operations, the blocks stay dirty, and
     * unused until the drive is opened again.
     */
    bool erase = rsd_op_reserve(drive, map->lanes);

    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        uint32_t block = unit->lane[lane].block;
        bool programmed = unit->lane[lane].next;

        if (block == RSD_NONE) {
            continue;           /* recovered without it */
        }
        map->owner[block] = NULL;
        if (rsd_buffered(drive)) {
            programmed = rsd_rec_next(drive->media.rec[block]) ||
                         rsd_buffer_queued(map->ns, block);
            rsd_buffer_drop(map->ns, block);
        }
        if (!programmed) {
            rsd_map_make_free(map, block);
        } else if (erase) {
            group->erasing++;
            rsd_queue_erase(map->ns, unit->cause, block);
        } else {
            map->retry = true;  /* nothing is going to be done */
        }
    }
    rsd_map_group_changed(map, group - map->groups);
    rsd_unit_free(map, unit);
}

bool rsd_block_is_safe(BlockMap *map, uint32_t block, uint32_t end)
{
    const RsdDrive *drive = map->ns->drive;
    uint32_t next = rsd_rec_next(drive->media.rec[block]), n;

    while (next < end && (n = rsd_buffer_has(drive, block, next))) {
        next += n;
        if (n < map->grain) {
            break;
        }
    }
    return next >= end;
}

bool rsd_unit_is_safe(BlockMap *map, const Unit *unit)
{
    bool safe = !unit->pending;

    for (uint32_t i = 0; rsd_buffered(map->ns->drive) && i < map->lanes; i++) {
        const Lane *lane = &unit->lane[i];

        if (lane->next % map->grain) {
            rsd_buffer_protect(map->ns, lane->block);
        }
        safe &= rsd_block_is_safe(map, lane->block, lane->next);
    }
    return safe;
}

void rsd_unit_retire(BlockMap *map, Unit *unit, RsdCause cause)
{
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        if (unit->lane[lane].next) {
            rsd_nand_mark(&map->ns->drive->media, unit->lane[lane].block,
                          RSD_BLOCK_DIRTY);
        }
    }
    unit->cause = cause;
    if (unit->pending) {
        unit->retired = true;
        map->groups[unit->group].erasing++;
        rsd_map_group_changed(map, unit->group);
        rsd_list_append(&map->retired, unit);
    } else {
        rsd_unit_release(map, unit);
    }
}

void rsd_unit_append(BlockMap *map, Unit *unit, Cmd *cmd, uint32_t index,
                     uint64_t lpn, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        rsd_map_add_content(map, lpn + i);
    }
    while (n) {
        Lane *lane = &unit->lane[rsd_lane_of(map, unit->next)];
        uint32_t most = map->grain - unit->next % map->grain, run = 1;

        most = map->lanes == 1 || most > n ? n : most;
        /* one that is trimmed has an operation of its own */
        while (run < most && !rsd_map_trimmed(map, lpn) &&
               !rsd_map_trimmed(map, lpn + run)) {
            run++;
        }
        unit->pending++;
        map->era_ops[rsd_map_cmd(cmd)->era]++;
        rsd_queue_write(map->ns, cmd, index, lane->block, lane->next, run);
        lane->next += run;
        unit->next += run;
        index += run;
        lpn += run;
        n -= run;
    }
    rsd_map_placed(map, lpn);
}

void rsd_map_drop_if_empty(BlockMap *map, uint32_t lblock)
{
    LBlock *lb = &map->lblocks[lblock];

    if (lb->live || lb->job) {
        return;
    }
    if (lb->log) {
        if (map->policy->log_dropped) {
            map->policy->log_dropped(map, lb->log);
        }
        rsd_unit_retire(map, lb->log, RSD_CAUSE_HOST);
        lb->log = NULL;
    }
    if (lb->data) {
        rsd_unit_retire(map, lb->data, RSD_CAUSE_HOST);
        lb->data = NULL;
    }
    rsd_map_lblock_changed(map, lblock);
}
