/*
 * Copying of pages into a unit: of merges, and of what has to be in a block
 * before the host's page, as pages are programmed in order.
 *
 * Each lane of the unit has one page in work: it is read from where its newest
 * content is, whichever die that is in, and programmed. So copies go on in
 * parallel in the dies of a unit, and one after the other in a die. A page that
 * has no content is filler (RSD_CAUSE_PAD).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "block-map.h"

static size_t job_size(const BlockMap *map)
{
    return sizeof(Job) + map->lanes * sizeof(uint8_t *);
}

static Job *new_job(BlockMap *map)
{
    RsdDrive *drive = map->ns->drive;
    Job *job = map->free_jobs;
    Job **jobs;

    if (job) {
        map->free_jobs = job->next_free;
        return job;
    }
    job = rsd_alloc(drive, job_size(map));
    jobs = rsd_alloc(drive, (map->num_jobs + 1) * sizeof(Job *));
    if (!job || !jobs) {
        rsd_release(drive, job, job_size(map));
        rsd_release(drive, jobs, (map->num_jobs + 1) * sizeof(Job *));
        return NULL;
    }
    for (uint32_t i = 0; i < map->num_jobs; i++) {
        jobs[i] = map->jobs[i];
    }
    rsd_release(drive, map->jobs, map->num_jobs * sizeof(Job *));
    map->jobs = jobs;
    job->number = map->num_jobs++;
    jobs[job->number] = job;
    return job;
}

static void free_buffers(BlockMap *map, Job *job)
{
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        rsd_buf_free(map->ns->drive, job->buf[lane]);
        job->buf[lane] = NULL;
    }
}

/* A page buffer a lane, if pages have content. False: no memory */
static bool take_buffers(BlockMap *map, Job *job)
{
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        job->buf[lane] = rsd_buf_new(map->ns->drive);
        if (!job->buf[lane] && map->ns->drive->media.data) {
            free_buffers(map, job);
            return false;
        }
    }
    return true;
}

static uint64_t lpn_of(const BlockMap *map, const Job *job, uint32_t lane,
                       uint32_t page)
{
    return (uint64_t)job->lblock * map->span + (uint64_t)page * map->lanes +
           lane;
}

/* Its job and lane are in a field that only commands need. */
static void queue_op(BlockMap *map, const Job *job, uint32_t lane, OpKind kind,
                     RsdCause cause, Place at, uint32_t n, uint8_t *buf)
{
    Op *op = rsd_op_new(map->ns, kind, cause, at.block);

    op->page = at.page;
    op->count = n;
    op->buf = buf;
    op->index = job->number * map->lanes + lane;
    rsd_sched_queue(map->ns->drive, op);
}

/* Queues a lane's next operation. One must be reserved. False: it is done. */
static bool next_page(BlockMap *map, Job *job, uint32_t number)
{
    Lane *lane = &job->to->lane[number];
    uint32_t page = lane->next, n = 0;

    while ((page + n) * map->lanes + number < job->end &&
           !rsd_map_valid(map, lpn_of(map, job, number, page + n))) {
        n++;
    }
    if (n) {
        queue_op(map, job, number, OP_PROGRAM, RSD_CAUSE_PAD,
                 (Place){ lane->block, page }, n, NULL);
        lane->next += n;
    } else if (page * map->lanes + number < job->end) {
        queue_op(map, job, number, OP_READ, job->cause,
                 rsd_map_find(map, lpn_of(map, job, number, page)), 1,
                 job->buf[number]);
    } else {
        return false;
    }
    return true;
}

RsdStatus rsd_merge(BlockMap *map, uint32_t lblock, Unit *to, uint32_t end,
                    JobKind kind)
{
    Job *job;

    if (!rsd_op_reserve(map->ns->drive, map->lanes)) {
        return RSD_E_NOMEM;
    }
    job = new_job(map);
    if (!job) {
        return RSD_E_NOMEM;
    }
    if (!take_buffers(map, job)) {
        job->next_free = map->free_jobs;
        map->free_jobs = job;
        return RSD_E_NOMEM;
    }
    job->lblock = lblock;
    job->to = to;
    job->end = end;
    job->kind = kind;
    job->cause = kind == RSD_JOB_WEAR ? RSD_CAUSE_WEAR : RSD_CAUSE_MERGE;
    job->copies = 0;
    job->running = 0;
    map->lblocks[lblock].job = job;
    map->groups[rsd_map_group(map, lblock)].jobs++;
    map->groups[rsd_map_group(map, lblock)].merges += kind != RSD_JOB_FILL;
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        job->running += next_page(map, job, lane);
    }
    if (!job->running) {
        free_buffers(map, job);
    }
    rsd_merge_check(map, lblock);
    return RSD_OK;
}

void rsd_merge_step(BlockMap *map, Op *op)
{
    RsdDrive *drive = map->ns->drive;
    Job *job = map->jobs[op->index / map->lanes];
    uint32_t number = op->index % map->lanes;
    bool loaded = op->kind == OP_READ;

    if (drive->failed) {
        /* it ends here; a copy that is not there is read where it was */
        if (op->failed && !loaded && op->cause != RSD_CAUSE_PAD) {
            job->to->lane[number].next = op->page;
        }
        rsd_op_free(drive, op);
        return;
    }
    rsd_op_free(drive, op);
    if (loaded) {
        Lane *lane = &job->to->lane[number];

        queue_op(map, job, number, OP_PROGRAM, job->cause,
                 (Place){ lane->block, lane->next }, 1, job->buf[number]);
        lane->next++;
        job->copies++;
        return;
    }
    if (next_page(map, job, number) || --job->running) {
        return;
    }
    free_buffers(map, job);
    if (job->to->next < job->end) {
        job->to->next = job->end;
    }
    rsd_merge_check(map, job->lblock);
}

void rsd_merge_fini(BlockMap *map)
{
    RsdDrive *drive = map->ns->drive;

    for (uint32_t i = 0; i < map->num_jobs; i++) {
        free_buffers(map, map->jobs[i]);
        rsd_release(drive, map->jobs[i], job_size(map));
    }
    rsd_release(drive, map->jobs, map->num_jobs * sizeof(Job *));
}
