/*
 * Faults by rule in flash: see api/scenario.h.
 *
 * A program that fails. The die does it once more, so that the step takes its
 * time twice, and the block is weak: its next erase fails. Real firmware does
 * the second program in another block, and moves the rest of the first one
 * there; here the block is used as it is until it is erased. What is seen is
 * the same otherwise: time is lost, a spare is, and no data.
 *
 * An erase that fails is one of a weak block. A map of zones gives a block away
 * before it is erased, so it has to know whether it will be: there the rule is
 * asked when the block is given back. An erase that is queued already is left
 * alone for the same reason.
 *
 * A page that a rule makes unreadable is so in the media, so that it stays so
 * in copies and in the file. A drive without data of pages cannot keep that:
 * there, the one read fails.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "array.h"

void rsd_inject(RsdDrive *drive, RsdRule *rule, RsdInjected fault)
{
    RsdScenario *scenario = drive->scenario;

    rule->faults++;
    (&drive->count->fault_program)[rule->kind]++;
    if (scenario->told) {
        fault.time_ns = drive->sched.now;
        fault.rule = rule;
        fault.candidate = rule->candidates;
        scenario->told(scenario->opaque, &fault);
    }
}

_Static_assert(offsetof(RsdCounters, fault_offline) ==
               offsetof(RsdCounters, fault_program) +
               RSD_FAULT_OFFLINE_RULE * sizeof(uint64_t),
               "counters of faults are in the order of RSD_FAULTS");

/* Says whether some of these pages of a block are where the rule applies. */
static bool is_there(const RsdDrive *drive, const RsdRule *rule,
                     uint32_t block, uint32_t page, uint32_t pages)
{
    return rsd_rule_has(&rule->die, rsd_die_of(drive, block)) &&
           rsd_rule_has(&rule->block, block % drive->die_blocks) &&
           (!rule->page.given || (page <= rule->page.to &&
                                  page + pages > rule->page.from)) &&
           rsd_rec_erases(drive->media.rec[block]) >= rule->wear.from;
}

static RsdInjected fault_at(const RsdDrive *drive, uint32_t block,
                            uint64_t page, uint64_t lba)
{
    return (RsdInjected){
        .die = rsd_die_of(drive, block), .block = block % drive->die_blocks,
        .page = page, .lba = lba,
    };
}

static bool is_weak(const RsdDrive *drive, uint32_t block)
{
    return rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_WEAK;
}

/* Makes the next erase of a block fail. */
static void weaken(RsdDrive *drive, uint32_t block)
{
    rsd_nand_mark(&drive->media, block,
                  RSD_BLOCK_WEAK | rsd_rec_flags(drive->media.rec[block]));
}

uint64_t rsd_inject_begin(RsdDrive *drive, const Step *step, uint64_t again)
{
    const Op *op = step->op;
    RsdScenario *scenario = drive->scenario;
    bool erase = op->kind == OP_ERASE;
    uint64_t longer = 0;

    if (!scenario || step->retries) {
        return 0;
    }
    for (uint32_t i = 0; i < scenario->num_rules; i++) {
        RsdRule *rule = &scenario->rules[i];
        bool program = rule->kind == RSD_FAULT_PROGRAM_RULE &&
                       op->kind == OP_PROGRAM &&
                       !drive->blocks[op->block].erases;
        bool latency = rule->kind == RSD_FAULT_LATENCY_RULE &&
                       (!rule->op.given || rule->op.from == op->kind);

        if ((!program && !latency) ||
            !is_there(drive, rule, op->block, erase ? 0 : step->page,
                      erase ? drive->pages : step->slots) ||
            !rsd_rule_chooses(rule)) {
            continue;
        }
        if (program) {
            weaken(drive, op->block);
        }
        longer += program ? again : rule->time.from;
        rsd_inject(drive, rule, fault_at(drive, op->block,
                                         erase ? UINT64_MAX : step->page,
                                         UINT64_MAX));
    }
    return longer;
}

void rsd_inject_erase(RsdDrive *drive, uint32_t block)
{
    RsdScenario *scenario = drive->scenario;

    if (!scenario || is_weak(drive, block)) {
        return;                 /* it fails anyway */
    }
    for (uint32_t i = 0; i < scenario->num_rules; i++) {
        RsdRule *rule = &scenario->rules[i];

        if (rule->kind == RSD_FAULT_ERASE_RULE &&
            is_there(drive, rule, block, 0, drive->pages) &&
            rsd_rule_chooses(rule) && !is_weak(drive, block)) {
            weaken(drive, block);
            rsd_inject(drive, rule,
                       fault_at(drive, block, UINT64_MAX, UINT64_MAX));
        }
    }
}

/* A page is about to be read. Says whether a rule makes the read fail. */
static bool loses(RsdDrive *drive, const Op *op, uint32_t page, uint64_t lba)
{
    RsdScenario *scenario = drive->scenario;
    bool lost = false;

    if (page >= rsd_rec_next(drive->media.rec[op->block]) ||
        rsd_nand_is_lost(&drive->media, op->block, page)) {
        return false;           /* there is nothing to be lost */
    }
    for (uint32_t i = 0; i < scenario->num_rules; i++) {
        RsdRule *rule = &scenario->rules[i];

        if (rule->kind == RSD_FAULT_READ_RULE &&
            (!rule->lba.given ||
             (lba != UINT64_MAX && rsd_rule_has(&rule->lba, lba))) &&
            is_there(drive, rule, op->block, page, 1) &&
            rsd_rule_chooses(rule) && !lost) {
            rsd_inject(drive, rule, fault_at(drive, op->block, page, lba));
            lost = true;
        }
    }
    return lost;
}

/* Loses those pages of a step's read that fail by a rule. */
static bool lose_pages(RsdDrive *drive, const Step *step)
{
    const Op *op = step->op;
    uint32_t first = op->row ? rsd_row_of(drive, step->page) : step->page;
    uint32_t wanted = op->row ? op->wanted : UINT32_MAX;
    uint32_t end = op->row ? 32 - __builtin_clz(wanted) : step->slots;
    bool any = false;

    for (uint32_t i = 0; i < end; i++) {
        uint64_t lba = op->cmd ? op->cmd->pub.lba + step->index + i
                               : UINT64_MAX;

        if ((!op->row || wanted >> i & 1) &&
            loses(drive, op, first + i, lba)) {
            rsd_nand_lose(&drive->media, op->block, first + i,
                          !drive->ns[op->ns].geo.zoned);
            any = true;
        }
    }
    return any;
}

void rsd_inject_execute(RsdDrive *drive, const Step *step)
{
    Op *op = step->op;
    bool lost = false;

    if (drive->scenario && op->kind == OP_ERASE &&
        !drive->ns[op->ns].geo.zoned) {
        rsd_inject_erase(drive, op->block);
    }
    if (drive->scenario && op->kind == OP_READ && op->cause != RSD_CAUSE_MAP) {
        lost = lose_pages(drive, step);
    }
    rsd_op_execute(drive, step);
    if (lost && !drive->media.data && op->cmd) {
        drive->count->media_errors++;
        op->failed = true;
        op->cmd->pub.status = RSD_E_MEDIA;
    }
}
