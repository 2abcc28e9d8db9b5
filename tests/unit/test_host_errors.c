/*
 * The host's disk fails to store a page, or to load one, of a conventional
 * drive: while the host writes, while pages are copied by collections, merges
 * and levelling, or when the write buffer is programmed. Nothing that was
 * acknowledged is lost, then and when the drive is opened again; the drive says
 * that it is read-only. Or the disk is full for a while: then writes fail, and
 * go on when there is space.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>

#include "conventional.h"
#include "floors.h"

/* Stores and loads until the host's disk fails, for good or once (--wrap) */
static uint64_t calls_left = UINT64_MAX;
static bool for_good;

bool __real_rsd_media_store(RsdMedia *media, uint32_t block, uint32_t page,
                            const uint8_t *data);
bool __wrap_rsd_media_store(RsdMedia *media, uint32_t block, uint32_t page,
                            const uint8_t *data);
bool __real_rsd_media_load(RsdMedia *media, uint32_t block, uint32_t page,
                           uint8_t *data);
bool __wrap_rsd_media_load(RsdMedia *media, uint32_t block, uint32_t page,
                           uint8_t *data);
bool __real_rsd_media_store_unit(RsdMedia *media, uint32_t place,
                                 uint32_t block, uint32_t page,
                                 const uint8_t *payload, uint32_t from,
                                 uint32_t to);
bool __wrap_rsd_media_store_unit(RsdMedia *media, uint32_t place,
                                 uint32_t block, uint32_t page,
                                 const uint8_t *payload, uint32_t from,
                                 uint32_t to);

static bool fails(void)
{
    if (calls_left) {
        calls_left -= calls_left != UINT64_MAX;
        return false;
    }
    if (!for_good) {
        calls_left = UINT64_MAX;
    }
    return true;
}

bool __wrap_rsd_media_store(RsdMedia *media, uint32_t block, uint32_t page,
                            const uint8_t *data)
{
    return !fails() && __real_rsd_media_store(media, block, page, data);
}

bool __wrap_rsd_media_load(RsdMedia *media, uint32_t block, uint32_t page,
                           uint8_t *data)
{
    return !fails() && __real_rsd_media_load(media, block, page, data);
}

bool __wrap_rsd_media_store_unit(RsdMedia *media, uint32_t place,
                                 uint32_t block, uint32_t page,
                                 const uint8_t *payload, uint32_t from,
                                 uint32_t to)
{
    return !fails() && __real_rsd_media_store_unit(media, place, block, page,
                                                   payload, from, to);
}

int __real_rsd_media_reserve(RsdMedia *media, uint32_t block);
int __wrap_rsd_media_reserve(RsdMedia *media, uint32_t block);
int __real_rsd_media_reserve_slots(RsdMedia *media, uint32_t block,
                                   uint32_t slots);
int __wrap_rsd_media_reserve_slots(RsdMedia *media, uint32_t block,
                                   uint32_t slots);
int __real_rsd_media_reserve_data(RsdMedia *media, uint32_t block,
                                  uint32_t page, uint32_t n);
int __wrap_rsd_media_reserve_data(RsdMedia *media, uint32_t block,
                                  uint32_t page, uint32_t n);
RsdStatus __real_rsd_media_reserve_places(RsdMedia *media, uint64_t count);
RsdStatus __wrap_rsd_media_reserve_places(RsdMedia *media, uint64_t count);
bool __real_rsd_op_reserve(RsdDrive *drive, uint64_t count);
bool __wrap_rsd_op_reserve(RsdDrive *drive, uint64_t count);

/* No block, or no place for a unit, gets space; nor an operation memory, */
static bool disk_full, places_full, memory_full;
/* or only every so many asked for */
static uint64_t memory_every = 1, memory_asked;
/* or from so many on */
static uint64_t memory_left = UINT64_MAX;

int __wrap_rsd_media_reserve(RsdMedia *media, uint32_t block)
{
    return disk_full ? -ENOSPC : __real_rsd_media_reserve(media, block);
}

int __wrap_rsd_media_reserve_slots(RsdMedia *media, uint32_t block,
                                   uint32_t slots)
{
    return disk_full ? -ENOSPC
                     : __real_rsd_media_reserve_slots(media, block, slots);
}

int __wrap_rsd_media_reserve_data(RsdMedia *media, uint32_t block,
                                  uint32_t page, uint32_t n)
{
    return disk_full ? -ENOSPC
                     : __real_rsd_media_reserve_data(media, block, page, n);
}

RsdStatus __wrap_rsd_media_reserve_places(RsdMedia *media, uint64_t count)
{
    return places_full && count > media->backed
               ? RSD_E_NOSPC : __real_rsd_media_reserve_places(media, count);
}

bool __wrap_rsd_op_reserve(RsdDrive *drive, uint64_t count)
{
    if (!memory_left || (memory_full && memory_asked++ % memory_every == 0)) {
        return false;
    }
    memory_left -= memory_left != UINT64_MAX;
    return __real_rsd_op_reserve(drive, count);
}

static RsdConfig config(RsdFtl ftl, uint64_t seed)
{
    RsdConfig cfg = small_config();

    cfg.ftl = ftl;
    cfg.ways = 1;
    cfg.pages = 8;
    cfg.blocks = 40;
    cfg.spare_blocks = 3;
    cfg.over_provision = ftl == RSD_FTL_BLOCK || ftl == RSD_FTL_FAST ? 30 : 15;
    cfg.log_blocks = 10;
    cfg.map_cache = 1024;
    cfg.idle_erase_ns = seed % 4 ? 1000000 : 0;
    cfg.wl_threshold = seed % 3;
    cfg.gc_policy = seed % 3;
    cfg.stripe = seed % 2;
    cfg.oob = seed % 2 ? 16 : 0;
    return cfg;
}

/* Units of several pages, in a buffer that survives or not */
static void add_buffer(RsdConfig *cfg, uint64_t n)
{
    cfg->page_size = n % 3 ? 16384 : 4096;
    cfg->pages = n % 3 ? 4 : 16;
    cfg->over_provision = 60;
    cfg->write_buffer = 65536;
    cfg->plp = n / 3 % 2;
    cfg->ack = n / 2 % 2 ? RSD_ACK_BUFFER : RSD_ACK_PROGRAM;
}

/* One life of a drive, until its file fails, and the next one */
static void fail_once(const RsdConfig *cfg, uint64_t seed, uint64_t *copies,
                      uint64_t *failures)
{
    World w = world_open(cfg, "drive.rsd", seed);
    RsdHealth health;
    RsdCounters c;

    calls_left = UINT64_MAX;
    world_fill(&w);
    for (int i = 0; i < 60; i++) {
        world_step(&w);
    }
    w.may_fail = true;
    for_good = seed % 2;
    calls_left = rng_below(&w.rng, 300);
    while (!w.bed.drive->failed) {
        if (calls_left == UINT64_MAX) {
            calls_left = 0;     /* it was the host's read that failed */
        }
        world_step(&w);
    }
    for (uint64_t when; w.in_flight;) {
        /* nobody waits for ever */
        CHECK(rsd_next_event(w.bed.drive, &when));
        world_pass(&w, when > w.bed.now ? when - w.bed.now : 0);
    }
    /* reading works, whatever else does not */
    calls_left = UINT64_MAX;
    world_check_failed(&w);
    rsd_health(w.bed.drive, &health);
    CHECK(health.read_only);
    CHECK(rsd_health_changes(w.bed.drive) > 0);
    CHECK_EQ(refused(&w.bed, RSD_WRITE, 0, 1), RSD_E_READONLY);
    CHECK_EQ(refused(&w.bed, RSD_TRIM, 0, 1), RSD_E_READONLY);
    c = counters(&w.bed);
    CHECK(c.media_errors > 0);
    bed_drain(&w.bed);          /* it comes to rest */
    world_check_failed(&w);
    *copies += c.prog_clean + c.prog_merge + c.prog_wear + c.prog_map;
    *failures += w.failures;
    w.may_fail = false;
    w.failures = 0;
    world_reopen(&w);
    rsd_health(w.bed.drive, &health);
    CHECK(!health.read_only);
    world_check(&w);
    world_fill(&w);
    world_check(&w);
    world_close(&w);
}

static void fail_often(RsdFtl ftl, bool buffer)
{
    uint64_t copies = 0, failures = 0;

    for (uint64_t seed = 0; seed < (buffer ? 18 : 30); seed++) {
        RsdConfig cfg = config(ftl, seed);

        if (buffer) {
            add_buffer(&cfg, seed);
            cfg.ack = cfg.plp ? RSD_ACK_BUFFER : RSD_ACK_PROGRAM;
        }
        fail_once(&cfg, seed, &copies, &failures);
    }
    CHECK(copies > 300);
    CHECK(failures > 15);
}

/* What the host lacks for a while */
enum { SPACE = 1, PLACES = 2, MEMORY = 4 };

/* How many commands failed, of which none waits for ever */
static uint32_t go_short(const RsdConfig *cfg, uint64_t seed, int lacks)
{
    uint32_t expected = 1u << RSD_OK | (lacks & (SPACE | PLACES)
                                        ? 1u << RSD_E_NOSPC : 0) |
                        /* a block that cannot be erased is lost */
                        (lacks & MEMORY ? 1u << RSD_E_NOMEM |
                                          1u << RSD_E_NOBLOCK : 0);
    World w = world_open(cfg, "drive.rsd", seed);
    uint32_t failures;

    w.lazy = !cfg->plp && cfg->ack == RSD_ACK_BUFFER;
    memory_every = 1 + seed / 2 % 4;
    world_fill(&w);
    w.may_fail = true;
    for (int i = 0; i < 10; i++) {
        disk_full = lacks & SPACE && i % 2 == 0;
        places_full = lacks & PLACES && i % 2 == 0;
        memory_full = lacks & MEMORY && i % 2 == 0;
        for (int n = rng_below(&w.rng, 40); n; n--) {
            world_step(&w);
        }
        if (i % 3 == 0) {
            world_drain(&w);
        }
    }
    failures = w.failures;
    world_drain(&w);
    /* with ftl=dftl, reads may need space */
    disk_full = places_full = memory_full = false;
    world_check_failed(&w);
    CHECK_EQ(w.statuses & ~expected, 0);
    CHECK_EQ(counters(&w.bed).media_errors, 0);
    CHECK(!w.bed.drive->read_only);
    w.may_fail = false;
    w.failures = 0;
    if (seed % 2 || lacks & MEMORY) {
        world_reopen(&w);
    }
    world_fill(&w);
    world_check(&w);
    world_close(&w);
    return failures;
}

static void often_short(int lacks, uint64_t seeds)
{
    for (RsdFtl ftl = RSD_FTL_PAGE; ftl <= RSD_FTL_FAST; ftl++) {
        uint32_t failures = 0;

        for (uint64_t seed = 0; seed < seeds; seed++) {
            RsdConfig cfg = config(ftl, seed);

            if (lacks & PLACES || seed % 2) {
                add_buffer(&cfg, seed / 2);
            }
            failures += go_short(&cfg, seed, lacks);
        }
        CHECK(failures > (lacks == PLACES ? 30 : 200));
    }
}

TEST(full_disk)
{
    often_short(SPACE, 12);
}

TEST(full_disk_for_the_buffer)
{
    often_short(PLACES, 8);
}

TEST(no_memory)
{
    often_short(MEMORY, 8);
}

TEST(no_memory_and_a_full_disk)
{
    often_short(SPACE | PLACES | MEMORY, 6);
}

/*
 * A merge takes more of the buffer than was ever in use, and there is no space
 * for it; nothing else is going on. The write that waits for it fails.
 */
TEST(a_merge_without_space)
{
    RsdConfig cfg = config(RSD_FTL_BLOCK, 1);
    RsdCmd *cmd, *done;
    Bed bed;

    /* grains of 8 pages, four of them a row over the dies */
    cfg.ways = 2;
    cfg.planes = 2;
    cfg.page_size = 8192;
    cfg.cell = RSD_CELL_MLC;
    cfg.one_shot = true;
    cfg.pages = 6;
    cfg.ack = RSD_ACK_BUFFER;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    for (int i = 0; i < 4; i++) {
        run(&bed, RSD_WRITE, 8 * i, 8, 1);
        bed_drain(&bed);
    }
    places_full = true;
    cmd = begin(&bed, RSD_WRITE, 31, 1, 2);
    while (!(done = rsd_advance(bed.drive, bed.now))) {
        CHECK(rsd_next_event(bed.drive, &bed.now));
    }
    CHECK(done == cmd);
    CHECK_EQ(cmd->status, RSD_E_NOSPC);
    rsd_cmd_free(bed.drive, cmd);
    expect_pages(&bed, 0, 32, 1);
    /* until there is */
    places_full = false;
    run(&bed, RSD_WRITE, 31, 1, 3);
    expect_pages(&bed, 0, 31, 1);
    expect_pages(&bed, 31, 1, 3);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 31, 1);
    expect_pages(&bed, 31, 1, 3);
    bed_close(&bed);
}

/* Some of a write is in the buffer, and there is no memory for more. */
TEST(a_write_without_memory)
{
    for (RsdFtl ftl = RSD_FTL_PAGE; ftl <= RSD_FTL_FAST; ftl++) {
        RsdConfig cfg = config(ftl, 1);
        uint32_t failures = 0;
        Bed bed;

        add_buffer(&cfg, 1);
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        for (uint64_t left = 0; left < 12; left++) {
            RsdCmd *cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, left, 3), *done;
            RsdStatus status;

            for (int i = 0; i < 3; i++) {
                fill_page(cmd->data + i * PAGE, cmd->oob + i * 16, 16,
                          left + i, left + 1);
            }
            memory_left = left;
            status = rsd_submit(bed.drive, cmd, bed.now);
            while (status == RSD_OK &&
                   !(done = rsd_advance(bed.drive, bed.now))) {
                CHECK(rsd_next_event(bed.drive, &bed.now));
            }
            status = status == RSD_OK ? cmd->status : status;
            memory_left = UINT64_MAX;
            CHECK(status == RSD_OK || status == RSD_E_NOMEM);
            failures += status != RSD_OK;
            rsd_cmd_free(bed.drive, cmd);
            bed_drain(&bed);
        }
        CHECK(failures > 0 && failures < 12);
        expect_pages(&bed, 11, 3, 12);
        bed_close(&bed);
    }
}

TEST(page)
{
    fail_often(RSD_FTL_PAGE, false);
}

TEST(page_with_a_buffer)
{
    fail_often(RSD_FTL_PAGE, true);
}

TEST(dftl)
{
    fail_often(RSD_FTL_DFTL, false);
}

TEST(dftl_with_a_buffer)
{
    fail_often(RSD_FTL_DFTL, true);
}

TEST(block)
{
    fail_often(RSD_FTL_BLOCK, false);
}

TEST(block_with_a_buffer)
{
    fail_often(RSD_FTL_BLOCK, true);
}

TEST(fast)
{
    fail_often(RSD_FTL_FAST, false);
}

TEST(fast_with_a_buffer)
{
    fail_often(RSD_FTL_FAST, true);
}

/* A page that was not programmed: what was there before can be read. */
TEST(a_failed_write_is_undone)
{
    RsdConfig cfg = config(RSD_FTL_PAGE, 0);
    Bed bed;
    RsdCmd *cmd, *done;

    cfg.oob = 16;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    run(&bed, RSD_WRITE, 0, 4, 1);
    run(&bed, RSD_TRIM, 2, 1, 0);
    /* over what is there, what was trimmed, and what was never written */
    for_good = true;
    calls_left = 0;
    cmd = begin(&bed, RSD_WRITE, 1, 4, 2);
    while (!(done = rsd_advance(bed.drive, bed.now))) {
        CHECK(rsd_next_event(bed.drive, &bed.now));
    }
    CHECK(done == cmd);
    CHECK_EQ(done->status, RSD_E_MEDIA);
    rsd_cmd_free(bed.drive, done);
    bed_drain(&bed);
    calls_left = UINT64_MAX;
    expect_pages(&bed, 0, 2, 1);
    expect_pages(&bed, 2, 1, 0);
    expect_pages(&bed, 3, 1, 1);
    expect_pages(&bed, 4, 1, 0);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 2, 1);
    expect_pages(&bed, 2, 1, 0);
    expect_pages(&bed, 3, 1, 1);
    expect_pages(&bed, 4, 1, 0);
    bed_close(&bed);
}

/* Waits for it; what it said */
static RsdStatus outcome(Bed *bed, RsdCmd *cmd)
{
    RsdStatus status;

    for (RsdCmd *done; !(done = rsd_advance(bed->drive, bed->now));) {
        CHECK(rsd_next_event(bed->drive, &bed->now));
    }
    status = cmd->status;
    rsd_cmd_free(bed->drive, cmd);
    return status;
}

/* A write with FUA that fails leaves the cache what it has acknowledged. */
TEST(a_failed_fua_of_a_disk)
{
    RsdConfig cfg = config(RSD_FTL_DISK, 0);
    RsdCmd *read, *cmd;
    Bed bed;

    cfg.disk_write_cache = 16 * PAGE;
    bed = bed_open(&cfg, temp_path("disk.rsd"));
    read = begin(&bed, RSD_READ, 40, 1, 0);     /* the arm is busy */
    run(&bed, RSD_WRITE, 0, 8, 1);
    for_good = true;
    cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 0, 8);
    CHECK(cmd);
    for (uint32_t i = 0; i < 8; i++) {
        fill_page(cmd->data + i * PAGE, NULL, 0, i, 3);
    }
    cmd->fua = true;
    CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
    calls_left = 0;
    CHECK_EQ(outcome(&bed, read), RSD_OK);
    CHECK_EQ(outcome(&bed, cmd), RSD_E_MEDIA);
    for_good = false;
    calls_left = UINT64_MAX;
    expect_pages(&bed, 0, 8, 1);
    bed_close(&bed);
}

/*
 * A rotating disk: what is in its write cache when the medium fails can be
 * read, and no flush says that it is safe.
 */
TEST(rotating_disk)
{
    RsdConfig cfg = config(RSD_FTL_DISK, 0);
    RsdHealth health;
    RsdCmd *cmd;
    Bed bed;

    cfg.disk_write_cache = 16 * PAGE;
    bed = bed_open(&cfg, temp_path("disk.rsd"));
    run(&bed, RSD_WRITE, 0, 8, 1);
    CHECK_EQ(run(&bed, RSD_FLUSH, 0, 0, 0) > 0, true);
    disk_full = true;
    CHECK_EQ(refused(&bed, RSD_WRITE, 7, 2), RSD_E_NOSPC);
    run(&bed, RSD_WRITE, 0, 8, 2);      /* it has space */
    disk_full = false;
    run(&bed, RSD_FLUSH, 0, 0, 0);
    calls_left = 0;
    CHECK_EQ(outcome(&bed, begin(&bed, RSD_READ, 0, 8, 0)), RSD_E_MEDIA);
    expect_pages(&bed, 0, 8, 2);

    for_good = true;
    calls_left = 3;
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 8, 3), 0);
    cmd = begin(&bed, RSD_WRITE, 20, 12, 4);    /* there is no room */
    CHECK_EQ(outcome(&bed, begin(&bed, RSD_FLUSH, 0, 0, 0)), RSD_E_MEDIA);
    bed_drain(&bed);
    (void)cmd;
    calls_left = UINT64_MAX;
    rsd_health(bed.drive, &health);
    CHECK(health.read_only);
    expect_pages(&bed, 0, 8, 3);
    expect_pages(&bed, 20, 12, 0);
    CHECK_EQ(refused(&bed, RSD_WRITE, 0, 1), RSD_E_READONLY);
    bed_reopen(&bed);
    expect_pages(&bed, 0, 3, 3);
    expect_pages(&bed, 3, 5, 2);

    /* to the medium at once */
    cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, 4, 1);
    fill_page(cmd->data, NULL, 0, 4, 5);
    cmd->fua = true;
    calls_left = 0;
    CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
    CHECK_EQ(outcome(&bed, cmd), RSD_E_MEDIA);
    calls_left = UINT64_MAX;
    for_good = false;
    expect_pages(&bed, 4, 1, 2);
    bed_close(&bed);
}
