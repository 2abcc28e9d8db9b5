/*
 * How much flash a page map takes, and what is left for the host.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdio.h>

#include "page-ftl.h"

typedef unsigned long long ull;

/* The host's LBAs are a multiple of that: 1 MiB */
#define GRANULE 256u

uint64_t rsd_map_pages_of(const Ns *ns)
{
    return ns->personality->variant == PAGE_DFTL
           ? rsd_div_round_up(ns->geo.lbas, MAP_ENTRIES) : 0;
}

bool rsd_map_is_cached(const Ns *ns)
{
    return ns->personality->variant == PAGE_DFTL &&
           ns->drive->cfg.map_cache / MAP_ENTRY_BYTES < ns->geo.lbas;
}

uint32_t rsd_page_num_frontiers(const RsdDrive *drive)
{
    return drive->cfg.frontiers ? drive->cfg.frontiers : drive->dies;
}

bool rsd_page_copies_are_apart(const Ns *ns)
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
    return reserved_blocks(ns) + rsd_page_copies_are_apart(ns) +
           (rsd_map_is_cached(ns) ? 2 : 0);
}

/* Pages of a block that filler may take */
static uint32_t filler(const RsdDrive *drive)
{
    return drive->unit > 1 ? drive->unit : 0;
}

uint32_t rsd_page_reserve_filler(const Ns *ns)
{
    return (rsd_map_is_cached(ns) ? 2 : 1) * filler(ns->drive);
}

uint32_t rsd_page_reserved_pages(const Ns *ns)
{
    return reserved_blocks(ns) * ns->drive->pages + rsd_page_reserve_filler(ns);
}

uint32_t rsd_page_least_low(const Ns *ns)
{
    uint32_t pages = ns->drive->pages, reserved = rsd_page_reserved_pages(ns);

    return (rsd_page_copies_are_apart(ns) ? rsd_div_round_up(reserved, pages)
                                 : reserved / pages) + 1;
}

uint32_t rsd_page_low_blocks(const Ns *ns, uint64_t good)
{
    uint64_t low = rsd_div_round_up(good * ns->drive->cfg.gc_trigger, 100);
    uint64_t least = rsd_page_least_low(ns);

    return low < least ? least : low;
}

/* Pages of good flash that are needed beyond what the host sees */
static uint64_t needed_pages(const Ns *ns)
{
    const RsdDrive *drive = ns->drive;

    return rsd_page_num_frontiers(drive) *
           ((uint64_t)kept_blocks(ns) * drive->pages +
            rsd_page_reserve_filler(ns)) +
           (rsd_map_is_cached(ns) ? rsd_map_pages_of(ns) : 0);
}

void rsd_page_look_at_room(PageFtl *ftl)
{
    const RsdDrive *drive = ftl->drive;

    if (ftl->good * (drive->pages - filler(drive)) <=
        ftl->ns->geo.lbas + needed_pages(ftl->ns)) {
        rsd_drive_wear_out(ftl->drive);
    }
}

uint64_t rsd_page_good_blocks(const Ns *ns, uint32_t first_die, uint32_t step)
{
    uint64_t good = 0;

    for (uint32_t die = first_die; die < ns->drive->dies; die += step) {
        good += rsd_nand_good_when_new(ns, die);
    }
    return good;
}

/*
 * The least over-provision with which the host's pages leave room in so many
 * that are sure to hold data, also for the free blocks that gc-trigger wants.
 * 0: none does
 */
static uint64_t least_over_provision(const Ns *ns, uint64_t flash, uint64_t low)
{
    uint64_t most = rsd_prop_find("over-provision")->max;
    Ns other = *ns;

    for (uint64_t i = ns->drive->cfg.over_provision + 1; i <= most; i++) {
        other.geo.lbas = rsd_exported_pages_with(ns, i) / GRANULE * GRANULE;
        if (other.geo.lbas && flash > other.geo.lbas + needed_pages(&other) &&
            flash >= other.geo.lbas + low * ns->drive->pages) {
            return i;
        }
    }
    return 0;
}

static bool refuse_room(const Ns *ns, uint64_t flash, uint64_t low,
                        char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ns->drive;
    uint64_t good = rsd_page_good_blocks(ns, 0, 1);
    uint64_t least = least_over_provision(ns, flash, low);
    char fits[64] = "choose more blocks";

    if (least) {
        snprintf(fits, sizeof(fits), "set over-provision to %llu or more",
                 (ull)least);
    }
    rsd_set_error(err, "over-provision=%llu: of %llu pages of good flash the "
                  "host sees %llu; %llu may hold filler (%u a block, with "
                  "units of %u), and more than %llu are needed for collection "
                  "(%u blocks for each of %u frontiers, %llu pages of the "
                  "map): %s, or choose fewer frontiers",
                  (ull)drive->cfg.over_provision, (ull)(good * drive->pages),
                  (ull)ns->geo.lbas, (ull)(good * filler(drive)),
                  filler(drive), drive->unit, (ull)needed_pages(ns),
                  kept_blocks(ns), rsd_page_num_frontiers(drive),
                  rsd_map_is_cached(ns) ? (ull)rsd_map_pages_of(ns) : 0, fits);
    return false;
}

static bool check_geometry(Ns *ns, char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ns->drive;
    const RsdConfig *cfg = &drive->cfg;
    uint32_t n = rsd_page_num_frontiers(drive);
    uint64_t flash = 0, low = 0;

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
        uint64_t good = rsd_page_good_blocks(ns, i, n);
        uint64_t keep = rsd_page_low_blocks(ns, good);

        flash += good * (drive->pages - filler(drive));
        low += keep > rsd_page_least_low(ns) ? keep : 0;
    }
    if (!ns->geo.lbas) {
        rsd_set_error(err, "over-provision=%llu leaves %llu pages of %llu, "
                      "less than 1 MiB: choose more blocks, or less "
                      "over-provision", (ull)cfg->over_provision,
                      (ull)rsd_exported_pages(ns),
                      (ull)(rsd_page_good_blocks(ns, 0, 1) * drive->pages));
        return false;
    }
    if (flash <= ns->geo.lbas + needed_pages(ns)) {
        return refuse_room(ns, flash, low, err);
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

bool rsd_page_geometry(Ns *ns, char err[RSD_ERR_LEN])
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
