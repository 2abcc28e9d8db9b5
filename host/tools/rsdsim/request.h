/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are requests to a drive, and their sources. */
#ifndef RSDSIM_REQUEST_H
#define RSDSIM_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "rsd.h"

#define LBA_BYTES 4096u

struct request {
	uint64_t time_ns;	/* since the first one; unused in closed loop */
	uint64_t lba;
	uint32_t nlb;
	RsdOp op;
	bool fua;
	bool append;		/* a write that is a zone append */
};

enum next {
	NEXT_REQUEST,
	NEXT_LATER,	/* there is one, but not before another completes */
	NEXT_END,
};

/* A source is a trace or a generator. */
struct source {
	/* Takes the next request. Ends the program on errors. */
	enum next (*next)(struct source *source, struct request *request);
	/* Says where the last request came from ("file:12"), for messages. */
	const char *(*where)(struct source *source);
	/*
	 * Is called when the drive has not taken a request. It is NULL for a
	 * trace, which goes on, but must not be out of order.
	 */
	void (*refused)(struct source *source, const struct request *request);
	/*
	 * Is called for each request that the drive has taken when it
	 * completes, with its operation and address. It is NULL if the source
	 * does not need this.
	 */
	void (*done)(struct source *source, RsdOp op, uint64_t lba);
	void (*close)(struct source *source);
	uint64_t total;		/* requests to expect, 0: unknown */
};

#endif
