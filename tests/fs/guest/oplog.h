/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many operations the log of a drive has, for programs that say what they have promised. */
#ifndef OPLOG_H
#define OPLOG_H

#include <linux/nvme_ioctl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "rsd-vendor.h"

/* namespace: its block device, open. False: errno says why, if it is not another version */
static inline bool oplog_operations(int namespace, unsigned long long *operations)
{
	static RsdOplogData state;
	struct nvme_passthru_cmd cmd = {
		.opcode = RSD_ADMIN_OPLOG,
		.nsid = ioctl(namespace, NVME_IOCTL_ID),
		.addr = (uintptr_t)&state,
		.data_len = sizeof(state),
		.cdw10 = RSD_OPLOG_STATE,
	};

	if (ioctl(namespace, NVME_IOCTL_ADMIN_CMD, &cmd) || state.version != RSD_OPLOG_VERSION)
		return false;
	*operations = state.ops;
	return true;
}

#endif
