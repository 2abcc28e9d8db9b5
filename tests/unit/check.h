/*
 * A test is TEST(name) { ... }. A program runs those named on its command line,
 * or all of them; --list prints their names. A test that cannot run here calls
 * SKIP(why), which ends the program with status 77.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_CHECK_H
#define RSD_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Test {
    const char *name;
    void (*run)(void);
    struct Test *next;
} Test;

void check_register(Test *test);

#define TEST(test_name)                                                     \
    static void test_name(void);                                            \
    __attribute__((constructor)) static void register_##test_name(void)     \
    {                                                                       \
        static Test test = { #test_name, test_name, NULL };                 \
        check_register(&test);                                              \
    }                                                                       \
    static void test_name(void)

#define FAIL(...)                                                           \
    do {                                                                    \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                     \
        fprintf(stderr, __VA_ARGS__);                                       \
        fputc('\n', stderr);                                                \
        exit(1);                                                            \
    } while (0)

#define CHECK(cond)                                                         \
    do {                                                                    \
        if (!(cond)) {                                                      \
            FAIL("not so: %s", #cond);                                      \
        }                                                                   \
    } while (0)

/* Unsigned numbers */
#define CHECK_EQ(got, want)                                                 \
    do {                                                                    \
        uint64_t got_ = (got), want_ = (want);                              \
        if (got_ != want_) {                                                \
            FAIL("%s is %" PRIu64 ", not %s = %" PRIu64, #got, got_, #want, \
                 want_);                                                    \
        }                                                                   \
    } while (0)

/* The string contains this */
#define CHECK_SAYS(text, part)                                              \
    do {                                                                    \
        if (!strstr(text, part)) {                                          \
            FAIL("\"%s\" does not say \"%s\"", text, part);                 \
        }                                                                   \
    } while (0)

#define SKIP(why)                                                           \
    do {                                                                    \
        fprintf(stderr, "skipped: %s\n", why);                              \
        exit(77);                                                           \
    } while (0)

#endif
