// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A check-point and the log write with several appends in flight: when the
 * oldest has completed another one is submitted, so that the drive always has
 * work. Where few zones may be active, or there is no page metadata, each
 * append is waited for.
 */
#include "space/space.h"

bool rfs_io_parallel(const struct rfs_fs *fs)
{
	return fs->geo.oob_bytes && fs->ops->append_submit && !fs->active_few;
}

static struct rfs_io *rfs_io_begin(struct rfs_fs *fs)
{
	struct rfs_ioq *ioq = fs->ioq;
	struct rfs_io *io;
	u32 nr = (ioq->first + ioq->count++) % RFS_IO_DEPTH;

	io = &ioq->io[nr];
	io->req.nr = nr;
	io->req.data = io->data;
	io->req.oob = io->oob;
	return io;
}

/* Submits as many summaries as there are free requests. */
static void rfs_io_send_sums(struct rfs_fs *fs)
{
	struct rfs_ioq *ioq = fs->ioq;
	struct rfs_io *io;
	struct rfs_sum *sum;
	struct rfs_oob oob;

	while (ioq->count < RFS_IO_DEPTH) {
		sum = rfs_sum_next(fs, &oob);
		if (!sum)
			return;
		io = rfs_io_begin(fs);
		io->sum = sum;
		io->data[0] = &sum->block;
		io->oob[0] = oob;
		io->req.zone = sum->zone;
		io->req.n = 1;
		fs->ops->append_submit(fs->dev, &io->req);
	}
}

static int rfs_io_complete(struct rfs_fs *fs, struct rfs_io *io,
			   const u64 *addr)
{
	u32 i;
	int ret = 0;

	for (i = 0; io->ops->complete && !ret && i < io->n; i++)
		ret = io->ops->complete(fs, io->what[i], io->how, addr[i]);
	return ret;
}

static int rfs_io_expect(struct rfs_fs *fs, struct rfs_io *io)
{
	u32 i;
	int ret = 0;

	for (i = 0; io->ops->expected && !ret && i < io->n; i++)
		ret = io->ops->expected(fs, io->what[i], io->how,
					io->place.addr + i);
	return ret;
}

/*
 * Appends the blocks to another zone, or once more to the same, and waits for
 * it.
 */
static int rfs_io_write_now(struct rfs_fs *fs, struct rfs_io *io)
{
	u64 addr[RFS_SUM_ENTRIES];
	int ret = rfs_append(fs, io->stream, io->n, io->data, io->oob, addr);

	return ret ? ret : rfs_io_complete(fs, io, addr);
}

/* Waits until the oldest append has completed. */
static int rfs_io_wait_first(struct rfs_fs *fs)
{
	u64 addr[RFS_SUM_ENTRIES];
	struct rfs_ioq *ioq = fs->ioq;
	struct rfs_io *io = &ioq->io[ioq->first];
	struct rfs_append_req *req = &io->req;
	u32 i;
	int ret;

	fs->ops->append_wait(fs->dev, req);
	ioq->failed |= req->error;
	ioq->first = (ioq->first + 1) % RFS_IO_DEPTH;
	ioq->count--;
	if (io->sum) {
		rfs_sum_done(fs, io->sum, req->addr, req->error);
		return 0;
	}
	ioq->blocks--;
	rfs_placed(fs, &io->place, io->oob, req->addr, req->error);
	if (req->error) {
		if (!rfs_zone_failed(req->error) && fs->ops->delay)
			fs->ops->delay(fs->dev);
		return rfs_io_write_now(fs, io);
	}
	for (i = 0; i < io->n; i++)
		addr[i] = req->addr + i;
	ret = rfs_io_complete(fs, io, addr);
	rfs_io_send_sums(fs);
	return ret;
}

/* Submits what is in ioq->next, perhaps in several appends. */
static int rfs_io_send_next(struct rfs_fs *fs)
{
	struct rfs_ioq *ioq = fs->ioq;
	struct rfs_io *next = &ioq->next, *io;
	struct rfs_place place;
	u32 n = next->n, done;
	int ret = 0;

	next->n = 0;
	if (!rfs_io_parallel(fs)) {
		next->n = n;
		ret = rfs_io_write_now(fs, next);
		next->n = 0;
		return ret;
	}
	for (done = 0; done < n; done += place.n) {
		while (!ret && ioq->count == RFS_IO_DEPTH)
			ret = rfs_io_wait_first(fs);
		if (!ret)
			ret = rfs_place(fs, next->stream, n - done, false,
					&place);
		if (ret)
			return ret;
		io = rfs_io_begin(fs);
		io->place = place;
		io->sum = NULL;
		io->stream = next->stream;
		io->n = place.n;
		io->ops = next->ops;
		io->how = next->how;
		memcpy(io->what, next->what + done, place.n *
		       sizeof(*io->what));
		memcpy(io->data, next->data + done, place.n *
		       sizeof(*io->data));
		memcpy(io->oob, next->oob + done, place.n * sizeof(*io->oob));
		io->req.zone = place.zone;
		io->req.n = place.n;
		ioq->blocks++;
		fs->ops->append_submit(fs->dev, &io->req);
		ret = rfs_io_expect(fs, io);
		if (ret)
			return ret;
	}
	return 0;
}

int rfs_io_submit(struct rfs_fs *fs, u32 stream, const void *data,
		  const struct rfs_oob *oob, const struct rfs_io_ops *ops,
		  void *what, const void *how)
{
	struct rfs_io *next = &fs->ioq->next;
	int ret = 0;

	if (next->n && (next->stream != stream || next->ops != ops ||
			next->how != how))
		ret = rfs_io_send_next(fs);
	next->stream = stream;
	next->ops = ops;
	next->how = how;
	next->what[next->n] = what;
	next->data[next->n] = data;
	next->oob[next->n] = *oob;
	rfs_oob_seal(&next->oob[next->n], data);
	if (++next->n == RFS_SUM_ENTRIES && !ret)
		ret = rfs_io_send_next(fs);
	return ret;
}

int rfs_io_send(struct rfs_fs *fs)
{
	return fs->ioq->next.n ? rfs_io_send_next(fs) : 0;
}

int rfs_io_wait(struct rfs_fs *fs)
{
	int ret = rfs_io_send(fs), error;

	while (fs->ioq->blocks) {
		error = rfs_io_wait_first(fs);
		ret = ret ? ret : error;
	}
	return ret;
}

int rfs_io_wait_sums(struct rfs_fs *fs)
{
	int ret = rfs_io_wait(fs);

	if (!rfs_io_parallel(fs))
		rfs_sums_write(fs);
	else
		rfs_io_send_sums(fs);
	while (fs->ioq->count) {
		rfs_io_wait_first(fs);
		rfs_io_send_sums(fs);
	}
	return ret;
}
