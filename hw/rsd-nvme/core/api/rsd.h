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

/* Returns NULL if there is none of that name. */
const RsdProp *rsd_prop_find(const char *name);

/* Returns a pointer to the value of a property within a configuration. */
static inline uint64_t *rsd_prop_value(RsdConfig *cfg, const RsdProp *prop)
{
    return (uint64_t *)((char *)cfg + prop->offset);
}

typedef struct RsdPreset {
    const char *name;
    const char *doc;            /* source of each figure */
    void (*apply)(RsdConfig *cfg);
} RsdPreset;

/*
 * These are "custom" (the table's defaults), "redo", "risa", and drives:
 * PRESETS.md.
 */
extern const RsdPreset rsd_presets[];
extern const size_t rsd_num_presets;

/* Returns NULL if there is none of that name. */
const RsdPreset *rsd_preset_find(const char *name);

/*
 * Checks ranges and dependencies between values. Returns false and a sentence
 * in err that names the property, the value, the allowed values and a remedy.
 */
bool rsd_config_check(const RsdConfig *cfg, char err[RSD_ERR_LEN]);

/*
 * Says whether a power cut can take acknowledged writes if no flush came after
 * them.
 */
bool rsd_is_volatile(const RsdConfig *cfg);

/*
 * Media files
 */

/*
 * Creates a media file. It is sparse, and its header is written last, so that
 * an unfinished file is no media file. Fails if the path exists. Returns false
 * and err on failure, and leaves nothing.
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
 * differ from run to run, except oob, which is set by the last format. With
 * path NULL, it is a drive in memory, without payload: pages keep no data and
 * no OOB, and all else is the same (for simulation and benchmarks).
 *
 * Opening recovers the drive. A killed process may have left gaps below a
 * zone's highest programmed page. They are closed by filler pages (counted as
 * pad), so that each block's pages are programmed in order again.
 *
 * Returns NULL and err on failure; the file is then as it was.
 */
RsdDrive *rsd_open(const char *path, const RsdConfig *cfg,
                   char err[RSD_ERR_LEN]);

/*
 * Does the same, but the file survives power cuts of the host's machine: it
 * opens to the drive as it was at some rsd_media_sync(), the last one or one
 * that the drive itself has made since. Later changes are lost, also if the
 * process is killed. A second file, PATH.sync, exists until rsd_close(); the
 * two belong together. Space of the host's disk that a block had stays when it
 * is erased. A rotating disk is refused.
 */
RsdDrive *rsd_open_synced(const char *path, const RsdConfig *cfg,
                          char err[RSD_ERR_LEN]);
/* Makes one last sync, for a process that ends without rsd_close(). */
void rsd_sync_end(RsdDrive *drive);

/*
 * Closes a drive. Operations in flight are lost, as at a power cut. Frees every
 * command that is left. NULL is allowed.
 */
void rsd_close(RsdDrive *drive);

/* Returns the settings in force. The drive owns them. */
const RsdConfig *rsd_config(const RsdDrive *drive);

/*
 * Puts everything stored so far on the host's disk. Returns 0, or -errno; a
 * drive of rsd_open_synced() stores nothing more after an error.
 */
int rsd_media_sync(RsdDrive *drive);

/*
 * A drive has one namespace, numbered 0, or two that share its flash, zones as
 * 0 and a conventional one as 1 (conv-blocks).
 */

#define RSD_MAX_NAMESPACES 2u

uint32_t rsd_num_namespaces(const RsdDrive *drive);

typedef struct RsdGeometry {
    bool zoned;                 /* else conventional: any LBA at any time */
    uint64_t lbas;              /* of the namespace, gaps of zones included */
    uint64_t map_bytes;         /* mapping table, by the papers' formulas */
    uint32_t max_oob;           /* bytes of a page's OOB the host may have */
    /* These are for a zoned namespace. */
    uint32_t num_zones;
    uint64_t zone_capacity;     /* pages that can be written in a zone */
    /*
     * This is the distance from one zone's start to the next's in pages, the
     * next power of two.
     */
    uint64_t zone_size;
    /*
     * So many zones use all of the flash together, if their numbers differ
     * modulo it.
     */
    uint32_t zone_ways;
} RsdGeometry;

void rsd_geometry(const RsdDrive *drive, uint32_t ns, RsdGeometry *geo);

/*
 * Returns the pages of the namespace's flash blocks, spares included, that are
 * not bad, or all pages of a disk.
 */
uint64_t rsd_flash_pages(const RsdDrive *drive, uint32_t ns);

/*
 * Returns the bytes of OOB for each page that the host sees, which the last
 * format has set.
 */
uint32_t rsd_oob(const RsdDrive *drive, uint32_t ns);

/*
 * Zones, of a drive with ftl=rsd. The NVMe zone state machine belongs to the
 * caller; the drive keeps what must survive: a state byte and attributes
 * (opaque here) in the file.
 */

typedef struct RsdZone {
    uint8_t state;              /* as last saved; 0 in a new file */
    uint8_t attrs;
    /*
     * These are the pages below the zone's highest programmed page, including
     * that one.
     */
    uint64_t written;
    uint64_t next;              /* page where writes go on: the area's first */
    bool zrwa;                  /* it has a random write area, */
    bool zrwa_pages;            /* and something is in it */
} RsdZone;

/*
 * For tests, makes so many blocks of zones unreadable from now on. Returns
 * false if one of them is not in flash, because it was not written or is still
 * in flight; then nothing is done.
 */
bool rsd_zone_spoil(RsdDrive *drive, uint64_t lba, uint32_t nlb);
void rsd_zone_get(const RsdDrive *drive, uint32_t zone, RsdZone *info);
/*
 * Returns the operations that were submitted to a zone and have not reached it,
 * as bits 1 << RsdOp. It is 0 in a drive whose controller takes no time.
 */
uint32_t rsd_zone_waiting(const RsdDrive *drive, uint32_t zone);
void rsd_zone_save(RsdDrive *drive, uint32_t zone, uint8_t state,
                   uint8_t attrs);
/* Returns cfg.zd_ext bytes in the file, or NULL if zd_ext is 0. */
const uint8_t *rsd_zone_ext(const RsdDrive *drive, uint32_t zone);
/* Sets these bytes; NULL sets zeroes. */
void rsd_zone_set_ext(RsdDrive *drive, uint32_t zone, const uint8_t *ext);

/*
 * Commands
 */

/*
 * A trim deals with no more pages than this before it lets other commands go
 * on.
 */
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
     * The array refuses it, since it is not the zone's next page. Or the zone
     * was reset before all data of the write was in the write buffer, or
     * programmed.
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
    /*
     * It is in pages; rsd_submit() may change that of a write: see scenario.h.
     */
    uint64_t lba;
    uint32_t nlb;               /* in pages */
    bool fua;                   /* a write is done when it cannot be lost */
    bool append;                /* a write that was an append: t-fw-append */
    /*
     * This has nlb pages. It is NULL unless READ or WRITE, or without payload.
     */
    uint8_t *data;
    uint8_t *oob;               /* nlb * oob bytes; NULL as above or oob = 0 */
    /* The power was cut, or the drive rewound, so it will never complete. */
    bool gone;
    uint64_t submit_ns;
    uint64_t done_ns;
    void *opaque;               /* the caller's */
} RsdCmd;

/*
 * Makes a command with its buffers, both owned by the drive until
 * rsd_cmd_free(). Returns NULL if there is no memory. For a read the buffers
 * are filled at completion (never-written pages read as zeroes, data and OOB).
 * For a write they are the drive's copy: the caller fills them before
 * rsd_submit(), and does not change them after that.
 */
RsdCmd *rsd_cmd_new(RsdDrive *drive, uint32_t ns, RsdOp op, uint64_t lba,
                    uint32_t nlb);
/* Returns the memory of all commands that have buffers. */
uint64_t rsd_cmd_bytes(const RsdDrive *drive);
/*
 * Frees a command. One that is in flight is detached, as below, and freed when
 * it is done.
 */
void rsd_cmd_free(RsdDrive *drive, RsdCmd *cmd);

/*
 * Announces a command for this LBA. Nothing changes, but the tables that the
 * drive will look up may come into the host's cache meanwhile.
 */
void rsd_expect(const RsdDrive *drive, uint32_t ns, uint64_t lba);
/*
 * Checks and queues a command at time now. After any result other than RSD_OK,
 * nothing was changed, and the command is still the caller's. In a drive whose
 * controller takes time (t-fw-..., t-link: host.c), only the drive's size and
 * read-only state are checked here, and a command that is refused later
 * completes with its status. A write allocates its flash blocks and their space
 * on the host's disk here, so that a full host disk is an answer and not a
 * signal. Events up to now are carried out first; rsd_advance() returns the
 * commands that they complete. Commands to one zone take effect in the order of
 * submission. Writes must continue at the zone's next unsubmitted page.
 * Commands to a conventional namespace take effect in that order, too, where
 * they overlap.
 */
RsdStatus rsd_submit(RsdDrive *drive, RsdCmd *cmd, uint64_t now);

/*
 * Detaches a command that the host forgot (queue deleted, controller reset). It
 * goes on in the drive and frees itself; rsd_advance() will not return it.
 */
void rsd_cmd_detach(RsdDrive *drive, RsdCmd *cmd);

/*
 * Returns false if nothing is pending, and otherwise the time of the next
 * event.
 */
bool rsd_next_event(const RsdDrive *drive, uint64_t *when);

/*
 * Carries out all events up to and including now, in time order (equal times:
 * in order of submission), and returns the next completed command, or NULL
 * when there is none left. Call until NULL. A command's data is programmed, or
 * read, when it is returned here, and not before its done_ns.
 */
RsdCmd *rsd_advance(RsdDrive *drive, uint64_t now);
/*
 * Does the same until a command completes, which it returns. Its done_ns is the
 * time then, and rsd_advance() returns others of that time. NULL says that
 * there are no events left. It is for a caller whose time is that of the drive
 * alone.
 */
RsdCmd *rsd_advance_to_done(RsdDrive *drive);

/*
 * Does Format NVM of a namespace. Every zone becomes empty (as reset=mark), and
 * its saved state, attributes and extension are cleared, or every LBA is
 * trimmed; and OOB is set. Fails (RSD_E_ORDER) while commands to it are in
 * flight or wait for rsd_advance(), and with RSD_E_RANGE for a bad oob. All
 * pages with content are cleared at once. To let other commands go on, trim a
 * large namespace before.
 */
RsdStatus rsd_format(RsdDrive *drive, uint32_t ns, uint32_t oob, uint64_t now);

/*
 * Health, for SMART and the asynchronous event
 */

typedef struct RsdHealth {
    /*
     * Some die has lost more blocks, by wear (life-spread) or by rules
     * (scenario.h), than it had spares when new, or those left are too few for
     * a conventional namespace. Or the host's disk failed; this lasts until the
     * drive is opened again. From then on everything but reads and flushes is
     * refused with RSD_E_READONLY. Data that was acknowledged before can be
     * read.
     */
    bool read_only;
    /* This is the % of the spares that are left, in the die that has fewest. */
    uint32_t available_spare;
} RsdHealth;

/*
 * Returns the health, which changes when rsd_submit() and rsd_advance() carry
 * out events.
 */
void rsd_health(const RsdDrive *drive, RsdHealth *health);
/* Returns how often it got worse since the drive was opened. */
uint32_t rsd_health_changes(const RsdDrive *drive);

/*
 * Counters
 */

/* Returns the counters now; sums are complete up to the last rsd_advance(). */
void rsd_counters(const RsdDrive *drive, RsdCounters *counters);
/* Returns the same as the vendor log page. */
void rsd_log_page(const RsdDrive *drive, RsdLogPage *page);

typedef struct RsdCounterInfo {
    const char *name, *unit, *doc;
} RsdCounterInfo;

extern const RsdCounterInfo rsd_counter_info[];

#endif
