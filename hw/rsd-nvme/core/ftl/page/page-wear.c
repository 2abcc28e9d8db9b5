/*
 * What idle dies of a page map do, and static wear levelling.
 *
 * Levelling. If erase counts within a die differ by more than wl-threshold, an
 * idle die copies what is valid in its least worn full block to its most worn
 * free one: cold data then rests on the worn block. Unless wl-share is 0, a die
 * that need not be idle does so, too, when a block of it was erased, as the next
 * victim of its frontier: if that has a free block beyond its reserve, the most
 * worn free block was erased wl-threshold times more than the least worn full
 * one, and what is valid in that is at most wl-share percent of what others have
 * programmed in the die since it last levelled, or since the drive was opened.
 * What levelling fills is filled to its end: what of a block has no place in it
 * goes where other copies go. Closed before that, it would be collected soon, and
 * the most worn block be erased once more. It is closed when all else waits for
 * free pages. It, and what copies or map pages fill, may be the least worn one,
 * too: if all that it was given is programmed, it is closed and moved, for it may
 * rest half full for long.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "page-ftl.h"

static bool worth_a_look(const PageFtl *ftl, const PageDie *pd)
{
    uint64_t threshold = ftl->drive->cfg.wl_threshold;

    return pd->look && threshold && pd->wear.max - pd->wear.min > threshold;
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
        rsd_page_make_full(ftl, pd->worn);
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
    if (dst == RSD_NONE || dst == src || pd->worn_page == drive->pages ||
        rsd_rec_erases(drive->media.rec[dst]) <= least) {
        dst = most_worn_free(ftl, die);
        if (dst == RSD_NONE ||
            rsd_rec_erases(drive->media.rec[dst]) <= least ||
            !open_worn(ftl, die, dst, keep + lost(ftl, src))) {
            return false;
        }
    } else if (!rsd_page_worn_holds(ftl, src) &&
               f->space - f->owed < ftl->reserve + lost(ftl, src) +
                                    rsd_page_owed(ftl, &ftl->blocks[src])) {
        return false;
    }
    if (ftl->blocks[src].state == BLOCK_OPEN) {
        OpenBlock *open = f->copies.block == src ? &f->copies : &f->map;

        if (f->space - f->owed < ftl->reserve + lost(ftl, src)) {
            return false;
        }
        f->space -= lost(ftl, src);
        *open = (OpenBlock){ RSD_NONE, 0 };
        rsd_page_make_full(ftl, src);
    }
    rsd_page_begin_victim(ftl, src, RSD_CAUSE_WEAR, idle);
    return true;
}

void rsd_page_level_busy(PageFtl *ftl, uint32_t die)
{
    const RsdDrive *drive = ftl->drive;
    const Frontier *f = frontier_of(ftl, die);

    if (drive->cfg.wl_share && !drive->failed &&
        worth_a_look(ftl, &ftl->dies[die]) &&
        f->space - f->owed >= ftl->reserve + drive->pages) {
        begin_levelling(ftl, die, false);
    }
}

bool rsd_page_close_worn(PageFtl *ftl)
{
    bool any = false;

    for (uint32_t die = 0; die < ftl->drive->dies; die++) {
        PageDie *pd = &ftl->dies[die];

        if (pd->worn != RSD_NONE && pd->worn_page < ftl->drive->pages &&
            pd->victim.block == RSD_NONE) {
            rsd_page_make_full(ftl, pd->worn);
            pd->worn = RSD_NONE;
            any = true;
        }
    }
    return any;
}

bool rsd_page_has_background(const Ns *ns, uint32_t die)
{
    const PageFtl *ftl = ns->state;
    const PageDie *pd = ftl ? &ftl->dies[die] : NULL;

    return pd && pd->victim.block == RSD_NONE && !ftl->drive->failed &&
           (has_empty(ftl, pd) || worth_a_look(ftl, pd));
}

bool rsd_page_begin_background(PageFtl *ftl, uint32_t die)
{
    PageDie *pd = &ftl->dies[die];

    if (has_empty(ftl, pd)) {
        rsd_page_begin_victim(ftl, pd->lists[0], RSD_CAUSE_CLEAN, true);
        return true;
    }
    return begin_levelling(ftl, die, true);
}
