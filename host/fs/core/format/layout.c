// SPDX-License-Identifier: GPL-2.0-or-later
/* These sizes of a volume follow from the device, see "Sizes" in doc/design.md. */
#include "format/format.h"

/* There are as many as all blocks would need if all files were dense, and one more. */
static u32 rfs_leaf_blocks(u64 pool)
{
	return pool / ((u64)RFS_FANOUT * (RFS_MAP_ENTRIES / RFS_LEAF_WORDS)) + 1;
}

#define FILES_ZONES	4	/* neither for check-points nor in reserve; 1 if zones are few */
/*
 * Blocks. Where zones are few, what pages need is counted to within 3 pages. In smaller zones these
 * are more than the cheapest victim leaves of the zone that it is copied to.
 */
#define FEW_CAP		64
/*
 * This is the metadata of a new volume without maps and tables: inodes, a name, and all levels of
 * quotas.
 */
#define FIRST_BLOCKS	(1 + 1 + 1 + RFS_HEIGHT_MAX)
/* Creating one more file asks for this, with attributes and an owner's quotas: names.c. */
#define FIRST_ASKED	(5 + 1 + 2)

/* Returns the blocks that metadata claims when the first file is made, with quotas. */
static u64 rfs_first_claim(const struct rfs_layout *l, u32 cap, bool oob, u32 ways)
{
	u32 sums = rfs_sums_each(oob, 8), tables = l->timb_blocks + l->ztab_blocks;
	u32 holds = rfs_zone_holds(cap, l->dirty_max, sums);
	/* Each map has one block, and one more is asked for. */
	u32 each = l->nmap_leaves < l->nmap_blocks ? 3 : 2;
	u32 low = rfs_low_zones(cap, l->dirty_max, tables, 2 * each, sums, ways, l->few);

	return rfs_claim(holds, FIRST_BLOCKS + FIRST_ASKED + 2 * each + tables,
			 rfs_compact_gain(2 * each, tables, sums, ways),
			 low - l->low_zones);
}

/*
 * Fills in what is in reserve, and the least zones. With few zones each stream of metadata, and
 * each group, would have too large a part of them in the zone that it fills: then there is one of
 * each.
 */
static void rfs_layout_reserve(struct rfs_layout *out, u64 pool, u32 cap, bool oob, u32 ways,
			       bool few)
{
	u32 sums = rfs_sums_each(oob, 8), holds, files = few ? 1 : FILES_ZONES;
	u64 claim;

	out->few = few;
	out->dirty_max = max_t(u64, 64, min_t(u64, pool / (few ? 512 : 128), 16384));
	/* Without page metadata this counts with appends of 8 blocks. A mount asks the drive. */
	out->low_zones = rfs_low_zones(cap, out->dirty_max,
				       out->timb_blocks + out->ztab_blocks, 0, sums, ways, few);
	/* The zones that are being filled come in addition. */
	out->reserve_zones = rfs_zones_filled(ways, few) + out->low_zones;
	out->need_zones = RFS_CP_ZONES + out->reserve_zones + files;
	holds = rfs_zone_holds(cap, out->dirty_max, sums);
	claim = rfs_first_claim(out, cap, oob, ways) + (few ? holds / 2 : holds);
	out->make_zones = max_t(u64, out->need_zones,
				RFS_CP_ZONES + out->reserve_zones +
				DIV_ROUND_UP(claim, (u64)holds));
}

void rfs_layout(u32 zones, u32 zone_cap, bool oob, u32 ways, bool runs,
		struct rfs_layout *out)
{
	u64 pool = zones > RFS_CP_ZONES ?
		   (u64)(zones - RFS_CP_ZONES) * zone_cap : 0;
	u64 block_inodes = RFS_BLOCK_INODES, map = RFS_MAP_ENTRIES;
	u32 list;

	memset(out, 0, sizeof(*out));
	out->max_inodes = min(pool, 0xffffffffULL);
	out->imap_blocks = DIV_ROUND_UP(out->max_inodes, block_inodes * map);
	out->max_nodes = min(pool + 1, 0xffffffffULL);
	out->nmap_blocks = DIV_ROUND_UP(out->max_nodes, map);
	out->nmap_leaves = out->nmap_blocks;
	if (runs && (out->nmap_blocks + (u64)rfs_leaf_blocks(pool)) * map <=
		    0xffffffffULL) {
		out->nmap_blocks += rfs_leaf_blocks(pool);
		out->max_nodes = out->nmap_blocks * map;
	}
	out->timb_blocks = DIV_ROUND_UP(out->imap_blocks + out->nmap_blocks,
					(u32)RFS_MAP_ENTRIES);
	out->ztab_blocks = DIV_ROUND_UP(zones, (u32)RFS_ZTAB_ENTRIES);
	out->cp_blocks = 1;
	list = out->timb_blocks + out->ztab_blocks;
	if (list > RFS_CP_LIST_FIRST)
		out->cp_blocks += DIV_ROUND_UP(list - RFS_CP_LIST_FIRST,
					       (u32)RFS_CP_LIST_MORE);
	if (zone_cap < 1 + 2 * out->cp_blocks || zone_cap < 8) {
		out->need_zones = ~0U;
		out->make_zones = ~0U;
		return;
	}
	rfs_layout_reserve(out, pool, zone_cap, oob, ways, false);
	if (zones < out->make_zones && ways <= 1 && zone_cap >= FEW_CAP)
		rfs_layout_reserve(out, pool, zone_cap, oob, ways, true);
}
