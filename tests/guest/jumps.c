/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jumps to another page, taken until QEMU remembers what they went to. Then what lies there
 * changes in each way there is, and the next jump must go to what is there now.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define ROUNDS 30
#define OFTEN 50	/* jumps that make QEMU remember */
#define INDIRECT 64	/* where the page has its other jump */
#define CODE (PROT_READ | PROT_EXEC)

/*
 * Pages of code, one after the other in the file: one that jumps to the page behind it, or to the
 * address in its argument; and pages that return the number of each.
 */
enum { JUMPS, FIRST, SECOND, FILE_PAGES };

static int file;
static unsigned char *written; /* the file, to be stored into */
static sigjmp_buf faulted;
static void *volatile fault_at;

static void die(const char *what, unsigned int round, int got)
{
	printf("%s: round %u: %d\n", what, round, got);
	exit(1);
}

static void fault(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	fault_at = info->si_addr;
	siglongjmp(faulted, 1);
}

static void write_return(unsigned char *at, int value)
{
	at[0] = 0xb8; /* mov $value, %eax; ret */
	memcpy(at + 1, &value, sizeof(value));
	at[5] = 0xc3;
}

static void write_file(void)
{
	int to_next_page = PAGE - 5;

	written[0] = 0xe9; /* jmp */
	memcpy(written + 1, &to_next_page, sizeof(to_next_page));
	written[INDIRECT] = 0xff; /* jmp *%rdi */
	written[INDIRECT + 1] = 0xe7;
	write_return(written + FIRST * PAGE, FIRST);
	write_return(written + SECOND * PAGE, SECOND);
}

static void map(unsigned char *at, int page, int protection, int sharing)
{
	if (mmap(at, PAGE, protection, sharing | MAP_FIXED, file, page * PAGE) != at)
		abort();
}

/* A page that jumps, and the next one */
static unsigned char *new_pair(int next)
{
	unsigned char *pair = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pair == MAP_FAILED)
		abort();
	map(pair, JUMPS, CODE, MAP_SHARED);
	map(pair + PAGE, next, CODE, MAP_SHARED);
	return pair;
}

static int jump(unsigned char *pair)
{
	int (*function)(void) = (int (*)(void))pair;

	return function();
}

static int jump_to(unsigned char *pair, unsigned char *target)
{
	int (*function)(void *) = (int (*)(void *))(pair + INDIRECT);

	return function(target);
}

static void jump_often(const char *what, unsigned int round, unsigned char *pair, int expected)
{
	for (int i = 0; i < OFTEN; i++) {
		int got = jump(pair);

		if (got != expected)
			die(what, round, got);
		got = jump_to(pair, pair + PAGE);
		if (got != expected)
			die(what, round, -got);
	}
}

static void expect_fault(const char *what, unsigned int round, unsigned char *pair)
{
	fault_at = NULL;
	if (!sigsetjmp(faulted, 1))
		die(what, round, jump(pair));
	if (fault_at != pair + PAGE)
		die(what, round, -1);
	fault_at = NULL;
	if (!sigsetjmp(faulted, 1))
		die(what, round, -jump_to(pair, pair + PAGE));
	if (fault_at != pair + PAGE)
		die(what, round, -2);
}

static void other_page(unsigned int round, unsigned char *pair)
{
	jump_often("before another page is mapped", round, pair, FIRST);
	map(pair + PAGE, SECOND, CODE, MAP_SHARED);
	jump_often("after another page was mapped", round, pair, SECOND);
	map(pair + PAGE, FIRST, CODE, MAP_SHARED);
}

static void no_page(unsigned int round, unsigned char *pair)
{
	jump_often("before it cannot be executed", round, pair, FIRST);
	if (mprotect(pair + PAGE, PAGE, PROT_READ))
		abort();
	expect_fault("where nothing can be executed", round, pair);
	if (mprotect(pair + PAGE, PAGE, CODE))
		abort();
	jump_often("when it can be executed again", round, pair, FIRST);
	if (munmap(pair + PAGE, PAGE))
		abort();
	expect_fault("where nothing is mapped", round, pair);
	map(pair + PAGE, FIRST, CODE, MAP_SHARED);
}

static void stored_into(unsigned int round, unsigned char *pair)
{
	jump_often("before a store", round, pair, FIRST);
	write_return(written + FIRST * PAGE, 1000 + (int)round);
	jump_often("after a store", round, pair, 1000 + (int)round);
	write_return(written + FIRST * PAGE, FIRST);
}

/* The jumps are on the same page of memory at both addresses. What is behind it is not. */
static void two_addresses(unsigned int round, unsigned char *pair, unsigned char *other)
{
	for (int i = 0; i < OFTEN; i++) {
		jump_often("the one address", round, pair, FIRST);
		jump_often("the other address", round, other, SECOND);
		if (jump_to(pair, pair + PAGE) != FIRST || jump_to(pair, other + PAGE) != SECOND)
			die("from one address to both", round, i);
	}
}

/* One half of a pair of processes that wake each other, with a page of its own behind the jumps */
static void in_turns(unsigned char *pair, int value, int from, int to)
{
	char token;

	map(pair + PAGE, FIRST, CODE | PROT_WRITE, MAP_PRIVATE);
	write_return(pair + PAGE, value);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (read(from, &token, 1) != 1)
			die("the other process", round, value);
		jump_often("two processes", round, pair, value);
		if (write(to, &token, 1) != 1)
			die("to the other process", round, value);
	}
}

static void two_processes(unsigned char *pair)
{
	int there[2], back[2], status;
	pid_t child;

	if (pipe(there) || pipe(back) || write(back[1], "x", 1) != 1)
		abort();
	child = fork();
	close(child ? there[0] : there[1]);
	close(child ? back[1] : back[0]);
	if (!child) {
		in_turns(pair, 7, there[0], back[1]);
		exit(0);
	}
	in_turns(pair, 8, back[0], there[1]);
	if (waitpid(child, &status, 0) != child || status)
		die("the child", 0, status);
	map(pair + PAGE, FIRST, CODE, MAP_SHARED);
}

/* The kernel counts how often the processor is about to execute the target. */
static void breakpoint(unsigned int round, unsigned char *pair)
{
	struct perf_event_attr wanted = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(wanted),
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = (uintptr_t)(pair + PAGE),
		.bp_len = sizeof(long),
		.disabled = 1,
		.exclude_kernel = 1,
	};
	int counter = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
	uint64_t times;

	if (counter < 0)
		die("perf_event_open", round, errno);
	jump_often("before a breakpoint", round, pair, FIRST);
	if (ioctl(counter, PERF_EVENT_IOC_ENABLE, 0))
		die("a breakpoint", round, errno);
	jump_often("with a breakpoint", round, pair, FIRST);
	if (read(counter, &times, sizeof(times)) != sizeof(times) || times != 2 * OFTEN)
		die("times at a breakpoint", round, (int)times);
	close(counter);
	jump_often("after a breakpoint", round, pair, FIRST);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
	unsigned char *pair, *other;

	file = memfd_create("code", 0);
	if (file < 0 || ftruncate(file, FILE_PAGES * PAGE))
		abort();
	written = mmap(NULL, FILE_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (written == MAP_FAILED || sigaction(SIGSEGV, &action, NULL))
		abort();
	write_file();
	pair = new_pair(FIRST);
	other = new_pair(SECOND);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		other_page(round, pair);
		no_page(round, pair);
		stored_into(round, pair);
		two_addresses(round, pair, other);
		breakpoint(round, pair);
	}
	two_processes(pair);
	return 0;
}
