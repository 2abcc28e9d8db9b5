// SPDX-License-Identifier: GPL-2.0-or-later
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "device.h"
#include "checkpoint/checkpoint.h"
#include "home/home.h"
#include "tools/tools.h"

const char *program = "mkfs.rfs";

static const char usage[] =
"usage: mkfs.rfs [-f] [-q] [-c] [-L LABEL] [-U UUID] [-w WAYS]\n"
"                [--slow DEV [--replica]] DEVICE [SIZE]\n"
"       mkfs.rfs -I ZONESxBLOCKS[xCAPACITY] [-m BYTES] ... FILE\n"
"\n"
"Make an RFS on a zoned device, or on as many of its first zones as SIZE has\n"
"bytes (K, M, G, T: powers of 1024). All zones it takes are reset.\n"
"\n"
"  -f        Make the volume even if there is something on the device.\n"
"  -q        Print nothing.\n"
"  -c        Files may have pieces, so that small writes can share pages.\n"
"  -L LABEL  Give the volume this name, which has up to 64 bytes.\n"
"  -U UUID   Give the volume this UUID instead of a random one.\n"
"  -w WAYS   Stripe files over this many zones, 1 to 64. They should be those that\n"
"            make full bandwidth together, if their numbers differ modulo WAYS.\n"
"            The default is what the drive reports, or else 1. --ways=WAYS does\n"
"            the same.\n"
"  --slow DEV  Make a hybrid volume. Blocks of files are at home on this block\n"
"            device or file, which has its capacity, and on flash as there is room.\n"
"            Mount it with -o slow=DEV.\n"
"  --replica The slow device keeps a copy of the metadata, too. If flash is lost,\n"
"            fsck.rfs --replica finds what is there.\n"
"  -I SPEC   Make an image file first. The three numbers are the zones, the 4 KiB\n"
"            blocks from one zone to the next, and those of a zone that can be\n"
"            written.\n"
"  -m BYTES  Give the image this much page metadata for each block, 64 or 0. The\n"
"            default is 64.\n"
"\n"
"example: mkfs.rfs -L data /dev/nvme0n1\n"
"The exit status is 0 if the volume was made, and 1 if not.\n";

#define U(x)		((unsigned long long)(x))
#define SLOW_LOOK	64ULL	/* blocks of a slow device that are looked at */

struct options {
	bool force, quiet;
	const char *label, *image, *slow;
	struct rfs_id id;
	u32 oob;
};

static bool parse_uuid(const char *text, u8 *uuid)
{
	u32 nibbles = 0, value;
	char digit[2] = { 0 };
	char *end;

	memset(uuid, 0, 16);
	for (; *text; text++) {
		if (*text == '-')
			continue;
		digit[0] = *text;
		value = strtoul(digit, &end, 16);
		if (*end || nibbles == 32)
			return false;
		uuid[nibbles / 2] |= value << (nibbles % 2 ? 0 : 4);
		nibbles++;
	}
	return nibbles == 32;
}

static bool parse_size(const char *text, u64 *size)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;

	errno = 0;
	*size = strtoull(text, &end, 10);
	if (end == text || *text == '-' || errno)
		return false;
	if (!*end)
		return true;
	unit = strchr(units, *end & ~0x20);
	if (!unit || !*unit || end[1] || *size >> (64 - 10 * (unit - units + 1)))
		return false;
	*size <<= 10 * (unit - units + 1);
	return true;
}

/* Finds out what is on the device. 0 says that it is empty. */
static int occupied(const struct rfs_device *device, char *what, size_t bytes)
{
	struct rfs_fs fs = { .ops = device->ops, .dev = device->dev,
			     .geo = device->geo };
	struct rfs_dev_zone zone;
	u32 nr, used = 0;
	int ret;

	ret = rfs_super_load(&fs);
	if (ret != -EINVAL && ret != -EIO) {
		snprintf(what, bytes, "holds an RFS%s%.64s%s",
			 ret || !fs.super.label[0] ? "" : " labelled \"",
			 ret ? "" : (char *)fs.super.label,
			 ret || !fs.super.label[0] ? "" : "\"");
		return 1;
	}
	for (nr = 0; nr < device->geo.zones; nr++)
		if (!device->ops->report(device->dev, nr, &zone))
			used += zone.cond == RFS_DEV_OK && zone.wp;
	snprintf(what, bytes, "has data in %u of its %u zones", used,
		 device->geo.zones);
	return used != 0;
}

/* Says whether the device may be overwritten. Asks only on a terminal. */
static bool allowed(const struct rfs_device *device, const struct options *o)
{
	char what[160], answer[16];

	if (o->force || !occupied(device, what, sizeof(what)))
		return true;
	if (!isatty(STDIN_FILENO)) {
		complain("%s %s; -f overwrites it", device->path, what);
		return false;
	}
	fprintf(stderr, "%s %s. Overwrite it? (y/N) ", device->path, what);
	return fgets(answer, sizeof(answer), stdin) &&
	       (answer[0] == 'y' || answer[0] == 'Y');
}

/*
 * Returns the least capacity of a zone. *usable is the number of usable zones
 * among those of check-points.
 */
static u32 zone_cap(const struct rfs_device *device, u32 zones, u32 *usable)
{
	struct rfs_dev_zone zone;
	u32 nr, cap = ~0U;

	*usable = 0;
	for (nr = 0; nr < zones; nr++) {
		if (device->ops->report(device->dev, nr, &zone) ||
		    zone.cond != RFS_DEV_OK)
			continue;
		*usable += nr < RFS_CP_ZONES;
		cap = min(cap, zone.cap);
	}
	return cap;
}

/*
 * Returns the ways that the drive reports, or as many as the volume can have: a
 * small volume has one.
 */
static u32 ways_of(const struct rfs_device *device, u32 zones)
{
	u32 usable, cap = zone_cap(device, zones, &usable);
	u32 ways = min_t(u32, device->ways, RFS_WAYS_MAX);
	struct rfs_layout layout;

	ways = rfs_ways_allowed(&device->geo, cap, ways);
	rfs_layout(zones, cap, device->geo.oob_bytes, ways, true, &layout);
	return zones < layout.make_zones ? 1 : ways;
}

/*
 * Says that the device is too small. This holds also where nothing is striped.
 */
static void too_small(const struct rfs_device *device, u32 zones)
{
	u32 usable, cap = zone_cap(device, zones, &usable);
	struct rfs_layout layout;

	rfs_layout(zones, cap, device->geo.oob_bytes, 1, true, &layout);
	if (usable < RFS_CP_MIRRORS)
		complain("%s: %u of its first 3 zones can be written; check-points need 2",
			 device->path, usable);
	else if (layout.need_zones == ~0U)
		complain("%s: zones of %u blocks; %u are the least: a superblock and two check-points of %u blocks",
			 device->path, cap, max(1 + 2 * layout.cp_blocks, 8U),
			 layout.cp_blocks);
	else
		complain("%s: %u zones of %u blocks; %u are the least: 3 for check-points, %u in reserve for %u dirty blocks and maps of inodes and nodes of %u, %u for files and their metadata",
			 device->path, zones, cap, layout.make_zones,
			 layout.reserve_zones, layout.dirty_max,
			 layout.imap_blocks + layout.nmap_blocks,
			 layout.make_zones - layout.reserve_zones -
			 RFS_CP_ZONES);
}

/*
 * Says whether `ways` is more than the volume can stripe over. False also says
 * that there can be no volume at all.
 */
static bool too_many_ways(const struct rfs_device *device,
			  const struct rfs_geometry *geo, u32 ways)
{
	u32 usable, cap = zone_cap(device, geo->zones, &usable);
	u32 most = rfs_ways_fit(geo, cap, ways, true);
	struct rfs_layout layout;

	if (rfs_ways_allowed(geo, cap, ways) < ways) {
		complain("-w %u: %s allows %u open and %u active zones (0: any number), which are too few; less may do",
			 ways, device->path, geo->max_open, geo->max_active);
		return true;
	}
	rfs_layout(geo->zones, cap, geo->oob_bytes, most, true, &layout);
	if (most == ways || geo->zones < layout.make_zones)
		return false;
	rfs_layout(geo->zones, cap, geo->oob_bytes, ways, true, &layout);
	complain("-w %u: %s has %u zones of %u blocks, and %u are the least for that; -w %u is the most for these",
		 ways, device->path, geo->zones, cap, layout.make_zones, most);
	return true;
}

/*
 * Says whether a slow device may be overwritten, as for a drive. Its first
 * blocks say what is on it.
 */
static bool slow_allowed(const struct rfs_device *device, const struct options *o)
{
	static u8 block[RFS_BLOCK_BYTES], none[RFS_BLOCK_BYTES];
	const struct rfs_slow_dev *slow = device->geo.slow;
	u64 at;

	for (at = 0; slow && !o->force && at < min(slow->blocks, SLOW_LOOK); at++) {
		if (!slow->read(slow->dev, at, block) &&
		    !memcmp(block, none, sizeof(block)))
			continue;
		complain("--slow %s: has data; -f overwrites it", o->slow);
		return false;
	}
	return true;
}

/* Returns the text about the slow device. */
static const char *home(const struct rfs_device *device, const struct rfs_id *id)
{
	static char text[80];

	if (device->geo.slow)
		snprintf(text, sizeof(text), ", %llu MiB of files on the slow device",
			 U(rfs_slow_room(&device->geo, id) / 256));
	return text;
}

/* Returns the text about the stripes. */
static const char *width(const struct rfs_id *id)
{
	static char text[40];

	if (id->ways > 1)
		snprintf(text, sizeof(text), ", striped over %u zones",
			 id->ways);
	return text;
}

static int make(struct rfs_device *device, const struct options *o,
		const char *size)
{
	u64 bytes, zone_bytes = (u64)device->geo.zone_blocks * RFS_BLOCK_BYTES;
	struct rfs_geometry geo = device->geo;
	struct rfs_id id = o->id;
	int ret;

	if (size) {
		if (!parse_size(size, &bytes) || bytes < zone_bytes ||
		    bytes / zone_bytes > geo.zones) {
			complain("size %s: must be from one zone, %llu bytes, to the device, %llu bytes",
				 size, (unsigned long long)zone_bytes,
				 (unsigned long long)zone_bytes * geo.zones);
			return 1;
		}
		geo.zones = bytes / zone_bytes;
	}
	if (id.ways > 1 && !geo.oob_bytes) {
		complain("-w %u: %s has no page metadata, without which zones are not striped over; leave -w out",
			 id.ways, device->path);
		return 1;
	}
	if (!allowed(device, o) || !slow_allowed(device, o))
		return 1;
	if (!id.ways)
		id.ways = ways_of(device, geo.zones);
	if (too_many_ways(device, &geo, id.ways))
		return 1;
	ret = rfs_mkfs(device->ops, device->dev, &geo, &id, o->label);
	if (ret == -ENOSPC) {
		too_small(device, geo.zones);
		return 1;
	}
	if (ret == -EOPNOTSUPP) {
		complain("--replica: %s has no page metadata, without which metadata cannot be found anew; leave --replica out",
			 device->path);
		return 1;
	}
	if (ret == -EFBIG) {
		complain("--slow %s: %llu blocks of 4 KiB; they must have room for %llu of files, as many as flash has%s, and %llu are the most of either",
			 o->slow, U(device->geo.slow->blocks),
			 U((u64)geo.zones * geo.zone_blocks),
			 id.replica ? ", beside the replica" : "",
			 U(RFS_HYBRID_BLOCKS));
		return 1;
	}
	if (ret == -EMFILE) {
		complain("%s: %u zones may be open and %u active at a time (0: any number); %u and %u are the least",
			 device->path, geo.max_open, geo.max_active,
			 RFS_OPEN_MIN, RFS_ACTIVE_MIN);
		return 1;
	}
	if (ret) {
		complain("%s: %s", device->path, rfs_error(ret));
		return 1;
	}
	if (!o->quiet)
		printf("%s: %u zones of %llu KiB, page metadata %s%s%s%s\n",
		       device->path, geo.zones,
		       (unsigned long long)zone_bytes / 1024,
		       geo.oob_bytes ? "in the OOB" : "in summaries",
		       width(&id), id.pieces ? ", files may have pieces" : "",
		       home(device, &id));
	return 0;
}

/* Makes an image. Its size is "48x256" or "48x256x250". */
static bool make_image(const char *path, const struct options *o)
{
	struct rfs_geometry geo = { .oob_bytes = o->oob };
	u32 cap = 0;
	char rest;
	int n = sscanf(o->image, "%ux%ux%u%c", &geo.zones, &geo.zone_blocks,
		       &cap, &rest);

	if (n == 2)
		cap = geo.zone_blocks;
	if (n < 2 || n > 3 || !cap || cap > geo.zone_blocks || !geo.zones ||
	    (u64)geo.zones * geo.zone_blocks > 1U << 30) {
		complain("-I %s: must be ZONESxBLOCKS or ZONESxBLOCKSxCAPACITY, such as 48x256, up to 4 TiB",
			 o->image);
		return false;
	}
	return rfs_image_create(path, &geo, cap) == 0;
}

static bool parse_ways(const char *text, u32 *ways)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*ways = value;
	return end != text && !*end && value >= 1 && value <= RFS_WAYS_MAX;
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option longer[] = {
		{ "ways", required_argument, NULL, 'w' },
		{ "slow", required_argument, NULL, 'S' },
		{ "replica", no_argument, NULL, 'R' },
		{ 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "fqchL:U:I:m:w:", longer, NULL)) !=
	       -1) {
		switch (c) {
		case 'f':
			o->force = true;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'c':
			o->id.pieces = true;
			break;
		case 'L':
			o->label = optarg;
			break;
		case 'I':
			o->image = optarg;
			break;
		case 'U':
			if (!parse_uuid(optarg, o->id.uuid)) {
				complain("-U %s: must be 32 hexadecimal digits",
					 optarg);
				return false;
			}
			break;
		case 'm':
			if (strcmp(optarg, "0") && strcmp(optarg, "64")) {
				complain("-m %s: must be 0 or 64", optarg);
				return false;
			}
			o->oob = strtoul(optarg, NULL, 10);
			break;
		case 'w':
			if (!parse_ways(optarg, &o->id.ways)) {
				complain("-w %s: must be from 1, where nothing is striped, to %u",
					 optarg, RFS_WAYS_MAX);
				return false;
			}
			break;
		case 'S':
			o->slow = optarg;
			break;
		case 'R':
			o->id.replica = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			return false;
		}
	}
	if (strlen(o->label) > 64) {
		complain("-L: %zu bytes; 64 are the most", strlen(o->label));
		return false;
	}
	if (o->id.replica && !o->slow) {
		complain("--replica: of hybrid volumes only, on their slow device: give --slow DEV, too");
		return false;
	}
	if (argc - optind < 1 || argc - optind > 2) {
		fputs(usage, stderr);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options o = { .label = "", .oob = RFS_OOB_BYTES };
	const ssize_t random = offsetof(struct rfs_id, pieces);
	struct rfs_device device;
	int ret;

	if (getrandom(&o.id, random, 0) != random) {
		complain("no random numbers: %s", strerror(errno));
		return 1;
	}
	o.id.runs = true;
	o.id.uuid[6] = (o.id.uuid[6] & 0x0f) | 0x40;
	o.id.uuid[8] = (o.id.uuid[8] & 0x3f) | 0x80;
	if (!parse(argc, argv, &o))
		return 1;
	if (o.image && !make_image(argv[optind], &o))
		return 1;
	if (rfs_device_open(argv[optind], true, &device))
		return 1;
	if (o.slow && rfs_slow_open(o.slow, true, &device)) {
		rfs_device_close(&device);
		if (o.image)
			unlink(argv[optind]);
		return 1;
	}
	ret = make(&device, &o, argv[optind + 1]);
	rfs_device_close(&device);
	if (ret && o.image)
		unlink(argv[optind]);
	return ret;
}
