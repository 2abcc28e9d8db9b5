// SPDX-License-Identifier: GPL-2.0-or-later
/* A drive in memory for much data that is all alike. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bare.h"

struct drive drive;
u8 common[RFS_BLOCK_BYTES];
#define PARTS_MOST	(RFS_BLOCK_BYTES / 512 + 1)

/* Memory that no block has, of each number of parts, with the next one's address */
static void *spare[PARTS_MOST + 1];
static u8 *fresh;		/* some that none ever had, of the last memory */
static size_t fresh_bytes;
static struct page *pages;	/* of the last drive, zeroes again: the next one's */
static size_t pages_bytes;

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

/*
 * Of other blocks the lines that are not all zeroes are kept: most have few, and what
 * is not moved is not waited for.
 */
#define LINE		64
#define PART		8	/* lines that memory is given out by */

struct lines {
	u64 word[LINE / sizeof(u64)];
};

static bool line_used(const struct lines *line)
{
	const u64 *w = line->word;

	return w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7];
}

/* For so many parts of a block */
static void *page_get(u32 parts)
{
	size_t bytes = parts * PART * sizeof(struct lines);
	void *page = spare[parts];

	if (page) {
		memcpy(&spare[parts], page, sizeof(page));
		return page;
	}
	if (fresh_bytes < bytes) {
		fresh = memory_get(HUGE);
		fresh_bytes = HUGE;
	}
	fresh_bytes -= bytes;
	return fresh + fresh_bytes;
}

static u32 parts_of(u64 used)
{
	u32 lines = 0;

	for (; used; used &= used - 1)
		lines++;
	return lines / PART + 1;
}

static void page_put(struct page *page)
{
	u32 parts;

	if (!page->data || page->data == common)
		return;
	parts = parts_of(page->used);
	memcpy(page->data, &spare[parts], sizeof(spare[parts]));
	spare[parts] = page->data;
}

static void page_write(struct page *page, const void *data)
{
	const struct lines *from = data;
	struct lines *to;
	u64 used = 0;
	u32 i;

	for (i = 0; i < RFS_BLOCK_BYTES / LINE; i++)
		used |= (u64)line_used(&from[i]) << i;
	to = page_get(parts_of(used));
	page->data = (u8 *)to;
	page->used = used;
	for (i = 0; i < RFS_BLOCK_BYTES / LINE; i++)
		if (used >> i & 1)
			*to++ = from[i];
}

static void page_read(const struct page *page, void *data)
{
	const struct lines *from = (const struct lines *)page->data;
	struct lines *to = data;
	u64 used;

	memset(data, 0, RFS_BLOCK_BYTES);
	for (used = page->used; used; used &= used - 1)
		to[__builtin_ctzll(used)] = *from++;
}

/* From now on nothing is written to the zone; what is in it stays. */
static bool zone_fails(u32 zone)
{
	if (zone >= RFS_CP_ZONES && drive.cond[zone] == RFS_DEV_OK &&
	    drive.fails && !--drive.fails) {
		drive.cond[zone] = RFS_DEV_READ_ONLY;
		drive.at_once++;
		if (drive.more) {
			drive.more--;
			drive.fails = drive.apart;
		}
	}
	return drive.cond[zone] != RFS_DEV_OK;
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
	if (zone_fails(zone))
		return -EIO;
	drive.power -= blocks;
	if (drive.wp[zone] + blocks > drive.cap)
		return -ENOSPC;
	*addr = (u64)zone * drive.geo.zone_blocks + drive.wp[zone];
	for (i = 0; i < blocks; i++) {
		struct page *page = &drive.page[*addr + i];

		if (memcmp(data[i], common, KNOWN_BY)) {
			page_write(page, data[i]);
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
	if (page->data == common)
		memcpy(data, common, KNOWN_BY);
	else	/* of what was not written, none is used */
		page_read(page, data);
	if (oob)
		*oob = page->oob;
	return 0;
}

static void zone_empty(u32 zone)
{
	u64 at = (u64)zone * drive.geo.zone_blocks, end = at + drive.wp[zone];

	for (; at < end; at++) {
		page_put(&drive.page[at]);
		memset(&drive.page[at], 0, sizeof(drive.page[at]));
	}
	drive.wp[zone] = 0;
}

static int drive_reset(void *dev, u32 zone)
{
	(void)dev;
	if (!drive.power || zone_fails(zone))
		return -EIO;
	zone_empty(zone);
	return 0;
}

static int drive_finish(void *dev, u32 zone)
{
	(void)dev;
	if (drive.cond[zone] != RFS_DEV_OK)
		return -EIO;
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
	out->cond = drive.cond[zone];
	out->wp = out->cond == RFS_DEV_OK ? drive.wp[zone] : drive.cap;
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
		zone_empty(zone);
	free(drive.wp);
	free(drive.cond);
	memset(&drive, 0, sizeof(drive));
}

void drive_begin(void)
{
	size_t bytes = (size_t)drive.geo.zones * drive.geo.zone_blocks *
		       sizeof(*drive.page);

	drive.power = ~0ULL;
	if (bytes > pages_bytes) {
		free(pages);
		pages = memory_get(bytes);
		memset(pages, 0, bytes);
		pages_bytes = bytes;
	}
	drive.page = pages;
	drive.wp = calloc(drive.geo.zones, sizeof(*drive.wp));
	drive.cond = calloc(drive.geo.zones, sizeof(*drive.cond));
	if (!drive.wp || !drive.cond)
		abort();
}
