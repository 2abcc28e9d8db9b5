/*
 * What the drive does by itself: erasure in idle time, and wear levelling.
 *
 *   wear          if a die's erase counts differ by more than wl-threshold,
 *                 and idle erasure has nothing left to do: let S be the least
 *                 worn block that a segment filled, T the most worn free block
 *                 (an obsolete one counts one erase more). If T's count exceeds
 *                 S's by more than the threshold, S is copied to T, page by
 *                 page, and the map entry is switched. Cold data then rests on
 *                 the worn block. It is given up if the zone is reset, or if T
 *                 is the last free block and a write needs it.
 *   wear, busy    A die that has other work does the same, if wl-share is not
 *                 0 and it has another free block than T. It looks for S and
 *                 T whenever an operation on it is done that programs for
 *                 somebody else. Neither has an erase queued, unless T needs
 *                 one more; queued erases count. The erase of T, if it needs
 *                 one, is queued at once. Since the move began, levelling has
 *                 programmed on a busy die at most wl-share percent of what
 *                 others have there: when a unit more
 *                 is within that, its rows are read and then it is programmed,
 *                 one operation after the other, each before all that waits
 *                 for the die; so is the erase, unless operations on T wait.
 *                 The share that a move leaves over lapses. A move goes on by
 *                 either rule, whoever began it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "zone.h"

/* A block has died by its erase: it is no longer part of anything. */
static void bury(RsdDrive *drive, uint32_t block)
{
    Block *b = &drive->blocks[block];
    SegDie *sd = seg_die(drive, block);

    b->erases--;
    if (b->pos != RSD_NONE) {
        rsd_pool_remove(drive, &sd->pool, block);
        if (b->owner != RSD_NONE) {
            rsd_seg_clear_entry(drive, b->owner);
            b->owner = RSD_NONE;
        }
    }
    rsd_media_release(&drive->media, block);
    rsd_wear_measure(drive->zoned, block / drive->die_blocks, &sd->wear);
    sd->look = true;
}

static void erase_done(RsdDrive *drive, uint32_t block)
{
    Block *b = &drive->blocks[block];
    SegDie *sd = seg_die(drive, block);

    if (rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_BAD) {
        bury(drive, block);
        return;
    }
    if (b->pos != RSD_NONE && !b->obsolete && b->erases == 1) {
        /* no program of it is to come soon */
        rsd_media_release(&drive->media, block);
    }
    b->erases--;
    if (!b->erases && !b->obsolete) {
        rsd_nand_mark(&drive->media, block, 0);
        if (b->pos != RSD_NONE && b->owner != RSD_NONE) {
            rsd_seg_clear_entry(drive, b->owner);
            b->owner = RSD_NONE;
        }
    }
    if (b->pos != RSD_NONE) {
        rsd_pool_update(drive, &sd->pool, block);
    }
    rsd_wear_erased(drive->zoned, block, &sd->wear);
    sd->look = true;
}

/* Is the difference large enough to look for a move? */
static bool worth_a_look(const RsdDrive *drive, const SegDie *sd)
{
    return sd->look && drive->cfg.wl_threshold &&
           sd->wear.max - sd->wear.min > drive->cfg.wl_threshold;
}

/*
 * Chooses and begins a move on a die that has no operation of an earlier one.
 * False: none is to be made.
 */
static bool begin_move(RsdDrive *drive, uint32_t die)
{
    SegDie *sd = &segments(drive)->dies[die];
    uint32_t base = die * drive->die_blocks;
    uint32_t src = RSD_NONE, dst = RSD_NONE;
    uint64_t src_wear = UINT64_MAX, dst_wear = 0;

    sd->look = false;
    for (uint32_t block = base + drive->zoned->first;
         block < base + drive->zoned->end; block++) {
        uint64_t rec = drive->media.rec[block];
        const Block *b = &drive->blocks[block];
        uint64_t wear = (uint64_t)rsd_rec_erases(rec) + b->erases +
                        b->obsolete;

        /* one that gets no erase any more would have to be waited for */
        if (rsd_rec_flags(rec) & RSD_BLOCK_BAD || rsd_seg_is_dying(drive, block) ||
            (b->erases && !b->obsolete)) {
            continue;
        }
        if (b->pos != RSD_NONE) {
            if (dst == RSD_NONE || wear > dst_wear) {
                dst = block;
                dst_wear = wear;
            }
        } else if (b->owner != RSD_NONE &&
                   rsd_rec_next(rec) == drive->pages && wear < src_wear) {
            src = block;
            src_wear = wear;
        }
    }
    if (src == RSD_NONE || dst == RSD_NONE ||
        dst_wear <= src_wear + drive->cfg.wl_threshold) {
        return false;
    }
    if (!sd->move) {
        sd->move = rsd_alloc(drive, move_size(drive));
    }
    if (!sd->move || rsd_media_reserve(&drive->media, dst)) {
        return false;           /* tried again after the next change */
    }
    rsd_pool_remove(drive, &sd->pool, dst);
    if (drive->blocks[dst].owner != RSD_NONE) {
        rsd_seg_clear_entry(drive, drive->blocks[dst].owner);
        drive->blocks[dst].owner = RSD_NONE;
    }
    sd->move->active = true;
    sd->move->loaded = false;
    sd->move->programming = false;
    sd->move->src = src;
    sd->move->dst = dst;
    sd->move->page = 0;
    sd->move->since = drive->sched.dies[die].programmed;
    sd->move->busy = 0;
    return true;
}

/* Queues the next operation of a move. One operation must be reserved. */
static void continue_move(RsdDrive *drive, uint32_t die, bool idle)
{
    Move *move = segments(drive)->dies[die].move;
    Turn turn = idle ? TURN_IDLE : TURN_FIRST;
    Op *op;

    if (drive->blocks[move->dst].obsolete) {
        rsd_nand_mark(&drive->media, move->dst,
                      RSD_BLOCK_DIRTY | RSD_BLOCK_WORN);
        if (!idle && drive->blocks[move->dst].queued) {
            turn = TURN_LAST;
        }
        op = rsd_seg_new_erase(drive, move->dst);
    } else {
        op = rsd_op_new(drive->zoned, move->loaded ? OP_PROGRAM : OP_READ,
                        RSD_CAUSE_WEAR, move->loaded ? move->dst : move->src);
        op->page = move->page;
        op->buf = move->buf;
        op->stride = 1;
        if (move->loaded) {
            op->count = drive->unit;
            move->busy += idle ? 0 : drive->unit;
        } else {
            /* a row of the unit */
            op->count = drive->sched.row;
            op->buf += (size_t)(op->page % drive->unit) *
                       (RSD_PAGE_SIZE + RSD_OOB_SIZE);
        }
        move->programming = move->loaded;
    }
    move->op = op;
    rsd_seg_queue_own(drive, op, turn);
}

/* A read or program of the move is done. */
static void advance_move(RsdDrive *drive, uint32_t die)
{
    SegDie *sd = &segments(drive)->dies[die];
    Move *move = sd->move;
    Block *src = &drive->blocks[move->src];

    if (!move->loaded) {
        move->page += drive->sched.row;
        if (move->page % drive->unit == 0) {
            move->loaded = true;
            move->page -= drive->unit;
        }
        return;
    }
    move->loaded = false;
    move->programming = false;
    move->page += drive->unit;
    if (move->page < drive->pages) {
        return;
    }
    rsd_seg_set_entry(drive, src->owner, SEG_USED, move->dst);
    drive->blocks[move->dst].owner = src->owner;
    src->owner = RSD_NONE;
    move->active = false;
    drive->count->wear_moves++;
    rsd_seg_make_obsolete(drive, move->src, RSD_BLOCK_WORN);
}

bool rsd_seg_has_background(const Ns *ns, uint32_t die)
{
    const RsdDrive *drive = ns->drive;
    const SegDie *sd = &segments(drive)->dies[die];

    return !drive->failed &&
           (moving(sd) || (drive->cfg.idle_erase_ns && sd->pool.obsolete) ||
            worth_a_look(drive, sd));
}

bool rsd_seg_background(Ns *ns, uint32_t die)
{
    RsdDrive *drive = ns->drive;
    SegDie *sd = &segments(drive)->dies[die];

    if (!rsd_seg_has_background(ns, die) || !rsd_op_reserve(drive, 1)) {
        return false;
    }
    if (!moving(sd) && drive->cfg.idle_erase_ns && sd->pool.obsolete) {
        rsd_seg_queue_own(drive,
                  rsd_seg_new_erase(drive, rsd_pool_first_obsolete(drive, &sd->pool,
                                                           die)), TURN_IDLE);
        return true;
    }
    if (moving(sd) || (worth_a_look(drive, sd) && begin_move(drive, die))) {
        continue_move(drive, die, true);
        return true;
    }
    return false;
}

/* May a move copy one unit more on a busy die? */
static bool has_share(const RsdDrive *drive, uint32_t die, const Move *move)
{
    uint64_t others = drive->sched.dies[die].programmed - move->since;

    return (move->busy + drive->unit) * 100 <= others * drive->cfg.wl_share;
}

/* Levels a die that need not be idle. */
static void level_busy(RsdDrive *drive, uint32_t die)
{
    SegDie *sd = &segments(drive)->dies[die];

    if (!drive->cfg.wl_share || drive->failed || (sd->move && sd->move->op) ||
        !rsd_op_reserve(drive, 1)) {
        return;
    }
    if (!moving(sd) && (sd->pool.len < 2 || !worth_a_look(drive, sd) ||
                        !begin_move(drive, die))) {
        return;
    }
    if (drive->blocks[sd->move->dst].obsolete ||
        has_share(drive, die, sd->move)) {
        continue_move(drive, die, false);
    }
}

void rsd_seg_op_done(Ns *ns, Op *op)
{
    RsdDrive *drive = ns->drive;
    uint32_t die = op->die;
    SegDie *sd = &segments(drive)->dies[die];
    Epoch *epoch = op->job;
    bool moves = sd->move && sd->move->op == op;
    bool busy = moves ? !op->background : op->kind == OP_PROGRAM;

    if (op->kind == OP_ERASE) {
        erase_done(drive, op->block);
    }
    if (op->kind == OP_PROGRAM && op->page + 1 == drive->pages) {
        sd->look = true;        /* wear levelling may move it now */
    }
    if (moves) {
        sd->move->op = NULL;
        if (moving(sd) && op->kind != OP_ERASE && !op->failed) {
            advance_move(drive, die);
        }
    }
    rsd_op_finish(drive, op);
    if (epoch) {
        rsd_seg_drop_epoch(drive, epoch);
    }
    if (busy) {
        level_busy(drive, die);
    }
}
