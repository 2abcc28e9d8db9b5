/*
 * Settings: the table made real, presets, checks.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config.h"

#define NAME(NAME, number, name, doc, traits) [number] = #name
const char *const rsd_ftl_names[] = { RSD_FTLS_LIST(NAME), NULL };
#undef NAME
const char *const rsd_gc_policy_names[] = {
    "greedy", "cost-benefit", "fifo", NULL
};
const char *const rsd_gc_frontiers_names[] = { "own", "shared", NULL };
const char *const rsd_gc_unit_names[] = { "block", "all", NULL };
const char *const rsd_ack_names[] = { "program", "buffer", NULL };
const char *const rsd_stripe_names[] = { "block", "all", NULL };
const char *const rsd_cell_names[] = { "slc", "mlc", "tlc", "qlc", NULL };
const char *const rsd_switch_names[] = { "off", "on", NULL };
const char *const rsd_segment_names[] = { "all", "way", NULL };
const char *const rsd_queue_names[] = { "way", "global", NULL };
const char *const rsd_reset_names[] = { "mark", "erase", NULL };
const char *const rsd_finish_names[] = { "mark", "pad", NULL };

#define NUM(field, name, dflt, min, max, geo, unit, doc) \
    { name, RSD_PROP_NUM, offsetof(RsdConfig, field), dflt, min, max, NULL, \
      geo, unit, doc },
#define SIZE(field, name, dflt, min, max, geo, unit, doc) \
    { name, RSD_PROP_SIZE, offsetof(RsdConfig, field), dflt, min, max, NULL, \
      geo, unit, doc },
#define ENUM(field, name, dflt, names, geo, doc) \
    { name, RSD_PROP_ENUM, offsetof(RsdConfig, field), dflt, 0, \
      sizeof(names) / sizeof(char *) - 2, names, geo, "", doc },

const RsdProp rsd_props[] = { RSD_PROPS(NUM, SIZE, ENUM) };
const size_t rsd_num_props = sizeof(rsd_props) / sizeof(rsd_props[0]);

const RsdProp *rsd_prop_find(const char *name)
{
    for (size_t i = 0; i < rsd_num_props; i++) {
        if (!strcmp(rsd_props[i].name, name)) {
            return &rsd_props[i];
        }
    }
    return NULL;
}

static void preset_custom(RsdConfig *cfg)
{
    for (size_t i = 0; i < rsd_num_props; i++) {
        *rsd_prop_value(cfg, &rsd_props[i]) = rsd_props[i].dflt;
    }
}

static void preset_risa(RsdConfig *cfg)
{
    preset_custom(cfg);
    cfg->channels = 8;
    cfg->ways = 4;
    cfg->pages = 128;
    cfg->blocks = 128;
    cfg->t_cmd_ns = 2500;
    cfg->t_xfer_ns = 30833;
    cfg->t_read_ns = 60000;
    cfg->t_prog_ns = 444278;
    cfg->t_erase_ns = 3500000;
}

static void preset_redo(RsdConfig *cfg)
{
    preset_risa(cfg);
    cfg->channels = 2;
    cfg->ways = 2;
    cfg->blocks = 256;
}

/*
 * PRESETS.md has the values of the next three presets, and how they were found.
 */

static void preset_zn540(RsdConfig *cfg)
{
    preset_custom(cfg);
    cfg->channels = 8;
    cfg->ways = 4;
    cfg->planes = 2;
    cfg->page_size = 16384;
    cfg->cell = RSD_CELL_TLC;
    cfg->one_shot = RSD_ON;
    cfg->pages = 3 * 359;
    cfg->blocks = 904;
    cfg->spare_blocks = 16;
    cfg->t_cmd_ns = 300;
    cfg->t_xfer_ns = 8092;
    cfg->t_read_ns = 50300;
    cfg->t_read_msb_ns = 62300;
    cfg->t_prog_ns = 2395000;
    cfg->t_erase_ns = 15350000;
    cfg->reset = RSD_RESET_ERASE;
    cfg->finish = RSD_FINISH_PAD;
    cfg->write_buffer = 6 << 20;
    cfg->ack = RSD_ACK_BUFFER;
    cfg->t_fw_read_ns = 2286;
    cfg->t_fw_write_ns = 5483;
    cfg->t_fw_append_ns = 7562;
    cfg->t_lat_read_ns = 5900;
    cfg->t_lat_write_ns = 4319;
    cfg->t_lat_zone_ns = 10000;
    cfg->t_link_ns = 1558;
}

static void preset_980pro(RsdConfig *cfg)
{
    preset_custom(cfg);
    cfg->ftl = RSD_FTL_PAGE;
    cfg->channels = 8;
    cfg->ways = 4;
    cfg->planes = 2;
    cfg->page_size = 16384;
    cfg->cell = RSD_CELL_TLC;
    cfg->one_shot = RSD_ON;
    cfg->pages = 768;
    cfg->blocks = 1317;
    cfg->spare_blocks = 16;
    cfg->over_provision = 7;
    cfg->t_cmd_ns = 300;
    cfg->t_xfer_ns = 3400;
    cfg->t_read_ns = 30000;
    cfg->t_read_msb_ns = 42000;
    cfg->t_prog_ns = 450000;
    cfg->t_erase_ns = 3500000;
    cfg->write_buffer = 6 << 20;
    cfg->ack = RSD_ACK_BUFFER;
    cfg->plp = RSD_OFF;
    cfg->t_fw_read_ns = 1000;
    cfg->t_fw_write_ns = 2000;
    cfg->t_lat_read_ns = 19900;
    cfg->t_lat_write_ns = 4300;
    cfg->t_link_ns = 1276;
}

static void preset_tlc_2024(RsdConfig *cfg)
{
    preset_custom(cfg);
    cfg->ftl = RSD_FTL_PAGE;
    cfg->channels = 16;
    cfg->ways = 8;
    cfg->page_size = 16384;
    cfg->cell = RSD_CELL_TLC;
    cfg->one_shot = RSD_ON;
    cfg->pages = 2784;
    cfg->blocks = 674;
    cfg->spare_blocks = 16;
    cfg->t_cmd_ns = 200;
    cfg->t_xfer_ns = 1707;
    cfg->t_read_ns = 45000;
    cfg->t_prog_ns = 1047000;
    cfg->t_erase_ns = 3500000;
    cfg->write_buffer = 16 << 20;
    cfg->ack = RSD_ACK_BUFFER;
    cfg->t_fw_read_ns = 909;
    cfg->t_fw_write_ns = 909;
    cfg->t_lat_read_ns = 21600;
    cfg->t_lat_write_ns = 13500;
    cfg->t_link_ns = 573;
}

/*
 * There are as many blocks and pages as 625,142,448 sectors of 512 bytes take.
 * PRESETS.md has the rest.
 */
static void preset_barracuda_320(RsdConfig *cfg)
{
    preset_custom(cfg);
    cfg->ftl = RSD_FTL_DISK;
    cfg->channels = 1;
    cfg->ways = 1;
    cfg->blocks = 68909;
    cfg->pages = 1134;
    cfg->spare_blocks = 0;
    cfg->over_provision = 0;
    cfg->disk_rpm = 7200;
    cfg->disk_seek_min_ns = 800000;
    cfg->disk_seek_avg_ns = 8500000;
    cfg->disk_seek_max_ns = 15900000;
    cfg->disk_head_switch_ns = 800000;
    cfg->disk_heads = 2;
    cfg->disk_zones = 16;
    cfg->disk_outer_slots = 246;
    cfg->disk_inner_slots = 118;
    cfg->t_link_ns = 13653;
}

const RsdPreset rsd_presets[] = {
    { "custom",
      "the defaults of the table of properties: the geometry and timing of "
      "preset risa",
      preset_custom },
    { "redo",
      "2 channels, 2 ways, blocks of 128 pages of 4 KiB, 512 MiB: REDO "
      "section 3. The paper gives no timing; that of preset risa is taken, so "
      "that the two differ by geometry alone",
      preset_redo },
    { "risa",
      "8 channels, 4 ways, blocks of 128 pages of 4 KiB: RISA section 4.1; "
      "2 GiB: table 2. Timing from section 4.1's rates: 240,000 reads a "
      "second are 8 buses of 33,333 ns a page (t-cmd + t-xfer), 67,000 writes "
      "a second are 32 dies of 477,611 ns a page (t-prog besides). t-read and "
      "t-erase do not show in those rates and are usual values of MLC flash",
      preset_risa },
    { "zn540",
      "Western Digital ZN540, 1 TB: 904 zones of 1077 MiB capacity and 2 GiB "
      "size, as the drive reports them; times fitted to published "
      "measurements (PRESETS.md)",
      preset_zn540 },
    { "980pro",
      "Samsung 980 PRO, 1 TB, behind PCIe 3.0: reads fitted to published "
      "measurements, writes not validated (PRESETS.md)",
      preset_980pro },
    { "tlc-2024",
      "an enterprise TLC drive of 2024, 3.84 TB: set from a vendor's figures "
      "for the Micron 7500 (PRESETS.md)",
      preset_tlc_2024 },
    { "barracuda-320",
      "a disk of 320 GB, 7,200 rpm, 8.5 ms and about 100 MB/s, as in HFM "
      "section 4.1 (PRESETS.md)",
      preset_barracuda_320 },
};
const size_t rsd_num_presets = sizeof(rsd_presets) / sizeof(rsd_presets[0]);

const RsdPreset *rsd_preset_find(const char *name)
{
    for (size_t i = 0; i < rsd_num_presets; i++) {
        if (!strcmp(rsd_presets[i].name, name)) {
            return &rsd_presets[i];
        }
    }
    return NULL;
}

#define TRAITS(NAME, number, name, doc, traits) [number] = traits
bool rsd_ftl_is(const RsdConfig *cfg, unsigned trait)
{
    static const unsigned traits[] = { RSD_FTLS_LIST(TRAITS) };

    return traits[cfg->ftl] & trait;
}
#undef TRAITS

bool rsd_is_volatile(const RsdConfig *cfg)
{
    return rsd_ftl_is(cfg, RSD_FTL_ROTATES)
               ? cfg->disk_write_cache > 0
               : cfg->ack == RSD_ACK_BUFFER && cfg->plp == RSD_OFF;
}

void rsd_set_error(char err[RSD_ERR_LEN], const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, RSD_ERR_LEN, fmt, ap);
    va_end(ap);
}

static bool check_range(const RsdConfig *cfg, const RsdProp *prop, char *err)
{
    unsigned long long value = *(const uint64_t *)((const char *)cfg +
                                                   prop->offset);

    if (value >= prop->min && value <= prop->max) {
        return true;
    }
    if (prop->kind == RSD_PROP_ENUM) {
        rsd_set_error(err, "%s is value number %llu, allowed: 0 (%s) to %llu "
                      "(%s); choose one of them", prop->name, value,
                      prop->names[0], (unsigned long long)prop->max,
                      prop->names[prop->max]);
    } else if (prop->min == prop->max) {
        rsd_set_error(err, "%s=%llu: only %llu %s is supported; leave %s out",
                      prop->name, value, (unsigned long long)prop->min,
                      prop->unit, prop->name);
    } else {
        char given[32];

        /* This prints a negative number as it was given. */
        snprintf(given, sizeof(given), value > INT64_MAX ? "%lld" : "%llu",
                 value);
        rsd_set_error(err, "%s=%s: allowed is %llu to %llu%s%s; choose a "
                      "value in that range", prop->name, given,
                      (unsigned long long)prop->min,
                      (unsigned long long)prop->max,
                      *prop->unit ? " " : "", prop->unit);
    }
    return false;
}

/*
 * Checks the settings of random write areas. Their ranges are checked before.
 */
static bool check_zrwa(const RsdConfig *cfg, char *err)
{
    uint64_t lanes = cfg->channels *
                     (cfg->segment == RSD_SEGMENT_WAY ? 1 : cfg->ways);
    uint64_t capacity = lanes * rsd_block_slots(cfg) * RSD_PAGE_SIZE;
    uint64_t least = cfg->zrwa * cfg->zrwa_size +
                     cfg->channels * cfg->ways * rsd_unit_slots(cfg) *
                     RSD_PAGE_SIZE;

    if (!rsd_ftl_is(cfg, RSD_FTL_ZONED)) {
        rsd_set_error(err, "zrwa=%llu: with ftl=%s there are no zones; leave "
                      "zrwa out, or choose ftl=rsd",
                      (unsigned long long)cfg->zrwa, rsd_ftl_names[cfg->ftl]);
        return false;
    }
    if (cfg->zrwa_size % cfg->zrwa_flush || cfg->zrwa_flush % RSD_PAGE_SIZE ||
        capacity % cfg->zrwa_flush) {
        rsd_set_error(err, "zrwa-flush=%llu: allowed is a multiple of 4096 "
                      "bytes of which zrwa-size=%llu and a zone's capacity, "
                      "%llu, are multiples; choose zrwa-flush=4096, or other "
                      "sizes", (unsigned long long)cfg->zrwa_flush,
                      (unsigned long long)cfg->zrwa_size,
                      (unsigned long long)capacity);
        return false;
    }
    if (cfg->zrwa_size > capacity) {
        rsd_set_error(err, "zrwa-size=%llu: allowed is up to a zone's "
                      "capacity, %llu bytes; choose a smaller one",
                      (unsigned long long)cfg->zrwa_size,
                      (unsigned long long)capacity);
        return false;
    }
    if (cfg->write_buffer < least) {
        rsd_set_error(err, "write-buffer=%llu: zrwa=%llu random write areas of "
                      "zrwa-size=%llu, and what every way programs at once, "
                      "are %llu bytes; choose a write-buffer of at least that",
                      (unsigned long long)cfg->write_buffer,
                      (unsigned long long)cfg->zrwa,
                      (unsigned long long)cfg->zrwa_size,
                      (unsigned long long)least);
        return false;
    }
    return true;
}

/* Checks that no setting is given that only flash has, and a disk has not. */
static bool check_no_flash(const RsdConfig *cfg, char *err)
{
    const struct {
        const char *name;
        uint64_t value, none;
    } flash[] = {
        { "planes", cfg->planes, 1 },
        { "page-size", cfg->page_size, RSD_PAGE_SIZE },
        { "one-shot", cfg->one_shot, RSD_OFF },
        { "bad-blocks-ppm", cfg->bad_ppm, 0 },
        { "oob", cfg->oob, 0 },
        { "cache", cfg->cache, RSD_OFF },
        { "suspend", cfg->suspend, RSD_OFF },
        { "write-buffer", cfg->write_buffer, 0 },
        { "life-spread", cfg->life_spread, 0 },
        { "read-retries", cfg->read_retries, 0 },
    };

    for (size_t i = 0; i < sizeof(flash) / sizeof(flash[0]); i++) {
        const RsdProp *prop = rsd_prop_find(flash[i].name);

        if (flash[i].value == flash[i].none) {
            continue;
        }
        if (prop->kind == RSD_PROP_ENUM) {
            rsd_set_error(err, "%s=%s: with ftl=%s there is no flash; leave "
                          "%s out", prop->name, prop->names[flash[i].value],
                          rsd_ftl_names[cfg->ftl], prop->name);
        } else {
            rsd_set_error(err, "%s=%llu: with ftl=%s there is no flash, and "
                          "%llu is allowed alone; leave %s out", prop->name,
                          (unsigned long long)flash[i].value,
                          rsd_ftl_names[cfg->ftl],
                          (unsigned long long)flash[i].none, prop->name);
        }
        return false;
    }
    return true;
}

/*
 * Checks a disk's own settings. mechanics.c says which averages of seeks are
 * possible.
 */
static bool check_disk(const RsdConfig *cfg, char *err)
{
    uint64_t min = cfg->disk_seek_min_ns, max = cfg->disk_seek_max_ns;
    uint64_t least = rsd_div_round_up(115 * min + 20 * max, 135);
    uint64_t most = (27 * min + 108 * max) / 135;

    if (cfg->disk_inner_slots > cfg->disk_outer_slots) {
        rsd_set_error(err, "disk-inner-slots=%llu: allowed is up to "
                      "disk-outer-slots=%llu, as inner tracks are shorter; "
                      "choose less",
                      (unsigned long long)cfg->disk_inner_slots,
                      (unsigned long long)cfg->disk_outer_slots);
        return false;
    }
    if (min > max) {
        rsd_set_error(err, "disk-seek-min=%llu: allowed is up to "
                      "disk-seek-max=%llu; choose less",
                      (unsigned long long)min, (unsigned long long)max);
        return false;
    }
    if (least > most) {
        rsd_set_error(err, "disk-seek-min=%llu disk-seek-max=%llu: no average "
                      "in whole ns lies between them; choose a larger "
                      "disk-seek-max, or the same value for both",
                      (unsigned long long)min, (unsigned long long)max);
        return false;
    }
    if (cfg->disk_seek_avg_ns < least || cfg->disk_seek_avg_ns > most) {
        rsd_set_error(err, "disk-seek-avg=%llu: allowed is %llu to %llu ns, "
                      "which the average can be with disk-seek-min=%llu and "
                      "disk-seek-max=%llu; choose a value in that range",
                      (unsigned long long)cfg->disk_seek_avg_ns,
                      (unsigned long long)least, (unsigned long long)most,
                      (unsigned long long)min, (unsigned long long)max);
        return false;
    }
    return true;
}

bool rsd_config_check(const RsdConfig *cfg, char err[RSD_ERR_LEN])
{
    uint64_t dies, blocks, capacity, zones;

    for (size_t i = 0; i < rsd_num_props; i++) {
        if (!check_range(cfg, &rsd_props[i], err)) {
            return false;
        }
    }
    if (cfg->oob != 0 && cfg->oob != 16 && cfg->oob != 64 && cfg->oob != 128) {
        rsd_set_error(err, "oob=%llu: allowed is 0, 16, 64 or 128 bytes; "
                      "choose one of them", (unsigned long long)cfg->oob);
        return false;
    }
    if (cfg->zd_ext % 64) {
        rsd_set_error(err, "zd-ext=%llu: allowed is a multiple of 64 from 0 "
                      "to 16320 bytes; the next lower one is %llu",
                      (unsigned long long)cfg->zd_ext,
                      (unsigned long long)(cfg->zd_ext / 64 * 64));
        return false;
    }
    if (cfg->write_buffer % RSD_PAGE_SIZE) {
        rsd_set_error(err, "write-buffer=%llu: allowed is a multiple of 4096 "
                      "bytes, 0 being none; the next one is %llu",
                      (unsigned long long)cfg->write_buffer,
                      (unsigned long long)
                      (rsd_div_round_up(cfg->write_buffer, RSD_PAGE_SIZE) *
                       RSD_PAGE_SIZE));
        return false;
    }
    if (cfg->queue == RSD_QUEUE_GLOBAL && (cfg->cache || cfg->suspend)) {
        const char *name = cfg->cache ? "cache" : "suspend";

        rsd_set_error(err, "%s=on: allowed is off with queue=global, where a "
                      "way has no queue of its own; leave %s out, or choose "
                      "queue=way", name, name);
        return false;
    }
    if (rsd_ftl_is(cfg, RSD_FTL_ROTATES) &&
        (!check_no_flash(cfg, err) || !check_disk(cfg, err))) {
        return false;
    }
    if (cfg->page_size & (cfg->page_size - 1)) {
        rsd_set_error(err, "page-size=%llu: allowed is 4096, 8192 or 16384 "
                      "bytes; choose one of them",
                      (unsigned long long)cfg->page_size);
        return false;
    }
    if (cfg->one_shot && cfg->pages % (cfg->cell + 1)) {
        rsd_set_error(err, "pages=%llu with one-shot=on: a word line of "
                      "cell=%s is %llu pages, programmed at once; choose a "
                      "multiple of that, such as pages=%llu",
                      (unsigned long long)cfg->pages, rsd_cell_names[cfg->cell],
                      (unsigned long long)cfg->cell + 1,
                      (unsigned long long)(rsd_div_round_up(cfg->pages,
                                                            cfg->cell + 1) *
                                           (cfg->cell + 1)));
        return false;
    }
    /* None of these products can overflow, given the ranges. */
    dies = cfg->channels * cfg->ways;
    blocks = dies * (cfg->blocks + cfg->spare_blocks);
    capacity = dies * cfg->blocks * rsd_block_slots(cfg) * RSD_PAGE_SIZE;
    if (capacity > RSD_MAX_CAPACITY) {
        rsd_set_error(err, "channels=%llu x ways=%llu x blocks=%llu x "
                      "pages=%llu x planes=%llu x page-size=%llu is a drive "
                      "of %llu GiB, "
                      "allowed is up to %llu GiB; choose fewer blocks or "
                      "pages",
                      (unsigned long long)cfg->channels,
                      (unsigned long long)cfg->ways,
                      (unsigned long long)cfg->blocks,
                      (unsigned long long)cfg->pages,
                      (unsigned long long)cfg->planes,
                      (unsigned long long)cfg->page_size,
                      (unsigned long long)(capacity >> 30),
                      (unsigned long long)(RSD_MAX_CAPACITY >> 30));
        return false;
    }
    if (blocks > RSD_MAX_BLOCKS) {
        rsd_set_error(err, "channels=%llu x ways=%llu x (blocks=%llu + "
                      "spare-blocks=%llu) is %llu flash blocks, allowed is up "
                      "to %llu (each costs memory); choose fewer blocks of "
                      "more pages",
                      (unsigned long long)cfg->channels,
                      (unsigned long long)cfg->ways,
                      (unsigned long long)cfg->blocks,
                      (unsigned long long)cfg->spare_blocks,
                      (unsigned long long)blocks,
                      (unsigned long long)RSD_MAX_BLOCKS);
        return false;
    }
    if (cfg->conv_blocks && !rsd_ftl_is(cfg, RSD_FTL_ZONED)) {
        rsd_set_error(err, "conv-blocks=%llu: with ftl=%s all of the drive is "
                      "conventional; leave conv-blocks out, or choose ftl=rsd",
                      (unsigned long long)cfg->conv_blocks,
                      rsd_ftl_names[cfg->ftl]);
        return false;
    }
    if (cfg->conv_blocks >= cfg->blocks) {
        rsd_set_error(err, "conv-blocks=%llu: allowed is less than blocks=%llu,"
                      " or no zone is left; choose fewer, or ftl=page",
                      (unsigned long long)cfg->conv_blocks,
                      (unsigned long long)cfg->blocks);
        return false;
    }
    if (!rsd_ftl_is(cfg, RSD_FTL_ZONED) && cfg->oob > RSD_SPARE_OFFSET) {
        rsd_set_error(err, "oob=%llu: allowed is 0, 16 or 64 bytes with "
                      "ftl=%s, which keeps its own in the rest of the page's "
                      "OOB; choose one of them",
                      (unsigned long long)cfg->oob, rsd_ftl_names[cfg->ftl]);
        return false;
    }
    zones = rsd_ftl_is(cfg, RSD_FTL_ZONED)
                ? (cfg->blocks - cfg->conv_blocks) *
                  (cfg->segment == RSD_SEGMENT_WAY ? cfg->ways : 1) : 0;
    if (cfg->zrwa && !check_zrwa(cfg, err)) {
        return false;
    }
    if (zones * cfg->zd_ext > RSD_MAX_EXT_BYTES) {
        rsd_set_error(err, "zd-ext=%llu x %llu zones is %llu MiB, allowed is "
                      "up to %llu MiB; choose a smaller zd-ext or fewer zones",
                      (unsigned long long)cfg->zd_ext,
                      (unsigned long long)zones,
                      (unsigned long long)(zones * cfg->zd_ext >> 20),
                      (unsigned long long)(RSD_MAX_EXT_BYTES >> 20));
        return false;
    }
    return true;
}

uint64_t rsd_random(uint64_t seed, uint64_t index)
{
    /* splitmix64 (Steele, Lea, Flood 2014), its state being seed + index */
    uint64_t z = seed * UINT64_C(0xd1342543de82ef95) +
                 (index + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
