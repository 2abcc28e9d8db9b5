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

/*
 * The mechanics: see mechanics.c.
 */

/* Tracks that have equally many slots */
typedef struct TrackZone {
    uint64_t first;             /* LBA */
    uint32_t slots;             /* of a track */
    /* slots by which a track begins later than the one before it, */
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

/* Where the arm is, and which head is used */
typedef struct Arm {
    uint32_t cylinder, head;
} Arm;

/* What a movement took, to be added to */
typedef struct Motion {
    uint64_t seeks, seek_ns, rotate_ns, transfer_ns;
} Motion;

/* For a disk of so many LBAs. False: there is no memory. */
bool rsd_mechanics_init(RsdDrive *drive, Mechanics *m, uint64_t lbas);
void rsd_mechanics_fini(RsdDrive *drive, Mechanics *m);
/* ns from one cylinder to another one so far away */
uint64_t rsd_seek_time(const Mechanics *m, uint32_t distance);
/* ns until that LBA begins to pass under its head */
uint64_t rsd_positioning_time(const Mechanics *m, Arm arm, uint64_t now,
                              uint64_t lba);
/*
 * When n LBAs have passed, if the arm sets out now. The arm is there then.
 * motion may be NULL.
 */
uint64_t rsd_pass(const Mechanics *m, Arm *arm, uint64_t now, uint64_t lba,
                  uint64_t n, Motion *motion);
/*
 * How many of them have passed at a time. The arm is there then, or, if it is
 * on its way, where it was going.
 */
uint64_t rsd_passed(const Mechanics *m, Arm *arm, uint64_t now, uint64_t lba,
                    uint64_t n, uint64_t until);
/* How many of n LBAs are on the track of the first one */
uint64_t rsd_on_track(const Mechanics *m, uint64_t lba, uint64_t n);

/*
 * The cache: see disk-cache.c.
 */

/* A range of the medium that was read */
typedef struct Segment {
    uint64_t first, end;        /* LBAs; equal: nothing */
    uint64_t used;              /* of two the one used later has more */
} Segment;

/* What the host wrote to an LBA and the medium does not have */
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

/* False: there is no memory. rsd_disk_cache_fini() will be called. */
bool rsd_disk_cache_init(RsdDrive *drive, DiskCache *c, uint32_t run_slots);
void rsd_disk_cache_fini(RsdDrive *drive, DiskCache *c);
/* The first LBA from there on, before end, that the cache does not have */
uint64_t rsd_disk_cache_missing(const DiskCache *c, uint64_t lba,
                                uint64_t end);
/* The segments of these LBAs have been used. */
void rsd_disk_cache_touch(DiskCache *c, uint64_t lba, uint64_t end);
/*
 * The segment for reading on from an LBA: the one that ends there, or the one
 * not used for longest, emptied. NULL: the disk has none.
 */
Segment *rsd_disk_cache_segment(DiskCache *c, uint64_t lba);
/* The segment ends there now, and has lost what is too much, from its start. */
void rsd_disk_cache_extend(DiskCache *c, Segment *segment, uint64_t end);
/* What was written to an LBA and is not on the medium, or NULL */
const Dirty *rsd_disk_cache_find(const DiskCache *c, uint64_t lba);
/* Is there room for such a write? */
bool rsd_disk_cache_has_room(const DiskCache *c, uint64_t lba, uint64_t n);
/* Takes in n LBAs; data NULL without payload. Gives how many it had already. */
uint32_t rsd_disk_cache_write(DiskCache *c, uint64_t lba, uint64_t n,
                              const uint8_t *data);
/* Forgets what was written there. */
void rsd_disk_cache_drop(DiskCache *c, uint64_t lba, uint64_t n);
/*
 * Takes out the next run of the sweep, LBAs of one track next to each other:
 * it is in writing then. There is something dirty.
 */
void rsd_disk_cache_take(DiskCache *c, const Mechanics *m);
/* That run is on the medium. */
void rsd_disk_cache_written(DiskCache *c);
/* It is not: the cache has it again. */
void rsd_disk_cache_take_back(DiskCache *c);
/* Is a write of a lower number still not on the medium? */
bool rsd_disk_cache_has_before(const DiskCache *c, uint64_t number);

#endif
