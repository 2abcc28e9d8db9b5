// SPDX-License-Identifier: GPL-2.0-or-later
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "status.h"
#include "zns.h"

#define ADMIN_IDENTIFY 0x06
#define CNS_NAMESPACE 0x00
#define CNS_CONTROLLER 0x01
#define CNS_CSI_NAMESPACE 0x05
#define CNS_CSI_CONTROLLER 0x06
#define CSI_ZONED 2
#define IDENTIFY_BYTES 4096

#define OP_ZONE_MGMT_SEND 0x79
#define OP_ZONE_MGMT_RECV 0x7a
#define ZSA_RESET 0x04
#define ZRA_PARTIAL (1u << 16)
#define REPORT_BYTES 4096
#define REPORT_HEADER 64
#define REPORT_DESCRIPTOR 64
#define REPORT_ZONES ((REPORT_BYTES - REPORT_HEADER) / REPORT_DESCRIPTOR)

/*
 * The unit of MDTS and ZASL is the controller's smallest page size, which a
 * user program cannot read; it is 4 KiB on every controller that Linux on
 * x86 or arm64 drives.
 */
#define MPS_MIN 4096ull

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* Returns 0, an NVMe status, or -1 with errno set. */
static int identify(const struct zns_dev *dev, uint32_t nsid, uint8_t cns,
		    uint8_t csi, uint8_t *buf)
{
	struct nvme_admin_cmd cmd = {
		.opcode = ADMIN_IDENTIFY,
		.nsid = nsid,
		.addr = (uintptr_t)buf,
		.data_len = IDENTIFY_BYTES,
		.cdw10 = cns,
		.cdw11 = (uint32_t)csi << 24,
	};

	return ioctl(dev->fd, NVME_IOCTL_ADMIN_CMD, &cmd);
}

static int failed(const struct zns_dev *dev, const char *what, int ret)
{
	if (ret < 0)
		error("%s: %s: %s", dev->path, what, strerror(errno));
	else
		error("%s: %s: NVMe status 0x%03x, %s", dev->path, what,
		      ret & NVME_STATUS_MASK, nvme_status_name(ret));
	return -1;
}

static int read_namespace(struct zns_dev *dev)
{
	uint8_t id[IDENTIFY_BYTES];
	uint8_t flbas, index, shift;
	int ret;

	ret = identify(dev, dev->nsid, CNS_NAMESPACE, 0, id);
	if (ret)
		return failed(dev, "Identify Namespace", ret);
	dev->blocks = get64(id);
	flbas = id[26];
	index = (flbas & 0xf) | (flbas >> 5 & 0x3) << 4;
	dev->oob_bytes = get16(id + 128 + 4 * index);
	shift = id[128 + 4 * index + 2];
	if (shift < 9 || shift > 16) {
		error("%s: logical blocks of 2^%u bytes; zappend takes 512 to 65536 bytes",
		      dev->path, shift);
		return -1;
	}
	dev->block_bytes = 1u << shift;
	if (dev->oob_bytes && (flbas & 0x10)) {
		error("%s: the metadata is part of each block (extended LBA); zappend needs it in a separate buffer: format with mset=0",
		      dev->path);
		return -1;
	}
	if (id[29] & 0x7) {
		error("%s: the namespace uses protection information, which zappend does not generate: format with pi=0",
		      dev->path);
		return -1;
	}

	ret = identify(dev, dev->nsid, CNS_CSI_NAMESPACE, CSI_ZONED, id);
	if (ret < 0)
		return failed(dev, "Identify zoned namespace", ret);
	dev->zone_size = ret ? 0 : get64(id + 2816 + 16 * index);
	if (!dev->zone_size) {
		error("%s: not a zoned namespace, so it has no zones to append to",
		      dev->path);
		return -1;
	}
	dev->zones = dev->blocks / dev->zone_size;
	return 0;
}

static int read_controller(struct zns_dev *dev)
{
	uint8_t id[IDENTIFY_BYTES];
	int ret;

	ret = identify(dev, 0, CNS_CONTROLLER, 0, id);
	if (ret)
		return failed(dev, "Identify Controller", ret);
	if (id[77])
		dev->max_transfer_bytes = MPS_MIN << id[77];

	ret = identify(dev, 0, CNS_CSI_CONTROLLER, CSI_ZONED, id);
	if (ret)
		return failed(dev, "Identify zoned controller", ret);
	dev->max_append_bytes = id[0] ? MPS_MIN << id[0] :
					dev->max_transfer_bytes;
	return 0;
}

/* Makes "nvme0n1" of /dev/ng0n1. */
static int block_device_name(const struct zns_dev *dev, char *buf, size_t size)
{
	const char *name = strrchr(dev->path, '/');

	name = name ? name + 1 : dev->path;
	if (strncmp(name, "ng", 2)) {
		error("%s: give the generic device by its name, as /dev/ng0n1",
		      dev->path);
		return -1;
	}
	snprintf(buf, size, "nvme%s", name + 2);
	return 0;
}

/*
 * Returns how many passthrough commands may be in flight. A command beyond this
 * limit is not refused but tried again later. Linux 6.12 then reads it from its
 * place in the submission ring, which the next command has taken, so the wrong
 * command is sent.
 */
static int read_max_in_flight(struct zns_dev *dev)
{
	char block[64], path[128];
	FILE *file;
	int got;

	if (block_device_name(dev, block, sizeof(block)))
		return -1;
	snprintf(path, sizeof(path), "/sys/block/%s/queue/nr_requests", block);
	file = fopen(path, "r");
	if (!file) {
		error("%s: %s", path, strerror(errno));
		return -1;
	}
	got = fscanf(file, "%" SCNu64, &dev->max_in_flight);
	fclose(file);
	if (got == 1 && dev->max_in_flight)
		return 0;
	error("%s: does not hold a number", path);
	return -1;
}

/*
 * Passthrough goes past the kernel's zone handling, so the device must have
 * no other user: an exclusive open of its block device claims it.
 */
static int claim_block_device(struct zns_dev *dev)
{
	char name[64], block[80];

	if (block_device_name(dev, name, sizeof(name)))
		return -1;
	snprintf(block, sizeof(block), "/dev/%s", name);
	dev->claim_fd = open(block, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (dev->claim_fd < 0 && errno == EBUSY) {
		error("%s: %s is in use (mounted?); appending would destroy it: unmount it first",
		      dev->path, block);
		return -1;
	}
	return 0;
}

int zns_open(struct zns_dev *dev, const char *path, bool claim)
{
	struct stat st;
	int nsid;

	memset(dev, 0, sizeof(*dev));
	dev->path = path;
	dev->claim_fd = -1;
	dev->fd = open(path, O_RDWR | O_CLOEXEC);
	if (dev->fd < 0) {
		error("%s: %s%s", path, strerror(errno),
		      errno == ENOENT ? "; ls /dev/ng* lists the namespaces" :
		      errno == EACCES ? "; run as root" : "");
		return -1;
	}
	if (fstat(dev->fd, &st) < 0 || !S_ISCHR(st.st_mode)) {
		error("%s: not a character device; give the namespace's generic device, as /dev/ng0n1 for /dev/nvme0n1",
		      path);
		goto fail;
	}
	nsid = ioctl(dev->fd, NVME_IOCTL_ID);
	if (nsid <= 0) {
		error("%s: not an NVMe namespace (NVME_IOCTL_ID: %s); give its generic device, as /dev/ng0n1",
		      path, strerror(errno));
		goto fail;
	}
	dev->nsid = nsid;
	if (read_namespace(dev) || read_controller(dev) ||
	    read_max_in_flight(dev))
		goto fail;
	if (claim && claim_block_device(dev))
		goto fail;
	return 0;
fail:
	zns_close(dev);
	return -1;
}

void zns_close(struct zns_dev *dev)
{
	close(dev->fd);
	if (dev->claim_fd >= 0)
		close(dev->claim_fd);
}

static void parse_zone(const struct zns_dev *dev, const uint8_t *desc,
		       struct zone *z)
{
	z->state = desc[1] >> 4;
	z->capacity = get64(desc + 8);
	z->start = get64(desc + 16);
	z->number = z->start / dev->zone_size;
	/* The write pointer of a full zone is not valid. */
	z->wp = zone_writable(z) ? get64(desc + 24) : z->start + z->capacity;
}

int zns_report(const struct zns_dev *dev, uint64_t first, uint64_t count,
	       struct zone *zones)
{
	uint8_t buf[REPORT_BYTES];
	uint64_t done = 0, n, i;
	int ret;

	while (done < count) {
		uint64_t lba = (first + done) * dev->zone_size;
		struct nvme_passthru_cmd cmd = {
			.opcode = OP_ZONE_MGMT_RECV,
			.nsid = dev->nsid,
			.addr = (uintptr_t)buf,
			.data_len = sizeof(buf),
			.cdw10 = lba,
			.cdw11 = lba >> 32,
			.cdw12 = sizeof(buf) / 4 - 1,
			.cdw13 = ZRA_PARTIAL,
		};

		ret = ioctl(dev->fd, NVME_IOCTL_IO_CMD, &cmd);
		if (ret)
			return failed(dev, "zone report", ret);
		n = get64(buf);
		if (!n || n > REPORT_ZONES) {
			error("%s: the zone report from zone %llu holds %llu zones",
			      dev->path, (unsigned long long)(first + done),
			      (unsigned long long)n);
			return -1;
		}
		for (i = 0; i < n && done < count; i++, done++)
			parse_zone(dev, buf + REPORT_HEADER +
				   i * REPORT_DESCRIPTOR, &zones[done]);
	}
	return 0;
}

int zns_reset(const struct zns_dev *dev, const struct zone *zone)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = OP_ZONE_MGMT_SEND,
		.nsid = dev->nsid,
		.cdw10 = zone->start,
		.cdw11 = zone->start >> 32,
		.cdw13 = ZSA_RESET,
	};
	char what[48];
	int ret;

	ret = ioctl(dev->fd, NVME_IOCTL_IO_CMD, &cmd);
	if (!ret)
		return 0;
	snprintf(what, sizeof(what), "reset of zone %llu",
		 (unsigned long long)zone->number);
	return failed(dev, what, ret);
}
