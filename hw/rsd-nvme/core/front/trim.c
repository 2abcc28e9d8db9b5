/*
 * Large trims, in steps.
 *
 * A trim, or what is like one (a write of zeroes to a conventional namespace
 * that is no disk), deals with each page that has content. So that nobody waits
 * long for it, be it the host's own thread or another command, one of more than
 * RSD_TRIM_STEP pages is carried out in steps of so many. To the translation
 * layer a step is a command of its own, a Cmd that is used for one step after
 * the other and that the host never sees. When the last one is done, the trim
 * is, and it counts as one. A step that fails is the last one, and what it
 * fails with is the trim's status: the pages before have no content then, those
 * behind it have theirs.
 *
 * Each step is an operation with a number of its own (rsd-power.h), so a power
 * cut can come between two: a page is as it was, or trimmed. When the host has
 * forgotten the trim, it goes on like any command (rsd_cmd_detach()).
 *
 * Order. Commands that overlap take effect in the order in which they came. The
 * layer sees to that for those that it has. What is left of a trim is known
 * here alone: a command that came later and overlaps that is held until the
 * trim is over, and so is one that overlaps something that is held. All others
 * go on between the steps.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "front.h"

static Trims *trims_of(RsdDrive *drive, const Cmd *cmd)
{
    return &drive->host->trims[cmd->pub.ns];
}

void rsd_trims_init(RsdDrive *drive)
{
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        drive->host->trims[i].waits.ns = &drive->ns[i];
        drive->host->trims[i].waits.rest_counts = true;
    }
}

bool rsd_trim_is_large(const RsdDrive *drive, const Cmd *cmd)
{
    if (cmd->pub.nlb <= RSD_TRIM_STEP || drive->ns[cmd->pub.ns].geo.zoned) {
        return false;
    }
    return cmd->pub.op == RSD_TRIM ||
           (cmd->pub.op == RSD_WRITE_ZEROES &&
            !rsd_ftl_is(&drive->cfg, RSD_FTL_ROTATES));
}

RsdStatus rsd_trim_begin(RsdDrive *drive, Cmd *cmd, Cmd *step)
{
    Trims *trims = trims_of(drive, cmd);
    RsdStatus status;

    step->whole = cmd;
    cmd->progress = 0;
    cmd->pending++;
    if (!cmd->waits) {
        rsd_waits_add(&trims->waits, cmd);
    }
    rsd_trim_step_begins(drive, step);
    status = drive->host->begin(drive, step);
    if (status != RSD_OK) {
        rsd_waits_remove(&trims->waits, cmd);
        return status;
    }
    rsd_cmd_drop(drive, step);
    return RSD_OK;
}

void rsd_trim_step_begins(RsdDrive *drive, Cmd *step)
{
    Cmd *cmd = step->whole;

    cmd->progress += step->pub.nlb;
    rsd_waits_went_on(&trims_of(drive, cmd)->waits, cmd);
}

bool rsd_trim_go_on(RsdDrive *drive, Cmd *step)
{
    Cmd *cmd = step->whole;
    uint32_t left = cmd->pub.nlb - cmd->progress;

    if (cmd->pub.status == RSD_OK) {
        cmd->pub.status = step->pub.status;
    }
    if (cmd->pub.status != RSD_OK || !left) {
        rsd_waits_remove(&trims_of(drive, cmd)->waits, cmd);
        return true;
    }
    step->pub.lba = cmd->pub.lba + cmd->progress;
    step->pub.nlb = left < RSD_TRIM_STEP ? left : RSD_TRIM_STEP;
    memset(step->area, 0, drive->cmd_area);
    rsd_host_step(drive, step);
    return false;
}

bool rsd_trim_holds(RsdDrive *drive, Cmd *cmd)
{
    Waits *waits = &trims_of(drive, cmd)->waits;

    if (!waits->head) {
        return false;
    }
    cmd->begun = ++drive->begun;
    if (!rsd_waits_blocker(waits, cmd)) {
        return false;
    }
    cmd->held = true;
    rsd_waits_add(waits, cmd);
    return true;
}

/*
 * No command before it overlaps it any more. A large trim holds others itself.
 */
static void make_ready(RsdDrive *drive, Trims *trims, Cmd *cmd)
{
    cmd->held = false;
    if (!rsd_trim_is_large(drive, cmd)) {
        rsd_waits_remove(&trims->waits, cmd);
    }
    cmd->done_next = NULL;
    if (trims->ready) {
        trims->last->done_next = cmd;
    } else {
        trims->ready = cmd;
    }
    trims->last = cmd;
}

void rsd_trim_let_go(RsdDrive *drive, uint32_t ns)
{
    Trims *trims = &drive->host->trims[ns];

    for (Cmd *cmd = trims->waits.head, *next; cmd; cmd = next) {
        next = cmd->wait_next;
        if (cmd->held && !rsd_waits_blocker(&trims->waits, cmd)) {
            make_ready(drive, trims, cmd);
        }
    }
    if (trims->letting_go) {
        return;                 /* in their order, by whoever does it already */
    }
    trims->letting_go = true;
    while (trims->ready) {
        Cmd *cmd = trims->ready;

        trims->ready = cmd->done_next;
        drive->host->go_on(drive, cmd);
    }
    trims->letting_go = false;
}
