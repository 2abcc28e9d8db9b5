/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"
#include "watch.h"

uint64_t watch_stores;

#ifdef __x86_64__

#define TRAP_FLAG 0x100

static uint8_t *watched;        /* NULL: nothing is */
static size_t watched_len;
static uint32_t pages_of_next;  /* 0: the next file is not watched */
static void (*then)(void);

static void protect(int prot)
{
    if (mprotect(watched, watched_len, prot)) {
        abort();
    }
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    uint8_t *at = info->si_addr;

    (void)sig;
    if (!watched || at < watched || at >= watched + watched_len) {
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    protect(PROT_READ | PROT_WRITE);
    uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    uint8_t *was = watched;

    (void)sig;
    (void)info;
    uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    watch_stores++;
    watched = NULL;
    then();
    watched = was;
    protect(PROT_READ);
}

void watch_next_file(uint32_t pages, void (*after_store)(void))
{
    struct sigaction fault = { .sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO };
    struct sigaction trap = { .sa_sigaction = on_trap,
                              .sa_flags = SA_SIGINFO };

    then = after_store;
    pages_of_next = pages;
    CHECK(!sigaction(SIGSEGV, &fault, NULL));
    CHECK(!sigaction(SIGTRAP, &trap, NULL));
}

bool watch_end(void)
{
    if (watched) {
        protect(PROT_READ | PROT_WRITE);
    }
    watched = NULL;
    return true;
}

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
                  off_t offset);

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
                  off_t offset)
{
    void *map = __real_mmap(addr, len, prot, flags, fd, offset);

    if (pages_of_next && fd >= 0) {
        watched = (uint8_t *)map + 4096;
        watched_len = pages_of_next * 4096;
        pages_of_next = 0;
        protect(PROT_READ);
    }
    return map;
}

#else

void watch_next_file(uint32_t pages, void (*after_store)(void))
{
    (void)pages;
    (void)after_store;
}

bool watch_end(void)
{
    return false;
}

#endif

void watch_copy_file(const char *from, const char *to)
{
    static uint8_t buf[4 << 20];
    int in = open(from, O_RDONLY), out = open(to, O_RDWR | O_CREAT | O_TRUNC,
                                              0600);
    struct stat st;

    CHECK(in >= 0 && out >= 0 && !fstat(in, &st));
    CHECK(st.st_size <= (off_t)sizeof(buf));
    CHECK(pread(in, buf, st.st_size, 0) == st.st_size);
    CHECK(pwrite(out, buf, st.st_size, 0) == st.st_size);
    close(in);
    close(out);
}
