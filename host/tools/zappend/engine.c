// SPDX-License-Identifier: GPL-2.0-or-later
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <liburing.h>
#include <linux/nvme_ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "engine.h"
#include "output.h"
#include "pattern.h"

#define SQE_BYTES 128		/* IORING_SETUP_SQE128 */
#define REPORTED_BLOCKS 8	/* differing blocks described one by one */

atomic_bool engine_stop;

/* This is a command in flight with its buffers. */
struct slot {
	uint64_t index;		/* of the command */
	struct zone *zone;	/* appends only */
	uint64_t begun, submitted;	/* ns */
	char *data, *oob;
};

struct engine {
	struct work *work;
	struct result *res;
	enum engine_op op;
	struct io_uring ring;
	struct slot *slots;
	uint32_t *idle;		/* stack of slot numbers */
	uint32_t nr_idle;
	struct zone *zone;	/* that takes the next append */
	size_t data_bytes, oob_bytes;	/* of a command */
	char *buffers;
	size_t buffers_bytes;
	char *want_data, *want_oob;	/* one block, to compare with */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static const char *op_name(enum engine_op op)
{
	return op == ENGINE_APPEND ? "append" : "read";
}

/*
 * Makes page-aligned buffers, and touches them before the measurement starts.
 */
static int make_buffers(struct engine *e)
{
	const struct work *w = e->work;
	size_t page = 4096, data, oob;
	uint32_t i, b;

	e->data_bytes = (size_t)w->nlb * w->dev->block_bytes;
	e->oob_bytes = w->oob ? (size_t)w->nlb * w->dev->oob_bytes : 0;
	data = (e->data_bytes + page - 1) / page * page;
	oob = (e->oob_bytes + page - 1) / page * page;
	e->buffers_bytes = (data + oob) * w->qd;
	e->buffers = mmap(NULL, e->buffers_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (e->buffers == MAP_FAILED) {
		e->buffers = NULL;
		error("no memory for %u buffers of %zu bytes: lower --qd or --blocks",
		      w->qd, data + oob);
		return -1;
	}
	e->slots = calloc(w->qd, sizeof(*e->slots));
	e->idle = calloc(w->qd, sizeof(*e->idle));
	e->want_data = malloc(w->dev->block_bytes);
	e->want_oob = malloc(w->dev->oob_bytes + 1);
	if (!e->slots || !e->idle || !e->want_data || !e->want_oob) {
		error("no memory for queue depth %u", w->qd);
		return -1;
	}
	pattern_body(e->want_data, w->dev->block_bytes, w->seed);
	for (i = 0; i < w->qd; i++) {
		e->slots[i].data = e->buffers + i * (data + oob);
		e->slots[i].oob = e->slots[i].data + data;
		for (b = 0; e->op == ENGINE_APPEND && b < w->nlb; b++)
			memcpy(e->slots[i].data + b * w->dev->block_bytes,
			       e->want_data, w->dev->block_bytes);
		e->idle[e->nr_idle++] = w->qd - 1 - i;
	}
	return 0;
}

static int make_ring(struct engine *e)
{
	int ret;

	ret = io_uring_queue_init(e->work->qd, &e->ring,
				  IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
	if (!ret)
		return 0;
	error("io_uring with 128-byte entries: %s; it takes Linux 6.0 with CONFIG_IO_URING, and the sysctl kernel.io_uring_disabled at 0",
	      strerror(-ret));
	return -1;
}

static void fill(struct engine *e, struct slot *s)
{
	const struct work *w = e->work;
	uint32_t b;

	for (b = 0; b < w->nlb; b++) {
		pattern_stamp(s->data + (size_t)b * w->dev->block_bytes,
			      w->dev->block_bytes, w->seed, s->index, b);
		if (w->oob)
			pattern_oob(s->oob + (size_t)b * w->dev->oob_bytes,
				    w->dev->oob_bytes, w->seed, s->index, b);
	}
}

static void queue_command(struct engine *e, struct slot *s, uint64_t lba)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&e->ring);
	const struct work *w = e->work;
	struct nvme_uring_cmd *cmd;

	/* The ring has at least as many entries as there are slots. */
	assert(sqe);
	memset(sqe, 0, SQE_BYTES);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = w->dev->fd;
	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->user_data = s - e->slots;
	cmd = (struct nvme_uring_cmd *)sqe->cmd;
	cmd->opcode = e->op == ENGINE_APPEND ? NVME_OP_ZONE_APPEND :
					       NVME_OP_READ;
	cmd->nsid = w->dev->nsid;
	cmd->addr = (uintptr_t)s->data;
	cmd->data_len = e->data_bytes;
	if (w->oob) {
		cmd->metadata = (uintptr_t)s->oob;
		cmd->metadata_len = e->oob_bytes;
	}
	cmd->cdw10 = lba;
	cmd->cdw11 = lba >> 32;
	cmd->cdw12 = w->nlb - 1;
}

/* Takes the place of the next append out of the zones' room. */
static struct zone *next_zone(struct engine *e)
{
	uint32_t nlb = e->work->nlb;

	while (!zone_writable(e->zone) ||
	       e->zone->wp + nlb > e->zone->start + e->zone->capacity)
		e->zone++;
	e->zone->wp += nlb;
	return e->zone;
}

/*
 * Sends the next command at once, as fio does by default: in a batch each
 * would wait for those after it. Returns -1 after an error.
 */
static int issue(struct engine *e)
{
	struct slot *s = &e->slots[e->idle[--e->nr_idle]];
	int ret;

	s->index = e->res->issued++;
	if (e->op == ENGINE_APPEND) {
		s->zone = next_zone(e);
		fill(e, s);
	}
	s->begun = now_ns();
	queue_command(e, s, e->op == ENGINE_APPEND ? s->zone->start :
						     e->work->lba[s->index]);
	do {
		ret = io_uring_submit(&e->ring);
	} while (ret == -EINTR);
	s->submitted = now_ns();
	if (ret >= 0)
		return 0;
	error("io_uring_submit: %s", strerror(-ret));
	return -1;
}

static bool may_issue(struct engine *e, uint64_t start)
{
	struct result *res = e->res;

	if (res->stop != STOP_DONE)
		return false;
	if (engine_stop)
		res->stop = STOP_SIGNAL;
	else if (e->work->runtime_ns && res->issued &&
		 now_ns() - start >= e->work->runtime_ns)
		res->stop = STOP_RUNTIME;
	return res->stop == STOP_DONE;
}

/* Describes the first failure, and counts all. */
static void command_failed(struct engine *e, const struct slot *s, int res)
{
	struct result *r = e->res;
	uint64_t lba = s->zone ? s->zone->start : e->work->lba[s->index];
	bool first = r->stop != STOP_ERROR;

	r->stop = STOP_ERROR;
	if (res < 0) {
		r->kernel_errors++;
		if (!r->first_errno)
			r->first_errno = -res;
	} else {
		r->status[res & NVME_STATUS_MASK]++;
	}
	if (!first)
		return;
	if (res < 0)
		error("%s %" PRIu64 " at LBA %" PRIu64 ": the kernel answered: %s%s",
		      op_name(e->op), s->index, lba, strerror(-res),
		      res == -EINVAL ? "; perhaps it takes no command this large (max_hw_sectors_kb in sysfs): lower --blocks" :
		      res == -EOPNOTSUPP ? "; it must be Linux 6.0 or later" : "");
	else
		error("%s %" PRIu64 " at LBA %" PRIu64 ": NVMe status 0x%03x, %s%s",
		      op_name(e->op), s->index, lba, res & NVME_STATUS_MASK,
		      nvme_status_name(res),
		      (res & NVME_STATUS_MASK) == 0x002 &&
		      e->work->dev->oob_bytes && !e->work->oob ?
		      "; the namespace has metadata: try --oob" : "");
}

/* Keeps the address of the append. Returns false if it is not in its zone. */
static bool append_landed(struct engine *e, const struct slot *s, uint64_t lba)
{
	const struct zone *z = s->zone;

	if (lba >= z->start &&
	    lba + e->work->nlb <= z->start + z->capacity) {
		e->work->lba[s->index] = lba;
		return true;
	}
	if (e->res->stop != STOP_ERROR)
		error("append %" PRIu64 ": the drive says it landed at LBA %" PRIu64 ", outside of zone %" PRIu64 " (%" PRIu64 " to %" PRIu64 ")",
		      s->index, lba, z->number, z->start,
		      z->start + z->capacity - 1);
	e->res->stop = STOP_ERROR;
	e->res->kernel_errors++;
	if (!e->res->first_errno)
		e->res->first_errno = EPROTO;
	return false;
}

static void verify(struct engine *e, const struct slot *s)
{
	const struct work *w = e->work;
	size_t size = w->dev->block_bytes, ms = w->dev->oob_bytes;
	const char *what;
	char why[100];
	uint32_t b;

	for (b = 0; b < w->nlb; b++) {
		pattern_stamp(e->want_data, size, w->seed, s->index, b);
		pattern_oob(e->want_oob, ms, w->seed, s->index, b);
		what = NULL;
		if (!pattern_same(s->data + b * size, e->want_data, size, why,
				  sizeof(why)))
			what = "data";
		else if (w->oob && !pattern_same(s->oob + b * ms, e->want_oob,
						 ms, why, sizeof(why)))
			what = "metadata";
		if (!what)
			continue;
		if (e->res->bad_blocks++ < REPORTED_BLOCKS)
			error("LBA %" PRIu64 " (append %" PRIu64 ", block %u): %s: %s",
			      w->lba[s->index] + b, s->index, b, what, why);
	}
}

static void complete(struct engine *e, const struct io_uring_cqe *cqe)
{
	struct slot *s = &e->slots[cqe->user_data];
	uint64_t now = now_ns();

	e->idle[e->nr_idle++] = s - e->slots;
	if (cqe->res) {
		command_failed(e, s, cqe->res);
		return;
	}
	if (e->op == ENGINE_APPEND && !append_landed(e, s, cqe->big_cqe[0]))
		return;
	e->res->done++;
	if (e->op == ENGINE_VERIFY) {
		verify(e, s);
		return;
	}
	stats_add(&e->res->slat, s->submitted - s->begun);
	stats_add(&e->res->clat, now - s->submitted);
	stats_add(&e->res->lat, now - s->begun);
}

static int loop(struct engine *e)
{
	struct result *res = e->res;
	struct io_uring_cqe *cqe;
	uint64_t start = now_ns();
	int ret;

	for (;;) {
		while (e->nr_idle && res->issued < e->work->total &&
		       may_issue(e, start))
			if (issue(e))
				return -1;
		if (e->nr_idle == e->work->qd)
			break;
		ret = io_uring_wait_cqe(&e->ring, &cqe);
		if (ret == -EINTR)
			continue;
		if (ret < 0) {
			error("io_uring_wait_cqe: %s", strerror(-ret));
			return -1;
		}
		do {
			complete(e, cqe);
			io_uring_cqe_seen(&e->ring, cqe);
		} while (!io_uring_peek_cqe(&e->ring, &cqe));
	}
	res->runtime_ns = now_ns() - start;
	return 0;
}

int engine_run(struct work *work, enum engine_op op, struct result *res)
{
	struct engine e = {
		.work = work, .res = res, .op = op, .zone = work->zones,
	};
	bool percentiles = op != ENGINE_VERIFY;
	uint64_t i;
	int ret = -1;

	memset(res, 0, sizeof(*res));
	if (stats_init(&res->slat, 0) || stats_init(&res->lat, 0) ||
	    stats_init(&res->clat, percentiles ? work->total : 0)) {
		error("no memory for %" PRIu64 " latencies: lower --ios",
		      work->total);
		return -1;
	}
	if (op == ENGINE_APPEND)
		for (i = 0; i < work->total; i++)
			work->lba[i] = LBA_NONE;
	if (!make_buffers(&e) && !make_ring(&e)) {
		ret = loop(&e);
		/*
		 * This ends the commands in flight before the buffers are
		 * freed.
		 */
		io_uring_queue_exit(&e.ring);
	}
	if (e.buffers)
		munmap(e.buffers, e.buffers_bytes);
	free(e.slots);
	free(e.idle);
	free(e.want_data);
	free(e.want_oob);
	return ret;
}

void result_free(struct result *res)
{
	stats_free(&res->slat);
	stats_free(&res->clat);
	stats_free(&res->lat);
}
