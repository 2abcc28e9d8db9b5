/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These are power cuts and rewinding: the drive's vendor commands
 * (rsd-vendor.h).
 */
#ifndef RSDCTL_POWER_H
#define RSDCTL_POWER_H

#include <stdbool.h>
#include <stdint.h>

struct power_options {
	bool json;
	bool has_op;
	uint64_t op;		/* or block, of a fault */
	int fault;		/* RSD_FAULT_... */
	const char *outcomes;	/* NULL: seed 0 */
	bool restart;
	bool list;		/* operations from op on */
	bool in_flight;		/* what was in flight after op */
};

/*
 * Each works on the drive of the namespace @device, by default /dev/nvme0n1.
 * They return 0, or 1 after a message.
 */
int power_cut(const char *device, const struct power_options *options);
int power_rewind(const char *device, const struct power_options *options);
int power_oplog(const char *device, const struct power_options *options);

#endif
