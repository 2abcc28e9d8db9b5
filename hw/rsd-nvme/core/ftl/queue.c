/*
 * What the personalities of conventional namespaces queue: reads and programs
 * of pages for a command or for the drive itself, erases, and the buffers for
 * them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>

#include "ftl.h"

#define BUFS_AT_ONCE 32u        /* buffers allocated together */

typedef struct BufChunk {
    struct BufChunk *next;
    uint64_t reserved;
    uint8_t bufs[];
} BufChunk;

/* Of a buffer: it has room for a row. */
static size_t buf_size(const RsdDrive *drive)
{
    return drive->sched.row * RSD_SLOT_BYTES;
}

static size_t chunk_size(const RsdDrive *drive)
{
    return sizeof(BufChunk) + BUFS_AT_ONCE * buf_size(drive);
}

uint8_t *rsd_buf_new(RsdDrive *drive)
{
    void *buf;

    if (!drive->media.data) {
        return NULL;
    }
    if (!drive->free_bufs) {
        BufChunk *chunk = rsd_alloc(drive, chunk_size(drive));

        if (!chunk) {
            return NULL;
        }
        chunk->next = drive->buf_chunks;
        drive->buf_chunks = chunk;
        for (uint32_t i = 0; i < BUFS_AT_ONCE; i++) {
            rsd_buf_free(drive, chunk->bufs + i * buf_size(drive));
        }
    }
    buf = drive->free_bufs;
    memcpy(&drive->free_bufs, buf, sizeof(drive->free_bufs));
    return buf;
}

void rsd_buf_free(RsdDrive *drive, uint8_t *buf)
{
    if (buf) {
        memcpy(buf, &drive->free_bufs, sizeof(drive->free_bufs));
        drive->free_bufs = buf;
    }
}

RsdSpare *rsd_buf_spare(uint8_t *buf)
{
    return buf ? (RsdSpare *)(buf + RSD_PAGE_SIZE + RSD_SPARE_OFFSET) : NULL;
}

void rsd_bufs_fini(RsdDrive *drive)
{
    while (drive->buf_chunks) {
        BufChunk *chunk = drive->buf_chunks;

        drive->buf_chunks = chunk->next;
        rsd_release(drive, chunk, chunk_size(drive));
    }
}

/* To the write buffer, if there is one, or to the die */
static void queue_op(RsdDrive *drive, Op *op)
{
    if (rsd_buffered(drive) && op->kind == OP_PROGRAM) {
        rsd_buffer_write(drive, op);
        return;
    }
    if (rsd_buffered(drive) && op->kind == OP_READ) {
        rsd_buffer_read(drive, op);
        if (!op->count) {
            rsd_op_finish(drive, op);
            return;
        }
    }
    rsd_sched_queue(drive, op);
}

static void queue_host(Ns *ns, OpKind kind, Cmd *cmd, uint32_t index,
                       uint32_t block, uint32_t page, uint32_t n)
{
    Op *op = rsd_op_new(ns, kind, RSD_CAUSE_HOST, block);

    op->cmd = cmd;
    op->index = index;
    op->page = page;
    op->count = n;
    op->stride = 1;
    cmd->pending++;
    queue_op(ns->drive, op);
}

void rsd_queue_read(Ns *ns, Cmd *cmd, uint32_t index, uint32_t block,
                    uint32_t page, uint32_t n)
{
    queue_host(ns, OP_READ, cmd, index, block, page, n);
}

void rsd_queue_write(Ns *ns, Cmd *cmd, uint32_t index, uint32_t block,
                     uint32_t page, uint32_t n)
{
    queue_host(ns, OP_PROGRAM, cmd, index, block, page, n);
}

void rsd_queue_pad(Ns *ns, uint32_t block, uint32_t page, uint32_t n)
{
    Op *op = rsd_op_new(ns, OP_PROGRAM, RSD_CAUSE_PAD, block);

    op->page = page;
    op->count = n;
    op->stride = 1;
    rsd_buffer_write(ns->drive, op);
}

void rsd_queue_row_read(Ns *ns, RsdCause cause, uint32_t block, uint32_t row,
                        uint32_t wanted, uint8_t *buf, void *job, uint32_t tag)
{
    Op *op = rsd_op_new(ns, OP_READ, cause, block);

    op->row = true;
    op->wanted = wanted;
    op->page = row + __builtin_ctz(wanted);
    op->count = __builtin_popcount(wanted);
    op->buf = buf;
    op->job = job;
    op->index = tag;
    rsd_sched_queue(ns->drive, op);
}

Op *rsd_queue_copy_read(Ns *ns, RsdCause cause, uint32_t block, uint32_t page,
                        uint8_t *buf)
{
    Op *op = rsd_op_new(ns, OP_READ, cause, block);

    op->page = page;
    op->buf = buf;
    rsd_sched_queue(ns->drive, op);
    return op;
}

void rsd_queue_copy_write(Ns *ns, RsdCause cause, uint32_t block,
                          uint32_t page, uint8_t *buf, void *job, uint64_t tag)
{
    Op *op = rsd_op_new(ns, OP_PROGRAM, cause, block);

    op->page = page;
    op->buf = buf;
    op->job = job;
    op->index = tag;
    queue_op(ns->drive, op);
}

Op *rsd_queue_erase(Ns *ns, RsdCause cause, uint32_t block)
{
    Op *op = rsd_op_new(ns, OP_ERASE, cause, block);

    rsd_sched_queue(ns->drive, op);
    return op;
}
