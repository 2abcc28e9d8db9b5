/*
 * Logs of operations in which bytes have changed: the drive is rewound to some
 * operation, or not, and can be used.
 *
 * The input: the drive, how much is written, the operation, then the bytes.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <unistd.h>

#include "input.h"
#include "rsd-power.h"

#define MOST_CHANGES 32

static void write_some(Input *in, RsdDrive *drive)
{
    RsdGeometry geo;
    uint32_t n = take_below(in, 60);

    rsd_geometry(drive, 0, &geo);
    for (uint32_t i = 0; i < n; i++) {
        write_block(drive, geo.zoned ? i : take_below(in, geo.lbas), i);
        drain(drive);
    }
}

static void change(Input *in, const char *path)
{
    uint32_t n = 1 + take_below(in, MOST_CHANGES);
    uint64_t size;
    int fd = file_to_change(path, &size);

    for (uint32_t i = 0; i < n && in->at < in->end; i++) {
        uint8_t byte = take8(in);
        uint64_t at = take16(in);

        /* the header, or where records are */
        at = byte & 1 ? at % 128 : 4096 + at;
        if (pwrite(fd, &byte, 1, at % size) != 1) {
            abort();
        }
    }
    close(fd);
}

static void look(const char *path, const char *log, uint64_t op, uint64_t seed)
{
    RsdOutcomes outcomes = { .seed = seed };
    char err[RSD_ERR_LEN];
    RsdDrive *drive = rsd_open_view(path, log, err);

    if (drive) {
        rsd_rewind(drive, op, &outcomes, err);
        rsd_rewind(drive, 0, &outcomes, err);
        if (!rsd_power_is_off(drive)) {
            use_all(drive);
        }
        rsd_close(drive);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *path, *log;
    Input in = { data, data + size };
    char err[RSD_ERR_LEN];
    RsdOplogInfo info;
    RsdDrive *drive;
    RsdConfig cfg;
    uint64_t op;

    if (!path) {
        path = file_in_memory("media");
        log = file_in_memory("log");
    }
    unlink(path);
    unlink(log);
    if (!take_config(&in, &cfg) || !rsd_media_create(path, &cfg, err)) {
        return 0;
    }
    drive = rsd_open_logged(path, log, &cfg, err);
    if (!drive) {
        return 0;
    }
    write_some(&in, drive);
    rsd_oplog_info(drive, &info);
    op = take_below(&in, info.ops + 2);
    rsd_close(drive);
    change(&in, log);
    look(path, log, op, take8(&in));
    drive = rsd_open_logged(path, log, &cfg, err);
    if (drive) {
        if (!rsd_power_is_off(drive)) {
            use_all(drive);
        }
        rsd_close(drive);
    }
    return 0;
}
