/*
 * The vendor admin commands: power cuts and rewinding (power.h), and faults.
 * Shared by the drive and rsdctl. Little-endian; the data of C1h and C2h is
 * 4096 bytes. The data of C1h has a magic word, so that nobody who tries out
 * opcodes with whatever data cuts the power. With vendor-commands=off there are
 * neither C1h nor C4h.
 *
 *     C1h   Power: cdw10 says what
 *           0   cut the power now; data: outcomes. The controller is dead
 *               (CSTS.CFS) until it is reset, which brings the power back.
 *           1   rewind to an operation; data: which, and outcomes. It happens
 *               when the controller is reset next.
 *           2   begin the log anew
 *     C2h   Operation Log: cdw10 says what, cdw12 and cdw13 which operation
 *           0   the state of the log alone
 *           1   operations from that one on, too
 *           2   what was in flight after that one, too
 *     C4h   Fault: cdw10 says what, cdw12 and cdw13 which block, cdw14 how
 *           many
 *           0   its zone becomes read-only
 *           1   its zone goes offline
 *           2   so many blocks from it on, which are written, cannot be read
 *               any more: data and metadata
 *
 * They are for the drive of the namespace that they name, attached or not.
 *
 *     Invalid Opcode           C1h, C2h: the drive keeps no log; C4h: it has no
 *                              zones; a trace is recorded; vendor-commands=off
 *     Invalid Field            no such operation, bad outcomes, cdw10; C1h: no
 *                              magic word; C4h: the
 *                              zone is offline, or a block is not (yet) in
 *                              flash: nothing was done then
 *     LBA Out of Range         C4h: the block
 *     Command Sequence Error   1: a namespace of the drive is attached to
 *                              a controller; the power is cut
 *     Capacity Exceeded        1: the log has an end, the host's disk was full
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_VENDOR_H
#define RSD_VENDOR_H

#include <stdint.h>

#define RSD_ADMIN_POWER 0xc1
#define RSD_ADMIN_OPLOG 0xc2
#define RSD_ADMIN_FAULT 0xc4
#define RSD_VENDOR_BYTES 4096

#define RSD_POWER_MAGIC UINT32_C(0x72776f70)

enum { RSD_POWER_CUT, RSD_POWER_REWIND, RSD_POWER_RESTART };
enum { RSD_OPLOG_STATE, RSD_OPLOG_OPS, RSD_OPLOG_IN_FLIGHT };
enum { RSD_FAULT_READ_ONLY, RSD_FAULT_OFFLINE, RSD_FAULT_UNREADABLE };

typedef struct RsdPowerData {
    uint64_t op;                /* to rewind to */
    uint64_t seed;
    uint32_t by_list;           /* not 0: outcomes, else seed */
    uint32_t magic;             /* RSD_POWER_MAGIC */
    char outcomes[4072];        /* letters, see power.h; 0 last */
} RsdPowerData;

#define RSD_OPLOG_VERSION 1u
#define RSD_OPLOG_ENTRIES 100u

enum { RSD_OPLOG_ON = 1, RSD_OPLOG_BROKEN = 2, RSD_OPLOG_BRANCH = 4,
       RSD_OPLOG_OFF = 8 };

typedef struct RsdOplogEntry {
    uint64_t op;                /* its number; of one in flight 0 */
    uint64_t time_ns;           /* done, or of one in flight begun */
    uint64_t lba;               /* of a command */
    uint32_t kind;              /* RsdLoggedKind: program, erase, ... */
    uint32_t what;              /* drive-wide block; RsdOp, 255 a format */
    uint32_t page;              /* of 4 KiB, in the block */
    /*
     * These are flags. 1: it cannot be torn. 2: the log has its end. 4: it is
     * not in flight but waits in the write buffer.
     */
    uint32_t flags;
} RsdOplogEntry;

typedef struct RsdOplogData {
    uint32_t version;
    uint32_t flags;             /* RSD_OPLOG_ON, ... */
    uint64_t ops;               /* operations: 0 to this can be rewound to */
    uint64_t at;                /* the one it is at, if it was rewound */
    uint64_t bytes;             /* of the log */
    uint32_t nsid[2];           /* the drive's namespaces; 0: none */
    uint32_t entries;           /* valid ones */
    uint32_t reserved[13];
    RsdOplogEntry entry[RSD_OPLOG_ENTRIES];
} RsdOplogData;

_Static_assert(sizeof(RsdPowerData) == RSD_VENDOR_BYTES, "Power's data");
_Static_assert(sizeof(RsdOplogEntry) == 40, "an operation");
_Static_assert(sizeof(RsdOplogData) == RSD_VENDOR_BYTES, "Operation Log");

#endif
