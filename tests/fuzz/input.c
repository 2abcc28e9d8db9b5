/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input.h"

#define LARGEST_FILE (64u << 20)

static char directory[64];

uint8_t take8(Input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

uint16_t take16(Input *in)
{
    uint16_t low = take8(in);

    return low | take8(in) << 8;
}

uint32_t take32(Input *in)
{
    uint32_t low = take16(in);

    return low | (uint32_t)take16(in) << 16;
}

uint32_t take_below(Input *in, uint32_t n)
{
    return (n > 256 ? take16(in) : take8(in)) % n;
}

/* What a drive of a fuzzer has at most, so that a run takes no second */
static const struct {
    const char *name;
    uint64_t most;
} limits[] = {
    { "channels", 4 }, { "ways", 3 }, { "planes", 2 }, { "blocks", 40 },
    { "pages", 24 }, { "spare-blocks", 12 }, { "conv-blocks", 40 },
    { "cores", 4 }, { "write-buffer", 128 * PAGE }, { "map-cache", 65536 },
    { "zrwa", 8 },
};

static uint64_t limit_of(const RsdProp *prop)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (!strcmp(limits[i].name, prop->name)) {
            return limits[i].most;
        }
    }
    return prop->max;
}

bool take_config(Input *in, RsdConfig *cfg)
{
    char err[RSD_ERR_LEN];
    uint32_t kind, n;

    rsd_preset_find("custom")->apply(cfg);
    cfg->ftl = take_below(in, rsd_prop_find("ftl")->max + 1);
    kind = take8(in);
    cfg->channels = cfg->ways = 2;
    cfg->blocks = 24;
    cfg->spare_blocks = 8;
    cfg->pages = 8;
    cfg->oob = 16;
    cfg->over_provision = kind & 1 ? 150 : 80;
    cfg->map_cache = 1024;
    cfg->log_blocks = 20;
    cfg->wl_threshold = kind & 2 ? 4 : 0;
    cfg->idle_erase_ns = kind & 4 ? 1000000 : 0;
    if (kind & 8) {
        cfg->write_buffer = 64 * PAGE;
        cfg->ack = RSD_ACK_BUFFER;
    }
    if (kind & 16) {
        cfg->planes = 2;
        cfg->pages = 6;
        cfg->cell = RSD_CELL_TLC;
        cfg->one_shot = true;
    }
    cfg->plp = !(kind & 32);
    if (kind & 64 && cfg->ftl == RSD_FTL_RSD) {
        cfg->zrwa = 2;
        cfg->zrwa_size = 4 * PAGE;
        cfg->write_buffer = 64 * PAGE;
    }
    n = take_below(in, 9);
    for (uint32_t i = 0; i < n; i++) {
        const RsdProp *prop = &rsd_props[take_below(in, rsd_num_props)];
        uint64_t value = take16(in), most = limit_of(prop);

        *rsd_prop_value(cfg, prop) = value > most ? value % (most + 1) : value;
    }
    return rsd_config_check(cfg, err);
}

static void remove_directory(void)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir) {
        closedir(dir);
    }
    rmdir(directory);
}

const char *file_in_memory(const char *name)
{
    char *path;

    if (!directory[0]) {
        snprintf(directory, sizeof(directory), "/dev/shm/rsd-fuzz-XXXXXX");
        if (!mkdtemp(directory)) {
            perror("/dev/shm");
            exit(2);
        }
        atexit(remove_directory);
    }
    if (asprintf(&path, "%s/%s", directory, name) < 0) {
        abort();
    }
    return path;
}

void file_write(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd)) {
        perror(path);
        exit(2);
    }
}

uint8_t *file_read(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY);
    uint8_t *data;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) || st.st_size > LARGEST_FILE) {
        perror(path);
        exit(2);
    }
    *size = st.st_size;
    data = malloc(*size + 1);
    if (!data || read(fd, data, *size) != (ssize_t)*size) {
        abort();
    }
    close(fd);
    return data;
}

void drain(RsdDrive *drive)
{
    RsdCmd *cmd;

    while ((cmd = rsd_advance_to_done(drive))) {
        rsd_cmd_free(drive, cmd);
    }
}

static void submit(RsdDrive *drive, uint32_t ns, RsdOp op, uint64_t lba,
                   uint32_t nlb)
{
    RsdCmd *cmd = rsd_cmd_new(drive, ns, op, lba, nlb);

    if (!cmd) {
        abort();
    }
    if (op == RSD_WRITE) {
        memset(cmd->data, 0x5a, (size_t)nlb * PAGE);
        if (rsd_oob(drive, ns)) {
            memset(cmd->oob, 0x5a, (size_t)nlb * rsd_oob(drive, ns));
        }
    }
    if (rsd_submit(drive, cmd, 0) != RSD_OK) {
        rsd_cmd_free(drive, cmd);
    }
}

void write_block(RsdDrive *drive, uint64_t lba, uint8_t byte)
{
    RsdCmd *cmd = rsd_cmd_new(drive, 0, RSD_WRITE, lba, 1);

    cmd->data[0] = byte;
    if (rsd_submit(drive, cmd, 0) != RSD_OK) {
        rsd_cmd_free(drive, cmd);
    }
}

int file_to_change(const char *path, uint64_t *size)
{
    int fd = open(path, O_RDWR);
    struct stat st;

    if (fd < 0 || fstat(fd, &st)) {
        abort();
    }
    *size = st.st_size;
    return fd;
}

void use_all(RsdDrive *drive)
{
    RsdCounters counters;

    for (uint32_t ns = 0; ns < rsd_num_namespaces(drive); ns++) {
        RsdGeometry geo;

        rsd_geometry(drive, ns, &geo);
        for (uint64_t lba = 0; lba < geo.lbas; lba += 16) {
            uint64_t left = geo.lbas - lba;

            submit(drive, ns, RSD_READ, lba, left < 16 ? left : 16);
        }
        drain(drive);
        for (uint32_t zone = 0; geo.zoned && zone < geo.num_zones; zone++) {
            RsdZone info;

            rsd_zone_get(drive, zone, &info);
            submit(drive, ns, RSD_WRITE, zone * geo.zone_size + info.next, 1);
            drain(drive);
            submit(drive, ns, RSD_ZONE_RESET, zone * geo.zone_size, 0);
            drain(drive);
        }
        for (uint64_t lba = 0; !geo.zoned && lba < geo.lbas; lba += 5) {
            submit(drive, ns, RSD_WRITE, lba, 1);
            drain(drive);
        }
        submit(drive, ns, RSD_FLUSH, 0, 0);
        drain(drive);
    }
    rsd_counters(drive, &counters);
}
