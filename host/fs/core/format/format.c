// SPDX-License-Identifier: GPL-2.0-or-later
/* These are the checksums of headers and of page metadata. */
#include "format/format.h"

static u32 rfs_head_crc(const struct rfs_head *head)
{
	const u8 *block = (const u8 *)head;
	u32 crc = rfs_crc(~0U, block, offsetof(struct rfs_head, crc));

	return ~rfs_crc(crc, block + 8, RFS_BLOCK_BYTES - 8);
}

/* This comes last before a block is written: it gets its stamp and checksum. */
void rfs_head_seal(struct rfs_head *head, u64 stamp)
{
	head->stamp = cpu_to_le64(stamp);
	head->crc = cpu_to_le32(rfs_head_crc(head));
}

bool rfs_head_ok(const struct rfs_head *head, u32 volume, u8 type)
{
	return le32_to_cpu(head->magic) == RFS_BLOCK_MAGIC &&
	       le32_to_cpu(head->volume) == volume && head->type == type &&
	       le32_to_cpu(head->crc) == rfs_head_crc(head);
}

static u32 rfs_oob_crc(const struct rfs_oob *oob)
{
	return ~rfs_crc(~0U, oob, offsetof(struct rfs_oob, crc));
}

void rfs_oob_of_head(struct rfs_oob *oob, const struct rfs_head *head, u64 stamp,
		     u64 time)
{
	memset(oob, 0, sizeof(*oob));
	oob->magic = cpu_to_le16(RFS_OOB_MAGIC);
	oob->type = head->type;
	oob->volume = head->volume;
	oob->ino = head->ino;
	oob->gen = head->gen;
	oob->off = head->off;
	oob->version = cpu_to_le64(stamp);
	oob->stamp = oob->version;
	oob->time = cpu_to_le64(time);
	oob->len = cpu_to_le16(RFS_BLOCK_BYTES);
}

void rfs_oob_seal(struct rfs_oob *oob, const void *data)
{
	oob->data_crc = cpu_to_le32(~rfs_crc(~0U, data, RFS_BLOCK_BYTES));
	oob->crc = cpu_to_le32(rfs_oob_crc(oob));
}

bool rfs_oob_ok(const struct rfs_oob *oob, u32 volume)
{
	return le16_to_cpu(oob->magic) == RFS_OOB_MAGIC &&
	       le32_to_cpu(oob->volume) == volume &&
	       oob->type > 0 && oob->type < RFS_TYPES &&
	       le16_to_cpu(oob->len) <= RFS_BLOCK_BYTES &&
	       le32_to_cpu(oob->crc) == rfs_oob_crc(oob);
}
