/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The replica is a copy of all metadata of a check-point on the slow device, so that files can be
 * found there when flash is gone. Slots that belong to the replica on the medium are not written;
 * see "Replica" in doc/design.md.
 */
#ifndef RFS_REPLICA_H
#define RFS_REPLICA_H

#include "home/home.h"

#define RFS_REPLICA_ROW	64	/* blocks that are written at a time */
#define RFS_PLACES_EACH	512	/* places of a block of the index */

/* This says which copies of the head are on the medium. */
enum rfs_heads {
	RFS_HEADS_SAME,		/* both the one that counts, or none */
	RFS_HEADS_DIFFER,	/* one of them: the other may lead elsewhere */
	RFS_HEADS_UNKNOWN,	/* nobody knows which counts */
};

struct rfs_replica {
	u64 first;		/* its first block on the slow device */
	u32 tables, slots;
	u32 blocks;		/* of its check-point; 0: there is none */
	u64 seq;		/* number of its check-point */
	u64 made;		/* when, of the check-point's time */
	u64 every;		/* ns from one to the next */
	u64 later;		/* the check-point of one that was begun then, and did not end */
	u32 head;		/* which copy of the head counts */
	enum rfs_heads heads;
	struct rfs_slot *place;	/* of each slot */
	u8 *copy;		/* of each block of the table, the copy that counts */
	u64 *stamp;		/* of that copy */
	struct rfs_bits due;	/* those that differ from it */
	struct rfs_bits kept;	/* slots that the medium's has, and the next one has not */
	struct rfs_bits anew;	/* zones that may have been reset since it was made */
	struct rfs_bits fresh;	/* slots that were given since it was made */
	struct rfs_bits bad;	/* slots that could not be written, with those beside them */
	bool unlike;		/* all of flash may have been */
	bool holes;		/* something could not be read for the next one */
	u64 failed;		/* when one was given up, or had holes; 0: it was not */
	u32 used;		/* slots, those that are kept or bad included */
	u32 cursor;		/* where the search for one that is not goes on */
	u32 **slot_of;		/* of each place, its slot + 1, a block each; NULL: none */
	u64 places;
	u8 *row;		/* blocks of slots in a row, to be written */
	u32 row_first, row_n;
	u8 *block;		/* two, for who makes it */
	void *cp;		/* the check-point that was written just now, or NULL */
	u32 cp_blocks;
};

/* These return the blocks of the table of a replica of so many blocks, and its slots. */
u32 rfs_replica_tables(u64 blocks);
u32 rfs_replica_slots(u64 blocks);
/*
 * Says whether a volume may have so many blocks of a slow device, the last of them for a replica
 * (or 0). Both parts must be of use, and numbers of blocks no larger than their fields.
 */
bool rfs_slow_sizes_ok(u64 slow_blocks, u64 replica);
/* Returns the blocks of a replica for a slow device and flash of so many blocks. */
u64 rfs_replica_size(u64 slow_blocks, u64 flash_blocks);

static inline u64 rfs_places_at(const struct rfs_replica *r, u32 table, u32 copy)
{
	return r->first + 2 + 2ULL * table + copy;
}

static inline u64 rfs_slot_at(const struct rfs_replica *r, u32 slot)
{
	return r->first + 2 + 2ULL * r->tables + slot;
}

/* Takes memory for one. places is 0 if no caller looks for them by number. zones is flash's. */
int rfs_replica_alloc(struct rfs_replica *r, u64 first, u64 blocks, u64 places,
		      u32 zones);
void rfs_replica_free(struct rfs_replica *r);
/*
 * Loads the replica on the medium. -EUCLEAN says that it is damaged, and -ENOENT that there is
 * none.
 */
int rfs_replica_load(struct rfs_replica *r, const struct rfs_slow_dev *slow,
		     u32 volume, const u8 *uuid);

/*
 * Forgets the replica, since the medium has none, or a damaged one. So the next is made of all
 * metadata.
 */
void rfs_replica_forget(struct rfs_replica *r);

/* These are places, see struct rfs_slot. */
#define RFS_PLACE_SUPER	1ULL
#define RFS_PLACE_CP	2ULL	/* and on */

static inline u64 rfs_place_timb(const struct rfs_fs *fs)
{
	return RFS_PLACE_CP + 1 + DIV_ROUND_UP(fs->timb_blocks + fs->ztab_blocks,
					       (u32)RFS_CP_LIST_MORE);
}

static inline u64 rfs_place_ztab(const struct rfs_fs *fs)
{
	return rfs_place_timb(fs) + fs->timb_blocks;
}

static inline u64 rfs_place_map(const struct rfs_fs *fs)
{
	return rfs_place_ztab(fs) + fs->ztab_blocks;
}

static inline u64 rfs_place_word(const struct rfs_fs *fs)
{
	return rfs_place_map(fs) + fs->imap_blocks + fs->nmap_blocks;
}

static inline u64 rfs_places_end(const struct rfs_fs *fs)
{
	return rfs_place_word(fs) +
	       (u64)RFS_MAP_ENTRIES * (fs->imap_blocks + fs->nmap_blocks);
}

/* Returns the slot of a place + 1, or 0. The second sets it, and may return -ENOMEM. */
u32 rfs_replica_slot(const struct rfs_replica *r, u64 place);
int rfs_replica_index(struct rfs_replica *r, u64 place, u32 slot);
/* Returns the entry of a place, or NULL. */
const struct rfs_slot *rfs_replica_find(const struct rfs_replica *r, u64 place);

/*
 * Gives a place new content (places.c): `data`, which flash has at addr, or nothing if data is
 * NULL. -ENOSPC says that there is no slot.
 */
int rfs_replica_put(struct rfs_fs *fs, u64 place, u64 addr, const void *data);
/*
 * Comes before any put: it makes both copies of the head lead to the same replica. If it is not
 * known which copy counts, there is no replica from now on.
 */
int rfs_replica_settle(struct rfs_fs *fs);
/* Makes all of it durable. After that, it is the replica of the newest check-point. */
int rfs_replica_commit(struct rfs_fs *fs, u32 cp_blocks);
/* Gives the new replica up. The one before stays for a while, if its head is not overwritten. */
void rfs_replica_give_up(struct rfs_fs *fs, int error);
/* Allows the use of slots that could not be written. Without room, the next replica tries them. */
void rfs_replica_forgive(struct rfs_replica *r);
/* Drops the replica, so that all slots are free. */
int rfs_replica_drop(struct rfs_fs *fs);

/* Says whether a replica is to be made of the check-point that was just written. */
bool rfs_replica_due(const struct rfs_fs *fs);

#endif
