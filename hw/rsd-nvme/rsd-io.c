/*
 * The data path: NVMe requests in, commands of the drive's core out, and back.
 *
 * Everything happens in two contexts: the doorbell write that brings a request
 * and the timer on the virtual clock at which the core has its next event.
 * Data is copied between guest memory and the command's buffers in the first
 * for writes and in the second for reads; nothing waits for the host.
 *
 * The buffers of all commands in flight take up to command-memory. A guest can
 * have far more in its queues than that, since all of it may be the same page
 * of its memory. So a read or write for which there is no memory waits with its
 * data where it is, and all that come behind it wait, too; they go on, in their
 * order, when commands are done. To hw/nvme it is in flight like any other.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "system/block-backend.h"
#include "rsd-ns.h"
#include "trace.h"

/*
 * This is a request of many parts (zones, ranges), which are commands of their
 * own.
 */
typedef struct RsdParts {
    NvmeRequest *req;           /* NULL: cancelled */
    unsigned pending;           /* commands not completed yet */
    uint16_t status;
} RsdParts;

/*
 * Says whether its refusal can come after the write pointer of its zone has
 * moved.
 */
static bool rsd_moves_wp(const NvmeNamespace *ns, const RsdCmd *cmd)
{
    return ns->params.zoned && cmd->op != RSD_READ;
}

static bool rsd_has_parts(const NvmeRequest *req)
{
    return req->cmd.opcode == NVME_CMD_ZONE_MGMT_SEND ||
           req->cmd.opcode == NVME_CMD_DSM;
}

static RsdFlash *rsd_flash(NvmeNamespace *ns)
{
    return RSD_NS_BASE(ns)->flash;
}

static uint16_t rsd_nvme_status(const RsdFlash *flash, const RsdCmd *cmd,
                                RsdStatus status)
{
    RsdGeometry geo;

    switch (status) {
    case RSD_OK:
        return NVME_SUCCESS;
    case RSD_E_RANGE:
        return NVME_LBA_RANGE;
    case RSD_E_ORDER:
        rsd_geometry(flash->drive, cmd->ns, &geo);
        return geo.zoned ? NVME_ZONE_INVALID_WRITE : NVME_WRITE_FAULT;
    case RSD_E_NOSPC:
        return NVME_CAP_EXCEEDED;
    case RSD_E_NOMEM:
        return NVME_INTERNAL_DEV_ERROR;
    case RSD_E_NOBLOCK:
    case RSD_E_READONLY:
        return NVME_WRITE_FAULT;
    case RSD_E_NOZRWA:
        return NVME_NOZRWA;
    case RSD_E_MEDIA:
        return cmd->op == RSD_READ ? NVME_UNRECOVERED_READ : NVME_WRITE_FAULT;
    }

    g_assert_not_reached();
}

static uint64_t rsd_ns_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/*
 * Sets the timer. It is only ever moved to an earlier time, since each move of
 * the earliest timer wakes the main loop. A timer that finds nothing to do sets
 * itself anew.
 */
void rsd_flash_arm(RsdFlash *flash)
{
    uint64_t when;

    if (rsd_next_event(flash->drive, &when)) {
        timer_mod_anticipate_ns(flash->timer, when);
    }
}

/* Tells the host once of each way in which the flash is bad. */
static void rsd_flash_check_health(RsdFlash *flash)
{
    uint32_t changes = rsd_health_changes(flash->drive), i = 0;
    uint8_t news;

    if (changes == flash->health_changes) {
        return;
    }
    flash->health_changes = changes;

    news = rsd_flash_warnings(flash) & ~flash->warnings;
    flash->warnings |= news;
    /*
     * It goes through one of the namespaces, since the other one may have been
     * unplugged.
     */
    while (i < RSD_MAX_NAMESPACES - 1 && !flash->ns[i]) {
        i++;
    }
    for (; news; news &= news - 1) {
        nvme_ns_health_event(flash->ns[i], news & -news);
    }
}

/* Starts a command. With req NULL, it belongs to no request. */
static RsdStatus rsd_flash_start(RsdFlash *flash, RsdCmd *cmd,
                                 const NvmeRequest *req)
{
    uint64_t now = rsd_ns_now(), lba = cmd->lba;
    RsdStatus status = rsd_submit(flash->drive, cmd, now);

    flash->wanted += status == RSD_OK;
    trace_rsd_nvme_submit(cmd->ns, cmd->op, lba, cmd->nlb, status);
    rsd_record_submit(flash->recorder, cmd, lba, now, status, req);
    rsd_flash_arm(flash);
    rsd_flash_check_health(flash);
    rsd_flash_check_power(flash);

    return status;
}

static void rsd_flash_forget(RsdFlash *flash, RsdCmd *cmd)
{
    flash->wanted--;
    rsd_record_detach(flash->recorder, cmd);
    rsd_cmd_detach(flash->drive, cmd);
}

/* Says whether there is memory for it, or nothing that would give some back. */
static bool rsd_has_memory(const RsdFlash *flash, const RsdCmd *what)
{
    uint64_t page = RSD_LBA_SIZE + rsd_oob(flash->drive, what->ns);
    uint64_t bytes = what->op == RSD_WRITE_ZEROES ? 0 : what->nlb * page;
    uint64_t when;

    return rsd_cmd_bytes(flash->drive) + bytes <= flash->command_memory ||
           !rsd_next_event(flash->drive, &when);
}

/* Makes the command of a request, with the data of a write. */
static uint16_t rsd_load(RsdFlash *flash, NvmeRequest *req, const RsdCmd *what)
{
    NvmeCtrl *n = nvme_ctrl(req);
    RsdCmd *cmd = rsd_cmd_new(flash->drive, what->ns, what->op, what->lba,
                              what->nlb);
    uint32_t mlen = nvme_m2b(req->ns, what->nlb);
    uint16_t status = NVME_SUCCESS;

    if (!cmd) {
        return NVME_INTERNAL_DEV_ERROR;
    }
    if (what->op == RSD_WRITE) {
        status = nvme_bounce_data(n, cmd->data, nvme_l2b(req->ns, what->nlb),
                                  NVME_TX_DIRECTION_TO_DEVICE, req);
        if (!status && mlen) {
            status = nvme_bounce_mdata(n, cmd->oob, mlen,
                                       NVME_TX_DIRECTION_TO_DEVICE, req);
        }
    }
    if (status) {
        rsd_cmd_free(flash->drive, cmd);
        return status;
    }

    cmd->append = what->append;
    cmd->fua = what->fua;
    cmd->opaque = req;
    req->opaque = cmd;

    return NVME_SUCCESS;
}

uint16_t rsd_ns_prepare(NvmeNamespace *ns, NvmeRequest *req, uint64_t slba,
                        uint32_t nlb)
{
    RsdFlash *flash = rsd_flash(ns);
    const NvmeRwCmd *rw = (const NvmeRwCmd *)&req->cmd;
    RsdCmd what = {
        .op = RSD_WRITE,
        .ns = RSD_NS_BASE(ns)->index,
        .lba = slba,
        .nlb = nlb,
        .append = req->cmd.opcode == NVME_CMD_ZONE_APPEND,
        /* With its volatile write cache off, every write is through. */
        .fua = (le16_to_cpu(rw->control) & NVME_RW_FUA) ||
               !blk_enable_write_cache(ns->blkconf.blk),
    };
    uint16_t status;

    switch (req->cmd.opcode) {
    case NVME_CMD_READ:
        what.op = RSD_READ;
        break;
    case NVME_CMD_WRITE_ZEROES:
        what.op = RSD_WRITE_ZEROES;
        break;
    }

    if (what.op != RSD_WRITE_ZEROES) {
        if (nvme_m2b(ns, nlb) && !req->cmd.mptr) {
            return NVME_INVALID_FIELD;
        }
        status = nvme_map_dptr(nvme_ctrl(req), &req->sg, nvme_l2b(ns, nlb),
                               &req->cmd);
        if (status) {
            return status;
        }
    }
    if (QTAILQ_EMPTY(&flash->waiting) && rsd_has_memory(flash, &what)) {
        return rsd_load(flash, req, &what);
    }
    flash->prepared = g_new0(RsdWaiting, 1);
    flash->prepared->req = req;
    flash->prepared->what = what;

    return NVME_SUCCESS;
}

void rsd_ns_abandon(NvmeNamespace *ns, NvmeRequest *req)
{
    RsdFlash *flash = rsd_flash(ns);

    if (flash->prepared) {
        g_clear_pointer(&flash->prepared, g_free);
        return;
    }
    rsd_cmd_free(flash->drive, req->opaque);
    req->opaque = NULL;
}

uint16_t rsd_ns_submit(NvmeNamespace *ns, NvmeRequest *req)
{
    RsdFlash *flash = rsd_flash(ns);
    RsdCmd *cmd = req->opaque;
    RsdStatus status;

    if (flash->prepared) {
        QTAILQ_INSERT_TAIL(&flash->waiting, flash->prepared, entry);
        flash->prepared = NULL;
        return NVME_NO_COMPLETE;
    }
    status = rsd_flash_start(flash, cmd, req);
    if (status != RSD_OK) {
        uint16_t nvme_status = rsd_nvme_status(flash, cmd, status);

        rsd_ns_abandon(ns, req);
        return nvme_status;
    }

    return NVME_NO_COMPLETE;
}

/*
 * Zones are unsure if a command was refused after hw/nvme had moved the write
 * pointer, or given the zone a random write area. They are so until hw/nvme has
 * the drive's state. That is when no command waits any more which the drive may
 * refuse or not. If there are only plain writes, it is clear at once: those
 * behind the refused one are refused, too, as not in order.
 */
static void rsd_zone_refused(RsdFlash *flash, const RsdCmd *cmd)
{
    NvmeNamespace *ns = flash->ns[cmd->ns];

    if (!flash->unsure) {
        flash->unsure = bitmap_new(ns->num_zones);
    }
    set_bit(cmd->lba / ns->zone_size, flash->unsure);
}

/*
 * A command to a zone is done. If it was refused, plain writes that wait behind
 * it will be, too. Writes behind any other command may be carried out.
 */
static void rsd_zone_settle(RsdFlash *flash, const RsdCmd *cmd, bool refused)
{
    const uint32_t writes = 1u << RSD_WRITE | 1u << RSD_WRITE_ZEROES;
    NvmeNamespace *ns = flash->ns[cmd->ns];
    uint32_t idx, waiting;
    NvmeZone *zone;
    RsdZone info;
    bool had_area;

    if (!flash->unsure || !ns) {
        return;
    }
    idx = cmd->lba / ns->zone_size;
    if (!test_bit(idx, flash->unsure)) {
        return;
    }
    zone = &ns->zone_array[idx];
    waiting = rsd_zone_waiting(flash->drive, idx);
    rsd_zone_get(flash->drive, idx, &info);
    had_area = zone->d.za & NVME_ZA_ZRWA_VALID;
    if (waiting &&
        (!refused || had_area || info.zrwa || waiting & ~writes)) {
        return;
    }
    clear_bit(idx, flash->unsure);
    if (!info.zrwa) {
        nvme_ns_release_zrwa(ns, zone);
    }
    if (!(info.attrs & RSD_ZA_FINISHED) &&
        (had_area != info.zrwa || zone->d.wp != zone->d.zslba + info.next)) {
        nvme_ns_rewind_zone(ns, zone, zone->d.zslba + info.next);
    }
}

/* Cancels a request, which may not wait at all. */
static void rsd_waiting_cancel(NvmeNamespace *ns, const NvmeRequest *req)
{
    RsdFlash *flash = rsd_flash(ns);
    RsdWaiting *w;

    QTAILQ_FOREACH(w, &flash->waiting, entry) {
        if (w->req == req) {
            break;
        }
    }
    if (!w) {
        return;
    }
    QTAILQ_REMOVE(&flash->waiting, w, entry);
    if (rsd_moves_wp(ns, &w->what) && !w->stale && !flash->dead) {
        rsd_zone_refused(flash, &w->what);
        rsd_zone_settle(flash, &w->what, true);
    }
    g_free(w);
}

/* Requests of the zone that wait are not at its write pointer any more. */
static void rsd_waiting_spoil(NvmeNamespace *ns, const NvmeZone *zone)
{
    RsdFlash *flash = rsd_flash(ns);
    RsdWaiting *w;

    QTAILQ_FOREACH(w, &flash->waiting, entry) {
        w->stale |= rsd_moves_wp(w->req->ns, &w->what) &&
                    w->what.lba - zone->d.zslba < ns->zone_size;
    }
}

void rsd_ns_cancel(NvmeNamespace *ns, NvmeRequest *req)
{
    if (!req->opaque) {
        rsd_waiting_cancel(ns, req);
        return;
    }

    if (rsd_has_parts(req)) {
        RsdParts *parts = req->opaque;

        parts->req = NULL;
        rsd_flash(ns)->wanted -= parts->pending;
        if (!parts->pending) {
            g_free(parts);
        }
    } else if (rsd_moves_wp(ns, req->opaque) && !rsd_flash(ns)->dead &&
               !((RsdCmd *)req->opaque)->gone) {
        /* Nobody asks for it any more, but its zone must be right. */
        ((RsdCmd *)req->opaque)->opaque = NULL;
        rsd_flash(ns)->wanted--;
    } else {
        rsd_flash_forget(rsd_flash(ns), req->opaque);
    }
    req->opaque = NULL;
}

/*
 * Flushes. Acknowledged data is durable when it is programmed, or in a buffer
 * that survives a power cut; the core knows. It is in the media file's page
 * cache then, where the end of QEMU does not touch it. With host-sync=on it is
 * also brought to the host's disk, by a flush, by a write with FUA, and by a
 * format.
 */
uint16_t rsd_ns_flush(NvmeNamespace *ns, NvmeNsFlush *flush)
{
    RsdFlash *flash = rsd_flash(ns);
    RsdCmd *cmd = rsd_cmd_new(flash->drive, RSD_NS_BASE(ns)->index, RSD_FLUSH,
                              0, 0);
    RsdStatus status;

    if (!cmd) {
        return NVME_INTERNAL_DEV_ERROR;
    }

    cmd->opaque = flush;
    flush->opaque = cmd;
    status = rsd_flash_start(flash, cmd, NULL);
    if (status != RSD_OK) {
        uint16_t nvme_status = rsd_nvme_status(flash, cmd, status);

        rsd_cmd_free(flash->drive, cmd);
        return nvme_status;
    }

    return NVME_NO_COMPLETE;
}

void rsd_ns_flush_cancel(NvmeNamespace *ns, NvmeNsFlush *flush)
{
    rsd_flash_forget(rsd_flash(ns), flush->opaque);
}

static uint16_t rsd_ns_add_part(NvmeNamespace *ns, NvmeRequest *req, RsdOp op,
                                uint64_t lba, uint32_t nlb)
{
    RsdFlash *flash = rsd_flash(ns);
    RsdCmd *cmd = rsd_cmd_new(flash->drive, RSD_NS_BASE(ns)->index, op, lba,
                              nlb);
    RsdParts *parts = req->opaque;
    RsdStatus status;

    if (!cmd) {
        return NVME_INTERNAL_DEV_ERROR;
    }
    if (!parts) {
        parts = req->opaque = g_new0(RsdParts, 1);
        parts->req = req;
    }

    cmd->opaque = parts;
    status = rsd_flash_start(flash, cmd, req);
    if (status != RSD_OK) {
        uint16_t nvme_status = rsd_nvme_status(flash, cmd, status);

        rsd_cmd_free(flash->drive, cmd);
        return nvme_status;
    }
    parts->pending++;

    return NVME_SUCCESS;
}

uint16_t rsd_ns_parts_done(NvmeNamespace *ns, NvmeRequest *req)
{
    /* Without a part everything was already as the request asks. */
    return req->opaque ? NVME_NO_COMPLETE : NVME_SUCCESS;
}

uint16_t rsd_ns_deallocate(NvmeNamespace *ns, NvmeRequest *req, uint64_t slba,
                           uint32_t nlb)
{
    return rsd_ns_add_part(ns, req, RSD_TRIM, slba, nlb);
}

uint16_t rsd_ns_zone_reset(NvmeNamespace *ns, NvmeRequest *req,
                           NvmeZone *zone)
{
    uint16_t status = rsd_ns_add_part(ns, req, RSD_ZONE_RESET, zone->d.zslba,
                                      0);

    if (!status) {
        rsd_waiting_spoil(ns, zone);
    }

    return status;
}

uint16_t rsd_ns_zone_finish(NvmeNamespace *ns, NvmeRequest *req,
                            NvmeZone *zone)
{
    uint16_t status = rsd_ns_add_part(ns, req, RSD_ZONE_FINISH,
                                      zone->d.zslba, 0);

    if (!status) {
        rsd_waiting_spoil(ns, zone);
        RSD_NS(ns)->finishing = zone;
    }

    return status;
}

uint16_t rsd_ns_zone_zrwa(NvmeNamespace *ns, NvmeRequest *req, NvmeZone *zone)
{
    return rsd_ns_add_part(ns, req, RSD_ZRWA_OPEN, zone->d.zslba, 0);
}

uint16_t rsd_ns_zone_commit(NvmeNamespace *ns, NvmeRequest *req,
                            NvmeZone *zone, uint32_t nlb)
{
    return rsd_ns_add_part(ns, req, RSD_ZRWA_COMMIT, zone->d.wp, nlb);
}

void rsd_ns_drop_area(NvmeNamespace *ns, NvmeZone *zone)
{
    RsdFlash *flash = rsd_flash(ns);
    RsdParts *parts;
    RsdCmd *cmd;

    if (!(zone->d.za & NVME_ZA_ZRWA_VALID)) {
        return;
    }
    cmd = rsd_cmd_new(flash->drive, 0, RSD_ZONE_FINISH, zone->d.zslba, 0);
    if (!cmd) {
        return;
    }
    parts = g_new0(RsdParts, 1);
    parts->pending = 1;
    cmd->opaque = parts;
    if (rsd_flash_start(flash, cmd, NULL) != RSD_OK) {
        g_free(parts);
        rsd_cmd_free(flash->drive, cmd);
        return;
    }
    flash->wanted--;            /* parts are of no request */
    nvme_ns_release_zrwa(ns, zone);
}

/* A format's trim is done. If a reset has ended the format, nobody goes on. */
static void rsd_emptying_complete(RsdFlash *flash, RsdCmd *cmd)
{
    NvmeNamespace *ns = flash->ns[cmd->ns];

    if (flash->emptying[cmd->ns] == cmd) {
        flash->emptying[cmd->ns] = NULL;
        /* If it failed, so did the format. */
        flash->emptied[cmd->ns] = flash->formatting[cmd->ns] = ns &&
                                                               ns->formatting;
    }
    rsd_cmd_free(flash->drive, cmd);
}

static void rsd_part_complete(RsdFlash *flash, RsdCmd *cmd)
{
    RsdParts *parts = cmd->opaque;
    NvmeRequest *req;

    if (!parts) {
        rsd_emptying_complete(flash, cmd);
        return;
    }
    req = parts->req;
    flash->wanted -= req != NULL;
    if (cmd->status != RSD_OK && (cmd->op == RSD_ZRWA_OPEN ||
                                  cmd->op == RSD_ZRWA_COMMIT)) {
        rsd_zone_refused(flash, cmd);
    }
    if (cmd->op != RSD_TRIM) {
        rsd_zone_settle(flash, cmd, false);
    }
    if (cmd->status != RSD_OK) {
        parts->status = rsd_nvme_status(flash, cmd, cmd->status);
    }
    rsd_cmd_free(flash->drive, cmd);

    if (--parts->pending) {
        return;
    }
    if (req) {
        req->opaque = NULL;
        nvme_ns_complete(req, parts->status);
    }
    g_free(parts);
}

/* Returns the status of a command that succeeded, and is to be durable. */
static uint16_t rsd_host_sync(RsdFlash *flash)
{
    return flash->host_sync && rsd_media_sync(flash->drive) < 0
           ? NVME_WRITE_FAULT : NVME_SUCCESS;
}

static void rsd_flush_complete(RsdFlash *flash, RsdCmd *cmd)
{
    NvmeNsFlush *flush = cmd->opaque;
    uint16_t status = rsd_nvme_status(flash, cmd, cmd->status);

    flash->wanted--;
    rsd_cmd_free(flash->drive, cmd);
    nvme_ns_flush_done(flush, status ? status : rsd_host_sync(flash));
}

/*
 * Gives the host the data of a read. The host may point a read at registers.
 * Those of the controller itself do nothing then. A doorbell of another
 * controller with inline queues has its commands carried out in here: they find
 * the read in flight, so that they cannot change the format of its buffers.
 */
static uint16_t rsd_read_out(RsdFlash *flash, NvmeRequest *req, RsdCmd *cmd)
{
    NvmeCtrl *n = nvme_ctrl(req);
    MemReentrancyGuard *guard = &DEVICE(n)->mem_reentrancy_guard;
    bool engaged_in_io = guard->engaged_in_io;
    uint32_t mlen = cmd->nlb * rsd_oob(flash->drive, cmd->ns);
    uint16_t status;

    guard->engaged_in_io = true;
    flash->reading_out = true;
    status = nvme_bounce_data(n, cmd->data, nvme_l2b(req->ns, cmd->nlb),
                              NVME_TX_DIRECTION_FROM_DEVICE, req);
    if (!status && mlen) {
        status = nvme_bounce_mdata(n, cmd->oob, mlen,
                                   NVME_TX_DIRECTION_FROM_DEVICE, req);
    }
    flash->reading_out = false;
    guard->engaged_in_io = engaged_in_io;

    return status;
}

static void rsd_transfer_complete(RsdFlash *flash, RsdCmd *cmd)
{
    NvmeRequest *req = cmd->opaque;     /* NULL: cancelled */
    NvmeNamespace *ns = flash->ns[cmd->ns];
    uint16_t status = rsd_nvme_status(flash, cmd, cmd->status);

    flash->wanted -= req != NULL;
    if (cmd->op == RSD_READ && !status) {
        status = rsd_read_out(flash, req, cmd);
    }
    if (cmd->op != RSD_READ && cmd->fua && !status) {
        status = rsd_host_sync(flash);
    }
    if (ns && rsd_moves_wp(ns, cmd)) {
        bool refused = cmd->status == RSD_E_NOSPC ||
                       cmd->status == RSD_E_NOBLOCK ||
                       cmd->status == RSD_E_NOMEM ||
                       cmd->status == RSD_E_READONLY;

        if (refused) {
            rsd_zone_refused(flash, cmd);
        }
        rsd_zone_settle(flash, cmd, refused);
    }

    rsd_cmd_free(flash->drive, cmd);
    if (req) {
        req->opaque = NULL;
        nvme_ns_complete(req, status);
    }
}

/* A request that waited is the first one now, and there is memory for it. */
static void rsd_waiting_start(RsdFlash *flash, const RsdWaiting *w)
{
    NvmeRequest *req = w->req;
    RsdStatus started = RSD_E_NOMEM;
    uint16_t status = w->stale ? NVME_ZONE_INVALID_WRITE
                               : rsd_load(flash, req, &w->what);

    if (!status) {
        started = rsd_flash_start(flash, req->opaque, req);
        if (started == RSD_OK) {
            return;
        }
        status = rsd_nvme_status(flash, &w->what, started);
        rsd_ns_abandon(req->ns, req);
    }
    /* It is not in order: another one was refused, or it is stale. */
    if (rsd_moves_wp(req->ns, &w->what) && !w->stale &&
        started != RSD_E_ORDER) {
        rsd_zone_refused(flash, &w->what);
        rsd_zone_settle(flash, &w->what, true);
    }
    nvme_ns_complete(req, status);
}

static void rsd_waiting_go_on(RsdFlash *flash)
{
    RsdWaiting *w;

    while ((w = QTAILQ_FIRST(&flash->waiting)) && !flash->dead &&
           rsd_has_memory(flash, &w->what)) {
        QTAILQ_REMOVE(&flash->waiting, w, entry);
        rsd_waiting_start(flash, w);
        g_free(w);
    }
}

/* Formats that waited may be possible now. */
static void rsd_formats_go_on(RsdFlash *flash)
{
    for (uint32_t i = 0; i < RSD_MAX_NAMESPACES; i++) {
        if (flash->formatting[i] && flash->ns[i]) {
            flash->formatting[i] = false;
            nvme_ns_format_go_on(flash->ns[i]);
            flash->emptied[i] &= flash->formatting[i];
        }
    }
}

void rsd_flash_timer(void *opaque)
{
    RsdFlash *flash = opaque;
    uint64_t now = rsd_ns_now();
    RsdCmd *cmd;

    rsd_record_advance(flash->recorder, now);
    while ((cmd = rsd_advance(flash->drive, now))) {
        trace_rsd_nvme_complete(cmd->ns, cmd->op, cmd->lba, cmd->nlb,
                                cmd->status, cmd->done_ns - cmd->submit_ns);
        rsd_record_done(flash->recorder, cmd);
        switch (cmd->op) {
        case RSD_FLUSH:
            rsd_flush_complete(flash, cmd);
            break;
        case RSD_ZONE_RESET:
        case RSD_ZONE_FINISH:
        case RSD_TRIM:
        case RSD_ZRWA_OPEN:
        case RSD_ZRWA_COMMIT:
            rsd_part_complete(flash, cmd);
            break;
        case RSD_READ:
        case RSD_WRITE:
        case RSD_WRITE_ZEROES:
            rsd_transfer_complete(flash, cmd);
            break;
        }
    }
    rsd_flash_check_zones(flash);
    rsd_waiting_go_on(flash);
    rsd_formats_go_on(flash);

    rsd_flash_arm(flash);
    rsd_flash_check_health(flash);
    rsd_flash_check_power(flash);
}

/* The core forgot all zones, but a dead zone stays dead. */
static void rsd_ns_save_dead_zones(NvmeNamespace *ns)
{
    for (uint32_t i = 0; i < ns->num_zones; i++) {
        NvmeZone *zone = &ns->zone_array[i];
        NvmeZoneState state = nvme_get_zone_state(zone);

        if (state == NVME_ZONE_STATE_READ_ONLY ||
            state == NVME_ZONE_STATE_OFFLINE) {
            rsd_zone_save(rsd_flash(ns)->drive, i, state, zone->d.za);
        }
    }
}

/*
 * Says whether a namespace is trimmed first. rsd_format() does all its work at
 * once. So a format of a large conventional namespace begins with a trim of all
 * of it, which takes steps and time, as any such trim (core/front/trim.c). The
 * namespace takes no requests meanwhile. A reset ends the format, not the trim.
 */
static bool rsd_is_to_be_emptied(const RsdFlash *flash, uint32_t index,
                                 uint32_t oob)
{
    RsdGeometry geo;

    rsd_geometry(flash->drive, index, &geo);
    return !geo.zoned && geo.lbas > RSD_TRIM_STEP && geo.lbas <= UINT32_MAX &&
           oob <= geo.max_oob && !flash->emptied[index];
}

/* Says whether a request to the namespace waits for memory. */
static bool rsd_waits_for(const RsdFlash *flash, uint32_t index)
{
    const RsdWaiting *w;

    QTAILQ_FOREACH(w, &flash->waiting, entry) {
        if (w->what.ns == index) {
            return true;
        }
    }
    return false;
}

static uint16_t rsd_format_empties(RsdFlash *flash, uint32_t index)
{
    RsdGeometry geo;
    RsdStatus status;
    RsdCmd *cmd;

    rsd_geometry(flash->drive, index, &geo);
    cmd = rsd_cmd_new(flash->drive, index, RSD_TRIM, 0, geo.lbas);
    if (!cmd) {
        return NVME_INTERNAL_DEV_ERROR;
    }
    status = rsd_flash_start(flash, cmd, NULL);
    if (status != RSD_OK) {
        rsd_cmd_free(flash->drive, cmd);
        return NVME_INTERNAL_DEV_ERROR;
    }
    if (flash->emptying[index]) {
        /* This is the trim of a format that a reset has ended. */
        rsd_record_detach(flash->recorder, flash->emptying[index]);
        rsd_cmd_detach(flash->drive, flash->emptying[index]);
    }
    flash->emptying[index] = cmd;
    flash->wanted--;            /* it is of no request */

    return NVME_NO_COMPLETE;
}

uint16_t rsd_ns_format(NvmeNamespace *ns, uint8_t idx)
{
    RsdFlash *flash = rsd_flash(ns);
    uint32_t index = RSD_NS_BASE(ns)->index;
    uint32_t oob = ns->id_ns.lbaf[idx].ms;
    uint64_t now = rsd_ns_now();
    RsdStatus status;

    if (flash->dead || flash->reading_out || rsd_waits_for(flash, index) ||
        (flash->wanted && !flash->emptied[index])) {
        /* Commands are in flight, so the host may try again. */
        return NVME_CMD_SEQ_ERROR;
    }
    if (rsd_is_to_be_emptied(flash, index, oob)) {
        return rsd_format_empties(flash, index);
    }
    status = rsd_format(flash->drive, index, oob, now);
    if (status == RSD_E_ORDER) {
        /*
         * A command that the host has forgotten, by a reset, is in flight, and
         * will end.
         */
        flash->formatting[index] = true;
        return NVME_NO_COMPLETE;
    }
    flash->emptied[index] = false;
    rsd_record_format(flash->recorder, index, oob, now, status);
    switch (status) {
    case RSD_OK:
        rsd_flash_arm(flash);
        rsd_ns_save_dead_zones(ns);
        return rsd_host_sync(flash);
    case RSD_E_RANGE:
        /* The drive has no place for this metadata: a disk has none. */
        return NVME_INVALID_FORMAT | NVME_DNR;
    default:
        return NVME_INTERNAL_DEV_ERROR;
    }
}
