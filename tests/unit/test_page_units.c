/*
 * The page-mapping personality, with all of the map in RAM and with a cached
 * one, on a write buffer and on units of several pages.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "conventional.h"
#include "floors.h"

/* 2 channels, 2 ways, blocks of 48 slots */
static RsdConfig unit_config(const UnitKind *kind)
{
    RsdConfig cfg = small_config();

    cfg.ftl = RSD_FTL_PAGE;
    cfg.blocks = 10;
    cfg.spare_blocks = 2;
    cfg.over_provision = 60;
    set_unit(&cfg, kind, 48);
    return cfg;
}

/* The same with a cached map: 1280 LBAs, of 2 map pages; 128 entries */
static RsdConfig cached_config(const UnitKind *kind)
{
    RsdConfig cfg = unit_config(kind);

    cfg.ftl = RSD_FTL_DFTL;
    cfg.blocks = 40;
    cfg.over_provision = 200;
    cfg.pages /= 2;
    cfg.map_cache = 1024;
    return cfg;
}

static void check_counters(const Bed *bed)
{
    RsdCounters c = counters(bed);

    CHECK_EQ(c.media_errors, 0);
    CHECK_EQ(c.blocks_used + c.blocks_dirty + c.blocks_erased + c.blocks_bad,
             c.blocks_total);
    CHECK_EQ((c.prog_host + c.prog_clean + c.prog_wear + c.prog_map +
              c.prog_pad) * 4096, c.nand_programs * bed->cfg.page_size);
    CHECK_EQ(c.wear_sum, c.erase_host + c.erase_clean + c.erase_wear +
                         c.erase_map);
}

typedef RsdConfig (*KindConfig)(const UnitKind *kind);

static RsdConfig random_config(KindConfig config, uint64_t seed)
{
    RsdConfig cfg = config(&unit_kinds[seed % 6]);

    cfg.gc_policy = seed % 3;
    cfg.gc_unit = seed / 3 % 2;
    cfg.frontiers = (const uint64_t[]){ 0, 1, 3, 4 }[seed / 6 % 4];
    cfg.idle_erase_ns = seed % 4 ? 100000 : 0;
    set_unit_options(&cfg, seed);
    return cfg;
}

static void random_commands(KindConfig config,
                            uint64_t seeds, RsdCounters *sum)
{
    *sum = (RsdCounters){ 0 };
    for (uint64_t seed = 0; seed < seeds; seed++) {
        RsdConfig cfg = random_config(config, seed);
        RsdCounters c;
        World w;

        set_safe_ack(&cfg, seed);
        w = world_open(&cfg, "units.rsd", seed);
        world_lives(&w, 6, 120, check_counters);
        world_fill(&w);
        world_check(&w);
        c = counters(&w.bed);
        sum->erase_clean += c.erase_clean;
        sum->prog_map += c.prog_map;
        sum->read_map += c.read_map;
        sum->erase_map += c.erase_map;
        world_close(&w);
    }
}

/* What was acknowledged is there, whatever is collected, cut or levelled. */
TEST(random_commands_on_units)
{
    RsdCounters sum;

    random_commands(unit_config, 72, &sum);
    CHECK(sum.erase_clean > 2000);
    CHECK_EQ(sum.prog_map + sum.read_map + sum.erase_map, 0);
}

TEST(random_commands_with_a_cached_map)
{
    RsdCounters sum;

    random_commands(cached_config, 24, &sum);
    CHECK(sum.erase_clean > 500);
    CHECK(sum.prog_map > 2000);
    CHECK(sum.read_map > 2000);
    CHECK(sum.erase_map > 100);
}

static RsdConfig random_units(uint64_t seed)
{
    return random_config(unit_config, seed);
}

static RsdConfig random_cached(uint64_t seed)
{
    return random_config(cached_config, seed);
}

/* Blocks of two units: a frontier's reserve for filler is a block's worth */
static RsdConfig two_units(uint64_t seed)
{
    RsdConfig cfg = cached_config(&unit_kinds[5]);

    cfg.blocks = 28;
    cfg.spare_blocks = 4;
    cfg.over_provision = 250;
    cfg.write_buffer = (const uint64_t[]){ 0, 65536, 262144 }[seed % 3];
    return cfg;
}

TEST(random_flushes_on_units)
{
    check_random_flushes(random_units, 18);
}

TEST(random_flushes_with_a_cached_map)
{
    check_random_flushes(random_cached, 18);
}

TEST(random_flushes_on_blocks_of_two_units)
{
    check_random_flushes(two_units, 6);
}

TEST(runs_on_units_are_equal)
{
    RsdConfig cfg = unit_config(&unit_kinds[4]);

    check_runs_are_equal(&cfg, 1000);
    cfg = cached_config(&unit_kinds[4]);
    check_runs_are_equal(&cfg, 1000);
}

/* Units of 8 slots: rows of 4, two of them a word line */
TEST(a_flush_fills_up_units)
{
    RsdConfig cfg = unit_config(&unit_kinds[4]);
    uint64_t program = 4 * CMD + 8 * XFER + PROG;
    RsdCounters c;
    Bed bed;

    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    bed = bed_open(&cfg, temp_path("units.rsd"));
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 3, 1), 0);
    CHECK_EQ(run(&bed, RSD_READ, 0, 3, 0), 0);
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), program);
    c = counters(&bed);
    CHECK_EQ(c.prog_host, 3);
    CHECK_EQ(c.prog_pad, 5);
    CHECK_EQ(c.nand_programs, 4);
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
    /* the next unit is the next frontier's, on the other channel */
    CHECK_EQ(run(&bed, RSD_WRITE, 3, 2, 1), 0);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).prog_host, 3);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 3, 1);
    expect_pages(&bed, 3, 2, 0);        /* not flushed: lost */
    bed_close(&bed);

    /* protected: nothing to wait for, and filled up when it is opened */
    cfg.plp = RSD_ON;
    bed = bed_open(&cfg, temp_path("units.rsd"));
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 3, 1), 0);
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).prog_host, 0);
    bed_reopen(&bed);
    CHECK_EQ(counters(&bed).prog_host, 3);
    CHECK_EQ(counters(&bed).prog_pad, 5);
    expect_pages(&bed, 0, 3, 1);
    bed_close(&bed);
}

TEST(fua_fills_up_its_unit)
{
    RsdConfig cfg = unit_config(&unit_kinds[4]);
    uint64_t program = 4 * CMD + 8 * XFER + PROG;
    RsdCmd *cmd;
    Bed bed;

    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    bed = bed_open(&cfg, temp_path("units.rsd"));
    cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 0, 3);
    for (int i = 0; i < 3; i++) {
        fill_page(cmd->data + i * PAGE, cmd->oob + i * 16, 16, i, 1);
    }
    cmd->fua = true;
    CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
    CHECK_EQ(await(&bed, cmd), program);
    rsd_cmd_free(bed.drive, cmd);
    CHECK_EQ(counters(&bed).prog_pad, 5);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 3, 1);
    bed_close(&bed);
}

/* Units of 8 slots. A map page is updated when it is in the buffer. */
TEST(map_pages_go_through_the_buffer)
{
    RsdConfig cfg = cached_config(&unit_kinds[4]);
    uint64_t program = 4 * CMD + 8 * XFER + PROG;
    RsdCounters c;
    Bed bed;

    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    bed = bed_open(&cfg, temp_path("units.rsd"));
    for (uint64_t at = 0; at < 128; at++) {
        CHECK_EQ(run(&bed, RSD_WRITE, at, 1, 1), 0);
        bed_drain(&bed);
    }
    CHECK_EQ(counters(&bed).prog_host, 128);
    /* evicts one of 128 changed entries, and finds its map page there again */
    CHECK_EQ(run(&bed, RSD_WRITE, 128, 1, 1), 0);
    CHECK_EQ(run(&bed, RSD_WRITE, 129, 1, 1), 0);
    c = counters(&bed);
    CHECK_EQ(c.map_misses, 130);
    CHECK_EQ(c.read_map + c.prog_map, 0);
    CHECK_EQ(c.buffer_reads, 0);        /* the host read nothing */
    /* a flush is for what the host wrote */
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), program);
    c = counters(&bed);
    CHECK_EQ(c.prog_host, 130);
    CHECK_EQ(c.prog_pad, 6);
    CHECK_EQ(c.prog_map, 0);
    /* until there are eight of them */
    for (uint64_t at = 130; counters(&bed).prog_map == 0; at++) {
        CHECK(at < 1280);
        CHECK_EQ(run(&bed, RSD_WRITE, at, 1, 1), 0);
        bed_drain(&bed);
    }
    c = counters(&bed);
    CHECK_EQ(c.prog_map, 8);
    CHECK_EQ(c.prog_pad, 6);
    CHECK_EQ(c.buffer_reads, 0);
    CHECK_EQ(c.read_map, 0);
    /* from now on in flash */
    run(&bed, RSD_READ, 0, 1, 0);
    CHECK_EQ(counters(&bed).read_map, 1);
    bed_close(&bed);
}

/*
 * One die, rows of 2 planes and 4 slots. Of each row the host overwrites the
 * same slots; what is left of it is collected by one read of the array, of those
 * planes that it is in.
 */
static void collected_by_rows(uint32_t overwritten, uint64_t pages)
{
    RsdConfig cfg = unit_config(&unit_kinds[4]);
    uint64_t left = 4 - __builtin_popcount(overwritten);
    RsdCounters c;
    Bed bed;

    cfg.channels = 1;
    cfg.ways = 1;
    cfg.gc_policy = RSD_GC_FIFO;
    cfg.ack = RSD_ACK_BUFFER;
    bed = bed_open(&cfg, temp_path("units.rsd"));
    for (uint64_t at = 0; at < bed.geo.lbas; at += 4) {
        run(&bed, RSD_WRITE, at, 4, 1);
    }
    for (uint64_t i = 0; counters(&bed).erase_clean == 0; i++) {
        uint64_t at = i % bed.geo.lbas;

        CHECK(i < 8 * bed.geo.lbas);
        if (overwritten >> at % 4 & 1) {
            run(&bed, RSD_WRITE, at, 1, 2);
        }
    }
    bed_drain(&bed);
    c = counters(&bed);
    CHECK(c.read_clean >= 12 * left);   /* of the rows of a block */
    CHECK_EQ(array_reads(&bed) * left, c.read_clean);
    CHECK_EQ(array_reads(&bed) * pages, c.nand_reads);
    for (uint64_t at = 0; at < bed.geo.lbas; at++) {
        expect_pages(&bed, at, 1, overwritten >> at % 4 & 1 ? 2 : 1);
    }
    bed_close(&bed);
}

TEST(collection_reads_rows)
{
    collected_by_rows(2, 2);            /* one slot less, of the first plane */
    collected_by_rows(6, 2);            /* a slot of each plane is left */
    collected_by_rows(3, 1);            /* the second plane's slots are left */
    collected_by_rows(7, 1);            /* one slot */
}

/* Overwritten and trimmed while it is in the buffer: the newest counts. */
TEST(the_buffer_keeps_the_order)
{
    RsdConfig cfg = unit_config(&unit_kinds[4]);
    Bed bed;

    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    bed = bed_open(&cfg, temp_path("units.rsd"));
    run(&bed, RSD_WRITE, 0, 2, 1);
    run(&bed, RSD_WRITE, 0, 1, 2);
    expect_pages(&bed, 0, 1, 2);
    run(&bed, RSD_TRIM, 1, 1, 0);
    expect_pages(&bed, 1, 1, 0);
    run(&bed, RSD_FLUSH, 0, 0, 0);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 1, 2);
    expect_pages(&bed, 1, 1, 0);
    bed_close(&bed);
}

/* Of what was trimmed, a flush saves what was written since, and only that. */
TEST(a_flush_after_a_trim_saves_what_is_overwritten)
{
    RsdConfig cfg = unit_config(&unit_kinds[4]);
    RsdCmd *flush;
    Bed bed;

    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    bed = bed_open(&cfg, temp_path("units.rsd"));
    run(&bed, RSD_WRITE, 0, 8, 1);
    run(&bed, RSD_FLUSH, 0, 0, 0);
    run(&bed, RSD_TRIM, 0, 8, 0);
    /* a whole unit, which the flush waits for; LBA 0 once more meanwhile */
    run(&bed, RSD_WRITE, 0, 8, 2);
    flush = begin(&bed, RSD_FLUSH, 0, 0, 0);
    run(&bed, RSD_WRITE, 0, 1, 3);
    await(&bed, flush);
    rsd_cmd_free(bed.drive, flush);
    CHECK_EQ(counters(&bed).prog_host, 16);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 8, 2);
    /* trimmed between the two: the older one does not come back */
    run(&bed, RSD_WRITE, 0, 8, 4);
    run(&bed, RSD_TRIM, 0, 1, 0);
    run(&bed, RSD_WRITE, 0, 1, 5);
    bed_drain(&bed);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 1, 0);
    expect_pages(&bed, 1, 7, 4);
    bed_close(&bed);
}

/* An LBA beyond the end in what the buffer's part of the file holds */
TEST(a_damaged_buffer_is_refused)
{
    RsdConfig cfg = unit_config(&unit_kinds[4]);

    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_ON;
    check_damaged_buffer(&cfg, "the media file is corrupt: page 2 of block",
                         "LBA 8589934592 of");
}
