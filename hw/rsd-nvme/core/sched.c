/*
 * The event machine: queues, dies and buses.
 *
 * A page operation goes through a fixed sequence:
 *
 *     read      bus tCMD, die tR, bus tX
 *     program   bus tCMD + tX in one go, die tPROG
 *     erase     bus tCMD, die tBERS
 *
 * Its die is taken from the beginning to the end, one operation at a time (no
 * cache mode). Each die serves a FIFO; with queue=global there is one FIFO for
 * the drive, whose first operation makes all others wait until its die is free.
 *
 * A bus serves, first come first served, in two classes: commands without data
 * (of reads and erases) before tenures with data (programs, pages read). The
 * order matters near the point where a channel's dies are just enough to keep
 * its bus busy: when a die has sent its page, its next read command must not
 * wait for another die's page, or the die idles meanwhile and the bus lacks a
 * page later. With the command first, a die's "page out, next command in" is
 * one tenure and the time between its tenures is constant, so that dies fall
 * into step and bandwidth is min(1 / (tCMD + tX), ways / (tCMD + tX + tR)).
 * It cannot starve data: after its command a die wants nothing but data.
 * All operations that end at one instant are seen before the bus is given away
 * at that instant.
 *
 * Events are ordered by time, then by when they were scheduled. There is at
 * most one operation event and one idle event a die, and one event a bus.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stddef.h>

#include "internal.h"

#define CHILDREN 4u             /* of a heap node */
#define SOURCE_BITS 16

/*
 * Sources of events: the operation of die n is n, its idling is dies + n, the
 * bus of channel n is 2 * dies + n.
 */

static bool event_before(const Event *a, const Event *b)
{
    return a->when < b->when || (a->when == b->when && a->order < b->order);
}

static void push(Sched *s, uint64_t when, uint32_t source)
{
    Event event = { when, s->serial++ << SOURCE_BITS | source };
    uint32_t pos = s->heap_len++;

    while (pos) {
        uint32_t up = (pos - 1) / CHILDREN;

        if (!event_before(&event, &s->heap[up])) {
            break;
        }
        s->heap[pos] = s->heap[up];
        pos = up;
    }
    s->heap[pos] = event;
}

static uint32_t pop(Sched *s)
{
    uint32_t source = s->heap[0].order & ((1u << SOURCE_BITS) - 1);
    Event last = s->heap[--s->heap_len];
    uint32_t pos = 0;

    for (;;) {
        uint32_t child = pos * CHILDREN + 1, least = child;
        uint32_t end = child + CHILDREN;

        if (child >= s->heap_len) {
            break;
        }
        if (end > s->heap_len) {
            end = s->heap_len;
        }
        for (child++; child < end; child++) {
            if (event_before(&s->heap[child], &s->heap[least])) {
                least = child;
            }
        }
        if (!event_before(&s->heap[least], &last)) {
            break;
        }
        s->heap[pos] = s->heap[least];
        pos = least;
    }
    s->heap[pos] = last;
    return source;
}

bool rsd_sched_init(RsdDrive *drive)
{
    Sched *s = &drive->sched;

    s->heap = rsd_alloc(drive, (2 * drive->dies + drive->cfg.channels) *
                               sizeof(Event));
    s->dies = rsd_alloc(drive, drive->dies * sizeof(Die));
    s->buses = rsd_alloc(drive, drive->cfg.channels * sizeof(Bus));
    if (!s->heap || !s->dies || !s->buses) {
        return false;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        s->dies[d].channel = d % drive->cfg.channels;
    }
    return true;
}

void rsd_sched_fini(RsdDrive *drive)
{
    Sched *s = &drive->sched;

    rsd_release(drive, s->heap, (2 * drive->dies + drive->cfg.channels) *
                                sizeof(Event));
    rsd_release(drive, s->dies, drive->dies * sizeof(Die));
    rsd_release(drive, s->buses, drive->cfg.channels * sizeof(Bus));
}

/*
 * Buses
 */

static void request_bus(Sched *s, Die *die)
{
    Bus *bus = &s->buses[die->channel];
    DieList *list = &bus->data;

    if (!die->transfer && die->active->kind != OP_PROGRAM) {
        list = &bus->brief;
    }
    die->bus_next = NULL;
    if (list->head) {
        list->tail->bus_next = die;
    } else {
        list->head = die;
    }
    list->tail = die;
    s->kicked |= UINT64_C(1) << die->channel;
}

/* The die has the bus: from now on all its times are known. */
static void begin_tenure(RsdDrive *drive, Bus *bus, Die *die)
{
    const RsdConfig *cfg = &drive->cfg;
    Sched *s = &drive->sched;
    uint64_t tenure = cfg->t_cmd_ns, array = 0;

    if (die->transfer) {
        tenure = cfg->t_xfer_ns;
    } else {
        die->start = s->now;
        switch (die->active->kind) {
        case OP_READ:
            array = cfg->t_read_ns;
            break;
        case OP_PROGRAM:
            tenure += cfg->t_xfer_ns;
            array = cfg->t_prog_ns;
            break;
        case OP_ERASE:
            array = cfg->t_erase_ns;
            break;
        }
    }
    bus->free_at = s->now + tenure;
    push(s, bus->free_at + array, die - s->dies);
}

static void arbitrate(RsdDrive *drive, uint32_t channel)
{
    Sched *s = &drive->sched;
    Bus *bus = &s->buses[channel];

    for (;;) {
        DieList *list = bus->brief.head ? &bus->brief : &bus->data;
        Die *die = list->head;

        if (!die) {
            return;
        }
        if (bus->free_at > s->now) {
            if (!bus->armed) {
                bus->armed = true;
                push(s, bus->free_at, 2 * drive->dies + channel);
            }
            return;
        }
        list->head = die->bus_next;
        begin_tenure(drive, bus, die);
    }
}

/* Gives away the buses that are wanted. */
static void arbitrate_all(RsdDrive *drive)
{
    Sched *s = &drive->sched;

    while (s->kicked) {
        uint32_t channel = __builtin_ctzll(s->kicked);

        s->kicked &= s->kicked - 1;
        arbitrate(drive, channel);
    }
}

/*
 * Dies
 */

static void start_on_die(RsdDrive *drive, Die *die, Op *op)
{
    die->active = op;
    die->queued--;
    request_bus(&drive->sched, die);
}

/* Starts what may start, a die having become free or an operation queued. */
static void dispatch(RsdDrive *drive, Die *die)
{
    Sched *s = &drive->sched;

    if (drive->cfg.queue == RSD_QUEUE_WAY) {
        Op *op = die->head;

        if (op && !die->active) {
            die->head = op->next;
            start_on_die(drive, die, op);
        }
        return;
    }
    while (s->head && !s->dies[s->head->die].active) {
        Op *op = s->head;

        s->head = op->next;
        start_on_die(drive, &s->dies[op->die], op);
    }
}

void rsd_sched_queue(RsdDrive *drive, Op *op)
{
    Sched *s = &drive->sched;
    Die *die = &s->dies[op->die];
    bool global = drive->cfg.queue == RSD_QUEUE_GLOBAL;
    Op **head = global ? &s->head : &die->head;
    Op **tail = global ? &s->tail : &die->tail;

    op->next = NULL;
    op->enqueued = s->now;
    if (*head) {
        (*tail)->next = op;
    } else {
        *head = op;
    }
    *tail = op;
    die->queued++;
    dispatch(drive, die);
}

void rsd_sched_settle(RsdDrive *drive)
{
    arbitrate_all(drive);
}

static bool die_idle(const Die *die)
{
    return !die->active && !die->queued;
}

static void arm_idle(RsdDrive *drive, uint32_t d)
{
    Sched *s = &drive->sched;
    Die *die = &s->dies[d];

    if (!die->idle_armed && drive->personality->has_background(drive, d)) {
        die->idle_armed = true;
        push(s, die->idle_since + drive->cfg.idle_erase_ns, drive->dies + d);
    }
}

void rsd_sched_background(RsdDrive *drive, uint32_t d)
{
    Die *die = &drive->sched.dies[d];

    if (die_idle(die)) {
        die->idle_since = drive->sched.now;
        arm_idle(drive, d);
    }
}

static void idle_event(RsdDrive *drive, uint32_t d)
{
    Die *die = &drive->sched.dies[d];

    die->idle_armed = false;
    if (!die_idle(die)) {
        return;                 /* armed again when it becomes idle */
    }
    if (die->idle_since + drive->cfg.idle_erase_ns > drive->sched.now) {
        arm_idle(drive, d);     /* it has worked meanwhile */
        return;
    }
    drive->personality->background(drive, d);
}

static void account(RsdDrive *drive, const Die *die, const Op *op)
{
    RsdCounters *count = drive->count;
    uint64_t wait = die->start - op->enqueued;
    uint64_t *by_cause = &count->erase_host;

    count->queue_wait_ns += wait;
    if (wait > count->queue_wait_max_ns) {
        count->queue_wait_max_ns = wait;
    }
    count->die_busy_ns += drive->sched.now - die->start;
    count->bus_busy_ns += drive->cfg.t_cmd_ns;
    if (op->kind == OP_ERASE) {
        if (op->background) {
            count->erase_idle++;
        } else {
            count->erase_on_demand++;
        }
    } else {
        count->bus_busy_ns += drive->cfg.t_xfer_ns;
        by_cause = op->kind == OP_READ ? &count->read_host
                                       : &count->prog_host;
    }
    by_cause[op->cause]++;
}

_Static_assert(offsetof(RsdCounters, read_pad) ==
               offsetof(RsdCounters, read_host) + RSD_CAUSE_PAD * 8 &&
               offsetof(RsdCounters, prog_pad) ==
               offsetof(RsdCounters, prog_host) + RSD_CAUSE_PAD * 8 &&
               offsetof(RsdCounters, erase_pad) ==
               offsetof(RsdCounters, erase_host) + RSD_CAUSE_PAD * 8,
               "counters by cause are in the order of RsdCause");

static void op_event(RsdDrive *drive, uint32_t d)
{
    Sched *s = &drive->sched;
    Die *die = &s->dies[d];
    Op *op = die->active;
    bool background = op->background;

    if (op->kind == OP_READ && !die->transfer) {
        die->transfer = true;
        request_bus(s, die);
        return;
    }
    die->transfer = false;
    account(drive, die, op);
    rsd_op_execute(drive, op);
    if (--op->count) {
        op->page++;
        op->index += op->stride;
        request_bus(s, die);
        return;
    }
    die->active = NULL;
    drive->personality->op_done(drive, op);
    dispatch(drive, die);
    if (die_idle(die)) {
        /* once begun, background work goes on until the host comes */
        if (background && drive->personality->background(drive, d)) {
            return;
        }
        die->idle_since = s->now;
        arm_idle(drive, d);
    }
}

/*
 * Time
 */

bool rsd_sched_next(const RsdDrive *drive, uint64_t *when)
{
    if (!drive->sched.heap_len) {
        return false;
    }
    *when = drive->sched.heap[0].when;
    return true;
}

void rsd_sched_run(RsdDrive *drive, uint64_t now)
{
    Sched *s = &drive->sched;

    while (s->heap_len && s->heap[0].when <= now) {
        s->now = s->heap[0].when;
        do {
            uint32_t source = pop(s);

            if (source < drive->dies) {
                op_event(drive, source);
            } else if (source < 2 * drive->dies) {
                idle_event(drive, source - drive->dies);
            } else {
                source -= 2 * drive->dies;
                s->buses[source].armed = false;
                s->kicked |= UINT64_C(1) << source;
            }
        } while (s->heap_len && s->heap[0].when == s->now);
        arbitrate_all(drive);
    }
    if (now > s->now) {
        s->now = now;
    }
}
