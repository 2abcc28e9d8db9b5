/*
 * Opening a drive that maps whole blocks: the map is found in the OOB of the
 * pages, each of which names its LBA and has a sequence number.
 *
 * A block whose pages all are where they would be in a unit of a logical block
 * is one of a unit of it (or holds the same pages, which is as good). There may
 * be several for a logical block and lane: the process was killed between the
 * opening of a replacement block, or the beginning of a merge, and its end. Of
 * these, one is the newest: of the pages that both have, ignoring trimmed ones,
 * the first that differs has a higher number in it. If none differs, the longer
 * one is taken for the newest. It has the newest content as far as it goes: so
 * the merge is completed, by copying what the others have behind its end, and
 * the others are erased. If there was but a copy, it is undone by that.
 *
 * Other blocks are of the random log. A page in it is the newest if its number
 * is higher than those of the same LBA elsewhere.
 *
 * Lanes of a unit are completed with filler up to its last page: a write that
 * went over several dies was killed, and was not acknowledged.
 *
 * Torn pages have no content, as filler has none. But one may be where an older
 * block has content, which then has no place in the newer one. If what that has
 * is all elsewhere, as it is a copy, it is erased. Else the older one is given
 * to the random log (ftl=fast); or the logical block is copied to a third block
 * (ftl=block), when others have been completed: as a power cut tears pages of
 * but one block of a die, two more than the die has logical blocks are enough.
 *
 * Grains (block-map.h). Before all that, those are programmed that the write
 * buffer has kept whole. Of a begun one, what has been kept is as good as
 * programmed: it is, together with what others have of the rest of the grain.
 *
 * Being killed again: completing a unit makes it longer, in order, and blocks
 * are erased, after having been marked dirty, only when every unit is complete.
 * So it can be interrupted anywhere, and repeated. What is done here takes no
 * time of the drive's, but is counted.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>

#include "block-map.h"

typedef unsigned long long ull;

#define NO_SUCH_LBA "names an LBA that does not exist"

typedef enum Role {
    OUTSIDE,                    /* bad, or of another namespace */
    UNUSED,                     /* to be erased, if it is not */
    IN_PLACE,                   /* pages are where they are in a unit */
    SOURCE,                     /* the same: to be copied to a third block */
    NEWEST,                     /* of those, what is kept */
    LOG,
} Role;

typedef struct Recovery {
    BlockMap *map;
    uint32_t blocks;            /* of the drive */
    uint8_t *role;              /* by block */
    uint32_t *next;             /* by block: the logical block's next one */
    uint32_t *first;            /* by logical block, RSD_NONE: none */
    uint64_t *born;             /* by block: lowest sequence number in it */
    /* by LBA: age of its newest page in the random log; NULL: not looked for */
    uint64_t *logged;
    uint8_t *grain;             /* pages of one, with OOB */
    uint32_t num_logs;
    char *err;
} Recovery;

static uint32_t lane_of(const BlockMap *map, uint32_t block)
{
    return block / map->ns->drive->die_blocks % map->lanes;
}

static uint32_t programmed(const BlockMap *map, uint32_t block)
{
    return rsd_rec_next(map->ns->drive->media.rec[block]);
}

/* Pages of the block's next grain that the write buffer has */
static uint32_t begun(const BlockMap *map, uint32_t block)
{
    return rsd_buffer_has(map->ns->drive, block, programmed(map, block));
}

/* Both */
static uint32_t length(const BlockMap *map, uint32_t block)
{
    return programmed(map, block) + begun(map, block);
}

const RsdSpare *rsd_map_spare(const BlockMap *map, uint32_t block,
                              uint32_t page)
{
    const RsdDrive *drive = map->ns->drive;
    uint32_t next = programmed(map, block);
    const uint8_t *oob = page < next
        ? rsd_media_oob(&drive->media, block, page)
        : rsd_buffer_oob(drive, block, next, page - next);
    const RsdSpare *spare = (const RsdSpare *)(oob + RSD_SPARE_OFFSET);

    return spare->magic == RSD_SPARE_MAGIC ? spare : NULL;
}

/* 0 if the page has no content, else one more than its sequence number */
static uint64_t age(const BlockMap *map, uint32_t block, uint32_t page)
{
    const RsdSpare *spare;

    if (page >= length(map, block)) {
        return 0;
    }
    spare = rsd_map_spare(map, block, page);
    return spare ? spare->seq + 1 : 0;
}

static uint64_t lpn_at(const BlockMap *map, uint32_t lblock, uint32_t block,
                       uint32_t page)
{
    return (uint64_t)lblock * map->span +
           rsd_unit_page(map, lane_of(map, block), page);
}

/*
 * Looking
 */

static bool corrupt(const Recovery *r, uint32_t block, uint32_t page,
                    const char *what)
{
    const RsdDrive *drive = r->map->ns->drive;

    rsd_set_error(r->err, "the media file is corrupt: block %u of die %u, page "
                  "%u, %s; restore it from a copy, or remove it",
                  block % drive->die_blocks, block / drive->die_blocks, page,
                  what);
    return false;
}

/* What a programmed block is */
static bool look_at_pages(Recovery *r, uint32_t block)
{
    BlockMap *map = r->map;
    RsdDrive *drive = map->ns->drive;
    uint32_t group = block / drive->die_blocks / map->lanes;
    uint32_t lblock = RSD_NONE;
    bool in_place = true;

    for (uint32_t page = 0; page < length(map, block); page++) {
        const RsdSpare *spare = rsd_map_spare(map, block, page);

        if (!spare) {
            continue;
        }
        if (spare->lpn >= map->ns->geo.lbas) {
            return corrupt(r, block, page, NO_SUCH_LBA);
        }
        if (lblock == RSD_NONE) {
            lblock = spare->lpn / map->span;
            r->born[block] = spare->seq;
        }
        if (spare->seq < r->born[block]) {
            r->born[block] = spare->seq;
        }
        if (spare->seq >= drive->seq) {
            drive->seq = spare->seq + 1;
        }
        in_place &= spare->lpn == lpn_at(map, lblock, block, page) &&
                    rsd_map_group(map, lblock) == group;
    }
    if (lblock == RSD_NONE) {
        r->role[block] = UNUSED;
    } else if (in_place) {
        r->role[block] = IN_PLACE;
        r->next[block] = r->first[lblock];
        r->first[lblock] = block;
    } else {
        r->role[block] = LOG;
    }
    return true;
}

/* Of what rsd_buffer_settle() will program */
static bool verify_buffered(Recovery *r)
{
    const BlockMap *map = r->map;
    const RsdDrive *drive = map->ns->drive;

    for (uint32_t block = 0; drive->media.data && block < r->blocks; block++) {
        uint32_t page = programmed(map, block), n;

        while ((n = rsd_buffer_has(drive, block, page))) {
            for (uint32_t i = 0; i < n; i++) {
                const RsdSpare *spare = (const RsdSpare *)
                    (rsd_buffer_oob(drive, block, page, i) + RSD_SPARE_OFFSET);

                if (spare->magic == RSD_SPARE_MAGIC &&
                    spare->lpn >= map->ns->geo.lbas) {
                    return corrupt(r, block, page + i, NO_SUCH_LBA);
                }
            }
            page += map->grain;
        }
    }
    return true;
}

static bool look(Recovery *r)
{
    BlockMap *map = r->map;
    const RsdDrive *drive = map->ns->drive;

    for (uint32_t block = 0; block < r->blocks; block++) {
        uint64_t rec = drive->media.rec[block];
        uint32_t b = block % drive->die_blocks;

        if (b < map->ns->first || b >= map->ns->end ||
            rsd_rec_flags(rec) & RSD_BLOCK_BAD) {
            continue;
        }
        if (rsd_rec_next(rec) > drive->pages) {
            return corrupt(r, block, rsd_rec_next(rec), "is programmed, but a "
                           "block has fewer pages");
        }
        r->role[block] = UNUSED;
        if (length(map, block) && !(rsd_rec_flags(rec) & RSD_BLOCK_DIRTY) &&
            !look_at_pages(r, block)) {
            return false;
        }
    }
    return true;
}

/* Of two blocks of a logical block and lane: is a newer? */
static bool newer(const BlockMap *map, uint32_t lblock, uint32_t a, uint32_t b)
{
    uint32_t len_a = length(map, a), len_b = length(map, b);

    for (uint32_t page = 0; page < len_a && page < len_b; page++) {
        uint64_t age_a = age(map, a, page), age_b = age(map, b, page);

        if (age_a != age_b &&
            !rsd_map_trimmed(map, lpn_at(map, lblock, a, page))) {
            return age_a > age_b;
        }
    }
    return len_a != len_b ? len_a > len_b : a < b;
}

/* Has a block a page that is newer than the one in the newest block? */
static bool contradicts(const BlockMap *map, uint32_t lblock, uint32_t block,
                        uint32_t newest)
{
    uint32_t len = length(map, newest);

    for (uint32_t page = 0; page < len; page++) {
        if (age(map, block, page) > age(map, newest, page) &&
            !rsd_map_trimmed(map, lpn_at(map, lblock, block, page))) {
            return true;
        }
    }
    return false;
}

static bool is_torn_block(const BlockMap *map, uint32_t block)
{
    return rsd_rec_flags(map->ns->drive->media.rec[block]) & RSD_BLOCK_TORN;
}

static bool has_content(const BlockMap *map, uint32_t lblock, uint32_t block)
{
    for (uint32_t page = 0; page < length(map, block); page++) {
        if (age(map, block, page) &&
            !rsd_map_trimmed(map, lpn_at(map, lblock, block, page))) {
            return true;
        }
    }
    return false;
}

/* Where a page behind the end of the newest block is, or RSD_NONE */
static uint32_t find_older(const Recovery *r, uint32_t lblock, uint32_t newest,
                           uint32_t page)
{
    const BlockMap *map = r->map;
    uint32_t best = RSD_NONE;

    if (rsd_map_trimmed(map, lpn_at(map, lblock, newest, page))) {
        return RSD_NONE;
    }
    for (uint32_t b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        uint64_t found = best == RSD_NONE ? 0 : age(map, best, page);

        if ((r->role[b] == IN_PLACE || r->role[b] == SOURCE) &&
            age(map, b, page) > found &&
            lane_of(map, b) == lane_of(map, newest)) {
            best = b;
        }
    }
    return best;
}

/* Has a block a torn page where another one has content? */
static bool is_broken(const Recovery *r, uint32_t lblock, uint32_t block)
{
    const RsdMedia *media = &r->map->ns->drive->media;

    if (!is_torn_block(r->map, block)) {
        return false;
    }
    for (uint32_t page = 0; page < programmed(r->map, block); page++) {
        if (rsd_nand_is_torn(media, block, page) &&
            find_older(r, lblock, block, page) != RSD_NONE) {
            return true;
        }
    }
    return false;
}

/* Finds out what the random log has. False: no memory */
static bool look_at_logs(Recovery *r)
{
    const BlockMap *map = r->map;

    if (r->logged) {
        return true;
    }
    r->logged = rsd_alloc(map->ns->drive, map->ns->geo.lbas *
                                          sizeof(*r->logged));
    for (uint32_t b = 0; r->logged && b < r->blocks; b++) {
        for (uint32_t p = 0; r->role[b] == LOG && p < length(map, b); p++) {
            const RsdSpare *spare = rsd_map_spare(map, b, p);

            if (spare && spare->seq >= r->logged[spare->lpn]) {
                r->logged[spare->lpn] = spare->seq + 1;
            }
        }
    }
    return r->logged;
}

/* Is all content of a block elsewhere, too, as it is or newer? */
static bool is_redundant(const Recovery *r, uint32_t lblock, uint32_t block)
{
    const BlockMap *map = r->map;

    for (uint32_t page = 0; page < length(map, block); page++) {
        uint64_t own = age(map, block, page);
        uint64_t lpn = lpn_at(map, lblock, block, page);
        bool found = !own || rsd_map_trimmed(map, lpn) || r->logged[lpn] >= own;

        for (uint32_t b = r->first[lblock]; b != RSD_NONE && !found;
             b = r->next[b]) {
            found = b != block &&
                    (r->role[b] == IN_PLACE || r->role[b] == SOURCE) &&
                    lane_of(map, b) == lane_of(map, block) &&
                    age(map, b, page) >= own;
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* Copies whose program was torn are undone. False: no memory */
static bool drop_broken_copies(Recovery *r, uint32_t lblock)
{
    for (uint32_t b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        if (!is_torn_block(r->map, b)) {
            continue;
        }
        if (!look_at_logs(r)) {
            return false;
        }
        if (is_broken(r, lblock, b) && is_redundant(r, lblock, b)) {
            r->role[b] = UNUSED;
        }
    }
    return true;
}

/* Of each lane, the newest block; without a random log, of those not broken */
static void choose_newest(const Recovery *r, uint32_t lblock, Unit *unit,
                          bool random_log)
{
    const BlockMap *map = r->map;

    for (uint32_t b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        uint32_t *newest = &unit->lane[lane_of(map, b)].block;

        if (r->role[b] == IN_PLACE &&
            (random_log || !is_broken(r, lblock, b)) &&
            (*newest == RSD_NONE || newer(map, lblock, b, *newest))) {
            *newest = b;
        }
    }
}

/*
 * Of a lane, the newest block is chosen: what becomes of the others? A third
 * block is needed, with ftl=block, if a broken one has newer content.
 */
static void judge_lane(Recovery *r, uint32_t lblock, uint32_t lane,
                       uint32_t *newest, bool random_log)
{
    const BlockMap *map = r->map;
    bool rebuild = false;

    for (uint32_t b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        if (lane_of(map, b) != lane || r->role[b] == UNUSED) {
            continue;
        }
        if (b == *newest) {
            r->role[b] = NEWEST;
        } else if (*newest == RSD_NONE || contradicts(map, lblock, b,
                                                      *newest)) {
            rebuild |= !random_log && is_torn_block(map, b);
            r->role[b] = LOG;
        }
    }
    if (!rebuild) {
        return;
    }
    for (uint32_t b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        if (lane_of(map, b) == lane && r->role[b] != UNUSED) {
            r->role[b] = SOURCE;
        }
    }
    /* one may be a third block, the copying to which was killed */
    for (uint32_t b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        if (lane_of(map, b) == lane && r->role[b] == SOURCE &&
            is_redundant(r, lblock, b)) {
            r->role[b] = UNUSED;
        }
    }
    *newest = RSD_NONE;
}

/* Chooses the newest block of each lane: the logical block's data unit. */
static bool choose(Recovery *r, uint32_t lblock, bool random_log)
{
    BlockMap *map = r->map;
    bool content = false;
    Unit *unit;

    for (uint32_t b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        content |= has_content(map, lblock, b);
    }
    if (!content) {
        for (uint32_t b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
            r->role[b] = UNUSED;
        }
        r->first[lblock] = RSD_NONE;
        return true;
    }
    unit = rsd_unit_new(map, lblock);
    if (!unit || !drop_broken_copies(r, lblock)) {
        rsd_unit_free(map, unit);
        rsd_set_error(r->err, "no memory for the map of the drive");
        return false;
    }
    map->lblocks[lblock].data = unit;
    unit->group = rsd_map_group(map, lblock);
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        unit->lane[lane].block = RSD_NONE;
    }
    choose_newest(r, lblock, unit, random_log);
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        judge_lane(r, lblock, lane, &unit->lane[lane].block, random_log);
    }
    return true;
}

/*
 * Completing
 */

/* Space on the host's disk for what will be programmed in blocks in use */
static bool reserve_space(const Recovery *r)
{
    BlockMap *map = r->map;

    for (uint32_t b = 0; b < r->blocks; b++) {
        int ret = 0;

        if (r->role[b] > UNUSED &&
            programmed(map, b) < map->ns->drive->pages) {
            ret = rsd_media_reserve(&map->ns->drive->media, b);
        }
        if (ret) {
            rsd_set_error(r->err, "no space on the host's disk for blocks that "
                          "are partly written (%s): free some",
                          strerror(-ret));
            return false;
        }
    }
    return true;
}

/* Programs a block's next grain; slots: NULL for zeroes. */
static void program_grain(BlockMap *map, uint32_t block, const uint8_t *slots)
{
    RsdDrive *drive = map->ns->drive;

    rsd_nand_program_unit(&drive->media, block, programmed(map, block),
                          map->grain, slots);
    drive->count->nand_programs += map->grain / drive->sched.page;
}

static void add_filler(BlockMap *map, uint32_t block, uint32_t until)
{
    while (programmed(map, block) < until) {
        program_grain(map, block, NULL);
        map->ns->drive->count->prog_pad += map->grain;
    }
}

/*
 * Programs the newest block's next grain: what the buffer has of it, then what
 * others have. Pages copied from these
 */
static uint32_t copy_grain(const Recovery *r, uint32_t lblock, uint32_t newest)
{
    RsdDrive *drive = r->map->ns->drive;
    uint32_t first = programmed(r->map, newest), copies = 0;
    uint32_t had = begun(r->map, newest);
    size_t slot = RSD_PAGE_SIZE + RSD_OOB_SIZE;

    memset(r->grain, 0, r->map->grain * slot);
    for (uint32_t i = 0; i < r->map->grain; i++) {
        uint32_t from = i < had ? newest
                                : find_older(r, lblock, newest, first + i);
        uint8_t *to = r->grain + i * slot;

        if (from == RSD_NONE ||
            rsd_buffer_read_page(drive, from, first + i, to)) {
            copies += from != RSD_NONE && i >= had;
            continue;
        }
        rsd_nand_read(&drive->media, from, first + i, to, to + RSD_PAGE_SIZE,
                      RSD_OOB_SIZE);
        drive->count->read_merge++;
        drive->count->nand_reads++;
        copies++;
    }
    program_grain(r->map, newest, r->grain);
    rsd_buffer_forget(drive, newest, first);
    drive->count->prog_host += had;
    drive->count->prog_merge += copies;
    drive->count->prog_pad += r->map->grain - had - copies;
    return copies;
}

/* Copies what others have behind the end of the newest block. Pages copied */
static uint64_t complete(const Recovery *r, uint32_t lblock, uint32_t newest)
{
    uint32_t end = r->map->ns->drive->pages;
    uint64_t copies = 0;

    while (end > length(r->map, newest) &&
           find_older(r, lblock, newest, end - 1) == RSD_NONE) {
        end--;
    }
    while (programmed(r->map, newest) < end) {
        copies += copy_grain(r, lblock, newest);
    }
    return copies;
}

static void complete_unit(const Recovery *r, uint32_t lblock)
{
    BlockMap *map = r->map;
    RsdCounters *count = map->ns->drive->count;
    const Unit *unit = map->lblocks[lblock].data;
    uint64_t copies = 0;
    bool replaced = false;

    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        if (unit->lane[lane].block != RSD_NONE) {
            copies += complete(r, lblock, unit->lane[lane].block);
        }
    }
    for (uint32_t b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        uint32_t newest = unit->lane[lane_of(map, b)].block;

        replaced |= r->role[b] == IN_PLACE &&
                    contradicts(map, lblock, newest, b);
    }
    if (replaced) {
        ++*(copies ? &count->merge_partial : &count->merge_switch);
    }
}

/* Nothing of it is wanted; it is marked dirty, if it has to be erased. */
static void erase_block(const Recovery *r, uint32_t block)
{
    const BlockMap *map = r->map;
    RsdDrive *drive = map->ns->drive;

    rsd_buffer_forget(drive, block, programmed(map, block));
    if (programmed(map, block)) {
        rsd_nand_erase(&drive->media, block);
        drive->count->erase_merge++;
        drive->count->erase_on_demand++;
        rsd_media_release(&drive->media, block);
    }
    if (!(rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_BAD) &&
        rsd_rec_flags(drive->media.rec[block])) {
        rsd_nand_mark(&drive->media, block, 0);
    }
}

/* Erases what is unused and gives it to the pools. */
static void free_unused(const Recovery *r)
{
    BlockMap *map = r->map;
    RsdDrive *drive = map->ns->drive;

    for (uint32_t b = 0; b < r->blocks; b++) {
        drive->blocks[b].owner = RSD_NONE;
        drive->blocks[b].pos = RSD_NONE;
        if ((r->role[b] == UNUSED || r->role[b] == IN_PLACE) &&
            length(map, b)) {
            rsd_nand_mark(&drive->media, b, RSD_BLOCK_DIRTY);
        }
    }
    for (uint32_t b = 0; b < r->blocks; b++) {
        if (r->role[b] != UNUSED && r->role[b] != IN_PLACE) {
            continue;
        }
        erase_block(r, b);
        if (!(rsd_rec_flags(drive->media.rec[b]) & RSD_BLOCK_BAD)) {
            drive->blocks[b].pos = 0;       /* for rsd_pool_fill() */
        }
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_pool_fill(drive, &map->pools[d], d);
    }
}

/* A block for a lane that has none: nothing of it was programmed. */
static bool add_lane(const Recovery *r, Unit *unit, uint32_t lane)
{
    BlockMap *map = r->map;
    RsdDrive *drive = map->ns->drive;
    uint32_t die = unit->group * map->lanes + lane;
    Pool *pool = &map->pools[die];
    uint32_t block;
    int ret;

    if (!pool->len) {
        rsd_set_error(r->err, "no good flash block is left in channel %llu way "
                      "%llu to complete a write that was interrupted; restore "
                      "the media file from a copy",
                      (ull)(die % drive->cfg.channels),
                      (ull)(die / drive->cfg.channels));
        return false;
    }
    block = die * drive->die_blocks + pool->heap[0];
    ret = rsd_media_reserve(&drive->media, block);
    if (ret) {
        rsd_set_error(r->err, "no space on the host's disk for blocks that are "
                      "partly written (%s): free some", strerror(-ret));
        return false;
    }
    rsd_pool_remove(drive, pool, block);
    unit->lane[lane].block = block;
    return true;
}

static bool is_source(const Recovery *r, uint32_t block, uint32_t lane)
{
    return r->role[block] == SOURCE && lane_of(r->map, block) == lane;
}

/* Copies what a lane has to a third block, if it has to be. */
static bool rebuild(const Recovery *r, uint32_t lblock, uint32_t lane)
{
    BlockMap *map = r->map;
    RsdDrive *drive = map->ns->drive;
    Unit *unit = map->lblocks[lblock].data;
    uint32_t b = r->first[lblock];

    while (b != RSD_NONE && !is_source(r, b, lane)) {
        b = r->next[b];
    }
    if (b == RSD_NONE) {
        return true;
    }
    if (!add_lane(r, unit, lane)) {
        return false;
    }
    complete(r, lblock, unit->lane[lane].block);
    drive->count->merge_full++;
    for (b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        if (is_source(r, b, lane)) {
            rsd_nand_mark(&drive->media, b, RSD_BLOCK_DIRTY);
        }
    }
    for (b = r->first[lblock]; b != RSD_NONE; b = r->next[b]) {
        if (is_source(r, b, lane)) {
            erase_block(r, b);
            if (!(rsd_rec_flags(drive->media.rec[b]) & RSD_BLOCK_BAD)) {
                rsd_pool_insert(drive, &map->pools[b / drive->die_blocks], b);
            }
        }
    }
    return true;
}

/* Makes lanes equally long, and learns what the unit holds. */
static bool settle_unit(const Recovery *r, uint32_t lblock)
{
    BlockMap *map = r->map;
    Unit *unit = map->lblocks[lblock].data;

    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        uint32_t block = unit->lane[lane].block, len = 0;

        if (block != RSD_NONE) {
            len = rsd_unit_page(map, lane, programmed(map, block) - 1) + 1;
        }
        unit->next = len > unit->next ? len : unit->next;
    }
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        Lane *l = &unit->lane[lane];

        if (l->block == RSD_NONE && !add_lane(r, unit, lane)) {
            return false;
        }
        l->next = (unit->next / map->grain + map->lanes - 1 - lane) /
                  map->lanes * map->grain;
        add_filler(map, l->block, l->next);
        map->owner[l->block] = unit;
    }
    for (uint32_t page = 0; page < unit->next; page++) {
        uint64_t lpn = (uint64_t)lblock * map->span + page;
        Place place = rsd_unit_place(map, unit, page);

        if (!rsd_map_trimmed(map, lpn) &&
            rsd_map_spare(map, place.block, place.page)) {
            rsd_map_add_content(map, lpn);
        }
    }
    return true;
}

/*
 * The random log
 */

typedef struct LogBlock {
    uint32_t block;
    uint64_t born;
} LogBlock;

static int compare_age(const void *a, const void *b)
{
    const LogBlock *x = a, *y = b;

    if (x->born != y->born) {
        return x->born < y->born ? -1 : 1;
    }
    return x->block < y->block ? -1 : x->block > y->block;
}

/* The oldest log block from n on that is of a lane, or the number of them */
static uint32_t next_of_lane(const Recovery *r, const LogBlock *logs,
                             uint32_t n, uint32_t lane)
{
    while (n < r->num_logs && (logs[n].block == RSD_NONE ||
                               lane_of(r->map, logs[n].block) != lane)) {
        n++;
    }
    return n;
}

/*
 * Makes units of log blocks. Which of them were a unit is of no matter; one may
 * lack lanes.
 */
static bool add_logs(const Recovery *r, LogBlock *logs,
                     bool (*add)(BlockMap *map, Unit *unit))
{
    BlockMap *map = r->map;

    for (uint32_t n = 0; n < r->num_logs; n++) {
        Unit *unit;

        if (logs[n].block == RSD_NONE) {
            continue;
        }
        unit = rsd_unit_new(map, RSD_NONE);
        if (!unit) {
            rsd_set_error(r->err, "no memory for the map of the drive");
            return false;
        }
        unit->group = logs[n].block / map->ns->drive->die_blocks / map->lanes;
        for (uint32_t lane = 0; lane < map->lanes; lane++) {
            uint32_t i = next_of_lane(r, logs, n, lane);

            unit->lane[lane].block = RSD_NONE;
            if (i < r->num_logs) {
                unit->lane[lane].block = logs[i].block;
                unit->lane[lane].next = programmed(map, logs[i].block);
                unit->next += unit->lane[lane].next;
                map->owner[logs[i].block] = unit;
                if (i != n) {
                    logs[i].block = RSD_NONE;
                }
            }
        }
        if (map->lanes > 1) {
            unit->next = map->span;     /* there may be gaps */
        }
        if (!add(map, unit)) {
            rsd_set_error(r->err, "no memory for the map of the drive");
            return false;
        }
    }
    return true;
}

static bool recover_logs(Recovery *r, bool (*add)(BlockMap *map, Unit *unit))
{
    RsdDrive *drive = r->map->ns->drive;
    size_t size = r->num_logs * sizeof(LogBlock);
    LogBlock *logs = rsd_alloc(drive, size);
    uint32_t n = 0;
    bool ok;

    if (!logs) {
        rsd_set_error(r->err, "no memory for the map of the drive");
        return false;
    }
    for (uint32_t b = 0; b < r->blocks; b++) {
        if (r->role[b] == LOG) {
            if (begun(r->map, b)) {
                rsd_buffer_restore(r->map->ns, b, programmed(r->map, b));
            }
            logs[n++] = (LogBlock){ b, r->born[b] };
        }
    }
    qsort(logs, n, sizeof(*logs), compare_age);
    ok = add_logs(r, logs, add);
    rsd_release(drive, logs, size);
    return ok;
}

static bool recover(Recovery *r, bool (*log)(BlockMap *map, Unit *unit))
{
    BlockMap *map = r->map;

    for (uint32_t l = 0; l < map->num_lblocks; l++) {
        if (r->first[l] != RSD_NONE && !choose(r, l, log)) {
            return false;
        }
    }
    for (uint32_t b = 0; b < r->blocks; b++) {
        r->num_logs += r->role[b] == LOG;
        if (r->role[b] == LOG && !log) {
            return corrupt(r, b, 0, "is not where ftl=block would have put it");
        }
    }
    if (!reserve_space(r)) {
        return false;
    }
    /* nothing was changed so far, and what follows can be repeated */
    for (uint32_t l = 0; l < map->num_lblocks; l++) {
        if (map->lblocks[l].data) {
            complete_unit(r, l);
        }
    }
    free_unused(r);
    for (uint32_t l = 0; l < map->num_lblocks; l++) {
        for (uint32_t lane = 0; map->lblocks[l].data && lane < map->lanes;
             lane++) {
            if (!rebuild(r, l, lane)) {
                return false;
            }
        }
    }
    for (uint32_t l = 0; l < map->num_lblocks; l++) {
        if (map->lblocks[l].data && !settle_unit(r, l)) {
            return false;
        }
    }
    return !r->num_logs || recover_logs(r, log);
}

/* With ftl=block, a die's logical blocks may need a third block: see above. */
bool rsd_map_can_tear(const Ns *ns, uint32_t block)
{
    uint32_t group = block / ns->drive->die_blocks %
                     rsd_map_groups(ns);

    return rsd_map_good_units(ns, group, false) >=
           rsd_map_logical(ns, group) + 2;
}

bool rsd_map_recover(BlockMap *map, bool (*log)(BlockMap *map, Unit *unit),
                     char err[RSD_ERR_LEN])
{
    RsdDrive *drive = map->ns->drive;
    uint32_t blocks = drive->dies * drive->die_blocks;
    size_t grain = map->grain * (size_t)(RSD_PAGE_SIZE + RSD_OOB_SIZE);
    Recovery r = {
        .map = map,
        .blocks = blocks,
        .role = rsd_alloc(drive, blocks),
        .next = rsd_alloc(drive, blocks * sizeof(uint32_t)),
        .first = rsd_alloc(drive, map->num_lblocks * sizeof(uint32_t)),
        .born = rsd_alloc(drive, blocks * sizeof(uint64_t)),
        .grain = rsd_alloc(drive, grain),
        .err = err,
    };
    bool ok = r.role && r.next && r.first && r.born && r.grain;

    if (ok) {
        memset(r.first, 0xff, map->num_lblocks * sizeof(uint32_t));
        ok = verify_buffered(&r);
        if (ok) {
            rsd_buffer_settle(map->ns);
            ok = look(&r) && recover(&r, log);
        }
    } else {
        rsd_set_error(err, "no memory to find what is on the drive");
    }
    rsd_release(drive, r.role, blocks);
    rsd_release(drive, r.next, blocks * sizeof(uint32_t));
    rsd_release(drive, r.first, map->num_lblocks * sizeof(uint32_t));
    rsd_release(drive, r.born, blocks * sizeof(uint64_t));
    rsd_release(drive, r.grain, grain);
    rsd_release(drive, r.logged, map->ns->geo.lbas * sizeof(*r.logged));
    return ok;
}
