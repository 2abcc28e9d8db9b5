/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HFM (2014) has data sections: these functions partition an extent into segments (3.2), and choose
 * the extent that a file is placed in (3.3). They are pure: they do no I/O, and have no memory of
 * their own. All lengths and positions are in units of 1 KiB. The design's section *Data sections*
 * defines what the paper leaves open.
 */
#ifndef RFS_SECTION_H
#define RFS_SECTION_H

#include "plat/rfs_plat.h"

#define RFS_SECTION_UNIT	1024	/* bytes */
#define RFS_SECTION_SIZE_BITS	16	/* an extent has at most 2^16 units */
#define RFS_SECTION_DELTA	32	/* units (HFM 4.1) */

/* A partitioning function has the paper's s, rho and delta. */
struct rfs_partition {
	u32 size;		/* of an extent: a power of 2, 4 to 2^16 */
	u32 rho;		/* 1, 2 or 3 */
	u32 delta;		/* rho 3 splits what is no shorter: a power of 2, from 2 */
};

bool rfs_partition_valid(const struct rfs_partition *p);
/* Returns the levels of segments, which is the number of tables of a map table. */
u32 rfs_partition_levels(const struct rfs_partition *p);

#define RFS_SEGMENT_HEAD	(-1)	/* the paper's H */

/* This is the paper's segment `index` of `level`, of those that a segment was split into. */
struct rfs_section_segment {
	u32 level;
	int index;
	u32 start;
};

/*
 * This is the paper's map(pos): it finds the segment in which the next file begins, if the last one
 * ends with the unit `pos`. False says that `pos` is in the last segment of the extent.
 */
bool rfs_section_map(const struct rfs_partition *p, u32 pos,
		     struct rfs_section_segment *next);

#define RFS_NO_EXTENT	(~0U)

/* This is an extent's descriptor. The caller has an array of them, and looks at none. */
struct rfs_extent {
	u64 since;		/* when it got its first file; 0: it has none */
	u32 address;		/* the caller's */
	u32 start;		/* of its free space */
	u32 before, after;	/* in its list */
	u8 level, entry;	/* which list */
};

/* A map table has the extents of a section that have room for files. */
struct rfs_section {
	struct rfs_partition partition;
	u32 threshold;		/* the paper's theta; units, 1 or more */
	u32 unit;		/* what the flash programs at a time; 0: not known */
	u32 collected;		/* units of full extents that wait for others */
	u64 clock;		/* files placed */
	struct rfs_extent *extents;
	u32 spare;		/* the first descriptor that is not in use */
	u32 list[RFS_SECTION_SIZE_BITS][RFS_SECTION_SIZE_BITS + 1];
};

/*
 * Initializes a map table without extents. `extents` are n descriptors, which belong to it from now
 * on. The partition is valid.
 */
void rfs_section_init(struct rfs_section *s, const struct rfs_partition *p,
		      u32 threshold, u32 unit, struct rfs_extent *extents, u32 n);

/* Adds an empty extent. Returns its descriptor, or RFS_NO_EXTENT if none is left. */
u32 rfs_section_add(struct rfs_section *s, u32 address);

/* A file, or a part of one, has been placed here. */
struct rfs_placed {
	u32 extent;		/* its descriptor */
	u32 address;		/* of the extent */
	u32 start, units;	/* within it */
	u32 end;		/* where the next file begins: units up to there are idle */
	bool reused;		/* other files are in the extent */
	bool full;		/* too little is left: it is no longer in the table */
};

/*
 * Places `units` of a file, or as many as fit into an extent. A file as long as an extent takes
 * empty ones only (`empty`), for its last part, too. A shorter one takes the extent that waits
 * longest of those with room, or else an empty one. False says that there is none.
 */
bool rfs_section_place(struct rfs_section *s, u32 units, bool empty,
		       struct rfs_placed *placed);

/* Returns the extent with files that waits longest, or RFS_NO_EXTENT. */
u32 rfs_section_oldest(const struct rfs_section *s);

/*
 * Takes an extent out of the table, because it is written without being full, or its files are
 * gone.
 */
void rfs_section_remove(struct rfs_section *s, u32 extent);

/*
 * Collects an extent with so many units that is to be written. True says that it makes up one
 * program of the flash, together with those that were collected before, so that all are written
 * together. Otherwise it waits for more.
 */
bool rfs_section_collect(struct rfs_section *s, u32 units);

#endif
