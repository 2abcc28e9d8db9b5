// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libnvme.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "snapshot.h"

static const char *reason(int ret)
{
	switch (ret & 0x7ff) {
	case NVME_SC_INVALID_OPCODE:
		return "the drive has no zones, or records a trace";
	case NVME_SC_INVALID_FIELD:
		return "its zone is offline, or it is not written";
	case NVME_SC_LBA_RANGE:
		return "the drive is smaller";
	}
	return nvme_status_to_string(ret, false);
}

int fault(const char *device, int how, uint64_t block)
{
	__u32 nsid;
	int fd, ret;

	if (!device)
		device = "/dev/nvme0n1";
	fd = open(device, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		error("%s: %s", device, strerror(errno));
		return 1;
	}
	ret = nvme_get_nsid(fd, &nsid);
	if (!ret)
		ret = nvme_admin_passthru(fd, RSD_ADMIN_FAULT, 0, 0, nsid, 0, 0,
					  how, 0, block, block >> 32, 1, 0, 0,
					  NULL, 0, NULL, 0, NULL);
	if (ret)
		error("%s: block %" PRIu64 ": %s", device, block,
		      ret < 0 ? strerror(errno) : reason(ret));
	close(fd);
	return ret != 0;
}
