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

/* A command in flight, and the numbers of the writes that a read returns */
typedef struct Flight {
    RsdCmd *cmd;
    uint32_t writes[MOST_BLOCKS];
} Flight;

typedef struct Run {
    const char *path;
    RsdConfig cfg;
    RsdDrive *drive;
    uint64_t now;
    uint32_t writes;            /* number of the last write */
    Flight flights[MOST_STEPS];
    uint32_t in_flight;
    bool overtaking;            /* a read and a write may overtake each other */
    /* the write whose data a block has; 0: zeroes */
    uint32_t last[RSD_MAX_NAMESPACES][MOST_LBAS];
} Run;

static void know_nothing(Run *run)
{
    memset(run->last, 0xff, sizeof(run->last));
    for (uint32_t i = 0; i < run->in_flight; i++) {
        memset(run->flights[i].writes, 0xff, sizeof(run->flights[i].writes));
    }
}

/* See host.c: what comes to the flash later may have been submitted before. */
static bool has_stages(const RsdConfig *cfg)
{
    return cfg->t_fw_read_ns || cfg->t_fw_write_ns || cfg->t_fw_append_ns ||
           cfg->t_fw_zone_ns || cfg->t_fw_page_ns || cfg->t_link_ns ||
           cfg->t_lat_read_ns || cfg->t_lat_write_ns || cfg->t_lat_zone_ns;
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

static void check(Run *run, const Flight *flight)
{
    const RsdCmd *cmd = flight->cmd;
    uint32_t oob_len = rsd_oob(run->drive, cmd->ns);

    for (uint32_t i = 0; i < cmd->nlb; i++) {
        uint32_t write = flight->writes[i];
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
    uint32_t i = 0;
    Flight flight;

    while (run->flights[i].cmd != cmd) {
        i++;
    }
    flight = run->flights[i];
    run->flights[i] = run->flights[--run->in_flight];
    if (cmd->op != RSD_READ) {
        if (cmd->status != RSD_OK) {
            know_nothing(run);
        }
    } else if (cmd->status == RSD_OK) {
        check(run, &flight);
    }
    rsd_cmd_free(run->drive, cmd);
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

/* What the command changes; a zone that is reset has zeroes. False: nothing */
static bool changes(const Run *run, const RsdCmd *cmd, uint64_t *from,
                    uint64_t *end)
{
    RsdGeometry geo;

    switch (cmd->op) {
    case RSD_WRITE:
    case RSD_WRITE_ZEROES:
    case RSD_TRIM:
        *from = cmd->lba;
        *end = cmd->lba + cmd->nlb;
        return true;
    case RSD_ZONE_RESET:
        rsd_geometry(run->drive, cmd->ns, &geo);
        *from = cmd->lba / geo.zone_size * geo.zone_size;
        *end = *from + geo.zone_size;
        return true;
    default:
        return false;
    }
}

/* It has, or will have, changed them. */
static void changed(Run *run, const RsdCmd *cmd, uint32_t write)
{
    uint64_t from = 0, end = 0;

    if (!changes(run, cmd, &from, &end)) {
        return;
    }
    for (uint64_t lba = from; lba < end; lba++) {
        run->last[cmd->ns][lba] = write;
    }
    for (uint32_t i = 0; run->overtaking && i < run->in_flight; i++) {
        Flight *read = &run->flights[i];

        for (uint32_t k = 0; read->cmd->op == RSD_READ &&
             read->cmd->ns == cmd->ns && k < read->cmd->nlb; k++) {
            if (read->cmd->lba + k >= from && read->cmd->lba + k < end) {
                read->writes[k] = UNKNOWN;
            }
        }
    }
}

static void expect(Run *run, Flight *read)
{
    const RsdCmd *cmd = read->cmd;
    uint64_t from, end;

    for (uint32_t k = 0; k < cmd->nlb; k++) {
        read->writes[k] = run->last[cmd->ns][cmd->lba + k];
    }
    for (uint32_t i = 0; run->overtaking && i < run->in_flight; i++) {
        const RsdCmd *other = run->flights[i].cmd;

        if (other->ns != cmd->ns || !changes(run, other, &from, &end)) {
            continue;
        }
        for (uint32_t k = 0; k < cmd->nlb; k++) {
            if (cmd->lba + k >= from && cmd->lba + k < end) {
                read->writes[k] = UNKNOWN;
            }
        }
    }
}

static void submit(Run *run, uint32_t ns, RsdOp op, uint64_t lba, uint32_t nlb,
                   bool forgotten)
{
    RsdCmd *cmd = rsd_cmd_new(run->drive, ns, op, lba, nlb);
    uint32_t oob_len = rsd_oob(run->drive, ns);
    Flight flight = { .cmd = cmd };

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
    }
    if (rsd_submit(run->drive, cmd, run->now) != RSD_OK) {
        rsd_cmd_free(run->drive, cmd);
        return;
    }
    if (op == RSD_READ) {
        expect(run, &flight);
    } else {
        changed(run, cmd, forgotten ? UNKNOWN
                                    : op == RSD_WRITE ? run->writes : 0);
    }
    if (forgotten) {
        rsd_cmd_detach(run->drive, cmd);
    } else {
        run->flights[run->in_flight++] = flight;
    }
}

/* Where a step goes: most writes to zones continue them. "how" is as taken. */
static uint64_t take_lba(Input *in, Run *run, uint32_t ns, RsdOp op,
                         uint8_t how)
{
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

/* The host has forgotten those in flight, and what they did is not known. */
static void forget(Run *run)
{
    while (run->in_flight) {
        RsdCmd *cmd = run->flights[--run->in_flight].cmd;

        changed(run, cmd, UNKNOWN);
        rsd_cmd_free(run->drive, cmd);
    }
}

static void reopen(Run *run)
{
    char err[RSD_ERR_LEN];

    finish_all(run);
    forget(run);
    if (rsd_is_volatile(&run->cfg)) {
        know_nothing(run);
    }
    rsd_close(run->drive);
    run->now = 0;
    run->drive = rsd_open(run->path, &run->cfg, err);
    if (!run->drive) {
        abort();
    }
}

static void cut(Input *in, Run *run)
{
    RsdOutcomes outcomes = { .seed = take8(in) };
    char err[RSD_ERR_LEN];

    if (take8(in) & 1) {
        finish_all(run);
    }
    if (rsd_is_volatile(&run->cfg)) {
        know_nothing(run);
    }
    rsd_power_cut(run->drive, &outcomes);
    if (!rsd_power_on(run->drive, err)) {
        abort();
    }
    forget(run);
}

/* Also while there are commands in flight, of which those to it refuse it */
static void format(Input *in, Run *run)
{
    uint32_t ns = take_below(in, rsd_num_namespaces(run->drive));
    uint8_t how = take8(in);

    if (!(how & 2)) {
        finish_all(run);
    }
    if (rsd_format(run->drive, ns, how & 1 ? 16 : 0, run->now) == RSD_OK) {
        memset(run->last[ns], 0, sizeof(run->last[ns]));
        run->cfg.oob = rsd_config(run->drive)->oob;
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
    uint8_t how;
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
        format(in, run);
        return true;
    }
    op = ops[what];
    ns = take_below(in, rsd_num_namespaces(run->drive));
    how = take8(in);
    lba = take_lba(in, run, ns, op, how);
    submit(run, ns, op, lba, take_below(in, MOST_BLOCKS + 1),
           (how & 24) == 24);
    return true;
}

/* Is there room for what is known of the drive? */
static bool fits(const Run *run)
{
    RsdGeometry geo;
    bool all = true;

    for (uint32_t ns = 0; ns < rsd_num_namespaces(run->drive); ns++) {
        rsd_geometry(run->drive, ns, &geo);
        all &= geo.lbas <= MOST_LBAS;
    }
    return all;
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
    run.overtaking = has_stages(&run.cfg);
    for (int i = 0; fits(&run) && i < MOST_STEPS && step(&in, &run); i++) {
    }
    finish_all(&run);
    rsd_close(run.drive);
    return 0;
}
