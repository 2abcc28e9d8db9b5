/*
 * Static wear levelling of drives that map whole blocks. If a block was erased,
 * but by levelling, and erase counts within its die differ by wl-threshold or
 * more: let S be the least worn block of the die that is data and at rest, T the
 * most worn free one. If T's count exceeds S's by the threshold or more, the
 * content of S is copied to T, which takes its place: cold data then rests on
 * the worn block. With stripe=all, S stands for its unit, T for the most worn
 * free blocks of all dies, and it is the mean of their counts that has to
 * differ. And since the drive was opened, levelling has moved at most wl-share
 * percent of the pages that others have programmed in the dies of the group, S
 * included. A move that has no share yet is tried again after another such erase.
 *
 * A logical block may keep its replacement block for long, and both of its
 * blocks with it. If one of them is the least worn, ftl=block merges the two:
 * one is erased, the other is data at rest.
 *
 * A move is a merge (merge.c), one a group at a time, and no unit of the group
 * is given to anybody else meanwhile. Otherwise what the host goes on to write
 * would be before each page of the move in the queue of its die, and hot blocks
 * would be erased many times before a cold one has been moved.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "block-map.h"

static bool at_rest(const BlockMap *map, const Unit *unit)
{
    const LBlock *lb;

    if (!unit || unit->lblock == RSD_NONE || unit->pending) {
        return false;
    }
    lb = &map->lblocks[unit->lblock];
    if (lb->job) {
        return false;
    }
    if (lb->log) {
        return map->policy->settle && (unit == lb->data || unit == lb->log);
    }
    return lb->data == unit;
}

/* Least worn block of a die that is data at rest, RSD_NONE: there is none */
static uint32_t least_worn(BlockMap *map, uint32_t die)
{
    const RsdDrive *drive = map->ns->drive;
    uint32_t base = die * drive->die_blocks, least = UINT32_MAX;
    uint32_t found = RSD_NONE, found_wear = UINT32_MAX;

    for (uint32_t b = base + map->ns->first; b < base + map->ns->end; b++) {
        uint64_t rec = drive->media.rec[b];
        uint32_t wear = rsd_rec_erases(rec);

        if (rsd_rec_flags(rec) & RSD_BLOCK_BAD) {
            continue;
        }
        least = wear < least ? wear : least;
        if (wear < found_wear && at_rest(map, map->owner[b])) {
            found = b;
            found_wear = wear;
        }
    }
    map->least_wear[die] = least;
    return found;
}

/* Do the most worn free blocks exceed a unit's by the threshold or more? */
static bool worth_a_move(const BlockMap *map, const Unit *unit)
{
    const RsdDrive *drive = map->ns->drive;
    uint64_t worn = 0, wear = 0;

    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        uint32_t die = unit->group * map->lanes + lane;

        if (!map->pools[die].len) {
            return false;
        }
        wear += rsd_rec_erases(drive->media.rec[unit->lane[lane].block]);
        worn += rsd_rec_erases(drive->media.rec[rsd_map_free_block(map, die,
                                                                   true)]);
    }
    return worn >= wear + map->lanes * drive->cfg.wl_threshold;
}

/* Slots that the dies of a group have programmed, but not for levelling */
static uint64_t others_programmed(const BlockMap *map, const Group *group)
{
    uint32_t die = (group - map->groups) * map->lanes;
    uint64_t programmed = 0;

    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        programmed += map->ns->drive->sched.dies[die + lane].programmed;
    }
    return programmed;
}

/* May so many pages more be moved? */
static bool has_share(const BlockMap *map, const Group *group, uint32_t pages)
{
    return (group->levelled + pages) * 100 <=
           others_programmed(map, group) * map->ns->drive->cfg.wl_share;
}

void rsd_wear_level(BlockMap *map, uint32_t block)
{
    const RsdDrive *drive = map->ns->drive;
    uint64_t threshold = drive->cfg.wl_threshold;
    uint32_t die = block / drive->die_blocks;
    Group *group = &map->groups[die / map->lanes];
    uint32_t from, lblock;
    RsdStatus status;
    bool wait;
    Unit *to;

    if (!threshold || rsd_rec_erases(drive->media.rec[block]) <
                      map->least_wear[die] + threshold) {
        return;
    }
    if (group->reserve_used) {
        group->worn = block + 1;
        return;
    }
    from = least_worn(map, die);
    if (from == RSD_NONE || !worth_a_move(map, map->owner[from])) {
        return;
    }
    lblock = map->owner[from]->lblock;
    if (!has_share(map, group, rsd_map_length(map, lblock))) {
        return;
    }
    if (map->lblocks[lblock].log) {
        map->policy->settle(map, lblock);   /* tried again as below */
        return;
    }
    to = rsd_unit_take(map, die / map->lanes, lblock, true, &status, &wait);
    if (!to) {
        return;                 /* tried again after the next erase */
    }
    group->reserve_used = group->levelling = true;
    if (rsd_merge(map, lblock, to, rsd_map_length(map, lblock),
                  RSD_JOB_WEAR) != RSD_OK) {
        group->reserve_used = group->levelling = false;
        rsd_unit_retire(map, to, RSD_CAUSE_WEAR);
    }
}

void rsd_wear_go_on(BlockMap *map, uint32_t group)
{
    uint32_t block = map->groups[group].worn - 1;

    if (block != RSD_NONE && !map->groups[group].reserve_used) {
        map->groups[group].worn = 0;
        rsd_wear_level(map, block);
    }
}

void rsd_wear_done(BlockMap *map, Job *job)
{
    LBlock *lb = &map->lblocks[job->lblock];
    Group *group = &map->groups[job->to->group];

    group->reserve_used = group->levelling = false;
    group->levelled += rsd_map_length(map, job->lblock);
    map->ns->drive->count->wear_moves += map->lanes;
    rsd_unit_retire(map, lb->data, RSD_CAUSE_WEAR);
    lb->data = job->to;
}
