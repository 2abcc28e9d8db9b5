/*
 * rsd core, floor of the translation layers: what one is (Personality), and
 * what it may ask besides what the floors below offer: free blocks by wear
 * (pool.c), a conventional namespace's operations (queue.c), commands that wait
 * in their order (wait.c).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_FTL_H
#define RSD_FTL_H

#include "../buffer/buffer.h"

/* The commands that wait in a namespace: see wait.c. */
struct Waits {
    struct Ns *ns;
    bool rest_counts;           /* what is done of a command is in no way */
    uint32_t width;             /* words of a mask; 0: there are no masks */
    /* Nothing is before the command any more: it is to have a mask. */
    void (*freed)(struct Ns *ns, Cmd *cmd);
    Cmd *head, *tail;           /* in their order */
    uint32_t len;
    Span *spans;
    Cmd *marked;                /* root of the tree of those with a mask */
    uint64_t *masks;            /* by slot: the command's, and that below it */
    uint32_t *free_slots;       /* those that nobody has, num_free of them */
    uint32_t slots, num_free;
};

/*
 * Free blocks of a die, least worn first: see pool.c.
 */

typedef struct Pool {
    uint32_t *heap;             /* numbers within the die */
    uint32_t first, end;        /* numbers of the blocks that may be in it */
    uint32_t len;
    uint32_t obsolete;          /* of these, obsolete */
    uint32_t obsolete_hint;     /* no such block has a lower number */
} Pool;

/* Blocks of the namespace in a die that the factory does not know to be bad */
uint32_t rsd_nand_good_when_new(const Ns *ns, uint32_t die);
/* Drive-wide numbers of a namespace's blocks, in order */
#define RSD_FOR_EACH_BLOCK(ns, b)                                    \
    for (uint64_t b = (ns)->first;                                   \
         b < (uint64_t)(ns)->drive->dies * (ns)->drive->die_blocks;  \
         b = rsd_next_block(ns, b))

static inline uint64_t rsd_next_block(const Ns *ns, uint64_t block)
{
    uint32_t in_die = ns->drive->die_blocks;

    return ++block % in_die == ns->end % in_die
               ? block + in_die - ns->end + ns->first : block;
}

/*
 * Logical pages that over-provision leaves the host of a conventional one; that
 * another value of it would leave
 */
uint64_t rsd_exported_pages(const Ns *ns);
uint64_t rsd_exported_pages_with(const Ns *ns, uint64_t over_provision);

/* Erase counts of a namespace's good blocks in a die: see wear.c. */
typedef struct Wear {
    uint32_t min, max;
    uint32_t at_min;            /* blocks of that erase count */
} Wear;

/*
 * A personality: what the drive does with the array. A new one is a folder with
 * such a table, rsd_ftl_NAME, and a line of RSD_FTLS in api/rsd-props.h;
 * tests/unit/ftl-plain is a template, tests/unit/test_ftl.c tries all of them.
 *
 * What is promised to the host is theirs to keep: commands that overlap take
 * effect in the order of submission; pages that were never written, or trimmed,
 * read as zeroes and are counted in cmd->unwritten (rsd_read_unwritten()); what
 * is acknowledged survives a power cut.
 *
 * It decides at submission where pages go, and queues operations (queue.c).
 * Operations on a die are carried out in the order in which they were queued
 * as far as they concern the same block. They happen, in the array, when they
 * complete: op_done() is called right after.
 *
 * The file has to make sense after any prefix of the stores into it. What is
 * not in the file (pages with their OOB, block records, RsdMedia.map, .trim,
 * .zones) is gone when the process is killed; open() has to make do with it.
 */
struct Personality {
    /*
     * Fills ns->geo, all other members of ns but state being valid. False and
     * err: these settings leave no usable drive.
     */
    bool (*geometry)(Ns *ns, char err[RSD_ERR_LEN]);
    /*
     * Recovers its state from the media. False and err: the file is as it was;
     * close() will be called.
     */
    bool (*open)(Ns *ns, char err[RSD_ERR_LEN]);
    void (*close)(Ns *ns);
    /*
     * Queues the operations; cmd->pending is counted up for each, and for
     * whatever else the command must wait for (rsd_cmd_drop() counts down).
     * The command was checked to be within the namespace. Anything but RSD_OK:
     * nothing was changed. A failure that is noticed later is stored in
     * cmd->pub.status.
     */
    RsdStatus (*submit)(Ns *ns, Cmd *cmd);
    /* See rsd_expect(). May be NULL */
    void (*expect)(const Ns *ns, uint64_t lba);
    /*
     * An operation is done, all its pages included. It, its buffer and the
     * count it has in its command (rsd_op_finish()) are the personality's to
     * drop. If it failed, it must not be what content depends on: see
     * RsdDrive.failed. What a unit of the write buffer that failed was to
     * program can still be read (rsd_buffer_read()).
     */
    void (*op_done)(Ns *ns, Op *op);
    /*
     * With a write buffer (NULL: geometry() refuses settings that have one,
     * rsd_buffer_on()): the data of a program it queued is there, but, if
     * it failed, not safe, as it should be with plp=on. The operation is the
     * personality's to drop as above. When the unit is programmed, op_done()
     * gets another one: page is the unit's last slot, it has no command and no
     * buffer.
     */
    void (*op_buffered)(Ns *ns, Op *op);
    /*
     * Conventional, with a write buffer: the unit begun in this block must be
     * filled up now: rsd_queue_pad() of the rest, and go on behind it. NULL:
     * none can be.
     */
    void (*pad)(Ns *ns, uint32_t block);
    /*
     * A page of the host that a program brought, and was not trimmed since
     * (rsd_buffer_trim()), is programmed, or in the protected part of the
     * buffer: before op_done(). May be NULL
     */
    void (*kept)(Ns *ns, uint64_t lba);
    /*
     * The buffer closes a unit, whose last slot came with that operation, and
     * queues its program. May be NULL
     */
    void (*closed)(Op *unit, const Op *by);
    /*
     * Can a power cut tear a page of this block? False where recovery would
     * have no room for the rest of it: the page is absent then. NULL: always.
     */
    bool (*can_tear)(const Ns *ns, uint32_t block);
    /* Is there work for an idle die? Both NULL: there is never any. */
    bool (*has_background)(const Ns *ns, uint32_t die);
    /* Starts some of it. False if there was none after all. */
    bool (*background)(Ns *ns, uint32_t die);
    /* RSD_TIMER_FTL, which the layer of namespace 0 has set. May be NULL */
    void (*timer)(Ns *ns);
    /*
     * Power fails. What the layer itself was doing, without an operation of the
     * array, has left what it has left. May be NULL
     */
    void (*power_cut)(Ns *ns);
    /* Everything is as if it had never been written. */
    void (*format)(Ns *ns);
    /* Zoned only: fills in info->written and what is below it. */
    void (*zone)(const Ns *ns, uint32_t zone, RsdZone *info);
    /* The layer's own: which it is of tables that share their callbacks */
    unsigned variant;
    /*
     * Bytes that it keeps with a command: rsd_cmd_area(), zeroes when the
     * command is new.
     */
    size_t cmd_size;
};

/* The tables of RSD_FTLS */
#define RSD_FTL_TABLE(NAME, number, name, doc, traits) rsd_ftl_##name
extern const Personality RSD_FTLS_LIST(RSD_FTL_TABLE);
#undef RSD_FTL_TABLE

/* spans.c */

void rsd_span_add(Span **root, Span *span);
void rsd_span_remove(Span **root, Span *span);
/*
 * One that overlaps a range and is older, and that is no read, if the range is
 * one of a read; NULL: there is none. Of these the one that begins last, of
 * equal ones the youngest: when all that overlap each other go in order, it is
 * the last one to go.
 */
Span *rsd_span_find(Span *root, const Span *of);
/* The oldest one that begins there, or NULL */
Span *rsd_span_at(Span *root, uint64_t from);

/* wait.c */

/* After this one more can be added. False: there is no memory */
bool rsd_waits_reserve(Waits *w);
void rsd_waits_fini(Waits *w);
/* The command waits, behind all others. It has no bits yet. */
void rsd_waits_add(Waits *w, Cmd *cmd);
/* The same, after rsd_waits_blocker() has given what it follows, or NULL */
void rsd_waits_add_behind(Waits *w, Cmd *cmd, Cmd *to);
void rsd_waits_remove(Waits *w, Cmd *cmd);
/* Its progress has changed. With rest_counts */
void rsd_waits_went_on(Waits *w, Cmd *cmd);
/* One before it that waits and has to go on first, or NULL */
Cmd *rsd_waits_blocker(const Waits *w, const Cmd *cmd);
/* The first one of which what counts begins at that LBA, or NULL */
Cmd *rsd_waits_at(const Waits *w, uint64_t lba);
/* Its bits from now on; NULL: none */
void rsd_waits_mark(Waits *w, Cmd *cmd, const uint64_t *mask);
/* The first one, of Cmd.begun from that on, that has such a bit, or NULL */
Cmd *rsd_waits_next(const Waits *w, uint64_t from, const uint64_t *want);
/* A trim waits for a write in flight, if it overlaps one. */
void rsd_waits_follow_write(Waits *w, Cmd *cmd);
/*
 * Writes of the namespace in flight are known from the first question on: a
 * write that was begun before a command and overlaps it, or NULL.
 */
Cmd *rsd_write_in_flight(Ns *ns, const Cmd *cmd);
void rsd_write_begins(Cmd *cmd, Ns *ns);
void rsd_write_ends(Cmd *cmd, Ns *ns);

/* pages.c: for conventional namespaces */

/* Page index of a read was never written: zeroes, and counted. */
void rsd_read_unwritten(Cmd *cmd, uint32_t index);
/* The bit that says that an LBA was trimmed and not written since */
bool rsd_media_trimmed(const RsdMedia *media, uint64_t lba);
void rsd_media_set_trimmed(RsdMedia *media, uint64_t lba, bool to);
/* What the drive noted of a programmed page; NULL: filler, or it is torn */
const RsdSpare *rsd_page_spare(const RsdMedia *media, uint32_t block,
                               uint32_t page);
/*
 * For opening: programs what the write buffer has kept, as far as it can, and
 * gives each programmed page that says whose it is, in the order of dies, blocks
 * and pages. Drive.seq is higher than any of theirs then. False and err: the
 * file is corrupt, and as it was; found() may have been called. For what pages
 * say about themselves has to be possible: a page of the host (RsdSpare.kind 0)
 * has an LBA of the namespace, one of the layer's own a number below "others".
 */
bool rsd_scan_pages(Ns *ns, uint64_t others,
                    void (*found)(Ns *, uint32_t block, uint32_t page,
                                  const RsdSpare *spare),
                    char err[RSD_ERR_LEN]);

/* queue.c: for conventional namespaces */

/*
 * A buffer for the slots of a row, RSD_SLOT_BYTES each, from a stock that
 * grows. rsd_buf_free() takes NULL. NULL, too, if there is no memory, and
 * without payload.
 */
uint8_t *rsd_buf_new(RsdDrive *drive);
void rsd_buf_free(RsdDrive *drive, uint8_t *buf);
/* Frees the stock, and what of it is still in use. */
void rsd_bufs_fini(RsdDrive *drive);
/* The drive's part of the OOB in such a buffer. NULL for NULL */
RsdSpare *rsd_buf_spare(uint8_t *buf);

/*
 * Each of these needs one operation (rsd_op_reserve()), which op_done() gets.
 * Pages are queued to a block in their order. A page that is to be read may
 * still be queued to be programmed.
 *
 * Reads pages [page, page + n) of a block for page index and following of a
 * command, data and OOB.
 */
void rsd_queue_read(Ns *ns, Cmd *cmd, uint32_t index, uint32_t block,
                    uint32_t page, uint32_t n);
/* Programs page index and following of a write command. */
void rsd_queue_write(Ns *ns, Cmd *cmd, uint32_t index, uint32_t block,
                     uint32_t page, uint32_t n);
/*
 * Reads a page into buf, or programs it from buf, for the drive itself. buf is
 * in op->buf for op_done(), to which it belongs then; NULL in a drive without
 * payload. Op.job is NULL, or, of a program, what is given. With a write buffer
 * what is in buf is taken at once, and buf stays the caller's; op_buffered()
 * may have got the operation when this returns, and rsd_buffer_lba() gives the
 * tag.
 */
Op *rsd_queue_copy_read(Ns *ns, RsdCause cause, uint32_t block, uint32_t page,
                        uint8_t *buf);
void rsd_queue_copy_write(Ns *ns, RsdCause cause, uint32_t block,
                          uint32_t page, uint8_t *buf, void *job,
                          uint64_t tag);
/*
 * Reads slots of a row, which begins at slot "row" of the block, by one read of
 * the array: those whose bit of "wanted", which is not 0, is set. Each goes to
 * its place in buf, as above. op_done() gets Op.wanted, the first of them in
 * Op.page, the job, and the tag in Op.index.
 */
void rsd_queue_row_read(Ns *ns, RsdCause cause, uint32_t block, uint32_t row,
                        uint32_t wanted, uint8_t *buf, void *job,
                        uint32_t tag);
/* Filler for the slots, which belong to one unit. With a write buffer only */
void rsd_queue_pad(Ns *ns, uint32_t block, uint32_t page, uint32_t n);
/* The block's programs and reads so far are carried out before. */
Op *rsd_queue_erase(Ns *ns, RsdCause cause, uint32_t block);

/* wear.c */

/* Counts anew: for opening, and when a block has died. */
void rsd_wear_measure(const Ns *ns, uint32_t die, Wear *wear);
/* A block was erased once more. */
void rsd_wear_erased(const Ns *ns, uint32_t block, Wear *wear);

/* pool.c */

/*
 * Blocks are ordered by the erase count they will have when they can be
 * programmed; of equal ones, those already erased come first, then those of
 * lower number.
 */

/* For the blocks of a namespace. False if there is no memory. */
bool rsd_pool_init(Ns *ns, Pool *pool);
/* Takes in the namespace's blocks in the die whose pos is not RSD_NONE. */
void rsd_pool_fill(RsdDrive *drive, Pool *pool, uint32_t die);
void rsd_pool_fini(RsdDrive *drive, Pool *pool);
void rsd_pool_insert(RsdDrive *drive, Pool *pool, uint32_t block);
void rsd_pool_remove(RsdDrive *drive, Pool *pool, uint32_t block);
/* An erase is done. */
void rsd_pool_update(RsdDrive *drive, Pool *pool, uint32_t block);
/* Lowest-numbered obsolete block, or RSD_NONE. */
uint32_t rsd_pool_first_obsolete(RsdDrive *drive, Pool *pool, uint32_t die);

#endif
