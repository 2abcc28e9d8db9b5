/*
 * The media file: persistence, refusals that leave it alone, a full disk.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "floors.h"

/* Where the header's fields are: written down here a second time */
enum {
    AT_VERSION = 8, AT_INCOMPAT = 24, AT_CHANNELS = 32, AT_CRC = 324,
    AT_OOB = 2048, REC_OFF = 4096, MAP_OFF = 8192,
};

static void poke(const char *path, uint64_t offset, const void *bytes,
                 size_t len)
{
    int fd = open(path, O_WRONLY);

    CHECK(fd >= 0);
    CHECK(pwrite(fd, bytes, len, offset) == (ssize_t)len);
    close(fd);
}

/* Opening must fail, say this, and leave the file as it is. */
static void refuse(const char *path, const RsdConfig *cfg, const char *says)
{
    uint64_t before = file_hash(path);
    char err[RSD_ERR_LEN] = "";
    struct stat a, b;

    CHECK(!stat(path, &a));
    CHECK(!rsd_open(path, cfg, err));
    CHECK_SAYS(err, says);
    CHECK_EQ(file_hash(path), before);
    CHECK(!stat(path, &b));
    CHECK_EQ(a.st_size, b.st_size);
    CHECK_EQ(a.st_blocks, b.st_blocks);
}

static const char *new_file(const RsdConfig *cfg)
{
    Bed bed = bed_open(cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 9, 1);
    rsd_close(bed.drive);
    return bed.path;
}

TEST(everything_survives_closing)
{
    for (int by_way = 0; by_way < 2; by_way++) {
        RsdConfig cfg = small_config();
        RsdCounters before, after;
        uint8_t ext[128];
        Bed bed;

        cfg.zd_ext = 128;
        cfg.segment = by_way ? RSD_SEGMENT_WAY : RSD_SEGMENT_ALL;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        for (uint32_t z = 0; z < bed.geo.num_zones; z++) {
            for (int i = 0; i < 3; i++) {
                run(&bed, RSD_WRITE, lba(&bed, z, 0), 5 + z, 10 * i + z + 1);
                if (i < 2) {
                    run(&bed, RSD_ZONE_RESET, lba(&bed, z, 0), 0, 0);
                }
            }
            rsd_zone_save(bed.drive, z, 10 + z, 20 + z);
            memset(ext, 30 + z, sizeof(ext));
            rsd_zone_set_ext(bed.drive, z, ext);
        }
        CHECK_EQ(rsd_media_sync(bed.drive), 0);
        before = counters(&bed);
        bed_reopen(&bed);
        after = counters(&bed);
        before.ram_bytes = after.ram_bytes = 0;
        CHECK(!memcmp(&before, &after, sizeof(before)));
        CHECK(after.erase_host > 0);
        for (uint32_t z = 0; z < bed.geo.num_zones; z++) {
            RsdZone info;

            rsd_zone_get(bed.drive, z, &info);
            CHECK_EQ(info.state, 10 + z);
            CHECK_EQ(info.attrs, 20 + z);
            CHECK_EQ(info.written, 5 + z);
            CHECK_EQ(rsd_zone_ext(bed.drive, z)[127], 30 + z);
            expect_pages(&bed, lba(&bed, z, 0), 5 + z, 20 + z + 1);
            expect_pages(&bed, lba(&bed, z, 5 + z), 16 - 5 - z, 0);
            /* and it goes on from there */
            run(&bed, RSD_WRITE, lba(&bed, z, 5 + z), 2, 77);
            expect_pages(&bed, lba(&bed, z, 5 + z), 2, 77);
        }
        bed_close(&bed);
    }
}

/*
 * 16 TB of zones, of blocks as large drives have them and of 4 MiB, open in
 * seconds of processor time and a part of a GiB of memory; what the file takes
 * on the disk is its tables, and what was written. Both are close to the largest
 * file of ext4, 16 TiB.
 */
TEST(sixteen_terabytes)
{
    for (int i = 0; i < 2; i++) {
        clock_t start = clock();
        RsdConfig cfg;
        RsdCounters c;
        struct stat st;
        Bed bed;

        rsd_preset_find(i ? "risa" : "tlc-2024")->apply(&cfg);
        cfg.ftl = RSD_FTL_RSD;
        if (i) {
            cfg.channels = cfg.ways = 16;
            cfg.pages = 1024;
            cfg.blocks = 15000;
        } else {
            cfg.blocks = 2808;
        }
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        run(&bed, RSD_WRITE, lba(&bed, bed.geo.num_zones - 1, 0), 9, 1);
        bed_reopen(&bed);
        expect_pages(&bed, lba(&bed, bed.geo.num_zones - 1, 0), 9, 1);
        c = counters(&bed);
        CHECK(c.capacity_bytes > UINT64_C(16000000000000));
        CHECK(c.ram_bytes < (i ? 256u : 32u) << 20);
        CHECK(!stat(bed.path, &st));
        CHECK(st.st_blocks * UINT64_C(512) < 128u << 20);
        CHECK(clock() - start < 2 * 5 * CLOCKS_PER_SEC);  /* opened twice */
        bed_close(&bed);
    }
}

TEST(other_settings_may_change)
{
    RsdConfig cfg = small_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));

    run(&bed, RSD_WRITE, 0, 9, 1);
    for (size_t i = 0; i < rsd_num_props; i++) {
        if (!rsd_props[i].geometry) {
            *rsd_prop_value(&bed.cfg, &rsd_props[i]) = rsd_props[i].max;
        }
    }
    bed.cfg.cache = bed.cfg.suspend = RSD_OFF;  /* not with queue=global */
    bed_reopen(&bed);
    /* what the last format said, not what is asked for */
    CHECK_EQ(rsd_config(bed.drive)->oob, 16);
    CHECK_EQ(rsd_config(bed.drive)->t_read_ns, 1000000000);
    expect_pages(&bed, 0, 9, 1);
    bed_close(&bed);
}

TEST(info_reads_the_settings)
{
    RsdConfig cfg = small_config(), info;
    char err[RSD_ERR_LEN] = "";
    const char *path;
    Bed bed;

    cfg.seed = 1234567890123456789u;
    cfg.segment = RSD_SEGMENT_WAY;
    cfg.bad_ppm = 1;
    path = new_file(&cfg);
    CHECK(rsd_media_info(path, &info, err));
    for (size_t i = 0; i < rsd_num_props; i++) {
        if (rsd_props[i].geometry) {
            CHECK_EQ(*rsd_prop_value(&info, &rsd_props[i]),
                     *rsd_prop_value(&cfg, &rsd_props[i]));
        }
    }
    CHECK_EQ(info.oob, 16);
    /* also of a file in use */
    bed = (Bed){ .cfg = cfg, .path = path };
    bed_reopen(&bed);
    CHECK(rsd_media_info(path, &info, err));
    bed_close(&bed);
    CHECK(!rsd_media_info("/nonexistent/file", &info, err));
    CHECK_SAYS(err, "/nonexistent/file");
}

TEST(a_file_has_one_user)
{
    RsdConfig cfg = small_config();
    char err[RSD_ERR_LEN] = "";
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    uint64_t before;
    int status;
    pid_t pid;

    run(&bed, RSD_WRITE, 0, 9, 1);
    before = file_hash(bed.path);
    CHECK(!rsd_open(bed.path, &cfg, err));
    CHECK_SAYS(err, "in use by another process");
    pid = fork();
    if (!pid) {
        rsd_close(bed.drive);   /* the child's, so the lock is the parent's */
        _exit(rsd_open(bed.path, &cfg, err) != NULL);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(file_hash(bed.path), before);
    bed_reopen(&bed);
    bed_close(&bed);
}

TEST(create_never_overwrites)
{
    RsdConfig cfg = small_config();
    char err[RSD_ERR_LEN] = "";
    const char *path = new_file(&cfg);
    uint64_t before = file_hash(path);

    CHECK(!rsd_media_create(path, &cfg, err));
    CHECK_SAYS(err, path);
    CHECK_SAYS(err, "File exists");
    CHECK_EQ(file_hash(path), before);
    unlink(path);
    CHECK(!rsd_media_create("/nonexistent/x", &cfg, err));
    CHECK_SAYS(err, "No such file or directory");
    free((char *)path);
}

TEST(a_little_write_reserves_little)
{
    RsdConfig cfg = small_config();
    const char *path = temp_path("large.rsd");
    struct stat before, after;
    RsdGeometry geo;
    Bed bed;

    cfg.pages = 16384;          /* blocks of 64 MiB */
    bed = bed_open(&cfg, path);
    CHECK_EQ(stat(path, &before), 0);
    run(&bed, RSD_WRITE, 0, 1, 1);
    rsd_geometry(bed.drive, 0, &geo);
    run(&bed, RSD_WRITE, geo.zone_size, 1, 1);
    CHECK_EQ(stat(path, &after), 0);
    CHECK((after.st_blocks - before.st_blocks) * 512 < 8 << 20);
    /* nor does opening it again */
    bed_reopen(&bed);
    CHECK(run(&bed, RSD_READ, 0, 1, 1) > 0);
    CHECK_EQ(stat(path, &after), 0);
    CHECK((after.st_blocks - before.st_blocks) * 512 < 8 << 20);
    bed_close(&bed);
}

TEST(a_new_file_is_sparse)
{
    RsdConfig cfg;
    char err[RSD_ERR_LEN] = "";
    const char *path = temp_path("drive.rsd");
    struct stat st;

    rsd_preset_find("risa")->apply(&cfg);
    CHECK(rsd_media_create(path, &cfg, err));
    CHECK(!stat(path, &st));
    CHECK(st.st_size > INT64_C(2) << 30);
    CHECK(st.st_blocks * 512 < 1 << 20);
    unlink(path);
    free((char *)path);
}

TEST(erased_blocks_give_their_space_back)
{
    RsdConfig cfg = small_config();
    struct stat empty, full, erased;
    Bed bed;

    cfg.reset = RSD_RESET_ERASE;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    CHECK(!stat(bed.path, &empty));
    run(&bed, RSD_WRITE, 0, 32, 1);
    CHECK(!stat(bed.path, &full));
    CHECK((full.st_blocks - empty.st_blocks) * 512 >= 32 * 4096);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    CHECK(!stat(bed.path, &erased));
    CHECK(erased.st_blocks <= empty.st_blocks + 16);
    bed_close(&bed);
}

TEST(each_geometry_difference_is_named)
{
    RsdConfig cfg = small_config();
    const char *path;
    char text[128];

    cfg.bad_ppm = 1;
    cfg.blocks = 12;
    cfg.write_buffer = 1 << 20;     /* so that there may be any "zrwa" */
    cfg.zrwa_size = cfg.zrwa_flush = 4096;
    path = new_file(&cfg);
    for (size_t i = 0; i < rsd_num_props; i++) {
        const RsdProp *prop = &rsd_props[i];
        RsdConfig other = cfg;
        uint64_t *value = rsd_prop_value(&other, prop);

        if (!prop->geometry || prop->min == prop->max) {
            continue;
        }
        if (!strcmp(prop->name, "zd-ext")) {
            *value = 64;
        } else if (!strcmp(prop->name, "blocks")) {
            *value = 24;
        } else if (!strcmp(prop->name, "page-size")) {
            *value = 8192;
        } else if (!strcmp(prop->name, "write-buffer")) {
            *value += 4096;
        } else if (prop->kind == RSD_PROP_ENUM) {
            *value = !*value;
        } else {
            *value += 1;
        }
        if (prop->kind == RSD_PROP_ENUM) {
            snprintf(text, sizeof(text),
                     "%s: the file has %s, %s was asked for", prop->name,
                     prop->names[!*value], prop->names[*value]);
        } else {
            snprintf(text, sizeof(text), "%s: the file has %" PRIu64 ", %"
                     PRIu64 " was asked for", prop->name,
                     *rsd_prop_value(&cfg, prop), *value);
        }
        refuse(path, &other, text);
        refuse(path, &other, path);
    }
    RsdConfig other = cfg;
    other.channels = 4;
    other.ways = 1;
    refuse(path, &other, "channels: the file has 2, 4 was asked for; "
                          "ways: the file has 2, 1 was asked for");
    unlink(path);
    free((char *)path);
}

TEST(foreign_and_damaged_files)
{
    RsdConfig cfg = small_config();
    const char *path = new_file(&cfg);
    struct stat st;
    uint64_t word;

    CHECK(!stat(path, &st));
    /* cut short, extended */
    CHECK(!truncate(path, st.st_size - 4096));
    refuse(path, &cfg, "truncated");
    CHECK(!truncate(path, 100));
    refuse(path, &cfg, "100 bytes");
    CHECK(!truncate(path, 0));
    refuse(path, &cfg, "not an rsd media file");
    unlink(path);
    free((char *)path);

    path = new_file(&cfg);
    CHECK(!truncate(path, st.st_size + 1));
    refuse(path, &cfg, "extended");
    CHECK(!truncate(path, st.st_size));
    /* another version, unknown features, a flipped bit everywhere */
    word = 1;
    poke(path, AT_VERSION, &word, 4);
    refuse(path, &cfg, "version 1");
    word = 5;
    poke(path, AT_VERSION, &word, 4);
    word = 1;
    poke(path, AT_OOB, &word, 8);
    refuse(path, &cfg, "corrupt header (oob=1");
    word = 16;
    poke(path, AT_OOB, &word, 8);
    for (uint64_t at = 12; at < AT_CRC + 4; at++) {
        uint8_t byte;
        int fd = open(path, O_RDONLY);

        CHECK(pread(fd, &byte, 1, at) == 1);
        close(fd);
        byte ^= 0x10;
        poke(path, at, &byte, 1);
        refuse(path, &cfg, "corrupt header");
        byte ^= 0x10;
        poke(path, at, &byte, 1);
    }
    poke(path, 0, "QFI\xfb", 4);
    refuse(path, &cfg, "not an rsd media file");
    unlink(path);
    free((char *)path);
}

TEST(damaged_tables)
{
    RsdConfig cfg = small_config();
    const char *path = new_file(&cfg);
    uint64_t rec = rsd_rec(0, 9, 0);
    uint32_t entry[4];
    int fd;

    /* more pages than a block has */
    poke(path, REC_OFF + 8, &rec, 8);
    refuse(path, &cfg, "block 1 has 9 pages");
    rec = rsd_rec(0, 0, 0);
    poke(path, REC_OFF + 8, &rec, 8);
    /* a block that does not exist, one that is bad, one used twice */
    fd = open(path, O_RDONLY);
    CHECK(pread(fd, entry, 16, MAP_OFF) == 16);
    close(fd);
    for (int i = 0; i < 3; i++) {
        uint32_t bad = entry[2];

        if (i == 0) {
            bad += 5;
        } else if (i == 1) {
            bad ^= 3u << 30;
        } else {
            rec = rsd_rec(0, 1, RSD_BLOCK_BAD);
            poke(path, REC_OFF + 8 * (2 * 5 + (bad & 7)), &rec, 8);
        }
        poke(path, MAP_OFF + 8, &bad, 4);
        refuse(path, &cfg, "zone 0, lane 2");
        poke(path, MAP_OFF + 8, &entry[2], 4);
    }
    unlink(path);
    free((char *)path);

    path = new_file(&cfg);
    /* zone 1 claims zone 0's blocks */
    poke(path, MAP_OFF + 16, entry, 16);
    refuse(path, &cfg, "zone 1, lane 0");
    unlink(path);
    free((char *)path);
}

TEST(names_that_are_no_files)
{
    RsdConfig cfg = small_config();
    char err[RSD_ERR_LEN] = "";

    CHECK(!rsd_open("/nonexistent/drive", &cfg, err));
    CHECK_SAYS(err, "/nonexistent/drive: cannot open it");
    CHECK(!rsd_open("/tmp", &cfg, err));
    CHECK_SAYS(err, "/tmp");
    CHECK(!rsd_open("/dev/null", &cfg, err));
    CHECK_SAYS(err, "not a regular file");
}

TEST(a_link_to_nothing_is_named)
{
    RsdConfig cfg = small_config();
    const char *path = temp_path("link");
    char err[RSD_ERR_LEN] = "";

    CHECK(!symlink("nowhere", path));
    CHECK(!rsd_media_create(path, &cfg, err));
    CHECK_SAYS(err, "it is a link to a file that is not there");
    CHECK(!unlink(path));
    free((char *)path);
}

TEST(a_file_system_without_holes_is_named)
{
    RsdConfig cfg = small_config();
    char err[RSD_ERR_LEN] = "";
    const char *dir = temp_path("ramfs");
    char path[4096];

    CHECK(!mkdir(dir, 0755));
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL,
                                      MS_REC | MS_PRIVATE, NULL) ||
        mount("ramfs", dir, "ramfs", 0, NULL)) {
        SKIP("a ramfs cannot be mounted: it takes root");
    }
    snprintf(path, sizeof(path), "%s/drive", dir);
    CHECK(!rsd_media_create(path, &cfg, err));
    CHECK_SAYS(err, "ramfs");
    CHECK_SAYS(err, "put the media file on");
    CHECK(access(path, F_OK) < 0);
    CHECK(!umount(dir));
    free((char *)dir);
}

static void write_file(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY);

    if (fd >= 0) {
        if (write(fd, text, strlen(text)) < 0) {
            SKIP("user namespaces cannot be set up");
        }
        close(fd);
    }
}

/* A directory on a file system of its own, of so many KiB */
static const char *small_disk(unsigned kib)
{
    const char *dir = temp_path("disk");
    char options[64], map[64];
    uid_t uid = getuid();
    gid_t gid = getgid();

    CHECK(!mkdir(dir, 0755));
    snprintf(options, sizeof(options), "size=%uk", kib);
    if (uid) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) {
            SKIP("no small file system: neither root nor user namespaces");
        }
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof(map), "0 %u 1", uid);
        write_file("/proc/self/uid_map", map);
        snprintf(map, sizeof(map), "0 %u 1", gid);
        write_file("/proc/self/gid_map", map);
    } else if (unshare(CLONE_NEWNS)) {
        SKIP("no small file system: mount namespaces are not allowed");
    }
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", dir, "tmpfs", 0, options)) {
        SKIP("no small file system: tmpfs cannot be mounted");
    }
    return dir;
}

TEST(a_full_disk_is_an_error)
{
    RsdConfig cfg = small_config();
    const char *dir = small_disk(500);
    char *path;
    uint32_t full = 0;
    struct stat a, b;
    Bed bed;

    CHECK(asprintf(&path, "%s/drive", dir) > 0);
    cfg.reset = RSD_RESET_ERASE;
    bed = bed_open(&cfg, path);
    /* a zone takes 144 KiB and more: a few fit, not four */
    while (full < 4) {
        RsdCmd *cmd = rsd_cmd_new(bed.drive, 0, RSD_WRITE, lba(&bed, full, 0), 3);
        RsdStatus status;

        for (uint32_t i = 0; i < 3; i++) {
            fill_page(cmd->data + i * PAGE, cmd->oob + i * 16, 16,
                      cmd->lba + i, 1);
        }
        CHECK(!stat(path, &a));
        status = rsd_submit(bed.drive, cmd, bed.now);
        if (status != RSD_OK) {
            CHECK_EQ(status, RSD_E_NOSPC);
            rsd_cmd_free(bed.drive, cmd);
            break;
        }
        await(&bed, cmd);
        rsd_cmd_free(bed.drive, cmd);
        full++;
    }
    CHECK(full > 0 && full < 4);
    CHECK(!stat(path, &b));
    CHECK_EQ(a.st_blocks, b.st_blocks);
    CHECK_EQ(counters(&bed).blocks_used, 4 * full);
    CHECK_EQ(written(&bed, full), 0);
    CHECK_EQ(refused(&bed, RSD_WRITE, lba(&bed, full, 0), 32), RSD_E_NOSPC);
    expect_pages(&bed, lba(&bed, full, 0), 32, 0);
    /* zones that have their space are filled, a reset frees some */
    for (uint32_t z = 0; z < full; z++) {
        run(&bed, RSD_WRITE, lba(&bed, z, 3), 29, 1);
        expect_pages(&bed, lba(&bed, z, 0), 32, 1);
    }
    bed_reopen(&bed);
    CHECK_EQ(refused(&bed, RSD_WRITE, lba(&bed, full, 0), 1), RSD_E_NOSPC);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    run(&bed, RSD_WRITE, lba(&bed, full, 0), 32, 3);
    expect_pages(&bed, lba(&bed, full, 0), 32, 3);
    bed_close(&bed);
    CHECK(!umount(dir));
    free((char *)dir);
}

/* On demand, a block keeps its space when it is erased: no error later */
TEST(a_full_disk_does_not_stop_rewriting)
{
    RsdConfig cfg = small_config();
    const char *dir = small_disk(4000);
    char *path, *filler;
    uint8_t page[PAGE] = { 1 };
    Bed bed;
    int fd;

    CHECK(asprintf(&path, "%s/drive", dir) > 0);
    CHECK(asprintf(&filler, "%s/filler", dir) > 0);
    cfg.spare_blocks = 0;
    bed = bed_open(&cfg, path);
    for (uint32_t z = 0; z < 4; z++) {
        run(&bed, RSD_WRITE, lba(&bed, z, 0), 32, 1);
    }
    fd = open(filler, O_WRONLY | O_CREAT, 0600);
    while (write(fd, page, sizeof(page)) > 0) {
        ;
    }
    CHECK_EQ(errno, ENOSPC);
    close(fd);
    for (uint64_t round = 2; round < 20; round++) {
        uint32_t z = round % 4;

        run(&bed, RSD_ZONE_RESET, lba(&bed, z, 0), 0, 0);
        run(&bed, RSD_WRITE, lba(&bed, z, 0), 32, round);
        expect_pages(&bed, lba(&bed, z, 0), 32, round);
    }
    bed_close(&bed);
    unlink(filler);
    free(filler);
    CHECK(!umount(dir));
    free((char *)dir);
}

static int64_t blocks_on_disk(const char *path)
{
    struct stat st;

    CHECK(!stat(path, &st));
    return st.st_blocks;
}

/* A block keeps its space while programs of its last owner are queued. */
TEST(space_stays_while_programs_are_queued)
{
    RsdConfig cfg = small_config();
    int64_t full;
    Bed bed;

    cfg.channels = 1;
    cfg.ways = 1;
    cfg.blocks = 1;
    cfg.spare_blocks = 0;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    run(&bed, RSD_WRITE, 0, 8, 1);
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    full = blocks_on_disk(bed.path);
    /* an erase and a program are queued when the zone is reset again */
    begin(&bed, RSD_WRITE, 0, 1, 2);
    begin(&bed, RSD_ZONE_RESET, 0, 0, 0);
    bed_pass(&bed, cfg.t_cmd_ns + cfg.t_erase_ns);
    CHECK_EQ(counters(&bed).erase_on_demand, 1);
    CHECK_EQ(counters(&bed).prog_host, 8);
    CHECK_EQ(blocks_on_disk(bed.path), full);
    bed_drain(&bed);
    CHECK_EQ(counters(&bed).prog_host, 9);
    /* the second erase has nothing behind it: the space is given back */
    bed.drive->cfg.reset = RSD_RESET_ERASE;
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    CHECK(blocks_on_disk(bed.path) < full);
    bed_close(&bed);
}

/* Programs queued for a block that is reset and erased still have its space */
TEST(a_full_disk_and_a_reset_in_flight)
{
    RsdConfig cfg = small_config();
    const char *dir = small_disk(4000);
    char *path, *filler;
    uint8_t page[PAGE] = { 1 };
    Bed bed;

    CHECK(asprintf(&path, "%s/drive", dir) > 0);
    CHECK(asprintf(&filler, "%s/filler", dir) > 0);
    cfg.spare_blocks = 0;
    cfg.blocks = 1;
    bed = bed_open(&cfg, path);
    for (uint64_t round = 1; round < 10; round++) {
        int fd = open(filler, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        /* dirty; then an erase, programs, a reset while they wait */
        run(&bed, RSD_WRITE, 0, 32, 1);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        while (write(fd, page, sizeof(page)) > 0) {
            ;
        }
        close(fd);
        begin(&bed, RSD_WRITE, 0, 32, 2);
        begin(&bed, RSD_ZONE_RESET, 0, 0, 0);
        if (round & 1) {
            begin(&bed, RSD_WRITE, 0, 32, round + 2);
            bed_drain(&bed);
            expect_pages(&bed, 0, 32, round + 2);
            run(&bed, RSD_ZONE_RESET, 0, 0, 0);
        }
        bed_drain(&bed);
    }
    bed_close(&bed);
    unlink(filler);
    free(filler);
    CHECK(!umount(dir));
    free((char *)dir);
}

TEST(no_space_for_the_tables)
{
    RsdConfig cfg = small_config();
    const char *dir = small_disk(16);
    char err[RSD_ERR_LEN] = "";
    char path[4096];

    snprintf(path, sizeof(path), "%s/drive", dir);
    CHECK(!rsd_media_create(path, &cfg, err));
    CHECK_SAYS(err, "No space left on device");
    CHECK_SAYS(err, "bytes are needed");
    CHECK(access(path, F_OK) < 0);
    CHECK(!umount(dir));
    free((char *)dir);
}

/* A copy that lost what was allocated but never stored is allocated again. */
TEST(a_sparse_copy_is_as_good)
{
    RsdConfig cfg = small_config();
    const char *dir = small_disk(1000);
    char command[8192], *path, err[RSD_ERR_LEN] = "";
    Bed bed;

    CHECK(asprintf(&path, "%s/drive", dir) > 0);
    bed = bed_open(&cfg, path);
    run(&bed, RSD_WRITE, 0, 2, 1);
    run(&bed, RSD_WRITE, lba(&bed, 1, 0), 2, 2);
    rsd_close(bed.drive);
    snprintf(command, sizeof(command), "cp --sparse=always %s %s.copy && "
             "mv %s.copy %s && ! dd if=/dev/zero of=%s/filler bs=4k "
             "2>/dev/null", path, path, path, path, dir);
    CHECK_EQ(system(command), 0);
    /* nothing can be allocated now: an error, not a signal later */
    CHECK(!rsd_open(path, &cfg, err));
    CHECK_SAYS(err, "No space left on device");
    snprintf(command, sizeof(command), "%s/filler", dir);
    unlink(command);
    bed.drive = NULL;
    bed_reopen(&bed);
    expect_pages(&bed, 0, 2, 1);
    run(&bed, RSD_WRITE, 2, 30, 1);
    expect_pages(&bed, 0, 32, 1);
    bed_close(&bed);
    CHECK(!umount(dir));
    free((char *)dir);
}

/* The same where the tables are whole and a block's free pages are not */
TEST(blocks_that_lost_their_space)
{
    RsdConfig cfg = small_config();
    const char *dir = small_disk(1000);
    char *path, *filler;
    uint8_t page[PAGE] = { 1 };
    struct stat st;
    Bed bed;
    int fd;

    CHECK(asprintf(&path, "%s/drive", dir) > 0);
    CHECK(asprintf(&filler, "%s/filler", dir) > 0);
    bed = bed_open(&cfg, path);
    run(&bed, RSD_WRITE, 0, 2, 1);
    rsd_close(bed.drive);
    bed.drive = NULL;
    /* all but the first page of block 0: 20 blocks of 9 pages end the file */
    CHECK(!stat(path, &st));
    fd = open(path, O_RDWR);
    CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     st.st_size - 20 * 9 * PAGE + PAGE, 7 * PAGE));
    close(fd);
    fd = open(filler, O_WRONLY | O_CREAT, 0600);
    while (write(fd, page, sizeof(page)) > 0) {
        ;
    }
    close(fd);
    bed_reopen(&bed);
    CHECK_EQ(refused(&bed, RSD_WRITE, 2, 30), RSD_E_NOSPC);
    expect_pages(&bed, 0, 2, 1);
    unlink(filler);
    run(&bed, RSD_WRITE, 2, 30, 1);
    expect_pages(&bed, 0, 32, 1);
    bed_close(&bed);
    free(filler);
    CHECK(!umount(dir));
    free((char *)dir);
}
