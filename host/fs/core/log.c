// SPDX-License-Identifier: GPL-2.0-or-later
/* The log of changes: records into blocks. */
#include "rfs.h"

static int send_block(struct rfs_fs *fs)
{
	const void *data = fs->log->bytes;
	struct rfs_head *head = &fs->log->head;
	struct rfs_oob oob;
	u64 addr;
	int ret;

	rfs_head_init(fs, head, RFS_LOG, 0, 0, fs->lsn);
	head->count = cpu_to_le16(fs->log_used);
	rfs_oob_meta(fs, &oob, head);
	rfs_head_seal(head, le64_to_cpu(oob.stamp));
	ret = rfs_append(fs, RFS_S_LOG, 1, &data, &oob, &addr);
	if (ret)
		return ret;
	fs->lsn++;
	fs->log_used = 0;
	memset(fs->log->bytes, 0, RFS_BLOCK_BYTES);
	return 0;
}

static int put(struct rfs_fs *fs, const void *from, u32 bytes)
{
	while (bytes) {
		u32 n = min(bytes, (u32)RFS_BODY_BYTES - fs->log_used);

		if (from) {
			memcpy(fs->log->bytes + sizeof(struct rfs_head) +
			       fs->log_used, from, n);
			from = (const u8 *)from + n;
		}
		fs->log_used += n;
		bytes -= n;
		if (fs->log_used == RFS_BODY_BYTES) {
			int ret = send_block(fs);

			if (ret)
				return ret;
		}
	}
	return 0;
}

#define PENDING_ROOM	256	/* places, at first */

/* Where an inode is in the table, or would be; one place at least is empty. */
static struct rfs_pending *pending_at(const struct rfs_fs *fs, u32 ino)
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

static int more_pending(struct rfs_fs *fs)
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
			*pending_at(fs, old[i].ino) = old[i];
	rfs_free(old);
	return 0;
}

#define RECORD_INODES	3	/* that a record is about, at most */

int rfs_log_room(struct rfs_fs *fs)
{
	u32 most = fs->pendings + RECORD_INODES;

	return 2 * most > fs->pending_room ? more_pending(fs) : 0;
}

static void note_pending(struct rfs_fs *fs, u32 ino, bool before_data)
{
	struct rfs_pending *place = pending_at(fs, ino);

	fs->pendings += !place->ino;
	place->ino = ino;
	place->before_data |= before_data;
}

/* Who had its number before is told apart by the generation: no page waits. */
static void note_new(struct rfs_fs *fs, u32 ino)
{
	note_pending(fs, ino, false);
	pending_at(fs, ino)->before_data = false;
}

void rfs_log_durable(struct rfs_fs *fs)
{
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
		note_new(fs, le32_to_cpu(rec->ino));
	else
		note_pending(fs, le32_to_cpu(rec->ino), removes);
	if (rec->victim)
		note_pending(fs, le32_to_cpu(rec->victim), true);
	if (rec->op == RFS_OP_RENAME && rec->arg1)
		note_new(fs, le64_to_cpu(rec->arg1));
	ret = put(fs, rec, sizeof(*rec));
	if (!ret)
		ret = put(fs, name1, len1);
	if (!ret)
		ret = put(fs, name2, len2);
	if (!ret)
		ret = put(fs, NULL, le32_to_cpu(rec->bytes) - sizeof(*rec) -
			  len1 - len2);
	return ret;
}

int rfs_log_write(struct rfs_fs *fs)
{
	return fs->log_used ? send_block(fs) : 0;
}

int rfs_log_sync(struct rfs_fs *fs)
{
	int ret = rfs_log_write(fs);

	/* the medium may hold it: it must not be sent again with more in it */
	if (ret == -EIO)
		fs->read_only = true;
	if (!ret)
		ret = fs->ops->wait(fs->dev);
	if (!ret && fs->geo.volatile_cache)
		ret = fs->ops->flush(fs->dev);
	if (!ret)
		rfs_log_durable(fs);
	return ret;
}

/* Has the inode a record that is not durable? Of those data waits for? */
bool rfs_log_pending(struct rfs_fs *fs, u32 ino, bool before_data)
{
	const struct rfs_pending *place;

	if (!fs->pendings)
		return false;
	place = pending_at(fs, ino);
	return place->ino && (place->before_data || !before_data);
}
