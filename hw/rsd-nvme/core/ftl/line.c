/*
 * The simplest order of commands: one behind the other. Only the first one goes
 * on; when all of it is queued, it leaves, and the next one is the first.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "ftl.h"

void rsd_line_add(Line *line, Cmd *cmd)
{
    cmd->pending++;
    cmd->progress = 0;
    cmd->wait_next = NULL;
    if (line->head) {
        line->tail->wait_next = cmd;
    } else {
        line->head = cmd;
    }
    line->tail = cmd;
}

void rsd_line_go_on(Line *line, Ns *ns, bool (*go_on)(Ns *ns, Cmd *cmd))
{
    while (line->head && go_on(ns, line->head)) {
        Cmd *cmd = line->head;

        line->head = cmd->wait_next;
        rsd_cmd_drop(ns->drive, cmd);
    }
}
