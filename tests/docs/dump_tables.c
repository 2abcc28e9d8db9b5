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

int main(void)
{
    print_properties();
    print_presets();
    print_counters();
    return 0;
}
