// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The replica on the slow device: slots, the table of what is in them, the head. What
 * the head leads to is not written, so that a power cut leaves one or the other whole.
 */
#include "home/replica.h"

#define EACH	512	/* places of a block of the index */
#define EVERY	(30 * 1000000000ULL)	/* where the module's commit= does not say it */
#define SHARE	32	/* a replica has this share of the slow device, */
#define LEAST	512	/* but no fewer blocks, and no more than flash has twice */

u32 rfs_replica_tables(u64 blocks)
{
	return blocks < 2 ? 0 : DIV_ROUND_UP(blocks - 2, RFS_PLACES + 2ULL);
}

u32 rfs_replica_slots(u64 blocks)
{
	u64 taken = 2 + 2ULL * rfs_replica_tables(blocks);

	return blocks > taken ? blocks - taken : 0;
}

u64 rfs_replica_size(u64 slow_blocks, u64 flash_blocks)
{
	u64 size = max(slow_blocks / SHARE, (u64)LEAST);

	return min(size, 2 * flash_blocks);
}

int rfs_replica_alloc(struct rfs_replica *r, u64 first, u64 blocks, u64 places,
		      u32 zones)
{
	r->first = first;
	r->tables = rfs_replica_tables(blocks);
	r->slots = rfs_replica_slots(blocks);
	r->places = places;
	r->unlike = true;
	r->every = EVERY;
	r->place = rfs_alloc((size_t)r->tables * RFS_PLACES * sizeof(*r->place));
	r->copy = rfs_alloc(r->tables);
	r->stamp = rfs_alloc(r->tables * sizeof(*r->stamp));
	r->slot_of = rfs_alloc((places / EACH + 1) * sizeof(*r->slot_of));
	r->row = rfs_alloc(RFS_REPLICA_ROW * RFS_BLOCK_BYTES);
	r->block = rfs_alloc(2 * RFS_BLOCK_BYTES);
	if (!r->place || !r->copy || !r->stamp || !r->slot_of || !r->row ||
	    !r->block || rfs_bits_alloc(&r->due, r->tables) ||
	    rfs_bits_alloc(&r->kept, r->slots))
		return -ENOMEM;
	return rfs_bits_alloc(&r->anew, zones);
}

void rfs_replica_free(struct rfs_replica *r)
{
	u64 i;

	if (!r)
		return;
	for (i = 0; r->slot_of && i <= r->places / EACH; i++)
		rfs_free(r->slot_of[i]);
	rfs_free(r->slot_of);
	rfs_free(r->place);
	rfs_free(r->copy);
	rfs_free(r->stamp);
	rfs_free(r->row);
	rfs_free(r->block);
	rfs_free(r->cp);
	rfs_bits_free(&r->due);
	rfs_bits_free(&r->kept);
	rfs_bits_free(&r->anew);
	rfs_free(r);
}

static int rfs_replica_index(struct rfs_replica *r, u64 place, u32 slot)
{
	u32 **page = &r->slot_of[place / EACH];

	if (!*page)
		*page = rfs_alloc(EACH * sizeof(**page));
	if (!*page)
		return -ENOMEM;
	(*page)[place % EACH] = slot + 1;
	return 0;
}

static u32 rfs_replica_slot(const struct rfs_replica *r, u64 place)
{
	const u32 *page = place < r->places ? r->slot_of[place / EACH] : NULL;

	return page ? page[place % EACH] : 0;
}

const struct rfs_slot *rfs_replica_find(const struct rfs_replica *r, u64 place)
{
	u32 slot = rfs_replica_slot(r, place);

	return slot ? &r->place[slot - 1] : NULL;
}

static bool rfs_replica_head_ok(const struct rfs_head *head, u32 volume,
				const u8 *uuid, u8 type, u64 off)
{
	return rfs_head_ok(head, volume, type) &&
	       !memcmp(head->uuid, uuid, sizeof(head->uuid)) &&
	       le64_to_cpu(head->off) == off;
}

/* The copy of the head with the higher number; *sum: of the table's stamps */
static int rfs_replica_load_head(struct rfs_replica *r,
				 const struct rfs_slow_dev *slow, u32 volume,
				 const u8 *uuid, u64 *sum)
{
	const struct rfs_slow_replica *head = (void *)r->block;
	bool found = false;
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		if (slow->read(slow->dev, r->first + copy, r->block) ||
		    !rfs_replica_head_ok(&head->head, volume, uuid,
					 RFS_SLOW_REPLICA, copy) ||
		    (found && le64_to_cpu(head->head.stamp) <= r->seq))
			continue;
		found = true;
		r->head = copy;
		r->seq = le64_to_cpu(head->head.stamp);
		r->made = le64_to_cpu(head->time);
		r->blocks = le32_to_cpu(head->blocks);
		*sum = le64_to_cpu(head->sum);
	}
	return found ? 0 : -ENOENT;
}

static void rfs_replica_load_table(struct rfs_replica *r, u32 table,
				   const struct rfs_slow_dev *slow, u32 volume,
				   const u8 *uuid)
{
	const struct rfs_slow_places *block = (void *)r->block;
	u64 stamp;
	u32 copy;

	for (copy = 0; copy < 2; copy++) {
		if (slow->read(slow->dev, rfs_places_at(r, table, copy),
			       r->block) ||
		    !rfs_replica_head_ok(&block->head, volume, uuid,
					 RFS_SLOW_PLACES, table))
			continue;
		stamp = le64_to_cpu(block->head.stamp);
		if (stamp > r->seq) {
			/* of one that did not come: not to be taken for the next */
			rfs_bits_put(&r->due, table, true);
			continue;
		}
		if (stamp <= r->stamp[table])
			continue;
		r->stamp[table] = stamp;
		r->copy[table] = copy;
		memcpy(&r->place[table * RFS_PLACES], block->place,
		       sizeof(block->place));
	}
}

int rfs_replica_load(struct rfs_replica *r, const struct rfs_slow_dev *slow,
		     u32 volume, const u8 *uuid)
{
	u64 sum = 0, is = 0, place;
	u32 i;
	int ret = rfs_replica_load_head(r, slow, volume, uuid, &sum);

	for (i = 0; !ret && i < r->tables; i++) {
		rfs_replica_load_table(r, i, slow, volume, uuid);
		is += r->stamp[i];
	}
	if (!ret && !r->blocks)
		ret = -ENOENT;
	if (!ret && is != sum)
		ret = -EUCLEAN;
	for (i = 0; !ret && i < r->slots; i++) {
		place = le64_to_cpu(r->place[i].place);
		if (!place)
			continue;
		r->used++;
		if (r->places)
			ret = place < r->places && !rfs_replica_slot(r, place) ?
			      rfs_replica_index(r, place, i) : -EUCLEAN;
	}
	return ret;
}

void rfs_replica_forget(struct rfs_replica *r)
{
	u64 i;

	for (i = 0; i <= r->places / EACH; i++) {
		rfs_free(r->slot_of[i]);
		r->slot_of[i] = NULL;
	}
	memset(r->place, 0, (size_t)r->tables * RFS_PLACES * sizeof(*r->place));
	for (i = 0; i < r->tables; i++)
		rfs_bits_put(&r->due, i, true);
	r->blocks = 0;
	r->used = 0;
}

void rfs_replica_loaded(struct rfs_fs *fs)
{
	struct rfs_replica *r = fs->home->replica;
	u32 nr;

	r->unlike = r->seq != fs->cp_seq;
	/* those that the check-point has freed may have been reset since */
	for (nr = RFS_CP_ZONES; nr < fs->geo.zones; nr++)
		rfs_bits_put(&r->anew, nr, fs->zone[nr].state == RFS_Z_FREE);
	if (!r->unlike)
		rfs_home_release(fs);
}

static int rfs_replica_send_row(struct rfs_fs *fs, struct rfs_replica *r)
{
	const void *data[RFS_REPLICA_ROW];
	u32 i, n = r->row_n;

	for (i = 0; i < n; i++)
		data[i] = r->row + i * RFS_BLOCK_BYTES;
	r->row_n = 0;
	return n ? rfs_home_write(fs, rfs_slot_at(r, r->row_first), n, data) : 0;
}

static int rfs_replica_add(struct rfs_fs *fs, struct rfs_replica *r, u32 slot,
			   const void *data)
{
	int ret = 0;

	if (r->row_n == RFS_REPLICA_ROW || slot != r->row_first + r->row_n)
		ret = rfs_replica_send_row(fs, r);
	if (!r->row_n)
		r->row_first = slot;
	memcpy(r->row + r->row_n++ * RFS_BLOCK_BYTES, data, RFS_BLOCK_BYTES);
	fs->stats.replicated++;
	return ret;
}

static bool rfs_slot_free(const struct rfs_replica *r, u32 slot)
{
	return !r->place[slot].place && !rfs_bits_has(&r->kept, slot);
}

static void rfs_slot_set(struct rfs_replica *r, u32 slot, u64 place, u64 addr)
{
	r->place[slot].place = cpu_to_le64(place);
	r->place[slot].addr = cpu_to_le64(addr);
	rfs_bits_put(&r->due, slot / RFS_PLACES, true);
}

int rfs_replica_put(struct rfs_fs *fs, u64 place, u64 addr, const void *data)
{
	struct rfs_replica *r = fs->home->replica;
	u32 before = rfs_replica_slot(r, place), slot = r->cursor;
	int ret = 0;

	if (data) {
		if (r->used == r->slots)
			return -ENOSPC;
		while (!rfs_slot_free(r, slot))
			slot = slot + 1 < r->slots ? slot + 1 : 0;
		ret = rfs_replica_index(r, place, slot);
		if (ret)
			return ret;
		r->cursor = slot + 1 < r->slots ? slot + 1 : 0;
		r->used++;
		rfs_slot_set(r, slot, place, addr);
		ret = rfs_replica_add(fs, r, slot, data);
	} else if (before) {
		r->slot_of[place / EACH][place % EACH] = 0;
	}
	if (before) {
		rfs_slot_set(r, before - 1, 0, 0);
		rfs_bits_put(&r->kept, before - 1, true);
	}
	return ret;
}

static int rfs_replica_write_table(struct rfs_fs *fs, struct rfs_replica *r,
				   u32 table)
{
	struct rfs_slow_places *block = (void *)r->block;
	const void *data = block;

	memset(block, 0, sizeof(*block));
	rfs_head_init(fs, &block->head, RFS_SLOW_PLACES, 0, 0, table);
	memcpy(block->place, &r->place[table * RFS_PLACES], sizeof(block->place));
	rfs_head_seal(&block->head, fs->cp_seq);
	return rfs_home_write(fs, rfs_places_at(r, table, !r->copy[table]), 1,
			      &data);
}

static u64 rfs_replica_time(const struct rfs_fs *fs, const struct rfs_replica *r)
{
	const struct rfs_cp *cp = r->cp;

	return cp ? le64_to_cpu(cp->time) : rfs_clock(fs);
}

static int rfs_replica_write_head(struct rfs_fs *fs, struct rfs_replica *r,
				  u32 cp_blocks)
{
	struct rfs_slow_replica *block = (void *)r->block;
	const void *data = block;
	u64 sum = 0;
	u32 i;

	for (i = 0; i < r->tables; i++)
		sum += rfs_bits_has(&r->due, i) ? fs->cp_seq : r->stamp[i];
	memset(block, 0, sizeof(*block));
	rfs_head_init(fs, &block->head, RFS_SLOW_REPLICA, 0, 0, !r->head);
	block->sum = cpu_to_le64(sum);
	block->time = cpu_to_le64(rfs_replica_time(fs, r));
	block->blocks = cpu_to_le32(cp_blocks);
	rfs_head_seal(&block->head, fs->cp_seq);
	return rfs_home_write(fs, r->first + !r->head, 1, &data);
}

static void rfs_replica_committed(struct rfs_fs *fs, struct rfs_replica *r,
				  u32 cp_blocks)
{
	u32 i;

	rfs_bits_each(&r->due, i) {
		r->copy[i] = !r->copy[i];
		r->stamp[i] = fs->cp_seq;
		rfs_bits_put(&r->due, i, false);
	}
	r->used -= r->kept.count;
	rfs_bits_each(&r->kept, i)
		rfs_bits_put(&r->kept, i, false);
	rfs_bits_each(&r->anew, i)
		rfs_bits_put(&r->anew, i, false);
	r->unlike = false;
	r->head = !r->head;
	r->seq = fs->cp_seq;
	r->made = rfs_replica_time(fs, r);
	r->blocks = cp_blocks;
	fs->stats.replicas += !!cp_blocks;
	rfs_home_release(fs);
}

int rfs_replica_commit(struct rfs_fs *fs, u32 cp_blocks)
{
	struct rfs_replica *r = fs->home->replica;
	u32 i;
	int ret = rfs_replica_send_row(fs, r);

	rfs_bits_each(&r->due, i)
		ret = ret ? ret : rfs_replica_write_table(fs, r, i);
	if (!ret && !(fs->inject & RFS_INJECT_REPLICA))
		ret = rfs_home_flush(fs);
	if (!ret)
		ret = rfs_replica_write_head(fs, r, cp_blocks);
	if (!ret)
		ret = rfs_home_flush(fs);
	if (!ret)
		rfs_replica_committed(fs, r, cp_blocks);
	return ret;
}

int rfs_replica_drop(struct rfs_fs *fs)
{
	struct rfs_replica *r = fs->home->replica;
	u32 i;
	u64 place;

	r->row_n = 0;
	for (i = 0; i < r->slots; i++) {
		place = le64_to_cpu(r->place[i].place);
		if (!place)
			continue;
		r->slot_of[place / EACH][place % EACH] = 0;
		rfs_slot_set(r, i, 0, 0);
		rfs_bits_put(&r->kept, i, true);
	}
	fs->stats.replicas_dropped++;
	return rfs_replica_commit(fs, 0);
}

bool rfs_replica_due(const struct rfs_fs *fs)
{
	const struct rfs_home *home = fs->home;
	const struct rfs_replica *r = home ? home->replica : NULL;

	if (!r || r->seq == fs->cp_seq || home->lacks)
		return false;
	return !r->blocks || r->unlike || rfs_clock(fs) - r->made >= r->every ||
	       home->count[RFS_SLOW_FREE] < home->count[RFS_SLOW_HELD];
}
