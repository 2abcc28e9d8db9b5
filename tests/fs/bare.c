// SPDX-License-Identifier: GPL-2.0-or-later
/* A drive in memory for much data that is all alike. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bare.h"

struct drive drive;
u8 common[RFS_BLOCK_BYTES];
static void *spare;		/* blocks that nobody has, each with the next's address */
static u8 *fresh;		/* some that nobody ever had, of the last memory */
static size_t fresh_bytes;

/*
 * Blocks that are alike are known by what that sum is of, and no more of them is moved:
 * whoever reads one has of the rest what was there before. Metadata begins otherwise.
 */
#define KNOWN_BY	64

/*
 * Nothing gets lost on this drive, so of a block a few bytes are enough for a sum:
 * else sums would take a third of the time.
 */
u32 __real_rfs_crc(u32 crc, const void *data, size_t bytes);
u32 __wrap_rfs_crc(u32 crc, const void *data, size_t bytes);

u32 __wrap_rfs_crc(u32 crc, const void *data, size_t bytes)
{
	return __real_rfs_crc(crc, data, bytes > 256 ? KNOWN_BY : bytes);
}

#define HUGE		(2UL << 20)	/* bytes of a large page of memory */

/* Few large pages of memory are found sooner than many small ones. */
static void *memory_get(size_t bytes)
{
	void *memory;

	bytes = (bytes + HUGE - 1) / HUGE * HUGE;
	memory = aligned_alloc(HUGE, bytes);
	if (!memory)
		abort();
	madvise(memory, bytes, MADV_HUGEPAGE);
	return memory;
}

/* For a block to be written whole */
static void *page_get(void)
{
	void *page = spare;

	if (page) {
		memcpy(&spare, page, sizeof(spare));
		return page;
	}
	if (!fresh_bytes) {
		fresh = memory_get(HUGE);
		fresh_bytes = HUGE;
	}
	fresh_bytes -= RFS_BLOCK_BYTES;
	return fresh + fresh_bytes;
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

		if (memcmp(data[i], common, KNOWN_BY)) {
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
		memcpy(data, page->data, page->data == common ? KNOWN_BY :
							   RFS_BLOCK_BYTES);
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
	size_t bytes = (size_t)drive.geo.zones * drive.geo.zone_blocks *
		       sizeof(*drive.page);

	drive.power = ~0ULL;
	drive.page = memory_get(bytes);
	memset(drive.page, 0, bytes);
	drive.wp = calloc(drive.geo.zones, sizeof(*drive.wp));
	if (!drive.wp)
		abort();
}
