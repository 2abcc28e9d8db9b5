/*
 * The event machine: queues, dies and buses.
 *
 * Steps. An operation, a run of slots of one block, is a sequence of steps:
 *
 *     read      of the run's slots in one row: n slots, of p planes
 *               bus p tCMD, die tR, bus n tX
 *     program   of a unit: n slots, p NAND pages
 *               bus p tCMD + n tX in one go, die tPROG [, bus tSTATUS]
 *     erase     of a block: p planes
 *               bus p tCMD, die tBERS [, bus tSTATUS]
 *
 * tR and tPROG are those of the row's page type, which is its number mod bits
 * of a cell; with one-shot, tPROG is t-prog. Only what was asked for of a row
 * crosses the bus. What the drive itself copies is read by rows, too: the slots
 * of a row that it wants need not be next to each other. A step takes effect at
 * its end.
 *
 * Retries (read-retries). A read of a block erased e times is repeated, command
 * to transfer, read-retries * e / endurance times, rounded down.
 *
 * A die does one step at a time, from the bus grant of its first tenure to its
 * end, and serves a FIFO; with queue=global there is one FIFO for the drive,
 * whose first operation makes all others wait until its die is free. The
 * exceptions, of a die with a queue of its own:
 *
 *   cache     (double register.) As soon as the array begins to program a step,
 *             the die's next one, if it is a program of the same block, asks
 *             for the bus; its array time begins when its data has come and the
 *             step before has left the array. When the array has read a row,
 *             the row moves on to the cache register, if that is free, else
 *             when it gets free, and asks for the bus; so does the command of
 *             the next step, if it is a read. A read with retries is not
 *             overlapped with its successor, nor are reads while a program or
 *             an erase is suspended. Status takes the place of the page
 *             sent.
 *   suspend   Before a program or an erase, also between the steps of a run,
 *             the first eligible read in the queue goes, the whole of it: one
 *             that no program or erase of its block is before, be it in the
 *             queue, begun or suspended. If there is one when the array begins
 *             a program or an erase, or when a read is queued, and the array
 *             needs more than tSUSPEND until its end, and the cache register is
 *             free, then the array stops; after tSUSPEND the die begins the
 *             read. When none is left, the array goes on with what was left of
 *             its time. At most suspend-reads operations get ahead of one step,
 *             so that nothing starves. With cache=on, the cache register is not
 *             free from when a successor has asked to be loaded ahead until the
 *             array begins it: a page read would overwrite its data. No program
 *             asks for that while a read may go before it.
 *
 * A bus serves, first come first served, in two classes: commands without data
 * (of reads and erases, status) before tenures with data (programs, pages
 * read). The order matters near the point where a channel's dies are just
 * enough to keep its bus busy: when a die has sent its page, its next read
 * command must not wait for another die's page, or the die idles meanwhile and
 * the bus lacks a page later. With the command first, a die's "page out, next
 * command in" is one tenure and the time between its tenures is constant, so
 * that dies fall into step and bandwidth is min(1 / (tCMD + tX), ways / (tCMD +
 * tX + tR)). It cannot starve data: after its command a die wants nothing but
 * data. All operations that end at one instant are seen before the bus is given
 * away at that instant.
 *
 * Events are ordered by time, then by when they were scheduled; that an array
 * begins, its data or command having come, is one of them. There is at most one
 * event of each source.
 *
 * Lanes. Steps of one kind take equally long, so they end in the order in which
 * they began: what is scheduled for them is put behind the last one in a ring,
 * and the next event is the first one of a few rings. What would not be in
 * order there, and all that comes seldom or at any time, is in a heap. What goes
 * out ends a tenure, so that its event says that the bus is free, too.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stddef.h>

#include "array.h"

#define CHILDREN 4u             /* of a heap node */
#define SOURCE_BITS 16

/*
 * These are sources of events, in the order of their numbers: the array of each
 * die, its output, its load and its idling; the buses; the lists of host.c; the
 * power.
 */
enum { FROM_ARRAY, FROM_OUT, FROM_LOAD, FROM_IDLE, DIE_SOURCES };

/* A die wants a bus to begin a step, to end one, or to load one ahead. */
enum { WANT_BEGIN, WANT_END, WANT_LOAD };

/* These are the states of a die's array. */
enum {
    FREE,                       /* Die.array is empty */
    ASKING,                     /* the command waits for the bus */
    BEGINNING,                  /* a program or erase that has the bus */
    WORKING,                    /* to array_end */
    DONE,                       /* the page waits for the cache register */
    STOPPING,                   /* suspended, but not yet free */
};

/*
 * This has no branches, since it is hard to predict which of two events is
 * first.
 */
static bool event_before(const Event *a, const Event *b)
{
    /* As one number of 128 bits, it takes two instructions. */
    return ((unsigned __int128)a->when << 64 | a->order) <
           ((unsigned __int128)b->when << 64 | b->order);
}

static uint32_t source_of(const Event *event)
{
    return event->order & ((1u << SOURCE_BITS) - 1);
}

/* Puts the event into that place of the heap. */
static void put_event(Sched *s, uint32_t pos, Event event)
{
    s->heap[pos] = event;
    if (s->places) {
        s->places[source_of(&event)] = pos;
    }
}

/* Puts an event into the place pos, or into the right place above. */
static void sift_up(Sched *s, uint32_t pos, Event event)
{
    while (pos) {
        uint32_t up = (pos - 1) / CHILDREN;

        if (!event_before(&event, &s->heap[up])) {
            break;
        }
        put_event(s, pos, s->heap[up]);
        pos = up;
    }
    put_event(s, pos, event);
}

/* Returns the first of two events, by their places. */
static uint32_t first_of(const Sched *s, uint32_t a, uint32_t b)
{
    return event_before(&s->heap[b], &s->heap[a]) ? b : a;
}

/* Puts an event into the place pos, or into the right place below. */
static void sift_down(Sched *s, uint32_t pos, Event event)
{
    for (;;) {
        uint32_t child = pos * CHILDREN + 1, least = child;

        if (child + CHILDREN <= s->heap_len) {
            least = first_of(s, first_of(s, child, child + 1),
                             first_of(s, child + 2, child + 3));
        } else if (child >= s->heap_len) {
            break;
        } else {
            for (child++; child < s->heap_len; child++) {
                least = first_of(s, least, child);
            }
        }
        if (!event_before(&s->heap[least], &event)) {
            break;
        }
        put_event(s, pos, s->heap[least]);
        pos = least;
    }
    put_event(s, pos, event);
}

_Static_assert(CHILDREN == 4, "sift_down() compares four");

/* A source without an event has this one. */
static const Event never = { UINT64_MAX, UINT64_MAX };

static bool has_event(const Sched *s)
{
    return s->next.order != UINT64_MAX;
}

static void note_head(Sched *s, uint32_t lane, Event event)
{
    s->heads[lane] = event;
    if (event_before(&event, &s->next)) {
        s->next = event;
        s->first = lane;
    }
}

/* Adds an event to the heap. */
static void push_event(Sched *s, Event event)
{
    sift_up(s, s->heap_len++, event);
    note_head(s, 0, s->heap[0]);
}

static void push(Sched *s, uint64_t when, uint32_t source)
{
    push_event(s, (Event){ when, s->serial++ << SOURCE_BITS | source });
}

/*
 * Adds an event to a lane, behind all others of the lane, if it is not before
 * them.
 */
static inline void push_lane(Sched *s, uint32_t number, uint64_t when,
                             uint32_t source)
{
    Event event = { when, s->serial << SOURCE_BITS | source };
    EventLane *lane = &s->lanes[number];

    if (when < lane->last) {
        push(s, when, source);
        return;
    }
    s->serial++;
    lane->last = when;
    lane->ring[lane->end++ & (s->lane_size - 1)] = event;
    if (lane->end - lane->from == 1) {
        note_head(s, number, event);
    }
}

static void find_first(Sched *s)
{
    const Event *first = s->heads, *last = s->heads + s->num_lanes;

    for (const Event *head = first + 1; head <= last; head++) {
        first = event_before(head, first) ? head : first;
    }
    s->next = *first;
    s->first = first - s->heads;
}

/* Removes the first event of the heap. */
static void pop_heap(Sched *s)
{
    Event last = s->heap[--s->heap_len];

    if (s->heap_len) {
        sift_down(s, 0, last);
    }
    s->heads[0] = s->heap_len ? s->heap[0] : never;
}

static uint32_t pop(Sched *s)
{
    uint32_t source = source_of(&s->next), first = s->first;
    EventLane *lane = &s->lanes[first];

    if (first) {
        uint32_t from = ++lane->from;

        s->heads[first] = from == lane->end
                              ? never : lane->ring[from & (s->lane_size - 1)];
    } else {
        pop_heap(s);
    }
    find_first(s);
    return source;
}

/*
 * Removes the event of a source, which has one. It is called only with suspend.
 */
static void cancel(Sched *s, uint32_t source)
{
    uint32_t pos = s->places[source];
    Event last = s->heap[--s->heap_len];

    if (pos < s->heap_len) {
        sift_down(s, pos, last);
        sift_up(s, pos, s->heap[pos]);
    }
    s->heads[0] = s->heap_len ? s->heap[0] : never;
    find_first(s);
}

static size_t num_sources(const RsdDrive *drive)
{
    return DIE_SOURCES * (size_t)drive->dies + drive->cfg.channels +
           RSD_TIMERS + 1;
}

static size_t heap_size(const RsdDrive *drive)
{
    return num_sources(drive) * sizeof(Event);
}

static size_t rings_size(const RsdDrive *drive)
{
    return drive->sched.num_lanes * drive->sched.lane_size * sizeof(Event);
}

static size_t places_size(const RsdDrive *drive)
{
    return num_sources(drive) * sizeof(uint32_t);
}

static size_t order_size(const RsdDrive *drive)
{
    return (size_t)drive->dies * drive->die_blocks * sizeof(BlockOrder);
}

/* Sets times by page type; 0 stands for the LSB page's. */
static void set_times(Sched *s, const RsdConfig *cfg)
{
    static const uint8_t which[4][4] = {
        { 0 }, { 0, 2 }, { 0, 1, 2 }, { 0, 1, 2, 3 }
    };
    const uint64_t read[4] = { cfg->t_read_ns, cfg->t_read_csb_ns,
                               cfg->t_read_msb_ns, cfg->t_read_tsb_ns };
    const uint64_t prog[4] = { cfg->t_prog_ns, cfg->t_prog_csb_ns,
                               cfg->t_prog_msb_ns, cfg->t_prog_tsb_ns };

    s->types = cfg->cell + 1;
    for (uint32_t i = 0; i < s->types; i++) {
        uint32_t type = which[cfg->cell][i];

        s->read_ns[i] = read[type] ? read[type] : read[0];
        s->prog_ns[i] = prog[type] && !cfg->one_shot ? prog[type] : prog[0];
    }
}

/*
 * Returns the lane of an event. There are lanes for reads and programs by page
 * type, then for output, for buses that are wanted while a program has them,
 * and for loads ahead. Erases are seldom: their lane is number 0, the heap.
 */
static uint32_t lane_of_array(const Sched *s, const Step *step)
{
    switch (step->op->kind) {
    case OP_READ:
        return 1 + step->type;
    case OP_PROGRAM:
        return 1 + s->types + step->type;
    case OP_ERASE:
        break;
    }
    return 0;
}

static uint32_t lane_of_outputs(const Sched *s)
{
    return 1 + 2 * s->types;
}

static uint32_t lane_of_buses(const Sched *s)
{
    return 2 + 2 * s->types;
}

static uint32_t lane_of_loads(const Sched *s)
{
    return 3 + 2 * s->types;
}

bool rsd_sched_init(RsdDrive *drive)
{
    const RsdConfig *cfg = &drive->cfg;
    Sched *s = &drive->sched;

    set_times(s, cfg);
    s->row = rsd_row_slots(cfg);
    s->unit = rsd_unit_slots(cfg);
    s->page = cfg->page_size / RSD_PAGE_SIZE;
    s->cache = cfg->cache && cfg->queue == RSD_QUEUE_WAY;
    s->suspend = cfg->suspend && cfg->queue == RSD_QUEUE_WAY;
    s->plain = !s->cache && !s->suspend;
    s->small = s->unit == 1 && s->types == 1 && !cfg->read_retries;
    /*
     * An event of a step that is suspended is removed, which only the heap
     * allows.
     */
    s->num_lanes = s->suspend ? 0
                   : s->cache ? lane_of_loads(s) : lane_of_buses(s);
    /* In a lane, a die or a bus has at most one event. */
    s->lane_size = 1;
    while (s->lane_size < drive->dies) {
        s->lane_size *= 2;
    }
    for (uint32_t i = 0; i <= RSD_LANES; i++) {
        s->heads[i] = never;
        /* Events of a lane that does not exist go into the heap. */
        s->lanes[i].last = i && i <= s->num_lanes ? 0 : UINT64_MAX;
    }
    s->next = never;
    s->rings = rsd_alloc(drive, rings_size(drive));
    s->heap = rsd_alloc(drive, heap_size(drive));
    s->dies = rsd_alloc(drive, drive->dies * sizeof(Die));
    s->buses = rsd_alloc(drive, cfg->channels * sizeof(Bus));
    if (!s->rings || !s->heap || !s->dies || !s->buses) {
        return false;
    }
    for (uint32_t i = 1; i <= s->num_lanes; i++) {
        s->lanes[i].ring = s->rings + (size_t)(i - 1) * s->lane_size;
    }
    if (s->suspend) {
        s->places = rsd_alloc(drive, places_size(drive));
        s->order = rsd_alloc(drive, order_size(drive));
        if (!s->places || !s->order) {
            return false;
        }
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        s->dies[d].number = d;
        s->dies[d].channel = d % cfg->channels;
        for (uint32_t what = 0; what < 3; what++) {
            s->dies[d].wants[what] = (Want){ .die = d, .what = what };
        }
    }
    return true;
}

void rsd_sched_fini(RsdDrive *drive)
{
    Sched *s = &drive->sched;

    rsd_release(drive, s->rings, rings_size(drive));
    rsd_release(drive, s->heap, heap_size(drive));
    rsd_release(drive, s->dies, drive->dies * sizeof(Die));
    rsd_release(drive, s->buses, drive->cfg.channels * sizeof(Bus));
    rsd_release(drive, s->places, places_size(drive));
    rsd_release(drive, s->order, order_size(drive));
}

static uint32_t source_of_die(const Die *die, uint32_t which)
{
    return die->number * DIE_SOURCES + which;
}

/*
 * Buses
 */

static inline void request_bus(Sched *s, Die *die, uint32_t what)
{
    Bus *bus = &s->buses[die->channel];
    Want *want = &die->wants[what];
    WantList *list = &bus->data;

    if (what == WANT_BEGIN ? die->array.op->kind != OP_PROGRAM
                           : what == WANT_END && die->out.op->kind != OP_READ) {
        list = &bus->brief;
    }
    want->next = NULL;
    if (list->head) {
        list->tail->next = want;
    } else {
        list->head = want;
    }
    list->tail = want;
    s->kicked |= UINT64_C(1) << die->channel;
}

static uint64_t array_time(const RsdDrive *drive, const Step *step)
{
    switch (step->op->kind) {
    case OP_READ:
        return drive->sched.read_ns[step->type];
    case OP_PROGRAM:
        return drive->sched.prog_ns[step->type];
    case OP_ERASE:
        break;
    }
    return drive->cfg.t_erase_ns;
}

/* Returns the bus time of a step's first tenure. */
static uint64_t begin_time(const RsdConfig *cfg, const Step *step)
{
    uint64_t tenure = step->pages * cfg->t_cmd_ns;

    if (step->op->kind == OP_PROGRAM) {
        tenure += step->slots * cfg->t_xfer_ns;
    }
    return tenure;
}

/* Returns the bus time of its last one. */
static uint64_t end_time(const RsdConfig *cfg, const Step *step)
{
    return step->op->kind == OP_READ ? step->slots * cfg->t_xfer_ns
                                     : cfg->t_status_ns;
}

/* The array begins a step. A rule may make it longer. */
static RSD_COLD void begin_watched(RsdDrive *drive, Die *die)
{
    const Step *step = &die->array;
    uint64_t again = begin_time(&drive->cfg, step) + array_time(drive, step);

    die->array_end += rsd_inject_begin(drive, step, again);
    drive->up->step_begin(drive, step);
}

/* The array works on its step from the given time. */
static inline void run_array(RsdDrive *drive, Die *die, uint64_t from)
{
    die->state = WORKING;
    die->array_end = from + array_time(drive, &die->array);
    if (drive->watched) {
        begin_watched(drive, die);
    }
    push_lane(&drive->sched, lane_of_array(&drive->sched, &die->array),
              die->array_end, source_of_die(die, FROM_ARRAY));
}

/* The die gets the bus. It asks for no other one here: see arbitrate_all(). */
static void begin_tenure(RsdDrive *drive, Bus *bus, const Want *want)
{
    const RsdConfig *cfg = &drive->cfg;
    Sched *s = &drive->sched;
    Die *die = &s->dies[want->die];

    switch (want->what) {
    case WANT_BEGIN:
        bus->free_at = s->now + begin_time(cfg, &die->array);
        if (!die->array.begun) {
            die->array.begun = true;
            die->array.start = s->now;
        }
        run_array(drive, die, bus->free_at);
        if (!s->plain && die->array.op->kind != OP_READ) {
            die->state = BEGINNING;
            push_lane(s, lane_of_loads(s), bus->free_at,
                  source_of_die(die, FROM_LOAD));
        }
        break;
    case WANT_END:
        bus->free_at = s->now + end_time(cfg, &die->out);
        bus->armed = true;      /* by the event of what goes out */
        push_lane(s, lane_of_outputs(s), bus->free_at,
                  source_of_die(die, FROM_OUT));
        break;
    case WANT_LOAD:
        bus->free_at = s->now + begin_time(cfg, &die->load);
        die->load.begun = true;
        die->load.start = s->now;
        push_lane(s, lane_of_loads(s), bus->free_at,
                  source_of_die(die, FROM_LOAD));
        break;
    }
}

static inline void arbitrate(RsdDrive *drive, uint32_t channel)
{
    Sched *s = &drive->sched;
    Bus *bus = &s->buses[channel];

    while (bus->brief.head || bus->data.head) {
        WantList *list = bus->brief.head ? &bus->brief : &bus->data;
        Want *want = list->head;

        if (bus->free_at > s->now) {
            if (!bus->armed) {
                bus->armed = true;
                push_lane(s, lane_of_buses(s), bus->free_at,
                          DIE_SOURCES * drive->dies + channel);
            }
            return;
        }
        list->head = want->next;
        begin_tenure(drive, bus, want);
    }
}

/* A tenure may have ended, so the dies that want the bus are looked at. */
static void free_bus(Sched *s, uint32_t channel)
{
    s->buses[channel].armed = false;
    s->kicked |= UINT64_C(1) << channel;
}

/* Gives away the buses that are wanted. */
static void arbitrate_all(RsdDrive *drive)
{
    Sched *s = &drive->sched;
    uint64_t kicked = s->kicked;

    s->kicked = 0;
    for (; kicked; kicked &= kicked - 1) {
        arbitrate(drive, __builtin_ctzll(kicked));
    }
}

/*
 * Dies: what is next
 */

static bool die_idle(const Die *die)
{
    return !die->begun && !die->queued;
}

/*
 * With suspend, some reads may go before programs and erases. A read is
 * eligible when the array is done with all writers of its block that were
 * queued before it. They are done in their order, so it is enough to count
 * them. A read that has some before it waits at its block, and joins the die's
 * heap of eligible reads when the last of them leaves the array. (Data that is
 * loaded ahead belongs to the block that the array programs, so no read is
 * chosen between the two.) The heap is a skew heap (Sleator and Tarjan,
 * "Self-adjusting heaps", 1986), from which only the first read is ever
 * removed. If the head of the queue is eligible, it is that read.
 */

static Op *merge_reads(Op *a, Op *b)
{
    Op *root = NULL, **link = &root;

    while (a && b) {
        Queued *q;

        if (rsd_op_queued(b)->number < rsd_op_queued(a)->number) {
            Op *other = a;

            a = b;
            b = other;
        }
        *link = a;
        q = rsd_op_queued(a);
        a = q->right;
        q->right = q->left;
        link = &q->left;
    }
    *link = a ? a : b;
    return root;
}

static void make_eligible(Die *die, Op *read)
{
    Queued *q = rsd_op_queued(read);

    q->left = q->right = NULL;
    die->first_read = merge_reads(die->first_read, read);
}

/* An operation has joined its queue behind prev, or, if NULL, at its head. */
static void note_queued(Sched *s, Die *die, Op *op, Op *prev)
{
    BlockOrder *order = &s->order[op->block];
    Queued *q = rsd_op_queued(op);

    *q = (Queued){ .prev = prev, .number = UINT64_C(1) << 63 };
    if (op->next) {
        q->number -= ++s->queued_first;
        rsd_op_queued(op->next)->prev = op;
    } else {
        q->number += s->queued++;
    }
    if (op->kind != OP_READ) {
        order->queued++;
    } else if (order->left == order->queued) {
        make_eligible(die, op);
    } else {
        q->writers = order->queued;
        if (order->waiting) {
            rsd_op_queued(order->last)->left = op;
        } else {
            order->waiting = op;
        }
        order->last = op;
    }
}

/* The array is done with its step. */
static void leave_array(Sched *s, Die *die)
{
    const Op *op = die->array.op;
    BlockOrder *order;
    Op *read;

    if (!s->suspend || op->kind == OP_READ || !die->array.last) {
        return;
    }
    order = &s->order[op->block];
    order->left++;
    while ((read = order->waiting) &&
           rsd_op_queued(read)->writers == order->left) {
        order->waiting = rsd_op_queued(read)->left;
        make_eligible(die, read);
    }
}

static bool read_may_pass(const RsdDrive *drive, const Die *die)
{
    return drive->sched.suspend && die->first_read &&
           die->ahead < drive->cfg.suspend_reads;
}

/* An operation leaves its queue and begins. */
static inline void begin_op(Sched *s, Die *die, Op *op)
{
    if (s->suspend && op->kind == OP_READ) {
        /* It is the first, so all writers before it have left the array. */
        const Queued *q = rsd_op_queued(op);

        die->first_read = merge_reads(q->left, q->right);
    }
    die->op = op;
    die->queued--;
    die->begun++;
}

static inline void pop_head(Sched *s, Die *die)
{
    Op *op = die->head;

    die->head = op->next;
    if (s->suspend && die->head) {
        rsd_op_queued(die->head)->prev = NULL;
    }
    begin_op(s, die, op);
}

/* The first eligible read, wherever it is in the queue */
static void pop_read(Sched *s, Die *die)
{
    Op *read = die->first_read, *before = rsd_op_queued(read)->prev;

    if (!before) {
        pop_head(s, die);
        return;
    }
    before->next = read->next;
    if (read->next) {
        rsd_op_queued(read->next)->prev = before;
    } else {
        die->tail = before;
    }
    begin_op(s, die, read);
}

/*
 * Sets die->op to the next operation for a free array. Returns false if there
 * is none, or the array has gone on with a step that was suspended.
 */
static bool choose_op(RsdDrive *drive, Die *die)
{
    const Op *next = die->op ? die->op : die->head;

    if (die->op && die->op->kind == OP_READ) {
        return true;
    }
    if (read_may_pass(drive, die) &&
        (die->held.op || die->held_op || next->kind != OP_READ)) {
        if (die->op) {
            die->held_op = die->op;
        }
        pop_read(&drive->sched, die);
        die->ahead++;
        return true;
    }
    if (die->held.op) {
        if (!die->out.op) {
            die->array = die->held;
            die->held.op = NULL;
            die->op = die->held_op;
            die->held_op = NULL;
            die->state = WORKING;
            die->array_end = drive->sched.now + die->held_left;
            push(&drive->sched, die->array_end,
                 source_of_die(die, FROM_ARRAY));
        }
        return false;
    }
    if (die->held_op) {
        die->op = die->held_op;
        die->held_op = NULL;
    }
    if (!die->op && die->head) {
        pop_head(&drive->sched, die);
    }
    return die->op;
}

/* Returns the pages that have some of a row's slots. */
static uint32_t count_pages(const Sched *s, uint32_t wanted)
{
    uint32_t pages = 0;

    for (; wanted; wanted >>= s->page) {
        pages += (wanted & ((1u << s->page) - 1)) != 0;
    }
    return pages;
}

/* Sets the size of an operation's step, if it is not simply a page. */
static RSD_APART void size_step(const RsdDrive *drive, const Op *op, Step *step)
{
    const RsdConfig *cfg = &drive->cfg;
    const Sched *s = &drive->sched;
    uint32_t slots = 1, pages = 1;

    if (op->kind == OP_ERASE) {
        pages = cfg->planes;
    } else if (op->row) {
        slots = op->count;
        pages = count_pages(s, op->wanted);
    } else if (s->unit > 1) {
        /* A program's run consists of whole units. */
        slots = op->kind == OP_PROGRAM ? s->unit
                                       : s->row - op->page % s->row;
        if (slots > op->count) {
            slots = op->count;
        }
        pages = (op->page % s->page + slots - 1) / s->page + 1;
    }
    if (s->types > 1) {
        step->type = op->page / s->row % s->types;
    }
    if (cfg->read_retries && op->kind == OP_READ) {
        step->retries = cfg->read_retries *
                        rsd_rec_erases(drive->media.rec[op->block]) /
                        cfg->endurance;
        step->alone = step->retries;
    }
    step->slots = slots;
    step->pages = pages;
}

/* Takes the next step of the die's operation. */
static inline void take_step(RsdDrive *drive, Die *die, Step *step)
{
    const Sched *s = &drive->sched;
    Op *op = die->op;

    *step = (Step){
        .op = op, .page = op->page, .index = op->index,
        .slots = 1, .pages = 1,
    };
    if (!s->small || op->kind == OP_ERASE) {
        size_step(drive, op, step);
    }
    op->page += step->slots;
    op->count -= step->slots;
    /* Within a unit, the command goes on as the block does. */
    op->index += step->slots - 1;
    op->index += s->unit > 1 && op->page % s->unit ? 1 : op->stride;
    if (!op->count) {
        step->last = true;
        die->op = NULL;
    }
}

/*
 * Says whether a read may begin while the die sends the data of the one before.
 */
static bool overlaps_output(const RsdDrive *drive, const Die *die)
{
    const Op *next = die->op ? die->op : die->head;

    return drive->sched.cache && die->out.op->kind == OP_READ &&
           !die->out.alone && next && next->kind == OP_READ &&
           !die->held.op && (die->op || !die->held_op);
}

/* Loads the data of the next program ahead, if there is one for that block. */
static void load_ahead(RsdDrive *drive, Die *die)
{
    const Op *op = die->array.op;
    const Op *next = die->op ? die->op : die->head;

    if (!drive->sched.cache || die->state != WORKING ||
        op->kind != OP_PROGRAM || die->load.op || !next ||
        next->kind != OP_PROGRAM || next->block != op->block ||
        read_may_pass(drive, die)) {
        return;
    }
    if (!die->op) {
        pop_head(&drive->sched, die);
    }
    take_step(drive, die, &die->load);
    die->loaded = false;
    request_bus(&drive->sched, die, WANT_LOAD);
}

/*
 * Adds the die's busy time, up to that time, for a step that it has been doing.
 */
static void account_busy(RsdDrive *drive, Die *die, const Step *step,
                         uint64_t until)
{
    drive->count->die_busy_ns += until - (step->start > die->busy_until
                                          ? step->start : die->busy_until);
    die->busy_until = until;
}

/* Suspends the array, if a read in the queue may go first. */
static void suspend(RsdDrive *drive, Die *die)
{
    Sched *s = &drive->sched;
    uint64_t free_at = s->now + drive->cfg.t_suspend_ns;

    if (die->state != WORKING || die->array.op->kind == OP_READ ||
        die->array_end <= free_at || die->load.op ||
        !read_may_pass(drive, die)) {
        return;
    }
    cancel(s, source_of_die(die, FROM_ARRAY));
    die->held = die->array;
    die->held_left = die->array_end - s->now;
    die->array.op = NULL;
    if (die->op) {
        die->held_op = die->op;
        die->op = NULL;
    }
    die->state = STOPPING;
    push(s, free_at, source_of_die(die, FROM_ARRAY));
    drive->count->suspends++;
    account_busy(drive, die, &die->held, free_at);
}

/* Begins the next step of the operation in the array, and asks for the bus. */
static inline void begin_step(RsdDrive *drive, Die *die)
{
    take_step(drive, die, &die->array);
    die->state = ASKING;
    request_bus(&drive->sched, die, WANT_BEGIN);
}

/* Gives the array its next step, if it is free, with cache or suspend. */
static void feed_or_load(RsdDrive *drive, Die *die)
{
    if (die->state == FREE) {
        if (die->load.op) {
            if (die->loaded) {
                die->array = die->load;
                die->load.op = NULL;
                run_array(drive, die, drive->sched.now);
                suspend(drive, die);
            }
        } else if ((!die->out.op || overlaps_output(drive, die)) &&
                   choose_op(drive, die)) {
            begin_step(drive, die);
        }
    }
    load_ahead(drive, die);
}

/* Does the same for any die. */
static inline void feed(RsdDrive *drive, Die *die)
{
    if (!drive->sched.plain) {
        feed_or_load(drive, die);
    } else if (die->state == FREE && !die->out.op && (die->op || die->head)) {
        if (!die->op) {
            pop_head(&drive->sched, die);
        }
        begin_step(drive, die);
    }
}

/* With queue=global: begins what is first in the queue, if its die is free. */
static void dispatch_global(RsdDrive *drive)
{
    Sched *s = &drive->sched;

    while (s->head && !s->dies[s->head->die].begun) {
        Op *op = s->head;
        Die *die = &s->dies[op->die];

        s->head = op->next;
        begin_op(s, die, op);
        feed(drive, die);
    }
}

/*
 * Starts what may start, since a die has become free or an operation was
 * queued.
 */
static inline void dispatch(RsdDrive *drive, Die *die)
{
    if (drive->cfg.queue == RSD_QUEUE_WAY || die->op) {
        feed(drive, die);
    } else {
        dispatch_global(drive);
    }
}

/*
 * With suspend, an operation has joined its queue behind prev, see
 * note_queued().
 */
static void queue_to_suspend(RsdDrive *drive, Die *die, Op *op, Op *prev)
{
    note_queued(&drive->sched, die, op, prev);
    dispatch(drive, die);
    if (op->kind == OP_READ) {
        suspend(drive, die);
    }
}

static inline void queue_op(RsdDrive *drive, Op *op, bool first)
{
    Sched *s = &drive->sched;
    Die *die = &s->dies[op->die];
    bool global = drive->cfg.queue == RSD_QUEUE_GLOBAL;
    Op **head = global ? &s->head : &die->head;
    Op **tail = global ? &s->tail : &die->tail, *prev = NULL;

    op->enqueued = s->now;
    if (first || !*head) {
        op->next = *head;
        *tail = *head ? *tail : op;
        *head = op;
    } else {
        prev = *tail;
        op->next = NULL;
        prev->next = op;
        *tail = op;
    }
    die->queued++;
    drive->blocks[op->block].queued++;
    if (s->suspend) {
        queue_to_suspend(drive, die, op, prev);
    } else {
        dispatch(drive, die);
    }
}

void rsd_sched_queue(RsdDrive *drive, Op *op)
{
    queue_op(drive, op, false);
}

void rsd_sched_queue_first(RsdDrive *drive, Op *op)
{
    queue_op(drive, op, true);
}

void rsd_sched_settle(RsdDrive *drive)
{
    arbitrate_all(drive);
}

static void arm_idle(RsdDrive *drive, uint32_t d)
{
    Sched *s = &drive->sched;
    Die *die = &s->dies[d];

    if (!die->idle_armed && drive->up->has_idle_work(drive, d)) {
        die->idle_armed = true;
        push(s, die->idle_since + drive->cfg.idle_erase_ns,
             source_of_die(die, FROM_IDLE));
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

static void account(RsdDrive *drive, Die *die, const Step *step)
{
    const RsdConfig *cfg = &drive->cfg;
    RsdCounters *count = drive->count;
    const Op *op = step->op;
    uint64_t wait = step->start - op->enqueued;

    count->queue_wait_ns += wait;
    if (wait > count->queue_wait_max_ns) {
        count->queue_wait_max_ns = wait;
    }
    account_busy(drive, die, step, drive->sched.now);
    count->bus_busy_ns += begin_time(cfg, step) + end_time(cfg, step);
    switch (op->kind) {
    case OP_READ:
        (&count->read_host)[op->cause] += step->slots;
        count->nand_reads += step->pages;
        break;
    case OP_PROGRAM:
        if (!op->unit) {        /* else each slot has its cause */
            (&count->prog_host)[op->cause] += step->slots;
        }
        count->nand_programs += step->pages;
        if (op->cause != RSD_CAUSE_WEAR) {
            die->programmed += step->slots;
        }
        break;
    case OP_ERASE:
        (&count->erase_host)[op->cause]++;
        if (op->background) {
            count->erase_idle++;
        } else {
            count->erase_on_demand++;
        }
        break;
    }
}

_Static_assert(offsetof(RsdCounters, read_pad) ==
               offsetof(RsdCounters, read_host) + RSD_CAUSE_PAD * 8 &&
               offsetof(RsdCounters, prog_pad) ==
               offsetof(RsdCounters, prog_host) + RSD_CAUSE_PAD * 8 &&
               offsetof(RsdCounters, erase_pad) ==
               offsetof(RsdCounters, erase_host) + RSD_CAUSE_PAD * 8,
               "counters by cause are in the order of RsdCause");

/* Ends a step, which leaves its place. */
static void finish_step(RsdDrive *drive, Die *die, Step *step)
{
    Op *op = step->op;
    bool background = op->background, last = step->last;
    uint32_t slots;

    account(drive, die, step);
    if (drive->watched) {
        drive->up->step_done(drive, step);
        rsd_inject_execute(drive, step);
    } else {
        rsd_op_execute(drive, step);
    }
    step->op = NULL;
    if (op->kind != OP_READ) {
        die->ahead = 0;
    }
    if (last) {
        slots = op->row ? 1 : step->slots;
        op->page = step->page + slots - 1;
        op->index = step->index + slots - 1;
        die->begun--;
        drive->blocks[op->block].queued--;
        drive->up->op_done(drive, op);
    }
    dispatch(drive, die);
    if (last && die_idle(die)) {
        /* Background work that has begun goes on until the host comes. */
        if (background && drive->up->idle(drive, die->number)) {
            return;
        }
        die->idle_since = drive->sched.now;
        arm_idle(drive, die->number);
    }
}

/* The array has done its step, and its page or status goes out. */
static void move_out(RsdDrive *drive, Die *die)
{
    leave_array(&drive->sched, die);
    die->out = die->array;
    die->array.op = NULL;
    die->state = FREE;
    request_bus(&drive->sched, die, WANT_END);
    if (drive->sched.cache) {
        dispatch(drive, die);
    }
}

/* These return the step that is done with it, or NULL. */

static inline Step *array_event(RsdDrive *drive, Die *die)
{
    if (die->state == STOPPING) {
        die->state = FREE;
        dispatch(drive, die);
    } else if (die->array.op->kind != OP_READ && !drive->cfg.t_status_ns) {
        leave_array(&drive->sched, die);
        die->state = FREE;
        return &die->array;
    } else if (die->out.op) {
        die->state = DONE;
    } else {
        move_out(drive, die);
    }
    return NULL;
}

static inline Step *out_event(RsdDrive *drive, Die *die, Step *done)
{
    Step *step = &die->out;

    free_bus(&drive->sched, die->channel);
    if (step->retries) {
        step->retries--;
        drive->count->read_retries += step->pages;
        drive->count->bus_busy_ns += begin_time(&drive->cfg, step) +
                                     end_time(&drive->cfg, step);
        die->array = *step;
        step->op = NULL;
        die->state = ASKING;
        request_bus(&drive->sched, die, WANT_BEGIN);
        return NULL;
    }
    if (die->state == DONE) {
        *done = *step;
        step = done;
        move_out(drive, die);
    }
    return step;
}

/* The array has begun a program or an erase, or data has been loaded for it. */
static void load_event(RsdDrive *drive, Die *die)
{
    if (die->load.op && die->load.begun) {
        die->loaded = true;
        feed(drive, die);
    } else if (die->state == BEGINNING) {
        die->state = WORKING;
        suspend(drive, die);
        load_ahead(drive, die);
    }
}

static void idle_event(RsdDrive *drive, Die *die)
{
    uint32_t d = die->number;

    die->idle_armed = false;
    if (!die_idle(die)) {
        return;                 /* armed again when it becomes idle */
    }
    if (die->idle_since + drive->cfg.idle_erase_ns > drive->sched.now) {
        arm_idle(drive, d);     /* it has worked meanwhile */
        return;
    }
    drive->up->idle(drive, d);
}

/* A bus is free, or a command is due in the controller. */
static void other_event(RsdDrive *drive, uint32_t source)
{
    if (source < drive->cfg.channels) {
        free_bus(&drive->sched, source);
    } else if (source < drive->cfg.channels + RSD_TIMERS) {
        drive->up->timer(drive, source - drive->cfg.channels);
    } else {
        drive->up->interrupt(drive);
    }
}

/*
 * Time
 */

void rsd_sched_timer(RsdDrive *drive, uint32_t timer, uint64_t when)
{
    push(&drive->sched, when,
         DIE_SOURCES * drive->dies + drive->cfg.channels + timer);
}

void rsd_sched_interrupt(RsdDrive *drive, uint64_t when)
{
    Sched *s = &drive->sched;

    push_event(s, (Event){ when, DIE_SOURCES * drive->dies +
                                 drive->cfg.channels + RSD_TIMERS });
}

uint32_t rsd_sched_in_flight(const RsdDrive *drive, uint32_t d,
                             const Step *steps[RSD_DIE_STEPS])
{
    const Die *die = &drive->sched.dies[d];
    const Step *places[RSD_DIE_STEPS] = { &die->held, &die->out, &die->array };
    uint32_t n = 0;

    for (uint32_t i = 0; i < RSD_DIE_STEPS; i++) {
        const Step *step = places[i];

        if (step->op && step->op->kind != OP_READ &&
            (step != &die->array || die->state == WORKING ||
             die->state == DONE)) {
            steps[n++] = step;
        }
    }
    return n;
}

void rsd_sched_halt(RsdDrive *drive)
{
    Sched *s = &drive->sched;

    for (uint32_t i = 0; i <= RSD_LANES; i++) {
        s->heads[i] = never;
        s->lanes[i].from = s->lanes[i].end;
    }
    s->next = never;
    s->first = 0;
    s->heap_len = 0;
    s->kicked = 0;
}

bool rsd_sched_next(const RsdDrive *drive, uint64_t *when)
{
    const Sched *s = &drive->sched;

    if (!has_event(s)) {
        return false;
    }
    *when = s->next.when;
    return true;
}

/*
 * Carries out the events up to that time, or until a command is done. All
 * events of an instant are carried out before the buses are given away.
 */
static void run(RsdDrive *drive, uint64_t until, bool to_done)
{
    Sched *s = &drive->sched;
    uint32_t of_dies = DIE_SOURCES * drive->dies;

    /*
     * No event happens at the end of time, which is the time of missing events.
     */
    until -= until == never.when;
    while (s->next.when <= until && !(to_done && drive->done_head)) {
        uint64_t now = s->next.when;

        s->now = now;
        do {
            uint32_t source = pop(s);
            Die *die = &s->dies[source / DIE_SOURCES];
            Step *step = NULL, done;

            if (source >= of_dies) {
                other_event(drive, source - of_dies);
                continue;
            }
            switch (source % DIE_SOURCES) {
            case FROM_ARRAY:
                step = array_event(drive, die);
                break;
            case FROM_OUT:
                step = out_event(drive, die, &done);
                break;
            case FROM_LOAD:
                load_event(drive, die);
                break;
            case FROM_IDLE:
                idle_event(drive, die);
                break;
            }
            if (step) {
                finish_step(drive, die, step);
            }
        } while (s->next.when == now);
        arbitrate_all(drive);
    }
}

void rsd_sched_run(RsdDrive *drive, uint64_t now)
{
    run(drive, now, false);
    if (now > drive->sched.now) {
        drive->sched.now = now;
    }
}

void rsd_sched_run_to_done(RsdDrive *drive)
{
    run(drive, UINT64_MAX, true);
}
