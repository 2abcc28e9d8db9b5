/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These print messages on stderr, as printf; the format must be a literal. */
#ifndef RSDSIM_ERROR_H
#define RSDSIM_ERROR_H

#include <stdio.h>
#include <stdlib.h>

#include "progress.h"

enum exit_code { EXIT_OK, EXIT_FAILED, EXIT_USAGE };

#define tell(format, ...) \
	(progress_clear(), \
	 fprintf(stderr, "rsdsim: " format "\n", ##__VA_ARGS__))

/* The work goes on, but its results may not be the wanted ones. */
#define warn(format, ...) tell("warning: " format, ##__VA_ARGS__)

/* These end the program: the work has failed, or the command line is wrong. */
#define die(format, ...) \
	(tell(format, ##__VA_ARGS__), exit(EXIT_FAILED))
#define die_usage(format, ...) \
	(tell(format, ##__VA_ARGS__), exit(EXIT_USAGE))

#endif
