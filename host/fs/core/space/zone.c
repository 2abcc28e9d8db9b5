// SPDX-License-Identifier: GPL-2.0-or-later
/* Streams append to zones here, and zones get their summaries and counts. */
#include "space/space.h"
#include "space/rank.h"

/*
 * Decides how many zones are written at a time ("Open zones" in doc/design.md). Check-points have
 * one of the open zones and two of the active ones that the drive allows.
 */
void rfs_streams_init(struct rfs_fs *fs)
{
	u32 cap = le32_to_cpu(fs->super.zone_cap), stream;
	u32 budget = rfs_active_max(&fs->geo);

	fs->active_max = budget == ~0U ? 0 : budget;
	fs->active_few = fs->active_max && budget < rfs_active_many(1, cap);
	fs->ways = rfs_ways_allowed(&fs->geo, cap,
				    le32_to_cpu(fs->super.ways));
	fs->meta_active = fs->few ? 1 : min(budget - 1, (u32)RFS_S_DATA);
	fs->data_active = fs->few ? 1 : min(budget - fs->meta_active, (u32)RFS_GROUPS_MAX);
	/*
	 * If there are too few zones, the maps share one with other metadata, and then the log
	 * does.
	 */
	for (stream = 0; stream < RFS_S_DATA; stream++)
		fs->active_of[stream] = min(stream, fs->meta_active - 1);
	for (; stream < RFS_STREAMS; stream++)
		fs->active_of[stream] = min(stream, RFS_S_DATA +
					    fs->data_active - 1);
}

static int rfs_place_sum(struct rfs_active_seg *seg)
{
	if (seg->sum)
		return 0;
	seg->sum = rfs_alloc_nofail(sizeof(*seg->sum));
	if (!seg->sum)
		return -ENOMEM;
	seg->sum->zone = seg->zone;
	return 0;
}

/* A summary can be written when the places of all its blocks are known. */
static void rfs_sum_ready(struct rfs_fs *fs, struct rfs_sum *sum)
{
	list_add_tail(&sum->list, &fs->sums);
}

/*
 * Counts blocks of a zone, and so of its way, that were given room, or that have been written
 * (blocks is negative).
 */
static void rfs_inflight_add(struct rfs_fs *fs, u32 nr, int blocks)
{
	fs->zone[nr].inflight += blocks;
	fs->way_inflight[nr % fs->ways] += blocks;
}

/* The active segment's summary takes no more blocks. It gets a block of its own. */
static void rfs_sum_full(struct rfs_fs *fs, struct rfs_active_seg *seg)
{
	struct rfs_sum *sum = seg->sum;

	seg->sum = NULL;
	fs->zone[sum->zone].wp++;
	rfs_inflight_add(fs, sum->zone, 1);
	fs->zone[sum->zone].sums_due++;
	rfs_zone_changed(fs, sum->zone);
	sum->full = true;
	if (sum->known == sum->count)
		rfs_sum_ready(fs, sum);
}

static void rfs_sum_free(struct rfs_fs *fs, struct rfs_sum *sum, bool written)
{
	if (!written)
		fs->zone[sum->zone].wp--;
	rfs_inflight_add(fs, sum->zone, -1);
	rfs_zone_changed(fs, sum->zone);
	rfs_free_nofail(sum);
}

/*
 * Returns the next summary to be written. Its block is sealed, and *oob is its page metadata. It
 * says where the last summary is that has been written. Those that are in flight together are found
 * by reading the zone backwards.
 */
struct rfs_sum *rfs_sum_next(struct rfs_fs *fs, struct rfs_oob *oob)
{
	struct rfs_summary *block;
	struct rfs_sum *sum;

	while (!list_empty(&fs->sums)) {
		struct rfs_zone_info *z;

		sum = list_first_entry(&fs->sums, struct rfs_sum, list);
		list_del(&sum->list);
		z = &fs->zone[sum->zone];
		z->sums_due--;
		if (z->cond != RFS_DEV_OK) {
			rfs_sum_free(fs, sum, false);
			fs->ioq->failed = true;	/* the zone is shorter */
			continue;
		}
		block = &sum->block;
		rfs_head_init(fs, &block->head, RFS_SUMMARY, 0, 0, 0);
		block->head.count = cpu_to_le16(sum->count);
		block->head.prev = cpu_to_le32(z->summary);
		rfs_oob_meta(fs, oob, &block->head);
		rfs_head_seal(&block->head, le64_to_cpu(oob->stamp));
		rfs_oob_seal(oob, block);
		return sum;
	}
	return NULL;
}

/*
 * An error of an append, a reset or a finish says that nothing more goes to the zone, or it is one
 * of the moment. NVMe has such for too many open or active zones, where nothing was written, and
 * the host for want of memory.
 */
bool rfs_zone_failed(int error)
{
	switch (error) {
	case 0:
	case -ENOMEM:
	case -EAGAIN:
	case -EINTR:
	case -EBUSY:
	case -ETOOMANYREFS:	/* open zones, as Linux calls it */
	case -EOVERFLOW:	/* active zones */
		return false;
	}
	return true;
}

void rfs_zone_lost(struct rfs_fs *fs, u32 nr)
{
	struct rfs_zone_info *z = &fs->zone[nr];

	if (z->cond != RFS_DEV_OK)
		return;
	z->cond = RFS_DEV_READ_ONLY;
	/*
	 * Compaction may have written to this zone in vain, which says nothing of the next round.
	 */
	fs->futile = false;
	if (nr >= RFS_CP_ZONES) {
		fs->user_blocks -= min_t(u64, fs->user_blocks, fs->holds);
		if (z->state == RFS_Z_FREE) {
			fs->free_zones--;
			z->state = RFS_Z_DEAD;
		} else {
			fs->meta_zones -= z->stream < RFS_S_DATA;
		}
	}
	rfs_zone_changed(fs, nr);
}

static void rfs_note_error(struct rfs_fs *fs, u32 nr, int error)
{
	if (rfs_zone_failed(error))
		rfs_zone_lost(fs, nr);
}

/* A zone may have a few more summaries than these. They are found by reading it. */
static u32 rfs_sums_most(const struct rfs_zone_info *z)
{
	return z->cap / RFS_SUM_ENTRIES + 4;
}

/* Memory keeps the places of a zone's summaries from now on, if that takes not too much. */
static void rfs_sums_note(struct rfs_fs *fs, struct rfs_zone_info *z)
{
	u32 most = rfs_sums_most(z);

	z->sums_known = 0;
	if (!fs->geo.oob_bytes || fs->sums_noted + most > RFS_SUMS_NOTED)
		return;
	z->sum_at = rfs_alloc(most * sizeof(*z->sum_at));
	if (z->sum_at)
		fs->sums_noted += most;
}

static void rfs_sums_forget(struct rfs_fs *fs, struct rfs_zone_info *z)
{
	if (!z->sum_at)
		return;
	fs->sums_noted -= rfs_sums_most(z);
	rfs_free(z->sum_at);
	z->sum_at = NULL;
}

/* Cleaning reads all summaries of a zone at once, and so needs their places. */
static void rfs_note_sum(struct rfs_zone_info *z, u32 at)
{
	if (z->sum_at && z->sums_known < rfs_sums_most(z))
		z->sum_at[z->sums_known++] = at;
}

/*
 * The summary is at addr, or an error says why it is not. It is freed. Blocks that no summary lists
 * are found by their OOB.
 */
void rfs_sum_done(struct rfs_fs *fs, struct rfs_sum *sum, u64 addr, int error)
{
	struct rfs_zone_info *z = &fs->zone[sum->zone];

	rfs_note_error(fs, sum->zone, error);
	if (!error) {
		z->summary = max_t(u32, z->summary,
				   addr % fs->geo.zone_blocks + 1);
		rfs_note_sum(z, addr % fs->geo.zone_blocks);
		fs->window_blocks++;
		fs->stats.written[RFS_SUMMARY]++;
	}
	rfs_sum_free(fs, sum, !error);
}

void rfs_sums_write(struct rfs_fs *fs)
{
	struct rfs_sum *sum;
	struct rfs_oob oob;

	while ((sum = rfs_sum_next(fs, &oob))) {
		const void *data = &sum->block;
		u64 addr = 0;
		int ret = fs->ops->append(fs->dev, sum->zone, 1, &data, &oob,
					  &addr);

		rfs_sum_done(fs, sum, addr, ret);
	}
}

static void rfs_close_zone(struct rfs_fs *fs, struct rfs_active_seg *seg)
{
	if (seg->sum)
		rfs_sum_full(fs, seg);
	fs->zone[seg->zone].state = RFS_Z_USED;
	rfs_zone_changed(fs, seg->zone);
	seg->zone = 0;
}

/*
 * Closes a stream's zones, but for the one on way `kept`, if there is such a way, and those that
 * reserved pages count on.
 */
static void rfs_close_ways(struct rfs_fs *fs, u32 stream, u32 kept)
{
	struct rfs_active_seg *seg = fs->active[stream];
	u32 way;

	for (way = 0; way < fs->ways; way++)
		if (seg[way].zone && way != kept && rfs_may_close(fs, &seg[way]))
			rfs_close_zone(fs, &seg[way]);
}

static void rfs_close_from(struct rfs_fs *fs, u32 stream)
{
	for (; stream < RFS_STREAMS; stream++)
		rfs_close_ways(fs, stream, fs->ways);
}

/* Returns the way of a stream's zone that has most room, or a way that has none. */
static u32 rfs_roomiest(const struct rfs_fs *fs, u32 stream)
{
	const struct rfs_active_seg *seg = fs->active[stream];
	u32 way, best = 0;

	for (way = 1; way < fs->ways; way++)
		if (seg[way].zone && (!seg[best].zone ||
				      rfs_seg_room(fs, &seg[way]) > rfs_seg_room(fs, &seg[best])))
			best = way;
	return best;
}

void rfs_policy_set(struct rfs_fs *fs, const struct rfs_policy *policy)
{
	fs->policy = *policy;
	fs->policy.groups = min(policy->groups, fs->data_active);
	if (fs->rank)
		rfs_rank_all_stale(fs);
	/* Data goes on with the zones of other groups only where reserved pages need these. */
	rfs_close_from(fs, RFS_S_DATA + fs->policy.groups);
}

void rfs_close_groups(struct rfs_fs *fs)
{
	u32 group;

	/*
	 * Each of these keeps one, though it may be as good as full: if it were closed, it would be
	 * a victim of which nothing is dead.
	 */
	for (group = 0; group < RFS_GROUPS_KEPT; group++)
		rfs_close_ways(fs, RFS_S_DATA + group, rfs_roomiest(fs, RFS_S_DATA + group));
	rfs_close_from(fs, RFS_S_DATA + RFS_GROUPS_KEPT);
}

/*
 * Finishes a zone that is partly filled and that nobody goes on with, after a power cut or an
 * error: it is active on the drive until then. After an error of the moment, whoever looks for such
 * zones next tries again.
 */
static void rfs_finish_zone(struct rfs_fs *fs, u32 nr)
{
	struct rfs_zone_info *z = &fs->zone[nr];
	u32 tries = 0;
	int ret = 0;

	while (fs->ops->finish) {
		ret = fs->ops->finish(fs->dev, nr);
		if (!ret || rfs_zone_failed(ret))
			break;
		if (++tries == RFS_TRIES)
			return;
		if (fs->ops->delay)
			fs->ops->delay(fs->dev);
	}
	rfs_note_error(fs, nr, ret);
	if (!ret)
		z->wp = z->cap;
	rfs_zone_changed(fs, nr);
}

void rfs_finish_zones(struct rfs_fs *fs)
{
	u32 nr;

	rfs_bits_each(&fs->set[RFS_SET_ACTIVE], nr)
		if (fs->zone[nr].state != RFS_Z_OPEN && !fs->zone[nr].inflight)
			rfs_finish_zone(fs, nr);
}

/* Counts the zones of data that the drive may count as active. */
static u32 rfs_active_data(const struct rfs_fs *fs)
{
	u32 nr, used = 0;

	rfs_bits_each(&fs->set[RFS_SET_ACTIVE], nr)
		used += fs->zone[nr].stream >= RFS_S_DATA &&
			fs->zone[nr].cond == RFS_DEV_OK;
	return used;
}

/*
 * Makes room for one more active zone. A stream of metadata always gets it, since all of its zone
 * before has been written but for the summary. A stream of data may be told -EBUSY, and waits until
 * data in flight has completed.
 */
static int rfs_make_active(struct rfs_fs *fs, bool data)
{
	u32 max = fs->active_max - fs->meta_active;

	if (!fs->active_few)
		return 0;
	rfs_finish_zones(fs);
	if (data && rfs_active_data(fs) < max)
		return 0;
	rfs_sums_write(fs);
	rfs_finish_zones(fs);
	return data && rfs_active_data(fs) >= max ? -EBUSY : 0;
}

/*
 * Says whether zones are reset while others go on. Nobody goes on while the volume is being
 * mounted.
 */
static bool rfs_resets_later(const struct rfs_fs *fs)
{
	return fs->threaded && fs->ops->reset_begin;
}

bool rfs_reset_next(struct rfs_fs *fs)
{
	u32 nr;

	if (!rfs_resets_later(fs) || fs->resets_rest)
		return false;
	rfs_bits_each(&fs->set[RFS_SET_RESET], nr) {
		if (fs->ops->reset_begin(fs->dev, nr))
			continue;
		fs->zone[nr].resetting = true;
		rfs_zone_changed(fs, nr);
		return true;
	}
	return false;
}

void rfs_reset_done(struct rfs_fs *fs, u32 nr, int error)
{
	struct rfs_zone_info *z = &fs->zone[nr];

	z->resetting = false;
	rfs_note_error(fs, nr, error);
	if (error) {
		/*
		 * An error of the moment: who needs the zone tries again, and the other resets wait
		 * for a check-point.
		 */
		fs->resets_rest |= !rfs_zone_failed(error);
	} else {
		z->wp = 0;
		fs->stats.resets++;
	}
	rfs_zone_changed(fs, nr);
}

/* Resets a zone that is to be written now. -EBUSY says that it is being read, or reset. */
static int rfs_reset_now(struct rfs_fs *fs, u32 nr)
{
	struct rfs_zone_info *z = &fs->zone[nr];
	int ret;

	if (!z->wp || z->cond != RFS_DEV_OK)
		return 0;
	if (z->resetting)
		return -EBUSY;
	if (!rfs_resets_later(fs))
		return fs->ops->reset(fs->dev, nr);
	ret = fs->ops->reset_begin(fs->dev, nr);
	z->resetting |= !ret;
	rfs_zone_changed(fs, nr);
	return ret ? ret : -EBUSY;
}

/*
 * Gives a free zone, which is or should be reset, to a stream. `error` is the zone's, if there was
 * one. False says that the zone does not work, and the stream needs another one. The drive may say
 * that a reset has failed only when the zone is asked for.
 */
static bool rfs_begin_zone(struct rfs_fs *fs, u32 nr, u32 stream, int error)
{
	struct rfs_zone_info *z = &fs->zone[nr];

	fs->free_zones--;
	fs->meta_zones += stream < RFS_S_DATA;
	z->state = RFS_Z_USED;
	z->stream = stream;
	if (z->wp && error)
		rfs_zone_lost(fs, nr);
	if (z->cond != RFS_DEV_OK)
		return false;
	fs->stats.resets += !!z->wp;
	z->wp = 0;
	z->kept = false;
	z->summary = 0;
	rfs_sums_note(fs, z);
	z->sum_time = 0;
	z->sum_wcount = 0;
	z->last = stream < RFS_S_DATA ? rfs_now(fs) : 0;
	z->state = RFS_Z_OPEN;
	return true;
}

/*
 * Takes the first free zone from the cursor on for a stream, and one of those that are kept only if
 * `kept` is set. -EBUSY says that each of them is being read, or reset. -ENOMEM says that none
 * could be reset now, which says nothing of the zones.
 */
static int rfs_take_zone_from(struct rfs_fs *fs, u32 stream, u32 way, u32 ways,
			      bool kept)
{
	u32 from = fs->zone_cursor, end = fs->geo.zones, nr;
	bool again = false, begun;
	int ret, none = -ENOSPC;

	for (;;) {
		nr = rfs_next_free(fs, from, way, ways);
		if (nr >= end) {
			if (again)
				return none;
			again = true;	/* those before it */
			end = fs->zone_cursor;
			from = 0;
			continue;
		}
		from = nr + 1;
		if (fs->zone[nr].kept && !kept)
			continue;
		ret = rfs_reset_now(fs, nr);
		if (ret && !rfs_zone_failed(ret)) {
			/* It may be reset at another time. */
			if (none != -EBUSY)
				none = ret == -EBUSY ? ret : -ENOMEM;
			continue;
		}
		begun = rfs_begin_zone(fs, nr, stream, ret);
		rfs_zone_changed(fs, nr);
		if (begun)
			break;
	}
	fs->active[fs->active_of[stream]][way].zone = nr;
	fs->zone_cursor = nr + 1;
	return 0;
}

/*
 * Takes a zone of this way. If the way has none, and the stream has no room elsewhere, it takes one
 * of any other way, and one that is kept if there is no other at all. Zones that are being read, or
 * reset, are waited for.
 */
static int rfs_take_zone(struct rfs_fs *fs, u32 stream, u32 way)
{
	int ret = rfs_take_zone_from(fs, stream, way, fs->ways, false);

	if (!ret || (fs->ways > 1 && rfs_has_room(fs, stream)))
		return ret;
	if (fs->ways > 1)
		ret = rfs_take_zone_from(fs, stream, way, 1, false);
	if (ret == -ENOSPC)
		ret = rfs_take_zone_from(fs, stream, way, 1, true);
	return ret;
}

#define RESTS	5000	/* of a tick each; reads take as long only if lost */

/*
 * Who writes data is told that all free zones are being read, and waits. Metadata waits here, since
 * a check-point cannot be left halfway.
 */
static int rfs_open_zone(struct rfs_fs *fs, u32 stream, u32 way)
{
	u32 rests = 0;
	int ret = rfs_make_active(fs, stream >= RFS_S_DATA);

	if (ret)
		return ret;
	if (stream >= RFS_S_DATA)
		rfs_regroup(fs);	/* as often as SFS: for each segment */
	while ((ret = rfs_take_zone(fs, stream, way)) == -EBUSY &&
	       fs->ops->delay && stream < RFS_S_DATA &&
	       !rfs_has_room(fs, stream) && rests++ < RESTS)
		fs->ops->delay(fs->dev);
	return ret;
}

/*
 * Without page metadata a summary and its blocks go out in one append. The summary holds its own
 * address, so appends to one zone are not in flight together.
 */
static int rfs_append_listed(struct rfs_fs *fs, u32 zone, u32 n,
			     const void *const *data, const struct rfs_oob *oob,
			     u64 *addr)
{
	struct rfs_zone_info *z = &fs->zone[zone];
	u64 at = (u64)zone * fs->geo.zone_blocks + z->wp;
	const void *all[RFS_SUM_ENTRIES + 1];
	struct rfs_oob head_oob;
	struct rfs_summary *sum;
	u32 i;
	int ret;

	sum = rfs_alloc_nofail(sizeof(*sum));
	if (!sum)
		return -ENOMEM;
	rfs_head_init(fs, &sum->head, RFS_SUMMARY, 0, 0, 0);
	sum->head.count = cpu_to_le16(n);
	sum->head.prev = cpu_to_le32(z->summary);
	sum->head.addr = cpu_to_le64(at);
	all[0] = sum;
	for (i = 0; i < n; i++) {
		sum->entry[i] = oob[i];
		sum->entry[i].crc = cpu_to_le32(z->wp + 1 + i);
		all[i + 1] = data[i];
	}
	rfs_oob_meta(fs, &head_oob, &sum->head);
	rfs_summary_seal(fs, sum, le64_to_cpu(head_oob.stamp));
	ret = fs->ops->append(fs->dev, zone, n + 1, all, NULL, addr);
	if (!ret && *addr != at)
		ret = -EIO;
	if (ret == -ENOMEM)
		ret = -EAGAIN;	/* the drive's, which is tried again */
	rfs_free_nofail(sum);
	if (ret)
		return ret;
	z->summary = at % fs->geo.zone_blocks + 1;
	*addr += 1;
	fs->stats.written[RFS_SUMMARY]++;
	return 0;
}

/*
 * Without page metadata the last block of a zone may be too little for anything but a summary of
 * nothing. It is written, since a zone that is not full stays active on the drive.
 */
static void rfs_fill_up(struct rfs_fs *fs, u32 zone)
{
	struct rfs_zone_info *z = &fs->zone[zone];
	u64 addr;

	if (fs->geo.oob_bytes || z->cond != RFS_DEV_OK || z->cap - z->wp != 1 ||
	    rfs_append_listed(fs, zone, 0, NULL, NULL, &addr))
		return;
	z->wp++;
	z->window = true;
	rfs_zone_changed(fs, zone);
	fs->window_blocks++;
}

/*
 * Finds an active segment of the stream that has room for at least a block, or for all of them. *n
 * becomes the number of blocks that it has room for.
 */
static int rfs_find_room(struct rfs_fs *fs, u32 stream, bool all, u32 *n,
			 struct rfs_active_seg **found)
{
	struct rfs_active_seg *ways = fs->active[fs->active_of[stream]];
	u32 way = rfs_way_for(fs, stream, true);
	int ret;

	for (;;) {
		struct rfs_active_seg *seg = &ways[way];
		u32 most;

		if (!seg->zone) {
			ret = rfs_open_zone(fs, stream, way);
			if (ret)
				way = rfs_way_for(fs, stream, false);
			if (ret && way == fs->ways)
				return ret;
			seg = &ways[way];
		}
		most = rfs_zone_fit(fs, seg, *n);
		if (most && (most == *n || !all)) {
			*n = most;
			*found = seg;
			return 0;
		}
		if (most && seg->sum) {
			rfs_sum_full(fs, seg);	/* the next one has more room */
		} else {
			rfs_fill_up(fs, seg->zone);
			rfs_close_zone(fs, seg);
		}
	}
}

/*
 * More or fewer blocks of a zone are in flight. If the drive does not limit active zones, that puts
 * the zone into no other set, and mostly it has been noted before.
 */
static void rfs_inflight_changed(struct rfs_fs *fs, u32 nr)
{
	if (fs->zone[nr].noted != RFS_NOTED || fs->active_max)
		rfs_zone_changed(fs, nr);
}

int rfs_place(struct rfs_fs *fs, u32 stream, u32 n, bool all,
	      struct rfs_place *place)
{
	struct rfs_zone_info *z;
	struct rfs_active_seg *seg;
	bool listed, numbered = stream == RFS_S_META;
	int ret;

	stream = rfs_with_room(fs, stream);
	ret = rfs_find_room(fs, stream, all, &n, &seg);
	if (ret)
		return ret;
	z = &fs->zone[seg->zone];
	listed = z->cap - z->wp > 1;
	if (listed)
		ret = rfs_place_sum(seg);
	if (ret)
		return ret;
	place->zone = seg->zone;
	place->n = n;
	place->sum = listed ? seg->sum : NULL;
	place->slot = 0;
	/*
	 * wp counts the summaries that are due, and these are appended later, when all blocks that
	 * they list have been written.
	 */
	place->addr = (u64)seg->zone * fs->geo.zone_blocks + z->wp - z->sums_due;
	z->wp += n;
	z->numbered |= numbered;
	rfs_inflight_add(fs, seg->zone, n);
	if (z->window) {
		rfs_inflight_changed(fs, seg->zone);
	} else {
		z->window = true;
		rfs_zone_changed(fs, seg->zone);
	}
	if (!listed)
		return 0;
	place->slot = seg->sum->count;
	seg->sum->count += n;
	if (seg->sum->count == RFS_SUM_ENTRIES || z->cap - z->wp == 1)
		rfs_sum_full(fs, seg);
	return 0;
}

static void rfs_count_written(struct rfs_fs *fs, const struct rfs_zone_info *z,
			      const struct rfs_oob *oob, u32 n)
{
	u32 group = z->stream >= RFS_S_DATA ? z->stream - RFS_S_DATA : 0, i;

	for (i = 0; i < n; i++) {
		fs->stats.written[oob[i].type]++;
		if (oob[i].type != RFS_DATA)
			continue;
		if (oob[i].flags & RFS_OOB_COPY)
			fs->stats.copies[group]++;
		else
			fs->stats.data[group]++;
	}
}

void rfs_placed(struct rfs_fs *fs, const struct rfs_place *place,
		const struct rfs_oob *oob, u64 addr, int error)
{
	struct rfs_zone_info *z = &fs->zone[place->zone];
	struct rfs_sum *sum = place->sum;
	u32 i;

	rfs_inflight_add(fs, place->zone, -(int)place->n);
	rfs_note_error(fs, place->zone, error);
	if (error) {
		z->wp -= place->n;
		rfs_zone_changed(fs, place->zone);
	} else {
		fs->window_blocks += place->n;
		rfs_count_written(fs, z, oob, place->n);
		rfs_inflight_changed(fs, place->zone);
	}
	if (!sum)
		return;
	for (i = 0; !error && i < place->n; i++) {
		struct rfs_oob *entry = &sum->block.entry[place->slot + i];

		*entry = oob[i];
		entry->crc = cpu_to_le32((addr + i) % fs->geo.zone_blocks);
	}
	sum->known += place->n;
	if (sum->full && sum->known == sum->count)
		rfs_sum_ready(fs, sum);
}

/* The result -ENOMEM says that no zone is to blame, and that it can be tried again any time. */
static int rfs_append_failed(struct rfs_fs *fs, int error)
{
	if (!rfs_zone_failed(error) && fs->ops->delay)
		fs->ops->delay(fs->dev);
	return error == -ENOMEM || error == -EAGAIN ? -ENOMEM : -EIO;
}

/* Makes one append of up to n blocks. *n becomes the number of blocks that it has. */
static int rfs_append_some(struct rfs_fs *fs, u32 stream, u32 *n,
			   const void *const *data, const struct rfs_oob *oob,
			   u64 *addr)
{
	struct rfs_active_seg *seg;
	struct rfs_place place;
	struct rfs_zone_info *z;
	u32 zone;
	int ret;

	if (fs->geo.oob_bytes) {
		ret = rfs_place(fs, stream, *n, false, &place);
		if (ret)
			return ret;
		*n = place.n;
		ret = fs->ops->append(fs->dev, place.zone, place.n, data, oob,
				      addr);
		rfs_placed(fs, &place, oob, *addr, ret);
		rfs_sums_write(fs);
		return ret ? rfs_append_failed(fs, ret) : 0;
	}
	stream = rfs_with_room(fs, stream);
	ret = rfs_find_room(fs, stream, false, n, &seg);
	if (ret)
		return ret;
	zone = seg->zone;
	z = &fs->zone[zone];
	ret = rfs_append_listed(fs, zone, *n, data, oob, addr);
	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		rfs_note_error(fs, zone, ret);
		rfs_zone_changed(fs, zone);
		return rfs_append_failed(fs, ret);
	}
	z->wp += *n + 1;
	z->window = true;
	rfs_zone_changed(fs, zone);
	fs->window_blocks += *n + 1;
	rfs_count_written(fs, z, oob, *n);
	return 0;
}

int rfs_append(struct rfs_fs *fs, u32 stream, u32 n, const void *const *data,
	       struct rfs_oob *oob, u64 *addr)
{
	u32 i, part, done = 0, failed = 0;
	u64 first;

	for (i = 0; i < n; i++)
		rfs_oob_seal(&oob[i], data[i]);
	while (done < n) {
		int ret;

		part = n - done;
		first = 0;
		ret = rfs_append_some(fs, stream, &part, data + done, oob +
				      done, &first);
		if ((ret == -EIO || ret == -ENOMEM) && ++failed < RFS_TRIES)
			continue;	/* in another zone, or once more */
		if (ret)
			return failed && ret != -ENOMEM ? -EIO : ret;
		for (i = 0; i < part; i++)
			addr[done + i] = first + i;
		done += part;
	}
	return 0;
}

/* Forgets the summaries that were not written. */
void rfs_sums_drop(struct rfs_fs *fs)
{
	struct rfs_sum *sum, *next;
	u32 i, way;

	list_for_each_entry_safe(sum, next, &fs->sums, list)
		rfs_free_nofail(sum);
	for (i = 0; i < RFS_STREAMS; i++)
		for (way = 0; way < fs->ways; way++)
			rfs_free_nofail(fs->active[i][way].sum);
}

int rfs_count_live(struct rfs_fs *fs, u64 addr, int delta,
		   const struct rfs_ptr *ptr)
{
	struct rfs_zone_info *z;

	if (!rfs_addr_ok(fs, addr))
		return -EUCLEAN;
	z = &fs->zone[addr / fs->geo.zone_blocks];
	if (delta < 0 && !z->live)
		return -EUCLEAN;
	z->live += delta;
	fs->live += delta;
	/* Most zones have been noted before, and have some blocks in use. */
	if (z->noted != RFS_NOTED || z->live <= 1)
		rfs_zone_changed(fs, addr / fs->geo.zone_blocks);
	if (!ptr)
		return 0;
	fs->data_live += delta;
	z->sum_time += (s64)delta * rfs_ptr_ticks(ptr);
	z->sum_wcount += (s64)delta * rfs_ptr_wcount(ptr);
	if (delta > 0)
		z->last = max(z->last, rfs_ptr_ticks(ptr));
	return 0;
}

/* This is the same for a block of the inode map, the node map, TIMB or the zone table. */
void rfs_count_live_map(struct rfs_fs *fs, u64 addr, int delta)
{
	u32 nr = addr / fs->geo.zone_blocks;

	if (!addr || !rfs_addr_ok(fs, addr))
		return;
	fs->zone[nr].maps += delta;
	fs->zone[nr].live += delta;
	fs->live += delta;
	rfs_zone_changed(fs, nr);
}

static void rfs_reset_freed(struct rfs_fs *fs, u32 nr)
{
	int ret = fs->ops->reset(fs->dev, nr);

	rfs_note_error(fs, nr, ret);
	if (ret)
		return;
	fs->zone[nr].wp = 0;
	fs->stats.resets++;
}

void rfs_mark_dead(struct rfs_fs *fs)
{
	u32 nr;

	rfs_bits_each(&fs->set[RFS_SET_DEAD], nr)
		fs->zone[nr].dies = true;
}

void rfs_zones_cut(struct rfs_fs *fs)
{
	u32 nr;

	rfs_mark_dead(fs);
	rfs_bits_each(&fs->set[RFS_SET_SINCE], nr) {
		struct rfs_zone_info *z = &fs->zone[nr];

		/* What it still has in use cannot be read, so it is not to be a victim again. */
		if (z->cleaned && z->live && !z->left)
			rfs_zone_lost(fs, nr);
		z->frozen = true;
		z->window = false;
		z->cleaned = false;
		z->left = false;
		rfs_zone_changed(fs, nr);
	}
	fs->window_blocks = 0;
}

/*
 * Nodes and inodes that a check-point writes are numbered. If check-points are lost, --rescan takes
 * one whose numbers lack for unfinished. So a zone that has only nodes or inodes that were written
 * once more for the same check-point is reset when a later check-point has written some, or if no
 * other zone is free. See rescan.c.
 */
static void rfs_keep_zones(struct rfs_fs *fs)
{
	bool any = false;
	u32 nr;

	rfs_bits_each(&fs->set[RFS_SET_SINCE], nr)
		any |= fs->zone[nr].numbered;
	rfs_bits_each(&fs->set[RFS_SET_SINCE], nr) {
		struct rfs_zone_info *z = &fs->zone[nr];

		z->frozen = false;
		if (any) {
			z->kept = z->numbered;
			z->numbered = false;
		}
		rfs_zone_changed(fs, nr);
	}
}

/*
 * The caller has just made a check-point durable. What has died since it was frozen is not free,
 * because the check-point leads there.
 */
int rfs_free_zones(struct rfs_fs *fs)
{
	u32 nr;

	if (rfs_injects(fs, RFS_INJECT_DIED))
		rfs_mark_dead(fs);
	rfs_keep_zones(fs);
	rfs_bits_each(&fs->set[RFS_SET_DEAD], nr) {
		struct rfs_zone_info *z = &fs->zone[nr];

		if (!z->dies)
			continue;
		z->dies = false;
		rfs_sums_forget(fs, z);
		z->state = z->cond != RFS_DEV_OK || z->cap < 2 ? RFS_Z_DEAD :
								 RFS_Z_FREE;
		if (z->cond == RFS_DEV_OK)	/* else it was counted out */
			fs->meta_zones -= z->stream < RFS_S_DATA;
		if (z->state == RFS_Z_FREE) {
			fs->free_zones++;
			fs->futile = false;
			if (z->wp && !z->kept && !rfs_resets_later(fs))
				rfs_reset_freed(fs, nr);
		}
		rfs_zone_changed(fs, nr);
	}
	fs->resets_rest = false;
	rfs_reset_next(fs);
	return 0;
}
