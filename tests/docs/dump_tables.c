/*
 * Prints the drive's tables of properties, presets and counters as Markdown,
 * for tables.py to compare with the documentation.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rsd.h"
#include "scenario.h"

static void print_value(const RsdProp *prop, uint64_t value)
{
    if (prop->kind == RSD_PROP_ENUM) {
        printf("`%s`", prop->names[value]);
    } else {
        printf("%" PRIu64, value);
    }
}

static void print_properties(void)
{
    puts("table: properties");
    puts("| property | default | allowed | unit | file | what it is |");
    puts("| --- | --- | --- | --- | --- | --- |");
    for (size_t i = 0; i < rsd_num_props; i++) {
        const RsdProp *prop = &rsd_props[i];

        printf("| `%s` | ", prop->name);
        print_value(prop, prop->dflt);
        printf(" | ");
        if (prop->kind == RSD_PROP_ENUM) {
            for (int n = 0; prop->names[n]; n++) {
                printf("%s`%s`", n ? ", " : "", prop->names[n]);
            }
        } else {
            printf("%" PRIu64 " to %" PRIu64, prop->min, prop->max);
        }
        printf(" | %s | %s | %s |\n", prop->unit, prop->geometry ? "yes" : "",
               prop->doc);
    }
}

static void print_presets(void)
{
    puts("table: presets");
    puts("| preset | sets | from |");
    puts("| --- | --- | --- |");
    for (size_t p = 0; p < rsd_num_presets; p++) {
        const char *sep = "";
        RsdConfig cfg;

        rsd_presets[p].apply(&cfg);
        printf("| `%s` | ", rsd_presets[p].name);
        for (size_t i = 0; i < rsd_num_props; i++) {
            const RsdProp *prop = &rsd_props[i];
            uint64_t value = *rsd_prop_value(&cfg, prop);

            if (value != prop->dflt) {
                printf("%s%s=", sep, prop->name);
                print_value(prop, value);
                sep = ", ";
            }
        }
        printf("%s | %s |\n", *sep ? "" : "the defaults", rsd_presets[p].doc);
    }
}

static void print_counters(void)
{
    puts("table: counters");
    puts("| counter | unit | what it counts |");
    puts("| --- | --- | --- |");
    for (size_t i = 0; i < RSD_NUM_COUNTERS; i++) {
        printf("| `%s` | %s | %s |\n", rsd_counter_info[i].name,
               rsd_counter_info[i].unit, rsd_counter_info[i].doc);
    }
}

typedef struct Key {
    const char *name, *doc;
    char letter;
} Key;

#define KEY(field, name, letter, form, doc) { name, doc, letter },
static const Key keys[] = { RSD_FAULT_KEYS(KEY) };
#define NUM_KEYS (sizeof(keys) / sizeof(keys[0]))

static void print_faults(void)
{
    puts("table: faults");
    puts("| fault | a candidate is | what happens | its own keys | counter |");
    puts("| --- | --- | --- | --- | --- |");
    for (int i = 0; i < RSD_NUM_FAULT_KINDS; i++) {
        const RsdFaultInfo *info = &rsd_fault_info[i];
        size_t counter = offsetof(RsdCounters, fault_program) / 8 + i;
        const char *sep = "";

        printf("| `%s` | %s | %s | ", info->name, info->candidate, info->doc);
        for (size_t k = 0; k < NUM_KEYS; k++) {
            if (keys[k].letter && strchr(info->keys, keys[k].letter)) {
                printf("%s`%s`", sep, keys[k].name);
                sep = ", ";
            }
        }
        printf(" | `%s` |\n", rsd_counter_info[counter].name);
    }
}

static void print_fault_keys(void)
{
    puts("table: fault_keys");
    puts("| key | what it is |");
    puts("| --- | --- |");
    for (size_t k = 0; k < NUM_KEYS; k++) {
        printf("| `%s` | %s |\n", keys[k].name, keys[k].doc);
    }
}

int main(void)
{
    print_properties();
    print_presets();
    print_counters();
    print_faults();
    print_fault_keys();
    return 0;
}
