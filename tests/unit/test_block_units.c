/*
 * The personalities that map blocks, on a write buffer and on grains, which are
 * the units of several pages that are programmed at once.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "conventional.h"
#include "floors.h"

enum { ERASE = 30000 };

/* 2 channels, 2 ways, blocks of 24 pages */
static RsdConfig grain_config(RsdFtl ftl, const UnitKind *kind)
{
    RsdConfig cfg = small_config();

    cfg.ftl = ftl;
    cfg.blocks = 12;
    cfg.spare_blocks = 2;
    cfg.over_provision = 30;
    cfg.log_blocks = 10;
    set_unit(&cfg, kind, 24);
    cfg.t_erase_ns = ERASE;
    return cfg;
}

/* A drive without power-loss protection that acknowledges from its buffer */
static RsdConfig volatile_config(RsdFtl ftl)
{
    RsdConfig cfg = grain_config(ftl, &unit_kinds[4]);

    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    return cfg;
}

static void check_counters(const Bed *bed)
{
    RsdCounters c = counters(bed);

    CHECK_EQ(c.media_errors, 0);
    CHECK_EQ(c.blocks_used + c.blocks_dirty + c.blocks_erased + c.blocks_bad,
             c.blocks_total);
    CHECK_EQ((c.prog_host + c.prog_merge + c.prog_wear + c.prog_pad) * 4096,
             c.nand_programs * bed->cfg.page_size);
    CHECK_EQ(c.prog_clean + c.prog_map, 0);
    CHECK_EQ(c.wear_sum, c.erase_host + c.erase_merge + c.erase_wear);
}

static RsdConfig random_config(RsdFtl ftl, uint64_t seed)
{
    RsdConfig cfg = grain_config(ftl, &unit_kinds[seed % 6]);

    cfg.stripe = seed / 6 % 2;
    set_unit_options(&cfg, seed);
    return cfg;
}

/* What was acknowledged is there, whatever is merged, levelled or reopened. */
static void random_commands(RsdFtl ftl, uint64_t seeds)
{
    uint64_t done[3] = { 0 }, moves = 0;

    for (uint64_t seed = 0; seed < seeds; seed++) {
        RsdConfig cfg = random_config(ftl, seed);
        RsdCounters c;
        World w;

        set_safe_ack(&cfg, seed);
        w = world_open(&cfg, "grains.rsd", seed);
        world_lives(&w, 6, 120, check_counters);
        world_fill(&w);
        world_check(&w);
        check_counters(&w.bed);
        c = counters(&w.bed);
        done[0] += c.merge_switch;
        done[1] += c.merge_partial;
        done[2] += c.merge_full;
        moves += c.wear_moves;
        world_close(&w);
    }
    CHECK(done[0] > 20 && done[1] > 50 && done[2] > 500);
    CHECK(moves > 10);
}

TEST(random_commands_of_a_block_map)
{
    random_commands(RSD_FTL_BLOCK, 24);
}

TEST(random_commands_of_fast)
{
    random_commands(RSD_FTL_FAST, 24);
}

static RsdConfig random_block(uint64_t seed)
{
    return random_config(RSD_FTL_BLOCK, seed);
}

static RsdConfig random_fast(uint64_t seed)
{
    return random_config(RSD_FTL_FAST, seed);
}

TEST(random_flushes_of_a_block_map)
{
    check_random_flushes(random_block, 12);
}

TEST(random_flushes_of_fast)
{
    check_random_flushes(random_fast, 12);
}

TEST(runs_on_grains_are_equal)
{
    for (RsdFtl ftl = RSD_FTL_BLOCK; ftl <= RSD_FTL_FAST; ftl++) {
        RsdConfig cfg = grain_config(ftl, &unit_kinds[4]);

        check_runs_are_equal(&cfg, 1000);
    }
}

static uint64_t write_fua(Bed *bed, uint64_t at, uint32_t nlb, uint64_t tag)
{
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, RSD_WRITE, at, nlb);
    uint64_t latency;

    CHECK(cmd);
    for (uint32_t i = 0; i < nlb; i++) {
        fill_page(cmd->data + i * PAGE, cmd->oob + i * 16, 16, at + i, tag);
    }
    cmd->fua = true;
    CHECK_EQ(rsd_submit(bed->drive, cmd, bed->now), RSD_OK);
    latency = await(bed, cmd);
    rsd_cmd_free(bed->drive, cmd);
    return latency;
}

/* Grains of 8 pages: rows of 4, two of them a word line */
TEST(a_flush_protects_begun_grains)
{
    uint64_t program = 4 * CMD + 8 * XFER + PROG;

    for (RsdFtl ftl = RSD_FTL_BLOCK; ftl <= RSD_FTL_FAST; ftl++) {
        RsdConfig cfg = volatile_config(ftl);
        RsdCounters c;
        Bed bed;

        bed = bed_open(&cfg, temp_path("grains.rsd"));
        CHECK_EQ(run(&bed, RSD_WRITE, 0, 3, 1), 0);
        CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
        CHECK_EQ(counters(&bed).prog_host, 0);
        /* the host goes on with it: nothing is filled up */
        CHECK_EQ(run(&bed, RSD_WRITE, 3, 7, 1), 0);
        CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), program);
        c = counters(&bed);
        CHECK_EQ(c.prog_host, 8);
        CHECK_EQ(c.prog_pad, 0);
        /* two that were flushed, and one that was not */
        CHECK_EQ(run(&bed, RSD_WRITE, 10, 1, 1), 0);
        bed_drain(&bed);
        bed_reopen(&bed);
        expect_pages(&bed, 0, 10, 1);
        expect_pages(&bed, 10, 1, 0);
        c = counters(&bed);
        CHECK_EQ(c.prog_host, 10);
        CHECK_EQ(c.prog_pad, 6);
        /* what is behind them was filler: in a data block, it is in the way */
        run(&bed, RSD_WRITE, 10, 1, 2);
        run(&bed, RSD_FLUSH, 0, 0, 0);
        bed_reopen(&bed);
        expect_pages(&bed, 0, 10, 1);
        expect_pages(&bed, 10, 1, 2);
        bed_close(&bed);
    }
}

TEST(fua_protects_what_is_before_it)
{
    for (RsdFtl ftl = RSD_FTL_BLOCK; ftl <= RSD_FTL_FAST; ftl++) {
        RsdConfig cfg = volatile_config(ftl);
        Bed bed;

        bed = bed_open(&cfg, temp_path("grains.rsd"));
        CHECK_EQ(run(&bed, RSD_WRITE, 0, 9, 1), 0);
        /* the first grain is being programmed, and may be lost by a cut */
        CHECK_EQ(write_fua(&bed, 9, 2, 1), 0);
        CHECK_EQ(counters(&bed).prog_host, 0);
        bed_reopen(&bed);
        expect_pages(&bed, 9, 2, 1);
        expect_pages(&bed, 0, 9, 1);
        bed_close(&bed);
    }
}

/*
 * A block of FAST's random log of which nothing is wanted is not erased before
 * what replaces its pages is safe: what was flushed may not be lost.
 */
TEST(a_log_block_stays_until_its_pages_are_safe_elsewhere)
{
    RsdConfig cfg = volatile_config(RSD_FTL_FAST);
    Bed bed;

    cfg.log_blocks = 1;                 /* one block of the random log */
    bed = bed_open(&cfg, temp_path("grains.rsd"));
    run(&bed, RSD_WRITE, 0, 24, 1);
    for (int i = 0; i < 24; i++) {
        run(&bed, RSD_WRITE, 5, 1, 2 + i);
    }
    run(&bed, RSD_FLUSH, 0, 0, 0);
    bed_drain(&bed);
    /* LBA 5 once more, in the sequential log block; not flushed */
    run(&bed, RSD_WRITE, 0, 6, 100);
    CHECK_EQ(counters(&bed).erase_merge, 0);
    run(&bed, RSD_WRITE, 27, 1, 200);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).erase_merge, 1);
    CHECK_EQ(counters(&bed).merge_full, 0);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 6, 100);
    expect_pages(&bed, 6, 18, 1);
    bed_close(&bed);
}

/* Of what was trimmed, a flush saves what was written since, and only that. */
TEST(a_flush_after_a_trim_saves_what_is_overwritten)
{
    for (RsdFtl ftl = RSD_FTL_BLOCK; ftl <= RSD_FTL_FAST; ftl++) {
        RsdConfig cfg = volatile_config(ftl);
        Bed bed;

        bed = bed_open(&cfg, temp_path("grains.rsd"));
        /* a whole grain, and one that goes on being read from the buffer */
        run(&bed, RSD_WRITE, 0, 12, 1);
        run(&bed, RSD_TRIM, 0, 2, 0);
        run(&bed, RSD_TRIM, 11, 1, 0);
        expect_pages(&bed, 0, 2, 0);
        expect_pages(&bed, 2, 9, 1);
        expect_pages(&bed, 11, 1, 0);
        run(&bed, RSD_WRITE, 1, 1, 2);
        run(&bed, RSD_FLUSH, 0, 0, 0);
        bed_drain(&bed);
        bed_reopen(&bed);
        expect_pages(&bed, 0, 1, 0);
        expect_pages(&bed, 1, 1, 2);
        expect_pages(&bed, 2, 9, 1);
        expect_pages(&bed, 11, 1, 0);
        bed_close(&bed);
    }
}

/* An LBA beyond the end in what the buffer's part of the file holds */
TEST(a_damaged_buffer_is_refused)
{
    RsdConfig cfg = grain_config(RSD_FTL_BLOCK, &unit_kinds[4]);

    cfg.ack = RSD_ACK_BUFFER;
    check_damaged_buffer(&cfg, "the media file is corrupt: ",
                         "page 2, names an LBA that does not exist");
}

/* Merges by hand: replacement blocks of two grains, what is between copied */
TEST(merges_by_hand)
{
    RsdConfig cfg = grain_config(RSD_FTL_BLOCK, &unit_kinds[4]);
    RsdCounters c;
    Bed bed;

    cfg.ack = RSD_ACK_BUFFER;
    bed = bed_open(&cfg, temp_path("grains.rsd"));
    run(&bed, RSD_WRITE, 0, 20, 1);
    bed_drain(&bed);
    c = counters(&bed);
    CHECK_EQ(c.prog_host, 16);          /* 16 to 19 are in the buffer */
    /* 0 to 9 are copied: the last two, and page 10, begin a grain */
    run(&bed, RSD_WRITE, 10, 1, 2);
    bed_drain(&bed);
    c = counters(&bed);
    CHECK_EQ(c.read_merge, 10);
    CHECK_EQ(c.nand_reads, 2 + 2 + 1);  /* rows of 4, a plane has 2 of them */
    CHECK_EQ(array_reads(&bed), 3);
    CHECK_EQ(c.prog_merge, 8);
    CHECK_EQ(c.prog_host, 16);
    CHECK_EQ(c.merge_full, 0);
    /* before that: 11 to 19 are copied, the last four from the buffer */
    run(&bed, RSD_WRITE, 3, 1, 3);
    bed_drain(&bed);
    c = counters(&bed);
    CHECK_EQ(c.merge_full, 1);
    CHECK_EQ(c.erase_merge, 1);
    CHECK_EQ(c.read_merge, 10 + 5 + 3);
    CHECK_EQ(c.nand_reads, 5 + 1 + 2 + 2);
    CHECK_EQ(array_reads(&bed), 3 + 2 + 1);
    CHECK_EQ(c.buffer_reads, 0);        /* none by the host */
    CHECK_EQ(c.prog_merge, 8 + 2 + 5);
    CHECK_EQ(c.prog_host, 17);
    CHECK_EQ(c.prog_pad, 0);
    expect_pages(&bed, 0, 3, 1);
    expect_pages(&bed, 3, 1, 3);
    expect_pages(&bed, 4, 6, 1);
    expect_pages(&bed, 10, 1, 2);
    expect_pages(&bed, 11, 9, 1);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 3, 1);
    expect_pages(&bed, 3, 1, 3);
    expect_pages(&bed, 11, 9, 1);
    check_counters(&bed);
    bed_close(&bed);
}

/* With stripe=all, grains go over the dies in turn; a unit is a superblock. */
TEST(grains_go_over_all_dies)
{
    RsdConfig cfg = grain_config(RSD_FTL_BLOCK, &unit_kinds[4]);
    uint64_t program = 4 * CMD + 8 * XFER + PROG;
    Bed bed;

    cfg.stripe = RSD_STRIPE_ALL;
    bed = bed_open(&cfg, temp_path("grains.rsd"));
    CHECK_EQ(bed.geo.lbas % (4 * 24), 0);
    /* the first of each die: two of them share a channel */
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 32, 1), program + 4 * CMD + 8 * XFER);
    CHECK_EQ(run(&bed, RSD_WRITE, 32, 8, 1), program);
    CHECK_EQ(counters(&bed).nand_programs, 5 * 4);
    expect_pages(&bed, 0, 40, 1);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 40, 1);
    bed_close(&bed);
}

/*
 * LBAs 0 to 2, trimmed and written again; then a merge copies them from the
 * buffer, and what was begun with them goes. They are not trimmed any more.
 */
static void trimmed_and_merged(RsdFtl ftl, const uint64_t *lbas, size_t n)
{
    RsdConfig cfg = volatile_config(ftl);
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 3, 1);
    run(&bed, RSD_TRIM, 0, 3, 0);
    run(&bed, RSD_WRITE, 0, 3, 2);
    for (size_t i = 0; i < n; i++) {
        run(&bed, RSD_WRITE, lbas[i], 1, 3);
    }
    bed_drain(&bed);
    run(&bed, RSD_FLUSH, 0, 0, 0);
    bed_drain(&bed);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 1, 3);
    expect_pages(&bed, 1, 2, 2);
    bed_close(&bed);
}

TEST(merged_from_the_buffer_after_a_trim)
{
    const uint64_t again[] = { 0, 0 };
    /* the block of LBA 0 is a log's no more when others have the logs */
    const uint64_t logs[] = { 0, 96, 96, 96 };

    trimmed_and_merged(RSD_FTL_BLOCK, again, 2);
    trimmed_and_merged(RSD_FTL_FAST, logs, 4);
}
