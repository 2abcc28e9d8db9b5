/*
 * Native traces, any bytes behind a header that is right or not: each record is
 * given, or refused with its number.
 *
 * The input: how many bytes of a right file come first, then its bytes. What is
 * behind a right header gets the checksums that a recorder would have written,
 * so that more than checksums is tried.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "trace.h"

static const char *path;

/* Records as the input has them, but for what rsd_trace_add() fills in */
static void record(Input *in)
{
    char err[RSD_ERR_LEN];
    RsdTrace *trace;
    RsdConfig cfg;

    rsd_preset_find("custom")->apply(&cfg);
    trace = rsd_trace_open(path, &cfg, 7, err);
    if (!trace) {
        abort();
    }
    while (in->at < in->end) {
        RsdTraceRecord one = { .time = take32(in), .order = take8(in) };

        one.lba = take16(in);
        one.nlb = take8(in);
        one.ns = take8(in) & 3;
        one.flags = take8(in);
        one.kind = take8(in);
        one.op = take8(in);
        one.status = take8(in);
        rsd_trace_add(trace, &one);
    }
    rsd_trace_close(trace, 0, NULL, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input in = { data, data + size };
    RsdTraceReader *reader;
    char err[RSD_ERR_LEN];
    RsdTraceRecord one;
    uint64_t hash;
    RsdConfig cfg;

    if (!path) {
        path = file_in_memory("trace");
    }
    unlink(path);
    if (take8(&in) & 1) {
        record(&in);
    } else {
        file_write(path, in.at, in.end - in.at);
    }
    reader = rsd_trace_read(path, &cfg, &hash, err);
    if (reader) {
        while (rsd_trace_next(reader, &one, err) > 0) {
            if (rsd_trace_number(reader) > rsd_trace_records(reader)) {
                abort();
            }
        }
        rsd_trace_torn(reader);
        rsd_trace_read_close(reader);
    }
    return 0;
}
