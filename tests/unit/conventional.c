/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <sys/mman.h>

#include "conventional.h"

#define MAX_IN_FLIGHT 12u

static Slot *new_slot(WorldModel *model)
{
    for (size_t i = 0; i < sizeof(model->slots) / sizeof(Slot); i++) {
        if (!model->slots[i].used) {
            model->slots[i].used = true;
            return &model->slots[i];
        }
    }
    FAIL("too many commands in flight");
}

static uint64_t newest(const LbaModel *m)
{
    return m->num_later ? m->later[m->num_later - 1].tag : m->tag;
}

static void submitted(LbaModel *m, uint64_t tag, uint32_t order)
{
    CHECK(m->num_later < MAX_LATER);
    m->later[m->num_later].tag = tag;
    m->later[m->num_later++].order = order;
}

static void acknowledged(LbaModel *m, uint32_t order)
{
    uint32_t n = 0;

    while (n < m->num_later && m->later[n].order <= order) {
        m->tag = m->later[n++].tag;
    }
    m->num_later -= n;
    memmove(m->later, m->later + n, m->num_later * sizeof(m->later[0]));
}

static void check_page(const Bed *bed, const RsdCmd *cmd, uint32_t i,
                       uint64_t tag)
{
    uint32_t oob = rsd_config(bed->drive)->oob;

    if (!page_matches(cmd->data + (size_t)i * PAGE,
                      oob ? cmd->oob + (size_t)i * oob : NULL, oob,
                      cmd->lba + i, tag)) {
        FAIL("LBA %" PRIu64 " does not hold pattern %" PRIu64, cmd->lba + i,
             tag);
    }
}

static void completed(World *w, RsdCmd *cmd)
{
    Slot *slot = cmd->opaque;
    bool failed = cmd->status != RSD_OK;

    CHECK(!failed || w->may_fail);
    w->failures += failed;
    for (uint32_t i = 0; i < cmd->nlb; i++) {
        if (cmd->op == RSD_READ) {
            if (!w->failures) {
                check_page(&w->bed, cmd, i, slot->tags[i]);
            }
        } else if (!failed) {
            acknowledged(&w->model->lbas[cmd->lba + i], slot->order);
        }
    }
    slot->used = false;
    rsd_cmd_free(w->bed.drive, cmd);
    w->in_flight--;
}

void world_pass(World *w, uint64_t ns)
{
    RsdCmd *cmd;

    w->bed.now += ns;
    while ((cmd = rsd_advance(w->bed.drive, w->bed.now))) {
        completed(w, cmd);
    }
}

static void submit(World *w, RsdOp op, uint64_t at, uint32_t nlb)
{
    WorldModel *model = w->model;
    uint32_t oob = rsd_config(w->bed.drive)->oob;
    RsdCmd *cmd = rsd_cmd_new(w->bed.drive, 0, op, at, nlb);
    Slot *slot = new_slot(model);
    RsdStatus status;

    CHECK(cmd && nlb <= sizeof(slot->tags) / sizeof(slot->tags[0]));
    slot->order = ++model->order;
    cmd->opaque = slot;
    for (uint32_t i = 0; i < nlb; i++) {
        LbaModel *m = &model->lbas[at + i];

        if (op == RSD_READ) {
            slot->tags[i] = newest(m);
            continue;
        }
        if (op == RSD_WRITE) {
            fill_page(cmd->data + (size_t)i * PAGE,
                      oob ? cmd->oob + (size_t)i * oob : NULL, oob, at + i,
                      model->order);
        }
        submitted(m, op == RSD_WRITE ? model->order : 0, model->order);
    }
    status = rsd_submit(w->bed.drive, cmd, w->bed.now);
    if (status == RSD_OK) {
        w->in_flight++;
        return;
    }
    CHECK(w->may_fail);
    w->failures++;
    for (uint32_t i = 0; op != RSD_READ && i < nlb; i++) {
        model->lbas[at + i].num_later--;
    }
    slot->used = false;
    rsd_cmd_free(w->bed.drive, cmd);
}

void world_step(World *w)
{
    uint64_t lbas = w->bed.geo.lbas;
    uint64_t kind = rng_below(&w->rng, 20);
    uint32_t nlb = 1 + rng_below(&w->rng, kind ? 8 : 40);
    /* half of it on a tenth of the LBAs */
    uint64_t range = rng_below(&w->rng, 2) ? lbas : lbas / 10 + 40;
    uint64_t at = rng_below(&w->rng, range - nlb + 1), when;

    submit(w, kind < 12 ? RSD_WRITE : kind < 17 ? RSD_READ :
              kind < 19 ? RSD_TRIM : RSD_WRITE_ZEROES, at, nlb);
    world_pass(w, rng_below(&w->rng, 3) ? rng_below(&w->rng, 300000) : 0);
    if (!rng_below(&w->rng, 40)) {
        world_pass(w, 20000000);
    }
    while (w->in_flight > MAX_IN_FLIGHT) {
        CHECK(rsd_next_event(w->bed.drive, &when));
        world_pass(w, when - w->bed.now);
    }
}

void world_drain(World *w)
{
    uint64_t when;

    while (rsd_next_event(w->bed.drive, &when)) {
        world_pass(w, when > w->bed.now ? when - w->bed.now : 0);
    }
    CHECK_EQ(w->in_flight, 0);
}

void world_check(World *w)
{
    for (uint64_t at = 0; at < w->bed.geo.lbas; at += 64) {
        uint64_t left = w->bed.geo.lbas - at;

        submit(w, RSD_READ, at, left < 64 ? left : 64);
    }
    while (w->in_flight) {
        uint64_t when;

        CHECK(rsd_next_event(w->bed.drive, &when));
        world_pass(w, when > w->bed.now ? when - w->bed.now : 0);
    }
}

/* Holds the LBA what it may? Its tag, if there is one. */
static bool holds(const LbaModel *m, const uint8_t *data, const uint8_t *oob,
                  uint32_t oob_len, uint64_t at, uint64_t *tag)
{
    bool found = page_matches(data, oob, oob_len, at, *tag = m->tag);

    for (uint32_t n = 0; !found && n < m->num_later; n++) {
        found = page_matches(data, oob, oob_len, at, *tag = m->later[n].tag);
    }
    return found;
}

void world_check_failed(World *w)
{
    uint32_t oob = rsd_config(w->bed.drive)->oob;

    CHECK_EQ(w->in_flight, 0);
    for (uint64_t at = 0; at < w->bed.geo.lbas; at++) {
        const LbaModel *m = &w->model->lbas[at];
        RsdCmd *cmd = rsd_cmd_new(w->bed.drive, 0, RSD_READ, at, 1), *done;
        uint64_t tag;

        CHECK(cmd);
        CHECK_EQ(rsd_submit(w->bed.drive, cmd, w->bed.now), RSD_OK);
        while (!(done = rsd_advance(w->bed.drive, w->bed.now))) {
            CHECK(rsd_next_event(w->bed.drive, &w->bed.now));
        }
        CHECK(done == cmd);
        if (cmd->status == RSD_OK ? !holds(m, cmd->data, cmd->oob, oob, at,
                                           &tag) : !m->num_later) {
            FAIL("LBA %" PRIu64 " does not hold pattern %" PRIu64 ", which was "
                 "acknowledged, nor one of %u later ones: %s", at, m->tag,
                 m->num_later, rsd_status_name(cmd->status));
        }
        rsd_cmd_free(w->bed.drive, cmd);
    }
}

void world_verify(Bed *bed, WorldModel *model, bool learn)
{
    uint32_t oob = rsd_config(bed->drive)->oob;
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, RSD_READ, 0, bed->geo.lbas);

    CHECK(cmd);
    CHECK_EQ(rsd_submit(bed->drive, cmd, bed->now), RSD_OK);
    await(bed, cmd);
    for (uint32_t i = 0; i < cmd->nlb; i++) {
        LbaModel *m = &model->lbas[i];
        uint8_t *data = cmd->data + (size_t)i * PAGE;
        uint8_t *page_oob = oob ? cmd->oob + (size_t)i * oob : NULL;
        uint64_t tag;

        if (!holds(m, data, page_oob, oob, i, &tag)) {
            FAIL("LBA %u holds neither pattern %" PRIu64 ", which was "
                 "acknowledged, nor one of %u later ones", i, m->tag,
                 m->num_later);
        }
        if (learn) {
            m->tag = tag;
            m->num_later = 0;
        }
    }
    rsd_cmd_free(bed->drive, cmd);
}

void world_reopen(World *w)
{
    if (w->bed.drive) {
        /* completed, and not yet told: they may be lost for us */
        for (RsdCmd *cmd; (cmd = rsd_advance(w->bed.drive, w->bed.now));) {
            completed(w, cmd);
        }
        rsd_close(w->bed.drive);
        w->bed.drive = NULL;
    }
    w->in_flight = 0;
    memset(w->model->slots, 0, sizeof(w->model->slots));
    bed_reopen(&w->bed);
    world_verify(&w->bed, w->model, true);
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

void world_fill(World *w)
{
    uint64_t lbas = w->bed.geo.lbas;
    uint64_t step = lbas / 3 * 2;

    while (common_divisor(lbas, step) != 1) {
        step++;
    }
    for (uint64_t i = 0; i < lbas; i++) {
        submit(w, RSD_WRITE, i * step % lbas, 1);
        while (w->in_flight > MAX_IN_FLIGHT) {
            uint64_t when;

            CHECK(rsd_next_event(w->bed.drive, &when));
            world_pass(w, when > w->bed.now ? when - w->bed.now : 0);
        }
    }
    world_drain(w);
}

World world_open(const RsdConfig *cfg, const char *name, uint64_t seed)
{
    World w = { .bed = bed_open(cfg, temp_path(name)), .rng = { seed } };

    CHECK(w.bed.geo.lbas <= MAX_LBAS);
    w.model = mmap(NULL, sizeof(*w.model), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(w.model != MAP_FAILED);
    return w;
}

void world_close(World *w)
{
    munmap(w->model, sizeof(*w->model));
    bed_close(&w->bed);
}
