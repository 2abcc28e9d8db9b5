// SPDX-License-Identifier: GPL-2.0-or-later
#include "steady.h"

/* Returns the mean of so many rounds. */
static double mean(const double *values, uint32_t n)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += values[i];
	return sum / n;
}

bool steady_look(struct steady *s)
{
	double part[STEADY_PARTS], least = 0, most = 0, average, fit = 0;
	uint32_t length = s->rounds * 2 / 3 / STEADY_PARTS, start, i;

	if (length < STEADY_PART_LEAST)
		length = STEADY_PART_LEAST;
	if (s->rounds < s->least ||
	    s->rounds < s->first + length * STEADY_PARTS)
		return false;
	start = s->start = s->rounds - length * STEADY_PARTS;
	for (i = 0; i < STEADY_PARTS; i++) {
		part[i] = mean(s->amplification + start + i * length, length);
		if (!i || part[i] < least)
			least = part[i];
		if (!i || part[i] > most)
			most = part[i];
		/*
		 * The fit is by least squares: the sum of (x - 2) y by the sum
		 * of (x - 2)^2, which is 10.
		 */
		fit += ((int)i - 2) * part[i] / 10;
	}
	average = mean(part, STEADY_PARTS);
	/* The line rises by this from the first part to the last. */
	s->range = (most - least) / average;
	s->slope = (STEADY_PARTS - 1) * fit / average;
	return s->range <= STEADY_RANGE && s->slope <= STEADY_SLOPE &&
	       s->slope >= -STEADY_SLOPE;
}

enum levelling steady_levelling(const struct steady *s)
{
	const struct wear *now, *then;
	double more = 0, most = 0, threshold = s->threshold;
	uint32_t i;

	if (!s->threshold || !s->rounds)
		return LEVELLING_NONE;
	now = &s->wear[s->rounds - 1];
	then = &s->wear[s->start];
	if (now->levelled)
		return then->levelled &&
		       now->mean - then->mean >= s->threshold ?
		       LEVELLING_RUNS : LEVELLING_AHEAD;
	if (now->spread > then->spread)
		more = (double)(now->spread - then->spread) /
		       (s->rounds - 1 - s->start);
	for (i = s->start; i < s->rounds; i++)
		if (s->wear[i].spread > most)
			most = s->wear[i].spread;
	return now->spread + more * STEADY_LONGER * s->rounds >= threshold ||
	       most * most * STEADY_LONGER >= threshold * threshold ?
	       LEVELLING_AHEAD : LEVELLING_NONE;
}
