/*
 * The page-mapping personality with the
 * whole map in RAM (ftl=page), or with a part of it (ftl=dftl).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_PAGE_FTL_H
#define RSD_PAGE_FTL_H

#include "../ftl.h"

typedef struct MapCache MapCache;

/* Personality.variant says whether the whole map is in RAM, or a part of it. */
enum { PAGE_WHOLE, PAGE_DFTL };

/* A trim passes over so many logical pages at once if none has content. */
#define MAP_SPAN 1024u

/*
 * These are the entries of a map page, and its bytes in the cache of ftl=dftl.
 */
#define MAP_ENTRIES (RSD_PAGE_SIZE / (uint32_t)sizeof(uint32_t))
#define MAP_ENTRY_BYTES 8u      /* logical and flash page */

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

/* A die collects this block, or levels it. */
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
    Wear wear;
    bool look;                  /* something changed for levelling */
} PageDie;

/* This block is being filled, page by page. */
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

typedef struct PageFtl PageFtl;

/* The map, and its cache, call these functions of the files above them. */
typedef struct PageUp {
    /* The die's victim has no valid page, or waits for one update less. */
    void (*emptied)(PageFtl *ftl, uint32_t die);
    /* The block's last page is programmed. */
    void (*closed)(PageFtl *ftl, uint32_t block);
    /*
     * A condition that a command needs has changed; the command may not wait at
     * all.
     */
    void (*mark)(PageFtl *ftl, Cmd *cmd);
} PageUp;

struct PageFtl {
    RsdDrive *drive;
    Ns *ns;
    const PageUp *up;
    uint32_t *l2p;              /* flash page + 1, 0: none; see map_entry() */
    uint32_t *leaves;           /* of a sparse map: the place of each leaf */
    uint32_t num_leaves;        /* those that have a place, and the empty */
    uint16_t *mapped;           /* of each MAP_SPAN of these, not 0 */
    /*
     * This is the logical page or, in flight, the flash page that it replaces +
     * 1.
     */
    uint32_t *p2l;
    PageBlock *blocks;
    PageDie *dies;
    Frontier *frontiers;
    uint32_t num_frontiers;
    Divisor by_frontiers;
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
    /*
     * This is why a copy could not be programmed, if nothing has changed since.
     */
    RsdStatus stuck;
};

/* With a cache, map-cache.c keeps this with a command. */
typedef struct PageCmd {
    uint32_t translated;        /* pages */
    uint32_t slots;             /* entries that it may fill */
    uint8_t stage;
    Cmd *prev, *next;           /* others that wait for the same map page */
} PageCmd;

/* Returns the number of a flash page within the drive. */
static inline uint32_t page_number(const PageFtl *ftl, uint32_t block,
                                   uint32_t page)
{
    return block * ftl->drive->pages + page;
}

/*
 * A map of at least so many logical pages is sparse. Otherwise it would take
 * the memory of all of them as soon as some are written all over the drive.
 */
#ifndef RSD_SPARSE_MAP
#define RSD_SPARSE_MAP (UINT32_C(1) << 28)      /* 1 TiB */
#endif

/*
 * In a sparse map the entries of so many neighbours are a leaf, and leaves are
 * in the order in which they were first written. All others are the leaf at
 * place 0 until then, which is empty.
 */
#define MAP_LEAF 16u

/*
 * Returns the entry of a logical page. If the page is not mapped, it must not
 * be changed: rsd_page_new_entry() returns one that may be.
 */
static inline uint32_t *map_entry(const PageFtl *ftl, uint32_t lpn)
{
    if (ftl->leaves) {
        return ftl->l2p + (size_t)ftl->leaves[lpn / MAP_LEAF] * MAP_LEAF +
               lpn % MAP_LEAF;
    }
    return ftl->l2p + lpn;
}

/*
 * These return the block that such a page is in, and the page's number in the
 * block.
 */
static inline uint32_t block_of(const PageFtl *ftl, uint32_t number)
{
    return rsd_quotient(&ftl->drive->by_block, number);
}

static inline uint32_t page_of(const PageFtl *ftl, uint32_t number)
{
    return number - block_of(ftl, number) * ftl->drive->pages;
}

static inline uint32_t die_of(const PageFtl *ftl, uint32_t block)
{
    return rsd_die_of(ftl->drive, block);
}

static inline Frontier *frontier_of(PageFtl *ftl, uint32_t die)
{
    uint32_t turns = rsd_quotient(&ftl->by_frontiers, die);

    return &ftl->frontiers[die - turns * ftl->num_frontiers];
}

/* Returns the frontier of the block that a flash page is in. */
static inline Frontier *frontier_of_page(PageFtl *ftl, uint32_t number)
{
    return frontier_of(ftl, die_of(ftl, block_of(ftl, number)));
}

/* Returns the block that a frontier's copies fill. */
static inline OpenBlock *for_copies(PageFtl *ftl, Frontier *f)
{
    return ftl->own ? &f->copies : &f->host;
}

/* Returns the pages left of a block that is being filled. */
static inline uint32_t pages_left(const PageFtl *ftl, const OpenBlock *open)
{
    return open->block == RSD_NONE ? 0 : ftl->drive->pages - open->page;
}

/* page-geometry.c */

/* Returns the pages of the map in flash: 0, unless ftl=dftl. */
uint64_t rsd_map_pages_of(const Ns *ns);
/* Says whether the cache is smaller than the map. */
bool rsd_map_is_cached(const Ns *ns);
/* Returns the write frontiers of a drive with these settings. */
uint32_t rsd_page_num_frontiers(const RsdDrive *drive);
/* Says whether gc-frontiers=own is set. */
bool rsd_page_copies_are_apart(const Ns *ns);
/*
 * Returns the pages that filler takes in a frontier's reserve, and in blocks
 * with map pages.
 */
uint32_t rsd_page_reserve_filler(const Ns *ns);
/* Returns the pages of a frontier that the host does not get. */
uint32_t rsd_page_reserved_pages(const Ns *ns);
/*
 * A frontier that has no page for the host has fewer free blocks than that: see
 * rsd_page_has_room(). Filler alone may take a block.
 */
uint32_t rsd_page_least_low(const Ns *ns);
/*
 * Returns the number of free blocks below which a frontier of so many good
 * blocks collects.
 */
uint32_t rsd_page_low_blocks(const Ns *ns, uint64_t good);
/* Blocks may have died. Checks whether the rest is enough to go on. */
void rsd_page_look_at_room(PageFtl *ftl);
/*
 * Returns the blocks of a frontier's dies, without those that were bad when
 * new.
 */
uint64_t rsd_page_good_blocks(const Ns *ns, uint32_t first_die, uint32_t step);
/* This is Personality.geometry. */
bool rsd_page_geometry(Ns *ns, char err[RSD_ERR_LEN]);

/* page-frontier.c */

/*
 * Returns a free block with host space, or RSD_NONE: ftl->refusal has the
 * reason.
 */
uint32_t rsd_page_take_block(PageFtl *ftl, Frontier *f);
/*
 * Returns the pages that a victim's copies will take, with the filler of their
 * last unit.
 */
uint32_t rsd_page_owed(const PageFtl *ftl, const PageBlock *pb);
/*
 * Returns the frontier's next page, or RSD_NONE: ftl->refusal has the reason.
 */
uint32_t rsd_page_take_page(PageFtl *ftl, Frontier *f, OpenBlock *open);
/* Says whether a frontier has a page for the host. */
bool rsd_page_has_room(const PageFtl *ftl, const Frontier *f);
/*
 * Says whether it is better to wait than to pass over the frontier whose turn
 * it is. It has no page for the host.
 */
bool rsd_page_too_few_have_room(const PageFtl *ftl);
/* Says whether the frontier has room for the valid pages of the block. */
bool rsd_page_fits(const PageFtl *ftl, const Frontier *f, uint32_t block);
/*
 * Says whether the block that levelling fills has room for the valid pages of a
 * block.
 */
bool rsd_page_worn_holds(const PageFtl *ftl, uint32_t block);
/*
 * Returns the frontier that gets the valid pages of a block: its own one or, if
 * that has no room because its reserve has died, the one that has most.
 */
Frontier *rsd_page_taker(PageFtl *ftl, uint32_t block);
/*
 * Fills up the unit in which a block's page is the next one. Returns false if
 * there is none.
 */
bool rsd_page_fill_unit(PageFtl *ftl, uint32_t block, uint32_t *page);
/* Does the same for the block that a frontier fills. */
bool rsd_page_fill_open(PageFtl *ftl, Frontier *f, OpenBlock *open);
/* This is Personality.pad. */
void rsd_page_pad(Ns *ns, uint32_t block);
/* Does the same for all map pages. */
void rsd_page_fill_map_units(PageFtl *ftl);
/* Fills up all units, when nothing else is going to happen. */
void rsd_page_fill_all(PageFtl *ftl);

/* page-map.c */

/* A full block leaves its list. */
void rsd_page_unlink_full(PageFtl *ftl, uint32_t block);
/*
 * Makes the block full from now on, and puts it in the list of its valid pages.
 */
void rsd_page_make_full(PageFtl *ftl, uint32_t block);
/* Returns the entry of a logical page, to be changed. */
uint32_t *rsd_page_new_entry(PageFtl *ftl, uint32_t lpn);
/* Maps the logical page to that flash page from now on. */
void rsd_page_map_page(PageFtl *ftl, uint32_t lpn, uint32_t number);
/* Marks a page whose content is of no use any more. */
void rsd_page_invalidate(PageFtl *ftl, uint32_t number);
/*
 * Says whether the flash page is the content of the logical page, or becomes it
 * if pages still to be programmed are lost. It is not if it was trimmed since.
 */
bool rsd_page_is_content(const PageFtl *ftl, uint32_t lpn, uint32_t number);
/*
 * A page was not programmed. Its logical page is where it was before, unless it
 * was trimmed, or written elsewhere since.
 */
void rsd_page_unmap_page(PageFtl *ftl, uint32_t number, uint32_t lpn);

/* map-cache.c */

/*
 * Makes a cache. Returns false if there is no memory; rsd_cache_fini() is still
 * called.
 */
bool rsd_cache_init(PageFtl *ftl);
void rsd_cache_fini(PageFtl *ftl);
/* All functions from here on are called with a cache only. */

/*
 * Makes sure that the cache has the entries from page cmd->progress of the
 * command to *end, which is set. Returns false if the command has to wait for
 * that.
 */
bool rsd_cache_translate(PageFtl *ftl, Cmd *cmd, uint32_t *end);
/*
 * The command fails, so entries of the cache that were reserved for it are free
 * again.
 */
void rsd_cache_give_up(PageFtl *ftl, Cmd *cmd);
/*
 * Returns what a command waits for: 0 is nothing of the cache, UINT32_MAX is
 * its map page, after which rsd_page_mark() follows, and another number is that
 * of entries.
 */
uint32_t rsd_cache_awaits(const PageFtl *ftl, const Cmd *cmd);
/*
 * Commands that wait for more entries than that need not be looked at now:
 * rsd_cache_translate() would do nothing.
 */
uint32_t rsd_cache_grants(const PageFtl *ftl);
/* Notes that the host wrote or trimmed a logical page. */
void rsd_cache_written(PageFtl *ftl, uint32_t lpn);
void rsd_cache_trimmed(PageFtl *ftl, uint32_t lpn);
/* All LBAs will be trimmed, so map pages have no content, nor has the cache. */
void rsd_cache_format(PageFtl *ftl);
/*
 * Returns the map pages that would be updated if the valid pages of the block
 * were moved.
 */
uint32_t rsd_cache_updates(const PageFtl *ftl, uint32_t block);
/* Notes that a page of a victim was given a new place. */
void rsd_cache_moved(PageFtl *ftl, Victim *v, uint32_t lpn);
/* Updates the map pages of moved pages. Returns true when all that is done. */
bool rsd_cache_settle(PageFtl *ftl, uint32_t die);
/*
 * Says whether the flash page, of a map block, is the newest of its map page.
 */
bool rsd_cache_is_current(const PageFtl *ftl, uint32_t number);
/*
 * Queues the program of a map page's copy from a victim; takes over buf.
 * Returns false if there is no free page for it.
 */
bool rsd_cache_copy(PageFtl *ftl, uint32_t number, uint8_t *buf);
/* An operation of the map's is done: op->job is set. */
void rsd_cache_op_done(PageFtl *ftl, Op *op);
/* The write buffer has a program of the map's; the caller finishes op. */
void rsd_cache_op_buffered(PageFtl *ftl, Op *op);
/* Goes on with updates that lacked free pages or memory. */
void rsd_cache_retry(PageFtl *ftl);
/* Takes a page that was found at opening. */
void rsd_cache_recover(PageFtl *ftl, uint32_t number, const RsdSpare *spare);

/* page-collect.c */

/* Begins to collect, or to level, a full block. */
void rsd_page_begin_victim(PageFtl *ftl, uint32_t block, RsdCause cause,
                           bool idle);
/* Queues the next reads of a die's victim, or its erase. */
void rsd_page_advance_victim(PageFtl *ftl, uint32_t die);
/* Collects the blocks that a frontier needs. */
void rsd_page_collect(PageFtl *ftl, Frontier *f);
/*
 * Goes on with operations that lacked memory, free pages, or space on the
 * host's disk.
 */
void rsd_page_retry_stalled(PageFtl *ftl);
/* Does the same, and collects the blocks that any frontier needs. */
void rsd_page_collect_everywhere(PageFtl *ftl);
/* Follows the read of a page of a victim. */
void rsd_page_copy_read(PageFtl *ftl, Op *op);
/* The last page of a block is programmed. */
void rsd_page_close_block(PageFtl *ftl, uint32_t block);

/* page-wear.c */

/* A block was erased in a die that need not be idle. */
void rsd_page_level_busy(PageFtl *ftl, uint32_t die);
/*
 * The block that levelling fills may be collected. Returns false if it fills
 * none.
 */
bool rsd_page_close_worn(PageFtl *ftl);
/* This is Personality.has_background. */
bool rsd_page_has_background(const Ns *ns, uint32_t die);
/* Begins the background work of an idle die. Returns false if there is none. */
bool rsd_page_begin_background(PageFtl *ftl, uint32_t die);

/* page-submit.c */

/* This is for opening, when no command waits. */
void rsd_page_waits_init(PageFtl *ftl);
/*
 * A condition that a command needs has changed; the command may not wait at
 * all.
 */
void rsd_page_mark(PageFtl *ftl, Cmd *cmd);
/* Goes on with commands that wait, if something has changed. */
void rsd_page_maybe_resume(PageFtl *ftl);
/* These are Personality.expect, .submit and .format. */
void rsd_page_expect(const Ns *ns, uint64_t lba);
RsdStatus rsd_page_submit(Ns *ns, Cmd *cmd);
void rsd_page_format(Ns *ns);

/* page-done.c */

/* A page is in the write buffer. */
void rsd_page_op_buffered(Ns *ns, Op *op);
/* These are Personality.op_done and .background. */
void rsd_page_op_done(Ns *ns, Op *op);
bool rsd_page_background(Ns *ns, uint32_t die);

/* page-recover.c */

/* Puts the blocks that are full, or nearly so, into their lists. */
bool rsd_page_recover_full(PageFtl *ftl);
/*
 * Finds the state of every block, and opens the blocks that are to be filled
 * further.
 */
bool rsd_page_recover(PageFtl *ftl, char err[RSD_ERR_LEN]);

#endif
