/*
 * What drives that map whole blocks have of each: logical blocks, groups, units.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "block-map.h"

typedef unsigned long long ull;

static uint32_t num_lanes(const Ns *ns)
{
    return ns->drive->cfg.stripe == RSD_STRIPE_ALL ? ns->drive->dies : 1;
}

uint32_t rsd_map_groups(const Ns *ns)
{
    return ns->drive->dies / num_lanes(ns);
}

uint32_t rsd_map_span(const Ns *ns)
{
    return ns->drive->pages * num_lanes(ns);
}

uint32_t rsd_map_logical(const Ns *ns, uint32_t group)
{
    uint32_t groups = rsd_map_groups(ns);

    return (ns->geo.lbas / rsd_map_span(ns) + groups - 1 - group) / groups;
}

/* Those of the group's die that has fewest */
uint32_t rsd_map_good_units(const Ns *ns, uint32_t group, bool when_new)
{
    const RsdDrive *drive = ns->drive;
    uint32_t lanes = num_lanes(ns), least = UINT32_MAX;

    for (uint32_t lane = 0; lane < lanes; lane++) {
        const uint64_t *rec = drive->media.rec + ((size_t)group * lanes +
                                                  lane) * drive->die_blocks;
        uint32_t good = 0;

        for (uint32_t b = ns->first; b < ns->end; b++) {
            good += !(rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD) ||
                    (when_new && rsd_rec_flags(rec[b]) & RSD_BLOCK_GROWN);
        }
        least = good < least ? good : least;
    }
    return least;
}

bool rsd_map_geometry(Ns *ns, const BlockPolicy *policy,
                      char err[RSD_ERR_LEN])
{
    uint32_t extra = policy->extra;
    const RsdConfig *cfg = &ns->drive->cfg;
    const char *name = rsd_ftl_names[cfg->ftl];
    uint64_t user = rsd_exported_pages(ns);
    uint64_t span = rsd_map_span(ns);

    ns->geo.zoned = false;
    ns->geo.max_oob = RSD_SPARE_OFFSET;
    ns->geo.lbas = user / span * span;
    if (!ns->geo.lbas) {
        rsd_set_error(err, "over-provision=%llu leaves the host %llu pages, "
                      "but ftl=%s with stripe=%s maps %llu at a time; choose "
                      "more blocks, or a lower over-provision",
                      (ull)cfg->over_provision, (ull)user, name,
                      rsd_stripe_names[cfg->stripe], (ull)span);
        return false;
    }
    for (uint32_t g = 0; g < rsd_map_groups(ns); g++) {
        uint32_t good = rsd_map_good_units(ns, g, true);
        uint32_t need = rsd_map_logical(ns, g) + extra;

        if (good < need) {
            rsd_set_error(err, "ftl=%s needs %u good flash blocks in each way "
                          "(%u for data, %u for merges), but channel %llu way "
                          "%llu has %u: raise over-provision (now %llu) or "
                          "spare-blocks (now %llu), or lower bad-blocks-ppm",
                          name, need, need - extra, extra,
                          (ull)(g % cfg->channels), (ull)(g / cfg->channels),
                          good, (ull)cfg->over_provision,
                          (ull)cfg->spare_blocks);
            return false;
        }
    }
    return true;
}
