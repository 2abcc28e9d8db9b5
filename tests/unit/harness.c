/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <unistd.h>

#include "harness.h"

static Test *first_test, **last_test = &first_test;

/*
 * The sanitizer keeps what was freed lately, to see who still uses it: 256 MiB,
 * whose page tables are copied at each fork() of a test.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1";
}

void check_register(Test *test)
{
    *last_test = test;
    last_test = &test->next;
}

int main(int argc, char **argv)
{
    int found = 0;

    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (Test *t = first_test; t; t = t->next) {
            puts(t->name);
        }
        return 0;
    }
    for (Test *t = first_test; t; t = t->next) {
        bool wanted = argc == 1;

        for (int i = 1; i < argc; i++) {
            wanted |= !strcmp(argv[i], t->name);
        }
        if (wanted) {
            t->run();
            found++;
        }
    }
    if (!found) {
        fprintf(stderr, "%s: no such test\n", argv[0]);
        return 1;
    }
    return 0;
}

RsdConfig small_config(void)
{
    RsdConfig cfg;

    rsd_preset_find("custom")->apply(&cfg);
    cfg.channels = 2;
    cfg.ways = 2;
    cfg.blocks = 4;
    cfg.spare_blocks = 1;
    cfg.pages = 8;
    cfg.oob = 16;
    cfg.t_cmd_ns = 100;
    cfg.t_xfer_ns = 1000;
    cfg.t_read_ns = 20000;
    cfg.t_prog_ns = 300000;
    cfg.t_erase_ns = 4000000;
    cfg.idle_erase_ns = 0;
    cfg.wl_threshold = 0;
    return cfg;
}

const char *temp_path(const char *name)
{
    const char *dir = getenv("RSD_TEST_DIR");
    char *path;

    if (!dir) {
        FAIL("set RSD_TEST_DIR to a directory for the test's files");
    }
    if (asprintf(&path, "%s/%s", dir, name) < 0) {
        abort();
    }
    return path;
}

static void open_drive(Bed *bed)
{
    char err[RSD_ERR_LEN] = "";

    bed->drive = bed->synced ? rsd_open_synced(bed->path, &bed->cfg, err)
                             : rsd_open(bed->path, &bed->cfg, err);
    if (!bed->drive) {
        FAIL("open: %s", err);
    }
    rsd_geometry(bed->drive, 0, &bed->geo);
}

Bed bed_open(const RsdConfig *cfg, const char *path)
{
    Bed bed = { .cfg = *cfg, .path = path };
    char err[RSD_ERR_LEN] = "";

    if (path) {
        unlink(path);
        if (!rsd_media_create(path, cfg, err)) {
            FAIL("create: %s", err);
        }
    }
    open_drive(&bed);
    return bed;
}

void bed_reopen(Bed *bed)
{
    rsd_close(bed->drive);
    bed->now = 0;
    open_drive(bed);
}

void bed_close(Bed *bed)
{
    rsd_close(bed->drive);
    if (bed->path) {
        unlink(bed->path);
        free((char *)bed->path);
    }
}

void bed_pass(Bed *bed, uint64_t ns)
{
    RsdCmd *cmd;

    bed->now += ns;
    while ((cmd = rsd_advance(bed->drive, bed->now))) {
        rsd_cmd_free(bed->drive, cmd);
    }
}

void bed_drain(Bed *bed)
{
    uint64_t when;

    while (rsd_next_event(bed->drive, &when)) {
        bed_pass(bed, when > bed->now ? when - bed->now : 0);
    }
}

uint64_t lba(const Bed *bed, uint32_t zone, uint64_t page)
{
    return zone * bed->geo.zone_size + page;
}

/* A sum for each word: sanitized, this was a fourth of what tests took. */
__attribute__((no_sanitize("address", "undefined"), optimize("O3")))
static void fill_words(uint8_t *data, uint64_t word)
{
    for (uint32_t i = 8; i < PAGE; i += 8) {
        word += UINT64_C(0x9e3779b97f4a7c15);
        memcpy(data + i, &word, 8);
    }
}

void fill_page(uint8_t *data, uint8_t *oob, uint32_t oob_len, uint64_t page,
               uint64_t tag)
{
    Rng rng = { tag * 1000003 + page };
    uint64_t first = tag << 32 | page;

    memset(data, 0, PAGE);      /* all of it may be written, a sanitizer sees */
    memcpy(data, &first, 8);
    fill_words(data, rng_next(&rng));
    for (uint32_t i = 0; i < oob_len; i++) {
        oob[i] = rng_next(&rng) | 1;
    }
}

bool page_matches(const uint8_t *data, const uint8_t *oob, uint32_t oob_len,
                  uint64_t page, uint64_t tag)
{
    uint8_t want[PAGE] = { 0 }, want_oob[128] = { 0 };
    uint64_t first = tag ? tag << 32 | page : 0;

    if (memcmp(data, &first, sizeof(first))) {
        return false;
    }
    if (tag) {
        fill_page(want, want_oob, oob_len, page, tag);
    }
    return !memcmp(data, want, PAGE) &&
           (!oob_len || !memcmp(oob, want_oob, oob_len));
}

RsdCmd *begin(Bed *bed, RsdOp op, uint64_t at, uint32_t nlb, uint64_t tag)
{
    uint32_t oob = rsd_config(bed->drive)->oob;
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, op, at, nlb);
    RsdStatus status;

    CHECK(cmd);
    if (op == RSD_WRITE && cmd->data) {
        for (uint32_t i = 0; i < nlb; i++) {
            fill_page(cmd->data + (size_t)i * PAGE,
                      oob ? cmd->oob + (size_t)i * oob : NULL, oob, at + i,
                      tag);
        }
    }
    status = rsd_submit(bed->drive, cmd, bed->now);
    if (status != RSD_OK) {
        FAIL("operation %d at %" PRIu64 ": %s", op, at,
             rsd_status_name(status));
    }
    return cmd;
}

RsdStatus finish(Bed *bed, RsdCmd *wanted)
{
    uint64_t when;
    RsdCmd *cmd;

    for (;;) {
        if (!rsd_next_event(bed->drive, &when)) {
            FAIL("a command never completes");
        }
        CHECK(when >= bed->now);
        bed->now = when;
        while ((cmd = rsd_advance(bed->drive, bed->now))) {
            CHECK_EQ(cmd->done_ns, bed->now);
            if (cmd == wanted) {
                return cmd->status;
            }
            rsd_cmd_free(bed->drive, cmd);
        }
    }
}

uint64_t await(Bed *bed, RsdCmd *wanted)
{
    RsdStatus status = finish(bed, wanted);

    if (status != RSD_OK) {
        FAIL("operation %d: %s", wanted->op, rsd_status_name(status));
    }
    return wanted->done_ns - wanted->submit_ns;
}

uint64_t run(Bed *bed, RsdOp op, uint64_t at, uint32_t nlb, uint64_t tag)
{
    RsdCmd *cmd = begin(bed, op, at, nlb, tag);
    uint64_t latency = await(bed, cmd);

    rsd_cmd_free(bed->drive, cmd);
    return latency;
}

RsdStatus refused(Bed *bed, RsdOp op, uint64_t at, uint32_t nlb)
{
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, op, at, nlb);
    RsdStatus status;

    CHECK(cmd);
    if (cmd->data) {
        memset(cmd->data, 0xaa, (size_t)nlb * PAGE);
    }
    status = rsd_submit(bed->drive, cmd, bed->now);
    CHECK(status != RSD_OK);
    rsd_cmd_free(bed->drive, cmd);
    return status;
}

void expect_pages(Bed *bed, uint64_t at, uint32_t nlb, uint64_t tag)
{
    uint32_t oob = rsd_config(bed->drive)->oob;
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, RSD_READ, at, nlb);

    CHECK(cmd);
    memset(cmd->data, 0x55, (size_t)nlb * PAGE);
    if (oob) {
        memset(cmd->oob, 0x55, (size_t)nlb * oob);
    }
    CHECK_EQ(rsd_submit(bed->drive, cmd, bed->now), RSD_OK);
    await(bed, cmd);
    for (uint32_t i = 0; i < nlb; i++) {
        if (!page_matches(cmd->data + (size_t)i * PAGE,
                          oob ? cmd->oob + (size_t)i * oob : NULL, oob, at + i,
                          tag)) {
            FAIL("page %" PRIu64 " does not hold pattern %" PRIu64, at + i,
                 tag);
        }
    }
    rsd_cmd_free(bed->drive, cmd);
}

RsdCounters counters(const Bed *bed)
{
    RsdCounters c;

    rsd_counters(bed->drive, &c);
    return c;
}

uint64_t written(const Bed *bed, uint32_t zone)
{
    RsdZone info;

    rsd_zone_get(bed->drive, zone, &info);
    return info.written;
}

uint64_t rng_next(Rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t rng_below(Rng *rng, uint64_t n)
{
    return rng_next(rng) % n;
}

uint64_t file_hash(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint64_t hash = 14695981039346656037u;
    unsigned char buf[65536];
    size_t n;

    CHECK(f);
    while ((n = fread(buf, 1, sizeof(buf), f))) {
        for (size_t i = 0; i < n; i++) {
            hash = (hash ^ buf[i]) * 1099511628211u;
        }
    }
    fclose(f);
    return hash;
}
