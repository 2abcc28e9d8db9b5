// SPDX-License-Identifier: GPL-2.0-or-later
/* The log of changes puts records into blocks. */
#include "space/space.h"
#include "log/log.h"

/* Closes the block that is being filled: it takes no more records. */
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

/* Writes blocks, and waits for them. */
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
 * These are blocks of the log in flight, while records go on into others. There are two of these
 * structures. `sent` has blocks that were full: a changer waits only if the blocks that he fills
 * now are full before the first have completed. `synced` has the blocks of an fsync, which lets
 * others change the volume meanwhile; only the fsync itself waits for its appends.
 */
struct rfs_log_sent {
	struct rfs_head *block[RFS_LOG_BLOCKS];
	u32 used;		/* of them, those that are not zero */
	u32 n;			/* 0: none is in flight */
	u64 lsn;		/* of the first */
	bool failed;		/* they are to be sent again, all of them */
	bool early;		/* others may change the volume while these are waited for */
	struct rfs_io io[RFS_LOG_IOS];
	u32 req, ios;		/* the number of the first of these; how many are used */
	u32 first, count;	/* the oldest of these, and how many */
};

static struct rfs_log_sent *rfs_sent_alloc(u32 req, u32 ios, bool early)
{
	struct rfs_log_sent *sent = rfs_alloc(sizeof(*sent));

	if (!sent)
		return NULL;
	sent->req = req;
	sent->ios = ios;
	sent->early = early;
	return sent;
}

int rfs_log_alloc(struct rfs_fs *fs)
{
	fs->sent = rfs_sent_alloc(RFS_LOG_REQ, RFS_LOG_IOS, false);
	fs->synced = rfs_sent_alloc(RFS_LOG_REQ + RFS_LOG_IOS, RFS_SYNC_IOS, true);
	return fs->sent && fs->synced ? 0 : -ENOMEM;
}

static struct rfs_io *rfs_sent_begin(struct rfs_log_sent *sent)
{
	u32 nr = (sent->first + sent->count) % sent->ios;
	struct rfs_io *io = &sent->io[nr];

	io->req.nr = sent->req + nr;
	io->req.data = io->data;
	io->req.oob = io->oob;
	io->req.early = sent->early;
	return io;
}

static void rfs_sent_submit(struct rfs_fs *fs, struct rfs_log_sent *sent,
			    struct rfs_io *io)
{
	sent->count++;
	fs->ops->append_submit(fs->dev, &io->req);
}

static void rfs_sent_wait_first(struct rfs_fs *fs, struct rfs_log_sent *sent)
{
	struct rfs_io *io = &sent->io[sent->first];
	struct rfs_append_req *req = &io->req;

	fs->ops->append_wait(fs->dev, req);
	sent->first = (sent->first + 1) % sent->ios;
	sent->count--;
	if (io->sum) {
		rfs_sum_done(fs, io->sum, req->addr, req->error);
		return;
	}
	rfs_placed(fs, &io->place, io->oob, req->addr, req->error);
	sent->failed |= req->error;
}

static void rfs_sent_settle(struct rfs_fs *fs, struct rfs_log_sent *sent)
{
	while (sent->count)
		rfs_sent_wait_first(fs, sent);
}

void rfs_log_settle(struct rfs_fs *fs)
{
	rfs_sent_settle(fs, fs->sent);
}

/*
 * Waits until the blocks that were sent are on the medium. After an error it may be called again.
 */
static int rfs_sent_finish(struct rfs_fs *fs, struct rfs_log_sent *sent)
{
	int ret = 0;

	rfs_sent_settle(fs, sent);
	if (sent->failed)
		ret = rfs_log_write(fs, sent->block, sent->n, sent->lsn);
	if (ret)
		return ret;
	sent->failed = false;
	sent->n = 0;
	return 0;
}

/* Sends the summary of the blocks that were sent before, if they have completed and it is due. */
static void rfs_sent_summary(struct rfs_fs *fs, struct rfs_log_sent *sent)
{
	struct rfs_io *io = rfs_sent_begin(sent);

	io->sum = rfs_sum_next(fs, &io->oob[0]);
	if (!io->sum)
		return;
	io->data[0] = &io->sum->block;
	io->req.zone = io->sum->zone;
	io->req.n = 1;
	rfs_sent_submit(fs, sent, io);
}

/*
 * Sends the next append of these blocks, from block `from` on. Returns the number of its blocks, or
 * 0.
 */
static u32 rfs_sent_append(struct rfs_fs *fs, struct rfs_log_sent *sent, u32 from)
{
	struct rfs_io *io;
	u32 i;

	if (sent->count == sent->ios)
		rfs_sent_wait_first(fs, sent);
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
	rfs_sent_submit(fs, sent, io);
	return io->n;
}

/* The blocks are closed. They change places with those that were sent before. */
static void rfs_log_swap(struct rfs_fs *fs, struct rfs_log_sent *sent)
{
	u32 used = sent->used, i;

	for (i = 0; i < RFS_LOG_BLOCKS; i++) {
		struct rfs_head *block = fs->log[i];

		fs->log[i] = sent->block[i];
		sent->block[i] = block;
	}
	sent->n = fs->log_full;
	sent->used = sent->n;
	sent->lsn = fs->lsn;
	fs->lsn += sent->n;
	fs->log_full = 0;
	rfs_log_clear(fs->log, used);
}

static void rfs_sent_submit_all(struct rfs_fs *fs, struct rfs_log_sent *sent)
{
	u32 done, n;

	rfs_sent_summary(fs, sent);
	for (done = 0; done < sent->n; done += n) {
		n = rfs_sent_append(fs, sent, done);
		if (!n) {
			sent->failed = true;
			return;
		}
	}
}

/*
 * Writes all records. After an error the medium may hold some of them. Then the same blocks may be
 * sent again, but no record may be added to them.
 */
static int rfs_log_send(struct rfs_fs *fs)
{
	int ret = rfs_sent_finish(fs, fs->synced);

	if (!ret)
		ret = rfs_sent_finish(fs, fs->sent);
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

/* Sends all blocks when they are full. There is room for the next record afterwards. */
static int rfs_log_send_full(struct rfs_fs *fs)
{
	int ret;

	if (!rfs_io_parallel(fs))
		return rfs_log_send(fs);
	ret = rfs_sent_finish(fs, fs->sent);
	if (ret)
		return ret;
	rfs_log_swap(fs, fs->sent);
	rfs_sent_submit_all(fs, fs->sent);
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

/*
 * Returns the place of an inode in a table, or the place where it would be. At least one place is
 * empty.
 */
static struct rfs_pending *rfs_pending_in(const struct rfs_pendings *table, u32 ino)
{
	u32 at = ino * 0x9e3779b1U;

	at ^= at >> 16;
	for (;; at++) {
		struct rfs_pending *place = &table->place[at & (table->room - 1)];

		if (!place->ino || place->ino == ino)
			return place;
	}
}

static struct rfs_pending *rfs_pending_at(const struct rfs_fs *fs, u32 ino)
{
	return rfs_pending_in(&fs->pending, ino);
}

static int rfs_log_more_pending(struct rfs_fs *fs)
{
	struct rfs_pending *old = fs->pending.place;
	u32 room = fs->pending.room, i;

	fs->pending.room = room ? 2 * room : PENDING_ROOM;
	fs->pending.place = rfs_alloc(fs->pending.room * sizeof(*old));
	if (!fs->pending.place) {
		fs->pending.place = old;
		fs->pending.room = room;
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
 * Allocates the blocks that a record may reach into: those after the full ones or, at the end of
 * the array, the first ones of the array that comes next.
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
	u32 most = fs->pending.n + records * RECORD_INODES;
	int ret = rfs_log_more_blocks(fs);

	/*
	 * An fsync that fails puts back the inodes that it has put aside, see rfs_pending_thaw().
	 */
	if (fs->syncing)
		most += fs->frozen.n;
	while (!ret && 2 * most > fs->pending.room)
		ret = rfs_log_more_pending(fs);
	return ret;
}

/*
 * Notes an inode with a record that is not durable. This comes after rfs_log_room(), with no
 * check-point between, since a check-point takes the table.
 */
static void rfs_note_pending(struct rfs_fs *fs, u32 ino, bool before_data)
{
	struct rfs_pending *place;

	WARN_ON_ONCE(fs->pending.n + 1 >= fs->pending.room);
	place = rfs_pending_at(fs, ino);
	fs->pending.n += !place->ino;
	fs->unsettled += !place->ino;
	place->ino = ino;
	place->before_data |= before_data;
}

/* The generation tells a new inode from the one that had its number before, so no page waits. */
static void rfs_log_note_new(struct rfs_fs *fs, u32 ino)
{
	rfs_note_pending(fs, ino, false);
	rfs_pending_at(fs, ino)->before_data = false;
}

/* Frees the blocks of an array. The first NULL ends it. */
static void rfs_log_free_blocks(struct rfs_head **block, u32 kept)
{
	u32 i;

	for (i = kept; i < RFS_LOG_BLOCKS && block[i]; i++) {
		rfs_free_nofail(block[i]);
		block[i] = NULL;
	}
}

static void rfs_sent_free(struct rfs_fs *fs, struct rfs_log_sent *sent)
{
	if (!sent)
		return;
	/* After an error they may still be in flight. */
	rfs_sent_settle(fs, sent);
	rfs_log_free_blocks(sent->block, 0);
	rfs_free(sent);
}

void rfs_log_free(struct rfs_fs *fs)
{
	rfs_log_free_blocks(fs->log, 0);
	rfs_sent_free(fs, fs->sent);
	rfs_sent_free(fs, fs->synced);
	fs->sent = NULL;
	fs->synced = NULL;
}

static void rfs_sent_drop(struct rfs_log_sent *sent)
{
	rfs_log_free_blocks(sent->block, RFS_LOG_KEPT);
	sent->n = 0;
	sent->failed = false;
}

/* Drops all records: they are on the medium, or a check-point has their changes. */
static void rfs_log_drop(struct rfs_fs *fs)
{
	rfs_log_free_blocks(fs->log, RFS_LOG_KEPT);
	rfs_sent_drop(fs->sent);
	rfs_sent_drop(fs->synced);
	rfs_log_block_empty(fs);
}

/*
 * Puts the table of pending inodes aside. Inodes that become pending from now on are in another
 * table.
 */
static void rfs_pending_freeze(struct rfs_fs *fs)
{
	fs->frozen = fs->pending;
	fs->records_frozen = fs->records;
	fs->pending = (struct rfs_pendings){ 0 };
}

/* Forgets the table that was put aside, and keeps its memory for the next one if it is small. */
static void rfs_pending_forget_frozen(struct rfs_fs *fs)
{
	struct rfs_pendings old = fs->frozen;

	fs->frozen = (struct rfs_pendings){ 0 };
	fs->unsettled -= old.n;
	if (!fs->pending.place && old.room == PENDING_ROOM) {
		memset(old.place, 0, PENDING_ROOM * sizeof(*old.place));
		old.n = 0;
		fs->pending = old;
	} else {
		rfs_free(old.place);
	}
}

/* Makes the inodes that were put aside pending again. rfs_log_room() has kept places for them. */
static void rfs_pending_thaw(struct rfs_fs *fs)
{
	u32 i;

	if (!fs->pending.place) {
		fs->pending = fs->frozen;
		fs->frozen = (struct rfs_pendings){ 0 };
		return;
	}
	for (i = 0; i < fs->frozen.room; i++) {
		const struct rfs_pending *old = &fs->frozen.place[i];

		if (old->ino)
			rfs_note_pending(fs, old->ino, old->before_data);
	}
	rfs_pending_forget_frozen(fs);
}

void rfs_log_cut_durable(struct rfs_fs *fs)
{
	fs->records_durable = fs->records_frozen;
	rfs_pending_forget_frozen(fs);
}

void rfs_log_cut(struct rfs_fs *fs)
{
	rfs_log_drop(fs);
	/* This forgets the table of an fsync that has failed. */
	rfs_pending_forget_frozen(fs);
	rfs_pending_freeze(fs);
}

void rfs_log_durable(struct rfs_fs *fs)
{
	rfs_log_drop(fs);
	fs->records_durable = fs->records;
	if (fs->pending.room > PENDING_ROOM) {
		rfs_free(fs->pending.place);
		fs->pending.place = NULL;
		fs->pending.room = 0;
	} else if (fs->pending.n) {
		memset(fs->pending.place, 0, fs->pending.room * sizeof(*fs->pending.place));
	}
	fs->unsettled -= fs->pending.n;
	fs->pending.n = 0;
}

/* Adds a record that was applied. rec->bytes, len1 and len2 are set. */
int rfs_log_add(struct rfs_fs *fs, const struct rfs_rec *rec, const void *name1,
		const void *name2)
{
	u32 len1 = le16_to_cpu(rec->len1), len2 = le16_to_cpu(rec->len2);
	bool removes = rec->op == RFS_OP_SIZE || rec->op == RFS_OP_PUNCH ||
		       rec->op == RFS_OP_UNLINK;
	int ret = rfs_log_room(fs, 1);	/* a check-point may have come between */

	if (ret)
		return ret;
	fs->records++;
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
	return !fs->log_full && !fs->log_used && !fs->sent->n && !fs->synced->n;
}

/*
 * Waits until the check-point is durable that has the changes of earlier records. A recovery from
 * the check-point before it does not read on to the LSN of these records. Also waits until no other
 * fsync waits for the log.
 */
static int rfs_log_wait_others(struct rfs_fs *fs)
{
	bool believes = rfs_injects(fs, RFS_INJECT_WAIT), nowait = fs->nowait;

	while (fs->syncing || (fs->commit == RFS_COMMIT_GOES_ON && !believes)) {
		if (!fs->ops->durable)
			return -EAGAIN;
		fs->ops->durable(fs->dev);
		fs->nowait = nowait;
	}
	return fs->commit && !believes ? -EIO : 0;
}

int rfs_log_sync(struct rfs_fs *fs)
{
	int ret = rfs_log_wait_others(fs);

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

/*
 * Waits for the blocks that were sent when they were full, and sends again those that an fsync
 * could not write.
 */
static int rfs_log_finish_sent(struct rfs_fs *fs)
{
	int ret;

	if (!fs->sent->n && !fs->synced->n)
		return 0;
	rfs_quiet(fs, true);
	ret = rfs_sent_finish(fs, fs->synced);
	if (!ret)
		ret = rfs_sent_finish(fs, fs->sent);
	rfs_quiet(fs, false);
	return ret;
}

/* Waits for the blocks of an fsync, which are all in flight or have failed. */
static int rfs_log_wait_synced(struct rfs_fs *fs)
{
	struct rfs_log_sent *sent = fs->synced;
	bool flushes = fs->geo.volatile_cache;
	int ret;

	rfs_sent_settle(fs, sent);
	ret = fs->ops->wait(fs->dev);
	if (!ret && !sent->failed && flushes) {
		ret = fs->ops->flush_early(fs->dev);
		/* The drive may have lost them. */
		sent->failed = ret && sent->n;
		return ret;
	}
	if (ret || !sent->failed)
		return ret;
	rfs_quiet(fs, true);
	ret = rfs_sent_finish(fs, sent);
	if (!ret && flushes)
		ret = fs->ops->flush(fs->dev);
	rfs_quiet(fs, false);
	return ret;
}

/* Writes all records that exist now. Others change the volume meanwhile, and add other records. */
static int rfs_log_sync_beside_others(struct rfs_fs *fs)
{
	bool nowait = fs->nowait;
	int ret = rfs_log_finish_sent(fs);

	if (!ret) {
		if (fs->log_used)
			rfs_log_close_block(fs);
		rfs_log_swap(fs, fs->synced);
		rfs_pending_freeze(fs);
		fs->syncing = true;
		rfs_sent_submit_all(fs, fs->synced);
		ret = rfs_log_wait_synced(fs);
		fs->nowait = nowait;
		fs->syncing = false;
		if (!ret) {
			rfs_sent_drop(fs->synced);
			rfs_log_cut_durable(fs);
		} else {
			rfs_pending_thaw(fs);
		}
	}
	if (ret == -EIO)
		fs->read_only = true;
	return ret;
}

int rfs_log_sync_beside(struct rfs_fs *fs)
{
	u64 records = fs->records;
	int ret = rfs_log_wait_others(fs);

	if (ret)
		return ret;
	if (!rfs_io_parallel(fs) || !fs->ops->lets_change ||
	    !fs->ops->lets_change(fs->dev))
		return rfs_log_sync(fs);
	if (fs->records_durable < records)
		return rfs_log_sync_beside_others(fs);
	/* Another fsync has written them. The caller's data may not have been flushed then. */
	return fs->geo.volatile_cache ? fs->ops->flush_early(fs->dev) : 0;
}

void rfs_log_before_data(struct rfs_fs *fs, u32 ino)
{
	rfs_note_pending(fs, ino, true);
}

/*
 * Says whether the inode has a record that is not durable. With before_data, only records count
 * that have to be durable before data.
 */
bool rfs_log_is_noted(const struct rfs_fs *fs, u32 ino, bool before_data)
{
	const struct rfs_pending *place;

	if (fs->pending.n) {
		place = rfs_pending_at(fs, ino);
		if (place->ino && (place->before_data || !before_data))
			return true;
	}
	if (!fs->frozen.n)
		return false;
	place = rfs_pending_in(&fs->frozen, ino);
	return place->ino && (place->before_data || !before_data);
}
