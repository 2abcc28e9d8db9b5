/*
 * Speed of the drive's core by itself: page operations a second of processor
 * time, with timing and without payload, a fixed number of commands in flight.
 * Also what a fresh drive costs in memory. Prints JSON.
 *
 *     bench_core [--seconds S] [--depth N] [--nlb N] [--PROPERTY VALUE]...
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rsd.h"

typedef struct Load {
    double seconds;             /* of processor time, a phase */
    unsigned depth;             /* commands in flight */
    unsigned nlb;               /* pages a command */
} Load;

typedef struct Result {
    uint64_t pages, virtual_ns;
    double wall, cpu;           /* s */
} Result;

static double seconds(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static long status_kib(const char *field)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;

    while (f && fgets(line, sizeof(line), f)) {
        if (!strncmp(line, field, strlen(field))) {
            kib = atol(line + strlen(field) + 1);
        }
    }
    if (f) {
        fclose(f);
    }
    return kib;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_core: %s: %s\n", what, why);
    exit(1);
}

static void submit(RsdDrive *drive, RsdOp op, uint64_t lba, uint32_t nlb,
                   uint64_t now)
{
    RsdCmd *cmd = rsd_cmd_new(drive, 0, op, lba, nlb);
    RsdStatus status;

    if (!cmd) {
        fail("command", "no memory");
    }
    status = rsd_submit(drive, cmd, now);
    if (status != RSD_OK) {
        fail("submission", rsd_status_name(status));
    }
}

/* The zone-wise position of a sequential stream */
typedef struct Stream {
    RsdOp op;
    uint64_t next;              /* page, not counting gaps between zones */
    uint64_t limit;             /* pages of zones to go round in */
} Stream;

static uint32_t next_command(RsdDrive *drive, const RsdGeometry *geo,
                             Stream *s, uint32_t nlb, uint64_t now)
{
    uint64_t zone, offset;

    if (s->next == s->limit) {
        s->next = 0;
    }
    zone = s->next / geo->zone_capacity;
    offset = s->next % geo->zone_capacity;
    if (nlb > geo->zone_capacity - offset) {
        nlb = geo->zone_capacity - offset;
    }
    if (s->op == RSD_WRITE && !offset) {
        submit(drive, RSD_ZONE_RESET, zone * geo->zone_size, 0, now);
    }
    submit(drive, s->op, zone * geo->zone_size + offset, nlb, now);
    s->next += nlb;
    return nlb;
}

/* Keeps load->depth commands in flight for a while. */
static Result run(RsdDrive *drive, const Load *load, Stream *s,
                  uint64_t *now)
{
    uint64_t start_ns = *now;
    double wall = seconds(CLOCK_MONOTONIC);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    Result result = { 0 };
    unsigned in_flight = 0, n = 0;
    bool over = false;
    RsdGeometry geo;
    RsdCmd *cmd;

    rsd_geometry(drive, 0, &geo);
    while (!over || in_flight) {
        while (!over && in_flight < load->depth) {
            next_command(drive, &geo, s, load->nlb, *now);
            in_flight++;
        }
        if (!rsd_next_event(drive, now)) {
            fail("drive", "commands in flight, but no event");
        }
        while ((cmd = rsd_advance(drive, *now))) {
            if (cmd->status != RSD_OK) {
                fail("command", rsd_status_name(cmd->status));
            }
            if (cmd->op != RSD_ZONE_RESET) {
                result.pages += cmd->nlb;
                in_flight--;
            }
            rsd_cmd_free(drive, cmd);
        }
        if (!over && ++n % 64 == 0) {
            over = seconds(CLOCK_PROCESS_CPUTIME_ID) >= cpu + load->seconds;
        }
    }
    result.wall = seconds(CLOCK_MONOTONIC) - wall;
    result.cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    result.virtual_ns = *now - start_ns;
    return result;
}

/* Writes what is left of the zone, so that all zones written are full. */
static void fill_zone(RsdDrive *drive, Stream *s, uint64_t *now)
{
    RsdGeometry geo;
    RsdCmd *cmd;

    rsd_geometry(drive, 0, &geo);
    while (s->next % geo.zone_capacity) {
        next_command(drive, &geo, s, 64, *now);
        while (rsd_next_event(drive, now)) {
            while ((cmd = rsd_advance(drive, *now))) {
                rsd_cmd_free(drive, cmd);
            }
        }
    }
}

static void print_phase(const char *name, const Result *r, const char *end)
{
    printf("  \"%s\": {\"pages\": %llu, \"wall_s\": %.3f, \"cpu_s\": %.3f, "
           "\"pages_per_cpu_s\": %.0f, \"virtual_s\": %.6f, "
           "\"pages_per_virtual_s\": %.0f}%s\n", name,
           (unsigned long long)r->pages, r->wall, r->cpu, r->pages / r->cpu,
           r->virtual_ns * 1e-9, r->pages / (r->virtual_ns * 1e-9), end);
}

static void parse(int argc, char **argv, RsdConfig *cfg, Load *load)
{
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i] + 2;
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        const RsdProp *prop;

        if (strncmp(argv[i], "--", 2) || !value) {
            fail(argv[i], "expected --NAME VALUE");
        }
        prop = rsd_prop_find(name);
        if (!strcmp(name, "preset")) {
            if (!rsd_preset_find(value)) {
                fail(value, "no such preset");
            }
            rsd_preset_find(value)->apply(cfg);
        } else if (!strcmp(name, "seconds")) {
            load->seconds = atof(value);
        } else if (!strcmp(name, "depth")) {
            load->depth = strtoul(value, NULL, 0);
        } else if (!strcmp(name, "nlb")) {
            load->nlb = strtoul(value, NULL, 0);
        } else if (!prop) {
            fail(name, "no such property");
        } else if (prop->kind == RSD_PROP_ENUM) {
            *rsd_prop_value(cfg, prop) = !!strcmp(value, prop->names[0]);
        } else {
            *rsd_prop_value(cfg, prop) = strtoull(value, NULL, 0);
        }
    }
    if (!load->depth || !load->nlb || load->seconds <= 0) {
        fail("arguments", "--seconds, --depth and --nlb must be above 0");
    }
}

int main(int argc, char **argv)
{
    Load load = { .seconds = 2, .depth = 64, .nlb = 64 };
    RsdConfig cfg;
    RsdGeometry geo;
    RsdCounters c;
    RsdDrive *drive;
    Stream stream = { .op = RSD_WRITE };
    Result writes, reads;
    char err[RSD_ERR_LEN];
    uint64_t now = 0, zones;
    long rss_before, rss;
    double start, open_s;

    rsd_preset_find("risa")->apply(&cfg);
    parse(argc, argv, &cfg, &load);
    rss_before = status_kib("VmRSS");
    start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    drive = rsd_open(NULL, &cfg, err);
    if (!drive) {
        fail("open", err);
    }
    open_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    rss = status_kib("VmRSS");
    rsd_geometry(drive, 0, &geo);
    rsd_counters(drive, &c);
    zones = geo.num_zones < 64 ? geo.num_zones : 64;
    stream.limit = zones * geo.zone_capacity;
    writes = run(drive, &load, &stream, &now);
    fill_zone(drive, &stream, &now);
    if (writes.pages < stream.limit) {
        stream.limit = stream.next;     /* it did not get round */
    }
    stream.op = RSD_READ;
    stream.next = 0;
    reads = run(drive, &load, &stream, &now);
    printf("{\n");
    printf("  \"channels\": %llu, \"ways\": %llu, \"blocks\": %llu, "
           "\"pages\": %llu, \"depth\": %u, \"nlb\": %u,\n",
           (unsigned long long)cfg.channels, (unsigned long long)cfg.ways,
           (unsigned long long)cfg.blocks, (unsigned long long)cfg.pages,
           load.depth, load.nlb);
    printf("  \"capacity_bytes\": %llu, \"map_bytes\": %llu, "
           "\"ram_bytes\": %llu, \"open_cpu_s\": %.4f, \"fresh_rss_kib\": %ld, "
           "\"fresh_rss_growth_kib\": %ld,\n",
           (unsigned long long)c.capacity_bytes,
           (unsigned long long)c.map_bytes, (unsigned long long)c.ram_bytes,
           open_s, rss, rss - rss_before);
    print_phase("write", &writes, ",");
    print_phase("read", &reads, ",");
    printf("  \"peak_rss_kib\": %ld\n}\n", status_kib("VmHWM"));
    rsd_close(drive);
    return 0;
}
