/*
 * Opening: what the pages' OOB says becomes the map again.
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
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>

#include "page-ftl.h"

/* Takes in a programmed page. */
static void found(Ns *ns, uint32_t block, uint32_t page, const RsdSpare *spare)
{
    PageFtl *ftl = ns->state;
    PageBlock *pb = &ftl->blocks[block];
    const RsdMedia *media = &ns->drive->media;
    uint32_t number = page_number(ftl, block, page), other;

    ftl->p2l[number] = spare->lpn;
    if (spare->seq > pb->stamp) {
        pb->stamp = spare->seq;
    }
    if (spare->kind) {
        /* with the whole map in RAM they are of no use */
        if (ftl->cache) {
            pb->map = true;
            rsd_cache_recover(ftl, number, spare);
        }
        return;
    }
    if (rsd_media_trimmed(media, spare->lpn)) {
        return;
    }
    other = *map_entry(ftl, spare->lpn) - 1;
    ftl->mapped[spare->lpn / MAP_SPAN] += other == RSD_NONE;
    if (other != RSD_NONE) {
        if (rsd_page_spare(media, block_of(ftl, other),
                           page_of(ftl, other))->seq >= spare->seq) {
            return;
        }
        ftl->blocks[block_of(ftl, other)].valid--;
    }
    *rsd_page_new_entry(ftl, spare->lpn) = number + 1;
    pb->valid++;
}

/* Of the blocks that were being filled, the host and copies go on with one. */
static void recover_frontier(PageFtl *ftl, uint32_t block)
{
    Frontier *f = frontier_of(ftl, die_of(ftl, block));
    uint32_t next = rsd_rec_next(ftl->drive->media.rec[block]);
    const RsdSpare *first = rsd_page_spare(&ftl->drive->media, block, 0);
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

bool rsd_page_recover_full(PageFtl *ftl)
{
    uint64_t n = 0;
    Aged *aged = NULL;

    RSD_FOR_EACH_BLOCK(ftl->ns, b) {
        n += ftl->blocks[b].state == BLOCK_FULL;
    }
    if (n) {
        aged = malloc(n * sizeof(*aged));
        if (!aged) {
            return false;
        }
        n = 0;
        RSD_FOR_EACH_BLOCK(ftl->ns, b) {
            if (ftl->blocks[b].state == BLOCK_FULL) {
                aged[n++] = (Aged){ ftl->blocks[b].stamp, b };
            }
        }
        qsort(aged, n, sizeof(*aged), by_age);
        for (uint64_t i = 0; i < n; i++) {
            rsd_page_make_full(ftl, aged[i].block);
        }
        free(aged);
    }
    return true;
}

bool rsd_page_recover(PageFtl *ftl, char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ftl->drive;

    if (!rsd_scan_pages(ftl->ns, rsd_map_pages_of(ftl->ns), found, err)) {
        return false;
    }
    RSD_FOR_EACH_BLOCK(ftl->ns, b) {
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
