/*
 * Recording of a native trace: what the drive is asked and when it answers,
 * for rsdsim to replay. The trace ends with the drive's counters when QEMU
 * does; of a QEMU that is killed, the records up to then are there.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/notify.h"
#include "qapi/error.h"
#include "system/system.h"
#include "rsd-ns.h"
#include "core/api/trace.h"

struct RsdRecorder {
    RsdFlash *flash;
    RsdTrace *trace;
    uint64_t order;             /* of the next command */
    uint64_t now;               /* until when the drive was advanced */
    GHashTable *orders;         /* of commands in flight: uint64_t */
    Notifier exit;
};

static void rsd_record_at_exit(Notifier *notifier, void *data)
{
    RsdRecorder *recorder = container_of(notifier, RsdRecorder, exit);

    recorder->flash->recorder = NULL;
    rsd_record_close(recorder);
}

RsdRecorder *rsd_record_open(const char *path, RsdFlash *flash,
                             uint64_t media_hash, Error **errp)
{
    char err[RSD_ERR_LEN];
    RsdTrace *trace = rsd_trace_open(path, rsd_config(flash->drive),
                                     media_hash, err);
    RsdRecorder *recorder;

    if (!trace) {
        error_setg(errp, "%s", err);
        return NULL;
    }

    recorder = g_new0(RsdRecorder, 1);
    recorder->flash = flash;
    recorder->trace = trace;
    recorder->orders = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    /* Devices are not unrealized at the end of QEMU. */
    recorder->exit.notify = rsd_record_at_exit;
    qemu_add_exit_notifier(&recorder->exit);
    return recorder;
}

static void rsd_record_end_of(RsdRecorder *recorder, uint64_t order,
                              uint64_t time, RsdStatus status)
{
    RsdTraceRecord record = {
        .time = time,
        .order = order,
        .kind = RSD_TRACE_DONE,
        .status = status,
    };

    rsd_trace_add(recorder->trace, &record);
}

void rsd_record_submit(RsdRecorder *recorder, RsdCmd *cmd, uint64_t lba,
                       uint64_t now, RsdStatus status, const NvmeRequest *req)
{
    RsdTraceRecord record;
    uint64_t order;

    if (!recorder) {
        return;
    }

    recorder->now = now;
    order = recorder->order++;
    record = (RsdTraceRecord) {
        .time = now,
        .order = order,
        .lba = lba,
        .nlb = cmd->nlb,
        .ns = cmd->ns,
        .queue = req ? req->sq->sqid : 0,
        .flags = cmd->fua ? RSD_TRACE_FUA : 0,
        .kind = RSD_TRACE_SUBMIT,
        .op = rsd_trace_op(cmd->op),
    };
    if (req && req->cmd.opcode == NVME_CMD_ZONE_APPEND) {
        record.flags |= RSD_TRACE_APPEND;
    }
    rsd_trace_add(recorder->trace, &record);

    if (status != RSD_OK) {
        rsd_record_end_of(recorder, order, record.time, status);
    } else {
        g_hash_table_insert(recorder->orders, cmd,
                            g_memdup2(&order, sizeof(order)));
    }
}

void rsd_record_advance(RsdRecorder *recorder, uint64_t now)
{
    if (recorder) {
        recorder->now = now;
    }
}

void rsd_record_done(RsdRecorder *recorder, RsdCmd *cmd)
{
    uint64_t *order = recorder ? g_hash_table_lookup(recorder->orders, cmd)
                               : NULL;

    if (order) {
        rsd_record_end_of(recorder, *order, cmd->done_ns, cmd->status);
        g_hash_table_remove(recorder->orders, cmd);
    }
}

void rsd_record_detach(RsdRecorder *recorder, RsdCmd *cmd)
{
    if (recorder) {
        g_hash_table_remove(recorder->orders, cmd);
    }
}

void rsd_record_format(RsdRecorder *recorder, uint32_t index, uint32_t oob,
                       uint64_t now, RsdStatus status)
{
    RsdTraceRecord record;

    if (!recorder) {
        return;
    }

    recorder->now = now;
    record = (RsdTraceRecord) {
        .time = now,
        .order = recorder->order++,
        .lba = oob,
        .ns = index,
        .kind = RSD_TRACE_SUBMIT,
        .op = RSD_TRACE_FORMAT,
    };
    rsd_trace_add(recorder->trace, &record);
    rsd_record_end_of(recorder, record.order, now, status);
}

void rsd_record_close(RsdRecorder *recorder)
{
    char err[RSD_ERR_LEN];
    RsdCounters counters;
    RsdCmd *cmd;

    /*
     * After that time, the end of QEMU is the only event, and the host decides
     * it. Nobody takes completed commands any more.
     */
    while ((cmd = rsd_advance(recorder->flash->drive, recorder->now))) {
        rsd_record_done(recorder, cmd);
    }
    rsd_counters(recorder->flash->drive, &counters);
    if (!rsd_trace_close(recorder->trace, recorder->now, &counters, err)) {
        error_report("%s", err);
    }
    qemu_remove_exit_notifier(&recorder->exit);
    g_hash_table_destroy(recorder->orders);
    g_free(recorder);
}
