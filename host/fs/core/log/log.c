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

static void rfs_log_block_empty(struct rfs_fs *fs)
{
	u32 i;

	for (i = 0; i < fs->log_full + !!fs->log_used; i++)
		if (fs->log[i])
			memset(fs->log[i], 0, RFS_BLOCK_BYTES);
	fs->log_full = 0;
	fs->log_used = 0;
}

/* The log is found by its LSNs: nobody points to it. */
static const struct rfs_io_ops log_ops;

/*
 * Write what there is. After an error the medium may hold some of it: it may be
 * sent again, but with nothing more in its blocks.
 */
static int rfs_log_send(struct rfs_fs *fs)
{
	struct rfs_oob oob;
	u32 i;
	int ret = 0, error;

	if (fs->log_used)
		rfs_log_close_block(fs);
	for (i = 0; !ret && i < fs->log_full; i++) {
		struct rfs_head *head = fs->log[i];
		__le16 count = head->count;

		rfs_head_init(fs, head, RFS_LOG, 0, 0, fs->lsn + i);
		head->count = count;
		rfs_oob_meta(fs, &oob, head);
		rfs_head_seal(head, le64_to_cpu(oob.stamp));
		ret = rfs_io_submit(fs, RFS_S_LOG, head, &oob, &log_ops, NULL,
				    NULL);
	}
	error = rfs_io_wait_sums(fs);
	if (ret || error)
		return ret ? ret : error;
	fs->lsn += fs->log_full;
	rfs_log_block_empty(fs);
	return 0;
}

static int rfs_log_put(struct rfs_fs *fs, const void *from, u32 bytes)
{
	int ret;

	while (bytes) {
		u32 n = min(bytes, (u32)RFS_BODY_BYTES - fs->log_used);

		ret = fs->log_full == fs->log_most ? rfs_log_send(fs) : 0;
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

/* Where an inode is in the table, or would be; one place at least is empty. */
static struct rfs_pending *rfs_pending_at(const struct rfs_fs *fs, u32 ino)
{
	u32 at = ino * 0x9e3779b1U;

	at ^= at >> 16;
	for (;; at++) {
		struct rfs_pending *place =
			&fs->pending[at & (fs->pending_room - 1)];

		if (!place->ino || place->ino == ino)
			return place;
	}
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

/* The blocks that a record may reach into: those at the end, or the first ones */
static int rfs_log_more_blocks(struct rfs_fs *fs)
{
	u32 i;

	for (i = 0; i < RFS_LOG_KEPT; i++) {
		struct rfs_head **block =
			&fs->log[(fs->log_full + i) % fs->log_most];

		if (!*block)
			*block = rfs_alloc_nofail(RFS_BLOCK_BYTES);
		if (!*block)
			return -ENOMEM;
	}
	return 0;
}

int rfs_log_room(struct rfs_fs *fs)
{
	u32 most = fs->pendings + RECORD_INODES;
	int ret = rfs_log_more_blocks(fs);

	if (ret)
		return ret;
	return 2 * most > fs->pending_room ? rfs_log_more_pending(fs) : 0;
}

static void rfs_note_pending(struct rfs_fs *fs, u32 ino, bool before_data)
{
	struct rfs_pending *place = rfs_pending_at(fs, ino);

	fs->pendings += !place->ino;
	place->ino = ino;
	place->before_data |= before_data;
}

/* Who had its number before is told apart by the generation: no page waits. */
static void rfs_log_note_new(struct rfs_fs *fs, u32 ino)
{
	rfs_note_pending(fs, ino, false);
	rfs_pending_at(fs, ino)->before_data = false;
}

void rfs_log_durable(struct rfs_fs *fs)
{
	u32 i;

	for (i = RFS_LOG_KEPT; i < RFS_LOG_BLOCKS; i++) {
		rfs_free(fs->log[i]);
		fs->log[i] = NULL;
	}
	rfs_log_block_empty(fs);
	if (fs->pending_room > PENDING_ROOM) {
		rfs_free(fs->pending);
		fs->pending = NULL;
		fs->pending_room = 0;
	} else if (fs->pendings) {
		memset(fs->pending, 0, fs->pending_room * sizeof(*fs->pending));
	}
	fs->pendings = 0;
}

/* A record that was applied. rec->bytes, len1 and len2 are set. */
int rfs_log_add(struct rfs_fs *fs, const struct rfs_rec *rec, const void *name1,
		const void *name2)
{
	u32 len1 = le16_to_cpu(rec->len1), len2 = le16_to_cpu(rec->len2);
	bool removes = rec->op == RFS_OP_SIZE || rec->op == RFS_OP_PUNCH ||
		       rec->op == RFS_OP_UNLINK;
	int ret = rfs_log_room(fs);	/* a check-point may have come between */

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
	return !fs->log_full && !fs->log_used;
}

int rfs_log_sync(struct rfs_fs *fs)
{
	int ret;

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

/* Has the inode a record that is not durable? Of those data waits for? */
bool rfs_log_pending(struct rfs_fs *fs, u32 ino, bool before_data)
{
	const struct rfs_pending *place;

	if (!fs->pendings)
		return false;
	place = rfs_pending_at(fs, ino);
	return place->ino && (place->before_data || !before_data);
}
