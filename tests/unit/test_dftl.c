/*
 * The cached map (ftl=dftl): what the host reads is what it wrote; when map
 * pages are read and programmed, by hand; crashes; commands that fail.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>

#include "conventional.h"
#include "floors.h"

/* The host has no more space, or memory for operations (linked by --wrap) */
static bool disk_full;
static uint64_t reserves_left = UINT64_MAX;

int __real_rsd_media_reserve(RsdMedia *media, uint32_t block);
int __wrap_rsd_media_reserve(RsdMedia *media, uint32_t block);
bool __real_rsd_op_reserve(RsdDrive *drive, uint64_t count);
bool __wrap_rsd_op_reserve(RsdDrive *drive, uint64_t count);

int __wrap_rsd_media_reserve(RsdMedia *media, uint32_t block)
{
    return disk_full ? -ENOSPC : __real_rsd_media_reserve(media, block);
}

bool __wrap_rsd_op_reserve(RsdDrive *drive, uint64_t count)
{
    if (!reserves_left) {
        return false;
    }
    reserves_left--;
    return __real_rsd_op_reserve(drive, count);
}

/* 4 dies; 2048 LBAs, of 2 map pages; a cache of 128 entries */
static RsdConfig dftl_config(void)
{
    RsdConfig cfg = small_config();

    cfg.ftl = RSD_FTL_DFTL;
    cfg.blocks = 80;
    cfg.over_provision = 25;
    cfg.map_cache = 1024;
    return cfg;
}

/* Latency of a page that is read, or programmed, on an idle die */
static uint64_t page_time(const RsdConfig *cfg, uint64_t array)
{
    return cfg->t_cmd_ns + cfg->t_xfer_ns + array;
}

TEST(geometry)
{
    RsdConfig cfg = dftl_config();
    Bed bed = bed_open(&cfg, NULL);
    char err[RSD_ERR_LEN] = "";

    CHECK_EQ(bed.geo.lbas, 2048);
    /* the cache, and 4 bytes for each of 2 map pages */
    CHECK_EQ(bed.geo.map_bytes, 1024 + 2 * 4);
    bed_close(&bed);
    cfg.over_provision = 0;
    cfg.spare_blocks = 2;
    CHECK(!rsd_open(NULL, &cfg, err));
    CHECK_SAYS(err, "more than 195 are needed for collection (6 blocks for "
                    "each of 4 frontiers, 3 pages of the map)");
}

/* A map page's update for which there is no memory is made later. */
TEST(update_without_memory)
{
    RsdConfig cfg = dftl_config();
    Bed bed = bed_open(&cfg, NULL);
    uint64_t programs;

    /* the entries of the second half of the cache's worth evict the first */
    for (uint64_t lba = 0; lba < 512; lba += 16) {
        run(&bed, RSD_WRITE, lba, 16, 1);
    }
    programs = counters(&bed).prog_map;
    CHECK(programs > 0);
    reserves_left = 0;
    run(&bed, RSD_TRIM, 0, 1, 0);
    reserves_left = UINT64_MAX;
    bed_pass(&bed, 1000000000);
    CHECK_EQ(counters(&bed).prog_map, programs);
    run(&bed, RSD_READ, 511, 1, 0);
    bed_pass(&bed, 1000000000);
    CHECK_EQ(counters(&bed).prog_map, programs + 1);
    bed_close(&bed);
}

/* Misses, hits and evictions of single commands, and what they cost */
TEST(by_hand)
{
    RsdConfig cfg = dftl_config();
    Bed bed = bed_open(&cfg, NULL);
    uint64_t read = page_time(&cfg, cfg.t_read_ns);
    uint64_t program = page_time(&cfg, cfg.t_prog_ns);
    RsdCounters c;

    /* the map is empty: a miss needs no map page */
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 1, 1), program);
    /* a hit */
    CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), read);
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 1, 1), program);
    c = counters(&bed);
    CHECK_EQ(c.map_misses, 1);
    CHECK_EQ(c.map_hits, 2);
    CHECK_EQ(c.prog_map + c.read_map, 0);
    /* the cache is filled with changed entries */
    for (uint64_t at = 1; at < 128; at++) {
        run(&bed, RSD_WRITE, at, 1, 1);
    }
    c = counters(&bed);
    CHECK_EQ(c.map_misses, 128);
    CHECK_EQ(c.prog_map + c.read_map, 0);
    /* the next evicts one: all 128 are written, in one map page, the first */
    CHECK_EQ(run(&bed, RSD_WRITE, 128, 1, 1), program + program + read);
    c = counters(&bed);
    CHECK_EQ(c.prog_map, 1);
    CHECK_EQ(c.read_map, 1);    /* the entry's, which now has a map page */
    /* and one more evicts a clean one: its own map page is read */
    CHECK_EQ(run(&bed, RSD_WRITE, 129, 1, 1), read + program);
    c = counters(&bed);
    CHECK_EQ(c.prog_map, 1);
    CHECK_EQ(c.read_map, 2);
    /* entries of the other map page, which was never written */
    CHECK_EQ(run(&bed, RSD_WRITE, 1500, 1, 1), program);
    /* LBA 0 was hit again, so it is still there; 1 is the oldest and is not */
    CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), read);
    CHECK_EQ(run(&bed, RSD_READ, 1, 1, 0), read + read);
    c = counters(&bed);
    CHECK_EQ(c.read_map, 3);
    CHECK_EQ(c.map_misses, 132);
    CHECK_EQ(c.map_hits, 3);
    /* one read for what a command needs of a map page */
    CHECK_EQ(c.prog_map, 1);
    run(&bed, RSD_READ, 2, 20, 0);
    c = counters(&bed);
    CHECK_EQ(c.map_misses, 135);        /* 2, 3 and 4 had been evicted */
    CHECK_EQ(c.read_map, 4);
    bed_close(&bed);
}

/* Moved pages change the map, in the cache or in flash. */
TEST(collection_updates_map_pages)
{
    RsdConfig cfg = dftl_config();
    World w = world_open(&cfg, "drive.rsd", 1);
    RsdCounters c;

    world_fill(&w);
    for (int i = 0; i < 1500; i++) {
        world_step(&w);
    }
    world_check(&w);
    world_drain(&w);
    c = counters(&w.bed);
    CHECK(c.prog_clean > 100);
    CHECK(c.prog_map > 100);
    CHECK(c.erase_map > 10);
    CHECK_EQ(c.prog_merge + c.prog_pad + c.media_errors, 0);
    CHECK_EQ(c.erase_clean + c.erase_wear + c.erase_map, c.wear_sum);
    world_close(&w);
}

/* Random commands with a cache of so many bytes, or under ftl=page. */
static RsdCounters counters_of_world(RsdConfig cfg, uint64_t bytes,
                                     uint64_t seed, uint64_t *now)
{
    RsdCounters c;
    World w;

    cfg.ftl = bytes ? RSD_FTL_DFTL : RSD_FTL_PAGE;
    cfg.map_cache = bytes ? bytes : cfg.map_cache;
    w = world_open(&cfg, "drive.rsd", seed);
    world_fill(&w);
    for (int i = 0; i < 1200; i++) {
        world_step(&w);
    }
    world_drain(&w);
    world_fill(&w);
    c = counters(&w.bed);
    *now = w.bed.now;
    world_close(&w);
    return c;
}

/* A cache of the whole map: the drive is the page map, to the last counter. */
TEST(a_cache_of_the_whole_map)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        RsdConfig cfg = dftl_config();
        RsdCounters page, whole;
        uint64_t page_ns, whole_ns;

        cfg.gc_policy = seed % 3;
        cfg.gc_unit = seed / 3;
        cfg.gc_frontiers = seed % 2;
        cfg.wl_threshold = 2;
        cfg.idle_erase_ns = seed % 2 ? 1000000 : 0;
        page = counters_of_world(cfg, 0, seed, &page_ns);
        whole = counters_of_world(cfg, 2048 * 8, seed, &whole_ns);
        CHECK_EQ(whole_ns, page_ns);
        CHECK(whole.erase_clean > 100);
        CHECK(whole.map_hits > 2048);
        whole.map_hits = 0;
        whole.ram_bytes = page.ram_bytes;       /* commands have more */
        CHECK(!memcmp(&whole, &page, sizeof(page)));
        /* an entry less, and it is not */
        whole = counters_of_world(cfg, 2047 * 8, seed, &whole_ns);
        CHECK(whole.map_misses >= 2048);
    }
}

/* The map pages of a life with a small cache are obsolete in the next. */
TEST(a_cache_that_grows_to_the_whole_map)
{
    RsdConfig cfg = dftl_config();
    World w = world_open(&cfg, "drive.rsd", 2);
    uint64_t programs;

    world_fill(&w);
    for (int life = 0; life < 4; life++) {
        for (int i = 0; i < 300; i++) {
            world_step(&w);
        }
        world_drain(&w);
        world_check(&w);
        CHECK(life % 2 || counters(&w.bed).prog_map > 50);
        w.bed.cfg.map_cache = life % 2 ? 1024 : 2048 * 8;
        world_reopen(&w);
        world_check(&w);
        programs = counters(&w.bed).prog_map;
        world_fill(&w);
        CHECK_EQ(counters(&w.bed).prog_map > programs, life % 2);
    }
    world_check(&w);
    world_close(&w);
}

TEST(random_commands)
{
    for (uint64_t seed = 0; seed < 9; seed++) {
        RsdConfig cfg = dftl_config();
        World w;
        RsdCounters c;

        cfg.map_cache = seed % 3 ? 1024 : 4096;
        cfg.gc_policy = seed % 3;
        cfg.gc_unit = seed % 2;
        cfg.frontiers = (const uint64_t[]){ 0, 1, 3, 4 }[seed / 3 % 4];
        cfg.spare_blocks = seed % 3;
        cfg.queue = seed / 2 % 2 ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
        cfg.idle_erase_ns = seed % 4 ? 1000000 : 0;
        cfg.wl_threshold = seed % 3;
        w = world_open(&cfg, "drive.rsd", seed);
        world_fill(&w);
        world_lives(&w, 3, 300, NULL);
        world_fill(&w);
        world_check(&w);
        c = counters(&w.bed);
        CHECK(c.map_misses > 500);
        CHECK(c.prog_map > 50);
        CHECK(c.read_map > 50);
        world_close(&w);
    }
}

TEST(runs_are_equal)
{
    RsdConfig cfg = dftl_config();

    check_runs_are_equal(&cfg, 1500);
}

/* What is in a map page: flash page + 1 of each of its 1024 LBAs */
TEST(map_pages_hold_the_map)
{
    RsdConfig cfg = dftl_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    RsdMedia *media = &bed.drive->media;
    uint32_t found = 0;

    for (uint64_t at = 0; at < 140; at++) {
        run(&bed, RSD_WRITE, at, 1, 1);
    }
    bed_drain(&bed);
    for (uint32_t b = 0; b < 4 * 81; b++) {
        for (uint32_t p = 0; p < rsd_rec_next(media->rec[b]); p++) {
            const RsdSpare *spare = (const RsdSpare *)
                (rsd_media_oob(media, b, p) + RSD_SPARE_OFFSET);
            uint8_t data[PAGE];
            uint32_t number;

            if (spare->kind != 1) {
                continue;
            }
            found++;
            CHECK_EQ(spare->lpn, 0);
            CHECK(rsd_media_load(media, b, p, data));
            memcpy(&number, data + 100 * 4, 4);
            number--;
            spare = (const RsdSpare *)(rsd_media_oob(media, number / 8,
                                                     number % 8) +
                                       RSD_SPARE_OFFSET);
            CHECK_EQ(spare->kind, 0);
            CHECK_EQ(spare->lpn, 100);
        }
    }
    CHECK_EQ(found, counters(&bed).prog_map);
    CHECK(found > 0);
    bed_close(&bed);
}

/* What a write that fails has asked for does not keep others waiting. */
TEST(a_refused_write_leaves_nothing)
{
    RsdConfig cfg = dftl_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    uint64_t misses;

    /* no page for its data */
    disk_full = true;
    CHECK_EQ(refused(&bed, RSD_WRITE, 0, 1), RSD_E_NOSPC);
    disk_full = false;
    for (uint64_t at = 0; at < 128; at++) {
        run(&bed, RSD_WRITE, at, 1, 1);
    }
    bed_drain(&bed);
    /* the cache is full of changed entries, and they cannot be written */
    disk_full = true;
    CHECK_EQ(refused(&bed, RSD_WRITE, 128, 1), RSD_E_NOSPC);
    disk_full = false;
    reserves_left = 0;
    CHECK_EQ(refused(&bed, RSD_WRITE, 128, 1), RSD_E_NOMEM);
    reserves_left = UINT64_MAX;
    /* LBA 1 is evicted, the oldest, for the one that is not refused */
    run(&bed, RSD_WRITE, 128, 1, 1);
    misses = counters(&bed).map_misses;
    run(&bed, RSD_READ, 2, 1, 0);
    CHECK_EQ(counters(&bed).map_misses, misses);
    /* those that have room and cannot read their map page give it back */
    reserves_left = 0;
    for (uint64_t at = 200; at < 400; at++) {
        CHECK_EQ(refused(&bed, RSD_WRITE, at, 1), RSD_E_NOMEM);
    }
    reserves_left = UINT64_MAX;
    run(&bed, RSD_READ, 2, 1, 0);
    CHECK_EQ(counters(&bed).map_misses, misses + 200);
    run(&bed, RSD_WRITE, 400, 1, 1);
    expect_pages(&bed, 400, 1, 1);
    expect_pages(&bed, 0, 129, 1);
    bed_close(&bed);
}

/* The same, of one that fails when half of it is written */
TEST(a_write_that_fails_late_leaves_nothing)
{
    RsdConfig cfg = dftl_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    RsdCounters before, after;
    RsdCmd *cmd, *done;

    for (uint64_t at = 0; at < 128; at++) {
        run(&bed, RSD_WRITE, at, 1, 1);
    }
    bed_drain(&bed);
    before = counters(&bed);
    /* its first 32 pages hit; for the others, 32 entries are to be evicted */
    reserves_left = 32;
    cmd = begin(&bed, RSD_WRITE, 96, 64, 2);
    while (!(done = rsd_advance(bed.drive, bed.now))) {
        CHECK(rsd_next_event(bed.drive, &bed.now));
    }
    CHECK(done == cmd);
    CHECK_EQ(done->status, RSD_E_NOMEM);
    rsd_cmd_free(bed.drive, done);
    reserves_left = UINT64_MAX;
    after = counters(&bed);
    CHECK_EQ(after.host_write_cmds, before.host_write_cmds + 1);
    CHECK_EQ(after.host_write_pages, before.host_write_pages);
    CHECK_EQ(after.prog_host, before.prog_host + 32);
    CHECK_EQ(after.map_misses, before.map_misses + 32);
    /* those of LBA 0 to 31 were chosen, and are room enough for this one */
    run(&bed, RSD_WRITE, 128, 1, 1);
    run(&bed, RSD_READ, 32, 1, 0);
    CHECK_EQ(counters(&bed).map_misses, after.map_misses + 1);
    expect_pages(&bed, 0, 96, 1);
    expect_pages(&bed, 96, 32, 2);
    bed_close(&bed);
}

/* 400 LBAs of one map page, of which the last are in the cache */
static Bed with_map_page(const RsdConfig *cfg)
{
    Bed bed = bed_open(cfg, temp_path("drive.rsd"));

    for (uint64_t at = 0; at < 400; at++) {
        run(&bed, RSD_WRITE, at, 1, 1);
    }
    bed_drain(&bed);
    return bed;
}

/* A trim while a map page is updated for another one is not forgotten. */
TEST(changes_during_an_update)
{
    RsdConfig cfg = dftl_config();
    Bed bed = with_map_page(&cfg);
    uint64_t updates = counters(&bed).prog_map;

    /* both before the old map page is read */
    run(&bed, RSD_TRIM, 10, 1, 0);
    run(&bed, RSD_TRIM, 11, 1, 0);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).prog_map, updates + 1);
    /* the second while the new one is being programmed */
    run(&bed, RSD_TRIM, 12, 1, 0);
    bed_pass(&bed, page_time(&cfg, cfg.t_read_ns) + cfg.t_prog_ns / 2);
    run(&bed, RSD_TRIM, 13, 1, 0);
    run(&bed, RSD_TRIM, 14, 1, 0);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).prog_map, updates + 3);
    bed_close(&bed);
}

/* Of updates that go on when it is formatted, none is begun any more. */
TEST(a_format_ends_updates)
{
    RsdConfig cfg = dftl_config();
    RsdCounters before, after;
    uint64_t when;

    for (int late = 0; late < 2; late++) {
        Bed bed = with_map_page(&cfg);

        run(&bed, RSD_TRIM, 10, 1, 0);
        bed_pass(&bed, late ? page_time(&cfg, cfg.t_read_ns) +
                              cfg.t_prog_ns / 2 : 0);
        before = counters(&bed);
        CHECK(rsd_next_event(bed.drive, &when));
        CHECK_EQ(rsd_format(bed.drive, 0, 0, bed.now), RSD_OK);
        bed_drain(&bed);
        after = counters(&bed);
        CHECK_EQ(after.prog_map, before.prog_map + late);
        CHECK_EQ(after.read_map, before.read_map + !late);
        /* the map is empty, in the cache and in flash */
        run(&bed, RSD_READ, 390, 1, 0);
        run(&bed, RSD_WRITE, 5, 1, 2);
        bed_drain(&bed);
        CHECK_EQ(counters(&bed).map_misses, after.map_misses + 2);
        CHECK_EQ(counters(&bed).read_map, after.read_map);
        CHECK_EQ(counters(&bed).prog_map, after.prog_map);
        expect_pages(&bed, 0, 5, 0);
        expect_pages(&bed, 5, 1, 2);
        expect_pages(&bed, 6, 394, 0);
        bed_close(&bed);
    }
}

/* Blocks die until the drive takes no more; all that was taken is there. */
TEST(wearing_out)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        RsdConfig cfg = dftl_config();

        cfg.blocks = 40;
        cfg.over_provision = seed % 2 ? 25 : 30;
        cfg.spare_blocks = seed % 2 ? 1 : 12;
        wear_out(&cfg, seed);
    }
}
