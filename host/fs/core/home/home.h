/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks of files are at home on the slow device of a hybrid volume. A block is not written while
 * the volume leads to it, nor until a durable check-point does not lead to it any more; see "Hybrid
 * volumes" in doc/design.md.
 */
#ifndef RFS_HOME_H
#define RFS_HOME_H

#include "space/space.h"

struct rfs_replica;

/* These blocks are written while nothing leads to them yet. */
struct rfs_home_row {
	struct rfs_home_row *next;
	u64 first;
	u32 n;
};

struct rfs_home {
	struct rfs_slow_dev slow;
	bool gone;		/* it is not there: flash alone is read */
	bool loose;		/* files, or their states, were written since it was flushed */
	u32 bad_flushes;	/* what was sent before one may be lost for good */
	u64 first;		/* block of a file */
	u64 blocks;		/* of files, from there on */
	u32 tables;		/* blocks of the table of states */
	u8 *state;		/* as in struct rfs_slow_states, of all */
	u8 *copy;		/* of each of them, the copy that counts: 0 or 1 */
	u64 *stamp;		/* of that copy; 0: there is none */
	/*
	 * By so much the sum of these stamps is below that of the check-point. If it is not 0,
	 * copies of the check-point's table are damaged, so nobody knows which blocks are free.
	 */
	u32 lacks;
	u64 later;		/* a check-point that was begun since, as copies say; 0: none */
	struct rfs_bits due;	/* those that the check-point writes */
	struct rfs_bits held;	/* those that may have blocks which are held */
	u64 count[4];		/* blocks by enum rfs_slow_state */
	u64 cursor;		/* where the search for a free one goes on */
	struct rfs_home_row *rows;	/* a check-point does not free them */
	u32 *both_in;		/* of each zone, blocks that are here, too, at least */
	struct rfs_replica *replica;	/* of the metadata; NULL: none is made */
};

/*
 * These return the blocks of the table of states, and those of files, of a device without its
 * replica.
 */
u32 rfs_home_tables(u64 device_blocks);
u64 rfs_home_blocks(u64 device_blocks);

/* Returns where a copy of a block of the table of states is. */
static inline u64 rfs_states_at(u32 table, u32 copy)
{
	return 1 + 2ULL * table + copy;
}

/* Makes a new one (make.c), whose blocks are all free. The first check-point writes its table. */
int rfs_home_make(struct rfs_fs *fs);
/* Forgets all blocks in use, for repair.c, which counts anew. */
void rfs_home_forget(struct rfs_fs *fs);

/* Makes fs->home (media.c), as large as the superblock says. All of its blocks are free. */
int rfs_home_alloc_tables(struct rfs_fs *fs, bool gone);
/*
 * Loads it as of the check-point that was loaded. -ENOMEDIUM says that the volume has a slow device
 * and the caller gave none, -ENODEV that the given one is not this volume's, and -EOVERFLOW that it
 * is shorter than the volume's was. -ENXIO says that it is gone and the volume is to be written.
 * -EUCLEAN says that it is damaged, or that its table of states is and a caller that does not
 * repair it is to write the volume.
 */
int rfs_home_load(struct rfs_fs *fs, bool read_only);
void rfs_home_free(struct rfs_fs *fs);

/* Makes the blocks durable that the volume leads to, and the table for the next check-point. */
int rfs_home_write_states(struct rfs_fs *fs);
u32 rfs_home_states_sum(const struct rfs_fs *fs);	/* that it says */
void rfs_home_committed(struct rfs_fs *fs);	/* it is there */

/* Frees the blocks that are held, since no state that a power cut may leave leads to them. */
void rfs_home_release(struct rfs_fs *fs);

int rfs_home_read(struct rfs_fs *fs, u64 block, void *data);
int rfs_home_write(struct rfs_fs *fs, u64 block, u32 n, const void *const *data);
/* Does the same for blocks of files. Others may use the volume meanwhile. */
int rfs_home_send(struct rfs_fs *fs, u64 block, u32 n, const void *const *data);
/* Does the same for the replica, for which no check-point waits. */
int rfs_home_copy(struct rfs_fs *fs, u64 block, u32 n, const void *const *data);
int rfs_home_flush(struct rfs_fs *fs);	/* if files or their states need it */
int rfs_home_flush_all(struct rfs_fs *fs);

/*
 * Finds up to n free blocks that follow each other (states.c), and returns their number. Nobody
 * else gets them until rfs_home_row_over(). After that, those that nothing leads to are free after
 * the next check-point.
 */
u32 rfs_home_alloc(struct rfs_fs *fs, u32 n, struct rfs_home_row *row);
void rfs_home_row_over(struct rfs_fs *fs, struct rfs_home_row *row);
void rfs_home_hold_rows(struct rfs_fs *fs);	/* a check-point has freed what was held */

/* Counts a pointer of a file to a block at home that is added to the index, or removed. */
int rfs_home_count(struct rfs_fs *fs, const struct rfs_ptr *ptr, int delta);

/* Returns the blocks that files can have beyond those that they have or have reserved. */
u64 rfs_home_left(const struct rfs_fs *fs);

u32 rfs_home_state(const struct rfs_home *home, u64 nr);

/* Frees the held ones of four states. */
static inline u8 rfs_states_unheld(u8 states)
{
	static_assert(RFS_SLOW_HELD == 2 && !RFS_SLOW_FREE);
	return states & ~(states & 0xaa & ~(states << 1));
}

#endif
