/*
 * The data path: NVMe requests in, commands of the drive's core out, and back.
 *
 * Everything happens in two contexts: the doorbell write that brings a request
 * and the timer on the virtual clock at which the core has its next event.
 * Data is copied between guest memory and the command's buffers in the first
 * for writes and in the second for reads; nothing waits for the host.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "rsd-ns.h"
#include "trace.h"

/* A zone management request: its zones are commands of their own. */
typedef struct RsdZoneMgmt {
    NvmeRequest *req;           /* NULL: cancelled */
    unsigned pending;           /* commands not completed yet */
    uint16_t status;
} RsdZoneMgmt;

static uint16_t rsd_nvme_status(const RsdCmd *cmd, RsdStatus status)
{
    switch (status) {
    case RSD_OK:
        return NVME_SUCCESS;
    case RSD_E_RANGE:
        return NVME_LBA_RANGE;
    case RSD_E_ORDER:
        return NVME_ZONE_INVALID_WRITE;
    case RSD_E_NOSPC:
        return NVME_CAP_EXCEEDED;
    case RSD_E_NOMEM:
        return NVME_INTERNAL_DEV_ERROR;
    case RSD_E_NOBLOCK:
        return NVME_WRITE_FAULT;
    case RSD_E_MEDIA:
        return cmd->op == RSD_READ ? NVME_UNRECOVERED_READ : NVME_WRITE_FAULT;
    }

    g_assert_not_reached();
}

static uint64_t rsd_ns_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void rsd_ns_arm(RsdNamespace *rs)
{
    uint64_t when;

    if (rsd_next_event(rs->drive, &when)) {
        timer_mod(rs->timer, when);
    } else {
        timer_del(rs->timer);
    }
}

static RsdStatus rsd_ns_start(RsdNamespace *rs, RsdCmd *cmd)
{
    RsdStatus status = rsd_submit(rs->drive, cmd, rsd_ns_now());

    trace_rsd_nvme_submit(nvme_nsid(&rs->parent_obj), cmd->op, cmd->lba,
                          cmd->nlb, status);
    rsd_ns_arm(rs);

    return status;
}

uint16_t rsd_ns_prepare(NvmeNamespace *ns, NvmeRequest *req, uint64_t slba,
                        uint32_t nlb)
{
    RsdNamespace *rs = RSD_NS(ns);
    NvmeCtrl *n = nvme_ctrl(req);
    uint32_t len = nvme_l2b(ns, nlb);
    uint32_t mlen = nvme_m2b(ns, nlb);
    RsdOp op = RSD_WRITE;
    uint16_t status = NVME_SUCCESS;
    RsdCmd *cmd;

    switch (req->cmd.opcode) {
    case NVME_CMD_READ:
        op = RSD_READ;
        break;
    case NVME_CMD_WRITE_ZEROES:
        op = RSD_WRITE_ZEROES;
        break;
    }

    if (op != RSD_WRITE_ZEROES && mlen && !req->cmd.mptr) {
        return NVME_INVALID_FIELD;
    }

    cmd = rsd_cmd_new(rs->drive, op, slba, nlb);
    if (!cmd) {
        return NVME_INTERNAL_DEV_ERROR;
    }

    if (op != RSD_WRITE_ZEROES) {
        status = nvme_map_dptr(n, &req->sg, len, &req->cmd);
    }
    if (!status && op == RSD_WRITE) {
        status = nvme_bounce_data(n, cmd->data, len,
                                  NVME_TX_DIRECTION_TO_DEVICE, req);
        if (!status && mlen) {
            status = nvme_bounce_mdata(n, cmd->oob, mlen,
                                       NVME_TX_DIRECTION_TO_DEVICE, req);
        }
    }
    if (status) {
        rsd_cmd_free(rs->drive, cmd);
        return status;
    }

    cmd->opaque = req;
    req->opaque = cmd;

    return NVME_SUCCESS;
}

void rsd_ns_abandon(NvmeNamespace *ns, NvmeRequest *req)
{
    rsd_cmd_free(RSD_NS(ns)->drive, req->opaque);
    req->opaque = NULL;
}

uint16_t rsd_ns_submit(NvmeNamespace *ns, NvmeRequest *req)
{
    RsdCmd *cmd = req->opaque;
    RsdStatus status = rsd_ns_start(RSD_NS(ns), cmd);

    if (status != RSD_OK) {
        uint16_t nvme_status = rsd_nvme_status(cmd, status);

        rsd_ns_abandon(ns, req);
        return nvme_status;
    }

    return NVME_NO_COMPLETE;
}

void rsd_ns_cancel(NvmeNamespace *ns, NvmeRequest *req)
{
    if (!req->opaque) {
        return;
    }

    if (req->cmd.opcode == NVME_CMD_ZONE_MGMT_SEND) {
        RsdZoneMgmt *mgmt = req->opaque;

        mgmt->req = NULL;
        if (!mgmt->pending) {
            g_free(mgmt);
        }
    } else {
        rsd_cmd_detach(RSD_NS(ns)->drive, req->opaque);
    }
    req->opaque = NULL;
}

/*
 * There is no volatile buffer: what was acknowledged is programmed. It is in
 * the media file's page cache, where the end of QEMU does not touch it; with
 * host-sync=on it is also brought to the host's disk.
 */
uint16_t rsd_ns_flush(NvmeNamespace *ns)
{
    RsdNamespace *rs = RSD_NS(ns);
    RsdCmd *cmd = rsd_cmd_new(rs->drive, RSD_FLUSH, 0, 0);

    if (!cmd) {
        return NVME_INTERNAL_DEV_ERROR;
    }
    /* takes no time; it is given to the core to be counted */
    if (rsd_ns_start(rs, cmd) == RSD_OK) {
        rsd_cmd_detach(rs->drive, cmd);
    } else {
        rsd_cmd_free(rs->drive, cmd);
    }

    if (rs->host_sync && rsd_media_sync(rs->drive) < 0) {
        return NVME_WRITE_FAULT;
    }

    return NVME_SUCCESS;
}

static uint16_t rsd_ns_zone_cmd(RsdNamespace *rs, NvmeRequest *req,
                                RsdOp op, NvmeZone *zone)
{
    RsdCmd *cmd = rsd_cmd_new(rs->drive, op, zone->d.zslba, 0);
    RsdZoneMgmt *mgmt = req->opaque;
    RsdStatus status;

    if (!cmd) {
        return NVME_INTERNAL_DEV_ERROR;
    }
    if (!mgmt) {
        mgmt = req->opaque = g_new0(RsdZoneMgmt, 1);
        mgmt->req = req;
    }

    cmd->opaque = mgmt;
    status = rsd_ns_start(rs, cmd);
    if (status != RSD_OK) {
        uint16_t nvme_status = rsd_nvme_status(cmd, status);

        rsd_cmd_free(rs->drive, cmd);
        return nvme_status;
    }
    mgmt->pending++;

    return NVME_SUCCESS;
}

uint16_t rsd_ns_zone_reset(NvmeNamespace *ns, NvmeRequest *req,
                           NvmeZone *zone)
{
    return rsd_ns_zone_cmd(RSD_NS(ns), req, RSD_ZONE_RESET, zone);
}

uint16_t rsd_ns_zone_finish(NvmeNamespace *ns, NvmeRequest *req,
                            NvmeZone *zone)
{
    RsdNamespace *rs = RSD_NS(ns);
    uint16_t status = rsd_ns_zone_cmd(rs, req, RSD_ZONE_FINISH, zone);

    if (!status) {
        rs->finishing = zone;
    }

    return status;
}

uint16_t rsd_ns_zone_mgmt_done(NvmeNamespace *ns, NvmeRequest *req)
{
    /* without a command every zone was as asked already */
    return req->opaque ? NVME_NO_COMPLETE : NVME_SUCCESS;
}

static void rsd_ns_zone_cmd_complete(RsdNamespace *rs, RsdCmd *cmd)
{
    RsdZoneMgmt *mgmt = cmd->opaque;
    NvmeRequest *req = mgmt->req;

    if (cmd->status != RSD_OK) {
        mgmt->status = rsd_nvme_status(cmd, cmd->status);
    }
    rsd_cmd_free(rs->drive, cmd);

    if (--mgmt->pending) {
        return;
    }
    if (req) {
        req->opaque = NULL;
        nvme_ns_complete(req, mgmt->status);
    }
    g_free(mgmt);
}

static void rsd_ns_complete(RsdNamespace *rs, RsdCmd *cmd)
{
    NvmeNamespace *ns = &rs->parent_obj;
    NvmeRequest *req = cmd->opaque;
    NvmeCtrl *n = nvme_ctrl(req);
    MemReentrancyGuard *guard = &DEVICE(n)->mem_reentrancy_guard;
    bool engaged_in_io = guard->engaged_in_io;
    uint16_t status = rsd_nvme_status(cmd, cmd->status);

    /* the host may point a read at the controller's own registers */
    guard->engaged_in_io = true;
    if (cmd->op == RSD_READ && !status) {
        status = nvme_bounce_data(n, cmd->data, nvme_l2b(ns, cmd->nlb),
                                  NVME_TX_DIRECTION_FROM_DEVICE, req);
        if (!status && ns->lbaf.ms) {
            status = nvme_bounce_mdata(n, cmd->oob, nvme_m2b(ns, cmd->nlb),
                                       NVME_TX_DIRECTION_FROM_DEVICE, req);
        }
    }
    guard->engaged_in_io = engaged_in_io;

    rsd_cmd_free(rs->drive, cmd);
    req->opaque = NULL;
    nvme_ns_complete(req, status);
}

void rsd_ns_timer(void *opaque)
{
    RsdNamespace *rs = opaque;
    uint64_t now = rsd_ns_now();
    RsdCmd *cmd;

    while ((cmd = rsd_advance(rs->drive, now))) {
        trace_rsd_nvme_complete(nvme_nsid(&rs->parent_obj), cmd->op, cmd->lba,
                                cmd->nlb, cmd->status,
                                cmd->done_ns - cmd->submit_ns);
        if (cmd->op == RSD_ZONE_RESET || cmd->op == RSD_ZONE_FINISH) {
            rsd_ns_zone_cmd_complete(rs, cmd);
        } else {
            rsd_ns_complete(rs, cmd);
        }
    }

    rsd_ns_arm(rs);
}

uint16_t rsd_ns_format(NvmeNamespace *ns, uint8_t idx)
{
    RsdNamespace *rs = RSD_NS(ns);

    switch (rsd_format(rs->drive, ns->id_ns.lbaf[idx].ms,
                       rsd_ns_now())) {
    case RSD_OK:
        rsd_ns_arm(rs);
        /* the core forgot all zones, but a dead one stays dead */
        for (uint32_t i = 0; i < ns->num_zones; i++) {
            NvmeZone *zone = &ns->zone_array[i];
            NvmeZoneState state = nvme_get_zone_state(zone);

            if (state == NVME_ZONE_STATE_READ_ONLY ||
                state == NVME_ZONE_STATE_OFFLINE) {
                rsd_zone_save(rs->drive, i, state, zone->d.za);
            }
        }
        return NVME_SUCCESS;
    case RSD_E_ORDER:
        /* commands are in flight: the host may try again */
        return NVME_CMD_SEQ_ERROR;
    default:
        return NVME_INTERNAL_DEV_ERROR;
    }
}
