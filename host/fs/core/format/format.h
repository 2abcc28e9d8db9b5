/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are checksums, words and sizes of the format. All are functions of their arguments. */
#ifndef RFS_FORMAT_FUNCTIONS_H
#define RFS_FORMAT_FUNCTIONS_H

#include "plat/rfs_plat.h"
#include "format/rfs_format.h"

void rfs_head_seal(struct rfs_head *head, u64 stamp);
bool rfs_head_ok(const struct rfs_head *head, u32 volume, u8 type);
/*
 * Makes the page metadata of a block with a header. time is in ns since 1970. rfs_oob_seal() comes
 * later.
 */
void rfs_oob_of_head(struct rfs_oob *oob, const struct rfs_head *head, u64 stamp,
		     u64 time);
void rfs_oob_seal(struct rfs_oob *oob, const void *data);
bool rfs_oob_ok(const struct rfs_oob *oob, u32 volume);

static inline u64 rfs_addr(__le64 word)
{
	return le64_to_cpu(word) & RFS_ADDR_MASK;
}

static inline u32 rfs_high(__le64 word)
{
	return le64_to_cpu(word) >> RFS_ADDR_BITS;
}

static inline __le64 rfs_word(u64 addr, u32 high)
{
	return cpu_to_le64(addr | (u64)high << RFS_ADDR_BITS);
}

/* Page metadata and headers say this of the volume: the start of its uuid. */
static inline u32 rfs_volume_of(const struct rfs_super *super)
{
	__le32 first;

	memcpy(&first, super->uuid, sizeof(first));
	return le32_to_cpu(first);
}

struct rfs_layout {
	u32 dirty_max, cp_blocks;
	u32 reserve_zones;	/* that users cannot fill */
	u32 low_zones;		/* of them, those that nothing is being filled of */
	bool few;		/* so few zones that metadata, and data, fills one at a time */
	u32 imap_blocks, nmap_blocks, timb_blocks, ztab_blocks;
	u32 nmap_leaves;	/* the first block of the node map that is of leaves */
	u64 max_inodes, max_nodes;
	u32 need_zones;		/* with fewer there is no volume */
	u32 make_zones;		/* with fewer a new one has no room for files */
};

/*
 * ways is the number of zones that groups and metadata are striped over; 0 counts as 1. runs asks
 * for places for leaves in the node map. They are there if the volume is not too large.
 */
void rfs_layout(u32 zones, u32 zone_cap, bool oob, u32 ways, bool runs,
		struct rfs_layout *out);

/* sizes.c has the sizes, see "Room" in doc/design.md. */
#define RFS_OP_BLOCKS	48	/* dirty ones of an operation, but for maps */
#define RFS_GROUPS_KEPT	4	/* the reserve has so many zones for groups */

/* Returns how many zones of the reserve are for data: see rfs_low_zones(). */
static inline u32 rfs_zones_for_data(bool few)
{
	return few ? 1 : 2;
}

/* Returns how many zones of log, metadata and maps are being filled at most. */
static inline u32 rfs_meta_filled(u32 ways)
{
	return RFS_S_DATA + max(ways, 1U) - 1;
}

/* Returns how many zones of the reserve are being filled. */
static inline u32 rfs_zones_filled(u32 ways, bool few)
{
	return few ? 2 : rfs_meta_filled(ways) + RFS_GROUPS_KEPT;
}

u32 rfs_slack(u32 holds);
#define RFS_TABLES	4	/* blocks of TIMB and zone table in an append */

u64 rfs_short_appends(u64 tables, u32 sums);
/* Returns what a round of compaction has to gain if so many blocks are above what it moves. */
u64 rfs_compact_gain(u64 maps, u64 tables, u32 sums, u32 ways);
/* Returns what a round of compaction writes at most. */
u64 rfs_scratch(u32 holds, u64 maps, u64 tables, u32 sums, u32 ways);
/* append_max is the most blocks of one append; 0 is any number. */
u32 rfs_sums_each(bool oob, u32 append_max);
/*
 * Returns how many blocks of a zone can be in use. A victim with fewer gives more than its copies
 * take.
 */
u32 rfs_zone_holds(u32 cap, u32 dirty_max, u32 sums);
u64 rfs_blocks_in(u64 pages, u32 sums);
/*
 * Returns the zones of the reserve, without those that are being filled, if there are so many
 * blocks of maps.
 */
u32 rfs_low_zones(u32 cap, u32 dirty_max, u64 tables, u64 maps, u32 sums,
		  u32 ways, bool few);

/*
 * [Q] Returns the blocks that metadata claims which has so many in use. Dead blocks are added that
 * are fewer than a round of compaction has to gain, and for each block the part of a zone that
 * stays dead. Then come the zones that the reserve grows by because there are maps.
 */
static inline u64 rfs_claim(u32 holds, u64 live, u64 gain, u32 grown)
{
	u32 dead = rfs_slack(holds);
	u64 meta = live + gain - 1;

	return meta + DIV_ROUND_UP(meta * dead, (u64)(holds - dead)) +
	       (u64)grown * holds;
}

static inline bool rfs_is_node(u8 type)
{
	return type == RFS_DIR || type == RFS_INDEX || type == RFS_XATTR ||
	       type == RFS_QUOTA || type == RFS_DIFF;
}

/* Says whether a pointer leads to the slow device. */
static inline bool rfs_ptr_has_home(const struct rfs_ptr *ptr)
{
	return ptr->kind == RFS_PTR_ELSEWHERE || ptr->kind == RFS_PTR_BOTH;
}

/* Returns the block of flash that a pointer leads to, or 0. */
static inline u64 rfs_ptr_flash(const struct rfs_ptr *ptr)
{
	if (ptr->kind == RFS_PTR_BOTH)
		return (u32)le64_to_cpu(ptr->addr);
	return ptr->kind == RFS_PTR_ELSEWHERE ? 0 : rfs_addr(ptr->addr);
}

/* Returns the block of the slow device that it leads to, or 0. */
static inline u64 rfs_ptr_home(const struct rfs_ptr *ptr)
{
	if (ptr->kind == RFS_PTR_BOTH)
		return le64_to_cpu(ptr->addr) >> 32;
	return ptr->kind == RFS_PTR_ELSEWHERE ? rfs_addr(ptr->addr) : 0;
}

#define RFS_BOTH_WCOUNT	0xfff

static inline u32 rfs_ptr_wcount(const struct rfs_ptr *ptr)
{
	u32 wcount = le16_to_cpu(ptr->wcount);

	return ptr->kind == RFS_PTR_BOTH ? wcount & RFS_BOTH_WCOUNT : wcount;
}

/* Returns the valid bytes of the block. */
static inline u32 rfs_ptr_len(const struct rfs_ptr *ptr)
{
	if (ptr->kind == RFS_PTR_BOTH)
		return 1 + (le16_to_cpu(ptr->wcount) >> 12 << 8 | ptr->frac);
	return rfs_high(ptr->addr);
}

/*
 * The same block, with as many valid bytes, is at other addresses: of flash, of the slow device, or
 * of both. One of them may be 0.
 */
static inline void rfs_ptr_put(struct rfs_ptr *ptr, u64 flash, u64 home, u32 len)
{
	u32 wcount = rfs_ptr_wcount(ptr);

	if (flash && home) {
		wcount = min_t(u32, wcount, RFS_BOTH_WCOUNT) |
			 (len - 1) >> 8 << 12;
		ptr->addr = cpu_to_le64(flash | home << 32);
		ptr->frac = len - 1;
		ptr->kind = RFS_PTR_BOTH;
	} else {
		ptr->addr = rfs_word(flash ? flash : home, len);
		ptr->frac = ptr->kind == RFS_PTR_BOTH ? 0 : ptr->frac;
		ptr->kind = flash ? RFS_PTR_BLOCK : RFS_PTR_ELSEWHERE;
	}
	ptr->wcount = cpu_to_le16(wcount);
}

/* Says whether the volume has a slow device. */
static inline bool rfs_is_hybrid(const struct rfs_super *super)
{
	return le32_to_cpu(super->incompat) & RFS_INCOMPAT_SLOW;
}

/* Says whether what is written to its files can bypass flash. */
static inline bool rfs_may_bypass(const struct rfs_super *super)
{
	return le32_to_cpu(super->incompat) & RFS_INCOMPAT_BYPASS;
}

/* Says whether its slow device has a replica of the metadata. */
static inline bool rfs_has_replica(const struct rfs_super *super)
{
	return le32_to_cpu(super->incompat) & RFS_INCOMPAT_REPLICA;
}

/* Says whether leaves of its files can be runs. */
static inline bool rfs_has_runs(const struct rfs_super *super)
{
	return le32_to_cpu(super->incompat) & RFS_INCOMPAT_RUNS;
}

/* Says whether its files can have pieces of blocks. */
static inline bool rfs_has_pieces(const struct rfs_super *super)
{
	return le32_to_cpu(super->incompat) & RFS_INCOMPAT_PIECES;
}

#endif
