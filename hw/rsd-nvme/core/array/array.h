/*
 * rsd core, floor of the array: dies, buses and their queues, what NAND
 * refuses, operations, and what is common to all of a drive. The array carries
 * out page operations and knows neither zones nor maps, no buffer and no power
 * cut: what it has to tell goes through ArrayUp.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_ARRAY_H
#define RSD_ARRAY_H

/*
 * This is for code that runs seldom, or in some drives only. It must not become
 * a part of its caller, which would save registers for it in all drives.
 */
#define RSD_COLD __attribute__((cold))
#define RSD_APART __attribute__((noinline))

#include "../api/scenario.h"
#include "../media/media.h"

/*
 * The array: see nand.c. Blocks are numbered through the drive:
 * die * blocks of a die + block of the die.
 */

/*
 * NULL data or oob stand for zeroes. oob_len bytes of OOB are given, with
 * zeroes after them.
 */
RsdStatus rsd_nand_program(RsdMedia *media, uint32_t block, uint32_t page,
                           const uint8_t *data, const uint8_t *oob,
                           uint32_t oob_len);
/*
 * Programs a unit of n slots at once; each has data and OOB. NULL stands for
 * zeroes.
 */
RsdStatus rsd_nand_program_unit(RsdMedia *media, uint32_t block, uint32_t page,
                                uint32_t n, const uint8_t *slots);
/* Reads a page. NULL data or oob are not wanted. */
RsdStatus rsd_nand_read(RsdMedia *media, uint32_t block, uint32_t page,
                        uint8_t *data, uint8_t *oob, uint32_t oob_len);
/* Erases a block. The host's space for it stays until rsd_media_release(). */
RsdStatus rsd_nand_erase(RsdMedia *media, uint32_t block);
/* Sets the flags in a block's record: RSD_BLOCK_...; a bad one stays bad. */
void rsd_nand_mark(RsdMedia *media, uint32_t block, uint32_t flags);
/*
 * Power fails while a unit of n slots is programmed, or while a block is
 * erased, so its content is gone.
 */
RsdStatus rsd_nand_tear(RsdMedia *media, uint32_t block, uint32_t page,
                        uint32_t n);
/* Makes a programmed page a torn one. */
RsdStatus rsd_nand_spoil(RsdMedia *media, uint32_t block, uint32_t page);
/*
 * Makes a programmed page a lost one, if the drive notes in its OOB whose it
 * is, else a torn one. Without data of pages, nothing happens.
 */
void rsd_nand_lose(RsdMedia *media, uint32_t block, uint32_t page, bool notes);
RsdStatus rsd_nand_tear_block(RsdMedia *media, uint32_t block);
/*
 * These say whether the page is programmed, but torn, and whether it is torn or
 * lost.
 */
bool rsd_nand_is_torn(const RsdMedia *media, uint32_t block, uint32_t page);
bool rsd_nand_is_lost(const RsdMedia *media, uint32_t block, uint32_t page);

/*
 * Commands and operations
 */

/*
 * These are ranges of LBAs that begin at the same one, by age: reads, or
 * others.
 */
typedef struct SpanList {
    struct Span *first, *last;
    uint64_t reach;             /* none of them has ended further on */
} SpanList;

/* Of the ranges that begin at an LBA, one is in the tree for all. */
typedef struct SpanNode {
    struct Span *left, *right;
    uint64_t priority;          /* none below has a higher one */
    SpanList list[2];           /* of those that are no reads, of reads */
    uint64_t oldest;            /* order of the oldest one below */
    uint64_t furthest[2];       /* reach of all below, without reads */
} SpanNode;

/*
 * This is a range of LBAs in a tree: see spans.c. The caller sets the first
 * four.
 */
typedef struct Span {
    uint64_t from, end;
    uint64_t order;             /* which of two is older */
    bool read;
    struct Span *older, *younger;       /* in its list */
    SpanNode node;              /* of the one that is in the tree */
} Span;

typedef struct Waits Waits;

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
     * This is for a write to a conventional namespace: the sequence number of
     * its first page, which the others follow. It is set by rsd_submit(), in
     * the order of submission.
     */
    uint64_t seq;
    uint32_t progress;          /* the personality's: pages dealt with */
    struct Cmd *whole;          /* the large trim that it is a step of, or NULL */
    bool submitted;             /* and not yet returned */
    bool refused;               /* after it was submitted: it did nothing */
    bool detached;
    bool held;                  /* by a large trim: see trim.c */
    bool waits;                 /* see wait.c, as of what is below */
    bool in_flight;             /* it is in Ns.writes */
    uint32_t slot;              /* of its mask; RSD_NONE: it has none */
    struct Cmd *below[2];       /* in the tree: before it, behind it */
    struct Cmd *above;          /* in the tree; NULL: it is the root */
    uint64_t priority;          /* none below has a higher one */
    uint64_t begun;             /* its number among those handed over */
    struct Cmd *wait_prev, *wait_next;
    struct Cmd *follows;        /* what it must let go first, */
    struct Cmd *follow_prev, *follow_next;      /* others that follow that, */
    struct Cmd *followers;      /* and the first one of those that follow it */
    Span span;                  /* while it waits */
    Span write;                 /* while it is in flight */
    /* These are RsdDrive.cmd_area bytes of the personality's, then the data. */
    uint64_t area[];
} Cmd;

/*
 * Returns the personality's part of a command, of Personality.cmd_size bytes.
 */
static inline void *rsd_cmd_area(const Cmd *cmd)
{
    return (void *)cmd->area;
}

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
 * This is a run of slots of one block, carried out step by step (sched.c). The
 * pages that a command needs of a die are next to each other in its queue
 * anyway.
 */
typedef struct Op {
    struct Op *next;            /* in its queue, or in the free list */
    Cmd *cmd;                   /* NULL: nobody waits for it */
    void *job;                  /* of whoever queued it; see there */
    uint64_t enqueued;          /* ns */
    /*
     * An op without a command has its data here: of each slot its data, then
     * RSD_OOB_SIZE bytes of OOB. It is NULL without payload. With "row" it has
     * room for all slots of the row, each at its place.
     */
    uint8_t *buf;
    uint32_t block;             /* drive-wide number */
    /*
     * This is a slot of the block: the next to begin, or, when all is done, the
     * last; with "row" the first that is wanted.
     */
    uint32_t page;
    uint32_t count;             /* slots left to begin */
    uint32_t index;             /* of the next one in the command */
    union {
        /*
         * This is the distance from one unit's last index to the next unit's
         * first.
         */
        uint32_t stride;
        /* With "row", these are the slots of it that are read, a bit each. */
        uint32_t wanted;
    };
    uint16_t die;
    uint8_t kind:2;           /* OpKind */
    uint8_t cause:3;          /* RsdCause */
    uint8_t background:1;     /* the drive's own work, done while idle */
    uint8_t ns:1;             /* namespace */
    uint8_t unit:1;           /* the write buffer's: see buffer.c */
    uint8_t failed:1;         /* the host's disk did: see rsd_op_execute() */
    uint8_t area:2;           /* not 0: to an area of units: see buffer.c */
    uint8_t row:1;            /* the drive itself reads slots of one row */
} Op;

_Static_assert(sizeof(Op) <= 64, "an operation is a cache line");

/*
 * This comes with an operation, behind it in memory, only in a drive with
 * suspend: see rsd_op_queued().
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

/* This is the event machine: see sched.c. */

typedef struct Event {
    uint64_t when;
    uint64_t order;             /* serial number, source in the low bits */
} Event;

/* These events come in the order in which they were scheduled: a ring. */
typedef struct EventLane {
    Event *ring;
    uint32_t from, end;         /* the first, and behind the last; mod size */
    uint64_t last;              /* when that one happens */
} EventLane;

#define RSD_LANES 11u           /* see sched.c */

/*
 * With suspend, these are the programs and erases of a block, "writers", and
 * the reads that have some of them before.
 */
typedef struct BlockOrder {
    Op *waiting, *last;         /* reads, in order */
    uint32_t queued;            /* writers ever queued */
    uint32_t left;              /* of these, the array is done with */
} BlockOrder;

/*
 * This is the part of an operation that the array does at a time. With op NULL,
 * there is none.
 */
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

/* This is a die's place in a bus's queue. */
typedef struct Want {
    struct Want *next;
    uint16_t die;
    uint8_t what;               /* see sched.c */
} Want;

typedef struct Die {
    /* The fields that each operation needs come first, in few cache lines. */
    Op *op;                     /* being done, with slots left to begin */
    Op *head, *tail;            /* queue=way */
    uint16_t number, channel;
    uint8_t state;              /* of the array, see sched.c */
    bool loaded;                /* load is in the cache register */
    bool idle_armed;            /* an idle event is in the heap */
    /*
     * array: the step that the array does. out: a page on its way out, or
     * status. load: a program whose data goes to the cache register.
     */
    Step array, out;
    Want wants[3];
    uint64_t array_end;         /* ns */
    uint64_t busy_until;        /* ns: accounted up to then */
    uint64_t idle_since;        /* ns */
    uint64_t programmed;        /* slots, but not by wear levelling */
    uint32_t queued;            /* operations waiting, in any queue */
    uint32_t begun;             /* operations not done */
    uint32_t ahead;             /* reads before a program or an erase */
    uint32_t bad, grown;        /* blocks; of these, not the factory's */
    Step load;
    Step held;                  /* suspended */
    Op *held_op;                /* put aside for reads, with slots left */
    uint64_t held_left;         /* ns of array time of the step held */
    Op *first_read;             /* with suspend: heap of eligible ones */
} Die;

typedef struct WantList {
    Want *head, *tail;
} WantList;

typedef struct Bus {
    WantList brief;             /* commands without data */
    WantList data;              /* programs, and pages read */
    uint64_t free_at;
    bool armed;                 /* there is an event when it gets free */
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
    /* These are the first event of the heap, then that of each lane. */
    Event heads[1 + RSD_LANES];
    Event next;                 /* the first one of all, */
    uint32_t first;             /* and whose it is */
    uint32_t num_lanes;         /* 0: all events are in the heap */
    uint32_t lane_size;         /* events that a ring has room for: 2^n */
    EventLane lanes[1 + RSD_LANES];  /* number 0 is none */
    Event *rings;               /* of all of them */
    Event *heap;
    uint32_t heap_len;
    uint32_t *places;           /* in the heap, by source; with suspend */
    BlockOrder *order;          /* by block; with suspend */
    /*
     * These are operations so far; those that went first are counted apart,
     * with suspend.
     */
    uint64_t queued, queued_first;
    uint64_t kicked;            /* channels to arbitrate, a bit each */
    Die *dies;
    Bus *buses;
    Op *head, *tail;            /* queue=global */
} Sched;

/*
 * These are timers of the floors above: of host.c, then one of a translation
 * layer.
 */
#define RSD_TIMER_FTL 6u
#define RSD_TIMERS 7u

typedef struct OpList {
    Op *head, *tail;
} OpList;

/*
 * This is the state of a block while the drive is open. Operations on a block
 * are carried out in the order in which they were queued. So it may be given to
 * a new owner while programs of the last one still wait, provided that an erase
 * is queued between them. "obsolete" says that this erase is yet to be queued.
 */
typedef struct Block {
    uint32_t owner;             /* map entry that names it, or RSD_NONE */
    uint32_t pos;               /* in its pool's heap, or RSD_NONE */
    uint32_t erases:31;       /* erases queued or going on */
    uint32_t obsolete:1;      /* needs one more */
    uint32_t queued;            /* operations in its die's queue, or begun */
    uint32_t buffered;          /* units of it in the write buffer */
} Block;

/* A namespace is a personality on its share of every die's blocks. */

typedef struct Personality Personality;

typedef struct Ns {
    RsdDrive *drive;
    const Personality *personality;
    void *state;                /* the personality's, NULL when closed */
    RsdGeometry geo;
    uint32_t index;             /* its number */
    uint32_t zone_shift;        /* log2 of geo.zone_size */
    uint32_t oob;               /* bytes of a page that the host sees */
    /* Its blocks are [first, end) of each die. */
    uint32_t first, end;
    uint32_t visible;           /* blocks of a die that are not spares */
    uint32_t in_flight;         /* commands submitted and not completed */
    Waits *waits;               /* the personality's; NULL: it has none */
    Span *writes;               /* in flight, once somebody has asked */
    bool watches_writes;
} Ns;

/*
 * The array calls these functions of the floors above. The table is handed over
 * when the drive is made. All of them are called while events are carried out.
 */
typedef struct ArrayUp {
    /*
     * The array begins a step, or has ended it but not yet carried it out.
     * These are called only with RsdDrive.watched.
     */
    void (*step_begin)(RsdDrive *drive, const Step *step);
    void (*step_done)(RsdDrive *drive, const Step *step);
    /* A translation layer has written something without the array. */
    void (*wrote)(RsdDrive *drive);
    /*
     * An operation is done, with all its pages. The callee drops it, its buffer
     * and its count in its command.
     */
    void (*op_done)(RsdDrive *drive, Op *op);
    /* An operation that is not of the stock (Op.unit) is freed. */
    void (*op_freed)(RsdDrive *drive, Op *op);
    /* The command waits for nothing any more. */
    void (*cmd_done)(RsdDrive *drive, Cmd *cmd);
    /* Says whether there is work for an idle die. */
    bool (*has_idle_work)(const RsdDrive *drive, uint32_t die);
    /* Starts some of it. Returns false if there was none after all. */
    bool (*idle)(RsdDrive *drive, uint32_t die);
    /* The time of rsd_sched_timer(), or of rsd_sched_interrupt(), has come. */
    void (*timer)(RsdDrive *drive, uint32_t timer);
    void (*interrupt)(RsdDrive *drive);
} ArrayUp;

/*
 * Each operation looks for the block of a page and the die of a block.
 * Divisions would take a good part of the host's time. A multiplication by 2^64
 * / d, rounded up, gives the same for 32 bits (Lemire, Kaser, Kurz, "Faster
 * remainder by direct computation", 2019). 0 stands for 2^64, for d = 1.
 */
typedef struct Divisor {
    uint64_t inverse;
} Divisor;

static inline Divisor rsd_divisor(uint32_t d)
{
    return (Divisor){ UINT64_MAX / d + 1 };
}

static inline uint32_t rsd_quotient(const Divisor *d, uint32_t n)
{
    return d->inverse ? (unsigned __int128)d->inverse * n >> 64 : n;
}

struct RsdDrive {
    RsdConfig cfg;
    Ns ns[RSD_MAX_NAMESPACES];
    uint32_t num_ns;
    Ns *zoned;                  /* the one that has zones, or NULL */
    uint32_t dies;
    uint32_t die_blocks;        /* spares included */
    uint32_t pages;             /* of a block: slots */
    Divisor by_die, by_block;   /* die_blocks, pages */
    uint32_t unit;              /* slots programmed at once */
    /* Too many blocks are worn out, or the next field is set. */
    bool read_only;
    /* The host's disk failed. Nothing must be moved, or erased, any more. */
    bool failed;
    uint32_t health_changes;    /* since it was opened */

    const ArrayUp *up;
    RsdMedia media;
    RsdCounters *count;         /* sums, in the media */
    Sched sched;
    /* These belong to the floors above. Each is known only to its own floor. */
    struct Buffer *buffer;
    struct Zrwa *zrwa;
    struct Host *host;
    struct Power *power;
    RsdScenario *scenario;      /* faults by rule; NULL: none */
    Block *blocks;
    uint64_t seq;               /* of the next page written, see Cmd.seq */
    uint64_t begun;             /* commands, see Cmd.begun */

    Op *free_ops;
    uint32_t num_free_ops;
    void *op_chunks;
    size_t cmd_area;            /* bytes of Cmd.area */
    Cmd *cmds;                  /* all that exist */
    Cmd *free_cmds;             /* without buffers, for reuse */
    uint64_t cmd_bytes;         /* of commands that have buffers */
    Cmd *done_head, *done_tail;
    void *free_bufs;            /* see rsd_buf_new() */
    void *buf_chunks;
    uint64_t ram_bytes;
    /*
     * Changes of the flash are counted (rsd-power.h), or there is a scenario.
     * An operation looks at these only if this is true.
     */
    bool watched;
    uint64_t ops;               /* since the drive was opened, or the log's */
};

/* Returns the drive-wide number of the die that a block is in. */
static inline uint32_t rsd_die_of(const RsdDrive *drive, uint32_t block)
{
    return rsd_quotient(&drive->by_die, block);
}

/* Returns the namespace that a block belongs to, by its drive-wide number. */
static inline Ns *rsd_ns_of(RsdDrive *drive, uint32_t block)
{
    Ns *ns = drive->ns;

    while (block % drive->die_blocks >= ns->end) {
        ns++;
    }
    return ns;
}

/*
 * Returns zeroed memory that counts as the drive's, or NULL if there is none.
 */
void *rsd_alloc(RsdDrive *drive, size_t size);
void rsd_release(RsdDrive *drive, void *mem, size_t size);

/* op.c */

/* At least so many operations are allocated together. */
#define RSD_OPS_AT_ONCE 1024u
/* After this, so many calls of rsd_op_new() cannot fail. */
bool rsd_op_reserve(RsdDrive *drive, uint64_t count);
/* Frees the stock of operations, and those of it that are still in use. */
void rsd_ops_fini(RsdDrive *drive);

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

/* Makes an operation of one page (page 0), unless the caller changes that. */
Op *rsd_op_new(Ns *ns, OpKind kind, RsdCause cause, uint32_t block);
void rsd_op_free(RsdDrive *drive, Op *op);
/* Frees it; its command, if any, waits for one operation less. */
void rsd_op_finish(RsdDrive *drive, Op *op);
/*
 * Does a step in the array, when its time is over. If the host fails to store
 * data, or to load data that the drive itself reads, the operation has failed,
 * and the drive is read-only until it is opened again. Pages that would have
 * been moved, or were only in the write buffer, are still there.
 */
void rsd_op_execute(RsdDrive *drive, const Step *step);
/* The command waits for one operation less. */
void rsd_cmd_drop(RsdDrive *drive, Cmd *cmd);

/* Returns the first slot of the row that a slot of a block is in. */
static inline uint32_t rsd_row_of(const RsdDrive *drive, uint32_t page)
{
    uint32_t row = drive->sched.row;

    return row == 1 ? page : page - page % row;
}

/* Makes the OOB of a page that the host writes to a conventional namespace. */
void rsd_compose_oob(const Cmd *cmd, uint32_t index, const uint8_t *host,
                     uint8_t oob[RSD_OOB_SIZE]);

/* health.c */

/*
 * For opening, sets Die.bad and .grown from the block records. The drive
 * becomes read-only if the die has lost more blocks than it had spares.
 */
void rsd_count_bad(RsdDrive *drive, uint32_t die);
/*
 * Returns the bad blocks of a die, also if the drive could not be opened again.
 */
uint32_t rsd_bad_blocks(const RsdDrive *drive, uint32_t die);
/*
 * Follows an erase of a block: if its life has ended, or it is weak, the erase
 * has failed.
 */
void rsd_drive_age_block(RsdDrive *drive, uint32_t block);
/* Makes the drive read-only from now on, since too many blocks are worn out. */
void rsd_drive_wear_out(RsdDrive *drive);
/*
 * Returns the status for a write for which there is no block, now or later. If
 * blocks have died, the drive is worn out.
 */
RsdStatus rsd_drive_no_block(RsdDrive *drive);
/* Notes that the host's disk has failed to store data. */
void rsd_drive_fail(RsdDrive *drive);

/* inject.c. Cold: drives without a scenario are not to pay for it. */

/*
 * Injects and counts a fault that a rule has chosen. The callee adds the time.
 */
void rsd_inject(RsdDrive *drive, RsdRule *rule, RsdInjected fault);
/*
 * The array begins a step. Returns how much longer than usual it takes, in ns;
 * to do it once more takes "again".
 */
RSD_COLD uint64_t rsd_inject_begin(RsdDrive *drive, const Step *step,
                                   uint64_t again);
/* A block of zones is given back. This decides whether its erase will fail. */
void rsd_inject_erase(RsdDrive *drive, uint32_t block);
/* Does what rsd_op_execute() does, with the faults of rules. */
RSD_COLD void rsd_inject_execute(RsdDrive *drive, const Step *step);

/* sched.c */

bool rsd_sched_init(RsdDrive *drive);
void rsd_sched_fini(RsdDrive *drive);
/* Carries out all events up to and including now. */
void rsd_sched_run(RsdDrive *drive, uint64_t now);
/* Does the same until a command is done, or there is no event left. */
void rsd_sched_run_to_done(RsdDrive *drive);
bool rsd_sched_next(const RsdDrive *drive, uint64_t *when);
void rsd_sched_queue(RsdDrive *drive, Op *op);
/*
 * Queues an operation before all that wait for its die. No operation of its
 * block may be queued.
 */
void rsd_sched_queue_first(RsdDrive *drive, Op *op);
/* This comes after the last rsd_sched_queue() of a submission. */
void rsd_sched_settle(RsdDrive *drive);
/*
 * Sets a timer of the floors above: ArrayUp.timer. Each is set for one time at
 * most.
 */
void rsd_sched_timer(RsdDrive *drive, uint32_t timer, uint64_t when);
/* Says that there is new background work for a die, idle from now on. */
void rsd_sched_background(RsdDrive *drive, uint32_t die);
/*
 * Sets the time of ArrayUp.interrupt, which comes before all other events of
 * that time. There is only one.
 */
void rsd_sched_interrupt(RsdDrive *drive, uint64_t when);
/* Returns the steps that a die has begun to program or to erase, in order. */
#define RSD_DIE_STEPS 3u
uint32_t rsd_sched_in_flight(const RsdDrive *drive, uint32_t die,
                             const Step *steps[RSD_DIE_STEPS]);
/* Ends all events. */
void rsd_sched_halt(RsdDrive *drive);

#endif
