/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Zones: these functions append to them, count what is in use of them, and say how much room there
 * is.
 */
#ifndef RFS_SPACE_H
#define RFS_SPACE_H

#include "volume/volume.h"

/* This is a summary until it is written. */
struct rfs_sum {
	struct list_head list;	/* of those that can be written */
	u32 zone;
	u32 count;		/* blocks it will list */
	u32 known;		/* of them, where they are is known, or never */
	bool full;
	struct rfs_summary block;
};

/* This is the room in a zone that an append was given. */
struct rfs_place {
	u32 zone;
	u32 n;			/* blocks */
	u64 addr;		/* of the first, if appends go where expected */
	u32 slot;		/* the first of them in sum */
	struct rfs_sum *sum;	/* lists them; may be NULL */
};

#define RFS_TRIES	3	/* zones that are tried when appends fail */

/*
 * These functions learn what becomes of a block that was sent. Each may be NULL, and returns 0 or a
 * negative errno.
 */
struct rfs_io_ops {
	/* The block was sent, and will be at addr unless an append fails. */
	int (*expected)(struct rfs_fs *fs, void *what, const void *how,
			u64 addr);
	/* The block has been written at addr. */
	int (*complete)(struct rfs_fs *fs, void *what, const void *how,
			u64 addr);
};

/* These are the blocks of one append of a check-point or of the log. */
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

/* This is what is in flight of a check-point or of the log, see inflight.c. */
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

/* sets.c needs the numbers of zones, ways and tables. */
int rfs_sets_alloc(struct rfs_fs *fs);
void rfs_sets_free(struct rfs_fs *fs);
/*
 * Whoever changes a field of a zone calls this, but for what rfs_count_live() adds for a block in
 * use.
 */
void rfs_zone_changed(struct rfs_fs *fs, u32 nr);
void rfs_all_zones_changed(struct rfs_fs *fs);
/* Fills in what the zone table is to say of a zone. */
void rfs_zone_entry(const struct rfs_fs *fs, u32 nr, struct rfs_zone *out);
#ifndef __KERNEL__
/* For rfs_prove(): returns what the sets say that the zones do not, or NULL if they agree. */
const char *rfs_sets_wrong(const struct rfs_fs *fs);
#endif

/*
 * Returns the first free zone from `from` on that is on this way, or on any if ways is 1.
 * RFS_BITS_NONE says that there is none.
 */
u32 rfs_next_free(const struct rfs_fs *fs, u32 from, u32 way, u32 ways);

/*
 * Says whether a drive that limits active zones counts this one, or will when what is in flight
 * arrives.
 */
static inline bool rfs_is_active(const struct rfs_zone_info *z)
{
	return z->inflight || (z->wp && z->wp < z->cap);
}

/* stripe.c: returns how many of n blocks an append to this active segment can have now. */
u32 rfs_zone_fit(const struct rfs_fs *fs, const struct rfs_active_seg *seg,
		 u32 n);
/* Only nodes, inodes and data are striped, since log and maps write little. */
static inline bool rfs_is_striped(u32 stream)
{
	return stream == RFS_S_META || stream >= RFS_S_DATA;
}

/* Returns the stream itself or, where few zones are free, another one that has room. */
u32 rfs_with_room(const struct rfs_fs *fs, u32 stream);
bool rfs_has_room(const struct rfs_fs *fs, u32 stream);	/* without another zone */

/*
 * Returns the way to whose zone of a stream the next append goes. If it `opens` a zone, the stream
 * may have none on that way yet. Else the way has room, or it is fs->ways if no way has.
 */
u32 rfs_way_for(struct rfs_fs *fs, u32 stream, bool opens);

/* The policy holds from now on. It gets fewer groups if the drive allows fewer open zones. */
void rfs_policy_set(struct rfs_fs *fs, const struct rfs_policy *policy);

/*
 * Data goes to RFS_GROUPS_KEPT groups at most for now. All other zones of data are closed, so that
 * they can be cleaned, but for those that reserved pages count on.
 */
void rfs_close_groups(struct rfs_fs *fs);

/*
 * dirty.c: returns the zones that reserved pages, and so many copies, need beyond those of data
 * that are being filled. rfs_may_close() says whether one of these can be closed, because such
 * pages do not need the room that it has left, or a free zone has room for them.
 */
u64 rfs_zones_for_copies(const struct rfs_fs *fs, u64 copies);
static inline u64 rfs_zones_for_reserved(const struct rfs_fs *fs)
{
	return rfs_zones_for_copies(fs, 0);
}

bool rfs_may_close(const struct rfs_fs *fs, const struct rfs_active_seg *seg);
u32 rfs_seg_room(const struct rfs_fs *fs, const struct rfs_active_seg *seg);
void rfs_finish_zones(struct rfs_fs *fs);	/* that nobody goes on with */

/*
 * Appends are in flight together if there is page metadata. rfs_place() makes room for up to n
 * blocks, or for all of them. The caller appends them and tells rfs_placed() where they are. Then
 * summaries may be due. A check-point waits until all that was given room is placed and no summary
 * is left.
 */
int rfs_place(struct rfs_fs *fs, u32 stream, u32 n, bool all,
	      struct rfs_place *place);
bool rfs_zone_failed(int error);	/* or can it be tried again? */
/*
 * Nothing is written to the zone any more, and cleaning leaves it alone. Users have one zone less,
 * so that the reserve stays what it was.
 */
void rfs_zone_lost(struct rfs_fs *fs, u32 nr);
void rfs_placed(struct rfs_fs *fs, const struct rfs_place *place,
		const struct rfs_oob *oob, u64 addr, int error);
struct rfs_sum *rfs_sum_next(struct rfs_fs *fs, struct rfs_oob *oob);
void rfs_sum_done(struct rfs_fs *fs, struct rfs_sum *sum, u64 addr, int error);
void rfs_sums_write(struct rfs_fs *fs);
void rfs_sums_drop(struct rfs_fs *fs);

/*
 * Places, appends and waits for n blocks and for the summaries that are due. addr has an element
 * for each block.
 */
int rfs_append(struct rfs_fs *fs, u32 stream, u32 n, const void *const *data,
	       struct rfs_oob *oob, u64 *addr);

/*
 * Counts a block as in use (delta is 1) or as dead (-1). ptr leads to a block of data, and is NULL
 * for metadata.
 */
int rfs_count_live(struct rfs_fs *fs, u64 addr, int delta,
		   const struct rfs_ptr *ptr);
void rfs_count_live_map(struct rfs_fs *fs, u64 addr, int delta);

/* room.c has the quantities of "Room" in doc/design.md, in blocks. */
u64 rfs_tables(const struct rfs_fs *fs);	/* blocks of TIMB and zone table */
bool rfs_worth_compacting(const struct rfs_fs *fs,
			  const struct rfs_zone_info *z);

/*
 * [W + K] of "Room": a check-point leaves so many blocks, beside dirty blocks and tables, to what
 * becomes dirty before the next one, and to compaction.
 */
static inline u64 rfs_room_kept(const struct rfs_fs *fs)
{
	return fs->room_kept;
}

/*
 * [B*] Returns the zones that metadata takes when it is compact, with those that are being filled,
 * and with so many blocks more.
 */
u64 rfs_zones_claimed_with(const struct rfs_fs *fs, u64 meta);
u64 rfs_zones_claimed(const struct rfs_fs *fs);
u32 rfs_zones_kept(const struct rfs_fs *fs);	/* data may not have these */

/* Streams open so many zones beside those that they have, see stripe.c. */
static inline u32 rfs_zones_beside(const struct rfs_fs *fs)
{
	return fs->ways > 1 ? fs->ways : 0;
}

/* With no more free zones than these, streams open none beside those that they have. */
static inline u32 rfs_zones_narrow(const struct rfs_fs *fs)
{
	return rfs_zones_kept(fs) + rfs_zones_beside(fs);
}

/* These quantities of a volume change, and say how much of it is in use. */
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
	/* A run claims the room of the leaf that it may become. */
	out->new_dirty = fs->new_dirty + fs->runs;
	out->maps = fs->maps;
	out->low_now = fs->low_now;
	out->low_next = fs->low_next;
	out->gain_now = fs->gain_now;
	out->gain_next = fs->gain_next;
}

/*
 * Returns how many of user_blocks are in use or spoken for, with so many blocks of data and
 * metadata more. rfs_used_then() counts what was in use then and reads only what never changes of
 * fs, so that it needs no lock. rfs_used_with() counts what is in use now.
 */
u64 rfs_used_then(const struct rfs_fs *fs, const struct rfs_usage *then,
		  u64 data, u64 meta);
u64 rfs_used_with(const struct rfs_fs *fs, u64 data, u64 meta);
static inline u64 rfs_used(const struct rfs_fs *fs)
{
	return rfs_used_with(fs, 0, 0);
}

/* Notes the closed zones in which nothing is in use now: rfs_free_zones() frees these. */
void rfs_mark_dead(struct rfs_fs *fs);

/*
 * rfs_zones_cut() begins the next epoch: the check-point says what zones are now. Once it is
 * durable, rfs_free_zones() frees the zones in which it has nothing.
 */
void rfs_zones_cut(struct rfs_fs *fs);
int rfs_free_zones(struct rfs_fs *fs);

/*
 * Begins to reset the next free zone if there is @reset_begin, and says whether it has begun.
 * rfs_reset_done() is told how it went, and another reset may be due. After an error of the moment
 * no reset begins before the next check-point.
 */
bool rfs_reset_next(struct rfs_fs *fs);
void rfs_reset_done(struct rfs_fs *fs, u32 nr, int error);
bool rfs_room_low(const struct rfs_fs *fs, u32 blocks);
/*
 * Says whether these zones are more than the volume has, so that cleaning would make room in vain:
 * what a damaged volume says of itself may come to that.
 */
bool rfs_room_never(const struct rfs_fs *fs, u32 blocks);
/* Says whether several appends may be in flight at a time. */
bool rfs_io_parallel(const struct rfs_fs *fs);

/*
 * The block goes out with the next append, by rfs_io_send() at the latest. These functions call
 * @ops. The caller leaves data alone until it has completed.
 */
int rfs_io_submit(struct rfs_fs *fs, u32 stream, const void *data,
		  const struct rfs_oob *oob, const struct rfs_io_ops *ops,
		  void *what, const void *how);
int rfs_io_send(struct rfs_fs *fs);	/* what was submitted goes out */
int rfs_io_wait(struct rfs_fs *fs);	/* until all of these have */

/*
 * As rfs_io_wait(), and also waits for the summaries that have become due. It does so after an
 * error, too.
 */
int rfs_io_wait_sums(struct rfs_fs *fs);

/* Returns the number of dirty metadata blocks at which operations wait for a check-point. */
u32 rfs_dirty_most(const struct rfs_fs *fs);

/*
 * If fewer zones than these are free, free zones are few. What reserved pages need is among these.
 */
static inline u32 rfs_zones_low(const struct rfs_fs *fs)
{
	return fs->low_now + rfs_zones_of(fs, fs->rsv_blocks);
}

/*
 * Says whether operations have to wait for a check-point. If all the reserve is free, and what
 * reserved pages need, that is not before dirty_max.
 */
static inline bool rfs_dirty_full(const struct rfs_fs *fs)
{
	return (fs->dirty.count >= fs->dirty_max ||
		fs->free_zones < rfs_zones_low(fs)) &&
	       fs->dirty.count >= rfs_dirty_most(fs);
}

/*
 * Says whether another check-point of dirty_max may not find room if so many zones are left out.
 * rfs_room_tight_summed() adds up all that is free. rfs_room_tight() does so only where the number
 * of free zones does not tell.
 */
bool rfs_room_tight(const struct rfs_fs *fs, u32 zones);
bool rfs_room_tight_summed(const struct rfs_fs *fs, u32 zones);

/*
 * Says that so much is dirty that a check-point should come, long before others have to wait for
 * one.
 */
bool rfs_dirty_due(const struct rfs_fs *fs);
bool rfs_checkpoint_due(const struct rfs_fs *fs);

/*
 * Returns how many blocks may become dirty beside those that are, and beside so many copies, if so
 * many zones are to be free after the check-point.
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
 * A page of a file makes these blocks dirty as it completes: its leaf, its inode, and a block of
 * each map. On a volume with pieces, the diff node and its block of the map come in addition.
 */
#define RFS_PARENTS		4
#define RFS_DIFF_PARENTS	2

/*
 * Returns how many pages of files may be in flight while nobody looks at what is dirty. Each of
 * them may be the only block of nodes of its own.
 */
u32 rfs_pages_at_once(const struct rfs_fs *fs);
/* Memory keeps at most the places of so many summaries of all zones: 16 MiB. */
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
