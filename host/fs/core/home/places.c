// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A new replica on the slow device: slots, the table of what is in them, the head. What
 * the head leads to is not written, so that a power cut leaves one or the other whole.
 */
#include "home/replica.h"

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
		r->slot_of[place / RFS_PLACES_EACH][place % RFS_PLACES_EACH] = 0;
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
