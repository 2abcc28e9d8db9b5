/*
 * What the personalities that map whole blocks share: block-ftl.c, fast-ftl.c.
 *
 *     block-map.c      commands, trim, the end of operations, memory
 *     block-recover.c  opening: the map out of the pages' OOB
 *     block-wear.c     static wear levelling
 *     merge.c          copying into a unit
 *     block-units.c    units, where content is, erasure
 *     block-waits.c    what commands wait for
 *     block-size.c     how many logical blocks and units there are
 *
 * In this order each calls only those below it. The end of a copying job goes up
 * through BlockMap.job_over.
 *
 * Logical block n is LBAs n * span to n * span + span - 1. Flash is used in
 * units that hold as much: with stripe=block a unit is a flash block, and those
 * of logical block n are in die n mod dies; with stripe=all it is a block of
 * every die, its pages going over the dies in turn. The dies that hold a
 * logical block are its group. A unit's pages are programmed in order; in the
 * units of a logical block page i is its LBA i.
 *
 * Grains. Pages here are of 4 KiB. If a program takes several of them (planes,
 * page-size, one-shot), the write buffer (buffer.c) makes grains of them, and
 * it is grains that go over the dies in turn. Filler at the end of a begun
 * grain would be in the way of the LBAs that belong there: so what was written
 * stays in the buffer until the rest comes, be that the host's or a merge's,
 * and goes to the buffer's protected part if it has to be safe. Only opening
 * fills grains up.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_BLOCK_MAP_H
#define RSD_BLOCK_MAP_H

#include "../ftl.h"

typedef struct BlockMap BlockMap;
typedef struct Job Job;

/* This is the place of a page. */
typedef struct Place {
    uint32_t block, page;       /* RSD_NONE: it has no content */
} Place;

typedef struct Lane {
    uint32_t block;             /* drive-wide number */
    uint32_t next;              /* pages of it that are programmed or queued */
} Lane;

typedef struct Unit {
    struct Unit *older, *newer; /* the personality's list of such units */
    uint32_t lblock;            /* RSD_NONE: of the random log */
    uint32_t group;
    uint32_t next;              /* pages programmed or queued, but for a job */
    /*
     * These are the host's programs that are not done, or, with a write buffer,
     * not in it.
     */
    uint32_t pending;
    uint32_t live;              /* random log: pages that are the newest */
    uint32_t number;            /* random log: among its units */
    uint8_t cause;              /* RsdCause of its erasure */
    bool gaps;                  /* copies are between the host's pages */
    bool retired;               /* to be erased when nothing is pending */
    Lane lane[];
} Unit;

typedef struct UnitList {
    Unit *oldest, *newest;
} UnitList;

typedef struct LBlock {
    Unit *data;                 /* NULL: none */
    Unit *log;                  /* replacement, or sequential log block */
    Job *job;                   /* that copies to one of its units */
    Cmd *waiting;               /* writes to it that wait, by MapCmd.next */
    uint32_t live;              /* LBAs that have content */
} LBlock;

typedef enum JobKind {
    RSD_JOB_FILL,               /* what comes before a page the host writes */
    RSD_JOB_LOG,                /* the rest of a unit that replaces another */
    RSD_JOB_FULL,               /* a new unit */
    RSD_JOB_WEAR,               /* the same, for wear levelling */
} JobKind;

/*
 * These are pages being copied to a unit, in order. A lane does one at a time.
 */
struct Job {
    struct Job *next_free;
    uint32_t lblock;
    Unit *to;
    uint32_t end;               /* pages of the unit when it is done */
    uint32_t running;           /* lanes with an operation */
    uint64_t copies;
    uint8_t kind;               /* JobKind */
    uint8_t cause;              /* RsdCause */
    struct {
        uint8_t *buf;           /* of a row; NULL without payload */
        Place from;             /* page that was read last, with its row */
        uint32_t loaded;        /* slots of that not yet programmed: bits */
        bool stalled;           /* the host lacks memory or space for it */
    } lane[];
};

typedef struct Group {
    UnitList logs;              /* the personality's */
    uint32_t logical;           /* logical blocks of it */
    uint32_t good;              /* units that its good blocks make up */
    uint32_t num_logs;          /* units of the random log */
    uint32_t erasing;           /* blocks, or retired units, to be erased */
    uint32_t jobs;
    uint32_t merges;            /* of these, what is not RSD_JOB_FILL */
    bool reserve_used;          /* a job has the unit kept for merges */
    bool levelling;             /* that job is one of wear levelling */
    uint32_t worn;              /* block erased since that calls for it, + 1 */
    uint64_t levelled;          /* pages that levelling has moved */
} Group;

/*
 * A write waits for this, and would do nothing if it were looked at before. Two
 * writes that wait for the same would do the same: when the first one has
 * changed nothing, the others need not be looked at.
 */
typedef enum WaitClass {
    WAIT_NOTHING,               /* it is to be looked at */
    WAIT_LOG,                   /* room in the random log */
    WAIT_GROUP,                 /* + 2 * group: a unit of the group; */
    WAIT_GROUP_LOG,             /* ... as the sequential log block, too */
    WAIT_PEER = UINT32_MAX - 1, /* an older write to its logical block */
    WAIT_JOB,                   /* the end of its logical block's job */
} WaitClass;

typedef struct BlockPolicy {
    /*
     * Queues programs for pages of one logical block, LBAs lpn to lpn + n - 1,
     * the first being page index of the command. Returns how many; 0 says that
     * the command has to wait, or, if its status says so, has failed.
     */
    uint32_t (*write)(BlockMap *map, Cmd *cmd, uint32_t index, uint64_t lpn,
                      uint32_t n);
    /*
     * Everything is copied and programmed; the job, which is not one of wear
     * levelling, is freed afterwards.
     */
    void (*job_done)(BlockMap *map, Job *job);
    /*
     * Finds a page in the random log; block RSD_NONE says that it is not there.
     * It may be NULL.
     */
    Place (*find)(BlockMap *map, uint64_t lpn);
    /* The page's content is gone. It may be NULL. */
    void (*forget)(BlockMap *map, uint64_t lpn);
    /* The unit is taken from its logical block. It may be NULL. */
    void (*log_dropped)(BlockMap *map, Unit *log);
    /*
     * Merges a logical block whose replacement keeps blocks from being
     * levelled. NULL says that such blocks are soon in use again by themselves.
     */
    RsdStatus (*settle)(BlockMap *map, uint32_t lblock);
    /*
     * Returns what a write from an LBA on would wait for, if anything. Its
     * logical block has no job.
     */
    uint32_t (*class)(BlockMap *map, uint64_t lpn);
    /* The units of one group decide about writes to others. */
    bool linked;
    /* A group needs so many units beside data. */
    uint32_t extra;
} BlockPolicy;

struct BlockMap {
    Ns *ns;
    const BlockPolicy *policy;
    void (*job_over)(BlockMap *map, Job *job);
    uint32_t lanes;             /* of a unit */
    uint32_t span;              /* pages of a unit */
    uint32_t grain;             /* pages programmed at once */
    uint32_t num_groups, num_lblocks;
    Group *groups;
    LBlock *lblocks;
    Pool *pools;                /* a die each: blocks that are erased */
    Unit **owner;               /* by block, NULL: none */
    uint64_t *valid;            /* a bit an LBA: it has content */
    uint64_t live;              /* LBAs that have */
    uint32_t *least_wear;       /* by die: no good block was erased less */
    UnitList retired;           /* that wait for the host's programs */
    Job **jobs;                 /* all there are */
    uint32_t num_jobs;
    Job *free_jobs;
    uint32_t num_stalled;       /* lanes of jobs, */
    RsdStatus stalled;          /* and why one of them last was */
    Waits waits;                /* the commands that wait */
    uint64_t *worth;            /* classes of which one is to be looked at */
    uint64_t *mask;             /* of a command */
    uint32_t trims;             /* of those that wait, trims */
    bool retry;                 /* something that they wait for has come */
    bool all_marked;            /* since the drive failed */
    /*
     * These are programs of the host in flight, by the era in which their
     * command began. A page that they replace may be erased when those of its
     * era are done.
     */
    uint64_t era_ops[2];
    uint8_t era;
};

/* block-size.c */

/* Fills all fields of ns->geo, except for map_bytes. */
bool rsd_map_geometry(Ns *ns, const BlockPolicy *policy,
                      char err[RSD_ERR_LEN]);
/*
 * Returns the units that the good blocks of a group make up, or those that were
 * good when the drive was new.
 */
uint32_t rsd_map_good_units(const Ns *ns, uint32_t group, bool when_new);
/* Returns the logical blocks of a group. */
uint32_t rsd_map_logical(const Ns *ns, uint32_t group);
uint32_t rsd_map_groups(const Ns *ns);
uint32_t rsd_map_span(const Ns *ns);

/* block-waits.c */

/* The map keeps this with a command. */
typedef struct MapCmd {
    uint8_t era;                /* it began in: BlockMap.era */
    uint32_t class;             /* what it waits for */
    uint64_t reclaimed;         /* ftl=fast: it waits for that many, at least */
    /*
     * These are other writes that wait for the same logical block, and their
     * list.
     */
    Cmd *prev, *next, **peers;
} MapCmd;

static inline MapCmd *rsd_map_cmd(const Cmd *cmd)
{
    return rsd_cmd_area(cmd);
}

static inline bool rsd_is_trim(const Cmd *cmd)
{
    return cmd->pub.op == RSD_TRIM || cmd->pub.op == RSD_WRITE_ZEROES;
}

static inline bool rsd_get_bit(const uint64_t *bits, uint64_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static inline void rsd_set_bit(uint64_t *bits, uint64_t i, bool to)
{
    uint64_t bit = UINT64_C(1) << i % 64;

    bits[i / 64] = to ? bits[i / 64] | bit : bits[i / 64] & ~bit;
}

/*
 * A condition may have come true for which writes to a group, or to a logical
 * block, wait.
 */
void rsd_map_group_changed(BlockMap *map, uint32_t group);
void rsd_map_lblock_changed(BlockMap *map, uint32_t lblock);
/*
 * Pages of a write up to LBA lpn were placed, so a write that waits may go on
 * behind.
 */
void rsd_map_placed(BlockMap *map, uint64_t lpn);
/* Makes all commands that wait be looked at. */
void rsd_map_worth_all(BlockMap *map);
/* Decides whether a command that waits is to be looked at, and when. */
void rsd_map_mark(BlockMap *map, Cmd *cmd);
/*
 * The drive has failed, so no command may wait for events that will not come.
 */
void rsd_map_mark_all(BlockMap *map);
/* A command begins to wait, behind another one if that is not NULL. */
void rsd_map_start_waiting(BlockMap *map, Cmd *cmd, Cmd *behind);
/* A command is done, and may end. */
void rsd_map_stop_waiting(BlockMap *map, Cmd *cmd);
/*
 * A write of some peers has gone on, or is done. If it was to be looked at,
 * others may have waited for it.
 */
void rsd_map_let_peers_on(BlockMap *map, Cmd **peers, uint32_t class);

/* block-units.c */

/* Finds the content of an LBA. */
Place rsd_map_find(BlockMap *map, uint64_t lpn);
bool rsd_map_valid(const BlockMap *map, uint64_t lpn);
/*
 * Says whether it was trimmed, and not written since. The media file has that.
 */
bool rsd_map_trimmed(const BlockMap *map, uint64_t lpn);
void rsd_map_set_trimmed(BlockMap *map, uint64_t lpn, bool to);
/* Notes that an LBA has content from now on. */
void rsd_map_add_content(BlockMap *map, uint64_t lpn);
/* Returns the pages of the logical block up to the last that has content. */
uint32_t rsd_map_length(const BlockMap *map, uint32_t lblock);

/* Returns a unit without its blocks. NULL says that there is no memory. */
Unit *rsd_unit_new(BlockMap *map, uint32_t lblock);
void rsd_unit_free(BlockMap *map, Unit *unit);
/*
 * Returns a unit of erased blocks, the least worn ones, or the most worn. With
 * NULL, *status is the reason, RSD_E_NOBLOCK if there is none erased, and *wait
 * says whether one will be.
 */
Unit *rsd_unit_take(BlockMap *map, uint32_t group, uint32_t lblock, bool worn,
                    RsdStatus *status, bool *wait);
/*
 * Returns the least worn free block of a die, or the most worn one, as a
 * drive-wide number. The die has some.
 */
uint32_t rsd_map_free_block(const BlockMap *map, uint32_t die, bool worn);
/* Programs the unit's next n pages for a command. */
void rsd_unit_append(BlockMap *map, Unit *unit, Cmd *cmd, uint32_t index,
                     uint64_t lpn, uint32_t n);
/*
 * Says whether all of it is programmed, or safe in the write buffer. If missing
 * parts can become safe there, they do.
 */
bool rsd_unit_is_safe(BlockMap *map, const Unit *unit);
/* Does the same for a block's pages up to "end". */
bool rsd_block_is_safe(BlockMap *map, uint32_t block, uint32_t end);
/* Erases a unit, whose content is of no use any more. */
void rsd_unit_retire(BlockMap *map, Unit *unit, RsdCause cause);
/* Does the same for a retired one for which no program is pending any more. */
void rsd_unit_release(BlockMap *map, Unit *unit);
/* A block was erased, or never programmed, so it is free. */
void rsd_map_make_free(BlockMap *map, uint32_t block);
/* Retires the units of a logical block that has no content left. */
void rsd_map_drop_if_empty(BlockMap *map, uint32_t lblock);
void rsd_list_append(UnitList *list, Unit *unit);
void rsd_list_remove(UnitList *list, Unit *unit);

static inline uint32_t rsd_map_group(const BlockMap *map, uint32_t lblock)
{
    return lblock % map->num_groups;
}

/* Returns the lane that a unit's page is in, and the page there. */
static inline uint32_t rsd_lane_of(const BlockMap *map, uint32_t page)
{
    return page / map->grain % map->lanes;
}

static inline uint32_t rsd_lane_page(const BlockMap *map, uint32_t page)
{
    return page / (map->grain * map->lanes) * map->grain + page % map->grain;
}

/* Returns the unit's page of a lane's page. */
static inline uint32_t rsd_unit_page(const BlockMap *map, uint32_t lane,
                                     uint32_t page)
{
    return (page / map->grain * map->lanes + lane) * map->grain +
           page % map->grain;
}

static inline bool rsd_unit_has(const BlockMap *map, const Unit *unit,
                                uint32_t page)
{
    return unit && rsd_lane_page(map, page) <
                   unit->lane[rsd_lane_of(map, page)].next;
}

static inline Place rsd_unit_place(const BlockMap *map, const Unit *unit,
                                   uint32_t page)
{
    return (Place){ unit->lane[rsd_lane_of(map, page)].block,
                    rsd_lane_page(map, page) };
}

/* merge.c */

/*
 * Fills a unit of a logical block up to page end. Each page is copied from its
 * newest content, or is filler. Then the policy's job_done() follows, at once
 * if there is nothing to do. Nothing is written to the logical block meanwhile.
 * RSD_E_NOMEM says that nothing was changed.
 */
RsdStatus rsd_merge(BlockMap *map, uint32_t lblock, Unit *to, uint32_t end,
                    JobKind kind);
/* One of a job's operations is done, or in the write buffer. This frees it. */
void rsd_merge_step(BlockMap *map, Op *op);
/* Goes on with lanes that are stalled. */
void rsd_merge_retry(BlockMap *map);
/* Returns the lanes of jobs that are at work, not stalled. */
uint32_t rsd_merge_running(const BlockMap *map);
/* Ends the logical block's job if it is done; BlockMap.job_over follows. */
void rsd_merge_check(BlockMap *map, uint32_t lblock);
/* Frees a job that is over. */
void rsd_merge_free(BlockMap *map, Job *job);
void rsd_merge_fini(BlockMap *map);

/* block-wear.c */

/* A block was erased, but not by a move. Begins a move if it is time. */
void rsd_wear_level(BlockMap *map, uint32_t block);
/* A job is done. Does the same, if a block was erased meanwhile. */
void rsd_wear_go_on(BlockMap *map, uint32_t group);
/* The job of a move is done. */
void rsd_wear_done(BlockMap *map, Job *job);

/* block-recover.c */

/*
 * Finds the content of blocks, completes merges that were interrupted, and
 * makes each block free that is in no unit. Log blocks that cannot be merged
 * without room are given to "log" as units of the random log, oldest first
 * (NULL: there must not be any).
 */
bool rsd_map_recover(BlockMap *map, bool (*log)(BlockMap *map, Unit *unit),
                     char err[RSD_ERR_LEN]);
/*
 * Returns the drive's part of a programmed page's OOB, or NULL if it is filler.
 */
const RsdSpare *rsd_map_spare(const BlockMap *map, uint32_t block,
                              uint32_t page);

/*
 * With ftl=block, says whether the drive can be opened if the program of a page
 * of that block is torn.
 */
bool rsd_map_can_tear(const Ns *ns, uint32_t block);

/* block-map.c */

/* Initializes a map. Returns false and err if there is no memory. */
bool rsd_map_init(BlockMap *map, Ns *ns, const BlockPolicy *policy,
                  char err[RSD_ERR_LEN]);
/* Frees what the map owns, units named by logical blocks included. */
void rsd_map_fini(BlockMap *map);

/*
 * Both tables have these: ns->state begins with the map. Merges are made when a
 * write needs them, so there is nothing to do for an idle die.
 */
RsdStatus rsd_map_submit(Ns *ns, Cmd *cmd);
void rsd_map_op_done(Ns *ns, Op *op);
void rsd_map_op_buffered(Ns *ns, Op *op);
void rsd_map_kept(Ns *ns, uint64_t lba);
void rsd_map_format(Ns *ns);

/*
 * Makes a command fail, unless it has done so before. RSD_E_NOBLOCK is
 * permanent.
 */
void rsd_map_refuse(BlockMap *map, Cmd *cmd, RsdStatus status);

#define RSD_MAP_CALLBACKS                   \
    .cmd_size = sizeof(MapCmd),             \
    .submit = rsd_map_submit,               \
    .op_done = rsd_map_op_done,             \
    .op_buffered = rsd_map_op_buffered,     \
    .kept = rsd_map_kept,                   \
    .format = rsd_map_format

#endif
