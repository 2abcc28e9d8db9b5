// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tpcc is a database of runs of 900 KB, the average size of its writes (HFM
 * 4.2). Which run is written follows from the blocks that TPC-C changes, as
 * sfssim draws them. Everything is in the database's memory, so nothing is
 * read.
 *
 * postmark has files of 500 to 10,000 bytes. A transaction creates a file or
 * deletes one, and reads a file or appends to one, by equal chance (HFM 4.3).
 * An append has at least one byte, and at most as many as the file may still
 * grow by.
 *
 * iozone-mixed: 96 of 100 files have 8 to 16 KiB, the others 512 KiB to 4 MiB.
 * iozone-large: all files are of the latter size. iozone-one: all files have
 * the same size (HFM 4.4).
 */
#include <stdlib.h>

#include "calls.h"
#include "rng.h"
#include "work.h"

#define RUN_BLOCKS	225	/* of 4 KiB: 900 KB */
#define LEAST_RUNS	62	/* with the log, a warehouse and a part */
#define LEAST		500	/* bytes of a file of postmark, */
#define MOST		10000	/* at most */
#define KIB		1024u
#define MIB		(1024u * KIB)

enum kind { TPCC, POSTMARK, IOZONE_MIXED, IOZONE_LARGE, IOZONE_ONE };

const char *const calls_names[] = { "tpcc", "postmark", "iozone-mixed",
				    "iozone-large", "iozone-one", NULL };

struct calls {
	struct calls_config cfg;
	struct rng rng;
	struct work *work;	/* tpcc: the blocks */
	uint64_t prepared, done;
	bool marked, half;	/* half: the transaction's second call comes */
	/* postmark: */
	uint32_t room;		/* of the two arrays */
	uint32_t *files;	/* numbers: those that exist, then those that do not */
	uint32_t exist;
	uint32_t *bytes;	/* by number */
};

static uint64_t between(struct calls *c, uint64_t low, uint64_t high)
{
	return low + rng_below(&c->rng, high - low + 1);
}

struct calls *calls_new(const struct calls_config *cfg, const char **why)
{
	struct calls *c = calloc(1, sizeof(*c));
	uint32_t i;

	*why = "there is no memory for so many files; choose fewer";
	if (!c)
		return NULL;
	c->cfg = *cfg;
	c->rng.state = cfg->seed;
	if (cfg->kind == TPCC) {
		if (cfg->files < LEAST_RUNS)
			*why = "files: work=tpcc needs 62 at least, runs of 900 KB, to have room for a warehouse; choose more";
		else
			c->work = work_new("oltp", cfg->files * RUN_BLOCKS, 0,
					   cfg->seed);
		if (!c->work) {
			calls_free(c);
			return NULL;
		}
	}
	if (cfg->kind == POSTMARK) {
		/* More files are created than deleted only by chance. */
		c->room = 2 * cfg->files + cfg->transactions / 8 + 1024;
		c->files = calloc(c->room, sizeof(*c->files));
		c->bytes = calloc(c->room, sizeof(*c->bytes));
		if (!c->files || !c->bytes) {
			calls_free(c);
			return NULL;
		}
		for (i = 0; i < c->room; i++)
			c->files[i] = i;
	}
	return c;
}

void calls_free(struct calls *c)
{
	if (c->work)
		work_free(c->work);
	free(c->files);
	free(c->bytes);
	free(c);
}

uint32_t calls_files(const struct calls *c)
{
	return c->cfg.kind == POSTMARK ? c->room : c->cfg.files;
}

uint64_t calls_done(const struct calls *c)
{
	return c->done;
}

static void create(struct calls *c, struct request *r)
{
	r->op = OP_APPEND;
	r->file = c->files[c->exist++];
	r->bytes = between(c, LEAST, MOST);
	c->bytes[r->file] = r->bytes;
}

static void remove_one(struct calls *c, struct request *r)
{
	uint32_t at = rng_below(&c->rng, c->exist);

	r->op = OP_DELETE;
	r->file = c->files[at];
	c->files[at] = c->files[--c->exist];
	c->files[c->exist] = r->file;
}

static void read_or_append(struct calls *c, struct request *r)
{
	r->file = c->files[rng_below(&c->rng, c->exist)];
	r->op = OP_READ;
	if (rng_below(&c->rng, 2) || c->bytes[r->file] == MOST)
		return;
	r->op = OP_APPEND;
	r->bytes = between(c, 1, MOST - c->bytes[r->file]);
	c->bytes[r->file] += r->bytes;
}

static void transaction(struct calls *c, struct request *r)
{
	c->half = !c->half;
	if (!c->half) {
		read_or_append(c, r);
		c->done++;
	} else if (c->exist == c->room ||
		   (c->exist > 1 && rng_below(&c->rng, 2))) {
		remove_one(c, r);
	} else {
		create(c, r);
	}
}

static uint64_t file_bytes(struct calls *c)
{
	switch (c->cfg.kind) {
	case IOZONE_MIXED:
		if (rng_below(&c->rng, 100) < 96)
			return between(c, 8 * KIB, 16 * KIB);
		return between(c, 512 * KIB, 4 * MIB);
	case IOZONE_LARGE:
		return between(c, 512 * KIB, 4 * MIB);
	default:
		return c->cfg.bytes;
	}
}

/* Makes the files before the mark. False says that there are enough. */
static bool prepare(struct calls *c, struct request *r)
{
	if (c->cfg.kind > POSTMARK || c->prepared == c->cfg.files)
		return false;
	if (c->cfg.kind == POSTMARK) {
		create(c, r);
	} else {
		r->op = OP_APPEND;
		r->file = c->prepared;
		r->bytes = RUN_BLOCKS * 4 * KIB;
	}
	c->prepared++;
	return true;
}

bool calls_next(struct calls *c, struct request *r)
{
	if (prepare(c, r))
		return true;
	if (!c->marked) {
		c->marked = true;
		r->op = OP_MARK;
		return true;
	}
	if (c->cfg.kind > POSTMARK) {
		if (c->done == c->cfg.files)
			return false;
		r->op = OP_APPEND;
		r->file = c->done++;
		r->bytes = file_bytes(c);
		return true;
	}
	if (c->done == c->cfg.transactions)
		return false;
	if (c->cfg.kind == POSTMARK) {
		transaction(c, r);
		return true;
	}
	r->op = OP_OVERWRITE;
	r->file = work_next(c->work) / RUN_BLOCKS;
	c->done++;
	return true;
}
