/*
 * rsd core, floor of the write buffer: makes units of what is written.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_BUFFER_H
#define RSD_BUFFER_H

#include "../array/array.h"

/*
 * The write buffer: see buffer.c.
 */

typedef struct BufUnit BufUnit;

typedef struct BufUnitList {
    BufUnit *head, *tail;
} BufUnitList;

/*
 * What the buffer asks those above, the table is handed over when the drive is
 * made.
 */
typedef struct BufferUp {
    /* Personality.op_buffered, .kept, .closed */
    void (*op_buffered)(Ns *ns, Op *op);
    void (*kept)(Ns *ns, uint64_t lba);
    void (*closed)(Ns *ns, Op *unit, const Op *by);
    /* Can begun units be filled up? Then: the one begun in that block is. */
    bool (*pads)(const Ns *ns);
    void (*pad)(Ns *ns, uint32_t block);
    /*
     * Random write areas, for operations with Op.zrwa: takes what there is room
     * for (true: all), it leaves the queue; and what is in the areas becomes
     * safe, for a flush.
     */
    bool (*area_take)(RsdDrive *drive, Op *op);
    void (*area_taken)(RsdDrive *drive, const Op *op);
    void (*areas_secure)(RsdDrive *drive, Cmd *cmd);
} BufferUp;

typedef struct Buffer {
    const BufferUp *up;
    bool on;
    bool taking;
    uint64_t size, used;        /* slots; used: of closed units */
    uint64_t seq;               /* of the unit closed last */
    BufUnit **hash;             /* by block and first slot, youngest first */
    uint32_t chains;            /* of it, a power of 2 */
    BufUnitList coming;         /* nothing of them is taken yet */
    BufUnitList begun;
    BufUnitList closed[RSD_MAX_NAMESPACES];        /* by seq */
    BufUnitList failed;         /* could not be programmed */
    OpList queue;               /* what comes, with slots not taken */
    OpList flushes[RSD_MAX_NAMESPACES];         /* wait for what is closed */
    BufUnit *free;
    uint64_t num_free, num_units;
    uint64_t promised;          /* of the free ones, to what is in the queue */
} Buffer;

static inline bool rsd_buffered(const RsdDrive *drive)
{
    return drive->buffer->on;
}

/* Page index of a write command as the buffer has it: data, then OOB */
void rsd_cmd_payload(const RsdDrive *drive, uint32_t ns, const Cmd *cmd,
                     uint32_t index, uint8_t *to);
/* After this, so many units can be begun. RSD_OK without a buffer */
RsdStatus rsd_buffer_reserve(RsdDrive *drive, uint64_t units);
/*
 * A program comes: consecutive slots of a block, in the block's order; the
 * command, if any, and the epoch count it as they count a queued operation.
 * What is in its buffer is taken at once. op_buffered() follows.
 */
void rsd_buffer_write(RsdDrive *drive, Op *op);
/*
 * Takes from the end of a read's run what is in the buffer, and gives it to the
 * command or the op's buffer. The operation's count is what is left for the
 * array; if it is 0, the operation is not to be queued.
 */
void rsd_buffer_read(RsdDrive *drive, Op *op);
/* The same of a page, into buf (NULL: nowhere). False: it is not there. */
bool rsd_buffer_read_page(RsdDrive *drive, uint32_t block, uint32_t page,
                          uint8_t *buf);
/* The command waits until all writes before it are safe. Needs an operation. */
void rsd_buffer_flush(Ns *ns, Cmd *cmd);
/*
 * The command has failed, as its status says, and the rest of it does not come:
 * it does not wait for units to be filled up. It must have something pending.
 */
void rsd_buffer_give_up(RsdDrive *drive, Cmd *cmd);
/* Is there anything of the namespace that will go on by itself? */
bool rsd_buffer_busy(const Ns *ns);
/*
 * Of a slot of the unit that op_done() gets: its cause; its LBA, of a page of
 * the host, or its tag, see rsd_queue_copy_write(); UINT64_MAX: trimmed since,
 * see rsd_buffer_trim()
 */
RsdCause rsd_buffer_cause(const Op *op, uint32_t slot);
uint64_t rsd_buffer_lba(const Op *op, uint32_t slot);
/* What the buffer has of these LBAs was trimmed: rsd_buffer_lba() says so. */
void rsd_buffer_trim(Ns *ns, uint64_t lba, uint64_t n);
/* What was taken of the unit begun in this block is to be safe. */
void rsd_buffer_protect(Ns *ns, uint32_t block);
/* What is not yet queued to the die for this block is wanted no more. */
void rsd_buffer_drop(Ns *ns, uint32_t block);
/* Are programs of the block queued to its die, since rsd_buffer_drop()? */
bool rsd_buffer_queued(const Ns *ns, uint32_t block);
/*
 * Until rsd_buffer_go_on() gets what rsd_buffer_hold() gave, nothing is taken:
 * for dropping several things at once.
 */
bool rsd_buffer_hold(RsdDrive *drive);
void rsd_buffer_go_on(RsdDrive *drive, bool held);
/*
 * An operation to an area of units that were reserved; the queue
 * has it from then on.
 */
void rsd_buffer_queue_area(RsdDrive *drive, Op *op, uint32_t units);
/*
 * The next slot of a block comes and is taken for such an operation, safe or
 * as the buffer is. payload: data, OOB; NULL: zeroes. False: there is no room.
 */
bool rsd_buffer_commit(RsdDrive *drive, Op *op, uint32_t block, uint32_t page,
                       const uint8_t *payload, RsdCause cause, bool safe);
/* The same for opening, which has reserved a unit: safe, and in no time */
void rsd_buffer_commit_now(Ns *ns, uint32_t block, uint32_t page,
                           const uint8_t *payload, RsdCause cause);
/* Drops what the queue has of a zone's area. */
void rsd_buffer_drop_area(Ns *ns, uint32_t zone);
/* Safe slots of the unit that begins there and is not yet programmed */
uint32_t rsd_buffer_has(const RsdDrive *drive, uint32_t block, uint32_t page);
/* Is some of the unit that the operation programs safe? */
bool rsd_buffer_protects(const Op *op);
/*
 * The program of the unit that was closed next after number *seq, which is set,
 * as is its first slot, and of which nothing is safe. NULL: there is none.
 */
const Op *rsd_buffer_next_volatile(const RsdDrive *drive, uint64_t *seq,
                                   uint32_t *page);
/*
 * The number of the unit that the operation programs, and how many operations
 * were done when it was closed (Power.ops). 0: it is none of the buffer's.
 */
uint64_t rsd_buffer_closed(const Op *op, uint64_t *since);
/* Operations are numbered anew: what is closed was so before the first one. */
void rsd_buffer_count_anew(RsdDrive *drive);
/* The slot behind the last one of the block that is safe in the buffer, or 0 */
uint32_t rsd_buffer_safe(const RsdDrive *drive, uint32_t block);
/* The OOB of one of these. Not without payload */
const uint8_t *rsd_buffer_oob(const RsdDrive *drive, uint32_t block,
                              uint32_t page, uint32_t slot);
/* The program of a unit is done; the unit goes when its operation is freed. */
void rsd_buffer_programmed(RsdDrive *drive, Op *op);
void rsd_buffer_free_unit(RsdDrive *drive, Op *op);

bool rsd_buffer_init(RsdDrive *drive);
/* Takes in what is in the file. False and err: it is as it was. */
bool rsd_buffer_load(RsdDrive *drive, char err[RSD_ERR_LEN]);
/*
 * For opening: programs the unit there, filled up; of zeroes, if there is none
 * in the buffer.
 */
void rsd_buffer_restore(Ns *ns, uint32_t block, uint32_t page);
/*
 * For opening: what is left is programmed, filled up, or, if the personality
 * does not fill up units, only whole ones; others are forgotten unless they go
 * on a block, of zones one that has an owner.
 */
void rsd_buffer_settle(Ns *ns);
/* For opening: is there something to settle? */
bool rsd_buffer_kept(const Ns *ns);
/* For opening: the unit that begins there, if any, is not wanted. */
void rsd_buffer_forget(RsdDrive *drive, uint32_t block, uint32_t page);
void rsd_buffer_fini(RsdDrive *drive);

#endif
