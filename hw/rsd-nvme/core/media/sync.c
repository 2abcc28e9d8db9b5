/*
 * A media file that survives a power cut of the host's machine (host-sync).
 *
 * Without this, what the machine leaves of the stores since the last sync is
 * any of them. With it, the file is what it was at the last sync, which is a
 * state that a killed process might have left:
 *
 *   tables   are stored into in memory: their mapping is private. A sync brings
 *            the pages of them that were stored into to the file, all or none:
 *            first to a second file, FILE.sync, then to their place.
 *   pages,   and units of the buffer, go to the file at once. As long as the
 *            tables on the disk do not say that they are there, they are not.
 *            What those tables do say is there is not overwritten: before that,
 *            there is a sync. So a block that was erased is not programmed
 *            before the copies of what was in it, and the erase, are on the
 *            disk; nor is its space given back.
 *
 * A sync is: the media file to the disk, with the tables of the sync before;
 * the new tables to FILE.sync, and that to the disk; the tables to their place.
 * If FILE.sync is whole when the file is opened, what it has goes to its place
 * once more. If it is not, its sync had not come to an end, and the tables of
 * the one before are in place.
 *
 *     header    magic, number of pages, id of the sync before, id of this one
 *     numbers   8 bytes a page: where it is in the tables
 *     pages     4096 bytes each
 *
 * The header is a page, each other part begins at a multiple of 4096; integers
 * are little-endian. An id is a digest of the numbers and pages and of the id
 * before. The header of the media file has that of its last sync, so that
 * FILE.sync is known to belong to it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media.h"

#define MAGIC "RSDSYNC"
#define PAGE 4096u
#define SLOT_BYTES (RSD_PAGE_SIZE + RSD_OOB_SIZE)

typedef unsigned long long ull;

typedef struct SyncHeader {
    char magic[8];
    uint64_t pages;
    uint64_t before, id;
} SyncHeader;

_Static_assert(offsetof(SyncHeader, pages) == 8, "pages");
_Static_assert(offsetof(SyncHeader, before) == 16, "before");
_Static_assert(offsetof(SyncHeader, id) == 24, "id");
_Static_assert(sizeof(SyncHeader) == 32, "the header of FILE.sync");

struct RsdSync {
    int fd;                     /* FILE.sync */
    char *path;
    int error;                  /* of the sync that failed: -errno, or 0 */
    uint64_t *stored;           /* a bit a page of the tables: since the sync */
    uint64_t num_stored;
    uint8_t *buf;               /* what goes to FILE.sync, */
    size_t size;                /* and how much of it there can be */
    /* what the tables on the disk say is there: */
    uint32_t *next;             /* of each block, slots programmed */
    uint32_t *taken;            /* of each place for a unit, slots */
    uint8_t *used;              /* is that place of a random write area? */
    uint32_t blocks;
};

static char *sync_path(const char *path)
{
    char *name;

    return asprintf(&name, "%s.sync", path) < 0 ? NULL : name;
}

/* Bytes of FILE.sync before the pages */
static size_t pages_at(uint64_t pages)
{
    return PAGE + rsd_div_round_up(pages * sizeof(uint64_t), PAGE) * PAGE;
}

static uint64_t *numbers_in(uint8_t *buf)
{
    return (uint64_t *)(buf + PAGE);
}

static uint64_t digest(const uint8_t *buf, uint64_t before, uint64_t pages)
{
    const uint64_t *word = (const uint64_t *)(buf + PAGE);
    uint64_t words = (pages_at(pages) + pages * PAGE - PAGE) / sizeof(*word);
    uint64_t id = rsd_random(before, pages);

    for (uint64_t i = 0; i < words; i++) {
        id = rsd_random(id, word[i]);
    }
    return id ? id : 1;         /* 0 is that of a file without a sync */
}

/*
 * Of a file that is opened
 */

/* All of a file, or NULL: it is not there, or cannot be read. */
static uint8_t *read_all(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *buf = NULL;
    size_t done = 0;
    struct stat st;

    *size = 0;
    if (fd >= 0 && !fstat(fd, &st) && st.st_size >= (off_t)PAGE) {
        buf = malloc(st.st_size);
    }
    while (buf && done < (size_t)st.st_size) {
        ssize_t n = read(fd, buf + done, st.st_size - done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            free(buf);
            buf = NULL;
        }
        done += n;
    }
    if (fd >= 0) {
        close(fd);
    }
    *size = done;
    return buf;
}

/* Has the sync come to an end? */
static bool is_whole(const uint8_t *buf, size_t size)
{
    const SyncHeader *h = (const SyncHeader *)buf;

    return !memcmp(h->magic, MAGIC, sizeof(MAGIC)) &&
           h->pages && h->pages <= size / PAGE &&
           pages_at(h->pages) + h->pages * PAGE <= size &&
           digest(buf, h->before, h->pages) == h->id;
}

RsdSyncFound rsd_sync_find(const char *path, uint64_t id, uint64_t table_bytes,
                           char err[RSD_ERR_LEN])
{
    RsdSyncFound found = { .ok = true };
    char *name = sync_path(path);
    const SyncHeader *h;
    size_t size;

    if (!name) {
        return found;
    }
    found.buf = read_all(name, &size);
    if (found.buf && !is_whole(found.buf, size)) {
        free(found.buf);
        found.buf = NULL;
    }
    h = (const SyncHeader *)found.buf;
    if (h && h->id != id && h->before != id) {
        rsd_set_error(err, "%s does not belong to the %s that is there, which "
                      "is a copy, or was used without it: restore the one that "
                      "it belongs to, or remove it", name, path);
        found.ok = false;
    }
    for (uint64_t i = 0; h && found.ok && i < h->pages; i++) {
        if (numbers_in(found.buf)[i] >= table_bytes / PAGE) {
            rsd_set_error(err, "%s is of a drive of another size than %s: "
                          "remove it", name, path);
            found.ok = false;
        }
    }
    if (h && found.ok) {
        found.pages = h->pages;
        found.id = h->id;
    }
    free(name);
    return found;
}

const uint8_t *rsd_sync_page(const RsdSyncFound *found, uint64_t i,
                             uint64_t *off)
{
    *off = numbers_in(found->buf)[i] * PAGE;
    return found->buf + pages_at(found->pages) + i * PAGE;
}

void rsd_sync_forget(const char *path)
{
    char *name = sync_path(path);

    if (name) {
        unlink(name);
        free(name);
    }
}

/*
 * While it is open
 */

static void note_stored(RsdSync *s, uint64_t off, uint64_t len)
{
    for (uint64_t p = off / PAGE; p <= (off + len - 1) / PAGE; p++) {
        uint64_t bit = UINT64_C(1) << p % 64;

        s->num_stored += !(s->stored[p / 64] & bit);
        s->stored[p / 64] |= bit;
    }
}

/* The tables in memory are those on the disk, as far as that page has them. */
static void learn_page(const RsdMedia *media, RsdSync *s, uint64_t off)
{
    uint64_t rec_off = (const uint8_t *)media->rec - media->base;
    uint64_t unit_off = media->units
                        ? (const uint8_t *)media->units - media->base : 0;
    uint64_t zrwa_off = (const uint8_t *)media->zrwa - media->base;

    for (uint64_t i = 0; i < PAGE / sizeof(*media->rec); i++) {
        uint64_t b = (off - rec_off) / sizeof(*media->rec) + i;

        if (off >= rec_off && b < s->blocks) {
            s->next[b] = rsd_rec_next(media->rec[b]);
        }
    }
    for (uint64_t i = 0; i < PAGE / sizeof(*media->units); i++) {
        uint64_t u = (off - unit_off) / sizeof(*media->units) + i;

        if (media->units && off >= unit_off && u < media->places) {
            s->taken[u] = media->units[u].taken;
        }
    }
    for (uint64_t i = 0; i < PAGE / sizeof(*media->zrwa); i++) {
        uint64_t z = (off - zrwa_off) / sizeof(*media->zrwa) + i;

        if (off >= zrwa_off && z < media->zrwa_places) {
            s->used[z] = media->zrwa[z] != 0;
        }
    }
}

/* The pages that were stored into, as they are to be in FILE.sync. Or NULL */
static SyncHeader *gather(const RsdMedia *media, RsdSync *s)
{
    size_t at = pages_at(s->num_stored), size = at + s->num_stored * PAGE;
    uint64_t n = 0;
    SyncHeader *h;

    if (size > s->size) {
        free(s->buf);
        s->size = 0;
        s->buf = malloc(size);
        if (!s->buf) {
            return NULL;
        }
        s->size = size;
    }
    memset(s->buf, 0, at);
    for (uint64_t p = 0; p < media->table_bytes / PAGE; p++) {
        if (s->stored[p / 64] >> p % 64 & 1) {
            numbers_in(s->buf)[n] = p;
            memcpy(s->buf + at + n++ * PAGE, media->base + p * PAGE, PAGE);
        }
    }
    assert(n == s->num_stored);
    h = (SyncHeader *)s->buf;
    *h = (SyncHeader){ .magic = MAGIC, .pages = n,
                       .before = *media->sync_id };
    h->id = digest(s->buf, h->before, n);
    return h;
}

static bool put_all(int fd, const uint8_t *buf, size_t len, uint64_t off)
{
    while (len) {
        ssize_t n = pwrite(fd, buf, len, off);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            buf += n;
            off += n;
            len -= n;
        }
    }
    return true;
}

static bool commit(RsdMedia *media, RsdSync *s)
{
    SyncHeader *h;
    size_t at;

    note_stored(s, 0, 1);       /* it has the id */
    note_stored(s, (const uint8_t *)media->counters - media->base,
                sizeof(*media->counters));
    h = gather(media, s);
    if (!h) {
        errno = ENOMEM;
        return false;
    }
    at = pages_at(h->pages);
    if (fdatasync(media->fd) < 0 ||
        !put_all(s->fd, s->buf, at + h->pages * PAGE, 0) ||
        fdatasync(s->fd) < 0) {
        return false;
    }
    *media->sync_id = h->id;
    memcpy(s->buf + at, media->base, PAGE);     /* page 0 comes first */
    for (uint64_t i = 0; i < h->pages; i++) {
        uint64_t off = numbers_in(s->buf)[i] * PAGE;

        if (!put_all(media->fd, s->buf + at + i * PAGE, PAGE, off)) {
            return false;
        }
        learn_page(media, s, off);
    }
    memset(s->stored, 0, rsd_div_round_up(media->table_bytes / PAGE, 64) *
                         sizeof(*s->stored));
    s->num_stored = 0;
    return true;
}

static int sync_tables(RsdMedia *media, RsdSync *s)
{
    if (!s->error && !commit(media, s)) {
        s->error = -errno;
    }
    return s->error;
}

int rsd_media_to_disk(RsdMedia *media)
{
    RsdSync *s = media->sync;

    if (media->fd < 0) {
        return 0;
    }
    if (!s) {
        return fdatasync(media->fd) < 0 ? -errno : 0;
    }
    /* where nothing was stored, nothing but counters has changed */
    return s->num_stored ? sync_tables(media, s) : s->error;
}

/*
 * What the tables on the disk say is there will be overwritten. If the sync
 * fails, so does whatever is stored now, and all that comes after it.
 */
static void sync_before(RsdMedia *media)
{
    if (rsd_media_to_disk(media)) {
        media->faults.count++;
    }
}

static void before_store(void *state, uint64_t off, const void *value,
                         uint32_t len)
{
    RsdMedia *media = state;

    (void)value;
    note_stored(media->sync, off, len);
}

static void before_page(void *state, uint32_t block, uint32_t page)
{
    RsdMedia *media = state;

    if (page < media->sync->next[block]) {
        sync_before(media);
    }
}

static void before_data(void *state, uint64_t off, uint32_t len)
{
    RsdMedia *media = state;
    RsdSync *s = media->sync;
    bool there;

    (void)len;
    if (media->zrwa_places && off >= media->zrwa_off) {
        there = s->used[(off - media->zrwa_off) / SLOT_BYTES];
    } else {
        off -= media->unit_off;
        there = off % media->unit_bytes / SLOT_BYTES <
                s->taken[off / media->unit_bytes];
    }
    if (there) {
        sync_before(media);
    }
}

/* What is on the disk of a block may still be wanted. */
static bool keeps(const void *state, uint32_t block)
{
    (void)state;
    (void)block;
    return true;
}

static const RsdJournal sync_journal = {
    .before_store = before_store,
    .before_data = before_data,
    .before_page = before_page,
    .keeps = keeps,
};

bool rsd_sync_is_taken(const RsdMedia *media, uint32_t place)
{
    return media->sync && media->sync->taken[place];
}

bool rsd_sync_has_failed(const RsdMedia *media)
{
    return media->sync && media->sync->error;
}

/* A name in the directory of that path is on the disk. */
static bool sync_directory(const char *path)
{
    char *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;
    bool ok;
    int fd;

    if (slash) {
        slash[slash == copy] = 0;
    }
    fd = copy ? open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
              : -1;
    ok = fd >= 0 && !fsync(fd);
    if (fd >= 0) {
        close(fd);
    }
    free(copy);
    return ok;
}

static void free_sync(RsdSync *s)
{
    if (s->fd >= 0) {
        close(s->fd);
    }
    free(s->path);
    free(s->stored);
    free(s->buf);
    free(s->next);
    free(s->taken);
    free(s->used);
    free(s);
}

static RsdSync *new_sync(const RsdMedia *media, const char *path,
                         uint32_t blocks)
{
    RsdSync *s = calloc(1, sizeof(*s));

    if (!s) {
        return NULL;
    }
    s->fd = -1;
    s->blocks = blocks;
    s->path = sync_path(path);
    s->stored = calloc(rsd_div_round_up(media->table_bytes / PAGE, 64),
                       sizeof(*s->stored));
    s->next = calloc(blocks, sizeof(*s->next));
    s->taken = calloc(media->places + 1, sizeof(*s->taken));
    s->used = calloc(media->zrwa_places + 1, sizeof(*s->used));
    if (!s->path || !s->stored || !s->next || !s->taken || !s->used) {
        free_sync(s);
        return NULL;
    }
    return s;
}

/* Stores into the tables stay in memory from now on. */
static bool take_tables(RsdMedia *media)
{
    return media->table_bytes % getauxval(AT_PAGESZ) == 0 &&
           mmap(media->base, media->table_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, media->fd, 0) !=
           MAP_FAILED;
}

bool rsd_media_begin_sync(RsdMedia *media, const char *path, uint32_t blocks,
                          char err[RSD_ERR_LEN])
{
    RsdSync *s = new_sync(media, path, blocks);

    if (!s) {
        rsd_set_error(err, "%s: no memory for host-sync", path);
        return false;
    }
    s->fd = open(s->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (s->fd < 0) {
        rsd_set_error(err, "%s: cannot be made, and host-sync needs it: %s",
                      s->path, strerror(errno));
        free_sync(s);
        return false;
    }
    if (!sync_directory(path) || fdatasync(media->fd) < 0 ||
        !take_tables(media)) {
        rsd_set_error(err, "%s: cannot be brought to the disk (%s): leave "
                      "out host-sync, or put it on another disk", path,
                      strerror(errno));
        unlink(s->path);
        free_sync(s);
        return false;
    }
    for (uint64_t off = 0; off < media->table_bytes; off += PAGE) {
        learn_page(media, s, off);
    }
    media->sync = s;
    media->journal = &sync_journal;
    media->journal_state = media;
    return true;
}

void rsd_media_end_sync(RsdMedia *media)
{
    RsdSync *s = media->sync;

    if (!s) {
        return;
    }
    /* if it fails, FILE.sync is still needed */
    if (!sync_tables(media, s) && !fdatasync(media->fd)) {
        unlink(s->path);
    }
    media->journal = NULL;
    media->sync = NULL;
    free_sync(s);
}
