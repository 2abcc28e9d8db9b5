/*
 * The RSD namespace of QEMU's nvme controller.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_RSD_NVME_RSD_NS_H
#define HW_RSD_NVME_RSD_NS_H

#include "qemu/timer.h"
#include "hw/nvme/nvme.h"
#include "core/rsd.h"

#define TYPE_RSD_NS "rsd-ns"
OBJECT_DECLARE_SIMPLE_TYPE(RsdNamespace, RSD_NS)

/*
 * Besides the attributes NVMe defines, the saved attributes of a zone tell a
 * zone that the host finished from one that was written to its end: only the
 * first is full whatever was programmed.
 */
#define RSD_ZA_FINISHED 0x40

struct RsdNamespace {
    NvmeNamespace parent_obj;

    RsdConfig cfg;
    uint64_t set;               /* bit n: property n was given by the user */
    char *preset;
    char *media;
    bool host_sync;

    RsdDrive *drive;
    QEMUTimer *timer;           /* at the drive's next event */
    NvmeZone *finishing;        /* zone_finish() was called for it */
};

/* The data path (rsd-io.c). See NvmeNamespaceOps for what each does. */
uint16_t rsd_ns_prepare(NvmeNamespace *ns, NvmeRequest *req, uint64_t slba,
                        uint32_t nlb);
uint16_t rsd_ns_submit(NvmeNamespace *ns, NvmeRequest *req);
void rsd_ns_abandon(NvmeNamespace *ns, NvmeRequest *req);
void rsd_ns_cancel(NvmeNamespace *ns, NvmeRequest *req);
uint16_t rsd_ns_flush(NvmeNamespace *ns);
uint16_t rsd_ns_zone_reset(NvmeNamespace *ns, NvmeRequest *req,
                           NvmeZone *zone);
uint16_t rsd_ns_zone_finish(NvmeNamespace *ns, NvmeRequest *req,
                            NvmeZone *zone);
uint16_t rsd_ns_zone_mgmt_done(NvmeNamespace *ns, NvmeRequest *req);
uint16_t rsd_ns_format(NvmeNamespace *ns, uint8_t idx);

/* The drive's timer: completes what is due. */
void rsd_ns_timer(void *opaque);

/* The drive's settings as properties of the class (rsd-props.c). */
void rsd_ns_class_add_props(ObjectClass *oc);

#endif
