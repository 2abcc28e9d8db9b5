/*
 * Commands of all kinds, power cuts and formats, to drives of all kinds: what
 * is read is what was written last.
 *
 * The input: the drive, then a byte for each step and what the step needs.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "rsd-power.h"

#define MOST_LBAS 65536
#define MOST_BLOCKS 24          /* of a command */
#define MOST_STEPS 400
#define UNKNOWN UINT32_MAX

/* What a read in flight has to return: the numbers of the writes */
typedef struct Expected {
    uint32_t writes[MOST_BLOCKS];
} Expected;

typedef struct Run {
    const char *path;
    RsdConfig cfg;
    RsdDrive *drive;
    uint64_t now;
    uint32_t writes;            /* number of the last write */
    uint32_t in_flight;
    bool doubt;                 /* of reads in flight nothing is expected */
    /* the write whose data a block has; 0: zeroes */
    uint32_t last[RSD_MAX_NAMESPACES][MOST_LBAS];
} Run;

static void know_nothing(Run *run)
{
    memset(run->last, 0xff, sizeof(run->last));
    run->doubt = run->in_flight > 0;
}

/* What a write of that number makes of a block; of number 0, zeroes */
static void fill(uint8_t *page, uint8_t *oob, uint32_t oob_len, uint32_t write,
                 uint64_t lba)
{
    uint64_t word = write ? (uint64_t)write << 32 | lba : 0;

    memset(page, 0, PAGE);
    memcpy(page, &word, sizeof(word));
    memcpy(page + PAGE - sizeof(word), &word, sizeof(word));
    for (uint32_t i = 0; i < oob_len; i++) {
        oob[i] = write ? write + lba + i : 0;
    }
}

static void check(Run *run, const RsdCmd *cmd)
{
    const Expected *expected = cmd->opaque;
    uint32_t oob_len = rsd_oob(run->drive, cmd->ns);

    for (uint32_t i = 0; i < cmd->nlb; i++) {
        uint32_t write = expected->writes[i];
        uint8_t page[PAGE], oob[128] = { 0 };

        if (write == UNKNOWN) {
            continue;
        }
        fill(page, oob, oob_len, write, cmd->lba + i);
        if (memcmp(page, cmd->data + (size_t)i * PAGE, PAGE) ||
            (cmd->oob && memcmp(oob, cmd->oob + (size_t)i * oob_len, oob_len))) {
            abort();            /* not what was written last */
        }
    }
}

static void done(Run *run, RsdCmd *cmd)
{
    run->in_flight--;
    if (cmd->op != RSD_READ) {
        if (cmd->status != RSD_OK) {
            know_nothing(run);
        }
    } else if (cmd->status == RSD_OK && !run->doubt) {
        check(run, cmd);
    }
    free(cmd->opaque);
    rsd_cmd_free(run->drive, cmd);
    if (!run->in_flight) {
        run->doubt = false;
    }
}

static void pass(Run *run, uint64_t ns)
{
    RsdCmd *cmd;

    run->now += ns;
    while ((cmd = rsd_advance(run->drive, run->now))) {
        done(run, cmd);
    }
}

static void finish_all(Run *run)
{
    uint64_t when;

    while (run->in_flight && rsd_next_event(run->drive, &when)) {
        pass(run, when > run->now ? when - run->now : 0);
    }
}

static void wrote(Run *run, const RsdCmd *cmd, uint32_t write)
{
    for (uint32_t i = 0; i < cmd->nlb; i++) {
        run->last[cmd->ns][cmd->lba + i] = write;
    }
}

static void zone_is_empty(Run *run, const RsdCmd *cmd)
{
    RsdGeometry geo;
    uint64_t first;

    rsd_geometry(run->drive, cmd->ns, &geo);
    first = cmd->lba / geo.zone_size * geo.zone_size;
    for (uint64_t i = 0; i < geo.zone_size; i++) {
        run->last[cmd->ns][first + i] = 0;
    }
}

static void submit(Run *run, uint32_t ns, RsdOp op, uint64_t lba, uint32_t nlb)
{
    RsdCmd *cmd = rsd_cmd_new(run->drive, ns, op, lba, nlb);
    uint32_t oob_len = rsd_oob(run->drive, ns);
    Expected *expected = NULL;

    if (!cmd) {
        abort();
    }
    run->writes++;
    if (op == RSD_WRITE) {
        for (uint32_t i = 0; i < nlb; i++) {
            fill(cmd->data + (size_t)i * PAGE,
                 cmd->oob ? cmd->oob + (size_t)i * oob_len : NULL,
                 cmd->oob ? oob_len : 0, run->writes, lba + i);
        }
    } else if (op == RSD_READ) {
        RsdGeometry geo;

        rsd_geometry(run->drive, ns, &geo);
        expected = calloc(1, sizeof(*expected));
        for (uint32_t i = 0; i < nlb && lba + i < geo.lbas; i++) {
            expected->writes[i] = run->last[ns][lba + i];
        }
        cmd->opaque = expected;
    }
    if (rsd_submit(run->drive, cmd, run->now) != RSD_OK) {
        free(expected);
        rsd_cmd_free(run->drive, cmd);
        return;
    }
    run->in_flight++;
    switch (op) {
    case RSD_WRITE:
        wrote(run, cmd, run->writes);
        break;
    case RSD_WRITE_ZEROES:
    case RSD_TRIM:
        wrote(run, cmd, 0);
        break;
    case RSD_ZONE_RESET:
        zone_is_empty(run, cmd);
        break;
    default:
        break;
    }
}

/* Where a step goes: most writes to zones continue them. */
static uint64_t take_lba(Input *in, Run *run, uint32_t ns, RsdOp op)
{
    uint8_t how = take8(in);
    RsdGeometry geo;
    RsdZone zone;
    uint64_t lba;

    rsd_geometry(run->drive, ns, &geo);
    lba = take_below(in, geo.lbas + 2);
    if (geo.zoned && (op == RSD_WRITE || op == RSD_ZRWA_COMMIT) && how & 7 &&
        lba < geo.lbas) {
        rsd_zone_get(run->drive, lba / geo.zone_size, &zone);
        lba = lba / geo.zone_size * geo.zone_size + zone.next + (how >> 5);
    }
    return lba;
}

/* Commands in flight go with the drive. */
static void forget(Run *run)
{
    if (run->in_flight || rsd_is_volatile(&run->cfg)) {
        run->in_flight = 0;
        know_nothing(run);
    }
}

static void reopen(Run *run)
{
    char err[RSD_ERR_LEN];

    finish_all(run);
    forget(run);
    rsd_close(run->drive);
    run->now = 0;
    run->drive = rsd_open(run->path, &run->cfg, err);
    if (!run->drive) {
        abort();
    }
}

/* Expectations of commands that are cut off are not freed by the drive. */
static void cut(Input *in, Run *run)
{
    RsdOutcomes outcomes = { .seed = take8(in) };
    char err[RSD_ERR_LEN];

    if (take8(in) & 1) {
        finish_all(run);
    }
    if (run->in_flight) {
        return;                 /* what they would return is not ours to free */
    }
    if (rsd_is_volatile(&run->cfg)) {
        know_nothing(run);
    }
    rsd_power_cut(run->drive, &outcomes);
    if (!rsd_power_on(run->drive, err)) {
        abort();
    }
}

static bool step(Input *in, Run *run)
{
    static const RsdOp ops[] = {
        RSD_WRITE, RSD_WRITE, RSD_WRITE, RSD_WRITE, RSD_READ, RSD_READ,
        RSD_WRITE_ZEROES, RSD_TRIM, RSD_ZONE_RESET, RSD_ZONE_FINISH, RSD_FLUSH,
        RSD_ZRWA_OPEN, RSD_ZRWA_COMMIT,
    };
    enum { NUM_OPS = sizeof(ops) / sizeof(ops[0]) };
    uint32_t ns, what;
    uint64_t lba;
    RsdOp op;

    if (in->at >= in->end) {
        return false;
    }
    what = take_below(in, NUM_OPS + 6);
    switch (what) {
    case NUM_OPS:
        pass(run, take16(in));
        return true;
    case NUM_OPS + 1:
        pass(run, (uint64_t)take16(in) << 8);
        return true;
    case NUM_OPS + 2:
        finish_all(run);
        return true;
    case NUM_OPS + 3:
        reopen(run);
        return true;
    case NUM_OPS + 4:
        cut(in, run);
        return true;
    case NUM_OPS + 5:
        finish_all(run);
        ns = take_below(in, rsd_num_namespaces(run->drive));
        if (rsd_format(run->drive, ns, take_below(in, 2) ? 16 : 0, run->now) ==
            RSD_OK) {
            memset(run->last[ns], 0, sizeof(run->last[ns]));
            run->cfg.oob = rsd_config(run->drive)->oob;
        }
        return true;
    }
    op = ops[what];
    ns = take_below(in, rsd_num_namespaces(run->drive));
    lba = take_lba(in, run, ns, op);
    submit(run, ns, op, lba, take_below(in, MOST_BLOCKS + 1));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *path;
    static Run run;
    Input in = { data, data + size };
    char err[RSD_ERR_LEN];

    if (!path) {
        path = file_in_memory("media");
    }
    memset(&run, 0, sizeof(run));
    run.path = path;
    unlink(path);
    if (!take_config(&in, &run.cfg) ||
        !rsd_media_create(path, &run.cfg, err)) {
        return 0;
    }
    run.drive = rsd_open(path, &run.cfg, err);
    if (!run.drive) {
        return 0;
    }
    for (int i = 0; i < MOST_STEPS && step(&in, &run); i++) {
    }
    finish_all(&run);
    rsd_close(run.drive);
    return 0;
}
