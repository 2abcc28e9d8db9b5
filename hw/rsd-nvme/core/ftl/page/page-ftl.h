/*
 * What page-ftl.c and map-cache.c share: the page-mapping personality with the
 * whole map in RAM (ftl=page), or with a part of it (ftl=dftl).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_PAGE_FTL_H
#define RSD_PAGE_FTL_H

#include "../ftl.h"

typedef struct MapCache MapCache;

/* Personality.variant: is the whole map in RAM, or a part of it? */
enum { PAGE_WHOLE, PAGE_DFTL };

/* Logical pages that a trim passes over at once if none has content */
#define MAP_SPAN 1024u

typedef enum BlockState {
    BLOCK_FREE,
    BLOCK_OPEN,                 /* being filled, or its programs go on */
    BLOCK_FULL,                 /* may be collected */
    BLOCK_VICTIM,
    BLOCK_BAD,
} BlockState;

typedef struct PageBlock {
    uint32_t valid;             /* pages that must not be erased */
    uint32_t prev, next;        /* in its list, a ring, when full */
    uint16_t state;
    bool map;                   /* it has pages of the map */
    uint64_t stamp;             /* drive->seq when it changed last */
} PageBlock;

/* What a die collects, or levels */
typedef struct Victim {
    uint32_t block;             /* RSD_NONE: nothing */
    uint32_t page;              /* next to look at */
    uint32_t end;               /* pages programmed in it */
    uint32_t copying;           /* pages being copied */
    uint32_t to;                /* frontier that its pages go to, */
    uint32_t owed;              /* of which so many are promised to it */
    uint32_t updates;           /* of map pages, which it waits for */
    uint32_t num_moved;
    uint32_t *moved;            /* map pages to update: see map-cache.c */
    RsdCause cause;
    bool idle;                  /* begun by an idle die */
    bool stalled;               /* the host lacks memory or space for it */
    bool settling;              /* map pages are being updated for it */
    bool erasing;
} Victim;

typedef struct PageDie {
    Pool pool;
    Victim victim;
    uint32_t *lists;            /* full blocks by valid pages: their first */
    uint32_t lowest;            /* no list below has any */
    uint64_t stale;             /* pages of full blocks that are not valid */
    uint32_t worn, worn_page;   /* block that levelling fills, its next page */
    uint64_t levelled;          /* Die.programmed when it last ended */
    uint32_t wear_min, wear_max;
    uint32_t at_min;            /* good blocks of that erase count */
    bool look;                  /* something changed for levelling */
} PageDie;

/* A block that is being filled, page by page */
typedef struct OpenBlock {
    uint32_t block;             /* RSD_NONE: none */
    uint32_t page;              /* next to give away */
} OpenBlock;

/* Its dies are number, number + frontiers, ... */
typedef struct Frontier {
    OpenBlock host;             /* gc-frontiers=shared: for copies, too */
    OpenBlock copies;           /* gc-frontiers=own: of victims' pages */
    uint32_t turn;              /* die of the next block */
    uint32_t free;              /* blocks */
    uint32_t low;               /* collect when there are fewer */
    uint32_t victims;           /* on its dies */
    OpenBlock map;              /* of map pages */
    uint64_t space;             /* pages that copies can have */
    uint64_t owed;              /* of these, promised to some */
} Frontier;

typedef struct PageFtl {
    RsdDrive *drive;
    Ns *ns;
    uint32_t *l2p;              /* flash page + 1, 0: none */
    uint16_t *mapped;           /* of each MAP_SPAN of these, not 0 */
    /* logical page; while in flight, flash page that it replaces + 1 */
    uint32_t *p2l;
    PageBlock *blocks;
    PageDie *dies;
    Frontier *frontiers;
    uint32_t num_frontiers;
    bool own;                   /* gc-frontiers=own */
    uint32_t reserve;           /* pages of a frontier not for the host */
    MapCache *cache;            /* NULL: the whole map is in RAM */
    uint32_t turn;              /* frontier of the next page */
    uint32_t victims;           /* on all dies */
    uint64_t free;              /* blocks of all frontiers */
    uint64_t low;               /* gc-unit=all: collect when there are fewer */
    uint64_t good;              /* blocks that are not bad */
    uint64_t in_flight;         /* operations other than the host's reads */
    Waits waits;                /* the commands that wait */
    bool all_marked;            /* since the drive failed */
    bool retry;                 /* one of them may go on now */
    bool no_room;               /* a write waits for free pages */
    bool going;                 /* those that wait are gone on with later */
    RsdStatus refusal;          /* why a frontier did not open a block */
    /* why a copy could not be programmed, nothing having changed since */
    RsdStatus stuck;
} PageFtl;

/* Number of a flash page within the drive */
static inline uint32_t page_number(const PageFtl *ftl, uint32_t block,
                                   uint32_t page)
{
    return block * ftl->drive->pages + page;
}

static inline uint32_t die_of(const PageFtl *ftl, uint32_t block)
{
    return block / ftl->drive->die_blocks;
}

static inline Frontier *frontier_of(PageFtl *ftl, uint32_t die)
{
    return &ftl->frontiers[die % ftl->num_frontiers];
}

/* page-ftl.c */

/* The page's content is of no use any more. */
void rsd_page_invalidate(PageFtl *ftl, uint32_t number);
/* A free block with host space, or RSD_NONE: ftl->refusal says why not. */
uint32_t rsd_page_take_block(PageFtl *ftl, Frontier *f);
/* Its last page is programmed. */
void rsd_page_close_block(PageFtl *ftl, uint32_t block);
/* Queues the next reads of a die's victim, or its erase. */
void rsd_page_advance_victim(PageFtl *ftl, uint32_t die);
/* What a command needs has changed; it may not be one that waits. */
void rsd_page_mark(PageFtl *ftl, Cmd *cmd);

/* map-cache.c */

/* Pages of the map in flash: 0, unless ftl=dftl */
uint64_t rsd_map_pages_of(const Ns *ns);
/* Is the cache smaller than the map? */
bool rsd_map_is_cached(const Ns *ns);
/* A cache. False: there is no memory; rsd_cache_fini() is still called. */
bool rsd_cache_init(PageFtl *ftl);
void rsd_cache_fini(PageFtl *ftl);
/* Of the following, all are called with a cache only. */

/*
 * Makes sure that the cache has the entries from page cmd->progress of the
 * command to *end, which is set. False: the command has to wait for that.
 */
bool rsd_cache_translate(PageFtl *ftl, Cmd *cmd, uint32_t *end);
/* The command fails: what it was promised of the cache is free again. */
void rsd_cache_give_up(PageFtl *ftl, Cmd *cmd);
/*
 * What a command waits for: 0 = for nothing of the cache; UINT32_MAX = for its
 * map page, and rsd_page_mark() follows; else for so many entries.
 */
uint32_t rsd_cache_awaits(const PageFtl *ftl, const Cmd *cmd);
/*
 * Commands that wait for more entries than that need not be looked at now:
 * rsd_cache_translate() would do nothing.
 */
uint32_t rsd_cache_grants(const PageFtl *ftl);
/* The host wrote or trimmed a logical page. */
void rsd_cache_written(PageFtl *ftl, uint32_t lpn);
void rsd_cache_trimmed(PageFtl *ftl, uint32_t lpn);
/* All LBAs will be trimmed: map pages have no content, nor has the cache. */
void rsd_cache_format(PageFtl *ftl);
/* Map pages that would be updated if what is valid in the block were moved */
uint32_t rsd_cache_updates(const PageFtl *ftl, uint32_t block);
/* A page of a victim was given a new place. */
void rsd_cache_moved(PageFtl *ftl, Victim *v, uint32_t lpn);
/* Updates the map pages of what was moved; true when all that is done. */
bool rsd_cache_settle(PageFtl *ftl, uint32_t die);
/* Is the flash page, of a map block, the newest of its map page? */
bool rsd_cache_is_current(const PageFtl *ftl, uint32_t number);
/*
 * Queues the program of a map page's copy from a victim; takes over buf. False:
 * there is no free page for it.
 */
bool rsd_cache_copy(PageFtl *ftl, uint32_t number, uint8_t *buf);
/* An operation of the map's is done: op->job is set. */
void rsd_cache_op_done(PageFtl *ftl, Op *op);
/* The write buffer has a program of the map's; op is the caller's to finish. */
void rsd_cache_op_buffered(PageFtl *ftl, Op *op);
/* Goes on with updates that lacked free pages or memory. */
void rsd_cache_retry(PageFtl *ftl);
/* A page that was found at opening */
void rsd_cache_recover(PageFtl *ftl, uint32_t number, const RsdSpare *spare);

#endif
