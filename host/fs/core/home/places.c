// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A new replica on the slow device is written in this order: slots, the table of their content,
 * then both copies of the head, one after the other. A slot that a copy of the head leads to is not
 * written, and no block at home that it leads to is given to others, until neither copy leads
 * there. So if one copy cannot be read later, the other counts.
 */
#include "home/replica.h"

static int rfs_replica_send_row(struct rfs_fs *fs, struct rfs_replica *r)
{
	const void *data[RFS_REPLICA_ROW];
	u32 i, n = r->row_n;
	int ret;

	for (i = 0; i < n; i++)
		data[i] = r->row + i * RFS_BLOCK_BYTES;
	r->row_n = 0;
	ret = n ? rfs_home_copy(fs, rfs_slot_at(r, r->row_first), n, data) : 0;
	for (i = 0; ret && i < n; i++)
		rfs_bits_put(&r->bad, r->row_first + i, true);
	return ret;
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
	return !r->place[slot].place && !rfs_bits_has(&r->kept, slot) &&
	       !rfs_bits_has(&r->bad, slot);
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
		rfs_bits_put(&r->fresh, slot, true);
		rfs_slot_set(r, slot, place, addr);
		ret = rfs_replica_add(fs, r, slot, data);
	} else if (before) {
		r->slot_of[place / RFS_PLACES_EACH][place % RFS_PLACES_EACH] = 0;
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
	return rfs_home_copy(fs, rfs_places_at(r, table, !r->copy[table]), 1,
			      &data);
}

static u64 rfs_replica_time(const struct rfs_fs *fs, const struct rfs_replica *r)
{
	const struct rfs_cp *cp = r->cp;

	return cp ? le64_to_cpu(cp->time) : rfs_clock(fs);
}

/* Writes the replica as it is now over the copy of the head that is not r->head. */
static int rfs_replica_write_head(struct rfs_fs *fs, struct rfs_replica *r)
{
	struct rfs_slow_replica *block = (void *)r->block;
	const void *data = block;
	u64 sum = 0;
	u32 i;
	int ret;

	for (i = 0; i < r->tables; i++)
		sum += r->stamp[i];
	memset(block, 0, sizeof(*block));
	rfs_head_init(fs, &block->head, RFS_SLOW_REPLICA, 0, 0, !r->head);
	block->sum = cpu_to_le64(sum);
	block->time = cpu_to_le64(r->made);
	block->blocks = cpu_to_le32(r->blocks);
	rfs_head_seal(&block->head, r->seq);
	ret = rfs_home_copy(fs, r->first + !r->head, 1, &data);
	if (!ret)
		ret = rfs_home_flush_all(fs);
	if (!ret)
		r->head = !r->head;
	return ret;
}

/* Writes the head that counts over the other copy, so that no copy leads to the replica before. */
static int rfs_replica_write_other(struct rfs_fs *fs, struct rfs_replica *r)
{
	int ret = rfs_replica_write_head(fs, r);
	u32 i;

	if (ret)
		return ret;
	r->heads = RFS_HEADS_SAME;
	r->used -= r->kept.count;
	rfs_bits_each(&r->kept, i)
		rfs_bits_put(&r->kept, i, false);
	/* A replica of an older check-point may lead to what this one has given up. */
	if (r->seq == fs->cp_seq || !r->blocks)
		rfs_home_release(fs);
	return 0;
}

/* Makes the medium have no replica, whatever is there: its tables are not looked at. */
static int rfs_replica_void(struct rfs_fs *fs, struct rfs_replica *r)
{
	int ret;

	rfs_replica_forget(r);
	r->heads = RFS_HEADS_UNKNOWN;
	/* With this number, a replica of this check-point is newer. */
	r->seq = fs->cp_seq - 1;
	r->made = rfs_clock(fs);
	ret = rfs_replica_write_head(fs, r);
	return ret ? ret : rfs_replica_write_other(fs, r);
}

int rfs_replica_settle(struct rfs_fs *fs)
{
	struct rfs_replica *r = fs->home->replica;

	if (r->heads == RFS_HEADS_UNKNOWN)
		return rfs_replica_void(fs, r);
	return r->heads == RFS_HEADS_DIFFER ? rfs_replica_write_other(fs, r) : 0;
}

/* Fixes the content to which a head leads that is written now. */
static void rfs_replica_renew(struct rfs_fs *fs, struct rfs_replica *r,
			      u32 cp_blocks)
{
	u32 i;

	rfs_bits_each(&r->due, i) {
		r->copy[i] = !r->copy[i];
		r->stamp[i] = fs->cp_seq;
		rfs_bits_put(&r->due, i, false);
	}
	r->seq = fs->cp_seq;
	r->made = rfs_replica_time(fs, r);
	r->blocks = cp_blocks;
}

static void rfs_replica_committed(struct rfs_fs *fs, struct rfs_replica *r)
{
	u32 i;

	rfs_bits_each(&r->fresh, i)
		rfs_bits_put(&r->fresh, i, false);
	rfs_bits_each(&r->anew, i)
		rfs_bits_put(&r->anew, i, false);
	r->heads = RFS_HEADS_DIFFER;
	r->unlike = r->holes;
	r->failed = r->holes ? rfs_clock(fs) : 0;
	fs->stats.replicas += !!r->blocks;
}

int rfs_replica_commit(struct rfs_fs *fs, u32 cp_blocks)
{
	struct rfs_replica *r = fs->home->replica;
	u32 i;
	int ret = rfs_replica_send_row(fs, r);

	rfs_bits_each(&r->due, i)
		ret = ret ? ret : rfs_replica_write_table(fs, r, i);
	if (!ret && !rfs_injects(fs, RFS_INJECT_REPLICA))
		ret = rfs_home_flush_all(fs);
	if (ret)
		return ret;
	rfs_replica_renew(fs, r, cp_blocks);
	r->heads = RFS_HEADS_UNKNOWN;
	ret = rfs_replica_write_head(fs, r);
	if (ret)
		return ret;
	rfs_replica_committed(fs, r);
	return rfs_replica_write_other(fs, r);
}

static void rfs_replica_unplace(struct rfs_replica *r, u32 slot)
{
	u64 place = le64_to_cpu(r->place[slot].place);

	r->slot_of[place / RFS_PLACES_EACH][place % RFS_PLACES_EACH] = 0;
	rfs_slot_set(r, slot, 0, 0);
}

static void rfs_replica_take_back(struct rfs_replica *r)
{
	u32 i;

	r->row_n = 0;
	rfs_bits_each(&r->fresh, i) {
		rfs_replica_unplace(r, i);
		r->used -= !rfs_bits_has(&r->bad, i);
		rfs_bits_put(&r->fresh, i, false);
	}
}

int rfs_replica_drop(struct rfs_fs *fs)
{
	struct rfs_replica *r = fs->home->replica;
	u32 i;
	int ret;

	rfs_replica_take_back(r);
	for (i = 0; i < r->slots; i++) {
		if (!r->place[i].place)
			continue;
		rfs_replica_unplace(r, i);
		rfs_bits_put(&r->kept, i, true);
	}
	ret = rfs_replica_commit(fs, 0);
	fs->stats.replicas_dropped += !ret;
	return ret;
}

void rfs_replica_give_up(struct rfs_fs *fs, int error)
{
	struct rfs_home *home = fs->home;
	struct rfs_replica *r = home->replica;

	rfs_replica_take_back(r);
	r->unlike = true;
	r->failed = rfs_clock(fs);
	fs->stats.replicas_failed += error != -ENOSPC;
	/* All other free blocks may be held for the replica before. */
	if (home->count[RFS_SLOW_FREE] < home->count[RFS_SLOW_HELD])
		rfs_replica_void(fs, r);
}

void rfs_replica_forgive(struct rfs_replica *r)
{
	u32 i;

	r->used -= r->bad.count;
	rfs_bits_each(&r->bad, i)
		rfs_bits_put(&r->bad, i, false);
}

bool rfs_replica_due(const struct rfs_fs *fs)
{
	const struct rfs_home *home = fs->home;
	const struct rfs_replica *r = home ? home->replica : NULL;

	if (!r || r->seq == fs->cp_seq || home->lacks)
		return false;
	if (home->count[RFS_SLOW_FREE] < home->count[RFS_SLOW_HELD])
		return true;
	if (r->failed && rfs_clock(fs) - r->failed < r->every)
		return false;
	return !r->blocks || r->unlike || rfs_clock(fs) - r->made >= r->every;
}
