/*
 * A rotating disk: its times against closed forms, its cache, what a power cut
 * leaves, and that nothing waits for ever. That each command is done at the
 * very nanosecond is tested by tests/model/test_disk_model.py.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <unistd.h>

#include "conventional.h"
#include "rsd-power.h"

#define TURN (UINT64_C(60000000000) / 7200)
#define SLOTS 200u              /* of a track */
#define HEADS 2u

/* One zone of tracks, of so many cylinders */
static RsdConfig disk_config(uint64_t cylinders)
{
    RsdConfig cfg;

    rsd_preset_find("custom")->apply(&cfg);
    cfg.ftl = RSD_FTL_DISK;
    cfg.channels = cfg.ways = 1;
    cfg.blocks = cylinders;
    cfg.pages = HEADS * SLOTS;
    cfg.disk_heads = HEADS;
    cfg.disk_zones = 1;
    cfg.disk_outer_slots = cfg.disk_inner_slots = SLOTS;
    cfg.disk_write_cache = 0;
    cfg.disk_segments = 0;
    return cfg;
}

static uint64_t lba_of(uint64_t cylinder, uint64_t slot)
{
    return cylinder * HEADS * SLOTS + slot;
}

static void check_near(uint64_t is, uint64_t want, uint64_t thousandths)
{
    uint64_t off = is > want ? is - want : want - is;

    if (off * 1000 > want * thousandths) {
        FAIL("%" PRIu64 " is not %" PRIu64 " within %" PRIu64 "/1000", is,
             want, thousandths);
    }
}

/* ns a cylinder: all its tracks, and what the skews cost */
static uint64_t cylinder_time(const RsdConfig *cfg)
{
    uint64_t next = cfg->disk_seek_min_ns > cfg->disk_head_switch_ns
                        ? cfg->disk_seek_min_ns : cfg->disk_head_switch_ns;
    uint64_t slots = HEADS * SLOTS + next * SLOTS / TURN + 1 +
                     (HEADS - 1) * (cfg->disk_head_switch_ns * SLOTS / TURN +
                                    1);

    return slots * TURN / SLOTS;
}

/* Reads or writes one after the other, 16 slots each */
static uint64_t time_of_stream(RsdConfig *cfg, RsdOp op, uint64_t cylinders)
{
    Bed bed = bed_open(cfg, NULL);
    uint64_t start, end = lba_of(cylinders + 1, 0);

    for (uint64_t at = 0; at < lba_of(1, 0); at += 16) {
        run(&bed, op, at, 16, 0);
    }
    bed_drain(&bed);
    start = bed.now;
    for (uint64_t at = lba_of(1, 0); at < end; at += 16) {
        run(&bed, op, at, 16, 0);
    }
    bed_drain(&bed);
    start = bed.now - start;
    bed_close(&bed);
    return start;
}

TEST(sequential_rate)
{
    static const uint64_t switches[][2] = {
        { 800000, 800000 }, { 300000, 2000000 }, { 1500000, 400000 },
    };

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        RsdConfig cfg = disk_config(500);

        cfg.disk_seek_min_ns = switches[i][0];
        cfg.disk_head_switch_ns = switches[i][1];
        cfg.disk_segments = 2;
        cfg.disk_write_cache = 4 << 20;
        check_near(time_of_stream(&cfg, RSD_READ, 400),
                   400 * cylinder_time(&cfg), 5);
        check_near(time_of_stream(&cfg, RSD_WRITE, 400),
                   400 * cylinder_time(&cfg), 5);
    }
}

/* Without a write cache each write misses the slot by as little as it comes */
TEST(sequential_writes_without_cache_take_a_turn_each)
{
    RsdConfig cfg = disk_config(10);
    Bed bed = bed_open(&cfg, NULL);

    run(&bed, RSD_WRITE, 0, 1, 0);
    for (uint64_t at = 1; at < 20; at++) {
        bed.now += 1000;
        CHECK_EQ(run(&bed, RSD_WRITE, at, 1, 0) + 1000, TURN + TURN * (at + 1) /
                 SLOTS - TURN * at / SLOTS);
    }
    bed_close(&bed);
}

static uint64_t mean_of_random(RsdConfig *cfg, RsdOp op, int n)
{
    Bed bed = bed_open(cfg, NULL);
    Rng rng = { 1 };
    uint64_t sum = 0;

    for (int i = 0; i < n; i++) {
        sum += run(&bed, op, rng_below(&rng, bed.geo.lbas), 1, 0);
        bed.now += rng_below(&rng, TURN);
    }
    bed_close(&bed);
    return sum / n;
}

TEST(random_at_depth_1)
{
    RsdConfig cfg = disk_config(100000);
    uint64_t want = cfg.disk_seek_avg_ns + TURN / 2 + TURN / SLOTS;

    check_near(mean_of_random(&cfg, RSD_READ, 20000), want, 10);
    check_near(mean_of_random(&cfg, RSD_WRITE, 20000), want, 10);
    cfg.disk_seek_avg_ns = 7000000;
    check_near(mean_of_random(&cfg, RSD_READ, 20000), want - 1500000, 10);
}

static uint64_t seek_to(Bed *bed, uint64_t cylinder)
{
    uint64_t before;

    run(bed, RSD_READ, 0, 1, 0);
    before = counters(bed).disk_seek_ns;
    run(bed, RSD_READ, lba_of(cylinder, 0), 1, 0);
    return counters(bed).disk_seek_ns - before;
}

TEST(seeks)
{
    RsdConfig cfg = disk_config(90001);
    Bed bed = bed_open(&cfg, NULL);
    uint64_t third = (135 * cfg.disk_seek_avg_ns - 27 * cfg.disk_seek_min_ns -
                      20 * cfg.disk_seek_max_ns) / 88;

    CHECK_EQ(seek_to(&bed, 0), 0);
    CHECK_EQ(seek_to(&bed, 1), cfg.disk_seek_min_ns);
    CHECK_EQ(seek_to(&bed, 30000), third);
    CHECK_EQ(seek_to(&bed, 90000), cfg.disk_seek_max_ns);
    /* a fourth of that: half of the way, in time, as it only accelerates */
    check_near(seek_to(&bed, 7500),
               (cfg.disk_seek_min_ns + third) / 2, 1);
    check_near(seek_to(&bed, 60000), (third + cfg.disk_seek_max_ns) / 2, 1);
    for (uint64_t c = 1, last = 0; c < 90001; c += 997) {
        uint64_t time = seek_to(&bed, c);

        CHECK(time >= last);
        last = time;
    }
    bed_close(&bed);
}

/* Reads at depth 1 of the inner zone take longer than of the outer one. */
TEST(zones_of_tracks)
{
    RsdConfig cfg = disk_config(100);
    uint64_t outer, inner;
    Bed bed;

    cfg.disk_zones = 5;
    cfg.disk_outer_slots = 300;
    cfg.disk_inner_slots = 100;
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_READ, 0, 300, 0);
    outer = counters(&bed).disk_transfer_ns;
    run(&bed, RSD_READ, bed.geo.lbas - 300, 300, 0);
    inner = counters(&bed).disk_transfer_ns - outer;
    CHECK_EQ(outer, TURN);
    check_near(inner, 3 * TURN, 1);
    bed_close(&bed);
}

TEST(reads_ahead)
{
    RsdConfig cfg = disk_config(100);
    Bed bed;

    cfg.disk_segments = 2;
    cfg.disk_segment_size = 32 * PAGE;
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_READ, 0, 8, 0);
    /* on their way: at this very moment the third of them has passed */
    bed.now += TURN * 11 / SLOTS - TURN * 8 / SLOTS;
    CHECK_EQ(run(&bed, RSD_READ, 8, 8, 0),
             TURN * 16 / SLOTS - TURN * 11 / SLOTS);
    CHECK_EQ(counters(&bed).disk_cache_hits, 3);
    /* all that it reads ahead has */
    bed.now += TURN;
    CHECK_EQ(run(&bed, RSD_READ, 16, 32, 0), 0);
    CHECK_EQ(counters(&bed).disk_cache_hits, 35);
    /* and no more than that; what was before is gone */
    CHECK(run(&bed, RSD_READ, 48, 1, 0) > 0);
    CHECK(run(&bed, RSD_READ, 0, 1, 0) > 0);
    CHECK_EQ(counters(&bed).disk_cache_hits, 35);
    bed_close(&bed);
}

TEST(ahead_is_interrupted)
{
    RsdConfig cfg = disk_config(1000);
    uint64_t alone, after;
    Bed bed;

    for (int ahead = 0; ahead < 2; ahead++) {
        cfg.disk_segments = 2 * ahead;
        bed = bed_open(&cfg, NULL);
        run(&bed, RSD_READ, 0, 8, 0);
        bed.now += 1000;
        after = run(&bed, RSD_READ, lba_of(500, 0), 1, 0);
        alone = ahead ? alone : after;
        CHECK_EQ(after, alone);
        bed_close(&bed);
    }
}

TEST(flush)
{
    RsdConfig cfg = disk_config(100);

    cfg.disk_write_cache = 64 * PAGE;
    for (int flush = 0; flush < 2; flush++) {
        Bed bed = bed_open(&cfg, temp_path("flush.rsd"));

        CHECK_EQ(run(&bed, RSD_WRITE, lba_of(50, 0), 8, 5), 0);
        if (flush) {
            CHECK(run(&bed, RSD_FLUSH, 0, 0, 0) > cfg.disk_seek_min_ns);
            CHECK_EQ(counters(&bed).disk_write_pages, 8);
            CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
        }
        rsd_power_cut(bed.drive, &(RsdOutcomes){ 0 });
        bed_reopen(&bed);
        expect_pages(&bed, lba_of(50, 0), 8, flush ? 5 : 0);
        bed_close(&bed);
    }
}

TEST(fua_goes_to_the_medium)
{
    RsdConfig cfg = disk_config(100);
    RsdCmd *cmd;
    Bed bed;

    cfg.disk_write_cache = 64 * PAGE;
    bed = bed_open(&cfg, temp_path("fua.rsd"));
    run(&bed, RSD_WRITE, lba_of(50, 0), 8, 5);
    cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, lba_of(50, 2), 2);
    for (uint32_t i = 0; i < 2; i++) {
        fill_page(cmd->data + i * PAGE, NULL, 0, cmd->lba + i, 6);
    }
    cmd->fua = true;
    CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
    CHECK(await(&bed, cmd) > cfg.disk_seek_min_ns);
    rsd_cmd_free(bed.drive, cmd);
    expect_pages(&bed, lba_of(50, 2), 2, 6);
    rsd_power_cut(bed.drive, &(RsdOutcomes){ 0 });
    bed_reopen(&bed);
    expect_pages(&bed, lba_of(50, 2), 2, 6);
    bed_close(&bed);
}

/* What is written again before it is on the medium goes there once. */
TEST(overwrites_in_the_cache)
{
    RsdConfig cfg = disk_config(100);
    Bed bed;

    cfg.disk_write_cache = 64 * PAGE;
    bed = bed_open(&cfg, temp_path("overwrites.rsd"));
    run(&bed, RSD_WRITE, lba_of(99, 0), 1, 1);
    for (uint64_t tag = 1; tag < 11; tag++) {
        CHECK_EQ(run(&bed, RSD_WRITE, lba_of(50, 0), 4, tag), 0);
    }
    CHECK_EQ(counters(&bed).disk_overwrites, 36);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).disk_write_pages, 5);
    expect_pages(&bed, lba_of(50, 0), 4, 10);
    bed_close(&bed);
}

/* A power cut after each slot of a track that is written over */
TEST(torn_writes_are_a_prefix)
{
    RsdConfig cfg = disk_config(4);
    uint32_t last = 0;

    for (uint64_t slot = 0; slot <= SLOTS; slot += 9) {
        Bed bed = bed_open(&cfg, temp_path("torn.rsd"));
        uint32_t passed = 0;

        run(&bed, RSD_WRITE, 0, SLOTS, 1);
        bed_drain(&bed);
        begin(&bed, RSD_WRITE, 0, SLOTS, 2);
        bed_pass(&bed, TURN * slot / SLOTS);
        rsd_power_cut(bed.drive, &(RsdOutcomes){ 0 });
        bed_reopen(&bed);
        for (uint32_t i = 0; i < SLOTS; i++) {
            RsdCmd *cmd = begin(&bed, RSD_READ, i, 1, 0);

            await(&bed, cmd);
            if (page_matches(cmd->data, NULL, 0, i, 2)) {
                CHECK_EQ(passed, i);
                passed++;
            } else {
                CHECK(page_matches(cmd->data, NULL, 0, i, 1));
            }
            rsd_cmd_free(bed.drive, cmd);
        }
        CHECK(passed >= last && passed <= slot);
        last = passed;
        bed_close(&bed);
    }
    CHECK(last + 9 >= SLOTS);
}

/* Operations are what is written to the medium at a time. */
TEST(power_cut_after_an_operation)
{
    RsdConfig cfg = disk_config(100);

    for (uint64_t op = 1; op < 5; op++) {
        Bed bed = bed_open(&cfg, temp_path("cut.rsd"));

        CHECK(rsd_power_cut_later(bed.drive, op, UINT64_MAX,
                                  &(RsdOutcomes){ 0 }));
        for (uint64_t i = 0; i < 4; i++) {
            begin(&bed, RSD_WRITE, lba_of(i, 0), 3, 1);
        }
        bed_drain(&bed);
        CHECK(rsd_power_is_off(bed.drive));
        bed_reopen(&bed);
        for (uint64_t i = 0; i < 4; i++) {
            expect_pages(&bed, lba_of(i, 0), 3, i < op);
        }
        bed_close(&bed);
    }
}

/* A far command waits for 64 others at most, however many come nearby. */
/* Zeroes that are written are one operation, as data are. */
TEST(power_cut_after_zeroes)
{
    RsdConfig cfg = disk_config(100);
    Bed bed = bed_open(&cfg, temp_path("zeroes.rsd"));

    run(&bed, RSD_WRITE, 0, 3, 1);
    CHECK(rsd_power_cut_later(bed.drive, 2, UINT64_MAX,
                              &(RsdOutcomes){ 0 }));
    run(&bed, RSD_WRITE_ZEROES, 0, 3, 0);
    CHECK(!rsd_power_is_off(bed.drive));
    begin(&bed, RSD_WRITE, lba_of(1, 0), 3, 2);
    begin(&bed, RSD_WRITE, lba_of(2, 0), 3, 3);
    bed_drain(&bed);
    CHECK(rsd_power_is_off(bed.drive));
    bed_reopen(&bed);
    expect_pages(&bed, 0, 3, 0);
    expect_pages(&bed, lba_of(1, 0), 3, 2);
    expect_pages(&bed, lba_of(2, 0), 3, 0);
    bed_close(&bed);
}

TEST(nobody_starves)
{
    RsdConfig cfg = disk_config(1000);
    Bed bed = bed_open(&cfg, NULL);
    RsdCmd *far, *done;
    uint64_t near = 0, before = 0;
    bool gone = false;

    for (int i = 0; i < 8; i++) {
        begin(&bed, RSD_READ, near++, 1, 0);
    }
    far = begin(&bed, RSD_READ, lba_of(999, 0), 1, 0);
    while (!gone) {
        CHECK(rsd_next_event(bed.drive, &bed.now));
        while ((done = rsd_advance(bed.drive, bed.now))) {
            gone |= done == far;
            before += !gone;
            rsd_cmd_free(bed.drive, done);
            near = (near + 1) % SLOTS;
            begin(&bed, RSD_READ, near, 1, 0);
        }
    }
    /* those that were first before it, and 64 */
    CHECK(before > 60 && before <= 8 + 65);
    bed_close(&bed);
}

/* What is in the write cache, too, while reads come */
TEST(the_write_cache_does_not_starve)
{
    RsdConfig cfg = disk_config(1000);
    uint64_t reads = 0;
    Rng rng = { 1 };
    Bed bed;

    cfg.disk_write_cache = 64 * PAGE;
    bed = bed_open(&cfg, NULL);
    for (int i = 0; i < 4; i++) {
        begin(&bed, RSD_READ, rng_below(&rng, bed.geo.lbas), 1, 0);
    }
    run(&bed, RSD_WRITE, lba_of(700, 0), 1, 0);
    while (!counters(&bed).disk_write_pages) {
        RsdCmd *done;

        CHECK(rsd_next_event(bed.drive, &bed.now));
        while ((done = rsd_advance(bed.drive, bed.now))) {
            reads++;
            rsd_cmd_free(bed.drive, done);
            begin(&bed, RSD_READ, rng_below(&rng, bed.geo.lbas), 1, 0);
        }
    }
    CHECK(reads >= 64 && reads < 70);
    bed_close(&bed);
}

/* Reads a second, so many at a time */
static uint64_t rate_at(uint64_t depth)
{
    RsdConfig cfg = disk_config(50000);
    Bed bed = bed_open(&cfg, NULL);
    Rng rng = { 1 };
    uint64_t reads = 0;

    while (reads < 4000) {
        RsdCmd *done;

        while (reads < 4000 && depth) {
            begin(&bed, RSD_READ, rng_below(&rng, bed.geo.lbas), 1, 0);
            depth--;
        }
        CHECK(rsd_next_event(bed.drive, &bed.now));
        while ((done = rsd_advance(bed.drive, bed.now))) {
            rsd_cmd_free(bed.drive, done);
            reads++;
            depth++;
        }
    }
    reads = reads * 1000000000 / bed.now;
    bed_close(&bed);
    return reads;
}

TEST(a_queue_is_served_in_the_order_of_positions)
{
    uint64_t one = rate_at(1), four = rate_at(4), many = rate_at(32);

    CHECK(four > one * 5 / 4);
    CHECK(many > one * 2);
}

/* Reads of one slot at two places in turn: ns each */
static uint64_t stroke(Bed *bed, uint64_t from, uint64_t to)
{
    Rng rng = { 1 };
    uint64_t sum = 0;

    for (uint64_t i = 0; i < 400; i++) {
        sum += run(bed, RSD_READ, (i % 2 ? from : to) + rng_below(&rng, 1000),
                   1, 0);
        bed->now += rng_below(&rng, TURN);
    }
    return sum / 400;
}

/* 100 MiB in reads of 128 KiB from there on: bytes a second */
static uint64_t rate_from(Bed *bed, uint64_t at)
{
    uint64_t start = bed->now;

    for (uint64_t i = 0; i < 800; i++) {
        run(bed, RSD_READ, at + i * 32, 32, 0);
    }
    return (UINT64_C(100) << 20) * 1000000 / ((bed->now - start) / 1000);
}

/* The figures of hw/rsd-nvme/PRESETS.md, fitted and held out */
TEST(preset_barracuda_320)
{
    RsdConfig cfg;
    uint64_t n;
    Bed bed;

    rsd_preset_find("barracuda-320")->apply(&cfg);
    check_near(mean_of_random(&cfg, RSD_READ, 4000), 8500000 + TURN / 2, 33);
    bed = bed_open(&cfg, NULL);
    n = bed.geo.lbas;
    CHECK_EQ(n * PAGE, UINT64_C(320072933376));
    check_near(rate_from(&bed, 0), 107931 * 1024, 33);
    check_near(rate_from(&bed, n - 25600), 51487 * 1024, 33);
    check_near(rate_from(&bed, n / 2), 85774 * 1024, 100);
    bed_close(&bed);
    /* the same places again and again: not from the cache */
    cfg.disk_segments = 0;
    bed = bed_open(&cfg, NULL);
    check_near(stroke(&bed, 0, n - 1000), 20074000, 33);
    check_near(stroke(&bed, n / 4, 3 * n / 4), 14541000, 150);
    check_near(stroke(&bed, 3 * n / 8, 5 * n / 8), 11449000, 150);
    bed_close(&bed);
}

static void lives(uint64_t cache, uint64_t seed)
{
    RsdConfig cfg = disk_config(5);
    World w;

    cfg.disk_outer_slots = 31;
    cfg.disk_inner_slots = 17;
    cfg.disk_zones = 3;
    cfg.disk_segments = seed % 3;
    cfg.disk_segment_size = 40 * PAGE;
    cfg.disk_write_cache = cache;
    w = world_open(&cfg, "lives.rsd", seed);
    w.lazy = cache;
    w.cuts = seed + 1;
    world_lives(&w, 8, 80, NULL);
    world_close(&w);
}

TEST(random_commands_and_power_cuts)
{
    for (uint64_t seed = 0; seed < 24; seed++) {
        lives(seed % 3 * 24 * PAGE, seed);
    }
}

TEST(no_flash)
{
    RsdConfig cfg = disk_config(10);
    RsdHealth health;
    RsdCounters c;
    RsdLogPage page;
    Bed bed = bed_open(&cfg, NULL);

    run(&bed, RSD_WRITE, 0, 8, 0);
    c = counters(&bed);
    CHECK_EQ(c.blocks_total + c.wear_min + c.wear_max + c.endurance +
             c.flash_bytes + c.prog_host + c.map_bytes, 0);
    CHECK_EQ(c.capacity_bytes, bed.geo.lbas * PAGE);
    rsd_health(bed.drive, &health);
    CHECK(!health.read_only && health.available_spare == 100);
    rsd_log_page(bed.drive, &page);
    CHECK_EQ(page.erase_histogram[0], 0);
    bed_close(&bed);
}

TEST(refused_settings)
{
    RsdConfig cfg = disk_config(10);

    cfg.suspend = RSD_ON;
    open_refused(&cfg, "suspend=on", "leave suspend out");
    cfg = disk_config(10);
    cfg.planes = 2;
    open_refused(&cfg, "planes=2", "ftl=disk");
    cfg = disk_config(10);
    cfg.disk_inner_slots = SLOTS + 1;
    open_refused(&cfg, "disk-inner-slots=201", "disk-outer-slots=200");
    cfg = disk_config(10);
    cfg.disk_seek_min_ns = 16000000;
    open_refused(&cfg, "disk-seek-min=16000000", "15900000");
    cfg = disk_config(10);
    cfg.disk_seek_avg_ns = 3000000;
    open_refused(&cfg, "disk-seek-avg=3000000", "3037038 to 12880000");
    cfg.disk_seek_avg_ns = 13000000;
    open_refused(&cfg, "disk-seek-avg=13000000", "3037038 to 12880000");
    cfg = disk_config(10);
    cfg.disk_seek_min_ns = 0;
    cfg.disk_seek_max_ns = 1;
    open_refused(&cfg, "disk-seek-min=0 disk-seek-max=1", "larger disk-seek-max");
}

TEST(no_operation_log)
{
    RsdConfig cfg = disk_config(10);
    static const char *path, *log;
    char err[RSD_ERR_LEN] = "";

    path = temp_path("log.rsd");
    log = temp_path("log.oplog");
    CHECK(rsd_media_create(path, &cfg, err));
    CHECK(!rsd_open_logged(path, log, &cfg, err));
    CHECK_SAYS(err, "leave op-log out");
}

TEST(no_host_sync)
{
    RsdConfig cfg = disk_config(10);
    const char *path = temp_path("sync.rsd");
    char err[RSD_ERR_LEN] = "";

    CHECK(rsd_media_create(path, &cfg, err));
    CHECK(!rsd_open_synced(path, &cfg, err));
    CHECK_SAYS(err, "ftl=disk");
    CHECK_SAYS(err, "leave host-sync out");
    unlink(path);
    free((char *)path);
}
