/*
 * Commands: their buffers, checks and completion, and the drive's health.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

RsdCmd *rsd_cmd_new(RsdDrive *drive, uint32_t ns, RsdOp op, uint64_t lba,
                    uint32_t nlb)
{
    bool payload = drive->media.data && (op == RSD_READ || op == RSD_WRITE);
    uint32_t oob = payload ? drive->ns[ns].oob : 0;
    size_t size = sizeof(Cmd) + drive->cmd_area;
    Cmd *cmd;

    if (payload) {
        size += (size_t)nlb * (RSD_PAGE_SIZE + oob);
    }
    if (!payload && drive->free_cmds) {
        cmd = drive->free_cmds;
        drive->free_cmds = cmd->next;
    } else {
        cmd = malloc(size);
        if (!cmd) {
            return NULL;
        }
        drive->ram_bytes += size;
    }
    *cmd = (Cmd){
        .pub = { .op = op, .ns = ns, .lba = lba, .nlb = nlb },
        .size = size,
        .oob_len = oob,
        .next = drive->cmds,
    };
    memset(cmd->area, 0, drive->cmd_area);
    if (payload) {
        drive->cmd_bytes += size;
        cmd->pub.data = (uint8_t *)cmd->area + drive->cmd_area;
    }
    if (oob) {
        cmd->pub.oob = cmd->pub.data + (size_t)nlb * RSD_PAGE_SIZE;
    }
    if (drive->cmds) {
        drive->cmds->prev = cmd;
    }
    drive->cmds = cmd;
    return &cmd->pub;
}

static void free_cmd(RsdDrive *drive, Cmd *cmd)
{
    if (cmd->prev) {
        cmd->prev->next = cmd->next;
    } else {
        drive->cmds = cmd->next;
    }
    if (cmd->next) {
        cmd->next->prev = cmd->prev;
    }
    if (cmd->size == sizeof(*cmd) + drive->cmd_area) {
        cmd->next = drive->free_cmds;
        drive->free_cmds = cmd;
    } else {
        drive->ram_bytes -= cmd->size;
        drive->cmd_bytes -= cmd->size;
        free(cmd);
    }
}

uint64_t rsd_cmd_bytes(const RsdDrive *drive)
{
    return drive->cmd_bytes;
}

void rsd_cmd_detach(RsdDrive *drive, RsdCmd *pub)
{
    Cmd *cmd = (Cmd *)pub;

    if (cmd->submitted) {
        cmd->detached = true;
    } else {
        free_cmd(drive, cmd);
    }
}

void rsd_cmd_free(RsdDrive *drive, RsdCmd *pub)
{
    /* A command in flight is still needed: it frees itself later. */
    rsd_cmd_detach(drive, pub);
}

static void count_cmd(RsdCounters *count, const RsdDrive *drive, const Cmd *cmd)
{
    /* A command that failed did not read or write all its data. */
    bool ok = cmd->pub.status == RSD_OK;
    uint32_t pages = ok ? cmd->pub.nlb : 0;

    switch (cmd->pub.op) {
    case RSD_READ:
        count->host_read_cmds++;
        count->host_read_pages += pages;
        count->unwritten_reads += ok ? cmd->unwritten : 0;
        break;
    case RSD_WRITE_ZEROES:
        count->host_write_cmds++;
        if (drive->ns[cmd->pub.ns].geo.zoned) {
            count->host_write_pages += pages;
        } else {
            count->host_zero_pages += pages;
        }
        break;
    case RSD_WRITE:
        count->host_write_cmds++;
        count->host_write_pages += pages;
        break;
    case RSD_ZONE_RESET:
        count->zone_resets++;
        break;
    case RSD_ZONE_FINISH:
        count->zone_finishes++;
        break;
    case RSD_FLUSH:
        count->flush_cmds++;
        break;
    case RSD_TRIM:
        count->trim_cmds++;
        count->trim_pages += pages;
        break;
    case RSD_ZRWA_OPEN:
    case RSD_ZRWA_COMMIT:
        break;
    }
}

/*
 * Checks whether the host could not back the mapping of the media file, or its
 * disk has lost data: see fault.c. The drive is read-only then, and only reads
 * succeed any more; none does without the tables.
 */
static RsdStatus look_at_faults(RsdDrive *drive, bool read)
{
    const RsdFaults *faults = &drive->media.faults;

    if (!faults->count) {
        return RSD_OK;
    }
    if (!drive->failed) {
        drive->count->media_errors++;
        rsd_drive_fail(drive);
    }
    return !read || faults->all_lost ? RSD_E_MEDIA : RSD_OK;
}

static void complete(RsdDrive *drive, Cmd *cmd)
{
    RsdStatus fault = look_at_faults(drive, cmd->pub.op == RSD_READ);

    if (fault != RSD_OK) {
        cmd->pub.status = fault;
    }
    if (!cmd->refused) {
        count_cmd(drive->count, drive, cmd);
    }
    drive->ns[cmd->pub.ns].in_flight--;
    cmd->pub.done_ns = drive->sched.now;
    cmd->done_next = NULL;
    if (drive->done_head) {
        drive->done_tail->done_next = cmd;
    } else {
        drive->done_head = cmd;
    }
    drive->done_tail = cmd;
}

/* Ends a step of a large trim, which is over with the last one. */
static void step_done(RsdDrive *drive, Cmd *step)
{
    Cmd *whole = step->whole;

    if (rsd_trim_go_on(drive, step)) {
        free_cmd(drive, step);
        rsd_cmd_drop(drive, whole);
        rsd_trim_let_go(drive, whole->pub.ns);
    }
}

void rsd_cmd_done(RsdDrive *drive, Cmd *cmd)
{
    if (cmd->in_flight) {
        rsd_write_ends(cmd, &drive->ns[cmd->pub.ns]);
    }
    if (cmd->whole) {
        step_done(drive, cmd);
    } else if (drive->host->on) {
        rsd_host_leave(drive, cmd);
    } else {
        complete(drive, cmd);
    }
}

static bool in_range(const RsdGeometry *geo, const RsdCmd *cmd)
{
    if (cmd->op == RSD_FLUSH) {
        return true;
    }
    if (cmd->lba >= geo->lbas) {
        return false;
    }
    switch (cmd->op) {
    case RSD_ZONE_RESET:
    case RSD_ZONE_FINISH:
    case RSD_ZRWA_OPEN:
        return geo->zoned;
    case RSD_ZRWA_COMMIT:
        if (!geo->zoned) {
            return false;
        }
        /* fall through */
    case RSD_WRITE:
    case RSD_WRITE_ZEROES:
        if (geo->zoned) {
            uint64_t offset = cmd->lba & (geo->zone_size - 1);

            return cmd->nlb && offset + cmd->nlb <= geo->zone_capacity;
        }
        break;
    case RSD_TRIM:
        if (geo->zoned) {
            return false;
        }
        break;
    case RSD_READ:
    case RSD_FLUSH:
        break;
    }
    return cmd->nlb && cmd->nlb <= geo->lbas - cmd->lba;
}

/*
 * Says whether it is one of the operations that have a number, see rsd-power.h.
 */
static bool is_operation(const RsdDrive *drive, const RsdCmd *cmd)
{
    return cmd->op == RSD_ZONE_RESET || cmd->op == RSD_ZONE_FINISH ||
           cmd->op == RSD_TRIM ||
           (cmd->op == RSD_WRITE_ZEROES && !drive->ns[cmd->ns].geo.zoned &&
            /* A disk writes them, and counts that. */
            !rsd_ftl_is(&drive->cfg, RSD_FTL_ROTATES));
}

static RsdStatus begin_steps(RsdDrive *drive, Cmd *cmd)
{
    Cmd *step = (Cmd *)rsd_cmd_new(drive, cmd->pub.ns, cmd->pub.op,
                                   cmd->pub.lba, RSD_TRIM_STEP);
    RsdStatus status;

    if (!step) {
        return RSD_E_NOMEM;
    }
    step->submitted = step->detached = true;
    status = rsd_trim_begin(drive, cmd, step);
    if (status != RSD_OK) {
        free_cmd(drive, step);
        rsd_trim_let_go(drive, cmd->pub.ns);
    }
    return status;
}

/* Begins a command: its operations are queued, or nothing was changed. */
static RsdStatus begin_cmd(RsdDrive *drive, Cmd *cmd)
{
    Ns *ns = &drive->ns[cmd->pub.ns];
    bool large = rsd_trim_is_large(drive, cmd);
    RsdStatus status;

    cmd->pending = 1;           /* until all of it is queued */
    if (!cmd->waits) {          /* a trim that was held has its number */
        cmd->begun = ++drive->begun;
    }
    if (drive->watched) {
        if (drive->scenario && !cmd->whole &&
            rsd_inject_command(drive, cmd, &status)) {
            return status;
        }
        /* Each step of a large trim is an operation of its own. */
        if (is_operation(drive, &cmd->pub) && !large) {
            rsd_power_command(drive, cmd->pub.op, cmd->pub.lba);
        }
    }
    if (large) {
        return begin_steps(drive, cmd);
    }
    if (cmd->pub.op == RSD_WRITE) {
        cmd->seq = drive->seq;
        if (ns->watches_writes) {
            rsd_write_begins(cmd, ns);
        }
    }
    if (cmd->pub.op == RSD_FLUSH && rsd_buffered(ns->drive) &&
        !drive->cfg.plp) {
        if (!rsd_op_reserve(drive, 1)) {
            return RSD_E_NOMEM;
        }
        rsd_buffer_flush(ns, cmd);
    }
    status = ns->personality->submit(ns, cmd);
    if (status == RSD_OK && cmd->pub.op == RSD_WRITE) {
        drive->seq += cmd->pub.nlb;
    } else if (cmd->in_flight) {
        rsd_write_ends(cmd, ns);
    }
    return status;
}

/* Says whether it is too late for such a command. */
static bool worn_out(const RsdDrive *drive, const RsdCmd *cmd)
{
    return drive->read_only && cmd->op != RSD_READ && cmd->op != RSD_FLUSH;
}

static void go_on(RsdDrive *drive, Cmd *cmd)
{
    RsdStatus status = worn_out(drive, &cmd->pub) ? RSD_E_READONLY
                                                  : begin_cmd(drive, cmd);

    if (status != RSD_OK) {
        cmd->pub.status = status;
        cmd->refused = true;
        cmd->pending = 1;
    }
    rsd_cmd_drop(drive, cmd);
}

static void hand_over(RsdDrive *drive, Cmd *cmd)
{
    if (cmd->whole) {
        rsd_trim_step_begins(drive, cmd);
    } else if (rsd_trim_holds(drive, cmd)) {
        return;
    }
    go_on(drive, cmd);
}

void rsd_expect(const RsdDrive *drive, uint32_t index, uint64_t lba)
{
    const Ns *ns = &drive->ns[index];

    if (ns->personality->expect && ns->state && lba < ns->geo.lbas) {
        ns->personality->expect(ns, lba);
    }
}

RsdStatus rsd_submit(RsdDrive *drive, RsdCmd *pub, uint64_t now)
{
    Cmd *cmd = (Cmd *)pub;
    Ns *ns = &drive->ns[pub->ns];
    RsdStatus status = RSD_OK, fault;

    assert(!cmd->submitted);
    rsd_media_may_fault();
    rsd_sched_run(drive, now);
    if (!in_range(&ns->geo, pub)) {
        return RSD_E_RANGE;
    }
    fault = look_at_faults(drive, pub->op == RSD_READ);
    if (fault != RSD_OK) {
        return fault;
    }
    if (worn_out(drive, pub)) {
        return RSD_E_READONLY;
    }
    pub->status = RSD_OK;
    pub->submit_ns = drive->sched.now;
    if (drive->power->off) {
        /* There is no controller to do anything with it. */
    } else if (drive->host->on) {
        rsd_host_enter(drive, cmd);
    } else if (!rsd_trim_holds(drive, cmd)) {
        status = begin_cmd(drive, cmd);
        /*
         * This is called also after a refusal, which may have found worn
         * blocks.
         */
        rsd_sched_settle(drive);
    }
    if (status != RSD_OK) {
        fault = look_at_faults(drive, pub->op == RSD_READ);
        return fault != RSD_OK ? fault : status;
    }
    cmd->submitted = true;
    ns->in_flight++;
    if (!drive->host->on && !drive->power->off && !cmd->held) {
        rsd_cmd_drop(drive, cmd);
    }
    return RSD_OK;
}

bool rsd_next_event(const RsdDrive *drive, uint64_t *when)
{
    if (drive->done_head) {
        *when = drive->done_head->pub.done_ns;
        return true;
    }
    return rsd_sched_next(drive, when);
}

/* Returns the next command that is done and that somebody waits for. */
static RsdCmd *take_done(RsdDrive *drive)
{
    while (drive->done_head) {
        Cmd *cmd = drive->done_head;

        drive->done_head = cmd->done_next;
        cmd->submitted = false;
        if (!cmd->detached) {
            return &cmd->pub;
        }
        free_cmd(drive, cmd);
    }
    return NULL;
}

RsdCmd *rsd_advance(RsdDrive *drive, uint64_t now)
{
    rsd_media_may_fault();
    rsd_sched_run(drive, now);
    return take_done(drive);
}

RsdCmd *rsd_advance_to_done(RsdDrive *drive)
{
    uint64_t when;
    RsdCmd *cmd;

    rsd_media_may_fault();
    do {
        rsd_sched_run_to_done(drive);
        cmd = take_done(drive);
    } while (!cmd && rsd_sched_next(drive, &when));
    return cmd;
}

RsdStatus rsd_format(RsdDrive *drive, uint32_t index, uint32_t oob,
                     uint64_t now)
{
    Ns *ns = &drive->ns[index];

    rsd_media_may_fault();
    rsd_sched_run(drive, now);
    if (ns->in_flight || drive->power->off) {
        return RSD_E_ORDER;
    }
    /*
     * The commands are done, but the caller has not got them: their buffers are
     * of the old format.
     */
    for (Cmd *cmd = drive->done_head; cmd; cmd = cmd->done_next) {
        if (cmd->pub.ns == index && !cmd->detached) {
            return RSD_E_ORDER;
        }
    }
    if ((oob != 0 && oob != 16 && oob != 64 && oob != 128) ||
        oob > ns->geo.max_oob) {
        return RSD_E_RANGE;
    }
    if (drive->read_only) {
        return RSD_E_READONLY;
    }
    if (drive->watched) {
        rsd_power_command(drive, RSD_LOGGED_FORMAT, 0);
    }
    ns->personality->format(ns);
    rsd_sched_settle(drive);
    ns->oob = oob;
    if (!index) {
        drive->cfg.oob = oob;
    }
    rsd_media_set_oob(&drive->media, index, oob);
    drive->count->formats++;
    return look_at_faults(drive, false);
}

const char *rsd_status_name(RsdStatus status)
{
    switch (status) {
    case RSD_OK:
        return "ok";
    case RSD_E_RANGE:
        return "out of range";
    case RSD_E_ORDER:
        return "not in order";
    case RSD_E_NOSPC:
        return "the host's disk is full";
    case RSD_E_NOBLOCK:
        return "no good flash block left";
    case RSD_E_NOMEM:
        return "out of memory";
    case RSD_E_MEDIA:
        return "media error";
    case RSD_E_READONLY:
        return "the drive is read-only";
    case RSD_E_NOZRWA:
        return "no random write area";
    }
    return "unknown";
}

void rsd_health(const RsdDrive *drive, RsdHealth *health)
{
    uint64_t spares = drive->cfg.spare_blocks;

    *health = (RsdHealth){ .read_only = drive->read_only };
    health->available_spare = drive->read_only ? 0 : 100;
    for (uint32_t d = 0; spares && d < drive->dies; d++) {
        uint32_t bad = rsd_bad_blocks(drive, d);
        uint64_t left = bad < spares ? (spares - bad) * 100 / spares : 0;

        if (left < health->available_spare) {
            health->available_spare = left;
        }
    }
}

uint32_t rsd_health_changes(const RsdDrive *drive)
{
    return drive->health_changes;
}

void rsd_cmds_start(RsdDrive *drive)
{
    drive->host->hand_over = hand_over;
    drive->host->complete = complete;
    drive->host->go_on = go_on;
    drive->host->begin = begin_cmd;
    rsd_trims_init(drive);
}

void rsd_cmds_stop(RsdDrive *drive)
{
    for (Cmd *cmd = drive->cmds, *next; cmd; cmd = next) {
        next = cmd->next;
        /*
         * A command that nobody has given up is kept until then, for nothing.
         */
        cmd->pending = cmd->submitted ? 0 : cmd->pending;
        cmd->waits = cmd->in_flight = false;
        cmd->follows = cmd->followers = NULL;
        memset(cmd->area, 0, drive->cmd_area);
        if (cmd->submitted && cmd->detached) {
            free_cmd(drive, cmd);
        } else if (cmd->submitted) {
            cmd->pub.gone = true;
            cmd->submitted = false;
        }
    }
    drive->done_head = drive->done_tail = NULL;
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        drive->ns[i].in_flight = 0;
    }
}

void rsd_cmds_fini(RsdDrive *drive)
{
    while (drive->cmds) {
        free_cmd(drive, drive->cmds);
    }
}
