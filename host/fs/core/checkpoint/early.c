// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Before a check-point, dirty blocks are written while others go on. So the check-point, which
 * keeps them waiting, only has to write the blocks that were changed meanwhile. See "Check-point"
 * of doc/design.md.
 */
#include "space/space.h"
#include "tree/tree.h"
#include "checkpoint/checkpoint.h"

#define LEAST	32	/* one of so many of dirty_max: fewer are written in no time */
#define ROUNDS	4

/* These are the appends in flight. */
struct rfs_early {
	struct rfs_io io[RFS_IO_DEPTH];
	u32 first, count;	/* the oldest of these, and how many */
	const struct rfs_buf *left;	/* to the check-point; others may have dropped it */
};

int rfs_early_alloc(struct rfs_fs *fs)
{
	fs->early = rfs_alloc(sizeof(*fs->early));
	return fs->early ? 0 : -ENOMEM;
}

/*
 * An early block takes a page, which a recovery could not use for writing the block anew. So this
 * goes on only while there is more room than is ever needed.
 */
static bool rfs_early_has_room(const struct rfs_fs *fs)
{
	return rfs_room_beside(fs, 0, 1) >=
	       rfs_room_kept(fs) + RFS_SUM_ENTRIES;
}

/*
 * Says whether a block is written early: it leads to other blocks, and was not written early for
 * this check-point. If it was, and has changed since, it would be likely to change again.
 */
static bool rfs_early_takes(struct rfs_fs *fs, const struct rfs_buf *buf)
{
	struct rfs_buf *map;

	if (buf->early || buf->early_before == (u32)(fs->cp_seq + 1))
		return false;
	if (rfs_is_node(buf->head.type))
		return !rfs_node_map(fs, buf->off, &map) && map->dirty;
	if (buf->head.type != RFS_INODES ||
	    rfs_imap_get(fs, buf->off / RFS_MAP_ENTRIES, false, &map) || !map)
		return false;
	/* If none of its inodes is in use, the check-point frees the block. */
	return map->dirty &&
	       rfs_high(map->table.word[buf->off % RFS_MAP_ENTRIES]);
}

/*
 * Chooses up to so many blocks, from fs->dirty.early on. *n is their number. Leaves that become
 * runs count, too, so that the caller looks up now and then.
 */
static int rfs_early_choose(struct rfs_fs *fs, struct rfs_io *io, u32 most,
			    u32 *n)
{
	struct list_head *at = fs->dirty.early, *next;
	u32 runs = 0;
	int ret = 0;

	for (*n = 0; ret >= 0 && at != &fs->dirty.bufs && *n + runs < most;
	     at = next) {
		struct rfs_buf *buf = list_entry(at, struct rfs_buf, list);

		next = at->next;
		if (buf == fs->early->left || !rfs_early_takes(fs, buf))
			continue;
		ret = rfs_node_fold(fs, buf);
		if (ret)
			runs++;
		else
			io->what[(*n)++] = buf;
	}
	fs->dirty.early = at;
	return min(ret, 0);
}

/*
 * Sends the next append. *left is the number of blocks that may be sent, without those that others
 * add.
 */
static int rfs_early_send(struct rfs_fs *fs, u32 *left)
{
	struct rfs_early *early = fs->early;
	u32 nr = (early->first + early->count) % RFS_IO_DEPTH, n, i;
	struct rfs_io *io = &early->io[nr];
	int ret;

	rfs_dirty_parents(fs);
	ret = rfs_early_choose(fs, io, min_t(u32, *left, RFS_SUM_ENTRIES), &n);
	if (ret || !n)
		return ret;
	ret = rfs_place(fs, RFS_S_META, n, false, &io->place);
	if (ret)
		return ret;
	io->n = io->place.n;
	*left -= io->n;
	if (io->n < n) {
		struct rfs_buf *left_over = io->what[io->n];

		fs->dirty.early = &left_over->list;
	}
	for (i = 0; i < io->n; i++) {
		struct rfs_buf *buf = io->what[i];

		rfs_head_number(fs, &buf->head, true);
		rfs_oob_meta(fs, &io->oob[i], &buf->head);
		rfs_head_seal(&buf->head, le64_to_cpu(io->oob[i].stamp));
		rfs_oob_seal(&io->oob[i], buf->bytes);
		io->data[i] = buf->bytes;
		buf->sent = true;
		buf->early = true;
		buf->early_before = fs->cp_seq + 1;
	}
	io->req.nr = RFS_IO_DEPTH + 1 + nr;
	io->req.early = true;
	io->req.zone = io->place.zone;
	io->req.n = io->n;
	io->req.data = io->data;
	io->req.oob = io->oob;
	early->count++;
	fs->ops->append_submit(fs->dev, &io->req);
	return 0;
}

/* A block has completed. Others may have changed or dropped it since it was sent. */
static int rfs_early_complete(struct rfs_fs *fs, struct rfs_buf *buf, u64 addr)
{
	u64 old = buf->addr;

	buf->early = false;
	if (buf->gone) {
		rfs_free_nofail(buf);
		return 0;
	}
	if (!addr) {	/* it has not: the check-point writes it */
		buf->sent = false;
		return 0;
	}
	fs->early_blocks++;
	rfs_buf_written(fs, buf, addr);
	return rfs_block_moved(fs, buf, old);
}

/* Waits until the oldest append has completed. Others use the volume meanwhile. */
static int rfs_early_wait(struct rfs_fs *fs)
{
	struct rfs_early *early = fs->early;
	struct rfs_io *io = &early->io[early->first];
	int ret = 0, error;
	u32 i;

	fs->ops->append_wait(fs->dev, &io->req);
	fs->nowait = false;
	early->first = (early->first + 1) % RFS_IO_DEPTH;
	early->count--;
	rfs_placed(fs, &io->place, io->oob, io->req.addr, io->req.error);
	for (i = 0; i < io->n; i++) {
		error = rfs_early_complete(fs, io->what[i],
					   io->req.error ? 0 : io->req.addr +
					   i);
		ret = ret ? ret : error;
	}
	if (ret)
		fs->read_only = true;	/* it may be half done */
	return ret ? ret : io->req.error;
}

/*
 * Chooses a block that is left to the check-point. So each check-point has a block that was written
 * when nobody else was at work: see rescan.c. It is not a block that may become runs, since that
 * would not be written.
 */
static const struct rfs_buf *rfs_early_left(struct rfs_fs *fs)
{
	struct rfs_buf *buf;

	list_for_each_entry(buf, &fs->dirty.bufs, list)
		if (!rfs_node_may_fold(fs, buf) && rfs_early_takes(fs, buf))
			return buf;
	return NULL;
}

/* Sends at most as many blocks as are dirty when it begins. Returns their number. */
static u32 rfs_early_round(struct rfs_fs *fs)
{
	u32 dirty = fs->dirty.count, left = dirty;
	int ret = 0;

	rfs_dirty_parents(fs);
	fs->early->left = rfs_early_left(fs);
	fs->dirty.early = fs->early->left ? fs->dirty.bufs.next :
					    &fs->dirty.bufs;
	while (!ret && left && fs->dirty.early != &fs->dirty.bufs &&
	       !fs->read_only && rfs_early_has_room(fs))
		ret = fs->early->count == RFS_IO_DEPTH ? rfs_early_wait(fs) :
							 rfs_early_send(fs,
									&left);
	while (fs->early->count)
		rfs_early_wait(fs);
	fs->dirty.early = &fs->dirty.bufs;
	return ret ? 0 : dirty - left;
}

void rfs_write_early(struct rfs_fs *fs)
{
	u32 least = fs->dirty_max / LEAST, round;
	bool nowait;

	if (!rfs_io_parallel(fs) || fs->read_only || fs->dirty.count < least)
		return;
	nowait = rfs_nowait_off(fs);
	/* Next come the blocks that others have changed meanwhile for the first time. */
	for (round = 0; round < ROUNDS; round++)
		if (rfs_early_round(fs) < least)
			break;
	rfs_nowait_restore(fs, nowait);
}
