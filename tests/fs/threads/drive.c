// SPDX-License-Identifier: GPL-2.0-or-later
#include "drive.h"

#define COMMANDS	8	/* that are under way at a time */
#define OOB		64
#define BLOCK_SECTORS	8

static struct {
	pthread_mutex_t m;
	pthread_cond_t c;
	pthread_t thread[COMMANDS];
	struct bio *first;
	u32 waiting;
	bool stop;
	u64 seed;
	u32 zones, zone_blocks, oob_bytes;
	u32 *wp;
	u8 *data, *oob;
	int copy_error;
	u32 refused;
	bool rows_fail;
	u32 rows, locked_reads;
} drive;

/* Under the drive's lock */
static u32 some(u32 most)
{
	drive.seed = drive.seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (drive.seed >> 33) % most;
}

static int append(struct bio *bio)
{
	u32 zone = bio->bi_iter.bi_sector / BLOCK_SECTORS / drive.zone_blocks, i;
	u64 at = (u64)zone * drive.zone_blocks + drive.wp[zone];
	const struct rfs_oob *oob = bio->oob;

	if (drive.copy_error && oob && oob->flags & RFS_OOB_COPY) {
		drive.refused++;
		return drive.copy_error;
	}
	if (drive.wp[zone] + bio->n > drive.zone_blocks)
		return -EIO;
	drive.wp[zone] += bio->n;
	for (i = 0; i < bio->n; i++)
		memcpy(drive.data + (at + i) * PAGE_SIZE, bio->page[i], PAGE_SIZE);
	if (oob)
		memcpy(drive.oob + at * OOB, oob, bio->n * OOB);
	bio->bi_iter.bi_sector = at * BLOCK_SECTORS;
	return 0;
}

static int read(struct bio *bio)
{
	u64 at = bio->bi_iter.bi_sector / BLOCK_SECTORS;
	u32 i;

	if (drive.rows_fail && bio->n > 1) {
		drive.rows++;
		return -ENODATA;
	}
	for (i = 0; i < bio->n; i++)
		memcpy(bio->page[i], drive.data + (at + i) * PAGE_SIZE, PAGE_SIZE);
	if (bio->oob)
		memcpy(bio->oob, drive.oob + at * OOB, bio->n * OOB);
	return 0;
}

static int reset(struct bio *bio)
{
	u64 zone = bio->bi_iter.bi_sector / BLOCK_SECTORS / drive.zone_blocks;
	u64 at = zone * drive.zone_blocks;

	drive.wp[zone] = 0;
	memset(drive.data + at * PAGE_SIZE, 0, (u64)drive.zone_blocks * PAGE_SIZE);
	memset(drive.oob + at * OOB, 0, (u64)drive.zone_blocks * OOB);
	return 0;
}

static int carry_out(struct bio *bio)
{
	switch (bio->op & SHIM_OPS) {
	case REQ_OP_READ:
		return read(bio);
	case REQ_OP_ZONE_APPEND:
		return append(bio);
	case REQ_OP_ZONE_RESET:
		return reset(bio);
	}
	return -EINVAL;
}

/* Any of those that wait; it is no longer among them. */
static struct bio *take(void)
{
	struct bio **at = &drive.first, *bio;
	u32 nth = some(drive.waiting);

	while (nth--)
		at = &(*at)->next;
	bio = *at;
	*at = bio->next;
	drive.waiting--;
	return bio;
}

static void *drive_main(void *arg)
{
	struct bio *bio;
	u32 rest;

	pthread_mutex_lock(&drive.m);
	for (;;) {
		while (!drive.first && !drive.stop)
			pthread_cond_wait(&drive.c, &drive.m);
		if (!drive.first)
			break;
		bio = take();
		bio->bi_status = carry_out(bio);
		rest = some(4) ? some(100) : some(2000);
		pthread_mutex_unlock(&drive.m);
		usleep(rest);
		bio->bi_end_io(bio);
		pthread_mutex_lock(&drive.m);
	}
	pthread_mutex_unlock(&drive.m);
	return arg;
}

void drive_start(u32 zones, u32 zone_blocks, u32 oob_bytes, u64 seed)
{
	u64 blocks = (u64)zones * zone_blocks;
	u32 i;

	pthread_mutex_init(&drive.m, NULL);
	pthread_cond_init(&drive.c, NULL);
	drive.seed = seed;
	drive.zones = zones;
	drive.zone_blocks = zone_blocks;
	drive.oob_bytes = oob_bytes;
	drive.wp = calloc(zones, sizeof(*drive.wp));
	drive.data = calloc(blocks, PAGE_SIZE);
	drive.oob = calloc(blocks, OOB);
	if (!drive.wp || !drive.data || !drive.oob)
		abort();
	for (i = 0; i < COMMANDS; i++)
		if (pthread_create(&drive.thread[i], NULL, drive_main, NULL))
			abort();
}

void drive_stop(void)
{
	u32 i;

	pthread_mutex_lock(&drive.m);
	drive.stop = true;
	pthread_cond_broadcast(&drive.c);
	pthread_mutex_unlock(&drive.m);
	for (i = 0; i < COMMANDS; i++)
		pthread_join(drive.thread[i], NULL);
	free(drive.wp);
	free(drive.data);
	free(drive.oob);
}

u32 drive_refuse_rows(bool refuses)
{
	u32 rows;

	pthread_mutex_lock(&drive.m);
	drive.rows_fail = refuses;
	rows = drive.rows;
	drive.rows = 0;
	pthread_mutex_unlock(&drive.m);
	return rows;
}

u32 drive_locked_reads(void)
{
	return __atomic_load_n(&drive.locked_reads, __ATOMIC_SEQ_CST);
}

u32 drive_refuse_copies(int error)
{
	u32 refused;

	pthread_mutex_lock(&drive.m);
	refused = drive.refused;
	drive.refused = 0;
	drive.copy_error = error;
	pthread_mutex_unlock(&drive.m);
	return refused;
}

const void *drive_block(u64 addr)
{
	return drive.data + addr * PAGE_SIZE;
}

struct memdev *drive_cut(void)
{
	struct rfs_geometry geo = { .zones = drive.zones,
				    .oob_bytes = drive.oob_bytes,
				    .zone_blocks = drive.zone_blocks };
	u64 blocks = (u64)drive.zones * drive.zone_blocks, at;
	struct memdev *cut;

	/* beside what is there now, as much can be appended */
	cut = memdev_new(&geo, drive.zone_blocks,
			 2 * blocks * (PAGE_SIZE + OOB), false);
	pthread_mutex_lock(&drive.m);
	memcpy(cut->wp, drive.wp, drive.zones * sizeof(*cut->wp));
	for (at = 0; at < blocks; at++) {
		struct mem_page *page = &cut->page[at];
		u8 *unit;

		if (at % drive.zone_blocks >= cut->wp[at / drive.zone_blocks])
			continue;
		unit = memdev_unit(cut);
		memcpy(unit, drive.data + at * PAGE_SIZE, PAGE_SIZE);
		memcpy(unit + PAGE_SIZE, drive.oob + at * OOB, OOB);
		page->data = unit;
		page->oob = (const struct rfs_oob *)(unit + PAGE_SIZE);
		page->state = MEM_OK;
	}
	pthread_mutex_unlock(&drive.m);
	return cut;
}

struct bio *bio_alloc_bioset(struct block_device *bdev, u32 n, blk_opf_t op,
			     gfp_t gfp, struct bio_set *set)
{
	struct bio *bio = mempool_alloc(&set->bios, gfp);

	(void)n;
	bio->bi_bdev = bdev;
	bio->op = op;
	bio->set = set;
	return bio;
}

void bio_init(struct bio *bio, struct block_device *bdev, struct bio_vec *vec,
	      u32 n, blk_opf_t op)
{
	(void)vec;
	(void)n;
	memset(bio, 0, sizeof(*bio));
	bio->bi_bdev = bdev;
	bio->op = op;
}

void bio_put(struct bio *bio)
{
	mempool_free(bio, &bio->set->bios);
}

void bio_reset(struct bio *bio, struct block_device *bdev, blk_opf_t op)
{
	struct bio_set *set = bio->set;

	bio_init(bio, bdev, NULL, 0, op);
	bio->set = set;
}

void submit_bio(struct bio *bio)
{
	pthread_mutex_lock(&drive.m);
	bio->next = drive.first;
	drive.first = bio;
	drive.waiting++;
	pthread_cond_signal(&drive.c);
	pthread_mutex_unlock(&drive.m);
}

static void wake_waiter(struct bio *bio)
{
	complete(bio->bi_private);
}

int submit_bio_wait(struct bio *bio)
{
	struct completion done;

	if ((bio->op & SHIM_OPS) == REQ_OP_READ && shim_locked())
		__atomic_add_fetch(&drive.locked_reads, 1, __ATOMIC_SEQ_CST);
	init_completion(&done);
	bio->bi_private = &done;
	bio->bi_end_io = wake_waiter;
	submit_bio(bio);
	wait_for_completion_io(&done);
	return bio->bi_status;
}

int blkdev_zone_mgmt(struct block_device *bdev, blk_opf_t op, sector_t from,
		     sector_t n)
{
	struct bio bio;

	(void)n;
	bio_init(&bio, bdev, NULL, 0, op);
	bio.bi_iter.bi_sector = from;
	return submit_bio_wait(&bio);
}

int blkdev_report_zones(struct block_device *bdev, sector_t from, u32 n,
			int (*tell)(struct blk_zone *zone, unsigned int index,
				    void *data), void *data)
{
	u32 zone = from / BLOCK_SECTORS / drive.zone_blocks, i;

	(void)bdev;
	for (i = 0; i < n && zone + i < drive.zones; i++) {
		u64 sectors = (u64)drive.zone_blocks * BLOCK_SECTORS;
		struct blk_zone told = { .start = (zone + i) * sectors,
					 .capacity = sectors };

		pthread_mutex_lock(&drive.m);
		told.wp = told.start + (u64)drive.wp[zone + i] * BLOCK_SECTORS;
		told.cond = drive.wp[zone + i] ? BLK_ZONE_COND_OPEN :
						 BLK_ZONE_COND_EMPTY;
		pthread_mutex_unlock(&drive.m);
		tell(&told, i, data);
	}
	return i;
}

const struct blk_integrity *shim_integrity(void)
{
	static const struct blk_integrity of_rfs = { .tuple_size = OOB };

	return drive.oob_bytes ? &of_rfs : NULL;
}

u32 shim_zone_sectors(void)
{
	return drive.zone_blocks * BLOCK_SECTORS;
}

u32 shim_zones(void)
{
	return drive.zones;
}
