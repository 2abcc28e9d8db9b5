/*
 * Flash blocks: which are taken, when they are erased, wear levelling, bad
 * blocks.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "harness.h"
#include "floors.h"

/* One die: blocks are easy to follow */
static RsdConfig one_die(uint64_t blocks, uint64_t spares)
{
    RsdConfig cfg = small_config();

    cfg.channels = 1;
    cfg.ways = 1;
    cfg.blocks = blocks;
    cfg.spare_blocks = spares;
    return cfg;
}

/* The block that holds a zone's lane 0 */
static uint32_t block_of_zone(const Bed *bed, uint32_t zone)
{
    return bed->drive->media.map[zone] & 0x3fffffff;
}

static uint32_t state_of_zone(const Bed *bed, uint32_t zone)
{
    return bed->drive->media.map[zone] >> 30;
}

static uint32_t erases_of(const Bed *bed, uint32_t block)
{
    return rsd_rec_erases(bed->drive->media.rec[block]);
}

enum { FREE, USED, INVALID };

TEST(reset_marks_and_the_next_write_erases)
{
    RsdConfig cfg = one_die(2, 0);
    Bed bed = bed_open(&cfg, NULL);

    CHECK_EQ(state_of_zone(&bed, 0), FREE);
    run(&bed, RSD_WRITE, 0, 1, 0);
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 1, 0);
    CHECK_EQ(state_of_zone(&bed, 0), USED);
    CHECK_EQ(counters(&bed).blocks_used, 2);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    bed_pass(&bed, 1000000000);
    CHECK_EQ(state_of_zone(&bed, 0), INVALID);
    CHECK_EQ(counters(&bed).blocks_dirty, 1);
    CHECK_EQ(counters(&bed).erase_host, 0);
    run(&bed, RSD_WRITE, 0, 1, 0);
    CHECK_EQ(state_of_zone(&bed, 0), USED);
    CHECK_EQ(counters(&bed).erase_host, 1);
    CHECK_EQ(counters(&bed).erase_on_demand, 1);
    CHECK_EQ(counters(&bed).blocks_dirty, 0);
    bed_close(&bed);
}

TEST(all_lanes_of_a_segment_are_erased_together)
{
    RsdConfig cfg = small_config();
    Bed bed;

    cfg.blocks = 1;
    cfg.spare_blocks = 0;
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_WRITE, 0, 32, 0);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    run(&bed, RSD_WRITE, 0, 1, 0);
    /* the erases of the other lanes began at the same time */
    bed_pass(&bed, 1000);
    CHECK_EQ(counters(&bed).erase_on_demand, 4);
    /* two of these three pages share a bus */
    CHECK_EQ(run(&bed, RSD_WRITE, 1, 3, 0),
             2 * (cfg.t_cmd_ns + cfg.t_xfer_ns) + cfg.t_prog_ns);
    bed_close(&bed);
}

TEST(an_idle_die_erases)
{
    RsdConfig cfg = one_die(3, 0);
    uint64_t erase = cfg.t_cmd_ns + cfg.t_erase_ns;
    Bed bed;

    cfg.idle_erase_ns = 1000000;
    bed = bed_open(&cfg, NULL);
    for (uint32_t z = 0; z < 3; z++) {
        run(&bed, RSD_WRITE, lba(&bed, z, 0), 8, 0);
    }
    bed_pass(&bed, 50000000);
    run(&bed, RSD_ZONE_RESET, lba(&bed, 2, 0), 0, 0);
    run(&bed, RSD_ZONE_RESET, lba(&bed, 0, 0), 0, 0);
    /* counted from the reset, not from the last operation */
    bed_pass(&bed, 999999);
    CHECK_EQ(counters(&bed).blocks_dirty, 2);
    /* lowest number first, one after the other */
    bed_pass(&bed, 1 + erase - 1);
    CHECK_EQ(counters(&bed).erase_idle, 0);
    bed_pass(&bed, 1);
    CHECK_EQ(counters(&bed).erase_idle, 1);
    CHECK_EQ(state_of_zone(&bed, 0), FREE);
    CHECK_EQ(state_of_zone(&bed, 2), INVALID);
    bed_pass(&bed, erase);
    CHECK_EQ(counters(&bed).erase_idle, 2);
    CHECK_EQ(counters(&bed).erase_host, 2);
    CHECK_EQ(counters(&bed).erase_on_demand, 0);
    CHECK_EQ(state_of_zone(&bed, 2), FREE);
    uint64_t when;
    CHECK(!rsd_next_event(bed.drive, &when));
    bed_close(&bed);
}

TEST(the_host_interrupts_idle_erasure)
{
    RsdConfig cfg = one_die(3, 0);
    uint64_t erase = cfg.t_cmd_ns + cfg.t_erase_ns;
    uint64_t read = cfg.t_cmd_ns + cfg.t_read_ns + cfg.t_xfer_ns;
    Bed bed;

    cfg.idle_erase_ns = 1000000;
    bed = bed_open(&cfg, NULL);
    for (uint32_t z = 0; z < 3; z++) {
        run(&bed, RSD_WRITE, lba(&bed, z, 0), 8, 0);
    }
    run(&bed, RSD_ZONE_RESET, lba(&bed, 0, 0), 0, 0);
    run(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0, 0);
    /* a read every 0.9 ms keeps it away */
    for (int i = 0; i < 10; i++) {
        bed_pass(&bed, 900000);
        CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 2, 0), 1, 0), read);
    }
    CHECK_EQ(counters(&bed).erase_idle, 0);
    /* it waits for the erase that has begun, then the die is idle anew */
    bed_pass(&bed, 1000000 + erase / 2);
    CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 2, 0), 1, 0),
             erase - erase / 2 + read);
    CHECK_EQ(counters(&bed).erase_idle, 1);
    bed_pass(&bed, 1000000 + erase - 1);
    CHECK_EQ(counters(&bed).erase_idle, 1);
    bed_pass(&bed, 1);
    CHECK_EQ(counters(&bed).erase_idle, 2);
    bed_close(&bed);
}

TEST(idle_erasure_after_opening)
{
    RsdConfig cfg = one_die(2, 0);
    Bed bed;

    bed = bed_open(&cfg, temp_path("drive.rsd"));
    run(&bed, RSD_WRITE, 0, 8, 1);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    bed.cfg.idle_erase_ns = 1000;
    bed_reopen(&bed);
    CHECK_EQ(counters(&bed).blocks_dirty, 1);
    CHECK_EQ(state_of_zone(&bed, 0), INVALID);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).blocks_dirty, 0);
    CHECK_EQ(counters(&bed).erase_idle, 1);
    CHECK_EQ(state_of_zone(&bed, 0), FREE);
    bed_close(&bed);
}

TEST(least_worn_blocks_are_taken)
{
    RsdConfig cfg = one_die(2, 2);
    Bed bed = bed_open(&cfg, NULL);
    /* fresh blocks first, in order; then the dirty ones, least worn first */
    static const uint32_t expected[] = { 0, 1, 2, 3, 0, 1, 2, 3, 0, 1 };

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        run(&bed, RSD_WRITE, 0, 1, 0);
        CHECK_EQ(block_of_zone(&bed, 0), expected[i]);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    /* erase counts: 2 2 1 1, and all are dirty: 2 is 2 when erased */
    run(&bed, RSD_WRITE, 0, 1, 0);
    CHECK_EQ(block_of_zone(&bed, 0), 2);
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 1, 0);
    CHECK_EQ(block_of_zone(&bed, 1), 3);
    bed_close(&bed);
}

TEST(erased_blocks_go_before_dirty_ones)
{
    RsdConfig cfg = one_die(4, 0);
    Bed bed;

    cfg.reset = RSD_RESET_ERASE;
    bed = bed_open(&cfg, NULL);
    /* block 0 is erased once; 1 is dirty and would be at one erase, too */
    run(&bed, RSD_WRITE, 0, 1, 0);
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 1, 0);
    run(&bed, RSD_WRITE, lba(&bed, 2, 0), 1, 0);
    run(&bed, RSD_WRITE, lba(&bed, 3, 0), 1, 0);
    run(&bed, RSD_ZONE_RESET, lba(&bed, 2, 0), 0, 0);
    bed.drive->cfg.reset = RSD_RESET_MARK;
    run(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0, 0);
    CHECK_EQ(counters(&bed).blocks_erased, 1);
    CHECK_EQ(counters(&bed).blocks_dirty, 1);
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 1, 0);
    CHECK_EQ(block_of_zone(&bed, 1), 2);
    CHECK_EQ(counters(&bed).erase_on_demand, 1);
    bed_close(&bed);
}

/* The pool against the plainest search, through random wear */
TEST(the_pool_finds_what_a_search_finds)
{
    RsdConfig cfg = one_die(20, 13);
    Rng rng = { 3 };
    Bed bed;

    cfg.idle_erase_ns = 3000000;
    bed = bed_open(&cfg, NULL);
    for (int i = 0; i < 20000; i++) {
        uint32_t z = rng_below(&rng, 20);
        uint32_t want = RSD_NONE;
        uint64_t best = UINT64_MAX;

        if (state_of_zone(&bed, z) == USED) {
            run(&bed, RSD_ZONE_RESET, lba(&bed, z, 0), 0, 0);
            bed_pass(&bed, rng_below(&rng, 9000000));
            continue;
        }
        for (uint32_t b = 0; b < 33; b++) {
            const Block *block = &bed.drive->blocks[b];
            bool ready = !block->obsolete && !block->erases;
            uint64_t cost = 2 * (erases_of(&bed, b) + !ready) + !ready;
            bool used = false;

            for (uint32_t n = 0; n < 20; n++) {
                used |= state_of_zone(&bed, n) == USED &&
                        block_of_zone(&bed, n) == b;
            }
            if (!used && cost < best) {
                best = cost;
                want = b;
            }
        }
        begin(&bed, RSD_WRITE, lba(&bed, z, 0), 1 + rng_below(&rng, 8), 0);
        CHECK_EQ(block_of_zone(&bed, z), want);
        if (rng_below(&rng, 2)) {
            bed_pass(&bed, rng_below(&rng, 9000000));
        }
    }
    CHECK(counters(&bed).erase_idle > 1000);
    CHECK(counters(&bed).erase_on_demand > 1000);
    bed_close(&bed);
}

/* One hot zone, the others cold; data checked all along */
static Bed heat(uint64_t threshold, uint64_t idle, int rounds)
{
    RsdConfig cfg = one_die(4, 1);
    Bed bed;

    cfg.wl_threshold = threshold;
    cfg.idle_erase_ns = idle;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    for (uint32_t z = 1; z < 4; z++) {
        run(&bed, RSD_WRITE, lba(&bed, z, 0), 8, 100 + z);
    }
    for (int i = 0; i < rounds; i++) {
        run(&bed, RSD_WRITE, 0, 8, 1 + i % 50);
        expect_pages(&bed, 0, 8, 1 + i % 50);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        bed_pass(&bed, i % 3 ? 20000000 : 2000000);
        expect_pages(&bed, lba(&bed, 1 + i % 3, 0), 8, 101 + i % 3);
    }
    bed_drain(&bed);
    for (uint32_t z = 1; z < 4; z++) {
        expect_pages(&bed, lba(&bed, z, 0), 8, 100 + z);
    }
    return bed;
}

TEST(without_levelling_wear_runs_apart)
{
    Bed bed = heat(0, 1000000, 200);

    CHECK_EQ(counters(&bed).wear_moves, 0);
    CHECK_EQ(counters(&bed).wear_min, 0);
    CHECK(counters(&bed).wear_max >= 99);
    bed_close(&bed);
}

TEST(levelling_bounds_the_difference)
{
    static const uint64_t thresholds[] = { 1, 2, 5, 10, 32 };

    for (int i = 0; i < 5; i++) {
        for (int idle = 0; idle < 2; idle++) {
            Bed bed = heat(thresholds[i], idle ? 1000000 : 0, 200);
            RsdCounters c = counters(&bed);

            CHECK(c.wear_moves > 0);
            CHECK(c.wear_max - c.wear_min <= thresholds[i] + 2);
            CHECK(c.prog_wear >= 8 * c.wear_moves);
            CHECK(c.read_wear >= c.prog_wear);
            CHECK(c.erase_wear > 0);
            CHECK_EQ(c.erase_wear + c.erase_host, c.wear_sum);
            /* and it comes to rest */
            bed_pass(&bed, UINT64_C(1000000000000));
            CHECK_EQ(counters(&bed).wear_moves, c.wear_moves);
            bed_close(&bed);
        }
    }
}

TEST(levelling_waits_for_its_threshold)
{
    Bed bed = heat(32, 1000000, 64);

    /* the hot blocks have 32 erases each, the cold ones none: not yet */
    CHECK_EQ(counters(&bed).wear_max, 32);
    CHECK_EQ(counters(&bed).wear_moves, 0);
    bed_close(&bed);
    bed = heat(32, 1000000, 65);
    CHECK_EQ(counters(&bed).wear_max, 33);
    CHECK_EQ(counters(&bed).wear_moves, 1);
    bed_close(&bed);
}

TEST(a_move_takes_its_time_and_yields)
{
    RsdConfig cfg = one_die(2, 1);
    uint64_t copy = 2 * (cfg.t_cmd_ns + cfg.t_xfer_ns) + cfg.t_read_ns +
                    cfg.t_prog_ns;
    Bed bed;

    cfg.wl_threshold = 1;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 8, 5);
    bed.drive->cfg.reset = RSD_RESET_ERASE;
    for (int i = 0; i < 3; i++) {
        run(&bed, RSD_WRITE, 0, 8, 6);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    /* blocks 1 and 2 have 2 and 1 erases, block 0 none: it moves to 1 */
    CHECK_EQ(erases_of(&bed, 1), 2);
    CHECK_EQ(block_of_zone(&bed, 1), 0);
    bed_pass(&bed, 3 * copy + 10);
    CHECK_EQ(counters(&bed).prog_wear, 3);
    CHECK_EQ(counters(&bed).read_wear, 3);
    CHECK_EQ(block_of_zone(&bed, 1), 0);
    /* a read waits for the one operation in flight */
    CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 1, 0), 1, 0),
             2 * (cfg.t_cmd_ns + cfg.t_xfer_ns + cfg.t_read_ns) - 10);
    bed_pass(&bed, 5 * copy);
    CHECK_EQ(block_of_zone(&bed, 1), 1);
    CHECK_EQ(counters(&bed).wear_moves, 1);
    CHECK_EQ(counters(&bed).prog_wear, 8);
    CHECK_EQ(counters(&bed).blocks_dirty, 1);
    expect_pages(&bed, lba(&bed, 1, 0), 8, 5);
    bed_close(&bed);
}

TEST(a_move_is_given_up_when_its_zone_is_reset)
{
    for (uint64_t when = 0; when < 3000000; when += 37000) {
        RsdConfig cfg = one_die(2, 1);
        Bed bed;

        cfg.wl_threshold = 1;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        run(&bed, RSD_WRITE, lba(&bed, 1, 0), 8, 5);
        bed.drive->cfg.reset = RSD_RESET_ERASE;
        for (int i = 0; i < 3; i++) {
            run(&bed, RSD_WRITE, 0, 8, 6);
            run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        }
        bed.drive->cfg.reset = RSD_RESET_MARK;
        bed_pass(&bed, when);
        run(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0, 0);
        run(&bed, RSD_WRITE, lba(&bed, 1, 0), 8, 7);
        run(&bed, RSD_WRITE, 0, 8, 8);
        bed_drain(&bed);
        expect_pages(&bed, lba(&bed, 1, 0), 8, 7);
        expect_pages(&bed, 0, 8, 8);
        CHECK_EQ(counters(&bed).blocks_used, 2);
        bed_close(&bed);
    }
}

TEST(a_write_takes_the_last_free_block_from_a_move)
{
    RsdConfig cfg = one_die(2, 0);
    Bed bed;

    cfg.wl_threshold = 1;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 8, 5);
    for (int i = 0; i < 4; i++) {
        run(&bed, RSD_WRITE, 0, 8, 6 + i);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    bed_pass(&bed, 6000000);
    CHECK(counters(&bed).read_wear > 0);
    CHECK_EQ(counters(&bed).wear_moves, 0);
    run(&bed, RSD_WRITE, 0, 8, 20);
    expect_pages(&bed, 0, 8, 20);
    expect_pages(&bed, lba(&bed, 1, 0), 8, 5);
    bed_close(&bed);
}

TEST(bad_blocks_are_never_used)
{
    RsdConfig cfg = small_config();
    uint64_t used[2] = { 0 };
    Bed bed;
    RsdCounters c;

    cfg.blocks = 8;
    cfg.spare_blocks = 8;
    cfg.bad_ppm = 200000;
    bed = bed_open(&cfg, NULL);
    c = counters(&bed);
    CHECK(c.blocks_bad > 4 && c.blocks_bad < 24);
    CHECK_EQ(c.blocks_erased + c.blocks_bad, 64);
    CHECK_EQ(c.spares_total, 32);
    CHECK_EQ(c.spares_left, 32 - c.blocks_bad);
    for (int i = 0; i < 500; i++) {
        uint64_t z = i % 8;

        if (used[0] & (1u << z)) {
            run(&bed, RSD_ZONE_RESET, lba(&bed, z, 0), 0, 0);
        }
        run(&bed, RSD_WRITE, lba(&bed, z, 0), 32, 0);
        used[0] |= 1u << z;
        for (uint32_t lane = 0; lane < 4; lane++) {
            uint32_t b = lane * 16 +
                         (bed.drive->media.map[z * 4 + lane] & 0x3fffffff);

            CHECK(!(rsd_rec_flags(bed.drive->media.rec[b]) & RSD_BLOCK_BAD));
        }
    }
    bed_close(&bed);
}

TEST(bad_blocks_follow_the_seed)
{
    RsdConfig cfg = small_config();
    uint64_t layout[3] = { 0 };

    cfg.blocks = 8;
    cfg.spare_blocks = 8;
    cfg.bad_ppm = 200000;
    for (int i = 0; i < 3; i++) {
        Bed bed;

        cfg.seed = i == 2 ? 8 : 7;
        bed = bed_open(&cfg, i == 1 ? temp_path("drive.rsd") : NULL);
        for (uint32_t b = 0; b < 64; b++) {
            uint64_t flags = rsd_rec_flags(bed.drive->media.rec[b]);

            layout[i] |= (flags & RSD_BLOCK_BAD) << b;
        }
        bed_close(&bed);
    }
    CHECK(layout[0] == layout[1]);
    CHECK(layout[0] != layout[2]);
}

TEST(bad_block_rate_is_met)
{
    RsdConfig cfg;
    RsdCounters c;
    Bed bed;

    rsd_preset_find("risa")->apply(&cfg);
    cfg.blocks = 8192;
    cfg.spare_blocks = 1024;
    cfg.bad_ppm = 20000;
    bed = bed_open(&cfg, NULL);
    c = counters(&bed);
    CHECK(c.blocks_bad > c.blocks_total * 0.019);
    CHECK(c.blocks_bad < c.blocks_total * 0.021);
    bed_close(&bed);
}

TEST(too_many_bad_blocks)
{
    RsdConfig cfg = small_config();
    char err[RSD_ERR_LEN] = "";
    const char *path = temp_path("drive.rsd");

    cfg.bad_ppm = 500000;
    CHECK(!rsd_open(NULL, &cfg, err));
    CHECK_SAYS(err, "bad-blocks-ppm=500000");
    CHECK_SAYS(err, "spare-blocks");
    err[0] = '\0';
    CHECK(!rsd_media_create(path, &cfg, err));
    CHECK_SAYS(err, "bad-blocks-ppm=500000");
    CHECK(!fopen(path, "r"));
    free((char *)path);
}

TEST(wear_histogram_scales)
{
    RsdConfig cfg = one_die(1, 0);
    RsdLogPage page;
    Bed bed;

    cfg.pages = 1;
    bed = bed_open(&cfg, NULL);
    for (uint32_t i = 0; i < 300; i++) {
        run(&bed, RSD_WRITE, 0, 1, 0);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        if (i == 63 || i == 64 || i == 299) {
            rsd_log_page(bed.drive, &page);
            CHECK_EQ(page.bucket_erases, i == 63 ? 1 : i == 64 ? 2 : 8);
            CHECK_EQ(page.erase_histogram[i / page.bucket_erases], 1);
        }
    }
    bed_close(&bed);
}

/* In whatever order the blocks are looked at */
TEST(wear_histogram_has_every_block)
{
    RsdConfig cfg = small_config();
    Rng rng = { 5 };

    cfg.blocks = 60;
    for (uint32_t most = 1; most < 5000; most = most * 3 / 2 + 1) {
        uint64_t want[RSD_LOG_HISTOGRAM] = { 0 };
        Bed bed = bed_open(&cfg, NULL);
        uint64_t *rec = bed.drive->media.rec, highest = 0;
        uint64_t blocks = bed.drive->dies * bed.drive->die_blocks;
        RsdLogPage page;

        for (uint64_t b = 0; b < blocks; b++) {
            uint64_t erases = rng_below(&rng, most);

            rec[b] = rsd_rec(erases, 0, 0);
            highest = erases > highest ? erases : highest;
        }
        rsd_log_page(bed.drive, &page);
        CHECK(highest / page.bucket_erases < RSD_LOG_HISTOGRAM);
        CHECK(page.bucket_erases == 1 ||
              highest / (page.bucket_erases / 2) >= RSD_LOG_HISTOGRAM);
        for (uint64_t b = 0; b < blocks; b++) {
            want[rsd_rec_erases(rec[b]) / page.bucket_erases]++;
        }
        CHECK(!memcmp(page.erase_histogram, want, sizeof(want)));
        bed_close(&bed);
    }
}
