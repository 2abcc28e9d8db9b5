/*
 * Wear: reads that take longer, blocks that die, a drive that ends read-only.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "harness.h"
#include "floors.h"

/* One die, 4 blocks of 8 pages and some spares, each living 10 erases */
static RsdConfig mortal_config(uint64_t spares)
{
    RsdConfig cfg = small_config();

    cfg.channels = 1;
    cfg.ways = 1;
    cfg.spare_blocks = spares;
    cfg.endurance = 10;
    cfg.life_spread = 1;        /* a tenth of an erase: none */
    return cfg;
}

static RsdHealth health(const Bed *bed)
{
    RsdHealth h;

    rsd_health(bed->drive, &h);
    return h;
}

TEST(lives_are_spread_around_endurance)
{
    RsdConfig cfg = small_config();
    uint64_t least = UINT64_MAX, most = 0, sum = 0;

    CHECK(rsd_factory_life(&cfg, 0) == UINT64_MAX);
    cfg.endurance = 1000;
    cfg.life_spread = 20;
    for (uint64_t b = 0; b < 10000; b++) {
        uint64_t life = rsd_factory_life(&cfg, b);

        least = life < least ? life : least;
        most = life > most ? life : most;
        sum += life;
        CHECK_EQ(life, rsd_factory_life(&cfg, b));
    }
    CHECK_EQ(least, 800);
    CHECK_EQ(most, 1200);
    /* the mean of 401 equally likely values, 115.8 their deviation */
    CHECK(sum / 10000 >= 995 && sum / 10000 <= 1005);
    cfg.seed++;
    CHECK(rsd_factory_life(&cfg, 0) != rsd_factory_life(&cfg, 1) ||
          rsd_factory_life(&cfg, 2) != rsd_factory_life(&cfg, 3));
    cfg.endurance = 1;
    cfg.life_spread = 100;
    for (uint64_t b = 0; b < 100; b++) {
        CHECK(rsd_factory_life(&cfg, b) >= 1 && rsd_factory_life(&cfg, b) <= 2);
    }
}

TEST(retries_grow_with_wear)
{
    RsdConfig cfg = small_config();
    uint64_t read = 100 + 20000 + 1000;
    Bed bed;

    cfg.channels = 1;
    cfg.ways = 1;
    cfg.blocks = 1;
    cfg.spare_blocks = 0;
    cfg.endurance = 6;
    cfg.read_retries = 4;
    bed = bed_open(&cfg, NULL);
    for (uint64_t erases = 0; erases < 10; erases++) {
        RsdCounters before, after;
        uint64_t retries = 4 * erases / 6;

        run(&bed, RSD_WRITE, 0, 2, 1);
        before = counters(&bed);
        CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), read * (1 + retries));
        after = counters(&bed);
        CHECK_EQ(after.read_retries - before.read_retries, retries);
        CHECK_EQ(after.nand_reads - before.nand_reads, 1);
        CHECK_EQ(after.read_host - before.read_host, 1);
        CHECK_EQ(after.bus_busy_ns - before.bus_busy_ns,
                 1100 * (1 + retries));
        CHECK_EQ(after.die_busy_ns - before.die_busy_ns,
                 read * (1 + retries));
        CHECK_EQ(run(&bed, RSD_READ, 0, 2, 0), 2 * read * (1 + retries));
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    bed_close(&bed);
}

/*
 * One zone is rewritten until the drive gives up. Wear is level, so each of
 * the 6 blocks is erased 9 times; in the tenth erase of the first one it dies.
 */
TEST(a_drive_wears_out)
{
    RsdConfig cfg = mortal_config(2);
    uint64_t program = 100 + 1000 + 300000, erase = 100 + 4000000;
    uint64_t writes = 0;
    RsdCounters c;
    Bed bed = bed_open(&cfg, NULL);

    /* zones 1 to 3 hold their blocks: three are left to take turns */
    for (uint32_t z = 1; z < 4; z++) {
        run(&bed, RSD_WRITE, lba(&bed, z, 0), 8, z);
    }
    for (; writes < 30; writes++) {
        /* the first three find an erased block */
        CHECK_EQ(run(&bed, RSD_WRITE, 0, 1, 1),
                 program + (writes < 3 ? 0 : erase));
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    CHECK_EQ(counters(&bed).wear_max, 9);
    CHECK_EQ(counters(&bed).blocks_bad, 0);
    CHECK_EQ(health(&bed).available_spare, 100);
    /* all three die now, one after the other: no block is left */
    CHECK_EQ(refused(&bed, RSD_WRITE, 0, 1), RSD_E_READONLY);
    CHECK(health(&bed).read_only);
    CHECK_EQ(rsd_health_changes(bed.drive), 1);
    bed_drain(&bed);
    c = counters(&bed);
    CHECK_EQ(c.blocks_bad, 3);
    CHECK_EQ(c.blocks_grown, 3);
    CHECK_EQ(c.blocks_used, 3);
    CHECK_EQ(c.spares_left, 0);
    CHECK_EQ(c.erase_host, 30);
    CHECK_EQ(c.media_errors, 0);
    CHECK(health(&bed).read_only);
    CHECK_EQ(health(&bed).available_spare, 0);
    CHECK_EQ(refused(&bed, RSD_WRITE, 0, 1), RSD_E_READONLY);
    CHECK_EQ(refused(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0),
             RSD_E_READONLY);
    CHECK_EQ(refused(&bed, RSD_ZONE_FINISH, 0, 0), RSD_E_READONLY);
    CHECK_EQ(rsd_format(bed.drive, 0, 0, bed.now), RSD_E_READONLY);
    run(&bed, RSD_READ, lba(&bed, 1, 0), 8, 1);
    run(&bed, RSD_FLUSH, 0, 0, 0);
    bed_close(&bed);
}

/* The next block pays for the erase that failed, and for its own. */
TEST(a_dying_block_is_replaced)
{
    RsdConfig cfg = mortal_config(0);
    uint64_t program = 100 + 1000 + 300000, erase = 100 + 4000000;
    uint32_t dies_at = 0;
    Bed bed;

    cfg.spare_blocks = 2;
    cfg.blocks = 1;
    cfg.endurance = 4;
    cfg.life_spread = 50;       /* 2 to 6 */
    for (cfg.seed = 1;; cfg.seed++) {
        if (rsd_factory_life(&cfg, 0) == 2 && rsd_factory_life(&cfg, 1) == 4 &&
            rsd_factory_life(&cfg, 2) == 5) {
            break;
        }
    }
    bed = bed_open(&cfg, NULL);
    for (uint32_t n = 0; n < 12; n++) {
        uint64_t latency = run(&bed, RSD_WRITE, 0, 1, 1);

        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        if (latency > erase + program) {
            CHECK_EQ(latency, 2 * erase + program);
            dies_at = n;
            break;
        }
    }
    /* blocks 0, 1, 2 erased; each erased once more; block 0 dies: 6 writes */
    CHECK_EQ(dies_at, 6);
    CHECK_EQ(counters(&bed).blocks_bad, 1);
    CHECK_EQ(rsd_rec_erases(bed.drive->media.rec[0]), 2);
    CHECK(!health(&bed).read_only);
    CHECK_EQ(health(&bed).available_spare, 50);
    bed_close(&bed);
}

/* A command that a core works on while the last block dies */
TEST(too_late_for_a_worn_drive)
{
    RsdConfig cfg = mortal_config(0);
    RsdCmd *write, *reset;
    Bed bed;

    cfg.blocks = 2;
    cfg.endurance = 1;
    cfg.t_fw_write_ns = 100;
    cfg.t_fw_zone_ns = 100;
    bed = bed_open(&cfg, temp_path("late.rsd"));
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 3, 7);
    run(&bed, RSD_WRITE, 0, 1, 1);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    write = begin(&bed, RSD_WRITE, 0, 1, 1);
    reset = begin(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0, 0);
    CHECK(!health(&bed).read_only);
    bed.now += 200;
    CHECK(rsd_advance(bed.drive, bed.now) == write);
    CHECK(rsd_advance(bed.drive, bed.now) == reset);
    CHECK_EQ(write->status, RSD_E_READONLY);
    CHECK_EQ(reset->status, RSD_E_READONLY);
    rsd_cmd_free(bed.drive, write);
    rsd_cmd_free(bed.drive, reset);
    expect_pages(&bed, lba(&bed, 1, 0), 3, 7);
    bed_close(&bed);
}

/*
 * Killed while one lane of a zone waits for an erase and the other has a page:
 * opening erases, and no life ends by that, not even a shortened one.
 */
TEST(opening_kills_no_block)
{
    RsdConfig cfg = mortal_config(1);
    Bed bed;

    cfg.channels = 2;
    cfg.blocks = 1;
    bed = bed_open(&cfg, temp_path("reopened.rsd"));
    for (int i = 0; i < 2; i++) {
        run(&bed, RSD_WRITE, 0, 1, 1);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    begin(&bed, RSD_WRITE, 0, 2, 2);
    bed_pass(&bed, 1000000);
    bed.cfg.endurance = 1;
    bed_reopen(&bed);
    CHECK_EQ(written(&bed, 0), 2);
    CHECK_EQ(counters(&bed).erase_host, 1);
    CHECK_EQ(counters(&bed).blocks_bad, 0);
    expect_pages(&bed, 0, 1, 0);
    expect_pages(&bed, 1, 1, 2);
    /* the other block of the die dies, too, before the next write */
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    CHECK_EQ(refused(&bed, RSD_WRITE, 0, 1), RSD_E_READONLY);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).blocks_bad, 2);
    bed_close(&bed);
}

TEST(idle_erasure_finds_dying_blocks)
{
    RsdConfig cfg = mortal_config(2);
    RsdCounters c;
    Bed bed;

    cfg.endurance = 1;
    cfg.idle_erase_ns = 1000;
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_WRITE, 0, 1, 1);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    bed_drain(&bed);
    c = counters(&bed);
    CHECK_EQ(c.blocks_grown, 1);
    CHECK_EQ(c.blocks_dirty, 0);
    CHECK_EQ(c.blocks_erased, 5);
    CHECK_EQ(c.erase_idle, 1);
    CHECK_EQ(health(&bed).available_spare, 50);
    bed_close(&bed);
}

/*
 * Random zones are rewritten and reset until the end; what was acknowledged
 * last can be read, then and after the drive is opened again.
 */
TEST(nothing_acknowledged_is_lost_at_the_end)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        RsdConfig cfg = small_config();
        Rng rng = { seed };
        uint64_t tags[4] = { 0 }, lengths[4] = { 0 };
        Bed bed;

        cfg.seed = seed;
        cfg.endurance = 12;
        cfg.life_spread = 40;
        cfg.spare_blocks = 1 + seed % 3;
        cfg.idle_erase_ns = seed % 2 ? 100000 : 0;
        cfg.wl_threshold = seed % 4 ? 3 : 0;
        cfg.reset = seed % 3 ? RSD_RESET_MARK : RSD_RESET_ERASE;
        bed = bed_open(&cfg, temp_path("worn.rsd"));
        for (uint64_t n = 1; !health(&bed).read_only; n++) {
            uint32_t zone = rng_below(&rng, 4);
            uint64_t nlb = 1 + rng_below(&rng, 32);
            RsdCmd *cmd;

            CHECK(n < 10000);
            if (lengths[zone]) {
                cmd = rsd_cmd_new(bed.drive, 0, RSD_ZONE_RESET,
                                  lba(&bed, zone, 0), 0);
                if (rsd_submit(bed.drive, cmd, bed.now) != RSD_OK) {
                    rsd_cmd_free(bed.drive, cmd);
                    break;
                }
                await(&bed, cmd);
                rsd_cmd_free(bed.drive, cmd);
                tags[zone] = lengths[zone] = 0;
            }
            cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, lba(&bed, zone, 0),
                              nlb);
            for (uint64_t i = 0; i < nlb; i++) {
                fill_page(cmd->data + i * PAGE, cmd->oob + i * 16, 16,
                          lba(&bed, zone, i), n);
            }
            if (rsd_submit(bed.drive, cmd, bed.now) == RSD_OK) {
                await(&bed, cmd);
                tags[zone] = n;
                lengths[zone] = nlb;
            }
            rsd_cmd_free(bed.drive, cmd);
            if (seed % 2) {
                bed_pass(&bed, rng_below(&rng, 30000000));
            }
        }
        bed_drain(&bed);
        CHECK(health(&bed).read_only);
        for (int again = 0; again < 2; again++) {
            for (uint32_t zone = 0; zone < 4; zone++) {
                CHECK_EQ(written(&bed, zone), lengths[zone]);
                if (lengths[zone]) {
                    expect_pages(&bed, lba(&bed, zone, 0), lengths[zone],
                                 tags[zone]);
                }
            }
            CHECK_EQ(counters(&bed).media_errors, 0);
            bed_reopen(&bed);
            CHECK(health(&bed).read_only);
        }
        bed_close(&bed);
    }
}

/*
 * All zones are full; two are rewritten in turn, before the last one is done.
 * No die is idle for long.
 */
static RsdCounters rewrite_busily(uint64_t share, uint64_t threshold,
                                  RsdQueue queue)
{
    RsdConfig cfg = small_config();
    uint32_t cap;
    RsdCounters c;
    Bed bed;

    cfg.channels = 1;
    cfg.blocks = 24;
    cfg.pages = 16;
    cfg.spare_blocks = 4;
    cfg.wl_threshold = threshold;
    cfg.wl_share = share;
    cfg.queue = queue;
    cfg.idle_erase_ns = 1000000000;
    bed = bed_open(&cfg, NULL);
    cap = bed.geo.zone_capacity;
    for (uint32_t z = 0; z < bed.geo.num_zones; z++) {
        begin(&bed, RSD_WRITE, lba(&bed, z, 0), cap, z + 1);
    }
    for (uint32_t i = 0; i < 600; i++) {
        uint64_t at = lba(&bed, i % 2, 0);

        begin(&bed, RSD_ZONE_RESET, at, 0, 0);
        begin(&bed, RSD_WRITE, at, cap, 100 + i);
        /* so long does it take, levelling included */
        bed_pass(&bed, 11000000);
    }
    c = counters(&bed);
    CHECK_EQ(c.erase_idle, 0);
    bed_close(&bed);
    return c;
}

TEST(levels_beside_other_work)
{
    for (int global = 0; global < 2; global++) {
        RsdQueue queue = global ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
        RsdCounters c = rewrite_busily(50, 4, queue);

        CHECK(c.wear_moves > 0);
        CHECK(c.wear_max - c.wear_min <= 4 + 2);
        CHECK(c.prog_wear * 100 <= c.prog_host * 50);
        /* the share is a bound, whatever the need */
        c = rewrite_busily(5, 4, queue);
        CHECK(c.wear_moves > 0);
        CHECK(c.prog_wear * 100 <= c.prog_host * 5);
        c = rewrite_busily(0, 4, queue);
        CHECK_EQ(c.wear_moves, 0);
        CHECK_EQ(c.prog_wear, 0);
        CHECK_EQ(c.wear_min, 0);
    }
}

/* One page written after the other, until the drive gives up */
static uint64_t pages_in_a_life(uint64_t share)
{
    RsdConfig cfg = mortal_config(4);
    uint64_t pages = 0;
    Bed bed;

    cfg.blocks = 32;
    cfg.endurance = 20;
    cfg.wl_threshold = 4;
    cfg.wl_share = share;
    cfg.idle_erase_ns = 1000000000000;  /* no die is idle for so long */
    bed = bed_open(&cfg, NULL);
    for (uint32_t z = 0; z < bed.geo.num_zones; z++) {
        run(&bed, RSD_WRITE, lba(&bed, z, 0), 8, 1);
    }
    for (;;) {
        RsdCmd *cmd;

        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 0, 8);
        if (rsd_submit(bed.drive, cmd, bed.now) != RSD_OK) {
            rsd_cmd_free(bed.drive, cmd);
            break;
        }
        await(&bed, cmd);
        pages += 8;
    }
    bed_close(&bed);
    return pages;
}

TEST(levelling_beside_other_work_lengthens_the_life)
{
    CHECK(pages_in_a_life(50) >= 3 * pages_in_a_life(0));
}

/*
 * A page map is filled, then a tenth of it is written at random, 16 commands at
 * a time.
 */
static RsdCounters rewrite_pages(RsdFtl ftl, uint64_t share)
{
    RsdConfig cfg = small_config();
    Rng rng = { 1 };
    RsdCounters c;
    Bed bed;

    cfg.ftl = ftl;
    cfg.channels = 1;
    cfg.ways = 2;
    cfg.blocks = 64;
    cfg.pages = 32;
    cfg.spare_blocks = 4;
    cfg.over_provision = 20;
    cfg.wl_threshold = 8;
    cfg.wl_share = share;
    cfg.idle_erase_ns = 1000000000;
    bed = bed_open(&cfg, NULL);
    for (uint64_t at = 0; at < bed.geo.lbas; at += 32) {
        run(&bed, RSD_WRITE, at, 32, 1);
    }
    for (int i = 0; i < 3000; i++) {
        RsdCmd *cmd = NULL;

        for (int n = 0; n < 16; n++) {
            cmd = begin(&bed, RSD_WRITE, rng_below(&rng, bed.geo.lbas / 10), 1,
                        2);
        }
        await(&bed, cmd);
    }
    c = counters(&bed);
    bed_close(&bed);
    return c;
}

TEST(page_maps_level_beside_other_work)
{
    static const RsdFtl ftls[] = { RSD_FTL_PAGE, RSD_FTL_DFTL };

    for (int i = 0; i < 2; i++) {
        RsdCounters c = rewrite_pages(ftls[i], 50), none;

        CHECK_EQ(c.erase_idle, 0);
        /* what copies fill is not moved, so it may stay behind */
        CHECK(c.wear_max - c.wear_min <= 8 + 3);
        CHECK(c.wear_moves > 0);
        CHECK(c.prog_wear * 100 <=
              (c.prog_host + c.prog_clean + c.prog_map) * 50);
        none = rewrite_pages(ftls[i], 0);
        CHECK_EQ(none.wear_moves, 0);
        CHECK_EQ(none.wear_min, 0);
        c = rewrite_pages(ftls[i], 3);
        CHECK(c.wear_moves > 0);
        CHECK(c.prog_wear * 100 <=
              (c.prog_host + c.prog_clean + c.prog_map) * 3);
    }
}
