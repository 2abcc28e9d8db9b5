/*
 * The free blocks of a die, least worn first: a binary heap, each block
 * knowing its place in it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "ftl.h"

/* Numbers here are the die's own; base leads to the drive's. */
typedef struct View {
    const uint64_t *rec;
    Block *blocks;
} View;

static View view(RsdDrive *drive, uint32_t die)
{
    size_t base = (size_t)die * drive->die_blocks;

    return (View){ drive->media.rec + base, drive->blocks + base };
}

/* Erase count when it can be programmed; erased ones before others. */
static uint64_t key(View v, uint32_t b)
{
    const Block *block = &v.blocks[b];
    uint64_t wear = (uint64_t)rsd_rec_erases(v.rec[b]) + block->erases +
                    block->obsolete;

    return wear << 1 | (block->erases || block->obsolete);
}

static bool before(View v, uint32_t a, uint32_t b)
{
    uint64_t ka = key(v, a), kb = key(v, b);

    return ka < kb || (ka == kb && a < b);
}

static void place(Pool *pool, View v, uint32_t pos, uint32_t b)
{
    pool->heap[pos] = b;
    v.blocks[b].pos = pos;
}

static void sift_up(Pool *pool, View v, uint32_t pos, uint32_t b)
{
    while (pos) {
        uint32_t up = (pos - 1) / 2;

        if (!before(v, b, pool->heap[up])) {
            break;
        }
        place(pool, v, pos, pool->heap[up]);
        pos = up;
    }
    place(pool, v, pos, b);
}

static void sift_down(Pool *pool, View v, uint32_t pos, uint32_t b)
{
    for (;;) {
        uint64_t down = 2 * (uint64_t)pos + 1;

        if (down >= pool->len) {
            break;
        }
        if (down + 1 < pool->len &&
            before(v, pool->heap[down + 1], pool->heap[down])) {
            down++;
        }
        if (!before(v, pool->heap[down], b)) {
            break;
        }
        place(pool, v, pos, pool->heap[down]);
        pos = down;
    }
    place(pool, v, pos, b);
}

static void resift(Pool *pool, View v, uint32_t pos)
{
    uint32_t b = pool->heap[pos];

    if (pos && before(v, b, pool->heap[(pos - 1) / 2])) {
        sift_up(pool, v, pos, b);
    } else {
        sift_down(pool, v, pos, b);
    }
}

bool rsd_pool_init(Ns *ns, Pool *pool)
{
    pool->first = ns->first;
    pool->end = ns->end;
    pool->obsolete_hint = ns->first;
    pool->heap = rsd_alloc(ns->drive, (ns->end - ns->first) *
                                      sizeof(uint32_t));
    return pool->heap;
}

void rsd_pool_fill(RsdDrive *drive, Pool *pool, uint32_t die)
{
    View v = view(drive, die);

    for (uint32_t b = pool->first; b < pool->end; b++) {
        if (v.blocks[b].pos != RSD_NONE) {
            pool->obsolete += v.blocks[b].obsolete;
            place(pool, v, pool->len++, b);
        }
    }
    for (uint32_t i = pool->len / 2; i-- > 0;) {
        sift_down(pool, v, i, pool->heap[i]);
    }
}

void rsd_pool_fini(RsdDrive *drive, Pool *pool)
{
    rsd_release(drive, pool->heap,
                (pool->end - pool->first) * sizeof(uint32_t));
}

void rsd_pool_insert(RsdDrive *drive, Pool *pool, uint32_t block)
{
    View v = view(drive, block / drive->die_blocks);
    uint32_t b = block % drive->die_blocks;

    if (v.blocks[b].obsolete) {
        pool->obsolete++;
        if (b < pool->obsolete_hint) {
            pool->obsolete_hint = b;
        }
    }
    sift_up(pool, v, pool->len++, b);
}

void rsd_pool_remove(RsdDrive *drive, Pool *pool, uint32_t block)
{
    View v = view(drive, block / drive->die_blocks);
    uint32_t b = block % drive->die_blocks;
    uint32_t pos = v.blocks[b].pos;

    pool->obsolete -= v.blocks[b].obsolete;
    pool->len--;
    if (pos != pool->len) {
        place(pool, v, pos, pool->heap[pool->len]);
        resift(pool, v, pos);
    }
    v.blocks[b].pos = RSD_NONE;
}

void rsd_pool_update(RsdDrive *drive, Pool *pool, uint32_t block)
{
    View v = view(drive, block / drive->die_blocks);

    resift(pool, v, v.blocks[block % drive->die_blocks].pos);
}

uint32_t rsd_pool_first_obsolete(RsdDrive *drive, Pool *pool, uint32_t die)
{
    View v = view(drive, die);

    if (!pool->obsolete) {
        return RSD_NONE;
    }
    for (uint32_t b = pool->obsolete_hint; b < pool->end; b++) {
        if (v.blocks[b].obsolete && v.blocks[b].pos != RSD_NONE) {
            pool->obsolete_hint = b;
            return die * drive->die_blocks + b;
        }
    }
    return RSD_NONE;
}
