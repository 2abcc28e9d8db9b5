/*
 * What a disk has in its RAM: segments, ranges of the medium that it read, and
 * what the host wrote and the medium does not have.
 *
 * A segment says only which LBAs it has: their content is that of the medium,
 * which is read when a command is done. It loses what it had first when it gets
 * longer than disk-segment-size. Of the segments the one not used for longest
 * is the next to be emptied.
 *
 * Written LBAs are taken to the medium in sweeps: all that were written before
 * the sweep began, in ascending order from where the arm is, around the end of
 * the disk once, and what was written later beside them with them. So nothing
 * stays for longer than two sweeps, whatever else is written.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "disk.h"

bool rsd_disk_cache_init(RsdDrive *drive, DiskCache *c, uint32_t run_slots)
{
    const RsdConfig *cfg = &drive->cfg;

    c->num_segments = cfg->disk_segments;
    c->segment_slots = cfg->disk_segment_size / RSD_PAGE_SIZE;
    c->slots = cfg->disk_write_cache / RSD_PAGE_SIZE;
    c->run_slots = run_slots;
    c->segments = rsd_alloc(drive, c->num_segments * sizeof(Segment) + 1);
    c->dirty = rsd_alloc(drive, c->slots * sizeof(Dirty) + 1);
    c->writing = rsd_alloc(drive, run_slots * sizeof(Dirty));
    if (!c->segments || !c->dirty || !c->writing) {
        return false;
    }
    if (!drive->media.data || !c->slots) {
        return true;
    }
    c->memory = rsd_alloc(drive, (size_t)c->slots * RSD_PAGE_SIZE);
    c->free = rsd_alloc(drive, c->slots * sizeof(*c->free));
    if (!c->memory || !c->free) {
        return false;
    }
    while (c->num_free < c->slots) {
        c->free[c->num_free] = c->memory + (size_t)c->num_free * RSD_PAGE_SIZE;
        c->num_free++;
    }
    return true;
}

void rsd_disk_cache_fini(RsdDrive *drive, DiskCache *c)
{
    rsd_release(drive, c->segments, c->num_segments * sizeof(Segment) + 1);
    rsd_release(drive, c->dirty, c->slots * sizeof(Dirty) + 1);
    rsd_release(drive, c->writing, c->run_slots * sizeof(Dirty));
    rsd_release(drive, c->memory, (size_t)c->slots * RSD_PAGE_SIZE);
    rsd_release(drive, c->free, c->slots * sizeof(*c->free));
}

/*
 * Segments
 */

static Segment *segment_with(const DiskCache *c, uint64_t lba)
{
    for (uint32_t i = 0; i < c->num_segments; i++) {
        if (c->segments[i].first <= lba && lba < c->segments[i].end) {
            return &c->segments[i];
        }
    }
    return NULL;
}

uint64_t rsd_disk_cache_missing(const DiskCache *c, uint64_t lba, uint64_t end)
{
    while (lba < end) {
        const Segment *segment = segment_with(c, lba);

        if (segment) {
            lba = segment->end < end ? segment->end : end;
        } else if (rsd_disk_cache_find(c, lba)) {
            lba++;
        } else {
            break;
        }
    }
    return lba;
}

void rsd_disk_cache_touch(DiskCache *c, uint64_t lba, uint64_t end)
{
    for (uint32_t i = 0; i < c->num_segments; i++) {
        if (c->segments[i].first < end && lba < c->segments[i].end) {
            c->segments[i].used = ++c->uses;
        }
    }
}

Segment *rsd_disk_cache_segment(DiskCache *c, uint64_t lba)
{
    Segment *oldest = c->segments;

    if (!c->num_segments) {
        return NULL;
    }
    for (uint32_t i = 0; i < c->num_segments; i++) {
        Segment *segment = &c->segments[i];

        if (segment->end == lba && segment->first < lba) {
            return segment;
        }
        if (segment->used < oldest->used) {
            oldest = segment;
        }
    }
    *oldest = (Segment){ lba, lba, ++c->uses };
    return oldest;
}

void rsd_disk_cache_extend(DiskCache *c, Segment *segment, uint64_t end)
{
    segment->end = end;
    if (end - segment->first > c->segment_slots) {
        segment->first = end - c->segment_slots;
    }
}

/*
 * Written LBAs
 */

/* The first entry of that LBA or a higher one */
static uint32_t place_of(const DiskCache *c, uint64_t lba)
{
    uint32_t low = 0, high = c->num_dirty;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (c->dirty[middle].lba < lba) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* On its way to the medium */
static Dirty *find_writing(const DiskCache *c, uint64_t lba)
{
    Dirty *entry;

    if (!c->num_writing || lba < c->writing[0].lba ||
        lba - c->writing[0].lba >= c->num_writing) {
        return NULL;
    }
    entry = &c->writing[lba - c->writing[0].lba];
    return entry->number == RSD_DROPPED ? NULL : entry;
}

const Dirty *rsd_disk_cache_find(const DiskCache *c, uint64_t lba)
{
    uint32_t at = place_of(c, lba);

    return at < c->num_dirty && c->dirty[at].lba == lba ? &c->dirty[at]
                                                        : find_writing(c, lba);
}

bool rsd_disk_cache_has_room(const DiskCache *c, uint64_t lba, uint64_t n)
{
    uint32_t had = place_of(c, lba + n) - place_of(c, lba);

    return c->num_dirty + c->num_writing + n - had <= c->slots;
}

uint32_t rsd_disk_cache_write(DiskCache *c, uint64_t lba, uint64_t n,
                              const uint8_t *data)
{
    uint32_t at = place_of(c, lba), had = place_of(c, lba + n) - at;
    uint32_t from = at + had, added = n - had;

    /* from the last one on, so that each entry is moved once */
    memmove(c->dirty + from + added, c->dirty + from,
            (c->num_dirty - from) * sizeof(Dirty));
    for (uint64_t i = n; i--;) {
        Dirty *to = &c->dirty[at + i];

        if (from > at && c->dirty[from - 1].lba == lba + i) {
            /* what it had to be safe for, it still has to */
            *to = c->dirty[--from];
        } else {
            *to = (Dirty){
                .lba = lba + i,
                .number = c->writes,
                .data = c->memory ? c->free[--c->num_free] : NULL,
            };
        }
        if (to->data) {
            memcpy(to->data, data + i * RSD_PAGE_SIZE, RSD_PAGE_SIZE);
        }
    }
    c->num_dirty += added;
    c->writes++;
    return had;
}

static void free_slot(DiskCache *c, Dirty *entry)
{
    if (entry->data) {
        c->free[c->num_free++] = entry->data;
    }
}

void rsd_disk_cache_drop(DiskCache *c, uint64_t lba, uint64_t n)
{
    uint32_t at = place_of(c, lba), end = place_of(c, lba + n);

    for (uint32_t i = at; i < end; i++) {
        free_slot(c, &c->dirty[i]);
    }
    memmove(c->dirty + at, c->dirty + end,
            (c->num_dirty - end) * sizeof(Dirty));
    c->num_dirty -= end - at;
    for (uint32_t i = 0; i < c->num_writing; i++) {
        if (c->writing[i].lba >= lba && c->writing[i].lba < lba + n) {
            c->writing[i].number = RSD_DROPPED;
        }
    }
}

/* The next entry of the sweep, from a place on; num_dirty: there is none */
static uint32_t next_of_sweep(const DiskCache *c, uint32_t from)
{
    while (from < c->num_dirty && c->dirty[from].number >= c->sweep_end) {
        from++;
    }
    return from;
}

void rsd_disk_cache_take(DiskCache *c, const Mechanics *m)
{
    uint32_t at = next_of_sweep(c, place_of(c, c->sweep_lba)), n = 1;
    uint64_t most;

    if (at == c->num_dirty) {
        at = next_of_sweep(c, 0);
    }
    if (at == c->num_dirty) {
        c->sweep_end = c->writes;
        at = place_of(c, c->sweep_lba);
        at = at == c->num_dirty ? 0 : at;
    }
    most = rsd_on_track(m, c->dirty[at].lba, c->num_dirty - at);
    while (n < most && c->dirty[at + n].lba == c->dirty[at].lba + n) {
        n++;
    }
    memcpy(c->writing, c->dirty + at, n * sizeof(Dirty));
    memmove(c->dirty + at, c->dirty + at + n,
            (c->num_dirty - at - n) * sizeof(Dirty));
    c->num_dirty -= n;
    c->num_writing = n;
    c->sweep_lba = c->writing[0].lba + n;
}

void rsd_disk_cache_written(DiskCache *c)
{
    for (uint32_t i = 0; i < c->num_writing; i++) {
        free_slot(c, &c->writing[i]);
    }
    c->num_writing = 0;
}

void rsd_disk_cache_take_back(DiskCache *c)
{
    for (uint32_t i = 0; i < c->num_writing; i++) {
        Dirty *entry = &c->writing[i];
        uint32_t at = place_of(c, entry->lba);

        if (entry->number == RSD_DROPPED) {
            free_slot(c, entry);
        } else if (at < c->num_dirty && c->dirty[at].lba == entry->lba) {
            /* written again since; the older write has to be safe, too */
            c->dirty[at].number = entry->number;
            free_slot(c, entry);
        } else {
            memmove(c->dirty + at + 1, c->dirty + at,
                    (c->num_dirty++ - at) * sizeof(Dirty));
            c->dirty[at] = *entry;
        }
    }
    c->num_writing = 0;
}

bool rsd_disk_cache_has_before(const DiskCache *c, uint64_t number)
{
    for (uint32_t i = 0; i < c->num_dirty; i++) {
        if (c->dirty[i].number < number) {
            return true;
        }
    }
    for (uint32_t i = 0; i < c->num_writing; i++) {
        /* RSD_DROPPED is above all numbers */
        if (c->writing[i].number < number) {
            return true;
        }
    }
    return false;
}
