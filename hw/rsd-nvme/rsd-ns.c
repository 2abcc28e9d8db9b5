/*
 * A namespace whose data is in modelled NAND flash. With ftl=rsd it is RISA's
 * RSD behind NVMe's Zoned Namespace command set: a zone is a logical segment,
 * one flash block in each of a set of channels and ways (RISA 3.1.1). With
 * another translation layer it is a conventional namespace (rsd-conv.c).
 *
 *     -device nvme,id=nvme0,serial=rsd0,inline-queues=on
 *     -device rsd-ns,bus=nvme0,media=drive.rsd,preset=risa,oob=64
 *
 * hw/nvme owns the queues and the zone state machine, core/ the flash and its
 * timing, and this directory what lies between. README.md documents the
 * properties, log pages and limits.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "system/system.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/qdev-properties.h"
#include "rsd-ns.h"
#include "core/api/rsd-power.h"
#include "core/api/trace.h"
#include "trace.h"

#define RSD_DEFAULT_PRESET "risa"
/* SMART warns when less than this part of the spare blocks is left */
#define RSD_SPARE_THRESHOLD_PERCENT 10

QEMU_BUILD_BUG_ON(RSD_LOG_ID < NVME_LOG_VENDOR_START);
QEMU_BUILD_BUG_ON(sizeof(RsdLogPage) > NVME_NS_LOG_MAX);

static const NvmeLBAF rsd_ns_lbaf[] = {
    { .ds = 12, .ms = 0 },
    { .ds = 12, .ms = 16 },
    { .ds = 12, .ms = 64 },
    { .ds = 12, .ms = 128 },
};

/*
 * Flash
 */

void rsd_flash_unref(RsdFlash *flash)
{
    if (!flash || --flash->refs) {
        return;
    }

    if (flash->recorder) {
        rsd_record_close(flash->recorder);
    }
    qemu_remove_exit_notifier(&flash->exit);
    timer_free(flash->timer);
    rsd_close(flash->drive);
    g_free(flash->unsure);
    g_free(flash);
}

uint8_t rsd_flash_warnings(const RsdFlash *flash)
{
    uint8_t warnings = 0;
    RsdHealth health;

    rsd_health(flash->drive, &health);
    if (health.available_spare < RSD_SPARE_THRESHOLD_PERCENT) {
        warnings |= NVME_SMART_SPARE;
    }
    if (health.read_only) {
        warnings |= NVME_SMART_MEDIA_READ_ONLY;
    }
    return warnings;
}

/* QEMU ends, and its devices get no notice. */
static void rsd_flash_at_exit(Notifier *notifier, void *data)
{
    RsdFlash *flash = container_of(notifier, RsdFlash, exit);

    rsd_flash_warn_of_cut(flash);
    if (flash->host_sync) {
        rsd_sync_end(flash->drive);
    }
}

/*
 * Opens a drive, and a log or a trace if one is asked for. It has one
 * reference.
 */
static RsdFlash *rsd_flash_open(const RsdNamespace *rs, const RsdConfig *cfg,
                                Error **errp)
{
    const char *media = rs->media, *trace = rs->trace;
    char err[RSD_ERR_LEN];
    uint64_t hash = 0;
    RsdFlash *flash;
    RsdDrive *drive;

    if (trace && !rsd_trace_hash_media(media, &hash, err)) {
        error_setg(errp, "%s", err);
        return NULL;
    }
    drive = rs->op_log ? rsd_open_logged(media, rs->op_log, cfg, err)
          : rs->host_sync ? rsd_open_synced(media, cfg, err)
                          : rsd_open(media, cfg, err);
    if (!drive) {
        error_setg(errp, "%s", err);
        return NULL;
    }

    flash = g_new0(RsdFlash, 1);
    flash->refs = 1;
    flash->drive = drive;
    flash->cut_at_time = UINT64_MAX;
    flash->host_sync = rs->host_sync;
    flash->exit.notify = rsd_flash_at_exit;
    qemu_add_exit_notifier(&flash->exit);
    QTAILQ_INIT(&flash->waiting);
    flash->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, rsd_flash_timer, flash);
    /* Present warnings are in the log page, and are not reported as new. */
    flash->warnings = rsd_flash_warnings(flash);
    if (!rsd_flash_setup_power(flash, rs, errp) ||
        (rs->faults && !rsd_flash_set_faults(flash, rs->faults, errp))) {
        rsd_flash_unref(flash);
        return NULL;
    }
    if (rs->cut_at_time != UINT64_MAX) {
        rsd_flash_arm(flash);
    }
    if (trace) {
        flash->recorder = rsd_record_open(trace, flash, hash, errp);
        if (!flash->recorder) {
            rsd_flash_unref(flash);
            return NULL;
        }
    }
    return flash;
}

void rsd_ns_attach(NvmeNamespace *ns, RsdFlash *flash, uint32_t index)
{
    RsdNsBase *base = RSD_NS_BASE(ns);

    /*
     * It acknowledges from RAM that a power cut empties, or from the memory of
     * the host's machine.
     */
    ns->volatile_cache = rsd_is_volatile(rsd_config(flash->drive)) ||
                         flash->host_sync;

    flash->refs++;
    flash->ns[index] = ns;
    base->flash = flash;
    base->index = index;
}

void rsd_ns_cleanup(NvmeNamespace *ns)
{
    RsdNsBase *base = RSD_NS_BASE(ns);

    if (base->flash) {
        base->flash->ns[base->index] = NULL;
        rsd_flash_unref(base->flash);
        base->flash = NULL;
    }
}

/*
 * Settings
 */

/*
 * Checks the properties of nvme-ns. Refuses those that this namespace decides
 * itself, instead of ignoring them.
 */
bool rsd_ns_check_inherited(NvmeNamespace *ns, Error **errp)
{
    const NvmeNamespaceParams *p = &ns->params;
    const char *name = NULL, *instead = "leave it out";

    if (p->ms || p->mset) {
        name = p->ms ? "ms" : "mset";
        instead = "use oob";
    } else if (p->pi || p->pil || p->pif) {
        name = "pi, pil or pif";
        instead = "protection information is not modelled";
    } else if (p->zoned) {
        name = "zoned";
        instead = "use ftl=rsd, or another ftl";
    } else if (p->zone_size_bs != 128 * MiB || p->zone_cap_bs) {
        name = p->zone_cap_bs ? "zoned.zone_capacity" : "zoned.zone_size";
        instead = "a zone is a segment: use segment, channels, ways and pages";
    } else if (p->zd_extension_size) {
        name = "zoned.descr_ext_size";
        instead = "use zd-ext";
    } else if (p->numzrwa || p->zrwas || p->zrwafg != -1) {
        name = p->numzrwa ? "zoned.numzrwa" :
               p->zrwas ? "zoned.zrwas" : "zoned.zrwafg";
        instead = "use zrwa, zrwa-size and zrwa-flush";
    } else if (p->fdp.ruhs) {
        name = "fdp.ruhs";
        instead = "zones place the data";
    }

    if (name) {
        error_setg(errp, "%s does not take '%s': %s",
                   object_get_typename(OBJECT(ns)), name, instead);
        return false;
    }

    /* hw/nvme checks it too, but after a media file would have been made. */
    if (p->max_active_zones && p->max_open_zones > p->max_active_zones) {
        error_setg(errp, "'zoned.max_open' is %" PRIu32 ", must be from 0 to "
                   "'zoned.max_active', %" PRIu32, p->max_open_zones,
                   p->max_active_zones);
        return false;
    }
    return true;
}

/*
 * Takes the settings that the user gave, over those of the preset. A drive that
 * exists and is opened without a preset has the settings of its file.
 */
static bool rsd_ns_settings(RsdNamespace *rs, RsdConfig *cfg, bool exists,
                            Error **errp)
{
    const char *name = rs->preset ? rs->preset : RSD_DEFAULT_PRESET;
    const RsdPreset *preset = rsd_preset_find(name);
    char err[RSD_ERR_LEN];

    if (!preset) {
        g_autoptr(GString) names = g_string_new(NULL);

        for (size_t i = 0; i < rsd_num_presets; i++) {
            g_string_append_printf(names, "%s%s", i ? ", " : "",
                                   rsd_presets[i].name);
        }
        error_setg(errp, "'preset' is '%s', must be one of: %s", name,
                   names->str);
        return false;
    }

    preset->apply(cfg);

    if (exists && !rs->preset) {
        RsdConfig file;

        if (!rsd_media_info(rs->media, &file, err)) {
            error_setg(errp, "%s", err);
            return false;
        }
        for (size_t i = 0; i < rsd_num_props; i++) {
            if (rsd_props[i].geometry) {
                *rsd_prop_value(cfg, &rsd_props[i]) =
                    *rsd_prop_value(&file, &rsd_props[i]);
            }
        }
    }

    for (size_t i = 0; i < rsd_num_props; i++) {
        if (rs->set[i]) {
            *rsd_prop_value(cfg, &rsd_props[i]) =
                *rsd_prop_value(&rs->cfg, &rsd_props[i]);
        }
    }

    if (!rsd_config_check(cfg, err)) {
        error_setg(errp, "%s", err);
        return false;
    }
    return true;
}

/* Checks the settings for zones, when the drive is known. */
static bool rsd_ns_check_zones(NvmeNamespace *ns, const RsdConfig *cfg,
                               const RsdGeometry *geo, Error **errp)
{
    const NvmeNamespaceParams *p = &ns->params;

    if (!geo->zoned && (p->max_open_zones || p->max_active_zones ||
                        p->cross_zone_read)) {
        error_setg(errp, "'zoned.max_open', 'zoned.max_active' and "
                   "'zoned.cross_read' need zones: leave them out, or use "
                   "ftl=rsd");
        return false;
    }
    if (geo->zoned && p->max_open_zones > geo->num_zones) {
        error_setg(errp, "'zoned.max_open' is %" PRIu32 ", must be from 0 to "
                   "the number of zones, %" PRIu32, p->max_open_zones,
                   geo->num_zones);
        return false;
    }
    if (p->max_active_zones && cfg->zrwa > p->max_active_zones) {
        error_setg(errp, "'zrwa' is %" PRIu64 ", must be from 0 to "
                   "'zoned.max_active', %" PRIu32, cfg->zrwa,
                   p->max_active_zones);
        return false;
    }
    return true;
}

static void rsd_ns_zoned_init(NvmeNamespace *ns, const RsdGeometry *geo)
{
    const RsdConfig *cfg = &RSD_NS(ns)->cfg;

    ns->oncs = NVME_ONCS_WRITE_ZEROES;
    if (rsd_num_namespaces(RSD_NS_BASE(ns)->flash->drive) > 1) {
        /*
         * A controller has one answer to whether there is Dataset Management.
         * For the conventional namespace's sake it is yes. Here its
         * deallocation is advice that is not followed.
         */
        ns->oncs |= NVME_ONCS_DSM;
    }
    ns->size = geo->lbas * RSD_LBA_SIZE;
    ns->params.zoned = true;
    ns->params.zone_size_bs = geo->zone_size * RSD_LBA_SIZE;
    ns->params.zone_cap_bs = geo->zone_capacity * RSD_LBA_SIZE;
    ns->params.zd_extension_size = cfg->zd_ext;
    if (cfg->zrwa) {
        ns->params.numzrwa = cfg->zrwa;
        ns->params.zrwas = cfg->zrwa_size;
        ns->params.zrwafg = cfg->zrwa_flush;
    }
}

static bool rsd_ns_setup(NvmeNamespace *ns, Error **errp)
{
    RsdNamespace *rs = RSD_NS(ns);
    char err[RSD_ERR_LEN];
    RsdConfig cfg = {};
    RsdGeometry geo;
    RsdFlash *flash;
    bool exists;

    if (!rsd_ns_check_inherited(ns, errp)) {
        return false;
    }
    if (!rs->media) {
        error_setg(errp, TYPE_RSD_NS " needs 'media', the file that holds the "
                   "flash; it is created if it does not exist");
        return false;
    }

    if (rs->trace && (rs->op_log || rs->cut_at_op ||
                      rs->cut_at_time != UINT64_MAX)) {
        error_setg(errp, "'trace' records no power cuts: leave it out, or "
                   "'op-log', 'cut-at-op' and 'cut-at-time'");
        return false;
    }

    if (rs->host_sync && rs->op_log) {
        error_setg(errp, "'host-sync' does not bring 'op-log' to the host's "
                   "disk: leave out one of them");
        return false;
    }

    exists = access(rs->media, F_OK) == 0;
    if (!rsd_ns_settings(rs, &cfg, exists, errp)) {
        return false;
    }
    if (!exists && !rsd_media_create(rs->media, &cfg, err)) {
        error_setg(errp, "%s", err);
        return false;
    }

    flash = rsd_flash_open(rs, &cfg, errp);
    if (!flash) {
        goto fail;
    }
    flash->command_memory = rs->command_memory;
    flash->vendor_commands = rs->vendor_commands;
    rsd_ns_attach(ns, flash, 0);
    rsd_flash_unref(flash);

    rsd_geometry(flash->drive, 0, &geo);
    if (!rsd_ns_check_zones(ns, &cfg, &geo, errp)) {
        goto fail;
    }

    rs->cfg = *rsd_config(flash->drive);
    if (rs->set[rsd_prop_find("oob") - rsd_props] && rs->cfg.oob != cfg.oob) {
        warn_report("'%s' is formatted with %" PRIu64 " bytes of OOB, not %"
                    PRIu64 ": use Format NVM (nvme format) to change it",
                    rs->media, rs->cfg.oob, cfg.oob);
    }

    ns->blkconf.logical_block_size = RSD_LBA_SIZE;
    ns->params.ms = rs->cfg.oob;
    if (geo.zoned) {
        rsd_ns_zoned_init(ns, &geo);
    } else {
        rsd_conv_init(ns);
    }

    trace_rsd_nvme_open(nvme_nsid(ns), rs->media,
                        rsd_num_namespaces(flash->drive));
    return true;

fail:
    /* A media file that was made for this drive is of no use. */
    if (!exists) {
        unlink(rs->media);
    }
    return false;
}

/*
 * Restores zones as a controller that lost power leaves them: open zones are
 * closed, or empty if nothing was written. The write pointer is not stored; it
 * follows the highest programmed page. A random write area stays.
 */
static bool rsd_ns_restore(NvmeNamespace *ns, Error **errp)
{
    RsdDrive *drive = RSD_NS_BASE(ns)->flash->drive;

    /* The format initializes zones like this, which now exist. */
    nvme_ns_init_format(ns);

    for (uint32_t i = 0; i < ns->num_zones; i++) {
        NvmeZone *zone = &ns->zone_array[i];
        uint8_t za;
        RsdZone info;

        rsd_zone_get(drive, i, &info);
        za = info.attrs & NVME_ZA_ZD_EXT_VALID;
        if (za) {
            memcpy(nvme_get_zd_extension(ns, i), rsd_zone_ext(drive, i),
                   ns->params.zd_extension_size);
        }

        if (info.state == NVME_ZONE_STATE_READ_ONLY ||
            info.state == NVME_ZONE_STATE_OFFLINE) {
            nvme_set_zone_state(zone, info.state);
            zone->d.za = info.state == NVME_ZONE_STATE_OFFLINE ? 0 : za;
        } else if (info.written == ns->zone_capacity ||
                   (info.state == NVME_ZONE_STATE_FULL &&
                    (info.attrs & RSD_ZA_FINISHED))) {
            nvme_set_zone_state(zone, NVME_ZONE_STATE_FULL);
            zone->d.za = za;
            zone->w_ptr = zone->d.wp = nvme_zone_wr_boundary(zone);
            QTAILQ_INSERT_TAIL(&ns->full_zones, zone, entry);
        } else if (info.written || za || info.zrwa) {
            if (ns->params.max_active_zones &&
                ns->nr_active_zones == ns->params.max_active_zones) {
                error_setg(errp, "'zoned.max_active' is %" PRIu32 ", but more "
                           "zones of '%s' are active: raise it, or start with "
                           "the former value and finish or reset zones",
                           ns->params.max_active_zones, RSD_NS(ns)->media);
                return false;
            }
            nvme_set_zone_state(zone, NVME_ZONE_STATE_CLOSED);
            zone->d.za = za;
            if (info.zrwa) {
                zone->d.za |= NVME_ZA_ZRWA_VALID;
                ns->zns.numzrwa--;
            }
            zone->w_ptr = zone->d.wp = zone->d.zslba + info.next;
            QTAILQ_INSERT_TAIL(&ns->closed_zones, zone, entry);
            nvme_aor_inc_active(ns);
        }
    }

    return true;
}

static void rsd_ns_zone_changed(NvmeNamespace *ns, NvmeZone *zone)
{
    RsdNamespace *rs = RSD_NS(ns);
    RsdDrive *drive = rs->parent_obj.flash->drive;
    uint32_t idx = zone - ns->zone_array;
    uint8_t attrs = zone->d.za;

    if (zone->d.za & NVME_ZA_ZD_EXT_VALID) {
        rsd_zone_set_ext(drive, idx, nvme_get_zd_extension(ns, idx));
    }
    if (zone == rs->finishing) {
        attrs |= RSD_ZA_FINISHED;
        rs->finishing = NULL;
    }
    rsd_zone_save(drive, idx, nvme_get_zone_state(zone), attrs);
}

/*
 * The drive counts for its namespaces together, so the first one reports all.
 */
void rsd_ns_host_stats(NvmeNamespace *ns, struct nvme_stats *stats)
{
    RsdNsBase *base = RSD_NS_BASE(ns);
    RsdCounters c;

    if (base->index) {
        return;
    }

    rsd_counters(base->flash->drive, &c);
    stats->units_read += c.host_read_pages * RSD_LBA_SIZE;
    stats->units_written += c.host_write_pages * RSD_LBA_SIZE;
    stats->read_commands += c.host_read_cmds;
    stats->write_commands += c.host_write_cmds;
}

/*
 * Reports spare, wear and errors as the flash has them; the worst namespace
 * counts.
 */
void rsd_ns_health(NvmeNamespace *ns, NvmeSmartLog *smart)
{
    RsdNsBase *base = RSD_NS_BASE(ns);
    uint64_t good, used;
    RsdHealth health;
    RsdCounters c;

    rsd_counters(base->flash->drive, &c);
    rsd_health(base->flash->drive, &health);
    good = c.blocks_total - c.blocks_bad;
    used = good ? 100 * c.wear_sum / (good * c.endurance)
                : c.blocks_total ? 100 : 0;     /* a disk has none to wear */

    if (!smart->available_spare_threshold ||
        health.available_spare < smart->available_spare) {
        smart->available_spare = health.available_spare;
    }
    smart->available_spare_threshold = RSD_SPARE_THRESHOLD_PERCENT;
    smart->percentage_used = MAX(smart->percentage_used, MIN(used, 255));
    if (!base->index) {
        smart->media_errors[0] =
            cpu_to_le64(le64_to_cpu(smart->media_errors[0]) + c.media_errors);
    }
    smart->critical_warning |= rsd_flash_warnings(base->flash);
}

size_t rsd_ns_vendor_log(NvmeNamespace *ns, uint8_t lid, void *buf)
{
    if (lid != RSD_LOG_ID) {
        return 0;
    }
    rsd_log_page(RSD_NS_BASE(ns)->flash->drive, buf);
    return sizeof(RsdLogPage);
}

static const NvmeNamespaceOps rsd_ns_ops = {
    .lbaf = rsd_ns_lbaf,
    .nlbaf = ARRAY_SIZE(rsd_ns_lbaf),
    .setup = rsd_ns_setup,
    .restore = rsd_ns_restore,
    .cleanup = rsd_ns_cleanup,
    .prepare = rsd_ns_prepare,
    .submit = rsd_ns_submit,
    .abandon = rsd_ns_abandon,
    .cancel = rsd_ns_cancel,
    .flush = rsd_ns_flush,
    .flush_cancel = rsd_ns_flush_cancel,
    .parts_done = rsd_ns_parts_done,
    .zone_reset = rsd_ns_zone_reset,
    .zone_finish = rsd_ns_zone_finish,
    .zone_zrwa = rsd_ns_zone_zrwa,
    .zone_commit = rsd_ns_zone_commit,
    .zone_changed = rsd_ns_zone_changed,
    .format = rsd_ns_format,
    .host_stats = rsd_ns_host_stats,
    .health = rsd_ns_health,
    .vendor_log = rsd_ns_vendor_log,
    .vendor_admin = rsd_ns_vendor_admin,
    .vendor_opcodes = rsd_ns_vendor_opcodes,
    .reset = rsd_ns_reset,
};

/*
 * For tests of the software above, qom-set makes a zone fail now, as a drive
 * does that runs out of good blocks.
 */
static void rsd_ns_degrade(Object *obj, Visitor *v, const char *name,
                           void *opaque, Error **errp)
{
    NvmeNamespace *ns = NVME_NS(obj);
    NvmeZoneState state = (uintptr_t)opaque;
    uint32_t idx;

    if (!visit_type_uint32(v, name, &idx, errp)) {
        return;
    }
    if (!DEVICE(obj)->realized) {
        error_setg(errp, "'%s' is for a running drive: use qom-set", name);
        return;
    }
    if (idx >= ns->num_zones) {
        error_setg(errp, "'%s' is %" PRIu32 ", must be from 0 to %" PRIu32,
                   name, idx, ns->num_zones - 1);
        return;
    }
    rsd_ns_drop_area(ns, &ns->zone_array[idx]);
    nvme_ns_degrade_zone(ns, &ns->zone_array[idx], state);
}

static const Property rsd_ns_props[] = {
    DEFINE_PROP_STRING("media", RsdNamespace, media),
    DEFINE_PROP_STRING("preset", RsdNamespace, preset),
    DEFINE_PROP_STRING("trace", RsdNamespace, trace),
    DEFINE_PROP_STRING("op-log", RsdNamespace, op_log),
    DEFINE_PROP_UINT64("cut-at-op", RsdNamespace, cut_at_op, 0),
    DEFINE_PROP_UNSIGNED("cut-at-time", RsdNamespace, cut_at_time, UINT64_MAX,
                         rsd_prop_ns, uint64_t),
    DEFINE_PROP_STRING("cut-outcomes", RsdNamespace, cut_outcomes),
    DEFINE_PROP_STRING("faults", RsdNamespace, faults),
    DEFINE_PROP_SIZE("command-memory", RsdNamespace, command_memory, GiB),
    DEFINE_PROP_BOOL("host-sync", RsdNamespace, host_sync, false),
    DEFINE_PROP_BOOL("vendor-commands", RsdNamespace, vendor_commands, true),
};

static void rsd_ns_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);

    dc->desc = "NVMe namespace in modelled NAND flash: RISA's RSD, or an FTL";
    device_class_set_props(dc, rsd_ns_props);
    NVME_NS_CLASS(oc)->ops = &rsd_ns_ops;

    object_class_property_set_description(oc, "media",
        "file that holds the flash; created if it does not exist");
    object_class_property_set_description(oc, "preset",
        "settings to start from: custom, redo, risa, zn540, 980pro, "
        "tlc-2024 or barracuda-320 "
        "(default risa, or what an existing media file says)");
    object_class_property_set_description(oc, "trace",
        "file to record what the drive does in, for rsdsim; must not exist");
    object_class_property_set_description(oc, "op-log",
        "file that keeps a log of operations, for rewinding; created if it "
        "does not exist");
    object_class_property_set_description(oc, "cut-at-op",
        "the power is cut when this operation is done (default 0: never)");
    object_class_property_set_description(oc, "cut-at-time",
        "the power is cut at this virtual time, in ns or as 4s (default: never)");
    object_class_property_set_description(oc, "cut-outcomes",
        "what becomes of what is in flight at that cut: a seed, or a letter "
        "each: a = absent, t = torn, c = complete (default 0)");
    object_class_property_set_description(oc, "faults",
        "file of rules by which faults happen");
    object_class_property_set_description(oc, "command-memory",
        "host memory for the data of commands in flight; beyond, they wait "
        "before it is fetched (default 1G)");
    object_class_property_set_description(oc, "host-sync",
        "what a flush or FUA makes safe is on the host's disk (default off)");
    object_class_property_set_description(oc, "vendor-commands",
        "the guest may cut the power, rewind, and make zones and blocks fail "
        "(default on)");
    rsd_ns_class_add_props(oc);

    object_class_property_add(oc, "zone-read-only", "uint32", NULL,
                              rsd_ns_degrade, NULL,
                              (void *)(uintptr_t)NVME_ZONE_STATE_READ_ONLY);
    object_class_property_set_description(oc, "zone-read-only",
        "qom-set only: the zone of this index becomes read-only");
    object_class_property_add(oc, "zone-offline", "uint32", NULL,
                              rsd_ns_degrade, NULL,
                              (void *)(uintptr_t)NVME_ZONE_STATE_OFFLINE);
    object_class_property_set_description(oc, "zone-offline",
        "qom-set only: the zone of this index goes offline");
}

static void rsd_ns_instance_init(Object *obj)
{
    rsd_preset_find(RSD_DEFAULT_PRESET)->apply(&RSD_NS(obj)->cfg);
}

/* A namespace that failed to realize has not been cleaned up yet. */
static void rsd_ns_instance_finalize(Object *obj)
{
    rsd_ns_cleanup(NVME_NS(obj));
}

static const TypeInfo rsd_ns_base_info = {
    .name = TYPE_RSD_NS_BASE,
    .parent = TYPE_NVME_NS,
    .abstract = true,
    .instance_size = sizeof(RsdNsBase),
    .instance_finalize = rsd_ns_instance_finalize,
};

static const TypeInfo rsd_ns_info = {
    .name = TYPE_RSD_NS,
    .parent = TYPE_RSD_NS_BASE,
    .instance_size = sizeof(RsdNamespace),
    .instance_init = rsd_ns_instance_init,
    .class_init = rsd_ns_class_init,
};

static void rsd_ns_register_types(void)
{
    type_register_static(&rsd_ns_base_info);
    type_register_static(&rsd_ns_info);
}

type_init(rsd_ns_register_types)
