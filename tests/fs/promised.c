// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What pages.c, wake.c and reclaim.c of the module do between its users and the core,
 * without threads: those who send pages get their turn where cleaning yields.
 */
#include <string.h>

#include "bare.h"
#include "promised.h"
#include "space/space.h"
#include "tree/tree.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"
#include "clean/clean.h"
#include "ops/ops.h"

#define PAGES_MOST	4096
#define TOGETHER	64	/* blocks that the module asks for at a time */

static struct rfs_fs *fs;
static u32 (*pick)(u32 n);
/* Promised, in the order in which they were; of a file and block one number */
static u64 key[PAGES_MOST];
static bool hole[PAGES_MOST];
static u32 pages;
static bool cleaning, sending;
static bool waits;		/* the thread may wait until they have been sent */
static int failed;

#define BLOCK_BITS	40

static u64 key_of(u32 ino, u64 block)
{
	return (u64)ino << BLOCK_BITS | block;
}

#define TRIES_MOST	1000

static u32 tries;		/* of the operation that is asked again */

void promised_begin(struct rfs_fs *of, u32 (*draw)(u32 n), bool thread_waits)
{
	fs = of;
	pick = draw;
	waits = thread_waits;
	fs->threaded = true;
	pages = 0;
	failed = 0;
}

void promised_end(void)
{
	fs = NULL;
	pages = 0;
}

int promised_failed(void)
{
	return failed;
}

static void forget(u32 first, u32 n)
{
	memmove(key + first, key + first + n, (pages - first - n) * sizeof(*key));
	memmove(hole + first, hole + first + n,
		(pages - first - n) * sizeof(*hole));
	pages -= n;
}

static u32 ino_of(u32 nr)
{
	return key[nr] >> BLOCK_BITS;
}

/* n that follow each other in a file, in one append or several, and they have completed */
static int send(u32 first, u32 n)
{
	const void *data[RFS_SUM_ENTRIES];
	struct rfs_oob oob[RFS_SUM_ENTRIES];
	u64 addr[RFS_SUM_ENTRIES], block = key[first] & ((1ULL << BLOCK_BITS) - 1);
	u32 ino = ino_of(first), done, part, holes = 0, stream, i;
	struct rfs_txn txn;
	int ret;

	for (i = 0; i < n; i++) {
		data[i] = common;
		holes += hole[first + i];
	}
	forget(first, n);
	ret = rfs_txn_begin(fs, ino, block, n, RFS_BLOCK_BYTES,
			    fs->ops->now(fs->dev), &txn);
	for (done = 0; !ret && done < n; done += part) {
		part = n - done;
		ret = rfs_txn_fill(fs, &txn, done, &part, oob + done, &stream);
		if (!ret)
			ret = rfs_append(fs, stream, part, data + done,
					 oob + done, addr + done);
	}
	if (!ret)
		ret = rfs_txn_done(fs, oob, n, addr);
	rfs_unreserve(fs, ino, n, holes);
	return ret;
}

/* As rfsm_compact() does for who finds too much dirty */
static int compact(void)
{
	return rfs_compact_due(fs, false) ? rfs_compact(fs, rfs_checkpoint) :
					    rfs_checkpoint(fs, 0);
}

/* As the module does before a transaction begins */
static int send_some(void)
{
	u32 first = pick(pages), most = min_t(u32, rfs_pages_at_once(fs),
					     RFS_SUM_ENTRIES), n = 1;
	int ret = 0;

	while (!ret && rfs_make_room_to_free(fs) == -ENOBUFS)
		ret = compact();
	while (n < most && first + n < pages && key[first + n] == key[first] + n)
		n++;
	return ret ? ret : send(first, n);
}

int promised_send_all(void)
{
	int ret = 0;

	while (!ret && pages)
		ret = send_some();
	return ret;
}

void promised_yield(void *dev)
{
	(void)dev;
	if (!cleaning || sending)
		return;
	sending = true;
	while (!failed && pages && pick(8))
		failed = send_some();
	sending = false;
}

static int clean(struct rfs_fs *of, enum rfs_clean how)
{
	int ret;

	cleaning = true;
	ret = rfs_clean_some(of, how);
	cleaning = false;
	return ret;
}

static int round_compact(struct rfs_fs *of)
{
	return rfs_compact(of, rfs_checkpoint);
}

static const struct rfs_rounds rounds = {
	.clean = clean, .compact = round_compact, .checkpoint = rfs_checkpoint,
};

/* As rfsm_make_room() of host/fs/reclaim.c; -ENOSPC: there is none to be had. */
static int make_room(void)
{
	u32 more = TOGETHER + (rfs_zones_beside(fs) + fs->ways) *
			      le32_to_cpu(fs->super.zone_cap);
	int ret = 0;

	if (!rfs_room_low(fs, more))
		return rfs_dirty_full(fs) ? rfs_checkpoint(fs, 0) : 0;
	/* where it cannot be waited for, they are promised still */
	if (pick(2) && waits)
		ret = promised_send_all();
	/* others write them back meanwhile, if there are any */
	else if (!waits && pages && tries % 4 == 3)
		ret = send_some();
	if (!ret)
		ret = rfs_seek_room(fs, TOGETHER, more, &rounds);
	fs->meta_asked = 0;
	return ret;
}

bool promised_again(int *ret)
{
	bool waits = *ret == -ENOBUFS || *ret == -EAGAIN;

	if (!fs)
		return false;
	fs->no_space = false;
	if (!waits || ++tries > TRIES_MOST) {
		tries = 0;
		return false;
	}
	if (*ret == -ENOBUFS) {
		*ret = compact();
		return !*ret;
	}
	*ret = make_room();
	/* where it asks for several blocks, one after the other, each is one */
	fs->no_space = *ret == -ENOSPC && rfs_room_low(fs, 1);
	if (failed)
		*ret = failed;
	return !*ret || *ret == -ENOSPC;
}

u32 promised_pages(void)
{
	return pages;
}

bool promised_already(u32 ino, u64 block)
{
	u64 of = key_of(ino, block);
	u32 i;

	for (i = 0; i < pages; i++)
		if (key[i] == of)
			return true;
	return false;
}

int promised_page(u32 ino, u64 block, u32 most)
{
	bool is_hole;
	int ret;

	most = min(most, (u32)PAGES_MOST - 1);
	for (ret = 0; !ret && pages > most;)
		ret = send_some();
	if (ret || promised_already(ino, block))
		return ret;
	promised_do(ret, rfs_reserve(fs, ino, block, &is_hole));
	if (ret)
		return ret;
	key[pages] = key_of(ino, block);
	hole[pages++] = is_hole;
	return 0;
}

void promised_drop(u32 ino, u64 from)
{
	u32 i;

	for (i = pages; i--;) {
		if (ino_of(i) != ino || key[i] < key_of(ino, from))
			continue;
		rfs_unreserve(fs, ino, 1, hole[i]);
		forget(i, 1);
	}
}
