/*
 * What the array tells a page map: operations are done, a die is idle.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "page-ftl.h"

/* Pages of a unit: 4 planes, pages of 16 KiB, 4 of a word line */
#define MAX_UNIT 64u

/*
 * The host's disk failed: see RsdDrive.failed. What a page was to replace stays
 * valid, so that it is not erased, and a victim stays as it is.
 */
static void op_failed(PageFtl *ftl, Op *op)
{
    uint32_t number = page_number(ftl, op->block, op->page);
    bool program = op->kind == OP_PROGRAM;

    if (program && op->cmd) {
        rsd_page_unmap_page(ftl, number, op->cmd->pub.lba + op->index);
    } else if (program && !op->unit) {
        rsd_page_unmap_page(ftl, number, ftl->p2l[ftl->p2l[number] - 1]);
    }
    if (!op->cmd && !op->unit) {
        rsd_buf_free(ftl->drive, op->buf);
    }
    rsd_op_finish(ftl->drive, op);
}

/* A unit was programmed, see rsd_page_op_buffered(). */
static void unit_programmed(PageFtl *ftl, Op *op)
{
    uint32_t unit = ftl->drive->unit, block = op->block, end = op->page + 1;
    uint32_t old[MAX_UNIT];

    for (uint32_t i = 0; i < unit; i++) {
        uint32_t number = page_number(ftl, block, end - unit + i), lpn;
        RsdCause cause = rsd_buffer_cause(op, i);

        old[i] = 0;
        if (cause == RSD_CAUSE_PAD) {
            ftl->p2l[number] = 0;       /* as good as any: see is_current() */
            continue;
        }
        old[i] = ftl->p2l[number];
        lpn = rsd_buffer_lba(op, i);
        ftl->p2l[number] = lpn;
        /* it may have been trimmed since it was acknowledged */
        if (cause == RSD_CAUSE_HOST &&
            rsd_media_trimmed(&ftl->drive->media, lpn) &&
            rsd_page_is_content(ftl, lpn, number)) {
            rsd_media_set_trimmed(&ftl->drive->media, lpn, false);
        }
    }
    rsd_op_finish(ftl->drive, op);
    if (end == ftl->drive->pages) {
        rsd_page_close_block(ftl, block);
    }
    for (uint32_t i = 0; i < unit; i++) {
        if (old[i]) {
            rsd_page_invalidate(ftl, old[i] - 1);
            rsd_page_collect(ftl, frontier_of_page(ftl, old[i] - 1));
        }
    }
}

/* A page was programmed, for the host or as a copy. */
static void programmed(PageFtl *ftl, Op *op)
{
    uint32_t number = page_number(ftl, op->block, op->page);
    uint32_t old = ftl->p2l[number], block = op->block, page = op->page;
    bool copy = !op->cmd;
    uint32_t lpn = copy ? ftl->p2l[old - 1] : op->cmd->pub.lba + op->index;

    ftl->p2l[number] = lpn;
    if (old) {
        /* it is asked for below; the command may be returned meanwhile */
        __builtin_prefetch(&ftl->blocks[block_of(ftl, old - 1)], 1);
    }
    if (copy) {
        rsd_buf_free(ftl->drive, op->buf);
    } else if (rsd_media_trimmed(&ftl->drive->media, lpn)) {
        rsd_media_set_trimmed(&ftl->drive->media, lpn, false);
    }
    rsd_op_finish(ftl->drive, op);
    if (page + 1 == ftl->drive->pages) {
        rsd_page_close_block(ftl, block);
    }
    if (old) {
        uint32_t die = die_of(ftl, block_of(ftl, old - 1));

        /* what is copied has a page before */
        ftl->dies[die].victim.copying -= copy;
        rsd_page_invalidate(ftl, old - 1);
        if (copy && !ftl->dies[die].victim.stalled) {
            rsd_page_advance_victim(ftl, die);
        }
        rsd_page_collect(ftl, frontier_of(ftl, die));
    }
}

/* A victim was erased: its block is free. */
static void erased(PageFtl *ftl, Op *op)
{
    RsdDrive *drive = ftl->drive;
    uint32_t die = op->die, block = op->block;
    PageDie *pd = &ftl->dies[die];
    Victim *v = &pd->victim;
    Frontier *f = frontier_of(ftl, die);

    rsd_op_finish(drive, op);
    drive->blocks[block].erases--;
    ftl->frontiers[v->to].owed -= v->owed;
    f->victims--;
    ftl->victims--;
    if (v->cause == RSD_CAUSE_WEAR) {
        drive->count->wear_moves++;
        pd->levelled = drive->sched.dies[die].programmed;
    }
    if (rsd_rec_flags(drive->media.rec[block]) & RSD_BLOCK_BAD) {
        ftl->blocks[block].state = BLOCK_BAD;
        ftl->good--;
        rsd_page_look_at_room(ftl);
        rsd_wear_measure(ftl->ns, die, &pd->wear);
    } else {
        if (v->idle) {
            /* no program of it is to come soon */
            rsd_media_release(&drive->media, block);
        }
        ftl->blocks[block].state = BLOCK_FREE;
        ftl->blocks[block].map = false;
        rsd_pool_insert(drive, &pd->pool, block);
        f->free++;
        ftl->free++;
        f->space += drive->pages;
        rsd_wear_erased(ftl->ns, block, &pd->wear);
        pd->look = true;
    }
    v->block = RSD_NONE;
    ftl->retry = true;
    rsd_page_level_busy(ftl, die);
    rsd_page_collect(ftl, f);
    if (ftl->cache) {
        rsd_page_retry_stalled(ftl);
    }
}

void rsd_page_op_buffered(Ns *ns, Op *op)
{
    PageFtl *ftl = ns->state;
    bool copy = !op->cmd && op->cause != RSD_CAUSE_PAD && !op->job;
    uint32_t number = page_number(ftl, op->block, op->page - 1);
    bool going = ftl->going;

    ftl->going = true;
    if (op->cmd && ns->drive->cfg.plp && !op->failed) {
        uint32_t lpn = op->cmd->pub.lba + op->index;

        /* it is the content from now on, whatever was trimmed before */
        if (rsd_media_trimmed(&ftl->drive->media, lpn) &&
            rsd_page_is_content(ftl, lpn, number)) {
            rsd_media_set_trimmed(&ftl->drive->media, lpn, false);
        }
    }
    if (op->job) {
        rsd_cache_op_buffered(ftl, op);
    }
    if (copy) {
        uint32_t die = die_of(ftl, (ftl->p2l[number] - 1) /
                                   ftl->drive->pages);
        Victim *v = &ftl->dies[die].victim;

        v->copying--;
        if (!v->stalled) {
            rsd_page_advance_victim(ftl, die);
        }
    }
    if (op->cause != RSD_CAUSE_PAD) {
        ftl->in_flight--;
    }
    rsd_op_finish(ns->drive, op);
    /* a trim may wait for it */
    ftl->retry |= ftl->waits.head && ftl->waits.head->pub.op != RSD_WRITE;
    ftl->going = going;
    rsd_page_maybe_resume(ftl);
}

void rsd_page_op_done(Ns *ns, Op *op)
{
    PageFtl *ftl = ns->state;

    ftl->going = true;
    ftl->in_flight -= (op->kind != OP_READ || !op->cmd) && !op->unit;
    /* those that wait do so in vain */
    ftl->retry |= ns->drive->failed;
    if (op->kind != OP_READ) {
        ftl->stuck = RSD_OK;
    }
    if (op->kind == OP_READ && op->cmd) {
        rsd_op_finish(ns->drive, op);
    } else if (op->job) {
        rsd_cache_op_done(ftl, op);
    } else if (op->failed || (ns->drive->failed && op->kind == OP_READ)) {
        op_failed(ftl, op);
    } else if (op->kind == OP_READ) {
        rsd_page_copy_read(ftl, op);
    } else if (op->kind == OP_PROGRAM) {
        /* a trim may wait for it */
        ftl->retry |= ftl->waits.head &&
                      (ftl->cache || ftl->waits.head->pub.op != RSD_WRITE);
        if (op->unit) {
            unit_programmed(ftl, op);
        } else {
            programmed(ftl, op);
        }
    } else {
        erased(ftl, op);
    }
    ftl->going = false;
    rsd_page_maybe_resume(ftl);
}

bool rsd_page_background(Ns *ns, uint32_t die)
{
    PageFtl *ftl = ns->state;
    bool begun;

    if (!rsd_page_has_background(ns, die)) {
        return false;
    }
    ftl->going = true;
    begun = rsd_page_begin_background(ftl, die);
    ftl->going = false;
    rsd_page_maybe_resume(ftl);
    return begun;
}
