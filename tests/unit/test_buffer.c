/*
 * The write buffer, and units of several pages: times computed by hand,
 * contents after anything.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "harness.h"
#include "floors.h"

enum { CMD = 10, XFER = 100, READ = 1000, PROG = 20000, ERASE = 30000 };

/* Two dies on two channels, 4 blocks and 2 spares */
static RsdConfig unit_config(uint64_t planes, uint64_t page_size, RsdCell cell,
                             bool one_shot)
{
    RsdConfig cfg = small_config();

    cfg.channels = 2;
    cfg.ways = 1;
    cfg.spare_blocks = 2;
    cfg.pages = 12;
    cfg.planes = planes;
    cfg.page_size = page_size;
    cfg.cell = cell;
    cfg.one_shot = one_shot;
    cfg.t_cmd_ns = CMD;
    cfg.t_xfer_ns = XFER;
    cfg.t_read_ns = READ;
    cfg.t_prog_ns = PROG;
    cfg.t_erase_ns = ERASE;
    return cfg;
}

TEST(a_unit_is_programmed_at_once)
{
    static const struct {
        uint64_t planes, page_size;
        RsdCell cell;
        bool one_shot;
        uint64_t unit, pages;   /* slots, NAND pages */
    } cases[] = {
        { 2, 4096, RSD_CELL_SLC, false, 2, 2 },
        { 1, 16384, RSD_CELL_SLC, false, 4, 1 },
        { 1, 4096, RSD_CELL_TLC, true, 3, 3 },
        { 2, 16384, RSD_CELL_TLC, true, 24, 6 },
        { 3, 8192, RSD_CELL_QLC, true, 24, 12 },
        { 2, 8192, RSD_CELL_MLC, false, 4, 2 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        RsdConfig cfg = unit_config(cases[i].planes, cases[i].page_size,
                                    cases[i].cell, cases[i].one_shot);
        uint64_t u = cases[i].unit;
        uint64_t program = cases[i].pages * CMD + u * XFER + PROG;
        RsdCounters c;
        Bed bed = bed_open(&cfg, temp_path("unit.rsd"));

        CHECK_EQ(bed.geo.zone_capacity,
                 2 * 12 * cases[i].planes * cases[i].page_size / 4096);
        /* both dies at once, then one after the other on each */
        CHECK_EQ(run(&bed, RSD_WRITE, 0, 2 * u, 1), program);
        CHECK_EQ(run(&bed, RSD_WRITE, 2 * u, 3 * u, 1), 2 * program);
        c = counters(&bed);
        CHECK_EQ(c.prog_host, 5 * u);
        CHECK_EQ(c.nand_programs, 5 * cases[i].pages);
        CHECK_EQ(c.bus_busy_ns, 5 * (program - PROG));
        expect_pages(&bed, 0, 5 * u, 1);
        bed_reopen(&bed);
        CHECK_EQ(written(&bed, 0), 5 * u);
        expect_pages(&bed, 0, 5 * u, 1);
        bed_close(&bed);
    }
}

/* 2 planes, pages of 8 KiB: rows of 4 slots; with TLC, units of 12 */
TEST(a_read_fetches_only_what_is_asked_for)
{
    RsdConfig cfg = unit_config(2, 8192, RSD_CELL_TLC, true);
    RsdCounters c;
    Bed bed;

    cfg.t_read_csb_ns = READ + 1;
    cfg.t_read_msb_ns = READ + 20;
    bed = bed_open(&cfg, temp_path("unit.rsd"));
    run(&bed, RSD_WRITE, 0, 24, 1);
    /* one slot, a page, a slot of each plane, a row */
    CHECK_EQ(run(&bed, RSD_READ, 3, 1, 0), CMD + READ + XFER);
    CHECK_EQ(run(&bed, RSD_READ, 2, 2, 0), CMD + READ + 2 * XFER);
    CHECK_EQ(run(&bed, RSD_READ, 1, 2, 0), 2 * CMD + READ + 2 * XFER);
    CHECK_EQ(run(&bed, RSD_READ, 0, 4, 0), 2 * CMD + READ + 4 * XFER);
    c = counters(&bed);
    CHECK_EQ(c.read_host, 9);
    CHECK_EQ(c.nand_reads, 1 + 1 + 2 + 2);
    /* rows 1 and 2 of the word line are CSB and MSB */
    CHECK_EQ(run(&bed, RSD_READ, 4, 1, 0), CMD + READ + 1 + XFER);
    CHECK_EQ(run(&bed, RSD_READ, 8, 1, 0), CMD + READ + 20 + XFER);
    /* from one row into the next: one after the other */
    CHECK_EQ(run(&bed, RSD_READ, 3, 2, 0), 2 * (CMD + READ + XFER) + 1);
    /* the other die's unit begins at page 12: side by side */
    CHECK_EQ(run(&bed, RSD_READ, 11, 2, 0), CMD + READ + 20 + XFER);
    bed_close(&bed);
}

/* 12 slots a unit; two units of each die, and half a unit */
TEST(a_begun_unit_waits_for_the_rest)
{
    for (int plp = 0; plp < 2; plp++) {
        RsdConfig cfg = unit_config(2, 8192, RSD_CELL_TLC, true);
        uint64_t program = 6 * CMD + 12 * XFER + PROG;
        RsdCounters c;
        Bed bed;

        cfg.plp = plp;
        bed = bed_open(&cfg, temp_path("unit.rsd"));
        /* a protected buffer: done at once, read from there */
        CHECK_EQ(run(&bed, RSD_WRITE, 0, 5, 1), 0);
        CHECK_EQ(run(&bed, RSD_READ, 0, 5, 0), 0);
        CHECK_EQ(counters(&bed).buffer_reads, 5);
        expect_pages(&bed, 0, 5, 1);
        CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
        CHECK_EQ(counters(&bed).prog_host, 0);
        CHECK_EQ(written(&bed, 0), 5);
        bed_reopen(&bed);
        CHECK_EQ(written(&bed, 0), 5);
        expect_pages(&bed, 0, 5, 1);
        /* this one closes the unit and begins another */
        CHECK_EQ(run(&bed, RSD_WRITE, 5, 10, 1), program);
        CHECK_EQ(counters(&bed).prog_host, 12);
        expect_pages(&bed, 0, 15, 1);
        bed_reopen(&bed);
        CHECK_EQ(written(&bed, 0), 15);
        expect_pages(&bed, 0, 15, 1);
        /* finish fills it up, and waits for that */
        CHECK_EQ(run(&bed, RSD_ZONE_FINISH, 0, 0, 0), program);
        c = counters(&bed);
        CHECK_EQ(c.prog_host, 15);
        CHECK_EQ(c.prog_pad, 9);
        CHECK_EQ(written(&bed, 0), 24);
        expect_pages(&bed, 0, 15, 1);
        expect_pages(&bed, 15, 9, 0);
        /* reset drops what is in the buffer, too */
        run(&bed, RSD_WRITE, lba(&bed, 1, 0), 5, 2);
        run(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0, 0);
        CHECK_EQ(run(&bed, RSD_READ, lba(&bed, 1, 0), 5, 0), 0);
        expect_pages(&bed, lba(&bed, 1, 0), 5, 0);
        bed_reopen(&bed);
        CHECK_EQ(written(&bed, 1), 0);
        expect_pages(&bed, lba(&bed, 1, 0), 5, 0);
        run(&bed, RSD_WRITE, lba(&bed, 1, 0), 24, 3);
        expect_pages(&bed, lba(&bed, 1, 0), 24, 3);
        CHECK_EQ(counters(&bed).prog_host, 15 + 24);
        bed_close(&bed);
    }
}

/* Pages of 4 KiB, a buffer of four */
TEST(completion_in_the_buffer)
{
    RsdConfig cfg = unit_config(1, 4096, RSD_CELL_SLC, false);
    uint64_t program = CMD + XFER + PROG;
    RsdCmd *cmd;
    Bed bed;

    cfg.channels = 1;
    cfg.write_buffer = 4 * 4096;
    cfg.ack = RSD_ACK_BUFFER;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 3, 1), 0);
    CHECK_EQ(run(&bed, RSD_WRITE, 3, 1, 1), 0);
    CHECK_EQ(run(&bed, RSD_READ, 0, 4, 0), 0);
    /* it is full: two more wait for the first two to be programmed */
    cmd = begin(&bed, RSD_WRITE, 4, 2, 1);
    /* a read of what waits is a hit, too */
    CHECK_EQ(run(&bed, RSD_READ, 0, 6, 0), 0);
    CHECK_EQ(await(&bed, cmd), 2 * program);
    rsd_cmd_free(bed.drive, cmd);
    /* programmed: from the array, behind the program that goes on */
    CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), 4 * program + CMD + READ + XFER);
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
    bed_close(&bed);
}

TEST(completion_at_program)
{
    RsdConfig cfg = unit_config(1, 4096, RSD_CELL_SLC, false);
    uint64_t program = CMD + XFER + PROG;
    RsdCmd *cmd;
    Bed bed;

    cfg.channels = 1;
    cfg.write_buffer = 4 * 4096;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 3, 1), 3 * program);
    /* larger than the buffer */
    CHECK_EQ(run(&bed, RSD_WRITE, 3, 6, 1), 6 * program);
    cmd = begin(&bed, RSD_WRITE, 9, 1, 1);
    CHECK_EQ(run(&bed, RSD_READ, 9, 1, 0), 0);
    CHECK_EQ(await(&bed, cmd), program);
    rsd_cmd_free(bed.drive, cmd);
    bed_close(&bed);
}

TEST(flush_and_fua_without_protection)
{
    RsdConfig cfg = unit_config(1, 4096, RSD_CELL_SLC, false);
    uint64_t program = CMD + XFER + PROG;
    RsdCmd *cmd, *flush;
    Bed bed;

    cfg.channels = 1;
    cfg.write_buffer = 8 * 4096;
    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    bed = bed_open(&cfg, temp_path("volatile.rsd"));
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 3, 1), 0);
    CHECK_EQ(written(&bed, 0), 0);
    flush = begin(&bed, RSD_FLUSH, 0, 0, 0);
    /* not for what comes behind it */
    CHECK_EQ(run(&bed, RSD_WRITE, 3, 2, 1), 0);
    CHECK_EQ(await(&bed, flush), 3 * program);
    CHECK_EQ(written(&bed, 0), 3);
    rsd_cmd_free(bed.drive, flush);
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 2 * program);
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
    /* FUA waits for its own pages, which are behind the others */
    run(&bed, RSD_WRITE, 5, 1, 1);
    cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 6, 1);
    fill_page(cmd->data, cmd->oob, 16, 6, 1);
    cmd->fua = true;
    CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
    CHECK_EQ(run(&bed, RSD_WRITE, 7, 1, 1), 0);
    CHECK_EQ(await(&bed, cmd), 2 * program);
    rsd_cmd_free(bed.drive, cmd);
    /* what was not flushed is lost, no more */
    bed_reopen(&bed);
    CHECK_EQ(written(&bed, 0), 7);
    expect_pages(&bed, 0, 7, 1);
    bed_close(&bed);
}

/* The part of a unit that was flushed survives; what came later does not. */
TEST(a_flushed_part_of_a_unit_is_safe)
{
    for (int fua = 0; fua < 2; fua++) {
        RsdConfig cfg = unit_config(2, 8192, RSD_CELL_TLC, true);
        RsdCmd *cmd;
        Bed bed;

        cfg.ack = RSD_ACK_BUFFER;
        cfg.plp = RSD_OFF;
        bed = bed_open(&cfg, temp_path("volatile.rsd"));
        cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 0, 5);
        for (int i = 0; i < 5; i++) {
            fill_page(cmd->data + i * PAGE, cmd->oob + i * 16, 16, i, 1);
        }
        cmd->fua = fua;
        CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
        CHECK_EQ(await(&bed, cmd), 0);
        rsd_cmd_free(bed.drive, cmd);
        CHECK_EQ(written(&bed, 0), fua ? 5 : 0);
        CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
        CHECK_EQ(written(&bed, 0), 5);
        /* closes the unit, which is being programmed when power goes */
        run(&bed, RSD_WRITE, 5, 9, 1);
        bed_reopen(&bed);
        CHECK_EQ(written(&bed, 0), 5);
        expect_pages(&bed, 0, 5, 1);
        run(&bed, RSD_WRITE, 5, 7, 1);
        bed_drain(&bed);
        bed_reopen(&bed);
        CHECK_EQ(written(&bed, 0), 12);
        expect_pages(&bed, 0, 12, 1);
        bed_close(&bed);
    }
}

/*
 * Random work on all kinds of buffers, with power cuts: what was acknowledged
 * is there, as far as the drive promised it.
 */
typedef struct Shadow {
    uint64_t tag, length;       /* submitted */
    uint64_t safe;              /* pages promised */
} Shadow;

static RsdConfig random_config(Rng *rng)
{
    static const struct {
        uint64_t planes, page_size;
        RsdCell cell;
        bool one_shot;
    } kinds[] = {
        { 1, 4096, RSD_CELL_SLC, false }, { 2, 4096, RSD_CELL_MLC, false },
        { 1, 16384, RSD_CELL_TLC, true }, { 2, 8192, RSD_CELL_TLC, true },
        { 4, 4096, RSD_CELL_QLC, true }, { 3, 8192, RSD_CELL_TLC, false },
    };
    uint64_t k = rng_below(rng, 6);
    RsdConfig cfg = unit_config(kinds[k].planes, kinds[k].page_size,
                                kinds[k].cell, kinds[k].one_shot);

    cfg.ways = 1 + rng_below(rng, 2);
    cfg.write_buffer = rng_below(rng, 3) * 65536;
    cfg.ack = rng_below(rng, 2);
    cfg.plp = rng_below(rng, 2);
    cfg.cache = rng_below(rng, 2);
    cfg.suspend = rng_below(rng, 2);
    cfg.t_status_ns = rng_below(rng, 2) * 7;
    cfg.queue = rng_below(rng, 4) == 0;
    cfg.cache = cfg.cache && !cfg.queue;
    cfg.suspend = cfg.suspend && !cfg.queue;
    cfg.segment = rng_below(rng, 2);
    cfg.reset = rng_below(rng, 2);
    cfg.finish = rng_below(rng, 2);
    cfg.idle_erase_ns = rng_below(rng, 2) * 50000;
    cfg.wl_threshold = rng_below(rng, 2) * 2;
    return cfg;
}

TEST(random_work_and_power_cuts)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        Rng rng = { seed };
        RsdConfig cfg = random_config(&rng);
        Bed bed = bed_open(&cfg, temp_path("random.rsd"));
        uint64_t cap = bed.geo.zone_capacity;
        Shadow zones[8] = { { 0, 0, 0 } };
        uint32_t n = bed.geo.num_zones < 4 ? bed.geo.num_zones : 4;

        for (uint64_t i = 1; i < 400; i++) {
            Shadow *z = &zones[rng_below(&rng, n)];
            uint32_t zone = z - zones;
            uint64_t what = rng_below(&rng, 20);

            if (what < 9 && z->length < cap) {
                uint64_t nlb = 1 + rng_below(&rng, cap - z->length);
                bool fua = rng_below(&rng, 4) == 0;
                RsdCmd *cmd;

                nlb = nlb > 40 ? 40 : nlb;
                z->tag = z->length ? z->tag : i;
                cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE,
                                  lba(&bed, zone, z->length), nlb);
                for (uint64_t p = 0; p < nlb; p++) {
                    fill_page(cmd->data + p * PAGE, cmd->oob + p * 16, 16,
                              lba(&bed, zone, z->length + p), z->tag);
                }
                cmd->fua = fua;
                CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
                if (rng_below(&rng, 2)) {
                    await(&bed, cmd);
                    rsd_cmd_free(bed.drive, cmd);
                    /*
                     * What completes is safe, but in a volatile buffer. Pages
                     * before it may not be: no more can be told then.
                     */
                    if (z->safe == z->length &&
                        (cfg.plp || fua || cfg.ack == RSD_ACK_PROGRAM ||
                         !rsd_buffer_on(&cfg))) {
                        z->safe = z->length + nlb;
                    }
                }
                z->length += nlb;
            } else if (what < 14 && z->length) {
                uint64_t from = rng_below(&rng, z->length);

                expect_pages(&bed, lba(&bed, zone, from),
                             1 + rng_below(&rng, z->length - from), z->tag);
            } else if (what == 14) {
                run(&bed, RSD_ZONE_RESET, lba(&bed, zone, 0), 0, 0);
                *z = (Shadow){ 0, 0, 0 };
            } else if (what == 15 && z->length) {
                run(&bed, RSD_ZONE_FINISH, lba(&bed, zone, 0), 0, 0);
                expect_pages(&bed, lba(&bed, zone, 0), z->length, z->tag);
                run(&bed, RSD_ZONE_RESET, lba(&bed, zone, 0), 0, 0);
                *z = (Shadow){ 0, 0, 0 };
            } else if (what == 16) {
                bed_drain(&bed);
                run(&bed, RSD_FLUSH, 0, 0, 0);
                for (uint32_t j = 0; j < n; j++) {
                    zones[j].safe = zones[j].length;
                }
            } else if (what == 17) {
                RsdCmd *cmd;

                while ((cmd = rsd_advance(bed.drive, bed.now))) {
                    rsd_cmd_free(bed.drive, cmd);
                }
                bed_reopen(&bed);
                for (uint32_t j = 0; j < n; j++) {
                    uint64_t now = written(&bed, j);

                    if (now < zones[j].safe) {
                        FAIL("seed %" PRIu64 ": zone %u has %" PRIu64
                             " pages, %" PRIu64 " were promised", seed, j, now,
                             zones[j].safe);
                    }
                    if (zones[j].safe) {
                        expect_pages(&bed, lba(&bed, j, 0), zones[j].safe,
                                     zones[j].tag);
                    }
                    if (now != zones[j].safe) {
                        /* more may be there, or filler: begin anew */
                        run(&bed, RSD_ZONE_RESET, lba(&bed, j, 0), 0, 0);
                        zones[j] = (Shadow){ 0, 0, 0 };
                    }
                    zones[j].length = zones[j].safe;
                }
            } else {
                bed_pass(&bed, rng_below(&rng, 200000));
            }
        }
        bed_drain(&bed);
        CHECK_EQ(counters(&bed).media_errors, 0);
        bed_close(&bed);
    }
}

/*
 * A zone is reset while its units wait to be programmed, and its block goes to
 * another zone, which has less in it when power is cut: no more is there then.
 */
TEST(a_reset_zone_does_not_come_back)
{
    RsdConfig cfg = unit_config(1, 4096, RSD_CELL_SLC, false);
    Bed bed;

    cfg.channels = 1;
    cfg.blocks = 1;
    cfg.spare_blocks = 0;
    cfg.write_buffer = 8 * 4096;
    cfg.ack = RSD_ACK_BUFFER;
    bed = bed_open(&cfg, temp_path("again.rsd"));
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 5, 1), 0);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    begin(&bed, RSD_WRITE, 0, 2, 2);
    bed_reopen(&bed);
    CHECK_EQ(written(&bed, 0), 2);
    expect_pages(&bed, 0, 2, 2);
    bed_close(&bed);
    /* and it stays empty, if nothing was written to it again */
    bed = bed_open(&cfg, temp_path("again.rsd"));
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 5, 1), 0);
    begin(&bed, RSD_ZONE_RESET, 0, 0, 0);
    begin(&bed, RSD_WRITE, 0, 1, 2);
    bed_pass(&bed, 1);
    bed_reopen(&bed);
    CHECK_EQ(written(&bed, 0), 1);
    expect_pages(&bed, 0, 1, 2);
    bed_close(&bed);
}

/*
 * A zone is reset under a write that is longer than the buffer: what of it came
 * into a unit is programmed, the rest is nowhere, so it has failed.
 */
TEST(a_reset_refuses_writes_that_wait)
{
    for (int ack = 0; ack < 2; ack++) {
        RsdConfig cfg = unit_config(1, 4096, RSD_CELL_SLC, false);
        RsdCmd *write, *behind;
        Bed bed;

        cfg.channels = 1;
        cfg.write_buffer = 4 * 4096;
        cfg.ack = ack ? RSD_ACK_BUFFER : RSD_ACK_PROGRAM;
        bed = bed_open(&cfg, temp_path("waits.rsd"));
        write = begin(&bed, RSD_WRITE, 0, 10, 1);
        behind = begin(&bed, RSD_WRITE_ZEROES, 10, 1, 0);
        rsd_cmd_free(bed.drive, begin(&bed, RSD_ZONE_RESET, 0, 0, 0));
        /* at once, or when what of it is on its way is programmed */
        CHECK_EQ(finish(&bed, ack ? write : behind), RSD_E_ORDER);
        CHECK_EQ(finish(&bed, ack ? behind : write), RSD_E_ORDER);
        rsd_cmd_free(bed.drive, behind);
        rsd_cmd_free(bed.drive, write);
        bed_drain(&bed);
        CHECK_EQ(counters(&bed).prog_host, 4);
        CHECK_EQ(counters(&bed).host_write_pages, 0);
        CHECK_EQ(written(&bed, 0), 0);
        run(&bed, RSD_WRITE, 0, 3, 2);
        expect_pages(&bed, 0, 3, 2);
        expect_pages(&bed, 3, 9, 0);
        bed_close(&bed);
    }
}

/* What never left the buffer needs no erase. Units of 12; lanes of two dies */
TEST(a_reset_of_what_was_not_programmed)
{
    RsdConfig cfg = unit_config(2, 8192, RSD_CELL_TLC, true);
    Bed bed;

    cfg.idle_erase_ns = 1000;
    bed = bed_open(&cfg, temp_path("unit.rsd"));
    run(&bed, RSD_WRITE, 0, 5, 1);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).erase_host, 0);
    CHECK_EQ(counters(&bed).blocks_dirty, 0);
    bed_reopen(&bed);
    CHECK_EQ(written(&bed, 0), 0);
    /* of the other lane a unit is programmed, or still queued */
    for (int queued = 0; queued < 2; queued++) {
        RsdCmd *cmd = begin(&bed, RSD_WRITE, 0, 12 + 5, 2);

        if (!queued) {
            await(&bed, cmd);
        }
        rsd_cmd_free(bed.drive, cmd);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        bed_drain(&bed);
        CHECK_EQ(counters(&bed).erase_host, queued + 1);
        CHECK_EQ(counters(&bed).erase_idle, queued + 1);
    }
    bed_close(&bed);
}
