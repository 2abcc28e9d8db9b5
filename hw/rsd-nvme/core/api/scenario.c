/*
 * Scenarios: reading them, and when a rule chooses.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "rsd-units.h"
#include "scenario.h"

#define BILLION UINT64_C(1000000000)

/* A file with a longer line is no file of rules. */
#define MAX_LINE 1000u
#define MAX_RULES 10000u
/* With this bound, no sum of times comes near to 64 bits. */
#define MAX_TIME_NS (3600 * BILLION)

typedef enum Form { NUMBER, RANGE, SHARE, TIME, OPERATION } Form;

typedef struct Key {
    const char *name;
    char letter;
    Form form;
    size_t offset;              /* of the RsdFaultValue in RsdRule */
} Key;

#define KEY(field, name, letter, form, doc) \
    { name, letter, form, offsetof(RsdRule, field) },
static const Key keys[] = { RSD_FAULT_KEYS(KEY) };
#undef KEY
#define NUM_KEYS (sizeof(keys) / sizeof(keys[0]))

#define INFO(name, letters, candidate, doc) { name, letters, candidate, doc },
const RsdFaultInfo rsd_fault_info[RSD_NUM_FAULT_KINDS] = { RSD_FAULTS(INFO) };
#undef INFO

/* Describes the values of a form, for messages. */
static const char *form_text(Form form)
{
    switch (form) {
    case NUMBER:
        return "a whole number";
    case RANGE:
        return "a number, or two such as 10-19, the second not below the first";
    case SHARE:
        return "a number from 0 to 1 with at most nine decimals, such as 0.001";
    case TIME:
        return RSD_NS_FORM ", at most 3600s";
    case OPERATION:
        return "read, program or erase";
    }
    return "";
}

/*
 * Takes digits, and returns the end of them. NULL says that there are none, or
 * that the number is beyond 64 bits.
 */
static const char *take_digits(const char *text, uint64_t *number)
{
    const char *at = text;

    for (*number = 0; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(*number, UINT64_C(10), number) ||
            __builtin_add_overflow(*number, (uint64_t)(*at - '0'), number)) {
            return NULL;
        }
    }
    return at > text ? at : NULL;
}

static bool parse_number(const char *text, uint64_t *number)
{
    const char *end = take_digits(text, number);

    return end && !*end;
}

static bool parse_range(const char *text, RsdFaultValue *value)
{
    const char *end = take_digits(text, &value->from);

    if (!end || !*end) {
        value->to = value->from;
        return end;
    }
    return *end == '-' && parse_number(end + 1, &value->to) &&
           value->to >= value->from;
}

/* Parses a decimal fraction, in billionths. */
static bool parse_share(const char *text, uint64_t *ppb)
{
    uint64_t unit = BILLION, whole;
    const char *at = take_digits(text, &whole);

    if (!at || whole > 1) {
        return false;
    }
    *ppb = whole * BILLION;
    if (*at == '.') {
        at++;
        do {
            unit /= 10;
            if (*at < '0' || *at > '9' || !unit) {
                return false;
            }
            *ppb += (*at++ - '0') * unit;
        } while (*at);
    }
    return !*at && *ppb <= BILLION;
}

static bool parse_operation(const char *text, uint64_t *number)
{
    static const char *const names[] = { "read", "program", "erase" };

    for (*number = 0; *number < 3; (*number)++) {
        if (!strcmp(text, names[*number])) {
            return true;
        }
    }
    return false;
}

static bool parse_value(Form form, const char *text, RsdFaultValue *value)
{
    value->given = true;
    switch (form) {
    case NUMBER:
        return parse_number(text, &value->from);
    case RANGE:
        return parse_range(text, value);
    case SHARE:
        return parse_share(text, &value->from);
    case TIME:
        return rsd_parse_ns(text, &value->from) && value->from <= MAX_TIME_NS;
    case OPERATION:
        return parse_operation(text, &value->from);
    }
    return false;
}

static bool allowed(const Key *key, const RsdRule *rule)
{
    return !key->letter || strchr(rsd_fault_info[rule->kind].keys, key->letter);
}

/* Lists the names of all kinds, or of the keys of a rule, with ", " between. */
static const char *list_names(const RsdRule *rule, char list[256])
{
    *list = '\0';
    for (size_t i = 0; i < (rule ? NUM_KEYS : RSD_NUM_FAULT_KINDS); i++) {
        if (!rule || allowed(&keys[i], rule)) {
            strcat(strcat(list, *list ? ", " : ""),
                   rule ? keys[i].name : rsd_fault_info[i].name);
        }
    }
    return list;
}

static bool set_kind(RsdRule *rule, const char *name, char reason[RSD_ERR_LEN])
{
    char list[256];

    for (int i = 0; i < RSD_NUM_FAULT_KINDS; i++) {
        if (!strcmp(rsd_fault_info[i].name, name)) {
            rule->kind = i;
            return true;
        }
    }
    rsd_set_error(reason, "there is no fault '%.40s'; a rule begins with one "
                  "of %s", name, list_names(NULL, list));
    return false;
}

static bool set_key(RsdRule *rule, char *word, char reason[RSD_ERR_LEN])
{
    char *equals = strchr(word, '='), list[256];
    const Key *key = NULL;
    RsdFaultValue *value;

    if (equals) {
        *equals = '\0';
    }
    for (size_t i = 0; equals && i < NUM_KEYS; i++) {
        if (!strcmp(keys[i].name, word)) {
            key = &keys[i];
        }
    }
    if (!key || !allowed(key, rule)) {
        rsd_set_error(reason, "'%s' does not take '%.40s'; it takes KEY=VALUE, "
                      "the keys being %s", rsd_fault_info[rule->kind].name,
                      word, list_names(rule, list));
        return false;
    }
    value = (RsdFaultValue *)((char *)rule + key->offset);
    if (value->given) {
        rsd_set_error(reason, "'%s' is given twice; leave one of them out",
                      key->name);
        return false;
    }
    if (!parse_value(key->form, equals + 1, value)) {
        rsd_set_error(reason, "'%s' is '%.40s', must be %s", key->name,
                      equals + 1, form_text(key->form));
        return false;
    }
    return true;
}

static bool check_rule(const RsdRule *rule, char reason[RSD_ERR_LEN])
{
    if (rule->at.given + rule->every.given + rule->ppb.given > 1) {
        rsd_set_error(reason, "at, every and probability each choose among "
                      "all candidates; give one of them, and a rule for each "
                      "other one");
    } else if ((rule->at.given && !rule->at.from) ||
               (rule->every.given && !rule->every.from)) {
        rsd_set_error(reason, "'%s' is 0, must be 1 or more: candidates are "
                      "counted from 1 on", rule->at.given ? "at" : "every");
    } else if (rule->seed.given && !rule->ppb.given) {
        rsd_set_error(reason, "'seed' is of 'probability', which is not given; "
                      "give both, or neither");
    } else if (rule->by.given && !rule->by.from) {
        rsd_set_error(reason, "'by' is 0, must be 1 or more: else the write "
                      "goes where it should");
    } else if (rule->kind == RSD_FAULT_LATENCY_RULE && !rule->time.given) {
        rsd_set_error(reason, "'latency' needs 'time', such as time=5ms");
    } else {
        return true;
    }
    return false;
}

/*
 * Parses a line that is not empty. Returns false and a reason if it is wrong.
 */
static bool parse_rule(RsdRule *rule, char *line, char reason[RSD_ERR_LEN])
{
    char *rest, *word = strtok_r(line, " \t\r", &rest);

    if (!set_kind(rule, word, reason)) {
        return false;
    }
    while ((word = strtok_r(NULL, " \t\r", &rest))) {
        if (!set_key(rule, word, reason)) {
            return false;
        }
    }
    return check_rule(rule, reason);
}

/*
 * Adds a line's rule, if it has one. Returns false and a reason if it is wrong.
 */
static bool add_line(RsdScenario *scenario, uint32_t number, char *line,
                     char reason[RSD_ERR_LEN])
{
    RsdRule *rules;

    line[strcspn(line, "#")] = '\0';
    if (!line[strspn(line, " \t\r")]) {
        return true;
    }
    if (scenario->num_rules == MAX_RULES) {
        rsd_set_error(reason, "there are more than %u rules; leave some out",
                      MAX_RULES);
        return false;
    }
    rules = realloc(scenario->rules,
                    (scenario->num_rules + 1) * sizeof(*rules));
    if (!rules) {
        rsd_set_error(reason, "no memory for its rules");
        return false;
    }
    scenario->rules = rules;
    rules += scenario->num_rules++;
    *rules = (RsdRule){
        .line = number, .seed.from = scenario->num_rules, .by.from = 1,
    };
    return parse_rule(rules, line, reason);
}

/*
 * Takes the next line, without its end. Returns false if there is none, with a
 * reason if the file cannot be one of rules.
 */
static bool take_line(FILE *file, char line[MAX_LINE + 1],
                      char reason[RSD_ERR_LEN])
{
    uint32_t n = 0;
    int c;

    while ((c = getc(file)) != EOF && c != '\n') {
        if (!c) {
            rsd_set_error(reason, "there is a byte 0 in the line; rules are "
                          "text");
            return false;
        }
        if (n == MAX_LINE) {
            rsd_set_error(reason, "the line is longer than %u bytes; a rule is "
                          "shorter", MAX_LINE);
            return false;
        }
        line[n++] = c;
    }
    line[n] = '\0';
    return n || c != EOF;
}

/*
 * Opens a file. A pipe may have no writer for as long as the drive waits, so
 * only a file is read. Returns NULL with errno if it cannot be read; EINVAL
 * says that it is no file.
 */
static FILE *open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *file = NULL;
    struct stat st;

    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &st) == 0) {
        errno = EINVAL;
        file = S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    }
    if (!file) {
        close(fd);
    }
    return file;
}

RsdScenario *rsd_scenario_read(const char *path, char err[RSD_ERR_LEN])
{
    RsdScenario *scenario = calloc(1, sizeof(*scenario));
    FILE *file = open_file(path);
    char line[MAX_LINE + 1], reason[RSD_ERR_LEN] = "";
    uint32_t number = 1;
    bool ok = false;

    while (scenario && file && take_line(file, line, reason) &&
           add_line(scenario, number, line, reason)) {
        number++;
    }
    if (!file) {
        rsd_set_error(err, "faults: %s: %s", path, errno == EINVAL ?
                      "not a regular file" : strerror(errno));
    } else if (!scenario) {
        rsd_set_error(err, "faults: no memory for a scenario");
    } else if (*reason) {
        rsd_set_error(err, "faults: %s:%u: %s", path, number, reason);
    } else if (ferror(file)) {
        rsd_set_error(err, "faults: %s: it cannot be read", path);
    } else {
        ok = true;
    }
    if (file) {
        fclose(file);
    }
    if (!ok) {
        rsd_scenario_free(scenario);
        return NULL;
    }
    return scenario;
}

void rsd_scenario_free(RsdScenario *scenario)
{
    if (scenario) {
        free(scenario->zones);
        free(scenario->rules);
        free(scenario);
    }
}

bool rsd_rule_chooses(RsdRule *rule)
{
    uint64_t n = ++rule->candidates;

    if (rule->times.given && rule->faults >= rule->times.from) {
        return false;
    }
    if (rule->at.given) {
        return n == rule->at.from;
    }
    if (rule->every.given) {
        return n % rule->every.from == 0;
    }
    return !rule->ppb.given ||
           rsd_random(rule->seed.from, n) % BILLION < rule->ppb.from;
}
