/*
 * The pages of the tables are write-protected; the fault of a store lets that
 * one instruction through, by the processor's trap flag.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "stores.h"

#define TRAP_FLAG 0x100

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
                  off_t offset);

/* What is watched; in then(), what was when the store was made */
typedef struct Watch {
    uint8_t *tables;            /* NULL: nothing is */
    size_t bytes;
    void (*then)(void);
    bool armed;                 /* the next mapping is to be watched */
} Watch;

static Watch current;
static uint64_t seen;

uint64_t stores_seen(void)
{
    return seen;
}

static void protect(int prot)
{
    if (mprotect(current.tables, current.bytes, prot)) {
        abort();
    }
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
                  off_t offset)
{
    void *map = __real_mmap(addr, len, prot, flags, fd, offset);

    if (current.armed && fd >= 0) {
        current.armed = false;
        current.tables = (uint8_t *)map + 4096;
        protect(PROT_READ);
    }
    return map;
}

#ifdef __x86_64__

static void on_fault(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    uint8_t *at = info->si_addr;

    (void)sig;
    if (!current.tables || at < current.tables ||
        at >= current.tables + current.bytes) {
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    protect(PROT_READ | PROT_WRITE);
    uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    Watch was = current;

    (void)sig;
    (void)info;
    uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    seen++;
    current = (Watch){ 0 };
    was.then();
    current = was;
    protect(PROT_READ);
}

void stores_watch(uint32_t pages, void (*then)(void))
{
    struct sigaction fault = { .sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO };
    /* a watch in then() has its faults within this handler */
    struct sigaction trap = { .sa_sigaction = on_trap,
                              .sa_flags = SA_SIGINFO | SA_NODEFER };

    current = (Watch){ .bytes = pages * UINT64_C(4096), .then = then,
                       .armed = true };
    CHECK(!sigaction(SIGSEGV, &fault, NULL));
    CHECK(!sigaction(SIGTRAP, &trap, NULL));
}

#else

void stores_watch(uint32_t pages, void (*then)(void))
{
    (void)pages;
    (void)then;
    SKIP("stores are caught on x86-64 only");
}

#endif

void stores_end(void)
{
    if (current.tables) {
        protect(PROT_READ | PROT_WRITE);
    }
    current = (Watch){ 0 };
}

/* What is there already is written over: that is cheaper than a new file. */
void copy_media(const char *from, const char *to)
{
    static uint8_t buf[4 << 20];
    int in = open(from, O_RDONLY), out = open(to, O_RDWR | O_CREAT, 0600);
    struct stat st;
    off_t data, hole = 0;

    CHECK(in >= 0 && out >= 0 && !fstat(in, &st));
    CHECK(!ftruncate(out, st.st_size));
    while (hole < st.st_size) {
        data = lseek(in, hole, SEEK_DATA);
        data = data < 0 ? st.st_size : data;
        if (data > hole) {
            CHECK(!fallocate(out, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                             hole, data - hole));
        }
        hole = data < st.st_size ? lseek(in, data, SEEK_HOLE) : st.st_size;
        CHECK(hole - data <= (off_t)sizeof(buf));
        CHECK(pread(in, buf, hole - data, data) == hole - data);
        CHECK(pwrite(out, buf, hole - data, data) == hole - data);
    }
    close(in);
    close(out);
}
