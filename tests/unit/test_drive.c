/*
 * Commands: data and OOB, ranges and order, reset, finish, detach, format.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "harness.h"

static Bed small_bed(void)
{
    RsdConfig cfg = small_config();

    return bed_open(&cfg, temp_path("drive.rsd"));
}

TEST(round_trip_with_every_oob_size)
{
    static const uint64_t sizes[] = { 0, 16, 64, 128 };

    for (int i = 0; i < 4; i++) {
        for (int by_way = 0; by_way < 2; by_way++) {
            RsdConfig cfg = small_config();
            Bed bed;

            cfg.oob = sizes[i];
            cfg.segment = by_way ? RSD_SEGMENT_WAY : RSD_SEGMENT_ALL;
            cfg.channels = 3;
            bed = bed_open(&cfg, temp_path("drive.rsd"));
            for (uint32_t z = 0; z < bed.geo.num_zones; z++) {
                uint64_t cap = bed.geo.zone_capacity;

                run(&bed, RSD_WRITE, lba(&bed, z, 0), 1, z + 1);
                run(&bed, RSD_WRITE, lba(&bed, z, 1), cap - 2, z + 1);
                run(&bed, RSD_WRITE, lba(&bed, z, cap - 1), 1, z + 1);
                CHECK_EQ(written(&bed, z), cap);
            }
            for (uint32_t z = 0; z < bed.geo.num_zones; z++) {
                expect_pages(&bed, lba(&bed, z, 0), bed.geo.zone_capacity,
                             z + 1);
                expect_pages(&bed, lba(&bed, z, 5), 3, z + 1);
            }
            bed_close(&bed);
        }
    }
}

TEST(geometry_of_zones)
{
    RsdConfig cfg = small_config();
    Bed bed;

    cfg.channels = 3;
    cfg.ways = 5;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(bed.geo.num_zones, 4);
    CHECK_EQ(bed.geo.zone_capacity, 3 * 5 * 8);
    CHECK_EQ(bed.geo.zone_size, 128);
    CHECK_EQ(bed.geo.map_bytes, 4 * 4 * 15);
    CHECK(!rsd_zone_ext(bed.drive, 0));
    bed_close(&bed);
    cfg.segment = RSD_SEGMENT_WAY;
    bed = bed_open(&cfg, NULL);
    CHECK_EQ(bed.geo.num_zones, 20);
    CHECK_EQ(bed.geo.zone_capacity, 24);
    CHECK_EQ(bed.geo.zone_size, 32);
    CHECK_EQ(bed.geo.map_bytes, 4 * 4 * 15);
    bed_close(&bed);
}

TEST(a_zone_of_one_way_uses_that_way_alone)
{
    RsdConfig cfg = small_config();
    Bed bed;
    RsdCmd *a, *b;
    uint64_t program, bus;

    cfg.segment = RSD_SEGMENT_WAY;
    cfg.ways = 4;
    bed = bed_open(&cfg, NULL);
    bus = cfg.t_cmd_ns + cfg.t_xfer_ns;
    program = bus + cfg.t_prog_ns;
    /* zones 1 and 5 are on way 1, zone 2 is not */
    a = begin(&bed, RSD_WRITE, lba(&bed, 1, 0), 1, 0);
    b = begin(&bed, RSD_WRITE, lba(&bed, 5, 0), 1, 0);
    CHECK_EQ(await(&bed, a), program);
    CHECK_EQ(await(&bed, b), 2 * program);
    rsd_cmd_free(bed.drive, a);
    rsd_cmd_free(bed.drive, b);
    a = begin(&bed, RSD_WRITE, lba(&bed, 1, 1), 1, 0);
    b = begin(&bed, RSD_WRITE, lba(&bed, 2, 0), 1, 0);
    CHECK_EQ(await(&bed, a), program);
    CHECK_EQ(await(&bed, b), program);
    bed_close(&bed);
}

TEST(ranges_and_order)
{
    Bed bed = small_bed();
    uint64_t cap, size, end;

    bed_close(&bed);
    bed.cfg.channels = 3;
    bed = bed_open(&bed.cfg, temp_path("drive.rsd"));
    cap = bed.geo.zone_capacity;
    size = bed.geo.zone_size;
    end = bed.geo.num_zones * size;
    CHECK(cap < size);

    CHECK_EQ(refused(&bed, RSD_READ, end, 1), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_READ, end - 1, 2), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_READ, UINT64_MAX, 1), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_READ, 0, 0), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_WRITE, 0, 0), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_WRITE, end, 1), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_WRITE, 0, cap + 1), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_WRITE, cap, 1), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_WRITE_ZEROES, size - 1, 1), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_ZONE_RESET, end, 0), RSD_E_RANGE);
    CHECK_EQ(refused(&bed, RSD_ZONE_FINISH, end, 0), RSD_E_RANGE);

    CHECK_EQ(refused(&bed, RSD_WRITE, 1, 1), RSD_E_ORDER);
    run(&bed, RSD_WRITE, 0, 2, 1);
    CHECK_EQ(refused(&bed, RSD_WRITE, 0, 1), RSD_E_ORDER);
    CHECK_EQ(refused(&bed, RSD_WRITE, 1, 1), RSD_E_ORDER);
    CHECK_EQ(refused(&bed, RSD_WRITE_ZEROES, 3, 1), RSD_E_ORDER);
    expect_pages(&bed, 0, 2, 1);
    run(&bed, RSD_WRITE, 2, cap - 2, 1);
    CHECK_EQ(refused(&bed, RSD_WRITE, cap, 1), RSD_E_RANGE);
    CHECK_EQ(counters(&bed).host_write_cmds, 2);
    CHECK_EQ(counters(&bed).prog_host, cap);
    bed_close(&bed);
}

TEST(unwritten_pages_are_zeroes)
{
    Bed bed = small_bed();
    RsdCounters c;

    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 3, 7);
    expect_pages(&bed, 0, 32, 0);
    expect_pages(&bed, lba(&bed, 1, 3), 29, 0);
    c = counters(&bed);
    CHECK_EQ(c.unwritten_reads, 61);
    CHECK_EQ(c.read_host, 0);
    CHECK_EQ(c.host_read_pages, 61);
    CHECK_EQ(c.host_read_cmds, 2);
    bed_close(&bed);
}

TEST(reads_cross_zones_and_gaps)
{
    RsdConfig cfg = small_config();
    Bed bed;
    RsdCmd *cmd;

    cfg.channels = 3;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    /* capacity 48, size 64 */
    run(&bed, RSD_WRITE, lba(&bed, 0, 0), 48, 5);
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 2, 6);
    cmd = begin(&bed, RSD_READ, 46, 64 + 10, 0);
    await(&bed, cmd);
    for (uint32_t i = 0; i < cmd->nlb; i++) {
        uint64_t page = 46 + i;
        uint64_t tag = page < 48 ? 5 : page >= 64 && page < 66 ? 6 : 0;

        CHECK(page_matches(cmd->data + i * PAGE, cmd->oob + i * 16, 16, page,
                           tag));
    }
    CHECK_EQ(counters(&bed).unwritten_reads, 70);
    CHECK_EQ(counters(&bed).read_host, 4);
    bed_close(&bed);
}

TEST(write_zeroes_writes)
{
    Bed bed = small_bed();

    run(&bed, RSD_WRITE, 0, 2, 3);
    run(&bed, RSD_WRITE_ZEROES, 2, 5, 0);
    run(&bed, RSD_WRITE, 7, 1, 3);
    expect_pages(&bed, 0, 2, 3);
    expect_pages(&bed, 2, 5, 0);
    expect_pages(&bed, 7, 1, 3);
    CHECK_EQ(counters(&bed).unwritten_reads, 0);
    CHECK_EQ(counters(&bed).prog_host, 8);
    CHECK_EQ(counters(&bed).host_write_cmds, 3);
    bed_close(&bed);
}

TEST(a_read_sees_what_was_submitted_before)
{
    Bed bed = small_bed();
    RsdCmd *write = begin(&bed, RSD_WRITE, 0, 16, 9);
    RsdCmd *read = begin(&bed, RSD_READ, 0, 20, 0);

    await(&bed, read);
    for (uint32_t i = 0; i < 20; i++) {
        CHECK(page_matches(read->data + i * PAGE, read->oob + i * 16, 16, i,
                           i < 16 ? 9 : 0));
    }
    (void)write;
    bed_close(&bed);
}

TEST(data_is_captured_at_submission)
{
    Bed bed = small_bed();
    uint8_t data[PAGE], oob[16];
    RsdCmd *cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 0, 1);

    fill_page(data, oob, 16, 0, 4);
    memcpy(cmd->data, data, PAGE);
    memcpy(cmd->oob, oob, 16);
    CHECK_EQ(rsd_submit(bed.drive, cmd, 0), RSD_OK);
    memset(data, 0, PAGE);
    await(&bed, cmd);
    expect_pages(&bed, 0, 1, 4);
    bed_close(&bed);
}

TEST(reset_empties_a_zone)
{
    for (int erase = 0; erase < 2; erase++) {
        RsdConfig cfg = small_config();
        Bed bed;

        cfg.reset = erase ? RSD_RESET_ERASE : RSD_RESET_MARK;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        for (uint64_t round = 1; round < 20; round++) {
            run(&bed, RSD_WRITE, 0, 11, round);
            run(&bed, RSD_WRITE, lba(&bed, 2, 0), 32, round);
            expect_pages(&bed, 0, 11, round);
            /* any LBA of the zone will do */
            run(&bed, RSD_ZONE_RESET, round % bed.geo.zone_size, 0, 0);
            CHECK_EQ(written(&bed, 0), 0);
            expect_pages(&bed, 0, 32, 0);
            expect_pages(&bed, lba(&bed, 2, 0), 32, round);
            run(&bed, RSD_ZONE_RESET, lba(&bed, 2, 3), 0, 0);
        }
        CHECK_EQ(counters(&bed).zone_resets, 38);
        bed_close(&bed);
    }
}

/* Commands in flight when their zone is reset, and what comes after */
TEST(reset_keeps_the_order_of_submission)
{
    for (int mode = 0; mode < 4; mode++) {
        RsdConfig cfg = small_config();
        RsdCmd *old_write, *old_read, *reset, *new_write, *new_read;
        Bed bed;

        cfg.reset = mode & 1 ? RSD_RESET_ERASE : RSD_RESET_MARK;
        cfg.queue = mode & 2 ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
        cfg.spare_blocks = 0;
        cfg.blocks = 1;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        for (uint64_t round = 1; round < 6; round++) {
            old_write = begin(&bed, RSD_WRITE, 0, 23, 2 * round);
            old_read = begin(&bed, RSD_READ, 0, 32, 0);
            reset = begin(&bed, RSD_ZONE_RESET, 0, 0, 0);
            new_write = begin(&bed, RSD_WRITE, 0, 9, 2 * round + 1);
            new_read = begin(&bed, RSD_READ, 0, 32, 0);
            CHECK(await(&bed, reset) > 0);
            /* what came before it is done, freed by await() */
            await(&bed, new_read);
            for (uint32_t i = 0; i < 32; i++) {
                CHECK(page_matches(new_read->data + i * PAGE,
                                   new_read->oob + i * 16, 16, i,
                                   i < 9 ? 2 * round + 1 : 0));
            }
            rsd_cmd_free(bed.drive, reset);
            rsd_cmd_free(bed.drive, new_read);
            bed_drain(&bed);
            CHECK_EQ(written(&bed, 0), 9);
            run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        }
        (void)old_write;
        (void)old_read;
        (void)new_write;
        bed_close(&bed);
    }
}

TEST(old_reads_return_old_data)
{
    RsdConfig cfg = small_config();
    RsdCmd *read, *cmd;
    Bed bed;
    bool seen = false;

    cfg.spare_blocks = 0;
    cfg.blocks = 1;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    run(&bed, RSD_WRITE, 0, 32, 1);
    read = begin(&bed, RSD_READ, 0, 32, 0);
    begin(&bed, RSD_ZONE_RESET, 0, 0, 0);
    begin(&bed, RSD_WRITE, 0, 32, 2);
    while (rsd_next_event(bed.drive, &bed.now)) {
        while ((cmd = rsd_advance(bed.drive, bed.now))) {
            if (cmd == read) {
                seen = true;
                for (uint32_t i = 0; i < 32; i++) {
                    CHECK(page_matches(cmd->data + i * PAGE,
                                       cmd->oob + i * 16, 16, i, 1));
                }
            }
            if (cmd->op != RSD_READ) {
                CHECK(seen);    /* reset and write come after it */
            }
            rsd_cmd_free(bed.drive, cmd);
        }
    }
    CHECK(seen);
    expect_pages(&bed, 0, 32, 2);
    bed_close(&bed);
}

TEST(barriers_wait_for_their_own_zone_only)
{
    RsdConfig cfg = small_config();
    Bed bed;
    RsdCmd *write;

    bed = bed_open(&cfg, NULL);
    begin(&bed, RSD_WRITE, 0, 32, 0);
    CHECK_EQ(run(&bed, RSD_ZONE_FINISH, lba(&bed, 1, 0), 0, 0), 0);
    CHECK_EQ(run(&bed, RSD_ZONE_RESET, lba(&bed, 2, 0), 0, 0), 0);
    bed_drain(&bed);
    write = begin(&bed, RSD_WRITE, lba(&bed, 1, 0), 32, 0);
    CHECK(run(&bed, RSD_ZONE_FINISH, lba(&bed, 1, 0), 0, 0) >=
          8 * cfg.t_prog_ns);
    (void)write;
    bed_drain(&bed);
    /* barriers queue up behind one another */
    for (int i = 0; i < 3; i++) {
        begin(&bed, RSD_WRITE, lba(&bed, 3, i), 1, 0);
        begin(&bed, RSD_ZONE_FINISH, lba(&bed, 3, 0), 0, 0);
        begin(&bed, RSD_ZONE_FINISH, lba(&bed, 3, 0), 0, 0);
    }
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).zone_finishes, 8);
    CHECK_EQ(counters(&bed).host_write_cmds, 5);
    bed_close(&bed);
}

TEST(finish_by_mark_leaves_the_rest_unwritten)
{
    Bed bed = small_bed();

    run(&bed, RSD_WRITE, 0, 5, 1);
    run(&bed, RSD_ZONE_FINISH, 0, 0, 0);
    CHECK_EQ(written(&bed, 0), 5);
    expect_pages(&bed, 0, 5, 1);
    expect_pages(&bed, 5, 27, 0);
    CHECK_EQ(counters(&bed).prog_pad, 0);
    bed_close(&bed);
}

TEST(finish_by_pad_fills_the_zone)
{
    for (int global = 0; global < 2; global++) {
        RsdConfig cfg = small_config();
        Bed bed;

        cfg.finish = RSD_FINISH_PAD;
        cfg.queue = global ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        begin(&bed, RSD_WRITE, 0, 5, 1);
        run(&bed, RSD_ZONE_FINISH, 0, 0, 0);
        CHECK_EQ(written(&bed, 0), 32);
        CHECK_EQ(counters(&bed).prog_pad, 27);
        expect_pages(&bed, 0, 5, 1);
        expect_pages(&bed, 5, 27, 0);
        CHECK_EQ(counters(&bed).unwritten_reads, 0);
        CHECK_EQ(refused(&bed, RSD_WRITE, 5, 1), RSD_E_ORDER);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        run(&bed, RSD_WRITE, 0, 32, 2);
        expect_pages(&bed, 0, 32, 2);
        bed_close(&bed);
    }
}

TEST(detached_commands_go_on_unseen)
{
    Bed bed = small_bed();
    RsdCmd *write = begin(&bed, RSD_WRITE, 0, 8, 1);
    RsdCmd *read = begin(&bed, RSD_READ, 0, 8, 0);
    RsdCmd *done, *never = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 8, 1);

    rsd_cmd_detach(bed.drive, write);
    rsd_cmd_detach(bed.drive, read);
    rsd_cmd_detach(bed.drive, never);
    while (rsd_next_event(bed.drive, &bed.now)) {
        done = rsd_advance(bed.drive, bed.now);
        CHECK(!done);
    }
    CHECK_EQ(counters(&bed).host_write_cmds, 1);
    CHECK_EQ(counters(&bed).host_read_cmds, 1);
    expect_pages(&bed, 0, 8, 1);

    /* complete, and not fetched yet */
    write = begin(&bed, RSD_WRITE, 8, 1, 1);
    done = begin(&bed, RSD_FLUSH, 0, 0, 0);
    rsd_cmd_detach(bed.drive, done);
    bed.now += 1000000;
    CHECK(rsd_advance(bed.drive, bed.now) == write);
    CHECK(!rsd_advance(bed.drive, bed.now));
    bed_close(&bed);
}

TEST(closing_with_commands_in_flight_leaks_nothing)
{
    for (int global = 0; global < 2; global++) {
        RsdConfig cfg = small_config();
        Bed bed;

        cfg.reset = RSD_RESET_ERASE;
        cfg.queue = global ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        begin(&bed, RSD_WRITE, 0, 32, 1);
        begin(&bed, RSD_READ, 0, 32, 1);
        begin(&bed, RSD_ZONE_RESET, 0, 0, 0);
        begin(&bed, RSD_FLUSH, 0, 0, 0);
        rsd_cmd_new(bed.drive, 0, RSD_WRITE, 0, 4);
        rsd_cmd_detach(bed.drive, begin(&bed, RSD_WRITE, 0, 3, 2));
        bed_close(&bed);
    }
    rsd_close(NULL);
}

TEST(format_empties_and_changes_oob)
{
    static const uint32_t sizes[] = { 64, 0, 128, 16 };
    Bed bed = small_bed();
    RsdCounters c;

    for (int i = 0; i < 4; i++) {
        RsdCmd *cmd;

        run(&bed, RSD_WRITE, 0, 7, 1);
        run(&bed, RSD_WRITE, lba(&bed, 3, 0), 32, 1);
        rsd_zone_save(bed.drive, 3, 14, 1);
        cmd = begin(&bed, RSD_WRITE, 7, 1, 1);
        CHECK_EQ(rsd_format(bed.drive, 0, 64, bed.now), RSD_E_ORDER);
        await(&bed, cmd);
        rsd_cmd_free(bed.drive, cmd);
        CHECK_EQ(rsd_format(bed.drive, 0, 32, bed.now), RSD_E_RANGE);
        expect_pages(&bed, 0, 8, 1);

        CHECK_EQ(rsd_format(bed.drive, 0, sizes[i], bed.now), RSD_OK);
        CHECK_EQ(rsd_config(bed.drive)->oob, sizes[i]);
        for (uint32_t z = 0; z < 4; z++) {
            RsdZone info;

            rsd_zone_get(bed.drive, z, &info);
            CHECK_EQ(info.state, 0);
            CHECK_EQ(info.attrs, 0);
            CHECK_EQ(info.written, 0);
            expect_pages(&bed, lba(&bed, z, 0), 32, 0);
        }
        run(&bed, RSD_WRITE, 0, 7, 2);
        bed_reopen(&bed);
        CHECK_EQ(rsd_config(bed.drive)->oob, sizes[i]);
        expect_pages(&bed, 0, 7, 2);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    c = counters(&bed);
    CHECK_EQ(c.formats, 4);
    CHECK_EQ(c.zone_resets, 4);
    bed_close(&bed);
}

TEST(memory_drives_have_no_payload)
{
    RsdConfig cfg = small_config();
    Bed bed = bed_open(&cfg, NULL);
    RsdCmd *cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 0, 4);

    CHECK(!cmd->data && !cmd->oob);
    rsd_cmd_free(bed.drive, cmd);
    run(&bed, RSD_WRITE, 0, 4, 0);
    CHECK_EQ(written(&bed, 0), 4);
    CHECK_EQ(rsd_media_sync(bed.drive), 0);
    bed_close(&bed);
}

TEST(same_input_same_output)
{
    uint64_t hash[2];

    for (int i = 0; i < 2; i++) {
        RsdConfig cfg = small_config();
        Rng rng = { 99 };
        uint64_t position[4] = { 0 };
        Bed bed;

        hash[i] = 0;
        cfg.idle_erase_ns = 100000;
        cfg.wl_threshold = 2;
        bed = bed_open(&cfg, NULL);
        for (int n = 0; n < 20000; n++) {
            uint32_t z = rng_below(&rng, 4), nlb = 1 + rng_below(&rng, 8);
            RsdCmd *cmd;

            if (position[z] + nlb > 32) {
                begin(&bed, RSD_ZONE_RESET, lba(&bed, z, 0), 0, 0);
                position[z] = 0;
            } else if (rng_below(&rng, 2)) {
                begin(&bed, RSD_WRITE, lba(&bed, z, position[z]), nlb, 0);
                position[z] += nlb;
            } else {
                begin(&bed, RSD_READ, lba(&bed, z, 0), nlb, 0);
            }
            bed.now += rng_below(&rng, 400000);
            while ((cmd = rsd_advance(bed.drive, bed.now))) {
                hash[i] = hash[i] * 31 + cmd->done_ns;
                rsd_cmd_free(bed.drive, cmd);
            }
        }
        hash[i] = hash[i] * 31 + counters(&bed).die_busy_ns;
        bed_close(&bed);
    }
    CHECK_EQ(hash[0], hash[1]);
}

/* What must hold between the counters of a drive that has nothing to do */
static void check_identities(const Bed *bed)
{
    RsdCounters c = counters(bed);
    uint64_t reads = c.read_host + c.read_wear + c.read_pad;
    uint64_t progs = c.prog_host + c.prog_wear + c.prog_pad;
    uint64_t erases = c.erase_host + c.erase_wear;
    const RsdConfig *cfg = &bed->cfg;

    CHECK_EQ(c.read_clean + c.read_merge + c.read_map + c.prog_clean +
             c.prog_merge + c.prog_map + c.erase_clean + c.erase_merge +
             c.erase_map + c.erase_pad, 0);
    CHECK_EQ(c.prog_host, c.host_write_pages);
    CHECK_EQ(c.read_host + c.unwritten_reads, c.host_read_pages);
    CHECK_EQ(erases, c.erase_on_demand + c.erase_idle);
    CHECK_EQ(erases, c.wear_sum);
    CHECK_EQ(c.blocks_total,
             c.blocks_bad + c.blocks_used + c.blocks_dirty + c.blocks_erased);
    CHECK_EQ(c.bus_busy_ns, (reads + progs) * (cfg->t_cmd_ns + cfg->t_xfer_ns)
             + erases * cfg->t_cmd_ns);
    /* a die that waits for the bus with a page is busy, too */
    CHECK(c.die_busy_ns >=
          reads * (cfg->t_cmd_ns + cfg->t_xfer_ns + cfg->t_read_ns) +
          progs * (cfg->t_cmd_ns + cfg->t_xfer_ns + cfg->t_prog_ns) +
          erases * (cfg->t_cmd_ns + cfg->t_erase_ns));
    CHECK(c.queue_wait_ns >= c.queue_wait_max_ns);
    CHECK_EQ(c.media_errors, 0);
}

TEST(counters_add_up)
{
    for (int mode = 0; mode < 16; mode++) {
        RsdConfig cfg = small_config();
        uint64_t position[8] = { 0 }, resets = 0;
        Rng rng = { mode };
        Bed bed;

        cfg.reset = mode & 1 ? RSD_RESET_ERASE : RSD_RESET_MARK;
        cfg.finish = mode & 2 ? RSD_FINISH_PAD : RSD_FINISH_MARK;
        cfg.queue = mode & 4 ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
        cfg.segment = mode & 8 ? RSD_SEGMENT_WAY : RSD_SEGMENT_ALL;
        cfg.idle_erase_ns = 500000;
        cfg.wl_threshold = 3;
        bed = bed_open(&cfg, NULL);
        begin(&bed, RSD_WRITE, 0, bed.geo.zone_capacity, 0);
        position[0] = bed.geo.zone_capacity;
        for (int n = 0; n < 4000; n++) {
            uint32_t z = rng_below(&rng, bed.geo.num_zones);
            uint32_t nlb = 1 + rng_below(&rng, 6);

            if (z == 0 && position[0] + nlb > bed.geo.zone_capacity) {
                /* the first zone keeps what it has: cold data */
                begin(&bed, RSD_READ, 0, nlb, 0);
            } else if (z && rng_below(&rng, 40) == 0) {
                begin(&bed, RSD_ZONE_FINISH, lba(&bed, z, 0), 0, 0);
                position[z] = bed.geo.zone_capacity;
            } else if (position[z] + nlb > bed.geo.zone_capacity) {
                begin(&bed, RSD_ZONE_RESET, lba(&bed, z, 0), 0, 0);
                position[z] = 0;
                resets++;
            } else if (rng_below(&rng, 3)) {
                begin(&bed, RSD_WRITE, lba(&bed, z, position[z]), nlb, 0);
                position[z] += nlb;
            } else {
                begin(&bed, RSD_READ, lba(&bed, z, 0), nlb, 0);
            }
            bed_pass(&bed, rng_below(&rng, 8) ? rng_below(&rng, 100000)
                                              : 20000000);
            if (n % 50 == 0) {
                bed_drain(&bed);
                check_identities(&bed);
            }
        }
        bed_drain(&bed);
        check_identities(&bed);
        CHECK_EQ(counters(&bed).zone_resets, resets);
        CHECK(counters(&bed).wear_moves > 0);
        CHECK(counters(&bed).erase_on_demand > 0 || mode & 1);
        bed_close(&bed);
    }
}

TEST(log_page_is_the_counters)
{
    Bed bed = small_bed();
    RsdLogPage page;
    RsdCounters c;
    uint64_t sum = 0;

    for (int i = 0; i < 300; i++) {
        run(&bed, RSD_WRITE, 0, 8, 1);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    rsd_log_page(bed.drive, &page);
    c = counters(&bed);
    CHECK_EQ(page.magic, RSD_LOG_MAGIC);
    CHECK(!memcmp(&page, "RRSD-LOG", 8));
    CHECK_EQ(page.version, RSD_LOG_VERSION);
    CHECK_EQ(page.num_counters, RSD_NUM_COUNTERS);
    CHECK(!memcmp(page.counters, &c, sizeof(c)));
    for (int i = 0; i < RSD_LOG_HISTOGRAM; i++) {
        sum += page.erase_histogram[i];
    }
    CHECK_EQ(sum, c.blocks_total);
    CHECK(page.erase_histogram[c.wear_max / page.bucket_erases]);
    CHECK(c.wear_max / page.bucket_erases < RSD_LOG_HISTOGRAM);
    for (size_t i = 0; i < RSD_NUM_COUNTERS; i++) {
        CHECK(rsd_counter_info[i].name && rsd_counter_info[i].unit);
    }
    CHECK(!strcmp(rsd_counter_info[0].name, "host_read_cmds"));
    bed_close(&bed);
}

TEST(status_names)
{
    for (int i = RSD_OK; i <= RSD_E_READONLY; i++) {
        CHECK(strcmp(rsd_status_name(i), "unknown"));
    }
    CHECK(!strcmp(rsd_status_name(99), "unknown"));
}
