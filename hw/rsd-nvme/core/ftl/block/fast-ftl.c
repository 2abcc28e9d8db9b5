/*
 * The hybrid personality: FAST (Lee et al., "A log buffer-based flash
 * translation layer using fully-associative sector translation", ACM TECS 6(3),
 * 2007), as it is compared with in SFS section 4.4.
 *
 * Data blocks are mapped by the block, pages at their offsets; what cannot go
 * there goes to log blocks, which are few: log-blocks percent of what the host
 * sees. One of them is the sequential log block, of one logical block at a
 * time, whose pages are at their offsets, too. The others are the random log,
 * in which any page may be anywhere. On flash that has its pages programmed in
 * order, a page fits a data block if it is that block's next.
 *
 *   write of the page that is next in the sequential log block: goes there.
 *   another write to the logical block that has it: that is merged first.
 *   write of the data block's next page: goes there. A logical block without a
 *     data block gets one by a write of its page 0.
 *   write of page 0 otherwise: what the sequential log block holds is merged;
 *     a new one begins with that page. If power cuts have left the random log
 *     more blocks than there is room for, its oldest ones are reclaimed before.
 *   any other write: goes to the random log. If its last block is full, it gets
 *     a new one, as long as there are not more than it may have; else its
 *     oldest block is reclaimed first: every logical block that has its newest
 *     page of some offset there is merged in full, and the block is erased.
 *
 * A page that had to wait for a merge finds its place by these rules after it.
 * A page that needed the oldest log block does so when that was erased.
 *
 * Merges:
 *
 *   switch   the sequential log block takes the data block's place as it is: it
 *            is full, or nothing that has content is behind its end.
 *   partial  the same, after the rest was copied to it.
 *   full     the newest pages of a logical block, wherever they are, its
 *            sequential log block included, are copied to a new block.
 *
 * In a merge a page is copied from where its newest content is, be that in the
 * random log. Pages without content (trimmed, never written) become filler, or
 * nothing if there is none behind. A sequential log block that is full is
 * merged at once.
 *
 * Full merges of different logical blocks go on in parallel, one in a group of
 * dies (block-map.h). For them each group keeps a block, and one for the
 * sequential log block, so that none ever lacks it; the random log has its
 * blocks in the groups in turn, as far as there are more.
 *
 * Survival of SIGKILL: see block-recover.c. A block of the random log is erased
 * when its pages that were written again are programmed where they are now
 * (eras, block-map.h), and merges of all others are done.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>

#include "block-map.h"

typedef unsigned long long ull;

typedef struct FastFtl {
    BlockMap map;               /* first */
    Unit *sequential;           /* NULL: none */
    UnitList log;               /* the random log */
    uint32_t num_logs, max_logs;
    uint32_t turn;              /* group of its next block */
    Unit *victim;               /* being reclaimed */
    bool era_ended;             /* the writes that it waits for are counted */
    uint32_t replaced;          /* pages of it that are safe elsewhere */
    uint64_t reclaimed;         /* log blocks that were erased as victims */
    /*
     * Log pages are numbered through the log: unit number * span + page. One
     * that is in no unit has no LBA.
     */
    uint32_t *page_of;          /* by LBA: log page + 1, 0: none */
    uint32_t *lpn_of;           /* by log page */
    Unit **units;               /* by number */
    uint32_t num_units;         /* that there is room for */
} FastFtl;

static FastFtl *fast_of(BlockMap *map)
{
    return (FastFtl *)map;
}

static Group *group_of(BlockMap *map, uint32_t lblock)
{
    return &map->groups[rsd_map_group(map, lblock)];
}

/*
 * The random log
 */

static Place find(BlockMap *map, uint64_t lpn)
{
    const FastFtl *fast = fast_of(map);
    uint32_t page = fast->page_of[lpn];

    if (!page) {
        return (Place){ RSD_NONE, 0 };
    }
    page--;
    return rsd_unit_place(map, fast->units[page / map->span],
                          page % map->span);
}

/* The LBA's newest page is elsewhere from now on, or it has none. */
static void forget(BlockMap *map, uint64_t lpn)
{
    FastFtl *fast = fast_of(map);
    uint32_t page = fast->page_of[lpn];

    if (page) {
        fast->page_of[lpn] = 0;
        fast->units[(page - 1) / map->span]->live--;
        map->retry = true;      /* the victim may have become empty */
    }
}

static void forget_lblock(BlockMap *map, uint32_t lblock)
{
    uint64_t lpn = (uint64_t)lblock * map->span;

    for (uint32_t i = 0; i < map->span; i++) {
        forget(map, lpn + i);
    }
}

static void remember(BlockMap *map, Unit *unit, uint32_t page, uint64_t lpn)
{
    FastFtl *fast = fast_of(map);
    uint32_t number = unit->number * map->span + page;

    forget(map, lpn);
    fast->page_of[lpn] = number + 1;
    fast->lpn_of[number] = lpn;
    unit->live++;
}

/* The newest page of a log page's LBA is that one. */
static bool is_live(const FastFtl *fast, const Unit *unit, uint32_t page)
{
    uint32_t number = unit->number * fast->map.span + page;

    return page < unit->next &&
           fast->page_of[fast->lpn_of[number]] == number + 1;
}

/* Room for that many units of the log. False: no memory; nothing has changed */
static bool grow_log(FastFtl *fast, uint32_t units)
{
    RsdDrive *drive = fast->map.ns->drive;
    size_t page_bytes = fast->map.span * sizeof(uint32_t);
    Unit **new_units = rsd_alloc(drive, units * sizeof(Unit *));
    uint32_t *lpn_of = rsd_alloc(drive, units * page_bytes);

    if (!new_units || !lpn_of) {
        rsd_release(drive, new_units, units * sizeof(Unit *));
        rsd_release(drive, lpn_of, units * page_bytes);
        return false;
    }
    if (fast->num_units) {
        memcpy(new_units, fast->units, fast->num_units * sizeof(Unit *));
        memcpy(lpn_of, fast->lpn_of, fast->num_units * page_bytes);
    }
    rsd_release(drive, fast->units, fast->num_units * sizeof(Unit *));
    rsd_release(drive, fast->lpn_of, fast->num_units * page_bytes);
    fast->units = new_units;
    fast->lpn_of = lpn_of;
    fast->num_units = units;
    return true;
}

/* False: no memory */
static bool add_log(FastFtl *fast, Unit *unit)
{
    uint32_t n = 0;

    while (n < fast->num_units && fast->units[n]) {
        n++;
    }
    if (n == fast->num_units && !grow_log(fast, 2 * n)) {
        return false;
    }
    unit->number = n;
    fast->units[n] = unit;
    fast->num_logs++;
    fast->map.groups[unit->group].num_logs++;
    rsd_list_append(&fast->log, unit);
    return true;
}

static void erase_log(FastFtl *fast, Unit *unit)
{
    rsd_list_remove(&fast->log, unit);
    fast->units[unit->number] = NULL;
    fast->num_logs--;
    fast->map.groups[unit->group].num_logs--;
    rsd_unit_retire(&fast->map, unit, RSD_CAUSE_MERGE);
}

/*
 * Merges
 */

static RsdStatus merge_sequential(FastFtl *fast)
{
    BlockMap *map = &fast->map;
    Unit *unit = fast->sequential;

    if (map->lblocks[unit->lblock].job) {
        return RSD_OK;          /* going on */
    }
    return rsd_merge(map, unit->lblock, unit,
                     rsd_map_length(map, unit->lblock), RSD_JOB_LOG);
}

static void log_dropped(BlockMap *map, Unit *log)
{
    (void)log;
    fast_of(map)->sequential = NULL;
}

static void job_done(BlockMap *map, Job *job)
{
    RsdCounters *count = map->ns->drive->count;
    FastFtl *fast = fast_of(map);
    LBlock *lb = &map->lblocks[job->lblock];

    if (job->kind == RSD_JOB_FULL) {
        group_of(map, job->lblock)->reserve_used = false;
        count->merge_full++;
        if (lb->log) {
            rsd_unit_retire(map, lb->log, RSD_CAUSE_MERGE);
        }
    } else if (job->copies) {
        count->merge_partial++;
    } else {
        count->merge_switch++;
    }
    if (lb->log) {
        lb->log = NULL;
        fast->sequential = NULL;
    }
    if (lb->data) {
        rsd_unit_retire(map, lb->data, RSD_CAUSE_MERGE);
    }
    lb->data = job->to;
    forget_lblock(map, job->lblock);
}

/*
 * No block is free in a group, and none will be by what is going on. If blocks
 * have died, the sequential log block may have taken the one for merges.
 */
static RsdStatus make_room(FastFtl *fast, uint32_t group)
{
    if (fast->sequential && fast->sequential->group == group) {
        return merge_sequential(fast);
    }
    return RSD_E_NOBLOCK;
}

static RsdStatus merge_full(FastFtl *fast, uint32_t lblock)
{
    BlockMap *map = &fast->map;
    Group *group = group_of(map, lblock);
    RsdStatus status;
    bool wait;
    Unit *to;

    if (map->lblocks[lblock].job || group->reserve_used) {
        return RSD_OK;          /* later */
    }
    to = rsd_unit_take(map, rsd_map_group(map, lblock), lblock, false,
                       &status, &wait);
    if (!to && (wait || group->jobs)) {
        return RSD_OK;
    }
    if (!to) {
        return status == RSD_E_NOBLOCK
               ? make_room(fast, group - map->groups) : status;
    }
    group->reserve_used = true;
    status = rsd_merge(map, lblock, to, rsd_map_length(map, lblock),
                       RSD_JOB_FULL);
    if (status != RSD_OK) {
        group->reserve_used = false;
        rsd_unit_retire(map, to, RSD_CAUSE_MERGE);
    }
    return status;
}

/*
 * What the host wrote again of a victim is done. But a write buffer without
 * power-loss protection may lose it: is it programmed, or protected there?
 */
static bool is_replaced(FastFtl *fast, const Unit *victim)
{
    BlockMap *map = &fast->map;

    if (!rsd_buffered(map->ns->drive) || map->ns->drive->cfg.plp) {
        return true;
    }
    for (; fast->replaced < victim->next; fast->replaced++) {
        uint32_t page = fast->replaced;
        Place at;

        if (!rsd_unit_has(map, victim, page)) {
            continue;           /* recovered without that lane */
        }
        at = rsd_map_find(map, fast->lpn_of[victim->number * map->span +
                                            page]);
        if (at.block == RSD_NONE) {
            continue;           /* trimmed */
        }
        if (rsd_block_is_safe(map, at.block, at.page + 1)) {
            continue;
        }
        rsd_buffer_protect(map->ns, at.block);
        if (!rsd_block_is_safe(map, at.block, at.page + 1)) {
            return false;
        }
    }
    return true;
}

/* Begins what has to be done before the oldest log block can be erased. */
static RsdStatus reclaim(FastFtl *fast)
{
    BlockMap *map = &fast->map;
    Unit *victim = fast->victim ? fast->victim : fast->log.oldest;
    RsdStatus status = RSD_OK;

    fast->victim = victim;
    for (uint32_t page = 0; page < map->span && victim->live; page++) {
        if (is_live(fast, victim, page)) {
            uint32_t lpn = fast->lpn_of[victim->number * map->span + page];
            RsdStatus s = merge_full(fast, lpn / map->span);

            status = s == RSD_OK ? status : s;
        }
    }
    if (victim->live) {
        return status;
    }
    /* of two eras, one has to be over before the other can end */
    if (!fast->era_ended) {
        if (map->era_ops[!map->era]) {
            return RSD_OK;
        }
        map->era = !map->era;
        fast->era_ended = true;
    }
    if (!map->era_ops[!map->era] && is_replaced(fast, victim)) {
        fast->victim = NULL;
        fast->era_ended = false;
        fast->replaced = 0;
        fast->reclaimed++;
        erase_log(fast, victim);
    }
    return RSD_OK;
}

/* The write needs the oldest log block, and waits until that is erased. */
static RsdStatus reclaim_for(FastFtl *fast, Cmd *cmd)
{
    if (!fast->log.oldest) {
        return RSD_E_NOBLOCK;
    }
    rsd_map_cmd(cmd)->reclaimed = fast->reclaimed + 1;
    return reclaim(fast);
}

/*
 * Writing
 */

/*
 * How many more blocks the random log may have in a group, beside data, a merge
 * and the sequential log block
 */
static int64_t room(const Group *group)
{
    return (int64_t)group->good - group->logical - 2 - group->num_logs;
}

/* The log block to write to. NULL: as of BlockPolicy.write */
static Unit *random_log(FastFtl *fast, Cmd *cmd)
{
    BlockMap *map = &fast->map;
    Unit *unit = fast->log.newest;
    RsdStatus status;
    bool wait;

    if (unit && unit->next < map->span && unit != fast->victim) {
        return unit;
    }
    for (uint32_t i = 0; i < map->num_groups; i++) {
        uint32_t g = (fast->turn + i) % map->num_groups;

        if (fast->num_logs >= fast->max_logs || room(&map->groups[g]) <= 0) {
            continue;
        }
        unit = rsd_unit_take(map, g, RSD_NONE, false, &status, &wait);
        if (unit) {
            fast->turn = (g + 1) % map->num_groups;
            add_log(fast, unit);
        } else if (!wait && !map->groups[g].jobs) {
            rsd_map_refuse(map, cmd, status);
        }
        return unit;
    }
    rsd_map_refuse(map, cmd, reclaim_for(fast, cmd));
    return NULL;
}

/* A unit for pages at their offsets. NULL: as of BlockPolicy.write */
static Unit *take_unit(BlockMap *map, Cmd *cmd, uint32_t lblock)
{
    FastFtl *fast = fast_of(map);
    uint32_t group = rsd_map_group(map, lblock);
    RsdStatus status;
    bool wait;
    Unit *unit = rsd_unit_take(map, group, lblock, false, &status, &wait);

    if (unit || wait || map->groups[group].jobs) {
        return unit;
    }
    if (status == RSD_E_NOBLOCK) {
        status = make_room(fast, group);
    }
    if (status == RSD_E_NOBLOCK && fast->log.oldest) {
        status = reclaim(fast);
    }
    rsd_map_refuse(map, cmd, status);
    return NULL;
}

static uint32_t append_random(FastFtl *fast, Cmd *cmd, uint32_t index,
                              uint64_t lpn, uint32_t n)
{
    Unit *unit = random_log(fast, cmd);
    uint32_t page;

    if (!unit) {
        return 0;
    }
    page = unit->next;
    if (n > fast->map.span - page) {
        n = fast->map.span - page;
    }
    rsd_unit_append(&fast->map, unit, cmd, index, lpn, n);
    for (uint32_t i = 0; i < n; i++) {
        remember(&fast->map, unit, page + i, lpn + i);
    }
    return n;
}

static uint32_t fast_write(BlockMap *map, Cmd *cmd, uint32_t index,
                           uint64_t lpn, uint32_t n)
{
    FastFtl *fast = fast_of(map);
    uint32_t lblock = lpn / map->span, page = lpn % map->span;
    LBlock *lb = &map->lblocks[lblock];
    Unit *to = NULL;

    if (lb->job) {
        return 0;
    }
    if (rsd_map_cmd(cmd)->reclaimed > fast->reclaimed) {
        rsd_map_refuse(map, cmd, reclaim(fast));
        return 0;
    }
    if (lb->log) {
        to = lb->log;
        if (page != to->next) {
            rsd_map_refuse(map, cmd, merge_sequential(fast));
            return 0;
        }
    } else if (lb->data ? page == lb->data->next : !page) {
        to = lb->data ? lb->data : take_unit(map, cmd, lblock);
        lb->data = to;
    } else if (page) {
        uint32_t next = lb->data ? lb->data->next : 0;

        if (page < next && n > next - page) {
            n = next - page;    /* from there on, they go to the data block */
        }
        return append_random(fast, cmd, index, lpn, n);
    } else if (fast->sequential) {
        rsd_map_refuse(map, cmd, merge_sequential(fast));
        return 0;
    } else if (room(group_of(map, lblock)) < 0) {
        /*
         * Recovery has taken the sequential log block, which was torn, for one
         * of the random log. If the next one were torn, too, there would be no
         * block for merges.
         */
        rsd_map_refuse(map, cmd, reclaim_for(fast, cmd));
        return 0;
    } else {
        to = take_unit(map, cmd, lblock);
        lb->log = fast->sequential = to;
    }
    if (!to) {
        return 0;
    }
    if (!to->next) {
        rsd_map_lblock_changed(map, lblock);
    }
    rsd_unit_append(map, to, cmd, index, lpn, n);
    for (uint32_t i = 0; i < n; i++) {
        forget(map, lpn + i);
    }
    if (to == lb->log && to->next == map->span) {
        /* without memory for it, it is merged when it is in the way */
        merge_sequential(fast);
    }
    return n;
}

/* As fast_write() decides */
static uint32_t class(BlockMap *map, uint64_t lpn)
{
    uint32_t lblock = lpn / map->span, page = lpn % map->span;
    uint32_t group = rsd_map_group(map, lblock);
    const LBlock *lb = &map->lblocks[lblock];

    if (lb->log || (lb->data && page == lb->data->next)) {
        return WAIT_NOTHING;
    }
    if (page) {
        return WAIT_LOG;
    }
    return (lb->data ? WAIT_GROUP_LOG : WAIT_GROUP) + 2 * group;
}

static const BlockPolicy fast_policy = {
    .write = fast_write,
    .class = class,
    .linked = true,
    .job_done = job_done,
    .find = find,
    .forget = forget,
    .log_dropped = log_dropped,
    /* the block that a merge makes, and the sequential log block */
    .extra = 2,
};

/*
 * Opening
 */

/* Random log blocks and the sequential one that the settings ask for */
static uint32_t log_units(const Ns *ns)
{
    uint64_t n = ns->geo.lbas / rsd_map_span(ns) *
                 ns->drive->cfg.log_blocks / 100;

    return n < 2 ? 2 : n;
}

static bool fast_geometry(Ns *ns, char err[RSD_ERR_LEN])
{
    const RsdConfig *cfg = &ns->drive->cfg;
    uint64_t raw = (uint64_t)ns->drive->dies * ns->visible * ns->drive->pages;
    uint64_t room = 0;

    if (!rsd_map_geometry(ns, &fast_policy, err)) {
        return false;
    }
    for (uint32_t g = 0; g < rsd_map_groups(ns); g++) {
        room += rsd_map_good_units(ns, g, true) - rsd_map_logical(ns, g) - 2;
    }
    if (room < log_units(ns) - 1) {
        rsd_set_error(err, "log-blocks=%llu are %u random log blocks, but "
                      "there is room for %llu beside data and merges: lower "
                      "log-blocks, or raise over-provision (now %llu) or "
                      "spare-blocks (now %llu)", (ull)cfg->log_blocks,
                      log_units(ns) - 1, (ull)room, (ull)cfg->over_provision,
                      (ull)cfg->spare_blocks);
        return false;
    }
    /* RISA table 2: 4 bytes a flash block, 4 a page of the log */
    ns->geo.map_bytes = 4 * raw / ns->drive->pages +
                        4 * raw * cfg->log_blocks / 100;
    return true;
}

static bool recover_log(BlockMap *map, Unit *unit)
{
    FastFtl *fast = fast_of(map);

    if (!add_log(fast, unit)) {
        return false;
    }
    for (uint32_t page = 0; page < unit->next; page++) {
        const RsdSpare *spare;
        Place place = rsd_unit_place(map, unit, page), other;

        if (!rsd_unit_has(map, unit, page)) {
            continue;           /* a lane that is missing, or shorter */
        }
        spare = rsd_map_spare(map, place.block, place.page);
        if (!spare || rsd_map_trimmed(map, spare->lpn)) {
            continue;
        }
        other = rsd_map_find(map, spare->lpn);
        if (other.block != RSD_NONE &&
            rsd_map_spare(map, other.block, other.page)->seq >= spare->seq) {
            continue;
        }
        rsd_map_add_content(map, spare->lpn);
        remember(map, unit, page, spare->lpn);
    }
    return true;
}

static bool fast_open(Ns *ns, char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;
    FastFtl *fast = rsd_alloc(drive, sizeof(*fast));

    ns->state = fast;
    if (!fast) {
        rsd_set_error(err, "no memory for a map");
        return false;
    }
    if (!rsd_map_init(&fast->map, ns, &fast_policy, err)) {
        return false;
    }
    fast->max_logs = log_units(ns) - 1;
    fast->page_of = rsd_alloc(drive, ns->geo.lbas * sizeof(uint32_t));
    /*
     * Recovery finds more if log-blocks was higher, and may take a data block
     * for one of the log; the first writes reclaim what is too many.
     */
    if (!fast->page_of || !grow_log(fast, fast->max_logs + 1)) {
        rsd_set_error(err, "no memory for the map of %llu pages: choose a "
                      "smaller drive", (ull)ns->geo.lbas);
        return false;
    }
    return rsd_map_recover(&fast->map, recover_log, err);
}

static void fast_close(Ns *ns)
{
    FastFtl *fast = ns->state;

    if (!fast) {
        return;
    }
    while (fast->log.oldest) {
        Unit *unit = fast->log.oldest;

        rsd_list_remove(&fast->log, unit);
        rsd_unit_free(&fast->map, unit);
    }
    rsd_release(ns->drive, fast->units, fast->num_units * sizeof(Unit *));
    rsd_release(ns->drive, fast->page_of, ns->geo.lbas * sizeof(uint32_t));
    rsd_release(ns->drive, fast->lpn_of,
                (size_t)fast->num_units * fast->map.span * sizeof(uint32_t));
    if (fast->map.ns) {
        rsd_map_fini(&fast->map);
    }
    rsd_release(ns->drive, fast, sizeof(*fast));
    ns->state = NULL;
}

const Personality rsd_ftl_fast = {
    .geometry = fast_geometry,
    .open = fast_open,
    .close = fast_close,
    RSD_MAP_CALLBACKS,
};
