/*
 * The log of operations: a file from which the media file is brought to any
 * state that it had while the log was kept.
 *
 *     header          one page, below
 *     records         each a multiple of 8 bytes, one after the other:
 *
 *     START   a die has begun to program a unit or to erase a block; of a unit
 *             of the write buffer, since when it was waiting there
 *     DONE    it has ended, and has the next number; what is stored for it
 *             follows
 *     COMMAND a command that changes tables at once; it has the next number
 *     BYTES   so many bytes of the media file are going to be stored: what is
 *             there, and what will be
 *     POWER   the power was cut, or the process was killed: nothing is in
 *             flight any more; it has the next number if something was, or
 *             waited in a volatile write buffer
 *
 * The file is mapped; integers are little-endian. A record is there before what
 * it tells of happens, and counts once the header's "end" is behind it: killing
 * the process at any moment leaves a log from which the media file can be
 * brought anywhere. All that a record has is what to store, not what to add:
 * undoing or redoing it twice does no harm.
 *
 * Pages. A page that is programmed is recorded only if there is something to
 * lose in its place: if some state that the log leads to has a page programmed
 * there. So the log grows by the pages that were overwritten, and what was
 * programmed where nothing was stays where it is when it is undone. For the
 * same reason blocks keep their space on the host's disk when they are erased.
 *
 * Trunk and branch. What happens after a rewind is a branch: its records are
 * behind those of the trunk, undone and dropped by the next rewind. A branch
 * has no operations, only BYTES.
 *
 *              0 ------- at ------------- trunk_end        the trunk
 *                         \------- end                     the branch
 *
 * Counters are not rewound: they count what the array did.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "power.h"

#define MAGIC "RSDOPLOG"
#define VERSION 1u
#define HEADER_BYTES 4096u
/* The file grows by so much: its records are small */
#define GROW_BYTES (UINT64_C(4) << 20)
#define NEVER UINT64_MAX

typedef unsigned long long ull;

typedef struct LogHeader {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t id;                /* as in the media file's header */
    uint64_t media_bytes;       /* of the media file */
    uint64_t end;               /* offset behind the last record */
    uint64_t trunk_end;         /* 0: there is no branch */
    uint64_t at;                /* where the branch leaves the trunk */
    uint64_t target;            /* not 0: a rewind to there is going on */
    uint64_t broken;            /* not 0: records are missing at the end */
} LogHeader;

#define AT(type, field, offset) \
    _Static_assert(offsetof(type, field) == offset, #field)
AT(LogHeader, magic, 0);
AT(LogHeader, version, 8);
AT(LogHeader, header_bytes, 12);
AT(LogHeader, id, 16);
AT(LogHeader, media_bytes, 24);
AT(LogHeader, end, 32);
AT(LogHeader, trunk_end, 40);
AT(LogHeader, at, 48);
AT(LogHeader, target, 56);
AT(LogHeader, broken, 64);
_Static_assert(sizeof(LogHeader) == 72, "the header of a log");

enum { START = 1, DONE, COMMAND, BYTES, POWER };

/* Flags of START */
enum { START_ERASE = 1, START_PROTECTED = 2 };
/* Flag of BYTES: what will be there is in the record */
enum { BYTES_NEW = 1 };
/* Flag of POWER: some waited in a volatile write buffer */
enum { POWER_WAITING = 1 };

typedef struct LogRecord {
    uint32_t kind;
    uint32_t flags;             /* of COMMAND: what it is */
    uint32_t bytes;             /* of the record */
    uint32_t before;            /* of the one before it */
    uint64_t time_ns;           /* of BYTES: offset in the media file */
    uint64_t ref;               /* DONE: number of its START; COMMAND: LBA */
    uint32_t block;             /* START; BYTES: how many */
    uint32_t page;              /* START */
    /* of BYTES: what is there, what will be, each of (bytes - 40) / 2 */
    uint8_t content[];
} LogRecord;

AT(LogRecord, kind, 0);
AT(LogRecord, flags, 4);
AT(LogRecord, bytes, 8);
AT(LogRecord, before, 12);
AT(LogRecord, time_ns, 16);
AT(LogRecord, ref, 24);
AT(LogRecord, block, 32);
AT(LogRecord, page, 36);
AT(LogRecord, content, 40);
_Static_assert(sizeof(LogRecord) == 40, "a record without content");

/* What the records say, in memory: operations, and what was begun */
typedef struct Entry {
    uint64_t pos;               /* of its record */
    uint64_t starts;            /* begun before */
    uint64_t oldest;            /* of these, none in flight is older */
    /* behind the last that waited in the write buffer then; 0: none did */
    uint64_t waiting;
} Entry;

/* What START has of a unit of the write buffer: see rsd_buffer_closed() */
typedef struct Closed {
    uint64_t seq, since;
} Closed;

typedef struct Begun {
    uint64_t pos;
    /* in flight in states up to before this operation; NEVER: it still is */
    uint64_t gone;
    bool ends;                  /* gone because it is operation "gone" */
    Closed closed;              /* seq 0: not known, or none of the buffer's */
} Begun;

typedef struct DieStarts {
    /* one more than numbers of what is in flight; 0: none */
    uint64_t id[RSD_DIE_STEPS];
} DieStarts;

struct Oplog {
    RsdMedia *media;
    int fd;
    uint8_t *base;
    uint64_t size;
    uint32_t last;              /* bytes of the last record */
    Entry *ops;                 /* from operation 1 on */
    uint64_t num_ops, max_ops;
    Begun *starts;
    uint64_t num_starts, max_starts;
    uint64_t oldest;            /* no number of one in flight is lower */
    uint64_t at_op;             /* with a branch: where it begins */
    DieStarts *dies;
    uint32_t num_dies;
    uint64_t num_blocks;
    uint32_t *kept;             /* of each block: pages not to be lost */
    /* numbers of what waited after an operation, in order: see find_waiting() */
    uint64_t *waiting;
    uint64_t num_waiting, max_waiting;
    uint64_t waiting_op, waiting_starts;        /* as of when that is */
};

static LogHeader *header(const Oplog *log)
{
    return (LogHeader *)log->base;
}

static LogRecord *record(const Oplog *log, uint64_t pos)
{
    return (LogRecord *)(log->base + pos);
}

static bool on_branch(const Oplog *log)
{
    return header(log)->trunk_end;
}

static uint64_t trunk_end(const Oplog *log)
{
    return on_branch(log) ? header(log)->trunk_end : header(log)->end;
}

static uint8_t *old_bytes(LogRecord *r)
{
    return r->content;
}

static uint8_t *new_bytes(LogRecord *r)
{
    return r->content + (r->bytes - sizeof(*r)) / 2;
}

/* The log has an end here: what follows is not in it. */
static void give_up(Oplog *log)
{
    header(log)->broken = 1;
}

/*
 * The index in memory
 */

static void *grow(void *mem, uint64_t n, uint64_t *max, size_t size)
{
    void *more = mem;

    if (n == *max) {
        uint64_t want = *max ? *max * 2 : 1024;

        more = realloc(mem, want * size);
        if (more) {
            *max = want;
        }
    }
    return more;
}

static bool index_start(Oplog *log, uint64_t pos)
{
    Begun *starts = grow(log->starts, log->num_starts, &log->max_starts,
                         sizeof(*starts));
    const LogRecord *r = record(log, pos);
    Begun *begun;

    if (!starts) {
        return false;
    }
    log->starts = starts;
    begun = &starts[log->num_starts++];
    *begun = (Begun){ .pos = pos, .gone = NEVER };
    if (r->bytes == sizeof(*r) + sizeof(Closed)) {
        memcpy(&begun->closed, r->content, sizeof(Closed));
    }
    for (uint64_t op = log->num_ops;
         begun->closed.seq && op-- > begun->closed.since;) {
        log->ops[op].waiting = log->num_starts;
    }
    return true;
}

static bool index_op(Oplog *log, uint64_t pos)
{
    const LogRecord *r = record(log, pos);
    Entry *ops = grow(log->ops, log->num_ops, &log->max_ops, sizeof(*ops));

    if (!ops) {
        return false;
    }
    log->ops = ops;
    while (log->oldest < log->num_starts &&
           log->starts[log->oldest].gone <= log->num_ops) {
        log->oldest++;
    }
    ops[log->num_ops++] = (Entry){ .pos = pos, .starts = log->num_starts,
                                   .oldest = log->oldest };
    if (r->kind == DONE) {
        log->starts[r->ref].gone = log->num_ops;
        log->starts[r->ref].ends = true;
    }
    return true;
}

/*
 * Nothing is in flight any more. What was is in flight up to this record; what
 * opening the drive stores comes behind it. It is an operation where it
 * interrupted something, "waiting" in the write buffer or in flight.
 */
static bool index_power(Oplog *log, uint64_t pos, bool waiting)
{
    bool any = waiting;

    for (uint64_t i = log->oldest; i < log->num_starts; i++) {
        if (log->starts[i].gone == NEVER) {
            log->starts[i].gone = log->num_ops + 1;
            any = true;
        }
    }
    memset(log->dies, 0, log->num_dies * sizeof(*log->dies));
    return !any || index_op(log, pos);
}

/* A block's record changes: what is programmed before or after is kept. */
static void keep_pages(Oplog *log, uint64_t off, const uint8_t *bytes)
{
    uint64_t first = (uint8_t *)log->media->rec - log->media->base;
    uint64_t rec;
    uint32_t *kept;

    if (off < first || off >= first + log->num_blocks * sizeof(rec)) {
        return;
    }
    memcpy(&rec, bytes, sizeof(rec));
    kept = &log->kept[(off - first) / sizeof(rec)];
    if (rsd_rec_next(rec) > *kept) {
        *kept = rsd_rec_next(rec);
    }
}

/*
 * Records
 */

static uint64_t round_up8(uint64_t n)
{
    return (n + 7) & ~UINT64_C(7);
}

static bool make_room(Oplog *log, uint64_t bytes)
{
    uint64_t end = header(log)->end, size = log->size;
    uint8_t *base;

    if (end + bytes <= size) {
        return true;
    }
    size = rsd_div_round_up(end + bytes, GROW_BYTES) * GROW_BYTES;
    /* so that no store into it meets a full disk */
    while (fallocate(log->fd, 0, log->size, size - log->size) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    base = mremap(log->base, log->size, size, MREMAP_MAYMOVE);
    if (base == MAP_FAILED) {
        return false;
    }
    log->base = base;
    log->size = size;
    return true;
}

/* A new record with room for so many bytes twice; commit() adds it. */
static LogRecord *new_record(Oplog *log, uint32_t kind, uint64_t content)
{
    uint64_t bytes = sizeof(LogRecord) + 2 * round_up8(content);
    LogRecord *r;

    if (header(log)->broken || !make_room(log, bytes)) {
        give_up(log);
        return NULL;
    }
    r = record(log, header(log)->end);
    *r = (LogRecord){ .kind = kind, .bytes = bytes, .before = log->last };
    return r;
}

static void commit(Oplog *log, const LogRecord *r)
{
    uint64_t end = header(log)->end + r->bytes;

    log->last = r->bytes;
    /* release: the record was stored before, what it tells comes after */
    __atomic_store_n(&header(log)->end, end, __ATOMIC_SEQ_CST);
}

void rsd_oplog_start(Oplog *log, const Op *op, uint32_t page, bool protected,
                     uint64_t now)
{
    DieStarts *die = &log->dies[op->die];
    Closed closed;
    LogRecord *r;

    if (on_branch(log)) {
        return;
    }
    closed.seq = rsd_buffer_closed(op, &closed.since);
    /* one that is safe is lost in no case */
    closed.seq = protected ? 0 : closed.seq;
    r = new_record(log, START, closed.seq ? sizeof(closed) / 2 : 0);
    if (!r) {
        give_up(log);
        return;
    }
    if (closed.seq) {
        memcpy(r->content, &closed, sizeof(closed));
    }
    if (!index_start(log, header(log)->end)) {
        give_up(log);
        return;
    }
    r->flags = (op->kind == OP_ERASE ? START_ERASE : 0) |
               (protected ? START_PROTECTED : 0);
    r->time_ns = now;
    r->block = op->block;
    r->page = op->kind == OP_ERASE ? 0 : page;
    commit(log, r);
    for (uint32_t i = 0; i < RSD_DIE_STEPS; i++) {
        if (!die->id[i]) {
            die->id[i] = log->num_starts;
            break;
        }
    }
}

/* The place of its START in its die; RSD_DIE_STEPS: it is not there */
static uint32_t find_start(const Oplog *log, const Op *op, uint32_t page)
{
    const uint64_t *id = log->dies[op->die].id;
    uint32_t i;

    for (i = 0; i < RSD_DIE_STEPS; i++) {
        const LogRecord *r = id[i] ? record(log, log->starts[id[i] - 1].pos)
                                   : NULL;

        if (r && r->block == op->block &&
            (op->kind == OP_ERASE ? r->flags & START_ERASE
                                  : r->page == page)) {
            break;
        }
    }
    return i;
}

void rsd_oplog_done(Oplog *log, const Op *op, uint32_t page, uint64_t now)
{
    DieStarts *die = &log->dies[op->die];
    LogRecord *r;
    uint32_t which;

    if (on_branch(log)) {
        return;
    }
    which = find_start(log, op, page);
    if (which == RSD_DIE_STEPS) {
        /* the log was begun meanwhile */
        rsd_oplog_start(log, op, page, false, now);
        which = find_start(log, op, page);
    }
    r = new_record(log, DONE, 0);
    if (!r || which == RSD_DIE_STEPS) {
        give_up(log);
        return;
    }
    r->time_ns = now;
    r->ref = die->id[which] - 1;
    die->id[which] = 0;
    if (!index_op(log, header(log)->end)) {
        give_up(log);
        return;
    }
    commit(log, r);
}

void rsd_oplog_command(Oplog *log, uint32_t what, uint64_t lba, uint64_t now)
{
    LogRecord *r = on_branch(log) ? NULL : new_record(log, COMMAND, 0);

    if (!r) {
        return;
    }
    r->flags = what;
    r->time_ns = now;
    r->ref = lba;
    if (!index_op(log, header(log)->end)) {
        give_up(log);
        return;
    }
    commit(log, r);
}

void rsd_oplog_power(Oplog *log, uint64_t now, bool waiting)
{
    LogRecord *r = on_branch(log) ? NULL : new_record(log, POWER, 0);

    if (!r) {
        return;
    }
    r->flags = waiting ? POWER_WAITING : 0;
    r->time_ns = now;
    if (!index_power(log, header(log)->end, waiting)) {
        give_up(log);
        return;
    }
    commit(log, r);
}

static void before_store(void *state, uint64_t off, const void *value,
                         uint32_t len)
{
    Oplog *log = state;
    LogRecord *r = new_record(log, BYTES, len);

    if (!r) {
        return;
    }
    r->flags = BYTES_NEW;
    r->time_ns = off;
    r->block = len;
    memcpy(old_bytes(r), log->media->base + off, len);
    memcpy(new_bytes(r), value, len);
    keep_pages(log, off, old_bytes(r));
    commit(log, r);
}

/* What is there is to be overwritten. */
static void save(Oplog *log, uint64_t off, uint32_t len)
{
    LogRecord *r = new_record(log, BYTES, len);

    if (!r) {
        return;
    }
    r->time_ns = off;
    r->block = len;
    if (!rsd_media_get(log->media, off, old_bytes(r), len)) {
        give_up(log);
        return;
    }
    commit(log, r);
}

static void before_data(void *state, uint64_t off, uint32_t len)
{
    save(state, off, len);
}

static void before_page(void *state, uint32_t block, uint32_t page)
{
    Oplog *log = state;
    const RsdMedia *media = log->media;

    if (page < log->kept[block]) {
        save(log, rsd_media_page(media, block, page) - media->base,
             RSD_PAGE_SIZE);
        save(log, rsd_media_oob(media, block, page) - media->base,
             RSD_OOB_SIZE);
    }
}

static bool keeps(const void *state, uint32_t block)
{
    const Oplog *log = state;

    return log->kept[block];
}

/*
 * Rewinding
 */

static bool undo(Oplog *log, LogRecord *r, bool drop)
{
    if (r->kind != BYTES) {
        return true;
    }
    if (!drop && !(r->flags & BYTES_NEW)) {
        if (!rsd_media_get(log->media, r->time_ns, new_bytes(r), r->block)) {
            return false;
        }
        __atomic_store_n(&r->flags, BYTES_NEW, __ATOMIC_SEQ_CST);
    }
    keep_pages(log, r->time_ns, log->media->base + r->time_ns);
    return rsd_media_put(log->media, r->time_ns, old_bytes(r), r->block);
}

static bool redo(Oplog *log, LogRecord *r)
{
    if (r->kind != BYTES) {
        return true;
    }
    return rsd_media_put(log->media, r->time_ns, new_bytes(r), r->block);
}

/* The media file goes to the target that the header names. */
static bool move_media(Oplog *log)
{
    LogHeader *h = header(log);
    uint64_t pos = h->end;
    uint32_t last = log->last;

    while (pos > h->trunk_end) {
        LogRecord *r;

        pos -= last;
        r = record(log, pos);
        last = r->before;
        if (!undo(log, r, true)) {
            return false;
        }
    }
    log->last = last;
    __atomic_store_n(&h->end, pos, __ATOMIC_SEQ_CST);
    last = h->at < pos ? record(log, h->at)->before : last;
    for (pos = h->at; pos > h->target;) {
        LogRecord *r;

        pos -= last;
        r = record(log, pos);
        last = r->before;
        if (!undo(log, r, false)) {
            return false;
        }
    }
    for (pos = h->at; pos < h->target;) {
        LogRecord *r = record(log, pos);

        if (!redo(log, r)) {
            return false;
        }
        pos += r->bytes;
    }
    h->at = h->target;
    __atomic_store_n(&h->target, 0, __ATOMIC_SEQ_CST);
    return true;
}

/* Where the trunk is when it is just before operation op + 1 */
static uint64_t position(const Oplog *log, uint64_t op)
{
    return op < log->num_ops ? log->ops[op].pos : trunk_end(log);
}

bool rsd_oplog_go(Oplog *log, uint64_t op, char err[RSD_ERR_LEN])
{
    LogHeader *h = header(log);

    if (h->broken) {
        rsd_set_error(err, "the operation log has an end: the host's disk was "
                      "full; free some space and start a new one");
        return false;
    }
    if (op > log->num_ops) {
        rsd_set_error(err, "there is no operation %llu: the log has %llu",
                      (ull)op, (ull)log->num_ops);
        return false;
    }
    if (!on_branch(log)) {
        h->at = h->end;
        __atomic_store_n(&h->trunk_end, h->end, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&h->target, position(log, op), __ATOMIC_SEQ_CST);
    if (!move_media(log)) {
        rsd_set_error(err, "the host's disk fails while the media file is "
                      "rewound: %s", strerror(errno));
        return false;
    }
    log->at_op = op;
    return true;
}

/*
 * What was in flight
 */

static int by_seq(const void *a, const void *b, void *starts)
{
    const Begun *x = (const Begun *)starts + *(const uint64_t *)a;
    const Begun *y = (const Begun *)starts + *(const uint64_t *)b;

    return x->closed.seq < y->closed.seq ? -1 : 1;
}

/*
 * What waited in the write buffer after an operation, and was begun later, in
 * the order in which it came there, into log->waiting.
 */
static bool list_waiting(Oplog *log, uint64_t op)
{
    if (log->waiting_op == op && log->waiting_starts == log->num_starts) {
        return true;
    }
    log->num_waiting = 0;
    log->waiting_starts = 0;
    for (uint64_t n = log->ops[op].starts; n < log->ops[op].waiting; n++) {
        const Closed *closed = &log->starts[n].closed;

        if (closed->seq && closed->since <= op) {
            uint64_t *waiting = grow(log->waiting, log->num_waiting,
                                     &log->max_waiting, sizeof(*waiting));

            if (!waiting) {
                return false;
            }
            log->waiting = waiting;
            waiting[log->num_waiting++] = n;
        }
    }
    if (log->num_waiting) {
        qsort_r(log->waiting, log->num_waiting, sizeof(*log->waiting), by_seq,
                log->starts);
    }
    log->waiting_op = op;
    log->waiting_starts = log->num_starts;
    return true;
}

/*
 * The number of number i of what was in flight, or behind that waited to be;
 * NEVER: there are not so many
 */
static uint64_t find_in_flight(Oplog *log, uint64_t op, uint32_t i)
{
    uint64_t from = log->oldest, to = log->num_starts;

    if (op > log->num_ops) {
        return NEVER;
    }
    if (op < log->num_ops) {
        from = log->ops[op].oldest;
        to = log->ops[op].starts;
    }
    for (; from < to; from++) {
        if (log->starts[from].gone > op && !i--) {
            return from;
        }
    }
    if (op == log->num_ops || !list_waiting(log, op) ||
        i >= log->num_waiting) {
        return NEVER;
    }
    return log->waiting[i];
}

static void describe_start(const Oplog *log, uint64_t number, RsdLogged *to)
{
    const Begun *b = &log->starts[number];
    const LogRecord *r = record(log, b->pos);

    *to = (RsdLogged){
        .time_ns = r->time_ns,
        .kind = r->flags & START_ERASE ? RSD_LOGGED_ERASE
                                       : RSD_LOGGED_PROGRAM,
        .block = r->block,
        .page = r->page,
        .protected = r->flags & START_PROTECTED,
        .ends = b->ends,
    };
}

bool rsd_oplog_get_in_flight(Oplog *log, uint64_t op, uint32_t i,
                             RsdLogged *to)
{
    uint64_t number = find_in_flight(log, op, i);

    if (number == NEVER) {
        return false;
    }
    describe_start(log, number, to);
    to->waiting = op < log->num_ops && number >= log->ops[op].starts;
    return true;
}

bool rsd_oplog_get_op(const Oplog *log, uint64_t op, RsdLogged *to)
{
    const LogRecord *r;

    if (!op || op > log->num_ops) {
        return false;
    }
    r = record(log, log->ops[op - 1].pos);
    if (r->kind == DONE) {
        describe_start(log, r->ref, to);
    } else {
        *to = (RsdLogged){ .kind = r->kind == POWER ? RSD_LOGGED_POWER
                                                    : RSD_LOGGED_COMMAND,
                           .command = r->flags, .lba = r->ref };
    }
    to->time_ns = r->time_ns;
    return true;
}

bool rsd_oplog_content(Oplog *log, uint64_t op, uint32_t i, uint32_t slots,
                       uint8_t *content)
{
    const RsdMedia *media = log->media;
    uint64_t number = find_in_flight(log, op, i);
    const LogRecord *start = record(log, log->starts[number].pos);
    uint64_t rec = (uint8_t *)&media->rec[start->block] - media->base;
    uint64_t pos = log->ops[log->starts[number].gone - 1].pos;

    /* undone, a page is in its place, or in the record of what it replaced */
    for (uint32_t s = 0; s < slots; s++) {
        uint8_t *to = content + s * (size_t)(RSD_PAGE_SIZE + RSD_OOB_SIZE);

        if (!rsd_media_get(media, rsd_media_page(media, start->block,
                                                 start->page + s) -
                                  media->base, to, RSD_PAGE_SIZE)) {
            return false;
        }
        memcpy(to + RSD_PAGE_SIZE,
               rsd_media_oob(media, start->block, start->page + s),
               RSD_OOB_SIZE);
    }
    while ((pos += record(log, pos)->bytes) < trunk_end(log)) {
        LogRecord *r = record(log, pos);

        if (r->kind != BYTES || r->time_ns == rec) {
            break;
        }
        for (uint32_t s = 0; s < slots; s++) {
            uint8_t *to = content + s * (size_t)(RSD_PAGE_SIZE + RSD_OOB_SIZE);
            uint32_t page = start->page + s;

            if (media->base + r->time_ns ==
                rsd_media_page(media, start->block, page)) {
                memcpy(to, new_bytes(r), r->block);
            } else if (media->base + r->time_ns ==
                       rsd_media_oob(media, start->block, page)) {
                memcpy(to + RSD_PAGE_SIZE, new_bytes(r), r->block);
            }
        }
    }
    return true;
}

void rsd_oplog_get_info(const Oplog *log, RsdOplogInfo *info)
{
    *info = (RsdOplogInfo){
        .on = true,
        .broken = header(log)->broken,
        .branch = on_branch(log),
        .ops = log->num_ops,
        .at = on_branch(log) ? log->at_op : log->num_ops,
        .bytes = header(log)->end,
    };
}

/*
 * Opening
 */

/* Reads the records into the index. False: they make no sense. */
static bool read_records(Oplog *log)
{
    const LogHeader *h = header(log);
    uint64_t pos = HEADER_BYTES, end = trunk_end(log);
    bool met_at = !on_branch(log) || h->at == HEADER_BYTES;
    bool met_target = !h->target || h->target == HEADER_BYTES;

    while (pos < h->end) {
        const LogRecord *r = record(log, pos);

        if (h->end - pos < sizeof(*r) || r->bytes < sizeof(*r) ||
            r->bytes % 8 || r->bytes > h->end - pos ||
            r->before != log->last || (pos < end && r->bytes > end - pos)) {
            return false;
        }
        if (pos < end) {
            bool ok = true;

            met_at |= pos + r->bytes == h->at;
            met_target |= pos + r->bytes == h->target;
            switch (r->kind) {
            case START:
                ok = index_start(log, pos) && r->block < log->num_blocks;
                break;
            case DONE:
                ok = r->ref < log->num_starts && index_op(log, pos);
                break;
            case COMMAND:
                ok = index_op(log, pos);
                break;
            case POWER:
                ok = index_power(log, pos, r->flags & POWER_WAITING);
                break;
            }
            if (!ok) {
                return false;
            }
            if (on_branch(log) && pos + r->bytes <= h->at) {
                log->at_op = log->num_ops;
            }
        }
        if (r->kind == BYTES) {
            if (r->time_ns > log->media->mapped ||
                r->block > log->media->mapped - r->time_ns ||
                r->bytes != sizeof(*r) + 2 * round_up8(r->block)) {
                return false;
            }
            keep_pages(log, r->time_ns, r->content);
            if (r->flags & BYTES_NEW) {
                keep_pages(log, r->time_ns,
                           r->content + (r->bytes - sizeof(*r)) / 2);
            }
        } else if (r->kind < START || r->kind > POWER) {
            return false;
        }
        log->last = r->bytes;
        pos += r->bytes;
    }
    return met_at && met_target;
}

static void reset_index(Oplog *log)
{
    log->num_ops = log->num_starts = log->oldest = log->at_op = 0;
    log->num_waiting = log->waiting_starts = 0;
    log->last = 0;
    memset(log->dies, 0, log->num_dies * sizeof(*log->dies));
    memset(log->kept, 0, log->num_blocks * sizeof(*log->kept));
}

/* An empty log of the media's present state */
void rsd_oplog_begin(Oplog *log)
{
    LogHeader *h = header(log);
    /* tells logs apart; equal runs leave equal files */
    uint64_t id = rsd_media_digest(log->media) | 1;

    /* neither's until both have it */
    rsd_media_set_log_id(log->media, 0);
    reset_index(log);
    h->trunk_end = h->at = h->target = h->broken = 0;
    h->end = HEADER_BYTES;
    h->id = id;
    h->media_bytes = log->media->mapped;
    h->version = VERSION;
    h->header_bytes = HEADER_BYTES;
    memcpy(h->magic, MAGIC, sizeof(h->magic));
    rsd_media_set_log_id(log->media, id);
}

static bool map_file(Oplog *log, const char *path, uint64_t size, char *err)
{
    log->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, log->fd,
                     0);
    if (log->base == MAP_FAILED) {
        log->base = NULL;
        rsd_set_error(err, "%s: cannot map it: %s", path, strerror(errno));
        return false;
    }
    log->size = size;
    return true;
}

/* For a view: the log's content in memory, to be changed freely */
static bool copy_to_memory(Oplog *log, const char *path, uint64_t size,
                           char *err)
{
    int copy = memfd_create("oplog", MFD_CLOEXEC);
    ssize_t n = copy < 0 ? -1 : 1;

    for (uint64_t done = 0; n > 0 && done < size; done += n) {
        n = sendfile(copy, log->fd, NULL, size - done);
    }
    if (n <= 0) {
        if (copy >= 0) {
            close(copy);
        }
        rsd_set_error(err, "%s: cannot copy it to memory: %s", path,
                      strerror(errno));
        return false;
    }
    close(log->fd);
    log->fd = copy;
    return true;
}

static bool check_header(const Oplog *log, const char *path, char *err)
{
    const LogHeader *h = header(log);

    if (memcmp(h->magic, MAGIC, sizeof(h->magic))) {
        rsd_set_error(err, "%s is not an operation log: give another name, or "
                      "remove it to have a new one made", path);
        return false;
    }
    if (h->version != VERSION || h->header_bytes != HEADER_BYTES) {
        rsd_set_error(err, "%s has format version %u, this program knows "
                      "version %u: remove it to have a new one made", path,
                      h->version, VERSION);
        return false;
    }
    if (h->id != rsd_media_get_log_id(log->media) ||
        h->media_bytes != log->media->mapped) {
        rsd_set_error(err, "%s is not the log of this media file as it is now, "
                      "which was used without it, or has another one: remove "
                      "it to have a new one made", path);
        return false;
    }
    return true;
}

/*
 * The last record may tell of a store that was not made, as the process was
 * killed before it: what is there is what will be.
 */
static void forget_phantom(Oplog *log)
{
    LogRecord *r = record(log, header(log)->end - log->last);

    if (log->last && !on_branch(log) && r->kind == BYTES &&
        r->flags & BYTES_NEW) {
        rsd_media_get(log->media, r->time_ns, new_bytes(r), r->block);
    }
}

static bool open_file(Oplog *log, const char *path, bool view, char *err)
{
    struct flock lock = { .l_type = view ? F_RDLCK : F_WRLCK,
                          .l_whence = SEEK_SET };
    struct stat st;

    log->fd = open(path, view ? O_RDONLY | O_CLOEXEC
                              : O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (log->fd < 0 || fstat(log->fd, &st) < 0) {
        rsd_set_error(err, "%s: cannot open the operation log: %s", path,
                      strerror(errno));
        return false;
    }
    if (!S_ISREG(st.st_mode)) {
        rsd_set_error(err, "%s is not a regular file: give a file's name",
                      path);
        return false;
    }
    if (fcntl(log->fd, F_OFD_SETLK, &lock)) {
        rsd_set_error(err, "%s is in use by another process: end that one, or "
                      "give another file", path);
        return false;
    }
    if (!st.st_size && !view) {
        while (fallocate(log->fd, 0, 0, GROW_BYTES) < 0) {
            if (errno != EINTR) {
                rsd_set_error(err, "%s: cannot allocate %llu bytes: %s", path,
                              (ull)GROW_BYTES, strerror(errno));
                unlink(path);
                return false;
            }
        }
        if (!map_file(log, path, GROW_BYTES, err)) {
            return false;
        }
        rsd_oplog_begin(log);
        return true;
    }
    if ((uint64_t)st.st_size < HEADER_BYTES) {
        rsd_set_error(err, "%s is not an operation log: give another name, or "
                      "remove it to have a new one made", path);
        return false;
    }
    if ((view && !copy_to_memory(log, path, st.st_size, err)) ||
        !map_file(log, path, st.st_size, err) ||
        !check_header(log, path, err)) {
        return false;
    }
    if (header(log)->end < HEADER_BYTES || header(log)->end > log->size ||
        trunk_end(log) < HEADER_BYTES || trunk_end(log) > header(log)->end ||
        (header(log)->target && !on_branch(log)) || !read_records(log)) {
        rsd_set_error(err, "%s is corrupt: remove it to have a new one made",
                      path);
        return false;
    }
    forget_phantom(log);
    if (header(log)->target && !move_media(log)) {
        rsd_set_error(err, "the host's disk fails while the media file is "
                      "rewound: %s", strerror(errno));
        return false;
    }
    return true;
}

static const RsdJournal journal = {
    .before_store = before_store,
    .before_data = before_data,
    .before_page = before_page,
    .keeps = keeps,
};

bool rsd_oplog_open(RsdMedia *media, const char *path, uint32_t dies,
                    uint64_t blocks, char err[RSD_ERR_LEN])
{
    Oplog *log = calloc(1, sizeof(*log));

    if (!log) {
        rsd_set_error(err, "no memory for the operation log");
        return false;
    }
    log->media = media;
    log->fd = -1;
    log->num_dies = dies;
    log->num_blocks = blocks;
    log->dies = calloc(dies, sizeof(*log->dies));
    log->kept = calloc(blocks, sizeof(*log->kept));
    if (!log->dies || !log->kept) {
        rsd_set_error(err, "no memory for the operation log");
    } else if (open_file(log, path, media->fd < 0, err)) {
        media->journal = &journal;
        media->journal_state = log;
        return true;
    }
    rsd_oplog_close(log);
    return false;
}

/*
 * Files that were equal when their logs began may differ now: what happened last
 * goes into the identity, so that the log of one is not taken for the other's.
 */
static void seal(Oplog *log)
{
    LogHeader *h = header(log);
    uint64_t id = rsd_media_digest(log->media);
    uint64_t from = h->end - log->last;

    for (; from < h->end; from += sizeof(id)) {
        id = rsd_random(id, *(uint64_t *)(log->base + from));
    }
    id |= 1;
    rsd_media_set_log_id(log->media, 0);
    h->id = id;
    rsd_media_set_log_id(log->media, id);
}

void rsd_oplog_close(Oplog *log)
{
    if (!log) {
        return;
    }
    if (log->media->journal_state == log && log->media->fd >= 0) {
        seal(log);
    }
    if (log->base) {
        munmap(log->base, log->size);
    }
    if (log->fd >= 0) {
        close(log->fd);
    }
    free(log->starts);
    free(log->ops);
    free(log->dies);
    free(log->kept);
    free(log->waiting);
    free(log);
}
