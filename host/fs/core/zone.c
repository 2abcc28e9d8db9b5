// SPDX-License-Identifier: GPL-2.0-or-later
/* Zones: appending to streams, summaries, what is in use, room. */
#include "rfs.h"

u64 rfs_next_version(struct rfs_fs *fs, u32 count)
{
	u64 first = fs->version;

	fs->version += count;
	return first;
}

bool rfs_addr_ok(const struct rfs_fs *fs, u64 addr)
{
	u64 zone = addr / fs->geo.zone_blocks;

	return addr && zone < fs->geo.zones &&
	       addr % fs->geo.zone_blocks < fs->zone[zone].cap;
}

/* Page metadata of a block that is not data; takes a stamp. */
void rfs_oob_meta(struct rfs_fs *fs, struct rfs_oob *oob,
		  const struct rfs_head *head)
{
	memset(oob, 0, sizeof(*oob));
	oob->magic = cpu_to_le16(RFS_OOB_MAGIC);
	oob->type = head->type;
	oob->volume = head->volume;
	oob->ino = head->ino;
	oob->gen = head->gen;
	oob->off = head->off;
	oob->version = cpu_to_le64(rfs_next_version(fs, 1));
	oob->stamp = oob->version;
	oob->time = cpu_to_le64(fs->ops->now(fs->dev));
	oob->len = cpu_to_le16(RFS_BLOCK_BYTES);
}

/* Blocks for users in a zone with so much room, after `pending` others. */
static u32 room_for_blocks(const struct rfs_fs *fs, u32 room, u32 pending)
{
	u32 n = RFS_SUM_ENTRIES;

	if (fs->geo.oob_bytes)
		n -= pending;
	if (fs->geo.append_max)	/* without OOB, the summary goes along */
		n = min(n, fs->geo.append_max - !fs->geo.oob_bytes);
	return room ? min(room - 1, n) : 0;
}

/* One append of the drive; the zone it was for is not used again if it fails */
static int append_raw(struct rfs_fs *fs, u32 zone, u32 n,
		      const void *const *data, const struct rfs_oob *oob,
		      u64 *addr)
{
	struct rfs_zone_info *z = &fs->zone[zone];
	u32 i;
	int ret;

	ret = fs->ops->append(fs->dev, zone, n, data, oob, addr);
	if (ret) {
		z->cond = RFS_DEV_READ_ONLY;
		return ret;
	}
	z->wp = *addr % fs->geo.zone_blocks + n;
	z->window = true;
	fs->window_blocks += n;
	for (i = 0; i < n; i++)
		fs->stats.written[oob[i].type]++;
	return 0;
}

static void summary_fill(struct rfs_fs *fs, struct rfs_summary *sum, u32 zone,
			 u32 count)
{
	rfs_head_init(fs, &sum->head, RFS_SUMMARY, 0, 0, 0);
	sum->head.count = cpu_to_le16(count);
	sum->head.prev = cpu_to_le32(fs->zone[zone].summary);
}

/* Backpointers of the blocks that no summary lists yet, after them. */
static int summary_write(struct rfs_fs *fs, struct rfs_tail *tail)
{
	struct rfs_summary *sum;
	const void *data;
	struct rfs_oob oob;
	u64 addr;
	int ret;

	if (!tail->pending || !fs->geo.oob_bytes)
		return 0;
	sum = rfs_alloc(sizeof(*sum));
	if (!sum)
		return -ENOMEM;
	summary_fill(fs, sum, tail->zone, tail->pending);
	memcpy(sum->entry, tail->entry, tail->pending * sizeof(oob));
	rfs_oob_meta(fs, &oob, &sum->head);
	rfs_head_seal(&sum->head, le64_to_cpu(oob.stamp));
	rfs_oob_seal(&oob, sum);
	data = sum;
	ret = append_raw(fs, tail->zone, 1, &data, &oob, &addr);
	if (!ret)
		fs->zone[tail->zone].summary = addr % fs->geo.zone_blocks + 1;
	tail->pending = 0;
	rfs_free(sum);
	return ret;
}

static void close_zone(struct rfs_fs *fs, struct rfs_tail *tail)
{
	fs->zone[tail->zone].state = RFS_Z_USED;
	tail->zone = 0;
	tail->pending = 0;
}

static int open_zone(struct rfs_fs *fs, u32 stream)
{
	struct rfs_tail *tail = &fs->tail[stream];
	u32 i;
	int ret;

	for (i = 0; i < fs->geo.zones; i++) {
		u32 nr = (fs->zone_cursor + i) % fs->geo.zones;
		struct rfs_zone_info *z = &fs->zone[nr];

		if (z->state != RFS_Z_FREE)
			continue;
		fs->free_zones--;
		z->state = RFS_Z_USED;
		if (z->cond != RFS_DEV_OK)
			continue;
		if (z->wp) {
			ret = fs->ops->reset(fs->dev, nr);
			if (ret) {
				z->cond = RFS_DEV_READ_ONLY;
				continue;
			}
			fs->stats.resets++;
		}
		z->wp = 0;
		z->summary = 0;
		z->sum_time = 0;
		z->sum_wcount = 0;
		z->state = RFS_Z_OPEN;
		z->stream = stream;
		tail->zone = nr;
		tail->pending = 0;
		fs->zone_cursor = nr + 1;
		return 0;
	}
	return -ENOSPC;
}

/*
 * Without page metadata: a summary and its blocks in one append. It holds its
 * own address, so appends to one zone are not in flight together.
 */
static int append_listed(struct rfs_fs *fs, struct rfs_tail *tail, u32 n,
			 const void *const *data, const struct rfs_oob *oob,
			 u64 *addr)
{
	u64 at = (u64)tail->zone * fs->geo.zone_blocks + fs->zone[tail->zone].wp;
	const void *all[RFS_SUM_ENTRIES + 1];
	struct rfs_oob *oobs;
	struct rfs_summary *sum;
	u32 i;
	int ret;

	sum = rfs_alloc(sizeof(*sum));
	oobs = rfs_alloc((n + 1) * sizeof(*oobs));
	if (!sum || !oobs) {
		ret = -ENOMEM;
		goto out;
	}
	summary_fill(fs, sum, tail->zone, n);
	sum->head.addr = cpu_to_le64(at);
	all[0] = sum;
	for (i = 0; i < n; i++) {
		sum->entry[i] = oob[i];
		sum->entry[i].crc = cpu_to_le32(fs->zone[tail->zone].wp + 1 + i);
		all[i + 1] = data[i];
		oobs[i + 1] = oob[i];
	}
	rfs_oob_meta(fs, &oobs[0], &sum->head);
	rfs_head_seal(&sum->head, le64_to_cpu(oobs[0].stamp));
	ret = append_raw(fs, tail->zone, n + 1, all, oobs, addr);
	if (!ret && *addr != at)
		ret = -EIO;
	if (!ret)
		fs->zone[tail->zone].summary = at % fs->geo.zone_blocks + 1;
	*addr += 1;
out:
	rfs_free(sum);
	rfs_free(oobs);
	return ret;
}

static int append_some(struct rfs_fs *fs, struct rfs_tail *tail, u32 n,
		       const void *const *data, const struct rfs_oob *oob,
		       u64 *addr)
{
	u32 i;
	int ret;

	if (!fs->geo.oob_bytes)
		return append_listed(fs, tail, n, data, oob, addr);
	ret = append_raw(fs, tail->zone, n, data, oob, addr);
	for (i = 0; !ret && i < n; i++) {
		struct rfs_oob *entry = &tail->entry[tail->pending++];

		*entry = oob[i];
		entry->crc = cpu_to_le32((*addr + i) % fs->geo.zone_blocks);
	}
	return ret;
}

int rfs_append(struct rfs_fs *fs, u32 stream, u32 n, const void *const *data,
	       struct rfs_oob *oob, u64 *addr)
{
	struct rfs_tail *tail = &fs->tail[stream];
	u32 i, done = 0;
	int ret;

	for (i = 0; i < n; i++)
		rfs_oob_seal(&oob[i], data[i]);
	while (done < n) {
		struct rfs_zone_info *z = &fs->zone[tail->zone];
		u64 first;
		u32 fit;

		if (!tail->zone) {
			ret = open_zone(fs, stream);
			if (ret)
				return ret;
			continue;
		}
		fit = z->wp < z->cap && z->cond == RFS_DEV_OK ?
		      room_for_blocks(fs, z->cap - z->wp, tail->pending) : 0;
		if (!fit) {
			if (z->cond == RFS_DEV_OK && z->wp < z->cap &&
			    summary_write(fs, tail) == -ENOMEM)
				return -ENOMEM;
			if (z->cond != RFS_DEV_OK || z->cap - z->wp < 2)
				close_zone(fs, tail);
			continue;
		}
		fit = min(fit, n - done);
		ret = append_some(fs, tail, fit, data + done, oob + done,
				  &first);
		if (ret == -ENOMEM)
			return ret;
		if (ret)
			continue;	/* in another zone */
		for (i = 0; i < fit; i++)
			addr[done + i] = first + i;
		done += fit;
	}
	return 0;
}


int rfs_live(struct rfs_fs *fs, u64 addr, int delta, const struct rfs_ptr *ptr)
{
	struct rfs_zone_info *z;

	if (!rfs_addr_ok(fs, addr))
		return -EUCLEAN;
	z = &fs->zone[addr / fs->geo.zone_blocks];
	if (delta < 0 && !z->live)
		return -EUCLEAN;
	z->live += delta;
	fs->live += delta;
	if (!ptr)
		return 0;
	fs->data_live += delta;
	z->sum_time += (s64)delta * le32_to_cpu(ptr->time);
	z->sum_wcount += (s64)delta * le16_to_cpu(ptr->wcount);
	return 0;
}

/* The same of a block of inode map, TIMB or zone table. */
void rfs_live_map(struct rfs_fs *fs, u64 addr, int delta)
{
	if (!addr || !rfs_addr_ok(fs, addr))
		return;
	fs->zone[addr / fs->geo.zone_blocks].maps += delta;
	fs->zone[addr / fs->geo.zone_blocks].live += delta;
	fs->live += delta;
}

/* After a check-point: closed zones with nothing in use are free. */
int rfs_free_zones(struct rfs_fs *fs)
{
	u32 nr;

	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++) {
		struct rfs_zone_info *z = &fs->zone[nr];

		if (z->state != RFS_Z_USED || z->live)
			continue;
		if (z->cond != RFS_DEV_OK || z->cap < 2) {
			z->state = RFS_Z_DEAD;
			continue;
		}
		z->state = RFS_Z_FREE;
		fs->free_zones++;
		if (z->wp && fs->ops->reset(fs->dev, nr) == 0) {
			z->wp = 0;
			fs->stats.resets++;
		}
	}
	return 0;
}

bool rfs_checkpoint_due(const struct rfs_fs *fs)
{
	return fs->dirty.count >= fs->dirty_max / 2 ||
	       fs->window_blocks >= fs->window_max;
}

/* Fewer zones are free than what is owed, `blocks` more and the rest need. */
bool rfs_room_low(const struct rfs_fs *fs, u32 blocks)
{
	return fs->free_zones < fs->low_zones + (fs->owed + blocks) /
	       fs->zone[RFS_CP_ZONES].cap;
}

/* Where others clean and write check-points: nothing but the answer. */
static int ask_for_room(const struct rfs_fs *fs, u32 blocks)
{
	if (fs->dirty.count < fs->dirty_max && !rfs_room_low(fs, blocks))
		return 0;
	return fs->stuck ? -ENOSPC : -EAGAIN;
}

/*
 * Before a change: room for `blocks` to be appended, by which the blocks in use
 * grow by `more`. A bound that was reached forces a check-point; where free
 * zones lack, a check-point frees those that are dead, and cleaning those that
 * are nearly so.
 */
int rfs_make_room(struct rfs_fs *fs, u32 blocks, u32 more)
{
	u32 tries = 2 * fs->geo.zones;
	int ret;

	if (fs->read_only)
		return -EROFS;
	if (!fs->threaded && rfs_checkpoint_due(fs)) {
		ret = rfs_checkpoint(fs, 0);
		if (ret)
			return ret;
	}
	if (more && fs->live + fs->new_dirty + fs->promised + more >
	    fs->user_blocks)
		return -ENOSPC;
	if (fs->threaded)
		return ask_for_room(fs, blocks);
	while (rfs_room_low(fs, blocks)) {
		if (!tries--)
			return -ENOSPC;
		ret = rfs_clean(fs);
		if (ret && ret != -ENOENT)
			return ret;
		ret = rfs_checkpoint(fs, 0);
		if (ret)
			return ret;
	}
	return 0;
}
