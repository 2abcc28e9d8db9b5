/*
 * Large trims: steps of 16 pages here, what they cost, what goes on between
 * them, what waits for them, and what a power cut leaves of them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "conventional.h"
#include "floors.h"
#include "rsd-power.h"

_Static_assert(RSD_TRIM_STEP == 16, "the Makefile says so");

/* The LBAs of a large trim, and how many steps that makes */
#define LARGE 100u
#define STEPS 7u
#define FW 1000u                /* t-fw-write */

static RsdConfig trim_config(RsdFtl ftl)
{
    RsdConfig cfg = small_config();

    cfg.ftl = ftl;
    cfg.blocks = 20;
    cfg.over_provision = 20;
    return cfg;
}

/* A drive of which all of that has content */
static Bed filled(const RsdConfig *cfg, const char *name)
{
    Bed bed = bed_open(cfg, temp_path(name));

    CHECK(bed.geo.lbas > 2 * LARGE);
    for (uint32_t at = 0; at < 2 * LARGE; at += 50) {
        run(&bed, RSD_WRITE, at, 50, 1);
    }
    bed_drain(&bed);
    return bed;
}

/* Until nothing is pending; what completes is the caller's. How many do */
static uint32_t take_all(Bed *bed, RsdCmd *done[])
{
    RsdCmd *cmd;
    uint32_t n = 0;

    while ((cmd = rsd_advance_to_done(bed->drive))) {
        CHECK_EQ(cmd->status, RSD_OK);
        bed->now = cmd->done_ns;
        done[n++] = cmd;
    }
    return n;
}

static uint32_t trimmed_pages(const Bed *bed)
{
    uint32_t n = 0;

    for (uint32_t at = 0; at < 2 * LARGE; at++) {
        n += rsd_media_trimmed(&bed->drive->media, at);
    }
    return n;
}

/* Its pages are dealt with 16 at a time, one step after the other. */
TEST(steps_are_bounded_and_take_time)
{
    static const uint64_t fw[] = { 0, FW };

    for (size_t i = 0; i < 2; i++) {
        RsdConfig cfg = trim_config(RSD_FTL_PAGE);
        uint64_t step = fw[i] ? fw[i] : 1, before, when;
        RsdCmd *cmd;
        Bed bed;

        cfg.t_fw_write_ns = fw[i];
        bed = filled(&cfg, i ? "fw.rsd" : "none.rsd");
        before = bed.now;
        cmd = begin(&bed, RSD_TRIM, 0, LARGE, 0);
        for (uint32_t n = fw[i] ? 0 : 1; n < STEPS; n++) {
            CHECK_EQ(trimmed_pages(&bed), n * 16);
            CHECK(rsd_next_event(bed.drive, &when));
            CHECK_EQ(when, before + (n + (fw[i] > 0)) * step);
            CHECK((rsd_advance(bed.drive, when) == cmd) == (n == STEPS - 1));
        }
        CHECK_EQ(trimmed_pages(&bed), LARGE);
        CHECK_EQ(cmd->status, RSD_OK);
        CHECK_EQ(cmd->done_ns - cmd->submit_ns, fw[i] ? STEPS * FW : STEPS - 1);
        CHECK_EQ(counters(&bed).trim_cmds, 1);
        CHECK_EQ(counters(&bed).trim_pages, LARGE);
        rsd_cmd_free(bed.drive, cmd);
        expect_pages(&bed, 0, LARGE, 0);
        expect_pages(&bed, LARGE, LARGE, 1);
        bed_close(&bed);
    }
}

/* One of as many pages as a step has is that step. */
TEST(what_is_no_larger_than_a_step)
{
    RsdConfig cfg = trim_config(RSD_FTL_PAGE);
    Bed bed = filled(&cfg, "drive.rsd");

    CHECK_EQ(run(&bed, RSD_TRIM, 0, 16, 0), 0);
    CHECK_EQ(run(&bed, RSD_TRIM, 16, 17, 0), 1);
    CHECK_EQ(run(&bed, RSD_WRITE_ZEROES, 40, 33, 0), 2);
    CHECK_EQ(counters(&bed).host_zero_pages, 33);
    CHECK_EQ(counters(&bed).trim_cmds, 2);
    bed_close(&bed);
}

/* The processor serves others between two steps. */
TEST(others_go_on_between_steps)
{
    RsdConfig cfg = trim_config(RSD_FTL_PAGE);
    RsdCmd *trim, *read, *write, *begun, *done[4];
    Bed bed;

    cfg.t_fw_write_ns = cfg.t_fw_read_ns = FW;
    bed = filled(&cfg, "drive.rsd");
    trim = begin(&bed, RSD_TRIM, 0, LARGE, 0);
    read = begin(&bed, RSD_READ, LARGE, 1, 0);
    write = begin(&bed, RSD_WRITE, LARGE + 1, 1, 2);
    CHECK(!rsd_advance(bed.drive, bed.now += FW));
    CHECK_EQ(trimmed_pages(&bed), 16);
    /* these pages are trimmed already, so that nothing holds it */
    begun = begin(&bed, RSD_READ, 0, 16, 0);
    CHECK_EQ(take_all(&bed, done), 4);
    /* each had the core when its turn came, the second step the fourth */
    CHECK_EQ(begun->done_ns - trim->submit_ns, 5 * FW);
    CHECK_EQ(((Cmd *)begun)->unwritten, 16);
    CHECK_EQ(read->done_ns - read->submit_ns,
             2 * FW + cfg.t_cmd_ns + cfg.t_read_ns + cfg.t_xfer_ns);
    CHECK(page_matches(write->data, write->oob, bed.cfg.oob, LARGE + 1, 2));
    CHECK_EQ(trim->done_ns - trim->submit_ns, (STEPS + 3) * FW);
    for (size_t i = 0; i < 4; i++) {
        rsd_cmd_free(bed.drive, done[i]);
    }
    expect_pages(&bed, LARGE + 1, 1, 2);
    bed_close(&bed);
}

/*
 * What overlaps the rest waits, and what overlaps that; the order is that in
 * which they came.
 */
TEST(what_overlaps_the_rest_waits)
{
    static const char *const names[] = { "page", "dftl", "block", "fast" };
    static const RsdFtl ftls[] = {
        RSD_FTL_PAGE, RSD_FTL_DFTL, RSD_FTL_BLOCK, RSD_FTL_FAST,
    };

    for (size_t f = 0; f < 4; f++) {
        RsdConfig cfg = trim_config(ftls[f]);
        RsdCmd *trim, *read, *write, *later, *done[5];
        Bed bed = filled(&cfg, names[f]);

        trim = begin(&bed, RSD_TRIM, 0, LARGE, 0);
        read = begin(&bed, RSD_READ, LARGE - 1, 2, 0);
        write = begin(&bed, RSD_WRITE, LARGE - 5, 10, 2);
        later = begin(&bed, RSD_READ, LARGE + 4, 1, 0);
        begin(&bed, RSD_TRIM, LARGE + 4, 40, 0);
        rsd_cmd_detach(bed.drive, begin(&bed, RSD_WRITE, LARGE + 40, 2, 3));
        CHECK_EQ(take_all(&bed, done), 5);
        CHECK(done[0] == trim);
        CHECK_EQ(((Cmd *)read)->unwritten, 1);
        CHECK(page_matches(read->data + PAGE, read->oob + bed.cfg.oob,
                           bed.cfg.oob, LARGE, 1));
        CHECK(write->done_ns > trim->done_ns);
        CHECK(page_matches(later->data, later->oob, bed.cfg.oob, LARGE + 4, 2));
        for (size_t i = 0; i < 5; i++) {
            rsd_cmd_free(bed.drive, done[i]);
        }
        CHECK_EQ(counters(&bed).trim_cmds, 2);
        CHECK_EQ(counters(&bed).trim_pages, LARGE + 40);
        expect_pages(&bed, 0, LARGE - 5, 0);
        expect_pages(&bed, LARGE - 5, 9, 2);
        expect_pages(&bed, LARGE + 4, 36, 0);
        expect_pages(&bed, LARGE + 40, 2, 3);
        expect_pages(&bed, LARGE + 42, 2, 0);
        expect_pages(&bed, LARGE + 44, LARGE - 44, 1);
        bed_close(&bed);
    }
}

/* A format waits for a trim that goes on, forgotten or not. */
TEST(a_trim_that_the_host_forgets_goes_on)
{
    RsdConfig cfg = trim_config(RSD_FTL_PAGE);
    Bed bed = filled(&cfg, "drive.rsd");

    rsd_cmd_detach(bed.drive, begin(&bed, RSD_TRIM, 0, LARGE, 0));
    CHECK_EQ(rsd_format(bed.drive, 0, 0, bed.now), RSD_E_ORDER);
    bed_drain(&bed);
    CHECK_EQ(trimmed_pages(&bed), LARGE);
    CHECK_EQ(rsd_format(bed.drive, 0, 0, bed.now), RSD_OK);
    bed_close(&bed);
}

/* A step that is refused is the last one: those before it are done. */
TEST(a_drive_that_becomes_read_only_amid_it)
{
    RsdConfig cfg = trim_config(RSD_FTL_PAGE);
    RsdCmd *trim, *held;
    Bed bed = filled(&cfg, "drive.rsd");

    trim = begin(&bed, RSD_TRIM, 0, LARGE, 0);
    held = begin(&bed, RSD_READ, LARGE - 1, 1, 0);
    bed.drive->read_only = true;
    CHECK_EQ(finish(&bed, trim), RSD_E_READONLY);
    CHECK_EQ(finish(&bed, held), RSD_OK);
    bed.drive->read_only = false;
    CHECK_EQ(trimmed_pages(&bed), 16);
    CHECK_EQ(counters(&bed).trim_cmds, 1);
    CHECK_EQ(counters(&bed).trim_pages, 0);
    rsd_cmd_free(bed.drive, trim);
    rsd_cmd_free(bed.drive, held);
    bed_close(&bed);
}

/*
 * A power cut after each operation of a trim, of which each step is one: the
 * pages before are trimmed, the others are as they were.
 */
TEST(a_cut_amid_it_leaves_each_page_old_or_trimmed)
{
    RsdConfig cfg = trim_config(RSD_FTL_PAGE);

    cfg.t_fw_write_ns = FW;
    for (uint32_t n = 1; n <= STEPS; n++) {
        uint32_t trimmed = n < STEPS ? n * 16 : LARGE;
        char name[32];
        Bed bed;

        snprintf(name, sizeof(name), "cut-%u.rsd", n);
        bed = filled(&cfg, name);
        bed.drive->watched = true;
        CHECK(rsd_power_cut_later(bed.drive, bed.drive->ops + n, UINT64_MAX,
                                  &(RsdOutcomes){ 0 }));
        begin(&bed, RSD_TRIM, 0, LARGE, 0);
        begin(&bed, RSD_WRITE, LARGE - 1, 1, 9);
        bed_pass(&bed, 20 * FW);
        CHECK_EQ(rsd_power_is_off(bed.drive), true);
        bed_reopen(&bed);
        expect_pages(&bed, 0, trimmed, 0);
        expect_pages(&bed, trimmed, 2 * LARGE - trimmed, 1);
        bed_close(&bed);
    }
}

/* The power comes back: trims, and what they held, are gone. */
TEST(power_on_forgets_it)
{
    RsdConfig cfg = trim_config(RSD_FTL_PAGE);
    RsdCmd *trim, *held;
    char err[RSD_ERR_LEN];
    Bed bed = filled(&cfg, "drive.rsd");

    trim = begin(&bed, RSD_TRIM, 0, LARGE, 0);
    held = begin(&bed, RSD_READ, LARGE - 1, 1, 0);
    rsd_power_cut(bed.drive, &(RsdOutcomes){ 0 });
    CHECK(rsd_power_on(bed.drive, err));
    CHECK(trim->gone && held->gone);
    rsd_cmd_free(bed.drive, trim);
    rsd_cmd_free(bed.drive, held);
    expect_pages(&bed, 0, 16, 0);
    expect_pages(&bed, 16, 2 * LARGE - 16, 1);
    CHECK_EQ(run(&bed, RSD_TRIM, 0, LARGE, 0), STEPS - 1);
    bed_close(&bed);
}
