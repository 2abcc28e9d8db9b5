/*
 * The array refuses what NAND refuses: by assertion here, by an error in the
 * product (test_nand_production).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "floors.h"

static RsdMedia media;

static void setup(void)
{
    RsdConfig cfg = small_config();
    char err[RSD_ERR_LEN];

    CHECK(rsd_media_open_memory(&media, &cfg, err));
    media.rec[1] = rsd_rec(0, 0, RSD_BLOCK_BAD);
}

static RsdStatus program(uint32_t block, uint32_t page)
{
    return rsd_nand_program(&media, block, page, NULL, NULL, 0);
}

static RsdStatus do_program_first(void)
{
    return program(0, 0);
}

static RsdStatus do_program_second(void)
{
    return program(0, 1);
}

static RsdStatus do_program_third(void)
{
    return program(0, 2);
}

static RsdStatus do_program_beyond(void)
{
    return program(0, 8);
}

static RsdStatus do_program_bad(void)
{
    return program(1, 0);
}

static RsdStatus do_read_bad(void)
{
    return rsd_nand_read(&media, 1, 0, NULL, NULL, 0);
}

static RsdStatus do_read_beyond(void)
{
    return rsd_nand_read(&media, 0, 8, NULL, NULL, 0);
}

static RsdStatus do_erase_bad(void)
{
    return rsd_nand_erase(&media, 1);
}

/* What makes a page a torn one, wherever the host can write it */
TEST(the_host_cannot_tear_a_page)
{
    static uint8_t slot[RSD_PAGE_SIZE + RSD_OOB_SIZE], data[RSD_PAGE_SIZE];
    uint8_t oob[RSD_SPARE_OFFSET];

    RsdConfig cfg = small_config();
    const char *path = temp_path("torn.rsd");
    char err[RSD_ERR_LEN];

    CHECK(rsd_media_create(path, &cfg, err));
    CHECK(rsd_media_open(&media, path, &cfg, false, err));
    CHECK_EQ(rsd_nand_tear(&media, 0, 0, 1), RSD_OK);
    CHECK(rsd_nand_is_torn(&media, 0, 0));
    /* all of the torn page that could be read, as data and as metadata */
    memcpy(slot, rsd_media_page(&media, 0, 0), RSD_PAGE_SIZE);
    memcpy(slot + RSD_PAGE_SIZE,
           rsd_media_oob(&media, 0, 0) + RSD_SPARE_OFFSET, RSD_SPARE_OFFSET);
    CHECK_EQ(rsd_nand_program_unit(&media, 0, 1, 1, slot), RSD_OK);
    memcpy(slot, rsd_media_oob(&media, 0, 0) + RSD_SPARE_OFFSET,
           RSD_SPARE_OFFSET);
    CHECK_EQ(rsd_nand_program_unit(&media, 0, 2, 1, slot), RSD_OK);
    for (uint32_t page = 1; page < 3; page++) {
        CHECK(!rsd_nand_is_torn(&media, 0, page));
        CHECK_EQ(rsd_nand_read(&media, 0, page, data, oob, sizeof(oob)),
                 RSD_OK);
    }
    CHECK(!memcmp(data, slot, sizeof(data)));
    /* a copy of a torn page is torn */
    memcpy(slot + RSD_PAGE_SIZE, rsd_media_oob(&media, 0, 0), RSD_OOB_SIZE);
    CHECK_EQ(rsd_nand_program_unit(&media, 2, 0, 1, slot), RSD_OK);
    CHECK_EQ(rsd_nand_read(&media, 2, 0, data, NULL, 0), RSD_E_MEDIA);
    /* the same bytes in a block without torn pages, of a host that has all OOB */
    CHECK_EQ(rsd_nand_program(&media, 3, 0, slot, slot + RSD_PAGE_SIZE,
                              RSD_OOB_SIZE), RSD_OK);
    CHECK_EQ(rsd_nand_read(&media, 3, 0, data, NULL, 0), RSD_OK);
    rsd_media_close(&media);
    media = (RsdMedia){ 0 };
    unlink(path);
    free((char *)path);
}

/* That status, or an assertion if the array is built with them */
static void expect_refusal(RsdStatus (*op)(void), RsdStatus want)
{
    uint64_t before[2] = { media.rec[0], media.rec[1] };
#ifdef RSD_ASSERT_NAND
    int status;
    pid_t pid = fork();

    (void)want;
    CHECK(pid >= 0);
    if (!pid) {
        close(STDERR_FILENO);
        op();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#else
    CHECK_EQ(op(), want);
#endif
    CHECK(media.rec[0] == before[0] && media.rec[1] == before[1]);
}

TEST(programs_in_order_once)
{
    setup();
    expect_refusal(do_program_second, RSD_E_ORDER);
    CHECK_EQ(do_program_first(), RSD_OK);
    expect_refusal(do_program_first, RSD_E_ORDER);
    expect_refusal(do_program_third, RSD_E_ORDER);
    for (uint32_t page = 1; page < 8; page++) {
        CHECK_EQ(program(0, page), RSD_OK);
    }
    expect_refusal(do_program_beyond, RSD_E_ORDER);
    expect_refusal(do_program_first, RSD_E_ORDER);
    rsd_media_close(&media);
}

TEST(erase_allows_programs_again)
{
    setup();
    for (uint32_t i = 1; i < 4; i++) {
        CHECK_EQ(do_program_first(), RSD_OK);
        CHECK_EQ(rsd_nand_erase(&media, 0), RSD_OK);
        CHECK_EQ(rsd_rec_erases(media.rec[0]), i);
        CHECK_EQ(rsd_rec_next(media.rec[0]), 0);
    }
    rsd_media_close(&media);
}

TEST(bad_blocks_are_out_of_bounds)
{
    setup();
    expect_refusal(do_program_bad, RSD_E_MEDIA);
    expect_refusal(do_read_bad, RSD_E_MEDIA);
    expect_refusal(do_erase_bad, RSD_E_MEDIA);
    rsd_media_close(&media);
}

TEST(reads_stay_within_the_block)
{
    setup();
    CHECK_EQ(rsd_nand_read(&media, 0, 7, NULL, NULL, 0), RSD_OK);
    expect_refusal(do_read_beyond, RSD_E_MEDIA);
    rsd_media_close(&media);
}

TEST(records_keep_their_parts_apart)
{
    uint64_t rec = rsd_rec(UINT32_MAX, 65536, RSD_BLOCK_DIRTY);

    CHECK_EQ(rsd_rec_erases(rec), UINT32_MAX);
    CHECK_EQ(rsd_rec_next(rec), 65536);
    CHECK_EQ(rsd_rec_flags(rec), RSD_BLOCK_DIRTY);
}

static Bed bed;

/* A write is in flight when its block goes bad behind the drive's back. */
static RsdStatus do_drive_error(void)
{
    RsdCmd *done;

    bed.now = 1000000;
    done = rsd_advance(bed.drive, bed.now);
    CHECK(done && done->op == RSD_WRITE);
    return done->status;
}

TEST(an_error_reaches_the_command)
{
    RsdConfig cfg = small_config();

    setup();
    bed = bed_open(&cfg, NULL);
    begin(&bed, RSD_WRITE, 0, 1, 0);
    rsd_nand_mark(&bed.drive->media, 0, RSD_BLOCK_BAD);
    expect_refusal(do_drive_error, RSD_E_MEDIA);
#ifndef RSD_ASSERT_NAND
    CHECK_EQ(counters(&bed).media_errors, 1);
#endif
    bed_close(&bed);
    rsd_media_close(&media);
}
