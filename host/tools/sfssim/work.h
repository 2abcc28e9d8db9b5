/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A workload returns the blocks that it writes, one after the other. */
#ifndef SFSSIM_WORK_H
#define SFSSIM_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct work;

/*
 * Makes `zipf`, `uniform` or `oltp` over `blocks` blocks, 4096 or more. Returns
 * NULL if the name is none of them. theta is zipf's.
 */
struct work *work_new(const char *name, uint32_t blocks, double theta,
		      uint64_t seed);
void work_free(struct work *work);
uint32_t work_next(struct work *work);

#endif
