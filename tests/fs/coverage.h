/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where code goes that is compiled with -fsanitize-coverage=trace-pc. */
#ifndef COVERAGE_H
#define COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

/* From here on to the end: was it anywhere, or as often, as never before? */
void coverage_begin(void);
bool coverage_end(void);
/* In all rounds, about: what shares a place in the table counts once */
uint32_t coverage_places(void);
uint32_t coverage_ways(void);

#endif
