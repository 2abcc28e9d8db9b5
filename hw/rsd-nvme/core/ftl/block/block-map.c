/*
 * What the personalities that map whole blocks share: units of flash, commands
 * and those that wait, trim, erasure.
 *
 * Order. Commands that overlap take effect in the order of submission: a
 * command waits if it overlaps one that waits, and otherwise goes on as soon as
 * it can, in parallel with those that wait for other logical blocks.
 *
 * Erasure. A block is erased when its content is of no use any more, at once,
 * and is free when that is done; a block of which the erasure fails is used no
 * more.
 *
 * Survival of SIGKILL. A block is marked dirty before it is erased, and the
 * mark goes when it was: a dirty block is empty. Trim sets an LBA's bit in the
 * file, which says that it has no content whatever pages there are; a program
 * of that LBA clears it. So that this cannot be one of before the trim, a trim
 * waits until the writes that it overlaps are done.
 *
 * With a write buffer a write is done, too, when it is safe there, and a trim
 * tells apart what the buffer has of before it. A unit is erased when what
 * replaces its content is programmed, or safe in the buffer; what the buffer
 * has of the unit itself is dropped then.
 *
 * If the host's disk fails (RsdDrive.failed), no merge is completed any more
 * and nothing erased: a copy that failed is read where it was, and of a write
 * that failed, what was there before is found again when the drive is opened;
 * until then it cannot be read.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "block-map.h"

static MapCmd *kept(const Cmd *cmd)
{
    return rsd_cmd_area(cmd);
}

typedef unsigned long long ull;

static bool get_bit(const uint64_t *bits, uint64_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static void set_bit(uint64_t *bits, uint64_t i, bool to)
{
    uint64_t bit = UINT64_C(1) << i % 64;

    bits[i / 64] = to ? bits[i / 64] | bit : bits[i / 64] & ~bit;
}

static void set_trimmed(BlockMap *map, uint64_t lpn, bool to)
{
    uint64_t *word = &map->ns->drive->media.trim[lpn / 64];
    uint64_t value = *word;

    set_bit(&value, lpn % 64, to);
    rsd_media_note(&map->ns->drive->media, word, &value, sizeof(value));
    /* release, as all stores into the file: in the program's order */
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

bool rsd_map_valid(const BlockMap *map, uint64_t lpn)
{
    return get_bit(map->valid, lpn);
}

void rsd_map_add_content(BlockMap *map, uint64_t lpn)
{
    if (!get_bit(map->valid, lpn)) {
        set_bit(map->valid, lpn, true);
        map->lblocks[lpn / map->span].live++;
        map->live++;
    }
}

bool rsd_map_trimmed(const BlockMap *map, uint64_t lpn)
{
    return get_bit(map->ns->drive->media.trim, lpn);
}

uint32_t rsd_map_length(const BlockMap *map, uint32_t lblock)
{
    uint64_t first = (uint64_t)lblock * map->span;
    uint32_t n = map->span;

    while (n && !get_bit(map->valid, first + n - 1)) {
        n--;
    }
    return n;
}

Place rsd_map_find(BlockMap *map, uint64_t lpn)
{
    const LBlock *lb = &map->lblocks[lpn / map->span];
    uint32_t page = lpn % map->span;
    Place place = { RSD_NONE, 0 };

    if (!get_bit(map->valid, lpn)) {
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

/*
 * What commands wait for
 */

static uint32_t lblock_of(const BlockMap *map, const Cmd *cmd)
{
    return (cmd->pub.lba + cmd->progress) / map->span;
}

/* What a command that waits, and follows no other one, waits for */
static uint32_t class_of(BlockMap *map, const Cmd *cmd)
{
    if (cmd->pub.op != RSD_WRITE || map->ns->drive->failed) {
        return WAIT_NOTHING;
    }
    if (map->lblocks[lblock_of(map, cmd)].job) {
        return WAIT_JOB;
    }
    return map->policy->class(map, cmd->pub.lba + cmd->progress);
}

static void set_class(BlockMap *map, Cmd *cmd, uint32_t class)
{
    kept(cmd)->class = class;
    if (class == WAIT_JOB || class == WAIT_PEER) {
        /* It stays in the tree: most come and go several times. */
        rsd_waits_mark(&map->waits, cmd, map->mask);
        return;
    }
    set_bit(map->mask, class, true);
    rsd_waits_mark(&map->waits, cmd, map->mask);
    set_bit(map->mask, class, false);
}

/*
 * Of the writes to a logical block that are to be looked at, only the oldest
 * one is, if it will go on or begin a job: the others wait for that.
 */
static bool waits_for_peers(const BlockMap *map)
{
    return !map->policy->linked && !map->ns->drive->failed;
}

void rsd_map_lblock_changed(BlockMap *map, uint32_t lblock)
{
    Cmd *oldest = NULL;

    for (Cmd *cmd = map->lblocks[lblock].waiting; cmd; cmd = kept(cmd)->next) {
        uint32_t class = class_of(map, cmd);
        Cmd *younger = cmd;

        if (class != WAIT_NOTHING || !waits_for_peers(map)) {
            set_class(map, cmd, class);
            continue;
        }
        if (!oldest || cmd->begun < oldest->begun) {
            younger = oldest;
            oldest = cmd;
        }
        if (younger) {
            set_class(map, younger, WAIT_PEER);
        }
    }
    if (oldest) {
        set_class(map, oldest, WAIT_NOTHING);
    }
}

static void worth_all(BlockMap *map)
{
    memset(map->worth, 0xff, map->waits.width * sizeof(uint64_t));
}

void rsd_map_group_changed(BlockMap *map, uint32_t group)
{
    if (map->policy->linked) {
        worth_all(map);
    } else {
        set_bit(map->worth, WAIT_GROUP + 2 * group, true);
    }
}

/*
 * Units
 */

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

static void make_free(BlockMap *map, uint32_t block)
{
    RsdDrive *drive = map->ns->drive;

    rsd_media_release(&drive->media, block);
    rsd_nand_mark(&drive->media, block, 0);
    rsd_pool_insert(drive, &map->pools[block / drive->die_blocks], block);
    map->retry = true;
    rsd_map_group_changed(map, block / drive->die_blocks / map->lanes);
}

/* Nothing of it is wanted or pending. */
static void release_unit(BlockMap *map, Unit *unit)
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
            make_free(map, block);
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
        release_unit(map, unit);
    }
}

/* Has the group fewer good units than it takes to go on? */
static void look_at_group(BlockMap *map, uint32_t g)
{
    Group *group = &map->groups[g];

    group->good = rsd_map_good_units(map->ns, g, false);
    if (group->good < group->logical + map->policy->extra) {
        rsd_drive_wear_out(map->ns->drive);
    }
}

static void erase_done(BlockMap *map, const Op *op)
{
    uint32_t block = op->block;
    const RsdDrive *drive = map->ns->drive;
    Group *group = &map->groups[block / drive->die_blocks / map->lanes];

    group->erasing--;
    if (rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_BAD) {
        look_at_group(map, group - map->groups);
        map->retry = true;      /* what waits for it waits in vain */
        rsd_map_group_changed(map, group - map->groups);
        return;
    }
    make_free(map, block);
    if (op->cause != RSD_CAUSE_WEAR && !drive->failed) {
        rsd_wear_level(map, block);
    }
}

void rsd_unit_append(BlockMap *map, Unit *unit, Cmd *cmd, uint32_t index,
                     uint64_t lpn, uint32_t n)
{
    Cmd *next;

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
        map->era_ops[kept(cmd)->era]++;
        rsd_queue_write(map->ns, cmd, index, lane->block, lane->next, run);
        lane->next += run;
        unit->next += run;
        index += run;
        lpn += run;
        n -= run;
    }
    /* a write that waits may go on behind it now */
    next = rsd_waits_at(&map->waits, lpn);
    if (next && !next->follows && kept(next)->peers) {
        set_class(map, next, class_of(map, next));
    }
}

/*
 * Commands
 */

static void read_pages(BlockMap *map, Cmd *cmd)
{
    RsdCmd *pub = &cmd->pub;
    uint32_t index = 0;

    while (index < pub->nlb) {
        Place first = rsd_map_find(map, pub->lba + index);
        uint32_t n = 1;

        if (first.block == RSD_NONE) {
            cmd->unwritten++;
            if (pub->data) {
                memset(pub->data + (size_t)index * RSD_PAGE_SIZE, 0,
                       RSD_PAGE_SIZE);
            }
            if (pub->oob) {
                memset(pub->oob + (size_t)index * cmd->oob_len, 0,
                       cmd->oob_len);
            }
            index++;
            continue;
        }
        while (index + n < pub->nlb) {
            Place next = rsd_map_find(map, pub->lba + index + n);

            if (next.block != first.block || next.page != first.page + n) {
                break;
            }
            n++;
        }
        rsd_queue_read(map->ns, cmd, index, first.block, first.page, n);
        index += n;
    }
}

/* Nothing of the logical block is left: neither are its units. */
static void drop_if_empty(BlockMap *map, uint32_t lblock)
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

static void trim(BlockMap *map, uint64_t lpn, uint64_t n)
{
    uint64_t end = lpn + n;

    rsd_buffer_trim(map->ns, lpn, n);
    /* takes time for what has content, however much else there is */
    while (lpn < end && map->live) {
        uint32_t lblock = lpn / map->span;
        LBlock *lb = &map->lblocks[lblock];
        uint64_t stop = (uint64_t)(lblock + 1) * map->span;

        if (!lb->live) {
            lpn = stop;
            continue;
        }
        for (stop = stop < end ? stop : end; lpn < stop; lpn++) {
            if (!get_bit(map->valid, lpn)) {
                continue;
            }
            set_trimmed(map, lpn, true);
            if (map->policy->forget) {
                map->policy->forget(map, lpn);
            }
            set_bit(map->valid, lpn, false);
            lb->live--;
            map->live--;
        }
        drop_if_empty(map, lblock);
    }
}

void rsd_map_refuse(BlockMap *map, Cmd *cmd, RsdStatus status)
{
    if (status == RSD_E_NOBLOCK) {
        status = rsd_drive_no_block(map->ns->drive);
    }
    if (cmd->pub.status == RSD_OK) {
        cmd->pub.status = status;
    }
}

static bool is_trim(const Cmd *cmd)
{
    return cmd->pub.op == RSD_TRIM || cmd->pub.op == RSD_WRITE_ZEROES;
}

/* The command fails: it does not wait for what begun grains have of it. */
static void give_up(BlockMap *map, Cmd *cmd)
{
    if (rsd_buffered(map->ns->drive)) {
        rsd_buffer_give_up(map->ns->drive, cmd);
    }
}

/* Pages of a write that were queued, of one logical block: of at most "here" */
static uint32_t write_piece(BlockMap *map, Cmd *cmd, uint64_t lpn,
                            uint32_t here)
{
    RsdDrive *drive = map->ns->drive;
    uint32_t left = cmd->pub.nlb - cmd->progress;
    uint32_t n = left < here ? left : here;
    RsdStatus status = rsd_buffer_reserve(drive, n / map->grain + 2);

    if (!rsd_op_reserve(drive, n)) {
        status = RSD_E_NOMEM;
    }
    if (status != RSD_OK) {
        cmd->pub.status = status;
        return 0;
    }
    return map->policy->write(map, cmd, cmd->progress, lpn, n);
}

/*
 * Does the command, or what is left of it. False: it has to wait. What fails is
 * in its status.
 */
static bool attempt(BlockMap *map, Cmd *cmd)
{
    RsdCmd *pub = &cmd->pub;

    if (pub->op == RSD_FLUSH) {
        return true;            /* nothing is held back */
    }
    if (map->ns->drive->failed && pub->op != RSD_READ) {
        rsd_map_refuse(map, cmd, RSD_E_READONLY);
        give_up(map, cmd);
        return true;
    }
    if (is_trim(cmd)) {
        if (rsd_write_in_flight(map->ns, cmd)) {
            return false;
        }
        trim(map, pub->lba, pub->nlb);
        return true;
    }
    if (pub->op == RSD_READ) {
        if (rsd_op_reserve(map->ns->drive, pub->nlb)) {
            read_pages(map, cmd);
        } else {
            pub->status = RSD_E_NOMEM;
        }
        return true;
    }
    if (!cmd->progress) {
        kept(cmd)->era = map->era;
    }
    while (cmd->progress < pub->nlb && pub->status == RSD_OK) {
        uint64_t lpn = pub->lba + cmd->progress;
        uint32_t n = write_piece(map, cmd, lpn, map->span - lpn % map->span);

        if (!n && pub->status == RSD_OK) {
            return false;
        }
        cmd->progress += n;
    }
    if (pub->status != RSD_OK) {
        give_up(map, cmd);
    }
    return true;
}

/*
 * Commands that wait
 */

static void leave_peers(Cmd *cmd)
{
    if (!kept(cmd)->peers) {
        return;
    }
    if (kept(cmd)->prev) {
        kept(kept(cmd)->prev)->next = kept(cmd)->next;
    } else {
        *kept(cmd)->peers = kept(cmd)->next;
    }
    if (kept(cmd)->next) {
        kept(kept(cmd)->next)->prev = kept(cmd)->prev;
    }
    kept(cmd)->peers = NULL;
}

static void join_peers(BlockMap *map, Cmd *cmd)
{
    Cmd **list = &map->lblocks[lblock_of(map, cmd)].waiting;

    if (kept(cmd)->peers == list) {
        return;
    }
    leave_peers(cmd);
    kept(cmd)->peers = list;
    kept(cmd)->prev = NULL;
    kept(cmd)->next = *list;
    if (*list) {
        kept(*list)->prev = cmd;
    }
    *list = cmd;
}

/* Is it to be looked at, and when? */
static void mark(BlockMap *map, Cmd *cmd)
{
    if (is_trim(cmd) && !map->ns->drive->failed) {
        rsd_waits_follow_write(&map->waits, cmd);
    }
    if (cmd->follows) {
        rsd_waits_mark(&map->waits, cmd, NULL);
        return;
    }
    if (cmd->pub.op == RSD_WRITE) {
        join_peers(map, cmd);
    }
    set_class(map, cmd, class_of(map, cmd));
}

static void freed(Ns *ns, Cmd *cmd)
{
    mark(ns->state, cmd);
}

/* The drive has failed: nobody is to wait for what will not come. */
static void mark_all(BlockMap *map)
{
    for (Cmd *cmd = map->waits.head; cmd; cmd = cmd->wait_next) {
        if (!rsd_waits_blocker(&map->waits, cmd)) {
            set_class(map, cmd, WAIT_NOTHING);
        }
    }
    map->all_marked = true;
}

static void start_waiting(BlockMap *map, Cmd *cmd, Cmd *behind)
{
    cmd->pending++;
    map->trims += is_trim(cmd);
    rsd_waits_add_behind(&map->waits, cmd, behind);
    mark(map, cmd);
}

/*
 * A write of some peers has gone on, or is done. If it was to be looked at,
 * others may have waited for it.
 */
static void let_peers_on(BlockMap *map, Cmd **peers, uint32_t class)
{
    if (peers && class == WAIT_NOTHING && waits_for_peers(map)) {
        rsd_map_lblock_changed(map, (LBlock *)((char *)peers -
                               offsetof(LBlock, waiting)) - map->lblocks);
    }
}

static void stop_waiting(BlockMap *map, Cmd *cmd)
{
    Cmd **peers = kept(cmd)->peers;

    leave_peers(cmd);
    let_peers_on(map, peers, kept(cmd)->class);
    rsd_waits_remove(&map->waits, cmd);
    map->trims -= is_trim(cmd);
    rsd_cmd_drop(map->ns->drive, cmd);
}

/* Lets a command go on. If that changes nothing, it need not be tried again. */
static void look_at(BlockMap *map, Cmd *cmd)
{
    uint32_t class = kept(cmd)->class, progress = cmd->progress;
    Cmd **peers = kept(cmd)->peers;
    bool done;

    set_bit(map->worth, class, class == WAIT_NOTHING);
    done = attempt(map, cmd);
    if (done || cmd->progress != progress) {
        set_bit(map->worth, class, true);
    }
    if (map->policy->linked && done && cmd->pub.op != RSD_READ) {
        worth_all(map);         /* a trim may have emptied a log block */
    }
    if (done) {
        stop_waiting(map, cmd);
        return;
    }
    if (cmd->progress != progress) {
        rsd_waits_went_on(&map->waits, cmd);
    }
    class = kept(cmd)->class;
    mark(map, cmd);
    /* what begins or ends a job has looked at them */
    if (cmd->progress != progress ||
        (kept(cmd)->class != class && kept(cmd)->class != WAIT_JOB)) {
        let_peers_on(map, peers, class);
    }
}

/* Lets commands that wait go on as far as they can. */
static void attempt_waiting(BlockMap *map)
{
    while (map->retry) {
        uint64_t from = 0;
        Cmd *cmd;

        map->retry = false;
        if (map->policy->linked) {
            worth_all(map);
        }
        if (map->ns->drive->failed && !map->all_marked) {
            mark_all(map);
        }
        while ((cmd = rsd_waits_next(&map->waits, from, map->worth))) {
            from = cmd->begun + 1;
            look_at(map, cmd);
        }
    }
}

/* Is something going on that a command may wait for? */
static bool busy(const BlockMap *map)
{
    for (uint32_t g = 0; g < map->num_groups; g++) {
        if (map->groups[g].erasing) {
            return true;
        }
    }
    return map->era_ops[0] || map->era_ops[1] || rsd_merge_running(map) ||
           rsd_buffer_busy(map->ns);
}

static void retry_waiting(BlockMap *map)
{
    bool failed = map->ns->drive->failed;

    if (map->num_stalled && !failed) {
        rsd_merge_retry(map);
    }
    attempt_waiting(map);
    /* they wait for merges that the host has no space or memory for */
    while (map->num_stalled && !failed && map->waits.head && !busy(map)) {
        Cmd *cmd = map->waits.head;

        rsd_map_refuse(map, cmd, map->stalled);
        give_up(map, cmd);
        stop_waiting(map, cmd);
        map->retry = true;
        attempt_waiting(map);
    }
}

static RsdStatus submit(BlockMap *map, Cmd *cmd)
{
    Cmd *behind;

    if (!rsd_waits_reserve(&map->waits)) {
        return RSD_E_NOMEM;
    }
    cmd->progress = 0;
    behind = cmd->pub.op == RSD_FLUSH ? NULL
                                      : rsd_waits_blocker(&map->waits, cmd);
    if (behind || !attempt(map, cmd)) {
        start_waiting(map, cmd, behind);
    } else if (cmd->pub.status != RSD_OK && !cmd->progress) {
        return cmd->pub.status;
    }
    retry_waiting(map);
    return RSD_OK;
}

RsdStatus rsd_map_submit(Ns *ns, Cmd *cmd)
{
    BlockMap *map = ns->state;
    bool held = rsd_buffer_hold(map->ns->drive);
    RsdStatus status = submit(map, cmd);

    rsd_buffer_go_on(map->ns->drive, held);
    return status;
}

/* A page of the host is safe: it is the content, whatever was trimmed before */
void rsd_map_kept(Ns *ns, uint64_t lba)
{
    BlockMap *map = ns->state;

    if (rsd_map_trimmed(map, lba)) {
        set_trimmed(map, lba, false);
    }
}

/* A program of the host is done, or the write buffer has it. */
static void host_program_done(BlockMap *map, const Op *op)
{
    Unit *unit = map->owner[op->block];
    uint64_t lpn = op->cmd->pub.lba + op->index;
    const RsdDrive *drive = map->ns->drive;

    if (!op->failed && (!rsd_buffered(drive) || drive->cfg.plp)) {
        rsd_map_kept(map->ns, lpn);
    }
    map->retry |= map->trims > 0;
    if (!--map->era_ops[kept(op->cmd)->era]) {
        map->retry = true;
    }
    if (--unit->pending) {
        return;
    }
    if (unit->retired) {
        rsd_list_remove(&map->retired, unit);
        map->groups[unit->group].erasing--;
        release_unit(map, unit);
    } else if (unit->lblock != RSD_NONE) {
        rsd_merge_check(map, unit->lblock);
    }
}

/* A grain was programmed. */
static void grain_done(BlockMap *map, const Op *op)
{
    const Unit *unit = map->owner[op->block];

    map->retry = true;          /* what waits until it is safe, or for room */
    if (unit && unit->lblock != RSD_NONE) {
        rsd_merge_check(map, unit->lblock);
    }
}

void rsd_map_op_buffered(Ns *ns, Op *op)
{
    BlockMap *map = ns->state;

    map->retry |= map->ns->drive->failed;
    if (op->cmd) {
        host_program_done(map, op);
        rsd_op_finish(map->ns->drive, op);
    } else {
        rsd_merge_step(map, op);
    }
    retry_waiting(map);
}

static void op_done(BlockMap *map, Op *op)
{
    /* those that wait do so in vain */
    map->retry |= map->ns->drive->failed;
    if (op->unit) {
        grain_done(map, op);
        rsd_op_finish(map->ns->drive, op);
    } else if (op->kind != OP_ERASE && !op->cmd) {
        rsd_merge_step(map, op);
    } else {
        if (op->kind == OP_ERASE) {
            erase_done(map, op);
        } else if (op->kind == OP_PROGRAM) {
            host_program_done(map, op);
        }
        rsd_op_finish(map->ns->drive, op);
    }
    retry_waiting(map);
}

void rsd_map_op_done(Ns *ns, Op *op)
{
    BlockMap *map = ns->state;
    bool held = rsd_buffer_hold(map->ns->drive);

    op_done(map, op);
    rsd_buffer_go_on(map->ns->drive, held);
}

/* Ends the logical block's job if it is done. */
void rsd_merge_check(BlockMap *map, uint32_t lblock)
{
    Job *job = map->lblocks[lblock].job;

    if (!job || job->running || job->to->pending || map->ns->drive->failed ||
        (job->kind != RSD_JOB_FILL && !rsd_unit_is_safe(map, job->to))) {
        return;
    }
    map->lblocks[lblock].job = NULL;
    map->groups[rsd_map_group(map, lblock)].jobs--;
    map->groups[rsd_map_group(map, lblock)].merges -=
        job->kind != RSD_JOB_FILL;
    if (job->kind == RSD_JOB_WEAR) {
        rsd_wear_done(map, job);
    } else {
        map->policy->job_done(map, job);
    }
    job->next_free = map->free_jobs;
    map->free_jobs = job;
    if (job->kind != RSD_JOB_FILL) {
        drop_if_empty(map, lblock);
    }
    map->retry = true;
    rsd_map_lblock_changed(map, lblock);
    rsd_map_group_changed(map, rsd_map_group(map, lblock));
    if (job->kind != RSD_JOB_FILL) {
        rsd_wear_go_on(map, rsd_map_group(map, lblock));
    }
}

void rsd_map_format(Ns *ns)
{
    BlockMap *map = ns->state;
    bool held = rsd_buffer_hold(map->ns->drive);

    trim(map, 0, map->ns->geo.lbas);
    rsd_buffer_go_on(map->ns->drive, held);
}

/*
 * Size
 */

static uint32_t num_lanes(const Ns *ns)
{
    return ns->drive->cfg.stripe == RSD_STRIPE_ALL ? ns->drive->dies : 1;
}

uint32_t rsd_map_groups(const Ns *ns)
{
    return ns->drive->dies / num_lanes(ns);
}

uint32_t rsd_map_span(const Ns *ns)
{
    return ns->drive->pages * num_lanes(ns);
}

uint32_t rsd_map_logical(const Ns *ns, uint32_t group)
{
    uint32_t groups = rsd_map_groups(ns);

    return (ns->geo.lbas / rsd_map_span(ns) + groups - 1 - group) / groups;
}

/* Those of the group's die that has fewest */
uint32_t rsd_map_good_units(const Ns *ns, uint32_t group, bool when_new)
{
    const RsdDrive *drive = ns->drive;
    uint32_t lanes = num_lanes(ns), least = UINT32_MAX;

    for (uint32_t lane = 0; lane < lanes; lane++) {
        const uint64_t *rec = drive->media.rec + ((size_t)group * lanes +
                                                  lane) * drive->die_blocks;
        uint32_t good = 0;

        for (uint32_t b = ns->first; b < ns->end; b++) {
            good += !(rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD) ||
                    (when_new && rsd_rec_flags(rec[b]) & RSD_BLOCK_GROWN);
        }
        least = good < least ? good : least;
    }
    return least;
}

bool rsd_map_geometry(Ns *ns, const BlockPolicy *policy,
                      char err[RSD_ERR_LEN])
{
    uint32_t extra = policy->extra;
    const RsdConfig *cfg = &ns->drive->cfg;
    const char *name = rsd_ftl_names[cfg->ftl];
    uint64_t user = rsd_exported_pages(ns);
    uint64_t span = rsd_map_span(ns);

    ns->geo.zoned = false;
    ns->geo.max_oob = RSD_SPARE_OFFSET;
    ns->geo.lbas = user / span * span;
    if (!ns->geo.lbas) {
        rsd_set_error(err, "over-provision=%llu leaves the host %llu pages, "
                      "but ftl=%s with stripe=%s maps %llu at a time; choose "
                      "more blocks, or a lower over-provision",
                      (ull)cfg->over_provision, (ull)user, name,
                      rsd_stripe_names[cfg->stripe], (ull)span);
        return false;
    }
    for (uint32_t g = 0; g < rsd_map_groups(ns); g++) {
        uint32_t good = rsd_map_good_units(ns, g, true);
        uint32_t need = rsd_map_logical(ns, g) + extra;

        if (good < need) {
            rsd_set_error(err, "ftl=%s needs %u good flash blocks in each way "
                          "(%u for data, %u for merges), but channel %llu way "
                          "%llu has %u: raise over-provision (now %llu) or "
                          "spare-blocks (now %llu), or lower bad-blocks-ppm",
                          name, need, need - extra, extra,
                          (ull)(g % cfg->channels), (ull)(g / cfg->channels),
                          good, (ull)cfg->over_provision,
                          (ull)cfg->spare_blocks);
            return false;
        }
    }
    return true;
}

/*
 * Memory
 */

static size_t bitmap_size(const Ns *ns)
{
    return rsd_div_round_up(ns->geo.lbas, 64) * sizeof(uint64_t);
}

static size_t owner_size(const RsdDrive *drive)
{
    return (size_t)drive->dies * drive->die_blocks * sizeof(Unit *);
}

static size_t mask_size(const BlockMap *map)
{
    return map->waits.width * sizeof(uint64_t);
}

bool rsd_map_init(BlockMap *map, Ns *ns, const BlockPolicy *policy,
                  char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;

    map->ns = ns;
    map->policy = policy;
    map->waits = (Waits){
        .ns = ns, .freed = freed, .rest_counts = true,
        .width = rsd_div_round_up(WAIT_GROUP + 2 * rsd_map_groups(ns), 64),
    };
    ns->waits = &map->waits;
    map->lanes = num_lanes(ns);
    map->span = rsd_map_span(ns);
    map->grain = drive->unit;
    map->num_groups = rsd_map_groups(ns);
    map->num_lblocks = ns->geo.lbas / map->span;
    map->groups = rsd_alloc(drive, map->num_groups * sizeof(Group));
    map->lblocks = rsd_alloc(drive, map->num_lblocks * sizeof(LBlock));
    map->pools = rsd_alloc(drive, drive->dies * sizeof(Pool));
    map->owner = rsd_alloc(drive, owner_size(drive));
    map->valid = rsd_alloc(drive, bitmap_size(ns));
    map->least_wear = rsd_alloc(drive, drive->dies * sizeof(uint32_t));
    map->worth = rsd_alloc(drive, mask_size(map));
    map->mask = rsd_alloc(drive, mask_size(map));
    if (map->worth && map->mask && map->groups && map->lblocks &&
        map->pools && map->owner && map->valid && map->least_wear) {
        uint32_t d = 0;

        while (d < drive->dies && rsd_pool_init(ns, &map->pools[d])) {
            d++;
        }
        if (d == drive->dies) {
            for (uint32_t g = 0; g < map->num_groups; g++) {
                map->groups[g].logical = rsd_map_logical(ns, g);
                look_at_group(map, g);
            }
            worth_all(map);
            return true;
        }
    }
    rsd_set_error(err, "no memory for the map of %u logical blocks: choose "
                  "fewer blocks of more pages", map->num_lblocks);
    return false;
}

void rsd_map_fini(BlockMap *map)
{
    RsdDrive *drive = map->ns->drive;

    for (uint32_t l = 0; map->lblocks && l < map->num_lblocks; l++) {
        LBlock *lb = &map->lblocks[l];

        if (lb->job && lb->job->to != lb->data && lb->job->to != lb->log) {
            rsd_unit_free(map, lb->job->to);
        }
        rsd_unit_free(map, lb->data);
        rsd_unit_free(map, lb->log);
    }
    while (map->retired.oldest) {
        Unit *unit = map->retired.oldest;

        rsd_list_remove(&map->retired, unit);
        rsd_unit_free(map, unit);
    }
    rsd_merge_fini(map);
    for (uint32_t d = 0; map->pools && d < drive->dies; d++) {
        rsd_pool_fini(drive, &map->pools[d]);
    }
    rsd_release(drive, map->groups, map->num_groups * sizeof(Group));
    rsd_release(drive, map->lblocks, map->num_lblocks * sizeof(LBlock));
    rsd_release(drive, map->pools, drive->dies * sizeof(Pool));
    rsd_release(drive, map->owner, owner_size(drive));
    rsd_release(drive, map->valid, bitmap_size(map->ns));
    rsd_release(drive, map->least_wear, drive->dies * sizeof(uint32_t));
    rsd_release(drive, map->worth, mask_size(map));
    rsd_release(drive, map->mask, mask_size(map));
    rsd_waits_fini(&map->waits);
}
