/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ZAPPEND_STATUS_H
#define ZAPPEND_STATUS_H

/*
 * These are the status code type and code, without the More and Do Not Retry
 * bits.
 */
#define NVME_STATUS_MASK 0x7ff

/*
 * Returns the specification's name of an NVMe status, or "unknown status". The
 * string is constant.
 */
const char *nvme_status_name(unsigned int status);

#endif
