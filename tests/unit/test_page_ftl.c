/*
 * The page-mapping personality: what the host reads, whatever is collected,
 * levelled or trimmed meanwhile; what is counted; which settings are refused.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "conventional.h"
#include "floors.h"

/* 2 channels, 2 ways; 256 LBAs on 352 pages, 32 of them in spare blocks */
static RsdConfig page_config(void)
{
    RsdConfig cfg = small_config();

    cfg.ftl = RSD_FTL_PAGE;
    cfg.blocks = 10;
    cfg.over_provision = 20;
    return cfg;
}

static Bed in_memory(const RsdConfig *cfg)
{
    return bed_open(cfg, NULL);
}

/* Counters add up, and no operation was of a kind that there is none of. */
static void check_counters(const Bed *bed)
{
    RsdCounters c = counters(bed);

    CHECK_EQ(c.prog_merge + c.erase_merge + c.read_merge + c.prog_map +
             c.read_map + c.erase_map + c.prog_pad + c.media_errors, 0);
    CHECK_EQ(c.blocks_used + c.blocks_dirty + c.blocks_erased + c.blocks_bad,
             c.blocks_total);
    CHECK_EQ(c.erase_clean + c.erase_wear, c.erase_on_demand + c.erase_idle);
    CHECK_EQ(c.wear_sum, c.erase_clean + c.erase_wear);
}

TEST(geometry)
{
    RsdConfig cfg = page_config();
    Bed bed = in_memory(&cfg);

    CHECK(!bed.geo.zoned);
    CHECK_EQ(bed.geo.lbas, 256);
    CHECK_EQ(bed.geo.max_oob, 64);
    CHECK_EQ(bed.geo.map_bytes, 320 * 4);
    CHECK_EQ(counters(&bed).capacity_bytes, 256 * 4096);
    bed_close(&bed);
}

/* over-provision is of all good flash, whichever of it is called spare. */
TEST(over_provision_counts_spares)
{
    static const struct { uint64_t blocks, spares, bad_ppm; } rows[] = {
        { 120, 0, 0 }, { 116, 4, 0 }, { 80, 40, 0 }, { 116, 4, 20000 },
    };

    for (int ftl = RSD_FTL_PAGE; ftl <= RSD_FTL_FAST; ftl++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            RsdConfig cfg = page_config();
            RsdCounters c;
            uint64_t good, grain;
            Bed bed;

            cfg.ftl = ftl;
            cfg.blocks = rows[i].blocks;
            cfg.spare_blocks = rows[i].spares;
            cfg.bad_ppm = rows[i].bad_ppm;
            cfg.over_provision = 25;
            bed = in_memory(&cfg);
            c = counters(&bed);
            good = (c.blocks_total - c.blocks_bad) * 8;
            /* whole MiB, or whole logical blocks */
            grain = ftl < RSD_FTL_BLOCK ? 256 : 8;
            CHECK_EQ(c.blocks_total, 480);
            CHECK_EQ(c.blocks_bad > 0, rows[i].bad_ppm > 0);
            CHECK_EQ(bed.geo.lbas, good * 100 / 125 / grain * grain);
            CHECK_EQ(rsd_flash_pages(bed.drive, 0), good);
            CHECK_EQ(c.flash_bytes, good * 4096);
            bed_close(&bed);
        }
    }
}

/* RISA table 2 and REDO table 2: 4 bytes a page of the capacity */
TEST(map_sizes_of_the_papers)
{
    static const struct { uint64_t blocks, map_bytes; } rows[] = {
        { 32, UINT64_C(512) << 10 },            /* 512 MB */
        { 128, UINT64_C(2) << 20 },             /* 2 GB */
        { 32768, UINT64_C(512) << 20 },         /* 512 GB */
        { 65536, UINT64_C(1) << 30 },           /* 1 TB */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        RsdConfig cfg;
        Bed bed;

        rsd_preset_find("risa")->apply(&cfg);
        cfg.ftl = RSD_FTL_PAGE;
        cfg.over_provision = 10;
        cfg.blocks = rows[i].blocks;
        bed = in_memory(&cfg);
        CHECK_EQ(counters(&bed).map_bytes, rows[i].map_bytes);
        bed_close(&bed);
    }
}

/* What takes the room is said, and what is said to fit does. */
TEST(room_for_filler)
{
    RsdConfig cfg = page_config();

    cfg.blocks = 512;
    cfg.pages = 8;
    cfg.planes = 2;
    cfg.page_size = 8192;
    cfg.over_provision = 5;
    open_refused(&cfg, "may hold filler (4 a block, with units of 4)",
                 "set over-provision to 16 or more");
    cfg.over_provision = 15;
    open_refused(&cfg, "gc-trigger=1", "more over-provision");
    cfg.over_provision = 16;
    bed_close(&(Bed){ .drive = in_memory(&cfg).drive });
}

TEST(settings_refused)
{
    RsdConfig cfg = page_config();

    cfg.frontiers = 5;
    open_refused(&cfg, "frontiers=5", "0 (one a die) to 4");
    cfg = page_config();
    cfg.blocks = 4;
    open_refused(&cfg, "over-provision=20", "less than 1 MiB");
    cfg = page_config();
    cfg.blocks = 16;            /* 512 pages */
    cfg.over_provision = 0;
    cfg.spare_blocks = 2;       /* 64 pages: 2 blocks a frontier, and no more */
    open_refused(&cfg, "over-provision=0", "set over-provision to 13 or more");
    cfg.over_provision = 12;
    open_refused(&cfg, "over-provision=12", "set over-provision to 13 or more");
    cfg.over_provision = 13;
    bed_close(&(Bed){ .drive = in_memory(&cfg).drive });
    cfg.over_provision = 0;
    cfg.gc_frontiers = RSD_GC_FRONTIERS_SHARED;
    bed_close(&(Bed){ .drive = in_memory(&cfg).drive });
    cfg.spare_blocks = 1;       /* 1 block a frontier, and no more */
    open_refused(&cfg, "over-provision=0", "are needed for collection (1 ");
    cfg.frontiers = 1;
    bed_close(&(Bed){ .drive = in_memory(&cfg).drive });
    cfg.gc_frontiers = RSD_GC_FRONTIERS_OWN;
    bed_close(&(Bed){ .drive = in_memory(&cfg).drive });
    cfg.frontiers = 0;
    cfg.spare_blocks = 3;
    bed_close(&(Bed){ .drive = in_memory(&cfg).drive });
    cfg.gc_trigger = 30;
    open_refused(&cfg, "gc-trigger=30", "24 free blocks");
}

/* Pages in turn over the channels, then the ways: as fast as that many dies */
TEST(pages_go_over_all_dies)
{
    RsdConfig cfg = page_config();
    Bed bed = in_memory(&cfg);
    uint64_t tenure = cfg.t_cmd_ns + cfg.t_xfer_ns;

    /* two dies a channel: the second one's transfer follows the first one's */
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 4, 1), 2 * tenure + cfg.t_prog_ns);
    CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), tenure + cfg.t_read_ns);
    CHECK_EQ(counters(&bed).prog_host, 4);
    bed_close(&bed);
    cfg.frontiers = 1;
    bed = in_memory(&cfg);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 4, 1), 4 * (tenure + cfg.t_prog_ns));
    bed_close(&bed);
}

/*
 * So they do while dies collect: what is written in order is read back in order
 * at three quarters of the speed, at least, of what a new drive was filled with.
 * One read after the other, each waits for its slowest die.
 */
TEST(pages_go_over_all_dies_of_an_aged_drive)
{
    for (uint64_t variant = 0; variant < 4; variant++) {
        RsdConfig cfg = page_config();
        uint64_t fresh = 0, aged = 0;
        Bed bed;

        cfg.channels = 4;
        cfg.ways = 4;
        cfg.blocks = 20;
        cfg.pages = 32;
        cfg.gc_frontiers = variant % 2;
        cfg.gc_unit = variant / 2;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        run(&bed, RSD_WRITE, 0, bed.geo.lbas, 1);
        for (uint64_t lba = 0; lba < 1024; lba += 128) {
            fresh += run(&bed, RSD_READ, lba, 128, 0);
        }
        for (uint64_t i = 0; i < 2 * bed.geo.lbas; i++) {
            run(&bed, RSD_WRITE, rsd_random(variant, i) % bed.geo.lbas, 1, 2);
        }
        run(&bed, RSD_WRITE, 0, 1024, 3);
        bed_reopen(&bed);
        for (uint64_t lba = 0; lba < 1024; lba += 128) {
            aged += run(&bed, RSD_READ, lba, 128, 0);
        }
        CHECK(aged * 3 <= fresh * 4);
        bed_close(&bed);
    }
}

TEST(a_write_is_read_before_it_is_programmed)
{
    RsdConfig cfg = page_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    for (uint64_t tag = 1; tag < 20; tag++) {
        rsd_cmd_free(bed.drive, begin(&bed, RSD_WRITE, 3, 5, tag));
        expect_pages(&bed, 3, 5, tag);
    }
    run(&bed, RSD_TRIM, 4, 2, 0);
    expect_pages(&bed, 4, 2, 0);
    expect_pages(&bed, 6, 2, 19);
    run(&bed, RSD_WRITE_ZEROES, 6, 1, 0);
    expect_pages(&bed, 6, 1, 0);
    bed_reopen(&bed);
    expect_pages(&bed, 3, 1, 19);
    expect_pages(&bed, 4, 3, 0);
    expect_pages(&bed, 7, 1, 19);
    CHECK_EQ(counters(&bed).trim_pages, 2);
    /* what was not programmed is not in the write amplification */
    CHECK_EQ(counters(&bed).host_zero_pages, 1);
    CHECK_EQ(counters(&bed).host_write_cmds, 20);
    CHECK_EQ(counters(&bed).host_write_pages, 19 * 5);
    CHECK_EQ(counters(&bed).unwritten_reads, 2 + 1 + 3);
    bed_close(&bed);
}

/* A trim passes over what has no content, and over nothing else. */
TEST(trims_of_many_pages)
{
    static const uint64_t written[] = { 5, 1023, 1024, 2048, 2559 };
    RsdConfig cfg = page_config();
    Bed bed;

    cfg.blocks = 96;            /* 2560 LBAs */
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    CHECK_EQ(bed.geo.lbas, 2560);
    for (int life = 0; life < 2; life++) {
        for (int i = 0; i < 5; i++) {
            run(&bed, RSD_WRITE, written[i], 1, 1);
            run(&bed, RSD_WRITE, written[i], 1, 2);
        }
        run(&bed, RSD_TRIM, 6, 1017, 0);
        run(&bed, RSD_TRIM, 1025, 1023, 0);
        bed_reopen(&bed);
        for (int i = 0; i < 5; i++) {
            expect_pages(&bed, written[i], 1, 2);
        }
        run(&bed, RSD_TRIM, 6, 1018, 0);
        expect_pages(&bed, 5, 1, 2);
        expect_pages(&bed, 1023, 1, 0);
        expect_pages(&bed, 1024, 1, 2);
        run(&bed, RSD_TRIM, 1024, 1025, 0);
        expect_pages(&bed, 1024, 1025, 0);
        expect_pages(&bed, 2559, 1, 2);
        if (life) {
            CHECK_EQ(rsd_format(bed.drive, 0, 0, bed.now), RSD_OK);
        } else {
            run(&bed, RSD_TRIM, 0, 2560, 0);
        }
        for (int i = 0; i < 2; i++) {
            expect_pages(&bed, 0, 2560, 0);
            bed_reopen(&bed);
        }
    }
    bed_close(&bed);
}

/* Full, then overwritten at random many times over, all policies */
TEST(random_commands)
{
    for (uint64_t seed = 0; seed < 48; seed++) {
        RsdConfig cfg = page_config();
        World w;
        RsdCounters c;

        cfg.gc_policy = seed % 3;
        cfg.gc_unit = seed / 3 % 2;
        cfg.frontiers = (const uint64_t[]){ 0, 1, 3, 4 }[seed / 6 % 4];
        cfg.gc_trigger = seed % 5 ? 1 : 24;
        cfg.gc_frontiers = seed / 4 % 2;
        cfg.spare_blocks = 1 + seed % 3;
        cfg.queue = seed / 2 % 2 ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
        cfg.idle_erase_ns = seed % 4 ? 1000000 : 0;
        cfg.wl_threshold = seed % 3;
        cfg.oob = (const uint64_t[]){ 0, 16, 64 }[seed % 3];
        w = world_open(&cfg, "drive.rsd", seed);
        world_lives(&w, 8, 150, check_counters);
        world_fill(&w);
        world_check(&w);
        c = counters(&w.bed);
        CHECK(c.erase_clean > 20);
        CHECK(c.prog_clean > 50);
        CHECK_EQ(c.read_clean + c.read_wear >= c.prog_clean + c.prog_wear, 1);
        world_close(&w);
    }
}

/* The same commands at the same times: the same, to the last counter */
TEST(runs_are_equal)
{
    RsdConfig cfg = page_config();

    check_runs_are_equal(&cfg, 1500);
}

/* Every LBA written, nothing over but the spares: overwriting goes on. */
TEST(no_over_provisioning)
{
    RsdConfig cfg = page_config();
    World w;

    cfg.blocks = 16;
    cfg.over_provision = 0;
    for (uint64_t i = 0; i < 6; i++) {
        cfg.gc_policy = i % 3;
        cfg.gc_frontiers = i / 3;
        cfg.spare_blocks = 3 - cfg.gc_frontiers;
        w = world_open(&cfg, "drive.rsd", 3);
        CHECK_EQ(w.bed.geo.lbas, 512);
        world_fill(&w);
        world_fill(&w);
        for (int i = 0; i < 300; i++) {
            run(&w.bed, RSD_WRITE, rng_below(&w.rng, 512), 1, 5);
        }
        check_counters(&w.bed);
        world_close(&w);
    }
}

/*
 * Cold pages on every fourth LBA, all others overwritten: with one frontier a
 * die, the cold ones collect on one die until it has no room left.
 */
TEST(a_die_full_of_cold_pages)
{
    RsdConfig cfg = page_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    for (int round = 0; round < 40; round++) {
        for (uint64_t at = 0; at < 256; at += 4) {
            if (!round) {
                run(&bed, RSD_WRITE, at, 1, 1);
            }
            run(&bed, RSD_WRITE, at + 1, 3, round + 2);
        }
    }
    for (uint64_t at = 0; at < 256; at += 4) {
        expect_pages(&bed, at, 1, 1);
        expect_pages(&bed, at + 1, 3, 41);
    }
    check_counters(&bed);
    bed_close(&bed);
}

/*
 * Greedy by hand: one die, blocks of 8, victims are those with fewest valid.
 * Copies go where the host's pages go, or to a block of their own.
 */
TEST(greedy_takes_the_emptiest)
{
    for (int own = 0; own < 2; own++) {
        RsdConfig cfg = page_config();
        Bed bed;
        RsdCounters c;

        cfg.channels = cfg.ways = 1;
        cfg.blocks = 40;            /* 320 pages, 256 LBAs */
        cfg.spare_blocks = 0;
        cfg.gc_frontiers = own ? RSD_GC_FRONTIERS_OWN
                               : RSD_GC_FRONTIERS_SHARED;
        bed = in_memory(&cfg);
        CHECK_EQ(bed.geo.lbas, 256);
        /* 32 blocks, then block 0 of the LBAs again, and one of each other */
        run(&bed, RSD_WRITE, 0, 256, 1);
        run(&bed, RSD_WRITE, 0, 8, 2);
        for (uint64_t at = 8; at < 56; at += 8) {
            run(&bed, RSD_WRITE, at, 7, 2);
            bed_drain(&bed);
        }
        c = counters(&bed);
        /*
         * 256 + 8 + 42 pages are 38 blocks and a bit: when block 39 is begun,
         * one is free, and the first block, without a valid page, is erased.
         */
        CHECK_EQ(c.prog_host, 306);
        CHECK_EQ(c.erase_clean, 1);
        CHECK_EQ(c.prog_clean, 0);
        /*
         * The rest of this block and the erased one; then one page is copied.
         * If that begins another block, a second victim makes up for it: the
         * one that has no valid page any more.
         */
        run(&bed, RSD_WRITE, 200, 8, 3);
        bed_drain(&bed);
        c = counters(&bed);
        CHECK_EQ(c.erase_clean, 2 + own);
        CHECK_EQ(c.prog_clean, 1);
        CHECK_EQ(c.read_clean, 1);
        bed_close(&bed);
    }
}

/*
 * A block is filled either by the host or by copies: with gc-frontiers=own no
 * block has pages of both, also when the drive was opened in between.
 */
TEST(copies_have_blocks_of_their_own)
{
    for (int own = 0; own < 2; own++) {
        RsdConfig cfg = page_config();
        uint32_t mixed = 0, copied = 0;
        Rng rng = { 7 };
        Bed bed;

        cfg.gc_frontiers = own ? RSD_GC_FRONTIERS_OWN
                               : RSD_GC_FRONTIERS_SHARED;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        run(&bed, RSD_WRITE, 0, 256, 1);
        for (int i = 0; i < 1500; i++) {
            run(&bed, RSD_WRITE, rng_below(&rng, 256), 1, i + 2);
            if (i % 50 == 49) {
                bed_reopen(&bed);
            }
        }
        for (uint32_t b = 0; b < 44; b++) {
            uint32_t next = rsd_rec_next(bed.drive->media.rec[b]), copies = 0;

            for (uint32_t page = 0; page < next; page++) {
                RsdSpare spare;

                memcpy(&spare, rsd_media_oob(&bed.drive->media, b, page) +
                               RSD_SPARE_OFFSET, sizeof(spare));
                copies += spare.copy;
            }
            copied += copies;
            mixed += copies && copies < next;
        }
        CHECK(copied > 50);
        CHECK_EQ(mixed > 0, !own);
        check_counters(&bed);
        bed_close(&bed);
    }
}

/* First in, first out takes the oldest, whatever is in it */
TEST(fifo_takes_the_oldest)
{
    RsdConfig cfg = page_config();
    Bed bed;
    RsdCounters c;

    cfg.channels = cfg.ways = 1;
    cfg.blocks = 40;
    cfg.spare_blocks = 0;
    cfg.gc_policy = RSD_GC_FIFO;
    bed = in_memory(&cfg);
    run(&bed, RSD_WRITE, 0, 256, 1);
    run(&bed, RSD_WRITE, 8, 48, 2);     /* all but the first block's */
    bed_drain(&bed);
    run(&bed, RSD_WRITE, 100, 1, 2);    /* block 39 is begun */
    bed_drain(&bed);
    c = counters(&bed);
    /* the first is copied whole and gains nothing, so the next is erased */
    CHECK_EQ(c.prog_clean, 8);
    CHECK_EQ(c.erase_clean, 2);
    bed_close(&bed);
}

/*
 * Benefit and cost by hand: age * (1 - u) / 2u. Block 0 has lost two pages long
 * ago, the others one or two since, and the last one three. Greedy takes that.
 */
TEST(cost_benefit_takes_the_older)
{
    RsdConfig cfg = page_config();

    cfg.channels = cfg.ways = 1;
    cfg.gc_frontiers = RSD_GC_FRONTIERS_SHARED; /* one victim is enough */
    cfg.blocks = 40;
    cfg.spare_blocks = 0;
    for (int greedy = 0; greedy < 2; greedy++) {
        Bed bed;
        RsdCounters c;

        cfg.gc_policy = greedy ? RSD_GC_GREEDY : RSD_GC_COST_BENEFIT;
        bed = in_memory(&cfg);
        run(&bed, RSD_WRITE, 0, 256, 1);
        run(&bed, RSD_WRITE, 0, 2, 2);
        for (uint64_t block = 1; block < 31; block++) {
            run(&bed, RSD_WRITE, 8 * block, 1, 2);
        }
        run(&bed, RSD_WRITE, 248, 3, 2);
        for (uint64_t block = 10; block < 23; block++) {
            run(&bed, RSD_WRITE, 8 * block + 1, 1, 2);
        }
        bed_drain(&bed);
        CHECK_EQ(counters(&bed).erase_clean, 0);
        run(&bed, RSD_WRITE, 89, 1, 3);     /* block 39 is begun */
        bed_drain(&bed);
        c = counters(&bed);
        CHECK_EQ(c.erase_clean, 1);
        CHECK_EQ(c.prog_clean, greedy ? 5 : 6);
        bed_close(&bed);
    }
}

TEST(idle_dies_erase_what_is_empty)
{
    RsdConfig cfg = page_config();
    Bed bed;

    cfg.idle_erase_ns = 1000000;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    run(&bed, RSD_WRITE, 0, 256, 1);
    run(&bed, RSD_TRIM, 0, 256, 0);
    CHECK_EQ(counters(&bed).blocks_dirty, 0);
    CHECK_EQ(counters(&bed).erase_idle, 0);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).erase_idle, 32);
    CHECK_EQ(counters(&bed).blocks_erased, 44);
    expect_pages(&bed, 0, 256, 0);
    bed_close(&bed);
}

/* Cold pages move to worn blocks, so that erase counts stay together. */
TEST(levelling)
{
    uint64_t spread[2];

    for (int on = 0; on < 2; on++) {
        RsdConfig cfg = page_config();
        Bed bed;
        RsdCounters c;

        cfg.idle_erase_ns = 1000;
        cfg.wl_threshold = on ? 4 : 0;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        run(&bed, RSD_WRITE, 0, 256, 1);
        for (int i = 0; i < 600; i++) {
            run(&bed, RSD_WRITE, i * 8 % 32, 8, i + 2);
            bed_drain(&bed);
        }
        c = counters(&bed);
        spread[on] = c.wear_max - c.wear_min;
        CHECK_EQ(c.wear_moves > 0, on);
        CHECK_EQ(c.prog_wear > 0, on);
        expect_pages(&bed, 32, 224, 1);
        check_counters(&bed);
        bed_reopen(&bed);
        expect_pages(&bed, 32, 224, 1);
        bed_close(&bed);
    }
    CHECK(spread[0] > 10);
    CHECK(spread[1] <= 6);
}

TEST(format_trims_everything)
{
    RsdConfig cfg = page_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 256, 1);
    run(&bed, RSD_WRITE, 0, 100, 2);
    CHECK_EQ(rsd_format(bed.drive, 0, 128, bed.now), RSD_E_RANGE);
    CHECK_EQ(rsd_format(bed.drive, 0, 64, bed.now), RSD_OK);
    expect_pages(&bed, 0, 256, 0);
    bed.cfg.oob = 64;
    bed_reopen(&bed);
    expect_pages(&bed, 0, 256, 0);
    run(&bed, RSD_WRITE, 5, 3, 3);
    bed_reopen(&bed);
    expect_pages(&bed, 5, 3, 3);
    bed_close(&bed);
}

/* Factory bad blocks are never used and cost over-provisioning alone. */
TEST(bad_blocks)
{
    RsdConfig cfg = page_config();
    World w;

    cfg.blocks = 20;
    cfg.spare_blocks = 3;
    cfg.bad_ppm = 80000;
    w = world_open(&cfg, "drive.rsd", 5);
    CHECK(counters(&w.bed).blocks_bad > 2);
    CHECK_EQ(w.bed.geo.lbas, 512);
    for (int i = 0; i < 600; i++) {
        world_step(&w);
    }
    world_fill(&w);
    world_check(&w);
    world_reopen(&w);
    world_check(&w);
    check_counters(&w.bed);
    world_close(&w);
}

/* Zones and LBAs on one drive: neither touches the other's blocks. */
TEST(shared_with_zones)
{
    RsdConfig cfg = page_config();
    Bed bed;
    RsdGeometry geo;
    RsdCmd *cmd;

    cfg.ftl = RSD_FTL_RSD;
    cfg.blocks = 15;
    cfg.conv_blocks = 11;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    rsd_geometry(bed.drive, 1, &geo);
    CHECK_EQ(geo.lbas, 256);
    CHECK_EQ(bed.geo.num_zones, 4);
    for (uint32_t round = 0; round < 8; round++) {
        for (uint32_t zone = 0; zone < 4; zone++) {
            run(&bed, RSD_ZONE_RESET, lba(&bed, zone, 0), 0, 0);
            run(&bed, RSD_WRITE, lba(&bed, zone, 0), 32, round + 1);
        }
        for (uint64_t at = 0; at < 256; at += 8) {
            cmd = rsd_cmd_new(bed.drive, 1, RSD_WRITE, at, 8);
            for (uint32_t i = 0; i < 8; i++) {
                fill_page(cmd->data + i * PAGE, NULL, 0, at + i, round + 100);
            }
            CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
            await(&bed, cmd);
            rsd_cmd_free(bed.drive, cmd);
        }
        bed_reopen(&bed);
        for (uint32_t zone = 0; zone < 4; zone++) {
            expect_pages(&bed, lba(&bed, zone, 0), 32, round + 1);
        }
        cmd = rsd_cmd_new(bed.drive, 1, RSD_READ, 0, 256);
        CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
        await(&bed, cmd);
        for (uint32_t i = 0; i < 256; i++) {
            CHECK(page_matches(cmd->data + i * PAGE, NULL, 0, i,
                               round + 100));
        }
        rsd_cmd_free(bed.drive, cmd);
    }
    CHECK(counters(&bed).erase_clean > 100);
    bed_close(&bed);
}

/* Blocks die until the drive takes no more; all that was taken is there. */
TEST(wearing_out)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        RsdConfig cfg = page_config();

        /* a die's spares are over first, or the flash beyond the host's */
        cfg.blocks = 16;
        cfg.over_provision = seed % 2 ? 20 : 50;
        cfg.spare_blocks = seed % 2 ? 1 : 8;
        cfg.gc_frontiers = seed / 3 % 2;
        cfg.frontiers = seed / 2 % 2;
        cfg.gc_unit = seed / 4 % 2;
        cfg.idle_erase_ns = seed % 3 ? 1000000 : 0;
        cfg.wl_threshold = seed % 3 ? 3 : 0;
        wear_out(&cfg, seed);
    }
}

/* Writes pages at random until one is refused. */
static void write_until_read_only(Bed *bed, uint64_t seed)
{
    Rng rng = { seed };
    RsdStatus status;

    do {
        RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, RSD_WRITE,
                                  rng_below(&rng, bed->geo.lbas), 1);

        CHECK(cmd);
        status = rsd_submit(bed->drive, cmd, bed->now);
        while (status == RSD_OK && !rsd_advance(bed->drive, bed->now)) {
            CHECK(rsd_next_event(bed->drive, &bed->now));
        }
        status = status == RSD_OK ? cmd->status : status;
        rsd_cmd_free(bed->drive, cmd);
    } while (status == RSD_OK);
    CHECK_EQ(status, RSD_E_READONLY);
}

/*
 * The block that a frontier keeps for its victim's pages may be what dies. As
 * long as the drive has enough blocks in all, that does not end it.
 */
TEST(a_frontier_without_a_reserve_is_helped)
{
    for (uint64_t seed = 0; seed < 24; seed++) {
        RsdConfig cfg = page_config();
        uint64_t good = 0, most_bad = 0, kept;
        Bed bed;

        cfg.blocks = 16;
        cfg.over_provision = 75;
        cfg.spare_blocks = 12;
        cfg.endurance = 12;
        cfg.life_spread = 50;
        cfg.seed = seed;
        cfg.gc_unit = seed % 2;
        cfg.gc_policy = seed / 2 % 3;
        cfg.gc_frontiers = seed / 6 % 2;
        kept = cfg.gc_frontiers == RSD_GC_FRONTIERS_OWN ? 2 : 1;
        bed = bed_open(&cfg, NULL);
        CHECK_EQ(bed.geo.lbas, 512);
        write_until_read_only(&bed, seed);
        for (uint32_t die = 0; die < 4; die++) {
            const uint64_t *rec = bed.drive->media.rec + die * 28;
            uint64_t bad = 0;

            for (uint32_t b = 0; b < 28; b++) {
                bad += rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD ? 1 : 0;
            }
            good += 28 - bad;
            most_bad = bad > most_bad ? bad : most_bad;
        }
        if (most_bad <= cfg.spare_blocks && good * 8 > 512 + 4 * 8 * kept) {
            FAIL("seed %" PRIu64 ": read-only with %" PRIu64 " good blocks",
                 seed, good);
        }
        bed_close(&bed);
    }
}
