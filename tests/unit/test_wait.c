/*
 * Commands that wait: ranges that overlap, and who is to be looked at next,
 * held against going through all of them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "harness.h"
#include "floors.h"

#define SPANS 400
#define LBAS 500

/* Does a conflict with b, and come before it? */
static bool conflicts(const Span *a, const Span *b)
{
    return a->order < b->order && a->from < b->end && b->from < a->end &&
           !(a->read && b->read);
}

static void check_find(Span *root, const Span *spans, const bool *in,
                       const Span *of)
{
    const Span *found = rsd_span_find(root, of), *best = NULL;

    for (int i = 0; i < SPANS; i++) {
        if (in[i] && conflicts(&spans[i], of) &&
            (!best || spans[i].from > best->from ||
             (spans[i].from == best->from && spans[i].order > best->order))) {
            best = &spans[i];
        }
    }
    CHECK(found == best);
}

static void check_at(Span *root, const Span *spans, const bool *in,
                     uint64_t from)
{
    const Span *oldest = NULL;

    for (int i = 0; i < SPANS; i++) {
        if (in[i] && spans[i].from == from &&
            (!oldest || spans[i].order < oldest->order)) {
            oldest = &spans[i];
        }
    }
    CHECK(rsd_span_at(root, from) == oldest);
}

static Span random_span(uint64_t seed, uint64_t i)
{
    uint64_t r = rsd_random(seed, i), len = 1 + (r >> 40) % (r & 7 ? 9 : 200);
    uint64_t from = r % LBAS;

    return (Span){ .from = from, .end = from + len, .order = i + 1,
                   .read = r >> 20 & 1 };
}

TEST(spans_that_overlap_are_found)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        Span spans[SPANS], *root = NULL;
        bool in[SPANS] = { false };

        for (uint64_t step = 0; step < 3000; step++) {
            uint64_t r = rsd_random(seed + 100, step);
            int i = r % SPANS;

            if (in[i]) {
                rsd_span_remove(&root, &spans[i]);
            } else {
                spans[i] = random_span(seed, step);
                rsd_span_add(&root, &spans[i]);
            }
            in[i] = !in[i];
            if (in[i]) {
                check_find(root, spans, in, &spans[i]);
            }
            i = (r >> 32) % SPANS;
            if (in[i]) {
                check_find(root, spans, in, &spans[i]);
                check_at(root, spans, in, spans[i].from);
            }
            check_at(root, spans, in, r % LBAS);
        }
    }
}

#define CMDS 700u
#define WIDTH 2u

static uint32_t num_freed;

static void freed(Ns *ns, Cmd *cmd)
{
    (void)ns;
    CHECK(!cmd->follows);
    num_freed++;
}

typedef struct Crowd {
    RsdDrive drive;
    Ns ns;
    Waits waits;
    Cmd *cmds;
    uint64_t (*masks)[WIDTH];
} Crowd;

static const Cmd *first_conflict(const Crowd *c, const Cmd *cmd)
{
    for (const Cmd *o = c->waits.head; o != cmd; o = o->wait_next) {
        if (o->pub.lba < cmd->pub.lba + cmd->pub.nlb &&
            cmd->pub.lba < o->pub.lba + o->pub.nlb &&
            !(o->pub.op == RSD_READ && cmd->pub.op == RSD_READ)) {
            return o;
        }
    }
    return NULL;
}

/* As rsd_waits_next(), one by one */
static const Cmd *next_of(const Crowd *c, uint64_t from, const uint64_t *want)
{
    for (const Cmd *cmd = c->waits.head; cmd; cmd = cmd->wait_next) {
        const uint64_t *mask = c->masks[cmd - c->cmds];

        if (cmd->begun >= from &&
            ((mask[0] & want[0]) || (mask[1] & want[1]))) {
            return cmd;
        }
    }
    return NULL;
}

static void check_crowd(Crowd *c, uint64_t r)
{
    uint64_t want[WIDTH] = { UINT64_C(1) << r % 64, r >> 32 & r >> 20 };
    uint64_t from = 0;

    for (int i = 0; i < 5; i++) {
        const Cmd *cmd = rsd_waits_next(&c->waits, from, want);

        CHECK(cmd == next_of(c, from, want));
        from = cmd ? cmd->begun + 1 : 0;
    }
    for (const Cmd *cmd = c->waits.head; cmd; cmd = cmd->wait_next) {
        const Cmd *first = first_conflict(c, cmd);

        CHECK(!cmd->follows == !first);
        CHECK(!cmd->follows || cmd->follows->waits);
    }
}

TEST(waiting_commands_are_looked_at_in_order)
{
    Crowd c = { .waits = { .width = WIDTH, .freed = freed } };
    uint32_t n = 0, freed_before;

    c.ns.drive = &c.drive;
    c.waits.ns = &c.ns;
    c.cmds = calloc(CMDS, sizeof(Cmd));
    c.masks = calloc(CMDS, sizeof(*c.masks));
    freed_before = num_freed;
    for (uint64_t step = 0; n < CMDS; step++) {
        uint64_t r = rsd_random(7, step);
        Cmd *cmd = c.waits.head;

        for (uint64_t i = r % (c.waits.len + 1); cmd && i; i--) {
            cmd = cmd->wait_next;
        }
        if (r % 5 < 2 && cmd && !cmd->follows) {
            rsd_waits_remove(&c.waits, cmd);
        } else if (r % 5 == 2 && cmd) {
            uint64_t *mask = c.masks[cmd - c.cmds];

            mask[0] = rsd_random(8, step) & rsd_random(9, step);
            mask[1] = rsd_random(10, step) & rsd_random(11, step);
            rsd_waits_mark(&c.waits, cmd, mask);
        } else {
            cmd = &c.cmds[n++];
            cmd->pub.op = r >> 40 & 1 ? RSD_READ : RSD_WRITE;
            cmd->pub.lba = (r >> 44) % 300;
            cmd->pub.nlb = 1 + (r >> 54) % 8;
            cmd->begun = n;
            CHECK(rsd_waits_reserve(&c.waits));
            rsd_waits_add(&c.waits, cmd);
        }
        if (step % 7 == 0) {
            check_crowd(&c, r);
        }
    }
    CHECK(num_freed > freed_before);
    while (c.waits.head) {
        rsd_waits_remove(&c.waits, c.waits.head);
    }
    CHECK(!c.waits.spans);
    rsd_waits_fini(&c.waits);
    CHECK_EQ(c.drive.ram_bytes, 0);
    free(c.cmds);
    free(c.masks);
}
