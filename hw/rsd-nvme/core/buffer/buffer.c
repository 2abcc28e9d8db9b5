/*
 * The controller's write buffer, which makes units of slots.
 *
 * It is there if write-buffer says so, or if a program takes more than 4 KiB
 * (planes, page-size, one-shot); then it holds a unit for every die at least.
 *
 * Taking. The slots of a block come in order and fill units. Slots are taken in
 * the order in which they came, over all commands: one that does not complete a
 * unit at once, it has room in the begun unit, which has memory of its own; one
 * that does needs room for the whole unit in the buffer, and waits for it, with
 * everything behind it, if need be. Then the unit is closed: its program is
 * queued to its die. Its room is free when it is programmed. When a zone is
 * reset, what of it is not in a closed unit is dropped; a block of which no
 * unit was closed needs no erase. A write that is not done then, and of which
 * something is dropped, has failed: its data is not there. It is refused as a
 * write that came after the reset would be, RSD_E_ORDER, since it is not at the
 * zone's start: NVMe knows no order among commands that are in flight (Zoned
 * Namespace Command Set 2.1.2).
 *
 * Reads. What came and is not yet programmed is read from here, in no time.
 *
 * Completion. A write is done when all its slots are taken (ack=buffer) or all
 * units that they closed are programmed and the rest is safe (ack=program). A
 * zone finish waits for the programs of its padding.
 *
 * Safety. With plp=on, all that was taken is safe: it is kept in the media
 * file. What came and waits for room was not acknowledged: a flush has nothing
 * to wait for, and is done at once. With plp=off, a closed unit is not safe
 * until it is programmed. To make a begun unit safe (for a flush, FUA, or
 * ack=program), that of a page map is filled up and so closed, if the host has
 * a page in it; that of a zone, or of a block map, which cannot be filled up,
 * as the host continues it, goes to a part of the buffer that is protected in
 * any case; under a block map, with the units before it in its block. What went
 * there is safe for good. With plp=off, a flush waits until all writes that
 * came before it are taken, and then until they are safe.
 *
 * Random write areas (ftl/zone/zrwa.c) are a part of the buffer set aside. What
 * is written to them, and committed of them, takes its turn in the same queue;
 * the slots that are committed come and are taken then, one by one.
 *
 * A unit that the host's disk fails to store stays here and can be read; the
 * drive is read-only then. What waits for it fails, and so does a flush.
 *
 * Opening. Closed units that were safe are programmed, their pages counted as
 * the host's; begun ones of a zone are here again, those of a page map are
 * filled up and programmed, those of a block map programmed with what else
 * there is for their place (block-recover.c).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <assert.h>
#include <string.h>

#include "buffer.h"

#define SLOT_BYTES (RSD_PAGE_SIZE + RSD_OOB_SIZE)
#define FIRST_HASH 4096u         /* chains of the hash, a power of 2 */

typedef struct BufSlot {
    Cmd *cmd;                   /* waits until it is programmed, or NULL */
    uint64_t lba;               /* of a page of the host; or a tag */
    uint8_t cause;
} BufSlot;

struct BufUnit {
    Op op;                      /* its program. First: see unit_of() */
    Queued queued;              /* behind it: see rsd_op_queued() */
    BufUnit *hash_next;
    BufUnit *prev, *next;       /* in its list: see list_of() */
    uint64_t seq;               /* of a closed one */
    uint64_t since;             /* Power.ops when it was closed */
    uint32_t block, page;       /* its first slot */
    uint32_t came, taken;       /* slots */
    uint32_t safe;              /* of these, in the file */
    uint32_t place;             /* there, or RSD_NONE */
    bool closed;
    bool dropped;               /* wanted no more, but still queued */
    uint8_t *payload;           /* slots: data, OOB; or NULL */
    BufSlot slots[];
};

_Static_assert(offsetof(BufUnit, queued) == sizeof(Op), "rsd_op_queued()");

static BufUnit *unit_of(Op *op)
{
    return (BufUnit *)op;
}

static size_t unit_size(const RsdDrive *drive)
{
    return sizeof(BufUnit) + drive->unit * sizeof(BufSlot);
}

/* Returns the list that a unit is in, unless it is free. */
static BufUnitList *list_of(Buffer *buf, const BufUnit *unit)
{
    if (unit->op.failed) {
        return &buf->failed;
    }
    if (unit->closed) {
        return &buf->closed[unit->op.ns];
    }
    return unit->taken ? &buf->begun : &buf->coming;
}

/* Returns the chain that a unit with that first slot is in. */
static BufUnit **chain_of(const Buffer *buf, uint32_t block, uint32_t page)
{
    uint32_t key = block * 0x9e3779b1u ^ page * 0x85ebca77u;

    return &buf->hash[(key ^ key >> 15) & (buf->chains - 1)];
}

/* Returns the youngest unit with that first slot, or NULL. */
static BufUnit *find(const RsdDrive *drive, uint32_t block, uint32_t page)
{
    BufUnit *unit = drive->buffer->on ? *chain_of(drive->buffer, block, page)
                                     : NULL;

    while (unit && (unit->block != block || unit->page != page)) {
        unit = unit->hash_next;
    }
    return unit;
}

static void list_add(BufUnitList *list, BufUnit *unit)
{
    unit->prev = list->tail;
    unit->next = NULL;
    if (list->tail) {
        list->tail->next = unit;
    } else {
        list->head = unit;
    }
    list->tail = unit;
}

static void list_remove(BufUnitList *list, BufUnit *unit)
{
    if (unit->prev) {
        unit->prev->next = unit->next;
    } else {
        list->head = unit->next;
    }
    if (unit->next) {
        unit->next->prev = unit->prev;
    } else {
        list->tail = unit->prev;
    }
}

/*
 * Memory, and places in the file
 */

static BufUnit *alloc_unit(RsdDrive *drive)
{
    BufUnit *unit = rsd_alloc(drive, unit_size(drive));

    if (unit && drive->media.data) {
        unit->payload = rsd_alloc(drive, (size_t)drive->unit * SLOT_BYTES);
        if (!unit->payload) {
            rsd_release(drive, unit, unit_size(drive));
            return NULL;
        }
    }
    return unit;
}

static void dispose(RsdDrive *drive, BufUnit *unit)
{
    rsd_release(drive, unit->payload, (size_t)drive->unit * SLOT_BYTES);
    rsd_release(drive, unit, unit_size(drive));
}

static void put_free(RsdDrive *drive, BufUnit *unit)
{
    unit->next = drive->buffer->free;
    drive->buffer->free = unit;
    drive->buffer->num_free++;
}

static size_t hash_size(uint32_t chains)
{
    return chains * sizeof(BufUnit *);
}

/*
 * Adds chains. If there is no memory for them, longer chains only cost speed.
 */
static void add_chains(RsdDrive *drive)
{
    Buffer *buf = drive->buffer;
    uint32_t old = buf->chains;
    BufUnit **from = buf->hash;
    BufUnit **to = rsd_alloc(drive, hash_size(2 * old));

    if (!to) {
        return;
    }
    buf->hash = to;
    buf->chains = 2 * old;
    for (uint32_t i = 0; i < old; i++) {
        for (BufUnit *unit = from[i], *next; unit; unit = next) {
            BufUnit **link = chain_of(buf, unit->block, unit->page);

            next = unit->hash_next;
            while (*link) {
                link = &(*link)->hash_next;     /* the youngest stay first */
            }
            unit->hash_next = NULL;
            *link = unit;
        }
    }
    rsd_release(drive, from, hash_size(old));
}

RsdStatus rsd_buffer_reserve(RsdDrive *drive, uint64_t units)
{
    Buffer *buf = drive->buffer;
    uint64_t want;

    if (!buf->on) {
        return RSD_OK;
    }
    want = buf->num_units - buf->num_free + buf->promised + units;
    while (buf->num_free < buf->promised + units) {
        BufUnit *unit = alloc_unit(drive);

        if (!unit) {
            return RSD_E_NOMEM;
        }
        buf->num_units++;
        put_free(drive, unit);
    }
    if (buf->num_units > buf->chains) {
        add_chains(drive);
    }
    /* Each unit has a place once a slot of it is taken. */
    return rsd_media_reserve_places(&drive->media, want);
}

static BufUnit *new_unit(RsdDrive *drive, uint32_t ns, uint32_t block,
                      uint32_t page)
{
    Buffer *buf = drive->buffer;
    BufUnit *unit = buf->free, **head = chain_of(buf, block, page);

    buf->free = unit->next;
    buf->num_free--;
    unit->op = (Op){
        .buf = unit->payload,
        .block = block,
        .page = page,
        .count = drive->unit,
        .stride = 1,
        .die = rsd_die_of(drive, block),
        .kind = OP_PROGRAM,
        .ns = ns,
        .unit = 1,
    };
    unit->block = block;
    unit->page = page;
    unit->came = unit->taken = unit->safe = 0;
    unit->place = RSD_NONE;
    unit->closed = unit->dropped = false;
    unit->hash_next = *head;
    *head = unit;
    list_add(&buf->coming, unit);
    drive->blocks[block].buffered++;
    return unit;
}

/* Begins a unit, since its first slot will be taken. */
static void begin_unit(Buffer *buf, BufUnit *unit)
{
    if (!unit->taken) {
        list_remove(&buf->coming, unit);
        list_add(&buf->begun, unit);
    }
}

/* Removes a unit, which is freed with its operation. */
static void remove_unit(RsdDrive *drive, BufUnit *unit)
{
    Buffer *buf = drive->buffer;
    BufUnit **link = chain_of(buf, unit->block, unit->page);

    while (*link != unit) {
        link = &(*link)->hash_next;
    }
    *link = unit->hash_next;
    drive->blocks[unit->block].buffered--;
    list_remove(list_of(buf, unit), unit);
    if (unit->place != RSD_NONE) {
        rsd_media_drop_unit(&drive->media, unit->place);
    }
    for (uint32_t i = 0; i < unit->taken; i++) {
        if (unit->slots[i].cmd) {
            rsd_cmd_drop(drive, unit->slots[i].cmd);
        }
    }
}

void rsd_buffer_free_unit(RsdDrive *drive, Op *op)
{
    if (!op->failed) {          /* else it stays, for reads */
        put_free(drive, unit_of(op));
    }
}

/*
 * Puts the slots of the unit that were taken into the file. Returns false if
 * the host fails to store them.
 */
static bool store_unit(RsdDrive *drive, BufUnit *unit)
{
    if (drive->failed) {
        return false;           /* places are for those that failed */
    }
    if (unit->place == RSD_NONE) {
        unit->place = rsd_media_place(&drive->media);
    }
    if (!rsd_media_store_unit(&drive->media, unit->place, unit->block,
                              unit->page, unit->payload, unit->safe,
                              unit->taken)) {
        drive->count->media_errors++;
        rsd_drive_fail(drive);
        return false;
    }
    return true;
}

/*
 * Makes the slots of the unit that were taken safe. If that fails, cmd gets the
 * status.
 */
static void make_safe(RsdDrive *drive, BufUnit *unit, Cmd *cmd)
{
    if (!drive->media.units || unit->safe == unit->taken ||
        store_unit(drive, unit)) {
        unit->safe = unit->taken;
    } else if (cmd) {
        cmd->pub.status = RSD_E_MEDIA;
    }
}

/*
 * Coming
 */

void rsd_cmd_payload(const RsdDrive *drive, uint32_t ns, const Cmd *cmd,
                     uint32_t index, uint8_t *to)
{
    const RsdCmd *pub = cmd ? &cmd->pub : NULL;
    const uint8_t *oob = NULL;

    memset(to + RSD_PAGE_SIZE, 0, RSD_OOB_SIZE);
    if (!pub || !pub->data) {
        memset(to, 0, RSD_PAGE_SIZE);
        return;
    }
    memcpy(to, pub->data + (size_t)index * RSD_PAGE_SIZE, RSD_PAGE_SIZE);
    if (pub->oob) {
        oob = pub->oob + (size_t)index * cmd->oob_len;
    }
    if (!drive->ns[ns].geo.zoned) {
        rsd_compose_oob(cmd, index, oob, to + RSD_PAGE_SIZE);
    } else if (oob) {
        memcpy(to + RSD_PAGE_SIZE, oob, cmd->oob_len);
    }
}

static void fill_slot(RsdDrive *drive, BufUnit *unit, const Op *op,
                      uint32_t index)
{
    uint8_t *to = unit->payload;
    RsdCmd *pub = op->cmd ? &op->cmd->pub : NULL;

    unit->slots[unit->came] = (BufSlot){
        .cause = op->cause,
        .lba = pub ? pub->lba + index : index,
    };
    if (to) {
        to += (size_t)unit->came * SLOT_BYTES;
        if (op->buf) {
            memcpy(to, op->buf, SLOT_BYTES);
        } else {
            rsd_cmd_payload(drive, op->ns, op->cmd, index, to);
        }
    }
    unit->came++;
}

/*
 * Says whether the command must wait until the units that it closes are
 * programmed.
 */
static bool awaits_program(const RsdDrive *drive, const Op *op)
{
    const RsdCmd *cmd = op->cmd ? &op->cmd->pub : NULL;

    return cmd && (drive->cfg.ack == RSD_ACK_PROGRAM ||
                   cmd->op == RSD_ZONE_FINISH ||
                   (cmd->fua && !drive->cfg.plp));
}

static void close_unit(RsdDrive *drive, BufUnit *unit, const Op *by)
{
    Buffer *buf = drive->buffer;

    list_remove(&buf->begun, unit);
    unit->closed = true;
    unit->seq = ++buf->seq;
    unit->since = drive->ops;
    list_add(&buf->closed[unit->op.ns], unit);
    buf->used += drive->unit;
    buf->up->closed(&drive->ns[unit->op.ns], &unit->op, by);
    rsd_sched_queue(drive, &unit->op);
}

/* Says that slots "from" to "to" of a unit survive from now on. */
static void tell(RsdDrive *drive, const BufUnit *unit, uint32_t from,
                 uint32_t to)
{
    Ns *ns = &drive->ns[unit->op.ns];

    for (uint32_t i = from; i < to; i++) {
        const BufSlot *slot = &unit->slots[i];

        if (slot->cause == RSD_CAUSE_HOST && slot->lba != UINT64_MAX) {
            drive->buffer->up->kept(ns, slot->lba);
        }
    }
}

static void keep(RsdDrive *drive, BufUnit *unit, Cmd *cmd)
{
    uint32_t from = unit->safe;

    make_safe(drive, unit, cmd);
    tell(drive, unit, from, unit->safe);
}

/*
 * Makes a begun unit of a block map safe. A closed one before it in its block
 * may be lost by a power cut, and then it has no place.
 */
static void make_safe_in_place(RsdDrive *drive, BufUnit *unit, Cmd *cmd)
{
    uint32_t first = unit->page;
    BufUnit *before;

    while (first && find(drive, unit->block, first - drive->unit)) {
        first -= drive->unit;
    }
    for (; first < unit->page; first += drive->unit) {
        before = find(drive, unit->block, first);
        keep(drive, before, cmd);
    }
    keep(drive, unit, cmd);
}

void rsd_buffer_protect(Ns *ns, uint32_t block)
{
    RsdDrive *drive = ns->drive;
    BufUnit *unit = NULL;

    if (!drive->blocks[block].buffered) {
        return;
    }
    for (uint32_t page = 0; page < drive->pages; page += drive->unit) {
        unit = find(drive, block, page);
        if (unit && !unit->closed) {
            make_safe_in_place(drive, unit, NULL);
            return;
        }
    }
}

/*
 * Makes a begun unit safe for a command. The command's status says if that
 * fails, because the host's disk fails or there is no memory. Returns false if
 * the unit is being filled up for that, and is safe only when it is programmed.
 */
static bool secure(RsdDrive *drive, BufUnit *unit, Cmd *cmd)
{
    Ns *ns = &drive->ns[unit->op.ns];

    if (drive->cfg.plp || ns->geo.zoned) {
        make_safe(drive, unit, cmd);
        return true;
    }
    if (!drive->buffer->up->pads(ns)) {
        make_safe_in_place(drive, unit, cmd);
        return true;
    }
    if (unit->came < drive->unit) {
        drive->buffer->up->pad(ns, unit->block);
    }
    if (unit->came < drive->unit) {
        cmd->pub.status = RSD_E_NOMEM;
        return true;            /* nobody is to wait for that */
    }
    return false;
}

/*
 * Makes a command wait for the units that it closed; the rest of it must be
 * safe.
 */
static void secure_cmd(RsdDrive *drive, Cmd *cmd)
{
    BufUnit *next;

    for (BufUnit *unit = drive->buffer->begun.head; unit; unit = next) {
        uint32_t waits = 0;

        next = unit->next;
        for (uint32_t i = 0; i < unit->taken; i++) {
            waits += unit->slots[i].cmd == cmd;
        }
        if (!waits || !secure(drive, unit, cmd)) {
            continue;
        }
        for (uint32_t i = 0; i < unit->taken; i++) {
            if (unit->slots[i].cmd == cmd) {
                unit->slots[i].cmd = NULL;
                rsd_cmd_drop(drive, cmd);
            }
        }
    }
}

void rsd_buffer_give_up(RsdDrive *drive, Cmd *cmd)
{
    for (BufUnit *unit = drive->buffer->begun.head; unit; unit = unit->next) {
        for (uint32_t i = 0; i < unit->taken; i++) {
            if (unit->slots[i].cmd == cmd) {
                unit->slots[i].cmd = NULL;
                rsd_cmd_drop(drive, cmd);
            }
        }
    }
}

/* Ends an operation, all slots of which are taken. */
static void finish_op(RsdDrive *drive, Op *op)
{
    Ns *ns = &drive->ns[op->ns];
    uint32_t slot = (op->page - 1) % drive->unit;
    BufUnit *unit = find(drive, op->block, op->page - 1 - slot);
    const RsdCmd *cmd = op->cmd ? &op->cmd->pub : NULL;

    if (awaits_program(drive, op) && cmd->op != RSD_ZONE_FINISH &&
        unit->slots[slot].lba == cmd->lba + cmd->nlb - 1) {
        secure_cmd(drive, op->cmd);
    }
    drive->buffer->up->op_buffered(ns, op);
}

/* Takes the next slot of the operation. Returns false if there is no room. */
static bool take_slot(RsdDrive *drive, Op *op)
{
    Buffer *buf = drive->buffer;
    uint32_t slot = op->page % drive->unit;
    BufUnit *unit = find(drive, op->block, op->page - slot);
    bool closes = slot + 1 == drive->unit;

    if (closes && buf->used + drive->unit > buf->size) {
        return false;
    }
    assert(unit && unit->taken == slot && unit->came > slot);
    begin_unit(buf, unit);
    unit->taken++;
    if (awaits_program(drive, op) && op->cmd->pub.status == RSD_OK) {
        unit->slots[slot].cmd = op->cmd;
        op->cmd->pending++;
    }
    if (drive->cfg.plp) {
        make_safe(drive, unit, op->cmd);
        op->failed |= unit->safe != unit->taken;
    }
    if (closes) {
        close_unit(drive, unit, op);
    }
    op->page++;
    op->count--;
    return true;
}

static bool has_host_page(const BufUnit *unit)
{
    for (uint32_t i = 0; i < unit->taken; i++) {
        if (unit->slots[i].cause == RSD_CAUSE_HOST) {
            return true;
        }
    }
    return false;
}

/*
 * A flush has come to the head of the queue, so all writes before it are taken.
 */
static void begin_flush(RsdDrive *drive, Op *op)
{
    Buffer *buf = drive->buffer;
    OpList *list = &buf->flushes[op->ns];
    bool filling = false;

    for (BufUnit *unit = buf->failed.head; unit; unit = unit->next) {
        if (unit->op.ns == op->ns) {
            op->cmd->pub.status = RSD_E_MEDIA;
        }
    }
    if (!op->page && drive->ns[op->ns].geo.zoned) {
        buf->up->areas_secure(drive, op->cmd);
    }
    for (BufUnit *unit = buf->begun.head, *next; unit && !op->page;
         unit = next) {
        next = unit->next;
        /*
         * This includes filler in a zone, since safe slots behind it need it.
         */
        if (unit->op.ns == op->ns &&
            (drive->ns[op->ns].geo.zoned || has_host_page(unit))) {
            filling |= !secure(drive, unit, op->cmd);
        }
    }
    if (filling) {
        /*
         * The slots that fill them up are in the queue now, so the flush goes
         * behind it once more.
         */
        op->page = 1;
        rsd_op_list_add(&buf->queue, op);
    } else if (buf->closed[op->ns].head) {
        op->enqueued = buf->seq;
        rsd_op_list_add(list, op);
    } else {
        rsd_op_finish(drive, op);
    }
}

/* An operation to a random write area leaves the queue. */
static void leave_area(RsdDrive *drive, Op *op, bool taken)
{
    Ns *ns = &drive->ns[op->ns];

    if (taken && awaits_program(drive, op)) {
        secure_cmd(drive, op->cmd);
    }
    drive->buffer->promised -= op->stride;
    drive->buffer->up->area_taken(drive, op);
    drive->buffer->up->op_buffered(ns, op);
}

/* Takes as many slots as there is room for. */
static void take(RsdDrive *drive)
{
    Buffer *buf = drive->buffer;

    if (buf->taking) {
        return;                 /* an answer from above to what goes on */
    }
    buf->taking = true;
    while (buf->queue.head) {
        Op *op = buf->queue.head;

        bool taken = true;

        if (op->area) {
            taken = buf->up->area_take(drive, op);
        }
        while (!op->area && op->count && taken) {
            taken = take_slot(drive, op);
        }
        if (!taken) {
            break;
        }
        buf->queue.head = op->next;
        if (op->area) {
            leave_area(drive, op, true);
        } else if (op->kind == OP_PROGRAM) {
            finish_op(drive, op);
        } else {
            begin_flush(drive, op);
        }
    }
    buf->taking = false;
}

void rsd_buffer_write(RsdDrive *drive, Op *op)
{
    uint32_t index = op->index;

    for (uint32_t page = op->page; page < op->page + op->count; page++) {
        uint32_t slot = page % drive->unit;
        BufUnit *unit = slot ? find(drive, op->block, page - slot)
                          : new_unit(drive, op->ns, op->block, page);

        assert(unit && unit->came == slot);
        fill_slot(drive, unit, op, index);
        index += (page + 1) % drive->unit ? 1 : op->stride;
    }
    op->buf = NULL;             /* it stays the caller's */
    rsd_op_list_add(&drive->buffer->queue, op);
    take(drive);
}

void rsd_buffer_queue_area(RsdDrive *drive, Op *op, uint32_t units)
{
    op->stride = units;
    drive->buffer->promised += units;
    rsd_op_list_add(&drive->buffer->queue, op);
    take(drive);
}

/* Brings the next slot of a block, which is not from a command. */
static BufUnit *bring_slot(RsdDrive *drive, uint32_t ns, uint32_t block,
                           uint32_t page, const uint8_t *payload,
                           RsdCause cause)
{
    uint32_t slot = page % drive->unit;
    BufUnit *unit = slot ? find(drive, block, page - slot)
                         : new_unit(drive, ns, block, page);

    assert(unit && unit->came == slot && unit->taken == slot);
    unit->slots[slot] = (BufSlot){ .cause = cause };
    if (unit->payload) {
        uint8_t *to = unit->payload + (size_t)slot * SLOT_BYTES;

        if (payload) {
            memcpy(to, payload, SLOT_BYTES);
        } else {
            memset(to, 0, SLOT_BYTES);
        }
    }
    unit->came++;
    begin_unit(drive->buffer, unit);
    unit->taken++;
    return unit;
}

bool rsd_buffer_commit(RsdDrive *drive, Op *op, uint32_t block, uint32_t page,
                       const uint8_t *payload, RsdCause cause, bool safe)
{
    Buffer *buf = drive->buffer;
    uint32_t slot = page % drive->unit;
    bool closes = slot + 1 == drive->unit;
    BufUnit *unit;

    if (closes && buf->used + drive->unit > buf->size) {
        return false;
    }
    if (!slot) {
        assert(op->stride);
        op->stride--;
        buf->promised--;
    }
    unit = bring_slot(drive, op->ns, block, page, payload, cause);
    if (awaits_program(drive, op) && op->cmd->pub.status == RSD_OK) {
        unit->slots[slot].cmd = op->cmd;
        op->cmd->pending++;
    }
    if (safe || drive->cfg.plp) {
        make_safe(drive, unit, op->cmd);
    }
    if (closes) {
        close_unit(drive, unit, op);
    }
    return true;
}

void rsd_buffer_commit_now(Ns *ns, uint32_t block, uint32_t page,
                           const uint8_t *payload, RsdCause cause)
{
    RsdDrive *drive = ns->drive;
    uint32_t slot = page % drive->unit;

    make_safe(drive, bring_slot(drive, ns->index, block, page, payload, cause),
              NULL);
    if (slot + 1 == drive->unit) {
        rsd_buffer_restore(ns, block, page - slot);
    }
}

void rsd_buffer_flush(Ns *ns, Cmd *cmd)
{
    Op *op = rsd_op_new(ns, OP_READ, RSD_CAUSE_HOST, 0);

    op->cmd = cmd;
    op->count = 0;
    cmd->pending++;
    rsd_op_list_add(&ns->drive->buffer->queue, op);
    take(ns->drive);
}

/*
 * Going
 */

/*
 * Returns the position in the command of the slot so many after the operation's
 * next one.
 */
static uint32_t index_after(const RsdDrive *drive, const Op *op, uint32_t n)
{
    uint32_t units = (op->page + n) / drive->unit - op->page / drive->unit;

    return op->index + n + units * (op->stride - 1);
}

void rsd_buffer_read(RsdDrive *drive, Op *op)
{
    while (op->count) {
        uint32_t page = op->page + op->count - 1, slot = page % drive->unit;
        BufUnit *unit = find(drive, op->block, page - slot);
        RsdCmd *pub = op->cmd ? &op->cmd->pub : NULL;

        if (!unit || unit->came <= slot) {
            return;             /* what came before is programmed */
        }
        if (unit->payload) {
            const uint8_t *from = unit->payload + (size_t)slot * SLOT_BYTES;
            uint32_t index = index_after(drive, op, op->count - 1);

            if (op->buf) {
                memcpy(op->buf, from, SLOT_BYTES);
            } else if (pub && pub->data) {
                memcpy(pub->data + (size_t)index * RSD_PAGE_SIZE, from,
                       RSD_PAGE_SIZE);
                if (!drive->ns[op->ns].geo.zoned &&
                    rsd_spare_is_lost(from + RSD_PAGE_SIZE)) {
                    /* This is a copy of a page that could not be read. */
                    pub->status = RSD_E_MEDIA;
                    drive->count->media_errors++;
                }
            }
            if (!op->buf && pub && pub->oob) {
                memcpy(pub->oob + (size_t)index * op->cmd->oob_len,
                       from + RSD_PAGE_SIZE, op->cmd->oob_len);
            }
        }
        drive->count->buffer_reads += op->cmd != NULL;
        op->count--;
    }
}

bool rsd_buffer_read_page(RsdDrive *drive, uint32_t block, uint32_t page,
                          uint8_t *buf)
{
    Op op = { .block = block, .page = page, .count = 1, .buf = buf };

    rsd_buffer_read(drive, &op);
    return !op.count;
}

/*
 * Keeps a unit that the host failed to store, so that it can be read. If it is
 * safe, it also stays in the file: opened again, the drive programs it. Nobody
 * waits for it any more.
 */
static void keep_failed(RsdDrive *drive, BufUnit *unit)
{
    Buffer *buf = drive->buffer;

    list_remove(&buf->closed[unit->op.ns], unit);
    list_add(&buf->failed, unit);
    for (uint32_t i = 0; i < unit->taken; i++) {
        Cmd *cmd = unit->slots[i].cmd;

        if (cmd) {
            unit->slots[i].cmd = NULL;
            cmd->pub.status = RSD_E_MEDIA;
            rsd_cmd_drop(drive, cmd);
        }
    }
    for (Op *op = buf->flushes[unit->op.ns].head; op; op = op->next) {
        if (op->enqueued >= unit->seq) {
            op->cmd->pub.status = RSD_E_MEDIA;
        }
    }
}

RSD_APART void rsd_buffer_programmed(RsdDrive *drive, Op *op)
{
    Buffer *buf = drive->buffer;
    BufUnit *unit = unit_of(op);
    BufUnitList *closed = &buf->closed[op->ns];
    OpList *flushes = &buf->flushes[op->ns];

    for (uint32_t i = 0; i < drive->unit; i++) {
        (&drive->count->prog_host)[unit->slots[i].cause]++;
    }
    if (op->failed) {
        keep_failed(drive, unit);
    } else {
        tell(drive, unit, 0, drive->unit);
        remove_unit(drive, unit);
    }
    buf->used -= drive->unit;
    while (flushes->head && (!closed->head ||
                             closed->head->seq > flushes->head->enqueued)) {
        Op *flush = flushes->head;

        flushes->head = flush->next;
        rsd_op_finish(drive, flush);
    }
    op->buf = NULL;             /* not for those above */
    take(drive);
}

bool rsd_buffer_busy(const Ns *ns)
{
    const Buffer *buf = ns->drive->buffer;

    return buf->queue.head || buf->closed[ns->index].head;
}

RsdCause rsd_buffer_cause(const Op *op, uint32_t slot)
{
    return ((const BufUnit *)op)->slots[slot].cause;
}

uint64_t rsd_buffer_lba(const Op *op, uint32_t slot)
{
    return ((const BufUnit *)op)->slots[slot].lba;
}

bool rsd_buffer_hold(RsdDrive *drive)
{
    bool held = drive->buffer->taking;

    drive->buffer->taking = true;
    return held;
}

void rsd_buffer_go_on(RsdDrive *drive, bool held)
{
    drive->buffer->taking = held;
    take(drive);
}

/*
 * Refuses a write whose zone was reset before all its data was here, or safe.
 */
static void refuse_write(Cmd *cmd)
{
    if (cmd && cmd->pub.status == RSD_OK &&
        (cmd->pub.op == RSD_WRITE || cmd->pub.op == RSD_WRITE_ZEROES)) {
        cmd->pub.status = RSD_E_ORDER;
    }
}

/* Drops a block's units in a list that are not closed, or have failed. */
static void drop_units(Ns *ns, const BufUnitList *list, uint32_t block)
{
    RsdDrive *drive = ns->drive;

    for (BufUnit *unit = list->head, *next; unit; unit = next) {
        next = unit->next;
        if (unit->block != block) {
            continue;
        }
        for (uint32_t i = 0; ns->geo.zoned && !unit->closed && i < unit->taken;
             i++) {
            refuse_write(unit->slots[i].cmd);
        }
        if (!unit->closed) {
            /*
             * In a conventional namespace, the data that replaces it is safe.
             */
            tell(drive, unit, 0, unit->taken);
        }
        remove_unit(drive, unit);
        put_free(drive, unit);
    }
}

void rsd_buffer_drop(Ns *ns, uint32_t block)
{
    RsdDrive *drive = ns->drive;
    Buffer *buf = drive->buffer;
    OpList old = buf->queue;
    bool held;

    if (!drive->blocks[block].buffered) {
        return;
    }
    /* No slot may be taken before all of them are gone. */
    held = rsd_buffer_hold(drive);
    buf->queue = (OpList){ NULL, NULL };
    for (Op *op = old.head, *next; op; op = next) {
        next = op->next;
        if (op->kind == OP_PROGRAM && !op->area && op->block == block) {
            if (ns->geo.zoned) {
                refuse_write(op->cmd);
            }
            drive->buffer->up->op_buffered(ns, op);
        } else {
            rsd_op_list_add(&buf->queue, op);
        }
    }
    drop_units(ns, &buf->begun, block);
    drop_units(ns, &buf->coming, block);
    drop_units(ns, &buf->failed, block);
    /*
     * Queued units will be programmed, but must not come back when the drive is
     * opened.
     */
    for (BufUnit *unit = buf->closed[ns->index].head; unit;
         unit = unit->next) {
        if (unit->block == block) {
            if (unit->place != RSD_NONE) {
                rsd_media_drop_unit(&drive->media, unit->place);
                unit->place = RSD_NONE;
            }
            unit->safe = 0;
            unit->dropped = true;
        }
    }
    rsd_buffer_go_on(drive, held);
}

void rsd_buffer_trim(Ns *ns, uint64_t lba, uint64_t n)
{
    const Buffer *buf = ns->drive->buffer;
    /*
     * A slot that is to come, and overlaps the trim, is of a write before it.
     */
    BufUnit *const lists[] = { buf->begun.head, buf->closed[ns->index].head };

    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++) {
        for (BufUnit *unit = lists[l]; unit; unit = unit->next) {
            for (uint32_t i = 0; i < unit->came; i++) {
                BufSlot *slot = &unit->slots[i];

                if (unit->op.ns == ns->index &&
                    slot->cause == RSD_CAUSE_HOST && slot->lba - lba < n) {
                    slot->lba = UINT64_MAX;
                }
            }
        }
    }
}

void rsd_buffer_drop_area(Ns *ns, uint32_t zone)
{
    Buffer *buf = ns->drive->buffer;
    OpList old = buf->queue;

    buf->queue = (OpList){ NULL, NULL };
    for (Op *op = old.head, *next; op; op = next) {
        next = op->next;
        if (op->area && op->block == zone) {
            refuse_write(op->cmd);
            leave_area(ns->drive, op, false);
        } else {
            rsd_op_list_add(&buf->queue, op);
        }
    }
}

bool rsd_buffer_queued(const Ns *ns, uint32_t block)
{
    const Buffer *buf = ns->drive->buffer;
    const BufUnit *unit = ns->drive->blocks[block].buffered
                              ? buf->closed[ns->index].head : NULL;

    while (unit && (unit->block != block || unit->dropped)) {
        unit = unit->next;
    }
    return unit;
}

uint32_t rsd_buffer_has(const RsdDrive *drive, uint32_t block, uint32_t page)
{
    const BufUnit *unit = find(drive, block, page);

    return unit ? unit->safe : 0;
}

bool rsd_buffer_protects(const Op *op)
{
    return op->unit && ((const BufUnit *)op)->safe;
}

const Op *rsd_buffer_next_volatile(const RsdDrive *drive, uint64_t *seq,
                                   uint32_t *page)
{
    const BufUnit *found = NULL;

    for (uint32_t ns = 0; ns < drive->num_ns; ns++) {
        const BufUnit *unit = drive->buffer->closed[ns].head;

        while (unit && (unit->seq <= *seq || unit->safe)) {
            unit = unit->next;
        }
        if (unit && (!found || unit->seq < found->seq)) {
            found = unit;
        }
    }
    if (!found) {
        return NULL;
    }
    *seq = found->seq;
    *page = found->page;
    return &found->op;
}

uint64_t rsd_buffer_closed(const Op *op, uint64_t *since)
{
    const BufUnit *unit = (const BufUnit *)op;

    *since = op->unit ? unit->since : 0;
    return op->unit ? unit->seq : 0;
}

void rsd_buffer_count_anew(RsdDrive *drive)
{
    for (uint32_t ns = 0; ns < drive->num_ns; ns++) {
        for (BufUnit *unit = drive->buffer->closed[ns].head; unit;
             unit = unit->next) {
            unit->since = 0;
        }
    }
}

uint32_t rsd_buffer_safe(const RsdDrive *drive, uint32_t block)
{
    const Buffer *buf = drive->buffer;
    const BufUnit *lists[] = { buf->begun.head, buf->closed[0].head };
    uint32_t end = 0;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (const BufUnit *unit = lists[i]; unit; unit = unit->next) {
            if (unit->block == block && unit->safe &&
                unit->page + unit->safe > end) {
                end = unit->page + unit->safe;
            }
        }
    }
    return end;
}

const uint8_t *rsd_buffer_oob(const RsdDrive *drive, uint32_t block,
                              uint32_t page, uint32_t slot)
{
    return find(drive, block, page)->payload + (size_t)slot * SLOT_BYTES +
           RSD_PAGE_SIZE;
}

/*
 * Opening
 */

bool rsd_buffer_init(RsdDrive *drive)
{
    const RsdConfig *cfg = &drive->cfg;
    Buffer *buf = drive->buffer;

    buf->on = rsd_buffer_on(cfg);
    buf->size = rsd_buffer_slots(cfg);
    if (!buf->on) {
        return true;
    }
    buf->chains = FIRST_HASH;
    buf->hash = rsd_alloc(drive, hash_size(buf->chains));
    return buf->hash;
}

bool rsd_buffer_load(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    RsdMedia *media = &drive->media;

    for (uint32_t place = 0; place < media->places; place++) {
        const RsdMediaUnit *rec = &media->units[place];
        BufUnit *unit;

        if (!rec->taken) {
            continue;
        }
        if (rec->taken > drive->unit || rec->page % drive->unit ||
            rec->page >= drive->pages ||
            rec->block >= drive->dies * drive->die_blocks) {
            rsd_set_error(err, "the media file is corrupt: entry %u of its "
                          "write buffer (block %u, page %u, %u pages); restore "
                          "it from a copy, or remove it", place, rec->block,
                          rec->page, rec->taken);
            return false;
        }
        if (!rsd_media_claim_place(media, place) ||
            rsd_buffer_reserve(drive, 1) != RSD_OK) {
            rsd_set_error(err, "no memory or disk space for what the write "
                          "buffer holds: free some");
            return false;
        }
        unit = new_unit(drive, 0, rec->block, rec->page);
        begin_unit(drive->buffer, unit);
        unit->op.ns = rsd_ns_of(drive, rec->block)->index;
        unit->came = unit->taken = unit->safe = rec->taken;
        unit->place = place;
        for (uint32_t i = 0; i < unit->taken; i++) {
            unit->slots[i] = (BufSlot){ .cause = RSD_CAUSE_HOST };
        }
        if (!rsd_media_load_unit(media, place, unit->payload, unit->taken)) {
            rsd_set_error(err, "cannot read the write buffer in the media "
                          "file: look at the host's disk");
            return false;
        }
    }
    return true;
}

void rsd_buffer_restore(Ns *ns, uint32_t block, uint32_t page)
{
    RsdDrive *drive = ns->drive;
    BufUnit *unit = find(drive, block, page);
    uint32_t n = drive->unit, pad = n - (unit ? unit->taken : 0);

    if (unit && unit->payload) {
        memset(unit->payload + (size_t)unit->taken * SLOT_BYTES, 0,
               (size_t)pad * SLOT_BYTES);
    }
    rsd_nand_program_unit(&drive->media, block, page, n,
                          unit ? unit->payload : NULL);
    drive->count->prog_host += n - pad;
    drive->count->prog_pad += pad;
    drive->count->nand_programs += n / drive->sched.page;
    if (unit) {
        remove_unit(drive, unit);
        put_free(drive, unit);
    }
}

void rsd_buffer_forget(RsdDrive *drive, uint32_t block, uint32_t page)
{
    BufUnit *unit = find(drive, block, page);

    if (unit) {
        remove_unit(drive, unit);
        put_free(drive, unit);
    }
}

/*
 * Says whether a unit goes on where its block ends, and the block is of a used
 * segment. (A conventional namespace's block is erased before it gets a unit.)
 * Otherwise it was programmed when the process was killed, or given up. The
 * entry of a segment that was reset owns its block, too, until that is erased.
 */
static bool continues(const Ns *ns, const BufUnit *unit)
{
    uint64_t rec = ns->drive->media.rec[unit->block];

    return rsd_rec_next(rec) == unit->page &&
           !(rsd_rec_flags(rec) & RSD_BLOCK_BAD) &&
           (!ns->geo.zoned ||
            (ns->drive->blocks[unit->block].owner != RSD_NONE &&
             !ns->drive->blocks[unit->block].obsolete));
}

bool rsd_buffer_kept(const Ns *ns)
{
    const BufUnit *unit = ns->drive->buffer->begun.head;

    while (unit && unit->op.ns != ns->index) {
        unit = unit->next;
    }
    return unit;
}

void rsd_buffer_settle(Ns *ns)
{
    RsdDrive *drive = ns->drive;
    Buffer *buf = drive->buffer;
    BufUnit *unit = ns->geo.zoned ? NULL : buf->begun.head;
    bool fills_up = buf->up->pads(ns);

    /* the units of a block are in any order here */
    while (unit) {
        if (unit->op.ns == ns->index && continues(ns, unit) &&
            (fills_up || unit->taken == drive->unit)) {
            rsd_buffer_restore(ns, unit->block, unit->page);
            unit = buf->begun.head;
        } else {
            unit = unit->next;
        }
    }
    for (BufUnit *next, *u = buf->begun.head; u; u = next) {
        next = u->next;
        if (u->op.ns == ns->index && (fills_up || !continues(ns, u))) {
            remove_unit(drive, u);
            put_free(drive, u);
        }
    }
}

void rsd_buffer_fini(RsdDrive *drive)
{
    Buffer *buf = drive->buffer;

    while (buf->begun.head) {
        BufUnit *unit = buf->begun.head;

        buf->begun.head = unit->next;
        dispose(drive, unit);
    }
    while (buf->coming.head) {
        BufUnit *unit = buf->coming.head;

        buf->coming.head = unit->next;
        dispose(drive, unit);
    }
    for (uint32_t ns = 0; ns < RSD_MAX_NAMESPACES; ns++) {
        while (buf->closed[ns].head) {
            BufUnit *unit = buf->closed[ns].head;

            buf->closed[ns].head = unit->next;
            dispose(drive, unit);
        }
    }
    while (buf->failed.head) {
        BufUnit *unit = buf->failed.head;

        buf->failed.head = unit->next;
        dispose(drive, unit);
    }
    while (buf->free) {
        BufUnit *unit = buf->free;

        buf->free = unit->next;
        dispose(drive, unit);
    }
    rsd_release(drive, buf->hash, hash_size(buf->chains));
}
