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
#include "watch.h"

/* Two dies; 256 LBAs on 320 pages and 16 of spare blocks */
static RsdConfig kill_config(uint64_t seed)
{
    RsdConfig cfg = small_config();

    cfg.ftl = RSD_FTL_PAGE;
    cfg.ways = 1;
    cfg.blocks = 20;
    cfg.over_provision = 20;
    cfg.gc_policy = seed % 3;
    cfg.gc_unit = seed / 3 % 2;
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

    watch_copy_file(watched_path, copy.path);
    copy.drive = NULL;
    bed_reopen(&copy);
    world_verify(&copy, model, false);
    if (watch_stores % 16 == 0) {
        World w = { .bed = copy, .rng = { watch_stores } };

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

TEST(killed_after_any_store)
{
    uint64_t moves = 0, copies = 0;

    for (uint64_t seed = 0; seed < 6; seed++) {
        RsdConfig cfg = kill_config(seed);
        World w = world_open(&cfg, "drive.rsd", seed);

        world_fill(&w);
        for (int i = 0; i < 100; i++) {
            world_step(&w);
        }
        watched_path = w.bed.path;
        model = w.model;
        copy = w.bed;
        copy.path = temp_path("copy.rsd");
        /* the records' page and that of the trim bits */
        watch_next_file(2, look_at_copy);
        world_reopen(&w);
        for (int i = 0; i < 60; i++) {
            world_step(&w);
        }
        moves += counters(&w.bed).wear_moves;
        copies += counters(&w.bed).prog_clean;
        unlink(copy.path);
        free((char *)copy.path);
        if (!watch_end()) {
            SKIP("stores are caught on x86-64 only");
        }
        world_close(&w);
    }
    CHECK(watch_stores > 1000);
    CHECK(moves > 0);
    CHECK(copies > 100);
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
