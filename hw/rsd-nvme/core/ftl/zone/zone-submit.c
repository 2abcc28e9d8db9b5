/*
 * Commands to zones.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <string.h>

#include "zone.h"

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
    uint64_t lba = cmd->pub.lba, zone_size = drive->zoned->geo.zone_size;
    uint32_t left = cmd->pub.nlb, index = 0;
    uint64_t zones = (left >> drive->zoned->zone_shift) + 2;

    if (!rsd_op_reserve(drive, rsd_seg_max_ops(drive, left, zones)) ||
        !rsd_seg_reserve_epochs(drive, zones)) {
        return RSD_E_NOMEM;
    }
    while (left) {
        uint32_t zone = lba >> drive->zoned->zone_shift;
        uint64_t offset = lba & (zone_size - 1);
        uint64_t written = rsd_zrwa_start(drive, zone,
                                          rsd_seg_next(drive, zone));
        uint32_t here = left < zone_size - offset ? left : zone_size - offset;
        uint32_t n = 0;

        if (written > offset) {
            n = here < written - offset ? here : written - offset;
            rsd_seg_queue_pages(drive, OP_READ, RSD_CAUSE_HOST, cmd, zone, offset, n,
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
                                            : rsd_seg_find_blocks(drive, zone);

    if (status != RSD_OK) {
        return status;
    }
    if (!rsd_op_reserve(drive, ops + segments(drive)->lanes) ||
        !rsd_seg_reserve_epochs(drive, 2)) {
        return RSD_E_NOMEM;
    }
    if (rsd_buffered(drive)) {
        status = rsd_buffer_reserve(drive, nlb / drive->unit + 2);
        if (status != RSD_OK) {
            return status;
        }
    }
    status = rsd_seg_back(drive, zone,
                          segments(drive)->zones[zone].submitted + nlb);
    if (status == RSD_OK && !is_used(drive, zone)) {
        rsd_seg_attach_zone(drive, zone);
    }
    return status;
}

/* Programs the zone's next nlb pages. */
static RsdStatus append(RsdDrive *drive, Cmd *cmd, uint32_t zone,
                        RsdCause cause, uint32_t nlb)
{
    Zone *z = &segments(drive)->zones[zone];
    RsdStatus status = make_ready(drive, zone, nlb, rsd_seg_max_ops(drive, nlb, 1));

    if (status != RSD_OK) {
        return status;
    }
    if (cmd->pub.op == RSD_ZONE_FINISH) {
        rsd_seg_set_barrier(drive, zone, cmd);
    }
    rsd_seg_queue_pages(drive, OP_PROGRAM, cause, cmd, zone, z->submitted, nlb, 0);
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
    } else if (!rsd_op_reserve(drive, 2) || !rsd_seg_reserve_epochs(drive, 2)) {
        status = RSD_E_NOMEM;
    }
    if (status != RSD_OK) {
        return status;
    }
    if (cmd->pub.op == RSD_ZONE_FINISH) {
        rsd_seg_set_barrier(drive, zone, cmd);
    }
    z->submitted += commit;
    rsd_zrwa_queue(drive->zoned, cmd, area, write ? ZRWA_WRITE : ZRWA_COMMIT,
                   offset, write ? cmd->pub.nlb : commit,
                   rsd_seg_current_epoch(segments(drive), zone), units);
    if (cmd->pub.op == RSD_ZONE_FINISH ||
        z->submitted == drive->zoned->geo.zone_capacity) {
        rsd_zrwa_close(drive, area);
    }
    if (write && !drive->cfg.plp &&
        (drive->cfg.ack == RSD_ACK_PROGRAM || cmd->pub.fua)) {
        rsd_buffer_flush(drive->zoned, cmd);
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
    uint64_t offset = cmd->pub.lba & (drive->zoned->geo.zone_size - 1);
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
    uint64_t offset = cmd->pub.lba & (drive->zoned->geo.zone_size - 1);

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

    if (!rsd_op_reserve(drive, seg->lanes) || !rsd_seg_reserve_epochs(drive, 2)) {
        return RSD_E_NOMEM;
    }
    rsd_seg_set_barrier(drive, zone, cmd);
    rsd_seg_detach_zone(drive, zone);
    if (drive->cfg.reset == RSD_RESET_MARK) {
        return RSD_OK;
    }
    for (uint32_t lane = 0; lane < seg->lanes; lane++) {
        uint32_t block = block_of(drive, die + lane, map[lane]);

        if (entry_state(map[lane]) == SEG_INVALID &&
            drive->blocks[block].obsolete) {
            rsd_seg_queue_erase(drive, block, cmd, rsd_seg_current_epoch(seg, zone));
        }
    }
    return RSD_OK;
}

static RsdStatus submit_finish(RsdDrive *drive, Cmd *cmd, uint32_t zone)
{
    uint64_t submitted = segments(drive)->zones[zone].submitted;
    uint64_t rest = drive->zoned->geo.zone_capacity - submitted;
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
    if (!rsd_seg_reserve_epochs(drive, 1)) {
        return RSD_E_NOMEM;
    }
    rsd_seg_set_barrier(drive, zone, cmd);
    return RSD_OK;
}

RsdStatus rsd_seg_submit(Ns *ns, Cmd *cmd)
{
    RsdDrive *drive = ns->drive;
    uint32_t zone = cmd->pub.lba >> drive->zoned->zone_shift;

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

void rsd_seg_format(Ns *ns)
{
    RsdDrive *drive = ns->drive;

    for (uint32_t zone = 0; zone < drive->zoned->geo.num_zones; zone++) {
        rsd_seg_detach_zone(drive, zone);
        rsd_media_save_zone(&drive->media, zone, 0, 0);
        rsd_media_save_ext(&drive->media, zone, NULL, drive->cfg.zd_ext);
    }
}
