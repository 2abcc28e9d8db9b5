/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This is a log-structured volume of segments that holds no data: it knows
 * where blocks are, how hot they are, and which blocks cleaning copies. Its
 * clock is the writes of the user. Knowledge of other writes makes an oracle of
 * it.
 */
#ifndef SFSSIM_VOLUME_H
#define SFSSIM_VOLUME_H

#include "policy/policy.h"

/* This is what is known of a block besides SFS's counts. */
enum volume_know {
	KNOW_PAST,		/* nothing */
	KNOW_RATE,		/* how often it is written in all */
	KNOW_NEXT,		/* when it is written next */
};

struct volume_config {
	u32 segments, blocks;	/* of a segment */
	u32 reserve;		/* fewer free segments are cleaned for */
	u32 round;		/* until so many more are free, from half as many fewer on */
	u32 groups;
	enum rfs_gc gc;
	enum rfs_quantize quantize;
	enum volume_know know;
	const u64 *future;	/* KNOW_NEXT: when what is written nth is again */
	const u64 *rate;	/* KNOW_RATE: of each block, writes */
	u64 end;		/* KNOW_RATE: in as many of the user's */
	u64 border[RFS_GROUPS_MAX];	/* hottest of each group; 0: quantize */
};

/* A file is blocks from..to - 1. SFS's file hotness is for new blocks. */
struct volume_file {
	u32 from, to;
	u64 writes, last;
};

struct segment {
	u32 live, fill;
	u64 writes, times;	/* sums, of live blocks */
	u64 known;		/* and rates, or times of next writes */
	u64 youngest;
	bool used;
};

#define VOLUME_FILES	2

struct volume {
	struct volume_config cfg;
	struct volume_file file[VOLUME_FILES];
	u64 now;		/* blocks written by the user */
	u64 copies;		/* by cleaning */
	u64 round_now, round_copies;	/* both when the last round began */
	u64 cleaned, cleaned_live;	/* victims, and what was live in them */
	u64 in_group[RFS_GROUPS_MAX];	/* blocks written to each, both kinds */
	u64 group[RFS_GROUPS_MAX];
	struct rfs_traffic traffic;
	struct segment *seg;
	u32 *owner;		/* of each place: the block that was put there */
	u32 *at;		/* of each block: its place; ~0: none */
	u16 *writes;		/* of each block, saturating as on the medium */
	u64 *time;		/* of each block's last write */
	u64 *known;		/* of each block: its rate, or its next write */
	u64 *hot;		/* room for quantization */
	u32 open[RFS_GROUPS_MAX];	/* segments; ~0: none */
	u32 free, cursor;
	bool full;		/* there is nothing to clean */
};

/*
 * Makes a volume, with memory for all possible blocks. Returns NULL if there is
 * none.
 */
struct volume *volume_new(const struct volume_config *cfg);
void volume_free(struct volume *v);
/*
 * Writes a file's block for the user. It cleans first if there are too few free
 * segments.
 */
void volume_write(struct volume *v, struct volume_file *file, u32 block);

#endif
