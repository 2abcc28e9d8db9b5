/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <sys/mman.h>
#include <unistd.h>

#include "conventional.h"
#include "floors.h"
#include "rsd-power.h"

#define MAX_IN_FLIGHT 12u

/*
 * LBAs that a read asks for when all are looked at. With 32 or more, the
 * sanitizer maps memory for each command anew, which took nearly half of the
 * time of some tests.
 */
#define CHECKED 30u

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

uint64_t world_newest(const LbaModel *m)
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

/* A flush is done: so is what was done when it came. */
static void flushed(World *w, bool failed)
{
    for (uint64_t i = 0; !failed && i < w->bed.geo.lbas; i++) {
        acknowledged(&w->model->lbas[i], w->model->flushing[i]);
    }
    w->model->flush = false;
}

/* Of a command that is done: is it safe? */
static bool is_safe(const World *w, const RsdCmd *cmd)
{
    return !w->lazy || cmd->fua || (cmd->op != RSD_WRITE && !w->bed.synced);
}

static void completed(World *w, RsdCmd *cmd)
{
    Slot *slot = cmd->opaque;
    bool failed = cmd->status != RSD_OK;

    if (failed && !w->may_fail) {
        FAIL("operation %d at %" PRIu64 ": %s", cmd->op, cmd->lba,
             rsd_status_name(cmd->status));
    }
    w->failures += failed;
    w->statuses |= 1u << cmd->status;
    if (w->bed.synced && (cmd->fua || cmd->op == RSD_FLUSH)) {
        CHECK_EQ(rsd_media_sync(w->bed.drive), 0);
    }
    if (cmd->op == RSD_FLUSH) {
        flushed(w, failed);
    }
    for (uint32_t i = 0; i < cmd->nlb; i++) {
        uint32_t *done = &w->model->done[cmd->lba + i];

        if (cmd->op == RSD_READ) {
            if (!w->failures) {
                check_page(&w->bed, cmd, i, slot->tags[i]);
            }
        } else if (!failed && is_safe(w, cmd)) {
            acknowledged(&w->model->lbas[cmd->lba + i], slot->order);
        } else if (!failed && slot->order > *done) {
            *done = slot->order;
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

void world_submit(World *w, RsdOp op, uint64_t at, uint32_t nlb)
{
    WorldModel *model = w->model;
    uint32_t oob = rsd_config(w->bed.drive)->oob;
    RsdCmd *cmd = rsd_cmd_new(w->bed.drive, 0, op, at, nlb);
    Slot *slot = new_slot(model);
    RsdStatus status;

    CHECK(cmd && nlb <= sizeof(slot->tags) / sizeof(slot->tags[0]));
    slot->order = ++model->order;
    cmd->opaque = slot;
    cmd->fua = w->lazy && op == RSD_WRITE && !rng_below(&w->rng, 16);
    if (op == RSD_FLUSH) {
        memcpy(model->flushing, model->done, sizeof(model->done));
        model->flush = true;
    }
    for (uint32_t i = 0; i < nlb; i++) {
        LbaModel *m = &model->lbas[at + i];

        if (op == RSD_READ) {
            slot->tags[i] = world_newest(m);
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
    w->statuses |= 1u << status;
    for (uint32_t i = 0; op != RSD_READ && i < nlb; i++) {
        model->lbas[at + i].num_later--;
    }
    model->flush &= op != RSD_FLUSH;
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

    if (w->lazy && !w->model->flush && !rng_below(&w->rng, 12)) {
        world_submit(w, RSD_FLUSH, 0, 0);
    }
    world_submit(w, kind < 12 ? RSD_WRITE : kind < 17 ? RSD_READ :
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
    for (uint64_t at = 0; at < w->bed.geo.lbas; at += CHECKED) {
        uint64_t left = w->bed.geo.lbas - at;

        world_submit(w, RSD_READ, at, left < CHECKED ? left : CHECKED);
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

/* Of n LBAs */
static void verify(Bed *bed, WorldModel *model, uint64_t at, uint32_t n,
                   bool learn)
{
    uint32_t oob = rsd_config(bed->drive)->oob;
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, RSD_READ, at, n);

    CHECK(cmd);
    CHECK_EQ(rsd_submit(bed->drive, cmd, bed->now), RSD_OK);
    await(bed, cmd);
    for (uint32_t i = 0; i < n; i++) {
        LbaModel *m = &model->lbas[at + i];
        uint8_t *data = cmd->data + (size_t)i * PAGE;
        uint8_t *page_oob = oob ? cmd->oob + (size_t)i * oob : NULL;
        uint64_t tag;

        if (!holds(m, data, page_oob, oob, at + i, &tag)) {
            FAIL("LBA %" PRIu64 " holds neither pattern %" PRIu64 ", which was "
                 "acknowledged, nor one of %u later ones", at + i, m->tag,
                 m->num_later);
        }
        if (learn) {
            m->tag = tag;
            m->num_later = 0;
        }
    }
    rsd_cmd_free(bed->drive, cmd);
}

void world_verify(Bed *bed, WorldModel *model, bool learn)
{
    /* the sanitizer maps what is larger anew each time */
    for (uint64_t at = 0; at < bed->geo.lbas; at += 8) {
        uint64_t left = bed->geo.lbas - at;

        verify(bed, model, at, left < 8 ? left : 8, learn);
    }
}

void world_take(World *w)
{
    for (RsdCmd *cmd; (cmd = rsd_advance(w->bed.drive, w->bed.now));) {
        completed(w, cmd);
    }
}

void world_reopen(World *w)
{
    if (w->bed.drive) {
        if (w->cuts) {
            rsd_power_cut(w->bed.drive, &(RsdOutcomes){ .seed = w->cuts++ });
        }
        /* completed, and not yet told: they may be lost for us */
        world_take(w);
        rsd_close(w->bed.drive);
        w->bed.drive = NULL;
    }
    w->in_flight = 0;
    w->model->flush = false;
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
        world_submit(w, RSD_WRITE, i * step % lbas, 1);
        while (w->in_flight > MAX_IN_FLIGHT) {
            uint64_t when;

            CHECK(rsd_next_event(w->bed.drive, &when));
            world_pass(w, when > w->bed.now ? when - w->bed.now : 0);
        }
    }
    world_drain(w);
}

void world_lives(World *w, int lives, int steps,
                 void (*check)(const Bed *bed))
{
    for (int life = 0; life < lives; life++) {
        for (int i = 0; i < steps; i++) {
            world_step(w);
        }
        if (life % 2) {
            world_drain(w);
        }
        world_check(w);
        if (check) {
            check(&w->bed);
        }
        world_reopen(w);
        world_check(w);
    }
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

void check_random_flushes(RsdConfig (*config)(uint64_t seed), uint64_t seeds)
{
    for (uint64_t seed = 0; seed < seeds; seed++) {
        RsdConfig cfg = config(seed);
        World w;

        cfg.ack = RSD_ACK_BUFFER;
        cfg.plp = RSD_OFF;
        w = world_open(&cfg, "flushes.rsd", seed);
        w.lazy = true;
        w.cuts = seed + 1;
        world_lives(&w, 8, 80, NULL);
        CHECK(counters(&w.bed).flush_cmds > 20);
        world_close(&w);
    }
}

void open_refused(const RsdConfig *cfg, const char *part,
                  const char *numbers)
{
    char err[RSD_ERR_LEN] = "";
    RsdDrive *drive = rsd_open(NULL, cfg, err);

    CHECK(!drive);
    CHECK_SAYS(err, part);
    CHECK_SAYS(err, numbers);
}

void check_damaged_buffer(const RsdConfig *cfg, const char *part,
                          const char *numbers)
{
    Bed bed = bed_open(cfg, temp_path("drive.rsd"));
    char err[RSD_ERR_LEN] = "";
    uint32_t found = 0;
    RsdSpare spare;
    uint64_t hash;
    FILE *f;

    CHECK_EQ(run(&bed, RSD_WRITE, 0, 3, 1), 0);
    rsd_close(bed.drive);
    f = fopen(bed.path, "r+b");
    CHECK(f);
    /* OOB is a multiple of 64 bytes from the beginning */
    for (long at = 0; !fseek(f, at, SEEK_SET) &&
                      fread(&spare, sizeof(spare), 1, f) == 1; at += 64) {
        if (spare.magic == RSD_SPARE_MAGIC && spare.lpn == 2) {
            spare.lpn = UINT64_C(1) << 33;
            CHECK(!fseek(f, at, SEEK_SET));
            CHECK(fwrite(&spare, sizeof(spare), 1, f) == 1);
            found++;
        }
    }
    fclose(f);
    CHECK_EQ(found, 1);
    hash = file_hash(bed.path);
    CHECK(!rsd_open(bed.path, cfg, err));
    CHECK_SAYS(err, part);
    CHECK_SAYS(err, numbers);
    CHECK_EQ(file_hash(bed.path), hash);
    unlink(bed.path);
    free((char *)bed.path);
}

void check_merge_counters(const Bed *bed)
{
    RsdCounters c = counters(bed);

    CHECK_EQ(c.prog_clean + c.erase_clean + c.read_clean + c.prog_map +
             c.read_map + c.erase_map + c.media_errors, 0);
    CHECK_EQ(c.blocks_used + c.blocks_dirty + c.blocks_erased + c.blocks_bad,
             c.blocks_total);
    CHECK_EQ(c.erase_host + c.erase_merge + c.erase_wear,
             c.erase_on_demand + c.erase_idle);
    CHECK_EQ(c.wear_sum, c.erase_on_demand + c.erase_idle);
    CHECK(c.read_merge >= c.prog_merge);        /* one may be interrupted */
}

void expect_merges(Bed *bed, Merges want)
{
    RsdCounters c;

    bed_drain(bed);
    c = counters(bed);
    CHECK_EQ(c.merge_switch, want.switches);
    CHECK_EQ(c.merge_partial, want.partial);
    CHECK_EQ(c.merge_full, want.full);
    CHECK_EQ(c.prog_merge, want.copies);
    CHECK_EQ(c.read_merge, want.copies);
    CHECK_EQ(c.prog_pad, want.filler);
    CHECK_EQ(c.erase_merge, want.erases);
    check_merge_counters(bed);
}

void check_bad_blocks(const RsdConfig *cfg)
{
    World w = world_open(cfg, "drive.rsd", 5);

    CHECK(counters(&w.bed).blocks_bad > 2);
    for (int i = 0; i < 600; i++) {
        world_step(&w);
    }
    world_fill(&w);
    world_check(&w);
    world_reopen(&w);
    world_check(&w);
    world_drain(&w);
    check_merge_counters(&w.bed);
    world_close(&w);
}

void check_levelling(const RsdConfig *base)
{
    for (uint64_t stripe = 0; stripe < 2; stripe++) {
        uint64_t spread[2];

        for (int on = 0; on < 2; on++) {
            RsdConfig cfg = *base;
            uint64_t hot;
            RsdCounters c;
            Bed bed;

            cfg.wl_threshold = on ? 4 : 0;
            cfg.stripe = stripe;
            bed = bed_open(&cfg, temp_path("drive.rsd"));
            hot = stripe ? 32 : 8;
            run(&bed, RSD_WRITE, 0, 256, 1);
            for (int i = 0; i < 300; i++) {
                run(&bed, RSD_WRITE, 0, hot, i + 2);
                bed_drain(&bed);
            }
            c = counters(&bed);
            spread[on] = c.wear_max - c.wear_min;
            CHECK_EQ(c.wear_moves > 0, on);
            CHECK_EQ(c.prog_wear > 0, on);
            CHECK_EQ(c.read_wear, c.prog_wear);
            CHECK_EQ(c.erase_wear, c.wear_moves);
            expect_pages(&bed, 0, hot, 301);
            expect_pages(&bed, hot, 256 - hot, 1);
            check_merge_counters(&bed);
            bed_reopen(&bed);
            expect_pages(&bed, hot, 256 - hot, 1);
            bed_close(&bed);
        }
        CHECK(spread[0] > 40);
        /* of one die's blocks, when only its logical blocks are written */
        CHECK(spread[1] < spread[0]);
    }
}

/* The status of a write of one page, at once or when it is done */
static RsdStatus write_page(Bed *bed, uint64_t at, uint64_t tag)
{
    uint32_t oob = rsd_config(bed->drive)->oob;
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, RSD_WRITE, at, 1), *done;
    RsdStatus status;

    fill_page(cmd->data, cmd->oob, oob, at, tag);
    status = rsd_submit(bed->drive, cmd, bed->now);
    while (status == RSD_OK && !(done = rsd_advance(bed->drive, bed->now))) {
        CHECK(rsd_next_event(bed->drive, &bed->now));
    }
    if (status == RSD_OK) {
        CHECK(done == cmd);
        status = cmd->status;
    }
    rsd_cmd_free(bed->drive, cmd);
    return status;
}

/* What is counted as blocks die is what their records say. */
static void check_dead_blocks(const RsdDrive *drive)
{
    for (uint32_t d = 0; d < drive->dies; d++) {
        const uint64_t *rec = drive->media.rec + (size_t)d * drive->die_blocks;
        uint32_t bad = 0, grown = 0;

        for (uint32_t b = 0; b < drive->die_blocks; b++) {
            bad += !!(rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD);
            grown += !!(rsd_rec_flags(rec[b]) & RSD_BLOCK_GROWN);
        }
        CHECK_EQ(drive->sched.dies[d].bad, bad);
        CHECK_EQ(drive->sched.dies[d].grown, grown);
    }
}

void wear_out(const RsdConfig *base, uint64_t seed)
{
    static uint64_t tags[MAX_LBAS];
    RsdConfig cfg = *base;
    Rng rng = { seed };
    uint64_t tag = 0, at;
    RsdStatus status;
    RsdHealth health;
    Bed bed;

    cfg.endurance = 12;
    cfg.life_spread = 50;
    cfg.seed = seed;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    CHECK(bed.geo.lbas <= MAX_LBAS);
    memset(tags, 0, sizeof(tags));
    for (int life = 0; life < 2; life++) {
        do {
            at = rng_below(&rng, bed.geo.lbas);
            status = write_page(&bed, at, ++tag);
            if (status == RSD_OK) {
                tags[at] = tag;
            }
        } while (status == RSD_OK);
        CHECK_EQ(status, RSD_E_READONLY);
        CHECK(life || rsd_health_changes(bed.drive) > 0);
        rsd_health(bed.drive, &health);
        CHECK(health.read_only);
        bed_drain(&bed);
        CHECK(counters(&bed).blocks_grown > 0);
        check_dead_blocks(bed.drive);
        for (uint64_t i = 0; i < bed.geo.lbas; i++) {
            expect_pages(&bed, i, 1, tags[i]);
        }
        bed_reopen(&bed);
    }
    bed_close(&bed);
}

void check_runs_are_equal(const RsdConfig *cfg, int steps)
{
    RsdCounters c[2];

    for (int i = 0; i < 2; i++) {
        World w = world_open(cfg, "drive.rsd", 7);

        while (w.model->order < (uint32_t)steps) {
            world_step(&w);
        }
        world_drain(&w);
        c[i] = counters(&w.bed);
        world_close(&w);
    }
    CHECK(!memcmp(&c[0], &c[1], sizeof(c[0])));
}

void check_random_merges(RsdConfig (*config)(uint64_t seed))
{
    uint64_t kinds[3] = { 0 };

    for (uint64_t seed = 0; seed < 48; seed++) {
        RsdConfig cfg = config(seed);
        World w = world_open(&cfg, "drive.rsd", seed);
        RsdCounters c;

        for (int life = 0; life < 8; life++) {
            for (int i = 0; i < 150; i++) {
                world_step(&w);
            }
            if (life % 2) {
                world_drain(&w);
            }
            world_check(&w);
            world_reopen(&w);
            world_check(&w);
            world_drain(&w);
            check_merge_counters(&w.bed);
        }
        world_fill(&w);
        world_check(&w);
        check_merge_counters(&w.bed);
        c = counters(&w.bed);
        kinds[0] += c.merge_switch;
        kinds[1] += c.merge_partial;
        kinds[2] += c.merge_full;
        world_close(&w);
    }
    CHECK(kinds[0] > 50 && kinds[1] > 100 && kinds[2] > 1000);
}

/*
 * Units
 */

const UnitKind unit_kinds[6] = {
    { 1, 4096, RSD_CELL_SLC, false }, { 2, 4096, RSD_CELL_MLC, false },
    { 1, 16384, RSD_CELL_TLC, false }, { 1, 4096, RSD_CELL_TLC, true },
    { 2, 8192, RSD_CELL_MLC, true }, { 3, 4096, RSD_CELL_QLC, true },
};

void set_unit(RsdConfig *cfg, const UnitKind *kind, uint64_t slots)
{
    cfg->planes = kind->planes;
    cfg->page_size = kind->page_size;
    cfg->cell = kind->cell;
    cfg->one_shot = kind->one_shot;
    cfg->pages = slots * PAGE / (kind->planes * kind->page_size);
    cfg->t_cmd_ns = CMD;
    cfg->t_xfer_ns = XFER;
    cfg->t_read_ns = READ;
    cfg->t_prog_ns = PROG;
}

uint64_t array_reads(const Bed *bed)
{
    const RsdConfig *cfg = &bed->cfg;
    RsdCounters c = counters(bed);
    uint64_t units = c.nand_programs * cfg->page_size / PAGE /
                     rsd_unit_slots(cfg);
    uint64_t erases = c.erase_on_demand + c.erase_idle;
    uint64_t reading = c.die_busy_ns - c.bus_busy_ns -
                       units * cfg->t_prog_ns - erases * cfg->t_erase_ns;

    CHECK_EQ(reading % cfg->t_read_ns, 0);
    return reading / cfg->t_read_ns;
}

void set_unit_options(RsdConfig *cfg, uint64_t seed)
{
    cfg->queue = seed / 2 % 4 == 3 ? RSD_QUEUE_GLOBAL : RSD_QUEUE_WAY;
    cfg->wl_threshold = seed % 5 % 3;
    cfg->oob = (const uint64_t[]){ 0, 16, 64 }[seed % 3];
    cfg->write_buffer = (const uint64_t[]){ 0, 65536, 262144 }[seed / 4 % 3];
    if (rsd_unit_slots(cfg) == 1 && !cfg->write_buffer) {
        cfg->write_buffer = PAGE;
    }
    cfg->cache = seed / 8 % 2 && cfg->queue == RSD_QUEUE_WAY;
    cfg->suspend = seed / 16 % 2 && cfg->queue == RSD_QUEUE_WAY;
}

void set_safe_ack(RsdConfig *cfg, uint64_t seed)
{
    cfg->ack = seed / 5 % 2 ? RSD_ACK_BUFFER : RSD_ACK_PROGRAM;
    cfg->plp = cfg->ack == RSD_ACK_BUFFER || seed / 7 % 2;
}
