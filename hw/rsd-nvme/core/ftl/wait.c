/*
 * Commands that wait in a personality, in the order in which they came, and who
 * of them is to be looked at.
 *
 * When something has changed, a personality goes through those that wait, in
 * their order. To look at each of them would take time in proportion to their
 * number, for every change. So each has a mask that says what it waits for,
 * bits that mean what the personality wants them to, and rsd_waits_next() leads
 * to the next one that has one of given bits. Commands that have a mask are in a
 * tree, in their order: a node has the bits of all that are below it. Of those
 * that overlap only the first one has a mask. So the tree is no deeper the more
 * commands wait, once they are for all of the drive.
 *
 * Order. A command that overlaps one that came before it and waits must not be
 * looked at, unless both are reads. It follows one of these, and has no bit
 * until there is none (spans.c finds them). In the same way a trim follows a
 * write in flight that it overlaps. When the one that is followed goes, those
 * that follow it look for another one.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>

#include "ftl.h"

#define FIRST_SLOTS 64u

static Cmd *cmd_of(Span *span, size_t offset)
{
    return span ? (Cmd *)((char *)span - offset) : NULL;
}

static bool is_trim(const Cmd *cmd)
{
    return cmd->pub.op == RSD_TRIM || cmd->pub.op == RSD_WRITE_ZEROES;
}

static Span span_of(const Cmd *cmd, uint64_t done)
{
    return (Span){
        .from = cmd->pub.lba + done,
        .end = cmd->pub.lba + cmd->pub.nlb,
        .order = cmd->begun,
        .read = cmd->pub.op == RSD_READ,
    };
}

/* What counts of it for those behind it */
static Span waiting_span(const Waits *w, const Cmd *cmd)
{
    return span_of(cmd, w->rest_counts ? cmd->progress : 0);
}

/*
 * Writes in flight
 */

static void end_following(Cmd *cmd)
{
    Cmd *to = cmd->follows;

    if (cmd->follow_prev) {
        cmd->follow_prev->follow_next = cmd->follow_next;
    } else {
        to->followers = cmd->follow_next;
    }
    if (cmd->follow_next) {
        cmd->follow_next->follow_prev = cmd->follow_prev;
    }
    cmd->follows = NULL;
}

static void follow(Cmd *cmd, Cmd *to)
{
    cmd->follows = to;
    cmd->follow_prev = NULL;
    cmd->follow_next = to->followers;
    if (to->followers) {
        to->followers->follow_prev = cmd;
    }
    to->followers = cmd;
}

static void find_another(Waits *w, Cmd *cmd)
{
    Cmd *to = rsd_waits_blocker(w, cmd);

    if (!to && is_trim(cmd)) {
        to = rsd_write_in_flight(w->ns, cmd);
    }
    if (to) {
        follow(cmd, to);
    }
}

/* Nobody is to follow it any more for the reason that they did. */
static void dismiss(Cmd *cmd, Waits *w)
{
    Cmd *first = cmd->followers;

    cmd->followers = NULL;
    for (Cmd *next; first; first = next) {
        next = first->follow_next;
        first->follows = NULL;
        find_another(w, first);
        if (!first->follows) {
            w->freed(w->ns, first);
        }
    }
}

void rsd_write_begins(Cmd *cmd, Ns *ns)
{
    cmd->write = span_of(cmd, 0);
    cmd->in_flight = true;
    rsd_span_add(&ns->writes, &cmd->write);
}

void rsd_write_ends(Cmd *cmd, Ns *ns)
{
    cmd->in_flight = false;
    rsd_span_remove(&ns->writes, &cmd->write);
    if (cmd->followers) {
        dismiss(cmd, ns->waits);
    }
}

Cmd *rsd_write_in_flight(Ns *ns, const Cmd *cmd)
{
    Span of = span_of(cmd, 0);

    if (!ns->watches_writes) {
        ns->watches_writes = true;
        for (Cmd *c = ns->drive->cmds; c; c = c->next) {
            if (c->submitted && c->pending && c->pub.op == RSD_WRITE &&
                c->pub.ns == ns->index) {
                rsd_write_begins(c, ns);
            }
        }
    }
    return cmd_of(rsd_span_find(ns->writes, &of), offsetof(Cmd, write));
}

/*
 * Masks
 */

static size_t mask_size(const Waits *w)
{
    return w->width * sizeof(uint64_t);
}

static size_t masks_size(const Waits *w, uint32_t slots)
{
    return 2 * slots * mask_size(w);
}

/* The command's own one */
static uint64_t *mask_of(const Waits *w, const Cmd *cmd)
{
    return w->masks + (size_t)2 * cmd->slot * w->width;
}

/* The bits of all below it, itself included */
static uint64_t *sum_of(const Waits *w, const Cmd *cmd)
{
    return mask_of(w, cmd) + w->width;
}

/* True: the sum has changed. */
static bool sum_up(Waits *w, Cmd *cmd)
{
    const uint64_t *mask = mask_of(w, cmd);
    const uint64_t *before = cmd->below[0] ? sum_of(w, cmd->below[0]) : mask;
    const uint64_t *behind = cmd->below[1] ? sum_of(w, cmd->below[1]) : mask;
    uint64_t *sum = sum_of(w, cmd), changed = 0;
    uint32_t i = w->width;

    do {
        uint64_t all;

        i--;
        all = mask[i] | before[i] | behind[i];
        changed |= sum[i] ^ all;
        sum[i] = all;
    } while (i);
    return changed;
}

/* The command and all above it, as far as something changes */
static void sum_up_from(Waits *w, Cmd *cmd)
{
    while (cmd && sum_up(w, cmd)) {
        cmd = cmd->above;
    }
}

/* The command has others below it. */
static void set_below(Waits *w, Cmd *cmd, Cmd *before, Cmd *behind)
{
    cmd->below[0] = before;
    cmd->below[1] = behind;
    for (int i = 0; i < 2; i++) {
        if (cmd->below[i]) {
            cmd->below[i]->above = cmd;
        }
    }
    sum_up(w, cmd);
}

/* Divides a tree into those before a command, and those behind it. */
static void split(Waits *w, Cmd *root, const Cmd *at, Cmd *parts[2])
{
    Cmd *inner[2];

    if (!root) {
        parts[0] = parts[1] = NULL;
    } else if (root->begun < at->begun) {
        split(w, root->below[1], at, inner);
        set_below(w, root, root->below[0], inner[0]);
        parts[0] = root;
        parts[1] = inner[1];
    } else {
        split(w, root->below[0], at, inner);
        set_below(w, root, inner[1], root->below[1]);
        parts[0] = inner[0];
        parts[1] = root;
    }
}

/* Of two trees, all of the first one being before the second one */
static Cmd *join(Waits *w, Cmd *first, Cmd *second)
{
    if (!first || !second) {
        return first ? first : second;
    }
    if (first->priority > second->priority) {
        set_below(w, first, first->below[0], join(w, first->below[1], second));
        return first;
    }
    set_below(w, second, join(w, first, second->below[0]), second->below[1]);
    return second;
}

/* Puts a command that has a mask in the tree. */
static void put(Waits *w, Cmd *cmd)
{
    const uint64_t *mask = mask_of(w, cmd);
    Cmd **root = &w->marked, *parts[2];

    /* A treap, as in spans.c */
    cmd->priority = rsd_random(0, cmd->begun);
    cmd->above = NULL;
    while (*root && (*root)->priority >= cmd->priority) {
        uint64_t *sum = sum_of(w, *root);

        for (uint32_t i = 0; i < w->width; i++) {
            sum[i] |= mask[i];
        }
        cmd->above = *root;
        root = &(*root)->below[(*root)->begun < cmd->begun];
    }
    split(w, *root, cmd, parts);
    set_below(w, cmd, parts[0], parts[1]);
    *root = cmd;
}

/* Takes a command out of the tree. */
static void take_out(Waits *w, const Cmd *cmd)
{
    Cmd *above = cmd->above, *next = join(w, cmd->below[0], cmd->below[1]);

    if (next) {
        next->above = above;
    }
    if (above) {
        above->below[above->begun < cmd->begun] = next;
    } else {
        w->marked = next;
    }
    sum_up_from(w, above);
}

void rsd_waits_mark(Waits *w, Cmd *cmd, const uint64_t *mask)
{
    if (cmd->slot == RSD_NONE) {
        if (mask) {
            cmd->slot = w->free_slots[--w->num_free];
            memcpy(mask_of(w, cmd), mask, mask_size(w));
            put(w, cmd);
        }
        return;
    }
    if (!mask) {
        take_out(w, cmd);
        w->free_slots[w->num_free++] = cmd->slot;
        cmd->slot = RSD_NONE;
    } else if (memcmp(mask_of(w, cmd), mask, mask_size(w))) {
        memcpy(mask_of(w, cmd), mask, mask_size(w));
        sum_up_from(w, cmd);
    }
}

static bool has(const Waits *w, const uint64_t *mask, const uint64_t *want)
{
    uint64_t common = 0;
    uint32_t i = w->width;

    do {
        i--;
        common |= mask[i] & want[i];
    } while (i);
    return common;
}

static Cmd *next_below(const Waits *w, Cmd *root, uint64_t from,
                       const uint64_t *want)
{
    while (root && has(w, sum_of(w, root), want)) {
        if (root->begun >= from) {
            Cmd *found = next_below(w, root->below[0], from, want);

            if (found) {
                return found;
            }
            if (has(w, mask_of(w, root), want)) {
                return root;
            }
        }
        root = root->below[1];
    }
    return NULL;
}

Cmd *rsd_waits_next(const Waits *w, uint64_t from, const uint64_t *want)
{
    return next_below(w, w->marked, from, want);
}

bool rsd_waits_reserve(Waits *w)
{
    RsdDrive *drive = w->ns->drive;
    uint32_t slots = w->slots ? 2 * w->slots : FIRST_SLOTS;
    uint32_t *free_slots;
    uint64_t *masks;

    if (!w->width || w->len < w->slots) {
        return true;
    }
    free_slots = rsd_alloc(drive, slots * sizeof(*free_slots));
    masks = rsd_alloc(drive, masks_size(w, slots));
    if (!free_slots || !masks) {
        rsd_release(drive, free_slots, slots * sizeof(*free_slots));
        rsd_release(drive, masks, masks_size(w, slots));
        return false;
    }
    if (w->slots) {
        memcpy(free_slots, w->free_slots, w->num_free * sizeof(*free_slots));
        memcpy(masks, w->masks, masks_size(w, w->slots));
    }
    for (uint32_t slot = slots; slot > w->slots; slot--) {
        free_slots[w->num_free++] = slot - 1;
    }
    rsd_waits_fini(w);
    w->free_slots = free_slots;
    w->masks = masks;
    w->slots = slots;
    return true;
}

void rsd_waits_fini(Waits *w)
{
    rsd_release(w->ns->drive, w->free_slots,
                w->slots * sizeof(*w->free_slots));
    rsd_release(w->ns->drive, w->masks, masks_size(w, w->slots));
}

/*
 * Those that wait
 */

Cmd *rsd_waits_blocker(const Waits *w, const Cmd *cmd)
{
    Span of = waiting_span(w, cmd);

    return cmd_of(rsd_span_find(w->spans, &of), offsetof(Cmd, span));
}

Cmd *rsd_waits_at(const Waits *w, uint64_t lba)
{
    return cmd_of(rsd_span_at(w->spans, lba), offsetof(Cmd, span));
}

void rsd_waits_add_behind(Waits *w, Cmd *cmd, Cmd *to)
{
    cmd->wait_prev = w->tail;
    cmd->wait_next = NULL;
    if (w->tail) {
        w->tail->wait_next = cmd;
    } else {
        w->head = cmd;
    }
    w->tail = cmd;
    w->len++;
    cmd->waits = true;
    cmd->span = waiting_span(w, cmd);
    rsd_span_add(&w->spans, &cmd->span);
    if (w->width) {
        cmd->slot = RSD_NONE;
        if (to) {
            follow(cmd, to);
        }
    }
}

void rsd_waits_add(Waits *w, Cmd *cmd)
{
    rsd_waits_add_behind(w, cmd, NULL);
    if (w->width) {
        find_another(w, cmd);
    }
}

void rsd_waits_remove(Waits *w, Cmd *cmd)
{
    if (cmd->wait_prev) {
        cmd->wait_prev->wait_next = cmd->wait_next;
    } else {
        w->head = cmd->wait_next;
    }
    if (cmd->wait_next) {
        cmd->wait_next->wait_prev = cmd->wait_prev;
    } else {
        w->tail = cmd->wait_prev;
    }
    w->len--;
    cmd->waits = false;
    rsd_span_remove(&w->spans, &cmd->span);
    if (w->width) {
        rsd_waits_mark(w, cmd, NULL);
    }
    if (cmd->follows) {
        end_following(cmd);
    }
    dismiss(cmd, w);
}

void rsd_waits_went_on(Waits *w, Cmd *cmd)
{
    rsd_span_remove(&w->spans, &cmd->span);
    cmd->span = waiting_span(w, cmd);
    rsd_span_add(&w->spans, &cmd->span);
    dismiss(cmd, w);
}

void rsd_waits_follow_write(Waits *w, Cmd *cmd)
{
    if (!cmd->follows) {
        find_another(w, cmd);
    }
}
