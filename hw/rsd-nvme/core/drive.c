/*
 * The drive's interface: opening, commands and their completion.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "api/rsd-power.h"

#define OPS_AT_ONCE 1024u       /* operations allocated together */

void *rsd_alloc(RsdDrive *drive, size_t size)
{
    void *mem = calloc(1, size);

    if (mem) {
        drive->ram_bytes += size;
    }
    return mem;
}

void rsd_release(RsdDrive *drive, void *mem, size_t size)
{
    if (mem) {
        drive->ram_bytes -= size;
        free(mem);
    }
}

/*
 * Operations
 */

typedef struct OpChunk {
    struct OpChunk *next;
    size_t size;
    uint64_t ops[];
} OpChunk;

/* Of an operation with what is behind it */
static size_t op_size(const RsdDrive *drive)
{
    return sizeof(Op) + (drive->cfg.suspend ? sizeof(Queued) : 0);
}

bool rsd_op_reserve(RsdDrive *drive, uint64_t count)
{
    uint64_t n;
    OpChunk *chunk;

    if (count <= drive->num_free_ops) {
        return true;
    }
    n = count - drive->num_free_ops;
    if (n < OPS_AT_ONCE) {
        n = OPS_AT_ONCE;
    }
    if (n > UINT32_MAX / 2) {
        return false;
    }
    chunk = rsd_alloc(drive, sizeof(*chunk) + n * op_size(drive));
    if (!chunk) {
        return false;
    }
    chunk->size = sizeof(*chunk) + n * op_size(drive);
    chunk->next = drive->op_chunks;
    drive->op_chunks = chunk;
    while (n--) {
        rsd_op_free(drive, (Op *)((char *)chunk->ops + n * op_size(drive)));
    }
    return true;
}

Op *rsd_op_new(Ns *ns, OpKind kind, RsdCause cause, uint32_t block)
{
    RsdDrive *drive = ns->drive;
    Op *op = drive->free_ops;

    drive->free_ops = op->next;
    drive->num_free_ops--;
    *op = (Op){
        .block = block,
        .count = 1,
        .die = block / drive->die_blocks,
        .kind = kind,
        .cause = cause,
        .ns = ns->index,
    };
    return op;
}

void rsd_op_free(RsdDrive *drive, Op *op)
{
    if (op->unit) {
        rsd_buffer_free_unit(drive, op);
        return;
    }
    op->next = drive->free_ops;
    drive->free_ops = op;
    drive->num_free_ops++;
}

void rsd_op_finish(RsdDrive *drive, Op *op)
{
    Cmd *cmd = op->cmd;

    rsd_op_free(drive, op);
    if (cmd) {
        rsd_cmd_drop(drive, cmd);
    }
}

void rsd_compose_oob(const Cmd *cmd, uint32_t index, const uint8_t *host,
                     uint8_t oob[RSD_OOB_SIZE])
{
    RsdSpare spare = {
        .magic = RSD_SPARE_MAGIC,
        .lpn = cmd->pub.lba + index,
        .seq = cmd->seq + index,
    };

    memset(oob, 0, RSD_SPARE_OFFSET);
    if (host) {
        memcpy(oob, host, cmd->oob_len);
    }
    memcpy(oob + RSD_SPARE_OFFSET, &spare, sizeof(spare));
}

/* Bad blocks of a die, and how many of them the factory did not know */
static uint32_t count_bad(const RsdDrive *drive, uint32_t die, uint32_t *grown)
{
    const uint64_t *rec = drive->media.rec + (size_t)die * drive->die_blocks;
    uint32_t bad = 0;

    *grown = 0;
    for (uint32_t b = 0; b < drive->die_blocks; b++) {
        bad += rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD ? 1 : 0;
        *grown += rsd_rec_flags(rec[b]) & RSD_BLOCK_GROWN ? 1 : 0;
    }
    return bad;
}

/* Read-only once a die has lost more blocks than it had spares when new */
static void look_at_spares(RsdDrive *drive, uint32_t die)
{
    uint32_t grown, bad = count_bad(drive, die, &grown);

    if (grown && bad > drive->cfg.spare_blocks) {
        drive->read_only = true;
    }
}

void rsd_health(const RsdDrive *drive, RsdHealth *health)
{
    uint64_t spares = drive->cfg.spare_blocks;

    *health = (RsdHealth){ .read_only = drive->read_only };
    health->available_spare = drive->read_only ? 0 : 100;
    for (uint32_t d = 0; spares && d < drive->dies; d++) {
        uint32_t grown, bad = count_bad(drive, d, &grown);
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

/* The life of an erased block may have ended: then the erase has failed. */
static void age_block(RsdDrive *drive, uint32_t block)
{
    uint32_t die = block / drive->die_blocks;
    const uint64_t *rec = &drive->media.rec[block];

    if (rsd_rec_erases(*rec) < rsd_nand_life(&drive->cfg, block)) {
        return;
    }
    rsd_nand_mark(&drive->media, block, RSD_BLOCK_BAD | RSD_BLOCK_GROWN);
    drive->health_changes++;
    look_at_spares(drive, die);
}

void rsd_drive_wear_out(RsdDrive *drive)
{
    drive->health_changes += !drive->read_only;
    drive->read_only = true;
}

RsdStatus rsd_drive_no_block(RsdDrive *drive)
{
    for (uint32_t d = 0; d < drive->dies; d++) {
        uint32_t grown;

        count_bad(drive, d, &grown);
        if (grown) {
            rsd_drive_wear_out(drive);
            return RSD_E_READONLY;
        }
    }
    return RSD_E_NOBLOCK;
}

void rsd_drive_fail(RsdDrive *drive)
{
    rsd_drive_wear_out(drive);
    drive->failed = true;
}

/* Slot number i of a step, but not of an erase */
static RsdStatus execute_slot(RsdDrive *drive, const Step *step, uint32_t i)
{
    const Op *op = step->op;
    uint32_t page = step->page + i, index = step->index + i;
    uint8_t composed[RSD_OOB_SIZE];
    uint32_t oob_len = RSD_OOB_SIZE;
    uint8_t *data = NULL, *oob = NULL;

    if (op->buf) {
        /* such an operation is a single step */
        data = op->buf + (size_t)i * (RSD_PAGE_SIZE + RSD_OOB_SIZE);
        oob = data + RSD_PAGE_SIZE;
    } else if (op->cmd) {
        RsdCmd *pub = &op->cmd->pub;

        oob_len = op->cmd->oob_len;
        if (pub->data) {
            data = pub->data + (size_t)index * RSD_PAGE_SIZE;
        }
        if (pub->oob) {
            oob = pub->oob + (size_t)index * oob_len;
        }
        if (op->kind == OP_PROGRAM && pub->data &&
            !drive->ns[op->ns].geo.zoned) {
            rsd_compose_oob(op->cmd, index, oob, composed);
            oob = composed;
            oob_len = RSD_OOB_SIZE;
        }
    }
    if (op->kind == OP_READ) {
        RsdStatus status = rsd_nand_read(&drive->media, op->block, page, data,
                                         oob, oob_len);

        /* what the drive copies stays torn */
        return op->buf && rsd_nand_is_torn(&drive->media, op->block, page)
                   ? RSD_OK : status;
    }
    return rsd_nand_program(&drive->media, op->block, page, data, oob,
                            oob_len);
}

void rsd_op_execute(RsdDrive *drive, const Step *step)
{
    Op *op = step->op;
    uint32_t slots = op->kind == OP_ERASE ? 0 : step->slots;
    RsdStatus status = RSD_OK;

    if (op->kind == OP_ERASE) {
        status = rsd_nand_erase(&drive->media, op->block);
        if (status == RSD_OK && drive->cfg.life_spread) {
            age_block(drive, op->block);
        }
    }
    if (op->kind == OP_PROGRAM && !op->cmd) {
        status = rsd_nand_program_unit(&drive->media, op->block, step->page,
                                       step->slots, op->buf);
        slots = 0;
    }
    for (uint32_t i = 0; i < slots; i++) {
        RsdStatus one = execute_slot(drive, step, i);

        if (one != RSD_OK) {
            status = one;
        }
    }
    if (status != RSD_OK) {
        drive->count->media_errors++;
        op->failed = true;
        if (op->kind == OP_PROGRAM || (op->kind == OP_READ && !op->cmd)) {
            rsd_drive_fail(drive);
        }
        if (op->cmd) {
            op->cmd->pub.status = status;
        }
    }
}

/*
 * Commands
 */

RsdCmd *rsd_cmd_new(RsdDrive *drive, uint32_t ns, RsdOp op, uint64_t lba,
                    uint32_t nlb)
{
    bool payload = drive->media.data && (op == RSD_READ || op == RSD_WRITE);
    uint32_t oob = payload ? drive->ns[ns].oob : 0;
    size_t size = sizeof(Cmd);
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
    if (payload) {
        cmd->pub.data = (uint8_t *)(cmd + 1);
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
    if (cmd->size == sizeof(*cmd)) {
        cmd->next = drive->free_cmds;
        drive->free_cmds = cmd;
    } else {
        drive->ram_bytes -= cmd->size;
        free(cmd);
    }
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
    /* one in flight is still needed: it frees itself later */
    rsd_cmd_detach(drive, pub);
}

void rsd_cmd_drop(RsdDrive *drive, Cmd *cmd)
{
    if (--cmd->pending) {
        return;
    }
    if (cmd->in_flight) {
        rsd_write_ends(cmd, &drive->ns[cmd->pub.ns]);
    }
    if (drive->host.on) {
        rsd_host_leave(drive, cmd);
    } else {
        rsd_cmd_complete(drive, cmd);
    }
}

void rsd_cmd_complete(RsdDrive *drive, Cmd *cmd)
{
    RsdCounters *count = drive->count;
    /* one that failed did not read or write what it was asked to */
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
    drive->in_flight--;
    cmd->pub.done_ns = drive->sched.now;
    cmd->done_next = NULL;
    if (drive->done_head) {
        drive->done_tail->done_next = cmd;
    } else {
        drive->done_head = cmd;
    }
    drive->done_tail = cmd;
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

/* Its operations are queued, or nothing was changed. */
static RsdStatus begin_cmd(RsdDrive *drive, Cmd *cmd)
{
    Ns *ns = &drive->ns[cmd->pub.ns];
    RsdStatus status;

    if (rsd_power_watched(drive) &&
        (cmd->pub.op == RSD_ZONE_RESET || cmd->pub.op == RSD_ZONE_FINISH ||
         cmd->pub.op == RSD_TRIM ||
         (cmd->pub.op == RSD_WRITE_ZEROES && !ns->geo.zoned))) {
        rsd_power_command(drive, cmd->pub.op, cmd->pub.lba);
    }
    cmd->pending = 1;           /* until all of it is queued */
    cmd->begun = ++drive->begun;
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

/* Is it too late for such a command? */
static bool worn_out(const RsdDrive *drive, const RsdCmd *cmd)
{
    return drive->read_only && cmd->op != RSD_READ && cmd->op != RSD_FLUSH;
}

void rsd_cmd_hand_over(RsdDrive *drive, Cmd *cmd)
{
    RsdStatus status = worn_out(drive, &cmd->pub) ? RSD_E_READONLY
                                                  : begin_cmd(drive, cmd);

    if (status != RSD_OK) {
        cmd->pub.status = status;
        cmd->pending = 1;
    }
    rsd_cmd_drop(drive, cmd);
}

RsdStatus rsd_submit(RsdDrive *drive, RsdCmd *pub, uint64_t now)
{
    Cmd *cmd = (Cmd *)pub;
    Ns *ns = &drive->ns[pub->ns];
    RsdStatus status = RSD_OK;

    assert(!cmd->submitted);
    rsd_sched_run(drive, now);
    if (!in_range(&ns->geo, pub)) {
        return RSD_E_RANGE;
    }
    if (worn_out(drive, pub)) {
        return RSD_E_READONLY;
    }
    pub->status = RSD_OK;
    pub->submit_ns = drive->sched.now;
    if (drive->power.off) {
        /* there is nobody to do anything with it */
    } else if (drive->host.on) {
        rsd_host_enter(drive, cmd);
    } else {
        status = begin_cmd(drive, cmd);
        /* also after a refusal, which may have found worn blocks */
        rsd_sched_settle(drive);
    }
    if (status != RSD_OK) {
        return status;
    }
    cmd->submitted = true;
    drive->in_flight++;
    if (!drive->host.on && !drive->power.off) {
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

RsdCmd *rsd_advance(RsdDrive *drive, uint64_t now)
{
    rsd_sched_run(drive, now);
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

RsdStatus rsd_format(RsdDrive *drive, uint32_t index, uint32_t oob,
                     uint64_t now)
{
    Ns *ns = &drive->ns[index];

    rsd_sched_run(drive, now);
    if (drive->in_flight || drive->power.off) {
        return RSD_E_ORDER;
    }
    /* done, but the caller has not got it: its buffers are of the old format */
    for (Cmd *cmd = drive->done_head; cmd; cmd = cmd->done_next) {
        if (!cmd->detached) {
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
    if (rsd_power_watched(drive)) {
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
    return RSD_OK;
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

/*
 * Zones
 */

void rsd_zone_get(const RsdDrive *drive, uint32_t zone, RsdZone *info)
{
    *info = (RsdZone){
        .state = drive->media.zones[zone].state,
        .attrs = drive->media.zones[zone].attrs,
    };
    if (!drive->ns[0].state) {
        return;                 /* off, and could not be opened again */
    }
    info->written = drive->ns[0].personality->written(&drive->ns[0], zone);
    info->next = rsd_seg_next(drive, zone);
    info->zrwa = rsd_zrwa_of(drive, zone);
    info->zrwa_pages = rsd_zrwa_holds(drive, zone);
}

void rsd_zone_save(RsdDrive *drive, uint32_t zone, uint8_t state,
                   uint8_t attrs)
{
    RsdMediaZone *z = &drive->media.zones[zone];
    RsdMediaZone will = *z;

    if (drive->power.off) {
        return;
    }
    will.state = state;
    will.attrs = attrs;
    rsd_media_note(&drive->media, z, &will, sizeof(will));
    z->state = state;
    z->attrs = attrs;
}

const uint8_t *rsd_zone_ext(const RsdDrive *drive, uint32_t zone)
{
    if (!drive->cfg.zd_ext) {
        return NULL;
    }
    return drive->media.ext + (size_t)zone * drive->cfg.zd_ext;
}

void rsd_zone_set_ext(RsdDrive *drive, uint32_t zone, const uint8_t *ext)
{
    static const uint8_t zeroes[16320]; /* the most that zd-ext can be */
    uint32_t len = drive->cfg.zd_ext;
    uint8_t *to = drive->media.ext + (size_t)zone * len;

    if (!len || drive->power.off) {
        return;
    }
    ext = ext ? ext : zeroes;
    rsd_media_note(&drive->media, to, ext, len);
    memcpy(to, ext, len);
}

/*
 * Opening and closing
 */

const Personality *rsd_personality_of(RsdFtl ftl)
{
    switch (ftl) {              /* no default: the compiler sees a gap */
    case RSD_FTL_PAGE:
        return &rsd_page_personality;
    case RSD_FTL_DFTL:
        return &rsd_dftl_personality;
    case RSD_FTL_BLOCK:
        return &rsd_block_personality;
    case RSD_FTL_FAST:
        return &rsd_fast_personality;
    case RSD_FTL_RSD:
        break;
    }
    return &rsd_segment_personality;
}

static void add_namespace(RsdDrive *drive, RsdFtl ftl, uint32_t first,
                          uint32_t end, uint32_t visible)
{
    Ns *ns = &drive->ns[drive->num_ns];

    *ns = (Ns){
        .drive = drive,
        .personality = rsd_personality_of(ftl),
        .index = drive->num_ns++,
        .first = first,
        .end = end,
        .visible = visible,
    };
    /* opening the media has put that of namespace 0 into the settings */
    ns->oob = ns->index ? rsd_media_get_oob(&drive->media, ns->index)
                        : drive->cfg.oob;
}

/* Divides the blocks of each die among the namespaces: the zones come first. */
static bool add_namespaces(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    const RsdConfig *cfg = &drive->cfg;
    uint32_t conv = cfg->conv_blocks;

    drive->dies = cfg->channels * cfg->ways;
    drive->die_blocks = cfg->blocks + cfg->spare_blocks;
    drive->pages = rsd_block_slots(cfg);
    drive->unit = rsd_unit_slots(cfg);
    add_namespace(drive, cfg->ftl, 0, drive->die_blocks - conv,
                  cfg->blocks - conv);
    if (conv) {
        add_namespace(drive, RSD_FTL_PAGE, drive->die_blocks - conv,
                      drive->die_blocks, conv);
    }
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        Ns *ns = &drive->ns[i];

        if (!ns->personality->geometry(ns, err)) {
            return false;
        }
    }
    return true;
}

static size_t blocks_size(const RsdDrive *drive)
{
    return sizeof(Block) * drive->dies * drive->die_blocks;
}

void rsd_drive_stop(RsdDrive *drive)
{
    for (Cmd *cmd = drive->cmds, *next; cmd; cmd = next) {
        next = cmd->next;
        /* one that nobody has given up is kept, waiting for nothing */
        cmd->pending = cmd->submitted ? 0 : cmd->pending;
        cmd->waits = cmd->in_flight = false;
        cmd->follows = cmd->followers = NULL;
        cmd->peers = NULL;
        if (cmd->submitted && cmd->detached) {
            free_cmd(drive, cmd);
        }
    }
    drive->done_head = drive->done_tail = NULL;
    drive->in_flight = 0;
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        drive->ns[i].personality->close(&drive->ns[i]);
        drive->ns[i].waits = NULL;
        drive->ns[i].writes = NULL;
        drive->ns[i].watches_writes = false;
    }
    rsd_zrwa_fini(drive);
    rsd_buffer_fini(drive);
    rsd_bufs_fini(drive);
    rsd_sched_fini(drive);
    while (drive->op_chunks) {
        OpChunk *chunk = drive->op_chunks;

        drive->op_chunks = chunk->next;
        rsd_release(drive, chunk, chunk->size);
    }
    rsd_release(drive, drive->blocks, blocks_size(drive));
    drive->sched = (Sched){ .now = drive->sched.now };
    drive->host = (Host){ 0 };
    drive->buffer = (Buffer){ 0 };
    drive->zrwa = (Zrwa){ 0 };
    drive->blocks = NULL;
    drive->free_ops = NULL;
    drive->num_free_ops = 0;
    drive->free_bufs = NULL;
    drive->seq = 0;
    drive->read_only = drive->failed = false;
    rsd_media_power_on(&drive->media);
}

bool rsd_drive_start(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        if (drive->media.header) {
            drive->ns[i].oob = rsd_media_get_oob(&drive->media, i);
        }
    }
    drive->cfg.oob = drive->ns[0].oob;
    drive->blocks = rsd_alloc(drive, blocks_size(drive));
    if (!drive->blocks || !rsd_sched_init(drive) || !rsd_buffer_init(drive) ||
        !rsd_op_reserve(drive, OPS_AT_ONCE)) {
        rsd_set_error(err, "no memory for %u dies of %u blocks: choose fewer "
                      "blocks of more pages", drive->dies, drive->die_blocks);
        return false;
    }
    if (!rsd_buffer_load(drive, err) || !rsd_zrwa_load(drive, err)) {
        return false;
    }
    rsd_host_init(drive);
    for (uint32_t d = 0; d < drive->dies; d++) {
        look_at_spares(drive, d);
    }
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        Ns *ns = &drive->ns[i];

        if (!ns->personality->open(ns, err)) {
            return false;
        }
    }
    return true;
}

static void destroy(RsdDrive *drive)
{
    while (drive->cmds) {
        free_cmd(drive, drive->cmds);
    }
    rsd_drive_stop(drive);
    while (drive->free_cmds) {
        Cmd *cmd = drive->free_cmds;

        drive->free_cmds = cmd->next;
        free(cmd);
    }
    rsd_media_close(&drive->media);
    free(drive->power.list);
    free(drive);
}

/* log NULL: none */
static RsdDrive *open_drive(const char *path, const char *log,
                            const RsdConfig *cfg, bool view,
                            char err[RSD_ERR_LEN])
{
    RsdDrive *drive;

    if (!rsd_config_check(cfg, err)) {
        return NULL;
    }
    drive = calloc(1, sizeof(*drive));
    if (!drive) {
        rsd_set_error(err, "no memory for a drive");
        return NULL;
    }
    drive->cfg = *cfg;
    if (path ? !rsd_media_open(&drive->media, path, &drive->cfg, view, err)
             : !rsd_media_open_memory(&drive->media, &drive->cfg, err)) {
        free(drive);
        return NULL;
    }
    drive->count = drive->media.counters;
    if (!add_namespaces(drive, err) ||
        (log && !rsd_power_open_log(drive, log, err))) {
        rsd_media_close(&drive->media);
        free(drive);
        return NULL;
    }
    if (!log && drive->media.header && rsd_media_get_log_id(&drive->media)) {
        /* it will not know what happens now */
        rsd_media_set_log_id(&drive->media, 0);
    }
    if (!rsd_drive_start(drive, err)) {
        destroy(drive);
        return NULL;
    }
    return drive;
}

RsdDrive *rsd_open(const char *path, const RsdConfig *cfg,
                   char err[RSD_ERR_LEN])
{
    return open_drive(path, NULL, cfg, false, err);
}

RsdDrive *rsd_open_logged(const char *path, const char *log_path,
                          const RsdConfig *cfg, char err[RSD_ERR_LEN])
{
    return open_drive(path, log_path, cfg, false, err);
}

RsdDrive *rsd_open_view(const char *path, const char *log_path,
                        char err[RSD_ERR_LEN])
{
    RsdConfig cfg;

    return rsd_media_info(path, &cfg, err)
               ? open_drive(path, log_path, &cfg, true, err) : NULL;
}

void rsd_close(RsdDrive *drive)
{
    if (drive) {
        destroy(drive);
    }
}

const RsdConfig *rsd_config(const RsdDrive *drive)
{
    return &drive->cfg;
}

int rsd_media_sync(RsdDrive *drive)
{
    return rsd_media_msync(&drive->media);
}

uint32_t rsd_num_namespaces(const RsdDrive *drive)
{
    return drive->num_ns;
}

void rsd_geometry(const RsdDrive *drive, uint32_t ns, RsdGeometry *geo)
{
    *geo = drive->ns[ns].geo;
}

uint32_t rsd_oob(const RsdDrive *drive, uint32_t ns)
{
    return drive->ns[ns].oob;
}
