// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>

#include "../common/human.h"
#include "diff.h"
#include "tables.h"

/* Says whether a counter is set when the drive is made. */
static bool fixed(unsigned int i)
{
	return i == COUNTER(zones) || i == COUNTER(capacity_bytes) ||
	       i == COUNTER(page_bytes) || i == COUNTER(blocks_total) ||
	       i == COUNTER(spares_total) || i == COUNTER(endurance);
}

/*
 * Says whether a counter is a tally, which only grows. From map_bytes on most
 * counters are states.
 */
static bool tally(unsigned int i)
{
	return i < COUNTER(map_bytes) || i == COUNTER(wear_moves);
}

static bool check(const struct snapshot *before, const struct snapshot *after)
{
	unsigned int i;

	for (i = 0; i < RSD_NUM_COUNTERS; i++) {
		if (!before->present[i] || !after->present[i])
			continue;
		if (fixed(i) && before->values[i] != after->values[i]) {
			error("%s was %" PRIu64 " and is %" PRIu64 ": these are two drives",
			      counter_infos[i].name, before->values[i],
			      after->values[i]);
			return false;
		}
		if (tally(i) && before->values[i] > after->values[i]) {
			error("%s went down from %" PRIu64 " to %" PRIu64 ": give the earlier file first, both of one drive whose media was not made anew between",
			      counter_infos[i].name, before->values[i],
			      after->values[i]);
			return false;
		}
	}
	return true;
}

static void print_json(FILE *out, const struct snapshot *before,
		       const struct snapshot *after, const struct derived *d)
{
	const char *comma = "";
	unsigned int i;

	fprintf(out, "{\n  \"rsdctl version\" : \"%s\",\n", RSDCTL_VERSION);
	fputs("  \"counters\" : {", out);
	for (i = 0; i < RSD_NUM_COUNTERS; i++) {
		if (!before->present[i] || !after->present[i])
			continue;
		fprintf(out, "%s\n    \"%s\" : { \"before\" : %" PRIu64 ", \"after\" : %" PRIu64 ", \"difference\" : %" PRId64 ", \"unit\" : \"%s\" }",
			comma, counter_infos[i].name, before->values[i],
			after->values[i],
			(int64_t)(after->values[i] - before->values[i]),
			counter_infos[i].unit);
		comma = ",";
	}
	fputs("\n  },\n  \"derived\" : {\n", out);
	derived_json(out, d);
	fputs("\n  }\n}\n", out);
}

static void print_table(FILE *out, const struct snapshot *before,
			const struct snapshot *after, const struct derived *d)
{
	unsigned int i, changed = 0;
	char wait[24];

	for (i = 0; i < RSD_NUM_COUNTERS; i++) {
		if (!before->present[i] || !after->present[i] ||
		    before->values[i] == after->values[i])
			continue;
		if (!changed++)
			fprintf(out, "%-18s %20s %20s %20s\n", "counter",
				"before", "after", "difference");
		fprintf(out, "%-18s %20" PRIu64 " %20" PRIu64 " %+20" PRId64 " %s\n",
			counter_infos[i].name, before->values[i],
			after->values[i],
			(int64_t)(after->values[i] - before->values[i]),
			counter_infos[i].unit);
	}
	if (!changed)
		fputs("nothing changed\n", out);
	if (d->has_write_amplification)
		fprintf(out, "write amplification of the drive between: %.3f\n",
			d->write_amplification);
	if (d->has_mean_queue_wait) {
		human_ns(wait, sizeof(wait), d->mean_queue_wait_ns);
		fprintf(out, "mean queue wait between: %s\n", wait);
	}
}

int diff_print(FILE *out, const struct snapshot *before,
	       const struct snapshot *after, bool json)
{
	struct snapshot between = { 0 };
	struct derived d;
	unsigned int i;

	if (!check(before, after))
		return -1;
	for (i = 0; i < RSD_NUM_COUNTERS; i++)
		if (before->present[i] && after->present[i])
			between.values[i] = after->values[i] -
					    before->values[i];
	d = snapshot_derive(&between.counters);
	if (json)
		print_json(out, before, after, &d);
	else
		print_table(out, before, after, &d);
	return 0;
}
