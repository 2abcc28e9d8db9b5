// SPDX-License-Identifier: GPL-2.0-or-later
/* A drive in memory for much data that is all alike. */
#include <stdlib.h>
#include <string.h>

#include "bare.h"

struct drive drive;
u8 common[RFS_BLOCK_BYTES];
static void *spare;		/* pages that nobody has, each with the next's address */

/*
 * Nothing gets lost on this drive, so of a block a few bytes are enough for a sum:
 * else sums would take a third of the time.
 */
u32 __real_rfs_crc(u32 crc, const void *data, size_t bytes);
u32 __wrap_rfs_crc(u32 crc, const void *data, size_t bytes);

u32 __wrap_rfs_crc(u32 crc, const void *data, size_t bytes)
{
	return __real_rfs_crc(crc, data, bytes > 256 ? 64 : bytes);
}

/* A page to be written whole */
static void *page_get(void)
{
	void *page = spare;

	if (!page)
		return malloc(RFS_BLOCK_BYTES);
	memcpy(&spare, page, sizeof(spare));
	return page;
}

static void page_put(void *page)
{
	if (!page || page == common)
		return;
	memcpy(page, &spare, sizeof(spare));
	spare = page;
}

static int drive_append(void *dev, u32 zone, u32 blocks,
			const void *const *data, const struct rfs_oob *oob,
			u64 *addr)
{
	u32 i;

	(void)dev;
	if (drive.power < blocks) {
		drive.power = 0;
		return -EIO;
	}
	drive.power -= blocks;
	if (drive.wp[zone] + blocks > drive.cap)
		return -ENOSPC;
	*addr = (u64)zone * drive.geo.zone_blocks + drive.wp[zone];
	for (i = 0; i < blocks; i++) {
		struct page *page = &drive.page[*addr + i];

		if (memcmp(data[i], common, RFS_BLOCK_BYTES)) {
			page->data = page_get();
			memcpy(page->data, data[i], RFS_BLOCK_BYTES);
		} else {
			page->data = common;
		}
		if (oob)
			page->oob = oob[i];
	}
	drive.wp[zone] += blocks;
	return 0;
}

static int drive_read(void *dev, u64 addr, void *data, struct rfs_oob *oob)
{
	const struct page *page = &drive.page[addr];

	(void)dev;
	if (page->data)
		memcpy(data, page->data, RFS_BLOCK_BYTES);
	else
		memset(data, 0, RFS_BLOCK_BYTES);
	if (oob)
		*oob = page->oob;
	return 0;
}

static int drive_reset(void *dev, u32 zone)
{
	u64 at = (u64)zone * drive.geo.zone_blocks, end = at + drive.cap;

	(void)dev;
	if (!drive.power)
		return -EIO;
	for (; at < end; at++) {
		page_put(drive.page[at].data);
		memset(&drive.page[at], 0, sizeof(drive.page[at]));
	}
	drive.wp[zone] = 0;
	return 0;
}

static int drive_finish(void *dev, u32 zone)
{
	(void)dev;
	drive.wp[zone] = drive.cap;
	return 0;
}

static int drive_done(void *dev)
{
	(void)dev;
	return drive.power ? 0 : -EIO;
}

static int drive_report(void *dev, u32 zone, struct rfs_dev_zone *out)
{
	(void)dev;
	out->cap = drive.cap;
	out->wp = drive.wp[zone];
	out->cond = RFS_DEV_OK;
	return 0;
}

static u64 drive_now(void *dev)
{
	(void)dev;
	return drive.time += 1000000;
}

const struct rfs_dev_ops drive_ops = {
	.append = drive_append, .wait = drive_done, .flush = drive_done,
	.read = drive_read, .reset = drive_reset, .finish = drive_finish,
	.report = drive_report, .now = drive_now,
};

void drive_end(void)
{
	u32 zone;

	drive.power = ~0ULL;
	for (zone = 0; drive.page && zone < drive.geo.zones; zone++)
		drive_reset(NULL, zone);
	free(drive.page);
	free(drive.wp);
	memset(&drive, 0, sizeof(drive));
}

void drive_begin(void)
{
	drive.power = ~0ULL;
	drive.page = calloc((size_t)drive.geo.zones * drive.geo.zone_blocks,
			    sizeof(*drive.page));
	drive.wp = calloc(drive.geo.zones, sizeof(*drive.wp));
	if (!drive.page || !drive.wp)
		abort();
}
