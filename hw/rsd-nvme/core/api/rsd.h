/*
 * rsd core: a NAND drive as an event machine.
 *
 * Plain C11. It knows no QEMU, no guest, no clock, no thread and no global
 * state: the caller says what time it is. Time is in nanoseconds and never
 * goes backwards. One caller at a time.
 *
 *     cmd = rsd_cmd_new(drive, RSD_WRITE, lba, nlb);   fill cmd->data, ->oob
 *     status = rsd_submit(drive, cmd, now);
 *     while (rsd_next_event(drive, &when)) {           sleep until "when"
 *         while ((cmd = rsd_advance(drive, when))) {   in completion order
 *             ... cmd->status, cmd->data ...
 *             rsd_cmd_free(drive, cmd);
 *         }
 *     }
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_H
#define RSD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rsd-log.h"
#include "rsd-props.h"

#define RSD_ERR_LEN 512

/*
 * Settings
 */

typedef struct RsdConfig {
#define RSD_FIELD_NUM(field, name, dflt, min, max, geo, unit, doc) \
    uint64_t field;
#define RSD_FIELD_ENUM(field, name, dflt, names, geo, doc) uint64_t field;
    RSD_PROPS(RSD_FIELD_NUM, RSD_FIELD_NUM, RSD_FIELD_ENUM)
#undef RSD_FIELD_NUM
#undef RSD_FIELD_ENUM
} RsdConfig;

typedef enum RsdPropKind { RSD_PROP_NUM, RSD_PROP_SIZE, RSD_PROP_ENUM }
    RsdPropKind;

/* One row of the table in rsd-props.h. */
typedef struct RsdProp {
    const char *name;
    RsdPropKind kind;
    size_t offset;              /* of the uint64_t in RsdConfig */
    uint64_t dflt, min, max;
    const char *const *names;   /* RSD_PROP_ENUM only */
    bool geometry;
    const char *unit;
    const char *doc;
} RsdProp;

extern const RsdProp rsd_props[];
extern const size_t rsd_num_props;

/* NULL if there is none of that name */
const RsdProp *rsd_prop_find(const char *name);

/* The value of a property within a configuration */
static inline uint64_t *rsd_prop_value(RsdConfig *cfg, const RsdProp *prop)
{
    return (uint64_t *)((char *)cfg + prop->offset);
}

typedef struct RsdPreset {
    const char *name;
    const char *doc;            /* source of each figure */
    void (*apply)(RsdConfig *cfg);
} RsdPreset;

/* "custom" (the table's defaults), "redo", "risa", and drives: PRESETS.md */
extern const RsdPreset rsd_presets[];
extern const size_t rsd_num_presets;

/* NULL if there is none of that name */
const RsdPreset *rsd_preset_find(const char *name);

/*
 * Checks ranges and what the values must have in common. False and a sentence
 * in err that names the property, the value, what is allowed and what to do.
 */
bool rsd_config_check(const RsdConfig *cfg, char err[RSD_ERR_LEN]);

/* Can a power cut take what is acknowledged, if no flush came after it? */
bool rsd_is_volatile(const RsdConfig *cfg);

/*
 * Media files
 */

/*
 * Creates a media file: sparse, header last, so that a half-made file is not
 * one. Fails if the path exists. False and err on failure (nothing is left).
 */
bool rsd_media_create(const char *path, const RsdConfig *cfg,
                      char err[RSD_ERR_LEN]);

/*
 * Reads the settings out of a file's header without locking or changing it.
 */
bool rsd_media_info(const char *path, RsdConfig *cfg, char err[RSD_ERR_LEN]);

/*
 * The drive
 */

typedef struct RsdDrive RsdDrive;

/*
 * Opens a drive on a media file, which is locked against other processes and
 * mapped. Geometry properties of cfg must equal the file's; the others may
 * differ from run to run, except oob, which is what the last format said.
 * path NULL: a drive in memory, without payload: pages keep no data and no OOB,
 * all else is the same (for simulation and benchmarks).
 *
 * Opening recovers: gaps that a killed process left below a zone's highest
 * programmed page are closed by filler pages (counted as pad), so that each
 * block's pages are programmed in order again.
 *
 * NULL and err on failure; the file is then as it was.
 */
RsdDrive *rsd_open(const char *path, const RsdConfig *cfg,
                   char err[RSD_ERR_LEN]);

/*
 * The same, but whatever the host's machine does, its power cuts included, the
 * file opens to the drive as it was at some rsd_media_sync(), the last one or
 * one that the drive itself has made since. What was done after it is lost,
 * also if the process is killed. A second file, PATH.sync, is there until
 * rsd_close(); the two belong together. Space of the host's disk that a block
 * had stays when it is erased. A rotating disk is refused.
 */
RsdDrive *rsd_open_synced(const char *path, const RsdConfig *cfg,
                          char err[RSD_ERR_LEN]);
/* For a process that ends without rsd_close(): one sync, and the last. */
void rsd_sync_end(RsdDrive *drive);

/*
 * Operations in flight are lost, as at a power cut. Frees every command that
 * is left. NULL is allowed.
 */
void rsd_close(RsdDrive *drive);

/* The settings in force. Owned by the drive. */
const RsdConfig *rsd_config(const RsdDrive *drive);

/*
 * Everything stored so far is on the host's disk. 0, or -errno; a drive of
 * rsd_open_synced() stores nothing more after an error.
 */
int rsd_media_sync(RsdDrive *drive);

/*
 * Namespaces. A drive has one, numbered 0, or two that share its flash, zones
 * as 0 and a conventional one as 1 (conv-blocks).
 */

#define RSD_MAX_NAMESPACES 2u

uint32_t rsd_num_namespaces(const RsdDrive *drive);

typedef struct RsdGeometry {
    bool zoned;                 /* else conventional: any LBA at any time */
    uint64_t lbas;              /* of the namespace, gaps of zones included */
    uint64_t map_bytes;         /* mapping table, by the papers' formulas */
    uint32_t max_oob;           /* bytes of a page's OOB the host may have */
    /* of a zoned namespace: */
    uint32_t num_zones;
    uint64_t zone_capacity;     /* pages that can be written in a zone */
    /* pages from one zone's start to the next's: the next power of two */
    uint64_t zone_size;
    /* zones that use all of the flash together, if numbers differ modulo it */
    uint32_t zone_ways;
} RsdGeometry;

void rsd_geometry(const RsdDrive *drive, uint32_t ns, RsdGeometry *geo);

/*
 * Pages of the namespace's flash blocks, spares included, that are not bad; of
 * a disk, all that it has
 */
uint64_t rsd_flash_pages(const RsdDrive *drive, uint32_t ns);

/* Bytes of OOB a page that the host sees, as the last format said */
uint32_t rsd_oob(const RsdDrive *drive, uint32_t ns);

/*
 * Zones, of a drive with ftl=rsd. The NVMe zone state machine belongs to the
 * caller; the drive keeps what must survive: a state byte and attributes
 * (opaque here) in the file.
 */

typedef struct RsdZone {
    uint8_t state;              /* as last saved; 0 in a new file */
    uint8_t attrs;
    /* pages below the zone's highest programmed page, that one included */
    uint64_t written;
    uint64_t next;              /* page where writes go on: the area's first */
    bool zrwa;                  /* it has a random write area, */
    bool zrwa_pages;            /* and something is in it */
} RsdZone;

/*
 * For tests: so many blocks of zones cannot be read from now on. False: one of
 * them is not in flash, because it was not written or is still on its way, and
 * nothing was done.
 */
bool rsd_zone_spoil(RsdDrive *drive, uint64_t lba, uint32_t nlb);
void rsd_zone_get(const RsdDrive *drive, uint32_t zone, RsdZone *info);
/*
 * What was submitted to a zone and has not come to it: bits 1 << RsdOp. Nothing
 * in a drive whose controller takes no time.
 */
uint32_t rsd_zone_waiting(const RsdDrive *drive, uint32_t zone);
void rsd_zone_save(RsdDrive *drive, uint32_t zone, uint8_t state,
                   uint8_t attrs);
/* cfg.zd_ext bytes in the file; NULL if zd_ext is 0 */
const uint8_t *rsd_zone_ext(const RsdDrive *drive, uint32_t zone);
/* NULL: zeroes */
void rsd_zone_set_ext(RsdDrive *drive, uint32_t zone, const uint8_t *ext);

/*
 * Commands
 */

/* The most pages that a trim deals with without letting others go on */
#ifndef RSD_TRIM_STEP
#define RSD_TRIM_STEP 65536u
#endif

typedef enum RsdOp {
    RSD_READ,           /* lba, nlb; may cross zones */
    RSD_WRITE,          /* lba, nlb; within one zone and its capacity */
    /* as RSD_WRITE of zero data and zero OOB; conventional: as RSD_TRIM */
    RSD_WRITE_ZEROES,
    RSD_ZONE_RESET,     /* zoned only; lba = any of the zone */
    RSD_ZONE_FINISH,    /* the same; lba = any of the zone */
    /*
     * conventional only; lba, nlb; they read as zeroes from then on. More than
     * RSD_TRIM_STEP pages are trimmed in steps, and then in order (trim.c).
     */
    RSD_TRIM,
    RSD_FLUSH,
    /*
     * Random write areas, with zrwa (zrwa.c). Open: the zone gets one, if it
     * has none; lba = any of the zone. Commit: nlb pages at lba, where the
     * zone's area begins. Writes to such a zone may then be anywhere within
     * twice the area's size, but not appends. The zone loses it by reset,
     * finish, format, and when it is full.
     */
    RSD_ZRWA_OPEN,
    RSD_ZRWA_COMMIT,
} RsdOp;

typedef enum RsdStatus {
    RSD_OK,
    RSD_E_RANGE,        /* outside the drive, a zone or its capacity */
    /*
     * The array refuses: not the zone's next page. Or the zone was reset before
     * all data of the write was in the write buffer, or programmed.
     */
    RSD_E_ORDER,
    RSD_E_NOSPC,        /* the host's disk is full: nothing was changed */
    RSD_E_NOBLOCK,      /* no good flash block is left in a way */
    RSD_E_NOMEM,        /* the host has no memory for it */
    RSD_E_MEDIA,        /* uncorrectable, or the host's disk fails */
    RSD_E_READONLY,     /* the drive is worn out: see RsdHealth */
    RSD_E_NOZRWA,       /* no random write area is left, or not for that zone */
} RsdStatus;

const char *rsd_status_name(RsdStatus status);

typedef struct RsdCmd {
    RsdOp op;
    uint32_t ns;
    RsdStatus status;           /* valid after completion */
    /* in pages; rsd_submit() may change that of a write: see scenario.h */
    uint64_t lba;
    uint32_t nlb;               /* in pages */
    bool fua;                   /* a write is done when it cannot be lost */
    bool append;                /* a write that was an append: t-fw-append */
    /* nlb pages; NULL unless READ or WRITE, or without payload */
    uint8_t *data;
    uint8_t *oob;               /* nlb * oob bytes; NULL as above or oob = 0 */
    /* the power was cut, or the drive rewound: it will never complete */
    bool gone;
    uint64_t submit_ns;
    uint64_t done_ns;
    void *opaque;               /* the caller's */
} RsdCmd;

/*
 * A command with its buffers, both owned by the drive until rsd_cmd_free().
 * NULL if there is no memory. For a read the buffers are filled at completion
 * (never-written pages read as zeroes, data and OOB). For a write they are the
 * drive's copy: filled by the caller before rsd_submit(), captured from there.
 */
RsdCmd *rsd_cmd_new(RsdDrive *drive, uint32_t ns, RsdOp op, uint64_t lba,
                    uint32_t nlb);
/* Memory of all commands that have buffers */
uint64_t rsd_cmd_bytes(const RsdDrive *drive);
/* One that is in flight is detached, as below, and freed when it is done. */
void rsd_cmd_free(RsdDrive *drive, RsdCmd *cmd);

/*
 * A command for this LBA is about to be submitted. Nothing changes, but what the
 * drive will look up for it may come into the host's cache meanwhile.
 */
void rsd_expect(const RsdDrive *drive, uint32_t ns, uint64_t lba);
/*
 * Checks and queues a command at time now. Anything but RSD_OK: nothing was
 * changed, the command is still the caller's. In a drive whose controller takes
 * time (t-fw-..., t-link: host.c), only the drive's size and read-only state
 * are checked here, and what is refused later completes with its status. A
 * write allocates its flash blocks and their space on the host's disk here, so
 * that a full host disk is an answer and not a signal. Events up to now are
 * carried out first; what they complete is for rsd_advance() to return.
 * Commands to one zone take effect in the order of submission. Writes must
 * continue at the zone's next unsubmitted page. Commands to a conventional
 * namespace take effect in that order, too, where they overlap.
 */
RsdStatus rsd_submit(RsdDrive *drive, RsdCmd *cmd, uint64_t now);

/*
 * The host forgot the command (queue deleted, controller reset): it goes on in
 * the drive and frees itself; rsd_advance() will not return it.
 */
void rsd_cmd_detach(RsdDrive *drive, RsdCmd *cmd);

/* False if nothing is pending, else the time of the next event. */
bool rsd_next_event(const RsdDrive *drive, uint64_t *when);

/*
 * Carries out all events up to and including now, in time order (equal times:
 * in order of submission), and returns the next completed command, or NULL
 * when there is none left. Call until NULL. A command's data is programmed, or
 * read, when it is returned here, and not before its done_ns.
 */
RsdCmd *rsd_advance(RsdDrive *drive, uint64_t now);
/*
 * The same until a command completes, which it returns; its done_ns is the time
 * then, and rsd_advance() gives others of that time. NULL: there are no events
 * left. For a caller whose time is that of the drive alone.
 */
RsdCmd *rsd_advance_to_done(RsdDrive *drive);

/*
 * Format NVM of a namespace: every zone becomes empty (as reset=mark), its
 * saved state, attributes and extension are cleared, or every LBA is trimmed;
 * and OOB is set. Fails (RSD_E_ORDER) while commands to it are in flight or wait
 * for rsd_advance(), RSD_E_RANGE for a bad oob. All of it is done at once, for
 * what has content: to let others go on, trim a large namespace before.
 */
RsdStatus rsd_format(RsdDrive *drive, uint32_t ns, uint32_t oob, uint64_t now);

/*
 * Health, for SMART and the asynchronous event
 */

typedef struct RsdHealth {
    /*
     * Some die has lost more blocks, by wear (life-spread) or by rules
     * (scenario.h), than it had spares when new, or those left are too few for
     * a conventional namespace; or the host's disk failed, then until the drive
     * is opened again. From then on everything but reads and flushes is refused
     * with RSD_E_READONLY; what was acknowledged before can be read.
     */
    bool read_only;
    /* % of the spares that are left, in the die that has fewest */
    uint32_t available_spare;
} RsdHealth;

/* Changes when events are carried out, by rsd_submit() and rsd_advance(). */
void rsd_health(const RsdDrive *drive, RsdHealth *health);
/* How often it got worse since the drive was opened */
uint32_t rsd_health_changes(const RsdDrive *drive);

/*
 * Counters
 */

/* The counters now; sums are complete up to the last rsd_advance(). */
void rsd_counters(const RsdDrive *drive, RsdCounters *counters);
/* The same as the vendor log page. */
void rsd_log_page(const RsdDrive *drive, RsdLogPage *page);

typedef struct RsdCounterInfo {
    const char *name, *unit, *doc;
} RsdCounterInfo;

extern const RsdCounterInfo rsd_counter_info[];

#endif
