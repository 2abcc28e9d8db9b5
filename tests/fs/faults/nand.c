// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rsd.h"
#include "scenario.h"

#include "nand.h"

/* 128 zones of 256 blocks, 1 MiB each, on 4 dies; and spares for what fails */
static void configure(RsdConfig *cfg)
{
	rsd_preset_find("custom")->apply(cfg);
	cfg->channels = 2;
	cfg->ways = 2;
	cfg->blocks = 168;
	cfg->spare_blocks = 40;
	cfg->pages = 64;
	cfg->oob = RFS_OOB_BYTES;
	cfg->endurance = 1000000;
}

struct zone {
	u32 wp;
	u32 destroyed;		/* blocks */
	enum rfs_dev_cond cond;
};

enum what { NOTHING, DATA, METADATA };

struct block {
	u8 what;		/* enum what, of what was appended */
	bool destroyed;
};

struct rfs_geometry nand_geo;
static RsdDrive *drive;
static u32 cap;
static struct zone *zones;
static struct block *blocks;
static u64 clock_ns, faults;
static const RsdCmd *current;	/* under way */
static u32 destroyed_metadata;

static void fail(const char *why)
{
	fprintf(stderr, "faults: %s\n", why);
	exit(2);
}

static void destroy(u64 addr)
{
	struct block *b = &blocks[addr];

	if (b->destroyed)
		return;
	b->destroyed = true;
	destroyed_metadata += b->what == METADATA;
	zones[addr / nand_geo.zone_blocks].destroyed++;
}

static void forget(u64 addr)
{
	struct block *b = &blocks[addr];

	if (b->destroyed) {
		destroyed_metadata -= b->what == METADATA;
		zones[addr / nand_geo.zone_blocks].destroyed--;
	}
	memset(b, 0, sizeof(*b));
}

/* Of one rule a command may lose all that it writes; of another, one block of it. */
static void told(void *opaque, const RsdInjected *fault)
{
	u32 i;

	(void)opaque;
	faults++;
	if (fault->rule->kind == RSD_FAULT_CORRUPT_RULE)
		destroy(fault->lba);
	for (i = 0; fault->rule->kind == RSD_FAULT_LOST_RULE && i < current->nlb; i++)
		destroy(current->lba + i);
}

static void look_at_zones(void)
{
	u32 zone, i;
	bool offline;

	while (rsd_faults_zone(drive, &zone, &offline)) {
		if (zones[zone].cond == RFS_DEV_OFFLINE)
			continue;
		zones[zone].cond = offline ? RFS_DEV_OFFLINE : RFS_DEV_READ_ONLY;
		for (i = 0; offline && i < zones[zone].wp; i++)
			destroy((u64)zone * nand_geo.zone_blocks + i);
	}
}

/* Does a command, and waits for it. Its buffers are there until nand_free(). */
static RsdStatus carry_out(RsdCmd *cmd)
{
	RsdStatus status;
	RsdCmd *done;

	current = cmd;
	status = rsd_submit(drive, cmd, clock_ns);
	if (status == RSD_OK) {
		do {
			done = rsd_advance_to_done(drive);
		} while (done && done != cmd);
		if (!done)
			fail("a command never ends");
		clock_ns = cmd->done_ns;
		status = cmd->status;
	}
	current = NULL;
	return status;
}

static RsdCmd *command(RsdOp op, u64 lba, u32 n)
{
	RsdCmd *cmd = rsd_cmd_new(drive, 0, op, lba, n);

	if (!cmd)
		fail("there is no memory for a command");
	return cmd;
}

static RsdStatus zone_command(RsdOp op, u32 zone)
{
	RsdCmd *cmd = command(op, (u64)zone * nand_geo.zone_blocks, 0);
	RsdStatus status = carry_out(cmd);

	rsd_cmd_free(drive, cmd);
	return status;
}

static int nand_append(void *dev, u32 zone, u32 n, const void *const *data,
		       const struct rfs_oob *oob, u64 *addr)
{
	struct zone *z = &zones[zone];
	RsdStatus status;
	RsdCmd *cmd;
	u32 i;

	(void)dev;
	if (z->cond != RFS_DEV_OK)
		return -EIO;
	if (z->wp + n > cap)
		return -ENOSPC;
	*addr = (u64)zone * nand_geo.zone_blocks + z->wp;
	cmd = command(RSD_WRITE, *addr, n);
	cmd->append = true;
	for (i = 0; i < n; i++) {
		memcpy(cmd->data + (size_t)i * RFS_BLOCK_BYTES, data[i], RFS_BLOCK_BYTES);
		memcpy(cmd->oob + (size_t)i * RFS_OOB_BYTES, &oob[i], RFS_OOB_BYTES);
		blocks[*addr + i].what = oob[i].type == RFS_DATA ? DATA : METADATA;
	}
	status = carry_out(cmd);
	rsd_cmd_free(drive, cmd);
	if (status == RSD_E_READONLY)
		fail("the drive is worn out: let the rules retire fewer blocks");
	if (status != RSD_OK) {
		/* what is in the zone stays, as in one that has no block left to write to */
		z->cond = RFS_DEV_READ_ONLY;
		return -EIO;
	}
	z->wp += n;
	look_at_zones();
	return 0;
}

static int nand_read(void *dev, u64 addr, void *data, struct rfs_oob *oob)
{
	RsdStatus status;
	RsdCmd *cmd;

	(void)dev;
	if (zones[addr / nand_geo.zone_blocks].cond == RFS_DEV_OFFLINE)
		return -EIO;
	cmd = command(RSD_READ, addr, 1);
	status = carry_out(cmd);
	memcpy(data, cmd->data, RFS_BLOCK_BYTES);
	if (oob)
		memcpy(oob, cmd->oob, RFS_OOB_BYTES);
	rsd_cmd_free(drive, cmd);
	if (status == RSD_E_MEDIA)
		destroy(addr);
	return status == RSD_OK ? 0 : -EIO;
}

static int nand_reset(void *dev, u32 zone)
{
	u64 first = (u64)zone * nand_geo.zone_blocks;
	struct zone *z = &zones[zone];
	u32 i;

	(void)dev;
	if (z->cond != RFS_DEV_OK || zone_command(RSD_ZONE_RESET, zone) != RSD_OK)
		return -EIO;
	z->wp = 0;
	for (i = 0; i < cap; i++)
		forget(first + i);
	return 0;
}

static int nand_finish(void *dev, u32 zone)
{
	struct zone *z = &zones[zone];

	(void)dev;
	if (z->cond != RFS_DEV_OK || zone_command(RSD_ZONE_FINISH, zone) != RSD_OK)
		return -EIO;
	z->wp = cap;
	return 0;
}

static int nand_done(void *dev)
{
	(void)dev;
	return 0;
}

static int nand_report(void *dev, u32 zone, struct rfs_dev_zone *out)
{
	(void)dev;
	*out = (struct rfs_dev_zone) {
		.cap = cap, .cond = zones[zone].cond,
		.wp = zones[zone].cond == RFS_DEV_OK ? zones[zone].wp : cap,
	};
	return 0;
}

static u64 nand_now(void *dev)
{
	(void)dev;
	return clock_ns;
}

const struct rfs_dev_ops nand_ops = {
	.append = nand_append, .wait = nand_done, .flush = nand_done,
	.read = nand_read, .reset = nand_reset, .finish = nand_finish,
	.report = nand_report, .now = nand_now,
};

void nand_begin(const char *media, const char *rules)
{
	char err[RSD_ERR_LEN];
	RsdGeometry geo;
	RsdConfig cfg;

	configure(&cfg);
	unlink(media);
	if (!rsd_media_create(media, &cfg, err))
		fail(err);
	drive = rsd_open(media, &cfg, err);
	if (!drive || !rsd_faults_load(drive, rules, err))
		fail(err);
	unlink(media);		/* nobody else wants it */
	rsd_faults_tell(drive, told, NULL);
	rsd_geometry(drive, 0, &geo);
	cap = geo.zone_capacity;
	nand_geo = (struct rfs_geometry) {
		.zones = geo.num_zones, .zone_blocks = geo.zone_size,
		.oob_bytes = RFS_OOB_BYTES,
	};
	zones = calloc(geo.num_zones, sizeof(*zones));
	blocks = calloc(geo.lbas, sizeof(*blocks));
	if (!zones || !blocks)
		fail("there is no memory for the tables");
	clock_ns = 1;
}

void nand_end(void)
{
	rsd_close(drive);
	free(zones);
	free(blocks);
}

u64 nand_operations(void)
{
	RsdCounters c;

	rsd_counters(drive, &c);
	return c.read_host + c.read_wear + c.read_pad +
	       c.prog_host + c.prog_wear + c.prog_pad +
	       c.erase_host + c.erase_wear + c.erase_pad;
}

u64 nand_faults(void)
{
	return faults;
}

bool nand_destroyed(u64 addr)
{
	return blocks[addr].destroyed;
}

u32 nand_destroyed_metadata(void)
{
	return destroyed_metadata;
}

u32 nand_destroyed_zones(void)
{
	u32 zone, n = 0;

	for (zone = 0; zone < nand_geo.zones; zone++)
		n += zones[zone].destroyed > 0;
	return n;
}
