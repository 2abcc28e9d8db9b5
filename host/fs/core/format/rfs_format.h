/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RFS writes this to its medium. Everything is little-endian. A block has 4096 bytes, and is the
 * unit of every address. doc/format.md has the same as tables, and doc/design.md says why.
 *
 * The same header is compiled into the kernel module and in user space.
 */
#ifndef RFS_FORMAT_H
#define RFS_FORMAT_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/types.h>
#else
#include <assert.h>
#include <linux/types.h>
#include <stddef.h>
#endif

#define RFS_BLOCK_BYTES		4096
#define RFS_OOB_BYTES		64
#define RFS_NAME_MAX		255
#define RFS_QUOTA_INO		1	/* its blocks are quotas; 0 is "none" */
#define RFS_ROOT_INO		2
#define RFS_CP_ZONES		3	/* zones 0, 1 and 2 */
#define RFS_CP_MIRRORS		2	/* of these, hold each check-point */
#define RFS_GROUPS_MAX		6
#define RFS_WAYS_MAX		64	/* zones that a group is striped over */
#define RFS_FORMAT_VERSION	2	/* version 1 had no node map */

#define RFS_OOB_MAGIC		0x5246		/* "FR" */
#define RFS_BLOCK_MAGIC		0x42534652	/* "RFSB" */

/*
 * Features: who does not know a bit of incompat does not mount the volume, and who does not know
 * one of ro_compat does not write it.
 */
#define RFS_INCOMPAT_SUMMARY	0x1	/* ms=0: backpointers in summaries only */
#define RFS_INCOMPAT_PIECES	0x2	/* files may have pieces of blocks */
#define RFS_INCOMPAT_GAPS	0x4	/* check-points leave out blocks of zeroes */
#define RFS_INCOMPAT_SLOW	0x8	/* files have blocks on a slow device, too */
#define RFS_INCOMPAT_RUNS	0x10	/* the node map has places for leaves */
#define RFS_INCOMPAT_BYPASS	0x20	/* what is at home may have bypassed flash */
#define RFS_INCOMPAT_REPLICA	0x40	/* the slow device has a copy of the metadata */
#define RFS_INCOMPAT_KNOWN	(RFS_INCOMPAT_SUMMARY | RFS_INCOMPAT_PIECES | \
				 RFS_INCOMPAT_GAPS | RFS_INCOMPAT_SLOW | \
				 RFS_INCOMPAT_RUNS | RFS_INCOMPAT_BYPASS | \
				 RFS_INCOMPAT_REPLICA)
#define RFS_RO_COMPAT_KNOWN	0
#define RFS_COMPAT_KNOWN	0

/* Each block has a type. It is in the OOB and, unless the block is data, in its header. */
enum rfs_type {
	RFS_DATA = 1,		/* content of a file */
	RFS_LOG = 2,		/* records of the log of changes */
	RFS_DIR = 3,		/* directory block */
	RFS_INDEX = 4,		/* index node of a file */
	RFS_INODES = 5,		/* 16 inodes */
	RFS_IMAP = 6,		/* inode-map block */
	RFS_TIMB = 7,		/* block of the table of inode-map blocks */
	RFS_ZTAB = 8,		/* block of the zone table */
	RFS_CP = 9,		/* check-point */
	RFS_SUPER = 10,		/* superblock */
	RFS_SUMMARY = 11,	/* backpointers of other blocks of its zone */
	RFS_XATTR = 12,		/* extended attributes of an inode */
	RFS_QUOTA = 13,		/* quotas of users or of groups */
	RFS_NMAP = 14,		/* node-map block */
	RFS_DIFF = 15,		/* pieces of blocks of a file */
	RFS_TYPES
};

/*
 * Blocks of types 3, 4, 12, 13 and 15 are nodes. A node has a number, by which its
 * parent names it; the node map says where it is. The key of a node, in OOB and
 * header, is its number and its place: of an index node which one it is of its
 * level, of the others which block of their inode.
 */
#define RFS_NODE_KEY(number, place)	((__u64)(number) << 32 | (place))

/* These are flags of struct rfs_oob. */
#define RFS_OOB_COPY		0x1	/* made by cleaning, not by a write */
#define RFS_OOB_FILL		0x2	/* read from a slow device, not written */
#define RFS_OOB_NEXT		0x4	/* the check-point before it was not durable */

/*
 * A version is (mount epoch << 44) + counter. It only grows, over all mounts. A counter that
 * overflows carries into the epoch, which is as good.
 */
#define RFS_EPOCH_SHIFT		44
/* Versions in use are below this, because there must be an epoch after them. */
#define RFS_VERSION_END		(0xfffffULL << RFS_EPOCH_SHIFT)
#define RFS_SEQ_END		(1ULL << 62)	/* numbers of check-points, too */

/**
 * struct rfs_oob - page metadata, the backpointer of a block
 * @magic: RFS_OOB_MAGIC; a block that was never written reads 0 here
 * @type: enum rfs_type
 * @flags: RFS_OOB_COPY or RFS_OOB_FILL, and RFS_OOB_NEXT, or 0
 * @volume: first four bytes of the superblock's uuid
 * @ino: inode the block belongs to; 0 if none
 * @gen: generation of that inode; 0 if none
 * @off: block offset in the file; for others see the type's key
 * @version: of the content; kept by copies
 * @stamp: as version, taken when this copy of it was appended
 * @time: last write, ns since 1970; for data the file's mtime then; of fills: the read
 * @len: valid bytes of a data block, 1 to 4096; the rest reads as zeroes
 * @txn_idx: place in its transaction; the transaction's id is version - txn_idx
 * @txn_cnt: blocks of the transaction in its last block, 0 in the others; 0 in all
 *	if its last part is a piece, whose record says how many parts there are
 * @wcount: writes of this block of the file so far, saturating
 * @data_crc: crc32c of the block
 * @crc: crc32c of the 60 bytes before; in a summary the block's zone offset
 */
struct rfs_oob {
	__le16 magic;
	__u8 type;
	__u8 flags;
	__le32 volume;
	__le32 ino;
	__le32 gen;
	__le64 off;
	__le64 version;
	__le64 stamp;
	__le64 time;
	__le16 len;
	__le16 txn_idx;
	__le16 txn_cnt;
	__le16 wcount;
	__le32 data_crc;
	__le32 crc;
};

/**
 * struct rfs_head - begins every block that is not file data
 * @magic: RFS_BLOCK_MAGIC
 * @crc: crc32c of the other 4092 bytes, with this field taken as absent
 * @volume: as in the OOB
 * @type: enum rfs_type, never RFS_DATA
 * @level: height above the data of an index node or a directory node
 * @count: entries, or bytes used after the header where entries vary
 * @ino: as in the OOB; of a check-point's first block how many leaves the node map
 *	has as runs
 * @gen: as in the OOB
 * @off: as in the OOB; of summaries without OOB SipHash-2-4, with @summary_key,
 *	of this header with 0 in @off and @crc
 * @stamp: as in the OOB
 * @addr: address the block was written for, of summaries without OOB; of types
 *	3 to 8, 12 to 15 the LSN of the first log block after it, in the 23 bits
 *	above its 40 how many such blocks its check-point wrote before it, and in
 *	the highest whether it was written early, while others went on; of a
 *	check-point's first block how many blocks without an address there is room
 *	kept for: preallocated, or of pieces only; else 0
 * @prev: of summaries zone offset + 1 of one before it in its zone, 0 if none; of
 *	the log low half of the first LSN after the last durable check-point; of types 3 to 8,
 *	12 to 15 low half of the number of the check-point it was written for; of a
 *	check-point's first block, on hybrid volumes, low half of the sum of @stamp of
 *	the copies of the table of states that count, 0 if it does not say
 * @uuid: the rest of the volume's uuid, of which @volume is the beginning
 */
struct rfs_head {
	__le32 magic;
	__le32 crc;
	__le32 volume;
	__u8 type;
	__u8 level;
	__le16 count;
	__le32 ino;
	__le32 gen;
	__le64 off;
	__le64 stamp;
	__le64 addr;
	__le32 prev;
	__u8 uuid[12];
};

/* A check-point writes these into @addr of its blocks. */
#define RFS_LSN_BITS		40
#define RFS_LSN_END		((1ULL << RFS_LSN_BITS) - (1U << 20))
#define RFS_NTH_EARLY		(1U << (63 - RFS_LSN_BITS))	/* see early.c */
#define RFS_NTH_MAX		(RFS_NTH_EARLY - 1)

#define RFS_BODY_BYTES		(RFS_BLOCK_BYTES - sizeof(struct rfs_head))

/**
 * struct rfs_super - first block of each check-point zone
 * @head: type RFS_SUPER
 * @version: RFS_FORMAT_VERSION; any other is not mounted
 * @compat: features that old code may ignore
 * @ro_compat: features that old code may read past, not write
 * @incompat: features that old code must not mount
 * @uuid: of the volume
 * @label: UTF-8, padded with zeroes
 * @created: ns since 1970
 * @zones: zones of the volume, check-point zones included
 * @zone_blocks: distance of two zones' starts
 * @zone_cap: smallest capacity of a zone when the volume was made
 * @oob_bytes: page metadata of the namespace: 64 or more, or 0
 * @reserve_zones: zones kept from users, see design.md
 * @max_inodes: inode numbers end below it
 * @dirty_max: dirty index and directory blocks that force a check-point
 * @max_nodes: node numbers end below it
 * @hash_key: key of the directory hash; no ioctl tells it
 * @summary_key: key of the codes of summaries without page metadata; as secret
 * @ways: zones that groups and metadata are striped over; 0 as 1
 * @pad: 0
 * @slow_blocks: of the slow device; 0: there is none
 * @replica_blocks: the last ones of these, for a replica of the metadata; 0: there is none
 * @reserved: 0
 */
struct rfs_super {
	struct rfs_head head;
	__le32 version;
	__le32 compat;
	__le32 ro_compat;
	__le32 incompat;
	__u8 uuid[16];
	__u8 label[64];
	__le64 created;
	__le32 zones;
	__le32 zone_blocks;
	__le32 zone_cap;
	__le32 oob_bytes;
	__le32 reserve_zones;
	__le32 max_inodes;
	__le32 dirty_max;
	__le32 max_nodes;
	__le64 hash_key[2];
	__le64 summary_key[2];
	__le32 ways;
	__le32 pad;
	__le64 slow_blocks;
	__le64 replica_blocks;
	__u8 reserved[3840];
};

/* These are flags of struct rfs_cp. */
#define RFS_CP_UNMOUNT		0x1	/* nothing was appended after it */
#define RFS_CP_COUNTED		0x2	/* usage of quotas is that of its inodes */

/**
 * struct rfs_cp - check-point: its first block
 * @head: type RFS_CP, off is the number of the block in its check-point
 * @seq: number of the check-point, the highest wins
 * @next_version: every page of the updating window has a stamp not below
 * @next_lsn: first log page after it
 * @time: when it was made, ns since 1970; never before the one before it
 * @flags: RFS_CP_UNMOUNT, RFS_CP_COUNTED
 * @blocks: of this check-point
 * @timb_blocks: entries of @list that are addresses of TIMB blocks
 * @ztab_blocks: entries after those, addresses of zone-table blocks
 * @orphans: first inode without a name that is still in use, 0 if none
 * @next_ino: where the search for a free inode number starts
 * @inodes: in use
 * @live: blocks in use, as far as the zone table was written
 * @data_live: of those, file data
 * @group_hot: hotness of each group; the coldest first; 0: not known
 * @list: block addresses; goes on in the body of the next blocks
 */
struct rfs_cp {
	struct rfs_head head;
	__le64 seq;
	__le64 next_version;
	__le64 next_lsn;
	__le64 time;
	__le32 flags;
	__le32 blocks;
	__le32 timb_blocks;
	__le32 ztab_blocks;
	__le32 orphans;
	__le32 next_ino;
	__le64 inodes;
	__le64 live;
	__le64 data_live;
	__le64 group_hot[RFS_GROUPS_MAX];
	__le64 list[488];
};

#define RFS_CP_LIST_FIRST	488	/* list entries in a check-point's first */
#define RFS_CP_LIST_MORE	504	/* and in each other block */

/* The zone table has the state of each zone. */
enum rfs_zstate {
	RFS_Z_FREE = 0,		/* holds nothing; reset before it is opened */
	RFS_Z_OPEN = 1,		/* a stream appends to it */
	RFS_Z_USED = 2,		/* no stream appends to it */
	RFS_Z_CP = 3,		/* check-point zone */
	RFS_Z_DEAD = 4,		/* offline or too small */
};

/* A zone is filled by one stream. */
enum rfs_stream {
	RFS_S_LOG = 0,
	RFS_S_META = 1,		/* directories, index, inodes */
	RFS_S_IMAP = 2,		/* inode map, node map, TIMB, zone table */
	RFS_S_DATA = 3,		/* and up to RFS_S_DATA + RFS_GROUPS_MAX - 1 */
	RFS_STREAMS = RFS_S_DATA + RFS_GROUPS_MAX,
};

/**
 * struct rfs_zone - entry of the zone table
 * @state: enum rfs_zstate
 * @stream: enum rfs_stream
 * @pad: 0
 * @wp: blocks below it are older than the check-point
 * @live: blocks in use but for inode map, node map, TIMB and zone table
 * @summary: zone offset + 1 of the last summary, 0 if none
 * @sum_time: sum of the last write of the live data blocks, in 1/256 s
 * @sum_wcount: sum of the write counts of the live data blocks
 */
struct rfs_zone {
	__u8 state;
	__u8 stream;
	__le16 pad;
	__le32 wp;
	__le32 live;
	__le32 summary;
	__le64 sum_time;
	__le64 sum_wcount;
};

#define RFS_ZTAB_ENTRIES	126

/* Addresses have 48 bits, in the low bits of a 64-bit word. 0 is "none". */
#define RFS_ADDR_BITS		48
#define RFS_ADDR_MASK		((1ULL << RFS_ADDR_BITS) - 1)

/*
 * A block of the inode map has 504 words. Each is the address of a block of inodes and says, in the
 * high 16 bits, which of its 16 inodes are in use. A block of the node map has 504 words, too. Each
 * is the address of a node and has, in the high 16 bits, 1 if its number is in use. A block of TIMB
 * has 504 words. Each is the address of a block of the inode map or, after all of these, of the
 * node map, and says how many inodes or node numbers of it are in use.
 */
#define RFS_MAP_ENTRIES		504
#define RFS_BLOCK_INODES	16

/**
 * struct rfs_table - block of inode map, node map or TIMB, or of the rest of a check-point
 * @head: its key @off is the number of the block in its table
 * @word: address in the low 48 bits, what the type says in the high 16
 */
struct rfs_table {
	struct rfs_head head;
	__le64 word[RFS_MAP_ENTRIES];
};

/* These are the high bits of a word of the node map. */
#define RFS_NODE_USED		0x1	/* the number is in use */
#define RFS_NODE_RUNS		0x2	/* of a leaf: there is no node, struct rfs_runs */
#define RFS_NODE_LEN_SHIFT	4	/* then its valid bytes, see there */

#define RFS_LEAF_WORDS		9	/* of the node map, that a leaf has */
#define RFS_RUNS_MAX		7

/**
 * struct rfs_runs - a leaf in the node map
 * @word: as any word of the node map. With RFS_NODE_RUNS there is no node: the address is
 *	0, and the highest 12 bits are the valid bytes of the leaf's last block, less 1. All
 *	that follows is 0 without it
 * @time: of the last write of each block, as in struct rfs_ptr
 * @wcount: writes of each block, as in struct rfs_ptr
 * @frac: as in struct rfs_ptr
 * @first: pointer of the leaf that is the first; those before it are holes
 * @run: blocks in a row, all of one zone: address of the first in the low 48 bits, how
 *	many in the high 16; 0: no more, and what is behind them are holes
 */
struct rfs_runs {
	__le64 word;
	__le32 time;
	__le16 wcount;
	__u8 frac;
	__u8 first;
	__le64 run[RFS_RUNS_MAX];
};

/**
 * struct rfs_ztab - zone-table block
 * @head: type RFS_ZTAB
 * @zone: zones from off * 126 on
 */
struct rfs_ztab {
	struct rfs_head head;
	struct rfs_zone zone[RFS_ZTAB_ENTRIES];
};

/* The kind of a pointer says what it leads to. */
enum rfs_ptr_kind {
	RFS_PTR_HOLE = 0,	/* nothing: all of the pointer is 0 */
	RFS_PTR_BLOCK = 1,	/* a block */
	RFS_PTR_PREALLOC = 2,	/* nothing yet, but there will be room for it */
	RFS_PTR_PIECE = 3,	/* the same, and pieces of it are in the diff node */
	RFS_PTR_ELSEWHERE = 4,	/* a block of the slow device */
	RFS_PTR_BOTH = 5,	/* a block, and one of the slow device that is equal */
};

/**
 * struct rfs_ptr - where a block of a file is
 * @addr: address in the low 48 bits, valid bytes in the high 16; 0: a hole; of
 *	RFS_PTR_BOTH the address in the low 32, that on the slow device in the high 32
 * @time: last write, seconds since the volume was created
 * @wcount: writes so far, saturating; of RFS_PTR_BOTH in the low 12 bits, and in the
 *	high 4 those of the valid bytes less 1
 * @kind: enum rfs_ptr_kind
 * @frac: of the last write, 1/256 s more than @time; of RFS_PTR_BOTH the low 8 bits of
 *	the valid bytes less 1
 */
struct rfs_ptr {
	__le64 addr;
	__le32 time;
	__le16 wcount;
	__u8 kind;
	__u8 frac;
};

#define RFS_FANOUT		252	/* pointers of a leaf */
#define RFS_NODE_FANOUT		1008	/* numbers of another index node */
#define RFS_HEIGHT_MAX		4
/* Leaves of a file are numbered with 32 bits, which is 4.4 PB. */
#define RFS_FILE_BLOCKS		((__u64)RFS_FANOUT << 32)

/**
 * struct rfs_node - index node
 * @head: type RFS_INDEX
 * @ptr: of a leaf, level 1 of a file: blocks from place * 252 on
 * @number: of others: nodes of the level below, or blocks of what is no file,
 *	from place * 1008 on
 */
struct rfs_node {
	struct rfs_head head;
	union {
		struct rfs_ptr ptr[RFS_FANOUT];
		__le32 number[RFS_NODE_FANOUT];
	};
};

/*
 * A file of a hybrid volume with this flag is written to the slow device and not to flash. What is
 * made in a directory with this flag has it, too. The value is Linux's FS_RESERVED_FL.
 */
#define RFS_INODE_BYPASS	0x80000000U

#define RFS_DIRECT		7	/* pointers in an inode */
#define RFS_TOPS		28	/* or node numbers */
#define RFS_INLINE_MAX		108

/**
 * struct rfs_dinode - inode
 * @ino: its number; 0: the slot is free
 * @gen: tells it from those that had its number before (1 in 2^32 alike)
 * @mode: type and permissions
 * @nlink: links; of a directory 2 + directories in it
 * @uid: owner
 * @gid: group
 * @flags: FS_*_FL, RFS_INODE_BYPASS
 * @rdev: of a device
 * @parent: directory of a directory; of others the one it was created in, or of
 *          an inode without a name, but the first, the one before it in the list
 * @next_orphan: next inode without a name, 0 at the end
 * @size: bytes
 * @blocks: data, directory, index, attribute blocks, its diff node, and preallocated
 * @atime: ns since 1970
 * @mtime: ns since 1970
 * @ctime: ns since 1970
 * @btime: creation, ns since 1970
 * @attr_version: version of the record or page that set mtime last
 * @wcount: block writes since it was created (SFS 3.3, file hotness)
 * @last_write: of any of its blocks, ns since 1970
 * @height: levels of index nodes; 0: there are none
 * @pad: 0
 * @xattr: node number of its extended attributes, 0 if none
 * @project: quota project
 * @inline_len: bytes used of @inl
 * @ptr: of a file of height 0: its first blocks
 * @node: of others: nodes of level @height, or blocks of what is no file
 * @target: of a symlink: node number of the rest of its target, 0 if none
 * @inl: of a symlink: its target, or the beginning of it
 * @diff: node number of the pieces of its blocks, 0 if none
 * @reserved: 0
 */
struct rfs_dinode {
	__le32 ino;
	__le32 gen;
	__le32 mode;
	__le32 nlink;
	__le32 uid;
	__le32 gid;
	__le32 flags;
	__le32 rdev;
	__le32 parent;
	__le32 next_orphan;
	__le64 size;
	__le64 blocks;
	__le64 atime;
	__le64 mtime;
	__le64 ctime;
	__le64 btime;
	__le64 attr_version;
	__le64 wcount;
	__le64 last_write;
	__u8 height;
	__u8 pad[3];
	__le32 xattr;
	__le32 project;
	__le32 inline_len;
	union {
		struct rfs_ptr ptr[RFS_DIRECT];
		__le32 node[RFS_TOPS];
		struct {
			__le32 target;
			__u8 inl[RFS_INLINE_MAX];
		};
	};
	__le32 diff;
	__u8 reserved[4];
};

/**
 * struct rfs_inodes - 16 inodes
 * @head: type RFS_INODES, off is inode number / 16
 * @inode: slot is inode number % 16
 * @hash_key: the superblock's, should all of these be lost
 * @summary_key: as @hash_key
 * @reserved: 0
 */
struct rfs_inodes {
	struct rfs_head head;
	struct rfs_dinode inode[RFS_BLOCK_INODES];
	__le64 hash_key[2];
	__le64 summary_key[2];
	__u8 reserved[32];
};

/**
 * struct rfs_dirent - entry of a directory leaf (level 0), 4-byte aligned
 * @ino: inode
 * @hash: high 32 bits of the SipHash-2-4 of the name with the volume's key
 * @len: of the name, 1 to 255
 * @type: DT_*
 * @rec: bytes of the entry, a multiple of 4
 * @name: without a terminator
 */
struct rfs_dirent {
	__le32 ino;
	__le32 hash;
	__u8 len;
	__u8 type;
	__le16 rec;
	__u8 name[];
};

/**
 * struct rfs_dx - entry of a directory node above the leaves
 * @hash: high 32 bits of the lowest hash below it; 0 in a node's first entry
 * @more: the 22 bits of it after those
 * @block: block of the directory
 */
struct rfs_dx {
	__le32 hash;
	__le32 more;
	__le32 block;
};

#define RFS_DX_ENTRIES		336

/**
 * struct rfs_xattr - extended attribute, 4-byte aligned, its value after its name
 * @len: of the name, 1 to 255
 * @pad: 0
 * @value_len: bytes of the value
 * @name: with its prefix ("user."), without a terminator
 */
struct rfs_xattr {
	__u8 len;
	__u8 pad;
	__le16 value_len;
	__u8 name[];
};

#define RFS_QUOTA_ENTRIES	63	/* of a block */
#define RFS_QUOTA_GRACE		0xffffffffU	/* nobody's: lengths of grace */
#define RFS_QUOTA_GRACE_S	604800	/* what 0 stands for there: a week */
/* This is the block of inode 1 with an entry. Type 0 is a user's, 1 a group's. */
#define RFS_QUOTA_OFF(type, id)	(2ULL * ((id) / RFS_QUOTA_ENTRIES) + (type))

/**
 * struct rfs_quota - what a user or a group has, and may have
 * @space_hard: bytes that are not exceeded; 0: any number
 * @space_soft: bytes that are exceeded only for a time; 0: any number
 * @inodes_hard: inodes that are not exceeded; 0: any number
 * @inodes_soft: inodes that are exceeded only for a time; 0: any number
 * @space_end: when that time ends, s since 1970; 0: not exceeded; of id 2^32 - 1
 *	how long it is, in s; 0: a week
 * @inodes_end: the same for inodes
 * @blocks: in use by inodes of this owner
 * @inodes: of this owner
 */
struct rfs_quota {
	__le64 space_hard;
	__le64 space_soft;
	__le64 inodes_hard;
	__le64 inodes_soft;
	__le64 space_end;
	__le64 inodes_end;
	__le64 blocks;
	__le64 inodes;
};

/**
 * struct rfs_quotas - block of inode 1
 * @head: type RFS_QUOTA, off is RFS_QUOTA_OFF(type, id)
 * @entry: place is id % 63
 */
struct rfs_quotas {
	struct rfs_head head;
	struct rfs_quota entry[RFS_QUOTA_ENTRIES];
};

/**
 * struct rfs_piece - bytes of a file that lie over its block in the diff node
 * @off: byte of the file that is the first
 * @version: of the write; the block's page, if that is newer, has them
 * @len: bytes, 1 to 2048, all of one block of the file
 * @at: where they are, from the end of the header on
 * @died: 0; or a page that is newer has completed: low half of the number that the
 *	check-point had, or 0xffffffff for 0. Until the next they keep their place
 */
struct rfs_piece {
	__le64 off;
	__le64 version;
	__le16 len;
	__le16 at;
	__le32 died;
};

#define RFS_PIECE_MAX	2048
#define RFS_PIECES	168	/* as many as a block could name */

/**
 * struct rfs_diff - diff node: pieces of blocks of one file
 * @head: type RFS_DIFF, count entries are used
 * @piece: in the order of @off, none of them overlap. Their bytes are in the same
 *	order at the end of the block, without gaps
 */
struct rfs_diff {
	struct rfs_head head;
	struct rfs_piece piece[RFS_PIECES];
};

/*
 * The slow device of a hybrid volume has its superblock, two copies of each block of the table of
 * states, one beside the other, then blocks of files, then the replica, if there is one. Its
 * headers have the types below, which no block of flash has.
 */
#define RFS_SLOW_SUPER		0x80
#define RFS_SLOW_STATES		0x81
#define RFS_SLOW_REPLICA	0x82
#define RFS_SLOW_PLACES		0x83
/* The kind RFS_PTR_BOTH has 32 bits for an address on either device. */
#define RFS_HYBRID_BLOCKS	(1ULL << 32)

/*
 * The state of a block of the slow device says whether it is a file's, and if so whether it is on
 * flash, too.
 */
enum rfs_slow_state {
	RFS_SLOW_FREE = 0,
	RFS_SLOW_ALONE = 1,	/* it is, and it is not */
	RFS_SLOW_HELD = 2,	/* not to be used before a check-point, or a replica of one */
	RFS_SLOW_BOTH = 3,	/* it is, and it is */
};

/**
 * struct rfs_slow_super - first block of the slow device
 * @head: type RFS_SLOW_SUPER
 * @blocks: of the device that the volume has, as in struct rfs_super
 * @replica_blocks: as in struct rfs_super
 * @reserved: 0
 */
struct rfs_slow_super {
	struct rfs_head head;
	__le64 blocks;
	__le64 replica_blocks;
	__u8 reserved[4016];
};

#define RFS_SLOW_EACH	16128	/* states in a block */

/**
 * struct rfs_slow_states - block of the table of states
 * @head: type RFS_SLOW_STATES, off is the number of the block in the table, stamp the
 *	number of the check-point it was written for. Of two copies that counts which has
 *	the highest that is not above the check-point of the volume
 * @state: enum rfs_slow_state, two bits each, the first ones lowest; RFS_SLOW_HELD only
 *	where there is a replica
 */
struct rfs_slow_states {
	struct rfs_head head;
	__u8 state[4032];
};

/*
 * The replica is all metadata of a check-point, as flash has it. There are two copies of its head,
 * two of each block of the table of places, one beside the other, then slots of a block each.
 */

/**
 * struct rfs_slot - entry of the table of places: what is in a slot
 * @addr: on flash; of the superblock 0, of a check-point's first block 1, and so on
 * @place: 0: nothing. 1: the superblock. Then blocks of the check-point, of TIMB, of the
 *	zone table, of the inode map, of the node map, each as many as there can be; then what
 *	each word of these maps leads to
 */
struct rfs_slot {
	__le64 addr;
	__le64 place;
};

#define RFS_PLACES	252	/* of a block */

/**
 * struct rfs_slow_places - block of the table of places
 * @head: type RFS_SLOW_PLACES, off is the number of the block in the table, stamp the
 *	number of the check-point of the replica it was written for. Of two copies that
 *	counts which has the highest that is not above the replica's
 * @place: of slots from off * 252 on
 */
struct rfs_slow_places {
	struct rfs_head head;
	struct rfs_slot place[RFS_PLACES];
};

/**
 * struct rfs_slow_replica - head of the replica; the copy with the higher stamp counts
 * @head: type RFS_SLOW_REPLICA, off is which copy, stamp the number of the check-point
 * @sum: of the stamps of the blocks of the table of places that count
 * @time: of the check-point, as in struct rfs_cp
 * @blocks: of the check-point; 0: there is no replica, as it had no room
 * @pad: 0
 * @reserved: 0
 */
struct rfs_slow_replica {
	struct rfs_head head;
	__le64 sum;
	__le64 time;
	__le32 blocks;
	__le32 pad;
	__u8 reserved[4008];
};

/* The log of changes has these records. */
enum rfs_op {
	RFS_OP_CREATE = 1,
	RFS_OP_LINK = 2,
	RFS_OP_UNLINK = 3,
	RFS_OP_RENAME = 4,
	RFS_OP_ATTR = 5,
	RFS_OP_SIZE = 6,
	RFS_OP_PUNCH = 7,
	RFS_OP_FREE = 8,
	RFS_OP_XATTR = 9,
	RFS_OP_PREALLOC = 10,
	RFS_OP_QUOTA = 11,
	RFS_OP_PIECE = 12,
	RFS_OPS
};

/* These are flags of struct rfs_rec. */
#define RFS_REC_EXCHANGE	0x1	/* RENAME: both names stay, swapped */
#define RFS_REC_WHITEOUT	0x2	/* RENAME: the first is a whiteout then */
#define RFS_REC_REMOVE		0x4	/* XATTR: without a value, it is gone */
#define RFS_REC_GROW		0x8	/* SIZE: it grows, what is preallocated stays */
#define RFS_REC_KEEP		0x10	/* PUNCH: the blocks are preallocated then */
#define RFS_REC_TXN		0x20	/* PIECE: one of several of a transaction */

/**
 * struct rfs_rec - record of the log, followed by up to two names or the like
 * @bytes: of the record with what follows, a multiple of 8
 * @op: enum rfs_op
 * @flags: RFS_REC_EXCHANGE ...
 * @len1: bytes of the first name after the record; 0 if it has none
 * @len2: bytes of the second name, symlink's target, attributes, value, quota, piece
 * @pad: 0
 * @ino: the inode that changes
 * @gen: of @ino
 * @dir1: directory of the first name; QUOTA: user or group
 * @dir2: RENAME: directory of the second name; QUOTA: 0: a user, 1: a group
 * @victim: RENAME: inode the second name had, 0 if none
 * @mode: CREATE, ATTR; XATTR: unless 0; RENAME: of the whiteout
 * @uid: CREATE, ATTR; RENAME: of the whiteout
 * @gid: CREATE, ATTR; RENAME: of the whiteout
 * @rdev: CREATE
 * @iflags: CREATE, ATTR
 * @pad2: 0
 * @version: of the change: earlier pages it removes have lower ones
 * @time: of the change, ns since 1970
 * @arg1: SIZE: new size; PUNCH, PREALLOC: first block; ATTR: atime; RENAME:
 *	the whiteout's inode; PIECE: first byte
 * @arg2: PUNCH, PREALLOC: block after the last; ATTR: mtime; RENAME: the
 *	whiteout's gen; PIECE of a transaction: its place in it, as txn_idx of a page,
 *	and in the 16 bits above these how many pages and pieces it has, if this is the last
 */
struct rfs_rec {
	__le32 bytes;
	__u8 op;
	__u8 flags;
	__le16 len1;
	__le16 len2;
	__le16 pad;
	__le32 ino;
	__le32 gen;
	__le32 dir1;
	__le32 dir2;
	__le32 victim;
	__le32 mode;
	__le32 uid;
	__le32 gid;
	__le32 rdev;
	__le32 iflags;
	__le32 pad2;
	__le64 version;
	__le64 time;
	__le64 arg1;
	__le64 arg2;
};

#define RFS_REC_MAX	(sizeof(struct rfs_rec) + 256 + 4096)

#define RFS_SUM_ENTRIES		63

/**
 * struct rfs_summary - backpointers of blocks of its zone
 * @head: type RFS_SUMMARY, count entries are used
 * @entry: as the block's OOB, but @crc is the block's offset in the zone
 */
struct rfs_summary {
	struct rfs_head head;
	struct rfs_oob entry[RFS_SUM_ENTRIES];
};

#ifdef __KERNEL__
#define RFS_ASSERT(cond)	static_assert(cond)
#else
#define RFS_ASSERT(cond)	static_assert(cond, #cond)
#endif
#define RFS_SIZE(type, bytes)	RFS_ASSERT(sizeof(struct type) == (bytes))
#define RFS_AT(type, field, at)	RFS_ASSERT(offsetof(struct type, field) == (at))

RFS_SIZE(rfs_oob, 64);
RFS_AT(rfs_oob, magic, 0);
RFS_AT(rfs_oob, type, 2);
RFS_AT(rfs_oob, flags, 3);
RFS_AT(rfs_oob, volume, 4);
RFS_AT(rfs_oob, ino, 8);
RFS_AT(rfs_oob, gen, 12);
RFS_AT(rfs_oob, off, 16);
RFS_AT(rfs_oob, version, 24);
RFS_AT(rfs_oob, stamp, 32);
RFS_AT(rfs_oob, time, 40);
RFS_AT(rfs_oob, len, 48);
RFS_AT(rfs_oob, txn_idx, 50);
RFS_AT(rfs_oob, txn_cnt, 52);
RFS_AT(rfs_oob, wcount, 54);
RFS_AT(rfs_oob, data_crc, 56);
RFS_AT(rfs_oob, crc, 60);

RFS_SIZE(rfs_head, 64);
RFS_AT(rfs_head, magic, 0);
RFS_AT(rfs_head, crc, 4);
RFS_AT(rfs_head, volume, 8);
RFS_AT(rfs_head, type, 12);
RFS_AT(rfs_head, level, 13);
RFS_AT(rfs_head, count, 14);
RFS_AT(rfs_head, ino, 16);
RFS_AT(rfs_head, gen, 20);
RFS_AT(rfs_head, off, 24);
RFS_AT(rfs_head, stamp, 32);
RFS_AT(rfs_head, addr, 40);
RFS_AT(rfs_head, prev, 48);
RFS_AT(rfs_head, uuid, 52);

RFS_SIZE(rfs_super, 4096);
RFS_AT(rfs_super, head, 0);
RFS_AT(rfs_super, version, 64);
RFS_AT(rfs_super, compat, 68);
RFS_AT(rfs_super, ro_compat, 72);
RFS_AT(rfs_super, incompat, 76);
RFS_AT(rfs_super, uuid, 80);
RFS_AT(rfs_super, label, 96);
RFS_AT(rfs_super, created, 160);
RFS_AT(rfs_super, zones, 168);
RFS_AT(rfs_super, zone_blocks, 172);
RFS_AT(rfs_super, zone_cap, 176);
RFS_AT(rfs_super, oob_bytes, 180);
RFS_AT(rfs_super, reserve_zones, 184);
RFS_AT(rfs_super, max_inodes, 188);
RFS_AT(rfs_super, dirty_max, 192);
RFS_AT(rfs_super, max_nodes, 196);
RFS_AT(rfs_super, hash_key, 200);
RFS_AT(rfs_super, summary_key, 216);
RFS_AT(rfs_super, ways, 232);
RFS_AT(rfs_super, pad, 236);
RFS_AT(rfs_super, slow_blocks, 240);
RFS_AT(rfs_super, replica_blocks, 248);
RFS_AT(rfs_super, reserved, 256);

RFS_SIZE(rfs_cp, 4096);
RFS_AT(rfs_cp, head, 0);
RFS_AT(rfs_cp, seq, 64);
RFS_AT(rfs_cp, next_version, 72);
RFS_AT(rfs_cp, next_lsn, 80);
RFS_AT(rfs_cp, time, 88);
RFS_AT(rfs_cp, flags, 96);
RFS_AT(rfs_cp, blocks, 100);
RFS_AT(rfs_cp, timb_blocks, 104);
RFS_AT(rfs_cp, ztab_blocks, 108);
RFS_AT(rfs_cp, orphans, 112);
RFS_AT(rfs_cp, next_ino, 116);
RFS_AT(rfs_cp, inodes, 120);
RFS_AT(rfs_cp, live, 128);
RFS_AT(rfs_cp, data_live, 136);
RFS_AT(rfs_cp, group_hot, 144);
RFS_AT(rfs_cp, list, 192);

RFS_SIZE(rfs_zone, 32);
RFS_AT(rfs_zone, state, 0);
RFS_AT(rfs_zone, stream, 1);
RFS_AT(rfs_zone, pad, 2);
RFS_AT(rfs_zone, wp, 4);
RFS_AT(rfs_zone, live, 8);
RFS_AT(rfs_zone, summary, 12);
RFS_AT(rfs_zone, sum_time, 16);
RFS_AT(rfs_zone, sum_wcount, 24);

RFS_SIZE(rfs_table, 4096);
RFS_AT(rfs_table, head, 0);
RFS_AT(rfs_table, word, 64);

RFS_SIZE(rfs_runs, 72);
RFS_AT(rfs_runs, word, 0);
RFS_AT(rfs_runs, time, 8);
RFS_AT(rfs_runs, wcount, 12);
RFS_AT(rfs_runs, frac, 14);
RFS_AT(rfs_runs, first, 15);
RFS_AT(rfs_runs, run, 16);
RFS_ASSERT(sizeof(struct rfs_runs) == RFS_LEAF_WORDS * sizeof(__le64));
RFS_ASSERT(RFS_MAP_ENTRIES % RFS_LEAF_WORDS == 0);

RFS_SIZE(rfs_ztab, 4096);
RFS_AT(rfs_ztab, head, 0);
RFS_AT(rfs_ztab, zone, 64);

RFS_SIZE(rfs_ptr, 16);
RFS_AT(rfs_ptr, addr, 0);
RFS_AT(rfs_ptr, time, 8);
RFS_AT(rfs_ptr, wcount, 12);
RFS_AT(rfs_ptr, kind, 14);
RFS_AT(rfs_ptr, frac, 15);

RFS_SIZE(rfs_node, 4096);
RFS_AT(rfs_node, head, 0);
RFS_AT(rfs_node, ptr, 64);
RFS_AT(rfs_node, number, 64);

RFS_SIZE(rfs_dinode, 248);
RFS_AT(rfs_dinode, ino, 0);
RFS_AT(rfs_dinode, gen, 4);
RFS_AT(rfs_dinode, mode, 8);
RFS_AT(rfs_dinode, nlink, 12);
RFS_AT(rfs_dinode, uid, 16);
RFS_AT(rfs_dinode, gid, 20);
RFS_AT(rfs_dinode, flags, 24);
RFS_AT(rfs_dinode, rdev, 28);
RFS_AT(rfs_dinode, parent, 32);
RFS_AT(rfs_dinode, next_orphan, 36);
RFS_AT(rfs_dinode, size, 40);
RFS_AT(rfs_dinode, blocks, 48);
RFS_AT(rfs_dinode, atime, 56);
RFS_AT(rfs_dinode, mtime, 64);
RFS_AT(rfs_dinode, ctime, 72);
RFS_AT(rfs_dinode, btime, 80);
RFS_AT(rfs_dinode, attr_version, 88);
RFS_AT(rfs_dinode, wcount, 96);
RFS_AT(rfs_dinode, last_write, 104);
RFS_AT(rfs_dinode, height, 112);
RFS_AT(rfs_dinode, pad, 113);
RFS_AT(rfs_dinode, xattr, 116);
RFS_AT(rfs_dinode, project, 120);
RFS_AT(rfs_dinode, inline_len, 124);
RFS_AT(rfs_dinode, ptr, 128);
RFS_AT(rfs_dinode, node, 128);
RFS_AT(rfs_dinode, target, 128);
RFS_AT(rfs_dinode, inl, 132);
RFS_AT(rfs_dinode, diff, 240);
RFS_AT(rfs_dinode, reserved, 244);

RFS_SIZE(rfs_inodes, 4096);
RFS_AT(rfs_inodes, head, 0);
RFS_AT(rfs_inodes, inode, 64);
RFS_AT(rfs_inodes, hash_key, 4032);
RFS_AT(rfs_inodes, summary_key, 4048);
RFS_AT(rfs_inodes, reserved, 4064);

RFS_SIZE(rfs_dirent, 12);
RFS_AT(rfs_dirent, ino, 0);
RFS_AT(rfs_dirent, hash, 4);
RFS_AT(rfs_dirent, len, 8);
RFS_AT(rfs_dirent, type, 9);
RFS_AT(rfs_dirent, rec, 10);
RFS_AT(rfs_dirent, name, 12);

RFS_SIZE(rfs_dx, 12);
RFS_AT(rfs_dx, hash, 0);
RFS_AT(rfs_dx, more, 4);
RFS_AT(rfs_dx, block, 8);

RFS_SIZE(rfs_xattr, 4);
RFS_AT(rfs_xattr, len, 0);
RFS_AT(rfs_xattr, pad, 1);
RFS_AT(rfs_xattr, value_len, 2);
RFS_AT(rfs_xattr, name, 4);

RFS_SIZE(rfs_quota, 64);
RFS_AT(rfs_quota, space_hard, 0);
RFS_AT(rfs_quota, space_soft, 8);
RFS_AT(rfs_quota, inodes_hard, 16);
RFS_AT(rfs_quota, inodes_soft, 24);
RFS_AT(rfs_quota, space_end, 32);
RFS_AT(rfs_quota, inodes_end, 40);
RFS_AT(rfs_quota, blocks, 48);
RFS_AT(rfs_quota, inodes, 56);

RFS_SIZE(rfs_quotas, 4096);
RFS_AT(rfs_quotas, head, 0);
RFS_AT(rfs_quotas, entry, 64);

RFS_SIZE(rfs_piece, 24);
RFS_AT(rfs_piece, off, 0);
RFS_AT(rfs_piece, version, 8);
RFS_AT(rfs_piece, len, 16);
RFS_AT(rfs_piece, at, 18);
RFS_AT(rfs_piece, died, 20);

RFS_SIZE(rfs_diff, 4096);
RFS_AT(rfs_diff, head, 0);
RFS_AT(rfs_diff, piece, 64);

RFS_SIZE(rfs_slow_super, 4096);
RFS_AT(rfs_slow_super, head, 0);
RFS_AT(rfs_slow_super, blocks, 64);
RFS_AT(rfs_slow_super, replica_blocks, 72);
RFS_AT(rfs_slow_super, reserved, 80);

RFS_SIZE(rfs_slow_states, 4096);
RFS_AT(rfs_slow_states, head, 0);
RFS_AT(rfs_slow_states, state, 64);
RFS_ASSERT(RFS_SLOW_EACH == 4 * 4032);

RFS_SIZE(rfs_slot, 16);
RFS_AT(rfs_slot, addr, 0);
RFS_AT(rfs_slot, place, 8);

RFS_SIZE(rfs_slow_places, 4096);
RFS_AT(rfs_slow_places, head, 0);
RFS_AT(rfs_slow_places, place, 64);

RFS_SIZE(rfs_slow_replica, 4096);
RFS_AT(rfs_slow_replica, head, 0);
RFS_AT(rfs_slow_replica, sum, 64);
RFS_AT(rfs_slow_replica, time, 72);
RFS_AT(rfs_slow_replica, blocks, 80);
RFS_AT(rfs_slow_replica, pad, 84);
RFS_AT(rfs_slow_replica, reserved, 88);

RFS_SIZE(rfs_rec, 88);
RFS_AT(rfs_rec, bytes, 0);
RFS_AT(rfs_rec, op, 4);
RFS_AT(rfs_rec, flags, 5);
RFS_AT(rfs_rec, len1, 6);
RFS_AT(rfs_rec, len2, 8);
RFS_AT(rfs_rec, pad, 10);
RFS_AT(rfs_rec, ino, 12);
RFS_AT(rfs_rec, gen, 16);
RFS_AT(rfs_rec, dir1, 20);
RFS_AT(rfs_rec, dir2, 24);
RFS_AT(rfs_rec, victim, 28);
RFS_AT(rfs_rec, mode, 32);
RFS_AT(rfs_rec, uid, 36);
RFS_AT(rfs_rec, gid, 40);
RFS_AT(rfs_rec, rdev, 44);
RFS_AT(rfs_rec, iflags, 48);
RFS_AT(rfs_rec, pad2, 52);
RFS_AT(rfs_rec, version, 56);
RFS_AT(rfs_rec, time, 64);
RFS_AT(rfs_rec, arg1, 72);
RFS_AT(rfs_rec, arg2, 80);

RFS_SIZE(rfs_summary, 4096);
RFS_AT(rfs_summary, head, 0);
RFS_AT(rfs_summary, entry, 64);
#endif
