/*
 * Native traces: what is written is read; damage of any kind is named.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "trace.h"

#define RECORD sizeof(RsdTraceRecord)

static char err[RSD_ERR_LEN];

/* temp_path(), the name being kept until the end */
static const char *temp(const char *name)
{
    static const char *names[16];
    static unsigned num;

    CHECK(num < 16);
    names[num] = temp_path(name);
    return names[num++];
}

static RsdTrace *begin_trace(const char *path)
{
    RsdConfig cfg = small_config();
    RsdTrace *trace = rsd_trace_open(path, &cfg, 0x1234, err);

    CHECK(trace);
    return trace;
}

/* Submission and completion of one write */
static void add_write(RsdTrace *trace, uint64_t order)
{
    RsdTraceRecord submit = {
        .kind = RSD_TRACE_SUBMIT,
        .op = RSD_TRACE_WRITE,
        .time = 100 * order,
        .order = order,
        .lba = UINT64_MAX - order,
        .nlb = 7,
        .ns = 1,
        .queue = 65535,
        .flags = RSD_TRACE_FUA,
        .reserved2 = 99,
    };
    RsdTraceRecord done = {
        .kind = RSD_TRACE_DONE,
        .time = 100 * order + 50,
        .order = order,
        .status = RSD_E_MEDIA,
    };

    CHECK(rsd_trace_add(trace, &submit));
    CHECK(rsd_trace_add(trace, &done));
}

/* A trace of so many writes; its size */
static off_t make(const char *path, uint64_t writes, const RsdCounters *c)
{
    RsdTrace *trace = begin_trace(path);
    struct stat st;

    for (uint64_t i = 0; i < writes; i++) {
        add_write(trace, i);
    }
    CHECK(rsd_trace_close(trace, 12345, c, err));
    CHECK(!stat(path, &st));
    return st.st_size;
}

static RsdTraceReader *open_reader(const char *path)
{
    RsdConfig cfg;
    uint64_t hash;

    return rsd_trace_read(path, &cfg, &hash, err);
}

/* Reads to the end: 0, or -1 and err */
static int read_all(const char *path, uint64_t *count, unsigned *torn)
{
    RsdTraceReader *reader = open_reader(path);
    RsdTraceRecord record;
    int ret;

    CHECK(reader);
    while ((ret = rsd_trace_next(reader, &record, err)) > 0) {
        continue;
    }
    *count = rsd_trace_number(reader);
    *torn = rsd_trace_torn(reader);
    rsd_trace_read_close(reader);
    return ret;
}

static void flip(const char *path, off_t at)
{
    int fd = open(path, O_RDWR);
    uint8_t byte;

    CHECK(fd >= 0);
    CHECK(pread(fd, &byte, 1, at) == 1);
    byte ^= 0x10;
    CHECK(pwrite(fd, &byte, 1, at) == 1);
    close(fd);
}

TEST(what_is_written_is_read)
{
    const char *path = temp("trace");
    RsdConfig cfg = small_config(), got;
    RsdCounters c = { .host_read_cmds = 5, .endurance = 77 };
    RsdTraceReader *reader;
    RsdTraceRecord r;
    uint64_t hash;

    make(path, 3, &c);
    reader = rsd_trace_read(path, &got, &hash, err);
    CHECK(reader);
    CHECK(!memcmp(&cfg, &got, sizeof(cfg)));
    CHECK_EQ(hash, 0x1234);
    CHECK_EQ(rsd_trace_records(reader), 3 * 2 + RSD_NUM_COUNTERS + 1);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_EQ(rsd_trace_next(reader, &r, err), 1);
        CHECK_EQ(r.kind, RSD_TRACE_SUBMIT);
        CHECK_EQ(r.op, RSD_TRACE_WRITE);
        CHECK_EQ(r.time, 100 * i);
        CHECK_EQ(r.order, i);
        CHECK_EQ(r.lba, UINT64_MAX - i);
        CHECK_EQ(r.nlb, 7);
        CHECK_EQ(r.ns, 1);
        CHECK_EQ(r.queue, 65535);
        CHECK_EQ(r.flags, RSD_TRACE_FUA);
        CHECK_EQ(rsd_trace_next(reader, &r, err), 1);
        CHECK_EQ(r.kind, RSD_TRACE_DONE);
        CHECK_EQ(r.time, 100 * i + 50);
        CHECK_EQ(r.status, RSD_E_MEDIA);
    }
    for (uint64_t i = 0; i < RSD_NUM_COUNTERS; i++) {
        CHECK_EQ(rsd_trace_next(reader, &r, err), 1);
        CHECK_EQ(r.kind, RSD_TRACE_COUNTER);
        CHECK_EQ(r.order, i);
        CHECK_EQ(r.lba, ((uint64_t *)&c)[i]);
    }
    CHECK_EQ(rsd_trace_next(reader, &r, err), 1);
    CHECK_EQ(r.kind, RSD_TRACE_END);
    CHECK_EQ(r.time, 12345);
    CHECK_EQ(rsd_trace_next(reader, &r, err), 0);
    CHECK_EQ(rsd_trace_torn(reader), 0);
    rsd_trace_read_close(reader);
}

TEST(an_existing_file_is_kept)
{
    const char *path = temp("trace");
    RsdConfig cfg = small_config();
    uint64_t before;

    make(path, 1, NULL);
    before = file_hash(path);
    CHECK(!rsd_trace_open(path, &cfg, 0, err));
    CHECK_SAYS(err, "File exists");
    CHECK_EQ(file_hash(path), before);
}

TEST(a_killed_recorder_leaves_whole_records)
{
    const char *path = temp("trace");
    pid_t pid = fork();
    uint64_t count;
    unsigned torn;
    int status;

    CHECK(pid >= 0);
    if (!pid) {
        RsdTrace *trace = begin_trace(path);

        for (uint64_t i = 0; i < 100; i++) {
            add_write(trace, i);
        }
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK_EQ(read_all(path, &count, &torn), 0);
    CHECK_EQ(count, 200);
    CHECK_EQ(torn, 0);
}

TEST(any_truncation_is_an_end_or_named)
{
    const char *path = temp("trace");
    off_t size = make(path, 2, NULL);
    off_t header = size - 4 * RECORD;

    CHECK_EQ(header % RECORD, 0);
    for (off_t cut = size - 1; cut >= header; cut--) {
        uint64_t count;
        unsigned torn;

        CHECK(!truncate(path, cut));
        CHECK_EQ(read_all(path, &count, &torn), 0);
        CHECK_EQ(count, (cut - header) / RECORD);
        CHECK_EQ(torn, (cut - header) % RECORD);
    }
    /* within the settings: the file cannot be used */
    for (off_t cut = header - RECORD - 1; cut >= 0; cut--) {
        CHECK(!truncate(path, cut));
        CHECK(!open_reader(path));
        CHECK_SAYS(err, path);
    }
}

TEST(any_flipped_bit_is_named)
{
    const char *path = temp("trace");
    off_t size = make(path, 2, NULL);
    off_t header = size - 4 * RECORD;
    uint64_t count;
    unsigned torn;

    for (off_t at = header; at < size; at++) {
        char where[64];

        flip(path, at);
        CHECK_EQ(read_all(path, &count, &torn), -1);
        snprintf(where, sizeof(where), "record %d has checksum",
                 (int)((at - header) / RECORD) + 1);
        CHECK_SAYS(err, where);
        flip(path, at);
    }
    for (off_t at = 0; at < 64; at++) {
        flip(path, at);
        CHECK(!open_reader(path));
        CHECK_SAYS(err, path);
        flip(path, at);
    }
    flip(path, 70);
    CHECK(!open_reader(path));
    flip(path, 70);
    CHECK_EQ(read_all(path, &count, &torn), 0);
}

/* What these two records lead to, the second being refused */
static void expect_bad(RsdTraceRecord second, const char *why)
{
    const char *path = temp("bad");
    RsdTrace *trace;
    RsdTraceRecord first = { .kind = RSD_TRACE_SUBMIT, .time = 10 };
    uint64_t count;
    unsigned torn;

    unlink(path);
    trace = begin_trace(path);
    CHECK(rsd_trace_add(trace, &first));
    CHECK(rsd_trace_add(trace, &second));
    CHECK(rsd_trace_close(trace, 0, NULL, err));
    CHECK_EQ(read_all(path, &count, &torn), -1);
    CHECK_EQ(count, 2);
    CHECK_SAYS(err, "record 2");
    CHECK_SAYS(err, why);
}

TEST(records_that_make_no_sense_are_named)
{
    expect_bad((RsdTraceRecord){ .kind = 0 }, "kind is 0");
    expect_bad((RsdTraceRecord){ .kind = 5 }, "kind is 5");
    expect_bad((RsdTraceRecord){ .kind = RSD_TRACE_SUBMIT, .time = 10,
                                 .order = 1, .op = 10 }, "operation is 10");
    expect_bad((RsdTraceRecord){ .kind = RSD_TRACE_SUBMIT, .time = 9,
                                 .order = 1 }, "time is 9");
    expect_bad((RsdTraceRecord){ .kind = RSD_TRACE_SUBMIT, .time = 10,
                                 .order = 2 }, "order of a submission is 2");
    expect_bad((RsdTraceRecord){ .kind = RSD_TRACE_DONE, .order = 1 },
               "order of a completion is 1");
}

TEST(not_a_trace)
{
    const char *path = temp("text");
    FILE *f = fopen(path, "w");

    fputs("fio version 2 iolog and more of it to fill a whole header, yes\n",
          f);
    fclose(f);
    CHECK(!open_reader(path));
    CHECK_SAYS(err, "not a native trace");
    CHECK(!open_reader(temp("missing")));
    CHECK_SAYS(err, "No such file");
}

TEST(a_full_disk_ends_the_trace_at_a_whole_record)
{
    const char *path = temp("trace");
    RsdTrace *trace = begin_trace(path);
    RsdTraceRecord record = { .kind = RSD_TRACE_SUBMIT };
    struct rlimit limit = { .rlim_max = RLIM_INFINITY };
    struct stat st;
    uint64_t count;
    unsigned torn;

    CHECK(!stat(path, &st));
    limit.rlim_cur = st.st_size + 2 * RECORD + 20;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
    CHECK(rsd_trace_add(trace, &record));
    record.order = 1;
    CHECK(rsd_trace_add(trace, &record));
    record.order = 2;
    CHECK(!rsd_trace_add(trace, &record));
    CHECK(!rsd_trace_add(trace, &record));
    CHECK(!rsd_trace_close(trace, 0, NULL, err));
    CHECK_SAYS(err, "ends early");
    CHECK_EQ(read_all(path, &count, &torn), 0);
    CHECK_EQ(count, 2);
    CHECK_EQ(torn, 0);
}

static uint64_t media_hash(const char *path)
{
    uint64_t hash;

    CHECK(rsd_trace_hash_media(path, &hash, err));
    return hash;
}

TEST(the_hash_is_of_the_content)
{
    const char *a = temp("a"), *b = temp("b");
    static uint8_t zeroes[1 << 20];
    uint8_t byte = 1;
    int fa = open(a, O_RDWR | O_CREAT, 0600);
    int fb = open(b, O_RDWR | O_CREAT, 0600);
    uint64_t hash, hash2;

    /* one sparse, one not */
    CHECK(!ftruncate(fa, sizeof(zeroes)));
    CHECK(write(fb, zeroes, sizeof(zeroes)) == sizeof(zeroes));
    CHECK_EQ(media_hash(a), media_hash(b));
    CHECK(pwrite(fa, &byte, 1, 70000) == 1);
    hash = media_hash(a);
    CHECK(hash != media_hash(b));
    CHECK(pwrite(fb, &byte, 1, 70000) == 1);
    CHECK_EQ(media_hash(b), hash);
    /* the same page elsewhere, the same byte elsewhere, another size */
    CHECK(pwrite(fb, zeroes, 1, 70000) == 1);
    CHECK(pwrite(fb, &byte, 1, 70000 + 4096) == 1);
    CHECK(media_hash(b) != hash);
    CHECK(pwrite(fb, zeroes, 1, 70000 + 4096) == 1);
    CHECK(pwrite(fb, &byte, 1, 70001) == 1);
    CHECK(media_hash(b) != hash);
    CHECK(!ftruncate(fa, sizeof(zeroes) + 4096));
    hash2 = media_hash(a);
    CHECK(hash2 != hash);
    CHECK(!rsd_trace_hash_media(temp("missing"), &hash, err));
    CHECK_SAYS(err, "No such file");
    close(fa);
    close(fb);
}

TEST(operations_have_names)
{
    CHECK_EQ(rsd_trace_op(RSD_READ), RSD_TRACE_READ);
    CHECK_EQ(rsd_trace_op(RSD_FLUSH), RSD_TRACE_FLUSH);
    CHECK_SAYS(rsd_trace_op_name(RSD_TRACE_ZONE_RESET), "zone reset");
    CHECK_SAYS(rsd_trace_op_name(255), "unknown");
}
