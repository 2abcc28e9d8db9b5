/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A struct rfs_fs is a volume that is mounted: the files of the core share it. It serves one caller
 * at a time, for which the caller is responsible. Functions return 0 or a negative errno: -EUCLEAN
 * if the medium contradicts itself, -EIO if it fails.
 */
#ifndef RFS_VOLUME_H
#define RFS_VOLUME_H

#include "format/format.h"
#include "policy/policy.h"
#include "volume/bits.h"
#include "volume/device.h"

struct rfs_ioq;
struct rfs_early;
struct rfs_log_sent;
struct rfs_buf;
struct rfs_quota_rsv;
struct rfs_pending;

/* A table of inodes whose records are not durable, hashed by their numbers; see log/log.h. */
struct rfs_pendings {
	struct rfs_pending *place;
	u32 n;			/* places in use */
	u32 room;		/* all of them, a power of 2 */
};

struct rfs_sum;
struct rfs_tomb;
struct rfs_logged;
struct rfs_rank;
struct rfs_home;
struct rfs_fs;

/* This is the state of a zone in memory. The zone table has a part of it. */
struct rfs_zone_info {
	u64 sum_time;
	u64 sum_wcount;
	u32 cap;
	u32 wp;
	u32 cp_wp;		/* of the check-point that was loaded */
	u32 live;		/* blocks, those of maps included */
	u32 maps;		/* of them maps, TIMB and zone table */
	u32 summary;
	u32 inflight;		/* blocks below wp that may not be there yet */
	u32 sums_due;		/* of them, full summaries that are not sent */
	u32 *sum_at;		/* where its summaries are; may be NULL */
	u32 sums_known;		/* of them, since it was opened in this mount */
	u64 last;		/* ticks: data: youngest block; else when opened */
	u8 state;
	u8 stream;
	u8 cond;
	bool window;		/* holds pages since the check-point */
	bool frozen;		/* or since the one before, this is not durable yet */
	bool dies;		/* nothing in it is in use in what that says */
	bool numbered;		/* holds nodes or inodes of the next check-point */
	bool kept;		/* or of the last one that has any: not to be reset soon */
	bool resetting;		/* now, while others go on */
	bool cleaning;		/* now */
	bool cleaned;		/* since the check-point */
	bool left;		/* but for blocks that were to be written anew */
	u8 in;			/* a bit for each rfs_zone_set that it is in */
	u8 noted;		/* RFS_NOTED_: it has changed, which is known where */
};

#define RFS_NOTED_RANK		0x1	/* victims are to be ranked anew */
#define RFS_NOTED_TABLE		0x2	/* its block of the zone table is due */
#define RFS_NOTED		(RFS_NOTED_RANK | RFS_NOTED_TABLE)

/*
 * sets.c keeps these sets of zones, so that nobody has to look at each zone. Zones of check-points
 * are in none of them but SINCE.
 */
enum rfs_zone_set {
	RFS_SET_FREE,
	RFS_SET_GAINED,		/* the next check-point makes it free */
	RFS_SET_DEAD,		/* closed, and nothing in use or being cleaned */
	RFS_SET_SINCE,		/* of the window, cleaned, or kept, since the check-point */
	RFS_SET_RESET,		/* free, to be reset */
	RFS_SET_ACTIVE,		/* partly filled, where the drive limits these */
	RFS_SET_META,		/* of log, metadata or maps */
	RFS_SET_CLEANING,
	RFS_SETS
};

/* A stream fills the zone of its active segment. sum has the blocks that no summary lists yet. */
struct rfs_active_seg {
	u32 zone;		/* 0 if none */
	struct rfs_sum *sum;	/* NULL if there are none */
};

/*
 * These are metadata blocks in memory, the oldest first. A cursor that equals the list is at no
 * block.
 */
struct rfs_list {
	struct list_head bufs;
	struct list_head *seen;	/* up to it what is above is dirty, too */
	struct list_head *early;	/* the next that rfs_write_early() looks at */
	u32 count;
};

/*
 * This is the progress of a check-point whose epoch has ended while others are in the next epoch.
 */
enum rfs_commit {
	RFS_COMMIT_NONE,	/* there is none */
	RFS_COMMIT_GOES_ON,	/* it is not durable yet */
	RFS_COMMIT_FAILED,	/* nor will it be: the volume only reads */
};

/*
 * This block was read for an operation that has to come again (rfs_fs.nowait). Its zone is not
 * reset meanwhile.
 */
struct rfs_fetched {
	u64 addr;
	const void *data;
	int error;
};

#define RFS_LOG_BLOCKS	RFS_SUM_ENTRIES	/* in memory: an append, if it has to be */

enum rfs_quota_type {
	RFS_QUOTA_USER,
	RFS_QUOTA_GROUP,
	RFS_QUOTA_TYPES
};

#define RFS_QUOTA_RSV_HASH	64

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
	u64 folded;		/* leaves that became runs, and were not written */
	u64 waited_reads;	/* of metadata, which others had to wait for */
	u64 clean_left;		/* blocks that were to be written anew, and not copied */
	u64 clean_cached;	/* blocks that need not be read */
	u64 pieces;		/* that were logged */
	u64 piece_bytes;
	u64 merged;		/* pages that have taken the place of pieces */
	/* The counters from here on are of hybrid volumes, in blocks. */
	u64 homed;		/* that were written home */
	u64 evicted;		/* that have left flash, and are at home */
	u64 filled;		/* that came to flash from there */
	u64 bypassed;		/* that were written home, and not to flash */
	u64 flash_reads;	/* of files, that flash had */
	u64 slow_reads;		/* and that only the slow device had */
	u64 slow_errors;	/* reads and writes of it that failed */
	u64 replicas;		/* of the metadata that were made there */
	u64 replicated;		/* blocks that were written for them */
	u64 replicas_dropped;	/* for want of room */
	u64 replicas_failed;	/* given up after an error, or for want of memory */
};

/* Mount options say how data is grouped and cleaned. */
struct rfs_policy {
	u32 groups;		/* 1 to RFS_GROUPS_MAX */
	enum rfs_gc gc;
	enum rfs_quantize quantize;
};

/**
 * struct rfs_upcalls - functions of higher files that lower files call
 * @charge: adds so many blocks and inodes to the owners of an inode, or takes them away. Making a
 *	node or freeing an inode changes the quotas, which are themselves in nodes of inode 1
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
	u64 user_blocks;	/* that can be reserved; see rfs_zone_lost() */
	u32 low_zones;		/* fewer free ones: clean first; see sizes.c */
	/* These are the same with the present blocks of maps, and with rfs_maps_next() more. */
	u32 low_now, low_next;
	/*
	 * These are the blocks that a round of compaction has to gain, with the same numbers of
	 * maps' blocks.
	 */
	u64 gain_now, gain_next;
	u64 room_kept;		/* blocks, see rfs_room_kept(): as many maps keep them */
	u32 holds;		/* blocks in use that a zone has room for */
	u32 sums_each;		/* summaries of 63 blocks; 0: see sizes.c */
	u32 dirty_max;
	bool few;		/* zones: see struct rfs_layout */
	u32 window_max;		/* blocks */

	u64 behind;		/* ns that the clock of the machine is */
	u64 version;		/* next */
	u64 cp_version;		/* of the check-point: the window's first */
	u64 cp_seq;
	u32 cp_nth;		/* metadata blocks written since the last one */
	u32 cp_mirror[RFS_CP_MIRRORS];
	u64 window_blocks;

	struct rfs_home *home;	/* the slow device; NULL: the volume has none */
	u32 states_sum;		/* that the check-point says, see struct rfs_head */
	struct rfs_zone_info *zone;
	/*
	 * Each stream has a zone on each way, see stripe.c. A stream that is not striped has the
	 * first.
	 */
	struct rfs_active_seg active[RFS_STREAMS][RFS_WAYS_MAX];
	u8 active_of[RFS_STREAMS];	/* few open zones: streams share */
	u32 ways;		/* zones that groups and metadata are striped over */
	u32 way_next[RFS_STREAMS];	/* of equal ways, the one that is looked at first */
	u32 way_inflight[RFS_WAYS_MAX];	/* blocks, as in struct rfs_zone_info */
	u32 meta_active, data_active;	/* how many may have a zone */
	struct rfs_policy policy;
	u64 group_hot[RFS_GROUPS_MAX];	/* coldest first */
	u64 *hot;		/* room for that of RFS_HOT_ZONES */
	struct rfs_bits set[RFS_SETS];	/* of zones, and free ones of each way */
	struct rfs_bits free_of[RFS_WAYS_MAX];
	u32 way_room[RFS_WAYS_MAX];	/* zones that are free or gained */
	struct rfs_rank *rank;
	struct rfs_traffic traffic;	/* of balanced groups, since the mount */
	u32 active_max;		/* zones, but for check-points; 0: any number */
	bool active_few;	/* so few that what is in flight has to be waited for */
	struct list_head sums;	/* that can be written */
	u32 sums_noted;		/* places that rfs_zone_info.sum_at has, of all zones */
	u32 free_zones;
	u32 meta_zones;		/* that are not: of log, metadata, maps */
	u32 zone_cursor;
	bool resets_rest;	/* until a check-point: one could not be done for the moment */
	u64 live;		/* blocks of all zones */
	u64 data_live;

	u32 imap_blocks, nmap_blocks, timb_blocks, ztab_blocks;
	u32 nmap_leaves;	/* the first block of the node map that is of leaves */
	u32 maps;		/* blocks of both maps, see rfs_maps_add() */
	/*
	 * These are the TIMB words of the blocks of the inode map, then of the node map. Each
	 * element points to a block of words, and is NULL if all of them are 0. rfs_timb() reads a
	 * word.
	 */
	u64 **timb;
	u64 *timb_addr;
	u64 *ztab_addr;
	struct rfs_bits listed;	/* blocks of a check-point: not all of them are 0 */
	struct rfs_bits timb_due;	/* blocks of TIMB that the check-point writes */
	struct rfs_bits ztab_due;	/* and of the zone table, if they differ */
	struct rfs_zone *ztab;	/* as last written */
	u32 orphans;
	u32 next_ino;
	u32 next_node;		/* no number below it is free */
	u32 next_leaf;		/* of those of leaves, none below it */
	u8 *referenced;		/* numbers in use; see repair.c */
	u64 inodes;

	/*
	 * An operation that misses metadata gets an error, and its caller reads the block while
	 * nobody holds the volume, see cache.c.
	 */
	bool nowait;		/* not in memory: -EINPROGRESS */
	u64 missed;		/* where that is */
	const struct rfs_fetched *fetched;	/* was read since; or NULL */

	struct rfs_buf **hash;
	u32 hash_size;		/* a power of 2 */
	struct rfs_list dirty, clean;
	struct rfs_buf *found[RFS_TYPES];	/* dirty: of each class, found last; or NULL */
	u32 new_dirty;		/* dirty and never written */
	u32 runs;		/* leaves that are runs in the node map, and not dirty */
	u32 pruned;		/* nodes that were read to be emptied, see shrink.c */
	u32 dirty_before;	/* for rfs_prove(): when one was admitted */
	struct rfs_ioq *ioq;
	struct rfs_early *early;
	u32 early_blocks;	/* written since the check-point, before the next */
	u64 rsv_blocks;		/* data blocks for which a place is reserved */
	u64 rsv_holes;		/* of them, those that fill holes */
	u64 prealloc;		/* holes of files that room is kept for, pieces or not */
	u32 clean_max;
	u32 dirty_more;		/* blocks that may be dirty where there is room */

	/*
	 * Records that are not written yet are in these blocks, which are allocated when they are
	 * needed.
	 */
	struct rfs_head *log[RFS_LOG_BLOCKS];
	u32 log_most;		/* blocks, then they are written */
	u32 log_full;		/* that take nothing more */
	u32 log_used;		/* bytes of the next */
	u64 lsn;		/* of the first */
	u64 first_lsn;		/* after the last check-point that is durable */
	u64 next_first_lsn;	/* after the last one that is frozen */
	struct rfs_log_sent *sent, *synced;	/* blocks in flight, see log.c */
	bool syncing;		/* an fsync waits for the second, and others go on */
	u64 records;		/* that were added so far */
	u64 records_frozen;	/* of them, those whose inodes are in `frozen` */
	u64 records_durable;
	struct rfs_pendings pending;
	/*
	 * This is the same of the epoch before, until its check-point is durable, or of the records
	 * that an fsync writes.
	 */
	struct rfs_pendings frozen;
	u32 unsettled;		/* in use of both; read without a lock */
	enum rfs_commit commit;

	bool cp_begun;		/* the medium may have blocks of one that is not durable */
	bool replaying;
	bool recovering;	/* and the pages of the window */
	bool read_only;
	bool threaded;		/* others make room: -EAGAIN asks them to */
	bool no_space;		/* they cannot: -ENOSPC instead */
	u32 withheld;		/* blocks kept for who needs little */
	u32 meta_asked;		/* of metadata that wait for room */
	u32 ahead;		/* zones that are cleaned for them before they ask */
	bool futile;		/* to compact metadata, until a zone is free */
	bool compact;		/* small writes may be pieces */
	bool loose;		/* of tools/file.c: a transaction may not be durable */
	/* Something changed that only a check-point will have, such as times or blocks at home. */
	bool not_logged;
	struct rfs_logged *logged;	/* pieces that the log has, the newest first */
	struct rfs_tomb *tomb;
	u32 tombs, tomb_room;
	struct rfs_recovered recovered;
	struct rfs_stats stats;
#ifndef __KERNEL__	/* see below */
	u32 inject;		/* fault injection, for tests: rules that are left out */
	bool rescuing;		/* what is damaged is left out */
	bool keyless;		/* and the keys of the volume are not known yet */
#endif

	bool counting;		/* usage of quotas is kept */
	bool miscounted;	/* but it is not right: anew at the next mount */
	u32 enforced;		/* limits; a bit for each rfs_quota_type */
	struct rfs_quota_rsv *quota_rsv[RFS_QUOTA_RSV_HASH];
};

/* Each bit is a fault: a test leaves a rule out to see that it notices. */
#define RFS_INJECT_TXN		0x1	/* keep incomplete transactions */
#define RFS_INJECT_RESET		0x2	/* reset without a check-point */
#define RFS_INJECT_TOMB		0x4	/* truncates leave no tombstone */
#define RFS_INJECT_PIECE	0x8	/* pieces count as older than any page */
#define RFS_INJECT_SCAN		0x10	/* one zone of each group is read */
#define RFS_INJECT_HOME		0x20	/* blocks of the slow device are free at once */
#define RFS_INJECT_SLOW		0x40	/* a check-point does not flush it */
#define RFS_INJECT_STATES	0x80	/* the table of states is written in place */
#define RFS_INJECT_PARTS	0x100	/* pieces count without their transaction */
#define RFS_INJECT_REPLICA	0x200	/* its head is not flushed after what it leads to */
#define RFS_INJECT_KEPT		0x400	/* blocks that it leads to are free */
/* These apply while others are in the epoch after a check-point that is not durable. */
#define RFS_INJECT_DIED		0x800	/* what dies then is free with the rest */
#define RFS_INJECT_GAP		0x1000	/* the log goes on as if it had all records */
#define RFS_INJECT_WAIT		0x2000	/* and its blocks are believed at once */

/*
 * The module does not have the parts that only tools and tests use: there these are constants, and
 * the fields that they look at do not exist.
 */
#ifdef __KERNEL__
static inline void rfs_inject(struct rfs_fs *fs, u32 rules) { }

static inline bool rfs_injects(const struct rfs_fs *fs, u32 rule)
{
	return false;
}

static inline bool rfs_rescues(const struct rfs_fs *fs)
{
	return false;
}

static inline bool rfs_is_keyless(const struct rfs_fs *fs)
{
	return false;
}
#else
static inline void rfs_inject(struct rfs_fs *fs, u32 rules)
{
	fs->inject = rules;
}

static inline bool rfs_injects(const struct rfs_fs *fs, u32 rule)
{
	return fs->inject & rule;
}

static inline bool rfs_rescues(const struct rfs_fs *fs)
{
	return fs->rescuing;
}

static inline bool rfs_is_keyless(const struct rfs_fs *fs)
{
	return fs->keyless;
}
#endif

/* Returns how many zones may be active, without those of check-points; ~0 is any number. */
u32 rfs_active_max(const struct rfs_geometry *geo);

/*
 * A drive that allows fewer active zones than this is one with few zones. It is twice the number of
 * streams' zones, if they are striped over so many ways, and the zones that blocks in flight may
 * fill.
 */
u32 rfs_active_many(u32 ways, u32 cap);

/* Returns over how many of these ways streams can be striped on this drive. */
u32 rfs_ways_allowed(const struct rfs_geometry *geo, u32 cap, u32 ways);

/* Returns a volume of which nothing is known yet, or NULL if there is no memory. */
struct rfs_fs *rfs_volume_new(const struct rfs_dev_ops *ops, void *dev,
			      const struct rfs_geometry *geo);

void rfs_head_init(struct rfs_fs *fs, struct rfs_head *head, u8 type, u32 ino,
		   u32 gen, u64 off);
void rfs_head_number(struct rfs_fs *fs, struct rfs_head *head, bool early);
u64 rfs_name_hash(const struct rfs_fs *fs, const void *name, u32 len);

/* Volumes without page metadata need these. The caller has filled in the rest of the header. */
void rfs_summary_seal(const struct rfs_fs *fs, struct rfs_summary *sum,
		      u64 stamp);
bool rfs_summary_ok(const struct rfs_fs *fs, const struct rfs_summary *sum,
		    u64 addr);
u64 rfs_next_version(struct rfs_fs *fs, u32 count);

/* The page metadata of an append now says whether the check-point before it is durable. */
static inline u8 rfs_oob_next(const struct rfs_fs *fs)
{
	return fs->commit || fs->cp_begun ? RFS_OOB_NEXT : 0;
}

/*
 * An operation may add a block at the end of each map. The node map may get a block of leaves, too.
 */
static inline u32 rfs_maps_next(const struct rfs_fs *fs)
{
	return fs->nmap_leaves < fs->nmap_blocks ? 3 : 2;
}

/* Returns the TIMB word of a block of a map, by its number among the blocks of both maps. */
static inline u64 rfs_timb(const struct rfs_fs *fs, u32 at)
{
	const u64 *words = fs->timb[at / RFS_MAP_ENTRIES];

	return words ? words[at % RFS_MAP_ENTRIES] : 0;
}

int rfs_timb_make(struct rfs_fs *fs, u32 at);	/* so that it can be set */
/* Sets the word. The next check-point writes its block of TIMB. */
void rfs_timb_set(struct rfs_fs *fs, u32 at, u64 word);

/*
 * Adds so many blocks to the number of maps' blocks. The sizes that follow from it are computed
 * anew.
 */
void rfs_maps_add(struct rfs_fs *fs, u32 blocks);

/*
 * Notes that the medium has this version, so new ones are above it. A version at the end of the
 * range stays there, see rfs_numbers_left(). A rescue leaves such a version out.
 */
static inline void rfs_version_seen(struct rfs_fs *fs, u64 version)
{
	if (!rfs_rescues(fs) || version < RFS_VERSION_END)
		fs->version = max(fs->version,
				  min(version, RFS_VERSION_END) + 1);
}

/*
 * Says whether there is room for numbers after those that were found. A volume without such room
 * was mounted a million times, or somebody made it so. It is not written.
 */
static inline bool rfs_numbers_left(const struct rfs_fs *fs)
{
	return fs->version < RFS_VERSION_END && fs->lsn < RFS_LSN_END &&
	       fs->cp_seq < RFS_SEQ_END;
}

void rfs_oob_meta(struct rfs_fs *fs, struct rfs_oob *oob,
		  const struct rfs_head *head);

static inline bool rfs_addr_ok(const struct rfs_fs *fs, u64 addr)
{
	u64 zone = addr / fs->geo.zone_blocks;

	return addr && zone < fs->geo.zones &&
	       addr % fs->geo.zone_blocks < fs->zone[zone].cap;
}

/*
 * Returns how many pages these blocks may take, with their summaries. Without page metadata each
 * block may be alone in its append, which has a summary.
 */
static inline u64 rfs_pages_of(const struct rfs_fs *fs, u64 blocks)
{
	return fs->geo.oob_bytes ?
	       blocks * le32_to_cpu(fs->super.zone_cap) / fs->holds :
	       2 * blocks;
}

/* Returns the same in zones, rounded down. */
static inline u64 rfs_zones_of(const struct rfs_fs *fs, u64 blocks)
{
	return fs->geo.oob_bytes ? blocks / fs->holds :
				   2 * blocks / le32_to_cpu(fs->super.zone_cap);
}

u64 rfs_ticks(const struct rfs_fs *fs, u64 time);
u64 rfs_now(const struct rfs_fs *fs);
u64 rfs_clock(const struct rfs_fs *fs);	/* ns since 1970, or ahead of that */

/*
 * From begins = true to false others may look at the volume while its owner waits for the drive.
 * They may not change it.
 */
static inline void rfs_quiet(struct rfs_fs *fs, bool begins)
{
	if (fs->ops->quiet)
		fs->ops->quiet(fs->dev, begins);
}

#endif
