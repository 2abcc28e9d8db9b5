// SPDX-License-Identifier: GPL-2.0-or-later
/* Headers, page metadata, checksums, the hash of names. */
#include "rfs.h"

void rfs_head_init(struct rfs_fs *fs, struct rfs_head *head, u8 type, u32 ino,
		   u32 gen, u64 off)
{
	memset(head, 0, sizeof(*head));
	head->magic = cpu_to_le32(RFS_BLOCK_MAGIC);
	head->volume = cpu_to_le32(fs->volume);
	head->type = type;
	head->ino = cpu_to_le32(ino);
	head->gen = cpu_to_le32(gen);
	head->off = cpu_to_le64(off);
	memcpy(head->uuid, fs->super.uuid + sizeof(head->volume),
	       sizeof(head->uuid));
}

/* Of a block that a check-point writes: what --rescan has to know of that. */
void rfs_head_date(struct rfs_fs *fs, struct rfs_head *head)
{
	u64 nth = min(fs->cp_nth, RFS_NTH_MAX);

	fs->cp_nth++;
	head->addr = cpu_to_le64(fs->lsn | nth << RFS_LSN_BITS);
	head->prev = cpu_to_le32((u32)(fs->cp_seq + 1));
}

static u32 head_crc(const struct rfs_head *head)
{
	const u8 *block = (const u8 *)head;
	u32 crc = rfs_crc(~0U, block, offsetof(struct rfs_head, crc));

	return ~rfs_crc(crc, block + 8, RFS_BLOCK_BYTES - 8);
}

/* Last before a block is written: its stamp and checksum. */
void rfs_head_seal(struct rfs_head *head, u64 stamp)
{
	head->stamp = cpu_to_le64(stamp);
	head->crc = cpu_to_le32(head_crc(head));
}

bool rfs_head_ok(const struct rfs_head *head, u32 volume, u8 type)
{
	return le32_to_cpu(head->magic) == RFS_BLOCK_MAGIC &&
	       le32_to_cpu(head->volume) == volume && head->type == type &&
	       le32_to_cpu(head->crc) == head_crc(head);
}

static u32 oob_crc(const struct rfs_oob *oob)
{
	return ~rfs_crc(~0U, oob, offsetof(struct rfs_oob, crc));
}

void rfs_oob_seal(struct rfs_oob *oob, const void *data)
{
	oob->data_crc = cpu_to_le32(~rfs_crc(~0U, data, RFS_BLOCK_BYTES));
	oob->crc = cpu_to_le32(oob_crc(oob));
}

bool rfs_oob_ok(const struct rfs_oob *oob, u32 volume)
{
	return le16_to_cpu(oob->magic) == RFS_OOB_MAGIC &&
	       le32_to_cpu(oob->volume) == volume &&
	       oob->type > 0 && oob->type < RFS_TYPES &&
	       le16_to_cpu(oob->len) <= RFS_BLOCK_BYTES &&
	       le32_to_cpu(oob->crc) == oob_crc(oob);
}

static u64 rotate(u64 x, int by)
{
	return x << by | x >> (64 - by);
}

static void sip_round(u64 v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

/* SipHash-2-4 */
static u64 siphash(const __le64 key[2], const void *data, u32 len)
{
	u64 k0 = le64_to_cpu(key[0]);
	u64 k1 = le64_to_cpu(key[1]);
	u64 v[4] = { k0 ^ 0x736f6d6570736575ULL, k1 ^ 0x646f72616e646f6dULL,
		     k0 ^ 0x6c7967656e657261ULL, k1 ^ 0x7465646279746573ULL };
	const u8 *byte = data;
	u64 word = 0;
	u32 i;

	for (i = 0; i < len; i++) {
		word |= (u64)byte[i] << (8 * (i % 8));
		if (i % 8 < 7)
			continue;
		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
		word = 0;
	}
	word |= (u64)len << 56;
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

u64 rfs_name_hash(const struct rfs_fs *fs, const void *name, u32 len)
{
	return siphash(fs->super.hash_key, name, len);
}

/*
 * Without page metadata a file's data lies among summaries, and after a torn
 * append it is read in the search for the next one. Whoever writes the file knows
 * the volume's uuid and can guess the address, but has never seen a code.
 */
static u64 code_of(const struct rfs_fs *fs, const struct rfs_head *head)
{
	struct rfs_head copy = *head;

	copy.off = 0;
	copy.crc = 0;
	return siphash(fs->super.summary_key, &copy, sizeof(copy));
}

void rfs_summary_seal(const struct rfs_fs *fs, struct rfs_summary *sum,
		      u64 stamp)
{
	sum->head.stamp = cpu_to_le64(stamp);
	sum->head.off = cpu_to_le64(code_of(fs, &sum->head));
	rfs_head_seal(&sum->head, stamp);
}

bool rfs_summary_ok(const struct rfs_fs *fs, const struct rfs_summary *sum,
		    u64 addr)
{
	return rfs_head_ok(&sum->head, fs->volume, RFS_SUMMARY) &&
	       le64_to_cpu(sum->head.addr) == addr &&
	       (fs->keyless || le64_to_cpu(sum->head.off) ==
			       code_of(fs, &sum->head));
}
