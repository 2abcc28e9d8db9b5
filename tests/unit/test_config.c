/*
 * Properties: each bound, each combination, presets.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "harness.h"

/* The message for these settings, or "" if they are accepted */
static const char *check(const RsdConfig *cfg)
{
    static char err[RSD_ERR_LEN];

    err[0] = '\0';
    return rsd_config_check(cfg, err) ? "" : err;
}

/* Settings that leave room for any one property to go to its bounds */
static RsdConfig tiny_config(void)
{
    RsdConfig cfg = small_config();

    cfg.channels = 1;
    cfg.ways = 1;
    cfg.blocks = 12;
    cfg.pages = 1;
    return cfg;
}

TEST(every_default_is_allowed)
{
    for (size_t i = 0; i < rsd_num_presets; i++) {
        RsdConfig cfg;

        memset(&cfg, 0xff, sizeof(cfg));
        rsd_presets[i].apply(&cfg);
        CHECK(!*check(&cfg));
        CHECK(strlen(rsd_presets[i].doc) > 20);
        CHECK(rsd_preset_find(rsd_presets[i].name) == &rsd_presets[i]);
    }
    CHECK(!rsd_preset_find("nonsense"));
}

TEST(every_bound_of_every_property)
{
    for (size_t i = 0; i < rsd_num_props; i++) {
        const RsdProp *prop = &rsd_props[i];
        uint64_t bounds[] = { prop->min, prop->max };

        CHECK(rsd_prop_find(prop->name) == prop);
        for (int b = 0; b < 2; b++) {
            RsdConfig cfg = tiny_config();

            *rsd_prop_value(&cfg, prop) = bounds[b];
            if (b && !strcmp(prop->name, "conv-blocks")) {
                continue;       /* its bound is "blocks" besides */
            }
            if (b && !strcmp(prop->name, "ftl")) {
                cfg.oob = 0;    /* a disk has none */
            }
            if (b && !strcmp(prop->name, "zrwa")) {
                cfg.zrwa_size = cfg.zrwa_flush = 4096;
                cfg.write_buffer = (prop->max + 1) * 4096;
            }
            if (*check(&cfg)) {
                FAIL("%s=%" PRIu64 " is refused: %s", prop->name, bounds[b],
                     check(&cfg));
            }
        }
        for (int b = 0; b < 2; b++) {
            RsdConfig cfg = tiny_config();
            char text[64];

            if (b ? prop->max == UINT64_MAX : prop->min == 0) {
                continue;
            }
            *rsd_prop_value(&cfg, prop) = b ? prop->max + 1 : prop->min - 1;
            snprintf(text, sizeof(text), "%s", prop->name);
            CHECK_SAYS(check(&cfg), text);
            snprintf(text, sizeof(text), "%" PRIu64,
                     *rsd_prop_value(&cfg, prop));
            CHECK_SAYS(check(&cfg), text);
            if (prop->kind == RSD_PROP_ENUM) {
                CHECK_SAYS(check(&cfg), prop->names[0]);
                CHECK_SAYS(check(&cfg), prop->names[prop->max]);
            } else {
                snprintf(text, sizeof(text), "%" PRIu64, prop->max);
                CHECK_SAYS(check(&cfg), text);
            }
        }
    }
    CHECK(!rsd_prop_find("nonsense"));
}

TEST(enumerations_end_at_their_bound)
{
    for (size_t i = 0; i < rsd_num_props; i++) {
        if (rsd_props[i].kind == RSD_PROP_ENUM) {
            CHECK(rsd_props[i].names[0] && rsd_props[i].names[1]);
            for (uint64_t n = 0; n <= rsd_props[i].max; n++) {
                CHECK(rsd_props[i].names[n]);
            }
            CHECK(!rsd_props[i].names[rsd_props[i].max + 1]);
        }
    }
}

TEST(a_negative_number_is_said_as_such)
{
    RsdConfig cfg = small_config();

    cfg.blocks = (uint64_t)-1;
    CHECK_SAYS(check(&cfg), "blocks=-1: allowed is 1 to");
}

TEST(the_write_buffer_has_whole_pages)
{
    RsdConfig cfg = small_config();

    cfg.write_buffer = 1;
    CHECK_SAYS(check(&cfg), "write-buffer=1: allowed is a multiple of 4096");
    CHECK_SAYS(check(&cfg), "the next one is 4096");
    cfg.write_buffer = 4096;
    CHECK(!*check(&cfg));
}

TEST(one_queue_for_all_has_no_cache_register)
{
    RsdConfig cfg = small_config();

    cfg.queue = RSD_QUEUE_GLOBAL;
    CHECK(!*check(&cfg));
    cfg.cache = RSD_ON;
    CHECK_SAYS(check(&cfg), "cache=on: allowed is off with queue=global");
    cfg.cache = RSD_OFF;
    cfg.suspend = RSD_ON;
    CHECK_SAYS(check(&cfg), "suspend=on: allowed is off with queue=global");
    CHECK_SAYS(check(&cfg), "leave suspend out, or choose queue=way");
}

TEST(oob_is_one_of_four)
{
    for (uint64_t oob = 0; oob <= 128; oob++) {
        RsdConfig cfg = small_config();
        bool good = oob == 0 || oob == 16 || oob == 64 || oob == 128;

        cfg.oob = oob;
        CHECK(good == !*check(&cfg));
        if (!good) {
            CHECK_SAYS(check(&cfg), "oob=");
            CHECK_SAYS(check(&cfg), "0, 16, 64 or 128");
        }
    }
}

TEST(extension_is_a_multiple_of_64)
{
    RsdConfig cfg = small_config();

    cfg.zd_ext = 100;
    CHECK_SAYS(check(&cfg), "zd-ext=100");
    CHECK_SAYS(check(&cfg), "multiple of 64");
    cfg.zd_ext = 16320;
    CHECK(!*check(&cfg));
}

TEST(pages_have_4_8_or_16_kib)
{
    RsdConfig cfg = small_config();

    for (uint64_t size = 4096; size <= 16384; size += 512) {
        bool good = size == 4096 || size == 8192 || size == 16384;

        cfg.page_size = size;
        CHECK(good == !*check(&cfg));
        if (!good) {
            CHECK_SAYS(check(&cfg), "page-size=");
            CHECK_SAYS(check(&cfg), "4096, 8192 or 16384");
        }
    }
}

TEST(word_lines_are_whole)
{
    RsdConfig cfg = small_config();

    cfg.cell = RSD_CELL_TLC;
    CHECK(!*check(&cfg));
    cfg.one_shot = RSD_ON;
    CHECK_SAYS(check(&cfg), "pages=8");
    CHECK_SAYS(check(&cfg), "cell=tlc");
    CHECK_SAYS(check(&cfg), "pages=9");
    cfg.pages = 9;
    CHECK(!*check(&cfg));
}

TEST(total_size_is_bounded)
{
    RsdConfig cfg = small_config();

    /* exactly 16 TiB, then one block more a way */
    cfg.channels = 64;
    cfg.ways = 64;
    cfg.blocks = 1024;
    cfg.pages = 1024;
    CHECK(!*check(&cfg));
    cfg.blocks = 1025;
    CHECK_SAYS(check(&cfg), "16400 GiB");
    CHECK_SAYS(check(&cfg), "16384 GiB");

    cfg.blocks = 8192;
    cfg.spare_blocks = 0;
    cfg.pages = 1;
    CHECK(!*check(&cfg));
    cfg.spare_blocks = 1;
    CHECK_SAYS(check(&cfg), "flash blocks");
    CHECK_SAYS(check(&cfg), "33554432");

    cfg = small_config();
    cfg.channels = 1;
    cfg.ways = 1;
    cfg.blocks = 65793;
    cfg.zd_ext = 16320;
    CHECK(!*check(&cfg));
    cfg.blocks = 65794;
    CHECK_SAYS(check(&cfg), "zd-ext=16320");
    CHECK_SAYS(check(&cfg), "1024 MiB");
}

TEST(open_refuses_what_the_check_refuses)
{
    RsdConfig cfg = small_config();
    char err[RSD_ERR_LEN] = "";

    cfg.ways = 0;
    CHECK(!rsd_open(NULL, &cfg, err));
    CHECK_SAYS(err, "ways=0");
    err[0] = '\0';
    CHECK(!rsd_media_create("/nonexistent/x", &cfg, err));
    CHECK_SAYS(err, "ways=0");
}

static void expect_preset(const char *name, uint64_t zones, uint64_t capacity,
                          uint64_t zone_size, uint64_t map_bytes)
{
    RsdConfig cfg;
    Bed bed;

    rsd_preset_find(name)->apply(&cfg);
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(bed.geo.num_zones, zones);
    CHECK_EQ(bed.geo.zone_capacity * PAGE, capacity);
    CHECK_EQ(bed.geo.zone_size * PAGE, zone_size);
    CHECK_EQ(bed.geo.map_bytes, map_bytes);
    CHECK_EQ(counters(&bed).map_bytes, map_bytes);
    bed_close(&bed);
}

TEST(preset_geometries)
{
    expect_preset("redo", 256, 2 << 20, 2 << 20, 4096);
    expect_preset("risa", 128, 16 << 20, 16 << 20, 16384);
    expect_preset("zn540", 904, UINT64_C(1077) << 20, UINT64_C(2) << 30,
                  904 * 32 * 4);
}

TEST(segment_map_sizes_of_the_papers)
{
    RsdConfig cfg;
    Bed bed;

    /* RISA table 2: 8 MB for 1 TB of 512 KB blocks */
    rsd_preset_find("risa")->apply(&cfg);
    cfg.blocks = 65536;
    for (int by_way = 0; by_way < 2; by_way++) {
        cfg.segment = by_way ? RSD_SEGMENT_WAY : RSD_SEGMENT_ALL;
        bed = bed_open(&cfg, NULL);
        CHECK_EQ(bed.geo.map_bytes, 8 << 20);
        CHECK_EQ(bed.geo.num_zones, by_way ? 4 * 65536 : 65536);
        CHECK_EQ(counters(&bed).capacity_bytes, UINT64_C(1) << 40);
        bed_close(&bed);
    }
}
