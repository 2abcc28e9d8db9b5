/*
 * Time: latencies to the nanosecond, bandwidth against its formula, queues.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "harness.h"

static const struct Timing {
    uint64_t cmd, xfer, read, prog, erase;
} timings[] = {
    { 2500, 30833, 60000, 444278, 3500000 },
    { 100, 1000, 20000, 300000, 4000000 },
    { 7, 13, 1009, 100003, 1000003 },
    { 40000, 900000, 11, 17, 23 },
    { 0, 1, 1, 1, 1 },
    { 0, 0, 0, 0, 0 },
};

#define NUM_TIMINGS (sizeof(timings) / sizeof(timings[0]))

static RsdConfig timed(const struct Timing *t, uint64_t channels,
                       uint64_t ways)
{
    RsdConfig cfg = small_config();

    cfg.channels = channels;
    cfg.ways = ways;
    cfg.t_cmd_ns = t->cmd;
    cfg.t_xfer_ns = t->xfer;
    cfg.t_read_ns = t->read;
    cfg.t_prog_ns = t->prog;
    cfg.t_erase_ns = t->erase;
    return cfg;
}

TEST(one_at_a_time)
{
    for (size_t i = 0; i < NUM_TIMINGS; i++) {
        const struct Timing *t = &timings[i];
        uint64_t program = t->cmd + t->xfer + t->prog;
        uint64_t erase = t->cmd + t->erase;

        for (uint64_t channels = 1; channels <= 3; channels++) {
            RsdConfig cfg = timed(t, channels, 2);
            Bed bed;

            cfg.blocks = 1;
            cfg.spare_blocks = 0;
            bed = bed_open(&cfg, NULL);
            for (int page = 0; page < 5; page++) {
                CHECK_EQ(run(&bed, RSD_WRITE, page, 1, 1), program);
                bed_pass(&bed, 12345);
                CHECK_EQ(run(&bed, RSD_READ, page, 1, 0),
                         t->cmd + t->read + t->xfer);
            }
            CHECK_EQ(run(&bed, RSD_WRITE_ZEROES, 5, 1, 0), program);
            CHECK_EQ(run(&bed, RSD_READ, 6, 2, 0), 0);
            CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
            CHECK_EQ(run(&bed, RSD_ZONE_FINISH, 0, 0, 0), 0);
            CHECK_EQ(run(&bed, RSD_ZONE_RESET, 0, 0, 0), 0);
            CHECK_EQ(run(&bed, RSD_ZONE_RESET, 0, 0, 0), 0);
            CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), 0);
            CHECK_EQ(counters(&bed).erase_host, 0);
            if (2 * t->cmd <= erase) {
                CHECK_EQ(run(&bed, RSD_WRITE, 0, 1, 1), erase + program);
                CHECK_EQ(run(&bed, RSD_WRITE, 1, 1, 1), program);
            }
            bed_close(&bed);
        }
    }
}

TEST(reset_by_erase)
{
    for (size_t i = 0; i < NUM_TIMINGS; i++) {
        const struct Timing *t = &timings[i];

        for (uint64_t ways = 1; ways <= 4; ways++) {
            RsdConfig cfg = timed(t, 1, ways);
            Bed bed;

            cfg.reset = RSD_RESET_ERASE;
            bed = bed_open(&cfg, NULL);
            CHECK_EQ(run(&bed, RSD_ZONE_RESET, 0, 0, 0), 0);
            run(&bed, RSD_WRITE, 0, ways, 1);
            CHECK_EQ(run(&bed, RSD_ZONE_RESET, 0, 0, 0),
                     ways * t->cmd + t->erase);
            CHECK_EQ(counters(&bed).erase_host, ways);
            CHECK_EQ(counters(&bed).erase_on_demand, ways);
            CHECK_EQ(run(&bed, RSD_ZONE_RESET, 0, 0, 0), 0);
            /* only what was programmed is erased */
            run(&bed, RSD_WRITE, 0, 1, 1);
            CHECK_EQ(run(&bed, RSD_ZONE_RESET, 0, 0, 0), t->cmd + t->erase);
            CHECK_EQ(counters(&bed).erase_host, ways + 1);
            bed_close(&bed);
        }
    }
}

TEST(finish_by_padding)
{
    const struct Timing *t = &timings[1];
    RsdConfig cfg = timed(t, 1, 1);
    Bed bed;

    cfg.finish = RSD_FINISH_PAD;
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_WRITE, 0, 3, 1);
    CHECK_EQ(run(&bed, RSD_ZONE_FINISH, 0, 0, 0),
             5 * (t->cmd + t->xfer + t->prog));
    CHECK_EQ(counters(&bed).prog_pad, 5);
    CHECK_EQ(run(&bed, RSD_ZONE_FINISH, 0, 0, 0), 0);
    /* an empty zone is padded from its start */
    CHECK_EQ(run(&bed, RSD_ZONE_FINISH, lba(&bed, 1, 0), 0, 0),
             8 * (t->cmd + t->xfer + t->prog));
    CHECK_EQ(counters(&bed).prog_pad, 13);
    CHECK_EQ(written(&bed, 1), 8);
    bed_close(&bed);
}

TEST(ways_share_a_bus_and_channels_do_not)
{
    const struct Timing *t = &timings[0];
    RsdConfig cfg = timed(t, 2, 2);
    Bed bed = bed_open(&cfg, NULL);
    uint64_t bus = t->cmd + t->xfer;

    CHECK_EQ(run(&bed, RSD_WRITE, 0, 2, 1), bus + t->prog);
    CHECK_EQ(run(&bed, RSD_WRITE, 2, 4, 1), 2 * bus + t->prog);
    CHECK_EQ(run(&bed, RSD_READ, 0, 2, 0), bus + t->read);
    /* both commands, the first page, then the second */
    CHECK_EQ(run(&bed, RSD_READ, 0, 4, 0), t->cmd + t->read + 2 * t->xfer);
    /* way 1 has three of them on each channel, way 0 two */
    CHECK_EQ(run(&bed, RSD_WRITE, 6, 10, 1), 3 * (bus + t->prog));
    bed_close(&bed);
}

TEST(a_command_goes_before_data)
{
    /*
     * One channel, two ways; each way has two reads queued. The first way's
     * second command goes out right behind its first page, although the
     * second way's page has been waiting for longer.
     */
    struct Timing t = { 10, 100, 50, 0, 0 };
    RsdConfig cfg = timed(&t, 1, 2);
    Bed bed = bed_open(&cfg, NULL);
    RsdCmd *cmd[4];
    uint64_t start;

    run(&bed, RSD_WRITE, 0, 4, 1);
    start = bed.now;
    for (int i = 0; i < 4; i++) {
        cmd[i] = begin(&bed, RSD_READ, i, 1, 0);
    }
    /* commands at 0 and 10; way 0 is ready at 60, way 1 at 70 */
    await(&bed, cmd[0]);
    CHECK_EQ(bed.now - start, 160);
    await(&bed, cmd[1]);
    CHECK_EQ(bed.now - start, 160 + 10 + 100);
    /* way 1's second command takes 10, way 0 has been ready since 220 */
    await(&bed, cmd[2]);
    CHECK_EQ(bed.now - start, 270 + 10 + 100);
    await(&bed, cmd[3]);
    CHECK_EQ(bed.now - start, 380 + 100);
    for (int i = 0; i < 4; i++) {
        rsd_cmd_free(bed.drive, cmd[i]);
    }
    bed_close(&bed);
}

static double min(double a, double b)
{
    return a < b ? a : b;
}

/* Pages a second of virtual time, sequentially, with many in flight */
static double bandwidth(Bed *bed, RsdOp op, uint64_t pages, uint32_t nlb,
                        uint32_t depth)
{
    uint64_t next = 0, done = 0, start = bed->now, warm = pages / 4;
    uint32_t in_flight = 0;
    RsdCmd *cmd;

    while (done < pages) {
        while (in_flight < depth && next < pages) {
            begin(bed, op, next, nlb, 0);
            next += nlb;
            in_flight++;
        }
        CHECK(rsd_next_event(bed->drive, &bed->now));
        while ((cmd = rsd_advance(bed->drive, bed->now))) {
            done += nlb;
            in_flight--;
            rsd_cmd_free(bed->drive, cmd);
            if (done == warm) {
                start = bed->now;
            }
        }
        /* in the steady state: the last commands leave dies without work */
        if (next == pages) {
            break;
        }
    }
    uint64_t counted = done - warm, ns = bed->now - start;

    bed_drain(bed);
    return counted * 1e9 / ns;
}

static void expect_bandwidth(const struct Timing *t, uint64_t channels,
                             uint64_t ways, uint32_t nlb, RsdQueue queue)
{
    RsdConfig cfg = timed(t, channels, ways);
    double bus = t->cmd + t->xfer;
    double want_w = channels * 1e9 * min(1 / bus, ways / (bus + t->prog));
    double want_r = channels * 1e9 * min(1 / bus, ways / (bus + t->read));
    uint32_t depth = 8 * channels * ways / nlb + 8;
    double got;
    Bed bed;

    cfg.blocks = 1;
    cfg.spare_blocks = 0;
    cfg.pages = 512;
    cfg.queue = queue;
    bed = bed_open(&cfg, NULL);
    uint64_t pages = bed.geo.zone_capacity;

    got = bandwidth(&bed, RSD_WRITE, pages, nlb, depth);
    if (got < want_w * 0.99 || got > want_w * 1.01) {
        FAIL("%" PRIu64 "x%" PRIu64 " prog %" PRIu64 ": %.0f writes a second, "
             "not %.0f", channels, ways, t->prog, got, want_w);
    }
    got = bandwidth(&bed, RSD_READ, pages, nlb, depth);
    if (got < want_r * 0.99 || got > want_r * 1.01) {
        FAIL("%" PRIu64 "x%" PRIu64 " read %" PRIu64 ": %.0f reads a second, "
             "not %.0f", channels, ways, t->read, got, want_r);
    }
    bed_close(&bed);
}

TEST(bandwidth_of_all_geometries)
{
    for (uint64_t channels = 1; channels <= 16; channels++) {
        for (uint64_t ways = 1; ways <= 8; ways++) {
            expect_bandwidth(&timings[0], channels, ways, 1, RSD_QUEUE_WAY);
        }
    }
}

TEST(bandwidth_in_large_commands)
{
    for (uint64_t ways = 1; ways <= 8; ways *= 2) {
        expect_bandwidth(&timings[0], 4, ways, 64, RSD_QUEUE_WAY);
        expect_bandwidth(&timings[1], 16, ways, 256, RSD_QUEUE_WAY);
    }
}

/* Bus-bound, die-bound, and close to where one becomes the other */
TEST(bandwidth_near_the_crossing)
{
    static const double factors[] = {
        0, 0.3, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1, 1.001, 1.01, 1.02,
        1.05, 1.1, 1.2, 1.5, 2, 5,
    };

    for (uint64_t ways = 1; ways <= 8; ways++) {
        for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++) {
            for (uint64_t cmd = 0; cmd <= 10000; cmd += 2500) {
                struct Timing t = { cmd, 30833, 0, 0, 1000 };
                double crossing = (ways - 1) * (double)(t.cmd + t.xfer);

                t.read = t.prog = (ways == 1 ? t.xfer : crossing) * factors[f];
                expect_bandwidth(&t, 1, ways, 1, RSD_QUEUE_WAY);
                expect_bandwidth(&t, 2, ways, 16, RSD_QUEUE_WAY);
            }
        }
    }
}

TEST(preset_risa_does_what_the_paper_says)
{
    RsdConfig cfg;
    double reads, writes;
    Bed bed;

    rsd_preset_find("risa")->apply(&cfg);
    bed = bed_open(&cfg, NULL);
    writes = bandwidth(&bed, RSD_WRITE, bed.geo.zone_capacity * 2, 1, 128);
    reads = bandwidth(&bed, RSD_READ, bed.geo.zone_capacity * 2, 1, 256);
    if (reads < 240000 * 0.98 || reads > 240000 * 1.02 ||
        writes < 67000 * 0.98 || writes > 67000 * 1.02) {
        FAIL("%.0f reads and %.0f writes a second", reads, writes);
    }
    bed_close(&bed);
}

/* Three reads: two of way 0, then one of way 1 */
static void head_of_line(RsdQueue queue, uint64_t latency[3])
{
    struct Timing t = { 10, 100, 1000, 2000, 3000 };
    RsdConfig cfg = timed(&t, 1, 2);
    static const uint64_t at[3] = { 0, 2, 1 };
    RsdCmd *cmd[3];
    Bed bed;

    cfg.queue = queue;
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_WRITE, 0, 4, 1);
    for (int i = 0; i < 3; i++) {
        cmd[i] = begin(&bed, RSD_READ, at[i], 1, 0);
    }
    bed_pass(&bed, 0);
    for (uint64_t done = 0; done < 3;) {
        RsdCmd *c;

        CHECK(rsd_next_event(bed.drive, &bed.now));
        while ((c = rsd_advance(bed.drive, bed.now))) {
            for (int i = 0; i < 3; i++) {
                if (c == cmd[i]) {
                    latency[i] = c->done_ns - c->submit_ns;
                }
            }
            done++;
            rsd_cmd_free(bed.drive, c);
        }
    }
    bed_close(&bed);
}

TEST(a_global_queue_blocks_at_its_head)
{
    uint64_t latency[3];

    head_of_line(RSD_QUEUE_WAY, latency);
    CHECK_EQ(latency[0], 1110);
    CHECK_EQ(latency[1], 2220);
    CHECK_EQ(latency[2], 10 + 1000 + 100 + 100 + 10);
    head_of_line(RSD_QUEUE_GLOBAL, latency);
    /* the third waits until the second has its die */
    CHECK_EQ(latency[0], 1110);
    CHECK_EQ(latency[1], 2220);
    CHECK_EQ(latency[2], 1110 + 10 + 10 + 1000 + 100 + 90);
}

TEST(a_global_queue_is_not_slower_in_sequence)
{
    expect_bandwidth(&timings[0], 4, 4, 1, RSD_QUEUE_GLOBAL);
}

TEST(queue_waits_are_summed)
{
    const struct Timing *t = &timings[1];
    RsdConfig cfg = timed(t, 1, 1);
    Bed bed = bed_open(&cfg, NULL);
    uint64_t program = t->cmd + t->xfer + t->prog;
    RsdCounters c;

    run(&bed, RSD_WRITE, 0, 4, 1);
    c = counters(&bed);
    CHECK_EQ(c.queue_wait_ns, (1 + 2 + 3) * program);
    CHECK_EQ(c.queue_wait_max_ns, 3 * program);
    CHECK_EQ(c.bus_busy_ns, 4 * (t->cmd + t->xfer));
    CHECK_EQ(c.die_busy_ns, 4 * program);
    run(&bed, RSD_READ, 0, 2, 0);
    c = counters(&bed);
    CHECK_EQ(c.bus_busy_ns, 6 * (t->cmd + t->xfer));
    CHECK_EQ(c.die_busy_ns, 4 * program + 2 * (t->cmd + t->read + t->xfer));
    bed_close(&bed);
}

TEST(a_late_caller_changes_nothing)
{
    const struct Timing *t = &timings[1];
    RsdConfig cfg = timed(t, 1, 1);
    Bed bed = bed_open(&cfg, NULL);
    RsdCmd *first = begin(&bed, RSD_WRITE, 0, 1, 1), *second, *cmd;

    /* the second comes when the first is long done, unseen */
    bed.now = 10000000;
    second = begin(&bed, RSD_WRITE, 1, 1, 1);
    cmd = rsd_advance(bed.drive, bed.now);
    CHECK(cmd == first);
    CHECK_EQ(cmd->done_ns, t->cmd + t->xfer + t->prog);
    CHECK(!rsd_advance(bed.drive, bed.now));
    bed.now = 20000000;
    cmd = rsd_advance(bed.drive, bed.now);
    CHECK(cmd == second);
    CHECK_EQ(cmd->done_ns, 10000000 + t->cmd + t->xfer + t->prog);
    bed_close(&bed);
}
