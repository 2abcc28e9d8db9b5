/*
 * The cached map of ftl=dftl: DFTL (Gupta, Kim, Urgaonkar, ASPLOS 2009), which
 * shows what RISA 4.2 leaves out when it assumes the whole map in RAM.
 *
 * The map is in flash, in map pages of 1024 entries of 4 bytes, which have
 * blocks of their own. RAM has a directory, the flash page of every map page
 * (DFTL's global translation directory), and a cache of single entries (its
 * cached mapping table) of 8 bytes each, map-cache bytes in all.
 *
 *   miss      An entry is read together with the others of its map page that
 *             the command needs. The command waits.
 *   eviction  Before that the cache makes room: by segmented LRU, entries that
 *             were hit again being in the protected half. One that was changed
 *             is written first: its map page is read and programmed anew, with
 *             all changed entries of that page, which stay and are clean then.
 *             The command waits for that, too.
 *   GC        A page that is moved changes its entry, in the cache if it is
 *             there; else its map page is updated before the victim is erased,
 *             once for all pages of the victim that it names.
 *   trim      The same: entries in the cache change; map pages that have others
 *             are updated, each once, and nobody waits for it.
 *
 * A cache that has room for the whole map has it all from the start, and the
 * drive is that of ftl=page: there is no map in flash.
 *
 * Commands wait side by side; a read of a map page serves all that wait for it.
 * Map pages take turns over the frontiers, a block of each being filled with
 * them. Their blocks are victims like others, chosen by the same rule. All
 * these operations count as cause map.
 *
 * With a write buffer, an update is done when the buffer has taken it: a map
 * page that is there is read from there. Its old page stays valid until the new
 * one is programmed. A frontier gets a unit's worth of map pages before it is
 * the next one's turn, and units of map pages are filled up when a victim has
 * been copied to them that cannot be erased before.
 *
 * The simulator itself keeps the true map (page-map.c): no content is ever read
 * out of a map page, though it is programmed. So the map survives SIGKILL as it
 * does with ftl=page, by the data pages' OOB, and after opening the cache is
 * empty. What a real drive would write of it at power-off, or search after a
 * power loss, is not modelled.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>

#include "page-ftl.h"

#define KIND_MAP 1u             /* RsdSpare.kind */

/* PageCmd.stage */
enum {
    STAGE_NEW,
    STAGE_ROOM,                 /* waits for entries to be evicted */
    STAGE_LOAD,                 /* waits for its map page */
    STAGE_LOADED,
};

typedef struct Entry {
    uint32_t lpn;
    uint32_t prev, next;        /* in its half of the cache, by last use */
    uint32_t page_prev, page_next;      /* of the same map page */
    uint32_t bucket_next;       /* of the same bucket, + 1; 0: none */
    bool dirty;
    bool guarded;               /* in the protected half */
    bool leaving;               /* chosen for eviction: in no half */
} Entry;

typedef struct List {
    uint32_t head, tail;        /* most, least recently used */
    uint32_t len;
} List;

typedef struct MapPage {
    uint32_t where;             /* flash page + 1; 0: it was never written */
    uint32_t entries;           /* first one in the cache, or RSD_NONE */
    uint32_t writing;           /* programs of it in flight */
    uint64_t looked;            /* MapCache.looks when it was counted last */
    Cmd *waiting;               /* in STAGE_LOAD for it, by PageCmd.next */
    bool loading;
    bool updating;              /* an update that no victim waits for, */
    bool composed;              /* its content being decided, */
    bool again;                 /* and something has changed since */
    bool owed;                  /* an update for which there was no memory */
} MapPage;

#define JOBS_AT_ONCE 128u       /* jobs allocated together */

typedef struct Job {
    struct Job *next;           /* stalled, or unused */
    uint32_t map_page;
    uint32_t die;               /* whose victim waits for it, or RSD_NONE */
    uint32_t format;            /* MapCache.formats when it began */
    bool load;
    bool copy;                  /* of a page of the die's victim */
} Job;

typedef struct JobChunk {
    struct JobChunk *next;
    Job jobs[JOBS_AT_ONCE];
} JobChunk;

struct MapCache {
    MapPage *pages;
    uint32_t *buckets;          /* the first entry of each, + 1; 0: none */
    uint32_t shift;             /* there are 2^(32 - shift) of them */
    Entry *entries;
    uint32_t num_entries;
    uint32_t used;              /* entries ever given out */
    uint32_t unused;            /* list of those given back, by next */
    List probation, guarded;
    uint64_t free;              /* entries that nobody has or was promised */
    uint64_t leaving;
    uint64_t wanted;            /* by commands in STAGE_ROOM */
    uint32_t owed;              /* map pages of which an update is */
    bool stopped;               /* see stop_writing() */
    uint32_t formats;           /* see rsd_cache_format() */
    uint64_t looks;             /* calls of rsd_cache_updates() */
    uint32_t turn;              /* frontier of the next map page */
    Job *stalled, *free_jobs;
    JobChunk *chunks;
};

static PageCmd *state_of(const Cmd *cmd)
{
    return rsd_cmd_area(cmd);
}

/*
 * Entries
 */

static void list_remove(MapCache *c, List *list, uint32_t n)
{
    Entry *e = &c->entries[n];

    if (e->prev == RSD_NONE) {
        list->head = e->next;
    } else {
        c->entries[e->prev].next = e->next;
    }
    if (e->next == RSD_NONE) {
        list->tail = e->prev;
    } else {
        c->entries[e->next].prev = e->prev;
    }
    list->len--;
}

static void list_push(MapCache *c, List *list, uint32_t n)
{
    Entry *e = &c->entries[n];

    e->prev = RSD_NONE;
    e->next = list->head;
    if (list->head == RSD_NONE) {
        list->tail = n;
    } else {
        c->entries[list->head].prev = n;
    }
    list->head = n;
    list->len++;
}

/* The entry was used again. */
static void touch(MapCache *c, uint32_t n)
{
    Entry *e = &c->entries[n];

    if (e->leaving) {
        return;
    }
    list_remove(c, e->guarded ? &c->guarded : &c->probation, n);
    e->guarded = true;
    list_push(c, &c->guarded, n);
    if (c->guarded.len > c->num_entries / 2) {
        uint32_t last = c->guarded.tail;

        list_remove(c, &c->guarded, last);
        c->entries[last].guarded = false;
        list_push(c, &c->probation, last);
    }
}

/*
 * The cache finds an entry by a hash of its logical page: multiplicative, with
 * the golden ratio (Knuth, volume 3, 6.4).
 */
static uint32_t *bucket_of(const MapCache *c, uint32_t lpn)
{
    return &c->buckets[lpn * UINT32_C(0x9e3779b1) >> c->shift];
}

/* The entry of a logical page + 1, or 0 */
static uint32_t find(const MapCache *c, uint32_t lpn)
{
    uint32_t n = *bucket_of(c, lpn);

    while (n && c->entries[n - 1].lpn != lpn) {
        n = c->entries[n - 1].bucket_next;
    }
    return n;
}

/* Of a logical page that has none */
static void insert(MapCache *c, uint32_t lpn)
{
    MapPage *page = &c->pages[lpn / MAP_ENTRIES];
    uint32_t n = c->unused;
    Entry *e;

    if (n == RSD_NONE) {
        n = c->used++;
    } else {
        c->unused = c->entries[n].next;
    }
    e = &c->entries[n];
    *e = (Entry){ .lpn = lpn, .page_prev = RSD_NONE,
                  .page_next = page->entries };
    if (page->entries != RSD_NONE) {
        c->entries[page->entries].page_prev = n;
    }
    page->entries = n;
    list_push(c, &c->probation, n);
    e->bucket_next = *bucket_of(c, lpn);
    *bucket_of(c, lpn) = n + 1;
}

/* Forgets an entry that is in no half. */
static void forget(MapCache *c, uint32_t n)
{
    Entry *e = &c->entries[n];
    uint32_t *link = bucket_of(c, e->lpn);

    if (e->page_prev == RSD_NONE) {
        c->pages[e->lpn / MAP_ENTRIES].entries = e->page_next;
    } else {
        c->entries[e->page_prev].page_next = e->page_next;
    }
    if (e->page_next != RSD_NONE) {
        c->entries[e->page_next].page_prev = e->page_prev;
    }
    while (*link != n + 1) {
        link = &c->entries[*link - 1].bucket_next;
    }
    *link = e->bucket_next;
    e->leaving = false;
    e->next = c->unused;
    c->unused = n;
    c->free++;
}

/*
 * Jobs: reads and updates of map pages
 */

static void free_job(MapCache *c, Job *job)
{
    job->next = c->free_jobs;
    c->free_jobs = job;
}

static Job *new_job(PageFtl *ftl, uint32_t map_page)
{
    MapCache *c = ftl->cache;
    Job *job;

    if (!c->free_jobs) {
        JobChunk *chunk = rsd_alloc(ftl->drive, sizeof(*chunk));

        if (!chunk) {
            return NULL;
        }
        chunk->next = c->chunks;
        c->chunks = chunk;
        for (uint32_t i = 0; i < JOBS_AT_ONCE; i++) {
            free_job(c, &chunk->jobs[i]);
        }
    }
    job = c->free_jobs;
    c->free_jobs = job->next;
    *job = (Job){ .map_page = map_page, .die = RSD_NONE,
                  .format = c->formats };
    return job;
}

/* Begins a block for map pages, if so many free pages are left after it. */
static bool open_map_block(PageFtl *ftl, Frontier *f, uint64_t keep)
{
    uint32_t block;

    if (!f->free || f->space - f->owed < ftl->drive->pages + keep) {
        return false;
    }
    block = rsd_page_take_block(ftl, f);
    if (block == RSD_NONE) {
        return false;
    }
    f->space -= ftl->drive->pages;
    ftl->blocks[block].map = true;
    f->map.block = block;
    f->map.page = 0;
    return true;
}

/*
 * A free page for a map page, or RSD_NONE. Only what a victim waits for may
 * take the frontiers' reserve; it frees a block in return.
 */
static uint32_t take_map_page(PageFtl *ftl, bool for_victim)
{
    MapCache *c = ftl->cache;
    uint32_t pages = ftl->drive->pages, n = ftl->num_frontiers;

    for (uint32_t i = 0; i < (for_victim ? 2 * n : n); i++) {
        uint32_t turn = c->turn;
        Frontier *f = &ftl->frontiers[turn];
        /* at first from those that have the most */
        uint64_t keep = !for_victim ? ftl->reserve - pages
                                    : i < n ? pages : 0;

        c->turn = (turn + 1) % n;
        if (f->space - f->owed < keep) {
            continue;
        }
        if ((f->map.block != RSD_NONE && f->map.page < pages) ||
            open_map_block(ftl, f, keep)) {
            if ((f->map.page + 1) % ftl->drive->unit) {
                c->turn = turn; /* until a unit is full */
            }
            return page_number(ftl, f->map.block, f->map.page++);
        }
    }
    return RSD_NONE;
}

/* What a map page has in flash, with its OOB */
static void compose(PageFtl *ftl, uint32_t map_page, uint8_t *buf)
{
    uint64_t first = (uint64_t)map_page * MAP_ENTRIES;
    uint64_t n = ftl->ns->geo.lbas - first;
    RsdSpare spare = {
        .magic = RSD_SPARE_MAGIC,
        .kind = KIND_MAP,
        .lpn = map_page,
        .seq = ftl->drive->seq,
    };

    n = n < MAP_ENTRIES ? n : MAP_ENTRIES;
    memset(buf, 0, RSD_PAGE_SIZE + RSD_OOB_SIZE);
    for (uint64_t i = 0; i < n; i++) {
        memcpy(buf + i * sizeof(uint32_t), map_entry(ftl, first + i),
               sizeof(uint32_t));
    }
    memcpy(rsd_buf_spare(buf), &spare, sizeof(spare));
}

static void stall(MapCache *c, Job *job)
{
    Job **link = &c->stalled;

    while (*link) {
        link = &(*link)->next;
    }
    job->next = NULL;
    *link = job;
}

/* Queues the program of an update. False: there is no page or memory. */
static bool program_update(PageFtl *ftl, Job *job, uint8_t *buf)
{
    MapCache *c = ftl->cache;
    MapPage *page = &c->pages[job->map_page];
    uint32_t number;

    if (!rsd_op_reserve(ftl->drive, 1)) {
        ftl->refusal = RSD_E_NOMEM;
        return false;
    }
    ftl->refusal = rsd_buffer_reserve(ftl->drive, 1);
    if (ftl->refusal != RSD_OK) {
        return false;
    }
    ftl->refusal = RSD_E_NOBLOCK;
    number = take_map_page(ftl, job->die != RSD_NONE);
    if (number == RSD_NONE) {
        return false;
    }
    if (buf) {
        compose(ftl, job->map_page, buf);
    }
    page->composed |= job->die == RSD_NONE;
    ftl->drive->seq++;
    /* while in flight, what it replaces: as of pages of the host */
    ftl->p2l[number] = page->where;
    page->where = number + 1;
    page->writing++;
    for (uint32_t n = page->entries; n != RSD_NONE;
         n = c->entries[n].page_next) {
        c->entries[n].dirty = false;
    }
    ftl->blocks[block_of(ftl, number)].valid++;
    ftl->in_flight++;
    rsd_queue_copy_write(ftl->ns, RSD_CAUSE_MAP, block_of(ftl, number),
                         page_of(ftl, number), buf, job, job->map_page);
    return true;
}

static void end_update(PageFtl *ftl, Job *job);

/* Goes on with an update whose old page, if any, was read. */
static void write_update(PageFtl *ftl, Job *job)
{
    bool payload = ftl->drive->media.data;
    uint8_t *buf;

    if (job->format != ftl->cache->formats) {
        end_update(ftl, job);   /* there is nothing left to write */
        free_job(ftl->cache, job);
        return;
    }
    buf = payload ? rsd_buf_new(ftl->drive) : NULL;
    ftl->refusal = RSD_E_NOMEM;
    if ((payload && !buf) || !program_update(ftl, job, buf)) {
        rsd_buf_free(ftl->drive, buf);
        stall(ftl->cache, job);
    } else if (rsd_buffered(ftl->drive)) {
        rsd_buf_free(ftl->drive, buf);
    }
}

/* Is the map page in the write buffer? Then it has been read. */
static bool is_buffered(PageFtl *ftl, uint32_t map_page)
{
    uint32_t number = ftl->cache->pages[map_page].where - 1;

    return rsd_buffer_read_page(ftl->drive, block_of(ftl, number),
                                page_of(ftl, number), NULL);
}

/* Queues the read of a map page. False: there is no memory. */
static bool read_map_page(PageFtl *ftl, Job *job)
{
    uint32_t number = ftl->cache->pages[job->map_page].where - 1;
    Op *op;

    if (!rsd_op_reserve(ftl->drive, 1)) {
        return false;
    }
    op = rsd_queue_copy_read(ftl->ns, RSD_CAUSE_MAP, block_of(ftl, number),
                             page_of(ftl, number), NULL);
    op->job = job;
    ftl->in_flight++;
    return true;
}

/* Reads a map page, if it was ever written, and writes it anew. */
static bool start_update(PageFtl *ftl, uint32_t map_page, uint32_t die)
{
    Job *job = new_job(ftl, map_page);

    if (!job) {
        return false;
    }
    job->die = die;
    if (!ftl->cache->pages[map_page].where || is_buffered(ftl, map_page)) {
        write_update(ftl, job);
    } else if (!read_map_page(ftl, job)) {
        free_job(ftl->cache, job);
        return false;
    }
    return true;
}

/*
 * The same for changed entries that nobody waits for by name. False: there is
 * no memory.
 */
static bool update_once(PageFtl *ftl, uint32_t map_page)
{
    MapPage *page = &ftl->cache->pages[map_page];

    page->again |= page->composed;
    if (!page->updating) {
        page->updating = true;
        if (!start_update(ftl, map_page, RSD_NONE)) {
            page->updating = false;
            return false;
        }
    }
    return true;
}

/* The same later, if there is no memory now */
static void update_soon(PageFtl *ftl, uint32_t map_page)
{
    MapPage *page = &ftl->cache->pages[map_page];

    if (!update_once(ftl, map_page) && !page->owed) {
        page->owed = true;
        ftl->cache->owed++;
    }
}

/* Begins the updates that there was no memory for. */
static void update_owed(PageFtl *ftl)
{
    MapCache *c = ftl->cache;

    for (uint64_t i = 0; c->owed && i < rsd_map_pages_of(ftl->ns); i++) {
        if (c->pages[i].owed) {
            if (!update_once(ftl, i)) {
                return;
            }
            c->pages[i].owed = false;
            c->owed--;
        }
    }
}

void rsd_cache_retry(PageFtl *ftl)
{
    MapCache *c = ftl->cache;
    Job *job = c->stalled;

    update_owed(ftl);
    c->stalled = NULL;
    while (job) {
        Job *next = job->next;

        write_update(ftl, job);
        job = next;
    }
}

/*
 * Eviction
 */

/* The drive is read-only: entries are evicted without being written. */
static void stop_writing(MapCache *c)
{
    c->stopped = true;
    for (uint32_t n = 0; n < c->used; n++) {
        if (c->entries[n].leaving) {
            c->leaving--;
            forget(c, n);
        }
    }
}

/* An entry that was chosen cannot be written for want of memory. */
static void stay(MapCache *c, uint32_t n)
{
    c->entries[n].leaving = c->entries[n].guarded = false;
    c->leaving--;
    list_push(c, &c->probation, n);
}

/* Evicts, or begins to, as many entries as commands wait for. */
static void make_room(PageFtl *ftl)
{
    MapCache *c = ftl->cache;

    if (ftl->drive->read_only && !c->stopped) {
        stop_writing(c);
    }
    while (c->free + c->leaving < c->wanted) {
        List *list = c->probation.len ? &c->probation : &c->guarded;
        uint32_t n = list->tail;
        Entry *e;

        if (n == RSD_NONE) {
            return;
        }
        e = &c->entries[n];
        list_remove(c, list, n);
        if (c->stopped || (!e->dirty &&
                           !c->pages[e->lpn / MAP_ENTRIES].writing)) {
            forget(c, n);
            continue;
        }
        e->leaving = true;
        c->leaving++;
        if (e->dirty && !update_once(ftl, e->lpn / MAP_ENTRIES)) {
            stay(c, n);
            return;
        }
    }
}

/* A map page was programmed: what was to be evicted with it is. */
static void evict_written(PageFtl *ftl, uint32_t map_page)
{
    MapCache *c = ftl->cache;
    bool again = false;

    for (uint32_t n = c->pages[map_page].entries, next; n != RSD_NONE;
         n = next) {
        Entry *e = &c->entries[n];

        next = e->page_next;
        if (!e->leaving || c->pages[map_page].writing) {
            continue;
        }
        if (e->dirty) {
            again = true;       /* it changed meanwhile */
        } else {
            c->leaving--;
            forget(c, n);
        }
    }
    if (!again || update_once(ftl, map_page)) {
        return;
    }
    for (uint32_t n = c->pages[map_page].entries; n != RSD_NONE;
         n = c->entries[n].page_next) {
        if (c->entries[n].leaving) {
            stay(c, n);
        }
    }
}

/*
 * Translation
 */

/* Pages of a command that are translated together, from cmd->progress */
static uint32_t span(const MapCache *c, const Cmd *cmd)
{
    uint32_t left = cmd->pub.nlb - cmd->progress;
    uint32_t in_page = MAP_ENTRIES -
                       (cmd->pub.lba + cmd->progress) % MAP_ENTRIES;
    uint32_t most = c->num_entries / 4;

    left = left < in_page ? left : in_page;
    return left < most ? left : most;
}

static void set_stage(PageFtl *ftl, Cmd *cmd, uint8_t stage)
{
    PageCmd *own = state_of(cmd);
    MapPage *page = &ftl->cache->pages[(cmd->pub.lba + cmd->progress) /
                                       MAP_ENTRIES];

    if (own->stage == STAGE_LOAD) {
        if (own->prev) {
            state_of(own->prev)->next = own->next;
        } else {
            page->waiting = own->next;
        }
        if (own->next) {
            state_of(own->next)->prev = own->prev;
        }
    }
    own->stage = stage;
    if (stage == STAGE_LOAD) {
        own->prev = NULL;
        own->next = page->waiting;
        if (page->waiting) {
            state_of(page->waiting)->prev = cmd;
        }
        page->waiting = cmd;
    }
}

/* Its map page has been read: its entries come into the cache. */
static void fill(PageFtl *ftl, Cmd *cmd)
{
    PageCmd *own = state_of(cmd);
    MapCache *c = ftl->cache;
    uint32_t lpn = cmd->pub.lba + cmd->progress, n = span(c, cmd);

    for (uint32_t i = 0; i < n; i++) {
        if (find(c, lpn + i)) {
            continue;
        }
        if (own->slots) {
            own->slots--;
        } else if (c->free) {
            c->free--;
        } else {
            continue;           /* evicted since: see rsd_cache_written() */
        }
        insert(c, lpn + i);
    }
    c->free += own->slots;
    /* others may evict what is in the cache now */
    ftl->retry |= c->wanted > 0;
    own->slots = 0;
    own->stage = STAGE_NEW;
    own->translated = cmd->progress + n;
}

/* Begins a translation: are all entries there? Else room is asked for. */
static bool look_up(PageFtl *ftl, Cmd *cmd)
{
    PageCmd *own = state_of(cmd);
    MapCache *c = ftl->cache;
    uint32_t lpn = cmd->pub.lba + cmd->progress, n = span(c, cmd);
    uint32_t missing = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t entry = find(c, lpn + i);

        if (entry) {
            touch(c, entry - 1);
        } else {
            missing++;
        }
    }
    ftl->drive->count->map_hits += n - missing;
    ftl->drive->count->map_misses += missing;
    if (!missing) {
        own->translated = cmd->progress + n;
        return true;
    }
    own->slots = missing;
    own->stage = STAGE_ROOM;
    c->wanted += missing;
    return false;
}

bool rsd_cache_translate(PageFtl *ftl, Cmd *cmd, uint32_t *end)
{
    PageCmd *own = state_of(cmd);
    MapCache *c = ftl->cache;
    uint32_t map_page = (cmd->pub.lba + cmd->progress) / MAP_ENTRIES;

    if (c->owed && !ftl->drive->failed) {
        update_owed(ftl);
    }
    if (own->translated <= cmd->progress) {
        if (own->stage == STAGE_NEW && look_up(ftl, cmd)) {
            *end = own->translated;
            return true;
        }
        if (own->stage == STAGE_ROOM) {
            /* unless an update says otherwise */
            ftl->refusal = RSD_E_NOMEM;
            make_room(ftl);
            if (c->free < own->slots) {
                return false;
            }
            c->free -= own->slots;
            c->wanted -= own->slots;
            set_stage(ftl, cmd, c->pages[map_page].where ? STAGE_LOAD
                                                         : STAGE_LOADED);
        }
        if (own->stage == STAGE_LOAD && !c->pages[map_page].loading &&
            is_buffered(ftl, map_page)) {
            set_stage(ftl, cmd, STAGE_LOADED);
        }
        if (own->stage == STAGE_LOAD) {
            Job *job = c->pages[map_page].loading ? NULL
                                                  : new_job(ftl, map_page);

            if (job) {
                job->load = true;
                c->pages[map_page].loading = read_map_page(ftl, job);
                if (!c->pages[map_page].loading) {
                    free_job(c, job);
                }
            }
            ftl->refusal = RSD_E_NOMEM;
            return false;
        }
        fill(ftl, cmd);
    }
    *end = own->translated;
    return true;
}

void rsd_cache_give_up(PageFtl *ftl, Cmd *cmd)
{
    PageCmd *own = state_of(cmd);
    MapCache *c = ftl->cache;

    if (own->stage == STAGE_ROOM) {
        c->wanted -= own->slots;
    } else {
        c->free += own->slots;
    }
    own->slots = 0;
    set_stage(ftl, cmd, STAGE_NEW);
}

uint32_t rsd_cache_awaits(const PageFtl *ftl, const Cmd *cmd)
{
    const PageCmd *own = state_of(cmd);
    uint32_t map_page = (cmd->pub.lba + cmd->progress) / MAP_ENTRIES;

    if (own->stage == STAGE_ROOM) {
        return own->slots;
    }
    return own->stage == STAGE_LOAD && ftl->cache->pages[map_page].loading
           ? UINT32_MAX : 0;
}

uint32_t rsd_cache_grants(const PageFtl *ftl)
{
    const MapCache *c = ftl->cache;

    /* make_room(), or update_owed(), has something to do */
    if (c->owed || (ftl->drive->read_only && !c->stopped) ||
        (c->free + c->leaving < c->wanted &&
         (c->probation.len || c->guarded.len))) {
        return UINT32_MAX - 1;
    }
    return c->free < UINT32_MAX - 1 ? c->free : UINT32_MAX - 1;
}

void rsd_cache_written(PageFtl *ftl, uint32_t lpn)
{
    MapCache *c = ftl->cache;

    if (!find(c, lpn)) {
        /* evicted since, while the command waited for a free page */
        if (!c->free) {
            update_soon(ftl, lpn / MAP_ENTRIES);
            return;
        }
        c->free--;
        insert(c, lpn);
    }
    c->entries[find(c, lpn) - 1].dirty = true;
}

void rsd_cache_trimmed(PageFtl *ftl, uint32_t lpn)
{
    MapCache *c = ftl->cache;
    uint32_t entry = find(c, lpn);

    if (entry) {
        c->entries[entry - 1].dirty = true;
    } else if (c->pages[lpn / MAP_ENTRIES].where) {
        update_soon(ftl, lpn / MAP_ENTRIES);
    }
}

static size_t buckets_size(const MapCache *c)
{
    return (UINT64_C(1) << (32 - c->shift)) * sizeof(uint32_t);
}

static void empty_cache(MapCache *c)
{
    c->used = 0;
    c->leaving = 0;
    c->free = c->num_entries;
    c->unused = RSD_NONE;
    c->probation = c->guarded = (List){ RSD_NONE, RSD_NONE, 0 };
}

void rsd_cache_format(PageFtl *ftl)
{
    MapCache *c = ftl->cache;

    /* updates that have not come to their program will not */
    c->formats++;
    c->owed = 0;
    for (uint32_t die = 0; die < ftl->drive->dies; die++) {
        ftl->dies[die].victim.num_moved = 0;
    }
    /* no command waits for entries, and nobody has been promised any */
    memset(c->buckets, 0, buckets_size(c));
    empty_cache(c);
    for (uint64_t i = 0; i < rsd_map_pages_of(ftl->ns); i++) {
        MapPage *page = &c->pages[i];

        page->again = page->owed = false;
        page->entries = RSD_NONE;
        if (page->where) {
            uint32_t number = page->where - 1;

            page->where = 0;
            rsd_page_invalidate(ftl, number);
        }
    }
}

/*
 * Victims
 */

uint32_t rsd_cache_updates(const PageFtl *ftl, uint32_t block)
{
    MapCache *c = ftl->cache;
    uint32_t end = rsd_rec_next(ftl->drive->media.rec[block]), n = 0;

    if (ftl->blocks[block].map) {
        return 0;               /* only the directory changes */
    }
    c->looks++;
    for (uint32_t page = 0; page < end; page++) {
        uint32_t number = page_number(ftl, block, page);
        uint32_t lpn = ftl->p2l[number];
        MapPage *map_page = &c->pages[lpn / MAP_ENTRIES];

        if (*map_entry(ftl, lpn) == number + 1 && !find(c, lpn) &&
            map_page->looked != c->looks) {
            map_page->looked = c->looks;
            n++;
        }
    }
    return n;
}

void rsd_cache_moved(PageFtl *ftl, Victim *v, uint32_t lpn)
{
    MapCache *c = ftl->cache;
    uint32_t entry = find(c, lpn);

    if (entry) {
        c->entries[entry - 1].dirty = true;
    } else {
        v->moved[v->num_moved++] = lpn / MAP_ENTRIES;
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

bool rsd_cache_settle(PageFtl *ftl, uint32_t die)
{
    Victim *v = &ftl->dies[die].victim;

    qsort(v->moved, v->num_moved, sizeof(*v->moved), by_number);
    v->settling = true;         /* updates may be done at once */
    while (v->num_moved) {
        uint32_t map_page = v->moved[v->num_moved - 1];

        v->updates++;
        if (!start_update(ftl, map_page, die)) {
            v->updates--;
            v->stalled = true;
            break;
        }
        while (v->num_moved && v->moved[v->num_moved - 1] == map_page) {
            v->num_moved--;
        }
    }
    v->settling = false;
    return !v->num_moved && !v->updates;
}

bool rsd_cache_is_current(const PageFtl *ftl, uint32_t number)
{
    return ftl->cache->pages[ftl->p2l[number]].where == number + 1;
}

bool rsd_cache_copy(PageFtl *ftl, uint32_t number, uint8_t *buf)
{
    Job *job = new_job(ftl, ftl->p2l[number]);

    if (!job) {
        return false;
    }
    job->die = die_of(ftl, block_of(ftl, number));
    job->copy = true;
    if (!program_update(ftl, job, buf)) {
        free_job(ftl->cache, job);
        return false;
    }
    return true;
}

/*
 * Operations that are done
 */

static void loaded(PageFtl *ftl, uint32_t map_page)
{
    MapPage *page = &ftl->cache->pages[map_page];

    page->loading = false;
    while (page->waiting) {
        Cmd *cmd = page->waiting;

        set_stage(ftl, cmd, STAGE_LOADED);
        ftl->up->mark(ftl, cmd);
    }
}

/* Nobody waits for it any more. */
static void end_update(PageFtl *ftl, Job *job)
{
    MapPage *page = &ftl->cache->pages[job->map_page];

    if (job->die == RSD_NONE) {
        page->updating = page->composed = false;
    } else if (job->copy) {
        ftl->dies[job->die].victim.copying--;
    } else {
        ftl->dies[job->die].victim.updates--;
    }
    if (job->die == RSD_NONE && page->again) {
        page->again = false;
        update_soon(ftl, job->map_page);
    }
    evict_written(ftl, job->map_page);
    if (job->die != RSD_NONE && !ftl->dies[job->die].victim.stalled &&
        !ftl->dies[job->die].victim.settling) {
        ftl->up->emptied(ftl, job->die);
    }
}

/* An update is programmed: its old page is not needed any more. */
static void updated(PageFtl *ftl, Job *job, uint32_t old)
{
    ftl->cache->pages[job->map_page].writing--;
    if (old) {
        rsd_page_invalidate(ftl, old - 1);
    }
    end_update(ftl, job);
}

void rsd_cache_op_buffered(PageFtl *ftl, Op *op)
{
    Job *job = op->job;

    ftl->retry = true;
    if (!ftl->drive->failed) {
        ftl->cache->pages[job->map_page].writing--;
        end_update(ftl, job);
    }
    free_job(ftl->cache, job);
}

void rsd_cache_op_done(PageFtl *ftl, Op *op)
{
    Job *job = op->job;
    bool read = op->kind == OP_READ;
    uint32_t block = op->block, page = op->page;

    rsd_buf_free(ftl->drive, op->buf);
    rsd_op_finish(ftl->drive, op);
    ftl->retry = true;
    if (ftl->drive->failed && !job->load) {
        free_job(ftl->cache, job);
        return;
    }
    if (read && !job->load) {
        write_update(ftl, job);
        return;
    }
    if (read) {
        loaded(ftl, job->map_page);
    } else {
        uint32_t number = page_number(ftl, block, page);
        uint32_t old = ftl->p2l[number];

        ftl->p2l[number] = job->map_page;
        if (page + 1 == ftl->drive->pages) {
            ftl->up->closed(ftl, block);
        }
        updated(ftl, job, old);
    }
    free_job(ftl->cache, job);
}

/*
 * Opening and closing
 */

void rsd_cache_recover(PageFtl *ftl, uint32_t number, const RsdSpare *spare)
{
    MapPage *page = &ftl->cache->pages[spare->lpn];

    if (page->where) {
        uint32_t other = page->where - 1;
        const RsdSpare *its = (const RsdSpare *)
            (rsd_media_oob(&ftl->drive->media, block_of(ftl, other),
                           page_of(ftl, other)) + RSD_SPARE_OFFSET);

        if (its->seq >= spare->seq) {
            return;
        }
        ftl->blocks[block_of(ftl, other)].valid--;
    }
    page->where = number + 1;
    ftl->blocks[block_of(ftl, number)].valid++;
}

static size_t moved_size(const PageFtl *ftl)
{
    return ftl->drive->pages * sizeof(uint32_t);
}

static size_t entries_size(const MapCache *c)
{
    return c->num_entries * sizeof(Entry);
}

bool rsd_cache_init(PageFtl *ftl)
{
    RsdDrive *drive = ftl->drive;
    MapCache *c = rsd_alloc(drive, sizeof(*c));

    ftl->cache = c;
    if (!c) {
        return false;
    }
    c->num_entries = drive->cfg.map_cache / MAP_ENTRY_BYTES;
    empty_cache(c);
    c->pages = rsd_alloc(drive, rsd_map_pages_of(ftl->ns) * sizeof(MapPage));
    c->shift = 31;
    while (c->num_entries >> (32 - c->shift)) {
        c->shift--;
    }
    c->buckets = rsd_alloc(drive, buckets_size(c));
    c->entries = rsd_alloc(drive, entries_size(c));
    if (!c->pages || !c->buckets || !c->entries) {
        return false;
    }
    for (uint64_t i = 0; i < rsd_map_pages_of(ftl->ns); i++) {
        c->pages[i].entries = RSD_NONE;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        ftl->dies[d].victim.moved = rsd_alloc(drive, moved_size(ftl));
        if (!ftl->dies[d].victim.moved) {
            return false;
        }
    }
    return true;
}

void rsd_cache_fini(PageFtl *ftl)
{
    RsdDrive *drive = ftl->drive;
    MapCache *c = ftl->cache;

    if (!c) {
        return;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_release(drive, ftl->dies[d].victim.moved, moved_size(ftl));
    }
    while (c->chunks) {
        JobChunk *chunk = c->chunks;

        c->chunks = chunk->next;
        rsd_release(drive, chunk, sizeof(*chunk));
    }
    rsd_release(drive, c->entries, entries_size(c));
    rsd_release(drive, c->buckets, buckets_size(c));
    rsd_release(drive, c->pages, rsd_map_pages_of(ftl->ns) * sizeof(MapPage));
    rsd_release(drive, c, sizeof(*c));
    ftl->cache = NULL;
}
