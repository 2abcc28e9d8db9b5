// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits for timers of all kinds, again and again, for random times from 20 us to 20 ms, until
 * SIGTERM. Then it says how often it woke, and how late at worst, in ns; a timer that ends early
 * is a failure, and so is one that ends LATE_NS late, as one would whose interrupt got lost and
 * that a later one woke.
 *
 *   timers SEED >wakes
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_IN_S 1000000000LL
#define LATE_NS (NS_IN_S / 2)

static volatile sig_atomic_t ended, rung;

static void on_term(int number)
{
	(void)number;
	ended = 1;
}

static void on_alarm(int number)
{
	(void)number;
	rung = 1;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_IN_S + now.tv_nsec;
}

static struct timespec time_of(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_IN_S, .tv_nsec = ns % NS_IN_S };
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static void sleep_until(int64_t at)
{
	struct timespec time = time_of(at);

	while (!ended && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
		;
}

static void read_timer(int fd, int64_t at)
{
	struct itimerspec setting = { .it_value = time_of(at) };
	uint64_t count;

	timerfd_settime(fd, TFD_TIMER_ABSTIME, &setting, NULL);
	while (!ended && read(fd, &count, sizeof(count)) < 0)
		;
}

/* To whole microseconds, which are up to one later. */
static void wait_for_alarm(int64_t ns)
{
	struct itimerval setting = { .it_value.tv_usec = ns / 1000 + 1 };
	sigset_t alarm, before;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, &before);
	rung = 0;
	setitimer(ITIMER_REAL, &setting, NULL);
	while (!ended && !rung)
		sigsuspend(&before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int main(int argc, char **argv)
{
	uint64_t state = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	int64_t worst = 0;
	long wakes = 0;

	signal(SIGALRM, on_alarm);
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_term }, NULL);
	if (fd < 0)
		return perror("timerfd_create"), 1;
	while (!ended) {
		int64_t wait = 20000LL << next_random(&state) % 10;
		int64_t at, late;

		wait += next_random(&state) % wait;
		at = now_ns() + wait;
		switch (next_random(&state) % 3) {
		case 0:
			sleep_until(at);
			break;
		case 1:
			read_timer(fd, at);
			break;
		default:
			wait_for_alarm(wait);
		}
		if (ended)
			break;
		late = now_ns() - at;
		if (late < 0 || late > LATE_NS) {
			fprintf(stderr, "a timer of %" PRId64 " ns ended %" PRId64 " ns late\n", wait,
				late);
			return 1;
		}
		if (late > worst)
			worst = late;
		wakes++;
	}
	printf("%ld wakes, %" PRId64 " ns late at worst\n", wakes, worst);
	return 0;
}
