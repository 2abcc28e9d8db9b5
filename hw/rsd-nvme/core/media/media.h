/*
 * rsd core, floor of the media: the file behind the array, or anonymous memory
 * in its place. It stores and loads; what may be stored where is the array's.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_MEDIA_H
#define RSD_MEDIA_H

#include <string.h>

#include "../api/config.h"

/*
 * There is one 64-bit word for each flash block. So a block changes its state
 * by a single store, which a killed process has made or has not made.
 */

enum {
    RSD_BLOCK_BAD = 1,      /* never used, or no longer */
    RSD_BLOCK_DIRTY = 2,    /* content is obsolete: erase before programming */
    RSD_BLOCK_WORN = 4,     /* made dirty by wear levelling, not by the host */
    RSD_BLOCK_GROWN = 8,    /* bad, but not from the factory */
    RSD_BLOCK_TORN = 16,    /* has torn or lost pages: see nand.c */
    RSD_BLOCK_WEAK = 32,    /* its next erase fails: see inject.c */
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

/* This is the file, or anonymous memory in its place: see media.c. */

typedef struct RsdMediaHeader RsdMediaHeader;

typedef struct RsdMediaZone {
    uint8_t state;
    uint8_t attrs;
    uint8_t zrwa;               /* 1: it has a random write area */
    uint8_t reserved[5];
} RsdMediaZone;

_Static_assert(offsetof(RsdMediaZone, zrwa) == 2, "zrwa");
_Static_assert(sizeof(RsdMediaZone) == 8, "a zone record is 8 bytes");

/* This is a unit in the write buffer that survives: see buffer.c. */
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

/*
 * The journal sees each change of the file before it happens, so that it can be
 * undone. The media calls it and knows nothing else of it.
 */
typedef struct RsdJournal {
    /*
     * Is called before these bytes of the tables are stored at that place of
     * the file.
     */
    void (*before_store)(void *state, uint64_t off, const void *value,
                         uint32_t len);
    /* Bytes behind the tables are overwritten; */
    void (*before_data)(void *state, uint64_t off, uint32_t len);
    /* a page is, if it matters. */
    void (*before_page)(void *state, uint32_t block, uint32_t page);
    /* Says whether the content of that block is still wanted. */
    bool (*keeps)(const void *state, uint32_t block);
} RsdJournal;

/* These are pages of the mapping that the host could not back: see fault.c. */
#define RSD_LOST_PAGES 64u

typedef struct RsdFaults {
    uint32_t count;             /* of pages that are memory now */
    uint32_t num_lost;
    bool all_lost;              /* one was of the tables, or they are too many */
    uint64_t lost[RSD_LOST_PAGES];      /* in the file: those not to be read */
} RsdFaults;

typedef struct RsdMedia {
    int fd;                     /* -1: what is stored stays in memory */
    int locked;                 /* the file, also of a view; -1: none */
    const RsdJournal *journal;  /* NULL: none is kept */
    void *journal_state;
    uint8_t *base;
    uint64_t mapped;            /* bytes from base */
    uint64_t table_bytes;       /* of these, tables */
    RsdMediaHeader *header;     /* NULL in memory */
    uint64_t *rec;              /* block records, die by die */
    uint32_t *map;
    union {                     /* a bit an LBA, of a conventional one */
        uint64_t *trim;         /* 1: trimmed */
        uint64_t *written;      /* 1: written, not trimmed; with ftl=disk */
    };
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
     * The host failed to store a page. Pages behind it in its block cannot be
     * programmed any more, and some content cannot be read.
     */
    bool failed;
    uint64_t *zrwa;             /* a word a place: see zrwa.c */
    uint64_t zrwa_off;          /* in the file: the first place */
    uint32_t zrwa_places;
    RsdFaults faults;
    struct RsdMedia *next_watched;
    struct RsdSync *sync;       /* NULL: without host-sync; see sync.c */
    uint64_t *sync_id;          /* of the last sync in the file; 0: none */
} RsdMedia;

/*
 * Opens the media. On failure err is set, nothing is held and the file is as it
 * was. A view never changes the file: stores stay in memory.
 */
bool rsd_media_open(RsdMedia *media, const char *path, RsdConfig *cfg,
                    bool view, char err[RSD_ERR_LEN]);
bool rsd_media_open_memory(RsdMedia *media, const RsdConfig *cfg,
                           char err[RSD_ERR_LEN]);
void rsd_media_close(RsdMedia *media);
/* The write buffer is empty, so its places are free until they are claimed. */
void rsd_media_power_on(RsdMedia *media);
/*
 * Returns a number that tells files apart by their history: their seed, how
 * often each block was erased, the counters. Equal runs have equal ones.
 */
uint64_t rsd_media_digest(const RsdMedia *media);
/*
 * These are for the log that has the whole history of the file; 0 says that
 * none has.
 */
uint64_t rsd_media_get_log_id(const RsdMedia *media);
void rsd_media_set_log_id(RsdMedia *media, uint64_t id);
/*
 * These copy bytes of the file, within one part. They return false if the host
 * fails to.
 */
bool rsd_media_get(const RsdMedia *media, uint64_t off, void *to,
                   uint32_t len);
bool rsd_media_put(const RsdMedia *media, uint64_t off, const void *from,
                   uint32_t len);
/*
 * These are the OOB bytes that the host sees of namespace 0, or of 1, kept in
 * the file.
 */
uint32_t rsd_media_get_oob(const RsdMedia *media, uint32_t ns);
void rsd_media_set_oob(RsdMedia *media, uint32_t ns, uint32_t oob);
/* Saves a zone's record, and its extension (ext NULL: zeroes) of len bytes. */
void rsd_media_save_zone(RsdMedia *media, uint32_t zone, uint8_t state,
                         uint8_t attrs);
void rsd_media_save_ext(RsdMedia *media, uint32_t zone, const uint8_t *ext,
                        uint32_t len);
/*
 * Takes host space for a block, so that storing into it cannot fail. Returns 0
 * or -errno.
 */
int rsd_media_reserve(RsdMedia *media, uint32_t block);
/* Does the same for its first slots. */
int rsd_media_reserve_slots(RsdMedia *media, uint32_t block, uint32_t slots);
/* Does the same only for the data of n slots of it, from "page" on. */
int rsd_media_reserve_data(RsdMedia *media, uint32_t block, uint32_t page,
                           uint32_t n);
/* Gives that space back; the content is lost. */
void rsd_media_release(RsdMedia *media, uint32_t block);

/*
 * Puts a page into the file by a system call, which is cheaper than the fault
 * of a first store into the mapping. Returns false if the host fails to.
 */
bool rsd_media_store(RsdMedia *media, uint32_t block, uint32_t page,
                     const uint8_t *data);
/* Does the same in the other direction. */
bool rsd_media_load(RsdMedia *media, uint32_t block, uint32_t page,
                    uint8_t *data);

/*
 * Places for units of the write buffer. All of it does nothing in memory.
 *
 * Host space for so many places in use at once (all there are at most): storing
 * into them cannot fail then.
 */
RsdStatus rsd_media_reserve_places(RsdMedia *media, uint64_t count);
/* Returns a free place with host space. There is one, if it was reserved. */
uint32_t rsd_media_place(RsdMedia *media);
/*
 * Marks a place as in use, as its record says. Returns false if there is no
 * host space.
 */
bool rsd_media_claim_place(RsdMedia *media, uint32_t place);
/*
 * Adds slots from "from" to "to" of a unit, data then OOB each, and notes it.
 * Returns false if the host fails to.
 */
bool rsd_media_store_unit(RsdMedia *media, uint32_t place, uint32_t block,
                          uint32_t page, const uint8_t *payload, uint32_t from,
                          uint32_t to);
bool rsd_media_load_unit(RsdMedia *media, uint32_t place, uint8_t *payload,
                         uint32_t slots);
/*
 * Says whether there is a part of the unit that begins at that slot of a block.
 */
bool rsd_media_has_unit(const RsdMedia *media, uint32_t block, uint32_t page);
/* Makes the place free. */
void rsd_media_drop_unit(RsdMedia *media, uint32_t place);

/*
 * Places for pages of random write areas; each has a word, which is 0 while it
 * is not in use, and host space. There are none in memory.
 */
/*
 * Stores a page, data then OOB, then its word. Returns false if the host fails
 * to.
 */
bool rsd_media_store_zrwa(RsdMedia *media, uint32_t place, uint64_t word,
                          const uint8_t *payload);
bool rsd_media_load_zrwa(RsdMedia *media, uint32_t place, uint8_t *payload);
/* The place is not in use any more. */
void rsd_media_drop_zrwa(RsdMedia *media, uint32_t place);

/* This is called before each store into a table, with the new content. */
static inline void rsd_media_note(RsdMedia *media, const void *at,
                                  const void *value, uint32_t len)
{
    if (media->journal) {
        media->journal->before_store(media->journal_state,
                                     (const uint8_t *)at - media->base, value,
                                     len);
    }
}

/* Does the same before a page is stored. */
static inline void rsd_media_note_page(RsdMedia *media, uint32_t block,
                                       uint32_t page)
{
    if (media->journal) {
        media->journal->before_page(media->journal_state, block, page);
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
 * The drive notes this in the OOB of each page of a conventional namespace, and
 * rebuilds its map from it. It is little-endian.
 */
typedef struct RsdSpare {
    uint32_t magic;             /* RSD_SPARE_MAGIC: not filler */
    uint32_t kind;              /* the personality's: 0 = a page of the host */
    uint64_t lpn;               /* logical page (LBA), or what kind says */
    uint64_t seq;               /* of two pages of an lpn the higher is newer */
    uint32_t copy;              /* 1: made by collection, or levelling */
    uint32_t reserved;
    uint64_t lost;              /* RSD_SPARE_LOST: the data cannot be read */
    uint8_t reserved2[24];
} RsdSpare;

#define RSD_SPARE_MAGIC UINT32_C(0x45524153)
#define RSD_SPARE_LOST UINT64_C(0x6c6f737470616765)

/*
 * Says whether the OOB of a conventional namespace's page says that its data is
 * lost.
 */
static inline bool rsd_spare_is_lost(const uint8_t oob[RSD_OOB_SIZE])
{
    RsdSpare spare;

    memcpy(&spare, oob + RSD_SPARE_OFFSET, sizeof(spare));
    return spare.lost == RSD_SPARE_LOST && spare.magic == RSD_SPARE_MAGIC;
}

_Static_assert(offsetof(RsdSpare, magic) == 0, "magic");
_Static_assert(offsetof(RsdSpare, kind) == 4, "kind");
_Static_assert(offsetof(RsdSpare, lpn) == 8, "lpn");
_Static_assert(offsetof(RsdSpare, seq) == 16, "seq");
_Static_assert(offsetof(RsdSpare, copy) == 24, "copy");
_Static_assert(offsetof(RsdSpare, lost) == 32, "lost");
/* These are the bytes of a page in memory: its data, then its OOB. */
#define RSD_SLOT_BYTES ((size_t)RSD_PAGE_SIZE + RSD_OOB_SIZE)

_Static_assert(RSD_SPARE_OFFSET + sizeof(RsdSpare) == RSD_OOB_SIZE,
               "the drive's part of the OOB is at its end");

/* fault.c */

/*
 * From now on the process survives pages of the mapping that the host cannot
 * back.
 */
void rsd_media_watch(RsdMedia *media);
void rsd_media_unwatch(RsdMedia *media);
/*
 * This is called in each thread, before it uses a mapping: it may get a SIGBUS.
 */
void rsd_media_may_fault(void);
/*
 * Says whether the content of the mapping there is not the one that was stored.
 */
bool rsd_media_lost(const RsdMedia *media, const void *at);

/* sync.c: a file that survives a power cut of the host's machine */

typedef struct RsdSync RsdSync;

/*
 * This is the content of a FILE.sync; with buf NULL there is none. The caller
 * frees buf.
 */
typedef struct RsdSyncFound {
    bool ok;                    /* else err says why it cannot be used */
    uint8_t *buf;
    uint64_t pages;
    uint64_t id;
} RsdSyncFound;

/* Finds it for a media file whose last sync has that id. */
RsdSyncFound rsd_sync_find(const char *path, uint64_t id, uint64_t table_bytes,
                           char err[RSD_ERR_LEN]);
/* Returns page i of it, ALIGN bytes, and its place in the tables. */
const uint8_t *rsd_sync_page(const RsdSyncFound *found, uint64_t i,
                             uint64_t *off);
/* Removes it, since the media file does not exist any more. */
void rsd_sync_forget(const char *path);
/*
 * This comes before anything is stored: the disk always has the file as it was
 * at the last rsd_media_to_disk(). After false and err, nothing has changed.
 */
bool rsd_media_begin_sync(RsdMedia *media, const char *path, uint32_t blocks,
                          char err[RSD_ERR_LEN]);
/* Makes one last sync. Nothing may be stored after it. */
void rsd_media_end_sync(RsdMedia *media);
/*
 * Puts all stores on the host's disk. Returns 0, or -errno, which is permanent.
 */
int rsd_media_to_disk(RsdMedia *media);
/* Says whether the disk has a unit in that place. */
bool rsd_sync_is_taken(const RsdMedia *media, uint32_t place);
/*
 * Says whether a sync failed. Then nothing is stored outside the tables any
 * more.
 */
bool rsd_sync_has_failed(const RsdMedia *media);

/* factory.c: what the seed decides of blocks */

/*
 * Says whether the factory knows it to be bad. Blocks are numbered through the
 * drive.
 */
bool rsd_factory_is_bad(const RsdConfig *cfg, uint64_t block);
/*
 * Marks the factory bad blocks in fresh records. Returns false and err if a die
 * would keep fewer good blocks than the host sees.
 */
bool rsd_factory_place_bad(const RsdConfig *cfg, uint64_t *rec,
                           char err[RSD_ERR_LEN]);
/*
 * Returns how often a block can be erased; the last time, it fails
 * (life-spread).
 */
uint64_t rsd_factory_life(const RsdConfig *cfg, uint64_t block);

#endif
