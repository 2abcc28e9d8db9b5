/*
 * Collection: what is valid in a block is copied, then the block is erased.
 *
 * Collection. When a frontier has fewer free blocks than gc-trigger says, a
 * victim is chosen among its full blocks and what is valid in it is copied to
 * the frontier. There copies fill a block of their own (gc-frontiers=own): what
 * has outlived a block is colder than what the host writes, and the two kept
 * apart cost fewer copies the more the host's writes are skewed (Van Houdt, "On
 * the necessity of hot and cold data identification", 2014). With
 * gc-frontiers=shared they go to the block that the host's pages go to.
 *
 *   greedy        the block with the fewest valid pages
 *   cost-benefit  the highest age * (1 - u) / 2u, u being the part that is
 *                 valid, age the pages written since one became invalid last
 *                 (Kawaguchi et al., "A flash-memory based file system", 1995)
 *   fifo          the block that was filled first
 *
 * Blocks are in lists by their number of valid pages, and a list is in order of
 * age, because a block joins its end when a page becomes invalid: the choice
 * looks at no more than one block a list. With gc-unit=all one block of every
 * die is collected at a time (RISA 4.1), with gc-unit=block one a frontier.
 *
 * A victim whose copies, with the filler of their last unit, would take a whole
 * block frees nothing, and while too few blocks are free, another one would
 * follow it without end. It is not collected unless a write waits for pages.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "page-ftl.h"

/*
 * Copies of a victim in flight: page buffers of the controller. Of larger rows
 * there are buffers for two, so that a die reads one while it sends the other.
 */
#define COPIES 8u

void rsd_page_begin_victim(PageFtl *ftl, uint32_t block, RsdCause cause,
                           bool idle)
{
    uint32_t die = die_of(ftl, block);
    PageBlock *pb = &ftl->blocks[block];
    PageDie *pd = &ftl->dies[die];
    Frontier *f = frontier_of(ftl, die), *to = rsd_page_taker(ftl, block);
    uint32_t *moved = pd->victim.moved;

    rsd_page_unlink_full(ftl, block);
    pd->stale -= ftl->drive->pages - pb->valid;
    pb->state = BLOCK_VICTIM;
    pd->victim = (Victim){
        .block = block,
        .end = rsd_rec_next(ftl->drive->media.rec[block]),
        .to = to - ftl->frontiers,
        .owed = pb->map || (cause == RSD_CAUSE_WEAR &&
                            rsd_page_worn_holds(ftl, block))
                    ? 0 : rsd_page_owed(ftl, pb),
        .moved = moved,
        .cause = pb->map ? RSD_CAUSE_MAP : cause,
        .idle = idle,
    };
    to->owed += pd->victim.owed;
    f->victims++;
    ftl->victims++;
    /* which pages are valid is all over the map, and asked one by one */
    for (uint32_t page = 0; !pb->map && page < pd->victim.end; page++) {
        uint32_t lpn = ftl->p2l[page_number(ftl, block, page)];

        __builtin_prefetch(map_entry(ftl, lpn));
    }
    rsd_page_advance_victim(ftl, die);
}

/* Is the page what its logical page is mapped to? It must be programmed. */
static bool is_current(const PageFtl *ftl, uint32_t number)
{
    if (ftl->blocks[block_of(ftl, number)].map) {
        return rsd_cache_is_current(ftl, number);
    }
    return *map_entry(ftl, ftl->p2l[number]) == number + 1;
}

/*
 * A map of gigabytes is in no cache of the host: it is asked for the entry of a
 * victim's page so many pages before their turn.
 */
#define AHEAD 4u

/*
 * All pages of a victim are read and given away again. If it is not the host's
 * that follow them in their unit, that is filled up.
 */
static void end_copying(PageFtl *ftl, PageDie *pd)
{
    if (pd->victim.cause == RSD_CAUSE_WEAR) {
        rsd_page_fill_unit(ftl, pd->worn, &pd->worn_page);
    }
    if (pd->victim.cause == RSD_CAUSE_MAP) {
        rsd_page_fill_map_units(ftl);
    } else if (ftl->own &&
               (pd->victim.cause == RSD_CAUSE_CLEAN || pd->victim.owed)) {
        Frontier *f = &ftl->frontiers[pd->victim.to];

        rsd_page_fill_open(ftl, f, &f->copies);
    }
}

/* The slot behind the row that a victim's next page is in */
static uint32_t end_of_row(const PageFtl *ftl, const Victim *v)
{
    uint32_t end = rsd_row_of(ftl->drive, v->page) + ftl->drive->sched.row;

    return end < v->end ? end : v->end;
}

/* What of a victim's row, from its next page on, is to be copied: a bit each */
static uint32_t current_of_row(const PageFtl *ftl, const Victim *v)
{
    uint32_t row = rsd_row_of(ftl->drive, v->page), wanted = 0;

    for (uint32_t page = v->page; page < end_of_row(ftl, v); page++) {
        uint32_t number = page_number(ftl, v->block, page);

        if (page + AHEAD < v->end) {
            __builtin_prefetch(map_entry(ftl, ftl->p2l[number + AHEAD]), 1);
        }
        wanted |= (uint32_t)is_current(ftl, number) << (page - row);
    }
    return wanted;
}

/* May as much of a victim be read as a row has? */
static bool has_buffers(const PageFtl *ftl, const Victim *v)
{
    uint32_t row = ftl->drive->sched.row;

    return v->copying + row <= (COPIES > 2 * row ? COPIES : 2 * row);
}

void rsd_page_advance_victim(PageFtl *ftl, uint32_t die)
{
    RsdDrive *drive = ftl->drive;
    Victim *v = &ftl->dies[die].victim;
    Op *op;

    v->stalled = drive->failed;
    if (drive->failed) {
        return;
    }
    while (ftl->blocks[v->block].valid && has_buffers(ftl, v) &&
           v->page < v->end) {
        uint32_t wanted = current_of_row(ftl, v);
        uint8_t *buf = NULL;

        if (wanted && drive->media.data) {
            buf = rsd_buf_new(drive);
        }
        if (wanted &&
            (!rsd_op_reserve(drive, 1) || (drive->media.data && !buf))) {
            rsd_buf_free(drive, buf);
            v->stalled = true;
            return;
        }
        if (wanted) {
            rsd_queue_row_read(ftl->ns, v->cause, v->block,
                               rsd_row_of(drive, v->page), wanted, buf, NULL,
                               0);
            v->copying += __builtin_popcount(wanted);
            ftl->in_flight++;
        }
        v->page = end_of_row(ftl, v);
    }
    if (ftl->blocks[v->block].valid) {
        if (!v->copying && v->page == v->end) {
            end_copying(ftl, &ftl->dies[die]);
        }
        return;
    }
    if (v->erasing || (ftl->cache && !rsd_cache_settle(ftl, die))) {
        return;
    }
    if (!rsd_op_reserve(drive, 1)) {
        v->stalled = true;
        return;
    }
    v->erasing = true;
    drive->blocks[v->block].erases++;
    ftl->in_flight++;
    op = rsd_queue_erase(ftl->ns, v->cause, v->block);
    op->background = v->idle;
}

/* Of a die's full blocks, by greedy choice */
static uint32_t least_valid(PageFtl *ftl, PageDie *pd)
{
    uint32_t least, block;

    if (ftl->drive->cfg.gc_policy != RSD_GC_FIFO) {
        while (pd->lowest <= ftl->drive->pages &&
               pd->lists[pd->lowest] == RSD_NONE) {
            pd->lowest++;
        }
        return pd->lowest <= ftl->drive->pages ? pd->lists[pd->lowest]
                                               : RSD_NONE;
    }
    least = block = pd->lists[0];
    if (block == RSD_NONE) {
        return RSD_NONE;
    }
    while ((block = ftl->blocks[block].next) != pd->lists[0]) {
        if (ftl->blocks[block].valid < ftl->blocks[least].valid) {
            least = block;
        }
    }
    return least;
}

/* Is a better than b, by cost and benefit? */
static bool more_benefit(const PageFtl *ftl, uint32_t a, uint32_t b)
{
    const PageBlock *pa = &ftl->blocks[a], *pb = &ftl->blocks[b];
    uint32_t pages = ftl->drive->pages;
    unsigned __int128 benefit_a = (pages - pa->valid) * (unsigned __int128)
                                  (ftl->drive->seq - pa->stamp);
    unsigned __int128 benefit_b = (pages - pb->valid) * (unsigned __int128)
                                  (ftl->drive->seq - pb->stamp);

    return benefit_a * pb->valid > benefit_b * pa->valid;
}

static uint32_t most_benefit(const PageFtl *ftl, const PageDie *pd)
{
    uint32_t best = pd->lists[0];

    if (best != RSD_NONE) {
        return best;            /* it costs nothing */
    }
    for (uint32_t valid = 1; valid < ftl->drive->pages; valid++) {
        uint32_t block = pd->lists[valid];

        if (block != RSD_NONE &&
            (best == RSD_NONE || more_benefit(ftl, block, best))) {
            best = block;
        }
    }
    return best;
}

/* The better one of two blocks that their dies would choose */
static uint32_t better(const PageFtl *ftl, uint32_t a, uint32_t b)
{
    const PageBlock *blocks = ftl->blocks;
    bool second = false;

    if (a == RSD_NONE || b == RSD_NONE) {
        return a == RSD_NONE ? b : a;
    }
    switch (ftl->drive->cfg.gc_policy) {
    case RSD_GC_GREEDY:
        second = blocks[b].valid < blocks[a].valid ||
                 (blocks[b].valid == blocks[a].valid &&
                  blocks[b].stamp < blocks[a].stamp);
        break;
    case RSD_GC_COST_BENEFIT:
        second = more_benefit(ftl, b, a);
        break;
    case RSD_GC_FIFO:
        second = blocks[b].stamp < blocks[a].stamp;
        break;
    }
    return second ? b : a;
}

/*
 * With a cache: does a collection free more pages than its copies, the map's
 * updates and filler take? One that does not would call for the next without
 * end.
 */
static bool gains(const PageFtl *ftl, uint32_t block)
{
    uint64_t valid = ftl->blocks[block].valid +
                     rsd_page_reserve_filler(ftl->ns);
    uint64_t pages = ftl->drive->pages;

    return valid < pages && valid + rsd_cache_updates(ftl, block) < pages;
}

/* What a die would collect, or RSD_NONE */
static uint32_t choose(PageFtl *ftl, uint32_t die)
{
    const RsdDrive *drive = ftl->drive;
    PageDie *pd = &ftl->dies[die];
    const Frontier *f = frontier_of(ftl, die);
    uint32_t block = RSD_NONE;

    if (pd->victim.block != RSD_NONE || !pd->stale) {
        return RSD_NONE;
    }
    switch (drive->cfg.gc_policy) {
    case RSD_GC_GREEDY:
        break;
    case RSD_GC_COST_BENEFIT:
        block = most_benefit(ftl, pd);
        break;
    case RSD_GC_FIFO:
        block = pd->lists[0];
        break;
    }
    /*
     * After a crash in the middle of a collection there may be less room. With
     * a cache, a victim costs map pages, too, and the first in or the oldest
     * may cost more than it gives. The first in is not even chosen if it gives
     * something while the host waits: others having been chosen before it, it
     * would be as soon as it gives next to nothing.
     */
    if (block == RSD_NONE || !rsd_page_fits(ftl, f, block) ||
        (ftl->cache && (!gains(ftl, block) ||
                        (drive->cfg.gc_policy == RSD_GC_FIFO &&
                         !rsd_page_has_room(ftl, f))))) {
        block = least_valid(ftl, pd);
    }
    /* it would take a whole block, with filler: only if a write waits */
    if (!ftl->cache && drive->unit > 1 && !ftl->no_room && block != RSD_NONE &&
        rsd_page_owed(ftl, &ftl->blocks[block]) >= drive->pages) {
        return RSD_NONE;
    }
    /* what gives nothing is collected only if the host waits */
    if (ftl->cache && rsd_page_has_room(ftl, f) && block != RSD_NONE &&
        !gains(ftl, block)) {
        return RSD_NONE;
    }
    return block != RSD_NONE &&
           rsd_page_fits(ftl, rsd_page_taker(ftl, block), block)
               ? block : RSD_NONE;
}

/* One block of every die (RISA 4.1) */
static void collect_all(PageFtl *ftl)
{
    if (ftl->victims) {
        return;
    }
    for (uint32_t die = 0; die < ftl->drive->dies; die++) {
        uint32_t block = choose(ftl, die);

        if (block != RSD_NONE) {
            rsd_page_begin_victim(ftl, block, RSD_CAUSE_CLEAN, false);
        }
    }
}

void rsd_page_collect(PageFtl *ftl, Frontier *f)
{
    uint32_t block = RSD_NONE;

    if (ftl->drive->failed) {
        return;
    }
    if (ftl->drive->cfg.gc_unit == RSD_GC_UNIT_ALL) {
        if (f->free < rsd_page_least_low(ftl->ns) || ftl->free < ftl->low) {
            collect_all(ftl);
        }
        return;
    }
    if (f->victims || f->free >= f->low) {
        return;
    }
    for (uint32_t die = f - ftl->frontiers; die < ftl->drive->dies;
         die += ftl->num_frontiers) {
        block = better(ftl, block, choose(ftl, die));
    }
    if (block != RSD_NONE) {
        rsd_page_begin_victim(ftl, block, RSD_CAUSE_CLEAN, false);
    }
}

void rsd_page_retry_stalled(PageFtl *ftl)
{
    if (ftl->drive->failed) {
        return;
    }
    if (ftl->cache) {
        rsd_cache_retry(ftl);
    }
    for (uint32_t die = 0; die < ftl->drive->dies; die++) {
        if (ftl->dies[die].victim.stalled) {
            rsd_page_advance_victim(ftl, die);
        }
    }
}

void rsd_page_collect_everywhere(PageFtl *ftl)
{
    rsd_page_retry_stalled(ftl);
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        rsd_page_collect(ftl, &ftl->frontiers[i]);
    }
}

/* Queues the program of a copy. False: the host lacks space for it. */
static bool program_copy(PageFtl *ftl, Victim *v, uint32_t page, uint8_t *buf)
{
    PageDie *pd = &ftl->dies[die_of(ftl, v->block)];
    Frontier *f = &ftl->frontiers[v->to];
    uint32_t pages = ftl->drive->pages, number, lpn;

    if (v->cause == RSD_CAUSE_MAP) {
        return rsd_cache_copy(ftl, page_number(ftl, v->block, page), buf);
    }
    ftl->refusal = rsd_buffer_reserve(ftl->drive, 1);
    if (ftl->refusal != RSD_OK) {
        return false;
    }
    if (v->cause == RSD_CAUSE_WEAR && pd->worn_page < pages) {
        number = page_number(ftl, pd->worn, pd->worn_page++);
    } else {
        number = rsd_page_take_page(ftl, f, for_copies(ftl, f));
        if (number == RSD_NONE) {
            return false;
        }
        f->owed -= !!v->owed;
        v->owed -= !!v->owed;
    }
    lpn = ftl->p2l[page_number(ftl, v->block, page)];
    rsd_page_map_page(ftl, lpn, number);
    if (ftl->cache) {
        rsd_cache_moved(ftl, v, lpn);
    }
    if (buf && rsd_buf_spare(buf)->magic == RSD_SPARE_MAGIC) {
        rsd_buf_spare(buf)->copy = 1;   /* a torn page has no OOB */
    }
    ftl->in_flight++;
    rsd_queue_copy_write(ftl->ns, v->cause, block_of(ftl, number),
                         page_of(ftl, number), buf, NULL, lpn);
    return true;
}

/* A page was read: its program is queued, if it is still wanted and can be. */
static bool copy_page(PageFtl *ftl, Victim *v, uint32_t page, uint8_t *buf)
{
    if (!is_current(ftl, page_number(ftl, v->block, page))) {
        return false;
    }
    if (program_copy(ftl, v, page, buf)) {
        return true;
    }
    ftl->stuck = ftl->refusal;
    v->stalled = true;
    v->page = page < v->page ? page : v->page;
    return false;
}

void rsd_page_copy_read(PageFtl *ftl, Op *op)
{
    Victim *v = &ftl->dies[op->die].victim;
    uint32_t die = op->die, row = rsd_row_of(ftl->drive, op->page);
    uint32_t wanted = op->wanted, left = 0, queued = 0;
    uint8_t *buf = op->buf;

    rsd_op_finish(ftl->drive, op);
    for (uint32_t i = 0; wanted >> i; i++) {
        if (!(wanted >> i & 1)) {
            continue;
        }
        if (copy_page(ftl, v, row + i, buf ? buf + i * RSD_SLOT_BYTES : NULL)) {
            queued++;
        } else {
            left++;
        }
    }
    if (!queued || rsd_buffered(ftl->drive)) {
        rsd_buf_free(ftl->drive, buf);
    }
    v->copying -= left;
    if (left && !v->stalled) {
        rsd_page_advance_victim(ftl, die);
    }
}

void rsd_page_close_block(PageFtl *ftl, uint32_t block)
{
    ftl->blocks[block].stamp = ftl->drive->seq;
    rsd_page_make_full(ftl, block);
    rsd_page_collect(ftl, frontier_of(ftl, die_of(ftl, block)));
}
