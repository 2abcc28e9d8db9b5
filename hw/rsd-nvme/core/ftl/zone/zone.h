/*
 * rsd core, floor of ftl=rsd: the segment map, and random write areas.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_ZONE_H
#define RSD_ZONE_H

#include "../ftl.h"

/*
 * These are operations on one zone between two barriers (reset, finish). A
 * barrier completes when the epochs before it have drained.
 */
struct Epoch {
    struct Epoch *next;         /* the zone's next younger one */
    Cmd *barrier;               /* waits for this epoch and those before it */
    uint32_t zone;
    uint32_t refs;              /* operations in flight */
};

/* These are random write areas: see zrwa.c. */

typedef struct Epoch Epoch;
typedef struct ZrwaArea ZrwaArea;

typedef struct Zrwa {
    ZrwaArea **areas;           /* by zone; NULL if there can be none */
    uint32_t size, flush;       /* slots */
    uint32_t in_use;            /* areas, those included that are committed */
    uint32_t *free_places;
    uint32_t num_free;
    /* Returns the block, and the slot there, of a slot of a zone. */
    uint32_t (*locate)(const RsdDrive *drive, uint32_t zone, uint64_t offset,
                       uint32_t *page);
} Zrwa;

typedef enum ZrwaKind { ZRWA_NONE, ZRWA_WRITE, ZRWA_COMMIT } ZrwaKind;

/* This is the segment map: see zone-map.c. */

/* This is STAT of RISA 3.2.1, of an entry of the map. */
enum { SEG_FREE, SEG_USED, SEG_INVALID };

#define STATE_SHIFT 30
#define NUMBER_MASK ((UINT32_C(1) << STATE_SHIFT) - 1)

typedef struct Zone {
    /* These are pages, from the start, for which programs were queued. */
    uint64_t submitted;
    uint64_t backed;            /* for so many there is host space */
    Epoch *head, *tail;         /* oldest, youngest */
} Zone;

/* This is a block's move by wear levelling. */
typedef struct Move {
    bool active;
    bool loaded;                /* buf holds the page to program */
    bool programming;           /* and its program is queued or going on */
    const Op *op;               /* queued or going on, or NULL */
    uint32_t src, dst;          /* drive-wide numbers */
    uint32_t page;              /* next slot to copy */
    uint64_t since;             /* Die.programmed when it began */
    uint64_t busy;              /* slots copied on a busy die */
    uint8_t buf[];              /* of a unit: of each slot data, OOB */
} Move;

typedef struct SegDie {
    Pool pool;
    Move *move;                 /* NULL until the first one */
    Wear wear;
    /* Something has changed since levelling found nothing to do. */
    bool look;
} SegDie;

typedef struct Segments {
    uint32_t lanes;             /* of a zone */
    Zone *zones;
    SegDie *dies;
    Epoch *free_epochs;
    uint32_t num_free_epochs;
} Segments;

/* This says where in its die's queue an operation goes. */
typedef enum Turn { TURN_LAST, TURN_FIRST, TURN_IDLE } Turn;

static inline Segments *segments(const RsdDrive *drive)
{
    return drive->zoned->state;
}

static inline uint32_t entry_state(uint32_t entry)
{
    return entry >> STATE_SHIFT;
}

static inline uint32_t first_die(const RsdDrive *drive, uint32_t zone)
{
    return drive->cfg.segment == RSD_SEGMENT_WAY
               ? zone % drive->cfg.ways * drive->cfg.channels : 0;
}

/* Returns the map's entries of a zone, lane 0 first. */
static inline uint32_t *entries(const RsdDrive *drive, uint32_t zone)
{
    return drive->media.map + (size_t)zone * segments(drive)->lanes;
}

static inline bool is_used(const RsdDrive *drive, uint32_t zone)
{
    return entry_state(*entries(drive, zone)) == SEG_USED;
}

/* Returns the drive-wide number of the block that an entry of a die names. */
static inline uint32_t block_of(const RsdDrive *drive, uint32_t die, uint32_t entry)
{
    return die * drive->die_blocks + (entry & NUMBER_MASK);
}

static inline SegDie *seg_die(RsdDrive *drive, uint32_t block)
{
    return &segments(drive)->dies[block / drive->die_blocks];
}

static inline size_t move_size(const RsdDrive *drive)
{
    return sizeof(Move) + drive->unit * (RSD_PAGE_SIZE + RSD_OOB_SIZE);
}

static inline bool moving(const SegDie *sd)
{
    return sd->move && sd->move->active;
}

/* zrwa.c */

/* Returns the random write area that a zone has, or NULL. */
ZrwaArea *rsd_zrwa_of(const RsdDrive *drive, uint32_t zone);
/* Says whether the zone has lost it, but not all of it is taken. */
bool rsd_zrwa_closing(const RsdDrive *drive, uint32_t zone);
/*
 * Returns the end, in the zone, of the slots written to the area, or next if
 * that is behind it.
 */
uint64_t rsd_zrwa_end(const ZrwaArea *area, uint64_t next);
/* Gives the zone an area, which begins at slot "next". */
RsdStatus rsd_zrwa_open(RsdDrive *drive, uint32_t zone, uint64_t next);
/*
 * Writes a command's slots to the area, at slot "offset" of the zone, or
 * commits count slots. The command and the epoch count it as an operation. One
 * operation, and units for the slots to commit, are reserved.
 */
void rsd_zrwa_queue(Ns *ns, Cmd *cmd, ZrwaArea *area, ZrwaKind kind,
                    uint64_t offset, uint32_t count, Epoch *epoch,
                    uint32_t units);
/* The zone loses the area once the queued operations are taken. */
void rsd_zrwa_close(RsdDrive *drive, ZrwaArea *area);
/* The zone loses the area at once, with its content. */
void rsd_zrwa_drop(Ns *ns, uint32_t zone);
/*
 * Returns the first slot in the zone that is to be read from the area, or next
 * if the zone has none.
 */
uint64_t rsd_zrwa_start(const RsdDrive *drive, uint32_t zone, uint64_t next);
/*
 * Reads a slot from there on as page index of a command. Returns false if it
 * was not written.
 */
bool rsd_zrwa_read(RsdDrive *drive, Cmd *cmd, uint32_t index, uint32_t zone,
                   uint64_t offset);
/*
 * Takes as much of an operation as there is room for. Returns true if it took
 * all.
 */
bool rsd_zrwa_take(RsdDrive *drive, Op *op);
/* The operation leaves the queue. */
void rsd_zrwa_taken(RsdDrive *drive, const Op *op);
/* Makes the content of the areas safe, for a flush. */
void rsd_zrwa_secure(RsdDrive *drive, Cmd *cmd);
/* Says whether pages are in the zone's area. */
bool rsd_zrwa_holds(const RsdDrive *drive, uint32_t zone);
/* Looks at the areas in the file. After false and err, it is as it was. */
bool rsd_zrwa_load(RsdDrive *drive, char err[RSD_ERR_LEN]);
/*
 * For opening, takes the pages in the file of a zone whose next slot is this
 * one. Returns the next slot after that.
 */
uint64_t rsd_zrwa_settle(Ns *ns, uint32_t zone, uint64_t next);
/* This comes after all zones: pages that no zone has taken are forgotten. */
void rsd_zrwa_settled(RsdDrive *drive);
void rsd_zrwa_fini(RsdDrive *drive);

/* zone-map.c */

/* Returns the zone's next slot: all before it were submitted. */
uint64_t rsd_seg_next(const RsdDrive *drive, uint32_t zone);
/* Returns the block, and the slot there, of a slot of a zone that is in use. */
uint32_t rsd_seg_locate(const RsdDrive *drive, uint32_t zone, uint64_t offset,
                        uint32_t *page);
/* Gives entry number index of the map that state and block. */
void rsd_seg_set_entry(RsdDrive *drive, uint32_t index, uint32_t state,
                      uint32_t block);
/* Clears an entry whose block is no longer the segment's old one. */
void rsd_seg_clear_entry(RsdDrive *drive, uint32_t index);
/* Returns the pages of a lane among the first n of its zone. */
uint32_t rsd_seg_lane_pages(const RsdDrive *drive, uint64_t n, uint32_t lane);
/* Returns the slot of its lane's block where unit number i of a zone begins. */
uint32_t rsd_seg_unit_page(const RsdDrive *drive, uint64_t i);
/*
 * Returns the pages below the zone's highest programmed page, including that
 * one.
 */
uint64_t rsd_seg_written(const Ns *ns, uint32_t zone);

/* zone-queue.c */

/*
 * After this so many more epochs can be begun. Returns false if there is no
 * memory.
 */
bool rsd_seg_reserve_epochs(RsdDrive *drive, uint64_t count);
/* Returns the epoch of an operation submitted now. */
Epoch *rsd_seg_current_epoch(Segments *seg, uint32_t zone);
/*
 * Makes the command wait for all operations that were submitted to the zone so
 * far.
 */
void rsd_seg_set_barrier(RsdDrive *drive, uint32_t zone, Cmd *cmd);
/* One of the epoch's operations is done. */
void rsd_seg_drop_epoch(RsdDrive *drive, Epoch *epoch);
/*
 * Queues an operation of the drive's own, with its turn; TURN_IDLE says that
 * nothing waits.
 */
void rsd_seg_queue_own(RsdDrive *drive, Op *op, Turn turn);
/* Makes an erase of a block that is obsolete. */
Op *rsd_seg_new_erase(RsdDrive *drive, uint32_t block);
/* Queues such an erase. */
void rsd_seg_queue_erase(RsdDrive *drive, uint32_t block, Cmd *cmd,
                        Epoch *epoch);
/*
 * Returns the operations that rsd_seg_queue_pages() may need for nlb pages of
 * some zones.
 */
uint64_t rsd_seg_max_ops(const RsdDrive *drive, uint64_t nlb, uint64_t zones);
/*
 * Queues pages [offset, offset + nlb) of a zone in use, the first of them being
 * page index of the command.
 */
void rsd_seg_queue_pages(RsdDrive *drive, OpKind kind, RsdCause cause, Cmd *cmd,
                        uint32_t zone, uint64_t offset, uint32_t nlb,
                        uint32_t index);
/*
 * A unit that the buffer closes counts as the operations that were queued for
 * its slots.
 */
void rsd_seg_closed(Op *unit, const Op *by);
/* The write buffer has the data that the operation programs. */
void rsd_seg_op_buffered(Ns *ns, Op *op);

/* zone-blocks.c */

/*
 * Makes a block obsolete, whose content is of no use: it is free, once erased.
 */
void rsd_seg_make_obsolete(RsdDrive *drive, uint32_t block, uint32_t worn);
/*
 * Makes the blocks of a zone free. Operations that are queued for them still
 * happen.
 */
void rsd_seg_detach_zone(RsdDrive *drive, uint32_t zone);
/*
 * Says whether a free block is at the end of its life, including the erase
 * before its use.
 */
bool rsd_seg_is_dying(const RsdDrive *drive, uint32_t block);
/*
 * Takes host space for a zone's slots up to that one, in its blocks or in those
 * that rsd_seg_find_blocks() has found for it. After any result other than
 * RSD_OK, there is none.
 */
RsdStatus rsd_seg_back(RsdDrive *drive, uint32_t zone, uint64_t end);
/* Makes sure that each lane has a free block for the zone. */
RsdStatus rsd_seg_find_blocks(RsdDrive *drive, uint32_t zone);
/*
 * Gives a zone the blocks that rsd_seg_find_blocks() has found. One operation a
 * lane must be reserved.
 */
void rsd_seg_attach_zone(RsdDrive *drive, uint32_t zone);

/* zone-wear.c */

/* These are Personality.has_background, .background and .op_done. */
bool rsd_seg_has_background(const Ns *ns, uint32_t die);
bool rsd_seg_background(Ns *ns, uint32_t die);
void rsd_seg_op_done(Ns *ns, Op *op);

/* zone-submit.c */

/* These are Personality.submit and .format. */
RsdStatus rsd_seg_submit(Ns *ns, Cmd *cmd);
void rsd_seg_format(Ns *ns);

/* zone-recover.c */

/* These are Personality.open and .close. */
void rsd_seg_close(Ns *ns);
bool rsd_seg_open(Ns *ns, char err[RSD_ERR_LEN]);

#endif
