/*
 * Free pages of a page map, and where the next ones go.
 *
 * Frontiers. Pages are given away in turn by the write frontiers, a page each:
 * by default one a die, so that consecutive pages go over the channels, then
 * over the ways. A frontier fills one block after the other, each on the next
 * of its dies, the die's least worn free one (pool.c). A frontier that has no
 * page to give is passed over, unless it is one of many: then the command
 * waits, and those after it wait behind it.
 *
 * Stripes. Were it always passed over, the pages that wait would all go to the
 * first die that has emptied a block, a block of them in a row, and be read back
 * from this die alone. A drive that fills superblocks waits for each die of the
 * stripe, and writes as slowly as the slowest. Between the two, an eighth of the
 * frontiers may lack a page, or one if they are fewer than sixteen. So seven
 * dies of eight have a page whenever one is passed over, and a die that is much
 * fuller than others, for want of good blocks, holds nobody up. If more lack a
 * page, the host waits until a victim of one of them is erased. It does not wait
 * if none of these has one that is being emptied.
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
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>

#include "page-ftl.h"

uint32_t rsd_page_owed(const PageFtl *ftl, const PageBlock *pb)
{
    return pb->valid + (ftl->own && pb->valid ? ftl->drive->unit - 1 : 0);
}

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

uint32_t rsd_page_take_page(PageFtl *ftl, Frontier *f, OpenBlock *open)
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

bool rsd_page_has_room(const PageFtl *ftl, const Frontier *f)
{
    if (ftl->own) {
        return pages_left(ftl, &f->host) ||
               f->space - f->owed >= ftl->reserve + ftl->drive->pages;
    }
    return f->space - f->owed > ftl->reserve;
}

/* Is a block of its dies on the way to be free? */
static bool is_emptying(const PageFtl *ftl, const Frontier *f)
{
    for (uint32_t die = f - ftl->frontiers; f->victims && die < ftl->drive->dies;
         die += ftl->num_frontiers) {
        const Victim *v = &ftl->dies[die].victim;

        if (v->block != RSD_NONE && !v->stalled) {
            return true;
        }
    }
    return false;
}

bool rsd_page_too_few_have_room(const PageFtl *ftl)
{
    uint32_t may_lack = ftl->num_frontiers < 16 ? 1 : ftl->num_frontiers / 8;
    uint32_t lacking = 0;
    bool emptying = false;

    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        const Frontier *f = &ftl->frontiers[i];

        if (!rsd_page_has_room(ftl, f)) {
            lacking++;
            emptying = emptying || is_emptying(ftl, f);
        }
        if (emptying && lacking > may_lack) {
            return true;
        }
    }
    return false;
}

bool rsd_page_fits(const PageFtl *ftl, const Frontier *f, uint32_t block)
{
    return ftl->blocks[block].valid + ftl->drive->unit - 1 <=
           f->space - f->owed;
}

bool rsd_page_worn_holds(const PageFtl *ftl, uint32_t block)
{
    const PageDie *pd = &ftl->dies[die_of(ftl, block)];

    return pd->worn != RSD_NONE &&
           ftl->blocks[block].valid <= ftl->drive->pages - pd->worn_page;
}

Frontier *rsd_page_taker(PageFtl *ftl, uint32_t block)
{
    Frontier *own = frontier_of(ftl, die_of(ftl, block)), *best = own;

    for (uint32_t i = 0;
         !rsd_page_fits(ftl, own, block) && i < ftl->num_frontiers; i++) {
        Frontier *f = &ftl->frontiers[i];

        best = f->space - f->owed > best->space - best->owed ? f : best;
    }
    return best;
}

bool rsd_page_fill_unit(PageFtl *ftl, uint32_t block, uint32_t *page)
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

bool rsd_page_fill_open(PageFtl *ftl, Frontier *f, OpenBlock *open)
{
    uint32_t unit = ftl->drive->unit, n = pages_left(ftl, open) % unit;
    uint32_t less = open == for_copies(ftl, f) ? n : 0;

    /* the buffer may answer at once, and needs to find the right space */
    f->space -= less;
    if (rsd_page_fill_unit(ftl, open->block, &open->page)) {
        return true;
    }
    f->space += less;
    return false;
}

void rsd_page_pad(Ns *ns, uint32_t block)
{
    PageFtl *ftl = ns->state;
    PageDie *pd = &ftl->dies[die_of(ftl, block)];
    Frontier *f = frontier_of(ftl, die_of(ftl, block));

    if (f->host.block == block) {
        rsd_page_fill_open(ftl, f, &f->host);
    } else if (pd->worn == block) {
        rsd_page_fill_unit(ftl, block, &pd->worn_page);
    }
}

void rsd_page_fill_map_units(PageFtl *ftl)
{
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        Frontier *f = &ftl->frontiers[i];

        rsd_page_fill_unit(ftl, f->map.block, &f->map.page);
    }
}

void rsd_page_fill_all(PageFtl *ftl)
{
    for (uint32_t i = 0; i < ftl->num_frontiers; i++) {
        Frontier *f = &ftl->frontiers[i];

        rsd_page_fill_open(ftl, f, &f->host);
        rsd_page_fill_open(ftl, f, &f->copies);
    }
    rsd_page_fill_map_units(ftl);
    for (uint32_t die = 0; die < ftl->drive->dies; die++) {
        rsd_page_fill_unit(ftl, ftl->dies[die].worn, &ftl->dies[die].worn_page);
    }
}
