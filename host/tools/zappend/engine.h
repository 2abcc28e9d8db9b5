/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This runs a list of appends or reads at a queue depth, through io_uring. */
#ifndef ZAPPEND_ENGINE_H
#define ZAPPEND_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stats.h"
#include "status.h"
#include "zns.h"

#define ENGINE_MAX_QD 1024

enum engine_op {
	ENGINE_APPEND,	/* to work.zones in order; fills in work.lba */
	ENGINE_READ,	/* of work.lba */
	ENGINE_VERIFY,	/* of work.lba, as ENGINE_APPEND has written it */
};

/*
 * This is the work. The engine borrows it, except for the fields that it fills
 * in.
 */
struct work {
	const struct zns_dev *dev;
	struct zone *zones;	/* wp moves as appends are issued */
	uint64_t nr_zones;
	uint64_t total;		/* commands; the zones have room for them */
	uint64_t *lba;		/* where command i landed, or is to read */
	uint32_t nlb;		/* logical blocks a command */
	uint32_t qd;
	bool oob;		/* transfer metadata too */
	uint64_t seed;
	uint64_t runtime_ns;	/* issue nothing after; 0: no limit */
};

enum stop_reason { STOP_DONE, STOP_RUNTIME, STOP_SIGNAL, STOP_ERROR };

struct result {
	enum stop_reason stop;
	uint64_t issued;
	uint64_t done;		/* without an error */
	uint64_t runtime_ns;	/* first issue to last completion */
	struct stats slat, clat, lat;	/* ns: submission, completion, both */
	uint64_t status[NVME_STATUS_MASK + 1];	/* failures by NVMe status */
	uint64_t kernel_errors;	/* failures without one */
	int first_errno;
	uint64_t bad_blocks;	/* ENGINE_VERIFY: blocks that differ */
};

/* This is the LBA of a command that failed or was not issued. */
#define LBA_NONE UINT64_MAX

/* A signal handler sets this to stop issuing. */
extern atomic_bool engine_stop;

/*
 * Runs @work. It stops issuing at the first failed command, and returns when no
 * command is in flight. Returns -1, with an error printed, if it could not
 * start; failures of commands are in @res. The caller calls result_free() in
 * both cases.
 */
int engine_run(struct work *work, enum engine_op op, struct result *res);
void result_free(struct result *res);

#endif
