/*
 * The host's machine loses its power (host-sync). What a sync has not brought to
 * the disk is there or not, page by page, as chance has it: of the media file
 * and of FILE.sync. At random moments, and in the middle of syncs, such files
 * are opened: everything that a flush or FUA has made safe is there.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conventional.h"
#include "floors.h"
#include "rsd-power.h"
#include "stores.h"

#define MAX_BYTES (32u << 20)

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

/* A file as the host has it in memory, and as it is on the disk */
typedef struct Image {
    uint8_t *now, *disk;
    size_t len, disk_len;
} Image;

static Image media, journal;
static const char *path;        /* of the media file; NULL: nothing is lost */
static Bed copy;                /* what is opened of a crash */
static void (*verify_copy)(void);
static uint64_t syncs, crashes, every;
static bool sync_fails;         /* the next one */
static Rng chance;

static char *beside(const char *of)
{
    char *name;

    CHECK(asprintf(&name, "%s.sync", of) > 0);
    return name;
}

static size_t read_file(const char *name, uint8_t *to)
{
    int fd = open(name, O_RDONLY);
    ssize_t n;

    if (fd < 0) {
        return 0;
    }
    n = pread(fd, to, MAX_BYTES, 0);
    CHECK(n >= 0 && n < MAX_BYTES);
    close(fd);
    return n;
}

/* Each page as it was on the disk, or as it is */
static void leave_file(const Image *image, const char *name)
{
    size_t len = rng_below(&chance, 2) ? image->len : image->disk_len;
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0);
    for (size_t at = 0; at < len; at += PAGE) {
        size_t n = len - at < PAGE ? len - at : PAGE;
        const uint8_t *disk = image->disk + at, *now = image->now + at;

        if (memcmp(disk, now, n) && rng_below(&chance, 2)) {
            disk = now;
        }
        CHECK(pwrite(fd, disk, n, at) == (ssize_t)n);
    }
    CHECK(!ftruncate(fd, len));
    close(fd);
}

/* The machine loses its power now. */
static void crash(void)
{
    const char *was = path;
    char *from = beside(path), *to = beside(copy.path);

    memset(journal.now, 0, journal.len > journal.disk_len ? journal.len
                                                          : journal.disk_len);
    media.len = read_file(path, media.now);
    journal.len = read_file(from, journal.now);
    leave_file(&media, copy.path);
    leave_file(&journal, to);
    path = NULL;
    copy.drive = NULL;
    bed_reopen(&copy);
    verify_copy();
    rsd_close(copy.drive);
    CHECK(access(to, F_OK));
    path = was;
    crashes++;
    free(from);
    free(to);
}

int __wrap_fdatasync(int fd)
{
    char link[64], name[4096];
    Image *image;
    ssize_t n;

    if (sync_fails) {
        sync_fails = false;
        errno = EIO;
        return -1;
    }
    if (!path) {
        return 0;
    }
    if (++syncs % every == 0) {
        crash();
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof(name) - 1);
    CHECK(n > 0);
    name[n] = 0;
    image = strcmp(name, path) ? &journal : &media;
    image->disk_len = read_file(name, image->disk);
    return 0;
}

static uint8_t *new_bytes(void)
{
    void *mem = mmap(NULL, MAX_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CHECK(mem != MAP_FAILED);
    return mem;
}

/* From now on, of a drive that is closed */
static void may_crash(const Bed *bed, uint64_t seed, void (*verify)(void))
{
    if (!media.now) {
        media.now = new_bytes();
        media.disk = new_bytes();
        journal.now = new_bytes();
        journal.disk = new_bytes();
    }
    media.disk_len = read_file(bed->path, media.disk);
    journal.disk_len = 0;
    chance.state = seed;
    copy = (Bed){ .cfg = bed->cfg, .path = temp_path("copy.rsd") };
    verify_copy = verify;
    path = bed->path;
}

static void no_crash(void)
{
    path = NULL;
    unlink(copy.path);
    free((char *)copy.path);
}

/*
 * Conventional namespaces
 */

static RsdConfig config(RsdFtl ftl, uint64_t seed)
{
    RsdConfig cfg = small_config();

    cfg.ftl = ftl;
    cfg.ways = 1;
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
    if (seed % 3 == 0) {
        return cfg;
    }
    cfg.page_size = seed % 3 == 1 ? 16384 : 4096;
    cfg.pages = seed % 3 == 1 ? 4 : 16;
    cfg.over_provision = 60;
    cfg.write_buffer = 65536;
    cfg.plp = seed / 3 % 2;
    cfg.ack = seed / 2 % 2 ? RSD_ACK_BUFFER : RSD_ACK_PROGRAM;
    return cfg;
}

static World *world;

static void verify_world(void)
{
    world_verify(&copy, world->model, false);
}

static void lose_power(RsdFtl ftl)
{
    uint64_t copies = 0;

    crashes = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        RsdConfig cfg = config(ftl, seed);
        World w = world_open(&cfg, "drive.rsd", seed);
        RsdCounters c;

        world = &w;
        every = 7 + seed;
        w.lazy = true;
        world_fill(&w);
        w.bed.synced = true;
        rsd_close(w.bed.drive);
        w.bed.drive = NULL;
        may_crash(&w.bed, seed, verify_world);
        world_reopen(&w);
        for (int i = 0; i < 300; i++) {
            world_step(&w);
            if (!rng_below(&chance, 12)) {
                crash();
            }
        }
        c = counters(&w.bed);
        copies += c.prog_clean + c.prog_merge + c.prog_wear;
        no_crash();
        world_drain(&w);
        world_reopen(&w);
        world_close(&w);
    }
    CHECK(crashes > 300);
    CHECK(copies > 300);
}

/*
 * Zones
 */

#define ZONE_PAGES 64u

/* What a page may hold: what is safe, and all that came after it */
typedef struct PageModel {
    uint64_t tags[MAX_LATER];
    uint32_t n;
} PageModel;

static struct {
    PageModel pages[16][ZONE_PAGES];
    uint32_t next[16];
    uint32_t zones;
} zoned;

static void hold(uint32_t zone, uint32_t page, uint64_t tag)
{
    PageModel *m = &zoned.pages[zone][page];

    CHECK(m->n < MAX_LATER);
    m->tags[m->n++] = tag;
}

static void verify_zones(void)
{
    uint32_t oob = rsd_config(copy.drive)->oob;

    for (uint32_t z = 0; z < zoned.zones; z++) {
        RsdCmd *cmd = begin(&copy, RSD_READ, lba(&copy, z, 0),
                            copy.geo.zone_capacity, 0);

        await(&copy, cmd);
        for (uint32_t p = 0; p < copy.geo.zone_capacity; p++) {
            const PageModel *m = &zoned.pages[z][p];
            uint32_t i = 0;

            while (i < m->n && !page_matches(cmd->data + p * PAGE,
                                             cmd->oob + p * oob, oob,
                                             cmd->lba + p, m->tags[i])) {
                i++;
            }
            if (i == m->n) {
                FAIL("page %u of zone %u is not what was safe, nor one of %u "
                     "later ones", p, z, m->n - 1);
            }
        }
        rsd_cmd_free(copy.drive, cmd);
    }
}

/* What every page holds last is safe; in the beginning that is nothing. */
static void all_safe(void)
{
    for (uint32_t z = 0; z < zoned.zones; z++) {
        for (uint32_t p = 0; p < ZONE_PAGES; p++) {
            PageModel *m = &zoned.pages[z][p];

            if (m->n) {
                m->tags[0] = m->tags[m->n - 1];
            }
            m->n = 1;
        }
    }
}

static void sync_zones(Bed *bed)
{
    bed_drain(bed);
    CHECK_EQ(rsd_media_sync(bed->drive), 0);
    all_safe();
}

static void zone_step(Bed *bed, uint64_t tag)
{
    uint32_t z = rng_below(&chance, zoned.zones);
    uint32_t left = bed->geo.zone_capacity - zoned.next[z];
    uint32_t n = 1 + rng_below(&chance, 6);

    if (!left || !rng_below(&chance, 20)) {
        run(bed, RSD_ZONE_RESET, lba(bed, z, 0), 0, 0);
        for (uint32_t p = 0; p < zoned.next[z]; p++) {
            hold(z, p, 0);
        }
        zoned.next[z] = 0;
        return;
    }
    n = n < left ? n : left;
    for (uint32_t i = 0; i < n; i++) {
        hold(z, zoned.next[z] + i, tag);
    }
    run(bed, RSD_WRITE, lba(bed, z, zoned.next[z]), n, tag);
    zoned.next[z] += n;
}

TEST(zones)
{
    crashes = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        RsdConfig cfg = small_config();
        Bed bed;

        cfg.idle_erase_ns = seed % 4 ? 1000000 : 0;
        cfg.wl_threshold = seed % 3;
        cfg.reset = seed / 2 % 2;
        if (seed % 3) {
            cfg.write_buffer = 262144;
            cfg.page_size = 16384;
            cfg.plp = seed / 3 % 2;
            cfg.ack = RSD_ACK_PROGRAM;
            cfg.pages = 4;
        }
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        bed.synced = true;
        CHECK(bed.geo.zone_capacity <= ZONE_PAGES);
        memset(&zoned, 0, sizeof(zoned));
        zoned.zones = bed.geo.num_zones;
        all_safe();
        every = 7 + seed;
        rsd_close(bed.drive);
        may_crash(&bed, seed, verify_zones);
        bed.drive = rsd_open_synced(bed.path, &bed.cfg,
                                    (char[RSD_ERR_LEN]){ 0 });
        CHECK(bed.drive);
        for (uint64_t i = 1; i <= 400; i++) {
            zone_step(&bed, i);
            bed_pass(&bed, rng_below(&chance, 2) * 20000000);
            if (!rng_below(&chance, 12)) {
                crash();
            }
            if (!rng_below(&chance, 12)) {
                sync_zones(&bed);
            }
        }
        no_crash();
        bed_close(&bed);
    }
    CHECK(crashes > 300);
}

/* Pages of an area are written again and again, each time to another place. */
TEST(random_write_areas)
{
    RsdConfig cfg = small_config();
    Bed bed;

    cfg.write_buffer = 262144;
    cfg.zrwa = 2;
    cfg.zrwa_size = 16 * PAGE;
    cfg.zrwa_flush = 4 * PAGE;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    bed.synced = true;
    memset(&zoned, 0, sizeof(zoned));
    zoned.zones = bed.geo.num_zones;
    all_safe();
    crashes = 0;
    every = 5;
    rsd_close(bed.drive);
    may_crash(&bed, 1, verify_zones);
    bed.drive = rsd_open_synced(bed.path, &bed.cfg, (char[RSD_ERR_LEN]){ 0 });
    CHECK(bed.drive);
    run(&bed, RSD_ZRWA_OPEN, 0, 0, 0);
    for (uint64_t i = 1; i <= 300; i++) {
        uint32_t page = rng_below(&chance, 16);

        hold(0, page, i);
        run(&bed, RSD_WRITE, page, 1, i);
        if (!rng_below(&chance, 4)) {
            crash();
        }
        if (!rng_below(&chance, 6)) {
            sync_zones(&bed);
        }
    }
    CHECK(crashes > 50);
    no_crash();
    bed_close(&bed);
}

/*
 * FILE.sync
 */

/* A process writes a tag, syncs, writes another one, and is killed. */
static void write_and_die(Bed *bed, uint64_t tag)
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (!pid) {
        bed->synced = true;
        bed->now = 0;
        bed->drive = rsd_open_synced(bed->path, &bed->cfg,
                                     (char[RSD_ERR_LEN]){ 0 });
        CHECK(bed->drive);
        run(bed, RSD_WRITE, 0, 4, tag);
        CHECK_EQ(rsd_media_sync(bed->drive), 0);
        run(bed, RSD_WRITE, 0, 4, tag + 1);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && !status);
}

TEST(a_killed_process)
{
    RsdConfig cfg = config(RSD_FTL_PAGE, 0);
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    char err[RSD_ERR_LEN] = "";
    char *name = beside(bed.path);

    rsd_close(bed.drive);
    write_and_die(&bed, 7);
    CHECK(!access(name, F_OK));
    bed.drive = rsd_open_view(bed.path, NULL, err);
    CHECK(bed.drive);
    expect_pages(&bed, 0, 4, 7);
    rsd_close(bed.drive);
    CHECK(!access(name, F_OK));
    bed.drive = rsd_open(bed.path, &bed.cfg, err);
    CHECK(bed.drive);
    expect_pages(&bed, 0, 4, 7);
    CHECK(access(name, F_OK));
    bed_reopen(&bed);
    expect_pages(&bed, 0, 4, 7);
    bed_close(&bed);
    free(name);
}

/* It is closed in order: nothing is lost, and no second file is left. */
TEST(closed)
{
    RsdConfig cfg = config(RSD_FTL_PAGE, 0);
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    char *name = beside(bed.path);

    bed.synced = true;
    bed_reopen(&bed);
    CHECK(!access(name, F_OK));
    run(&bed, RSD_WRITE, 0, 4, 7);
    bed.synced = false;
    rsd_close(bed.drive);
    CHECK(access(name, F_OK));
    bed.drive = rsd_open(bed.path, &bed.cfg, (char[RSD_ERR_LEN]){ 0 });
    expect_pages(&bed, 0, 4, 7);
    run(&bed, RSD_WRITE, 0, 4, 8);
    bed.synced = true;
    bed_reopen(&bed);
    run(&bed, RSD_WRITE, 4, 4, 9);
    rsd_sync_end(bed.drive);    /* the process ends */
    CHECK(access(name, F_OK));
    rsd_close(bed.drive);
    bed.drive = rsd_open(bed.path, &bed.cfg, (char[RSD_ERR_LEN]){ 0 });
    expect_pages(&bed, 0, 4, 8);
    expect_pages(&bed, 4, 4, 9);
    bed_close(&bed);
    free(name);
}

/*
 * A sync fails that was to come before an overwrite: nothing is overwritten,
 * and what the sync before it made safe is there.
 */
TEST(a_failed_sync)
{
    RsdConfig cfg = small_config();
    char err[RSD_ERR_LEN] = "";
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    uint32_t n;
    RsdMedia *m;

    bed.synced = true;
    bed_reopen(&bed);
    n = bed.geo.zone_capacity;
    run(&bed, RSD_WRITE, 0, n, 7);
    CHECK_EQ(rsd_media_sync(bed.drive), 0);
    m = &bed.drive->media;
    sync_fails = true;
    for (uint32_t b = 0; b < cfg.blocks; b++) {
        if (rsd_rec_next(m->rec[b])) {
            CHECK_EQ(rsd_nand_tear_block(m, b), RSD_E_MEDIA);
        }
    }
    CHECK(!sync_fails);
    CHECK(!rsd_media_store(m, 0, 0, (uint8_t[PAGE]){ 0 }));
    CHECK_EQ(rsd_media_sync(bed.drive), -EIO);
    rsd_close(bed.drive);
    bed.drive = rsd_open(bed.path, &bed.cfg, err);
    CHECK(bed.drive);
    expect_pages(&bed, 0, n, 7);
    bed_close(&bed);
}

/* Reads change no table but the counters, which an orderly end keeps. */
TEST(counters_at_the_end)
{
    RsdConfig cfg = config(RSD_FTL_PAGE, 0);
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    uint64_t reads;

    bed.synced = true;
    bed_reopen(&bed);
    run(&bed, RSD_WRITE, 0, 4, 7);
    CHECK_EQ(rsd_media_sync(bed.drive), 0);
    reads = counters(&bed).host_read_cmds;
    expect_pages(&bed, 0, 4, 7);
    CHECK(counters(&bed).host_read_cmds > reads);
    reads = counters(&bed).host_read_cmds;
    bed_reopen(&bed);
    CHECK_EQ(counters(&bed).host_read_cmds, reads);
    bed_close(&bed);
}

TEST(a_file_of_another_time)
{
    RsdConfig cfg = config(RSD_FTL_PAGE, 0);
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    const char *old = temp_path("old.rsd");
    char err[RSD_ERR_LEN] = "";
    char *name = beside(bed.path);

    run(&bed, RSD_WRITE, 0, 4, 5);
    rsd_close(bed.drive);
    write_and_die(&bed, 6);
    bed.drive = rsd_open(bed.path, &bed.cfg, err);
    CHECK(bed.drive);
    rsd_close(bed.drive);
    copy_media(bed.path, old);
    write_and_die(&bed, 7);
    write_and_die(&bed, 9);
    copy_media(old, bed.path);
    CHECK(!rsd_open(bed.path, &bed.cfg, err));
    CHECK_SAYS(err, "drive.rsd.sync does not belong to the ");
    CHECK_SAYS(err, "or remove it");
    /* what it says to do */
    CHECK(!unlink(name));
    bed.drive = rsd_open(bed.path, &bed.cfg, err);
    CHECK(bed.drive);
    expect_pages(&bed, 0, 4, 6);
    rsd_close(bed.drive);
    /* a new drive of that name has nothing to do with it */
    write_and_die(&bed, 11);
    unlink(bed.path);
    CHECK(rsd_media_create(bed.path, &cfg, err));
    CHECK(access(name, F_OK));
    unlink(bed.path);
    unlink(old);
    free((char *)old);
    free((char *)bed.path);
    free(name);
}

TEST(page)
{
    lose_power(RSD_FTL_PAGE);
}

TEST(dftl)
{
    lose_power(RSD_FTL_DFTL);
}

TEST(block)
{
    lose_power(RSD_FTL_BLOCK);
}

TEST(fast)
{
    lose_power(RSD_FTL_FAST);
}
