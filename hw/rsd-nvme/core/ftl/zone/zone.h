/*
 * rsd core, floor of ftl=rsd: the segment map, and random write areas.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_ZONE_H
#define RSD_ZONE_H

#include "../ftl.h"

/*
 * Operations on one zone between two barriers (reset, finish). A barrier
 * completes when the epochs before it have drained.
 */
struct Epoch {
    struct Epoch *next;         /* the zone's next younger one */
    Cmd *barrier;               /* waits for this epoch and those before it */
    uint32_t zone;
    uint32_t refs;              /* operations in flight */
};

/*
 * Random write areas: see zrwa.c.
 */

typedef struct Epoch Epoch;
typedef struct ZrwaArea ZrwaArea;

typedef struct Zrwa {
    ZrwaArea **areas;           /* by zone; NULL if there can be none */
    uint32_t size, flush;       /* slots */
    uint32_t in_use;            /* areas, those included that are committed */
    uint32_t *free_places;
    uint32_t num_free;
    /* the block, and the slot there, of a slot of a zone */
    uint32_t (*locate)(const RsdDrive *drive, uint32_t zone, uint64_t offset,
                       uint32_t *page);
} Zrwa;

typedef enum ZrwaKind { ZRWA_NONE, ZRWA_WRITE, ZRWA_COMMIT } ZrwaKind;

/* The random write area that a zone has, or NULL */
ZrwaArea *rsd_zrwa_of(const RsdDrive *drive, uint32_t zone);
/* Has the zone lost it, but not all of it is taken? */
bool rsd_zrwa_closing(const RsdDrive *drive, uint32_t zone);
/* Where in the zone what was written to it ends; next if before that */
uint64_t rsd_zrwa_end(const ZrwaArea *area, uint64_t next);
/* Gives it one, which begins at slot "next". */
RsdStatus rsd_zrwa_open(RsdDrive *drive, uint32_t zone, uint64_t next);
/*
 * Writes a command's slots to the area, at slot "offset" of the zone, or
 * commits count slots. The command and the epoch count it as an operation. One
 * operation, and units for what will be committed, are reserved.
 */
void rsd_zrwa_queue(Ns *ns, Cmd *cmd, ZrwaArea *area, ZrwaKind kind,
                    uint64_t offset, uint32_t count, Epoch *epoch,
                    uint32_t units);
/* The zone has it no more once what is queued is taken. */
void rsd_zrwa_close(RsdDrive *drive, ZrwaArea *area);
/* The zone has none, and what was in it is lost. */
void rsd_zrwa_drop(Ns *ns, uint32_t zone);
/*
 * Where what is to be read from the area begins in the zone; next if the zone
 * has none.
 */
uint64_t rsd_zrwa_start(const RsdDrive *drive, uint32_t zone, uint64_t next);
/*
 * Reads a slot from there on as page index of a command. False: it was not
 * written.
 */
bool rsd_zrwa_read(RsdDrive *drive, Cmd *cmd, uint32_t index, uint32_t zone,
                   uint64_t offset);
/* Takes of an operation what there is room for. True: all */
bool rsd_zrwa_take(RsdDrive *drive, Op *op);
/* The operation leaves the queue. */
void rsd_zrwa_taken(RsdDrive *drive, const Op *op);
/* What is in the areas becomes safe, for a flush. */
void rsd_zrwa_secure(RsdDrive *drive, Cmd *cmd);
/* Are pages in the zone's area? */
bool rsd_zrwa_holds(const RsdDrive *drive, uint32_t zone);
/* Looks at what is in the file. False and err: it is as it was. */
bool rsd_zrwa_load(RsdDrive *drive, char err[RSD_ERR_LEN]);
/*
 * For opening: takes in what is in the file of a zone whose next slot is this
 * one. Gives the next slot after that.
 */
uint64_t rsd_zrwa_settle(Ns *ns, uint32_t zone, uint64_t next);
/* After all zones: what no zone has taken in is forgotten. */
void rsd_zrwa_settled(RsdDrive *drive);
void rsd_zrwa_fini(RsdDrive *drive);

/* segment.c */

/* The zone's next slot: all before it were submitted. */
uint64_t rsd_seg_next(const RsdDrive *drive, uint32_t zone);
/* The block, and the slot there, of a slot of a zone that is in use */
uint32_t rsd_seg_locate(const RsdDrive *drive, uint32_t zone, uint64_t offset,
                        uint32_t *page);

#endif
