// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Before a check-point, what is dirty is written while others go on: then the
 * check-point, which keeps them waiting, has only those blocks to write that were
 * changed meanwhile. "Check-point" of doc/design.md.
 */
#include "space/space.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"

#define LEAST	32	/* one of so many of dirty_max: fewer are written in no time */

/* Appends of it that are under way */
struct rfs_early {
	struct rfs_flight flight[RFS_TOGETHER];
	u32 first, count;	/* the oldest of these, and how many */
};

int rfs_early_alloc(struct rfs_fs *fs)
{
	fs->early = rfs_alloc(sizeof(*fs->early));
	return fs->early ? 0 : -ENOMEM;
}

/*
 * It takes a page that recovery, should it come to that, cannot use for writing the
 * block anew: so this goes on only while there is more room than is ever needed.
 */
static bool roomy(const struct rfs_fs *fs)
{
	return rfs_room_beside(fs, 0, 1) >=
	       rfs_room_kept(fs) + RFS_SUM_ENTRIES;
}

/* A block that leads somewhere, and is not on its way */
static bool takes(struct rfs_fs *fs, const struct rfs_buf *buf)
{
	struct rfs_buf *map;

	if (buf->early)
		return false;
	if (rfs_is_node(buf->head.type))
		return !rfs_node_map(fs, buf->off, &map) && map->dirty;
	if (buf->head.type != RFS_INODES ||
	    rfs_imap_get(fs, buf->off / RFS_MAP_ENTRIES, false, &map) || !map)
		return false;
	/* else the check-point frees it */
	return map->dirty &&
	       rfs_high(map->table.word[buf->off % RFS_MAP_ENTRIES]);
}

/* Up to so many of them, from fs->dirty.early on */
static u32 choose(struct rfs_fs *fs, struct rfs_flight *f, u32 most)
{
	struct rfs_buf *buf = fs->dirty.early;
	u32 n = 0;

	for (; buf && n < most; buf = buf->next)
		if (takes(fs, buf))
			f->what[n++] = buf;
	fs->dirty.early = buf;
	return n;
}

/* The next append; *left: blocks that may be sent, those that others add excepted */
static int send(struct rfs_fs *fs, u32 *left)
{
	struct rfs_early *early = fs->early;
	u32 nr = (early->first + early->count) % RFS_TOGETHER, n, i;
	struct rfs_flight *f = &early->flight[nr];
	int ret;

	rfs_dirty_above(fs);
	n = choose(fs, f, min_t(u32, *left, RFS_SUM_ENTRIES));
	if (!n)
		return 0;
	ret = rfs_place(fs, RFS_S_META, n, false, &f->place);
	if (ret)
		return ret;
	f->n = f->place.n;
	*left -= f->n;
	if (f->n < n)
		fs->dirty.early = f->what[f->n];
	for (i = 0; i < f->n; i++) {
		struct rfs_buf *buf = f->what[i];

		rfs_head_date(fs, &buf->head, true);
		rfs_oob_meta(fs, &f->oob[i], &buf->head);
		rfs_head_seal(&buf->head, le64_to_cpu(f->oob[i].stamp));
		rfs_oob_seal(&f->oob[i], buf->bytes);
		f->data[i] = buf->bytes;
		buf->sent = true;
		buf->early = true;
	}
	f->send.nr = RFS_TOGETHER + 1 + nr;
	f->send.early = true;
	f->send.zone = f->place.zone;
	f->send.n = f->n;
	f->send.data = f->data;
	f->send.oob = f->oob;
	early->count++;
	fs->ops->append_begin(fs->dev, &f->send);
	return 0;
}

/* A block has landed; others may have changed or dropped it since it was sent. */
static int landed(struct rfs_fs *fs, struct rfs_buf *buf, u64 addr)
{
	u64 old = buf->addr;

	buf->early = false;
	if (buf->gone) {
		rfs_free(buf);
		return 0;
	}
	if (!addr) {	/* it has not: the check-point writes it */
		buf->sent = false;
		return 0;
	}
	fs->early_blocks++;
	rfs_buf_written(fs, buf, addr);
	return rfs_settle(fs, buf, old);
}

/* Until the oldest append has landed; others use the volume meanwhile. */
static int land_oldest(struct rfs_fs *fs)
{
	struct rfs_early *early = fs->early;
	struct rfs_flight *f = &early->flight[early->first];
	int ret = 0, error;
	u32 i;

	fs->ops->append_end(fs->dev, &f->send);
	fs->asking = false;
	early->first = (early->first + 1) % RFS_TOGETHER;
	early->count--;
	rfs_placed(fs, &f->place, f->oob, f->send.addr, f->send.error);
	for (i = 0; i < f->n; i++) {
		error = landed(fs, f->what[i],
			       f->send.error ? 0 : f->send.addr + i);
		ret = ret ? ret : error;
	}
	if (ret)
		fs->read_only = true;	/* it may be half done */
	return ret ? ret : f->send.error;
}

/*
 * One that could be written is left to the check-point, so that there is a block of
 * each that was written when nobody else was at work: see rescan.c.
 */
static struct rfs_buf *second(struct rfs_fs *fs)
{
	struct rfs_buf *buf = fs->dirty.first;

	while (buf && !takes(fs, buf))
		buf = buf->next;
	return buf ? buf->next : NULL;
}

void rfs_write_early(struct rfs_fs *fs)
{
	u32 left = fs->dirty.count;
	bool asking;
	int ret = 0;

	if (!rfs_together(fs) || fs->read_only || left < fs->dirty_max / LEAST)
		return;
	asking = rfs_ask_off(fs);
	rfs_dirty_above(fs);
	fs->dirty.early = second(fs);
	while (!ret && left && fs->dirty.early && !fs->read_only && roomy(fs))
		ret = fs->early->count == RFS_TOGETHER ? land_oldest(fs) :
							 send(fs, &left);
	while (fs->early->count)
		land_oldest(fs);
	fs->dirty.early = NULL;
	rfs_ask_on(fs, asking);
}
