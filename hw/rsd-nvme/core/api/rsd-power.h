/*
 * rsd core: power cuts, and the log of operations by which a drive is shown
 * again as a power cut at any moment of its past would have left it.
 *
 * Operations. What changes the flash is numbered from 1 on, in the order in
 * which it is done: each unit that is programmed; each block that is erased;
 * each command that changes the drive's tables at once (zone reset, zone
 * finish, trim, also as a write of zeroes, format), and of a large trim each
 * step (trim.c); and each power cut that interrupted something, with what
 * opening the drive did then. Number 0 is the state in which the numbering
 * began.
 *
 * A cut after operation N is one just before operation N + 1: all that was
 * acknowledged by then stays. What was in flight, that is, what a die had begun
 * and not ended, has one of three outcomes each, independently of the others:
 *
 *              a unit being programmed        a block being erased
 *     absent   was never programmed           is as before
 *     torn     reads as an uncorrectable      has lost its content, page
 *              error, data and OOB together   metadata too; to be erased again
 *     complete is programmed                  is erased
 *
 * What no die had begun is lost, with all that is in RAM. But of the units that
 * wait in a write buffer which does not survive, any subset is: each is absent,
 * or complete if those before it in its block are there; it is not torn, as no
 * die had begun it. Begun units, which cannot be programmed, are lost.
 *
 * What the buffer protects (buffer.c) survives: a unit of which some is
 * protected is never torn, it is absent and programmed again from the buffer.
 * Neither are units under ftl=block in a die, or with stripe=all a drive, that
 * has less than two blocks beyond its logical ones: block-recover.c says what
 * it takes two for. They are absent instead. Then the drive opens as after any
 * other power cut.
 *
 * A disk (ftl=disk) has no such outcomes: its operations are what it writes to
 * the medium at a time, and trims. Of a write that is cut, the slots that have
 * passed under the head are there, and no others. It keeps no log.
 *
 * The log of operations is a file beside the media file, see oplog.c.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_POWER_H
#define RSD_POWER_H

#include "rsd.h"

typedef enum RsdOutcome { RSD_ABSENT, RSD_TORN, RSD_COMPLETE } RsdOutcome;

/*
 * This is the outcome of operations in flight, in the order in which they were
 * begun, then of those that wait in the write buffer, in the order in which
 * they came.
 */
typedef struct RsdOutcomes {
    /*
     * It has a letter for each: a, t or c; the rest is absent. NULL: by seed.
     */
    const char *list;
    uint64_t seed;
} RsdOutcomes;

/*
 * Parses outcomes: a number is a seed, other text is letters, which are not
 * copied. Returns false if it is neither.
 */
bool rsd_outcomes_parse(const char *text, RsdOutcomes *outcomes);

/*
 * Opens a drive as rsd_open() does, and keeps a log in the file log_path: a new
 * one, or it goes on with one that was kept since. One log belongs to one media
 * file. The log of another file, and one that lacks something that happened
 * since, is refused.
 */
RsdDrive *rsd_open_logged(const char *path, const char *log_path,
                          const RsdConfig *cfg, char err[RSD_ERR_LEN]);

/*
 * Opens a media file and its log to look at them, with the file's geometry and
 * the times of preset custom. Changes of the drive stay in memory, and the
 * files remain as they are. Returns NULL and err also while another process has
 * them.
 */
RsdDrive *rsd_open_view(const char *path, const char *log_path,
                        char err[RSD_ERR_LEN]);

/*
 * Cuts the power now: the drive is off. It takes commands and does nothing with
 * them, and has no events. Commands that were done can still be fetched
 * (rsd_advance()).
 */
void rsd_power_cut(RsdDrive *drive, const RsdOutcomes *outcomes);
/*
 * Does the same as soon as that operation is done (0: never), or when the time
 * has come (UINT64_MAX: never). Without a log, operations are numbered from the
 * moment when the drive was opened. Returns false if that is past.
 */
bool rsd_power_cut_later(RsdDrive *drive, uint64_t op, uint64_t time_ns,
                         const RsdOutcomes *outcomes);
bool rsd_power_is_off(const RsdDrive *drive);

/*
 * Turns the power on: the drive opens its file. Commands that were submitted
 * are gone: the caller has detached them, or forgets them. After false and err,
 * the drive stays off.
 */
bool rsd_power_on(RsdDrive *drive, char err[RSD_ERR_LEN]);

/*
 * Puts the drive into the state that a cut after operation op, with these
 * outcomes, would have left. From here on a new branch begins, which the next
 * rewind undoes. Commands are treated as by rsd_power_on(). It takes time in
 * proportion to the operations between there and here, and that of opening.
 * After false and err the drive is as it was, or, if it cannot be opened, stays
 * off.
 */
bool rsd_rewind(RsdDrive *drive, uint64_t op, const RsdOutcomes *outcomes,
                char err[RSD_ERR_LEN]);

/* Begins the log anew with the present state, which gets number 0. */
bool rsd_oplog_restart(RsdDrive *drive, char err[RSD_ERR_LEN]);

typedef struct RsdOplogInfo {
    bool on;                    /* a log is kept */
    bool broken;                /* the host's disk was full: it ends here */
    bool branch;                /* the drive was rewound */
    uint64_t ops;               /* operations: rewinds go to 0 ... ops */
    uint64_t at;                /* the one it was rewound to, else ops */
    uint64_t bytes;             /* of the file that are in use */
} RsdOplogInfo;

void rsd_oplog_info(const RsdDrive *drive, RsdOplogInfo *info);

typedef enum RsdLoggedKind {
    RSD_LOGGED_PROGRAM,
    RSD_LOGGED_ERASE,
    RSD_LOGGED_COMMAND,
    RSD_LOGGED_POWER,           /* a power cut, or the process was killed */
} RsdLoggedKind;

typedef struct RsdLogged {
    uint64_t time_ns;           /* virtual: when it was done, or begun */
    uint64_t lba;               /* of a command */
    RsdLoggedKind kind;
    uint32_t command;           /* RsdOp, or RSD_LOGGED_FORMAT */
    uint32_t block, page;       /* drive-wide number; its first slot there */
    bool protected;             /* cannot be torn */
    bool waiting;               /* not in flight, but in the write buffer */
    bool ends;                  /* in flight: the log has what it became */
} RsdLogged;

#define RSD_LOGGED_FORMAT 255u

/* Returns operation number op, 1 to ops. False says that there is none. */
bool rsd_oplog_op(const RsdDrive *drive, uint64_t op, RsdLogged *logged);
/*
 * Returns number i, from 0, of the operations that were in flight after
 * operation op, or waited in the write buffer and were begun later. False says
 * that there are no more.
 */
bool rsd_oplog_in_flight(const RsdDrive *drive, uint64_t op, uint32_t i,
                         RsdLogged *logged);

#endif
