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

/* These are the commands that wait in a namespace: see wait.c. */
struct Waits {
    struct Ns *ns;
    bool rest_counts;           /* what is done of a command is in no way */
    uint32_t width;             /* words of a mask; 0: there are no masks */
    /* No other command is before this one any more, so it needs a mask. */
    void (*freed)(struct Ns *ns, Cmd *cmd);
    Cmd *head, *tail;           /* in their order */
    uint32_t len;
    Span *spans;
    Cmd *marked;                /* root of the tree of those with a mask */
    uint64_t *masks;            /* by slot: the command's, and that below it */
    uint32_t *free_slots;       /* those that nobody has, num_free of them */
    uint32_t slots, num_free;
};

/* These are free blocks of a die, least worn first: see pool.c. */

typedef struct Pool {
    uint32_t *heap;             /* numbers within the die */
    uint32_t first, end;        /* numbers of the blocks that may be in it */
    uint32_t len;
    uint32_t obsolete;          /* of these, obsolete */
    uint32_t obsolete_hint;     /* no such block has a lower number */
} Pool;

/*
 * Returns the blocks of the namespace in a die that the factory does not know
 * to be bad.
 */
uint32_t rsd_nand_good_when_new(const Ns *ns, uint32_t die);
/* Goes through the drive-wide numbers of a namespace's blocks, in order. */
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
 * These return the logical pages that over-provision leaves the host of a
 * conventional namespace, and those that another value of it would leave.
 */
uint64_t rsd_exported_pages(const Ns *ns);
uint64_t rsd_exported_pages_with(const Ns *ns, uint64_t over_provision);

/* These are erase counts of a namespace's good blocks in a die: see wear.c. */
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
     * Fills ns->geo. All other members of ns but state are valid. Returns false
     * and err if these settings leave no usable drive.
     */
    bool (*geometry)(Ns *ns, char err[RSD_ERR_LEN]);
    /*
     * Recovers its state from the media. After false and err the file is as it
     * was, and close() is called.
     */
    bool (*open)(Ns *ns, char err[RSD_ERR_LEN]);
    void (*close)(Ns *ns);
    /*
     * Queues the operations. cmd->pending is counted up for each, and for other
     * conditions that the command must wait for (rsd_cmd_drop() counts down).
     * The command was checked to be within the namespace. After any result
     * other than RSD_OK, nothing was changed. A failure that is noticed later
     * is stored in cmd->pub.status.
     */
    RsdStatus (*submit)(Ns *ns, Cmd *cmd);
    /* See rsd_expect(). It may be NULL. */
    void (*expect)(const Ns *ns, uint64_t lba);
    /*
     * An operation is done, with all its pages. The personality drops it, its
     * buffer and its count in its command (rsd_op_finish()). If it failed, no
     * content may depend on it: see RsdDrive.failed. The content of a unit of
     * the write buffer that failed can still be read (rsd_buffer_read()).
     */
    void (*op_done)(Ns *ns, Op *op);
    /*
     * This is for a write buffer (NULL: geometry() refuses settings that have
     * one, rsd_buffer_on()). The data of a program that was queued is in the
     * buffer. If the operation failed, it is not safe, as it should be with
     * plp=on. The personality drops the operation as above. When the unit is
     * programmed, op_done() gets another one: page is the unit's last slot, and
     * it has no command and no buffer.
     */
    void (*op_buffered)(Ns *ns, Op *op);
    /*
     * This is for a conventional namespace with a write buffer. The unit begun
     * in this block must be filled up now: rsd_queue_pad() of the rest, after
     * which writes go on behind it. NULL says that none can be.
     */
    void (*pad)(Ns *ns, uint32_t block);
    /*
     * A page of the host that a program brought, and was not trimmed since
     * (rsd_buffer_trim()), is programmed, or in the protected part of the
     * buffer. This comes before op_done(). It may be NULL.
     */
    void (*kept)(Ns *ns, uint64_t lba);
    /*
     * The buffer closes a unit, whose last slot came with that operation, and
     * queues its program. It may be NULL.
     */
    void (*closed)(Op *unit, const Op *by);
    /*
     * Says whether a power cut can tear a page of this block. It is false where
     * recovery would have no room for the rest of the block: the page is absent
     * then. NULL stands for always.
     */
    bool (*can_tear)(const Ns *ns, uint32_t block);
    /*
     * Says whether there is work for an idle die. If both are NULL, there is
     * never any.
     */
    bool (*has_background)(const Ns *ns, uint32_t die);
    /* Starts some of it. Returns false if there was none after all. */
    bool (*background)(Ns *ns, uint32_t die);
    /*
     * This is RSD_TIMER_FTL, which the layer of namespace 0 has set. It may be
     * NULL.
     */
    void (*timer)(Ns *ns);
    /*
     * Power fails, and interrupts the layer's own work without an operation of
     * the array. It may be NULL.
     */
    void (*power_cut)(Ns *ns);
    /* Puts the namespace into the state of one that was never written. */
    void (*format)(Ns *ns);
    /* For zones only, fills in info->written and the fields below it. */
    void (*zone)(const Ns *ns, uint32_t zone, RsdZone *info);
    /*
     * This is the layer's own: it tells tables apart that share their
     * callbacks.
     */
    unsigned variant;
    /*
     * So many bytes are kept with a command: rsd_cmd_area(), zeroes when the
     * command is new.
     */
    size_t cmd_size;
};

/* These are the tables of RSD_FTLS. */
#define RSD_FTL_TABLE(NAME, number, name, doc, traits) rsd_ftl_##name
extern const Personality RSD_FTLS_LIST(RSD_FTL_TABLE);
#undef RSD_FTL_TABLE

/* spans.c */

void rsd_span_add(Span **root, Span *span);
void rsd_span_remove(Span **root, Span *span);
/*
 * Returns a range that overlaps this one and is older, and that is no read, if
 * this one is a read, or NULL. Of several it returns the one that begins last,
 * and of equal ones the youngest. When all that overlap each other go in order,
 * it is the last one to go.
 */
Span *rsd_span_find(Span *root, const Span *of);
/* Returns the oldest range that begins there, or NULL. */
Span *rsd_span_at(Span *root, uint64_t from);

/* wait.c */

/* After this one more can be added. Returns false if there is no memory. */
bool rsd_waits_reserve(Waits *w);
void rsd_waits_fini(Waits *w);
/* Adds a command behind all others that wait. It has no bits yet. */
void rsd_waits_add(Waits *w, Cmd *cmd);
/*
 * Does the same, after rsd_waits_blocker() has returned the one that it
 * follows, or NULL.
 */
void rsd_waits_add_behind(Waits *w, Cmd *cmd, Cmd *to);
void rsd_waits_remove(Waits *w, Cmd *cmd);
/* Notes that its progress has changed. It is called with rest_counts. */
void rsd_waits_went_on(Waits *w, Cmd *cmd);
/* Returns a command before it that waits and has to go on first, or NULL. */
Cmd *rsd_waits_blocker(const Waits *w, const Cmd *cmd);
/*
 * Returns the first command whose part that counts begins at that LBA, or NULL.
 */
Cmd *rsd_waits_at(const Waits *w, uint64_t lba);
/* Sets its bits from now on; NULL sets none. */
void rsd_waits_mark(Waits *w, Cmd *cmd, const uint64_t *mask);
/*
 * Returns the first command, of Cmd.begun from that on, that has such a bit, or
 * NULL.
 */
Cmd *rsd_waits_next(const Waits *w, uint64_t from, const uint64_t *want);
/* Makes a trim wait for a write in flight, if it overlaps one. */
void rsd_waits_follow_write(Waits *w, Cmd *cmd);
/*
 * Returns a write that was begun before a command and overlaps it, or NULL.
 * Writes of the namespace in flight are known from the first call on.
 */
Cmd *rsd_write_in_flight(Ns *ns, const Cmd *cmd);
void rsd_write_begins(Cmd *cmd, Ns *ns);
void rsd_write_ends(Cmd *cmd, Ns *ns);

/* pages.c: for conventional namespaces */

/* Page index of a read was never written. It gets zeroes, and is counted. */
void rsd_read_unwritten(Cmd *cmd, uint32_t index);
/*
 * These are for the bit that says that an LBA was trimmed and not written
 * since.
 */
bool rsd_media_trimmed(const RsdMedia *media, uint64_t lba);
void rsd_media_set_trimmed(RsdMedia *media, uint64_t lba, bool to);
/*
 * Returns the drive's notes of a programmed page. NULL says that it is filler,
 * or torn.
 */
const RsdSpare *rsd_page_spare(const RsdMedia *media, uint32_t block,
                               uint32_t page);
/*
 * For opening, programs the units that the write buffer has kept, as far as it
 * can. Then it passes each programmed page that says whose it is to found(), in
 * the order of dies, blocks and pages. Drive.seq is higher than any of theirs
 * then. After false and err, the file is corrupt, and as it was; found() may
 * have been called. The notes of pages have to be possible: a page of the host
 * (RsdSpare.kind 0) has an LBA of the namespace, one of the layer's own a
 * number below "others".
 */
bool rsd_scan_pages(Ns *ns, uint64_t others,
                    void (*found)(Ns *, uint32_t block, uint32_t page,
                                  const RsdSpare *spare),
                    char err[RSD_ERR_LEN]);

/* queue.c: for conventional namespaces */

/*
 * Returns a buffer for the slots of a row, RSD_SLOT_BYTES each, from a stock
 * that grows. It is NULL if there is no memory, and without payload.
 * rsd_buf_free() takes NULL.
 */
uint8_t *rsd_buf_new(RsdDrive *drive);
void rsd_buf_free(RsdDrive *drive, uint8_t *buf);
/* Frees the stock, and the buffers of it that are still in use. */
void rsd_bufs_fini(RsdDrive *drive);
/* Returns the drive's part of the OOB in such a buffer, or NULL for NULL. */
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
 * in op->buf for op_done(), to which it belongs then; it is NULL in a drive
 * without payload. Op.job is NULL, or, for a program, the job that is given.
 * With a write buffer the content of buf is taken at once, and buf stays the
 * caller's. op_buffered() may have got the operation when this returns, and
 * rsd_buffer_lba() returns the tag.
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
/*
 * Queues filler for the slots, which belong to one unit. It is for a write
 * buffer only.
 */
void rsd_queue_pad(Ns *ns, uint32_t block, uint32_t page, uint32_t n);
/*
 * Queues an erase. The block's programs and reads so far are carried out
 * before.
 */
Op *rsd_queue_erase(Ns *ns, RsdCause cause, uint32_t block);

/* wear.c */

/* Counts anew, for opening, and when a block has died. */
void rsd_wear_measure(const Ns *ns, uint32_t die, Wear *wear);
/* Counts one more erase of a block. */
void rsd_wear_erased(const Ns *ns, uint32_t block, Wear *wear);

/* pool.c */

/*
 * Blocks are ordered by the erase count they will have when they can be
 * programmed; of equal ones, those already erased come first, then those of
 * lower number.
 */

/*
 * Initializes a pool for the blocks of a namespace. Returns false if there is
 * no memory.
 */
bool rsd_pool_init(Ns *ns, Pool *pool);
/* Adds the namespace's blocks in the die whose pos is not RSD_NONE. */
void rsd_pool_fill(RsdDrive *drive, Pool *pool, uint32_t die);
void rsd_pool_fini(RsdDrive *drive, Pool *pool);
void rsd_pool_insert(RsdDrive *drive, Pool *pool, uint32_t block);
void rsd_pool_remove(RsdDrive *drive, Pool *pool, uint32_t block);
/* Follows the end of an erase. */
void rsd_pool_update(RsdDrive *drive, Pool *pool, uint32_t block);
/* Returns the lowest-numbered obsolete block, or RSD_NONE. */
uint32_t rsd_pool_first_obsolete(RsdDrive *drive, Pool *pool, uint32_t die);

#endif
