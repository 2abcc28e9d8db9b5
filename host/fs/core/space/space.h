/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Zones: appending to them, what is in use of them, how much room there is. */
#ifndef RFS_SPACE_H
#define RFS_SPACE_H

#include "volume/volume.h"

/* A summary, until it is written */
struct rfs_sum {
	struct list_head list;	/* of those that can be written */
	u32 zone;
	u32 count;		/* blocks it will list */
	u32 known;		/* of them, where they are is known, or never */
	bool full;
	struct rfs_summary block;
};

/* Room in a zone that an append was given */
struct rfs_place {
	u32 zone;
	u32 n;			/* blocks */
	u64 addr;		/* of the first, if all of the zone land as sent */
	u32 slot;		/* the first of them in sum */
	struct rfs_sum *sum;	/* lists them; may be NULL */
};

#define RFS_TRIES	3	/* zones that are tried when appends fail */

/* What becomes of a block that is sent; each may be NULL. 0 or -errno */
struct rfs_io_ops {
	/* it is sent, and will be at addr unless something fails */
	int (*expected)(struct rfs_fs *fs, void *what, const void *how,
			u64 addr);
	/* it is at addr */
	int (*complete)(struct rfs_fs *fs, void *what, const void *how,
			u64 addr);
};

/* Blocks of one append, of a check-point or the log */
struct rfs_io {
	struct rfs_append_req req;
	struct rfs_place place;
	struct rfs_sum *sum;	/* it is this one; else NULL */
	u32 stream;
	u32 n;
	const struct rfs_io_ops *ops;	/* `what` and `how` are for these */
	const void *how;
	void *what[RFS_SUM_ENTRIES];
	const void *data[RFS_SUM_ENTRIES];
	struct rfs_oob oob[RFS_SUM_ENTRIES];
};

/* What is under way of it, see inflight.c */
struct rfs_ioq {
	struct rfs_io next;	/* which is being filled */
	struct rfs_io io[RFS_IO_DEPTH];
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

void rfs_streams_init(struct rfs_fs *fs);	/* they are */

/* sets.c: when zones, ways and tables are known */
int rfs_sets_alloc(struct rfs_fs *fs);
void rfs_sets_free(struct rfs_fs *fs);
/* Anything of a zone has, but for what a block in use adds: rfs_count_live() */
void rfs_zone_changed(struct rfs_fs *fs, u32 nr);
void rfs_all_zones_changed(struct rfs_fs *fs);
/* What the zone table is to say of a zone */
void rfs_zone_entry(const struct rfs_fs *fs, u32 nr, struct rfs_zone *out);
#ifndef __KERNEL__
/* What sets say that zones do not, for rfs_prove(); NULL: nothing */
const char *rfs_sets_wrong(const struct rfs_fs *fs);
#endif

/*
 * The first free zone from one on that is on a way, or with ways = 1 on any;
 * RFS_BITS_NONE: there is none.
 */
u32 rfs_next_free(const struct rfs_fs *fs, u32 from, u32 way, u32 ways);

/* Where the drive limits that, it counts as active, or will */
static inline bool rfs_is_active(const struct rfs_zone_info *z)
{
	return z->inflight || (z->wp && z->wp < z->cap);
}

/* stripe.c: blocks, of n, that an append to this zone can have now */
u32 rfs_zone_fit(const struct rfs_fs *fs, const struct rfs_active_seg *seg,
		 u32 n);
/* Nodes, inodes and data are; of the log and of maps there is little */
static inline bool rfs_is_striped(u32 stream)
{
	return stream == RFS_S_META || stream >= RFS_S_DATA;
}

/* Where few zones are free, another stream that has room; else this one */
u32 rfs_with_room(const struct rfs_fs *fs, u32 stream);
bool rfs_has_room(const struct rfs_fs *fs, u32 stream);	/* without another zone */

/*
 * The way whose zone of a stream the next append goes to. If it `opens` one, there may
 * be none yet; else it has room, and without room on any way it is fs->ways.
 */
u32 rfs_way_for(struct rfs_fs *fs, u32 stream, bool opens);

/* From now on; fewer groups if the drive allows fewer open zones */
void rfs_policy_set(struct rfs_fs *fs, const struct rfs_policy *policy);

/*
 * Data goes to no more than RFS_GROUPS_KEPT for now: other zones can be cleaned, but
 * for those that pages count on which were promised room
 */
void rfs_close_groups(struct rfs_fs *fs);

/* dirty.c: Is what the zone has left not needed, or is a free one there instead? */
bool rfs_may_close(const struct rfs_fs *fs, const struct rfs_active_seg *seg);
void rfs_finish_zones(struct rfs_fs *fs);	/* that nobody goes on with */

/*
 * Appends in flight together, with page metadata: room for up to n blocks, or
 * for all of them, the append, and where they are. Then summaries may be due. A check-point waits
 * until all that were given room are placed and no summary is left.
 */
int rfs_place(struct rfs_fs *fs, u32 stream, u32 n, bool all,
	      struct rfs_place *place);
bool rfs_zone_failed(int error);	/* or can it be tried again? */
/*
 * Nothing is written to the zone any more, and cleaning leaves it alone: users have one
 * less, so that what is reserved beside them stays.
 */
void rfs_zone_lost(struct rfs_fs *fs, u32 nr);
void rfs_placed(struct rfs_fs *fs, const struct rfs_place *place,
		const struct rfs_oob *oob, u64 addr, int error);
struct rfs_sum *rfs_sum_next(struct rfs_fs *fs, struct rfs_oob *oob);
void rfs_sum_done(struct rfs_fs *fs, struct rfs_sum *sum, u64 addr, int error);
void rfs_sums_write(struct rfs_fs *fs);
void rfs_sums_drop(struct rfs_fs *fs);

/* All in one, and summaries; addr has an element for each block */
int rfs_append(struct rfs_fs *fs, u32 stream, u32 n, const void *const *data,
	       struct rfs_oob *oob, u64 *addr);

/* A block is in use from now on, or no longer; @ptr of data, else NULL */
int rfs_count_live(struct rfs_fs *fs, u64 addr, int delta,
		   const struct rfs_ptr *ptr);
void rfs_count_live_map(struct rfs_fs *fs, u64 addr, int delta);

/* room.c: see "Room" in doc/design.md; in blocks */
u64 rfs_tables(const struct rfs_fs *fs);	/* blocks of TIMB and zone table */
bool rfs_worth_compacting(const struct rfs_fs *fs,
			  const struct rfs_zone_info *z);

/*
 * [W + K] of "Room": what a check-point leaves to what comes between, and to compaction,
 * beside dirty blocks and tables
 */
static inline u64 rfs_room_kept(const struct rfs_fs *fs)
{
	return fs->room_kept;
}

/*
 * [B*] Zones that metadata takes when it is compact, those being filled too; with so
 * many blocks more
 */
u64 rfs_zones_claimed_with(const struct rfs_fs *fs, u64 meta);
u64 rfs_zones_claimed(const struct rfs_fs *fs);
u32 rfs_zones_kept(const struct rfs_fs *fs);	/* data may not have these */

/* Zones that streams open beside those that they have, see stripe.c */
static inline u32 rfs_zones_beside(const struct rfs_fs *fs)
{
	return fs->ways > 1 ? fs->ways : 0;
}

/* With no more free zones they open none */
static inline u32 rfs_zones_narrow(const struct rfs_fs *fs)
{
	return rfs_zones_kept(fs) + rfs_zones_beside(fs);
}

/* What changes of a volume, and says how much of it is in use */
struct rfs_usage {
	u64 user_blocks, live, data_live;	/* as in struct rfs_fs */
	u64 rsv_holes, prealloc;
	u64 inodes;
	u32 new_dirty, maps;	/* the first: leaves that are runs, too */
	u32 low_now, low_next;
	u64 gain_now, gain_next;
};

static inline void rfs_usage_get(const struct rfs_fs *fs, struct rfs_usage *out)
{
	out->user_blocks = fs->user_blocks;
	out->live = fs->live;
	out->data_live = fs->data_live;
	out->rsv_holes = fs->rsv_holes;
	out->prealloc = fs->prealloc;
	out->inodes = fs->inodes;
	/* a run has the room of the leaf that it may become */
	out->new_dirty = fs->new_dirty + fs->runs;
	out->maps = fs->maps;
	out->low_now = fs->low_now;
	out->low_next = fs->low_next;
	out->gain_now = fs->gain_now;
	out->gain_next = fs->gain_next;
}

/*
 * Of user_blocks, those in use or spoken for, and so many blocks more; of what
 * was in use then, or now. Of fs, the first looks only at what never changes.
 */
u64 rfs_used_then(const struct rfs_fs *fs, const struct rfs_usage *then,
		  u64 data, u64 meta);
u64 rfs_used_with(const struct rfs_fs *fs, u64 data, u64 meta);
static inline u64 rfs_used(const struct rfs_fs *fs)
{
	return rfs_used_with(fs, 0, 0);
}

/* Closed zones with nothing in use now are those that rfs_free_zones() frees. */
void rfs_mark_dead(struct rfs_fs *fs);

/*
 * What a check-point says of zones is what is so now: another epoch begins. When it is
 * durable, zones are free that it has nothing in.
 */
void rfs_zones_cut(struct rfs_fs *fs);
int rfs_free_zones(struct rfs_fs *fs);

/*
 * The next zone that is free is reset, where @reset_begin is there; true: it has
 * begun. Then rfs_reset_done() says how it went, and another one may be due. After an
 * error of the moment none is before the next check-point.
 */
bool rfs_reset_next(struct rfs_fs *fs);
void rfs_reset_done(struct rfs_fs *fs, u32 nr, int error);
bool rfs_room_low(const struct rfs_fs *fs, u32 blocks);
/* Are there several appends at a time? */
bool rfs_io_parallel(const struct rfs_fs *fs);

/*
 * A block goes out with the next append, at the latest by rfs_io_send(). @ops are
 * called by this or one of the next three. data is left alone until it has completed.
 */
int rfs_io_submit(struct rfs_fs *fs, u32 stream, const void *data,
		  const struct rfs_oob *oob, const struct rfs_io_ops *ops,
		  void *what, const void *how);
int rfs_io_send(struct rfs_fs *fs);	/* what was submitted goes out */
int rfs_io_wait(struct rfs_fs *fs);	/* until all of these have */

/* And the summaries that have become due, also after an error */
int rfs_io_wait_sums(struct rfs_fs *fs);

/* Dirty metadata blocks at which operations wait for a check-point */
u32 rfs_dirty_most(const struct rfs_fs *fs);

/* Fewer free zones than these, beside what reserved pages need, are few. */
static inline u32 rfs_zones_low(const struct rfs_fs *fs)
{
	return fs->low_now + rfs_zones_of(fs, fs->rsv_blocks);
}

/*
 * Is that reached? With all the reserve free, and what reserved pages need, it is no
 * less than dirty_max.
 */
static inline bool rfs_dirty_full(const struct rfs_fs *fs)
{
	return (fs->dirty.count >= fs->dirty_max ||
		fs->free_zones < rfs_zones_low(fs)) &&
	       fs->dirty.count >= rfs_dirty_most(fs);
}

/*
 * Beside so many zones, another check-point of dirty_max may not find room. The
 * second adds up all that is free; the first does so only where free zones alone
 * do not tell.
 */
bool rfs_room_tight(const struct rfs_fs *fs, u32 zones);
bool rfs_room_tight_summed(const struct rfs_fs *fs, u32 zones);

/* So much is dirty, long before others wait, that a check-point is to come. */
bool rfs_dirty_due(const struct rfs_fs *fs);
bool rfs_checkpoint_due(const struct rfs_fs *fs);

/*
 * Blocks that may become dirty beside what is, and so many copies, so that this many
 * zones are still free after the check-point
 */
u64 rfs_room_beside(const struct rfs_fs *fs, u64 copies, u32 zones);

/**
 * struct rfs_lack - how far a volume is from what "Room" of doc/design.md asks for
 * @room: R, blocks that metadata has room for
 * @wanted: D + W + K, blocks for which it needs some
 * @blocks: that @room lacks
 * @zones_wanted: that are to be free: low, what B* asks beyond B, what is reserved and asked for
 * @zones: that lack
 */
struct rfs_lack {
	u64 room, wanted, blocks;
	u64 zones_wanted, zones;
};

/* With so many blocks that are asked for */
void rfs_room_lacks(const struct rfs_fs *fs, u32 blocks, struct rfs_lack *out);

/*
 * Blocks a page of a file makes dirty as it completes: leaf, inode, a map of
 * each; and a diff node, where there are any, and its map
 */
#define RFS_PARENTS		4
#define RFS_DIFF_PARENTS	2

/*
 * Pages of files that may be in flight while nobody looks at what is dirty: each
 * may be the only block of nodes of its own.
 */
u32 rfs_pages_at_once(const struct rfs_fs *fs);
/* Summaries of all zones whose places are kept in memory, at most: 16 MiB */
#define RFS_SUMS_NOTED	(4U << 20)

#define RFS_HOT_ZONES	1024	/* whose hotness is quantized, at most */
extern const struct rfs_policy rfs_policy_default;
u64 rfs_ptr_ticks(const struct rfs_ptr *ptr);
u32 rfs_data_stream(const struct rfs_fs *fs, const struct rfs_dinode *di,
		    const struct rfs_ptr *ptr, u64 now);
void rfs_count_traffic(struct rfs_fs *fs, const struct rfs_ptr *ptr, u64 now);
void rfs_segment(const struct rfs_fs *fs, u32 nr, u64 now,
		 struct rfs_segment *out);
void rfs_regroup(struct rfs_fs *fs);

#endif
