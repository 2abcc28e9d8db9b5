// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * These functions of a volume's sizes say how much a check-point, the compaction of metadata and
 * the cleaning of data may write at most, and so how large the reserve is. The proof is in "Room"
 * of doc/design.md; names in brackets are its quantities. Sizes are in blocks where nothing else is
 * said.
 */
#include "format/format.h"

#define SLACK	16	/* a 16th of a zone of metadata may stay dead */

/* [d] With fewer dead blocks than these a zone of metadata is not worth compacting. */
u32 rfs_slack(u32 holds)
{
	return DIV_ROUND_UP(holds, SLACK);
}

/*
 * Returns the summaries that a check-point writes beside those of full appends, without page
 * metadata: those of the last nodes and inodes, of the last maps, of the tables, and of an append
 * that a zone's end parts in two.
 */
u64 rfs_short_appends(u64 tables, u32 sums)
{
	return sums ? RFS_S_DATA + DIV_ROUND_UP(tables, (u64)RFS_TABLES) *
				   min(sums, (u32)RFS_TABLES) : 0;
}

/* A round of compaction has to gain this, so that more is free after it. */
u64 rfs_compact_gain(u64 maps, u64 tables, u32 sums, u32 ways)
{
	u64 above = maps + tables;

	if (sums)
		return above + maps * sums / RFS_SUM_ENTRIES +
		       rfs_short_appends(tables, sums) + 1;
	/* There is a summary for 63 blocks, and a begun one in each zone that is being filled. */
	return above + above / RFS_SUM_ENTRIES + rfs_meta_filled(ways) + 1;
}

/*
 * [K] Returns what a round of compaction writes at most, if so many blocks of maps and tables lie
 * above what it moves. Its victims have as many dead blocks as those above take, with their
 * summaries, and one more.
 */
u64 rfs_scratch(u32 holds, u64 maps, u64 tables, u32 sums, u32 ways)
{
	u64 gain = rfs_compact_gain(maps, tables, sums, ways);

	return DIV_ROUND_UP(gain, (u64)rfs_slack(holds)) * (holds - rfs_slack(holds)) +
	       maps + tables + rfs_short_appends(tables, sums);
}

/*
 * Returns how many summaries so many blocks have as one lists, RFS_SUM_ENTRIES, if each append has
 * one. 0 says that summaries go on from one append to the next.
 */
u32 rfs_sums_each(bool oob, u32 append_max)
{
	u32 most = RFS_SUM_ENTRIES;

	if (oob)
		return 0;
	if (append_max)
		most = min(most, max(append_max, 2U) - 1);
	return DIV_ROUND_UP((u32)RFS_SUM_ENTRIES, most);
}

/*
 * Returns how many blocks of a zone can be in use. A victim with fewer takes less than a zone where
 * it is copied to. With a summary in each append the zone may end within one, and what is copied
 * between two check-points ends in one that is not full.
 */
u32 rfs_zone_holds(u32 cap, u32 dirty_max, u32 sums)
{
	u32 most;

	if (!sums)
		return cap - DIV_ROUND_UP(cap, (u32)RFS_SUM_ENTRIES + 1);
	most = DIV_ROUND_UP((u64)cap * sums, (u64)RFS_SUM_ENTRIES + sums) + 1 +
	       cap / (dirty_max / 2);
	return cap > most + 2 ? cap - most : 2;
}

/*
 * Returns for how many blocks of metadata so many pages of a zone have room. One of 32 is more than
 * the summaries that full appends have: zones end within one.
 */
u64 rfs_blocks_in(u64 pages, u32 sums)
{
	pages -= DIV_ROUND_UP(pages, 32ULL);
	return sums ? pages * RFS_SUM_ENTRIES / (RFS_SUM_ENTRIES + sums) :
		      pages;
}

/*
 * Returns the zones that are free beyond those that are being filled, when data may take no more of
 * them: they have room for a check-point and the compaction after it [D + W + t + K]. Data is being
 * copied to another one, and one is to spare. It may fail, or a user has begun it. With few zones
 * there is none to spare: who asks for a block is admitted if there is another zone for it.
 */
u32 rfs_low_zones(u32 cap, u32 dirty_max, u64 tables, u64 maps, u32 sums,
		  u32 ways, bool few)
{
	u32 holds = rfs_zone_holds(cap, dirty_max, sums);
	u32 log = min_t(u32, dirty_max / 8, (u32)RFS_SUM_ENTRIES);
	u64 blocks = dirty_max + dirty_max / 2 + RFS_OP_BLOCKS + maps + log +
		     tables + rfs_scratch(holds, maps, tables, sums, ways);

	if (sums)	/* the log's are alone */
		blocks += log + rfs_short_appends(tables, sums);
	return DIV_ROUND_UP(blocks, rfs_blocks_in(cap, sums)) + rfs_zones_for_data(few);
}
