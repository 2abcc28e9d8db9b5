/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This measures write amplification from a program's write(2) to flash, on any
 * file system.
 */
#ifndef RSDCTL_AMPLIFICATION_H
#define RSDCTL_AMPLIFICATION_H

#include <stdbool.h>
#include <stdint.h>

struct amplification_options {
	const char *device;	/* NULL: /dev/nvme0n1 */
	bool has_written;
	uint64_t written;	/* bytes that the program wrote; else write(2) */
	bool json;
};

/*
 * Runs the program @argv, which ends with NULL, to its end and then syncs.
 * Prints the bytes that it wrote, those that reached the drive meanwhile, and
 * those that the drive programmed. Returns the program's exit status (128 and
 * the signal if it was killed), or 1 after a message.
 */
int amplification(char **argv, const struct amplification_options *options);

#endif
