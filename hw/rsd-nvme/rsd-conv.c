/*
 * Conventional namespaces: logical blocks that can be written in any order, as
 * any SSD has them, under one of the drive's translation layers.
 *
 *     -device rsd-ns,bus=nvme0,media=drive.rsd,ftl=page
 *
 * or beside the zones of a drive, on the same flash:
 *
 *     -device rsd-ns,bus=nvme0,id=zones,media=drive.rsd,conv-blocks=16
 *     -device rsd-ns-conv,bus=nvme0,flash=zones
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qapi/error.h"
#include "hw/qdev-properties.h"
#include "rsd-ns.h"

/*
 * Deallocated blocks read as zeroes (1), and write zeroes may deallocate (8).
 */
#define RSD_CONV_DLFEAT 0x9

static const NvmeLBAF rsd_conv_lbaf[] = {
    { .ds = 12, .ms = 0 },
    { .ds = 12, .ms = 16 },
    { .ds = 12, .ms = 64 },
};

/* Returns a zeroes-based number of logical blocks, as NPWG and its like are. */
static uint16_t rsd_conv_granularity(uint64_t blocks)
{
    return cpu_to_le16(MIN(blocks, 65536) - 1);
}

/*
 * Sets the fields that the host should know about it: the identify data exists
 * now.
 */
static bool rsd_conv_restore(NvmeNamespace *ns, Error **errp)
{
    const RsdConfig *cfg = rsd_config(RSD_NS_BASE(ns)->flash->drive);
    NvmeIdNs *id = &ns->id_ns;
    uint64_t page = cfg->page_size / ns->lbasz;

    id->dlfeat = RSD_CONV_DLFEAT;
    id->nsfeat |= NVME_ID_NS_NSFEAT_OPTPERF_ALL;
    id->npwg = id->npwa = rsd_conv_granularity(page);
    id->npdg = id->npda = rsd_conv_granularity(page);
    /* This is a page of every die: all of them are busy with one such write. */
    id->nows = rsd_conv_granularity(page * cfg->channels * cfg->ways);
    ns->id_ns_nvm.npdgl = ns->id_ns_nvm.npdal = page;

    return true;
}

static const NvmeNamespaceOps rsd_conv_ops = {
    .lbaf = rsd_conv_lbaf,
    .nlbaf = ARRAY_SIZE(rsd_conv_lbaf),
    .restore = rsd_conv_restore,
    .cleanup = rsd_ns_cleanup,
    .prepare = rsd_ns_prepare,
    .submit = rsd_ns_submit,
    .abandon = rsd_ns_abandon,
    .cancel = rsd_ns_cancel,
    .flush = rsd_ns_flush,
    .flush_cancel = rsd_ns_flush_cancel,
    .parts_done = rsd_ns_parts_done,
    .deallocate = rsd_ns_deallocate,
    .format = rsd_ns_format,
    .host_stats = rsd_ns_host_stats,
    .health = rsd_ns_health,
    .vendor_log = rsd_ns_vendor_log,
    .vendor_admin = rsd_ns_vendor_admin,
    .vendor_opcodes = rsd_ns_vendor_opcodes,
    .reset = rsd_ns_reset,
};

void rsd_conv_init(NvmeNamespace *ns)
{
    RsdNsBase *base = RSD_NS_BASE(ns);
    RsdDrive *drive = base->flash->drive;
    RsdGeometry geo;

    rsd_geometry(drive, base->index, &geo);
    ns->ops = &rsd_conv_ops;
    ns->oncs = NVME_ONCS_WRITE_ZEROES | NVME_ONCS_DSM;
    ns->blkconf.logical_block_size = 1 << rsd_conv_lbaf[0].ds;
    ns->size = geo.lbas * ns->blkconf.logical_block_size;
    ns->params.ms = rsd_oob(drive, base->index);
}

static bool rsd_conv_setup(NvmeNamespace *ns, Error **errp)
{
    RsdNamespace *rs = RSD_NS_CONV(ns)->flash;
    RsdFlash *flash = rs ? rs->parent_obj.flash : NULL;

    if (!rsd_ns_check_inherited(ns, errp)) {
        return false;
    }
    if (!flash) {
        error_setg(errp, TYPE_RSD_NS_CONV " needs 'flash', the id of the "
                   TYPE_RSD_NS " whose flash it shares; that comes before it");
        return false;
    }
    if (rsd_num_namespaces(flash->drive) < 2) {
        error_setg(errp, "'flash' has no conventional namespace: make the "
                   "drive with conv-blocks");
        return false;
    }
    if (flash->ns[1]) {
        error_setg(errp, "'flash' has its " TYPE_RSD_NS_CONV " already");
        return false;
    }

    rsd_ns_attach(ns, flash, 1);
    rsd_conv_init(ns);
    return true;
}

/* These are used until setup() has put rsd_conv_ops in their place. */
static const NvmeNamespaceOps rsd_conv_setup_ops = {
    .setup = rsd_conv_setup,
};

static const Property rsd_conv_props[] = {
    DEFINE_PROP_LINK("flash", RsdConvNamespace, flash, TYPE_RSD_NS,
                     RsdNamespace *),
};

static void rsd_conv_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);

    dc->desc = "conventional NVMe namespace on the flash of an rsd-ns";
    device_class_set_props(dc, rsd_conv_props);
    NVME_NS_CLASS(oc)->ops = &rsd_conv_setup_ops;

    object_class_property_set_description(oc, "flash",
        "id of the rsd-ns, made with conv-blocks, whose flash it shares");
}

static const TypeInfo rsd_conv_info = {
    .name = TYPE_RSD_NS_CONV,
    .parent = TYPE_RSD_NS_BASE,
    .instance_size = sizeof(RsdConvNamespace),
    .class_init = rsd_conv_class_init,
};

static void rsd_conv_register_types(void)
{
    type_register_static(&rsd_conv_info);
}

type_init(rsd_conv_register_types)
