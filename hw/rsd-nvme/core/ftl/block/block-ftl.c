/*
 * The block-mapping personality, as it is compared with in REDO section 3
 * (F2FS+BFTL): the map has an entry a logical block, and a page's place in its
 * flash block is fixed by its offset. The paper says no more; the rest is the
 * classic scheme with one replacement block (Ban, US patent 5,404,485; NFTL),
 * on flash that has its pages programmed in order.
 *
 * A logical block has a data block, and while it is being overwritten a
 * replacement block. In both page i is at offset i.
 *
 *   write at the data block's next page      is programmed there.
 *   write behind it                          what is between is filler, for it
 *                                            was never written.
 *   write before it                          a replacement block is opened. The
 *                                            pages before the written one are
 *                                            copied to it, then that one is
 *                                            programmed.
 *   the same, with a replacement block:
 *   at its next page                         is programmed there.
 *   behind it                                what is between is copied.
 *   before it                                the blocks are merged, and it is a
 *                                            write before the next page of the
 *                                            data block.
 *
 * Merge: what the data block has behind the replacement block's last page is
 * copied; then that is the data block, and the other one is erased. Pages that
 * were trimmed or never written are not copied: behind the last one that has
 * content nothing is programmed, before it filler. A merge is
 *
 *   switch   if nothing was ever copied to the replacement block
 *   partial  if it began with the host's pages alone, and the rest was copied
 *   full     if something was copied before a page of the host
 *
 * A replacement block that is full is merged at once. With
 * replacement-blocks=off, each is, as soon as a command has its pages in it:
 * a plain block map copies a block to overwrite a page of it. If a die has no
 * erased block for a new one, the replacement block that was opened there
 * first is merged. A logical block of which nothing is left (trim) has no
 * block.
 *
 * So each die needs a block more than its logical blocks. Recovery: see
 * block-recover.c.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "block-map.h"


/* Completes a replacement block and puts it in the place of the data block. */
static RsdStatus merge(BlockMap *map, uint32_t lblock)
{
    return rsd_merge(map, lblock, map->lblocks[lblock].log,
                     rsd_map_length(map, lblock), RSD_JOB_LOG);
}

static void job_done(BlockMap *map, Job *job)
{
    RsdCounters *count = map->ns->drive->count;
    LBlock *lb = &map->lblocks[job->lblock];

    if (job->kind == RSD_JOB_FILL) {
        job->to->gaps |= job->copies > 0;
        return;
    }
    if (lb->log->gaps) {
        count->merge_full++;
    } else if (job->copies) {
        count->merge_partial++;
    } else {
        count->merge_switch++;
    }
    rsd_list_remove(&map->groups[rsd_map_group(map, job->lblock)].logs,
                    lb->log);
    if (lb->data) {
        rsd_unit_retire(map, lb->data, RSD_CAUSE_MERGE);
    }
    lb->data = lb->log;
    lb->data->gaps = false;
    lb->log = NULL;
}

static void log_dropped(BlockMap *map, Unit *log)
{
    rsd_list_remove(&map->groups[rsd_map_group(map, log->lblock)].logs, log);
}

/*
 * Returns a unit for a logical block. NULL says that the command has to wait,
 * or has failed, as its status says.
 */
static Unit *take_unit(BlockMap *map, Cmd *cmd, uint32_t lblock)
{
    Group *group = &map->groups[rsd_map_group(map, lblock)];
    RsdStatus status;
    bool wait;
    Unit *unit = rsd_unit_take(map, rsd_map_group(map, lblock), lblock, false,
                               &status, &wait);

    if (!unit && status == RSD_E_NOBLOCK && !wait && !group->merges) {
        Unit *old = group->logs.oldest;

        while (old && map->lblocks[old->lblock].job) {
            old = old->newer;
        }
        if (old) {
            status = merge(map, old->lblock);
        } else {
            wait = group->jobs;
        }
    }
    if (!unit && !wait && !group->merges) {
        rsd_map_refuse(map, cmd, status);
    }
    return unit;
}

static uint32_t block_write(BlockMap *map, Cmd *cmd, uint32_t index,
                            uint64_t lpn, uint32_t n)
{
    uint32_t lblock = lpn / map->span, page = lpn % map->span;
    LBlock *lb = &map->lblocks[lblock];
    Unit *to = lb->log ? lb->log : lb->data;

    if (lb->job) {
        return 0;
    }
    if (to && to == lb->log && page < to->next) {
        rsd_map_refuse(map, cmd, merge(map, lblock));
        return 0;
    }
    if (!to || page < to->next) {
        to = take_unit(map, cmd, lblock);
        if (!to) {
            return 0;
        }
        if (lb->data) {
            lb->log = to;
            rsd_list_append(&map->groups[rsd_map_group(map, lblock)].logs, to);
        } else {
            lb->data = to;
        }
        if (page == to->next) {
            rsd_map_lblock_changed(map, lblock);
        }
    }
    if (page > to->next) {
        RsdStatus status = rsd_merge(map, lblock, to, page, RSD_JOB_FILL);

        rsd_map_refuse(map, cmd, status);
        if (status != RSD_OK) {
            rsd_map_lblock_changed(map, lblock);
        }
        return 0;
    }
    rsd_unit_append(map, to, cmd, index, lpn, n);
    if (to == lb->log &&
        (to->next == map->span ||
         map->ns->drive->cfg.replacement_blocks == RSD_OFF)) {
        /*
         * Without memory for it, it is merged when another block needs its
         * place.
         */
        merge(map, lblock);
    }
    return n;
}

static uint32_t class(BlockMap *map, uint64_t lpn)
{
    uint32_t lblock = lpn / map->span;
    const LBlock *lb = &map->lblocks[lblock];

    return lb->log || (lb->data && lpn % map->span >= lb->data->next)
           ? WAIT_NOTHING : WAIT_GROUP + 2 * rsd_map_group(map, lblock);
}

static const BlockPolicy block_policy = {
    .write = block_write,
    .class = class,
    .job_done = job_done,
    .log_dropped = log_dropped,
    .settle = merge,
    .extra = 1,
};

static bool block_geometry(Ns *ns, char err[RSD_ERR_LEN])
{
    if (!rsd_map_geometry(ns, &block_policy, err)) {
        return false;
    }
    /* REDO table 2 and RISA table 2 have 4 bytes for each flash block. */
    ns->geo.map_bytes = UINT64_C(4) * ns->drive->dies * ns->visible;
    return true;
}

static bool block_open(Ns *ns, char err[RSD_ERR_LEN])
{
    BlockMap *map = rsd_alloc(ns->drive, sizeof(*map));

    ns->state = map;
    if (!map) {
        rsd_set_error(err, "no memory for a map");
        return false;
    }
    return rsd_map_init(map, ns, &block_policy, err) &&
           rsd_map_recover(map, NULL, err);
}

static void block_close(Ns *ns)
{
    if (ns->state) {
        rsd_map_fini(ns->state);
        rsd_release(ns->drive, ns->state, sizeof(BlockMap));
        ns->state = NULL;
    }
}

const Personality rsd_ftl_block = {
    .geometry = block_geometry,
    .open = block_open,
    .close = block_close,
    .can_tear = rsd_map_can_tear,
    RSD_MAP_CALLBACKS,
};
