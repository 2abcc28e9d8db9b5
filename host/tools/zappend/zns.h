/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is a zoned namespace behind its generic character device, used by
 * passthrough.
 */
#ifndef ZAPPEND_ZNS_H
#define ZAPPEND_ZNS_H

#include <stdbool.h>
#include <stdint.h>

#define NVME_OP_READ 0x02
#define NVME_OP_ZONE_APPEND 0x7d

enum zone_state {
	ZONE_EMPTY = 0x1,
	ZONE_READ_ONLY = 0xd,
	ZONE_FULL = 0xe,
	ZONE_OFFLINE = 0xf,
};

/* Units are logical blocks unless the name says bytes. */
struct zns_dev {
	const char *path;
	int fd;
	int claim_fd;		/* the block device, held so nobody mounts it */
	uint32_t nsid;
	uint64_t blocks;
	uint32_t block_bytes;
	uint16_t oob_bytes;	/* metadata a block, in its own buffer */
	uint64_t zone_size;
	uint64_t zones;
	uint64_t max_transfer_bytes;	/* 0: no limit */
	uint64_t max_append_bytes;	/* 0: no limit */
	uint64_t max_in_flight;	/* commands the kernel has room for */
};

struct zone {
	uint64_t number;
	uint64_t start;		/* LBA */
	uint64_t capacity;
	uint64_t wp;		/* LBA; start + capacity when full */
	uint8_t state;
};

/*
 * Opens the generic character device @path and reads its geometry. @claim also
 * makes sure that nothing else (a mount) uses its block device. The functions
 * below return 0, or -1 after printing an error.
 */
int zns_open(struct zns_dev *dev, const char *path, bool claim);
void zns_close(struct zns_dev *dev);

/* Reads @count zones from zone number @first; all must exist. */
int zns_report(const struct zns_dev *dev, uint64_t first, uint64_t count,
	       struct zone *zones);

int zns_reset(const struct zns_dev *dev, const struct zone *zone);

/*
 * Says whether blocks can be appended to the zone, as far as its state allows.
 */
static inline bool zone_writable(const struct zone *z)
{
	return z->state != ZONE_FULL && z->state != ZONE_READ_ONLY &&
	       z->state != ZONE_OFFLINE;
}

#endif
