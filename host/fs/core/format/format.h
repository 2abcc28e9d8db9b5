/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checksums, words and sizes of the format: functions of their arguments. */
#ifndef RFS_FORMAT_FUNCTIONS_H
#define RFS_FORMAT_FUNCTIONS_H

#include "plat/rfs_plat.h"
#include "format/rfs_format.h"

void rfs_head_seal(struct rfs_head *head, u64 stamp);
bool rfs_head_ok(const struct rfs_head *head, u32 volume, u8 type);
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

/* What page metadata and headers say of the volume: the start of its uuid */
static inline u32 rfs_volume_of(const struct rfs_super *super)
{
	__le32 first;

	memcpy(&first, super->uuid, sizeof(first));
	return le32_to_cpu(first);
}

struct rfs_layout {
	u32 dirty_max, reserve_zones, cp_blocks;
	u32 imap_blocks, nmap_blocks, timb_blocks, ztab_blocks;
	u64 max_inodes, max_nodes;
	u32 need_zones;		/* fewer are refused */
};

void rfs_layout(u32 zones, u32 zone_cap, bool oob, struct rfs_layout *out);

static inline bool rfs_is_node(u8 type)
{
	return type == RFS_DIR || type == RFS_INDEX || type == RFS_XATTR ||
	       type == RFS_QUOTA;
}

#endif
