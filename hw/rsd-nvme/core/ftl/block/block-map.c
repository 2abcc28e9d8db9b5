/*
 * What the personalities that map whole blocks share: commands, trim, and what
 * follows when operations of the flash are done.
 *
 * Order. Commands that overlap take effect in the order of submission: a
 * command waits if it overlaps one that waits, and otherwise goes on as soon as
 * it can, in parallel with those that wait for other logical blocks.
 *
 * Survival of SIGKILL. Trim sets an LBA's bit in the
 * file, which says that it has no content whatever pages there are; a program
 * of that LBA clears it. So that this cannot be one of before the trim, a trim
 * waits until the writes that it overlaps are done.
 *
 * With a write buffer a write is done, too, when it is safe there, and a trim
 * tells apart what the buffer has of before it. A unit is erased when what
 * replaces its content is programmed, or safe in the buffer; what the buffer
 * has of the unit itself is dropped then.
 *
 * If the host's disk fails (RsdDrive.failed), no merge is completed any more
 * and nothing erased: a copy that failed is read where it was, and of a write
 * that failed, what was there before is found again when the drive is opened;
 * until then it cannot be read.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "block-map.h"

/* Checks whether the group has fewer good units than it takes to go on. */
static void look_at_group(BlockMap *map, uint32_t g)
{
    Group *group = &map->groups[g];

    group->good = rsd_map_good_units(map->ns, g, false);
    if (group->good < group->logical + map->policy->extra) {
        rsd_drive_wear_out(map->ns->drive);
    }
}

static void erase_done(BlockMap *map, const Op *op)
{
    uint32_t block = op->block;
    const RsdDrive *drive = map->ns->drive;
    Group *group = &map->groups[block / drive->die_blocks / map->lanes];

    group->erasing--;
    if (rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_BAD) {
        look_at_group(map, group - map->groups);
        map->retry = true;      /* what waits for it waits in vain */
        rsd_map_group_changed(map, group - map->groups);
        return;
    }
    rsd_map_make_free(map, block);
    if (op->cause != RSD_CAUSE_WEAR && !drive->failed) {
        rsd_wear_level(map, block);
    }
}

static void read_pages(BlockMap *map, Cmd *cmd)
{
    RsdCmd *pub = &cmd->pub;
    uint32_t index = 0;

    while (index < pub->nlb) {
        Place first = rsd_map_find(map, pub->lba + index);
        uint32_t n = 1;

        if (first.block == RSD_NONE) {
            cmd->unwritten++;
            if (pub->data) {
                memset(pub->data + (size_t)index * RSD_PAGE_SIZE, 0,
                       RSD_PAGE_SIZE);
            }
            if (pub->oob) {
                memset(pub->oob + (size_t)index * cmd->oob_len, 0,
                       cmd->oob_len);
            }
            index++;
            continue;
        }
        while (index + n < pub->nlb) {
            Place next = rsd_map_find(map, pub->lba + index + n);

            if (next.block != first.block || next.page != first.page + n) {
                break;
            }
            n++;
        }
        rsd_queue_read(map->ns, cmd, index, first.block, first.page, n);
        index += n;
    }
}

static void trim(BlockMap *map, uint64_t lpn, uint64_t n)
{
    uint64_t end = lpn + n;

    rsd_buffer_trim(map->ns, lpn, n);
    /*
     * This takes time only for pages with content, however many others there
     * are.
     */
    while (lpn < end && map->live) {
        uint32_t lblock = lpn / map->span;
        LBlock *lb = &map->lblocks[lblock];
        uint64_t stop = (uint64_t)(lblock + 1) * map->span;

        if (!lb->live) {
            lpn = stop;
            continue;
        }
        for (stop = stop < end ? stop : end; lpn < stop; lpn++) {
            if (!rsd_get_bit(map->valid, lpn)) {
                continue;
            }
            rsd_map_set_trimmed(map, lpn, true);
            if (map->policy->forget) {
                map->policy->forget(map, lpn);
            }
            rsd_set_bit(map->valid, lpn, false);
            lb->live--;
            map->live--;
        }
        rsd_map_drop_if_empty(map, lblock);
    }
}

void rsd_map_refuse(BlockMap *map, Cmd *cmd, RsdStatus status)
{
    if (status == RSD_E_NOBLOCK) {
        status = rsd_drive_no_block(map->ns->drive);
    }
    if (cmd->pub.status == RSD_OK) {
        cmd->pub.status = status;
    }
}

/* Gives a failed command up: it does not wait for its parts of begun grains. */
static void give_up(BlockMap *map, Cmd *cmd)
{
    if (rsd_buffered(map->ns->drive)) {
        rsd_buffer_give_up(map->ns->drive, cmd);
    }
}

/*
 * Queues pages of a write, of one logical block and of at most "here". Returns
 * their number.
 */
static uint32_t write_piece(BlockMap *map, Cmd *cmd, uint64_t lpn,
                            uint32_t here)
{
    RsdDrive *drive = map->ns->drive;
    uint32_t left = cmd->pub.nlb - cmd->progress;
    uint32_t n = left < here ? left : here;
    RsdStatus status = rsd_buffer_reserve(drive, n / map->grain + 2);

    if (!rsd_op_reserve(drive, n)) {
        status = RSD_E_NOMEM;
    }
    if (status != RSD_OK) {
        cmd->pub.status = status;
        return 0;
    }
    return map->policy->write(map, cmd, cmd->progress, lpn, n);
}

/*
 * Does the command, or the rest of it. Returns false if it has to wait. An
 * error is in its status.
 */
static bool attempt(BlockMap *map, Cmd *cmd)
{
    RsdCmd *pub = &cmd->pub;

    if (pub->op == RSD_FLUSH) {
        return true;            /* nothing is held back */
    }
    if (map->ns->drive->failed && pub->op != RSD_READ) {
        rsd_map_refuse(map, cmd, RSD_E_READONLY);
        give_up(map, cmd);
        return true;
    }
    if (rsd_is_trim(cmd)) {
        if (rsd_write_in_flight(map->ns, cmd)) {
            return false;
        }
        trim(map, pub->lba, pub->nlb);
        return true;
    }
    if (pub->op == RSD_READ) {
        if (rsd_op_reserve(map->ns->drive, pub->nlb)) {
            read_pages(map, cmd);
        } else {
            pub->status = RSD_E_NOMEM;
        }
        return true;
    }
    if (!cmd->progress) {
        rsd_map_cmd(cmd)->era = map->era;
    }
    while (cmd->progress < pub->nlb && pub->status == RSD_OK) {
        uint64_t lpn = pub->lba + cmd->progress;
        uint32_t n = write_piece(map, cmd, lpn, map->span - lpn % map->span);

        if (!n && pub->status == RSD_OK) {
            return false;
        }
        cmd->progress += n;
    }
    if (pub->status != RSD_OK) {
        give_up(map, cmd);
    }
    return true;
}

/*
 * Commands that wait
 */

static void freed(Ns *ns, Cmd *cmd)
{
    rsd_map_mark(ns->state, cmd);
}

/* Lets a command go on. If that changes nothing, it need not be tried again. */
static void look_at(BlockMap *map, Cmd *cmd)
{
    uint32_t class = rsd_map_cmd(cmd)->class, progress = cmd->progress;
    Cmd **peers = rsd_map_cmd(cmd)->peers;
    bool done;

    rsd_set_bit(map->worth, class, class == WAIT_NOTHING);
    done = attempt(map, cmd);
    if (done || cmd->progress != progress) {
        rsd_set_bit(map->worth, class, true);
    }
    if (map->policy->linked && done && cmd->pub.op != RSD_READ) {
        rsd_map_worth_all(map);         /* a trim may have emptied a log block */
    }
    if (done) {
        rsd_map_stop_waiting(map, cmd);
        return;
    }
    if (cmd->progress != progress) {
        rsd_waits_went_on(&map->waits, cmd);
    }
    class = rsd_map_cmd(cmd)->class;
    rsd_map_mark(map, cmd);
    /* The functions that begin or end a job have looked at them. */
    if (cmd->progress != progress ||
        (rsd_map_cmd(cmd)->class != class &&
         rsd_map_cmd(cmd)->class != WAIT_JOB)) {
        rsd_map_let_peers_on(map, peers, class);
    }
}

/* Lets commands that wait go on as far as they can. */
static void attempt_waiting(BlockMap *map)
{
    while (map->retry) {
        uint64_t from = 0;
        Cmd *cmd;

        map->retry = false;
        if (map->policy->linked) {
            rsd_map_worth_all(map);
        }
        if (map->ns->drive->failed && !map->all_marked) {
            rsd_map_mark_all(map);
        }
        while ((cmd = rsd_waits_next(&map->waits, from, map->worth))) {
            from = cmd->begun + 1;
            look_at(map, cmd);
        }
    }
}

/* Says whether something is going on that a command may wait for. */
static bool busy(const BlockMap *map)
{
    for (uint32_t g = 0; g < map->num_groups; g++) {
        if (map->groups[g].erasing) {
            return true;
        }
    }
    return map->era_ops[0] || map->era_ops[1] || rsd_merge_running(map) ||
           rsd_buffer_busy(map->ns);
}

static void retry_waiting(BlockMap *map)
{
    bool failed = map->ns->drive->failed;

    if (map->num_stalled && !failed) {
        rsd_merge_retry(map);
    }
    attempt_waiting(map);
    /* They wait for merges that the host has no space or memory for. */
    while (map->num_stalled && !failed && map->waits.head && !busy(map)) {
        Cmd *cmd = map->waits.head;

        rsd_map_refuse(map, cmd, map->stalled);
        give_up(map, cmd);
        rsd_map_stop_waiting(map, cmd);
        map->retry = true;
        attempt_waiting(map);
    }
}

static RsdStatus submit(BlockMap *map, Cmd *cmd)
{
    Cmd *behind;

    if (!rsd_waits_reserve(&map->waits)) {
        return RSD_E_NOMEM;
    }
    cmd->progress = 0;
    behind = cmd->pub.op == RSD_FLUSH ? NULL
                                      : rsd_waits_blocker(&map->waits, cmd);
    if (behind || !attempt(map, cmd)) {
        rsd_map_start_waiting(map, cmd, behind);
    } else if (cmd->pub.status != RSD_OK && !cmd->progress) {
        return cmd->pub.status;
    }
    retry_waiting(map);
    return RSD_OK;
}

RsdStatus rsd_map_submit(Ns *ns, Cmd *cmd)
{
    BlockMap *map = ns->state;
    bool held = rsd_buffer_hold(map->ns->drive);
    RsdStatus status = submit(map, cmd);

    rsd_buffer_go_on(map->ns->drive, held);
    return status;
}

/*
 * A page of the host is safe, so it is the content, whatever was trimmed
 * before.
 */
void rsd_map_kept(Ns *ns, uint64_t lba)
{
    BlockMap *map = ns->state;

    if (rsd_map_trimmed(map, lba)) {
        rsd_map_set_trimmed(map, lba, false);
    }
}

/* A program of the host is done, or the write buffer has it. */
static void host_program_done(BlockMap *map, const Op *op)
{
    Unit *unit = map->owner[op->block];
    uint64_t lpn = op->cmd->pub.lba + op->index;
    const RsdDrive *drive = map->ns->drive;

    if (!op->failed && (!rsd_buffered(drive) || drive->cfg.plp)) {
        rsd_map_kept(map->ns, lpn);
    }
    map->retry |= map->trims > 0;
    if (!--map->era_ops[rsd_map_cmd(op->cmd)->era]) {
        map->retry = true;
    }
    if (--unit->pending) {
        return;
    }
    if (unit->retired) {
        rsd_list_remove(&map->retired, unit);
        map->groups[unit->group].erasing--;
        rsd_unit_release(map, unit);
    } else if (unit->lblock != RSD_NONE) {
        rsd_merge_check(map, unit->lblock);
    }
}

/* A grain was programmed. */
static void grain_done(BlockMap *map, const Op *op)
{
    const Unit *unit = map->owner[op->block];

    map->retry = true;          /* what waits until it is safe, or for room */
    if (unit && unit->lblock != RSD_NONE) {
        rsd_merge_check(map, unit->lblock);
    }
}

void rsd_map_op_buffered(Ns *ns, Op *op)
{
    BlockMap *map = ns->state;

    map->retry |= map->ns->drive->failed;
    if (op->cmd) {
        host_program_done(map, op);
        rsd_op_finish(map->ns->drive, op);
    } else {
        rsd_merge_step(map, op);
    }
    retry_waiting(map);
}

static void op_done(BlockMap *map, Op *op)
{
    /* Commands that wait do so in vain. */
    map->retry |= map->ns->drive->failed;
    if (op->unit) {
        grain_done(map, op);
        rsd_op_finish(map->ns->drive, op);
    } else if (op->kind != OP_ERASE && !op->cmd) {
        rsd_merge_step(map, op);
    } else {
        if (op->kind == OP_ERASE) {
            erase_done(map, op);
        } else if (op->kind == OP_PROGRAM) {
            host_program_done(map, op);
        }
        rsd_op_finish(map->ns->drive, op);
    }
    retry_waiting(map);
}

void rsd_map_op_done(Ns *ns, Op *op)
{
    BlockMap *map = ns->state;
    bool held = rsd_buffer_hold(map->ns->drive);

    op_done(map, op);
    rsd_buffer_go_on(map->ns->drive, held);
}

void rsd_map_format(Ns *ns)
{
    BlockMap *map = ns->state;
    bool held = rsd_buffer_hold(map->ns->drive);

    trim(map, 0, map->ns->geo.lbas);
    rsd_buffer_go_on(map->ns->drive, held);
}

/* Everything of a job is copied and programmed. */
static void job_over(BlockMap *map, Job *job)
{
    uint32_t lblock = job->lblock, group = rsd_map_group(map, lblock);
    bool merge = job->kind != RSD_JOB_FILL;

    if (job->kind == RSD_JOB_WEAR) {
        rsd_wear_done(map, job);
    } else {
        map->policy->job_done(map, job);
    }
    rsd_merge_free(map, job);
    if (merge) {
        rsd_map_drop_if_empty(map, lblock);
    }
    map->retry = true;
    rsd_map_lblock_changed(map, lblock);
    rsd_map_group_changed(map, group);
    if (merge) {
        rsd_wear_go_on(map, group);
    }
}

/*
 * Memory
 */

static size_t bitmap_size(const Ns *ns)
{
    return rsd_div_round_up(ns->geo.lbas, 64) * sizeof(uint64_t);
}

static size_t owner_size(const RsdDrive *drive)
{
    return (size_t)drive->dies * drive->die_blocks * sizeof(Unit *);
}

static size_t mask_size(const BlockMap *map)
{
    return map->waits.width * sizeof(uint64_t);
}

bool rsd_map_init(BlockMap *map, Ns *ns, const BlockPolicy *policy,
                  char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;

    map->ns = ns;
    map->policy = policy;
    map->job_over = job_over;
    map->waits = (Waits){
        .ns = ns, .freed = freed, .rest_counts = true,
        .width = rsd_div_round_up(WAIT_GROUP + 2 * rsd_map_groups(ns), 64),
    };
    ns->waits = &map->waits;
    map->span = rsd_map_span(ns);
    map->lanes = map->span / drive->pages;
    map->grain = drive->unit;
    map->num_groups = rsd_map_groups(ns);
    map->num_lblocks = ns->geo.lbas / map->span;
    map->groups = rsd_alloc(drive, map->num_groups * sizeof(Group));
    map->lblocks = rsd_alloc(drive, map->num_lblocks * sizeof(LBlock));
    map->pools = rsd_alloc(drive, drive->dies * sizeof(Pool));
    map->owner = rsd_alloc(drive, owner_size(drive));
    map->valid = rsd_alloc(drive, bitmap_size(ns));
    map->least_wear = rsd_alloc(drive, drive->dies * sizeof(uint32_t));
    map->worth = rsd_alloc(drive, mask_size(map));
    map->mask = rsd_alloc(drive, mask_size(map));
    if (map->worth && map->mask && map->groups && map->lblocks &&
        map->pools && map->owner && map->valid && map->least_wear) {
        uint32_t d = 0;

        while (d < drive->dies && rsd_pool_init(ns, &map->pools[d])) {
            d++;
        }
        if (d == drive->dies) {
            for (uint32_t g = 0; g < map->num_groups; g++) {
                map->groups[g].logical = rsd_map_logical(ns, g);
                look_at_group(map, g);
            }
            rsd_map_worth_all(map);
            return true;
        }
    }
    rsd_set_error(err, "no memory for the map of %u logical blocks: choose "
                  "fewer blocks of more pages", map->num_lblocks);
    return false;
}

void rsd_map_fini(BlockMap *map)
{
    RsdDrive *drive = map->ns->drive;

    for (uint32_t l = 0; map->lblocks && l < map->num_lblocks; l++) {
        LBlock *lb = &map->lblocks[l];

        if (lb->job && lb->job->to != lb->data && lb->job->to != lb->log) {
            rsd_unit_free(map, lb->job->to);
        }
        rsd_unit_free(map, lb->data);
        rsd_unit_free(map, lb->log);
    }
    while (map->retired.oldest) {
        Unit *unit = map->retired.oldest;

        rsd_list_remove(&map->retired, unit);
        rsd_unit_free(map, unit);
    }
    rsd_merge_fini(map);
    for (uint32_t d = 0; map->pools && d < drive->dies; d++) {
        rsd_pool_fini(drive, &map->pools[d]);
    }
    rsd_release(drive, map->groups, map->num_groups * sizeof(Group));
    rsd_release(drive, map->lblocks, map->num_lblocks * sizeof(LBlock));
    rsd_release(drive, map->pools, drive->dies * sizeof(Pool));
    rsd_release(drive, map->owner, owner_size(drive));
    rsd_release(drive, map->valid, bitmap_size(map->ns));
    rsd_release(drive, map->least_wear, drive->dies * sizeof(uint32_t));
    rsd_release(drive, map->worth, mask_size(map));
    rsd_release(drive, map->mask, mask_size(map));
    rsd_waits_fini(&map->waits);
}
