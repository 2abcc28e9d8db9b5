/*
 * Native traces: what a drive was asked and when it answered, so exactly that
 * a replay on a copy of the starting media gives every counter and completion
 * time again.
 *
 *     rsd_trace_hash_media(path, &hash, err);      before rsd_open()
 *     trace = rsd_trace_open("t.rsdtrace", rsd_config(drive), hash, err);
 *     rsd_trace_add(trace, &record);               at every call, see below
 *     rsd_trace_close(trace, now, &counters, err);
 *
 * A recorder adds, in the order in which it calls the drive:
 *     after rsd_submit()       RSD_TRACE_SUBMIT, time = cmd->submit_ns
 *     after rsd_format()       the same with RSD_TRACE_FORMAT, lba = OOB bytes
 *     if either did not give RSD_OK, or for a format always, at once:
 *                              RSD_TRACE_DONE of the same time, with the status
 *     at each command that rsd_advance() returns
 *                              RSD_TRACE_DONE, time = cmd->done_ns
 * Commands are known by their order of submission, from 0. A command that was
 * detached has no RSD_TRACE_DONE.
 *
 * The file: a header of 64 bytes, the settings as text ("channels=8\n", a line
 * a property), zeroes up to a multiple of 48 bytes, then records of 48 bytes.
 * Integers are little-endian. Every record is written by one system call at
 * once and carries a checksum: a process that is killed leaves whole records
 * and at most a part of one, which readers take for the end.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_TRACE_H
#define RSD_TRACE_H

#include "rsd.h"

#define RSD_TRACE_MAGIC "RSDTRACE"
#define RSD_TRACE_VERSION 1u

typedef enum RsdTraceKind {
    RSD_TRACE_SUBMIT = 1,
    RSD_TRACE_DONE = 2,
    /* rsd_trace_close() alone writes these: counters at the end of recording */
    RSD_TRACE_COUNTER = 3,      /* order = its number, lba = its value */
    RSD_TRACE_END = 4,          /* time = until when the drive was advanced */
} RsdTraceKind;

/*
 * These are the operations as the file has them, whatever RsdOp's values are.
 */
typedef enum RsdTraceOp {
    RSD_TRACE_READ = 0,
    RSD_TRACE_WRITE = 1,
    RSD_TRACE_WRITE_ZEROES = 2,
    RSD_TRACE_ZONE_RESET = 3,
    RSD_TRACE_ZONE_FINISH = 4,
    RSD_TRACE_FLUSH = 5,
    RSD_TRACE_TRIM = 6,
    RSD_TRACE_FORMAT = 7,
    RSD_TRACE_ZRWA_OPEN = 8,    /* a zone gets a random write area */
    RSD_TRACE_ZRWA_COMMIT = 9,  /* lba, nlb: the blocks committed */
} RsdTraceOp;

enum {
    RSD_TRACE_FUA = 1,          /* force unit access */
    RSD_TRACE_APPEND = 2,       /* a zone append: the drive chose the address */
};

typedef struct RsdTraceRecord {
    uint64_t time;              /* ns */
    uint64_t order;             /* of the command, from 0 */
    uint64_t lba;               /* in logical blocks, within the namespace */
    uint32_t nlb;               /* in logical blocks */
    uint32_t ns;                /* namespace of the drive, from 0 */
    uint16_t queue;             /* submission queue: told, not used */
    uint16_t flags;             /* RSD_TRACE_FUA, ... */
    uint8_t kind;               /* RsdTraceKind */
    uint8_t op;                 /* RsdTraceOp; of RSD_TRACE_SUBMIT */
    uint8_t status;             /* RsdStatus; of RSD_TRACE_DONE */
    uint8_t reserved;
    uint32_t reserved2;
    uint32_t check;             /* rsd_trace_add() fills it in */
} RsdTraceRecord;

_Static_assert(sizeof(RsdTraceRecord) == 48, "a record is 48 bytes");
_Static_assert(offsetof(RsdTraceRecord, lba) == 16, "lba");
_Static_assert(offsetof(RsdTraceRecord, nlb) == 24, "nlb");
_Static_assert(offsetof(RsdTraceRecord, ns) == 28, "ns");
_Static_assert(offsetof(RsdTraceRecord, queue) == 32, "queue");
_Static_assert(offsetof(RsdTraceRecord, flags) == 34, "flags");
_Static_assert(offsetof(RsdTraceRecord, kind) == 36, "kind");
_Static_assert(offsetof(RsdTraceRecord, op) == 37, "op");
_Static_assert(offsetof(RsdTraceRecord, status) == 38, "status");
_Static_assert(offsetof(RsdTraceRecord, check) == 44, "check");

/*
 * These return the file's number of an operation, and "read", "write", ... for
 * messages.
 */
RsdTraceOp rsd_trace_op(RsdOp op);
const char *rsd_trace_op_name(unsigned op);

/*
 * Returns a hash of a media file's content: equal for a file and its copies,
 * however sparse they are. It is not cryptographic. Returns false and err on
 * failure.
 */
bool rsd_trace_hash_media(const char *path, uint64_t *hash,
                          char err[RSD_ERR_LEN]);

/*
 * Writing
 */

typedef struct RsdTrace RsdTrace;

/*
 * Creates the trace file. media_hash is that of the media before the drive was
 * opened on it. Returns NULL and err on failure, also if the file exists.
 */
RsdTrace *rsd_trace_open(const char *path, const RsdConfig *cfg,
                         uint64_t media_hash, char err[RSD_ERR_LEN]);

/*
 * Adds a record, whose check and reserved fields need not be set. After a
 * failure (a full disk) the trace stays at its last whole record, and this and
 * later calls return false and do nothing: rsd_trace_close() gives the reason.
 */
bool rsd_trace_add(RsdTrace *trace, const RsdTraceRecord *record);

/*
 * Ends the trace with the drive's counters, which are those after rsd_advance()
 * to time now. With counters NULL, it ends without. Frees the trace. Returns
 * false and err if anything could not be written since rsd_trace_open().
 */
bool rsd_trace_close(RsdTrace *trace, uint64_t now,
                     const RsdCounters *counters, char err[RSD_ERR_LEN]);

/*
 * Reading
 */

typedef struct RsdTraceReader RsdTraceReader;

/*
 * Opens a trace, and returns the settings of its drive (those it does not name
 * have their default) and the hash. Returns NULL and err on failure.
 */
RsdTraceReader *rsd_trace_read(const char *path, RsdConfig *cfg,
                               uint64_t *media_hash, char err[RSD_ERR_LEN]);

/*
 * Returns the next record. The result is 1, 0 at the end, or -1 and err (which
 * names the file and the record, from 1) if the record is wrong.
 */
int rsd_trace_next(RsdTraceReader *reader, RsdTraceRecord *record,
                   char err[RSD_ERR_LEN]);

/* Returns the number of the record that was read last, from 1. */
uint64_t rsd_trace_number(const RsdTraceReader *reader);

/* Returns the records of the file, for progress. */
uint64_t rsd_trace_records(const RsdTraceReader *reader);

/*
 * Returns the bytes of a last record that is not whole, whose recorder was
 * killed.
 */
unsigned rsd_trace_torn(const RsdTraceReader *reader);

void rsd_trace_read_close(RsdTraceReader *reader);

#endif
