/*
 * What commands wait for on drives that map whole blocks: marks of those that it is
 * worth to look at again. block-map.c looks at them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stddef.h>
#include <string.h>

#include "block-map.h"

static uint32_t lblock_of(const BlockMap *map, const Cmd *cmd)
{
    return (cmd->pub.lba + cmd->progress) / map->span;
}

/* What a command that waits, and follows no other one, waits for */
static uint32_t class_of(BlockMap *map, const Cmd *cmd)
{
    if (cmd->pub.op != RSD_WRITE || map->ns->drive->failed) {
        return WAIT_NOTHING;
    }
    if (map->lblocks[lblock_of(map, cmd)].job) {
        return WAIT_JOB;
    }
    return map->policy->class(map, cmd->pub.lba + cmd->progress);
}

static void set_class(BlockMap *map, Cmd *cmd, uint32_t class)
{
    rsd_map_cmd(cmd)->class = class;
    if (class == WAIT_JOB || class == WAIT_PEER) {
        /* It stays in the tree: most come and go several times. */
        rsd_waits_mark(&map->waits, cmd, map->mask);
        return;
    }
    rsd_set_bit(map->mask, class, true);
    rsd_waits_mark(&map->waits, cmd, map->mask);
    rsd_set_bit(map->mask, class, false);
}

/*
 * Of the writes to a logical block that are to be looked at, only the oldest
 * one is, if it will go on or begin a job: the others wait for that.
 */
static bool waits_for_peers(const BlockMap *map)
{
    return !map->policy->linked && !map->ns->drive->failed;
}

void rsd_map_lblock_changed(BlockMap *map, uint32_t lblock)
{
    Cmd *oldest = NULL;

    for (Cmd *cmd = map->lblocks[lblock].waiting; cmd;
         cmd = rsd_map_cmd(cmd)->next) {
        uint32_t class = class_of(map, cmd);
        Cmd *younger = cmd;

        if (class != WAIT_NOTHING || !waits_for_peers(map)) {
            set_class(map, cmd, class);
            continue;
        }
        if (!oldest || cmd->begun < oldest->begun) {
            younger = oldest;
            oldest = cmd;
        }
        if (younger) {
            set_class(map, younger, WAIT_PEER);
        }
    }
    if (oldest) {
        set_class(map, oldest, WAIT_NOTHING);
    }
}

void rsd_map_worth_all(BlockMap *map)
{
    memset(map->worth, 0xff, map->waits.width * sizeof(uint64_t));
}

void rsd_map_group_changed(BlockMap *map, uint32_t group)
{
    if (map->policy->linked) {
        rsd_map_worth_all(map);
    } else {
        rsd_set_bit(map->worth, WAIT_GROUP + 2 * group, true);
    }
}

static void leave_peers(Cmd *cmd)
{
    MapCmd *kept = rsd_map_cmd(cmd);

    if (!kept->peers) {
        return;
    }
    if (kept->prev) {
        rsd_map_cmd(kept->prev)->next = kept->next;
    } else {
        *kept->peers = kept->next;
    }
    if (kept->next) {
        rsd_map_cmd(kept->next)->prev = kept->prev;
    }
    kept->peers = NULL;
}

static void join_peers(BlockMap *map, Cmd *cmd)
{
    Cmd **list = &map->lblocks[lblock_of(map, cmd)].waiting;
    MapCmd *kept = rsd_map_cmd(cmd);

    if (kept->peers == list) {
        return;
    }
    leave_peers(cmd);
    kept->peers = list;
    kept->prev = NULL;
    kept->next = *list;
    if (*list) {
        rsd_map_cmd(*list)->prev = cmd;
    }
    *list = cmd;
}

void rsd_map_placed(BlockMap *map, uint64_t lpn)
{
    Cmd *next = rsd_waits_at(&map->waits, lpn);

    if (next && !next->follows && rsd_map_cmd(next)->peers) {
        set_class(map, next, class_of(map, next));
    }
}

void rsd_map_mark(BlockMap *map, Cmd *cmd)
{
    if (rsd_is_trim(cmd) && !map->ns->drive->failed) {
        rsd_waits_follow_write(&map->waits, cmd);
    }
    if (cmd->follows) {
        rsd_waits_mark(&map->waits, cmd, NULL);
        return;
    }
    if (cmd->pub.op == RSD_WRITE) {
        join_peers(map, cmd);
    }
    set_class(map, cmd, class_of(map, cmd));
}

void rsd_map_mark_all(BlockMap *map)
{
    for (Cmd *cmd = map->waits.head; cmd; cmd = cmd->wait_next) {
        if (!rsd_waits_blocker(&map->waits, cmd)) {
            set_class(map, cmd, WAIT_NOTHING);
        }
    }
    map->all_marked = true;
}

void rsd_map_start_waiting(BlockMap *map, Cmd *cmd, Cmd *behind)
{
    cmd->pending++;
    map->trims += rsd_is_trim(cmd);
    rsd_waits_add_behind(&map->waits, cmd, behind);
    rsd_map_mark(map, cmd);
}

void rsd_map_let_peers_on(BlockMap *map, Cmd **peers, uint32_t class)
{
    if (peers && class == WAIT_NOTHING && waits_for_peers(map)) {
        rsd_map_lblock_changed(map, (LBlock *)((char *)peers -
                               offsetof(LBlock, waiting)) - map->lblocks);
    }
}

void rsd_map_stop_waiting(BlockMap *map, Cmd *cmd)
{
    Cmd **peers = rsd_map_cmd(cmd)->peers;

    leave_peers(cmd);
    rsd_map_let_peers_on(map, peers, rsd_map_cmd(cmd)->class);
    rsd_waits_remove(&map->waits, cmd);
    map->trims -= rsd_is_trim(cmd);
    rsd_cmd_drop(map->ns->drive, cmd);
}
