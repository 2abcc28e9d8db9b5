/*
 * What the tests of the core share: small drives, single commands, patterns.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_HARNESS_H
#define RSD_HARNESS_H

#include <string.h>

#include "check.h"
#include "rsd.h"

#define PAGE 4096u

/* A drive under test and the time */
typedef struct Bed {
    RsdDrive *drive;
    RsdConfig cfg;
    RsdGeometry geo;
    uint64_t now;
    const char *path;           /* NULL: in memory */
    bool synced;                /* it is opened by rsd_open_synced() */
} Bed;

/* 2 channels, 2 ways, 4 blocks and 1 spare of 8 pages, no background work */
RsdConfig small_config(void);

/* A name in the test's own directory (RSD_TEST_DIR); valid until the end. */
const char *temp_path(const char *name);

/* Opens a drive; with a path, on a new file of that name. */
Bed bed_open(const RsdConfig *cfg, const char *path);
void bed_reopen(Bed *bed);
void bed_close(Bed *bed);

/* Carries out events until the given time, freeing what completes. */
void bed_pass(Bed *bed, uint64_t ns);
/* Until nothing is pending */
void bed_drain(Bed *bed);

/* LBA of a zone's page */
uint64_t lba(const Bed *bed, uint32_t zone, uint64_t page);

/* Submits; with a tag, the pages are filled with its pattern. */
RsdCmd *begin(Bed *bed, RsdOp op, uint64_t at, uint32_t nlb, uint64_t tag);
/* Waits for that one. Others that complete are freed. Its status. */
RsdStatus finish(Bed *bed, RsdCmd *cmd);
/* finish(); the command must succeed. Its latency in ns. */
uint64_t await(Bed *bed, RsdCmd *cmd);
/* begin() and await(); the command must succeed. Latency in ns. */
uint64_t run(Bed *bed, RsdOp op, uint64_t at, uint32_t nlb, uint64_t tag);
/* The status of a command that is not accepted */
RsdStatus refused(Bed *bed, RsdOp op, uint64_t at, uint32_t nlb);

/* Data and OOB that depend on the tag and the page's LBA */
void fill_page(uint8_t *data, uint8_t *oob, uint32_t oob_len, uint64_t page,
               uint64_t tag);
/* Reads nlb pages and compares; tag 0: zeroes. */
void expect_pages(Bed *bed, uint64_t at, uint32_t nlb, uint64_t tag);
bool page_matches(const uint8_t *data, const uint8_t *oob, uint32_t oob_len,
                  uint64_t page, uint64_t tag);

RsdCounters counters(const Bed *bed);
uint64_t written(const Bed *bed, uint32_t zone);

/* Small, fast, seeded */
typedef struct Rng {
    uint64_t state;
} Rng;

uint64_t rng_next(Rng *rng);
/* 0 to n - 1 */
uint64_t rng_below(Rng *rng, uint64_t n);

/* A sum over a file's content, to see that it was not touched. */
uint64_t file_hash(const char *path);

#endif
