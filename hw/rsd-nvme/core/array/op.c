/*
 * Memory of a drive, its stock of operations, and what the array does for one.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "array.h"

/*
 * Says whether memory is a map. Accesses go to entries anywhere in a map, and
 * each would miss the TLB, so it is in huge pages. A map larger than a GiB is
 * not, since little may ever be written to such a drive, and a huge page is
 * allocated as soon as one of its bytes is used.
 */
static bool is_map(size_t size)
{
    return size >= (8u << 20) && size <= (1u << 30);
}

static void *map_memory(size_t size)
{
    void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (mem == MAP_FAILED) {
        return NULL;
    }
    madvise(mem, size, MADV_HUGEPAGE);  /* without them it is slower */
    return mem;
}

void *rsd_alloc(RsdDrive *drive, size_t size)
{
    void *mem = is_map(size) ? map_memory(size) : calloc(1, size);

    if (mem) {
        drive->ram_bytes += size;
    }
    return mem;
}

void rsd_release(RsdDrive *drive, void *mem, size_t size)
{
    if (!mem) {
        return;
    }
    drive->ram_bytes -= size;
    if (is_map(size)) {
        munmap(mem, size);
    } else {
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

/* Returns the size of an operation with the parts behind it. */
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
    if (n < RSD_OPS_AT_ONCE) {
        n = RSD_OPS_AT_ONCE;
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

void rsd_ops_fini(RsdDrive *drive)
{
    while (drive->op_chunks) {
        OpChunk *chunk = drive->op_chunks;

        drive->op_chunks = chunk->next;
        rsd_release(drive, chunk, chunk->size);
    }
    drive->free_ops = NULL;
    drive->num_free_ops = 0;
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
        .die = rsd_die_of(drive, block),
        .kind = kind,
        .cause = cause,
        .ns = ns->index,
    };
    return op;
}

void rsd_op_free(RsdDrive *drive, Op *op)
{
    if (op->unit) {
        drive->up->op_freed(drive, op);
        return;
    }
    op->next = drive->free_ops;
    drive->free_ops = op;
    drive->num_free_ops++;
}

void rsd_cmd_drop(RsdDrive *drive, Cmd *cmd)
{
    if (!--cmd->pending) {
        drive->up->cmd_done(drive, cmd);
    }
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

/* Executes slot i of a step, which is read or programmed. */
static RSD_APART RsdStatus execute_slot(RsdDrive *drive, const Step *step,
                                        uint32_t i)
{
    const Op *op = step->op;
    uint32_t page = step->page + i, index = step->index + i;
    uint8_t composed[RSD_OOB_SIZE];
    uint32_t oob_len = RSD_OOB_SIZE;
    uint8_t *data = NULL, *oob = NULL;

    if (op->buf) {
        /* Such an operation is a single step. */
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

        /* A page that the drive copies stays torn, or lost. */
        return op->buf && rsd_nand_is_lost(&drive->media, op->block, page)
                   ? RSD_OK : status;
    }
    return rsd_nand_program(&drive->media, op->block, page, data, oob,
                            oob_len);
}

/*
 * Reads the slots of a row that the drive wants, each to its place in the
 * buffer.
 */
static RSD_APART RsdStatus read_row(RsdDrive *drive, const Op *op, uint32_t row)
{
    RsdMedia *media = &drive->media;
    RsdStatus status = RSD_OK;

    for (uint32_t i = 0; op->wanted >> i; i++) {
        uint8_t *to = op->buf ? op->buf + i * RSD_SLOT_BYTES : NULL;
        RsdStatus one = RSD_OK;

        if (op->wanted >> i & 1) {
            one = rsd_nand_read(media, op->block, row + i, to,
                                to ? to + RSD_PAGE_SIZE : NULL, RSD_OOB_SIZE);
        }
        /* A page that the drive copies stays torn, or lost. */
        if (one != RSD_OK && !rsd_nand_is_lost(media, op->block, row + i)) {
            status = one;
        }
    }
    return status;
}

/*
 * Executes the slots of a step that is a run of a command's, or has a buffer.
 */
static RSD_APART RsdStatus execute_slots(RsdDrive *drive, const Step *step)
{
    const Op *op = step->op;
    bool payload = op->buf || (op->cmd && op->cmd->pub.data);
    RsdStatus status = RSD_OK;

    for (uint32_t i = 0; i < step->slots; i++) {
        uint32_t page = step->page + i;
        RsdStatus one;

        if (payload) {
            one = execute_slot(drive, step, i);
        } else if (op->kind == OP_READ) {
            one = rsd_nand_read(&drive->media, op->block, page, NULL, NULL, 0);
        } else {
            one = rsd_nand_program(&drive->media, op->block, page, NULL, NULL,
                                   0);
        }
        if (one != RSD_OK) {
            status = one;
        }
    }
    return status;
}

static RSD_APART RsdStatus execute_erase(RsdDrive *drive, uint32_t block)
{
    RsdStatus status = rsd_nand_erase(&drive->media, block);

    if (status == RSD_OK &&
        (drive->cfg.life_spread ||
         rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_WEAK)) {
        rsd_drive_age_block(drive, block);
    }
    return status;
}

static RSD_COLD void execute_failed(RsdDrive *drive, Op *op, RsdStatus status)
{
    drive->count->media_errors++;
    op->failed = true;
    if (op->kind == OP_PROGRAM || (op->kind == OP_READ && !op->cmd)) {
        rsd_drive_fail(drive);
    }
    if (op->cmd) {
        op->cmd->pub.status = status;
    }
}

void rsd_op_execute(RsdDrive *drive, const Step *step)
{
    Op *op = step->op;
    uint32_t faults = drive->media.faults.count;
    RsdStatus status = RSD_OK;

    if (op->kind == OP_ERASE) {
        status = execute_erase(drive, op->block);
    } else if (op->row) {
        status = read_row(drive, op, rsd_row_of(drive, step->page));
    } else if (op->kind == OP_PROGRAM && !op->cmd) {
        status = rsd_nand_program_unit(&drive->media, op->block, step->page,
                                       step->slots, op->buf);
    } else {
        status = execute_slots(drive, step);
    }
    if (drive->media.faults.count != faults) {
        status = RSD_E_MEDIA;
        rsd_drive_fail(drive);
    }
    if (status != RSD_OK) {
        execute_failed(drive, op, status);
    }
}
