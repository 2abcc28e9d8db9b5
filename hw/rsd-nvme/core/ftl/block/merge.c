/*
 * Copying of pages into a unit: of merges, and of what has to be in a block
 * before the host's page, as pages are programmed in order.
 *
 * Each lane of the unit has one page in work: it is read from where its newest
 * content is, whichever die that is in, and programmed. So copies go on in
 * parallel in the dies of a unit, and one after the other in a die. A page that
 * has no content is filler (RSD_CAUSE_PAD). With a write buffer, a page that is
 * still there is read from there, and one that is there is as good as
 * programmed; but the end of a merge, other than one that merely fills, is when
 * all of the unit is safe.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "block-map.h"

static size_t job_size(const BlockMap *map)
{
    return sizeof(Job) + map->lanes * sizeof(((Job *)NULL)->lane[0]);
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
    jobs[map->num_jobs++] = job;
    return job;
}

static void free_buffers(BlockMap *map, Job *job)
{
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        rsd_buf_free(map->ns->drive, job->lane[lane].buf);
        job->lane[lane].buf = NULL;
    }
}

/* A page buffer a lane, if pages have content. False: no memory */
static bool take_buffers(BlockMap *map, Job *job)
{
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        job->lane[lane].buf = rsd_buf_new(map->ns->drive);
        if (!job->lane[lane].buf && map->ns->drive->media.data) {
            free_buffers(map, job);
            return false;
        }
    }
    return true;
}

static uint64_t lpn_of(const BlockMap *map, const Job *job, uint32_t lane,
                       uint32_t page)
{
    return (uint64_t)job->lblock * map->span +
           rsd_unit_page(map, lane, page);
}

/* The lane's number is in a field that only commands need. */
static void queue_op(BlockMap *map, Job *job, uint32_t lane, OpKind kind,
                     RsdCause cause, Place at, uint32_t n)
{
    RsdDrive *drive = map->ns->drive;
    Op *op = rsd_op_new(map->ns, kind, cause, at.block);

    op->page = at.page;
    op->count = n;
    op->buf = cause == RSD_CAUSE_PAD ? NULL : job->lane[lane].buf;
    op->job = job;
    op->index = lane;
    if (rsd_buffered(drive) && kind == OP_PROGRAM) {
        rsd_buffer_write(drive, op);
    } else {
        rsd_sched_queue(drive, op);
    }
}

/* Queues the program of a lane's next pages, for which there is room. */
static void program(BlockMap *map, Job *job, uint32_t number, RsdCause cause,
                    uint32_t n)
{
    Lane *lane = &job->to->lane[number];

    job->copies += cause != RSD_CAUSE_PAD;
    lane->next += n;
    queue_op(map, job, number, OP_PROGRAM, cause,
             (Place){ lane->block, lane->next - n }, n);
}

/* Room for what the lane will program. False: it is stalled. */
static bool make_room(BlockMap *map, Job *job, uint32_t number)
{
    RsdStatus status = rsd_buffer_reserve(map->ns->drive, 1);

    if (status == RSD_OK) {
        return true;
    }
    job->lane[number].stalled = true;
    map->num_stalled++;
    map->stalled = status;
    return false;
}

/*
 * Queues a lane's next operation. One must be reserved. False: it is done, or
 * stalled.
 */
static bool next_page(BlockMap *map, Job *job, uint32_t number)
{
    RsdDrive *drive = map->ns->drive;
    uint32_t page = job->to->lane[number].next, n = 0;
    uint32_t most = rsd_buffered(drive) ? map->grain - page % map->grain
                                        : map->span;
    Place from;

    if (rsd_unit_page(map, number, page) >= job->end ||
        !make_room(map, job, number)) {
        return false;
    }
    while (n < most && rsd_unit_page(map, number, page + n) < job->end &&
           !rsd_map_valid(map, lpn_of(map, job, number, page + n))) {
        n++;
    }
    if (n) {
        program(map, job, number, RSD_CAUSE_PAD, n);
        return true;
    }
    from = rsd_map_find(map, lpn_of(map, job, number, page));
    if (rsd_buffer_read_page(drive, from.block, from.page,
                             job->lane[number].buf)) {
        program(map, job, number, job->cause, 1);
    } else {
        queue_op(map, job, number, OP_READ, job->cause, from, 1);
    }
    return true;
}

/* The lane has nothing under way: goes on, or ends, as the job may with it. */
static void go_on(BlockMap *map, Job *job, uint32_t number)
{
    if (next_page(map, job, number) || job->lane[number].stalled ||
        --job->running) {
        return;
    }
    free_buffers(map, job);
    if (job->to->next < job->end) {
        job->to->next = job->end;
    }
    rsd_merge_check(map, job->lblock);
}

void rsd_merge_retry(BlockMap *map)
{
    for (uint32_t i = 0; i < map->num_jobs * map->lanes; i++) {
        Job *job = map->jobs[i / map->lanes];
        uint32_t number = i % map->lanes;

        if (!job->lane[number].stalled) {
            continue;
        }
        if (!rsd_op_reserve(map->ns->drive, 1)) {
            map->stalled = RSD_E_NOMEM;
            continue;
        }
        job->lane[number].stalled = false;
        map->num_stalled--;
        go_on(map, job, number);
    }
}

uint32_t rsd_merge_running(const BlockMap *map)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < map->num_jobs; i++) {
        n += map->jobs[i]->running;
    }
    return n - map->num_stalled;
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
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        job->lane[lane].stalled = false;
    }
    map->lblocks[lblock].job = job;
    map->groups[rsd_map_group(map, lblock)].jobs++;
    map->groups[rsd_map_group(map, lblock)].merges += kind != RSD_JOB_FILL;
    rsd_map_lblock_changed(map, lblock);
    rsd_map_group_changed(map, rsd_map_group(map, lblock));
    for (uint32_t lane = 0; lane < map->lanes; lane++) {
        job->running += next_page(map, job, lane) || job->lane[lane].stalled;
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
    Job *job = op->job;
    uint32_t number = op->index;
    bool loaded = op->kind == OP_READ;

    if (drive->failed) {
        /*
         * It ends here; a copy that is not there is read where it was, or from
         * the write buffer.
         */
        if (op->failed && !loaded && op->cause != RSD_CAUSE_PAD &&
            !rsd_buffered(drive)) {
            job->to->lane[number].next = op->page;
        }
        rsd_op_free(drive, op);
        return;
    }
    rsd_op_free(drive, op);
    if (!loaded) {
        go_on(map, job, number);
    } else if (make_room(map, job, number)) {
        program(map, job, number, job->cause, 1);
    }
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
