/*
 * rsd core: what its files share with each other and with nobody else.
 *
 *     drive.c     commands: checks, buffers, completions, the API
 *     buffer.c    the write buffer: makes units of what is written
 *     zrwa.c      random write areas of zones, in that buffer
 *     host.c      processors and link: what is before and after the flash
 *     queue.c     what personalities queue: reads, programs, erases
 *     wait.c      commands that wait in a personality
 *     spans.c     ranges of LBAs, and which of them overlap
 *     segment.c   the RSD personality: segment map, resets, wear levelling
 *     page-ftl.c  the page-mapping personality: map, frontiers, collection
 *     block-ftl.c the block-mapping personality
 *     fast-ftl.c  the hybrid personality, FAST; block-map.h: what both share
 *     map-cache.c the same with a part of the map in RAM (DFTL)
 *     pool.c      free blocks of a die by wear
 *     sched.c     the event machine: queues, dies, buses
 *     nand.c      the array and what it refuses
 *     media.c     the file behind the array
 *     power.c     power cuts
 *     oplog.c     the log of operations, and going back in it
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

#include "api/rsd.h"

#define RSD_PAGE_SIZE 4096u
/* Bytes of OOB that the array keeps a page, whatever the host sees of it */
#define RSD_OOB_SIZE 128u
/*
 * Of these, the last bytes are the drive's in a conventional namespace, the
 * host has the first.
 */
#define RSD_SPARE_OFFSET 64u
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
 * Units. What most of the core calls a page is a slot: 4 KiB of data with
 * their OOB, the unit of maps. The pages of one number in all planes are a row;
 * slot s of a block is in row s / slots of a row, there in plane s / slots of a
 * page mod planes. What is programmed at once is a unit: a row, or with
 * one-shot all rows of a word line. By default all of them are the same.
 */

static inline uint32_t rsd_row_slots(const RsdConfig *cfg)
{
    return cfg->planes * (cfg->page_size / RSD_PAGE_SIZE);
}

static inline uint32_t rsd_unit_slots(const RsdConfig *cfg)
{
    return rsd_row_slots(cfg) * (cfg->one_shot ? cfg->cell + 1 : 1);
}

static inline uint64_t rsd_block_slots(const RsdConfig *cfg)
{
    return cfg->pages * rsd_row_slots(cfg);
}

/* Is there a write buffer, and of how many slots? */
static inline bool rsd_buffer_on(const RsdConfig *cfg)
{
    return cfg->write_buffer || rsd_unit_slots(cfg) > 1;
}

/* Slots of a random write area, and of all of them */
static inline uint64_t rsd_zrwa_slots(const RsdConfig *cfg)
{
    return cfg->zrwa_size / RSD_PAGE_SIZE;
}

static inline uint64_t rsd_zrwa_all_slots(const RsdConfig *cfg)
{
    return cfg->zrwa * rsd_zrwa_slots(cfg);
}

/* Of the buffer, without the random write areas */
static inline uint64_t rsd_buffer_slots(const RsdConfig *cfg)
{
    uint64_t asked = cfg->write_buffer / RSD_PAGE_SIZE -
                     rsd_zrwa_all_slots(cfg);
    uint64_t least = cfg->channels * cfg->ways * rsd_unit_slots(cfg);

    return asked > least ? asked : least;
}

/*
 * Block records. One 64-bit word a flash block, so that a block changes its
 * state by a single store, which a killed process has made or has not made.
 */

enum {
    RSD_BLOCK_BAD = 1,      /* never used, or no longer */
    RSD_BLOCK_DIRTY = 2,    /* content is obsolete: erase before programming */
    RSD_BLOCK_WORN = 4,     /* made dirty by wear levelling, not by the host */
    RSD_BLOCK_GROWN = 8,    /* bad, but not from the factory */
    RSD_BLOCK_TORN = 16,    /* has torn pages: see nand.c */
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
    uint8_t zrwa;               /* 1: it has a random write area */
    uint8_t reserved[5];
} RsdMediaZone;

_Static_assert(offsetof(RsdMediaZone, zrwa) == 2, "zrwa");
_Static_assert(sizeof(RsdMediaZone) == 8, "a zone record is 8 bytes");

/* A unit in the write buffer that survives: see buffer.c. */
typedef struct RsdMediaUnit {
    uint32_t taken;             /* its slots, from the first; 0: not in use */
    uint32_t block;             /* drive-wide number */
    uint32_t page;              /* its first slot there */
    uint32_t reserved;
} RsdMediaUnit;

_Static_assert(offsetof(RsdMediaUnit, taken) == 0, "taken");
_Static_assert(offsetof(RsdMediaUnit, block) == 4, "block");
_Static_assert(offsetof(RsdMediaUnit, page) == 8, "page");
_Static_assert(sizeof(RsdMediaUnit) == 16, "a unit record is 16 bytes");

typedef struct Oplog Oplog;

typedef struct RsdMedia {
    int fd;                     /* -1: what is stored stays in memory */
    int locked;                 /* the file, also of a view; -1: none */
    Oplog *log;                 /* NULL: none is kept */
    uint8_t *base;
    uint64_t mapped;            /* bytes from base */
    uint64_t table_bytes;       /* of these, tables */
    RsdMediaHeader *header;     /* NULL in memory */
    uint64_t *rec;              /* block records, die by die */
    uint32_t *map;
    uint64_t *trim;             /* a bit an LBA, 1: trimmed; conventional */
    RsdMediaZone *zones;
    uint8_t *ext;
    RsdCounters *counters;
    uint8_t *data;              /* NULL in memory */
    uint64_t data_off;
    uint64_t stride;            /* bytes of a block: pages, then their OOB */
    uint32_t pages;             /* of a block */
    RsdMediaUnit *units;        /* NULL in memory, and if none survives */
    uint64_t unit_off, unit_bytes;      /* in the file: first one, each */
    uint32_t places;            /* for units */
    uint32_t backed;            /* of these, with host space */
    uint8_t *place_state;       /* see media.c */
    uint32_t first_free, first_bare;    /* no such place is before these */
    /*
     * The host failed to store a page. Those behind it in its block cannot be
     * programmed any more, and there is something that cannot be read.
     */
    bool failed;
    uint64_t *zrwa;             /* a word a place: see zrwa.c */
    uint64_t zrwa_off;          /* in the file: the first place */
    uint32_t zrwa_places;
} RsdMedia;

/*
 * On failure err is set, nothing is held and the file is as it was. A view
 * never changes the file: what is stored stays in memory.
 */
bool rsd_media_open(RsdMedia *media, const char *path, RsdConfig *cfg,
                    bool view, char err[RSD_ERR_LEN]);
bool rsd_media_open_memory(RsdMedia *media, const RsdConfig *cfg,
                           char err[RSD_ERR_LEN]);
void rsd_media_close(RsdMedia *media);
int rsd_media_msync(RsdMedia *media);
/* The write buffer is empty: its places are free until they are claimed. */
void rsd_media_power_on(RsdMedia *media);
/* Which log knows all that happened to the file; 0: none does */
uint64_t rsd_media_get_log_id(const RsdMedia *media);
void rsd_media_set_log_id(RsdMedia *media, uint64_t id);
/* Bytes of the file, within one part. False if the host fails to. */
bool rsd_media_get(const RsdMedia *media, uint64_t off, void *to,
                   uint32_t len);
bool rsd_media_put(const RsdMedia *media, uint64_t off, const void *from,
                   uint32_t len);
/* OOB bytes that the host sees of namespace 0, or of 1, kept in the file */
uint32_t rsd_media_get_oob(const RsdMedia *media, uint32_t ns);
void rsd_media_set_oob(RsdMedia *media, uint32_t ns, uint32_t oob);
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

/*
 * Places for units of the write buffer. All of it does nothing in memory.
 *
 * Host space for so many places in use at once (all there are at most): storing
 * into them cannot fail then.
 */
RsdStatus rsd_media_reserve_places(RsdMedia *media, uint64_t count);
/* A free place with host space. There is one, if it was reserved. */
uint32_t rsd_media_place(RsdMedia *media);
/* This one is in use, as its record says. False: no host space */
bool rsd_media_claim_place(RsdMedia *media, uint32_t place);
/*
 * Adds slots from "from" to "to" of a unit, data then OOB each, and says so.
 * False if the host fails to.
 */
bool rsd_media_store_unit(RsdMedia *media, uint32_t place, uint32_t block,
                          uint32_t page, const uint8_t *payload, uint32_t from,
                          uint32_t to);
bool rsd_media_load_unit(RsdMedia *media, uint32_t place, uint8_t *payload,
                         uint32_t slots);
/* Is there something of the unit that begins at that slot of a block? */
bool rsd_media_has_unit(const RsdMedia *media, uint32_t block, uint32_t page);
/* The place is free. */
void rsd_media_drop_unit(RsdMedia *media, uint32_t place);

/*
 * Places for pages of random write areas; each has a word, which is 0 while it
 * is not in use, and host space. There are none in memory.
 */
/* Stores a page, data then OOB, then its word. False if the host fails to. */
bool rsd_media_store_zrwa(RsdMedia *media, uint32_t place, uint64_t word,
                          const uint8_t *payload);
bool rsd_media_load_zrwa(RsdMedia *media, uint32_t place, uint8_t *payload);
/* The place is not in use. */
void rsd_media_drop_zrwa(RsdMedia *media, uint32_t place);

/* oplog.c; see there. Before it happens: */
void rsd_oplog_store(Oplog *log, uint64_t off, const void *value,
                     uint32_t len);
/* ... bytes behind the tables are overwritten; a page, if it matters */
void rsd_oplog_data(Oplog *log, uint64_t off, uint32_t len);
void rsd_oplog_page(Oplog *log, uint32_t block, uint32_t page);

/* To be called before each store into a table, with what will be there. */
static inline void rsd_media_note(RsdMedia *media, const void *at,
                                  const void *value, uint32_t len)
{
    if (media->log) {
        rsd_oplog_store(media->log, (const uint8_t *)at - media->base, value,
                        len);
    }
}

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
 * What the drive notes in the OOB of each page of a conventional namespace,
 * from which it rebuilds its map. Little-endian.
 */
typedef struct RsdSpare {
    uint32_t magic;             /* RSD_SPARE_MAGIC: not filler */
    uint32_t kind;              /* the personality's: 0 = a page of the host */
    uint64_t lpn;               /* logical page (LBA), or what kind says */
    uint64_t seq;               /* of two pages of an lpn the higher is newer */
    uint32_t copy;              /* 1: made by collection, or levelling */
    uint8_t reserved[36];
} RsdSpare;

#define RSD_SPARE_MAGIC UINT32_C(0x45524153)

_Static_assert(offsetof(RsdSpare, magic) == 0, "magic");
_Static_assert(offsetof(RsdSpare, kind) == 4, "kind");
_Static_assert(offsetof(RsdSpare, lpn) == 8, "lpn");
_Static_assert(offsetof(RsdSpare, seq) == 16, "seq");
_Static_assert(offsetof(RsdSpare, copy) == 24, "copy");
_Static_assert(RSD_SPARE_OFFSET + sizeof(RsdSpare) == RSD_OOB_SIZE,
               "the drive's part of the OOB is at its end");

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
/* How often a block can be erased: the last time, it fails. (life-spread) */
uint64_t rsd_nand_life(const RsdConfig *cfg, uint64_t block);

/*
 * The array: see nand.c. Blocks are numbered through the drive:
 * die * blocks of a die + block of the die.
 */

/* NULL data or oob: zeroes. oob_len bytes of OOB, zeroes after them. */
RsdStatus rsd_nand_program(RsdMedia *media, uint32_t block, uint32_t page,
                           const uint8_t *data, const uint8_t *oob,
                           uint32_t oob_len);
/* A unit of n slots at once; of each: data, OOB. NULL: zeroes */
RsdStatus rsd_nand_program_unit(RsdMedia *media, uint32_t block, uint32_t page,
                                uint32_t n, const uint8_t *slots);
/* NULL data or oob: not wanted */
RsdStatus rsd_nand_read(RsdMedia *media, uint32_t block, uint32_t page,
                        uint8_t *data, uint8_t *oob, uint32_t oob_len);
/* The host's space for it stays until rsd_media_release(). */
RsdStatus rsd_nand_erase(RsdMedia *media, uint32_t block);
/* Sets the flags in a block's record: RSD_BLOCK_...; a bad one stays bad. */
void rsd_nand_mark(RsdMedia *media, uint32_t block, uint32_t flags);
/*
 * Power fails while a unit of n slots is programmed, or while a block is
 * erased: its content is gone.
 */
RsdStatus rsd_nand_tear(RsdMedia *media, uint32_t block, uint32_t page,
                        uint32_t n);
/* A programmed page becomes a torn one. */
RsdStatus rsd_nand_spoil(RsdMedia *media, uint32_t block, uint32_t page);
RsdStatus rsd_nand_tear_block(RsdMedia *media, uint32_t block);
/* Is the page programmed, but torn? */
bool rsd_nand_is_torn(const RsdMedia *media, uint32_t block, uint32_t page);

/*
 * Commands and operations
 */

/* A range of LBAs in a tree: see spans.c. The caller sets the first four. */
typedef struct Span {
    uint64_t from, end;
    uint64_t order;             /* which of two is older */
    bool read;
    struct Span *left, *right;
    uint64_t oldest;            /* order of the oldest one below */
    uint64_t furthest[2];       /* end of any below, of any that is no read */
} Span;

typedef struct Cmd {
    RsdCmd pub;                 /* first: the caller's view */
    struct Cmd *prev, *next;    /* all commands of the drive */
    struct Cmd *done_next;      /* also in the lists of host.c */
    uint64_t due;               /* ns: see host.c */
    size_t size;                /* of its memory */
    uint32_t pending;           /* operations and barriers it waits for */
    uint32_t oob_len;           /* of a page, in pub.oob */
    uint32_t unwritten;         /* pages read that were never written */
    /*
     * Of a write to a conventional namespace: sequence number of its first
     * page, the others follow. From rsd_submit(), in the order of submission.
     */
    uint64_t seq;
    uint32_t progress;          /* the personality's: pages dealt with */
    /* Of map-cache.c: pages translated, cache entries it may fill, state */
    uint32_t translated;
    uint32_t slots;
    uint8_t stage;
    uint8_t era;                /* the personality's: see block-map.h */
    bool submitted;             /* and not yet returned */
    bool detached;
    bool waits;                 /* see wait.c, as of what is below */
    bool in_flight;             /* it is in Ns.writes */
    uint32_t place;
    uint32_t class;             /* the personality's: what it waits for */
    uint64_t begun;             /* its number among those handed over */
    struct Cmd *wait_prev, *wait_next;
    struct Cmd *follows;        /* what it must let go first, */
    struct Cmd *follow_prev, *follow_next;      /* others that follow that, */
    struct Cmd *followers;      /* and the first one of those that follow it */
    /* the personality's: others that wait for the same, and their list */
    struct Cmd *peer_prev, *peer_next, **peers;
    Span span;                  /* while it waits */
    Span write;                 /* while it is in flight */
} Cmd;

/* The commands that wait in a namespace: see wait.c. */
typedef struct Waits {
    struct Ns *ns;
    bool rest_counts;           /* what is done of a command is in no way */
    uint32_t width;             /* words of a mask; 0: there are no masks */
    /* Nothing is before the command any more: it is to have a mask. */
    void (*freed)(struct Ns *ns, Cmd *cmd);
    Cmd *head, *tail;           /* in their order */
    uint32_t len;
    Span *spans;
    Cmd **at;                   /* by place */
    uint64_t *masks;            /* a tree, its root at 1 */
    uint32_t places, next_place;
} Waits;

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
 * A run of slots of one block, carried out step by step (sched.c): what a
 * command wants of a die is next to each other in its queue anyway.
 */
typedef struct Op {
    struct Op *next;            /* in its queue, or in the free list */
    Cmd *cmd;                   /* NULL: nobody waits for it */
    union {
        Epoch *epoch;           /* NULL: no barrier waits for it */
        void *job;              /* the personality's: see map-cache.c */
    };
    uint64_t enqueued;          /* ns */
    /*
     * Of an op without command: of each slot its data, then RSD_OOB_SIZE bytes
     * of OOB; NULL without payload.
     */
    uint8_t *buf;
    uint32_t block;             /* drive-wide number */
    /* slot of the block: the next to begin, or, when all is done, the last */
    uint32_t page;
    uint32_t count;             /* slots left to begin */
    uint32_t index;             /* of the next one in the command */
    /* from one unit's last index to the next unit's first */
    uint32_t stride;
    uint16_t die;
    uint8_t kind:2;           /* OpKind */
    uint8_t cause:3;          /* RsdCause */
    uint8_t background:1;     /* the drive's own work, done while idle */
    uint8_t ns:1;             /* namespace */
    uint8_t unit:1;           /* the write buffer's: see buffer.c */
    uint8_t failed:1;         /* the host's disk did: see rsd_op_execute() */
    uint8_t zrwa:2;           /* ZrwaKind: see zrwa.c */
} Op;

_Static_assert(sizeof(Op) <= 64, "an operation is a cache line");

/*
 * What an operation has besides, behind it in memory, in a drive with suspend
 * alone: see rsd_op_queued().
 */
typedef struct Queued {
    Op *prev;                   /* in its queue */
    Op *left, *right;           /* in its heap; left: in BlockOrder.waiting */
    uint64_t number;            /* in the order of queueing */
    uint32_t writers;           /* of its block that were queued before */
} Queued;

static inline Queued *rsd_op_queued(const Op *op)
{
    return (Queued *)(op + 1);
}

/*
 * The event machine: see sched.c.
 */

typedef struct Event {
    uint64_t when;
    uint64_t order;             /* serial number, source in the low bits */
} Event;

/*
 * With suspend: programs and erases of a block, "writers", and the reads that
 * have some of them before.
 */
typedef struct BlockOrder {
    Op *waiting, *last;         /* reads, in order */
    uint32_t queued;            /* writers ever queued */
    uint32_t left;              /* of these, the array is done with */
} BlockOrder;

/* What the array does at a time: a part of an operation. op NULL: none */
typedef struct Step {
    Op *op;
    uint64_t start;             /* ns: of its first tenure */
    uint32_t page;              /* first slot */
    uint32_t index;             /* of that slot in the command */
    uint16_t slots;
    uint8_t pages;              /* NAND pages, of an erase blocks */
    uint8_t type;               /* of the pages: 0 = LSB, ... */
    bool last;                  /* of its operation */
    bool begun;                 /* start is valid */
    bool alone;                 /* a read with retries */
    uint32_t retries;           /* left */
} Step;

/* A die's place in a bus's queue */
typedef struct Want {
    struct Want *next;
    uint16_t die;
    uint8_t what;               /* see sched.c */
} Want;

typedef struct Die {
    Op *op;                     /* being done, with slots left to begin */
    Op *head, *tail;            /* queue=way */
    Op *first_read;             /* with suspend: heap of eligible ones */
    /*
     * load: a program whose data goes to the cache register; array: the step
     * that the array does; out: a page on its way out, or status
     */
    Step load, array, out;
    Step held;                  /* suspended */
    Op *held_op;                /* put aside for reads, with slots left */
    Want wants[3];
    uint64_t array_end;         /* ns */
    uint64_t held_left;         /* ns of array time of the step held */
    uint64_t busy_until;        /* ns: accounted up to then */
    uint64_t idle_since;        /* ns */
    uint32_t queued;            /* operations waiting, in any queue */
    uint32_t begun;             /* operations not done */
    uint32_t ahead;             /* reads before a program or an erase */
    uint64_t programmed;        /* slots, but not by wear levelling */
    uint16_t channel;
    uint8_t state;              /* of the array, see sched.c */
    bool loaded;                /* load is in the cache register */
    bool idle_armed;            /* an idle event is in the heap */
} Die;

typedef struct WantList {
    Want *head, *tail;
} WantList;

typedef struct Bus {
    WantList brief;             /* commands without data */
    WantList data;              /* programs, and pages read */
    uint64_t free_at;
    bool armed;                 /* an event at free_at is in the heap */
} Bus;

typedef struct Sched {
    uint64_t now;
    uint64_t serial;
    uint64_t read_ns[4], prog_ns[4];    /* by page type */
    uint32_t row;               /* slots of a row, */
    uint32_t unit;              /* of a unit, */
    uint32_t page;              /* of a page */
    uint32_t types;
    bool cache, suspend, plain; /* plain: neither of them */
    bool small;                 /* all pages alike, each a unit, no retries */
    Event *heap;
    uint32_t heap_len;
    uint32_t *places;           /* in the heap, by source; with suspend */
    BlockOrder *order;          /* by block; with suspend */
    /* operations so far, those that went first apart; with suspend */
    uint64_t queued, queued_first;
    uint64_t kicked;            /* channels to arbitrate, a bit each */
    Die *dies;
    Bus *buses;
    Op *head, *tail;            /* queue=global */
} Sched;

/*
 * The write buffer: see buffer.c.
 */

typedef struct BufUnit BufUnit;

typedef struct BufUnitList {
    BufUnit *head, *tail;
} BufUnitList;

typedef struct OpList {
    Op *head, *tail;
} OpList;

typedef struct Buffer {
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

/*
 * Random write areas: see zrwa.c.
 */

typedef struct ZrwaArea ZrwaArea;

typedef struct Zrwa {
    ZrwaArea **areas;           /* by zone; NULL if there can be none */
    uint32_t size, flush;       /* slots */
    uint32_t in_use;            /* areas, those included that are committed */
    uint32_t *free_places;
    uint32_t num_free;
} Zrwa;

/*
 * The controller: see host.c.
 */

#define RSD_HOST_LISTS 5u
#define RSD_MAX_CORES 64u

typedef struct HostList {
    Cmd *head, *tail;           /* in order of Cmd.due */
} HostList;

typedef struct Host {
    bool on;
    HostList lists[RSD_HOST_LISTS];
    /* ns: from when on they are free */
    uint64_t core_free[RSD_MAX_CORES], in_free, out_free;
    uint64_t handed[2];         /* ns: the last command handed over, by class */
} Host;

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
    uint32_t queued;            /* operations in its die's queue, or begun */
    uint32_t buffered;          /* units of it in the write buffer */
} Block;

/*
 * A namespace: a personality on its share of every die's blocks.
 */

typedef struct Personality Personality;
typedef struct Segments Segments;

typedef struct Ns {
    RsdDrive *drive;
    const Personality *personality;
    void *state;                /* the personality's, NULL when closed */
    RsdGeometry geo;
    uint32_t index;             /* its number */
    uint32_t zone_shift;        /* log2 of geo.zone_size */
    uint32_t oob;               /* bytes of a page that the host sees */
    /* its blocks are [first, end) of each die */
    uint32_t first, end;
    uint32_t visible;           /* blocks of a die that are not spares */
    Waits *waits;               /* the personality's; NULL: it has none */
    Span *writes;               /* in flight, once somebody has asked */
    bool watches_writes;
} Ns;

/* Blocks of the namespace in a die that the factory does not know to be bad */
uint32_t rsd_nand_good_when_new(const Ns *ns, uint32_t die);
/* Logical pages that over-provision leaves the host of a conventional one */
uint64_t rsd_exported_pages(const Ns *ns);

/*
 * A personality: what the drive does with the array. A new one is a file with
 * such a table, a value of "ftl" in rsd-props.h and a line in drive.c.
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
    /*
     * An operation is done, all its pages included. It, its buffer and the
     * count it has in its command (rsd_op_finish()) are the personality's to
     * drop. If it failed, it must not be what content depends on: see
     * RsdDrive.failed. What a unit of the write buffer that failed was to
     * program can still be read (rsd_buffer_read()).
     */
    void (*op_done)(Ns *ns, Op *op);
    /*
     * With a write buffer: the data of a program it queued is there, but, if
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
    /* The same: each flash block may have a begun unit. Else a die has few */
    bool begins_everywhere;
    /*
     * A page of the host that a program brought, and was not trimmed since
     * (rsd_buffer_trim()), is programmed, or in the protected part of the
     * buffer: before op_done(). May be NULL
     */
    void (*kept)(Ns *ns, uint64_t lba);
    /*
     * Can a power cut tear a page of this block? False where recovery would
     * have no room for the rest of it: the page is absent then. NULL: always;
     * so it is with two namespaces.
     */
    bool (*can_tear)(const Ns *ns, uint32_t block);
    /* Is there work for an idle die? */
    bool (*has_background)(const Ns *ns, uint32_t die);
    /* Starts some of it. False if there was none after all. */
    bool (*background)(Ns *ns, uint32_t die);
    /* Everything is as if it had never been written. */
    void (*format)(Ns *ns);
    /* Zoned only: pages of the zone up to its highest programmed one */
    uint64_t (*written)(const Ns *ns, uint32_t zone);
};

/* The table of ftl's value */
const Personality *rsd_personality_of(RsdFtl ftl);
extern const Personality rsd_segment_personality;
extern const Personality rsd_page_personality;
extern const Personality rsd_block_personality;
extern const Personality rsd_fast_personality;
extern const Personality rsd_dftl_personality;

/* See power.c. */
typedef struct Power {
    bool off;
    bool broken;                /* it cannot be opened: stays off */
    bool counts;                /* operations are to be counted */
    uint64_t ops;               /* since the drive was opened, or the log's */
    uint64_t cut_op;            /* 0: never */
    uint64_t seed;
    char *list;                 /* of outcomes, see power.h; or NULL */
} Power;

struct RsdDrive {
    RsdConfig cfg;
    Ns ns[RSD_MAX_NAMESPACES];
    uint32_t num_ns;
    uint32_t dies;
    uint32_t die_blocks;        /* spares included */
    uint32_t pages;             /* of a block: slots */
    uint32_t unit;              /* slots programmed at once */
    /* too many blocks are worn out, or: */
    bool read_only;
    /* The host's disk failed. Nothing is to be moved, or erased, any more. */
    bool failed;
    uint32_t health_changes;    /* since it was opened */

    RsdMedia media;
    RsdCounters *count;         /* sums, in the media */
    Sched sched;
    Host host;
    Buffer buffer;
    Zrwa zrwa;
    Block *blocks;
    uint64_t seq;               /* of the next page written, see Cmd.seq */
    uint64_t begun;             /* commands, see Cmd.begun */

    Op *free_ops;
    uint32_t num_free_ops;
    void *op_chunks;
    Cmd *cmds;                  /* all that exist */
    Cmd *free_cmds;             /* without buffers, for reuse */
    Cmd *done_head, *done_tail;
    void *free_bufs;            /* see rsd_buf_new() */
    void *buf_chunks;
    uint32_t in_flight;         /* submitted and not completed */
    uint64_t ram_bytes;
    Power power;
};

/* Memory that counts as the drive's. NULL if there is none. Zeroed. */
void *rsd_alloc(RsdDrive *drive, size_t size);
void rsd_release(RsdDrive *drive, void *mem, size_t size);

/* drive.c */

/* After that many rsd_op_new() cannot fail. */
bool rsd_op_reserve(RsdDrive *drive, uint64_t count);
static inline void rsd_op_list_add(OpList *list, Op *op)
{
    op->next = NULL;
    if (list->head) {
        list->tail->next = op;
    } else {
        list->head = op;
    }
    list->tail = op;
}

static inline bool rsd_buffered(const RsdDrive *drive)
{
    return drive->buffer.on;
}

/* Of one page (page 0), unless the caller changes that. */
Op *rsd_op_new(Ns *ns, OpKind kind, RsdCause cause, uint32_t block);
void rsd_op_free(RsdDrive *drive, Op *op);
/* Frees it; its command, if any, waits for one operation less. */
void rsd_op_finish(RsdDrive *drive, Op *op);
/*
 * Does a step in the array, its time being over. If the host fails to store it,
 * or to load what the drive itself wants to read, the operation has failed, and
 * the drive is read-only until it is opened again: what would have been moved
 * or was only to be found in the write buffer is still there.
 */
void rsd_op_execute(RsdDrive *drive, const Step *step);
/* Too many blocks are worn out: the drive is read-only from now on. */
void rsd_drive_wear_out(RsdDrive *drive);
/*
 * No block is to be had for a write, and nothing will change that: the status
 * for it. If blocks have died, the drive is worn out.
 */
RsdStatus rsd_drive_no_block(RsdDrive *drive);
/* The host's disk has failed to keep what it should. */
void rsd_drive_fail(RsdDrive *drive);
/* One of those that the command waits for is done. */
void rsd_cmd_drop(RsdDrive *drive, Cmd *cmd);

/* The OOB of a page that the host writes to a conventional namespace */
void rsd_compose_oob(const Cmd *cmd, uint32_t index, const uint8_t *host,
                     uint8_t oob[RSD_OOB_SIZE]);
/* Gives it to its personality. */
void rsd_cmd_hand_over(RsdDrive *drive, Cmd *cmd);
/* All is done, it is for the host to take. */
void rsd_cmd_complete(RsdDrive *drive, Cmd *cmd);

/*
 * Opens what is in the media, the time going on; fails as rsd_open() does. And
 * back, except for commands that were not submitted.
 */
bool rsd_drive_start(RsdDrive *drive, char err[RSD_ERR_LEN]);
void rsd_drive_stop(RsdDrive *drive);

/* power.c, of which all does nothing unless operations are counted or logged */

/* The array begins a step, and has ended it but not yet carried it out. */
void rsd_power_begin(RsdDrive *drive, const Step *step);
void rsd_power_end(RsdDrive *drive, const Step *step);
/* A command that changes tables is about to; what: see RsdLogged.command */
void rsd_power_command(RsdDrive *drive, uint32_t what, uint64_t lba);
/* The power's event (rsd_sched_power_event()) is due. */
void rsd_power_event(RsdDrive *drive);
/* For opening: the media's log. False and err: it has none. */
bool rsd_power_open_log(RsdDrive *drive, const char *path,
                        char err[RSD_ERR_LEN]);

static inline bool rsd_power_watched(const RsdDrive *drive)
{
    return drive->power.counts;
}

/* oplog.c */

/* For a media file, or a view of one. False and err: it has no log. */
bool rsd_oplog_open(RsdMedia *media, const char *path, uint32_t dies,
                    uint64_t blocks, char err[RSD_ERR_LEN]);
/* NULL is allowed. */
void rsd_oplog_close(Oplog *log);
/* Anew, with the media as it is */
void rsd_oplog_begin(Oplog *log);
/* Of an array's operation: its unit begins at that slot. */
void rsd_oplog_start(Oplog *log, const Op *op, uint32_t page, bool protected,
                     uint64_t now);
void rsd_oplog_done(Oplog *log, const Op *op, uint32_t page, uint64_t now);
void rsd_oplog_command(Oplog *log, uint32_t what, uint64_t lba, uint64_t now);
/* Did anything wait in a volatile write buffer? */
void rsd_oplog_power(Oplog *log, uint64_t now, bool waiting);
/* Has some state that the log leads to a page programmed in that block? */
bool rsd_oplog_keeps(const Oplog *log, uint32_t block);
/* The media becomes as just before operation op + 1, nothing in flight. */
bool rsd_oplog_go(Oplog *log, uint64_t op, char err[RSD_ERR_LEN]);
/*
 * Then: what number i in flight, a program that has an end in the log, was to
 * program: of each slot data and OOB. False: the host fails.
 */
bool rsd_oplog_content(Oplog *log, uint64_t op, uint32_t i, uint32_t slots,
                       uint8_t *content);
/* For power.c, see power.h */
struct RsdOplogInfo;
struct RsdLogged;
void rsd_oplog_get_info(const Oplog *log, struct RsdOplogInfo *info);
bool rsd_oplog_get_op(const Oplog *log, uint64_t op, struct RsdLogged *to);
bool rsd_oplog_get_in_flight(Oplog *log, uint64_t op, uint32_t i,
                             struct RsdLogged *to);

/* buffer.c */

/* Page index of a write command as the buffer has it: data, then OOB */
void rsd_cmd_payload(const RsdDrive *drive, uint32_t ns, const Cmd *cmd,
                     uint32_t index, uint8_t *to);
/* After this, so many units can be begun. RSD_OK without a buffer */
RsdStatus rsd_buffer_reserve(RsdDrive *drive, uint64_t units);
/*
 * A program comes: consecutive slots of a block, in the block's order; the
 * command, if any, and the epoch count it as they count a queued operation.
 * op_buffered() follows.
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
 * For zrwa.c: an operation to an area of units that were reserved; the queue
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
/* For opening: the unit that begins there, if any, is not wanted. */
void rsd_buffer_forget(RsdDrive *drive, uint32_t block, uint32_t page);
void rsd_buffer_fini(RsdDrive *drive);

/* zrwa.c */

typedef enum ZrwaKind { ZRWA_NONE, ZRWA_WRITE, ZRWA_COMMIT } ZrwaKind;

/* The random write area that a zone has, or NULL */
ZrwaArea *rsd_zrwa_of(const RsdDrive *drive, uint32_t zone);
/* Has the zone lost it, but not all of it is taken? */
bool rsd_zrwa_closing(const RsdDrive *drive, uint32_t zone);
/* Where in the zone what was written to it ends; next if before that */
uint64_t rsd_zrwa_end(const ZrwaArea *area, uint64_t next);
/* Gives it one, which begins at slot "next". */
RsdStatus rsd_zrwa_open(RsdDrive *drive, uint32_t zone, uint64_t next);
/*
 * Writes a command's slots to the area, at slot "offset" of the zone, or
 * commits count slots. The command and the epoch count it as an operation. One
 * operation, and units for what will be committed, are reserved.
 */
void rsd_zrwa_queue(Ns *ns, Cmd *cmd, ZrwaArea *area, ZrwaKind kind,
                    uint64_t offset, uint32_t count, Epoch *epoch,
                    uint32_t units);
/* The zone has it no more once what is queued is taken. */
void rsd_zrwa_close(RsdDrive *drive, ZrwaArea *area);
/* The zone has none, and what was in it is lost. */
void rsd_zrwa_drop(Ns *ns, uint32_t zone);
/*
 * Where what is to be read from the area begins in the zone; next if the zone
 * has none.
 */
uint64_t rsd_zrwa_start(const RsdDrive *drive, uint32_t zone, uint64_t next);
/*
 * Reads a slot from there on as page index of a command. False: it was not
 * written.
 */
bool rsd_zrwa_read(RsdDrive *drive, Cmd *cmd, uint32_t index, uint32_t zone,
                   uint64_t offset);
/* buffer.c: takes of an operation what there is room for. True: all */
bool rsd_zrwa_take(RsdDrive *drive, Op *op);
/* The operation leaves the queue. */
void rsd_zrwa_taken(RsdDrive *drive, const Op *op);
/* What is in the areas becomes safe, for a flush. */
void rsd_zrwa_secure(RsdDrive *drive, Cmd *cmd);
/* Are pages in the zone's area? */
bool rsd_zrwa_holds(const RsdDrive *drive, uint32_t zone);
/* Looks at what is in the file. False and err: it is as it was. */
bool rsd_zrwa_load(RsdDrive *drive, char err[RSD_ERR_LEN]);
/*
 * For opening: takes in what is in the file of a zone whose next slot is this
 * one. Gives the next slot after that.
 */
uint64_t rsd_zrwa_settle(Ns *ns, uint32_t zone, uint64_t next);
/* After all zones: what no zone has taken in is forgotten. */
void rsd_zrwa_settled(RsdDrive *drive);
void rsd_zrwa_fini(RsdDrive *drive);

/* segment.c */

/* The zone's next slot: all before it were submitted. */
uint64_t rsd_seg_next(const RsdDrive *drive, uint32_t zone);
/* The block, and the slot there, of a slot of a zone that is in use */
uint32_t rsd_seg_locate(const RsdDrive *drive, uint32_t zone, uint64_t offset,
                        uint32_t *page);

/* host.c */

void rsd_host_init(RsdDrive *drive);
/* A command was submitted: rsd_cmd_hand_over() when it is time. */
void rsd_host_enter(RsdDrive *drive, Cmd *cmd);
/* It waits for nothing in the flash: rsd_cmd_complete() when it is time. */
void rsd_host_leave(RsdDrive *drive, Cmd *cmd);
/* The head of a list is due. */
void rsd_host_event(RsdDrive *drive, uint32_t list);

/* block-recover.c */

/*
 * With ftl=block: can the drive be opened if the program of a page of
 * that block is torn?
 */
bool rsd_map_can_tear(const Ns *ns, uint32_t block);

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
void rsd_waits_remove(Waits *w, Cmd *cmd);
/* Its progress has changed. With rest_counts */
void rsd_waits_went_on(Waits *w, Cmd *cmd);
/* One before it that waits and has to go on first, or NULL */
Cmd *rsd_waits_blocker(const Waits *w, const Cmd *cmd);
/* The first one of which what counts begins at that LBA, or NULL */
Cmd *rsd_waits_at(const Waits *w, uint64_t lba);
/* Its bits from now on; NULL: none */
void rsd_waits_mark(Waits *w, Cmd *cmd, const uint64_t *mask);
/* The first one, from that place on, that has a bit of those, or NULL */
Cmd *rsd_waits_next(const Waits *w, uint32_t from, const uint64_t *want);
/* A trim waits for a write in flight, if it overlaps one. */
void rsd_waits_follow_write(Waits *w, Cmd *cmd);
/*
 * Writes of the namespace in flight are known from the first question on: a
 * write that was begun before a command and overlaps it, or NULL.
 */
Cmd *rsd_write_in_flight(Ns *ns, const Cmd *cmd);
void rsd_write_begins(Cmd *cmd, Ns *ns);
void rsd_write_ends(Cmd *cmd, Ns *ns);

/* queue.c: for conventional namespaces */

/*
 * A buffer for a page with its OOB, from a stock that grows. rsd_buf_free()
 * takes NULL. NULL, too, if there is no memory, and without payload.
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
 * in op->buf for op_done(), whose caller it belongs to; NULL in a drive
 * without payload. Op.job is NULL, or, of a program, what is given; with a
 * write buffer, op_buffered() may have got it when this returns, and
 * rsd_buffer_lba() gives the tag.
 */
Op *rsd_queue_copy_read(Ns *ns, RsdCause cause, uint32_t block, uint32_t page,
                        uint8_t *buf);
void rsd_queue_copy_write(Ns *ns, RsdCause cause, uint32_t block,
                          uint32_t page, uint8_t *buf, void *job,
                          uint64_t tag);
/* Filler for the slots, which belong to one unit. With a write buffer only */
void rsd_queue_pad(Ns *ns, uint32_t block, uint32_t page, uint32_t n);
/* The block's programs and reads so far are carried out before. */
Op *rsd_queue_erase(Ns *ns, RsdCause cause, uint32_t block);

/* sched.c */

bool rsd_sched_init(RsdDrive *drive);
void rsd_sched_fini(RsdDrive *drive);
/* Carries out all events up to and including now. */
void rsd_sched_run(RsdDrive *drive, uint64_t now);
bool rsd_sched_next(const RsdDrive *drive, uint64_t *when);
void rsd_sched_queue(RsdDrive *drive, Op *op);
/* Before all that waits for its die: nothing of its block may be queued. */
void rsd_sched_queue_first(RsdDrive *drive, Op *op);
/* After the last rsd_sched_queue() of a submission. */
void rsd_sched_settle(RsdDrive *drive);
/* An event for rsd_host_event(); at most one a list */
void rsd_sched_host_event(RsdDrive *drive, uint32_t list, uint64_t when);
/* There is new background work for a die, idle from now on. */
void rsd_sched_background(RsdDrive *drive, uint32_t die);
/* An event for rsd_power_event(), before all others of that time; only one */
void rsd_sched_power_event(RsdDrive *drive, uint64_t when);
/* What a die has begun to program or to erase, in order */
#define RSD_DIE_STEPS 3u
uint32_t rsd_sched_in_flight(const RsdDrive *drive, uint32_t die,
                             const Step *steps[RSD_DIE_STEPS]);
/* No events any more */
void rsd_sched_halt(RsdDrive *drive);

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
