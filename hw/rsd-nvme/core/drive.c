/*
 * The drive's interface: opening, commands and their completion.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

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
    Op ops[];
} OpChunk;

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
    chunk = rsd_alloc(drive, sizeof(*chunk) + n * sizeof(Op));
    if (!chunk) {
        return false;
    }
    chunk->size = sizeof(*chunk) + n * sizeof(Op);
    chunk->next = drive->op_chunks;
    drive->op_chunks = chunk;
    while (n--) {
        rsd_op_free(drive, &chunk->ops[n]);
    }
    return true;
}

Op *rsd_op_new(RsdDrive *drive, OpKind kind, RsdCause cause, uint32_t die,
               uint32_t block)
{
    Op *op = drive->free_ops;

    drive->free_ops = op->next;
    drive->num_free_ops--;
    *op = (Op){
        .block = block,
        .count = 1,
        .die = die,
        .kind = kind,
        .cause = cause,
    };
    return op;
}

void rsd_op_free(RsdDrive *drive, Op *op)
{
    op->next = drive->free_ops;
    drive->free_ops = op;
    drive->num_free_ops++;
}

void rsd_op_execute(RsdDrive *drive, Op *op)
{
    const Block *block = &drive->blocks[op->block];
    uint32_t oob_len = RSD_OOB_SIZE;
    uint8_t *data = NULL, *oob = NULL;
    RsdStatus status = RSD_OK;

    if (op->buf) {
        data = op->buf;
        oob = op->buf + RSD_PAGE_SIZE;
    } else if (op->cmd) {
        RsdCmd *pub = &op->cmd->pub;

        oob_len = op->cmd->oob_len;
        if (pub->data) {
            data = pub->data + (size_t)op->index * RSD_PAGE_SIZE;
        }
        if (pub->oob) {
            oob = pub->oob + (size_t)op->index * oob_len;
        }
    }
    switch (op->kind) {
    case OP_READ:
        status = rsd_nand_read(&drive->media, op->block, op->page, data, oob,
                               oob_len);
        break;
    case OP_PROGRAM:
        status = rsd_nand_program(&drive->media, op->block, op->page, data,
                                  oob, oob_len);
        break;
    case OP_ERASE:
        /* its space goes back unless more programs are to come */
        status = rsd_nand_erase(&drive->media, op->block,
                                block->pos == RSD_NONE || block->obsolete ||
                                block->erases > 1);
        break;
    }
    if (status != RSD_OK) {
        drive->count->media_errors++;
        if (op->cmd) {
            op->cmd->pub.status = status;
        }
    }
}

/*
 * Commands
 */

RsdCmd *rsd_cmd_new(RsdDrive *drive, RsdOp op, uint64_t lba, uint32_t nlb)
{
    bool payload = drive->media.data && (op == RSD_READ || op == RSD_WRITE);
    uint32_t oob = payload ? drive->cfg.oob : 0;
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
        .pub = { .op = op, .lba = lba, .nlb = nlb },
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
    RsdCounters *count = drive->count;

    if (--cmd->pending) {
        return;
    }
    switch (cmd->pub.op) {
    case RSD_READ:
        count->host_read_cmds++;
        count->host_read_pages += cmd->pub.nlb;
        count->unwritten_reads += cmd->unwritten;
        break;
    case RSD_WRITE:
    case RSD_WRITE_ZEROES:
        count->host_write_cmds++;
        count->host_write_pages += cmd->pub.nlb;
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

static RsdStatus check(const RsdDrive *drive, const RsdCmd *cmd)
{
    uint64_t lbas = (uint64_t)drive->geo.num_zones << drive->zone_shift;
    uint64_t offset = cmd->lba & (drive->geo.zone_size - 1);

    if (cmd->op == RSD_FLUSH) {
        return RSD_OK;
    }
    if (cmd->lba >= lbas) {
        return RSD_E_RANGE;
    }
    switch (cmd->op) {
    case RSD_READ:
        return cmd->nlb && cmd->nlb <= lbas - cmd->lba ? RSD_OK : RSD_E_RANGE;
    case RSD_WRITE:
    case RSD_WRITE_ZEROES:
        return cmd->nlb && offset + cmd->nlb <= drive->geo.zone_capacity
                   ? RSD_OK : RSD_E_RANGE;
    default:
        return RSD_OK;
    }
}

RsdStatus rsd_submit(RsdDrive *drive, RsdCmd *pub, uint64_t now)
{
    Cmd *cmd = (Cmd *)pub;
    RsdStatus status;

    assert(!cmd->submitted);
    rsd_sched_run(drive, now);
    status = check(drive, pub);
    if (status != RSD_OK) {
        return status;
    }
    pub->status = RSD_OK;
    pub->submit_ns = drive->sched.now;
    cmd->pending = 1;           /* until all of it is queued */
    if (pub->op != RSD_FLUSH) {
        status = drive->personality->submit(drive, cmd);
        if (status != RSD_OK) {
            return status;
        }
    }
    cmd->submitted = true;
    drive->in_flight++;
    rsd_sched_settle(drive);
    rsd_cmd_drop(drive, cmd);
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

RsdStatus rsd_format(RsdDrive *drive, uint32_t oob, uint64_t now)
{
    rsd_sched_run(drive, now);
    if (drive->in_flight) {
        return RSD_E_ORDER;
    }
    /* done, but the caller has not got it: its buffers are of the old format */
    for (Cmd *cmd = drive->done_head; cmd; cmd = cmd->done_next) {
        if (!cmd->detached) {
            return RSD_E_ORDER;
        }
    }
    if (oob != 0 && oob != 16 && oob != 64 && oob != 128) {
        return RSD_E_RANGE;
    }
    drive->personality->format(drive);
    drive->cfg.oob = oob;
    rsd_media_set_oob(&drive->media, oob);
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
    }
    return "unknown";
}

/*
 * Zones
 */

void rsd_zone_get(const RsdDrive *drive, uint32_t zone, RsdZone *info)
{
    info->state = drive->media.zones[zone].state;
    info->attrs = drive->media.zones[zone].attrs;
    info->written = drive->personality->written(drive, zone);
}

void rsd_zone_save(RsdDrive *drive, uint32_t zone, uint8_t state,
                   uint8_t attrs)
{
    RsdMediaZone *z = &drive->media.zones[zone];

    z->state = state;
    z->attrs = attrs;
}

uint8_t *rsd_zone_ext(RsdDrive *drive, uint32_t zone)
{
    if (!drive->cfg.zd_ext) {
        return NULL;
    }
    return drive->media.ext + (size_t)zone * drive->cfg.zd_ext;
}

/*
 * Opening and closing
 */

static void set_geometry(RsdDrive *drive)
{
    const RsdConfig *cfg = &drive->cfg;
    RsdGeometry *geo = &drive->geo;
    bool by_way = cfg->segment == RSD_SEGMENT_WAY;

    drive->dies = cfg->channels * cfg->ways;
    drive->die_blocks = cfg->blocks + cfg->spare_blocks;
    drive->pages = cfg->pages;
    geo->num_zones = cfg->blocks * (by_way ? cfg->ways : 1);
    geo->zone_capacity = cfg->pages * (by_way ? cfg->channels : drive->dies);
    while ((UINT64_C(1) << drive->zone_shift) < geo->zone_capacity) {
        drive->zone_shift++;
    }
    geo->zone_size = UINT64_C(1) << drive->zone_shift;
    geo->map_bytes = sizeof(uint32_t) * drive->dies * cfg->blocks;
}

static size_t blocks_size(const RsdDrive *drive)
{
    return sizeof(Block) * drive->dies * drive->die_blocks;
}

static void destroy(RsdDrive *drive)
{
    while (drive->cmds) {
        free_cmd(drive, drive->cmds);
    }
    while (drive->free_cmds) {
        Cmd *cmd = drive->free_cmds;

        drive->free_cmds = cmd->next;
        free(cmd);
    }
    drive->personality->close(drive);
    rsd_sched_fini(drive);
    while (drive->op_chunks) {
        OpChunk *chunk = drive->op_chunks;

        drive->op_chunks = chunk->next;
        rsd_release(drive, chunk, chunk->size);
    }
    rsd_release(drive, drive->blocks, blocks_size(drive));
    rsd_media_close(&drive->media);
    free(drive);
}

RsdDrive *rsd_open(const char *path, const RsdConfig *cfg,
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
    if (path ? !rsd_media_open(&drive->media, path, &drive->cfg, err)
             : !rsd_media_open_memory(&drive->media, &drive->cfg, err)) {
        free(drive);
        return NULL;
    }
    set_geometry(drive);
    drive->count = drive->media.counters;
    drive->personality = &rsd_segment_personality;
    drive->blocks = rsd_alloc(drive, blocks_size(drive));
    if (!drive->blocks || !rsd_sched_init(drive) ||
        !rsd_op_reserve(drive, OPS_AT_ONCE)) {
        rsd_set_error(err, "no memory for %u dies of %u blocks: choose fewer "
                      "blocks of more pages", drive->dies, drive->die_blocks);
        destroy(drive);
        return NULL;
    }
    if (!drive->personality->open(drive, err)) {
        destroy(drive);
        return NULL;
    }
    return drive;
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

void rsd_geometry(const RsdDrive *drive, RsdGeometry *geo)
{
    *geo = drive->geo;
}
