/*
 * The hybrid personality, FAST: what the host reads, whatever is merged or
 * trimmed meanwhile; merges by kind, worked out by hand; settings refused.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "conventional.h"
#include "floors.h"

/*
 * 2 channels, 2 ways, blocks of 8 pages: 33 logical blocks on 48, and a log of
 * the sequential block and two random ones
 */
static RsdConfig fast_config(void)
{
    RsdConfig cfg = small_config();

    cfg.ftl = RSD_FTL_FAST;
    cfg.blocks = 10;
    cfg.spare_blocks = 2;
    cfg.over_provision = 45;
    cfg.log_blocks = 10;
    return cfg;
}

TEST(geometry)
{
    RsdConfig cfg = fast_config();
    Bed bed = bed_open(&cfg, NULL);

    CHECK(!bed.geo.zoned);
    CHECK_EQ(bed.geo.lbas, 264);        /* 384 / 1.45, whole blocks of 8 */
    CHECK_EQ(bed.geo.max_oob, 64);
    CHECK_EQ(bed.geo.map_bytes, 40 * 4 + 32 * 4);
    bed_close(&bed);
}

/*
 * RISA table 2: 4 bytes a block and 4 a page of a log of 5%. The paper has 121
 * KB, 32 MB and 62 MB, which are these in units of 1000, but for the second: it
 * would be 31 MB.
 */
TEST(map_sizes_of_the_papers)
{
    static const struct { uint64_t blocks, map_bytes; } rows[] = {
        { 128, 16384 + 104857 },                /* 2 GB */
        { 32768, 4194304 + 26843545 },          /* 512 GB */
        { 65536, 8388608 + 53687091 },          /* 1 TB */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        RsdConfig cfg;
        Bed bed;

        rsd_preset_find("risa")->apply(&cfg);
        cfg.ftl = RSD_FTL_FAST;
        cfg.over_provision = 10;        /* the log, and what merges take */
        cfg.log_blocks = 5;
        cfg.blocks = rows[i].blocks;
        bed = bed_open(&cfg, NULL);
        CHECK_EQ(counters(&bed).map_bytes, rows[i].map_bytes);
        bed_close(&bed);
    }
}

TEST(settings_refused)
{
    RsdConfig cfg = fast_config();

    cfg.over_provision = 10;
    cfg.spare_blocks = 1;
    open_refused(&cfg, "needs 12 good flash blocks in each way",
                 "spare-blocks (now 1)");
    cfg.over_provision = 33;
    cfg.log_blocks = 50;
    open_refused(&cfg, "log-blocks=50 are 15 random log blocks",
                 "room for 3 beside");
}

TEST(sequential_log_block)
{
    RsdConfig cfg = fast_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 24, 1);     /* three data blocks */
    expect_merges(&bed, (Merges){ 0 });
    run(&bed, RSD_WRITE, 0, 8, 2);      /* all of one again */
    expect_merges(&bed, (Merges){ .switches = 1, .erases = 1 });
    run(&bed, RSD_WRITE, 8, 3, 3);      /* the beginning of another */
    run(&bed, RSD_WRITE, 11, 2, 4);
    expect_merges(&bed, (Merges){ .switches = 1, .erases = 1 });
    run(&bed, RSD_WRITE, 16, 1, 5);     /* the third one needs the log block */
    expect_merges(&bed, (Merges){ .switches = 1, .partial = 1, .copies = 3,
                                  .erases = 2 });
    /* not its next page: it is merged, and the page goes to the random log */
    run(&bed, RSD_WRITE, 18, 1, 6);
    expect_merges(&bed, (Merges){ .switches = 1, .partial = 2, .copies = 10,
                                  .erases = 3 });
    expect_pages(&bed, 0, 8, 2);
    expect_pages(&bed, 8, 3, 3);
    expect_pages(&bed, 11, 2, 4);
    expect_pages(&bed, 13, 3, 1);
    expect_pages(&bed, 16, 1, 5);
    expect_pages(&bed, 17, 1, 1);
    expect_pages(&bed, 18, 1, 6);
    expect_pages(&bed, 19, 5, 1);
    bed_close(&bed);
}

TEST(random_log_blocks)
{
    RsdConfig cfg = fast_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 64, 1);     /* eight data blocks */
    /* two log blocks: pages 1 and 2 of each of the eight */
    for (uint64_t block = 0; block < 8; block++) {
        run(&bed, RSD_WRITE, block * 8 + 1, 2, 2 + block);
    }
    expect_merges(&bed, (Merges){ 0 });
    /* one more page: the older one, of blocks 0 to 3, is reclaimed */
    run(&bed, RSD_WRITE, 5, 1, 20);
    expect_merges(&bed, (Merges){ .full = 4, .copies = 32, .erases = 5 });
    for (uint64_t block = 0; block < 8; block++) {
        expect_pages(&bed, block * 8 + 1, 2, 2 + block);
        expect_pages(&bed, block * 8 + 6, 2, 1);
    }
    expect_pages(&bed, 5, 1, 20);
    /* the next to be reclaimed is written again or trimmed: no merge */
    for (uint64_t block = 4; block < 8; block++) {
        run(&bed, RSD_WRITE, block * 8 + 1, block < 7 ? 2 : 1, 30);
    }
    run(&bed, RSD_TRIM, 58, 1, 0);
    run(&bed, RSD_WRITE, 6, 1, 31);
    expect_merges(&bed, (Merges){ .full = 4, .copies = 32, .erases = 6 });
    bed_reopen(&bed);
    expect_pages(&bed, 5, 1, 20);
    expect_pages(&bed, 6, 1, 31);
    expect_pages(&bed, 33, 2, 30);
    expect_pages(&bed, 35, 5, 1);
    expect_pages(&bed, 57, 1, 30);
    expect_pages(&bed, 58, 1, 0);
    bed_close(&bed);
}

TEST(no_data_block)
{
    RsdConfig cfg = fast_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 5, 1, 1);
    CHECK_EQ(counters(&bed).blocks_used, 1);
    expect_pages(&bed, 0, 5, 0);
    expect_pages(&bed, 5, 1, 1);
    for (uint64_t i = 0; i < 15; i++) {
        run(&bed, RSD_WRITE, 9 + i % 2, 1, 2);
    }
    expect_merges(&bed, (Merges){ 0 });
    /* reclaiming: page 5 after filler; the rest is written again */
    run(&bed, RSD_WRITE, 9, 1, 3);
    expect_merges(&bed, (Merges){ .full = 1, .copies = 1, .filler = 5,
                                  .erases = 1 });
    expect_pages(&bed, 0, 5, 0);
    expect_pages(&bed, 5, 1, 1);
    expect_pages(&bed, 6, 3, 0);
    expect_pages(&bed, 9, 1, 3);
    expect_pages(&bed, 10, 1, 2);
    /* page 6 is the data block's next */
    run(&bed, RSD_WRITE, 6, 1, 4);
    run(&bed, RSD_TRIM, 0, 8, 0);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).erase_host, 1);
    expect_pages(&bed, 0, 8, 0);
    bed_close(&bed);
}

/*
 * log-blocks is lowered: what the log holds beyond that is reclaimed by writes
 * that need a log block.
 */
TEST(a_smaller_log)
{
    RsdConfig cfg = fast_config();
    Bed bed;

    cfg.blocks = 20;
    cfg.spare_blocks = 8;
    cfg.log_blocks = 30;        /* 18 random log blocks */
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    run(&bed, RSD_WRITE, 0, 512, 1);
    for (uint64_t block = 0; block < 64; block++) {
        run(&bed, RSD_WRITE, block * 8 + 1, 2, 2 + block);
    }
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).blocks_used, 64 + 16);
    bed.cfg.log_blocks = 3;     /* the sequential one, and one random */
    bed_reopen(&bed);
    CHECK_EQ(counters(&bed).blocks_used, 64 + 16);
    for (int i = 0; i < 2; i++) {
        for (uint64_t block = 0; block < 64; block++) {
            expect_pages(&bed, block * 8, 1, 1);
            expect_pages(&bed, block * 8 + 1, 2, 2 + block);
            expect_pages(&bed, block * 8 + 3, 4, 1);
            expect_pages(&bed, block * 8 + 7, 1, i ? 3 : 1);
            run(&bed, RSD_WRITE, block * 8 + 7, 1, 3);
        }
        bed_drain(&bed);
        CHECK(counters(&bed).blocks_used <= 64 + 1);
    }
    check_merge_counters(&bed);
    bed_close(&bed);
}

/* What a log block holds is not given up for a page that is in flight. */
TEST(an_old_page_stays_until_the_new_one_is_programmed)
{
    RsdConfig cfg = fast_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 264, 1);
    for (uint64_t block = 0; block < 8; block++) {
        run(&bed, RSD_WRITE, block * 8 + 1, 1, 2);      /* a log block */
    }
    for (uint64_t block = 0; block < 8; block++) {
        begin(&bed, RSD_WRITE, block * 8 + 1, 1, 3);    /* the other one */
    }
    begin(&bed, RSD_WRITE, 2, 1, 4);    /* nothing in the first is newest */
    bed_reopen(&bed);
    for (uint64_t block = 0; block < 8; block++) {
        expect_pages(&bed, block * 8 + 1, 1, 2);
    }
    bed_close(&bed);
}

/* Full merges of logical blocks in different dies go on at once. */
TEST(merges_in_parallel)
{
    RsdConfig cfg = fast_config();
    uint64_t latency[2];

    for (int same = 0; same < 2; same++) {
        Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

        run(&bed, RSD_WRITE, 0, 160, 1);
        /* of blocks 0 to 3, in all dies, or of 0, 4, 8 and 12, in one */
        for (uint64_t i = 0; i < 16; i++) {
            uint64_t block = same ? i % 4 * 4 : i % 4;

            run(&bed, RSD_WRITE, block * 8 + 1 + i / 4, 1, 2);
        }
        latency[same] = run(&bed, RSD_WRITE, 7, 1, 3);
        expect_merges(&bed, (Merges){ .full = 4, .copies = 32, .erases = 5 });
        bed_close(&bed);
    }
    CHECK(latency[1] > 3 * latency[0]);
}

static RsdConfig random_config(uint64_t seed)
{
    RsdConfig cfg = fast_config();

    cfg.stripe = seed % 3 == 2;
    cfg.spare_blocks = 2 + seed % 2;
    cfg.pages = (const uint64_t[]){ 8, 3, 5, 16 }[seed / 2 % 4];
    if (cfg.stripe) {
        cfg.blocks = 14;
        cfg.pages = (const uint64_t[]){ 4, 3, 5, 8 }[seed / 2 % 4];
    }
    cfg.queue = seed / 2 % 2 ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
    /* of what is in blocks alone: so many percent */
    cfg.over_provision = (seed % 4 ? 120 : 110) *
                         (cfg.blocks + cfg.spare_blocks) / cfg.blocks - 100;
    cfg.log_blocks = seed % 5 ? 10 : 3;
    cfg.oob = (const uint64_t[]){ 0, 16, 64 }[seed / 3 % 3];
    cfg.wl_threshold = seed % 3;
    return cfg;
}

TEST(random_commands)
{
    check_random_merges(random_config);
}

/* The same commands at the same times: the same, to the last counter */
TEST(runs_are_equal)
{
    RsdConfig cfg = random_config(0);

    check_runs_are_equal(&cfg, 1500);
}

TEST(format_trims_everything)
{
    RsdConfig cfg = fast_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 264, 1);
    run(&bed, RSD_WRITE, 3, 5, 2);
    run(&bed, RSD_WRITE, 8, 3, 2);
    CHECK_EQ(rsd_format(bed.drive, 0, 64, bed.now), RSD_OK);
    expect_pages(&bed, 0, 264, 0);
    bed.cfg.oob = 64;
    bed_reopen(&bed);
    expect_pages(&bed, 0, 264, 0);
    run(&bed, RSD_WRITE, 5, 3, 3);
    bed_reopen(&bed);
    expect_pages(&bed, 5, 3, 3);
    bed_close(&bed);
}

/* Factory bad blocks are never used and cost over-provisioning alone. */
TEST(bad_blocks)
{
    RsdConfig cfg = fast_config();

    cfg.blocks = 20;
    cfg.spare_blocks = 4;
    cfg.bad_ppm = 60000;
    check_bad_blocks(&cfg);
}

/* Cold data moves to worn blocks, so that erase counts stay together. */
TEST(levelling)
{
    RsdConfig cfg = fast_config();

    check_levelling(&cfg);
}

/* Blocks die until the drive takes no more; all that was taken is there. */
TEST(wearing_out)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        RsdConfig cfg = fast_config();

        cfg.stripe = seed % 2;
        cfg.wl_threshold = seed % 3 ? 3 : 0;
        wear_out(&cfg, seed);
    }
}
