/*
 * What a namespace has of the flash.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "ftl.h"

uint32_t rsd_nand_good_when_new(const Ns *ns, uint32_t die)
{
    uint64_t first = (uint64_t)die * ns->drive->die_blocks;
    uint32_t good = 0;

    for (uint32_t b = ns->first; b < ns->end; b++) {
        good += !rsd_factory_is_bad(&ns->drive->cfg, first + b);
    }
    return good;
}

uint64_t rsd_exported_pages(const Ns *ns)
{
    return rsd_exported_pages_with(ns, ns->drive->cfg.over_provision);
}

uint64_t rsd_exported_pages_with(const Ns *ns, uint64_t over_provision)
{
    const RsdDrive *drive = ns->drive;
    uint64_t good = 0;

    for (uint32_t die = 0; die < drive->dies; die++) {
        good += rsd_nand_good_when_new(ns, die);
    }
    return good * drive->pages * 100 / (100 + over_provision);
}
