/*
 * What a die does besides one page after the other: page types, status, cache
 * operations, suspension. One die, times computed by hand.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "harness.h"

enum { CMD = 10, XFER = 100, READ = 1000, PROG = 2000, ERASE = 3000 };

static RsdConfig one_die(void)
{
    RsdConfig cfg = small_config();

    cfg.channels = 1;
    cfg.ways = 1;
    cfg.t_cmd_ns = CMD;
    cfg.t_xfer_ns = XFER;
    cfg.t_read_ns = READ;
    cfg.t_prog_ns = PROG;
    cfg.t_erase_ns = ERASE;
    return cfg;
}

TEST(page_types_take_turns)
{
    static const struct {
        RsdCell cell;
        uint64_t extra[4];      /* to tR and tPROG, of pages 0 to 3 */
    } cases[] = {
        { RSD_CELL_SLC, { 0, 0, 0, 0 } },
        { RSD_CELL_MLC, { 0, 20, 0, 20 } },
        { RSD_CELL_TLC, { 0, 1, 20, 0 } },
        { RSD_CELL_QLC, { 0, 1, 20, 300 } },
    };

    for (int i = 0; i < 4; i++) {
        RsdConfig cfg = one_die();
        Bed bed;

        cfg.cell = cases[i].cell;
        cfg.t_read_csb_ns = READ + 1;
        cfg.t_read_msb_ns = READ + 20;
        cfg.t_read_tsb_ns = READ + 300;
        cfg.t_prog_csb_ns = PROG + 1;
        cfg.t_prog_msb_ns = PROG + 20;
        cfg.t_prog_tsb_ns = PROG + 300;
        bed = bed_open(&cfg, NULL);
        for (int page = 0; page < 4; page++) {
            CHECK_EQ(run(&bed, RSD_WRITE, page, 1, 1),
                     CMD + XFER + PROG + cases[i].extra[page]);
            CHECK_EQ(run(&bed, RSD_READ, page, 1, 0),
                     CMD + READ + cases[i].extra[page] + XFER);
        }
        bed_close(&bed);
        /* without times of their own, all pages are as the LSB page */
        cfg.t_read_csb_ns = cfg.t_read_msb_ns = cfg.t_read_tsb_ns = 0;
        cfg.t_prog_csb_ns = cfg.t_prog_msb_ns = cfg.t_prog_tsb_ns = 0;
        bed = bed_open(&cfg, NULL);
        for (int page = 0; page < 4; page++) {
            CHECK_EQ(run(&bed, RSD_WRITE, page, 1, 1), CMD + XFER + PROG);
            CHECK_EQ(run(&bed, RSD_READ, page, 1, 0), CMD + READ + XFER);
        }
        bed_close(&bed);
    }
}

TEST(status_is_read_on_the_bus)
{
    for (int cache = 0; cache < 2; cache++) {
        RsdConfig cfg = one_die();
        RsdCounters c;
        Bed bed;

        cfg.t_status_ns = 7;
        cfg.reset = RSD_RESET_ERASE;
        cfg.cache = cache;
        bed = bed_open(&cfg, NULL);
        CHECK_EQ(run(&bed, RSD_WRITE, 0, 1, 1), CMD + XFER + PROG + 7);
        CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), CMD + READ + XFER);
        CHECK_EQ(run(&bed, RSD_ZONE_RESET, 0, 0, 0), CMD + ERASE + 7);
        c = counters(&bed);
        CHECK_EQ(c.bus_busy_ns, 3 * CMD + 2 * XFER + 2 * 7);
        CHECK_EQ(c.die_busy_ns, 3 * CMD + 2 * XFER + 2 * 7 + READ + PROG +
                                ERASE);
        bed_close(&bed);
    }
}

TEST(cache_programs_overlap)
{
    RsdConfig cfg = one_die();
    Bed bed;

    cfg.cache = RSD_ON;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 4, 1), CMD + XFER + 4 * PROG);
    CHECK_EQ(counters(&bed).die_busy_ns, CMD + XFER + 4 * PROG);
    CHECK_EQ(counters(&bed).bus_busy_ns, 4 * (CMD + XFER));
    /* not from one block to another */
    begin(&bed, RSD_WRITE, 4, 1, 1);
    CHECK_EQ(run(&bed, RSD_WRITE, lba(&bed, 1, 0), 1, 1),
             2 * (CMD + XFER + PROG));
    bed_close(&bed);

    /* the bus is what takes longer */
    cfg.t_xfer_ns = 5000;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 4, 1), 4 * (CMD + 5000) + PROG);
    bed_close(&bed);

    /* the next program comes late, while the array works */
    cfg.t_xfer_ns = XFER;
    bed = bed_open(&cfg, NULL);
    begin(&bed, RSD_WRITE, 0, 1, 1);
    bed_pass(&bed, 500);
    CHECK_EQ(run(&bed, RSD_WRITE, 1, 1, 1), CMD + XFER + 2 * PROG - 500);
    bed_close(&bed);

    /* with status: it goes out while the array works on */
    cfg.t_status_ns = 7;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 4, 1), CMD + XFER + 4 * PROG + 7);
    bed_close(&bed);
}

TEST(cache_reads_overlap)
{
    RsdConfig cfg = one_die();
    Bed bed;

    cfg.cache = RSD_ON;
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_WRITE, 0, 4, 1);
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 4, 1);
    CHECK_EQ(run(&bed, RSD_READ, 0, 4, 0), 4 * (CMD + READ) + XFER);
    /* also from one block to another */
    begin(&bed, RSD_READ, 0, 1, 0);
    CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 1, 0), 1, 0),
             2 * (CMD + READ) + XFER);
    /* not before a program */
    begin(&bed, RSD_READ, 0, 1, 0);
    CHECK_EQ(run(&bed, RSD_WRITE, 4, 1, 1),
             CMD + READ + XFER + CMD + XFER + PROG);
    bed_close(&bed);

    /* the bus is what takes longer: command and page alternate on it */
    cfg.t_xfer_ns = 5000;
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_WRITE, 0, 4, 1);
    CHECK_EQ(run(&bed, RSD_READ, 0, 4, 0), CMD + READ + 3 * CMD + 4 * 5000);
    bed_close(&bed);

    /* a page that is read again keeps its successor waiting */
    cfg.t_xfer_ns = XFER;
    cfg.read_retries = 1;
    cfg.endurance = 1;
    bed = bed_open(&cfg, NULL);
    for (int i = 0; i < 6; i++) {       /* of 5 blocks: the last is erased */
        run(&bed, RSD_WRITE, 0, 4, 1);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    run(&bed, RSD_WRITE, 0, 4, 1);
    CHECK_EQ(run(&bed, RSD_READ, 0, 2, 0), 4 * (CMD + READ + XFER));
    bed_close(&bed);
}

/* Zones 0 and 1 have a page each; suspension takes 50. */
static Bed suspending(RsdConfig cfg)
{
    Bed bed;

    cfg.suspend = RSD_ON;
    cfg.t_suspend_ns = 50;
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_WRITE, 0, 1, 1);
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 1, 1);
    return bed;
}

TEST(a_read_suspends_a_program)
{
    Bed bed = suspending(one_die());
    uint64_t busy = counters(&bed).die_busy_ns, start = bed.now;
    RsdCmd *write = begin(&bed, RSD_WRITE, 1, 1, 1);

    bed_pass(&bed, 500);
    CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 1, 0), 1, 0),
             50 + CMD + READ + XFER);
    /* it goes on with what was left of its time */
    CHECK_EQ(await(&bed, write), CMD + XFER + PROG + 50 + CMD + READ + XFER);
    CHECK_EQ(counters(&bed).suspends, 1);
    CHECK_EQ(counters(&bed).die_busy_ns - busy, bed.now - start);
    rsd_cmd_free(bed.drive, write);
    bed_close(&bed);
}

TEST(a_read_waits_for_the_bus_part)
{
    Bed bed = suspending(one_die());
    RsdCmd *write = begin(&bed, RSD_WRITE, 1, 1, 1);

    bed_pass(&bed, 30);
    CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 1, 0), 1, 0),
             CMD + XFER - 30 + 50 + CMD + READ + XFER);
    CHECK_EQ(await(&bed, write), CMD + XFER + PROG + 50 + CMD + READ + XFER);
    rsd_cmd_free(bed.drive, write);
    bed_close(&bed);
}

TEST(a_read_suspends_an_erase)
{
    RsdConfig cfg = one_die();
    RsdCmd *reset;
    Bed bed;

    cfg.reset = RSD_RESET_ERASE;
    bed = suspending(cfg);
    reset = begin(&bed, RSD_ZONE_RESET, 0, 0, 0);
    bed_pass(&bed, 1000);
    CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 1, 0), 1, 0),
             50 + CMD + READ + XFER);
    CHECK_EQ(await(&bed, reset), CMD + ERASE + 50 + CMD + READ + XFER);
    rsd_cmd_free(bed.drive, reset);
    bed_close(&bed);
}

TEST(a_read_of_the_block_does_not_suspend)
{
    Bed bed = suspending(one_die());

    begin(&bed, RSD_WRITE, 1, 1, 1);
    bed_pass(&bed, 500);
    CHECK_EQ(run(&bed, RSD_READ, 1, 1, 0),
             CMD + XFER + PROG - 500 + CMD + READ + XFER);
    CHECK_EQ(counters(&bed).suspends, 0);
    bed_close(&bed);
}

TEST(a_program_about_to_end_is_not_suspended)
{
    for (uint64_t left = 49; left <= 51; left++) {
        Bed bed = suspending(one_die());

        begin(&bed, RSD_WRITE, 1, 1, 1);
        bed_pass(&bed, CMD + XFER + PROG - left);
        CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 1, 0), 1, 0),
                 (left > 50 ? 50 : left) + CMD + READ + XFER);
        CHECK_EQ(counters(&bed).suspends, left > 50);
        bed_close(&bed);
    }
}

TEST(reads_go_first_up_to_a_limit)
{
    uint64_t read = CMD + READ + XFER, program = CMD + XFER + PROG;

    for (uint64_t limit = 1; limit <= 4; limit++) {
        RsdConfig cfg = one_die();
        RsdCmd *cmds[6], *done;
        uint64_t start, reads = 0;
        Bed bed;

        cfg.suspend_reads = limit;
        bed = suspending(cfg);
        start = bed.now;
        /* a read begins; two programs and three reads are behind it */
        cmds[0] = begin(&bed, RSD_READ, lba(&bed, 1, 0), 1, 0);
        cmds[1] = begin(&bed, RSD_WRITE, 1, 1, 1);
        cmds[2] = begin(&bed, RSD_WRITE, 2, 1, 1);
        for (int i = 3; i < 6; i++) {
            cmds[i] = begin(&bed, RSD_READ, lba(&bed, 1, 0), 1, 0);
        }
        for (int i = 0; i < 6; i++) {
            while (!(done = rsd_advance(bed.drive, bed.now))) {
                CHECK(rsd_next_event(bed.drive, &bed.now));
            }
            if (done->op == RSD_READ) {
                /* the first has begun; then, at each limit, a program */
                CHECK_EQ(done->done_ns - start,
                         (1 + reads) * read +
                         (reads ? (reads - 1) / limit * program : 0));
                CHECK(done == cmds[reads ? 2 + reads : 0]);
                reads++;
            }
        }
        CHECK_EQ(bed.now - start, 4 * read + 2 * program);
        CHECK_EQ(counters(&bed).suspends, 0);
        bed_close(&bed);
    }
}

/* A program of several pages lets reads in between, too. */
TEST(reads_go_between_the_pages_of_a_write)
{
    Bed bed = suspending(one_die());
    RsdCmd *write = begin(&bed, RSD_WRITE, 1, 3, 1);

    /* while the second page is sent */
    bed_pass(&bed, CMD + XFER + PROG + 1);
    CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 1, 0), 1, 0),
             CMD + XFER - 1 + 50 + CMD + READ + XFER);
    CHECK_EQ(await(&bed, write),
             3 * (CMD + XFER + PROG) + 50 + CMD + READ + XFER);
    rsd_cmd_free(bed.drive, write);
    bed_close(&bed);
}

/* Whatever is on: what was written is read, and the time is the same again. */
TEST(order_within_a_block_is_kept)
{
    for (uint64_t seed = 0; seed < 24; seed++) {
        uint64_t end[2];

        for (int again = 0; again < 2; again++) {
            RsdConfig cfg = small_config();
            Rng rng = { seed };
            uint64_t next[4] = { 0 }, tags[4] = { 0 };
            Bed bed;

            cfg.cache = seed & 1;
            cfg.suspend = seed >> 1 & 1;
            cfg.t_status_ns = seed & 4 ? 100 : 0;
            cfg.queue = seed % 6 == 5;
            if (cfg.queue) {
                /* One queue has neither. */
                cfg.cache = cfg.suspend = 0;
            }
            cfg.suspend_reads = 1 + seed % 3;
            cfg.idle_erase_ns = 300000;
            cfg.wl_threshold = 2;
            bed = bed_open(&cfg, temp_path("order.rsd"));
            for (int i = 0; i < 1500; i++) {
                uint32_t zone = rng_below(&rng, 4);
                uint64_t what = rng_below(&rng, 20);

                if (what < 9 && next[zone] < 32) {
                    uint64_t n = 1 + rng_below(&rng, 32 - next[zone]);

                    if (!next[zone]) {
                        tags[zone] = i + 1;
                    }
                    n = n > 6 ? 6 : n;
                    begin(&bed, RSD_WRITE, lba(&bed, zone, next[zone]), n,
                          tags[zone]);
                    next[zone] += n;
                } else if (what < 17 && next[zone]) {
                    uint64_t from = rng_below(&rng, next[zone]);

                    expect_pages(&bed, lba(&bed, zone, from),
                                 1 + rng_below(&rng, next[zone] - from),
                                 tags[zone]);
                } else if (what == 17) {
                    begin(&bed, RSD_ZONE_RESET, lba(&bed, zone, 0), 0, 0);
                    next[zone] = 0;
                } else {
                    bed_pass(&bed, rng_below(&rng, 1000000));
                }
            }
            bed_drain(&bed);
            end[again] = bed.now;
            bed_close(&bed);
        }
        CHECK_EQ(end[0], end[1]);
    }
}
