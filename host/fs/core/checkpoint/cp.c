// SPDX-License-Identifier: GPL-2.0-or-later
/* Check-points are written here, and the newest is found. */
#include "space/space.h"
#include "home/home.h"
#include "tree/tree.h"
#include "log/log.h"
#include "checkpoint/checkpoint.h"

/* This is a pass over dirty blocks of some types, which it writes. */
struct pass {
	bool (*takes)(u8 type);
	u32 stream;
	/* Returns 1 if the block is to be written, and 0 if it does not exist any more. */
	int (*prepare)(struct rfs_fs *fs, struct rfs_buf *buf);
	/* The block was at old. The blocks that lead to it become dirty, for the next pass. */
	int (*moved)(struct rfs_fs *fs, struct rfs_buf *buf, u64 old);
};

/* This check-point is frozen, and not written. */
struct rfs_cp_image {
	struct rfs_cp *cp;
	struct rfs_oob *oob;
	u32 blocks;
	bool stays;	/* others go on from it, or the medium may have it */
};

static int rfs_map_word(struct rfs_fs *fs, const struct rfs_buf *buf,
			struct rfs_buf **map, __le64 **word)
{
	int ret = rfs_imap_get(fs, buf->off / RFS_MAP_ENTRIES, true, map);

	if (!ret)
		*word = &(*map)->table.word[buf->off % RFS_MAP_ENTRIES];
	return ret;
}

static int rfs_prepare_inodes(struct rfs_fs *fs, struct rfs_buf *buf)
{
	u64 old = buf->addr;
	struct rfs_buf *map;
	__le64 *word;
	int ret = rfs_map_word(fs, buf, &map, &word);

	if (ret)
		return ret;
	rfs_buf_dirty(fs, map);
	if (rfs_high(*word))
		return 1;
	*word = 0;	/* no inode in use */
	rfs_buf_drop(fs, buf);
	return old ? rfs_count_live(fs, old, -1, NULL) : 0;
}

/* Counts a block that was moved at its new address, and no longer at the old one. */
static int rfs_move_live(struct rfs_fs *fs, u64 from, u64 to)
{
	int ret = rfs_count_live(fs, to, 1, NULL);

	return ret || !from ? ret : rfs_count_live(fs, from, -1, NULL);
}

static int rfs_inodes_moved(struct rfs_fs *fs, struct rfs_buf *buf, u64 old)
{
	struct rfs_buf *map;
	__le64 *word;
	int ret = rfs_map_word(fs, buf, &map, &word);

	if (ret)
		return ret;
	*word = rfs_word(buf->addr, rfs_high(*word));
	rfs_buf_dirty(fs, map);
	return rfs_move_live(fs, old, buf->addr);
}

/* Says whether blocks of this type are nodes or inodes, to which only the maps lead. */
static bool rfs_is_mapped(u8 type)
{
	return rfs_is_node(type) || type == RFS_INODES;
}

static int rfs_prepare_mapped(struct rfs_fs *fs, struct rfs_buf *buf)
{
	struct rfs_buf *map;
	int ret;

	if (buf->head.type == RFS_INODES)
		return rfs_prepare_inodes(fs, buf);
	ret = rfs_node_map(fs, buf->off, &map);
	if (ret)
		return ret;
	rfs_buf_dirty(fs, map);
	ret = rfs_node_fold(fs, buf);
	return ret < 0 ? ret : !ret;
}

int rfs_block_moved(struct rfs_fs *fs, struct rfs_buf *buf, u64 old)
{
	return buf->head.type == RFS_INODES ? rfs_inodes_moved(fs, buf, old) :
	       rfs_node_moved(fs, buf->off, buf->addr);
}

static bool rfs_is_map(u8 type)
{
	return type == RFS_IMAP || type == RFS_NMAP;
}

static int rfs_prepare_map(struct rfs_fs *fs, struct rfs_buf *buf)
{
	(void)fs;
	(void)buf;
	return 1;
}

static int rfs_map_moved(struct rfs_fs *fs, struct rfs_buf *buf, u64 old)
{
	u32 at = buf->off + (buf->head.type == RFS_NMAP ? fs->imap_blocks : 0);

	rfs_count_live_map(fs, old, -1);
	rfs_count_live_map(fs, buf->addr, 1);
	rfs_timb_set(fs, at, buf->addr | (rfs_timb(fs, at) & ~RFS_ADDR_MASK));
	return 0;
}

/*
 * A block of a pass was sent. The blocks that lead to it need not wait until it has completed:
 * nobody else writes, so appends go where their zones' write pointers were.
 */
static int rfs_buf_expected(struct rfs_fs *fs, void *what, const void *how,
			    u64 addr)
{
	const struct pass *pass = how;
	struct rfs_buf *buf = what;
	u64 old = buf->addr;

	rfs_buf_placed(fs, buf, addr);
	return pass->moved(fs, buf, old);
}

/*
 * A block has completed. It may be elsewhere, for want of memory or because a zone has failed. The
 * block that leads to it may be in flight. So that one is dirty, and is written once more.
 */
static int rfs_buf_complete(struct rfs_fs *fs, void *what, const void *how,
			    u64 addr)
{
	const struct pass *pass = how;
	struct rfs_buf *buf = what;
	u64 expected = buf->addr;

	rfs_buf_written(fs, buf, addr);
	return addr == expected ? 0 : pass->moved(fs, buf, expected);
}

static const struct rfs_io_ops buf_ops = {
	.expected = rfs_buf_expected,
	.complete = rfs_buf_complete,
};

static int rfs_send_buf(struct rfs_fs *fs, struct rfs_buf *buf,
			const struct pass *pass)
{
	struct rfs_oob oob;

	fs->cp_begun = true;
	rfs_head_number(fs, &buf->head, false);
	rfs_oob_meta(fs, &oob, &buf->head);
	rfs_head_seal(&buf->head, le64_to_cpu(oob.stamp));
	buf->sent = true;
	return rfs_io_submit(fs, pass->stream, buf->bytes, &oob, &buf_ops, buf,
			     pass);
}

/* Returns, after a dirty block or the list's head, the next one that the pass takes. */
static struct list_head *rfs_pass_next(const struct rfs_fs *fs,
				       const struct pass *pass,
				       const struct list_head *at)
{
	const struct rfs_buf *buf;

	do {
		at = at->next;
		buf = list_entry(at, struct rfs_buf, list);
	} while (at != &fs->dirty.bufs && !pass->takes(buf->head.type));
	return (struct list_head *)at;
}

/*
 * Sends all blocks of a pass. With wait, it returns when all have completed. Without it, they are
 * in flight, and their places known.
 */
static int rfs_write_pass(struct rfs_fs *fs, const struct pass *pass, bool wait)
{
	struct list_head *at, *next;
	int ret = 0, error;

	for (at = rfs_pass_next(fs, pass, &fs->dirty.bufs);
	     ret >= 0 && at != &fs->dirty.bufs; at = next) {
		struct rfs_buf *buf = list_entry(at, struct rfs_buf, list);

		/* The next block is not of the pass before, whose blocks complete meanwhile. */
		next = rfs_pass_next(fs, pass, at);
		ret = pass->prepare(fs, buf);
		if (ret == 1)
			ret = rfs_send_buf(fs, buf, pass);
	}
	error = wait ? rfs_io_wait(fs) : rfs_io_send(fs);
	return ret < 0 ? ret : error;
}

static int rfs_write_passes(struct rfs_fs *fs, bool wait)
{
	static const struct pass mapped = {
		rfs_is_mapped, RFS_S_META, rfs_prepare_mapped, rfs_block_moved
	};
	static const struct pass maps = {
		rfs_is_map, RFS_S_IMAP, rfs_prepare_map, rfs_map_moved
	};
	int ret = rfs_write_pass(fs, &mapped, wait);

	return ret ? ret : rfs_write_pass(fs, &maps, wait);
}

/*
 * Returns how many blocks a check-point has at most: the first, and those that go on with its list.
 */
static u32 rfs_cp_blocks_of(const struct rfs_fs *fs)
{
	u32 entries = fs->timb_blocks + fs->ztab_blocks;

	if (entries <= RFS_CP_LIST_FIRST)
		return 1;
	return 1 + DIV_ROUND_UP(entries - RFS_CP_LIST_FIRST,
				(u32)RFS_CP_LIST_MORE);
}

static bool rfs_cp_has_gaps(const struct rfs_fs *fs)
{
	return le32_to_cpu(fs->super.incompat) & RFS_INCOMPAT_GAPS;
}

int rfs_cp_alloc(struct rfs_fs *fs)
{
	u32 blocks = rfs_cp_blocks_of(fs), i;
	int ret = rfs_bits_alloc(&fs->listed, blocks);

	/* These are the first block, and the last, with which a search for a check-point begins. */
	for (i = 0; !ret && i < blocks; i++)
		if (!i || i == blocks - 1 || !rfs_cp_has_gaps(fs))
			rfs_bits_put(&fs->listed, i, true);
	return ret;
}

/* Notes that an entry of the list is not 0 any more. */
static void rfs_cp_list(struct rfs_fs *fs, u32 entry)
{
	if (entry >= RFS_CP_LIST_FIRST)
		rfs_bits_put(&fs->listed, 1 + (entry - RFS_CP_LIST_FIRST) /
					      RFS_CP_LIST_MORE, true);
}

/* Returns the entry of the list for the address of a table's block. */
static u32 rfs_cp_entry_of(const struct rfs_fs *fs, const u64 *at)
{
	if (at >= fs->ztab_addr && at < fs->ztab_addr + fs->ztab_blocks)
		return fs->timb_blocks + (at - fs->ztab_addr);
	return at - fs->timb_addr;
}

/* A block of a table has completed. The table is in memory as a whole. */
static int rfs_table_complete(struct rfs_fs *fs, void *what, const void *how,
			      u64 addr)
{
	u64 *at = what;

	(void)how;
	if (!*at)
		rfs_cp_list(fs, rfs_cp_entry_of(fs, at));
	rfs_count_live_map(fs, *at, -1);
	rfs_count_live_map(fs, addr, 1);
	*at = addr;
	return 0;
}

static const struct rfs_io_ops table_ops = { .complete = rfs_table_complete };

/*
 * Takes one of the blocks that are kept for writing tables, and fills in a header. *nr is its
 * number.
 */
static int rfs_new_table(struct rfs_fs *fs, u8 type, u64 off, u32 *nr)
{
	struct rfs_ioq *ioq = fs->ioq;
	int ret = 0;

	if (ioq->tables == RFS_TABLES) {
		ret = rfs_io_wait(fs);
		ioq->tables = 0;
	}
	*nr = ioq->tables++;
	memset(&ioq->table[*nr], 0, sizeof(ioq->table[*nr]));
	rfs_head_init(fs, &ioq->table[*nr].head, type, 0, 0, off);
	return ret;
}

static int rfs_send_table(struct rfs_fs *fs, u32 nr, u64 *addr)
{
	struct rfs_head *head = &fs->ioq->table[nr].head;
	struct rfs_oob oob;

	fs->cp_begun = true;
	rfs_head_number(fs, head, false);
	rfs_oob_meta(fs, &oob, head);
	rfs_head_seal(head, le64_to_cpu(oob.stamp));
	return rfs_io_submit(fs, RFS_S_IMAP, head, &oob, &table_ops, addr,
			     NULL);
}

static int rfs_write_timb(struct rfs_fs *fs)
{
	u32 i, j, nr;
	int ret = 0;

	rfs_bits_each(&fs->timb_due, i) {
		ret = rfs_new_table(fs, RFS_TIMB, i, &nr);
		if (ret)
			break;
		/* If a map completes elsewhere, this block becomes due again. */
		rfs_bits_put(&fs->timb_due, i, false);
		for (j = 0; fs->timb[i] && j < RFS_MAP_ENTRIES; j++)
			fs->ioq->table[nr].timb.word[j] =
				cpu_to_le64(fs->timb[i][j]);
		ret = rfs_send_table(fs, nr, &fs->timb_addr[i]);
		if (ret)
			break;
	}
	return ret;
}

static int rfs_write_ztab(struct rfs_fs *fs)
{
	struct rfs_zone *image, *now;
	u32 i, j, nr;
	int ret = 0;

	rfs_bits_each(&fs->ztab_due, i) {
		ret = rfs_new_table(fs, RFS_ZTAB, i, &nr);
		if (ret)
			break;
		rfs_bits_put(&fs->ztab_due, i, false);
		now = fs->ioq->table[nr].ztab.zone;
		for (j = 0; j < RFS_ZTAB_ENTRIES; j++) {
			u32 zone = i * RFS_ZTAB_ENTRIES + j;

			if (zone >= fs->geo.zones)
				break;
			fs->zone[zone].noted &= ~RFS_NOTED_TABLE;
			rfs_zone_entry(fs, zone, &now[j]);
		}
		image = &fs->ztab[i * RFS_ZTAB_ENTRIES];
		if (fs->ztab_addr[i] &&
		    !memcmp(image, now, RFS_ZTAB_ENTRIES * sizeof(*now))) {
			fs->ioq->tables--;
			continue;
		}
		memcpy(image, now, RFS_ZTAB_ENTRIES * sizeof(*now));
		ret = rfs_send_table(fs, nr, &fs->ztab_addr[i]);
		if (ret)
			break;
	}
	return ret;
}

static u64 rfs_list_word(const struct rfs_fs *fs, u32 i)
{
	if (i < fs->timb_blocks)
		return fs->timb_addr[i];
	i -= fs->timb_blocks;
	return i < fs->ztab_blocks ? fs->ztab_addr[i] : 0;
}

static void rfs_fill_cp(struct rfs_fs *fs, struct rfs_cp *cp, u32 flags)
{
	struct rfs_table *more = (struct rfs_table *)cp;
	u32 i, j;

	rfs_head_init(fs, &cp->head, RFS_CP, 0, 0, 0);
	cp->seq = cpu_to_le64(fs->cp_seq + 1);
	cp->next_lsn = cpu_to_le64(fs->lsn);
	cp->time = cpu_to_le64(rfs_clock(fs));
	if (fs->counting && !fs->miscounted)
		flags |= RFS_CP_COUNTED;
	cp->flags = cpu_to_le32(flags);
	cp->blocks = cpu_to_le32(fs->listed.count);
	cp->timb_blocks = cpu_to_le32(fs->timb_blocks);
	cp->ztab_blocks = cpu_to_le32(fs->ztab_blocks);
	cp->orphans = cpu_to_le32(fs->orphans);
	cp->next_ino = cpu_to_le32(fs->next_ino);
	cp->inodes = cpu_to_le64(fs->inodes);
	cp->live = cpu_to_le64(fs->live);
	cp->data_live = cpu_to_le64(fs->data_live);
	cp->head.addr = cpu_to_le64(fs->prealloc);
	cp->head.ino = cpu_to_le32(fs->runs);
	if (fs->home)
		cp->head.prev = cpu_to_le32(rfs_home_states_sum(fs));
	for (i = 0; i < fs->policy.groups; i++)
		cp->group_hot[i] = cpu_to_le64(fs->group_hot[i]);
	for (i = 0; i < RFS_CP_LIST_FIRST; i++)
		cp->list[i] = cpu_to_le64(rfs_list_word(fs, i));
	for (i = rfs_bits_next(&fs->listed, 1); i != RFS_BITS_NONE;
	     i = rfs_bits_next(&fs->listed, i + 1)) {
		u32 first = RFS_CP_LIST_FIRST + (i - 1) * RFS_CP_LIST_MORE;

		more++;
		rfs_head_init(fs, &more->head, RFS_CP, 0, 0, i);
		for (j = 0; j < RFS_CP_LIST_MORE; j++)
			more->word[j] = cpu_to_le64(rfs_list_word(fs,
								  first + j));
	}
}

/*
 * Says whether a check-point is elsewhere than at its zone's write pointer, which z->wp is. Zones
 * are reset because of a check-point, so it has to be there. A device that drops writes and does
 * not say so (dm-flakey) returns the address that it was given: that of the zone.
 */
static bool rfs_misplaced(const struct rfs_fs *fs, u32 zone, u64 addr)
{
	return addr != (u64)zone * fs->geo.zone_blocks + fs->zone[zone].wp;
}

/*
 * Notes an append of the check-point. If it did not end with a temporary error, the medium may have
 * the check-point.
 */
static void rfs_cp_sent(struct rfs_cp_image *image, int error)
{
	image->stays |= !error || rfs_zone_failed(error);
}

/* Writes to one check-point zone, at its end or, if it begins anew, its start. */
static int rfs_write_mirror(struct rfs_fs *fs, u32 zone, bool anew,
			    struct rfs_cp_image *image)
{
	struct rfs_zone_info *z = &fs->zone[zone];
	u32 i;
	u64 addr;
	int ret = 0;

	if (anew) {
		if (z->wp)
			ret = fs->ops->reset(fs->dev, zone);
		if (!ret) {
			ret = rfs_super_write(fs, zone);
			z->wp = !ret;
		}
	}
	for (i = 0; !ret && i < image->blocks; i++) {
		const void *data = &image->cp[i];

		ret = fs->ops->append(fs->dev, zone, 1, &data, &image->oob[i],
				      &addr);
		rfs_cp_sent(image, ret);
		if (!ret && rfs_misplaced(fs, zone, addr))
			ret = -EIO;
		z->wp += !ret;
		fs->stats.written[RFS_CP] += !ret;
	}
	if (!ret)
		ret = fs->ops->wait(fs->dev);
	if (!ret && fs->geo.volatile_cache)
		ret = fs->ops->flush(fs->dev);
	/* The other mirror has to be opened next. */
	if (!ret && fs->geo.max_open && fs->ops->close && z->wp < z->cap &&
	    fs->geo.max_open < fs->meta_active +
			       fs->data_active * fs->ways + 2)
		ret = fs->ops->close(fs->dev, zone);
	if (rfs_zone_failed(ret))
		z->cond = RFS_DEV_READ_ONLY;
	rfs_zone_changed(fs, zone);
	return ret;
}

/* Returns the zone among the three that is no mirror and works, else 3. */
static u32 rfs_spare_zone(const struct rfs_fs *fs)
{
	u32 zone, i;

	for (zone = 0; zone < RFS_CP_ZONES; zone++) {
		for (i = 0; i < RFS_CP_MIRRORS; i++)
			if (fs->cp_mirror[i] == zone)
				break;
		if (i == RFS_CP_MIRRORS && fs->zone[zone].cond == RFS_DEV_OK)
			break;
	}
	return zone;
}

/*
 * Writes to a mirror, or to the spare zone where that one is full or broken. So two copies of the
 * check-point before exist until one of this exists. Without a spare zone, a full mirror begins
 * anew.
 */
static int rfs_cp_write_copy(struct rfs_fs *fs, u32 *mirror,
			     struct rfs_cp_image *image)
{
	u32 zone = *mirror, other;
	struct rfs_zone_info *z = &fs->zone[zone];
	bool full = z->wp + image->blocks > z->cap;
	int ret = -EIO;

	if (!full && z->cond == RFS_DEV_OK)
		ret = rfs_write_mirror(fs, zone, !z->wp, image);
	other = ret ? rfs_spare_zone(fs) : RFS_CP_ZONES;
	if (other < RFS_CP_ZONES) {
		if (fs->active_max && z->wp < z->cap && fs->ops->finish)
			fs->ops->finish(fs->dev, zone);
		ret = rfs_write_mirror(fs, other, true, image);
		if (!ret)
			*mirror = other;
	}
	if (ret && full && z->cond == RFS_DEV_OK)
		ret = rfs_write_mirror(fs, zone, true, image);
	return ret;
}

/*
 * Flushes the blocks that are written before the check-point, or the check-point. With early,
 * others go on. -ENOMEM says that it can be tried again.
 */
static int rfs_cp_flush(struct rfs_fs *fs, bool early)
{
	int ret;

	if (!fs->geo.volatile_cache)
		return 0;
	if (early) {
		ret = fs->ops->flush_early(fs->dev);
		fs->nowait = false;
	} else {
		ret = fs->ops->flush(fs->dev);
	}
	return ret && !rfs_zone_failed(ret) ? -ENOMEM : ret;
}

/*
 * Writes both mirrors at the same time, in one append each, if neither begins anew: the older
 * check-points in both stay until one of them has this one. False says that they have to be written
 * one after the other, and those that have failed elsewhere.
 */
static bool rfs_cp_write_both(struct rfs_fs *fs, struct rfs_cp_image *image)
{
	struct rfs_append_req send[RFS_CP_MIRRORS] = { 0 };
	bool early = fs->commit == RFS_COMMIT_GOES_ON;
	u32 blocks = image->blocks;
	const void *data[RFS_SUM_ENTRIES];
	bool done = true;
	u32 i;

	if (!fs->ops->append_submit || fs->active_few || blocks > RFS_SUM_ENTRIES ||
	    (fs->geo.append_max && blocks > fs->geo.append_max))
		return false;
	for (i = 0; i < blocks; i++)
		data[i] = &image->cp[i];
	for (i = 0; i < RFS_CP_MIRRORS; i++) {
		struct rfs_zone_info *z = &fs->zone[fs->cp_mirror[i]];

		if (z->cond != RFS_DEV_OK || !z->wp || z->wp + blocks > z->cap)
			return false;
		/* Others may write the log meanwhile, but no early blocks. */
		send[i].nr = RFS_IO_DEPTH + 1 + i;
		send[i].early = early;
		send[i].zone = fs->cp_mirror[i];
		send[i].n = blocks;
		send[i].data = data;
		send[i].oob = image->oob;
	}
	for (i = 0; i < RFS_CP_MIRRORS; i++)
		fs->ops->append_submit(fs->dev, &send[i]);
	for (i = 0; i < RFS_CP_MIRRORS; i++) {
		struct rfs_zone_info *z = &fs->zone[send[i].zone];

		fs->ops->append_wait(fs->dev, &send[i]);
		if (early)
			fs->nowait = false;
		rfs_cp_sent(image, send[i].error);
		if (!send[i].error &&
		    rfs_misplaced(fs, send[i].zone, send[i].addr))
			send[i].error = -EIO;
		z->wp += send[i].error ? 0 : blocks;
		fs->stats.written[RFS_CP] += send[i].error ? 0 : blocks;
		if (rfs_zone_failed(send[i].error))
			z->cond = RFS_DEV_READ_ONLY;
		rfs_zone_changed(fs, send[i].zone);
		done &= !send[i].error;
	}
	return done && !fs->ops->wait(fs->dev) && !rfs_cp_flush(fs, early);
}

/* Writes one mirror after the other. */
static int rfs_cp_write_each(struct rfs_fs *fs, struct rfs_cp_image *image)
{
	bool done = false, again = false;
	u32 i;
	int ret;

	for (i = 0; i < RFS_CP_MIRRORS; i++) {
		ret = rfs_cp_write_copy(fs, &fs->cp_mirror[i], image);
		done |= !ret;
		again |= !rfs_zone_failed(ret);
	}
	if (done)
		return 0;
	return again ? -ENOMEM : -EIO;
}

/*
 * Does what rfs_cp_write_each() does, while others wait. Once the medium may have the check-point,
 * recovery may begin from it, whatever is written next. So it is tried until it is durable, or the
 * device fails. flushes says that the blocks to which it leads were not flushed.
 */
static int rfs_cp_write_surely(struct rfs_fs *fs, bool flushes,
			       struct rfs_cp_image *image)
{
	int ret;

	for (;;) {
		ret = flushes ? rfs_cp_flush(fs, false) : 0;
		if (!ret)
			ret = rfs_cp_write_each(fs, image);
		if (ret != -ENOMEM || !image->stays)
			return ret;
		if (fs->ops->delay)
			fs->ops->delay(fs->dev);
	}
}

static void rfs_cp_image_free(struct rfs_cp_image *image)
{
	rfs_free(image->cp);
}

/* Freezes the state of the volume in an image. The caller frees it, also after an error. */
static int rfs_cp_image_make(struct rfs_fs *fs, u32 flags,
			     struct rfs_cp_image *image)
{
	u32 blocks = fs->listed.count, i;
	struct rfs_oob *oob;
	struct rfs_cp *cp;
	u64 stamp;

	image->blocks = blocks;
	cp = rfs_alloc(blocks * (sizeof(*cp) + sizeof(*oob)));
	if (!cp)
		return -ENOMEM;
	oob = (struct rfs_oob *)(cp + blocks);
	image->cp = cp;
	image->oob = oob;
	rfs_fill_cp(fs, cp, flags);
	for (i = 0; i < blocks; i++)
		rfs_oob_meta(fs, &oob[i], &cp[i].head);
	stamp = le64_to_cpu(oob[0].stamp);
	cp->next_version = cpu_to_le64(fs->version);
	for (i = 0; i < blocks; i++) {
		rfs_head_seal(&cp[i].head, stamp);
		rfs_oob_seal(&oob[i], &cp[i]);
	}
	/* Superblocks that rfs_write_mirror() adds have stamps in the window. */
	fs->cp_version = fs->version;
	return 0;
}

/*
 * Writes TIMB and the zone table. The blocks that the zone table counts have completed, or are in
 * flight with it. If one of them fails, the table does not match the zones, and is written once
 * more.
 */
static int rfs_write_tables(struct rfs_fs *fs)
{
	int ret, error;

	if (!rfs_io_parallel(fs))
		rfs_sums_write(fs);
	ret = rfs_write_timb(fs);
	if (!ret)
		ret = rfs_io_send(fs);
	do {
		fs->ioq->failed = false;
		if (!ret)
			ret = rfs_write_ztab(fs);
		error = rfs_io_wait_sums(fs);
		ret = ret ? ret : error;
		fs->ioq->tables = 0;
	} while (!ret && fs->ioq->failed);
	return ret;
}

/* Says whether blocks are left that are not written in their present state. */
static bool rfs_cp_left(const struct rfs_fs *fs)
{
	return fs->timb_due.count || fs->dirty.count;
}

static int rfs_cp_write_once(struct rfs_fs *fs, bool wait)
{
	int ret = rfs_write_passes(fs, wait), error;

	if (!ret)
		ret = rfs_write_tables(fs);
	error = rfs_io_wait_sums(fs);	/* also of what was before an error */
	return ret ? ret : error;
}

/*
 * Writes all blocks in flight together. Then it writes, in steps, the blocks that lead to those
 * that came elsewhere than expected.
 */
static int rfs_cp_write_all(struct rfs_fs *fs)
{
	int ret = rfs_cp_write_once(fs, false);

	if (!ret && rfs_cp_left(fs))
		ret = rfs_cp_write_once(fs, true);
	if (!ret && rfs_cp_left(fs))
		ret = -EUCLEAN;
	return ret ? ret : fs->ops->wait(fs->dev);
}

/*
 * Makes all tables due for the next check-point, since those that were sent may not be on the
 * medium. Other blocks that were written are in use, and need not be written again.
 */
static void rfs_tables_again(struct rfs_fs *fs)
{
	u32 i;

	for (i = 0; i < fs->timb_blocks; i++)
		if (fs->timb[i])
			rfs_bits_put(&fs->timb_due, i, true);
	memset(fs->ztab, 0xff, (size_t)fs->ztab_blocks * RFS_ZTAB_ENTRIES *
			       sizeof(*fs->ztab));
	rfs_all_zones_changed(fs);
	fs->ioq->tables = 0;
}

/* Ends the epoch, since the check-point has the whole state of the volume. */
static void rfs_epoch_cut(struct rfs_fs *fs)
{
	fs->next_first_lsn = fs->lsn;
	rfs_log_cut(fs);
	rfs_zones_cut(fs);
	fs->pruned = 0;
	fs->not_logged = false;
}

/* Follows when the check-point is durable. The replica may take its image. */
static int rfs_epoch_durable(struct rfs_fs *fs, u32 flags,
			     struct rfs_cp_image *image)
{
	int ret;

	rfs_replicate_cp(fs, &image->cp, image->blocks);
	fs->cp_seq++;
	fs->cp_nth = 0;
	fs->early_blocks = 0;
	rfs_log_cut_durable(fs);
	fs->commit = RFS_COMMIT_NONE;
	fs->cp_begun = false;
	fs->first_lsn = fs->next_first_lsn;
	if (fs->home)
		rfs_home_committed(fs);
	fs->stats.checkpoints++;
	ret = rfs_free_zones(fs);
	if (ret)
		fs->read_only = true;
	else if (fs->home)
		rfs_replicate(fs, flags & RFS_CP_UNMOUNT);
	rfs_cache_trim(fs, fs->clean_max);
	return ret;
}

/*
 * Where few zones may be active, appends are waited for under the volume lock. With a slow device,
 * blocks at home are let go when the check-point is durable.
 */
static bool rfs_cp_may_open(const struct rfs_fs *fs)
{
	return fs->ops->frozen && rfs_io_parallel(fs) && !fs->home;
}

/*
 * Lets others go on in the next epoch, if there is room. Until the check-point is durable, a
 * recovery would write anew the blocks that are dirty then, and those that the check-point has
 * written since it had `nth`.
 */
static bool rfs_cp_open(struct rfs_fs *fs, u32 nth)
{
	u32 before = fs->early_blocks;

	fs->early_blocks += fs->cp_nth - nth;
	if (rfs_room_tight(fs, 1)) {
		fs->early_blocks = before;
		return false;
	}
	rfs_epoch_cut(fs);
	fs->commit = RFS_COMMIT_GOES_ON;
	rfs_quiet(fs, false);
	fs->ops->frozen(fs->dev);
	return true;
}

/*
 * Commits while others go on. They wait if it takes more than a flush and one append to each
 * mirror.
 */
static int rfs_cp_commit_early(struct rfs_fs *fs, struct rfs_cp_image *image)
{
	int ret = rfs_cp_flush(fs, true);

	image->stays = true;
	if (ret == -ENOMEM || (!ret && !rfs_cp_write_both(fs, image))) {
		rfs_quiet(fs, true);
		ret = rfs_cp_write_surely(fs, ret, image);
		rfs_quiet(fs, false);
	}
	if (ret)
		fs->commit = RFS_COMMIT_FAILED;
	return ret;
}

/*
 * Commits while others wait. flushes says that the blocks to which the check-point leads were not
 * flushed.
 */
static int rfs_cp_commit(struct rfs_fs *fs, bool flushes,
			 struct rfs_cp_image *image)
{
	int ret = flushes ? rfs_cp_flush(fs, false) : 0;

	if (!ret && !rfs_cp_write_both(fs, image))
		ret = rfs_cp_write_surely(fs, false, image);
	if (!ret)
		rfs_epoch_cut(fs);
	return ret;
}

/* Writes the blocks to which the check-point leads, and freezes it. */
static int rfs_cp_freeze(struct rfs_fs *fs, u32 flags, bool early,
			 struct rfs_cp_image *image)
{
	int ret = rfs_cp_write_all(fs);

	/* If others go on, they do so during the flush. */
	if (!ret && !early)
		ret = rfs_cp_flush(fs, false);
	if (!ret && fs->home)
		ret = rfs_home_write_states(fs);
	return ret ? ret : rfs_cp_image_make(fs, flags, image);
}

/*
 * Makes everything durable, and resets the zones that became free. After an error the last
 * check-point is as it was. For want of memory or of room it can be tried again. After an error of
 * the device the volume is read-only.
 */
static int rfs_checkpoint_once(struct rfs_fs *fs, u32 flags, bool early)
{
	struct rfs_cp_image image = { 0 };
	int ret = fs->read_only ? -EROFS : 0;
	u32 nth = fs->cp_nth;
	bool open = false, gap;

	gap = early && !rfs_injects(fs, RFS_INJECT_GAP);
	WARN_ON_ONCE(fs->syncing);
	rfs_quiet(fs, true);
	if (!ret) {
		rfs_log_settle(fs);
		rfs_prove(fs, RFS_AT_CHECKPOINT);
		rfs_finish_zones(fs);
		/* The log ends here: no block has the records that come after its last block. */
		fs->lsn += gap;
		ret = rfs_cp_freeze(fs, flags, early, &image);
		open = !ret && early && rfs_cp_open(fs, nth);
		if (!ret)
			ret = open ? rfs_cp_commit_early(fs, &image) :
				     rfs_cp_commit(fs, early, &image);
		/* The medium does not have the check-point, or nothing is written any more. */
		if (ret && !open)
			fs->lsn -= gap;
	}
	if (!ret)
		ret = rfs_epoch_durable(fs, flags, &image);
	else if (!open && (ret == -ENOMEM || ret == -ENOSPC))
		rfs_tables_again(fs);
	else
		fs->read_only = true;
	if (!open)
		rfs_quiet(fs, false);
	rfs_cp_image_free(&image);
	return ret;
}

int rfs_checkpoint(struct rfs_fs *fs, u32 flags)
{
	bool nowait = rfs_nowait_off(fs);
	int ret = rfs_checkpoint_once(fs, flags, false);

	rfs_nowait_restore(fs, nowait);
	return ret;
}

int rfs_checkpoint_early(struct rfs_fs *fs)
{
	bool nowait = rfs_nowait_off(fs);
	int ret = rfs_checkpoint_once(fs, 0, rfs_cp_may_open(fs));

	rfs_nowait_restore(fs, nowait);
	return ret;
}

/*
 * Reads the block of a check-point that is before block *i, which exists: the one before or, where
 * gaps are left, any before. *i becomes its number.
 */
static bool rfs_cp_read_before(struct rfs_fs *fs, u64 addr, u32 *i,
			       struct rfs_cp *cp)
{
	struct rfs_cp *block = &cp[*i - 1];
	u64 off;

	if (fs->ops->read(fs->dev, addr, block, NULL) ||
	    !rfs_head_ok(&block->head, fs->volume, RFS_CP) ||
	    block->head.stamp != cp[*i].head.stamp)
		return false;
	off = le64_to_cpu(block->head.off);
	if (off >= *i || (off + 1 < *i && !rfs_cp_has_gaps(fs)))
		return false;
	if (off + 1 < *i) {
		cp[off] = *block;
		memset(block, 0, sizeof(*block));
	}
	*i = off;
	return true;
}

/* Reads the check-point whose last block is at addr. *out is NULL if there is none. */
static int rfs_load_ending(struct rfs_fs *fs, u64 addr, u32 before,
			   struct rfs_cp *last, struct rfs_cp **out)
{
	u32 blocks = rfs_cp_blocks_of(fs), n = 1, i = blocks - 1;
	struct rfs_cp *cp;
	int ret = fs->ops->read(fs->dev, addr, last, NULL);

	*out = NULL;
	if (ret || !rfs_head_ok(&last->head, fs->volume, RFS_CP))
		return 0;
	rfs_version_seen(fs, le64_to_cpu(last->head.stamp));
	if (le64_to_cpu(last->head.off) != i)
		return 0;
	cp = rfs_alloc((size_t)blocks * RFS_BLOCK_BYTES);
	if (!cp)
		return -ENOMEM;
	cp[i] = *last;
	while (i && n < before && rfs_cp_read_before(fs, addr - n, &i, cp))
		n++;
	if (!i && le32_to_cpu(cp->blocks) == n &&
	    le32_to_cpu(cp->timb_blocks) == fs->timb_blocks &&
	    le32_to_cpu(cp->ztab_blocks) == fs->ztab_blocks)
		*out = cp;
	else
		rfs_free(cp);
	return 0;
}

/* Finds the newest valid check-point of a zone, which is read backwards from its end. */
static int rfs_load_zone(struct rfs_fs *fs, u32 zone, struct rfs_cp **out)
{
	u64 start = (u64)zone * fs->geo.zone_blocks;
	struct rfs_cp *last = rfs_alloc(sizeof(*last));
	u32 at;
	int ret = 0;

	if (!last)
		return -ENOMEM;
	*out = NULL;
	for (at = fs->zone[zone].wp; !ret && !*out && at > 1; at--)
		ret = rfs_load_ending(fs, start + at - 1, at - 1, last, out);
	rfs_free(last);
	return ret || *out ? ret : -ENOENT;
}

static u64 rfs_cp_entry(const struct rfs_cp *cp, u32 i)
{
	const struct rfs_table *more = (const struct rfs_table *)cp;

	if (i < RFS_CP_LIST_FIRST)
		return le64_to_cpu(cp->list[i]);
	i -= RFS_CP_LIST_FIRST;
	return le64_to_cpu(more[1 + i / RFS_CP_LIST_MORE].word[i % RFS_CP_LIST_MORE]);
}

static int rfs_cp_read_block(struct rfs_fs *fs, u64 addr, u8 type, u64 off,
			     struct rfs_head *out)
{
	int ret;

	if (!rfs_addr_ok(fs, addr))
		return -EUCLEAN;
	ret = fs->ops->read(fs->dev, addr, out, NULL);
	if (!ret && (!rfs_head_ok(out, fs->volume, type) ||
		     le64_to_cpu(out->off) != off))
		ret = -EUCLEAN;
	return ret;
}

static int rfs_load_timb(struct rfs_fs *fs, const struct rfs_cp *cp,
			 struct rfs_table *table)
{
	u32 i, j, maps = 0;
	u64 addr;
	int ret;

	for (i = 0; i < fs->timb_blocks; i++) {
		fs->timb_addr[i] = rfs_cp_entry(cp, i);
		if (!fs->timb_addr[i])
			continue;
		ret = rfs_cp_read_block(fs, fs->timb_addr[i], RFS_TIMB, i,
					&table->head);
		if (ret)
			return ret;
		rfs_cp_list(fs, i);
		ret = rfs_timb_make(fs, i * RFS_MAP_ENTRIES);
		if (ret)
			return ret;
		rfs_count_live_map(fs, fs->timb_addr[i], 1);
		for (j = 0; j < RFS_MAP_ENTRIES; j++) {
			u32 at = i * RFS_MAP_ENTRIES + j;

			if (at >= fs->imap_blocks + fs->nmap_blocks)
				break;
			fs->timb[i][j] = le64_to_cpu(table->word[j]);
			addr = fs->timb[i][j] & RFS_ADDR_MASK;
			rfs_count_live_map(fs, addr, 1);
			maps += !!addr;
		}
	}
	rfs_maps_add(fs, maps);
	return 0;
}

static int rfs_load_zone_entry(struct rfs_fs *fs, u32 nr,
			       const struct rfs_zone *e)
{
	struct rfs_zone_info *z = &fs->zone[nr];
	bool of_cps = nr < RFS_CP_ZONES;

	if (e->state > RFS_Z_DEAD || e->stream >= RFS_STREAMS ||
	    le32_to_cpu(e->live) > z->cap || le32_to_cpu(e->wp) > z->cap ||
	    le32_to_cpu(e->summary) > z->cap)
		return -EUCLEAN;
	if (of_cps ? e->state != RFS_Z_CP : e->state == RFS_Z_CP)
		return -EUCLEAN;
	z->state = e->state;
	if (z->state == RFS_Z_DEAD)	/* it may have been for once */
		z->state = RFS_Z_FREE;
	z->stream = e->stream;
	z->cp_wp = z->state == RFS_Z_FREE ? 0 : le32_to_cpu(e->wp);
	z->live += le32_to_cpu(e->live);
	z->summary = le32_to_cpu(e->summary);
	z->sum_time = le64_to_cpu(e->sum_time);
	z->sum_wcount = le64_to_cpu(e->sum_wcount);
	/* The time of its youngest data block is not known any more, so the mean stands for it. */
	if (z->sum_time && e->live)
		z->last = z->sum_time / le32_to_cpu(e->live);
	fs->live += le32_to_cpu(e->live);
	/* Maps were written after the entry. */
	if (z->state == RFS_Z_FREE && z->maps) {
		z->state = RFS_Z_USED;
		z->stream = RFS_S_IMAP;
	}
	/* The check-point freed the zone, which may have been reset and written since. */
	if (z->state == RFS_Z_USED && !z->live) {
		z->state = RFS_Z_FREE;
		z->cp_wp = 0;
	}
	return 0;
}

static int rfs_load_ztab(struct rfs_fs *fs, const struct rfs_cp *cp,
			 struct rfs_ztab *table)
{
	u32 i, j;
	int ret;

	for (i = 0; i < fs->ztab_blocks; i++) {
		fs->ztab_addr[i] = rfs_cp_entry(cp, fs->timb_blocks + i);
		rfs_cp_list(fs, fs->timb_blocks + i);
		rfs_count_live_map(fs, fs->ztab_addr[i], 1);
	}
	for (i = 0; i < fs->ztab_blocks; i++) {
		ret = rfs_cp_read_block(fs, fs->ztab_addr[i], RFS_ZTAB, i,
					&table->head);
		if (ret)
			return ret;
		memcpy(&fs->ztab[i * RFS_ZTAB_ENTRIES], table->zone,
		       sizeof(table->zone));
		for (j = 0; j < RFS_ZTAB_ENTRIES; j++) {
			u32 nr = i * RFS_ZTAB_ENTRIES + j;

			if (nr >= fs->geo.zones)
				break;
			ret = rfs_load_zone_entry(fs, nr, &table->zone[j]);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int rfs_load_tables(struct rfs_fs *fs, const struct rfs_cp *cp)
{
	struct rfs_table *table = rfs_alloc(sizeof(*table));
	int ret;

	if (!table)
		return -ENOMEM;
	ret = rfs_load_timb(fs, cp, table);
	if (!ret)
		ret = rfs_load_ztab(fs, cp, (struct rfs_ztab *)table);
	rfs_free(table);
	return ret;
}

/*
 * Selects the newest check-point and loads it. fs->version is after the highest stamp that any
 * check-point block has.
 */
int rfs_cp_load(struct rfs_fs *fs)
{
	struct rfs_cp *best = NULL;
	u64 seq[RFS_CP_ZONES] = { 0 };
	u32 zone, first = 0, second;
	int ret;

	for (zone = 0; zone < RFS_CP_ZONES; zone++) {
		struct rfs_cp *cp;

		if (fs->zone[zone].cond == RFS_DEV_OFFLINE)
			continue;
		ret = rfs_load_zone(fs, zone, &cp);
		if (ret == -ENOENT)
			continue;
		if (ret) {
			rfs_free(best);
			return ret;
		}
		seq[zone] = le64_to_cpu(cp->seq);
		if (best && le64_to_cpu(best->seq) >= seq[zone]) {
			rfs_free(cp);
			continue;
		}
		rfs_free(best);
		best = cp;
		first = zone;
	}
	if (!best)
		return -EUCLEAN;
	second = first == 0 ? 1 : 0;
	for (zone = 0; zone < RFS_CP_ZONES; zone++)
		if (zone != first && (seq[zone] > seq[second] ||
				      (seq[zone] == seq[second] &&
				       fs->zone[second].cond != RFS_DEV_OK)))
			second = zone;
	/* The newest copy is written last, so it stays while the other is reset. */
	fs->cp_mirror[0] = second;
	fs->cp_mirror[1] = first;
	fs->cp_seq = le64_to_cpu(best->seq);
	fs->cp_version = le64_to_cpu(best->next_version);
	fs->version = max(fs->version, fs->cp_version);
	fs->lsn = le64_to_cpu(best->next_lsn);
	fs->orphans = le32_to_cpu(best->orphans);
	fs->next_ino = le32_to_cpu(best->next_ino);
	fs->inodes = le64_to_cpu(best->inodes);
	fs->data_live = le64_to_cpu(best->data_live);
	fs->counting = le32_to_cpu(best->flags) & RFS_CP_COUNTED;
	fs->prealloc = le64_to_cpu(best->head.addr);
	fs->runs = le32_to_cpu(best->head.ino);
	if (fs->runs > (fs->nmap_blocks - fs->nmap_leaves) *
		       (RFS_MAP_ENTRIES / RFS_LEAF_WORDS)) {
		rfs_free(best);
		return -EUCLEAN;
	}
	fs->states_sum = le32_to_cpu(best->head.prev);
	for (zone = 0; zone < RFS_GROUPS_MAX; zone++)
		fs->group_hot[zone] = le64_to_cpu(best->group_hot[zone]);
	fs->behind = 0;
	if (le64_to_cpu(best->time) > rfs_clock(fs))
		fs->behind = le64_to_cpu(best->time) - rfs_clock(fs);
	ret = rfs_load_tables(fs, best);
	rfs_free(best);
	return ret;
}
