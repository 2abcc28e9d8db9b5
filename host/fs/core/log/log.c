// SPDX-License-Identifier: GPL-2.0-or-later
/* The log of changes: records into blocks. */
#include "space/space.h"
#include "log/log.h"

/* A block takes nothing more. */
static void rfs_log_close_block(struct rfs_fs *fs)
{
	fs->log[fs->log_full++]->count = cpu_to_le16(fs->log_used);
	fs->log_used = 0;
}

static void rfs_log_clear(struct rfs_head **block, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (block[i])
			memset(block[i], 0, RFS_BLOCK_BYTES);
}

static void rfs_log_block_empty(struct rfs_fs *fs)
{
	rfs_log_clear(fs->log, fs->log_full + !!fs->log_used);
	fs->log_full = 0;
	fs->log_used = 0;
}

static void rfs_log_seal(struct rfs_fs *fs, struct rfs_head *head, u64 lsn,
			 struct rfs_oob *oob)
{
	__le16 count = head->count;

	rfs_head_init(fs, head, RFS_LOG, 0, 0, lsn);
	head->count = count;
	head->prev = cpu_to_le32((u32)fs->first_lsn);
	rfs_oob_meta(fs, oob, head);
	rfs_head_seal(head, le64_to_cpu(oob->stamp));
}

/* The log is found by its LSNs: nobody points to it. */
static const struct rfs_io_ops log_ops;

/* Blocks are written, and waited for. */
static int rfs_log_write(struct rfs_fs *fs, struct rfs_head **block, u32 n,
			 u64 lsn)
{
	struct rfs_oob oob;
	u32 i;
	int ret = 0, error;

	for (i = 0; !ret && i < n; i++) {
		rfs_log_seal(fs, block[i], lsn + i, &oob);
		ret = rfs_io_submit(fs, RFS_S_LOG, block[i], &oob, &log_ops,
				    NULL, NULL);
	}
	error = rfs_io_wait_sums(fs);
	return ret ? ret : error;
}

/*
 * When all blocks are full they are sent, and records go on into others: changers wait
 * only if these are full, too, before the first have completed.
 */
struct rfs_log_sent {
	struct rfs_head *block[RFS_LOG_BLOCKS];
	u32 n;			/* 0: none is in flight */
	u64 lsn;		/* of the first */
	bool failed;		/* they are to be sent again, all of them */
	struct rfs_io io[RFS_LOG_IOS];
	u32 first, count;	/* the oldest of these, and how many */
};

int rfs_log_alloc(struct rfs_fs *fs)
{
	fs->sent = rfs_alloc(sizeof(*fs->sent));
	return fs->sent ? 0 : -ENOMEM;
}

static struct rfs_io *rfs_sent_begin(struct rfs_log_sent *sent)
{
	u32 nr = (sent->first + sent->count) % RFS_LOG_IOS;
	struct rfs_io *io = &sent->io[nr];

	io->req.nr = RFS_LOG_REQ + nr;
	io->req.data = io->data;
	io->req.oob = io->oob;
	return io;
}

static void rfs_sent_submit(struct rfs_fs *fs, struct rfs_io *io)
{
	fs->sent->count++;
	fs->ops->append_submit(fs->dev, &io->req);
}

static void rfs_sent_wait_first(struct rfs_fs *fs)
{
	struct rfs_log_sent *sent = fs->sent;
	struct rfs_io *io = &sent->io[sent->first];
	struct rfs_append_req *req = &io->req;

	fs->ops->append_wait(fs->dev, req);
	sent->first = (sent->first + 1) % RFS_LOG_IOS;
	sent->count--;
	if (io->sum) {
		rfs_sum_done(fs, io->sum, req->addr, req->error);
		return;
	}
	rfs_placed(fs, &io->place, io->oob, req->addr, req->error);
	sent->failed |= req->error;
}

void rfs_log_settle(struct rfs_fs *fs)
{
	while (fs->sent->count)
		rfs_sent_wait_first(fs);
}

/* Until what was sent is on the medium; after an error it may be asked again. */
static int rfs_sent_finish(struct rfs_fs *fs)
{
	struct rfs_log_sent *sent = fs->sent;
	int ret = 0;

	rfs_log_settle(fs);
	if (sent->failed)
		ret = rfs_log_write(fs, sent->block, sent->n, sent->lsn);
	if (ret)
		return ret;
	sent->failed = false;
	sent->n = 0;
	return 0;
}

/* What was sent before has completed, and so its summary may be due. */
static void rfs_sent_summary(struct rfs_fs *fs)
{
	struct rfs_io *io = rfs_sent_begin(fs->sent);

	io->sum = rfs_sum_next(fs, &io->oob[0]);
	if (!io->sum)
		return;
	io->data[0] = &io->sum->block;
	io->req.zone = io->sum->zone;
	io->req.n = 1;
	rfs_sent_submit(fs, io);
}

/* The next append of what is sent, of those from `from` on; how many there are */
static u32 rfs_sent_append(struct rfs_fs *fs, u32 from)
{
	struct rfs_log_sent *sent = fs->sent;
	struct rfs_io *io;
	u32 i;

	if (sent->count == RFS_LOG_IOS)
		rfs_sent_wait_first(fs);
	io = rfs_sent_begin(sent);
	if (rfs_place(fs, RFS_S_LOG, sent->n - from, false, &io->place))
		return 0;
	io->sum = NULL;
	io->n = io->place.n;
	for (i = 0; i < io->n; i++) {
		struct rfs_head *head = sent->block[from + i];

		rfs_log_seal(fs, head, sent->lsn + from + i, &io->oob[i]);
		rfs_oob_seal(&io->oob[i], head);
		io->data[i] = head;
	}
	io->req.zone = io->place.zone;
	io->req.n = io->n;
	rfs_sent_submit(fs, io);
	return io->n;
}

/* The blocks, which are full, change places with those that were sent before. */
static void rfs_log_swap(struct rfs_fs *fs)
{
	struct rfs_log_sent *sent = fs->sent;
	u32 i;

	for (i = 0; i < RFS_LOG_BLOCKS; i++) {
		struct rfs_head *block = fs->log[i];

		fs->log[i] = sent->block[i];
		sent->block[i] = block;
	}
	sent->n = fs->log_full;
	sent->lsn = fs->lsn;
	fs->lsn += sent->n;
	fs->log_full = 0;
	rfs_log_clear(fs->log, RFS_LOG_BLOCKS);
}

/*
 * Write what there is. After an error the medium may hold some of it: it may be
 * sent again, but with nothing more in its blocks.
 */
static int rfs_log_send(struct rfs_fs *fs)
{
	int ret = rfs_sent_finish(fs);

	if (ret)
		return ret;
	if (fs->log_used)
		rfs_log_close_block(fs);
	ret = rfs_log_write(fs, fs->log, fs->log_full, fs->lsn);
	if (ret)
		return ret;
	fs->lsn += fs->log_full;
	rfs_log_block_empty(fs);
	return 0;
}

/* All blocks are full. There is room for the next record afterwards. */
static int rfs_log_send_full(struct rfs_fs *fs)
{
	struct rfs_log_sent *sent = fs->sent;
	u32 done, n;
	int ret;

	if (!rfs_io_parallel(fs))
		return rfs_log_send(fs);
	ret = rfs_sent_finish(fs);
	if (ret)
		return ret;
	rfs_log_swap(fs);
	rfs_sent_summary(fs);
	for (done = 0; done < sent->n; done += n) {
		n = rfs_sent_append(fs, done);
		if (!n) {
			sent->failed = true;
			break;
		}
	}
	return 0;
}

static int rfs_log_put(struct rfs_fs *fs, const void *from, u32 bytes)
{
	int ret;

	while (bytes) {
		u32 n = min(bytes, (u32)RFS_BODY_BYTES - fs->log_used);

		ret = fs->log_full == fs->log_most ? rfs_log_send_full(fs) : 0;
		if (ret)
			return ret;
		if (from) {
			memcpy((u8 *)(fs->log[fs->log_full] + 1) + fs->log_used,
			       from, n);
			from = (const u8 *)from + n;
		}
		fs->log_used += n;
		bytes -= n;
		if (fs->log_used == RFS_BODY_BYTES)
			rfs_log_close_block(fs);
	}
	return 0;
}

#define PENDING_ROOM	256	/* places, at first */

/* Where an inode is in a table, or would be; one place at least is empty. */
static struct rfs_pending *rfs_pending_in(struct rfs_pending *table, u32 room,
					  u32 ino)
{
	u32 at = ino * 0x9e3779b1U;

	at ^= at >> 16;
	for (;; at++) {
		struct rfs_pending *place = &table[at & (room - 1)];

		if (!place->ino || place->ino == ino)
			return place;
	}
}

static struct rfs_pending *rfs_pending_at(const struct rfs_fs *fs, u32 ino)
{
	return rfs_pending_in(fs->pending, fs->pending_room, ino);
}

static int rfs_log_more_pending(struct rfs_fs *fs)
{
	struct rfs_pending *old = fs->pending;
	u32 room = fs->pending_room, i;

	fs->pending_room = room ? 2 * room : PENDING_ROOM;
	fs->pending = rfs_alloc(fs->pending_room * sizeof(*old));
	if (!fs->pending) {
		fs->pending = old;
		fs->pending_room = room;
		return -ENOMEM;
	}
	for (i = 0; i < room; i++)
		if (old[i].ino)
			*rfs_pending_at(fs, old[i].ino) = old[i];
	rfs_free(old);
	return 0;
}

#define RECORD_INODES	3	/* that a record is about, at most */

/*
 * The blocks that a record may reach into: those at the end, or the first ones, of
 * these or of those that they change places with
 */
static int rfs_log_more_blocks(struct rfs_fs *fs)
{
	struct rfs_head **after = rfs_io_parallel(fs) ? fs->sent->block :
							fs->log;
	u32 i;

	for (i = 0; i < RFS_LOG_KEPT; i++) {
		u32 at = fs->log_full + i;
		struct rfs_head **block = at < fs->log_most ? &fs->log[at] :
					  &after[at - fs->log_most];

		if (!*block)
			*block = rfs_alloc_nofail(RFS_BLOCK_BYTES);
		if (!*block)
			return -ENOMEM;
	}
	return 0;
}

int rfs_log_room(struct rfs_fs *fs, u32 records)
{
	u32 most = fs->pendings + records * RECORD_INODES;
	int ret = rfs_log_more_blocks(fs);

	if (ret)
		return ret;
	return 2 * most > fs->pending_room ? rfs_log_more_pending(fs) : 0;
}

/* After rfs_log_room(), with no check-point between: that takes the table. */
static void rfs_note_pending(struct rfs_fs *fs, u32 ino, bool before_data)
{
	struct rfs_pending *place;

	WARN_ON_ONCE(fs->pendings + 1 >= fs->pending_room);
	place = rfs_pending_at(fs, ino);
	fs->pendings += !place->ino;
	fs->unsettled += !place->ino;
	place->ino = ino;
	place->before_data |= before_data;
}

/* Who had its number before is told apart by the generation: no page waits. */
static void rfs_log_note_new(struct rfs_fs *fs, u32 ino)
{
	rfs_note_pending(fs, ino, false);
	rfs_pending_at(fs, ino)->before_data = false;
}

/* There are none after the first that is not there. */
static void rfs_log_free_blocks(struct rfs_head **block, u32 kept)
{
	u32 i;

	for (i = kept; i < RFS_LOG_BLOCKS && block[i]; i++) {
		rfs_free(block[i]);
		block[i] = NULL;
	}
}

void rfs_log_free(struct rfs_fs *fs)
{
	rfs_log_free_blocks(fs->log, 0);
	if (!fs->sent)
		return;
	/* after an error they may still be in flight */
	rfs_log_settle(fs);
	rfs_log_free_blocks(fs->sent->block, 0);
	rfs_free(fs->sent);
	fs->sent = NULL;
}

/* Records go: they are on the medium, or a check-point has what they say. */
static void rfs_log_drop(struct rfs_fs *fs)
{
	rfs_log_free_blocks(fs->log, RFS_LOG_KEPT);
	rfs_log_free_blocks(fs->sent->block, RFS_LOG_KEPT);
	fs->sent->n = 0;
	fs->sent->failed = false;
	rfs_log_block_empty(fs);
}

void rfs_log_cut_durable(struct rfs_fs *fs)
{
	rfs_free(fs->frozen);
	fs->frozen = NULL;
	fs->unsettled -= fs->frozens;
	fs->frozens = 0;
	fs->frozen_room = 0;
}

void rfs_log_cut(struct rfs_fs *fs)
{
	rfs_log_drop(fs);
	/* of one that has failed */
	rfs_log_cut_durable(fs);
	fs->frozen = fs->pending;
	fs->frozens = fs->pendings;
	fs->frozen_room = fs->pending_room;
	fs->pending = NULL;
	fs->pendings = 0;
	fs->pending_room = 0;
}

void rfs_log_durable(struct rfs_fs *fs)
{
	rfs_log_drop(fs);
	if (fs->pending_room > PENDING_ROOM) {
		rfs_free(fs->pending);
		fs->pending = NULL;
		fs->pending_room = 0;
	} else if (fs->pendings) {
		memset(fs->pending, 0, fs->pending_room * sizeof(*fs->pending));
	}
	fs->unsettled -= fs->pendings;
	fs->pendings = 0;
}

/* A record that was applied. rec->bytes, len1 and len2 are set. */
int rfs_log_add(struct rfs_fs *fs, const struct rfs_rec *rec, const void *name1,
		const void *name2)
{
	u32 len1 = le16_to_cpu(rec->len1), len2 = le16_to_cpu(rec->len2);
	bool removes = rec->op == RFS_OP_SIZE || rec->op == RFS_OP_PUNCH ||
		       rec->op == RFS_OP_UNLINK;
	int ret = rfs_log_room(fs, 1);	/* a check-point may have come between */

	if (ret)
		return ret;
	if (rec->op == RFS_OP_CREATE)
		rfs_log_note_new(fs, le32_to_cpu(rec->ino));
	else
		rfs_note_pending(fs, le32_to_cpu(rec->ino), removes);
	if (rec->victim)
		rfs_note_pending(fs, le32_to_cpu(rec->victim), true);
	if (rec->op == RFS_OP_RENAME && rec->arg1)
		rfs_log_note_new(fs, le64_to_cpu(rec->arg1));
	ret = rfs_log_put(fs, rec, sizeof(*rec));
	if (!ret)
		ret = rfs_log_put(fs, name1, len1);
	if (!ret)
		ret = rfs_log_put(fs, name2, len2);
	if (!ret)
		ret = rfs_log_put(fs, NULL, le32_to_cpu(rec->bytes) -
				  sizeof(*rec) - len1 - len2);
	return ret;
}

bool rfs_log_empty(const struct rfs_fs *fs)
{
	return !fs->log_full && !fs->log_used && !fs->sent->n;
}

/*
 * Until the check-point is durable that has what the records before these say: their
 * LSN is none of those that the check-point before it reads on to.
 */
static int rfs_log_wait_commit(struct rfs_fs *fs)
{
	bool nowait = fs->nowait;

	if (rfs_injects(fs, RFS_INJECT_WAIT))
		return 0;
	while (fs->commit == RFS_COMMIT_GOES_ON) {
		if (!fs->ops->durable)
			return -EAGAIN;
		fs->ops->durable(fs->dev);
		fs->nowait = nowait;
	}
	return fs->commit ? -EIO : 0;
}

int rfs_log_sync(struct rfs_fs *fs)
{
	int ret = rfs_log_wait_commit(fs);

	if (ret)
		return ret;
	rfs_quiet(fs, true);
	ret = rfs_log_empty(fs) ? 0 : rfs_log_send(fs);
	if (ret == -EIO)
		fs->read_only = true;
	if (!ret)
		ret = fs->ops->wait(fs->dev);
	if (!ret && fs->geo.volatile_cache)
		ret = fs->ops->flush(fs->dev);
	if (!ret)
		rfs_log_durable(fs);
	rfs_quiet(fs, false);
	return ret;
}

void rfs_log_before_data(struct rfs_fs *fs, u32 ino)
{
	rfs_note_pending(fs, ino, true);
}

/* Has the inode a record that is not durable? Of those data waits for? */
bool rfs_log_pending(struct rfs_fs *fs, u32 ino, bool before_data)
{
	const struct rfs_pending *place;

	if (fs->pendings) {
		place = rfs_pending_at(fs, ino);
		if (place->ino && (place->before_data || !before_data))
			return true;
	}
	if (!fs->frozens)
		return false;
	place = rfs_pending_in(fs->frozen, fs->frozen_room, ino);
	return place->ino && (place->before_data || !before_data);
}
