// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <libnvme.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"

#define DEFAULT_NAMESPACE "/dev/nvme0n1"
#define DEFAULT_CONTROLLER "/dev/nvme0"

static int open_device(const char *device)
{
	struct stat st;
	int fd;

	fd = open(device, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		error("%s: %s%s", device, strerror(errno),
		      errno == ENOENT ? "; nvme list shows the drives" :
		      errno == EACCES ? "; run as root" : "");
		return -1;
	}
	if (fstat(fd, &st) < 0 ||
	    !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))) {
		error("%s: not a device; rsdctl decode reads a saved log page",
		      device);
		close(fd);
		return -1;
	}
	return fd;
}

const char *device_read_log(const char *device, void *page)
{
	__u32 nsid = NVME_NSID_ALL;
	int fd, ret, why;

	if (!device)
		device = access(DEFAULT_NAMESPACE, F_OK) &&
			 !access(DEFAULT_CONTROLLER, F_OK) ?
			 DEFAULT_CONTROLLER : DEFAULT_NAMESPACE;
	fd = open_device(device);
	if (fd < 0)
		return NULL;
	/*
	 * A controller has no namespace number, so the whole drive is asked
	 * for.
	 */
	if (nvme_get_nsid(fd, &nsid))
		nsid = NVME_NSID_ALL;
	ret = nvme_get_nsid_log(fd, false, RSD_LOG_ID, nsid, RSD_LOG_BYTES,
				page);
	why = errno;
	close(fd);
	if (ret < 0) {
		error("%s: %s%s", device, strerror(why),
		      why == ENOTTY ? "; not an NVMe device" :
		      why == EACCES || why == EPERM ? "; run as root" : "");
		return NULL;
	}
	if (ret) {
		error("%s: the drive refuses log page 0x%02x (%s), so it is not an rsd drive",
		      device, RSD_LOG_ID, nvme_status_to_string(ret, false));
		return NULL;
	}
	return page_is_ours(page, device) ? device : NULL;
}
