/*
 * Faults on command, for tests of the software above: a zone fails, as of a
 * drive that runs out of good blocks; written blocks cannot be read any more,
 * as of flash that lost its charge. The command C4h of core/api/rsd-vendor.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "rsd-ns.h"
#include "core/api/rsd-vendor.h"

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
    rsd_ns_drop_area(ns, zone);
    nvme_ns_degrade_zone(ns, zone, what == RSD_FAULT_OFFLINE
                                   ? NVME_ZONE_STATE_OFFLINE
                                   : NVME_ZONE_STATE_READ_ONLY);
    return NVME_SUCCESS;
}
