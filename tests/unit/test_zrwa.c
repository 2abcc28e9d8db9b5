/*
 * Random write areas of zones: times computed by hand, contents after anything,
 * power cuts.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <unistd.h>

#include "harness.h"
#include "floors.h"
#include "rsd-power.h"

enum { CMD = 10, XFER = 100, READ = 1000, PROG = 20000, ERASE = 30000 };
enum { PROGRAM = CMD + XFER + PROG };

/* One die, pages of 4 KiB; two areas of 8 pages, committed by 2; 4 besides */
static RsdConfig area_config(void)
{
    RsdConfig cfg = small_config();

    cfg.channels = cfg.ways = 1;
    cfg.spare_blocks = 2;
    cfg.pages = 24;
    cfg.t_cmd_ns = CMD;
    cfg.t_xfer_ns = XFER;
    cfg.t_read_ns = READ;
    cfg.t_prog_ns = PROG;
    cfg.t_erase_ns = ERASE;
    cfg.zrwa = 2;
    cfg.zrwa_size = 8 * 4096;
    cfg.zrwa_flush = 2 * 4096;
    cfg.write_buffer = (2 * 8 + 4) * 4096;
    cfg.ack = RSD_ACK_BUFFER;
    return cfg;
}

static void open_area(Bed *bed, uint32_t zone)
{
    CHECK_EQ(run(bed, RSD_ZRWA_OPEN, lba(bed, zone, 0), 0, 0), 0);
}

static RsdZone zone_of(const Bed *bed, uint32_t zone)
{
    RsdZone info;

    rsd_zone_get(bed->drive, zone, &info);
    return info;
}

TEST(an_area_takes_writes_anywhere_and_again)
{
    RsdConfig cfg = area_config();
    RsdCounters c;
    Bed bed = bed_open(&cfg, temp_path("area.rsd"));

    open_area(&bed, 0);
    CHECK(zone_of(&bed, 0).zrwa && !zone_of(&bed, 0).zrwa_pages);
    /* the last one, the first two, some again: no program, no time */
    CHECK_EQ(run(&bed, RSD_WRITE, 7, 1, 1), 0);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 2, 1), 0);
    CHECK_EQ(run(&bed, RSD_WRITE, 1, 3, 2), 0);
    CHECK_EQ(run(&bed, RSD_WRITE, 1, 2, 3), 0);
    bed_drain(&bed);
    c = counters(&bed);
    CHECK_EQ(c.nand_programs, 0);
    CHECK_EQ(c.host_write_pages, 8);
    CHECK_EQ(c.zrwa_overwrites, 3);
    CHECK_EQ(zone_of(&bed, 0).next, 0);
    CHECK(zone_of(&bed, 0).zrwa_pages);
    expect_pages(&bed, 0, 1, 1);
    expect_pages(&bed, 1, 2, 3);
    expect_pages(&bed, 3, 1, 2);
    expect_pages(&bed, 4, 3, 0);
    expect_pages(&bed, 7, 1, 1);
    expect_pages(&bed, 8, 4, 0);
    CHECK_EQ(counters(&bed).buffer_reads, 5);
    CHECK_EQ(counters(&bed).unwritten_reads, 7);
    CHECK_EQ(run(&bed, RSD_READ, 0, 8, 0), 0);
    /* it all survives, and the zone still has its area */
    bed_reopen(&bed);
    CHECK(zone_of(&bed, 0).zrwa && zone_of(&bed, 0).zrwa_pages);
    CHECK_EQ(zone_of(&bed, 0).next, 0);
    CHECK_EQ(written(&bed, 0), 0);
    expect_pages(&bed, 1, 2, 3);
    expect_pages(&bed, 3, 1, 2);
    expect_pages(&bed, 4, 3, 0);
    expect_pages(&bed, 7, 1, 1);
    CHECK_EQ(run(&bed, RSD_WRITE, 5, 1, 4), 0);
    expect_pages(&bed, 5, 1, 4);
    bed_close(&bed);
}

TEST(a_commit_programs_in_order_with_filler)
{
    RsdConfig cfg = area_config();
    RsdCounters c;
    Bed bed;

    cfg.ack = RSD_ACK_PROGRAM;
    bed = bed_open(&cfg, temp_path("area.rsd"));
    open_area(&bed, 0);
    /* what is in the area is safe: nothing to wait for */
    CHECK_EQ(run(&bed, RSD_WRITE, 1, 3, 1), 0);
    CHECK_EQ(run(&bed, RSD_ZRWA_COMMIT, 0, 4, 0), 4 * PROGRAM);
    c = counters(&bed);
    CHECK_EQ(c.prog_host, 3);
    CHECK_EQ(c.prog_pad, 1);
    CHECK_EQ(c.zrwa_explicit, 4);
    CHECK_EQ(c.zrwa_implicit, 0);
    CHECK_EQ(zone_of(&bed, 0).next, 4);
    expect_pages(&bed, 0, 1, 0);
    expect_pages(&bed, 1, 3, 1);
    /* from 4 to 11 it takes without a commit; up to 12 costs two pages */
    CHECK_EQ(run(&bed, RSD_WRITE, 11, 1, 2), 0);
    CHECK_EQ(counters(&bed).zrwa_implicit, 0);
    CHECK_EQ(run(&bed, RSD_WRITE, 12, 1, 2), 2 * PROGRAM);
    CHECK_EQ(counters(&bed).zrwa_implicit, 2);
    CHECK_EQ(counters(&bed).prog_pad, 3);
    CHECK_EQ(zone_of(&bed, 0).next, 6);
    expect_pages(&bed, 4, 7, 0);
    expect_pages(&bed, 11, 2, 2);
    /* one that commits pages of its own: 6 to 21 are allowed */
    CHECK_EQ(refused(&bed, RSD_WRITE, 6, 17), RSD_E_ORDER);
    CHECK_EQ(run(&bed, RSD_WRITE, 6, 16, 3), 8 * PROGRAM);
    CHECK_EQ(zone_of(&bed, 0).next, 14);
    expect_pages(&bed, 6, 16, 3);
    bed_reopen(&bed);
    CHECK_EQ(zone_of(&bed, 0).next, 14);
    CHECK_EQ(written(&bed, 0), 14);
    expect_pages(&bed, 0, 1, 0);
    expect_pages(&bed, 1, 3, 1);
    expect_pages(&bed, 6, 16, 3);
    bed_close(&bed);
}

TEST(what_an_area_refuses)
{
    RsdConfig cfg = area_config();
    RsdCmd *cmd;
    Bed bed = bed_open(&cfg, NULL);

    CHECK_EQ(refused(&bed, RSD_ZRWA_COMMIT, 0, 2), RSD_E_ORDER);
    /* the write pointer is not where an area may begin */
    run(&bed, RSD_WRITE, lba(&bed, 2, 0), 1, 0);
    CHECK_EQ(refused(&bed, RSD_ZRWA_OPEN, lba(&bed, 2, 0), 0), RSD_E_NOZRWA);
    run(&bed, RSD_WRITE, lba(&bed, 2, 1), 1, 0);
    open_area(&bed, 2);
    open_area(&bed, 2);
    open_area(&bed, 0);
    CHECK_EQ(refused(&bed, RSD_ZRWA_OPEN, lba(&bed, 1, 0), 0), RSD_E_NOZRWA);
    CHECK_EQ(refused(&bed, RSD_WRITE, lba(&bed, 2, 1), 1), RSD_E_ORDER);
    CHECK_EQ(refused(&bed, RSD_WRITE, lba(&bed, 2, 2), 17), RSD_E_ORDER);
    run(&bed, RSD_WRITE, lba(&bed, 2, 2), 16, 0);
    CHECK_EQ(zone_of(&bed, 2).next, 10);
    CHECK_EQ(refused(&bed, RSD_ZRWA_COMMIT, lba(&bed, 2, 9), 2), RSD_E_ORDER);
    CHECK_EQ(refused(&bed, RSD_ZRWA_COMMIT, lba(&bed, 2, 12), 2), RSD_E_ORDER);
    CHECK_EQ(refused(&bed, RSD_ZRWA_COMMIT, lba(&bed, 2, 10), 1), RSD_E_ORDER);
    CHECK_EQ(refused(&bed, RSD_ZRWA_COMMIT, lba(&bed, 2, 10), 10),
             RSD_E_ORDER);
    CHECK_EQ(refused(&bed, RSD_ZRWA_COMMIT, lba(&bed, 2, 10), 0), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_WRITE, lba(&bed, 2, 20), 5), RSD_E_RANGE);
    cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, lba(&bed, 2, 10), 1);
    cmd->append = true;
    CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_E_ORDER);
    rsd_cmd_free(bed.drive, cmd);
    /* reset, finish and the end of the zone give an area back */
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    CHECK(!zone_of(&bed, 0).zrwa);
    open_area(&bed, 1);
    run(&bed, RSD_ZONE_FINISH, lba(&bed, 1, 0), 0, 0);
    CHECK(!zone_of(&bed, 1).zrwa);
    open_area(&bed, 0);
    run(&bed, RSD_ZRWA_COMMIT, lba(&bed, 2, 10), 8, 0);
    CHECK(zone_of(&bed, 2).zrwa);
    run(&bed, RSD_ZRWA_COMMIT, lba(&bed, 2, 18), 6, 0);
    CHECK(!zone_of(&bed, 2).zrwa);
    CHECK_EQ(refused(&bed, RSD_ZRWA_OPEN, lba(&bed, 2, 0), 0), RSD_E_NOZRWA);
    CHECK_EQ(refused(&bed, RSD_WRITE, lba(&bed, 2, 23), 1), RSD_E_ORDER);
    open_area(&bed, 3);
    bed_close(&bed);
}

/* Four pages of room for what is committed, one die */
TEST(commits_wait_for_room)
{
    RsdConfig cfg = area_config();
    RsdCmd *first, *second, *third;
    Bed bed = bed_open(&cfg, temp_path("area.rsd"));

    open_area(&bed, 0);
    run(&bed, RSD_WRITE, 0, 8, 1);
    first = begin(&bed, RSD_ZRWA_COMMIT, 0, 8, 0);
    /* behind it: pages 8 and 9 of the zone, which need no room, and again */
    second = begin(&bed, RSD_WRITE, 8, 2, 2);
    third = begin(&bed, RSD_WRITE, 8, 1, 3);
    CHECK_EQ(zone_of(&bed, 0).next, 8);
    /* all of it can be read at once */
    CHECK_EQ(run(&bed, RSD_READ, 0, 10, 0), 0);
    expect_pages(&bed, 4, 4, 1);
    expect_pages(&bed, 8, 1, 3);
    expect_pages(&bed, 9, 1, 2);
    CHECK_EQ(await(&bed, first), 4 * PROGRAM);
    CHECK_EQ(await(&bed, second), 4 * PROGRAM);
    CHECK_EQ(await(&bed, third), 4 * PROGRAM);
    rsd_cmd_free(bed.drive, first);
    rsd_cmd_free(bed.drive, second);
    rsd_cmd_free(bed.drive, third);
    CHECK_EQ(counters(&bed).zrwa_overwrites, 1);
    expect_pages(&bed, 0, 8, 1);
    /* power is cut while a commit has half the room it needs */
    run(&bed, RSD_WRITE, 8, 8, 4);
    bed_drain(&bed);
    begin(&bed, RSD_ZRWA_COMMIT, 8, 8, 0);
    bed_pass(&bed, PROGRAM + 1);
    bed_reopen(&bed);
    /* 5 pages were taken: the sixth follows */
    CHECK_EQ(zone_of(&bed, 0).next, 14);
    CHECK_EQ(written(&bed, 0), 14);
    expect_pages(&bed, 0, 8, 1);
    expect_pages(&bed, 8, 8, 4);
    run(&bed, RSD_WRITE, 15, 1, 5);
    run(&bed, RSD_ZRWA_COMMIT, 14, 8, 0);
    bed_drain(&bed);
    expect_pages(&bed, 8, 7, 4);
    expect_pages(&bed, 15, 1, 5);
    expect_pages(&bed, 16, 8, 0);
    bed_close(&bed);
}

TEST(finish_commits_what_was_written)
{
    for (int pad = 0; pad < 2; pad++) {
        RsdConfig cfg = area_config();
        RsdCounters c;
        Bed bed;

        cfg.finish = pad;
        cfg.planes = 2;                 /* units of two */
        bed = bed_open(&cfg, temp_path("area.rsd"));
        open_area(&bed, 0);
        run(&bed, RSD_WRITE, 0, 3, 1);
        run(&bed, RSD_WRITE, 4, 1, 1);
        run(&bed, RSD_ZONE_FINISH, 0, 0, 0);
        c = counters(&bed);
        CHECK_EQ(c.prog_host, 4);
        CHECK_EQ(c.prog_pad, pad ? 44 : 2);
        CHECK_EQ(c.zrwa_explicit, pad ? 48 : 6);
        for (int i = 0; i < 2; i++) {
            expect_pages(&bed, 0, 3, 1);
            expect_pages(&bed, 3, 1, 0);
            expect_pages(&bed, 4, 1, 1);
            expect_pages(&bed, 5, 20, 0);
            bed_reopen(&bed);
            CHECK_EQ(written(&bed, 0), pad ? 48 : 6);
            CHECK(!zone_of(&bed, 0).zrwa);
        }
        /* an area in which nothing is: nothing but the padding */
        open_area(&bed, 1);
        run(&bed, RSD_ZONE_FINISH, lba(&bed, 1, 0), 0, 0);
        CHECK_EQ(counters(&bed).prog_pad, pad ? 92 : 2);
        bed_close(&bed);
    }
}

TEST(reset_and_format_forget_an_area)
{
    for (int format = 0; format < 2; format++) {
        RsdConfig cfg = area_config();
        Bed bed = bed_open(&cfg, temp_path("area.rsd"));

        open_area(&bed, 0);
        run(&bed, RSD_WRITE, 0, 4, 1);
        run(&bed, RSD_ZRWA_COMMIT, 0, 2, 0);
        bed_drain(&bed);
        if (format) {
            CHECK_EQ(rsd_format(bed.drive, 0, 16, bed.now), RSD_OK);
        } else {
            run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        }
        expect_pages(&bed, 0, 8, 0);
        /* written as a zone without an area, and again with one */
        run(&bed, RSD_WRITE, 0, 2, 2);
        bed_reopen(&bed);
        CHECK(!zone_of(&bed, 0).zrwa);
        CHECK_EQ(written(&bed, 0), 2);
        expect_pages(&bed, 0, 2, 2);
        expect_pages(&bed, 2, 6, 0);
        open_area(&bed, 0);
        expect_pages(&bed, 2, 6, 0);
        run(&bed, RSD_WRITE, 3, 1, 3);
        expect_pages(&bed, 2, 1, 0);
        bed_close(&bed);
    }
}

/* A reset while writes and commits of the zone wait for room */
TEST(reset_while_an_area_waits)
{
    RsdConfig cfg = area_config();
    RsdCmd *cmds[5];
    Bed bed = bed_open(&cfg, temp_path("area.rsd"));

    open_area(&bed, 0);
    open_area(&bed, 1);
    run(&bed, RSD_WRITE, 0, 8, 1);
    cmds[0] = begin(&bed, RSD_ZRWA_COMMIT, 0, 8, 0);
    cmds[1] = begin(&bed, RSD_WRITE, 12, 8, 2);
    cmds[2] = begin(&bed, RSD_WRITE, lba(&bed, 1, 0), 4, 3);
    cmds[3] = begin(&bed, RSD_ZONE_FINISH, 0, 0, 0);
    cmds[4] = begin(&bed, RSD_ZONE_RESET, 0, 0, 0);
    CHECK_EQ(await(&bed, cmds[0]), 0);
    /* its data is nowhere */
    CHECK_EQ(finish(&bed, cmds[1]), RSD_E_ORDER);
    CHECK_EQ(await(&bed, cmds[2]), 0);
    /* these two wait for the four programs that were queued */
    CHECK_EQ(await(&bed, cmds[3]), 4 * PROGRAM);
    CHECK_EQ(await(&bed, cmds[4]), 4 * PROGRAM);
    for (int i = 0; i < 5; i++) {
        rsd_cmd_free(bed.drive, cmds[i]);
    }
    expect_pages(&bed, 0, 24, 0);
    expect_pages(&bed, lba(&bed, 1, 0), 4, 3);
    open_area(&bed, 0);
    run(&bed, RSD_WRITE, 2, 1, 4);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 2, 0);
    expect_pages(&bed, 2, 1, 4);
    expect_pages(&bed, 3, 21, 0);
    expect_pages(&bed, lba(&bed, 1, 0), 4, 3);
    bed_close(&bed);
}

/* A finish that waits for room: its area is not yet free, whatever happens. */
TEST(an_area_is_in_use_until_all_of_it_is_taken)
{
    RsdConfig cfg = area_config();
    RsdCmd *cmd;
    Bed bed;

    cfg.zrwa = 1;
    cfg.write_buffer = (8 + 4) * 4096;
    bed = bed_open(&cfg, temp_path("area.rsd"));
    open_area(&bed, 0);
    run(&bed, RSD_WRITE, 0, 8, 1);
    cmd = begin(&bed, RSD_ZONE_FINISH, 0, 0, 0);
    CHECK_EQ(refused(&bed, RSD_WRITE, 8, 1), RSD_E_ORDER);
    CHECK_EQ(refused(&bed, RSD_ZRWA_OPEN, lba(&bed, 1, 0), 0), RSD_E_NOZRWA);
    bed_pass(&bed, 1);
    rsd_cmd_free(bed.drive, cmd);
    bed_reopen(&bed);
    CHECK(zone_of(&bed, 0).zrwa);
    expect_pages(&bed, 0, 8, 1);
    CHECK_EQ(refused(&bed, RSD_ZRWA_OPEN, lba(&bed, 1, 0), 0), RSD_E_NOZRWA);
    run(&bed, RSD_ZONE_FINISH, 0, 0, 0);
    open_area(&bed, 1);
    expect_pages(&bed, 0, 8, 1);
    bed_close(&bed);
}

TEST(without_protection_a_flush_saves_an_area_as_it_is)
{
    RsdConfig cfg = area_config();
    RsdCmd *cmd;
    Bed bed;

    cfg.plp = RSD_OFF;
    bed = bed_open(&cfg, temp_path("area.rsd"));
    open_area(&bed, 0);
    run(&bed, RSD_WRITE, 0, 4, 1);
    bed_reopen(&bed);
    /* lost, and with it the area: the zone is empty */
    CHECK(!zone_of(&bed, 0).zrwa);
    expect_pages(&bed, 0, 4, 0);
    open_area(&bed, 0);
    run(&bed, RSD_WRITE, 0, 4, 1);
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 0);
    CHECK_EQ(counters(&bed).nand_programs, 0);
    run(&bed, RSD_WRITE, 2, 4, 2);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 4, 1);
    expect_pages(&bed, 4, 4, 0);
    /* what was safe in the area is safe when it is committed */
    run(&bed, RSD_ZRWA_COMMIT, 0, 4, 0);
    bed_reopen(&bed);
    CHECK_EQ(written(&bed, 0), 4);
    expect_pages(&bed, 0, 4, 1);
    /* a write through: safe when it is done, and what is before it, too */
    run(&bed, RSD_WRITE, 4, 8, 3);
    run(&bed, RSD_ZRWA_COMMIT, 4, 4, 0);
    cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, lba(&bed, 0, 15), 1);
    fill_page(cmd->data, cmd->oob, 16, lba(&bed, 0, 15), 4);
    cmd->fua = true;
    CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
    CHECK_EQ(await(&bed, cmd), 4 * PROGRAM);
    rsd_cmd_free(bed.drive, cmd);
    bed_reopen(&bed);
    CHECK_EQ(zone_of(&bed, 0).next, 8);
    expect_pages(&bed, 0, 4, 1);
    expect_pages(&bed, 4, 8, 3);
    expect_pages(&bed, 12, 3, 0);
    expect_pages(&bed, 15, 1, 4);
    bed_close(&bed);
}

/*
 * Random work, with power cuts, on all kinds of buffers: every page of the zone
 * has what was written to it last, or, after a cut, what the drive promised.
 */
enum { ZONES = 3, MOST = 512, STEPS = 300 };

typedef struct Shadow {
    bool area;
    uint64_t next;
    /*
     * Of each page: what is read, what was promised, and whether it held the
     * write of that tag since then: a cut may take it back so far.
     */
    uint64_t tag[MOST], safe[MOST];
    bool held[MOST][STEPS];
} Shadow;

/* All that the page holds is promised. */
static void promise(Shadow *z, uint64_t page)
{
    z->safe[page] = z->tag[page];
    memset(z->held[page], 0, sizeof(z->held[page]));
    z->held[page][z->tag[page]] = true;
}

static RsdConfig random_config(Rng *rng)
{
    static const struct {
        uint64_t planes, page_size;
        RsdCell cell;
        bool one_shot;
    } kinds[] = {
        { 1, 4096, RSD_CELL_SLC, false }, { 2, 4096, RSD_CELL_MLC, false },
        { 1, 16384, RSD_CELL_TLC, true }, { 2, 8192, RSD_CELL_TLC, true },
        { 3, 8192, RSD_CELL_TLC, false },
    };
    static const uint64_t flushes[] = { 1, 2, 3, 4, 6 };
    uint64_t k = rng_below(rng, 5), flush;
    RsdConfig cfg = area_config();

    cfg.planes = kinds[k].planes;
    cfg.page_size = kinds[k].page_size;
    cfg.cell = kinds[k].cell;
    cfg.one_shot = kinds[k].one_shot;
    cfg.pages = 12;
    cfg.channels = 1 + rng_below(rng, 2);
    flush = flushes[rng_below(rng, 5)];
    cfg.zrwa_flush = flush * 4096;
    cfg.zrwa_size = cfg.zrwa_flush * (1 + rng_below(rng, 12 / flush));
    cfg.write_buffer = cfg.zrwa * cfg.zrwa_size +
                       (cfg.channels * rsd_unit_slots(&cfg) +
                        rng_below(rng, 8)) * 4096;
    cfg.ack = rng_below(rng, 2);
    cfg.plp = rng_below(rng, 2);
    cfg.finish = rng_below(rng, 2);
    cfg.reset = rng_below(rng, 2);
    cfg.t_fw_write_ns = rng_below(rng, 2) * 700;
    return cfg;
}

static void check_zone(Bed *bed, const Shadow *z, uint32_t zone, uint64_t seed)
{
    uint64_t cap = bed->geo.zone_capacity;
    RsdCmd *cmd = begin(bed, RSD_READ, lba(bed, zone, 0), cap, 0);

    await(bed, cmd);
    for (uint64_t p = 0; p < cap; p++) {
        if (!page_matches(cmd->data + p * PAGE, cmd->oob + p * 16, 16,
                          lba(bed, zone, p), z->tag[p])) {
            FAIL("seed %" PRIu64 ": zone %u, page %" PRIu64 " is not of tag %"
                 PRIu64, seed, zone, p, z->tag[p]);
        }
    }
    rsd_cmd_free(bed->drive, cmd);
}

/* After a cut: each page is one that may be there; the shadow learns which. */
static void learn_zone(Bed *bed, Shadow *z, uint32_t zone, uint64_t seed)
{
    uint64_t cap = bed->geo.zone_capacity;
    RsdZone info = zone_of(bed, zone);
    RsdCmd *cmd = begin(bed, RSD_READ, lba(bed, zone, 0), cap, 0);

    await(bed, cmd);
    for (uint64_t p = 0; p < cap; p++) {
        uint64_t tag = 0;

        while (tag < STEPS &&
               (!(z->held[p][tag] || (!tag && !z->safe[p])) ||
                !page_matches(cmd->data + p * PAGE, cmd->oob + p * 16, 16,
                              lba(bed, zone, p), tag))) {
            tag++;
        }
        if (tag == STEPS) {
            FAIL("seed %" PRIu64 ": zone %u, page %" PRIu64 " is neither of "
                 "tag %" PRIu64 " nor what it was since %" PRIu64, seed, zone,
                 p, z->tag[p], z->safe[p]);
        }
        z->tag[p] = tag;
        promise(z, p);
    }
    rsd_cmd_free(bed->drive, cmd);
    CHECK(!info.zrwa || info.next % (bed->cfg.zrwa_flush / 4096) == 0);
    if (bed->cfg.plp) {
        CHECK_EQ(info.next, z->next);
    }
    z->next = info.next;
    z->area = info.zrwa;
}

static void random_write(Bed *bed, Rng *rng, Shadow *z, uint32_t zone,
                         uint64_t tag)
{
    uint64_t size = bed->cfg.zrwa_size / 4096;
    uint64_t flush = bed->cfg.zrwa_flush / 4096;
    uint64_t end = z->next + 2 * size, from, nlb;
    bool through, fua = rng_below(rng, 3) == 0;
    RsdCmd *cmd;

    end = end < bed->geo.zone_capacity ? end : bed->geo.zone_capacity;
    from = z->next + rng_below(rng, end - z->next);
    nlb = 1 + rng_below(rng, end - from);
    cmd = rsd_cmd_new(bed->drive, 0, RSD_WRITE, lba(bed, zone, from), nlb);
    cmd->fua = fua;
    through = fua || bed->cfg.plp || bed->cfg.ack == RSD_ACK_PROGRAM;
    for (uint64_t p = 0; p < nlb; p++) {
        fill_page(cmd->data + p * PAGE, cmd->oob + p * 16, 16,
                  lba(bed, zone, from + p), tag);
    }
    CHECK_EQ(rsd_submit(bed->drive, cmd, bed->now), RSD_OK);
    await(bed, cmd);
    CHECK_EQ(cmd->status, RSD_OK);
    rsd_cmd_free(bed->drive, cmd);
    for (uint64_t p = from; p < from + nlb; p++) {
        z->tag[p] = tag;
        z->held[p][tag] = true;
        if (through) {
            promise(z, p);
        }
    }
    if (from + nlb > z->next + size) {
        uint64_t over = from + nlb - z->next - size;

        z->next += (over + flush - 1) / flush * flush;
    }
}

TEST(random_work_on_areas_and_power_cuts)
{
    for (uint64_t seed = 0; seed < 80; seed++) {
        Rng rng = { seed };
        RsdConfig cfg = random_config(&rng);
        Bed bed = bed_open(&cfg, temp_path("random.rsd"));
        uint64_t cap = bed.geo.zone_capacity, flush = cfg.zrwa_flush / 4096;
        static Shadow zones[ZONES];

        CHECK(cap <= MOST);
        memset(zones, 0, sizeof(zones));
        for (uint64_t i = 1; i < STEPS; i++) {
            uint32_t zone = rng_below(&rng, ZONES);
            Shadow *z = &zones[zone];
            uint64_t what = rng_below(&rng, 20);

            if (z->next == cap || (what == 0 && z->next) ||
                (!z->area && z->next % flush)) {
                run(&bed, RSD_ZONE_RESET, lba(&bed, zone, 0), 0, 0);
                *z = (Shadow){ .area = false };
            } else if (!z->area) {
                bool free = zones[0].area + zones[1].area + zones[2].area < 2;

                if (free) {
                    run(&bed, RSD_ZRWA_OPEN, lba(&bed, zone, 0), 0, 0);
                } else if (!cfg.t_fw_write_ns) {
                    CHECK_EQ(refused(&bed, RSD_ZRWA_OPEN, lba(&bed, zone, 0),
                                     0), RSD_E_NOZRWA);
                }
                z->area = free;
            } else if (what < 12) {
                random_write(&bed, &rng, z, zone, i);
            } else if (what < 14) {
                uint64_t most = cfg.zrwa_size < (cap - z->next) * 4096
                                    ? cfg.zrwa_size / 4096 : cap - z->next;
                uint64_t n = flush * (1 + rng_below(&rng, most / flush));

                run(&bed, RSD_ZRWA_COMMIT, lba(&bed, zone, z->next), n, 0);
                z->next += n;
                z->area = z->next < cap;
            } else if (what == 14) {
                run(&bed, RSD_ZONE_FINISH, lba(&bed, zone, 0), 0, 0);
                check_zone(&bed, z, zone, seed);
                run(&bed, RSD_ZONE_RESET, lba(&bed, zone, 0), 0, 0);
                *z = (Shadow){ .area = false };
            } else if (what == 15) {
                run(&bed, RSD_FLUSH, 0, 0, 0);
                for (uint32_t j = 0; j < ZONES; j++) {
                    for (uint64_t p = 0; p < cap; p++) {
                        promise(&zones[j], p);
                    }
                }
            } else if (what == 16) {
                bed_reopen(&bed);
                for (uint32_t j = 0; j < ZONES; j++) {
                    learn_zone(&bed, &zones[j], j, seed);
                }
            } else {
                check_zone(&bed, z, zone, seed);
                bed_pass(&bed, rng_below(&rng, 100000));
            }
        }
        bed_drain(&bed);
        CHECK_EQ(counters(&bed).media_errors, 0);
        bed_close(&bed);
    }
}

/*
 * Rewinding (power.h): just before the next operation, an area holds what was
 * written to it by then, or what the command that brings the operation writes.
 */
TEST(areas_are_rewound)
{
    enum { STEPS_BACK = 60, PAGES = 24 };
    static uint64_t tags[STEPS_BACK + 2][PAGES], ops[STEPS_BACK + 1];
    static const RsdOutcomes nothing = { .list = "" };
    const char *log = temp_path("area.log");
    RsdConfig cfg = area_config();
    char err[RSD_ERR_LEN];
    RsdOplogInfo info;
    Rng rng = { 7 };
    Bed bed = bed_open(&cfg, temp_path("area.rsd"));

    rsd_close(bed.drive);
    unlink(log);
    bed.drive = rsd_open_logged(bed.path, log, &cfg, err);
    CHECK(bed.drive);
    for (int i = 1; i <= STEPS_BACK; i++) {
        uint64_t next = zone_of(&bed, 0).next, from, end = next + 16;

        memcpy(tags[i], tags[i - 1], sizeof(tags[i]));
        if (!zone_of(&bed, 0).zrwa) {
            if (next) {
                run(&bed, RSD_ZONE_RESET, 0, 0, 0);
                memset(tags[i], 0, sizeof(tags[i]));
            }
            open_area(&bed, 0);
        } else if (rng_below(&rng, 3)) {
            end = end < PAGES ? end : PAGES;
            from = next + rng_below(&rng, end - next);
            end = from + 1 + rng_below(&rng, end - from);
            run(&bed, RSD_WRITE, from, end - from, i);
            for (uint64_t p = from; p < end; p++) {
                tags[i][p] = i;
            }
        } else {
            run(&bed, RSD_ZRWA_COMMIT, next, 2, 0);
        }
        bed_drain(&bed);
        rsd_oplog_info(bed.drive, &info);
        ops[i] = info.ops;
    }
    CHECK(ops[STEPS_BACK] > 40);
    memcpy(tags[STEPS_BACK + 1], tags[STEPS_BACK], sizeof(tags[0]));
    for (int i = STEPS_BACK; i >= 1; i--) {
        RsdCmd *cmd;

        if (i < STEPS_BACK && ops[i] == ops[i + 1]) {
            continue;           /* more was written before the next operation */
        }
        if (!rsd_rewind(bed.drive, ops[i], &nothing, err)) {
            FAIL("to %" PRIu64 ": %s", ops[i], err);
        }
        cmd = begin(&bed, RSD_READ, 0, PAGES, 0);
        await(&bed, cmd);
        for (uint64_t p = 0; p < PAGES; p++) {
            if (!page_matches(cmd->data + p * PAGE, cmd->oob + p * 16, 16, p,
                              tags[i][p]) &&
                !page_matches(cmd->data + p * PAGE, cmd->oob + p * 16, 16, p,
                              tags[i + 1][p])) {
                FAIL("step %d: page %" PRIu64 " is not of tag %" PRIu64, i, p,
                     tags[i][p]);
            }
        }
        rsd_cmd_free(bed.drive, cmd);
    }
    bed_close(&bed);
    unlink(log);
    free((char *)log);
}
