/*
 * What the seed decides of blocks: which the factory found bad, and how long
 * each lives.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "media.h"

/* Sets the lives of blocks apart from what else the seed decides */
#define LIFE_SALT UINT64_C(0x6c69666573616c74)

uint64_t rsd_factory_life(const RsdConfig *cfg, uint64_t block)
{
    uint64_t spread = cfg->endurance * cfg->life_spread / 100;
    uint64_t life;

    if (!cfg->life_spread) {
        return UINT64_MAX;
    }
    life = cfg->endurance - spread +
           rsd_random(cfg->seed ^ LIFE_SALT, block) % (2 * spread + 1);
    return life ? life : 1;
}

bool rsd_factory_is_bad(const RsdConfig *cfg, uint64_t block)
{
    return rsd_random(cfg->seed, block) % 1000000 < cfg->bad_ppm;
}

bool rsd_factory_place_bad(const RsdConfig *cfg, uint64_t *rec,
                        char err[RSD_ERR_LEN])
{
    uint32_t die_blocks = cfg->blocks + cfg->spare_blocks;
    /* what a conventional namespace loses, it lacks as over-provisioning */
    uint32_t zoned = rsd_ftl_is(cfg, RSD_FTL_ZONED)
                         ? cfg->blocks - cfg->conv_blocks : 0;
    uint32_t dies = cfg->channels * cfg->ways;

    if (!cfg->bad_ppm) {
        return true;
    }
    for (uint32_t d = 0; d < dies; d++) {
        uint32_t good = zoned + cfg->spare_blocks;

        for (uint32_t b = 0; b < die_blocks; b++) {
            uint64_t i = (uint64_t)d * die_blocks + b;

            if (rsd_factory_is_bad(cfg, i)) {
                rec[i] = rsd_rec(0, 0, RSD_BLOCK_BAD);
                good -= b < zoned + cfg->spare_blocks;
            }
        }
        if (good < zoned) {
            rsd_set_error(err, "bad-blocks-ppm=%llu and seed=%llu leave "
                          "channel %llu way %llu with %u good blocks of %u, "
                          "but %u are needed for the zones: raise spare-blocks "
                          "(now %llu) by %llu or more, lower bad-blocks-ppm, "
                          "or try another seed",
                          (unsigned long long)cfg->bad_ppm,
                          (unsigned long long)cfg->seed,
                          (unsigned long long)(d % cfg->channels),
                          (unsigned long long)(d / cfg->channels),
                          good, zoned + (uint32_t)cfg->spare_blocks, zoned,
                          (unsigned long long)cfg->spare_blocks,
                          (unsigned long long)(zoned - good));
            return false;
        }
    }
    return true;
}
