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

static int note_pending(struct rfs_fs *fs, u32 ino, bool before_data)
{
	struct rfs_pending *more;
	u32 i;

	for (i = 0; i < fs->pendings; i++) {
		if (fs->pending[i].ino == ino) {
			fs->pending[i].before_data |= before_data;
			return 0;
		}
	}
	if (fs->pendings == fs->pending_room) {
		u32 room = fs->pending_room ? 2 * fs->pending_room : 64;

		more = rfs_alloc(room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		if (fs->pendings)
			memcpy(more, fs->pending,
			       fs->pendings * sizeof(*more));
		rfs_free(fs->pending);
		fs->pending = more;
		fs->pending_room = room;
	}
	fs->pending[fs->pendings].ino = ino;
	fs->pending[fs->pendings++].before_data = before_data;
	return 0;
}

/* A record that was applied. rec->bytes, len1 and len2 are set. */
int rfs_log_add(struct rfs_fs *fs, const struct rfs_rec *rec, const void *name1,
		const void *name2)
{
	u32 len1 = le16_to_cpu(rec->len1), len2 = le16_to_cpu(rec->len2);
	bool removes = rec->op == RFS_OP_SIZE || rec->op == RFS_OP_PUNCH ||
		       rec->op == RFS_OP_UNLINK;
	int ret;

	ret = note_pending(fs, le32_to_cpu(rec->ino), removes);
	if (!ret && rec->victim)
		ret = note_pending(fs, le32_to_cpu(rec->victim), true);
	if (!ret)
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

	if (!ret)
		ret = fs->ops->wait(fs->dev);
	if (!ret && fs->geo.volatile_cache)
		ret = fs->ops->flush(fs->dev);
	if (!ret)
		fs->pendings = 0;
	return ret;
}

/* Has the inode a record that is not durable? Of those data waits for? */
bool rfs_log_pending(struct rfs_fs *fs, u32 ino, bool before_data)
{
	u32 i;

	for (i = 0; i < fs->pendings; i++) {
		if (fs->pending[i].ino == ino)
			return fs->pending[i].before_data || !before_data;
	}
	return false;
}
