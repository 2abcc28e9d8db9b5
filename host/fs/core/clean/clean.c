// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cleaning appends the data of victims to its groups, and the check-point writes metadata anew. The
 * check-point after it makes the victims free.
 */
#include "space/space.h"
#include "tree/tree.h"
#include "log/log.h"
#include "clean/clean.h"

/*
 * Returns the ways that give the next victim. Where groups stripe, each is to find a free zone on
 * each way (RISA 4.5): until there are as many, these are the ways with fewest.
 */
static u64 rfs_ways_short(const struct rfs_fs *fs)
{
	u32 way, least = ~0U;
	u64 ways = 0;

	if (fs->ways == 1)
		return RFS_ALL_WAYS;
	for (way = 0; way < fs->ways; way++)
		least = min(least, fs->way_room[way]);
	for (way = 0; way < fs->ways; way++)
		if (fs->way_room[way] <= least + 1)
			ways |= 1ULL << way;
	return ways;
}

/* Where nothing else has made room, what frees most comes before what is even. */
static u32 rfs_next_victim(struct rfs_fs *fs, enum rfs_clean how, u64 now)
{
	u64 ways = how == RFS_CLEAN_HARD ? RFS_ALL_WAYS : rfs_ways_short(fs);
	u32 nr = rfs_victim(fs, how, now, ways);

	return nr || ways == RFS_ALL_WAYS ? nr :
	       rfs_victim(fs, how, now, RFS_ALL_WAYS);
}

/* Those who write much wait if fewer zones than these are free. */
static u32 rfs_zones_reserved(const struct rfs_fs *fs)
{
	/* With few zones rfs_room_low() rounds up. */
	return rfs_zones_narrow(fs) + fs->ways + fs->few +
	       rfs_zones_of(fs, fs->rsv_blocks);
}

/* Cleaning begins if fewer zones than these are free. */
static u32 rfs_clean_below(const struct rfs_fs *fs)
{
	return rfs_zones_reserved(fs) + fs->geo.zones / 64 + fs->ahead;
}

#define WORTH	16	/* times what a check-point writes */

/*
 * Cleaning goes on up to so many free zones. What is free without need makes other zones fuller,
 * which are cleaned with more in use then. But each round costs a check-point.
 */
static u32 rfs_clean_up_to(const struct rfs_fs *fs)
{
	u32 some = fs->geo.zones / 64;
	u32 worth = WORTH * (u64)fs->dirty.count /
		    le32_to_cpu(fs->super.zone_cap);

	return rfs_clean_below(fs) + min(max(worth, some), 3 * some);
}

/* Returns the zones that the next check-point makes free. */
static u32 rfs_to_be_free(const struct rfs_fs *fs)
{
	return fs->set[RFS_SET_GAINED].count;
}

static bool rfs_clean_wanted(const struct rfs_fs *fs)
{
	return fs->free_zones + rfs_to_be_free(fs) < rfs_clean_up_to(fs);
}

#define VICTIMS_MOST	RFS_WAYS_MAX

/* Returns how many zones are gone through together, so that reads of them use all ways. */
static u32 rfs_victim_ways(const struct rfs_fs *fs, enum rfs_clean how)
{
	return how == RFS_CLEAN_HARD ? 1 : fs->ways;
}

/*
 * Says whether the zone is missing that copies are to have. Then a victim was left half copied, and
 * the cheapest is next: what it has in use has room where that zone was begun (case 4 of "Room").
 */
static bool rfs_half_copied(const struct rfs_fs *fs)
{
	return fs->free_zones + rfs_zones_for_data(fs->few) <=
	       rfs_zones_kept(fs) + rfs_zones_for_reserved(fs);
}

/*
 * Returns how many blocks may be live in what is cleaned at once: those of a zone, which low_zones
 * has for that, and of one for each that data may take, up to one of each way.
 */
static u64 rfs_victims_hold(const struct rfs_fs *fs, enum rfs_clean how)
{
	u64 kept = rfs_zones_kept(fs) + rfs_zones_for_reserved(fs), zones = 1;

	if (rfs_half_copied(fs))
		return 0;	/* one victim */
	if (fs->free_zones > kept)
		zones += fs->free_zones - kept;
	return min_t(u64, zones, rfs_victim_ways(fs, how)) * fs->holds;
}

static u32 rfs_victims_most(const struct rfs_fs *fs)
{
	return max_t(u32, fs->ways, RFS_VICTIMS);
}

/*
 * Finds several victims at once, so that what is alike in them goes together. What is live of them
 * takes no more room than a zone, or one on each way.
 */
static u32 rfs_find_victims(struct rfs_fs *fs, enum rfs_clean how, u32 *nr)
{
	u64 now = rfs_now(fs), live = 0, most = rfs_victims_hold(fs, how);
	u32 n;

	for (n = 0; n < rfs_victims_most(fs); n++) {
		nr[n] = rfs_next_victim(fs, how, now);
		if (!nr[n])
			break;
		live += fs->zone[nr[n]].live;
		if (n && live > most)
			break;
		if (n >= RFS_VICTIMS && !rfs_clean_wanted(fs))
			break;
		fs->zone[nr[n]].cleaning = true;
		rfs_zone_changed(fs, nr[n]);
	}
	return n;
}

/*
 * These are blocks in flight. Those of data are filled in, read and appended, and entered in the
 * index when they have completed. Several copies are in flight at a time.
 */
struct cleaner {
	u32 copies;		/* that there was memory for */
	u32 shared;		/* groups, of so many copies being filled */
	u32 groups;		/* that data is copied to */
	struct rfs_copy *copy[RFS_COPIES];
	struct rfs_copy *filling[RFS_GROUPS_MAX];
	struct rfs_copy *idle[RFS_COPIES];
	struct rfs_copy *queue[RFS_COPIES];	/* oldest first */
	u32 idles, queued;
	u32 reading;		/* of those in the queue, the last */
	u32 waiting;		/* blocks that have no place yet */
	u64 least;		/* blocks, the room that is left for others */
	u32 kept;		/* and zones */
	u32 victim[VICTIMS_MOST];
	u32 sums[VICTIMS_MOST];	/* of each, those that were read, or are being */
	u32 victims, done;	/* of them, those that were gone through */
	bool any;		/* block that was looked at */
	bool leaves;		/* what is dirty in memory to who writes it */
	u64 now;
	u8 *seen;		/* blocks of the victims that are next */
	u8 *block;
	/* This is told of data instead of moving it, and may be NULL. */
	int (*each)(void *arg, const struct rfs_oob *oob, u64 addr);
	void *arg;
};

#define READING		4	/* copies that are read at a time */
#define SUMS_AHEAD	8	/* summaries of a way that are read at a time */

static bool rfs_copy_data_ok(const struct rfs_copy *copy, u32 i)
{
	return le32_to_cpu(copy->oob[i].data_crc) ==
	       ~rfs_crc(~0U, copy->block[i], RFS_BLOCK_BYTES);
}

/* What the page cache has need not be read (RISA 4.3.1). */
static bool rfs_copy_cached(struct rfs_fs *fs, struct rfs_copy *copy, u32 i)
{
	return fs->ops->cached &&
	       fs->ops->cached(fs->dev, le32_to_cpu(copy->oob[i].ino),
			       le64_to_cpu(copy->oob[i].off), copy->block[i]) &&
	       rfs_copy_data_ok(copy, i);
}

/* Entry i becomes entry n. */
static void rfs_copy_keep(struct rfs_copy *copy, u32 n, u32 i)
{
	void *block = copy->block[n];

	copy->oob[n] = copy->oob[i];
	copy->from[n] = copy->from[i];
	copy->block[n] = copy->block[i];
	copy->block[i] = block;
}

static int rfs_copy_read_begin(struct rfs_fs *fs, struct rfs_copy *copy)
{
	u32 i;

	for (i = 0; i < copy->n; i++)
		fs->stats.clean_reads += !copy->there[i];
	if (fs->ops->copy_read)
		return fs->ops->copy_read(fs->dev, copy);
	for (i = 0; i < copy->n; i++)
		if (!copy->there[i])
			copy->there[i] = !fs->ops->read(fs->dev, copy->from[i],
							copy->block[i], NULL);
	return 0;
}

/* Waits until what is to be read is there, or cannot be read. */
static void rfs_copy_read_end(struct rfs_fs *fs, struct rfs_copy *copy)
{
	if (fs->ops->copy_read_wait)
		fs->ops->copy_read_wait(fs->dev, copy);
}

int rfs_copy_read(struct rfs_fs *fs, struct rfs_copy *copy)
{
	int ret = rfs_copy_read_begin(fs, copy);

	if (!ret)
		rfs_copy_read_end(fs, copy);
	return ret;
}

/*
 * Blocks that cannot be read, or are not what they were, stay where they are, and so does their
 * zone.
 */
static void rfs_copy_drop_unreadable(struct rfs_fs *fs, struct rfs_copy *copy)
{
	u32 i, all = copy->n, nr;

	for (i = 0, copy->n = 0; i < all; i++) {
		if (copy->there[i] &&
		    (copy->cached[i] || rfs_copy_data_ok(copy, i))) {
			rfs_copy_keep(copy, copy->n++, i);
			continue;
		}
		nr = copy->from[i] / fs->geo.zone_blocks;
		rfs_zone_lost(fs, nr);
	}
}

/*
 * Says whether a copy's leaf is dirty, as it was when the block was collected. A check-point that
 * somebody wrote since has written it: then it becomes dirty again here, if there is room for that.
 */
static bool rfs_copy_has_leaf(struct rfs_fs *fs, const struct rfs_copy *copy, struct rfs_buf *leaf)
{
	if (leaf->dirty)
		return true;
	rfs_dirty_parents(fs);
	if (rfs_room_beside(fs, copy->n, 0) < rfs_room_kept(fs))
		return false;
	rfs_buf_dirty(fs, leaf);
	return true;
}

/*
 * What is not what the index says any more is not copied. If a check-point was written since it was
 * collected, while others used the volume, recovery would take the copy for newer than what the
 * check-point has. What there is no room for stays in the victim.
 */
static int rfs_copy_drop_changed(struct rfs_fs *fs, struct rfs_copy *copy)
{
	u32 i, all = copy->n, n = 0;
	struct rfs_buf *leaf;
	struct rfs_ptr *ptr;
	int ret;

	for (i = 0; i < all; i++) {
		ret = rfs_map_slot(fs, le32_to_cpu(copy->oob[i].ino),
				   le64_to_cpu(copy->oob[i].off), false, &ptr, &leaf);
		if (ret && ret != -ENOENT)	/* that is: deleted */
			return ret;
		if (ret || !ptr || rfs_ptr_flash(ptr) != copy->from[i])
			continue;
		if (!rfs_copy_has_leaf(fs, copy, leaf)) {
			fs->zone[copy->from[i] / fs->geo.zone_blocks].left = true;
			continue;
		}
		rfs_copy_keep(copy, n, i);
		copy->oob[n++].len = cpu_to_le16(rfs_ptr_len(ptr));
	}
	copy->n = n;
	return 0;
}

static bool rfs_has_cuts(struct rfs_fs *fs, const struct rfs_copy *copy)
{
	u32 i;

	for (i = 0; i < copy->n; i++)
		if (rfs_log_pending(fs, le32_to_cpu(copy->oob[i].ino), true))
			return true;
	return false;
}

/*
 * A copy of a block that a truncate has cut is as long as the truncate left it, so that record
 * comes first, as before any other page of the file (rule 1 of doc/design.md).
 *
 * The stamps are those of the append: a check-point that came while the copy was filled or read
 * must not take it for older than itself.
 */
int rfs_copy_begin(struct rfs_fs *fs, struct rfs_copy *copy)
{
	int ret = fs->read_only ? -EROFS : rfs_copy_drop_changed(fs, copy);
	u32 i;

	if (!ret && rfs_has_cuts(fs, copy)) {
		ret = rfs_log_sync(fs);
		/* Others may have used the volume. No record is pending now. */
		if (!ret)
			ret = rfs_copy_drop_changed(fs, copy);
	}
	for (i = 0; !ret && i < copy->n; i++) {
		copy->oob[i].stamp = cpu_to_le64(rfs_next_version(fs, 1));
		copy->oob[i].flags = RFS_OOB_COPY | rfs_oob_next(fs);
	}
	return ret;
}

/*
 * The copy enters the index by compare-and-swap. What others have changed while it was in flight is
 * what they say, and the copy is of no use (rule 4 of doc/design.md).
 */
int rfs_copy_done(struct rfs_fs *fs, const struct rfs_copy *copy, u32 first,
		  u32 n, const u64 *addr)
{
	struct rfs_ptr ptr;
	u32 i;
	int ret;

	for (i = first; i < first + n; i++) {
		u32 ino = le32_to_cpu(copy->oob[i].ino);
		u64 off = le64_to_cpu(copy->oob[i].off);

		ret = rfs_map_get(fs, ino, off, &ptr);
		if (ret && ret != -ENOENT)
			return ret;
		if (ret || rfs_ptr_flash(&ptr) != copy->from[i])
			continue;
		rfs_ptr_put(&ptr, addr[i - first], rfs_ptr_home(&ptr),
			    rfs_ptr_len(&ptr));
		ret = rfs_map_set(fs, ino, off, 1, &ptr);
		if (ret)
			return ret;
		fs->stats.copied++;
	}
	return 0;
}

static int rfs_copy_failed(const struct rfs_fs *fs, int error)
{
	return !fs->read_only && (error == -EIO || error == -ENOSPC) ?
	       RFS_NO_ZONE : error;
}

/* Appends all blocks at once, and waits. */
static int rfs_copy_append_now(struct rfs_fs *fs, struct rfs_copy *copy)
{
	u64 addr[RFS_SUM_ENTRIES];
	int ret;

	do {
		ret = rfs_copy_begin(fs, copy);
		if (ret || !copy->n)
			return ret;
		ret = rfs_append(fs, copy->stream, copy->n,
				 (const void *const *)copy->block, copy->oob,
				 addr);
		if (ret != -EBUSY || !fs->ops->yield)
			break;
		/* A zone waits for what is in flight to it. */
		fs->ops->yield(fs->dev);
	} while (!fs->read_only);
	return ret ? rfs_copy_failed(fs, ret) :
		     rfs_copy_done(fs, copy, 0, copy->n, addr);
}

/* Appends the oldest of the copies that are being read. */
static int rfs_copy_send_next(struct rfs_fs *fs, struct cleaner *c)
{
	struct rfs_copy *copy = c->queue[c->queued - c->reading--];
	int ret;

	rfs_copy_read_end(fs, copy);
	c->waiting -= copy->n;
	rfs_copy_drop_unreadable(fs, copy);
	/* Without page metadata appends to a zone go one after the other. */
	if (copy->n && fs->ops->copy_write && fs->geo.oob_bytes &&
	    fs->threaded) {
		ret = fs->ops->copy_write(fs->dev, copy);
		copy->sent = !ret;
		return ret;
	}
	ret = rfs_copy_append_now(fs, copy);
	if (!ret && fs->ops->yield)
		fs->ops->yield(fs->dev);
	return ret || !fs->read_only ? ret : -EROFS;
}

/* Waits until the oldest copy has completed. */
static int rfs_copy_wait_next(struct rfs_fs *fs, struct cleaner *c)
{
	struct rfs_copy *copy = c->queue[0];

	c->queued--;
	memmove(c->queue, c->queue + 1, c->queued * sizeof(*c->queue));
	c->idle[c->idles++] = copy;
	return copy->sent ? rfs_copy_failed(fs, fs->ops->copy_write_wait(fs->dev,
									copy)) :
			    0;
}

int rfs_copy_alloc_blocks(struct rfs_copy *copy)
{
	u32 i;

	for (i = 0; i < RFS_SUM_ENTRIES; i++) {
		copy->block[i] = rfs_alloc_raw(RFS_BLOCK_BYTES);
		if (!copy->block[i])
			return -ENOMEM;
	}
	return 0;
}

void rfs_copy_free_blocks(struct rfs_copy *copy)
{
	u32 i;

	for (i = 0; i < RFS_SUM_ENTRIES; i++)
		rfs_free(copy->block[i]);
}

static void rfs_copy_free(struct rfs_copy *copy)
{
	if (!copy)
		return;
	rfs_copy_free_blocks(copy);
	rfs_free(copy);
}

static struct rfs_copy *rfs_copy_new(u32 nr)
{
	struct rfs_copy *copy = rfs_alloc(sizeof(*copy));

	if (!copy)
		return NULL;
	copy->nr = nr;
	if (rfs_copy_alloc_blocks(copy)) {
		rfs_copy_free(copy);
		return NULL;
	}
	return copy;
}

static bool rfs_add_copy(struct cleaner *c)
{
	struct rfs_copy *copy =
		c->copies < RFS_COPIES ? rfs_copy_new(c->copies) :
							 NULL;

	if (!copy)
		return false;
	c->idle[c->idles++] = copy;
	c->copy[c->copies++] = copy;
	return true;
}

/* Returns a copy that can be filled. Without memory for another one, it waits for one in flight. */
static int rfs_take_copy(struct rfs_fs *fs, struct cleaner *c,
			 struct rfs_copy **out)
{
	int ret = 0;

	while (!ret && !c->idles && !rfs_add_copy(c))
		ret = c->reading == c->queued ? rfs_copy_send_next(fs, c) :
		      rfs_copy_wait_next(fs, c);
	if (ret)
		return ret;
	*out = c->idle[--c->idles];
	(*out)->n = 0;
	memset((*out)->there, 0, sizeof((*out)->there));
	return 0;
}

/* What will be written before the check-point need not be copied. */
static void rfs_copy_drop_dirty(struct rfs_fs *fs, struct cleaner *c,
				struct rfs_copy *copy)
{
	u32 i, all = copy->n;

	if (!c->leaves)
		return;
	for (i = 0, copy->n = 0; i < all; i++) {
		if (fs->ops->write_dirty(fs->dev, le32_to_cpu(copy->oob[i].ino),
					 le64_to_cpu(copy->oob[i].off)))
			fs->zone[copy->from[i] / fs->geo.zone_blocks].left = true;
		else
			rfs_copy_keep(copy, copy->n++, i);
	}
	c->waiting -= all - copy->n;
	fs->stats.clean_left += all - copy->n;
}

/* The copy is full, or there is no more, so it is read and appended. */
static int rfs_queue_copy(struct rfs_fs *fs, struct cleaner *c,
			  struct rfs_copy *copy)
{
	u32 i;
	int ret;

	rfs_copy_drop_dirty(fs, c, copy);
	if (!copy->n) {
		c->idle[c->idles++] = copy;
		return 0;
	}
	for (i = 0; i < copy->n; i++) {
		copy->cached[i] = rfs_copy_cached(fs, copy, i);
		copy->there[i] = copy->cached[i];
		fs->stats.clean_cached += copy->cached[i];
	}
	ret = rfs_copy_read_begin(fs, copy);
	if (ret) {
		c->idle[c->idles++] = copy;
		return ret;
	}
	copy->sent = false;
	c->queue[c->queued++] = copy;
	c->reading++;
	while (!ret && c->reading > READING)
		ret = rfs_copy_send_next(fs, c);
	return ret;
}

/*
 * Reads a block of a victim, while others use the volume. Nobody resets a zone that is being
 * cleaned. Nobody else touches one that is compacted until a check-point.
 */
static int rfs_clean_scan(struct rfs_fs *fs, u64 addr, void *data,
			  struct rfs_oob *oob)
{
	const struct rfs_zone_info *z = &fs->zone[addr / fs->geo.zone_blocks];

	fs->stats.clean_reads++;
	if (fs->ops->scan && fs->threaded && z->cleaning)
		return fs->ops->scan(fs->dev, addr, data, oob);
	return fs->ops->read(fs->dev, addr, data, oob);
}

int rfs_clean_look_up(struct rfs_fs *fs, const struct rfs_oob *from,
		      struct rfs_dinode **di, struct rfs_ptr **at,
		      struct rfs_buf **buf)
{
	bool asks = fs->ops->fetch && fs->threaded;
	int ret;

	for (;;) {
		fs->nowait = asks;
		ret = rfs_iget(fs, le32_to_cpu(from->ino), di, buf);
		*at = NULL;
		if (!ret && (*di)->gen == from->gen)
			ret = rfs_map_slot(fs, le32_to_cpu(from->ino),
					   le64_to_cpu(from->off), false, at,
					   buf);
		fs->nowait = false;
		if (fs->fetched)
			fs->ops->fetched(fs->dev);
		if (ret != -EINPROGRESS)
			return ret == -ENOENT ? 0 : ret;
		fs->ops->fetch(fs->dev);
	}
}

int rfs_evict_block(struct rfs_fs *fs, u32 ino, u64 block, struct rfs_ptr *ptr)
{
	rfs_ptr_put(ptr, 0, rfs_ptr_home(ptr), rfs_ptr_len(ptr));
	fs->stats.evicted++;
	return rfs_map_set(fs, ino, block, 1, ptr);
}

/*
 * A data block goes to its group if it is what the index says. If it is at home, too, it leaves
 * flash instead.
 */
static int rfs_move_data(struct rfs_fs *fs, struct cleaner *c,
			 const struct rfs_oob *from, u64 addr)
{
	struct rfs_copy **slot, *copy;
	struct rfs_dinode *di;
	u32 stream;
	struct rfs_oob *oob;
	struct rfs_ptr *at, ptr;
	struct rfs_buf *buf;
	int ret;

	ret = rfs_clean_look_up(fs, from, &di, &at, &buf);
	if (ret || !at || rfs_ptr_flash(at) != addr)
		return ret;
	ptr = *at;
	if (ptr.kind == RFS_PTR_BOTH)
		return rfs_evict_block(fs, le32_to_cpu(from->ino),
				       le64_to_cpu(from->off), &ptr);
	/* The leaf is dirty at once, as it will be when the copy completes. */
	rfs_buf_dirty(fs, buf);
	stream = min(rfs_data_stream(fs, di, &ptr, c->now),
		     RFS_S_DATA + c->groups - 1);
	rfs_count_traffic(fs, &ptr, c->now);
	slot = &c->filling[min(stream - RFS_S_DATA, c->shared - 1)];
	if (!*slot) {
		ret = rfs_take_copy(fs, c, slot);
		if (ret)
			return ret;
	}
	copy = *slot;
	copy->stream = stream;
	oob = &copy->oob[copy->n];
	*oob = *from;
	oob->flags = RFS_OOB_COPY;
	oob->len = cpu_to_le16(rfs_ptr_len(&ptr));
	oob->txn_idx = 0;
	oob->txn_cnt = 0;
	copy->from[copy->n++] = addr;
	c->waiting++;
	if (copy->n < RFS_SUM_ENTRIES)
		return 0;
	*slot = NULL;
	return rfs_queue_copy(fs, c, copy);
}

static int rfs_redirty(struct rfs_fs *fs, u8 type, u64 off, u64 addr)
{
	struct rfs_buf *buf;
	int ret = rfs_buf_read(fs, type, off, addr, &buf);

	if (!ret && buf->addr == addr) {
		fs->stats.copied_maps += (type == RFS_IMAP ||
					  type == RFS_NMAP) && !buf->dirty;
		rfs_buf_dirty(fs, buf);
	}
	return ret;
}

/* A node is what the map says, whoever has its number. */
static int rfs_move_node(struct rfs_fs *fs, const struct rfs_oob *from,
			 u64 addr)
{
	u32 number = le64_to_cpu(from->off) >> 32;
	bool used;
	u64 at;
	int ret = rfs_node_where(fs, number, &at, &used);

	if (ret || at != addr)
		return ret;
	return rfs_redirty(fs, from->type, number, addr);
}

/* The check-point writes a metadata block anew. */
static int rfs_move_meta(struct rfs_fs *fs, const struct rfs_oob *from,
			 u64 addr)
{
	u64 off = le64_to_cpu(from->off), at;
	struct rfs_buf *buf;
	int ret;

	if (rfs_is_node(from->type))
		return rfs_move_node(fs, from, addr);
	switch (from->type) {
	case RFS_INODES:
		ret = rfs_imap_get(fs, off / RFS_MAP_ENTRIES, false, &buf);
		if (ret || !buf ||
		    rfs_addr(buf->table.word[off % RFS_MAP_ENTRIES]) != addr)
			return ret;
		return rfs_redirty(fs, RFS_INODES, off, addr);
	case RFS_IMAP:
	case RFS_NMAP:
		if (off >= (from->type == RFS_IMAP ? fs->imap_blocks :
						     fs->nmap_blocks))
			return 0;
		at = off + (from->type == RFS_IMAP ? 0 : fs->imap_blocks);
		if ((rfs_timb(fs, at) & RFS_ADDR_MASK) != addr)
			return 0;
		return rfs_redirty(fs, from->type, off, addr);
	case RFS_TIMB:
		if (off < fs->timb_blocks && fs->timb_addr[off] == addr) {
			fs->stats.copied_maps += !rfs_bits_has(&fs->timb_due,
							       off);
			rfs_bits_put(&fs->timb_due, off, true);
		}
		return 0;
	case RFS_ZTAB:
		if (off < fs->ztab_blocks && fs->ztab_addr[off] == addr) {
			memset(&fs->ztab[off * RFS_ZTAB_ENTRIES], 0xff,
			       RFS_ZTAB_ENTRIES * sizeof(*fs->ztab));
			rfs_bits_put(&fs->ztab_due, off, true);
		}
		return 0;
	}
	return 0;
}

static int rfs_move_block(struct rfs_fs *fs, struct cleaner *c,
			  const struct rfs_oob *from, u64 addr)
{
	u32 copies;

	if (c->each)
		return from->type == RFS_DATA ? c->each(c->arg, from, addr) : 0;
	rfs_dirty_parents(fs);
	/* Nothing of metadata is copied, so it takes no room of reserved pages. */
	copies = c->waiting + (from->type == RFS_DATA);
	if (rfs_room_beside(fs, copies, c->kept) < c->least)
		return RFS_STOP;
	c->any = true;
	if (from->type == RFS_DATA)
		return rfs_move_data(fs, c, from, addr);
	/* Compaction goes through all its victims before others have their turn. */
	return rfs_nofail_left(RFS_OP_BLOCKS) ? rfs_move_meta(fs, from, addr) : -ENOMEM;
}

/* Returns a byte for each block of a zone that is gone through, perhaps with others. */
static u8 *rfs_seen_of(const struct rfs_fs *fs, const struct cleaner *c, u32 nr)
{
	u32 i = c->done;

	while (i < c->victims && c->victim[i] != nr)
		i++;
	return c->seen + (size_t)(i - c->done) * fs->geo.zone_blocks;
}

/* Moves the blocks that a summary lists, and marks them in seen. */
static int rfs_move_listed(struct rfs_fs *fs, struct cleaner *c, u32 nr,
			   const struct rfs_summary *sum)
{
	u8 *seen = rfs_seen_of(fs, c, nr);
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
		ret = rfs_move_block(fs, c, &sum->entry[i], start + off);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Goes through the zone backwards, so that a summary comes before the blocks it lists. Only
 * summaries are read, and blocks that no summary lists.
 */
static int rfs_move_zone(struct rfs_fs *fs, struct cleaner *c, u32 nr)
{
	u64 start = (u64)nr * fs->geo.zone_blocks;
	struct rfs_summary *sum = (struct rfs_summary *)c->block;
	const u8 *seen = rfs_seen_of(fs, c, nr);
	struct rfs_oob oob;
	u32 at;
	int ret;

	for (at = fs->zone[nr].wp; at-- > 0 && fs->zone[nr].live;) {
		if (seen[at])
			continue;
		ret = rfs_clean_scan(fs, start + at, c->block, &oob);
		if (ret || !rfs_oob_ok(&oob, fs->volume))
			continue;
		if (oob.type != RFS_SUMMARY)
			ret = rfs_move_block(fs, c, &oob, start + at);
		else if (rfs_head_ok(&sum->head, fs->volume, RFS_SUMMARY))
			ret = rfs_move_listed(fs, c, nr, sum);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Without page metadata, this takes every block that is a summary of its own address. No summary is
 * trusted to say where the next one is: a power cut may have left one whose blocks are not there,
 * and others in their place.
 */
static int rfs_move_summaries(struct rfs_fs *fs, struct cleaner *c, u32 nr)
{
	u64 start = (u64)nr * fs->geo.zone_blocks;
	struct rfs_summary *sum = (struct rfs_summary *)c->block;
	u32 at, i, n;
	int ret;

	for (at = 0; at < fs->zone[nr].wp; at++) {
		ret = rfs_clean_scan(fs, start + at, sum, NULL);
		if (ret || !rfs_summary_ok(fs, sum, start + at))
			continue;
		n = min_t(u32, le16_to_cpu(sum->head.count), RFS_SUM_ENTRIES);
		n = min(n, fs->zone[nr].wp - at - 1);
		for (i = 0; i < n; i++) {
			ret = rfs_move_block(fs, c, &sum->entry[i], start + at +
					     1 + i);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/*
 * Begins to read the next summaries of n victims, one of each in turn. copy->n becomes their
 * number.
 */
static int rfs_read_sums(struct rfs_fs *fs, struct cleaner *c, u32 n,
			 struct rfs_copy *copy)
{
	u32 most = min(SUMS_AHEAD * n, (u32)RFS_SUM_ENTRIES), i, before;

	copy->n = 0;
	do {
		before = copy->n;
		for (i = c->done; i < c->done + n && copy->n < most; i++) {
			const struct rfs_zone_info *z =
				&fs->zone[c->victim[i]];

			if (!z->sum_at || c->sums[i] == z->sums_known)
				continue;
			copy->from[copy->n] = (u64)c->victim[i] *
					      fs->geo.zone_blocks +
					      z->sum_at[c->sums[i]++];
			copy->there[copy->n++] = false;
		}
	} while (copy->n > before);
	return copy->n ? rfs_copy_read_begin(fs, copy) : 0;
}

/* Moves the blocks that these summaries list, which have been read. */
static int rfs_move_sums(struct rfs_fs *fs, struct cleaner *c,
			 struct rfs_copy *copy)
{
	u32 i;
	int ret = 0;

	for (i = 0; !ret && i < copy->n; i++) {
		struct rfs_summary *sum = copy->block[i];
		u32 nr = copy->from[i] / fs->geo.zone_blocks;

		if (!copy->there[i] || !rfs_head_ok(&sum->head, fs->volume,
						    RFS_SUMMARY))
			continue;
		rfs_seen_of(fs, c, nr)[copy->from[i] %
				       fs->geo.zone_blocks] = true;
		ret = rfs_move_listed(fs, c, nr, sum);
	}
	return ret;
}

/*
 * Moves what the summaries list that were written since the zones were opened. Those of a zone may
 * all be on one die, so some are read while those before are gone through.
 */
static int rfs_move_known(struct rfs_fs *fs, struct cleaner *c, u32 n)
{
	struct rfs_copy *now, *next;
	int ret;

	ret = rfs_take_copy(fs, c, &next);
	if (ret)
		return ret;
	ret = rfs_take_copy(fs, c, &now);
	if (ret) {
		c->idle[c->idles++] = next;
		return ret;
	}
	ret = rfs_read_sums(fs, c, n, next);
	while (!ret && next->n) {
		struct rfs_copy *read = next;

		next = now;
		now = read;
		ret = rfs_read_sums(fs, c, n, next);
		rfs_copy_read_end(fs, now);
		if (!ret)
			ret = rfs_move_sums(fs, c, now);
		if (ret && next->n)
			rfs_copy_read_end(fs, next);
	}
	c->idle[c->idles++] = now;
	c->idle[c->idles++] = next;
	return ret;
}

/* Goes through the next n victims together. */
static int rfs_move_victims(struct rfs_fs *fs, struct cleaner *c, u32 n)
{
	u32 i;
	int ret = 0;

	memset(c->seen, 0, (size_t)n * fs->geo.zone_blocks);
	memset(c->sums, 0, sizeof(c->sums));
	/* Two copies are for the summaries, and others go on. */
	if (fs->zone[c->victim[c->done]].cleaning && fs->geo.oob_bytes &&
	    c->copies > c->shared + 2)
		ret = rfs_move_known(fs, c, n);
	for (i = c->done; !ret && i < c->done + n; i++)
		ret = fs->geo.oob_bytes ?
		      rfs_move_zone(fs, c, c->victim[i]) :
		      rfs_move_summaries(fs, c, c->victim[i]);
	return ret;
}

static void rfs_cleaner_free(struct cleaner *c)
{
	if (!c)
		return;
	while (c->copies--)
		rfs_copy_free(c->copy[c->copies]);
	rfs_free(c->seen);
	rfs_free(c->block);
	rfs_free(c);
}

/*
 * Returns the room for what comes between and for compaction. Half of what is beyond is left to
 * others, who change metadata meanwhile.
 */
static u64 rfs_clean_leave(struct rfs_fs *fs, enum rfs_clean how)
{
	u64 kept = rfs_room_kept(fs), room;

	rfs_dirty_parents(fs);
	room = rfs_room_beside(fs, 0, 1);
	return how == RFS_CLEAN_HARD || room < kept ? kept :
						      kept + (room - kept) / 2;
}

/*
 * Makes a copy for each group, and for summaries; more are made when they are needed. With less
 * memory there are fewer, and groups share them. They also do so where zones are few and each
 * append has a summary: otherwise it may list few blocks, and what is cleaned takes more room than
 * it gives.
 */
static struct cleaner *rfs_cleaner_new(const struct rfs_fs *fs)
{
	struct cleaner *c = rfs_alloc(sizeof(*c));

	if (!c)
		return NULL;
	c->seen = rfs_alloc((size_t)fs->ways * fs->geo.zone_blocks);
	c->block = rfs_alloc(RFS_BLOCK_BYTES);
	while (c->copies < fs->policy.groups + 3 && rfs_add_copy(c))
		;
	c->shared = min(fs->policy.groups, c->copies);
	if (!fs->geo.oob_bytes && fs->free_zones <= rfs_zones_reserved(fs))
		c->shared = min(c->shared, 1U);
	if (c->seen && c->block && c->copies)
		return c;
	rfs_cleaner_free(c);
	return NULL;
}

/*
 * Says whether there is a zone for what other victims have in use, before the check-point frees
 * those that were emptied. Who sends pages meanwhile may write a check-point, and compacts
 * metadata after it, which is to find the room that it takes.
 */
static bool rfs_may_clean_more(const struct rfs_fs *fs, const struct cleaner *c)
{
	return fs->free_zones + fs->meta_zones + rfs_zones_for_data(fs->few) >
	       fs->low_zones + rfs_zones_claimed(fs) + rfs_zones_for_copies(fs, c->waiting);
}

static void rfs_saw_victim(const struct rfs_fs *fs, u32 nr)
{
	if (fs->ops->victim)
		fs->ops->victim(fs->dev, nr, fs->zone[nr].live, fs->zone[nr].cap);
}

/* It is no victim any more, and may be one another time. */
static void rfs_leave_victim(struct rfs_fs *fs, u32 nr)
{
	fs->zone[nr].cleaning = false;
	rfs_zone_changed(fs, nr);
}

/* Victims that have metadata come first. Returns how many these are. */
static u32 rfs_metadata_first(const struct rfs_fs *fs, struct cleaner *c)
{
	u32 i, nr, n = 0;

	for (i = 0; i < c->victims; i++) {
		nr = c->victim[i];
		if (fs->zone[nr].stream >= RFS_S_DATA)
			continue;
		c->victim[i] = c->victim[n];
		c->victim[n++] = nr;
	}
	return n;
}

/*
 * Says whether metadata could do without so many of its zones, as it has to while they are gone
 * through: who writes a check-point meanwhile compacts others.
 */
static bool rfs_may_lend(const struct rfs_fs *fs, enum rfs_clean how, u32 zones)
{
	return how <= RFS_CLEAN_EARLY &&
	       fs->free_zones > rfs_zones_kept(fs) + rfs_zones_for_reserved(fs) + zones;
}

/*
 * Goes through a victim that has metadata. What was in use of it is dirty then, and nobody reads it
 * any more: the next check-point frees it, though it may be one that a sender of pages writes while
 * data is copied. Others have their turn meanwhile only if `lends` is set; else this is one hold of
 * the lock, as compaction is.
 */
static int rfs_move_metadata(struct rfs_fs *fs, struct cleaner *c, bool lends)
{
	u32 nr = c->victim[c->done];
	int ret;

	fs->zone[nr].cleaning = lends;
	ret = rfs_move_victims(fs, c, 1);
	fs->zone[nr].cleaning = false;
	fs->zone[nr].cleaned = !ret;
	rfs_zone_changed(fs, nr);
	return ret;
}

/*
 * Goes through up to RFS_VICTIMS victims. -ENOENT says that there is none. RFS_STOP says that not
 * all of them were gone through, so the next round has the rest.
 */
static int rfs_clean_more(struct rfs_fs *fs, struct cleaner *c,
			  enum rfs_clean how)
{
	u32 metadata, n;
	bool lends;
	int ret = 0;

	c->now = rfs_now(fs);
	c->victims = 0;
	c->done = 0;
	/*
	 * The cheapest is next, so that no two are left half copied. Who waits for room takes it.
	 */
	if (rfs_half_copied(fs)) {
		if (how <= RFS_CLEAN_EARLY)
			return -ENOENT;
		how = RFS_CLEAN_HARD;
	}
	c->victims = rfs_find_victims(fs, how, c->victim);
	if (!c->victims)
		return -ENOENT;
	c->kept = how != RFS_CLEAN_HARD;
	/* Who waits for room is to have it, whoever writes what. */
	c->leaves = how == RFS_CLEAN_EARLY && fs->ops->write_dirty;
	/* Other groups are closed, and what is copied to them would be cleaned again. */
	c->groups = how == RFS_CLEAN_HARD ? RFS_GROUPS_KEPT : RFS_GROUPS_MAX;
	for (c->done = 0; c->done < c->victims; c->done++)
		rfs_saw_victim(fs, c->victim[c->done]);
	fs->stats.victims += c->victims;
	metadata = rfs_metadata_first(fs, c);
	lends = rfs_may_lend(fs, how, metadata);
	for (c->done = 0; !ret && c->done < metadata; c->done += !ret)
		ret = rfs_move_metadata(fs, c, lends);
	while (!ret && c->done < c->victims) {
		n = min(rfs_victim_ways(fs, how), c->victims - c->done);
		ret = rfs_move_victims(fs, c, n);
		c->done += ret ? 0 : n;
	}
	/* Senders of pages may have to compact what was not gone through. */
	for (n = c->done; n < metadata; n++)
		rfs_leave_victim(fs, c->victim[n]);
	return ret;
}

/*
 * All copies complete, and zones are no victims any more. ret is of what was before: after an error
 * they may be cleaned another time.
 */
static int rfs_clean_end(struct rfs_fs *fs, struct cleaner *c, int ret)
{
	bool none = ret == -ENOENT, victims;
	u32 i;
	int error;

	if (none || ret == RFS_STOP)
		ret = 0;
	for (i = 0; !ret && i < c->shared; i++)
		if (c->filling[i])
			ret = rfs_queue_copy(fs, c, c->filling[i]);
	while (!ret && c->reading)
		ret = rfs_copy_send_next(fs, c);
	for (; c->reading; c->reading--)
		rfs_copy_read_end(fs, c->queue[c->queued - c->reading]);
	while (c->queued) {
		error = rfs_copy_wait_next(fs, c);
		ret = ret ? ret : error;
	}
	for (; c->done < c->victims; c->done++)
		rfs_leave_victim(fs, c->victim[c->done]);
	victims = fs->set[RFS_SET_CLEANING].count;
	rfs_bits_each(&fs->set[RFS_SET_CLEANING], i) {
		fs->zone[i].cleaning = false;
		fs->zone[i].cleaned = !ret;
		rfs_zone_changed(fs, i);
	}
	if (victims && rfs_injects(fs, RFS_INJECT_RESET)) {
		rfs_mark_dead(fs);
		rfs_free_zones(fs);
	}
	if (ret == RFS_NO_ZONE && rfs_to_be_free(fs))
		ret = 0;
	return !ret && none ? -ENOENT : ret;
}

/* Nothing was emptied, so who waits for room has an error, and nobody else has. */
static int rfs_no_zone(enum rfs_clean how)
{
	return how <= RFS_CLEAN_EARLY ? -ENOENT : -EIO;
}

bool rfs_clean_due(const struct rfs_fs *fs, u32 *seen)
{
	u32 before = *seen;

	*seen = fs->free_zones < rfs_clean_below(fs) ? fs->free_zones : ~0U;
	return !fs->read_only && *seen < before;
}

/*
 * Zones of which little is in use are cleaned in idle time, since the same has to be done later
 * while somebody waits. That goes on until half of all are free, so that what dies by itself has
 * time to.
 */
static bool rfs_idle_more(const struct rfs_fs *fs)
{
	return 2 * (fs->free_zones + rfs_to_be_free(fs)) < fs->geo.zones;
}

bool rfs_idle_due(struct rfs_fs *fs)
{
	return !fs->read_only && rfs_idle_more(fs) &&
	       rfs_victim(fs, RFS_CLEAN_IDLE, rfs_now(fs), RFS_ALL_WAYS);
}

/* Says whether a check-point would change anything. Each takes some of what room is left. */
static bool rfs_clean_worth(const struct rfs_fs *fs)
{
	return fs->dirty.count || rfs_to_be_free(fs);
}

int rfs_clean(struct rfs_fs *fs, enum rfs_clean how)
{
	struct cleaner *c = rfs_cleaner_new(fs);
	bool none;
	int ret;

	if (!c)
		return -ENOMEM;
	c->least = rfs_clean_leave(fs, how);
	if (how == RFS_CLEAN_HARD)
		rfs_close_groups(fs);
	do {	/* what is above several is written once */
		ret = rfs_clean_more(fs, c, how);
	} while (!ret && how == RFS_CLEAN_HARD && rfs_clean_wanted(fs) &&
		 rfs_may_clean_more(fs, c));
	none = ret == RFS_STOP && !c->any;
	ret = rfs_clean_end(fs, c, ret);
	rfs_cleaner_free(c);
	if (ret == RFS_NO_ZONE)
		return rfs_no_zone(how);
	return !ret && none && !rfs_clean_worth(fs) ? -ENOSPC : ret;
}

/*
 * Returns the zone of metadata or maps with the fewest blocks in use, if it is worth compacting, or
 * 0. Zones of the log have none in use, and are free after a check-point.
 */
static u32 rfs_compactable(const struct rfs_fs *fs)
{
	u32 nr, best = 0;

	rfs_bits_each(&fs->set[RFS_SET_META], nr) {
		const struct rfs_zone_info *z = &fs->zone[nr];

		if (z->state != RFS_Z_USED || z->cond != RFS_DEV_OK ||
		    z->cleaning || z->cleaned)
			continue;
		if (!z->live && !z->window)
			continue;	/* the check-point frees it */
		if (rfs_worth_compacting(fs, z) &&
		    (!best || z->live < fs->zone[best].live))
			best = nr;
	}
	return best;
}

/* Says whether the dead blocks of all zones that are worth it make up for what it costs. */
static bool rfs_compaction_gains(const struct rfs_fs *fs)
{
	u64 dead = 0, gain = fs->gain_now;
	u32 nr;

	rfs_bits_each(&fs->set[RFS_SET_META], nr) {
		const struct rfs_zone_info *z = &fs->zone[nr];

		if (z->state == RFS_Z_USED && z->cond == RFS_DEV_OK &&
		    (z->live || z->window) && rfs_worth_compacting(fs, z))
			dead += fs->holds - z->live;
		if (dead >= gain)
			break;
	}
	return dead >= gain;
}

/* Makes a cleaner that copies nothing: it goes through metadata. */
static struct cleaner *rfs_compactor_new(const struct rfs_fs *fs)
{
	struct cleaner *c = rfs_alloc(sizeof(*c));

	if (!c)
		return NULL;
	c->seen = rfs_alloc(fs->geo.zone_blocks);
	c->block = rfs_alloc(RFS_BLOCK_BYTES);
	c->least = 1;
	c->shared = 1;
	if (c->seen && c->block)
		return c;
	rfs_cleaner_free(c);
	return NULL;
}

bool rfs_compact_due(const struct rfs_fs *fs, bool zones_lack)
{
	/* With fewer zones than it claims, compaction would not give data those that it leaves. */
	bool more = zones_lack && fs->meta_zones > rfs_zones_claimed(fs);

	/* Data cannot be cleaned without a zone for what is copied, either. */
	return !fs->futile && (more || rfs_room_tight(fs, zones_lack)) &&
	       rfs_compaction_gains(fs);
}

/* Compacts victims until their dead blocks are more than what is written besides. */
static int rfs_compact_zones(struct rfs_fs *fs, struct cleaner *c)
{
	u64 dead = 0, gain = fs->gain_now;
	int ret = 0;
	u32 nr;

	while (!ret && dead < gain && (nr = rfs_compactable(fs))) {
		fs->stats.victims++;
		rfs_saw_victim(fs, nr);
		dead += fs->holds - fs->zone[nr].live;
		memset(c->seen, 0, fs->geo.zone_blocks);
		ret = fs->geo.oob_bytes ? rfs_move_zone(fs, c, nr) :
					  rfs_move_summaries(fs, c, nr);
		fs->zone[nr].cleaned = !ret;
		rfs_zone_changed(fs, nr);
	}
	return ret;
}

int rfs_zone_data(struct rfs_fs *fs, u32 nr,
		  int (*each)(void *arg, const struct rfs_oob *oob, u64 addr),
		  void *arg)
{
	struct cleaner *c = rfs_compactor_new(fs);
	int ret;

	if (!c)
		return -ENOMEM;
	c->each = each;
	c->arg = arg;
	c->victim[0] = nr;
	c->victims = 1;
	ret = fs->geo.oob_bytes ? rfs_move_zone(fs, c, nr) :
				  rfs_move_summaries(fs, c, nr);
	rfs_cleaner_free(c);
	return ret;
}

/*
 * Returns the pages that metadata has. Who writes data meanwhile does not change them. Zones that
 * have failed do not come back.
 */
static u64 rfs_pages_taken(const struct rfs_fs *fs)
{
	u64 pages = 0;
	u32 nr;

	rfs_bits_each(&fs->set[RFS_SET_META], nr) {
		const struct rfs_zone_info *z = &fs->zone[nr];

		if (z->cond == RFS_DEV_OK)
			pages += z->state == RFS_Z_OPEN ? z->wp : z->cap;
	}
	return pages;
}

int rfs_compact(struct rfs_fs *fs,
		int (*checkpoint)(struct rfs_fs *fs, u32 flags))
{
	struct cleaner *c;
	u64 before;
	int ret;

	/* After it, its own blocks are all dead or counted, and zones that are dead are free. */
	ret = fs->dirty.count || fs->window_blocks || fs->commit ?
	      checkpoint(fs, 0) : 0;
	if (ret || !rfs_compaction_gains(fs))
		return ret;
	before = rfs_pages_taken(fs);
	c = rfs_compactor_new(fs);
	if (!c)
		return -ENOMEM;
	ret = rfs_compact_zones(fs, c);
	rfs_cleaner_free(c);
	if (ret && ret != RFS_STOP)
		return ret;
	ret = checkpoint(fs, 0);
	if (!ret)
		fs->futile = rfs_pages_taken(fs) >= before;
	return ret;
}

/*
 * Copies take zones before the check-point makes victims free. Where groups stripe, it comes before
 * so few are left that appends go to fewer ways.
 */
static bool rfs_clean_narrows(const struct rfs_fs *fs)
{
	return fs->ways > 1 && rfs_to_be_free(fs) >= 2 * fs->ways &&
	       fs->free_zones <= rfs_zones_narrow(fs);
}

#define PAYS	4	/* early: times what a check-point writes */
#define IDLY	4	/* idle: rounds of victims, for who comes meanwhile */

int rfs_clean_some(struct rfs_fs *fs, enum rfs_clean how)
{
	u32 cap = le32_to_cpu(fs->super.zone_cap);
	struct cleaner *c;
	u32 rounds = 0;
	bool none;
	u64 gain;
	int ret = 0;

	if (fs->read_only)
		return -EROFS;
	c = rfs_cleaner_new(fs);
	if (!c)
		return -ENOMEM;
	c->least = rfs_clean_leave(fs, how);
	if (how == RFS_CLEAN_HARD)
		rfs_close_groups(fs);
	while (!ret &&
	       (how == RFS_CLEAN_IDLE ? rfs_idle_more(fs) && rounds < IDLY :
						rfs_clean_wanted(fs))) {
		ret = rfs_clean_more(fs, c, how);
		rounds++;
		if (rfs_dirty_due(fs) || rfs_clean_narrows(fs) || !rfs_may_clean_more(fs, c))
			break;
	}
	none = ret == RFS_STOP && !c->any;
	ret = rfs_clean_end(fs, c, ret);
	rfs_cleaner_free(c);
	if (ret == RFS_NO_ZONE)
		return rfs_no_zone(how);
	if (ret && ret != -ENOENT)
		return ret;
	if (none && !rfs_clean_worth(fs))
		return how <= RFS_CLEAN_EARLY ? -ENOENT : -ENOSPC;
	gain = (u64)rfs_to_be_free(fs) * cap;
	return how == RFS_CLEAN_EARLY &&
	       (!gain || gain < PAYS * (u64)fs->dirty.count) ? -ENOENT : 0;
}
