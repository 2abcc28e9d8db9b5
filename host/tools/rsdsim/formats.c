// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "formats.h"

const struct format formats[] = {
	{ "iolog", "fio iolog, version 2 or 3 (write_iolog=FILE)",
	  iolog_begin, iolog_next },
	{ "blkparse", "text output of blkparse; D (issue) events are taken",
	  NULL, blkparse_next },
	{ "msr", "MSR Cambridge CSV (SNIA IOTTA 388)", NULL, msr_next },
	{ "mqsim", "MQSim ASCII", NULL, mqsim_next },
	{ }
};

const struct format *format_find(const char *name)
{
	const struct format *format;

	for (format = formats; format->name; format++)
		if (!strcmp(format->name, name))
			return format;
	return NULL;
}
