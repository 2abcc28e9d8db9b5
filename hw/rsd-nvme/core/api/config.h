/*
 * rsd core: what all floors share of the settings: sizes that follow from them,
 * the drive's randomness, and how an error is said.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_CONFIG_H
#define RSD_CONFIG_H

#include "rsd.h"

#define RSD_PAGE_SIZE 4096u
/*
 * The array keeps so many bytes of OOB for each page, whatever the host sees of
 * it.
 */
#define RSD_OOB_SIZE 128u
/*
 * In a conventional namespace, the last of these bytes are the drive's, and the
 * host has the first.
 */
#define RSD_SPARE_OFFSET 64u
/*
 * A drive has no more flash blocks than this, spares included. It bounds our
 * memory.
 */
#define RSD_MAX_BLOCKS (UINT64_C(1) << 25)
#define RSD_MAX_CAPACITY (UINT64_C(16) << 40)
#define RSD_MAX_EXT_BYTES (UINT64_C(1) << 30)

#define RSD_NONE UINT32_MAX

void rsd_set_error(char err[RSD_ERR_LEN], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Returns Splitmix64 of seed and index. It is the drive's only randomness, the
 * same on every machine and independent of the order of the calls.
 */
uint64_t rsd_random(uint64_t seed, uint64_t index);

static inline uint64_t rsd_div_round_up(uint64_t n, uint64_t d)
{
    return (n + d - 1) / d;
}

/*
 * Units. What most of the core calls a page is a slot: 4 KiB of data with
 * their OOB, the unit of maps. The pages of one number in all planes are a row;
 * slot s of a block is in row s / slots of a row, there in plane s / slots of a
 * page mod planes. What is programmed at once is a unit: a row, or with
 * one-shot all rows of a word line. By default all of them are the same.
 */

static inline uint32_t rsd_row_slots(const RsdConfig *cfg)
{
    return cfg->planes * (cfg->page_size / RSD_PAGE_SIZE);
}

static inline uint32_t rsd_unit_slots(const RsdConfig *cfg)
{
    return rsd_row_slots(cfg) * (cfg->one_shot ? cfg->cell + 1 : 1);
}

static inline uint64_t rsd_block_slots(const RsdConfig *cfg)
{
    return cfg->pages * rsd_row_slots(cfg);
}

/* Says whether the drive's translation layer has a trait, RSD_FTL_... */
bool rsd_ftl_is(const RsdConfig *cfg, unsigned trait);

/* These say whether there is a write buffer, and of how many slots. */
static inline bool rsd_buffer_on(const RsdConfig *cfg)
{
    return cfg->write_buffer || rsd_unit_slots(cfg) > 1;
}

/* These return the slots of a random write area, and of all of them. */
static inline uint64_t rsd_zrwa_slots(const RsdConfig *cfg)
{
    return cfg->zrwa_size / RSD_PAGE_SIZE;
}

static inline uint64_t rsd_zrwa_all_slots(const RsdConfig *cfg)
{
    return cfg->zrwa * rsd_zrwa_slots(cfg);
}

/* Returns the slots of the buffer, without the random write areas. */
static inline uint64_t rsd_buffer_slots(const RsdConfig *cfg)
{
    uint64_t asked = cfg->write_buffer / RSD_PAGE_SIZE -
                     rsd_zrwa_all_slots(cfg);
    uint64_t least = cfg->channels * cfg->ways * rsd_unit_slots(cfg);

    return asked > least ? asked : least;
}

#endif
