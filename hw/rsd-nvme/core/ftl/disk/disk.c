/*
 * A rotating disk: commands, in which order the arm serves them, and what it
 * does meanwhile.
 *
 * The arm does one thing at a time, and the whole of it. It is called back from
 * reading ahead alone.
 *
 * Reads. What the cache has at the beginning of a read is not read. One that
 * the cache has all of is done at once. After a read the arm reads on, until it
 * has read disk-segment-size more or has something else to do; when that is, is
 * computed when somebody asks. A read that ends within what is going to be read
 * in this way joins in, if nobody else waits for the arm. Reads that joined are
 * done in their order.
 *
 * Writes. One that fits is in the write cache, and done, as soon as there is
 * room, in order of submission. With FUA, without a write cache, or if it is
 * larger than that, it goes to the medium, as write zeroes does. What is in the
 * cache goes there whenever the arm has nothing else to do, a run of a track at
 * most at a time. A flush waits for what was done before it.
 *
 * Queue. Of the first 32 commands that wait for the arm the one goes whose
 * first slot comes soonest, of equals the first. When 64 in succession were not
 * the first one, the first one goes. After 64 commands, or after one, if a
 * flush waits or a write for room, a run of the write cache goes.
 *
 * Order. A command that overlaps an earlier one, not both being reads, waits
 * until that is done.
 *
 * Trims take no time: a bit on the medium says whether an LBA was written and
 * not trimmed since. The flash's blocks are no more than places in the file.
 *
 * Failures. If the host's disk does not take what goes to the medium, the drive
 * is read-only, and what is in the write cache stays there: it can be read, and
 * flushes fail.
 *
 * Power. The cache is lost. A write that is under way has left what has passed
 * under the head, in whole slots.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "disk.h"

#define LOOKED_AT 32u           /* of those that wait */
#define TURNS 64u               /* that somebody else has */

typedef struct CmdList {
    Cmd *head, *tail;           /* by Cmd.wait_next */
} CmdList;

/* What the arm does. Ahead: it reads, and nobody waits for it */
typedef enum Doing { RESTING, AHEAD, READING, WRITING } Doing;

typedef struct Disk {
    Ns *ns;
    Mechanics mechanics;
    DiskCache cache;
    Doing doing;
    Arm arm;                    /* where it set out, */
    uint64_t since;             /* when, */
    uint64_t lba;               /* to where, */
    uint64_t end;               /* and up to where: read ahead, it can go on */
    Segment *segment;           /* that it reads to; NULL: none */
    Cmd *writer;                /* NULL: it writes the cache's run */
    CmdList readers;            /* whose reads it does, in their order */
    CmdList queue;              /* that wait for it */
    CmdList blocked;            /* that wait for others that they overlap, */
    CmdList room;               /* for room in the write cache, */
    CmdList flushes;            /* for what is in it */
    Span *spans;                /* of all that are not done */
    uint32_t passed_over;       /* how often the queue's first one was not */
    uint32_t turns;             /* of the queue, since one of the cache */
} Disk;

/* What is kept with a command */
typedef struct Request {
    uint64_t from;              /* a read: LBA from which on it is read */
    uint64_t number;            /* a flush: of writes that it has to wait for */
} Request;

static Request *request_of(const Cmd *cmd)
{
    return rsd_cmd_area(cmd);
}

static uint64_t end_of(const Cmd *cmd)
{
    return cmd->pub.lba + cmd->pub.nlb;
}

/*
 * Lists
 */

static void add(CmdList *list, Cmd *cmd)
{
    cmd->wait_next = NULL;
    if (list->head) {
        list->tail->wait_next = cmd;
    } else {
        list->head = cmd;
    }
    list->tail = cmd;
}

/* Takes out the one behind prev, or the first one. */
static Cmd *take_behind(CmdList *list, Cmd *prev)
{
    Cmd **link = prev ? &prev->wait_next : &list->head;
    Cmd *cmd = *link;

    *link = cmd->wait_next;
    if (list->tail == cmd) {
        list->tail = prev;
    }
    return cmd;
}

/* It has waited for something, and that is over: it takes effect. */
static void finish(Disk *d, Cmd *cmd)
{
    if (cmd->pub.op != RSD_FLUSH) {
        rsd_span_remove(&d->spans, &cmd->span);
    }
    rsd_cmd_drop(d->ns->drive, cmd);
}

/*
 * The medium
 */

static bool is_written(const Disk *d, uint64_t lba)
{
    return d->ns->drive->media.written[lba / 64] >> lba % 64 & 1;
}

/* Of n LBAs */
static void set_written(Disk *d, uint64_t lba, uint64_t n, bool to)
{
    RsdMedia *media = &d->ns->drive->media;

    while (n) {
        uint64_t *word = &media->written[lba / 64];
        uint32_t in_word = 64 - lba % 64 < n ? 64 - lba % 64 : n;
        uint64_t bits = UINT64_MAX >> (64 - in_word) << lba % 64;

        /* release: the data it declares were stored before */
        __atomic_store_n(word, to ? *word | bits : *word & ~bits,
                         __ATOMIC_RELEASE);
        lba += in_word;
        n -= in_word;
    }
}

static void fail(Disk *d, Cmd *cmd)
{
    d->ns->drive->count->media_errors++;
    if (cmd) {
        cmd->pub.status = RSD_E_MEDIA;
    }
}

static void store(Disk *d, Cmd *cmd, uint64_t lba, const uint8_t *data)
{
    RsdMedia *media = &d->ns->drive->media;

    if (data && !rsd_media_store(media, lba / media->pages,
                                 lba % media->pages, data)) {
        fail(d, cmd);
        rsd_drive_fail(d->ns->drive);
        return;
    }
    set_written(d, lba, 1, true);
}

/* The first n slots that the arm writes are on the medium. */
static void store_all(Disk *d, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const Dirty *run = d->cache.writing;
        Cmd *cmd = d->writer;

        if (!cmd) {
            if (run[i].number != RSD_DROPPED) {
                store(d, NULL, run[i].lba, run[i].data);
            }
        } else if (cmd->pub.op == RSD_WRITE_ZEROES) {
            set_written(d, d->lba + i, 1, false);
        } else {
            store(d, cmd, d->lba + i,
                  cmd->pub.data ? cmd->pub.data + i * RSD_PAGE_SIZE : NULL);
        }
    }
    d->ns->drive->count->disk_write_pages += n;
}

static void load(Disk *d, Cmd *cmd, uint32_t i)
{
    RsdMedia *media = &d->ns->drive->media;
    uint64_t lba = cmd->pub.lba + i;
    uint8_t *to = cmd->pub.data ? cmd->pub.data + (size_t)i * RSD_PAGE_SIZE
                                : NULL;
    const Dirty *dirty = rsd_disk_cache_find(&d->cache, lba);

    if (dirty) {
        if (to) {
            memcpy(to, dirty->data, RSD_PAGE_SIZE);
        }
    } else if (!is_written(d, lba)) {
        rsd_read_unwritten(cmd, i);
    } else if (to && !rsd_media_load(media, lba / media->pages,
                                     lba % media->pages, to)) {
        fail(d, cmd);
    }
}

static void finish_read(Disk *d, Cmd *cmd)
{
    RsdCounters *count = d->ns->drive->count;
    uint64_t hits = request_of(cmd)->from - cmd->pub.lba;

    for (uint32_t i = 0; i < cmd->pub.nlb; i++) {
        load(d, cmd, i);
    }
    count->disk_cache_hits += hits;
    count->disk_read_pages += cmd->pub.nlb - hits;
    rsd_disk_cache_touch(&d->cache, cmd->pub.lba, end_of(cmd));
    finish(d, cmd);
}

/*
 * The arm
 */

/* The timer is for when it has passed n LBAs. */
static void move(Disk *d, uint64_t n)
{
    RsdCounters *count = d->ns->drive->count;
    Motion motion = { 0 };
    Arm arm = d->arm;

    rsd_sched_timer(d->ns->drive, RSD_TIMER_FTL,
                    rsd_pass(&d->mechanics, &arm, d->since, d->lba, n,
                             &motion));
    count->disk_seeks += motion.seeks;
    count->disk_seek_ns += motion.seek_ns;
    count->disk_rotate_ns += motion.rotate_ns;
    count->disk_transfer_ns += motion.transfer_ns;
}

/* It has passed n LBAs by now, and is there. */
static void arrive(Disk *d, uint64_t n)
{
    rsd_pass(&d->mechanics, &d->arm, d->since, d->lba, n, NULL);
    d->since = d->ns->drive->sched.now;
    d->lba += n;
}

/* The segment has what was read ahead by now. Where is the arm? */
static Arm look_ahead(Disk *d)
{
    Arm arm = d->arm;
    uint64_t n = rsd_passed(&d->mechanics, &arm, d->since, d->lba,
                            d->end - d->lba, d->ns->drive->sched.now);

    if (d->lba + n > d->segment->end) {
        rsd_disk_cache_extend(&d->cache, d->segment, d->lba + n);
    }
    return arm;
}

/* Where the arm would set out from now */
static Arm arm_now(Disk *d)
{
    return d->doing == AHEAD ? look_ahead(d) : d->arm;
}

static void stop_reading_ahead(Disk *d)
{
    d->arm = arm_now(d);
    d->doing = RESTING;
    d->since = d->ns->drive->sched.now;
}

/* How far it may read for one that ends there */
static uint64_t ahead_of(const Disk *d, uint64_t end)
{
    uint64_t ahead = d->segment ? d->cache.segment_slots : 0;

    return d->ns->geo.lbas - end < ahead ? d->ns->geo.lbas : end + ahead;
}

/* The first one of those whose reads it does is the next to be done. */
static void read_on(Disk *d)
{
    uint64_t end = end_of(d->readers.head);

    d->doing = READING;
    /* one that joined behind another one may end before it */
    move(d, end > d->lba ? end - d->lba : 0);
}

static void start_read(Disk *d, Cmd *cmd)
{
    Request *r = request_of(cmd);

    d->segment = rsd_disk_cache_segment(&d->cache, r->from);
    d->lba = r->from;
    d->end = ahead_of(d, end_of(cmd));
    add(&d->readers, cmd);
    read_on(d);
}

static void end_read(Disk *d)
{
    Cmd *cmd = take_behind(&d->readers, NULL);

    if (end_of(cmd) > d->lba) {
        arrive(d, end_of(cmd) - d->lba);
    }
    if (d->segment && d->lba > d->segment->end) {
        rsd_disk_cache_extend(&d->cache, d->segment, d->lba);
    }
    finish_read(d, cmd);
    if (d->readers.head) {
        read_on(d);
    } else {
        d->doing = d->segment ? AHEAD : RESTING;
    }
}

static void start_write(Disk *d, Cmd *cmd)
{
    d->doing = WRITING;
    d->writer = cmd;
    if (cmd) {
        d->lba = cmd->pub.lba;
        d->end = end_of(cmd);
    } else {
        rsd_disk_cache_take(&d->cache, &d->mechanics);
        d->lba = d->cache.writing[0].lba;
        d->end = d->lba + d->cache.num_writing;
    }
    move(d, d->end - d->lba);
}

static void end_write(Disk *d)
{
    Cmd *cmd = d->writer;

    store_all(d, d->end - d->lba);
    arrive(d, d->end - d->lba);
    d->doing = RESTING;
    if (cmd) {
        if (cmd->pub.status == RSD_OK) {
            /* what it was written over with is not to come back */
            rsd_disk_cache_drop(&d->cache, cmd->pub.lba, cmd->pub.nlb);
        }
        finish(d, cmd);
    } else if (d->ns->drive->failed) {
        rsd_disk_cache_take_back(&d->cache);
    } else {
        rsd_disk_cache_written(&d->cache);
    }
}

/*
 * Who goes
 */

/* The LBA that the arm has to go to for it; end_of(): none */
static uint64_t first_of(Disk *d, Cmd *cmd)
{
    if (cmd->pub.op != RSD_READ) {
        return cmd->pub.lba;
    }
    return request_of(cmd)->from =
        rsd_disk_cache_missing(&d->cache, cmd->pub.lba, end_of(cmd));
}

/* Of the queue: the one before it, NULL: it is the first one */
static Cmd *choose(Disk *d)
{
    uint64_t now = d->ns->drive->sched.now, best = UINT64_MAX;
    Cmd *prev = NULL, *before = NULL;
    uint32_t n = 0;

    if (d->passed_over == TURNS) {
        return NULL;
    }
    for (Cmd *cmd = d->queue.head; cmd && n < LOOKED_AT; n++) {
        uint64_t lba = first_of(d, cmd);
        uint64_t time = lba == end_of(cmd)
                            ? 0 : rsd_positioning_time(&d->mechanics, d->arm,
                                                       now, lba);

        if (time < best) {
            best = time;
            before = prev;
        }
        prev = cmd;
        cmd = cmd->wait_next;
    }
    return before;
}

/* Somebody is waiting for the write cache to get emptier. */
static bool is_urgent(const Disk *d)
{
    return d->room.head || d->flushes.head;
}

/* Gives the arm something to do. True: a command was done instead. */
static bool start(Disk *d)
{
    bool dirty = d->cache.num_dirty && !d->ns->drive->failed;
    Cmd *cmd, *before;

    if (d->doing == READING || d->doing == WRITING ||
        !(dirty || d->queue.head)) {
        return false;
    }
    stop_reading_ahead(d);
    if (dirty && (!d->queue.head || d->turns >= (is_urgent(d) ? 1 : TURNS))) {
        d->turns = 0;
        start_write(d, NULL);
        return false;
    }
    before = choose(d);
    d->passed_over = before ? d->passed_over + 1 : 0;
    d->turns = dirty ? d->turns + 1 : 0;
    cmd = take_behind(&d->queue, before);
    if (cmd->pub.op != RSD_READ) {
        start_write(d, cmd);
    } else if (first_of(d, cmd) == end_of(cmd)) {
        finish_read(d, cmd);
        return true;
    } else {
        start_read(d, cmd);
    }
    return false;
}

/* Can the read join those that the arm does, or what it reads ahead? */
static bool joins(const Disk *d, const Cmd *cmd)
{
    return (d->doing == AHEAD || d->doing == READING) && d->segment &&
           !d->queue.head && !d->cache.num_dirty &&
           request_of(cmd)->from >= d->lba && end_of(cmd) <= d->end;
}

static void enter_read(Disk *d, Cmd *cmd)
{
    if (d->doing == AHEAD) {
        look_ahead(d);
    }
    if (first_of(d, cmd) == end_of(cmd)) {
        finish_read(d, cmd);
    } else if (!joins(d, cmd)) {
        add(&d->queue, cmd);
    } else {
        bool first = d->doing == AHEAD;
        uint64_t end = ahead_of(d, end_of(cmd));

        add(&d->readers, cmd);
        d->end = end > d->end ? end : d->end;
        if (first) {
            read_on(d);
        }
    }
}

static bool goes_through(const Disk *d, const Cmd *cmd)
{
    return cmd->pub.fua || cmd->pub.op == RSD_WRITE_ZEROES ||
           cmd->pub.nlb > d->cache.slots;
}

/* Takes the write into the cache, if there is room. */
static bool cache_write(Disk *d, Cmd *cmd)
{
    if (!rsd_disk_cache_has_room(&d->cache, cmd->pub.lba, cmd->pub.nlb)) {
        return false;
    }
    d->ns->drive->count->disk_overwrites +=
        rsd_disk_cache_write(&d->cache, cmd->pub.lba, cmd->pub.nlb,
                             cmd->pub.data);
    finish(d, cmd);
    return true;
}

static void trim(Disk *d, uint64_t lba, uint64_t n)
{
    rsd_disk_cache_drop(&d->cache, lba, n);
    set_written(d, lba, n, false);
}

/* Nothing that it overlaps is before it. */
static void enter(Disk *d, Cmd *cmd)
{
    switch (cmd->pub.op) {
    case RSD_READ:
        enter_read(d, cmd);
        break;
    case RSD_TRIM:
        trim(d, cmd->pub.lba, cmd->pub.nlb);
        finish(d, cmd);
        break;
    default:
        if (goes_through(d, cmd)) {
            add(&d->queue, cmd);
        } else if (d->room.head || !cache_write(d, cmd)) {
            add(&d->room, cmd);
        }
        break;
    }
}

/* Those that overlap nothing any more. True: there was one. */
static bool release(Disk *d)
{
    Cmd *prev = NULL;

    for (Cmd *cmd = d->blocked.head, *next; cmd; cmd = next) {
        next = cmd->wait_next;
        if (rsd_span_find(d->spans, &cmd->span)) {
            prev = cmd;
        } else {
            enter(d, take_behind(&d->blocked, prev));
            return true;
        }
    }
    return false;
}

static bool fill_room(Disk *d)
{
    Cmd *cmd = d->room.head;

    if (cmd && d->ns->drive->failed) {
        cmd->pub.status = RSD_E_READONLY;
        finish(d, take_behind(&d->room, NULL));
        return true;
    }
    if (!cmd || !rsd_disk_cache_has_room(&d->cache, cmd->pub.lba,
                                         cmd->pub.nlb)) {
        return false;
    }
    return cache_write(d, take_behind(&d->room, NULL));
}

static bool end_flush(Disk *d)
{
    Cmd *cmd = d->flushes.head;

    if (!cmd) {
        return false;
    }
    if (rsd_disk_cache_has_before(&d->cache, request_of(cmd)->number)) {
        if (!d->ns->drive->failed) {
            return false;
        }
        cmd->pub.status = RSD_E_MEDIA;
    }
    finish(d, take_behind(&d->flushes, NULL));
    return true;
}

/* Something has changed. */
static void go_on(Disk *d)
{
    while (release(d) || fill_room(d) || end_flush(d) || start(d)) {
        /* until nobody can go on */
    }
}

static void disk_timer(Ns *ns)
{
    Disk *d = ns->state;

    if (d->doing == WRITING) {
        if (ns->drive->watched) {
            ns->drive->up->wrote(ns->drive);
        }
        end_write(d);
    } else {
        end_read(d);
    }
    go_on(d);
}

/* Host space for a write. False: there is none */
static bool reserve(Disk *d, const Cmd *cmd)
{
    RsdMedia *media = &d->ns->drive->media;
    uint64_t lba = cmd->pub.lba;

    while (lba < end_of(cmd)) {
        uint32_t page = lba % media->pages, n = 0;

        while (lba + n < end_of(cmd) && page + n < media->pages &&
               !is_written(d, lba + n)) {
            n++;
        }
        if (n && rsd_media_reserve_data(media, lba / media->pages, page, n) <
                 0) {
            return false;
        }
        lba += n ? n : 1;
    }
    return true;
}

static RsdStatus disk_submit(Ns *ns, Cmd *cmd)
{
    Disk *d = ns->state;

    switch (cmd->pub.op) {
    case RSD_READ:
    case RSD_WRITE:
    case RSD_TRIM:
    case RSD_WRITE_ZEROES:
        break;
    case RSD_FLUSH:
        request_of(cmd)->number = d->cache.writes;
        cmd->pending++;
        add(&d->flushes, cmd);
        go_on(d);
        return RSD_OK;
    default:
        return RSD_E_RANGE;
    }
    if (cmd->pub.op == RSD_WRITE && !reserve(d, cmd)) {
        return RSD_E_NOSPC;
    }
    cmd->pending++;
    cmd->span = (Span){
        .from = cmd->pub.lba,
        .end = end_of(cmd),
        .order = cmd->begun,
        .read = cmd->pub.op == RSD_READ,
    };
    rsd_span_add(&d->spans, &cmd->span);
    add(&d->blocked, cmd);
    go_on(d);
    return RSD_OK;
}

/* No operation is ever queued to a die. */
static void disk_op_done(Ns *ns, Op *op)
{
    rsd_op_finish(ns->drive, op);
}

static void disk_power_cut(Ns *ns)
{
    Disk *d = ns->state;
    Arm arm = d->arm;

    if (d->doing == WRITING) {
        store_all(d, rsd_passed(&d->mechanics, &arm, d->since, d->lba,
                                d->end - d->lba, ns->drive->sched.now));
    }
}

static void disk_format(Ns *ns)
{
    trim(ns->state, 0, ns->geo.lbas);
}

/*
 * Opening
 */

static bool disk_geometry(Ns *ns, char err[RSD_ERR_LEN])
{
    const RsdDrive *drive = ns->drive;

    (void)err;
    ns->geo.lbas = (uint64_t)drive->dies * ns->visible * drive->pages;
    return true;
}

static bool disk_open(Ns *ns, char err[RSD_ERR_LEN])
{
    Disk *d = ns->state = rsd_alloc(ns->drive, sizeof(*d));

    if (!d) {
        rsd_set_error(err, "no memory for a disk");
        return false;
    }
    d->ns = ns;
    if (!rsd_mechanics_init(ns->drive, &d->mechanics, ns->geo.lbas) ||
        !rsd_disk_cache_init(ns->drive, &d->cache,
                             ns->drive->cfg.disk_outer_slots)) {
        rsd_set_error(err, "no memory for a disk of disk-write-cache=%llu: "
                      "choose less",
                      (unsigned long long)ns->drive->cfg.disk_write_cache);
        return false;
    }
    return true;
}

static void disk_close(Ns *ns)
{
    Disk *d = ns->state;

    if (!d) {
        return;
    }
    rsd_disk_cache_fini(ns->drive, &d->cache);
    rsd_mechanics_fini(ns->drive, &d->mechanics);
    rsd_release(ns->drive, d, sizeof(*d));
    ns->state = NULL;
}

const Personality rsd_ftl_disk = {
    .geometry = disk_geometry,
    .open = disk_open,
    .close = disk_close,
    .submit = disk_submit,
    .op_done = disk_op_done,
    .timer = disk_timer,
    .power_cut = disk_power_cut,
    .format = disk_format,
    .cmd_size = sizeof(Request),
};
