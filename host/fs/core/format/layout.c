// SPDX-License-Identifier: GPL-2.0-or-later
/* Sizes of a volume that follow from the device, see "Sizes" in doc/design.md. */
#include "format/format.h"

void rfs_layout(u32 zones, u32 zone_cap, bool oob, struct rfs_layout *out)
{
	u64 pool = zones > RFS_CP_ZONES ?
		   (u64)(zones - RFS_CP_ZONES) * zone_cap : 0;
	u64 block_inodes = RFS_BLOCK_INODES, map = RFS_MAP_ENTRIES, rewritten;
	u32 list;

	memset(out, 0, sizeof(*out));
	out->dirty_max = max_t(u64, 64, min_t(u64, pool / 128, 16384));
	out->max_inodes = min(pool, 0xffffffffULL);
	out->imap_blocks = DIV_ROUND_UP(out->max_inodes, block_inodes * map);
	out->max_nodes = min(pool + 1, 0xffffffffULL);
	out->nmap_blocks = DIV_ROUND_UP(out->max_nodes, map);
	out->timb_blocks = DIV_ROUND_UP(out->imap_blocks + out->nmap_blocks,
					(u32)RFS_MAP_ENTRIES);
	out->ztab_blocks = DIV_ROUND_UP(zones, (u32)RFS_ZTAB_ENTRIES);
	out->cp_blocks = 1;
	list = out->timb_blocks + out->ztab_blocks;
	if (list > RFS_CP_LIST_FIRST)
		out->cp_blocks += DIV_ROUND_UP(list - RFS_CP_LIST_FIRST,
					       (u32)RFS_CP_LIST_MORE);
	rewritten = 2ULL * (out->dirty_max + out->timb_blocks +
			    out->ztab_blocks) +
		    min(out->imap_blocks + out->nmap_blocks,
			2 * out->dirty_max);
	if (!oob)	/* a summary with each */
		rewritten *= 2;
	out->reserve_zones = 7 + 2;
	if (zone_cap)
		out->reserve_zones += DIV_ROUND_UP(rewritten, (u64)zone_cap);
	/*
	 * What cleaning leaves in a zone weighs more in a small one. This is
	 * not derived: see "Not proven" in doc/design.md.
	 */
	if (zone_cap && zone_cap < 64)
		out->reserve_zones += zones / (2 * zone_cap);
	out->need_zones = RFS_CP_ZONES + out->reserve_zones + 4;
	if (zone_cap < 1 + 2 * out->cp_blocks || zone_cap < 8)
		out->need_zones = ~0U;
}
