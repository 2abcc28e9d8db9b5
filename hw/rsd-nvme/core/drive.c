/*
 * The drive: opening, and what the floors below say to those above them. This
 * file alone knows all of them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>

#include "front/front.h"
#include "ftl/zone/zone.h"

/* This is a drive with the parts of each floor. */
typedef struct Whole {
    RsdDrive drive;             /* first */
    Buffer buffer;
    Zrwa zrwa;
    Host host;
    Power power;
} Whole;

/*
 * From below
 */

static void op_done(RsdDrive *drive, Op *op)
{
    Ns *ns = &drive->ns[op->ns];

    if (op->unit) {
        rsd_buffer_programmed(drive, op);
    }
    ns->personality->op_done(ns, op);
}

static bool has_idle_work(const RsdDrive *drive, uint32_t die)
{
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        const Ns *ns = &drive->ns[i];

        if (ns->personality->has_background &&
            ns->personality->has_background(ns, die)) {
            return true;
        }
    }
    return false;
}

static bool idle(RsdDrive *drive, uint32_t die)
{
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        Ns *ns = &drive->ns[i];

        if (ns->personality->background &&
            ns->personality->background(ns, die)) {
            return true;
        }
    }
    return false;
}

static void timer(RsdDrive *drive, uint32_t number)
{
    if (number < RSD_HOST_LISTS) {
        rsd_host_event(drive, number);
    } else {
        drive->ns[0].personality->timer(&drive->ns[0]);
    }
}

static const ArrayUp array_up = {
    .step_begin = rsd_power_begin,
    .step_done = rsd_power_end,
    .wrote = rsd_power_wrote,
    .op_done = op_done,
    .op_freed = rsd_buffer_free_unit,
    .cmd_done = rsd_cmd_done,
    .has_idle_work = has_idle_work,
    .idle = idle,
    .timer = timer,
    .interrupt = rsd_power_event,
};

static void op_buffered(Ns *ns, Op *op)
{
    ns->personality->op_buffered(ns, op);
}

static void kept(Ns *ns, uint64_t lba)
{
    if (ns->personality->kept) {
        ns->personality->kept(ns, lba);
    }
}

static void closed(Ns *ns, Op *unit, const Op *by)
{
    if (ns->personality->closed) {
        ns->personality->closed(unit, by);
    }
}

static bool pads(const Ns *ns)
{
    return ns->personality->pad;
}

static void pad(Ns *ns, uint32_t block)
{
    ns->personality->pad(ns, block);
}

static const BufferUp buffer_up = {
    .op_buffered = op_buffered,
    .kept = kept,
    .closed = closed,
    .pads = pads,
    .pad = pad,
    .area_take = rsd_zrwa_take,
    .area_taken = rsd_zrwa_taken,
    .areas_secure = rsd_zrwa_secure,
};

/*
 * Namespaces
 */

#define TABLE(NAME, number, name, doc, traits) (&rsd_ftl_##name)
/* They are in the order of their numbers, which have no gap. */
static const Personality *const tables[] = { RSD_FTLS_LIST(TABLE) };
#undef TABLE

static void add_namespace(RsdDrive *drive, RsdFtl ftl, uint32_t first,
                          uint32_t end, uint32_t visible)
{
    Ns *ns = &drive->ns[drive->num_ns];

    *ns = (Ns){
        .drive = drive,
        .personality = tables[ftl],
        .index = drive->num_ns++,
        .first = first,
        .end = end,
        .visible = visible,
    };
    /* Opening the media has put that of namespace 0 into the settings. */
    ns->oob = ns->index ? rsd_media_get_oob(&drive->media, ns->index)
                        : drive->cfg.oob;
}

/* Divides the blocks of each die among the namespaces: the zones come first. */
static bool add_namespaces(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    const RsdConfig *cfg = &drive->cfg;
    uint32_t conv = cfg->conv_blocks;

    drive->dies = cfg->channels * cfg->ways;
    drive->die_blocks = cfg->blocks + cfg->spare_blocks;
    drive->pages = rsd_block_slots(cfg);
    drive->by_die = rsd_divisor(drive->die_blocks);
    drive->by_block = rsd_divisor(drive->pages);
    drive->unit = rsd_unit_slots(cfg);
    add_namespace(drive, cfg->ftl, 0, drive->die_blocks - conv,
                  cfg->blocks - conv);
    if (conv) {
        add_namespace(drive, RSD_FTL_PAGE, drive->die_blocks - conv,
                      drive->die_blocks, conv);
    }
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        Ns *ns = &drive->ns[i];

        if (!ns->personality->geometry(ns, err)) {
            return false;
        }
        if (ns->geo.zoned) {
            drive->zoned = ns;
        }
        if (ns->personality->cmd_size > drive->cmd_area) {
            /* The data behind it is aligned. */
            drive->cmd_area = rsd_div_round_up(ns->personality->cmd_size, 16) *
                              16;
        }
    }
    return true;
}

static size_t blocks_size(const RsdDrive *drive)
{
    return sizeof(Block) * drive->dies * drive->die_blocks;
}

/* Undoes it, except for commands that were not submitted. */
static void stop(RsdDrive *drive)
{
    rsd_cmds_stop(drive);
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        drive->ns[i].personality->close(&drive->ns[i]);
        drive->ns[i].waits = NULL;
        drive->ns[i].writes = NULL;
        drive->ns[i].watches_writes = false;
    }
    rsd_zrwa_fini(drive);
    rsd_buffer_fini(drive);
    rsd_bufs_fini(drive);
    rsd_sched_fini(drive);
    rsd_ops_fini(drive);
    rsd_release(drive, drive->blocks, blocks_size(drive));
    drive->sched = (Sched){ .now = drive->sched.now };
    *drive->host = (Host){ 0 };
    *drive->buffer = (Buffer){ .up = &buffer_up };
    *drive->zrwa = (Zrwa){ 0 };
    drive->blocks = NULL;
    drive->free_bufs = NULL;
    drive->seq = 0;
    drive->read_only = drive->failed = false;
    rsd_media_power_on(&drive->media);
}

/* Does the part of start() that the host's disk cannot make fail. */
static bool open_parts(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    for (uint32_t i = 0; drive->media.header && i < drive->num_ns; i++) {
        drive->ns[i].oob = rsd_media_get_oob(&drive->media, i);
    }
    if (drive->media.header) {
        drive->cfg.oob = rsd_media_get_oob(&drive->media, 0);
    }
    drive->blocks = rsd_alloc(drive, blocks_size(drive));
    if (!drive->blocks || !rsd_sched_init(drive) || !rsd_buffer_init(drive) ||
        !rsd_op_reserve(drive, RSD_OPS_AT_ONCE)) {
        rsd_set_error(err, "no memory for %u dies of %u blocks: choose fewer "
                      "blocks of more pages", drive->dies, drive->die_blocks);
        return false;
    }
    if (!rsd_buffer_load(drive, err) || !rsd_zrwa_load(drive, err)) {
        return false;
    }
    rsd_host_init(drive);
    rsd_cmds_start(drive);
    for (uint32_t d = 0; d < drive->dies; d++) {
        rsd_count_bad(drive, d);
    }
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        Ns *ns = &drive->ns[i];

        if (!ns->personality->open(ns, err)) {
            return false;
        }
    }
    return true;
}

/* Opens the media, while time goes on; fails as rsd_open() does. */
static bool start(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    bool ok = open_parts(drive, err);

    if (drive->media.faults.count) {
        rsd_set_error(err, "the host's disk cannot load a part of the media "
                      "file, or has no space to store into it: look at the "
                      "disk, then open the file again");
        return false;
    }
    return ok;
}

static void destroy(RsdDrive *drive)
{
    rsd_cmds_fini(drive);
    stop(drive);
    while (drive->free_cmds) {
        Cmd *cmd = drive->free_cmds;

        drive->free_cmds = cmd->next;
        free(cmd);
    }
    rsd_oplog_close(drive->power->log);
    rsd_media_close(&drive->media);
    rsd_scenario_free(drive->scenario);
    free(drive->power->list);
    free(drive);
}

static RsdDrive *new_drive(const RsdConfig *cfg)
{
    Whole *whole = calloc(1, sizeof(*whole));

    if (!whole) {
        return NULL;
    }
    whole->drive.cfg = *cfg;
    whole->drive.up = &array_up;
    whole->drive.buffer = &whole->buffer;
    whole->drive.zrwa = &whole->zrwa;
    whole->drive.host = &whole->host;
    whole->drive.power = &whole->power;
    whole->buffer.up = &buffer_up;
    return &whole->drive;
}

static bool begin_sync(RsdDrive *drive, const char *path,
                       char err[RSD_ERR_LEN])
{
    if (rsd_ftl_is(&drive->cfg, RSD_FTL_ROTATES)) {
        rsd_set_error(err, "host-sync: a disk (ftl=%s) overwrites its sectors "
                      "in place, which host-sync cannot undo; leave host-sync "
                      "out", rsd_ftl_names[drive->cfg.ftl]);
        return false;
    }
    return rsd_media_begin_sync(&drive->media, path,
                                drive->dies * drive->die_blocks, err);
}

typedef enum How { CHANGE, CHANGE_SYNCED, VIEW } How;

/* Opens a drive. With log NULL, it has none. */
static RsdDrive *open_drive(const char *path, const char *log,
                            const RsdConfig *cfg, How how,
                            char err[RSD_ERR_LEN])
{
    RsdDrive *drive;

    if (!rsd_config_check(cfg, err)) {
        return NULL;
    }
    drive = new_drive(cfg);
    if (!drive) {
        rsd_set_error(err, "no memory for a drive");
        return NULL;
    }
    if (path ? !rsd_media_open(&drive->media, path, &drive->cfg, how == VIEW,
                               err)
             : !rsd_media_open_memory(&drive->media, &drive->cfg, err)) {
        free(drive);
        return NULL;
    }
    drive->count = drive->media.counters;
    if (!add_namespaces(drive, err) ||
        (how == CHANGE_SYNCED && !begin_sync(drive, path, err)) ||
        (log && !rsd_power_open_log(drive, log, err))) {
        rsd_oplog_close(drive->power->log);
        rsd_media_close(&drive->media);
        free(drive);
        return NULL;
    }
    if (!log && drive->media.header && rsd_media_get_log_id(&drive->media)) {
        /* The log will not know the changes from now on. */
        rsd_media_set_log_id(&drive->media, 0);
    }
    if (!start(drive, err)) {
        destroy(drive);
        return NULL;
    }
    return drive;
}

RsdDrive *rsd_open(const char *path, const RsdConfig *cfg,
                   char err[RSD_ERR_LEN])
{
    return open_drive(path, NULL, cfg, CHANGE, err);
}

RsdDrive *rsd_open_synced(const char *path, const RsdConfig *cfg,
                          char err[RSD_ERR_LEN])
{
    return open_drive(path, NULL, cfg, CHANGE_SYNCED, err);
}

RsdDrive *rsd_open_logged(const char *path, const char *log_path,
                          const RsdConfig *cfg, char err[RSD_ERR_LEN])
{
    return open_drive(path, log_path, cfg, CHANGE, err);
}

RsdDrive *rsd_open_view(const char *path, const char *log_path,
                        char err[RSD_ERR_LEN])
{
    RsdConfig cfg;

    return rsd_media_info(path, &cfg, err)
               ? open_drive(path, log_path, &cfg, VIEW, err) : NULL;
}

void rsd_close(RsdDrive *drive)
{
    if (drive) {
        destroy(drive);
    }
}

const RsdConfig *rsd_config(const RsdDrive *drive)
{
    return &drive->cfg;
}

int rsd_media_sync(RsdDrive *drive)
{
    return rsd_media_to_disk(&drive->media);
}

void rsd_sync_end(RsdDrive *drive)
{
    rsd_media_end_sync(&drive->media);
}

uint32_t rsd_num_namespaces(const RsdDrive *drive)
{
    return drive->num_ns;
}

void rsd_geometry(const RsdDrive *drive, uint32_t ns, RsdGeometry *geo)
{
    *geo = drive->ns[ns].geo;
}

uint32_t rsd_oob(const RsdDrive *drive, uint32_t ns)
{
    return drive->ns[ns].oob;
}

/*
 * Power
 */

bool rsd_power_on(RsdDrive *drive, char err[RSD_ERR_LEN])
{
    stop(drive);
    if (!start(drive, err)) {
        drive->power->off = true;
        return false;
    }
    drive->power->off = false;
    return true;
}

bool rsd_rewind(RsdDrive *drive, uint64_t op, const RsdOutcomes *outcomes,
                char err[RSD_ERR_LEN])
{
    if (!rsd_power_can_rewind(drive, op, err)) {
        return false;
    }
    stop(drive);
    drive->power->off = true;
    if (!rsd_power_rewind(drive, op, outcomes, err) || !start(drive, err)) {
        return false;
    }
    drive->power->off = false;
    return true;
}
