/*
 * The page-mapping personality (RISA 4.1): any logical page (LBA) may be in any
 * flash page.
 *
 * Map. l2p has 4 bytes a logical page, p2l 4 bytes a flash page, both in the
 * host's memory and touched only where something was written. They are rebuilt
 * from the pages' OOB when the drive is opened.
 *
 * Frontiers. Pages are given away in turn by the write frontiers, a page each:
 * by default one a die, so that consecutive pages go over the channels, then
 * over the ways. A frontier fills one block after the other, each on the next
 * of its dies, the die's least worn free one (pool.c). A frontier that has no
 * page to give is passed over; if none has, the command waits, and those after
 * it wait behind it.
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
 * Room. With gc-frontiers=own a frontier begins a block for the host only if a
 * block's worth of pages remains for copies, free ones and those left of the
 * block that copies fill; with shared it gives the host a page only if so many
 * remain. So a victim's copies always have a place, and a victim is found as
 * long as one page of its full blocks is invalid. That leaves useless at most a
 * free block, and with own the block that copies fill, which may have nothing
 * valid and yet not be full. The host sees fewer pages than all frontiers have
 * beyond these, hence one of them is never stuck. A frontier of which the free
 * block dies gives its victims' pages to another one until it has a block
 * again.
 *
 * Units. If a program takes several pages, the write buffer (buffer.c) makes
 * units of what a frontier gives away: it gives a unit's worth of pages before
 * it is the next one's turn. Of each block and of each frontier's reserve, a
 * unit's worth is not counted on, for filler: units are filled up for a flush,
 * at the end of a victim that the host's pages do not follow, and when all else
 * waits for what is in them. map-cache.c says how map pages go through the
 * buffer.
 *
 * Levelling. If erase counts within a die differ by more than wl-threshold, an
 * idle die copies what is valid in its least worn full block to its most worn
 * free one: cold data then rests on the worn block. Unless wl-share is 0, a die
 * that need not be idle does so, too, when a block of it was erased, as the next
 * victim of its frontier: if that has a free block beyond its reserve, the most
 * worn free block was erased wl-threshold times more than the least worn full
 * one, and what is valid in that is at most wl-share percent of what others have
 * programmed in the die since it last levelled, or since the drive was opened.
 * What levelling fills is closed when all else waits for free pages. It, and
 * what copies or map pages fill, may be the least worn one, too: if all that it
 * was given is programmed, it is closed and moved, for it may rest half full for
 * long.
 *
 * Survival of SIGKILL. A write is acknowledged when its page is programmed, or,
 * with ack=buffer, taken by the write buffer (which survives with plp=on). Once
 * it is programmed, the OOB names it and its sequence number, and of all pages
 * that name a logical page the one of the highest number is the content. A copy
 * keeps the number, and says that it is one. Hence an old page must not be
 * erased before the new one is programmed: a page counts as valid until then
 * (p2l of a page in flight is the page that it replaces), and a block is erased
 * when it has no valid page. Of the blocks that were being filled, the host and
 * the copies each go on with the one that has the most room, told apart by
 * their first page; but the copies with the best of all if no block is free.
 *
 * Trim sets the page's bit in the file, which says that there is no content
 * whatever pages there are, and a program of that logical page clears it. So
 * that this cannot be a program of before the trim, a trim waits until the
 * writes that it overlaps are done; those that only the buffer has then are
 * told apart by the map.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "page-ftl.h"

typedef unsigned long long ull;

/* Copies of a victim in flight: page buffers of the controller */
#define COPIES 8u
/* Pages of a unit: 4 planes, pages of 16 KiB, 4 of a word line */
#define MAX_UNIT 64u
/* The host's LBAs are a multiple of that: 1 MiB */
#define GRANULE 256u

static bool trimmed(const PageFtl *ftl, uint32_t lpn)
{
    return ftl->drive->media.trim[lpn / 64] >> lpn % 64 & 1;
}

static void set_trimmed(PageFtl *ftl, uint32_t lpn, bool to)
{
    uint64_t *word = &ftl->drive->media.trim[lpn / 64];
    uint64_t bit = UINT64_C(1) << lpn % 64;
    uint64_t value = to ? *word | bit : *word & ~bit;

    rsd_media_note(&ftl->drive->media, word, &value, sizeof(value));
    /* release, as all such stores: they happen in the program's order */
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/*
 * How much flash it takes
 */

static uint32_t num_frontiers(const RsdDrive *drive)
{
    return drive->cfg.frontiers ? drive->cfg.frontiers : drive->dies;
}

static bool copies_are_apart(const Ns *ns)
{
    return ns->drive->cfg.gc_frontiers == RSD_GC_FRONTIERS_OWN;
}

/*
 * Free blocks of a frontier that the host does not get: one for a victim's
 * copies; with a cache two more, for the map pages that are updated then.
 */
static uint32_t reserved_blocks(const Ns *ns)
{
    return rsd_map_is_cached(ns) ? 3 : 1;
}

/*
 * The same, what copies fill, and what is partly filled with map pages, or
 * obsolete ones
 */
static uint32_t kept_blocks(const Ns *ns)
{
    return reserved_blocks(ns) + copies_are_apart(ns) +
           (rsd_map_is_cached(ns) ? 2 : 0);
}

/* Pages of a block that filler may take */
static uint32_t filler(const RsdDrive *drive)
{
    return drive->unit > 1 ? drive->unit : 0;
}

/* The same of a frontier's reserve, and of what has map pages */
static uint32_t reserve_filler(const Ns *ns)
{
    return (rsd_map_is_cached(ns) ? 2 : 1) * filler(ns->drive);
}

/* Pages of a frontier that the host does not get */
static uint32_t reserved_pages(const Ns *ns)
{
    return reserved_blocks(ns) * ns->drive->pages + reserve_filler(ns);
}

/*
 * A frontier that has no page for the host has fewer free blocks than that:
 * see has_room(). Filler alone may be a block's worth.
 */
static uint32_t least_low(const Ns *ns)
{
    uint32_t pages = ns->drive->pages, reserved = reserved_pages(ns);

    return (copies_are_apart(ns) ? rsd_div_round_up(reserved, pages)
                                 : reserved / pages) + 1;
}

/* A frontier of so many good blocks collects when fewer are free. */
static uint32_t low_blocks(const Ns *ns, uint64_t good)
{
    uint64_t low = rsd_div_round_up(good * ns->drive->cfg.gc_trigger, 100);
    uint64_t least = least_low(ns);

    return low < least ? least : low;
}

/* Pages of good flash that are needed beyond what the host sees */
static uint64_t needed_pages(const Ns *ns)
{
    const RsdDrive *drive = ns->drive;

    return num_frontiers(drive) * ((uint64_t)kept_blocks(ns) * drive->pages +
                                   reserve_filler(ns)) +
           (rsd_map_is_cached(ns) ? rsd_map_pages_of(ns) : 0);
}

/* Blocks may have died: is the rest enough to go on? */
static void look_at_room(PageFtl *ftl)
{
    const RsdDrive *drive = ftl->drive;

    if (ftl->good * (drive->pages - filler(drive)) <=
        ftl->ns->geo.lbas + needed_pages(ftl->ns)) {
        rsd_drive_wear_out(ftl->drive);
    }
}

/*
 * Full blocks
 */

/* The list of a block: by filling alone if the first in is the first out */
static uint32_t *list_of(PageFtl *ftl, uint32_t block)
{
    PageDie *pd = &ftl->dies[die_of(ftl, block)];
    uint32_t valid = ftl->blocks[block].valid;

    if (ftl->drive->cfg.gc_policy == RSD_GC_FIFO) {
        return &pd->lists[0];
    }
    if (valid < pd->lowest) {
        pd->lowest = valid;
    }
    return &pd->lists[valid];
}

static void link_full(PageFtl *ftl, uint32_t block)
{
    uint32_t *first = list_of(ftl, block);
    PageBlock *pb = &ftl->blocks[block];

    if (*first == RSD_NONE) {
        pb->prev = pb->next = block;
        *first = block;
        return;
    }
    pb->next = *first;
    pb->prev = ftl->blocks[*first].prev;
    ftl->blocks[pb->prev].next = block;
    ftl->blocks[pb->next].prev = block;
}

static void unlink_full(PageFtl *ftl, uint32_t block)
{
    uint32_t *first = list_of(ftl, block);
    PageBlock *pb = &ftl->blocks[block];

    if (*first == block) {
        *first = pb->next == block ? RSD_NONE : pb->next;
    }
    ftl->blocks[pb->prev].next = pb->next;
    ftl->blocks[pb->next].prev = pb->prev;
}

static void make_full(PageFtl *ftl, uint32_t block)
{
    PageBlock *pb = &ftl->blocks[block];
    PageDie *pd = &ftl->dies[die_of(ftl, block)];

    pb->state = BLOCK_FULL;
    pd->stale += ftl->drive->pages - pb->valid;
    pd->look = true;
    link_full(ftl, block);
}

void rsd_page_invalidate(PageFtl *ftl, uint32_t number)
{
    uint32_t block = number / ftl->drive->pages;
    PageBlock *pb = &ftl->blocks[block];
    uint32_t die = die_of(ftl, block);

    if (pb->state != BLOCK_FULL) {
        pb->valid--;
        pb->stamp = ftl->drive->seq;
        if (pb->state == BLOCK_VICTIM && !pb->valid) {
            rsd_page_advance_victim(ftl, die);
        }
        return;
    }
    ftl->dies[die].stale++;
    if (ftl->drive->cfg.gc_policy == RSD_GC_FIFO) {
        pb->valid--;
        return;
    }
    unlink_full(ftl, block);
    pb->valid--;
    pb->stamp = ftl->drive->seq;
    link_full(ftl, block);
    if (!pb->valid) {
        rsd_sched_background(ftl->drive, die);
    }
}

/*
 * Frontiers
 */

uint32_t rsd_page_take_block(PageFtl *ftl, Frontier *f)
{
    RsdDrive *drive = ftl->drive;
    uint32_t die = f->turn, block;
    int ret;

    if (!f->free) {
        ftl->refusal = RSD_E_NOBLOCK;
        return RSD_NONE;
    }
    while (!ftl->dies[die].pool.len) {
        die += ftl->num_frontiers;
        if (die >= drive->dies) {
            die %= ftl->num_frontiers;
        }
    }
    block = die * drive->die_blocks + ftl->dies[die].pool.heap[0];
    ret = rsd_media_reserve(&drive->media, block);
    if (ret) {
        ftl->refusal = ret == -ENOSPC || ret == -EDQUOT ? RSD_E_NOSPC
                                                        : RSD_E_MEDIA;
        return RSD_NONE;
    }
    rsd_pool_remove(drive, &ftl->dies[die].pool, block);
    ftl->blocks[block].state = BLOCK_OPEN;
    f->free--;
    ftl->free--;
    die += ftl->num_frontiers;
    f->turn = die < drive->dies ? die : die % ftl->num_frontiers;
    return block;
}

/* What a frontier's copies fill */
static OpenBlock *for_copies(PageFtl *ftl, Frontier *f)
{
    return ftl->own ? &f->copies : &f->host;
}

/* Pages left of a block that is being filled */
static uint32_t pages_left(const PageFtl *ftl, const OpenBlock *open)
{
    return open->block == RSD_NONE ? 0 : ftl->drive->pages - open->page;
}

/* The frontier's next page, or RSD_NONE: ftl->refusal says why not. */
static uint32_t take_page(PageFtl *ftl, Frontier *f, OpenBlock *open)
{
    bool copies = open == for_copies(ftl, f);

    if (!pages_left(ftl, open)) {
        uint32_t block = rsd_page_take_block(ftl, f);

        if (block == RSD_NONE) {
            return RSD_NONE;
        }
        f->space -= copies ? 0 : ftl->drive->pages;
        open->block = block;
        open->page = 0;
    }
    f->space -= copies;
    return page_number(ftl, open->block, open->page++);
}

/* The logical page is in that flash page from now on. */
static void map_page(PageFtl *ftl, uint32_t lpn, uint32_t number)
{
    PageBlock *pb = &ftl->blocks[number / ftl->drive->pages];

    ftl->p2l[number] = ftl->l2p[lpn];
    ftl->mapped[lpn / MAP_SPAN] += !ftl->l2p[lpn];
    ftl->l2p[lpn] = number + 1;
    pb->valid++;
    pb->stamp = ftl->drive->seq;
}

/*
 * Victims
 */

/* Does a frontier have a page for the host? */
static bool has_room(const PageFtl *ftl, const Frontier *f)
{
    if (ftl->own) {
        return pages_left(ftl, &f->host) ||
               f->space - f->owed >= ftl->reserve + ftl->drive->pages;
    }
    return f->space - f->owed > ftl->reserve;
}

/* Does the frontier have room for what is valid in the block? */
static bool fits(const PageFtl *ftl, const Frontier *f, uint32_t block)
{
    return ftl->blocks[block].valid + ftl->drive->unit - 1 <=
           f->space - f->owed;
}

/*
 * The frontier that gets what is valid in a block: its own one, or, if that has
 * no room, because its reserve has died, the one that has most.
 */
static Frontier *taker(PageFtl *ftl, uint32_t block)
{
    Frontier *own = frontier_of(ftl, die_of(ftl, block)), *best = own;

    for (uint32_t i = 0; !fits(ftl, own, block) && i < ftl->num_frontiers;
         i++) {
        Frontier *f = &ftl->frontiers[i];

        best = f->space - f->owed > best->space - best->owed ? f : best;
    }
    return best;
}

/* Pages that a victim's copies will take, with what fills up their last unit */
static uint32_t owed(const PageFtl *ftl, const PageBlock *pb)
{
    return pb->valid + (ftl->own && pb->valid ? ftl->drive->unit - 1 : 0);
}

static void begin_victim(PageFtl *ftl, uint32_t block, RsdCause cause,
                         bool idle)
{
    uint32_t die = die_of(ftl, block);
    PageBlock *pb = &ftl->blocks[block];
    PageDie *pd = &ftl->dies[die];
    Frontier *f = frontier_of(ftl, die), *to = taker(ftl, block);
    uint32_t *moved = pd->victim.moved;

    unlink_full(ftl, block);
    pd->stale -= ftl->drive->pages - pb->valid;
    pb->state = BLOCK_VICTIM;
    pd->victim = (Victim){
        .block = block,
        .end = rsd_rec_next(ftl->drive->media.rec[block]),
        .to = to - ftl->frontiers,
        .owed = cause == RSD_CAUSE_CLEAN && !pb->map ? owed(ftl, pb) : 0,
        .moved = moved,
        .cause = pb->map ? RSD_CAUSE_MAP : cause,
        .idle = idle,
    };
    to->owed += pd->victim.owed;
    f->victims++;
    ftl->victims++;
    /* which pages are valid is all over the map, and asked one by one */
    for (uint32_t page = 0; !pb->map && page < pd->victim.end; page++) {
        __builtin_prefetch(&ftl->l2p[ftl->p2l[page_number(ftl, block, page)]]);
    }
    rsd_page_advance_victim(ftl, die);
}

/* Is the page what its logical page is mapped to? It must be programmed. */
static bool is_current(const PageFtl *ftl, uint32_t number)
{
    if (ftl->blocks[number / ftl->drive->pages].map) {
        return rsd_cache_is_current(ftl, number);
    }
    return ftl->l2p[ftl->p2l[number]] == number + 1;
}

/*
 * A map of gigabytes is in no cache of the host: it is asked for the entry of a
 * victim's page so many pages before their turn.
 */
#define AHEAD 4u

static bool fill_unit(PageFtl *ftl, uint32_t block, uint32_t *page);
static bool fill_open(PageFtl *ftl, Frontier *f, OpenBlock *open);
static void fill_map_units(PageFtl *ftl);

/*
 * All pages of a victim are read and given away again. If it is not the host's
 * that follow them in their unit, that is filled up.
 */
static void end_copying(PageFtl *ftl, PageDie *pd)
{
    if (pd->victim.cause == RSD_CAUSE_WEAR) {
        fill_unit(ftl, pd->worn, &pd->worn_page);
    } else if (pd->victim.cause == RSD_CAUSE_MAP) {
        fill_map_units(ftl);
    } else if (ftl->own) {
        Frontier *f = &ftl->frontiers[pd->victim.to];

        fill_open(ftl, f, &f->copies);
    }
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
    while (ftl->blocks[v->block].valid && v->copying < COPIES &&
           v->page < v->end) {
        uint32_t number = page_number(ftl, v->block, v->page);
        uint8_t *buf = NULL;

        if (v->page + AHEAD < v->end) {
            __builtin_prefetch(&ftl->l2p[ftl->p2l[number + AHEAD]], 1);
        }
        if (!is_current(ftl, number)) {
            v->page++;
            continue;
        }
        if (drive->media.data) {
            buf = rsd_buf_new(drive);
        }
        if (!rsd_op_reserve(drive, 1) || (drive->media.data && !buf)) {
            rsd_buf_free(drive, buf);
            v->stalled = true;
            return;
        }
        rsd_queue_copy_read(ftl->ns, v->cause, v->block, v->page++, buf);
        v->copying++;
        ftl->in_flight++;
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
    uint64_t valid = ftl->blocks[block].valid + reserve_filler(ftl->ns);
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
    if (block == RSD_NONE || !fits(ftl, f, block) ||
        (ftl->cache && (!gains(ftl, block) ||
                        (drive->cfg.gc_policy == RSD_GC_FIFO &&
                         !has_room(ftl, f))))) {
        block = least_valid(ftl, pd);
    }
    /* what gives nothing is collected only if the host waits */
    if (ftl->cache && has_room(ftl, f) && block != RSD_NONE &&
        !gains(ftl, block)) {
        return RSD_NONE;
    }
    return block != RSD_NONE && fits(ftl, taker(ftl, block), block)
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
            begin_victim(ftl, block, RSD_CAUSE_CLEAN, false);
        }
    }
}

/* Collects what a frontier is in need of. */
static void collect(PageFtl *ftl, Frontier *f)
{
    uint32_t block = RSD_NONE;

    if (ftl->drive->failed) {
        return;
    }
    if (ftl->drive->cfg.gc_unit == RSD_GC_UNIT_ALL) {
        if (f->free < least_low(ftl->ns) || ftl->free < ftl->low) {
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
        begin_victim(ftl, block, RSD_CAUSE_CLEAN, false);
    }
}

/* Goes on with what lacked memory, free pages, or space on the host's disk. */
static void retry_stalled(PageFtl *ftl)
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

static void collect_everywhere(PageFtl *ftl)
{
    retry_stalled(ftl);
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        collect(ftl, &ftl->frontiers[i]);
    }
}

/*
 * Operations that are done
 */

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
    if (v->cause == RSD_CAUSE_WEAR) {
        number = page_number(ftl, pd->worn, pd->worn_page++);
    } else {
        number = take_page(ftl, f, for_copies(ftl, f));
        if (number == RSD_NONE) {
            return false;
        }
        v->owed--;
        f->owed--;
    }
    lpn = ftl->p2l[page_number(ftl, v->block, page)];
    map_page(ftl, lpn, number);
    if (ftl->cache) {
        rsd_cache_moved(ftl, v, lpn);
    }
    if (buf && rsd_buf_spare(buf)->magic == RSD_SPARE_MAGIC) {
        rsd_buf_spare(buf)->copy = 1;   /* a torn page has no OOB */
    }
    ftl->in_flight++;
    rsd_queue_copy_write(ftl->ns, v->cause, number / pages, number % pages,
                         buf, NULL, lpn);
    return true;
}

/*
 * Begun units
 */

/* Fills up the unit in which a block's page is the next one. False: none is */
static bool fill_unit(PageFtl *ftl, uint32_t block, uint32_t *page)
{
    uint32_t unit = ftl->drive->unit, n;

    if (block == RSD_NONE || *page % unit == 0 ||
        !rsd_op_reserve(ftl->drive, 1)) {
        return false;
    }
    n = unit - *page % unit;
    *page += n;
    rsd_queue_pad(ftl->ns, block, *page - n, n);
    return true;
}

/* The same of what a frontier fills */
static bool fill_open(PageFtl *ftl, Frontier *f, OpenBlock *open)
{
    uint32_t unit = ftl->drive->unit, n = pages_left(ftl, open) % unit;
    uint32_t less = open == for_copies(ftl, f) ? n : 0;

    /* the buffer may answer at once, and needs to find the right space */
    f->space -= less;
    if (fill_unit(ftl, open->block, &open->page)) {
        return true;
    }
    f->space += less;
    return false;
}

static void page_pad(Ns *ns, uint32_t block)
{
    PageFtl *ftl = ns->state;
    PageDie *pd = &ftl->dies[die_of(ftl, block)];
    Frontier *f = frontier_of(ftl, die_of(ftl, block));

    if (f->host.block == block) {
        fill_open(ftl, f, &f->host);
    } else if (pd->worn == block) {
        fill_unit(ftl, block, &pd->worn_page);
    }
}

static void fill_map_units(PageFtl *ftl)
{
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        Frontier *f = &ftl->frontiers[i];

        fill_unit(ftl, f->map.block, &f->map.page);
    }
}

/* Fills up all units, for want of anything else to happen. */
static void fill_all(PageFtl *ftl)
{
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        Frontier *f = &ftl->frontiers[i];

        fill_open(ftl, f, &f->host);
        fill_open(ftl, f, &f->copies);
    }
    fill_map_units(ftl);
    for (uint32_t die = 0; die < ftl->drive->dies; die++) {
        fill_unit(ftl, ftl->dies[die].worn, &ftl->dies[die].worn_page);
    }
}

/* A page of a victim was read. */
static void copy_read(PageFtl *ftl, Op *op)
{
    Victim *v = &ftl->dies[op->die].victim;
    uint32_t number = page_number(ftl, op->block, op->page);
    uint32_t die = op->die, page = op->page;
    uint8_t *buf = op->buf;

    rsd_op_finish(ftl->drive, op);
    if (is_current(ftl, number)) {
        if (program_copy(ftl, v, page, buf)) {
            return;
        }
        ftl->stuck = ftl->refusal;
        v->stalled = true;
        v->page = page < v->page ? page : v->page;
    }
    rsd_buf_free(ftl->drive, buf);
    v->copying--;
    if (!v->stalled) {
        rsd_page_advance_victim(ftl, die);
    }
}

void rsd_page_close_block(PageFtl *ftl, uint32_t block)
{
    ftl->blocks[block].stamp = ftl->drive->seq;
    make_full(ftl, block);
    collect(ftl, frontier_of(ftl, die_of(ftl, block)));
}

static bool is_programmed(const PageFtl *ftl, uint32_t number)
{
    const RsdDrive *drive = ftl->drive;

    return number % drive->pages <
           rsd_rec_next(drive->media.rec[number / drive->pages]);
}

/*
 * Is the flash page what the logical page has, or what it falls back to if
 * pages still to be programmed are lost? Not if it was trimmed since.
 */
static bool is_content(const PageFtl *ftl, uint32_t lpn, uint32_t number)
{
    uint32_t at = ftl->l2p[lpn];

    while (at && at != number + 1 && !is_programmed(ftl, at - 1)) {
        at = ftl->p2l[at - 1];
    }
    return at == number + 1;
}

/*
 * A page was not programmed: its logical page is where it was before, unless it
 * was trimmed, or written elsewhere since.
 */
static void unmap_page(PageFtl *ftl, uint32_t number, uint32_t lpn)
{
    uint32_t *entry = &ftl->l2p[lpn];

    while (*entry && *entry != number + 1 &&
           !is_programmed(ftl, *entry - 1)) {
        entry = &ftl->p2l[*entry - 1];
    }
    if (*entry == number + 1) {
        *entry = ftl->p2l[number];
        ftl->mapped[lpn / MAP_SPAN] -= !ftl->l2p[lpn];
        ftl->blocks[number / ftl->drive->pages].valid--;
    }
}

/*
 * The host's disk failed: see RsdDrive.failed. What a page was to replace stays
 * valid, so that it is not erased, and a victim stays as it is.
 */
static void op_failed(PageFtl *ftl, Op *op)
{
    uint32_t number = page_number(ftl, op->block, op->page);
    bool program = op->kind == OP_PROGRAM;

    if (program && op->cmd) {
        unmap_page(ftl, number, op->cmd->pub.lba + op->index);
    } else if (program && !op->unit) {
        unmap_page(ftl, number, ftl->p2l[ftl->p2l[number] - 1]);
    }
    if (!op->cmd && !op->unit) {
        rsd_buf_free(ftl->drive, op->buf);
    }
    rsd_op_finish(ftl->drive, op);
}

/* A unit was programmed, see page_op_buffered(). */
static void unit_programmed(PageFtl *ftl, Op *op)
{
    uint32_t unit = ftl->drive->unit, block = op->block, end = op->page + 1;
    uint32_t old[MAX_UNIT];

    for (uint32_t i = 0; i < unit; i++) {
        uint32_t number = page_number(ftl, block, end - unit + i), lpn;
        RsdCause cause = rsd_buffer_cause(op, i);

        old[i] = 0;
        if (cause == RSD_CAUSE_PAD) {
            ftl->p2l[number] = 0;       /* as good as any: see is_current() */
            continue;
        }
        old[i] = ftl->p2l[number];
        lpn = rsd_buffer_lba(op, i);
        ftl->p2l[number] = lpn;
        /* it may have been trimmed since it was acknowledged */
        if (cause == RSD_CAUSE_HOST && trimmed(ftl, lpn) &&
            is_content(ftl, lpn, number)) {
            set_trimmed(ftl, lpn, false);
        }
    }
    rsd_op_finish(ftl->drive, op);
    if (end == ftl->drive->pages) {
        rsd_page_close_block(ftl, block);
    }
    for (uint32_t i = 0; i < unit; i++) {
        if (old[i]) {
            rsd_page_invalidate(ftl, old[i] - 1);
            collect(ftl, frontier_of(ftl, die_of(ftl, (old[i] - 1) /
                                                      ftl->drive->pages)));
        }
    }
}

/* A page was programmed, for the host or as a copy. */
static void programmed(PageFtl *ftl, Op *op)
{
    uint32_t number = page_number(ftl, op->block, op->page);
    uint32_t old = ftl->p2l[number], block = op->block, page = op->page;
    bool copy = !op->cmd;
    uint32_t lpn = copy ? ftl->p2l[old - 1] : op->cmd->pub.lba + op->index;

    ftl->p2l[number] = lpn;
    if (copy) {
        rsd_buf_free(ftl->drive, op->buf);
    } else if (trimmed(ftl, lpn)) {
        set_trimmed(ftl, lpn, false);
    }
    rsd_op_finish(ftl->drive, op);
    if (page + 1 == ftl->drive->pages) {
        rsd_page_close_block(ftl, block);
    }
    if (copy) {
        ftl->dies[die_of(ftl, (old - 1) / ftl->drive->pages)].victim.copying--;
    }
    if (old) {
        uint32_t die = die_of(ftl, (old - 1) / ftl->drive->pages);

        rsd_page_invalidate(ftl, old - 1);
        if (copy && !ftl->dies[die].victim.stalled) {
            rsd_page_advance_victim(ftl, die);
        }
        collect(ftl, frontier_of(ftl, die));
    }
}

static void measure_wear(PageFtl *ftl, uint32_t die)
{
    PageDie *pd = &ftl->dies[die];
    const uint64_t *rec = ftl->drive->media.rec +
                          (size_t)die * ftl->drive->die_blocks;

    pd->wear_min = UINT32_MAX;
    pd->wear_max = 0;
    for (uint32_t b = ftl->ns->first; b < ftl->ns->end; b++) {
        uint32_t erases = rsd_rec_erases(rec[b]);

        if (rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD) {
            continue;
        }
        if (erases < pd->wear_min) {
            pd->wear_min = erases;
            pd->at_min = 0;
        }
        pd->at_min += erases == pd->wear_min;
        if (erases > pd->wear_max) {
            pd->wear_max = erases;
        }
    }
}

static void note_erase(PageFtl *ftl, uint32_t block)
{
    PageDie *pd = &ftl->dies[die_of(ftl, block)];
    uint32_t erases = rsd_rec_erases(ftl->drive->media.rec[block]);

    if (erases > pd->wear_max) {
        pd->wear_max = erases;
    }
    if (erases - 1 == pd->wear_min && !--pd->at_min) {
        measure_wear(ftl, die_of(ftl, block));
    }
    pd->look = true;
}

static void level_busy(PageFtl *ftl, uint32_t die);

/* A victim was erased: its block is free. */
static void erased(PageFtl *ftl, Op *op)
{
    RsdDrive *drive = ftl->drive;
    uint32_t die = op->die, block = op->block;
    PageDie *pd = &ftl->dies[die];
    Victim *v = &pd->victim;
    Frontier *f = frontier_of(ftl, die);

    rsd_op_finish(drive, op);
    drive->blocks[block].erases--;
    ftl->frontiers[v->to].owed -= v->owed;
    f->victims--;
    ftl->victims--;
    if (v->cause == RSD_CAUSE_WEAR) {
        drive->count->wear_moves++;
        pd->levelled = drive->sched.dies[die].programmed;
    }
    if (rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_BAD) {
        ftl->blocks[block].state = BLOCK_BAD;
        ftl->good--;
        look_at_room(ftl);
        measure_wear(ftl, die);
    } else {
        if (v->idle) {
            /* no program of it is to come soon */
            rsd_media_release(&drive->media, block);
        }
        ftl->blocks[block].state = BLOCK_FREE;
        ftl->blocks[block].map = false;
        rsd_pool_insert(drive, &pd->pool, block);
        f->free++;
        ftl->free++;
        f->space += drive->pages;
        note_erase(ftl, block);
    }
    v->block = RSD_NONE;
    ftl->retry = true;
    level_busy(ftl, die);
    collect(ftl, f);
    if (ftl->cache) {
        retry_stalled(ftl);
    }
}

static bool go_on(PageFtl *ftl, Cmd *cmd);

static bool is_trim(const Cmd *cmd)
{
    return cmd->pub.op == RSD_TRIM || cmd->pub.op == RSD_WRITE_ZEROES;
}

/*
 * Must a command wait behind those that wait? With the whole map in RAM writes
 * and trims wait for free pages alone, one behind the other. Misses of the
 * cache are waited for side by side; then only what overlaps keeps its order,
 * and writes for which there is no free page.
 */
static bool must_wait(const PageFtl *ftl, const Cmd *cmd)
{
    if (!ftl->waits.head) {
        return false;
    }
    if (!ftl->cache && cmd->pub.op != RSD_READ) {
        return true;
    }
    return (cmd->pub.op == RSD_WRITE && ftl->no_room) ||
           rsd_waits_blocker(&ftl->waits, cmd);
}

/*
 * With a cache, what waiting commands wait for, as wait.c has it: two words,
 * the second one for writes. Bit 0: to be looked at in any case. Bit n: for n
 * entries of the cache, or, from LARGE on, for so many or more.
 */
enum { WAIT_OTHERS, WAIT_WRITES, WAIT_WORDS };

#define LARGE 48u

static uint32_t bit_of(uint32_t entries)
{
    uint32_t bit = LARGE, least = LARGE;

    if (entries < LARGE) {
        return entries;
    }
    while (bit < 63 && entries >= least + least / 2) {
        least += least / 2;
        bit++;
    }
    return bit;
}

void rsd_page_mark(PageFtl *ftl, Cmd *cmd)
{
    uint64_t mask[WAIT_WORDS] = { 0 };
    uint32_t entries;
    bool any;

    if (!cmd->waits) {
        return;
    }
    if (is_trim(cmd) && !ftl->drive->failed) {
        rsd_waits_follow_write(&ftl->waits, cmd);
    }
    entries = rsd_cache_awaits(ftl, cmd);
    any = !cmd->follows && entries != UINT32_MAX;
    if (any) {
        mask[cmd->pub.op == RSD_WRITE ? WAIT_WRITES : WAIT_OTHERS] =
            UINT64_C(1) << bit_of(entries);
    }
    rsd_waits_mark(&ftl->waits, cmd, any ? mask : NULL);
}

static void freed(Ns *ns, Cmd *cmd)
{
    rsd_page_mark(ns->state, cmd);
}

/* All are to be looked at, but for those that others are before. */
static void mark_all(PageFtl *ftl)
{
    for (Cmd *cmd = ftl->waits.head; cmd; cmd = cmd->wait_next) {
        uint64_t mask[WAIT_WORDS] = { 0 };

        if (!rsd_waits_blocker(&ftl->waits, cmd)) {
            mask[cmd->pub.op == RSD_WRITE ? WAIT_WRITES : WAIT_OTHERS] = 1;
            rsd_waits_mark(&ftl->waits, cmd, mask);
        }
    }
}

/* The next one to look at, of Cmd.begun from that on */
static Cmd *next_waiting(PageFtl *ftl, uint64_t from)
{
    uint64_t mask = (UINT64_C(2) << bit_of(rsd_cache_grants(ftl))) - 1;
    uint64_t want[WAIT_WORDS] = { mask, ftl->no_room ? 0 : mask };

    return rsd_waits_next(&ftl->waits, from, want);
}

static void stop_waiting(PageFtl *ftl, Cmd *cmd)
{
    rsd_waits_remove(&ftl->waits, cmd);
    rsd_cmd_drop(ftl->drive, cmd);
}

/* One pass over the commands that wait */
static void go_on_all(PageFtl *ftl)
{
    Cmd *cmd;

    ftl->retry = false;
    ftl->no_room = false;
    while (!ftl->cache && (cmd = ftl->waits.head)) {
        if (!go_on(ftl, cmd)) {
            return;
        }
        stop_waiting(ftl, cmd);
    }
    if (ftl->drive->failed && !ftl->all_marked) {
        mark_all(ftl);          /* nobody is to wait for what will not come */
        ftl->all_marked = true;
    }
    for (uint64_t from = 0; ftl->cache && (cmd = next_waiting(ftl, from));) {
        from = cmd->begun + 1;
        if (go_on(ftl, cmd)) {
            stop_waiting(ftl, cmd);
        } else {
            rsd_page_mark(ftl, cmd);
        }
    }
}

/* Is something going on that a command may wait for? */
static bool busy(const PageFtl *ftl)
{
    return ftl->in_flight || rsd_buffer_busy(ftl->ns);
}

/* What levelling fills may be collected. False: it fills nothing. */
static bool close_worn(PageFtl *ftl)
{
    bool any = false;

    for (uint32_t die = 0; die < ftl->drive->dies; die++) {
        PageDie *pd = &ftl->dies[die];

        if (pd->worn != RSD_NONE && pd->worn_page < ftl->drive->pages &&
            pd->victim.block == RSD_NONE) {
            make_full(ftl, pd->worn);
            pd->worn = RSD_NONE;
            any = true;
        }
    }
    return any;
}

/* The same, or can it be made to? */
static bool something_happens(PageFtl *ftl)
{
    if (!busy(ftl) && ftl->stuck == RSD_OK) {
        collect_everywhere(ftl);
    }
    if (!busy(ftl) && ftl->stuck == RSD_OK && close_worn(ftl)) {
        collect_everywhere(ftl);
    }
    if (!busy(ftl)) {
        fill_all(ftl);
    }
    return busy(ftl);
}

/* A command fails: nothing is kept for it, and nobody waits for its sake. */
static void give_up(PageFtl *ftl, Cmd *cmd)
{
    ftl->no_room = false;
    if (ftl->cache) {
        rsd_cache_give_up(ftl, cmd);
    }
    if (rsd_buffered(ftl->drive)) {
        rsd_buffer_give_up(ftl->drive, cmd);
    }
}

/* Why a command fails: nothing is going to change */
static RsdStatus refusal(PageFtl *ftl)
{
    if (ftl->stuck != RSD_OK) {
        return ftl->stuck;
    }
    return ftl->refusal == RSD_E_NOBLOCK ? rsd_drive_no_block(ftl->drive)
                                         : ftl->refusal;
}

/* Goes on with commands that wait, if they can. */
static void resume(PageFtl *ftl)
{
    bool all = !ftl->cache;

    ftl->going = true;
    for (;;) {
        Cmd *cmd;

        go_on_all(ftl);
        if (!ftl->waits.head || something_happens(ftl)) {
            break;
        }
        if (ftl->retry) {
            continue;
        }
        if (!all) {
            mark_all(ftl);      /* each says why it cannot go on, if so */
            all = true;
            continue;
        }
        /* nothing is going to change */
        cmd = ftl->waits.head;
        if (cmd->pub.status == RSD_OK) {
            cmd->pub.status = refusal(ftl);
        }
        give_up(ftl, cmd);
        stop_waiting(ftl, cmd);
    }
    ftl->going = false;
}

static void maybe_resume(PageFtl *ftl)
{
    if (ftl->waits.head && !ftl->going && (ftl->retry || !busy(ftl))) {
        resume(ftl);
    }
}

/* A page is in the write buffer. */
static void page_op_buffered(Ns *ns, Op *op)
{
    PageFtl *ftl = ns->state;
    bool copy = !op->cmd && op->cause != RSD_CAUSE_PAD && !op->job;
    uint32_t number = page_number(ftl, op->block, op->page - 1);
    bool going = ftl->going;

    ftl->going = true;
    if (op->cmd && ns->drive->cfg.plp && !op->failed) {
        uint32_t lpn = op->cmd->pub.lba + op->index;

        /* it is the content from now on, whatever was trimmed before */
        if (trimmed(ftl, lpn) && is_content(ftl, lpn, number)) {
            set_trimmed(ftl, lpn, false);
        }
    }
    if (op->job) {
        rsd_cache_op_buffered(ftl, op);
    }
    if (copy) {
        uint32_t die = die_of(ftl, (ftl->p2l[number] - 1) /
                                   ftl->drive->pages);
        Victim *v = &ftl->dies[die].victim;

        rsd_buf_free(ns->drive, op->buf);
        v->copying--;
        if (!v->stalled) {
            rsd_page_advance_victim(ftl, die);
        }
    }
    if (op->cause != RSD_CAUSE_PAD) {
        ftl->in_flight--;
    }
    rsd_op_finish(ns->drive, op);
    /* a trim may wait for it */
    ftl->retry |= ftl->waits.head && ftl->waits.head->pub.op != RSD_WRITE;
    ftl->going = going;
    maybe_resume(ftl);
}

static void page_op_done(Ns *ns, Op *op)
{
    PageFtl *ftl = ns->state;

    ftl->going = true;
    ftl->in_flight -= (op->kind != OP_READ || !op->cmd) && !op->unit;
    /* those that wait do so in vain */
    ftl->retry |= ns->drive->failed;
    if (op->kind != OP_READ) {
        ftl->stuck = RSD_OK;
    }
    if (op->kind == OP_READ && op->cmd) {
        rsd_op_finish(ns->drive, op);
    } else if (op->job) {
        rsd_cache_op_done(ftl, op);
    } else if (op->failed || (ns->drive->failed && op->kind == OP_READ)) {
        op_failed(ftl, op);
    } else if (op->kind == OP_READ) {
        copy_read(ftl, op);
    } else if (op->kind == OP_PROGRAM) {
        /* a trim may wait for it */
        ftl->retry |= ftl->waits.head &&
                      (ftl->cache || ftl->waits.head->pub.op != RSD_WRITE);
        if (op->unit) {
            unit_programmed(ftl, op);
        } else {
            programmed(ftl, op);
        }
    } else {
        erased(ftl, op);
    }
    ftl->going = false;
    maybe_resume(ftl);
}

/*
 * Commands
 */

static void append_waiting(PageFtl *ftl, Cmd *cmd)
{
    cmd->pending++;
    rsd_waits_add(&ftl->waits, cmd);
    if (ftl->cache) {
        rsd_page_mark(ftl, cmd);
    }
}

/* Queues a read up to page end. Its operations must be reserved. */
static void read_pages(PageFtl *ftl, Cmd *cmd, uint32_t end)
{
    const uint32_t *map = ftl->l2p + cmd->pub.lba;
    uint32_t pages = ftl->drive->pages, n;

    for (uint32_t i = cmd->progress; i < end; i += n) {
        uint32_t number = map[i] - 1;

        n = 1;
        if (!map[i]) {
            rsd_read_unwritten(cmd, i);
            continue;
        }
        while (i + n < end && map[i + n] == map[i] + n &&
               (number + n) % pages) {
            n++;
        }
        rsd_queue_read(ftl->ns, cmd, i, number / pages, number % pages, n);
    }
    cmd->progress = end;
}

/* The next page for the host, or RSD_NONE */
static uint32_t next_page(PageFtl *ftl)
{
    ftl->refusal = RSD_E_NOBLOCK;
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        Frontier *f = &ftl->frontiers[ftl->turn];
        uint32_t number = has_room(ftl, f) ? take_page(ftl, f, &f->host)
                                           : RSD_NONE;

        if (number != RSD_NONE && f->host.page % ftl->drive->unit) {
            return number;      /* its turn until a unit is full */
        }
        if (++ftl->turn == ftl->num_frontiers) {
            ftl->turn = 0;
        }
        if (number != RSD_NONE) {
            return number;
        }
    }
    return RSD_NONE;
}

/* Queues a write up to page end. False: it must wait, see ftl->refusal. */
static bool write_pages(PageFtl *ftl, Cmd *cmd, uint32_t end)
{
    uint32_t pages = ftl->drive->pages;

    while (cmd->progress < end) {
        uint32_t number, lpn;

        /* the second ones for rsd_cache_written() */
        if (!rsd_op_reserve(ftl->drive, 2)) {
            ftl->refusal = RSD_E_NOMEM;
            return false;
        }
        ftl->refusal = rsd_buffer_reserve(ftl->drive, ftl->cache ? 2 : 1);
        if (ftl->refusal != RSD_OK) {
            return false;
        }
        number = next_page(ftl);
        if (number == RSD_NONE) {
            ftl->no_room = true;
            return false;
        }
        lpn = cmd->pub.lba + cmd->progress;
        map_page(ftl, lpn, number);
        ftl->in_flight++;
        rsd_queue_write(ftl->ns, cmd, cmd->progress++, number / pages,
                        number % pages, 1);
        if (ftl->cache) {
            rsd_cache_written(ftl, lpn);
        }
        if (!(number % pages)) {
            collect(ftl, frontier_of(ftl, die_of(ftl, number / pages)));
        }
    }
    return true;
}

static void trim_page(PageFtl *ftl, uint32_t lpn)
{
    uint32_t entry = ftl->l2p[lpn];

    if (!entry) {
        return;
    }
    set_trimmed(ftl, lpn, true);
    ftl->l2p[lpn] = 0;
    ftl->mapped[lpn / MAP_SPAN]--;
    if (ftl->cache) {
        rsd_cache_trimmed(ftl, lpn);
    }
    rsd_page_invalidate(ftl, entry - 1);
    collect(ftl, frontier_of(ftl, die_of(ftl, (entry - 1) /
                                              ftl->drive->pages)));
}

/* Takes time for what has content, however much else there is. */
static void trim_pages(PageFtl *ftl, uint64_t lpn, uint64_t n)
{
    uint64_t end = lpn + n;

    while (lpn < end) {
        if (ftl->mapped[lpn / MAP_SPAN]) {
            trim_page(ftl, lpn++);
        } else {
            lpn = (lpn / MAP_SPAN + 1) * MAP_SPAN;
        }
    }
}

/*
 * Does what can be done of a command. False: it has to wait, or, if nothing is
 * in flight, to fail with ftl->refusal.
 */
static bool go_on(PageFtl *ftl, Cmd *cmd)
{
    if (ftl->drive->failed && cmd->pub.op != RSD_READ) {
        if (cmd->pub.status == RSD_OK) {
            cmd->pub.status = RSD_E_READONLY;
        }
        give_up(ftl, cmd);
        return true;
    }
    if (cmd->pub.op != RSD_READ && cmd->pub.op != RSD_WRITE) {
        if (rsd_write_in_flight(ftl->ns, cmd)) {
            ftl->refusal = RSD_E_ORDER; /* not that of another command */
            return false;
        }
        trim_pages(ftl, cmd->pub.lba, cmd->pub.nlb);
        return true;
    }
    while (cmd->progress < cmd->pub.nlb) {
        uint32_t end = cmd->pub.nlb;

        if (ftl->cache && !rsd_cache_translate(ftl, cmd, &end)) {
            return false;
        }
        if (cmd->pub.op == RSD_WRITE) {
            if (!write_pages(ftl, cmd, end)) {
                return false;
            }
            continue;
        }
        if (!rsd_op_reserve(ftl->drive, end - cmd->progress)) {
            ftl->refusal = RSD_E_NOMEM;
            return false;
        }
        read_pages(ftl, cmd, end);
    }
    return true;
}

static RsdStatus page_submit(Ns *ns, Cmd *cmd)
{
    PageFtl *ftl = ns->state;

    switch (cmd->pub.op) {
    case RSD_READ:
    case RSD_WRITE:
    case RSD_TRIM:
    case RSD_WRITE_ZEROES:
        break;
    case RSD_FLUSH:
        return RSD_OK;          /* nothing is held back */
    default:
        return RSD_E_RANGE;
    }
    if (!rsd_waits_reserve(&ftl->waits)) {
        return RSD_E_NOMEM;
    }
    cmd->progress = 0;
    if (rsd_map_pages_of(ns) && !ftl->cache &&
        (cmd->pub.op == RSD_READ || cmd->pub.op == RSD_WRITE)) {
        ns->drive->count->map_hits += cmd->pub.nlb;
    }
    ftl->stuck = RSD_OK;        /* the host may have more space now */
    if (!must_wait(ftl, cmd)) {
        bool done, waits;

        ftl->going = true;
        done = go_on(ftl, cmd);
        waits = !done && (something_happens(ftl) || cmd->progress ||
                          ftl->waits.head);
        ftl->going = false;
        if (done) {
            return RSD_OK;
        }
        if (!waits) {
            give_up(ftl, cmd);
            return refusal(ftl);
        }
    }
    append_waiting(ftl, cmd);
    maybe_resume(ftl);          /* it may wait in vain */
    return RSD_OK;
}

static void page_format(Ns *ns)
{
    PageFtl *ftl = ns->state;

    if (ftl->cache) {
        rsd_cache_format(ftl);
    }
    trim_pages(ftl, 0, ns->geo.lbas);
}

/*
 * Idle dies, and levelling
 */

static bool worth_a_look(const PageFtl *ftl, const PageDie *pd)
{
    uint64_t threshold = ftl->drive->cfg.wl_threshold;

    return pd->look && threshold && pd->wear_max - pd->wear_min > threshold;
}

/* Is there a full block without any valid page? */
static bool has_empty(const PageFtl *ftl, const PageDie *pd)
{
    return ftl->drive->cfg.idle_erase_ns &&
           ftl->drive->cfg.gc_policy != RSD_GC_FIFO &&
           pd->lists[0] != RSD_NONE;
}

/*
 * Is it a block that copies, levelling or map pages fill, and nothing of it in
 * flight? Of the host's pages more come soon, or nothing wears.
 */
static bool rests(PageFtl *ftl, uint32_t block)
{
    const PageDie *pd = &ftl->dies[die_of(ftl, block)];
    const Frontier *f = frontier_of(ftl, die_of(ftl, block));
    uint32_t next = rsd_rec_next(ftl->drive->media.rec[block]);

    return ftl->blocks[block].state == BLOCK_OPEN && next &&
           ((block == pd->worn && next == pd->worn_page) ||
            (block == f->copies.block && next == f->copies.page) ||
            (block == f->map.block && next == f->map.page));
}

/* The least worn block that may be moved */
static uint32_t least_worn(PageFtl *ftl, uint32_t die)
{
    uint32_t base = die * ftl->drive->die_blocks, best = RSD_NONE;
    const uint64_t *rec = ftl->drive->media.rec;

    for (uint32_t b = base + ftl->ns->first; b < base + ftl->ns->end; b++) {
        if ((best == RSD_NONE ||
             rsd_rec_erases(rec[b]) < rsd_rec_erases(rec[best])) &&
            (ftl->blocks[b].state == BLOCK_FULL || rests(ftl, b))) {
            best = b;
        }
    }
    return best;
}

static uint32_t most_worn_free(const PageFtl *ftl, uint32_t die)
{
    uint32_t base = die * ftl->drive->die_blocks, best = RSD_NONE;
    const uint64_t *rec = ftl->drive->media.rec;

    for (uint32_t b = base + ftl->ns->first; b < base + ftl->ns->end; b++) {
        if (ftl->blocks[b].state == BLOCK_FREE &&
            (best == RSD_NONE ||
             rsd_rec_erases(rec[b]) > rsd_rec_erases(rec[best]))) {
            best = b;
        }
    }
    return best;
}

/*
 * Makes a block the one that levelling fills, if so many free pages are left.
 * False: none is to be had.
 */
static bool open_worn(PageFtl *ftl, uint32_t die, uint32_t block,
                      uint64_t keep)
{
    RsdDrive *drive = ftl->drive;
    PageDie *pd = &ftl->dies[die];
    Frontier *f = frontier_of(ftl, die);

    if (f->space - f->owed < keep + drive->pages ||
        rsd_media_reserve(&drive->media, block)) {
        return false;
    }
    if (pd->worn != RSD_NONE && pd->worn_page < drive->pages) {
        make_full(ftl, pd->worn);
    }
    rsd_pool_remove(drive, &pd->pool, block);
    f->free--;
    ftl->free--;
    f->space -= drive->pages;
    ftl->blocks[block].state = BLOCK_OPEN;
    pd->worn = block;
    pd->worn_page = 0;
    return true;
}

/* Pages for copies that are lost if the block is closed */
static uint32_t lost(PageFtl *ftl, uint32_t block)
{
    Frontier *f = frontier_of(ftl, die_of(ftl, block));

    return f->copies.block == block ? pages_left(ftl, &f->copies) : 0;
}

/* May a die that need not be idle copy what is valid in the block? */
static bool has_share(const PageFtl *ftl, uint32_t die, uint32_t block)
{
    uint64_t others = ftl->drive->sched.dies[die].programmed -
                      ftl->dies[die].levelled;

    return ftl->blocks[block].valid * UINT64_C(100) <=
           others * ftl->drive->cfg.wl_share;
}

/* Begins to move the least worn block's pages, if that is due. */
static bool begin_levelling(PageFtl *ftl, uint32_t die, bool idle)
{
    const RsdDrive *drive = ftl->drive;
    PageDie *pd = &ftl->dies[die];
    Frontier *f = frontier_of(ftl, die);
    uint32_t src = least_worn(ftl, die), dst = pd->worn;
    uint64_t least, keep = idle ? drive->pages : ftl->reserve;

    pd->look = false;
    if (src == RSD_NONE) {
        return false;
    }
    if (!idle && !has_share(ftl, die, src)) {
        pd->look = true;
        return false;
    }
    least = rsd_rec_erases(drive->media.rec[src]) + drive->cfg.wl_threshold -
            !idle;
    if (dst == RSD_NONE || dst == src ||
        drive->pages - pd->worn_page < ftl->blocks[src].valid ||
        rsd_rec_erases(drive->media.rec[dst]) <= least) {
        dst = most_worn_free(ftl, die);
        if (dst == RSD_NONE ||
            rsd_rec_erases(drive->media.rec[dst]) <= least ||
            !open_worn(ftl, die, dst, keep + lost(ftl, src))) {
            return false;
        }
    }
    if (ftl->blocks[src].state == BLOCK_OPEN) {
        OpenBlock *open = f->copies.block == src ? &f->copies : &f->map;

        if (f->space - f->owed < ftl->reserve + lost(ftl, src)) {
            return false;
        }
        f->space -= lost(ftl, src);
        *open = (OpenBlock){ RSD_NONE, 0 };
        make_full(ftl, src);
    }
    begin_victim(ftl, src, RSD_CAUSE_WEAR, idle);
    return true;
}

/* A block was erased in a die that need not be idle. */
static void level_busy(PageFtl *ftl, uint32_t die)
{
    const RsdDrive *drive = ftl->drive;
    const Frontier *f = frontier_of(ftl, die);

    if (drive->cfg.wl_share && !drive->failed &&
        worth_a_look(ftl, &ftl->dies[die]) &&
        f->space - f->owed >= ftl->reserve + drive->pages) {
        begin_levelling(ftl, die, false);
    }
}

static bool page_has_background(const Ns *ns, uint32_t die)
{
    const PageFtl *ftl = ns->state;
    const PageDie *pd = ftl ? &ftl->dies[die] : NULL;

    return pd && pd->victim.block == RSD_NONE && !ftl->drive->failed &&
           (has_empty(ftl, pd) || worth_a_look(ftl, pd));
}

static bool page_background(Ns *ns, uint32_t die)
{
    PageFtl *ftl = ns->state;
    PageDie *pd = &ftl->dies[die];
    bool begun;

    if (!page_has_background(ns, die)) {
        return false;
    }
    ftl->going = true;
    if (has_empty(ftl, pd)) {
        begin_victim(ftl, pd->lists[0], RSD_CAUSE_CLEAN, true);
        begun = true;
    } else {
        begun = begin_levelling(ftl, die, true);
    }
    ftl->going = false;
    maybe_resume(ftl);
    return begun;
}

/*
 * Opening
 */

/* Blocks of a frontier's dies, without those that were bad when new */
static uint64_t good_blocks(const Ns *ns, uint32_t first_die, uint32_t step)
{
    uint64_t good = 0;

    for (uint32_t die = first_die; die < ns->drive->dies; die += step) {
        good += rsd_nand_good_when_new(ns, die);
    }
    return good;
}

static bool check_geometry(Ns *ns, char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ns->drive;
    const RsdConfig *cfg = &drive->cfg;
    uint32_t n = num_frontiers(drive);
    uint64_t flash = 0, low = 0, need;

    if ((uint64_t)drive->dies * drive->die_blocks * drive->pages >=
        UINT32_MAX) {
        rsd_set_error(err, "ftl=%s numbers flash pages with 32 bits: %u dies "
                      "of %u blocks of %u pages are too many; choose fewer "
                      "blocks", rsd_ftl_names[cfg->ftl], drive->dies,
                      drive->die_blocks, drive->pages);
        return false;
    }
    if (n > drive->dies) {
        rsd_set_error(err, "frontiers=%u: allowed is 0 (one a die) to %u, the "
                      "number of dies; choose a value in that range", n,
                      drive->dies);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t good = good_blocks(ns, i, n), keep = low_blocks(ns, good);

        flash += good * (drive->pages - filler(drive));
        low += keep > least_low(ns) ? keep : 0;
    }
    if (!ns->geo.lbas) {
        rsd_set_error(err, "over-provision=%llu leaves %llu pages of %llu, "
                      "less than 1 MiB: choose more blocks, or less "
                      "over-provision", (ull)cfg->over_provision,
                      (ull)rsd_exported_pages(ns),
                      (ull)(good_blocks(ns, 0, 1) * drive->pages));
        return false;
    }
    need = needed_pages(ns);
    if (flash <= ns->geo.lbas + need) {
        rsd_set_error(err, "over-provision=%llu leaves %lld pages of good "
                      "flash beyond the %llu that the host sees, and more than "
                      "%llu are needed (%u blocks of %u pages for each of %u "
                      "frontiers, %llu pages of the map): raise "
                      "over-provision, or choose fewer frontiers",
                      (ull)cfg->over_provision,
                      (long long)(flash - ns->geo.lbas), (ull)ns->geo.lbas,
                      (ull)need, kept_blocks(ns), drive->pages, n,
                      rsd_map_is_cached(ns) ? (ull)rsd_map_pages_of(ns) : 0);
        return false;
    }
    if (low * drive->pages > flash - ns->geo.lbas) {
        rsd_set_error(err, "gc-trigger=%llu wants %llu free blocks, but only "
                      "%llu are over when the host has filled its pages: "
                      "choose a lower gc-trigger, or more over-provision",
                      (ull)cfg->gc_trigger, (ull)low,
                      (ull)((flash - ns->geo.lbas) / drive->pages));
        return false;
    }
    return true;
}

static bool page_geometry(Ns *ns, char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ns->drive;

    ns->geo.lbas = rsd_exported_pages(ns) / GRANULE * GRANULE;
    ns->geo.max_oob = RSD_SPARE_OFFSET;
    /* 4 bytes a page of the capacity (RISA table 2, REDO table 2) */
    ns->geo.map_bytes = UINT64_C(4) * drive->dies * ns->visible * drive->pages;
    if (rsd_map_is_cached(ns)) {
        ns->geo.map_bytes = drive->cfg.map_cache +
                            rsd_map_pages_of(ns) * sizeof(uint32_t);
    }
    return check_geometry(ns, err);
}

/* Drive-wide numbers of the namespace's blocks, in order */
#define FOR_EACH_BLOCK(ftl, b) \
    for (uint64_t b = (ftl)->ns->first; \
         b < (uint64_t)(ftl)->drive->dies * (ftl)->drive->die_blocks; \
         b = next_block(ftl, b))

static uint64_t next_block(const PageFtl *ftl, uint64_t block)
{
    uint32_t left_out = ftl->drive->die_blocks - ftl->ns->end + ftl->ns->first;

    return ++block % ftl->drive->die_blocks == ftl->ns->end %
                                               ftl->drive->die_blocks
               ? block + left_out : block;
}

/* NULL: the page is none of ours */
static const RsdSpare *spare_of(const PageFtl *ftl, uint32_t block,
                                uint32_t page)
{
    const RsdSpare *spare = (const RsdSpare *)
        (rsd_media_oob(&ftl->drive->media, block, page) + RSD_SPARE_OFFSET);

    return spare->magic == RSD_SPARE_MAGIC ? spare : NULL;
}

/* Is what the OOB names, if anything, in the map? */
static bool verify_oob(const PageFtl *ftl, const uint8_t *oob, uint64_t block,
                       uint32_t page, char err[RSD_ERR_LEN])
{
    const RsdSpare *spare = (const RsdSpare *)(oob + RSD_SPARE_OFFSET);

    if (spare->magic != RSD_SPARE_MAGIC ||
        spare->lpn < (spare->kind ? rsd_map_pages_of(ftl->ns)
                                  : ftl->ns->geo.lbas)) {
        return true;
    }
    rsd_set_error(err, "the media file is corrupt: page %u of block %llu is "
                  "said to hold LBA %llu of %llu; restore it from a copy, or "
                  "remove it", page, (ull)block, (ull)spare->lpn,
                  (ull)ftl->ns->geo.lbas);
    return false;
}

/* Of the block's pages that rsd_buffer_settle() will program */
static bool verify_buffered(const PageFtl *ftl, uint64_t block,
                            char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ftl->drive;
    uint32_t page = rsd_rec_next(drive->media.rec[block]), n;

    while ((n = rsd_buffer_has(drive, block, page))) {
        for (uint32_t i = 0; drive->media.data && i < n; i++) {
            if (!verify_oob(ftl, rsd_buffer_oob(drive, block, page, i), block,
                            page + i, err)) {
                return false;
            }
        }
        page += drive->unit;
    }
    return true;
}

static bool verify(const PageFtl *ftl, char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ftl->drive;

    FOR_EACH_BLOCK(ftl, b) {
        uint32_t next = rsd_rec_next(drive->media.rec[b]);

        if (next > drive->pages) {
            rsd_set_error(err, "the media file is corrupt: block %llu has %u "
                          "pages programmed of %u; restore it from a copy, or "
                          "remove it", (ull)b, next, drive->pages);
            return false;
        }
        for (uint32_t p = 0; drive->media.data && p < next; p++) {
            if (!verify_oob(ftl, rsd_media_oob(&drive->media, b, p), b, p,
                            err)) {
                return false;
            }
        }
        if (!verify_buffered(ftl, b, err)) {
            return false;
        }
    }
    return true;
}

/* Takes in the programmed pages of a block. */
static void recover_pages(PageFtl *ftl, uint32_t block)
{
    RsdDrive *drive = ftl->drive;
    PageBlock *pb = &ftl->blocks[block];
    uint32_t next = rsd_rec_next(drive->media.rec[block]);

    for (uint32_t p = 0; drive->media.data && p < next; p++) {
        const RsdSpare *spare = spare_of(ftl, block, p);
        uint32_t number = page_number(ftl, block, p), other;

        if (!spare) {
            continue;
        }
        ftl->p2l[number] = spare->lpn;
        if (spare->seq >= drive->seq) {
            drive->seq = spare->seq + 1;
        }
        if (spare->seq > pb->stamp) {
            pb->stamp = spare->seq;
        }
        if (spare->kind) {
            /* with the whole map in RAM they are of no use */
            if (ftl->cache) {
                pb->map = true;
                rsd_cache_recover(ftl, number, spare);
            }
            continue;
        }
        if (trimmed(ftl, spare->lpn)) {
            continue;
        }
        other = ftl->l2p[spare->lpn] - 1;
        ftl->mapped[spare->lpn / MAP_SPAN] += other == RSD_NONE;
        if (other != RSD_NONE) {
            uint32_t holder = other / drive->pages;

            if (spare_of(ftl, holder, other % drive->pages)->seq >=
                spare->seq) {
                continue;
            }
            ftl->blocks[holder].valid--;
        }
        ftl->l2p[spare->lpn] = number + 1;
        pb->valid++;
    }
}

/* Of the blocks that were being filled, the host and copies go on with one. */
static void recover_frontier(PageFtl *ftl, uint32_t block)
{
    Frontier *f = frontier_of(ftl, die_of(ftl, block));
    uint32_t next = rsd_rec_next(ftl->drive->media.rec[block]);
    const RsdSpare *first = spare_of(ftl, block, 0);
    OpenBlock *open = ftl->own && first && first->copy ? &f->copies : &f->host;

    if (ftl->drive->pages - next <= pages_left(ftl, open) ||
        ftl->blocks[block].map || (first && first->kind)) {
        return;
    }
    *open = (OpenBlock){ block, next };
}

/* Opens what a frontier goes on with. False: the host lacks space for it. */
static bool recover_open(PageFtl *ftl, Frontier *f, OpenBlock *open,
                         char err[RSD_ERR_LEN])
{
    int ret;

    if (open->block == RSD_NONE) {
        return true;
    }
    ret = rsd_media_reserve(&ftl->drive->media, open->block);
    if (ret) {
        rsd_set_error(err, "no space on the host's disk for blocks that are "
                      "partly written (%s): free some", strerror(-ret));
        return false;
    }
    ftl->blocks[open->block].state = BLOCK_OPEN;
    if (open == for_copies(ftl, f)) {
        f->space += pages_left(ftl, open);
    }
    return true;
}

typedef struct Aged {
    uint64_t stamp;
    uint32_t block;
} Aged;

static int by_age(const void *a, const void *b)
{
    const Aged *x = a, *y = b;

    if (x->stamp != y->stamp) {
        return x->stamp < y->stamp ? -1 : 1;
    }
    return x->block < y->block ? -1 : 1;
}

/* The blocks that are full, or as good as that, into their lists */
static bool recover_full(PageFtl *ftl)
{
    uint64_t n = 0;
    Aged *aged = NULL;

    FOR_EACH_BLOCK(ftl, b) {
        n += ftl->blocks[b].state == BLOCK_FULL;
    }
    if (n) {
        aged = malloc(n * sizeof(*aged));
        if (!aged) {
            return false;
        }
        n = 0;
        FOR_EACH_BLOCK(ftl, b) {
            if (ftl->blocks[b].state == BLOCK_FULL) {
                aged[n++] = (Aged){ ftl->blocks[b].stamp, b };
            }
        }
        qsort(aged, n, sizeof(*aged), by_age);
        for (uint64_t i = 0; i < n; i++) {
            make_full(ftl, aged[i].block);
        }
        free(aged);
    }
    return true;
}

/* What every block is; opens the blocks that are to be filled further. */
static bool recover(PageFtl *ftl, char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ftl->drive;

    FOR_EACH_BLOCK(ftl, b) {
        recover_pages(ftl, b);
    }
    FOR_EACH_BLOCK(ftl, b) {
        uint64_t rec = drive->media.rec[b];
        Frontier *f = frontier_of(ftl, die_of(ftl, b));

        drive->blocks[b].owner = RSD_NONE;
        drive->blocks[b].pos = RSD_NONE;
        ftl->good += !(rsd_rec_flags(rec) & RSD_BLOCK_BAD);
        if (rsd_rec_flags(rec) & RSD_BLOCK_BAD) {
            ftl->blocks[b].state = BLOCK_BAD;
        } else if (rsd_rec_next(rec)) {
            ftl->blocks[b].state = BLOCK_FULL;
            recover_frontier(ftl, b);
        } else {
            drive->blocks[b].pos = 0;       /* for rsd_pool_fill() */
            f->free++;
            ftl->free++;
            f->space += drive->pages;
        }
    }
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        Frontier *f = &ftl->frontiers[i];

        /* a victim that was being copied may need all of it */
        if (ftl->own && !f->free &&
            pages_left(ftl, &f->host) > pages_left(ftl, &f->copies)) {
            OpenBlock swap = f->host;

            f->host = f->copies;
            f->copies = swap;
        }
        if (!recover_open(ftl, f, &f->host, err) ||
            !recover_open(ftl, f, &f->copies, err)) {
            return false;
        }
    }
    return true;
}

static size_t map_size(const PageFtl *ftl)
{
    return ftl->ns->geo.lbas * sizeof(uint32_t);
}

static size_t mapped_size(const PageFtl *ftl)
{
    return rsd_div_round_up(ftl->ns->geo.lbas, MAP_SPAN) * sizeof(uint16_t);
}

static size_t reverse_size(const PageFtl *ftl)
{
    return (size_t)ftl->drive->dies * ftl->drive->die_blocks *
           ftl->drive->pages * sizeof(uint32_t);
}

static size_t blocks_size(const PageFtl *ftl)
{
    return (size_t)ftl->drive->dies * ftl->drive->die_blocks *
           sizeof(PageBlock);
}

static size_t lists_size(const PageFtl *ftl)
{
    return (ftl->drive->pages + 1) * sizeof(uint32_t);
}

static void page_close(Ns *ns)
{
    PageFtl *ftl = ns->state;
    RsdDrive *drive = ns->drive;

    if (!ftl) {
        return;
    }
    for (uint32_t d = 0; ftl->dies && d < drive->dies; d++) {
        rsd_pool_fini(drive, &ftl->dies[d].pool);
        rsd_release(drive, ftl->dies[d].lists, lists_size(ftl));
    }
    rsd_cache_fini(ftl);
    rsd_waits_fini(&ftl->waits);
    rsd_release(drive, ftl->dies, drive->dies * sizeof(PageDie));
    rsd_release(drive, ftl->frontiers,
                ftl->num_frontiers * sizeof(Frontier));
    rsd_release(drive, ftl->blocks, blocks_size(ftl));
    rsd_release(drive, ftl->l2p, map_size(ftl));
    rsd_release(drive, ftl->mapped, mapped_size(ftl));
    rsd_release(drive, ftl->p2l, reverse_size(ftl));
    rsd_release(drive, ftl, sizeof(*ftl));
    ns->state = NULL;
}

/* Memory, and the state of a drive without any block */
static bool init(PageFtl *ftl)
{
    RsdDrive *drive = ftl->drive;

    ftl->l2p = rsd_alloc(drive, map_size(ftl));
    ftl->mapped = rsd_alloc(drive, mapped_size(ftl));
    ftl->p2l = rsd_alloc(drive, reverse_size(ftl));
    ftl->blocks = rsd_alloc(drive, blocks_size(ftl));
    ftl->frontiers = rsd_alloc(drive, ftl->num_frontiers * sizeof(Frontier));
    ftl->dies = rsd_alloc(drive, drive->dies * sizeof(PageDie));
    if (!ftl->l2p || !ftl->mapped || !ftl->p2l || !ftl->blocks ||
        !ftl->frontiers || !ftl->dies) {
        return false;
    }
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        uint64_t good = good_blocks(ftl->ns, i, ftl->num_frontiers);

        ftl->frontiers[i].host.block = RSD_NONE;
        ftl->frontiers[i].copies.block = RSD_NONE;
        ftl->frontiers[i].map.block = RSD_NONE;
        ftl->frontiers[i].turn = i;
        ftl->frontiers[i].low = low_blocks(ftl->ns, good);
        ftl->low += ftl->frontiers[i].low;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        PageDie *pd = &ftl->dies[d];

        pd->victim.block = RSD_NONE;
        pd->worn = RSD_NONE;
        pd->lowest = drive->pages + 1;
        pd->lists = rsd_alloc(drive, lists_size(ftl));
        if (!pd->lists || !rsd_pool_init(ftl->ns, &pd->pool)) {
            return false;
        }
        for (uint32_t i = 0; i <= drive->pages; i++) {
            pd->lists[i] = RSD_NONE;
        }
    }
    ftl->own = copies_are_apart(ftl->ns);
    ftl->reserve = reserved_pages(ftl->ns);
    return !rsd_map_is_cached(ftl->ns) || rsd_cache_init(ftl);
}

static bool page_open(Ns *ns, char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;
    PageFtl *ftl = rsd_alloc(drive, sizeof(*ftl));

    ns->state = ftl;
    if (ftl) {
        ftl->drive = drive;
        ftl->ns = ns;
        ftl->num_frontiers = num_frontiers(drive);
        ftl->waits.ns = ns;
        ftl->waits.freed = freed;
        ftl->waits.width = rsd_map_is_cached(ns) ? WAIT_WORDS : 0;
        ns->waits = &ftl->waits;
    }
    if (!ftl || !init(ftl)) {
        rsd_set_error(err, "no memory for the map of %llu pages: choose a "
                      "smaller drive", (ull)ns->geo.lbas);
        return false;
    }
    if (!verify(ftl, err)) {
        return false;
    }
    rsd_buffer_settle(ns);
    if (!recover(ftl, err)) {
        return false;
    }
    if (!recover_full(ftl)) {
        rsd_set_error(err, "no memory to sort the full blocks: choose a "
                      "smaller drive");
        return false;
    }
    look_at_room(ftl);
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_pool_fill(drive, &ftl->dies[d].pool, d);
        measure_wear(ftl, d);
        ftl->dies[d].look = true;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_sched_background(drive, d);
    }
    return true;
}

#define CALLBACKS                                   \
    .geometry = page_geometry,                      \
    .open = page_open,                              \
    .close = page_close,                            \
    .submit = page_submit,                          \
    .op_done = page_op_done,                        \
    .op_buffered = page_op_buffered,                \
    .pad = page_pad,                                \
    .has_background = page_has_background,          \
    .background = page_background,                  \
    .format = page_format

const Personality rsd_ftl_page = { CALLBACKS, .variant = PAGE_WHOLE };
const Personality rsd_ftl_dftl = { CALLBACKS, .variant = PAGE_DFTL };
