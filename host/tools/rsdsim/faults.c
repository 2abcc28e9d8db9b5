// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "faults.h"
#include "scenario.h"

static FILE *list;	/* NULL: none is written */
static const char *list_path;

static void put(const char *name, uint64_t value)
{
	if (value != UINT64_MAX)
		fprintf(list, " %s=%" PRIu64, name, value);
}

static void told(void *opaque, const RsdInjected *fault)
{
	(void)opaque;
	fprintf(list, "%" PRIu64 " line=%u %s candidate=%" PRIu64,
		fault->time_ns, fault->rule->line,
		rsd_fault_info[fault->rule->kind].name, fault->candidate);
	put("die", fault->die);
	put("block", fault->block);
	put("page", fault->page);
	put("lba", fault->lba);
	fputc('\n', list);
}

void faults_open(RsdDrive *drive, const char *path, const char *log)
{
	char err[RSD_ERR_LEN];

	if (!rsd_faults_load(drive, path, err))
		die("--%s", err);
	if (!log)
		return;
	list = fopen(log, "we");
	if (!list)
		die("--fault-list %s: %s", log, strerror(errno));
	list_path = log;
	rsd_faults_tell(drive, told, NULL);
}

void faults_close(void)
{
	bool failed;

	if (!list)
		return;
	failed = ferror(list);	/* errno may be of something else by now */
	if (fclose(list) || failed)
		die("--fault-list %s: it cannot be written; is the disk full?",
		    list_path);
	list = NULL;
}
