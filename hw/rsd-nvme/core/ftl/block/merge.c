/*
 * Copying of pages into a unit: of merges, and of what has to be in a block
 * before the host's page, as pages are programmed in order.
 *
 * Each lane of the unit has one page in work: it is read from where its newest
 * content is, whichever die that is in, and programmed. So copies go on in
 * parallel in the dies of a unit, and one after the other in a die. With a page
 * the lane reads what it will program soon and the same row has. A page that
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

/* A row's buffer a lane, if pages have content. False: no memory */
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

/*
 * Queues the program of a lane's next pages, for which there is room. The
 * lane's number is in a field that only commands need.
 */
static void program(BlockMap *map, Job *job, uint32_t number, RsdCause cause,
                    uint8_t *buf, uint32_t n)
{
    RsdDrive *drive = map->ns->drive;
    Lane *lane = &job->to->lane[number];
    Op *op = rsd_op_new(map->ns, OP_PROGRAM, cause, lane->block);

    op->page = lane->next;
    op->count = n;
    op->buf = buf;
    op->job = job;
    op->index = number;
    job->copies += cause != RSD_CAUSE_PAD;
    lane->next += n;
    if (rsd_buffered(drive)) {
        rsd_buffer_write(drive, op);
    } else {
        rsd_sched_queue(drive, op);
    }
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

/* The row that has a page */
static Place row_of(const BlockMap *map, Place at)
{
    return (Place){ at.block, rsd_row_of(map->ns->drive, at.page) };
}

static bool same_place(Place a, Place b)
{
    return a.block == b.block && a.page == b.page;
}

/*
 * Reads the page that the lane is to program next and, of the pages that follow
 * in the lane, as many as a row has, those that are in the same one, up to the
 * first that is in another: the lane has room for one row.
 */
static void read_row(BlockMap *map, Job *job, uint32_t number, Place from)
{
    RsdDrive *drive = map->ns->drive;
    uint32_t page = job->to->lane[number].next, wanted = 0;
    Place row = row_of(map, from);

    for (uint32_t i = 0; i < drive->sched.row &&
                         rsd_unit_page(map, number, page + i) < job->end; i++) {
        Place at = rsd_map_find(map, lpn_of(map, job, number, page + i));

        if (at.block == RSD_NONE ||
            rsd_buffer_read_page(drive, at.block, at.page, NULL)) {
            continue;
        }
        if (!same_place(row_of(map, at), row)) {
            break;
        }
        wanted |= 1u << (at.page - row.page);
    }
    job->lane[number].from = from;
    rsd_queue_row_read(map->ns, job->cause, row.block, row.page, wanted,
                       job->lane[number].buf, job, number);
}

/* A slot of the lane's buffer; NULL without payload */
static uint8_t *slot_of(const Job *job, uint32_t number, uint32_t slot)
{
    uint8_t *buf = job->lane[number].buf;

    return buf ? buf + slot * RSD_SLOT_BYTES : NULL;
}

/* Programs the lane's next page, which was loaded with the row that has it. */
static void program_loaded(BlockMap *map, Job *job, uint32_t number, Place from)
{
    uint32_t slot = from.page - row_of(map, from).page;

    job->lane[number].loaded &= ~(1u << slot);
    program(map, job, number, job->cause, slot_of(job, number, slot), 1);
}

static bool is_loaded(const BlockMap *map, const Job *job, uint32_t number,
                      Place at)
{
    Place row = row_of(map, at);

    return same_place(row, row_of(map, job->lane[number].from)) &&
           job->lane[number].loaded >> (at.page - row.page) & 1;
}

/* Copies the lane's next page, which has content. */
static void copy_page(BlockMap *map, Job *job, uint32_t number)
{
    RsdDrive *drive = map->ns->drive;
    Place from = rsd_map_find(map, lpn_of(map, job, number,
                                          job->to->lane[number].next));
    uint32_t *loaded = &job->lane[number].loaded;
    uint8_t *buf;

    if (is_loaded(map, job, number, from)) {
        program_loaded(map, job, number, from);
        return;
    }
    if (*loaded == (1u << drive->sched.row) - 1) {
        *loaded = 0;            /* what was loaded lost its content meanwhile */
    }
    buf = slot_of(job, number, __builtin_ctz(~*loaded));
    if (rsd_buffer_read_page(drive, from.block, from.page, buf)) {
        program(map, job, number, job->cause, buf, 1);
    } else {
        read_row(map, job, number, from);
    }
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

    if (rsd_unit_page(map, number, page) >= job->end ||
        !make_room(map, job, number)) {
        return false;
    }
    while (n < most && rsd_unit_page(map, number, page + n) < job->end &&
           !rsd_map_valid(map, lpn_of(map, job, number, page + n))) {
        n++;
    }
    if (n) {
        program(map, job, number, RSD_CAUSE_PAD, NULL, n);
    } else {
        copy_page(map, job, number);
    }
    return true;
}

void rsd_merge_check(BlockMap *map, uint32_t lblock)
{
    Job *job = map->lblocks[lblock].job;
    Group *group = &map->groups[rsd_map_group(map, lblock)];

    if (!job || job->running || job->to->pending || map->ns->drive->failed ||
        (job->kind != RSD_JOB_FILL && !rsd_unit_is_safe(map, job->to))) {
        return;
    }
    map->lblocks[lblock].job = NULL;
    group->jobs--;
    group->merges -= job->kind != RSD_JOB_FILL;
    map->job_over(map, job);
}

void rsd_merge_free(BlockMap *map, Job *job)
{
    job->next_free = map->free_jobs;
    map->free_jobs = job;
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
        rsd_merge_free(map, job);
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
        job->lane[lane].loaded = 0;
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
    bool read = op->kind == OP_READ;

    if (drive->failed) {
        /*
         * It ends here; a copy that is not there is read where it was, or from
         * the write buffer.
         */
        if (op->failed && !read && op->cause != RSD_CAUSE_PAD &&
            !rsd_buffered(drive)) {
            job->to->lane[number].next = op->page;
        }
        rsd_op_free(drive, op);
        return;
    }
    if (read) {
        job->lane[number].loaded = op->wanted;
    }
    rsd_op_free(drive, op);
    if (!read) {
        go_on(map, job, number);
    } else if (make_room(map, job, number)) {
        program_loaded(map, job, number, job->lane[number].from);
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
