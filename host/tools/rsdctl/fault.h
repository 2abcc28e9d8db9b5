/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This makes faults on command: the drive's vendor command C4h (rsd-vendor.h).
 */
#ifndef RSDCTL_FAULT_H
#define RSDCTL_FAULT_H

#include <stdint.h>

#include "rsd-vendor.h"

/*
 * Makes a block of the namespace @device (NULL: /dev/nvme0n1), or its zone,
 * fail, as RSD_FAULT_... says. Returns 0, or 1 after a message.
 */
int fault(const char *device, int how, uint64_t block);

#endif
