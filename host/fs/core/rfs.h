/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The core of RFS: all logic of the format, for the module, the tools and the
 * tests. One caller at a time; functions return 0 or a negative errno:
 * -EUCLEAN for a medium that contradicts itself, -EIO for one that fails.
 */
#ifndef RFS_H
#define RFS_H

#include "plat/rfs_plat.h"
#include "format/rfs_format.h"
#include "policy/policy.h"

enum rfs_dev_cond {
	RFS_DEV_OK,
	RFS_DEV_READ_ONLY,
	RFS_DEV_OFFLINE,
};

struct rfs_copy;
struct rfs_fs;
struct rfs_send;

struct rfs_dev_zone {
	u32 cap;		/* blocks */
	u32 wp;			/* blocks */
	enum rfs_dev_cond cond;
};

/**
 * struct rfs_dev_ops - the drive
 * @append: blocks to the end of a zone; may return before they are written,
 *	data and oob are copied or kept by then. @oob is ignored without OOB.
 *	Says where the first block goes.
 * @append_begin: the same, but it may be under way when this returns, data and
 *	oob stay; each of up to RFS_TOGETHER has a number of its own. May be NULL,
 *	as @append_end, and is not used where few zones may be active
 * @append_end: until it is written, or has failed
 * @wait: until all appends are written; the first error among them
 * @read: a block and, unless NULL, its OOB; -EIO if it is unreadable
 * @copy_read: begin to read the blocks of a copy that are not there; they are
 *	after @copy_wait, unless they cannot be read; may be NULL
 * @copy_wait: see there; others may use the volume meanwhile
 * @copy_send: begin to append a copy: rfs_copy_begin(), which may leave less of
 *	it, rfs_place(), and when a part has landed rfs_placed(), rfs_copy_done();
 *	others may use the volume meanwhile; may be NULL
 * @copy_land: until all of it has landed, or failed; others may use the volume
 * @cached: the content of a file's block, if it is in memory and nothing that is
 *	not on the drive; may be NULL
 * @pause: a place in long work where others may use the volume; may be NULL
 * @rest: a moment, in which nobody else uses the volume but reads that are on
 *	their way end; may be NULL if @reset is never busy
 * @reset: a zone; -EBUSY: not now, somebody reads it
 * @finish: no more will be written to the zone, it is full
 * @close: it is not written now; both may be NULL where no limit is
 * @flush: what was written before is durable
 * @report: state of a zone
 * @now: ns since 1970
 * @may_exceed: who asks for this is not bound by quotas; may be NULL
 */
struct rfs_dev_ops {
	int (*append)(void *dev, u32 zone, u32 blocks, const void *const *data,
		      const struct rfs_oob *oob, u64 *addr);
	void (*append_begin)(void *dev, struct rfs_send *send);
	void (*append_end)(void *dev, struct rfs_send *send);
	int (*wait)(void *dev);
	int (*read)(void *dev, u64 addr, void *data, struct rfs_oob *oob);
	int (*copy_read)(void *dev, struct rfs_copy *copy);
	void (*copy_wait)(void *dev, struct rfs_copy *copy);
	int (*copy_send)(void *dev, struct rfs_copy *copy);
	int (*copy_land)(void *dev, struct rfs_copy *copy);
	bool (*cached)(void *dev, u32 ino, u64 block, void *data);
	void (*pause)(void *dev);
	void (*rest)(void *dev);
	int (*reset)(void *dev, u32 zone);
	int (*finish)(void *dev, u32 zone);
	int (*close)(void *dev, u32 zone);
	int (*flush)(void *dev);
	int (*report)(void *dev, u32 zone, struct rfs_dev_zone *out);
	u64 (*now)(void *dev);
	bool (*may_exceed)(void *dev);
};

struct rfs_geometry {
	u32 zones;
	u32 zone_blocks;
	u32 oob_bytes;		/* 0, or RFS_OOB_BYTES and more */
	bool volatile_cache;
	u32 append_max;		/* blocks of one append; 0: any number */
	/* zones that may be open, or partly filled; 0: any number */
	u32 max_open, max_active;
};

#define RFS_OPEN_MIN	3	/* with fewer there is no volume */
#define RFS_ACTIVE_MIN	4

/* A zone, as in the zone table and beyond */
struct rfs_zone_info {
	u64 sum_time;
	u64 sum_wcount;
	u32 cap;
	u32 wp;
	u32 cp_wp;		/* of the check-point that was loaded */
	u32 live;		/* blocks, those of maps included */
	u32 maps;		/* of them maps, TIMB and zone table */
	u32 summary;
	u32 flying;		/* blocks below wp that may not be there yet */
	u32 *sum_at;		/* where its summaries are; may be NULL */
	u32 sums_known;		/* of them, since it was opened in this mount */
	u64 last;		/* ticks: data: youngest block; else when opened */
	u8 state;
	u8 stream;
	u8 cond;
	bool window;		/* holds pages since the check-point */
	bool cleaning;		/* now */
	bool cleaned;		/* since the check-point */
};

/* A summary, until it is written */
struct rfs_sum {
	struct rfs_sum *next;
	u32 zone;
	u32 count;		/* blocks it will list */
	u32 known;		/* of them, where they are is known, or never */
	bool full;
	struct rfs_summary block;
};

/* A stream's open zone and the blocks that no summary lists yet */
struct rfs_tail {
	u32 zone;		/* 0 if none */
	struct rfs_sum *sum;	/* NULL if there are none */
};

/* Room in a zone that an append was given */
struct rfs_place {
	u32 zone;
	u32 n;			/* blocks */
	u32 slot;		/* the first of them in sum */
	struct rfs_sum *sum;	/* lists them; may be NULL */
};

#define RFS_TRIES	3	/* zones that are tried when appends fail */

/* An append among others that are in flight */
struct rfs_send {
	u32 nr;			/* below RFS_TOGETHER, of those under way */
	u32 zone;
	u32 n;			/* blocks */
	const void *const *data;
	const struct rfs_oob *oob;
	u64 addr;		/* of the first, then */
	int error;
};

#define RFS_TOGETHER	7	/* of them at most */

/* A metadata block in memory */
struct rfs_buf {
	struct rfs_buf *hash_next;
	struct rfs_buf *prev, *next;	/* in the list of dirty or of clean */
	u64 off;		/* of a node its number; else as in the head */
	u64 addr;		/* 0: never written */
	u8 class;		/* its type, but of nodes RFS_INDEX */
	bool dirty;
	bool sent;		/* as it is now, and has not landed yet */
	union {
		struct rfs_head head;
		struct rfs_node node;
		struct rfs_inodes inodes;
		struct rfs_table table;
		struct rfs_quotas quotas;
		u8 bytes[RFS_BLOCK_BYTES];
	};
};

/* A block is at addr; may be NULL. `what` and `how` are the caller's. */
typedef int (*rfs_landed)(struct rfs_fs *fs, void *what, const void *how,
			  u64 addr);

/* Blocks of one append, of a check-point or the log */
struct rfs_flight {
	struct rfs_send send;
	struct rfs_place place;
	struct rfs_sum *sum;	/* it is this one; else NULL */
	u32 stream;
	u32 n;
	rfs_landed landed;
	const void *how;
	void *what[RFS_SUM_ENTRIES];
	const void *data[RFS_SUM_ENTRIES];
	struct rfs_oob oob[RFS_SUM_ENTRIES];
};

#define RFS_TABLES	4	/* blocks of TIMB and zone table on their way */

/* What is under way of it, see flight.c */
struct rfs_air {
	struct rfs_flight next;	/* which is being filled */
	struct rfs_flight flight[RFS_TOGETHER];
	u32 first, count;	/* the oldest of these, and how many */
	u32 blocks;		/* of them, those that are no summaries */
	bool failed;		/* one has, or is not sent: zones are not as expected */
	u32 tables;		/* of the next, in use */
	union {
		struct rfs_head head;
		struct rfs_table timb;
		struct rfs_ztab ztab;
	} table[RFS_TABLES];
};

struct rfs_list {
	struct rfs_buf *first, *last;
	struct rfs_buf *seen;	/* up to it what is above is dirty, too */
	u32 count;
};

#define RFS_HASH	4096

#define RFS_LOG_BLOCKS	RFS_SUM_ENTRIES	/* in memory: an append, if it has to be */
#define RFS_LOG_KEPT	3	/* that a record may reach into */

enum rfs_quota_type {
	RFS_QUOTA_USER,
	RFS_QUOTA_GROUP,
	RFS_QUOTA_TYPES
};

/* Blocks that pages of somebody's files were promised; by type and id */
struct rfs_held {
	struct rfs_held *next;
	u32 type, id;
	u64 blocks;
};

#define RFS_HELD_HASH	64

/* An inode with a record (name, truncate, ...) that is not yet durable */
struct rfs_pending {
	u32 ino;		/* 0: an empty place of the table */
	bool before_data;	/* durable before a page of the file */
};

/* What removes pages of the updating window */
struct rfs_tomb {
	u32 ino;
	u32 gen;
	u64 from, to;		/* blocks that are gone */
	u64 cut_block;		/* block that is cut, if cut_len is not 0 */
	u32 cut_len;
	u64 version;
	bool punch;		/* what it removes was still written */
};

struct rfs_recovered {
	u64 pages_read;
	u64 pages_window;	/* with a stamp of the window */
	u64 pages_bad;		/* below a write pointer, not readable */
	u64 records;
	u64 records_failed;	/* in a rescue */
	u64 scan_ns, log_ns, data_ns;	/* time that its steps took */
	u64 log_gap;		/* log blocks after the first gap */
	u64 txns_dropped;	/* incomplete transactions */
	u64 pages_dropped;	/* pages no inode or a tombstone claims */
	u64 pages_applied;
	u64 orphans;
	u64 last_version;	/* of the last record replayed; 0 if none */
};

struct rfs_stats {
	u64 written[RFS_TYPES];	/* blocks */
	u64 data[RFS_GROUPS_MAX];	/* of them new data, by group */
	u64 copies[RFS_GROUPS_MAX];	/* and data that cleaning has moved */
	u64 copied;
	u64 copied_maps;	/* inode map and TIMB, that were not dirty */
	u64 checkpoints;
	u64 resets;
	u64 victims;
	u64 clean_reads;
	u64 clean_cached;	/* blocks that need not be read */
};

/* How data is grouped and cleaned: mount options */
struct rfs_policy {
	u32 groups;		/* 1 to RFS_GROUPS_MAX */
	enum rfs_gc gc;
	enum rfs_quantize quantize;
};

/**
 * struct rfs_upcalls - what lower files ask of higher ones
 * @charge: the owners of an inode have so many blocks and inodes more, or fewer:
 *	who makes a node or frees an inode changes the quotas, which are in nodes of
 *	inode 1 themselves
 */
struct rfs_upcalls {
	int (*charge)(struct rfs_fs *fs, const struct rfs_dinode *di, s64 blocks,
		      s64 inodes);
};

struct rfs_fs {
	const struct rfs_dev_ops *ops;
	const struct rfs_upcalls *up;
	void *dev;
	struct rfs_geometry geo;
	struct rfs_super super;
	u32 volume;
	u64 user_blocks;	/* that can be promised */
	u32 low_zones;		/* fewer free ones: clean first */
	u32 dirty_max;
	u32 window_max;		/* blocks */

	u64 behind;		/* ns that the clock of the machine is */
	u64 version;		/* next */
	u64 cp_version;		/* of the check-point: the window's first */
	u64 cp_seq;
	u32 cp_nth;		/* metadata blocks written since the last one */
	u32 cp_mirror[RFS_CP_MIRRORS];
	u64 window_blocks;

	struct rfs_zone_info *zone;
	struct rfs_tail tail[RFS_STREAMS];
	u8 tail_of[RFS_STREAMS];	/* where open zones are few, streams share */
	u32 meta_tails, data_tails;	/* how many may have a zone */
	struct rfs_policy policy;
	u64 group_hot[RFS_GROUPS_MAX];	/* coldest first */
	u64 *hot;		/* room for that of each zone */
	u32 active_max;		/* zones, but for check-points; 0: any number */
	struct rfs_sum *sums;	/* that can be written */
	u32 free_zones;
	u32 zone_cursor;
	u64 live;		/* blocks of all zones */
	u64 data_live;

	u32 imap_blocks, nmap_blocks, timb_blocks, ztab_blocks;
	/* TIMB word of each block of the inode map, then of the node map */
	u64 *timb;
	u64 *timb_addr;
	u64 *ztab_addr;
	bool *timb_dirty;
	struct rfs_zone *ztab;	/* as last written */
	u32 orphans;
	u32 next_ino;
	u32 next_node;		/* no number below it is free */
	u8 *led;		/* numbers that something leads to; see repair.c */
	u64 inodes;

	struct rfs_buf *hash[RFS_HASH];
	struct rfs_list dirty, clean;
	u32 new_dirty;		/* dirty and never written */
	struct rfs_air *air;
	u64 owed;		/* data blocks that were promised a place */
	u64 promised;		/* of them, those that fill holes */
	u64 reserved;		/* holes of files that room is kept for */
	u32 clean_max;

	/* records that are not written: blocks, more of them when needed */
	struct rfs_head *log[RFS_LOG_BLOCKS];
	u32 log_most;		/* blocks, then they are written */
	u32 log_full;		/* that take nothing more */
	u32 log_used;		/* bytes of the next */
	u64 lsn;		/* of the first */
	struct rfs_pending *pending;	/* hashed by inode */
	u32 pendings, pending_room;	/* used; places, a power of 2 */

	bool replaying;
	bool recovering;	/* and the pages of the window */
	bool rescuing;		/* what is damaged is left out */
	bool keyless;		/* and the keys of the volume are not known yet */
	bool read_only;
	bool threaded;		/* others make room: -EAGAIN asks them to */
	bool stuck;		/* they cannot: -ENOSPC instead */
	bool futile;		/* to compact metadata, until a zone is free */
	struct rfs_tomb *tomb;
	u32 tombs, tomb_room;
	struct rfs_recovered recovered;
	struct rfs_stats stats;
	u32 teeth;		/* tests only: what to leave out */

	bool counting;		/* usage of quotas is kept */
	bool miscounted;	/* but it is not right: anew at the next mount */
	u32 enforced;		/* limits; a bit for each rfs_quota_type */
	struct rfs_held *held[RFS_HELD_HASH];
};

/* Rules that a test breaks to see that it notices */
#define RFS_TEETH_TXN		0x1	/* keep incomplete transactions */
#define RFS_TEETH_RESET		0x2	/* reset without a check-point */
#define RFS_TEETH_TOMB		0x4	/* truncates leave no tombstone */

/* format.c */
void rfs_head_init(struct rfs_fs *fs, struct rfs_head *head, u8 type, u32 ino,
		   u32 gen, u64 off);
void rfs_head_date(struct rfs_fs *fs, struct rfs_head *head);
void rfs_head_seal(struct rfs_head *head, u64 stamp);
bool rfs_head_ok(const struct rfs_head *head, u32 volume, u8 type);
void rfs_oob_seal(struct rfs_oob *oob, const void *data);
bool rfs_oob_ok(const struct rfs_oob *oob, u32 volume);
u64 rfs_name_hash(const struct rfs_fs *fs, const void *name, u32 len);
/* Of volumes without page metadata; the rest of the header is filled in */
void rfs_summary_seal(const struct rfs_fs *fs, struct rfs_summary *sum,
		      u64 stamp);
bool rfs_summary_ok(const struct rfs_fs *fs, const struct rfs_summary *sum,
		    u64 addr);
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

/* super.c */
struct rfs_layout {
	u32 dirty_max, reserve_zones, cp_blocks;
	u32 imap_blocks, nmap_blocks, timb_blocks, ztab_blocks;
	u64 max_inodes, max_nodes;
	u32 need_zones;		/* fewer are refused */
};

void rfs_layout(u32 zones, u32 zone_cap, bool oob, struct rfs_layout *out);
/* What tells a volume from others. The keys are random, and nobody else's. */
struct rfs_id {
	u8 uuid[16];
	u8 hash_key[16];
	u8 summary_key[16];
};

/*
 * Make the volume. geo->zones may be fewer than the device has. The zones are
 * reset. -ENOSPC if rfs_layout() asks for more, -EMFILE if !rfs_limits_ok().
 */
int rfs_mkfs(const struct rfs_dev_ops *ops, void *dev,
	     const struct rfs_geometry *geo, const struct rfs_id *id,
	     const char *label);
int rfs_super_load(struct rfs_fs *fs);
void rfs_super_fill(struct rfs_fs *fs);
int rfs_super_write(struct rfs_fs *fs, u32 zone);
/* A new one for zones of cap blocks; -ENOSPC: see rfs_layout() */
int rfs_super_make(struct rfs_fs *fs, u32 cap, const struct rfs_id *id,
		   const char *label, u64 created);
int rfs_root_make(struct rfs_fs *fs);	/* an empty one */

/* zone.c */
/* Does the drive allow as many open and active zones as there must be? */
static inline bool rfs_limits_ok(const struct rfs_geometry *geo)
{
	return (!geo->max_open || geo->max_open >= RFS_OPEN_MIN) &&
	       (!geo->max_active || geo->max_active >= RFS_ACTIVE_MIN);
}

void rfs_streams_init(struct rfs_fs *fs);	/* they are */
/* From now on; fewer groups if the drive allows fewer open zones */
void rfs_policy_set(struct rfs_fs *fs, const struct rfs_policy *policy);
void rfs_finish_zones(struct rfs_fs *fs);	/* that nobody goes on with */
u64 rfs_next_version(struct rfs_fs *fs, u32 count);
/*
 * It is on the medium: those to come are above it. One at the end of the range
 * stays there, see rfs_numbers_left(); a rescue leaves it out.
 */
static inline void rfs_version_seen(struct rfs_fs *fs, u64 version)
{
	if (!fs->rescuing || version < RFS_VERSION_END)
		fs->version = max(fs->version,
				  min(version, RFS_VERSION_END) + 1);
}

/*
 * Is there room for numbers after those that were found? A volume without it was
 * mounted a million times, or somebody made it so: it is not written.
 */
static inline bool rfs_numbers_left(const struct rfs_fs *fs)
{
	return fs->version < RFS_VERSION_END && fs->lsn < RFS_LSN_END &&
	       fs->cp_seq < RFS_SEQ_END;
}

/*
 * Appends in flight together, with page metadata: room for up to n blocks, or
 * for all of them, the append, and where they are. Then summaries may be due. A check-point waits
 * until all that were given room are placed and no summary is left.
 */
int rfs_place(struct rfs_fs *fs, u32 stream, u32 n, bool all,
	      struct rfs_place *place);
bool rfs_zone_failed(int error);	/* or can it be tried again? */
void rfs_placed(struct rfs_fs *fs, const struct rfs_place *place,
		const struct rfs_oob *oob, u64 addr, int error);
struct rfs_sum *rfs_sum_next(struct rfs_fs *fs, struct rfs_oob *oob);
void rfs_sum_done(struct rfs_fs *fs, struct rfs_sum *sum, u64 addr, int error);
void rfs_sums_write(struct rfs_fs *fs);
void rfs_sums_drop(struct rfs_fs *fs);
/* All in one, and summaries; addr has an element for each block */
int rfs_append(struct rfs_fs *fs, u32 stream, u32 n, const void *const *data,
	       struct rfs_oob *oob, u64 *addr);
void rfs_oob_meta(struct rfs_fs *fs, struct rfs_oob *oob,
		  const struct rfs_head *head);
/* A block is in use from now on, or no longer; @ptr of data, else NULL */
int rfs_live(struct rfs_fs *fs, u64 addr, int delta, const struct rfs_ptr *ptr);
void rfs_live_map(struct rfs_fs *fs, u64 addr, int delta);
bool rfs_addr_ok(const struct rfs_fs *fs, u64 addr);
/* Of user_blocks, those that are in use or spoken for */
static inline u64 rfs_used(const struct rfs_fs *fs)
{
	return fs->live + fs->new_dirty + fs->promised + fs->reserved;
}

int rfs_free_zones(struct rfs_fs *fs);
/* Zones that are free and could not be reset yet */
void rfs_reset_free(struct rfs_fs *fs);
/* Pages that so many blocks may take: without page metadata, alone, two each */
static inline u64 rfs_pages_of(const struct rfs_fs *fs, u64 blocks)
{
	return fs->geo.oob_bytes ? blocks : 2 * blocks;
}

/* Blocks that so many pages have room for, however they come */
static inline u64 rfs_blocks_in(const struct rfs_fs *fs, u64 pages)
{
	return fs->geo.oob_bytes ? pages : pages / 2;
}

bool rfs_room_low(const struct rfs_fs *fs, u32 blocks);
int rfs_make_room(struct rfs_fs *fs, u32 blocks, u32 more);
/* -ENOBUFS: a check-point first, or rfs_compact(), where others make room */
int rfs_make_room_to_free(struct rfs_fs *fs);

/* flight.c */
bool rfs_together(const struct rfs_fs *fs);	/* are there several at a time? */
/*
 * A block goes out with the next append; landed() is called when it is there, by
 * this or one of the next two. data is left alone until then.
 */
int rfs_fly(struct rfs_fs *fs, u32 stream, const void *data,
	    const struct rfs_oob *oob, rfs_landed landed, void *what,
	    const void *how);
int rfs_land(struct rfs_fs *fs);	/* until all of these have */
/* And the summaries that have become due, also after an error */
int rfs_land_sums(struct rfs_fs *fs);

/* dirty.c */
/*
 * All that is above a dirty block is dirty, too, as it will be by the check-point:
 * fs->dirty.count is what that writes, but for tables and summaries.
 */
void rfs_make_above_dirty(struct rfs_fs *fs);
static inline void rfs_dirty_above(struct rfs_fs *fs)
{
	if (fs->dirty.seen != fs->dirty.last)
		rfs_make_above_dirty(fs);
}

/* Dirty metadata blocks at which operations wait for a check-point */
u32 rfs_dirty_most(const struct rfs_fs *fs);
/* Is that reached? With all the reserve free it is no less than dirty_max. */
static inline bool rfs_dirty_full(const struct rfs_fs *fs)
{
	return (fs->dirty.count >= fs->dirty_max ||
		fs->free_zones < fs->low_zones) &&
	       fs->dirty.count >= rfs_dirty_most(fs);
}

/* Another check-point of dirty_max may not find room with a zone left. */
bool rfs_room_tight(const struct rfs_fs *fs);
/* So much is dirty, long before others wait, that a check-point is to come. */
bool rfs_dirty_due(const struct rfs_fs *fs);
bool rfs_checkpoint_due(const struct rfs_fs *fs);
/*
 * Blocks that may become dirty beside what is, and so many copies, so that this many
 * zones are still free after the check-point
 */
u64 rfs_room_beside(const struct rfs_fs *fs, u64 copies, u32 zones);
/* Blocks a page of a file makes dirty as it lands: leaf, inode, a map of each */
#define RFS_ABOVE	4

/*
 * Pages of files that may be on their way while nobody looks at what is dirty: each
 * may be the only block of nodes of its own.
 */
u32 rfs_pages_at_once(const struct rfs_fs *fs);

/* cache.c */
/* Of a node any type finds it, by its number; off of others is as in the head */
struct rfs_buf *rfs_buf_find(struct rfs_fs *fs, u8 type, u64 off);
int rfs_buf_read(struct rfs_fs *fs, u8 type, u64 off, u64 addr,
		 struct rfs_buf **out);
/* off: as in the head */
int rfs_buf_new(struct rfs_fs *fs, u8 type, u32 ino, u32 gen, u64 off,
		struct rfs_buf **out);
void rfs_buf_dirty(struct rfs_fs *fs, struct rfs_buf *buf);
void rfs_buf_drop(struct rfs_fs *fs, struct rfs_buf *buf);
/* A dirty block is at addr now: it is clean, unless it was changed since. */
void rfs_buf_written(struct rfs_fs *fs, struct rfs_buf *buf, u64 addr);
void rfs_cache_trim(struct rfs_fs *fs, u32 keep);

/* inode.c */
int rfs_iget(struct rfs_fs *fs, u32 ino, struct rfs_dinode **out,
	     struct rfs_buf **buf);
int rfs_ialloc(struct rfs_fs *fs, u32 *ino);
int rfs_iset(struct rfs_fs *fs, u32 ino, struct rfs_dinode **out,
	     struct rfs_buf **buf);
int rfs_ifree(struct rfs_fs *fs, u32 ino);
int rfs_imap_get(struct rfs_fs *fs, u32 block, bool create,
		 struct rfs_buf **out);

/* nodemap.c */
static inline bool rfs_is_node(u8 type)
{
	return type == RFS_DIR || type == RFS_INDEX || type == RFS_XATTR ||
	       type == RFS_QUOTA;
}

/* What a node says that it is */
struct rfs_node_id {
	u8 type;
	u8 level;		/* is compared if it is an index node */
	u32 ino, gen;
	u32 place;		/* see RFS_NODE_KEY() */
};

/* The TIMB word of a block of the node map */
static inline u64 *rfs_nmap_word(struct rfs_fs *fs, u32 block)
{
	return &fs->timb[fs->imap_blocks + block];
}

/* A word of it has changed; at: of all */
static inline void rfs_timb_dirty(struct rfs_fs *fs, u32 at)
{
	fs->timb_dirty[at / RFS_MAP_ENTRIES] = true;
}

int rfs_nmap_get(struct rfs_fs *fs, u32 block, bool create,
		 struct rfs_buf **out);
/* Where a node is; *addr is 0 if it was never written, *used: it has a number */
int rfs_node_where(struct rfs_fs *fs, u32 number, u64 *addr, bool *used);
/* A new one, dirty; *number is 0 after an error */
int rfs_node_new(struct rfs_fs *fs, const struct rfs_node_id *id, u32 *number,
		 struct rfs_buf **out);
/* -EUCLEAN: the number is not in use, or it is another node's */
int rfs_node_get(struct rfs_fs *fs, const struct rfs_node_id *id, u32 number,
		 struct rfs_buf **out);
int rfs_node_free(struct rfs_fs *fs, u32 number);
/* For cp.c: the block of the map with its word; it was written to addr */
int rfs_node_map(struct rfs_fs *fs, u32 number, struct rfs_buf **map);
int rfs_node_moved(struct rfs_fs *fs, u32 number, u64 addr);
/* For repair.c, rescan.c, which count what is live: it is there; it is not */
void rfs_node_led(struct rfs_fs *fs, u32 number, bool led);
int rfs_node_adopt(struct rfs_fs *fs, u32 number, u64 addr);
int rfs_node_forget(struct rfs_fs *fs, u32 number);

/* index.c */
/* How many pointers or numbers an inode has, by its kind and height */
u32 rfs_tops(const struct rfs_dinode *di);
bool rfs_ptr_ok(const struct rfs_ptr *ptr);	/* is it of a kind that is known? */
/* A block of what is no file; *out is NULL if there is none */
int rfs_block_get(struct rfs_fs *fs, u32 ino, u8 type, u32 block,
		  struct rfs_buf **out);
int rfs_block_new(struct rfs_fs *fs, u32 ino, u8 type, u8 level, u32 block,
		  struct rfs_buf **out);
int rfs_map_get(struct rfs_fs *fs, u32 ino, u64 block, struct rfs_ptr *out);
int rfs_map_set(struct rfs_fs *fs, u32 ino, u64 block,
		const struct rfs_ptr *ptr);
/*
 * The first block in from..to - 1 that is data, or a hole; `to` if none is.
 * -EAGAIN: go on at *out, so that others get their turn.
 */
int rfs_map_seek(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool for_data,
		 u64 *out);
/* Blocks from..to - 1 are gone; keep: reserved from then on */
int rfs_map_prune(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep);
/* Holes among from..to - 1 are reserved */
int rfs_map_reserve(struct rfs_fs *fs, u32 ino, u64 from, u64 to);

struct rfs_extent {
	u64 block, addr;	/* the first; addr is 0 if they are reserved */
	u64 n;			/* blocks; 0: there is none */
};

#define RFS_EXTENT_MAX	65536	/* blocks */

/* Nodes that are to be made for from..to - 1 */
int rfs_map_needs(struct rfs_fs *fs, u32 ino, u64 from, u64 to, u64 *nodes);
/*
 * The first run of blocks that are in a row, or reserved, in *from..to - 1.
 * -EAGAIN: none so far, go on at *from, so that others get their turn.
 */
int rfs_map_extent(struct rfs_fs *fs, u32 ino, u64 *from, u64 to,
		   struct rfs_extent *out);
/* A file's pointer to a block; NULL: there is none, and no create */
int rfs_map_slot(struct rfs_fs *fs, u32 ino, u64 block, bool create,
		 struct rfs_ptr **slot, struct rfs_buf **buf);

/* dir.c */
struct rfs_entry {
	u64 pos;		/* of the next entry */
	u32 ino;
	u8 type;
	u8 len;
	u8 name[RFS_NAME_MAX];
};

int rfs_dir_find(struct rfs_fs *fs, u32 dir, const void *name, u32 len,
		 u32 *ino);
int rfs_dir_add(struct rfs_fs *fs, u32 dir, const void *name, u32 len, u32 ino,
		u8 type);
int rfs_dir_remove(struct rfs_fs *fs, u32 dir, const void *name, u32 len);
int rfs_dir_set(struct rfs_fs *fs, u32 dir, const void *name, u32 len, u32 ino,
		u8 type);
/* The entry at a place of a leaf, which moves on; -ENOENT at its end */
int rfs_dir_entry(struct rfs_fs *fs, u32 dir, u32 block, u32 *at,
		  struct rfs_entry *out);
/* First entry at or after pos, in the order of hashes; -ENOENT at the end */
int rfs_dir_next(struct rfs_fs *fs, u32 dir, u64 pos, struct rfs_entry *out);

/* log.c */
/* Memory for one more record, before it is applied */
int rfs_log_room(struct rfs_fs *fs);
int rfs_log_add(struct rfs_fs *fs, const struct rfs_rec *rec, const void *name1,
		const void *name2);
int rfs_log_sync(struct rfs_fs *fs);	/* what was added is durable */
/* Nothing is pending any more: it is on the medium, or a check-point has it */
void rfs_log_durable(struct rfs_fs *fs);
bool rfs_log_empty(const struct rfs_fs *fs);	/* all was written */
bool rfs_log_pending(struct rfs_fs *fs, u32 ino, bool before_data);

/* names.c: changes of names and inodes */
int rfs_apply(struct rfs_fs *fs, const struct rfs_rec *rec, const u8 *name1,
	      const u8 *name2);
struct rfs_new {
	u32 mode, uid, gid, rdev;
	u32 flags;		/* FS_*_FL */
	const char *target;	/* of a symlink */
	const void *xattrs;	/* of others, as rfs_xattr_pack() makes them */
	u32 xattr_bytes;
};

/* Without a name (NULL) until rfs_link(), a file is an orphan */
int rfs_create(struct rfs_fs *fs, u32 dir, const char *name,
	       const struct rfs_new *how, u32 *ino);
int rfs_link(struct rfs_fs *fs, u32 dir, const char *name, u32 ino);
/* The record of a change, to be filled in; takes a version */
void rfs_rec_init(struct rfs_fs *fs, struct rfs_rec *rec, u8 op, u32 ino);
/*
 * Apply it and log it with what follows it (NULL: nothing); its generation and
 * lengths are filled in. -ENOSPC: nothing was changed; after another error the
 * volume only reads.
 */
int rfs_commit(struct rfs_fs *fs, struct rfs_rec *rec, const void *first,
	       u32 len1, const void *second, u32 len2);
/* A file or empty directory; its inode stays until rfs_free_orphan() */
int rfs_unlink(struct rfs_fs *fs, u32 dir, const char *name, u32 *ino);
/* how: owner of the whiteout that takes the name's place, else NULL */
int rfs_rename(struct rfs_fs *fs, u32 dir1, const char *name1, u32 dir2,
	       const char *name2, u32 flags, const struct rfs_new *how);
/*
 * grows: it was smaller, also with what is not written yet. Else what is
 * reserved behind the new end is given back.
 */
int rfs_truncate(struct rfs_fs *fs, u32 ino, u64 size, bool grows);
#define RFS_RANGE_MAX	(16 * RFS_FANOUT)	/* blocks of one record */
/* keep: all of them are reserved, and stay so; RFS_RANGE_MAX at most */
int rfs_punch(struct rfs_fs *fs, u32 ino, u64 from, u64 to, bool keep);
/*
 * Set room aside for the holes among the first blocks of *from..to - 1; *from is
 * then where to go on. -ENOSPC: there is too little, for all or for the next.
 */
int rfs_reserve(struct rfs_fs *fs, u32 ino, u64 *from, u64 to);
/*
 * Blocks that files can still have: what is free without the index nodes that so
 * many of them need. rfs_reserve() of as many succeeds, unless zones have to be
 * cleaned before and cannot be.
 */
u64 rfs_available(const struct rfs_fs *fs);
/* Would rfs_setattr() be refused now? What it refuses with, else 0. */
int rfs_may_give(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		 u64 held);
/*
 * A record of atime, mtime and ctime alone: pages that are on their way have no
 * say in these any more
 */
int rfs_log_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times);
/* The same without a record: the next check-point has them */
int rfs_set_times(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *times);
/*
 * mode, uid, gid, flags, atime and mtime of attr; held: holes that pages of the
 * inode are promised
 */
int rfs_setattr(struct rfs_fs *fs, u32 ino, const struct rfs_dinode *attr,
		u64 held);
int rfs_free_orphan(struct rfs_fs *fs, u32 ino);
int rfs_free_orphans(struct rfs_fs *fs);
/* An inode, whatever it says of its names, with its blocks; not logged */
int rfs_forget(struct rfs_fs *fs, u32 ino);
/* target has 4096 bytes; without a terminator, *len says how many */
int rfs_readlink(struct rfs_fs *fs, u32 ino, u8 *target, u32 *len);

/* xattr.c: extended attributes, all of an inode in one block */
#define RFS_XATTR_CREATE	0x1	/* -EEXIST if it is there */
#define RFS_XATTR_REPLACE	0x2	/* -ENODATA if it is not */

/*
 * The bytes of a value, -ENODATA, or -ERANGE if it is longer than room. Without
 * room (0) nothing but its length.
 */
int rfs_xattr_get(struct rfs_fs *fs, u32 ino, const char *name, void *value,
		  u32 room);
/*
 * Set, or remove if value is NULL. mode: permissions that change along with it,
 * 0 if none do. -ENOSPC if the inode's attributes would not fit into a block.
 */
int rfs_xattr_set(struct rfs_fs *fs, u32 ino, const char *name,
		  const void *value, u32 len, u32 flags, u32 mode);
/* The one at *at, which then is where the next is; NULL at the end. */
int rfs_xattr_next(struct rfs_fs *fs, u32 ino, u32 *at,
		   const struct rfs_xattr **out);
/* Add one to an image of RFS_BODY_BYTES; -ENOSPC if it does not fit */
int rfs_xattr_pack(__le32 *image, u32 *used, const char *name, const void *value,
		   u32 len);
/* For names.c: what a record says, all of a new inode, none any more */
int rfs_xattr_apply(struct rfs_fs *fs, const struct rfs_rec *rec,
		    const u8 *name, const u8 *value);
int rfs_xattr_fill(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf, const u8 *image, u32 bytes);
int rfs_xattr_drop(struct rfs_fs *fs, struct rfs_dinode *di,
		   struct rfs_buf *ibuf);

/* quota.c */
/*
 * Usage is counted from now on; it is counted anew unless it was kept all the
 * time. -ENOSPC: there is no room for them.
 */
int rfs_quota_on(struct rfs_fs *fs);
void rfs_quota_off(struct rfs_fs *fs);	/* it is not, and not enforced */
void rfs_quota_recovered(struct rfs_fs *fs);	/* all of the window is applied */
int rfs_quota_room(struct rfs_fs *fs);	/* for quotacheck.c */
/* What there is of a user or group; *held: blocks promised besides */
int rfs_quota_get(struct rfs_fs *fs, u32 type, u32 id, struct rfs_quota *out,
		  u64 *held);
/* Limits and ends of grace, by a record; usage stays what it is */
int rfs_quota_set(struct rfs_fs *fs, u32 type, u32 id,
		  const struct rfs_quota *limits);
/* The first id, from *id on, of which there is something; -ENOENT if none */
int rfs_quota_next(struct rfs_fs *fs, u32 type, u32 *id);
/* How long a soft limit may be exceeded, in s */
int rfs_quota_grace(struct rfs_fs *fs, u32 type, u64 *space, u64 *inodes);
/* The first block of quotas from *off on; -ENOENT if there is none */
int rfs_quota_block(struct rfs_fs *fs, u64 *off, struct rfs_buf **out);
int rfs_quota_entry(struct rfs_fs *fs, u32 type, u32 id, bool create,
		    struct rfs_quota **out, struct rfs_buf **buf);
/*
 * May the owners have so many blocks and inodes more? -EDQUOT if not. Types: a
 * bit for each that is asked about; id has all.
 */
#define RFS_QUOTA_BOTH	(1U << RFS_QUOTA_USER | 1U << RFS_QUOTA_GROUP)
int rfs_quota_may(struct rfs_fs *fs, u32 types, const u32 *id, u64 blocks,
		  u64 inodes);
/* The same, of the owners of an inode, and blocks */
int rfs_quota_may_grow(struct rfs_fs *fs, u32 ino, u64 blocks);
/* For names.c: what a record says */
int rfs_quota_apply(struct rfs_fs *fs, const struct rfs_rec *rec,
		    const u8 *limits);
/* Of a type, its owner has so many blocks and inodes more; only if counting */
int rfs_quota_charge(struct rfs_fs *fs, u32 type, u32 id, s64 blocks,
		     s64 inodes);
/* Both owners of an inode */
int rfs_quota_add(struct rfs_fs *fs, const struct rfs_dinode *di, s64 blocks,
		  s64 inodes);
/* Blocks that were promised to an inode's pages, or no longer */
int rfs_quota_hold(struct rfs_fs *fs, const struct rfs_dinode *di, s64 blocks);
int rfs_quota_hold_one(struct rfs_fs *fs, u32 type, u32 id, s64 blocks);
void rfs_quota_forget(struct rfs_fs *fs);	/* what is held */
u32 rfs_owner(const struct rfs_dinode *di, u32 type);

/* An inode has so many blocks more: so have its owners */
static inline int rfs_blocks_add(struct rfs_fs *fs, struct rfs_dinode *di,
				 s64 delta)
{
	di->blocks = cpu_to_le64(le64_to_cpu(di->blocks) + delta);
	return fs->counting ? fs->up->charge(fs, di, delta, 0) : 0;
}

/* quotacheck.c */
/*
 * Usage against all inodes. differs: is told of each that is not right, may be
 * NULL. -ENOSPC: there is no room for more entries.
 */
enum rfs_quota_fix {
	RFS_QUOTA_LOOK,		/* nothing is changed */
	RFS_QUOTA_REPAIR,	/* it is right then, in memory */
	RFS_QUOTA_COUNT,	/* the same, with cleaning and check-points */
};

typedef void rfs_differs(void *arg, u32 type, u32 id, const struct rfs_quota *is,
			 u64 blocks, u64 inodes);
int rfs_quota_compare(struct rfs_fs *fs, enum rfs_quota_fix fix,
		      rfs_differs *differs, void *arg);

/* data.c */
void rfs_ptr_of(const struct rfs_fs *fs, const struct rfs_oob *oob, u64 addr,
		u64 time, struct rfs_ptr *ptr);
/*
 * A block of a file will be written: there will be room for it. *hole says what
 * rfs_unpromise() wants to know, after rfs_done() or instead of it.
 */
int rfs_promise(struct rfs_fs *fs, u32 ino, u64 block, bool *hole);
void rfs_unpromise(struct rfs_fs *fs, u32 ino, u32 blocks, u32 holes);
#define RFS_TXN_MAX	256	/* blocks */

/* Blocks of a file that are seen after a crash together or not at all */
struct rfs_txn {
	u64 block;
	u64 version;		/* of the first */
	u64 time;
	u32 ino, gen;
	u32 n;
	u32 len;		/* valid bytes of the last */
};

/* Of n blocks that were promised; time: the file's mtime */
int rfs_begin(struct rfs_fs *fs, u32 ino, u64 block, u32 n, u32 len, u64 time,
	      struct rfs_txn *txn);
/*
 * The page metadata of *n of its blocks, but for checksums. Those after *n then
 * belong into another stream.
 */
int rfs_fill(struct rfs_fs *fs, const struct rfs_txn *txn, u32 from, u32 *n,
	     struct rfs_oob *oob, u32 *stream);
/* n blocks of a transaction are where addr says */
int rfs_done(struct rfs_fs *fs, const struct rfs_oob *oob, u32 n,
	     const u64 *addr);
/* mtime and ctime of a file that has this page, unless it has newer ones */
void rfs_date(struct rfs_dinode *di, const struct rfs_oob *oob);
/* n whole blocks as one transaction; len: valid bytes of the last */
int rfs_write(struct rfs_fs *fs, u32 ino, u64 block, u32 n,
	      const void *const *data, u32 len);
/* A block as a reader sees it; a hole reads as zeroes */
int rfs_read(struct rfs_fs *fs, u32 ino, u64 block, void *data);
int rfs_fsync(struct rfs_fs *fs, u32 ino);

/* cp.c */
int rfs_checkpoint(struct rfs_fs *fs, u32 flags);
int rfs_cp_load(struct rfs_fs *fs);

/* recover.c */
int rfs_recover(struct rfs_fs *fs);
u8 rfs_stream_of(u8 type);

/* clean.c */
enum rfs_clean {
	RFS_CLEAN_IDLE,		/* what costs little, while nobody is at work */
	RFS_CLEAN_EARLY,	/* what is worth it, before anybody waits */
	RFS_CLEAN_NOW,		/* what the policy says */
	RFS_CLEAN_HARD,		/* that was in vain: what gives most room */
};

/* Blocks of one group that cleaning moves together */
struct rfs_copy {
	u32 nr;			/* below RFS_COPIES, of those in use */
	u32 n;
	u32 stream;
	bool sent;		/* by @copy_send */
	struct rfs_oob oob[RFS_SUM_ENTRIES];
	u64 from[RFS_SUM_ENTRIES];
	bool cached[RFS_SUM_ENTRIES];
	bool there[RFS_SUM_ENTRIES];	/* its content is in memory */
	void *block[RFS_SUM_ENTRIES];
	void *memory;		/* of them, from the start of a page on */
};

#define RFS_COPIES	16

/* Those that nobody has changed are to be appended, with these stamps */
int rfs_copy_begin(struct rfs_fs *fs, struct rfs_copy *copy);
/* n of its blocks are where addr says */
int rfs_copy_done(struct rfs_fs *fs, const struct rfs_copy *copy, u32 first,
		  u32 n, const u64 *addr);

/* Up to RFS_VICTIMS victims; -ENOENT if there is none */
int rfs_clean(struct rfs_fs *fs, enum rfs_clean how);
#ifdef __KERNEL__
void rfs_saw_victim(const struct rfs_fs *fs, u32 zone);	/* a trace event */
#else
static inline void rfs_saw_victim(const struct rfs_fs *fs, u32 zone)
{
	(void)fs;
	(void)zone;
}
#endif
/*
 * Room is short, and a zone of metadata or maps has blocks that are dead, in all
 * as many as a check-point's tables and more. Then rfs_compact() gets them back:
 * nothing of files is copied for it. checkpoint() is rfs_checkpoint(), or what the
 * caller has for it.
 */
bool rfs_compact_due(const struct rfs_fs *fs);
int rfs_compact(struct rfs_fs *fs,
		int (*checkpoint)(struct rfs_fs *fs, u32 flags));
/*
 * Few zones are free, and fewer than when it was last asked: *seen is the
 * caller's, ~0 at first.
 */
bool rfs_clean_due(const struct rfs_fs *fs, u32 *seen);
/* There is something to be cleaned while nobody is at work. */
bool rfs_idle_due(const struct rfs_fs *fs);
/*
 * Clean as much as makes the check-point worth it that is to come after it: it
 * costs what is dirty, however many zones it makes free. 0: it is to come;
 * -ENOENT: early, there is too little that it would make free.
 */
int rfs_clean_some(struct rfs_fs *fs, enum rfs_clean how);

/* group.c; times in ticks of 1/256 s */
extern const struct rfs_policy rfs_policy_default;
u64 rfs_ticks(const struct rfs_fs *fs, u64 time);
u64 rfs_now(const struct rfs_fs *fs);
u64 rfs_clock(const struct rfs_fs *fs);	/* ns since 1970, or ahead of that */
u64 rfs_ptr_ticks(const struct rfs_ptr *ptr);
u32 rfs_data_stream(const struct rfs_fs *fs, const struct rfs_dinode *di,
		    const struct rfs_ptr *ptr, u64 now);
void rfs_segment(const struct rfs_fs *fs, u32 nr, u64 now,
		 struct rfs_segment *out);
void rfs_regroup(struct rfs_fs *fs);

/* mount.c */
int rfs_mount(const struct rfs_dev_ops *ops, void *dev,
	      const struct rfs_geometry *geo, bool read_only, u32 teeth,
	      struct rfs_fs **out);
int rfs_tables_alloc(struct rfs_fs *fs);	/* and the state of all zones */
void rfs_resume_zones(struct rfs_fs *fs);
int rfs_unmount(struct rfs_fs *fs);	/* with a check-point */
void rfs_drop(struct rfs_fs *fs);	/* without */

/* check.c */
struct rfs_report {
	void (*say)(void *arg, const char *text);
	void *arg;
	u64 faults;
	u64 losses;		/* rfs_repair(): of them, what took something away */
	u64 files, dirs, blocks;
	bool read_data;		/* and verify checksums */
};

int rfs_check(struct rfs_fs *fs, struct rfs_report *report);

/* repair.c: makes it consistent; report says how. In memory only */
int rfs_repair(struct rfs_fs *fs, struct rfs_report *report);

/*
 * rescan.c: mounts a volume whose check-points cannot be used, with a new one.
 * -EINVAL: nothing of a volume is there.
 */
struct rfs_rescue {
	u64 pages;		/* of the volume */
	u64 bad_meta;		/* of them metadata that cannot be used */
	u64 forgotten;		/* inodes that were deleted */
	u64 doubtful;		/* inodes without a name, perhaps deleted */
	bool super_lost;	/* the superblock is a new one */
	bool older;		/* the last check-point was not whole */
	bool damaged;		/* things lack: the report says which */
};

int rfs_rescan(const struct rfs_dev_ops *ops, void *dev,
	       const struct rfs_geometry *geo, struct rfs_report *report,
	       struct rfs_rescue *out, struct rfs_fs **fs);

/* What was counted of inodes: memory for each 8064 of which one is asked for */
struct rfs_tally {
	u32 links;		/* names */
	u32 subdirs;
	bool inner;		/* named in a directory that is lost */
};

struct rfs_tallies {
	struct rfs_tally **part;
	u32 parts;
};

int rfs_tallies_init(const struct rfs_fs *fs, struct rfs_tallies *t);
void rfs_tallies_exit(struct rfs_tallies *t);
/* Of an inode that may exist; NULL if there is no memory */
struct rfs_tally *rfs_tally(struct rfs_tallies *t, u32 ino);

#endif
