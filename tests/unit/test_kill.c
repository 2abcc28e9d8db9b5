/*
 * Being killed: after every single store into the tables, after every event,
 * and by SIGKILL after random steps, the file opens to a state in which every
 * acknowledged page is there, nothing of a zone's earlier life is, and each
 * zone can be written further.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "floors.h"
#include "stores.h"

/* Pages: block records, segment map, zone records, units of the buffer */
#define TABLES 4u

#define MAX_ZONES 8
#define MAX_CAP 64

enum { ABSENT, PENDING, ACKED };        /* PENDING: there, or filler, or not */

/* What a zone may hold */
typedef struct Life {
    uint64_t tag;               /* of its patterns */
    uint64_t submitted;         /* pages */
    bool padded;
    uint8_t page[MAX_CAP];
    bool filler[MAX_CAP];       /* ACKED as filler */
} Life;

typedef struct ZoneModel {
    Life lives[2];
    int now;                    /* which of them */
    bool resetting;             /* a reset is being submitted: or empty */
} ZoneModel;

/* In memory shared with the process that will be killed */
typedef struct Model {
    ZoneModel zones[MAX_ZONES];
    uint64_t next_tag;
} Model;

static Model *model;

static void new_model(void)
{
    model = mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(model != MAP_FAILED);
    model->next_tag = 1;
    for (int z = 0; z < MAX_ZONES; z++) {
        model->zones[z].lives[0].tag = model->next_tag++;
    }
}

/* One run of random commands */
typedef struct Work {
    Bed bed;
    Rng rng;
} Work;

static Life *life_of(uint32_t zone)
{
    return &model->zones[zone].lives[model->zones[zone].now];
}

static void acknowledge(Work *w, RsdCmd *cmd)
{
    uint32_t zone = cmd->lba / w->bed.geo.zone_size;
    Life *life = life_of(zone);
    /* the command's opaque says which life it was for */
    bool now = (uintptr_t)cmd->opaque == life->tag;

    /* a write that waited for the buffer when the life ended is refused */
    if (cmd->op != RSD_WRITE || now || cmd->status != RSD_E_ORDER) {
        CHECK_EQ(cmd->status, RSD_OK);
    }
    if (cmd->op == RSD_WRITE && now) {
        memset(life->page + cmd->lba % w->bed.geo.zone_size, ACKED, cmd->nlb);
    }
    rsd_cmd_free(w->bed.drive, cmd);
}

static void submit_write(Work *w, uint32_t zone, uint32_t nlb)
{
    Bed *bed = &w->bed;
    Life *life = life_of(zone);
    uint64_t at = lba(bed, zone, life->submitted);
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, RSD_WRITE, at, nlb);

    for (uint32_t i = 0; i < nlb; i++) {
        fill_page(cmd->data + i * PAGE, cmd->oob + i * 16, 16, at + i,
                  life->tag);
    }
    cmd->opaque = (void *)(uintptr_t)life->tag;
    memset(life->page + life->submitted, PENDING, nlb);
    life->submitted += nlb;
    CHECK_EQ(rsd_submit(bed->drive, cmd, bed->now), RSD_OK);
}

static void submit_reset(Work *w, uint32_t zone)
{
    ZoneModel *z = &model->zones[zone];
    Life *fresh = &z->lives[!z->now];

    *fresh = (Life){ .tag = model->next_tag++ };
    z->resetting = true;
    begin(&w->bed, RSD_ZONE_RESET, lba(&w->bed, zone, 0), 0, 0);
    z->now = !z->now;
    z->resetting = false;
}

static void submit_finish(Work *w, uint32_t zone)
{
    Life *life = life_of(zone);

    life->padded = true;
    memset(life->page + life->submitted, PENDING,
           w->bed.geo.zone_capacity - life->submitted);
    life->submitted = w->bed.geo.zone_capacity;
    begin(&w->bed, RSD_ZONE_FINISH, lba(&w->bed, zone, 0), 0, 0);
}

/* One command, some time */
static void step(Work *w)
{
    Bed *bed = &w->bed;
    uint32_t zone = rng_below(&w->rng, bed->geo.num_zones);
    uint64_t cap = bed->geo.zone_capacity;
    uint64_t left = cap - life_of(zone)->submitted;
    uint32_t nlb = 1 + rng_below(&w->rng, cap / 2);
    RsdCmd *cmd;

    /* zone 0 is cold: wear levelling moves it */
    if (left ? rng_below(&w->rng, 12) == 0 : zone || !rng_below(&w->rng, 20)) {
        submit_reset(w, zone);
    } else if (left && rng_below(&w->rng, 12) == 0) {
        submit_finish(w, zone);
    } else if (left) {
        submit_write(w, zone, nlb < left ? nlb : left);
    }
    bed->now += rng_below(&w->rng, 3) ? rng_below(&w->rng, 700000)
                                      : 15000000;
    while ((cmd = rsd_advance(bed->drive, bed->now))) {
        acknowledge(w, cmd);
    }
}

/* Is a page what this life allows? Learns what became of pending ones. */
static bool allowed(Life *life, uint32_t page, bool present,
                    const uint8_t *data, const uint8_t *oob, uint64_t at,
                    bool learn)
{
    bool match = page_matches(data, oob, 16, at, life->tag);
    bool zero = page_matches(data, oob, 16, at, 0);

    switch (life->page[page]) {
    case ACKED:
        return present && (life->filler[page] ? zero : match);
    case PENDING:
        if (learn) {
            life->page[page] = present ? ACKED : ABSENT;
            life->filler[page] = present && zero;
        }
        return present ? match || zero : zero;
    default:
        return !present && zero;
    }
}

/* Does the drive hold what the model allows? With learn, it is the new truth */
static void verify(Bed *bed, bool learn)
{
    for (uint32_t z = 0; z < bed->geo.num_zones; z++) {
        uint64_t cap = bed->geo.zone_capacity, have = written(bed, z);
        ZoneModel *zm = &model->zones[z];
        Life *life = life_of(z);
        RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, RSD_READ, lba(bed, z, 0), cap);

        CHECK_EQ(rsd_submit(bed->drive, cmd, bed->now), RSD_OK);
        await(bed, cmd);
        if (zm->resetting && have == 0) {
            life = &zm->lives[!zm->now];
            if (learn) {
                zm->now = !zm->now;
            }
        }
        CHECK(have <= life->submitted);
        for (uint32_t i = 0; i < cap; i++) {
            if (!allowed(life, i, i < have, cmd->data + i * PAGE,
                         cmd->oob + i * 16, lba(bed, z, i), learn)) {
                FAIL("zone %u page %u of %" PRIu64 " is wrong (it was %s)", z,
                     i, have, life->page[i] == ACKED ? "acknowledged" :
                     life->page[i] == PENDING ? "in flight" : "not written");
            }
        }
        rsd_cmd_free(bed->drive, cmd);
        if (learn) {
            zm->resetting = false;
            life->submitted = have;
        }
    }
}

/* The rest of every zone can be written. */
static void fill_zones(Bed *bed)
{
    for (uint32_t z = 0; z < bed->geo.num_zones; z++) {
        uint64_t have = written(bed, z), cap = bed->geo.zone_capacity;

        if (have < cap) {
            run(bed, RSD_WRITE, lba(bed, z, have), cap - have, 99999);
            expect_pages(bed, lba(bed, z, have), cap - have, 99999);
        }
    }
}

static RsdConfig kill_config(uint64_t seed)
{
    RsdConfig cfg = small_config();

    cfg.channels = 1 + seed % 2;
    cfg.pages = 2 + seed % 3;
    cfg.blocks = 3;
    cfg.spare_blocks = seed % 2;
    cfg.idle_erase_ns = seed % 5 ? 1000000 : 0;
    cfg.wl_threshold = 1;
    cfg.reset = seed & 4 ? RSD_RESET_ERASE : RSD_RESET_MARK;
    cfg.finish = RSD_FINISH_PAD;
    cfg.queue = seed / 2 % 2 ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
    cfg.segment = seed % 3 == 2 ? RSD_SEGMENT_WAY : RSD_SEGMENT_ALL;
    return cfg;
}

static Work new_work(RsdConfig cfg, uint64_t seed)
{
    Work w = { .bed = bed_open(&cfg, temp_path("drive.rsd")),
               .rng = { seed } };

    CHECK(w.bed.geo.num_zones <= MAX_ZONES);
    CHECK(w.bed.geo.zone_capacity <= MAX_CAP);
    new_model();
    return w;
}

static void end_work(Work *w)
{
    bed_close(&w->bed);
    munmap(model, sizeof(*model));
}

TEST(closed_after_any_event)
{
    uint64_t moves = 0, pads = 0;

    for (uint64_t seed = 0; seed < 120; seed++) {
        Work w = new_work(kill_config(seed), seed);

        for (int life = 0; life < 20; life++) {
            int steps = rng_below(&w.rng, 60);

            while (steps--) {
                step(&w);
            }
            bed_reopen(&w.bed);
            verify(&w.bed, true);
            bed_reopen(&w.bed);
            verify(&w.bed, false);
        }
        fill_zones(&w.bed);
        moves += counters(&w.bed).wear_moves;
        pads += counters(&w.bed).prog_pad;
        end_work(&w);
    }
    CHECK(moves > 50);
    CHECK(pads > 50);
}

static Bed copy;                /* what is opened of the copies */
static const char *watched_path;

static void look_at_copy(void)
{
    copy_media(watched_path, copy.path);
    copy.drive = NULL;
    bed_reopen(&copy);
    verify(&copy, false);
    if (stores_seen() % 8 == 0) {
        fill_zones(&copy);
    }
    rsd_close(copy.drive);
}

/* As above, and each store of the recovery is a moment to be killed, too. */
static void look_at_recovery(void)
{
    const char *path = watched_path;
    Bed outer;

    look_at_copy();
    if (stores_seen() % 16) {
        return;
    }
    /* recover a copy under watch, looking at copies of the copy */
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

/* Each seed has one life under watch. Moves by wear levelling */
static uint64_t watch_work(RsdConfig (*config)(uint64_t seed),
                           void (*look)(void), uint64_t seeds, int steps)
{
    uint64_t moves = 0;

    for (uint64_t seed = 0; seed < seeds; seed++) {
        Work w = new_work(config(seed), seed);

        watched_path = w.bed.path;
        copy = w.bed;
        copy.path = temp_path("copy.rsd");
        stores_watch(TABLES, look);
        bed_reopen(&w.bed);
        for (int i = 0; i < steps; i++) {
            step(&w);
        }
        moves += counters(&w.bed).wear_moves;
        stores_end();
        free((char *)copy.path);
        end_work(&w);
    }
    return moves;
}

TEST(killed_after_any_store)
{
    CHECK(watch_work(kill_config, look_at_copy, 20, 60) > 20);
    CHECK(stores_seen() > 3000);
}

TEST(killed_in_recovery)
{
    watch_work(kill_config, look_at_recovery, 8, 40);
    CHECK(stores_seen() > 1000);
}

/* Pages of several slots, what is acknowledged being safe in the buffer */
static RsdConfig buffer_config(uint64_t seed)
{
    RsdConfig cfg = kill_config(seed);

    cfg.page_size = seed % 3 ? 8192 : 4096;
    cfg.cell = seed % 4 == 1 ? RSD_CELL_MLC : RSD_CELL_SLC;
    cfg.one_shot = seed % 4 == 1;
    cfg.pages = 2 + seed % 2 * 2;
    cfg.write_buffer = seed % 2 ? 16384 : 65536;
    cfg.plp = seed / 2 % 3 > 0;
    cfg.ack = cfg.plp ? RSD_ACK_BUFFER : RSD_ACK_PROGRAM;
    return cfg;
}

TEST(killed_after_any_store_with_a_buffer)
{
    watch_work(buffer_config, look_at_copy, 24, 60);
    CHECK(stores_seen() > 3000);
}

TEST(killed_in_recovery_with_a_buffer)
{
    watch_work(buffer_config, look_at_recovery, 12, 40);
    CHECK(stores_seen() > 1000);
}

TEST(killed_at_random)
{
    uint64_t pads = 0;

    for (uint64_t seed = 100; seed < 110; seed++) {
        Work w = new_work(kill_config(seed), seed);

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
                    step(&w);
                }
                raise(SIGKILL);
            }
            CHECK(waitpid(pid, &status, 0) == pid);
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            bed_reopen(&w.bed);
            verify(&w.bed, true);
        }
        fill_zones(&w.bed);
        pads += counters(&w.bed).prog_pad;
        end_work(&w);
    }
    CHECK(pads > 0);
}
