// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * zipf and uniform draw each write by itself. oltp makes the writes that TPC-C
 * (revision 5.11) describes, of a database that writes its log at once, and a
 * page some time after its first change, in the order of its check-point queue.
 */
#include <stdlib.h>
#include <string.h>

#include "work.h"
#include "zipf.h"

/*
 * These are the blocks of 4 KiB of a warehouse, from the sizes of rows in TPC-C
 * 1.3.
 */
#define DISTRICT	3	/* the warehouse's and the districts' rows */
#define CUSTOMER	4800
#define STOCK		7500
#define ORDERS		900	/* all tables that grow: used over and over */
#define WAREHOUSE	(DISTRICT + CUSTOMER + STOCK + ORDERS)
#define LOG		50	/* of 1000: share of the log files */
/*
 * So many of 1000 pages wait to be written. They are so few that the 1.6% of
 * the pages that are written most get some 29% of the writes, as SFS says of
 * TPC-C (2.3).
 */
#define DIRTY		5
#define COMMITS		2	/* transactions in a block of the log */

struct work {
	enum { ZIPF, UNIFORM, OLTP } kind;
	struct rng rng;
	struct zipf zipf;
	uint32_t blocks;
	/* oltp: */
	uint32_t log, log_at, warehouses, txns;
	uint32_t *orders_at;	/* next block of each warehouse's, in eighths */
	uint32_t *queue;	/* changed pages, oldest first */
	uint32_t queue_room, queue_from, queued;
	bool *dirty;		/* is in the queue */
};

static void change(struct work *w, uint32_t block)
{
	if (w->dirty[block])
		return;
	w->dirty[block] = true;
	w->queue[(w->queue_from + w->queued++) % w->queue_room] = block;
}

/* This is the function of TPC-C 2.1.6; its constant C is 0. */
static uint32_t nurand(struct work *w, uint32_t a, uint32_t n)
{
	return (rng_below(&w->rng, a + 1) | rng_below(&w->rng, n)) % n;
}

static uint32_t table(const struct work *w, uint32_t warehouse, uint32_t offset)
{
	return w->log + warehouse * WAREHOUSE + offset;
}

static void customer(struct work *w, uint32_t wh)
{
	uint32_t district = rng_below(&w->rng, 10);
	uint32_t row = district * 3000 + nurand(w, 1023, 3000);

	change(w, table(w, wh, DISTRICT + (uint64_t)row * CUSTOMER / 30000));
}

/* Adds eighths of a block to the tables that grow. */
static void insert(struct work *w, uint32_t wh, uint32_t eighths)
{
	uint32_t at = w->orders_at[wh] += eighths;

	change(w, table(w, wh, DISTRICT + CUSTOMER + STOCK + at / 8 % ORDERS));
}

static void transaction(struct work *w)
{
	uint32_t wh = rng_below(&w->rng, w->warehouses), i, lines;
	uint32_t kind = rng_below(&w->rng, 100);

	if (kind < 45) {	/* new order */
		change(w, table(w, wh, 1 + rng_below(&w->rng, 2)));
		lines = 5 + rng_below(&w->rng, 11);
		for (i = 0; i < lines; i++) {
			uint32_t item = nurand(w, 8191, 100000);

			change(w, table(w, wh, DISTRICT + CUSTOMER +
					(uint64_t)item * STOCK / 100000));
		}
		insert(w, wh, 1);
	} else if (kind < 88) {	/* payment */
		change(w, table(w, wh, 0));
		change(w, table(w, wh, 1 + rng_below(&w->rng, 2)));
		customer(w, wh);
		insert(w, wh, rng_below(&w->rng, 4) == 0);
	} else if (kind < 92) {	/* delivery: the oldest order of each district */
		for (i = 0; i < 10; i++) {
			uint32_t at = w->orders_at[wh] / 8 + ORDERS / 2;

			customer(w, wh);
			change(w, table(w, wh, DISTRICT + CUSTOMER + STOCK +
					(at + i / 4) % ORDERS));
		}
	} else {
		return;		/* order status, stock level: reads */
	}
	w->txns++;
}

static uint32_t oltp_next(struct work *w)
{
	uint32_t block;

	for (;;) {
		if (w->txns >= COMMITS) {
			w->txns -= COMMITS;
			return w->log_at++ % w->log;
		}
		if (w->queued > (uint64_t)w->blocks * DIRTY / 1000)
			break;
		transaction(w);
	}
	block = w->queue[w->queue_from];
	w->queue_from = (w->queue_from + 1) % w->queue_room;
	w->queued--;
	w->dirty[block] = false;
	return block;
}

static bool oltp_init(struct work *w)
{
	w->log = (uint64_t)w->blocks * LOG / 1000;
	w->warehouses = (w->blocks - w->log) / WAREHOUSE;
	if (!w->warehouses)
		return false;
	w->queue_room = w->blocks;
	w->queue = calloc(w->queue_room, sizeof(*w->queue));
	w->dirty = calloc(w->blocks, sizeof(*w->dirty));
	w->orders_at = calloc(w->warehouses, sizeof(*w->orders_at));
	return w->queue && w->dirty && w->orders_at;
}

struct work *work_new(const char *name, uint32_t blocks, double theta,
		      uint64_t seed)
{
	static const char *const names[] = { "zipf", "uniform", "oltp" };
	struct work *w = calloc(1, sizeof(*w));
	uint32_t i;

	for (i = 0; i < 3 && strcmp(name, names[i]);)
		i++;
	if (!w || i == 3 || blocks < 4096) {
		free(w);
		return NULL;
	}
	w->kind = i;
	w->blocks = blocks;
	w->rng.state = seed;
	if (w->kind == ZIPF)
		zipf_init(&w->zipf, blocks, theta);
	if (w->kind == OLTP && !oltp_init(w)) {
		work_free(w);
		return NULL;
	}
	return w;
}

void work_free(struct work *w)
{
	free(w->orders_at);
	free(w->queue);
	free(w->dirty);
	free(w);
}

uint32_t work_next(struct work *w)
{
	switch (w->kind) {
	case ZIPF:	/* ranks are scattered: the prime divides no size */
		return zipf_next(&w->zipf, &w->rng) * 2654435761U % w->blocks;
	case UNIFORM:
		return rng_below(&w->rng, w->blocks);
	default:
		return oltp_next(w);
	}
}
