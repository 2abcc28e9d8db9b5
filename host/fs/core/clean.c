// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cleaning: data of victims is appended to its groups, metadata is written anew
 * by the check-point. The check-point after it makes the victims free.
 */
#include "rfs.h"

/* A victim's live blocks, at most, of so many of its blocks */
static u32 most_live(enum rfs_clean how, u32 cap)
{
	switch (how) {
	case RFS_CLEAN_EARLY:
		return cap / 4 * 3;
	case RFS_CLEAN_NOW:
		return cap - cap / 16 - 1;	/* more is little gained */
	default:
		return cap;
	}
}

/* The best zone to clean that is not yet chosen; 0: there is none. */
static u32 victim(const struct rfs_fs *fs, enum rfs_clean how, u64 now)
{
	enum rfs_gc gc = how == RFS_CLEAN_HARD ? RFS_GC_GREEDY : fs->policy.gc;
	struct rfs_segment seg, best_seg = { 0 };
	u32 nr, best = 0;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		const struct rfs_zone_info *z = &fs->zone[nr];

		if (z->state != RFS_Z_USED || z->window || z->cleaning ||
		    z->cond != RFS_DEV_OK || z->cleaned || !z->live)
			continue;	/* or it waits for the check-point */
		if (z->live > most_live(how, z->cap))
			continue;
		rfs_segment(fs, nr, now, &seg);
		if (best && !rfs_better_victim(gc, &seg, &best_seg))
			continue;
		best = nr;
		best_seg = seg;
	}
	return best;
}

/*
 * Several at once, so that what is alike in them goes together; what is live of
 * them takes no more room than a zone.
 */
static u32 victims(struct rfs_fs *fs, enum rfs_clean how, u32 *nr)
{
	u64 now = rfs_now(fs);
	u32 n, live = 0;

	for (n = 0; n < RFS_VICTIMS; n++) {
		nr[n] = victim(fs, how, now);
		if (!nr[n])
			break;
		live += fs->zone[nr[n]].live;
		if (n && live > fs->zone[nr[n]].cap)
			break;
		fs->zone[nr[n]].cleaning = true;
	}
	return n;
}

/* Live data blocks of one group on their way to another zone */
struct batch {
	u32 stream;
	u32 n;
	struct rfs_oob oob[RFS_SUM_ENTRIES];
	u64 from[RFS_SUM_ENTRIES];
	u64 to[RFS_SUM_ENTRIES];
	bool there[RFS_SUM_ENTRIES];
	void *room[RFS_SUM_ENTRIES];
	const void *data[RFS_SUM_ENTRIES];
	u8 block[RFS_SUM_ENTRIES][RFS_BLOCK_BYTES];
};

/* What cleans: groups share batches if there is no memory for more. */
struct cleaner {
	struct batch *batch[RFS_GROUPS_MAX];
	u32 batches;
	u64 now;
	u8 *seen;		/* blocks of the victim */
	u8 *block;
};

static bool data_ok(const struct batch *b, u32 i, const void *data)
{
	return le32_to_cpu(b->oob[i].data_crc) ==
	       ~rfs_crc(~0U, data, RFS_BLOCK_BYTES);
}

/* What the page cache has need not be read (RISA 4.3.1). */
static bool cached(struct rfs_fs *fs, struct batch *b, u32 i)
{
	return fs->ops->cached &&
	       fs->ops->cached(fs->dev, le32_to_cpu(b->oob[i].ino),
			       le64_to_cpu(b->oob[i].off), b->block[i]) &&
	       data_ok(b, i, b->block[i]);
}

/* Take entry i as entry n, from now on. */
static void keep(struct batch *b, u32 n, u32 i)
{
	b->oob[n] = b->oob[i];
	b->from[n] = b->from[i];
	b->data[n] = b->data[i];
}

/*
 * The content of all of the batch. Those that are not what they were stay where
 * they are, and so does their zone.
 */
static int batch_read(struct rfs_fs *fs, struct batch *b)
{
	u64 addr[RFS_SUM_ENTRIES];
	u32 i, k, n = 0, all = b->n;
	int ret = 0;

	for (i = 0; i < all; i++) {
		b->data[i] = b->block[i];
		if (cached(fs, b, i)) {
			fs->stats.clean_cached++;
			continue;
		}
		addr[n] = b->from[i];
		b->room[n++] = b->block[i];
	}
	fs->stats.clean_reads += n;
	if (n && fs->ops->read_many)
		ret = fs->ops->read_many(fs->dev, n, addr, b->room, b->there);
	else
		for (k = 0; k < n; k++)
			b->there[k] = !fs->ops->read(fs->dev, addr[k],
						     b->room[k], NULL);
	if (ret)
		return ret;
	for (i = 0, k = 0, b->n = 0; i < all; i++) {
		bool read = k < n && b->room[k] == b->block[i];

		if (read && (!b->there[k] || !data_ok(b, i, b->block[i])))
			fs->zone[b->from[i] / fs->geo.zone_blocks].cond =
				RFS_DEV_READ_ONLY;
		else
			keep(b, b->n++, i);
		k += read;
	}
	return 0;
}

/*
 * What is not what the index says any more is not copied: if a check-point was
 * written since it was collected (ops->pause), recovery would take the copy for
 * newer than what the check-point has.
 */
static int drop_changed(struct rfs_fs *fs, struct batch *b)
{
	u32 i, all = b->n;
	struct rfs_ptr ptr;
	int ret;

	for (i = 0, b->n = 0; i < all; i++) {
		ret = rfs_map_get(fs, le32_to_cpu(b->oob[i].ino),
				  le64_to_cpu(b->oob[i].off), &ptr);
		if (ret && ret != -ENOENT)	/* that is: deleted */
			return ret;
		if (ret || rfs_addr(ptr.addr) != b->from[i])
			continue;
		keep(b, b->n, i);
		b->oob[b->n++].len = cpu_to_le16(rfs_high(ptr.addr));
	}
	return 0;
}

/*
 * A copy of a block that a truncate has cut is as long as the truncate left it,
 * so that record comes first (C.3, rule 1), as before any other page of the file.
 */
static int cuts_durable(struct rfs_fs *fs, const struct batch *b)
{
	u32 i;

	for (i = 0; i < b->n; i++)
		if (rfs_log_pending(fs, le32_to_cpu(b->oob[i].ino), true))
			return rfs_log_sync(fs);
	return 0;
}

/*
 * The stamps are those of the append: a check-point that came while the batch
 * was filled (ops->pause) must not take the copies for older than itself.
 */
static int batch_append(struct rfs_fs *fs, struct batch *b)
{
	u32 i;
	int ret;

	do {
		ret = drop_changed(fs, b);
		if (!ret)
			ret = cuts_durable(fs, b);
		if (ret || !b->n)
			break;
		for (i = 0; i < b->n; i++)
			b->oob[i].stamp = cpu_to_le64(rfs_next_version(fs, 1));
		ret = rfs_append(fs, b->stream, b->n, b->data, b->oob, b->to);
		if (ret != -EBUSY || !fs->ops->pause)
			break;
		/* a zone waits for what is on its way to it */
		fs->ops->pause(fs->dev);
	} while (!fs->read_only);
	return ret;
}

/* Append those that are what they were, and enter each in the index. */
static int batch_flush(struct rfs_fs *fs, struct batch *b)
{
	struct rfs_ptr ptr;
	u32 i;
	int ret = batch_read(fs, b);

	if (!ret)
		ret = batch_append(fs, b);
	for (i = 0; !ret && i < b->n; i++) {
		u32 ino = le32_to_cpu(b->oob[i].ino);
		u64 off = le64_to_cpu(b->oob[i].off);

		ret = rfs_map_get(fs, ino, off, &ptr);
		if (ret)
			break;
		ptr.addr = rfs_word(b->to[i], rfs_high(ptr.addr));
		ret = rfs_map_set(fs, ino, off, &ptr);
		fs->stats.copied++;
	}
	b->n = 0;
	if (!ret && fs->ops->pause)
		fs->ops->pause(fs->dev);
	return ret || !fs->read_only ? ret : -EROFS;
}

/* A data block goes to its group if it is what the index says. */
static int move_data(struct rfs_fs *fs, struct cleaner *c,
		     const struct rfs_oob *from, u64 addr)
{
	u32 ino = le32_to_cpu(from->ino), stream;
	struct rfs_dinode *di;
	struct rfs_oob *oob;
	struct rfs_ptr ptr;
	struct rfs_buf *buf;
	struct batch *b;
	int ret;

	ret = rfs_iget(fs, ino, &di, &buf);
	if (ret == -ENOENT || (!ret && di->gen != from->gen))
		return 0;
	if (!ret)
		ret = rfs_map_get(fs, ino, le64_to_cpu(from->off), &ptr);
	if (ret || rfs_addr(ptr.addr) != addr)
		return ret;
	stream = rfs_data_stream(fs, di, &ptr, c->now);
	b = c->batch[min(stream - RFS_S_DATA, c->batches - 1)];
	b->stream = stream;
	oob = &b->oob[b->n];
	*oob = *from;
	oob->flags = RFS_OOB_COPY;
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
	case RFS_QUOTA:
	case RFS_INDEX:
		level = from->type == RFS_INDEX ? off >> 56 : 0;
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

static int move(struct rfs_fs *fs, struct cleaner *c, const struct rfs_oob *from,
		u64 addr)
{
	if (from->type == RFS_DATA)
		return move_data(fs, c, from, addr);
	return move_meta(fs, from, addr);
}

/* Blocks that a summary lists; marks them in seen. */
static int move_listed(struct rfs_fs *fs, struct cleaner *c, u32 nr,
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
		if (c->seen[off])
			continue;
		c->seen[off] = true;
		ret = move(fs, c, &sum->entry[i], start + off);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * The zone backwards, so that a summary comes before the blocks it lists: what
 * is read is summaries, and blocks that no summary lists.
 */
static int move_zone(struct rfs_fs *fs, struct cleaner *c, u32 nr)
{
	u64 start = (u64)nr * fs->geo.zone_blocks;
	struct rfs_summary *sum = (struct rfs_summary *)c->block;
	struct rfs_oob oob;
	u32 at;
	int ret;

	for (at = fs->zone[nr].wp; at-- > 0 && fs->zone[nr].live;) {
		if (c->seen[at])
			continue;
		fs->stats.clean_reads++;
		ret = fs->ops->read(fs->dev, start + at, c->block, &oob);
		if (ret || !rfs_oob_ok(&oob, fs->volume))
			continue;
		if (oob.type != RFS_SUMMARY)
			ret = move(fs, c, &oob, start + at);
		else if (rfs_head_ok(&sum->head, fs->volume, RFS_SUMMARY))
			ret = move_listed(fs, c, nr, sum);
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
static int move_summaries(struct rfs_fs *fs, struct cleaner *c, u32 nr)
{
	u64 start = (u64)nr * fs->geo.zone_blocks;
	struct rfs_summary *sum = (struct rfs_summary *)c->block;
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
			ret = move(fs, c, &sum->entry[i], start + at + 1 + i);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int move_all(struct rfs_fs *fs, struct cleaner *c, const u32 *nr, u32 n)
{
	u32 i;
	int ret = 0;

	for (i = 0; !ret && i < n; i++) {
		memset(c->seen, 0, fs->geo.zone_blocks);
		ret = fs->geo.oob_bytes ? move_zone(fs, c, nr[i]) :
		      move_summaries(fs, c, nr[i]);
	}
	for (i = 0; !ret && i < c->batches; i++)
		ret = batch_flush(fs, c->batch[i]);
	return ret;
}

static struct cleaner *cleaner_new(const struct rfs_fs *fs)
{
	struct cleaner *c = rfs_alloc(sizeof(*c));

	if (!c)
		return NULL;
	c->now = rfs_now(fs);
	c->seen = rfs_alloc(fs->geo.zone_blocks);
	c->block = rfs_alloc(RFS_BLOCK_BYTES);
	while (c->batches < fs->policy.groups) {
		struct batch *b = rfs_alloc(sizeof(*b));

		if (!b)
			break;
		b->stream = RFS_S_DATA;
		c->batch[c->batches++] = b;
	}
	return c;
}

static void cleaner_free(struct cleaner *c)
{
	if (!c)
		return;
	while (c->batches--)
		rfs_free(c->batch[c->batches]);
	rfs_free(c->seen);
	rfs_free(c->block);
	rfs_free(c);
}

/* -ENOENT: no victim, but a check-point may free zones. */
int rfs_clean(struct rfs_fs *fs, enum rfs_clean how)
{
	struct cleaner *c = cleaner_new(fs);
	u32 nr[RFS_VICTIMS], n, i;
	int ret = -ENOMEM;

	if (c && c->seen && c->block && c->batches) {
		n = victims(fs, how, nr);
		for (i = 0; i < n; i++)
			rfs_saw_victim(fs, nr[i]);
		ret = n ? move_all(fs, c, nr, n) : -ENOENT;
		fs->stats.victims += n;
		for (i = 0; i < n; i++) {
			fs->zone[nr[i]].cleaning = false;
			/* else it may be cleaned another time */
			fs->zone[nr[i]].cleaned = !ret;
		}
		if (n && fs->teeth & RFS_TEETH_RESET)
			rfs_free_zones(fs);
	}
	cleaner_free(c);
	return ret;
}

/* Those who write wait below this */
static u32 zones_owed(const struct rfs_fs *fs)
{
	return fs->low_zones + 1 +
	       fs->owed / le32_to_cpu(fs->super.zone_cap);
}

/* Free zones below which cleaning begins, and up to which it goes */
static u32 clean_below(const struct rfs_fs *fs)
{
	return zones_owed(fs) + fs->geo.zones / 64;
}

static u32 clean_up_to(const struct rfs_fs *fs)
{
	return zones_owed(fs) + fs->geo.zones / 16;
}

bool rfs_clean_due(const struct rfs_fs *fs, u32 *seen)
{
	u32 before = *seen;

	*seen = fs->free_zones < clean_below(fs) ? fs->free_zones : ~0U;
	return !fs->read_only && *seen < before;
}

/* Zones that the next check-point makes free */
static u32 to_be_free(const struct rfs_fs *fs)
{
	u32 nr, n = 0;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		const struct rfs_zone_info *z = &fs->zone[nr];

		n += z->state == RFS_Z_USED && z->cond == RFS_DEV_OK &&
		     (!z->live || z->cleaned);
	}
	return n;
}

/* What copies may take: not what is owed, nor what a check-point may need */
static u64 room_for_copies(const struct rfs_fs *fs)
{
	u64 room = (u64)fs->free_zones * le32_to_cpu(fs->super.zone_cap);
	u64 taken = fs->owed + fs->imap_blocks +
		    2ULL * (fs->dirty.count + fs->timb_blocks +
			    fs->ztab_blocks);

	return room > taken ? room - taken : 0;
}

#define PAYS	4	/* early: times what a check-point writes */

int rfs_clean_some(struct rfs_fs *fs, enum rfs_clean how)
{
	u32 cap = le32_to_cpu(fs->super.zone_cap);
	u64 least = max_t(u64, room_for_copies(fs) / 2, 3 * cap), gain;
	int ret = fs->read_only ? -EROFS : 0;

	while (!ret && fs->free_zones + to_be_free(fs) < clean_up_to(fs)) {
		ret = rfs_clean(fs, how);
		if (room_for_copies(fs) < least ||
		    fs->dirty.count >= fs->dirty_max / 2)
			break;
	}
	if (ret && ret != -ENOENT)
		return ret;
	gain = (u64)to_be_free(fs) * cap;
	return how == RFS_CLEAN_EARLY && gain < PAYS * (u64)fs->dirty.count ?
	       -ENOENT : 0;
}
