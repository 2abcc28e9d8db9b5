/*
 * Power cuts: see power.h. A drive that is off has no events; what it was doing
 * has had its outcome, which is in the media. When power comes, everything in
 * RAM is made anew.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>

#include "power.h"

bool rsd_outcomes_parse(const char *text, RsdOutcomes *outcomes)
{
    *outcomes = (RsdOutcomes){ 0 };
    if (*text < '0' || *text > '9') {
        outcomes->list = text;
        return !text[strspn(text, "atc")];
    }
    for (; *text >= '0' && *text <= '9'; text++) {
        if (outcomes->seed > (UINT64_MAX - (*text - '0')) / 10) {
            return false;
        }
        outcomes->seed = outcomes->seed * 10 + (*text - '0');
    }
    return !*text;
}

static RsdOutcome chosen(const RsdOutcomes *outcomes, uint32_t i)
{
    if (!outcomes->list) {
        return rsd_random(outcomes->seed, i) % 3;
    }
    if (i >= strlen(outcomes->list)) {
        return RSD_ABSENT;
    }
    switch (outcomes->list[i]) {
    case 't':
        return RSD_TORN;
    case 'c':
        return RSD_COMPLETE;
    }
    return RSD_ABSENT;
}

/*
 * Of number i of what was in flight; protected: its content is not lost, as the
 * write buffer has it
 */
static RsdOutcome outcome_of(RsdDrive *drive,
                             const RsdOutcomes *outcomes, uint32_t i,
                             bool erase, uint32_t block, bool protected)
{
    RsdOutcome outcome = chosen(outcomes, i);
    const Ns *ns = rsd_ns_of(drive, block);
    bool (*can_tear)(const Ns *, uint32_t) = ns->personality->can_tear;

    if (outcome == RSD_TORN && !erase &&
        (protected || (can_tear && !can_tear(ns, block)))) {
        return RSD_ABSENT;
    }
    return outcome;
}

/* Of number i, which waited in the write buffer: is it programmed? */
static bool is_destaged(const RsdDrive *drive, const RsdOutcomes *outcomes,
                        uint32_t i, uint32_t block, uint32_t page)
{
    uint64_t rec = drive->media.rec[block];
    bool wanted = outcomes->list ? chosen(outcomes, i) == RSD_COMPLETE
                                 : rsd_random(outcomes->seed, i) % 2;

    /* a dirty block is to be erased; others may have to be before */
    return wanted && rsd_rec_next(rec) == page &&
           !(rsd_rec_flags(rec) & (RSD_BLOCK_DIRTY | RSD_BLOCK_BAD));
}

/*
 * Counting
 */

void rsd_power_begin(RsdDrive *drive, const Step *step)
{
    if (step->op->kind != OP_READ && drive->power->log) {
        rsd_oplog_start(drive->power->log, step->op, step->page,
                        rsd_buffer_protects(step->op), drive->sched.now);
    }
}

/* An operation is going to be done, at this moment. */
static void count_op(RsdDrive *drive)
{
    Power *power = drive->power;

    if (++drive->ops == power->cut_op) {
        rsd_sched_interrupt(drive, drive->sched.now);
    }
}

void rsd_power_end(RsdDrive *drive, const Step *step)
{
    if (step->op->kind != OP_READ) {
        if (drive->power->log) {
            rsd_oplog_done(drive->power->log, step->op, step->page,
                           drive->sched.now);
        }
        count_op(drive);
    }
}

void rsd_power_wrote(RsdDrive *drive)
{
    count_op(drive);
}

void rsd_power_command(RsdDrive *drive, uint32_t what, uint64_t lba)
{
    if (drive->power->log) {
        rsd_oplog_command(drive->power->log, what, lba, drive->sched.now);
    }
    count_op(drive);
}

/*
 * Cuts
 */

typedef struct InFlight {
    const Step *step;
    uint32_t order;             /* by die, and in its order */
} InFlight;

static int by_start(const void *a, const void *b)
{
    const InFlight *x = a, *y = b;

    if (x->step->start != y->step->start) {
        return x->step->start < y->step->start ? -1 : 1;
    }
    return x->order < y->order ? -1 : 1;
}

static void end_step(RsdDrive *drive, const Step *step, RsdOutcome outcome)
{
    const Op *op = step->op;
    RsdMedia *media = &drive->media;

    if (outcome == RSD_ABSENT ||
        (op->kind == OP_PROGRAM &&
         rsd_rec_next(media->rec[op->block]) != step->page)) {
        return;                 /* or one before it in the block is absent */
    }
    if (outcome == RSD_COMPLETE) {
        rsd_op_execute(drive, step);
    } else if (op->kind == OP_ERASE) {
        rsd_nand_tear_block(media, op->block);
    } else {
        rsd_nand_tear(media, op->block, step->page, step->slots);
    }
}

/* Of what waits in the buffer, some is in flash; "all" is in flight. */
static void destage_some(RsdDrive *drive, const RsdOutcomes *outcomes,
                         const InFlight *all, uint32_t n)
{
    const Op *op;
    uint64_t seq = 0;
    uint32_t i = n, page;

    while ((op = rsd_buffer_next_volatile(drive, &seq, &page))) {
        uint32_t k = 0;

        while (k < n && all[k].step->op != op) {
            k++;
        }
        if (k == n && is_destaged(drive, outcomes, i++, op->block, page)) {
            rsd_nand_program_unit(&drive->media, op->block, page, drive->unit,
                                  op->buf);
        }
    }
}

void rsd_power_cut(RsdDrive *drive, const RsdOutcomes *outcomes)
{
    InFlight *all;
    uint32_t n = 0;

    if (drive->power->off) {
        return;
    }
    drive->power->off = true;
    rsd_sched_halt(drive);
    if (drive->power->log) {
        RsdOplogInfo info;
        uint64_t seq = 0;
        uint32_t page;

        rsd_oplog_power(drive->power->log, drive->sched.now,
                        rsd_buffer_next_volatile(drive, &seq, &page));
        rsd_oplog_info(drive, &info);
        drive->ops = info.ops;
    }
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        if (drive->ns[i].personality->power_cut) {
            drive->ns[i].personality->power_cut(&drive->ns[i]);
        }
    }
    all = malloc(drive->dies * RSD_DIE_STEPS * sizeof(*all));
    for (uint32_t d = 0; all && d < drive->dies; d++) {
        const Step *steps[RSD_DIE_STEPS];
        uint32_t in_die = rsd_sched_in_flight(drive, d, steps);

        for (uint32_t i = 0; i < in_die; i++, n++) {
            all[n] = (InFlight){ steps[i], n };
        }
    }
    /* without memory, all of it is absent */
    if (n) {
        qsort(all, n, sizeof(*all), by_start);
    }
    for (uint32_t i = 0; i < n; i++) {
        const Op *op = all[i].step->op;

        end_step(drive, all[i].step,
                 outcome_of(drive, outcomes, i, op->kind == OP_ERASE,
                            op->block, rsd_buffer_protects(op)));
    }
    if (all) {
        destage_some(drive, outcomes, all, n);
    }
    free(all);
}

bool rsd_power_cut_later(RsdDrive *drive, uint64_t op, uint64_t time_ns,
                         const RsdOutcomes *outcomes)
{
    Power *power = drive->power;
    char *list = NULL;

    if ((op && op <= drive->ops) || time_ns < drive->sched.now) {
        return false;
    }
    if (outcomes->list) {
        list = strdup(outcomes->list);
        if (!list) {
            return false;
        }
    }
    power->cut_op = op;
    drive->watched |= op > 0;
    power->seed = outcomes->seed;
    free(power->list);
    power->list = list;
    if (time_ns != UINT64_MAX) {
        rsd_sched_interrupt(drive, time_ns);
    }
    return true;
}

void rsd_power_event(RsdDrive *drive)
{
    RsdOutcomes outcomes = { drive->power->list, drive->power->seed };

    rsd_power_cut(drive, &outcomes);
}

bool rsd_power_is_off(const RsdDrive *drive)
{
    return drive->power->off;
}

/*
 * The log
 */

bool rsd_power_open_log(RsdDrive *drive, const char *path,
                        char err[RSD_ERR_LEN])
{
    RsdOplogInfo info;

    if (!drive->media.header) {
        rsd_set_error(err, "an operation log needs a media file");
        return false;
    }
    if (rsd_ftl_is(&drive->cfg, RSD_FTL_ROTATES)) {
        rsd_set_error(err, "op-log: a disk (ftl=%s) overwrites its sectors in "
                      "place, which the operation log does not keep; leave "
                      "op-log out, and cut the power with cut-at-op",
                      rsd_ftl_names[drive->cfg.ftl]);
        return false;
    }
    if (!rsd_oplog_open(&drive->media, path, drive->dies,
                        (uint64_t)drive->dies * drive->die_blocks, err)) {
        return false;
    }
    drive->power->log = drive->media.journal_state;
    rsd_oplog_power(drive->power->log, 0, false);
    rsd_oplog_info(drive, &info);
    drive->watched = true;
    drive->ops = info.ops;
    return true;
}

/* Gives what was in flight after operation op, the media being there. */
static bool end_logged(RsdDrive *drive, uint64_t op,
                       const RsdOutcomes *outcomes)
{
    size_t size = (size_t)drive->unit * (RSD_PAGE_SIZE + RSD_OOB_SIZE);
    RsdMedia *media = &drive->media;
    uint8_t *content = malloc(size);
    RsdLogged logged;
    bool ok = content;

    for (uint32_t i = 0;
         ok && rsd_oplog_in_flight(drive, op, i, &logged); i++) {
        bool erase = logged.kind == RSD_LOGGED_ERASE;
        /* it may have been protected since it was begun */
        bool safe = logged.protected ||
                    rsd_media_has_unit(media, logged.block, logged.page);
        RsdOutcome outcome = outcome_of(drive, outcomes, i, erase,
                                        logged.block, safe);

        if (logged.waiting) {
            outcome = !safe && is_destaged(drive, outcomes, i, logged.block,
                                           logged.page)
                          ? RSD_COMPLETE : RSD_ABSENT;
        }

        if (outcome == RSD_ABSENT ||
            (outcome == RSD_COMPLETE && !logged.ends) ||
            (!erase && rsd_rec_next(media->rec[logged.block]) !=
                       logged.page)) {
            continue;
        }
        if (outcome == RSD_TORN) {
            ok = (erase ? rsd_nand_tear_block(media, logged.block)
                        : rsd_nand_tear(media, logged.block, logged.page,
                                        drive->unit)) == RSD_OK;
        } else if (erase) {
            ok = rsd_nand_erase(media, logged.block) == RSD_OK;
        } else {
            ok = rsd_oplog_content(drive->power->log, op, i, drive->unit, content) &&
                 rsd_nand_program_unit(media, logged.block, logged.page,
                                       drive->unit, content) == RSD_OK;
        }
    }
    free(content);
    return ok;
}

bool rsd_power_can_rewind(const RsdDrive *drive, uint64_t op,
                          char err[RSD_ERR_LEN])
{
    RsdOplogInfo info;

    rsd_oplog_info(drive, &info);
    if (!info.on) {
        rsd_set_error(err, "no operation log is kept: set op-log");
        return false;
    }
    if (info.broken || op > info.ops) {
        return rsd_oplog_go(drive->power->log, op, err);
    }
    return true;
}

bool rsd_power_rewind(RsdDrive *drive, uint64_t op,
                      const RsdOutcomes *outcomes, char err[RSD_ERR_LEN])
{
    if (!rsd_oplog_go(drive->power->log, op, err)) {
        return false;
    }
    if (!end_logged(drive, op, outcomes)) {
        rsd_set_error(err, "the host's disk, or its memory, is full, or fails");
        return false;
    }
    return true;
}

bool rsd_oplog_restart(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    if (!drive->power->log) {
        rsd_set_error(err, "no operation log is kept: set op-log");
        return false;
    }
    rsd_oplog_begin(drive->power->log);
    drive->ops = 0;
    rsd_buffer_count_anew(drive);
    return true;
}

void rsd_oplog_info(const RsdDrive *drive, RsdOplogInfo *info)
{
    *info = (RsdOplogInfo){ 0 };
    if (drive->power->log) {
        rsd_oplog_get_info(drive->power->log, info);
    }
}

bool rsd_oplog_op(const RsdDrive *drive, uint64_t op, RsdLogged *logged)
{
    return drive->power->log && rsd_oplog_get_op(drive->power->log, op, logged);
}

bool rsd_oplog_in_flight(const RsdDrive *drive, uint64_t op, uint32_t i,
                         RsdLogged *logged)
{
    return drive->power->log &&
           rsd_oplog_get_in_flight(drive->power->log, op, i, logged);
}
