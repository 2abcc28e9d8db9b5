/*
 * Media files in which bytes have changed: they are opened and used, or
 * refused, and a drive that was opened can be opened again.
 *
 * The input: the drive, what was done to it, then the bytes that change.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <unistd.h>

#include "input.h"

/* Where tables begin, behind the header that has a checksum */
#define TABLES 4096u
#define MOST_CHANGES 64

static void write_some(Input *in, RsdDrive *drive)
{
    RsdGeometry geo;
    uint32_t n = take8(in);

    rsd_geometry(drive, 0, &geo);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t lba = take_below(in, geo.lbas);

        if (geo.zoned) {
            RsdZone zone;

            lba = lba / geo.zone_size;
            rsd_zone_get(drive, lba, &zone);
            lba = lba * geo.zone_size + zone.next;
        }
        write_block(drive, lba, i);
        if (i % 4 == 0) {
            drain(drive);
        }
    }
    if (take8(in) & 1) {        /* else it is closed with these in flight */
        drain(drive);
    }
}

/* Half of the changes are in the tables, which are some of the file. */
static void change(Input *in, const char *path)
{
    uint32_t n = 1 + take_below(in, MOST_CHANGES);
    uint64_t size;
    int fd = file_to_change(path, &size);

    for (uint32_t i = 0; i < n && in->at < in->end; i++) {
        uint8_t how = take8(in), byte = take8(in);
        uint64_t at = how & 1 ? TABLES + take16(in) % (4 * TABLES) : take32(in);

        at %= size;
        if (how & 2) {          /* a bit, and not a byte */
            uint8_t old;

            if (pread(fd, &old, 1, at) != 1) {
                abort();
            }
            byte = old ^ 1 << (byte & 7);
        }
        if (pwrite(fd, &byte, 1, at) != 1) {
            abort();
        }
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *path;
    Input in = { data, data + size };
    char err[RSD_ERR_LEN];
    RsdDrive *drive;
    RsdConfig cfg;

    if (!path) {
        path = file_in_memory("media");
    }
    unlink(path);
    if (!take_config(&in, &cfg) || !rsd_media_create(path, &cfg, err)) {
        return 0;
    }
    drive = rsd_open(path, &cfg, err);
    if (!drive) {
        return 0;
    }
    write_some(&in, drive);
    rsd_close(drive);
    change(&in, path);
    drive = rsd_open(path, &cfg, err);
    if (drive) {
        use_all(drive);
        rsd_close(drive);
        drive = rsd_open(path, &cfg, err);
        if (!drive) {
            abort();            /* what it wrote itself, it must take */
        }
        rsd_close(drive);
    }
    return 0;
}
