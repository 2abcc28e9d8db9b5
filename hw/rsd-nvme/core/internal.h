/*
 * rsd core: what its files share with each other and with nobody else.
 *
 *     drive.c     commands: checks, buffers, completions, the API
 *     segment.c   the RSD personality: segment map, resets, wear levelling
 *     pool.c      free blocks of a die by wear
 *     sched.c     the event machine: queues, dies, buses
 *     nand.c      the array and what it refuses
 *     media.c     the file behind the array
 *     config.c    settings, presets
 *     counters.c  counters, log page
 *
 * Policy lives in the personality alone: sched.c and nand.c carry out page
 * operations and know neither zones nor maps.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_INTERNAL_H
#define RSD_INTERNAL_H

#include "rsd.h"

#define RSD_PAGE_SIZE 4096u
/* Bytes of OOB that the array keeps a page, whatever the host sees of it */
#define RSD_OOB_SIZE 128u
/* All flash blocks of a drive, spares included: what bounds our memory */
#define RSD_MAX_BLOCKS (UINT64_C(1) << 25)
#define RSD_MAX_CAPACITY (UINT64_C(16) << 40)
#define RSD_MAX_EXT_BYTES (UINT64_C(1) << 30)

void rsd_set_error(char err[RSD_ERR_LEN], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static inline uint64_t rsd_div_round_up(uint64_t n, uint64_t d)
{
    return (n + d - 1) / d;
}

/*
 * Block records. One 64-bit word a flash block, so that a block changes its
 * state by a single store, which a killed process has made or has not made.
 */

enum {
    RSD_BLOCK_BAD = 1,      /* factory bad: never used */
    RSD_BLOCK_DIRTY = 2,    /* content is obsolete: erase before programming */
    RSD_BLOCK_WORN = 4,     /* made dirty by wear levelling, not by the host */
};

/* erases: bits 0 to 31, next page to program: 32 to 55, flags: 56 to 63 */
static inline uint64_t rsd_rec(uint32_t erases, uint32_t next, uint32_t flags)
{
    return erases | (uint64_t)next << 32 | (uint64_t)flags << 56;
}

static inline uint32_t rsd_rec_erases(uint64_t rec)
{
    return (uint32_t)rec;
}

static inline uint32_t rsd_rec_next(uint64_t rec)
{
    return (uint32_t)(rec >> 32) & 0xffffff;
}

static inline uint32_t rsd_rec_flags(uint64_t rec)
{
    return (uint32_t)(rec >> 56);
}

/*
 * The file, or anonymous memory in its place: see media.c.
 */

typedef struct RsdMediaHeader RsdMediaHeader;

typedef struct RsdMediaZone {
    uint8_t state;
    uint8_t attrs;
    uint8_t reserved[6];
} RsdMediaZone;

_Static_assert(sizeof(RsdMediaZone) == 8, "a zone record is 8 bytes");

typedef struct RsdMedia {
    int fd;                     /* -1: in memory, no payload */
    uint8_t *base;
    uint64_t mapped;            /* bytes from base */
    uint64_t table_bytes;       /* of these, tables */
    RsdMediaHeader *header;     /* NULL in memory */
    uint64_t *rec;              /* block records, die by die */
    uint32_t *map;
    RsdMediaZone *zones;
    uint8_t *ext;
    RsdCounters *counters;
    uint8_t *data;              /* NULL in memory */
    uint64_t data_off;
    uint64_t stride;            /* bytes of a block: pages, then their OOB */
    uint32_t pages;             /* of a block */
} RsdMedia;

/* On failure err is set, nothing is held and the file is as it was. */
bool rsd_media_open(RsdMedia *media, const char *path, RsdConfig *cfg,
                    char err[RSD_ERR_LEN]);
bool rsd_media_open_memory(RsdMedia *media, const RsdConfig *cfg,
                           char err[RSD_ERR_LEN]);
void rsd_media_close(RsdMedia *media);
int rsd_media_msync(RsdMedia *media);
void rsd_media_set_oob(RsdMedia *media, uint32_t oob);
/* Host space for a block, so that storing into it cannot fail. 0 or -errno */
int rsd_media_reserve(RsdMedia *media, uint32_t block);
/* Gives that space back; the content is lost. */
void rsd_media_release(RsdMedia *media, uint32_t block);

/*
 * Puts a page into the file by a system call, which is cheaper than the fault
 * of a first store into the mapping. False if the host fails to.
 */
bool rsd_media_store(RsdMedia *media, uint32_t block, uint32_t page,
                     const uint8_t *data);
/* The same the other way. */
bool rsd_media_load(RsdMedia *media, uint32_t block, uint32_t page,
                    uint8_t *data);

static inline uint8_t *rsd_media_page(const RsdMedia *media, uint32_t block,
                                      uint32_t page)
{
    return media->data + block * media->stride +
           (uint64_t)page * RSD_PAGE_SIZE;
}

static inline uint8_t *rsd_media_oob(const RsdMedia *media, uint32_t block,
                                     uint32_t page)
{
    return media->data + block * media->stride +
           (uint64_t)media->pages * RSD_PAGE_SIZE +
           (uint64_t)page * RSD_OOB_SIZE;
}

/*
 * Splitmix64 of seed and index: the drive's only randomness, the same on
 * every machine and independent of the order of the questions.
 */
uint64_t rsd_random(uint64_t seed, uint64_t index);

/*
 * Marks the factory bad blocks in fresh records. False and err if a die would
 * keep fewer good blocks than the host sees.
 */
bool rsd_nand_place_bad(const RsdConfig *cfg, uint64_t *rec,
                        char err[RSD_ERR_LEN]);

/*
 * The array: see nand.c. Blocks are numbered through the drive:
 * die * blocks of a die + block of the die.
 */

/* NULL data or oob: zeroes. oob_len bytes of OOB, zeroes after them. */
RsdStatus rsd_nand_program(RsdMedia *media, uint32_t block, uint32_t page,
                           const uint8_t *data, const uint8_t *oob,
                           uint32_t oob_len);
/* NULL data or oob: not wanted */
RsdStatus rsd_nand_read(RsdMedia *media, uint32_t block, uint32_t page,
                        uint8_t *data, uint8_t *oob, uint32_t oob_len);
/* keep_space: the block is about to be programmed again */
RsdStatus rsd_nand_erase(RsdMedia *media, uint32_t block, bool keep_space);
/* Sets the flags in a block's record: RSD_BLOCK_... */
void rsd_nand_mark(RsdMedia *media, uint32_t block, uint32_t flags);

/*
 * Commands and operations
 */

typedef struct Cmd {
    RsdCmd pub;                 /* first: the caller's view */
    struct Cmd *prev, *next;    /* all commands of the drive */
    struct Cmd *done_next;
    size_t size;                /* of its memory */
    uint32_t pending;           /* operations and barriers it waits for */
    uint32_t oob_len;           /* of a page, in pub.oob */
    uint32_t unwritten;         /* pages read that were never written */
    bool submitted;             /* and not yet returned */
    bool detached;
} Cmd;

/*
 * Operations on one zone between two barriers (reset, finish). A barrier
 * completes when the epochs before it have drained.
 */
typedef struct Epoch {
    struct Epoch *next;         /* the zone's next younger one */
    Cmd *barrier;               /* waits for this epoch and those before it */
    uint32_t zone;
    uint32_t refs;              /* operations in flight */
} Epoch;

typedef enum RsdCause {
    RSD_CAUSE_HOST,
    RSD_CAUSE_CLEAN,
    RSD_CAUSE_MERGE,
    RSD_CAUSE_WEAR,
    RSD_CAUSE_MAP,
    RSD_CAUSE_PAD,
} RsdCause;

typedef enum OpKind { OP_READ, OP_PROGRAM, OP_ERASE } OpKind;

/*
 * A run of page operations on one block, carried out one after the other:
 * what a command wants of a die is next to each other in its queue anyway.
 */
typedef struct Op {
    struct Op *next;            /* in its queue, or in the free list */
    Cmd *cmd;                   /* NULL: nobody waits for it */
    Epoch *epoch;               /* NULL: no barrier waits for it */
    uint64_t enqueued;          /* ns */
    uint8_t *buf;               /* data then OOB, of an op without command */
    uint32_t block;             /* drive-wide number */
    uint32_t page;              /* of the block: the next to do */
    uint32_t count;             /* pages left */
    uint32_t index;             /* of that page in the command */
    uint32_t stride;            /* from one page's index to the next one's */
    uint16_t die;
    uint8_t kind:2;           /* OpKind */
    uint8_t cause:3;          /* RsdCause */
    uint8_t background:1;     /* the drive's own work, done while idle */
} Op;

_Static_assert(sizeof(Op) <= 64, "an operation is a cache line");

/*
 * The event machine: see sched.c.
 */

typedef struct Event {
    uint64_t when;
    uint64_t order;             /* serial number, source in the low bits */
} Event;

typedef struct Die {
    Op *active;
    Op *head, *tail;            /* queue=way */
    struct Die *bus_next;
    uint64_t start;             /* ns: the active page operation's */
    uint64_t idle_since;        /* ns */
    uint32_t queued;            /* operations waiting, in any queue */
    uint16_t channel;
    bool transfer;              /* a read whose page waits for the bus */
    bool idle_armed;            /* an idle event is in the heap */
} Die;

typedef struct DieList {
    Die *head, *tail;
} DieList;

typedef struct Bus {
    DieList brief;              /* commands without data */
    DieList data;               /* programs, and pages read */
    uint64_t free_at;
    bool armed;                 /* an event at free_at is in the heap */
} Bus;

typedef struct Sched {
    uint64_t now;
    uint64_t serial;
    Event *heap;
    uint32_t heap_len;
    uint64_t kicked;            /* channels to arbitrate, a bit each */
    Die *dies;
    Bus *buses;
    Op *head, *tail;            /* queue=global */
} Sched;

/*
 * Free blocks of a die, least worn first: see pool.c.
 */

typedef struct Pool {
    uint32_t *heap;             /* numbers within the die */
    uint32_t len;
    uint32_t obsolete;          /* of these, obsolete */
    uint32_t obsolete_hint;     /* no such block has a lower number */
} Pool;

#define RSD_NONE UINT32_MAX

/*
 * What is known of a block while the drive is open. Operations on a block are
 * carried out in the order they were queued, so it may be given to a new owner
 * while programs of the last one still wait, provided that an erase is queued
 * between them. "obsolete" says that this erase is yet to be queued.
 */
typedef struct Block {
    uint32_t owner;             /* map entry that names it, or RSD_NONE */
    uint32_t pos;               /* in its pool's heap, or RSD_NONE */
    uint32_t erases:31;       /* erases queued or going on */
    uint32_t obsolete:1;      /* needs one more */
} Block;

/*
 * A personality: what the drive does with its array.
 */

typedef struct Personality {
    /* Recovers its state from the media. False and err: nothing changed. */
    bool (*open)(RsdDrive *drive, char err[RSD_ERR_LEN]);
    void (*close)(RsdDrive *drive);
    /* Queues the operations; pending is counted up for each. */
    RsdStatus (*submit)(RsdDrive *drive, Cmd *cmd);
    /* A run is done, its last page included. */
    void (*op_done)(RsdDrive *drive, Op *op);
    /* Is there work for an idle die? */
    bool (*has_background)(const RsdDrive *drive, uint32_t die);
    /* Starts some of it. False if there was none after all. */
    bool (*background)(RsdDrive *drive, uint32_t die);
    uint64_t (*written)(const RsdDrive *drive, uint32_t zone);
    void (*format)(RsdDrive *drive);
} Personality;

extern const Personality rsd_segment_personality;

typedef struct Segments Segments;

struct RsdDrive {
    RsdConfig cfg;
    RsdGeometry geo;
    uint32_t zone_shift;        /* log2 of geo.zone_size */
    uint32_t dies;
    uint32_t die_blocks;        /* spares included */
    uint32_t pages;             /* of a block */

    RsdMedia media;
    RsdCounters *count;         /* sums, in the media */
    Sched sched;
    const Personality *personality;
    Segments *segments;
    Block *blocks;

    Op *free_ops;
    uint32_t num_free_ops;
    void *op_chunks;
    Cmd *cmds;                  /* all that exist */
    Cmd *free_cmds;             /* without buffers, for reuse */
    Cmd *done_head, *done_tail;
    uint32_t in_flight;         /* submitted and not completed */
    uint64_t ram_bytes;
};

/* Memory that counts as the drive's. NULL if there is none. Zeroed. */
void *rsd_alloc(RsdDrive *drive, size_t size);
void rsd_release(RsdDrive *drive, void *mem, size_t size);

/* drive.c */

/* After that many rsd_op_new() cannot fail. */
bool rsd_op_reserve(RsdDrive *drive, uint64_t count);
/* Of one page (page 0), unless the caller changes that. */
Op *rsd_op_new(RsdDrive *drive, OpKind kind, RsdCause cause, uint32_t die,
               uint32_t block);
void rsd_op_free(RsdDrive *drive, Op *op);
/* Does the operation's next page in the array, its time being over. */
void rsd_op_execute(RsdDrive *drive, Op *op);
/* One of those that the command waits for is done. */
void rsd_cmd_drop(RsdDrive *drive, Cmd *cmd);

/* sched.c */

bool rsd_sched_init(RsdDrive *drive);
void rsd_sched_fini(RsdDrive *drive);
/* Carries out all events up to and including now. */
void rsd_sched_run(RsdDrive *drive, uint64_t now);
bool rsd_sched_next(const RsdDrive *drive, uint64_t *when);
void rsd_sched_queue(RsdDrive *drive, Op *op);
/* After the last rsd_sched_queue() of a submission. */
void rsd_sched_settle(RsdDrive *drive);
/* There is new background work for a die, idle from now on. */
void rsd_sched_background(RsdDrive *drive, uint32_t die);

/* pool.c */

/*
 * Blocks are ordered by the erase count they will have when they can be
 * programmed; of equal ones, those already erased come first, then those of
 * lower number.
 */

/* False if there is no memory. */
bool rsd_pool_init(RsdDrive *drive, Pool *pool);
/* Takes in every block of the die whose pos is not RSD_NONE. */
void rsd_pool_fill(RsdDrive *drive, Pool *pool, uint32_t die);
void rsd_pool_fini(RsdDrive *drive, Pool *pool);
void rsd_pool_insert(RsdDrive *drive, Pool *pool, uint32_t block);
void rsd_pool_remove(RsdDrive *drive, Pool *pool, uint32_t block);
/* An erase is done. */
void rsd_pool_update(RsdDrive *drive, Pool *pool, uint32_t block);
/* Lowest-numbered obsolete block, or RSD_NONE. */
uint32_t rsd_pool_first_obsolete(RsdDrive *drive, Pool *pool, uint32_t die);

#endif
