/*
 * rsd core, floor of the rotating disk: where an LBA is and when it passes
 * under a head (mechanics.c), what the disk has in its RAM (disk-cache.c), and
 * what it does next (disk.c).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_DISK_H
#define RSD_DISK_H

#include "../ftl.h"

/* These are the mechanics: see mechanics.c. */

/* These are tracks with the same number of slots. */
typedef struct TrackZone {
    uint64_t first;             /* LBA */
    uint32_t slots;             /* of a track */
    /* A track begins so many slots later than the one before it, */
    uint32_t head_skew;         /* if that is on the same cylinder, */
    uint32_t cylinder_skew;     /* and if it is on the next one */
} TrackZone;

typedef struct Mechanics {
    uint64_t turn;              /* ns of a revolution */
    uint64_t head_switch;       /* ns */
    uint64_t seek_min;          /* ns: to the next cylinder, */
    uint64_t seek_third;        /* over a third of them, */
    uint64_t seek_max;          /* and over all */
    uint32_t heads;
    uint32_t cylinders;         /* they fit, as a track has 8 slots at least */
    uint32_t zone_cylinders;    /* of each zone */
    uint32_t num_zones;
    TrackZone *zones;
} Mechanics;

/* This is where the arm is, and which head is used. */
typedef struct Arm {
    uint32_t cylinder, head;
} Arm;

/* The times of a movement are added to this. */
typedef struct Motion {
    uint64_t seeks, seek_ns, rotate_ns, transfer_ns;
} Motion;

/*
 * Initializes the mechanics of a disk of so many LBAs. Returns false if there
 * is no memory.
 */
bool rsd_mechanics_init(RsdDrive *drive, Mechanics *m, uint64_t lbas);
void rsd_mechanics_fini(RsdDrive *drive, Mechanics *m);
/* Returns the ns from one cylinder to another one so far away. */
uint64_t rsd_seek_time(const Mechanics *m, uint32_t distance);
/* Returns the ns until that LBA begins to pass under its head. */
uint64_t rsd_positioning_time(const Mechanics *m, Arm arm, uint64_t now,
                              uint64_t lba);
/*
 * Returns the time when n LBAs have passed, if the arm sets out now. The arm is
 * there then. motion may be NULL.
 */
uint64_t rsd_pass(const Mechanics *m, Arm *arm, uint64_t now, uint64_t lba,
                  uint64_t n, Motion *motion);
/*
 * Returns how many of them have passed at a time. The arm is there then, or, if
 * it is moving, at its destination.
 */
uint64_t rsd_passed(const Mechanics *m, Arm *arm, uint64_t now, uint64_t lba,
                    uint64_t n, uint64_t until);
/* Returns how many of n LBAs are on the track of the first one. */
uint64_t rsd_on_track(const Mechanics *m, uint64_t lba, uint64_t n);

/*
 * The cache: see disk-cache.c.
 */

/* This is a range of the medium that was read. */
typedef struct Segment {
    uint64_t first, end;        /* LBAs; equal: nothing */
    uint64_t used;              /* of two the one used later has more */
} Segment;

/* The host wrote this to an LBA, and the medium does not have it. */
typedef struct Dirty {
    uint64_t lba;
    uint64_t number;            /* writes before it; RSD_DROPPED: trimmed */
    uint8_t *data;              /* NULL without payload */
} Dirty;

#define RSD_DROPPED UINT64_MAX

typedef struct DiskCache {
    Segment *segments;
    uint32_t num_segments;
    uint64_t segment_slots;
    uint64_t uses;
    Dirty *dirty;               /* by LBA */
    uint32_t num_dirty;
    Dirty *writing;             /* taken out, on their way: by LBA, a run */
    uint32_t num_writing;
    uint32_t slots;             /* there is room for so many */
    uint32_t run_slots;         /* at most in a run */
    uint64_t writes;            /* so far */
    uint8_t *memory;            /* NULL without payload */
    uint8_t **free;             /* slots of it that nobody has */
    uint32_t num_free;
    uint64_t sweep_lba;         /* where the sweep goes on, */
    uint64_t sweep_end;         /* for writes of lower numbers */
} DiskCache;

/*
 * Initializes the cache. Returns false if there is no memory;
 * rsd_disk_cache_fini() is called then, too.
 */
bool rsd_disk_cache_init(RsdDrive *drive, DiskCache *c, uint32_t run_slots);
void rsd_disk_cache_fini(RsdDrive *drive, DiskCache *c);
/*
 * Returns the first LBA from there on, before end, that the cache does not
 * have.
 */
uint64_t rsd_disk_cache_missing(const DiskCache *c, uint64_t lba,
                                uint64_t end);
/* Notes that the segments of these LBAs have been used. */
void rsd_disk_cache_touch(DiskCache *c, uint64_t lba, uint64_t end);
/*
 * Returns the segment for reading on from an LBA: the one that ends there, or
 * the one not used for longest, emptied. NULL says that the disk has none.
 */
Segment *rsd_disk_cache_segment(DiskCache *c, uint64_t lba);
/* Extends the segment to end there. If it is too long, it loses its start. */
void rsd_disk_cache_extend(DiskCache *c, Segment *segment, uint64_t end);
/* Returns the write to an LBA that is not on the medium, or NULL. */
const Dirty *rsd_disk_cache_find(const DiskCache *c, uint64_t lba);
/* Says whether there is room for such a write. */
bool rsd_disk_cache_has_room(const DiskCache *c, uint64_t lba, uint64_t n);
/*
 * Writes n LBAs into the cache; data is NULL without payload. Returns how many
 * it had already.
 */
uint32_t rsd_disk_cache_write(DiskCache *c, uint64_t lba, uint64_t n,
                              const uint8_t *data);
/* Forgets writes to these LBAs. */
void rsd_disk_cache_drop(DiskCache *c, uint64_t lba, uint64_t n);
/*
 * Takes the next run of the sweep out, LBAs of one track next to each other: it
 * is in writing then. There is something dirty.
 */
void rsd_disk_cache_take(DiskCache *c, const Mechanics *m);
/* That run is on the medium. */
void rsd_disk_cache_written(DiskCache *c);
/* That run is not on the medium, so the cache has it again. */
void rsd_disk_cache_take_back(DiskCache *c);
/* Says whether a write of a lower number is still not on the medium. */
bool rsd_disk_cache_has_before(const DiskCache *c, uint64_t number);

#endif
