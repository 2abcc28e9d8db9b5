/*
 * The page-mapping personality (RISA 4.1): any logical page (LBA) may be in any
 * flash page. Its files call downwards only, in this order:
 *
 *   page-ftl.c       the tables of ftl=page and ftl=dftl; opening and closing
 *   page-recover.c   what is in the flash when it is opened
 *   page-done.c      operations that are done, idle dies
 *   page-submit.c    commands, and those that wait
 *   page-wear.c      levelling, and what there is to do in idle time
 *   page-collect.c   victims: copies, erases
 *   map-cache.c      ftl=dftl: a cached map
 *   page-map.c       the map, and full blocks
 *   page-frontier.c  free pages
 *   page-geometry.c  how much flash it all takes
 *
 * What has to go up goes through PageUp.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "page-ftl.h"

static size_t leaves_size(const PageFtl *ftl)
{
    uint64_t lbas = ftl->ns->geo.lbas;

    return lbas < RSD_SPARSE_MAP ? 0 : rsd_div_round_up(lbas, MAP_LEAF) *
                                       sizeof(uint32_t);
}

/* A sparse map has the empty leaf besides. */
static size_t map_size(const PageFtl *ftl)
{
    return (ftl->ns->geo.lbas + 2 * MAP_LEAF) * sizeof(uint32_t);
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
    rsd_release(drive, ftl->leaves, leaves_size(ftl));
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

    if (leaves_size(ftl)) {
        ftl->leaves = rsd_alloc(drive, leaves_size(ftl));
        ftl->num_leaves = 1;
        if (!ftl->leaves) {
            return false;
        }
    }
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
        uint64_t good = rsd_page_good_blocks(ftl->ns, i, ftl->num_frontiers);

        ftl->frontiers[i].host.block = RSD_NONE;
        ftl->frontiers[i].copies.block = RSD_NONE;
        ftl->frontiers[i].map.block = RSD_NONE;
        ftl->frontiers[i].turn = i;
        ftl->frontiers[i].low = rsd_page_low_blocks(ftl->ns, good);
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
    ftl->own = rsd_page_copies_are_apart(ftl->ns);
    ftl->reserve = rsd_page_reserved_pages(ftl->ns);
    return !rsd_map_is_cached(ftl->ns) || rsd_cache_init(ftl);
}

static const PageUp page_up = {
    .emptied = rsd_page_advance_victim,
    .closed = rsd_page_close_block,
    .mark = rsd_page_mark,
};

static bool page_open(Ns *ns, char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;
    PageFtl *ftl = rsd_alloc(drive, sizeof(*ftl));

    ns->state = ftl;
    if (ftl) {
        ftl->drive = drive;
        ftl->ns = ns;
        ftl->num_frontiers = rsd_page_num_frontiers(drive);
        ftl->by_frontiers = rsd_divisor(ftl->num_frontiers);
        ftl->up = &page_up;
        rsd_page_waits_init(ftl);
    }
    if (!ftl || !init(ftl)) {
        rsd_set_error(err, "no memory for the map of %llu pages: choose a "
                      "smaller drive", (unsigned long long)ns->geo.lbas);
        return false;
    }
    if (!rsd_page_recover(ftl, err)) {
        return false;
    }
    if (!rsd_page_recover_full(ftl)) {
        rsd_set_error(err, "no memory to sort the full blocks: choose a "
                      "smaller drive");
        return false;
    }
    rsd_page_look_at_room(ftl);
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_pool_fill(drive, &ftl->dies[d].pool, d);
        rsd_wear_measure(ns, d, &ftl->dies[d].wear);
        ftl->dies[d].look = true;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_sched_background(drive, d);
    }
    return true;
}

#define CALLBACKS                               \
    .geometry = rsd_page_geometry,              \
    .open = page_open,                          \
    .close = page_close,                        \
    .submit = rsd_page_submit,                  \
    .expect = rsd_page_expect,                  \
    .op_done = rsd_page_op_done,                \
    .op_buffered = rsd_page_op_buffered,        \
    .pad = rsd_page_pad,                        \
    .has_background = rsd_page_has_background,  \
    .background = rsd_page_background,          \
    .format = rsd_page_format

const Personality rsd_ftl_page = { CALLBACKS, .variant = PAGE_WHOLE };
const Personality rsd_ftl_dftl = {
    CALLBACKS, .variant = PAGE_DFTL, .cmd_size = sizeof(PageCmd),
};
