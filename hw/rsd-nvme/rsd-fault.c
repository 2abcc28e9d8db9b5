/*
 * Faults, for tests of the software above.
 *
 * On command: a zone fails, as of a drive that runs out of good blocks; written
 * blocks cannot be read any more, as of flash that lost its charge. The command
 * C4h of core/api/rsd-vendor.h.
 *
 * By rule: the drive's core injects them (core/api/scenario.h), but the states
 * of zones are the controller's.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "rsd-ns.h"
#include "core/api/rsd-vendor.h"
#include "trace.h"

static void rsd_zone_fail(NvmeNamespace *ns, NvmeZone *zone, bool offline)
{
    rsd_ns_drop_area(ns, zone);
    nvme_ns_degrade_zone(ns, zone, offline ? NVME_ZONE_STATE_OFFLINE
                                           : NVME_ZONE_STATE_READ_ONLY);
}

uint16_t rsd_fault_command(NvmeNamespace *ns, const NvmeCmd *cmd)
{
    RsdFlash *flash = RSD_NS_BASE(ns)->flash;
    uint32_t what = le32_to_cpu(cmd->cdw10), n = le32_to_cpu(cmd->cdw14);
    uint64_t lba = le32_to_cpu(cmd->cdw12) |
                   (uint64_t)le32_to_cpu(cmd->cdw13) << 32;
    NvmeZone *zone;

    if (flash->recorder || !flash->vendor_commands || !ns->params.zoned) {
        return NVME_INVALID_OPCODE | NVME_DNR;
    }
    if (flash->dead) {
        return NVME_CMD_SEQ_ERROR | NVME_DNR;
    }
    if (lba / ns->zone_size >= ns->num_zones) {
        return NVME_LBA_RANGE | NVME_DNR;
    }
    zone = &ns->zone_array[lba / ns->zone_size];
    if (nvme_get_zone_state(zone) == NVME_ZONE_STATE_OFFLINE) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    if (what == RSD_FAULT_UNREADABLE && n && n <= ns->zone_size) {
        return rsd_zone_spoil(flash->drive, lba, n)
               ? NVME_SUCCESS : NVME_INVALID_FIELD | NVME_DNR;
    }
    if (what != RSD_FAULT_READ_ONLY && what != RSD_FAULT_OFFLINE) {
        return NVME_INVALID_FIELD | NVME_DNR;
    }
    rsd_zone_fail(ns, zone, what == RSD_FAULT_OFFLINE);
    return NVME_SUCCESS;
}

static void rsd_fault_told(void *opaque, const RsdInjected *fault)
{
    trace_rsd_nvme_fault(fault->rule->line,
                         rsd_fault_info[fault->rule->kind].name,
                         fault->candidate, fault->die, fault->block,
                         fault->page, fault->lba);
}

bool rsd_flash_set_faults(RsdFlash *flash, const char *path, Error **errp)
{
    char err[RSD_ERR_LEN];

    if (!rsd_faults_load(flash->drive, path, err)) {
        error_setg(errp, "%s", err);
        return false;
    }
    rsd_faults_tell(flash->drive, rsd_fault_told, NULL);
    return true;
}

void rsd_flash_check_zones(RsdFlash *flash)
{
    NvmeNamespace *ns = flash->ns[0];
    uint32_t index;
    bool offline;

    while (ns && rsd_faults_zone(flash->drive, &index, &offline)) {
        NvmeZone *zone = &ns->zone_array[index];

        if (nvme_get_zone_state(zone) != NVME_ZONE_STATE_OFFLINE) {
            rsd_zone_fail(ns, zone, offline);
        }
    }
}
