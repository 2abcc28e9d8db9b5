/*
 * Faults by rule of commands, see api/scenario.h, and scenarios of drives.
 *
 * Zones. A rule makes a zone fail when a write to it begins, behind this write.
 * The zone state machine is the caller's, so the drive tells it, and what comes
 * before the caller has asked is refused here. A caller without zone states
 * never asks.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>

#include "front.h"

/* These are the values of RsdScenario.zones. */
enum { ZONE_WELL, ZONE_READ_ONLY, ZONE_OFFLINE };

static uint32_t zone_of(const RsdDrive *drive, uint64_t lba)
{
    return lba >> drive->zoned->zone_shift;
}

/*
 * Says whether a zone that has failed, and that nobody has asked for, refuses
 * that.
 */
static bool is_refused(const RsdDrive *drive, const Cmd *cmd, RsdStatus *status)
{
    const RsdCmd *pub = &cmd->pub;
    const uint8_t *zones = drive->scenario->zones;
    uint32_t end;

    if (!zones || !drive->scenario->failed_zones ||
        pub->ns != drive->zoned->index || pub->op == RSD_FLUSH ||
        pub->op == RSD_ZONE_FINISH) {
        return false;
    }
    if (pub->op != RSD_READ) {
        *status = RSD_E_READONLY;
        return zones[zone_of(drive, pub->lba)] != ZONE_WELL;
    }
    *status = RSD_E_MEDIA;
    end = zone_of(drive, pub->lba + pub->nlb - 1);
    for (uint32_t zone = zone_of(drive, pub->lba); zone <= end; zone++) {
        if (zones[zone] == ZONE_OFFLINE) {
            return true;
        }
    }
    return false;
}

static void inject(RsdDrive *drive, RsdRule *rule, uint64_t lba)
{
    rsd_inject(drive, rule, (RsdInjected){
        .die = UINT64_MAX, .block = UINT64_MAX, .page = UINT64_MAX, .lba = lba,
    });
}

/*
 * Each logical block of a write is a candidate. If it is lost, nothing of it is
 * left.
 */
static void corrupt(RsdDrive *drive, RsdRule *rule, const RsdCmd *cmd,
                    bool lost)
{
    for (uint32_t i = 0; i < cmd->nlb; i++) {
        if (!rsd_rule_has(&rule->lba, cmd->lba + i) ||
            !rsd_rule_chooses(rule) || lost) {
            continue;
        }
        if (cmd->data) {
            uint64_t bit = rsd_random(~rule->seed.from, rule->candidates) %
                           (RSD_PAGE_SIZE * 8);

            cmd->data[(uint64_t)i * RSD_PAGE_SIZE + bit / 8] ^= 1 << bit % 8;
        }
        inject(drive, rule, cmd->lba + i);
    }
}

/*
 * Loses a write, and says whether it is written. In zones, something has to be
 * written; elsewhere, nothing is.
 */
static bool lose(const RsdDrive *drive, const Cmd *cmd)
{
    const RsdCmd *pub = &cmd->pub;

    if (!drive->ns[pub->ns].geo.zoned) {
        return true;
    }
    if (pub->data) {
        memset(pub->data, 0, (size_t)pub->nlb * RSD_PAGE_SIZE);
    }
    if (pub->oob) {
        memset(pub->oob, 0, (size_t)pub->nlb * cmd->oob_len);
    }
    return false;
}

/* The last place that has room for all of it is followed by the first one. */
static void misdirect(const RsdDrive *drive, const RsdRule *rule, RsdCmd *cmd)
{
    uint64_t places = drive->ns[cmd->ns].geo.lbas - cmd->nlb + 1;

    cmd->lba = (cmd->lba + rule->by.from % places) % places;
}

static void fail_zone(RsdScenario *scenario, uint32_t zone, uint8_t how)
{
    scenario->failed_zones += scenario->zones[zone] == ZONE_WELL;
    if (scenario->zones[zone] < how) {
        scenario->zones[zone] = how;
    }
}

/* Says whether a kind of fault of commands applies in that namespace. */
static bool applies(const RsdDrive *drive, RsdFaultKind kind, uint32_t ns)
{
    bool zoned = drive->ns[ns].geo.zoned;

    switch (kind) {
    case RSD_FAULT_PROGRAM_RULE:
    case RSD_FAULT_ERASE_RULE:
    case RSD_FAULT_READ_RULE:
    case RSD_FAULT_LATENCY_RULE:
    case RSD_NUM_FAULT_KINDS:
        return false;           /* they are about the flash */
    case RSD_FAULT_CORRUPT_RULE:
    case RSD_FAULT_LOST_RULE:
        return true;
    case RSD_FAULT_MISDIRECT_RULE:
        return !zoned;
    case RSD_FAULT_READ_ONLY_RULE:
    case RSD_FAULT_OFFLINE_RULE:
        return zoned;
    }
    return false;
}

/* Says whether the write has one of those logical blocks. */
static bool is_at(const RsdRule *rule, const RsdCmd *cmd)
{
    return !rule->lba.given || (cmd->lba <= rule->lba.to &&
                                cmd->lba + cmd->nlb > rule->lba.from);
}

bool rsd_inject_command(RsdDrive *drive, Cmd *cmd, RsdStatus *status)
{
    RsdScenario *scenario = drive->scenario;
    RsdCmd *pub = &cmd->pub;
    bool is_over = false;

    if (is_refused(drive, cmd, status)) {
        return true;
    }
    *status = RSD_OK;
    for (uint32_t i = 0; pub->op == RSD_WRITE && i < scenario->num_rules; i++) {
        RsdRule *rule = &scenario->rules[i];

        if (!applies(drive, rule->kind, pub->ns) || !is_at(rule, pub)) {
            continue;
        }
        if (rule->kind == RSD_FAULT_CORRUPT_RULE) {
            corrupt(drive, rule, pub, is_over);
            continue;
        }
        if (!rsd_rule_chooses(rule) || is_over) {
            continue;
        }
        inject(drive, rule, pub->lba);
        if (rule->kind == RSD_FAULT_LOST_RULE) {
            is_over = lose(drive, cmd);
        } else if (rule->kind == RSD_FAULT_MISDIRECT_RULE) {
            misdirect(drive, rule, pub);
        } else {
            fail_zone(scenario, zone_of(drive, pub->lba),
                      rule->kind == RSD_FAULT_OFFLINE_RULE ? ZONE_OFFLINE
                                                           : ZONE_READ_ONLY);
        }
    }
    return is_over;
}

/*
 * Loading
 */

/* Says whether a kind applies in one of the drive's namespaces. */
static bool has_place(const RsdDrive *drive, RsdFaultKind kind)
{
    for (uint32_t i = 0; i < drive->num_ns; i++) {
        if (applies(drive, kind, i)) {
            return true;
        }
    }
    return false;
}

/*
 * Returns the logical blocks of the largest namespace where a rule may apply.
 */
static uint64_t num_lbas(const RsdDrive *drive, RsdFaultKind kind)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < drive->num_ns; i++) {
        if ((kind == RSD_FAULT_READ_RULE || applies(drive, kind, i)) &&
            drive->ns[i].geo.lbas > most) {
            most = drive->ns[i].geo.lbas;
        }
    }
    return most;
}

/*
 * Returns NULL if the drive has the subject of a rule. Otherwise returns why
 * not, and a remedy.
 */
static const char *misfit(const RsdDrive *drive, const RsdRule *rule)
{
    if (rule->kind < RSD_FAULT_CORRUPT_RULE) {
        if (rsd_ftl_is(&drive->cfg, RSD_FTL_ROTATES)) {
            return "a disk has no flash; use corrupt, lost or misdirect";
        }
    } else if (!has_place(drive, rule->kind)) {
        return rule->kind == RSD_FAULT_MISDIRECT_RULE
               ? "this drive has zones alone, which are written at their write "
                 "pointers; use lost or corrupt"
               : "this drive has no zones; leave the rule out";
    }
    if (rule->die.given && rule->die.from >= drive->dies) {
        return "this drive has fewer dies; they are counted from 0 on";
    }
    if (rule->block.given && rule->block.from >= drive->die_blocks) {
        return "a die of this drive has fewer flash blocks; they are counted "
               "from 0 on";
    }
    if (rule->page.given && rule->page.from >= drive->pages) {
        return "a flash block of this drive has fewer pages; they are counted "
               "from 0 on";
    }
    if (rule->lba.given && rule->lba.from >= num_lbas(drive, rule->kind)) {
        return "no namespace where it applies has that many logical blocks; "
               "they are counted from 0 on";
    }
    return NULL;
}

bool rsd_faults_load(RsdDrive *drive, const char *path, char err[RSD_ERR_LEN])
{
    RsdScenario *scenario = rsd_scenario_read(path, err);

    if (!scenario) {
        return false;
    }
    for (uint32_t i = 0; i < scenario->num_rules; i++) {
        const RsdRule *rule = &scenario->rules[i];
        const char *reason = misfit(drive, rule);

        if (reason) {
            rsd_set_error(err, "faults: %s:%u: '%s': %s", path, rule->line,
                          rsd_fault_info[rule->kind].name, reason);
            rsd_scenario_free(scenario);
            return false;
        }
    }
    if (drive->zoned) {
        scenario->zones = calloc(drive->zoned->geo.num_zones, 1);
        if (!scenario->zones) {
            rsd_set_error(err, "faults: no memory for the states of %u zones",
                          drive->zoned->geo.num_zones);
            rsd_scenario_free(scenario);
            return false;
        }
    }
    rsd_scenario_free(drive->scenario);
    drive->scenario = scenario;
    drive->watched = true;
    return true;
}

void rsd_faults_tell(RsdDrive *drive,
                     void (*told)(void *opaque, const RsdInjected *fault),
                     void *opaque)
{
    if (drive->scenario) {
        drive->scenario->told = told;
        drive->scenario->opaque = opaque;
    }
}

bool rsd_faults_zone(RsdDrive *drive, uint32_t *zone, bool *offline)
{
    RsdScenario *scenario = drive->scenario;

    if (!scenario || !scenario->failed_zones) {
        return false;
    }
    *zone = 0;
    while (scenario->zones[*zone] == ZONE_WELL) {
        (*zone)++;
    }
    *offline = scenario->zones[*zone] == ZONE_OFFLINE;
    scenario->zones[*zone] = ZONE_WELL;
    scenario->failed_zones--;
    return true;
}
