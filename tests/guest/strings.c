/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * String instructions with REP against plain loops: all lengths, directions and sizes, through pages
 * that are not there yet, and with signals in between; flags that are read after one. Then what
 * they take on the guest's clock: an instruction for each iteration.
 *
 *	strings INSTRUCTIONS_A_NS
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#define AREA (64 << 10)
#define ROUNDS 100
#define TIMED (1 << 20)
#define FLAGGED 1000	/* signals while flags are looked at */

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
	(void)signal;
	ticks++;
}

static void die(const char *what, unsigned int round)
{
	printf("%s: round %u differs\n", what, round);
	exit(1);
}

static unsigned char *fresh(void)
{
	void *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		abort();
	return area;
}

static void moves(unsigned int round, int width)
{
	static unsigned char from[AREA], wanted[AREA];
	unsigned char *to = fresh();
	unsigned long count = (unsigned long)rand() % (AREA / (unsigned long)width - 8);
	unsigned long bytes = count * (unsigned long)width;
	int down = rand() & 1;
	unsigned long at = down && count ? bytes - (unsigned long)width : 0;
	const unsigned char *s = from + at;
	unsigned char *d = to + at;
	unsigned long left = count;

	for (unsigned long i = 0; i < AREA && !round; i++)
		from[i] = (unsigned char)rand();
	memset(wanted, 0, sizeof(wanted));
	for (unsigned long i = 0; i < bytes; i++)
		wanted[i] = from[i];
	if (down)
		__asm__ volatile("std" ::: "cc");
	if (width == 1)
		__asm__ volatile("rep movsb" : "+S"(s), "+D"(d), "+c"(left) :: "memory");
	else if (width == 4)
		__asm__ volatile("rep movsl" : "+S"(s), "+D"(d), "+c"(left) :: "memory");
	else
		__asm__ volatile("rep movsq" : "+S"(s), "+D"(d), "+c"(left) :: "memory");
	__asm__ volatile("cld" ::: "cc");
	if (left || memcmp(to, wanted, AREA))
		die("rep movs", round);
	if (d != to + (down && count ? -width : (long)bytes))
		die("rdi of rep movs", round);
	munmap(to, AREA);
}

static void stores(unsigned int round)
{
	unsigned char *to = fresh();
	unsigned char *d = to + rand() % 4096;
	unsigned long count = (unsigned long)rand() % (AREA - 8192);
	unsigned char *end = d + count;
	unsigned long left = count;

	__asm__ volatile("rep stosb" : "+D"(d), "+c"(left) : "a"(0x5a) : "memory");
	if (left || d != end)
		die("registers of rep stosb", round);
	for (unsigned char *p = to; p < to + AREA; p++) {
		if (*p != (p >= end - count && p < end ? 0x5a : 0))
			die("rep stosb", round);
	}
	munmap(to, AREA);
}

static void scans(unsigned int round)
{
	unsigned char *a = fresh(), *b = fresh();
	unsigned long where = (unsigned long)rand() % (AREA - 1), left = AREA, found;
	unsigned char *d = a;
	const unsigned char *s = b;

	a[where] = 1;
	__asm__ volatile("repne scasb" : "+D"(d), "+c"(left) : "a"(1) : "cc", "memory");
	if (d != a + where + 1 || left != AREA - where - 1)
		die("repne scasb", round);
	d = a;
	left = AREA;
	__asm__ volatile("repe cmpsb\n\tsetne %b3"
			 : "+S"(s), "+D"(d), "+c"(left), "=q"(found) : : "cc", "memory");
	if (d != a + where + 1 || left != AREA - where - 1 || !(found & 0xff))
		die("repe cmpsb", round);
	munmap(a, AREA);
	munmap(b, AREA);
}

/* Interrupts come just before the string instruction, too, when the flags have been set. */
static void flags(void)
{
	unsigned char to[8];
	int until = ticks + FLAGGED;

	for (unsigned int round = 0; ticks < until; round++) {
		unsigned long a = (unsigned long)rand() % 3, b = (unsigned long)rand() % 3;
		unsigned long left = (unsigned long)rand() % sizeof(to);
		unsigned char *d = to, equal, below;

		__asm__ volatile("cmpq %5, %4\n\trep stosb\n\tsete %2\n\tsetb %3"
				 : "+D"(d), "+c"(left), "=&r"(equal), "=&r"(below)
				 : "r"(a), "r"(b), "a"(0) : "cc", "memory");
		if (equal != (a == b) || below != (a < b))
			die("flags of cmp after rep stosb", round);
	}
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void timed(double rate)
{
	static unsigned char from[TIMED], to[TIMED];
	int64_t least = INT64_MAX;

	memset(from, 1, TIMED);
	memset(to, 2, TIMED);
	for (int i = 0; i < 5; i++) {
		const unsigned char *s = from;
		unsigned char *d = to;
		unsigned long left = TIMED;
		int64_t began = now();

		__asm__ volatile("rep movsb" : "+S"(s), "+D"(d), "+c"(left) :: "memory");
		began = now() - began;
		if (began < least)
			least = began;
	}
	printf("%.3f\n", (double)least * rate / TIMED);
}

int main(int argc, char **argv)
{
	struct itimerval every = {{0, 37}, {0, 37}};
	struct itimerval never = {{0, 0}, {0, 0}};

	if (argc != 2)
		return 2;
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &every, NULL);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		moves(round, 1);
		moves(round, 4);
		moves(round, 8);
		stores(round);
		scans(round);
	}
	flags();
	setitimer(ITIMER_REAL, &never, NULL);
	if (ticks < 1000 + FLAGGED) {
		printf("%d signals only\n", (int)ticks);
		return 1;
	}
	timed(strtod(argv[1], NULL));
	return 0;
}
