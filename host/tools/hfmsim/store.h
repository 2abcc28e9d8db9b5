/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is a data section on flash that holds no data: it knows where the files
 * are, which writes go to the flash for them, and which extents are evicted
 * when it is full. It knows no time. Every file also has a home on the disk, so
 * that nothing is copied when an extent is evicted.
 */
#ifndef HFMSIM_STORE_H
#define HFMSIM_STORE_H

#include "policy/section.h"
#include "wait.h"

#define PAGE_UNITS	4	/* of 1 KiB, of a page of flash or a block of disk */

/* This is how files share pages. */
enum pack {
	PACK_SECTIONS,		/* as HFM's partitions say */
	PACK_LOG,		/* one after the other, in units */
	PACK_OFF,		/* each in pages of its own */
	PACKS
};

struct store_config {
	enum pack pack;
	struct rfs_partition partition;	/* its size counts for all packs */
	u32 threshold;		/* units: see struct rfs_section */
	u32 collect;		/* the same */
	u32 extents;		/* of the section */
};

/* The store calls these for the drives; `to` is the caller's. */
struct store_io {
	void (*write)(void *to, u64 page, u32 pages, struct wait *waits);
	void (*read)(void *to, u64 page, u32 pages, struct call *call);
	void (*read_home)(void *to, u64 page, u32 pages, struct call *call);
	/*
	 * Lets the call wait once more: some `waits` of a write will have it.
	 */
	void (*hold)(struct call *call);
	/* Ends the waits for data that is no longer there. */
	void (*drop)(void *to, struct wait *waits);
	void *to;
};

struct store_stats {
	u64 units;		/* placed */
	u64 gap_units;		/* of extents, that segments left between files */
	u64 slack_bytes;	/* of units, that files did not fill when they were placed */
	u64 placed;		/* files, or parts of one in an extent */
	u64 reused;		/* of these, in an extent with other files */
	u64 commands, pages;	/* written to the flash */
	u64 collections;	/* writes of several extents together */
	u64 collected;		/* extents in those */
	u64 forced;		/* extents written since no descriptor was left */
	u64 evicted;		/* extents that gave way */
	u64 read_flash, read_memory, read_disk;	/* files, or parts */
};

struct store;

/* Returns NULL if there is no memory. */
struct store *store_new(const struct store_config *cfg, const struct store_io *io,
			u32 files);
void store_free(struct store *store);

/*
 * These are calls of a user. A file that does not exist has no bytes. `home` is
 * the first page on the disk of the data that is written.
 */
void store_append(struct store *store, u32 file, u64 bytes, u64 home,
		  struct call *call);
/* Overwrites all of the file, in place. */
void store_overwrite(struct store *store, u32 file, struct call *call);
void store_read(struct store *store, u32 file, struct call *call);
/*
 * Brings the evicted parts of a file back, when they have been read from the
 * disk.
 */
void store_refill(struct store *store, u32 file);
void store_delete(struct store *store, u32 file);
u64 store_bytes(const struct store *store, u32 file);
/* Writes all parts that wait for more. */
void store_flush(struct store *store);

const struct store_stats *store_stats(const struct store *store);

#endif
