/*
 * ftl=block and ftl=fast being killed: after every single store into the
 * tables, in a recovery, too, after every event, and by SIGKILL after random
 * steps, every LBA holds what was acknowledged, or what was submitted later,
 * and all of the drive can be written again.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conventional.h"
#include "rsd-power.h"
#include "stores.h"

/* Pages: block records, trim bits, units of the buffer */
#define TABLES 3u

static RsdConfig kill_config(uint64_t seed)
{
    RsdConfig cfg = small_config();

    cfg.ftl = seed & 1 ? RSD_FTL_FAST : RSD_FTL_BLOCK;
    cfg.stripe = seed / 2 % 3 == 2;
    cfg.channels = 1 + seed / 4 % 2;
    cfg.pages = 2 + seed % 5;
    cfg.blocks = 20;
    cfg.spare_blocks = 2;
    cfg.over_provision = 25;
    cfg.log_blocks = 15;
    cfg.wl_threshold = seed / 2 % 2;
    return cfg;
}

/* Grains of several pages, what is acknowledged being safe in the buffer */
static RsdConfig buffer_config(uint64_t seed)
{
    RsdConfig cfg = kill_config(seed);

    cfg.page_size = seed / 2 % 4 ? 8192 : 4096;
    cfg.cell = seed / 2 % 4 == 1 ? RSD_CELL_MLC : RSD_CELL_SLC;
    cfg.one_shot = seed / 2 % 4 == 1;
    cfg.pages = cfg.one_shot ? 2 : 2 + seed % 2;
    cfg.write_buffer = seed % 3 ? 65536 : 16384;
    cfg.plp = seed / 2 % 3 > 0;
    cfg.ack = cfg.plp ? RSD_ACK_BUFFER : RSD_ACK_PROGRAM;
    return cfg;
}

typedef RsdConfig (*Config)(uint64_t seed);

static World new_world(Config config, uint64_t seed)
{
    RsdConfig cfg = config(seed);

    return world_open(&cfg, "drive.rsd", seed);
}

static uint64_t merges(const Bed *bed)
{
    RsdCounters c = counters(bed);

    return c.merge_switch + c.merge_partial + c.merge_full;
}

static void close_at_random(Config config, uint64_t seeds, uint64_t *done,
                            uint64_t *moves)
{
    *done = *moves = 0;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        World w = new_world(config, seed);

        for (int life = 0; life < 20; life++) {
            int steps = rng_below(&w.rng, 60);

            while (steps--) {
                world_step(&w);
            }
            w.cuts = life % 2 ? life : 0;
            world_reopen(&w);
            bed_reopen(&w.bed);
            world_verify(&w.bed, w.model, false);
        }
        world_fill(&w);
        world_check(&w);
        *done += merges(&w.bed);
        *moves += counters(&w.bed).wear_moves;
        world_close(&w);
    }
}

TEST(closed_after_any_event)
{
    uint64_t done, moves;

    close_at_random(kill_config, 60, &done, &moves);
    CHECK(done > 2000);
    CHECK(moves > 500);
}

TEST(closed_after_any_event_with_a_buffer)
{
    uint64_t done, moves;

    close_at_random(buffer_config, 24, &done, &moves);
    CHECK(done > 500);
    CHECK(moves > 50);
}

static Bed copy;                /* what is opened of the copies */
static const char *watched_path;
static const World *world;

/* The rest of the drive can be written over and over. */
static void write_all(Bed *bed)
{
    for (uint64_t at = 0; at < 3 * bed->geo.lbas; at += 3) {
        uint64_t lba = at % bed->geo.lbas;

        run(bed, RSD_WRITE, lba, 1, 77);
        expect_pages(bed, lba, 1, 77);
    }
}

static void look_at_copy(void)
{
    copy_media(watched_path, copy.path);
    copy.drive = NULL;
    bed_reopen(&copy);
    world_verify(&copy, world->model, false);
    if (stores_seen() % 16 == 0) {
        write_all(&copy);
    }
    rsd_close(copy.drive);
}

/* As above, and each store of the recovery is a moment to be killed, too. */
static void look_at_recovery(void)
{
    const char *path = watched_path;
    Bed outer;

    look_at_copy();
    if (stores_seen() % 8) {
        return;
    }
    copy_media(path, copy.path);
    outer = copy;
    watched_path = copy.path;
    copy.path = temp_path("copy2.rsd");
    stores_watch(TABLES, look_at_copy);
    outer.drive = NULL;
    bed_reopen(&outer);
    stores_end();
    rsd_close(outer.drive);
    free((char *)copy.path);
    copy.path = watched_path;
    watched_path = path;
}

/* Moves by wear levelling that were watched */
static uint64_t watch_worlds(Config config, void (*look)(void), uint64_t first,
                             uint64_t end, int steps)
{
    uint64_t done = 0, moves = 0;

    for (uint64_t seed = first; seed < end; seed++) {
        World w = new_world(config, seed);

        for (int i = 0; i < 150; i++) {
            world_step(&w);     /* something to merge and to level */
        }
        world_drain(&w);
        moves -= counters(&w.bed).wear_moves;
        for (int i = 0; i < 6; i++) {
            world_step(&w);
        }
        /* what is in flight is torn: there is something to recover from */
        rsd_power_cut(w.bed.drive, &(RsdOutcomes){ .list = "tttttttt" });
        world_take(&w);
        rsd_close(w.bed.drive);
        w.bed.drive = NULL;
        world = &w;
        watched_path = w.bed.path;
        copy = w.bed;
        copy.path = temp_path("copy.rsd");
        stores_watch(TABLES, look);
        world_reopen(&w);
        for (int i = 0; i < steps; i++) {
            world_step(&w);
        }
        done += merges(&w.bed);
        moves += counters(&w.bed).wear_moves;
        stores_end();
        free((char *)copy.path);
        world_close(&w);
    }
    CHECK(stores_seen() > 250);
    CHECK(done > 10 * (end - first));
    return moves;
}

TEST(killed_after_any_store)
{
    CHECK(watch_worlds(kill_config, look_at_copy, 0, 8, 30) > 0);
}

TEST(killed_after_any_store_with_a_buffer)
{
    watch_worlds(buffer_config, look_at_copy, 0, 6, 20);
}

TEST(killed_in_recovery)
{
    watch_worlds(kill_config, look_at_recovery, 2, 4, 8);
}

TEST(killed_in_recovery_with_a_buffer)
{
    watch_worlds(buffer_config, look_at_recovery, 5, 6, 8);
}

static void open_copy(void)
{
    copy_media(watched_path, copy.path);
    copy.drive = NULL;
    bed_reopen(&copy);
    rsd_close(copy.drive);
}

/*
 * A torn page in what replaces a block, in a die of two blocks more than data:
 * what was copied to the third block, when it was killed, is not in the way.
 */
TEST(killed_while_a_third_block_is_filled)
{
    RsdConfig cfg = small_config();
    Bed bed;

    cfg.ftl = RSD_FTL_BLOCK;
    cfg.channels = cfg.ways = 1;
    cfg.blocks = 6;
    cfg.spare_blocks = 0;
    cfg.over_provision = 50;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    CHECK_EQ(bed.geo.lbas, 4 * 8);
    run(&bed, RSD_WRITE, 0, 32, 5);
    run(&bed, RSD_WRITE, 1, 1, 6);
    begin(&bed, RSD_WRITE, 2, 1, 7);
    bed_pass(&bed, 100000);
    rsd_power_cut(bed.drive, &(RsdOutcomes){ .list = "t" });
    rsd_close(bed.drive);
    bed.drive = NULL;
    watched_path = bed.path;
    copy = bed;
    copy.path = temp_path("copy.rsd");
    stores_watch(TABLES, open_copy);
    bed_reopen(&bed);
    stores_end();
    CHECK(stores_seen() > 20);
    expect_pages(&bed, 0, 1, 5);
    expect_pages(&bed, 1, 1, 6);
    expect_pages(&bed, 2, 30, 5);
    free((char *)copy.path);
    bed_close(&bed);
}

TEST(killed_at_random)
{
    for (uint64_t seed = 100; seed < 110; seed++) {
        World w = new_world(seed % 2 ? kill_config : buffer_config, seed / 2);

        for (int life = 0; life < 40; life++) {
            uint64_t steps = rng_below(&w.rng, 200);
            int status;
            pid_t pid;

            rsd_close(w.bed.drive);
            w.bed.drive = NULL;
            w.rng.state += life;
            pid = fork();
            CHECK(pid >= 0);
            if (!pid) {
                w.bed.now = 0;
                bed_reopen(&w.bed);
                while (steps--) {
                    world_step(&w);
                }
                raise(SIGKILL);
            }
            CHECK(waitpid(pid, &status, 0) == pid);
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            world_reopen(&w);
        }
        world_fill(&w);
        world_check(&w);
        world_close(&w);
    }
}
