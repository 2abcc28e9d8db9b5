// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

#define WIDTH 30
#define CALLS_A_LOOK 1024	/* at the clock */
#define INTERVAL_S 0.1
#define LINE_INTERVAL_S 30.0	/* that of host/tools/rsd/progress.py, too */

static struct {
	const char *title;
	uint64_t total;
	double started, shown, interval;
	unsigned int calls;
	bool terminal, visible;
} bar;

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* RSD_HEARTBEAT_S sets another interval of lines, for tests. */
static double line_interval_s(void)
{
	const char *text = getenv("RSD_HEARTBEAT_S");
	double given = text ? strtod(text, NULL) : 0;

	return given > 0 ? given : LINE_INTERVAL_S;
}

void progress_begin(const char *title, uint64_t total)
{
	double now = now_s();

	progress_clear();
	if (!bar.title) {
		bar.terminal = isatty(STDERR_FILENO);
		bar.interval = bar.terminal ? INTERVAL_S : line_interval_s();
		bar.shown = now;
	}
	/*
	 * Lines go on counting from the last one, since a bar may be shorter
	 * than the interval.
	 */
	if (bar.terminal)
		bar.shown = now;
	bar.title = title;
	bar.total = total;
	bar.started = now;
	bar.calls = 0;
}

static void show(uint64_t done, double now)
{
	double elapsed = now - bar.started;
	double part = bar.total && done < bar.total ?
		      (double)done / bar.total : 1;
	int filled = part * WIDTH;

	fprintf(stderr, bar.terminal ? "\r\033[K%-13s " : "rsdsim: %s ",
		bar.title);
	if (bar.total && bar.terminal)
		fprintf(stderr, "[%.*s%*s] ", filled,
			"##############################", WIDTH - filled, "");
	if (bar.total)
		fprintf(stderr, "%3.0f%% ", part * 100);
	fprintf(stderr, "%" PRIu64 ", %.0f a second", done, done / elapsed);
	if (bar.total && done)
		fprintf(stderr, ", %.0f s left", elapsed / part - elapsed);
	if (!bar.terminal)
		putc('\n', stderr);
	fflush(stderr);
	bar.visible = bar.terminal;
}

void progress_set(uint64_t done)
{
	double now;

	if (++bar.calls % CALLS_A_LOOK)
		return;
	now = now_s();
	if (now - bar.shown < bar.interval)
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
