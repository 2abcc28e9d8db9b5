// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

#define WIDTH 30
#define CALLS_A_LOOK 1024	/* at the clock */
#define INTERVAL_S 0.1

static struct {
	const char *title;
	uint64_t total, done;
	double started, shown;
	unsigned int calls;
	bool terminal, visible;
} bar;

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

void progress_begin(const char *title, uint64_t total)
{
	progress_clear();
	bar.terminal = isatty(STDERR_FILENO);
	bar.title = title;
	bar.total = total;
	bar.started = now_s();
	bar.shown = bar.started;
	bar.calls = 0;
}

static void show(uint64_t done, double now)
{
	double elapsed = now - bar.started;
	double part = bar.total && done < bar.total ?
		      (double)done / bar.total : 1;
	int filled = part * WIDTH;

	fprintf(stderr, "\r\033[K%-13s ", bar.title);
	if (bar.total)
		fprintf(stderr, "[%.*s%*s] %3.0f%%", filled,
			"##############################", WIDTH - filled, "",
			part * 100);
	fprintf(stderr, " %" PRIu64 ", %.0f a second", done, done / elapsed);
	if (bar.total && done)
		fprintf(stderr, ", %.0f s left", elapsed / part - elapsed);
	fflush(stderr);
	bar.visible = true;
}

void progress_set(uint64_t done)
{
	double now;

	if (!bar.terminal || ++bar.calls % CALLS_A_LOOK)
		return;
	now = now_s();
	if (now - bar.shown < INTERVAL_S)
		return;
	bar.shown = now;
	show(done, now);
}

void progress_clear(void)
{
	if (bar.visible)
		fputs("\r\033[K", stderr);
	bar.visible = false;
}
