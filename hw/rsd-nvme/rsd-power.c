/*
 * Power cuts and rewinding, for the host: commands of core/api/rsd-vendor.h.
 *
 * A drive that lost its power is a dead controller. Hosts know what to do with
 * one: they reset it, and ask it anew what it has. So that is when the power
 * comes back, and when a rewind happens, after the last request was cancelled.
 *
 * Linux 6.12 does not ask anew about everything: where a zone has a write plug,
 * the write pointer in it stays; and the block device's page cache stays. Only
 * a block device that goes away takes them with it. So a rewind is refused as
 * long as a namespace of the drive is attached to a controller: it has to be
 * detached, which the host refuses to do to a mounted one (rsdctl does it), and
 * is attached again when the controller starts.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qapi/error.h"
#include "rsd-ns.h"
#include "core/api/rsd-power.h"
#include "core/api/rsd-vendor.h"
#include "trace.h"

QEMU_BUILD_BUG_ON(RSD_VENDOR_BYTES != NVME_NS_VENDOR_BYTES);

const uint8_t rsd_ns_vendor_opcodes[] = { RSD_ADMIN_POWER, RSD_ADMIN_OPLOG,
                                         RSD_ADMIN_FAULT, 0 };

bool rsd_flash_setup_power(RsdFlash *flash, const RsdNamespace *rs,
                           Error **errp)
{
    RsdOutcomes outcomes;

    if (!rsd_outcomes_parse(rs->cut_outcomes ? rs->cut_outcomes : "0",
                            &outcomes)) {
        error_setg(errp, "'cut-outcomes' is '%s', must be a number, the seed, "
                   "or letters a, t, c: absent, torn, complete",
                   rs->cut_outcomes);
        return false;
    }
    if (!rs->cut_at_op && rs->cut_at_time == UINT64_MAX) {
        return true;
    }
    if (!rsd_power_cut_later(flash->drive, rs->cut_at_op, rs->cut_at_time,
                             &outcomes)) {
        error_setg(errp, "'cut-at-op' is %" PRIu64 ", but the operation log "
                   "has that one already", rs->cut_at_op);
        return false;
    }
    flash->cut_at_op = rs->cut_at_op;
    flash->cut_at_time = rs->cut_at_time;
    return true;
}

void rsd_flash_warn_of_cut(const RsdFlash *flash)
{
    if (flash->cut_at_time != UINT64_MAX) {
        warn_report("'cut-at-time' is %" PRIu64 " ns, but QEMU ended at %"
                    PRId64 " ns of the guest's clock: the power was not cut; "
                    "give an earlier time, or let the guest run for longer",
                    flash->cut_at_time,
                    qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    }
    if (flash->cut_at_op) {
        warn_report("'cut-at-op' is %" PRIu64 ", but QEMU ended before the "
                    "drive had done that operation: the power was not cut; "
                    "give a lower number, or let the guest write more",
                    flash->cut_at_op);
    }
}

void rsd_flash_check_power(RsdFlash *flash)
{
    if (!flash->dead && rsd_power_is_off(flash->drive)) {
        flash->dead = true;
        flash->cut_at_op = 0;
        flash->cut_at_time = UINT64_MAX;
        trace_rsd_nvme_power_off();
        for (uint32_t i = 0; i < RSD_MAX_NAMESPACES; i++) {
            if (flash->ns[i]) {
                nvme_ns_failed(flash->ns[i]);
            }
        }
    }
}

/* Brings a namespace to the present state of the drive. */
static bool rsd_ns_power_on(NvmeNamespace *ns, Error **errp)
{
    RsdNsBase *base = RSD_NS_BASE(ns);
    uint32_t oob = rsd_oob(base->flash->drive, base->index);

    for (uint8_t i = 0; i < ns->nlbaf; i++) {
        if (ns->id_ns.lbaf[i].ms == cpu_to_le16(oob)) {
            ns->id_ns.flbas = i;
        }
    }
    nvme_ns_init_format(ns);
    if (ns->params.zoned) {
        RSD_NS(ns)->finishing = NULL;
        nvme_ns_empty_zones(ns);
    }
    return ns->ops->restore(ns, errp);
}

static bool rsd_flash_attached(const RsdFlash *flash)
{
    for (uint32_t i = 0; i < RSD_MAX_NAMESPACES; i++) {
        if (flash->ns[i] && flash->ns[i]->attached) {
            return true;
        }
    }
    return false;
}

void rsd_ns_reset(NvmeNamespace *ns)
{
    RsdFlash *flash = RSD_NS_BASE(ns)->flash;
    bool rewind = flash->rewind_armed && !rsd_flash_attached(flash);
    char err[RSD_ERR_LEN] = "";
    Error *local_err = NULL;
    bool ok;

    flash->rewind_armed = false;
    if (!rewind && !flash->dead) {
        return;
    }

    if (rewind) {
        RsdOutcomes outcomes = {
            .list = flash->rewind.by_list ? flash->rewind.outcomes : NULL,
            .seed = flash->rewind.seed,
        };

        ok = rsd_rewind(flash->drive, flash->rewind.op, &outcomes, err);
    } else {
        ok = rsd_power_on(flash->drive, err);
    }
    trace_rsd_nvme_power_on(rewind, flash->rewind.op, ok);
    if (!ok) {
        error_report("rsd-ns: %s", err);
    }

    for (uint32_t i = 0; ok && i < RSD_MAX_NAMESPACES; i++) {
        if (flash->ns[i] && !rsd_ns_power_on(flash->ns[i], &local_err)) {
            error_report_err(local_err);
            ok = false;
        }
    }
    /* A drive that does not come back takes commands and answers none. */
    flash->dead = !ok;
    if (ok) {
        g_free(g_steal_pointer(&flash->unsure));
        flash->warnings = rsd_flash_warnings(flash);
        flash->health_changes = rsd_health_changes(flash->drive);
        rsd_flash_arm(flash);
    }
}

static uint16_t rsd_power_command(RsdFlash *flash, uint32_t what,
                                  RsdPowerData *data)
{
    RsdOutcomes outcomes = { .seed = le64_to_cpu(data->seed) };
    char err[RSD_ERR_LEN];
    RsdOplogInfo info;

    rsd_oplog_info(flash->drive, &info);
    if (flash->recorder || !flash->vendor_commands ||
        (what != RSD_POWER_CUT && !info.on)) {
        return NVME_INVALID_OPCODE | NVME_DNR;
    }
    if (le32_to_cpu(data->magic) != RSD_POWER_MAGIC) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    data->outcomes[sizeof(data->outcomes) - 1] = 0;
    if (data->by_list) {
        outcomes.list = data->outcomes;
        if (strspn(data->outcomes, "atc") != strlen(data->outcomes)) {
            return NVME_INVALID_FIELD | NVME_DNR;
        }
    }
    if (what > RSD_POWER_RESTART) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    if (flash->dead ||
        (what == RSD_POWER_REWIND && rsd_flash_attached(flash))) {
        return NVME_CMD_SEQ_ERROR | NVME_DNR;
    }

    switch (what) {
    case RSD_POWER_CUT:
        rsd_power_cut(flash->drive, &outcomes);
        rsd_flash_check_power(flash);
        return NVME_SUCCESS;
    case RSD_POWER_REWIND:
        if (le64_to_cpu(data->op) > info.ops) {
            return NVME_INVALID_FIELD | NVME_DNR;
        }
        if (info.broken) {
            return NVME_CAP_EXCEEDED | NVME_DNR;
        }
        flash->rewind = *data;
        flash->rewind.op = le64_to_cpu(data->op);
        flash->rewind.seed = outcomes.seed;
        flash->rewind_armed = true;
        return NVME_SUCCESS;
    default:
        return rsd_oplog_restart(flash->drive, err) ? NVME_SUCCESS
                                                    : NVME_INTERNAL_DEV_ERROR;
    }
}

static void rsd_oplog_entry(RsdOplogEntry *to, uint64_t op, const RsdLogged *l)
{
    bool command = l->kind == RSD_LOGGED_COMMAND;

    to->op = cpu_to_le64(op);
    to->time_ns = cpu_to_le64(l->time_ns);
    to->lba = cpu_to_le64(l->lba);
    to->kind = cpu_to_le32(l->kind);
    to->what = cpu_to_le32(command ? l->command : l->block);
    to->page = cpu_to_le32(l->page);
    to->flags = cpu_to_le32((l->protected ? 1 : 0) | (l->ends ? 2 : 0) |
                            (l->waiting ? 4 : 0));
}

static uint16_t rsd_oplog_query(const RsdFlash *flash, uint32_t what,
                                uint64_t op, RsdOplogData *data)
{
    uint32_t n = 0;
    RsdOplogInfo info;
    RsdLogged logged;

    rsd_oplog_info(flash->drive, &info);
    if (!info.on) {
        return NVME_INVALID_OPCODE | NVME_DNR;
    }
    if (what > RSD_OPLOG_IN_FLIGHT || op > info.ops) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }

    data->version = cpu_to_le32(RSD_OPLOG_VERSION);
    data->flags = cpu_to_le32(RSD_OPLOG_ON |
                              (info.broken ? RSD_OPLOG_BROKEN : 0) |
                              (info.branch ? RSD_OPLOG_BRANCH : 0) |
                              (flash->dead ? RSD_OPLOG_OFF : 0));
    data->ops = cpu_to_le64(info.ops);
    data->at = cpu_to_le64(info.at);
    data->bytes = cpu_to_le64(info.bytes);
    for (uint32_t i = 0; i < RSD_MAX_NAMESPACES; i++) {
        data->nsid[i] = cpu_to_le32(flash->ns[i] ? nvme_nsid(flash->ns[i]) : 0);
    }
    while (what != RSD_OPLOG_STATE && n < RSD_OPLOG_ENTRIES &&
           (what == RSD_OPLOG_OPS
            ? rsd_oplog_op(flash->drive, op + n, &logged)
            : rsd_oplog_in_flight(flash->drive, op, n, &logged))) {
        rsd_oplog_entry(&data->entry[n], what == RSD_OPLOG_OPS ? op + n : 0,
                        &logged);
        n++;
    }
    data->entries = cpu_to_le32(n);
    return NVME_SUCCESS;
}

uint16_t rsd_ns_vendor_admin(NvmeNamespace *ns, const NvmeCmd *cmd, void *buf)
{
    RsdFlash *flash = RSD_NS_BASE(ns)->flash;
    uint32_t what = le32_to_cpu(cmd->cdw10);

    switch (cmd->opcode) {
    case RSD_ADMIN_POWER:
        return rsd_power_command(flash, what, buf);
    case RSD_ADMIN_OPLOG:
        return rsd_oplog_query(flash, what,
                               le32_to_cpu(cmd->cdw12) |
                               (uint64_t)le32_to_cpu(cmd->cdw13) << 32, buf);
    case RSD_ADMIN_FAULT:
        return rsd_fault_command(ns, cmd);
    }
    return NVME_INVALID_OPCODE | NVME_DNR;
}
