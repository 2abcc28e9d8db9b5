/*
 * rsd core, floor of the write buffer: makes units of what is written.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_BUFFER_H
#define RSD_BUFFER_H

#include "../array/array.h"

/* This is the write buffer: see buffer.c. */

typedef struct BufUnit BufUnit;

typedef struct BufUnitList {
    BufUnit *head, *tail;
} BufUnitList;

/*
 * The buffer calls these functions of the floors above. The table is handed
 * over when the drive is made.
 */
typedef struct BufferUp {
    /* This calls Personality.op_buffered, .kept, .closed. */
    void (*op_buffered)(Ns *ns, Op *op);
    void (*kept)(Ns *ns, uint64_t lba);
    void (*closed)(Ns *ns, Op *unit, const Op *by);
    /*
     * Says whether begun units can be filled up. If so, the one begun in that
     * block is filled up.
     */
    bool (*pads)(const Ns *ns);
    void (*pad)(Ns *ns, uint32_t block);
    /*
     * These are for random write areas, for operations with Op.zrwa. The first
     * takes slots that there is room for. True says that it took all, so the
     * operation leaves the queue. The second makes the areas safe, for a flush.
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

/* Returns a page of a write command as the buffer has it: data, then OOB. */
void rsd_cmd_payload(const RsdDrive *drive, uint32_t ns, const Cmd *cmd,
                     uint32_t index, uint8_t *to);
/* After this, so many units can be begun. Returns RSD_OK without a buffer. */
RsdStatus rsd_buffer_reserve(RsdDrive *drive, uint64_t units);
/*
 * Adds a program to the queue: consecutive slots of a block, in the block's
 * order. The command, if any, and the epoch count it as they count a queued
 * operation. If it has a buffer, its slots are taken at once. op_buffered()
 * follows.
 */
void rsd_buffer_write(RsdDrive *drive, Op *op);
/*
 * Takes slots that are in the buffer from the end of a read's run, and gives
 * them to the command or the op's buffer. The operation's count is the rest for
 * the array. If it is 0, the operation must not be queued.
 */
void rsd_buffer_read(RsdDrive *drive, Op *op);
/*
 * Does the same for a page, into buf (NULL: nowhere). Returns false if it is
 * not there.
 */
bool rsd_buffer_read_page(RsdDrive *drive, uint32_t block, uint32_t page,
                          uint8_t *buf);
/*
 * Makes the command wait until all writes before it are safe. It needs an
 * operation.
 */
void rsd_buffer_flush(Ns *ns, Cmd *cmd);
/*
 * Gives a command up that has failed, as its status says, and the rest of which
 * does not come: it does not wait for units to be filled up. It must have
 * something pending.
 */
void rsd_buffer_give_up(RsdDrive *drive, Cmd *cmd);
/* Says whether the namespace has something that will go on by itself. */
bool rsd_buffer_busy(const Ns *ns);
/*
 * These describe a slot of the unit that op_done() gets: its cause; its LBA,
 * for a page of the host, or its tag, see rsd_queue_copy_write(). UINT64_MAX
 * says that it was trimmed since, see rsd_buffer_trim().
 */
RsdCause rsd_buffer_cause(const Op *op, uint32_t slot);
uint64_t rsd_buffer_lba(const Op *op, uint32_t slot);
/*
 * Notes that these LBAs were trimmed, for those in the buffer: rsd_buffer_lba()
 * says so.
 */
void rsd_buffer_trim(Ns *ns, uint64_t lba, uint64_t n);
/* Makes the slots of the unit begun in this block safe that were taken. */
void rsd_buffer_protect(Ns *ns, uint32_t block);
/* Drops slots for this block that are not yet queued to the die. */
void rsd_buffer_drop(Ns *ns, uint32_t block);
/*
 * Says whether programs of the block are queued to its die since
 * rsd_buffer_drop().
 */
bool rsd_buffer_queued(const Ns *ns, uint32_t block);
/*
 * Takes no slot until rsd_buffer_go_on() gets the result of rsd_buffer_hold().
 * This is for dropping several things at once.
 */
bool rsd_buffer_hold(RsdDrive *drive);
void rsd_buffer_go_on(RsdDrive *drive, bool held);
/*
 * Queues an operation to an area of units that were reserved. The queue owns it
 * from then on.
 */
void rsd_buffer_queue_area(RsdDrive *drive, Op *op, uint32_t units);
/*
 * Brings and takes the next slot of a block for such an operation, safe or as
 * the buffer is. payload is data and OOB; NULL stands for zeroes. Returns false
 * if there is no room.
 */
bool rsd_buffer_commit(RsdDrive *drive, Op *op, uint32_t block, uint32_t page,
                       const uint8_t *payload, RsdCause cause, bool safe);
/*
 * Does the same for opening, which has reserved a unit: safe, and in no time.
 */
void rsd_buffer_commit_now(Ns *ns, uint32_t block, uint32_t page,
                           const uint8_t *payload, RsdCause cause);
/* Drops the slots of a zone's area from the queue. */
void rsd_buffer_drop_area(Ns *ns, uint32_t zone);
/*
 * Returns the safe slots of the unit that begins there and is not yet
 * programmed.
 */
uint32_t rsd_buffer_has(const RsdDrive *drive, uint32_t block, uint32_t page);
/* Says whether some of the unit that the operation programs is safe. */
bool rsd_buffer_protects(const Op *op);
/*
 * Returns the program of the unit that was closed next after number *seq, and
 * no slot of which is safe. *seq becomes its number, and its first slot is set,
 * too. NULL says that there is none.
 */
const Op *rsd_buffer_next_volatile(const RsdDrive *drive, uint64_t *seq,
                                   uint32_t *page);
/*
 * Returns the number of the unit that the operation programs, and how many
 * operations were done when it was closed (Power.ops). 0 says that it is none
 * of the buffer's.
 */
uint64_t rsd_buffer_closed(const Op *op, uint64_t *since);
/*
 * Operations are numbered anew: units that are closed were so before the first
 * one.
 */
void rsd_buffer_count_anew(RsdDrive *drive);
/*
 * Returns the slot behind the last one of the block that is safe in the buffer,
 * or 0.
 */
uint32_t rsd_buffer_safe(const RsdDrive *drive, uint32_t block);
/* Returns the OOB of one of these. It is not called without payload. */
const uint8_t *rsd_buffer_oob(const RsdDrive *drive, uint32_t block,
                              uint32_t page, uint32_t slot);
/* The program of a unit is done; the unit is freed with its operation. */
void rsd_buffer_programmed(RsdDrive *drive, Op *op);
void rsd_buffer_free_unit(RsdDrive *drive, Op *op);

bool rsd_buffer_init(RsdDrive *drive);
/* Loads the units in the file. After false and err, the buffer is as it was. */
bool rsd_buffer_load(RsdDrive *drive, char err[RSD_ERR_LEN]);
/*
 * For opening, programs the unit there, filled up. If the buffer has none, it
 * programs zeroes.
 */
void rsd_buffer_restore(Ns *ns, uint32_t block, uint32_t page);
/*
 * For opening, programs the units that are left, filled up. If the personality
 * does not fill up units, it programs only whole ones, and forgets others
 * unless they go on a block, for zones one that has an owner.
 */
void rsd_buffer_settle(Ns *ns);
/* For opening, says whether there is something to settle. */
bool rsd_buffer_kept(const Ns *ns);
/* For opening, forgets the unit that begins there, if any. */
void rsd_buffer_forget(RsdDrive *drive, uint32_t block, uint32_t page);
void rsd_buffer_fini(RsdDrive *drive);

#endif
