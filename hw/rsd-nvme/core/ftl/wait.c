/*
 * Commands that wait in a personality, in the order in which they came, and who
 * of them is to be looked at.
 *
 * When something has changed, a personality goes through those that wait, in
 * their order. To look at each of them would take time in proportion to their
 * number, for every change. So each has a mask that says what it waits for,
 * bits that mean what the personality wants them to, and rsd_waits_next() leads
 * to the next one that has one of given bits. Masks are in a tree over the
 * places that commands have: a node has the bits of all that are below it.
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

#define FIRST_PLACES 64u

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

static size_t places_size(uint32_t places)
{
    return places * sizeof(Cmd *);
}

static size_t masks_size(const Waits *w, uint32_t places)
{
    return (size_t)2 * places * w->width * sizeof(uint64_t);
}

static uint64_t *mask_at(const Waits *w, uint32_t node)
{
    return w->masks + (size_t)node * w->width;
}

void rsd_waits_mark(Waits *w, Cmd *cmd, const uint64_t *mask)
{
    uint32_t node = w->places + cmd->place;

    for (uint32_t i = 0; i < w->width; i++) {
        mask_at(w, node)[i] = mask ? mask[i] : 0;
    }
    while (node /= 2) {
        uint64_t *to = mask_at(w, node), *a = mask_at(w, 2 * node);
        uint64_t changed = 0;

        for (uint32_t i = 0; i < w->width; i++) {
            uint64_t both = a[i] | a[i + w->width];

            changed |= both ^ to[i];
            to[i] = both;
        }
        if (!changed) {
            return;
        }
    }
}

static bool has(const Waits *w, uint32_t node, const uint64_t *want)
{
    const uint64_t *mask = mask_at(w, node);
    uint64_t common = 0;

    for (uint32_t i = 0; i < w->width; i++) {
        common |= mask[i] & want[i];
    }
    return common;
}

Cmd *rsd_waits_next(const Waits *w, uint32_t from, const uint64_t *want)
{
    uint32_t node = w->places + from;

    if (from >= w->next_place) {
        return NULL;
    }
    while (!has(w, node, want)) {
        while (node & 1) {
            node /= 2;
            if (!node) {
                return NULL;
            }
        }
        node++;
    }
    while (node < w->places) {
        node *= 2;
        node += !has(w, node, want);
    }
    return w->at[node - w->places];
}

/* The same of all that wait, in new memory: they move to its first places. */
static void move_all(Waits *w, Cmd **at, uint64_t *masks, uint32_t places)
{
    uint32_t n = 0;

    for (Cmd *cmd = w->head; cmd; cmd = cmd->wait_next) {
        memcpy(masks + (size_t)(places + n) * w->width,
               mask_at(w, w->places + cmd->place),
               w->width * sizeof(uint64_t));
        at[n] = cmd;
        cmd->place = n++;
    }
    for (uint32_t node = places - 1; node; node--) {
        for (uint32_t i = 0; i < w->width; i++) {
            masks[(size_t)node * w->width + i] =
                masks[(size_t)2 * node * w->width + i] |
                masks[((size_t)2 * node + 1) * w->width + i];
        }
    }
    w->next_place = n;
}

bool rsd_waits_reserve(Waits *w)
{
    RsdDrive *drive = w->ns->drive;
    uint32_t places = w->places ? w->places : FIRST_PLACES;
    uint64_t *masks;
    Cmd **at;

    if (!w->width || w->next_place < w->places) {
        return true;
    }
    /* so that this does not come again before as many have come */
    while (w->len > places / 2) {
        places *= 2;
    }
    at = rsd_alloc(drive, places_size(places));
    masks = rsd_alloc(drive, masks_size(w, places));
    if (!at || !masks) {
        rsd_release(drive, at, places_size(places));
        rsd_release(drive, masks, masks_size(w, places));
        return false;
    }
    move_all(w, at, masks, places);
    rsd_waits_fini(w);
    w->at = at;
    w->masks = masks;
    w->places = places;
    return true;
}

void rsd_waits_fini(Waits *w)
{
    rsd_release(w->ns->drive, w->at, places_size(w->places));
    rsd_release(w->ns->drive, w->masks, masks_size(w, w->places));
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

void rsd_waits_add(Waits *w, Cmd *cmd)
{
    cmd->wait_prev = w->tail;
    cmd->wait_next = NULL;
    if (w->tail) {
        w->tail->wait_next = cmd;
    } else {
        w->head = cmd;
        w->next_place = 0;
    }
    w->tail = cmd;
    w->len++;
    cmd->waits = true;
    cmd->span = waiting_span(w, cmd);
    rsd_span_add(&w->spans, &cmd->span);
    if (w->width) {
        cmd->place = w->next_place++;
        w->at[cmd->place] = cmd;
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
