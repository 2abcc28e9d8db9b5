/*
 * Random write areas of zones (NVMe ZNS, ZRWA).
 *
 * A zone that has an area takes writes anywhere in the zrwa-size bytes from
 * its write pointer on, in any order, and again. They stay in the write
 * buffer, of which zrwa areas are set aside, and move no write pointer.
 * Committing n pages moves it by n: the first n pages of the area go to the
 * flash, in order, those never written as filler, and the area begins behind
 * them. That happens
 *
 *   by command     a multiple of zrwa-flush bytes, up to the whole area;
 *   by a write     that ends beyond the area, up to zrwa-size beyond: as many
 *                  times zrwa-flush as it takes for its end to be in it;
 *   by a finish    up to the last page written, however many these are. What
 *                  the finish adds comes behind them.
 *
 * A page that is written again before it is committed costs no program. The
 * zone's flash blocks are chosen by the first commit. The zone loses its area
 * when it is finished or full, with all that was in it committed, and when it
 * is reset or formatted, with nothing. Another zone can have it when what is to
 * be committed of it is taken.
 *
 * Taking. Writes and commits wait in the buffer's queue as all writes do, with
 * what is before and behind them. A write's pages are taken one by one; one
 * that is beyond the area first commits zrwa-flush bytes, and as often until
 * it is not. A page of the area is there for it: taking it needs no room. Each
 * page committed is taken as any other is, and needs room if it closes a unit.
 *
 * Reads. What came, in the order in which it came, is read in no time.
 *
 * Completion. As buffer.c says: with ack=buffer when all of it is taken; with
 * ack=program when, besides, the units that it closed are programmed, and the
 * rest is safe.
 *
 * Safety. With plp=on a page is safe when it is taken. With plp=off a flush
 * makes the areas' pages safe, in the protected part of the buffer, without
 * committing them. A write that has to be safe (FUA, or ack=program) waits as
 * if a flush came behind it. What is safe is so until it is programmed: the
 * unit that it is committed to is safe up to it.
 *
 * In the file. A zone's record says that it has an area. A page has a place,
 * and the place a word: zone and page of the zone. A page written again gets
 * another place, whose word is stored before the old one's is cleared, and
 * that before the write is done: of two, either will do. When a page is
 * committed, it is safe in its unit before its word is cleared. So, when the
 * file is opened, words for pages before the write pointer are old ones. Words
 * for pages behind the area are of a flush that was not yet done (plp=off). If
 * some pages of zrwa-flush bytes were committed and others not, the rest
 * follows then. An area in which nothing was written, of an empty zone, is
 * lost. A reset clears the zone's record first: killed after that, it has lost
 * what was in the area, and maybe nothing else.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "zone.h"

#define SLOT_BYTES (RSD_PAGE_SIZE + RSD_OOB_SIZE)

/* A word: page of the zone in bits 0 to 31, and above: */
#define WORD_ZONE_SHIFT 32      /* 26 bits */
#define WORD_VALID (UINT64_C(1) << 63)
#define ZONE_MASK ((UINT64_C(1) << 26) - 1)

_Static_assert(RSD_MAX_BLOCKS <= ZONE_MASK, "a zone's number fits a word");
_Static_assert(RSD_MAX_CAPACITY / RSD_PAGE_SIZE <= UINT64_C(1) << 32,
               "a page's number fits a word");

typedef struct ZrwaPage {
    uint32_t place;             /* in the file, or RSD_NONE */
    bool written;
    bool safe;                  /* as it is now, in the file */
} ZrwaPage;

struct ZrwaArea {
    uint32_t zone;
    uint64_t start;             /* of the zone: its first page */
    uint64_t end;               /* behind the last page that came */
    uint64_t owed;              /* pages to commit before it goes on */
    uint32_t queued;            /* operations in the buffer's queue */
    bool closed;                /* the zone has it no more */
    uint8_t *payload;           /* a ring of slots; NULL without payload */
    ZrwaPage pages[];           /* the same */
};

static ZrwaArea *area_at(const RsdDrive *drive, uint32_t zone)
{
    return drive->zrwa->areas ? drive->zrwa->areas[zone] : NULL;
}

static uint32_t ring(const RsdDrive *drive, uint64_t offset)
{
    return offset % drive->zrwa->size;
}

static uint8_t *payload_of(const ZrwaArea *area, uint32_t i)
{
    return area->payload ? area->payload + (size_t)i * SLOT_BYTES : NULL;
}

static size_t area_size(const RsdDrive *drive)
{
    return sizeof(ZrwaArea) + drive->zrwa->size * sizeof(ZrwaPage);
}

static void dispose(RsdDrive *drive, ZrwaArea *area)
{
    rsd_release(drive, area->payload, (size_t)drive->zrwa->size * SLOT_BYTES);
    rsd_release(drive, area, area_size(drive));
}

static ZrwaArea *new_area(RsdDrive *drive, uint32_t zone)
{
    ZrwaArea *area = rsd_alloc(drive, area_size(drive));

    if (!area) {
        return NULL;
    }
    if (drive->media.data) {
        area->payload = rsd_alloc(drive,
                                  (size_t)drive->zrwa->size * SLOT_BYTES);
        if (!area->payload) {
            dispose(drive, area);
            return NULL;
        }
    }
    area->zone = zone;
    for (uint32_t i = 0; i < drive->zrwa->size; i++) {
        area->pages[i].place = RSD_NONE;
    }
    drive->zrwa->areas[zone] = area;
    drive->zrwa->in_use++;
    return area;
}

static void free_place(RsdDrive *drive, uint32_t place)
{
    rsd_media_drop_zrwa(&drive->media, place);
    drive->zrwa->free_places[drive->zrwa->num_free++] = place;
}

/* The page is in the area no more. */
static void clear_page(RsdDrive *drive, ZrwaPage *page)
{
    if (page->place != RSD_NONE) {
        free_place(drive, page->place);
    }
    *page = (ZrwaPage){ .place = RSD_NONE };
}

/* The zone's record says that it has an area, or not. */
static void mark_zone(RsdDrive *drive, uint32_t zone, uint8_t has)
{
    uint8_t *mark = &drive->media.zones[zone].zrwa;

    rsd_media_note(&drive->media, mark, &has, sizeof(has));
    __atomic_store_n(mark, has, __ATOMIC_RELEASE);
}

static void free_area(RsdDrive *drive, ZrwaArea *area)
{
    /* from here on its words mean nothing */
    mark_zone(drive, area->zone, 0);
    for (uint32_t i = 0; i < drive->zrwa->size; i++) {
        clear_page(drive, &area->pages[i]);
    }
    drive->zrwa->areas[area->zone] = NULL;
    drive->zrwa->in_use--;
    dispose(drive, area);
}

static bool put_in_file(RsdDrive *drive, const ZrwaArea *area,
                        uint32_t place, uint64_t offset)
{
    uint64_t word = WORD_VALID | (uint64_t)area->zone << WORD_ZONE_SHIFT |
                    offset;

    if (drive->failed) {
        return false;
    }
    if (!rsd_media_store_zrwa(&drive->media, place, word,
                              payload_of(area, ring(drive, offset)))) {
        drive->count->media_errors++;
        rsd_drive_fail(drive);
        return false;
    }
    return true;
}

/* The page is to survive, for a command: if it does not, its status says so. */
static void store_page(RsdDrive *drive, ZrwaArea *area, uint64_t offset,
                       Cmd *cmd)
{
    Zrwa *zrwa = drive->zrwa;
    ZrwaPage *page = &area->pages[ring(drive, offset)];
    uint32_t old = page->place, place;

    if (!drive->media.zrwa_places) {
        return;
    }
    place = zrwa->free_places[zrwa->num_free - 1];
    if (!put_in_file(drive, area, place, offset)) {
        cmd->pub.status = RSD_E_MEDIA;
        return;
    }
    zrwa->num_free--;
    page->safe = true;
    page->place = place;
    if (old != RSD_NONE) {
        free_place(drive, old);
    }
}

/*
 * What the zone asks
 */

ZrwaArea *rsd_zrwa_of(const RsdDrive *drive, uint32_t zone)
{
    ZrwaArea *area = area_at(drive, zone);

    return area && !area->closed ? area : NULL;
}

bool rsd_zrwa_closing(const RsdDrive *drive, uint32_t zone)
{
    const ZrwaArea *area = area_at(drive, zone);

    return area && area->closed;
}

uint64_t rsd_zrwa_end(const ZrwaArea *area, uint64_t next)
{
    return area->end > next ? area->end : next;
}

RsdStatus rsd_zrwa_open(RsdDrive *drive, uint32_t zone, uint64_t next)
{
    ZrwaArea *area;

    if (rsd_zrwa_of(drive, zone)) {
        return RSD_OK;
    }
    if (drive->zrwa->in_use >= drive->cfg.zrwa || area_at(drive, zone) ||
        next % drive->zrwa->flush ||
        next == drive->zoned->geo.zone_capacity) {
        return RSD_E_NOZRWA;
    }
    area = new_area(drive, zone);
    if (!area) {
        return RSD_E_NOMEM;
    }
    area->start = next;
    mark_zone(drive, zone, 1);
    return RSD_OK;
}

void rsd_zrwa_queue(Ns *ns, Cmd *cmd, ZrwaArea *area, ZrwaKind kind,
                    uint64_t offset, uint32_t count, Epoch *epoch,
                    uint32_t units)
{
    Op *op = rsd_op_new(ns, OP_PROGRAM, RSD_CAUSE_HOST, 0);

    op->area = kind;
    op->block = area->zone;
    op->page = offset;
    op->count = count;
    op->cmd = cmd;
    cmd->pending++;
    op->job = epoch;
    epoch->refs++;
    area->queued++;
    if (kind == ZRWA_WRITE && offset + count > area->end) {
        area->end = offset + count;
    }
    rsd_buffer_queue_area(ns->drive, op, units);
}

void rsd_zrwa_close(RsdDrive *drive, ZrwaArea *area)
{
    area->closed = true;
    if (!area->queued) {
        free_area(drive, area);
    }
}

void rsd_zrwa_drop(Ns *ns, uint32_t zone)
{
    ZrwaArea *area = area_at(ns->drive, zone);

    if (!area) {
        return;
    }
    area->closed = true;
    area->queued++;             /* it is freed here, not by what is dropped */
    rsd_buffer_drop_area(ns, zone);
    free_area(ns->drive, area);
}

bool rsd_zrwa_holds(const RsdDrive *drive, uint32_t zone)
{
    const ZrwaArea *area = rsd_zrwa_of(drive, zone);

    for (uint32_t i = 0; area && i < drive->zrwa->size; i++) {
        if (area->pages[i].written) {
            return true;
        }
    }
    return false;
}

/*
 * Reading
 */

uint64_t rsd_zrwa_start(const RsdDrive *drive, uint32_t zone, uint64_t next)
{
    const ZrwaArea *area = area_at(drive, zone);

    return area ? area->start : next;
}

/* The youngest write in the queue that has the page, or NULL */
static const Op *find_queued(const RsdDrive *drive, const ZrwaArea *area,
                             uint64_t offset)
{
    const Op *found = NULL;
    uint32_t left = area->queued;

    for (const Op *op = drive->buffer->queue.head; left; op = op->next) {
        if (!op->area || op->block != area->zone) {
            continue;
        }
        left--;
        if (op->area == ZRWA_WRITE && offset >= op->page &&
            offset - op->page < op->count) {
            found = op;
        }
    }
    return found;
}

bool rsd_zrwa_read(RsdDrive *drive, Cmd *cmd, uint32_t index, uint32_t zone,
                   uint64_t offset)
{
    const ZrwaArea *area = area_at(drive, zone);
    uint32_t i = ring(drive, offset);
    const uint8_t *from = NULL;
    uint8_t slot[SLOT_BYTES];
    const Op *op;

    if (!area) {
        return false;
    }
    op = find_queued(drive, area, offset);
    if (op) {
        rsd_cmd_payload(drive, op->ns, op->cmd,
                        op->index + (offset - op->page), slot);
        from = slot;
    } else if (offset - area->start < drive->zrwa->size &&
               area->pages[i].written) {
        from = payload_of(area, i);
    } else {
        return false;
    }
    if (cmd->pub.data) {
        memcpy(cmd->pub.data + (size_t)index * RSD_PAGE_SIZE, from,
               RSD_PAGE_SIZE);
    }
    if (cmd->pub.oob) {
        memcpy(cmd->pub.oob + (size_t)index * cmd->oob_len,
               from + RSD_PAGE_SIZE, cmd->oob_len);
    }
    drive->count->buffer_reads++;
    return true;
}

/*
 * Taking
 */

/* Commits the area's first page. False: there is no room. */
static bool commit_page(RsdDrive *drive, ZrwaArea *area, Op *op)
{
    uint32_t i = ring(drive, area->start), page;
    uint32_t block = drive->zrwa->locate(drive, area->zone, area->start, &page);
    bool written = area->pages[i].written;

    if (!rsd_buffer_commit(drive, op, block, page,
                           written ? payload_of(area, i) : NULL,
                           written ? RSD_CAUSE_HOST : RSD_CAUSE_PAD,
                           area->pages[i].place != RSD_NONE)) {
        return false;
    }
    if (op->area == ZRWA_COMMIT) {
        drive->count->zrwa_explicit++;
    } else {
        drive->count->zrwa_implicit++;
    }
    if (drive->failed) {
        /* its word is what is left of it, maybe */
        area->pages[i].place = RSD_NONE;
    }
    clear_page(drive, &area->pages[i]);
    area->start++;
    area->owed--;
    return true;
}

static void take_page(RsdDrive *drive, ZrwaArea *area, Op *op)
{
    uint32_t i = ring(drive, op->page);

    if (area->pages[i].written) {
        drive->count->zrwa_overwrites++;
    }
    area->pages[i].written = true;
    area->pages[i].safe = false;
    if (area->payload) {
        rsd_cmd_payload(drive, op->ns, op->cmd, op->index,
                        payload_of(area, i));
    }
    if (drive->cfg.plp) {
        store_page(drive, area, op->page, op->cmd);
    }
    op->page++;
    op->index++;
    op->count--;
}

bool rsd_zrwa_take(RsdDrive *drive, Op *op)
{
    ZrwaArea *area = area_at(drive, op->block);

    for (;;) {
        while (area->owed) {
            if (!commit_page(drive, area, op)) {
                return false;
            }
        }
        if (!op->count) {
            return true;
        }
        if (op->area == ZRWA_COMMIT) {
            area->owed = op->count;
            op->count = 0;
        } else if (op->page - area->start >= drive->zrwa->size) {
            area->owed = drive->zrwa->flush;
        } else {
            take_page(drive, area, op);
        }
    }
}

void rsd_zrwa_taken(RsdDrive *drive, const Op *op)
{
    ZrwaArea *area = area_at(drive, op->block);

    if (!--area->queued && area->closed) {
        free_area(drive, area);
    }
}

void rsd_zrwa_secure(RsdDrive *drive, Cmd *cmd)
{
    uint32_t left = drive->zrwa->in_use;

    for (uint32_t zone = 0; left; zone++) {
        ZrwaArea *area = area_at(drive, zone);

        if (!area) {
            continue;
        }
        left--;
        for (uint32_t n = 0; n < drive->zrwa->size; n++) {
            ZrwaPage *page = &area->pages[ring(drive, area->start + n)];

            if (page->written && !page->safe) {
                store_page(drive, area, area->start + n, cmd);
            }
        }
    }
}

/*
 * Opening
 */

static uint32_t word_zone(uint64_t word)
{
    return word >> WORD_ZONE_SHIFT & ZONE_MASK;
}

static bool check_word(const RsdDrive *drive, uint32_t place, char *err)
{
    uint64_t word = drive->media.zrwa[place];

    if (!word || (word & WORD_VALID &&
                  word_zone(word) < drive->zoned->geo.num_zones &&
                  (uint32_t)word < drive->zoned->geo.zone_capacity)) {
        return true;
    }
    rsd_set_error(err, "the media file is corrupt: entry %u of its random "
                  "write areas is %016llx; restore it from a copy, or remove "
                  "it", place, (unsigned long long)word);
    return false;
}

bool rsd_zrwa_load(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    Zrwa *zrwa = drive->zrwa;
    const RsdMedia *media = &drive->media;
    uint32_t zones;

    if (!drive->cfg.zrwa) {
        return true;
    }
    zones = drive->zoned->geo.num_zones;
    zrwa->size = rsd_zrwa_slots(&drive->cfg);
    zrwa->flush = drive->cfg.zrwa_flush / RSD_PAGE_SIZE;
    zrwa->areas = rsd_alloc(drive, zones * sizeof(ZrwaArea *));
    zrwa->free_places = rsd_alloc(drive, (media->zrwa_places + 1) *
                                         sizeof(uint32_t));
    if (!zrwa->areas || !zrwa->free_places) {
        goto no_memory;
    }
    for (uint32_t place = 0; place < media->zrwa_places; place++) {
        if (!check_word(drive, place, err)) {
            return false;
        }
    }
    for (uint32_t zone = 0; zone < zones; zone++) {
        if (!media->zones[zone].zrwa) {
            continue;
        }
        if (zrwa->in_use == drive->cfg.zrwa) {
            rsd_set_error(err, "the media file is corrupt: more zones have a "
                          "random write area than zrwa=%u; restore it from a "
                          "copy, or remove it", zrwa->in_use);
            return false;
        }
        if (!new_area(drive, zone) ||
            rsd_buffer_reserve(drive, zrwa->in_use) != RSD_OK) {
            goto no_memory;
        }
    }
    return true;

no_memory:
    rsd_set_error(err, "no memory or disk space for random write areas: free "
                  "some");
    return false;
}

/* Takes in a word's page, unless there was another word for it. */
static void take_in(RsdDrive *drive, ZrwaArea *area, uint32_t place)
{
    uint64_t word = drive->media.zrwa[place];
    uint32_t i = ring(drive, (uint32_t)word);
    ZrwaPage *page = &area->pages[i];

    if (page->place != RSD_NONE) {
        return;                 /* rsd_zrwa_settled() clears it */
    }
    *page = (ZrwaPage){
        .place = place,
        .written = true,
        .safe = true,
    };
    if (!rsd_media_load_zrwa(&drive->media, place, payload_of(area, i))) {
        drive->count->media_errors++;
    }
}

uint64_t rsd_zrwa_settle(Ns *ns, uint32_t zone, uint64_t next)
{
    RsdDrive *drive = ns->drive;
    ZrwaArea *area = area_at(drive, zone);
    bool any = next;

    if (!area) {
        return next;
    }
    area->start = next;
    for (uint32_t place = 0; place < drive->media.zrwa_places; place++) {
        uint64_t word = drive->media.zrwa[place];
        uint64_t offset = (uint32_t)word;

        if (word && word_zone(word) == zone && offset >= next &&
            offset < next + drive->zrwa->size) {
            take_in(drive, area, place);
            any = true;
            if (offset >= area->end) {
                area->end = offset + 1;
            }
        }
    }
    while (area->start % drive->zrwa->flush) {
        uint32_t i = ring(drive, area->start), page;
        uint32_t block = drive->zrwa->locate(drive, zone, area->start, &page);
        bool written = area->pages[i].written;

        rsd_buffer_commit_now(ns, block, page,
                              written ? payload_of(area, i) : NULL,
                              written ? RSD_CAUSE_HOST : RSD_CAUSE_PAD);
        clear_page(drive, &area->pages[i]);
        area->start++;
    }
    next = area->start;
    if (!any || next == ns->geo.zone_capacity) {
        rsd_zrwa_close(drive, area);
    }
    return next;
}

void rsd_zrwa_settled(RsdDrive *drive)
{
    Zrwa *zrwa = drive->zrwa;
    const RsdMedia *media = &drive->media;

    zrwa->num_free = 0;
    for (uint32_t place = media->zrwa_places; place-- > 0;) {
        uint64_t word = media->zrwa[place];
        const ZrwaArea *area = word ? area_at(drive, word_zone(word)) : NULL;

        if (!area ||
            area->pages[ring(drive, (uint32_t)word)].place != place) {
            free_place(drive, place);
        }
    }
}

void rsd_zrwa_fini(RsdDrive *drive)
{
    Zrwa *zrwa = drive->zrwa;
    uint32_t zones = drive->zoned ? drive->zoned->geo.num_zones : 0;

    for (uint32_t zone = 0; zrwa->areas && zone < zones; zone++) {
        if (zrwa->areas[zone]) {
            dispose(drive, zrwa->areas[zone]);
        }
    }
    rsd_release(drive, zrwa->areas, zones * sizeof(ZrwaArea *));
    rsd_release(drive, zrwa->free_places,
                (drive->media.zrwa_places + 1) * sizeof(uint32_t));
}
