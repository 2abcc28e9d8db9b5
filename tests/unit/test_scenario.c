/*
 * Faults by rule, beside a model that knows what each logical block holds and
 * which faults have happened: nothing is lost but by them, what they destroy is
 * reported, and the rest goes on. Each translation layer, each kind of rule.
 *
 * RSD_TEST_OPS is how many commands each rule gets on each drive; else few.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <unistd.h>

#include "floors.h"
#include "harness.h"
#include "rsd-power.h"

#define MAX_BLOCKS 4096

/* What a logical block holds: a pattern of fill_page(). Tag 0: zeroes */
typedef struct Content {
    uint64_t tag, page;
    uint64_t other;             /* or this tag: of a write that failed */
    uint32_t flipped;           /* bits that a rule has inverted */
    bool lost;                  /* it cannot be read, */
    bool may_be_lost;           /* or perhaps: the drive was copying it */
} Content;

typedef struct Lab {
    Bed bed;
    Rng rng;
    const char *rules;
    char *file;
    Content content[MAX_BLOCKS];
    uint64_t next[MAX_BLOCKS];          /* of a zone: where writes go on */
    uint8_t failed[MAX_BLOCKS];         /* 1: read-only, 2: offline */
    uint64_t tag;
    uint64_t faults[RSD_NUM_FAULT_KINDS];
    uint64_t flips;             /* bits found inverted */
    uint64_t errors;            /* reads that failed, as they should */
    uint64_t refused;           /* writes, by a drive or a zone that is over */
    uint64_t hash;              /* of all faults told */
    bool lost_write, misdirected;       /* the one that goes on */
} Lab;

static bool has(const RsdFaultValue *key, uint64_t number)
{
    return !key->given || (number >= key->from && number <= key->to);
}

/* Whose a page of a conventional drive is, or UINT64_MAX */
static uint64_t owner(const Lab *lab, const RsdInjected *fault)
{
    const RsdDrive *drive = lab->bed.drive;
    uint32_t block = fault->die * drive->die_blocks + fault->block;
    RsdSpare spare;

    memcpy(&spare, rsd_media_oob(&drive->media, block, fault->page) +
                   RSD_SPARE_OFFSET, sizeof(spare));
    return spare.magic == RSD_SPARE_MAGIC && !spare.kind ? spare.lpn
                                                         : UINT64_MAX;
}

static void told(void *opaque, const RsdInjected *fault)
{
    Lab *lab = opaque;
    const RsdRule *rule = fault->rule;
    const uint64_t words[] = { fault->time_ns, rule->line, fault->candidate,
                               fault->die, fault->block, fault->page,
                               fault->lba };
    uint64_t lba = fault->lba;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        lab->hash = (lab->hash ^ words[i]) * 1099511628211u;
    }
    lab->faults[rule->kind]++;
    /* where the rule wants them, and which of them */
    CHECK(has(&rule->die, fault->die));
    CHECK(has(&rule->block, fault->block));
    CHECK(fault->page == UINT64_MAX || has(&rule->page, fault->page) ||
          (rule->kind == RSD_FAULT_PROGRAM_RULE &&
           has(&rule->page, fault->page + lab->bed.drive->unit - 1)));
    CHECK(!rule->every.given || fault->candidate % rule->every.from == 0);
    CHECK(!rule->at.given || fault->candidate == rule->at.from);
    CHECK(!rule->times.given || rule->faults <= rule->times.from);
    switch (rule->kind) {
    case RSD_FAULT_READ_RULE:
        CHECK(has(&rule->lba, lba));
        if (lba != UINT64_MAX) {
            lab->content[lba].lost = true;
        } else if (owner(lab, fault) != UINT64_MAX) {
            lab->content[owner(lab, fault)].may_be_lost = true;
        }
        break;
    case RSD_FAULT_CORRUPT_RULE:
        CHECK(has(&rule->lba, lba));
        lab->content[lba].flipped++;
        break;
    case RSD_FAULT_LOST_RULE:
        lab->lost_write = true;
        break;
    case RSD_FAULT_MISDIRECT_RULE:
        lab->misdirected = true;
        break;
    case RSD_FAULT_READ_ONLY_RULE:
    case RSD_FAULT_OFFLINE_RULE:
        lba >>= lab->bed.drive->zoned->zone_shift;
        if (!lab->failed[lba] || rule->kind == RSD_FAULT_OFFLINE_RULE) {
            lab->failed[lba] = rule->kind == RSD_FAULT_OFFLINE_RULE ? 2 : 1;
        }
        break;
    case RSD_FAULT_PROGRAM_RULE:
    case RSD_FAULT_ERASE_RULE:
    case RSD_FAULT_LATENCY_RULE:
    case RSD_NUM_FAULT_KINDS:
        break;
    }
}

static void load(Lab *lab)
{
    char err[RSD_ERR_LEN];

    if (!rsd_faults_load(lab->bed.drive, lab->file, err)) {
        FAIL("%s", err);
    }
    rsd_faults_tell(lab->bed.drive, told, lab);
}

static void write_rules(const char *path, const char *rules)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(rules, file) >= 0 && !fclose(file));
}

static void lab_open(Lab *lab, const RsdConfig *cfg, const char *rules,
                     uint64_t seed)
{
    *lab = (Lab){ .rng = { seed }, .rules = rules };
    lab->bed = bed_open(cfg, temp_path("faulty.rsd"));
    lab->file = (char *)temp_path("rules");
    write_rules(lab->file, rules);
    CHECK(lab->bed.geo.lbas <= MAX_BLOCKS);
    load(lab);
}

static RsdStatus command(Lab *lab, RsdOp op, uint64_t at, uint32_t nlb,
                         RsdCmd **result)
{
    RsdDrive *drive = lab->bed.drive;
    uint32_t oob = rsd_oob(drive, 0);
    RsdCmd *cmd = rsd_cmd_new(drive, 0, op, at, nlb);
    RsdStatus status;

    CHECK(cmd);
    for (uint32_t i = 0; op == RSD_WRITE && i < nlb; i++) {
        fill_page(cmd->data + (size_t)i * PAGE,
                  oob ? cmd->oob + (size_t)i * oob : NULL, oob, at + i,
                  lab->tag);
    }
    status = rsd_submit(drive, cmd, lab->bed.now);
    status = status == RSD_OK ? finish(&lab->bed, cmd) : status;
    if (result) {
        *result = cmd;
    } else {
        rsd_cmd_free(drive, cmd);
    }
    return status;
}

/* One bit at most differs, if a rule has inverted so many. */
static bool is_flipped(const uint8_t *data, const uint8_t *oob,
                       uint32_t oob_len, const Content *c, uint64_t *flips)
{
    uint8_t want[PAGE] = { 0 }, want_oob[128] = { 0 };
    uint32_t bits = 0;

    if (c->tag) {
        fill_page(want, want_oob, oob_len, c->page, c->tag);
    }
    for (uint32_t i = 0; i < PAGE; i++) {
        bits += __builtin_popcount(data[i] ^ want[i]);
    }
    *flips += bits;
    return bits == c->flipped && !memcmp(oob, want_oob, oob_len);
}

static void set_content(Lab *lab, uint64_t at, uint64_t page, uint64_t tag)
{
    lab->content[at] = (Content){ .tag = tag, .page = page };
}

static void read_block(Lab *lab, uint64_t at)
{
    uint32_t oob_len = rsd_oob(lab->bed.drive, 0);
    bool zoned = lab->bed.geo.zoned, may_be_lost;
    uint32_t zone = zoned ? at / lab->bed.geo.zone_size : 0;
    Content *c = &lab->content[at];
    static const uint8_t none[128];
    RsdCmd *cmd;
    RsdStatus status = command(lab, RSD_READ, at, 1, &cmd);

    may_be_lost = c->may_be_lost;
    if (status == RSD_E_MEDIA && may_be_lost) {
        c->lost = true;
    }
    if (status != (c->lost || (zoned && lab->failed[zone] == 2)
                   ? RSD_E_MEDIA : RSD_OK)) {
        FAIL("%s: block %" PRIu64 " reads: %s", lab->rules, at,
             rsd_status_name(status));
    }
    if (status == RSD_OK && c->other &&
        *(uint64_t *)cmd->data >> 32 == c->other) {
        set_content(lab, at, at, c->other);
    }
    c->other = 0;
    if (status == RSD_OK &&
        !is_flipped(cmd->data, oob_len ? cmd->oob : none, oob_len, c,
                    &lab->flips)) {
        FAIL("%s: block %" PRIu64 " does not hold pattern %" PRIu64 " of %"
             PRIu64 " with %u bits inverted, but %" PRIx64, lab->rules, at,
             c->tag, c->page, c->flipped, *(uint64_t *)cmd->data);
    }
    lab->errors += status != RSD_OK;
    rsd_cmd_free(lab->bed.drive, cmd);
}

/* What a misdirected write overwrote, and what it was to overwrite */
static void move_content(Lab *lab, uint64_t at, uint32_t nlb,
                         const Content *before)
{
    uint64_t places = lab->bed.geo.lbas - nlb + 1;
    uint64_t to = (at + lab->bed.drive->scenario->rules[0].by.from) % places;
    Content moved[8];

    memcpy(moved, &lab->content[at], nlb * sizeof(*moved));
    memcpy(&lab->content[at], before, nlb * sizeof(*moved));
    memcpy(&lab->content[to], moved, nlb * sizeof(*moved));
}

static void write_blocks(Lab *lab, uint64_t at, uint32_t nlb)
{
    Content before[8];
    RsdStatus status;

    memcpy(before, &lab->content[at], nlb * sizeof(*before));
    lab->tag++;
    for (uint32_t i = 0; i < nlb; i++) {
        set_content(lab, at + i, at + i, lab->tag);
    }
    lab->lost_write = lab->misdirected = false;
    status = command(lab, RSD_WRITE, at, nlb, NULL);
    if (status != RSD_OK) {
        if (status != RSD_E_READONLY) {
            FAIL("%s: a write of %u at %" PRIu64 ": %s", lab->rules, nlb, at,
                 rsd_status_name(status));
        }
        memcpy(&lab->content[at], before, nlb * sizeof(*before));
        for (uint32_t i = 0; i < nlb; i++) {
            lab->content[at + i].other = lab->tag;
        }
        lab->refused++;
        return;
    }
    if (lab->lost_write && lab->bed.geo.zoned) {
        for (uint32_t i = 0; i < nlb; i++) {
            set_content(lab, at + i, at + i, 0);
        }
    } else if (lab->lost_write) {
        memcpy(&lab->content[at], before, nlb * sizeof(*before));
    } else if (lab->misdirected) {
        move_content(lab, at, nlb, before);
    }
    if (lab->bed.geo.zoned) {
        lab->next[at / lab->bed.geo.zone_size] += nlb;
    }
}

static void step_conventional(Lab *lab)
{
    uint32_t nlb = 1 + rng_below(&lab->rng, 8);
    uint64_t at = rng_below(&lab->rng, lab->bed.geo.lbas - nlb + 1);

    switch (rng_below(&lab->rng, 8)) {
    case 0:
        if (command(lab, RSD_TRIM, at, nlb, NULL) == RSD_OK) {
            for (uint32_t i = 0; i < nlb; i++) {
                set_content(lab, at + i, at + i, 0);
            }
        }
        break;
    case 1:
    case 2:
    case 3:
        read_block(lab, at);
        break;
    default:
        write_blocks(lab, at, nlb);
        break;
    }
}

static void step_zoned(Lab *lab)
{
    const RsdGeometry *geo = &lab->bed.geo;
    uint32_t zone = rng_below(&lab->rng, geo->num_zones);
    uint64_t first = zone * geo->zone_size, next = lab->next[zone];
    uint64_t nlb = 1 + rng_below(&lab->rng, 8);
    RsdStatus status;
    bool over;

    if (rng_below(&lab->rng, 3) == 0) {
        read_block(lab, first + rng_below(&lab->rng, geo->zone_capacity));
    } else if (next < geo->zone_capacity) {
        nlb = nlb < geo->zone_capacity - next ? nlb : geo->zone_capacity - next;
        write_blocks(lab, first + next, nlb);
    } else {
        over = lab->failed[zone] || lab->bed.drive->read_only;
        status = command(lab, RSD_ZONE_RESET, first, 0, NULL);
        /* the drive may have become read-only meanwhile */
        CHECK(status == RSD_OK ? !over
                               : status == RSD_E_READONLY &&
                                 (over || lab->bed.drive->read_only));
        for (uint64_t i = 0; status == RSD_OK && i < geo->zone_size; i++) {
            set_content(lab, first + i, first + i, 0);
        }
        lab->next[zone] = status == RSD_OK ? 0 : next;
    }
}

static void check_all(Lab *lab)
{
    const RsdGeometry *geo = &lab->bed.geo;

    for (uint64_t at = 0; at < geo->lbas; at++) {
        if (!geo->zoned || at % geo->zone_size < geo->zone_capacity) {
            read_block(lab, at);
        }
    }
}

/* Counters agree with what was told, and candidates with what was done. */
static void check_counts(Lab *lab, const uint64_t faults[])
{
    const RsdScenario *scenario = lab->bed.drive->scenario;
    RsdCounters c = counters(&lab->bed);
    uint64_t all = 0;

    for (int kind = 0; kind < RSD_NUM_FAULT_KINDS; kind++) {
        CHECK_EQ((&c.fault_program)[kind], faults[kind]);
        all += faults[kind];
    }
    for (uint32_t i = 0; i < scenario->num_rules; i++) {
        const RsdRule *rule = &scenario->rules[i];

        all -= rule->faults;
        CHECK(!rule->every.given || rule->times.given ||
              rule->faults == rule->candidates / rule->every.from);
        if (rule->kind == RSD_FAULT_CORRUPT_RULE && !rule->lba.given) {
            CHECK_EQ(rule->candidates, c.host_write_pages);
        }
        if (rule->kind == RSD_FAULT_LOST_RULE ||
            rule->kind == RSD_FAULT_MISDIRECT_RULE) {
            CHECK_EQ(rule->candidates, c.host_write_cmds);
        }
        if (rule->kind == RSD_FAULT_LATENCY_RULE && !rule->op.given &&
            lab->bed.drive->unit == 1) {
            CHECK_EQ(rule->candidates,
                     c.nand_reads + c.nand_programs + c.erase_on_demand +
                     c.erase_idle);
        }
    }
    CHECK_EQ(all, 0);
}

/* Is there nothing more to be done with it? */
static bool is_over(const Lab *lab)
{
    uint32_t failed = 0;

    for (uint32_t i = 0; i < lab->bed.geo.num_zones; i++) {
        failed += lab->failed[i] != 0;
    }
    return lab->bed.drive->read_only ||
           (failed && failed == lab->bed.geo.num_zones);
}

typedef struct Sums {
    uint64_t faults[RSD_NUM_FAULT_KINDS], flips, errors, refused, grown, hash;
} Sums;

/*
 * So many commands; when a drive is over, with another one. Then it is closed
 * and opened again: what was there is, and what could not be read cannot.
 */
static Sums experiment(const RsdConfig *cfg, const char *rules, uint64_t ops,
                       uint64_t seed)
{
    Lab *lab = malloc(sizeof(*lab));
    Sums sums = { 0 };

    for (uint64_t done = 0; done < ops;) {
        uint64_t faults[RSD_NUM_FAULT_KINDS];

        lab_open(lab, cfg, rules, seed++);
        for (; done < ops && !is_over(lab); done++) {
            if (lab->bed.geo.zoned) {
                step_zoned(lab);
            } else {
                step_conventional(lab);
            }
            if (rng_below(&lab->rng, 16) == 0) {
                bed_pass(&lab->bed, rng_below(&lab->rng, 10000000));
            }
        }
        bed_drain(&lab->bed);
        check_all(lab);
        memcpy(faults, lab->faults, sizeof(faults));
        check_counts(lab, faults);
        sums.grown += counters(&lab->bed).blocks_grown;
        bed_reopen(&lab->bed);
        memset(lab->failed, 0, sizeof(lab->failed));
        check_all(lab);
        for (int kind = 0; kind < RSD_NUM_FAULT_KINDS; kind++) {
            sums.faults[kind] += faults[kind];
        }
        sums.flips += lab->flips;
        sums.errors += lab->errors;
        sums.refused += lab->refused;
        sums.hash = sums.hash * 31 + lab->hash;
        bed_close(&lab->bed);
        free(lab->file);
    }
    free(lab);
    return sums;
}

static uint64_t num_ops(void)
{
    const char *ops = getenv("RSD_TEST_OPS");

    return ops ? strtoull(ops, NULL, 10) : 2500;
}

enum { PLAIN, BUFFERED, UNITS, PASSING, NUM_KINDS_OF_DRIVES };

static RsdConfig config_of(RsdFtl ftl, int drive)
{
    RsdConfig cfg = small_config();

    cfg.ftl = ftl;
    cfg.blocks = 24;
    cfg.spare_blocks = 8;
    cfg.over_provision = 80;
    cfg.map_cache = 1024;
    cfg.log_blocks = 20;
    cfg.wl_threshold = ftl == RSD_FTL_RSD ? 0 : 4;
    cfg.idle_erase_ns = ftl == RSD_FTL_RSD ? 1000000 : 0;
    cfg.endurance = 1000000;
    if (drive == BUFFERED) {
        cfg.write_buffer = 64 * PAGE;
        cfg.ack = RSD_ACK_BUFFER;
    } else if (drive == UNITS) {
        cfg.planes = 2;
        cfg.pages = 6;
        cfg.cell = RSD_CELL_TLC;
        cfg.one_shot = true;
        cfg.over_provision = ftl == RSD_FTL_DFTL ? 230 : 150;
    } else if (drive == PASSING) {
        cfg.suspend = cfg.cache = true;
    }
    return cfg;
}

/* The kinds that must have happened with these rules */
static void check_rules(RsdFtl ftl, const char *rules, RsdFaultKind kind)
{
    for (int drive = 0; drive < NUM_KINDS_OF_DRIVES; drive++) {
        RsdConfig cfg = config_of(ftl, drive);
        Sums sums = experiment(&cfg, rules, num_ops(), 1);
        Sums again = experiment(&cfg, rules, num_ops() < 5000 ? num_ops() : 0,
                                1);

        if (getenv("RSD_TEST_OPS")) {
            printf("%-5s %d %-45.45s: %" PRIu64 " faults, %" PRIu64
                   " reads failed, %" PRIu64 " bits inverted, %" PRIu64
                   " blocks grown bad, %" PRIu64 " writes refused\n",
                   rsd_ftl_names[ftl], drive, rules, sums.faults[kind],
                   sums.errors, sums.flips, sums.grown, sums.refused);
        }
        if (!sums.faults[kind]) {
            FAIL("%s, drive %d: %s: nothing has happened", rsd_ftl_names[ftl],
                 drive, rules);
        }
        CHECK(num_ops() >= 5000 || !memcmp(&sums, &again, sizeof(sums)));
        switch (kind) {
        case RSD_FAULT_PROGRAM_RULE:
        case RSD_FAULT_ERASE_RULE:
            CHECK(sums.grown);
            break;
        case RSD_FAULT_READ_RULE:
            CHECK(sums.errors);
            break;
        case RSD_FAULT_CORRUPT_RULE:
            CHECK(sums.flips);
            break;
        default:
            break;
        }
        /* nothing else has failed */
        CHECK(kind == RSD_FAULT_READ_RULE || kind == RSD_FAULT_OFFLINE_RULE ||
              !sums.errors);
        CHECK(kind == RSD_FAULT_CORRUPT_RULE || !sums.flips);
    }
}

static void check_flash_rules(RsdFtl ftl)
{
    check_rules(ftl, "program every=53", RSD_FAULT_PROGRAM_RULE);
    check_rules(ftl, "program probability=0.05 seed=9 die=1-2 page=2-5",
                RSD_FAULT_PROGRAM_RULE);
    check_rules(ftl, "erase probability=0.1", RSD_FAULT_ERASE_RULE);
    check_rules(ftl, "erase erases=2 block=1-20", RSD_FAULT_ERASE_RULE);
    check_rules(ftl, "read every=41", RSD_FAULT_READ_RULE);
    check_rules(ftl, "read lba=3-9 probability=0.5", RSD_FAULT_READ_RULE);
    check_rules(ftl, "latency every=13 time=3ms", RSD_FAULT_LATENCY_RULE);
    check_rules(ftl, "latency op=erase time=50ms", RSD_FAULT_LATENCY_RULE);
}

static void check_command_rules(RsdFtl ftl)
{
    bool zoned = ftl == RSD_FTL_RSD;

    check_rules(ftl, "corrupt every=29", RSD_FAULT_CORRUPT_RULE);
    check_rules(ftl, "corrupt lba=0-60 every=3\ncorrupt at=500\n",
                RSD_FAULT_CORRUPT_RULE);
    check_rules(ftl, "lost every=31", RSD_FAULT_LOST_RULE);
    if (zoned) {
        check_rules(ftl, "read-only probability=0.03",
                    RSD_FAULT_READ_ONLY_RULE);
        check_rules(ftl, "offline every=60", RSD_FAULT_OFFLINE_RULE);
    } else {
        check_rules(ftl, "misdirect every=23 by=5", RSD_FAULT_MISDIRECT_RULE);
    }
}

TEST(zones)
{
    check_flash_rules(RSD_FTL_RSD);
    check_command_rules(RSD_FTL_RSD);
}

TEST(page_map)
{
    check_flash_rules(RSD_FTL_PAGE);
    check_command_rules(RSD_FTL_PAGE);
}

TEST(cached_map)
{
    check_flash_rules(RSD_FTL_DFTL);
    check_command_rules(RSD_FTL_DFTL);
}

TEST(block_map)
{
    check_flash_rules(RSD_FTL_BLOCK);
    check_command_rules(RSD_FTL_BLOCK);
}

TEST(fast)
{
    check_flash_rules(RSD_FTL_FAST);
    check_command_rules(RSD_FTL_FAST);
}

/* What is wrong with these rules is said, with the line. */
TEST(wrong_rules)
{
    static const char *const cases[][2] = {
        { "# nothing\n\nexplode\n", "rules:3: there is no fault 'explode'" },
        { "read every=0", "rules:1: 'every' is 0, must be 1 or more" },
        { "read every=1 at=2", "at, every and probability" },
        { "read seed=3", "'seed' is of 'probability'" },
        { "read probability=1.5", "'probability' is '1.5', must be a number" },
        { "read probability=0.0000000001", "must be a number from 0 to 1" },
        { "read probability=.5", "must be a number from 0 to 1" },
        { "read lba=9-3", "'lba' is '9-3', must be a number, or two" },
        { "read lba=99999999999999999999", "'lba' is" },
        { "read lba=1 lba=2", "'lba' is given twice" },
        { "read page", "'read' does not take 'page'" },
        { "erase page=1", "'erase' does not take 'page'" },
        { "latency every=2", "'latency' needs 'time'" },
        { "latency time=5", NULL },
        { "latency time=x", "'time' is 'x', must be a number of ns" },
        { "latency time=1ms op=walk", "must be read, program or erase" },
        { "latency time=3600.000000001s", "at most 3600s" },
        { "latency time=3600s", NULL },
        { "misdirect by=0", "'by' is 0, must be 1 or more" },
        { "read lba=1000000", "'read': no namespace where it applies has" },
        { "lost lba=0-1000000", NULL },
        { "read die=4", "'read': this drive has fewer dies" },
        { "read block=32", "fewer flash blocks" },
        { "read page=8", "fewer pages" },
        { "misdirect", "'misdirect': this drive has zones alone" },
        { "read-only at=1 # one zone\n\toffline\tat=3\r\n", NULL },
        { "", NULL },
    };
    RsdConfig cfg = config_of(RSD_FTL_RSD, PLAIN);
    Bed bed = bed_open(&cfg, NULL);
    const char *path = temp_path("rules");
    char err[RSD_ERR_LEN];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const RsdScenario *before = bed.drive->scenario;
        bool ok;

        write_rules(path, cases[i][0]);
        ok = rsd_faults_load(bed.drive, path, err);
        CHECK_EQ(ok, !cases[i][1]);
        if (!ok) {
            CHECK_SAYS(err, "faults: ");
            CHECK_SAYS(err, cases[i][1]);
            CHECK(bed.drive->scenario == before);
        }
    }
    CHECK(!rsd_faults_load(bed.drive, "/nowhere/rules", err));
    CHECK_SAYS(err, "faults: /nowhere/rules: No such file");
    CHECK(!rsd_faults_load(bed.drive, "/", err));
    CHECK_SAYS(err, "faults: /: not a regular file");
    bed_close(&bed);
    cfg.ftl = RSD_FTL_DISK;
    cfg.oob = 0;
    bed = bed_open(&cfg, NULL);
    write_rules(path, "erase at=1");
    CHECK(!rsd_faults_load(bed.drive, path, err));
    CHECK_SAYS(err, "a disk has no flash");
    write_rules(path, "offline at=1");
    CHECK(!rsd_faults_load(bed.drive, path, err));
    CHECK_SAYS(err, "this drive has no zones");
    bed_close(&bed);
    free((char *)path);
}

/* So many copies of a text, after another one, in a file */
static void write_many(const char *path, const char *first, size_t length,
                       const char *text, uint32_t times)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fwrite(first, 1, length, file) == length);
    for (uint32_t i = 0; i < times; i++) {
        CHECK(fputs(text, file) >= 0);
    }
    CHECK(!fclose(file));
}

/* Whatever a file holds, it is read as it stands, or refused; within bounds. */
TEST(hostile_files)
{
    static const char zero[] = "read at=1\nread every=3\0 explode\n";
    const char *path = temp_path("rules");
    char err[RSD_ERR_LEN];
    RsdScenario *scenario;

    write_many(path, zero, sizeof(zero) - 1, "", 0);
    CHECK(!rsd_scenario_read(path, err));
    CHECK_SAYS(err, "rules:2: there is a byte 0 in the line");
    CHECK(!rsd_scenario_read("/dev/zero", err));
    CHECK_SAYS(err, "/dev/zero: not a regular file");
    write_many(path, "\n#", 2, "endless", 1000);
    CHECK(!rsd_scenario_read(path, err));
    CHECK_SAYS(err, "rules:2: the line is longer than 1000 bytes");
    write_many(path, "", 0, "read\n", 10001);
    CHECK(!rsd_scenario_read(path, err));
    CHECK_SAYS(err, "rules:10001: there are more than 10000 rules");
    /* the most there can be, and a line of 1000 bytes without an end */
    write_many(path, "", 0, "read\n", 9999);
    scenario = rsd_scenario_read(path, err);
    CHECK(scenario && scenario->num_rules == 9999);
    rsd_scenario_free(scenario);
    write_many(path, "erase #89", 9, "123456789 ", 100);
    truncate(path, 1000);
    scenario = rsd_scenario_read(path, err);
    CHECK(scenario && scenario->num_rules == 1);
    CHECK_EQ(scenario->rules[0].kind, RSD_FAULT_ERASE_RULE);
    rsd_scenario_free(scenario);
    free((char *)path);
}

typedef struct Heard {
    uint32_t count;
    uint64_t rule[64], lba[64];         /* the line of each, and where it was */
} Heard;

static void hear(void *opaque, const RsdInjected *fault)
{
    Heard *heard = opaque;

    CHECK(heard->count < 64);
    heard->rule[heard->count] = fault->rule->line;
    heard->lba[heard->count++] = fault->lba;
}

/* What these rules choose of the 12 blocks that are written, and then read */
static Heard of_twelve(RsdFtl ftl, const char *rules)
{
    RsdConfig cfg = config_of(ftl, PLAIN);
    const char *path = temp_path("faulty.rsd"), *file = temp_path("rules");
    Bed bed = bed_open(&cfg, path);
    Heard heard = { 0 };
    char err[RSD_ERR_LEN];

    write_rules(file, rules);
    CHECK(rsd_faults_load(bed.drive, file, err));
    rsd_faults_tell(bed.drive, hear, &heard);
    for (uint64_t lba = 0; lba < 12; lba++) {
        run(&bed, RSD_WRITE, lba, 1, 1);
    }
    for (uint64_t lba = 0; lba < 12; lba++) {
        RsdCmd *cmd = rsd_cmd_new(bed.drive, 0, RSD_READ, lba, 1);

        CHECK_EQ(rsd_submit(bed.drive, cmd, bed.now), RSD_OK);
        finish(&bed, cmd);
        rsd_cmd_free(bed.drive, cmd);
    }
    bed_close(&bed);
    free((char *)file);
    return heard;
}

/* A candidate that fails by one rule counts for all the others as well. */
TEST(each_rule_counts_for_itself)
{
    static const char *const kinds[] = { "read", "lost", "corrupt" };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char rules[64];
        Heard heard;

        snprintf(rules, sizeof(rules), "%s at=3\n%s at=3\n%s at=4\n", kinds[i],
                 kinds[i], kinds[i]);
        heard = of_twelve(RSD_FTL_PAGE, rules);
        /* what is lost cannot be lost again */
        CHECK_EQ(heard.count, i < 2 ? 2 : 3);
        CHECK_EQ(heard.rule[0], 1);
        CHECK_EQ(heard.lba[0], 2);
        CHECK_EQ(heard.rule[heard.count - 1], 3);
        CHECK_EQ(heard.lba[heard.count - 1], 3);
    }
}

/* Rules of the same probability do not choose the same candidates. */
TEST(rules_have_seeds_of_their_own)
{
    Heard heard = of_twelve(RSD_FTL_PAGE, "\n# half of them, twice\n"
                            "corrupt probability=0.5\n"
                            "corrupt probability=0.5\n");
    Heard seeds = of_twelve(RSD_FTL_PAGE, "corrupt probability=0.5 seed=1\n"
                            "\ncorrupt probability=0.5 seed=2\n");
    uint32_t both = 0;

    for (uint32_t i = 1; i < heard.count; i++) {
        both += heard.lba[i] == heard.lba[i - 1];
    }
    CHECK(heard.count > 6 && heard.count < 18);
    CHECK(both && both * 2 < heard.count);
    /* which they are does not depend on the lines */
    CHECK_EQ(heard.count, seeds.count);
    CHECK(!memcmp(heard.lba, seeds.lba, sizeof(heard.lba)));
}

/* To the ns: a program is done twice, and what takes longer takes so much. */
TEST(times)
{
    RsdConfig cfg = config_of(RSD_FTL_RSD, PLAIN);
    Bed bed = bed_open(&cfg, NULL);
    const char *path = temp_path("rules");
    uint64_t once = cfg.t_cmd_ns + cfg.t_xfer_ns + cfg.t_prog_ns;
    char err[RSD_ERR_LEN];

    write_rules(path, "program at=2\nlatency op=read at=2 time=7ms\n");
    CHECK(rsd_faults_load(bed.drive, path, err));
    CHECK_EQ(run(&bed, RSD_WRITE, 0, 1, 1), once);
    CHECK_EQ(run(&bed, RSD_WRITE, 1, 1, 1), 2 * once);
    CHECK_EQ(run(&bed, RSD_WRITE, 2, 1, 1), once);
    once = cfg.t_cmd_ns + cfg.t_xfer_ns + cfg.t_read_ns;
    CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), once);
    CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), once + 7000000);
    CHECK_EQ(run(&bed, RSD_READ, 0, 1, 0), once);
    bed_close(&bed);
    free((char *)path);
}
