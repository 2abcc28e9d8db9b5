/*
 * Faults by rule. A scenario is a text file with a rule a line:
 *
 *     # three reads of these blocks fail, then one program in a thousand
 *     read     lba=1000-1999 times=3
 *     program  probability=0.001 seed=7
 *     latency  op=read every=1000 time=5ms
 *
 * A rule is a kind of fault, from RSD_FAULTS, and what says when it happens,
 * from RSD_FAULT_KEYS. What the kind is about, and what the rule's address
 * names, is a candidate: the rule counts its candidates from 1 on, and at,
 * every or probability choose among them; without one of these three all are
 * chosen. Each rule counts for itself: what fails by one rule counts for those
 * behind it as well, but cannot be lost twice. All of it follows from the order
 * of operations, so that the same commands at the same times meet the same
 * faults. Counting begins when the scenario is loaded, and goes on over power
 * cuts.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_SCENARIO_H
#define RSD_SCENARIO_H

#include "rsd.h"

/*
 * X("name", "keys", "candidate", "what happens"). The keys are those of
 * RSD_FAULT_KEYS, a letter each. The order is that of the counters fault_....
 */
#define RSD_FAULTS(X)                                                        \
    X("program", "dbpw", "a program of a unit by a die",                     \
      "the die programs it once more, which succeeds, and the block is not " \
      "trusted any more: its next erase fails")                              \
    X("erase", "dbw", "an erase of a block that would succeed",              \
      "the block is bad from then on; in zones this is decided when the "    \
      "zone that had the block gives it back")                               \
    X("read", "dbpwl",                                                       \
      "a page that a die reads, and can, for the host or to copy it; with "  \
      "lba, for the host",                                                   \
      "the page cannot be read any more, wherever the drive copies it: "     \
      "media error")                                                         \
    X("latency", "dbpwto", "what a die does: a read, a program or "          \
      "an erase", "it takes so much longer")                                 \
    X("corrupt", "l", "a logical block of a write",                          \
      "one bit of it is inverted, and nobody is told")                       \
    X("lost", "l", "a write",                                                \
      "it succeeds, but what was there before stays; in a zone, zeroes are " \
      "written instead")                                                     \
    X("misdirect", "ly", "a write, not to a zone",                           \
      "it succeeds, but has gone to another place, by blocks further on")    \
    X("read-only", "l", "a write to a zone",                                 \
      "the zone becomes read-only behind this write")                        \
    X("offline", "l", "a write to a zone",                                   \
      "the zone goes offline behind this write")

/*
 * X(field, "name", letter, FORM, "what it is"). Letter 0: each kind has it. The
 * forms: a number, two of them with - between, a probability, a time, a kind of
 * operation.
 */
#define RSD_FAULT_KEYS(X)                                                    \
    X(at, "at", 0, NUMBER, "the candidate of this number, once")             \
    X(every, "every", 0, NUMBER, "the candidates whose number this divides") \
    X(ppb, "probability", 0, SHARE,                                          \
      "each candidate with this probability, from 0 to 1, such as 0.001")    \
    X(seed, "seed", 0, NUMBER,                                               \
      "which candidates the probability chooses; default: the number of "    \
      "the rule in its file, from 1 on")                                     \
    X(times, "times", 0, NUMBER, "so many faults at most; default: no limit")\
    X(die, "die", 'd', RANGE, "dies, such as 3 or 0-3: the die of channel "  \
      "c and way w is number w * channels + c")                              \
    X(block, "block", 'b', RANGE, "flash blocks of a die")                   \
    X(page, "page", 'p', RANGE, "pages of 4 KiB of a flash block")           \
    X(wear, "erases", 'w', NUMBER,                                           \
      "flash blocks that were erased so often, at least")                    \
    X(lba, "lba", 'l', RANGE, "logical blocks of 4 KiB, of each namespace; " \
      "of writes, those that have at least one of them")                     \
    X(time, "time", 't', TIME, "how much longer, such as 5ms, at most "      \
      "3600s; required")                                                     \
    X(op, "op", 'o', OPERATION, "read, program or erase; default: all")      \
    X(by, "by", 'y', NUMBER, "how many logical blocks further on, 1 or "     \
      "more; behind the last place that has room for all of the write "      \
      "comes the first one; default 1")

/* They are in the order of RSD_FAULTS. */
typedef enum RsdFaultKind {
    RSD_FAULT_PROGRAM_RULE,
    RSD_FAULT_ERASE_RULE,
    RSD_FAULT_READ_RULE,
    RSD_FAULT_LATENCY_RULE,
    RSD_FAULT_CORRUPT_RULE,
    RSD_FAULT_LOST_RULE,
    RSD_FAULT_MISDIRECT_RULE,
    RSD_FAULT_READ_ONLY_RULE,
    RSD_FAULT_OFFLINE_RULE,
    RSD_NUM_FAULT_KINDS
} RsdFaultKind;

typedef struct RsdFaultInfo {
    const char *name, *keys, *candidate, *doc;
} RsdFaultInfo;

extern const RsdFaultInfo rsd_fault_info[RSD_NUM_FAULT_KINDS];

/* This is a key's value. A range has both ends; the others have the first. */
typedef struct RsdFaultValue {
    bool given;
    uint64_t from, to;
} RsdFaultValue;

typedef struct RsdRule {
    RsdFaultKind kind;
    uint32_t line;              /* of the file */
#define RSD_FAULT_FIELD(field, ...) RsdFaultValue field;
    RSD_FAULT_KEYS(RSD_FAULT_FIELD)
#undef RSD_FAULT_FIELD
    uint64_t candidates, faults;        /* so far */
} RsdRule;

/*
 * This is a fault that was injected. Fields that do not apply are UINT64_MAX.
 */
typedef struct RsdInjected {
    uint64_t time_ns;
    const RsdRule *rule;
    uint64_t candidate;         /* its number, from 1 on */
    uint64_t die, block, page;  /* the block's number within its die */
    uint64_t lba;               /* of a write its first, or the one corrupted */
} RsdInjected;

typedef struct RsdScenario {
    RsdRule *rules;             /* in the file's order */
    uint32_t num_rules;
    void (*told)(void *opaque, const RsdInjected *fault);       /* or NULL */
    void *opaque;
    uint8_t *zones;             /* see front/inject-command.c; NULL: unused */
    uint32_t failed_zones;      /* that rsd_faults_zone() has to tell */
} RsdScenario;

/*
 * Reads a file. Returns NULL and err, which names file, line and reason, if it
 * cannot be read or a rule is wrong. rsd_scenario_free() frees it; NULL is
 * allowed.
 */
RsdScenario *rsd_scenario_read(const char *path, char err[RSD_ERR_LEN]);
void rsd_scenario_free(RsdScenario *scenario);
/*
 * Counts a candidate, and says whether the rule chooses it. The caller has
 * looked at the address.
 */
bool rsd_rule_chooses(RsdRule *rule);
/*
 * Says whether the key allows this number. A key that is not given allows each.
 */
static inline bool rsd_rule_has(const RsdFaultValue *key, uint64_t number)
{
    return !key->given || (number >= key->from && number <= key->to);
}

/* Drives (front/inject-command.c) */

/*
 * Puts the rules of this file in force from now on. Returns false and err if
 * the file is wrong, or asks for something that this drive does not have; the
 * drive is as it was.
 */
bool rsd_faults_load(RsdDrive *drive, const char *path, char err[RSD_ERR_LEN]);
/* Calls told() for each fault from now on, at its time. */
void rsd_faults_tell(RsdDrive *drive,
                     void (*told)(void *opaque, const RsdInjected *fault),
                     void *opaque);
/*
 * Returns the next zone that has become read-only or went offline by a rule,
 * once each. Until this call, the drive itself refuses commands that such a
 * zone does not allow; from then on the caller has to. Returns false if there
 * is none.
 */
bool rsd_faults_zone(RsdDrive *drive, uint32_t *zone, bool *offline);

#endif
