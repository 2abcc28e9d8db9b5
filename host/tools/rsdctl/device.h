/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef RSDCTL_DEVICE_H
#define RSDCTL_DEVICE_H

#include "snapshot.h"

/*
 * Reads the vendor log page of @device (a namespace or a controller) into
 * @page, RSD_LOG_BYTES. NULL is /dev/nvme0n1, or else /dev/nvme0. Returns the
 * device's name, or NULL after an error.
 */
const char *device_read_log(const char *device, void *page);

#endif
