/*
 * The RSD personality (RISA 3.2, REDO 2.3): a zone is a segment, a segment is
 * one flash block in each of its lanes, and the segment map is the only
 * translation.
 *
 * Lanes. With segment=all a zone has a lane a die, with segment=way one a
 * channel of way "zone mod ways". Unit i of a zone is unit i / lanes of the
 * block in lane i mod lanes (RISA figure 1; a unit is what is programmed at
 * once, a page by default); lane n is channel n mod channels of way n /
 * channels.
 *
 * States. An entry of the map is Free, Used or Invalid with a block number.
 * The segment is Used if the entry of its lane 0 is, and then all are.
 *
 *   first write   in each lane, the free block that is least worn (pool.c) is
 *                 taken; those not erased get an erase queued at once, in all
 *                 lanes, before the segment's first program. One that this
 *                 erase ends the life of gets it, too, and another is taken.
 *   reset         Used becomes Invalid when the command is submitted: the
 *                 blocks are free from then on. What was queued for them
 *                 before still happens: a die's queue keeps the order, and an
 *                 erase always comes between two owners.
 *   idle          a die without work for idle-erase ns, counted from the reset
 *                 at the earliest, erases obsolete blocks, lowest number first,
 *                 until the host comes. An entry whose block was erased, or was
 *                 given to another segment, is Free.
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
 * Barriers. Reset and finish complete when the operations submitted to their
 * zone before them are done: operations count up the zone's current epoch, a
 * barrier closes it.
 *
 * Survival of SIGKILL. The file must make sense after any prefix of the stores:
 *
 *   first write   entries of lanes n-1 to 1, then of lane 0, which makes the
 *                 segment Used. Before it: entries of an unused segment mean
 *                 nothing. After it: Used, nothing written yet, because a
 *                 chosen block is either erased or marked dirty, and a dirty
 *                 block counts as empty. The mark goes when its erase is done
 *                 and no program of an earlier owner is queued any more.
 *   program       data and OOB, then the block record (nand.c).
 *   reset         the entry of lane 0, then the others, then the blocks are
 *                 marked dirty. Before the marks: a block that no used segment
 *                 names, and that has pages programmed, is taken for dirty.
 *   wear          T is named by no segment until all of it is programmed; then
 *                 one store switches the entry. Then S is marked dirty.
 *   open          finishes erases that a used segment waits for, then programs
 *                 filler into the gaps below its highest programmed page, in
 *                 order, so it can be interrupted and repeated. A used segment
 *                 without any page becomes free again. No life ends by these
 *                 erases: a block is chosen only if it outlives the one before
 *                 its use. (With endurance lowered since, the next one is its
 *                 last.)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "zone.h"

enum { FREE, USED, INVALID };   /* STAT of RISA 3.2.1 */

#define STATE_SHIFT 30
#define NUMBER_MASK ((UINT32_C(1) << STATE_SHIFT) - 1)

typedef struct Zone {
    /* pages, from the start, for which programs were queued */
    uint64_t submitted;
    Epoch *head, *tail;         /* oldest, youngest */
} Zone;

/* A block's move by wear levelling */
typedef struct Move {
    bool active;
    bool loaded;                /* buf holds the page to program */
    bool programming;           /* and its program is queued or going on */
    const Op *op;               /* queued or going on, or NULL */
    uint32_t src, dst;          /* drive-wide numbers */
    uint32_t page;              /* next slot to copy */
    uint64_t since;             /* Die.programmed when it began */
    uint64_t busy;              /* slots copied on a busy die */
    uint8_t buf[];              /* of a unit: of each slot data, OOB */
} Move;

typedef struct SegDie {
    Pool pool;
    Move *move;                 /* NULL until the first one */
    uint32_t wear_min, wear_max;
    uint32_t at_min;            /* good blocks of that erase count */
    /* something changed since levelling found nothing to do */
    bool look;
} SegDie;

typedef struct Segments {
    uint32_t lanes;             /* of a zone */
    Zone *zones;
    SegDie *dies;
    Epoch *free_epochs;
    uint32_t num_free_epochs;
} Segments;

/* The namespace of the zones: always the first */
static Ns *zoned(RsdDrive *drive)
{
    return &drive->ns[0];
}

static Segments *segments(const RsdDrive *drive)
{
    return drive->ns[0].state;
}

/* Drive-wide numbers of the zones' blocks, in order */
#define FOR_EACH_BLOCK(drive, b) \
    for (uint64_t b = 0; b < (uint64_t)(drive)->dies * (drive)->die_blocks; \
         b = next_block(drive, b))

static uint64_t next_block(const RsdDrive *drive, uint64_t block)
{
    return ++block % drive->die_blocks == drive->ns[0].end
               ? block + drive->die_blocks - drive->ns[0].end : block;
}

static uint32_t entry_state(uint32_t entry)
{
    return entry >> STATE_SHIFT;
}

static uint32_t first_die(const RsdDrive *drive, uint32_t zone)
{
    return drive->cfg.segment == RSD_SEGMENT_WAY
               ? zone % drive->cfg.ways * drive->cfg.channels : 0;
}

/* The map's entries of a zone, lane 0 first */
static uint32_t *entries(const RsdDrive *drive, uint32_t zone)
{
    return drive->media.map + (size_t)zone * segments(drive)->lanes;
}

static bool is_used(const RsdDrive *drive, uint32_t zone)
{
    return entry_state(*entries(drive, zone)) == USED;
}

/* Drive-wide number of the block an entry of a die names */
static uint32_t block_of(const RsdDrive *drive, uint32_t die, uint32_t entry)
{
    return die * drive->die_blocks + (entry & NUMBER_MASK);
}

static void set_entry(RsdDrive *drive, uint32_t index, uint32_t state,
                      uint32_t block)
{
    uint32_t entry = state << STATE_SHIFT | block % drive->die_blocks;

    rsd_media_note(&drive->media, &drive->media.map[index], &entry,
                   sizeof(entry));
    /* release, as all such stores: they happen in the program's order */
    __atomic_store_n(&drive->media.map[index], entry, __ATOMIC_RELEASE);
}

/* An entry whose block is no longer the segment's old one */
static void clear_entry(RsdDrive *drive, uint32_t index)
{
    set_entry(drive, index, FREE, 0);
}

static SegDie *seg_die(RsdDrive *drive, uint32_t block)
{
    return &segments(drive)->dies[block / drive->die_blocks];
}

/* Pages of a lane among the first n of its zone */
static uint32_t lane_pages(const RsdDrive *drive, uint64_t n, uint32_t lane)
{
    uint32_t unit = drive->unit;
    uint64_t row = (uint64_t)segments(drive)->lanes * unit;
    uint64_t rest = n % row, before = (uint64_t)lane * unit;

    rest = rest > before ? rest - before : 0;
    return n / row * unit + (rest < unit ? rest : unit);
}

/* Slot of its lane's block where unit number i of a zone begins */
static uint32_t unit_page(const RsdDrive *drive, uint64_t i)
{
    return i / segments(drive)->lanes * drive->unit;
}

uint64_t rsd_seg_next(const RsdDrive *drive, uint32_t zone)
{
    return segments(drive)->zones[zone].submitted;
}

uint32_t rsd_seg_locate(const RsdDrive *drive, uint32_t zone, uint64_t offset,
                        uint32_t *page)
{
    uint64_t i = offset / drive->unit;
    uint32_t lane = i % segments(drive)->lanes;

    *page = unit_page(drive, i) + offset % drive->unit;
    return block_of(drive, first_die(drive, zone) + lane,
                    entries(drive, zone)[lane]);
}

bool rsd_zone_spoil(RsdDrive *drive, uint64_t lba)
{
    uint32_t zone = lba >> drive->ns[0].zone_shift, block, page;
    uint64_t offset = lba & (drive->ns[0].geo.zone_size - 1);

    if (zone >= drive->ns[0].geo.num_zones || !is_used(drive, zone) ||
        offset >= rsd_seg_next(drive, zone)) {
        return false;
    }
    block = rsd_seg_locate(drive, zone, offset, &page);
    return rsd_nand_spoil(&drive->media, block, page) == RSD_OK;
}

/*
 * Epochs
 */

static bool reserve_epochs(RsdDrive *drive, uint64_t count)
{
    Segments *seg = segments(drive);

    while (seg->num_free_epochs < count) {
        Epoch *epoch = rsd_alloc(drive, sizeof(*epoch));

        if (!epoch) {
            return false;
        }
        epoch->next = seg->free_epochs;
        seg->free_epochs = epoch;
        seg->num_free_epochs++;
    }
    return true;
}

static Epoch *new_epoch(Segments *seg, uint32_t zone)
{
    Zone *z = &seg->zones[zone];
    Epoch *epoch = seg->free_epochs;

    seg->free_epochs = epoch->next;
    seg->num_free_epochs--;
    *epoch = (Epoch){ .zone = zone };
    if (z->head) {
        z->tail->next = epoch;
    } else {
        z->head = epoch;
    }
    z->tail = epoch;
    return epoch;
}

/* The epoch of an operation submitted now */
static Epoch *current_epoch(Segments *seg, uint32_t zone)
{
    Epoch *tail = seg->zones[zone].tail;

    return tail && !tail->barrier ? tail : new_epoch(seg, zone);
}

/* The command waits for what was submitted to the zone so far. */
static void set_barrier(RsdDrive *drive, uint32_t zone, Cmd *cmd)
{
    Segments *seg = segments(drive);

    if (seg->zones[zone].tail) {
        current_epoch(seg, zone)->barrier = cmd;
        cmd->pending++;
    }
}

/* One of the epoch's operations is done. */
static void drop_epoch(RsdDrive *drive, Epoch *epoch)
{
    Segments *seg = segments(drive);
    Zone *z = &seg->zones[epoch->zone];

    epoch->refs--;
    while (z->head && !z->head->refs) {
        epoch = z->head;
        z->head = epoch->next;
        if (!z->head) {
            z->tail = NULL;
        }
        if (epoch->barrier) {
            rsd_cmd_drop(drive, epoch->barrier);
        }
        epoch->next = seg->free_epochs;
        seg->free_epochs = epoch;
        seg->num_free_epochs++;
    }
}

/*
 * Operations
 */

/* Where in its die's queue an operation goes */
typedef enum Turn { LAST, FIRST, IDLE } Turn;

static void queue_op(RsdDrive *drive, Op *op, Cmd *cmd, Epoch *epoch)
{
    op->cmd = cmd;
    op->job = epoch;
    if (cmd) {
        cmd->pending++;
    }
    if (epoch) {
        epoch->refs++;
    }
    if (rsd_buffered(drive) && op->kind == OP_PROGRAM) {
        rsd_buffer_write(drive, op);
    } else {
        rsd_sched_queue(drive, op);
    }
}

/* An operation of the drive's own, with its turn; IDLE: nothing waits */
static void queue_own(RsdDrive *drive, Op *op, Turn turn)
{
    op->background = turn == IDLE;
    if (turn == FIRST) {
        rsd_sched_queue_first(drive, op);
    } else {
        rsd_sched_queue(drive, op);
    }
}

/* Of a block that is obsolete */
static Op *new_erase(RsdDrive *drive, uint32_t block)
{
    Block *b = &drive->blocks[block];
    bool worn = rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_WORN;
    Op *op = rsd_op_new(zoned(drive), OP_ERASE,
                        worn ? RSD_CAUSE_WEAR : RSD_CAUSE_HOST, block);

    b->erases++;
    b->obsolete = 0;
    if (b->pos != RSD_NONE) {
        seg_die(drive, block)->pool.obsolete--;
    }
    return op;
}

static void queue_erase(RsdDrive *drive, uint32_t block, Cmd *cmd,
                        Epoch *epoch)
{
    queue_op(drive, new_erase(drive, block), cmd, epoch);
}

/* How many operations queue_pages() may need for nlb pages of some zones */
static uint64_t max_ops(const RsdDrive *drive, uint64_t nlb, uint64_t zones)
{
    uint64_t runs = zones * segments(drive)->lanes;

    return drive->cfg.queue == RSD_QUEUE_WAY && runs < nlb &&
           !rsd_buffered(drive) ? runs : nlb;
}

/*
 * Queues pages [offset, offset + nlb) of a zone in use, the first of them being
 * page index of the command, unit by unit: reads as a row each, which is a step
 * of the die, programs to the write buffer.
 */
static void queue_units(RsdDrive *drive, OpKind kind, RsdCause cause, Cmd *cmd,
                        uint32_t zone, uint64_t offset, uint32_t nlb,
                        uint32_t index)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);
    const uint32_t *map = entries(drive, zone);
    Epoch *epoch = current_epoch(seg, zone);
    uint32_t chunk = kind == OP_READ ? drive->sched.row : drive->unit;

    epoch->refs++;              /* until all of it is queued */
    while (nlb) {
        uint64_t i = offset / drive->unit;
        uint32_t n = chunk - offset % chunk;
        uint32_t lane = i % seg->lanes;
        Op *op = rsd_op_new(zoned(drive), kind, cause,
                            block_of(drive, die + lane, map[lane]));

        n = n < nlb ? n : nlb;
        op->page = unit_page(drive, i) + offset % drive->unit;
        op->index = index;
        op->count = n;
        op->stride = 1;
        if (kind == OP_READ) {
            op->cmd = cmd;
            rsd_buffer_read(drive, op);
        }
        if (op->count) {
            queue_op(drive, op, cmd, epoch);
        } else {
            rsd_op_free(drive, op);
        }
        offset += n;
        index += n;
        nlb -= n;
    }
    drop_epoch(drive, epoch);
}

/*
 * The same without a write buffer: what a die gets is one run, except with one
 * queue for all, where pages of different dies alternate.
 */
static void queue_pages(RsdDrive *drive, OpKind kind, RsdCause cause, Cmd *cmd,
                        uint32_t zone, uint64_t offset, uint32_t nlb,
                        uint32_t index)
{
    Segments *seg = segments(drive);
    uint32_t lanes = seg->lanes;
    uint32_t lane = offset % lanes, page = offset / lanes;
    uint32_t die = first_die(drive, zone);
    const uint32_t *map = entries(drive, zone);
    bool runs = drive->cfg.queue == RSD_QUEUE_WAY;
    uint32_t n = runs && lanes < nlb ? lanes : nlb;
    Epoch *epoch;

    if (rsd_buffered(drive)) {
        queue_units(drive, kind, cause, cmd, zone, offset, nlb, index);
        return;
    }
    epoch = current_epoch(seg, zone);

    for (uint32_t i = 0; i < n; i++) {
        Op *op = rsd_op_new(zoned(drive), kind, cause,
                            block_of(drive, die + lane, map[lane]));

        op->page = page;
        op->index = index + i;
        if (runs) {
            op->count = (nlb - i - 1) / lanes + 1;
            op->stride = lanes;
        }
        queue_op(drive, op, cmd, epoch);
        if (++lane == lanes) {
            lane = 0;
            page++;
        }
    }
}

/*
 * Free blocks
 */

/* The block's content is of no use: it is free, once erased. */
static void make_obsolete(RsdDrive *drive, uint32_t block, uint32_t worn)
{
    SegDie *sd = seg_die(drive, block);

    rsd_nand_mark(&drive->media, block, RSD_BLOCK_DIRTY | worn);
    drive->blocks[block].obsolete = 1;
    rsd_pool_insert(drive, &sd->pool, block);
    sd->look = true;
}

/* Gives up the move of a die: its target is free again. */
static void abandon_move(RsdDrive *drive, uint32_t die)
{
    Move *move = segments(drive)->dies[die].move;
    Block *dst = &drive->blocks[move->dst];

    move->active = false;
    if (move->programming ||
        (!dst->erases && rsd_rec_next(drive->media.rec[move->dst]))) {
        make_obsolete(drive, move->dst, RSD_BLOCK_WORN);
    } else {
        if (!dst->erases) {
            rsd_media_release(&drive->media, move->dst);
        }
        rsd_pool_insert(drive, &seg_die(drive, move->dst)->pool, move->dst);
    }
}

static bool moving(const SegDie *sd)
{
    return sd->move && sd->move->active;
}

/*
 * Has anything been programmed into the block of a lane, or is it queued? What
 * never left the write buffer has not.
 */
static bool is_written(const RsdDrive *drive, const Zone *z, uint32_t lane,
                       uint32_t block)
{
    if (!rsd_buffered(drive)) {
        return lane_pages(drive, z->submitted, lane);
    }
    return rsd_buffer_queued(&drive->ns[0], block) ||
           (!drive->blocks[block].erases &&
            rsd_rec_next(drive->media.rec[block]));
}

/* The blocks of a zone become free; what is queued for them still happens. */
static void detach_zone(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    Zone *z = &seg->zones[zone];
    uint32_t die = first_die(drive, zone);
    uint32_t *map = entries(drive, zone);
    bool held = rsd_buffer_hold(drive);

    rsd_zrwa_drop(zoned(drive), zone);
    if (!is_used(drive, zone)) {
        rsd_buffer_go_on(drive, held);
        return;
    }
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        set_entry(drive, &map[lane] - drive->media.map, INVALID,
                  block_of(drive, die + lane, map[lane]));
    }
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);

        drive->blocks[block].obsolete = is_written(drive, z, lane, block);
        if (rsd_buffered(drive)) {
            rsd_buffer_drop(zoned(drive), block);
        }
    }
    rsd_buffer_go_on(drive, held);
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);
        SegDie *sd = &seg->dies[die + lane];

        if (moving(sd) && sd->move->src == block) {
            abandon_move(drive, die + lane);
        }
        if (drive->blocks[block].obsolete) {
            make_obsolete(drive, block, 0);
            rsd_sched_background(drive, die + lane);
            continue;
        }
        if (!drive->blocks[block].erases) {
            clear_entry(drive, &map[lane] - drive->media.map);
            drive->blocks[block].owner = RSD_NONE;
        }
        rsd_pool_insert(drive, &sd->pool, block);
    }
    z->submitted = 0;
}

/* Host space for the blocks that attach_zone() would take */
static RsdStatus reserve_space(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    SegDie *dies = &seg->dies[first_die(drive, zone)];
    uint32_t base = first_die(drive, zone) * drive->die_blocks;
    uint32_t lane;
    int ret = 0;

    for (lane = 0; lane < seg->lanes; lane++) {
        ret = rsd_media_reserve(&drive->media, base +
                                lane * drive->die_blocks +
                                dies[lane].pool.heap[0]);
        if (ret) {
            break;
        }
    }
    if (!ret) {
        return RSD_OK;
    }
    for (uint32_t i = 0; i <= lane; i++) {
        uint32_t block = base + i * drive->die_blocks + dies[i].pool.heap[0];

        if (!drive->blocks[block].obsolete && !drive->blocks[block].erases) {
            rsd_media_release(&drive->media, block);
        }
    }
    return ret == -ENOSPC || ret == -EDQUOT ? RSD_E_NOSPC : RSD_E_MEDIA;
}

/* Is a free block at the end of its life, the erase before its use included? */
static bool is_dying(const RsdDrive *drive, uint32_t block)
{
    const Block *b = &drive->blocks[block];

    return drive->cfg.life_spread && (b->erases || b->obsolete) &&
           rsd_rec_erases(drive->media.rec[block]) + UINT64_C(0) + b->erases +
           b->obsolete >= rsd_factory_life(&drive->cfg, block);
}

/*
 * Takes blocks that die by their erase out of a die's pool, as far as they are
 * next, and has them erased. False: no memory.
 */
static bool drop_dying(RsdDrive *drive, uint32_t die)
{
    Pool *pool = &segments(drive)->dies[die].pool;

    while (pool->len && is_dying(drive, block_of(drive, die, pool->heap[0]))) {
        uint32_t block = block_of(drive, die, pool->heap[0]);
        Block *b = &drive->blocks[block];

        if (!rsd_op_reserve(drive, 1)) {
            return false;
        }
        rsd_pool_remove(drive, pool, block);
        if (b->owner != RSD_NONE) {
            clear_entry(drive, b->owner);
            b->owner = RSD_NONE;
        }
        if (b->obsolete) {
            queue_erase(drive, block, NULL, NULL);
        }
    }
    return true;
}

/* Makes sure that each lane has a free block for the zone. */
static RsdStatus find_blocks(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);

    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        SegDie *sd = &seg->dies[die + lane];

        if (!drop_dying(drive, die + lane)) {
            return RSD_E_NOMEM;
        }
        if (!sd->pool.len && moving(sd)) {
            abandon_move(drive, die + lane);
            if (!drop_dying(drive, die + lane)) {
                return RSD_E_NOMEM;
            }
        }
        if (!sd->pool.len) {
            /* each zone had a block: more have died than there were spares */
            drive->read_only = true;
            drive->health_changes++;
            return RSD_E_READONLY;
        }
    }
    return RSD_OK;
}

/*
 * Gives a zone the blocks that find_blocks() has found. One operation a lane
 * must be reserved. Anything but RSD_OK: nothing was changed.
 */
static RsdStatus attach_zone(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);
    uint32_t *map = entries(drive, zone);
    RsdStatus status = reserve_space(drive, zone);

    if (status != RSD_OK) {
        return status;
    }
    /* lane 0 last: it is what makes the segment used */
    for (uint32_t lane = seg->lanes; lane-- > 0;) {
        SegDie *sd = &seg->dies[die + lane];
        uint32_t index = &map[lane] - drive->media.map;
        uint32_t block = block_of(drive, die + lane, sd->pool.heap[0]);
        Block *b = &drive->blocks[block];

        if (entry_state(map[lane]) == INVALID) {
            drive->blocks[block_of(drive, die + lane, map[lane])].owner =
                RSD_NONE;
        }
        if (b->owner != RSD_NONE) {
            clear_entry(drive, b->owner);
        }
        rsd_pool_remove(drive, &sd->pool, block);
        b->owner = index;
        sd->look = true;
        set_entry(drive, index, USED, block);
    }
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);

        if (drive->blocks[block].obsolete) {
            queue_erase(drive, block, NULL, NULL);
        }
    }
    return RSD_OK;
}

/*
 * Commands
 */

/* Reads pages that are in a random write area, or that nobody wrote. */
static void read_behind(RsdDrive *drive, Cmd *cmd, uint32_t index, uint32_t n,
                        uint32_t zone, uint64_t offset)
{
    if (cmd->pub.data) {
        memset(cmd->pub.data + (size_t)index * RSD_PAGE_SIZE, 0,
               (size_t)n * RSD_PAGE_SIZE);
    }
    if (cmd->pub.oob) {
        memset(cmd->pub.oob + (size_t)index * cmd->oob_len, 0,
               (size_t)n * cmd->oob_len);
    }
    cmd->unwritten += n;
    for (uint32_t i = 0; drive->zrwa->in_use && i < n; i++) {
        cmd->unwritten -= rsd_zrwa_read(drive, cmd, index + i, zone,
                                        offset + i);
    }
}

static RsdStatus submit_read(RsdDrive *drive, Cmd *cmd)
{
    uint64_t lba = cmd->pub.lba, zone_size = drive->ns[0].geo.zone_size;
    uint32_t left = cmd->pub.nlb, index = 0;
    uint64_t zones = (left >> drive->ns[0].zone_shift) + 2;

    if (!rsd_op_reserve(drive, max_ops(drive, left, zones)) ||
        !reserve_epochs(drive, zones)) {
        return RSD_E_NOMEM;
    }
    while (left) {
        uint32_t zone = lba >> drive->ns[0].zone_shift;
        uint64_t offset = lba & (zone_size - 1);
        uint64_t written = rsd_zrwa_start(drive, zone,
                                          rsd_seg_next(drive, zone));
        uint32_t here = left < zone_size - offset ? left : zone_size - offset;
        uint32_t n = 0;

        if (written > offset) {
            n = here < written - offset ? here : written - offset;
            queue_pages(drive, OP_READ, RSD_CAUSE_HOST, cmd, zone, offset, n,
                        index);
        }
        read_behind(drive, cmd, index + n, here - n, zone, offset + n);
        lba += here;
        index += here;
        left -= here;
    }
    return RSD_OK;
}

/*
 * Makes sure that the next nlb pages of a zone can be programmed, by so many
 * operations: it has blocks, and there is memory.
 */
static RsdStatus make_ready(RsdDrive *drive, uint32_t zone, uint32_t nlb,
                            uint64_t ops)
{
    RsdStatus status = is_used(drive, zone) ? RSD_OK
                                            : find_blocks(drive, zone);

    if (status != RSD_OK) {
        return status;
    }
    if (!rsd_op_reserve(drive, ops + segments(drive)->lanes) ||
        !reserve_epochs(drive, 2)) {
        return RSD_E_NOMEM;
    }
    if (rsd_buffered(drive)) {
        status = rsd_buffer_reserve(drive, nlb / drive->unit + 2);
        if (status != RSD_OK) {
            return status;
        }
    }
    return is_used(drive, zone) ? RSD_OK : attach_zone(drive, zone);
}

/* Programs the zone's next nlb pages. */
static RsdStatus append(RsdDrive *drive, Cmd *cmd, uint32_t zone,
                        RsdCause cause, uint32_t nlb)
{
    Zone *z = &segments(drive)->zones[zone];
    RsdStatus status = make_ready(drive, zone, nlb, max_ops(drive, nlb, 1));

    if (status != RSD_OK) {
        return status;
    }
    if (cmd->pub.op == RSD_ZONE_FINISH) {
        set_barrier(drive, zone, cmd);
    }
    queue_pages(drive, OP_PROGRAM, cause, cmd, zone, z->submitted, nlb, 0);
    z->submitted += nlb;
    return RSD_OK;
}

/*
 * Queues a command to the zone's random write area: pages from "offset" on, if
 * it is a write. "commit" pages of the area will be committed.
 */
static RsdStatus queue_area(RsdDrive *drive, Cmd *cmd, uint32_t zone,
                            uint64_t offset, uint32_t commit)
{
    Zone *z = &segments(drive)->zones[zone];
    ZrwaArea *area = rsd_zrwa_of(drive, zone);
    bool write = cmd->pub.op == RSD_WRITE || cmd->pub.op == RSD_WRITE_ZEROES;
    uint32_t units = commit ? commit / drive->unit + 2 : 0;
    RsdStatus status = RSD_OK;

    if (commit) {
        status = make_ready(drive, zone, commit, 2);
    } else if (!rsd_op_reserve(drive, 2) || !reserve_epochs(drive, 2)) {
        status = RSD_E_NOMEM;
    }
    if (status != RSD_OK) {
        return status;
    }
    if (cmd->pub.op == RSD_ZONE_FINISH) {
        set_barrier(drive, zone, cmd);
    }
    z->submitted += commit;
    rsd_zrwa_queue(zoned(drive), cmd, area, write ? ZRWA_WRITE : ZRWA_COMMIT,
                   offset, write ? cmd->pub.nlb : commit,
                   current_epoch(segments(drive), zone), units);
    if (cmd->pub.op == RSD_ZONE_FINISH ||
        z->submitted == drive->ns[0].geo.zone_capacity) {
        rsd_zrwa_close(drive, area);
    }
    if (write && !drive->cfg.plp &&
        (drive->cfg.ack == RSD_ACK_PROGRAM || cmd->pub.fua)) {
        rsd_buffer_flush(zoned(drive), cmd);
    }
    return RSD_OK;
}

/* Pages that a write up to "end" commits of an area which begins at "next" */
static uint32_t implied_commit(const RsdDrive *drive, uint64_t next,
                               uint64_t end)
{
    uint64_t flush = drive->zrwa->flush, last = next + drive->zrwa->size;

    return end > last ? rsd_div_round_up(end - last, flush) * flush : 0;
}

static RsdStatus submit_write(RsdDrive *drive, Cmd *cmd, uint32_t zone)
{
    uint64_t offset = cmd->pub.lba & (drive->ns[0].geo.zone_size - 1);
    uint64_t next = segments(drive)->zones[zone].submitted;
    uint64_t end = offset + cmd->pub.nlb;

    if (rsd_zrwa_of(drive, zone)) {
        if (cmd->pub.append || offset < next ||
            end > next + 2 * drive->zrwa->size) {
            return RSD_E_ORDER;
        }
        return queue_area(drive, cmd, zone, offset,
                          implied_commit(drive, next, end));
    }
    /* what a finish commits of an area comes first */
    if (offset != next || rsd_zrwa_closing(drive, zone)) {
        return RSD_E_ORDER;
    }
    return append(drive, cmd, zone, RSD_CAUSE_HOST, cmd->pub.nlb);
}

static RsdStatus submit_commit(RsdDrive *drive, Cmd *cmd, uint32_t zone)
{
    uint64_t offset = cmd->pub.lba & (drive->ns[0].geo.zone_size - 1);

    if (!rsd_zrwa_of(drive, zone) ||
        offset != segments(drive)->zones[zone].submitted ||
        cmd->pub.nlb % drive->zrwa->flush ||
        cmd->pub.nlb > drive->zrwa->size) {
        return RSD_E_ORDER;
    }
    return queue_area(drive, cmd, zone, 0, cmd->pub.nlb);
}

static RsdStatus submit_reset(RsdDrive *drive, Cmd *cmd, uint32_t zone)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);
    const uint32_t *map = entries(drive, zone);

    if (!rsd_op_reserve(drive, seg->lanes) || !reserve_epochs(drive, 2)) {
        return RSD_E_NOMEM;
    }
    set_barrier(drive, zone, cmd);
    detach_zone(drive, zone);
    if (drive->cfg.reset == RSD_RESET_MARK) {
        return RSD_OK;
    }
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);

        if (entry_state(map[lane]) == INVALID &&
            drive->blocks[block].obsolete) {
            queue_erase(drive, block, cmd, current_epoch(seg, zone));
        }
    }
    return RSD_OK;
}

static RsdStatus submit_finish(RsdDrive *drive, Cmd *cmd, uint32_t zone)
{
    uint64_t submitted = segments(drive)->zones[zone].submitted;
    uint64_t rest = drive->ns[0].geo.zone_capacity - submitted;
    ZrwaArea *area = rsd_zrwa_of(drive, zone);

    if (drive->cfg.finish == RSD_FINISH_MARK) {
        uint64_t end = area ? rsd_zrwa_end(area, submitted) : submitted;

        /* the unit that was begun is filled up: none waits for ever */
        rest = rsd_div_round_up(end, drive->unit) * drive->unit - submitted;
    }
    if (area) {
        return queue_area(drive, cmd, zone, 0, rest);
    }
    if (rest) {
        return append(drive, cmd, zone, RSD_CAUSE_PAD, rest);
    }
    if (!reserve_epochs(drive, 1)) {
        return RSD_E_NOMEM;
    }
    set_barrier(drive, zone, cmd);
    return RSD_OK;
}

static RsdStatus seg_submit(Ns *ns, Cmd *cmd)
{
    RsdDrive *drive = ns->drive;
    uint32_t zone = cmd->pub.lba >> drive->ns[0].zone_shift;

    switch (cmd->pub.op) {
    case RSD_READ:
        return submit_read(drive, cmd);
    case RSD_WRITE:
    case RSD_WRITE_ZEROES:
        return submit_write(drive, cmd, zone);
    case RSD_ZONE_RESET:
        return submit_reset(drive, cmd, zone);
    case RSD_ZONE_FINISH:
        return submit_finish(drive, cmd, zone);
    case RSD_FLUSH:
        break;                  /* nothing is held back */
    case RSD_ZRWA_OPEN:
        return rsd_zrwa_open(drive, zone, rsd_seg_next(drive, zone));
    case RSD_ZRWA_COMMIT:
        return submit_commit(drive, cmd, zone);
    case RSD_TRIM:
        return RSD_E_RANGE;
    }
    return RSD_OK;
}

static void seg_format(Ns *ns)
{
    RsdDrive *drive = ns->drive;

    for (uint32_t zone = 0; zone < drive->ns[0].geo.num_zones; zone++) {
        detach_zone(drive, zone);
        rsd_media_save_zone(&drive->media, zone, 0, 0);
        rsd_media_save_ext(&drive->media, zone, NULL, drive->cfg.zd_ext);
    }
}

/*
 * Wear
 */

static void measure_wear(RsdDrive *drive, uint32_t die)
{
    SegDie *sd = &segments(drive)->dies[die];
    const uint64_t *rec = drive->media.rec + (size_t)die * drive->die_blocks;

    sd->wear_min = UINT32_MAX;
    sd->wear_max = 0;
    for (uint32_t b = 0; b < zoned(drive)->end; b++) {
        uint32_t erases = rsd_rec_erases(rec[b]);

        if (rsd_rec_flags(rec[b]) & RSD_BLOCK_BAD) {
            continue;
        }
        if (erases < sd->wear_min) {
            sd->wear_min = erases;
            sd->at_min = 0;
        }
        sd->at_min += erases == sd->wear_min;
        if (erases > sd->wear_max) {
            sd->wear_max = erases;
        }
    }
}

/* A block has died by its erase: it is no longer part of anything. */
static void bury(RsdDrive *drive, uint32_t block)
{
    Block *b = &drive->blocks[block];
    SegDie *sd = seg_die(drive, block);

    b->erases--;
    if (b->pos != RSD_NONE) {
        rsd_pool_remove(drive, &sd->pool, block);
        if (b->owner != RSD_NONE) {
            clear_entry(drive, b->owner);
            b->owner = RSD_NONE;
        }
    }
    rsd_media_release(&drive->media, block);
    measure_wear(drive, block / drive->die_blocks);
    sd->look = true;
}

static void erase_done(RsdDrive *drive, uint32_t block)
{
    uint32_t erases = rsd_rec_erases(drive->media.rec[block]);
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
            clear_entry(drive, b->owner);
            b->owner = RSD_NONE;
        }
    }
    if (b->pos != RSD_NONE) {
        rsd_pool_update(drive, &sd->pool, block);
    }
    if (erases > sd->wear_max) {
        sd->wear_max = erases;
    }
    if (erases - 1 == sd->wear_min && !--sd->at_min) {
        measure_wear(drive, block / drive->die_blocks);
    }
    sd->look = true;
}

/* Is the difference large enough to look for a move? */
static bool worth_a_look(const RsdDrive *drive, const SegDie *sd)
{
    return sd->look && drive->cfg.wl_threshold &&
           sd->wear_max - sd->wear_min > drive->cfg.wl_threshold;
}

static size_t move_size(const RsdDrive *drive)
{
    return sizeof(Move) + drive->unit * (RSD_PAGE_SIZE + RSD_OOB_SIZE);
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
    for (uint32_t block = base; block < base + zoned(drive)->end; block++) {
        uint64_t rec = drive->media.rec[block];
        const Block *b = &drive->blocks[block];
        uint64_t wear = (uint64_t)rsd_rec_erases(rec) + b->erases +
                        b->obsolete;

        /* one that gets no erase any more would have to be waited for */
        if (rsd_rec_flags(rec) & RSD_BLOCK_BAD || is_dying(drive, block) ||
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
        clear_entry(drive, drive->blocks[dst].owner);
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
    Turn turn = idle ? IDLE : FIRST;
    Op *op;

    if (drive->blocks[move->dst].obsolete) {
        rsd_nand_mark(&drive->media, move->dst,
                      RSD_BLOCK_DIRTY | RSD_BLOCK_WORN);
        if (!idle && drive->blocks[move->dst].queued) {
            turn = LAST;
        }
        op = new_erase(drive, move->dst);
    } else {
        op = rsd_op_new(zoned(drive), move->loaded ? OP_PROGRAM : OP_READ,
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
    queue_own(drive, op, turn);
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
    set_entry(drive, src->owner, USED, move->dst);
    drive->blocks[move->dst].owner = src->owner;
    src->owner = RSD_NONE;
    move->active = false;
    drive->count->wear_moves++;
    make_obsolete(drive, move->src, RSD_BLOCK_WORN);
}

/* A unit that the buffer closes counts as what was queued for its slots. */
static void seg_closed(Op *unit, const Op *by)
{
    Epoch *epoch = by->job;

    if (epoch) {
        unit->job = epoch;
        epoch->refs++;
    }
}

static bool seg_has_background(const Ns *ns, uint32_t die)
{
    const RsdDrive *drive = ns->drive;
    const SegDie *sd = &segments(drive)->dies[die];

    return !drive->failed &&
           (moving(sd) || (drive->cfg.idle_erase_ns && sd->pool.obsolete) ||
            worth_a_look(drive, sd));
}

static bool seg_background(Ns *ns, uint32_t die)
{
    RsdDrive *drive = ns->drive;
    SegDie *sd = &segments(drive)->dies[die];

    if (!seg_has_background(ns, die) || !rsd_op_reserve(drive, 1)) {
        return false;
    }
    if (!moving(sd) && drive->cfg.idle_erase_ns && sd->pool.obsolete) {
        queue_own(drive,
                  new_erase(drive, rsd_pool_first_obsolete(drive, &sd->pool,
                                                           die)), IDLE);
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

/* The write buffer has what the operation was to program. */
static void seg_op_buffered(Ns *ns, Op *op)
{
    Epoch *epoch = op->job;

    rsd_op_finish(ns->drive, op);
    if (epoch) {
        drop_epoch(ns->drive, epoch);
    }
}

static void seg_op_done(Ns *ns, Op *op)
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
        drop_epoch(drive, epoch);
    }
    if (busy) {
        level_busy(drive, die);
    }
}

/*
 * Opening
 */

static bool seg_geometry(Ns *ns, char err[RSD_ERR_LEN])
{
    const RsdConfig *cfg = &ns->drive->cfg;
    bool by_way = cfg->segment == RSD_SEGMENT_WAY;
    RsdGeometry *geo = &ns->geo;

    (void)err;                  /* any settings will do */
    geo->zoned = true;
    geo->max_oob = RSD_OOB_SIZE;
    geo->num_zones = ns->visible * (by_way ? cfg->ways : 1);
    geo->zone_capacity = (uint64_t)ns->drive->pages *
                         (by_way ? cfg->channels : ns->drive->dies);
    while ((UINT64_C(1) << ns->zone_shift) < geo->zone_capacity) {
        ns->zone_shift++;
    }
    geo->zone_size = UINT64_C(1) << ns->zone_shift;
    geo->lbas = (uint64_t)geo->num_zones << ns->zone_shift;
    geo->map_bytes = sizeof(uint32_t) * ns->drive->dies * ns->visible;
    return true;
}

/* Pages of a zone up to slot number n - 1 of a lane, that one included */
static uint64_t pages_to(const RsdDrive *drive, uint32_t lane, uint64_t n)
{
    uint64_t unit = drive->unit;

    return n ? ((n - 1) / unit * segments(drive)->lanes + lane) * unit +
               (n - 1) % unit + 1 : 0;
}

static uint64_t seg_written(const Ns *ns, uint32_t zone)
{
    const RsdDrive *drive = ns->drive;
    uint32_t lanes = segments(drive)->lanes;
    uint32_t die = first_die(drive, zone);
    const uint32_t *map = entries(drive, zone);
    uint64_t written = 0;

    if (!is_used(drive, zone)) {
        return 0;
    }
    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);
        uint64_t rec = drive->media.rec[block], n = rsd_rec_next(rec);
        uint64_t safe = rsd_buffer_safe(drive, block), end;

        if (rsd_rec_flags(rec) & RSD_BLOCK_DIRTY) {
            n = 0;
        }
        end = pages_to(drive, lane, n > safe ? n : safe);
        if (end > written) {
            written = end;
        }
    }
    return written;
}

static void seg_zone(const Ns *ns, uint32_t zone, RsdZone *info)
{
    info->written = seg_written(ns, zone);
    info->next = rsd_seg_next(ns->drive, zone);
    info->zrwa = rsd_zrwa_of(ns->drive, zone);
    info->zrwa_pages = rsd_zrwa_holds(ns->drive, zone);
}

/* Is the file consistent? Finds out which block is whose; changes nothing. */
static bool verify(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    Segments *seg = segments(drive);

    FOR_EACH_BLOCK(drive, b) {
        drive->blocks[b].owner = RSD_NONE;
        if (rsd_rec_next(drive->media.rec[b]) > drive->pages ||
            rsd_rec_next(drive->media.rec[b]) % drive->unit) {
            rsd_set_error(err, "the media file is corrupt: block %llu has %u "
                          "pages programmed of %u; restore it from a copy, or "
                          "remove it", (unsigned long long)b,
                          rsd_rec_next(drive->media.rec[b]), drive->pages);
            return false;
        }
    }
    for (uint32_t zone = 0; zone < drive->ns[0].geo.num_zones; zone++) {
        const uint32_t *map = entries(drive, zone);
        uint32_t die = first_die(drive, zone);

        for (uint32_t lane = 0; is_used(drive, zone) && lane < seg->lanes;
             lane++) {
            uint32_t number = map[lane] & NUMBER_MASK;
            uint32_t block = block_of(drive, die + lane, map[lane]);

            if (entry_state(map[lane]) != USED ||
                number >= zoned(drive)->end ||
                rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_BAD ||
                drive->blocks[block].owner != RSD_NONE) {
                rsd_set_error(err, "the media file is corrupt: zone %u, lane "
                              "%u of the segment map is %08x; restore it from "
                              "a copy, or remove it", zone, lane, map[lane]);
                return false;
            }
            drive->blocks[block].owner = &map[lane] - drive->media.map;
        }
    }
    return true;
}

/*
 * Makes sure that blocks which will be programmed further have host space: a
 * copy of a media file may have lost what was allocated and not yet stored.
 */
static bool reserve_open_blocks(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    FOR_EACH_BLOCK(drive, b) {
        int ret;

        if (drive->blocks[b].owner == RSD_NONE ||
            rsd_rec_next(drive->media.rec[b]) == drive->pages) {
            continue;
        }
        ret = rsd_media_reserve(&drive->media, b);
        if (ret) {
            rsd_set_error(err, "no space on the host's disk for zones that "
                          "are partly written (%s): free some",
                          strerror(-ret));
            return false;
        }
    }
    return true;
}

/* Closes what a killed process left open in a used segment. */
static void recover_zone(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);
    uint32_t *map = entries(drive, zone);
    uint64_t written = seg_written(zoned(drive), zone);

    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);
        /* the unit that was begun, if any, stays in the write buffer */
        uint32_t want = lane_pages(drive, written, lane) / drive->unit *
                        drive->unit;
        uint64_t rec = drive->media.rec[block];
        uint32_t page = rsd_rec_next(rec);

        if (!written) {
            clear_entry(drive, &map[lane] - drive->media.map);
            drive->blocks[block].owner = RSD_NONE;
            continue;
        }
        if (rsd_rec_flags(rec) & RSD_BLOCK_DIRTY) {
            rsd_nand_erase(&drive->media, block);
            rsd_nand_mark(&drive->media, block, 0);
            if (rsd_rec_flags(rec) & RSD_BLOCK_WORN) {
                drive->count->erase_wear++;
            } else {
                drive->count->erase_host++;
            }
            drive->count->erase_on_demand++;
            page = 0;
        }
        for (; page < want; page += drive->unit) {
            rsd_buffer_restore(zoned(drive), block, page);
        }
    }
    seg->zones[zone].submitted = written;
}

/* Entries of segments that are not used: Invalid, or Free */
static void recover_entries(RsdDrive *drive, uint32_t zone)
{
    Segments *seg = segments(drive);
    uint32_t die = first_die(drive, zone);
    uint32_t *map = entries(drive, zone);

    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t index = &map[lane] - drive->media.map;
        uint32_t number = map[lane] & NUMBER_MASK;
        uint32_t block = block_of(drive, die + lane, map[lane]);

        if (entry_state(map[lane]) == INVALID && number < zoned(drive)->end &&
            drive->blocks[block].owner == RSD_NONE &&
            rsd_rec_next(drive->media.rec[block])) {
            drive->blocks[block].owner = index;
        } else if (map[lane]) {
            clear_entry(drive, index);
        }
    }
}

static void recover(RsdDrive *drive)
{
    for (uint32_t zone = 0; zone < drive->ns[0].geo.num_zones; zone++) {
        if (is_used(drive, zone)) {
            recover_zone(drive, zone);
        }
    }
    FOR_EACH_BLOCK(drive, b) {
        uint64_t rec = drive->media.rec[b];
        uint32_t flags = rsd_rec_flags(rec);
        bool used = drive->blocks[b].owner != RSD_NONE;

        drive->blocks[b].pos = RSD_NONE;
        if (flags & RSD_BLOCK_BAD || used) {
            continue;
        }
        drive->blocks[b].pos = 0;       /* for rsd_pool_fill() */
        drive->blocks[b].obsolete = rsd_rec_next(rec) > 0;
        if (!rsd_rec_next(rec)) {
            flags = 0;
        } else {
            flags |= RSD_BLOCK_DIRTY;
        }
        if (flags != rsd_rec_flags(rec)) {
            rsd_nand_mark(&drive->media, b, flags);
        }
    }
    for (uint32_t zone = 0; zone < drive->ns[0].geo.num_zones; zone++) {
        if (!is_used(drive, zone)) {
            recover_entries(drive, zone);
        }
    }
}

static void seg_close(Ns *ns)
{
    RsdDrive *drive = ns->drive;
    Segments *seg = ns->state;

    if (!seg) {
        return;
    }
    for (uint32_t zone = 0; seg->zones && zone < drive->ns[0].geo.num_zones;
         zone++) {
        while (seg->zones[zone].head) {
            Epoch *epoch = seg->zones[zone].head;

            seg->zones[zone].head = epoch->next;
            rsd_release(drive, epoch, sizeof(*epoch));
        }
    }
    while (seg->free_epochs) {
        Epoch *epoch = seg->free_epochs;

        seg->free_epochs = epoch->next;
        rsd_release(drive, epoch, sizeof(*epoch));
    }
    for (uint32_t d = 0; seg->dies && d < drive->dies; d++) {
        rsd_pool_fini(drive, &seg->dies[d].pool);
        rsd_release(drive, seg->dies[d].move, move_size(drive));
    }
    rsd_release(drive, seg->dies, drive->dies * sizeof(SegDie));
    rsd_release(drive, seg->zones, drive->ns[0].geo.num_zones * sizeof(Zone));
    rsd_release(drive, seg, sizeof(*seg));
    ns->state = NULL;
}

/*
 * What the protected part of the buffer holds behind the write pointer: of a
 * write that was not acknowledged, and of which earlier units are lost. It must
 * not be there when the host comes to it.
 */
static void forget_unwritten(RsdDrive *drive)
{
    uint32_t lanes = segments(drive)->lanes;

    for (uint32_t zone = 0; zone < drive->ns[0].geo.num_zones; zone++) {
        uint64_t n = seg_written(zoned(drive), zone);
        uint64_t from = rsd_div_round_up(n, drive->unit);

        for (uint64_t i = from; is_used(drive, zone) && i < from + lanes; i++) {
            rsd_buffer_forget(drive, block_of(drive, first_die(drive, zone) +
                                              i % lanes,
                                              entries(drive, zone)[i % lanes]),
                              unit_page(drive, i));
        }
    }
}

static bool no_memory(char err[RSD_ERR_LEN])
{
    rsd_set_error(err, "no memory for the drive's zones and free blocks: "
                  "choose fewer blocks of more pages");
    return false;
}

static bool seg_open(Ns *ns, char err[RSD_ERR_LEN])
{
    RsdDrive *drive = ns->drive;
    Segments *seg = rsd_alloc(drive, sizeof(*seg));

    ns->state = seg;
    if (!seg) {
        return no_memory(err);
    }
    drive->zrwa->locate = rsd_seg_locate;
    seg->lanes = drive->ns[0].geo.zone_capacity / drive->pages;
    seg->zones = rsd_alloc(drive, drive->ns[0].geo.num_zones * sizeof(Zone));
    seg->dies = rsd_alloc(drive, drive->dies * sizeof(SegDie));
    if (!seg->zones || !seg->dies) {
        return no_memory(err);
    }
    if (!verify(drive, err) || !reserve_open_blocks(drive, err)) {
        return false;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        if (!rsd_pool_init(ns, &seg->dies[d].pool)) {
            return no_memory(err);
        }
    }
    /* nothing can fail any more: the file may be changed */
    recover(drive);
    rsd_buffer_settle(ns);
    if (rsd_buffered(drive)) {
        forget_unwritten(drive);
    }
    for (uint32_t zone = 0; drive->cfg.zrwa && zone < ns->geo.num_zones;
         zone++) {
        seg->zones[zone].submitted =
            rsd_zrwa_settle(ns, zone, seg->zones[zone].submitted);
    }
    rsd_zrwa_settled(drive);
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_pool_fill(drive, &seg->dies[d].pool, d);
        measure_wear(drive, d);
        seg->dies[d].look = true;
    }
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_sched_background(drive, d);
    }
    return true;
}

const Personality rsd_ftl_rsd = {
    .geometry = seg_geometry,
    .open = seg_open,
    .close = seg_close,
    .submit = seg_submit,
    .op_done = seg_op_done,
    .op_buffered = seg_op_buffered,
    .closed = seg_closed,
    .has_background = seg_has_background,
    .background = seg_background,
    .zone = seg_zone,
    .format = seg_format,
};
