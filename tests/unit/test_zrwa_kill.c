/*
 * Random write areas after a SIGKILL: after every single store into the tables
 * the file opens to what was acknowledged, with the write pointer where it was
 * before or after what was going on, and the area goes on there.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "floors.h"
#include "stores.h"

/* Tables of a page each: block records, map, zones, units, area pages */
enum { TABLES = 5, ZONES = 2, MOST = 128, NOTHING = 0 };

/* What is acknowledged of a zone, and what the command going on makes of it */
typedef struct Shadow {
    uint64_t next, then_next;
    uint64_t tag[MOST], then_tag[MOST];
    bool resetting;
} Shadow;

static Shadow zones[ZONES];
static RsdConfig cfg;
static const char *path, *copy;
static uint64_t seed, step;

static void check_page(const Shadow *z, const Bed *bed, uint32_t zone,
                       uint64_t p, const RsdCmd *cmd)
{
    uint64_t tags[] = { z->tag[p], z->then_tag[p] };

    for (int i = 0; i < 2; i++) {
        if (page_matches(cmd->data + p * PAGE, cmd->oob + p * 16, 16,
                         lba(bed, zone, p), tags[i])) {
            return;
        }
    }
    FAIL("seed %" PRIu64 ", step %" PRIu64 ": zone %u, page %" PRIu64
         " is neither of tag %" PRIu64 " nor of %" PRIu64, seed, step, zone, p,
         tags[0], tags[1]);
}

static void look(void)
{
    Bed bed = { .cfg = cfg, .path = copy };
    uint64_t flush = cfg.zrwa_flush / 4096;
    char err[RSD_ERR_LEN];

    copy_media(path, copy);
    for (int again = 0; again < 2; again++) {
        bed.drive = rsd_open(bed.path, &bed.cfg, err);
        if (!bed.drive) {
            FAIL("seed %" PRIu64 ", step %" PRIu64 ": %s", seed, step, err);
        }
        rsd_geometry(bed.drive, 0, &bed.geo);
        bed.now = 0;
        for (uint32_t zone = 0; zone < ZONES; zone++) {
            const Shadow *z = &zones[zone];
            uint64_t cap = bed.geo.zone_capacity;
            RsdCmd *cmd = begin(&bed, RSD_READ, lba(&bed, zone, 0), cap, 0);
            RsdZone info;

            await(&bed, cmd);
            rsd_zone_get(bed.drive, zone, &info);
            if (z->resetting) {
                CHECK(info.next == z->next || !info.next);
            } else {
                CHECK(info.next >= z->next && info.next <= z->then_next);
            }
            CHECK(info.next % flush == 0 || !info.zrwa);
            for (uint64_t p = 0; p < cap; p++) {
                check_page(z, &bed, zone, p, cmd);
            }
            rsd_cmd_free(bed.drive, cmd);
            /* it goes on, the second time */
            if (again && info.zrwa) {
                run(&bed, RSD_WRITE, lba(&bed, zone, info.next), 1, 9999);
                run(&bed, RSD_ZRWA_COMMIT, lba(&bed, zone, info.next), flush,
                    0);
                bed_drain(&bed);
                expect_pages(&bed, lba(&bed, zone, info.next), 1, 9999);
            }
        }
        CHECK_EQ(counters(&bed).media_errors, 0);
        rsd_close(bed.drive);
    }
}

static void settle(Shadow *z)
{
    z->next = z->then_next;
    memcpy(z->tag, z->then_tag, sizeof(z->tag));
    z->resetting = false;
}

static void one_step(Bed *bed, Rng *rng)
{
    uint32_t zone = rng_below(rng, ZONES);
    Shadow *z = &zones[zone];
    uint64_t cap = bed->geo.zone_capacity, size = cfg.zrwa_size / 4096;
    uint64_t flush = cfg.zrwa_flush / 4096, what = rng_below(rng, 10);
    RsdZone info;

    rsd_zone_get(bed->drive, zone, &info);
    if (!info.zrwa && z->next) {
        what = 9;
    } else if (!info.zrwa) {
        run(bed, RSD_ZRWA_OPEN, lba(bed, zone, 0), 0, 0);
    }
    if (what < 6) {
        uint64_t end = z->next + 2 * size < cap ? z->next + 2 * size : cap;
        uint64_t from = z->next + rng_below(rng, end - z->next);
        uint64_t nlb = 1 + rng_below(rng, end - from);

        for (uint64_t p = from; p < from + nlb; p++) {
            z->then_tag[p] = step;
        }
        if (from + nlb > z->next + size) {
            z->then_next += rsd_div_round_up(from + nlb - z->next - size,
                                             flush) * flush;
        }
        run(bed, RSD_WRITE, lba(bed, zone, from), nlb, step);
    } else if (what < 8) {
        uint64_t left = cap - z->next;

        z->then_next += flush * (1 + rng_below(rng, (size < left ? size : left)
                                                    / flush));
        run(bed, RSD_ZRWA_COMMIT, lba(bed, zone, z->next),
            z->then_next - z->next, 0);
    } else if (what == 8) {
        z->then_next = cap;
        run(bed, RSD_ZONE_FINISH, lba(bed, zone, 0), 0, 0);
    } else {
        z->then_next = 0;
        memset(z->then_tag, 0, sizeof(z->then_tag));
        z->resetting = true;
        run(bed, RSD_ZONE_RESET, lba(bed, zone, 0), 0, 0);
    }
    settle(z);
    if (rng_below(rng, 2)) {
        bed_drain(bed);
    }
}

TEST(killed_after_any_store)
{
    copy = temp_path("copy.rsd");
    for (seed = 0; seed < 6; seed++) {
        Rng rng = { seed };
        Bed bed;

        path = temp_path("kill.rsd");     /* bed_close() frees it */
        cfg = small_config();
        cfg.channels = 1 + seed % 2;
        cfg.ways = 1;
        cfg.blocks = ZONES;
        cfg.pages = 12;
        cfg.planes = seed % 3 == 2 ? 2 : 1;
        cfg.page_size = seed % 2 ? 8192 : 4096;
        cfg.finish = RSD_FINISH_PAD;
        cfg.ack = seed % 4 == 3 ? RSD_ACK_PROGRAM : RSD_ACK_BUFFER;
        cfg.zrwa = ZONES;
        cfg.zrwa_flush = (2 + seed % 2) * 4096;
        cfg.zrwa_size = cfg.zrwa_flush * (1 + seed % 3);
        cfg.write_buffer = ZONES * cfg.zrwa_size + 8 * 4096;
        memset(zones, 0, sizeof(zones));
        stores_watch(TABLES, look);
        bed = bed_open(&cfg, path);
        CHECK(bed.geo.zone_capacity <= MOST);
        for (step = 1; step <= 40; step++) {
            one_step(&bed, &rng);
        }
        stores_end();
        bed_close(&bed);
    }
    printf("%" PRIu64 " stores\n", stores_seen());
    CHECK(stores_seen() > 2000);
}
