/*
 * The map of a page map, and its full blocks by what is valid in them.
 *
 * Map. l2p has 4 bytes a logical page, p2l 4 bytes a flash page, both in the
 * host's memory and touched only where something was written: of a drive of a
 * TiB or more also if that is scattered over it. They are rebuilt from the
 * pages' OOB when the drive is opened.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "page-ftl.h"

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

void rsd_page_unlink_full(PageFtl *ftl, uint32_t block)
{
    uint32_t *first = list_of(ftl, block);
    PageBlock *pb = &ftl->blocks[block];

    if (*first == block) {
        *first = pb->next == block ? RSD_NONE : pb->next;
    }
    ftl->blocks[pb->prev].next = pb->next;
    ftl->blocks[pb->next].prev = pb->prev;
}

void rsd_page_make_full(PageFtl *ftl, uint32_t block)
{
    PageBlock *pb = &ftl->blocks[block];
    PageDie *pd = &ftl->dies[die_of(ftl, block)];

    pb->state = BLOCK_FULL;
    pd->stale += ftl->drive->pages - pb->valid;
    pd->look = true;
    link_full(ftl, block);
}

uint32_t *rsd_page_new_entry(PageFtl *ftl, uint32_t lpn)
{
    if (ftl->leaves && !ftl->leaves[lpn / MAP_LEAF]) {
        ftl->leaves[lpn / MAP_LEAF] = ftl->num_leaves++;
    }
    return map_entry(ftl, lpn);
}

void rsd_page_map_page(PageFtl *ftl, uint32_t lpn, uint32_t number)
{
    PageBlock *pb = &ftl->blocks[block_of(ftl, number)];
    uint32_t *entry = rsd_page_new_entry(ftl, lpn);

    ftl->p2l[number] = *entry;
    ftl->mapped[lpn / MAP_SPAN] += !*entry;
    *entry = number + 1;
    pb->valid++;
    pb->stamp = ftl->drive->seq;
}

void rsd_page_invalidate(PageFtl *ftl, uint32_t number)
{
    uint32_t block = block_of(ftl, number);
    PageBlock *pb = &ftl->blocks[block];
    uint32_t die = die_of(ftl, block);

    if (pb->state != BLOCK_FULL) {
        pb->valid--;
        pb->stamp = ftl->drive->seq;
        if (pb->state == BLOCK_VICTIM && !pb->valid) {
            ftl->up->emptied(ftl, die);
        }
        return;
    }
    ftl->dies[die].stale++;
    if (ftl->drive->cfg.gc_policy == RSD_GC_FIFO) {
        pb->valid--;
        return;
    }
    rsd_page_unlink_full(ftl, block);
    pb->valid--;
    pb->stamp = ftl->drive->seq;
    link_full(ftl, block);
    if (!pb->valid) {
        rsd_sched_background(ftl->drive, die);
    }
}

static bool is_programmed(const PageFtl *ftl, uint32_t number)
{
    const RsdDrive *drive = ftl->drive;

    return page_of(ftl, number) <
           rsd_rec_next(drive->media.rec[block_of(ftl, number)]);
}

bool rsd_page_is_content(const PageFtl *ftl, uint32_t lpn, uint32_t number)
{
    uint32_t at = *map_entry(ftl, lpn);

    while (at && at != number + 1 && !is_programmed(ftl, at - 1)) {
        at = ftl->p2l[at - 1];
    }
    return at == number + 1;
}

void rsd_page_unmap_page(PageFtl *ftl, uint32_t number, uint32_t lpn)
{
    uint32_t *entry = map_entry(ftl, lpn);

    while (*entry && *entry != number + 1 &&
           !is_programmed(ftl, *entry - 1)) {
        entry = &ftl->p2l[*entry - 1];
    }
    if (*entry == number + 1) {
        *entry = ftl->p2l[number];
        ftl->mapped[lpn / MAP_SPAN] -= !*map_entry(ftl, lpn);
        ftl->blocks[block_of(ftl, number)].valid--;
    }
}
