/*
 * The hybrid personality, FAST: what the host reads, whatever is merged or
 * trimmed meanwhile; merges by kind, worked out by hand; settings refused.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "conventional.h"
#include "internal.h"

/*
 * 2 channels, 2 ways, blocks of 8 pages: 33 logical blocks on 44, and a log of
 * the sequential block and two random ones
 */
static RsdConfig fast_config(void)
{
    RsdConfig cfg = small_config();

    cfg.ftl = RSD_FTL_FAST;
    cfg.blocks = 10;
    cfg.spare_blocks = 2;
    cfg.over_provision = 20;
    cfg.log_blocks = 10;
    return cfg;
}

/* Counters add up, and no operation was of a kind that there is none of. */
static void check_counters(const Bed *bed)
{
    RsdCounters c = counters(bed);

    CHECK_EQ(c.prog_clean + c.erase_clean + c.read_clean + c.prog_map +
             c.read_map + c.erase_map + c.media_errors, 0);
    CHECK_EQ(c.blocks_used + c.blocks_dirty + c.blocks_erased + c.blocks_bad,
             c.blocks_total);
    CHECK_EQ(c.erase_host + c.erase_merge + c.erase_wear,
             c.erase_on_demand + c.erase_idle);
    CHECK_EQ(c.wear_sum, c.erase_on_demand + c.erase_idle);
    CHECK(c.read_merge >= c.prog_merge);        /* one may be interrupted */
}

TEST(geometry)
{
    RsdConfig cfg = fast_config();
    Bed bed = bed_open(&cfg, NULL);

    CHECK(!bed.geo.zoned);
    CHECK_EQ(bed.geo.lbas, 264);        /* 320 / 1.2, whole blocks of 8 */
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
        cfg.blocks = rows[i].blocks;
        bed = bed_open(&cfg, NULL);
        CHECK_EQ(counters(&bed).map_bytes, rows[i].map_bytes);
        bed_close(&bed);
    }
}

static void expect_error(const RsdConfig *cfg, const char *part,
                         const char *numbers)
{
    char err[RSD_ERR_LEN] = "";
    RsdDrive *drive = rsd_open(NULL, cfg, err);

    CHECK(!drive);
    CHECK_SAYS(err, part);
    CHECK_SAYS(err, numbers);
}

TEST(settings_refused)
{
    RsdConfig cfg = fast_config();

    cfg.page_size = 8192;
    expect_error(&cfg, "page-size=8192", "page-size=4096");
    cfg = fast_config();
    cfg.over_provision = 0;
    cfg.spare_blocks = 1;
    expect_error(&cfg, "needs 12 good flash blocks in each way",
                 "spare-blocks (now 1)");
    cfg.over_provision = 20;
    cfg.log_blocks = 50;
    expect_error(&cfg, "log-blocks=50 are 15 random log blocks",
                 "room for 3 beside");
}

typedef struct Merges {
    uint64_t switches, partial, full, copies, filler, erases;
} Merges;

/* Counters after everything has come to rest */
static void expect_merges(Bed *bed, Merges want)
{
    RsdCounters c;

    bed_drain(bed);
    c = counters(bed);
    CHECK_EQ(c.merge_switch, want.switches);
    CHECK_EQ(c.merge_partial, want.partial);
    CHECK_EQ(c.merge_full, want.full);
    CHECK_EQ(c.prog_merge, want.copies);
    CHECK_EQ(c.read_merge, want.copies);
    CHECK_EQ(c.prog_pad, want.filler);
    CHECK_EQ(c.erase_merge, want.erases);
    check_counters(bed);
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
    cfg.over_provision = seed % 4 ? 20 : 10;
    cfg.log_blocks = seed % 5 ? 10 : 3;
    cfg.oob = (const uint64_t[]){ 0, 16, 64 }[seed / 3 % 3];
    cfg.wl_threshold = seed % 3;
    return cfg;
}

TEST(random_commands)
{
    uint64_t kinds[3] = { 0 };

    for (uint64_t seed = 0; seed < 48; seed++) {
        RsdConfig cfg = random_config(seed);
        World w = world_open(&cfg, "drive.rsd", seed);
        RsdCounters c;

        for (int life = 0; life < 8; life++) {
            for (int i = 0; i < 150; i++) {
                world_step(&w);
            }
            if (life % 2) {
                world_drain(&w);
            }
            world_check(&w);
            world_reopen(&w);
            world_check(&w);
            world_drain(&w);
            check_counters(&w.bed);
        }
        world_fill(&w);
        world_check(&w);
        check_counters(&w.bed);
        c = counters(&w.bed);
        kinds[0] += c.merge_switch;
        kinds[1] += c.merge_partial;
        kinds[2] += c.merge_full;
        world_close(&w);
    }
    CHECK(kinds[0] > 50 && kinds[1] > 100 && kinds[2] > 1000);
}

/* The same commands at the same times: the same, to the last counter */
TEST(runs_are_equal)
{
    RsdCounters c[2];

    for (int i = 0; i < 2; i++) {
        RsdConfig cfg = random_config(0);
        World w = world_open(&cfg, "drive.rsd", 7);

        for (int step = 0; step < 1500; step++) {
            world_step(&w);
        }
        world_drain(&w);
        c[i] = counters(&w.bed);
        world_close(&w);
    }
    CHECK(!memcmp(&c[0], &c[1], sizeof(c[0])));
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
    World w;

    cfg.blocks = 20;
    cfg.spare_blocks = 4;
    cfg.bad_ppm = 60000;
    w = world_open(&cfg, "drive.rsd", 5);
    CHECK(counters(&w.bed).blocks_bad > 2);
    for (int i = 0; i < 600; i++) {
        world_step(&w);
    }
    world_fill(&w);
    world_check(&w);
    world_reopen(&w);
    world_check(&w);
    world_drain(&w);
    check_counters(&w.bed);
    world_close(&w);
}

/* Cold data moves to worn blocks, so that erase counts stay together. */
TEST(levelling)
{
    for (uint64_t stripe = 0; stripe < 2; stripe++) {
        uint64_t spread[2];

        for (int on = 0; on < 2; on++) {
            RsdConfig cfg = fast_config();
            uint64_t hot;
            RsdCounters c;
            Bed bed;

            cfg.wl_threshold = on ? 4 : 0;
            cfg.stripe = stripe;
            bed = bed_open(&cfg, temp_path("drive.rsd"));
            hot = stripe ? 32 : 8;
            run(&bed, RSD_WRITE, 0, 256, 1);
            for (int i = 0; i < 300; i++) {
                run(&bed, RSD_WRITE, 0, hot, i + 2);
                bed_drain(&bed);
            }
            c = counters(&bed);
            spread[on] = c.wear_max - c.wear_min;
            CHECK_EQ(c.wear_moves > 0, on);
            CHECK_EQ(c.prog_wear > 0, on);
            CHECK_EQ(c.read_wear, c.prog_wear);
            CHECK_EQ(c.erase_wear, c.wear_moves);
            expect_pages(&bed, 0, hot, 301);
            expect_pages(&bed, hot, 256 - hot, 1);
            check_counters(&bed);
            bed_reopen(&bed);
            expect_pages(&bed, hot, 256 - hot, 1);
            bed_close(&bed);
        }
        CHECK(spread[0] > 40);
        /* of one die's blocks, when only its logical blocks are written */
        CHECK(spread[1] < spread[0]);
    }
}

static RsdStatus write_page(Bed *bed, uint64_t at, uint64_t tag)
{
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, RSD_WRITE, at, 1);
    RsdStatus status;

    fill_page(cmd->data, cmd->oob, 16, at, tag);
    status = rsd_submit(bed->drive, cmd, bed->now);
    if (status == RSD_OK) {
        while (bed->now < cmd->submit_ns + 1 || !cmd->done_ns) {
            uint64_t when;
            RsdCmd *done;

            CHECK(rsd_next_event(bed->drive, &when));
            bed->now = when > bed->now ? when : bed->now;
            done = rsd_advance(bed->drive, bed->now);
            CHECK(!done || done == cmd);
            if (done) {
                break;
            }
        }
        status = cmd->status;
    }
    rsd_cmd_free(bed->drive, cmd);
    return status;
}

/* Blocks die until the drive takes no more; all that was taken is there. */
TEST(wearing_out)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        RsdConfig cfg = fast_config();
        uint64_t tags[264] = { 0 }, tag = 1;
        Rng rng = { seed };
        RsdStatus status;
        Bed bed;

        cfg.stripe = seed % 2;
        cfg.endurance = 12;
        cfg.life_spread = 50;
        cfg.wl_threshold = seed % 3 ? 3 : 0;
        cfg.seed = seed;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        for (;;) {
            uint64_t at = rng_below(&rng, bed.geo.lbas);

            status = write_page(&bed, at, tag);
            if (status != RSD_OK) {
                break;
            }
            tags[at] = tag++;
        }
        CHECK(status == RSD_E_READONLY || status == RSD_E_NOBLOCK);
        bed_drain(&bed);
        CHECK(counters(&bed).blocks_grown > 0);
        for (int i = 0; i < 2; i++) {
            for (uint64_t at = 0; at < bed.geo.lbas; at++) {
                expect_pages(&bed, at, 1, tags[at]);
            }
            bed_reopen(&bed);
        }
        bed_close(&bed);
    }
}
