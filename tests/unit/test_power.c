/*
 * Power cuts and rewinding. A random workload is recorded; then the drive is
 * rewound to each of its operations, with outcomes of all classes, and has what
 * it has to have: all that was acknowledged by then and not given up by then,
 * of what was in flight one of its outcomes, nothing else.
 *
 * RSD_TEST_POINTS names a file that gets a byte for each rewind. By it,
 * test_recovery_errors.py knows how many it took to find an error, however the
 * program ended.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conventional.h"
#include "floors.h"
#include "page-counts.h"
#include "rsd-power.h"
#include "stores.h"

#define MAX_LIVES 200
#define MAX_CAP 256
#define NEVER UINT64_MAX

static const char *log_path;

static Bed open_logged(const RsdConfig *cfg, const char *name)
{
    Bed bed = { .cfg = *cfg, .path = temp_path(name) };
    char err[RSD_ERR_LEN] = "";

    log_path = log_path ? log_path : temp_path("log");
    unlink(bed.path);
    unlink(log_path);
    CHECK(rsd_media_create(bed.path, cfg, err));
    bed.drive = rsd_open_logged(bed.path, log_path, cfg, err);
    if (!bed.drive) {
        FAIL("open: %s", err);
    }
    rsd_geometry(bed.drive, 0, &bed.geo);
    return bed;
}

static RsdOplogInfo info_of(const Bed *bed)
{
    RsdOplogInfo info;

    rsd_oplog_info(bed->drive, &info);
    return info;
}

static void count_point(void)
{
    static int fd = -1;
    const char *path = getenv("RSD_TEST_POINTS");

    if (path && fd < 0) {
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
    }
    if (path) {
        CHECK_EQ(write(fd, ".", 1), 1);
    }
}

/* As rsd_power_cut(); the list may be NULL: see RsdOutcomes. */
static void cut_power(Bed *bed, const char *list, uint64_t seed)
{
    count_point();
    rsd_power_cut(bed->drive, &(RsdOutcomes){ list, seed });
}

static void rewind_to(Bed *bed, uint64_t op, const char *outcomes)
{
    char err[RSD_ERR_LEN] = "";
    RsdOutcomes o;

    count_point();
    CHECK(rsd_outcomes_parse(outcomes, &o));
    if (!rsd_rewind(bed->drive, op, &o, err)) {
        FAIL("rewind to %" PRIu64 ": %s", op, err);
    }
}

static void power_on(Bed *bed)
{
    char err[RSD_ERR_LEN] = "";

    CHECK(rsd_power_is_off(bed->drive));
    if (!rsd_power_on(bed->drive, err)) {
        FAIL("%s", err);
    }
}

/*
 * What is in the drive, zone by zone
 */

/* What a power cut left of a page below the write pointer */
typedef enum Left { LEFT_CONTENT, LEFT_FILLER, LEFT_TORN } Left;

/* A zone from one reset to the next; times are numbers of operations. */
typedef struct Life {
    uint32_t zone;
    uint64_t tag;
    uint64_t from, to;          /* it is there after ops from to before to */
    uint32_t submitted, padded; /* pages, and from where on filler */
    uint32_t ever;              /* submitted, also before a power cut */
    uint64_t submit[MAX_CAP];   /* after which operation */
    uint64_t safe[MAX_CAP];     /* the same: since when it must be there */
    uint64_t tags[MAX_CAP];     /* of what was written */
    bool acked[MAX_CAP];
    uint32_t settled;           /* pages that are as a power cut left them */
    Left left[MAX_CAP];
} Life;

typedef struct Book {
    Life lives[MAX_LIVES];
    uint32_t num_lives;
    uint32_t now[16];           /* of each zone */
    uint64_t tag;               /* the newest */
} Book;

static Book book;

static Life *life_of(uint32_t zone)
{
    return &book.lives[book.now[zone]];
}

static void new_life(uint32_t zone, uint64_t op)
{
    CHECK(book.num_lives < MAX_LIVES);
    if (op) {
        life_of(zone)->to = op;
    }
    book.now[zone] = book.num_lives;
    book.lives[book.num_lives] = (Life){ .zone = zone, .from = op, .to = NEVER,
                                         .tag = ++book.tag,
                                         .padded = MAX_CAP };
    book.num_lives++;
}

static bool is_volatile(const Bed *bed)
{
    return bed->cfg.ack == RSD_ACK_BUFFER && !bed->cfg.plp;
}

static void acknowledge(Bed *bed, RsdCmd *cmd)
{
    Life *life = cmd->opaque;

    if (cmd->op == RSD_WRITE && cmd->status == RSD_E_ORDER) {
        /* it waited for the buffer when its zone was reset */
        CHECK(life->to != NEVER);
        rsd_cmd_free(bed->drive, cmd);
        return;
    }
    CHECK_EQ(cmd->status, RSD_OK);
    for (uint32_t i = 0; cmd->op == RSD_WRITE && i < cmd->nlb; i++) {
        uint32_t page = cmd->lba % bed->geo.zone_size + i;

        life->acked[page] = true;
        if (!is_volatile(bed)) {
            life->safe[page] = info_of(bed).ops;
        }
    }
    rsd_cmd_free(bed->drive, cmd);
}

/* All that happens up to a time, each moment for itself */
static void pass_until(Bed *bed, uint64_t until)
{
    uint64_t when;
    RsdCmd *cmd;

    while (rsd_next_event(bed->drive, &when) && when <= until) {
        bed->now = when > bed->now ? when : bed->now;
        while ((cmd = rsd_advance(bed->drive, bed->now))) {
            acknowledge(bed, cmd);
        }
    }
    bed->now = until > bed->now ? until : bed->now;
}

static void write_some(Bed *bed, uint32_t zone, uint32_t nlb)
{
    Life *life = life_of(zone);
    uint64_t at = lba(bed, zone, life->submitted), op = info_of(bed).ops;
    RsdCmd *cmd = begin(bed, RSD_WRITE, at, nlb, life->tag);

    cmd->opaque = life;
    for (uint32_t i = 0; i < nlb; i++) {
        /* one that a power cut has lost may have been there before */
        if (life->submitted >= life->ever) {
            life->submit[life->ever++] = op;
        }
        life->tags[life->submitted] = life->tag;
        life->safe[life->submitted++] = NEVER;
    }
}

/* What was acknowledged before a flush is safe when that is done. */
static void flush(Bed *bed)
{
    static bool acked[MAX_LIVES][MAX_CAP];
    RsdCmd *cmd = begin(bed, RSD_FLUSH, 0, 0, 0), *done = NULL;
    uint64_t when;

    for (uint32_t n = 0; n < book.num_lives; n++) {
        memcpy(acked[n], book.lives[n].acked, sizeof(acked[n]));
    }
    while (done != cmd) {
        if (rsd_power_is_off(bed->drive)) {
            return;
        }
        CHECK(rsd_next_event(bed->drive, &when));
        bed->now = when > bed->now ? when : bed->now;
        while ((done = rsd_advance(bed->drive, bed->now)) && done != cmd) {
            acknowledge(bed, done);
        }
    }
    rsd_cmd_free(bed->drive, cmd);
    for (uint32_t n = 0; n < book.num_lives; n++) {
        for (uint32_t i = 0; i < MAX_CAP; i++) {
            if (acked[n][i] && book.lives[n].safe[i] == NEVER) {
                book.lives[n].safe[i] = info_of(bed).ops;
            }
        }
    }
}

static void random_step(Bed *bed, Rng *rng)
{
    uint32_t zone = rng_below(rng, bed->geo.num_zones);
    Life *life = life_of(zone);
    uint32_t left = bed->geo.zone_capacity - life->submitted;
    uint64_t what = rng_below(rng, 12), op = info_of(bed).ops;

    if (what < 8 && left && life->padded == MAX_CAP) {
        write_some(bed, zone, 1 + rng_below(rng, left < 9 ? left : 9));
    } else if (what == 8 && life->submitted) {
        begin(bed, RSD_ZONE_RESET, lba(bed, zone, 0), 0, 0);
        /* operations of a branch are not counted */
        CHECK_EQ(info_of(bed).ops, op + !info_of(bed).branch);
        new_life(zone, info_of(bed).ops);
    } else if (what == 9 && life->submitted && !rng_below(rng, 3)) {
        begin(bed, RSD_ZONE_FINISH, lba(bed, zone, 0), 0, 0);
        life->padded = life->submitted;
    } else if (what == 10) {
        flush(bed);
    }
    pass_until(bed, bed->now + rng_below(rng, 900000));
}

/* Counts of what was found of pages that were neither safe nor absent */
typedef struct Found {
    uint64_t there, torn, filler, beyond;
} Found;

static RsdStatus read_page(Bed *bed, uint64_t at, uint8_t *data, uint8_t *oob)
{
    RsdCmd *cmd = begin(bed, RSD_READ, at, 1, 0), *got = NULL;
    RsdStatus status;
    uint64_t when;

    while (!got) {
        CHECK(rsd_next_event(bed->drive, &when));
        bed->now = when > bed->now ? when : bed->now;
        got = rsd_advance(bed->drive, bed->now);
        if (got && got != cmd) {
            rsd_cmd_free(bed->drive, got);
            got = NULL;
        }
    }
    status = cmd->status;
    memcpy(data, cmd->data, PAGE);
    memcpy(oob, cmd->oob, 16);
    rsd_cmd_free(bed->drive, cmd);
    return status;
}

static Left left_of(RsdStatus status, bool right)
{
    return status == RSD_E_MEDIA ? LEFT_TORN
                                 : right ? LEFT_CONTENT : LEFT_FILLER;
}

static void check_zone(Bed *bed, const Life *life, uint64_t op, Found *found)
{
    uint64_t have = written(bed, life->zone);
    uint8_t data[PAGE], oob[16];

    CHECK(have >= life->settled);

    for (uint32_t i = 0; i < bed->geo.zone_capacity; i++) {
        uint64_t at = lba(bed, life->zone, i);
        RsdStatus status = read_page(bed, at, data, oob);
        bool right = page_matches(data, oob, 16, at, life->tags[i]);
        bool zero = page_matches(data, oob, 16, at, 0);

        if (i < life->settled) {
            CHECK(status == RSD_E_MEDIA || right || zero);
            if (left_of(status, right) != life->left[i]) {
                FAIL("zone %u, page %u of %u that were settled has changed: "
                     "status %d", life->zone, i, life->settled, status);
            }
        } else if (i < life->submitted && life->acked[i] && life->safe[i] <= op) {
            if (status != RSD_OK || !right) {
                FAIL("after operation %" PRIu64 ", zone %u, page %u of %"
                     PRIu64 " was lost: status %d", op, life->zone, i, have,
                     status);
            }
            CHECK(i < have);
        } else if (i < life->ever && life->submit[i] <= op && i < have) {
            if (status == RSD_E_MEDIA) {
                found->torn++;
            } else if (!(status == RSD_OK && (right || zero))) {
                FAIL("after operation %" PRIu64 ", zone %u, page %u is "
                     "something else", op, life->zone, i);
            }
            found->there += status == RSD_OK && right;
            found->filler += status == RSD_OK && zero;
        } else {
            /* not written, or filler behind what was */
            if (i < have && i < life->padded &&
                !(life->padded < MAX_CAP && status == RSD_E_MEDIA)) {
                FAIL("after operation %" PRIu64 ", zone %u, page %u of %"
                     PRIu64 " is there", op, life->zone, i, have);
            }
            CHECK(zero || status == RSD_E_MEDIA);
            found->beyond++;
        }
    }
}

static void check_all(Bed *bed, uint64_t op, Found *found)
{
    for (uint32_t n = 0; n < book.num_lives; n++) {
        const Life *life = &book.lives[n];

        if (life->from <= op && op < life->to) {
            check_zone(bed, life, op, found);
        }
    }
}

/* Whatever a power cut has left of a zone is what it has from now on. */
static void settle(Bed *bed, Life *life)
{
    uint32_t have = written(bed, life->zone);
    uint8_t data[PAGE], oob[16];

    for (uint32_t i = life->settled; i < have; i++) {
        uint64_t at = lba(bed, life->zone, i);
        RsdStatus status = read_page(bed, at, data, oob);

        life->left[i] = left_of(status, page_matches(data, oob, 16, at,
                                                     life->tags[i]));
    }
    for (uint32_t i = have; i < bed->geo.zone_capacity; i++) {
        life->acked[i] = false;
        life->tags[i] = 0;
    }
    life->settled = life->submitted = life->ever = have;
    life->tag = ++book.tag;
}

/*
 * The power fails again, up to three times in succession: what recovery has
 * begun is in flight, or what was written since.
 */
static void cut_again(Bed *bed, uint64_t op, Rng *rng, Found *found)
{
    static Book whole;
    uint64_t ops = info_of(bed).ops;

    whole = book;
    for (uint32_t n = 0; n < book.num_lives; n++) {
        Life *life = &book.lives[n];

        if (life->from <= op && op < life->to) {
            book.now[life->zone] = n;
            life->to = NEVER;
        }
    }
    for (uint32_t z = 0; z < bed->geo.num_zones; z++) {
        settle(bed, life_of(z));
    }
    for (uint64_t cuts = 1 + rng_below(rng, 3); cuts; cuts--) {
        for (uint64_t steps = rng_below(rng, 8); steps; steps--) {
            random_step(bed, rng);
        }
        cut_power(bed, NULL, rng_next(rng));
        power_on(bed);
        for (uint32_t z = 0; z < bed->geo.num_zones; z++) {
            check_zone(bed, life_of(z), ops, found);
            settle(bed, life_of(z));
        }
    }
    book = whole;
}

/* The rest of each zone can be written, and a reset one all of it. */
static void write_on(Bed *bed)
{
    for (uint32_t z = 0; z < bed->geo.num_zones; z++) {
        uint64_t have = written(bed, z), cap = bed->geo.zone_capacity;

        if (have == cap || z % 2) {
            run(bed, RSD_ZONE_RESET, lba(bed, z, 0), 0, 0);
            have = 0;
        }
        run(bed, RSD_WRITE, lba(bed, z, have), cap - have, 77777);
        expect_pages(bed, lba(bed, z, have), cap - have, 77777);
    }
    bed_drain(bed);
}

static Bed record(const RsdConfig *cfg, uint64_t seed, int steps)
{
    Bed bed = open_logged(cfg, "drive.rsd");
    Rng rng = { seed };

    CHECK(bed.geo.num_zones <= 16 && bed.geo.zone_capacity <= MAX_CAP);
    memset(&book, 0, sizeof(book));
    for (uint32_t z = 0; z < bed.geo.num_zones; z++) {
        new_life(z, 0);
    }
    while (steps--) {
        random_step(&bed, &rng);
    }
    return bed;
}

static RsdConfig variant(int n)
{
    RsdConfig cfg = small_config();

    cfg.idle_erase_ns = n % 2 ? 1000000 : 0;
    cfg.reset = n & 2 ? RSD_RESET_ERASE : RSD_RESET_MARK;
    cfg.segment = n % 3 == 2 ? RSD_SEGMENT_WAY : RSD_SEGMENT_ALL;
    cfg.finish = n & 4 ? RSD_FINISH_PAD : RSD_FINISH_MARK;
    cfg.wl_threshold = n % 3 ? 1 : 0;
    cfg.suspend = n == 5;
    cfg.cache = n == 6;
    cfg.t_status_ns = n == 6 ? 50000 : 0;
    return cfg;
}

/* With units of several slots, and a buffer that survives or not */
static RsdConfig buffered(int n)
{
    RsdConfig cfg = variant(n);

    cfg.planes = 1 + n % 2;
    cfg.write_buffer = 64 << 10;
    cfg.plp = n % 3 == 0;
    cfg.ack = n % 4 == 3 ? RSD_ACK_PROGRAM : RSD_ACK_BUFFER;
    if (n == 4) {
        cfg.cell = RSD_CELL_TLC;
        cfg.one_shot = true;
        cfg.pages = 6;
    }
    return cfg;
}

static void every_point(const RsdConfig *cfg, uint64_t seed, Found *found)
{
    Bed bed = record(cfg, seed, 120);
    uint64_t ops = info_of(&bed).ops;
    Rng rng = { seed };

    CHECK(ops > 50);
    for (uint64_t i = 0; i <= 2 * ops; i++) {
        /* all of them, and then in random order */
        uint64_t op = i <= ops ? i : rng_below(&rng, ops + 1);
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64, i);
        rewind_to(&bed, op, i % 5 == 0 ? "" : i % 5 == 1 ? "cccccccccccc" :
                            i % 5 == 2 ? "tttttttttttt" : text);
        CHECK_EQ(info_of(&bed).ops, ops);
        CHECK_EQ(info_of(&bed).at, op);
        CHECK(info_of(&bed).branch);
        check_all(&bed, op, found);
        if (i % 3 == 0) {
            write_on(&bed);
        } else if (i % 3 == 1) {
            cut_again(&bed, op, &rng, found);
        }
    }
    bed_close(&bed);
}

TEST(every_point_of_zones)
{
    for (int n = 0; n < 7; n++) {
        RsdConfig cfg = variant(n);
        Found found = { 0 };

        every_point(&cfg, n, &found);
        CHECK(found.there > 20);
        CHECK(found.torn > 20);
        CHECK(found.filler > 5);
    }
}

TEST(every_point_of_a_write_buffer)
{
    for (int n = 0; n < 6; n++) {
        RsdConfig cfg = buffered(n);
        Found found = { 0 };

        every_point(&cfg, n + 100, &found);
        CHECK(found.beyond > 0);
        CHECK(found.torn > 0 || cfg.plp);
        CHECK(!found.torn || !cfg.plp);
    }
}

/*
 * Conventional namespaces: the model of conventional.h, as it was when each
 * operation was the last that had been done
 */

#define MAX_OPS 4000

static World *watched;          /* NULL: the model is not kept */
static LbaModel *kept[MAX_OPS];

RsdCmd *__real_rsd_advance(RsdDrive *drive, uint64_t now);
RsdCmd *__wrap_rsd_advance(RsdDrive *drive, uint64_t now);
RsdStatus __real_rsd_submit(RsdDrive *drive, RsdCmd *cmd, uint64_t now);
RsdStatus __wrap_rsd_submit(RsdDrive *drive, RsdCmd *cmd, uint64_t now);

static void keep_model(void)
{
    size_t size;
    uint64_t op;

    if (watched) {
        op = info_of(&watched->bed).ops;
        size = watched->bed.geo.lbas * sizeof(LbaModel);
        CHECK(op < MAX_OPS);
        kept[op] = kept[op] ? kept[op] : malloc(size);
        memcpy(kept[op], watched->model->lbas, size);
    }
}

RsdCmd *__wrap_rsd_advance(RsdDrive *drive, uint64_t now)
{
    keep_model();
    return __real_rsd_advance(drive, now);
}

RsdStatus __wrap_rsd_submit(RsdDrive *drive, RsdCmd *cmd, uint64_t now)
{
    keep_model();
    return __real_rsd_submit(drive, cmd, now);
}

static RsdConfig conventional(RsdFtl ftl, int n)
{
    RsdConfig cfg = small_config();

    cfg.ftl = ftl;
    cfg.ways = 1;
    cfg.blocks = 28;
    cfg.over_provision = 60;
    cfg.idle_erase_ns = n % 2 ? 1000000 : 0;
    cfg.map_cache = 1024;
    if (n == 2 || n == 3) {
        cfg.planes = 2;
        cfg.write_buffer = 64 << 10;
        cfg.ack = RSD_ACK_BUFFER;
        cfg.plp = n == 2;
    }
    return cfg;
}

static uint32_t torn_blocks(const RsdDrive *drive)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b < drive->dies * drive->die_blocks; b++) {
        n += rsd_rec_flags(drive->media.rec[b]) & RSD_BLOCK_TORN ? 1 : 0;
    }
    return n;
}

/* What a rewind, or a power cut, has taken is not awaited any more. */
static void forget_commands(World *w)
{
    memset(w->model->slots, 0, sizeof(w->model->slots));
    w->model->flush = false;
    w->in_flight = 0;
}

/* What is left is what has to be; what the drive made of it is right. */
static void verify_opened(World *w)
{
    bool pages = w->bed.cfg.ftl == RSD_FTL_PAGE ||
                 w->bed.cfg.ftl == RSD_FTL_DFTL;

    if (pages && !rsd_buffered(w->bed.drive)) {
        check_page_counts(&w->bed);
    }
    world_verify(&w->bed, w->model, true);
}

/*
 * Writes go on in a logical block of 16 pages, or of 8: where its first page
 * without content is, or behind the last one with some.
 */
static void append(World *w)
{
    const LbaModel *lbas = w->model->lbas;
    uint64_t first = rng_below(&w->rng, 6) * 16, end = first + 16, at = end;

    if (rng_below(&w->rng, 2)) {
        for (at = first; at < end && world_newest(&lbas[at]);) {
            at++;
        }
    } else {
        while (at > first && !world_newest(&lbas[at - 1])) {
            at--;
        }
    }
    if (at == end) {
        world_submit(w, RSD_TRIM, first, 16);
    } else {
        uint64_t n = 1 + rng_below(&w->rng, 6);

        world_submit(w, RSD_WRITE, at, n < end - at ? n : end - at);
    }
    world_pass(w, rng_below(&w->rng, 500000));
}

/*
 * The power fails again, up to three times in succession: what recovery has
 * begun is in flight, or what was written since.
 */
static void world_cut_again(World *w)
{
    for (uint64_t cuts = 1 + rng_below(&w->rng, 3); cuts; cuts--) {
        for (uint64_t steps = rng_below(&w->rng, 8); steps; steps--) {
            if (rng_below(&w->rng, 2)) {
                append(w);
            } else {
                world_step(w);
            }
        }
        cut_power(&w->bed, NULL, rng_next(&w->rng));
        world_take(w);
        power_on(&w->bed);
        forget_commands(w);
        verify_opened(w);
    }
}

/*
 * Blocks with torn pages that were left, over all points. The drive is full and
 * written at random, or, if it grows, new and written as by append().
 */
static uint32_t conventional_points(const RsdConfig *cfg, uint64_t seed,
                                    bool grows)
{
    static WorldModel model;
    World w = { .bed = open_logged(cfg, "drive.rsd"), .rng = { seed },
                .model = &model };
    uint64_t ops, checked = 0, size;
    uint32_t torn = 0;

    memset(&model, 0, sizeof(model));
    w.lazy = is_volatile(&w.bed);
    if (!grows) {
        world_fill(&w);
    }
    for (int i = 0; i < 30 && !grows; i++) {
        world_step(&w);
    }
    world_drain(&w);
    /* from here on; rewinding to what was before is another test's */
    CHECK(rsd_oplog_restart(w.bed.drive, (char[RSD_ERR_LEN]){ 0 }));
    watched = &w;
    for (int i = 0; i < 60; i++) {
        if (grows) {
            append(&w);
        } else {
            world_step(&w);
        }
    }
    world_drain(&w);
    watched = NULL;
    ops = info_of(&w.bed).ops;
    size = w.bed.geo.lbas * sizeof(LbaModel);
    CHECK(ops > 50);
    for (uint64_t op = ops + 1; op-- > 0;) {
        char text[24];

        if (!kept[op]) {
            continue;           /* it was done together with the next */
        }
        snprintf(text, sizeof(text), "%" PRIu64, op);
        rewind_to(&w.bed, op, op % 4 == 0 ? "tttttttttttt" :
                              op % 4 == 1 ? "cccccccccccc" : text);
        memcpy(model.lbas, kept[op], size);
        forget_commands(&w);
        torn += torn_blocks(w.bed.drive);
        verify_opened(&w);
        checked++;
        if (op % 3 == 1) {
            world_cut_again(&w);
        } else if (op % 3 == 0) {
            for (int i = 0; i < 10; i++) {
                world_step(&w);
            }
            world_drain(&w);
            world_check(&w);
        }
        if (op % 16 == 5) {
            world_fill(&w);     /* there is room for all of it */
            world_check(&w);
        }
    }
    CHECK(checked > ops / 3);
    for (uint64_t op = 0; op < MAX_OPS; op++) {
        free(kept[op]);
        kept[op] = NULL;
    }
    bed_close(&w.bed);
    return torn;
}

TEST(every_point_of_a_page_map)
{
    for (int n = 0; n < 4; n++) {
        RsdConfig cfg = conventional(RSD_FTL_PAGE, n);

        conventional_points(&cfg, n, false);
    }
}

TEST(every_point_of_a_cached_map)
{
    for (int n = 0; n < 4; n += n ? 1 : 2) {
        RsdConfig cfg = conventional(RSD_FTL_DFTL, n);

        cfg.over_provision = n ? 200 : cfg.over_provision;
        conventional_points(&cfg, 3 + n, false);
    }
}

/* On dies that have as few blocks as data, merges and torn pages need */
static void block_map_points(RsdFtl ftl)
{
    uint32_t torn = 0;

    for (int n = 0; n < 4; n++) {
        RsdConfig cfg = conventional(ftl, n);

        cfg.stripe = n == 1 ? RSD_STRIPE_ALL : RSD_STRIPE_BLOCK;
        cfg.over_provision = n == 2 ? 60 : 9;
        torn += conventional_points(&cfg, 4 + n, false);
    }
    CHECK(torn > 20);
}

TEST(every_point_of_a_block_map)
{
    block_map_points(RSD_FTL_BLOCK);
}

TEST(every_point_of_fast)
{
    block_map_points(RSD_FTL_FAST);
}

/* Of logical blocks over all dies, a cut leaves some lanes shorter. */
TEST(every_point_of_blocks_that_grow)
{
    for (RsdFtl ftl = RSD_FTL_BLOCK; ftl <= RSD_FTL_FAST; ftl++) {
        for (int n = 1; n < 4; n++) {
            RsdConfig cfg = conventional(ftl, n);

            cfg.stripe = RSD_STRIPE_ALL;
            conventional_points(&cfg, 8 + n, true);
        }
    }
}

/* 16 pages, four of each die's block */
static void expect_subset(Bed *bed)
{
    /* with 2, 4 and 7, what is behind them in their blocks was lost, and 13 */
    static const bool there[16] = { 1, 1, 0, 1, 0, 1, 0, 0, 0, 1 };

    CHECK_EQ(written(bed, 0), 10);
    for (int i = 0; i < 16; i++) {
        expect_pages(bed, i, 1, there[i] ? 5 : 0);
    }
    expect_pages(bed, lba(bed, 1, 0), 2, 6);
    run(bed, RSD_WRITE, 10, 6, 7);
    expect_pages(bed, 10, 6, 7);
}

/* What was not flushed is lost, or not, as NAND allows. */
TEST(a_volatile_buffer_loses_any_subset)
{
    RsdConfig cfg = small_config();
    /* in flight: 0 to 3; waiting: 4 to 15 */
    const char *outcomes = "ccac" "accacccccacc";
    RsdLogged logged;
    uint32_t n = 0;
    Bed bed;

    cfg.write_buffer = 64 << 10;
    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    for (int live = 0; live < 2; live++) {
        uint64_t ops;

        bed = open_logged(&cfg, "drive.rsd");
        run(&bed, RSD_WRITE, lba(&bed, 1, 0), 2, 6);
        run(&bed, RSD_FLUSH, 0, 0, 0);
        bed_drain(&bed);
        ops = info_of(&bed).ops;
        CHECK_EQ(run(&bed, RSD_WRITE, 0, 16, 5), 0);
        bed_pass(&bed, 3000);
        CHECK_EQ(info_of(&bed).ops, ops);
        if (live) {
            RsdOutcomes o = { .list = outcomes };

            rsd_power_cut(bed.drive, &o);
            CHECK(rsd_power_on(bed.drive, (char[RSD_ERR_LEN]){ 0 }));
        } else {
            bed_drain(&bed);
            for (; rsd_oplog_in_flight(bed.drive, ops, n, &logged); n++) {
                CHECK_EQ(logged.waiting, n >= 4);
            }
            CHECK_EQ(n, 16);
            rewind_to(&bed, ops, outcomes);
        }
        expect_subset(&bed);
        bed_close(&bed);
    }
}

/* Nothing was in flight but a read: the cut has a number all the same. */
TEST(a_cut_that_only_the_buffer_feels_has_a_number)
{
    RsdConfig cfg = small_config();
    uint64_t ops;
    Bed bed;

    cfg.channels = cfg.ways = 1;
    cfg.write_buffer = 64 << 10;
    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    bed = open_logged(&cfg, "drive.rsd");
    run(&bed, RSD_WRITE, 0, 4, 1);
    run(&bed, RSD_FLUSH, 0, 0, 0);
    bed_drain(&bed);
    ops = info_of(&bed).ops;
    begin(&bed, RSD_READ, 0, 4, 0);
    bed_pass(&bed, 5000);
    CHECK_EQ(run(&bed, RSD_WRITE, 4, 2, 9), 0);
    rsd_power_cut(bed.drive, &(RsdOutcomes){ .list = "cccc" });
    CHECK(rsd_power_on(bed.drive, (char[RSD_ERR_LEN]){ 0 }));
    CHECK_EQ(info_of(&bed).ops, ops + 1);
    CHECK_EQ(written(&bed, 0), 6);
    rewind_to(&bed, ops, "aaaa");
    CHECK_EQ(written(&bed, 0), 4);
    rewind_to(&bed, ops + 1, "");
    CHECK_EQ(written(&bed, 0), 6);
    /* and so it is to who opens the file anew */
    rsd_close(bed.drive);
    bed.drive = rsd_open_logged(bed.path, log_path, &bed.cfg,
                                (char[RSD_ERR_LEN]){ 0 });
    CHECK(bed.drive);
    CHECK_EQ(info_of(&bed).ops, ops + 1);
    bed_close(&bed);
}

/* What is protected is not lost, and what was dropped does not come back. */
TEST(a_flushed_buffer_loses_nothing)
{
    RsdConfig cfg = small_config();
    Bed bed;

    cfg.planes = 2;
    cfg.ack = RSD_ACK_BUFFER;
    cfg.plp = RSD_OFF;
    for (int seed = 0; seed < 20; seed++) {
        RsdOutcomes o = { .seed = seed };

        bed = bed_open(&cfg, temp_path("drive.rsd"));
        run(&bed, RSD_WRITE, 0, 5, 1);
        run(&bed, RSD_FLUSH, 0, 0, 0);
        run(&bed, RSD_WRITE, 5, 20, 1);
        run(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0, 0);
        run(&bed, RSD_WRITE, lba(&bed, 1, 0), 8, 2);
        run(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0, 0);
        rsd_power_cut(bed.drive, &o);
        CHECK(rsd_power_on(bed.drive, (char[RSD_ERR_LEN]){ 0 }));
        expect_pages(&bed, 0, 5, 1);
        CHECK_EQ(written(&bed, 1), 0);
        expect_pages(&bed, lba(&bed, 1, 0), 8, 0);
        bed_close(&bed);
    }
}

/*
 * A merge ends, and the block that it replaces is given up, while the program
 * of its first grain, begun before the grain was protected, still goes on.
 */
TEST(a_grain_protected_late_is_not_torn)
{
    RsdConfig cfg = conventional(RSD_FTL_BLOCK, 3);
    Bed bed = open_logged(&cfg, "drive.rsd");
    uint8_t data[PAGE], oob[16];
    uint64_t ops;

    run(&bed, RSD_WRITE, 0, 3, 1);
    run(&bed, RSD_FLUSH, 0, 0, 0);
    bed_drain(&bed);
    run(&bed, RSD_WRITE, 0, 2, 2);
    bed_pass(&bed, 3000);
    ops = info_of(&bed).ops;
    run(&bed, RSD_WRITE, 0, 1, 3);
    CHECK_EQ(info_of(&bed).ops, ops);
    CHECK_EQ(counters(&bed).merge_full + counters(&bed).merge_partial, 1);
    bed_drain(&bed);
    rewind_to(&bed, ops, "tttttttt");
    CHECK_EQ(read_page(&bed, 1, data, oob), RSD_OK);
    CHECK(page_matches(data, oob, 16, 1, 2));
    expect_pages(&bed, 2, 1, 1);
    bed_close(&bed);
}

/* Whoever has a command that was in flight can see it, and gives it back. */
TEST(commands_that_a_cut_took_are_freed)
{
    RsdConfig cfg = small_config();
    RsdOutcomes absent = { .list = "" };
    char err[RSD_ERR_LEN];
    uint64_t ram[2];

    for (int n = 0; n < 2; n++) {
        Bed bed = bed_open(&cfg, temp_path("gone.rsd"));
        RsdCmd *cmd = n ? begin(&bed, RSD_WRITE, 0, 4, 1) : NULL;

        CHECK(!n || !cmd->gone);
        rsd_power_cut(bed.drive, &absent);
        CHECK(rsd_power_on(bed.drive, err));
        if (n) {
            CHECK(cmd->gone);
            rsd_cmd_free(bed.drive, cmd);
        }
        ram[n] = counters(&bed).ram_bytes;
        bed_close(&bed);
    }
    CHECK_EQ(ram[1], ram[0]);
}

/* A torn page among copies alone: they are undone, not copied once more. */
TEST(torn_copies_are_undone)
{
    for (RsdFtl ftl = RSD_FTL_BLOCK; ftl <= RSD_FTL_FAST; ftl++) {
        RsdConfig cfg = conventional(ftl, 0);
        Bed bed = open_logged(&cfg, "drive.rsd");

        run(&bed, RSD_WRITE, 0, 4, 1);
        if (ftl == RSD_FTL_FAST) {
            /* all of the random log; what comes then has to be merged */
            for (int i = 0; i < 8; i++) {
                run(&bed, RSD_WRITE, 1, 1, 1);
            }
        }
        bed_drain(&bed);
        begin(&bed, RSD_WRITE, 3, 1, 2);
        /* the third of the pages to be copied is being programmed */
        bed_pass(&bed, 850000);
        cut_power(&bed, "tttt", 0);
        CHECK_EQ(torn_blocks(bed.drive), 1);
        CHECK_EQ(counters(&bed).prog_merge, 2);
        CHECK(rsd_power_on(bed.drive, (char[RSD_ERR_LEN]){ 0 }));
        CHECK_EQ(counters(&bed).prog_merge, 2);
        CHECK_EQ(counters(&bed).merge_full, 0);
        CHECK_EQ(torn_blocks(bed.drive), 0);
        expect_pages(&bed, 0, 4, 1);
        bed_close(&bed);
    }
}

/*
 * Both blocks of a logical block have a torn page where the other one has
 * content. Nothing is lost, and the drive takes as many writes as ever.
 */
TEST(two_torn_blocks_of_a_logical_block)
{
    for (uint64_t at = 0; at < 32; at += 8) {
        RsdConfig cfg = conventional(RSD_FTL_FAST, 0);
        Bed bed;

        cfg.over_provision = 9;
        bed = bed_open(&cfg, temp_path("drive.rsd"));
        for (uint64_t i = 0; i < bed.geo.lbas; i += 8) {
            if (i != at) {
                run(&bed, RSD_WRITE, i, 8, 4);
            }
        }
        begin(&bed, RSD_WRITE, at, 3, 1);
        bed_pass(&bed, 700000);
        cut_power(&bed, "t", 0);
        power_on(&bed);
        CHECK_EQ(torn_blocks(bed.drive), 1);
        run(&bed, RSD_WRITE, at + 3, 5, 2);
        begin(&bed, RSD_WRITE, at, 4, 3);
        bed_pass(&bed, 1000000);
        cut_power(&bed, "t", 0);
        power_on(&bed);
        CHECK_EQ(torn_blocks(bed.drive), 2);
        expect_pages(&bed, at, 3, 3);
        expect_pages(&bed, at + 3, 5, 2);
        for (uint64_t i = 0; i < 2 * bed.geo.lbas; i++) {
            run(&bed, RSD_WRITE, i * 5 % bed.geo.lbas, 1, 4);
        }
        expect_pages(&bed, at, 8, 4);
        bed_close(&bed);
    }
}

/*
 * The power fails time and again, before much has been written. The drive takes
 * as many writes as ever after that.
 */
static void cut_in_succession(const RsdConfig *cfg, uint64_t seed,
                              const char *outcomes)
{
    static WorldModel model;
    World w = { .bed = bed_open(cfg, temp_path("drive.rsd")), .rng = { seed },
                .model = &model };

    memset(&model, 0, sizeof(model));
    w.lazy = is_volatile(&w.bed);
    world_fill(&w);
    for (int i = 0; i < 12; i++) {
        if (outcomes) {
            /* from the front of a logical block on */
            world_submit(&w, RSD_WRITE,
                         rng_below(&w.rng, w.bed.geo.lbas / 8) * 8, 4);
            world_pass(&w, 300000 + rng_below(&w.rng, 5000000));
        }
        for (uint64_t n = rng_below(&w.rng, 10); n && !outcomes; n--) {
            world_step(&w);
        }
        cut_power(&w.bed, outcomes, rng_next(&w.rng));
        world_take(&w);
        power_on(&w.bed);
        forget_commands(&w);
        verify_opened(&w);
    }
    world_fill(&w);
    world_check(&w);
    bed_close(&w.bed);
}

TEST(cuts_in_succession)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        for (RsdFtl ftl = RSD_FTL_PAGE; ftl <= RSD_FTL_FAST; ftl++) {
            RsdConfig cfg = conventional(ftl, seed % 4);
            const char *outcomes = seed % 2 ? NULL : "tttt";

            if (ftl >= RSD_FTL_BLOCK) {
                cfg.over_provision = 9;
                cut_in_succession(&cfg, seed, outcomes);
                cfg.stripe = RSD_STRIPE_ALL;
            } else if (cfg.planes > 1) {
                cfg.over_provision = 200;
                cfg.blocks = 40;
            }
            cut_in_succession(&cfg, seed, outcomes);
        }
    }
}

/*
 * The media file itself
 */

/* Is what two files hold the same, programmed pages and tables? */
static void expect_same(const char *a, const char *b, const RsdConfig *cfg)
{
    RsdConfig ca = *cfg, cb = *cfg;
    char err[RSD_ERR_LEN] = "";
    RsdMedia ma = { 0 }, mb = { 0 };
    uint64_t tables;

    if (!rsd_media_open(&ma, a, &ca, true, err) ||
        !rsd_media_open(&mb, b, &cb, true, err)) {
        FAIL("%s", err);
    }
    /* all tables but the header and the counters, which go on */
    tables = (uint8_t *)ma.counters - ma.base;
    for (uint64_t i = 4096; i < tables; i++) {
        if (ma.base[i] != mb.base[i]) {
            FAIL("byte %" PRIu64 " of the tables is %02x, not %02x", i,
                 ma.base[i], mb.base[i]);
        }
    }
    for (uint64_t n = 0; n < cfg->channels * cfg->ways *
                             (cfg->blocks + cfg->spare_blocks); n++) {
        for (uint32_t p = 0; p < rsd_rec_next(ma.rec[n]); p++) {
            CHECK(!memcmp(rsd_media_page(&ma, n, p), rsd_media_page(&mb, n, p),
                          PAGE));
            CHECK(!memcmp(rsd_media_oob(&ma, n, p), rsd_media_oob(&mb, n, p),
                          RSD_OOB_SIZE));
        }
    }
    rsd_media_close(&ma);
    rsd_media_close(&mb);
}

/* The same of a copy of the file that a killed process would have left */
static void expect_like(Bed *bed, const char *copy)
{
    char err[RSD_ERR_LEN] = "";
    RsdDrive *drive = rsd_open(copy, &bed->cfg, err);

    CHECK(drive);
    rsd_close(drive);
    rsd_close(bed->drive);
    expect_same(bed->path, copy, &bed->cfg);
    bed->drive = rsd_open_logged(bed->path, log_path, &bed->cfg, err);
    CHECK(bed->drive);
}

/* Records with a copy of the file as it was last after each operation */
static Bed record_copies(const RsdConfig *cfg, uint64_t seed,
                         const char *copies[], uint64_t max)
{
    Bed bed = open_logged(cfg, "drive.rsd");
    Rng rng = { seed };
    uint64_t when;

    for (int i = 0; i < 25; i++) {
        uint32_t zone = rng_below(&rng, bed.geo.num_zones);
        uint64_t have = written(&bed, zone), until;

        if (have + 8 <= bed.geo.zone_capacity) {
            begin(&bed, RSD_WRITE, lba(&bed, zone, have),
                  1 + rng_below(&rng, 8), i + 1);
        } else {
            begin(&bed, RSD_ZONE_RESET, lba(&bed, zone, 0), 0, 0);
        }
        /* all but what idle erasure may begin */
        until = bed.now + 4000000;
        while (rsd_next_event(bed.drive, &when) && when <= until) {
            uint64_t op = info_of(&bed).ops;

            CHECK(op < max);
            if (!copies[op]) {
                char name[32];

                snprintf(name, sizeof(name), "copy-%" PRIu64, op);
                copies[op] = temp_path(name);
            }
            copy_media(bed.path, copies[op]);
            bed_pass(&bed, when > bed.now ? when - bed.now : 0);
        }
        bed.now = until;
    }
    bed_drain(&bed);
    return bed;
}

TEST(rewinding_gives_the_file_as_it_was)
{
    static const char *copies[400];

    for (int n = 0; n < 2; n++) {
        RsdConfig cfg = n ? buffered(3) : variant(3);
        Bed bed = record_copies(&cfg, n, copies, 400);
        uint64_t ops = info_of(&bed).ops, compared = 0;

        for (uint64_t op = ops; op-- > 0;) {
            if (copies[op]) {
                rewind_to(&bed, op, "");
                expect_like(&bed, copies[op]);
                compared++;
                unlink(copies[op]);
                free((char *)copies[op]);
                copies[op] = NULL;
            }
        }
        CHECK(compared > ops / 3);
        bed_close(&bed);
    }
}

/* What a drive answers, of all its pages */
static uint64_t hash_drive(Bed *bed)
{
    uint64_t sum = 0;
    uint8_t data[PAGE], oob[16];

    for (uint32_t z = 0; z < bed->geo.num_zones; z++) {
        sum = sum * 31 + written(bed, z);
        for (uint32_t i = 0; i < bed->geo.zone_capacity; i++) {
            sum = sum * 31 + read_page(bed, lba(bed, z, i), data, oob);
            for (uint32_t b = 0; b < PAGE; b += 8) {
                uint64_t word;

                memcpy(&word, data + b, 8);
                sum = (sum ^ word) * UINT64_C(0x100000001b3);
            }
            for (uint32_t b = 0; b < 16; b++) {
                sum = (sum ^ oob[b]) * UINT64_C(0x100000001b3);
            }
        }
    }
    return sum;
}

TEST(view_shows_what_the_drive_shows)
{
    static uint64_t sums[1000];

    for (int n = 0; n < 2; n++) {
        RsdConfig cfg = n ? buffered(1) : variant(3);
        Bed bed = record(&cfg, 7 + n, 60);
        uint64_t ops = info_of(&bed).ops, media, log;
        char err[RSD_ERR_LEN] = "";
        Bed view = bed;

        CHECK(ops < 1000);
        CHECK(!rsd_open_view(bed.path, log_path, err));
        CHECK_SAYS(err, "in use");
        for (uint64_t op = 0; op <= ops; op++) {
            char text[24];

            snprintf(text, sizeof(text), "%" PRIu64, op);
            rewind_to(&bed, op, text);
            sums[op] = hash_drive(&bed);
        }
        rsd_close(bed.drive);
        media = file_hash(bed.path);
        log = file_hash(log_path);
        view.now = 0;
        view.drive = rsd_open_view(bed.path, log_path, err);
        if (!view.drive) {
            FAIL("%s", err);
        }
        for (uint64_t i = 0; i <= ops; i++) {
            uint64_t op = i * 7 % (ops + 1);
            char text[24];

            snprintf(text, sizeof(text), "%" PRIu64, op);
            rewind_to(&view, op, text);
            CHECK_EQ(hash_drive(&view), sums[op]);
            write_on(&view);
        }
        rsd_close(view.drive);
        CHECK_EQ(file_hash(bed.path), media);
        CHECK_EQ(file_hash(log_path), log);
        unlink(bed.path);
        free((char *)bed.path);
    }
}

/*
 * Being killed
 */

static const char *copy_path, *copy_log;
static const Bed *killed;
static uint64_t looked;

static void look_at_copies(void)
{
    uint64_t op = looked * 11 % 60;
    Bed bed = *killed;
    char err[RSD_ERR_LEN] = "";
    Found found = { 0 };

    if (looked++ % 4) {
        return;
    }
    copy_media(killed->path, copy_path);
    copy_media(log_path, copy_log);
    bed.now = 0;
    bed.drive = rsd_open_logged(copy_path, copy_log, &bed.cfg, err);
    if (!bed.drive) {
        FAIL("%s", err);
    }
    rewind_to(&bed, op, looked % 3 ? "cttcctcc" : "");
    check_all(&bed, op, &found);
    rsd_close(bed.drive);
}

TEST(killed_while_it_is_rewound)
{
    RsdConfig cfg = variant(3);
    Bed bed = record(&cfg, 3, 60);
    char err[RSD_ERR_LEN] = "";
    Rng rng = { 4 };
    uint64_t ops = info_of(&bed).ops;

    CHECK(ops > 60);
    copy_path = temp_path("copy.rsd");
    copy_log = temp_path("copy.log");
    killed = &bed;
    rsd_close(bed.drive);
    stores_watch(2, look_at_copies);
    bed.drive = rsd_open_logged(bed.path, log_path, &bed.cfg, err);
    for (int i = 0; i < 12; i++) {
        rewind_to(&bed, rng_below(&rng, ops + 1), "tctctc");
        if (i % 3 == 0) {
            write_on(&bed);
        }
    }
    stores_end();
    CHECK(stores_seen() > 500);
    CHECK(looked > 100);
    unlink(copy_path);
    unlink(copy_log);
    free((char *)copy_path);
    free((char *)copy_log);
    bed_close(&bed);
}

/*
 * Cuts of a running drive
 */

TEST(cut_at_every_operation)
{
    for (int n = 0; n < 9; n++) {
        RsdConfig cfg = n < 6 ? variant(n) : buffered(n - 6);
        bool ended = false;
        Found found = { 0 };

        for (uint64_t op = 1; !ended; op += 1 + op / 8) {
            Bed bed = open_logged(&cfg, "drive.rsd");
            Rng rng = { n };
            RsdOutcomes o = { .seed = op };
            uint64_t when;

            memset(&book, 0, sizeof(book));
            for (uint32_t z = 0; z < bed.geo.num_zones; z++) {
                new_life(z, 0);
            }
            CHECK(rsd_power_cut_later(bed.drive, op, NEVER, &o));
            for (int i = 0; i < 80 && !rsd_power_is_off(bed.drive); i++) {
                random_step(&bed, &rng);
            }
            ended = !rsd_power_is_off(bed.drive);
            if (!ended) {
                /* and the cut, if it interrupted something */
                CHECK(info_of(&bed).ops - op <= 1);
                /* it takes commands, and nothing happens */
                begin(&bed, RSD_READ, 0, 1, 0);
                CHECK(!rsd_next_event(bed.drive, &when));
                CHECK(!rsd_advance(bed.drive, bed.now + 1000000000));
                power_on(&bed);
                check_all(&bed, op, &found);
                write_on(&bed);
            }
            bed_close(&bed);
        }
        CHECK(found.there + found.filler + found.torn > 0);
    }
}

/* A cut and what opening the drive did are part of the past. */
TEST(rewinding_over_a_cut)
{
    for (int n = 0; n < 4; n++) {
        RsdConfig cfg = n < 2 ? variant(n) : buffered(n == 2 ? 0 : 3);
        Bed bed = record(&cfg, 20 + n, 50);
        Found found = { 0 };
        Rng rng = { n };
        uint64_t ops;

        for (int cuts = 0; cuts < 3; cuts++) {
            RsdOutcomes o = { .seed = cuts };

            rsd_power_cut(bed.drive, &o);
            power_on(&bed);
            for (uint32_t z = 0; z < bed.geo.num_zones; z++) {
                Life *life = life_of(z);

                life->ever = life->ever > life->submitted ? life->ever
                                                          : life->submitted;
                if (life->padded == MAX_CAP) {
                    life->submitted = written(&bed, z);
                }
            }
            for (int i = 0; i < 25; i++) {
                random_step(&bed, &rng);
            }
        }
        ops = info_of(&bed).ops;
        for (uint64_t op = ops + 1; op-- > 0;) {
            rewind_to(&bed, op, op % 2 ? "tttttttttttt" : "tctctctctctc");
            check_all(&bed, op, &found);
        }
        bed_close(&bed);
    }
}

/* What a block had before the log began is kept when its erase is torn. */
TEST(torn_erases_are_undone)
{
    RsdConfig cfg = conventional(RSD_FTL_PAGE, 0);
    static WorldModel model;
    World w = { .bed = open_logged(&cfg, "drive.rsd"), .rng = { 5 },
                .model = &model };
    uint64_t last = 0, size = 0;
    LbaModel *first = NULL;
    RsdLogged logged;
    bool erasing = false;

    memset(&model, 0, sizeof(model));
    world_fill(&w);
    for (int i = 0; i < 20; i++) {
        world_step(&w);
    }
    world_drain(&w);
    size = w.bed.geo.lbas * sizeof(LbaModel);
    first = malloc(size);
    memcpy(first, model.lbas, size);
    CHECK(rsd_oplog_restart(w.bed.drive, (char[RSD_ERR_LEN]){ 0 }));
    for (int i = 0; i < 400 && !erasing; i++) {
        world_step(&w);
        last = info_of(&w.bed).ops;
        for (uint32_t k = 0;
             rsd_oplog_in_flight(w.bed.drive, last, k, &logged); k++) {
            erasing |= logged.kind == RSD_LOGGED_ERASE;
        }
    }
    CHECK(erasing);
    for (int i = 0; i < 2; i++) {
        rewind_to(&w.bed, last, "tttttttttttt");
        rewind_to(&w.bed, 0, "");
        memcpy(model.lbas, first, size);
        memset(model.slots, 0, sizeof(model.slots));
        world_verify(&w.bed, &model, false);
    }
    free(first);
    bed_close(&w.bed);
}

/* A drive that cannot be opened after a cut stays off, and can be asked. */
TEST(power_does_not_come_back)
{
    RsdConfig cfg = small_config();
    Bed bed = open_logged(&cfg, "drive.rsd");
    uint64_t bad = rsd_rec(0, 0xffff, 0);
    char err[RSD_ERR_LEN] = "";
    RsdLogPage page;
    RsdZone zone;
    int fd = open(bed.path, O_RDWR);

    run(&bed, RSD_WRITE, 0, 4, 1);
    rsd_zone_save(bed.drive, 0, 3, 4);
    rsd_power_cut(bed.drive, &(RsdOutcomes){ 0 });
    CHECK(fd >= 0 && pwrite(fd, &bad, sizeof(bad), 4096) == sizeof(bad));
    close(fd);
    CHECK(!rsd_power_on(bed.drive, err));
    CHECK_SAYS(err, "corrupt");
    CHECK(rsd_power_is_off(bed.drive));
    CHECK_EQ(counters(&bed).blocks_total, 20);
    rsd_log_page(bed.drive, &page);
    rsd_zone_get(bed.drive, 0, &zone);
    CHECK_EQ(zone.state, 3);
    begin(&bed, RSD_READ, 0, 1, 0);
    CHECK(!rsd_advance(bed.drive, 1000000000));
    bed_close(&bed);
}

/* Killed between a record and the store it tells of: that never happened. */
TEST(phantom_stores)
{
    RsdConfig cfg = small_config();
    Bed bed = open_logged(&cfg, "drive.rsd");
    char err[RSD_ERR_LEN] = "";
    const char *copy = temp_path("copy.rsd"), *log = temp_path("copy.log");
    RsdZone zone;

    run(&bed, RSD_WRITE, 0, 4, 1);
    rsd_zone_save(bed.drive, 0, 3, 4);
    copy_media(bed.path, copy);
    rsd_zone_save(bed.drive, 0, 5, 6);
    copy_media(log_path, log);
    rsd_close(bed.drive);
    copy_media(copy, bed.path);
    copy_media(log, log_path);
    bed.drive = rsd_open_logged(bed.path, log_path, &cfg, err);
    CHECK(bed.drive);
    rewind_to(&bed, 0, "");
    rewind_to(&bed, 4, "");
    rsd_zone_get(bed.drive, 0, &zone);
    CHECK_EQ(zone.state, 3);
    CHECK_EQ(zone.attrs, 4);
    unlink(copy);
    unlink(log);
    free((char *)copy);
    free((char *)log);
    bed_close(&bed);
}

TEST(cut_at_a_time)
{
    RsdConfig cfg = small_config();
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    RsdOutcomes o = { .list = "tc" };
    RsdCmd *cmd;
    uint64_t when;

    /* four dies are programming: one is torn, one ends, two do not */
    CHECK(rsd_power_cut_later(bed.drive, 0, 200000, &o));
    cmd = begin(&bed, RSD_WRITE, 0, 8, 1);
    while (rsd_next_event(bed.drive, &when)) {
        CHECK(when <= 200000);
        bed_pass(&bed, when - bed.now);
    }
    CHECK(rsd_power_is_off(bed.drive));
    CHECK_EQ(bed.now, 200000);
    rsd_cmd_detach(bed.drive, cmd);
    power_on(&bed);
    CHECK_EQ(written(&bed, 0), 2);
    bed.now = 200000;
    for (int i = 0; i < 2; i++) {
        uint8_t data[PAGE], oob[16];
        RsdStatus status = read_page(&bed, i, data, oob);

        CHECK_EQ(status, i ? RSD_OK : RSD_E_MEDIA);
        CHECK(!i || page_matches(data, oob, 16, i, 1));
    }
    CHECK(!rsd_power_cut_later(bed.drive, 0, 100, &o));
    bed_close(&bed);
}

/* A cut to come has a letter for each unit of a large buffer, its own copy. */
TEST(cut_of_many_units)
{
    RsdConfig cfg = small_config();
    char letters[401];
    RsdOutcomes o = { .list = letters };
    Bed bed;

    cfg.pages = 128;
    cfg.write_buffer = 400 * PAGE;
    cfg.plp = false;
    cfg.ack = RSD_ACK_BUFFER;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    memset(letters, 'c', 400);
    letters[400] = '\0';
    CHECK(rsd_power_cut_later(bed.drive, 0, 1000, &o));
    memset(letters, 'a', 400);
    begin(&bed, RSD_WRITE, 0, 400, 1);
    bed_pass(&bed, 1000);
    CHECK(rsd_power_is_off(bed.drive));
    power_on(&bed);
    /* no die had its data yet */
    CHECK_EQ(written(&bed, 0), 400);
    bed_close(&bed);
}

/* A page that cannot be read stays so when wear levelling moves its block. */
TEST(torn_pages_are_moved)
{
    RsdConfig cfg = small_config();
    Bed bed;
    RsdOutcomes o = { .list = "t" };
    uint8_t data[PAGE], oob[16];

    cfg.channels = cfg.ways = 1;
    cfg.wl_threshold = 2;
    bed = bed_open(&cfg, temp_path("drive.rsd"));
    /* while the third page is programmed */
    CHECK(rsd_power_cut_later(bed.drive, 0, 700000, &o));
    begin(&bed, RSD_WRITE, 0, 8, 1);
    bed_drain(&bed);
    power_on(&bed);
    CHECK_EQ(written(&bed, 0), 3);
    run(&bed, RSD_WRITE, 3, 5, 1);
    for (int i = 0; i < 20; i++) {
        run(&bed, RSD_WRITE, lba(&bed, 1, 0), 8, 2);
        run(&bed, RSD_ZONE_RESET, lba(&bed, 1, 0), 0, 0);
        bed_drain(&bed);
    }
    CHECK(counters(&bed).wear_moves > 0);
    expect_pages(&bed, 0, 2, 1);
    CHECK_EQ(read_page(&bed, 2, data, oob), RSD_E_MEDIA);
    expect_pages(&bed, 3, 5, 1);
    /* and is gone when the block is erased */
    run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    for (int i = 0; i < 6; i++) {
        run(&bed, RSD_WRITE, 0, 8, 3);
        expect_pages(&bed, 0, 8, 3);
        run(&bed, RSD_ZONE_RESET, 0, 0, 0);
    }
    bed_close(&bed);
}

/*
 * A zone takes one free block after the other. Each time, the power fails
 * before the block is erased, if it has to be: what that had is not in the
 * zone. As no zone is full, nothing is levelled.
 */
static void cut_before_erases(Bed *bed)
{
    for (uint32_t z = 0; z < bed->geo.num_zones; z++) {
        run(bed, RSD_ZONE_RESET, lba(bed, z, 0), 0, 0);
    }
    for (int i = 0; i < 20; i++) {
        begin(bed, RSD_WRITE, 0, 7, 9);
        bed_pass(bed, 1000);
        cut_power(bed, "", 0);
        power_on(bed);
        CHECK_EQ(written(bed, 0), 0);
        run(bed, RSD_WRITE, 0, 7, 10);
        run(bed, RSD_ZONE_RESET, 0, 0, 0);
    }
}

/*
 * The power fails at every operation while busy dies level: what was written
 * before is there, whatever becomes of the copies and erases in flight, and of
 * the blocks that have a part of a copy.
 */
TEST(cut_while_busy_dies_level)
{
    static const char *const outcomes[] = { "a", "t", "c", "1", "2" };
    RsdConfig cfg = small_config();
    uint64_t first, last;
    RsdCounters c;
    Bed bed;

    cfg.channels = 1;
    cfg.ways = 1;
    cfg.blocks = 5;
    cfg.spare_blocks = 2;
    cfg.wl_threshold = 1;
    cfg.wl_share = 100;
    bed = open_logged(&cfg, "drive.rsd");
    for (uint32_t z = 0; z < 5; z++) {
        run(&bed, RSD_WRITE, lba(&bed, z, 0), 8, z + 1);
    }
    first = info_of(&bed).ops;
    for (int i = 0; i < 24; i++) {
        begin(&bed, RSD_ZONE_RESET, 0, 0, 0);
        begin(&bed, RSD_WRITE, 0, 8, 1);
        bed_pass(&bed, 6000000);
    }
    c = counters(&bed);
    CHECK_EQ(c.erase_idle, 0);
    CHECK(c.wear_moves >= 4);
    last = info_of(&bed).ops;
    for (uint64_t op = first; op <= last; op++) {
        for (int i = 0; i < 5; i++) {
            rewind_to(&bed, op, outcomes[i]);
            for (uint32_t z = 1; z < 5; z++) {
                CHECK_EQ(written(&bed, z), 8);
                expect_pages(&bed, lba(&bed, z, 0), 8, z + 1);
            }
            if (op % 40 == 8 * (uint64_t)i) {
                cut_before_erases(&bed);
            }
        }
    }
    bed_close(&bed);
}

/* The same of a page map: pages that are not written again are always there. */
TEST(cut_while_a_busy_page_map_levels)
{
    static const char *const outcomes[] = { "a", "t", "c", "1", "2" };
    RsdConfig cfg = small_config();
    uint64_t last;
    Rng rng = { 1 };
    RsdCounters c;
    Bed bed;

    cfg.ftl = RSD_FTL_PAGE;
    cfg.channels = 1;
    cfg.ways = 1;
    cfg.blocks = 48;
    cfg.over_provision = 40;
    cfg.wl_threshold = 1;
    cfg.wl_share = 100;
    cfg.idle_erase_ns = 1000000000;
    bed = open_logged(&cfg, "drive.rsd");
    for (uint64_t at = 0; at < bed.geo.lbas; at += 32) {
        run(&bed, RSD_WRITE, at, 32, 1);
    }
    for (int i = 0; i < 500; i++) {
        begin(&bed, RSD_WRITE, rng_below(&rng, 24), 4, 2);
        bed_pass(&bed, 1500000);
    }
    c = counters(&bed);
    CHECK_EQ(c.erase_idle, 0);
    CHECK(c.wear_moves >= 4);
    last = info_of(&bed).ops;
    for (uint64_t op = last - 600; op <= last; op++) {
        rewind_to(&bed, op, outcomes[op % 5]);
        expect_pages(&bed, 28, bed.geo.lbas - 28, 1);
    }
    bed_close(&bed);
}

/*
 * The log's file
 */

TEST(log_goes_on_when_opened_again)
{
    RsdConfig cfg = variant(0);
    Bed bed = record(&cfg, 5, 40);
    uint64_t ops = info_of(&bed).ops;
    char err[RSD_ERR_LEN] = "";
    Found found = { 0 };

    CHECK(ops > 20);
    rsd_close(bed.drive);
    bed.drive = rsd_open_logged(bed.path, log_path, &cfg, err);
    CHECK(bed.drive);
    /* what was in flight was interrupted */
    CHECK(info_of(&bed).ops - ops <= 1);
    ops = info_of(&bed).ops;
    CHECK(!info_of(&bed).branch);
    rewind_to(&bed, ops / 2, "1");
    check_all(&bed, ops / 2, &found);
    rsd_close(bed.drive);
    bed.drive = rsd_open_logged(bed.path, log_path, &cfg, err);
    CHECK_EQ(info_of(&bed).ops, ops);
    CHECK_EQ(info_of(&bed).at, ops / 2);
    CHECK(info_of(&bed).branch);
    check_all(&bed, ops / 2, &found);
    rewind_to(&bed, ops, "");
    check_all(&bed, ops, &found);
    CHECK(rsd_oplog_restart(bed.drive, err));
    CHECK_EQ(info_of(&bed).ops, 0);
    CHECK(!info_of(&bed).branch);
    bed_close(&bed);
}

TEST(refusals)
{
    RsdConfig cfg = small_config();
    Bed bed = open_logged(&cfg, "drive.rsd"), other = bed;
    char err[RSD_ERR_LEN] = "";
    RsdOutcomes o;
    RsdLogged logged;
    int fd;

    CHECK(!rsd_rewind(bed.drive, 1, &(RsdOutcomes){ 0 }, err));
    CHECK_SAYS(err, "no operation 1: the log has 0");
    CHECK(!rsd_oplog_op(bed.drive, 1, &logged));
    CHECK(!rsd_oplog_in_flight(bed.drive, 1, 0, &logged));
    run(&bed, RSD_WRITE, 0, 1, 1);
    CHECK(rsd_oplog_op(bed.drive, 1, &logged));
    CHECK_EQ(logged.kind, RSD_LOGGED_PROGRAM);
    CHECK_EQ(logged.time_ns, 301100);
    CHECK(!rsd_power_cut_later(bed.drive, 1, NEVER, &(RsdOutcomes){ 0 }));
    rsd_close(bed.drive);

    /* used without it */
    bed.drive = rsd_open(bed.path, &cfg, err);
    rsd_close(bed.drive);
    CHECK(!rsd_open_logged(bed.path, log_path, &cfg, err));
    CHECK_SAYS(err, "is not the log of this media file");
    /* not a log, truncated, of another version, of another drive */
    CHECK(!rsd_open_logged(bed.path, bed.path, &cfg, err));
    fd = open(log_path, O_RDWR);
    CHECK(pwrite(fd, "\2", 1, 8) == 1);
    CHECK(!rsd_open_logged(bed.path, log_path, &cfg, err));
    CHECK_SAYS(err, "version 2");
    CHECK(pwrite(fd, "X", 1, 0) == 1);
    CHECK(!rsd_open_logged(bed.path, log_path, &cfg, err));
    CHECK_SAYS(err, "not an operation log");
    CHECK(!ftruncate(fd, 100));
    CHECK(!rsd_open_logged(bed.path, log_path, &cfg, err));
    CHECK_SAYS(err, "not an operation log");
    close(fd);
    unlink(log_path);
    CHECK(!rsd_open_view(bed.path, log_path, err));
    CHECK_SAYS(err, "No such file");
    CHECK(!rsd_open_logged(NULL, log_path, &cfg, err));
    CHECK_SAYS(err, "needs a media file");

    other.path = temp_path("other.rsd");
    CHECK(rsd_media_create(other.path, &cfg, err));
    other.drive = rsd_open_logged(other.path, log_path, &cfg, err);
    CHECK(other.drive);
    rsd_close(other.drive);
    CHECK(!rsd_open_logged(bed.path, log_path, &cfg, err));
    CHECK_SAYS(err, "is not the log of this media file");
    unlink(other.path);
    free((char *)other.path);

    bed.drive = rsd_open(bed.path, &cfg, err);
    CHECK(!rsd_rewind(bed.drive, 0, &(RsdOutcomes){ 0 }, err));
    CHECK_SAYS(err, "op-log");
    CHECK(!rsd_oplog_restart(bed.drive, err));
    CHECK_SAYS(err, "op-log");
    CHECK(rsd_outcomes_parse("12", &o) && !o.list && o.seed == 12);
    CHECK(rsd_outcomes_parse("atc", &o) && o.list);
    CHECK(rsd_outcomes_parse("", &o) && o.list);
    CHECK(!rsd_outcomes_parse("12a", &o) && !rsd_outcomes_parse("x", &o));
    bed_close(&bed);
}

/*
 * A process of its own makes two writes, of which the second goes to another
 * zone if it is to.
 */
static void run_of_two(const RsdConfig *cfg, const char *path, const char *log,
                       bool elsewhere)
{
    char err[RSD_ERR_LEN] = "";
    Bed bed = { .path = path, .cfg = *cfg };
    pid_t child = fork();
    int status;

    CHECK(child >= 0);
    if (child) {
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
        return;
    }
    bed.drive = rsd_open_logged(path, log, cfg, err);
    CHECK(bed.drive);
    rsd_geometry(bed.drive, 0, &bed.geo);
    run(&bed, RSD_WRITE, 0, 1, 1);
    run(&bed, RSD_WRITE, elsewhere ? bed.geo.zone_size : 1, 1, 2);
    rsd_close(bed.drive);
    _exit(0);
}

/* Neither the host's clock nor its process numbers are in the files. */
TEST(equal_runs_leave_equal_files)
{
    RsdConfig cfg = small_config();
    const char *path[3] = { temp_path("a.rsd"), temp_path("b.rsd"),
                            temp_path("c.rsd") };
    const char *log[3] = { temp_path("a.log"), temp_path("b.log"),
                           temp_path("c.log") };
    char err[RSD_ERR_LEN] = "";

    for (int i = 0; i < 3; i++) {
        CHECK(rsd_media_create(path[i], &cfg, err));
        run_of_two(&cfg, path[i], log[i], i == 2);
    }
    CHECK_EQ(file_hash(path[0]), file_hash(path[1]));
    CHECK_EQ(file_hash(log[0]), file_hash(log[1]));
    /* the files of the third were equal when its log began */
    CHECK(!rsd_open_logged(path[2], log[0], &cfg, err));
    CHECK_SAYS(err, "is not the log of this media file");
    for (int i = 0; i < 3; i++) {
        unlink(path[i]);
        unlink(log[i]);
        free((char *)path[i]);
        free((char *)log[i]);
    }
}

/* Records that make no sense are refused, not followed. */
TEST(corrupt_logs)
{
    RsdConfig cfg = variant(1);
    Bed bed = record(&cfg, 6, 25);
    uint64_t bytes = info_of(&bed).bytes;
    char err[RSD_ERR_LEN] = "";
    const char *bad = temp_path("bad.rsd"), *bad_log = temp_path("bad.log");
    Rng rng = { 1 };
    int refusals = 0;

    rsd_close(bed.drive);
    bed.drive = NULL;
    for (int i = 0; i < 300; i++) {
        uint64_t at = i % 3 ? 4096 + rng_below(&rng, bytes - 4096)
                            : 16 + rng_below(&rng, 56);
        uint8_t byte = rng_next(&rng);
        RsdDrive *drive;
        int fd;

        copy_media(bed.path, bad);
        copy_media(log_path, bad_log);
        fd = open(bad_log, O_RDWR);
        CHECK(fd >= 0 && pwrite(fd, &byte, 1, at) == 1);
        close(fd);
        drive = rsd_open_logged(bad, bad_log, &cfg, err);
        if (drive) {
            /* content that no check sees: a rewind fails or does not */
            rsd_rewind(drive, 0, &(RsdOutcomes){ 0 }, err);
            rsd_close(drive);
        } else {
            refusals++;
        }
    }
    CHECK(refusals > 50);
    unlink(bad);
    unlink(bad_log);
    free((char *)bad);
    free((char *)bad_log);
    bed_close(&bed);
}
