/*
 * A page-mapping drive that is killed: after every single store into the block
 * records and the trim bits, in the middle of collections and moves, and by
 * SIGKILL at random moments, the file opens to a drive that has everything
 * that was acknowledged and can be written further.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conventional.h"
#include "stores.h"

/* Pages: block records, trim bits, units of the buffer */
#define TABLES 3u

/* Two dies; 256 LBAs on 336 pages, 16 of them in spare blocks */
static RsdConfig kill_config(uint64_t seed)
{
    RsdConfig cfg = small_config();

    cfg.ftl = RSD_FTL_PAGE;
    cfg.ways = 1;
    cfg.blocks = 20;
    cfg.over_provision = 20;
    cfg.gc_policy = seed % 3;
    cfg.gc_unit = seed / 3 % 2;
    cfg.gc_frontiers = seed % 5 < 2 ? RSD_GC_FRONTIERS_OWN
                                    : RSD_GC_FRONTIERS_SHARED;
    cfg.frontiers = seed / 2 % 2;
    cfg.idle_erase_ns = seed % 4 ? 1000000 : 0;
    cfg.wl_threshold = 1;
    /* an erase may be done before a program that was queued earlier */
    cfg.t_erase_ns = seed % 2 ? 4000000 : 20000;
    return cfg;
}

static Bed copy;                /* what is opened of the copies */
static const char *watched_path;
static WorldModel *model;

static void look_at_copy(void)
{
    static WorldModel scratch;

    copy_media(watched_path, copy.path);
    copy.drive = NULL;
    bed_reopen(&copy);
    world_verify(&copy, model, false);
    if (stores_seen() % 64 == 0) {
        World w = { .bed = copy, .rng = { stores_seen() } };

        scratch = *model;
        memset(scratch.slots, 0, sizeof(scratch.slots));
        w.model = &scratch;
        world_verify(&w.bed, w.model, true);
        world_fill(&w);
        world_check(&w);
        copy = w.bed;
    }
    rsd_close(copy.drive);
}

static void watch_worlds(RsdConfig (*config)(uint64_t seed), uint64_t seeds,
                         int steps, RsdCounters *sum)
{
    *sum = (RsdCounters){ 0 };
    for (uint64_t seed = 0; seed < seeds; seed++) {
        RsdConfig cfg = config(seed);
        World w = world_open(&cfg, "drive.rsd", seed);
        RsdCounters c;

        world_fill(&w);
        for (int i = 0; i < 100; i++) {
            world_step(&w);
        }
        watched_path = w.bed.path;
        model = w.model;
        copy = w.bed;
        copy.path = temp_path("copy.rsd");
        stores_watch(TABLES, look_at_copy);
        world_reopen(&w);
        for (int i = 0; i < steps; i++) {
            world_step(&w);
        }
        c = counters(&w.bed);
        sum->wear_moves += c.wear_moves;
        sum->prog_clean += c.prog_clean;
        sum->prog_map += c.prog_map;
        sum->erase_map += c.erase_map;
        stores_end();
        unlink(copy.path);
        free((char *)copy.path);
        world_close(&w);
    }
}

TEST(killed_after_any_store)
{
    RsdCounters sum;

    watch_worlds(kill_config, 6, 15, &sum);
    CHECK(stores_seen() > 1000);
    CHECK(sum.wear_moves > 0);
    CHECK(sum.prog_clean > 100);
}

/* The same of a cached map: 2 map pages, a cache of 128 entries */
static RsdConfig dftl_config(uint64_t seed)
{
    RsdConfig cfg = kill_config(seed);

    cfg.ftl = RSD_FTL_DFTL;
    cfg.map_cache = 1024;
    cfg.blocks = 40;
    cfg.over_provision = 25;
    cfg.frontiers = 1;
    return cfg;
}

TEST(killed_after_any_store_with_a_cached_map)
{
    RsdCounters sum;

    watch_worlds(dftl_config, 2, 10, &sum);
    CHECK(stores_seen() > 1000);
    CHECK(sum.prog_clean > 100);
    CHECK(sum.prog_map > 50);
    CHECK(sum.erase_map > 5);
}

/* Pages of several slots, what is acknowledged being safe in the buffer */
static RsdConfig buffer_config(uint64_t seed)
{
    RsdConfig cfg = kill_config(seed);

    cfg.page_size = seed % 3 ? 8192 : 4096;
    cfg.pages = seed % 3 ? 8 : 16;
    cfg.cell = seed % 4 == 1 ? RSD_CELL_MLC : RSD_CELL_SLC;
    cfg.one_shot = seed % 4 == 1;
    cfg.spare_blocks = 5;
    cfg.write_buffer = seed % 2 ? 16384 : 65536;
    cfg.plp = seed / 2 % 3 > 0;
    cfg.ack = cfg.plp ? RSD_ACK_BUFFER : RSD_ACK_PROGRAM;
    return cfg;
}

TEST(killed_after_any_store_with_a_buffer)
{
    RsdCounters sum;

    watch_worlds(buffer_config, 4, 12, &sum);
    CHECK(stores_seen() > 2000);
    CHECK(sum.prog_clean > 100);
}

/* Both: units of 2 slots, what is acknowledged being safe in the buffer */
static RsdConfig dftl_buffer_config(uint64_t seed)
{
    RsdConfig cfg = dftl_config(seed);

    cfg.page_size = 8192;
    cfg.pages = 4;
    cfg.blocks = 24;
    cfg.spare_blocks = 4;
    cfg.write_buffer = 16384;
    cfg.ack = RSD_ACK_BUFFER;
    return cfg;
}

TEST(killed_after_any_store_with_a_cached_map_and_a_buffer)
{
    RsdCounters sum;

    watch_worlds(dftl_buffer_config, 2, 80, &sum);
    CHECK(stores_seen() > 1000);
    CHECK(sum.prog_clean > 40);
    CHECK(sum.prog_map > 50);
    CHECK(sum.erase_map > 5);
}

TEST(killed_at_random)
{
    for (uint64_t seed = 100; seed < 106; seed++) {
        RsdConfig cfg = kill_config(seed);
        World w = world_open(&cfg, "drive.rsd", seed);

        world_fill(&w);
        for (int life = 0; life < 25; life++) {
            uint64_t steps = rng_below(&w.rng, 200);
            int status;
            pid_t pid;

            rsd_close(w.bed.drive);
            w.bed.drive = NULL;
            w.rng.state += life;
            pid = fork();
            CHECK(pid >= 0);
            if (!pid) {
                w.in_flight = 0;
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
        CHECK(counters(&w.bed).erase_clean > 30);
        world_close(&w);
    }
}
