// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a check-point writes, and the log, in appends that are under way together:
 * when the oldest has landed another goes out, so the drive has work all the time.
 * Where few zones may be active, or there is no page metadata, each is waited for.
 */
#include "space/space.h"

bool rfs_together(const struct rfs_fs *fs)
{
	return fs->geo.oob_bytes && fs->ops->append_begin && !fs->active_max;
}

static struct rfs_flight *begin(struct rfs_fs *fs)
{
	struct rfs_air *air = fs->air;
	struct rfs_flight *f;
	u32 nr = (air->first + air->count++) % RFS_TOGETHER;

	f = &air->flight[nr];
	f->send.nr = nr;
	f->send.data = f->data;
	f->send.oob = f->oob;
	return f;
}

/* As many summaries as have room */
static void send_sums(struct rfs_fs *fs)
{
	struct rfs_air *air = fs->air;
	struct rfs_flight *f;
	struct rfs_sum *sum;
	struct rfs_oob oob;

	while (air->count < RFS_TOGETHER) {
		sum = rfs_sum_next(fs, &oob);
		if (!sum)
			return;
		f = begin(fs);
		f->sum = sum;
		f->data[0] = &sum->block;
		f->oob[0] = oob;
		f->send.zone = sum->zone;
		f->send.n = 1;
		fs->ops->append_begin(fs->dev, &f->send);
	}
}

static int landed(struct rfs_fs *fs, struct rfs_flight *f, const u64 *addr)
{
	u32 i;
	int ret = 0;

	for (i = 0; f->landed && !ret && i < f->n; i++)
		ret = f->landed(fs, f->what[i], f->how, addr[i]);
	return ret;
}

/* In another zone, or once more; waited for */
static int write_now(struct rfs_fs *fs, struct rfs_flight *f)
{
	u64 addr[RFS_SUM_ENTRIES];
	int ret = rfs_append(fs, f->stream, f->n, f->data, f->oob, addr);

	return ret ? ret : landed(fs, f, addr);
}

/* Until the oldest has landed */
static int land_first(struct rfs_fs *fs)
{
	u64 addr[RFS_SUM_ENTRIES];
	struct rfs_air *air = fs->air;
	struct rfs_flight *f = &air->flight[air->first];
	struct rfs_send *send = &f->send;
	u32 i;
	int ret;

	fs->ops->append_end(fs->dev, send);
	air->failed |= send->error;
	air->first = (air->first + 1) % RFS_TOGETHER;
	air->count--;
	if (f->sum) {
		rfs_sum_done(fs, f->sum, send->addr, send->error);
		return 0;
	}
	air->blocks--;
	rfs_placed(fs, &f->place, f->oob, send->addr, send->error);
	if (send->error) {
		if (!rfs_zone_failed(send->error) && fs->ops->rest)
			fs->ops->rest(fs->dev);
		return write_now(fs, f);
	}
	for (i = 0; i < f->n; i++)
		addr[i] = send->addr + i;
	ret = landed(fs, f, addr);
	send_sums(fs);
	return ret;
}

/* What is in air->next goes out, maybe in several appends. */
static int send_next(struct rfs_fs *fs)
{
	struct rfs_air *air = fs->air;
	struct rfs_flight *next = &air->next, *f;
	struct rfs_place place;
	u32 n = next->n, done;
	int ret = 0;

	next->n = 0;
	if (!rfs_together(fs)) {
		next->n = n;
		ret = write_now(fs, next);
		next->n = 0;
		return ret;
	}
	for (done = 0; done < n; done += place.n) {
		while (!ret && air->count == RFS_TOGETHER)
			ret = land_first(fs);
		if (!ret)
			ret = rfs_place(fs, next->stream, n - done, false,
					&place);
		if (ret)
			return ret;
		f = begin(fs);
		f->place = place;
		f->sum = NULL;
		f->stream = next->stream;
		f->n = place.n;
		f->landed = next->landed;
		f->how = next->how;
		memcpy(f->what, next->what + done, place.n * sizeof(*f->what));
		memcpy(f->data, next->data + done, place.n * sizeof(*f->data));
		memcpy(f->oob, next->oob + done, place.n * sizeof(*f->oob));
		f->send.zone = place.zone;
		f->send.n = place.n;
		air->blocks++;
		fs->ops->append_begin(fs->dev, &f->send);
	}
	return 0;
}

int rfs_fly(struct rfs_fs *fs, u32 stream, const void *data,
	    const struct rfs_oob *oob,
	    int (*landed)(struct rfs_fs *fs, void *what, const void *how,
			  u64 addr),
	    void *what, const void *how)
{
	struct rfs_flight *next = &fs->air->next;
	int ret = 0;

	if (next->n && (next->stream != stream || next->landed != landed ||
			next->how != how))
		ret = send_next(fs);
	next->stream = stream;
	next->landed = landed;
	next->how = how;
	next->what[next->n] = what;
	next->data[next->n] = data;
	next->oob[next->n] = *oob;
	rfs_oob_seal(&next->oob[next->n], data);
	if (++next->n == RFS_SUM_ENTRIES && !ret)
		ret = send_next(fs);
	return ret;
}

int rfs_land(struct rfs_fs *fs)
{
	int ret = fs->air->next.n ? send_next(fs) : 0, error;

	while (fs->air->blocks) {
		error = land_first(fs);
		ret = ret ? ret : error;
	}
	return ret;
}

int rfs_land_sums(struct rfs_fs *fs)
{
	int ret = rfs_land(fs);

	if (!rfs_together(fs))
		rfs_sums_write(fs);
	else
		send_sums(fs);
	while (fs->air->count) {
		land_first(fs);
		send_sums(fs);
	}
	return ret;
}
