/*
 * The block-mapping personality: what the host reads, whatever is merged or
 * trimmed meanwhile; merges by kind, worked out by hand; settings refused.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "conventional.h"
#include "floors.h"

/* 2 channels, 2 ways, blocks of 8 pages: 33 logical blocks on 44 */
static RsdConfig block_config(void)
{
    RsdConfig cfg = small_config();

    cfg.ftl = RSD_FTL_BLOCK;
    cfg.blocks = 10;
    cfg.over_provision = 33;
    return cfg;
}

TEST(geometry)
{
    RsdConfig cfg = block_config();
    Bed bed = bed_open(&cfg, NULL);

    CHECK(!bed.geo.zoned);
    CHECK_EQ(bed.geo.lbas, 264);        /* 352 / 1.33, whole blocks of 8 */
    CHECK_EQ(bed.geo.max_oob, 64);
    CHECK_EQ(bed.geo.map_bytes, 40 * 4);
    bed_close(&bed);
    cfg.stripe = RSD_STRIPE_ALL;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(bed.geo.lbas, 256);        /* whole superblocks of 32 */
    bed_close(&bed);
}

/* REDO table 2 and RISA table 2: 4 bytes a block of the capacity */
TEST(map_sizes_of_the_papers)
{
    static const struct { uint64_t blocks, map_bytes; } rows[] = {
        { 32, UINT64_C(4) << 10 },              /* 512 MB */
        { 128, UINT64_C(16) << 10 },            /* 2 GB */
        { 32768, UINT64_C(4) << 20 },           /* 512 GB */
        { 65536, UINT64_C(8) << 20 },           /* 1 TB */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        RsdConfig cfg;
        Bed bed;

        rsd_preset_find("risa")->apply(&cfg);
        cfg.ftl = RSD_FTL_BLOCK;
        cfg.blocks = rows[i].blocks;
        bed = bed_open(&cfg, NULL);
        CHECK_EQ(counters(&bed).map_bytes, rows[i].map_bytes);
        bed_close(&bed);
    }
}

TEST(settings_refused)
{
    RsdConfig cfg = block_config();

    cfg.over_provision = 0;
    cfg.spare_blocks = 0;
    open_refused(&cfg, "needs 11 good flash blocks in each way",
                 "over-provision (now 0)");
    cfg.spare_blocks = 1;
    cfg.over_provision = 10;
    bed_close(&(Bed){ .drive = bed_open(&cfg, NULL).drive });
    cfg.blocks = 1;
    cfg.over_provision = 1000;
    open_refused(&cfg, "over-provision=1000", "maps 8 at a time");
}

/* Logical block n is in die n mod dies, its pages one after the other. */
TEST(blocks_go_over_all_dies)
{
    RsdConfig cfg = block_config();
    Bed bed = bed_open(&cfg, NULL);
    uint64_t page = cfg.t_cmd_ns + cfg.t_xfer_ns + cfg.t_prog_ns;

    CHECK_EQ(run(&bed, RSD_WRITE, 0, 8, 1), 8 * page);
    /* 4 dies, two of them on each channel: never more than one transfer late */
    CHECK(run(&bed, RSD_WRITE, 8, 32, 1) <=
          8 * page + cfg.t_cmd_ns + cfg.t_xfer_ns);
    CHECK_EQ(counters(&bed).prog_host, 40);
    bed_close(&bed);
    cfg.stripe = RSD_STRIPE_ALL;
    bed = bed_open(&cfg, NULL);
    /* a page in each die: the second on a channel waits for the transfer */
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 4, 1),
             page + cfg.t_cmd_ns + cfg.t_xfer_ns);
    bed_close(&bed);
}

TEST(merges_by_hand)
{
    RsdConfig cfg = block_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 8, 1);
    expect_merges(&bed, (Merges){ 0 });
    /* all of it again: the replacement block is full, and switched */
    run(&bed, RSD_WRITE, 0, 8, 2);
    expect_merges(&bed, (Merges){ .switches = 1, .erases = 1 });
    expect_pages(&bed, 0, 8, 2);
    /* its beginning, twice: the rest is copied when it begins anew */
    run(&bed, RSD_WRITE, 0, 3, 3);
    expect_merges(&bed, (Merges){ .switches = 1, .erases = 1 });
    run(&bed, RSD_WRITE, 0, 3, 4);
    expect_merges(&bed, (Merges){ .switches = 1, .partial = 1, .copies = 5,
                                  .erases = 2 });
    expect_pages(&bed, 0, 3, 4);
    expect_pages(&bed, 3, 5, 2);
    /* page 6: pages 3 to 5 are copied; then page 7 makes it full */
    run(&bed, RSD_WRITE, 6, 1, 5);
    run(&bed, RSD_WRITE, 7, 1, 6);
    expect_merges(&bed, (Merges){ .switches = 1, .partial = 1, .full = 1,
                                  .copies = 8, .erases = 3 });
    /* page 6 of a logical block never written: six pages of filler */
    run(&bed, RSD_WRITE, 38, 1, 7);
    expect_merges(&bed, (Merges){ .switches = 1, .partial = 1, .full = 1,
                                  .copies = 8, .filler = 6, .erases = 3 });
    expect_pages(&bed, 32, 6, 0);
    expect_pages(&bed, 38, 1, 7);
    /* page 1 of it: nothing to copy but page 6, after filler */
    run(&bed, RSD_WRITE, 33, 1, 8);
    run(&bed, RSD_WRITE, 33, 1, 9);
    expect_merges(&bed, (Merges){ .switches = 1, .partial = 2, .full = 1,
                                  .copies = 9, .filler = 6 + 1 + 4 + 1,
                                  .erases = 4 });
    expect_pages(&bed, 33, 1, 9);
    expect_pages(&bed, 38, 1, 7);
    bed_close(&bed);
}

/* What else is written to a logical block while it is copied waits for that. */
TEST(writes_wait_for_copies)
{
    RsdConfig cfg = block_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    RsdCmd *first, *second;

    run(&bed, RSD_WRITE, 0, 8, 1);
    /* 0 to 4 are copied before it */
    first = begin(&bed, RSD_WRITE, 5, 1, 2);
    second = begin(&bed, RSD_WRITE, 7, 1, 3);
    await(&bed, first);
    CHECK_EQ(counters(&bed).prog_merge, 5);
    await(&bed, second);
    rsd_cmd_free(bed.drive, first);
    rsd_cmd_free(bed.drive, second);
    expect_merges(&bed, (Merges){ .full = 1, .copies = 6, .erases = 1 });
    expect_pages(&bed, 0, 5, 1);
    expect_pages(&bed, 5, 1, 2);
    expect_pages(&bed, 6, 1, 1);
    expect_pages(&bed, 7, 1, 3);
    bed_close(&bed);
}

/* A logical block of which nothing is left has no blocks. */
TEST(trim_gives_blocks_back)
{
    RsdConfig cfg = block_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 8, 1);
    run(&bed, RSD_WRITE, 2, 1, 2);
    CHECK_EQ(counters(&bed).blocks_used, 2);
    run(&bed, RSD_TRIM, 1, 7, 0);
    CHECK_EQ(counters(&bed).blocks_used, 2);
    run(&bed, RSD_WRITE_ZEROES, 0, 1, 0);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).blocks_used, 0);
    CHECK_EQ(counters(&bed).erase_host, 2);
    expect_pages(&bed, 0, 8, 0);
    run(&bed, RSD_WRITE, 5, 1, 3);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 5, 0);
    expect_pages(&bed, 5, 1, 3);
    expect_pages(&bed, 6, 2, 0);
    bed_close(&bed);
}

static RsdConfig random_config(uint64_t seed)
{
    RsdConfig cfg = block_config();

    cfg.stripe = seed % 3 == 2;
    cfg.spare_blocks = 1 + seed % 2;
    cfg.pages = (const uint64_t[]){ 8, 3, 5, 16 }[seed / 2 % 4];
    cfg.queue = seed / 2 % 2 ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
    cfg.over_provision = seed % 4 ? 33 : 10 * cfg.spare_blocks;
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
    RsdConfig cfg = block_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 256, 1);
    run(&bed, RSD_WRITE, 0, 100, 2);
    CHECK_EQ(rsd_format(bed.drive, 0, 128, bed.now), RSD_E_RANGE);
    CHECK_EQ(rsd_format(bed.drive, 0, 64, bed.now), RSD_OK);
    expect_pages(&bed, 0, 256, 0);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).blocks_used, 0);
    bed.cfg.oob = 64;
    bed_reopen(&bed);
    expect_pages(&bed, 0, 256, 0);
    run(&bed, RSD_WRITE, 5, 3, 3);
    bed_reopen(&bed);
    expect_pages(&bed, 5, 3, 3);
    bed_close(&bed);
}

/* What a format still has to do in the flash begins with it. */
TEST(format_begins_its_work)
{
    RsdConfig cfg = block_config();
    uint64_t when;
    Bed bed = bed_open(&cfg, NULL);

    run(&bed, RSD_WRITE, 0, 64, 1);
    bed_drain(&bed);
    CHECK(!rsd_next_event(bed.drive, &when));
    CHECK_EQ(rsd_format(bed.drive, 0, 64, bed.now), RSD_OK);
    CHECK(rsd_next_event(bed.drive, &when));
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).erase_host, 8);
    bed_close(&bed);
}

/* Factory bad blocks are never used and cost over-provisioning alone. */
TEST(bad_blocks)
{
    RsdConfig cfg = block_config();

    cfg.blocks = 20;
    cfg.spare_blocks = 3;
    cfg.bad_ppm = 80000;
    check_bad_blocks(&cfg);
}

/* Cold data moves to worn blocks, so that erase counts stay together. */
TEST(levelling)
{
    RsdConfig cfg = block_config();

    check_levelling(&cfg);
}

/* Blocks die until the drive takes no more; all that was taken is there. */
TEST(wearing_out)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        RsdConfig cfg = block_config();

        cfg.stripe = seed % 2;
        cfg.wl_threshold = seed % 3 ? 3 : 0;
        /* a die's spares are over first, or what data needs */
        cfg.over_provision = seed / 2 % 2 ? 56 : 30;
        cfg.spare_blocks = 3;
        wear_out(&cfg, seed);
    }
}
