/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These are a flash drive and a disk of the drive's core, on one clock, and the
 * calls that wait for them. A page has 4 KiB on both.
 */
#ifndef HFMSIM_DRIVES_H
#define HFMSIM_DRIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "wait.h"

enum { FLASH, DISK, DRIVES };

/*
 * This is a call of a user, with the number of commands of each drive that it
 * waits for.
 */
struct call {
	uint32_t left[DRIVES];
	uint32_t client;
	uint32_t refill;	/* the file that comes back to the flash, or ~0 */
	bool write;		/* it returns when one of the drives has it */
	bool submitted;		/* all that it waits for is counted */
	bool returned;
};

struct drives;

struct drives_config {
	uint64_t flash_bytes;	/* that can be written */
	uint64_t command_ns;	/* of the flash drive for a command, besides its pages */
	/* A command of the drive is done, so the call waits for one less. */
	void (*done)(void *to, struct call *call, int which);
	void *to;
};

/* Makes the drives, or ends the program. */
struct drives *drives_new(const struct drives_config *cfg);
void drives_free(struct drives *d);

/*
 * Writes pages. The waits, one of which each call has counted, belong to the
 * drives from now on.
 */
void drives_write(struct drives *d, int which, uint64_t page, uint32_t pages,
		  struct wait *waits);
/* Does the same for one call, and counts its waits. */
void drives_write_for(struct drives *d, int which, uint64_t page, uint32_t pages,
		      struct call *call);
void drives_read_for(struct drives *d, int which, uint64_t page, uint32_t pages,
		     struct call *call);

/* Goes on to the next event of either drive. False says that there is none. */
bool drives_step(struct drives *d);

uint64_t drives_now(const struct drives *d);	/* ns */
uint64_t drives_disk_waiting(const struct drives *d);	/* pages to be written */

struct drives_counters {
	uint64_t flash_programs, flash_copies, flash_erases;
	uint64_t disk_written, disk_seeks;
};

void drives_counters(const struct drives *d, struct drives_counters *counters);

#endif
