/*
 * Between host and flash: the controller's processors and the link.
 *
 * A command goes through stages; each is there only if its times are not 0, and
 * without any of them a command takes effect when it is submitted.
 *
 *     processor   the cores serve one FIFO; a command occupies a core for
 *                 t-fw-read, -write (also write zeroes, trim, flush), -append
 *                 or -zone (reset, finish, random write areas), and t-fw-page
 *                 for each of its pages (of reads and writes). Of free cores
 *                 the lowest takes it.
 *     link in     writes: t-link for each page, in order of submission
 *     hand over   to the personality: reads in order of submission, everything
 *                 else in order of submission; a read and a write may overtake
 *                 each other. What is refused now completes with its status.
 *     flash       and the write buffer
 *     link out    reads: t-link for each page, in order of arrival
 *     latency     t-lat-read, t-lat-write (also write zeroes) or t-lat-zone:
 *                 time that nothing else waits for
 *
 * Each step of a large trim but the first (trim.c) takes a core's t-fw-write
 * again, behind what came to the processor meanwhile. No two of them happen at
 * the same nanosecond, nor one at that in which the step before it was done.
 *
 * The link has a pipe of its own for each direction, and carries a command's
 * data in one go. Latencies are constants, so that each list below is in order
 * of time: it needs one event, that of its head.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "front.h"

/* These are lists of commands, and sources of events. */
enum {
    ENTERING_READS, ENTERING_OTHERS, STEPPING,
    LEAVING_READS, LEAVING_WRITES, LEAVING_ZONES,
};

_Static_assert(LEAVING_ZONES + 1 == RSD_HOST_LISTS, "lists have a source each");

void rsd_host_init(RsdDrive *drive)
{
    const RsdConfig *cfg = &drive->cfg;

    drive->host->on = cfg->t_fw_read_ns || cfg->t_fw_write_ns ||
                     cfg->t_fw_append_ns || cfg->t_fw_zone_ns ||
                     cfg->t_fw_page_ns || cfg->t_link_ns ||
                     cfg->t_lat_read_ns || cfg->t_lat_write_ns ||
                     cfg->t_lat_zone_ns;
}

static bool has_data(const RsdCmd *cmd)
{
    return cmd->op == RSD_READ || cmd->op == RSD_WRITE;
}

/* Returns how long a core works on it. */
static uint64_t firmware_time(const RsdConfig *cfg, const RsdCmd *cmd)
{
    uint64_t pages = has_data(cmd) ? cmd->nlb * cfg->t_fw_page_ns : 0;

    switch (cmd->op) {
    case RSD_READ:
        return cfg->t_fw_read_ns + pages;
    case RSD_WRITE:
        return (cmd->append ? cfg->t_fw_append_ns : cfg->t_fw_write_ns) +
               pages;
    case RSD_ZONE_RESET:
    case RSD_ZONE_FINISH:
    case RSD_ZRWA_OPEN:
    case RSD_ZRWA_COMMIT:
        return cfg->t_fw_zone_ns;
    case RSD_WRITE_ZEROES:
    case RSD_TRIM:
    case RSD_FLUSH:
        break;
    }
    return cfg->t_fw_write_ns;
}

/*
 * Makes a resource that is free at *free_at work from "from", and returns the
 * end.
 */
static uint64_t use(uint64_t *free_at, uint64_t from, uint64_t time)
{
    *free_at = (from > *free_at ? from : *free_at) + time;
    return *free_at;
}

/*
 * Adds a command to a list, due at a time not before that of those in the list.
 */
static void wait_until(RsdDrive *drive, uint32_t list, Cmd *cmd, uint64_t due)
{
    HostList *l = &drive->host->lists[list];

    cmd->due = due;
    cmd->done_next = NULL;
    if (l->head) {
        l->tail->done_next = cmd;
    } else {
        l->head = cmd;
    }
    l->tail = cmd;
    if (!l->armed) {
        l->armed = true;
        rsd_sched_timer(drive, list, due);
    }
}

/* Lets the core that is free first work, and returns the end. */
static uint64_t use_core(RsdDrive *drive, uint64_t time)
{
    Host *host = drive->host;
    uint64_t *core = &host->core_free[0];

    for (uint32_t i = 1; i < drive->cfg.cores; i++) {
        if (host->core_free[i] < *core && *core > drive->sched.now) {
            core = &host->core_free[i];
        }
    }
    return use(core, drive->sched.now, time);
}

void rsd_host_enter(RsdDrive *drive, Cmd *cmd)
{
    const RsdConfig *cfg = &drive->cfg;
    Host *host = drive->host;
    uint32_t list = cmd->pub.op == RSD_READ ? ENTERING_READS
                                            : ENTERING_OTHERS;
    uint64_t due = use_core(drive, firmware_time(cfg, &cmd->pub));

    if (cmd->pub.op == RSD_WRITE) {
        due = use(&host->in_free, due, cmd->pub.nlb * cfg->t_link_ns);
    }
    /* It is not due before those of its class that came before it. */
    due = use(&host->handed[list], due, 0);
    wait_until(drive, list, cmd, due);
}

void rsd_host_step(RsdDrive *drive, Cmd *cmd)
{
    uint64_t *last = &drive->host->last_step;
    uint64_t due = use_core(drive, firmware_time(&drive->cfg, &cmd->pub));

    if (*last < drive->sched.now) {
        *last = drive->sched.now;
    }
    *last = due > *last ? due : *last + 1;
    wait_until(drive, STEPPING, cmd, *last);
}

void rsd_host_leave(RsdDrive *drive, Cmd *cmd)
{
    const RsdConfig *cfg = &drive->cfg;
    uint64_t due = drive->sched.now;
    uint32_t list = LEAVING_WRITES;

    switch (cmd->pub.op) {
    case RSD_READ:
        list = LEAVING_READS;
        due = use(&drive->host->out_free, due,
                  cmd->pub.nlb * cfg->t_link_ns) + cfg->t_lat_read_ns;
        break;
    case RSD_WRITE:
    case RSD_WRITE_ZEROES:
        due += cfg->t_lat_write_ns;
        break;
    case RSD_ZONE_RESET:
    case RSD_ZONE_FINISH:
    case RSD_ZRWA_OPEN:
    case RSD_ZRWA_COMMIT:
        list = LEAVING_ZONES;
        due += cfg->t_lat_zone_ns;
        break;
    case RSD_TRIM:
    case RSD_FLUSH:
        break;
    }
    if (due == drive->sched.now) {
        drive->host->complete(drive, cmd);
    } else {
        wait_until(drive, list, cmd, due);
    }
}

void rsd_host_event(RsdDrive *drive, uint32_t list)
{
    HostList *l = &drive->host->lists[list];

    while (l->head && l->head->due <= drive->sched.now) {
        Cmd *cmd = l->head;

        l->head = cmd->done_next;
        if (list >= LEAVING_READS) {
            drive->host->complete(drive, cmd);
        } else {
            drive->host->hand_over(drive, cmd);
        }
    }
    l->armed = l->head;
    if (l->armed) {
        rsd_sched_timer(drive, list, l->head->due);
    }
}

uint32_t rsd_zone_waiting(const RsdDrive *drive, uint32_t zone)
{
    uint32_t ops = 0;

    for (const Cmd *cmd = drive->host->lists[ENTERING_OTHERS].head; cmd;
         cmd = cmd->done_next) {
        if (cmd->pub.ns == drive->zoned->index && cmd->pub.op != RSD_FLUSH &&
            cmd->pub.lba >> drive->zoned->zone_shift == zone) {
            ops |= 1u << cmd->pub.op;
        }
    }
    return ops;
}
