// SPDX-License-Identifier: GPL-2.0-or-later
/* Cleaning: greedy. The check-point after it makes the victim free. */
#include "rfs.h"

static u32 victim(const struct rfs_fs *fs)
{
	u32 nr, best = 0;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		const struct rfs_zone_info *z = &fs->zone[nr];

		if (z->state != RFS_Z_USED || z->window ||
		    z->cond != RFS_DEV_OK || z->cleaned || !z->live)
			continue;	/* or it waits for the check-point */
		if (!best || z->live < fs->zone[best].live)
			best = nr;
	}
	return best;
}

/* Live data blocks of the victim on their way to another zone */
struct batch {
	u32 n;
	bool bad;		/* a block could not be read */
	struct rfs_oob oob[RFS_SUM_ENTRIES];
	u64 from[RFS_SUM_ENTRIES];
	u64 to[RFS_SUM_ENTRIES];
	bool there[RFS_SUM_ENTRIES];
	void *room[RFS_SUM_ENTRIES];
	const void *data[RFS_SUM_ENTRIES];
	u8 block[RFS_SUM_ENTRIES][RFS_BLOCK_BYTES];
};

/* Read all of the batch; those that are not what they were stay behind. */
static int batch_read(struct rfs_fs *fs, struct batch *b)
{
	u32 i, n = b->n;
	int ret = 0;

	for (i = 0; i < n; i++)
		b->room[i] = b->block[i];
	fs->stats.clean_reads += n;
	if (fs->ops->read_many)
		ret = fs->ops->read_many(fs->dev, n, b->from, b->room,
					 b->there);
	else
		for (i = 0; i < n; i++)
			b->there[i] = !fs->ops->read(fs->dev, b->from[i],
						     b->room[i], NULL);
	for (i = 0, b->n = 0; !ret && i < n; i++) {
		if (!b->there[i] || le32_to_cpu(b->oob[i].data_crc) !=
		    ~rfs_crc(~0U, b->room[i], RFS_BLOCK_BYTES)) {
			b->bad = true;
			continue;
		}
		b->oob[b->n] = b->oob[i];
		b->from[b->n] = b->from[i];
		b->data[b->n++] = b->room[i];
	}
	return ret;
}

/* Append them, and enter each in the index if it is still what it was. */
static int batch_flush(struct rfs_fs *fs, struct batch *b)
{
	struct rfs_ptr ptr;
	u32 i, n;
	int ret = batch_read(fs, b);

	n = b->n;
	b->n = 0;
	if (!ret && n)
		ret = rfs_append(fs, RFS_S_DATA, n, b->data, b->oob, b->to);
	for (i = 0; !ret && i < n; i++) {
		u32 ino = le32_to_cpu(b->oob[i].ino);
		u64 off = le64_to_cpu(b->oob[i].off);

		ret = rfs_map_get(fs, ino, off, &ptr);
		if (ret || rfs_addr(ptr.addr) != b->from[i])
			continue;
		ptr.addr = rfs_word(b->to[i], rfs_high(ptr.addr));
		ret = rfs_map_set(fs, ino, off, &ptr);
		fs->stats.copied++;
	}
	if (!ret && fs->ops->pause)
		fs->ops->pause(fs->dev);
	return ret || !fs->read_only ? ret : -EROFS;
}

/* A data block goes elsewhere if it is what the index says. */
static int move_data(struct rfs_fs *fs, struct batch *b,
		     const struct rfs_oob *from, u64 addr)
{
	u32 ino = le32_to_cpu(from->ino);
	struct rfs_oob *oob = &b->oob[b->n];
	struct rfs_dinode *di;
	struct rfs_ptr ptr;
	struct rfs_buf *buf;
	int ret;

	ret = rfs_iget(fs, ino, &di, &buf);
	if (ret == -ENOENT || (!ret && di->gen != from->gen))
		return 0;
	if (!ret)
		ret = rfs_map_get(fs, ino, le64_to_cpu(from->off), &ptr);
	if (ret || rfs_addr(ptr.addr) != addr)
		return ret;
	*oob = *from;
	oob->flags = RFS_OOB_COPY;
	oob->stamp = cpu_to_le64(rfs_next_version(fs, 1));
	oob->len = cpu_to_le16(rfs_high(ptr.addr));
	oob->txn_idx = 0;
	oob->txn_cnt = 0;
	b->from[b->n++] = addr;
	return b->n == RFS_SUM_ENTRIES ? batch_flush(fs, b) : 0;
}

static int redirty(struct rfs_fs *fs, u8 type, u32 ino, u64 off, u64 addr)
{
	struct rfs_buf *buf;
	int ret = rfs_buf_read(fs, type, ino, off, addr, &buf);

	if (!ret && buf->addr == addr)
		rfs_buf_dirty(fs, buf);
	return ret;
}

/* A metadata block is written anew by the check-point. */
static int move_meta(struct rfs_fs *fs, const struct rfs_oob *from, u64 addr)
{
	u32 ino = le32_to_cpu(from->ino), level;
	u64 off = le64_to_cpu(from->off);
	struct rfs_buf *buf;
	struct rfs_ptr *slot;
	struct rfs_dinode *di;
	int ret;

	switch (from->type) {
	case RFS_DIR:
	case RFS_INDEX:
		level = from->type == RFS_DIR ? 0 : off >> 56;
		ret = rfs_iget(fs, ino, &di, &buf);
		if (ret == -ENOENT || (!ret && di->gen != from->gen))
			return 0;
		if (!ret)
			ret = rfs_map_slot(fs, ino, level,
					   off & ((1ULL << 56) - 1), false,
					   &slot, &buf);
		if (ret || !slot || rfs_addr(slot->addr) != addr)
			return ret;
		return redirty(fs, from->type, ino, off, addr);
	case RFS_XATTR:
		ret = rfs_iget(fs, ino, &di, &buf);
		if (ret == -ENOENT || (!ret && (di->gen != from->gen ||
				       le64_to_cpu(di->xattr) != addr)))
			return 0;
		return ret ? ret : redirty(fs, RFS_XATTR, ino, 0, addr);
	case RFS_INODES:
		ret = rfs_imap_get(fs, off / RFS_MAP_ENTRIES, false, &buf);
		if (ret || !buf ||
		    rfs_addr(buf->table.word[off % RFS_MAP_ENTRIES]) != addr)
			return ret;
		return redirty(fs, RFS_INODES, 0, off, addr);
	case RFS_IMAP:
		if (off >= fs->imap_blocks ||
		    (fs->timb[off] & RFS_ADDR_MASK) != addr)
			return 0;
		return redirty(fs, RFS_IMAP, 0, off, addr);
	case RFS_TIMB:
		if (off < fs->timb_blocks && fs->timb_addr[off] == addr)
			fs->timb_dirty[off] = true;
		return 0;
	case RFS_ZTAB:
		if (off < fs->ztab_blocks && fs->ztab_addr[off] == addr)
			memset(&fs->ztab[off * RFS_ZTAB_ENTRIES], 0xff,
			       RFS_ZTAB_ENTRIES * sizeof(*fs->ztab));
		return 0;
	}
	return 0;
}

static int move(struct rfs_fs *fs, struct batch *b, const struct rfs_oob *from,
		u64 addr)
{
	if (from->type == RFS_DATA)
		return move_data(fs, b, from, addr);
	return move_meta(fs, from, addr);
}

/* Blocks that a summary lists; marks them in seen. */
static int move_listed(struct rfs_fs *fs, struct batch *b, u32 nr, u8 *seen,
		       const struct rfs_summary *sum)
{
	u64 start = (u64)nr * fs->geo.zone_blocks;
	u32 n = min_t(u32, le16_to_cpu(sum->head.count), RFS_SUM_ENTRIES), i;
	int ret;

	for (i = 0; i < n; i++) {
		u32 off = le32_to_cpu(sum->entry[i].crc);

		if (!sum->entry[i].type)
			continue;	/* was never written */
		if (off >= fs->zone[nr].wp)
			return -EUCLEAN;
		if (seen[off])
			continue;
		seen[off] = true;
		ret = move(fs, b, &sum->entry[i], start + off);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * The zone backwards, so that a summary comes before the blocks it lists: what
 * is read is summaries, and blocks that no summary lists.
 */
static int move_zone(struct rfs_fs *fs, struct batch *b, u32 nr, u8 *seen,
		     u8 *block)
{
	u64 start = (u64)nr * fs->geo.zone_blocks;
	struct rfs_summary *sum = (struct rfs_summary *)block;
	struct rfs_oob oob;
	u32 at;
	int ret;

	for (at = fs->zone[nr].wp; at-- > 0 && fs->zone[nr].live;) {
		if (seen[at])
			continue;
		fs->stats.clean_reads++;
		ret = fs->ops->read(fs->dev, start + at, block, &oob);
		if (ret || !rfs_oob_ok(&oob, fs->volume))
			continue;
		if (oob.type != RFS_SUMMARY)
			ret = move(fs, b, &oob, start + at);
		else if (rfs_head_ok(&sum->head, fs->volume, RFS_SUMMARY))
			ret = move_listed(fs, b, nr, seen, sum);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Without page metadata: every block that is a summary of its own address. No
 * summary is trusted to say where the next one is: a power cut may have left
 * one whose blocks are not there, and others in their place.
 */
static int move_summaries(struct rfs_fs *fs, struct batch *b, u32 nr, u8 *block)
{
	u64 start = (u64)nr * fs->geo.zone_blocks;
	struct rfs_summary *sum = (struct rfs_summary *)block;
	u32 at, i, n;
	int ret;

	for (at = 0; at < fs->zone[nr].wp; at++) {
		fs->stats.clean_reads++;
		ret = fs->ops->read(fs->dev, start + at, sum, NULL);
		if (ret || !rfs_head_ok(&sum->head, fs->volume, RFS_SUMMARY) ||
		    le64_to_cpu(sum->head.addr) != start + at)
			continue;
		n = min_t(u32, le16_to_cpu(sum->head.count), RFS_SUM_ENTRIES);
		n = min(n, fs->zone[nr].wp - at - 1);
		for (i = 0; i < n; i++) {
			ret = move(fs, b, &sum->entry[i], start + at + 1 + i);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int move_all(struct rfs_fs *fs, struct batch *b, u32 nr, u8 *seen,
		    u8 *block)
{
	int ret;

	if (!fs->geo.oob_bytes)
		ret = move_summaries(fs, b, nr, block);
	else
		ret = move_zone(fs, b, nr, seen, block);
	if (!ret)
		ret = batch_flush(fs, b);
	/* a block that cannot be read: it stays where it is */
	if (b->bad)
		fs->zone[nr].cond = RFS_DEV_READ_ONLY;
	return ret;
}

bool rfs_clean_due(const struct rfs_fs *fs)
{
	u32 nr;

	if (fs->read_only ||
	    fs->free_zones >= fs->low_zones + fs->geo.zones / 16)
		return false;
	nr = victim(fs);
	return nr && fs->zone[nr].live < fs->zone[nr].cap / 4 * 3;
}

/* -ENOENT: no victim, but a check-point may free zones. */
int rfs_clean(struct rfs_fs *fs)
{
	u32 nr = victim(fs);
	u8 *seen, *block;
	struct batch *b;
	int ret = -ENOMEM;

	if (!nr)
		return -ENOENT;
	seen = rfs_alloc(fs->zone[nr].cap);
	block = rfs_alloc(RFS_BLOCK_BYTES);
	b = rfs_alloc(sizeof(*b));
	if (seen && block && b) {
		fs->stats.victims++;
		fs->cleaning = nr;
		ret = move_all(fs, b, nr, seen, block);
		fs->cleaning = 0;
		fs->zone[nr].cleaned = true;
		if (fs->teeth & RFS_TEETH_RESET)
			rfs_free_zones(fs);
	}
	rfs_free(seen);
	rfs_free(block);
	rfs_free(b);
	return ret;
}
