/*
 * rsd core, floor of the commands: the controller's processors and the host's
 * link, and what becomes of a command.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_FRONT_H
#define RSD_FRONT_H

#include "../power/power.h"

/*
 * The controller: see host.c.
 */

#define RSD_HOST_LISTS RSD_TIMER_FTL
#define RSD_MAX_CORES 64u

typedef struct HostList {
    Cmd *head, *tail;           /* in order of Cmd.due */
} HostList;

typedef struct Host {
    bool on;
    /* command.c: it is to be begun; it is done */
    void (*hand_over)(RsdDrive *drive, Cmd *cmd);
    void (*complete)(RsdDrive *drive, Cmd *cmd);
    HostList lists[RSD_HOST_LISTS];
    /* ns: from when on they are free */
    uint64_t core_free[RSD_MAX_CORES], in_free, out_free;
    uint64_t handed[2];         /* ns: the last command handed over, by class */
} Host;

/* host.c */

void rsd_host_init(RsdDrive *drive);
/* A command was submitted: Host.hand_over when it is time. */
void rsd_host_enter(RsdDrive *drive, Cmd *cmd);
/* It waits for nothing in the flash: Host.complete when it is time. */
void rsd_host_leave(RsdDrive *drive, Cmd *cmd);
/* The head of a list is due. */
void rsd_host_event(RsdDrive *drive, uint32_t list);

/* inject-command.c */

/*
 * A command begins: what rules say of it happens. True: that is all, and its
 * status is *status. Its data or its address may be others afterwards.
 */
bool rsd_inject_command(RsdDrive *drive, Cmd *cmd, RsdStatus *status);

/* command.c */

/* For opening, after rsd_host_init() */
void rsd_cmds_start(RsdDrive *drive);
/*
 * For stopping: those in flight wait for nothing any more, and those of them
 * that were detached are freed.
 */
void rsd_cmds_stop(RsdDrive *drive);
/* Frees all that exist. */
void rsd_cmds_fini(RsdDrive *drive);
/* ArrayUp.cmd_done */
void rsd_cmd_done(RsdDrive *drive, Cmd *cmd);

#endif
