/*
 * What zones queue, and barriers.
 *
 * Barriers. Reset and finish complete when the operations submitted to their
 * zone before them are done: operations count up the zone's current epoch, a
 * barrier closes it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "zone.h"

bool rsd_seg_reserve_epochs(RsdDrive *drive, uint64_t count)
{
    Segments *seg = segments(drive);

    while (seg->num_free_epochs < count) {
        Epoch *epoch = rsd_alloc(drive, sizeof(*epoch));

        if (!epoch) {
            return false;
        }
        epoch->next = seg->free_epochs;
        seg->free_epochs = epoch;
        seg->num_free_epochs++;
    }
    return true;
}

static Epoch *new_epoch(Segments *seg, uint32_t zone)
{
    Zone *z = &seg->zones[zone];
    Epoch *epoch = seg->free_epochs;

    seg->free_epochs = epoch->next;
    seg->num_free_epochs--;
    *epoch = (Epoch){ .zone = zone };
    if (z->head) {
        z->tail->next = epoch;
    } else {
        z->head = epoch;
    }
    z->tail = epoch;
    return epoch;
}

Epoch *rsd_seg_current_epoch(Segments *seg, uint32_t zone)
{
    Epoch *tail = seg->zones[zone].tail;

    return tail && !tail->barrier ? tail : new_epoch(seg, zone);
}

void rsd_seg_set_barrier(RsdDrive *drive, uint32_t zone, Cmd *cmd)
{
    Segments *seg = segments(drive);

    if (seg->zones[zone].tail) {
        rsd_seg_current_epoch(seg, zone)->barrier = cmd;
        cmd->pending++;
    }
}

void rsd_seg_drop_epoch(RsdDrive *drive, Epoch *epoch)
{
    Segments *seg = segments(drive);
    Zone *z = &seg->zones[epoch->zone];

    epoch->refs--;
    while (z->head && !z->head->refs) {
        epoch = z->head;
        z->head = epoch->next;
        if (!z->head) {
            z->tail = NULL;
        }
        if (epoch->barrier) {
            rsd_cmd_drop(drive, epoch->barrier);
        }
        epoch->next = seg->free_epochs;
        seg->free_epochs = epoch;
        seg->num_free_epochs++;
    }
}

static void queue_op(RsdDrive *drive, Op *op, Cmd *cmd, Epoch *epoch)
{
    op->cmd = cmd;
    op->job = epoch;
    if (cmd) {
        cmd->pending++;
    }
    if (epoch) {
        epoch->refs++;
    }
    if (rsd_buffered(drive) && op->kind == OP_PROGRAM) {
        rsd_buffer_write(drive, op);
    } else {
        rsd_sched_queue(drive, op);
    }
}

void rsd_seg_queue_own(RsdDrive *drive, Op *op, Turn turn)
{
    op->background = turn == TURN_IDLE;
    if (turn == TURN_FIRST) {
        rsd_sched_queue_first(drive, op);
    } else {
        rsd_sched_queue(drive, op);
    }
}

Op *rsd_seg_new_erase(RsdDrive *drive, uint32_t block)
{
    Block *b = &drive->blocks[block];
    bool worn = rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_WORN;
    Op *op = rsd_op_new(drive->zoned, OP_ERASE,
                        worn ? RSD_CAUSE_WEAR : RSD_CAUSE_HOST, block);

    b->erases++;
    b->obsolete = 0;
    if (b->pos != RSD_NONE) {
        seg_die(drive, block)->pool.obsolete--;
    }
    return op;
}

void rsd_seg_queue_erase(RsdDrive *drive, uint32_t block, Cmd *cmd,
                        Epoch *epoch)
{
    queue_op(drive, rsd_seg_new_erase(drive, block), cmd, epoch);
}

uint64_t rsd_seg_max_ops(const RsdDrive *drive, uint64_t nlb, uint64_t zones)
{
    uint64_t runs = zones * segments(drive)->lanes;

    return drive->cfg.queue == RSD_QUEUE_WAY && runs < nlb &&
           !rsd_buffered(drive) ? runs : nlb;
}

/*
 * Queues pages [offset, offset + nlb) of a zone in use, the first of them being
 * page index of the command, unit by unit: reads as a row each, which is a step
 * of the die, programs to the write buffer.
 */
static void queue_units(RsdDrive *drive, OpKind kind, RsdCause cause, Cmd *cmd,
                        uint32_t zone, uint64_t offset, uint32_t nlb,
                        uint32_t index)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);
    const uint32_t *map = entries(drive, zone);
    Epoch *epoch = rsd_seg_current_epoch(seg, zone);
    uint32_t chunk = kind == OP_READ ? drive->sched.row : drive->unit;

    epoch->refs++;              /* until all of it is queued */
    while (nlb) {
        uint64_t i = offset / drive->unit;
        uint32_t n = chunk - offset % chunk;
        uint32_t lane = i % seg->lanes;
        Op *op = rsd_op_new(drive->zoned, kind, cause,
                            block_of(drive, die + lane, map[lane]));

        n = n < nlb ? n : nlb;
        op->page = rsd_seg_unit_page(drive, i) + offset % drive->unit;
        op->index = index;
        op->count = n;
        op->stride = 1;
        if (kind == OP_READ) {
            op->cmd = cmd;
            rsd_buffer_read(drive, op);
        }
        if (op->count) {
            queue_op(drive, op, cmd, epoch);
        } else {
            rsd_op_free(drive, op);
        }
        offset += n;
        index += n;
        nlb -= n;
    }
    rsd_seg_drop_epoch(drive, epoch);
}

void rsd_seg_queue_pages(RsdDrive *drive, OpKind kind, RsdCause cause, Cmd *cmd,
                        uint32_t zone, uint64_t offset, uint32_t nlb,
                        uint32_t index)
{
    Segments *seg = segments(drive);
    uint32_t lanes = seg->lanes;
    uint32_t lane = offset % lanes, page = offset / lanes;
    uint32_t die = first_die(drive, zone);
    const uint32_t *map = entries(drive, zone);
    bool runs = drive->cfg.queue == RSD_QUEUE_WAY;
    uint32_t n = runs && lanes < nlb ? lanes : nlb;
    Epoch *epoch;

    if (rsd_buffered(drive)) {
        queue_units(drive, kind, cause, cmd, zone, offset, nlb, index);
        return;
    }
    epoch = rsd_seg_current_epoch(seg, zone);

    for (uint32_t i = 0; i < n; i++) {
        Op *op = rsd_op_new(drive->zoned, kind, cause,
                            block_of(drive, die + lane, map[lane]));

        op->page = page;
        op->index = index + i;
        if (runs) {
            op->count = (nlb - i - 1) / lanes + 1;
            op->stride = lanes;
        }
        queue_op(drive, op, cmd, epoch);
        if (++lane == lanes) {
            lane = 0;
            page++;
        }
    }
}

void rsd_seg_closed(Op *unit, const Op *by)
{
    Epoch *epoch = by->job;

    if (epoch) {
        unit->job = epoch;
        epoch->refs++;
    }
}

void rsd_seg_op_buffered(Ns *ns, Op *op)
{
    Epoch *epoch = op->job;

    rsd_op_finish(ns->drive, op);
    if (epoch) {
        rsd_seg_drop_epoch(ns->drive, epoch);
    }
}
