/*
 * The host cannot back the mapping of a media file: a page of it cannot be
 * loaded, or there is no space to store into it. Commands fail, and the process
 * goes on.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "floors.h"

/* One die; blocks of 8 pages, whose OOB is in a page of the host */
static RsdConfig one_die(RsdFtl ftl)
{
    RsdConfig cfg = small_config();

    cfg.channels = 1;
    cfg.ways = 1;
    cfg.ftl = ftl;
    cfg.blocks = 512 / 8 * 2;
    cfg.spare_blocks = 2;
    cfg.over_provision = 40;
    return cfg;
}

/* The file ends there: the host cannot load what was behind. */
static void cut_off(const Bed *bed, uint64_t bytes)
{
    CHECK(!truncate(bed->path, bytes));
}

static RsdStatus status_of(Bed *bed, RsdOp op, uint64_t at, uint32_t n)
{
    RsdCmd *cmd = rsd_cmd_new(bed->drive, 0, op, at, n);
    RsdStatus status = rsd_submit(bed->drive, cmd, bed->now);

    status = status == RSD_OK ? finish(bed, cmd) : status;
    rsd_cmd_free(bed->drive, cmd);
    return status;
}

static bool is_read_only(const Bed *bed)
{
    RsdHealth health;

    rsd_health(bed->drive, &health);
    return health.read_only;
}

/* What is there to be read is; the rest is not, and the drive says so. */
static void lost_oob(RsdFtl ftl)
{
    RsdConfig cfg = one_die(ftl);
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    const RsdMedia *media = &bed.drive->media;
    uint32_t last = 0, errors = 0, pages = 5 * 8;

    for (uint32_t at = 0; at < pages; at += 8) {
        run(&bed, RSD_WRITE, at, 8, 1);
    }
    bed_drain(&bed);
    for (uint32_t b = 0; b < bed.drive->die_blocks; b++) {
        last = rsd_rec_next(media->rec[b]) ? b : last;
    }
    CHECK_EQ(rsd_rec_next(media->rec[last]), 8);
    cut_off(&bed, media->data_off + last * media->stride + 8 * PAGE);
    CHECK(!is_read_only(&bed));
    for (int again = 0; again < 2; again++) {
        errors = 0;
        for (uint32_t at = 0; at < pages; at++) {
            errors += status_of(&bed, RSD_READ, at, 1) == RSD_E_MEDIA;
        }
        CHECK_EQ(errors, 8);
        CHECK(is_read_only(&bed));
    }
    CHECK(counters(&bed).media_errors > 0);
    CHECK_EQ(rsd_health_changes(bed.drive), 1);
    CHECK_EQ(status_of(&bed, RSD_WRITE, pages, 1), RSD_E_MEDIA);
    CHECK_EQ(status_of(&bed, RSD_FLUSH, 0, 0), RSD_E_MEDIA);
    bed_close(&bed);
}

TEST(a_lost_page_of_oob_is_an_error_of_its_pages)
{
    lost_oob(RSD_FTL_PAGE);
    lost_oob(RSD_FTL_BLOCK);
    lost_oob(RSD_FTL_RSD);
}

/* Without its tables, a drive knows nothing. */
TEST(lost_tables_are_an_error_of_everything)
{
    for (RsdFtl ftl = RSD_FTL_RSD; ftl <= RSD_FTL_FAST; ftl++) {
        RsdConfig cfg = one_die(ftl);
        Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
        char err[RSD_ERR_LEN];
        RsdCmd *write, *read;

        run(&bed, RSD_WRITE, 0, 8, 1);
        bed_drain(&bed);
        read = begin(&bed, RSD_READ, 0, 1, 0);
        write = begin(&bed, RSD_WRITE, 8, 1, 2);
        cut_off(&bed, 0);
        CHECK_EQ(finish(&bed, read), RSD_E_MEDIA);
        CHECK_EQ(finish(&bed, write), RSD_E_MEDIA);
        CHECK_EQ(status_of(&bed, RSD_READ, 0, 1), RSD_E_MEDIA);
        CHECK_EQ(status_of(&bed, RSD_WRITE, 9, 1), RSD_E_MEDIA);
        CHECK(is_read_only(&bed));
        CHECK(!rsd_power_on(bed.drive, err));
        CHECK_SAYS(err, "the host's disk cannot load a part of the media file");
        bed_close(&bed);
    }
}

/* The signal of a host that has no space for a store to that address */
static void no_space(void *at)
{
    siginfo_t info = { .si_signo = SIGBUS, .si_code = BUS_ADRERR,
                       .si_addr = at };

    CHECK(!syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &info));
}

/* What was stored before stays readable; what is stored now has failed. */
TEST(a_full_disk_leaves_what_there_was)
{
    RsdConfig cfg = one_die(RSD_FTL_PAGE);
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    RsdCmd *write;

    run(&bed, RSD_WRITE, 0, 8, 1);
    bed_drain(&bed);
    write = begin(&bed, RSD_WRITE, 0, 1, 2);
    no_space(bed.drive->media.rec);
    CHECK_EQ(finish(&bed, write), RSD_E_MEDIA);
    expect_pages(&bed, 1, 7, 1);
    CHECK(is_read_only(&bed));
    CHECK_EQ(status_of(&bed, RSD_WRITE, 0, 1), RSD_E_MEDIA);
    bed_reopen(&bed);
    CHECK(!is_read_only(&bed));
    expect_pages(&bed, 1, 7, 1);
    CHECK_EQ(status_of(&bed, RSD_WRITE, 0, 1), RSD_OK);
    bed_close(&bed);
}

static void *read_one(void *bed)
{
    return (void *)(uintptr_t)status_of(bed, RSD_READ, 0, 1);
}

/* Threads that block all signals, as QEMU's do */
TEST(a_thread_that_blocks_the_signal)
{
    RsdConfig cfg = one_die(RSD_FTL_PAGE);
    Bed bed = bed_open(&cfg, temp_path("drive.rsd"));
    pthread_t thread;
    sigset_t all, old;
    void *status;

    run(&bed, RSD_WRITE, 0, 1, 1);
    bed_drain(&bed);
    cut_off(&bed, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    CHECK(!pthread_create(&thread, NULL, read_one, &bed));
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    CHECK(!pthread_join(thread, &status));
    CHECK_EQ((uintptr_t)status, RSD_E_MEDIA);
    bed_close(&bed);
}

/* A page of another file that has none */
static void touch_another(void)
{
    int fd = open(temp_path("other"), O_RDWR | O_CREAT, 0600);
    volatile char *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

    signal(SIGBUS, SIG_DFL);
    (void)*at;
}

static void touch_beside_a_drive(void)
{
    RsdConfig cfg = one_die(RSD_FTL_PAGE);
    int fd = open(temp_path("other"), O_RDWR | O_CREAT, 0600);
    volatile char *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

    signal(SIGBUS, SIG_DFL);
    bed_open(&cfg, temp_path("drive.rsd"));
    (void)*at;
}

/* What is no drive's goes on as without one. */
TEST(other_faults_are_not_the_drives)
{
    void (*const touches[])(void) = { touch_another, touch_beside_a_drive };

    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        int status;

        if (!child) {
            touches[i]();
            _exit(0);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    }
}
