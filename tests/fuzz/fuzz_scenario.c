/*
 * Rules of faults, any text: it is refused with a line and a reason, or a drive
 * meets the faults and goes on.
 *
 * The input: the drive, then the text.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *path, *media;
    Input in = { data, data + size };
    char err[RSD_ERR_LEN] = "";
    RsdDrive *drive;
    RsdConfig cfg;

    if (!path) {
        path = file_in_memory("rules");
        media = file_in_memory("media");
    }
    if (!take_config(&in, &cfg)) {
        return 0;
    }
    unlink(media);
    if (!rsd_media_create(media, &cfg, err)) {
        return 0;
    }
    drive = rsd_open(media, &cfg, err);
    if (!drive) {
        return 0;
    }
    file_write(path, in.at, in.end - in.at);
    err[0] = 0;
    if (rsd_faults_load(drive, path, err)) {
        use_all(drive);
        use_all(drive);
    } else if (!strstr(err, path)) {
        abort();                /* a message without the file's name */
    }
    rsd_close(drive);
    return 0;
}
