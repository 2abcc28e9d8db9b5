/*
 * Namespaces of QEMU's nvme controller in modelled NAND flash.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_RSD_NVME_RSD_NS_H
#define HW_RSD_NVME_RSD_NS_H

#include "qemu/notify.h"
#include "qemu/timer.h"
#include "hw/nvme/nvme.h"
#include "core/api/rsd.h"
#include "core/api/rsd-vendor.h"
#include "core/api/scenario.h"

#define TYPE_RSD_NS_BASE "rsd-ns-base"
OBJECT_DECLARE_SIMPLE_TYPE(RsdNsBase, RSD_NS_BASE)

#define TYPE_RSD_NS "rsd-ns"
OBJECT_DECLARE_SIMPLE_TYPE(RsdNamespace, RSD_NS)

#define TYPE_RSD_NS_CONV "rsd-ns-conv"
OBJECT_DECLARE_SIMPLE_TYPE(RsdConvNamespace, RSD_NS_CONV)

/* Logical blocks are 4 KiB, whatever the flash page is */
#define RSD_LBA_SIZE (1 << 12)

/*
 * Besides the attributes NVMe defines, the saved attributes of a zone tell a
 * zone that the host finished from one that was written to its end: only the
 * first is full whatever was programmed.
 */
#define RSD_ZA_FINISHED 0x40

typedef struct RsdRecorder RsdRecorder;

/* This read or write waits for memory for its data: see rsd-io.c. */
typedef struct RsdWaiting {
    QTAILQ_ENTRY(RsdWaiting) entry;
    NvmeRequest *req;
    RsdCmd what;                /* only what the request says */
    bool stale;                 /* its zone was reset or finished since */
} RsdWaiting;

/* This is a drive and the state to run it. One or two namespaces share it. */
typedef struct RsdFlash {
    RsdDrive *drive;
    QEMUTimer *timer;           /* at the drive's next event */
    RsdRecorder *recorder;      /* NULL: no trace is recorded */
    NvmeNamespace *ns[RSD_MAX_NAMESPACES];  /* by the drive's numbers */
    unsigned long *unsure;      /* zones: see rsd-io.c; NULL: none so far */
    uint64_t command_memory;    /* for commands with their data, in bytes */
    QTAILQ_HEAD(, RsdWaiting) waiting;  /* in their order */
    RsdWaiting *prepared;       /* is about to join these */
    uint32_t wanted;            /* commands in flight that somebody waits for */
    bool formatting[RSD_MAX_NAMESPACES];    /* once nothing is in flight */
    RsdCmd *emptying[RSD_MAX_NAMESPACES];   /* a format's trim; NULL: none */
    bool emptied[RSD_MAX_NAMESPACES];       /* by it: the format goes on */
    bool host_sync;
    Notifier exit;              /* of QEMU */
    bool vendor_commands;       /* C1h and C4h of rsd-vendor.h */
    uint8_t warnings;           /* NVME_SMART_* that the host was told */
    uint32_t health_changes;    /* rsd_health_changes() at that time */
    bool dead;                  /* it has no power, the controller is told */
    /*
     * This is a cut that is still to come; 0 and UINT64_MAX say that there is
     * none.
     */
    uint64_t cut_at_op, cut_at_time;
    bool reading_out;           /* what was read is on its way to the host */
    bool rewind_armed;          /* at the next reset of the controller */
    RsdPowerData rewind;        /* to there; in the host's byte order */
    unsigned refs;
} RsdFlash;

/* The namespaces have this in common (rsd-ns.c). */
struct RsdNsBase {
    NvmeNamespace parent_obj;

    RsdFlash *flash;            /* one reference; NULL unless realized */
    uint32_t index;             /* the drive's number of this namespace */
};

/* This namespace has the drive's settings: zoned or conventional. */
struct RsdNamespace {
    RsdNsBase parent_obj;

    RsdConfig cfg;
    bool set[sizeof(RsdConfig) / sizeof(uint64_t)]; /* given by the user */
    char *preset;
    char *media;
    char *trace;
    char *op_log;
    uint64_t cut_at_op;         /* 0: never */
    uint64_t cut_at_time;       /* ns; UINT64_MAX: never */
    char *cut_outcomes;
    char *faults;               /* a scenario's file; NULL: none */
    uint64_t command_memory;
    bool host_sync;
    bool vendor_commands;

    NvmeZone *finishing;        /* zone_finish() was called for it */
};

/* This is the conventional namespace beside a zoned one. */
struct RsdConvNamespace {
    RsdNsBase parent_obj;

    RsdNamespace *flash;        /* the other one */
};

/* Drops a reference; the last one closes the drive. NULL is allowed. */
void rsd_flash_unref(RsdFlash *flash);
/* Returns its critical warnings for SMART, of NVME_SMART_*. */
uint8_t rsd_flash_warnings(const RsdFlash *flash);

/* These are for namespaces of either kind (rsd-ns.c). */
bool rsd_ns_check_inherited(NvmeNamespace *ns, Error **errp);
void rsd_ns_attach(NvmeNamespace *ns, RsdFlash *flash, uint32_t index);
void rsd_ns_cleanup(NvmeNamespace *ns);
void rsd_ns_host_stats(NvmeNamespace *ns, struct nvme_stats *stats);
void rsd_ns_health(NvmeNamespace *ns, NvmeSmartLog *smart);
size_t rsd_ns_vendor_log(NvmeNamespace *ns, uint8_t lid, void *buf);

/*
 * Makes an attached conventional namespace (rsd-conv.c). Its setup() calls
 * this, which sets ns->ops and the fields that setup() has to set.
 */
void rsd_conv_init(NvmeNamespace *ns);

/*
 * Takes a time in ns, as a number or with a unit (rsd-props.c). Returns false
 * if it is none. rsd_prop_ns is for properties that are such a time.
 */
bool rsd_visit_ns(Visitor *v, const char *name, uint64_t *ns, Error **errp);
extern const PropertyInfo rsd_prop_ns;

/* This is the data path (rsd-io.c). See NvmeNamespaceOps for each function. */
uint16_t rsd_ns_prepare(NvmeNamespace *ns, NvmeRequest *req, uint64_t slba,
                        uint32_t nlb);
uint16_t rsd_ns_submit(NvmeNamespace *ns, NvmeRequest *req);
void rsd_ns_abandon(NvmeNamespace *ns, NvmeRequest *req);
void rsd_ns_cancel(NvmeNamespace *ns, NvmeRequest *req);
uint16_t rsd_ns_flush(NvmeNamespace *ns, NvmeNsFlush *flush);
void rsd_ns_flush_cancel(NvmeNamespace *ns, NvmeNsFlush *flush);
uint16_t rsd_ns_parts_done(NvmeNamespace *ns, NvmeRequest *req);
uint16_t rsd_ns_deallocate(NvmeNamespace *ns, NvmeRequest *req, uint64_t slba,
                           uint32_t nlb);
uint16_t rsd_ns_zone_reset(NvmeNamespace *ns, NvmeRequest *req,
                           NvmeZone *zone);
uint16_t rsd_ns_zone_finish(NvmeNamespace *ns, NvmeRequest *req,
                            NvmeZone *zone);
uint16_t rsd_ns_zone_zrwa(NvmeNamespace *ns, NvmeRequest *req, NvmeZone *zone);
uint16_t rsd_ns_zone_commit(NvmeNamespace *ns, NvmeRequest *req,
                            NvmeZone *zone, uint32_t nlb);
uint16_t rsd_ns_format(NvmeNamespace *ns, uint8_t idx);
/*
 * The zone is about to fail. If it has a random write area, its content goes to
 * the flash, as by a finish, and another zone can have the area.
 */
void rsd_ns_drop_area(NvmeNamespace *ns, NvmeZone *zone);

/* Sets the timer for the drive's next event. */
void rsd_flash_arm(RsdFlash *flash);
/*
 * This is the drive's timer, which completes commands that are due. opaque is
 * an RsdFlash.
 */
void rsd_flash_timer(void *opaque);

/*
 * These record a native trace (rsd-record.c, core/api/trace.h). The calls must
 * come in the order of those of the drive. With recorder NULL, nothing is done.
 */
RsdRecorder *rsd_record_open(const char *path, RsdFlash *flash,
                             uint64_t media_hash, Error **errp);
/*
 * This comes after rsd_submit(); the LBA is that of before. With req NULL, it
 * belongs to no request.
 */
void rsd_record_submit(RsdRecorder *recorder, RsdCmd *cmd, uint64_t lba,
                       uint64_t now, RsdStatus status, const NvmeRequest *req);
/* This comes before rsd_advance(). */
void rsd_record_advance(RsdRecorder *recorder, uint64_t now);
/* This is for a command that rsd_advance() returned. */
void rsd_record_done(RsdRecorder *recorder, RsdCmd *cmd);
/* This comes before rsd_cmd_detach(). */
void rsd_record_detach(RsdRecorder *recorder, RsdCmd *cmd);
/* This comes after rsd_format(). */
void rsd_record_format(RsdRecorder *recorder, uint32_t index, uint32_t oob,
                       uint64_t now, RsdStatus status);
/* Ends the trace with the drive's counters after the last of these calls. */
void rsd_record_close(RsdRecorder *recorder);

/* These are power cuts and rewinding (rsd-power.c). See NvmeNamespaceOps. */
extern const uint8_t rsd_ns_vendor_opcodes[];
uint16_t rsd_ns_vendor_admin(NvmeNamespace *ns, const NvmeCmd *cmd, void *buf);
uint16_t rsd_fault_command(NvmeNamespace *ns, const NvmeCmd *cmd);
void rsd_ns_reset(NvmeNamespace *ns);
/*
 * Sets up the cuts that the properties ask for. Returns false and errp if they
 * are impossible.
 */
bool rsd_flash_setup_power(RsdFlash *flash, const RsdNamespace *rs,
                           Error **errp);
/* QEMU ends. Warns if a cut that was asked for has not come. */
void rsd_flash_warn_of_cut(const RsdFlash *flash);
/*
 * This comes after events: it tells the host if the drive has no power any
 * more.
 */
void rsd_flash_check_power(RsdFlash *flash);

/*
 * Puts the rules of a file in force (rsd-fault.c). Returns false and errp if
 * something is wrong with it.
 */
bool rsd_flash_set_faults(RsdFlash *flash, const char *path, Error **errp);
/* This comes after events: zones that rules made fail do so for the host. */
void rsd_flash_check_zones(RsdFlash *flash);

/* Adds the drive's settings as properties of the class (rsd-props.c). */
void rsd_ns_class_add_props(ObjectClass *oc);

#endif
