/*
 * rsd core, floor of power cuts and of the log of operations; the interface is
 * api/rsd-power.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_POWER_FLOOR_H
#define RSD_POWER_FLOOR_H

#include "../api/rsd-power.h"
#include "../ftl/ftl.h"

typedef struct Oplog Oplog;

/* This is the state of power: see power.c. */
typedef struct Power {
    bool off;
    bool broken;                /* it cannot be opened: stays off */
    Oplog *log;                 /* NULL: none is kept */
    uint64_t cut_op;            /* 0: never */
    uint64_t seed;
    char *list;                 /* of outcomes, see rsd-power.h */
} Power;

/* power.c, of which all does nothing unless operations are counted or logged */

/* The array begins a step, or has ended it but not yet carried it out. */
void rsd_power_begin(RsdDrive *drive, const Step *step);
void rsd_power_end(RsdDrive *drive, const Step *step);
/* A translation layer is about to have written, without the array. */
void rsd_power_wrote(RsdDrive *drive);
/* A command is about to change tables. For what, see RsdLogged.command. */
void rsd_power_command(RsdDrive *drive, uint32_t what, uint64_t lba);
/* The time of a cut (rsd_power_cut_later()) has come. */
void rsd_power_event(RsdDrive *drive);
/*
 * Says whether the drive can be brought to the state after that operation. If
 * not, err is set.
 */
bool rsd_power_can_rewind(const RsdDrive *drive, uint64_t op,
                          char err[RSD_ERR_LEN]);
/* The media of a drive that was stopped gets the state of rsd_rewind(). */
bool rsd_power_rewind(RsdDrive *drive, uint64_t op,
                      const RsdOutcomes *outcomes, char err[RSD_ERR_LEN]);
/* For opening, opens the media's log. Returns false and err if it has none. */
bool rsd_power_open_log(RsdDrive *drive, const char *path,
                        char err[RSD_ERR_LEN]);

/* oplog.c */

/*
 * Opens the log of a media file, or of a view of one. Returns false and err if
 * it has no log.
 */
bool rsd_oplog_open(RsdMedia *media, const char *path, uint32_t dies,
                    uint64_t blocks, char err[RSD_ERR_LEN]);
/* Closes a log. NULL is allowed. */
void rsd_oplog_close(Oplog *log);
/* Begins the log anew, with the media as it is. */
void rsd_oplog_begin(Oplog *log);
/* This is for an array's operation: its unit begins at that slot. */
void rsd_oplog_start(Oplog *log, const Op *op, uint32_t page, bool protected,
                     uint64_t now);
void rsd_oplog_done(Oplog *log, const Op *op, uint32_t page, uint64_t now);
void rsd_oplog_command(Oplog *log, uint32_t what, uint64_t lba, uint64_t now);
/*
 * Notes a loss of power, and whether anything waited in a volatile write
 * buffer.
 */
void rsd_oplog_power(Oplog *log, uint64_t now, bool waiting);
/*
 * Brings the media to the state just before operation op + 1, with nothing in
 * flight.
 */
bool rsd_oplog_go(Oplog *log, uint64_t op, char err[RSD_ERR_LEN]);
/*
 * After that, returns the data and OOB of each slot that number i in flight was
 * to program; it is a program that has an end in the log. Returns false if the
 * host fails.
 */
bool rsd_oplog_content(Oplog *log, uint64_t op, uint32_t i, uint32_t slots,
                       uint8_t *content);
/* These are for rsd-power.h. */
void rsd_oplog_get_info(const Oplog *log, RsdOplogInfo *info);
bool rsd_oplog_get_op(const Oplog *log, uint64_t op, RsdLogged *to);
bool rsd_oplog_get_in_flight(Oplog *log, uint64_t op, uint32_t i,
                             RsdLogged *to);

#endif
