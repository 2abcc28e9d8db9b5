/*
 * What every translation layer of RSD_FTLS must do, whatever it is: data, the
 * order of commands, unwritten reads, counters, power cuts, settings. A new one
 * is tried here because it is in the list.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "conventional.h"
#include "floors.h"
#include "rsd-power.h"

#define NAME(NAME, number, name, doc, traits) #name
#define TABLE(NAME, number, name, doc, traits) (&rsd_ftl_##name)
#define NUMBER(NAME, number, name, doc, traits) (number)
#define TRAITS(NAME, number, name, doc, traits) (traits)

static const char *const names[] = { RSD_FTLS_LIST(NAME) };
static const Personality *const tables[] = { RSD_FTLS_LIST(TABLE) };
static const unsigned numbers[] = { RSD_FTLS_LIST(NUMBER) };
static const unsigned traits[] = { RSD_FTLS_LIST(TRAITS) };

#define NUM_FTLS (sizeof(names) / sizeof(names[0]))

#define FOR_EACH_FTL(ftl) for (RsdFtl ftl = 0; ftl < NUM_FTLS; ftl++)

static bool is_zoned(RsdFtl ftl)
{
    return traits[ftl] & RSD_FTL_ZONED;
}

static bool is_disk(RsdFtl ftl)
{
    return traits[ftl] & RSD_FTL_ROTATES;
}

/* Small, and collected often; or a disk of short tracks */
static RsdConfig config_of(RsdFtl ftl)
{
    RsdConfig cfg = small_config();

    cfg.ftl = ftl;
    cfg.blocks = 14;
    cfg.over_provision = is_zoned(ftl) ? cfg.over_provision : 80;
    cfg.map_cache = 1024;
    cfg.log_blocks = 20;
    cfg.oob = is_disk(ftl) ? 0 : 16;
    cfg.disk_outer_slots = 12;
    cfg.disk_inner_slots = 8;
    cfg.disk_zones = 3;
    cfg.disk_segments = 2;
    cfg.disk_segment_size = 16 * PAGE;
    cfg.disk_write_cache = 0;
    return cfg;
}

/* The numbers are on media: these are those of files that exist. */
TEST(numbers_and_names)
{
    static const char *const known[] = { "rsd", "page", "dftl", "block",
                                         "fast", "disk" };

    for (size_t i = 0; i < NUM_FTLS; i++) {
        CHECK_EQ(numbers[i], i);
        CHECK(!strcmp(names[i], rsd_ftl_names[i]));
        CHECK(i >= sizeof(known) / sizeof(known[0]) ||
              !strcmp(names[i], known[i]));
    }
    CHECK(!rsd_ftl_names[NUM_FTLS]);
}

TEST(tables_are_complete)
{
    FOR_EACH_FTL(ftl) {
        const Personality *t = tables[ftl];

        CHECK(t->geometry && t->open && t->close && t->submit && t->op_done &&
              t->format);
        CHECK(!t->has_background == !t->background);
        CHECK_EQ(!!t->pad, !!(traits[ftl] & RSD_FTL_PADS));
        CHECK_EQ(!!t->zone, is_zoned(ftl));
        /* what goes with a write buffer, and is not there without one */
        CHECK(t->op_buffered || (!t->pad && !t->kept && !t->closed));
    }
}

TEST(geometry)
{
    FOR_EACH_FTL(ftl) {
        RsdConfig cfg = config_of(ftl);
        Bed bed = bed_open(&cfg, NULL);

        CHECK_EQ(bed.geo.zoned, is_zoned(ftl));
        CHECK(bed.geo.lbas);
        CHECK_EQ(bed.geo.map_bytes > 0, !is_disk(ftl));
        CHECK_EQ(bed.geo.max_oob, is_zoned(ftl) ? 128 : is_disk(ftl) ? 0 : 64);
        CHECK_EQ(bed.geo.num_zones > 0, is_zoned(ftl));
        bed_close(&bed);
    }
}

/* The first pages of a zone, or any others */
TEST(unwritten_pages_are_zeroes_and_counted)
{
    FOR_EACH_FTL(ftl) {
        RsdConfig cfg = config_of(ftl);
        Bed bed = bed_open(&cfg, temp_path("unwritten.rsd"));

        run(&bed, RSD_WRITE, 0, 3, 7);
        expect_pages(&bed, 0, 3, 7);
        CHECK_EQ(counters(&bed).unwritten_reads, 0);
        expect_pages(&bed, 3, 5, 0);
        CHECK_EQ(counters(&bed).unwritten_reads, 5);
        CHECK_EQ(counters(&bed).host_read_pages, 8);
        CHECK_EQ(counters(&bed).host_write_pages, 3);
        bed_close(&bed);
    }
}

TEST(format_empties)
{
    FOR_EACH_FTL(ftl) {
        RsdConfig cfg = config_of(ftl);
        Bed bed = bed_open(&cfg, temp_path("format.rsd"));

        run(&bed, RSD_WRITE, 0, 8, 3);
        bed_drain(&bed);
        CHECK_EQ(rsd_format(bed.drive, 0, cfg.oob, bed.now), RSD_OK);
        expect_pages(&bed, 0, 8, 0);
        bed_reopen(&bed);
        expect_pages(&bed, 0, 8, 0);
        run(&bed, RSD_WRITE, 0, 8, 4);
        bed_reopen(&bed);
        expect_pages(&bed, 0, 8, 4);
        bed_close(&bed);
    }
}

TEST(zones_are_refused_where_there_are_none)
{
    FOR_EACH_FTL(ftl) {
        RsdConfig cfg = config_of(ftl);
        Bed bed = bed_open(&cfg, NULL);

        CHECK_EQ(refused(&bed, is_zoned(ftl) ? RSD_TRIM : RSD_ZONE_RESET, 0,
                         1), RSD_E_RANGE);
        CHECK_EQ(refused(&bed, RSD_READ, bed.geo.lbas - 1, 2), RSD_E_RANGE);
        bed_close(&bed);
    }
}

/* What the flash did adds up, and is what the host asked for and more. */
static void check_sums(const Bed *bed)
{
    RsdCounters c = counters(bed);

    CHECK_EQ(c.blocks_used + c.blocks_dirty + c.blocks_erased + c.blocks_bad,
             c.blocks_total);
    CHECK_EQ(c.erase_host + c.erase_clean + c.erase_merge + c.erase_wear +
             c.erase_map, c.erase_on_demand + c.erase_idle);
    if (is_disk(bed->cfg.ftl)) {
        CHECK_EQ(c.disk_read_pages + c.disk_cache_hits, c.host_read_pages);
    } else {
        CHECK(c.host_write_pages <= c.prog_host);
    }
    CHECK_EQ(c.media_errors, 0);
}

/*
 * Random commands, many at once, on each: reads give what was written before
 * them, also where they overlap; what is there after the drive was closed, in
 * the middle of them, is what was acknowledged, or written later.
 */
static void live(RsdFtl ftl, uint64_t seed, bool cut, bool buffered)
{
    RsdConfig cfg = config_of(ftl);
    World w;

    cfg.seed = seed;
    cfg.write_buffer = buffered ? 16 * PAGE : 0;
    cfg.ack = seed % 2 ? RSD_ACK_BUFFER : RSD_ACK_PROGRAM;
    cfg.wl_threshold = seed % 3 ? 0 : 4;
    cfg.idle_erase_ns = seed % 4 ? 0 : 1000000;
    cfg.disk_write_cache = seed % 5 * 16 * PAGE;
    w = world_open(&cfg, "ftl.rsd", seed);
    w.lazy = is_disk(ftl) && cfg.disk_write_cache;
    w.cuts = cut ? seed + 1 : 0;
    world_fill(&w);
    world_lives(&w, 6, 120, cut ? NULL : check_sums);
    world_drain(&w);
    world_check(&w);
    CHECK_EQ(counters(&w.bed).wear_sum > 0, !is_disk(ftl));
    world_close(&w);
}

TEST(random_commands)
{
    FOR_EACH_FTL(ftl) {
        for (uint64_t seed = 0; seed < 8 && !is_zoned(ftl); seed++) {
            live(ftl, seed, false, false);
        }
    }
}

TEST(power_cuts)
{
    FOR_EACH_FTL(ftl) {
        for (uint64_t seed = 0; seed < 16 && !is_zoned(ftl); seed++) {
            live(ftl, seed, true, false);
        }
    }
}

/* One that has none says so. */
TEST(write_buffer)
{
    FOR_EACH_FTL(ftl) {
        if (!tables[ftl]->op_buffered) {
            RsdConfig cfg = config_of(ftl);

            cfg.write_buffer = 16 * PAGE;
            open_refused(&cfg, "write-buffer", names[ftl]);
            continue;
        }
        for (uint64_t seed = 0; seed < 8 && !is_zoned(ftl); seed++) {
            live(ftl, seed, seed % 2, true);
        }
    }
}

/* A zone is filled, cut, and read, and reset. */
TEST(zones)
{
    FOR_EACH_FTL(ftl) {
        RsdConfig cfg = config_of(ftl);

        for (uint64_t seed = 0; seed < 16 && is_zoned(ftl); seed++) {
            Bed bed = bed_open(&cfg, temp_path("zones.rsd"));
            RsdZone zone;

            run(&bed, RSD_WRITE, lba(&bed, 1, 0), 9, 5);
            rsd_cmd_free(bed.drive, begin(&bed, RSD_WRITE, lba(&bed, 1, 9), 7,
                                          6));
            rsd_power_cut(bed.drive, &(RsdOutcomes){ .seed = seed });
            bed_reopen(&bed);
            rsd_zone_get(bed.drive, 1, &zone);
            CHECK(zone.written >= 9 && zone.written <= 16);
            expect_pages(&bed, lba(&bed, 1, 0), 9, 5);
            run(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0, 0);
            expect_pages(&bed, lba(&bed, 1, 0), 9, 0);
            bed_close(&bed);
        }
    }
}

TEST(runs_are_equal)
{
    FOR_EACH_FTL(ftl) {
        RsdConfig cfg = config_of(ftl);

        if (!is_zoned(ftl)) {
            check_runs_are_equal(&cfg, 500);
        }
    }
}
