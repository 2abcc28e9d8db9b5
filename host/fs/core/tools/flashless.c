// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This is the drive of a hybrid volume whose flash is gone, made of the replica on the slow device.
 * Its metadata is at its old addresses, and no block of a file can be read. Writes fail.
 */
#include <stdio.h>

#include "home/replica.h"
#include "tools/flashless.h"

struct found {
	u64 addr;
	u32 slot;
};

struct rfs_flashless {
	struct rfs_geometry geo;
	struct rfs_slow_dev slow;
	struct rfs_replica *r;
	struct rfs_super super;
	struct found *found;	/* by address */
	u32 n;
	struct rfs_dev_zone *zone;
	u8 *there;		/* a bit each block of flash */
};

static int by_addr(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static const struct found *find(const struct rfs_flashless *f, u64 addr)
{
	u32 from = 0, to = f->n, mid;

	while (from < to) {
		mid = from + (to - from) / 2;
		if (f->found[mid].addr == addr)
			return &f->found[mid];
		if (f->found[mid].addr < addr)
			from = mid + 1;
		else
			to = mid;
	}
	return NULL;
}

/* Makes the page metadata that the block had. Its time is that of the replica. */
static void describe(const struct rfs_flashless *f, const struct rfs_head *head,
		     struct rfs_oob *oob)
{
	rfs_oob_of_head(oob, head, le64_to_cpu(head->stamp), f->r->made);
	rfs_oob_seal(oob, head);
}

static int flashless_read(void *dev, u64 addr, void *data, struct rfs_oob *oob)
{
	struct rfs_flashless *f = dev;
	const struct found *found = find(f, addr);
	int ret = -EIO;

	if (found)
		ret = f->slow.read(f->slow.dev, rfs_slot_at(f->r, found->slot),
				   data);
	if (!ret && oob)
		describe(f, data, oob);
	return ret;
}

static int flashless_append(void *dev, u32 zone, u32 blocks,
			    const void *const *data, const struct rfs_oob *oob,
			    u64 *addr)
{
	(void)dev;
	(void)zone;
	(void)blocks;
	(void)data;
	(void)oob;
	(void)addr;
	return -EIO;
}

static int flashless_reset(void *dev, u32 zone)
{
	(void)dev;
	(void)zone;
	return -EIO;
}

static int flashless_nothing(void *dev)
{
	(void)dev;
	return 0;
}

static int flashless_report(void *dev, u32 zone, struct rfs_dev_zone *out)
{
	struct rfs_flashless *f = dev;

	*out = f->zone[zone];
	return 0;
}

static u64 flashless_now(void *dev)
{
	struct rfs_flashless *f = dev;

	return f->r->made;
}

const struct rfs_dev_ops rfs_flashless_ops = {
	.append = flashless_append,
	.wait = flashless_nothing,
	.read = flashless_read,
	.reset = flashless_reset,
	.flush = flashless_nothing,
	.report = flashless_report,
	.now = flashless_now,
};

/* Sorts the blocks in all slots by address. A check-point's blocks are the first of zone 0. */
static int index_slots(struct rfs_flashless *f)
{
	u32 i;
	u64 flash = (u64)le32_to_cpu(f->super.zones) *
		    le32_to_cpu(f->super.zone_blocks), addr;

	f->found = rfs_alloc((f->r->slots + 1) * sizeof(*f->found));
	f->there = rfs_alloc(flash / 8 + 1);
	if (!f->found || !f->there)
		return -ENOMEM;
	for (i = 0; i < f->r->slots; i++) {
		if (!f->r->place[i].place)
			continue;
		addr = le64_to_cpu(f->r->place[i].addr);
		if (addr >= flash)
			return -EUCLEAN;
		f->found[f->n].addr = addr;
		f->found[f->n++].slot = i;
		f->there[addr / 8] |= 1 << addr % 8;
	}
	rfs_sort(f->found, f->n, sizeof(*f->found), by_addr);
	return 0;
}

static void zone_reaches(struct rfs_flashless *f, u32 zone, u32 blocks)
{
	f->zone[zone].wp = max(f->zone[zone].wp, blocks);
	f->zone[zone].cap = max(f->zone[zone].cap, blocks);
}

/*
 * Makes the zones as they were: written as far as the zone table says, or as far as there is
 * metadata.
 */
static int find_zones(struct rfs_flashless *f)
{
	u32 zones = f->geo.zones, i, j, nr;
	struct rfs_ztab *ztab = rfs_alloc(sizeof(*ztab));
	int ret = 0;

	f->zone = rfs_alloc(zones * sizeof(*f->zone));
	if (!f->zone || !ztab) {
		rfs_free(ztab);
		return -ENOMEM;
	}
	for (i = 0; i < zones; i++)
		f->zone[i].cap = le32_to_cpu(f->super.zone_cap);
	for (i = 0; !ret && i < f->n; i++) {
		zone_reaches(f, f->found[i].addr / f->geo.zone_blocks,
			     f->found[i].addr % f->geo.zone_blocks + 1);
		ret = f->slow.read(f->slow.dev,
				   rfs_slot_at(f->r, f->found[i].slot), ztab);
		if (ret || ztab->head.type != RFS_ZTAB ||
		    !rfs_head_ok(&ztab->head, rfs_volume_of(&f->super), RFS_ZTAB))
			continue;
		for (j = 0; j < RFS_ZTAB_ENTRIES; j++) {
			u64 at = le64_to_cpu(ztab->head.off) * RFS_ZTAB_ENTRIES + j;

			nr = at < zones ? at : 0;
			if (nr < RFS_CP_ZONES || ztab->zone[j].state == RFS_Z_FREE)
				continue;
			if (le32_to_cpu(ztab->zone[j].wp) > f->geo.zone_blocks)
				ret = -EUCLEAN;
			else
				zone_reaches(f, nr, le32_to_cpu(ztab->zone[j].wp));
		}
	}
	rfs_free(ztab);
	return ret;
}

/* Loads the superblock from the slot whose place is that of the superblock. */
static int load_super(struct rfs_flashless *f, u32 volume)
{
	u32 i;
	int ret;

	for (i = 0; i < f->r->slots; i++)
		if (le64_to_cpu(f->r->place[i].place) == RFS_PLACE_SUPER)
			break;
	if (i == f->r->slots)
		return -EUCLEAN;
	ret = f->slow.read(f->slow.dev, rfs_slot_at(f->r, i), &f->super);
	if (!ret && (!rfs_head_ok(&f->super.head, volume, RFS_SUPER) ||
		     rfs_volume_of(&f->super) != volume || !f->super.zone_blocks))
		ret = -EUCLEAN;
	return ret;
}

static int load(struct rfs_flashless *f)
{
	struct rfs_slow_super *super = rfs_alloc(sizeof(*super));
	u64 blocks, replica;
	u32 volume = 0;
	int ret = super ? f->slow.read(f->slow.dev, 0, super) : -ENOMEM;

	if (!ret) {
		volume = le32_to_cpu(super->head.volume);
		if (!rfs_head_ok(&super->head, volume, RFS_SLOW_SUPER))
			ret = -ENODEV;
	}
	if (!ret) {
		blocks = le64_to_cpu(super->blocks);
		replica = le64_to_cpu(super->replica_blocks);
		ret = !replica ? -ENOENT :
		      !rfs_slow_sizes_ok(blocks, replica) ? -EUCLEAN :
		      f->slow.blocks < blocks ? -EOVERFLOW :
		      rfs_replica_alloc(f->r, blocks - replica, replica, 0, 0);
	}
	if (!ret)
		ret = rfs_replica_load(f->r, &f->slow, volume,
				       super->head.uuid);
	rfs_free(super);
	return ret ? ret : load_super(f, volume);
}

int rfs_flashless_open(const struct rfs_slow_dev *slow,
		       struct rfs_flashless **out)
{
	struct rfs_flashless *f = rfs_alloc(sizeof(*f));
	int ret = -ENOMEM;

	*out = NULL;
	if (!f)
		return ret;
	f->slow = *slow;
	f->slow.will_repair = true;
	f->r = rfs_alloc(sizeof(*f->r));
	if (f->r)
		ret = load(f);
	if (!ret) {
		f->geo.zones = le32_to_cpu(f->super.zones);
		f->geo.zone_blocks = le32_to_cpu(f->super.zone_blocks);
		f->geo.oob_bytes = le32_to_cpu(f->super.oob_bytes);
		f->geo.slow = &f->slow;
		ret = index_slots(f);
	}
	if (!ret)
		ret = find_zones(f);
	if (ret)
		rfs_flashless_close(f);
	else
		*out = f;
	return ret;
}

void rfs_flashless_close(struct rfs_flashless *f)
{
	rfs_replica_free(f->r);
	rfs_free(f->found);
	rfs_free(f->zone);
	rfs_free(f->there);
	rfs_free(f);
}

const struct rfs_geometry *rfs_flashless_geometry(const struct rfs_flashless *f)
{
	return &f->geo;
}

u64 rfs_flashless_seq(const struct rfs_flashless *f)
{
	return f->r->seq;
}

u64 rfs_flashless_time(const struct rfs_flashless *f)
{
	return f->r->made;
}

const u8 *rfs_flashless_there(const struct rfs_flashless *f)
{
	return f->there;
}
