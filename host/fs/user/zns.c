// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This is a zoned block device. Page metadata does not travel through the block device's file, so
 * an NVMe namespace is read and appended to by passthrough, and a linear target of device mapper by
 * that of the namespace below it. The device must not be mounted.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/blkzoned.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "rsd-log.h"

#define SECTORS		8	/* of 512 bytes in a block */
#define OP_FLUSH	0x00
#define OP_READ		0x02
#define OP_APPEND	0x7d
#define ADMIN_LOG	0x02
#define ADMIN_IDENTIFY	0x06
#define OOB_MAX		4096	/* metadata of a command */
#define RUN_MAX		64	/* blocks that are read at a time */
#define BUFFER_BYTES	(RUN_MAX * RFS_BLOCK_BYTES + OOB_MAX)

struct zns {
	int fd;
	int nvme_fd;		/* of the namespace; the same, but under a target */
	u64 *below;		/* of each zone its block there; NULL: the same */
	bool nvme;
	u32 nsid;
	u32 ms;			/* metadata of a block */
	u32 ways;		/* zones that make full bandwidth, 0: not known */
	struct rfs_geometry geo;
	struct rfs_dev_zone *zone;
	u8 *buffer;		/* RUN_MAX blocks, then their metadata; page-aligned */
	u32 run_most;		/* blocks that are read at a time from who reads in a row */
	u64 run;		/* what was read last begins there */
	u32 runs;		/* blocks of it that the buffer has */
	u64 next;		/* after the block that was asked for last */
};

static u8 *metadata(const struct zns *z)
{
	return z->buffer + RUN_MAX * RFS_BLOCK_BYTES;
}

/* Sends a command with n blocks, or a flush. */
static int command(struct zns *z, u8 opcode, u64 lba, u32 n, u64 *result)
{
	struct nvme_passthru_cmd64 cmd = { .opcode = opcode, .nsid = z->nsid };

	if (opcode != OP_FLUSH) {
		cmd.addr = (uintptr_t)z->buffer;
		cmd.data_len = n * RFS_BLOCK_BYTES;
		cmd.cdw10 = lba;
		cmd.cdw11 = lba >> 32;
		cmd.cdw12 = n - 1;
		if (z->ms) {
			cmd.metadata = (uintptr_t)metadata(z);
			cmd.metadata_len = n * z->ms;
		}
	}
	if (ioctl(z->nvme_fd, NVME_IOCTL_IO64_CMD, &cmd))
		return -EIO;
	if (result)
		*result = cmd.result;
	return 0;
}

/* Returns the namespace's address of a block of a zone. */
static u64 below(const struct zns *z, u32 zone, u64 at)
{
	return (z->below ? z->below[zone] : (u64)zone * z->geo.zone_blocks) + at;
}

static int append_block(struct zns *z, u32 zone, const void *data,
			const struct rfs_oob *oob, u64 *addr)
{
	struct rfs_dev_zone *info = &z->zone[zone];
	u64 start = (u64)zone * z->geo.zone_blocks;
	int ret;

	z->runs = 0;
	memcpy(z->buffer, data, RFS_BLOCK_BYTES);
	memset(metadata(z), 0, z->ms);
	if (z->geo.oob_bytes)
		memcpy(metadata(z), oob, sizeof(*oob));
	if (z->nvme) {
		ret = command(z, OP_APPEND, below(z, zone, 0), 1, addr);
		*addr -= below(z, zone, 0) - start;
	} else {
		*addr = start + info->wp;
		ret = pwrite(z->fd, z->buffer, RFS_BLOCK_BYTES,
			     *addr * RFS_BLOCK_BYTES) == RFS_BLOCK_BYTES ?
			0 : -EIO;
	}
	if (!ret)
		info->wp = *addr - start + 1;
	return ret;
}

/* Nobody else writes, so blocks that are appended one by one follow each other. */
static int zns_append(void *opaque, u32 zone, u32 blocks,
		      const void *const *data, const struct rfs_oob *oob,
		      u64 *addr)
{
	struct zns *z = opaque;
	u64 at;
	u32 i;
	int ret = 0;

	if (z->zone[zone].wp + blocks > z->zone[zone].cap)
		return -EIO;
	for (i = 0; !ret && i < blocks; i++) {
		ret = append_block(z, zone, data[i], &oob[i], &at);
		if (!i)
			*addr = at;
		if (!ret && at != *addr + i)
			ret = -EIO;
	}
	return ret;
}

static int zns_wait(void *opaque)
{
	(void)opaque;
	return 0;
}

static int zns_flush(void *opaque)
{
	struct zns *z = opaque;

	if (z->nvme)
		return command(z, OP_FLUSH, 0, 0, NULL);
	return fdatasync(z->fd) ? -EIO : 0;
}

static int read_run(struct zns *z, u64 addr, u32 n)
{
	ssize_t bytes = (ssize_t)n * RFS_BLOCK_BYTES;
	int ret;

	z->runs = 0;
	if (z->nvme)
		ret = command(z, OP_READ, below(z, addr / z->geo.zone_blocks,
						addr % z->geo.zone_blocks),
			      n, NULL);
	else
		ret = pread(z->fd, z->buffer, bytes, addr * RFS_BLOCK_BYTES) ==
		      bytes ? 0 : -EIO;
	if (ret)
		return ret;
	z->run = addr;
	z->runs = n;
	return 0;
}

/*
 * Returns how many blocks are read from addr on. For a sequential reader these include the next
 * blocks.
 */
static u32 run_from(const struct zns *z, u64 addr)
{
	u32 at = addr % z->geo.zone_blocks;
	u32 wp = z->zone[addr / z->geo.zone_blocks].wp;

	return addr != z->next || at >= wp ? 1 : min(z->run_most, wp - at);
}

static int zns_read(void *opaque, u64 addr, void *data, struct rfs_oob *oob)
{
	struct zns *z = opaque;
	u32 n;
	int ret = 0;

	if (addr < z->run || addr - z->run >= z->runs) {
		n = run_from(z, addr);
		ret = read_run(z, addr, n);
		if (ret && n > 1)	/* one of them cannot be read */
			ret = read_run(z, addr, 1);
	}
	z->next = addr + 1;
	if (ret)
		return ret;
	memcpy(data, z->buffer + (addr - z->run) * RFS_BLOCK_BYTES,
	       RFS_BLOCK_BYTES);
	if (oob)
		memcpy(oob, metadata(z) + (addr - z->run) * z->ms,
		       sizeof(*oob));
	return 0;
}

static int manage(struct zns *z, u32 zone, unsigned long request)
{
	u64 sectors = (u64)z->geo.zone_blocks * SECTORS;
	struct blk_zone_range range = { .sector = zone * sectors,
					.nr_sectors = sectors };

	return ioctl(z->fd, request, &range) ? -EIO : 0;
}

static int zns_reset(void *opaque, u32 zone)
{
	struct zns *z = opaque;
	int ret = manage(z, zone, BLKRESETZONE);

	z->runs = 0;
	if (!ret)
		z->zone[zone].wp = 0;
	return ret;
}

static int zns_finish(void *opaque, u32 zone)
{
	struct zns *z = opaque;
	int ret = manage(z, zone, BLKFINISHZONE);

	if (!ret)
		z->zone[zone].wp = z->zone[zone].cap;
	return ret;
}

static int zns_close_zone(void *opaque, u32 zone)
{
	return manage(opaque, zone, BLKCLOSEZONE);
}

static int zns_report(void *opaque, u32 zone, struct rfs_dev_zone *out)
{
	struct zns *z = opaque;

	*out = z->zone[zone];
	return 0;
}

static u64 now(void *opaque)
{
	struct timespec ts;

	(void)opaque;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (u64)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static const struct rfs_dev_ops zns_ops = {
	.append = zns_append,
	.wait = zns_wait,
	.read = zns_read,
	.reset = zns_reset,
	.finish = zns_finish,
	.close = zns_close_zone,
	.flush = zns_flush,
	.report = zns_report,
	.now = now,
};

static void zns_close(void *opaque)
{
	struct zns *z = opaque;

	if (z->nvme_fd != z->fd)
		close(z->nvme_fd);
	close(z->fd);
	free(z->below);
	free(z->zone);
	free(z->buffer);
	free(z);
}

static void take_zone(struct zns *z, const struct blk_zone *from, bool caps)
{
	struct rfs_dev_zone *out;
	u32 nr = from->start / from->len;

	if (nr >= z->geo.zones)
		return;
	out = &z->zone[nr];
	out->cap = (caps ? from->capacity : from->len) / SECTORS;
	switch (from->cond) {
	case BLK_ZONE_COND_FULL:
		out->wp = out->cap;
		break;
	case BLK_ZONE_COND_READONLY:
		out->cond = RFS_DEV_READ_ONLY;
		out->wp = out->cap;
		break;
	case BLK_ZONE_COND_OFFLINE:
		out->cond = RFS_DEV_OFFLINE;
		break;
	default:
		out->wp = (from->wp - from->start) / SECTORS;
	}
	if (from->type != BLK_ZONE_TYPE_SEQWRITE_REQ)
		out->cond = RFS_DEV_OFFLINE;	/* not one of ours */
}

static int report_zones(struct zns *z, const char *path)
{
	u32 at = 0, n = 512, i;
	struct blk_zone_report *report;
	u64 sectors = (u64)z->geo.zone_blocks * SECTORS;

	report = calloc(1, sizeof(*report) + n * sizeof(struct blk_zone));
	z->zone = calloc(z->geo.zones, sizeof(*z->zone));
	if (!report || !z->zone)
		abort();
	while (at < z->geo.zones) {
		report->sector = at * sectors;
		report->nr_zones = n;
		if (ioctl(z->fd, BLKREPORTZONE, report) || !report->nr_zones) {
			complain("%s: cannot report its zones: %s", path,
				 strerror(errno));
			free(report);
			return -1;
		}
		for (i = 0; i < report->nr_zones; i++)
			take_zone(z, &report->zones[i],
				  report->flags & BLK_ZONE_REP_CAPACITY);
		at += report->nr_zones;
	}
	free(report);
	return 0;
}

static int identify(struct zns *z, u32 nsid, u8 cns, u8 *out)
{
	struct nvme_admin_cmd cmd = { .opcode = ADMIN_IDENTIFY, .nsid = nsid,
				      .addr = (uintptr_t)out,
				      .data_len = 4096, .cdw10 = cns };

	return ioctl(z->nvme_fd, NVME_IOCTL_ADMIN_CMD, &cmd) ? -1 : 0;
}

/*
 * Returns the number of ways in our own drive's log page. Another drive has none, or another page.
 */
static u32 zone_ways(struct zns *z, u32 nsid)
{
	RsdLogPage page = { 0 };
	struct nvme_admin_cmd cmd = {
		.opcode = ADMIN_LOG, .nsid = nsid, .addr = (uintptr_t)&page,
		.data_len = sizeof(page),
		.cdw10 = RSD_LOG_ID | (sizeof(page) / 4 - 1) << 16,
	};

	if (ioctl(z->nvme_fd, NVME_IOCTL_ADMIN_CMD, &cmd) ||
	    page.magic != RSD_LOG_MAGIC || page.version != RSD_LOG_VERSION)
		return 0;
	return page.zone_ways;
}

/* Returns a number that only sysfs has, or 0. */
static u32 sysfs(const struct zns *z, const char *name)
{
	struct stat st;
	char path[80];
	u32 value = 0;
	FILE *file;

	if (fstat(z->fd, &st))
		return 0;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s",
		 major(st.st_rdev), minor(st.st_rdev), name);
	file = fopen(path, "re");
	if (file && fscanf(file, "%u", &value) != 1)
		value = 0;
	if (file)
		fclose(file);
	return value;
}

/* Opens the node of a device whose name sysfs has. Returns -1 if there is none. */
static int open_device(u32 major_nr, u32 minor_nr, bool writing)
{
	char link[64], target[256], path[300];
	const char *name;
	ssize_t n;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major_nr, minor_nr);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return -1;
	target[n] = '\0';
	name = strrchr(target, '/');
	snprintf(path, sizeof(path), "/dev/%s", name ? name + 1 : target);
	return open(path, (writing ? O_RDWR : O_RDONLY) | O_CLOEXEC);
}

#define TABLE_BYTES	65536

/*
 * Returns the table of a target of device mapper. NULL says that this is none, or that the table
 * cannot be read.
 */
static struct dm_ioctl *dm_table(const struct zns *z)
{
	struct dm_ioctl *table = calloc(1, TABLE_BYTES);
	struct stat st;
	int fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);

	if (!table)
		abort();
	table->version[0] = DM_VERSION_MAJOR;
	table->data_size = TABLE_BYTES;
	table->data_start = sizeof(*table);
	table->flags = DM_STATUS_TABLE_FLAG;
	if (fd < 0 || fstat(z->fd, &st)) {
		free(table);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	table->dev = st.st_rdev;
	if (ioctl(fd, DM_TABLE_STATUS, table) ||
	    table->flags & DM_BUFFER_FULL_FLAG) {
		free(table);
		table = NULL;
	}
	close(fd);
	return table;
}

/* Notes the addresses of the zones of a part of a linear target. All are on one namespace. */
static bool take_part(struct zns *z, const struct dm_target_spec *spec,
		      bool writing)
{
	u64 sectors = (u64)z->geo.zone_blocks * SECTORS, at, offset;
	u32 major_nr, minor_nr;
	struct stat st;
	int fd;

	if (strcmp(spec->target_type, "linear") ||
	    sscanf((const char *)(spec + 1), "%u:%u %llu", &major_nr, &minor_nr,
		   (unsigned long long *)&offset) != 3 ||
	    spec->sector_start % sectors || spec->length % sectors ||
	    offset % sectors)
		return false;
	fd = open_device(major_nr, minor_nr, writing);
	if (fd < 0)
		return false;
	if (z->nvme_fd == z->fd) {
		z->nvme_fd = fd;
	} else {
		bool same = !fstat(z->nvme_fd, &st) &&
			    st.st_rdev == makedev(major_nr, minor_nr);

		close(fd);
		if (!same)
			return false;
	}
	for (at = 0; at < spec->length; at += sectors) {
		u64 zone = (spec->sector_start + at) / sectors;

		if (zone < z->geo.zones)
			z->below[zone] = (offset + at) / SECTORS;
	}
	return true;
}

/*
 * A linear target passes commands on to the namespace below it, but with unchanged addresses. So
 * they are sent to that namespace, with its own addresses.
 */
static int look_below(struct zns *z, bool writing)
{
	struct dm_ioctl *table = dm_table(z);
	u32 i, at;
	bool ok;

	if (!table)
		return -1;
	z->below = calloc(z->geo.zones, sizeof(*z->below));
	if (!z->below)
		abort();
	at = table->data_start;
	ok = table->target_count;
	for (i = 0; ok && i < table->target_count; i++) {
		const struct dm_target_spec *spec =
			(const void *)((const char *)table + at);

		ok = take_part(z, spec, writing);
		at = table->data_start + spec->next;
	}
	free(table);
	return ok ? ioctl(z->nvme_fd, NVME_IOCTL_ID) : -1;
}

/* Finds the metadata of an NVMe namespace, and whether the drive has a cache. */
static int look_at_nvme(struct zns *z, const char *path, bool writing)
{
	u8 id[4096];
	u32 format;
	int nsid = sysfs(z, "nsid") ? ioctl(z->fd, NVME_IOCTL_ID) : 0;

	if (nsid <= 0 && sysfs(z, "integrity/protection_interval_bytes")) {
		nsid = look_below(z, writing);
		if (nsid <= 0) {
			complain("%s: its blocks have metadata: it must be an NVMe namespace, or whole zones of one under a linear target",
				 path);
			return -1;
		}
	}
	if (nsid <= 0) {
		z->geo.volatile_cache = true;	/* flushing does no harm */
		return 0;
	}
	z->nvme = true;
	z->nsid = nsid;
	if (identify(z, nsid, 0, id)) {
		complain("%s: Identify Namespace fails", path);
		return -1;
	}
	format = (id[26] & 0xf) | (id[26] >> 5 & 3) << 4;
	z->ms = id[128 + 4 * format] | id[129 + 4 * format] << 8;
	if (z->ms && (id[26] & 0x10 || id[29] & 7 || z->ms > OOB_MAX)) {
		complain("%s: metadata must be separate and without protection information: nvme format -l %u -m 0 -i 0",
			 path, format);
		return -1;
	}
	if (identify(z, 0, 1, id)) {
		complain("%s: Identify Controller fails", path);
		return -1;
	}
	z->ways = zone_ways(z, nsid);
	z->geo.volatile_cache = id[525] & 1;
	z->geo.oob_bytes = z->ms >= RFS_OOB_BYTES ? z->ms : 0;
	return 0;
}

/* Returns how many blocks a command may have, and their metadata. */
static u32 run_most(const struct zns *z)
{
	u32 bytes = sysfs(z, "queue/max_hw_sectors_kb") * 1024;
	u32 segments = sysfs(z, "queue/max_segments");
	u32 most = min(bytes / RFS_BLOCK_BYTES, segments);

	if (z->ms)
		most = min(most, OOB_MAX / z->ms);
	return max(min(most, (u32)RUN_MAX), 1U);
}

static int look_at(struct zns *z, const char *path, bool writing)
{
	__u32 sectors = 0, zones = 0;
	int block = 0;

	if (ioctl(z->fd, BLKGETZONESZ, &sectors) ||
	    ioctl(z->fd, BLKGETNRZONES, &zones) || !sectors || !zones) {
		complain("%s: not a zoned device; RFS needs sequential zones",
			 path);
		return -1;
	}
	if (ioctl(z->fd, BLKSSZGET, &block) || block != RFS_BLOCK_BYTES) {
		complain("%s: logical blocks of %d bytes; RFS needs 4096: nvme format chooses",
			 path, block);
		return -1;
	}
	z->geo.zones = zones;
	z->geo.zone_blocks = sectors / SECTORS;
	z->geo.max_open = sysfs(z, "queue/max_open_zones");
	z->geo.max_active = sysfs(z, "queue/max_active_zones");
	if (look_at_nvme(z, path, writing))
		return -1;
	z->run_most = run_most(z);
	return report_zones(z, path);
}

int rfs_zns_open(const char *path, bool writing, struct rfs_device *out)
{
	int flags = O_CLOEXEC | O_DIRECT;
	struct stat st;
	struct zns *z;

	if (stat(path, &st)) {
		complain("%s: %s%s", path, strerror(errno), errno == ENOENT ?
			 "; mkfs.rfs -I makes an image file" : "");
		return -1;
	}
	if (!S_ISBLK(st.st_mode))
		return 1;
	z = calloc(1, sizeof(*z));
	if (!z || posix_memalign((void **)&z->buffer, RFS_BLOCK_BYTES,
				 BUFFER_BYTES))
		abort();
	/*
	 * Linux 6.12 has the directions of metadata the wrong way round
	 * (blk_rq_integrity_map_user): for a read it pins a page that it may
	 * not write. One that was never written is the shared zero page, and
	 * the drive would write into that.
	 */
	memset(z->buffer, 0xff, BUFFER_BYTES);
	/*
	 * The open is exclusive for writing, so nobody has mounted the device. For reading, it need
	 * not be.
	 */
	flags |= (writing ? O_RDWR : O_RDONLY) | O_EXCL;
	z->fd = open(path, flags);
	if (z->fd < 0 && errno == EBUSY && !writing) {
		out->busy = true;
		z->fd = open(path, flags & ~O_EXCL);
	}
	if (z->fd < 0) {
		complain("%s: %s%s", path, strerror(errno),
			 errno == EBUSY ?
			 "; it is mounted, or another process has it" : "");
		free(z->buffer);
		free(z);
		return -1;
	}
	z->nvme_fd = z->fd;
	if (look_at(z, path, writing)) {
		zns_close(z);
		return -1;
	}
	out->ops = &zns_ops;
	out->dev = z;
	out->geo = z->geo;
	out->ways = z->ways;
	out->close = zns_close;
	return 0;
}
