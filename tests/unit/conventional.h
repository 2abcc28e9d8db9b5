/*
 * A conventional drive under random commands, beside a model that knows what
 * each LBA may hold: the newest acknowledged content, or one submitted later.
 * Shared by the tests of the personalities.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_CONVENTIONAL_H
#define RSD_CONVENTIONAL_H

#include "harness.h"

#define MAX_LBAS 2048
#define MAX_LATER 64

/* What an LBA may hold after a crash. A tag of 0 is trimmed. */
typedef struct LbaModel {
    uint64_t tag;               /* newest that was acknowledged */
    uint32_t order;             /* of its command */
    uint32_t num_later;         /* submitted later, oldest first */
    struct {
        uint64_t tag;
        uint32_t order;
    } later[MAX_LATER];
} LbaModel;

/* A command in flight */
typedef struct Slot {
    bool used;
    uint32_t order;
    uint64_t tags[64];          /* of a read: what it has to return */
} Slot;

/* May live in memory shared with a process that will be killed. */
typedef struct WorldModel {
    LbaModel lbas[MAX_LBAS];
    Slot slots[128];
    uint32_t order;             /* of the last command: its pattern's tag */
    /*
     * With World.lazy, by LBA: the command done last, and what a flush in
     * flight makes safe
     */
    uint32_t done[MAX_LBAS], flushing[MAX_LBAS];
    bool flush;                 /* one is in flight */
} WorldModel;

typedef struct World {
    Bed bed;
    Rng rng;
    WorldModel *model;
    uint32_t in_flight;
    /*
     * Commands may fail: of one that does not at once, what it was to do may
     * have been done. Reads in flight meanwhile are not looked at.
     */
    bool may_fail;
    /*
     * What is done need not be safe (ack=buffer, plp=off): a flush makes it,
     * or FUA; there are both then. With Bed.synced trims need it, too, and both
     * come with a sync.
     */
    bool lazy;
    /* not 0: to be closed is a power cut, with outcomes by seed */
    uint64_t cuts;
    uint32_t failures;
    uint32_t statuses;          /* of them: a bit a status */
} World;

/* On a new file of that name in the test's directory */
World world_open(const RsdConfig *cfg, const char *name, uint64_t seed);
void world_close(World *w);

/* Of an LBA: the tag of what was submitted last */
uint64_t world_newest(const LbaModel *m);
/* Submits a command; a write has its pattern. */
void world_submit(World *w, RsdOp op, uint64_t at, uint32_t nlb);
/* A random read, write, trim, write of zeroes or flush, and some time */
void world_step(World *w);
/* Carries out events until so many ns from now. */
void world_pass(World *w, uint64_t ns);
/* Takes what has completed. */
void world_take(World *w);
/* Until nothing is pending */
void world_drain(World *w);
/*
 * Closes the drive, what is in flight being lost, and opens it again, or opens
 * it if it was not open. What is there then is what has to stay.
 */
void world_reopen(World *w);
/* Reads everything. With commands in flight: their content is expected. */
void world_check(World *w);
/*
 * After a crash: is everything there that was acknowledged? With learn, what
 * is found becomes the truth.
 */
void world_verify(Bed *bed, WorldModel *model, bool learn);
/*
 * Reads everything, LBA by LBA, after a failure: what is acknowledged is there,
 * or what was submitted later, or, if something was, the flash says that it
 * cannot be read. Nothing else may be pending.
 */
void world_check_failed(World *w);
/* Writes every LBA once, in random order. */
void world_fill(World *w);
/*
 * So many times: random commands, and the drive is closed and opened again,
 * every other time with commands in flight. Reads everything before and after,
 * and calls check before, if there is one.
 */
void world_lives(World *w, int lives, int steps,
                 void (*check)(const Bed *bed));

/*
 * Random commands, and flushes, on drives with a buffer that is lost with the
 * power; each is closed and opened again eight times. No command fails.
 */
void check_random_flushes(RsdConfig (*config)(uint64_t seed), uint64_t seeds);
/* Such a drive is refused, with a message that has these parts. */
void open_refused(const RsdConfig *cfg, const char *part, const char *numbers);
/*
 * Of a drive that acknowledges from a protected buffer: a page of the buffer in
 * the file is given an LBA beyond the end. The file is refused with a message
 * that has these parts, and stays as it is.
 */
void check_damaged_buffer(const RsdConfig *cfg, const char *part,
                          const char *numbers);
/* The same random commands at the same times: the same, to the last counter */
void check_runs_are_equal(const RsdConfig *cfg, int commands);
/*
 * Writes at random until too many blocks have died, and again when it was
 * opened anew. It says so then; all that was taken is there.
 */
void wear_out(const RsdConfig *cfg, uint64_t seed);

/* Of drives that map blocks */

typedef struct Merges {
    uint64_t switches, partial, full, copies, filler, erases;
} Merges;

/* They add up, and no operation was of a kind that there is none of. */
void check_merge_counters(const Bed *bed);
/*
 * Random commands on 48 drives, each closed and opened again eight times, must
 * make merges of every kind.
 */
void check_random_merges(RsdConfig (*config)(uint64_t seed));
/* Counters after everything has come to rest */
void expect_merges(Bed *bed, Merges want);
/* Factory bad blocks are never used, and cost over-provisioning alone: a drive that has some. */
void check_bad_blocks(const RsdConfig *cfg);
/* Cold data moves to worn blocks, so that erase counts stay together. */
void check_levelling(const RsdConfig *cfg);

/* What is programmed at once, in tests of units */
typedef struct UnitKind {
    uint64_t planes, page_size;
    RsdCell cell;
    bool one_shot;
} UnitKind;

extern const UnitKind unit_kinds[6];

/* Times of these drives */
enum { CMD = 10, XFER = 100, READ = 1000, PROG = 20000 };

/* Such units, in blocks of so many slots */
void set_unit(RsdConfig *cfg, const UnitKind *kind, uint64_t slots);
/*
 * How often the array has read a row, from the time that its dies were busy: of
 * a drive whose dies never wait for a bus, all of whose page types take as long
 */
uint64_t array_reads(const Bed *bed);
/* Buffer, queue, levelling, OOB and what a die can, by seed */
void set_unit_options(RsdConfig *cfg, uint64_t seed);
/* What is acknowledged is safe, as the World's model says. */
void set_safe_ack(RsdConfig *cfg, uint64_t seed);

#endif
