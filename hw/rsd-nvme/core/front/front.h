/*
 * rsd core, floor of the commands: the controller's processors and the host's
 * link, and what becomes of a command.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_FRONT_H
#define RSD_FRONT_H

#include "../power/power.h"

/* This is the controller: see host.c. */

#define RSD_HOST_LISTS RSD_TIMER_FTL
#define RSD_MAX_CORES 64u

typedef struct HostList {
    Cmd *head, *tail;           /* in order of Cmd.due */
    bool armed;                 /* its timer is set, or just went off */
} HostList;

/* These are a namespace's large trims. */
typedef struct Trims {
    Waits waits;                /* what is left of them, and what that holds */
    Cmd *ready, *last;          /* held no more, by Cmd.done_next */
    bool letting_go;            /* of those */
} Trims;

typedef struct Host {
    bool on;
    /*
     * These are in command.c: a command is to begin, if no trim holds it, or is
     * done.
     */
    void (*hand_over)(RsdDrive *drive, Cmd *cmd);
    void (*complete)(RsdDrive *drive, Cmd *cmd);
    /*
     * This is in command.c: a command begins, and completes with its status if
     * it is refused.
     */
    void (*go_on)(RsdDrive *drive, Cmd *cmd);
    /*
     * This is in command.c: a command begins, or is refused, which changes
     * nothing.
     */
    RsdStatus (*begin)(RsdDrive *drive, Cmd *cmd);
    Trims trims[RSD_MAX_NAMESPACES];
    HostList lists[RSD_HOST_LISTS];
    /* These are the times in ns from which they are free. */
    uint64_t core_free[RSD_MAX_CORES], in_free, out_free;
    uint64_t handed[2];         /* ns: the last command handed over, by class */
    uint64_t last_step;         /* ns: the last one of a large trim */
} Host;

/* host.c */

void rsd_host_init(RsdDrive *drive);
/* A command was submitted. Host.hand_over follows when it is time. */
void rsd_host_enter(RsdDrive *drive, Cmd *cmd);
/*
 * A step of a trim is to follow another one. Host.hand_over follows when it is
 * time.
 */
void rsd_host_step(RsdDrive *drive, Cmd *cmd);
/* It waits for nothing in the flash. Host.complete follows when it is time. */
void rsd_host_leave(RsdDrive *drive, Cmd *cmd);
/* The head of a list is due. */
void rsd_host_event(RsdDrive *drive, uint32_t list);

/* trim.c */

/* This is for opening. */
void rsd_trims_init(RsdDrive *drive);
/* Says whether it is a trim, or the like, that is carried out in steps. */
bool rsd_trim_is_large(const RsdDrive *drive, const Cmd *cmd);
/*
 * Begins such a trim, with "step" as a new command for its steps. Cmd.pending
 * of the trim is counted up until rsd_trim_go_on() has said that it is over.
 * After any result other than RSD_OK, nothing was changed, and the step is the
 * caller's.
 */
RsdStatus rsd_trim_begin(RsdDrive *drive, Cmd *cmd, Cmd *step);
/*
 * A step is handed over, so the rest no longer holds commands that overlap it.
 */
void rsd_trim_step_begins(RsdDrive *drive, Cmd *step);
/*
 * A step is done. True says that the trim is done, too, and the step is the
 * caller's again.
 */
bool rsd_trim_go_on(RsdDrive *drive, Cmd *step);
/*
 * Says whether the command must wait for a large trim. Host.go_on() gets it
 * then.
 */
bool rsd_trim_holds(RsdDrive *drive, Cmd *cmd);
/* A large trim is over, so commands that it alone held go on. */
void rsd_trim_let_go(RsdDrive *drive, uint32_t ns);

/* inject-command.c */

/*
 * A command begins, with the faults of rules. True says that nothing else
 * follows, and its status is *status. Its data or its address may be changed
 * afterwards.
 */
bool rsd_inject_command(RsdDrive *drive, Cmd *cmd, RsdStatus *status);

/* command.c */

/* This is for opening, after rsd_host_init(). */
void rsd_cmds_start(RsdDrive *drive);
/*
 * This is for stopping: commands in flight wait for nothing any more, and those
 * of them that were detached are freed.
 */
void rsd_cmds_stop(RsdDrive *drive);
/* Frees all commands that exist. */
void rsd_cmds_fini(RsdDrive *drive);
/* This is ArrayUp.cmd_done. */
void rsd_cmd_done(RsdDrive *drive, Cmd *cmd);

#endif
