/*
 * The controller: processors, link, latency. Times computed by hand.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "floors.h"
#include "harness.h"

enum { CMD = 10, XFER = 100, READ = 1000, PROG = 2000 };

static RsdConfig controller(void)
{
    RsdConfig cfg = small_config();

    cfg.t_cmd_ns = CMD;
    cfg.t_xfer_ns = XFER;
    cfg.t_read_ns = READ;
    cfg.t_prog_ns = PROG;
    return cfg;
}

TEST(each_stage_adds_its_time)
{
    RsdConfig cfg = controller();
    RsdCmd *cmd;
    Bed bed;

    cfg.t_fw_read_ns = 1;
    cfg.t_fw_write_ns = 20;
    cfg.t_fw_append_ns = 300;
    cfg.t_fw_zone_ns = 4000;
    cfg.t_fw_page_ns = 50000;
    cfg.t_lat_read_ns = 600000;
    cfg.t_lat_write_ns = 7000000;
    cfg.t_lat_zone_ns = 80000000;
    cfg.t_link_ns = 900000000;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 1, 1),
             907050020 + CMD + XFER + PROG);
    CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), 900650001 + CMD + READ + XFER);
    /* never written, but sent */
    CHECK_EQ(run(&bed, RSD_READ, 1, 2, 0), 1800700001);
    CHECK_EQ(run(&bed, RSD_WRITE_ZEROES, 1, 1, 0),
             7000020 + CMD + XFER + PROG);
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0), 20);
    CHECK_EQ(run(&bed, RSD_ZONE_FINISH, 0, 0, 0), 80004000);
    CHECK_EQ(run(&bed, RSD_ZONE_RESET, 0, 0, 0), 80004000);
    cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 0, 1);
    cmd->append = true;
    CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
    /* the zone's old block is least in number no longer: none to erase */
    CHECK_EQ(await(&bed, cmd), 907050300 + CMD + XFER + PROG);
    rsd_cmd_free(bed.drive, cmd);
    bed_close(&bed);
}

/* Submits a command that is refused only when the firmware comes to it. */
static void refuse(Bed *bed, RsdOp op, uint64_t lba, RsdStatus status)
{
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, op, lba, 1);

    CHECK_EQ(rsd_submit(bed->drive, cmd, bed->now), RSD_OK);
    if (status == RSD_E_READONLY) {
        bed->drive->read_only = true;
    }
    finish(bed, cmd);
    CHECK_EQ(cmd->status, status);
    bed->drive->read_only = false;
    rsd_cmd_free(bed->drive, cmd);
}

TEST(what_is_refused_late_is_not_counted)
{
    RsdConfig cfg = controller();
    RsdCounters c;
    Bed bed;

    cfg.t_fw_write_ns = cfg.t_fw_zone_ns = 100;
    bed = bed_open(&cfg, NULL);
    refuse(&bed, RSD_WRITE, 5, RSD_E_ORDER);
    refuse(&bed, RSD_WRITE_ZEROES, 0, RSD_E_READONLY);
    refuse(&bed, RSD_ZONE_RESET, 0, RSD_E_READONLY);
    refuse(&bed, RSD_ZONE_FINISH, 0, RSD_E_READONLY);
    c = counters(&bed);
    CHECK_EQ(c.host_write_cmds + c.zone_resets + c.zone_finishes, 0);
    run(&bed, RSD_WRITE, 0, 1, 1);
    CHECK_EQ(counters(&bed).host_write_cmds, 1);
    bed_close(&bed);

    cfg.ftl = RSD_FTL_PAGE;
    cfg.blocks = 64;
    cfg.over_provision = 28;
    bed = bed_open(&cfg, NULL);
    refuse(&bed, RSD_TRIM, 0, RSD_E_READONLY);
    CHECK_EQ(counters(&bed).trim_cmds, 0);
    bed_close(&bed);
}

/* Done times, from the first submission, of n reads of single pages at once */
static void read_times(RsdConfig *cfg, uint64_t n, uint64_t *times)
{
    Bed bed = bed_open(cfg, NULL);
    uint64_t start, done = 0;
    RsdCmd *cmd;

    run(&bed, RSD_WRITE, 0, 4, 1);
    start = bed.now;
    for (uint64_t i = 0; i < n; i++) {
        begin(&bed, RSD_READ, i, 1, 0);
    }
    while (done < n) {
        CHECK(rsd_next_event(bed.drive, &bed.now));
        while ((cmd = rsd_advance(bed.drive, bed.now))) {
            CHECK_EQ(cmd->lba, done);
            times[done++] = cmd->done_ns - start;
            rsd_cmd_free(bed.drive, cmd);
        }
    }
    bed_close(&bed);
}

TEST(cores_work_side_by_side)
{
    uint64_t read = CMD + READ + XFER;

    /* 4 pages of 4 dies, 2 on each bus; a page a bus is far apart from another */
    for (uint64_t cores = 1; cores <= 4; cores++) {
        RsdConfig cfg = controller();
        uint64_t times[4];

        cfg.cores = cores;
        cfg.t_fw_read_ns = 5000;
        read_times(&cfg, 4, times);
        for (uint64_t i = 0; i < 4; i++) {
            uint64_t round = i / cores + 1;
            /* a die of the same channel begins at the same time: a command,
               and a page on the bus, later */
            bool second = i >= 2 && (i - 2) / cores == i / cores;

            CHECK_EQ(times[i], round * 5000 + read + second * XFER);
        }
    }
}

TEST(the_link_is_a_pipe_each_way)
{
    RsdConfig cfg = controller();
    uint64_t times[4], read = CMD + READ + XFER;
    RsdCmd *reads[2], *writes[2];
    Bed bed;

    cfg.channels = 4;
    cfg.ways = 1;
    cfg.t_link_ns = 10000;
    read_times(&cfg, 4, times);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(times[i], read + (i + 1) * 10000);
    }
    /* writes wait for writes, and for no read */
    bed = bed_open(&cfg, NULL);
    run(&bed, RSD_WRITE, 0, 4, 1);
    for (int i = 0; i < 2; i++) {
        writes[i] = begin(&bed, RSD_WRITE, 4 + i, 1, 1);
        reads[i] = begin(&bed, RSD_READ, 2 + i, 1, 0);
    }
    CHECK_EQ(await(&bed, reads[0]), read + 10000);
    CHECK_EQ(await(&bed, writes[0]), 10000 + CMD + XFER + PROG);
    CHECK_EQ(await(&bed, reads[1]), read + 20000);
    CHECK_EQ(await(&bed, writes[1]), 20000 + CMD + XFER + PROG);
    bed_close(&bed);
}

/* Small writes do not overtake a large one that takes its core longer. */
TEST(writes_stay_in_order)
{
    RsdConfig cfg = controller();
    RsdCmd *large, *small;
    Bed bed;

    cfg.cores = 2;
    cfg.t_fw_page_ns = 1000;
    bed = bed_open(&cfg, NULL);
    large = begin(&bed, RSD_WRITE, 0, 8, 1);
    small = begin(&bed, RSD_WRITE, 8, 1, 1);
    /* two pages a die, then the ninth */
    CHECK_EQ(await(&bed, large), 8000 + 2 * (CMD + XFER + PROG) + CMD + XFER);
    CHECK_EQ(await(&bed, small), 8000 + 3 * (CMD + XFER + PROG));
    CHECK_EQ(large->status, RSD_OK);
    CHECK_EQ(small->status, RSD_OK);
    bed_close(&bed);
}

TEST(late_refusals_come_with_the_completion)
{
    RsdConfig cfg = controller();
    RsdCmd *cmd, *done;
    Bed bed;

    cfg.t_fw_write_ns = 100;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(refused(&bed, RSD_WRITE, bed.geo.lbas, 1), RSD_E_RANGE);
    cmd = begin(&bed, RSD_WRITE, 5, 1, 1);      /* not the zone's next page */
    CHECK(!rsd_advance(bed.drive, 99));
    done = rsd_advance(bed.drive, 100);
    CHECK(done == cmd);
    CHECK_EQ(done->status, RSD_E_ORDER);
    CHECK_EQ(done->done_ns, 100);
    rsd_cmd_free(bed.drive, cmd);
    CHECK_EQ(written(&bed, 0), 0);
    CHECK_EQ(counters(&bed).host_write_cmds, 0);
    CHECK_EQ(counters(&bed).host_write_pages, 0);
    bed.now = 100;
    run(&bed, RSD_WRITE, 0, 1, 1);
    CHECK_EQ(counters(&bed).host_write_pages, 1);
    /* format waits for a command that is on its way in, too */
    begin(&bed, RSD_WRITE, 1, 1, 1);
    CHECK_EQ(rsd_format(bed.drive, 0, 0, bed.now), RSD_E_ORDER);
    bed_drain(&bed);
    CHECK_EQ(rsd_format(bed.drive, 0, 0, bed.now), RSD_OK);
    /* the host forgets a command on its way in */
    cmd = begin(&bed, RSD_WRITE, 0, 1, 1);
    rsd_cmd_detach(bed.drive, cmd);
    bed_drain(&bed);
    CHECK_EQ(written(&bed, 0), 1);
    begin(&bed, RSD_WRITE, 1, 1, 1);
    bed_close(&bed);
}
